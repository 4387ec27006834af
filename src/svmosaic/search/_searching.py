"""What `MosaicClassifier` and `MosaicRegressor` share: the search, and what it leaves behind."""

from functools import partial
from time import perf_counter
from typing import Annotated, Any, Literal

import numpy as np

from svmosaic._threads import one_thread
from svmosaic._validation import check_real, check_weight
from svmosaic.estimators._parameters import Count, Positive, check_parameters, parameters, positional
from svmosaic.estimators._progress import Progress
from svmosaic.estimators.base import packed
from svmosaic.estimators.tiles import DESCRIBED_ROWS, MOST_DESCRIBED
from svmosaic.explain.regions import words_of_tiles
from svmosaic.explain.subject import take
from svmosaic.rows import evenly
from svmosaic.search import FAMILIES
from svmosaic.search.choice import HARDLY_HELD_OUT, Found, choose, finish, finish_linear
from svmosaic.search.engine import Search
from svmosaic.search.leaderboard import Leaderboard
from svmosaic.search.plan import CLASSIFIERS, REGRESSORS, folds_of

# Shares of the time budget after which nothing more is tried: if the model is then fitted to all rows, and if not. The
# rest is for the calibration and the regions.
LAST_FIT, NO_LAST_FIT = 0.75, 0.88
# Time budgets, in seconds, of each effort.
BUDGETS = {"quick": None, "good": 60.0, "best": None}
# Rows that regions are counted on.
COUNTED_ROWS = 20_000


@parameters
class SearchMixin:
    """An estimator whose `fit` searches for a model.

    Parameters
    ----------
    time_budget : float, None or "auto", default="auto"
        Seconds for the preparation, the search and the final fit together, at most. What is tried does not depend on
        it: the time only ends the search early, with the best model so far, and `budget_bound_` reports whether it did.
        Otherwise, the same `random_state` gives the same model on every machine. None: no limit. "auto": 60 with
        effort="good", else no limit.
    effort : {"quick", "good", "best"}, default="good"
        How much is tried: 8, 24 or about 50 settings of all families, and variations of the best of them except with
        "quick". What that is for a table follows from its rows, columns and classes.
    max_tiles : int, default=100000
        Maximum number of tiles of the model, including those of all gates and the leaves of all trees. A lower number
        makes prediction cheaper.
    blend : bool, default=True
        Whether a weighted sum of several models may be chosen. False: a single model, which is easier to explain.
    families : sequence of str or None, default=None
        Model families to choose among: "linear", "clustered", "local", "kernel", "learned", "trees", "boosted". None:
        all (for `MosaicRegressor`, all but "kernel").
    validation_fraction : float, default=0.2
        Fraction of the rows that is held out, at most 20,000 rows.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it, unless the time budget ends the search.
    random_state : int, RandomState or None, default=None
        For the held-out rows, the subsamples and all models.
    verbose : int, default=0
        1 prints every candidate and its score.

    Attributes
    ----------
    best_estimator_ : estimator
        The single model, or the one with the largest weight in the blend; like this estimator, it takes unscaled rows.
    scaling_ : Scaling, Ranks or None
        How `best_estimator_` scales the columns: by an affine map, or by quantiles.
    parts_ : list of tuple
        (weight, estimator) of each model of the blend, the largest weight first. A candidate that was not fitted to all
        rows has several, each fitted without another part of them.
    best_score_ : float
        Held-out score of the model; nan if there were too few rows to hold any out, and the model is linear. As the
        best of many scores, it is slightly optimistic.
    leaderboard_ : Leaderboard
        A list of dicts that prints as a table: all trials, the last round first, then the best first. Keys: model,
        tiles (of all gates), gates, pieces, C, scaling, details, rows (of the training part), parts (number of folds
        that were held out), score, std (over the folds, nan for a single one), loss (held-out: the log-loss of
        calibrated scores; for regressors, the mean squared or absolute error of the standardized y), seconds (of all
        fits), failure (why it could not be fitted, or ""), chosen, weight (share in the model). Compare scores only
        within a round, that is, for equal rows and parts. `pandas.DataFrame(leaderboard_)` gives a DataFrame.
    budget_bound_ : bool
        Whether anything was left out for lack of time.
    stop_reason_ : str
        Why the search ended: "time budget", "no better model in ... waves", "nothing left to try", or "stopped by a
        callback".
    held_out_ : tuple of ndarray, or None
        Indices of the training rows (not counting rows of weight zero) that were held out, and their scores, of shape
        (n_held_out, n_outputs), by models that had not seen them; for regressors, ``head_.answers(scores)`` is in units
        of y.
    """

    time_budget: Positive | Literal["auto"] | None = positional("auto")
    effort: Literal["quick", "good", "best"] = "good"
    max_tiles: Count = 100_000
    metric: Any
    blend: bool = True
    families: Any = None
    validation_fraction: Annotated[float, partial(check_real, above=0, at_most=0.5)] = 0.2
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def _check_parameters(self):
        check_parameters(self)
        families = FAMILIES if self.families is None else self.families
        if isinstance(families, str) or not len(families) or not set(families) <= set(FAMILIES):
            raise ValueError(f"families must be a sequence of {', '.join(map(repr, FAMILIES))}, got {self.families!r}")

    def _search(self, X, y, judge, rng, given, began) -> Found:
        """Search, fit what was chosen to all rows, and report what was tried.

        Parameters
        ----------
        X, y : validated rows, and what estimators are fitted to
        judge : Judge
        rng : RandomState
        given : tuple
            What was given to `fit`, for the callbacks.
        began : float
            When `fit` did, on the clock of `perf_counter`: the preparation of a table is part of the budget.
        """
        budget = BUDGETS[self.effort] if self.time_budget == "auto" else self.time_budget
        folds = folds_of(judge.target, self.validation_fraction, rng)
        hardly = bool(folds) and len(folds[0][1]) <= HARDLY_HELD_OUT * X.shape[0]
        share = NO_LAST_FIT if hardly else LAST_FIT
        progress = Progress(self, None, *given)
        search = Search(
            X, y, judge, folds, effort=self.effort, most_tiles=self.max_tiles,
            deadline=None if budget is None else began + share * budget, seed=rng.randint(2**31 - 1),
            n_jobs=self.n_jobs, say=self._say, families=self.families,
            watch=lambda search: progress.step("wave", None, best_score=search.best_score),
        )  # fmt: skip
        if folds:
            judge.check_metric()
        with progress.called_back(None), one_thread():
            search.run()
            if search.trials:
                found = finish(
                    search, choose(search, blends=self.blend), None if budget is None else began + NO_LAST_FIT * budget
                )
            else:
                found = finish_linear(search)
        self.leaderboard_ = Leaderboard(_line(judge.task, trial) for trial in search.ranked())
        self.best_score_, self.budget_bound_ = found.score, search.out_of_time
        self.stop_reason_ = search.stop_reason
        self._say(
            f"stopped: {search.stop_reason}, after {perf_counter() - began:.1f} s; held-out score {found.score:.4f}"
        )
        return found

    def _keep(self, found):
        """Take over the model that was found."""
        self.mosaic_ = found.mosaic
        self.parts_ = [
            (part.weight / len(part.estimators), estimator) for part in found.parts for estimator in part.estimators
        ]
        for _, estimator in self.parts_:
            if hasattr(self, "head_"):  # parts were fitted to values that the head has standardized
                estimator.head_ = self.head_
        self.best_estimator_, self.scaling_ = self.parts_[0][1], found.parts[0].scaling
        self.held_out_ = None if found.rows is None else (found.rows, found.scores)
        for _, estimator in self.parts_:
            estimator._keep_region_sample(None)  # regions are those of the whole, in the columns of the table
            if hasattr(self, "feature_names_in_"):
                estimator.feature_names_in_ = np.array(self._row_names, dtype=object)
        if len(self.parts_) == 1 and hasattr(self, "calibration_"):
            self.best_estimator_.calibration_ = self.calibration_

    def _regions_of(self, X, truth):
        """Counts for `regions_`, of an even sample if there are many rows."""
        if X.shape[0] > COUNTED_ROWS:
            sample = evenly(X.shape[0], COUNTED_ROWS)
            X, truth = X[sample], truth[sample]
        gate_rows, tile_rows = self.mosaic_.features.rows(X)
        return self._count_regions(tile_rows, truth, self.mosaic_.gate.code(gate_rows, self.n_jobs))

    def _words_of_regions(self, given, sample_weight) -> dict:
        """Columns of `regions_` that describe up to 256 regions in words, by some of the rows as they were given."""
        if not 1 < self.mosaic_.n_tiles <= MOST_DESCRIBED:
            return {}
        if not hasattr(given, "shape"):
            given = np.asarray(given, dtype=None if getattr(self, "_table", None) is None else object)
        counted = np.flatnonzero(check_weight(sample_weight, given) > 0)
        few = take(given, counted[evenly(len(counted), DESCRIBED_ROWS)])
        return packed(words_of_tiles(self, few, self.mosaic_.n_tiles))

    def _say(self, line):
        if self.verbose:
            print(f"[{type(self).__name__}] {line}", flush=True)


def _line(task, trial) -> dict:
    """A trial as a line of the leaderboard."""
    done = not trial.failure
    return (
        {"model": (CLASSIFIERS if task == "classification" else REGRESSORS)[trial.candidate.family].__name__}
        | trial.candidate.describe()
        | {
            "rows": trial.n_rows,
            "parts": trial.n_parts,
            "score": trial.score if done else np.nan,
            "std": trial.std,
            "loss": trial.loss if done else np.nan,
            "seconds": trial.seconds,
            "failure": trial.failure,
            "chosen": trial.weight > 0,
            "weight": trial.weight,
        }
    )
