"""A wheel in a clean environment: fit, predict, explain, save, load and write C. Needs what the package itself needs.

python tools/smoke.py
"""

import tempfile
from pathlib import Path

import numpy as np

import svmosaic
from svmosaic.datasets import make_xor


def main():
    X, y = make_xor(random_state=0)
    for model in (
        svmosaic.LinearSVC(random_state=0),
        svmosaic.ClusteredSVC(4, calibration="temperature", random_state=0),
        svmosaic.LocallyLinearSVC(16, random_state=0),
        svmosaic.LearnedGateSVC(8, max_iter=5, random_state=0),
    ):
        model.fit(X, y)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model")
            again = svmosaic.load(Path(folder) / "model")
            model.to_c(Path(folder) / "model.c")
        assert np.array_equal(model.predict(X), again.predict(X))
        assert np.array_equal(model.predict(X), model.predictor().predict(X))
        explanation = model.explain(X[:5])
        total = explanation.contributions.sum(axis=2) + explanation.intercept
        assert np.allclose(total, explanation.decision)
        print(f"{type(model).__name__}: {model.score(X, y):.3f}")
    print(f"svmosaic {svmosaic.__version__} works")


if __name__ == "__main__":
    main()
