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

import svmosaic.display
from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC
from svmosaic.cli import main
from svmosaic.datasets import make_xor
from svmosaic.display import playground_page

FOLDER = svmosaic.display.__path__[0]
EXACT = dict(tol=1e-8, max_iter=20_000, random_state=0)
DRIVER = """
const { train, scoreOf, homeOf } = require(process.argv[1]);
const { points, labels, settings } = JSON.parse(require("node:fs").readFileSync(0));
const frames = [...train(points, labels, settings)], { model, objective, gap } = frames.at(-1);
console.log(JSON.stringify({
  stages: frames.map((frame) => frame.stage), objective, gap, centers: model.centers, scale: model.scale,
  knots: model.map && model.map.map((one) => one.knots), scores: points.map((p) => scoreOf(model, p)),
  homes: points.map((p) => homeOf(model, p)), gaps: frames.filter((f) => f.gap !== undefined).map((f) => f.gap),
}));
"""


def trained(points, labels, **settings):
    """The last frame of the trainer, run by Node."""
    given = {"points": points.tolist(), "labels": labels.tolist(), "settings": {"seed": 1, "tol": 1e-6, **settings}}
    done = subprocess.run(
        [shutil.which("node"), "-e", DRIVER, "--", f"{FOLDER}/playground.js"], input=json.dumps(given),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
    X, y = make_xor(200, random_state=0)
    X, signs = X / np.abs(X).max(), np.where(y == y.max(), 1, -1)
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


def test_the_command_writes_the_page(tmp_path, capsys):
    assert main(["playground", "--html", tmp_path / "p.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"html": str(tmp_path / "p.html")}
    page = (tmp_path / "p.html").read_text()
    assert page == playground_page()
    assert "://" not in page
    assert main(["playground", "--html", tmp_path / "none" / "p.html"]) == 1


def test_the_page_draws_and_learns(opened):  # noqa: F811
    page = opened(playground_page(), reduced_motion="reduce")
    said = page.locator("#status").inner_text
    assert re.search(r"Epoch \d+: objective [\d.]+, duality gap [\d.e-]+, 100.0 % of 240 points", said())
    page.locator("#model").select_option("linear")
    share = float(re.search(r"([\d.]+) % of", said())[1])
    assert share < 80  # four clouds are too much for one line
    assert page.locator("#tiles").is_disabled()
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


def test_the_training_is_shown_frame_by_frame(opened):  # noqa: F811
    page = opened(playground_page(), width=390, color_scheme="dark")
    page.locator("#frame").fill("0")
    assert page.locator("#status").inner_text() == "Placing the tiles: k-means, step 1."
    last = page.locator("#frame").get_attribute("max")
    page.locator("#frame").fill(last)
    assert page.locator("#status").inner_text().startswith("Epoch")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
