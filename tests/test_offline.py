"""No network at import, fit or prediction; a full disk leaves the old file."""

import subprocess
import sys
import textwrap

import needs

BLOCKED = """
    import socket, sys

    def refuse(event, args):
        if event.startswith("socket.") and event != "socket.__new__" or event.startswith("urllib."):
            raise SystemExit("the network was touched: " + event)

    sys.addaudithook(refuse)
    import inspect, warnings
    import numpy as np
    import svmosaic, svmosaic.export.files, svmosaic.datasets, svmosaic.cli
    from sklearn.base import BaseEstimator
    warnings.simplefilter("ignore")
    X, y = svmosaic.datasets.make_xor(random_state=0)
    for name in svmosaic.__all__:
        estimator = getattr(svmosaic, name)
        if inspect.isclass(estimator) and issubclass(estimator, BaseEstimator) and name not in {skipped!r}:
            estimator().fit(X[:60], y[:60]).predict(X)
    print("offline")
"""
# They search for their parts and take minutes; what they search among is tried here.
SKIPPED = ("FusedSVC", "MosaicClassifier", "MosaicRegressor")


def run(script, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300, **options
    )


def test_no_network_at_import_fit_or_prediction():
    found = run(BLOCKED.format(skipped=SKIPPED))
    assert found.stdout == "offline\n", found.stdout + found.stderr


FULL = """
    import os, resource, signal
    import numpy as np
    from svmosaic import LinearSVC

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing past the limit is then an OSError, as on a full disk
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((60, 400)), np.arange(60) % 3
    model = LinearSVC(random_state=0).fit(X[:, :3], y)
    model.save("model.svmosaic")
    before = open("model.svmosaic", "rb").read()
    large = LinearSVC(random_state=0).fit(X, y)
    for limit in range({first}, {last}, 700):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            large.save("model.svmosaic")
        except OSError as error:
            assert "File too large" in str(error), error
        else:
            raise SystemExit(f"{{limit}} bytes were enough")
        assert open("model.svmosaic", "rb").read() == before, "the old file changed"
        assert os.listdir(".") == ["model.svmosaic"], os.listdir(".")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    large.save("model.svmosaic")
    print("kept")
"""


@needs.posix
def test_a_full_disk_leaves_the_old_file(tmp_path):
    """Wherever in the file the room ends: in the first array, in the middle, in the directory at the end."""
    found = run(FULL.format(first=100, last=9000), cwd=tmp_path)
    assert found.stdout == "kept\n", found.stdout + found.stderr
