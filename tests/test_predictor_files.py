"""Files of predictors: safe as those of models, and opened without scikit-learn."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from exported import estimators, training_set
from numpy.testing import assert_array_equal
from sklearn.kernel_approximation import RBFSampler
from test_table_input import QUICK, mixed_table

import svmosaic
from svmosaic import GaussianMixtureClassifier, LinearSVR, LocallyLinearSVC, MosaicClassifier
from svmosaic.datasets import make_xor
from svmosaic.export.files import HEADER, ModelFileError, save_predictor


@pytest.mark.parametrize("name", estimators())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_gate_and_calibration(name, tmp_path):
    model = estimators()[name].fit(*training_set(3))
    model.save_predictor(tmp_path / "p")
    predictor, again = model.predictor(), svmosaic.load(tmp_path / "p")
    X = np.random.default_rng(0).standard_normal((50, predictor.n_features))
    assert_array_equal(again.decision_function(X), predictor.decision_function(X))
    assert_array_equal(again(X), predictor(X))
    assert again(X[0]) == predictor(X[0])
    if predictor._calibration is not None:
        assert_array_equal(again.predict_proba(X), predictor.predict_proba(X))


def test_values(tmp_path):
    X, _ = make_xor(random_state=0)
    for target in (X[:, 0] * 3 + 1, X):
        model = LinearSVR().fit(X, target)
        model.save_predictor(tmp_path / "p")
        assert_array_equal(svmosaic.load(tmp_path / "p")(X), model.predictor()(X))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    frame, y = mixed_table()
    model = MosaicClassifier(**QUICK).fit(frame, y)
    path = tmp_path_factory.mktemp("files") / "p"
    model.save_predictor(path)
    return model, frame, path


def test_tables(table):
    model, frame, path = table
    again, rows = svmosaic.load(path), frame.to_dict("records")
    assert_array_equal(again(rows), model.predict(frame))
    assert_array_equal(again.predict_proba(frame), model.predictor().predict_proba(frame))
    assert list(again.classes) == ["no", "yes"]


def test_it_opens_without_scikit_learn(table):
    model, _, path = table
    row = {"age": 30, "color": "red", "flag": True, "when": "2021-01-01", "size": "M", "city": "city 3", "count": 2}
    code = (
        "import sys, svmosaic\n"
        f"print(svmosaic.load({str(path)!r})({row!r}))\n"
        "assert not {'sklearn', 'skops', 'scipy', 'joblib', 'pandas', 'narwhals'} & set(sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(model.predictor()(row))


def test_two_saves_have_the_same_bytes(table, tmp_path):
    model, _, path = table
    model.save_predictor(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_what_it_cannot_hold_is_named(tmp_path):
    X, y = make_xor(random_state=0)
    model = LocallyLinearSVC(4, feature_map=RBFSampler(random_state=0), random_state=0).fit(X, y)
    with pytest.raises(ModelFileError, match="this Predictor cannot be written: a predictor file cannot hold a Mosaic"):
        model.save_predictor(tmp_path / "p")
    assert not list(tmp_path.iterdir())


def test_densities(tmp_path):
    X, y = make_xor(random_state=0)
    model = GaussianMixtureClassifier(2, random_state=0).fit(X, y)
    save_predictor(model.predictor(), tmp_path / "p")
    again = svmosaic.load(tmp_path / "p")
    assert_array_equal(again(X), model.predict(X))
    assert_array_equal(again.predict_proba(X), model.predictor().predict_proba(X))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "subprocess.Popen", "state": {"dict": []}},
        {"type": "svmosaic.maps.scaling.Scaling", "state": {"dict": [["center", None], ["factor", None]]}},
        {"type": "svmosaic.model.predictor.Predictor", "state": {"dict": []}},
        {"list": []},
        {"array": 99},
        {"set": []},
        [],
        None,
    ],
)
def test_other_descriptions_are_refused(table, tmp_path, schema):
    with zipfile.ZipFile(table[2]) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    entries["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match=r"is damaged|is not a model|not trusted"):
        svmosaic.load(tmp_path / "bad")


def test_arrays_are_no_pickles(table, tmp_path):
    with zipfile.ZipFile(table[2]) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    np.save(tmp_path / "o.npy", np.array([print], dtype=object), allow_pickle=True)
    entries["0.npy"] = (tmp_path / "o.npy").read_bytes()
    assert HEADER in entries
    with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="is damaged"):
        svmosaic.load(tmp_path / "bad")
