"""Mixtures of linear SVMs, flat and hierarchical (Fu, Robles-Kelly and Zhou, IEEE TNN 2010), and their base."""

import warnings
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from svmosaic._validation import check_real
from svmosaic.couplings import ClusteredTasks
from svmosaic.estimators._em import EM
from svmosaic.estimators._hold_out import hold_out
from svmosaic.estimators._parameters import (
    Count,
    Fraction,
    Knots,
    NotNegative,
    Positive,
    check_parameters,
    estimator,
    parameters,
    positional,
)
from svmosaic.estimators._progress import Progress, all_or_nothing
from svmosaic.estimators.base import BaseMosaicClassifier
from svmosaic.estimators.data import Data, code, validate_training
from svmosaic.estimators.tiles import describe
from svmosaic.gates import DistanceGate, HierarchicalGate, RBFGate, Responsibilities, place_centers
from svmosaic.gates.softmax_tree import scale_of
from svmosaic.maps import Pieces
from svmosaic.model.calibration import METHODS, Posterior, cross_fit
from svmosaic.model.heads import Classify
from svmosaic.solvers import Solver


@parameters
class BaseMixtureClassifier(CallbackSupportMixin, BaseMosaicClassifier):
    """A mixture of linear SVMs fitted by EM.

    Subclasses say where the gate starts (`_start`), how the experts are tied (`_tasks`) and the options of the gate's
    M-step (`_gate_options`).

    Parameters
    ----------
    label_weight : float, default=1.0
        The rho of the objective: the weight of the labels relative to the positions. 1 is the value of the paper.
    max_iter : int, default=30
        Maximum number of EM iterations.
    tol : float, default=1e-4
        Stop when an iteration raises the objective by no more than this fraction of it.
    max_time : float or None, default=None
        Stop after about this many seconds: solves are cut short, and no further iteration is started. The result is the
        best model so far, with a warning.
    early_stopping : bool, default=False
        Hold out a part of the rows for validation, stop when its accuracy has not improved for `n_iter_no_change`
        iterations, and return the best iterate (which may be the k-means start).
    validation_fraction : float, default=0.1
        Fraction of the rows held out for validation.
    n_iter_no_change : int, default=5
    solver : {"auto", "dual", "newton"}, default="auto"
        For the experts; see `LinearSVC`.
    fit_intercept : bool, default=True
        Whether the experts have intercepts. They are penalized like the other weights, for rows with the root mean
        square norm of the rows appended as a constant.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of each class.
    calibration : {"temperature", "odds", "sigmoid", "isotonic", "posterior"} or None, default=None
        How `predict_proba` converts scores to probabilities. The first four work as in `LinearSVC`: they are fitted to
        scores of rows held out in five folds, with the gate and its responsibilities kept and the experts solved again.
        "posterior": the posterior of the mixture, sum_j g_j(x) p(y | x, j) with p(y | x, j) = exp(-h(y s_j)) /
        (exp(-h(s_j)) + exp(-h(-s_j))), normalized over the outputs if there are more than two classes. Decision values
        are then p(+ | x) - p(- | x) instead of the vote; the sign may differ if experts disagree, because the vote
        gives less weight to an expert with a small margin. With any of them, `predict` returns the most probable class.
        None: no `predict_proba`.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For k-means, the order of the coordinates and the validation rows.
    verbose : int, default=0
        1 prints one line per iteration.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and expert instead of a slope, as in `LinearSVC`. The gate uses the original features.

    Attributes
    ----------
    tile_coef_ : ndarray of shape (n_experts, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_experts, 1 or n_classes)
    calibration_ : Temperature, Odds, Sigmoid, Isotonic, Posterior or None
    n_experts_ : int
        Number of experts after pruning.
    objective_ : ndarray of shape (n_iterations + 1,)
        The objective at the k-means start and after each iteration.
    experts_per_iter_, effective_experts_ : ndarray of shape (n_iterations + 1,)
        Number of live experts, and exp(entropy) of their shares of the rows.
    validation_score_ : ndarray, with `early_stopping`
        Accuracy on the validation rows.
    stop_reason_ : str
        "tol", "max_iter", "max_time", "early_stopping", "callback" or "objective fell".
    n_iter_ : int
        Number of EM iterations.
    """

    label_weight: Positive = 1.0
    max_iter: Count = 30
    tol: NotNegative = 1e-4
    max_time: Positive | None = None
    early_stopping: bool = False
    validation_fraction: Fraction = 0.1
    n_iter_no_change: Count = 5
    solver: Solver = "auto"
    fit_intercept: bool = True
    class_weight: dict | str | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    pieces: Knots | None = None

    _calibrations = (*METHODS, "posterior")

    tile_coef_ = property(attrgetter("mosaic_.coef"))
    intercept_ = property(attrgetter("mosaic_.intercept"))
    n_experts_ = property(attrgetter("mosaic_.n_tiles"))

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit gate and experts by EM.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the rows in k-means, in the gate and in the experts.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, target = validate_training(self, X, y, sample_weight, self.class_weight)
        rng = check_random_state(self.random_state)
        progress = Progress(self, self.max_time, X, y, sample_weight)
        with progress.called_back(self.max_iter):
            held_out = None
            if self.early_stopping:
                n_held = int(np.ceil(self.validation_fraction * X.shape[0]))
                train, held = hold_out(X.shape[0], n_held, rng, target.label)
                held_out = X[held], target.take(held)
                X, target = X[train], target.take(train)
            bent = None if self.pieces is None else Pieces.fit(X, self.pieces, target.sample_weight, rng, self.n_jobs)
            self._fit_rows(Data.of(X, target, bent), rng, progress, held_out)
        return self

    def _fit_rows(self, rows, rng, progress, held_out=None):
        """From rows, and rows to judge iterates by if there are any, to the fitted attributes; returns the mixture."""
        classes, feature_map = rows.target.classes, rows.feature_map
        link = "posterior" if self.calibration == "posterior" else "vote"
        start = self._start(rows, rng)
        em = self._em(rows, self._tasks(rows.target.n_outputs), rng, progress.deadline)
        best = best_at = None

        def attributes(mixture):
            # The other calibrations come after the last iterate.
            calibration = Posterior() if link == "posterior" else None
            return {"classes_": classes, "mosaic_": mixture.mosaic(link, feature_map), "calibration_": calibration}

        def watch(iteration, mixture, trace):
            nonlocal best, best_at
            score = ""
            if held_out is not None:
                X, target = held_out
                scores = mixture.mosaic(link, feature_map).decision_function(X, self.n_jobs)
                accuracy = target.head.accuracy(scores, target.label, target.weight)
                if best is None or accuracy > max(trace.validation_score):
                    best, best_at = mixture, iteration
                trace.validation_score.append(accuracy)
                score = f", validation {accuracy:.4f}"
            if self.verbose:
                print(
                    f"[{progress.name}] iteration {iteration}: objective {trace.objective[-1]:.6g}, "
                    f"gap {mixture.gap:.3g} in the experts, {trace.n_experts[-1]} of {trace.n_experts[0]} tiles live "
                    f"({trace.effective_experts[-1]:.2f} effective){score}",
                    flush=True,
                )
            if iteration > 0 and progress.step("EM iteration", lambda: attributes(mixture)):
                return "callback"
            return "early_stopping" if held_out is not None and iteration - best_at >= self.n_iter_no_change else None

        mixture, trace = em.run(*start, watch)
        mixture = mixture if best is None else best
        found = attributes(mixture)
        if self.calibration not in (None, "posterior"):
            em.e_step(mixture)  # gate and responsibilities stay as they are: only the experts are solved again

            def scores_without(weight):
                fold = em.afresh(mixture, weight).mosaic(link, feature_map)
                return fold.decision_function(rows.gate_rows, self.n_jobs)

            found["calibration_"] = cross_fit(self.calibration, rows.target, scores_without, rng)
        if trace.stop_reason == "max_time":
            warnings.warn(
                f"{progress.name}: EM stopped after max_time={progress.max_time} s and {trace.n_iter} iterations, "
                "before its objective converged. Increase max_time, or raise tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        rows.gate, rows.codes = mixture.gate, code(mixture.gate, rows.gate_rows, self.n_jobs)
        head = Classify(classes, found["calibration_"])
        found["region_counts_"], sample = describe(rows, found["mosaic_"], head, self.n_jobs)
        vars(self).update(found)
        self._keep_region_sample(sample)
        self.objective_ = np.array(trace.objective)
        self.experts_per_iter_ = np.array(trace.n_experts)
        self.effective_experts_ = np.array(trace.effective_experts)
        if held_out is not None:
            self.validation_score_ = np.array(trace.validation_score)
        self.n_iter_ = trace.n_iter
        self.stop_reason_ = trace.stop_reason
        return mixture

    def _em(self, rows, tasks, rng, deadline, **changes) -> EM:
        """EM of these rows with the parameters of the estimator."""
        options = {
            # Per output: the losses of many outputs would drown the gate, and rows would be shared out by labels alone.
            "label_weight": self.label_weight / rows.target.n_outputs,
            "gate_options": self._gate_options(rows.target.weight.sum()), "fit_intercept": self.fit_intercept,
            "solver": self.solver, "tol": self.tol, "max_iter": self.max_iter, "n_jobs": self.n_jobs,
        }  # fmt: skip
        return EM(rows, tasks, rng=rng, deadline=deadline, **options | changes)

    def _gate_options(self, total_weight) -> dict:
        """Options of the gate's M-step."""
        return {}

    def _check_parameters(self):
        check_parameters(self)
        self._check_calibration()


def kmeans_cells(rows, n_cells, rng, rows_per_center=256):
    """Centers of k-means to which some rows are nearest, and the responsibilities of their cells."""
    weight = rows.target.weight
    gate = DistanceGate(
        place_centers(rows.gate_rows, n_cells, sample_weight=weight, rows_per_center=rows_per_center, rng=rng)
    )
    used, cell = np.unique(gate.code(rows.gate_rows)[0][:, 0], return_inverse=True)
    return gate.centers[used].astype(np.float64), Responsibilities.hard(cell, weight, len(used))


@parameters
class SoftmaxMixture(BaseMixtureClassifier):
    """What the flat and the hierarchical mixture share: independent experts under a softmax gate.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses relative to the squared norm of the experts' weights.
    tau : "scale" or float, default="scale"
        Sharpness of the gate. "scale": 2 / D, with D the mean squared distance of the rows to
        their k-means centers, which makes the model independent of the units of X. A number: this value everywhere.
    nu : "scale" or float, default="scale"
        Experts with a total responsibility of at most this many rows (or this much sample weight) are removed, and the
        coefficients of the others are lowered by it: it controls the size of the model. "scale": 0.2 % of the rows. 0
        keeps all experts.
    gate : {"normalized", "paper"}, default="normalized"
        Whether the mixing coefficients are inside the softmax, or outside as printed in the paper, in which case the
        likelihood favors fewer experts until about one is left.
    gate_iter : int, default=10
        L-BFGS steps on the centroids per iteration. 0 keeps them at the k-means centers.
    """

    C: Positive = 1.0
    tau: Positive | Literal["scale"] = "scale"
    nu: NotNegative | Literal["scale"] = "scale"
    gate: Literal["normalized", "paper"] = "normalized"
    gate_iter: Annotated[int, partial(check_real, at_least=0, integer=True)] = 10

    def _tasks(self, n_outputs):
        return ClusteredTasks(groups=None, beta=0.5 / (self.C * n_outputs))

    def _gate_options(self, total_weight):
        nu = 0.002 * total_weight if self.nu == "scale" else float(self.nu)
        return {"nu": nu, "max_iter": self.gate_iter}


@estimator
class MixtureSVC(SoftmaxMixture):
    r"""Mixture of linear SVMs: a soft partition and its linear experts, learned together by EM.

    It maximizes over centroids v, mixing coefficients :math:`\xi` and experts w (intercepts included)

    .. math:: \sum_i s_i \log \sum_j g_j(x_i) \, e^{-\frac{\rho}{m} \sum_c \max(0, 1 - y_{ic} \langle w_{jc},
              (x_i, \beta) \rangle)} - \frac{1}{2Cm} \sum_{jc} \lVert w_{jc} \rVert^2 , \qquad
              g_j(x) = \frac{\xi_j e^{-\tau \lVert x - v_j \rVert^2}}
              {\sum_l \xi_l e^{-\tau \lVert x - v_l \rVert^2}} ,

    and predicts by the vote :math:`\sum_j g_j(x) (e^{-h(s_j)} - e^{-h(-s_j)})` of the experts' scores s, with the
    hinge h. There is m = 1 output for two classes; m > 2 classes are handled one-vs-rest in all experts, with
    one gate.

    Parameters
    ----------
    n_experts : int, default=20
        Initial number of experts; `nu` may remove some.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_experts, n_features)
        The centroids v.
    mixing_ : ndarray of shape (n_experts,)
        The coefficients xi.
    tau_ : float

    References
    ----------
    Z. Fu, A. Robles-Kelly and J. Zhou, Mixing Linear SVMs for Nonlinear Classification, IEEE Transactions on Neural
    Networks 21 (12), 2010.

    See Also
    --------
    HierarchicalMixtureSVC : A tree of gates.
    MultiTaskMixtureSVC : Gaussian gates, and experts that form groups.
    svmosaic.explain.displays.ConvergenceDisplay : Plots the convergence of EM.

    Examples
    --------
    >>> from svmosaic import MixtureSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = MixtureSVC(n_experts=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    n_experts: Count = positional(20)

    cluster_centers_ = property(attrgetter("mosaic_.gate.centers"))
    mixing_ = property(attrgetter("mosaic_.gate.prior"))

    @property
    def tau_(self) -> float:
        return float(self.mosaic_.gate.tau[0])

    def _start(self, rows, rng):
        """The softmax gate of k-means cells, and their responsibilities."""
        centers, shares = kmeans_cells(rows, self.n_experts, rng)
        tau = scale_of(rows.gate_rows, centers, rows.target.weight) if self.tau == "scale" else float(self.tau)
        prior = shares.mass / shares.mass.sum()
        return RBFGate.from_centers(centers, tau, prior=prior, inside=self.gate == "normalized"), shares


@estimator
class HierarchicalMixtureSVC(SoftmaxMixture):
    r"""Mixture of linear SVMs with a tree of gates.

    The weight of expert j, a leaf of the tree, is the product of the softmaxes along its path,

    .. math:: g_j(x) = \prod_{a \in \text{path}(j)} \frac{\xi_a e^{-\tau_a \lVert x - v_a \rVert^2}}
              {\sum_{b \text{ sibling of } a} \xi_b e^{-\tau_b \lVert x - v_b \rVert^2}} ,

    for any number of levels. The objective and the prediction are those of `MixtureSVC`. EM uses the joint
    responsibilities of the leaves; those of an inner node are the sums over the leaves below it. The pruning prior
    acts at each level; a leaf is removed together with the nodes above it that have no other children.

    Parameters
    ----------
    branching : sequence of int, default=(4, 5)
        Number of children of each node, level by level: (4, 5) means four nodes with five experts each. Fewer are used
        if a cell has fewer distinct rows.

    Attributes
    ----------
    node_centers_ : ndarray of shape (n_nodes, n_features)
        The centroids of all nodes, level by level.
    parent_ : ndarray of shape (n_nodes,)
        The node above each node, -1 at the top.
    mixing_ : ndarray of shape (n_nodes,)
        The coefficients xi, which sum to 1 among siblings.

    References
    ----------
    Z. Fu, A. Robles-Kelly and J. Zhou, Mixing Linear SVMs for Nonlinear Classification, IEEE Transactions on Neural
    Networks 21 (12), 2010.

    See Also
    --------
    MixtureSVC : One gate instead of a tree.
    MultiTaskMixtureSVC : Gaussian gates, and experts that form groups.

    Examples
    --------
    >>> from svmosaic import HierarchicalMixtureSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = HierarchicalMixtureSVC(branching=(2, 2), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    branching: Sequence[int] = positional((4, 5))

    node_centers_ = property(attrgetter("mosaic_.gate.centers"))
    parent_ = property(attrgetter("mosaic_.gate.parent"))
    mixing_ = property(attrgetter("mosaic_.gate.prior"))

    def _check_parameters(self):
        super()._check_parameters()
        if not isinstance(self.branching, Sequence) or isinstance(self.branching, str) or not self.branching:
            raise ValueError(f"branching must be a sequence of one integer per level, got {self.branching!r}")
        for level, n_children in enumerate(self.branching):
            check_real(f"branching[{level}]", n_children, at_least=1, integer=True)

    def _start(self, rows, rng):
        """The tree of k-means cells within cells, and the responsibilities of its leaves."""
        weight = rows.target.weight
        gate, tile = HierarchicalGate.from_rows(
            rows.gate_rows, weight, self.branching, tau=None if self.tau == "scale" else self.tau, rng=rng,
            inside=self.gate == "normalized",
        )  # fmt: skip
        return gate, Responsibilities.hard(tile, weight, gate.n_tiles)
