"""`svmosaic train` from tables larger than its memory: the same preparation and the same model as in memory."""

import json
from argparse import ArgumentTypeError

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from svmosaic.cli import main
from svmosaic.cli._io import memory_size
from svmosaic.table.preparation import build_preparation, kinds_of, to_input
from svmosaic.table.survey import survey
from svmosaic.table.trained_model import open_model

TINY = ["--memory", "100kB"]


def table(n=1200, seed=0):
    """Numbers and text, some missing, also among the labels; one column with ties, one that is empty."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    town = rng.choice(["Köln", "the hill", "Bonn"], n)
    kind = np.where(a * b + 0.2 * (town == "Bonn") > 0, "yes", "no").astype(object)
    frame = pd.DataFrame({"a": 10 * a + 3, "b": b, "c": rng.integers(0, 4, n), "none": np.nan, "town": town})
    frame.loc[::17, "b"] = np.nan
    frame.loc[::13, "town"] = None
    kind[::29] = None
    return frame.assign(kind=kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    frame = table()
    (folder / "parts" / "more").mkdir(parents=True)
    frame.iloc[:500].to_parquet(folder / "parts" / "0.parquet", index=False, row_group_size=90)
    frame.iloc[500:510].to_parquet(folder / "parts" / "1.parquet", index=False)
    frame.iloc[510:].to_parquet(folder / "parts" / "more" / "2.parquet", index=False)
    frame.to_parquet(folder / "one.parquet", index=False)
    frame.to_csv(folder / "one.csv", index=False)
    return folder


def trained(capsys, *arguments):
    assert main(["train", *arguments, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("source", ["parts", "one.parquet", "one.csv"])
def test_a_model_from_chunks_is_that_from_memory(folder, tmp_path, capsys, source):
    common = ["--label", "kind", "--model", "linear", "--test-size", "0", "--set", "tol=1e-6"]
    common += ["--set", "loss=squared_hinge"]
    facts = trained(capsys, folder / source, *common, "-o", tmp_path / "a.model", *TINY)
    whole = trained(capsys, folder / source, *common, "-o", tmp_path / "b.model")
    assert facts["chunks"] > 3
    assert "chunks" not in whole
    for key in ("rows", "classes", "rows_without_label", "features", "label", "held_out"):
        assert facts[key] == whole[key]
    a, b = open_model(tmp_path / "a.model"), open_model(tmp_path / "b.model")
    assert list(a.kinds) == list(b.kinds)
    assert a.prepared_names == b.prepared_names
    frame = table(300, seed=1)
    assert_allclose(_dense(a.prepared(frame)), _dense(b.prepared(frame)), atol=1e-12)
    # Rows are kept as float32 meanwhile, and both are within their certificates of the optimum.
    assert_allclose(a.estimator.objective_, b.estimator.objective_, rtol=1e-5)
    assert_allclose(a.pipeline.decision_function(a.rows(frame)), b.pipeline.decision_function(b.rows(frame)), atol=1e-3)


def _dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else rows


def test_it_is_judged_beside_a_linear_svm_on_rows_held_out(folder, tmp_path, capsys):
    facts = trained(
        capsys, folder / "parts", "--label", "kind", "--model", "clustered", "-o", tmp_path / "m.model", *TINY
    )
    scores = facts["held_out"]
    assert 0.1 * facts["rows"] < scores["rows"] < 0.3 * facts["rows"]
    assert scores["accuracy"] > scores["linear_svm"] + 0.1
    model = open_model(tmp_path / "m.model")
    # It is calibrated, explained and shown like any other.
    assert_allclose(model.predict_proba(table(20, seed=2)).sum(axis=1), 1.0)
    assert sum(model.regions().columns["rows"]) >= facts["rows"]
    X, y = model.sample_rows()
    assert len(y) == facts["rows"]
    assert list(X.columns) == list(model.feature_names)
    assert not list(tmp_path.glob(".svmosaic*"))


def test_predictions_stream_from_a_parquet_folder(folder, tmp_path, capsys):
    output = ["-o", tmp_path / "m.model"]
    trained(capsys, folder / "parts", "--label", "kind", "--model", "kmeans", "--test-size", "0", *output, *TINY)
    assert main(["predict", tmp_path / "m.model", folder / "parts", "--chunk", "70", "-o", tmp_path / "out.csv"]) == 0
    model = open_model(tmp_path / "m.model")
    assert list(pd.read_csv(tmp_path / "out.csv")["prediction"]) == list(model.predict(table()))
    assert main(["score", tmp_path / "m.model", folder / "parts"]) == 0


@pytest.mark.usefixtures("counted_time")
def test_auto_chooses_on_a_sample_and_fits_to_all(folder, tmp_path, capsys):
    facts = trained(
        capsys, folder / "parts", "--label", "kind", "-o", tmp_path / "m.model", "--budget", "8s", *TINY,
        "--set", "max_tiles=16",
    )  # fmt: skip
    assert facts["model"] in ("LinearSVC", "ClusteredSVC", "LocallyLinearSVC")
    assert facts["rows"] == facts["sampled_rows"] == 1158
    assert facts["held_out"]["accuracy"] > facts["held_out"]["linear_svm"] + 0.1
    model = open_model(tmp_path / "m.model")
    frame = table(1000, seed=3).dropna(subset="kind")
    assert np.mean(model.predict(frame) == frame["kind"]) > 0.8


@pytest.mark.parametrize("as_column", [False, True])
def test_arrays_are_memory_mapped(tmp_path, capsys, as_column):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    np.save(tmp_path / "X.npy", np.column_stack([X, y]) if as_column else X)
    np.save(tmp_path / "y.npy", y)
    label = "-1" if as_column else str(tmp_path / "y.npy")
    common = [tmp_path / "X.npy", "--label", label, "--model", "clustered"]
    facts = trained(capsys, *common, "-o", tmp_path / "m.model", *TINY)
    assert facts["chunks"] > 3
    assert facts["classes"] == ["0", "1"]
    assert facts["held_out"]["accuracy"] > 0.8
    whole = trained(capsys, *common, "-o", tmp_path / "w.model")
    assert "chunks" not in whole
    assert whole["rows"] == facts["rows"] == 1000
    asked = [] if as_column else ["--label", label]
    assert main(["score", tmp_path / "m.model", tmp_path / "X.npy", "--json", *asked]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.8
    assert main(["predict", tmp_path / "m.model", tmp_path / "X.npy", "-o", tmp_path / "p.csv", "--chunk", "333"]) == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "kin"], "has no column 'kin'; the nearest are 'kind'"),
        ([], "name the column to predict with --label"),
        (["--label", "kind", "--model", "mixture"], "--model mixture is only fitted in memory"),
        (["--label", "kind", "--drop", "nothing"], "no column 'nothing' to drop"),
        (["--label", "kind", "--scratch", "nowhere"], "--scratch: there is no folder nowhere"),
        (["--label", "a", "--task", "classification"], "numbers with fractions"),
        (["--label", "none"], "is empty"),
    ],
)
def test_what_is_wrong_is_told_and_leaves_no_file(folder, tmp_path, capsys, arguments, message):
    assert main(["train", folder / "parts", "-o", tmp_path / "m.model", *TINY, *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_among_many_is_named(tmp_path, capsys):
    table().to_parquet(tmp_path / "0.parquet")
    (tmp_path / "1.parquet").write_bytes(b"PAR1 nothing PAR1")
    assert main(["train", tmp_path, "--label", "kind", "-o", tmp_path / "m.model", *TINY]) == 1
    assert "could not be read as parquet" in capsys.readouterr().err
    assert not (tmp_path / "m.model").exists()


def test_arrays_that_are_none(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.zeros(5))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY nothing")
    np.save(tmp_path / "y.npy", np.zeros(3))
    np.save(tmp_path / "rows.npy", np.zeros((5, 2)))
    for name, label, message in (
        ("X.npy", "0", "must hold numbers in two dimensions"),
        ("bad.npy", "0", "could not be read as NPY"),
        ("rows.npy", tmp_path / "y.npy", "has 5 rows, but the labels"),
        ("rows.npy", tmp_path / "none.npy", "there is no file"),
    ):
        assert main(["train", tmp_path / name, "--label", label, "-o", tmp_path / "m.model"]) == 1
        assert message in capsys.readouterr().err


def test_the_preparation_of_chunks_is_that_of_all_rows():
    """With a sample much smaller than the table: medians and categories exactly, the rest up to rounding."""
    frame = table(5000, seed=4).drop(columns="kind")
    frame["id"] = [f"row {i // 2}" for i in range(len(frame))]
    frame["day"] = [f"2020-0{1 + i % 9}-1{i % 7}" if i % 5 else None for i in range(len(frame))]
    frame["same"] = 3.5
    frame["name"] = [f"name {i}" for i in range(len(frame))]
    frame.loc[frame.index[:4000], "b"] = np.nan
    kinds, names = kinds_of(frame), list(frame.columns)
    X = to_input(frame, names, kinds)

    def chunks():
        return ((X.iloc[k : k + 700], np.zeros(len(X.iloc[k : k + 700]))) for k in range(0, len(X), 700))

    for memory in (1, 10**9):  # a column at a time, or all
        found = survey(
            chunks,
            names,
            kinds,
            scale=True,
            max_categories=8,
            sample_rows=300,
            seed=0,
            memory=memory,
            categorical=["c"],
        )
        with pytest.warns(UserWarning, match="column 'name' is left out"):
            whole = build_preparation(X, max_categories=8, categorical=["c"]).fit(X)
        assert found.n_rows == 5000
        assert len(found.labels) == 300
        assert found.preparation.dropped_ == whole.dropped_
        assert whole.dropped_ == {"none": "constant", "same": "constant", "name": "identifier"}
        for one, other in zip(found.preparation.columns_, whole.columns_, strict=True):
            assert (one.name, one.kind, one.features) == (other.name, other.kind, other.features)
            assert_array_equal(one.fill, other.fill)
        assert {"c_0", "c_3"} <= set(whole.get_feature_names_out())
        assert_allclose(found.preparation.center_, whole.center_, rtol=1e-12, atol=1e-12)
        assert_allclose(found.preparation.factor_, whole.factor_, rtol=1e-12)
        assert_allclose(found.preparation.transform(X), whole.transform(X), atol=1e-10)
        assert found.n_texts == {
            "town": X["town"].replace("", "(missing)").nunique(),
            "id": 2500,
            "day": 64,
            "name": 5000,
        }


def test_sizes():
    for text in ("500MB", "0.5GB", "500000k", "500000000", "500mb"):
        assert memory_size(text) == 500_000_000
    for text in ("", "much", "-1GB", "0", "nanGB"):
        with pytest.raises(ArgumentTypeError, match="is not a size: write 500MB or 2GB"):
            memory_size(text)
