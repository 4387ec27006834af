"""EM of `MultiTaskMixtureSVC` over partitions: the E-step where the rows are, the M-step from sums.

The loop, its stop rules and its steps back are those of the local model (`EM` in `svmosaic.models._em_loop`).
Responsibilities and duals stay with the rows. The Gaussians come from sums of q (x, 1)(x, 1)^T, the experts from the
optimizer of all models.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from svmosaic._validation import Target
from svmosaic.couplings import Coupling
from svmosaic.couplings.clustered import penalty
from svmosaic.gates import DistanceGate, GaussianGate, Responsibilities
from svmosaic.gates.gaussian import moments
from svmosaic.heads import signs_of
from svmosaic.losses import HINGE
from svmosaic.models._em_loop import EM, Mixture
from svmosaic.models._experts import Bank, improved, total_gap
from svmosaic.models._mixture_classifier import TrainingData, _Watch
from svmosaic.partitions.newton import solve_partitions
from svmosaic.partitions.part import Job
from svmosaic.partitions.placement import place, take
from svmosaic.rows import Rows, bias_of
from svmosaic.solvers import Control
from svmosaic.solvers.certificates import margins, weights_of


def fit_mixture(estimator, rows, progress):
    """Fit a `MultiTaskMixtureSVC`."""
    partitions, survey, rng = rows.partitions, rows.target, check_random_state(estimator.random_state)
    estimator._check_parameters()
    estimator.n_features_in_ = rows.n_features
    if rows.feature_names is not None:
        estimator.feature_names_in_ = np.array(rows.feature_names, dtype=object)
    if any(partitions.gather(is_sparse)):
        raise ValueError("Sparse input is not supported: the Gaussian gate needs dense rows. Use X.toarray().")
    n_outputs = survey.n_outputs
    if estimator.covariance_floor == "auto":
        # The local search, which looks at samples anyway: the same ones.
        estimator.covariance_floor_ = estimator._search_floor(
            survey.n_rows, lambda rows: _taken(partitions, survey, rows), rng
        )
    else:
        estimator.covariance_floor_ = float(estimator.covariance_floor)
    if estimator.pieces is not None:
        rows.bend(estimator.pieces, rng)
    cells = DistanceGate(
        place(
            partitions, survey, estimator.n_experts, source="kmeans", rows_per_center=estimator.rows_per_expert,
            max_iter=estimator.kmeans_iter, rng=rng, name="centres",
        )
    )  # fmt: skip
    sums, mass = partitions.total(cell_moments, cells)
    cells, sums, mass = DistanceGate(cells.centers[mass > 0]), sums[mass > 0], mass[mass > 0]
    whole = sums.sum(axis=0) / mass.sum()
    squares = np.diagonal(whole)[:-1]
    variance = float(np.mean(squares - whole[:-1, -1] ** 2))
    floor = estimator.covariance_floor_ * (variance if variance > 0 else 1.0)
    gate = GaussianGate.from_moments(sums, mass, floor=floor, covariance=estimator.covariance)

    def mean_square():
        if rows.feature_map is None:
            return float(squares.sum())
        return float(partitions.total(weighted_squares)) / mass.sum()

    bias = bias_of(estimator.fit_intercept, estimator.intercept_scaling, mean_square)
    label_weight = estimator.label_weight / n_outputs
    tasks = estimator._tasks(n_outputs)
    partitions.advance(deal_cells, cells, n_outputs, bias)
    loop = PartitionEM(estimator, rows, tasks, label_weight, progress)
    start = Bank(np.zeros((len(mass), n_outputs, rows.n_tile_features + 1)), (tasks.start(len(mass)),) * n_outputs)
    watch = _Watch(estimator, Target(survey.classes, np.empty(0, int), np.empty(0)), progress)
    watch.bias, watch.feature_map = bias, rows.feature_map
    mixture, trace = loop.run(Mixture(gate, loop.update(start, np.ones(len(mass), bool))), watch)
    for name, value in watch.fitted(mixture).items():
        setattr(estimator, name, value)
    estimator.objective_ = np.array(trace.objective)
    estimator.experts_per_iter_ = np.array(trace.n_experts)
    estimator.effective_experts_ = np.array(trace.effective_experts)
    estimator.calibration_ = None
    estimator.n_iter_, estimator.stop_reason_ = trace.n_iter, trace.stop_reason
    estimator._warn_of_max_time()
    couplings = mixture.bank.couplings
    estimator.coupling_ = np.array([tasks.matrix(coupling) for coupling in couplings])
    estimator.task_groups_ = np.array([tasks.labels(coupling) for coupling in couplings])
    return estimator


def _taken(partitions, survey, rows):
    """Rows at these places, in this order, and their targets."""
    order = np.argsort(rows)
    X, weight, label = take(partitions, rows[order])
    back = np.argsort(order)
    return X[back], Target(survey.classes, label[back], weight[back])


@dataclass(frozen=True)
class Mass:
    """Responsibilities of all partitions, as far as the driver needs them."""

    mass: np.ndarray

    @property
    def n_experts(self) -> int:
        return len(self.mass)

    @property
    def effective_experts(self) -> float:
        share = self.mass[self.mass > 0] / self.mass.sum()
        return float(np.exp(-np.dot(share, np.log(share))))


class PartitionEM(EM):
    """The EM loop with its two steps over partitions."""

    def __init__(self, estimator, rows, tasks, label_weight, progress):
        super().__init__(
            None, None, label_weight=label_weight, gate_options={}, tol=estimator.tol, max_iter=estimator.max_iter,
            deadline=progress.deadline, n_threads=rows.partitions.n_threads,
        )  # fmt: skip
        self.partitions = rows.partitions
        self.rows = rows
        self.tasks = tasks
        self.progress = progress
        self.solver = {"tol": estimator.inner_tol, "max_iter": estimator.inner_max_iter}
        self.solved = False
        self.gap = np.nan

    @property
    def experts_gap(self) -> float:
        return self.gap

    def e_step(self, mixture):
        self.partitions.advance(share_out, mixture, self.label_weight, self.drop, self.n_threads)
        log_likelihood, mass = self.partitions.total(shares_summary)
        return float(log_likelihood) - mixture.bank.penalty, Mass(mass)

    def m_step(self, mixture, shares):
        kept = shares.mass > 1e-10 * shares.mass.sum()
        sums, mass = self.partitions.total(share_moments, kept)
        gate = GaussianGate.from_moments(
            sums, mass, floor=mixture.gate.floor, covariance=mixture.gate.covariance
        )  # fmt: skip
        bank = mixture.bank
        if not kept.all():
            tiles = bank.tiles[kept]
            bank = Bank(tiles, tuple(self.tasks.fit(tiles[:, c]) for c in range(tiles.shape[1])))
        return Mixture(gate, self.update(bank, kept))

    def update(self, bank, kept):
        """Experts no worse than the bank's for the responsibilities that the partitions hold."""
        n_outputs = len(bank.couplings)
        self.partitions.advance(pair_up, kept, self.label_weight)
        jobs = [Job(c, c, n_outputs, coupling, HINGE) for c, coupling in enumerate(bank.couplings)]
        start = None
        if self.solved:
            # The duals of pairs that stay are with the rows; the weights they imply are where the solver begins.
            start = self.partitions.total(implied_weights, jobs, self.n_threads)
        solutions = solve_partitions(
            self.partitions, jobs, n_features=self.rows.n_tile_features, n_rows=self.rows.n_rows, one_tile=True,
            start=start, keep_duals=True, control=Control(self.progress.left), **self.solver,
        )  # fmt: skip
        self.solved = True
        self.gap = total_gap(bank.couplings, solutions)
        found = np.stack([job.coupling.tiles(s.weights) for job, s in zip(jobs, solutions, strict=True)], axis=1)
        losses = self.partitions.total(expert_losses, [bank.tiles, found], self.n_threads)
        tiles = bank.tiles.copy()
        for c, coupling in enumerate(bank.couplings):
            old, new = (
                _objective(coupling, weights[:, c], loss[c])
                for weights, loss in zip([bank.tiles, found], losses, strict=True)
            )
            tiles[:, c] = np.where(np.atleast_1d(improved(old, new))[:, None], found[:, c], tiles[:, c])
        return Bank(tiles, tuple(self.tasks.fit(tiles[:, c], k) for c, k in enumerate(bank.couplings)))


def _objective(coupling, tiles, losses):
    """Of each expert where they are independent, else of all together."""
    if coupling.n_shared == 0:
        return 0.5 * np.einsum("jf,jf->j", tiles, tiles) / coupling.own**2 + losses
    return penalty(coupling, tiles) + losses.sum()


# ---- on one partition -----------------------------------------------------------------------------------------------


def is_sparse(part):
    """Whether the rows are stored sparsely."""
    return sparse.issparse(part.X)


def weighted_squares(part):
    """The weighted sum of the squared norms of the rows that the experts see."""
    return np.dot(part.weight, Rows(part.tile_rows, 0.0).squared_norms)


def cell_moments(part, gate):
    """Sums of (x, 1)(x, 1)^T in each cell, and its weight."""
    shares = _of_cells(part, gate)
    return moments(Rows(part.X), shares), shares.mass


def _of_cells(part, gate):
    return Responsibilities.hard(gate.code(part.X)[0][:, 0], part.weight, gate.n_tiles)


def deal_cells(part, gate, n_outputs, bias):
    """With each row dealt to its cell."""
    extra = {"shares": _of_cells(part, gate), "n_outputs": n_outputs}
    return replace(part, bias=bias, extra=extra, duals={}, built={})


def share_out(part, mixture, label_weight, drop, n_threads):
    """With the responsibilities of the E-step."""
    n_outputs = part.extra["n_outputs"]
    signs = np.stack([signs_of(part.label, c, n_outputs) for c in range(n_outputs)], axis=1)
    tile_rows = None if part.feature_map is None else part.tile_rows
    data = TrainingData(part.X, np.ascontiguousarray(signs), part.weight, part.bias, tile_rows)
    local = EM(
        data, None, label_weight=label_weight, gate_options={}, tol=0, max_iter=0, deadline=None, n_threads=n_threads,
        drop=drop,
    )  # fmt: skip
    value, shares = local.e_step(mixture)
    return replace(part, extra={**part.extra, "shares": shares, "value": value + mixture.bank.penalty})


def shares_summary(part):
    """Log likelihood and the experts' masses."""
    return np.array(part.extra["value"]), part.extra["shares"].mass


def share_moments(part, kept):
    """Sums of q (x, 1)(x, 1)^T and masses of the experts that are left."""
    shares = part.extra["shares"].restricted(kept)
    return moments(Rows(part.X), shares), shares.mass


def pair_up(part, kept, label_weight):
    """With (row, expert) pairs as problem rows, and the duals of pairs that were there before."""
    shares = part.extra["shares"].restricted(kept)
    cost = label_weight * shares.cost
    known = part.extra.get("pairs")
    duals = {}
    if known is not None and part.duals:
        row, expert = known
        if not kept.all():
            alive = kept[expert]
            row, expert = row[alive], (np.cumsum(kept) - 1)[expert[alive]]
            duals = {slot: alpha[alive] for slot, alpha in part.duals.items()}
        else:
            duals = part.duals
        have = row * np.int64(shares.n_experts) + expert
        want = shares.row * np.int64(shares.n_experts) + shares.expert
        place_of = np.minimum(np.searchsorted(have, want), max(len(have) - 1, 0))
        same = have[place_of] == want if len(have) else np.zeros(len(want), bool)
        duals = {
            slot: np.clip(np.where(same, alpha[place_of], 0.0), 0.0, cost) if len(have) else np.zeros(len(want))
            for slot, alpha in duals.items()
        }
    tile = np.ascontiguousarray(shares.expert[:, None])
    extra = {**part.extra, "shares": shares, "pairs": (shares.row, shares.expert)}
    return replace(part, tile=tile, code=None, index=shares.row, cost=cost, duals=duals, extra=extra, built={})


def implied_weights(part, jobs, n_threads):
    """The block weights of each job's duals."""
    return [weights_of(part.problem(job), part.center(job), n_threads) for job in jobs]


def expert_losses(part, banks, n_threads):
    """For each bank of tiles and output: the losses of each expert."""
    found = []
    for tiles in banks:
        n_experts, n_outputs, _ = tiles.shape
        each = []
        for c in range(n_outputs):
            problem = part.problem(Job(c, c, n_outputs, Coupling.independent(n_experts), HINGE))
            losses = problem.cost * HINGE.value(margins(problem, np.ascontiguousarray(tiles[:, c]), n_threads))
            each.append(np.bincount(problem.tile[:, 0], losses, n_experts))
        found.append(each)
    return found
