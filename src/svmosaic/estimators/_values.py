"""What regressors share: how y is validated and standardized, and the parameters of their losses."""

from collections.abc import Sequence

import numpy as np

from svmosaic._validation import check_real, validate_values
from svmosaic.estimators._parameters import NotNegative, parameters


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
        first = not hasattr(self, "mosaic_")
        known = {"head": None if first else self.head_, "reset": first}
        return self._take_batch(*self._validated(X, y, sample_weight, **known), first)

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
