"""SVM to mixture and back: decision values reproduced, and the printed forms shown to fail."""

import needs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.datasets import make_blobs, make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from papers.data import load
from svmosaic import GaussianMixtureClassifier, mixture_to_svm, svm_to_mixture
from svmosaic.densities import kernel_sums as _densities
from svmosaic.densities.conversion import fit_coefficients, misfit, reduce_expansion


def problem(n_classes=2, seed=0, n=300, weights=None):
    return make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, weights=weights, flip_y=0.1, random_state=seed
    )


def one_vs_rest(**parameters):
    return OneVsRestClassifier(SVC(**parameters))


def agree(svm, X, tolerance=1e-8):
    """Every reading of the mixture gives the SVM's decisions."""
    mixture = svm_to_mixture(svm)
    values = svm.decision_function(X)
    assert_allclose(mixture.decision_function(X), values, atol=tolerance * max(1.0, np.abs(values).max()), rtol=0)
    scores = mixture.class_scores(X)
    assert (scores >= 0).all()
    assert (mixture.coef >= 0).all()
    assert (mixture.constants >= 0).all()
    if values.ndim == 1:
        assert_allclose(scores[:, 1] - scores[:, 0], values, atol=tolerance * max(1.0, np.abs(values).max()))
    else:  # what was added is the same for every class
        added = scores - values
        assert_allclose(added, added[:, :1] * np.ones(scores.shape[1]), atol=tolerance * max(1.0, np.abs(added).max()))
    back = mixture_to_svm(mixture)
    assert_allclose(back.decision_function(X), values, atol=tolerance * max(1.0, np.abs(values).max()), rtol=0)
    clear = np.abs(values) > 1e-6 if values.ndim == 1 else np.diff(np.sort(values, axis=1)[:, -2:])[:, 0] > 1e-6
    assert_array_equal(mixture.predict(X)[clear], svm.predict(X)[clear])
    assert_allclose(mixture.weights_.sum(), 1.0)
    return mixture


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_decision_values_are_reproduced(n_classes, C, seed):
    X, y = problem(n_classes, seed)
    svm = SVC(C=C) if n_classes == 2 else one_vs_rest(C=C)
    agree(svm.fit(X[:200], y[:200]), X[200:])


@needs.data
@pytest.mark.data
@pytest.mark.parametrize("name", ["diabetes", "german", "heart", "vehicle"])
def test_decision_values_are_reproduced_on_the_papers_sets(name):
    data = load(name, test_size=0.2)
    scaler = StandardScaler().fit(data.X_train.astype(np.float64))
    svm = one_vs_rest(C=10.0) if name == "vehicle" else SVC(C=10.0)
    svm.fit(scaler.transform(data.X_train), data.y_train)
    X = scaler.transform(data.X_test).astype(np.float64)
    mixture = agree(svm, X)
    wide = svm_to_mixture(svm, bias="wide")
    assert wide.weights_[-1].sum() > 0.999  # the wide density takes nearly all the weight
    assert np.mean(wide.predict(X) == mixture.predict(X)) > 0.99  # and decides as the constant does


@pytest.mark.parametrize(
    "svm",
    [
        NuSVC(nu=0.3),
        OneVsRestClassifier(SVC(gamma=0.5)),
        GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2),
        SVC(class_weight="balanced", C=100.0),
    ],
    ids=lambda svm: type(svm).__name__,
)
def test_kinds_of_machine(svm):
    X, y = problem()
    agree(svm.fit(X, np.array(["no", "yes"])[y]), X)


def test_sparse_support_vectors():
    X, y = problem()
    dense, rows = SVC().fit(X, y), SVC().fit(sparse.csr_array(X), y)
    assert_allclose(svm_to_mixture(rows).decision_function(X), dense.decision_function(X), atol=1e-8)


def test_machines_of_different_width():
    X, y = problem(3)
    svm = OneVsRestClassifier(GridSearchCV(SVC(), {"gamma": [0.01, 0.3]}, cv=2)).fit(X, y)
    svm.estimators_[0] = SVC(gamma=0.77).fit(X, y == 0)
    mixture = agree(svm, X)
    assert len(np.unique(mixture.gamma)) > 1


def test_shared_support_vectors_are_one_density():
    X, y = problem(4)
    svm = one_vs_rest(C=1.0).fit(X, y)
    total = sum(len(part.support_) for part in svm.estimators_)
    union = len(np.unique(np.concatenate([part.support_ for part in svm.estimators_])))
    assert len(svm_to_mixture(svm).centers) == union < total


def test_it_is_the_mixture_of_equation_7():
    X, y = problem()
    svm = SVC(gamma=0.3, C=2.0).fit(X, y)
    mixture = svm_to_mixture(svm)
    assert_allclose(mixture.variances_, 1 / (2 * 0.3))
    alpha = svm.dual_coef_[0]
    order = np.lexsort(svm.support_vectors_.T)
    ours = np.lexsort(mixture.means_.T)
    assert_allclose(mixture.means_[ours], svm.support_vectors_[order])
    assert_allclose(
        mixture.weights_[ours],
        np.column_stack([np.maximum(-alpha, 0), np.maximum(alpha, 0)])[order] / np.abs(alpha).sum(),
    )
    height = np.array([
        sum(w * multivariate_normal(m, np.eye(6) / 0.6).pdf(X[:5]) for w, m in zip(column, mixture.means_, strict=True))
        for column in mixture.weights_.T
    ]).T  # fmt: skip
    assert_allclose(height * np.exp(mixture.log_scale_) + mixture.constants, mixture.class_scores(X[:5]), rtol=1e-9)


def test_printed_bias_cancels():
    """Equations 2 and 5 add alpha_0 to both classes: what is left is the SVM without its bias, and worse."""
    X, y = problem(weights=[0.8])
    svm = SVC(C=1.0, gamma=2.0).fit(X, y)
    assert abs(svm.intercept_[0]) > 0.1
    printed = svm_to_mixture(svm, bias="both")
    assert_allclose(printed.decision_function(X), svm.decision_function(X) - svm.intercept_, atol=1e-8)
    assert (printed.predict(X) != svm.predict(X)).any()
    rest = problem(weights=[0.8], n=2000)
    assert svm_to_mixture(svm).score(*rest) > printed.score(*rest)


def test_wide_density_stands_for_the_constant_but_takes_the_weight():
    X, y = problem()
    svm = SVC(C=1.0).fit(X, y)
    wide = svm_to_mixture(svm, bias="wide")
    assert_allclose(wide.decision_function(X), svm.decision_function(X), atol=1e-5)
    assert np.abs(wide.decision_function(X) - svm.decision_function(X)).max() > 1e-12
    assert wide.weights_[-1].sum() > 1 - 1e-9
    assert not wide.constants.any()


@pytest.mark.parametrize("covariance", ["spherical", "diag", "full"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_mixture_to_svm_and_back(covariance, n_classes):
    X, y = problem(n_classes)
    X = X @ np.random.RandomState(0).randn(6, 6)
    model = GaussianMixtureClassifier(3, covariance=covariance, random_state=0, max_iter=500).fit(X, y)
    svm = mixture_to_svm(model)
    peak = multivariate_normal(
        np.zeros(6), model.covariances_[0] * np.eye(6) if covariance != "full" else model.covariances_[0]
    ).pdf(np.zeros(6))
    joint = np.exp(model.predict_joint_log_proba(X)) / peak
    expected = joint[:, 1] - joint[:, 0] if n_classes == 2 else joint
    assert_allclose(svm.decision_function(X), expected, atol=1e-8)
    assert_array_equal(svm.predict(X), model.predict(X))
    back = svm_to_mixture(svm)
    assert_allclose(back.class_scores(X), joint, atol=1e-8)
    owned = back.weights_[np.arange(len(model.owner_)), model.owner_]
    assert_allclose(owned, model.weights_, rtol=1e-9)
    # exp(-log_scale_) is the height of a Gaussian: the mixture is again a density.
    assert_allclose(np.exp(-back.log_scale_), peak, rtol=1e-6)


def test_reduction_is_close_and_exact_where_it_can_be():
    X, y = problem()
    svm = SVC(C=10.0).fit(X, y)
    full = svm_to_mixture(svm)
    few = svm_to_mixture(svm, max_densities=20, X=X, random_state=0)
    assert len(few.centers) == 20
    spread = svm.decision_function(X).std()
    close = np.sqrt(np.mean((few.decision_function(X) - svm.decision_function(X)) ** 2)) / spread
    five = svm_to_mixture(svm, max_densities=5, X=X, random_state=0)
    far = np.sqrt(np.mean((five.decision_function(X) - svm.decision_function(X)) ** 2)) / spread
    assert close < far < 1
    assert close < 0.2
    more = svm_to_mixture(svm, max_densities=len(full.centers))
    assert_array_equal(more.centers, full.centers)


def test_reduction_finds_duplicates():
    """Ten centers, each written as three with a third of the weight: ten are enough."""
    rng = np.random.RandomState(0)
    centers, coef = 3 * rng.randn(10, 2), rng.randn(10, 1)
    rows = 3 * rng.randn(500, 2)
    found = reduce_expansion(
        np.repeat(centers, 3, axis=0), np.repeat(coef, 3, axis=0) / 3, np.array([0.5]), 0.5, 10, rows, 0
    )
    fit, target = (
        np.exp(-0.5 * ((rows[:, None] - z) ** 2).sum(axis=2)) @ b + intercept
        for z, b, intercept in (found, (centers, coef, 0.5))
    )
    assert_allclose(fit, target, atol=1e-2 * np.abs(coef).max())


def test_reduction_gradient():
    rng = np.random.RandomState(0)
    rows, target, z = rng.randn(60, 3), rng.randn(60, 2), rng.randn(5, 3)
    value, gradient = misfit(z, rows, target, 0.4, 1e-3)
    step = 1e-6
    for i in range(z.size):
        shift = np.zeros(z.size)
        shift[i] = step
        up, down = (misfit(z + s * shift.reshape(z.shape), rows, target, 0.4, 1e-3)[0] for s in (1, -1))
        assert_allclose((up - down) / (2 * step), gradient[i], atol=1e-7)
    # The coefficients are optimal: none of their neighbors is better.
    kernel, solution, residual, _ = fit_coefficients(z, rows, target, 0.4, 1e-3)
    assert_allclose(kernel.T @ residual / 60 + 1e-3 * solution[:-1], 0, atol=1e-12)
    assert value > 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X, y: SVC().fit(X, y), ValueError, "votes one-vs-one"),
        (lambda X, y: OneVsOneClassifier(SVC()).fit(X, y), ValueError, "only one-vs-rest .* got OneVsOneClassifier"),
        (lambda X, y: SVC(kernel="poly").fit(X, y == 0), ValueError, "only the RBF kernel"),
        (lambda X, y: make_pipeline(StandardScaler(), SVC()).fit(X, y == 0), ValueError, "pipeline"),
        (lambda X, y: LinearSVC().fit(X, y == 0), TypeError, "RBF support vector classifier, got LinearSVC"),
    ],
)
def test_what_cannot_be_converted_is_refused(make, error, message):
    X, y = make_blobs(90, 3, centers=4, random_state=0)
    with pytest.raises(error, match=message):
        svm_to_mixture(make(X, y))


def test_what_is_no_svm_is_refused():
    X, y = problem()
    with pytest.raises(ValueError, match="has 2 covariances and an SVM has one kernel"):
        mixture_to_svm(GaussianMixtureClassifier(pooling="class").fit(X, y))
    with pytest.raises(TypeError, match="got SVC"):
        mixture_to_svm(SVC().fit(X, y))
    with pytest.raises(ValueError, match="X has 5 features"):
        svm_to_mixture(SVC().fit(X, y)).predict(X[:, :5])
    with pytest.raises(ValueError, match="bias must be one of"):
        svm_to_mixture(SVC().fit(X, y), bias="none")
    with pytest.raises(ValueError, match="printed form for two classes"):
        svm_to_mixture(one_vs_rest().fit(*problem(3)), bias="both")


def test_rows_come_in_blocks_and_blocks_change_nothing(monkeypatch):
    rng = np.random.RandomState(0)
    rows, centers, gamma, coef = 100 + rng.randn(97, 4), 100 + rng.randn(13, 4), rng.rand(13), rng.randn(13, 3)
    expected = np.exp(-gamma * ((rows[:, None] - centers) ** 2).sum(axis=2)) @ coef
    assert_allclose(_densities.kernel_sums(rows, centers, gamma, coef), expected, atol=1e-12)
    monkeypatch.setattr(_densities, "_VALUES_PER_BLOCK", 50)
    assert [block.stop - block.start for block in _densities.row_blocks(7, 13)] == [3, 3, 1]
    assert_allclose(_densities.kernel_sums(rows, centers, gamma, coef), expected, atol=1e-12)
    X, y = problem(3)
    model = GaussianMixtureClassifier(2, random_state=0).fit(X, y)
    small = model.predict_proba(X)
    monkeypatch.undo()
    assert_allclose(model.predict_proba(X), small, atol=1e-12)
    assert_allclose(GaussianMixtureClassifier(2, random_state=0).fit(X, y).predict_proba(X), small, atol=1e-8)
