"""`svmosaic bench`: every model named, measured or skipped with a reason, and files that hold what the table shows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pages import run_blocks
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import ClusteredSVC, cli
from svmosaic.bench import peers, trials
from svmosaic.bench.peers import PEERS, Peer, Setting, choose
from svmosaic.bench.trials import Skipped, compiled, fit_within, measure, spread_order, table_data
from svmosaic.datasets import Dataset, load, make_xor

QUICK = Setting(budget=5.0, quick=True)
FEW = "linear,sk-linear,knn"


@pytest.fixture
def xor():
    X, y = make_xor(400, random_state=0)
    return Dataset(X[:300], y[:300], X[300:], y[300:], "xor")


def test_every_kind_of_model_is_compared():
    keys = [peer.key for peer in PEERS]
    assert len(set(keys)) == len(keys)
    wanted = {"linear", "clustered", "local", "learned", "mixture", "auto", "sk-linear", "svc", "intel-svc", "nystroem"}
    assert wanted | {"hgb", "lightgbm", "knn", "mlp"} == set(keys)
    assert [peer.key for peer in choose(["knn", "linear", "knn"])] == ["knn", "linear"]
    with pytest.raises(ValueError, match="there is no model called 'forest'; choose among linear, clustered"):
        choose(["forest"])


@pytest.mark.parametrize("key", [peer.key for peer in PEERS if peer.needs is None and peer.key != "hgb"])
def test_a_model_is_measured(xor, key):
    (peer,) = choose([key])
    trial = measure(peer, xor, replace(QUICK, budget=1.0) if key == "auto" else QUICK)
    assert isinstance(trial, trials.Trial), getattr(trial, "reason", "")
    assert trial.n_train == 300
    assert trial.n_test == 100
    for cost in ("fit_seconds", "batch_microseconds", "row_microseconds", "n_bytes"):
        assert getattr(trial, cost) > 0
    assert (trial.compiled_microseconds is not None) == peer.ours
    # Lines cannot do it, and what the search finds in a second depends on the machine.
    assert trial.accuracy > 0.9 or key in ("linear", "sk-linear", "auto")
    json.dumps(trial.record())


@pytest.mark.parametrize("key", [peer.key for peer in PEERS if peer.needs is not None])
def test_an_absent_package_is_named(xor, key, monkeypatch):
    (peer,) = choose([key])
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    outcome = measure(peer, xor, QUICK)
    assert isinstance(outcome, Skipped)
    package = {"sklearnex": "scikit-learn-intelex", "lightgbm": "lightgbm"}
    assert outcome.reason in [f"{name} is not installed (pip install {package[name]})" for name in package]


def test_a_model_that_fails_does_not_take_the_others_with_it(xor):
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise ValueError("no such luck")

    outcome = measure(Peer("x", "X", lambda setting: Broken()), xor, QUICK)
    assert outcome.reason == "ValueError: no such luck"
    rows = replace(xor, X_train=sparse.csr_array(xor.X_train), X_test=sparse.csr_array(xor.X_test))
    assert measure(choose(["hgb"])[0], rows, QUICK).reason == "it takes dense rows only"
    assert isinstance(measure(choose(["linear"])[0], rows, QUICK), trials.Trial)


class Slow(ClassifierMixin, BaseEstimator):
    """A fit that takes rows^power microseconds on a clock of its own."""

    clock = 0.0

    def __init__(self, power=2.0):
        self.power = power

    def fit(self, X, y):
        Slow.clock += 1e-6 * len(y) ** self.power
        self.rows_ = len(y)
        return self


@pytest.mark.parametrize(("power", "budget", "rows"), [(1.0, 0.1, 50_000), (2.0, 100.0, 10_000), (2.0, 1e9, 50_000)])
def test_the_budget_says_how_many_rows(monkeypatch, power, budget, rows):
    """A quadratic fit of 50,000 rows takes 2500 s; 100 s are enough for 10,000."""
    Slow.clock = 0.0
    monkeypatch.setattr(trials, "perf_counter", lambda: Slow.clock)
    X, y = np.zeros((50_000, 1)), np.arange(50_000) % 2
    model, seconds, n = fit_within(Slow(power), X, y, spread_order(y, 0), budget)
    assert n == model.rows_
    assert n == pytest.approx(rows, rel=0.35)
    assert seconds <= 1.05 * budget
    assert Slow.clock <= 2 * budget + 3 * seconds


@pytest.mark.parametrize(("load", "busy"), [(0.4, False), (1.9, True)])
def test_a_busy_machine_is_told(monkeypatch, load, busy):
    monkeypatch.setattr(trials.os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(trials.os, "cpu_count", lambda: 2)
    assert (trials.business() is not None) == busy


def test_every_class_comes_among_the_first_rows():
    y = np.r_[np.zeros(1000, int), [1, 2]]
    order = spread_order(y, 0)
    assert_array_equal(np.sort(order), np.arange(len(y)))
    assert_array_equal(np.unique(y[order[:3]]), [0, 1, 2])


def test_the_compiled_model_scales_as_the_pipeline_does():
    data = load("digits")
    model = make_pipeline(StandardScaler(), ClusteredSVC(4, tol=1e-2, random_state=0)).fit(data.X_train, data.y_train)
    predictor = compiled(model)
    assert_array_equal([predictor(row) for row in data.X_test], model.predict(data.X_test))
    assert (
        compiled(make_pipeline(StandardScaler(), choose(["svc"])[0].build(QUICK)).fit(data.X_train, data.y_train))
        is None
    )


def test_tuning_chooses_on_the_training_rows(xor, monkeypatch):
    peer = Peer("svc", "SVC", choose(["svc"])[0].build, grid={"C": (1e-6, 1.0)})
    trial = measure(peer, xor, QUICK, tune=True)
    assert trial.parameters == {"C": 1.0}
    assert measure(peer, xor, QUICK).parameters == {}


def test_a_run_prints_writes_and_draws(tmp_path, capsys):
    out, chart = tmp_path / "out.json", tmp_path / "chart.svg"
    words = ["bench", "--quick", "--models", FEW, "--max-rows", "200", "--json", str(out), "--chart", str(chart)]
    assert cli.main([*words, "digits-3v8", "xor"]) == 0
    text = capsys.readouterr().out
    results = json.loads(out.read_text())
    assert [result["name"] for result in results["sets"]] == ["digits-3v8", "xor"]
    for result in results["sets"]:
        assert [trial["key"] for trial in result["trials"]] == FEW.split(",")
        assert result["n_train"] == 200
        for trial in result["trials"]:
            assert f"{trial['model']}" in text
            assert f"{trial['accuracy']:.2%}" in text
        assert set(result["front"]) <= set(FEW.split(","))
    assert results["settings"]["quick"] is True
    assert results["machine"]["packages"]["svmosaic"]
    drawing = chart.read_text()
    assert drawing.startswith("<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chart.svg", "out.json"]


def test_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert cli.main(["bench", "--quick", "--models", FEW, "--max-rows", "200", "--json", "usps.json", "xor"]) == 0
    run_blocks("bench.md")
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")


def test_json_on_the_standard_output_is_alone_there(capsys):
    assert cli.main(["bench", "--quick", "--models", "linear", "--json", "-", "two_spirals"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["sets"][0]["n_classes"] == 2


def test_a_table_of_the_user(tmp_path, capsys):
    X, y = make_xor(300, random_state=0)
    lines = ["a,b,colour,kind"]
    for k, ((a, b), label) in enumerate(zip(X, y, strict=True)):
        lines.append(f"{a if k % 20 else ''},{b},{'red' if a > 0 else 'blue'},{'yes' if label else 'no'}")
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    assert cli.main(["bench", str(path), "--label", "kind", "--quick", "--models", "knn", "--json", "-"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["sets"]
    assert result["name"] == "mine.csv"
    # Two columns of numbers, whether one of them is missing, and two colors.
    assert (result["n_train"], result["n_test"], result["n_features"]) == (225, 75, 5)
    assert result["trials"][0]["accuracy"] > 0.8
    assert cli.main(["bench", str(path), "--quick"]) == 1
    assert "name its label column with --label" in capsys.readouterr().err


def test_tables_are_prepared_from_the_training_rows_alone():
    X, y = make_xor(100, random_state=0)
    data = table_data(X, y.astype(str), name="t", test_size=0.2)
    assert data.X_train.shape == (80, 2)
    assert data.y_train.dtype.kind == "U" or data.y_train.dtype == np.int64
    rows = table_data(sparse.csr_array(X), y, name="t")
    assert isinstance(rows.X_train, np.ndarray)
    with pytest.raises(ValueError, match="no two classes among its labels"):
        table_data(X, np.zeros(100, int), name="t")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuchset"], "data set 'nosuchset' not found"),
        (["--models", "forest"], "there is no model called 'forest'"),
        (["--chart", "x.gif"], "--chart must end in .png, .svg or .pdf"),
        (["--json", "/no/such/folder/x.json"], "there is no folder /no/such/folder"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--max-rows", "3"], "--max-rows must be at least 10"),
    ],
)
def test_what_cannot_work_is_refused_at_once(words, message, capsys):
    assert cli.main(["bench", *words]) == 1
    assert message in capsys.readouterr().err
