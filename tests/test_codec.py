"""The description of models in files: what it holds, what it refuses, and how little it imports."""

import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import svmosaic
from svmosaic import ClusteredSVC, LinearSVC
from svmosaic.export.codec import build, describe, untrusted
from svmosaic.export.files import ModelFileError, save
from svmosaic.search.leaderboard import Leaderboard

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = np.array(["no", "yes", "?"], dtype=object)[(X[:, 0] > 0) + (X[:, 1] > 1).astype(int)]


def round_trip(value):
    schema, entries = describe(value)
    assert untrusted(schema, entries) == []
    return build(json.loads(json.dumps(schema)), entries)


def test_every_kind_of_part_comes_back():
    shared, lists = np.arange(3.0), np.empty(1, dtype=object)
    lists[0] = [1, None, 2.5]
    words = np.array([["a", "b"], ["c", None]], dtype=object)
    model = LinearSVC(random_state=0)
    model.parts = [shared, (shared, lists), {"one": True, 2: words}, np.float32(2.5), np.int64(3), "\u00e9", np.nan]
    model.lines = Leaderboard([{"model": "LinearSVC", "score": 0.5}, {"model": "TreeSVC", "score": 0.75}])
    model.again = model.lines
    found = round_trip(model)
    parts = found.parts
    assert parts[0] is parts[1][0]
    assert parts[1][1][0] == [1, None, 2.5]
    assert parts[2]["one"] is True
    assert parts[2][2].tolist() == words.tolist()
    assert [type(part) for part in parts[3:]] == [np.float32, np.int64, str, float]
    assert type(found.lines) is Leaderboard
    assert found.lines == model.lines
    assert found.again is found.lines


class Named(tuple):
    """Would come back as a tuple."""


@pytest.mark.parametrize(
    "part", [KMeans(3), np.random.RandomState(0), np.dtype(float)], ids=lambda part: type(part).__name__
)
def test_what_is_of_others_is_left_to_skops(part):
    model = LinearSVC(random_state=0)
    model.part = [part]
    schema, _ = describe(model)
    assert '"skops":' in json.dumps(schema).replace(" ", "")
    assert type(round_trip(model).part[0]) is type(part)


def test_models_with_parts_of_others_come_back(tmp_path):
    model = make_pipeline(MinMaxScaler(), ClusteredSVC(3, clusterer=KMeans(3, random_state=0), random_state=0))
    save(model.fit(X, y), tmp_path / "model")
    assert_array_equal(svmosaic.load(tmp_path / "model").predict(X), model.predict(X))
    save(model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    "path", ["os.system", "sklearn.svm._classes.SVC", "svmosaic.export.files.save", "builtins.eval"]
)
@pytest.mark.parametrize("place", ["state", "items", "beside"])
def test_only_types_of_a_fixed_list_are_built(path, place):
    inner = {"type": path, "state": None}
    node = {"type": "svmosaic.estimators.linear.LinearSVC", "state": {"dict": [["part", inner]]}}
    if place == "items":
        node = {"type": "svmosaic.search.leaderboard.Leaderboard", "items": [inner]}
    if place == "beside":
        node = {**node, "state": None, "items": [inner]}
    assert untrusted(node, {}) == [path]


def test_a_type_that_is_no_list_has_no_items():
    with pytest.raises(ValueError, match="LinearSVC is no list"):
        build({"type": "svmosaic.estimators.linear.LinearSVC", "items": []}, {})


def test_a_description_that_makes_no_sense_is_refused(tmp_path):
    save(make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y), tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    number = re.search(rb'{"array":\d+}', entries["schema.json"])[0]
    for new in (b'{"array":[]}', b'{"array":9999}', b'{"same":9999}'):
        with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
            for name, content in entries.items():
                archive.writestr(name, content.replace(number, new) if name == "schema.json" else content)
        with pytest.raises(ModelFileError, match="damaged"):
            svmosaic.load(tmp_path / "bad")


def test_commands_do_not_import_all_of_scikit_learn(tmp_path):
    """skops does, to list what it trusts: more than a second of processor time for a command that takes a tenth."""
    table = tmp_path / "table.csv"
    table.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 3},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(60)))
    names = [str(tmp_path / name) for name in ("table.csv", "model", "out.csv")]
    code = """
import sys
from svmosaic.cli import main
table, model, out = sys.argv[1:]
for command in (
    ["train", table, "--label", "y", "--model", "linear", "-o", model],
    ["predict", model, table, "-o", out],
    ["score", model, table],
):
    assert main([*command, "--quiet"]) == 0
heavy = "skops", "dask", "pytest", "sklearn.ensemble", "sklearn.tree", "sklearn.gaussian_process", "sklearn.datasets"
print(sorted(name for name in heavy if name in sys.modules))
"""
    out = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
