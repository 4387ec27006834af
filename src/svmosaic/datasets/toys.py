"""The papers' toy sets, generated."""

import numpy as np
from sklearn.utils import check_random_state


def make_xor(n_samples=400, *, spread=0.25, random_state=None):
    """Four Gaussians in a diamond: top and bottom are class 1, left and right class 0 (CSVM, figure 1).

    Parameters
    ----------
    n_samples : int, default=400
    spread : float, default=0.25
        Standard deviation of each Gaussian; their centres are at distance 1 from the origin.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)
    """
    rng = check_random_state(random_state)
    centers = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    which = rng.randint(4, size=n_samples)
    return centers[which] + spread * rng.standard_normal((n_samples, 2)), (which < 2).astype(int)


def make_banana(n_samples=400, *, noise=0.15, random_state=None):
    """Two bananas, each curled around an end of the other (LL-SVM, figure 1).

    Parameters
    ----------
    n_samples : int, default=400
    noise : float, default=0.15
        Standard deviation of the Gaussian around the arcs, whose radius is 1.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)
    """
    rng = check_random_state(random_state)
    y = rng.randint(2, size=n_samples)
    # Arcs of 225 degrees, the second turned by half a turn: their ends come to lie inside each other.
    angle = np.pi * rng.uniform(-0.125, 1.125, n_samples)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y == 1] = np.array([0.9, 0.3]) - X[y == 1]
    return X + noise * rng.standard_normal((n_samples, 2)), y
