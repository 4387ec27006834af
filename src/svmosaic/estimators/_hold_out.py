"""Rows held out of a fit to judge it by."""

import numpy as np
from sklearn.utils import check_random_state

from svmosaic.rows import shuffled


def can_stratify(label, n_held) -> bool:
    """Whether both parts can have rows of every class in its share."""
    counts = np.bincount(label)
    counts = counts[counts > 0]
    return bool(counts.min() >= 2 and len(counts) <= n_held <= len(label) - len(counts))


def hold_out(n_rows, n_held, rng, label=None):
    """Indices of the rows to fit to and of those held out, in random order, with equal shares of classes if possible.

    The draws are those of scikit-learn's `train_test_split`, which takes several times as long.

    Parameters
    ----------
    n_rows, n_held : int
        All rows, and rows to hold out.
    rng : RandomState or int
    label : ndarray of int, optional
        The position of each row's class, if there are classes.
    """
    rng = check_random_state(rng)
    if label is None or not can_stratify(label, n_held):
        if n_held >= n_rows:
            raise ValueError(
                f"{n_held} of {n_rows} rows would be held out, which leaves none for training: pass more rows"
            )
        order = shuffled(rng, n_rows)
        return order[n_held:], order[:n_held]
    counts = np.bincount(label)
    if len(counts) <= np.iinfo(np.uint16).max:
        label = label.astype(np.uint16)  # of which a stable sort takes linear time
    by_class = np.split(np.argsort(label, kind="stable"), np.cumsum(counts)[:-1])
    by_class, counts = [rows for rows in by_class if len(rows)], counts[counts > 0]
    n_train = _shares(counts, n_rows - n_held, rng)
    n_test = _shares(counts - n_train, n_held, rng)
    train, held = [], []
    for rows, first, second in zip(by_class, n_train, n_test, strict=True):
        rows = rows[shuffled(rng, len(rows))]
        train.append(rows[:first])
        held.append(rows[first : first + second])
    return tuple(shuffled(rng, np.concatenate(part)) for part in (train, held))


def _shares(counts, n_rows, rng):
    """How many of some rows are of each class: its share, rounded by largest remainders, of equal ones at random."""
    quota = counts / counts.sum() * n_rows
    shares = np.floor(quota)
    remainder, missing = quota - shares, int(n_rows - shares.sum())
    for value in np.unique(remainder)[::-1]:
        if missing == 0:
            break
        equal = np.flatnonzero(remainder == value)
        chosen = rng.choice(equal, min(len(equal), missing), replace=False)
        shares[chosen] += 1
        missing -= len(chosen)
    return shares.astype(int)
