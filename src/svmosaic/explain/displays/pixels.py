"""Maps of images whose pixels were classified."""

import numpy as np

from svmosaic.explain.displays._pyplot import class_colors, pyplot


def pixel_map(estimator, X, shape):
    """Predict the classes of the pixels of an image.

    Parameters
    ----------
    estimator : fitted classifier
    X : array-like of shape (n_rows * n_columns, n_bands)
        The pixels, row by row.
    shape : (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_columns)

    See Also
    --------
    PixelMapDisplay : Plots the image.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import LinearSVC
    >>> from svmosaic.explain.displays import pixel_map
    >>> X = np.array([[0.0], [1.0], [0.0], [1.0], [1.0], [1.0]])
    >>> pixel_map(LinearSVC(random_state=0).fit(X, X[:, 0] > 0), X, (2, 3)).astype(int)
    array([[0, 1, 0],
           [1, 1, 1]])
    """
    predicted = estimator.predict(X)
    if len(shape) != 2 or len(predicted) != shape[0] * shape[1]:
        raise ValueError(f"X has {len(predicted)} pixels, which do not fill an image of shape {tuple(shape)}")
    return predicted.reshape(shape)


class PixelMapDisplay:
    """A map of predicted classes, next to the true ones if they are known.

    Create it with `PixelMapDisplay.from_estimator` or `PixelMapDisplay.from_predictions`.

    Parameters
    ----------
    predicted : ndarray of shape (n_rows, n_columns)
        Classes.
    truth : ndarray of the same shape, optional
        Classes; anything that is not in `classes` is unlabeled.
    classes : array-like
    class_names : list of str

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes, one per map
    figure_ : matplotlib Figure
    images_ : list of AxesImage
    legend_ : matplotlib Legend

    See Also
    --------
    pixel_map : The predictions as an image.
    RegionDisplay : Regions of two features.

    Examples
    --------
    >>> from svmosaic.explain.displays import PixelMapDisplay
    >>> display = PixelMapDisplay.from_predictions([[0, 1], [1, 1]])  # doctest: +SKIP
    """

    def __init__(self, *, predicted, truth=None, classes, class_names):
        self.predicted = predicted
        self.truth = truth
        self.classes = classes
        self.class_names = class_names

    @classmethod
    def from_estimator(cls, estimator, X, y=None, *, shape, class_names=None, ax=None, **options):
        """Classify all pixels and plot the map.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like of shape (n_rows * n_columns, n_bands)
            The pixels, row by row.
        y : array-like of shape (n_rows * n_columns,), optional
            Their classes; values unknown to the estimator are unlabeled.
        shape : (n_rows, n_columns)
        class_names : list of str, optional
            In the order of `classes_`.
        ax : matplotlib Axes or array of two, optional
        **options
            Passed on to `plot`.

        Returns
        -------
        PixelMapDisplay
        """
        return cls.from_predictions(
            pixel_map(estimator, X, shape), None if y is None else np.reshape(y, shape),
            classes=estimator.classes_, class_names=class_names, ax=ax, **options,
        )  # fmt: skip

    @classmethod
    def from_predictions(cls, predicted, truth=None, *, classes=None, class_names=None, ax=None, **options):
        """Plot maps of given classes.

        Parameters
        ----------
        predicted : array-like of shape (n_rows, n_columns)
        truth : array-like of the same shape, optional
        classes : array-like, optional
            Those in `predicted` if not given.
        class_names : list of str, optional
        ax : matplotlib Axes or array of two, optional
        **options
            Passed on to `plot`.

        Returns
        -------
        PixelMapDisplay
        """
        pyplot(cls.__name__)
        predicted = np.asarray(predicted)
        truth = None if truth is None else np.asarray(truth)
        if predicted.ndim != 2 or (truth is not None and truth.shape != predicted.shape):
            shape = None if truth is None else truth.shape
            raise ValueError(f"predicted and truth must be images of the same shape, got {predicted.shape} and {shape}")
        classes = np.unique(predicted if classes is None else classes)
        names = [str(c) for c in (classes if class_names is None else class_names)]
        if len(names) != len(classes):
            raise ValueError(f"class_names must have {len(classes)} names, got {len(names)}")
        display = cls(predicted=predicted, truth=truth, classes=classes, class_names=names)
        return display.plot(ax=ax, **options)

    def plot(self, ax=None, *, hide_unlabelled=False):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes or array of two, optional
            One for each map; a new figure if not given.
        hide_unlabelled : bool, default=False
            Leave pixels without a true class blank in the map of predictions too.

        Returns
        -------
        self
        """
        plt = pyplot(type(self).__name__)
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        maps = {"predicted": self.predicted} | ({} if self.truth is None else {"truth": self.truth})
        if ax is None:
            high = 0.9 + 4.2 * self.predicted.shape[0] / max(self.predicted.shape)
            _, ax = plt.subplots(
                1, len(maps), figsize=(4.4 * len(maps) + 1.8, max(high, 2.6)), layout="constrained", squeeze=False
            )
        self.ax_ = np.ravel(ax)
        if len(self.ax_) != len(maps):
            raise ValueError(f"ax must hold {len(maps)} axes, one per map, got {len(self.ax_)}")
        self.figure_ = self.ax_[0].figure
        colors = class_colors(len(self.classes))
        known = None if self.truth is None else np.isin(self.truth, self.classes)
        self.images_ = []
        for axis, (name, values) in zip(self.ax_, maps.items(), strict=True):
            places = np.searchsorted(self.classes, values).clip(0, len(self.classes) - 1)
            hidden = ~np.isin(values, self.classes)
            if hide_unlabelled and known is not None:
                hidden |= ~known
            image = axis.imshow(
                np.ma.masked_array(places, hidden), cmap=ListedColormap(colors), vmin=-0.5,
                vmax=len(self.classes) - 0.5, interpolation="nearest",
            )  # fmt: skip
            self.images_.append(image)
            axis.set(xticks=[], yticks=[], title=name)
        if known is not None and known.any():
            right = float(np.mean(self.predicted[known] == self.truth[known]))
            self.ax_[0].set_title(f"predicted, accuracy {100 * right:.1f} %")
        patches = [
            Patch(facecolor=c, edgecolor="#444444", label=n) for c, n in zip(colors, self.class_names, strict=True)
        ]
        if known is not None and not known.all():
            patches.append(Patch(facecolor="white", edgecolor="#444444", label="unlabeled"))
        self.legend_ = self.ax_[-1].legend(
            handles=patches, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0, frameon=False
        )
        return self
