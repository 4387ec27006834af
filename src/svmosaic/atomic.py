"""Writing files so that a reader sees the old content or the new one, never a part of it."""

import _thread
import errno
import hashlib
import os
import re
import secrets
import signal
import stat
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: temporaries of a killed process stay until somebody removes them
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".svmosaic-"
# Errors that name no file: a full disk, a quota, a limit on the size of files.
_NO_ROOM = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)}
# Where Linux and macOS list the open files of a process; a path there names a descriptor, not a file.
_DESCRIPTOR = re.compile(r"(?:/proc/self/fd|/dev/fd)/(\d+)")

# Seconds until a signal whose exception got lost raises it again.
_REPEATED_AFTER = 0.2


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised as an exception so that whatever is being written is cleaned up."""


def write_bytes(path, content):
    """Write a whole file; see `written`.

    Parameters
    ----------
    path : str or path
    content : bytes
    """
    with written(path) as temporary:
        temporary.write_bytes(content)


def write_text(path, content):
    """Write a whole file as UTF-8 with newlines as they are; see `written`.

    Parameters
    ----------
    path : str or path
    content : str
    """
    write_bytes(path, content.encode("utf-8"))


def check_output(path, inputs=()):
    """Refuse an output that could not be written at the end, or would replace an input.

    Parameters
    ----------
    path : str or path
    inputs : iterable of str, path or None
        What is read. None and "-" (the standard input) are passed over.
    """
    path = Path(path)
    kind = _kind(path)
    if kind is not None and stat.S_ISDIR(kind.st_mode):
        raise IsADirectoryError(f"{path} is a folder: name a file to write")
    if kind is not None and not (stat.S_ISREG(kind.st_mode) or _is_stream(kind)):
        raise ValueError(f"{path} is a block device or a socket: name a file to write")
    folder = Path(os.path.realpath(path)).parent
    if kind is None and not folder.is_dir():
        place = folder if path.is_symlink() else path.parent
        raise FileNotFoundError(f"there is no folder {place} to write {path.name} in")
    for source in inputs:
        if source is None or str(source) == "-":
            continue
        if os.path.realpath(source) == os.path.realpath(path) or _same_file(source, kind):
            raise ValueError(f"{path} would replace {source}, which is read: name another file to write")


@contextmanager
def written(path):
    """A path to write to, whose content becomes that of `path` when the block ends without an exception.

    A regular file is replaced in one step, after its content has reached the disk; it keeps its mode and owner, and
    symbolic links are followed. A pipe, a terminal or another character device is written into. An exception, Ctrl-C or
    SIGTERM leaves what was there before and no temporary file. Temporaries of the same target that a killed process
    left are removed.

    Parameters
    ----------
    path : str or path

    Yields
    ------
    Path
        Of an empty file with the suffix of `path`, since some writers choose the format by it.
    """
    path = Path(path)
    check_output(path)
    try:
        with _replaced(path) as temporary:
            yield temporary
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


@contextmanager
def _replaced(path):
    kind = _kind(path)
    descriptor = _descriptor(path)
    if descriptor is not None or (kind is not None and _is_stream(kind)):
        with tempfile.TemporaryDirectory(prefix=_PREFIX[1:]) as folder, _sigterm_unwinds():
            temporary = Path(folder, f"output{path.suffix}")
            temporary.touch()
            yield temporary
            _copy_into(temporary, path, descriptor)
        return
    target = Path(os.path.realpath(path))
    prefix = f"{_PREFIX}{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"
    _remove_stale(target.parent, prefix)
    with _sigterm_unwinds():
        temporary, handle = _create(target, prefix, kind)
        try:
            yield temporary
            # The writer may have opened the path anew, but the descriptor is of the same file.
            os.fsync(handle)
            os.replace(temporary, target)
            _sync_folder(target.parent)
        finally:
            os.close(handle)
            temporary.unlink(missing_ok=True)


@contextmanager
def signal_raises(name, exception, instead_of):
    """In this block, the signal raises the exception, provided that its handler is `instead_of`.

    It does so until the exception has left the block: Python and others lose one that comes at the wrong moment, such
    as while `int("x")` composes the message of its ValueError.
    """
    number = getattr(signal, name, None)
    free = number is not None and threading.current_thread() is threading.main_thread()
    if not free or signal.getsignal(number) is not instead_of:
        yield
        return
    left, repeating = threading.Event(), False

    def repeat():
        while not left.wait(_REPEATED_AFTER):
            _thread.interrupt_main(number)

    def handle(*_):
        nonlocal repeating
        if _is_handled(exception):  # whoever cleans up is left in peace
            return
        if not repeating:
            repeating = True
            _thread.start_new_thread(repeat, ())  # threading takes locks, which the interrupted code may hold
        raise exception

    signal.signal(number, handle)
    try:
        yield
    finally:
        left.set()
        signal.signal(number, instead_of)


def _is_handled(kind) -> bool:
    """Whether an `except` or `finally` block that was entered by such an exception is being executed."""
    error = sys.exception()
    while error is not None and not isinstance(error, kind):
        error = error.__context__
    return error is not None


def terminated_by_exception():
    """SIGTERM raises `Terminated` in this block, if it would end the process without a word otherwise."""
    return signal_raises("SIGTERM", Terminated, signal.SIG_DFL)


@contextmanager
def _sigterm_unwinds():
    """SIGTERM ends the process as ever, once the block has cleaned up."""
    try:
        with terminated_by_exception():
            yield
    except Terminated:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # not handled further up
            os.kill(os.getpid(), signal.SIGTERM)
        raise


def _kind(path):
    """What a path leads to; None if it does not exist."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} in") from None


def _is_stream(kind) -> bool:
    return stat.S_ISCHR(kind.st_mode) or stat.S_ISFIFO(kind.st_mode)


def _same_file(source, kind) -> bool:
    """Whether an input is the same file under another name (a hard link)."""
    if kind is None:
        return False
    with suppress(OSError):
        return os.path.samestat(os.stat(source), kind)
    return False


def _descriptor(path):
    """The open file that a path such as /dev/stdout names, or None."""
    name = os.path.abspath(path)
    for _ in range(40):
        found = _DESCRIPTOR.fullmatch(name)
        if found is not None:
            return int(found[1])
        if not os.path.islink(name):
            return None
        name = os.path.normpath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


def _copy_into(source, path, descriptor):
    """Write a finished file into something that must stay what it is."""
    # A copy of the descriptor, so that output continues at the current position if it is redirected to a file.
    handle = os.dup(descriptor) if descriptor is not None else os.open(path, os.O_WRONLY)
    with os.fdopen(handle, "wb") as output, open(source, "rb") as content:
        while block := content.read(1 << 20):
            output.write(block)


def _create(target, prefix, kind):
    """An empty, locked temporary file next to the target, with the mode and owner of the file that it will replace."""
    mode = 0o666 if kind is None else stat.S_IMODE(kind.st_mode)
    while True:
        temporary = target.with_name(f"{prefix}{secrets.token_hex(6)}{target.suffix[:16]}")
        # The system applies the umask. The mode is right from the start: a private file is never public in between.
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
        except OSError as error:  # which would name a file that nobody has heard of
            raise type(error)(error.errno, error.strerror, str(target)) from None
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # not taken for a stale one before it was locked
            break
        os.close(handle)
    if kind is not None and hasattr(os, "fchown"):
        with suppress(PermissionError):
            os.fchown(handle, kind.st_uid, kind.st_gid)
        with suppress(PermissionError):
            os.fchmod(handle, mode)
    return temporary, handle


def _remove_stale(folder, prefix):
    """Remove temporaries that nobody holds a lock on: the process that wrote them was killed."""
    if fcntl is None:
        return
    for temporary in folder.glob(f"{prefix}*"):
        with suppress(OSError):  # of another user, or finished meanwhile
            handle = os.open(temporary, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                temporary.unlink()
            finally:
                os.close(handle)


def _sync_folder(folder):
    """Put the new name on disk too, where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
