"""LinearSVC: certified, in agreement with liblinear, and true to the identities."""

import warnings

import numpy as np
import pytest
import reference
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from problems import STORAGES, badly_scaled_data, hard_data
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from svmosaic import LinearSVC

LOSSES = ["hinge", "squared_hinge"]
EXACT = {"tol": 1e-10, "max_iter": 100_000, "random_state": 0}


def objective(model, X, signs, cost, bias=1.0, output=0):
    """The docstring's objective at the fitted weights."""
    v = np.append(model.coef_[output], np.ravel(model.intercept_)[output] / bias)
    return reference.primal(reference.augment(X, bias), signs, cost, v, reference.POWER[model.loss])


@pytest.mark.parametrize("solver", ["auto", "dual", "newton"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_liblinear(dtype, storage, loss, solver):
    X, y, cost = hard_data(0, dtype=dtype)
    X = STORAGES[storage](X)
    ours = LinearSVC(2.0, loss=loss, solver=solver, intercept_scaling=1.5, **EXACT).fit(X, y, sample_weight=cost)
    peer = sklearn.svm.LinearSVC(
        C=2.0, loss=loss, intercept_scaling=1.5, tol=1e-7, max_iter=1_000_000, random_state=0
    ).fit(X, y, sample_weight=cost)
    values = [objective(model, X, y, 2.0 * cost, 1.5) for model in (ours, peer)]
    assert_allclose(values[0], values[1], rtol=1e-6)
    assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)
    assert ours.dual_gap_[0] <= 1e-10 * 2.0 * cost.sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_every_class_is_certified(loss):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(loss=loss, tol=1e-6, random_state=0).fit(X, y)
    peer = sklearn.svm.LinearSVC(loss=loss, tol=1e-7, max_iter=1_000_000, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.dual_gap_.shape == (3,)
    for c in range(3):
        signs = np.where(y == c, 1, -1)
        value, best = (objective(m, X, signs, np.ones(len(y)), output=c) for m in (model, peer))
        assert value - best <= 1e-6 * len(y)
        assert -1e-12 <= model.dual_gap_[c] <= 1e-6 * len(y)
    assert_array_equal(model.predict(X), np.argmax(X @ model.coef_.T + model.intercept_, axis=1))


def test_without_intercept():
    X, y, _ = hard_data(1)
    model = LinearSVC(fit_intercept=False, **EXACT).fit(X, y)
    peer = sklearn.svm.LinearSVC(fit_intercept=False, loss="hinge", tol=1e-7, max_iter=1_000_000).fit(X, y)
    assert_array_equal(model.intercept_, 0.0)
    values = [objective(m, X, y, np.ones(len(y))) for m in (model, peer)]
    assert_allclose(values[0], values[1], rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_default_solver_converges_on_badly_scaled_data(loss):
    X, y = badly_scaled_data()
    model = LinearSVC(100.0, loss=loss, tol=1e-6).fit(X, y)  # a warning would be an error
    assert model.dual_gap_[0] <= 1e-6 * 100.0 * len(y)


def test_sample_weights_are_copies():
    X, y, _ = hard_data(2)
    copies = np.random.RandomState(2).randint(0, 4, len(y))
    weighted = LinearSVC(**EXACT).fit(X, y, sample_weight=copies)
    copied = LinearSVC(**EXACT).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    assert_allclose(weighted.coef_, copied.coef_, atol=1e-4)
    assert_allclose(weighted.intercept_, copied.intercept_, atol=1e-4)


def test_class_weights_are_sample_weights():
    X, y, weight = hard_data(3)
    by_class = LinearSVC(class_weight={1: 3.0, -1: 0.5}, **EXACT).fit(X, y, sample_weight=weight)
    by_row = LinearSVC(**EXACT).fit(X, y, sample_weight=weight * np.where(y == 1, 3.0, 0.5))
    assert_array_equal(by_class.coef_, by_row.coef_)
    balanced = LinearSVC(class_weight="balanced", **EXACT).fit(X, y)
    by_hand = LinearSVC(**EXACT).fit(X, y, sample_weight=len(y) / (2 * np.where(y == 1, sum(y == 1), sum(y == -1))))
    assert_allclose(balanced.coef_, by_hand.coef_, atol=1e-8)


@pytest.mark.parametrize("solver", ["dual", "newton"])
def test_same_bits_for_every_n_jobs_and_every_run(solver):
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    runs = [LinearSVC(solver=solver, tol=1e-3, n_jobs=n, random_state=0).fit(X, y) for n in (None, 2, 2, -1)]
    for other in runs[1:]:
        assert_array_equal(runs[0].coef_, other.coef_)
        assert_array_equal(runs[0].dual_gap_, other.dual_gap_)
        assert_array_equal(runs[0].decision_function(X), other.decision_function(X))


def test_dense_csr_and_float32_agree():
    X, y, _ = hard_data(4, dtype=np.float32)
    models = [
        LinearSVC(**EXACT).fit(STORAGES[storage](X.astype(dtype)), y)
        for storage in STORAGES
        for dtype in (np.float32, np.float64)
    ]
    for other in models[1:]:
        assert_allclose(models[0].coef_, other.coef_, atol=1e-4)


def test_rows_kept_as_float32_are_not_copied():
    """Memory is half the promise: no float64 copy of X (8 MB here) may be made on the way."""
    import tracemalloc

    X, y = make_classification(20_000, 100, random_state=0)
    X = X.astype(np.float32)
    tracemalloc.start()
    LinearSVC(tol=1e-2, random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes


def test_string_labels_and_shapes():
    X, y, _ = hard_data(5)
    names = np.where(y == 1, "yes", "no")
    model = LinearSVC(random_state=0).fit(X, names)
    assert_array_equal(model.classes_, ["no", "yes"])
    assert model.coef_.shape == (1, X.shape[1])
    assert model.intercept_.shape == (1,)
    assert model.decision_function(X).shape == (len(y),)
    assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


def test_a_class_whose_rows_all_have_weight_zero():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(random_state=0).fit(X, y, sample_weight=(y != 1).astype(float))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert not (model.predict(X) == 1).any()


def test_early_stop_warns_with_both_gaps_and_what_to_do():
    X, y, _ = hard_data(6)
    with pytest.warns(ConvergenceWarning) as caught:
        model = LinearSVC(solver="dual", tol=1e-12, max_iter=3, random_state=0).fit(X, y)
    message = str(caught[0].message)
    for part in (
        "LinearSVC: 1 of 1", "max_iter=3", f"gap of {model.dual_gap_[0]:.3g}",
        f"above the required {1e-12 * len(y):.3g}",
        "Standardize the features, increase max_iter, raise tol, or lower C",
    ):  # fmt: skip
        assert part in message
    assert model.n_iter_ == 3


def test_verbose_prints_objective_and_gap(capsys):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(verbose=1, random_state=0).fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if "required" in line]
    assert len(lines) == 3
    assert lines[0].startswith("[LinearSVC] output 1/3: objective ")
    assert f"gap {model.dual_gap_[2]:.3g}" in lines[2]


def test_quiet_by_default(capsys):
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVC().fit(X, y).predict(X)
    assert capsys.readouterr().out == ""
