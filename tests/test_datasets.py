"""Loaders and toys."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from svmosaic.datasets import data_folder, load, make_xor


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMOSAIC_DATA", str(tmp_path))
    return tmp_path


def test_no_folder(monkeypatch):
    monkeypatch.delenv("SVMOSAIC_DATA", raising=False)
    assert data_folder() is None
    with pytest.raises(FileNotFoundError, match=r"'iris'.*SVMOSAIC_DATA does not name a folder"):
        load("iris")
    monkeypatch.setenv("SVMOSAIC_DATA", "/no/such/folder")
    assert data_folder() is None


def test_no_such_set(folder):
    assert data_folder() == folder
    with pytest.raises(FileNotFoundError, match=r"there is no iris.npz in"):
        load("iris")


def test_official_split_is_kept(folder):
    X = np.arange(12, dtype=np.uint8).reshape(6, 2)
    np.savez(
        folder / "toy.npz", X_train=np.asfortranarray(X[:4]), y_train=np.arange(4), X_test=X[4:], y_test=np.arange(2)
    )
    toy = load("toy")
    assert toy.X_train.dtype == toy.X_test.dtype == np.float32
    assert toy.X_train.flags.c_contiguous, "estimators would copy it at each fit"
    assert_array_equal(toy.X_train, X[:4])
    assert_array_equal(toy.X_test, X[4:])
    assert_array_equal(toy.y_train, np.arange(4))


def test_sets_without_a_split_are_cut(folder):
    X = np.arange(200).reshape(100, 2)
    np.savez(folder / "toy.npz", X=X, y=np.arange(100))
    toy = load("toy", test_size=0.2)
    assert (len(toy.y_train), len(toy.y_test)) == (80, 20)
    assert_array_equal(np.sort(np.r_[toy.y_train, toy.y_test]), np.arange(100))
    assert_array_equal(toy.X_train, X[toy.y_train])
    assert_array_equal(toy.X_test, X[toy.y_test])
    assert_array_equal(load("toy", test_size=0.2).y_test, toy.y_test)
    assert not np.array_equal(load("toy", test_size=0.2, random_state=1).y_test, toy.y_test)
    assert len(load("toy", test_size=0).y_test) == 0


def test_pickled_arrays_are_refused(folder):
    np.savez(folder / "evil.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle"):
        load("evil")


def test_xor():
    X, y = make_xor(4000, spread=0.1, random_state=0)
    assert X.shape == (4000, 2)
    assert_array_equal(y, np.abs(X[:, 1]) > np.abs(X[:, 0]))
    assert_array_equal(make_xor(10, random_state=3)[0], make_xor(10, random_state=3)[0])
    assert abs(y.mean() - 0.5) < 0.05


@pytest.mark.data
@pytest.mark.skipif(data_folder() is None, reason="SVMOSAIC_DATA does not name the data folder")
@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [("usps", (7291, 256), 10), ("ijcnn1", (49990, 22), 2), ("svmguide1", (3089, 4), 2), ("letter", (16000, 16), 26)],
)
def test_real_sets(name, shape, n_classes):
    data = load(name)
    assert data.X_train.shape == shape
    assert len(np.unique(data.y_train)) == n_classes
    assert data.X_train.flags.c_contiguous
    assert np.isfinite(data.X_train).all()
