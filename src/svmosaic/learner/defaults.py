"""Settings of the gate learner that depend on the number of rows.

Chosen by cross-validation on the training parts of the data sets (benchmarks/study_defaults.py).
"""

import numpy as np

# Batches are a 400th of the rows, within bounds: small ones learn more in an epoch, large ones cost less per row.
STEPS, SMALLEST_BATCH, LARGEST_BATCH = 400, 32, 1024
# Fewer rows than this in the held-out part are no basis to stop early.
SMALLEST_HELD_OUT = 50
# Up to so many rows, a last run on all of them costs little and gains what the held-out part knows.
LARGEST_REFIT = 50_000


def default_batch_size(n_rows) -> int:
    """Rows per step."""
    return int(np.clip(n_rows // STEPS, SMALLEST_BATCH, LARGEST_BATCH))


def stops_early(n_held_out) -> bool:
    """Whether a held-out part of this size can tell when to stop."""
    return n_held_out >= SMALLEST_HELD_OUT


def refits(n_rows) -> bool:
    """Whether to learn once more from all rows, for the number of epochs found."""
    return n_rows <= LARGEST_REFIT
