"""Bad input gives a ValueError that names the argument and the value."""

import inspect
from functools import cache

import numpy as np
import pandas as pd
import pytest
from everything import CLASSIFIERS, ESTIMATORS, REGRESSORS
from numpy.testing import assert_array_equal
from problems import hard_data
from scipy import sparse
from sklearn.utils import get_tags

import svmosaic
from svmosaic import ClusteredSVC, GaussianMixtureClassifier, KMeansSVC, LinearSVC, MultiTaskMixtureSVC
from svmosaic._validation import classes_and_labels

pytestmark = pytest.mark.usefixtures("short_search")
SPARSE = [estimator for estimator in ESTIMATORS if get_tags(estimator()).input_tags.sparse]
each = pytest.mark.parametrize("estimator", ESTIMATORS)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS)
each_regressor = pytest.mark.parametrize("estimator", REGRESSORS)
with_quantiles = pytest.mark.parametrize("estimator", [e for e in REGRESSORS if "quantile" in e().get_params()])
X, Y, _ = hard_data(0)


@cache
def fitted(estimator, storage):
    """A model that is only asked to predict: one fit serves every kind of bad rows."""
    return estimator().fit(storage(X), Y)


def spoilt(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


@pytest.mark.parametrize(
    ("estimator", "storage"),
    [(estimator, np.asarray) for estimator in ESTIMATORS] + [(estimator, sparse.csr_array) for estimator in SPARSE],
)
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_nan_and_infinity(value, name, storage, estimator):
    remedy = {"NaN": "Impute missing values, or fit Mosaic(Classifier|Regressor) to a DataFrame"}.get(name, name)
    with pytest.raises(ValueError, match=f"X contains .*{remedy}"):
        estimator().fit(storage(spoilt(value)), Y)
    with pytest.raises(ValueError, match=f"X contains.*{'impute missing values' if name == 'NaN' else ''}"):
        fitted(estimator, storage).predict(storage(spoilt(value)))


@pytest.mark.parametrize("estimator", [estimator for estimator in ESTIMATORS if estimator not in SPARSE])
def test_sparse_rows_where_only_dense_ones_will_do(estimator):
    refused = r"Sparse (data was passed for X, but dense data is required|input is not supported: .* needs dense rows)"
    with pytest.raises((TypeError, ValueError), match=refused):
        estimator().fit(sparse.csr_array(X), Y)
    model = fitted(estimator, np.asarray)
    if isinstance(model, MultiTaskMixtureSVC):  # only fitting needs dense rows
        np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), model.predict(X))
        return
    with pytest.raises((TypeError, ValueError), match=refused):
        model.predict(sparse.csr_array(X))


@each
def test_nan_in_y(estimator):
    y = Y.astype(float)
    y[2] = np.nan
    with pytest.raises(ValueError, match="y contains NaN"):
        estimator().fit(X, y)


@each_classifier
def test_labels_that_are_missing(estimator):
    text = [None if k == 2 else str(label) for k, label in enumerate(Y)]
    for y in (
        text,
        np.array([np.nan if label is None else label for label in text], dtype=object),
        pd.Series(text, dtype="string"),
        pd.Series(text, dtype="category"),
        pd.Series(Y, dtype="Int64").where(np.arange(len(Y)) != 2),
    ):
        with pytest.raises(
            ValueError, match=r"y contains NaN or None .* for 1 of 120 rows, first at position 2: leave"
        ):
            estimator().fit(X, y)


@each_classifier
def test_labels_that_are_objects(estimator):
    """scikit-learn says that they are unknown, and perhaps a target of a regression."""
    for y, types, remedy in (
        ((Y == 1).astype(object), "bool", "bool"),
        (Y.astype(int).astype(object), "int", "int"),
        (np.where(Y == 1, "one", Y.astype(object)), "int and str", "str"),
    ):
        message = rf"y is an array of objects of type {types}; for classes, pass y.astype\({remedy}\)"
        with pytest.raises(ValueError, match=message):
            estimator().fit(X, y)


@each_classifier
def test_one_class_only(estimator):
    with pytest.raises(ValueError, match=r"at least two classes.*one class: .*'only'"):
        estimator().fit(X, np.full(len(X), "only"))


@each_classifier
def test_one_class_left_by_the_weights(estimator):
    with pytest.raises(ValueError, match=r"two classes with positive sample_weight, got only \[1\]"):
        estimator().fit(X, Y, sample_weight=(Y == 1).astype(float))


@each
def test_weights_negative_zero_nan_or_too_few(estimator):
    weight = np.ones(len(Y))
    weight[4] = -2.5
    with pytest.raises(ValueError, match=r"sample_weight must not be negative, got -2.5 for row 4"):
        estimator().fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"sample_weight .* is zero for every row"):
        estimator().fit(X, Y, sample_weight=np.zeros(len(Y)))
    weight[4] = np.nan
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        estimator().fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(7,\)"):
        estimator().fit(X, Y, sample_weight=np.ones(7))
    with pytest.raises(ValueError, match=r"sample_weight must hold one number per row: .*'age'"):
        estimator().fit(X, Y, sample_weight="age")


@each
def test_wrong_feature_count(estimator):
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 7 features"):
        fitted(estimator, np.asarray).predict(X[:, :2])


@each
def test_not_numeric(estimator):
    words = np.full((len(Y), 2), "word", dtype=object)
    takes_tables = "categorical" in estimator().get_params()
    refused = r"X has no column to learn from: 'x0' \(constant\)" if takes_tables else r"X must be numeric: .*'word'"
    with pytest.raises(ValueError, match=refused):
        estimator().fit(words, Y)
    with pytest.raises(ValueError, match=r"X must be numeric: .*'word'"):
        fitted(estimator, np.asarray).predict(words)


@each
def test_three_dimensions(estimator):
    with pytest.raises(ValueError, match=r"X must have two dimensions, got an array of shape \(120, 7, 1\)"):
        estimator().fit(X[:, :, None], Y)
    with pytest.raises(ValueError, match=r"X must have two dimensions, got an array of shape \(120, 7, 1\)"):
        fitted(estimator, np.asarray).predict(X[:, :, None])


@each_regressor
def test_values_that_are_none(estimator):
    for bad, words in ((np.nan, "contains NaN"), (np.inf, "contains infinity"), (-np.inf, "contains infinity")):
        y = X[:, 0].copy()
        y[3] = bad
        for given in (y, np.stack([X[:, 1], y], axis=1)):
            with pytest.raises(ValueError, match=f"Input y {words}.* Leave the rows without a known y out"):
                estimator().fit(X, given)
    with pytest.raises(ValueError, match=r"y must hold numbers for .*, got 'only'; .* use a classifier"):
        estimator().fit(X, np.full(len(X), "only"))
    with pytest.raises(ValueError, match=r"Input y contains NaN\. Leave the rows without a known y out"):
        estimator().fit(X, [None, *X[1:, 0]])
    with pytest.raises(ValueError, match=r"Complex data not supported"):
        estimator().fit(X, X[:, 0] + 1j)
    with pytest.raises(ValueError, match=r"y must have one or two dimensions for .*, got shape \(120, 2, 1\)"):
        estimator().fit(X, np.zeros((120, 2, 1)))
    with pytest.raises(ValueError, match=r"y must be dense for .* pass y.toarray\(\)"):
        estimator().fit(X, sparse.csr_array(X[:, :2]))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 5\]"):
        estimator().fit(X, X[:5, 0])
    with pytest.raises(ValueError, match=r"y is too large: its spread overflows float64 \(largest 1e\+308\); scale it"):
        estimator().fit(X, np.where(X[:, 0] > 0, 1e308, -1e308))


@with_quantiles
@pytest.mark.parametrize("quantile", [0, 1, 0.0, 1.0, -0.5, 2, np.nan, "0.5", None, (0.1, 1.5)])
def test_quantiles_out_of_range(estimator, quantile):
    with pytest.raises(ValueError, match=r"quantile must be a finite number, above 0, below 1, got"):
        estimator(loss="quantile", quantile=quantile).fit(X, X[:, 0])


@with_quantiles
def test_several_quantiles_need_their_loss_and_one_target(estimator):
    with pytest.raises(ValueError, match=r"quantile=\(0.1, 0.9\) has several values, which loss='epsilon_insens"):
        estimator(loss="epsilon_insensitive", quantile=(0.1, 0.9)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"several quantiles need a one-dimensional y, got y of shape \(120, 2\)"):
        estimator(loss="quantile", quantile=(0.1, 0.9)).fit(X, X[:, :2])
    with pytest.raises(ValueError, match=r"quantile must be .* got an empty sequence"):
        estimator(loss="quantile", quantile=()).fit(X, X[:, 0])


@each_classifier
def test_lengths_and_kinds_of_y(estimator):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 5\]"):
        estimator().fit(X, Y[:5])
    with pytest.raises(ValueError, match=r"y should be a 1d array, got an array of shape \(120, 2\)"):
        estimator().fit(X, np.stack([Y, Y], axis=1))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        estimator().fit(X, X[:, 1])


BAD = [
    *[("C", value) for value in (0, -1.0, np.nan, np.inf, "1", None, True, 10**400)],
    *[("n_clusters", value) for value in (0, -3, 2.5, "4", None)],
    *[("global_reg", value) for value in (0.0, -1.0, np.inf)],
    *[("tol", value) for value in (0, -1e-3, "small")],
    *[("max_iter", value) for value in (0, 10.5)],
    *[("intercept_scaling", value) for value in (0, -1)],
    ("loss", "logistic"),
    ("loss", ["hinge"]),
    ("solver", "lbfgs"),
    ("class_weight", "even"),
    ("class_weight", [1, 2]),
    ("class_weight", {1: -1.0, -1: 1.0}),
    ("class_weight", {1: np.nan, -1: 1.0}),
    ("clusterer", "spectral"),
    ("clusterer", 3),
    ("coupling", "clustered"),
    *[(name, "no") for name in ("fit_intercept", "normalize_y", "learn_gate", "polish", "blend", "shuffle", "average")],
    ("fit_intercept", None),
]
# EM may be told to go on while anything improves; a duality gap of zero is out of reach.
EM = (svmosaic.MixtureSVC, svmosaic.HierarchicalMixtureSVC, svmosaic.MultiTaskMixtureSVC, GaussianMixtureClassifier)


def bad_parameters():
    """Every estimator with what is bad for the parameters that it has."""
    return [
        pytest.param(estimator, name, value, id=f"{estimator.__name__}-{name}-{value!r:.20}")
        for estimator in ESTIMATORS
        for name, value in BAD
        if name in inspect.signature(estimator).parameters
        and not (name == "tol" and value == 0 and issubclass(estimator, EM))
    ]


@pytest.mark.parametrize(("estimator", "name", "value"), bad_parameters())
def test_parameters(estimator, name, value):
    with pytest.raises(ValueError, match=f"^{name} must ") as caught:
        estimator(**{name: value}).fit(X, Y)
    assert repr(value) in str(caught.value)


def test_each_bad_value_is_tried_on_some_estimator():
    tried = {name for _, name, _ in (case.values for case in bad_parameters())}
    assert tried == {name for name, _ in BAD}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", EM)
def test_em_goes_on_while_anything_improves(estimator):
    patient, hasty = (estimator(tol=tol, max_iter=30, random_state=0).fit(X, Y) for tol in (0, 1.0))
    assert patient.n_iter_ > hasty.n_iter_


def test_rows_that_overflow():
    with pytest.raises(ValueError, match=r"X is too large.*scale the features"):
        LinearSVC().fit(X * 1e200, Y)
    with pytest.raises(ValueError, match=r"costs are too large.*lower C"):
        LinearSVC(C=1e308).fit(X, Y)


@pytest.mark.parametrize("estimator", [ClusteredSVC, KMeansSVC])
def test_centres_of_another_width(estimator):
    with pytest.raises(ValueError, match="clusterer has centers of 3 features, but X has 7"):
        estimator(clusterer=np.ones((2, 3))).fit(X, Y)


@each
def test_validation_leaves_the_arguments_alone(estimator):
    data, labels, weight = X.copy(), Y.copy(), np.arange(len(Y), dtype=float)
    estimator().fit(data, labels, sample_weight=weight)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weight, np.arange(len(Y)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, bool, str])
@pytest.mark.parametrize("values", [(0, 1), (-128, 3, 127), (5, 9_000), (-(2**63), 2**63 - 1), (2**63, 2**63 + 1)])
def test_classes_that_are_counted_are_those_that_are_sorted(values, dtype):
    try:
        y = np.random.default_rng(0).permutation(np.array([values] * 40_000, dtype=dtype).ravel())
    except OverflowError:
        return
    for some in (y, y[:3]):
        classes, label = classes_and_labels(some)
        expected = np.unique(some)
        assert classes.dtype == expected.dtype
        assert_array_equal(classes, expected)
        assert_array_equal(label, np.searchsorted(expected, some))
        assert label.dtype == np.intp


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinity_in_many_rows(value, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 20)).astype(dtype)
    y = (X[:, 0] > 0).astype(int)
    model = LinearSVC(tol=0.1, n_jobs=2).fit(X, y)
    X[40_000, 3] = value
    for call in (lambda: model.fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="X contains"):
            call()
