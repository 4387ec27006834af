"""Loaders and toys."""

import bz2
import subprocess
import sys
from types import SimpleNamespace

import needs
import numpy as np
import pytest
import sklearn.datasets
from numpy.testing import assert_array_equal
from scipy.io import savemat
from web import serve

from svmosaic.datasets import (
    DatasetNotFoundError,
    cache_folder,
    data_folder,
    load,
    load_scene,
    loader,
    make_xor,
    registry,
    sources,
)
from svmosaic.datasets.registry import SETS, TASKS, Entry


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SVMOSAIC_CACHE", str(tmp_path / "cache"))
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
def site():
    with serve() as site:
        yield site


def register(monkeypatch, name, entry):
    monkeypatch.setitem(registry.SETS, name, entry)


def test_no_folder(monkeypatch, nowhere):
    assert data_folder() is None
    with pytest.raises(
        FileNotFoundError, match=r"'iris'.*SVMOSAIC_DATA does not name a folder.*no data set of that name"
    ):
        load("iris")
    monkeypatch.setenv("SVMOSAIC_DATA", "/no/such/folder")
    assert data_folder() is None
    with pytest.raises(FileNotFoundError, match="'/no/such/folder' does not exist"):
        load("mnist", data="/no/such/folder")


def test_no_such_set(folder):
    assert data_folder() == folder
    with pytest.raises(DatasetNotFoundError, match=r"there is no iris.npz in"):
        load("iris")
    with pytest.raises(DatasetNotFoundError, match=r"did you mean mnist-odd-even"):
        load("mnist-oddeven")


def test_official_split_is_kept(folder):
    X = np.arange(12, dtype=np.uint8).reshape(6, 2)
    np.savez(
        folder / "toy.npz", X_train=np.asfortranarray(X[:4]), y_train=np.arange(4), X_test=X[4:], y_test=np.arange(2)
    )
    toy = load("toy")
    assert toy.X_train.dtype == toy.X_test.dtype == np.float32
    assert toy.X_train.flags.c_contiguous, "estimators would copy it at each fit"
    assert_array_equal(toy.X_train, X[:4])
    assert_array_equal(toy.X_test, X[4:])
    assert_array_equal(toy.y_train, np.arange(4))
    assert toy.train_rows is toy.image_shape is None


def test_sets_without_a_split_are_cut(folder):
    X = np.arange(200).reshape(100, 2)
    np.savez(folder / "toy.npz", X=X, y=np.arange(100))
    toy = load("toy", test_size=0.2)
    assert (len(toy.y_train), len(toy.y_test)) == (80, 20)
    assert_array_equal(np.sort(np.r_[toy.y_train, toy.y_test]), np.arange(100))
    assert_array_equal(toy.X_train, X[toy.y_train])
    assert_array_equal(toy.X_test, X[toy.y_test])
    assert_array_equal(toy.train_rows, toy.y_train)
    assert_array_equal(load("toy", test_size=0.2).y_test, toy.y_test)
    assert not np.array_equal(load("toy", test_size=0.2, random_state=1).y_test, toy.y_test)
    assert len(load("toy", test_size=0).y_test) == 0


def test_the_folder_given_comes_first_then_that_of_the_environment_then_the_cache(folder, cache, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    cache.mkdir()
    for k, place in enumerate([tmp_path / "mine", folder, cache]):
        np.savez(place / "heart.npz", X=np.full((10, 1), k), y=np.arange(10) % 2)
    assert load("heart", data=tmp_path / "mine").X_train[0, 0] == 0
    assert load("heart").X_train[0, 0] == 1
    monkeypatch.delenv("SVMOSAIC_DATA")
    assert load("heart").X_train[0, 0] == 2


def test_pickled_arrays_are_refused(folder):
    np.savez(folder / "evil.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle"):
        load("evil")


def test_a_damaged_file_is_named(folder):
    (folder / "usps.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(OSError, match=r"usps\.npz is damaged"):
        load("usps")


def test_tasks_relabel_and_choose_rows(folder):
    digits = np.tile(np.arange(10), 3)
    X = digits[:, None].astype(np.uint8)
    for name in ("mnist", "usps", "pendigits"):
        np.savez(folder / f"{name}.npz", X_train=X, y_train=digits, X_test=X[:10], y_test=digits[:10])
    odd = load("mnist-odd-even")
    assert_array_equal(odd.y_train, odd.X_train[:, 0] % 2)
    versus = load("mnist-3v8")
    assert_array_equal(np.unique(versus.X_train), [3, 8])
    assert_array_equal(versus.y_train, versus.X_train[:, 0] == 8)
    assert len(versus.y_test) == 2
    assert_array_equal(np.unique(load("usps-4v9").X_test), [4, 9])
    below = load("pendigits-lt5")
    assert_array_equal(below.y_test, below.X_test[:, 0] < 5)
    np.savez(folder / "covtype.npz", X=X, y=1 + digits % 7)
    second = load("covtype-2")
    assert second.y_train.sum() + second.y_test.sum() == np.sum(digits % 7 == 1)
    np.savez(folder / "letter.npz", X_train=X, y_train=digits, X_test=X, y_test=digits)
    assert_array_equal(np.unique(load("letter-vowels").X_train[load("letter-vowels").y_train == 1]), [0, 4, 8])


def test_scenes_keep_their_shape(folder):
    truth = np.array([[0, 1, 2], [2, 1, 0]])
    X = np.arange(12).reshape(6, 2)
    np.savez(folder / "salinas_a.npz", X=X, y=truth.ravel(), shape=np.array(truth.shape))
    scene = load_scene("salinas_a")
    assert_array_equal(scene.truth, truth)
    assert_array_equal(scene.cube[1, 2], X[5])
    data = load("salinas_a-labelled", test_size=0.5)
    assert data.image_shape == (2, 3)
    for rows, X_part, y_part in (
        (data.train_rows, data.X_train, data.y_train), (data.test_rows, data.X_test, data.y_test)
    ):  # fmt: skip
        assert_array_equal(truth[np.unravel_index(rows, data.image_shape)], y_part)
        assert_array_equal(scene.cube[np.unravel_index(rows, data.image_shape)], X_part)
    assert (np.r_[data.y_train, data.y_test] > 0).all()
    with pytest.raises(ValueError, match="is not an image; the scenes are indian_pines, salinas_a"):
        load_scene("two_spirals")


@pytest.mark.parametrize("name", [name for name, entry in SETS.items() if entry.generated])
def test_toys_need_no_file(name, nowhere):
    entry = SETS[name]
    toy = load(name, test_size=0.25)
    assert toy.X_train.dtype == np.float32
    assert len(toy.y_train) + len(toy.y_test) == entry.n_train
    assert toy.X_train.shape[1] == entry.n_features
    assert set(np.unique(toy.y_train)) == set(entry.counts)
    assert_array_equal(load(name, test_size=0.25).X_test, toy.X_test)


LINES = b"1 1:0.5 3:2\n-1 2:-1\n1 1:1\n"


def test_libsvm_files_are_downloaded_once(site, cache, nowhere, monkeypatch):
    site.files = {"/a.bz2": bz2.compress(LINES), "/b": b"-1 3:7\n"}
    source = sources.Libsvm((f"{site.url}/a.bz2", f"{site.url}/b"), 3, (f"{site.url}/b",), labels={1: 5, -1: 6})
    register(monkeypatch, "small", Entry("", source, 3, {5: 2, 6: 2}, {6: 1}))
    data = load("small")
    assert_array_equal(data.X_train, np.array([[0.5, 0, 2], [0, -1, 0], [1, 0, 0], [0, 0, 7]], dtype=np.float32))
    assert_array_equal(data.y_train, [5, 6, 5, 6])
    assert_array_equal(data.X_test, [[0, 0, 7]])
    n_requests = len(site.requests)
    assert_array_equal(load("small").X_train, data.X_train)
    assert len(site.requests) == n_requests, "the second time it comes from the cache"
    left = [path.name for path in (cache / "downloads").iterdir() if path.suffix != ".lock"]
    assert all(name.endswith(".sha256") for name in left), "originals are not kept twice"
    assert len(left) == 2


def test_a_spoilt_cache_is_noticed(site, cache, nowhere, monkeypatch):
    site.files = {"/a": LINES}
    register(monkeypatch, "small", Entry("", sources.Libsvm((f"{site.url}/a",), 3), 3, {1: 2, -1: 1}))
    load("small")
    body = bytearray((cache / "small.npz").read_bytes())
    body[len(body) // 2] ^= 1
    (cache / "small.npz").write_bytes(body)
    with pytest.raises(OSError, match=r"small\.npz is damaged: its checksum"):
        load("small")


def test_another_set_under_the_same_address_is_refused(site, cache, nowhere, monkeypatch):
    site.files = {"/a": LINES}
    register(monkeypatch, "small", Entry("", sources.Libsvm((f"{site.url}/a",), 3), 3, {1: 1, -1: 2}))
    with pytest.raises(ValueError, match=r"'small'.*classes \{-1: 1, 1: 2\}, but .*\{1: 1, -1: 2\}.*not kept"):
        load("small")
    assert not (cache / "small.npz").exists()
    register(monkeypatch, "small", Entry("", sources.Libsvm((f"{site.url}/a",), 3, labels={1: 0}), 3, {0: 2}))
    with pytest.raises(ValueError, match="unknown labels: -1"):
        load("small")


@pytest.mark.parametrize(
    ("path", "body"),
    [("/a", b"<html>log in to the hotel's network</html>"), ("/a.bz2", b"<html></html>"), ("/a.bz2", b""), ("/a", b"")],
)
def test_a_page_instead_of_the_set_does_not_stay(site, cache, nowhere, monkeypatch, path, body):
    source = sources.Libsvm((f"{site.url}{path}",), 3)
    register(monkeypatch, "small", Entry("", source, 3, {1: 2, -1: 1}))
    site.files = {path: body}
    with pytest.raises((ValueError, DatasetNotFoundError), match="'small'"):
        load("small")
    site.files = {path: bz2.compress(LINES) if path.endswith("bz2") else LINES}
    assert len(load("small", test_size=0).y_train) == 3, "the next time, with the network there, it comes"


def test_scaled_whole_numbers_come_back(site, cache):
    site.files = {"/a": b"1 1:-1 2:-0.733333 3:1\n"}
    arrays = sources.Libsvm((f"{site.url}/a",), 3, unscale=(1.0, 7.5)).read(cache)
    assert_array_equal(arrays["X"], [[0, 2, 15]])


def test_text_tables(site, cache):
    site.files = {"/letters": b"A,1,2\nC,3,4\nB,5,6\n", "/trn": b"1 2 7\n3 4 1 \n", "/tst": b"5 6 2\n"}
    arrays = sources.Text(f"{site.url}/letters", None, ",", 0, registry.LETTERS, n_train=2).read(cache)
    assert_array_equal(arrays["X_train"], [[1, 2], [3, 4]])
    assert_array_equal(arrays["y_train"], [0, 2])
    assert_array_equal(arrays["y_test"], [1])
    arrays = sources.Text(f"{site.url}/trn", f"{site.url}/tst").read(cache)
    assert_array_equal(arrays["y_train"], [7, 1])
    assert_array_equal(arrays["X_test"], [[5, 6]])


def test_scenes_from_matlab_files(site, cache, tmp_path):
    cube = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)
    savemat(tmp_path / "cube.mat", {"c": cube})
    savemat(tmp_path / "gt.mat", {"g": np.arange(6, dtype=np.uint8).reshape(2, 3)})
    site.files = {f"/{name}": (tmp_path / name).read_bytes() for name in ("cube.mat", "gt.mat")}
    arrays = sources.SceneFiles((f"{site.url}/cube.mat", "c"), (f"{site.url}/gt.mat", "g")).read(cache)
    assert_array_equal(arrays["shape"], [2, 3])
    assert_array_equal(arrays["X"][4], cube[1, 1])
    assert_array_equal(arrays["y"], np.arange(6))


def test_openml_goes_through_scikit_learn(cache, nowhere, monkeypatch):
    asked = {}

    def fetch_openml(**options):
        asked.update(options)
        return SimpleNamespace(data=np.arange(8.0).reshape(4, 2), target=np.array(["b", "a", "b", "a"], dtype=object))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    source = sources.OpenML(77, {"a": 0, "b": 1}, n_train=3)
    register(monkeypatch, "small", Entry("", source, 2, {0: 1, 1: 2}, {0: 1}))
    data = load("small")
    assert_array_equal(data.y_train, [1, 0, 1])
    assert_array_equal(data.X_test, [[6, 7]])
    assert asked["data_id"] == 77
    assert asked["data_home"].startswith(str(cache))


def test_covertype_goes_through_scikit_learn(cache, nowhere, monkeypatch):
    def fetch_covtype(data_home, return_X_y):
        assert data_home.startswith(str(cache))
        return np.ones((4, 54)), np.array([1, 2, 2, 7])

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    with pytest.raises(ValueError, match="but the data set of the papers has"):
        load("covtype")
    arrays = SETS["covtype"].source.read(cache)
    assert_array_equal(arrays["y"], [1, 2, 2, 7])


def test_offline_says_what_to_do(site, cache, folder, monkeypatch):
    register(monkeypatch, "small", Entry("", sources.Libsvm(("http://127.0.0.1:9/a",), 3), 3, {1: 2, -1: 1}))
    with pytest.raises(DatasetNotFoundError) as raised:
        load("small")
    text = str(raised.value)
    for part in ("'small'", str(folder), str(cache), "http://127.0.0.1:9", "small.npz", "--data", "X, y"):
        assert part in text
    monkeypatch.setenv("SVMOSAIC_OFFLINE", "1")
    with pytest.raises(DatasetNotFoundError, match="downloads are switched off"):
        load("mnist-3v8")
    monkeypatch.setenv("SVMOSAIC_OFFLINE", "0")
    with pytest.raises(DatasetNotFoundError, match=r"'usps' not found.*switched off.*X_train, y_train"):
        load("usps", download=False)


def test_a_download_broken_off_goes_on_at_the_next_load(site, cache, nowhere, monkeypatch):
    monkeypatch.setattr("svmosaic.datasets.download.time.sleep", lambda seconds: None)
    site.files = {"/a": LINES}
    site.cut = [5, 5, 5, 5]
    register(monkeypatch, "small", Entry("", sources.Libsvm((f"{site.url}/a",), 3), 3, {1: 2, -1: 1}))
    with pytest.raises(DatasetNotFoundError, match="20 bytes are kept"):
        load("small")
    load("small")
    assert site.requests[-1] == ("/a", "bytes=20-")


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("SVMOSAIC_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert str(cache_folder()) == "/x/svmosaic"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert str(cache_folder()) == "/home/me/.cache/svmosaic"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert str(cache_folder()) == "/home/me/Library/Caches/svmosaic"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert str(cache_folder()) == "/local/svmosaic/Cache"


def test_the_registry_is_complete():
    assert not set(SETS) & set(TASKS)
    for task in TASKS.values():
        assert task.base in SETS
    for entry in SETS.values():
        assert entry.source.where
        assert entry.generated or len(entry.fingerprint) == 64
        for url in getattr(entry.source, "urls", ()):
            assert url.startswith("https://")


def test_importing_the_sets_is_quick():
    """Nothing is imported that only a download or a file needs."""
    code = "import sys, svmosaic.datasets; print([m for m in ('rich', 'sklearn.datasets') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_xor():
    X, y = make_xor(4000, spread=0.1, random_state=0)
    assert X.shape == (4000, 2)
    assert_array_equal(y, np.abs(X[:, 1]) > np.abs(X[:, 0]))
    assert_array_equal(make_xor(10, random_state=3)[0], make_xor(10, random_state=3)[0])
    assert not np.array_equal(make_xor(10, random_state=3)[0], make_xor(10, random_state=4)[0])
    assert abs(y.mean() - 0.5) < 0.05


@pytest.mark.data
@needs.data
@pytest.mark.parametrize(
    "name", [n for n, entry in SETS.items() if not entry.generated and n not in ("mnist", "covtype")]
)
def test_real_sets_are_those_of_the_registry(name):
    entry = SETS[name]
    path = data_folder() / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no {path.name} in the folder")
    arrays, _ = loader._arrays(name, None, False, False)
    loader._check(entry, arrays)
    assert loader.fingerprint(arrays) == entry.fingerprint
    data = load(name)
    assert data.X_train.flags.c_contiguous
    assert np.isfinite(data.X_train).all()
