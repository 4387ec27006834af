"""What `MosaicClassifier` and `MosaicRegressor` share: the search, and what it leaves behind."""

from typing import Any

import numpy as np

from svmosaic._validation import check_real
from svmosaic.interpretation.regions import words_of_tiles
from svmosaic.interpretation.subject import take
from svmosaic.models._families import NAMES
from svmosaic.models._progress import Progress
from svmosaic.search.candidates import FAMILIES
from svmosaic.search.choice import Found, choose, finish, finish_linear
from svmosaic.search.climb import Search
from svmosaic.search.leaderboard import Leaderboard
from svmosaic.search.rungs import folds_of
from svmosaic.search.trials import COUNTED_ROWS

# Tiles of which `regions_` has the words, more are merged by `describe_regions`, and rows by which they are found.
MOST_DESCRIBED, DESCRIBED_ROWS = 64, 2000


class SearchMixin:
    """An estimator whose `fit` searches for a model."""

    time_budget: float | None
    max_tiles: int
    blend: bool
    families: Any
    validation_fraction: float
    n_jobs: int | None

    def _check_parameters(self):
        check_real("time_budget", self.time_budget, above=0, optional=True)
        check_real("max_tiles", self.max_tiles, at_least=1, integer=True)
        check_real("validation_fraction", self.validation_fraction, above=0, at_most=0.5)
        families = FAMILIES if self.families is None else self.families
        if isinstance(families, str) or not len(families) or not set(families) <= set(FAMILIES):
            raise ValueError(f"families must be a sequence of {', '.join(map(repr, FAMILIES))}, got {self.families!r}")

    def _search(self, X, y, judge, build, rng, given) -> Found:
        """Search, fit what was chosen to all rows, and report what was tried.

        Parameters
        ----------
        X, y : validated rows, and what estimators are fitted to
        judge : Judge
        build : callable
        rng : RandomState
        given : tuple
            What was given to `fit`, for the callbacks.
        """
        progress = Progress(self, None, *given)
        search = Search(
            X, y, judge, build, folds_of(judge.target, self.validation_fraction, rng), most_tiles=self.max_tiles,
            budget=self.time_budget, seed=rng.randint(2**31 - 1), n_jobs=self.n_jobs, say=self._say,
            watch=lambda search: progress.step("trial", None, best_score=search.best_score),
            families=self.families,
        )  # fmt: skip
        with progress.called_back(None):
            search.run()
            found = finish(search, choose(search, blends=self.blend)) if search.trials else finish_linear(search)
        self.leaderboard_ = Leaderboard(_line(type(self).__name__, trial) for trial in search.ranked())
        self.best_score_, self.budget_bound_ = found.score, search.out_of_time
        self.stop_reason_ = search.stop_reason
        self._say(
            f"stopped: {search.stop_reason}, after {search.clock.elapsed:.1f} s; held-out score {found.score:.4f}"
        )
        return found

    def _keep(self, found):
        """Take over the model that was found."""
        self.mosaic_ = found.mosaic
        for part in found.parts:
            if hasattr(self, "head_"):  # parts were fitted to values that the head has standardized
                part.estimator.head_ = self.head_
        self.parts_ = [(part.weight, part.estimator) for part in found.parts]
        self.best_estimator_ = found.parts[0].estimator
        self.held_out_ = None if found.rows is None else (found.rows, found.scores)
        for _, estimator in self.parts_:
            if hasattr(self, "feature_names_in_"):
                estimator.feature_names_in_ = np.array(self._row_names, dtype=object)
        if len(self.parts_) == 1 and hasattr(self, "calibration_"):
            self.best_estimator_.calibration_ = self.calibration_

    def _regions_of(self, X, truth):
        """Counts for `regions_`, of an even sample if there are many rows."""
        if X.shape[0] > COUNTED_ROWS:
            sample = np.linspace(0, X.shape[0] - 1, COUNTED_ROWS).astype(np.intp)
            X, truth = X[sample], truth[sample]
        gate_rows, tile_rows = self.mosaic_.features.rows(X)
        return self._count_regions(tile_rows, truth, self.mosaic_.gate.code(gate_rows, self.n_jobs))

    def _words_of_regions(self, given) -> dict:
        """Columns of `regions_` that describe up to 64 regions in words, by some of the rows as they were given."""
        if not 1 < self.mosaic_.n_tiles <= MOST_DESCRIBED:
            return {}
        if not hasattr(given, "shape"):
            given = np.asarray(given, dtype=None if getattr(self, "_table", None) is None else object)
        few = np.unique(np.linspace(0, given.shape[0] - 1, DESCRIBED_ROWS).astype(np.intp))
        return words_of_tiles(self, take(given, few), self.mosaic_.n_tiles)

    def _say(self, line):
        if self.verbose:
            print(f"[{type(self).__name__}] {line}", flush=True)


def _line(task, trial) -> dict:
    """A trial as a line of the leaderboard."""
    done = not trial.failure
    return (
        {"model": NAMES[task][trial.candidate.family]}
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
