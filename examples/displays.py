"""Displays of fitted models
=========================

Cells of two models on two bananas, and the convergence of EM on two spirals.

    python examples/displays.py [--out FOLDER]

Needs matplotlib (`pip install matplotlib`). Some figures in docs/images are made by this script.
"""

import argparse
from pathlib import Path

from svmosaic import ClusteredSVC, LocallyLinearSVC, MixtureSVC
from svmosaic.datasets import make_banana, make_two_spirals
from svmosaic.explain import region_report
from svmosaic.explain.displays import ConvergenceDisplay, RegionDisplay


# %%
# Regions: the boundary is black, the cells are dotted, and a star is the anchor of a tile.
def regions(out):
    import matplotlib.pyplot as plt

    X, y = make_banana(500, noise=0.18, random_state=0)
    models = {
        "ClusteredSVC: hard cells": ClusteredSVC(n_clusters=8, random_state=0),
        "LocallyLinearSVC: soft between anchors": LocallyLinearSVC(8, n_neighbors=3, random_state=0),
    }
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.4), sharey=True, layout="constrained")
    for axis, (name, model) in zip(axes, models.items(), strict=True):
        last = axis is axes[-1]
        RegionDisplay.from_estimator(model.fit(X, y), X, y, ax=axis, legend=last, class_names=["left", "right"])
        axis.set_title(f"{name}, accuracy {100 * model.score(X, y):.1f} %")
    axes[1].set_ylabel("")
    figure.savefig(out / "regions.png", dpi=180)


# %%
# Convergence: the objective of EM rises, and experts with too few rows are removed.
def convergence(out):
    X, y = make_two_spirals(1000, random_state=0)
    model = MixtureSVC(n_experts=40, nu=13.0, random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    display.ax_.set_title("MixtureSVC on two spirals")
    display.figure_.savefig(out / "convergence.svg", metadata={"Date": None})


# %%
# The region report: one page, which a browser opens from the file.
def report(out):
    X, y = make_banana(500, noise=0.18, random_state=0)
    model = LocallyLinearSVC(8, n_neighbors=3, random_state=0).fit(X, y)
    page = region_report(model, X, y, class_names=["left", "right"], title="Two bananas")
    (out / "regions.html").write_text(page, encoding="utf-8")


def main():
    import matplotlib

    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description="Displays of fitted models")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for draw in (regions, convergence, report):
        draw(out)
    print(f"wrote {', '.join(sorted(p.name for p in out.glob('*.*')))} in {out}")


if __name__ == "__main__":
    main()
