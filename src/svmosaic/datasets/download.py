"""Downloads over HTTP: resumed after an interruption, checked, and in place only when complete."""

import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from svmosaic.atomic import write_text

_CHUNK = 1 << 16
_ATTEMPTS = 4
_TIMEOUT = 30  # seconds without a byte


class DownloadError(OSError):
    """A file could not be downloaded, or is not the expected one.

    See Also
    --------
    svmosaic.datasets.load : Raises it.
    """


def fetch(url, path, *, checksum=None, progress=None):
    """Download `url` to `path`, unless it is there.

    What has arrived is kept in `path`.part: the next attempt, in this call or a later one, asks for the rest only, on
    condition that the file has not changed at the server (If-Range). The file gets its name when it is complete and
    right.

    Parameters
    ----------
    url : str
    path : path
    checksum : str, optional
        As "sha256:..." or "md5:...". Where none is known the SHA-256 of the first download is kept in `path`.sha256,
        and later downloads are compared with that.
    progress : bool, optional
        Draw a bar on standard error; by default if that is a terminal.

    Returns
    -------
    Path
    """
    path = Path(path)
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"only http and https are downloaded, not {url}")
    with locked(path):
        if not path.exists():
            _download(url, path, sys.stderr.isatty() if progress is None else progress)
            _check(url, _beside(path, ".part"), path, checksum)
            os.replace(_beside(path, ".part"), path)
            _beside(path, ".part.json").unlink(missing_ok=True)
    return path


def digest(path, method="sha256"):
    """Checksum of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, method).hexdigest()


@contextmanager
def locked(path):
    """Keep other processes from writing the same file; where the system has no such locks, do without."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(_beside(path, ".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _beside(path, suffix):
    return path.with_name(path.name + suffix)


def _download(url, path, progress):
    part = _beside(path, ".part")
    for attempt in range(1, _ATTEMPTS + 1):
        before = part.stat().st_size if part.exists() else 0
        try:
            return _receive(url, part, _beside(path, ".part.json"), progress)
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == _ATTEMPTS:
                raise DownloadError(f"{url} answers {error.code} {error.reason}") from error
        except (OSError, HTTPException) as error:
            # Interrupted: retry at once as long as data arrive, and give up if none do.
            arrived = part.stat().st_size if part.exists() else 0
            if attempt == _ATTEMPTS or (arrived <= before and isinstance(error, urllib.error.URLError)):
                reason = getattr(error, "reason", error)
                kept = f"; {arrived} bytes are kept, and the next attempt resumes from there" if arrived else ""
                raise DownloadError(f"{url} could not be downloaded: {reason}{kept}") from error
        time.sleep(0.1 * attempt)


def _receive(url, part, notes, progress):
    """One request: the rest of `part`, or all of it."""
    have = part.stat().st_size if part.exists() else 0
    tag = json.loads(notes.read_text()).get("tag") if notes.exists() else None
    request = urllib.request.Request(url, headers={"User-Agent": "svmosaic", "Accept-Encoding": "identity"})
    if have and tag:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", tag)
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # the range is not there: what we have is of no use
            raise
        part.unlink()
        return _receive(url, part, notes, progress)
    with response:
        goes_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if response.status == 206 and not goes_on:
            part.unlink()
            raise DownloadError(f"{url} answers with another range than bytes {have}-")
        have = have if goes_on else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else have + int(length)
        # A weak ETag promises less than equal bytes.
        tag = response.headers.get("ETag", "W/")
        tag = response.headers.get("Last-Modified") if tag.startswith("W/") else tag
        write_text(notes, json.dumps({"url": url, "tag": tag}))
        with open(part, "ab" if goes_on else "wb") as file, _bar(url, have, total, progress) as advance:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                have += len(chunk)
                advance(len(chunk))
    if total is not None and have != total:
        raise DownloadError(f"the connection was lost after {have} of {total} bytes")


def _check(url, part, path, checksum):
    recorded = _beside(path, ".sha256")
    if checksum is None and recorded.exists():
        checksum = f"sha256:{recorded.read_text().split()[0]}"
        remedy = f"If the new file is right, delete {recorded} and load again"
    else:
        remedy = "Load again; if it stays so, the file at the source has changed"
    if checksum is not None:
        method, wanted = checksum.split(":")
        found = digest(part, method)
        if found != wanted:
            part.unlink()
            _beside(path, ".part.json").unlink(missing_ok=True)
            raise DownloadError(f"{url} has the {method} checksum {found}, but {wanted} was expected. {remedy}.")
    write_text(recorded, f"{digest(part)}  {path.name}\n")


@contextmanager
def _bar(url, have, total, progress):
    if not progress:
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=console.is_terminal) as bar:
        task = bar.add_task(url.rsplit("/", 1)[-1], total=total, completed=have)
        yield lambda n: bar.advance(task, n)
