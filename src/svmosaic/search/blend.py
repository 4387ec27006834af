"""A greedy weighted blend: models are added one by one, with replacement, if the loss of held-out rows falls."""

import numpy as np

ROUNDS = 25
# A model must lower the loss by this share of it to be added.
GAIN = 1e-4
# Rows that are looked at: more tell nothing new.
MOST_ROWS = 8000


def greedy_weights(judge, scores, rows, *, rounds=ROUNDS) -> np.ndarray:
    """Weights, which sum to one, of models whose tempered scores are given.

    Parameters
    ----------
    judge : Judge
    scores : list of ndarray of shape (n_rows, n_outputs)
        Tempered, of the same rows for each model; the first of equals is taken.
    rows : ndarray of int
        The rows with these scores.
    rounds : int

    Returns
    -------
    ndarray of shape (n_models,)
    """
    if len(rows) > MOST_ROWS:
        kept = np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int)
        rows, scores = rows[kept], [one[kept] for one in scores]
    counts = np.zeros(len(scores), dtype=int)
    total, best = np.zeros_like(scores[0]), np.inf
    for n in range(1, rounds + 1):
        losses = [judge.loss((total + one) / n, rows) for one in scores]
        chosen = int(np.argmin(losses))
        if losses[chosen] > best * (1 - GAIN):
            break
        best = losses[chosen]
        counts[chosen] += 1
        total += scores[chosen]
    return counts / counts.sum()
