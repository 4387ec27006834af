"""Tiles from rows, a gate, a coupling and a loss: a mosaic with certificates. Nothing here knows of estimators."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from svmosaic.couplings import Coupling
from svmosaic.explain.contributions import homes_of
from svmosaic.losses import Loss
from svmosaic.maps.protocol import dense
from svmosaic.model.mosaic import Mosaic
from svmosaic.rows import evenly
from svmosaic.solvers import SgdOptions, Sight, Solution

# Tiles of which `regions_` has the words (more are merged by `describe_regions`), rows by which they are found, and
# columns that conditions are looked for in: those whose contributions vary most.
MOST_DESCRIBED, DESCRIBED_ROWS, MOST_COLUMNS = 256, 2000, 60


@dataclass(frozen=True)
class Options:
    """Objective of the tiles, and how it is minimized.

    Attributes
    ----------
    C : float
        Multiplies the weights of the rows.
    loss : Loss
    bias : float
        The constant appended to the rows for the intercepts.
    solver, tol, max_iter, n_jobs, sgd
        See `svmosaic.solvers.solve`.
    loss_parameters : dict
        Of the loss, such as `epsilon`: numbers, or lists with one for each output.
    sight : Sight, optional
        What the tiles see, if some see less than whole rows.
    """

    C: float
    loss: Loss
    bias: float
    solver: str
    tol: float
    max_iter: int
    n_jobs: int | None = None
    sgd: SgdOptions | None = None
    loss_parameters: dict = field(default_factory=dict)
    sight: Sight | None = None


@dataclass(frozen=True)
class Fit:
    """A fitted mosaic, with the block weights and certificates that its tiles come from.

    Attributes
    ----------
    mosaic : Mosaic
    coupling : Coupling
        Makes tiles of the weights.
    weights : list of ndarray
        The block weights of each output.
    solutions : list of Solution
        One per problem: one per output, unless all outputs are one problem.
    """

    mosaic: Mosaic
    coupling: Coupling
    weights: list
    solutions: list[Solution]

    def resolved(self, solved, options) -> "Fit":
        """The same mosaic with the tiles of another solve: (coupling, weights, solutions)."""
        coupling, weights, _ = solved
        return Fit(mosaic_of(self.mosaic.gate, self.mosaic.feature_map, coupling, weights, options), *solved)


def mosaic_of(gate, feature_map, coupling, weights, options) -> Mosaic:
    """The mosaic with the tiles that a coupling makes of the block weights of each output."""
    sight = options.sight
    n_sighted = sight.n_full if sight is not None and sight.n_seen == 0 else None
    coefs, biases, sloped = zip(*(coupling.split(w, n_sighted) for w in weights), strict=True)
    intercept = options.bias * np.stack(biases, axis=1)
    return Mosaic(gate, np.stack(coefs, axis=1), intercept, feature_map=feature_map, sloped=sloped[0])


def fit_tiles(data, gate, coupling, options, progress, rng, *, solve_tiles=None, show=None, start=None) -> Fit:
    """Code the rows, solve for the tiles, and put the mosaic together.

    Parameters
    ----------
    data : Data or PartitionedData
    gate : fitted gate
    coupling : Coupling
    options : Options
    progress : Progress
    rng : RandomState
    solve_tiles : callable, optional
        Solves for the tiles in place of `Data.solve`: a function that is called as it is.
    show : callable, optional
        From a mosaic, a coupling and the block weights of each output to the fitted attributes that callbacks see.
    start : list of ndarray, optional
        Duals to start from.
    """
    data.encode(gate, options)
    if show is not None:
        progress.snapshot = lambda coupling, weights: show(
            mosaic_of(gate, data.feature_map, coupling, weights, options), coupling, weights
        )
    coupling, weights, solutions = (solve_tiles or type(data).solve)(data, coupling, options, progress, rng, start)
    return Fit(mosaic_of(gate, data.feature_map, coupling, weights, options), coupling, weights, solutions)


def describe(data, mosaic, head, n_jobs=None) -> tuple[dict, Any]:
    """Counts of the training rows for `regions_`, and some rows from which its regions can be described in words.

    These are indices of columns, their values of shape (n_rows, n_columns), and the tile of each row, for each gate;
    None if there are one or many regions.
    """
    counts = data.region_counts(mosaic, head, n_jobs)
    if not 1 < mosaic.n_tiles <= MOST_DESCRIBED:
        return counts, None
    codes, rows = data.coded(mosaic.gate, evenly(data.n_rows, DESCRIBED_ROWS))
    importance = counts["spread"].sum(axis=0)
    column = np.sort(np.argsort(-importance, kind="stable")[:MOST_COLUMNS])
    return counts, (column, dense(getattr(rows, "inputs", rows)[:, column]), homes_of(mosaic.gate, codes))
