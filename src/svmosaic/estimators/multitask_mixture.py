"""Linear SVMs under a Gaussian mixture, tied by clustered multi-task learning (Mao et al., CIKM 2014)."""

import warnings
from dataclasses import replace
from operator import attrgetter
from time import perf_counter
from typing import Literal

import numpy as np
from scipy import sparse

from svmosaic._threads import one_thread
from svmosaic._validation import warn_if_far
from svmosaic.couplings import ClusteredTasks, Groups
from svmosaic.estimators._parameters import Count, Positive, estimator, positional
from svmosaic.estimators.data import Data
from svmosaic.estimators.mixture import BaseMixtureClassifier, kmeans_cells
from svmosaic.gates import GaussianGate
from svmosaic.gates.gaussian import Covariance
from svmosaic.gates.softmax_tree import within_variance
from svmosaic.rows import Rows

# The floors that are tried on a hold-out, as shares of the mean variance of the features.
FLOORS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Limits of the search: rows, iterations, and number of hold-outs.
SEARCH_ROWS, SEARCH_ITER, SEARCH_SPLITS = 10_000, 10, 2
# The rows may lie this many times their spread away from the origin; beyond, covariances drown in rounding.
MOST_DISTANCE = 1e6


@estimator
class MultiTaskMixtureSVC(BaseMixtureClassifier):
    r"""LSVM-MTL: a Gaussian mixture with a linear SVM per component, and SVMs that form groups.

    It maximizes over mixing coefficients :math:`\pi`, Gaussians and experts w (intercepts included)

    .. math:: \sum_i s_i \log \sum_j \pi_j N(x_i; \mu_j, \Sigma_j) \, e^{-\frac{\rho}{m} \sum_c \max(0,
              1 - y_{ic} \langle w_{jc}, (x_i, \beta_0) \rangle)} - \frac{1}{m} \sum_c \Omega(W_c) , \qquad
              \Omega(W) = \alpha \sum_g \sum_{j \in g} \lVert w_j - \bar w_g \rVert^2 + \beta \lVert W \rVert^2

    or the convex relaxation of :math:`\Omega` (see `ClusteredTasks`), and predicts by the vote
    :math:`\sum_j p(j \mid x) (e^{-h(s_j)} - e^{-h(-s_j)})` of the experts' scores s, with the hinge h. There is
    m = 1 output for two classes; m > 2 classes are handled one-vs-rest in all experts, with one gate; each
    output has its own groups.

    Parameters
    ----------
    n_experts : int, default=14
    groups : {"relaxed", "hard"} or None, default="relaxed"
        How the experts are coupled. "relaxed": the convex relaxation of Zhou, Chen and Ye. "hard": alternating k-means
        on the experts' weights. None: not at all, the penalty is :math:`\beta \lVert W \rVert^2`.
    n_groups : "auto" or int, default="auto"
        "auto": 5, or as many as n_features and n_experts - 1 allow. With as many groups as the weights have dimensions
        or as there are experts, the relaxation has no effect.
    alpha : float, default=0.1
        Weight of the variance within groups.
    beta : float, default=0.1
        Weight of the squared norm; :math:`\beta = \rho / (2C)` for the C of a linear SVM.
    covariance : {"full", "diag", "isotropic"}, default="full"
    covariance_floor : "auto" or float, default="auto"
        Smallest eigenvalue of a covariance, relative to the mean variance of the features; the most sensitive
        parameter. "auto": the largest of 1e-5, 1e-4, 1e-3, 0.01 and 0.1 within one standard error of the best on two
        held-out quarters of the rows, from short runs on at most 10,000 rows without groups.

    Attributes
    ----------
    means_ : ndarray of shape (n_experts, n_features)
        Means of the Gaussians.
    covariances_ : ndarray of shape (n_experts, n_features, n_features), (.., n_features) or (.., 1)
    mixing_ : ndarray of shape (n_experts,)
        Mixing coefficients of the Gaussians.
    covariance_floor_ : float
        The value that was used.
    floor_scores_ : dict
        With "auto": accuracy of each floor on the held-out rows.
    task_groups_ : ndarray of shape (1 or n_classes, n_experts)
        The group of each expert.
    coupling_ : ndarray of shape (1 or n_classes, n_experts, n_experts)
        The matrix M of the relaxation, or the projection on the groups.

    References
    ----------
    X. Mao, O. Wu, W. Hu and P. O'Donovan, Nonlinear Classification via Linear SVMs and Multi-Task Learning, CIKM 2014.
    J. Zhou, J. Chen and J. Ye, Clustered Multi-Task Learning via Alternating Structure Optimization, NIPS 2011.

    See Also
    --------
    MixtureSVC : A gate based on distances.
    HierarchicalMixtureSVC : A tree of gates.

    Examples
    --------
    >>> from svmosaic import MultiTaskMixtureSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = MultiTaskMixtureSVC(n_experts=4, n_groups=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    n_experts: Count = positional(14)
    groups: Groups | None = "relaxed"
    n_groups: Count | Literal["auto"] = "auto"
    alpha: Positive = 0.1
    beta: Positive = 0.1
    covariance: Covariance = "full"
    covariance_floor: Positive | Literal["auto"] = "auto"
    label_weight: Positive = 5.0
    max_iter: Count = 20

    means_ = property(attrgetter("mosaic_.gate.means"))
    covariances_ = property(attrgetter("mosaic_.gate.covariances"))
    mixing_ = property(attrgetter("mosaic_.gate.prior"))

    def _fit_rows(self, rows, rng, progress, held_out=None):
        if sparse.issparse(rows.gate_rows):
            raise ValueError(
                "Sparse input is not supported: the Gaussian gate needs dense rows. Use X.toarray(), or MixtureSVC."
            )
        warn_if_far(self, rows.gate_rows, MOST_DISTANCE)
        if self.groups == "relaxed" and self.n_groups != "auto" and self.n_groups > rows.n_features:
            warnings.warn(
                f"n_groups={self.n_groups} leaves the relaxed groups without effect: the experts' weights have only "
                f"{rows.n_features + 1} dimensions. Use fewer groups, groups='hard' or groups=None.",
                stacklevel=5,
            )
        # Decompositions of covariances on one thread: they are small, and many threads on few processors wait for each
        # other (forty times the processor time at 300 features was seen); nor do the bits depend on their number.
        with one_thread():
            mixture, tasks = super()._fit_rows(rows, rng, progress, held_out), self._tasks(rows.target.n_outputs)
            self.coupling_ = np.array([tasks.matrix(coupling) for coupling in mixture.couplings])
            self.task_groups_ = np.array([tasks.labels(coupling) for coupling in mixture.couplings])
        return mixture

    def _tasks(self, n_outputs):
        n_groups = self.n_groups
        if n_groups == "auto":
            n_groups = max(1, min(5, self.n_features_in_, self.n_experts - 1))
        return ClusteredTasks(self.groups, n_groups, self.alpha / n_outputs, self.beta / n_outputs)

    def _start(self, rows, rng):
        auto = self.covariance_floor == "auto"
        self.covariance_floor_ = self._search_floor(rows, rng) if auto else float(self.covariance_floor)
        return self._start_with(self.covariance_floor_, rows, rng)

    def _start_with(self, floor, rows, rng):
        """The Gaussians of k-means cells, and their responsibilities."""
        X, weight = rows.gate_rows, rows.target.weight
        _, shares = kmeans_cells(rows, self.n_experts, rng, rows_per_center=None)
        mean = np.average(X, axis=0, weights=weight)
        variance = within_variance(X, mean[None, :], weight) / X.shape[1]
        floor *= variance if variance > 0 else 1.0
        return GaussianGate.from_shares(Rows(X, 1.0), shares, floor=floor, covariance=self.covariance), shares

    def _search_floor(self, rows, rng) -> float:
        """The largest floor, hence the smoothest gate, within one standard error of the best on hold-outs."""
        target = rows.target
        scores: dict[float, list[float]] = {floor: [] for floor in FLOORS}
        for _ in range(SEARCH_SPLITS):
            chosen = rng.permutation(rows.n_rows)[: SEARCH_ROWS + SEARCH_ROWS // 3]
            n_test = len(chosen) // 4
            test, train = chosen[:n_test], np.sort(chosen[n_test:])
            if n_test == 0 or len(np.unique(target.label[train])) < len(target.classes):
                return 1e-3  # too few rows to tell
            seed = rng.randint(2**31 - 1)
            for floor in FLOORS:
                scores[floor].append(self._score_floor(floor, rows, train, test, np.random.RandomState(seed)))
        self.floor_scores_ = {floor: float(np.mean(found)) for floor, found in scores.items()}
        best = max(self.floor_scores_.values())
        enough = best - np.sqrt(best * (1.0 - best) / (SEARCH_SPLITS * n_test))
        return max(floor for floor in FLOORS if self.floor_scores_[floor] >= enough)

    def _score_floor(self, floor, rows, train, test, rng) -> float:
        """Accuracy on the rows `test` of a short run, without groups, with this floor from the rows `train`."""
        some, held = Data.of(rows.gate_rows[train], rows.target.take(train)), rows.target.take(test)
        deadline = None
        if self.max_time is not None:  # all of the search may take half of the time
            deadline = perf_counter() + 0.5 * self.max_time / (SEARCH_SPLITS * len(FLOORS))
        tasks = replace(self._tasks(held.n_outputs), groups=None)
        em = self._em(some, tasks, rng, deadline, max_iter=min(self.max_iter, SEARCH_ITER))
        mixture, _ = em.run(*self._start_with(floor, some, rng))
        scores = mixture.mosaic("vote").decision_function(rows.gate_rows[test], self.n_jobs)
        return held.head.accuracy(scores, held.label, held.weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
