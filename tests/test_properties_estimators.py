"""Every estimator on data as unpleasant as the outside world's: a valid model, or a ValueError that says why not."""

import inspect
import warnings

import numpy as np
import pytest
import strategies as some
from everything import CLASSIFIERS, REGRESSORS
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import get_tags

import svmosaic
from svmosaic.losses import REGRESSION_LOSSES

pytestmark = pytest.mark.usefixtures("short_search")
each = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: e.__name__)
# Few tiles and few iterations: a fit should take milliseconds.
SMALL = {"n_anchors": 5, "n_neighbors": 3, "n_clusters": 3, "n_experts": 3, "branching": (2, 2), "n_tiles": 4}
SEARCH = {"time_budget": None, "max_tiles": 4, "families": ("linear", "local"), "validation_fraction": 0.5}
LIMITS = {
    "MixtureSVC": {"max_iter": 4},
    "HierarchicalMixtureSVC": {"max_iter": 4},
    "MultiTaskMixtureSVC": {"max_iter": 4},
    "LearnedGateSVC": {"max_iter": 3},
    "LearnedGateSVR": {"max_iter": 3},
    "MosaicClassifier": SEARCH,
    "MosaicRegressor": SEARCH,
    # With the search for its parts, a fit takes seconds.
    "FusedSVC": {"svm": SVC(gamma=0.1), "mixture": svmosaic.GaussianMixtureClassifier(2, max_iter=20), "weight": 0.5},
}


def small(estimator, **settings):
    names = inspect.signature(estimator).parameters
    chosen = {**SMALL, "random_state": 0, "max_iter": 200, **LIMITS.get(estimator.__name__, {}), **settings}
    return estimator(**{name: value for name, value in chosen.items() if name in names})


def fit(model, X, y, **kwargs):
    """The warnings of a fit, all of them about convergence; or None if it raised a ValueError with a message."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, **kwargs)
        except ValueError as refusal:
            message = str(refusal)
        else:
            message = None
    if message is not None:
        assert len(message) > 20, f"a message that says nothing: {message}"
        return None
    unexpected = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    assert not unexpected, unexpected[0]
    return caught


def quietly(method, X):
    """What a method says of rows; the model of queries' neighbors fits when it predicts, and may not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(X)


def check_model(model, X, y, caught, weight=None):
    """Finite, certified to its tolerance or warned, answers with labels it was given."""
    found = quietly(model.predict, X)
    assert np.isfinite(quietly(model.decision_function, X)).all()
    assert np.isin(found, np.asarray(y)).all()
    assert found.dtype.kind == np.asarray(y).dtype.kind
    if hasattr(model, "mosaic_"):
        assert np.isfinite(model.mosaic_.coef).all()
        assert np.isfinite(model.mosaic_.intercept).all()
    gap = getattr(model, "dual_gap_", None)
    if gap is not None and not caught:
        total = len(y) if weight is None else np.sum(weight)
        assert (gap <= 1.001 * model.tol * model.C * total).all()


@each
@some.tries(12)
@given(data=st.data())
def test_a_valid_model_or_a_reason(estimator, data):
    X = data.draw(some.matrices())
    y = data.draw(some.targets(len(X)))
    weight = data.draw(some.weights(len(X)))
    model = small(estimator)
    kinds = some.DENSE | (some.SPARSE if get_tags(model).input_tags.sparse else {})
    held = kinds[data.draw(st.sampled_from(sorted(kinds)))](X)
    before = None if weight is None else weight.copy()
    caught = fit(model, held, y, sample_weight=weight)
    if before is not None:
        assert_array_equal(weight, before)
    if caught is not None:
        check_model(model, held, y, caught, weight)


@each
@some.tries(4)
@given(data=st.data())
def test_how_the_rows_are_held_does_not_matter(estimator, data):
    X = data.draw(some.matrices(min_rows=6, dtypes=[np.float64]))
    y = data.draw(some.targets(len(X)))
    held = some.DENSE[data.draw(st.sampled_from(sorted(some.DENSE)))](X)
    one, two = small(estimator), small(estimator)
    if fit(one, X, y) is None:
        with pytest.raises(ValueError, match=r".{20}"):
            two.fit(held, y)
        return
    fit(two, held, y)
    assert_array_equal(quietly(one.decision_function, X), quietly(two.decision_function, held))


@each
@some.tries(3)
@given(data=st.data())
def test_integers_and_halves_are_read_as_numbers(estimator, data):
    """Types that the core does not know are converted, not reinterpreted."""
    dtype = data.draw(st.sampled_from([np.int8, np.uint16, np.int64, np.bool_, np.float16, object]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    X = rng.integers(0, 2 if dtype is np.bool_ else 9, (24, 3))
    y = np.arange(24) % 2
    one, two = small(estimator), small(estimator)
    fit(one, X.astype(float), y)
    fit(two, X.astype(dtype), y)
    assert_allclose(
        quietly(one.decision_function, X.astype(float)), quietly(two.decision_function, X.astype(dtype)),
        rtol=1e-12 if dtype is not np.float16 else 1e-3, atol=1e-3 if dtype is np.float16 else 0,
    )  # fmt: skip


@each
def test_one_row_a_class(estimator):
    X, y = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 5.0]]), np.array(["a", "b", "c"])
    model = small(estimator)
    caught = fit(model, X, y)
    if caught is not None:
        check_model(model, X, y, caught)
    else:
        with pytest.raises(ValueError, match=r"class|row|sample"):
            model.fit(X, y)


@each
def test_one_row_among_ten_thousand(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_001, 2))
    y = np.zeros(10_001, dtype=int)
    X[5000], y[5000] = [40.0, 40.0], 1
    model = small(estimator)
    caught = fit(model, X, y)
    assert caught is not None
    found = quietly(model.predict, X[4900:5100])
    assert set(found) <= {0, 1}
    assert (found == y[4900:5100]).mean() >= 0.95


@pytest.mark.parametrize("scale", some.SCALES)
@each
def test_every_scale_of_the_features(estimator, scale):
    """Nothing overflows or is divided by zero."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.standard_normal((30, 3)) - 4, rng.standard_normal((30, 3)) + 4])
    y = np.repeat([0, 1], 30)
    model = small(estimator)
    caught = fit(model, X * scale, y)
    assert caught is not None
    check_model(model, X * scale, y, caught)


@pytest.mark.parametrize(
    "estimator", [e for e in REGRESSORS if "quantile" in e().get_params()], ids=lambda e: e.__name__
)
@some.tries(12)
@given(data=st.data())
def test_a_valid_regressor_or_a_reason(estimator, data):
    """Values of any size, constant or not, one or several: finite predictions, certified or warned."""
    X = data.draw(some.matrices())
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    y = rng.standard_normal((len(X), data.draw(st.integers(1, 2)))) * 10.0 ** data.draw(st.integers(-12, 12))
    kind = data.draw(st.sampled_from(["plain", "constant", "far", "outlier", "few"]))
    if kind == "constant":
        y[:] = y[0]
    elif kind == "far":
        y += 1e6 * np.abs(y).max()
    elif kind == "outlier":
        y[0] *= 1e6
    elif kind == "few":
        y = np.round(y / max(np.abs(y).max(), 1e-300))
    y = y[:, 0] if data.draw(st.booleans()) else y
    weight = data.draw(some.weights(len(X)))
    model = small(estimator, loss=data.draw(st.sampled_from(sorted({estimator().loss, *REGRESSION_LOSSES}))))
    kinds = some.DENSE | some.SPARSE
    held = kinds[data.draw(st.sampled_from(sorted(kinds)))](X)
    caught = fit(model, held, y, sample_weight=weight)
    if caught is None:
        return
    found = model.predict(held)
    assert found.shape == y.shape
    assert np.isfinite(found).all()
    if kind == "constant":
        assert_array_equal(found, y)
    gap = getattr(model, "dual_gap_", None)
    if gap is not None and not caught:
        assert (gap >= 0).all()
