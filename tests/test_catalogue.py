"""`svmosaic datasets` lists what there is."""

import json

import numpy as np
import pytest
from web import serve

from svmosaic import cli
from svmosaic.datasets import load, registry
from svmosaic.datasets.loader import fingerprint
from svmosaic.datasets.registry import SETS, TASKS, Entry
from svmosaic.datasets.sources import Libsvm


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMOSAIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SVMOSAIC_DATA", raising=False)
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    np.savez(path / "heart.npz", X=np.zeros((4, 13)), y=np.array([1, 2, 1, 2]))
    np.savez(path / "mine.npz", X_train=np.zeros((4, 3)), y_train=np.arange(4), X_test=np.zeros((2, 3)), y_test=[0, 1])
    (path / "broken.npz").write_bytes(b"PK")
    return path


def records(capsys, *arguments):
    assert cli.main(["datasets", "--json", *arguments]) == 0
    return {record["name"]: record for record in json.loads(capsys.readouterr().out)}


def test_every_set_and_task_is_listed_with_its_place(capsys, cache, folder):
    np.savez(cache / "usps.npz", X=np.zeros((4, 256)), y=np.arange(4))
    listed = records(capsys, "--data", str(folder))
    assert set(listed) == {*SETS, *TASKS, "mine", "broken"}
    places = {name: record["place"] for name, record in listed.items()}
    assert places["heart"] == places["mine"] == "folder"
    assert places["usps"] == places["usps-odd-even"] == "cache"
    assert places["mnist"] == "network"
    assert places["two_spirals"] == "generated"
    assert (listed["mine"]["rows"], listed["mine"]["test_rows"], listed["mine"]["classes"]) == (4, 2, 4)
    assert listed["broken"]["title"].startswith("unreadable")


def test_rows_of_tasks_come_from_the_counts(capsys):
    listed = records(capsys)
    assert (listed["mnist-3v8"]["rows"], listed["mnist-3v8"]["test_rows"]) == (6131 + 5851, 1010 + 974)
    assert listed["mnist-odd-even"]["rows"] == 60_000
    assert listed["indian_pines-labelled"]["rows"] == 10_249
    assert listed["indian_pines-labelled"]["classes"] == 16
    assert listed["covtype-2"]["classes"] == listed["letter-vowels"]["classes"] == 2
    digits = load("digits-3v8", test_size=0)
    assert listed["digits-3v8"]["rows"] == len(digits.y_train)


def test_the_table_says_how_a_set_would_come(capsys, folder):
    assert cli.main(["datasets", "--data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"folder: {folder}" in out
    for name in (*SETS, *TASKS, "mine"):
        assert f"\n{name} " in out
    assert "downloads from https://www.openml.org/d/554" in out
    assert "unreadable" in out


def test_verify_compares_the_values(capsys, folder, monkeypatch):
    with np.load(folder / "heart.npz") as archive:
        right = fingerprint({key: archive[key] for key in archive.files})
    source = SETS["heart"].source
    monkeypatch.setitem(registry.SETS, "heart", Entry("", source, 13, {1: 2, 2: 2}, fingerprint=right))
    assert records(capsys, "--data", str(folder), "--verify")["heart"]["same"] is True
    monkeypatch.setitem(registry.SETS, "heart", Entry("", source, 13, {1: 2, 2: 2}, fingerprint="0"))
    assert records(capsys, "--data", str(folder), "--verify")["heart"]["same"] is False
    cli.main(["datasets", "--data", str(folder), "--verify"])
    assert "other values or order" in capsys.readouterr().out
    assert records(capsys, "--verify")["mnist"]["same"] is None


def test_sets_are_brought_into_the_cache(capsys, cache, monkeypatch):
    with serve() as site:
        site.files = {"/a": b"1 1:1\n2 2:1\n"}
        source = Libsvm((f"{site.url}/a",), 13)
        monkeypatch.setitem(registry.SETS, "heart", Entry("", source, 13, {1: 1, 2: 1}))
        assert records(capsys)["heart"]["place"] == "network"
        assert records(capsys, "--get", "heart")["heart"]["place"] == "cache"
    assert (cache / "heart.npz").exists()
    monkeypatch.setenv("SVMOSAIC_OFFLINE", "1")
    assert cli.main(["datasets", "--get", "usps"]) == 1
    assert "'usps' not found" in capsys.readouterr().err


def test_a_folder_that_is_not_there(capsys):
    assert cli.main(["datasets", "--data", "/no/such/folder"]) == 2
    assert "'/no/such/folder' does not exist" in capsys.readouterr().err


def test_fingerprints_look_at_values_not_at_storage():
    arrays = {"X": np.arange(6, dtype=np.uint8).reshape(3, 2), "y": np.arange(3, dtype=np.int8)}
    stored = {"X": np.asfortranarray(arrays["X"].astype(np.float32)), "y": arrays["y"].astype(np.int64)}
    assert fingerprint(arrays) == fingerprint(stored)
    stored["X"][0, 0] += 1
    assert fingerprint(arrays) != fingerprint(stored)
