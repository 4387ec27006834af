"""What some tests need of the machine: where it is missing they are skipped, and say why."""

import shutil
import sys

import pytest

from papers.data import data_folder

data = pytest.mark.skipif(data_folder() is None, reason="SVMOSAIC_DATA names no folder with the data sets")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX: its signals, fork, locks, timers or limits")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: its /proc, or limits of memory")
node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node, which runs JavaScript")
