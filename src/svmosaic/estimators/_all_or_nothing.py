"""Fits that are done as a whole or not at all."""

from functools import wraps


def all_or_nothing(fit):
    """A fit that ends in an error or an interrupt leaves the estimator's attributes as they were before it.

    Otherwise, a fit that is interrupted would leave a mix of attributes of the new and of the last fit:
    classes without a model, or a model with the calibration of another.
    """

    @wraps(fit)
    def whole(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole
