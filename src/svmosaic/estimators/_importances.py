"""One number per feature, for scikit-learn's `RFE` and `SelectFromModel`."""

import numpy as np

from svmosaic.gates import SeveralGates
from svmosaic.gates.trees import TreeGate
from svmosaic.model.heads import head_of

NO_WEIGHTS = (
    "this {} has no feature_importances_: its tiles have no weights; svmosaic.explain.importances(model, X) "
    "shuffles the columns of some rows instead"
)


class ImportanceMixin:
    """`feature_importances_` of a fitted mosaic."""

    @property
    def feature_importances_(self):
        """Mean absolute contribution of each feature, of shape (n_features,): weight times spread within the regions.

        More precisely, the mean over training rows and outputs of the absolute difference between the contribution of
        the feature and its mean in the region of the row; `regions_` ranks its "strongest features" by it. It does not
        depend on the units of the features. scikit-learn's `RFE` and `SelectFromModel` use it to rank features.
        """
        if not hasattr(self, "mosaic_"):
            raise AttributeError(f"this {type(self).__name__} has no feature_importances_ before it is fitted")
        found = self._feature_importances()
        if len(found) != self.n_features_in_:
            raise AttributeError(
                f"the tiles of this {type(self).__name__} see {len(found)} mapped features, so the "
                f"{self.n_features_in_} features of X have no weights of their own"
            )
        return found

    def _feature_importances(self):
        """One for each column that the tiles see."""
        mosaic, counts, head = self.mosaic_, getattr(self, "region_counts_", None), head_of(self)
        rows = np.zeros(mosaic.n_tiles) if counts is None else head.region_columns(counts)["rows"]
        if counts is None or "spread" not in counts:  # a stream
            return weighted_importances(mosaic.features.strengths(mosaic.coef), mosaic.sloped_tiles, rows)
        # Several outputs are compared as they are scored; one has units of its own.
        units = head.factor[0] if head.n_outputs == 1 else 1.0
        # Every gate and every tree has seen all rows, and their contributions add up.
        n_gates = mosaic.gate.gate_of_tile.max() + 1 if isinstance(mosaic.gate, SeveralGates) else 1
        spread = counts["spread"]
        found = spread.sum(axis=0, dtype=np.float64) + moved_by_splits(mosaic, rows, spread.shape[1])
        if not len(mosaic.coef) and not found.any():
            raise AttributeError(NO_WEIGHTS.format(type(self).__name__))
        return units * found / max(rows.sum() / n_gates, 1)


def moved_by_splits(mosaic, rows, n_features):
    """Moves of the mean scores of rows by the splits of trees whose leaves are only numbers.

    A row that goes down such a tree starts with the mean of all rows, and each split moves it to the mean of its side:
    what the moves by a feature add to the score is its contribution.

    Parameters
    ----------
    mosaic : Mosaic
    rows : ndarray of shape (n_tiles,)
        How many each tile has.
    n_features : int

    Returns
    -------
    ndarray of shape (n_features,)
        Sums over the rows of absolute moves, their mean over the outputs.
    """
    several = isinstance(mosaic.gate, SeveralGates)
    gates, factors = (mosaic.gate.gates, mosaic.gate.factors) if several else ((mosaic.gate,), (1.0,))
    is_number = np.ones(mosaic.n_tiles, dtype=bool)
    is_number[mosaic.sloped_tiles[mosaic.coef.any(axis=(1, 2))]] = False
    found, first = np.zeros(n_features), 0
    for gate, factor in zip(gates, factors, strict=True):
        tiles = slice(first, first + gate.n_tiles)
        first += gate.n_tiles
        if isinstance(gate, TreeGate) and is_number[tiles].all():
            moves = factor * gate.moves(mosaic.intercept[tiles], rows[tiles])
            found += np.bincount(gate.feature[gate.feature >= 0], moves, n_features)
    return found


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
