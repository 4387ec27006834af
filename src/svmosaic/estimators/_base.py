"""What every estimator with a fitted mosaic gives: scores, predictors, explanations, regions, exports."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import validate_batch, validate_rows
from svmosaic.estimators._export import ExportMixin
from svmosaic.estimators._importances import ImportanceMixin
from svmosaic.estimators._probabilities import ProbabilityMixin
from svmosaic.estimators._region_words import RegionWordsMixin
from svmosaic.explain.contributions import Table, count_regions, explain, regions_table
from svmosaic.explain.curves import curves_of
from svmosaic.maps import Pieces, check_pieces
from svmosaic.model.heads import head_of
from svmosaic.rows import row_blocks


class MosaicMixin(RegionWordsMixin, ImportanceMixin, ExportMixin):
    """What `mosaic_`, the attributes of a head and `region_counts_` are good for.

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

    def summarise_regions(self, X, y):
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

    def _fit_map(self, X, target, rng):
        """The fitted feature map, or None."""
        if self._pieces is None:
            return None
        return Pieces.fit(X, self._pieces, target.sample_weight, rng, self.n_jobs)

    @property
    def _pieces(self):
        """The parameter `pieces` of models that have it."""
        return getattr(self, "pieces", None)

    def _check_pieces(self):
        check_pieces(self._pieces)

    def _count_regions(self, tile_rows, truth, codes):
        """Counts for `regions_`: one pass of scoring."""
        found = head_of(self).found(self.mosaic_.score_codes(tile_rows, *codes, self.n_jobs))
        return count_regions(self.mosaic_, head_of(self), codes, truth, found, tile_rows)

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
