"""Models in files that can be opened without trusting whoever sent them.

A file is the archive that skops writes (a zip of plain arrays and of a description in JSON, never a pickle) with one
more entry, `svmosaic.json`, which names the version that wrote it. Nothing in it is run: types outside a fixed list are
refused before anything is built.
"""

import inspect
import io
import json
import os
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from svmosaic._version import __version__
from svmosaic.atomic import write_bytes
from svmosaic.export import plain_files
from svmosaic.model import registry

# Raise when older versions could not make sense of a new file; files of all lower formats stay readable.
FORMAT = 2
HEADER = "svmosaic.json"
MOST_HEADER_BYTES = 10_000
# Entries are compressed, unless that makes them smaller by more than this: a file that claims to hold more is refused
# before it is unpacked, however large it says that it is.
MOST_TIMES = 50

# Types of others that skops does not vouch for by itself, as it does for numpy's and scikit-learn's.
OTHERS = ("numpy.dtype",)  # a parameter of OneHotEncoder


class ModelFileError(ValueError):
    """A file is not a model, or not one that this version can open.

    See Also
    --------
    svmosaic.load : Raises it.
    """


def save(estimator, path):
    """Write a fitted estimator, or a pipeline that holds one, to a file.

    The file gets its name only when it is complete: after a crash, an existing file is unchanged. Saving a
    model twice gives the same bytes.

    Parameters
    ----------
    estimator : estimator
    path : str or path

    See Also
    --------
    svmosaic.load : Reads the file.
    save_predictor : Writes a predictor only.
    """
    import sklearn

    try:
        schema, entries = plain_files.describe(estimator)
    except plain_files.NotPlain:
        schema, entries = _described_by_skops(estimator)
    header = {"format": FORMAT, "svmosaic": __version__, "scikit-learn": sklearn.__version__}
    _write(path, {**_reproducible(schema, entries), HEADER: json.dumps(header).encode()})


def _described_by_skops(estimator):
    import skops.io

    content = skops.io.dumps(estimator)
    unknown = _untrusted(skops.io.get_untrusted_types(data=content))
    if unknown:
        raise ModelFileError(
            f"{type(estimator).__name__} holds objects that could not be loaded again, of type {', '.join(unknown)}: "
            "give it scikit-learn's own transformers and clusterers, or arrays"
        )
    entries = _entries(content)
    return json.loads(entries.pop("schema.json")), entries


def save_predictor(predictor, path):
    """Write the result of a model's `predictor()` to a file that `load` opens without scikit-learn.

    Parameters
    ----------
    predictor : Predictor or TablePredictor
        The model's gate and feature map must be implemented in the core.
    path : str or path

    See Also
    --------
    svmosaic.load : Reads the file.
    save : Writes the whole model.
    """
    from svmosaic.export.predictor_files import entries_of

    try:
        entries = entries_of(predictor)
    except TypeError as error:
        raise ModelFileError(f"this {type(predictor).__name__} cannot be written: {error}") from error
    header = {"format": FORMAT, "svmosaic": __version__, "kind": "predictor"}
    _write(path, {**entries, HEADER: json.dumps(header).encode()})


def _reproducible(schema, entries) -> dict[str, bytes]:
    """The entries of an archive that are the same whenever and wherever they are written.

    In descriptions, arrays are named by their addresses in memory, and objects numbered by them, to know those that
    come twice. Here they are numbered in the order of the description.
    """
    numbers: dict = {}
    names: dict = {}
    _number_objects(schema, numbers, names)
    arrays = {new: entries[name] for name, new in names.items()}
    return {**arrays, "schema.json": json.dumps(schema, separators=(",", ":")).encode()}


def _number_objects(node, numbers, names):
    """Give the objects in a node of the description, and below, numbers in the order in which they come."""
    if isinstance(node, dict):
        if isinstance(node.get("__id__"), int):
            # Whether two equal numbers or texts are one object is the interpreter's business, and not kept.
            key = object() if node.get("__loader__") == "JsonNode" else node["__id__"]
            node["__id__"] = numbers.setdefault(key, len(numbers))
        if isinstance(node.get("file"), str):
            suffix = PurePosixPath(node["file"]).suffix
            node["file"] = names.setdefault(node["file"], f"{len(names)}{suffix}")
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _number_objects(child, numbers, names)


def _write(path, entries):
    """An archive of entries at the beginning of the zip format's time, compressed if that is worth it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, entry in entries.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o600 << 16
            if len(entry) / MOST_TIMES < len(zlib.compress(entry)) < 0.9 * len(entry):
                info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry)
    write_bytes(path, content.getbuffer())


def _entries(data) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def load(path):
    """Read an estimator that `save` wrote, or a predictor that `save_predictor` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator, or predictor
        As it was saved; parameters of an estimator that were added in later versions have their default values. A
        predictor is opened without scikit-learn.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, comes from a newer version, or contains types that are not trusted. No
        code from the file is executed.

    See Also
    --------
    svmosaic.export.files.save : Writes an estimator.
    svmosaic.export.files.save_predictor : Writes a predictor.
    """
    path = Path(path)
    with open(path, "rb") as file:
        _check_head(path, file)
        data = file.read()  # once: what is checked is what is opened, whatever becomes of the file meanwhile
    if _check_archive(path, data).get("kind") == "predictor":
        return _load_predictor(path, data)
    try:
        entries = _entries(data)
        schema = json.loads(entries["schema.json"])
        make = _checked(path, schema, entries)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: its description is invalid ({error})") from error
    try:
        estimator = make()
        _fill_in_defaults(estimator)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: it could not be restored ({error})") from error
    if not hasattr(estimator, "predict"):
        raise ModelFileError(f"{path} is not a model: it holds an object of type {type(estimator).__name__}")
    return estimator


def _checked(path, schema, entries):
    """A function that builds the model, all of whose types are trusted."""
    if plain_files.is_plain(schema):
        return lambda: plain_files.build(schema, entries.__getitem__)
    import skops.io

    renamed = io.BytesIO()
    with zipfile.ZipFile(renamed, "w") as archive:
        for name, content in {**entries, "schema.json": json.dumps(schema)}.items():
            archive.writestr(name, content)
    data = renamed.getvalue()
    held = skops.io.get_untrusted_types(data=data)
    unknown = _untrusted(held)
    if unknown:
        raise ModelFileError(f"{path} holds types that are not trusted, so it was not opened: {', '.join(unknown)}")
    # Those that it holds, not all that are trusted: skops goes through the list at every node.
    return lambda: skops.io.loads(data, trusted=held)


def _load_predictor(path, data):
    from svmosaic.export.predictor_files import predictor_of

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return predictor_of(archive)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: its predictor could not be restored ({error})") from error


def _check_head(path, file):
    """Refuse what cannot be a model before it is read into memory, however long it is."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise ModelFileError(f"{path} is not a regular file: copy the model into one")
    start = file.read(2)
    if start[:1] == b"\x80":
        raise ModelFileError(f"{path} is a pickle, which can run any code when opened; only files of save() are read")
    if start != b"PK":
        raise ModelFileError(f"{path} is not a model saved by svmosaic")
    try:
        with zipfile.ZipFile(file) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError) as error:
        raise ModelFileError(f"{path} is truncated or damaged ({error})") from error
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in found):
        raise ModelFileError(f"{path} is not a model saved by svmosaic: its entries are compressed in another way")
    entries = {entry.filename: entry.file_size for entry in found}
    if HEADER not in entries:
        raise ModelFileError(f"{path} is not a model saved by svmosaic: it has no entry {HEADER}")
    size = os.fstat(file.fileno()).st_size
    too_large = any(entry.file_size > MOST_TIMES * max(entry.compress_size, 1) for entry in found)
    if entries[HEADER] > MOST_HEADER_BYTES or too_large or sum(entry.compress_size for entry in found) > size:
        raise ModelFileError(f"{path} is damaged: its entries are larger than they can be")
    file.seek(0)


def _check_archive(path, data):
    """The header of an archive of ours, undamaged, from this version or before; everything else is refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            broken = archive.testzip()
            if broken is not None:
                raise ModelFileError(f"{path} is damaged: entry {broken} has a wrong checksum")
            for name in {HEADER, "schema.json"} & set(archive.namelist()):
                # Written as ASCII; other encodings would be guessed, and the module that decodes them imported.
                content = archive.read(name)
                if not content.isascii() or b"\0" in content:
                    raise ModelFileError(f"{path} is damaged: its entry {name} is not plain text")
            header = json.loads(archive.read(HEADER))
            written, version = header["format"], header["svmosaic"]
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        # Python raises these for offsets before the start of the file, passwords, and unknown compression methods.
        raise ModelFileError(f"{path} is truncated or damaged ({error})") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is damaged: its entry {HEADER} is invalid") from error
    if not isinstance(written, int) or written > FORMAT:
        raise ModelFileError(
            f"{path} was written by svmosaic {version} in format {written}, newer than the format {FORMAT} of this "
            f"version ({__version__}): upgrade svmosaic to open it"
        )
    return header


def _untrusted(names):
    return [name for name in names if name not in OTHERS and not registry.is_registered(name)]


def _fill_in_defaults(estimator):
    """Parameters that came after the version that wrote the file."""
    inside = getattr(estimator, "pipeline", estimator)
    for step in [estimator, *(step for _, step in getattr(inside, "steps", []))]:
        if type(step).__module__.startswith("svmosaic."):
            for name, parameter in inspect.signature(type(step)).parameters.items():
                if name not in vars(step) and parameter.default is not parameter.empty:
                    setattr(step, name, parameter.default)
