"""Rows and labels of a task, from its description."""

from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from sklearn import datasets as bundled
from sklearn.preprocessing import StandardScaler, normalize

from papers.data import Dataset, load
from papers.describe import Task
from svmosaic.datasets import make_circle_in_square, make_two_spirals, make_xor

# Sets without a split of their own that are cut once and for all unless a task specifies otherwise.
FIXED_TEST_SHARE = 0.1
HEART_CATEGORIES = (2, 6, 10, 11, 12)  # cp, restecg, slope, ca, thal

# The classes of a task: from labels to new labels, and the rows to keep (None for all).
LABELS = {
    "as they are": lambda y: (y, None),
    "odd or even": lambda y: (y % 2, None),
    "3 or 8": lambda y: (y, np.isin(y, (3, 8))),
    "4 or 9": lambda y: (y, np.isin(y, (4, 9))),
    "below 5": lambda y: ((y < 5).astype(int), None),
    "first half of the alphabet": lambda y: ((y < 13).astype(int), None),
    "cover type 2": lambda y: ((y == 2).astype(int), None),
    "labelled pixels": lambda y: (y, y > 0),
}
# Rows and columns of images whose pixels are the rows of a set.
SCENES = {"indian_pines": (145, 145), "salinas_a": (83, 86), "scene": (30, 40)}
BUNDLED = ("digits", "breast_cancer", "xor", "circle", "spirals", "images", "scene")


def rows_of(task: Task, repeat: int) -> Dataset:
    """Training and test rows of a repeat, prepared."""
    data = read(task.source, task.split, repeat if task.split is not None else 0)
    parts = []
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        y, kept = LABELS[task.labels](np.asarray(y))
        parts += [X, y] if kept is None else [X[kept], y[kept]]
    X, y, X_test, y_test = parts
    if task.train_rows is not None:
        # Drawn anew for each repeat from the training part: test rows are never among them.
        chosen = draw(y, task.train_rows, seed=repeat)
        X, y = X[chosen], y[chosen]
    if task.test_rows is not None and task.test_rows < len(y_test):
        kept = np.random.RandomState(12345).permutation(len(y_test))[: task.test_rows]
        X_test, y_test = X_test[kept], y_test[kept]
    X, X_test = prepared(task.prepare, X, X_test)
    return Dataset(X, y, X_test, y_test)


def draw(y, n, seed):
    """Random indices of n rows, at least two of each class if possible."""
    if n >= len(y):
        return np.arange(len(y))
    order = np.random.RandomState(seed).permutation(len(y))
    chosen, rest = list(order[:n]), order[n:]
    for c in np.unique(y):
        missing = 2 - int((y[chosen] == c).sum())
        if missing > 0:
            chosen += list(rest[y[rest] == c][:missing])
    return np.sort(np.array(chosen))


def prepared(how, X, X_test):
    """Rows of unit norm, or features of unit variance by the training rows."""
    if how == "unit-norm":
        return normalize(X), normalize(X_test)
    if how == "standardise":
        scaler = StandardScaler().fit(X)
        return scaler.transform(X), scaler.transform(X_test)
    return X, X_test


@lru_cache(maxsize=4)
def read(source, split, seed) -> Dataset:
    """A set as it is, cut into two parts.

    Sets without a split of their own are put into the order `numpy.random.RandomState(seed).permutation` gives; its
    first places, a share of `split`, are for testing.
    """
    if source.split(" ")[0] not in BUNDLED:
        data = load(source, test_size=FIXED_TEST_SHARE if split is None else split, random_state=seed)
        if source == "heart":
            n = len(data.y_train)
            X = one_hot_heart(np.vstack([data.X_train, data.X_test]))
            data = Dataset(X[:n], data.y_train, X[n:], data.y_test)
        return data
    if source == "digits":
        X, y = bundled.load_digits(return_X_y=True)
    elif source == "breast_cancer":
        X, y = bundled.load_breast_cancer(return_X_y=True)
    elif source.startswith("images"):
        X, y = image_set(source.removeprefix("images").strip())
    elif source == "scene":
        X, y = generated_scene()
    else:
        make = {"xor": make_xor, "circle": make_circle_in_square, "spirals": make_two_spirals}[source]
        X, y = make(600, random_state=0)
    order = np.random.RandomState(seed).permutation(len(y))
    n_test = round((0.3 if split is None else split) * len(y))
    test, train = order[:n_test], order[n_test:]
    X = np.ascontiguousarray(X, dtype=np.float32)
    return Dataset(X[train], y[train], X[test], y[test])


def one_hot_heart(X):
    """The categories of the heart set as columns of their own: 25 features, as in the fusion paper."""
    plain = [j for j in range(X.shape[1]) if j not in HEART_CATEGORIES]
    columns = [X[:, plain]] + [(X[:, [j]] == np.unique(X[:, j])).astype(np.float32) for j in HEART_CATEGORIES]
    return np.hstack(columns)


def generated_scene(n_bands=10):
    """Pixels of an image with four kinds of ground, row by row; 0 for unlabeled pixels."""
    height, width = SCENES["scene"]
    down, right = np.mgrid[:height, :width]
    kind = 1 + 2 * (down > height // 2 + 3 * np.sin(right / 4)) + (right > width // 2)
    kind[(down % 15 == 0) | (right % 20 == 0)] = 0
    rng = np.random.RandomState(0)
    color = rng.uniform(0, 1, (5, n_bands))
    return (color[kind] + 0.2 * rng.standard_normal((height, width, n_bands))).reshape(-1, n_bands), kind.ravel()


SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm")
SIDE = 128  # pictures are scaled to this many pixels per side


@cache
def image_set(place=""):
    """Features and labels for LL-SVM's table 3, from one of three places.

    scikit-learn's small digits (the default), a folder with one subfolder of pictures per class (Caltech-101 unpacked
    is one), or a file .npz of features with arrays X and y. The features of pictures are gradient histograms; the
    paper's other features (color, self-similarity) are not computed.
    """
    if not place:
        digits = bundled.load_digits()
        return gradient_histograms(digits.images), digits.target
    path = Path(place)
    if path.suffix == ".npz" and path.is_file():
        with np.load(path, allow_pickle=False) as archive:
            missing = {"X", "y"} - set(archive.files)
            if missing:
                raise ValueError(f"{path} has no array {' and '.join(sorted(missing))}")
            return archive["X"], archive["y"]
    if not path.is_dir():
        raise FileNotFoundError(f"{place!r} is neither a folder of images nor a file .npz of features")
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs Pillow: pip install pillow") from error
    X, y = [], []
    for folder in sorted(entry for entry in path.iterdir() if entry.is_dir()):
        for file in sorted(folder.iterdir()):
            if file.suffix.lower() in SUFFIXES:
                with Image.open(file) as picture:
                    pixels = np.asarray(picture.convert("L").resize((SIDE, SIDE)))
                X.append(gradient_histograms(pixels[None])[0])
                y.append(folder.name)
    if len(set(y)) < 2:
        raise ValueError(f"{path} has no two subfolders with images ({', '.join(SUFFIXES)}): one per class is needed")
    return np.array(X), np.array(y)


def gradient_histograms(images, pyramid=(1, 2, 4), n_orientations=9):
    """Histograms of gradient directions, weighted by length, in the cells of a pyramid of grids.

    After Bosch, Zisserman and Munoz (CIVR 2007), whose PHOW histograms the paper used. `pyramid` has the cells per side
    of each level; the bins cover half a turn, so that a light edge on dark ground counts as a dark one on light ground.
    Returns float32 of shape (n, n_orientations * sum of squared `pyramid`); each level of an image sums to one, or is
    zero where the image has no edge.
    """
    images = np.asarray(images, dtype=np.float32)
    down, right = np.gradient(images, axis=(1, 2))
    length = np.hypot(down, right)
    turn = np.arctan2(down, right) / np.pi % 1.0
    bins = np.minimum((turn * n_orientations).astype(int), n_orientations - 1)
    n, height, width = images.shape
    levels = []
    for side in pyramid:
        row = np.arange(height) * side // height
        column = np.arange(width) * side // width
        cell = row[:, None] * side + column[None, :]
        place = (np.arange(n)[:, None, None] * side**2 + cell) * n_orientations + bins
        counts = np.bincount(place.ravel(), length.ravel(), n * side**2 * n_orientations).reshape(n, -1)
        total = counts.sum(axis=1, keepdims=True)
        levels.append(counts / np.where(total > 0, total, 1.0))
    return np.hstack(levels).astype(np.float32)
