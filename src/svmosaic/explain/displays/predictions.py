"""Predicted values against the actual ones, and their residuals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmosaic.explain.displays._pyplot import PALETTE, pyplot


@dataclass(kw_only=True, eq=False, repr=False)
class PredictionDisplay:
    """Plot of predicted against actual values, next to residuals against predicted values.

    Create it with `PredictionDisplay.from_estimator` or `PredictionDisplay.from_predictions`.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        The actual values.
    predicted : ndarray of shape (n_samples,)
    ends : ndarray of shape (n_samples, 2), optional
        Prediction intervals, drawn as bars; those that miss the actual value in another color.
    name : str
        What the values are called.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
    figure_ : matplotlib Figure
    points_, residuals_ : PathCollection
    bars_ : list of LineCollection, of rows inside and outside their intervals

    See Also
    --------
    RegionDisplay : Predicted values over two features.
    svmosaic.search.intervals.fit_intervals : Intervals to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import LinearSVR
    >>> from svmosaic.explain.displays import PredictionDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = LinearSVR(random_state=0).fit(X, X[:, 0])
    >>> display = PredictionDisplay.from_estimator(model, X, X[:, 0])  # doctest: +SKIP
    """

    y: Any
    predicted: Any
    ends: Any = None
    name: str = "y"

    @classmethod
    def from_estimator(cls, estimator, X, y, *, intervals=None, target=0, name="y", axes=None):
        """Predict the rows and plot the result.

        Parameters
        ----------
        estimator : fitted regressor or pipeline
        X : rows as it takes them
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The actual values.
        intervals : callable, optional
            From X to ends of shape (n_samples, 2); the estimator's `predict_interval` if it has intervals.
        target : int, default=0
            Which of several targets to draw.
        name : str, default="y"
            What the values are called.
        axes : two matplotlib Axes, optional

        Returns
        -------
        PredictionDisplay
        """
        found, y = np.asarray(estimator.predict(X)), np.asarray(y, dtype=np.float64)
        intervals = intervals or getattr(estimator, "predict_interval", None)
        return cls.from_predictions(
            y if y.ndim == 1 else y[:, target], found if found.ndim == 1 else found[:, target],
            ends=None if intervals is None else intervals(X), name=name, axes=axes,
        )  # fmt: skip

    @classmethod
    def from_predictions(cls, y, predicted, *, ends=None, name="y", axes=None):
        """Plot given predictions.

        Parameters
        ----------
        y, predicted : array-like of shape (n_samples,)
        ends : array-like of shape (n_samples, 2), optional
            Prediction intervals.
        name : str, default="y"
        axes : two matplotlib Axes, optional

        Returns
        -------
        PredictionDisplay
        """
        y, predicted = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
        if y.shape != predicted.shape or y.ndim != 1:
            raise ValueError(f"y and predicted must be of the same length, got shapes {y.shape} and {predicted.shape}")
        ends = None if ends is None else np.asarray(ends, dtype=np.float64)
        return cls(y=y, predicted=predicted, ends=ends, name=name).plot(axes)

    def plot(self, axes=None):
        """Draw the plot.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        self
        """
        plt = pyplot(type(self).__name__)
        if axes is None:
            _, axes = plt.subplots(1, 2, figsize=(10.0, 4.5), layout="constrained")
        self.axes_, self.figure_ = np.asarray(axes), axes[0].figure
        self.bars_ = []
        residual = self.y - self.predicted
        if self.ends is not None:
            inside = (self.ends[:, 0] <= self.y) & (self.y <= self.ends[:, 1])
            for here, color in ((inside, PALETTE[4]), (~inside, PALETTE[5])):
                self.bars_.append(axes[0].vlines(self.y[here], *self.ends[here].T, color=color, alpha=0.5, linewidth=1))
        style = {"s": 22 if len(self.y) <= 1000 else 9, "color": PALETTE[0], "edgecolor": "white", "linewidth": 0.4}
        self.points_ = axes[0].scatter(self.y, self.predicted, zorder=3, **style)
        ends = [min(self.y.min(), self.predicted.min()), max(self.y.max(), self.predicted.max())]
        axes[0].plot(ends, ends, color="black", linewidth=1)
        axes[0].set(xlabel=f"actual {self.name}", ylabel=f"predicted {self.name}")
        self.residuals_ = axes[1].scatter(self.predicted, residual, **style)
        axes[1].axhline(0.0, color="black", linewidth=1)
        error = np.abs(residual).mean()
        axes[1].set(
            xlabel=f"predicted {self.name}", ylabel=f"actual minus predicted {self.name}",
            title=f"mean absolute error {error:.3g}",
        )  # fmt: skip
        return self
