"""
SVM, Gaussian mixture, and the ground between them
==================================================

Figures 1 and 2 of Deselaers, Heigold and Ney (ICPR 2008): one Gaussian per class, three SVMs of which the first has
learned the noise, and their fusion, which smooths the boundary as the weight of the SVM falls.

Needs the extra ``plot``. Run it with a folder to write the pictures to:

    python examples/fusion_figures.py docs/images
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from svmosaic import FusedSVC, GaussianMixtureClassifier
from svmosaic.experiments.pictures import overlapping_classes

GAMMAS = (100, 10, 2)
WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
EDGE = 1.15


# %%
# Two classes that overlap: nobody can separate them, and an SVM with a narrow kernel tries.
def shade(axis, model, X, y):
    """Dark for one class and light for the other, the boundary in yellow."""
    line = np.linspace(-EDGE, EDGE, 200)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    values = model.decision_function(grid).reshape(200, 200)
    unit = np.median(np.abs(model.decision_function(X)))
    axis.imshow(np.tanh(values / unit), origin="lower", extent=2 * (-EDGE, EDGE), cmap="gray", vmin=-1.3, vmax=1.3)
    axis.contour(line, line, values, levels=[0], colors="gold", linewidths=1.5)
    axis.plot(*X[y == 0].T, "o", color="tab:blue", markersize=2)
    axis.plot(*X[y == 1].T, "o", color="tab:red", markersize=2)
    axis.set(xticks=[], yticks=[], xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE))


def figure_1(plt, X, y):
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    mixture = GaussianMixtureClassifier().fit(X, y)
    shade(axes[0], mixture, X, y)
    angle = np.linspace(0, 2 * np.pi, 100)
    ellipse = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(mixture.covariances_[0])
    for mean, color in zip(mixture.means_, ("tab:blue", "tab:red"), strict=True):
        axes[0].plot(*(mean + ellipse).T, color=color)
        axes[0].plot(*mean, "*", color=color, markeredgecolor="white", markersize=12)
    axes[0].set_title("one Gaussian per class")
    for axis, gamma in zip(axes[1:], GAMMAS, strict=True):
        svm = SVC(C=10, gamma=gamma).fit(X, y)
        shade(axis, svm, X, y)
        axis.plot(*svm.support_vectors_.T, "o", markersize=4, markerfacecolor="none", markeredgecolor="limegreen",
                  markeredgewidth=0.6)  # fmt: skip
        axis.set_title(f"SVM, gamma = {gamma}: {len(svm.support_)} of {len(X)} support vectors", fontsize=8)
    return figure


def figure_2(plt, X, y):
    figure, axes = plt.subplots(3, len(WEIGHTS), figsize=(12, 7.4), layout="constrained")
    for line, gamma in zip(axes, GAMMAS, strict=True):
        for axis, weight in zip(line, WEIGHTS, strict=True):
            fused = FusedSVC(SVC(C=10, gamma=gamma), GaussianMixtureClassifier(), weight=weight).fit(X, y)
            shade(axis, fused, X, y)
            axis.set_title(f"gamma = {gamma}, weight = {weight}", fontsize=9)
    return figure


def main(folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    X, y = overlapping_classes()
    for draw in (figure_1, figure_2):
        path = folder / f"fusion_{draw.__name__}.png"
        draw(plt, X, y).savefig(path, dpi=72)
        print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
