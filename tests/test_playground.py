"""The playground: its trainer solves the problems of the library, and the page works in a browser."""

import json
import re
import shutil
import subprocess

import needs
import numpy as np
import pytest
from browser import opened, running_browser  # noqa: F401
from numpy.testing import assert_allclose, assert_array_equal
from pages import DOCS
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal

from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC, MultiTaskMixtureSVC
from svmosaic.datasets import make_xor
from svmosaic.learner.gate_learner import GateLearner
from svmosaic.learner.schedule import one_cycle
from svmosaic.rows import Rows

FOLDER = DOCS / "playground"
PAGE = FOLDER / "playground.html"
EXACT = dict(tol=1e-8, max_iter=20_000, random_state=0)
DRIVER = """
const { train, scoreOf, homeOf, featuresOf } = require(process.argv[1]);
const { points, labels, settings } = JSON.parse(require("node:fs").readFileSync(0));
const frames = [...train(points, labels, settings)], { model, objective, gap } = frames.at(-1);
console.log(JSON.stringify({
  stages: frames.map((frame) => frame.stage), objective, gap, centers: model.centers, scale: model.scale,
  knots: model.map && model.map.map((one) => one.knots), scores: points.map((p) => scoreOf(model, p)),
  homes: points.map((p) => homeOf(model, p)), gaps: frames.filter((f) => f.gap !== undefined).map((f) => f.gap),
  features: points.map((p) => featuresOf(model.map, p)), frames,
}, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value)));
"""
# A learned gate on its way: slopes, and differences of the loss in the same order.
SLOPES = """
const { train, featuresOf, slopesOf } = require(process.argv[1]);
const { points, labels, settings } = JSON.parse(require("node:fs").readFileSync(0));
const { model } = [...train(points, labels, settings)].find((frame) => frame.stage === "gradient" && frame.step >= 100);
const data = { points, labels, rows: points.map((p) => featuresOf(model.map, p)) }, h = 1e-6;
const lossAt = (values, f, by) => {
  const kept = values[f];
  values[f] += by;
  const { loss } = slopesOf({ ...model, scale: Math.exp(model.logScale[0][0]) }, data);
  values[f] = kept;
  return loss;
};
model.logScale = [[Math.log(model.scale)]];
const slopes = slopesOf(model, data), found = {};
slopes.logScale = [slopes.logScale];
for (const name of ["weights", "anchors", "projection", "logScale"])
  found[name] = model[name].flatMap((values, a) => Array.from(values, (_, f) => [
    slopes[name][a][f], (lossAt(values, f, h) - lossAt(values, f, -h)) / (2 * h),
  ]));
console.log(JSON.stringify(found));
"""


def trained(points, labels, driver=DRIVER, **settings):
    """The frames of the trainer, and what the last one says of the points; run by Node."""
    given = {"points": points.tolist(), "labels": labels.tolist(), "settings": {"seed": 1, "tol": 1e-6, **settings}}
    done = subprocess.run(
        [shutil.which("node"), "-e", driver, "--", FOLDER / "trainer.js"], input=json.dumps(given),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def crossed_clouds():
    """Clouds at the four ends of a cross, between -1 and 1."""
    X, y = make_xor(200, random_state=0)
    return X / np.abs(X).max(), np.where(y == y.max(), 1, -1)


def four_clouds():
    """Clouds in the corners of a square, which neither a line nor a curve per feature separates."""
    corner = np.random.default_rng(0).choice([-1, 1], (240, 2))
    return 0.5 * corner + np.random.default_rng(1).normal(0, 0.2, (240, 2)), corner.prod(axis=1)


def stripes(n=200):
    """Points that need many tiles."""
    X = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return X, np.where(np.sin(7 * X[:, 0] + 1.5 * X[:, 1]) > 0, 1, -1)


def reference(kind, found, C):
    """The model of the library on the regions that the trainer found."""
    common = EXACT | {"C": C, "loss": "hinge", "pieces": found["knots"]}
    centers = np.array(found["centers"])
    if kind == "linear":
        return LinearSVC(**common)
    if kind == "local":
        return LocallyLinearSVC(
            len(centers), anchors=centers, n_neighbors=3, coding="softmax", code_scale=found["scale"], **common
        )
    return (KMeansSVC if kind == "kmeans" else ClusteredSVC)(len(centers), clusterer=centers, **common)


@needs.node
@pytest.mark.parametrize("pieces", [1, 5])
@pytest.mark.parametrize("kind", ["linear", "kmeans", "clustered", "local"])
def test_the_trainer_finds_what_the_library_finds(kind, pieces):
    X, signs = crossed_clouds()
    found = trained(X, signs, kind=kind, tiles=5, pieces=pieces, C=1.0)
    model = reference(kind, found, 1.0).fit(X, signs)
    least, slack = model.objective_[0], 1e-6 * len(X)
    assert found["objective"] - found["gap"] - slack <= least <= found["objective"] + slack
    assert found["gap"] < 0.02 * least
    assert_allclose(found["scores"], model.decision_function(X), atol=0.05 * np.abs(found["scores"]).max())
    if kind != "linear":
        assert "k-means" in found["stages"]
        if kind != "local":
            home = model.mosaic_.gate.code(X)[0][:, 0]
            assert_array_equal(np.array(found["centers"])[found["homes"]], model.cluster_centers_[home])


def stage(found, name):
    return [frame for frame in found["frames"] if frame["stage"] == name]


def shares_of(model, features):
    """The shares of all tiles of a learned gate in rows, from the formula."""
    anchors, projection = np.array(model["anchors"]), np.array(model["projection"])
    squared = ((np.array(features) @ projection.T)[:, None] - anchors) ** 2
    assert len(anchors) <= 8  # so that all of them share each row
    return softmax(-model["scale"] * squared.sum(axis=2), axis=1)


def vote(scores):
    return np.exp(-np.maximum(0, 1 - scores)) - np.exp(-np.maximum(0, 1 + scores))


def log_densities(model, X):
    """log pi_j N(x_i; mu_j, Sigma_j) of the Gaussians of a frame."""
    logs, priors = [], []
    for one in model["gaussians"]:
        axes, variances = np.array(one["axes"]), np.array(one["variances"])
        density = multivariate_normal(one["mean"], axes.T * variances @ axes)
        priors.append(np.exp(one["height"] - density.logpdf(one["mean"])))
        logs.append(density.logpdf(X) + np.log(priors[-1]))
    assert_allclose(sum(priors), 1)
    return np.stack(logs, axis=1)


@needs.node
@pytest.mark.parametrize("pieces", [1, 5])
@pytest.mark.parametrize("kind", ["learned", "mixture"])
def test_gates_that_move_separate_what_a_line_cannot(kind, pieces):
    X, y = four_clouds()
    line, found = (trained(X, y, kind=name, tiles=4, pieces=pieces, C=1.0) for name in ("linear", kind))
    assert np.mean(np.sign(line["scores"]) == y) < 0.85
    assert np.mean(np.sign(found["scores"]) == y) > 0.97
    assert found == trained(X, y, kind=kind, tiles=4, pieces=pieces, C=1.0)


@needs.node
@pytest.mark.parametrize(
    ("kind", "moving", "place"), [("learned", "gradient", "anchors"), ("mixture", "EM", "centers")]
)
def test_regions_move_in_many_small_steps(kind, moving, place):
    X, y = stripes()
    found = trained(X, y, kind=kind, tiles=6, pieces=1, C=1.0)
    places = np.array([frame["model"][place] for frame in stage(found, moving)])
    assert len(places) > 10
    assert np.abs(places[-1] - places[0]).max() > 0.1
    assert (np.abs(np.diff(places, axis=0)).max(axis=(1, 2)) > 1e-4).mean() > 0.8


@needs.node
@pytest.mark.parametrize("pieces", [1, 4])
def test_slopes_of_a_learned_gate_are_differences_of_its_loss(pieces):
    X, y = stripes(60)
    for name, pairs in trained(X, y, SLOPES, kind="learned", tiles=5, pieces=pieces, C=1.0).items():
        slopes, differences = np.transpose(pairs)
        kept = np.ones(len(slopes), dtype=bool)
        if name == "projection":  # what multiplies the constant stays at zero
            kept[[len(slopes) // 2 - 1, -1]] = False
            assert_array_equal(slopes[~kept], 0)
        assert np.abs(slopes[kept]).max() > 1e-4
        assert_allclose(slopes[kept], differences[kept], rtol=1e-4, atol=1e-7)


@needs.node
@pytest.mark.parametrize("pieces", [1, 5])
def test_a_learned_gate_takes_the_steps_of_the_core(pieces):
    X, y = stripes()
    found = trained(X, y, kind="learned", tiles=6, pieces=pieces, C=1.0)
    *shown, last = stage(found, "gradient")
    start, phi = shown[0]["model"], np.array(found["features"])[:, :-1].copy()
    gate = np.array(start["anchors"]), start["scale"], np.array(start["projection"])[:, :-1]
    core = GateLearner([gate], n_features=phi.shape[1], n_outputs=1, width=6, decay=0.01, dtype=np.float64)
    target, weight, order = (y == 1)[:, None].astype(float), np.ones(len(y)), np.arange(len(y), dtype=np.int32)
    how = {"learn_gate": True, "n_threads": 1, "deadline": np.inf}
    losses = [
        core.epoch(Rows(phi), target, weight, order, len(y), rate[None], **how)[0]
        for rate in one_cycle(0.03, last["step"])
    ]
    assert_allclose([frame["loss"] for frame in shown], [losses[frame["step"]] / len(y) for frame in shown], rtol=1e-6)
    assert_allclose(last["model"]["weights"], core.tile_weights()[:, 0], atol=1e-6)
    assert_allclose(last["model"]["anchors"], core.anchors[0], atol=1e-6)
    assert_allclose(last["model"]["projection"], core.projection[0], atol=1e-6)
    assert_allclose(last["model"]["scale"], core.tau[0], rtol=1e-6)


@needs.node
@pytest.mark.parametrize("tiles", [1, 5])
@pytest.mark.parametrize("pieces", [1, 5])
def test_the_tiles_of_a_learned_gate_are_solved_for(tiles, pieces):
    """With the gate at rest they are a linear SVM on the features times the shares."""
    X, y = crossed_clouds()
    found = trained(X, y, kind="learned", tiles=tiles, pieces=pieces, C=0.5)
    assert found["stages"][-1] == "polish"
    features = np.array(found["features"])
    shares = shares_of(found["frames"][-1]["model"], features)
    shared = (shares[:, :, None] * features[:, None]).reshape(len(X), -1)
    model = LinearSVC(C=0.5, loss="squared_hinge", fit_intercept=False, **EXACT).fit(shared, y)
    least, slack = model.objective_[0], 1e-6 * len(X)
    assert found["objective"] - found["gap"] - slack <= least <= found["objective"] + slack
    assert found["gap"] < 0.02 * least
    assert_allclose(found["scores"], model.decision_function(shared), atol=0.02)


@needs.node
@pytest.mark.parametrize("pieces", [1, 5])
def test_the_objective_of_em_is_what_it_says_and_never_falls(pieces):
    X, y = stripes()
    found = trained(X, y, kind="mixture", tiles=8, pieces=pieces, C=2.0, tol=1e-3)
    frames, features = stage(found, "EM"), np.array(found["features"])
    objective = np.array([frame["objective"] for frame in frames])
    gains = np.diff(objective)
    assert gains.min() >= 0
    assert objective[-1] > objective[0] + 0.1 * abs(objective[0])
    # It would have ended early if it had fallen.
    assert len(gains) == 20 or gains[-1] <= 1e-4 * abs(objective[-1])
    for frame in frames:
        weights, logs = np.array(frame["model"]["weights"]), log_densities(frame["model"], X)
        margins = y[:, None] * (features @ weights.T)
        likelihood = logsumexp(logs - 5 * np.maximum(0, 1 - margins), axis=1).sum()
        assert_allclose(frame["objective"], likelihood - 5 / (2 * 2.0) * (weights**2).sum(), rtol=1e-9)
    said = (softmax(logs, axis=1) * vote(features @ weights.T)).sum(axis=1)
    assert_allclose(found["scores"], said, atol=1e-9)


@needs.node
@pytest.mark.parametrize("pieces", [1, 5])
def test_em_goes_the_way_of_the_library(pieces, monkeypatch, experts):
    X, y = stripes()
    found = trained(X, y, kind="mixture", tiles=6, pieces=pieces, C=0.1)
    centers = np.unique(stage(found, "k-means")[-1]["model"]["centers"], axis=0)
    experts(tol=1e-8, max_iter=20_000)
    monkeypatch.setattr("svmosaic.estimators.mixture.place_centers", lambda *rows, **options: centers)
    monkeypatch.setattr("svmosaic.estimators._em.intercept_constant", lambda X, weight: 1.0)
    model = MultiTaskMixtureSVC(
        6, groups=None, beta=5 / (2 * 0.1), covariance_floor=1e-3, label_weight=5.0, pieces=found["knots"],
        random_state=0,
    ).fit(X, y)  # fmt: skip
    objective = [frame["objective"] for frame in stage(found, "EM")]
    assert_allclose(objective, model.objective_, rtol=1e-3)
    assert_allclose(found["scores"], model.decision_function(X), atol=0.05)


@needs.node
def test_one_expert_is_a_linear_svm():
    X, y = stripes()
    found = trained(X, y, kind="mixture", tiles=1, pieces=1, C=1.0)
    line = LinearSVC(C=1.0, loss="hinge", **EXACT).fit(X, y)
    assert_allclose(found["scores"], vote(line.decision_function(X)), atol=5e-3)


def test_the_page_draws_and_learns(opened):  # noqa: F811
    page = opened(PAGE, reduced_motion="reduce")
    said = page.locator("#status").inner_text
    assert re.search(r"Epoch \d+: objective [\d.]+, duality gap [\d.e-]+, 100.0 % of 240 points", said())
    page.locator("#model").select_option("linear")
    share = float(re.search(r"([\d.]+) % of", said())[1])
    assert share < 80  # four clouds are too much for one line
    assert page.locator("#tiles").is_disabled()
    for kind in ("learned", "mixture"):
        page.locator("#model").select_option(kind)
        assert page.evaluate("state.frames.length > 5 && state.at === state.frames.length - 1"), "motion is unwelcome"
    page.locator("#model").select_option("local")
    page.locator("#pieces").fill("6")
    page.locator("#C").fill("1")
    assert page.locator("#pieces-value").inner_text() == "6 knots"
    assert page.locator("#C-value").inner_text() == "10"
    assert "100.0 % of 240" in said()
    found = page.evaluate("({ ...state, ...state.frames.at(-1) })")
    X, y, model = np.array(found["points"]), np.array(found["labels"]), found["model"]
    shown = {**model, "knots": [one["knots"] for one in model["map"]]}
    least = reference("local", shown, 10.0).fit(X, y).objective_[0]
    assert found["objective"] - found["gap"] - 1e-5 <= least <= found["objective"] + 1e-5
    page.locator("#set").select_option("nothing")
    assert said() == "Draw points of both classes."
    page.locator("#plane").click(position={"x": 100, "y": 100})
    page.locator("input[name=class][value='-1']").check()
    page.locator("#plane").click(position={"x": 300, "y": 300})
    assert "100.0 % of 2 points" in said()
    page.locator("#plane").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert "of 3 points" in said()
    page.locator("#undo").click()
    assert "of 2 points" in said()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


BOUNDARY = """(at) => Array.from({ length: 400 }, (_, k) => [k % 20 / 10 - .95, Math.floor(k / 20) / 10 - .95])
  .map((p) => scoreOf(state.frames[at].model, p) > 0)"""


@pytest.mark.parametrize(
    ("kind", "moving", "says"),
    [
        ("learned", "gradient", r"Polishing the tiles: objective [\d.]+, duality gap [\d.e-]+"),
        ("mixture", "EM", r"EM, step \d+: objective -?[\d.]+"),
    ],
    ids=["learned", "mixture"],
)
def test_gates_move_before_the_eyes(kind, moving, says, opened):  # noqa: F811
    def wait_until(condition):
        """As playwright's own, which the policy of the page forbids."""
        for _ in range(400):
            if page.evaluate(condition):
                return
            page.wait_for_timeout(50)
        pytest.fail(f"never came true: {condition}")

    page = opened(PAGE, width=390, color_scheme="dark")
    page.locator("#frame").fill("0")
    assert page.locator("#status").inner_text() == "Placing the tiles: k-means, step 1."
    page.locator("#set").select_option("two moons")
    page.locator("#model").select_option(kind)
    wait_until(f"state.frames[state.at].stage === '{moving}'")
    seen, picture = page.evaluate("[state.at, canvas.toDataURL()]")
    wait_until(f"state.at > {seen}")
    assert page.evaluate("canvas.toDataURL()") != picture
    stages = page.evaluate("state.frames.map((frame) => frame.stage)")
    first = stages.index(moving) + 1  # zero tiles come before
    early, late = page.evaluate(BOUNDARY, first), page.evaluate(BOUNDARY, len(stages) - 1)
    assert early != late
    page.locator("#frame").fill(str(len(stages) - 1))
    status = page.locator("#status").inner_text()
    said = re.fullmatch(says + r", ([\d.]+) % of 240 points classified correctly\.", status)
    assert float(said[1]) > 95
    page.locator("#pieces").fill("5")
    page.locator("#tiles").fill("20")
    page.locator("#plane").click(position={"x": 20, "y": 20})
    wait_until("state.at > 0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
