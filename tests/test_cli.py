"""The command line: every command and format, what is said of bad input, and that no file is left half written."""

import ctypes
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import svmosaic
from svmosaic.cli import COMMANDS, main
from svmosaic.datasets import make_xor
from svmosaic.table.trained_model import TrainedModel, open_model


def mixed_table(n=300, seed=0):
    """Numbers and text, some missing, with commas, quotes and umlauts."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    town = rng.choice(["Köln, Süd", 'the "hill"', "Bonn"], n)
    frame = pd.DataFrame({"größe": a, "b": b.round(3), "town": town, "kind": np.where((a * b > 0), "yes", "no")})
    frame.loc[::17, "b"] = np.nan
    frame.loc[::13, "town"] = None
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with text and one of numbers, a model of each."""
    folder = tmp_path_factory.mktemp("cli")
    mixed_table().to_csv(folder / "mixed.csv", index=False)
    X, y = make_xor(300, random_state=0)
    X = np.column_stack([100 + 10 * X[:, 0], X[:, 1] / 50, np.arange(300)])
    X[5, 1] = np.nan
    pd.DataFrame(X, columns=["u", "v", "w"]).assign(target=y).to_csv(folder / "xor.csv", index=False)
    for name, label, model in (("mixed", "kind", "local"), ("xor", "target", "clustered")):
        assert (
            main(["train", folder / f"{name}.csv", "--label", label, "-o", folder / f"{name}.model", "--model", model])
            == 0
        )
    return folder


def answer(capsys):
    """What was printed, as JSON."""
    return json.loads(capsys.readouterr().out)


def told(capsys, *arguments):
    """What a command that succeeds prints, as JSON."""
    assert main([*arguments, "--json"]) == 0
    return answer(capsys)


def refused(capsys, arguments, message):
    """The command fails with one line that says so."""
    before = capsys.readouterr()
    assert main(arguments) == 1
    after = capsys.readouterr()
    assert after.err.startswith("svmosaic: error: ")
    assert after.err.count("\n") == 1
    assert message in after.err, after.err
    assert after.out == ""
    return before


# ---- train -------------------------------------------------------------------------------------------------------


def test_train_prints_scores_beside_a_linear_svm_and_fits_to_all_rows(folder, tmp_path, capsys):
    out = tmp_path / "m"
    facts = told(capsys, "train", folder / "xor.csv", "--label", "target", "-o", out, "--model", "clustered")
    assert facts["rows"] == 300
    assert facts["held_out"]["rows"] == 60
    assert facts["held_out"]["accuracy"] > 0.9 > 0.8 > facts["held_out"]["linear_svm"]
    assert facts["classes"] == ["0", "1"]
    assert facts["tiles"] == 8
    model = open_model(out)
    assert isinstance(model, TrainedModel)
    assert model.estimator.region_counts_["classes"].sum() == 300
    assert main(["train", folder / "xor.csv", "--label", "target", "-o", out, "--model", "clustered"]) == 0
    text = capsys.readouterr().out
    assert "60 rows held out" in text
    assert "linear SVM" in text


@pytest.mark.parametrize("model", ["linear", "kmeans", "learned", "mixture"])
def test_every_kind_of_model_is_trained_saved_and_used(folder, tmp_path, capsys, model):
    out = tmp_path / "m"
    settings = {"learned": ["--set", "max_iter=3"], "mixture": ["--set", "n_experts=4"]}.get(model, [])
    assert main(["train", folder / "xor.csv", "--label", "-1", "-o", out, "--model", model, *settings, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert told(capsys, "score", out, folder / "xor.csv")["rows"] == 300
    assert told(capsys, "inspect", out, "--row", "1")["tiles"]
    assert sum(region["rows"] for region in told(capsys, "inspect", out)["regions"]) == 300
    assert main(["predict", out, folder / "xor.csv", "--explain", "-o", tmp_path / "p.csv"]) == 0
    assert pd.read_csv(tmp_path / "p.csv").shape == (300, 3)


@pytest.mark.usefixtures("one_short_search")
def test_auto_chooses_by_itself_within_its_budget(folder, tmp_path, capsys):
    out = tmp_path / "m"
    facts = told(capsys, "train", folder / "xor.csv", "--label", "target", "-o", out, "--budget", "2s")
    assert facts["model"] == "MosaicClassifier"
    assert facts["parameters"]["time_budget"] == 1.0
    assert main(["predict", out, folder / "xor.csv", "--proba", "-o", tmp_path / "p.csv"]) == 0


def test_settings_reach_the_model(folder, tmp_path, capsys):
    arguments = ["train", folder / "xor.csv", "--label", "target", "-o", tmp_path / "m", "--model", "clustered"]
    assert main([*arguments, "--set", "n_clusters=3", "--set", "loss=squared_hinge", "--balanced"]) == 0
    model = open_model(tmp_path / "m").estimator
    assert (model.n_clusters, model.loss, model.class_weight) == (3, "squared_hinge", "balanced")
    refused(capsys, [*arguments, "--set", "clusters=3"], "with a parameter of ClusteredSVC: C, ")
    refused(capsys, [*arguments, "--set", "C=-1"], "C must be a finite number, above 0, got -1")
    refused(capsys, [*arguments, "--budget", "5s"], "--budget is for --model auto")


def test_the_same_seed_writes_the_same_model(folder, tmp_path):
    for name in "ab":
        main(
            ["train", folder / "mixed.csv", "--label", "kind", "-o", tmp_path / name, "--model", "local", "--seed", "3"]
        )
    a, b = (open_model(tmp_path / name).estimator.mosaic_.coef for name in "ab")
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("suffix", ["tsv", "csv.gz", "parquet", "feather", "npz", "libsvm"])
def test_every_format_trains_and_predicts(folder, tmp_path, capsys, suffix):
    frame = pd.read_csv(folder / "xor.csv").fillna(0.0)
    data, X, y = tmp_path / f"d.{suffix}", frame[["u", "v", "w"]].to_numpy(), frame["target"].to_numpy()
    label = ["--label", "target"]
    if suffix == "parquet":
        frame.to_parquet(data)
    elif suffix == "feather":
        frame.to_feather(data)
    elif suffix == "npz":
        np.savez(data, X=X, y=y)
        label = []
    elif suffix == "libsvm":
        dump_svmlight_file(X, y, str(data), zero_based=False)
        label = []
    else:
        frame.to_csv(data, index=False, sep="\t" if suffix == "tsv" else ",")
    facts = told(capsys, "train", data, *label, "-o", tmp_path / "m", "--model", "clustered")
    assert (facts["rows"], facts["features"], facts["classes"]) == (300, 3, ["0", "1"])
    assert told(capsys, "score", tmp_path / "m", data)["accuracy"] > 0.7
    assert main(["predict", tmp_path / "m", data, "-o", tmp_path / "p.csv", "--chunk", "70"]) == 0
    names = ["x0", "x1", "x2"] if suffix == "npz" else ["u", "v", "w"]
    rows = sparse.csr_array(X) if suffix == "libsvm" else pd.DataFrame(X, columns=names)
    np.testing.assert_array_equal(
        pd.read_csv(tmp_path / "p.csv")["prediction"], open_model(tmp_path / "m").predict(rows)
    )
    assert main(["inspect", tmp_path / "m", "--row", "2", "--data", data]) == 0


def test_libsvm_files_with_fewer_features_are_padded_and_with_more_refused(tmp_path, capsys):
    X, y = make_xor(200, random_state=0)
    dump_svmlight_file(X, y, str(tmp_path / "d.svm"), zero_based=False)
    assert main(["train", tmp_path / "d.svm", "-o", tmp_path / "m", "--model", "clustered"]) == 0
    (tmp_path / "short.svm").write_text("0 1:0.5\n1 1:-0.25\n")
    assert main(["predict", tmp_path / "m", tmp_path / "short.svm", "-o", tmp_path / "p.csv"]) == 0
    expected = open_model(tmp_path / "m").predict(sparse.csr_array([[0.5, 0.0], [-0.25, 0.0]]))
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "p.csv")["prediction"], expected)
    (tmp_path / "long.svm").write_text("0 1:0.5 7:1\n")
    refused(capsys, ["predict", tmp_path / "m", tmp_path / "long.svm"], "line 1: the feature 7 lies beyond the last, 2")
    (tmp_path / "d.csv").write_text("1,2\n3,4\n")
    refused(capsys, ["predict", tmp_path / "m", tmp_path / "d.csv"], "trained on sparse rows (LIBSVM)")


def test_a_test_file_judges_instead_of_held_out_rows(folder, tmp_path, capsys):
    mixed_table(100, seed=5).to_csv(tmp_path / "t.csv", index=False)
    arguments = ["train", folder / "mixed.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "local", "--json"]
    assert main([*arguments, "--test", tmp_path / "t.csv"]) == 0
    facts = answer(capsys)
    assert facts["held_out"]["rows"] == 100
    assert told(capsys, "score", tmp_path / "m", tmp_path / "t.csv")["accuracy"] == facts["held_out"]["accuracy"]
    assert main([*arguments, "--test-size", "0"]) == 0
    assert answer(capsys)["held_out"] is None
    mixed_table(100).drop(columns="b").to_csv(tmp_path / "t.csv", index=False)
    refused(capsys, [*arguments, "--test", tmp_path / "t.csv"], "lacks the column 'b'")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1], ["0", "1"]),
        ([-1.0, 1.0], ["-1", "1"]),
        (["a", "b"], ["a", "b"]),
        ([True, False], ["False", "True"]),
        (["TRUE", "FALSE"], ["FALSE", "TRUE"]),
        ([3, 1, 2], ["1", "2", "3"]),
        (["1", "x"], ["1", "x"]),
    ],
)
def test_labels_of_every_type(tmp_path, capsys, labels, classes):
    rng = np.random.default_rng(0)
    place = rng.integers(len(labels), size=90)
    frame = pd.DataFrame({"x": place + 0.1 * rng.normal(size=90), "kind": pd.Series([labels[p] for p in place])})
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert (
        told(capsys, "train", tmp_path / "d.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "linear")[
            "classes"
        ]
        == classes
    )
    assert told(capsys, "score", tmp_path / "m", tmp_path / "d.csv")["accuracy"] > 0.6
    first = frame[frame["kind"] == labels[0]]
    first.to_csv(tmp_path / "one.csv", index=False)  # "1" alone looks like a number
    assert told(capsys, "score", tmp_path / "m", tmp_path / "one.csv")["rows_of_unknown_class"] == 0


@pytest.mark.parametrize("memory", [[], ["--memory", "0.2M"]])
def test_labels_with_leading_zeros_are_names(tmp_path, capsys, memory):
    n = 3000
    label = np.where(np.arange(n) < n // 2, "1", "01")
    label[-n // 10 :] = "2"
    frame = pd.DataFrame({"a": np.arange(n) / n, "b": np.arange(n) % 7, "zip": label})
    frame.to_csv(tmp_path / "zip.csv", index=False)
    train = ["train", tmp_path / "zip.csv", "--label", "zip", "-o", tmp_path / "zip.model", "--model", "tree"]
    assert main([*map(str, train), *memory]) == 0
    assert open_model(tmp_path / "zip.model").classes.tolist() == ["01", "1", "2"]
    capsys.readouterr()
    assert main(["score", str(tmp_path / "zip.model"), str(tmp_path / "zip.csv"), "--json"]) == 0
    assert answer(capsys)["accuracy"] > 0.95
    assert main(["predict", str(tmp_path / "zip.model"), str(tmp_path / "zip.csv"), "-o", str(tmp_path / "p.csv")]) == 0
    found = pd.read_csv(tmp_path / "p.csv", dtype=str).iloc[:, 0]
    assert (found.to_numpy() == label).mean() > 0.95


def test_rows_without_label_are_left_out_and_counted(tmp_path, capsys):
    frame = mixed_table(200)
    frame.loc[:9, "kind"] = None
    frame.to_csv(tmp_path / "d.csv", index=False)
    facts = told(capsys, "train", tmp_path / "d.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "linear")
    assert (facts["rows"], facts["rows_without_label"]) == (190, 10)
    assert told(capsys, "score", tmp_path / "m", tmp_path / "d.csv")["rows_without_label"] == 10


def test_text_that_only_names_rows_is_pointed_out_and_can_be_dropped(tmp_path, capsys):
    frame = mixed_table(200).assign(id=[f"u{i}" for i in range(200)])
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["train", tmp_path / "d.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "linear"]
    assert main(arguments) == 0
    assert "column 'id' holds 200 different texts" in capsys.readouterr().out
    facts = told(capsys, *arguments, "--drop", "id")
    assert facts["notes"] == []
    assert facts["features"] == 3
    refused(capsys, [*arguments, "--drop", "di"], "no column 'di' to drop")


def test_notes_say_what_became_of_the_columns(tmp_path, capsys):
    """Dates in text are no identifiers, nor is what --categorical names."""
    frame = mixed_table(200).assign(
        day=pd.date_range("2020", periods=200).astype(str),
        pair=[f"p{i // 2}" for i in range(200)],
        id=[f"u{i}" for i in range(200)],
    )
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["train", tmp_path / "d.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "linear", "--json"]
    assert main(arguments) == 0
    pair, identifier = answer(capsys)["notes"]
    assert pair == "column 'pair' holds 100 different texts: the mean of the target for each counts"
    assert identifier.startswith("column 'id' holds 200 different texts, nearly one per row, so it is left out")
    assert main([*arguments, "--categorical", "id"]) == 0
    assert not any("left out" in note for note in answer(capsys)["notes"])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2\n", ["--label", "c"], "has no column 'c'"),
        ("a,b\n1,2\n", [], "name the column to predict with --label: 'a', 'b'"),
        ("", ["--label", "a"], "is empty"),
        ("a,b\n", ["--label", "a"], "has no rows"),
        ("a,b\n1,x\n2,x\n", ["--label", "b"], "all rows have the same label, 'x'"),
        ("a,b\n1,\n2,\n", ["--label", "b"], "the label column 'b' is empty"),
        ("a,b\n1,0.5\n2,0.7\n", ["--label", "b", "--task", "classification"], "numbers with fractions, such as 0.5"),
        ("a,a\n1,0\n2,1\n", ["--label", "a"], "two columns are called 'a'"),
        ("a,b\n1,x\ninf,y\n", ["--label", "b"], "column 'a' holds an infinite number in row 2"),
        ("a,b\n1,x\n2,y\n3,x,4\n", ["--label", "b"], "line 4: 3 values"),
        ("b\nx\ny\n", ["--label", "b"], "no column besides the label"),
        ("\0\1\2", ["--label", "b"], "is not text"),
        ("a,b\n1,x\n2,y\n", ["--label", "b"], "too few to hold some out"),
    ],
)  # fmt: skip
def test_bad_tables_are_told_and_leave_no_file(tmp_path, capsys, content, options, message):
    (tmp_path / "d.csv").write_text(content)
    refused(capsys, ["train", tmp_path / "d.csv", *options, "-o", tmp_path / "m", "--model", "linear"], message)
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]


def test_a_class_of_one_row_costs_the_probabilities_only(tmp_path, capsys):
    frame = mixed_table(100)
    frame.loc[3, "kind"] = "perhaps"
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert main(["train", tmp_path / "d.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "linear"]) == 0
    assert "class 'perhaps' has one row only, too few for probabilities" in capsys.readouterr().out
    assert main(["score", tmp_path / "m", tmp_path / "d.csv"]) == 0


def test_training_from_standard_input(folder, tmp_path, monkeypatch, capsys):
    content = (folder / "xor.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert told(capsys, "train", "-", "--label", "target", "-o", tmp_path / "m", "--model", "linear")["rows"] == 300


def test_too_many_classes_are_taken_for_a_wrong_column(tmp_path, capsys):
    pd.DataFrame({"a": range(300), "id": [f"u{i}" for i in range(300)]}).to_csv(tmp_path / "d.csv", index=False)
    refused(capsys, ["train", tmp_path / "d.csv", "--label", "id", "-o", tmp_path / "m"], "is it the right column?")


def test_bad_output_is_told_before_any_work(folder, tmp_path, capsys):
    arguments = ["train", folder / "xor.csv", "--label", "target", "-o"]
    refused(capsys, [*arguments, tmp_path / "none" / "m"], "there is no folder")
    refused(capsys, [*arguments, tmp_path], "is a folder: name a file")


# ---- predict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [7, 100_000])
def test_streaming_equals_the_model_in_memory(folder, tmp_path, chunk):
    assert main(["predict", folder / "mixed.model", folder / "mixed.csv", "-o", tmp_path / "p.csv", "--proba",
                 "--explain", "--chunk", chunk]) == 0  # fmt: skip
    result = pd.read_csv(tmp_path / "p.csv")
    model, frame = open_model(folder / "mixed.model"), pd.read_csv(folder / "mixed.csv")
    np.testing.assert_array_equal(result["prediction"], model.predict(frame))
    np.testing.assert_allclose(result[["probability_no", "probability_yes"]], model.predict_proba(frame), rtol=1e-12)
    assert result["tiles"].str.fullmatch(r"(\d+:[\d.e-]+ ?)+").all()
    assert result["features"].str.contains(r"größe:[+-]").any()


def test_explained_features_point_to_the_prediction(folder, tmp_path):
    main(["predict", folder / "xor.model", folder / "xor.csv", "-o", tmp_path / "p.csv", "--explain", "--top", "99"])
    result = pd.read_csv(tmp_path / "p.csv")
    model, frame = open_model(folder / "xor.model"), pd.read_csv(folder / "xor.csv")
    account = model.explain(frame)
    sign = np.where(result["prediction"] == 1, 1, -1)
    total = [sum(float(part.rsplit(":", 1)[1]) for part in line.split(" ")) for line in result["features"]]
    np.testing.assert_allclose(total, sign * (account.decision[:, 0] - account.intercept[:, 0]), atol=0.05)


def test_predictions_are_the_same_without_the_label_and_with_columns_in_another_order(folder, tmp_path):
    frame = pd.read_csv(folder / "mixed.csv")
    frame[["town", "größe", "b"]].assign(extra=1).to_csv(tmp_path / "d.csv", index=False)
    for name, data in (("p", folder / "mixed.csv"), ("q", tmp_path / "d.csv")):
        assert main(["predict", folder / "mixed.model", data, "-o", tmp_path / f"{name}.csv"]) == 0
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text()


def test_new_categories_and_missing_values_are_taken(folder, tmp_path, capsys):
    (tmp_path / "d.csv").write_text("größe,b,town\n1.0,,\n,,Paris\n0,1,7\n")
    assert main(["predict", folder / "mixed.model", tmp_path / "d.csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_columns_are_kept_on_request_and_quoted(folder, tmp_path, capsys):
    out = tmp_path / "p.csv"
    assert (
        main(["predict", folder / "mixed.model", folder / "mixed.csv", "-o", out, "--keep", "town", "--keep", "kind"])
        == 0
    )
    frame, result = pd.read_csv(folder / "mixed.csv"), pd.read_csv(out)
    assert list(result.columns) == ["town", "kind", "prediction"]
    pd.testing.assert_series_equal(result["town"], frame["town"])
    assert main(["predict", folder / "mixed.model", folder / "mixed.csv", "-o", out, "--keep-all"]) == 0
    assert list(pd.read_csv(out).columns) == [*frame.columns, "prediction"]
    refused(capsys, ["predict", folder / "mixed.model", folder / "mixed.csv", "--keep", "x"], "no column 'x' to keep")


@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_other_outputs(folder, tmp_path, capsys, suffix):
    out = tmp_path / f"p.{suffix}"
    arguments = ["predict", folder / "xor.model", folder / "xor.csv", "-o"]
    facts = told(capsys, *arguments, out, "--chunk", "90")
    assert facts["rows"] == 300 == sum(facts["counts"].values())
    result = pd.read_csv(out, sep="\t") if suffix == "tsv" else pd.read_parquet(out)
    assert len(result) == 300
    refused(capsys, [*arguments, tmp_path / "p.xls"], "must end in .csv, .tsv or .parquet")
    refused(capsys, [*arguments, "-", "--json"], "cannot both go to stdout")


def test_from_standard_input_to_standard_output(folder, monkeypatch, capsys):
    assert main(["predict", folder / "mixed.model", folder / "mixed.csv"]) == 0
    expected = capsys.readouterr().out
    content = (folder / "mixed.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["predict", folder / "mixed.model", "-"]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("größe,town\n1,x\n", "the model was trained on columns größe, b, town; "),
        ("größe,b,town\n" + "1,2,x\n" * 12 + "1,two,x\n", "column 'b' holds 'two' in row 13, which is not a number"),
        ("größe,b,town\n1,2,x\n1,2\n", "line 3: 2 values"),
        ("größe,b,town\n", "has no rows"),
        ("", "is empty"),
    ],
)
def test_a_failure_leaves_what_was_there(folder, tmp_path, capsys, content, message):
    (tmp_path / "d.csv").write_text(content)
    (tmp_path / "p.csv").write_text("precious")
    arguments = ["predict", folder / "mixed.model", tmp_path / "d.csv", "-o", tmp_path / "p.csv", "--chunk", "5"]
    refused(capsys, arguments, message)
    assert (tmp_path / "p.csv").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "p.csv"]


def test_a_model_of_another_data_set_says_so(folder, tmp_path, capsys):
    refused(
        capsys, ["predict", folder / "xor.model", folder / "mixed.csv"],
        f"trained on columns u, v, w; {folder / 'mixed.csv'} lacks u, v, w",
    )  # fmt: skip
    pd.read_csv(folder / "xor.csv").assign(target="never").to_csv(tmp_path / "d.csv", index=False)
    refused(capsys, ["score", folder / "xor.model", tmp_path / "d.csv"], "the classes of the model are numbers: 0, 1")
    pd.read_csv(folder / "xor.csv").assign(target=7).to_csv(tmp_path / "d.csv", index=False)
    refused(capsys, ["score", folder / "xor.model", tmp_path / "d.csv"], "is it the model of another data set?")


def test_files_that_are_no_models(folder, tmp_path, capsys):
    data = folder / "xor.csv"
    refused(capsys, ["predict", tmp_path / "none", data], "there is no file")
    refused(capsys, ["predict", data, data], "is not a model saved by svmosaic")
    refused(capsys, ["predict", folder, data], "could not be read: Is a directory")
    (tmp_path / "renamed.model").write_bytes(pickle.dumps(print))
    refused(capsys, ["predict", tmp_path / "renamed.model", data], "is a pickle, which can run any code")
    (tmp_path / "cut.model").write_bytes((folder / "xor.model").read_bytes()[:5000])
    refused(capsys, ["inspect", tmp_path / "cut.model"], "is truncated or damaged")
    X, y = make_xor(50, random_state=0)
    svmosaic.LinearSVC().fit(X, y).save(tmp_path / "bare.model")
    refused(capsys, ["inspect", tmp_path / "bare.model"], "holds a LinearSVC without its columns")


def test_probabilities_need_a_calibration(folder, tmp_path, capsys):
    train = ["train", folder / "xor.csv", "--label", "target", "-o", tmp_path / "m", "--calibration", "none"]
    assert main([*train, "--model", "linear"]) == 0
    predict = ["predict", tmp_path / "m", folder / "xor.csv", "--proba"]
    refused(capsys, predict, "LinearSVC has no probabilities: train with --calibration temperature")


FIELDS = st.one_of(
    st.sampled_from(
        ["", "1", "-2.5", "1e400", "nan", "inf", "yes", "no", '"', '"a\n', "ä", "\0", "9" * 30, "True", " "]
    ),
    st.text(max_size=4),
)
TABLES = st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=8).map(
    lambda rows: "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(TABLES, st.binary(max_size=80)), suffix=st.sampled_from(["csv", "tsv", "svm", "npz", "parquet"])
)
@example(content=b"u,v,w,kind\n1,2,3,yes\n", suffix="csv")
@example(content=b"u,v,w,kind\n1,2,3,yes\n4,5,6,no\n1,2,3,yes\n4,5,6,no\n1,2,3,yes\n4,5,6,no\n", suffix="csv")
def test_whatever_the_file_holds_there_is_an_exit_code(folder, tmp_path, capsys, content, suffix):
    data, out = tmp_path / f"d.{suffix}", tmp_path / "out.csv"
    data.write_bytes(content)
    for arguments in (
        ["predict", folder / "xor.model", data, "-o", out],
        ["predict", folder / "mixed.model", data, "-o", out],
        ["train", data, "--label", "-1", "-o", out, "--model", "linear"],
    ):
        code = main(arguments)
        err = capsys.readouterr().err
        assert code in (0, 1)
        assert (code == 0) == out.exists(), err
        assert (code == 1) == ("svmosaic: error: " in err)
        out.unlink(missing_ok=True)
    assert [path.name for path in tmp_path.iterdir()] == [data.name]
    data.unlink()


# ---- score, inspect, export ----------------------------------------------------------------------------------


def test_score_counts_what_predict_says(folder, tmp_path, capsys):
    frame = pd.read_csv(folder / "mixed.csv")
    frame.loc[0, "kind"] = "never seen"
    frame.to_csv(tmp_path / "d.csv", index=False)
    facts = told(capsys, "score", folder / "mixed.model", tmp_path / "d.csv")
    expected = np.mean(open_model(folder / "mixed.model").predict(frame) == frame["kind"])
    assert facts["accuracy"] == pytest.approx(expected)
    assert facts["rows_of_unknown_class"] == 1
    assert [c["class"] for c in facts["classes"]] == ["no", "yes"]
    frame.rename(columns={"kind": "truth"}).to_csv(tmp_path / "d.csv", index=False)
    refused(capsys, ["score", folder / "mixed.model", tmp_path / "d.csv"], "has no column 'kind'")
    assert main(["score", folder / "mixed.model", tmp_path / "d.csv", "--label", "truth"]) == 0
    assert "recall" in capsys.readouterr().out


@pytest.mark.usefixtures("counted_time")
def test_a_budget_shows_the_search(folder, tmp_path, capsys):
    arguments = ["train", folder / "xor.csv", "--label", "target", "-o", tmp_path / "m", "--budget", "3s"]
    facts = told(capsys, *arguments, "--families", "linear,local", "--metric", "roc_auc", "--single")
    assert facts["model"] == "MosaicClassifier"
    assert {line["model"] for line in facts["leaderboard"]} <= {"LinearSVC", "LocallyLinearSVC"}
    most = max(line["parts"] for line in facts["leaderboard"])
    assert facts["best_score"] == max(line["score"] for line in facts["leaderboard"] if line["parts"] == most)
    assert facts["held_out"]["accuracy"] > facts["held_out"]["linear_svm"]
    model = open_model(tmp_path / "m").estimator
    assert (model.metric, model.families, model.time_budget) == ("roc_auc", ("linear", "local"), 1.5)
    assert main([*arguments, "--families", "linear,local", "--test-size", "0"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^\* +\d+%  \w+SVC .*$", text, re.MULTILINE)
    assert re.search(r"\d+ trials; the search ended: ", text)


def test_inspect_shows_regions_and_rows(folder, capsys):
    assert main(["inspect", folder / "mixed.model"]) == 0
    text = capsys.readouterr().out
    assert "LocallyLinearSVC, trained on 300 rows of mixed.csv" in text
    assert "strongest features" in text
    assert re.search(r"rows: .*(größe|b|town).* \(covers \d+%, \d+% pure\)", text)
    assert main(["inspect", folder / "mixed.model", "--regions", "2"]) == 0
    text = capsys.readouterr().out
    assert "the most similar ones are merged, which leaves 2" in text
    assert text.count("rows: ") == 2
    assert main(["inspect", folder / "mixed.model", "--regions", "0"]) == 0
    assert "merged" not in capsys.readouterr().out
    facts = told(capsys, "inspect", folder / "mixed.model")
    assert {"name": "town", "kind": "text"} in facts["columns"]
    assert sum(region["rows"] for region in facts["regions"]) == 300
    assert sum(region["rows"] for region in facts["regions_in_words"]) == 300
    assert set(facts["importances"]) == {"größe", "b", "town"}
    model, frame = open_model(folder / "mixed.model"), pd.read_csv(folder / "mixed.csv")
    facts = told(capsys, "inspect", folder / "mixed.model", "--row", "4", "--data", folder / "mixed.csv")
    assert facts["prediction"] == model.predict(frame.iloc[[3]])[0]
    parts = sum(part["contribution"] for part in facts["features"]) + facts["other_features"] + facts["intercept"]
    assert parts == pytest.approx(facts["score"])
    assert sum(tile["vote"] for tile in facts["tiles"]) == pytest.approx(facts["score"])
    assert facts["label"] == frame["kind"][3]
    for row in ("0", "301"):
        refused(capsys, ["inspect", folder / "mixed.model", "--row", row], f"rows 1 to 300, so none {row}")
        refused(
            capsys, ["inspect", folder / "mixed.model", "--row", row, "--data", folder / "mixed.csv"], f"none {row}"
        )


@pytest.mark.parametrize("name", ["xor", "mixed"])
def test_the_report_is_one_page_with_the_names_of_the_table(folder, tmp_path, capsys, name):
    out = tmp_path / "report.html"
    assert told(capsys, "inspect", folder / f"{name}.model", "--html", out)["html"] == str(out)
    page = out.read_text()
    assert f"of {name}.csv" in page
    assert {"xor": '"w"', "mixed": '"town"'}[name] in page
    held = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    model = open_model(folder / f"{name}.model")
    assert held["quality"]["model"]["accuracy"] == model.facts["held_out"]["accuracy"]
    assert held["quality"]["baseline"]["accuracy"] == model.facts["held_out"]["linear_svm"]
    assert "rows that were held out" in held["quality_note"]
    told(capsys, "inspect", folder / f"{name}.model", "--html", out, "--test", folder / f"{name}.csv")
    page, frame = out.read_text(), pd.read_csv(folder / f"{name}.csv")
    tested = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert tested["quality"]["model"]["accuracy"] == np.mean(model.predict(frame) == frame[model.label])
    assert tested["quality_note"] == f"Measured on {len(frame)} rows that the model was not trained on."
    refused(capsys, ["inspect", folder / f"{name}.model", "--test", folder / f"{name}.csv"], "--test needs --html")
    refused(capsys, ["inspect", folder / f"{name}.model", "--html", tmp_path / "none" / "r.html"], "there is no folder")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_sample_is_the_training_rows(folder):
    model, frame = open_model(folder / "mixed.model"), pd.read_csv(folder / "mixed.csv")
    X, y = model.sample_rows()
    assert list(y) == list(frame["kind"])
    pd.testing.assert_frame_equal(X, frame.drop(columns="kind"), check_dtype=False)


def test_onnx_takes_the_columns_as_they_are(folder, tmp_path, capsys):
    import onnxruntime

    for name, columns in (("xor", ["u", "v", "w"]), ("mixed", ["größe", "b", "town"])):
        out = tmp_path / f"{name}.onnx"
        inputs = told(capsys, "export", folder / f"{name}.model", "--format", "onnx", "-o", out)["inputs"]
        frame, model = pd.read_csv(folder / f"{name}.csv"), open_model(folder / f"{name}.model")
        if name == "xor":
            feed = {"X": frame[columns].to_numpy(np.float32)}
        else:
            kinds = dict(zip(columns, [np.float32, np.float32, object], strict=True))
            feed = {
                given: (frame[[column]].fillna("") if kinds[column] is object else frame[[column]]).to_numpy(
                    kinds[column]
                )
                for given, column in zip(inputs, columns, strict=True)
            }
        label, probability = onnxruntime.InferenceSession(out.read_bytes()).run(None, feed)
        np.testing.assert_array_equal(label, model.predict(frame))
        np.testing.assert_allclose(probability, model.predict_proba(frame), atol=1e-4)


@pytest.mark.usefixtures("one_short_search")
@pytest.mark.parametrize("kind", ["clustered", "auto", "mixture"])
def test_c_takes_the_columns_as_they_are(folder, tmp_path, capsys, kind):
    model = folder / "xor.model"
    if kind != "clustered":
        model = tmp_path / "other.model"
        settings = ["--budget", "2s"] if kind == "auto" else ["--set", "n_experts=4"]
        arguments = ["train", folder / "xor.csv", "--label", "target", "-o", model, "--test-size", "0"]
        assert main([*arguments, "--model", kind, *settings]) == 0
    assert main(["export", model, "--format", "c", "-o", tmp_path / "xor.c"]) == 0
    frame = pd.read_csv(folder / "xor.csv")
    rows = np.ascontiguousarray(frame[["u", "v", "w"]], dtype=np.float32)
    assert np.isnan(rows).any()
    trained = open_model(model)
    expected = trained.pipeline.decision_function(trained.rows(frame))
    library = tmp_path / "xor.so"
    subprocess.run(
        ["cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", "-shared",
         tmp_path / "xor.c", "-o", library, "-lm"], check=True,
    )  # fmt: skip
    scores, pointer = np.empty(len(rows), dtype=np.float32), ctypes.c_void_p
    for x, out in zip(rows, scores.reshape(-1, 1), strict=True):
        ctypes.CDLL(str(library)).xor_scores(x.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    np.testing.assert_allclose(scores, expected, atol=1e-3 * np.abs(expected).max())


def test_c_is_written_to_c_files(folder, tmp_path, capsys):
    wrong = tmp_path / "m.txt"
    refused(capsys, ["export", folder / "xor.model", "--format", "c", "-o", wrong], f"only, got '{wrong}'")
    assert not list(tmp_path.iterdir())


# ---- the program -------------------------------------------------------------------------------------------------


PROGRAM = "import sys; from svmosaic.cli import main; sys.exit(main())"


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        capture_output=True, text=True, check=False, **options,
    )  # fmt: skip


def test_exit_codes_of_the_program(folder, tmp_path):
    content = (folder / "xor.csv").read_text()
    good = run("predict", folder / "xor.model", "-", input=content)
    assert good.returncode == 0
    assert len(good.stdout.splitlines()) == 301
    assert good.stderr == ""
    bad = run("predict", folder / "xor.model", "-", input="a,b\n1,2\n")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "Traceback" not in bad.stderr
    assert bad.stderr.startswith("svmosaic: error: the model was trained on columns u, v, w; the standard input lacks")
    assert run("predict").returncode == 2
    assert run("--version").stdout.strip() == f"svmosaic {svmosaic.__version__}"
    module = [sys.executable, "-m", "svmosaic", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == run("--version").stdout


def test_help_lists_all_commands_and_needs_neither_pandas_nor_scikit_learn():
    code = """
import sys
from svmosaic.cli import COMMANDS, main
for arguments in [[], *([command] for command in COMMANDS)]:
    try:
        main([*arguments, "--help"])
    except SystemExit:
        print(arguments, [name for name in ("pandas", "scipy", "sklearn") if name in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(command in out for command in COMMANDS)
    assert [line for line in out.splitlines() if line.startswith("[") and not line.endswith("[]")] == []
    assert sum(line.endswith(" []") for line in out.splitlines()) == 1 + len(COMMANDS)


def test_a_reader_that_has_enough_is_no_error(folder):
    command = (
        f'"{sys.executable}" -c "{PROGRAM}" predict {folder / "xor.model"} {folder / "xor.csv"} --chunk 1 | head -n 1'
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "prediction\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "d.csv"],
        ["train", "d.csv", "-o", "m", "--model", "none"],
        ["train", "d.csv", "-o", "m", "--budget", "soon"],
        ["train", "d.csv", "-o", "m", "--test-size", "2"],
        ["train", "d.csv", "-o", "m", "--families", "none"],
        ["export", "m", "--format", "java", "-o", "x"],
        ["fly"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "invalid _" not in capsys.readouterr().err  # the name of a function


def test_an_interrupt_ends_with_130_and_no_file(folder, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "predict", folder / "xor.model", "-", "-o", tmp_path / "p.csv", "--chunk", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write("u,v,w\n1,2,3\n4,5,6\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:  # it has begun to write
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "svmosaic: interrupted\n"
    assert not list(tmp_path.iterdir())


def on_a_terminal(arguments):
    """Exit code of the program, and all that it wrote to the terminal that its stderr is."""
    pty = pytest.importorskip("pty", reason="this system has no terminals to pretend")
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    while True:  # read on: a program whose terminal is full stands still
        try:
            some = os.read(leader, 100_000)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        shown += some
    os.close(leader)
    return process.wait(timeout=120), shown.decode()


def test_a_bar_is_shown_on_a_terminal_only(folder, tmp_path):
    predict = ["predict", folder / "xor.model", folder / "xor.csv", "-o", tmp_path / "p.csv", "--chunk", "10"]
    code, shown = on_a_terminal(predict)
    assert code == 0
    assert "predicting" in shown
    assert "left" in shown
    assert run(*predict).stderr == ""


@pytest.mark.parametrize(
    ("model", "settings", "task"),
    [
        ("mixture", ["n_experts=4", "max_iter=30", "tol=0"], "EM iteration [0-9]+ of at most 30"),
        ("learned", ["n_tiles=4", "max_iter=400"], "epoch [0-9]+ of at most 400"),
        (
            "local",
            ["n_anchors=60", "C=1e5", "tol=1e-12", "max_iter=2999", "solver=dual"],
            "output [123] of 3, iteration [0-9]+",
        ),
    ],
)
def test_the_bar_follows_the_iterations_and_the_model_does_not_know(folder, tmp_path, model, settings, task):
    arguments = ["train", folder / "mixed.csv", "--label", "town", "--model", model, "--test-size", "0"]
    arguments += [word for setting in settings for word in ("--set", setting)]
    code, shown = on_a_terminal([*arguments, "-o", tmp_path / "a.model"])
    assert code == 0
    assert re.search(f"fitting to all rows: {task}", shown)
    assert re.search("left .*[0-9]:[0-9][0-9]:[0-9][0-9]", shown)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*arguments, "-o", tmp_path / "b.model", "--quiet"]) == 0
    a, b = open_model(tmp_path / "a.model"), open_model(tmp_path / "b.model")
    assert not [name for name in vars(a.estimator) if "callback" in name]
    X, _ = a.sample_rows()
    assert_array_equal(a.pipeline.decision_function(a.rows(X)), b.pipeline.decision_function(b.rows(X)))


def test_inspect_of_leaves_that_are_numbers(tmp_path, capsys):
    """Of which there are more than tiles with weights."""
    rng = np.random.RandomState(0)
    rows = [f"{a:.3f},{b:.3f},{int(a * b > 0)}" for a, b in rng.uniform(-1, 1, (400, 2))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]))
    options = ["--model", "tree", "--set", "tiles=constant", "--set", "n_trees=4", "--set", "max_leaves=8"]
    assert main(["train", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "m", *options]) == 0
    capsys.readouterr()
    assert main(["inspect", tmp_path / "m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
