"""The figures of the LL-SVM paper
================================

Figure 1: a boundary that bends between anchors, on two bananas. Figure 2: the error against the number of anchors, on
MNIST if the folder named by SVMOSAIC_DATA contains it, otherwise on scikit-learn's small digits. With one anchor, the
model is the linear SVM.

    python examples/local_figures.py [--out FOLDER] [--rows N]

Needs matplotlib (`pip install matplotlib`).
"""

import argparse
import os
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from svmosaic import LinearSVC, LocallyLinearSVC
from svmosaic.datasets import make_banana


# %%
# Figure 1: anchors, boundary and margins.
def figure_banana(path):
    import matplotlib.pyplot as plt

    X, y = make_banana(600, noise=0.18, random_state=0)
    models = {
        "linear SVM": LinearSVC(C=10.0, random_state=0),
        "LL-SVM, 12 anchors": LocallyLinearSVC(12, n_neighbors=4, C=10.0, random_state=0),
    }
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.meshgrid(np.linspace(low[0], high[0], 400), np.linspace(low[1], high[1], 400))
    points = np.column_stack([axis.ravel() for axis in grid])
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, constrained_layout=True)
    for axis, (name, model) in zip(axes, models.items(), strict=True):
        score = model.fit(X, y).decision_function(points).reshape(grid[0].shape)
        axis.contourf(*grid, score, levels=[-np.inf, 0, np.inf], colors=["#dbe9f6", "#fde3cf"])
        axis.contour(
            *grid, score, levels=[-1, 0, 1], colors="k", linestyles=["--", "-", "--"], linewidths=[0.8, 2, 0.8]
        )
        axis.scatter(*X[y == 0].T, s=8, color="#1f77b4", label="class 0")
        axis.scatter(*X[y == 1].T, s=8, color="#d95f02", label="class 1")
        if hasattr(model, "anchors_"):
            axis.scatter(*model.anchors_.T, s=90, marker="*", color="k", edgecolor="w", label="anchors", zorder=3)
        axis.set(title=f"{name}: {1 - model.score(X, y):.1%} training error", aspect="equal")
    axes[1].legend(loc="lower left")
    figure.savefig(path, dpi=120)
    plt.close(figure)


# %%
# Figure 2: error against the number of anchors.
def figure_anchors(path, n_rows):
    import matplotlib.pyplot as plt

    file = Path(os.environ.get("SVMOSAIC_DATA", "")) / "mnist.npz"
    if file.exists():
        name = "MNIST"
        with np.load(file) as data:
            X, y, Z, z = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        rows = np.random.RandomState(0).permutation(len(y))[:n_rows]
        X, y = X[rows], y[rows]
    else:
        name = "digits"
        digits = load_digits()
        X, Z, y, z = train_test_split(digits.data, digits.target, test_size=0.4, stratify=digits.target, random_state=0)
    X, Z = normalize(np.float32(X)), normalize(np.float32(Z))
    numbers = [m for m in (1, 2, 5, 10, 20, 50, 100, 200) if m <= len(y) // 10]
    errors = []
    for m in numbers:
        start = perf_counter()
        model = LocallyLinearSVC(m, C=30.0, random_state=0, n_jobs=-1).fit(X, y)
        errors.append(1 - model.score(Z, z))
        print(
            f"{name}, {len(y)} rows, {m:>4} anchors: error {errors[-1]:.2%}, fit {perf_counter() - start:.1f} s",
            flush=True,
        )
    figure, axis = plt.subplots(figsize=(6, 4), constrained_layout=True)
    axis.plot(numbers, 100 * np.array(errors), "o-")
    axis.set(xscale="log", yscale="log", xlabel="number of anchors", ylabel="test error, %")
    axis.set_title(f"LL-SVM on {name} ({len(y)} training rows)")
    axis.set_xticks(numbers, numbers)
    ticks = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12]
    axis.set_yticks(ticks, ticks)
    axis.minorticks_off()
    axis.set_ylim(80 * min(errors), 120 * max(errors))
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    parser.add_argument("--rows", type=int, default=60_000, help="training rows of MNIST to use")
    arguments = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, draw in (("figure1_banana.png", lambda path: figure_banana(path)),
                       ("figure2_anchors.png", lambda path: figure_anchors(path, arguments.rows))):  # fmt: skip
        draw(arguments.out / name)
        print(f"wrote {arguments.out / name}")


if __name__ == "__main__":
    main()
