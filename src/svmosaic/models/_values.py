"""What regressors share: how y is validated and standardized, the parameters of their losses, and their description."""

import numpy as np

from svmosaic._validation import check_real, validate_values

# For the docstrings. The losses of `epsilon` and of `quantile` are those of svmosaic.losses.
LOSS = r"""loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "expectile"}, default="@LOSS@"
        With the error r = y - f(x) of a row: max(0, \|r\| - epsilon), or its square; or q max(0, r) +
        (1 - q) max(0, -r) with q the `quantile`, or the same with squares ("expectile").
    """
VALUES = """epsilon : float, default=0.1
        Errors below it cost nothing with the epsilon-insensitive losses; in units of the standard deviation of y,
        unless `normalize_y` is False.
    quantile : float or sequence of float, default=0.5
        Between 0 and 1, for the losses "quantile" and "expectile". With the first, about this share of the rows lies
        below the predictions. A sequence gives predictions with a column for each of its values, on the same regions;
        they are fitted one by one and may cross.
    normalize_y : bool, default=True
        Fit to (y - mean) / standard deviation, so that C and `epsilon` do not depend on the unit of y; with several
        targets, of each. Predictions are in the unit of y in any case.
    """
TOL = """tol : float, default=@TOL@
        Stop when the duality gap is below `tol` times the objective at zero: the losses if all predictions were the
        mean.
    """
INTERCEPT = """fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        The constant appended to each row for the biases, which are penalized like the other weights.
    """
COMMON = """n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the regions and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective, the gap and the live tiles (those whose weights are not all zero) of each output, on the
        way and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap. Outputs
        (and independent tiles) share the time that is left when they start; the regions are not cut short.
    """
ATTRIBUTES = """head_ : Regress
        The mean and the standard deviation of y, `center` and `scale`, by which scores become values.
    mosaic_ : Mosaic
        The fitted form; its scores are values of the normalized y.
    regions_ : Table
        Rows, mean and spread of y, mean absolute error and strongest features of each tile, on the training data.
    objective_ : ndarray of shape (n_outputs,)
        Of the normalized y.
    dual_gap_ : ndarray of shape (n_outputs,)
        The certificate: no weights have an objective lower by more than this. nan after stochastic descent, which has
        no dual point.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names
    """


def loss_parameters(loss) -> str:
    """The description of `loss`, whose default this is, and of what belongs to it."""
    return LOSS.replace("@LOSS@", loss) + VALUES


class ValuesMixin:
    """Values instead of classes, for regressors with `epsilon`, `quantile` and `normalize_y`."""

    def _validated(self, X, y, sample_weight, **known):
        return validate_values(
            self, X, y, sample_weight, normalize=self.normalize_y, copies=len(self._quantiles), **known
        )

    @property
    def _quantiles(self):
        return [self.quantile] if np.ndim(self.quantile) == 0 else list(self.quantile)

    def _loss_parameters(self):
        several = len(self._quantiles) > 1
        return {"epsilon": float(self.epsilon), "quantile": self._quantiles if several else float(self._quantiles[0])}

    def _check_parameters(self):
        super()._check_parameters()
        check_real("epsilon", self.epsilon, at_least=0)
        if not self._quantiles:
            raise ValueError("quantile must be a number between 0 and 1, or a sequence of them, got an empty sequence")
        for q in self._quantiles:
            check_real("quantile", q, above=0, below=1)
        if len(self._quantiles) > 1 and self.loss not in ("quantile", "expectile"):
            raise ValueError(
                f"quantile={self.quantile!r} has several values, of which loss={self.loss!r} makes no use: pass "
                "loss='quantile', or a single number"
            )
