"""Intervals: order, coverage of rows not seen, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from svmosaic import LinearSVR, LocallyLinearSVR, MosaicRegressor, TreeSVR, load
from svmosaic.search.intervals import conformal_margin, cross_coverage, fit_intervals, widened


def noisy(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + (0.1 + 0.3 * (X[:, 1] > 0)) * rng.standard_t(4, n)


@pytest.mark.parametrize(
    "model", [LinearSVR(random_state=0), LocallyLinearSVR(20, random_state=0), TreeSVR(8, random_state=0)], ids=repr
)
def test_coverage_is_valid_however_bad_the_quantiles_are(model):
    found = []
    for seed in range(3):
        intervals = fit_intervals(model, *noisy(1500, seed), random_state=seed)
        X, y = noisy(4000, 100 + seed)
        ends = intervals.predict(X)
        assert (ends[:, 0] <= ends[:, 1]).all()
        found.append(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
        assert intervals.n_held_out == 300
        assert abs(intervals.coverage - 0.9) < 0.06
    # The coverage of 300 rows is off by 0.017 or less two times out of three.
    assert abs(np.mean(found) - 0.9) < 0.025


def test_few_rows_are_held_out_in_turn():
    model = LocallyLinearSVR(10, random_state=0)
    covered, widths = {"split": [], "cross": []}, {"split": [], "cross": []}
    Z, z = noisy(4000, 100)
    for seed in range(12):
        X, y = noisy(100, seed)
        for conformal in covered:
            intervals = fit_intervals(model, X, y, conformal=conformal, random_state=seed)
            ends = intervals.predict(Z)
            covered[conformal].append(np.mean((ends[:, 0] <= z) & (z <= ends[:, 1])))
            widths[conformal].append(np.mean(ends[:, 1] - ends[:, 0]))
        assert intervals.n_held_out == 100
        everything = model.set_params(loss="quantile", quantile=(0.05, 0.95)).fit(X, y)
        assert_array_equal(intervals.model.predict(Z), everything.predict(Z))
        if seed == 0:  # what is done without being asked for it
            assert fit_intervals(model, X, y, random_state=seed).margin == intervals.margin
    assert np.mean(covered["cross"]) > 0.88
    assert np.std(covered["cross"]) < np.std(covered["split"])
    assert np.mean(widths["cross"]) < np.mean(widths["split"])


def test_without_correction_all_rows_are_used():
    X, y = noisy(400, 0)
    model = LinearSVR(loss="quantile", quantile=(0.1, 0.9), random_state=0)
    plain = fit_intervals(model, X, y, quantiles=(0.1, 0.9), conformal=False)
    assert_array_equal(plain.predict(X), np.sort(model.fit(X, y).predict(X), axis=1))
    assert plain.margin == 0.0
    assert np.isnan(plain.coverage)


def test_frames_and_sparse_rows():
    import pandas as pd
    from scipy import sparse

    X, y = noisy(200, 0)
    dense = fit_intervals(LinearSVR(random_state=0), X, y, random_state=0)
    frame = fit_intervals(LinearSVR(random_state=0), pd.DataFrame(X, columns=["a", "b"]), y, random_state=0)
    assert frame.margin == dense.margin
    rows = sparse.csr_array(X)
    assert_allclose(fit_intervals(LinearSVR(random_state=0), rows, y, random_state=0).margin, dense.margin, rtol=0.05)


def test_margins_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    ends, y = np.sort(rng.normal(size=(99, 2)), axis=1), rng.normal(size=99)
    margin = conformal_margin(ends, y, 0.9)
    moved = widened(ends, margin)
    assert np.sum((moved[:, 0] <= y) & (y <= moved[:, 1])) == 90  # of 100 with the row to come
    assert 0 <= cross_coverage(ends, y, 0.9) <= 1
    assert np.isnan(cross_coverage(ends[:12], y[:12], 0.9))
    assert_allclose(widened(np.array([[0.0, 1.0]]), -2.0), [[0.5, 0.5]])


def test_what_is_refused():
    X, y = noisy(30, 0)
    too_few = r"6 held-out rows are too few .* coverage of 0.9: at least 9 are needed"
    for rows, conformal in ((30, "split"), (6, "cross"), (6, True)):
        with pytest.raises(ValueError, match=too_few):
            fit_intervals(LinearSVR(), X[:rows], y[:rows], conformal=conformal)
    for bad in ("jackknife", None, 1):
        with pytest.raises(ValueError, match=f"conformal must be True, False, 'split' or 'cross', got {bad!r}"):
            fit_intervals(LinearSVR(), X, y, conformal=bad)
        with pytest.raises(ValueError, match="conformal must be"):
            MosaicRegressor(conformal=bad, time_budget=None, families=("linear",)).fit(X, y)
    for bad, words in (((0.1,), "must be two"), ((0.9, 0.1), "must increase"), ((0.1, 1.0), "below 1"), (0.5, "two")):
        with pytest.raises(ValueError, match=words):
            fit_intervals(LinearSVR(), X, y, quantiles=bad)
    with pytest.raises(ValueError, match="need a one-dimensional y"):
        fit_intervals(LinearSVR(), X, X)


@pytest.fixture(scope="module")
def fitted():
    X, y = noisy(600, 0)
    settings = {"effort": "quick", "max_tiles": 16, "families": ("linear", "local"), "random_state": 0}
    return MosaicRegressor(quantiles=(0.1, 0.9), **settings).fit(100.0 * X, y), 100.0 * X, y


def test_the_model_to_try_first_has_intervals(fitted, tmp_path):
    model, X, _ = fitted
    Z, z = noisy(4000, 7)
    ends = model.predict_interval(100.0 * Z)
    assert ends.shape == (4000, 2)
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert abs(np.mean((ends[:, 0] <= z) & (z <= ends[:, 1])) - 0.8) < 0.07
    assert abs(model.coverage_ - 0.8) < 0.12
    # Narrower where there is less noise.
    width = ends[:, 1] - ends[:, 0]
    assert width[Z[:, 1] < 0].mean() < width[Z[:, 1] > 0].mean()
    model.save(tmp_path / "model.svmosaic")
    assert_array_equal(load(tmp_path / "model.svmosaic").predict_interval(X), model.predict_interval(X))
    predictor = model.predictor()
    assert_allclose(predictor.predict_interval(X), model.predict_interval(X), rtol=1e-6)
    assert_allclose(predictor.predict_interval(X[0]), model.predict_interval(X[:1])[0], rtol=1e-6)


def test_no_intervals_without_quantiles():
    X, y = noisy(60, 0)
    model = MosaicRegressor(time_budget=None, max_tiles=2, families=("linear",), random_state=0)
    assert not hasattr(model, "predict_interval")
    with pytest.raises(AttributeError, match=r"pass quantiles=\(0.05, 0.95\), say, and fit it again"):
        model.fit(X, y).predict_interval(X)
    with pytest.raises(AttributeError, match="has no intervals"):
        model.coverage_  # noqa: B018
    with pytest.raises(ValueError, match="quantiles must increase"):
        MosaicRegressor(quantiles=(0.9, 0.1)).fit(X, y)
