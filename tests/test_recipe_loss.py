"""The recipe "Add a loss" of CONTRIBUTING.md, followed to the letter in a copy of losses.py."""

import re
import subprocess
import sys
from pathlib import Path

from recipes import blocks

import svmosaic
from svmosaic.losses import LOSSES

SOURCE = Path(svmosaic.__file__).parent / "losses.py"

# Run with the path of the new losses.py: it takes the place of ours, as if it had been edited.
USE = """
import functools, importlib.util, sys
import numpy as np
import onnxruntime

spec = importlib.util.spec_from_file_location("svmosaic.losses", sys.argv[1])
losses = sys.modules["svmosaic.losses"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(losses)

from svmosaic import ClusteredSVC, LinearSVC, outofcore
from svmosaic.export.files import load

rng = np.random.RandomState(0)
X = rng.standard_normal((300, 4))
y = np.where(X[:, 0] + rng.standard_normal(300) > 0, "good", "bad")
weight = np.where(y == "bad", 3.0, 1.0)
options = {"tol": 1e-8, "random_state": 0, "max_iter": 10_000}
cells = functools.partial(ClusteredSVC, clusterer=X[:3])
for make, solvers in ((LinearSVC, ("dual", "newton")), (cells, ("newton",))):
    for solver in solvers:
        new = make(loss="careful_hinge", solver=solver, **options).fit(X, y)
        old = make(loss="hinge", solver=solver, **options).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(new.objective_, old.objective_, rtol=1e-6)
        assert (new.dual_gap_ <= 1e-8 * weight.sum()).all()
    new.save("model.skops")
    assert (load("model.skops").predict(X) == new.predict(X)).all()
    session = onnxruntime.InferenceSession(new.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    labels = session.run(["label"], {session.get_inputs()[0].name: X.astype(np.float32)})[0]
    assert (labels == new.predict(X.astype(np.float32))).mean() > 0.99
parted = outofcore.fit(cells(loss="careful_hinge", **options), X, y, chunk_rows=100)
np.testing.assert_allclose(parted.objective_, new.objective_, rtol=1e-6)
namespace = {"np": np, "assert_allclose": np.testing.assert_allclose, "LOSSES": losses.LOSSES}
exec(sys.argv[2], namespace)
next(test for name, test in namespace.items() if name.startswith("test_"))()
"""


def test_the_recipe_adds_a_loss(tmp_path):
    function, entry, test = blocks("Add a loss")
    source = SOURCE.read_text()
    assert "careful_hinge" not in LOSSES
    changed = source.replace("HINGE = Loss(", f"{function}\n\nHINGE = Loss(", 1)
    last = re.findall(r"^ +Loss\(.*\),$", source, re.MULTILINE)[-1]
    changed = changed.replace(last, f"{last}\n        {entry.strip()},", 1)
    path = tmp_path / "losses.py"
    path.write_text(changed)
    done = subprocess.run(
        [sys.executable, "-c", USE, str(path), test], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
