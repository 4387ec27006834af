"""What pictures and the report need of a fitted model, alone or at the end of a pipeline."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic._validation import validate
from svmosaic.explain.contributions import names_of
from svmosaic.explain.subject import mosaic_of
from svmosaic.gates import principal_components
from svmosaic.model.heads import head_of, home_tiles

# Okabe and Ito's colors, which readers of all kinds of color vision can tell apart; black is for lines and text.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
# Rows that principal components of a picture are computed from.
PROJECTION_SAMPLE = 5000


@dataclass(frozen=True)
class Fitted:
    """A model and rows in the forms that its parts take.

    Attributes
    ----------
    estimator, entered : what was given, and the rows that it takes
    model : the estimator with tiles
    mosaic : Mosaic
    X : rows as the model takes them (after the first steps of a pipeline, or the preparation of a table)
    gate_rows, tile_rows : as gate and tiles see them
    classes : list of str; none of a regressor
    features : list of str, of the rows as the tiles see them
    """

    estimator: Any
    entered: Any
    model: Any
    mosaic: Any
    X: Any
    gate_rows: Any
    tile_rows: Any
    classes: list
    features: list

    @classmethod
    def of(cls, estimator, X, *, feature_names=None, class_names=None) -> "Fitted":
        """Take apart a pipeline, if it is one; X is what enters it."""
        model, names, entered = estimator, None, X
        if hasattr(estimator, "steps"):
            model, before = estimator.steps[-1][1], estimator[:-1]
            if len(before.steps):
                X = before.transform(X)
                try:
                    names = before.get_feature_names_out()
                except (AttributeError, ValueError):
                    names = None
        mosaic, table = mosaic_of(model), getattr(model, "preparation_", None)
        # Pictures of a model that was fitted to a table have the features that its columns became.
        X = validate(model, X, reset=False) if table is None else model._rows(X)
        gate_rows, tile_rows = mosaic.features.rows(X)
        if feature_names is not None:
            features = [str(name) for name in feature_names]
            n_features = len(names_of(mosaic, None))
            if len(features) != n_features:
                raise ValueError(
                    f"feature_names must have one name for each of the {n_features} features that the tiles see, got "
                    f"{len(features)}"
                )
        else:
            own = getattr(model, "feature_names_in_", names) if table is None else table.get_feature_names_out()
            features = names_of(mosaic, own)
        known = getattr(model, "classes_", ())
        classes = [str(c) for c in (known if class_names is None else class_names)]
        if len(classes) != len(known):
            raise ValueError(f"class_names must have {len(known)} names, got {len(classes)}")
        return cls(estimator, entered, model, mosaic, X, gate_rows, tile_rows, classes, features)

    def label(self, y):
        """Places of the classes in y; of a regressor, the values."""
        if len(y) != self.X.shape[0]:
            raise ValueError(f"X has {self.X.shape[0]} rows, but y has {len(y)}")
        return head_of(self.model).truth(y)

    def predicted(self):
        """Places of the classes that the model predicts; of a regressor, the values."""
        return head_of(self.model).truth(self.estimator.predict(self.entered))

    def codes(self):
        """Tiles and weights of each row, the weights never None."""
        tile, weight = self.mosaic.gate.code(self.gate_rows)
        return tile, np.ones(tile.shape) if weight is None else weight

    def home(self):
        """The tile with the largest weight, of each row."""
        return home_tiles(self.codes())


def anchors_of(mosaic):
    """The anchors of the tiles, if their gate has any: (points, projection or None); else None.

    A point of a projected gate has a place only in the projection.
    """
    anchors = getattr(mosaic.gate, "anchors", None)
    return None if anchors is None else (anchors, getattr(mosaic.gate, "projection", None))


@dataclass(frozen=True)
class Plane:
    """Two directions for a plot of the rows: the features if there are two, else principal components."""

    mean: np.ndarray
    directions: np.ndarray
    names: tuple

    @classmethod
    def of(cls, X, names) -> "Plane":
        n_features = X.shape[1]
        if n_features <= 2:
            return cls(np.zeros(n_features), np.eye(2, n_features), tuple([*names[:2], ""][:2]))
        rng = np.random.RandomState(0)
        if X.shape[0] > PROJECTION_SAMPLE:
            X = X[np.sort(rng.choice(X.shape[0], PROJECTION_SAMPLE, replace=False))]
        directions = principal_components(X, 2, rng).astype(np.float64)
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        return cls(mean, directions, ("first principal component", "second principal component"))

    def project(self, X):
        """Coordinates of shape (n_rows, 2)."""
        if sparse.issparse(X):
            return np.asarray(X @ self.directions.T) - self.mean @ self.directions.T
        return (X.astype(np.float64) - self.mean) @ self.directions.T

    def lift(self, points):
        """The row in the plane that is projected to each point."""
        return self.mean + points @ self.directions
