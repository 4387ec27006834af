"""`score` and `predict` of the command line: metrics, thresholds, and what a search chooses by."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import metrics
from test_table_input import mixed_table

from svmosaic.cli import main
from svmosaic.table.trained_model import open_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    frame, y = mixed_table()
    frame.assign(kind=y).to_csv(folder / "two.csv", index=False)
    frame.assign(kind=np.array(["a", "b", "c"])[(frame["age"].fillna(50) // 27).astype(int)]).to_csv(
        folder / "three.csv", index=False
    )
    for name in ("two", "three"):
        options = ["--label", "kind", "--model", "clustered", "--test-size", "0", "--quiet"]
        assert main(["train", folder / f"{name}.csv", *options, "-o", folder / f"{name}.model"]) == 0
    plain = ["--label", "kind", "--model", "linear", "--calibration", "none", "--test-size", "0", "--quiet"]
    assert main(["train", folder / "two.csv", *plain, "-o", folder / "plain.model"]) == 0
    return folder


def said(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_metrics_are_those_of_scikit_learn(folder, capsys):
    for name in ("two", "three"):
        facts = json.loads(said(capsys, "score", folder / f"{name}.model", folder / f"{name}.csv", "--json"))
        model, frame = open_model(folder / f"{name}.model"), pd.read_csv(folder / f"{name}.csv")
        probability, scores = model.predict_proba(frame), model.pipeline.decision_function(model.rows(frame))
        y = frame["kind"]
        assert facts["accuracy"] == pytest.approx(metrics.accuracy_score(y, model.predict(frame)))
        assert facts["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, model.predict(frame)))
        assert facts["log_loss"] == pytest.approx(metrics.log_loss(y, probability))
        columns = zip(model.classes, scores.T, strict=True) if name == "three" else [("yes", scores)]
        each = [(y == c, column) for c, column in columns]
        assert facts["auc"] == pytest.approx(np.mean([metrics.roc_auc_score(*one) for one in each]))
        assert facts["average_precision"] == pytest.approx(
            np.mean([metrics.average_precision_score(*one) for one in each])
        )
    lines = said(capsys, "score", folder / "two.model", folder / "two.csv").splitlines()
    assert lines[0] == "on 400 rows:"
    names = ["accuracy", "balanced accuracy", "ROC AUC", "average precision", "log-loss"]
    assert [line.rsplit(maxsplit=1)[0].strip() for line in lines[1:6]] == names


def test_without_probabilities_there_is_no_log_loss(folder, capsys):
    assert "log-loss" not in said(capsys, "score", folder / "plain.model", folder / "two.csv")
    facts = json.loads(said(capsys, "score", folder / "plain.model", folder / "two.csv", "--json"))
    assert facts["log_loss"] is None
    assert facts["auc"] > 0.5


def test_a_threshold_moves_the_border(folder, tmp_path, capsys):
    frame = pd.read_csv(folder / "two.csv")
    probability = open_model(folder / "two.model").predict_proba(frame)[:, 1]
    counts = []
    for threshold in ("0.2", "0.5", "0.8"):
        out = tmp_path / f"{threshold}.csv"
        main(["predict", folder / "two.model", folder / "two.csv", "-o", out, "--threshold", threshold, "--quiet"])
        answers = pd.read_csv(out)["prediction"]
        assert_array_equal(answers == "yes", probability >= float(threshold))
        facts = json.loads(
            said(capsys, "score", folder / "two.model", folder / "two.csv", "--json", "--threshold", threshold)
        )
        assert facts["accuracy"] == pytest.approx(np.mean(answers == frame["kind"]))
        counts.append((answers == "yes").sum())
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]


def test_thresholds_that_mean_nothing(folder, capsys):
    for model, message in (("three", "--threshold is for two classes, and the model has 3"), ("plain", "no probabil")):
        assert main(["predict", folder / f"{model}.model", folder / "two.csv", "--threshold", "0.3"]) == 1
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["score", folder / "two.model", folder / "two.csv", "--threshold", "1.5"])
    assert "'1.5' is not a probability between 0 and 1" in capsys.readouterr().err


@pytest.mark.usefixtures("one_short_search")
def test_what_to_choose_by(folder, tmp_path, capsys):
    common = ["train", folder / "two.csv", "--label", "kind", "-o", tmp_path / "m.model", "--test-size", "0", "--quiet"]
    assert main([*common, "--model", "linear", "--metric", "auc"]) == 1
    assert "--metric is for --model auto" in capsys.readouterr().err
    assert main([*common, "--metric", "roc_auc", "--budget", "2s", "--set", "max_tiles=2"]) == 0
    assert open_model(tmp_path / "m.model").estimator.metric == "roc_auc"


def test_columns_of_a_file_are_prepared_as_in_python(folder):
    """Dates, many texts, missing values: the same object as for frames."""
    model = open_model(folder / "two.model")
    table = model.table_preparation
    assert {column.name: column.kind for column in table.columns_}["when"] == "date"
    assert list(table.columns) == ["age", "color", "flag", "when", "size", "city", "count"]
    assert table.dropped_ == {"same": "constant", "nothing": "constant"}
    frame = pd.read_csv(folder / "two.csv")
    account = model.explain(frame[:3])
    assert account.feature_names == list(table.columns)
    assert account.value[0, 1] == frame["color"][0]
