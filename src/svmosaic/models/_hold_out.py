"""Rows held out of a fit to judge it by."""

import numpy as np
from sklearn.model_selection import train_test_split


def can_stratify(label, n_held) -> bool:
    """Whether both parts can have rows of every class in its share."""
    counts = np.unique(label, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(counts) <= n_held <= len(label) - len(counts))


def hold_out(label, n_held, rng):
    """Indices of the rows to fit to and of those held out, in random order, with equal shares of classes if possible.

    Parameters
    ----------
    label : ndarray of int
    n_held : int
        Rows to hold out.
    rng : RandomState
    """
    stratify = label if can_stratify(label, n_held) else None
    return train_test_split(np.arange(len(label)), test_size=n_held, random_state=rng, stratify=stratify)
