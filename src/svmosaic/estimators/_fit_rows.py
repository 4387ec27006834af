"""Fits to rows that something else holds."""

import numpy as np
from sklearn.utils import check_random_state

from svmosaic.estimators._all_or_nothing import all_or_nothing


class FitRowsMixin:
    """`fit_rows`, for estimators whose `_fit_rows(rows, rng, progress)` uses only the interface of its rows."""

    @all_or_nothing
    def fit_rows(self, rows, progress):
        """Fit to rows that are not arrays, such as partitions; `svmosaic.scale.fit` calls it.

        Parameters
        ----------
        rows : FitRows
            Answers the questions of `svmosaic.estimators._composed_fit.FitRows`.
        progress : Progress

        Returns
        -------
        self
        """
        self._check_parameters()
        self.n_features_in_ = rows.n_features
        if rows.feature_names is not None:
            self.feature_names_in_ = np.array(rows.feature_names, dtype=object)
        rng = check_random_state(self.random_state)
        self._bend(rows, rng)
        self._fit_rows(rows, rng, progress)
        return self

    def _bend(self, rows, rng):
        """Give the tiles curves, if they are to have some."""
        if self._pieces is not None:
            rows.bend(self._pieces, rng)
