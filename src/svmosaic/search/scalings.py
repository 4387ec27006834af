"""Ways to scale the columns that the search tries."""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from svmosaic.maps import Ranks, Scaling
from svmosaic.rows import evenly

# Columns whose spread is within this factor of the largest are on one scale.
ALIKE = 1.2
# One column with a spread so many times the median one would drown the rest.
DROWNS = 100.0
# Share of the variance that a few far values hold if the middle half of the rows is this much narrower than usual.
HEAVY_TAILS = 0.5
# Correlation of a column with its ranks above which they are much the same: Gaussians have 0.98, exponentials 0.87.
STRAIGHT = 0.9
# Rows that scales are found from.
MOST_ROWS = 50_000
# Ranks in front of distances take a curve for each pair of columns.
MOST_RANKED = 64


def scalings_of(X, weight=None, seed=0, n_jobs=None) -> dict[str, Scaling | Ranks | None]:
    """The ways to scale that are worth trying, the usual one first; None leaves the columns as they are.

    Dense rows: "standard" (mean 0, variance 1), "common" (mean 0, and all by one number, which keeps proportions that
    mean something, as between pixels), "robust" (by median and quartiles, if far values dominate the variance), "rank"
    (by quantiles, if columns are skewed), "none" (if the columns are on one scale anyway). Sparse rows: "none" for rows
    of one norm, such as TF-IDF, else "maxabs".

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,), optional
    seed : int
        For the sample that quantiles are found from.
    n_jobs : int or None
    """
    if sparse.issparse(X):
        return _sparse_scalings(X)
    if X.shape[0] > MOST_ROWS:
        some = evenly(X.shape[0], MOST_ROWS)
        X, weight = X[some], None if weight is None else weight[some]
    scaler = StandardScaler().fit(X, sample_weight=weight)
    if not np.isfinite(scaler.scale_).all():
        raise ValueError("X has values too large to be scaled: their variance overflows")
    ways: dict[str, Scaling | Ranks | None] = {"standard": Scaling(scaler.mean_, 1.0 / scaler.scale_)}
    spread = np.sqrt(scaler.var_[scaler.var_ > 0])
    if len(spread) > 1 and ALIKE * spread.min() < spread.max() < DROWNS * np.median(spread):
        ways["common"] = Scaling(scaler.mean_, np.full_like(scaler.scale_, 1.0 / np.sqrt(np.mean(scaler.var_))))
    robust = _robust(X, scaler)
    if robust is not None:
        ways["robust"] = robust
    ranks = _ranks(X, weight, seed, n_jobs)
    if ranks is not None:
        ways["rank"] = ranks
    return ways


def _ranks(X, weight, seed, n_jobs) -> Ranks | None:
    """By quantiles, if that is far from a straight line in at least one column in five, and columns are few."""
    if X.shape[1] > MOST_RANKED:
        return None
    ranks = Ranks.fit(X, weight, np.random.RandomState(seed), n_jobs)
    few = X[np.unique(np.linspace(0, X.shape[0] - 1, 2000).astype(np.intp))].astype(np.float64)
    few, ranked = (rows - rows.mean(axis=0) for rows in (few, ranks.scale(few)))
    squares = (few**2).sum(axis=0) * (ranked**2).sum(axis=0)
    straight = (few * ranked).sum(axis=0) ** 2 >= STRAIGHT**2 * squares
    return ranks if (~straight).sum() >= 0.2 * max(1, (squares > 0).sum()) else None


def _robust(X, scaler) -> Scaling | None:
    """By median and quartiles, if these say something else than mean and variance do in at least one column in five."""
    low, middle, high = np.percentile(X, [25, 50, 75], axis=0)
    width = (high - low) / 1.349  # that of a Gaussian of variance 1
    usable = (width > 0) & (scaler.var_ > 0)
    narrow = usable & (width < HEAVY_TAILS * scaler.scale_)
    if narrow.sum() < 0.2 * max(1, (scaler.var_ > 0).sum()):
        return None
    return Scaling(np.where(usable, middle, scaler.mean_), 1.0 / np.where(usable, width, scaler.scale_))


def _sparse_scalings(X) -> dict[str, Scaling | Ranks | None]:
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)).ravel()
    filled = norms[norms > 0]
    by_largest = Scaling(None, 1.0 / MaxAbsScaler().fit(X).scale_)
    if len(filled) and filled.max() < ALIKE * filled.min():
        return {"none": None}
    return {"maxabs": by_largest}
