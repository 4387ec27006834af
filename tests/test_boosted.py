"""BoostedLinearSVC: one round is a linear SVM, more agree with AdaBoost of scikit-learn, and it stops in time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import STORAGES, hard_data
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import ConvergenceWarning

from svmosaic import BoostedLinearSVC, LinearSVC
from svmosaic.datasets import make_circle_in_square, make_two_spirals, make_xor

EXACT = {"tol": 1e-10, "max_iter": 100_000, "random_state": 0}


def three_classes(seed=0):
    """Iris with every tenth label wrong, so that no linear SVM is perfect."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = y.copy()
    y[::10] = (y[::10] + 1) % 3
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


DATA = {"two": lambda: hard_data(0)[:2], "three": three_classes}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("data", DATA)
def test_one_round_is_a_linear_svm(data, storage, loss):
    X, y = DATA[data]()
    X = STORAGES[storage](X)
    weight = np.random.RandomState(0).uniform(0.2, 2.0, len(y))
    settings = EXACT | {"C": 0.7, "loss": loss, "intercept_scaling": 1.5, "class_weight": "balanced"}
    boosted = BoostedLinearSVC(1, **settings).fit(X, y, sample_weight=weight)
    linear = LinearSVC(**settings).fit(X, y, sample_weight=weight)
    assert_allclose(boosted.estimator_coef_[0], linear.coef_, atol=1e-5)
    assert_allclose(boosted.intercept_[0], linear.intercept_, atol=1e-5)
    assert_array_equal(boosted.predict(X), linear.predict(X))
    assert (boosted.dual_gap_[0] <= 1e-10 * 0.7 * 2 * weight.sum() * len(y)).all()


# Three classes with the squared hinge only: with the hinge, hard weights leave classes with no weights but the bias,
# whose scores tie, and rounding says who wins.
@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
@pytest.mark.parametrize(("data", "loss"), [("two", "hinge"), ("two", "squared_hinge"), ("three", "squared_hinge")])
def test_agrees_with_scikit_learn(data, loss, learning_rate):
    X, y = DATA[data]()
    weight = np.random.RandomState(1).uniform(0.5, 1.5, len(y))
    settings = EXACT | {"tol": 1e-13, "loss": loss}
    ours = BoostedLinearSVC(6, learning_rate=learning_rate, **settings).fit(X, y, sample_weight=weight)
    # AdaBoost there normalizes the weights to a sum of 1, where ours keep theirs.
    base = LinearSVC(C=weight.sum(), **settings)
    theirs = AdaBoostClassifier(base, n_estimators=6, learning_rate=learning_rate, random_state=0)
    theirs.fit(X, y, sample_weight=weight)
    n = len(theirs.estimators_)
    assert ours.n_estimators_ == n >= 2
    assert_allclose(ours.estimator_errors_, theirs.estimator_errors_[:n], atol=1e-6)
    assert_allclose(ours.estimator_weights_, theirs.estimator_weights_[:n], atol=1e-5)
    scale = 2 if data == "two" else 1  # theirs goes from -2 to 2 for two classes
    assert_allclose(scale * ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    for staged, expected in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        assert_array_equal(staged, expected)


@pytest.mark.parametrize("storage", STORAGES)
def test_weights_are_copies(storage):
    X, y, _ = hard_data(2)
    copies = np.random.RandomState(0).randint(0, 4, len(y))
    weighted = BoostedLinearSVC(6, **EXACT).fit(STORAGES[storage](X), y, sample_weight=copies)
    copied = BoostedLinearSVC(6, **EXACT).fit(STORAGES[storage](np.repeat(X, copies, axis=0)), np.repeat(y, copies))
    assert_allclose(weighted.estimator_weights_, copied.estimator_weights_, atol=1e-5)
    assert_allclose(weighted.estimator_coef_, copied.estimator_coef_, atol=1e-4)


def test_storage_precision_and_threads_do_not_matter():
    X, y = three_classes()
    dense = BoostedLinearSVC(8, **EXACT).fit(X, y)
    assert_array_equal(BoostedLinearSVC(8, n_jobs=2, **EXACT).fit(X, y).estimator_coef_, dense.estimator_coef_)
    sparse = BoostedLinearSVC(8, **EXACT).fit(STORAGES["csr"](X), y)
    assert_array_equal(sparse.predict(STORAGES["csr"](X)), dense.predict(X))
    single = BoostedLinearSVC(8, tol=1e-6, max_iter=100_000, random_state=0).fit(X.astype(np.float32), y)
    assert_allclose(single.estimator_weights_[0], dense.estimator_weights_[0], rtol=1e-3)


def test_the_training_error_is_below_the_product_of_the_rounds():
    """Freund and Schapire's bound, which holds for any base: error <= prod 2 sqrt(e (1 - e))."""
    X, y = make_circle_in_square(300, random_state=0)
    model = BoostedLinearSVC(60, **EXACT).fit(X, y)
    bound = np.cumprod(2 * np.sqrt(model.estimator_errors_ * (1 - model.estimator_errors_)))
    errors = np.array([np.mean(answer != y) for answer in model.staged_predict(X)])
    assert (errors <= bound + 1e-12).all()
    assert errors[-1] < errors[0] - 0.1


def test_stops_at_a_perfect_round():
    X, y = load_iris(return_X_y=True)
    model = BoostedLinearSVC(50, C=100.0, random_state=0).fit(X[:100], y[:100])
    assert model.stop_reason_ == "perfect"
    assert model.n_estimators_ == 1
    assert model.estimator_errors_[0] == 0
    assert np.isfinite(model.estimator_weights_).all()
    assert model.score(X[:100], y[:100]) == 1


def test_stops_at_chance():
    # Rows against themselves with the other label: no SVM does better than chance, whatever the weights.
    X = np.repeat(np.random.RandomState(0).standard_normal((40, 2)), 2, axis=0)
    y = np.arange(80) % 2
    with pytest.warns(ConvergenceWarning, match=r"weighted error of 0\.5, no better than chance"):
        model = BoostedLinearSVC(50, **EXACT).fit(X, y)
    assert (model.stop_reason_, model.n_estimators_) == ("chance", 1)
    assert_array_equal(model.estimator_weights_, [1.0])
    # On the spirals the first SVM is a little better; a later one is not, and is left out, as in the paper.
    model = BoostedLinearSVC(100, random_state=0).fit(*make_two_spirals(400, random_state=0))
    assert model.stop_reason_ == "chance"
    assert 1 <= model.n_estimators_ < 100
    assert (model.estimator_errors_ < 0.5).all()


def test_early_stopping_keeps_the_best_rounds():
    X, y = make_xor(600, random_state=0)
    X = X + 0.3 * X**2  # so that lines help at all
    model = BoostedLinearSVC(
        80, early_stopping=True, n_iter_no_change=4, validation_fraction=0.25, random_state=0
    ).fit(X, y)  # fmt: skip
    scores = model.validation_scores_
    assert model.n_estimators_ == np.argmax(scores) + 1
    assert len(model.estimator_weights_) == len(model.estimator_coef_) == model.n_estimators_
    assert model.stop_reason_ == "validation"
    assert len(scores) == model.n_estimators_ + 4
    assert BoostedLinearSVC(5, random_state=0).fit(X, y).validation_scores_ is None
    with pytest.raises(ValueError, match=r"early_stopping=True holds out validation_fraction=0\.1 of 3 rows"):
        BoostedLinearSVC(early_stopping=True).fit(X[:3], [0, 1, 1])


def test_the_vote_is_between_minus_one_and_one():
    X, y = three_classes()
    votes = BoostedLinearSVC(6, **EXACT).fit(X, y).decision_function(X)
    assert_allclose(votes.sum(axis=1), 0, atol=1e-12)
    assert votes.min() >= -0.5 - 1e-12
    assert votes.max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, r"n_estimators must be an integer, at least 1, got 0"),
        ({"learning_rate": 0.0}, r"learning_rate must be a finite number, above 0, got 0\.0"),
        ({"early_stopping": "yes"}, r"early_stopping must be True or False, got 'yes'"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be .* at most 0\.9, got 1\.0"),
        ({"solver": "sgd"}, r"solver must be one of .* got 'sgd'"),
    ],
)
def test_bad_parameters_are_named(settings, message):
    X, y, _ = hard_data(0)
    with pytest.raises(ValueError, match=message):
        BoostedLinearSVC(**settings).fit(X, y)


def test_one_warning_and_one_line_per_round(capsys):
    X, y, _ = hard_data(0)
    model = BoostedLinearSVC(4, solver="dual", max_iter=1, tol=1e-9, verbose=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"\d+ of \d+ problems stopped after max_iter=1") as warned:
        model.fit(100 * X, y)
    assert len(warned) == 1
    assert capsys.readouterr().out.count("weighted error") == model.n_estimators_
