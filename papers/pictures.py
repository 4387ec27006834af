"""Panels of the papers' pictures as data: predicted regions, points and curves, small enough for the store."""

import base64
import zlib
from itertools import islice

import numpy as np
from sklearn.svm import SVC

import svmosaic
from svmosaic.datasets import make_banana, make_circle_in_square, make_two_sines, make_two_spirals, make_xor

SIDE = 80  # points of the grid, each way
MARGIN = 0.06


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


def packed(array) -> str:
    """Small whole numbers as text."""
    return base64.b64encode(zlib.compress(np.asarray(array, dtype=np.uint8).tobytes(), 9)).decode()


def unpacked(text, shape=-1):
    """The array that `packed` was given."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(shape)


def region(title, score, X, y, *, tile=None, stars=None, rings=None, shades=False):
    """A panel: the sign of a score over the plane (or, with `shades`, its size), and points on it.

    `score` gives decision values of rows, and X, y are points of classes 0 and 1. The points may have the `tile` that
    each belongs to most; `stars` are anchors or centers, `rings` support vectors.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    axes = [np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True)]
    value = np.asarray(score(np.column_stack([g.ravel() for g in np.meshgrid(*axes)])), dtype=float)
    at_points = np.asarray(score(X))
    value = np.tanh(value / (np.median(np.abs(at_points)) or 1.0)) if shades else np.where(value > 0, 1, -1)
    panel = {
        "title": title,
        "extent": [round(float(v), 4) for v in (low[0], high[0], low[1], high[1])],
        "value": packed(np.round(127.5 * (value + 1))),
        "shades": shades,
        "points": np.round(X, 3).tolist(),
        "label": packed(y),
        "accuracy": round(100 * float(np.mean((at_points > 0) == (y == 1))), 2),
    }
    if tile is not None:
        panel["tile"] = packed(tile)
    for name, places in (("stars", stars), ("rings", rings)):
        if places is not None:
            panel[name] = np.round(places, 3).tolist()
    return panel


def curve(title, values, *, axis="iteration", begin=0):
    """A panel: one line."""
    x = [begin + k for k in range(len(values))]
    return {"title": title, "axis": axis, "x": x, "y": [round(float(v), 5) for v in values]}


def _tiles(model, X):
    """The tile that each row belongs to most."""
    tile, weight = model.mosaic_.gate.code(X)
    return tile[:, 0] if weight is None else np.take_along_axis(tile, weight.argmax(axis=1)[:, None], 1)[:, 0]


def _mixture_panels(model, X, y, middle):
    """Regions at the first, a middle and the last iteration, and the rise of the objective."""
    album = Album()
    model.set_callbacks(album).fit(X, y)
    last = len(album.iterates)
    panels = []
    for iteration in (1, min(middle, last), last):
        iterate = album.iterates[iteration - 1]
        panels.append(region(f"iteration {iteration}", iterate.decision_function, X, y, tile=_tiles(iterate, X)))
    return panels, curve("log-likelihood", model.objective_)


def circle(n_samples=400, max_iter=30, rounds=100):
    """MLSVM, figure 3: four experts on a circle in a square, compared with a kernel SVM and boosting."""
    X, y = make_circle_in_square(n_samples, random_state=0)
    X_test, y_test = make_circle_in_square(2000, random_state=1)
    kernel = SVC(C=10.0, gamma=2.0).fit(X, y)
    mixture = svmosaic.MixtureSVC(4, C=100.0, nu=0.0, max_iter=max_iter, random_state=0)
    regions, likelihood = _mixture_panels(mixture, X, y, middle=5)
    found = {
        "test_accuracy": {
            "MLSVM, 4 experts": 100 * mixture.score(X_test, y_test),
            "kernel SVM": 100 * kernel.score(X_test, y_test),
        },
        "size": {"MLSVM, 4 experts": mixture.n_experts_, "kernel SVM": int(kernel.n_support_.sum())},
    }
    panels = [
        region("kernel SVM", kernel.decision_function, X, y, rings=kernel.support_vectors_), likelihood, *regions,
    ]  # fmt: skip
    boosted = svmosaic.BoostedLinearSVC(rounds, random_state=0).fit(X, y)
    errors = [100 * float(np.mean((at > 0) != (y_test == 1))) for at in boosted.staged_decision_function(X_test)]
    found["test_accuracy"]["boosted linear SVM"] = 100 - errors[-1]
    found["size"]["boosted linear SVM"] = len(errors)
    panels.append(curve("test error of boosting, %", errors, axis="round", begin=1))
    for k in sorted({1, min(10, len(errors)), len(errors)}):

        def score(rows, k=k):
            return next(islice(boosted.staged_decision_function(rows), k - 1, None))

        panels.append(region(f"boosting, round {k}", score, X, y))
    return {"panels": panels, **found}


def spirals(n_samples=1000, max_iter=50):
    """MLSVM, figure 4: twenty experts on two spirals."""
    X, y = make_two_spirals(n_samples, random_state=0)
    mixture = svmosaic.MixtureSVC(20, C=10.0, nu=0.0, max_iter=max_iter, random_state=0)
    regions, likelihood = _mixture_panels(mixture, X, y, middle=10)
    kernel = SVC(C=10.0, gamma=0.5).fit(X, y)
    linear = svmosaic.LinearSVC(random_state=0).fit(X, y)
    panels = [
        *regions,
        region(f"kernel SVM, {kernel.n_support_.sum()} support vectors", kernel.decision_function, X, y),
        region("linear SVM", linear.decision_function, X, y),
        likelihood,
    ]
    return {"panels": panels, "size": {"MLSVM": mixture.n_experts_, "kernel SVM": int(kernel.n_support_.sum())}}


def xor(n_samples=400):
    """CSVM, figure 1: linear, kernel and clustered SVM on four Gaussians."""
    X, y = make_xor(n_samples, random_state=0)
    linear = svmosaic.LinearSVC(random_state=0).fit(X, y)
    kernel = SVC().fit(X, y)
    # k-means may cut along either diagonal or not at all well; the paper shows a good cut.
    starts = [svmosaic.ClusteredSVC(2, C=10.0, random_state=seed).fit(X, y) for seed in range(10)]
    clustered = min(starts, key=lambda model: model.objective_[0])
    panels = [
        region("linear SVM", linear.decision_function, X, y),
        region("kernel SVM", kernel.decision_function, X, y),
        region("CSVM, two clusters", clustered.decision_function, X, y, tile=_tiles(clustered, X),
               stars=clustered.cluster_centers_),
    ]  # fmt: skip
    return {"panels": panels}


def banana(n_samples=600):
    """LL-SVM, figure 1: anchors and boundary on two bananas."""
    X, y = make_banana(n_samples, noise=0.18, random_state=0)
    linear = svmosaic.LinearSVC(C=10.0, random_state=0).fit(X, y)
    local = svmosaic.LocallyLinearSVC(12, n_neighbors=4, random_state=0).fit(X, y)
    panels = [
        region("linear SVM", linear.decision_function, X, y),
        region("LL-SVM, 12 anchors", local.decision_function, X, y, stars=local.anchors_),
    ]
    return {"panels": panels}


def sines(n_samples=2000, max_iter=30):
    """LSVM-MTL, figure 2: K-means + SVM, the first, fifth and last iteration, and ten tasks in five groups."""
    X, y = make_two_sines(n_samples, random_state=0)
    settings = {
        "groups": "hard", "n_groups": 5, "covariance_floor": 1e-3, "max_iter": max_iter, "random_state": 0,
    }  # fmt: skip
    cells = svmosaic.KMeansSVC(5, C=10.0, random_state=0).fit(X, y)
    clustered = svmosaic.ClusteredSVC(5, C=10.0, random_state=0).fit(X, y)
    five, ten = (svmosaic.MultiTaskMixtureSVC(k, **settings) for k in (5, 10))
    album = Album()
    five.set_callbacks(album).fit(X, y)
    first, fifth = album.iterates[0], album.iterates[min(5, len(album.iterates)) - 1]
    ten.fit(X, y)
    groups = ten.task_groups_[0]
    panels = [
        region("K-means + SVM, 5 cells", cells.decision_function, X, y, tile=_tiles(cells, X)),
        region("CSVM, 5 cells", clustered.decision_function, X, y, tile=_tiles(clustered, X)),
        region("LSVM-MTL, 5 experts, iteration 1", first.decision_function, X, y, tile=_tiles(first, X)),
        region("LSVM-MTL, 5 experts, iteration 5", fifth.decision_function, X, y, tile=_tiles(fifth, X)),
        region("LSVM-MTL, 5 experts, last iteration", five.decision_function, X, y, tile=_tiles(five, X)),
        region("10 experts, colored by group", ten.decision_function, X, y, tile=groups[_tiles(ten, X)]),
        curve("log-likelihood, 5 experts", five.objective_),
    ]
    return {"panels": panels, "groups": groups.tolist(), "size": {"experts": len(groups)}}


def overlapping_classes(n_samples=240, seed=3):
    """Two classes that nobody can separate, for the fusion's figures."""
    rng = np.random.RandomState(seed)
    label = np.arange(n_samples) % 2
    spread = np.array([[0.34, 0.20], [0.22, 0.36]])[label]
    return np.array([[-0.25, -0.1], [0.25, 0.15]])[label] + spread * rng.standard_normal((n_samples, 2)), label


def fusion_parts(gammas=(100, 10, 2)):
    """Fusion, figure 1: one Gaussian per class, and SVMs with narrow to wide kernels."""
    X, y = overlapping_classes()
    mixture = svmosaic.GaussianMixtureClassifier().fit(X, y)
    panels = [
        region("one Gaussian per class", mixture.decision_function, X, y, stars=mixture.means_, shades=True),
    ]
    for gamma in gammas:
        svm = SVC(C=10, gamma=gamma).fit(X, y)
        title = f"SVM, gamma = {gamma}: {len(svm.support_)} support vectors"
        panels.append(region(title, svm.decision_function, X, y, rings=svm.support_vectors_, shades=True))
    return {"panels": panels}


def fusion_blends(gammas=(100, 10, 2), weights=(0.1, 0.3, 0.5, 0.7, 0.9)):
    """Fusion, figure 2: both at several weights of the SVM."""
    X, y = overlapping_classes()
    panels = []
    for gamma in gammas:
        for weight in weights:
            parts = SVC(C=10, gamma=gamma), svmosaic.GaussianMixtureClassifier()
            fused = svmosaic.FusedSVC(*parts, weight=weight).fit(X, y)
            panels.append(region(f"gamma = {gamma}, weight = {weight}", fused.decision_function, X, y, shades=True))
    return {"panels": panels, "columns": len(weights)}


PICTURES = {
    "picture: circle": circle,
    "picture: spirals": spirals,
    "picture: xor": xor,
    "picture: banana": banana,
    "picture: sines": sines,
    "picture: fusion parts": fusion_parts,
    "picture: fusion blends": fusion_blends,
}
