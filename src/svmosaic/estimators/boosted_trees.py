"""Boosted trees: rules that are grown one after the other, with a number in each leaf."""

from functools import partial
from typing import Annotated, Any

import numpy as np

from svmosaic._validation import check_real
from svmosaic.estimators._parameters import Count, NotNegative, Positive, estimator, parameters, positional
from svmosaic.estimators.base import BaseMosaicClassifier, BaseMosaicRegressor, FitMixin
from svmosaic.estimators.data import validate_values
from svmosaic.estimators.tiles import describe
from svmosaic.gates import SeveralGates, SingleCell
from svmosaic.gates.boosting import Bins, boost
from svmosaic.model.calibration import Temperature, fit_calibration
from svmosaic.model.heads import Classify, in_columns
from svmosaic.model.mosaic import Mosaic

# Rounds without a lower held-out loss after which no more follow.
PATIENCE = 30
# Up to so many rows, the rounds are chosen with each of five parts held out in turn; of more, a tenth is.
FEW_ROWS, PARTS, SHARE = 5000, 5, 10

Share = Annotated[float, partial(check_real, above=0, at_most=1)]
Leaves = Annotated[int, partial(check_real, at_least=2, integer=True)]


@parameters
class BoostedTreesMixin(FitMixin):
    """A constant and boosted trees, each leaf a tile that is a number.

    Parameters
    ----------
    n_rounds : int, default=300
        Maximum number of rounds; each grows one tree per output.
    learning_rate : float, default=0.1
        Factor of what each tree adds. Smaller values need more rounds and generalize slightly better.
    max_leaves : int, default=16
        Maximum number of leaves per tree.
    min_rows_per_leaf : int, default=10
        Minimum number of rows per leaf. Small leaves overfit.
    l2 : float, default=1.0
        Penalty on the numbers of the leaves; larger values shrink those of few rows.
    column_share : float, default=0.5
        Share of the columns that each tree may ask about, but at least ten columns. Less makes trees differ more, which
        helps with many columns.
    row_share : float, default=1.0
        Share of the rows that each tree is grown on.
    early_stopping : bool, default=True
        Whether the number of rounds is chosen by rows that are held out: five parts in turn, or a tenth of more than
        5000 rows. All rows are then fitted with that number of rounds. False: `n_rounds` of them.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the held-out rows, and the columns and rows of each tree.
    verbose : int, default=0
        1 prints the number of rounds and their held-out loss.
    max_time : float or None, default=None
        Seconds after which no more trees are grown.

    Attributes
    ----------
    n_rounds_ : int
        Number of rounds.
    losses_ : ndarray of shape (n_rounds,)
        Mean loss after each round: the log-loss, or the squared error of the normalized y; of the held-out rows, or of
        all rows without early stopping.
    """

    n_rounds: Count = positional(300)
    learning_rate: Share = 0.1
    max_leaves: Leaves = 16
    min_rows_per_leaf: Count = 10
    l2: NotNegative = 1.0
    column_share: Share = 0.5
    row_share: Share = 1.0
    early_stopping: bool = True
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    max_time: Positive | None = None

    def _fit_rows(self, data, rng, progress):
        X, target, n_jobs = data.gate_rows, data.target, self.n_jobs
        if not target.weight.all():  # rows of weight zero are none
            X, target = data.take(np.flatnonzero(target.weight))
        wanted, loss = self._wanted(target)
        grow = partial(
            boost, loss=loss, seed=int(rng.randint(2**31 - 1)), rate=self.learning_rate, max_leaves=self.max_leaves,
            min_rows=self.min_rows_per_leaf, l2=self.l2, column_share=self.column_share, row_share=self.row_share,
            n_jobs=n_jobs, stop=lambda: progress.late or progress.step("round"),
        )  # fmt: skip
        n_rounds, parts = self.n_rounds, []
        if self.early_stopping or getattr(self, "calibration", None) is not None:
            for out in _parts(wanted, rng):
                kept = np.setdiff1d(np.arange(len(wanted)), out)
                bins = Bins(X[kept], n_jobs)
                trees = grow(
                    bins, wanted[kept], target.weight[kept], n_rounds=n_rounds,
                    held_out=(bins.of(X[out], n_jobs), wanted[out], target.weight[out]),
                    patience=PATIENCE if self.early_stopping else None,
                )  # fmt: skip
                parts.append((out, trees))
        by_held_out = self.early_stopping and all(len(trees.losses) for _, trees in parts) and len(parts) > 0
        if by_held_out:
            shortest = min(len(trees.losses) for _, trees in parts)
            weights = [target.weight[out].sum() for out, _ in parts]
            self.losses_ = np.average([trees.losses[:shortest] for _, trees in parts], axis=0, weights=weights)
            n_rounds = int(np.argmin(self.losses_)) + 1
        trees = grow(Bins(X, n_jobs), wanted, target.weight, n_rounds=n_rounds)
        self.n_rounds_ = len(trees.losses)
        if not by_held_out:
            self.losses_ = trees.losses
        if self.verbose and self.n_rounds_:
            print(f"[{progress.name}] {self.n_rounds_} rounds, loss {self.losses_[self.n_rounds_ - 1]:.5f}", flush=True)
        self.mosaic_ = _mosaic(trees, data.n_features)
        head = self._head(target, X, parts)
        vars(self).update(head.attributes)
        self.region_counts_, sample = describe(data, self.mosaic_, head, n_jobs)
        self._keep_region_sample(sample)

    def _n_tasks(self, target):
        return None


def _mosaic(trees, n_features) -> Mosaic:
    """A constant tile, and a tile per leaf."""
    n_outputs = len(trees.start)
    nothing = np.zeros((1, n_outputs, n_features))
    if trees.gate is None:
        return Mosaic(SingleCell(), nothing, trees.start[None])
    gate = SeveralGates((SingleCell(), trees.gate), np.ones(2))
    return Mosaic(gate, nothing, np.concatenate([trees.start[None], trees.value]), sloped=np.zeros(1, dtype=np.int32))


def _parts(wanted, rng):
    """Rows to be held out: each of five parts, or a tenth of many rows, with about the same shares of the classes."""
    n_rows = len(wanted)
    n_parts = min(PARTS if n_rows <= FEW_ROWS else SHARE, n_rows // 2)
    rank = wanted.argmax(axis=1) if wanted.shape[1] > 1 else wanted[:, 0]
    order = np.lexsort((rng.uniform(size=n_rows), rank))
    return [order[k::n_parts] for k in range(n_parts if n_rows <= FEW_ROWS else 1)] if n_parts > 1 else []


@estimator
class BoostedTreesClassifier(BoostedTreesMixin, BaseMosaicClassifier):
    r"""Boosted trees as a mosaic: a constant, and a number in each leaf of trees that are grown one after the other.

    .. math:: f_c(x) = b_c + \sum_m v_{m, \text{leaf}_m(x)}

    Each tree lowers the log-loss of those before it by a Newton step in each of its leaves (one output of two classes,
    whose score is the logarithm of the odds; a softmax of several). Columns are cut into at most 256 bins. There is no
    certificate: the sum over all possible trees is not minimized.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of each class.
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        Fitted to scores of the held-out rows. None: the scores are log-odds, and `predict_proba` uses them as they are.

    References
    ----------
    J. H. Friedman, Greedy Function Approximation: A Gradient Boosting Machine, Annals of Statistics 2001.

    See Also
    --------
    BoostedTreesRegressor : The same for regression.
    TreeSVC : Trees whose leaves are solved for together, with a certificate.
    MosaicClassifier : Tries this model among others.

    Examples
    --------
    >>> from svmosaic import BoostedTreesClassifier
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = BoostedTreesClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    class_weight: dict | str | None = None

    @property
    def _scores_are_log_odds(self):
        return True

    def _wanted(self, target):
        label = target.label
        if target.n_outputs == 1:
            return label[:, None].astype(np.float64), "log_loss"
        return np.eye(target.n_outputs)[label], "softmax"

    def _head(self, target, X, parts):
        if self.calibration is None or not parts:
            return Classify(target.classes, Temperature(0.5 if target.n_outputs == 1 else 1.0))
        rows = np.concatenate([out for out, _ in parts])
        scores = [_mosaic(trees, X.shape[1]).decision_function(X[out], self.n_jobs) for out, trees in parts]
        calibration = fit_calibration(self.calibration, np.concatenate(scores), target.label[rows], target.weight[rows])
        return Classify(target.classes, calibration)

    def _check_parameters(self):
        super()._check_parameters()
        self._check_calibration()


@estimator
class BoostedTreesRegressor(BoostedTreesMixin, BaseMosaicRegressor):
    r"""Boosted regression trees as a mosaic: a constant, and a number in each leaf of trees grown one after the other.

    .. math:: f(x) = b + \sum_m v_{m, \text{leaf}_m(x)}

    Each tree lowers the squared error of those before it; several targets have trees of their own.

    Parameters
    ----------
    normalize_y : bool, default=True
        Fit to (y - mean) / standard deviation, separately for each target.

    References
    ----------
    J. H. Friedman, Greedy Function Approximation: A Gradient Boosting Machine, Annals of Statistics 2001.

    See Also
    --------
    BoostedTreesClassifier : The same for classification.
    TreeSVR : Trees whose leaves are solved for together, with a certificate.
    MosaicRegressor : Tries this model among others.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import BoostedTreesRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = BoostedTreesRegressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    normalize_y: bool = True

    def _validated(self, X, y, sample_weight):
        return validate_values(self, X, y, sample_weight, normalize=self.normalize_y)

    def _wanted(self, target):
        return np.ascontiguousarray(in_columns(target.learned), dtype=np.float64), "squared_error"

    def _head(self, target, X, parts):
        return target.head
