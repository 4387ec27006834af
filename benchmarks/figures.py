"""Pictures of the documentation: models of adult, and stored results of learned gates.

python benchmarks/figures.py                             # learned_*.svg, from stored results
SVMOSAIC_DATA=/path/to/data python benchmarks/figures.py # also curve_adult.svg and rules_adult.svg
"""

import os
from statistics import mean

import matplotlib as mpl
import numpy as np
from auto_data import encoded_adult
from common import grouped
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pages import DOCS, curves_of, named, picture, stored
from sklearn.preprocessing import StandardScaler

from svmosaic import LinearSVC, TreeSVC

mpl.use("svg")
import matplotlib.pyplot as plt

IMAGES = DOCS / "images"
# Colors that readers who are blind to some can tell apart.
BLUE, ORANGE, GRAY = "#0072B2", "#E69F00", "#777777"
STYLE = {"learned": (BLUE, "o"), "fixed": (ORANGE, "^")}
# Columns whose curves of the global tile are shown next to a tree.
SHOWN = ("age", "education_num", "hours_per_week")


def contribution(model, X, at, values):
    """What column `at` adds to the score of a typical row as its value changes, less its mean."""
    rows = np.tile(np.median(X, axis=0), (len(values), 1))
    rows[:, at] = values
    found = model.explain(rows).contributions[:, 0, at]
    return found - found.mean()


def save(figure, name):
    """Write a picture, the same bytes for the same numbers, and text as text."""
    with mpl.rc_context({"svg.hashsalt": name.removeprefix("learned_").removesuffix(".svg"), "svg.fonttype": "none"}):
        figure.savefig(IMAGES / name, metadata={"Date": None})
    plt.close(figure)


def draw_curve(X, y, names):
    """What age adds to the score, as a slope and as a curve, over the share of high incomes."""
    ages, at, scaler = np.arange(17, 91), names.index("age"), StandardScaler().fit(X)
    Z, scaled_ages = scaler.transform(X), (ages - scaler.mean_[at]) / scaler.scale_[at]
    straight = LinearSVC(C=0.1, loss="squared_hinge", random_state=0).fit(Z, y)
    curved = LinearSVC(C=0.1, loss="squared_hinge", pieces=16, random_state=0).fit(X, y)
    curves = (
        ("a slope", contribution(straight, Z, at, scaled_ages), ORANGE),
        ("pieces=16", contribution(curved, X, at, ages), BLUE),
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    share = [y[X[:, at] == age].mean() for age in ages[:60]]
    left.plot(ages[:60], share, "o", color=GRAY, markersize=4)
    left.set(xlabel="age", ylabel="share above 50K", title="the training rows")
    for label, curve, color in curves:
        right.plot(ages, curve, color=color, label=label, linewidth=2)
    right.set(xlabel="age", ylabel="added to the score", title="what LinearSVC makes of age")
    right.legend(frameon=False)
    save(figure, "curve_adult.svg")


class TreePicture:
    """A tree with its conditions, and what its leaves are and add; columns from `n_numbers` on are one-hot."""

    def __init__(self, model, names, n_numbers, axis):
        self.gate, self.names, self.n_numbers, self.axis = model.mosaic_.gate.gates[1], names, n_numbers, axis
        self.leaves = model.rules_
        self.n_drawn = 0
        axis.axis("off")
        self.draw(0, 0)

    def draw(self, node, depth):
        """A node and what is below it; where it stands."""
        first = int(self.gate.left[node])
        if self.gate.feature[node] < 0:
            across = float(self.n_drawn)
            self.n_drawn += 1
            rows, share, adds = (float(self.leaves[name][first]) for name in ("rows", "share of 1", "adds to 1"))
            text = f"{rows:,.0f} rows\n{share:.0%} above 50K\nadds {adds:+.2f}"
            self.text(across, depth, text, BLUE if adds > 0 else ORANGE)
            return across
        ends = [self.draw(first, depth + 1), self.draw(first + 1, depth + 1)]
        across = sum(ends) / 2
        for end, answer in zip(ends, ("no", "yes"), strict=True):
            self.axis.plot([across, end], [-depth, -depth - 1], color=GRAY, linewidth=1, zorder=0)
            self.axis.text((across + end) / 2, -depth - 0.5, answer, ha="center", color=GRAY, fontsize=8)
        self.text(across, depth, self.condition(node), "black")
        return across

    def condition(self, node):
        """A question that the right child answers with yes."""
        at, threshold = self.gate.feature[node], self.gate.threshold[node]
        if at < self.n_numbers:
            return f"{self.names[at]}\n> {threshold:,.1f}?"
        column, _, value = self.names[at].rpartition("_")
        return f"{column}\nis {value}?"

    def text(self, across, depth, text, color):
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": color}
        self.axis.text(across, -depth, text, ha="center", va="center", fontsize=8, bbox=box)


def draw_rules(X, y, names, n_numbers):
    """One tree of eight leaves, and three curves of the tile that all rows share."""
    model = TreeSVC(1, max_leaves=8, tiles="constant", C=0.3, random_state=0).fit(X, y)
    figure = plt.figure(figsize=(11, 6.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.9, 1))
    axis = top.subplots()
    picture = TreePicture(model, names, n_numbers, axis)
    axis.set_xlim(-0.6, picture.n_drawn - 0.4)
    axis.margins(y=0.12)
    top.suptitle("the tree: its leaves are the regions, each with a number for a tile", fontsize=10)
    axes = bottom.subplots(1, len(SHOWN), sharey=True)
    axes[0].set_ylabel("added to the score")
    for axis, column in zip(axes, SHOWN, strict=True):
        at = names.index(column)
        values = np.linspace(*np.percentile(X[:, at], [0.5, 99.5]), 200)
        # The leaves are numbers, so that contributions of columns are those of the global tile alone.
        axis.plot(values, contribution(model, X, at, values), color=BLUE, linewidth=2)
        axis.set_xlabel(column)
    bottom.suptitle("the global tile: what three of its columns add to the score, whatever the region", fontsize=10)
    save(figure, "rules_adult.svg")


def draw_learned(name, records):
    """Accuracy of learned and fixed regions, by tiles and by cost."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    found = {
        key: [mean(r[name] for r in some) for name in ("accuracy", "row_microseconds")]
        for key, some in grouped(records, "model", "tiles").items()
    }
    for model, (color, marker) in STYLE.items():
        tiles = sorted(t for m, t in found if m == model)
        accuracy, cost = zip(*(found[model, t] for t in tiles), strict=True)
        for axis, x in zip(axes, (tiles, cost), strict=True):
            axis.plot(x, accuracy, color=color, marker=marker, label=model)
    for axis, label in zip(axes, ("tiles", "microseconds per row"), strict=True):
        axis.set(xscale="log", xlabel=label)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy, %")
    axes[0].legend()
    figure.suptitle(named(name))
    save(figure, picture(name))


def draw_scaling(part):
    """Seconds per epoch on an accelerator against rows, and what the largest run makes of a time in proportion."""
    rows, seconds = ([r[key] for r in part["records"]] for key in ("rows", "epoch_seconds"))
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axis.plot(
        rows, [seconds[-1] * n / rows[-1] for n in rows], color=GRAY, linestyle="--", label="in proportion to the rows"
    )
    axis.plot(rows, seconds, color=BLUE, marker="o", label=part["machine"]["device"])
    for n, value in zip(rows, seconds, strict=True):
        axis.annotate(f"{value:g} s", (n, value), xytext=(-4, 6), textcoords="offset points", ha="right")
    axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds per epoch")
    axis.set(xlim=(3e4, 1e8), ylim=(1e-3, 3))
    axis.set_xticks([10**k for k in range(5, 9)], ["100,000", "1 million", "10 million", "100 million"])
    axis.set_yticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
    axis.set_title("One epoch of a learned gate: 256 tiles, 50 features")
    axis.grid(alpha=0.3)
    axis.legend(loc="lower right")
    save(figure, picture("gpu"))


if __name__ == "__main__":
    learned = stored("learned")
    for name in curves_of(learned):
        draw_learned(name, learned[f"{name} curve"]["records"])
    draw_scaling(stored("gpu")["scaling"])
    if "SVMOSAIC_DATA" in os.environ:
        (rows, label), _, columns, n_first = encoded_adult()
        draw_curve(rows, label, columns)
        draw_rules(rows, label, columns, n_first)
