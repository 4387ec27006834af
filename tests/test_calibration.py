"""Calibrated probabilities."""

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import TunedThresholdClassifierCV

from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC
from svmosaic.model.calibration import KEEP_ORDER, METHODS, Odds, fit_calibration

ESTIMATORS = [
    LinearSVC(tol=1e-3, random_state=0),
    KMeansSVC(4, tol=1e-2, random_state=0),
    ClusteredSVC(4, tol=1e-2, random_state=0),
    LocallyLinearSVC(10, n_neighbors=3, tol=1e-2, random_state=0),
]


def noisy_set(n_classes, n=400):
    return make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2, n_clusters_per_class=1, random_state=1
    )  # fmt: skip


class GivenScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose scores are its input, to put scikit-learn's calibration on scores we hold."""

    def __init__(self, n_classes=2):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, 0] if self.n_classes == 2 else X

    def predict(self, X):
        return X[:, 0] > 0 if self.n_classes == 2 else X.argmax(axis=1)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear to accept sample_weight")
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("method", [method for method in METHODS if method != "odds"])
def test_the_numbers_are_those_of_scikit_learn(method, n_classes):
    rng = np.random.default_rng(0)
    label = rng.integers(n_classes, size=300)
    scores = rng.standard_normal((300, 1 if n_classes == 2 else n_classes))
    scores += 0.8 * (label[:, None] == (1 if n_classes == 2 else np.arange(n_classes)))
    weight = rng.uniform(0.5, 2.0, 300)
    theirs = CalibratedClassifierCV(FrozenEstimator(GivenScores(n_classes)), method=method)
    theirs.fit(scores, label, sample_weight=weight)
    ours = fit_calibration(method, scores, label, weight)
    # The tie break of isotonic steps moves probabilities by 1e-6.
    assert_allclose(
        ours.probabilities(scores), theirs.predict_proba(scores), atol=4e-6 if method == "isotonic" else 1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_probabilities_are_consistent(estimator, method, n_classes):
    X, y = noisy_set(n_classes)
    names = np.array(["x", "y", "z"])[y]
    model = estimator.__class__(**{**estimator.get_params(), "calibration": method}).fit(X, names)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (400, n_classes)
    assert (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    predictor = model.predictor()
    assert_array_equal(predictor.predict_proba(X), probabilities)
    assert_array_equal(predictor(X), model.predict(X))
    assert predictor(X[0]) == model.predict(X[:1])[0]
    assert_allclose(predictor.predict_proba(X[0]), probabilities[0], atol=1e-12)
    # The tiles are those of the fit without calibration.
    plain = estimator.fit(X, names)
    assert_array_equal(plain.decision_function(X), model.decision_function(X))
    if method in KEEP_ORDER:
        assert_array_equal(plain.predict(X), model.predict(X))


def test_odds_are_at_least_as_good_as_a_temperature_and_the_same_for_two_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.3] * 6, size=3000)
    label = (p.cumsum(axis=1) > rng.uniform(size=(3000, 1))).argmax(axis=1)

    def loss(calibration, scores):
        return log_loss(label, calibration.probabilities(scores), labels=np.arange(6))

    for scores, gain in ((2 * p - 1, 0.05), (np.log(p + 1e-9), 0.0)):  # as of the squared hinge, and of the log-loss
        odds, temperature = (fit_calibration(method, scores, label) for method in ("odds", "temperature"))
        assert loss(odds, scores) <= loss(temperature, scores) * (1 - gain) + 2e-3
        assert_array_equal(odds.probabilities(scores).argmax(axis=1), scores.argmax(axis=1))
        weights = rng.uniform(size=3000)
        doubled = fit_calibration("odds", np.repeat(scores, 2, axis=0), np.repeat(label, 2), np.repeat(weights, 2))
        assert_allclose(doubled.slope, fit_calibration("odds", scores, label, weights).slope, rtol=1e-3)
    two = fit_calibration("odds", p[:, :1] - 0.5, (label == 0).astype(int))
    assert two.beta == fit_calibration("temperature", p[:, :1] - 0.5, (label == 0).astype(int)).beta


def test_odds_keep_the_order_of_scores_that_are_far_away():
    odds = Odds(5.0, -1.0)
    for scores in ([[50.0, 60.0, 0.0]], [[-400.0, -300.0, -301.0]], [[1e6, 1e6 + 1.0, 1e5]], [[0.1, 0.3, 0.2]]):
        probabilities = odds.probabilities(np.array(scores))
        assert np.isfinite(probabilities).all()
        assert probabilities.argmax() == 1
        assert probabilities[0, 1] > np.delete(probabilities[0], 1).max()


def test_cross_fitting_is_that_of_folds_solved_from_scratch():
    """Without a gate to keep, calibration is CalibratedClassifierCV(ensemble=False) on the same folds."""
    from sklearn.model_selection import StratifiedKFold

    X, y = noisy_set(2)
    model = LinearSVC(tol=1e-9, max_iter=10_000, calibration="sigmoid", random_state=0).fit(X, y)
    rng = np.random.RandomState(0)
    rng.randint(2**31 - 1)  # drawn by the fit itself
    folds = StratifiedKFold(5, shuffle=True, random_state=rng.randint(2**31 - 1))
    reference = CalibratedClassifierCV(
        sklearn.svm.LinearSVC(loss="hinge", tol=1e-8, max_iter=1_000_000), method="sigmoid", cv=folds, ensemble=False
    )
    assert_allclose(model.predict_proba(X), reference.fit(X, y).predict_proba(X), atol=1e-3)


def test_calibration_lowers_the_log_loss_of_raw_sigmoids():
    X, y = noisy_set(2, n=2000)
    model = LocallyLinearSVC(10, tol=1e-2, C=10, calibration="sigmoid", random_state=0).fit(X[:1000], y[:1000])
    raw = 1 / (1 + np.exp(-10 * model.decision_function(X[1000:])))
    assert log_loss(y[1000:], model.predict_proba(X[1000:])) < log_loss(y[1000:], raw)


def test_sample_weights_count_and_class_weights_do_not():
    X, y = noisy_set(2)
    heavy = np.where(y == 1, 3.0, 1.0)
    weighted = LinearSVC(calibration="sigmoid", random_state=0).fit(X, y, sample_weight=heavy)
    classes = LinearSVC(calibration="sigmoid", class_weight={0: 1.0, 1: 3.0}, random_state=0).fit(X, y)
    assert_allclose(weighted.decision_function(X), classes.decision_function(X), atol=1e-10)
    assert np.average(weighted.predict_proba(X)[:, 1], weights=heavy) == pytest.approx(
        np.average(y, weights=heavy), abs=0.02
    )
    assert classes.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)


def test_without_calibration_there_is_no_predict_proba():
    X, y = noisy_set(2)
    model = LinearSVC(random_state=0).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as error:
        _ = model.predict_proba
    assert 'calibration="temperature"' in f"{error.value} {error.value.__cause__}"
    model.set_params(calibration="sigmoid")
    with pytest.raises(NotFittedError, match="without calibration"):
        model.predict_proba(X)
    with pytest.raises(ValueError, match=r"calibration must be one of 'temperature', .* got 'platt'"):
        LinearSVC(calibration="platt").fit(X, y)
    with pytest.raises(ValueError, match="at least two of each class, but class '1' has 1"):
        LinearSVC(calibration="sigmoid").fit(X[:11], [0] * 10 + [1])


def test_scorers_and_thresholds_of_scikit_learn_take_the_column_of_the_positive_class():
    X, y = noisy_set(2)
    base = LinearSVC(tol=1e-2, calibration="sigmoid", random_state=0).fit(X, y)
    assert base.predict_proba.__name__ == "predict_proba"
    found = get_scorer("neg_brier_score")(base, X, y)
    assert found == pytest.approx(-np.mean((base.predict_proba(X)[:, 1] - y) ** 2))
    tuned = TunedThresholdClassifierCV(base, scoring="f1", cv=3).fit(X, y)
    assert set(tuned.predict(X)) <= {0, 1}
