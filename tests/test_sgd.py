"""Stochastic descent: Algorithm 1 step by step, its step sizes, averages, and streams."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem

from svmosaic import ClusteredSVC, LearnedGateSVR, LinearSVC, LocallyLinearSVC, LocallyLinearSVR, load
from svmosaic.couplings import Coupling
from svmosaic.gates import DistanceGate
from svmosaic.losses import REGRESSION_LOSSES
from svmosaic.solvers import Problem, Rows, SgdOptions, StochasticDescent, solve
from svmosaic.solvers.certificates import margins
from svmosaic.solvers.sgd import penalty


def make_data(n_rows=400, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n_rows) > 0, 1, -1).astype(np.int8)
    return X, y


def make_problem(C=0.1, loss="hinge", bias=1.0, storage=np.asarray, n_rows=400, seed=0, weights=None):
    X, y = make_data(n_rows, seed=seed)
    gate = DistanceGate(X[:7], "softmax", 3, 0.3)
    cost = C * (np.ones(n_rows) if weights is None else weights)
    return Problem(Rows(storage(X), bias), *gate.code(X), Coupling.independent(7), y, cost, loss), X


def expand(problem, X):
    """The matrix that the blocks stand for, for tests only."""
    n_blocks, size = problem.shape
    rows = np.column_stack([X, np.full(len(X), problem.rows.bias)])
    wide = np.zeros((len(X), n_blocks, size))
    for a in range(problem.tile.shape[1]):
        wide[np.arange(len(X)), problem.tile[:, a]] += problem.weight[:, a, None] * rows
    return wide.reshape(len(X), -1)


def algorithm_1(wide, y, reach, power, free, t0, skip):
    """The paper's algorithm on the expanded matrix, and every iterate."""
    v = np.zeros(wide.shape[1])
    iterates, count = [], skip
    for t, x in enumerate(wide):
        slack = 1 - y[t] * (x @ v)
        if slack > 0:
            v = v + reach[t] / (t + t0) * (2 * slack if power == 2 else 1.0) * y[t] * x
        iterates.append(v)
        count -= 1
        if count <= 0:
            v = np.where(free, v, v * (1 - skip / (t + t0)))
            count = skip
    return v, np.array(iterates)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_steps_are_those_of_the_paper(loss, free_bias, storage):
    problem, X = make_problem(loss=loss, storage=storage, weights=np.linspace(0.5, 2, 400))
    descent = StochasticDescent(
        400, SgdOptions(False, False, free_bias, 50.0), np.zeros(problem.shape, problem.rows.dtype)
    )
    descent.run(problem)
    assert descent.skip == 5  # a tenth of t0
    free = np.zeros(problem.shape, dtype=bool)
    free[:, -1] = free_bias
    wide = expand(problem, X)
    v, _ = algorithm_1(wide, problem.sign, 400 * problem.cost, problem.loss.power, free.ravel(), 50.0, descent.skip)
    tolerance = 1e-10 if descent.last.dtype == np.float64 else 1e-4
    assert_allclose(descent.last.ravel(), v, rtol=tolerance, atol=tolerance)


def test_average_weighs_the_iterates_by_their_number():
    problem, X = make_problem()
    descent = StochasticDescent(400, SgdOptions(False, True, False, 80.0), np.zeros(problem.shape))
    descent.run(problem)
    assert descent.skip == 8
    free = np.zeros(descent.last.size, dtype=bool)
    _, iterates = algorithm_1(expand(problem, X), problem.sign, 400 * problem.cost, 1, free, 80.0, 8)
    weight = np.repeat(8 * np.arange(50) + 4.5, 8)  # of the windows: the mean of the numbers in them
    assert_allclose(descent.weights.ravel(), weight @ iterates / weight.sum(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("average", [False, True])
def test_pieces_of_a_pass_are_the_pass(average):
    problem, X = make_problem()
    options = SgdOptions(False, average, False, 77.0)
    whole = StochasticDescent(400, options, np.zeros(problem.shape))
    whole.run(problem)
    parts = StochasticDescent(400, options, np.zeros(problem.shape))
    for rows in np.split(np.arange(400), [1, 33, 200]):
        batch = Problem(
            Rows(X[rows], 1.0), problem.tile[rows], problem.weight[rows], problem.coupling, problem.sign[rows],
            problem.cost[rows],
        )  # fmt: skip
        parts.run(batch)
        parts = pickle.loads(pickle.dumps(parts))
    assert_array_equal(parts.weights, whole.weights)
    assert parts.n_steps == 400


def test_cost_is_one_over_lambda_n():
    """C = 1 / (lambda n): the paper's objective in lambda has the same minimizer and, times C n, the same value."""
    C, n = 0.2, 400
    problem, X = make_problem(C)
    exact = solve([problem], solver="dual", tol=1e-9, max_iter=20_000)[0]
    lam = 1 / (C * n)
    wide, y = expand(problem, X), problem.sign

    def paper(v):
        return lam / 2 * v @ v + np.maximum(0, 1 - y * (wide @ v)).mean()

    v = exact.weights.ravel()
    assert_allclose(paper(v) * C * n, exact.primal, rtol=1e-9)
    rng = np.random.default_rng(0)
    assert all(paper(v + 1e-2 * rng.standard_normal(len(v))) > paper(v) for _ in range(20))
    # and the step of the core on a fresh row is y x / (lambda t0)
    descent = StochasticDescent(n, SgdOptions(False, False, False, 10.0), np.zeros(problem.shape))
    one = Problem(Rows(X[:1], 1.0), problem.tile[:1], problem.weight[:1], problem.coupling, y[:1], problem.cost[:1])
    descent.run(one)
    shrunk = 1 - descent.skip / 10.0
    assert_allclose(descent.last.ravel(), shrunk * y[0] * wide[0] / (lam * 10.0), rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_reaches_the_optimum_of_the_dual_solver(C, loss):
    problem, _ = make_problem(C, loss)
    exact = solve([problem], solver="dual", tol=1e-8, max_iter=20_000)[0].primal
    found = solve([problem], solver="sgd", tol=1e-6, max_iter=300)[0]
    assert exact * (1 - 1e-7) <= found.primal <= 1.01 * exact
    assert np.isnan(found.gap)
    value = penalty(found.weights, False) + problem.cost @ problem.loss.value(margins(problem, found.weights))
    assert_allclose(found.primal, value, rtol=1e-12)


def test_first_step_is_of_a_sensible_size():
    """Whatever the scale of the rows, t0 is such that one pass already helps, and steps scale with 1 / |x|^2."""
    etas = []
    for scale in (1e-3, 1.0, 1e3):
        X, y = make_data()
        tile = np.zeros((400, 1), dtype=np.int32)
        problem = Problem(Rows(scale * X, 0.0), tile, None, Coupling.independent(1), y, np.full(400, 0.1 / scale**2))
        descent = StochasticDescent(400, SgdOptions(), np.zeros(problem.shape))
        descent.run(problem)
        loss = problem.cost @ problem.loss.value(margins(problem, descent.weights))
        assert penalty(descent.weights, False) + loss < problem.primal_at_zero
        etas.append(400 * 0.1 / scale**2 / descent.t0 * scale**2)
    assert_allclose(etas, etas[0], rtol=1e-6)


def test_linear_and_clustered_models_take_it_too():
    X, y = make_data(600)
    for model in (LinearSVC(C=0.05), ClusteredSVC(4, C=0.05)):
        exact = model.set_params(random_state=0, tol=1e-6).fit(X, y).objective_
        found = model.set_params(solver="sgd", tol=1e-6, max_iter=200).fit(X, y)
        assert found.objective_ <= 1.01 * exact
        assert np.isnan(found.dual_gap_).all()


def test_same_bits_whatever_the_number_of_threads():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 4)), rng.integers(4, size=500)
    models = [
        LocallyLinearSVC(10, solver="sgd", tol=1e-2, C=0.1, random_state=0, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 3)
    ]
    assert_array_equal(models[0].mosaic_.coef, models[1].mosaic_.coef)
    streams = [
        LocallyLinearSVC(10, random_state=0, n_jobs=n_jobs).partial_fit(X, y, range(4)).partial_fit(X, y)
        for n_jobs in (1, 3)
    ]
    assert_array_equal(streams[0].mosaic_.coef, streams[1].mosaic_.coef)


def test_warns_when_the_objective_still_falls():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="max_iter=1 passes"):
        LocallyLinearSVC(5, solver="sgd", max_iter=1).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("options", [{}, {"average": False}, {"penalize_intercept": False}, {"loss": "squared_hinge"}])
def test_batches_do_what_fit_does_in_the_same_order(options, storage):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2500, 4))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 0] * X[:, 1] > 0)]
    weight = rng.uniform(0.5, 2, len(y))
    X = storage(X)
    settings = (
        dict(anchors=rng.standard_normal((12, 4)), code_scale=0.5, C=1.0, random_state=0) | {"loss": "hinge"} | options
    )
    whole = LocallyLinearSVC(solver="sgd", shuffle=False, max_iter=1, **settings).fit(X, y, weight)
    stream = LocallyLinearSVC(stream_length=2500, **settings)
    for rows in np.split(np.arange(2500), [1000, 1001, 1777]):
        stream.partial_fit(X[rows], y[rows], classes=["c", "a", "b"], sample_weight=weight[rows])
    assert_array_equal(stream.mosaic_.coef, whole.mosaic_.coef)
    assert_array_equal(stream.intercept_, whole.intercept_)
    assert_array_equal(stream.classes_, ["a", "b", "c"])
    assert stream.n_samples_seen_ == whole.n_samples_seen_ == 2500
    assert np.isnan(stream.dual_gap_).all()
    assert np.isnan(stream.objective_).all()


def test_stream_takes_t0_as_given():
    X, y = make_data()
    settings = dict(anchors=X[:6], code_scale=0.5, stream_length=400)
    tiny, large = (LocallyLinearSVC(t0=t0, **settings).partial_fit(X, y, [-1, 1]) for t0 in (1e3, 1e9))
    assert np.abs(large.mosaic_.coef).max() < 1e-3 * np.abs(tiny.mosaic_.coef).max()


def test_stream_goes_on_from_fit():
    X, y = make_data(2000)
    model = LocallyLinearSVC(20, C=0.1, loss="hinge", random_state=0).fit(X[:1000], y[:1000])
    anchors, before = model.anchors_, model.decision_function(X[1000:])
    model.partial_fit(X[1000:], y[1000:])
    assert_array_equal(model.anchors_, anchors)
    assert model.n_samples_seen_ == 2000
    after = model.decision_function(X[1000:])
    assert not np.array_equal(before, after)
    hinge = [np.maximum(0, 1 - y[1000:] * f).mean() for f in (before, after)]
    assert hinge[1] < hinge[0]
    # a new fit forgets the stream
    again = LocallyLinearSVC(20, C=0.1, loss="hinge", random_state=0).fit(X[:1000], y[:1000])
    assert_array_equal(model.fit(X[:1000], y[:1000]).mosaic_.coef, again.mosaic_.coef)


def test_stream_state_survives_pickling_and_a_change_of_precision():
    X, y = make_data(600)
    settings = dict(anchors=X[:8].astype(np.float32), code_scale=0.5, stream_length=600)
    model = LocallyLinearSVC(**settings).partial_fit(X[:300].astype(np.float32), y[:300], [-1, 1])
    copy = pickle.loads(pickle.dumps(model))
    again = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[300:].astype(np.float32), y[300:])
    assert_array_equal(copy.partial_fit(X[300:].astype(np.float32), y[300:]).mosaic_.coef, model.mosaic_.coef)
    assert_allclose(again.partial_fit(X[300:], y[300:]).mosaic_.coef, model.mosaic_.coef, rtol=1e-4, atol=1e-5)


def test_stream_with_a_feature_map():
    X, y = make_data(1500)
    model = LocallyLinearSVC(8, feature_map=Nystroem(n_components=30, random_state=0), random_state=0)
    for rows in np.split(np.arange(1500), 3):
        model.partial_fit(X[rows], y[rows], classes=[-1, 1])
    assert model.tile_coef_.shape == (8, 1, 30)
    assert model.score(X, y) > LinearSVC().fit(X, y).score(X, y) + 0.1


def test_stream_says_what_is_wrong():
    X, y = make_data(50)
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        LocallyLinearSVC(5).partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        LocallyLinearSVC(5).partial_fit(X, y, classes=[1])
    with pytest.raises(ValueError, match="not among the classes announced"):
        LocallyLinearSVC(5).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="class_weight must be None or a dict"):
        LocallyLinearSVC(5, class_weight="balanced").partial_fit(X, y, classes=[-1, 1])
    model = LocallyLinearSVC(5).partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(ValueError, match="not the same as in the first call"):
        model.partial_fit(X, y, classes=[-1, 1, 2])
    with pytest.raises(ValueError, match="zero for every row"):
        model.partial_fit(X, y, sample_weight=np.zeros(50))
    with pytest.raises(ValueError, match="t0 must be"):
        LocallyLinearSVC(5, t0=0).partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(ValueError, match="penalize_intercept=False needs solver='sgd'"):
        LocallyLinearSVC(5, penalize_intercept=False).fit(X, y)
    assert not hasattr(LocallyLinearSVC(solver="dual"), "partial_fit")
    assert not hasattr(LocallyLinearSVC(multi_class="crammer_singer"), "partial_fit")


def test_batches_of_one_value_wait_for_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = 1000 * (X[:, 0] * X[:, 1] + 5)
    for Model, least in ((LocallyLinearSVR, 0.85), (LearnedGateSVR, 0.85)):
        for first, value in ((1, y[:1]), (500, np.full(500, 5.0))):
            model = Model(8, n_neighbors=3, random_state=0).partial_fit(X[:first], value)
            assert_array_equal(model.predict(X[:5]), np.full(5, value[0]))
            again = clone(model).partial_fit(X[first:], y[first:])
            assert_array_equal(model.partial_fit(X[first:], y[first:]).predict(X), again.predict(X))
            assert model.score(X, y) > least
    model = LocallyLinearSVR(8, random_state=0).partial_fit(X[:500], np.zeros(500)).partial_fit(X, y)
    assert model.n_samples_seen_ == 4500
    with pytest.raises(ValueError, match="2 features"):
        LocallyLinearSVR(8).partial_fit(X[:1], y[:1]).partial_fit(X[:, :2], y)


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_descent_does_not_run_away(loss):
    """Not after a start of rows that tell little of the others, in a stream or in a fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    model = LocallyLinearSVR(8, loss=loss, n_neighbors=3, random_state=0)
    late = np.where(np.arange(8000) < 2000, 0.0, X[:, 0])
    for y, first in ((X[:, 0] * X[:, 1] + 5, 2), (late, 2001)):
        stream = clone(model).partial_fit(X[:first], y[:first]).partial_fit(X[first:], y[first:])
        assert np.abs(stream.predict(X)).max() < 10 * np.abs(y).max()
    stream = clone(model).fit(X, np.full(8000, 5.0)).partial_fit(X, 1e6 * X[:, 0])
    assert np.isfinite(stream.predict(X)).all()
    with warnings.catch_warnings(action="ignore"):
        whole = model.set_params(solver="sgd", shuffle=False).fit(X, late)
    assert whole.score(X, late) > 0.5


@pytest.mark.parametrize("Model", [LocallyLinearSVC, LocallyLinearSVR])
def test_a_stream_goes_on_from_a_file(Model, tmp_path):
    X, y = make_data(400)
    options = {"classes": [-1, 1]} if Model is LocallyLinearSVC else {}
    for before in (0, 200):
        model = Model(5, random_state=0)
        model = model.fit(X[:before], y[:before]) if before else model
        model.partial_fit(X[before:300], y[before:300], **options).save(tmp_path / "stream.skops")
        loaded = load(tmp_path / "stream.skops")
        for stream in (model, loaded):
            stream.partial_fit(X[300:], y[300:])
        assert_array_equal(model.mosaic_.coef, loaded.mosaic_.coef)
    if Model is LocallyLinearSVR:
        Model(5, random_state=0).partial_fit(X[:1], y[:1]).save(tmp_path / "stream.skops")
        loaded = load(tmp_path / "stream.skops").partial_fit(X, y)
        assert_array_equal(loaded.mosaic_.coef, Model(5, random_state=0).partial_fit(X, y).mosaic_.coef)


def test_class_weight_multiplies_the_cost_in_a_stream():
    X, y = make_data(300)
    settings = dict(anchors=X[:6], code_scale=0.5, t0=100.0)
    by_class = LocallyLinearSVC(class_weight={1: 3.0}, **settings).partial_fit(X, y, [-1, 1])
    by_row = LocallyLinearSVC(**settings).partial_fit(X, y, [-1, 1], sample_weight=np.where(y > 0, 3.0, 1.0))
    assert_array_equal(by_class.mosaic_.coef, by_row.mosaic_.coef)


def test_problem_rows_may_name_any_data_row():
    """(row, tile) pairs, as in the EM models: the same as the rows written out."""
    X, y = make_data(100)
    index = np.random.default_rng(0).integers(100, size=250).astype(np.int32)
    tile = np.random.default_rng(1).integers(3, size=(250, 1)).astype(np.int32)
    coupling, cost = Coupling.to_global(3, 2.0), np.full(250, 0.1)
    weights = []
    for rows, named in ((X, index), (X[index], None)):
        problem = Problem(Rows(rows, 1.0), tile, None, coupling, y[index], cost, "hinge", named)
        weights.append(solve([problem], solver="sgd", tol=1e-9, max_iter=5, seed=3)[0].weights)
    assert_array_equal(*weights)
