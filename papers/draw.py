"""Figures from the store: regions, curves and classified images. Needs matplotlib."""

import numpy as np
from matplotlib.figure import Figure

from papers.describe import MEASURES
from papers.pictures import SIDE, unpacked
from papers.report import entries
from papers.tasks import SCENES

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
        if "x" not in panel:
            _draw_region(axis, panel)
            continue
        axis.plot(panel["x"], panel["y"], color=POINTS[0])
        axis.set_title(panel["title"], fontsize=TITLE)
        axis.set_xlabel(panel["axis"], fontsize=TEXT)
        axis.tick_params(labelsize=TEXT)
    return figure


def _draw_region(axis, panel):
    value = unpacked(panel["value"], (SIDE, SIDE)) / 127.5 - 1
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
    X, y = np.array(panel["points"]), unpacked(panel["label"])
    tile = unpacked(panel["tile"]) if "tile" in panel else None
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
    figure, axes = _axes(len(experiment.tasks), min(3, len(experiment.tasks)), 3.8, 3.3)
    for axis, task in zip(axes, experiment.tasks, strict=True):
        for line in dict.fromkeys(name for name, _ in experiment.lines.values()):
            points = [(x, found[method, task.name]) for method, (name, x) in experiment.lines.items() if name == line]
            ours = [(x, e.mean, e.deviation or 0.0) for x, e in points if e.mean is not None]
            printed = [(x, e.published, e.published_deviation or 0.0) for x, e in points if e.published is not None]
            dots = {"marker": "o", "markersize": 3, "capsize": 2}
            stars = {"marker": "*", "markersize": 11, "capsize": 2, "markerfacecolor": "white", "linestyle": "none"}
            for shown, across, marks, suffix in ((ours, "--", dots, ""), (printed, ":", stars, ", published")):
                if shown:
                    x, mean, deviation = map(np.array, zip(*sorted(shown), strict=True))
                    style = {"color": LINES.get(line), "label": line + suffix}
                    if len(x) == 1 and x[0] == 0:  # a model that has no place on the axis: a line across
                        axis.axhline(mean[0], linestyle=across, **style)
                    else:
                        axis.errorbar(x, mean, deviation, **style, **marks)
        if max(x for _, x in experiment.lines.values()) >= 100:
            axis.set_xscale("log")
        axis.set_title(task.name, fontsize=TITLE)
        axis.set_xlabel(experiment.axis, fontsize=TEXT)
        axis.set_ylabel(MEASURES[experiment.measure][1], fontsize=TEXT)
        axis.tick_params(labelsize=TEXT)
    # One legend for all panels, where it hides no point.
    shown = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if shown:
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=4, fontsize=TEXT)
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
