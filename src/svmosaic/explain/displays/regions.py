"""Decision boundary or predicted values, cells and anchors of a mosaic, in a plane."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic.explain.displays._pyplot import class_colors, pyplot
from svmosaic.explain.displays.curves import places_of
from svmosaic.explain.subject import Subject
from svmosaic.gates import principal_components

MARKERS = "osD^vPX*"


@dataclass(kw_only=True, eq=False, repr=False)
class RegionDisplay:
    """Decision boundary of a fitted model, or the values of a regressor, with the cells and anchors of its tiles.

    Create it with `RegionDisplay.from_estimator`.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (resolution, resolution)
        The points of the plane.
    response : ndarray of int (of a regressor: float), same shape
        The index of the predicted class at each point, or the predicted value.
    region : ndarray of int, same shape
        The tile with the largest weight at each.
    points : ndarray of shape (n_samples, 2)
        The rows in the plane.
    label : ndarray of int (of a regressor: float), shape (n_samples,)
        Indices of their classes, or their values.
    anchors : ndarray of shape (n_tiles, 2) or None
    class_names : list of str
        Empty for a regressor.
    axis_names : tuple of two str
    anchor_name : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    surface_ : QuadMesh of the predicted classes or values
    boundaries_ : list of ContourSet, between classes; empty for a regressor
    cells_ : list of ContourSet, between tiles
    scatters_ : list of PathCollection, one per class; one for a regressor
    colorbar_ : Colorbar for a regressor, or None
    anchors_ : PathCollection or None

    See Also
    --------
    CurveDisplay : Plots the curves of the features.
    svmosaic.explain.write_report : Writes an HTML report.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain.displays import RegionDisplay
    >>> X, y = make_xor(random_state=0)
    >>> model = ClusteredSVC(n_clusters=4, random_state=0).fit(X, y)
    >>> display = RegionDisplay.from_estimator(model, X, y)  # doctest: +SKIP
    """

    xx0: Any
    xx1: Any
    response: Any
    region: Any
    points: Any
    label: Any
    anchors: Any
    class_names: list
    axis_names: tuple
    anchor_name: str = "anchors"

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, features=None, resolution=300, margin=0.08, feature_names=None, class_names=None,
        ax=None, **options,
    ):  # fmt: skip
        """Compute the regions and plot them.

        Parameters
        ----------
        estimator : fitted estimator with `mosaic_`, or pipeline that ends in one
            A regressor must have one target.
        X : array-like of shape (n_samples, n_features)
            Rows for the estimator. Two features are used as the axes. With more, the plot is a slice
            through the model along the first two principal components, through the mean of the rows; rows are
            projected onto it, so some may appear on the wrong side.
        y : array-like of shape (n_samples,), optional
            Classes or values of the rows; the predicted ones if not given.
        features : pair of int or str, optional
            Slice along these features, with the others at their means.
        resolution : int, default=300
            Number of points of the plane along each axis.
        margin : float, default=0.08
            Margin around the rows, as a fraction of their range.
        feature_names : list of str, optional
            Names of the columns of X.
        class_names : list of str, optional
            In the order of `classes_`.
        ax : matplotlib Axes, optional
        **options
            Passed on to `plot`.

        Returns
        -------
        RegionDisplay
        """
        pyplot(cls.__name__)
        if getattr(estimator, "preparation_", None) is not None:
            raise ValueError(
                f"{cls.__name__} plots numeric features, but this {type(estimator).__name__} was fitted to a table "
                "with other columns: see its regions_, or use write_report, which plots the effects of columns"
            )
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise ValueError(f"X must have two features or more, got an array of shape {rows.shape}")
        names = [f"x{f}" for f in range(rows.shape[1])] if feature_names is None else [str(n) for n in feature_names]
        subject = Subject(estimator, X)
        known, n_values = getattr(subject.estimator, "classes_", ()), subject.mosaic.coef.shape[1]
        classes = [str(c) for c in (known if class_names is None else class_names)]
        if len(classes) != len(known):
            raise ValueError(f"class_names must have {len(known)} names, got {len(classes)}")
        if not classes and n_values > 1:
            raise ValueError(f"a plot shows one output, but the model predicts {n_values}: fit a model to one target")
        if y is not None and len(y) != len(rows):
            raise ValueError(f"X has {len(rows)} rows, but y has {len(y)}")
        # A point of the plane is center + coordinates @ directions.
        center, n_features = rows.mean(axis=0), rows.shape[1]
        if features is None and n_features > 2:
            directions = principal_components(rows, 2, np.random.RandomState(0)).astype(np.float64)
            origin, axis_names = center, ("first principal component", "second principal component")
        else:
            if features is not None and len(features) != 2:
                raise ValueError(f"features must be two, got {features!r}")
            axes = [0, 1] if features is None else places_of(features, names)
            directions, origin = np.eye(n_features)[axes], np.zeros(n_features)
            center[axes] = 0.0
            axis_names = (names[axes[0]], names[axes[1]])
        points = (rows - origin) @ directions.T
        low, high = points.min(axis=0), points.max(axis=0)
        low, high = low - margin * (high - low), high + margin * (high - low)
        xx0, xx1 = np.meshgrid(np.linspace(low[0], high[0], resolution), np.linspace(low[1], high[1], resolution))
        lifted = center + np.column_stack([xx0.ravel(), xx1.ravel()]) @ directions
        if hasattr(X, "columns"):
            lifted = type(X)(lifted, columns=X.columns)
        anchors, anchor_name = _anchors(subject, rows)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            response=subject.head.truth(estimator.predict(lifted)).reshape(xx0.shape),
            region=Subject(estimator, lifted).home.reshape(xx0.shape),
            points=points,
            label=subject.head.truth(estimator.predict(X) if y is None else y),
            anchors=None if anchors is None else (anchors - origin) @ directions.T,
            class_names=classes,
            axis_names=axis_names,
            anchor_name=anchor_name,
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax=None, *, show_points=True, show_cells=True, show_anchors=True, legend=True):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.
        show_points, show_cells, show_anchors, legend : bool, default=True

        Returns
        -------
        self
        """
        plt = pyplot(type(self).__name__)
        from matplotlib.colors import ListedColormap

        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 5.0), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.cells_, self.boundaries_, self.scatters_, self.colorbar_ = [], [], [], None
        size = 22 if len(self.points) <= 1000 else 9
        rows = {"s": size, "edgecolor": "white", "linewidth": 0.4, "zorder": 3}
        grid = {"shading": "nearest", "rasterized": True, "linewidth": 0}
        if self.class_names:
            n_classes = len(self.class_names)
            colors = class_colors(n_classes)
            self.surface_ = ax.pcolormesh(
                self.xx0, self.xx1, self.response, cmap=ListedColormap(colors), vmin=-0.5, vmax=n_classes - 0.5,
                alpha=0.28, **grid,
            )  # fmt: skip
            self.boundaries_ = self._edges(ax, self.response, colors="black", linewidths=1.8)
            for c in range(n_classes if show_points else 0):
                style = {"color": colors[c], "marker": MARKERS[c % len(MARKERS)], "label": self.class_names[c]}
                self.scatters_.append(ax.scatter(*self.points[self.label == c].T, **style, **rows))
        else:
            both = np.concatenate([np.ravel(self.response), np.ravel(self.label)])
            scale = {"cmap": "viridis", "vmin": both.min(), "vmax": both.max()}
            self.surface_ = ax.pcolormesh(self.xx0, self.xx1, self.response, **scale, **grid)
            if show_points:
                self.scatters_ = [ax.scatter(*self.points.T, c=np.ravel(self.label), **scale, **rows)]
            self.colorbar_ = ax.figure.colorbar(self.surface_, ax=ax, label="value")
        if show_cells:
            self.cells_ = self._edges(ax, self.region, colors="#444444", linewidths=0.9, linestyles=":")
        self.anchors_ = None
        if show_anchors and self.anchors is not None:
            self.anchors_ = ax.scatter(
                self.anchors[:, 0], self.anchors[:, 1], s=110, marker="*", color="black", edgecolor="white",
                linewidth=0.9, label=self.anchor_name, zorder=4,
            )  # fmt: skip
        ax.set(
            xlabel=self.axis_names[0], ylabel=self.axis_names[1],
            xlim=(self.xx0.min(), self.xx0.max()), ylim=(self.xx1.min(), self.xx1.max()),
        )  # fmt: skip
        if legend and self.class_names and (self.scatters_ or self.anchors_):
            # Outside the axes, where it hides nothing.
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, frameon=False)
        return self

    def _edges(self, ax, places, **style):
        """The lines between the places of a grid, each drawn once: on the side of the lower place."""
        lines = []
        for k in np.unique(places)[:-1]:
            higher = np.where(places < k, np.nan, places == k)
            lines.append(ax.contour(self.xx0, self.xx1, np.ma.masked_invalid(higher), levels=[0.5], **style))
        return lines


def _anchors(subject, rows):
    """Points of the tiles in the space of the rows, and their name."""
    gate, features = subject.mosaic.gate, subject.mosaic.features
    anchors = getattr(gate, "anchors", None)
    if anchors is None:
        return None, ""
    if getattr(gate, "projection", None) is None and features.portable:  # else they have a place only in a projection
        if features.affine is not None:
            center, factor = features.affine
            anchors = anchors / factor if center is None else anchors / factor + center
        try:
            before = subject.before
            return np.asarray(anchors if before is None else before.inverse_transform(anchors), np.float64), "anchors"
        except AttributeError:
            pass  # no way back
    home = subject.home
    means = [rows[home == k].mean(axis=0) for k in range(gate.n_tiles) if (home == k).any()]
    return np.array(means), "means of the regions' rows"
