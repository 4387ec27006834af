"""One trial after another: a candidate is fitted with each part held out, and judged by the rows of that part."""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic.maps import Pieces
from svmosaic.rows import evenly, total_variance
from svmosaic.search.candidates import COMPONENTS, Candidate, same_but_effort
from svmosaic.search.judge import MetricError
from svmosaic.search.rungs import HARDLY_HELD_OUT, Clock
from svmosaic.search.scalings import scalings_of

# Share of the budget that the search may use, if the last fit is small, if it is large, and if there is none.
SEARCH_SHARE = {"small": 0.85, "large": 0.7, "none": 0.95}
# If the last fit turns out to be short, the search may use up to this share.
MOST_SHARE = 0.9
# The last fit may take this factor of what is expected before it counts as too long for the time that is left.
SAFETY = 1.3
# Share of the budget by which the last fit ends.
END = 0.98
# Of all models that are kept until the end.
MOST_BYTES = 1 << 29
# Rows that regions are counted on.
COUNTED_ROWS = 100_000
# How often scores of held-out rows are calibrated once the search is over.
CALIBRATIONS = 4
# Rows that the variance of the columns is found from.
VARIANCE_ROWS = 2000


@dataclass
class Trial:
    """How a candidate did on a rung.

    Attributes
    ----------
    candidate : Candidate
    rung, n_rows, n_parts : int
        Of so many rows, with so many parts held out in turn.
    rows : ndarray of int
        The rows that were held out.
    scores : ndarray of shape (n_held_out, n_outputs)
        Theirs, mixed, times `factor`, plus `shift`, which makes them comparable with those of other candidates.
    mixing : Mixing or None
        What the scores of several classes gain from each other.
    score, std : float
        The metric, and its standard deviation over the parts.
    loss : float
    seconds, prediction : float
        Of all fits, and of scoring the held-out rows.
    model : estimator or None
        The model that was fitted without the first part; None if all models together take too much memory.
    failure : str
    weight : float
        Share in the model that was chosen.
    """

    candidate: Candidate
    rung: int
    n_rows: int
    n_parts: int
    rows: Any = None
    scores: Any = None
    mixing: Any = field(default=None, repr=False)
    factor: float = 1.0
    shift: float = 0.0
    score: float = -np.inf
    std: float = np.nan
    loss: float = np.inf
    seconds: float = 0.0
    prediction: float = 0.0
    model: Any = field(default=None, repr=False)
    failure: str = ""
    weight: float = 0.0


class Trials:
    """Fits candidates with rows held out, and judges them.

    Parameters
    ----------
    X : validated rows
    y : ndarray
        What estimators are fitted to.
    judge : Judge
    build : callable
        (candidate, n_rows, **options) -> estimator.
    folds : what `folds_of` returns
    most_tiles : int
    budget : float or None
        Seconds from now.
    seed : int
    n_jobs : int or None
    say : callable
        Takes a line of progress.
    watch : callable
        Called after each trial with this search; whether to leave it at that.
    families : collection of str, optional
        Those that may be tried; None for all.
    """

    def __init__(self, X, y, judge, build, folds, *, most_tiles, budget, seed, n_jobs, say, watch, families=None):
        self.X, self.y, self.judge, self.build, self.folds = X, y, judge, build, folds
        self.weight = judge.target.weight
        self.scalings = {**scalings_of(X, judge.target.sample_weight, seed, n_jobs), "none": None}
        self.usual = [way for way in self.scalings if way != "none"] or ["none"]
        self.most_tiles, self.seed, self.n_jobs, self.say, self.watch = most_tiles, seed, n_jobs, say, watch
        self.families = families
        per_row = X.nnz / X.shape[0] if sparse.issparse(X) else X.shape[1]
        self.clock = Clock(budget, max(1.0, per_row), judge.target.n_outputs)
        self.trials: list[Trial] = []
        self.out_of_time = self.stopped = False
        self.stop_reason = "nothing left to try"
        self._tempering = 0.0  # seconds that it took at most to make the scores of a trial comparable
        self._parts: dict[tuple, tuple] = {}
        self._knots: dict[int, list] = {}
        self._variances: dict[str, float] = {}

    @property
    def n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    @property
    def refits(self) -> bool:
        """Whether what is chosen is fitted once more, to all rows."""
        return not self.folds or len(self.folds[0][1]) > HARDLY_HELD_OUT * self.X.shape[0]

    @property
    def search_share(self) -> float:
        """Share of the budget that may be spent before the last fit."""
        if not self.refits:
            return SEARCH_SHARE["none"]
        if len(self.folds) > 1:
            return SEARCH_SHARE["small"]
        share = SEARCH_SHARE["large"]
        return share if self.clock.budget is None else float(np.clip(self._until_last_fit(), share, MOST_SHARE))

    def _until_last_fit(self) -> float:
        """Share of the budget after which there is no time to fit the best model so far to all rows; 0 if unknown."""
        most = max((len(train) for train, _ in self.folds), default=0)
        best = min((t for t in self.trials if t.n_rows == most and not t.failure), key=rank, default=None)
        if best is None:
            return 0.0
        return END - SAFETY * self.clock.expected(best.candidate, self.X.shape[0]) / self.clock.budget

    @property
    def closing(self) -> float:
        """Seconds that are needed to calibrate, and to count the regions of all rows, by what held-out rows took."""
        done = [t for t in self.trials if t.model is not None]
        if self.clock.budget is None or not done:
            return 0.0
        highest = max(t.rung for t in done)
        per_row = max(t.prediction / len(t.rows) for t in done if t.rung == highest)
        counting = 2.5 * per_row * min(self.X.shape[0], COUNTED_ROWS)
        return min(0.1 * self.clock.budget, counting + CALIBRATIONS * self._tempering)

    def _left(self, share=1.0) -> float:
        """Seconds until this share of the search's time is spent."""
        return self.clock.left(share * self.search_share) - self.closing

    def _attempt(self, candidate, level, rung):
        """Fit a candidate with each part of a rung held out, and judge it."""
        trial = Trial(candidate, level, rung.n_rows, rung.n_parts)
        self.trials.append(trial)
        try:
            parts = self._fit_parts(candidate, rung)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            trial.failure = str(error)  # a learned gate can diverge; the others stay in the race
        else:
            self._judge(trial, parts)
            self._forget()
        self.say(self._line(trial))
        if self.watch(self) and any(not t.failure for t in self.trials):
            self.stopped, self.stop_reason = True, "stopped by a callback"

    def _forget(self):
        """Let go of the models of the worst trials if all together take much memory."""
        total = 0
        for trial in sorted((t for t in self.trials if t.model is not None), key=lambda t: t.loss):
            total += trial.model.mosaic_.n_bytes
            if total > MOST_BYTES and not np.isinf(trial.loss):
                trial.model = None
                key = (trial.candidate, trial.n_rows, 0)
                if key in self._parts:
                    self._parts[key] = (*self._parts[key][:-1], None)

    def _judge(self, trial, parts):
        trial.prediction = sum(seconds for _, _, _, seconds, _ in parts)
        trial.seconds = sum(seconds for _, _, seconds, _, _ in parts)
        trial.rows = np.concatenate([rows for rows, _, _, _, _ in parts])
        scores = np.concatenate([scores for _, scores, _, _, _ in parts])
        if not np.isfinite(scores).all():
            trial.failure = "scores are not finite"
            return
        began = perf_counter()
        trial.mixing, scores = self.judge.mix(scores, trial.rows)
        trial.factor, trial.shift = self.judge.temper(scores, trial.rows)
        self._tempering = max(self._tempering, perf_counter() - began)
        trial.scores = trial.factor * scores + trial.shift
        try:
            trial.score = self.judge.score(trial.scores, trial.rows)
        except MetricError as error:
            trial.failure = str(error)  # such as negative values, where only positive ones are scored
            return
        trial.loss = self.judge.loss(trial.scores, trial.rows)
        if len(parts) > 1:
            each = np.split(trial.scores, np.cumsum([len(rows) for rows, _, _, _, _ in parts])[:-1])
            trial.std = _spread([(self.judge, s, rows) for s, (rows, *_) in zip(each, parts, strict=True)])
        trial.model = parts[0][4]

    def _fit_parts(self, candidate, rung):
        """(held-out rows, scores, seconds of fit and scoring, model) of each part, those that are known as they are."""
        keys = [(candidate, rung.n_rows, part) for part in range(rung.n_parts)]
        todo = [key for key in keys if key not in self._parts]
        limit = None
        if self.clock.budget is not None and any(not t.failure for t in self.trials[:-1]):
            expected = self.clock.expected(candidate, rung.n_rows)
            # On a loaded machine a fit may take long: never twice the time of its rung, so that others get their turn.
            limit = max(0.2, min(self._left(min(1.0, 2 * rung.until)), max(0.5, 4 * expected)))
        workers = min(self.n_threads, len(todo)) if len(self.folds) > 1 else 1
        if workers > 1:
            pool = ThreadPoolExecutor(workers)
            try:
                found = list(pool.map(lambda key: self._fit_part(*key, limit, 1), todo))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for the fits of others
        else:
            found = [self._fit_part(*key, limit, self.n_jobs) for key in todo]
        self._parts |= dict(zip(todo, found, strict=True))
        return [self._parts[key] for key in keys]

    def _fit_part(self, candidate, n_rows, part, limit, n_jobs):
        train, held = self.folds[part]
        started = perf_counter()
        model = self.fit(candidate, np.sort(train[:n_rows]), limit, n_jobs, self._warm(candidate, n_rows))
        seconds = perf_counter() - started
        self.clock.measure(candidate, n_rows, seconds)
        scores = self.judge.scores_of(model, self.scaled(candidate, self.X[held]))
        scoring = perf_counter() - started - seconds
        return held, scores, seconds, scoring, model if part == 0 else None

    def _warm(self, candidate, n_rows):
        """The model of the rung before, or of fewer epochs, if it can be learned on."""
        if candidate.family != "learned" or len(self.folds) > 1:
            return None
        same = same_but_effort(candidate)
        before = [t for t in self.trials if t.model is not None and same_but_effort(t.candidate) == same]
        return before[-1].model if before else None

    def fit(self, candidate, rows, limit=None, n_jobs=None, warm=None):
        """The candidate fitted to some rows, within `limit` seconds, perhaps from where a `warm` model stands."""
        options = {"max_time": limit, "n_jobs": n_jobs, "seed": self.seed, "pieces": self._pieces(candidate)}
        options["n_components"] = min(COMPONENTS, self.X.shape[1])
        options["variance"] = self._variance(candidate)
        model = self.build(candidate, len(rows), **options)
        if warm is not None:
            model = copy.deepcopy(warm).set_params(**model.get_params(deep=False) | {"warm_start": True})
        return model.fit(self.scaled(candidate, self.X[rows]), self.y[rows], sample_weight=self.weight[rows])

    def scaled(self, candidate, X):
        """Rows as the candidate takes them."""
        scaling = self.scalings[candidate.scaling]
        return X if scaling is None else scaling.scale(X)

    def _variance(self, candidate) -> float:
        """That of all columns together, as a candidate with kernels takes them; others do not ask for it."""
        if candidate.family == "kernel" and candidate.scaling not in self._variances:
            some = evenly(self.X.shape[0], VARIANCE_ROWS)
            rows = self.scaled(candidate, self.X[some])
            self._variances[candidate.scaling] = total_variance(rows, self.weight[some])
        return self._variances.get(candidate.scaling, 1.0)

    def _pieces(self, candidate):
        """The knots of each column as the candidate takes it: the same for all, so that they can be blended."""
        if candidate.pieces is None:
            return None
        if candidate.pieces not in self._knots:
            rng, weight = np.random.RandomState(self.seed), self.judge.target.sample_weight
            self._knots[candidate.pieces] = Pieces.fit(self.X, candidate.pieces, weight, rng, self.n_jobs).knots
        knots, scaling = self._knots[candidate.pieces], self.scalings[candidate.scaling]
        if scaling is None:
            return knots
        center = np.zeros(len(knots)) if scaling.center is None else scaling.center
        return [(u - c) * f for u, c, f in zip(knots, center, scaling.factor, strict=True)]

    # ---- what is known ----------------------------------------------------------------------------------

    def ranked(self) -> list[Trial]:
        """All trials: those on the highest rung first, then by score; what failed comes last."""
        return sorted(self.trials, key=lambda t: (bool(t.failure), -t.rung, *rank(t)))

    @property
    def best_score(self) -> float:
        """The best score on the highest rung so far."""
        done = [t for t in self.ranked() if not t.failure]
        return done[0].score if done else np.nan

    def _line(self, trial) -> str:
        about = ", ".join(f"{name} {value}" for name, value in trial.candidate.describe().items() if value)
        told = f"failed: {trial.failure}" if trial.failure else f"{trial.score:.4f}"
        return f"  {told} in {trial.seconds:.2f} s (best {self.best_score:.4f}): {trial.candidate.family}, {about}"


def rank(trial):
    """Sorts trials: the better score, then the lower loss, then fewer tiles."""
    return -trial.score, trial.loss, trial.candidate.n_tiles


def _spread(parts) -> float:
    """Standard deviation of the metric over parts; nan if a part lacks a class."""
    try:
        return float(np.std([judge.score(scores, rows) for judge, scores, rows in parts]))
    except MetricError:
        return np.nan
