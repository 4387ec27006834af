"""Prediction without ceremony: a fitted model packed for many small calls.

This module needs numpy and the core only; so does unpickling a `Predictor` whose gate the core knows.
"""

from decimal import Decimal

import numpy as np

from svmosaic import _core
from svmosaic.maps.scaling import Scaling
from svmosaic.model.heads import Classify, count_classes, flattened, widened
from svmosaic.packing import pack_gate, pack_scorer, without_duplicates

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Predictor:
    """A compiled model for one row or a batch, without checks beyond shape and dtype.

    Rows are not checked for NaN or infinity, and feature names are not checked: the caller is responsible for what the
    scikit-learn estimator checks on each call. Predictors are thread-safe. Pickles contain plain arrays.

    Created by `estimator.predictor()` or `Mosaic.compile()`.

    Parameters
    ----------
    mosaic : Mosaic or KernelScorer
        A gate or feature map that is implemented in Python is called for each row, at its own cost.
    classes : ndarray of shape (n_classes,), optional
        Classes that `predict` returns; the indices of the outputs if not given.
    calibration : Calibration, optional
        Converts scores to probabilities; if given, `predict` returns the most probable class.
    head : Head, optional
        Converts scores to predictions; `Classify(classes, calibration)` if not given.
    feature_names : sequence of str, optional
        Keys of a row that is given as a dict.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,), or None if `predict` answers with numbers
    n_features : int

    See Also
    --------
    svmosaic.table.table_predictor.TablePredictor : Takes rows of a table.
    svmosaic.export.files.save_predictor : Writes it to a file.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> predictor = ClusteredSVC(n_clusters=4, random_state=0).fit(X, y).predictor()
    >>> int(predictor(X[0])) == int(y[0])
    True
    >>> predictor(X).shape
    (400,)
    """

    def __init__(self, mosaic, classes=None, calibration=None, *, head=None, feature_names=None):
        if head is None:
            n_classes = count_classes(mosaic.n_outputs)
            classes = np.arange(n_classes) if classes is None else np.asarray(classes)
            if classes.shape != (n_classes,):
                raise ValueError(
                    f"classes must have one entry for each of {n_classes} classes, got shape {classes.shape}"
                )
            head = Classify(classes, calibration)
        elif head.n_outputs != mosaic.n_outputs:
            raise ValueError(f"head is for {head.n_outputs} outputs, but the mosaic has {mosaic.n_outputs}")
        state = {
            "head": head,
            "feature_names": None if feature_names is None else [str(name) for name in feature_names],
            "scorer": mosaic,  # what is not packed below: an object with decision_function(X, n_threads)
            "interval": None,
        }
        features = getattr(mosaic, "features", None)
        if features is not None and features.portable and hasattr(mosaic.gate, "core_arguments"):
            tiles, curves = mosaic.packed_tiles()
            scaling = None if features.affine is None else Scaling(*features.affine)
            state |= {"gate": mosaic.gate.core_arguments(), "tiles": tiles, "curves": curves, "scaling": scaling}
            state["scorer"] = None
        self.__setstate__(state)

    def __getstate__(self):
        return self._state

    def __setstate__(self, state):
        self._state = state
        self._head, self._mosaic, self._interval = state["head"], state["scorer"], state["interval"]
        self._calibration = getattr(self._head, "calibration", None)
        self.classes = getattr(self._head, "classes", None)
        self._labels = None if self.classes is None else list(self.classes)
        center = getattr(self._head, "center", None)
        # Of a head with one value per row: what makes it of a score.
        self._units = None if center is None or np.ndim(center) else (float(center), float(self._head.scale))
        self._scaling = state.get("scaling")
        if self._mosaic is not None:
            self.n_features = self._mosaic.n_features
        else:
            coef, curves = state["tiles"][0], state["curves"]
            self._n_outputs = coef.shape[1]
            self.n_features = coef.shape[2] if curves is None else len(curves[0][0])
        # The cores by dtype, each packed when first asked for; those for `predict` of a row without more ado.
        self._scorers, self._direct = {}, {}

    def __call__(self, X):
        """The same as `predict`."""
        return self.predict(X)

    def predict(self, X, n_threads=1):
        """Predict one row (a scalar, unless there are several targets), or each row of a batch.

        Parameters
        ----------
        X : ndarray of shape (n_features,) or (n_samples, n_features), or CSR matrix if the model supports it
            float32 or float64 (other numbers are converted to float64). If the model was fitted to named columns, also
            a row as a dict with columns as keys, or a list of such dicts.
        n_threads : int, default=1
            For a batch.
        """
        if type(X) is np.ndarray and X.ndim == 1:
            scorer = self._direct.get(X.dtype)
            if scorer is not None:
                X = X if self._scaling is None else self._scaling.scale(X)
                if self._units is None:
                    return self._labels[scorer.best_of_row(X)]
                center, scale = self._units
                return center + scale * scorer.first_score(X)
        answers = self._head.answers(self._scores(X, n_threads))
        return answers[0] if _is_row(X) else answers

    def decision_function(self, X, n_threads=1):
        """Return scores of one row (a float for two classes, else an array), or of each row of a batch.

        Parameters
        ----------
        X : as for `predict`
        n_threads : int, default=1
        """
        if type(X) is np.ndarray and X.ndim == 1:
            scorer = self._scorers.get(X.dtype)
            if scorer is not None:
                X = X if self._scaling is None else self._scaling.scale(X)
                if self._n_outputs == 1:
                    return scorer.first_score(X)
                out = np.empty(self._n_outputs)
                scorer.score_row(X, out)
                return out
        scores = flattened(self._scores(X, n_threads))
        if not _is_row(X):
            return scores
        return float(scores[0]) if scores.ndim == 1 else scores[0]

    def predict_proba(self, X, n_threads=1):
        """Predict probabilities of the classes: (n_classes,) for a row, (n_samples, n_classes) for a batch.

        Parameters
        ----------
        X : as for `predict`
        n_threads : int, default=1
        """
        if self._calibration is not None:
            probabilities = self._head.probabilities(self._scores(X, n_threads))
        elif getattr(self._mosaic, "posterior", False):
            probabilities = self._mosaic.predict_proba(checked(X, self.n_features), n_threads)
        else:
            raise AttributeError(
                "this predictor has no calibration, so no probabilities: fit the estimator with "
                "calibration='temperature', 'sigmoid' or 'isotonic'"
            )
        return probabilities[0] if _is_row(X) else probabilities

    def with_interval(self, quantiles, margin):
        """Return this predictor with `predict_interval`.

        Parameters
        ----------
        quantiles : Predictor
            Of a regressor with two quantiles.
        margin : float
            What the ends are moved apart by.
        """
        self._interval = quantiles, float(margin)
        self._state = {**self._state, "interval": self._interval}
        return self

    def predict_interval(self, X, n_threads=1):
        """Predict lower and upper ends in units of y: (2,) for a row, (n_samples, 2) for a batch.

        Parameters
        ----------
        X : as for `predict`
        n_threads : int, default=1
        """
        if self._interval is None:
            raise AttributeError(
                "this predictor has no intervals: fit MosaicRegressor with quantiles=(0.05, 0.95), say"
            )
        quantiles, margin = self._interval
        found = np.asarray(quantiles.predict(X, n_threads))
        return widened(np.sort(found.reshape(-1, 2), axis=1), margin).reshape(found.shape)

    def _scores(self, X, n_threads):
        """Scores of shape (n_rows, n_outputs); one row counts as a batch of one."""
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1, got {n_threads}")
        X = checked(X, self.n_features, self._state["feature_names"])
        if self._mosaic is not None:
            return self._mosaic.decision_function(X, n_threads)
        X = X if self._scaling is None else self._scaling.scale(X)
        scorer = self._scorer(X.dtype)
        if hasattr(X, "indptr"):
            indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            rows = _core.Rows.sparse(X.data, indices, indptr, X.shape[1], 0.0)
        else:
            rows = _core.Rows.dense(X, 0.0)
        out = np.empty((X.shape[0], self._n_outputs))
        if self._state["gate"] is None:
            scorer.score_codes(rows, np.zeros((X.shape[0], 1), dtype=np.int32), None, out, n_threads)
        else:
            scorer.score(rows, out, n_threads)
        return out

    def _scorer(self, dtype):
        scorer = self._scorers.get(dtype)
        if scorer is None:
            gate = self._state["gate"]
            gate = None if gate is None else pack_gate(gate, dtype)
            # Two threads may both come here first: they build the same, and one is kept.
            scorer = pack_scorer(gate, self._state["tiles"], self._state["curves"], dtype)
            scorer = self._scorers.setdefault(dtype, scorer)
            if self._units is not None or (self._labels is not None and self._calibration is None):
                self._direct[dtype] = scorer
        return scorer


def _is_row(X):
    if isinstance(X, dict):
        return True
    return not hasattr(X, "indptr") and not _are_dicts(X) and np.ndim(X) == 1


def _are_dicts(X):
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], dict)


def _by_name(row, names):
    """The values of a row that is given as a dict by column, in the order of the columns."""
    if names is None:
        raise TypeError("rows must be arrays: the model was fitted without column names, so dicts cannot be matched")
    values = [row[name] for name in names if name in row]
    if len(values) < len(names):
        raise ValueError(f"the row lacks {', '.join(repr(name) for name in names if name not in row)}")
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        if not isinstance(value, (int, float, np.number, np.bool_, Decimal)):
            raise ValueError(f"column {name!r} must be a number, got {value!r}")
        try:
            values[place] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"column {name!r} must be a number of float64, got {value!r:.60}") from None
    return values


def checked(X, n_features, names=None):
    """Return X as a batch that the core can read, or raise an error with the reason."""
    if isinstance(X, dict) or _are_dicts(X):
        X = np.array([_by_name(row, names) for row in ([X] if isinstance(X, dict) else X)], dtype=np.float64)
    given = np.shape(X)
    if hasattr(X, "indptr"):
        if getattr(X, "format", None) != "csr":
            raise TypeError(f"sparse rows must be in CSR format, got {getattr(X, 'format', type(X).__name__)}")
        X = without_duplicates(X if X.dtype in _DTYPES else X.astype(np.float64))
    else:
        X = np.asarray(X)
        if X.dtype not in _DTYPES:
            if X.dtype.kind not in "biuf":
                raise TypeError(f"rows must be numbers, got an array of dtype {X.dtype}")
            X = X.astype(np.float64)
        if X.ndim == 1:
            X = X[None, :]
        X = np.ascontiguousarray(X)
    if X.ndim != 2 or (n_features is not None and X.shape[1] != n_features):
        wanted = "n_features" if n_features is None else n_features
        raise ValueError(f"X must have shape ({wanted},) or (n_samples, {wanted}), got {given}")
    return X
