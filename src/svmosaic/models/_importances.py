"""One number per feature, for scikit-learn's `RFE` and `SelectFromModel`."""

import numpy as np

from svmosaic.heads import head_of


class ImportanceMixin:
    """`feature_importances_` of a fitted mosaic."""

    @property
    def feature_importances_(self):
        """Mean absolute weight of each feature over tiles and outputs, of shape (n_features,).

        Of a feature with a curve (`pieces`), the largest minus the smallest value of the curve takes the place of the
        weight. Tiles count by the training rows that they are home to. Standardize the features if these are to be
        compared.
        Where `coef_` has three dimensions, scikit-learn's selectors need to be pointed here:
        ``RFE(KMeansSVC(), importance_getter="feature_importances_")``.
        """
        if not hasattr(self, "mosaic_"):
            raise AttributeError(f"this {type(self).__name__} has no feature_importances_ before it is fitted")
        coef = self.mosaic_.features.strengths(self.mosaic_.coef)
        if coef.shape[2] != self.n_features_in_:
            raise AttributeError(
                f"the tiles of this {type(self).__name__} see {coef.shape[2]} mapped features instead of the "
                f"{self.n_features_in_} of X, which have no weights of their own"
            )
        counts = getattr(self, "region_counts_", None)
        rows = np.ones(len(coef)) if counts is None else head_of(self).region_columns(counts)["rows"]
        return weighted_importances(coef, rows)


def weighted_importances(coef, weight):
    """Mean absolute weights over the first two axes, the first of which is weighted."""
    weight = weight if weight.sum() > 0 else np.ones(len(coef))
    return np.average(np.abs(coef).mean(axis=1), axis=0, weights=weight).astype(np.float64)
