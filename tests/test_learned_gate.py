"""Gates that learn: threads, and what the estimator promises."""

import signal
import subprocess
import sys
import textwrap
import time
from time import process_time

import needs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from test_export_onnx import run

import svmosaic
from svmosaic import LearnedGateSVC, LocallyLinearSVC
from svmosaic.datasets import make_banana
from svmosaic.estimators.data import Target
from svmosaic.estimators.learned_gate import LearningRows
from svmosaic.export.c import to_c
from svmosaic.gates import ProjectedGate, SeveralGates, principal_components
from svmosaic.model.heads import Classify
from svmosaic.rows import Rows


def data(n_classes=3, n_rows=300, seed=0):
    X, y = make_classification(
        n_rows, 7, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=2, random_state=seed
    )  # fmt: skip
    return X, y


def small(**settings):
    defaults = {"n_tiles": 8, "n_neighbors": 3, "max_iter": 10, "early_stopping": False, "random_state": 0}
    return LearnedGateSVC(**defaults | settings)


def quarters(seed, n_rows=3000):
    """The signs of two of six features decide; k-means looks at all of them."""
    X = np.random.default_rng(seed).standard_normal((n_rows, 6))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_principal_components(storage):
    X = np.random.default_rng(0).standard_normal((500, 6)) * [1, 5, 2, 0.1, 3, 0.2] + 4
    found = principal_components(storage(X), 3, np.random.RandomState(0))
    expected = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3]
    assert_allclose(np.abs(found @ expected.T), np.eye(3), atol=1e-5)


def test_principal_components_of_many_features():
    rng = np.random.default_rng(0)
    strong = np.linalg.qr(rng.standard_normal((1200, 2)))[0].T
    X = rng.standard_normal((300, 2)) * [30, 20] @ strong + 0.01 * rng.standard_normal((300, 1200))
    found = principal_components(sparse.csr_array(X), 2, np.random.RandomState(0))
    assert_allclose(np.linalg.norm(found @ strong.T, axis=1), 1, atol=1e-3)


# ---- the estimator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"n_gates": 3}, {"n_gates": 2, "dropout": 0.3, "loss": "log_loss"}])
@pytest.mark.parametrize("n_components", [4, None])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_threads_do_not_change_a_bit(storage, n_components, settings):
    X, y = data(n_rows=1500)
    settings = settings | {"n_components": n_components, "batch_size": 500, "early_stopping": True}
    one, *others = (small(**settings, n_jobs=n).fit(storage(X), y) for n in (1, 2, 5))
    for other in others:
        assert_array_equal(one.mosaic_.coef, other.mosaic_.coef)
        assert_array_equal(one.decision_function(X), other.decision_function(X))
        assert one.loss_curve_ == other.loss_curve_


@pytest.mark.parametrize("n_components", [4, None])
def test_a_frozen_gate_stays(n_components):
    X, y = data()
    short, long = (small(learn_gate=False, n_components=n_components, max_iter=n).fit(X, y) for n in (1, 10))
    learnt = small(n_components=n_components).fit(X, y)
    gates = [model.mosaic_.gate for model in (short, long, learnt)]
    assert isinstance(gates[0], ProjectedGate) == (n_components is not None)
    if n_components is not None:
        assert_array_equal(gates[0].projection, gates[1].projection)
        assert np.abs(gates[0].projection - gates[2].projection).max() > 1e-3
        gates = [gate.inner for gate in gates]
    assert_array_equal(gates[0].centers, gates[1].centers)
    assert gates[0].scale == gates[1].scale
    assert np.abs(gates[0].centers - gates[2].centers).max() > 1e-3
    assert np.abs(short.mosaic_.coef - long.mosaic_.coef).max() > 1e-3


def test_learnt_regions_beat_fixed_ones():
    X, y = quarters(0)
    X_test, y_test = quarters(1)
    settings = {"n_tiles": 10, "n_components": 4, "n_neighbors": 4, "max_iter": 40}
    learnt, fixed = (small(**settings, learn_gate=gate).fit(X, y).score(X_test, y_test) for gate in (True, False))
    assert learnt > fixed + 0.05


def test_polishing_never_lowers_the_held_out_score():
    kept = set()
    for seed in range(4):
        for max_iter in (1, 30):
            X, y = data(seed=seed)
            settings = {"validation_fraction": 0.3, "max_iter": max_iter, "random_state": seed}
            model = small(**settings, polish=True).fit(X, y)
            train, (X_held, held) = _rows(X, y).hold_out(90, False, np.random.RandomState(seed))
            before, after = model.polish_scores_
            score = np.mean(model.predict(X_held.astype(np.float32)) == held.classes[held.label])
            assert_allclose(score, max(before, after))
            assert model.polished_ == (after > before)
            assert train.n_rows + len(held.label) == len(y)
            kept.add(model.polished_)
    assert kept == {True, False}


def _rows(X, y):
    classes, label = np.unique(y, return_inverse=True)
    return LearningRows.of(X, Target(Classify(classes), label, np.ones(len(y)), np.ones(len(y))))


def test_polished_tiles_have_a_certificate():
    X, y = data()
    model = small(polish=True, tol=1e-4).fit(X, y)
    assert model.dual_gap_.shape == (3,)
    assert (model.dual_gap_ <= 1e-4 * 10.0 * len(y)).all()


def test_a_frozen_gate_with_polished_tiles_is_the_locally_linear_svm():
    X, y = data(seed=1)
    X = X.astype(np.float32)
    model = small(n_components=None, learn_gate=False, polish=True, max_iter=1, learning_rate=1e-6, tol=1e-10).fit(X, y)
    assert model.polished_
    train, _ = _rows(X, y).hold_out(30, False, np.random.RandomState(0))
    X_train, train = train.gate_rows, train.target
    gate = model.mosaic_.gate
    local = LocallyLinearSVC(
        n_neighbors=3, anchors=gate.centers, code_scale=gate.scale, loss="squared_hinge", C=10.0, tol=1e-10,
        max_iter=100_000, random_state=0,
    ).fit(X_train, train.label)  # fmt: skip
    assert_allclose(model.decision_function(X), local.decision_function(X), atol=1e-3)


def test_a_row_of_weight_zero_is_not_there():
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 2, len(y)).astype(float)
    weighted = small().fit(X, y, sample_weight=weight)
    without = small().fit(X[weight > 0], y[weight > 0])
    assert_array_equal(weighted.decision_function(X), without.decision_function(X))


def test_weights_pull_the_boundary():
    X, y = data(2)
    plain, heavy = small().fit(X, y), small(class_weight={0: 1, 1: 50}).fit(X, y)
    assert np.mean(heavy.predict(X) == 1) > np.mean(plain.predict(X) == 1)


@pytest.mark.parametrize("n_components", [4, None])
def test_sparse_rows_give_what_dense_ones_do(n_components):
    X, y = data()
    X[np.abs(X) < 0.5] = 0
    dense = small(n_components=n_components, max_iter=3).fit(X, y)
    csr = small(n_components=n_components, max_iter=3).fit(sparse.csr_array(X), y)
    assert_allclose(csr.decision_function(X), dense.decision_function(X), atol=1e-3)
    assert_allclose(csr.decision_function(sparse.csr_array(X)), csr.decision_function(X), atol=1e-9)


def test_warm_start_goes_on():
    X, y = make_banana(1000, random_state=0)
    model = small(warm_start=True, max_iter=5).fit(X, y)
    first = model.loss_curve_[0]
    model.fit(X, y)
    assert model.loss_curve_[0] < first / 2
    model.set_params(n_tiles=5).fit(X, y)  # another number of tiles: anew
    assert model.mosaic_.n_tiles == 5
    assert model.loss_curve_[0] > first / 2
    names = np.array(["no", "yes"])[y]
    assert_array_equal(model.fit(X, names).classes_, ["no", "yes"])


def test_batches_of_a_stream():
    model = small(n_tiles=20)
    X_test, y_test = make_banana(1000, random_state=99)
    scores = []
    for seed in range(15):
        X, y = make_banana(1000, random_state=seed)
        scores.append(model.partial_fit(X, y, classes=[0, 1]).score(X_test, y_test))
    fitted = small(n_tiles=20).fit(*make_banana(15_000, random_state=0)).score(X_test, y_test)
    assert scores[-1] > fitted - 0.02
    assert model.n_iter_ == 15
    with pytest.raises(ValueError, match="not the same as in the first call"):
        model.partial_fit(X, y, classes=[0, 2])


def test_a_stream_goes_on_from_fit_and_from_polished_tiles():
    X, y = data(seed=1)
    model = small(polish=True, max_iter=1).fit(X, y)
    assert model.polished_
    before = model.mosaic_
    model.set_params(learning_rate=1e-7).partial_fit(X, y)
    assert_allclose(model.mosaic_.coef, before.coef, atol=1e-4)
    assert not model.polished_


def test_early_stopping_keeps_the_best(monkeypatch):
    X, y = data(n_rows=600)
    settings = {"early_stopping": True, "n_iter_no_change": 3, "max_iter": 60, "learning_rate": 0.1}
    monkeypatch.setattr("svmosaic.estimators.learned_gate.LARGEST_REFIT", 0)
    model = small(**settings).fit(X, y)
    scores = model.validation_scores_
    best = int(np.argmax(scores))
    assert model.n_iter_ == len(scores) == best + 4 < 60
    assert model.best_iter_ == best + 1
    assert model.stop_reason_ == "early_stopping"
    _, (X_held, held) = _rows(X.astype(np.float32), y).hold_out(60, False, np.random.RandomState(0))
    assert_allclose(model.score(X_held, held.classes[held.label]), scores[best])
    monkeypatch.undo()
    again = small(**settings).fit(X, y)
    assert again.validation_scores_ == scores
    assert again.best_iter_ == best + 1
    assert len(again.loss_curve_) == len(scores)
    assert again.n_iter_ == len(scores) + best + 1


def test_early_stopping_needs_enough_rows():
    X, y = data(n_rows=600)
    assert small(early_stopping="auto").fit(X, y).validation_scores_
    few = small(early_stopping="auto").fit(X[:400], y[:400])
    assert few.validation_scores_ == []
    assert few.best_iter_ == few.n_iter_ == 10


def test_several_gates_start_apart_and_are_added_up():
    X, y = data(n_rows=600)
    model = small(n_gates=3).fit(X, y)
    gate = model.mosaic_.gate
    assert isinstance(gate, SeveralGates)
    assert_allclose(gate.factors, 1 / np.sqrt(3))
    assert gate.n_tiles == 24
    assert gate.width == 9
    lengths = [
        np.linalg.norm(part.projection, axis=1) for part in small(n_gates=3, max_iter=1).fit(X, y).mosaic_.gate.gates
    ]
    assert np.ptp(lengths) > 0.2
    assert_array_equal(np.bincount(model.regions_["gate"], model.regions_["rows"]), [600] * 3)
    tile, weight = gate.code(X)
    assert_allclose(weight.sum(axis=1), np.sqrt(3))
    scores = np.einsum("na,nacd,nd->nc", weight, model.mosaic_.coef[tile], X)
    scores += np.einsum("na,nac->nc", weight, model.mosaic_.intercept[tile])
    assert_allclose(model.decision_function(X), scores, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_the_log_loss_are_probabilities(n_classes):
    X, y = data(n_classes, n_rows=600)
    X = X.astype(np.float32)
    model = small(loss="log_loss", max_iter=3).fit(X, y)
    scores = model.decision_function(X).reshape(len(X), -1)
    logits = np.hstack([np.zeros_like(scores), scores]) if n_classes == 2 else scores
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    assert_array_equal(model.predict(X), expected.argmax(axis=1))
    # The loss of one more pass with a rate of zero is the mean log-loss of these probabilities.
    engine_loss, _ = model._learner.epoch(
        Rows(X), y[:, None].astype(np.float32), np.ones(len(y)), np.arange(len(y), dtype=np.int32), len(y), np.zeros(1)
    )
    assert_allclose(engine_loss / len(y), -np.log(expected[np.arange(len(y)), y]).mean(), rtol=1e-4)
    with pytest.raises(ValueError, match="polish=True needs loss='squared_hinge'"):
        small(loss="log_loss", polish=True).fit(X, y)


@pytest.mark.parametrize("n_gates", [1, 2])
def test_what_comes_after_fitting(tmp_path, n_gates):
    X, y = data()
    X = X.astype(np.float32)
    model = small(n_gates=n_gates).fit(X, np.array(["a", "b", "c"])[y])
    assert_allclose(model.predictor().decision_function(X), model.decision_function(X))
    assert_array_equal(model.predictor().predict(X), model.predict(X))
    assert model.predictor()(X[0]) == model.predict(X[:1])[0]
    assert sum(model.regions_["rows"]) == n_gates * len(y)
    assert not hasattr(model, "predict_proba")
    factors = n_gates if n_gates > 1 else 0
    assert model.mosaic_.n_bytes == 8 * (n_gates * (8 * 3 * (7 + 1) + 7 * 7 + 8 * 7) + factors)
    explanation = model.explain(X[:5])
    assert len(explanation.tiles()["tile"]) >= 5
    model.save(tmp_path / "model")
    again = svmosaic.load(tmp_path / "model")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    coefs = [estimator.partial_fit(X, model.predict(X)).mosaic_.coef for estimator in (again, model)]
    assert_array_equal(*coefs)


def test_regions_are_those_of_the_last_batch():
    X, y = data()
    model = small().fit(X, y)
    assert sum(model.regions_["rows"]) == 300
    model.partial_fit(X[:120], y[:120])
    assert sum(model.regions_["rows"]) == 120
    assert_array_equal(model.regions_["rows"], model.summarize_regions(X[:120].astype(np.float32), y[:120])["rows"])


EXPORTED = [(4, 1), (None, 1), (4, 3)]


@pytest.mark.parametrize(("n_components", "n_gates"), EXPORTED)
def test_as_c(tmp_path, n_components, n_gates):
    from test_export_c import Compiled

    X, y = data()
    X = X.astype(np.float32)
    model = small(n_gates=n_gates, n_components=n_components).fit(X, y)
    source, _ = to_c(model, tmp_path / "model.c")
    assert_allclose(Compiled(source, 3).scores(X), model.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(("n_components", "n_gates"), EXPORTED)
def test_as_onnx(n_components, n_gates):
    X, y = data()
    X = X.astype(np.float32)
    model = small(n_gates=n_gates, n_components=n_components).fit(X, y)
    out = run(model.to_onnx(), X)
    assert_allclose(out["scores"], model.decision_function(X), atol=1e-4)
    assert_array_equal(out["label"], model.predict(X))


# ---- stopping --------------------------------------------------------------------------------------------------------


def test_callbacks_see_every_epoch_and_can_stop():
    from test_em import Recorder

    X, y = data()
    watcher, stopper = Recorder(), Recorder(stop_after=2)
    model = small(max_iter=4).set_callbacks(watcher).fit(X, y)
    assert len(watcher.scores) == model.n_iter_ == 4
    assert model.stop_reason_ == "max_iter"
    assert watcher.scores[-1] == model.score(X, y)
    assert (watcher.events[0], watcher.events[-1]) == ("setup", "teardown")
    model.set_callbacks(stopper).fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (2, "callback")


@pytest.mark.parametrize("early_stopping", [False, True])
def test_time_is_up_within_an_epoch(early_stopping):
    X, y = data(n_rows=2000)
    model = small(early_stopping=early_stopping, n_iter_no_change=10**6, max_iter=10**6, max_time=0.3, batch_size=4)
    began = process_time()
    with pytest.warns(ConvergenceWarning, match=r"stopped after max_time=0.3 s, in epoch \d+ of max_iter=1000000"):
        model.fit(X, y)
    assert process_time() - began < 5
    assert model.stop_reason_ == "max_time"
    assert 1 <= model.n_iter_ < 10**6
    assert model.score(X, y) > 0.5


INTERRUPTED = """
    import numpy as np
    from svmosaic import LearnedGateSVC
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40_000, 10)).astype(np.float32), rng.randint(10, size=40_000)
    model = LearnedGateSVC(50, max_iter=10**4, early_stopping=False, n_jobs=2, random_state=0)
    print("start", flush=True)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        assert not hasattr(model, "mosaic_")
        print("interrupted", flush=True)
"""


@needs.posix
def test_an_interrupt_is_heard_between_batches():
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(INTERRUPTED)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "start\n"
        time.sleep(1.0)
        assert child.poll() is None
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 1.0
        child.wait(timeout=10)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "hinge"), ("max_time", 0), ("n_gates", 0), ("dropout", 1.0), ("early_stopping", None),
        ("n_tiles", 0), ("n_components", 0), ("n_neighbors", 2.5), ("weight_decay", -1), ("max_iter", 0),
        ("learning_rate", 0.0), ("learning_rate", np.nan), ("batch_size", 0), ("n_iter_no_change", 0),
        ("validation_fraction", 1.0), ("tol", 0),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .* got {value!r}"):
        small(**{name: value}).fit(*data())


def test_data_that_cannot_be_learnt():
    X, y = data()
    with pytest.raises(ValueError, match="too large for float32"):
        small().fit(X * 1e39, y)
    with pytest.raises(ValueError, match=r"diverged .* learning_rate=1e\+30"):
        small(learning_rate=1e30).fit(X, y)


def test_verbose_prints_the_loss(capsys):
    small(verbose=1, max_iter=2).fit(*data())
    assert capsys.readouterr().out.count("mean loss") == 2


@pytest.mark.parametrize("settings", [{}, {"n_gates": 2}, {"loss": "log_loss", "calibration": "temperature"}])
@pytest.mark.parametrize("n_rows", [300, 3000])
def test_rows_that_are_read_where_they_are_are_those_that_are_copied(settings, n_rows, monkeypatch):
    X, y = data(n_rows=n_rows)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    found, hold_out = [], LearningRows.hold_out
    for in_place in (True, False):
        monkeypatch.setattr(
            LearningRows, "hold_out", lambda self, n, _, rng, where=in_place: hold_out(self, n, where, rng)
        )
        model = small(**settings, early_stopping=True, n_jobs=2).fit(X, y, sample_weight=weight)
        found.append((model.decision_function(X), model.loss_curve_, model.region_counts_["classes"]))
    for ours, theirs in zip(*found, strict=True):
        assert_array_equal(ours, theirs)
