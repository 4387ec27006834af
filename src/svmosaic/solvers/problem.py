"""The one problem every model is reduced to: a linear SVM in a space of blocks."""

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from svmosaic import _core
from svmosaic.couplings import Coupling
from svmosaic.losses import HINGE, LOSSES, Loss, Targets
from svmosaic.rows import Rows


@dataclass(frozen=True)
class Sight:
    """What the blocks of a problem see of a row, if some see less than all of it.

    Attributes
    ----------
    n_full : int
        The first so many blocks see whole rows.
    rest : {"straight", "bias"}
        What the others see: the straight terms of piecewise-linear features (of other rows: all), and the bias; or the
        bias alone. Their other weights stay zero.
    n_straight : int
        How many straight terms there are.
    """

    n_full: int
    rest: str
    n_straight: int

    @property
    def n_seen(self) -> int:
        """Features that the other blocks see, the first ones."""
        return 0 if self.rest == "bias" else self.n_straight


@dataclass(frozen=True)
class Problem:
    r"""A linear SVM over blocks of weights.

    .. math:: \min_V \tfrac12 \lVert V \rVert^2 + \sum_r c_r \max(0, t_r - s_r f_r)^p ,
              \qquad f_r = \sum_a \text{weight}_{ra} \langle W_{\text{tile}_{ra}}, (x_{i_r}, \text{bias}) \rangle

    with tiles W made of the blocks V by the coupling.

    Attributes
    ----------
    rows : Rows
    tile, weight : codes of each problem row over the tiles; weight None stands for all ones
    coupling : Coupling
    sign : ndarray of int8
    cost : ndarray of float64, one per row, zero allowed
    loss : Loss, or its name
    index : ndarray of int32, the data row of each problem row, or None for the identity
    threshold : ndarray of float64, one per row, of either sign; None for all ones
    sight : Sight, or None if all blocks see whole rows
    n_rows : int
    shape : (n_blocks, n_features + 1), of the block weights
    one_tile_a_row : bool
        Whether the Hessian is an arrow: each row touches its own tile, and what that tile shares.
    separable : bool
        Whether the tiles are independent problems.
    """

    rows: Rows
    tile: np.ndarray
    weight: np.ndarray | None
    coupling: Coupling
    sign: np.ndarray
    cost: np.ndarray
    loss: Loss = HINGE
    index: np.ndarray | None = None
    threshold: np.ndarray | None = None
    sight: Sight | None = None
    n_rows: int = field(init=False, repr=False)
    shape: tuple[int, int] = field(init=False, repr=False)
    one_tile_a_row: bool = field(init=False, repr=False)
    separable: bool = field(init=False, repr=False)
    _shared: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        coupling, alone = self.coupling, self.tile.shape[1] == 1 and self.weight is None
        vars(self).update(
            loss=LOSSES[self.loss] if isinstance(self.loss, str) else self.loss,
            n_rows=len(self.sign),
            shape=(coupling.n_blocks, self.rows.n_features + 1),
            one_tile_a_row=alone,
            separable=alone and coupling.n_shared == 0 and coupling.n_tiles > 1,
        )
        self._shared.setdefault("lock", threading.RLock())

    def with_target(self, sign, cost, threshold=None) -> "Problem":
        """The same rows and codes with other signs, costs and thresholds; what is built of them is shared."""
        return replace(self, sign=sign, cost=cost, threshold=threshold)

    def part(self, here, scale=1.0) -> "Problem":
        """The problem of some of the rows, their costs multiplied."""
        return Problem(
            self.rows, self.tile[here], at(self.weight, here), self.coupling, self.sign[here], scale * self.cost[here],
            self.loss, here if self.index is None else self.index[here], at(self.threshold, here), self.sight,
        )  # fmt: skip

    @property
    def design(self):
        """The block design in the core, built once for all targets of these rows and codes."""
        with self._shared["lock"]:
            if "design" not in self._shared:
                block, coef = self.coupling.blocks(self.tile, self.weight)
                sight = () if self.sight is None else (self.sight.n_full, self.sight.rest)
                self._shared["design"] = _core.Design(
                    self.rows.core, block, coef, self.index, self.coupling.n_blocks, *sight
                )
            return self._shared["design"]

    @property
    def curvature(self):
        """|x_r|^2 |coef_r|^2 of each problem row, computed once; ValueError if one overflows."""
        with self._shared["lock"]:
            if "curvature" in self._shared:
                return self._shared["curvature"]
            block, coef = self.coupling.blocks(self.tile, self.weight)
            norms = at(self.rows.squared_norms, self.index)
            if self.sight is not None:
                share = np.ones(block.shape) if coef is None else coef**2
                full = block < self.sight.n_full
                seen = at(self.rows.squared_norms_of(self.sight.rest), self.index)
                norms = norms * np.where(full, share, 0.0).sum(axis=1) + seen * np.where(full, 0.0, share).sum(axis=1)
            elif coef is not None:
                norms = norms * np.einsum("ra,ra->r", coef, coef)
            if not np.isfinite(norms.max(initial=0.0)):
                raise ValueError("X is too large: the squared norm of a row overflows float64; scale the features")
            self._shared["curvature"] = norms
            return norms

    def once(self, name, build):
        """The value of `build(problem)`, computed once for all targets of these rows and codes."""
        # Classes share what is built here and may ask for it on several threads at once: one builds, the others wait.
        with self._shared["lock"]:
            if name not in self._shared:
                self._shared[name] = build(self)
            return self._shared[name]

    def split(self) -> "list[tuple[np.ndarray, Problem]]":
        """The problems of independent tiles: for each, its rows among ours, and itself."""
        if "cells" not in self._shared:
            order = np.argsort(self.tile[:, 0], kind="stable").astype(np.int32)
            bounds = np.searchsorted(self.tile[order, 0], np.arange(self.coupling.n_tiles + 1))
            alone = Coupling(self.coupling.own, np.zeros((1, 0)))
            self._shared["cells"] = [
                (here, Problem(self.rows, np.zeros((len(here), 1), dtype=np.int32), None, alone, self.sign[here],
                               self.cost[here], self.loss, here if self.index is None else self.index[here]))
                for here in np.split(order, bounds[1:-1])
            ]  # fmt: skip
        return [
            (here, cell.with_target(self.sign[here], self.cost[here], at(self.threshold, here)))
            for here, cell in self._shared["cells"]
        ]

    @property
    def n_weights(self) -> int:
        n_blocks, size = self.shape
        return n_blocks * size

    @cached_property
    def primal_at_zero(self) -> float:
        """The objective at V = 0, the yardstick of `tol`."""
        return self.loss.at_zero(self.cost, self.threshold)


def problems_of(rows, codes, coupling, loss, targets: list[Targets], sight=None) -> list[Problem]:
    """One problem per target, such as an output; what is built of rows and codes is shared.

    Parameters
    ----------
    rows : Rows
    codes : (tile, weight) of each row, as a gate returns them
    coupling : Coupling
    loss : Loss
    targets : list of Targets, with the same index
    sight : Sight, optional
    """
    first, (tile, weight) = targets[0], codes
    if first.index is not None:
        tile, weight = tile[first.index], at(weight, first.index)
    problem = Problem(rows, tile, weight, coupling, first.sign, first.cost, loss, first.index, first.threshold, sight)
    return [problem, *(problem.with_target(other.sign, other.cost, other.threshold) for other in targets[1:])]


def at(values, here):
    """Some of the values, if there are any; all of them if `here` is None."""
    return values if values is None or here is None else values[here]
