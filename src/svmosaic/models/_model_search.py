"""The search of `MosaicClassifier`: successive halving over models, on growing parts of the rows."""

import warnings
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from svmosaic.heads import in_columns
from svmosaic.maps.scaling import Scaling
from svmosaic.models.clustered import ClusteredSVC
from svmosaic.models.learned_gate import LearnedGateSVC
from svmosaic.models.linear import LinearSVC
from svmosaic.models.locally_linear import LocallyLinearSVC

# Rows of the first rung; each rung has GROWTH times the rows of the one before, and keeps one in GROWTH candidates.
# Where parts are held out in turn, the first rung holds out the first two only.
FIRST_RUNG, GROWTH, FIRST_PARTS = 2000, 3, 2
FEWEST_KEPT = 3
# Rounds of small changes to the best, once all rows are in use.
CLIMBS = 3
# With fewer rows held out than this a single part is too noisy a judge, and all parts are held out in turn.
ENOUGH_HELD_OUT, MOST_HELD_OUT = 1000, 20_000
# A tile needs some rows, and a gate more of them to be learnt.
ROWS_PER_TILE, ROWS_TO_LEARN = 10, 200
# Share of the budget by which the last fit may be expected to exceed it.
OVERTIME = 0.25
# Weights of all tiles together, so that wide sparse rows do not fill the memory.
MOST_WEIGHTS = 20_000_000
# Passes of descent in a trial: its accuracy settles long before its gap is certified.
TRIAL_EPOCHS = 20
# Passes of learnt gates: so many that this many rows are seen, within the range.
ROWS_SEEN, EPOCHS = 2_400_000, (12, 50)


@dataclass(frozen=True)
class Candidate:
    """A model that may be tried.

    Attributes
    ----------
    family : {"linear", "clustered", "local", "learned"}
    tiles : int
    C : float or None
        None for a learnt gate whose tiles are not solved again.
    scaling : {"standard", "common", "maxabs"}
    """

    family: str
    tiles: int
    C: float | None
    scaling: str

    def build(self, n_rows, seed, n_jobs, *, trial=False):
        """The estimator, for a fit of `n_rows` scaled rows; a trial may stop short of the optimum."""
        common = {"random_state": seed, "n_jobs": n_jobs}
        if self.family == "linear":
            return LinearSVC(self.C, loss="squared_hinge", tol=1e-3, **common)
        if self.family == "clustered":
            return ClusteredSVC(self.tiles, C=self.C, loss="squared_hinge", tol=1e-3, **common)
        if self.family == "local":
            short = {"solver": "dual", "max_iter": TRIAL_EPOCHS, "tol": 0.01} if trial else {}
            return LocallyLinearSVC(self.tiles, C=self.C, **short, **common)
        epochs = int(np.clip(ROWS_SEEN // n_rows, *EPOCHS))
        polish = {} if self.C is None else {"polish": True, "C": self.C}
        return LearnedGateSVC(self.tiles, max_iter=epochs, early_stopping=False, **polish, **common)

    def neighbours(self):
        """Small changes: twice the tiles, and a larger and a smaller C."""
        if self.family != "linear":
            yield replace(self, tiles=2 * self.tiles)
        if self.family == "learned":
            yield replace(self, C=10.0 if self.C is None else None)
        else:
            yield replace(self, C=4 * self.C)
            yield replace(self, C=self.C / 4)

    def describe(self):
        """What identifies it in the leaderboard."""
        names = {"linear": LinearSVC, "clustered": ClusteredSVC, "local": LocallyLinearSVC, "learned": LearnedGateSVC}
        return {"model": names[self.family].__name__, "tiles": self.tiles, "C": self.C, "scaling": self.scaling}


@dataclass
class Trial:
    """How a candidate did on a rung: so many rows, and so many parts held out in turn."""

    candidate: Candidate
    rung: int
    n_rows: int
    n_parts: int
    scores: list
    seconds: float
    held_out: list = field(default_factory=list)
    failure: str = ""

    @property
    def score(self) -> float:
        return float(np.mean(self.scores)) if self.scores else -np.inf


def scalings_of(X, weight) -> dict[str, Scaling]:
    """The ways to scale that are worth trying.

    "standard": every feature to mean 0 and variance 1. "common": every feature to mean 0, and all by one number, which
    keeps their proportions where these mean something, as between pixels. "maxabs", for sparse rows: by the largest
    absolute value.
    """
    if sparse.issparse(X):
        return {"maxabs": Scaling(None, 1.0 / MaxAbsScaler().fit(X).scale_)}
    scaler = StandardScaler().fit(X, sample_weight=weight)
    if not np.isfinite(scaler.scale_).all():
        raise ValueError("X has values too large to be scaled: their variance overflows")
    ways = {"standard": Scaling(scaler.mean_, 1.0 / scaler.scale_)}
    spread = np.sqrt(scaler.var_[scaler.var_ > 0])
    if len(spread) > 1 and spread.max() > 1.2 * spread.min():
        common = np.full_like(scaler.scale_, 1.0 / np.sqrt(np.mean(scaler.var_)))
        # Features on scales of their own make one of them drown the rest: not worth a try.
        if spread.max() < 100 * np.median(spread):
            ways["common"] = Scaling(scaler.mean_, common)
    return ways


def seeds(scalings, n_rows, cap) -> list[Candidate]:
    """The first candidates, the likeliest to win first, in case the time is short."""
    first = next(iter(scalings))
    pool = [Candidate("linear", 1, 0.1, first)]
    for tiles, C in ((48, 10.0), (16, 1.0)):
        for way in scalings:
            pool += [Candidate("local", tiles, C, way), Candidate("learned", tiles, None, way)]
    pool += [Candidate("linear", 1, C, first) for C in (0.01, 1.0)]
    pool += [Candidate("clustered", 8, C, first) for C in (0.1, 1.0)]
    pool += [Candidate("local", tiles, C, way) for way in scalings for tiles, C in ((48, 1.0), (16, 10.0))]
    return [c for c in pool if admissible(c, n_rows, cap)]


def admissible(candidate, n_rows, cap) -> bool:
    """Whether there are rows enough for its tiles."""
    if candidate.family == "linear":
        return True
    enough = candidate.family != "learned" or n_rows >= ROWS_TO_LEARN
    return enough and candidate.tiles <= min(cap, n_rows / ROWS_PER_TILE)


def spread_by_class(label, rng):
    """An order of the rows whose every beginning has about the shares of the classes, and a row of each."""
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    counts = np.bincount(label)
    within = np.arange(len(label)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.lexsort((rng.permutation(len(label)), within / np.repeat(counts, counts)))]


def folds_of(label, fraction, rng):
    """(training rows, held-out rows): one pair where that is enough, else all in turn; none where it cannot be done."""
    n_parts = min(max(2, round(1 / fraction)), int(np.bincount(label).max()))
    if n_parts < 2:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than parts
        splitter = StratifiedKFold(n_parts, shuffle=True, random_state=rng.randint(2**31 - 1))
        parts = list(splitter.split(label, label))
    if len(parts[0][1]) >= ENOUGH_HELD_OUT:
        parts = parts[:1]
    folds = []
    for train, held in parts:
        if len(held) > MOST_HELD_OUT:
            order = spread_by_class(label[held], rng)
            train = np.concatenate([train, held[order[MOST_HELD_OUT:]]])
            held = held[order[:MOST_HELD_OUT]]
        if len(np.unique(label[train])) > 1:
            folds.append((train[spread_by_class(label[train], rng)], np.sort(held)))
    return folds


class Search:
    """Tries candidates; see `MosaicClassifier` for what is promised.

    Parameters
    ----------
    X : validated rows
    target : Target
    score : callable (model, X, y, sample_weight) -> float, larger is better
    folds : what `folds_of` returns
    cap : int, the most tiles
    budget : float, seconds from now, or None
    seed : int
    n_jobs : int or None
    keep_scores : bool, whether trials keep their scores of held-out rows
    say : callable that takes a line of progress
    """

    def __init__(self, X, target, score, folds, *, cap, budget, seed, n_jobs, keep_scores, say):
        self.X, self.target, self.score, self.folds = X, target, score, folds
        self.y = target.classes[target.label]
        self.scalings = scalings_of(X, target.sample_weight)
        self.cap = max(1, min(cap, MOST_WEIGHTS // (X.shape[1] * target.n_outputs)))
        self.budget, self.started = budget, perf_counter()
        self.seed, self.n_jobs, self.keep_scores, self.say = seed, n_jobs, keep_scores, say
        self.trials: list[Trial] = []
        self.out_of_time = self.stopped = False

    def run(self, watch=lambda: False) -> Candidate:
        """The best candidate on the highest rung that was reached.

        `watch()` is called after each trial, and says whether to leave it at that.
        """
        if not self.folds:
            return Candidate("linear", 1, 1.0, next(iter(self.scalings)))
        rungs = self._rungs()
        pool = seeds(self.scalings, rungs[0][0], self.cap)
        rung = climbs = 0
        while True:
            self._climb(pool, rung, *rungs[rung], watch)
            ranked = self.ranked(rung)
            if self.out_of_time or self.stopped or not ranked:
                break
            if rung + 1 < len(rungs):
                kept = [t.candidate for t in ranked[: max(FEWEST_KEPT, -(-len(ranked) // GROWTH))]]
                pool = kept + [c for best in kept[:2] for c in best.neighbours()]
                rung += 1
            else:
                pool = list(ranked[0].candidate.neighbours())
                climbs += 1
            tried = {t.candidate for t in self.trials if t.rung == rung}
            pool = [c for c in dict.fromkeys(pool) if c not in tried and admissible(c, rungs[rung][0], self.cap)]
            if not pool or climbs > CLIMBS:
                break
        return self._affordable()

    def _rungs(self) -> list[tuple[int, int]]:
        """Rows and parts of each rung."""
        most = min(len(train) for train, _ in self.folds)
        n_rows, rungs = min(most, FIRST_RUNG), []
        if len(self.folds) > FIRST_PARTS:
            return [(n_rows, FIRST_PARTS), (most, len(self.folds))]
        while 1.5 * n_rows < most:  # a last rung of hardly more rows would tell nothing new
            rungs.append((n_rows, len(self.folds)))
            n_rows *= GROWTH
        return [*rungs, (most, len(self.folds))]

    def ranked(self, rung) -> list[Trial]:
        """Trials of a rung, best first; of equals, the one with fewer tiles, then the one tried first."""
        here = [t for t in self.trials if t.rung == rung and t.scores]
        return sorted(here, key=lambda t: (-t.score, t.candidate.tiles))

    def leaderboard(self) -> list[Trial]:
        """All trials: those of the highest rung first, then by score; what failed comes last."""
        rungs = sorted({t.rung for t in self.trials}, reverse=True)
        return [t for rung in rungs for t in self.ranked(rung)] + [t for t in self.trials if not t.scores]

    def _climb(self, pool, rung, n_rows, n_parts, watch):
        """Try the candidates on a rung, as time allows."""
        self.say(f"{len(pool)} candidates on {n_rows} rows, {n_parts} parts held out in turn")
        for candidate in pool:
            first = not any(t.scores for t in self.trials)
            if not first and self._late(candidate, n_rows, n_parts):
                self.out_of_time = True
                continue
            trial = self._try(Trial(candidate, rung, n_rows, n_parts, [], 0.0))
            self.trials.append(trial)
            described = ", ".join(f"{k}={v}" for k, v in candidate.describe().items())
            self.say(f"  {trial.score:.4f} in {trial.seconds:.2f} s: {described}{trial.failure}")
            self.stopped = watch() and any(t.scores for t in self.trials)
            if self.stopped:
                return

    def _try(self, trial) -> Trial:
        candidate = trial.candidate
        scaling = self.scalings[candidate.scaling]
        for train, held in self.folds[: trial.n_parts]:
            part = np.sort(train[: trial.n_rows])
            X, y, weight = (values[part] for values in (self.X, self.y, self.target.weight))
            start = perf_counter()
            model = candidate.build(len(part), self.seed, self.n_jobs, trial=True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.fit(scaling.scale(X), y, sample_weight=weight)
            except ValueError as error:
                # A learnt gate can diverge; the others stay in the race.
                return replace(trial, scores=[], failure=f" failed: {error}")
            trial.seconds += perf_counter() - start
            rows = scaling.scale(self.X[held])
            trial.scores.append(self.score(model, rows, self.y[held], self.target.weight[held]))
            if self.keep_scores:
                values = model.decision_function(rows)
                trial.held_out.append((held, in_columns(values)))
        return trial

    def _expected(self, candidate, n_rows) -> float:
        """Seconds of one fit, from those of its family; unknown families are on the small first rung."""
        known = [t for t in self.trials if t.candidate.family == candidate.family and t.scores]
        if not known:
            return 0.0
        # Solving the tiles of a learnt gate again can take longer than learning it.
        alike = [t for t in known if (t.candidate.C is None) == (candidate.C is None)]
        near = min(alike or known, key=lambda t: (abs(t.candidate.tiles - candidate.tiles), -t.n_rows))
        more = max(1.0, candidate.tiles / near.candidate.tiles) ** 0.5
        return near.seconds / near.n_parts * max(1.0, n_rows / near.n_rows) * more

    def _late(self, candidate, n_rows, n_parts) -> bool:
        """Whether a trial would leave no time to fit the better of it and the best so far to all rows."""
        if self.budget is None:
            return False
        best = self.leaderboard()[0].candidate
        last_fit = max(self._expected(c, self.X.shape[0]) for c in (best, candidate))
        needed = self._expected(candidate, n_rows) * n_parts + last_fit
        return perf_counter() - self.started + needed > self.budget

    def _affordable(self) -> Candidate:
        """The best of the highest rung that can be fitted in the time left, or else the quickest to fit."""
        ranked = [t.candidate for t in self.leaderboard() if t.scores]
        if not ranked:
            reasons = "; ".join(sorted({t.failure for t in self.trials}))
            raise ValueError(f"no candidate could be fitted:{reasons}")
        if self.budget is None:
            return ranked[0]
        # Estimates err: a little beyond the budget is better than a worse model.
        left = (1 + OVERTIME) * self.budget - (perf_counter() - self.started)
        for candidate in ranked:
            if self._expected(candidate, self.X.shape[0]) <= left:
                return candidate
            self.out_of_time = True
        return min(ranked, key=lambda c: self._expected(c, self.X.shape[0]))
