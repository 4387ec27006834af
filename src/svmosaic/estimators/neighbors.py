"""SVM-KNN (Zhang, Berg, Maire and Malik, CVPR 2006): a linear SVM around each query."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic import _core
from svmosaic._threads import one_thread
from svmosaic._validation import check_choice, validate_rows
from svmosaic.estimators._parameters import Count, Positive, check_parameters, estimator, positional
from svmosaic.estimators._progress import all_or_nothing
from svmosaic.estimators.base import ExportMixin, ProbabilityMixin
from svmosaic.estimators.data import validate_training
from svmosaic.losses import LOSSES, PLAIN_LOSSES
from svmosaic.model.calibration import cross_fit
from svmosaic.model.heads import head_of, in_columns
from svmosaic.rows import Rows, bias_of

# Queries whose neighbors are looked up at a time, and by one thread: bounds the memory, and lets an interrupt through.
QUERIES_AT_ONCE, QUERIES_PER_SEARCH = 4096, 512


@estimator
class NeighborsSVC(ProbabilityMixin, ExportMixin, ClassifierMixin, BaseEstimator):
    r"""SVM-KNN: for each query, a linear SVM on its nearest training rows.

    `fit` only stores the rows. To predict x, the k nearest training rows N(x) are found. If they are all of one
    class, that class is predicted. Otherwise, the prediction is the sign of :math:`\langle w, (x, \beta) \rangle` (for
    more than two classes among them, the largest of several, one-vs-rest), where w minimizes

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_{i \in N(x)} s_i \, \text{loss}(y_i \langle w, (x_i, \beta) \rangle) .

    There is no fixed set of tiles: w changes with the neighbors, and there are far more sets of
    neighbors than rows. The model therefore has no `mosaic_` that could be scored, exported or plotted; it keeps the
    training rows, and each prediction requires a search and a fit. Locally linear SVMs were proposed to replace this
    method; it is included for comparison.

    Parameters
    ----------
    n_neighbors : int, default=50
        Number of training rows in each SVM; all rows if there are fewer.
    C : float, default=1.0
        Weight of the losses.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        For a row with margin m: max(0, 1 - m), or its square.
    tol : float, default=1e-3
        Each SVM stops when its duality gap is below `tol` times its objective at zero.
    max_iter : int, default=10000
        Maximum number of epochs of dual coordinate descent for each SVM.
    metric : str or callable, default="euclidean"
        Distance for the search, as in `sklearn.neighbors.NearestNeighbors`.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Search algorithm, as in `sklearn.neighbors.NearestNeighbors`.
    fit_intercept : bool, default=True
        Whether the SVMs have intercepts.
    intercept_scaling : float, default=1.0
        The constant :math:`\beta` appended to each row for the intercept, which is penalized like the other weights.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class; "balanced" refers to the classes of the training rows, not of the neighbors.
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` converts scores to probabilities. It is fitted to the scores of the training rows, each
        computed from neighbors in the other four of five folds, so `fit` then costs as much as predicting all training
        rows. None: no `predict_proba`.
    n_jobs : int or None, default=None
        Number of threads, over queries. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the order of the coordinates, which is the same for every query.
    verbose : int, default=0
        1 prints how many queries needed an SVM.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    calibration_ : Temperature, Odds, Sigmoid, Isotonic or None
    neighbors_ : NearestNeighbors
        The fitted search, with the training rows.
    n_features_in_ : int
        Number of features of the rows in `fit`.
    feature_names_in_ : ndarray, if X had names
        Names of these features.

    See Also
    --------
    LocallyLinearSVC : Tiles that are fitted once instead of per query.

    Notes
    -----
    The scores of classes that are present among the neighbors are those of the SVMs, or 1 if there is only one class;
    absent classes get the lowest of these scores minus one, and at most -1. A row with weight k does not count as k
    copies of the row, because copies would replace other neighbors. Only rows of weight zero are left out of the
    search.

    References
    ----------
    H. Zhang, A. C. Berg, M. Maire and J. Malik, SVM-KNN: Discriminative Nearest Neighbor Classification for Visual
    Category Recognition, CVPR 2006.

    Examples
    --------
    >>> from svmosaic import NeighborsSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = NeighborsSVC(n_neighbors=20).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.95)
    True
    """

    n_neighbors: Count = positional(50)
    C: Positive = 1.0
    loss: str = "hinge"
    tol: Positive = 1e-3
    max_iter: Count = 10_000
    metric: Any = "euclidean"
    algorithm: str = "auto"
    fit_intercept: bool = True
    intercept_scaling: Positive = 1.0
    class_weight: dict | str | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Store the training rows, and build the index for the search.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row.

        Returns
        -------
        self
        """
        check_parameters(self)
        check_choice("loss", self.loss, PLAIN_LOSSES)
        self._check_calibration()
        X, target = validate_training(self, X, y, sample_weight, self.class_weight)
        rng = check_random_state(self.random_state)
        self._seed = rng.randint(2**31 - 1)
        self.classes_ = target.classes
        X = X.copy()  # validation may return the caller's own, which may change
        self._rows, self._label, self._weight = X, target.label.astype(np.int32), target.weight
        self._squared_norms = Rows(X, 0.0).squared_norms
        self.neighbors_ = self._search()
        self.calibration_ = None if self.calibration is None else self._calibrate(X, target, rng)
        return self

    def _search(self):
        from sklearn.neighbors import NearestNeighbors  # here, since it takes a while to import

        k = min(self.n_neighbors, self._rows.shape[0])
        search = NearestNeighbors(n_neighbors=k, metric=self.metric, algorithm=self.algorithm, n_jobs=1)
        return search.fit(self._rows)

    def _calibrate(self, X, target, rng):
        def scores_without(weight):
            kept = weight > 0
            # Class weights are in the weights of the rows already.
            part = clone(self).set_params(calibration=None, class_weight=None, random_state=self._seed, verbose=0)
            part.fit(X[kept], target.classes[target.label[kept]], weight[kept])
            scores = np.empty((len(weight), target.n_outputs))
            scores[~kept] = in_columns(part.decision_function(X[~kept]))
            return scores

        return cross_fit(self.calibration, target, scores_without, rng)

    def __getstate__(self):
        # The search is built anew from the rows: a file or a pickle holds them once.
        return {name: value for name, value in super().__getstate__().items() if name != "neighbors_"}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_rows" in vars(self):
            self.neighbors_ = self._search()

    def decision_function(self, X):
        """Return signed scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_rows(self, X).astype(self._rows.dtype, copy=False)  # in the storage of the training rows
        if sparse.issparse(self._rows):
            X = sparse.csr_array(X)
        else:
            X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X)
        bias = bias_of(self.fit_intercept, self.intercept_scaling)
        n_classes, n_queries = len(self.classes_), X.shape[0]
        rows = Rows(self._rows, bias)
        cost, squared_norms = self.C * self._weight, self._squared_norms + bias**2
        seed = np.random.SeedSequence(self._seed).generate_state(4, np.uint64)
        scores = np.empty((n_queries, head_of(self).n_outputs))
        reports = []
        for begin in range(0, n_queries, QUERIES_AT_ONCE):
            queries = X[begin : begin + QUERIES_AT_ONCE]
            found = self._nearest(queries)
            # In the order of the training rows, so that equal distances do not change the descent.
            index = np.ascontiguousarray(np.sort(found, axis=1), dtype=np.int32)
            reports.append(
                _core.score_by_neighbors(
                    rows.core, Rows(queries, bias).core, index, self._label, cost, squared_norms, n_classes,
                    LOSSES[self.loss].power, self.tol, self.max_iter, seed,
                    scores[begin : begin + QUERIES_AT_ONCE], effective_n_jobs(self.n_jobs),
                )
            )  # fmt: skip
        n_problems, n_late = sum(r[0] for r in reports), sum(r[1] for r in reports)
        if self.verbose:
            epochs = max(r[2] for r in reports)
            print(f"[{type(self).__name__}] {n_queries} queries: {n_problems} SVMs, at most {epochs} epochs")
        if n_late:
            warnings.warn(
                f"{type(self).__name__}: {n_late} of {n_problems} SVMs stopped after max_iter={self.max_iter} epochs; "
                f"the worst has a relative duality gap of {max(r[3] for r in reports):.3g}, above tol={self.tol:.3g}. "
                "Standardize the features, increase max_iter, raise tol, or lower C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return head_of(self).shaped(scores)

    def _nearest(self, queries):
        """The neighbors of each query, the same ones whatever the number of threads.

        A search that multiplies matrices rounds differently with more threads, and breaks ties of distances otherwise.
        So each thread searches for queries of its own, with one thread for BLAS and OpenMP, in blocks of a fixed size.
        """

        def search(block):
            with one_thread():
                return self.neighbors_.kneighbors(block, return_distance=False)

        blocks = [queries[b : b + QUERIES_PER_SEARCH] for b in range(0, queries.shape[0], QUERIES_PER_SEARCH)]
        n_threads = min(effective_n_jobs(self.n_jobs), len(blocks))
        if n_threads == 1:
            return np.concatenate([search(block) for block in blocks])
        with ThreadPoolExecutor(n_threads) as threads:
            return np.concatenate(list(threads.map(search, blocks)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
