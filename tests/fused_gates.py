"""Random gates of every kind that the core evaluates beside the distance gate, and their formulas."""

import numpy as np
from scipy.special import logsumexp

from svmosaic.gates import (
    DistanceGate,
    GaussianGate,
    HierarchicalGate,
    ProjectedGate,
    RBFGate,
    ScaledGate,
    SeveralGates,
    SingleCell,
)

KINDS = (
    "softmax",
    "softmax-outside",
    "tree",
    "tree-outside",
    "full",
    "diag",
    "isotropic",
    "projected",
    "projected-all",
    "scaled",
    "several",
    "several-posterior",
)
# Those that give weight to a fixed number of tiles, or have weights of their own among those of others.
FIXED_WIDTH = ("projected", "scaled", "several")


def random_gate(rng, kind, n_tiles=6, n_features=5, sharpness=1.0):
    """A gate of about `n_tiles` tiles; `sharpness` multiplies its logits."""
    centers = rng.standard_normal((n_tiles, n_features)) + 2.0
    prior = rng.dirichlet(np.ones(n_tiles))
    if kind.startswith("softmax"):
        return RBFGate.from_centers(centers, 0.3 * sharpness, prior=prior, inside=kind == "softmax")
    if kind.startswith("tree"):
        parent = np.array([-1, -1, *np.sort(rng.integers(0, 2, n_tiles - 1)), 1], dtype=np.int32)
        parent[2] = 0
        nodes = rng.standard_normal((len(parent), n_features)) + 2.0
        prior = rng.uniform(0.2, 1.0, len(parent))
        tau = sharpness * np.where(parent < 0, 0.1, 0.3)
        total = np.bincount(parent + 1, prior)
        return HierarchicalGate(nodes, tau, prior / total[parent + 1], parent, kind == "tree")
    if kind.startswith("projected"):
        inner = DistanceGate(centers[:, :3].copy(), "softmax", 2 if kind == "projected" else n_tiles, 0.4 * sharpness)
        return ProjectedGate(rng.standard_normal((3, n_features)), inner)
    if kind.startswith("several"):
        kinds = ("softmax", "full") if kind == "several-posterior" else ("softmax", "projected", "scaled")
        parts = [random_gate(rng, part, n_tiles // 2, n_features, sharpness) for part in kinds]
        return SeveralGates((parts[0], SingleCell(), *parts[1:]), np.array([0.5, -1.5, 0.7, 2.0])[: len(parts) + 1])
    if kind == "scaled":
        return ScaledGate(None, rng.uniform(0.5, 2, n_features), random_gate(rng, "projected", n_tiles, n_features))
    scale = np.sqrt(0.5 * sharpness)
    if kind == "full":
        factors = scale * (np.eye(n_features) + 0.2 * rng.standard_normal((n_tiles, n_features, n_features)))
    else:
        factors = scale * rng.uniform(0.5, 2.0, (n_tiles, n_features if kind == "diag" else 1))
    return GaussianGate(centers, factors, prior, 1e-3, kind)


def weights_by_formula(gate, X):
    """The weights of all tiles, term by term."""
    X = np.asarray(X, dtype=float)
    if isinstance(gate, SeveralGates):
        return np.hstack([f * weights_by_formula(g, X) for f, g in zip(gate.factors, gate.gates, strict=True)])
    if isinstance(gate, SingleCell):
        return np.ones((len(X), 1))
    if isinstance(gate, ScaledGate):
        return weights_by_formula(gate.inner, (X - (0 if gate.center is None else gate.center)) * gate.factor)
    if isinstance(gate, ProjectedGate):
        return _nearest_softmax(gate.inner, X @ gate.projection.T)
    if isinstance(gate, GaussianGate):
        return np.array([_posterior(gate, x) for x in X])
    return np.array([_down_the_tree(gate, x) for x in X])


def _nearest_softmax(gate, Z):
    out = np.zeros((len(Z), gate.n_tiles))
    for z, line in zip(Z, out, strict=True):
        squared = ((z - gate.centers) ** 2).sum(axis=1)
        chosen = np.argsort(squared, kind="stable")[: gate.width]
        logits = -gate.scale * squared[chosen]
        line[chosen] = np.exp(logits - logsumexp(logits))
    return out


def _posterior(gate, x):
    joint = np.empty(gate.n_tiles)
    for j, (mean, covariance) in enumerate(zip(gate.means, gate.covariances, strict=True)):
        if gate.covariance != "full":
            covariance = np.diag(np.broadcast_to(covariance, mean.shape))
        away = x - mean
        joint[j] = np.log(gate.prior[j]) - 0.5 * np.linalg.slogdet(covariance)[1]
        joint[j] -= 0.5 * away @ np.linalg.solve(covariance, away)
    return np.exp(joint - logsumexp(joint))


def _down_the_tree(gate, x):
    node = np.empty(len(gate.parent))
    for a, parent in enumerate(gate.parent):
        siblings = np.flatnonzero(gate.parent == parent)
        logits = -gate.tau[siblings] * ((x - gate.centers[siblings]) ** 2).sum(axis=1)
        if gate.inside:
            logits = logits + np.log(gate.prior[siblings])
        share = np.exp(logits[siblings == a][0] - logsumexp(logits))
        node[a] = share * (1.0 if gate.inside else gate.prior[a]) * (1.0 if parent < 0 else node[parent])
    return node[gate.leaf]
