"""Which columns matter: by how much their contributions vary, never by raw weights."""

import numpy as np

from svmosaic.explain.contributions import Table, deviations
from svmosaic.explain.subject import sampled
from svmosaic.maps.protocol import dense
from svmosaic.rows import evenly

# Rows that are scored with shuffled columns, all columns together, and for each of them.
MOST_SHUFFLED, FEWEST_ROWS, MOST_ROWS = 20_000, 50, 1000


def importances(model, X) -> Table:
    """Rank columns by the mean absolute deviation of their contributions to the scores from the mean contribution.

    This is weight times spread: a column that hardly varies, or that the model hardly uses, is not important. One-hot
    columns are combined. Contributions are exact; for regressors, they are in units of the target; for several outputs,
    their mean is used; and if scores are votes of tiles, they are contributions to the margin of the row's region.

    In kernel machines, and forests whose leaves are numbers, columns only decide which tiles answer, and contribute
    nothing themselves. There, the importance is the mean absolute change of the scores if the column is shuffled.

    Parameters
    ----------
    model : fitted estimator with tiles, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix
        Rows in the form that the model takes. At most 20,000 evenly spaced rows are used.

    Returns
    -------
    Table
        Columns "feature" and "importance", largest first.

    See Also
    --------
    effects : The effect of each column.
    describe_regions : Describes regions in words.

    Examples
    --------
    >>> from svmosaic import LinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain import importances
    >>> X, y = make_xor(random_state=0)
    >>> len(importances(LinearSVC(random_state=0).fit(X, y), X))
    2
    """
    subject = sampled(model, X)
    found = column_importances(subject)
    order = np.argsort(-found, kind="stable")
    return Table({"feature": np.array(subject.names, dtype=object)[order], "importance": found[order]})


def column_importances(subject):
    """Of each column, over all rows: by contributions, or, if there are none, by shuffling."""
    return overall_importances(subject.contributions) if subject.has_contributions else _by_shuffling(subject)


def _by_shuffling(subject):
    """Mean absolute changes of the scores of some rows if they exchange their values of a column."""
    n_rows = int(np.clip(MOST_SHUFFLED // max(len(subject.columns), 1), FEWEST_ROWS, MOST_ROWS))
    X = subject.X[evenly(subject.n_rows, n_rows)]
    before = subject.scale * subject.mosaic.decision_function(X)
    order = np.random.RandomState(0).permutation(X.shape[0])
    found = np.zeros(len(subject.columns))
    for j, column in enumerate(subject.columns):
        if len(column.features):
            after = subject.scores_with(X, j, dense(X[:, column.features])[order])
            found[j] = np.abs(after - before).mean()
    return found


def overall_importances(contributions):
    """Of each column, over all rows.

    Parameters
    ----------
    contributions : ndarray of shape (n_rows, n_outputs, n_columns)
    """
    return group_importances(contributions, np.zeros(len(contributions), dtype=np.intp), 1)[0]


def group_importances(contributions, group, n_groups):
    """Of each column within each group of rows, of shape (n_groups, n_columns).

    Parameters
    ----------
    contributions : ndarray of shape (n_rows, n_outputs, n_columns)
    group : ndarray of int, shape (n_rows,)
    n_groups : int
    """
    n_outputs = contributions.shape[1]
    total = sum(deviations(contributions[:, c], group, n_groups) for c in range(n_outputs))
    return total / (n_outputs * np.maximum(np.bincount(group, minlength=n_groups), 1)[:, None])
