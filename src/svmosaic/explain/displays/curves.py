"""The curves of piecewise-linear tiles, with the distribution of each feature below."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmosaic.explain.displays._pyplot import class_colors, pyplot
from svmosaic.explain.subject import Subject


@dataclass(kw_only=True, eq=False, repr=False)
class CurveDisplay:
    """Plot of the effects of features on the score: one panel per feature, with its overall effect and that in regions.

    Create it with `CurveDisplay.from_estimator`. Features are ranked by the spread of their effect: its standard
    deviation over the rows. Curves are shown relative to their mean over the rows, so zero is the average row.

    Parameters
    ----------
    names : list of str
        The features, in the order of the ranking.
    spread : ndarray of shape (n_features,)
    grid : list of ndarray
        Points along each feature.
    effect : list of ndarray
        The overall effect at these points.
    regions : list of ndarray of shape (n_regions, n_points)
        The effect in each region shown.
    region_names : list of str
    values : list of ndarray
        The values of each feature in the rows.
    all_names : list of str
        All features, including those not shown, in the order of the ranking.
    all_spread : ndarray
    output_name : str
        The class that a positive effect favors.
    effect_name : str, optional
        Label of the vertical axes; by default "effect on" and the output.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : list of matplotlib Axes, one per feature
    histograms_ : list of matplotlib Axes, below them
    lines_ : list of Line2D, the overall effects
    ranking_ : BarContainer or None

    See Also
    --------
    svmosaic.explain.effects : The curves as numbers.

    Examples
    --------
    >>> from svmosaic import LinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain.displays import CurveDisplay
    >>> X, y = make_xor(random_state=0)
    >>> model = LinearSVC(pieces=8).fit(X, y)
    >>> display = CurveDisplay.from_estimator(model, X)  # doctest: +SKIP
    """

    names: list
    spread: Any
    grid: list
    effect: list
    regions: list
    region_names: list
    values: list
    all_names: list
    all_spread: Any
    output_name: str
    effect_name: str | None = None

    @classmethod
    def from_estimator(
        cls, estimator, X, *, features=4, regions=0, output=0, feature_names=None, resolution=200, **options
    ):  # fmt: skip
        """Compute the curves and plot them.

        Parameters
        ----------
        estimator : fitted model with `pieces`, or pipeline that ends in one
        X : array-like of shape (n_samples, n_features)
            Rows for the estimator. They determine the range of the axes, the distributions and the ranking.
        features : int, or sequence of int or str, default=4
            The number of features with the largest spread, or these features, by index or name.
        regions : int or sequence of int, default=0
            The number of tiles with the most rows, or these tiles, shown in the same panels.
        output : int, default=0
            For a model with several scores, the index of the class.
        feature_names : list of str, optional
            Names of the columns that the model takes.
        resolution : int, default=200
            Number of points along each axis, in addition to the knots.
        **options
            Passed on to `plot`.

        Returns
        -------
        CurveDisplay
        """
        pyplot(cls.__name__)
        subject = Subject(estimator, X)
        curves, all_names = subject.estimator.curves_, subject.feature_names
        if feature_names is not None and len(feature_names) != len(all_names):
            raise ValueError(
                f"feature_names must have one name for each of the {len(all_names)} features that the tiles see, got "
                f"{len(feature_names)}"
            )
        all_names = all_names if feature_names is None else [str(name) for name in feature_names]
        if not 0 <= output < len(curves.output_names):
            raise ValueError(f"output must be below {len(curves.output_names)}, the number of scores, got {output!r}")
        rows = subject.mosaic.features.values(subject.X)
        effects = np.column_stack([curve(rows[:, f])[output] for f, curve in enumerate(curves)])
        spread, mean = effects.std(axis=0), effects.mean(axis=0)
        order = np.argsort(-spread, kind="stable")
        if isinstance(features, (int, np.integer)):
            if features < 1:
                raise ValueError(f"features must be at least 1, or a list of features, got {features!r}")
            chosen = list(order[:features])
        else:
            chosen = places_of(features, all_names)
        if isinstance(regions, (int, np.integer)):
            tiles = list(np.argsort(-curves.share, kind="stable")[: max(0, regions)])
        else:
            tiles = list(regions)
            for k in tiles:
                if not 0 <= k < len(curves.share):
                    raise ValueError(f"regions must be below {len(curves.share)}, the number of tiles, got {k!r}")
        grids, in_regions = [], []
        for f in chosen:
            values, knots = rows[:, f], curves[f].knots
            low, high = values.min(), values.max()
            inside = knots[(knots > low) & (knots < high)]
            grids.append(np.unique(np.concatenate([np.linspace(low, high, resolution), inside])))
            lines = [curves[f](grids[-1], k)[output] - curves[f](values, k)[output].mean() for k in tiles]
            in_regions.append(np.array(lines))
        output_name = curves.output_names[output]
        display = cls(
            names=[all_names[f] for f in chosen], spread=spread[chosen], grid=grids,
            effect=[curves[f](grid)[output] - mean[f] for f, grid in zip(chosen, grids, strict=True)],
            regions=in_regions, region_names=[f"region {k} ({100 * curves.share[k]:.0f} % of rows)" for k in tiles],
            values=[rows[:, f] for f in chosen], all_names=[all_names[f] for f in order], all_spread=spread[order],
            output_name=output_name,
            effect_name=f"effect on the score of {output_name}" if hasattr(subject.estimator, "classes_") else None,
        )  # fmt: skip
        return display.plot(**options)

    def plot(self, *, figure=None, n_columns=None, n_bins=30, show_ranking=True):
        """Draw the plot.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            A new one if not given.
        n_columns : int, optional
            Number of panels per row; at most 2 if not given.
        n_bins : int, default=30
            Number of bins of the distributions.
        show_ranking : bool, default=True
            Add a panel with the spread of the effects of up to 15 features.

        Returns
        -------
        self
        """
        plt = pyplot(type(self).__name__)
        n_panels = len(self.names) + bool(show_ranking)
        n_columns = min(2, n_panels) if n_columns is None else n_columns
        n_lines = -(-n_panels // n_columns)
        if figure is None:
            figure = plt.figure(figsize=(4.6 * n_columns, 3.2 * n_lines), layout="constrained")
        # Two lines of axes for each line of panels: the curve, and the distribution below it.
        cells = figure.add_gridspec(2 * n_lines, n_columns, height_ratios=[4, 1] * n_lines)
        self.figure_, self.axes_, self.histograms_, self.lines_ = figure, [], [], []
        colors = class_colors(1 + len(self.region_names))
        ylabel = self.effect_name or f"effect on {self.output_name}"
        for k, name in enumerate(self.names):
            line, column = divmod(k, n_columns)
            ax = figure.add_subplot(cells[2 * line, column])
            below = figure.add_subplot(cells[2 * line + 1, column], sharex=ax)
            for name_of_region, effect, color in zip(self.region_names, self.regions[k], colors[1:], strict=True):
                ax.plot(self.grid[k], effect, color=color, linewidth=1.2, label=name_of_region)
            self.lines_ += ax.plot(self.grid[k], self.effect[k], color=colors[0], linewidth=2.2, label="all rows")
            ax.axhline(0.0, color="#999999", linewidth=0.8, zorder=0)
            ax.set(title=name, ylabel=ylabel if column == 0 else "")
            ax.tick_params(labelbottom=False)
            below.hist(self.values[k], bins=n_bins, color="#bbbbbb")
            below.set(yticks=[])
            self.axes_.append(ax)
            self.histograms_.append(below)
        if self.region_names and self.axes_:
            self.axes_[0].legend(fontsize="small", frameon=False)
        self.ranking_ = None
        if show_ranking:
            line, column = divmod(len(self.names), n_columns)
            ax = figure.add_subplot(cells[2 * line : 2 * line + 2, column])
            self.ranking_ = ax.barh(self.all_names[:15][::-1], self.all_spread[:15][::-1], color="#888888")
            ax.set(title="spread of the effect")
        return self


def places_of(features, names) -> list[int]:
    """Indices of features that are given by index or name."""
    places = [names.index(f) if isinstance(f, str) and f in names else f for f in features]
    for f in places:
        if not isinstance(f, (int, np.integer)) or not 0 <= f < len(names):
            raise ValueError(f"features must be names or indices of features, got {f!r}")
    return [int(f) for f in places]
