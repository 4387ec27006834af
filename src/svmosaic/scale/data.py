"""Rows in partitions for a fit.

Only sums and weights travel; the duals, one number per row, stay where the rows are. The duality gap is exact: it is a
difference of two sums.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from svmosaic.estimators.data import ROWS_PER_CENTER, Target
from svmosaic.gates import place_centers
from svmosaic.gates.placement import class_shares
from svmosaic.model.calibration import N_FOLDS, fit_calibration, require_rows
from svmosaic.model.heads import Head
from svmosaic.scale.part import Job, answer, cells_used, held_out_scores, move, regions, rows_at, with_codes, with_map
from svmosaic.solvers import Solution
from svmosaic.solvers.newton import FIRST_STEPS, Setting, newton_steps
from svmosaic.solvers.share import Evaluate

# Held-out scores that calibration is fitted to, at most about so many.
CALIBRATION_ROWS = 200_000


@dataclass(frozen=True)
class Survey:
    """Knowledge of all rows together: what a `Target` says without the rows.

    `class_factor` has the class weights, which sample weights lack; None for values, which have no classes.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype
    names: list | None
    head: Head
    class_counts: np.ndarray | None = None
    class_factor: np.ndarray | None = None

    def target_of(self, truth, weight) -> Target:
        """The target of some of the rows."""
        sample_weight = weight if self.class_factor is None else weight / self.class_factor[truth]
        return Target(self.head, truth, weight, sample_weight)


class PartitionedData:
    """Rows in partitions, asked as `svmosaic.estimators.data.Data` is; codes and duals stay with the rows."""

    def __init__(self, partitions, survey):
        self.partitions, self.target = partitions, survey
        self.n_rows, self.n_features = survey.n_rows, survey.n_features
        self.feature_map, self.one_tile = None, False

    def map(self, feature_map):
        if feature_map is not None:
            self.feature_map = feature_map
            self.partitions.advance(with_map, feature_map)

    def take(self, rows, stratum=None):
        """Rows at these (sorted) indices among all rows, or among those of one class, and their target."""
        X, weight, truth = zip(*self.partitions.gather(rows_at, rows, stratum), strict=True)
        X = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        return X, self.target.target_of(np.concatenate(truth), np.concatenate(weight))

    def sample(self, n_rows, rng, stratum=None):
        n_all = self.n_rows if stratum is None else self.target.class_counts[stratum]
        chosen = np.arange(n_all) if n_all <= n_rows else np.sort(rng.choice(n_all, n_rows, replace=False))
        return self.take(chosen, stratum)

    def place(self, n_centers, *, source, rng, name, n_jobs=None):
        """Centers as placed by `svmosaic.gates.place_centers` in memory, from the same sample."""
        survey, counts = self.target, self.target.class_counts
        if not isinstance(source, str):
            if hasattr(source, "fit") and not hasattr(source, "cluster_centers_"):
                raise ValueError(
                    f"{name}={source!r} would have to be fitted to all rows at once; fit it to a sample, or give "
                    "centers"
                )
            nothing = np.empty((1, survey.n_features), survey.dtype)
            return place_centers(nothing, n_centers, source=source, rng=rng, name=name)
        shares = class_shares(counts, n_centers) if source == "class" else None
        if shares is not None:
            parts = [(k, shares[k]) for k in np.flatnonzero(counts)]
        elif source in ("class", "kmeans"):
            parts = [(None, n_centers)]
        elif source == "random":
            chosen = rng.choice(self.n_rows, min(n_centers, self.n_rows), replace=False)
            X = self.take(np.sort(chosen))[0]
            return np.unique(X.toarray() if sparse.issparse(X) else X, axis=0)
        else:
            raise ValueError(f"{name} must be 'kmeans', 'class', 'random', an array or a clusterer, got {source!r}")
        centers = []
        for stratum, n in parts:
            X, target = self.sample(ROWS_PER_CENTER * n, rng, stratum)
            options = {"rows_per_center": None, "rng": rng, "n_jobs": n_jobs}
            centers.append(place_centers(X, n, sample_weight=target.weight, **options))
        return np.unique(np.concatenate(centers), axis=0)

    def used(self, gate, n_jobs=None):
        return self.partitions.total(cells_used, gate, self.partitions.n_threads) > 0

    def encode(self, gate, options):
        self.partitions.advance(with_codes, gate, options.C, options.bias, self.partitions.n_threads)
        self.one_tile = gate.width == 1

    def solve(self, coupling, options, progress, rng, start=None):
        solutions = self._solve(self._jobs(coupling, options), options, progress)
        return coupling, [s.weights for s in solutions], solutions

    def calibrate(self, method, fit, solve_tiles, options, progress, rng):
        """Calibration fitted to scores of rows held out in turn; the folds are solved in the same rounds."""
        require_rows(method, self.target.head.classes, self.target.class_counts, N_FOLDS)
        jobs = self._jobs(fit.coupling, options)
        n_outputs = len(jobs)
        folds = [replace(job, fold=f, slot=n_outputs * (f + 1) + job.slot) for f in range(N_FOLDS) for job in jobs]
        solutions = self._solve(folds, options, progress)
        mosaics = []
        for f in range(N_FOLDS):
            fold = solutions[f * n_outputs : (f + 1) * n_outputs]
            mosaics.append(fit.resolved((fit.coupling, [s.weights for s in fold], fold), options).mosaic)
        share = min(1.0, CALIBRATION_ROWS / self.n_rows)
        found = self.partitions.gather(held_out_scores, mosaics, share, self.partitions.n_threads)
        scores, label, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return fit_calibration(method, scores, label, weight)

    def region_counts(self, mosaic, head, n_jobs=None):
        return self.partitions.total(regions, mosaic, head, self.partitions.n_threads)

    def coded(self, gate, here):
        rows = self.take(here)[0]
        return gate.code(rows), rows

    def _jobs(self, coupling, options):
        sight = None if self.one_tile else options.sight  # a single tile sees all
        return [
            Job(c, c, coupling, options.loss, parameters=options.loss_parameters, sight=sight)
            for c in range(self.target.head.n_outputs)
        ]

    def _solve(self, jobs, options, progress):
        """Solve all jobs by the one Newton method, in the same rounds; the tiles of a job are solved together.

        They ask in step, so that one pass over the rows answers all. Every round is checked to have seen all rows.
        """
        coupling, partitions = jobs[0].coupling, self.partitions
        n_features = self.n_features if self.feature_map is None else self.feature_map.n_features  # that tiles see
        control = progress.control(len(jobs), coupling, (coupling.n_blocks, n_features + 1), False, len(jobs))
        runs = []
        for k, job in enumerate(jobs):
            # A single tile per row makes the Hessian an arrow, whose system is solved directly.
            setting = Setting(job, coupling, job.loss, n_features, self.one_tile, travels=True, sight=job.sight)
            task = control.for_task((k, None), 0, 1)  # in step with each other: each of them has all the time
            runs.append(
                newton_steps(
                    setting, np.zeros(setting.shape), FIRST_STEPS[False], tol=options.tol, max_iter=options.max_iter,
                    control=task, keep=lambda move: None,
                )
            )  # fmt: skip
        asked = {k: next(run) for k, run in enumerate(runs)}
        solutions: list = [None] * len(jobs)
        while asked:
            moves = [question.move for question in asked.values() if question.move is not None]
            if moves:
                partitions.advance(move, moves, partitions.n_threads)
            answers = partitions.total(answer, list(asked.values()), partitions.n_threads)
            for k, found in zip(list(asked), answers, strict=True):
                if isinstance(asked[k], Evaluate) and found[0][0] != self.n_rows:
                    raise RuntimeError(
                        f"a round saw {found[0][0]:.0f} of {self.n_rows} rows: rows were lost, nothing is fitted"
                    )
                try:
                    asked[k] = runs[k].send(found)
                except StopIteration as stop:
                    certificate, n_iter, target = stop.value
                    solutions[k] = Solution(
                        **vars(certificate), alpha=None, n_iter=n_iter, target=target, solver="newton"
                    )
                    del asked[k]
        progress.report(solutions, coupling, options.max_iter, control)
        return solutions
