"""Regression: certificates, agreement with outside solvers, identities, units, and everything that classifiers have."""

import ctypes
import pickle
import shutil
import subprocess
import warnings

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from everything import REGRESSORS
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from test_limits import Watcher

from svmosaic import (
    ClusteredSVR,
    KernelSVR,
    KMeansSVR,
    LearnedGateSVR,
    LinearSVR,
    LocallyLinearSVR,
    TreeSVR,
    load,
)
from svmosaic.estimators._regularization_path import fit_path
from svmosaic.losses import LOSSES, REGRESSION_LOSSES

EXACT = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}
SMALL = {
    "KMeansSVR": {"n_clusters": 4},
    "ClusteredSVR": {"n_clusters": 4},
    "LocallyLinearSVR": {"n_anchors": 8, "n_neighbors": 3},
    "KernelSVR": {"n_anchors": 8},
    "LearnedGateSVR": {"n_tiles": 8, "n_neighbors": 3, "max_iter": 20},
    "TreeSVR": {"n_trees": 3, "max_leaves": 6},
}
COMPOSED = [LinearSVR, KMeansSVR, ClusteredSVR, LocallyLinearSVR, KernelSVR, TreeSVR]
each = pytest.mark.parametrize("estimator", [*COMPOSED, LearnedGateSVR])
each_composed = pytest.mark.parametrize("estimator", COMPOSED)


def small(estimator, **settings):
    return estimator(**SMALL.get(estimator.__name__, {}) | {"random_state": 0} | settings)


def bent_plane(n_rows=300, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    return X, 50.0 + 10.0 * (np.abs(X[:, 0]) + X[:, 1] + noise * rng.normal(size=n_rows))


def objective(model, X, y, loss, weight=1.0, **parameters):
    """The objective of a linear model on y as it is, written out."""
    r = y - X @ model.coef_ - model.intercept_
    penalty = 0.5 * (model.coef_ @ model.coef_ + model.intercept_**2)
    if "epsilon" in parameters:
        losses = np.maximum(0, np.abs(r) - parameters["epsilon"])
    else:
        q = parameters["quantile"]
        losses = np.where(r > 0, np.sqrt(q) * r, -np.sqrt(1 - q) * r) if loss == "expectile" else np.maximum(
            q * r, (q - 1) * r
        )  # fmt: skip
    return penalty + model.C * np.sum(weight * losses ** LOSSES[loss].power)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_objectives_are_those_of_liblinear(loss, epsilon, storage):
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    ours = LinearSVR(loss=loss, epsilon=epsilon, normalize_y=False, **EXACT).fit(storage(X), y)
    # Squared losses of liblinear are solved in the primal, which penalizes the bias too.
    dual = loss == "epsilon_insensitive"
    theirs = sklearn.svm.LinearSVR(loss=loss, epsilon=epsilon, dual=dual, tol=1e-10, max_iter=1_000_000).fit(X, y)
    theirs.intercept_ = float(np.ravel(theirs.intercept_)[0])
    found, best = objective(ours, X, y, loss, epsilon=epsilon), objective(theirs, X, y, loss, epsilon=epsilon)
    assert_allclose(found, ours.objective_[0], rtol=1e-9)
    assert_allclose(found, best, rtol=1e-6)
    assert ours.dual_gap_[0] <= 1e-9 * np.sum((np.abs(y)) ** LOSSES[loss].power)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantiles_are_those_of_the_linear_program_as_c_grows(quantile):
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = sklearn.linear_model.QuantileRegressor(quantile=quantile, alpha=0.0, solver="highs").fit(X, y)
    settings = EXACT | {"tol": 1e-10, "C": 1e4, "intercept_scaling": 10.0, "solver": "newton"}
    ours = LinearSVR(loss="quantile", quantile=quantile, **settings).fit(X, y)

    def pinball(model):
        r = y - model.predict(X)
        return np.maximum(quantile * r, (quantile - 1) * r).mean()

    assert_allclose(pinball(ours), pinball(theirs), rtol=1e-4)


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_the_objective_is_what_is_written(loss):
    X, y = bent_plane()
    y = (y - y.mean()) / y.std()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    given = {"epsilon": 0.2} if "insensitive" in loss else {"quantile": 0.8}
    model = LinearSVR(C=0.7, loss=loss, normalize_y=False, **given, **EXACT).fit(X, y, sample_weight=weight)
    assert_allclose(model.objective_[0], objective(model, X, y, loss, weight, **given), rtol=1e-9)


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
@each_composed
def test_every_fit_is_certified(estimator, loss):
    X, y = bent_plane()
    model = small(estimator, loss=loss, **EXACT | {"tol": 1e-6}).fit(X, np.stack([y, -(y**2)], axis=1))
    z = model.head_.targets(np.stack([y, -(y**2)], axis=1))
    assert model.objective_.shape == model.dual_gap_.shape == (2,)
    limit = 1e-6 * model.C * np.sum(np.abs(z) ** LOSSES[loss].power, axis=0)
    assert (model.dual_gap_ >= 0).all()
    assert (model.dual_gap_ <= limit).all()


@each_composed
def test_storage_and_precision_do_not_matter(estimator):
    X, y = bent_plane()
    # Forests draw other columns to split by if rows are sparse, and pieces have knots at zero then.
    one_tree = {"n_trees": 1, "pieces": None} if estimator is TreeSVR else {}
    model = small(estimator, tol=1e-8, max_iter=100_000, **one_tree).fit(X, y)
    assert_allclose(clone(model).fit(sparse.csr_array(X), y).predict(X), model.predict(X), rtol=1e-4)
    single = clone(model).set_params(tol=1e-6).fit(X.astype(np.float32), y)
    assert single.mosaic_.coef.dtype == model.mosaic_.coef.dtype
    assert_allclose(single.score(X.astype(np.float32), y), model.score(X, y), atol=1e-3)


@each
def test_predictions_move_with_the_unit_of_y(estimator):
    X, y = bent_plane()
    model = small(estimator).fit(X, y)
    # A power of two and no shift: the normalized y is the same to the last bit.
    assert_allclose(clone(model).fit(X, 1024.0 * y).predict(X), 1024.0 * model.predict(X), rtol=1e-12)
    moved = clone(model).fit(X, 1e-6 * y - 3.0)
    assert_allclose((moved.predict(X) + 3.0) * 1e6, model.predict(X), rtol=0.02)


@each
def test_constant_values_are_predicted_without_a_warning(estimator):
    X, _ = bent_plane(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in estimator._losses:
            for constant in (0.1, 0.0, -1e9):
                assert_array_equal(small(estimator, loss=loss).fit(X, np.full(60, constant)).predict(X), constant)
        plain = small(estimator, normalize_y=False).fit(X, np.full(60, 0.05))
    assert_allclose(plain.predict(X), 0.05, atol=0.2)
    several = small(estimator).fit(X, np.stack([np.full(60, 7.0), X[:, 0]], axis=1))
    assert_array_equal(several.predict(X)[:, 0], 7.0)


@each
def test_values_that_are_all_within_the_tube(estimator):
    if "epsilon_insensitive" not in estimator._losses:
        pytest.skip("no tube")
    X, y = bent_plane(60)
    model = small(estimator, loss="epsilon_insensitive", epsilon=100.0).fit(X, y)
    if hasattr(model, "objective_"):
        assert_array_equal(model.mosaic_.coef, 0.0)
        assert_array_equal(model.objective_, 0.0)
    assert_allclose(model.predict(X), y.mean(), rtol=1e-12)


@each
def test_targets_share_the_gate_and_are_fitted_one_by_one(estimator):
    X, y = bent_plane()
    other = X[:, 0] * X[:, 2]
    both = small(estimator).fit(X, np.stack([y, other], axis=1))
    assert both.predict(X).shape == (300, 2)
    assert both.predict(X[:1]).shape == (1, 2)
    column = small(estimator).fit(X, y[:, None])
    assert column.predict(X).shape == (300, 1)
    assert_array_equal(column.predict(X)[:, 0], small(estimator).fit(X, y).predict(X))
    if estimator in (LinearSVR, KMeansSVR, ClusteredSVR, LocallyLinearSVR):
        exact = {"tol": 1e-9, "max_iter": 100_000}
        both = small(estimator, **exact).fit(X, np.stack([y, other], axis=1))
        for c, alone in enumerate((y, other)):
            assert_allclose(both.predict(X)[:, c], small(estimator, **exact).fit(X, alone).predict(X), atol=2e-3)


@each
def test_several_quantiles_are_columns_in_their_order(estimator):
    X, y = bent_plane(1000, noise=1.0)
    model = small(estimator, loss="quantile", quantile=(0.1, 0.5, 0.9)).fit(X, y)
    found = model.predict(X)
    assert found.shape == (1000, 3)
    below = (y[:, None] < found).mean(axis=0)
    assert_allclose(below, [0.1, 0.5, 0.9], atol=0.06)
    assert model.predictor()(X[0]).shape == (3,)


@pytest.mark.parametrize("loss", ["quantile", "expectile"])
def test_a_quantile_of_one_column_of_ones_is_that_of_y(loss):
    """Without features, the median and the mean: of large C, the bias is all there is."""
    y = np.random.default_rng(0).exponential(size=501)
    model = LinearSVR(C=1e6, loss=loss, quantile=0.5, **EXACT).fit(np.zeros((501, 1)), y)
    assert_allclose(model.predict(np.zeros((1, 1))), np.median(y) if loss == "quantile" else y.mean(), rtol=1e-4)


@each_composed
def test_weights_are_copies_once_the_regions_are_fixed(estimator):
    X, y = bent_plane(120)
    fixed = {
        "KMeansSVR": {"clusterer": X[:4]},
        "ClusteredSVR": {"clusterer": X[:4]},
        "LocallyLinearSVR": {"anchors": X[:8], "code_scale": 0.5},
        "KernelSVR": {"anchors": X[:8]},
        "TreeSVR": {"trees": sklearn.tree.DecisionTreeRegressor(max_leaf_nodes=4).fit(X, y), "pieces": None},
    }.get(estimator.__name__, {})
    copies = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = small(estimator, **fixed, **EXACT).fit(X, y, sample_weight=copies)
    copied = small(estimator, **fixed, **EXACT).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    assert_allclose(weighted.objective_, copied.objective_, rtol=1e-7)
    assert_allclose(weighted.predict(X), copied.predict(X), atol=0.02)


def test_one_cell_is_the_linear_model():
    X, y = bent_plane()
    linear = LinearSVR(**EXACT).fit(X, y)
    assert_allclose(KMeansSVR(1, **EXACT).fit(X, y).predict(X), linear.predict(X), rtol=1e-5)
    assert_allclose(ClusteredSVR(1, C=0.5, **EXACT).fit(X, y).predict(X), linear.predict(X), rtol=1e-5)
    assert_allclose(LocallyLinearSVR(1, C=1.0, loss="epsilon_insensitive", **EXACT).fit(X, y).predict(X),
                    linear.predict(X), rtol=1e-5)  # fmt: skip


def test_coefficients_are_in_units_of_y():
    X, y = bent_plane()
    linear = LinearSVR(random_state=0).fit(X, y)
    assert linear.coef_.shape == (3,)
    assert isinstance(linear.intercept_, float)
    assert_allclose(X @ linear.coef_ + linear.intercept_, linear.predict(X))
    both = LinearSVR(random_state=0).fit(X, np.stack([y, X[:, 0]], axis=1))
    assert_allclose(X @ both.coef_.T + both.intercept_, both.predict(X))
    cells = KMeansSVR(4, random_state=0).fit(X, y)
    home = cells.mosaic_.gate.code(X)[0][:, 0]
    assert_allclose((X * cells.tile_coef_[home, 0]).sum(axis=1) + cells.intercept_[home, 0], cells.predict(X))


@each
def test_explanations_add_up_in_units_of_y(estimator):
    X, y = bent_plane()
    for target in (y, np.stack([y, X[:, 0]], axis=1)):
        model = small(estimator).fit(X, target)
        account = model.explain(X[:20])
        found = model.predict(X[:20]).reshape(20, -1)
        assert_allclose(account.decision, found)
        assert_allclose(account.contributions.sum(axis=2) + account.intercept, found)
        lines = account.features()
        for i in range(20):
            here = (lines["row"] == i) & (lines["output"] == account.output_names[0])
            assert_allclose(lines["contribution"][here].sum(), found[i, 0])


@each
def test_regions_describe_y(estimator):
    X, y = bent_plane()
    model = small(estimator).fit(X, y)
    regions = model.regions_
    error = np.abs(y - model.predict(X))
    gates = max(1, len(np.unique(regions.columns.get("gate", [0]))))
    home = model.mosaic_.gate
    assert {"rows", "mean", "spread", "mean absolute error", "strongest features"} <= set(regions.columns)
    if gates == 1:
        tile, weight = home.code(X)
        first = tile[:, 0] if weight is None else tile[np.arange(len(tile)), weight.argmax(axis=1)]
        for k in np.unique(first):
            here = first == k
            assert regions["rows"][k] == here.sum()
            assert_allclose(regions["mean"][k], y[here].mean())
            assert_allclose(regions["spread"][k], y[here].std(), rtol=1e-5, atol=1e-6)
            assert_allclose(regions["mean absolute error"][k], error[here].mean(), rtol=1e-5)
    again = model.summarize_regions(X, y)
    assert_array_equal(again["rows"], regions["rows"])
    assert_allclose(again["mean"], regions["mean"])
    with pytest.raises(ValueError, match="y must have shape"):
        model.summarize_regions(X, np.stack([y, y], axis=1))


def test_rules_say_what_a_leaf_adds():
    X, y = bent_plane()
    model = TreeSVR(1, max_leaves=4, tiles="constant", random_state=0).fit(X, y)
    rules = model.rules_
    assert {"rule", "rows", "mean", "adds to y"} <= set(rules.columns)
    assert rules["rows"].sum() == 300
    text = model.export_text()
    assert text.count("\n") == len(rules) - 1
    assert "mean absolute error" in text
    assert "adds to y" in text
    # The whole is the global tile and the leaf, with the mean of y in the former.
    curves = sum(curve(X[:, f], tile=0) for f, curve in enumerate(model.curves_)) * model._global_factor
    leaf = model.mosaic_.gate.gates[1].code(X)[0][:, 0]
    offset = model.head_.values(model._global_factor * model.mosaic_.intercept)[0]
    assert_allclose(curves[0] + offset[0] + rules["adds to y"][leaf], model.predict(X), rtol=1e-6)


@each
def test_predictors_agree(estimator):
    X, y = bent_plane()
    for target in (y, np.stack([y, X[:, 0]], axis=1)):
        model = small(estimator).fit(X, target)
        predictor = pickle.loads(pickle.dumps(model.predictor()))
        assert_array_equal(predictor.predict(X), model.predict(X))
        for rows in (X, X.astype(np.float32)):
            one = [predictor(row) for row in rows[:20]]  # the second call takes the direct way
            assert_allclose(one, predictor.predict(rows[:20]), rtol=1e-12)
        if target.ndim == 1:
            assert isinstance(predictor(X[0]), float)
        assert predictor.classes is None
        with pytest.raises(AttributeError, match="no calibration"):
            predictor.predict_proba(X)


@each
def test_files_and_exports_agree(estimator, tmp_path):
    X, y = bent_plane()
    for target in (y, np.stack([y, X[:, 0]], axis=1)):
        model = small(estimator).fit(X, target)
        model.save(tmp_path / "model.svmosaic")
        assert_array_equal(load(tmp_path / "model.svmosaic").predict(X), model.predict(X))
        check_c(model, X, tmp_path)
        check_javascript(model, X, tmp_path)
        check_onnx(model, X)


def check_c(model, X, folder):
    source, header = model.to_c(folder / "model.c")
    assert "classes" not in header.read_text()
    strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-overlength-strings"]
    library = folder / f"model{np.random.default_rng().integers(1e9)}.so"  # a library that is open is not read again
    subprocess.run(
        [shutil.which("cc"), *strict, "-fPIC", "-shared", str(source), "-o", str(library), "-lm"], check=True
    )
    compiled = ctypes.CDLL(str(library))
    X = X[:50].astype(np.float32)
    expected = model.predict(X).reshape(len(X), -1)
    n_outputs = expected.shape[1]
    out = np.empty((len(X), n_outputs), dtype=np.float32)
    parts, rest = np.empty((len(X), n_outputs, X.shape[1])), np.empty((len(X), n_outputs))
    compiled.model_predict.restype = ctypes.c_float if model.predict(X[:1]).ndim == 1 else None
    for row in zip(X, out, parts, rest, strict=True):
        x, found, *explained = (part.ctypes.data_as(ctypes.c_void_p) for part in row)
        compiled.model_scores(x, found)
        compiled.model_explain(x, *explained)
        if model.predict(X[:1]).ndim == 1:
            assert compiled.model_predict(x) == row[1][0]
    size = np.abs(expected).max(axis=0)
    assert_allclose(out / size, expected / size, atol=1e-5)
    assert_allclose(parts.sum(axis=2) + rest, out, rtol=1e-5)


def check_javascript(model, X, folder):
    node = shutil.which("node")
    if node is None:
        return
    model.to_javascript(folder / "model.mjs")
    rows = X[:50].tolist()
    script = (
        "import * as m from './model.mjs'; const rows = " + repr(rows) + ";"
        "console.log(JSON.stringify({classes: m.classes, rows: rows.map(r => [m.predict(r), m.explain(r)])}));"
    )
    (folder / "run.mjs").write_text(script)
    import json

    found = json.loads(subprocess.run([node, "run.mjs"], cwd=folder, capture_output=True, check=True, text=True).stdout)
    assert found["classes"] is None
    expected = model.predict(X[:50])
    assert_allclose([one[0] for one in found["rows"]], expected, rtol=1e-9)
    for (_, told), values in zip(found["rows"], expected.reshape(50, -1), strict=True):
        sums = [sum(part.values()) + rest for part, rest in zip(told["contributions"], told["intercept"], strict=True)]
        assert_allclose(sums, values, rtol=1e-9)


def check_onnx(model, X):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.to_onnx(explain=True, dtype=np.float64).SerializeToString())
    names = [output.name for output in session.get_outputs()]
    assert names == ["variable", "contributions", "intercept"]
    found, parts, rest = session.run(None, {"X": X})
    expected = model.predict(X).reshape(len(X), -1)
    assert_allclose(found, expected, rtol=1e-9)
    assert_allclose(parts.sum(axis=2) + rest, expected, rtol=1e-9)


@pytest.mark.parametrize("estimator", [e for e in (*COMPOSED, LearnedGateSVR) if e is not KernelSVR])
def test_curves_are_in_units_of_y(estimator):
    X, y = bent_plane()
    model = small(estimator, pieces=6).fit(X, y)
    gate_share = sum(curve(X[:, f]) for f, curve in enumerate(model.curves_))
    assert gate_share.shape == (1, 300)
    if estimator is LinearSVR:
        account = model.explain(X)
        assert_allclose(np.diff(gate_share[0]), np.diff(account.contributions.sum(axis=(1, 2))), atol=1e-9)


@pytest.mark.parametrize("estimator", [LocallyLinearSVR, LearnedGateSVR])
def test_batches(estimator):
    X, y = bent_plane(2000)
    model = small(estimator)
    with pytest.raises(ValueError, match="rows before had"):
        small(estimator).partial_fit(X[:50], y[:50]).partial_fit(X[50:], np.stack([y[50:]] * 2, axis=1))
    for start in range(0, 2000, 250):
        model.partial_fit(X[start : start + 250], y[start : start + 250])
    assert model.score(X, y) > 0.8
    assert_allclose(model.head_.center, y[:250].mean())
    again = small(estimator).fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    assert again.score(X, y) > 0.8


def test_batches_do_what_one_pass_of_descent_does():
    X, y = bent_plane(400)
    settings = {"anchors": X[:8], "n_neighbors": 3, "code_scale": 0.5, "t0": 1e5, "shuffle": False}
    whole = LocallyLinearSVR(solver="sgd", max_iter=1, normalize_y=False, random_state=0, **settings)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        whole.fit(X, y)
    stream = LocallyLinearSVR(stream_length=400, normalize_y=False, random_state=0, **settings)
    for start in range(0, 400, 100):
        stream.partial_fit(X[start : start + 100], y[start : start + 100])
    # `fit` scales the weights by the factor that is best for its objective; their direction is the same.
    a, b = whole.mosaic_.coef.ravel(), stream.mosaic_.coef.ravel()
    assert_allclose(a / np.linalg.norm(a), b / np.linalg.norm(b), atol=1e-9)


def test_time_limits_and_callbacks():
    X, y = bent_plane(20_000)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="max_time"):
        LocallyLinearSVR(400, tol=1e-12, max_iter=10**6, max_time=0.05, random_state=0).fit(X, y)

    watcher = Watcher()
    model = small(ClusteredSVR).set_callbacks(watcher).fit(X[:200], y[:200])
    assert_array_equal(model.predict(X), small(ClusteredSVR).fit(X[:200], y[:200]).predict(X))
    assert watcher.scores[-1] == model.score(X[:200], y[:200]) > 0.8
    learned = Watcher(stop_after=2, task="epoch")
    assert small(LearnedGateSVR).set_callbacks(learned).fit(X[:200], y[:200]).stop_reason_ == "callback"


def test_a_path_of_c_is_the_separate_fits():
    X, y = bent_plane()
    model = ClusteredSVR(4, **EXACT)
    for fitted in fit_path(model, X, y, [{"C": 0.1}, {"C": 1.0}]):
        alone = clone(model).set_params(C=fitted.C).fit(X, y)
        assert_allclose(fitted.objective_, alone.objective_, rtol=1e-7)


def test_all_regressors_are_tried_here():
    assert {e.__name__ for e in [*COMPOSED, LearnedGateSVR]} <= {e.__name__ for e in REGRESSORS}


@each
def test_no_classes_among_the_anchors(estimator):
    if estimator is LocallyLinearSVR:
        with pytest.raises(ValueError, match="anchors='class' needs classes: pass 'kmeans'"):
            LocallyLinearSVR(anchors="class").fit(*bent_plane(50))
    assert "class_weight" not in estimator().get_params()
    assert "calibration" not in estimator().get_params()
    assert not hasattr(estimator(), "decision_function")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_pipelines_that_only_skl2onnx_knows():
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    from svmosaic.export.onnx import to_onnx

    X, y = bent_plane()
    for target in (y, np.stack([y, -y], axis=1)):
        model = make_pipeline(PolynomialFeatures(2), LinearSVR(random_state=0)).fit(X, target)
        session = runtime.InferenceSession(to_onnx(model).SerializeToString())
        (found,) = session.run(None, {"X": X.astype(np.float32)})
        assert_allclose(found, model.predict(X).reshape(len(X), -1), rtol=1e-4)
