"""Base classes of the estimators: what a fitted mosaic gives, and the one `fit`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_choice, check_real, validate_rows
from svmosaic.couplings import Coupling
from svmosaic.estimators._importances import ImportanceMixin
from svmosaic.estimators._parameters import Count, NotNegative, Positive, check_parameters, parameters
from svmosaic.estimators._progress import Progress, all_or_nothing
from svmosaic.estimators.data import Data, validate_batch, validate_training, validate_values
from svmosaic.estimators.tiles import Options, describe, fit_tiles
from svmosaic.explain.contributions import Table, count_regions, explain, names_of, regions_table
from svmosaic.explain.curves import curves_of
from svmosaic.losses import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES
from svmosaic.maps import Pieces
from svmosaic.maps.pieces import SAMPLE
from svmosaic.model.calibration import METHODS
from svmosaic.model.heads import Classify, head_of, in_columns
from svmosaic.rows import bias_of, row_blocks
from svmosaic.solvers import Solver

ClassLoss = Annotated[str, partial(check_choice, choices=CLASSIFICATION_LOSSES)]
ValueLoss = Annotated[str, partial(check_choice, choices=REGRESSION_LOSSES)]


class SaveMixin:
    """`save`, for an estimator."""

    def save(self, path):
        """Write the model to a file that `svmosaic.load` opens without executing code from it.

        Parameters
        ----------
        path : str or path
        """
        from svmosaic.export.files import save

        check_is_fitted(self)
        save(self, path)


class ExportMixin(SaveMixin):
    """Also `save_predictor`, `to_onnx`, `to_c` and `to_javascript`; each exporter is imported when it is called."""

    def save_predictor(self, path):
        """Write `predictor()` to a file, which `svmosaic.load` opens quickly and with only NumPy and the core.

        Parameters
        ----------
        path : str or path
        """
        from svmosaic.export.files import save_predictor

        check_is_fitted(self)
        save_predictor(self.predictor(), path)

    def to_onnx(self, path=None, **options):
        """Return the model as an ONNX `ModelProto`, also written to `path` if given; needs the extra `onnx`.

        Options are `dtype` and `explain`; see `svmosaic.export.onnx.to_onnx`.
        """
        from svmosaic.export.onnx import to_onnx

        check_is_fitted(self)
        return to_onnx(self, path, **options)

    def to_c(self, path, **options):
        """Write the model as one C99 file and its header; see `svmosaic.export.c.to_c`."""
        from svmosaic.export.c import to_c

        check_is_fitted(self)
        return to_c(self, path, **options)

    def to_javascript(self, path=None):
        """Return the model as the text of an ES module, also written to `path` if given.

        It exports `predict`, `predictProba`, `predictInterval`, `scores` and `explain`; see
        `svmosaic.export.javascript.to_javascript`.
        """
        from svmosaic.export.javascript import to_javascript

        check_is_fitted(self)
        return to_javascript(self, path)


@parameters
class ProbabilityMixin:
    """`predict` and `predict_proba` from `decision_function` and, if there is one, `calibration_`.

    Parameters
    ----------
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` converts scores to probabilities, fitted to scores of rows held out in five folds with the
        gate kept. "temperature" (one parameter) and "odds" (two parameters for all classes) do not change `predict`.
        "sigmoid": Platt scaling, two parameters per class. "isotonic": a step function per class, for large data. With
        any of them, `predict` returns the most probable class. None: no `predict_proba`.
    """

    calibration: str | None = None

    _calibrations: ClassVar[tuple[str, ...]] = METHODS

    @property
    def _scores_are_log_odds(self) -> bool:
        """Whether there are probabilities without a calibration being fitted."""
        return False

    def predict(self, X):
        """Predict the class with the largest score, or, with a calibration, the largest probability."""
        scores = self.decision_function(X)  # first: NotFittedError, not AttributeError
        return head_of(self).answers(in_columns(scores))

    @property
    def predict_proba(self):
        """Predict probabilities of shape (n_samples, n_classes); available only with a `calibration`."""
        # No `available_if`, whose error does not say what is lacking.
        if self.calibration is None and not self._scores_are_log_odds:
            others = " or ".join(repr(method) for method in self._calibrations if method != "temperature")
            raise AttributeError(
                f'{type(self).__name__} has no predict_proba without a calibration: pass calibration="temperature" '
                f"(or {others}) and fit it again"
            )
        return self._predict_proba

    def _predict_proba(self, X):
        """Probabilities of the rows of X, of shape (n_samples, n_classes)."""
        scores = self.decision_function(X)
        if getattr(self, "calibration_", None) is None:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without calibration; fit it again to have probabilities"
            )
        return head_of(self).probabilities(in_columns(scores))

    _predict_proba.__name__ = "predict_proba"  # by which scikit-learn's scorers know what they have called

    def _check_calibration(self):
        if self.calibration is not None:
            check_choice("calibration", self.calibration, self._calibrations)


class MosaicMixin(ImportanceMixin, ExportMixin):
    """Answers of a model with `mosaic_`, the attributes of a head and `region_counts_`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of the rows in `fit`.
    feature_names_in_ : ndarray, if X had names
        Names of these features.
    """

    def _scores(self, X):
        """Scores of shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        X = self._rows(X)
        blocks = row_blocks(X.shape[0], self.mosaic_.n_bytes / 8)
        if len(blocks) == 1:
            return self.mosaic_.decision_function(X, self.n_jobs)
        # By blocks, so that an interrupt gets through.
        return np.concatenate([self.mosaic_.decision_function(X[rows], self.n_jobs) for rows in blocks])

    def predictor(self):
        """Return a `Predictor`: the model compiled for single rows and small batches, without scikit-learn's checks.

        Returns
        -------
        Predictor
        """
        check_is_fitted(self)
        return self.mosaic_.compile(head=head_of(self), feature_names=self._row_names)

    def explain(self, X):
        """Decompose the scores of rows exactly into tiles and features; for a regressor, predictions in units of y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has one number per row, tile used, output and feature.

        Returns
        -------
        Explanation
            `features(top)` and `tiles()` return its tables, `to_frame(top)` the former as a pandas DataFrame.
        """
        check_is_fitted(self)
        return explain(self.mosaic_, self._rows(X), head_of(self), self._row_names, self.n_jobs)

    @property
    def regions_(self):
        """Description of each tile on the training data: a `Table` with one line per tile.

        A row is assigned to the tile with the largest weight; with several gates, once for each gate, which a column
        names. Columns: the number of rows; for a classifier, the most frequent class, the accuracy and the share of
        each class; for a regressor, the mean and standard deviation of y and the mean absolute error; and the features
        whose contributions vary most within the region (the mean absolute deviation from their mean; with one output
        and linear tiles, with the sign of the weight).

        For models with up to 256 tiles, three columns describe each region in words. They are computed on first access
        from up to 2,000 training rows: "rule", the two to four conditions on columns that best separate its rows from
        all others; "covers", the share of its rows that satisfy them; and "pure", the share of the rows satisfying them
        that belong to the region. `to_frame()` returns a pandas DataFrame; `svmosaic.explain.describe_regions`
        describes the regions for other rows and merges regions with similar predictions.
        """
        if not hasattr(self, "region_counts_"):
            raise AttributeError(f"this {type(self).__name__} has no counts of its training rows: fit it first")
        table = regions_table(self.mosaic_, self.region_counts_, head_of(self), self._row_names, groups=self._groups)
        return Table({**table.columns, **self._region_words()})

    @property
    def curves_(self):
        """The effect of each feature, per tile and overall (`svmosaic.explain.curves.Curves`), of models with `pieces`.

        For a regressor, they are in units of y.

        ``curves_[feature]`` has `knots`, the `values` for each tile and output, and their `mean` over the tiles,
        weighted by their training rows; ``curves_.ranking()`` lists features by the spread of that mean.
        """
        if not hasattr(self, "mosaic_"):
            raise AttributeError(f"this {type(self).__name__} has no curves: fit it first")
        head, counts = head_of(self), getattr(self, "region_counts_", None)
        rows = None if counts is None else head.region_columns(counts)["rows"]
        return curves_of(self.mosaic_.in_units(head), rows, head.output_names, self._row_names)

    def summarize_regions(self, X, y):
        """Describe the regions on other rows: the same table as `regions_`, with each region in words.

        Regions are described by the conditions on columns that best separate their rows from all others ("rule"), with
        the share of their rows that satisfy them ("covers") and the share of the rows satisfying them that belong to
        the region ("pure").

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or, for a regressor with several targets, (n_samples, n_targets)
        """
        from svmosaic.explain.regions import words_of_tiles

        check_is_fitted(self)
        given, X = X, self._rows(X)
        truth = head_of(self).truth(y)
        if len(truth) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(truth)}")
        gate_rows, tile_rows = self.mosaic_.features.rows(X)
        codes = self.mosaic_.gate.code(gate_rows, self.n_jobs)
        counts = self._count_regions(tile_rows, truth, codes)
        table = regions_table(self.mosaic_, counts, head_of(self), self._row_names, groups=self._groups)
        return Table({**table.columns, **words_of_tiles(self, given, self.mosaic_.n_tiles)})

    def _keep_region_sample(self, sample):
        """Take over the rows by which `describe` lets regions be described in words when `regions_` is first read."""
        for name in ("region_words_", "_region_sample"):
            vars(self).pop(name, None)
        if sample is not None:
            self._region_sample = sample

    def _region_words(self):
        """Columns of `regions_`: rule, covers and pure; none of models with very many tiles."""
        if self.mosaic_.n_tiles == 1:
            return {"rule": np.array(["all rows"]), "covers": np.ones(1), "pure": np.ones(1)}
        if "region_words_" not in vars(self) and "_region_sample" in vars(self):
            from svmosaic.explain.regions import words_of_homes  # here: it takes a while to import

            column, values, homes = self._region_sample
            names = names_of(self.mosaic_, self._row_names)
            self.region_words_ = packed(words_of_homes(values, [names[f] for f in column], homes, self.mosaic_.n_tiles))
        words = vars(self).get("region_words_", {})
        return words and {**words, "rule": np.char.decode(words["rule"], "utf-8")}

    def __getstate__(self):
        """The words in place of the rows that they are found by: model files and pickles stay small."""
        state = dict(super().__getstate__())
        if state.pop("_region_sample", None) is not None:
            self._region_words()
            state["region_words_"] = self.region_words_
        return state

    def _rows(self, X):
        """Rows to predict, as the mosaic takes them."""
        return validate_rows(self, X)

    @property
    def _row_names(self):
        """Names of the columns of these rows, or None."""
        return getattr(self, "feature_names_in_", None)

    @property
    def _groups(self):
        """Names of the user's columns, and which of them each column of the rows is made of; None if it is itself."""
        return None

    def _count_regions(self, tile_rows, truth, codes):
        """Counts for `regions_`: one pass of scoring."""
        head = head_of(self)
        found = head.found(self.mosaic_.score_codes(tile_rows, *codes, self.n_jobs))
        return count_regions(self.mosaic_, head, codes, truth, found, tile_rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class BaseMosaicClassifier(ProbabilityMixin, MosaicMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose `fit` leaves `classes_`, `mosaic_`, `calibration_` and `region_counts_`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    mosaic_ : Mosaic
        The fitted form.
    calibration_ : Temperature, Odds, Sigmoid, Isotonic or None
        Converts scores to probabilities.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile on the training data.
    """

    def decision_function(self, X):
        """Return signed scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores = self._scores(X)  # first: NotFittedError, not AttributeError
        return head_of(self).shaped(scores)

    def _validated(self, X, y, sample_weight):
        """Rows and target of a fit."""
        return validate_training(self, X, y, sample_weight, self.class_weight)

    def _fit_batch(self, X, y, classes, sample_weight):
        """Take a batch of a stream, for models that have `_take_batch`."""
        self._check_parameters()
        first = not hasattr(self, "mosaic_")
        known = None if first else self.classes_
        return self._take_batch(*validate_batch(self, X, y, known, classes, sample_weight, self.class_weight), first)


class BaseMosaicRegressor(MosaicMixin, RegressorMixin, BaseEstimator):
    """A regressor whose `fit` leaves `head_`, `mosaic_` and `region_counts_`.

    Attributes
    ----------
    head_ : Regress
        The mean and the standard deviation of y, `center` and `scale`, which convert scores to predictions.
    mosaic_ : Mosaic
        The fitted form; its scores are predictions of the normalized y.
    regions_ : Table
        Rows, mean and spread of y, mean absolute error and strongest features of each tile on the training data.
    """

    def predict(self, X):
        """Predict values in the units of y, of shape (n_samples,) or, with several targets, (n_samples, n_targets)."""
        scores = self._scores(X)
        return head_of(self).answers(scores)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def packed(words) -> dict:
    """Words as they are kept: a byte per letter."""
    return words and {**words, "rule": np.char.encode(words["rule"], "utf-8")}


class FitMixin(CallbackSupportMixin):
    """The one `fit`: parameters, data, and then what a family does with them (`_fit_rows`)."""

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the gate and the tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,); for regressors also (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the loss of each row. In convex problems, a row with weight k counts as k copies of the row.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = Progress(self, self.max_time, X, y, sample_weight)
        X, target = self._validated(X, y, sample_weight)
        with progress.called_back(self._n_tasks(target)):
            self._fit_rows(Data.of(X, target), check_random_state(self.random_state), progress)
        return self

    def _check_parameters(self):
        check_parameters(self)
        if isinstance(self, ProbabilityMixin):
            self._check_calibration()


@parameters
class ComposedModel(FitMixin):
    """A gate, then the tiles of one convex problem; what scores mean is up to the head.

    Three hooks vary: what gate and tiles see (`_map`), the gate (`_gate`) and how tiles share strength (`_coupling`).
    A family may also solve for its tiles in its own way (`_solving`) and keep more of the weights (`_attributes`).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses relative to the penalty on the weights. Smaller values regularize more.
    solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": coordinate descent, best for many features or sparse rows. "newton": second order, best if rows far
        outnumber features, and the only one that converges on badly scaled data. "auto" chooses by estimated cost.
        "sgd": averaged stochastic gradient descent, which has no certificate: `dual_gap_` is nan.
    tol : float, default=1e-4
        Stop when the duality gap is below `tol` times the objective at zero: for classifiers, C times the sum of sample
        weights; for regressors, the losses if every prediction were the mean.
    max_iter : int, default=1000
        Maximum number of epochs (dual) or steps (newton).
    fit_intercept : bool, default=True
        Whether the tiles have intercepts.
    intercept_scaling : float, default=1.0
        The constant appended to each row for the intercepts, which are penalized like the other weights.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the regions and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective, the gap and the number of live tiles (those whose weights are not all zero) of each
        output, during the fit and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far and a warning that reports their gap. Each
        output (and each independent tile) gets a share of the remaining time when it starts. Finding the regions is
        not interrupted.

    Attributes
    ----------
    objective_ : ndarray of shape (n_outputs,)
        Objective of each output: one for two classes, otherwise one per class; for regressors, one per target, for the
        normalized y.
    dual_gap_ : ndarray of shape (n_outputs,)
        The certificate: no weights have an objective that is lower by more than this. nan after stochastic gradient
        descent, which has no dual solution.
    n_iter_ : int
        Number of epochs or steps; the largest if several problems were solved.
    """

    C: Positive = 1.0
    loss: str
    solver: Solver | Literal["sgd"] = "auto"
    tol: Positive = 1e-4
    max_iter: Count = 1000
    fit_intercept: bool = True
    intercept_scaling: Positive = 1.0
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    max_time: Positive | None = None

    def _fit_rows(self, data, rng, progress):
        """From data, in memory or in partitions, to the fitted attributes."""
        data.map(self._map(data, rng))
        gate = self._gate(data, rng)
        head, options, solve_tiles = data.target.head, self._options(), self._solving
        fit = fit_tiles(
            data, gate, self._coupling(gate.n_tiles), options, progress, rng, solve_tiles=solve_tiles,
            show=self._attributes(head),
        )  # fmt: skip
        if isinstance(head, Classify) and self.calibration is not None:
            calibration = data.calibrate(self.calibration, fit, solve_tiles, options, progress, rng)
            head = Classify(head.classes, calibration)
        counts, sample = describe(data, fit.mosaic, head, self.n_jobs)
        self._remember(head, fit, data.n_rows)
        self.region_counts_ = counts
        self._keep_region_sample(sample)

    def _remember(self, head, fit, n_rows):
        """Keep the outcome of a fit to so many rows."""
        vars(self).update(self._attributes(head)(fit.mosaic, fit.coupling, fit.weights))
        self.objective_ = np.array([s.primal for s in fit.solutions])
        self.dual_gap_ = np.array([s.gap for s in fit.solutions])
        self.n_iter_ = max(s.n_iter for s in fit.solutions)

    def _attributes(self, head):
        """A function from a mosaic, its coupling and its block weights to fitted attributes; it holds no estimator."""
        return lambda mosaic, coupling, weights: {**head.attributes, "mosaic_": mosaic}

    def _map(self, data, rng):
        """The fitted feature map, or None."""
        if getattr(self, "pieces", None) is None:
            return None
        X, target = data.sample(SAMPLE, rng)
        return Pieces.fit(X, self.pieces, target.sample_weight, n_jobs=self.n_jobs)

    def _coupling(self, n_tiles) -> Coupling:
        """How so many tiles share strength."""
        return Coupling.independent(n_tiles)

    def _options(self) -> Options:
        bias = bias_of(self.fit_intercept, self.intercept_scaling)
        return Options(self.C, LOSSES[self.loss], bias, self.solver, self.tol, self.max_iter, self.n_jobs)

    @property
    def _solving(self) -> Callable | None:
        """A function that solves for the tiles in place of `Data.solve`."""
        return None

    def _n_tasks(self, target) -> int:
        """Problems to be solved, for callbacks."""
        return target.n_outputs


@parameters
class ComposedClassifier(ComposedModel, BaseMosaicClassifier):
    """A composed model whose head classifies.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        For a row with margin m: max(0, 1 - m), or its square, which usually needs fewer steps.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    """

    loss: ClassLoss = "hinge"
    class_weight: dict | str | None = None


@parameters
class ValuesMixin:
    """Values instead of classes.

    Parameters
    ----------
    epsilon : float, default=0.1
        Smaller errors cost nothing with the epsilon-insensitive losses; in units of the standard deviation of y,
        unless `normalize_y` is False.
    quantile : float or sequence of float, default=0.5
        Between 0 and 1, for the losses "quantile" and "expectile". With the first, about this fraction of the rows lies
        below the predictions. With a sequence, predictions have one column per value, on the same regions;
        they are fitted independently and may cross.
    normalize_y : bool, default=True
        Fit to (y - mean) / standard deviation, separately for each target, so that C and `epsilon` do not depend on the
        units of y. Predictions are always in units of y.
    """

    epsilon: NotNegative = 0.1
    quantile: float | Sequence[float] = 0.5
    normalize_y: bool = True

    def _validated(self, X, y, sample_weight, **known):
        return validate_values(
            self, X, y, sample_weight, normalize=self.normalize_y, copies=len(self._quantiles), **known
        )

    def _fit_batch(self, X, y, sample_weight):
        """Take a batch of a stream, for models that have `_take_batch`."""
        self._check_parameters()
        new = not hasattr(self, "mosaic_")
        # Rows of one value are answered with it and teach nothing of the scale: the next batch is then the first again.
        first = new or self.head_ is getattr(self, "_head_of_one_value", None)
        X, target = self._validated(X, y, sample_weight, head=None if first else self.head_, reset=new)
        if first:
            one_value = self.normalize_y and (target.truth == target.truth[0]).all()
            self._head_of_one_value = target.head if one_value else None
        return self._take_batch(X, target, first)

    @property
    def _quantiles(self):
        return [self.quantile] if np.ndim(self.quantile) == 0 else list(self.quantile)

    def _loss_parameters(self):
        several = len(self._quantiles) > 1
        return {"epsilon": float(self.epsilon), "quantile": self._quantiles if several else float(self._quantiles[0])}

    def _check_parameters(self):
        super()._check_parameters()
        if not self._quantiles:
            raise ValueError("quantile must be a number between 0 and 1, or a sequence of them, got an empty sequence")
        for q in self._quantiles:
            check_real("quantile", q, above=0, below=1)
        if len(self._quantiles) > 1 and self.loss not in ("quantile", "expectile"):
            raise ValueError(
                f"quantile={self.quantile!r} has several values, which loss={self.loss!r} does not use: pass "
                "loss='quantile', or a single number"
            )


@parameters
class ComposedRegressor(ValuesMixin, ComposedModel, BaseMosaicRegressor):
    r"""A composed model whose head gives values.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "expectile"}, default=...
        With the residual r = y - f(x) of a row: max(0, \|r\| - epsilon), or its square; or q max(0, r) +
        (1 - q) max(0, -r) with q the `quantile`, or the same with squares ("expectile").
    """

    loss: ValueLoss = "epsilon_insensitive"

    def _options(self):
        return replace(super()._options(), loss_parameters=self._loss_parameters())
