"""Models in files that can be opened without trusting whoever sent them.

A file is a zip archive of arrays and of a description in JSON, `schema.json` (see `svmosaic.export.codec`), never a
pickle; the entry `svmosaic.json` names the version that wrote it. Nothing in it is run: types outside a fixed list are
refused before anything is built.
"""

import io
import json
import os
import stat
import zipfile
import zlib
from pathlib import Path

from svmosaic._version import __version__
from svmosaic.atomic import write_bytes
from svmosaic.export import codec

# Raise when older versions could not make sense of a new file.
FORMAT = 3
HEADER = "svmosaic.json"
MOST_HEADER_BYTES = 10_000
# Entries are compressed, unless that makes them smaller by more than this: a file that claims to hold more is refused
# before it is unpacked, however large it says that it is.
MOST_TIMES = 50


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
    schema, entries = codec.describe(estimator)
    unknown = codec.untrusted(schema, entries)
    if unknown:
        raise ModelFileError(
            f"{type(estimator).__name__} holds objects that could not be loaded again, of type {', '.join(unknown)}: "
            "give it scikit-learn's own transformers and clusterers, or arrays"
        )
    import sklearn

    _write(path, schema, entries, {"scikit-learn": sklearn.__version__})


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
    try:
        schema, entries = codec.describe(predictor, predictor=True)
    except TypeError as error:
        raise ModelFileError(f"this {type(predictor).__name__} cannot be written: {error}") from error
    _write(path, schema, entries, {})


def _write(path, schema, entries, versions):
    """An archive of entries at the beginning of the zip format's time, compressed if that is worth it."""
    content, header = io.BytesIO(), {"format": FORMAT, "svmosaic": __version__, **versions}
    entries = {**entries, "schema.json": json.dumps(schema, separators=(",", ":")).encode()}
    entries[HEADER] = json.dumps(header).encode()
    with zipfile.ZipFile(content, "w") as archive:
        for name, entry in entries.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o600 << 16
            if len(entry) / MOST_TIMES < len(zlib.compress(entry)) < 0.9 * len(entry):
                info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry)
    write_bytes(path, content.getbuffer())


def load(path):
    """Read an estimator that `save` wrote, or a predictor that `save_predictor` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator, or predictor
        As it was saved. A predictor is opened without scikit-learn.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, is of another format, or contains types that are not trusted. No code
        from the file is executed.

    See Also
    --------
    svmosaic.export.files.save : Writes an estimator.
    svmosaic.export.files.save_predictor : Writes a predictor.
    """
    path = Path(path)
    with open(path, "rb") as file:
        _check_head(path, file)
        data = file.read()  # once: what is checked is what is opened, whatever becomes of the file meanwhile
    entries = _check_archive(path, data)
    try:
        schema = json.loads(entries["schema.json"])
        unknown = codec.untrusted(schema, entries)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: its description is invalid ({error})") from error
    if unknown:
        raise ModelFileError(f"{path} holds types that are not trusted, so it was not opened: {', '.join(unknown)}")
    try:
        model = codec.build(schema, entries)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: it could not be restored ({error})") from error
    if not hasattr(model, "predict"):
        raise ModelFileError(f"{path} is not a model: it holds an object of type {type(model).__name__}")
    return model


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


def _check_archive(path, data) -> dict[str, bytes]:
    """The entries of an archive of ours, undamaged, and of the format of this version; all else is refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            broken = archive.testzip()
            entries = (
                {} if broken is not None else {entry.filename: archive.read(entry) for entry in archive.infolist()}
            )
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
        # Python raises these for offsets before the start of the file, passwords, and unknown compression methods.
        raise ModelFileError(f"{path} is truncated or damaged ({error})") from error
    if broken is not None:
        raise ModelFileError(f"{path} is damaged: entry {broken} has a wrong checksum")
    for name, content in entries.items():
        # Written as ASCII; other encodings would be guessed, and the module that decodes them imported.
        if name.endswith(".json") and (not content.isascii() or b"\0" in content):
            raise ModelFileError(f"{path} is damaged: its entry {name} is not plain text")
    try:
        header = json.loads(entries[HEADER])
        written, version = int(header["format"]), header["svmosaic"]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its entry {HEADER} is invalid") from error
    if written != FORMAT:
        remedy = "upgrade svmosaic to open it" if written > FORMAT else "save the model again"
        raise ModelFileError(
            f"{path} was written by svmosaic {version} in format {written}, not the format {FORMAT} of this version "
            f"({__version__}): {remedy}"
        )
    return entries
