"""The models of skops files, read and written without skops if they hold only arrays and our own types.

skops imports all of scikit-learn to list the types that it trusts, which takes longer than most commands. The nodes of
its format that our own models need are few: numbers and text, lists, tuples, dicts, arrays, and objects of registered
types. A model with any other node is left to skops, which decides whether it may be opened.
"""

import io
import json

import numpy as np

from svmosaic._lazy import find_type
from svmosaic.model import registry

PROTOCOL = 2  # of the format of skops, which reads lower ones too
# What may precede our models. Both contain only what the other nodes contain, and building them runs no code.
OTHERS = ("sklearn.pipeline.Pipeline", "sklearn.preprocessing._data.StandardScaler")
SCALARS = {"bool": np.bool_, "float32": np.float32, "float64": np.float64, "int32": np.int32, "int64": np.int64}
CONTAINERS = {"DictNode": dict, "ListNode": list, "TupleNode": tuple}
# Objects of types that are made of these have a content besides their attributes.
MORE_THAN_ATTRIBUTES = (list, tuple, dict, set, frozenset, str, bytes, int, float, complex, np.ndarray)


class NotPlain(Exception):
    """A model, or the description of one, with a node that only skops knows."""


def describe(model) -> tuple[dict, dict[str, bytes]]:
    """The description that skops would write, and the files of its arrays; NotPlain if it takes skops to write it.

    Parameters
    ----------
    model : object
    """
    kept: dict = {}  # all that has an address in the description, so that no other object gets the same
    files: dict[str, bytes] = {}
    return {**_describe(model, kept, files), "protocol": PROTOCOL}, files


def _describe(value, kept, files):
    kept[id(value)] = value

    def node(loader, name=None, module="builtins", **more):
        name = type(value).__name__ if name is None else name
        return {"__class__": name, "__module__": module, "__loader__": loader, **more, "__id__": id(value)}

    def inside(parts):
        return [_describe(part, kept, files) for part in parts]

    if value is None or type(value) in (bool, int, float, str):
        return node("JsonNode", "str", content=json.dumps(value), is_json=True)
    if value is str:
        return node("TypeNode", "str")
    if type(value) in (list, tuple):
        return node(f"{type(value).__name__.capitalize()}Node", content=inside(value))
    if type(value) is dict and all(type(key) is str for key in value):
        keys = _describe([str] * len(value), kept, files)
        return node("DictNode", content=dict(zip(value, inside(value.values()), strict=True)), key_types=keys)
    if type(value) is np.ndarray and value.dtype == object and value.ndim:
        content = _describe(value.tolist(), kept, files)["content"]
        shape = _describe(value.shape, kept, files)
        return node("NdArrayNode", module="numpy", content=content, type="json", shape=shape)
    if (type(value) is np.ndarray and not value.dtype.hasobject) or type(value) in SCALARS.values():
        file = f"{id(value)}.npy"
        files[file] = array_bytes(value)
        return node("NdArrayNode", module="numpy", type="numpy", file=file)
    cls = type(value)
    if _is_trusted(cls.__module__, cls.__qualname__) and cls.__reduce__ is object.__reduce__:
        if isinstance(value, list) and not vars(value):
            return node("ListNode", module=cls.__module__, content=inside(value))
        if not isinstance(value, MORE_THAN_ATTRIBUTES):
            return node("ObjectNode", module=cls.__module__, content=_describe(value.__getstate__(), kept, files))
    raise NotPlain


def array_bytes(array) -> bytes:
    """An array as the content of a file of numpy's."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def is_plain(node, root=True) -> bool:
    """Whether a node of a description, and all below, are of kinds and types that `build` knows.

    Parameters
    ----------
    node : dict
    root : bool, default=True
        Whether it is the whole description.
    """
    if root and node["protocol"] != PROTOCOL:
        return False
    module, name, loader = node["__module__"], node["__class__"], node["__loader__"]
    children: list = []
    if loader == "JsonNode":
        known = True
    elif loader == "TypeNode":
        known = (module, name) == ("builtins", "str")
    elif loader in CONTAINERS:
        known = (module, name) == ("builtins", CONTAINERS[loader].__name__)
        known = known or (loader == "ListNode" and _is_trusted(module, name))
        is_dict = loader == "DictNode"
        children = [*node["content"].values(), node["key_types"]] if is_dict else node["content"]
    elif loader == "ObjectNode":
        known, children = _is_trusted(module, name), [node["content"]]
    elif loader == "NdArrayNode" and node["type"] == "json":
        known, children = (module, name) == ("numpy", "ndarray"), [*node["content"], node["shape"]]
    else:
        known = (loader, node.get("type"), module) == ("NdArrayNode", "numpy", "numpy")
        known = known and (name == "ndarray" or name in SCALARS)
    return known and all(is_plain(child, root=False) for child in children)


def _is_trusted(module, name) -> bool:
    path = f"{module}.{name}"
    return path in OTHERS or registry.is_registered(path)


def build(node, read, built=None):
    """The object of a description for which `is_plain` is true.

    Parameters
    ----------
    node : dict
    read : callable
        The content of a file of the archive, by its name.
    built : dict, optional
        Objects by their numbers: one that is described in several places is built once.
    """
    number, built = node.get("__id__"), {} if built is None else built
    if number is None or number not in built:
        built[number] = _build_new(node, read, built)
    return built[number]


def _build_new(node, read, built):
    loader, content = node["__loader__"], node.get("content")
    if loader == "JsonNode":
        return json.loads(content)
    if loader == "DictNode":
        return {key: build(part, read, built) for key, part in content.items()}
    if loader in ("ListNode", "TupleNode"):
        cls = CONTAINERS[loader]
        if node["__module__"] != "builtins":
            own = find_type(f"{node['__module__']}.{node['__class__']}")
            if not issubclass(own, cls):
                raise ValueError(f"{own.__name__} is no {cls.__name__}")
            cls = own
        return cls([build(part, read, built) for part in content])
    if loader == "ObjectNode":
        cls = find_type(f"{node['__module__']}.{node['__class__']}")
        model, state = cls.__new__(cls), build(content, read, built)
        if hasattr(model, "__setstate__"):
            model.__setstate__(state)
        elif state is not None:
            vars(model).update(state)
        return model
    if node["type"] == "numpy":
        array = np.load(io.BytesIO(read(node["file"])), allow_pickle=False)
        return array if node["__class__"] == "ndarray" else SCALARS[node["__class__"]](array)
    shape, items = build(node["shape"], read, built), [build(part, read, built) for part in content]
    if len(shape) > 1:
        return np.array(items, dtype=object)
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):  # which may be lists, that an assignment of all would unpack
        array[place] = item
    return array
