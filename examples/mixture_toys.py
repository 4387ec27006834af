"""The toy problems of the mixture papers
======================================

EM at its first, middle and last iteration: two spirals (20 experts) and a circle in a square (4 experts) with
`MixtureSVC`, two sines (5 and 10 experts) with `MultiTaskMixtureSVC`. In the shaded areas, class 1 is predicted. The
color of a point shows the expert with the largest weight.

    python examples/mixture_toys.py [folder]

writes one PNG per toy, and prints the accuracy at each of the three iterations.
"""

import sys
from pathlib import Path

import numpy as np

from svmosaic import MixtureSVC, MultiTaskMixtureSVC
from svmosaic.datasets import make_circle_in_square, make_two_sines, make_two_spirals

SINES = {"groups": "hard", "n_groups": 5, "covariance_floor": 1e-3, "max_iter": 30, "random_state": 0}
TOYS = {
    "two_spirals": (make_two_spirals, MixtureSVC(20, C=10.0, nu=0.0, max_iter=50, random_state=0)),
    "circle_in_square": (make_circle_in_square, MixtureSVC(4, C=100.0, nu=0.0, random_state=0)),
    "two_sines_5": (make_two_sines, MultiTaskMixtureSVC(5, **SINES)),
    "two_sines_10": (make_two_sines, MultiTaskMixtureSVC(10, **SINES)),
}


class Album:
    """A callback that keeps every iterate of a mixture, ready to predict."""

    def __init__(self):
        self.iterates = []

    def setup(self, estimator, context):
        self.iterates.clear()

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if context.parent is not None:
            self.iterates.append(fitted_estimator)

    def teardown(self, estimator, context):
        pass


def draw(axis, model, X, y, title):
    """The predicted regions, and the points in the color of their expert."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    x1, x2 = (np.linspace(a, b, 300) for a, b in zip(low - margin, high + margin, strict=True))
    grid = np.column_stack([g.ravel() for g in np.meshgrid(x1, x2)])
    side = model.decision_function(grid).reshape(300, 300) > 0
    axis.contourf(x1, x2, side, levels=[-0.5, 0.5, 1.5], colors=["white", "#d9d9d9"])
    expert = model.mosaic_.gate.code(X)[1].argmax(axis=1)
    for label, marker in ((0, "o"), (1, "^")):
        here = y == label
        axis.scatter(*X[here].T, c=expert[here], cmap="tab20", vmin=0, vmax=19, s=9, marker=marker, linewidths=0)
    axis.set(title=title, xticks=[], yticks=[])


def main(folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, model) in TOYS.items():
        X, y = make(random_state=0)
        album = Album()
        model.set_callbacks(album).fit(X, y)
        chosen = [0, (len(album.iterates) - 1) // 2, len(album.iterates) - 1]
        figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
        for axis, k in zip(axes, chosen, strict=True):
            accuracy = album.iterates[k].score(X, y)
            draw(axis, album.iterates[k], X, y, f"iteration {k + 1}: {accuracy:.1%}")
            print(f"{name}: iteration {k + 1}, accuracy {accuracy:.2%}")
        figure.savefig(folder / f"{name}.png", dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("pictures"))
