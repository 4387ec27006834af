"""Decision boundary or predicted values, cells and anchors of a mosaic, in a plane."""

import numpy as np
from scipy import sparse

from svmosaic.explain.displays._fitted import Fitted, Plane, anchors_of
from svmosaic.explain.displays._pyplot import MARKERS, class_colors, pyplot


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
    write_report : Writes an HTML report.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain.displays import RegionDisplay
    >>> X, y = make_xor(random_state=0)
    >>> model = ClusteredSVC(n_clusters=4, random_state=0).fit(X, y)
    >>> display = RegionDisplay.from_estimator(model, X, y)  # doctest: +SKIP
    """

    def __init__(
        self, *, xx0, xx1, response, region, points, label, anchors, class_names, axis_names, anchor_name="anchors"
    ):
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.region = region
        self.points = points
        self.label = label
        self.anchors = anchors
        self.class_names = class_names
        self.axis_names = axis_names
        self.anchor_name = anchor_name

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
        fitted = Fitted.of(estimator, X, class_names=class_names)
        if not fitted.classes and fitted.mosaic.coef.shape[1] > 1:
            n_values = fitted.mosaic.coef.shape[1]
            raise ValueError(f"a plot shows one output, but the model predicts {n_values}: fit a model to one target")
        plane = _plane(rows, names, features)
        points = plane.project(rows)
        low, high = points.min(axis=0), points.max(axis=0)
        low, high = low - margin * (high - low), high + margin * (high - low)
        xx0, xx1 = np.meshgrid(np.linspace(low[0], high[0], resolution), np.linspace(low[1], high[1], resolution))
        lifted = plane.lift(np.column_stack([xx0.ravel(), xx1.ravel()]))
        columns = getattr(X, "columns", None)
        if columns is not None:
            lifted = type(X)(lifted, columns=columns)
        grid = Fitted.of(estimator, lifted)
        anchors, anchor_name = _anchors(estimator, fitted, rows)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            response=grid.predicted().reshape(xx0.shape),
            region=grid.home().reshape(xx0.shape),
            points=points,
            label=fitted.predicted() if y is None else fitted.label(y),
            anchors=None if anchors is None else plane.project(anchors),
            class_names=fitted.classes,
            axis_names=plane.names,
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
        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 5.0), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.cells_, self.boundaries_, self.scatters_, self.colorbar_ = [], [], [], None
        (self._draw_classes if self.class_names else self._draw_values)(ax, show_points)
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

    def _draw_classes(self, ax, show_points):
        """The predicted classes, their boundaries, and the rows by class."""
        from matplotlib.colors import ListedColormap

        n_classes = len(self.class_names)
        colors = class_colors(n_classes)
        self.surface_ = ax.pcolormesh(
            self.xx0, self.xx1, self.response, cmap=ListedColormap(colors), vmin=-0.5, vmax=n_classes - 0.5,
            alpha=0.28, shading="nearest", rasterized=True, linewidth=0,
        )  # fmt: skip
        self.boundaries_ = self._edges(ax, self.response, colors="black", linewidths=1.8)
        for c in range(n_classes if show_points else 0):
            here = self.points[self.label == c]
            self.scatters_.append(
                ax.scatter(
                    here[:, 0], here[:, 1], s=self._size, color=colors[c], marker=MARKERS[c % len(MARKERS)],
                    edgecolor="white", linewidth=0.4, label=self.class_names[c], zorder=3,
                )
            )  # fmt: skip

    def _draw_values(self, ax, show_points):
        """The predicted values and those of the rows, in the same colors."""
        both = np.concatenate([np.ravel(self.response), np.ravel(self.label)])
        scale = {"cmap": "viridis", "vmin": both.min(), "vmax": both.max()}
        self.surface_ = ax.pcolormesh(
            self.xx0, self.xx1, self.response, shading="nearest", rasterized=True, linewidth=0, **scale
        )
        if show_points:
            self.scatters_ = [
                ax.scatter(
                    *self.points.T, s=self._size, c=np.ravel(self.label), edgecolor="white", linewidth=0.4, zorder=3,
                    **scale,
                )
            ]  # fmt: skip
        self.colorbar_ = ax.figure.colorbar(self.surface_, ax=ax, label="value")

    @property
    def _size(self):
        return 22 if len(self.points) <= 1000 else 9

    def _edges(self, ax, places, **style):
        """The lines between the places of a grid, each drawn once: on the side of the lower place."""
        lines = []
        for k in np.unique(places)[:-1]:
            higher = np.where(places < k, np.nan, places == k)
            lines.append(ax.contour(self.xx0, self.xx1, np.ma.masked_invalid(higher), levels=[0.5], **style))
        return lines


def _plane(rows, names, features):
    if features is None:
        return Plane.of(rows, names)
    if len(features) != 2:
        raise ValueError(f"features must be two, got {features!r}")
    places = [names.index(f) if isinstance(f, str) and f in names else f for f in features]
    for f in places:
        if not isinstance(f, (int, np.integer)) or not 0 <= f < rows.shape[1]:
            raise ValueError(f"features must be names or indices of features, got {f!r}")
    directions = np.eye(rows.shape[1])[places]
    mean = rows.mean(axis=0)
    mean[places] = 0.0
    return Plane(mean, directions, (names[places[0]], names[places[1]]))


def _anchors(estimator, fitted, rows):
    """Where the tiles are, in the space of the rows, and what to call that."""
    found, gate = anchors_of(fitted.mosaic), fitted.mosaic.gate
    if found is None:
        return None, ""
    centers, projection = found
    features = fitted.mosaic.features
    if projection is None and features.portable:
        if features.affine is not None:
            center, factor = features.affine
            centers = centers / factor if center is None else centers / factor + center
        if not hasattr(estimator, "steps") or len(estimator.steps) == 1:
            return np.asarray(centers, dtype=np.float64), "anchors"
        try:
            return np.asarray(estimator[:-1].inverse_transform(centers), dtype=np.float64), "anchors"
        except AttributeError:
            pass  # no way back
    home = fitted.home()
    means = [rows[home == k].mean(axis=0) for k in range(gate.n_tiles) if (home == k).any()]
    return np.array(means), "means of the regions' rows"
