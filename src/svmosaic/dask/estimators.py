"""The estimators over Dask collections: the parameters of the ordinary ones, and a client."""

from copy import deepcopy
from dataclasses import field, fields, make_dataclass
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from svmosaic import estimators
from svmosaic._validation import check_real
from svmosaic.dask.workers import Workers, aligned, raw_parts
from svmosaic.model.heads import head_of
from svmosaic.scale import fit

_DOC = """{name} over Dask collections.

    The model, its parameters and its fitted attributes are those of `svmosaic.{name}`, fitted to the same objective
    with the same certificate (`dual_gap_`). Rows stay on the workers; only centers, weights, gradients and one small
    matrix per tile are sent. The solver is always the distributed Newton method, so `solver` must be "auto"; `n_jobs`
    is not used: each worker processes its partitions. If a worker is lost, Dask computes its partitions again from the
    collection and the fit continues; if that is not possible, `WorkerLostError` names the worker.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None: the current client.
    **parameters
        Parameters of `svmosaic.{name}`.

    Attributes
    ----------
    local_ : svmosaic.{name}
        The fitted ordinary estimator. Its attributes are also available here.
    rounds_ : list of Round
        Data transfers: the function, the bytes sent to each worker and the bytes returned by each partition.

    See Also
    --------
    svmosaic.{name} : The ordinary estimator.
    svmosaic.outofcore.fit : The same for rows on disk.
    """

_LEARNED_DOC = """{name} over Dask collections.

    Each partition has its own learner, which takes steps on its rows. Every `steps_between_averages` steps, their
    parameters are averaged, weighted by the number of rows seen, and all continue from the mean. The result depends on
    the partitions, not on the workers. About one partition per worker is best: with more partitions, an epoch has fewer
    steps. Rows should be distributed over the partitions at random. The gate is initialized, and the best epoch found,
    on samples that are fetched. `polish` and `warm_start` raise an error; `device` is that of the workers.

    Parameters
    ----------
    steps_between_averages : int, default=16
        Smaller values are closer to a fit in memory, but send parameters more often.
    client : distributed.Client or None, default=None
        None: the current client.
    **parameters
        Parameters of `svmosaic.{name}`; `batch_size` applies to each partition, by default the ordinary one divided by
        the number of partitions, but at least 32.

    Attributes
    ----------
    local_ : svmosaic.{name}
        The fitted ordinary estimator. Its attributes are also available here.
    rounds_ : list of Round
        Data transfers: the function, the bytes sent to each worker and the bytes returned by each partition.

    See Also
    --------
    svmosaic.{name} : The ordinary estimator.
    svmosaic.outofcore.fit : The same for rows on disk.
    """


class DaskModel(BaseEstimator):
    """What all of them share."""

    _local: type

    def fit(self, X, y, sample_weight=None):
        """Fit to Dask collections.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
        y : Dask array or Series of shape (n_samples,), partitioned as X is; for regressors also (n_samples, n_targets)
        sample_weight : Dask array or Series of shape (n_samples,), optional
            Multiplies C for each row.

        Returns
        -------
        self
        """
        check_real("steps_between_averages", getattr(self, "steps_between_averages", 1), at_least=1, integer=True)
        client = self._client()
        workers = Workers(client, raw_parts(client, X, y, sample_weight))
        workers.steps_between_averages = getattr(self, "steps_between_averages", None)
        self.local_ = fit(self._local_estimator(), workers)
        self.rounds_ = workers.rounds
        return self

    def _sums(self, function, X, y, sample_weight):
        """The sum over partitions of function(model, rows, labels, weights)."""
        check_is_fitted(self, "local_")
        client, model = self._client(), dask.delayed(self.local_)
        parts = [dask.delayed(function)(model, *part) for part in aligned(X, y, sample_weight)]
        return np.sum(client.gather(client.compute(parts)), axis=0)

    def to_local(self):
        """Return the ordinary fitted estimator, which does not need Dask."""
        check_is_fitted(self, "local_")
        return deepcopy(self.local_)

    def _client(self):
        try:
            return distributed.get_client() if self.client is None else self.client
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: start one with distributed.Client(), or give client=..."
            ) from error

    def _local_estimator(self):
        return self._local(**{f.name: getattr(self, f.name) for f in fields(self._local) if f.init})

    def _apply(self, X, method, width, dtype):
        model = dask.delayed(self.local_)
        if isinstance(X, da.Array):
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            if width is None:
                return X.map_blocks(_on_block, model, method, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype))
            chunks = X.chunks[0], (width,)
            return X.map_blocks(_on_block, model, method, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype))
        if isinstance(X, dd.DataFrame):
            meta = _frame(np.empty(0 if width is None else (0, width), dtype), None, _columns(self.local_))
            return X.map_partitions(_on_frame, model, method, meta=meta)
        raise TypeError(
            f"X must be a Dask array or DataFrame, got {type(X).__name__}; for rows in memory use to_local()"
        )

    def __getattr__(self, name):
        # Fitted attributes are the local estimator's.
        if name.endswith("_") and not name.startswith("_") and "local_" in self.__dict__:
            return getattr(self.__dict__["local_"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_clone__(self):
        # A client is a connection: it is passed on, not copied.
        parameters = {k: clone(v, safe=False) for k, v in self.get_params(deep=False).items() if k != "client"}
        return type(self)(**parameters, client=self.client)

    def __getstate__(self):
        return {**super().__getstate__(), "client": None}


class DaskClassifier(ClassifierMixin, DaskModel):
    """Classes over Dask collections."""

    def predict(self, X):
        """Predict the class of each row: a lazy array for an array, a lazy Series for a DataFrame."""
        check_is_fitted(self, "local_")
        return self._apply(X, "predict", None, self.local_.classes_.dtype)

    def decision_function(self, X):
        """Return lazy signed scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self, "local_")
        like = _no_scores(self.local_)
        return self._apply(X, "decision_function", None if like.ndim == 1 else like.shape[1], np.float64)

    @property
    def predict_proba(self):
        """Predict lazy probabilities of shape (n_samples, n_classes); available only with a `calibration`."""
        _ = (self.local_ if hasattr(self, "local_") else self._local_estimator()).predict_proba  # or its error
        return self._predict_proba

    def _predict_proba(self, X):
        """Probabilities of the rows of X, lazily."""
        check_is_fitted(self, "local_")
        return self._apply(X, "predict_proba", len(self.local_.classes_), np.float64)

    def score(self, X, y, sample_weight=None):
        """Return the accuracy, as a number."""
        hits, weight = self._sums(_hits, X, y, sample_weight)
        return float(hits / weight)


class DaskRegressor(RegressorMixin, DaskModel):
    """Values over Dask collections."""

    def predict(self, X):
        """Predict values: a lazy array for an array, a lazy Series or (several targets) DataFrame for a DataFrame."""
        check_is_fitted(self, "local_")
        like = _no_scores(self.local_)
        return self._apply(X, "predict", None if like.ndim == 1 else like.shape[1], np.float64)

    def score(self, X, y, sample_weight=None):
        """Return R2, as a number; for several targets, the mean."""
        weight, sums, squares, errors = self._sums(_residuals, X, y, sample_weight)
        spread = squares - sums**2 / weight
        return float(np.mean(np.where(spread > 0, 1.0 - errors / np.where(spread > 0, spread, 1.0), errors == 0)))


def _residuals(model, X, y, weight):
    """Sums of weights, of the normalized y, of its square and of the squared error, of shape (4, n_outputs)."""
    head = head_of(model)
    found, y = head.targets(_on_block(X, model, "predict")), head.targets(np.asarray(y))
    weight = (np.ones(len(y)) if weight is None else np.asarray(weight).ravel())[:, None]
    return np.stack([np.sum(weight * part, axis=0) for part in (np.ones_like(y), y, y**2, (y - found) ** 2)])


def _hits(model, X, y, weight):
    """Weight of the rows that are classified rightly, and of all rows."""
    right = _on_block(X, model, "predict") == np.asarray(y).ravel()
    weight = np.ones(len(right)) if weight is None else np.asarray(weight).ravel()
    return np.array([weight @ right, weight.sum()])


def _on_block(block, model, method):
    if block.shape[0] == 0:  # which estimators refuse
        if method == "predict":
            return model.classes_[:0] if hasattr(model, "classes_") else _no_scores(model)
        return _no_scores(model) if method == "decision_function" else np.empty((0, len(model.classes_)))
    return getattr(model, method)(block)


def _no_scores(model):
    """What `decision_function` would give for no rows."""
    head = head_of(model)
    return head.shaped(np.empty((0, head.n_outputs)))


def _on_frame(frame, model, method):
    return _frame(_on_block(frame, model, method), frame.index, _columns(model))


def _columns(model):
    """What the columns of several outputs are called."""
    return getattr(model, "classes_", head_of(model).output_names)


def _frame(values, index, columns):
    return pd.Series(values, index=index) if values.ndim == 1 else pd.DataFrame(values, index=index, columns=columns)


def _over_dask(local, doc=_DOC, **more):
    """The class with the parameters of an ordinary estimator, more with these defaults, and a client."""
    own = [(name, Any, field(default=default, kw_only=True)) for name, default in {**more, "client": None}.items()]
    cls = make_dataclass(
        local.__name__, [*((f.name, f.type, f) for f in fields(local) if f.init), *own], eq=False, repr=False,
        bases=(DaskRegressor if issubclass(local, RegressorMixin) else DaskClassifier,),
        namespace={"_local": local, "__doc__": doc.format(name=local.__name__), "__module__": __name__},
    )  # fmt: skip
    cls.__init__.__annotations__ = {}  # as those of the ordinary one
    return cls


LinearSVC = _over_dask(estimators.LinearSVC)
KMeansSVC = _over_dask(estimators.KMeansSVC)
ClusteredSVC = _over_dask(estimators.ClusteredSVC)
LocallyLinearSVC = _over_dask(estimators.LocallyLinearSVC)
LearnedGateSVC = _over_dask(estimators.LearnedGateSVC, _LEARNED_DOC, steps_between_averages=16)
LearnedGateSVR = _over_dask(estimators.LearnedGateSVR, _LEARNED_DOC, steps_between_averages=16)
TreeSVC = _over_dask(estimators.TreeSVC)
LinearSVR = _over_dask(estimators.LinearSVR)
KMeansSVR = _over_dask(estimators.KMeansSVR)
ClusteredSVR = _over_dask(estimators.ClusteredSVR)
LocallyLinearSVR = _over_dask(estimators.LocallyLinearSVR)
TreeSVR = _over_dask(estimators.TreeSVR)
