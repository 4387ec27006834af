"""The task of a label: classification or regression."""

import numpy as np

from svmosaic.table.formats import TableError

TASKS = ("auto", "classification", "regression")
# Whole numbers with at most so many different values are taken as classes.
FEW_NUMBERS = 20


def add_task_argument(parser):
    """`--task`."""
    parser.add_argument(
        "--task", choices=TASKS, default="auto",
        help=f"auto (default): classification for text and for at most {FEW_NUMBERS} distinct integers, "
        "regression for other numbers",
    )  # fmt: skip


def decide_task(y, asked) -> tuple[str, str]:
    """The task of a label column, and the reason for it; no reason if the user chose it.

    Parameters
    ----------
    y : array-like, with NaN or None for missing labels
    asked : {"auto", "classification", "regression"}
    """
    import pandas as pd

    from svmosaic.table.preparation import is_number

    if asked != "auto":
        return asked, ""
    known = pd.Series(y).dropna()
    if len(known) == 0 or not is_number(known):
        return "classification", ""
    distinct = np.unique(known.to_numpy(dtype=np.float64))
    if len(distinct) <= FEW_NUMBERS and (distinct == np.round(distinct)).all():
        return "classification", (
            f"the label holds {len(distinct)} different whole numbers, which are taken as classes "
            "(--task regression takes them as values)"
        )
    kind = "numbers with fractions" if (distinct != np.round(distinct)).any() else f"{len(distinct)} different numbers"
    return "regression", (
        f"the label holds {kind}, so values are predicted (--task classification takes them as classes)"
    )


def read_labels(y, task):
    """The labels of a task that are there, and which rows have one."""
    from svmosaic.table.preparation import clean_labels, clean_values

    if task == "classification":
        return clean_labels(y)
    values, there = clean_values(y)
    if not np.isfinite(values).all():
        raise TableError("the label holds infinite values: leave these rows out, or mark them as missing with --na")
    return values, there
