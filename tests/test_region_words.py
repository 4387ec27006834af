"""Regions in words in `regions_` of every estimator: found by a few training rows, and kept in files and pickles."""

import pickle

import numpy as np
import pytest
from everything import ESTIMATORS, REGRESSORS
from in_memory import InMemory
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler

import svmosaic
from svmosaic import (
    BoostedLinearSVC,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LocallyLinearSVC,
    MosaicClassifier,
    MosaicRegressor,
    TreeSVC,
)
from svmosaic.estimators.tiles import MOST_DESCRIBED
from svmosaic.scale import fit
from svmosaic.scale.part import Raw

RNG = np.random.RandomState(0)
X = RNG.randint(-256, 257, (400, 3)) / 256  # the same numbers in single precision
Y = np.where(X[:, 0] * X[:, 1] > 0, "ham", "spam")
VALUES = X[:, 0] * X[:, 1]

SMALL = {
    "n_clusters": 4, "n_tiles": 4, "n_anchors": 6, "n_neighbors": 3, "n_experts": 4, "max_leaves": 4, "n_trees": 2,
    "n_rounds": 3,
    "max_iter": 20, "n_jobs": 1, "random_state": 0,
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("short_search")
SEARCHES = (MosaicClassifier, MosaicRegressor)


def small(estimator):
    model = estimator()
    return model.set_params(**{name: value for name, value in SMALL.items() if name in model.get_params()})


def fitted(estimator):
    model = small(estimator)
    if isinstance(model, SEARCHES):
        model.set_params(time_budget=None, families=["clustered"], blend=False)
    return model.fit(X, VALUES if estimator in REGRESSORS else Y)


WITH_REGIONS = [estimator for estimator in ESTIMATORS if hasattr(estimator, "regions_")]


def test_the_list_is_not_empty():
    assert len(WITH_REGIONS) >= 14
    assert BoostedLinearSVC not in WITH_REGIONS  # votes of SVMs that all see all rows


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", WITH_REGIONS, ids=lambda estimator: estimator.__name__)
def test_every_estimator_has_the_words(estimator, tmp_path):
    model = fitted(estimator)
    first = pickle.dumps(model)
    table = model.regions_
    rules = table["rule"].tolist()
    has_rows = table["rows"] > 0
    assert all(rule for rule, there in zip(rules, has_rows, strict=True) if there)
    assert ((table["covers"][has_rows] > 0) & (table["pure"][has_rows] > 0)).all()
    assert pickle.dumps(model) == first  # whether words were asked for or not
    assert "_region_sample" not in vars(pickle.loads(first))
    model.save(tmp_path / "a")
    model.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for again in (pickle.loads(first), svmosaic.load(tmp_path / "a")):
        assert again.regions_["rule"].tolist() == rules
        assert_array_equal(again.regions_["covers"], table["covers"])
        assert_array_equal(again.regions_["pure"], table["pure"])


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("pieces", [None, 4])
def test_the_words_are_those_of_a_summary(storage, pieces):
    model = KMeansSVC(5, pieces=pieces, random_state=0).fit(storage(X), Y)
    table, expected = model.regions_, model.summarize_regions(storage(X), Y)
    assert table["rule"].tolist() == expected["rule"].tolist()
    assert_array_equal(table["covers"], expected["covers"])
    assert_array_equal(table["pure"], expected["pure"])


def test_rules_of_trees_are_exact():
    model = TreeSVC(n_trees=3, max_leaves=5, random_state=0).fit(X, Y)
    table = model.regions_
    assert table["rule"].tolist() == ["all rows", *model.rules_["rule"]]
    assert (table["covers"] == 1).all()
    assert (table["pure"] == 1).all()


def test_every_gate_has_its_own_words():
    model = LearnedGateSVC(4, n_gates=2, max_iter=5, random_state=0).fit(X, Y)
    table = model.regions_
    assert all(rule for rule, n_rows in zip(table["rule"], table["rows"], strict=True) if n_rows)
    assert len(set(table["gate"][table["rows"] > 0])) == 2


def test_words_are_about_the_last_fit_or_batch():
    model = KMeansSVC(3, random_state=0).fit(X, Y)
    before = model.regions_["rule"].tolist()
    assert model.fit(10 * X, Y).regions_["rule"].tolist() != before
    assert model.set_params(n_clusters=1).fit(X, Y).regions_["rule"].tolist() == ["all rows"]
    assert LinearSVC(random_state=0).fit(X, Y).regions_["rule"].tolist() == ["all rows"]
    # Or about the last batch of a stream.
    model = LearnedGateSVC(3, random_state=0)
    model.partial_fit(X, Y, classes=["ham", "spam"])
    before = model.regions_["rule"].tolist()
    rules = model.partial_fit(X[:200], Y[:200]).regions_["rule"].tolist()
    assert all(rules)
    assert rules != before


def test_words_name_the_columns_whose_contributions_vary_most():
    wide = np.hstack([0.01 * np.random.RandomState(1).standard_normal((400, 120)), 5 * X[:, :1]])
    model = KMeansSVC(2, random_state=0).fit(wide, np.where(X[:, 0] > 0.3, 1, 0))
    assert all("x120" in rule for rule in model.regions_["rule"])


def test_words_name_the_features_of_a_transformer():
    model = LocallyLinearSVC(4, n_neighbors=2, feature_map=RBFSampler(n_components=5, random_state=0), random_state=0)
    assert all("rbfsampler" in rule for rule in model.fit(X, Y).regions_["rule"])


@pytest.mark.parametrize("model", [KMeansSVC(4, random_state=0), LearnedGateSVC(4, max_iter=3, random_state=0)])
def test_partitions_have_the_words(model):
    parts = fit(clone(model), InMemory([Raw(X[at], Y[at], None, "") for at in (slice(150), slice(150, None))]))
    table, expected = parts.regions_, parts.summarize_regions(X, Y)
    assert all(table["rule"][table["rows"] > 0])
    assert table["rule"].tolist() == expected["rule"].tolist()


def test_very_many_tiles_have_none():
    many = np.random.RandomState(0).uniform(-1, 1, (1000, 2))
    model = KMeansSVC(MOST_DESCRIBED + 10, random_state=0).fit(many, many[:, 0] > 0)
    assert "rule" not in model.regions_.columns
    assert "_region_sample" not in vars(model)


def test_files_hardly_grow():
    wide = np.random.RandomState(0).standard_normal((3000, 50))
    model = KMeansSVC(8, random_state=0).fit(wide, wide[:, 0] > 0)
    size = len(pickle.dumps(model))
    del model._region_sample, model.region_words_
    assert size - len(pickle.dumps(model)) < 4000
