"""The plain description of a fitted object in a file: JSON and arrays, with one line for each kind of part.

- null, true, false, numbers and text stand for themselves.
- {"list": parts}, {"tuple": parts}, {"dict": [[key, part], ...]}.
- {"array": n} and {"scalar": n}: the array or NumPy number in the entry `n.npy`.
- {"objects": parts, "shape": shape}: an array of Python's own objects, such as class names.
- {"type": "module.Class", "state": part}: an object of a trusted type, with its attributes.
- {"type": "module.Class", "items": parts}: one that is a list.
- {"skops": n}: an object of another library, by skops, whose entries begin with `n/`.
- {"same": k}: the k-th array or object of the description, from 0, once more.

skops alone, which imports all of scikit-learn, is asked for what is not of our own types; nothing else is imported.
"""

import io
import json
import zipfile
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from svmosaic._lazy import find_type
from svmosaic.model import registry

# What may precede our models, written as our own types are: building them runs no code.
OTHERS = ("sklearn.pipeline.Pipeline", "sklearn.preprocessing._data.StandardScaler")
# All that a predictor may hold, so that its file is opened with NumPy and the core alone.
OF_PREDICTORS = (
    "svmosaic.model.predictor.Predictor",
    "svmosaic.densities.kernel_predictor.KernelScorer",
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
# Of others, what skops does not vouch for by itself: a parameter of OneHotEncoder.
SKOPS_MAY = ("numpy.dtype",)
# Objects of types that are made of these have a content besides their attributes.
MORE_THAN_ATTRIBUTES = (tuple, dict, set, frozenset, str, bytes, int, float, complex, np.ndarray)


def trusted(path) -> bool:
    """Whether objects of this module and class are written and built without skops."""
    return path in OTHERS or path in OF_PREDICTORS or path in registry.registered


def describe(value, *, predictor=False) -> tuple[Any, dict[str, bytes]]:
    """The description of an object, and the entries that it refers to; TypeError if a predictor holds other types."""
    numbers: dict[int, int] = {}
    kept: list = []  # what has a number, so that no other object gets the same address
    entries: dict[str, bytes] = {}

    def parts(values):
        return [node(part) for part in values]

    def node(value) -> Any:
        cls = type(value)
        if value is None or cls in (bool, int, float, str):
            return value
        if cls in (list, tuple):
            return {cls.__name__: parts(value)}
        if cls is dict:
            return {"dict": [parts(item) for item in value.items()]}
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return {"scalar": add(array_bytes(value))}
        if id(value) in numbers:
            return {"same": numbers[id(value)]}
        numbers[id(value)] = len(numbers)
        kept.append(value)
        if cls is np.ndarray and value.dtype == object and value.ndim:
            return {"objects": parts(value.ravel().tolist()), "shape": list(value.shape)}
        if cls is np.ndarray and not value.dtype.hasobject:
            return {"array": add(array_bytes(value))}
        path = f"{cls.__module__}.{cls.__qualname__}"
        plain = cls.__reduce__ is object.__reduce__ and not isinstance(value, MORE_THAN_ATTRIBUTES)
        if predictor and path not in OF_PREDICTORS:
            raise TypeError(f"a predictor file cannot hold a {cls.__name__}")
        if trusted(path) and plain and isinstance(value, list):
            return {"type": path, "items": parts(value)}
        if trusted(path) and plain:
            return {"type": path, "state": node(value.__getstate__())}
        return {"skops": by_skops(value)}

    def add(content):
        number = len(entries)
        entries[f"{number}.npy"] = content
        return number

    def by_skops(value):
        import skops.io

        number = len(entries)
        with zipfile.ZipFile(io.BytesIO(skops.io.dumps(value))) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        schema, names = json.loads(found.pop("schema.json")), {}
        _renumber(schema, {}, names)
        entries.update({f"{number}/{new}": found[old] for old, new in names.items()})
        entries[f"{number}/schema.json"] = json.dumps(schema, separators=(",", ":")).encode()
        return number

    return node(value), entries


def array_bytes(array) -> bytes:
    """An array as the content of a file of numpy's."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _renumber(node, numbers, names):
    """Name the objects and entries in a description of skops by their order, where it has addresses in memory."""
    if isinstance(node, dict):
        if isinstance(node.get("__id__"), int):
            # Whether two equal numbers or texts are one object is the interpreter's business, and not kept.
            key = object() if node.get("__loader__") == "JsonNode" else node["__id__"]
            node["__id__"] = numbers.setdefault(key, len(numbers))
        if isinstance(node.get("file"), str):
            suffix = PurePosixPath(node["file"]).suffix
            node["file"] = names.setdefault(node["file"], f"{len(names)}{suffix}")
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _renumber(child, numbers, names)


def untrusted(node, entries) -> list[str]:
    """The types in a description that are not trusted, before anything is built; ValueError if it makes no sense."""
    if isinstance(node, list):
        return sorted({name for part in node for name in untrusted(part, entries)})
    if not isinstance(node, dict):
        return []
    found = [name for part in node.values() for name in untrusted(part, entries)]
    if "type" in node and not trusted(node["type"]):
        found.append(str(node["type"]))
    if "skops" in node:
        import skops.io

        held = skops.io.get_untrusted_types(data=_archive(entries, node["skops"]))
        found += [name for name in held if name not in SKOPS_MAY and not trusted(name)]
    return found


def build(node, entries):
    """The object of a description, all of whose types are trusted."""
    built: list = []

    def made(node):
        if isinstance(node, list):
            raise ValueError("a list has no kind")
        if not isinstance(node, dict):
            return node
        kind = next(iter(node))
        content = node[kind]
        if kind in ("list", "tuple"):
            return (list if kind == "list" else tuple)(map(made, content))
        if kind == "dict":
            return {made(key): made(part) for key, part in content}
        if kind == "scalar":
            return array(content)[()]
        if kind == "same":
            return built[content]
        number = len(built)
        built.append(None)
        if kind == "array":
            value = array(content)
        elif kind == "objects":
            value = np.empty(len(content), dtype=object)
            for k, part in enumerate(content):  # which may be lists, that an assignment of all would unpack
                value[k] = made(part)
            value = value.reshape(node["shape"])
        elif kind == "skops":
            import skops.io

            data = _archive(entries, content)
            # Those that it holds, not all that are trusted: skops goes through the list at every node.
            value = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
        elif kind == "type":
            value = instance(find_type(content), node)
        else:
            raise ValueError(f"there is no kind {kind!r}")
        built[number] = value
        return value

    def array(number):
        return np.load(io.BytesIO(entries[f"{int(number)}.npy"]), allow_pickle=False)

    def instance(cls, node):
        if "items" in node:
            if not issubclass(cls, list):
                raise ValueError(f"{cls.__name__} is no list")
            return cls(map(made, node["items"]))
        value, state = cls.__new__(cls), made(node["state"])
        if hasattr(value, "__setstate__"):
            value.__setstate__(state)
        elif state is not None:
            vars(value).update(state)
        return value

    return made(node)


def _archive(entries, number) -> bytes:
    """The archive that skops wrote, of its entries."""
    content, prefix = io.BytesIO(), f"{int(number)}/"
    with zipfile.ZipFile(content, "w") as archive:
        for name, entry in entries.items():
            if name.startswith(prefix):
                archive.writestr(name.removeprefix(prefix), entry)
    return content.getvalue()
