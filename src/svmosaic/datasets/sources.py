"""Where a set comes from.

Each source has `where`, a line that says so; `urls`, the files it downloads itself; `read(cache, progress)`, which
gives arrays.

The arrays are those of a .npz file: X_train, y_train, X_test, y_test, or X, y without an official split, and `shape` of
an image. Nothing here is run from what was downloaded: text, numbers, and MATLAB's arrays.
"""

import bz2
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from svmosaic.datasets.download import fetch

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
EHU = "https://www.ehu.eus/ccwintco/uploads"


@dataclass(frozen=True)
class Libsvm:
    """Files in LIBSVM's text format, plain or .bz2.

    Attributes
    ----------
    train, test : tuple of str
        URLs; without a test file the rows are X and y.
    n_features : int
    labels : mapping from the file's labels to ours, optional
    unscale : (a, b), optional
        The whole numbers that were scaled: round((x + a) b).
    checksums : mapping from URL to "md5:..." or "sha256:..."
    """

    train: tuple[str, ...]
    n_features: int
    test: tuple[str, ...] = ()
    labels: Mapping[int, int] | None = None
    unscale: tuple[float, float] | None = None
    checksums: Mapping[str, str] | None = None

    @property
    def where(self):
        return self.train[0].rsplit("/", 1)[0]

    @property
    def urls(self):
        return self.train + self.test

    def read(self, cache, progress=None):
        parts = {"train": self._part(self.train, cache, progress)}
        if not self.test:
            return dict(zip(("X", "y"), parts["train"], strict=True))
        parts["test"] = self._part(self.test, cache, progress)
        return {f"{key}_{name}": value for name, part in parts.items() for key, value in zip("Xy", part, strict=True)}

    def _part(self, urls, cache, progress):
        read = [self._file(url, cache, progress) for url in urls]
        return np.concatenate([X for X, _ in read]), np.concatenate([y for _, y in read])

    def _file(self, url, cache, progress):
        from sklearn.datasets import load_svmlight_file

        path = fetch(url, download_path(cache, url), checksum=(self.checksums or {}).get(url), progress=progress)
        with (bz2.open if path.suffix == ".bz2" else open)(path, "rb") as file:
            X, y = load_svmlight_file(file, n_features=self.n_features, zero_based=False)
        X = X.toarray()
        if self.unscale is not None:
            X = np.round((X + self.unscale[0]) * self.unscale[1])
        return X.astype(np.float32), _translate(y.astype(np.int64), self.labels, url)


@dataclass(frozen=True)
class Text:
    """Rows of numbers in text, the label in the first or the last column.

    Attributes
    ----------
    train, test : str
        URLs; without `test` the rows after the first `n_train` are for testing.
    delimiter : str or None
        None is white space.
    label_column : {0, -1}
    labels : mapping from the text of a label to its number, optional
    """

    train: str
    test: str | None = None
    delimiter: str | None = None
    label_column: int = -1
    labels: Mapping[str, int] | None = None
    n_train: int | None = None

    @property
    def where(self):
        return self.train.rsplit("/", 1)[0]

    @property
    def urls(self):
        return (self.train,) if self.test is None else (self.train, self.test)

    def read(self, cache, progress=None):
        X, y = self._file(self.train, cache, progress)
        if self.test is None:
            X_test, y_test, X, y = X[self.n_train :], y[self.n_train :], X[: self.n_train], y[: self.n_train]
        else:
            X_test, y_test = self._file(self.test, cache, progress)
        return {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}

    def _file(self, url, cache, progress):
        path = fetch(url, download_path(cache, url), progress=progress)
        cells = np.loadtxt(path, dtype=str, delimiter=self.delimiter, ndmin=2)
        y = cells[:, self.label_column]
        X = np.delete(cells, self.label_column, axis=1).astype(np.float32)
        return X, _translate(y, self.labels, url).astype(np.int64)


@dataclass(frozen=True)
class SceneFiles:
    """A hyperspectral image and the truth on the ground, as MATLAB arrays: (URL, name of the variable) each."""

    cube: tuple[str, str]
    truth: tuple[str, str]

    @property
    def where(self):
        return self.cube[0].rsplit("/", 3)[0]

    @property
    def urls(self):
        return self.cube[0], self.truth[0]

    def read(self, cache, progress=None):
        cube, truth = (self._variable(*part, cache, progress) for part in (self.cube, self.truth))
        if cube.ndim != 3 or truth.shape != cube.shape[:2]:
            raise ValueError(f"{self.cube[0]} of shape {cube.shape} and its truth of shape {truth.shape} do not fit")
        return {"X": cube.reshape(truth.size, -1), "y": truth.ravel(), "shape": np.array(truth.shape, dtype=np.int32)}

    def _variable(self, url, name, cache, progress):
        from scipy.io import loadmat

        return loadmat(fetch(url, download_path(cache, url), progress=progress), variable_names=[name])[name]


@dataclass(frozen=True)
class OpenML:
    """A set of OpenML, through scikit-learn, which checks OpenML's MD5.

    Attributes
    ----------
    data_id : int
        Names one version for ever.
    labels : mapping from the text of a label to its number, optional
    n_train : int, optional
        The first rows are for training, the rest for testing.
    """

    data_id: int
    labels: Mapping[str, int] | None = None
    n_train: int | None = None
    urls = ()

    @property
    def where(self):
        return f"https://www.openml.org/d/{self.data_id}"

    def read(self, cache, progress=None):
        from sklearn.datasets import fetch_openml

        bunch = fetch_openml(data_id=self.data_id, as_frame=False, parser="auto", data_home=str(cache / "openml"))
        X = np.asarray(bunch.data, dtype=np.float32)
        y = _translate(np.asarray(bunch.target).astype(str), self.labels, self.where).astype(np.int64)
        if self.n_train is None:
            return {"X": X, "y": y}
        n = self.n_train
        return {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]}


@dataclass(frozen=True)
class ScikitLearn:
    """A set that scikit-learn downloads itself, with its own checksum."""

    name: str
    where: str
    urls = ()

    def read(self, cache, progress=None):
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, self.name)(data_home=str(cache / "scikit-learn"), return_X_y=True)
        return {"X": X.astype(np.float32), "y": y.astype(np.int64)}


@dataclass(frozen=True)
class Generated:
    """A set that needs no file: `make(random_state)` gives X and y."""

    make: Callable
    where: str = "generated"

    def read(self, random_state):
        X, y = self.make(random_state)
        return {"X": X, "y": y}


def download_path(cache, url):
    """Where a file is kept while it is read; its checksum stays there."""
    return cache / "downloads" / url.split("//", 1)[-1].replace("/", "_").replace("~", "").replace(":", "_")


def _translate(y, labels, source):
    if labels is None:
        return y
    found, place = np.unique(y, return_inverse=True)
    unknown = [str(label) for label in found if label not in labels]
    if unknown:
        raise ValueError(f"{source} has unknown labels: {', '.join(unknown[:5])}")
    return np.array([labels[label] for label in found])[place.ravel()]
