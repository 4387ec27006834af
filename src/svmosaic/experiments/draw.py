"""Figures from the store: regions, curves and classified images. Needs matplotlib."""

import numpy as np
from matplotlib.figure import Figure

from svmosaic.experiments.describe import MEASURES
from svmosaic.experiments.measure import unpacked
from svmosaic.experiments.pictures import SIDE, numbers
from svmosaic.experiments.summary import entries
from svmosaic.experiments.tasks import SCENES

POINTS = ("#1f5fa8", "#c8501e")
GROUND = ("#ffffff", "#d6d6d6")
# A method has the same color in all figures.
LINES = {"Linear SVM": "gray", "CSVM": "#1f5fa8", "LSVM-MTL": "#c8501e", "LL-SVM": "#2d8659"}
TITLE, TEXT = 11, 10


def draw(experiment, store) -> Figure:
    """The figure of a curve, a picture or a scene, from its records."""
    return {"curve": _curves, "picture": _panels, "scene": _scene}[experiment.kind](experiment, store)


def _axes(n, columns, width, height):
    n_rows = -(-n // columns)
    figure = Figure(figsize=(width * columns, height * n_rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(n_rows, columns)).ravel()
    for axis in axes[n:]:
        axis.set_axis_off()
    return figure, axes[:n]


def _panels(experiment, store):
    record = next(store.get(cell.key) for cell in experiment.cells())
    panels = record["panels"]
    columns = record.get("columns") or min(3, len(panels))
    side = 3.3 if columns <= 3 else 2.2
    figure, axes = _axes(len(panels), columns, side, side)
    for axis, panel in zip(axes, panels, strict=True):
        (_draw_curve if "x" in panel else _draw_region)(axis, panel)
    return figure


def _draw_curve(axis, panel):
    axis.plot(panel["x"], panel["y"], color=POINTS[0])
    axis.set_title(panel["title"], fontsize=TITLE)
    axis.set_xlabel(panel["axis"], fontsize=TEXT)
    axis.tick_params(labelsize=TEXT)


def _draw_region(axis, panel):
    value = numbers(panel["value"]).reshape(SIDE, SIDE) / 127.5 - 1
    low, high = panel["extent"][:2], panel["extent"][2:]
    options = {"origin": "lower", "extent": panel["extent"], "aspect": "auto"}
    if panel["shades"]:
        axis.imshow(value, cmap="gray", vmin=-1.3, vmax=1.3, **options)
    else:
        axis.contourf(np.linspace(*low, SIDE), np.linspace(*high, SIDE), value, levels=[-2, 0, 2], colors=GROUND)
    if value.min() < 0 < value.max():
        axis.contour(
            np.linspace(*low, SIDE), np.linspace(*high, SIDE), value, levels=[0], linewidths=1,
            colors="gold" if panel["shades"] else "black",
        )  # fmt: skip
    X, y = np.array(panel["points"]), numbers(panel["label"])
    tile = numbers(panel["tile"]) if "tile" in panel else None
    for label, marker in ((0, "o"), (1, "^")):
        here = y == label
        if tile is None:
            axis.scatter(*X[here].T, s=7, marker=marker, color=POINTS[label], linewidths=0)
        else:
            axis.scatter(*X[here].T, c=tile[here] % 20, cmap="tab20", vmin=0, vmax=19, s=8, marker=marker, linewidths=0)
    if "stars" in panel:
        axis.scatter(*np.array(panel["stars"]).T, marker="*", s=80, color="black", edgecolor="white", zorder=3)
    if "rings" in panel:
        axis.scatter(*np.array(panel["rings"]).T, s=22, facecolor="none", edgecolor="limegreen", linewidths=0.6)
    axis.set(xticks=[], yticks=[], xlim=low, ylim=high)
    axis.set_title(f"{panel['title']}\n{panel['accuracy']:.1f} %", fontsize=TEXT)


def _curves(experiment, store):
    found = entries(experiment, store)
    figure, axes = _axes(len(experiment.tasks), min(3, len(experiment.tasks)), 3.6, 2.9)
    for axis, task in zip(axes, experiment.tasks, strict=True):
        for line in dict.fromkeys(name for name, _ in experiment.lines.values()):
            points = sorted(
                (x, entry.mean, entry.deviation or 0.0)
                for method, (name, x) in experiment.lines.items()
                if name == line and (entry := found[method, task.name]).mean is not None
            )
            if not points:
                continue
            x, mean, deviation = map(np.array, zip(*points, strict=True))
            if len(x) == 1 and x[0] == 0:
                axis.axhline(mean[0], color=LINES.get(line), linestyle="--", label=line)
            else:
                axis.errorbar(
                    x, mean, deviation, marker="o", markersize=3, capsize=2, color=LINES.get(line), label=line
                )
        if max(x for _, x in experiment.lines.values()) >= 100:
            axis.set_xscale("log")
        axis.set_title(task.name, fontsize=TITLE)
        axis.set_xlabel(experiment.axis, fontsize=TEXT)
        axis.set_ylabel(MEASURES[experiment.measure][1], fontsize=TEXT)
        axis.tick_params(labelsize=TEXT)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=TEXT)
    return figure


def _scene(experiment, store):
    (task,) = experiment.tasks
    shape = SCENES[task.source]
    records = [(cell.method.name, store.get(cell.key)) for cell in experiment.cells() if cell.repeat == 0]
    maps = [(name, record) for name, record in records if record is not None and "map" in record]
    figure, axes = _axes(len(maps) + 1, min(4, len(maps) + 1), 3.0, 3.2)
    truth = unpacked(maps[0][1]["map"]["truth"], shape)
    shown = [("truth", truth)]
    for name, record in maps:
        shown.append(
            (f"{name}: {record['accuracy']:.1f} % on test pixels", unpacked(record["map"]["predicted"], shape))
        )
    for axis, (title, picture) in zip(axes, shown, strict=True):
        axis.imshow(np.ma.masked_equal(picture, 0), cmap="tab20", vmin=0, vmax=19, interpolation="nearest")
        axis.set_facecolor("black")
        axis.set(xticks=[], yticks=[])
        axis.set_title(title, fontsize=TEXT)
    return figure
