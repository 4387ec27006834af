"""Real data sets from a folder of .npz files named by the environment variable SVMOSAIC_DATA."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Dataset:
    """Rows and labels for training and for testing."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def data_folder() -> Path | None:
    """The folder named by SVMOSAIC_DATA, or None where there is none."""
    folder = os.environ.get("SVMOSAIC_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def load(name, *, test_size=0.1, random_state=0) -> Dataset:
    """The data set `name` from the local folder.

    Sets without an official split are shuffled and cut, with a share of `test_size` for testing. Values are the
    originals, as float32.
    """
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError(f"data set {name!r} not found: SVMOSAIC_DATA does not name a folder")
    path = folder / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"data set {name!r} not found: there is no {path.name} in {folder}")
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    if "X_train" in arrays:
        parts = [arrays[key] for key in ("X_train", "y_train", "X_test", "y_test")]
    else:
        order = np.random.RandomState(random_state).permutation(len(arrays["y"]))
        n_test = round(test_size * len(order))
        test, train = order[:n_test], order[n_test:]
        X, y = arrays["X"], arrays["y"]
        parts = [X[train], y[train], X[test], y[test]]
    X_train, y_train, X_test, y_test = parts
    # Row by row in memory, whatever the file holds: the estimators would copy anything else at each fit.
    X_train, X_test = (np.ascontiguousarray(X, dtype=np.float32) for X in (X_train, X_test))
    return Dataset(X_train, y_train, X_test, y_test)
