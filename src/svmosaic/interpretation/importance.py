"""Which columns matter: by how much their contributions vary, never by raw weights."""

import numpy as np

from svmosaic.explain import Table, deviations
from svmosaic.interpretation.subject import sampled


def importances(model, X) -> Table:
    """Columns by the mean absolute deviation of their contributions to the scores from the mean contribution.

    That is weight times spread, row by row: a column that hardly varies, or that the model hardly uses, does not
    matter. One-hot columns count together. Contributions are exact; of regression models they are in the units of the
    target, of several outputs their mean counts, and where scores are votes of tiles they are those to the margin of a
    row's region.

    Parameters
    ----------
    model : fitted estimator with tiles, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix
        Rows as they enter the model. Of more than 20,000, so many are used, drawn evenly.

    Returns
    -------
    Table
        feature and importance, the largest first.

    See Also
    --------
    effects : What each column does.
    describe_regions : Regions in words.

    Examples
    --------
    >>> from svmosaic import LinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.interpretation import importances
    >>> X, y = make_xor(random_state=0)
    >>> len(importances(LinearSVC(random_state=0).fit(X, y), X))
    2
    """
    subject = sampled(model, X)
    found = overall_importances(subject.contributions)
    order = np.argsort(-found, kind="stable")
    return Table({"feature": np.array(subject.names, dtype=object)[order], "importance": found[order]})


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
