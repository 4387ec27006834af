"""Data sets by name: from the user's folder, then the cache, then their source on the network."""

import hashlib
import os
import sys
import zipfile
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from papers.registry import SETS, TASKS, Problem


class DatasetNotFoundError(FileNotFoundError):
    """The data set was not found in any of the places that were searched."""


@dataclass(frozen=True)
class Dataset:
    """Rows and labels for training and for testing."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    name: str = ""


def data_folder(data=None) -> Path | None:
    """The given folder of .npz files, or the one named by SVMOSAIC_DATA; None if there is none."""
    folder = data or os.environ.get("SVMOSAIC_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def cache_folder() -> Path:
    """The folder for downloads: SVMOSAIC_CACHE, or `svmosaic` in the user's cache folder."""
    if os.environ.get("SVMOSAIC_CACHE"):
        return Path(os.environ["SVMOSAIC_CACHE"]).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "svmosaic"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "svmosaic" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svmosaic"


def load(name, *, test_size=0.1, random_state=0, data=None, download=True) -> Dataset:
    """Load a data set or a task by name, from the first place that has it.

    The places are: the folder `data` (or SVMOSAIC_DATA), which may also contain your own .npz files; the
    cache; the source on the network. Toy data are generated. Values are the original ones as float32.

    Parameters
    ----------
    name : str
        A data set such as "mnist", "two_spirals", or a task such as "mnist-odd-even"; `python -m papers data` lists
        them.
    test_size : float, default=0.1
        Fraction of the rows for testing in data sets without an official split, which are shuffled and split.
    random_state : int, default=0
        For shuffling those data sets, and for generating toy data.
    data : path, optional
        Folder of .npz files. It must exist if given.
    download : bool, default=True
        Whether to download; never if SVMOSAIC_OFFLINE is set to anything but 0.

    Examples
    --------
    >>> from papers.data import load
    >>> toy = load("two_spirals", test_size=0.25)
    >>> toy.X_train.shape, toy.X_test.shape
    ((1500, 2), (500, 2))
    """
    task = TASKS.get(name, Problem(name, ""))
    arrays = arrays_of(task.base, data, download, random_state, asked=name)
    if "X_train" in arrays:
        parts = [(arrays[f"X_{part}"], arrays[f"y_{part}"]) for part in ("train", "test")]
        if task.keep is not None:
            parts = [(X[task.keep(y)], y[task.keep(y)]) for X, y in parts]
    else:
        X, y = arrays["X"], arrays["y"]
        kept = np.arange(len(y)) if task.keep is None else np.flatnonzero(task.keep(y))
        order = kept[np.random.RandomState(random_state).permutation(len(kept))]
        n_test = round(test_size * len(order))
        parts = [(X[rows], y[rows]) for rows in (order[n_test:], order[:n_test])]
    # Row by row in memory, whatever the file holds: the estimators would copy anything else at each fit.
    (X, y), (X_test, y_test) = ((np.ascontiguousarray(X, dtype=np.float32), task.relabel(y)) for X, y in parts)
    return Dataset(X, y, X_test, y_test, name)


def arrays_of(name, data=None, download=True, random_state=0, *, asked=None) -> dict[str, np.ndarray]:
    """Arrays of a set, as in its .npz file: X_train, y_train, X_test, y_test, or X, y without an official split."""
    asked = asked or name
    if data is not None and not Path(data).is_dir():
        raise FileNotFoundError(f"data set {asked!r}: the folder {str(data)!r} does not exist")
    found = next((path for path in _places(name, data) if path.exists()), None)
    if found is not None:
        try:
            with open(found, "rb") as file, np.load(file, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
        except (zipfile.BadZipFile, EOFError) as error:
            raise OSError(f"{found} is damaged ({error}): delete it, and load again") from error
    folder, cache = data_folder(data), cache_folder()
    searched = f"there is no {name}.npz in {folder}" if folder else "SVMOSAIC_DATA does not name a folder"
    searched = f"data set {asked!r} not found: {searched}, and none in the cache {cache}"
    if name not in SETS:
        known = [*SETS, *TASKS]
        near = ", ".join(get_close_matches(name, known, 3) or known)
        raise DatasetNotFoundError(f"{searched}; there is no data set of that name (did you mean {near}?)")
    entry = SETS[name]
    if entry.source.generated:
        return entry.source.read(random_state)
    files, reason = [], "downloads are switched off"
    if download and os.environ.get("SVMOSAIC_OFFLINE", "0") in ("", "0"):
        cache.mkdir(parents=True, exist_ok=True)
        try:
            files = [fetch(url, cache / "downloads", entry.source.hashes.get(url)) for url in entry.source.urls]
            arrays = entry.source.read(cache, *files)
            _check(entry, arrays)
        except OSError as error:
            reason = str(error)
            if len(files) == len(entry.source.urls):  # all there, and not to be read: they must not stay
                _forget(files)
        except Exception as error:
            # Something else came under that address, a page of a hotel's network perhaps.
            _forget(files)
            raise ValueError(
                f"data set {name!r}: the file from {entry.source.where} is not the expected one ({error})"
            ) from error
        else:
            unfinished = cache / f"{name}.{os.getpid()}.unfinished"
            with open(unfinished, "wb") as file:
                np.savez_compressed(file, **arrays)
            unfinished.replace(cache / f"{name}.npz")
            _forget(files)  # the arrays are kept
            return arrays
    wanted = "X_train, y_train, X_test, y_test" if entry.test_counts else "X, y"
    raise DatasetNotFoundError(
        f"{searched}; downloading it from {entry.source.where} failed: {reason}. Connect to the network and load it "
        f"again, or put {name}.npz with {wanted} into a folder named by SVMOSAIC_DATA, data= or --data."
    )


def fetch(url, folder, known_hash=None) -> Path:
    """Download a file by pooch, unless it is there; it gets its name when it is complete and has its hash."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("downloads need pooch: pip install pooch") from error
    name = url.split("//", 1)[-1].replace("/", "_").replace("~", "").replace(":", "_")
    return Path(pooch.retrieve(url, known_hash, name, folder, downloader=pooch.HTTPDownloader(timeout=30)))


def fingerprint(arrays) -> str:
    """SHA-256 of the values of a set: X as float32 and the rest as int64, whatever the file holds."""
    total = hashlib.sha256()
    for key in sorted(arrays):
        values = np.ascontiguousarray(arrays[key], dtype="<f4" if key.startswith("X") else "<i8")
        total.update(f"{key}{values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()


def catalogue(data=None, *, verify=False) -> list[dict]:
    """One record for each set and task, and for each .npz file of the user's own in the folder.

    Records have `name`, `title`, `base` (of a task), `rows` and `test_rows` (0 without an official split), `features`,
    `classes`, `place` ("folder", "cache", "network" or "generated"), `path` (of a file), `source`, and with `verify`
    also `same`: True, False, or None if there is nothing to compare.
    """
    records = []
    for name, entry in SETS.items():
        path = next((path for path in _places(name, data) if path.exists()), None)
        place = "generated" if entry.source.generated else "network"
        if path is not None:
            place = "cache" if path.parent == cache_folder() else "folder"
        record = {
            "name": name, "title": entry.title, "base": None, "rows": sum(entry.counts.values()),
            "test_rows": sum((entry.test_counts or {}).values()), "features": entry.n_features,
            "classes": len(entry.counts), "place": place, "path": path and str(path), "source": entry.source.where,
        }  # fmt: skip
        if verify:
            known = path is not None and entry.fingerprint is not None
            record["same"] = fingerprint(arrays_of(name, data)) == entry.fingerprint if known else None
        records.append(record)
    bases = {record["name"]: record for record in records}
    folder = data_folder(data)
    for path in sorted(folder.glob("*.npz")) if folder else []:
        if path.stem in SETS:
            continue
        record = {
            "name": path.stem, "title": "", "base": None, "rows": 0, "test_rows": 0, "features": 0, "classes": 0,
            "place": "folder", "path": str(path), "source": str(path.parent),
        }  # fmt: skip
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                X, y = ("X_train", "y_train") if "X_train" in archive.files else ("X", "y")
                record["rows"], record["features"] = archive[X].shape
                record["classes"] = len(np.unique(archive[y]))
                record["test_rows"] = len(archive["y_test"]) if X == "X_train" else 0
        except Exception as error:  # a file that is no set is listed as such: it must not hide the others
            record["title"] = f"unreadable: {error}"
        records.append(record)
    for name, task in TASKS.items():  # rows and classes from the counts of the set
        record = bases[task.base] | {"name": name, "title": task.title, "base": task.base}
        for part, counts in (("test_rows", SETS[task.base].test_counts or {}), ("rows", SETS[task.base].counts)):
            labels = np.array(list(counts), dtype=int)
            labels = labels if task.keep is None else labels[task.keep(labels)]
            record[part] = sum(counts[int(label)] for label in labels)
        records.append(record | {"classes": len(np.unique(task.relabel(labels)))})
    return records


def _places(name, data):
    folder = data_folder(data)
    return [*([folder / f"{name}.npz"] if folder else []), cache_folder() / f"{name}.npz"]


def _forget(files):
    for file in files:
        file.unlink(missing_ok=True)


def _check(entry, arrays):
    """Refuse arrays that are not the set as we know it."""
    pairs = [("X_train", "y_train", entry.counts), ("X_test", "y_test", entry.test_counts)]
    for X, y, wanted in pairs if entry.test_counts else [("X", "y", entry.counts)]:
        counts = {int(k): int(n) for k, n in zip(*np.unique(arrays[y], return_counts=True), strict=True)}
        shape = (sum(wanted.values()), entry.n_features)
        if counts != wanted or arrays[X].shape != shape:
            raise ValueError(
                f"{X} has the shape {arrays[X].shape} and classes {counts}, but the data set of the papers has "
                f"{shape} and {wanted}; the file was not kept"
            )
