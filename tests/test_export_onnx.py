"""Models as ONNX: run by onnxruntime, and compared with the engine."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import pytest
from exported import Fitted, check_agreement, check_densities, densities, estimators, rows_for, synthetic, training_set
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import LinearSVC, LocallyLinearSVC, NeighborsSVC
from svmosaic.export.onnx import OnnxExportError, register, to_onnx
from svmosaic.model.mosaic import Mosaic

SYNTHETIC = synthetic()
ESTIMATORS = estimators()
DENSITIES = densities()


def run(model, X):
    """The outputs by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


def check(model):
    exported = to_onnx(model)
    for kind, X in rows_for(model).items():
        out = run(exported, X)
        check_agreement(model, X, out["label"], out["scores"], kind=kind)
    return exported


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_coding_and_link_agrees_with_the_engine(name):
    check(SYNTHETIC[name])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_agrees_with_the_engine(name):
    X, y = training_set(3)
    model = ESTIMATORS[name].fit(X, y)
    out = run(check(model), X)
    if not hasattr(model, "predict_proba"):
        assert set(out) == {"label", "scores"}
    else:
        assert_allclose(out["probabilities"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_contributions_add_up_to_the_scores(name, n_classes):
    X, y = training_set(n_classes)
    model = ESTIMATORS[name].fit(X, y)
    if model.mosaic_.link != "identity":
        with pytest.raises(OnnxExportError, match=r"scores are sums of votes of the tiles, .* explain=True cannot"):
            model.to_onnx(explain=True)
        return
    rows = np.random.default_rng(0).standard_normal((1000, X.shape[1])).astype(np.float32)
    out = run(model.to_onnx(explain=True), rows)
    assert out["contributions"].shape == (1000, 1 if n_classes == 2 else n_classes, X.shape[1])
    assert_allclose(out["contributions"].sum(axis=2) + out["intercept"], out["scores"], rtol=1e-4, atol=1e-4)
    exact = run(model.to_onnx(explain=True, dtype=np.float64), rows.astype(np.float64))
    expected = model.explain(rows.astype(np.float64))
    assert_allclose(exact["contributions"], expected.contributions, rtol=1e-9, atol=1e-9)
    assert_allclose(exact["intercept"], expected.intercept, rtol=1e-9, atol=1e-9)


def test_a_path_is_written_to(tmp_path):
    X, y = training_set(2)
    model = LinearSVC(random_state=0).fit(X, y)
    proto = model.to_onnx(tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == proto == model.to_onnx()
    to_onnx(model, str(tmp_path / "again.onnx"), dtype=np.float64)
    assert onnx.load(tmp_path / "again.onnx") == model.to_onnx(dtype=np.float64)


def test_steps_that_are_not_ours_are_left_to_skl2onnx():
    X, y = training_set(3)
    pipeline = make_pipeline(StandardScaler(), PCA(4), LinearSVC(random_state=0)).fit(X, y)
    out = run(to_onnx(pipeline), X)
    assert list(out) == ["label", "probabilities"]
    assert_allclose(out["probabilities"], pipeline.decision_function(X), atol=1e-4)
    with pytest.raises(OnnxExportError, match="preparation PCA cannot be exported"):
        to_onnx(pipeline, explain=True)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", DENSITIES)
def test_models_of_densities_agree_with_their_own_scores(name, n_classes):
    X, y = training_set(n_classes)
    model = DENSITIES[name].fit(X, y)
    exported = model.to_onnx()
    for kind, rows in rows_for(model).items():
        out = run(exported, rows)
        check_densities(model, rows, out["label"], out["scores"], kind=kind)
    if hasattr(model, "predict_proba"):
        assert_allclose(run(exported, X)["probabilities"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("method", ["temperature", "sigmoid", "isotonic"])
def test_probabilities_of_two_classes(method):
    X, y = training_set(2)
    model = LinearSVC(calibration=method, random_state=0).fit(X, y)
    assert_allclose(run(check(model), X)["probabilities"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("name", ["clustered-isotonic", "local-llc", "local-temperature"])
def test_double_precision_is_exact(name):
    X, y = training_set(3)
    X = X.astype(np.float64)
    model = ESTIMATORS[name].fit(X, y)
    out = run(model.to_onnx(dtype=np.float64), X)
    assert_allclose(out["scores"], model.decision_function(X), rtol=1e-9, atol=1e-9)
    assert_array_equal(out["label"], model.predict(X))


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([0, 1], [0, 1]),
        ([-1.0, 1.0], [-1, 1]),
        ([0.5, 1.5], ["0.5", "1.5"]),
        ([False, True], [0, 1]),
        (["a", "b"],) * 2,
    ],
)
def test_labels_are_integers_or_text(classes, expected):
    X, y = training_set(2)
    places = np.unique(y, return_inverse=True)[1]
    model = Fitted(LinearSVC(random_state=0).fit(X, places).mosaic_, np.array(classes))
    answers = run(to_onnx(model), X)["label"]
    assert_array_equal(answers, np.array(expected)[LinearSVC(random_state=0).fit(X, places).predict(X)])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", [None, "sigmoid"])
def test_a_pipeline_converts_with_skl2onnx(n_classes, calibration):
    from skl2onnx import to_onnx as convert

    register()
    X, y = training_set(n_classes)
    model = LocallyLinearSVC(8, n_neighbors=3, tol=1e-2, calibration=calibration, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    converted = convert(pipeline, X[:1], options={id(model): {"zipmap": False}}, target_opset=15)
    onnx.checker.check_model(converted)
    out = run(converted, X)
    assert list(out) == ["label", "probabilities"]
    ours = run(to_onnx(pipeline), X)
    assert_array_equal(ours["label"], out["label"])
    assert_array_equal(ours["probabilities"], out["probabilities"])
    assert_array_equal(out["label"], pipeline.predict(X))
    if calibration:
        assert_allclose(out["probabilities"], pipeline.predict_proba(X), atol=1e-5)
    else:
        scores = pipeline.decision_function(X)
        expected = np.column_stack([-scores, scores]) if n_classes == 2 else scores
        assert_allclose(out["probabilities"], expected, atol=1e-4)


def test_what_cannot_be_written_is_named():
    X, y = training_set(2)
    mapped = LocallyLinearSVC(5, feature_map=Nystroem(n_components=5), tol=1e-1, random_state=0).fit(X, y)
    with pytest.raises(OnnxExportError, match="feature map Nystroem"):
        mapped.to_onnx()

    @dataclass
    class OtherGate:
        n_tiles: int = 1

    other = Fitted(Mosaic(OtherGate(), np.ones((1, 1, 2)), np.ones((1, 1))), np.arange(2))
    with pytest.raises(OnnxExportError, match=r"gate OtherGate cannot .* known are SingleCell, DistanceGate"):
        to_onnx(other)
    with pytest.raises(OnnxExportError, match=r"NeighborsSVC cannot be written .* keeps its training rows"):
        NeighborsSVC(5).fit(X, y).to_onnx()
    with pytest.raises(OnnxExportError, match="float16"):
        to_onnx(SYNTHETIC["soft-vote-3"], dtype=np.float16)


def test_onnx_is_imported_when_it_is_needed_only():
    code = "import sys, svmosaic; svmosaic.LinearSVC; print([m for m in ('onnx', 'skops') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
