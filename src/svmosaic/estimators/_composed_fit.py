"""The composed fit: from rows, a gate, a coupling and a loss to a mosaic with certificates.

Nothing here knows of classes or of estimators. Rows are asked questions; `MemoryRows` answers for rows in memory,
`svmosaic.scale.fit.PartitionedRows` for rows in partitions.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from svmosaic.couplings import Coupling
from svmosaic.estimators._region_words import sample_regions
from svmosaic.explain.contributions import count_regions
from svmosaic.gates import place_centers
from svmosaic.losses import Loss, parameters_of
from svmosaic.model.calibration import cross_fit
from svmosaic.model.mosaic import Mosaic
from svmosaic.rows import Rows, row_blocks
from svmosaic.solvers import Problem, SgdOptions, Sight, Solution, problems_of, solve


@dataclass(frozen=True)
class Options:
    """What is minimized, and how.

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

    def parameters_of(self, output) -> dict:
        """The parameters of the loss of an output."""
        return parameters_of(self.loss_parameters, output)


@dataclass(frozen=True)
class Solved:
    """Weights of all outputs, and their certificates.

    Attributes
    ----------
    coupling : Coupling
        Makes tiles of the weights.
    weights : list of ndarray
        The block weights of each output.
    solutions : list of Solution
        One per problem: one per output, unless all outputs are one problem.
    """

    coupling: Coupling
    weights: list
    solutions: list[Solution]

    @property
    def fitted_attributes(self) -> dict:
        """The certificates as estimators keep them."""
        return {
            "objective_": np.array([s.certificate.primal for s in self.solutions]),
            "dual_gap_": np.array([s.gap for s in self.solutions]),
            "n_iter_": max(s.n_iter for s in self.solutions),
        }


class FitRows(Protocol):
    """The interface of rows for a fit, wherever they are."""

    target: Any
    feature_map: Any
    n_features: int

    @property
    def n_rows(self) -> int:
        """How many there are."""

    @property
    def n_seen(self) -> int:
        """The number of features that the tiles see."""

    def place(self, n_centers, *, source, rows_per_center, max_iter, rng, name, n_jobs=None) -> Any:
        """Centers for a gate; see `svmosaic.gates.place_centers`."""

    def sample(self, n_rows, rng) -> Any:
        """At most so many rows, as the gate sees them."""

    def labeled_sample(self, n_rows, rng) -> Any:
        """The same with what is known of these rows and their weights: (X, truth, weight)."""

    def used(self, gate, n_jobs=None) -> Any:
        """Which tiles of a gate are the first of some row, as an array of bool."""

    def encode(self, gate, options):
        """Keep the codes of all rows for what follows."""

    def solve(self, coupling, options, progress, rng, start=None) -> list[Solution]:
        """Solve for the tiles of every output with the codes held fixed, from duals where given."""

    def calibrate(self, method, fitted, solve_tiles, options, progress, rng) -> Any:
        """A calibration from scores of rows held out in turn, with the gate as it is."""

    def region_counts(self, mosaic, head, n_jobs) -> dict:
        """Sums for `regions_`: one pass of scoring."""

    def region_sample(self, mosaic, counts) -> Any:
        """Rows from which regions can be described in words; see `sample_regions`."""


@dataclass(frozen=True)
class Composed:
    """A fitted mosaic, and the weights and certificates it comes from."""

    mosaic: Mosaic
    solved: Solved

    def with_tiles_of(self, solved, options) -> Mosaic:
        """The same mosaic with the tiles of another solve."""
        return replace(self.mosaic, **tiles_of(solved.coupling, solved.weights, options))


def tiles_of(coupling, weights, options) -> dict:
    """The `coef`, `intercept` and `sloped` of a `Mosaic`, from the block weights of each output."""
    sight = options.sight
    n_sighted = sight.n_full if sight is not None and sight.n_seen == 0 else None
    coefs, biases, sloped = zip(*(coupling.split(w, n_sighted) for w in weights), strict=True)
    intercept = options.bias * np.stack(biases, axis=1)
    return {"coef": np.stack(coefs, axis=1), "intercept": intercept, "sloped": sloped[0]}


def fit_composed(rows: FitRows, gate, coupling, options, progress, rng, *, solve_tiles, show, start=None) -> Composed:
    """Code the rows, solve for the tiles, and put the mosaic together.

    Parameters
    ----------
    rows : FitRows
    gate : fitted gate
    coupling : Coupling
    options : Options
    progress : Progress
    rng : RandomState
    solve_tiles : callable
        `solve_outputs`, or another function that is called as it is.
    show : callable
        From a mosaic, a coupling and the block weights of each output to the fitted attributes that callbacks see.
    start : list of ndarray, optional
        Duals to start from.
    """

    def mosaic_of(coupling, weights):
        return Mosaic(gate, feature_map=rows.feature_map, **tiles_of(coupling, weights, options))

    rows.encode(gate, options)
    progress = progress.showing(lambda coupling, weights: show(mosaic_of(coupling, weights), coupling, weights))
    solved = solve_tiles(rows, coupling, options, progress, rng, start)
    return Composed(mosaic_of(solved.coupling, solved.weights), solved)


def solve_outputs(rows: FitRows, coupling, options, progress, rng, start=None) -> Solved:
    """Every output on its own: the usual way to solve for tiles."""
    solutions = rows.solve(coupling, options, progress, rng, start)
    return Solved(coupling, [s.weights for s in solutions], solutions)


@dataclass
class MemoryRows:
    """Rows in memory.

    Attributes
    ----------
    gate_rows, tile_rows
        Rows as the gate and as the tiles see them. Of the latter only `Rows(tile_rows)`, the number of rows and rows at
        places are asked for.
    target : Target
    feature_map : FeatureMap or None
        What they come from.
    n_features : int
        Of the input.
    gate, codes : the last gate, and the (tile, weight) it gives
    """

    gate_rows: Any
    tile_rows: Any
    target: Any
    feature_map: Any
    n_features: int
    gate: Any = None
    codes: Any = None

    @classmethod
    def of(cls, X, target, feature_map=None) -> "MemoryRows":
        """Validated rows, seen through a fitted feature map if there is one."""
        gate_rows, tile_rows = (X, X) if feature_map is None else feature_map.rows(X)
        return cls(gate_rows, tile_rows, target, feature_map, X.shape[1])

    @property
    def n_rows(self) -> int:
        return self.gate_rows.shape[0]

    @property
    def n_seen(self) -> int:
        return self.tile_rows.shape[1]

    def place(self, n_centers, *, source, rows_per_center, max_iter, rng, name, n_jobs=None):
        return place_centers(
            self.gate_rows, n_centers, source=source, label=self.target.label, sample_weight=self.target.weight,
            rows_per_center=rows_per_center, max_iter=max_iter, rng=rng, name=name, n_jobs=n_jobs,
        )  # fmt: skip

    def sample(self, n_rows, rng):
        if self.n_rows <= n_rows:
            return self.gate_rows
        return self.gate_rows[np.sort(rng.choice(self.n_rows, n_rows, replace=False))]

    def labeled_sample(self, n_rows, rng):
        here = slice(None)
        if self.n_rows > n_rows:
            here = np.sort(rng.choice(self.n_rows, n_rows, replace=False))
        return self.gate_rows[here], self.target.truth[here], self.target.weight[here]

    def used(self, gate, n_jobs=None):
        return np.bincount(gate.code(self.gate_rows, n_jobs)[0][:, 0], minlength=gate.n_tiles) > 0

    def encode(self, gate, options):
        if self.gate is not gate:
            self.gate, self.codes = gate, code(gate, self.gate_rows, options.n_jobs)

    def problems(self, coupling, options) -> list[Problem]:
        """One problem per output."""
        target, cost = self.target, options.C * self.target.weight
        targets = [
            options.loss.rows(target.wanted(c), cost, **options.parameters_of(c)) for c in range(target.n_outputs)
        ]
        return problems_of(
            Rows(self.tile_rows, options.bias), self.codes, coupling, options.loss, targets, options.sight
        )

    def solve(self, coupling, options, progress, rng, start=None):
        problems = self.problems(coupling, options)
        first, n_outputs = problems[0], len(problems)
        control = progress.control(n_outputs, coupling, first.shape, first.separable, n_outputs)
        solutions = solve(
            problems, solver=options.solver, tol=options.tol, max_iter=options.max_iter,
            seed=rng.randint(2**31 - 1), n_jobs=options.n_jobs, start=start, sgd=options.sgd, control=control,
        )  # fmt: skip
        progress.report(solutions, coupling, options.max_iter, control)
        return solutions

    def calibrate(self, method, fitted, solve_tiles, options, progress, rng):
        solved, quiet = fitted.solved, progress.without_callbacks()

        def scores_without(weight):
            # The duals of the rows that stay are feasible without the others, and nearly optimal.
            start = [np.where(_as_column(weight > 0, s.alpha), s.alpha, 0.0) for s in solved.solutions]
            fewer = replace(self, target=replace(self.target, weight=weight))
            mosaic = fitted.with_tiles_of(solve_tiles(fewer, solved.coupling, options, quiet, rng, start), options)
            return mosaic.score_codes(self.tile_rows, *self.codes, options.n_jobs)

        return cross_fit(method, self.target, scores_without, rng)

    def region_counts(self, mosaic, head, n_jobs):
        found = head.found(mosaic.score_codes(self.tile_rows, *self.codes, n_jobs))
        return count_regions(mosaic, head, self.codes, self.target.truth, found, self.tile_rows)

    def region_sample(self, mosaic, counts):
        tile, weight = self.codes

        def take(at):
            return (tile[at], None if weight is None else weight[at]), self.tile_rows[at]

        return sample_regions(mosaic, counts, self.n_rows, take)


def _as_column(kept, alpha):
    """Which rows are kept, in a shape that goes with one dual per row, or one per row and class."""
    return kept.reshape(-1, *[1] * (np.ndim(alpha) - 1))


def code(gate, X, n_jobs):
    """Codes of all rows, by blocks, so that an interrupt gets through."""
    blocks = row_blocks(X.shape[0], gate.n_tiles * X.shape[1])
    if len(blocks) == 1:
        return gate.code(X, n_jobs)
    tiles, weights = zip(*(gate.code(X[rows], n_jobs) for rows in blocks), strict=True)
    return np.concatenate(tiles), None if weights[0] is None else np.concatenate(weights)
