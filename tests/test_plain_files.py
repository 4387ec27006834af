"""Models of our own types are read and written without skops, in the form that skops gives them."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import svmosaic
from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LinearSVR, MixtureSVC, TreeSVC
from svmosaic.export import files
from svmosaic.export.files import ModelFileError, save
from svmosaic.export.plain_files import NotPlain, build, describe, is_plain
from svmosaic.search.leaderboard import Leaderboard

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = np.array(["no", "yes", "?"], dtype=object)[(X[:, 0] > 0) + (X[:, 1] > 1).astype(int)]
PLAIN = [
    LinearSVC(calibration="temperature", random_state=0),
    KMeansSVC(3, random_state=0),
    MixtureSVC(2, max_iter=2, random_state=0),
    TreeSVC(2, max_leaves=3, random_state=0),
    make_pipeline(StandardScaler(), LinearSVC(pieces=4, random_state=0)),
    LinearSVR(random_state=0),
]


def fitted(estimator):
    return estimator.fit(X, X[:, 0] if isinstance(estimator, LinearSVR) else y)


def by_skops(model):
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(entries.pop("schema.json"))
    del schema["_skops_version"]
    return schema, entries


@pytest.mark.parametrize("estimator", PLAIN, ids=lambda estimator: type(estimator).__name__)
def test_descriptions_are_those_of_skops(estimator):
    model = fitted(estimator)
    schema, entries = describe(model)
    ours, theirs = files._reproducible(schema, entries), files._reproducible(*by_skops(model))
    assert json.loads(ours.pop("schema.json")) == json.loads(theirs.pop("schema.json"))
    assert ours == theirs


@pytest.mark.parametrize("estimator", PLAIN, ids=lambda estimator: type(estimator).__name__)
def test_what_skops_wrote_is_built(estimator):
    model = fitted(estimator)
    schema, entries = by_skops(model)
    assert is_plain(schema)
    assert_array_equal(build(schema, entries.__getitem__).predict(X), model.predict(X))


def test_objects_that_are_shared_stay_shared_and_lists_in_arrays_stay_lists():
    shared, lists = np.arange(3.0), np.empty(1, dtype=object)
    lists[0] = [1, None, 2.5]
    words = np.array([["a", "b"], ["c", None]], dtype=object)
    model = LinearSVC(random_state=0)
    model.parts = [shared, (shared, lists), {"one": True, "words": words}, np.float32(2.5), np.int64(3), "\u00e9"]
    schema, entries = describe(model)
    again = build(json.loads(json.dumps(schema)), entries.__getitem__).parts
    assert again[0] is again[1][0]
    assert again[1][1][0] == [1, None, 2.5]
    assert again[2]["one"] is True
    assert again[2]["words"].tolist() == words.tolist()
    assert [type(part) for part in again[3:]] == [np.float32, np.int64, str]


def test_lists_of_our_own_keep_what_they_hold():
    model = LinearSVC(random_state=0)
    model.lines = Leaderboard([{"model": "LinearSVC", "score": 0.5}, {"model": "TreeSVC", "score": 0.75}])
    for schema, entries in (describe(model), by_skops(model)):
        assert is_plain(schema)
        again = build(json.loads(json.dumps(schema)), entries.__getitem__).lines
        assert type(again) is Leaderboard
        assert again == model.lines
    schema["content"]["content"]["lines"]["__class__"] = "LinearSVC"
    schema["content"]["content"]["lines"]["__module__"] = "svmosaic.estimators.linear"
    with pytest.raises(ValueError, match="LinearSVC is no list"):
        build(schema, entries.__getitem__)


class Named(tuple):
    """Would come back as a tuple."""


@pytest.mark.parametrize(
    "part",
    [KMeans(3), np.random.RandomState(0), {1: "a"}, Named((1, 2)), len, LinearSVC, np.array("a", dtype=object)],
    ids=lambda part: type(part).__name__,
)
def test_everything_else_is_left_to_skops(part):
    model = LinearSVC(random_state=0)
    model.part = part
    with pytest.raises(NotPlain):
        describe(model)


def test_models_with_parts_of_others_are_read_and_written_as_before(tmp_path):
    model = make_pipeline(MinMaxScaler(), ClusteredSVC(3, clusterer=KMeans(3, random_state=0), random_state=0))
    save(model.fit(X, y), tmp_path / "model")
    assert_array_equal(svmosaic.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "ObjectNode"),
        ("sklearn.svm._classes", "SVC", "ObjectNode"),
        ("svmosaic.export.files", "save", "ObjectNode"),
        ("builtins", "eval", "TypeNode"),
        ("builtins", "eval", "ListNode"),
        ("builtins", "eval", "DictNode"),
        ("collections", "OrderedDict", "DictNode"),
        ("numpy", "fromfile", "NdArrayNode"),
        ("os", "system", "FunctionNode"),
        ("builtins", "list", "MethodNode"),
    ],
)
def test_only_nodes_of_a_fixed_list_are_plain(module, name, loader):
    schema, _ = describe(fitted(LinearSVC(random_state=0)))
    part = {"__module__": module, "__class__": name, "__loader__": loader, "type": "numpy", "file": "0.npy"}
    part["content"] = {} if loader == "DictNode" else schema["content"] if loader == "ObjectNode" else []
    assert is_plain(schema)
    schema["content"]["content"]["part"] = {**part, "key_types": schema["content"]["key_types"], "__id__": -1}
    assert not is_plain(schema)


def test_a_description_that_makes_no_sense_is_refused(tmp_path):
    save(fitted(LinearSVC(random_state=0)), tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for old, new in [(b'"__id__":1}', b'"__id__":[]}'), (b'"0.npy"', b'"9999.npy"')]:
        assert old in entries["schema.json"]
        with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
            for name, content in entries.items():
                archive.writestr(name, content.replace(old, new) if name == "schema.json" else content)
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
