"""Probabilities of the models that do not come from one convex solve: mixtures, learned gates, neighbors, fusion."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.svm import SVC
from test_calibration import noisy_set

from svmosaic import (
    BoostedLinearSVC,
    FusedSVC,
    HierarchicalMixtureSVC,
    KernelSVC,
    LearnedGateSVC,
    LocalCodingSVC,
    MixtureSVC,
    MultiTaskMixtureSVC,
    NeighborsSVC,
)
from svmosaic.couplings import ClusteredTasks
from svmosaic.estimators._em_loop import EM, Mixture
from svmosaic.estimators._em_rows import MemoryEMRows
from svmosaic.estimators._experts import Bank
from svmosaic.estimators.data import Data, Target
from svmosaic.estimators.tiles import Options
from svmosaic.losses import HINGE
from svmosaic.model.heads import Classify

MIXTURES = [
    MixtureSVC(5, max_iter=3, random_state=0),
    HierarchicalMixtureSVC((2, 2), max_iter=3, random_state=0),
    MultiTaskMixtureSVC(3, covariance_floor=1e-2, max_iter=2, random_state=0),
]
OTHERS = [
    LocalCodingSVC(16, n_neighbors=4, tol=1e-2, random_state=0),
    KernelSVC(16, tol=1e-2, random_state=0),
    LearnedGateSVC(8, n_components=3, n_neighbors=3, max_iter=3, validation_fraction=0.3, random_state=0),
    NeighborsSVC(30, tol=1e-2, random_state=0),
    FusedSVC(SVC(gamma=0.2), weight=0.5, random_state=0),
    BoostedLinearSVC(5, tol=1e-2, random_state=0),
]


def check_consistent(model, X, n_classes):
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), n_classes)
    assert (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    if hasattr(model, "predictor"):
        predictor = model.predictor()
        # A fused model asks the SVM that it was given; its predictor adds up that machine's kernels by itself.
        rtol = 1e-10 if isinstance(model, FusedSVC) else 0.0
        assert_allclose(predictor.predict_proba(X), probabilities, rtol=rtol)
        assert_array_equal(predictor(X), model.predict(X))
        assert predictor(X[0]) == model.predict(X[:1])[0]
    return probabilities


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "posterior"])
@pytest.mark.parametrize("estimator", MIXTURES)
def test_mixtures_are_consistent(estimator, method, n_classes):
    X, y = noisy_set(n_classes)
    names = np.array(["x", "y", "z"])[y]
    model = clone(estimator).set_params(calibration=method).fit(X, names)
    probabilities = check_consistent(model, X, n_classes)
    plain = clone(estimator).fit(X, names)
    assert not hasattr(plain, "predict_proba")
    # Gate and experts are those of the fit without calibration.
    assert_array_equal(plain.tile_coef_, model.tile_coef_)
    if method == "sigmoid":
        assert_array_equal(plain.decision_function(X), model.decision_function(X))
        assert log_loss(y, probabilities) < np.log(n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_posterior_is_that_of_the_mixture(n_classes):
    """p(y|x) = sum_j g_j(x) p(y|x, j), term by term."""
    X, y = noisy_set(n_classes, n=120)
    model = MixtureSVC(5, max_iter=3, calibration="posterior", random_state=0).fit(X, y)
    tile, weight = model.mosaic_.gate.code(X)
    expected = np.zeros((len(X), n_classes))
    for i, x in enumerate(X):
        for j, g in zip(tile[i], weight[i], strict=True):
            for c, s in enumerate(model.tile_coef_[j] @ x + model.intercept_[j]):
                yes, no = np.exp(-max(0.0, 1 - s)), np.exp(-max(0.0, 1 + s))
                if n_classes == 2:
                    expected[i] += g * np.array([no, yes]) / (yes + no)
                else:
                    expected[i, c] += g * yes / (yes + no)
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), expected, atol=1e-10)
    scores = reference.scores(X, tile, weight, model.tile_coef_, model.intercept_, "posterior")
    assert_allclose(model.decision_function(X).reshape(len(X), -1), scores, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["temperature", "isotonic"])
@pytest.mark.parametrize("estimator", OTHERS)
def test_other_models_are_consistent(estimator, method, n_classes):
    X, y = noisy_set(n_classes)
    names = np.array(["x", "y", "z"])[y]
    model = clone(estimator).set_params(calibration=method).fit(X, names)
    probabilities = check_consistent(model, X, n_classes)
    assert log_loss(y, 0.999 * probabilities + 0.001 / n_classes) < np.log(n_classes)
    if not isinstance(estimator, LearnedGateSVC):
        assert_array_equal(clone(estimator).fit(X, names).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("groups", [None, "relaxed"])
def test_experts_of_a_fold_know_nothing_of_the_rows_held_out(groups):
    """Other labels for rows of weight zero leave them as they are, bit by bit."""
    X, y = noisy_set(2, n=200)
    rng = np.random.RandomState(0)
    cell, weight = rng.randint(3, size=200), np.where(np.arange(200) < 50, 0.0, 1.0)
    tasks = ClusteredTasks(groups, 2, 0.1, 0.1)
    mixture = Mixture(None, Bank(rng.standard_normal((3, 1, 7)), (tasks.start(3),)), 1.0)
    options = Options(1.0, HINGE, 1.0, "auto", 1e-3, 1000, 1)
    found = []
    for flipped in (False, True):
        label = (y == 1).astype(int)
        label[:50] = label[:50] ^ flipped
        target = Target(Classify(np.arange(2)), label, np.ones(200))
        rows = MemoryEMRows(
            Data.of(X, target),
            options=options,
            gate_options=lambda total: {},
            rng=np.random.RandomState(1),
            deadline=None,
        )
        rows.assign(cell, 3)
        rows.append(1.0)
        loop = EM(rows, tasks, label_weight=1.0, tol=0.0, max_iter=1, deadline=None)
        found.append(loop.afresh(mixture, rows.afresh(weight)).bank.tiles)
    assert_array_equal(found[0], found[1])
    assert np.abs(found[0]).max() > 0


def test_neighbours_are_calibrated_by_neighbours_of_other_folds():
    """Rows that are their own nearest neighbors would look certain: with every label drawn at random they are not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.integers(2, size=300)
    model = NeighborsSVC(3, C=10.0, tol=1e-1, calibration="sigmoid", random_state=0).fit(X, y)
    assert np.abs(model.predict_proba(X)[:, 1] - 0.5).mean() < 0.1


def test_a_held_out_part_without_a_class_is_refused():
    X, y = noisy_set(3, n=60)
    y[:57], y[57:] = y[:57] % 2, 2
    with pytest.raises(ValueError, match="needs rows of every class in the part held out"):
        LearnedGateSVC(4, n_components=2, max_iter=1, calibration="sigmoid", random_state=0).fit(X, y)


def test_methods_are_named_where_they_are_wrong():
    X, y = noisy_set(2, n=60)
    with pytest.raises(ValueError, match=r"'isotonic', 'posterior', got 'platt'"):
        MixtureSVC(2, calibration="platt").fit(X, y)
    with pytest.raises(ValueError, match=r"'isotonic', got 'posterior'"):
        NeighborsSVC(5, calibration="posterior").fit(X, y)
