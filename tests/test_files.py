"""Files: what goes in comes out, and nothing else is let in."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import svmosaic
from svmosaic import (
    BoostedLinearSVC,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    ClusteredSVC,
    ClusteredSVR,
    FusedSVC,
    GaussianMixtureClassifier,
    HierarchicalMixtureSVC,
    KernelSVC,
    KernelSVR,
    KMeansSVC,
    KMeansSVR,
    LearnedGateSVC,
    LearnedGateSVR,
    LinearSVC,
    LinearSVR,
    LocalCodingSVC,
    LocallyLinearSVC,
    LocallyLinearSVR,
    MixtureSVC,
    MosaicClassifier,
    MosaicRegressor,
    MultiTaskMixtureSVC,
    NeighborsSVC,
    TreeSVC,
    TreeSVR,
)
from svmosaic.export import codec, files
from svmosaic.export.files import ModelFileError, save

X, y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
X = X.astype(np.float32)
NAMES = np.array(["one", "two", "three"], dtype=object)[y]

ESTIMATORS = [
    TreeSVC(2, max_leaves=4, random_state=0),
    LinearSVC(random_state=0),
    KMeansSVC(4, tol=1e-2, random_state=np.random.RandomState(0)),
    ClusteredSVC(4, tol=1e-2, clusterer=KMeans(4, random_state=0), calibration="isotonic", random_state=0),
    LocallyLinearSVC(9, n_neighbors=3, tol=1e-2, calibration="temperature", random_state=0),
    LocallyLinearSVC(
        9, n_neighbors=3, coding="llc", tol=1e-2, feature_map=Nystroem(n_components=8, random_state=0),
        calibration="sigmoid", random_state=0,
    ),
    LocalCodingSVC(9, n_neighbors=3, tol=1e-2, calibration="isotonic", random_state=0),
    KernelSVC(9, tol=1e-2, calibration="temperature", random_state=0),
    LearnedGateSVC(8, n_components=3, n_neighbors=3, max_iter=2, calibration="temperature", random_state=0),
    MixtureSVC(4, max_iter=2, calibration="posterior", random_state=0),
    HierarchicalMixtureSVC((2, 2), max_iter=2, random_state=0),
    MultiTaskMixtureSVC(3, covariance_floor=1e-2, max_iter=2, random_state=0),
    NeighborsSVC(10, calibration="sigmoid", random_state=0),
    NeighborsSVC(10, algorithm="kd_tree"),
    GaussianMixtureClassifier(2, random_state=0),
    FusedSVC(SVC(gamma=0.1), weight=0.5, max_densities=10, random_state=0),
    BoostedLinearSVC(5, random_state=0),
    BoostedTreesClassifier(5, calibration="isotonic", random_state=0),
    MosaicClassifier(time_budget=None, max_tiles=4, families=("linear", "trees"), random_state=0),
]  # fmt: skip

REGRESSORS = [
    MosaicRegressor(time_budget=None, max_tiles=4, families=("linear", "trees"), random_state=0),
    BoostedTreesRegressor(5, random_state=0),
    LinearSVR(random_state=0),
    KMeansSVR(4, tol=1e-2, random_state=0),
    ClusteredSVR(4, tol=1e-2, clusterer=KMeans(4, random_state=0), loss="expectile", random_state=0),
    LocallyLinearSVR(9, n_neighbors=3, pieces=4, random_state=0),
    KernelSVR(9, tol=1e-2, random_state=0),
    LearnedGateSVR(8, n_components=3, n_neighbors=3, max_iter=2, random_state=0),
    TreeSVR(2, max_leaves=4, loss="quantile", quantile=(0.1, 0.9), tol=1e-2, random_state=0),
]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.svmosaic"
    LinearSVC(random_state=0).fit(X, y).save(path)
    return path


@pytest.mark.parametrize("target", [y, NAMES])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_model_comes_back_as_it_was(tmp_path, estimator, target):
    model = clone(estimator).fit(X, target)
    model.save(tmp_path / "model.svmosaic")
    again = svmosaic.load(tmp_path / "model.svmosaic")
    assert type(again) is type(model)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert {k: str(type(v)) for k, v in again.get_params().items()} == {
        k: str(type(v)) for k, v in model.get_params().items()
    }
    assert os.listdir(tmp_path) == ["model.svmosaic"]


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_a_regressor_comes_back_as_it_was(tmp_path, estimator):
    model = clone(estimator).fit(X, 5.0 + X[:, 0] * X[:, 1])
    model.save(tmp_path / "model.svmosaic")
    again = svmosaic.load(tmp_path / "model.svmosaic")
    assert type(again) is type(model)
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.regions_["rows"], model.regions_["rows"])
    assert again.predict(X[:1]).shape == model.predict(X[:1]).shape


def test_every_estimator_can_be_saved():
    exported = {name for name in svmosaic.__all__ if isinstance(getattr(svmosaic, name), type)}
    untried = exported - {type(estimator).__name__ for estimator in ESTIMATORS + REGRESSORS}
    assert not untried, "add these to ESTIMATORS above, and their types to svmosaic.model.registry"


def test_conversions_come_back_too(tmp_path):
    svm = SVC(gamma=0.1).fit(X, y == 1)
    for model in (svmosaic.svm_to_mixture(svm), svmosaic.mixture_to_svm(svmosaic.svm_to_mixture(svm))):
        save(model, tmp_path / "model")
        again = svmosaic.load(tmp_path / "model")
        assert type(again) is type(model)
        assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_pipeline_comes_back_too(tmp_path):
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    save(model, str(tmp_path / "pipeline"))
    assert_array_equal(svmosaic.load(str(tmp_path / "pipeline")).predict(X), model.predict(X))


def test_the_version_is_recorded(saved):
    with zipfile.ZipFile(saved) as archive:
        header = json.loads(archive.read(files.HEADER))
    assert header["svmosaic"] == svmosaic.__version__
    assert header["format"] == files.FORMAT


class Bomb:
    """Leaves a trace when it is unpickled or built."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (os.mkdir, (self.trace,))


def test_a_pickle_renamed_is_refused_and_not_run(tmp_path):
    trace = tmp_path / "trace"
    path = tmp_path / "model.svmosaic"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(str(trace)), protocol=protocol))
        with pytest.raises(ModelFileError, match="pickle" if protocol >= 2 else "not a model"):
            svmosaic.load(path)
        assert not trace.exists()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelFileError, match="truncated or damaged" if share else "not a model"):
        svmosaic.load(saved)


def test_a_flipped_bit_is_noticed(saved):
    data = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        entry = next(e for e in archive.infolist() if e.filename.endswith(".npy"))
    data[entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2] ^= 1
    saved.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"checksum|truncated or damaged"):
        svmosaic.load(saved)


def rewrite(path, name, change, *, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    entries[name] = change(entries[name])
    with zipfile.ZipFile(path, "w", compression) as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)


@pytest.mark.parametrize(("number", "remedy"), [(files.FORMAT + 1, "upgrade"), (files.FORMAT - 1, "save the model")])
def test_a_file_of_another_format_is_refused(saved, number, remedy):
    rewrite(saved, files.HEADER, lambda _: json.dumps({"format": number, "svmosaic": "9.9"}).encode())
    with pytest.raises(ModelFileError, match=rf"svmosaic 9\.9 in format {number}, not the format .*: {remedy}"):
        svmosaic.load(saved)


class Stranger(TransformerMixin, BaseEstimator):
    """A type on no list, which leaves a trace when it is built again."""

    trace = None

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X

    def __setstate__(self, state):
        os.mkdir(state["trace"])


def test_an_unknown_type_is_refused_and_not_built(tmp_path):
    stranger = Stranger()
    stranger.trace = str(tmp_path / "trace")
    model = make_pipeline(stranger, LinearSVC(random_state=0)).fit(X, y)
    path = tmp_path / "model.svmosaic"
    with pytest.raises(ModelFileError, match=r"could not be loaded again, of type .*Stranger"):
        save(model, path)
    assert os.listdir(tmp_path) == []
    files._write(path, *codec.describe(model), {})
    with pytest.raises(ModelFileError, match=r"not trusted, so it was not opened: .*Stranger"):
        svmosaic.load(path)
    assert not (tmp_path / "trace").exists()


def test_a_description_that_calls_a_function_is_refused(saved, tmp_path):
    """The schema of a good file, with its class replaced by a function that leaves a trace."""

    def change(schema):
        assert b'"svmosaic.estimators.linear.LinearSVC"' in schema
        return schema.replace(b'"svmosaic.estimators.linear.LinearSVC"', b'"os.system"')

    rewrite(saved, "schema.json", change)
    with pytest.raises(ModelFileError, match=r"not trusted, so it was not opened: os\.system"):
        svmosaic.load(saved)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "x", "svmosaic": 1}'])
def test_a_header_without_sense_is_refused(saved, content):
    rewrite(saved, files.HEADER, lambda _: content)
    with pytest.raises(ModelFileError):
        svmosaic.load(saved)


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b'{"set": []}', b'{"same": 0}', b'{"type": []}', b"[" * 100_000])
def test_a_description_without_sense_is_refused(saved, content):
    rewrite(saved, "schema.json", lambda _: content)
    with pytest.raises(ModelFileError, match="damaged"):
        svmosaic.load(saved)


def test_other_files_are_refused(saved, tmp_path):
    skops.io.dump(LinearSVC(random_state=0).fit(X, y), tmp_path / "plain.skops")
    with pytest.raises(ModelFileError, match=r"no entry svmosaic\.json"):
        svmosaic.load(tmp_path / "plain.skops")
    rewrite(saved, "schema.json", lambda schema: schema, compression=zipfile.ZIP_BZIP2)
    with pytest.raises(ModelFileError, match="compressed in another way"):
        svmosaic.load(saved)
    with pytest.raises(FileNotFoundError):
        svmosaic.load(tmp_path / "nowhere")


def test_what_would_unpack_to_far_more_is_refused_before_it_is_unpacked(saved, monkeypatch):
    rewrite(saved, "schema.json", lambda schema: schema + b" " * 10_000_000, compression=zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("was unpacked"))
    with pytest.raises(ModelFileError, match="larger than they can be"):
        svmosaic.load(saved)


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_entries_are_compressed_but_never_so_far_that_they_would_be_refused(tmp_path, scale):
    """Zeros would take a thousandth of their room."""
    many = np.random.RandomState(0).uniform(size=(40, 3000)).round(1) * scale
    path = tmp_path / "model.svmosaic"
    model = KMeansSVC(2, random_state=0).fit(many, np.arange(40) % 2)
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    assert all(entry.file_size <= files.MOST_TIMES * entry.compress_size for entry in entries)
    assert any(entry.file_size > 1.5 * entry.compress_size for entry in entries)  # the description
    assert_allclose(svmosaic.load(path).decision_function(many), model.decision_function(many))


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        LinearSVC(C=0.1, random_state=0).fit(X, y).save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]
