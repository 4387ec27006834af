"""The estimator to try first: it chooses the model itself."""

from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from svmosaic._validation import check_choice, check_real, validate_training
from svmosaic.calibration import METHODS, fit_calibration, require_rows
from svmosaic.maps import scaled_first
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._model_search import Search, folds_of
from svmosaic.models._progress import Progress
from svmosaic.models._table_input import TableInputMixin, prepare_training


class MosaicClassifier(TableInputMixin, CallbackSupportMixin, BaseMosaicClassifier):
    r"""Mosaic of linear SVMs that chooses its model, its number of tiles and its scaling: the one to try first.

    Rows are scaled by the model itself: pass them as they are measured. Linear, clustered, locally linear and
    learnt-gate models are fitted to a part of the rows and judged on rows held out; the best third goes on to three
    times as many rows, together with small changes of the best (twice the tiles, another C), until all rows are in use
    or the time is up. The winner is fitted once more to all rows. Where fewer than 1000 rows would be held out, all
    parts are held out in turn, and their mean counts; the first round then holds out two of them.

    Parameters
    ----------
    time_budget : float or None, default=60
        Seconds for the search and the last fit together; None for no limit. It is looked at between fits, with the
        time that the next would take estimated from those before, so that it can be exceeded by some. A budget
        that is met makes the choice depend on the speed of the machine: `budget_bound_` says whether it was. Without,
        the same `random_state` gives the same model.
    max_tiles : int, default=512
        The most tiles that a model may have. A lower number makes prediction cheaper.
    metric : str, default="accuracy"
        What to choose by: the name of any scorer of scikit-learn that needs `predict` or `decision_function`, such as
        "balanced_accuracy", "f1" or "roc_auc".
    class_weight : dict, "balanced" or None, default=None
        Weighs the rows of each class, in the losses and in the held-out score.
    validation_fraction : float, default=0.2
        Share of the rows that is held out; 20,000 rows at most.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities, fitted to the scores of held-out rows. "temperature": one
        number, `predict` stays as it is. "sigmoid": Platt's, two numbers a class. "isotonic": a step function a class,
        for large sets. With any, `predict` is the most probable class. None: no `predict_proba`.
    categorical : list of str, optional
        Columns of a table to take as categories whatever they hold.
    ordered : dict of str to list, or list of str, optional
        Columns of a table whose categories have an order, from the lowest to the highest.
    drop : list of str, optional
        Columns of a table to leave out.
    n_jobs : int or None, default=None
        Threads within each fit, and in prediction. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the held-out part, the subsamples and all models.
    verbose : int, default=0
        1 prints every candidate and its score.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    best_estimator_ : estimator
        The winner, fitted to all rows; like this estimator it takes rows as they are measured.
    best_score_ : float
        Its held-out score; nan where there were too few rows to hold any out, and the model is linear. Chosen as the
        best of many, it is a little too good to be expected of new rows.
    leaderboard_ : list of dict
        All that was tried, the last round first, then best first: model, tiles, C, scaling, rows (of the training
        part), parts (held out in turn), score (their mean), std (over the parts, nan for a single one), seconds (of all
        its fits), failure (why it could not be fitted, or ""), chosen (True for the winner, which is the first unless
        there was no time left to fit that to all rows). Scores compare within a round, that is for equal rows and
        parts. `pandas.DataFrame(leaderboard_)` shows it as a table.
    budget_bound_ : bool
        Whether anything was left out for want of time.
    mosaic_ : Mosaic
        The fitted form, scaling included.
    calibration_ : Temperature, Sigmoid, Isotonic or None
        From scores to probabilities.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data.
    preparation_ : TablePreparation or None
        From the columns of a table to the rows that `best_estimator_` takes; None if X was a matrix of numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    Examples
    --------
    >>> from svmosaic import MosaicClassifier
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = MosaicClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    >>> model.mosaic_.n_tiles > 1  # a linear model cannot do it
    True
    """

    def __init__(
        self,
        time_budget=60.0,
        *,
        max_tiles=512,
        metric="accuracy",
        class_weight=None,
        validation_fraction=0.2,
        calibration=None,
        categorical=None,
        ordered=None,
        drop=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.time_budget = time_budget
        self.max_tiles = max_tiles
        self.metric = metric
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.calibration = calibration
        self.categorical = categorical
        self.ordered = ordered
        self.drop = drop
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Search, then fit the best to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or frame of pandas, Polars or PyArrow
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the rows in the losses and in the held-out score.

        Returns
        -------
        self
        """
        self._check_parameters()
        scorer = self._scorer()
        rng = check_random_state(self.random_state)
        prepared, X = prepare_training(
            X, y, "classification", categorical=self.categorical, ordered=self.ordered, drop=self.drop, random_state=rng
        )
        X, target = validate_training(self, X, y, sample_weight, self.class_weight)
        self._remember_table(prepared)
        if self.calibration is not None:
            counts = np.bincount(target.label, minlength=len(target.classes))
            require_rows(self.calibration, target.classes, counts)
        seed = rng.randint(2**31 - 1)
        search = Search(
            X, target, self._judge(scorer, target), folds_of(target.label, self.validation_fraction, rng),
            cap=self.max_tiles, budget=self.time_budget, seed=seed, n_jobs=self.n_jobs,
            keep_scores=self.calibration is not None, say=self._say,
        )  # fmt: skip
        progress = Progress(self, None, X, y, sample_weight)
        with progress.called_back(None):
            self._choose_and_fit(X, target, search, progress)
        return self

    def _choose_and_fit(self, X, target, search, progress):
        # Many small fits: threads that wait for one another in k-means would take longer than the work.
        threads = effective_n_jobs(self.n_jobs)
        with threadpool_limits(threads):
            best = search.run(watch=lambda: progress.step("trial", None))
        trials = search.leaderboard()
        won = next((t for t in trials if t.candidate == best), None)
        self.leaderboard_ = [_line(t) | {"chosen": t is won} for t in trials]
        self.best_score_ = np.nan if won is None else won.score
        self.budget_bound_ = search.out_of_time
        self.classes_ = target.classes
        scaling = search.scalings[best.scaling]
        scaled = scaling.scale(X)
        model = best.build(X.shape[0], search.seed, self.n_jobs)
        with threadpool_limits(threads):
            model.fit(scaled, search.y, sample_weight=target.weight)
        self.calibration_ = None
        if self.calibration is not None and won is not None:
            held, scores = (np.concatenate(parts) for parts in zip(*won.held_out, strict=True))
            self.calibration_ = fit_calibration(
                self.calibration, scores, target.label[held], target.sample_weight[held]
            )
        self.mosaic_ = model.mosaic_
        gate_rows, tile_rows = self.mosaic_.features.rows(scaled)
        codes = self.mosaic_.gate.code(gate_rows, self.n_jobs)
        self.region_counts_ = self._count_regions(tile_rows, target.label, codes)
        feature_map = scaled_first(scaling, model.mosaic_.feature_map)
        self.mosaic_ = model.mosaic_ = replace(model.mosaic_, feature_map=feature_map)
        model.calibration_ = self.calibration_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = np.array(self._row_names, dtype=object)
        self.best_estimator_ = model

    def _check_parameters(self):
        check_real("time_budget", self.time_budget, above=0, optional=True)
        check_real("max_tiles", self.max_tiles, at_least=1, integer=True)
        check_real("validation_fraction", self.validation_fraction, above=0, at_most=0.5)
        if self.calibration is not None:
            check_choice("calibration", self.calibration, METHODS)

    def _scorer(self):
        try:
            return get_scorer(self.metric)
        except ValueError as error:
            raise ValueError(
                f"metric must be the name of a scorer, as listed by sklearn.metrics.get_scorer_names(), "
                f"got {self.metric!r}"
            ) from error

    def _judge(self, scorer, target):
        weighted = bool((target.weight != target.weight[0]).any())

        def judge(model, X, y, weight):
            options = {"sample_weight": weight} if weighted else {}
            try:
                score = float(scorer(model, X, y, **options))
            except (AttributeError, ValueError, TypeError) as error:
                raise TypeError(f"metric={self.metric!r} cannot judge {type(model).__name__}: {error}") from error
            if not np.isfinite(score):
                raise ValueError(f"metric={self.metric!r} gave {score} on the held-out rows")
            return score

        return judge

    def _say(self, line):
        if self.verbose:
            print(f"[MosaicClassifier] {line}")


def _line(trial) -> dict:
    """A trial as a line of the leaderboard."""
    return trial.candidate.describe() | {
        "rows": trial.n_rows,
        "parts": trial.n_parts,
        "score": trial.score if trial.scores else np.nan,
        "std": float(np.std(trial.scores)) if len(trial.scores) > 1 else np.nan,
        "seconds": trial.seconds,
        "failure": trial.failure.strip(),
    }
