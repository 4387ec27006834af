"""History of a fit: the objective and the live tiles of EM, or the loss of learning."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmosaic.explain.displays._pyplot import pyplot


@dataclass(kw_only=True, eq=False, repr=False)
class ConvergenceDisplay:
    """Plot of the objective or loss per iteration, with a second curve on its own axis.

    Create it with `ConvergenceDisplay.from_estimator`.

    Parameters
    ----------
    values : array-like of shape (n_iterations,)
        Objective or loss.
    name : str
        Name of `values`.
    second : array-like of shape (n_iterations,), optional
        The number of live tiles, or the accuracy on held-out rows.
    second_name : str, optional
    step_name : str, default="iteration"
    first_step : int, default=0
        Number of the first value.

    Attributes
    ----------
    ax_ : matplotlib Axes
    right_ax_ : matplotlib Axes of the second curve, or None
    figure_ : matplotlib Figure
    lines_ : list of Line2D

    See Also
    --------
    MixtureSVC : Has an objective per EM iteration.
    LearnedGateSVC : Has a loss per epoch.

    Examples
    --------
    >>> from svmosaic import MixtureSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain.displays import ConvergenceDisplay
    >>> X, y = make_xor(random_state=0)
    >>> model = MixtureSVC(n_experts=4, random_state=0).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(model)  # doctest: +SKIP
    """

    values: Any
    name: str
    second: Any = None
    second_name: str | None = None
    step_name: str = "iteration"
    first_step: int = 0

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **options):
        """Plot the history of a fit.

        Parameters
        ----------
        estimator : fitted model with a history, or pipeline that ends in one
            Mixtures trained by EM (`objective_` of each iteration, and the live experts), or learned gates
            (`loss_curve_`, and the held-out accuracy with `early_stopping`). For a `MosaicClassifier`, its
            `best_estimator_`.
        ax : matplotlib Axes, optional
        **options
            Passed on to `plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        pyplot(cls.__name__)
        model = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        model = getattr(model, "best_estimator_", model)
        if hasattr(model, "experts_per_iter_"):
            display = cls(
                values=np.asarray(model.objective_), name="objective",
                second=np.asarray(model.experts_per_iter_), second_name="live tiles",
            )  # fmt: skip
        elif hasattr(model, "loss_curve_"):
            scores = getattr(model, "validation_scores_", [])
            display = cls(
                values=np.asarray(model.loss_curve_), name="mean loss", step_name="epoch", first_step=1,
                second=np.asarray(scores) if len(scores) else None, second_name="held-out accuracy",
            )  # fmt: skip
        else:
            raise TypeError(
                f"{type(model).__name__} has no history of its fit: mixtures (experts_per_iter_) and learned gates "
                "(loss_curve_) have one; for other models, see dual_gap_"
            )
        return display.plot(ax=ax, **options)

    def plot(self, ax=None, *, title=None):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.
        title : str, optional

        Returns
        -------
        self
        """
        plt = pyplot(type(self).__name__)
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        self.ax_, self.figure_, self.right_ax_ = ax, ax.figure, None
        steps = self.first_step + np.arange(len(self.values))
        marker = "o" if len(steps) <= 40 else None
        blue, orange = "#0072B2", "#D55E00"
        self.lines_ = ax.plot(steps, self.values, color=blue, marker=marker, markersize=4, label=self.name)
        ax.set_xlabel(self.step_name)
        ax.set_ylabel(self.name, color=blue)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(alpha=0.25)
        if self.second is not None:
            right = self.right_ax_ = ax.twinx()
            # A dashed line and another marker: distinguishable without color.
            self.lines_ += right.plot(
                steps[: len(self.second)], self.second, color=orange, marker=marker and "s", markersize=4,
                linestyle="--", label=self.second_name,
            )  # fmt: skip
            right.set_ylabel(self.second_name, color=orange)
            if np.issubdtype(np.asarray(self.second).dtype, np.integer):
                right.yaxis.set_major_locator(MaxNLocator(integer=True))
                right.set_ylim(0, 1.1 * max(self.second))
        names = [str(line.get_label()) for line in self.lines_]
        # Below the axes, where it hides neither curve.
        ax.legend(self.lines_, names, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
        if title is not None:
            ax.set_title(title)
        return self
