"""Generated toy data: the small problems of the papers, which examples and tests use."""

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["make_banana", "make_circle_in_square", "make_two_sines", "make_two_spirals", "make_xor"]


def make_xor(n_samples=400, *, spread=0.25, random_state=None):
    """Generate four Gaussians in a diamond: top and bottom are class 1, left and right class 0 (CSVM, figure 1).

    Parameters
    ----------
    n_samples : int, default=400
    spread : float, default=0.25
        Standard deviation of each Gaussian; their centers are at distance 1 from the origin.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)

    See Also
    --------
    make_banana : Generates two arcs.
    """
    rng = check_random_state(random_state)
    centers = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    which = rng.randint(4, size=n_samples)
    return centers[which] + spread * rng.standard_normal((n_samples, 2)), (which < 2).astype(int)


def make_two_spirals(n_samples=1000, *, noise=0.5, random_state=None):
    """Generate two spirals of 2.5 turns, each around the other (MLSVM, figure 4).

    Points s 1.3 t (cos t, sin t) with s = +1 for class 1 and -1 for class 0, and t uniform in [0.5 pi, 5.5 pi],
    moved by up to `noise` in each coordinate.

    Parameters
    ----------
    n_samples : int, default=1000
        Half of them in each class.
    noise : float, default=0.5
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)

    See Also
    --------
    make_xor : Generates four Gaussians.
    """
    rng = check_random_state(random_state)
    y = np.arange(n_samples) % 2
    t = rng.uniform(0.5 * np.pi, 5.5 * np.pi, n_samples)
    radius = 1.3 * t * (2 * y - 1)
    X = radius[:, None] * np.column_stack([np.cos(t), np.sin(t)])
    return X + rng.uniform(-noise, noise, X.shape), y


def make_circle_in_square(n_samples=400, *, random_state=None):
    """Generate a disc of class 1 in the middle of a square, class 0 around it (MLSVM, figure 3).

    Rows are uniform in the square from -1 to 1, thinned out to as many of one class as of the other. The disc has a
    radius of 0.6, and a gap of 0.05 is left around its edge.

    Parameters
    ----------
    n_samples : int, default=400
        Half of them in each class.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)

    See Also
    --------
    make_xor : Generates four Gaussians.
    """
    rng = check_random_state(random_state)
    n_inside = n_samples // 2
    parts = []
    for wanted, low, high in ((n_samples - n_inside, 0.65, np.inf), (n_inside, 0.0, 0.6)):
        points = np.empty((0, 2))
        while len(points) < wanted:
            more = rng.uniform(-1.0, 1.0, (4 * n_samples, 2))
            radius = np.hypot(*more.T)
            points = np.vstack([points, more[(radius >= low) & (radius < high)]])
        parts.append(points[:wanted])
    y = np.repeat([0, 1], [n_samples - n_inside, n_inside])
    order = rng.permutation(n_samples)
    return np.vstack(parts)[order], y[order]


def make_two_sines(n_samples=2000, *, shift=0.5, noise=0.1, random_state=None):
    """Generate two sine curves, one above the other (LSVM-MTL, figure 2).

    Points (x, sin x + s shift) with s = +1 for class 1 and -1 for class 0 and x uniform over the five rises and falls
    in [-pi/2, 9 pi/2], with uniform noise of up to `noise` in the second coordinate.

    Parameters
    ----------
    n_samples : int, default=2000
        Half of them in each class.
    shift : float, default=0.5
    noise : float, default=0.1
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)

    See Also
    --------
    make_xor : Generates four Gaussians.
    """
    rng = check_random_state(random_state)
    y = np.arange(n_samples) % 2
    x = rng.uniform(-0.5 * np.pi, 4.5 * np.pi, n_samples)
    height = np.sin(x) + shift * (2 * y - 1) + rng.uniform(-noise, noise, n_samples)
    return np.column_stack([x, height]), y


def make_banana(n_samples=400, *, noise=0.15, random_state=None):
    """Generate two bananas, each curled around an end of the other (LL-SVM, figure 1).

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

    See Also
    --------
    make_xor : Generates four Gaussians.
    """
    rng = check_random_state(random_state)
    y = rng.randint(2, size=n_samples)
    # Arcs of 225 degrees, the second turned by half a turn: their ends come to lie inside each other.
    angle = np.pi * rng.uniform(-0.125, 1.125, n_samples)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y == 1] = np.array([0.9, 0.3]) - X[y == 1]
    return X + noise * rng.standard_normal((n_samples, 2)), y
