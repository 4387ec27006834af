"""Writing files so that a reader sees the old content or the new one, never a part of it."""

import errno
import os
import re
import secrets
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

# A path that names an open file of this process, wherever its output goes.
_DESCRIPTOR = re.compile(r"/dev/(std(?:out|err))|(?:/proc/self/fd|/dev/fd)/(\d+)")


def write_bytes(path, content):
    """Write a whole file; see `written`."""
    with written(path) as temporary:
        temporary.write_bytes(content)


def write_text(path, content):
    """Write a whole file as UTF-8 with newlines as they are; see `written`."""
    write_bytes(path, content.encode("utf-8"))


@contextmanager
def written(path):
    """A path to an empty file with the same suffix, whose content becomes that of `path` when the block ends well.

    A regular file is replaced in one step, after its content has reached the disk; it keeps its mode and owner, and
    symbolic links are followed. A pipe, a terminal or another character device is written into. An exception, Ctrl-C
    too, leaves what was there before and no temporary file.
    """
    path = Path(path)
    check_output(path)
    kind, target = _kind(path), Path(os.path.realpath(path))
    descriptor = _DESCRIPTOR.fullmatch(os.path.abspath(path))
    special = descriptor is not None or (kind is not None and not stat.S_ISREG(kind.st_mode))
    folder = Path(tempfile.gettempdir()) if special else target.parent
    temporary = folder / f".svmosaic-{secrets.token_hex(8)}{path.suffix[:16]}"
    # The system applies the umask. The mode is right from the start: a private file is never public in between.
    mode = 0o600 if special else 0o666 if kind is None else stat.S_IMODE(kind.st_mode)
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except OSError as error:  # which would name a file that nobody has heard of
        raise type(error)(error.errno, error.strerror, str(target)) from None
    try:
        if kind is not None and not special:
            with suppress(PermissionError, AttributeError):
                os.chown(temporary, kind.st_uid, kind.st_gid)
            temporary.chmod(mode)
        yield temporary
        with open(temporary, "rb+") as content:
            os.fsync(content.fileno())
            if special:
                # A copy of the descriptor, so that output continues at the current position if it goes to a file.
                number = descriptor and {"stdout": 1, "stderr": 2}.get(descriptor[1], descriptor[2])
                handle = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(int(number))
                with os.fdopen(handle, "wb") as output:
                    while block := content.read(1 << 20):
                        output.write(block)
        if not special:
            os.replace(temporary, target)
    except OSError as error:
        # A full disk, a quota, and a limit on the size of files name no file.
        if error.filename is None and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None), errno.EFBIG):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def check_output(path, inputs=()):
    """Refuse an output that could not be written at the end, or would replace an input (None and "-" are none)."""
    path = Path(path)
    kind = _kind(path)
    if kind is not None and stat.S_ISDIR(kind.st_mode):
        raise IsADirectoryError(f"{path} is a folder: name a file to write")
    if kind is not None and not any(known(kind.st_mode) for known in (stat.S_ISREG, stat.S_ISCHR, stat.S_ISFIFO)):
        raise ValueError(f"{path} is a block device or a socket: name a file to write")
    folder = Path(os.path.realpath(path)).parent
    if kind is None and not folder.is_dir():
        place = folder if path.is_symlink() else path.parent
        raise FileNotFoundError(f"there is no folder {place} to write {path.name} in")
    for source in inputs:
        if source is None or str(source) == "-":
            continue
        same = os.path.realpath(source) == os.path.realpath(path)
        with suppress(OSError):  # the same file under another name (a hard link)
            same = same or (kind is not None and os.path.samestat(os.stat(source), kind))
        if same:
            raise ValueError(f"{path} would replace {source}, which is read: name another file to write")


def _kind(path):
    """The stat of what a path leads to; None if it does not exist."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} in") from None
