"""Predictors in files that numpy and the core open alone, in a fraction of the time that scikit-learn takes to import.

As a model's, the file is a zip archive of plain arrays and a description in JSON. Nothing in it is run: only the types
listed here are built.
"""

import io
import json
import zipfile
from dataclasses import fields

import numpy as np

from svmosaic._lazy import find_type
from svmosaic.export.plain_files import array_bytes

# All that a predictor may hold besides arrays, numbers, text and containers of these.
TYPES = {
    path.rpartition(".")[2]: path
    for path in (
        "svmosaic.model.predictor.Predictor",
        "svmosaic.model.predictor.IntervalPredictor",
        "svmosaic.table.table_predictor.TablePredictor",
        "svmosaic.table.columns.Column",
        "svmosaic.maps.scaling.Scaling",
        "svmosaic.model.calibration.Isotonic",
        "svmosaic.model.calibration.Odds",
        "svmosaic.model.calibration.Posterior",
        "svmosaic.model.calibration.Sigmoid",
        "svmosaic.model.calibration.Temperature",
        "svmosaic.model.heads.Classify",
        "svmosaic.model.heads.Regress",
    )
}
PREDICTORS = ("Predictor", "TablePredictor")


def entries_of(predictor) -> dict[str, bytes]:
    """The entries of the archive: the description, and a file for each array; TypeError for what they cannot hold."""
    arrays: list[np.ndarray] = []
    schema = json.dumps(_described(predictor, arrays))
    return {"schema.json": schema.encode()} | {f"{k}.npy": array_bytes(array) for k, array in enumerate(arrays)}


def _described(value, arrays):
    """A value as JSON; arrays are put into the list, and referred to by their index."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == object:  # classes of text, as pandas has them
            return {"objects": _described(value.tolist(), arrays)}
        arrays.append(np.asarray(value))
        return {"scalar" if isinstance(value, np.generic) else "array": len(arrays) - 1}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_described(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_described(part, arrays) for part in item] for item in value.items()]}
    name = type(value).__name__
    if TYPES.get(name) != f"{type(value).__module__}.{name}":
        raise TypeError(f"a predictor file cannot hold a {name}")
    state = value.__getstate__() if name in PREDICTORS else {f.name: getattr(value, f.name) for f in fields(value)}
    return {"type": name, "state": _described(state, arrays)}


def predictor_of(archive: zipfile.ZipFile):
    """The predictor in an archive; ValueError, TypeError or KeyError if it makes no sense."""
    predictor = _built(json.loads(archive.read("schema.json")), archive)
    if type(predictor).__name__ not in PREDICTORS:
        raise ValueError("it holds no predictor")
    return predictor


def _built(node, archive):
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise ValueError("a list has no kind")
        return node
    if "type" in node:
        cls, state = find_type(TYPES[node["type"]]), _built(node["state"], archive)
        if node["type"] not in PREDICTORS:
            return cls(**state)
        predictor = cls.__new__(cls)
        predictor.__setstate__(state)
        return predictor
    ((kind, content),) = node.items()
    if kind in ("array", "scalar"):
        array = np.load(io.BytesIO(archive.read(f"{int(content)}.npy")), allow_pickle=False)
        return array if kind == "array" else array[()]
    if kind == "objects":
        return np.array(_built(content, archive), dtype=object)
    if kind == "dict":
        return {_built(key, archive): _built(item, archive) for key, item in content}
    return {"list": list, "tuple": tuple}[kind](_built(item, archive) for item in content)
