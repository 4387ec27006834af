"""Model files of earlier versions still load, and their models say what they said then.

The files in `files/*_edition` were written once, by `old_files.py`; never write them anew.
"""

import json
from pathlib import Path

import numpy as np
import old_files
import pandas as pd
import pytest
from everything import ESTIMATORS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import RegressorMixin

import svmosaic
from svmosaic.export.files import save

PATHS = sorted(Path(__file__).parent.glob("files/*_edition/*.svmosaic"))
# Parts of scikit-learn in a file may be of another version.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")


def expected_of(path):
    """The rows that were scored, and what came out."""
    stored = json.loads((path.parent / "expected.json").read_text())
    return stored, stored[path.stem]


def assert_same(found, expected):
    assert found["class"] == expected["class"]
    assert found["labels"] == expected["labels"]
    assert set(found) == set(expected)
    for name in {"scores", "probabilities"} & set(expected):
        # Rounding differs between machines.
        assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-6 * np.abs(expected[name]).max())


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_old_file_gives_the_same_answers(path, tmp_path):
    queries, expected = expected_of(path)
    model = svmosaic.load(path)
    assert_same(old_files.answers(model, queries), expected)
    save(model, tmp_path / "again")
    assert_same(old_files.answers(svmosaic.load(tmp_path / "again"), queries), expected)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_old_model_can_do_what_a_new_one_can(path):
    """It has all that its other methods need, too."""
    queries, expected = expected_of(path)
    model = svmosaic.load(path)
    assert expected["class"] in repr(model)
    X = np.array(queries["rows"])
    if hasattr(model, "predictor"):
        predictor = model.predictor()
        scores = predictor.predict(X) if isinstance(model, RegressorMixin) else predictor.decision_function(X)
        assert_allclose(scores, expected["scores"], rtol=1e-6, atol=1e-6)
    if hasattr(model, "explain"):
        model.explain(pd.DataFrame(queries["table"]) if expected["class"] == "TrainedModel" else X)
        regions = model.regions() if expected["class"] == "TrainedModel" else model.regions_
        assert sum(regions.columns["rows"]) == 40
    if path.stem == "LearnedGateSVC-tree":  # it predicts; such gates are no longer learned
        with pytest.raises(ValueError, match="can no longer be learned: fit a new model"):
            model.partial_fit(X, expected["labels"])
    elif hasattr(model, "partial_fit"):
        model.partial_fit(X, old_files.values(X) if isinstance(model, RegressorMixin) else expected["labels"])
    if isinstance(model, RegressorMixin):
        X, _ = old_files.rows()
        assert model.fit(X, old_files.values(X)).score(X, old_files.values(X)) > 0
    elif hasattr(model, "fit"):
        X, y = old_files.rows()
        assert_array_equal(model.fit(X, y).classes_, np.unique(y))


def test_no_file_is_lost():
    assert PATHS
    for folder in {path.parent for path in PATHS}:
        expected = json.loads((folder / "expected.json").read_text())
        assert {path.stem for path in PATHS if path.parent == folder} == set(expected) - {"rows", "table"}


def test_the_next_edition_will_have_every_estimator():
    assert set(ESTIMATORS) <= {type(model) for model in old_files.MODELS.values()}
    with pytest.raises(FileExistsError):
        old_files.write(PATHS[0].parent)
