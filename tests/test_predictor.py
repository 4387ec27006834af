"""The compiled predictor, and the scoring engine under it."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import RBFSampler
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import svmosaic
from svmosaic import (
    BoostedLinearSVC,
    ClusteredSVC,
    FusedSVC,
    GaussianMixtureClassifier,
    KMeansSVC,
    LearnedGateSVR,
    LinearSVC,
    LocallyLinearSVC,
    MosaicClassifier,
    NeighborsSVC,
    mixture_to_svm,
    svm_to_mixture,
)
from svmosaic.datasets import make_xor
from svmosaic.export.c import CExportError, to_c
from svmosaic.export.files import save, save_predictor
from svmosaic.export.onnx import OnnxExportError, to_onnx
from svmosaic.gates import CODINGS, DistanceGate, SingleCell
from svmosaic.model.mosaic import LINKS, Mosaic


def random_mosaic(rng, *, coding="softmax", n_tiles=6, n_outputs=3, n_features=5, width=3, link="identity"):
    width = 1 if coding == "nearest" else width
    gate = DistanceGate(
        rng.standard_normal((n_tiles, n_features)), coding, width, 0.3,
        log_prior=rng.standard_normal(n_tiles) if coding == "softmax" else None, factor=rng.uniform(0.5, 2.0, n_tiles),
    )  # fmt: skip
    coef = rng.standard_normal((n_tiles, n_outputs, n_features))
    return Mosaic(gate, coef, rng.standard_normal((n_tiles, n_outputs)), link)


def reference_scores(mosaic, X):
    """sum_a weight link(<w, x> + b), term by term, with the codes of the gate."""
    tile, weight = mosaic.gate.code(X)
    out = np.zeros((len(X), mosaic.coef.shape[1]))
    for i in range(len(X)):
        for a in range(tile.shape[1]):
            s = mosaic.coef[tile[i, a]] @ X[i].astype(float) + mosaic.intercept[tile[i, a]]
            if mosaic.link != "identity":
                s = np.array([{"vote": reference.vote, "posterior": reference.posterior}[mosaic.link](v) for v in s])
            out[i] += (1.0 if weight is None else weight[i, a]) * s
    return out


def reference_weights(gate, X):
    """The gate's weights of each row over all tiles, from the formulas of its docstring."""
    X = X.astype(float)
    dense = np.zeros((len(X), gate.n_tiles))
    for i, x in enumerate(X):
        squared = ((x - gate.centers) ** 2).sum(axis=1)
        chosen = np.argsort(squared, kind="stable")[: gate.width]
        if gate.coding == "nearest":
            w = np.ones(1)
        elif gate.coding == "inverse":
            w = 1 / np.sqrt(squared[chosen])
        elif gate.coding == "softmax":
            w = np.exp(-gate.scale * squared[chosen] + gate.log_prior[chosen])
        elif gate.coding == "kernel":
            w = np.exp(-gate.scale * squared[chosen])
        else:
            d = np.sqrt(squared[chosen])
            locality = np.exp((d - d.max()) / d.max()) if gate.coding == "llc" else np.ones(len(d))
            offset = x - gate.centers[chosen]
            ridge = gate.scale * squared[chosen].mean() * locality**2
            w = np.linalg.solve(offset @ offset.T + np.diag(ridge), np.ones(len(d)))
        total = 1 if gate.coding == "kernel" else w.sum()
        dense[i, chosen] = w / total * (1 if gate.factor is None else gate.factor[chosen])
    return dense


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coding", CODINGS)
def test_codes_are_those_of_the_formulas(coding, dtype):
    rng = np.random.default_rng(0)
    gate = random_mosaic(rng, coding=coding).gate
    X = rng.standard_normal((40, 5)).astype(dtype)
    tile, weight = gate.code(X)
    dense = np.zeros((40, gate.n_tiles))
    np.put_along_axis(dense, tile, np.ones(tile.shape) if weight is None else weight, axis=1)
    assert_allclose(dense, reference_weights(gate, X), atol=1e-12 if dtype == np.float64 else 2e-5)


# Shapes on both sides of the choice between all tiles and the selected ones, and of that between dots and panels.
SHAPES = [
    dict(n_tiles=6, n_outputs=1, n_features=5, width=6),
    dict(n_tiles=6, n_outputs=7, n_features=5, width=6),
    dict(n_tiles=90, n_outputs=2, n_features=70, width=2),
    dict(n_tiles=40, n_outputs=9, n_features=33, width=3),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("coding", ["nearest", "softmax"])
def test_engine_row_batch_sparse_and_reference_agree(coding, link, shape, dtype):
    rng = np.random.default_rng(1)
    mosaic = random_mosaic(rng, coding=coding, link=link, **shape)
    X = rng.standard_normal((120, shape["n_features"])).astype(dtype)
    expected = reference_scores(mosaic, X)
    tolerance = dict(atol=1e-11, rtol=1e-11) if dtype == np.float64 else dict(atol=3e-5, rtol=1e-5)
    assert_allclose(mosaic.decision_function(X), expected, **tolerance)
    assert_allclose(mosaic.decision_function(sparse.csr_array(X)), expected, **tolerance)
    assert_array_equal(mosaic.decision_function(X, n_jobs=2), mosaic.decision_function(X))
    predictor = mosaic.compile()
    batch = predictor.decision_function(X)
    assert_array_equal(batch.reshape(len(X), -1), mosaic.decision_function(X))
    # A single row is added up in the same order as a batch, but not through the same kernels for many rows at once.
    rows = np.array([predictor.decision_function(x) for x in X])
    assert_allclose(rows, batch, **tolerance)
    strided = np.asfortranarray(X)
    assert_array_equal([predictor.decision_function(x) for x in strided], rows)


ESTIMATORS = [
    LinearSVC(random_state=0),
    KMeansSVC(5, tol=1e-2, random_state=0),
    ClusteredSVC(5, tol=1e-2, random_state=0),
    LocallyLinearSVC(12, n_neighbors=4, random_state=0),
    LocallyLinearSVC(12, n_neighbors=4, feature_map=RBFSampler(n_components=20, random_state=0), random_state=0),
]


def training_set(n_classes, dtype=np.float64):
    X, y = make_classification(
        300, 8, n_informative=5, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )  # fmt: skip
    return X.astype(dtype), np.array(["ant", "bee", "cat", "dog"])[y]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predictor_answers_as_the_estimator(estimator, n_classes):
    X, y = training_set(n_classes)
    model = estimator.fit(X, y)
    predictor = model.predictor()
    assert_array_equal(predictor(X), model.predict(X))
    assert_array_equal(predictor.predict(X.tolist()), model.predict(X))
    assert_array_equal([predictor(x) for x in X], model.predict(X))
    assert_array_equal(predictor.decision_function(X), model.decision_function(X))
    assert_allclose(predictor.decision_function(X[0]), model.decision_function(X[:1])[0], rtol=1e-12)
    assert_array_equal(predictor(sparse.csr_array(X)), model.predict(sparse.csr_array(X)))
    again = pickle.loads(pickle.dumps(predictor))
    assert_array_equal(again(X), predictor(X))


def test_rows_of_integers_are_converted_and_a_first_call_may_be_a_row():
    X, y = training_set(2)
    model = LinearSVC(random_state=0).fit(X, y)
    row = np.arange(8)
    assert model.predictor()(row) == model.predict([row])[0]
    assert model.predictor().decision_function(row) == pytest.approx(model.decision_function([row])[0])


def test_errors_name_shape_and_dtype():
    X, y = training_set(2)
    predictor = LinearSVC(random_state=0).fit(X, y).predictor()
    predictor(X[0])
    with pytest.raises(ValueError, match="the row has 3 features, the model 8"):
        predictor(X[0, :3].copy())
    with pytest.raises(ValueError, match=r"\(8,\) or \(n_samples, 8\), got \(300, 3\)"):
        predictor(X[:, :3])
    with pytest.raises(ValueError, match=r"got \(2, 2, 2\)"):
        predictor(np.zeros((2, 2, 2)))
    with pytest.raises(TypeError, match="dtype <U1"):
        predictor(np.array(["a"] * 8))
    with pytest.raises(TypeError, match="CSR"):
        predictor(sparse.csc_array(X))
    with pytest.raises(AttributeError, match="calibration="):
        predictor.predict_proba(X[0])
    with pytest.raises(ValueError, match="2 classes"):
        Mosaic(SingleCell(), np.ones((1, 1, 2)), np.ones((1, 1))).compile([1, 2, 3])


@pytest.mark.parametrize(
    "estimator", [LinearSVC(pieces=4), LearnedGateSVR(4, max_iter=2)], ids=lambda e: type(e).__name__
)
def test_rows_by_name(estimator, tmp_path):
    X, y = make_xor(60, random_state=0)
    frame = pd.DataFrame(X, columns=["height", "width"])
    model = estimator.fit(frame, y)
    predictor = model.predictor()
    rows = frame[["width", "height"]].assign(other="ignored").to_dict("records")
    assert predictor.predict(rows).tolist() == model.predict(frame).tolist()
    assert predictor.predict(rows[0]) == model.predict(frame[:1])[0]
    assert np.ndim(predictor.decision_function(rows[0])) == 0
    save_predictor(predictor, tmp_path / "predictor")
    assert svmosaic.load(tmp_path / "predictor").predict(rows).tolist() == model.predict(frame).tolist()
    with pytest.raises(ValueError, match="the row lacks 'width'"):
        predictor.predict({"height": 1.0})
    for value in (None, "1.0"):
        with pytest.raises(ValueError, match=f"column 'width' must be a number, got {value!r}"):
            predictor.predict({"height": 1.0, "width": value})
    with pytest.raises(TypeError, match="without column names"):
        estimator.fit(X, y).predictor().predict(rows[0])


def test_a_table_of_numbers_is_answered_by_name_as_one_with_text_is():
    X, y = make_xor(60, random_state=0)
    frame = pd.DataFrame(X, columns=["height", "width"])
    model = MosaicClassifier(0.5, families=("linear",), random_state=0).fit(frame, y)
    row = frame.iloc[3].to_dict()
    assert model.predictor().predict(row) == model.predict(frame[3:4])[0]


def test_threads_are_counted_from_one():
    X, y = make_xor(60, random_state=0)
    with pytest.raises(ValueError, match="n_threads must be at least 1, got 0"):
        LinearSVC().fit(X, y).predictor().predict(X, n_threads=0)


def test_many_threads_may_call_at_once():
    X, y = training_set(4)
    model = LocallyLinearSVC(12, n_neighbors=4, random_state=0).fit(X, y)
    predictor = model.predictor()
    expected = model.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: np.array([predictor(x) for x in X]), range(16)):
            assert_array_equal(answer, expected)


def answer_of_pickle(predictor, path):
    """What an unpickled predictor says to a row of zeros in a process that must not import more than it needs."""
    path.write_bytes(pickle.dumps(predictor))
    code = (
        "import pickle, sys, numpy as np\n"
        f"predictor = pickle.load(open({str(path)!r}, 'rb'))\n"
        "print(predictor(np.zeros(predictor.n_features)))\n"
        "assert not {'sklearn', 'scipy', 'joblib'} & set(sys.modules)\n"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_pickled_predictor_needs_numpy_and_the_core_only(tmp_path):
    X, y = training_set(4)
    model = ClusteredSVC(5, tol=1e-2, random_state=0).fit(X, y)
    assert answer_of_pickle(model.predictor(), tmp_path / "p.pickle") == str(model.predict(np.zeros((1, 8)))[0])


def test_a_row_on_a_centre_and_rows_out_of_all_reach_stay_finite():
    rng = np.random.default_rng(0)
    for coding in CODINGS:
        mosaic = random_mosaic(rng, coding=coding)
        X = np.concatenate([mosaic.gate.centers, [np.zeros(5), np.full(5, 1e30), np.full(5, -1e-30)]])
        for dtype in (np.float32, np.float64):
            scores = mosaic.decision_function(X.astype(dtype))
            assert np.isfinite(scores).all()
            assert_allclose(scores, mosaic.decision_function(X), rtol=2e-4, atol=2e-4)


COVARIANCES, POOLINGS = ("spherical", "diag", "full"), ("all", "class", "none")
KERNEL_NAMES = [
    f"{name} {n_classes}"
    for n_classes in (2, 3)
    for name in [
        *(f"mixture {c} {p}" for c in COVARIANCES for p in POOLINGS),
        *(f"fused {weight}" for weight in (0, 0.4, 1)),
        *(f"converted mixture {bias}" for bias in ("class", "wide")),
        *(f"converted svm {c}" for c in COVARIANCES),
    ]
]


@cache
def kernel_model(name):
    """The model of this name, and rows."""
    kind, *options, n_classes = name.split()
    n_classes = int(n_classes)
    X, y = make_classification(
        240, 6, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=n_classes, shift=3.0
    )
    y = np.array(["a", "b", "c"])[y]
    svm = SVC() if n_classes == 2 else OneVsRestClassifier(SVC())
    if kind == "mixture":
        covariance, pooling = options
        return GaussianMixtureClassifier(3, covariance=covariance, pooling=pooling, random_state=0).fit(X, y), X
    if kind == "fused":
        weight = float(options[0])
        calibration = "temperature" if weight == 0.4 else None
        model = FusedSVC(svm, GaussianMixtureClassifier(2), weight=weight, random_state=0, calibration=calibration)
        return model.fit(X, y), X
    if options[0] == "mixture":
        return svm_to_mixture(svm.fit(X, y), bias=options[1]), X
    return mixture_to_svm(GaussianMixtureClassifier(2, covariance=options[1], random_state=0).fit(X, y)), X


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_kernel_predictor_agrees_with_the_model(name):
    model, X = kernel_model(name)
    X = np.vstack([X, X[:5] + 1e3, np.zeros((1, X.shape[1]))])
    predictor = model.predictor()
    wanted = model.decision_function(X)
    found = predictor.decision_function(X)
    assert found.shape == wanted.shape
    size = np.abs(wanted).max()
    assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * size)
    assert_array_equal(predictor(X), model.predict(X))
    assert_array_equal(predictor.decision_function(X, n_threads=2), found)
    again = pickle.loads(pickle.dumps(predictor))
    assert_array_equal(again.decision_function(X), found)
    for row, score, label in zip(X[:4], found, predictor.predict(X), strict=False):
        assert predictor(row) == label
        assert_allclose(predictor.decision_function(row), score, rtol=1e-12, atol=1e-12 * size)
    if hasattr(model, "predict_proba"):
        assert_allclose(predictor.predict_proba(X), model.predict_proba(X), atol=1e-12)
        assert_allclose(predictor.predict_proba(X[0]), model.predict_proba(X[:1])[0], atol=1e-12)
    else:
        with pytest.raises(AttributeError, match="no calibration"):
            predictor.predict_proba(X)


def test_kernel_predictor_from_many_threads():
    model, X = kernel_model("fused 0.4 3")
    predictor, wanted = model.predictor(), model.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(predictor.decision_function, list(X)))
    assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.zeros(5), ValueError, r"X must have shape \(6,\) or \(n_samples, 6\), got \(5,\)"),
        (np.zeros((1, 2, 6)), ValueError, "got \\(1, 2, 6\\)"),
        (np.array(["a"] * 6), TypeError, "rows must be numbers"),
        (sparse.csr_array(np.eye(6)), TypeError, "toarray"),
    ],
)
def test_kernel_predictor_refuses_other_rows(rows, error, message):
    with pytest.raises(error, match=message):
        kernel_model("mixture diag all 2")[0].predictor().predict(rows)


def test_a_kernel_predictor_needs_numpy_and_the_core_only(tmp_path):
    model, X = kernel_model("fused 0.4 2")
    model = FusedSVC(SVC(), GaussianMixtureClassifier(2), weight=0.4, random_state=0).fit(X, model.predict(X))
    assert answer_of_pickle(model.predictor(), tmp_path / "p.pickle") == model.predict(np.zeros((1, 6)))[0]


def test_converted_objects_are_saved_and_opened(tmp_path):
    for name in ("converted mixture class 3", "converted svm full 2"):
        model, X = kernel_model(name)
        model.save(tmp_path / "m.model")
        again = svmosaic.load(tmp_path / "m.model")
        assert type(again) is type(model)
        assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_what_has_no_form_outside_of_python_says_why(tmp_path):
    """The table of docs/prediction.md, as far as it refuses."""
    converted, X = kernel_model("converted svm full 2")
    y = converted.predict(X)
    models = [converted, kernel_model("converted mixture class 2")[0], NeighborsSVC().fit(X, y)]
    models.append(BoostedLinearSVC(2).fit(X, y))
    for model in models:
        name = type(model).__name__
        with pytest.raises(OnnxExportError, match=f"{name} cannot be written as ONNX: it (has no|is a) "):
            to_onnx(model)
        with pytest.raises(CExportError, match=f"{name} cannot be written as C: it (has no|is a) "):
            to_c(model, tmp_path / "model.c")
        assert not list(tmp_path.iterdir())
        save(model, tmp_path / "m.model")
        assert_array_equal(svmosaic.load(tmp_path / "m.model").predict(X), model.predict(X))
        (tmp_path / "m.model").unlink()
