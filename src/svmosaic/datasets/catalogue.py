"""The available data sets, and where each would be loaded from."""

from pathlib import Path

import numpy as np

from svmosaic.datasets.loader import cache_folder, data_folder, fingerprint, places
from svmosaic.datasets.registry import SETS, TASKS


def catalogue(data=None, *, verify=False):
    """One record for each set and task, and for each .npz file of the user's own.

    Parameters
    ----------
    data : path, optional
        The folder to look in; that of SVMOSAIC_DATA by default.
    verify : bool, default=False
        Read the files, and compare their values with those that the project's experiments use.

    Returns
    -------
    list of dict
        With `name`, `title`, `base` (of a task), `rows` and `test_rows` (0 without an official split), `features`,
        `classes`, `place` ("folder", "cache", "network" or "generated"), `path` (of a file) or `source`, and with
        `verify` `same` (True, False, or None if there is nothing to compare).
    """
    records = []
    for name, entry in SETS.items():
        record = {
            "name": name, "title": entry.title, "base": None, "rows": entry.n_train, "test_rows": entry.n_test,
            "features": entry.n_features, "classes": len(entry.counts),
        } | _place(name, entry, data)  # fmt: skip
        if verify:
            record["same"] = _same(record["path"], entry)
        records.append(record)
    return records + _own(data) + [_of_task(name, task, records) for name, task in TASKS.items()]


def _place(name, entry, data):
    found = next((path for path in places(name, data) if path.exists()), None)
    if found is not None:
        place = "cache" if found.parent == cache_folder() else "folder"
        return {"place": place, "path": str(found), "source": entry.source.where}
    return {"place": "generated" if entry.generated else "network", "path": None, "source": entry.source.where}


def _same(path, entry):
    if path is None or entry.fingerprint is None:
        return None
    with np.load(path, allow_pickle=False) as archive:
        return fingerprint({key: archive[key] for key in archive.files}) == entry.fingerprint


def _of_task(name, task, records):
    """Rows and classes of a task, from the counts of its set."""
    base = next(record for record in records if record["name"] == task.base)
    entry = SETS[task.base]

    def kept(counts):
        labels = np.array(list(counts or {}), dtype=int)
        chosen = labels if task.keep is None else labels[task.keep(labels)]
        return chosen, sum(counts[int(label)] for label in chosen)

    labels, rows = kept(entry.counts)
    return base | {
        "name": name, "title": task.title, "base": task.base, "rows": rows, "test_rows": kept(entry.test_counts)[1],
        "classes": len(np.unique(task.relabel(labels))),
    }  # fmt: skip


def _own(data):
    """Files of the user's own in the folder."""
    folder = data_folder(data)
    paths = sorted(folder.glob("*.npz")) if folder else []
    return [_own_file(path) for path in paths if path.stem not in SETS]


def _own_file(path: Path):
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
    return record
