"""The README's figures are those of the stored results, and its Python runs."""

import json
import re

import needs
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pages import ROOT, script

from papers.data import data_folder


def test_tables_are_those_of_the_stored_results():
    readme = script("readme")
    assert readme.current() == readme.tables()
    assert readme.current(readme.CAPTION) == readme.caption()


MACHINE = {"processor": "P", "cores": 2, "date": "D"}


def run(name, model, score, n_rows=5, **more):
    """A stored run."""
    cost = {"fit_seconds": 1.0, "predict_microseconds": 2.0, "n_bytes": 4000}
    ours = {"budget": 30.0, "chosen": "60% TreeSVC, 40% LinearSVC"} if model == "MosaicClassifier" else {}
    found = {"set": name, "model": model, "split": 0, "score": score, "train_rows": n_rows, "threads": 1}
    return found | {"metric": "accuracy"} | cost | ours | more


def test_the_tables_are_filled_from_whatever_is_stored(monkeypatch):
    readme = script("readme")
    records = [
        run("adult", "MosaicClassifier", 88.0, budget=300.0),
        run("adult", "MosaicClassifier", 87.0, budget=60.0),
        run("adult", "CatBoost", 87.5),
        run("adult", "RandomForest", 99.0),  # shown on docs/choosing.md
        run("wine", "LightGBM", 80.0),
    ]
    monkeypatch.setattr(readme, "stored", lambda name: {"adult": {"machine": MACHINE, "records": records}})
    head, _, *rows, wins, note = [line for line in readme.tables().splitlines() if line]
    assert head == "| data set | rows | MosaicClassifier | CatBoost |"
    assert rows == ["| adult | 5 | 87.00 | **87.50** |"]
    assert wins.endswith("on 0 of 1. A random forest, which was run on 1 of them, beats all of these on 1.")
    assert "searches for 60 seconds," in note


def test_the_sets_that_are_shown_do_not_depend_on_their_scores(monkeypatch):
    readme = script("readme")
    sizes = dict(zip("abcdefgh", (80, 10, 70, 20, 60, 30, 50, 40), strict=True))
    runs = {name: {readme.OURS: {"train_rows": size}} for name, size in sizes.items()}
    assert [sizes[name] for name in readme.sample(runs)] == [10, 40, 70, 80]
    assert readme.sample(dict(list(runs.items())[:1])) == ["a"]


def test_ranks_and_medians_are_of_the_sets_that_all_systems_have(monkeypatch):
    readme = script("readme")
    records = [
        run("heart", "MosaicClassifier", 90.0, n_bytes=1000),
        run("heart", "LightGBM", 90.004),  # shown as equal
        run("skin", "MosaicClassifier", 91.0, n_bytes=3000),
        run("skin", "LightGBM", 80.0),
        run("mnist", "MosaicClassifier", 95.0, n_bytes=9000),
    ]
    monkeypatch.setattr(readme, "stored", lambda name: {"papers": {"machine": MACHINE, "records": records}})
    text = readme.tables()
    assert "| mean rank, 2 data sets of the papers | **1.25** | 1.75 |" in text
    assert "| size in kB | 2 | 4 |" in text
    assert "medians over the 2 data sets" in text
    assert "first place, on 2 of 2 data sets that all of these systems were run on, and on 1 of the other 1, on" in text


def test_the_picture_is_of_the_stored_results():
    """Every name that is drawn is a text of the picture."""
    readme = script("readme")
    text = readme.PICTURE.read_text()
    assert "docs/images/tradeoff.svg" in (ROOT / "README.md").read_text()
    for title, records in readme.panels().items():
        assert f">{title}<" in text
        assert {record["model"] for record in records} <= set(re.findall(r">([^<>]+)</text>", text))


def code():
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return block


def test_its_python_takes_any_table_with_these_names(tmp_path, monkeypatch):
    """Where there is no adult: a small table with text and missing values under its name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, work = rng.integers(18, 80, 400), rng.choice(["Private", "State", None], 400)
    table = pd.DataFrame({"age": age, "workclass": work, "income": np.where(age > 45, ">50K", "<=50K")})
    for name, rows in (("train", table[:300]), ("test", table[300:])):
        rows.to_csv(f"adult_{name}.csv", index=False)
    names = {}
    exec(compile(code().replace("time_budget=60", "time_budget=1"), "README.md", "exec"), names)
    assert names["answer_one_dict"]({"age": 70, "workclass": "Private"}) == ">50K"
    assert onnxruntime.InferenceSession("adult.onnx").get_inputs()


@needs.data
def test_the_table_becomes_a_model_and_its_onnx_file(capsys, tmp_path, monkeypatch):
    """As it stands but for the time, which is short of what the search would use."""
    for part in ("train", "test"):
        path = data_folder() / "tables" / f"adult_{part}.csv"
        if not path.exists():
            pytest.skip(f"there is no tables/{path.name}")
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    block = code()
    names = {}
    exec(compile(block.replace("time_budget=60", "time_budget=3"), "README.md", "exec"), names)
    model, new = names["model"], names["new"]
    printed, explained = capsys.readouterr().out, set(model.explain(new[:1]).to_frame(top=3)["feature"])
    columns = explained - {"(others)", "(intercept)"}
    assert len(columns) == 3  # which ones depends on the model that was found in time
    assert columns <= set(new.columns)
    assert all(column in printed for column in columns)
    assert model.predict_proba(new[:5]).sum(axis=1) == pytest.approx(1.0)
    row = new.drop(columns="income").iloc[0].to_dict()
    assert names["answer_one_dict"](row) == model.predict(new[:1])[0]
    session = onnxruntime.InferenceSession(tmp_path / "adult.onnx")
    columns = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    feed = {
        name: new[[column]].to_numpy(np.float32)
        if pd.api.types.is_numeric_dtype(new[column])
        else new[[column]].fillna("").to_numpy(dtype=object)
        for name, column in columns.items()
    }
    probability = session.run(["probabilities"], feed)[0]
    assert_allclose(probability, model.predict_proba(new), atol=1e-3)
