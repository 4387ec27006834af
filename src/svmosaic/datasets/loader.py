"""One loader for all sets: the user's folder, then the cache, then the source."""

import hashlib
import os
import sys
import zipfile
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from svmosaic.atomic import write_text, written
from svmosaic.datasets.download import DownloadError, digest, locked
from svmosaic.datasets.registry import SETS, TASKS, Task, names
from svmosaic.datasets.sources import SceneFiles, download_path


class DatasetNotFoundError(FileNotFoundError):
    """The data set was not found in any of the places that were searched.

    See Also
    --------
    load : Raises it.
    """


@dataclass(frozen=True)
class Dataset:
    """Rows and labels for training and for testing.

    Attributes
    ----------
    X_train, X_test : ndarray of float32, shape (n_rows, n_features)
    y_train, y_test : ndarray of shape (n_rows,)
    name : str
    train_rows, test_rows : ndarray of int or None
        Indices of the rows in the whole data set; None if it has an official split.
    image_shape : (height, width) or None
        Of a scene: row r of the set is the pixel (r // width, r % width). See `load_scene` too.

    See Also
    --------
    load : Returns it.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    name: str = ""
    train_rows: np.ndarray | None = None
    test_rows: np.ndarray | None = None
    image_shape: tuple[int, int] | None = None


@dataclass(frozen=True)
class Scene:
    """A hyperspectral image.

    Attributes
    ----------
    cube : ndarray of float32, shape (height, width, n_bands)
    truth : ndarray of int, shape (height, width)
        The class of each pixel, 0 for unlabeled pixels.
    name : str

    See Also
    --------
    load_scene : Returns it.
    """

    cube: np.ndarray
    truth: np.ndarray
    name: str = ""


def data_folder(data=None) -> Path | None:
    """Return the given folder, or the one named by SVMOSAIC_DATA; None if there is none.

    See Also
    --------
    cache_folder : The folder for downloads.
    load : Searches both.
    """
    folder = data or os.environ.get("SVMOSAIC_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def cache_folder() -> Path:
    """Return the folder for downloads: SVMOSAIC_CACHE, or `svmosaic` in the user's cache folder.

    See Also
    --------
    data_folder : The folder with your own files.
    load : Searches both.
    """
    if os.environ.get("SVMOSAIC_CACHE"):
        return Path(os.environ["SVMOSAIC_CACHE"]).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "svmosaic"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "svmosaic" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svmosaic"


def load(name, *, test_size=0.1, random_state=0, data=None, download=True, progress=None) -> Dataset:
    """Load a data set or a task by name, from the first place that has it.

    The places are: the folder `data` (or SVMOSAIC_DATA), which may also contain your own .npz files; the
    cache; the source on the network. Toy data are generated. Values are the original ones as float32.

    Parameters
    ----------
    name : str
        A data set such as "mnist", "two_spirals", or a task such as "mnist-odd-even"; `svmosaic datasets` lists them.
    test_size : float, default=0.1
        Fraction of the rows for testing in data sets without an official split, which are shuffled and split.
    random_state : int, default=0
        For shuffling those data sets, and for generating toy data.
    data : path, optional
        Folder of .npz files. It must exist if given.
    download : bool, default=True
        Whether to download; never if SVMOSAIC_OFFLINE is set to anything but 0.
    progress : bool, optional
        Whether to show a progress bar on standard error; by default if that is a terminal.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetNotFoundError
        A FileNotFoundError that names the places that were searched.

    See Also
    --------
    load_scene : Loads a hyperspectral image.
    make_xor : Generates toy data.

    Examples
    --------
    >>> from svmosaic.datasets import load
    >>> toy = load("two_spirals", test_size=0.25)
    >>> toy.X_train.shape, toy.X_test.shape
    ((1500, 2), (500, 2))
    """
    arrays, task = _arrays(name, data, download, progress, random_state)
    image_shape = _image_shape(arrays)
    if "X_train" in arrays:
        X_train, y_train = _ask(task, arrays["X_train"], arrays["y_train"])
        X_test, y_test = _ask(task, arrays["X_test"], arrays["y_test"])
        return Dataset(_rows(X_train), y_train, _rows(X_test), y_test, name, image_shape=image_shape)
    y = arrays["y"]
    belongs = np.arange(len(y)) if task.keep is None else np.flatnonzero(task.keep(y))
    order = belongs[np.random.RandomState(random_state).permutation(len(belongs))]
    n_test = round(test_size * len(order))
    test, train = order[:n_test], order[n_test:]
    X, y = arrays["X"], task.relabel(y)
    return Dataset(_rows(X[train]), y[train], _rows(X[test]), y[test], name, train, test, image_shape)


def load_scene(name, *, data=None, download=True, progress=None) -> Scene:
    """Load a hyperspectral scene with its shape: a cube of bands, and the class of each pixel.

    Parameters
    ----------
    name : {"indian_pines", "salinas_a"}, or a file of your own with X, y and shape
    data, download, progress : as in `load`

    Returns
    -------
    Scene

    See Also
    --------
    load : Loads pixels as rows.
    """
    arrays, _ = _arrays(name, data, download, progress)
    if "shape" not in arrays:
        scenes = [known for known, entry in SETS.items() if isinstance(entry.source, SceneFiles)]
        raise ValueError(f"data set {name!r} is not an image; the scenes are {', '.join(scenes)}")
    shape = _image_shape(arrays)
    return Scene(_rows(arrays["X"]).reshape(*shape, -1), arrays["y"].reshape(shape), name)


def places(name, data=None):
    """Files that may contain a data set, in the order in which they are tried."""
    folder = data_folder(data)
    return [*([folder / f"{name}.npz"] if folder else []), cache_folder() / f"{name}.npz"]


def fingerprint(arrays) -> str:
    """SHA-256 of the values of a set: X as float32 and the rest as int64, whatever the file holds."""
    total = hashlib.sha256()
    for key in sorted(arrays):
        values = np.ascontiguousarray(arrays[key], dtype="<f4" if key.startswith("X") else "<i8")
        total.update(f"{key}{values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()


def _rows(X):
    # Row by row in memory, whatever the file holds: the estimators would copy anything else at each fit.
    return np.ascontiguousarray(X, dtype=np.float32)


def _image_shape(arrays):
    if "shape" not in arrays:
        return None
    height, width = arrays["shape"]
    return int(height), int(width)


def _ask(task, X, y):
    if task.keep is not None:
        kept = task.keep(y)
        X, y = X[kept], y[kept]
    return X, task.relabel(y)


def _arrays(name, data, download, progress, random_state=0):
    """Arrays of the set behind a name, and the task."""
    if data is not None and not Path(data).is_dir():
        raise FileNotFoundError(f"data set {name!r}: the folder {str(data)!r} does not exist")
    task = TASKS.get(name, Task(name, ""))
    entry = SETS.get(task.base)
    found = next((path for path in places(task.base, data) if path.exists()), None)
    if found is not None:
        return _read(found), task
    if entry is None:
        raise DatasetNotFoundError(f"data set {name!r} not found: {_unknown(name, data)}")
    if entry.generated:
        return entry.source.read(random_state), task
    if not download or os.environ.get("SVMOSAIC_OFFLINE", "0") not in ("", "0"):
        raise DatasetNotFoundError(_absent(task.base, data, "downloads are switched off"))
    return _download(task.base, entry, data, progress), task


def _read(path):
    recorded = path.with_name(f"{path.name}.sha256")
    if recorded.exists() and digest(path) != recorded.read_text().split()[0]:
        raise OSError(f"{path} is damaged: its checksum is not that of {recorded.name}; delete both, and load again")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (zipfile.BadZipFile, EOFError) as error:
        raise OSError(f"{path} is damaged ({error}): delete it, and load again") from error


def _download(name, entry, data, progress):
    cache = cache_folder()
    path = cache / f"{name}.npz"
    with locked(path):
        if path.exists():  # another process was faster
            return _read(path)
        originals = [download_path(cache, url) for url in entry.source.urls]
        recorded = {file: file.with_name(f"{file.name}.sha256") for file in originals}
        new = [record for record in recorded.values() if not record.exists()]
        try:
            arrays = entry.source.read(cache, progress)
            _check(entry, arrays)
        except DownloadError as error:
            raise DatasetNotFoundError(_absent(name, data, str(error))) from error
        except Exception as error:
            # Something else came under that address, a page of a hotel's network perhaps: it must not stay.
            for file in [*originals, *new]:
                file.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise DatasetNotFoundError(_absent(name, data, str(error))) from error
            raise ValueError(
                f"data set {name!r}: the file from {entry.source.where} is not the expected one ({error})"
            ) from error
        with written(path) as temporary:
            np.savez_compressed(temporary, **arrays)
        write_text(path.with_name(f"{path.name}.sha256"), f"{digest(path)}  {path.name}\n")
        for file in originals:
            file.unlink(missing_ok=True)  # the arrays are kept, and the checksum of the original
    return arrays


def _check(entry, arrays):
    """Refuse arrays that are not the set as we know it."""
    pairs = (
        [("X_train", "y_train", entry.counts), ("X_test", "y_test", entry.test_counts)]
        if entry.test_counts
        else [("X", "y", entry.counts)]
    )
    for X, y, wanted in pairs:
        counts = {int(k): int(n) for k, n in zip(*np.unique(arrays[y], return_counts=True), strict=True)}
        shape = (sum(wanted.values()), entry.n_features)
        if counts != wanted or arrays[X].shape != shape:
            raise ValueError(
                f"{X} has the shape {arrays[X].shape} and classes {counts}, but the data set of the papers has "
                f"{shape} and {wanted}; the file was not kept"
            )


def _looked_at(name, data):
    folder = data_folder(data)
    first = f"there is no {name}.npz in {folder}" if folder else "SVMOSAIC_DATA does not name a folder"
    return f"{first}, and none in the cache {cache_folder()}"


def _unknown(name, data):
    near = get_close_matches(name, names(), 3) or names()
    return f"{_looked_at(name, data)}; there is no data set of that name (did you mean {', '.join(near)}?)"


def _absent(name, data, reason):
    arrays = "X_train, y_train, X_test, y_test" if SETS[name].test_counts else "X, y"
    return (
        f"data set {name!r} not found: {_looked_at(name, data)}; downloading it from {SETS[name].source.where} "
        f"failed: {reason}. Connect to the network and load it again (an interrupted download resumes), or put "
        f"{name}.npz with {arrays} into a folder, and name the folder with SVMOSAIC_DATA, data= or --data."
    )
