"""Write the results of README.md from the stored runs, and draw its picture.

python benchmarks/readme.py
"""

from statistics import median

from auto_data import PARTS
from pages import (
    HERE,
    MEASURES,
    OURS,
    SYSTEMS,
    boosting,
    lowest,
    machine_of,
    mean_ranks,
    names_with,
    rows,
    runs_of,
    scores,
    stored,
    systems_of,
    table,
    title,
)

README = HERE.parent / "README.md"
PICTURE = HERE.parent / "docs" / "images" / "tradeoff.svg"
RESULTS = ("<!-- results: python benchmarks/readme.py -->", "<!-- end of results -->")
CAPTION = ("<!-- picture: python benchmarks/readme.py -->", "<!-- end of picture -->")
*SHOWN, FOREST = SYSTEMS  # the forest was run on the tables only; docs/choosing.md has it
GROUPS = {"tables": "tables", "papers": "data sets of the papers"}
# Our models of the picture: NeighborsSVC is judged on 200 rows only, and others would crowd it.
DRAWN = ("LinearSVC", "ClusteredSVC", "LocallyLinearSVC", "LearnedGateSVC", "MixtureSVC")


def tables() -> str:
    """The scores of some sets, what all of them cost, and how both were measured."""
    parts = stored("auto")
    found = {name: parts[name] for name in PARTS if name in parts}
    runs = runs_of(found.values())
    systems = systems_of(runs, SHOWN)
    some = sample(runs)
    shown = [[title(name, runs[name]), rows(runs[name]), *scores(runs[name], systems)] for name in some]
    machines = "; ".join(dict.fromkeys(machine_of(part) for part in found.values()))
    return "\n\n".join(
        [
            table(["data set", "rows", *systems], shown),
            f"Test accuracy in %, or average precision if the name says so; the best is in bold, “–” was not run. "
            f"{_selection(some, runs)}{_wins(runs, systems)}",
            *_summary(found, runs, systems),
            f"All systems of a row have the same training rows and the same number of threads ({machines}). "
            f"`MosaicClassifier` searches for {_budgets(runs)}, on training rows alone. The RBF SVC is tuned on at "
            "most 5,000 training rows and fitted to at most 50,000. LightGBM, CatBoost and scikit-learn's "
            f"`LinearSVC` have their default settings. {boosting()}. "
            "[Settings, and all numbers](docs/choosing.md#compared-with-others).",
        ]
    )


def sample(runs) -> list:
    """Every third set by its number of rows, from the smallest, and the largest: names, in that order."""
    names = sorted(runs, key=lambda name: runs[name][OURS]["train_rows"])
    return names[::3] + ([] if len(names) % 3 == 1 else names[-1:])


def _selection(some, runs):
    if len(some) == len(runs):
        return ""
    return (
        f"The table shows every third of the {len(runs)} data sets in order of their number of rows, and the largest "
        "([all of them](docs/choosing.md#compared-with-others)). "
    )


def _wins(runs, systems):
    best = {name: max(round(run["score"], 2) for s, run in here.items() if s in systems) for name, here in runs.items()}
    ours = [name for name, here in runs.items() if round(here[OURS]["score"], 2) == best[name]]
    common = [name for name, here in runs.items() if all(system in here for system in systems)]
    others = len(runs) - len(common)
    wins = f"{len(set(ours) & set(common))} of {len(common)}" if common else f"{len(ours)} of {len(runs)}"
    if common and others:  # where some were not run, it is easier to be the best
        wins += (
            f" data sets that all of these systems were run on, and on {len(set(ours) - set(common))} of the other "
            f"{others}, on which it has fewer competitors"
        )
    forest = [round(here[FOREST]["score"], 2) > best[name] for name, here in runs.items() if FOREST in here]
    more = (
        f" A random forest, which was run on {len(forest)} of them, beats all of these on {sum(forest)}."
        if forest
        else ""
    )
    return f"`MosaicClassifier` is the best, or shares first place, on {wins}.{more}"


def _summary(parts, runs, systems):
    """A line of ranks for each group of sets, and medians of what the sets that all systems have cost."""
    common = {name: here for name, here in runs.items() if all(system in here for system in systems)}
    lines = []
    for part, words in GROUPS.items():
        names = names_with(runs, part, systems) if part in parts else []
        if len(names) > 1:
            lines.append([f"mean rank, {len(names)} {words}", *lowest(mean_ranks(runs, names, systems))])
    if not lines:
        return
    for key, (words, show) in MEASURES.items():
        medians = [median(here[system][key] for here in common.values()) for system in systems]
        lines.append([words[0].lower() + words[1:], *map(show, medians)])
    yield f"Mean ranks (1 is best), and medians over the {len(common)} data sets that all of these systems were run on:"
    yield table(["", *systems], lines)


def _budgets(runs):
    """The seconds that most sets get, then the others."""
    seconds = {name: f"{here[OURS]['budget']:g}" for name, here in runs.items()}
    usual, *others = sorted(set(seconds.values()), key=list(seconds.values()).count, reverse=True)
    more = [f"{s} on {' and '.join(name for name in seconds if seconds[name] == s)}" for s in others]
    return f"{usual} seconds" + (f" ({'; '.join(more)})" if more else "")


def caption() -> str:
    """What the picture shows, with its main numbers."""
    shown = []
    for name, records in stored("predict")["cost"].items():
        by = {record["model"]: _reached(record) for record in records}
        ours, svc, intel = (by[key] for key in ("LearnedGateSVC", "scikit-learn SVC", "scikit-learn-intelex SVC"))
        shown.append(f"on {name}, `LearnedGateSVC` reaches {ours}, and `SVC` {svc} (Intel's version: {intel})")
    return (
        "Kernel SVMs are the most accurate models shown, and expensive. Mosaics of linear SVMs fill the gap between "
        f"them and a linear SVM: {'; '.join(shown)}, per row in a batch. No model in this picture is tuned ([settings "
        "and numbers](docs/prediction.md#how-it-was-measured))."
    )


def _reached(record):
    microseconds = float(format(record["batch_us"], ".2g"))
    return f"{100 * record['accuracy']:.2f} % at {microseconds:,g} µs"


def current(marks=RESULTS) -> str:
    """What stands between two marks in README.md now."""
    begin, end = marks
    return README.read_text().split(begin)[1].split(end)[0].strip()


def written(text, marks, found) -> str:
    """The text with something new between two marks."""
    begin, end = marks
    return f"{text.split(begin)[0]}{begin}\n\n{found}\n\n{end}{text.split(end)[1]}"


def panels() -> dict:
    """Accuracy and cost of the picture's models, by set."""
    report = stored("predict")
    return {
        f"{name}, {report['train_rows'][name]:,} training rows": [
            r for r in records if r["model"] in DRAWN or not (r.get("ours") or r["model"].startswith("SVC by"))
        ]
        for name, records in report["cost"].items()
    }


def draw():
    """Draw accuracy against cost: a point per model, and the staircase of those that no other beats in both."""
    import matplotlib as mpl
    import numpy as np
    from adjustText import adjust_text
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, PercentFormatter

    mpl.rcParams.update({"svg.hashsalt": "tradeoff", "svg.fonttype": "none"})  # the same bytes again; text as text
    shown = panels()
    figure = Figure(figsize=(5.2 * len(shown), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    # Okabe and Ito's blue and vermilion, which readers of all kinds of color vision can tell apart; shapes differ too.
    styles = {True: ("svmosaic", "#0072B2", "o"), False: ("others", "#D55E00", "s")}
    to_adjust = []
    for ax, (name, records) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True):
        records = sorted(records, key=lambda record: (record["batch_us"], -record["accuracy"]))
        x, y, ours = (np.array([r.get(key, False) for r in records]) for key in ("batch_us", "accuracy", "ours"))
        front = [k for k in range(len(y)) if y[k] > max(y[:k], default=-1)]
        low, high = np.log10(x.min()), np.log10(x.max())
        right = 10 ** (high + 0.25 * (high - low))
        ax.set(xscale="log", title=name, xlabel="microseconds per row, in a batch, one thread", ylabel="accuracy")
        ax.set_xlim(10 ** (low - 0.15 * (high - low)), right)
        ax.margins(y=0.14)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        # Up to each model of the front, then right to the cost of the next.
        stairs = np.repeat(x[front], 2)[1:], np.repeat(y[front], 2)[:-1]
        stairs = np.append(stairs[0], right), np.append(stairs[1], y[front[-1]])
        ax.plot(*stairs, color="#444444", linewidth=1.2, linestyle="--", zorder=1, label="Pareto front")
        for group, (label, color, marker) in styles.items():
            dots = x[ours == group], y[ours == group]
            ax.scatter(*dots, s=42, color=color, marker=marker, edgecolor="white", linewidth=0.8, zorder=3, label=label)
        names = [
            ax.text(
                x[k], y[k], record["model"], fontsize=8.5, zorder=4, fontweight="bold" if k in front else "normal",
                color=styles[True][1] if ours[k] else "black",
            )
            for k, record in enumerate(records)
        ]  # fmt: skip
        # Names keep off the stairs too, which stand as points.
        steps = np.arange(0, len(stairs[0]) - 1, 0.04)
        along = [np.interp(steps, np.arange(len(stairs[0])), values) for values in (np.log10(stairs[0]), stairs[1])]
        to_adjust.append((names, [*x, *10 ** along[0]], [*y, *along[1]], x, y, ax))
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    figure.draw_without_rendering()  # settles the layout, on which the places of the names depend
    for names, x, y, target_x, target_y, ax in to_adjust:
        adjust_text(
            names, x, y, target_x=list(target_x), target_y=list(target_y), ax=ax, iter_lim=1000,
            expand=(1.1, 1.4), force_static=(0.15, 0.3), force_text=(0.2, 0.4),
            arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkB": 3},
        )  # fmt: skip
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    README.write_text(written(written(README.read_text(), CAPTION, caption()), RESULTS, tables()))
    draw()
    print(f"written: {README.name}, {PICTURE.name}")
