"""Gates that learn: gradients, threads, and what the estimator promises."""

import signal
import subprocess
import sys
import textwrap
import time
from time import perf_counter

import needs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from test_export_onnx import run

import svmosaic
from svmosaic import LearnedGateSVC, LocallyLinearSVC
from svmosaic.datasets import make_banana
from svmosaic.export.c import to_c
from svmosaic.export.onnx.gates import paths
from svmosaic.gates import ProjectedGate, SplitTreeGate, plant_tree, principal_components
from svmosaic.learner.gate_learner import HARD, SOFT, GateLearner, hardening, one_cycle
from svmosaic.rows import Rows

BETA1 = 0.9  # of Adam, in the core


def data(n_classes=3, n_rows=300, seed=0):
    X, y = make_classification(
        n_rows, 7, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=2, random_state=seed
    )  # fmt: skip
    return X, y


def small(**settings):
    return LearnedGateSVC(**{"n_tiles": 8, "n_neighbors": 3, "max_iter": 10, "random_state": 0} | settings)


def quarters(seed, n_rows=3000):
    """The signs of two of six features decide; k-means looks at all of them."""
    X = np.random.default_rng(seed).standard_normal((n_rows, 6))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


# ---- the learner -----------------------------------------------------------------------------------------------------


def learner_of(projected, n_outputs, d=5, p=3, n_tiles=6, width=3, dtype=np.float64, gate="anchors"):
    rng = np.random.default_rng(0)
    projection = rng.standard_normal((p, d)) if projected else None
    tree, p = gate == "tree", p if projected else d
    learner = GateLearner(
        rng.standard_normal((n_tiles - tree, p + tree)), None if tree else 0.3, projection, n_features=d,
        n_outputs=n_outputs, width=width, decay=0.0, dtype=dtype,
    )  # fmt: skip
    learner.set_tile_weights(rng.standard_normal((n_tiles, n_outputs, d + 1)))
    return learner


def logits(learner, X, sharpness):
    """Of the gate, for all tiles: their softmax over the chosen ones is the gate's share."""
    z = X if learner.projection is None else X @ learner.projection[0][:, :-1].T
    gate = learner.gate[0]
    if not learner.is_tree:
        return -learner.tau * ((z[:, None] - gate) ** 2).sum(axis=2)
    asked = paths(len(gate) + 1)
    margins = sharpness * (z @ gate[:, :-1].T + gate[:, -1])
    right, left = (-np.logaddexp(0, -sign * margins) for sign in (1, -1))
    return right @ (asked > 0) + left @ (asked < 0)


def chosen_tiles(learner, X, sharpness):
    """The likeliest `width` tiles: of a tree, by a search that keeps as many nodes."""
    if not learner.is_tree:
        return np.argsort(-logits(learner, X, sharpness), axis=1, kind="stable")[:, : learner.width]
    z = X if learner.projection is None else X @ learner.projection[0][:, :-1].T
    gate, out = learner.gate[0], []
    for row in z:
        ways = [(0.0, 0)]
        while any(node < len(gate) for _, node in ways):
            after = []
            for share, node in ways:
                if node >= len(gate):
                    after.append((share, node))
                    continue
                m = sharpness * (gate[node, :-1] @ row + gate[node, -1])
                after += [(share - np.logaddexp(0, m), 2 * node + 1), (share - np.logaddexp(0, -m), 2 * node + 2)]
            ways = sorted(after, reverse=True)[: learner.width]
        out.append([node - len(gate) for _, node in ways])
    return np.array(out)


def mean_loss(learner, X, label, weight, chosen, sharpness):
    """The loss from its formula, with the tiles of each row held fixed."""
    g = np.exp(np.take_along_axis(logits(learner, X, sharpness), chosen, axis=1))
    g /= g.sum(axis=1, keepdims=True)
    tiles = learner.tile_weights()[chosen]
    f = np.einsum("na,nacd,nd->nc", g, tiles, np.hstack([X, np.ones((len(X), 1))]))
    places = [1] if learner.n_outputs == 1 else range(learner.n_outputs)
    y = np.stack([np.where(label == c, 1, -1) for c in places], axis=1)
    return float((weight[:, None] * np.maximum(0, 1 - y * f) ** 2).sum() / len(X))


def numerical(learner, array, loss, step=1e-6):
    out = np.empty_like(array)
    for at in np.ndindex(array.shape):
        kept = array[at]
        array[at] = kept + step
        above = loss()
        array[at] = kept - step
        out[at] = (above - loss()) / (2 * step)
        array[at] = kept
    return out


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize(("gate", "n_tiles"), [("anchors", 6), ("anchors", 20), ("tree", 6), ("tree", 13)])
def test_gradients_are_those_of_finite_differences(gate, n_tiles, projected, n_outputs, storage):
    rng = np.random.default_rng(1)
    X, label = rng.standard_normal((20, 5)), rng.integers(0, max(2, n_outputs), 20).astype(np.int32)
    weight = rng.uniform(0.5, 2.0, 20)
    learner, sharpness = learner_of(projected, n_outputs, n_tiles=n_tiles, gate=gate), 0.7
    before, chosen = learner.copy(), chosen_tiles(learner, X, sharpness)
    order = np.arange(20, dtype=np.int32)
    total, n_met = learner.epoch(
        Rows(storage(X)), label, weight, order, 20, np.array([1e-3]), sharpness=np.array([sharpness])
    )
    assert n_met == 20

    def loss():
        return mean_loss(before, X, label, weight, chosen, sharpness)

    assert_allclose(total / 20, loss(), rtol=1e-10)
    pairs = [(learner.tiles[1], before.tiles[0]), (learner.gate[1], before.gate[0])]
    if projected:
        pairs.append((learner.projection[1][:, :-1], before.projection[0][:, :-1]))
        assert not learner.projection[0][:, -1].any()
    if gate == "anchors":
        pairs.append((learner.log_tau[:, 1], before.log_tau[:, 0]))
    for first_moment, parameter in pairs:
        gradient = numerical(before, parameter, loss)
        assert np.abs(gradient).max() > 1e-3
        assert_allclose(first_moment / (1 - BETA1), gradient, rtol=1e-5, atol=1e-6)


def test_a_copy_is_restored():
    X, y = data()
    learner = learner_of(False, 3, d=7, dtype=np.float32)
    kept, rows = learner.copy(), Rows(X.astype(np.float32))
    arguments = rows, y.astype(np.int32), np.ones(300), np.arange(300, dtype=np.int32), 50, np.full(6, 0.01)
    learner.epoch(*arguments)
    once = learner.tile_weights()
    assert np.abs(once - kept.tile_weights()).max() > 0.01
    learner.restore(kept)
    assert_array_equal(learner.tile_weights(), kept.tile_weights())
    learner.epoch(*arguments)
    assert_array_equal(learner.tile_weights(), once)
    assert np.abs(once - kept.tile_weights()).max() > 0.01  # the copy has its own arrays


def test_another_decay_starts_from_what_the_old_one_left():
    learner = learner_of(True, 1)
    learner.decay, learner.clock[1] = 0.5, 2.0
    before = learner.tile_weights()
    learner.set_decay(0.1)
    assert_allclose(learner.tile_weights(), before)
    learner.clock[1] = 3.0
    assert_allclose(learner.tile_weights(), np.exp(-0.1) * before)


@pytest.mark.parametrize("n_steps", [1, 2, 7, 1000])
def test_the_schedule_rises_and_falls(n_steps):
    rates = one_cycle(0.5, n_steps)
    assert len(rates) == n_steps
    assert (rates > 0).all()
    assert rates.max() <= 0.5
    if n_steps == 1000:
        assert rates.argmax() == 250
        assert (np.diff(rates[:250]) > 0).all()
        assert (np.diff(rates[251:]) < 0).all()


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


@pytest.mark.parametrize("gate", ["anchors", "tree"])
@pytest.mark.parametrize("n_components", [4, None])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_threads_do_not_change_a_bit(storage, n_components, gate):
    X, y = data(n_rows=1500)
    settings = {"gate": gate, "n_components": n_components, "batch_size": 500}
    one, two = (small(**settings, n_jobs=n).fit(storage(X), y) for n in (1, 2))
    assert_array_equal(one.mosaic_.coef, two.mosaic_.coef)
    assert_array_equal(one.decision_function(X), two.decision_function(X))
    assert one.loss_curve_ == two.loss_curve_


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
            plain, model = small(**settings), small(**settings, polish=True).fit(X, y)
            train, (X_held, held) = plain._hold_out(X, *_target(y), np.random.RandomState(seed))
            before, after = model.polish_scores_
            score = np.mean(model.predict(X_held.astype(np.float32)) == held.classes[held.label])
            assert_allclose(score, max(before, after))
            assert model.polished_ == (after > before)
            assert len(train[1].label) + len(held.label) == len(y)
            kept.add(model.polished_)
    assert kept == {True, False}


def _target(y):
    from svmosaic._validation import Target

    classes, label = np.unique(y, return_inverse=True)
    return (Target(classes, label, np.ones(len(y)), np.ones(len(y))),)


def test_polished_tiles_have_a_certificate():
    X, y = data()
    model = small(polish=True, tol=1e-4).fit(X, y)
    assert model.dual_gap_.shape == (3,)
    assert (model.dual_gap_ <= 1e-4 * model.C * len(y)).all()


def test_a_frozen_gate_with_polished_tiles_is_the_locally_linear_svm():
    X, y = data(seed=1)
    X = X.astype(np.float32)
    model = small(n_components=None, learn_gate=False, polish=True, max_iter=1, learning_rate=1e-6, tol=1e-10).fit(X, y)
    assert model.polished_
    (X_train, train), _ = model._hold_out(X, *_target(y), np.random.RandomState(0))
    gate = model.mosaic_.gate
    local = LocallyLinearSVC(
        n_neighbors=3, anchors=gate.centers, code_scale=gate.scale, loss="squared_hinge", C=model.C, tol=1e-10,
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


def test_early_stopping_keeps_the_best():
    X, y = data(n_rows=600)
    model = small(early_stopping=True, n_iter_no_change=3, max_iter=60, learning_rate=0.1).fit(X, y)
    scores = model.validation_scores_
    best = int(np.argmax(scores))
    assert model.n_iter_ == len(scores) == best + 4 < 60
    _, (X_held, held) = model._hold_out(X.astype(np.float32), *_target(y), np.random.RandomState(0))
    assert_allclose(model.score(X_held, held.classes[held.label]), scores[best])


@pytest.mark.parametrize("gate", ["anchors", "tree"])
def test_what_comes_after_fitting(tmp_path, gate):
    X, y = data()
    X = X.astype(np.float32)
    model = small(gate=gate).fit(X, np.array(["a", "b", "c"])[y])
    assert_allclose(model.predictor().decision_function(X), model.decision_function(X))
    assert_array_equal(model.predictor().predict(X), model.predict(X))
    assert model.predictor()(X[0]) == model.predict(X[:1])[0]
    assert sum(model.regions_["rows"]) == len(y)
    assert not hasattr(model, "predict_proba")
    parts = vars(model.mosaic_.gate.inner)
    sizes = [
        8 * 3 * (7 + 1),
        model.mosaic_.gate.projection.size,
        parts["centers" if gate == "anchors" else "splits"].size,
    ]
    assert model.mosaic_.n_bytes == 8 * sum(sizes)
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
    assert_array_equal(model.regions_["rows"], model.summarise_regions(X[:120].astype(np.float32), y[:120])["rows"])


EXPORTED = [("anchors", 4, 8), ("tree", 4, 8), ("tree", 4, 5), ("tree", None, 8), ("tree", 4, 1)]


@pytest.mark.parametrize(("gate", "n_components", "n_tiles"), EXPORTED)
def test_as_c(tmp_path, gate, n_components, n_tiles):
    from test_export_c import Compiled

    X, y = data()
    X = X.astype(np.float32)
    model = small(gate=gate, n_tiles=n_tiles, n_components=n_components).fit(X, y)
    source, _ = to_c(model, tmp_path / "model.c")
    assert_allclose(Compiled(source, 3).scores(X), model.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(("gate", "n_components", "n_tiles"), EXPORTED)
def test_as_onnx(gate, n_components, n_tiles):
    X, y = data()
    X = X.astype(np.float32)
    model = small(gate=gate, n_tiles=n_tiles, n_components=n_components).fit(X, y)
    out = run(model.to_onnx(), X)
    assert_allclose(out["scores"], model.decision_function(X), atol=1e-4)
    assert_array_equal(out["label"], model.predict(X))


# ---- the tree --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_tiles", [1, 2, 5, 8])
def test_rows_go_down_the_tree(n_tiles, dtype, storage):
    rng = np.random.default_rng(n_tiles)
    X, splits = rng.standard_normal((50, 4)).astype(dtype), rng.standard_normal((n_tiles - 1, 5))
    tile, weight = SplitTreeGate(splits).code(storage(X))
    assert weight is None
    for row, leaf in zip(X, tile[:, 0], strict=True):
        node = 0
        while node < n_tiles - 1:
            node = 2 * node + (2 if row @ splits[node, :-1] + splits[node, -1] > 0 else 1)
        assert leaf == node - (n_tiles - 1)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_tiles", [4, 6])
def test_a_planted_tree_shares_the_rows_out(n_tiles, storage):
    X = np.random.default_rng(0).standard_normal((240, 3)) * [5, 1, 0.2] + 3
    splits = plant_tree(storage(X), n_tiles, np.random.RandomState(0))
    counts = np.bincount(SplitTreeGate(splits).code(X)[0][:, 0], minlength=n_tiles)
    assert_allclose(counts, 240 / n_tiles, atol=2)
    assert np.abs(splits[0, 0]) > 10 * np.abs(splits[0, 1:3]).max()  # along the widest feature
    assert_allclose((X @ splits[0, :-1]).std(), 1)


def test_a_planted_tree_of_equal_rows():
    assert np.isfinite(plant_tree(np.ones((20, 3)), 8, np.random.RandomState(0))).all()


def test_splits_harden():
    """In the end a row's leaf has nearly all of it: soft and hard losses agree."""
    X, y = quarters(0)
    model = small(gate="tree", n_tiles=16, n_components=4, n_neighbors=4, max_iter=20).fit(X, y)
    learner, X = model._learner, X.astype(np.float32)
    label, weight = y.astype(np.int32), np.ones(len(y))
    order = np.arange(len(y), dtype=np.int32)
    soft, last = (
        learner.epoch(Rows(X), label, weight, order, len(y), np.zeros(1), sharpness=np.array([t]))[0] / len(y)
        for t in (SOFT, HARD)
    )
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    hard = np.mean(np.maximum(0, 1 - margin) ** 2)
    assert abs(last - hard) < 0.1 * abs(soft - hard)
    assert_allclose(hardening(100)[[0, -1]], [SOFT, HARD])


def test_learnt_splits_beat_those_of_the_start():
    X, y = quarters(0)
    X_test, y_test = quarters(1)
    settings = {"gate": "tree", "n_tiles": 16, "n_components": 4, "n_neighbors": 4, "max_iter": 30}
    learnt, fixed = (small(**settings, learn_gate=gate).fit(X, y).score(X_test, y_test) for gate in (True, False))
    assert learnt > fixed + 0.05


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


def test_time_is_up_within_an_epoch():
    X, y = data(n_rows=2000)
    model = small(max_iter=10**6, max_time=0.3, batch_size=4)
    began = perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"stopped after max_time=0.3 s, in epoch \d+ of max_iter=1000000"):
        model.fit(X, y)
    assert perf_counter() - began < 5
    assert model.stop_reason_ == "max_time"
    assert 1 <= model.n_iter_ < 10**6
    assert model.score(X, y) > 0.5


INTERRUPTED = """
    import numpy as np
    from svmosaic import LearnedGateSVC
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40_000, 10)).astype(np.float32), rng.randint(10, size=40_000)
    model = LearnedGateSVC(50, max_iter=10**4, n_jobs=2, random_state=0)
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
        ("gate", "leaf"), ("max_time", 0),
        ("n_tiles", 0), ("n_components", 0), ("n_neighbors", 2.5), ("weight_decay", -1), ("C", 0), ("max_iter", 0),
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
