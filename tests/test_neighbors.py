"""SVM-KNN against one LinearSVC a query."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

from svmosaic import LinearSVC, NeighborsSVC

EXACT = dict(tol=1e-8, max_iter=300_000, random_state=0)


def make_data(n_classes, n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    return 1.2 * rng.standard_normal((n_classes, 3))[y] + rng.standard_normal((n_rows, 3)), y


def slow_scores(X, y, queries, k, n_classes, weight, **settings):
    """What the docstring says, one query at a time."""
    scores = np.empty((len(queries), n_classes))
    for q, x in enumerate(queries):
        near = np.argsort(((X - x) ** 2).sum(axis=1), kind="stable")[:k]
        present = np.unique(y[near])
        if len(present) == 1:
            scores[q] = -1.0
            scores[q, present] = 1.0
            continue
        for c in present:
            model = LinearSVC(**settings).fit(X[near], y[near] == c, weight[near])
            scores[q, c] = model.decision_function(x[None])[0]
        absent = np.setdiff1d(np.arange(n_classes), present)
        scores[q, absent] = min(-1.0, scores[q, present].min() - 1)
    return scores


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_scores_are_those_of_an_svm_on_the_neighbours(n_classes, loss):
    X, y = make_data(n_classes)
    queries, _ = make_data(n_classes, 40, seed=1)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    settings = dict(C=0.7, loss=loss, intercept_scaling=2.0, **EXACT)
    model = NeighborsSVC(12, **settings).fit(X, y, weight)
    expected = slow_scores(X, y, queries, 12, n_classes, weight, **settings)
    if n_classes == 2:
        expected = expected[:, 1]
    assert_allclose(model.decision_function(queries), expected, atol=2e-3)
    assert len(np.unique(np.round(expected, 6))) > 20  # not all of them pure


def test_pure_neighbourhoods_need_no_svm(capsys):
    X, y = make_data(3)
    X += 100.0 * y[:, None]
    model = NeighborsSVC(5, verbose=1).fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert " 0 SVMs" in capsys.readouterr().out


def test_all_rows_as_neighbours_is_the_linear_svm():
    X, y = make_data(2)
    model = NeighborsSVC(10_000, **EXACT).fit(X, y)
    linear = LinearSVC(**EXACT).fit(X, y)
    assert_allclose(model.decision_function(X), linear.decision_function(X), atol=2e-3)


def test_one_neighbour_is_the_nearest_neighbour():
    X, y = make_data(4)
    queries, _ = make_data(4, 100, seed=1)
    assert_array_equal(NeighborsSVC(1).fit(X, y).predict(queries), KNeighborsClassifier(1).fit(X, y).predict(queries))


@pytest.mark.parametrize("storage", [sparse.csr_array, lambda X: X.astype(np.float32)])
def test_storage_does_not_matter(storage):
    X, y = make_data(3)
    dense = NeighborsSVC(15, **EXACT).fit(X, y).decision_function(X)
    other = NeighborsSVC(15, **EXACT).fit(storage(X), y)
    assert_allclose(other.decision_function(storage(X)), dense, atol=1e-4)
    assert_allclose(other.decision_function(X), dense, atol=1e-4)


def test_same_bits_for_any_threads_and_any_company():
    X, y = make_data(3)
    one = NeighborsSVC(15, random_state=0).fit(X, y).decision_function(X)
    assert_array_equal(NeighborsSVC(15, random_state=0, n_jobs=3).fit(X, y).decision_function(X), one)
    alone = NeighborsSVC(15, random_state=0).fit(X, y)
    assert_array_equal(np.vstack([alone.decision_function(x[None]) for x in X[:20]]), one[:20])


def test_rows_of_weight_zero_are_not_neighbours():
    X, y = make_data(3)
    weight = np.ones(len(y))
    weight[::2] = 0
    model = NeighborsSVC(10, random_state=0).fit(X, y, weight)
    without = NeighborsSVC(10, random_state=0).fit(X[1::2], y[1::2])
    assert_array_equal(model.decision_function(X), without.decision_function(X))


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
def test_rows_are_the_models_own(storage):
    X, y = make_data(2)
    X = storage(X)
    model = NeighborsSVC(20).fit(X, y)
    expected, queries = model.decision_function(X), X.copy()
    (X.data if sparse.issparse(X) else X)[:] = 0
    assert_array_equal(model.decision_function(queries), expected)


def test_class_weight_multiplies_the_cost():
    X, y = make_data(2)
    by_class = NeighborsSVC(20, class_weight={1: 3.0}, random_state=0).fit(X, y)
    by_row = NeighborsSVC(20, random_state=0).fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))


def test_warns_when_stopped_early():
    X, y = make_data(2)
    model = NeighborsSVC(50, C=100.0, tol=1e-9, max_iter=2, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2 epochs"):
        model.predict(X)
