r"""EM for Gaussian mixtures of several classes at once, with weights, missing labels and pooled covariances.

Density i belongs to the class owner_i, weighs w_i = p(k) p(i|k) and has the covariance of its group:

    pooling "all": one group; "class": one per class; "none": one per density.

Maximized is the joint log-likelihood, with the sample weights s_n,

    sum_{n labeled}   s_n log sum_{i: owner_i = y_n} w_i N(x_n; mu_i, Sigma_i)
  + sum_{n unlabeled} s_n log sum_i                  w_i N(x_n; mu_i, Sigma_i)

over covariances whose eigenvalues (in the coordinates of the fit, where features have variance one) are at least
`floor`. The M-step is the exact maximizer under that bound, so that no step lowers the likelihood.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from svmosaic import _core
from svmosaic.densities.kernel_predictor import log_sums
from svmosaic.densities.kernel_sums import density_bank, log_kernel_sums, row_blocks, squared_distances
from svmosaic.rows import Rows

Covariance = Literal["spherical", "diag", "full"]
Pooling = Literal["all", "class", "none"]


@dataclass(frozen=True)
class Densities:
    """Weighted Gaussians of all classes, with spherical, diagonal or full covariances."""

    means: np.ndarray  # of shape (m, n_features)
    owner: np.ndarray  # the position of each density's class
    log_weight: np.ndarray  # log p(k) p(i|k)
    covariance: np.ndarray  # of shape (n_groups,), (n_groups, n_features) or (n_groups, n_features, n_features)
    group: np.ndarray  # which covariance each density has
    n_classes: int
    pooling: str

    def log_joint(self, X):
        """log p(k) p(i|k) N(x; mu_i, Sigma_i) for one block of rows, of shape (n_rows, m)."""
        n_features = self.means.shape[1]
        if self.pooling == "none" and self.covariance.ndim < 3:
            # One covariance per density: sum_d p_d (x_d - mu_d)^2 as two products for all densities at once.
            middle = self.means.mean(axis=0)
            X, means = X - middle, self.means - middle
            covariance = self.covariance if self.covariance.ndim == 2 else self.covariance[:, None]
            precision = 1.0 / np.broadcast_to(covariance, means.shape)
            distances = (X * X) @ precision.T - 2.0 * (X @ (means * precision).T)
            distances = distances + (means * means * precision).sum(axis=1)
            constant = n_features * np.log(2 * np.pi) - np.log(precision).sum(axis=1)
            return self.log_weight - 0.5 * (np.maximum(distances, 0.0) + constant)
        out = np.empty((X.shape[0], len(self.means)))
        for g in np.unique(self.group):
            here = np.flatnonzero(self.group == g)
            if self.covariance.ndim == 3:
                log_det = np.linalg.slogdet(self.covariance[g])[1]
                rows, means = self._whitened(g, X, self.means[here])
            else:
                deviation = np.broadcast_to(np.sqrt(self.covariance[g]), n_features)
                log_det = 2.0 * np.log(deviation).sum()
                rows, means = X / deviation, self.means[here] / deviation
            distances = squared_distances(rows, means)
            out[:, here] = self.log_weight[here] - 0.5 * (distances + log_det + n_features * np.log(2 * np.pi))
        return out

    def class_log_joint(self, X, n_jobs=None):
        """log p(k) p(x|k), of shape (n_rows, n_classes)."""
        X = np.asarray(X, dtype=np.float64)
        if self.covariance.ndim == 3 and self.pooling == "none":
            terms = np.empty((X.shape[0], len(self.means)))
            _core.GaussianGateF64(*self.gaussians()).log_joint(Rows(X, 0.0).core, terms, effective_n_jobs(n_jobs))
            return log_sums(terms, self.owner, self.n_classes)
        height = self._log_height()
        if self.covariance.ndim < 3:
            precision = 1.0 / self.covariance[self.group].reshape(len(self.means), -1)
            return log_kernel_sums(X, self.means, precision, height, self.owner, self.n_classes, n_jobs)
        out = np.full((X.shape[0], self.n_classes), -np.inf)
        for g in np.unique(self.group):
            here = np.flatnonzero(self.group == g)
            rows, means = self._whitened(g, X, self.means[here])
            ones = np.ones((len(here), 1))
            found = log_kernel_sums(rows, means, ones, height[here], self.owner[here], self.n_classes, n_jobs)
            np.logaddexp(out, found, out=out)
        return out

    def packed(self) -> list:
        """The densities as `KernelScorer` takes them."""
        if self.covariance.ndim == 3 and self.pooling == "none":
            return [("full", self.gaussians(), self.owner)]
        height = self._log_height()
        if self.covariance.ndim < 3:
            precision = 1.0 / self.covariance[self.group].reshape(len(self.means), -1)
            return [(None, density_bank(self.means, precision, height, self.owner, self.n_classes))]
        banks = []
        for g in np.unique(self.group):
            here = np.flatnonzero(self.group == g)
            roots, means = self._whitened(g, np.eye(self.means.shape[1]), self.means[here])
            ones = np.ones((len(here), 1))
            bank = density_bank(means, ones, height[here], self.owner[here], self.n_classes)
            banks.append((np.ascontiguousarray(roots.T), bank))
        return banks

    def gaussians(self):
        """Kind, means, square roots of the precisions (one per density, end to end) and log heights, for the core."""
        means = np.ascontiguousarray(self.means)
        if self.covariance.ndim == 3:
            roots = np.swapaxes(np.linalg.inv(np.linalg.cholesky(self.covariance)), 1, 2)
        else:
            roots = 1.0 / np.sqrt(self.covariance)
        kind = {1: "isotropic", 2: "diag", 3: "full"}[self.covariance.ndim]
        return kind, means, np.ascontiguousarray(roots[self.group]).ravel(), self._log_height()

    def _log_height(self):
        """log p(k) p(i|k) N(mu_i; mu_i, Sigma_i) of each density."""
        n_features = self.means.shape[1]
        if self.covariance.ndim == 3:
            log_det = np.linalg.slogdet(self.covariance)[1]
        else:
            log_det = np.log(self.covariance).reshape(len(self.covariance), -1).sum(axis=1)
            log_det = log_det * (n_features if self.covariance.ndim == 1 else 1)
        return self.log_weight - 0.5 * (log_det[self.group] + n_features * np.log(2 * np.pi))

    def _whitened(self, g, *arrays):
        """Arrays of rows in coordinates where covariance g is the identity."""
        factor = np.linalg.cholesky(self.covariance[g])
        return [np.ascontiguousarray(solve_triangular(factor, A.T, lower=True, check_finite=False).T) for A in arrays]

    def only(self, kept):
        """These densities alone, with their weights as they are."""
        per_density = self.pooling == "none"
        return replace(
            self, means=self.means[kept], owner=self.owner[kept], log_weight=self.log_weight[kept],
            covariance=self.covariance[kept] if per_density else self.covariance,
            group=np.arange(np.count_nonzero(kept)) if per_density else self.group[kept],
        )  # fmt: skip

    def without(self, deleted):
        """The others, which take over the weight of those deleted from their class."""
        before = log_sums(self.log_weight[None], self.owner, self.n_classes)[0]
        rest = self.only(~deleted)
        after = log_sums(rest.log_weight[None], rest.owner, self.n_classes)[0]
        return replace(rest, log_weight=rest.log_weight + (before - after)[rest.owner])

    def moved(self, middle, scale):
        """The same densities in the coordinates x * scale + middle."""
        scale = np.broadcast_to(scale, self.means.shape[1:])
        covariance = {
            1: lambda: self.covariance * scale[0] ** 2,
            2: lambda: self.covariance * scale**2,
            3: lambda: self.covariance * np.outer(scale, scale),
        }[self.covariance.ndim]()
        return replace(self, means=self.means * scale + middle, covariance=covariance)


@dataclass
class Sums:
    """What the M-step needs: per density the count, the first moment and the spread of its rows."""

    count: np.ndarray
    first: np.ndarray
    variance: np.ndarray  # sum of squares per feature and density
    scatter: np.ndarray | None  # sum of outer products per group, for full covariances
    log_likelihood: float = 0.0


def gather(densities, X, label, weight):
    """E-step: the moments of every density under its responsibilities. Label -1 means unknown."""
    m, d = densities.means.shape
    full, n_groups = densities.covariance.ndim == 3, len(densities.covariance)
    sums = Sums(np.zeros(m), np.zeros((m, d)), np.zeros((m, d)), np.zeros((n_groups, d, d)) if full else None)
    for k in range(-1, densities.n_classes):
        members = np.flatnonzero(label == k)
        columns = np.arange(m) if k < 0 else np.flatnonzero(densities.owner == k)
        part = densities if k < 0 else densities.only(densities.owner == k)
        for rows in row_blocks(len(members), len(columns)):
            here = members[rows]
            block, block_weight = X[here], weight[here]
            log_joint = part.log_joint(block)
            total = logsumexp(log_joint, axis=1)
            sums.log_likelihood += block_weight @ total
            share = np.exp(log_joint - total[:, None]) * block_weight[:, None]
            sums.count[columns] += share.sum(axis=0)
            sums.first[columns] += share.T @ block
            sums.variance[columns] += share.T @ (block * block)
            if full:
                group = densities.group[columns]
                for g in np.unique(group):
                    sums.scatter[g] += (block * share[:, group == g].sum(axis=1)[:, None]).T @ block
    return sums


def maximize(densities, sums, floor, priors):
    """M-step: weights, means and covariances bounded from below by `floor`."""
    count = np.maximum(sums.count, np.finfo(np.float64).tiny)
    means = sums.first / count[:, None]
    if priors is None:
        log_weight = np.log(count / count.sum())
    else:
        per_class = np.bincount(densities.owner, count, minlength=densities.n_classes)
        log_weight = np.log(priors[densities.owner] * count / per_class[densities.owner])
    n_groups = len(densities.covariance)
    in_group = np.zeros((n_groups, len(count)))
    in_group[densities.group, np.arange(len(count))] = 1.0
    total = np.maximum(in_group @ count, np.finfo(np.float64).tiny)
    if densities.covariance.ndim == 3:
        between = np.stack([(means * (row * count)[:, None]).T @ means for row in in_group])
        covariance = np.stack([bounded(s, floor) for s in (sums.scatter - between) / total[:, None, None]])
    else:
        variance = in_group @ (sums.variance - count[:, None] * means**2) / total[:, None]
        covariance = np.maximum(variance.mean(axis=1) if densities.covariance.ndim == 1 else variance, floor)
    return replace(densities, means=means, log_weight=log_weight, covariance=covariance)


def bounded(covariance, floor):
    """The most likely covariance for this scatter among those with eigenvalues of at least `floor`."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return (vectors * np.maximum(values, floor)) @ vectors.T


def one_each(X, label, weight, n_classes, kind, pooling, floor, priors):
    """The start: one Gaussian per class, from its labeled rows."""
    d = X.shape[1]
    group = np.zeros(n_classes, dtype=np.intp) if pooling == "all" else np.arange(n_classes)
    unit = {"spherical": np.float64(1.0), "diag": np.ones(d), "full": np.eye(d)}[kind]
    densities = Densities(
        np.zeros((n_classes, d)), np.arange(n_classes), np.zeros(n_classes), np.stack([unit] * (group[-1] + 1)), group,
        n_classes, pooling,
    )  # fmt: skip
    known = label >= 0
    return maximize(densities, gather(densities, X[known], label[known], weight[known]), floor, priors)


def split(densities, sums, limit, step, rng):
    """Every density, or the heaviest if all would be too many, becomes two at mu +- step * its own deviation."""
    count = np.maximum(sums.count, np.finfo(np.float64).tiny)
    own = np.sqrt(np.maximum(sums.variance / count[:, None] - (sums.first / count[:, None]) ** 2, 0.0))
    # The direction is drawn at random: no axis or diagonal is right for every set.
    offset = step * own * rng.choice([-1.0, 1.0], size=own.shape)
    halved = np.zeros(len(count), dtype=bool)
    for k in range(densities.n_classes):
        here = np.flatnonzero(densities.owner == k)
        halved[here[np.argsort(-count[here], kind="stable")[: limit - len(here)]]] = True
    log_weight = densities.log_weight - np.log(2.0) * halved
    group = np.concatenate([densities.group, densities.group[halved]])
    per_density = densities.pooling == "none"
    return replace(
        densities,
        means=np.concatenate([densities.means + offset * halved[:, None], (densities.means - offset)[halved]]),
        owner=np.concatenate([densities.owner, densities.owner[halved]]),
        log_weight=np.concatenate([log_weight, log_weight[halved]]),
        covariance=densities.covariance[group] if per_density else densities.covariance,
        group=np.arange(len(group)) if per_density else group,
    )
