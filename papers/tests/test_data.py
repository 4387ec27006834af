"""Data sets: where they are looked for, what is downloaded, and the list of them."""

import bz2
import hashlib
import io
import json
import re
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import needs
import numpy as np
import pytest
import sklearn.datasets
from numpy.testing import assert_array_equal
from pages import DOCS
from scipy.io import savemat

from papers import data as sets
from papers import registry
from papers.__main__ import main
from papers.data import DatasetNotFoundError, cache_folder, data_folder, load
from papers.registry import SETS, TASKS, Entry


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMOSAIC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("SVMOSAIC_DATA", str(path))
    return path


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.delenv("SVMOSAIC_DATA", raising=False)


@pytest.fixture
def site(tmp_path):
    """A web server of the files in a folder: `files` names it, `requests` lists what was asked for."""
    files, requests = tmp_path / "site", []
    files.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format, *arguments):
            requests.append(arguments)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=files))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield SimpleNamespace(files=files, requests=requests, url=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    thread.join()


def register(monkeypatch, source, *counts, n_features=3, name="small"):
    monkeypatch.setitem(registry.SETS, name, Entry("", source, n_features, *counts))


# Places


def test_a_set_that_is_nowhere_names_the_places(folder, cache, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"'mnist': the folder '/no/such/folder' does not exist"):
        load("mnist", data="/no/such/folder")
    with pytest.raises(DatasetNotFoundError, match=rf"no iris.npz in {folder}, and none in the cache {cache};"):
        load("iris")
    with pytest.raises(DatasetNotFoundError, match=r"did you mean mnist-odd-even"):
        load("mnist-oddeven")
    with pytest.raises(DatasetNotFoundError, match=r"'mnist-3v8' not found.*switched off.*X_train, y_train"):
        load("mnist-3v8", download=False)
    monkeypatch.setenv("SVMOSAIC_OFFLINE", "1")
    monkeypatch.setenv("SVMOSAIC_DATA", "/no/such/folder")
    assert data_folder() is None
    with pytest.raises(DatasetNotFoundError, match=r"SVMOSAIC_DATA does not name a folder.*switched off"):
        load("usps")


def test_the_folder_given_comes_first_then_that_of_the_environment_then_the_cache(folder, cache, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    for k, place in enumerate([tmp_path / "mine", folder, cache]):
        np.savez(place / "heart.npz", X=np.full((10, 1), k), y=np.arange(10) % 2)
    assert load("heart", data=tmp_path / "mine").X_train[0, 0] == 0
    assert load("heart").X_train[0, 0] == 1
    monkeypatch.delenv("SVMOSAIC_DATA")
    assert load("heart").X_train[0, 0] == 2


@pytest.mark.parametrize(
    ("platform", "variables", "path"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/svmosaic"),
        ("linux", {}, "/home/me/.cache/svmosaic"),
        ("darwin", {}, "/home/me/Library/Caches/svmosaic"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/svmosaic/Cache"),
    ],
)
def test_the_cache_is_where_the_system_has_caches(monkeypatch, platform, variables, path):
    for name in ("SVMOSAIC_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == path


# Files


def test_official_splits_are_kept_and_others_are_cut(folder):
    X = np.arange(200, dtype=np.uint8).reshape(100, 2)
    y = np.arange(100)
    np.savez(folder / "split.npz", X_train=np.asfortranarray(X[:60]), y_train=y[:60], X_test=X[60:], y_test=y[60:])
    np.savez(folder / "whole.npz", X=X, y=y)
    split, whole = load("split"), load("whole", test_size=0.2)
    assert split.X_train.dtype == split.X_test.dtype == np.float32
    assert split.X_train.flags.c_contiguous, "estimators would copy it at each fit"
    assert_array_equal(split.X_train, X[:60])
    assert_array_equal(split.y_test, y[60:])
    assert (len(whole.y_train), len(whole.y_test)) == (80, 20)
    assert_array_equal(np.sort(np.r_[whole.y_train, whole.y_test]), y)
    assert_array_equal(whole.X_test, X[whole.y_test])
    assert_array_equal(load("whole", test_size=0.2).y_test, whole.y_test)
    assert not np.array_equal(load("whole", test_size=0.2, random_state=1).y_test, whole.y_test)
    assert len(load("whole", test_size=0).y_test) == 0


def test_pickles_and_damaged_files_are_refused(folder):
    np.savez(folder / "evil.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle"):
        load("evil")
    (folder / "usps.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(OSError, match=r"usps\.npz is damaged"):
        load("usps")
    np.savez(folder / "heart.npz", X=np.zeros((50, 13)), y=np.arange(50) % 2)
    body = bytearray((folder / "heart.npz").read_bytes())
    body[2000] ^= 1
    (folder / "heart.npz").write_bytes(body)
    with pytest.raises(OSError, match=r"heart\.npz is damaged"):
        load("heart")


def test_tasks_relabel_and_choose_rows(folder):
    digits = np.tile(np.arange(10), 3)
    X = digits[:, None].astype(np.uint8)
    for name in ("mnist", "usps", "pendigits", "letter"):
        np.savez(folder / f"{name}.npz", X_train=X, y_train=digits, X_test=X[:10], y_test=digits[:10])
    odd, versus, below, vowels = map(load, ("mnist-odd-even", "mnist-3v8", "pendigits-lt5", "letter-vowels"))
    assert_array_equal(odd.y_train, odd.X_train[:, 0] % 2)
    assert_array_equal(np.unique(versus.X_train), [3, 8])
    assert_array_equal(versus.y_train, versus.X_train[:, 0] == 8)
    assert len(versus.y_test) == 2
    assert_array_equal(np.unique(load("usps-4v9").X_test), [4, 9])
    assert_array_equal(below.y_test, below.X_test[:, 0] < 5)
    assert_array_equal(np.unique(vowels.X_train[vowels.y_train == 1]), [0, 4, 8])
    np.savez(folder / "covtype.npz", X=X, y=1 + digits % 7)
    second = load("covtype-2")
    assert second.y_train.sum() + second.y_test.sum() == np.sum(digits % 7 == 1)
    np.savez(folder / "salinas_a.npz", X=X, y=digits, shape=[5, 6])
    assert load("salinas_a-labelled").y_train.min() > 0


@pytest.mark.parametrize("name", [name for name, entry in SETS.items() if entry.source.generated])
def test_toys_need_no_file(name, nowhere):
    toy = load(name, test_size=0.25)
    assert toy.X_train.dtype == np.float32
    assert len(toy.y_train) + len(toy.y_test) == sum(SETS[name].counts.values())
    assert toy.X_train.shape[1] == SETS[name].n_features
    assert set(np.unique(toy.y_train)) == set(SETS[name].counts)
    assert_array_equal(load(name, test_size=0.25).X_test, toy.X_test)


# Downloads

LINES = b"1 1:0.5 3:2\n-1 2:-1\n1 1:1\n"


def test_files_are_downloaded_once(site, cache, nowhere, monkeypatch):
    (site.files / "a.bz2").write_bytes(bz2.compress(LINES))
    (site.files / "b").write_bytes(b"-1 3:7\n")
    urls = f"{site.url}/a.bz2", f"{site.url}/b"
    register(monkeypatch, registry.libsvm(urls, 3, urls[1:], labels={1: 5, -1: 6}), {5: 2, 6: 2}, {6: 1})
    small = load("small")
    assert_array_equal(small.X_train, np.array([[0.5, 0, 2], [0, -1, 0], [1, 0, 0], [0, 0, 7]], dtype=np.float32))
    assert_array_equal(small.y_train, [5, 6, 5, 6])
    assert_array_equal(small.X_test, [[0, 0, 7]])
    n_requests = len(site.requests)
    assert_array_equal(load("small").X_train, small.X_train)
    assert len(site.requests) == n_requests, "the second time it comes from the cache"
    assert [path.name for path in cache.rglob("*") if path.is_file()] == ["small.npz"], "originals are not kept twice"


def test_a_known_hash_is_checked(site, nowhere, monkeypatch):
    (site.files / "a").write_bytes(LINES)
    urls = (f"{site.url}/a",)
    register(monkeypatch, registry.libsvm(urls, 3, md5=("md5:" + "0" * 32,)), {1: 2, -1: 1})
    with pytest.raises(ValueError, match="does not match the known hash"):
        load("small")
    right = "md5:" + hashlib.md5(LINES).hexdigest()
    register(monkeypatch, registry.libsvm(urls, 3, md5=(right,)), {1: 2, -1: 1})
    assert len(load("small", test_size=0).y_train) == 3


def test_another_set_under_the_same_address_is_refused(site, cache, nowhere, monkeypatch):
    (site.files / "a").write_bytes(LINES)
    register(monkeypatch, registry.libsvm((f"{site.url}/a",), 3), {1: 1, -1: 2})
    with pytest.raises(ValueError, match=r"'small'.*classes \{-1: 1, 1: 2\}, but .*\{1: 1, -1: 2\}.*not kept"):
        load("small")
    assert not (cache / "small.npz").exists()
    register(monkeypatch, registry.libsvm((f"{site.url}/a",), 3, labels={1: 0}), {0: 2})
    with pytest.raises(ValueError, match="unknown labels: -1"):
        load("small")


@pytest.mark.parametrize(
    ("name", "body"),
    [("a", b"<html>log in to the hotel's network</html>"), ("a.bz2", b"<html></html>"), ("a.bz2", b""), ("a", b"")],
)
def test_a_page_instead_of_the_set_does_not_stay(site, nowhere, monkeypatch, name, body):
    register(monkeypatch, registry.libsvm((f"{site.url}/{name}",), 3), {1: 2, -1: 1})
    (site.files / name).write_bytes(body)
    with pytest.raises((ValueError, DatasetNotFoundError), match="'small'"):
        load("small")
    (site.files / name).write_bytes(bz2.compress(LINES) if name.endswith("bz2") else LINES)
    assert len(load("small", test_size=0).y_train) == 3, "the next time, with the network there, it comes"


def test_without_a_network_the_error_says_what_to_do(cache, folder, monkeypatch):
    register(monkeypatch, registry.libsvm(("http://127.0.0.1:9/a",), 3), {1: 2, -1: 1})
    with pytest.raises(DatasetNotFoundError) as raised:
        load("small")
    for part in ("'small'", str(folder), str(cache), "http://127.0.0.1:9", "small.npz", "--data", "X, y"):
        assert part in str(raised.value)


def test_files_of_all_kinds_are_read(tmp_path, monkeypatch):
    def written(name, body):
        (tmp_path / name).write_bytes(body)
        return tmp_path / name

    def matlab(name, values):
        body = io.BytesIO()
        savemat(body, {"v": values})
        return written(name, body.getvalue())

    scaled = registry.libsvm(("a",), 3, unscale=(1.0, 7.5)).read(None, written("a", b"1 1:-1 2:-0.733333 3:1\n"))
    assert_array_equal(scaled["X"], [[0, 2, 15]])
    letters = registry.text("l", delimiter=",", label_column=0, labels=registry.LETTERS, n_train=2)
    arrays = letters.read(None, written("l", b"A,1,2\nC,3,4\nB,5,6\n"))
    assert_array_equal(arrays["X_train"], [[1, 2], [3, 4]])
    assert_array_equal(np.r_[arrays["y_train"], arrays["y_test"]], [0, 2, 1])
    arrays = registry.text("r", "s").read(None, written("r", b"1 2 7\n3 4 1 \n"), written("s", b"5 6 2\n"))
    assert_array_equal(arrays["y_train"], [7, 1])
    assert_array_equal(arrays["X_test"], [[5, 6]])
    cube, truth = np.arange(24, dtype=np.uint16).reshape(2, 3, 4), np.arange(6, dtype=np.uint8).reshape(2, 3)
    arrays = registry.scene("c", "v", "t", "v").read(None, matlab("cube.mat", cube), matlab("truth.mat", truth))
    assert_array_equal(arrays["shape"], [2, 3])
    assert_array_equal(arrays["X"][4], cube[1, 1])
    assert_array_equal(arrays["y"], np.arange(6))


def test_openml_and_covertype_go_through_scikit_learn(cache, nowhere, monkeypatch):
    def fetch_openml(data_id, data_home, **options):
        assert data_id == 77
        assert data_home.startswith(str(cache))
        return SimpleNamespace(data=np.arange(8.0).reshape(4, 2), target=np.array(["b", "a", "b", "a"], dtype=object))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    source = registry.openml(77, {"a": 0, "b": 1}, n_train=3)
    register(monkeypatch, source, {0: 1, 1: 2}, {0: 1}, n_features=2)
    small = load("small")
    assert_array_equal(small.y_train, [1, 0, 1])
    assert_array_equal(small.X_test, [[6, 7]])
    few = np.ones((4, 54)), np.array([1, 2, 2, 7])
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda data_home, return_X_y: few)
    with pytest.raises(ValueError, match="but the data set of the papers has"):
        load("covtype")
    assert_array_equal(SETS["covtype"].source.read(cache)["y"], few[1])


# The list


def records(capsys, *arguments):
    assert main(["data", "--json", *arguments]) == 0
    return {record["name"]: record for record in json.loads(capsys.readouterr().out)}


def test_every_set_and_task_is_listed_with_its_place(capsys, cache, folder, monkeypatch):
    np.savez(folder / "heart.npz", X=np.zeros((4, 13)), y=[1, 2, 1, 2])
    np.savez(
        folder / "mine.npz", X_train=np.zeros((4, 3)), y_train=np.arange(4), X_test=np.zeros((2, 3)), y_test=[0, 1]
    )
    np.savez(cache / "usps.npz", X=np.zeros((4, 256)), y=np.arange(4))
    (folder / "broken.npz").write_bytes(b"PK")
    listed = records(capsys)
    assert set(listed) == {*SETS, *TASKS, "mine", "broken"}
    places = {name: record["place"] for name, record in listed.items()}
    assert places["heart"] == places["mine"] == "folder"
    assert places["usps"] == places["usps-odd-even"] == "cache"
    assert (places["mnist"], places["two_spirals"]) == ("network", "generated")
    numbers = {name: [record[k] for k in ("rows", "test_rows", "classes")] for name, record in listed.items()}
    assert numbers["mine"] == [4, 2, 4]
    assert numbers["mnist-3v8"] == [6131 + 5851, 1010 + 974, 2]
    assert numbers["mnist-odd-even"] == [60_000, 10_000, 2]
    assert numbers["indian_pines-labelled"] == [10_249, 0, 16]
    assert numbers["digits-3v8"][0] == len(load("digits-3v8", test_size=0).y_train)
    assert listed["broken"]["title"].startswith("unreadable")
    monkeypatch.delenv("SVMOSAIC_DATA")
    assert main(["data", "--data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"folder: {folder}" in out
    assert "downloads from https://www.openml.org/d/554" in out
    assert all(f"\n{name} " in out for name in (*SETS, *TASKS, "mine", "broken"))
    assert main(["data", "--data", "/no/such/folder"]) == 2
    assert "'/no/such/folder' does not exist" in capsys.readouterr().err


def test_verify_compares_the_values(capsys, folder, monkeypatch):
    arrays = {"X": np.arange(26, dtype=np.uint8).reshape(2, 13), "y": np.arange(2, dtype=np.int8)}
    other_storage = {"X": np.asfortranarray(arrays["X"].astype(np.float32)), "y": arrays["y"].astype(np.int64)}
    right = sets.fingerprint(other_storage)
    np.savez(folder / "heart.npz", **arrays)
    for fingerprint, same in ((right, True), ("0", False)):
        register(monkeypatch, SETS["heart"].source, {0: 1, 1: 1}, None, fingerprint, n_features=13, name="heart")
        assert records(capsys, "--verify")["heart"]["same"] is same
    main(["data", "--verify"])
    assert "other values than in the experiments" in capsys.readouterr().out
    assert records(capsys, "--verify")["mnist"]["same"] is None


def test_sets_are_brought_into_the_cache(capsys, site, cache, nowhere, monkeypatch):
    (site.files / "a").write_bytes(b"1 1:1\n2 2:1\n")
    register(monkeypatch, registry.libsvm((f"{site.url}/a",), 13), {1: 1, 2: 1}, n_features=13, name="heart")
    assert records(capsys)["heart"]["place"] == "network"
    assert records(capsys, "--get", "heart")["heart"]["place"] == "cache"
    monkeypatch.setenv("SVMOSAIC_OFFLINE", "1")
    assert main(["data", "--get", "usps"]) == 1
    assert "'usps' not found" in capsys.readouterr().err


def test_the_registry_is_complete_and_on_the_page():
    assert not set(SETS) & set(TASKS)
    assert {task.base for task in TASKS.values()} <= set(SETS)
    for entry in SETS.values():
        assert entry.source.generated or len(entry.fingerprint) == 64
        assert all(url.startswith("https://") for url in entry.source.urls)
    rows = re.findall(r"^\| (`.*) \| .* \|$", (DOCS / "datasets.md").read_text(), re.M)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(SETS)


@pytest.mark.data
@needs.data
@pytest.mark.parametrize(
    "name", [n for n, entry in SETS.items() if not entry.source.generated and n not in ("mnist", "covtype")]
)
def test_real_sets_are_those_of_the_registry(name):
    if not (data_folder() / f"{name}.npz").exists():
        pytest.skip(f"no {name}.npz in the folder")
    arrays = sets.arrays_of(name, None, False)
    sets._check(SETS[name], arrays)
    assert sets.fingerprint(arrays) == SETS[name].fingerprint
    found = load(name)
    assert found.X_train.flags.c_contiguous
    assert np.isfinite(found.X_train).all()
