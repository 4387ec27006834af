"""FusedSVC: its ends are its parts, its scale matters, its choice is an insurance."""

from pathlib import Path

import needs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from papers.data import load
from svmosaic import FusedSVC, GaussianMixtureClassifier, mixture_to_svm, svm_to_mixture
from svmosaic.datasets import make_xor

# A gamma and a tolerance of its own: "scale" looks at the rows without their weights.
FIXED = FusedSVC(SVC(gamma=0.1, tol=1e-12), GaussianMixtureClassifier(2, max_iter=1000), weight=0.5)
CHOSEN = FusedSVC(SVC(), weight="auto", densities=(1, 2), cv=2)


def problem(n_classes=2, seed=0, n=300, flip=0.1):
    return make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=flip, class_sep=1.5, random_state=seed
    )


def why_not(estimator):
    if estimator.weight == "auto":
        folds = "repeated rows fall into other folds than one row of twice the weight"
        return {"check_sample_weight_equivalence_on_dense_data": folds}
    return {}


@parametrize_with_checks([CHOSEN], expected_failed_checks=why_not)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("scale", ["median", "raw"])
def test_the_ends_are_the_parts(n_classes, scale):
    X, y = problem(n_classes)
    svm, mixture = SVC(C=10.0), GaussianMixtureClassifier(4, max_iter=1000, random_state=1)
    alone = {1: (svm if n_classes == 2 else OneVsRestClassifier(svm)), 0: mixture}
    for weight, part in alone.items():
        fused = FusedSVC(svm, mixture, weight=weight, scale=scale, random_state=0).fit(X[:200], y[:200])
        own = {1: fused.svm_, 0: fused.mixture_}[weight]
        assert_allclose(fused.decision_function(X), own.decision_function(X), atol=1e-8)
        assert_array_equal(fused.predict(X), own.predict(X))
        if weight == 1:
            assert_allclose(
                fused.decision_function(X), clone(part).fit(X[:200], y[:200]).decision_function(X), atol=1e-8
            )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_blend_is_that_of_its_formula(n_classes):
    X, y = problem(n_classes)
    fused = FusedSVC(SVC(), GaussianMixtureClassifier(2, max_iter=1000), weight=0.3, random_state=0).fit(X, y)
    density = np.exp(fused.log_ratio_) * np.exp(fused.mixture_.predict_joint_log_proba(X))
    density = density[:, 1] - density[:, 0] if n_classes == 2 else density
    assert_allclose(fused.decision_function(X), 0.3 * fused.svm_.decision_function(X) + 0.7 * density, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_median_leads_are_equal(n_classes):
    X, y = problem(n_classes)
    fused = FusedSVC(SVC(), GaussianMixtureClassifier(2, max_iter=1000), weight=0.5, random_state=0).fit(X, y)

    def median_lead(values):
        return np.median(np.abs(values) if values.ndim == 1 else np.diff(np.sort(values, axis=1)[:, -2:]))

    svm, density = fused.svm_.decision_function(X), fused._blend.scaled_densities(X)
    assert_allclose(median_lead(svm), median_lead(density), rtol=0.05)  # the two medians interpolate differently


def test_blend_is_a_mixture():
    """The fused classifier is the mixture of both parts' densities, with weights w and 1 - w."""
    X, y = problem()
    mixture = GaussianMixtureClassifier(2, max_iter=1000, covariance="spherical")
    fused = FusedSVC(SVC(), mixture, weight=0.4, random_state=0).fit(X, y)
    one, other = fused.svm_mixture_, svm_to_mixture(mixture_to_svm(fused.mixture_))
    peak = np.exp(fused.log_ratio_ - other.log_scale_)
    scores = 0.4 * one.class_scores(X) + 0.6 * peak * other.class_scores(X)
    assert (scores >= 0).all()
    assert_allclose(scores[:, 1] - scores[:, 0], fused.decision_function(X), atol=1e-8)


def test_on_the_raw_scale_the_weight_does_nothing():
    X, y = problem(n=600, flip=0.3)
    X = np.hstack([X, np.random.RandomState(0).randn(600, 18)])
    moved = {}
    for scale in ("raw", "median"):
        fused = FusedSVC(SVC(C=10, gamma=0.005), GaussianMixtureClassifier(8, max_iter=1000), scale=scale, weight=0.5,
                         random_state=0).fit(X[:300], y[:300])  # fmt: skip
        less, more = (fused._blend.decision_function(X[300:], w) > 0 for w in (0.1, 0.9))
        moved[scale] = np.mean(less != more)
    assert moved["raw"] < 0.01
    assert moved["median"] > 0.02


@needs.data
@pytest.mark.data
@pytest.mark.parametrize("name", ["diabetes", "german", "heart", "vehicle"])
def test_identities_on_the_papers_sets(name):
    data = load(name, test_size=0.2)
    scaler = StandardScaler().fit(data.X_train.astype(np.float64))
    X, X_test = (scaler.transform(part).astype(np.float64) for part in (data.X_train, data.X_test))
    mixture = GaussianMixtureClassifier(4, max_iter=1000)
    fits = {
        w: FusedSVC(SVC(C=10.0, gamma=0.01), mixture, weight=w, scale=s, random_state=0).fit(X, data.y_train)
        for w, s in ((0, "median"), (1, "median"), (0.5, "raw"))
    }
    assert_array_equal(fits[0].predict(X_test), fits[0].mixture_.predict(X_test))
    assert_array_equal(fits[1].predict(X_test), fits[1].svm_.predict(X_test))
    # Raw scales differ by many orders of magnitude: at half and half the larger part decides nearly alone.
    ratio = fits[0.5].log_ratio_ - fits[1].log_ratio_
    assert abs(ratio) / np.log(10) > 3
    stronger = fits[0] if ratio > 0 else fits[1]
    assert np.mean(fits[0.5].predict(X_test) == stronger.predict(X_test)) > 0.95


def test_far_away_densities_do_not_tie():
    X, y = problem()
    fused = FusedSVC(SVC(), GaussianMixtureClassifier(), weight=0.0, random_state=0).fit(X, y)
    far = 1e3 * np.vstack([np.eye(6), -np.eye(6)])
    assert_array_equal(fused.predict(far), fused.mixture_.predict(far))
    assert len(np.unique(fused.predict(far))) == 2
    half = clone(fused).set_params(weight=0.5).fit(X, y)
    assert np.isfinite(half.decision_function(far)).all()


def test_many_dimensions_do_not_overflow():
    rng = np.random.RandomState(0)
    X, y = rng.randn(80, 900), np.arange(80) % 2
    X[y == 1] += 0.2
    fused = FusedSVC(SVC(), GaussianMixtureClassifier(pooling="class"), weight=0.5, random_state=0).fit(X, y)
    assert np.exp(fused.mixture_.predict_joint_log_proba(X)).max() == 0  # densities as such underflow
    values = fused.decision_function(X)
    assert np.isfinite(values).all()
    assert (np.abs(fused._blend.scaled_densities(X)) > 0).mean() > 0.4


def test_auto_is_the_best_of_its_table_and_an_insurance():
    X, y = problem(seed=1, n=600, flip=0.2)
    bad = SVC(C=1000, gamma=5.0)
    fused = FusedSVC(bad, densities=(1, 2, 4), random_state=0).fit(X[:300], y[:300])
    assert fused.cv_accuracy_.shape == (3, 11)
    a = np.flatnonzero(fused.densities_ == fused.mixture_.n_densities)
    chosen = fused.cv_accuracy_[a, fused.weights_ == fused.weight_].item()
    best = fused.cv_accuracy_.max()
    assert chosen >= best - 0.5 * np.sqrt(best * (1 - best) / 300)
    # The column of weight 1 is the SVM's own cross-validated accuracy, whatever the mixture.
    assert_allclose(fused.cv_accuracy_[:, -1], fused.cv_accuracy_[0, -1])
    assert fused.score(X[300:], y[300:]) > fused.svm_.score(X[300:], y[300:]) + 0.05


def test_a_blend_has_to_earn_its_place():
    fused = FusedSVC()
    fused.weights_, fused.densities_ = np.array([0.0, 0.5, 1.0]), np.array([1, 4])
    fused.cv_accuracy_ = np.array([[0.80, 0.81, 0.70], [0.79, 0.81, 0.70]])
    assert fused._best(n_rows=100) == (1, 0.0)  # half a standard error is 0.02
    assert fused._best(n_rows=10_000) == (1, 0.5)  # here it is 0.002
    fused.cv_accuracy_[1, 2] = 0.80
    assert fused._best(n_rows=100) == (1, 0.0)


def test_given_mixture_keeps_its_densities():
    X, y = problem()
    fused = FusedSVC(SVC(), GaussianMixtureClassifier(3, max_iter=1000), random_state=0, cv=KFold(3)).fit(X, y)
    assert_array_equal(fused.densities_, [3])
    assert fused.mixture_.n_densities == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_own_svm_is_the_best_of_its_grid(n_classes):
    X, y = problem(n_classes, n=60)
    fused = FusedSVC(weight=0.5, cv=2, random_state=0).fit(X, y)
    base = SVC() if n_classes == 2 else OneVsRestClassifier(SVC())
    prefix = "" if n_classes == 2 else "estimator__"
    unit = 1 / (6 * np.mean((X - X.mean(axis=0)) ** 2))
    search = GridSearchCV(
        base,
        {prefix + "C": [0.1, 1, 10, 100, 1000], prefix + "gamma": [unit / 64, unit / 16, unit / 4, unit, 4 * unit]},
        cv=fused._folds(y, np.random.RandomState(0).randint(2**31 - 1)),
    ).fit(X, y)
    assert_allclose(search.decision_function(X), fused.svm_.decision_function(X), atol=1e-6)


def test_reduction_reports_its_cost():
    X, y = problem()
    fused = FusedSVC(SVC(C=10.0), weight=1.0, max_densities=15, cv=3, random_state=0).fit(X, y)
    report = fused.reduction_
    assert report.n_support == len(fused.svm_.support_)
    assert report.n_densities == len(fused.svm_mixture_.centers) == 15
    folds = list(fused._folds(y, np.random.RandomState(0).randint(2**31 - 1)).split(X, y))
    right = sum(np.sum(SVC(C=10.0).fit(X[a], y[a]).predict(X[b]) == y[b]) for a, b in folds)
    assert_allclose(report.accuracy_full, right / len(y))
    assert abs(report.accuracy_full - report.accuracy_reduced) <= 1 - report.agreement + 1e-12
    assert_array_equal(fused.predict(X), fused.svm_mixture_.predict(X))


def test_unlabeled_rows_reach_the_mixture_only():
    X, y = make_xor(300, random_state=0)
    few = np.where(np.arange(300) < 40, y, -1)
    fused = FusedSVC(SVC(), GaussianMixtureClassifier(2, max_iter=1000), weight=0.5, random_state=0).fit(X, few)
    assert_array_equal(fused.classes_, [0, 1])
    assert_allclose(fused.svm_.decision_function(X), SVC().fit(X[:40], y[:40]).decision_function(X), atol=1e-8)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    mixture = GaussianMixtureClassifier(2, max_iter=1000, random_state=seed).fit(X, few)
    assert_allclose(fused.mixture_.predict_proba(X), mixture.predict_proba(X), atol=1e-8)


def test_weighted_rows_are_copies():
    X, y = problem()
    weight = np.random.RandomState(0).randint(0, 3, len(y))
    settings = FusedSVC(
        SVC(gamma=0.1, tol=1e-8), GaussianMixtureClassifier(2, max_iter=1000), weight=0.5, random_state=0
    )
    one = clone(settings).fit(X, y, weight)
    other = clone(settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(one.log_ratio_, other.log_ratio_, atol=1e-5)
    assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"weight": 1.5}, ValueError, "weight must be a finite number, at least 0, at most 1, got 1.5"),
        ({"weight": "half"}, ValueError, "weight must be a number in"),
        ({"scale": "mean"}, ValueError, "scale must be one of"),
        ({"max_densities": 0}, ValueError, "max_densities must be"),
        ({"densities": ()}, ValueError, "densities must name"),
        ({"mixture": SVC()}, TypeError, "mixture must be None or"),
        ({"svm": SVC(kernel="linear"), "weight": 0.5}, ValueError, "only the RBF kernel"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    X, y = problem()
    with pytest.raises(error, match=message):
        FusedSVC(**parameters).fit(X, y)


def test_weights_that_would_be_lost_are_refused():
    X, y = problem(3)
    svm = OneVsRestClassifier(SVC())
    FusedSVC(svm, weight=0.5).fit(X, y)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        FusedSVC(svm, weight=0.5).fit(X, y, np.arange(len(y)) + 1.0)


def test_the_code_of_the_page_runs():
    page = (Path(__file__).parents[1] / "docs" / "fusion.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)
    assert names["model"].score(names["X"], names["y"]) > 0.9
    assert len(names["small"].centers) == 10
    assert names["new_rows"].shape == (5, 2)
