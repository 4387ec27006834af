"""The Gaussian mixture classifier: exact steps, rising likelihood, weights, missing labels."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from svmosaic import GaussianMixtureClassifier
from svmosaic.datasets import make_xor
from svmosaic.densities.growth import bounded

EXACT = {"tol": 1e-12, "max_iter": 5000, "random_state": 0}
KINDS = [(c, p) for c in ("spherical", "diag", "full") for p in ("all", "class", "none")]


def problem(seed=0, n=240, d=3, n_classes=3):
    """Overlapping blobs, two per class, on features of very different scale and place."""
    X, which = make_blobs(n, d, centers=2 * n_classes, cluster_std=2.0, random_state=seed)
    return X * np.array([1.0, 100.0, 0.01])[:d] + np.array([0.0, 1e3, -5.0])[:d], which % n_classes


@parametrize_with_checks([GaussianMixtureClassifier(2, covariance="full", pooling="none", max_iter=1000)])
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("covariance", "pooling"), KINDS)
def test_joint_is_that_of_its_formula(covariance, pooling):
    X, y = problem()
    model = GaussianMixtureClassifier(3, covariance=covariance, pooling=pooling, max_iter=500, random_state=0).fit(X, y)
    expected = np.zeros((len(X), 3))
    for mean, owner, weight, g in zip(model.means_, model.owner_, model.weights_, model.covariance_group_, strict=True):
        matrix = model.covariances_[g]
        matrix = matrix * np.eye(3) if matrix.ndim < 2 else matrix
        expected[:, owner] += weight * multivariate_normal(mean, matrix).pdf(X)
    assert_allclose(model.predict_joint_log_proba(X), np.log(expected), rtol=1e-8, atol=1e-8)
    assert_allclose(model.score_samples(X), np.log(expected.sum(axis=1)), rtol=1e-8)
    assert_allclose(model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)
    assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), atol=1e-9)
    assert_allclose(model.weights_.sum(), 1.0)
    assert_array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])


@pytest.mark.parametrize(("covariance", "pooling"), KINDS)
@pytest.mark.parametrize("partial", [False, True])
def test_no_step_lowers_the_likelihood(covariance, pooling, partial):
    X, y = problem(1)
    if partial:
        y = np.where(np.arange(len(y)) % 4, -1, y)
    weight = np.random.RandomState(0).uniform(0.5, 2.0, len(y))
    model = GaussianMixtureClassifier(
        4, covariance=covariance, pooling=pooling, tol=1e-6, max_iter=2000, random_state=0, floor=0.05
    ).fit(X, y, weight)
    assert sum(len(path) for path in model.log_likelihood_path_) == model.n_iter_
    for path in model.log_likelihood_path_:
        assert np.diff(path).min(initial=0.0) >= -1e-10
    joint = model.predict_joint_log_proba(X)
    own = np.where(y == -1, model.score_samples(X), joint[np.arange(len(y)), np.maximum(y, 0)])
    assert_allclose(model.log_likelihood_, np.average(own, weights=weight), rtol=1e-8)


def test_one_density_is_naive_bayes_and_linear_discriminant():
    X, y = problem()
    bayes = GaussianMixtureClassifier(pooling="class", floor=1e-12).fit(X, y)
    assert_allclose(bayes.predict_proba(X), GaussianNB(var_smoothing=0).fit(X, y).predict_proba(X), atol=1e-8)
    pooled = GaussianMixtureClassifier(covariance="full", floor=1e-12).fit(X, y)
    assert_allclose(pooled.predict_proba(X), LinearDiscriminantAnalysis("lsqr").fit(X, y).predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(("ours", "theirs"), [("diag", "diag"), ("full", "full"), ("spherical", "spherical")])
def test_agrees_with_scikit_learn_where_its_mixture_fits(ours, theirs):
    X, y = problem(2)
    model = GaussianMixtureClassifier(2, covariance=ours, pooling="none", floor=1e-9, min_count=0, **EXACT).fit(X, y)
    for k in range(3):
        here = model.owner_ == k
        covariance = model.covariances_[model.covariance_group_[here]]
        precision = np.linalg.inv(covariance) if theirs == "full" else 1.0 / covariance
        weights = model.weights_[here] / model.weights_[here].sum()
        # From our solution theirs must not move.
        reference = GaussianMixture(
            int(here.sum()), covariance_type=theirs, reg_covar=0, tol=1e-12, max_iter=2000, weights_init=weights,
            means_init=model.means_[here], precisions_init=precision,
        ).fit(X[y == k])  # fmt: skip
        assert_allclose(reference.means_, model.means_[here], rtol=1e-3, atol=1e-4)
        log_prior = np.log(model.class_prior_[k])
        assert_allclose(
            reference.score_samples(X[y == k]).mean(),
            (model.predict_joint_log_proba(X[y == k])[:, k] - log_prior).mean(), rtol=1e-6,
        )  # fmt: skip


@pytest.mark.parametrize("covariance", ["spherical", "diag", "full"])
def test_weight_two_is_two_copies(covariance):
    X, y = problem(3)
    weight = np.random.RandomState(0).randint(0, 3, len(y))
    settings = {"covariance": covariance, "random_state": 0, "max_iter": 500}
    weighted = GaussianMixtureClassifier(4, **settings).fit(X, y, weight)
    copied = GaussianMixtureClassifier(4, **settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-7)


def test_order_and_scale_of_features_do_not_matter():
    X, y = problem(4)
    one = GaussianMixtureClassifier(4, random_state=0, max_iter=500).fit(X, y)
    other = GaussianMixtureClassifier(4, random_state=0, max_iter=500).fit(X * [3.0, 0.1, 7.0] + 4, y)
    assert_allclose(one.predict_proba(X), other.predict_proba(X * [3.0, 0.1, 7.0] + 4), atol=1e-7)
    shuffled = np.random.RandomState(0).permutation(len(y))
    third = GaussianMixtureClassifier(4, random_state=0, max_iter=500).fit(X[shuffled], y[shuffled])
    assert_allclose(one.predict_proba(X), third.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("n", [1, 2, 6, 8])
def test_growth_reaches_its_number(n):
    X, y = problem(n=600)
    model = GaussianMixtureClassifier(n, min_count=0, random_state=0, max_iter=1000).fit(X, y)
    assert_array_equal(model.n_densities_, [n] * 3)


def test_weak_densities_are_deleted_and_one_stays():
    X, y = problem()
    model = GaussianMixtureClassifier(16, min_count=20, random_state=0, max_iter=1000).fit(X, y)
    assert (model.weights_ * len(y) >= 15).all()
    assert (model.n_densities_ < 16).all()
    all_weak = GaussianMixtureClassifier(8, min_count=1e6, random_state=0, max_iter=1000).fit(X, y)
    assert_array_equal(all_weak.n_densities_, [1, 1, 1])
    assert_allclose(all_weak.class_prior_, np.bincount(y) / len(y))


def test_bounded_covariance_is_the_most_likely():
    rng = np.random.RandomState(0)
    scatter = np.cov(rng.randn(3, 5))
    best = bounded(scatter, 0.5)

    def loss(matrix):
        return np.linalg.slogdet(matrix)[1] + np.trace(np.linalg.solve(matrix, scatter))

    assert np.linalg.eigvalsh(best).min() >= 0.5 - 1e-12
    for _ in range(200):
        other = bounded(best + 0.1 * rng.randn(3, 3), 0.5)
        assert loss(other) >= loss(best) - 1e-12


def test_far_away_nothing_underflows():
    X, y = problem()
    model = GaussianMixtureClassifier(2, random_state=0).fit(X, y)
    far = X.mean(axis=0) + 1e6 * X.std(axis=0) * np.eye(3)
    assert np.isfinite(model.predict_log_proba(far).max(axis=1)).all()
    assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)
    assert (np.exp(model.score_samples(far)) == 0).all()


def test_unlabeled_rows_help_and_are_no_class():
    X, y = make_xor(600, random_state=0)
    few = np.where(np.arange(len(y)) < 16, y, -1)
    alone = GaussianMixtureClassifier(2, random_state=0).fit(X[:16], y[:16])
    model = GaussianMixtureClassifier(2, random_state=0).fit(X, few)
    assert_array_equal(model.classes_, [0, 1])
    assert model.score_samples(X).mean() > alone.score_samples(X).mean()
    everything = GaussianMixtureClassifier(2, random_state=0).fit(X, y)
    gap = np.abs(model.predict_proba(X) - everything.predict_proba(X)).mean()
    assert gap < np.abs(alone.predict_proba(X) - everything.predict_proba(X)).mean()


def test_what_counts_as_unlabeled():
    X, y = make_xor(100, random_state=0)
    assert_array_equal(GaussianMixtureClassifier().fit(X, 2 * y - 1).classes_, [-1, 1])
    three = y.copy()
    three[::3] = -1
    assert_array_equal(GaussianMixtureClassifier().fit(X, three).classes_, [0, 1])
    assert_array_equal(GaussianMixtureClassifier(unlabeled=None).fit(X, three).classes_, [-1, 0, 1])
    names = np.array(["a", "b", "?"])[three]
    assert_array_equal(GaussianMixtureClassifier().fit(X, names).classes_, ["?", "a", "b"])
    marked = GaussianMixtureClassifier(unlabeled="?").fit(X, names)
    assert_array_equal(marked.classes_, ["a", "b"])
    assert_allclose(marked.predict_proba(X), GaussianMixtureClassifier().fit(X, three).predict_proba(X))


def test_a_class_that_the_weights_leave_out_is_named():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"sample_weight in every class, but there are none in array\(\[2\]\)"):
        GaussianMixtureClassifier().fit(X, y, sample_weight=(y < 2).astype(float))


def test_unlabeled_row_of_weight_zero_is_not_there():
    X, y = make_xor(100, random_state=0)
    three = np.where(np.arange(100) < 40, y, -1)
    without = GaussianMixtureClassifier(2, random_state=0).fit(X[:40], y[:40])
    zero = GaussianMixtureClassifier(2, random_state=0).fit(X, three, (np.arange(100) < 40).astype(float))
    assert_allclose(without.predict_proba(X), zero.predict_proba(X))


@pytest.mark.parametrize(("covariance", "pooling"), [("spherical", "none"), ("diag", "class"), ("full", "all")])
def test_samples_come_from_the_mixture(covariance, pooling):
    X, y = problem(n_classes=2)
    model = GaussianMixtureClassifier(2, covariance=covariance, pooling=pooling, random_state=0).fit(X, y)
    drawn, label = model.sample(40_000, random_state=0)
    again = GaussianMixtureClassifier(covariance="full", pooling="class", floor=1e-9).fit(drawn, label)
    assert_allclose(again.class_prior_, model.class_prior_, atol=0.01)
    for k in range(2):
        here = model.owner_ == k
        share = model.weights_[here] / model.weights_[here].sum()
        mean = share @ model.means_[here]
        within = [np.eye(3) * c if c.ndim < 2 else c for c in model.covariances_[model.covariance_group_[here]]]
        between = model.means_[here] - mean
        covariance_of_class = np.tensordot(share, within, 1) + (between * share[:, None]).T @ between
        deviation = np.sqrt(np.diag(covariance_of_class))
        assert_allclose((again.means_[k] - mean) / deviation, 0, atol=0.03)
        assert_allclose(
            again.covariances_[k] / np.outer(deviation, deviation),
            covariance_of_class / np.outer(deviation, deviation), atol=0.05,
        )  # fmt: skip


def test_priors_are_kept():
    X, y = problem()
    model = GaussianMixtureClassifier(2, priors=[0.2, 0.3, 0.5], random_state=0).fit(X, y)
    assert_allclose(model.class_prior_, [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="priors must be 3 positive numbers"):
        GaussianMixtureClassifier(priors=[0.5, 0.5]).fit(X, y)


def test_stopping_early_warns_with_the_remedy():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="max_iter=2 EM steps.*raise max_iter or tol"):
        GaussianMixtureClassifier(4, max_iter=2, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_densities": 0}, "n_densities must be an integer, at least 1, got 0"),
        ({"covariance": "tied"}, "covariance must be one of"),
        ({"pooling": "some"}, "pooling must be one of"),
        ({"floor": 0}, "floor must be a finite number, above 0"),
        ({"min_count": -1}, "min_count must be"),
        ({"split_step": 0}, "split_step must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        GaussianMixtureClassifier(**parameters).fit(X, y)


class _Steps:
    """Counts the steps of EM, and may stop them."""

    def __init__(self, stop_after=None):
        self.stop_after, self.fitted = stop_after, []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        if context.task_name == "EM step":
            self.fitted.append(fitted_estimator.predict(X))
            return len(self.fitted) == self.stop_after
        return None

    def teardown(self, estimator, context):
        pass


def test_each_step_of_em_calls_back_and_prints(capsys):
    X, y = make_xor(random_state=0)
    plain = GaussianMixtureClassifier(2, random_state=0).fit(X, y)
    steps = _Steps()
    model = GaussianMixtureClassifier(2, random_state=0, verbose=1).set_callbacks(steps).fit(X, y)
    assert len(steps.fitted) == model.n_iter_ == plain.n_iter_
    assert_allclose(model.means_, plain.means_, rtol=0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert re.fullmatch(r"\[GaussianMixtureClassifier\] EM step 1: mean log-likelihood \S+, 2 densities", lines[0])
    assert lines[-1].endswith("4 densities")
    steps = _Steps(stop_after=1)
    model.set_callbacks(steps).fit(X, y)
    assert model.n_iter_ == 1
    assert_array_equal(model.predict(X), steps.fitted[0])
