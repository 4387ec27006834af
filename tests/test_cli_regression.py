"""The command line for values: what it decides, and that every command goes with a regressor."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from test_cli import told

from svmosaic.cli import main
from svmosaic.table.preparation import decide_task
from svmosaic.table.trained_model import open_model


def houses(n=400, seed=0):
    rng = np.random.default_rng(seed)
    size, age = rng.uniform(40, 200, n), rng.uniform(0, 80, n)
    town = rng.choice(["Bonn", "Rome", "Oslo"], n)
    price = 1000 * (2 * size + np.abs(age - 40) + 50 * (town == "Oslo")) + rng.normal(0, 3000, n)
    frame = pd.DataFrame({"size": size.round(1), "age": age.round(), "town": town, "price": price.round(2)})
    frame.loc[::29, "age"] = np.nan
    frame["price"] = frame["price"].astype(object)
    frame.loc[::50, "price"] = ""
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    houses().to_csv(folder / "houses.csv", index=False)
    houses(200, 1).to_csv(folder / "new.csv", index=False)
    arguments = ["train", folder / "houses.csv", "--label", "price", "--model", "local", "--set", "n_anchors=16"]
    assert main([*arguments, "-o", folder / "houses.model"]) == 0
    return folder


@pytest.mark.parametrize(
    ("y", "task", "words"),
    [
        (["a", "b"], "classification", ""),
        ([True, False, True], "classification", ""),
        ([0, 1, 1, None], "classification", "2 different whole numbers.*--task regression"),
        ([0.5, 1.0], "regression", "numbers with fractions.*--task classification"),
        (range(100), "regression", "100 different numbers.*--task classification"),
    ],
)
def test_the_label_decides(y, task, words):
    found, why = decide_task(list(y), "auto")
    assert found == task
    assert re.search(words, why)
    assert decide_task(list(y), "regression") == ("regression", "")


def test_training_says_what_it_decided(folder, tmp_path, capsys):
    arguments = ["train", folder / "houses.csv", "--label", "price", "-o", tmp_path / "m", "--model", "tree"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "392 rows, 3 columns (1 of text), values of 'price' to predict" in said
    assert "8 rows without a label were left out" in said
    assert "numbers with fractions, so values are predicted (--task classification" in said
    assert "R2" in said
    assert "linear SVM" in said
    assert open_model(tmp_path / "m").task == "regression"
    assert main([*arguments, "--json", "--task", "regression"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["task"] == "regression"
    assert facts["rows_without_label"] == 8
    assert facts["held_out"]["r2"] > 0.9
    assert facts["classes"] == []
    assert not any("--task" in note for note in facts["notes"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("most", [100_000, 50])  # values are known as such at the end, or on the way
def test_values_from_a_table_larger_than_memory(folder, tmp_path, capsys, suffix, most, monkeypatch):
    monkeypatch.setattr("svmosaic.cli._chunked_table.MOST_CLASSES", most)
    frame = pd.read_csv(folder / "houses.csv")
    path = tmp_path / f"houses.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False, row_group_size=60)
    common = ["train", path, "--label", "price", "--model", "linear", "--set", "tol=1e-6", "--json", "--quiet"]
    found = []
    for more in (["--memory", "10kB"], ["--memory", "10kB", "--task", "regression"], []):
        assert main([*common, "-o", tmp_path / f"{len(found)}", *more]) == 0
        found.append((json.loads(capsys.readouterr().out), open_model(tmp_path / f"{len(found)}")))
    assert [facts.get("chunks", 0) > 2 for facts, _ in found] == [True, True, False]
    for facts, model in found:
        assert facts["task"] == model.task == "regression"
        assert (facts["rows"], facts["rows_without_label"]) == (392, 8)
        assert facts["held_out"]["r2"] > 0.9
        assert_allclose(model.predict(frame), found[-1][1].predict(frame), rtol=1e-3)
    assert [any("--task" in note for note in facts["notes"]) for facts, _ in found] == [True, False, True]


@pytest.mark.usefixtures("one_short_search")
def test_the_search_on_a_sample_of_a_large_table(folder, tmp_path, capsys):
    arguments = ["--label", "price", "--memory", "10kB", "--budget", "2s", "--test-size", "0", "--json", "--quiet"]
    assert main(["train", folder / "houses.csv", "-o", tmp_path / "m", *arguments]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] in ("LinearSVR", "ClusteredSVR", "LocallyLinearSVR")
    assert facts["sampled_rows"] == 392
    frame = pd.read_csv(folder / "new.csv").dropna(subset="price")
    error = open_model(tmp_path / "m").predict(frame) - frame["price"]
    assert error.std() < 0.3 * frame["price"].std()


def test_numbers_may_be_classes_or_values(tmp_path, capsys):
    frame = houses().drop(columns="price").dropna().assign(rooms=lambda f: (f["size"] // 40).astype(int))
    frame.to_csv(tmp_path / "rooms.csv", index=False)
    arguments = ["train", tmp_path / "rooms.csv", "--label", "rooms", "--model", "linear", "-o", tmp_path / "m"]
    assert main(arguments) == 0
    assert "4 different whole numbers, which are taken as classes" in capsys.readouterr().out
    assert open_model(tmp_path / "m").task == "classification"
    assert main([*arguments, "--task", "regression"]) == 0
    assert open_model(tmp_path / "m").task == "regression"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--label", "town", "--task", "regression", "--model", "linear"], "the label holds text, such as 'B|R|O"),
        (["--label", "price", "--model", "mixture"], "--model mixture is for classification, but the label is numeric"),
        (["--label", "price", "--task", "classification"], "numbers with fractions"),
        (["--label", "price", "--model", "linear", "--set", "class_weight=1"], "a parameter of LinearSVR"),
        (
            ["--label", "price", "--memory", "1kB", "--set", "quantiles=(0.1, 0.9)"],
            "quantiles: intervals need a table that fits in memory; raise --memory",
        ),
    ],
)
def test_what_cannot_be_is_said(folder, tmp_path, capsys, more, words):
    assert main(["train", folder / "houses.csv", "-o", tmp_path / "m", *more]) != 0
    error = " ".join(capsys.readouterr().err.split())
    assert re.search(words, error), error
    assert not (tmp_path / "m").exists()


def test_score_predict_and_inspect(folder, tmp_path, capsys):
    assert main(["score", folder / "houses.model", folder / "new.csv"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("R2 0.9")
    assert "MAE" in said
    assert "RMSE" in said
    assert "4 rows without a label were left out" in said
    assert set(told(capsys, "score", folder / "houses.model", folder / "new.csv")) == {
        "rows",
        "r2",
        "mae",
        "rmse",
        "rows_without_label",
    }
    out = tmp_path / "out.csv"
    assert main(["predict", folder / "houses.model", folder / "new.csv", "-o", out, "--explain", "--keep", "town"]) == 0
    assert "200 predictions written" in capsys.readouterr().out
    found = pd.read_csv(out)
    model = open_model(folder / "houses.model")
    assert_allclose(found["prediction"], model.predict(pd.read_csv(folder / "new.csv")))
    assert list(found) == ["town", "prediction", "tiles", "features"]
    assert main(["predict", folder / "houses.model", folder / "new.csv", "-o", out, "--proba"]) != 0
    assert "predicts values, which have no probabilities" in capsys.readouterr().err
    assert main(["inspect", folder / "houses.model"]) == 0
    said = capsys.readouterr().out
    assert "it predicts values" in said
    assert "mean absolute error" in said
    facts = told(capsys, "inspect", folder / "houses.model", "--row", "3")
    parts = sum(part["contribution"] for part in facts["features"])
    assert_allclose(parts + facts["other_features"] + facts["intercept"], facts["prediction"], rtol=1e-6)
    page = tmp_path / "report.html"
    assert main(["inspect", folder / "houses.model", "--html", page, "--test", folder / "new.csv"]) == 0
    assert "<html" in page.read_text()


@pytest.mark.parametrize("kind", ["onnx", "javascript"])
def test_exports(folder, tmp_path, kind):
    name = {"onnx": "m.onnx", "javascript": "m.js"}[kind]
    if kind == "onnx":
        pytest.importorskip("onnx")
    assert main(["export", folder / "houses.model", "--format", kind, "-o", tmp_path / name]) == 0
    assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.usefixtures("one_short_search")
def test_intervals(folder, tmp_path, capsys):
    arguments = ["train", folder / "houses.csv", "--label", "price", "-o", tmp_path / "m", "--budget", "6s"]
    arguments += ["--set", "quantiles=(0.05, 0.95)", "--set", "families=('linear', 'local')", "--test-size", "0"]
    assert main(arguments) == 0
    assert "MosaicRegressor" in capsys.readouterr().out
    facts = told(capsys, "score", tmp_path / "m", folder / "new.csv")
    assert 0.8 < facts["coverage"] <= 1.0
    assert len(facts["pinball"]) == 2
    assert main(["score", tmp_path / "m", folder / "new.csv"]) == 0
    assert "intervals from 0.05 to 0.95: coverage" in capsys.readouterr().out
    assert main(["predict", tmp_path / "m", folder / "new.csv", "-o", tmp_path / "out.csv"]) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found) == ["prediction", "low", "high"]
    assert (found["low"] <= found["high"]).all()


@pytest.mark.usefixtures("one_short_search")
def test_the_search_for_values(folder, tmp_path, capsys):
    arguments = ["train", folder / "houses.csv", "--label", "price", "-o", tmp_path / "m", "--budget", "4s", "--json"]
    assert main([*arguments, "--families", "linear,trees", "--metric", "neg_mean_absolute_error"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["task"] == "regression"
    assert facts["model"] == "MosaicRegressor"
    assert facts["best_score"] < 0
    assert facts["held_out"]["r2"] > 0.9
