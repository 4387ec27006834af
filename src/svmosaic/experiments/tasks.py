"""From the description of a task to its rows and labels."""

from functools import lru_cache

import numpy as np
from sklearn import datasets as bundled
from sklearn.preprocessing import StandardScaler, normalize

from svmosaic.datasets import Dataset, load, make_circle_in_square, make_two_spirals, make_xor
from svmosaic.experiments.describe import Task
from svmosaic.experiments.images import image_set

# Sets without a split of their own that are cut once and for all unless a task specifies otherwise.
FIXED_TEST_SHARE = 0.1
HEART_CATEGORIES = (2, 6, 10, 11, 12)  # cp, restecg, slope, ca, thal

# The classes of a task: from labels to new labels, None for rows to leave out.
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


def one_hot_heart(X):
    """The categories of the heart set as columns of their own: 25 features, as in the fusion paper."""
    plain = [j for j in range(X.shape[1]) if j not in HEART_CATEGORIES]
    columns = [X[:, plain]] + [(X[:, [j]] == np.unique(X[:, j])).astype(np.float32) for j in HEART_CATEGORIES]
    return np.hstack(columns)


def rows_of(task: Task, repeat: int) -> Dataset:
    """Training and test rows of a repeat, prepared."""
    data = _labelled(task.source, task.labels, task.split, repeat if task.split is not None else 0)
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
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


def _labelled(source, labels, split, seed) -> Dataset:
    """A set with the labels of a task, cut into two parts."""
    data = read(source, split, seed)
    parts = []
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        y, kept = LABELS[labels](np.asarray(y))
        parts += [X, y] if kept is None else [X[kept], y[kept]]
    return Dataset(*parts)


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
    X, y = _generate(source)
    order = np.random.RandomState(seed).permutation(len(y))
    n_test = round((0.3 if split is None else split) * len(y))
    test, train = order[:n_test], order[n_test:]
    X = np.ascontiguousarray(X, dtype=np.float32)
    return Dataset(X[train], y[train], X[test], y[test])


def _generate(source):
    if source == "digits":
        return bundled.load_digits(return_X_y=True)
    if source == "breast_cancer":
        return bundled.load_breast_cancer(return_X_y=True)
    if source.startswith("images"):
        return image_set(source.removeprefix("images").strip())
    if source == "scene":
        return generated_scene()
    return {"xor": make_xor, "circle": make_circle_in_square, "spirals": make_two_spirals}[source](600, random_state=0)


def generated_scene(n_bands=10):
    """Pixels of an image with four kinds of ground, row by row; 0 for unlabeled pixels."""
    height, width = SCENES["scene"]
    down, right = np.mgrid[:height, :width]
    kind = 1 + 2 * (down > height // 2 + 3 * np.sin(right / 4)) + (right > width // 2)
    kind[(down % 15 == 0) | (right % 20 == 0)] = 0
    rng = np.random.RandomState(0)
    colour = rng.uniform(0, 1, (5, n_bands))
    return (colour[kind] + 0.2 * rng.standard_normal((height, width, n_bands))).reshape(-1, n_bands), kind.ravel()
