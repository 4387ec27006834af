"""The sums over rows that Newton's method needs, and the part that a partition contributes.

Objective, gradient, Hessian, slopes and dual value are sums over rows, hence over partitions. A question is answered by
the `Share` of each partition, and the answers are added up. Rows in memory are the case of one share that lives as long
as the solve: it remembers margins and responses, so that a question about the weights of the last one costs no pass
over the rows, and one about a point along the last direction only an addition.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmosaic import _core
from svmosaic.solvers.certificates import margins, weights_of
from svmosaic.solvers.hessians import (
    LARGEST_OVERLAP,
    crossed_hessians,
    crossed_solver,
    sighted_hessians,
    tile_hessians,
)


def threshold_sums(problem):
    """The total of the positive thresholds, and their number, weighted by cost."""
    if problem.threshold is None:
        return np.ones(2)
    counted = problem.cost * (problem.threshold > 0)
    return np.array([np.dot(counted, problem.threshold), counted.sum()])


@dataclass(frozen=True)
class Unit:
    """The sums of which the typical threshold is the ratio."""

    job: Any
    move: None = None

    def of(self, share):
        return threshold_sums(share.problem)


@dataclass(frozen=True)
class Move:
    """The duals around which steps are taken become the responses at these weights."""

    job: Any
    weights: np.ndarray
    step: float


@dataclass(frozen=True)
class Evaluate:
    """Loss, dual, gradient and curvature at these weights; `move` is to be done before.

    Attributes
    ----------
    job : names the problem, if there are several
    weights : ndarray of shape (n_blocks, n_features + 1)
    step : float, the size of the proximal step in units of the costs
    reach : float, how near to its kink a row counts as curved
    form : {"tiles", "pairs", "diagonals", None}
        The curvature: one matrix per tile, one per pair of tiles, or left out; "diagonals": only those of blocks that
        see less than whole rows.
    along : (ndarray, ndarray, float) or None
        Weights, direction and length of which these weights are the sum, for a share that remembers.
    anew : bool
        Whether margins are to be computed from the rows, even if they are known.
    move : Move or None
    """

    job: Any
    weights: np.ndarray
    step: float
    reach: float
    form: str | None
    along: tuple | None = None
    anew: bool = False
    move: Move | None = None

    def of(self, share):
        """(rows, loss at zero, loss, dual value but for the weights, proximal term), V(response), matrices."""
        implied = share.evaluate(self.weights, self.step, self.reach, self.along, self.anew)
        sums = [share.problem.rows.n_rows, share.at_zero, *share.sums]
        # Matrices are formed at once if asking again would mean another journey.
        matrices = None if share.remembers else share.matrices(self.form)
        return np.array(sums), implied, matrices


@dataclass(frozen=True)
class Matrices:
    """The curvature at the weights of the last `Evaluate`, of a share that remembers them."""

    job: Any
    form: str
    move: None = None

    def of(self, share):
        return share.matrices(self.form)


@dataclass(frozen=True)
class Slopes:
    """What the losses add to the slope along a direction, at these lengths."""

    job: Any
    weights: np.ndarray
    step: float
    direction: np.ndarray
    lengths: tuple[float, ...]
    move: None = None

    def of(self, share):
        problem = share.problem
        margin, change = share.margins(self.weights), share.changes(self.direction)
        pull = [
            _core.pull(share.center, problem.cost, problem.threshold, margin, change, t, share.n_threads, self.step)
            for t in self.lengths
        ]
        return np.array(pull)


@dataclass(frozen=True)
class Product:
    """The losses' Hessian at these weights times a vector."""

    job: Any
    weights: np.ndarray
    step: float
    reach: float
    vector: np.ndarray
    move: None = None

    def of(self, share):
        if not share.remembers:  # else the curvature is that of the last `Evaluate`, as for `Matrices`
            share.respond(self.weights, self.step, self.reach)
        problem, out = share.problem, np.empty(share.problem.shape)
        _core.curved_product(problem.rows.core, problem.design, share.curvature, self.vector, out, share.n_threads)
        return out


class Share:
    """The rows of one partition in a problem.

    Parameters
    ----------
    problem : Problem
    center : ndarray or None
        The duals around which proximal steps are taken; None if the loss needs none.
    n_threads : int
    known : (ndarray, ndarray or None), optional
        Weights, and their margins if they are known, which are changed in place: the share is to answer all questions
        of a solve.
    check : callable, optional
        Called now and then; may raise.
    """

    def __init__(self, problem, center, n_threads=1, known=None, check=None):
        self.problem, self.center, self.n_threads = problem, center, n_threads
        self.remembers, self.check = known is not None, check
        self.at_zero = problem.primal_at_zero
        self.margin, self.change, self.response, self.curvature = (np.empty(problem.n_rows) for _ in range(4))
        self._at = self._along = self._implied = self._kept = self._spare = self._curved = None
        self.sums = (0.0, 0.0, 0.0)  # losses, dual value but for the weights, proximal term
        if known is not None and known[1] is not None:
            self._at, self.margin = known

    def margins(self, weights):
        """The margins at these weights."""
        if weights is not self._at:
            margins(self.problem, weights, self.n_threads, self.margin)
            self._at, self._along = weights, None
        return self.margin

    def changes(self, direction):
        """How the margins change along the direction."""
        if direction is not self._along:
            margins(self.problem, direction, self.n_threads, self.change)
            self._along = direction
        return self.change

    def evaluate(self, weights, step, reach=0.0, along=None, anew=False):
        """V of the duals that answer the margins, and what `respond` fills; one pass if the margins are not known."""
        if not anew and (weights is self._at or self._reached(along)):
            self.respond(weights, step, reach, along)
            # V of the responses: from that of the last ones, if few have changed since, or from the rows.
            response, few = self.response, False
            if self._implied is not None and along is not None:
                implied, change = self._implied
                np.subtract(response, change, out=change)
                few = 2 * np.count_nonzero(change) < np.count_nonzero(response)
            if few:
                return self._remember(implied + weights_of(self.problem, change, self.n_threads))
            return self._remember(weights_of(self.problem, response, self.n_threads))
        self._make_room()
        problem, implied = self.problem, np.empty(self.problem.shape)
        self.sums = _core.evaluate(
            problem.rows.core, problem.design, problem.sign, weights, self.center, problem.cost, problem.threshold,
            reach, self.margin, self.response, self.curvature, implied, self.n_threads, step,
        )  # fmt: skip
        self._at, self._along = weights, None
        return self._remember(implied)

    def keep(self):
        """The responses; they stay as they are until others are kept."""
        if self.response is not self._kept:
            self._kept, self._spare = self.response, self._kept
        return self._kept

    def _make_room(self):
        """A place for other responses than those that are kept."""
        if self.response is self._kept:
            self.response = np.empty(self.problem.n_rows) if self._spare is None else self._spare

    def _reached(self, along) -> bool:
        """Whether margins can follow by addition."""
        return along is not None and along[0] is self._at and along[1] is self._along

    def respond(self, weights, step, reach=0.0, along=None):
        """The duals that answer the margins; fills their sums, and the curvature of rows whose duals may move."""
        problem, change, length = self.problem, None, 0.0
        if self._reached(along):
            change, length = self.change, along[2]
            self._at, self._along = weights, None
        margin = self.margins(weights)
        self._make_room()
        self.sums = _core.respond(
            self.center, problem.cost, problem.threshold, margin, reach, self.response, self.curvature, self.n_threads,
            step, change, length,
        )  # fmt: skip
        return self.response

    def _remember(self, implied):
        """V of the responses, from which that of others can follow; they do only in proximal steps."""
        if self.remembers and self.center is not None:
            self._implied = implied, self.response.copy()
        return implied

    def matrices(self, form):
        """The curvature as one matrix per tile, or per pair of tiles; something to add up if there is none.

        Form "tiles" of rows that belong to several tiles: a function that solves with what the matrices and the codes
        say of the Hessian, if nothing is to be added up.
        """
        if form is None:
            return np.zeros(1)
        if self.problem.sight is not None:
            return sighted_hessians(self.problem, self.curvature, self.n_threads, form)
        if form == "tiles":
            alone = self.problem.one_tile_a_row or self.problem.coupling.n_tiles > LARGEST_OVERLAP
            matrices = self._tile_matrices()
            return matrices if alone or not self.remembers else crossed_solver(self.problem, matrices, self.n_threads)
        return crossed_hessians(self.problem, self.curvature, self.n_threads, self.check)

    def _tile_matrices(self):
        """One matrix per tile: from the last one, if few rows have changed since, or from all that are curved.

        Steps of a loss with p = 2 soon agree on which rows are curved. Only of a single tile, so that no more matrices
        are kept than are needed anyway.
        """
        problem, n_threads = self.problem, self.n_threads
        if not self.remembers or self.center is not None or problem.coupling.n_tiles > 1:
            return tile_hessians(problem, self.curvature, n_threads)
        few = False
        if self._curved is not None:
            (matrices, change), self._curved = self._curved, None
            np.subtract(self.curvature, change, out=change)
            few = 2 * np.count_nonzero(change) < np.count_nonzero(self.curvature)
        if few:
            matrices += tile_hessians(problem, np.maximum(change, 0.0), n_threads)
            matrices -= tile_hessians(problem, np.maximum(np.negative(change, out=change), 0.0), n_threads)
        else:
            matrices = None  # makes room for the next
            matrices = tile_hessians(problem, self.curvature, n_threads)
        self._curved = matrices, self.curvature.copy()
        return matrices
