"""Input that estimators used to take without a word: duplicate entries, huge numbers, rows far from the origin."""

from time import process_time

import numpy as np
import pytest
from everything import CLASSIFIERS, ESTIMATORS, REGRESSORS
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.kernel_approximation import Nystroem
from sklearn.utils import get_tags
from threadpoolctl import threadpool_info, threadpool_limits

from svmosaic import (
    BoostedLinearSVC,
    KernelSVC,
    KernelSVR,
    KMeansSVC,
    LearnedGateSVC,
    LearnedGateSVR,
    LinearSVC,
    LocalCodingSVC,
    LocallyLinearSVC,
    MultiTaskMixtureSVC,
    NeighborsSVC,
    TreeSVC,
    TreeSVR,
)
from svmosaic.scale.part import Raw, check_raw
from svmosaic.solvers.certificates import Certificate

pytestmark = pytest.mark.usefixtures("short_search")
SPARSE = [estimator for estimator in ESTIMATORS if get_tags(estimator()).input_tags.sparse]
CONSTANT_TILES = (LocalCodingSVC, KernelSVC, KernelSVR)
# Small and short, where the defaults would take long.
QUICK = {
    "MosaicClassifier": {
        "time_budget": None,
        "max_tiles": 2,
        "families": ("linear", "local"),
        "validation_fraction": 0.5,
    },
    "MosaicRegressor": {
        "time_budget": None,
        "max_tiles": 2,
        "families": ("linear", "local"),
        "validation_fraction": 0.5,
    },
    "LearnedGateSVC": {"max_iter": 2, "n_tiles": 4},
    "MixtureSVC": {"max_iter": 2},
    "HierarchicalMixtureSVC": {"max_iter": 2},
    "MultiTaskMixtureSVC": {"max_iter": 2, "covariance_floor": 1e-2, "n_experts": 3},
    "BoostedLinearSVC": {"n_estimators": 3},
}
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 5))
y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")


def made(estimator, **more):
    known = estimator().get_params()
    options = {"random_state": 0, **QUICK.get(estimator.__name__, {}), **more}
    return estimator(**{name: value for name, value in options.items() if name in known})


def with_duplicates():
    """Rows in which every other entry is written as two halves that come one after the other, and the rows summed."""
    summed = sparse.csr_array(np.where(rng.random(X.shape) < 0.6, X, 0.0))
    indices, data, indptr = [], [], [0]
    for row in range(summed.shape[0]):
        for place in range(summed.indptr[row], summed.indptr[row + 1]):
            halves = 2 if place % 2 else 1
            indices += [summed.indices[place]] * halves
            data += [summed.data[place] / halves] * halves
        indptr.append(len(indices))
    parts = (np.array(data), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32))
    return sparse.csr_array(parts, shape=summed.shape), summed


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", SPARSE)
def test_duplicate_entries_count_as_their_sum(estimator):
    split, summed = with_duplicates()
    before = split.data.copy(), split.indices.copy(), split.indptr.copy()
    target = X[:, 0] if estimator in REGRESSORS else y
    model, same = made(estimator).fit(split, target), made(estimator).fit(summed, target)
    score = "predict" if estimator in REGRESSORS else "decision_function"
    assert_array_equal(getattr(model, score)(split), getattr(same, score)(summed))
    for one, other in zip((split.data, split.indices, split.indptr), before, strict=True):
        assert_array_equal(one, other)  # the caller's matrix stays as it is
    if hasattr(model, "predictor"):
        assert_array_equal(model.predictor().decision_function(split), model.predictor().decision_function(summed))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", SPARSE)
def test_indices_of_64_bits_are_taken_where_32_are_enough(estimator):
    """SciPy keeps the longer ones that it was given, by NumPy's functions for one."""
    split, summed = with_duplicates()
    long = sparse.csr_array((split.data, split.indices.astype(np.int64), split.indptr.astype(np.int64)), split.shape)
    assert long.indices.dtype == np.int64
    target = X[:, 0] if estimator in REGRESSORS else y
    model, same = made(estimator).fit(long, target), made(estimator).fit(summed, target)
    assert_array_equal(model.predict(long), same.predict(summed))
    assert_array_equal(model.predict(long.tocoo()), same.predict(summed))
    assert long.indices.dtype == np.int64
    if hasattr(model, "predictor"):
        assert_array_equal(model.predictor().decision_function(long), model.predictor().decision_function(summed))


def test_partitions_are_checked_as_rows_in_memory_are():
    split, summed = with_duplicates()
    (X, *_), (same, *_) = (check_raw(Raw(rows, y, None, "a part")) for rows in (split, summed))
    assert_array_equal(X.toarray(), same.toarray())
    assert X.nnz == summed.nnz < split.nnz
    with pytest.raises(ValueError, match=r"a part: X is too large.* in column \d"):
        check_raw(Raw(X.toarray() * 1e300, y, None, "a part"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_numbers_whose_squares_overflow_are_refused(estimator):
    with pytest.raises(ValueError, match=r"X is too large: .* overflows float64; scale the features .* in column \d"):
        made(estimator).fit(X * 1e300, y)
    import pandas as pd

    frame = pd.DataFrame(X * [1, 1, 1e300, 1, 1], columns=list("pqrst"))
    with pytest.raises(ValueError, match="is in column 'r'"):
        made(estimator).fit(frame, y)


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if "n_jobs" in e().get_params()])
def test_no_threads_are_refused(estimator):
    for wrong in (0, "2", 1.5):
        with pytest.raises(ValueError, match=rf"n_jobs must be .* got {wrong!r}"):
            made(estimator, n_jobs=wrong).fit(X, y)


# The scores of boosted trees are log-odds, with and without a calibration.
UNCALIBRATED = [e for e in ESTIMATORS if e().get_params().get("calibration", 0) is None if "Trees" not in e.__name__]


@pytest.mark.parametrize("estimator", UNCALIBRATED)
def test_the_lack_of_probabilities_names_its_remedy(estimator):
    model = made(estimator)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match='pass calibration="temperature"'):
        model.predict_proba(X)


def test_a_gap_is_not_negative_by_rounding():
    assert Certificate(np.zeros(1), 1.0, np.nextafter(1.0, 2.0)).gap == 0.0
    assert Certificate(np.zeros(1), 1.0, 1.1).gap < 0  # which no feasible dual point has
    assert np.isnan(Certificate(np.zeros(1), 1.0, np.nan).gap)
    for seed in range(5):
        labels = np.random.default_rng(seed).integers(3, size=len(X))
        assert (LinearSVC(C=1e-8, tol=1e-12, random_state=0).fit(X, labels).dual_gap_ >= 0).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_messages_show_plain_numbers(estimator):
    if estimator in CLASSIFIERS:
        with pytest.raises(ValueError, match=r"class") as error:
            made(estimator).fit(X, np.zeros(len(X), dtype=int))
        assert "np." not in str(error.value)
    for name in ("C", "tol", "max_iter"):
        if name in estimator().get_params():
            with pytest.raises(ValueError, match=rf"{name} must .* got -1") as error:
                made(estimator, **{name: np.int64(-1)}).fit(X, y)
            assert "np." not in str(error.value)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", [e for e in ESTIMATORS if hasattr(e, "feature_importances_") and e not in CONSTANT_TILES]
)
def test_features_can_be_selected(estimator):
    weak = X * [1, 1e-3, 1e-3, 1e-3, 1e-3]
    labels = (weak[:, 0] > 0).astype(int)
    model = made(estimator).fit(weak, labels)
    importances = model.feature_importances_
    assert importances.shape == (5,)
    assert np.isfinite(importances).all()
    assert importances.argmax() == 0
    for selector in (RFE(made(estimator), n_features_to_select=2), SelectFromModel(made(estimator))):
        selector.fit(weak, labels)
        assert selector.get_support()[0]
        assert selector.get_support().sum() < 5
    assert not hasattr(made(estimator), "feature_importances_")


def test_every_estimator_with_weights_per_tile_has_importances():
    """And no `coef_`: scikit-learn's selectors would take it, and cannot rank three dimensions."""
    per_tile = [e for e in ESTIMATORS if hasattr(e, "tile_coef_")]
    assert KMeansSVC in per_tile
    for estimator in [*per_tile, BoostedLinearSVC]:
        assert hasattr(estimator, "feature_importances_")
        assert not hasattr(estimator, "coef_")


def test_importances_are_the_mean_over_rows():
    model = KMeansSVC(3, random_state=0).fit(X, y)
    home = model.mosaic_.gate.code(X, None)[0][:, 0]
    parts = X * model.tile_coef_[home, 0]
    away = parts - np.stack([parts[home == k].mean(axis=0) for k in range(3)])[home]
    np.testing.assert_allclose(model.feature_importances_, np.abs(away).mean(axis=0), rtol=1e-6)
    in_millimeters = X * [1000.0, 1, 1, 1, 1]
    # Tiles that may hold any weight: the unit of a feature does not matter.
    one, other = (LinearSVC(1e4, random_state=0).fit(rows, y).feature_importances_ for rows in (X, in_millimeters))
    np.testing.assert_allclose(one, other, rtol=0.05)
    mapped = LocallyLinearSVC(4, n_neighbors=2, feature_map=Nystroem(n_components=7, random_state=0), random_state=0)
    assert not hasattr(mapped.fit(X, y), "feature_importances_")
    for estimator in CONSTANT_TILES:  # no weights at all
        assert not hasattr(estimator(8, random_state=0).fit(X, y == "a"), "feature_importances_")


@pytest.mark.parametrize(
    ("model", "near", "far"),
    [
        (LearnedGateSVC(4, max_iter=1, random_state=0), 1e3, 1e7),
        (MultiTaskMixtureSVC(3, max_iter=1, covariance_floor=1e-2, random_state=0), 1e4, 1e8),
    ],
)
def test_rows_far_from_the_origin_are_pointed_out(model, near, far):
    model.fit(X + near, y)
    with pytest.warns(UserWarning, match=r"times their spread away from the origin.*center or standardize"):
        model.fit(X + far, y)


FAR = [
    LearnedGateSVC(8, n_neighbors=2, max_iter=15, random_state=0),
    LearnedGateSVC(8, n_gates=3, n_neighbors=2, max_iter=15, dropout=0.1, random_state=0),
    LearnedGateSVC(8, n_components=None, n_neighbors=2, max_iter=15, polish=True, random_state=0),
    LearnedGateSVR(8, n_neighbors=2, max_iter=15, random_state=0),
]


@pytest.mark.parametrize("model", FAR, ids=repr)
def test_learned_gates_center_rows_far_from_the_origin(model):
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    label = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    shift = np.array([1e4, -3e4, 20.0])
    near, far = clone(model).fit(rows, label), clone(model).fit(rows + shift, label)
    assert far.score(rows + shift, label) > near.score(rows, label) - 0.02
    stream = clone(model)
    for k in range(8):
        classes = {"classes": [0, 1]} if k == 0 and isinstance(model, LearnedGateSVC) else {}
        stream.partial_fit(rows + shift, label, **classes)
    assert stream.score(rows + shift, label) > near.score(rows, label) - 0.1


def test_sparse_rows_far_from_the_origin():
    with pytest.warns(UserWarning, match="away from the origin"):
        LearnedGateSVC(4, max_iter=1, random_state=0).fit(sparse.csr_array(X + 1e4), y)
    LearnedGateSVC(4, max_iter=1, random_state=0).fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("algorithm", ["brute", "auto"])
def test_neighbors_do_not_depend_on_threads(algorithm):
    """On pixels, whose distances are full of ties."""
    rows, labels = load_digits(return_X_y=True)
    found = []
    for n_threads, n_jobs in ((1, None), (2, None), (2, 2)):
        with threadpool_limits(n_threads):
            model = NeighborsSVC(20, algorithm=algorithm, n_jobs=n_jobs, random_state=0).fit(rows[:900], labels[:900])
            found.append(model.decision_function(rows[900:]))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


def test_covariances_are_decomposed_on_one_thread(monkeypatch):
    """With more threads than free processors, 20 rows of 300 features took half a minute."""
    threads, eigh = set(), np.linalg.eigh

    def watched(*arguments):
        threads.update(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return eigh(*arguments)

    monkeypatch.setattr(np.linalg, "eigh", watched)
    with threadpool_limits(2):
        MultiTaskMixtureSVC(3, max_iter=2, covariance_floor=1e-2, random_state=0).fit(X, y)
    assert threads == {1}


def test_covariances_of_more_features_than_rows_take_seconds():
    """20 rows of 300 features took half a minute."""
    wide = np.random.default_rng(0).normal(size=(20, 300))
    started = process_time()
    MultiTaskMixtureSVC(4, random_state=0).fit(wide, np.arange(20) % 2)
    assert process_time() - started < 10


@pytest.mark.parametrize(("growth", "n_trees"), [("forest", 1), ("forest", 4), ("extra", 16)])
def test_trees_of_columns_far_from_zero(growth, n_trees):
    """scikit-learn grows them on float32, to which 1e8 and 1e8 + 1 are one number."""
    rows = rng.normal(size=(600, 3))
    values = rows[:, 0] * rows[:, 1]
    for estimator, target, chance in ((TreeSVC, np.sign(values), 0.5), (TreeSVR, values, 0.0)):
        model = estimator(n_trees, tiles="constant", max_leaves=16, growth=growth, random_state=0)
        at_home = model.fit(rows, target).score(rows, target)
        assert at_home > chance + 0.1
        for shift in ([1e8, 0.0, 0.0], 1e9):
            away = model.fit(rows + shift, target).score(rows + shift, target)
            assert away > chance + 0.5 * (at_home - chance)
