"""Downloads: resumed, checked, complete or not there."""

import hashlib
import os
import threading

import numpy as np
import pytest
from web import serve

from svmosaic.datasets import DownloadError, download

BODY = np.random.RandomState(0).bytes(300_000)


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    with serve() as site:
        site.files["/set.bin"] = BODY
        yield site


def fetch(site, path, **options):
    return download.fetch(f"{site.url}/set.bin", path, **options)


def leftovers(folder):
    return sorted(name for name in os.listdir(folder) if not name.endswith(".lock"))


def test_a_file_arrives_with_its_checksum_beside_it(site, tmp_path):
    path = fetch(site, tmp_path / "new" / "set.bin")
    assert path.read_bytes() == BODY
    assert (tmp_path / "new" / "set.bin.sha256").read_text().split()[0] == hashlib.sha256(BODY).hexdigest()
    assert leftovers(tmp_path / "new") == ["set.bin", "set.bin.sha256"]
    fetch(site, path)
    assert len(site.requests) == 1, "what is there is not downloaded again"


def test_a_broken_download_goes_on_where_it_was(site, tmp_path):
    site.cut = [100_000, 50_000]
    assert fetch(site, tmp_path / "set.bin").read_bytes() == BODY
    assert [wanted for _, wanted in site.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_it_goes_on_in_a_later_call(site, tmp_path):
    site.cut = [1000, 1000, 1000, 1000]
    with pytest.raises(DownloadError, match=r"was lost after 4000 of 300000 bytes; 4000 bytes are kept"):
        fetch(site, tmp_path / "set.bin")
    assert not (tmp_path / "set.bin").exists()
    assert (tmp_path / "set.bin.part").stat().st_size == 4000
    assert fetch(site, tmp_path / "set.bin").read_bytes() == BODY
    assert site.requests[-1][1] == "bytes=4000-"
    assert leftovers(tmp_path) == ["set.bin", "set.bin.sha256"]


def test_a_file_that_changed_meanwhile_is_taken_from_the_start(site, tmp_path):
    site.cut = [1000] * 4
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "set.bin")
    site.files["/set.bin"], site.tag = BODY[::-1], '"v2"'
    assert fetch(site, tmp_path / "set.bin").read_bytes() == BODY[::-1]


@pytest.mark.parametrize(("tag", "ranges"), [(None, True), ('W/"weak"', True), ('"v1"', False)])
def test_servers_that_cannot_resume(site, tmp_path, tag, ranges):
    site.tag, site.ranges, site.cut = tag, ranges, [100_000]
    assert fetch(site, tmp_path / "set.bin").read_bytes() == BODY


def test_a_part_longer_than_the_file_is_thrown_away(site, tmp_path):
    site.cut = [1000] * 4
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "set.bin")
    (tmp_path / "set.bin.part").write_bytes(bytes(400_000))
    assert fetch(site, tmp_path / "set.bin").read_bytes() == BODY


@pytest.mark.parametrize("method", ["sha256", "md5"])
def test_a_known_checksum_is_checked(site, tmp_path, method):
    right = f"{method}:{hashlib.new(method, BODY).hexdigest()}"
    with pytest.raises(DownloadError, match=rf"has the {method} checksum .* but 00 was expected"):
        fetch(site, tmp_path / "set.bin", checksum=f"{method}:00")
    assert leftovers(tmp_path) == []
    fetch(site, tmp_path / "set.bin", checksum=right)


def test_a_second_download_must_be_the_first(site, tmp_path):
    path = fetch(site, tmp_path / "set.bin")
    path.unlink()
    site.files["/set.bin"] = BODY[:-1] + b"?"
    with pytest.raises(DownloadError, match=r"delete .*set\.bin\.sha256"):
        fetch(site, path)
    assert not path.exists()
    (tmp_path / "set.bin.sha256").unlink()
    assert fetch(site, path).read_bytes()[-1:] == b"?"


def test_errors_of_the_server(site, tmp_path):
    with pytest.raises(DownloadError, match="answers 404"):
        download.fetch(f"{site.url}/nowhere", tmp_path / "x")
    assert len(site.requests) == 1, "asking again would not help"
    site.fail = [503, 503]
    assert fetch(site, tmp_path / "set.bin").read_bytes() == BODY


def test_nobody_there(tmp_path):
    with pytest.raises(DownloadError, match="could not be downloaded"):
        download.fetch("http://127.0.0.1:9/set.bin", tmp_path / "set.bin")
    with pytest.raises(DownloadError, match="only http and https"):
        download.fetch("file:///etc/hostname", tmp_path / "set.bin")


def test_two_at_once_download_it_once(site, tmp_path):
    threads = [threading.Thread(target=fetch, args=(site, tmp_path / "set.bin")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.requests) == 1
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_the_bar_is_drawn_on_standard_error(site, tmp_path, capsys):
    fetch(site, tmp_path / "set.bin", progress=True)
    out = capsys.readouterr()
    assert "set.bin" in out.err
    assert out.out == ""
