"""The search: candidates climb rungs of growing effort, a wave at a time, and the best are varied.

A wave is decided by results alone, so that the same seed gives the same trials on every machine and for every number
of threads. Time only ends it: a fit that is not over by then counts for nothing.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from math import ceil
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from svmosaic.maps import Pieces
from svmosaic.rows import evenly, total_variance
from svmosaic.search import FAMILIES
from svmosaic.search.judge import MetricError
from svmosaic.search.plan import COMPONENTS, EFFORTS, Candidate, fitting, portfolio, rungs_of
from svmosaic.search.scalings import scalings_of

# Candidates of the first wave, which is all that a short search has, and of later ones.
FIRST_WAVE, WAVE = 3, 6
# One in so many of those on a rung goes on to the next.
KEPT = 2
# Waves of variations without a lower loss after which the search ends.
PATIENCE = 2
# Fits of fewer numbers than this run side by side; larger ones have all threads.
SIDE_BY_SIDE = 5_000_000
# Bytes of all models that are kept until the end.
MOST_BYTES = 1 << 29
# Rows that the variance of the columns is found from.
VARIANCE_ROWS = 2000


@dataclass
class Trial:
    """Result of a candidate on a rung.

    Attributes
    ----------
    candidate : Candidate
    level, n_rows, n_parts : int
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
    seconds : float
        Of all fits.
    models : list of estimator
        One for each part; empty if the models of all trials together take too much memory.
    failure : str
    weight : float
        Share in the model that was chosen.
    """

    candidate: Candidate
    level: int
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
    models: list = field(default_factory=list, repr=False)
    failure: str = ""
    weight: float = 0.0

    @property
    def rank(self) -> tuple:
        """Sorts trials: the better score, then the lower loss, then fewer tiles."""
        return -self.score, self.loss, self.candidate.n_tiles


class Search:
    """Tries candidates; see `MosaicClassifier` for what is promised.

    Parameters
    ----------
    X : validated rows
    y : ndarray
        What estimators are fitted to.
    judge : Judge
    folds : list of (training rows, held-out rows)
        See `svmosaic.search.plan.folds_of`.
    effort : {"quick", "good", "best"}
    most_tiles : int
    deadline : float or None
        On the clock of `perf_counter`.
    seed : int
    n_jobs : int or None
    say : callable
        Takes a line of progress.
    watch : callable
        Called after each wave with this search; whether to leave it at that.
    families : collection of str, optional
        Those that may be tried; None: all but kernel machines for values, for which they take time that others use
        better.
    """

    def __init__(self, X, y, judge, folds, *, effort, most_tiles, deadline, seed, n_jobs, say, watch, families=None):
        self.X, self.y, self.judge, self.folds = X, y, judge, folds
        self.most_tiles, self.deadline, self.seed, self.n_jobs = most_tiles, deadline, seed, n_jobs
        self.say, self.watch = say, watch
        usual_families = FAMILIES if judge.task == "classification" else [f for f in FAMILIES if f != "kernel"]
        self.families = usual_families if families is None else families
        n_candidates, self.variations, self.most_work = EFFORTS[effort]
        self.weight = judge.target.weight
        self.scalings = scalings_of(X, judge.target.sample_weight, seed, n_jobs) | {"none": None}
        self.usual = list(self.scalings)[: max(1, len(self.scalings) - 1)]
        self.density = X.nnz / max(1, X.shape[0]) if sparse.issparse(X) else X.shape[1]
        self.trials: list[Trial] = []
        self.out_of_time = self.stopped = False
        self.stop_reason = "nothing left to try"
        self.knots: dict[int, list] = {}
        self.variances: dict[str, float] = {}
        self.parts: dict[tuple, tuple] = {}
        if folds:
            self.rungs = rungs_of(folds)
            smallest = min(len(train) for train, _ in folds)
            usable = (self.usable(candidate, smallest) for candidate in portfolio(self.usual, X.shape[0]))
            self.queue = list(dict.fromkeys(filter(None, usable)))[:n_candidates]

    def usable(self, candidate, n_rows) -> Candidate | None:
        """The candidate if it suits these rows, perhaps with fewer tiles."""
        candidate = self.judge.suited(candidate)
        if candidate.family not in self.families or candidate.scaling not in self.scalings:
            return None
        candidate = fitting(
            candidate, n_rows=n_rows, most_tiles=self.most_tiles, n_features=self.X.shape[1],
            n_outputs=self.judge.target.n_outputs, is_sparse=sparse.issparse(self.X),
        )  # fmt: skip
        n_outputs = self.judge.target.n_outputs
        if candidate is None or candidate.work(n_rows, self.density, n_outputs) > self.most_work:
            return None
        return candidate

    def run(self):
        """Wave after wave, until nothing is left to try or the time is up."""
        if not self.folds:
            return
        waves = self._waves()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for level, candidates in waves:
                self._attempt(level, candidates)
                if self.out_of_time and any(not trial.failure for trial in self.trials):
                    self.stop_reason = "time budget"
                    return
                if self.watch(self) and any(not trial.failure for trial in self.trials):
                    self.stop_reason = "stopped by a callback"
                    return

    def _waves(self):
        """(level, candidates) of each wave, by what the trials before have shown."""
        queue, patience = list(self.queue), PATIENCE
        size = FIRST_WAVE
        while True:
            if (going_on := self._going_on()) is not None:
                yield going_on
            elif queue:
                yield 0, queue[:size]
                queue, size = queue[size:], WAVE
            else:
                varied = self._varied()
                if not varied or not patience:
                    self.stop_reason = f"no better model in {PATIENCE} waves" if varied else self.stop_reason
                    return
                lowest = min(t.loss for t in self.trials)
                yield from self._climbing(varied)
                patience = PATIENCE if min(t.loss for t in self.trials) < lowest else patience - 1

    def _climbing(self, candidates):
        yield 0, candidates
        while (going_on := self._going_on()) is not None:
            yield going_on

    def _going_on(self):
        """The best of the highest rung of which some have not gone on, if they are among its better half."""
        for level in reversed(range(len(self.rungs) - 1)):
            here = [t for t in self.trials if t.level == level and not t.failure]
            gone_on = {t.candidate for t in self.trials if t.level == level + 1}
            best = sorted(here, key=lambda t: t.loss)[: ceil(len(here) / KEPT)] + sorted(here, key=lambda t: t.rank)[:1]
            candidates = list(dict.fromkeys(t.candidate for t in best if t.candidate not in gone_on))
            if candidates:
                return level + 1, candidates
        return None

    def _varied(self) -> list[Candidate]:
        """Small changes of the leaders, in turn."""
        known = {t.candidate for t in self.trials}
        smallest = min(len(train) for train, _ in self.folds)
        top = [t for t in self.ranked() if not t.failure and t.level == len(self.rungs) - 1]
        leaders = dict.fromkeys(
            [*(t.candidate for t in sorted(top, key=lambda t: t.loss)[:2]), *(t.candidate for t in top[:1])]
        )
        changes = [
            list(
                dict.fromkeys(c for c in (self.usable(c, smallest) for c in one.neighborhood()) if c and c not in known)
            )
            for one in leaders
        ]
        in_turn = (c for several in zip_longest(*changes) for c in several if c is not None)
        varied = list(islice(dict.fromkeys(in_turn), min(WAVE, self.variations)))
        self.variations -= len(varied)
        return varied

    def _attempt(self, level, candidates):
        """Fit candidates with each part of a rung held out, and judge them."""
        rung = self.rungs[level]
        self.say(f"{len(candidates)} candidates on {rung.n_rows} rows, {rung.n_parts} held out in turn")
        keys = [(c, rung.n_rows, part) for c in candidates for part in range(rung.n_parts)]
        todo = [key for key in keys if key not in self.parts]
        n_threads = effective_n_jobs(self.n_jobs)
        # What is fitted first has no limit, so that there is a result.
        first = todo[: rung.n_parts] if all(trial.failure for trial in self.trials) else []
        if n_threads > 1 and rung.n_rows * self.density < SIDE_BY_SIDE and len(todo) > 1:
            pool = ThreadPoolExecutor(min(n_threads, len(todo)))
            try:
                found = list(pool.map(lambda key: self._fit_part(*key, 1, key in first), todo))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for the fits of others
        else:
            found = [self._fit_part(*key, self.n_jobs, key in first) for key in todo]
        self.parts |= {key: part for key, part in zip(todo, found, strict=True) if part is not None}
        for candidate in candidates:
            parts = [self.parts.get((candidate, rung.n_rows, part)) for part in range(rung.n_parts)]
            if None in parts:
                self.out_of_time = True
                continue
            trial = Trial(candidate, level, rung.n_rows, rung.n_parts)
            self.trials.append(trial)
            failures = [part for part in parts if isinstance(part, str)]
            if failures:
                trial.failure = failures[0]
            else:
                self._judge(trial, parts)
            self.say(self._line(trial))
        self._forget()

    def _fit_part(self, candidate, n_rows, part, n_jobs, unlimited):
        """(held-out rows, scores, seconds, model) of a part; a text if the fit failed; None if time was up before."""
        train, held = self.folds[part]
        began = perf_counter()
        limit = None if self.deadline is None or unlimited else self.deadline - began
        if limit is not None and limit <= 0:
            return None
        try:
            model = self.fit(candidate, np.sort(train[:n_rows]), limit, n_jobs)
            scores = self.judge.scores_of(model, self.scaled(candidate, self.X[held]))
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            return str(error)  # a learned gate can diverge; the others stay in the race
        if limit is not None and perf_counter() >= self.deadline:
            return None
        return held, scores, perf_counter() - began, model

    def _judge(self, trial, parts):
        trial.seconds = sum(seconds for _, _, seconds, _ in parts)
        trial.rows = np.concatenate([rows for rows, *_ in parts])
        scores = np.concatenate([scores for _, scores, _, _ in parts])
        if not np.isfinite(scores).all():
            trial.failure = "scores are not finite"
            return
        trial.mixing, scores = self.judge.mix(scores, trial.rows)
        trial.factor, trial.shift = self.judge.temper(scores, trial.rows)
        trial.scores = trial.factor * scores + trial.shift
        try:
            trial.score = self.judge.score(trial.scores, trial.rows)
        except MetricError as error:
            trial.failure = str(error)  # such as negative values, where only positive ones are scored
            return
        trial.loss = self.judge.loss(trial.scores, trial.rows)
        models = [model for *_, model in parts]
        trial.models = [] if None in models else models  # some of a lower rung may have been let go
        if len(parts) > 1:
            each = np.split(trial.scores, np.cumsum([len(rows) for rows, *_ in parts])[:-1])
            try:
                trial.std = float(
                    np.std([self.judge.score(s, rows) for s, (rows, *_) in zip(each, parts, strict=True)])
                )
            except MetricError:  # a part lacks a class
                trial.std = np.nan

    def _forget(self):
        """Let go of the models of the worst trials if all together take much memory."""
        total = 0
        for trial in sorted((t for t in self.trials if t.models), key=lambda t: (-t.level, t.loss)):
            total += sum(model.mosaic_.n_bytes for model in trial.models)
            if total > MOST_BYTES and trial.loss > min(t.loss for t in self.trials):
                trial.models = []
                for part in range(trial.n_parts):
                    key = (trial.candidate, trial.n_rows, part)
                    if key in self.parts:
                        self.parts[key] = (*self.parts[key][:-1], None)

    def fit(self, candidate, rows, limit=None, n_jobs=None):
        """The candidate fitted to some rows, within `limit` seconds."""
        model = candidate.estimator(
            self.judge.task, len(rows), seed=self.seed, n_jobs=n_jobs, max_time=limit, pieces=self._pieces(candidate),
            n_components=min(COMPONENTS, self.X.shape[1]), variance=self._variance(candidate),
        )  # fmt: skip
        return model.fit(self.scaled(candidate, self.X[rows]), self.y[rows], sample_weight=self.weight[rows])

    def scaled(self, candidate, X):
        """Rows as the candidate takes them."""
        scaling = self.scalings[candidate.scaling]
        return X if scaling is None else scaling.scale(X)

    def _variance(self, candidate) -> float:
        """That of all columns together, as a candidate with kernels takes them; others do not ask for it."""
        if candidate.family == "kernel" and candidate.scaling not in self.variances:
            some = evenly(self.X.shape[0], VARIANCE_ROWS)
            self.variances[candidate.scaling] = total_variance(self.scaled(candidate, self.X[some]), self.weight[some])
        return self.variances.get(candidate.scaling, 1.0)

    def _pieces(self, candidate):
        """The knots of each column as the candidate takes it: the same for all, so that they can be blended."""
        if candidate.pieces is None:
            return None
        if candidate.pieces not in self.knots:
            weight = self.judge.target.sample_weight
            rng = np.random.RandomState(self.seed)
            self.knots[candidate.pieces] = Pieces.fit(self.X, candidate.pieces, weight, rng, self.n_jobs).knots
        knots, scaling = self.knots[candidate.pieces], self.scalings[candidate.scaling]
        if scaling is None:
            return knots
        center = np.zeros(len(knots)) if scaling.center is None else scaling.center
        return [(u - c) * f for u, c, f in zip(knots, center, scaling.factor, strict=True)]

    def ranked(self) -> list[Trial]:
        """All trials: those on the highest rung first, then by score; what failed comes last."""
        return sorted(self.trials, key=lambda t: (bool(t.failure), -t.level, *t.rank))

    @property
    def best_score(self) -> float:
        """The best score on the highest rung so far."""
        done = [t for t in self.ranked() if not t.failure]
        return done[0].score if done else np.nan

    def _line(self, trial) -> str:
        about = ", ".join(f"{name} {value}" for name, value in trial.candidate.describe().items() if value)
        told = f"failed: {trial.failure}" if trial.failure else f"{trial.score:.4f}"
        return f"  {told} in {trial.seconds:.2f} s (best {self.best_score:.4f}): {trial.candidate.family}, {about}"
