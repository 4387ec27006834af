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
        rows = np.zeros(self.mosaic_.n_tiles) if counts is None else head_of(self).region_columns(counts)["rows"]
        return weighted_importances(coef, self.mosaic_.sloped_tiles, rows)


def weighted_importances(coef, tile, rows):
    """Mean absolute weights over tiles and outputs.

    Parameters
    ----------
    coef : ndarray of shape (n_sloped, n_outputs, n_features)
    tile : ndarray of int, shape (n_sloped,)
        The tiles they belong to; the others have none.
    rows : ndarray of shape (n_tiles,)
        How much each tile counts; the same for all if there are no rows.
    """
    weight = rows if rows.sum() > 0 else np.ones(len(rows))
    mean = np.abs(coef).mean(axis=1).astype(np.float64)
    return (mean * weight[tile, None]).sum(axis=0) / weight.sum()
