"""Where to learn and to score: the core on the CPU, or JAX on an accelerator."""

from typing import Literal

import numpy as np
from scipy import sparse

from svmosaic.learner.loop import CoreEngine

Device = Literal["cpu", "gpu", "auto"]
# Fewer rows than this are scored on the CPU: sending them to a device would take longer.
MANY_ROWS = 10_000
NO_JAX = "device='gpu' needs JAX: pip install jax, and for a GPU of NVIDIA's pip install 'jax[cuda13]'"
NO_ACCELERATOR = (
    "device='gpu' needs an accelerator, and JAX finds none on this machine: pip install 'jax[cuda13]' for a GPU of "
    "NVIDIA's, or pass device='cpu'"
)


def find_device(device):
    """The accelerator that "gpu" or "auto" stands for; None for the CPU.

    Parameters
    ----------
    device : {"cpu", "gpu", "auto"}
        "auto" is the CPU if JAX is not installed or finds no accelerator; "gpu" is then an error.
    """
    if device == "cpu":
        return None
    try:
        from svmosaic.learner import jax_loop
    except ImportError as error:
        if device == "auto":
            return None
        raise ImportError(NO_JAX) from error
    found = jax_loop.accelerator()
    if found is None and device == "gpu":
        raise RuntimeError(NO_ACCELERATOR)
    return found


def engine_of(learner, X, target, weight, plan, device):
    """The engine that learns there; see `CoreEngine`."""
    if device is None:
        return CoreEngine(learner, X, target, weight, plan)
    if sparse.issparse(X):
        raise ValueError("device='gpu' needs dense rows: pass X.toarray(), or device='cpu'")
    from svmosaic.learner.jax_loop import JaxEngine

    return JaxEngine(learner, X, target, weight, plan, device)


def device_scores(mosaic, X, device):
    """Scores of a mosaic with learned gates, of shape (n_rows, n_outputs), computed in float32 on an accelerator."""
    from svmosaic.learner.jax_loop import curves_of, score_rows

    coef, curves = mosaic.coef, None
    if mosaic.features.pieces is not None:
        # As the scorer holds them, straight terms folded into the curves; the last weight is for sparse rows.
        coef, ((center, scale, _, reach, column, start, knot, _), _) = mosaic.features.pack(coef)
        plain = np.setdiff1d(np.arange(len(center)), column)
        coef = coef[..., :-1]
        curves = curves_of((plain, center[plain], scale[plain], reach[plain]), column, start, knot, np.float32)
    gates = getattr(mosaic.gate, "gates", (mosaic.gate,))
    inner = [getattr(gate, "inner", gate) for gate in gates]
    sizes = np.array([gate.n_tiles for gate in gates])
    valid = np.arange(sizes.max()) < sizes[:, None]
    anchors = np.zeros((*valid.shape, inner[0].centers.shape[1]), dtype=np.float32)
    anchors[valid] = np.concatenate([gate.centers for gate in inner])
    tiles = np.zeros((*valid.shape, coef.shape[1], coef.shape[2] + 1), dtype=np.float32)
    tiles[valid] = np.concatenate([coef, mosaic.intercept[:, :, None]], axis=2)
    projection = None
    if hasattr(gates[0], "projection"):
        projection = np.stack([gate.projection[:, : coef.shape[2]] for gate in gates]).astype(np.float32)
    log_tau = np.log([gate.scale for gate in inner]).astype(np.float32)
    value = {"tiles": tiles, "anchors": anchors, "projection": projection, "log_tau": log_tau}
    return score_rows(value, valid, inner[0].width, X, device, curves).astype(np.float64)
