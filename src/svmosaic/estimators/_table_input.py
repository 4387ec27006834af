"""Frames and arrays of objects for `MosaicClassifier` and `MosaicRegressor`: tables in the user's columns.

`prepare_training` makes rows of a table in `fit`; with `TableInputMixin` in front of the estimator and
`_remember_table` called once rows are validated, prediction, `explain`, `regions_`, `predictor` and exports take the
user's columns.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from svmosaic._validation import check_weight, require_labels
from svmosaic.estimators._parameters import parameters
from svmosaic.explain.subject import take


def prepare_training(
    X, y, task, *, sample_weight=None, class_weight=None, categorical=None, ordered=None, drop=None, random_state=None
):
    """The preparation of a table, fitted, and its rows; None and X itself if X is a matrix of numbers.

    Nothing is learned from rows of weight zero, which become zeros.

    Parameters
    ----------
    X : frame, array-like or sparse matrix
    y : array-like of shape (n_samples,); for regression also (n_samples, n_targets)
    task : {"classification", "regression"}
    sample_weight, class_weight
        As given to the estimator.
    categorical, ordered, drop, random_state
        As for `TablePreparation`.
    """
    options = {"categorical": categorical, "ordered": ordered, "drop": drop}
    if not any(options.values()) and is_matrix(X):
        return None, X
    if sparse.issparse(X):
        named = next(name for name, value in options.items() if value)
        raise ValueError(f"{named} is for tables with named columns, and X is a sparse matrix")
    from svmosaic.table.table_preparation import TablePreparation

    if task == "classification":
        require_labels(y)
    check_consistent_length(X, y)
    prepared = TablePreparation(**options, task=task, random_state=random_state)
    counts = np.ones(_num_samples(X), dtype=bool)
    if sample_weight is not None:
        counts &= check_weight(sample_weight, X) > 0
    if isinstance(class_weight, dict):
        counts &= [class_weight.get(label, 1) != 0 for label in np.ravel(np.asarray(y)).tolist()]
    if counts.all() or not counts.any():  # without any, validation says so
        return prepared, np.asarray(prepared.fit_transform(X, y))  # whatever set_config(transform_output=...) asks for
    here, X = np.flatnonzero(counts), X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    learned = np.asarray(prepared.fit_transform(take(X, here), np.asarray(y)[here]))
    rows = np.zeros((len(counts), learned.shape[1]))
    rows[here] = learned
    return prepared, rows


def is_matrix(X) -> bool:
    """Whether X is a matrix of numbers, to be validated as such, or a table to be prepared."""
    from svmosaic.table.frames import is_complete_numbers, is_frame

    if is_frame(X):
        return is_complete_numbers(X)
    if isinstance(X, np.ndarray):
        may_hold_objects = X.dtype.kind in "OU"
    else:
        rows = [row for row in X if isinstance(row, (list, tuple))] if isinstance(X, (list, tuple)) else []
        may_hold_objects = any(isinstance(v, str) or v is None for row in rows for v in row)
    if not may_hold_objects:
        return True
    try:
        numbers = np.asarray(X, dtype=object).astype(np.float64)
    except ValueError:
        return np.ndim(np.asarray(X, dtype=object)) != 2
    except OverflowError:  # whole numbers of more than 308 digits may be categories
        return False
    except TypeError:  # neither numbers nor text
        return True
    return numbers.ndim != 2 or not np.isnan(numbers).any()


@parameters
class TableInputMixin:
    """An estimator whose fitted mosaic may have a preparation in front of it.

    Parameters
    ----------
    categorical : list of str, optional
        Columns of a table to treat as categories, whatever their values.
    ordered : dict of str to list, or list of str, optional
        Columns of a table whose categories have an order, from lowest to highest.
    drop : list of str, optional
        Columns of a table to leave out.

    Attributes
    ----------
    preparation_ : TablePreparation or None
        Converts the columns of a table to the rows that `best_estimator_` takes; None if X was a numeric matrix.
    """

    categorical: list | None = None
    ordered: dict | list | None = None
    drop: list | None = None

    def _remember_table(self, prepared):
        """Keep the preparation; the columns of the estimator are then those of the table."""
        self.preparation_ = prepared
        if prepared is not None:
            self.n_features_in_, self.feature_names_in_ = prepared.n_features_in_, prepared.feature_names_in_

    @property
    def _table(self):
        return getattr(self, "preparation_", None)

    def _rows(self, X):
        return super()._rows(X) if self._table is None else np.asarray(self._table.transform(X))

    @property
    def _row_names(self):
        return super()._row_names if self._table is None else list(self._table.get_feature_names_out())

    @property
    def _groups(self):
        return None if self._table is None else self._table.groups

    @property
    def feature_importances_(self):
        """Mean absolute contribution of each column, of shape ``(n_features_in_,)``: weight times spread.

        More precisely, the mean over training rows and outputs of the absolute difference between the contribution and
        its mean in the region of the row. If the model was fitted to a table, the importances of all features made from
        a column are added up.
        """
        if self._table is None:
            return super().feature_importances_
        found = dict.fromkeys(self.feature_names_in_, 0.0)
        importances = self._feature_importances()
        for name, places in self._table.columns.items():
            found[name] = float(importances[places].sum())
        return np.array(list(found.values()))

    def predictor(self):
        """Compile the fitted model for single rows and small batches, without scikit-learn's checks.

        Returns
        -------
        Predictor, or TablePredictor
            The latter if the model was fitted to a table: it takes a row as a dict with columns as keys, without
            pandas.
        """
        packed = super().predictor()
        if self._table is None:
            return packed
        from svmosaic.table.table_predictor import TablePredictor

        return TablePredictor(packed, self._table)

    def explain(self, X):
        """Decompose the scores of rows exactly into tiles and columns.

        Parameters
        ----------
        X : frame, array-like or sparse matrix of shape (n_samples, n_features)
            A few rows: the result has one number per row, tile used, output and column.

        Returns
        -------
        Explanation
            `features(top)` and `tiles()` return its tables, `to_frame(top)` the former as a pandas DataFrame. If the
            model was fitted to a table, the features are its columns, with the contributions of a column added up.
        """
        check_is_fitted(self)
        account = super().explain(X)
        if self._table is None:
            return account
        names, source = self._groups
        return account.grouped(names, source, self._table.shown(X))
