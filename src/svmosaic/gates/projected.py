"""A gate that measures distances in a linear projection of the rows."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from svmosaic.gates.protocol import CoreGate, OuterGate
from svmosaic.rows import copied

# Rows that principal components are computed from, and the most features for which that is by their covariance.
PROJECTION_SAMPLE = 20_000
LARGEST_COVARIANCE = 1000


@dataclass(frozen=True, eq=False)
class ProjectedGate(OuterGate):
    """The codes of z = P x by a gate of the projected space.

    Attributes
    ----------
    projection : ndarray of shape (n_components, n_features)
    inner : gate with a core form
        Over the components.

    See Also
    --------
    Gate : The interface of a gate.
    """

    projection: np.ndarray
    inner: CoreGate

    @property
    def anchors(self) -> np.ndarray | None:
        """The anchors of the inner gate, which are points of the projection; None if it has none."""
        return getattr(self.inner, "anchors", None)

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        projection = np.ascontiguousarray(self.projection, dtype=np.float64)
        return "ProjectedGate", projection, self.inner.core_arguments()


def principal_components(X, n_components, rng):
    """Directions of the largest variance, of shape (n_components, n_features); the same for dense and sparse rows."""
    many = X.shape[0] > PROJECTION_SAMPLE
    X = X[np.sort(rng.choice(X.shape[0], PROJECTION_SAMPLE, replace=False))] if many else copied(X)
    n_components = min(n_components, X.shape[1])
    if X.shape[1] > LARGEST_COVARIANCE:
        n_components = min(n_components, X.shape[0])
        from sklearn.decomposition import TruncatedSVD  # here, since it takes a while to import

        components = TruncatedSVD(n_components, random_state=rng).fit(X).components_
    else:
        X = X.astype(np.float64)
        mean = np.asarray(X.mean(axis=0)).ravel()
        products = X.T @ X
        products = products.toarray() if sparse.issparse(products) else products
        components = np.linalg.eigh(products - X.shape[0] * np.outer(mean, mean))[1].T[::-1][:n_components]
    # The sign of an eigenvector is a matter of rounding.
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return (components * np.where(largest < 0, -1, 1)).astype(np.float32)
