"""Ways to scale the columns that the search tries."""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from svmosaic.maps import Scaling

# Columns whose spread is within this factor of the largest are on one scale.
ALIKE = 1.2
# One column with a spread so many times the median one would drown the rest.
DROWNS = 100.0
# Share of the variance that a few far values hold if the middle half of the rows is this much narrower than usual.
HEAVY_TAILS = 0.5


def scalings_of(X, weight=None) -> dict[str, Scaling | None]:
    """The ways to scale that are worth trying, the usual one first; None leaves the columns as they are.

    Dense rows: "standard" (mean 0, variance 1), "common" (mean 0, and all by one number, which keeps proportions that
    mean something, as between pixels), "robust" (by median and quartiles, if far values dominate the variance), "none"
    (if the columns are on one scale anyway). Sparse rows: "none" for rows of one norm, such as TF-IDF, else "maxabs".

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,), optional
    """
    if sparse.issparse(X):
        return _sparse_scalings(X)
    scaler = StandardScaler().fit(X, sample_weight=weight)
    if not np.isfinite(scaler.scale_).all():
        raise ValueError("X has values too large to be scaled: their variance overflows")
    ways: dict[str, Scaling | None] = {"standard": Scaling(scaler.mean_, 1.0 / scaler.scale_)}
    spread = np.sqrt(scaler.var_[scaler.var_ > 0])
    if len(spread) > 1 and ALIKE * spread.min() < spread.max() < DROWNS * np.median(spread):
        ways["common"] = Scaling(scaler.mean_, np.full_like(scaler.scale_, 1.0 / np.sqrt(np.mean(scaler.var_))))
    robust = _robust(X, scaler)
    if robust is not None:
        ways["robust"] = robust
    return ways


def _robust(X, scaler) -> Scaling | None:
    """By median and quartiles, if these say something else than mean and variance do in at least one column in five."""
    low, middle, high = np.percentile(X, [25, 50, 75], axis=0)
    width = (high - low) / 1.349  # that of a Gaussian of variance 1
    usable = (width > 0) & (scaler.var_ > 0)
    narrow = usable & (width < HEAVY_TAILS * scaler.scale_)
    if narrow.sum() < 0.2 * max(1, (scaler.var_ > 0).sum()):
        return None
    return Scaling(np.where(usable, middle, scaler.mean_), 1.0 / np.where(usable, width, scaler.scale_))


def _sparse_scalings(X) -> dict[str, Scaling | None]:
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)).ravel()
    filled = norms[norms > 0]
    by_largest = Scaling(None, 1.0 / MaxAbsScaler().fit(X).scale_)
    if len(filled) and filled.max() < ALIKE * filled.min():
        return {"none": None}
    return {"maxabs": by_largest}
