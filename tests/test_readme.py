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

from svmosaic.datasets import data_folder


def test_tables_are_those_of_the_stored_results():
    readme = script("readme")
    assert readme.current() == readme.tables()


def blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_python_runs(capsys):
    code, _ = blocks()
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0.95


@needs.data
def test_the_table_becomes_a_model_and_its_onnx_file(capsys, tmp_path, monkeypatch):
    """As it stands but for the time, which is short of what the search would use."""
    for part in ("train", "test"):
        path = data_folder() / "tables" / f"adult_{part}.csv"
        if not path.exists():
            pytest.skip(f"there is no tables/{path.name}")
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    _, code = blocks()
    assert len([line for line in code.splitlines() if line]) <= 10
    names = {}
    exec(compile(code.replace("time_budget=60", "time_budget=6"), "README.md", "exec"), names)
    model, new = names["model"], names["new"]
    assert "marital_status" in capsys.readouterr().out
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
