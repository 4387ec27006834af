"""Boosted trees as estimators: rounds chosen by held-out rows, probabilities, weights, threads, time limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from svmosaic import BoostedTreesClassifier, BoostedTreesRegressor
from svmosaic.gates.boosting import Bins, boost


def two_classes(n_rows=600, seed=0):
    return make_classification(n_rows, 8, n_informative=5, flip_y=0.2, random_state=seed)


def test_all_rounds_without_early_stopping_are_those_of_the_core():
    X, y = two_classes()
    model = BoostedTreesClassifier(12, early_stopping=False, column_share=1.0, random_state=0).fit(X, y)
    trees = boost(
        Bins(X),
        y[:, None].astype(float),
        np.ones(len(y)),
        loss="log_loss",
        seed=5,
        n_rounds=12,
        max_leaves=16,
        min_rows=10,
    )
    assert model.n_rounds_ == 12
    assert_array_equal(model.losses_, trees.losses)
    assert_allclose(log_loss(y, model.predict_proba(X)), model.losses_[-1])


@pytest.mark.parametrize("n_rows", [400, 6000])
def test_rounds_are_chosen_by_held_out_rows(n_rows):
    X, y = two_classes(n_rows + 2000)
    held_out = X[n_rows:], y[n_rows:]
    stopped = BoostedTreesClassifier(300, random_state=0).fit(X[:n_rows], y[:n_rows])
    assert stopped.n_rounds_ == np.argmin(stopped.losses_) + 1 < 300
    losses = [log_loss(held_out[1], m.predict_proba(held_out[0])) for m in (
        stopped, BoostedTreesClassifier(300, early_stopping=False, random_state=0).fit(X[:n_rows], y[:n_rows])
    )]  # fmt: skip
    assert losses[0] < losses[1]
    assert losses[0] < 1.05 * log_loss(
        held_out[1],
        HistGradientBoostingClassifier(random_state=0).fit(X[:n_rows], y[:n_rows]).predict_proba(held_out[0]),
    )


def test_several_classes_and_a_calibration():
    X, y = load_iris(return_X_y=True)
    model = BoostedTreesClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.96
    scores = model.decision_function(X)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), expected)
    sigmoid = BoostedTreesClassifier(calibration="sigmoid", random_state=0).fit(X, y)
    assert_allclose(sigmoid.decision_function(X), scores)
    assert not np.allclose(sigmoid.predict_proba(X), expected)


def test_values_and_several_targets():
    X, y = load_diabetes(return_X_y=True)
    one = BoostedTreesRegressor(40, early_stopping=False, random_state=0).fit(X, y)
    moved = BoostedTreesRegressor(40, early_stopping=False, random_state=0).fit(X, 1e6 + 100 * y)
    assert_allclose(moved.predict(X), 1e6 + 100 * one.predict(X), rtol=1e-6)
    both = BoostedTreesRegressor(40, early_stopping=False, column_share=1.0, random_state=0).fit(
        X, np.column_stack([y, -y])
    )
    assert_allclose(both.predict(X)[:, 0], -both.predict(X)[:, 1], rtol=1e-6)


def test_rows_of_weight_zero_are_none_and_classes_can_be_weighted():
    X, y = two_classes()
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    some = weight > 0
    model = BoostedTreesClassifier(random_state=0).fit(X, y, sample_weight=weight)
    assert_array_equal(
        model.predict_proba(X), BoostedTreesClassifier(random_state=0).fit(X[some], y[some]).predict_proba(X)
    )
    heavy = BoostedTreesClassifier(class_weight={0: 1.0, 1: 9.0}, random_state=0).fit(X, y)
    assert (heavy.predict(X) == 1).mean() > (model.predict(X) == 1).mean()


def test_threads_sparse_rows_and_single_precision():
    X, y = two_classes()
    X[np.abs(X) < 0.3] = 0.0
    model = BoostedTreesClassifier(20, random_state=0).fit(X, y)
    for other in (BoostedTreesClassifier(20, n_jobs=2, random_state=0).fit(X, y),
                  BoostedTreesClassifier(20, random_state=0).fit(sparse.csr_array(X), y)):  # fmt: skip
        assert_array_equal(other.decision_function(X), model.decision_function(X))
    single = BoostedTreesClassifier(20, random_state=0).fit(X.astype(np.float32), y)
    assert_allclose(single.decision_function(X.astype(np.float32)), model.decision_function(X), atol=1e-6)


def test_a_time_limit_ends_the_rounds():
    X, y = two_classes(3000)
    model = BoostedTreesClassifier(100_000, early_stopping=False, max_time=0.2, random_state=0).fit(X, y)
    assert 0 < model.n_rounds_ < 100_000
    assert model.score(X, y) > 0.8


def test_progress_is_printed(capsys):
    BoostedTreesRegressor(5, verbose=1, random_state=0).fit(*load_diabetes(return_X_y=True))
    assert "[BoostedTreesRegressor] 5 rounds, loss " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"), [("learning_rate", 0.0), ("max_leaves", 1), ("column_share", 1.5), ("l2", -1.0)]
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        BoostedTreesClassifier(**{name: value}).fit(*two_classes(50))
