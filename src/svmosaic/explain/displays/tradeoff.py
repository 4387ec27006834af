"""Accuracy against cost, and the models that nothing beats in both."""

import numpy as np

from svmosaic.explain.displays._pyplot import pyplot

# Okabe and Ito's blue and vermilion, which readers of all kinds of color vision can tell apart; the shapes differ too.
_OURS = {"color": "#0072B2", "marker": "o"}
_OTHERS = {"color": "#D55E00", "marker": "s"}
_FRONT = "#444444"
# Places of a name around its point: (x, y) in units of the distance, nearest and most readable first.
_AROUND = [(1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (0.8, -0.8), (-0.8, 0.8), (-0.8, -0.8)]
_DISTANCES = (7, 14, 24, 38, 54, 72)  # points
# Another point has to be this many times as far from a name as the point that it names.
_MISTAKEN = 1.5


class TradeoffDisplay:
    """Plot of accuracy against cost.

    Each model is a point with its name; the staircase is the Pareto front, the models for which no other is both better
    and cheaper. The cost axis is logarithmic. Use `from_records` for the results of `svmosaic bench` and
    `from_leaderboard` for a fitted `MosaicClassifier`.

    Parameters
    ----------
    names : list of str
    cost : array-like of shape (n_models,), above 0
    score : array-like of shape (n_models,)
    ours : array-like of bool, optional
        Which points are highlighted (round and blue); the others are square and red.
    cost_name : str, default="cost"
    score_name : str, default="accuracy"
    groups : tuple of str, default=("svmosaic", "others")
        Names of the highlighted and the other models in the legend.

    Attributes
    ----------
    front_ : ndarray of int
        Indices of the models on the front, cheapest first.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    texts_ : list of matplotlib Annotation, the names

    See Also
    --------
    svmosaic.MosaicClassifier : Has a leaderboard to plot.

    Examples
    --------
    >>> from svmosaic.explain.displays import TradeoffDisplay
    >>> display = TradeoffDisplay(["fast", "poor", "good"], [1.0, 20.0, 10.0], [0.90, 0.85, 0.95])
    >>> display.front_.tolist()
    [0, 2]
    """

    def __init__(
        self, names, cost, score, *, ours=None, cost_name="cost", score_name="accuracy", groups=("svmosaic", "others")
    ):
        self.names = [str(name) for name in names]
        self.cost = np.asarray(cost, dtype=float)
        self.score = np.asarray(score, dtype=float)
        self.ours = np.zeros(len(self.names), dtype=bool) if ours is None else np.asarray(ours, dtype=bool)
        self.cost_name = cost_name
        self.score_name = score_name
        self.groups = groups
        if not len(self.names) == len(self.cost) == len(self.score) == len(self.ours):
            raise ValueError(
                f"names, cost, score and ours must be of equal length, got {len(self.names)}, {len(self.cost)}, "
                f"{len(self.score)} and {len(self.ours)}"
            )
        if not (np.isfinite(self.cost) & (self.cost > 0)).all():
            raise ValueError("cost must be finite and above 0: its axis is logarithmic")
        self.front_ = pareto_front(self.cost, self.score)

    @classmethod
    def from_records(
        cls, records, *, cost="batch_microseconds", score="accuracy", cost_name=None, score_name=None, ax=None, **kwargs
    ):
        """Plot the results of `svmosaic bench`.

        Parameters
        ----------
        records : list of dict
            With `model`, `ours` (optional) and the two fields. If a model has a smaller `n_train` than others, it was
            not fitted to all rows, and its label says so.
        cost, score : str
            The fields to plot.
        cost_name, score_name : str, optional
            Labels of the axes; by default the field names.
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.

        Returns
        -------
        TradeoffDisplay
        """
        most = max((record.get("n_train", 0) for record in records), default=0)
        display = cls(
            [_name(record, most) for record in records], [record[cost] for record in records],
            [record[score] for record in records], ours=[record.get("ours", False) for record in records],
            cost_name=cost_name or cost.replace("_", " "), score_name=score_name or score.replace("_", " "),
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_leaderboard(cls, model, *, cost="tiles", ax=None, **kwargs):
        """Plot the models that a search tried in its last round.

        Parameters
        ----------
        model : fitted MosaicClassifier or MosaicRegressor
        cost : {"tiles", "seconds"}, default="tiles"
            Cost axis against the held-out score: tiles, or seconds of the fits.
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.

        Returns
        -------
        TradeoffDisplay
            Models that are part of the chosen model are highlighted.
        """
        if cost not in ("tiles", "seconds"):
            raise ValueError(f"cost must be 'tiles' or 'seconds', got {cost!r}")
        lines = [line for line in getattr(model, "leaderboard_", []) if not line["failure"]]
        if not lines:
            raise ValueError(
                f"this {type(model).__name__} has no leaderboard_: pass a MosaicClassifier or MosaicRegressor "
                "that was fitted to enough rows for a search"
            )
        lines = [line for line in lines if (line["rows"], line["parts"]) == (lines[0]["rows"], lines[0]["parts"])]
        display = cls(
            [line["model"] for line in lines], [line[cost] for line in lines], [line["score"] for line in lines],
            ours=[line["chosen"] for line in lines], cost_name=cost, score_name=f"held-out {model.metric}",
            groups=("in the model", "tried"),
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, *, title=None, fontsize=8.5, legend=True):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        title : str, optional
        fontsize : float, default=8.5
            Font size of the names.
        legend : bool, default=True

        Returns
        -------
        self
        """
        plt = pyplot(type(self).__name__)
        from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, PercentFormatter

        if ax is None:
            _, ax = plt.subplots(figsize=(7.5, 5.2), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_xscale("log")
        # Room for names on both sides, in the scale of each axis.
        low, high = np.log10(self.cost.min()), np.log10(self.cost.max())
        room = 0.12 * max(high - low, 0.5)
        ax.set_xlim(10 ** (low - room), 10 ** (high + 2.2 * room))
        span = max(np.ptp(self.score), 0.01)
        ax.set_ylim(self.score.min() - 0.10 * span, self.score.max() + 0.12 * span)
        if self.score.min() >= 0 and self.score.max() <= 1:
            ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        plain = high < 5 and low > -3
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}") if plain else LogFormatterSciNotation())
        ax.xaxis.set_minor_formatter(FuncFormatter(lambda x, _: ""))
        ax.grid(which="major", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        corners = self._corners()
        ax.plot(*corners.T, color=_FRONT, linewidth=1.2, linestyle="--", zorder=2, label="Pareto front")
        first, second = self.groups
        for chosen, style, label in ((self.ours, _OURS, first), (~self.ours, _OTHERS, second)):
            if chosen.any():
                ax.scatter(
                    self.cost[chosen], self.score[chosen], s=42, edgecolor="white", linewidth=0.8, zorder=3,
                    label=label if self.ours.any() else None, **style,
                )  # fmt: skip
        ax.set(xlabel=self.cost_name, ylabel=self.score_name, title=title)
        ax.spines[["top", "right"]].set_visible(False)
        keys = ax.legend(loc="lower right", fontsize=fontsize, framealpha=0.9) if legend else None
        self.figure_.draw_without_rendering()  # settles the layout, on which all sizes depend
        if keys is not None:
            keys.set_loc(self._emptiest_corner(keys))
            self.figure_.draw_without_rendering()
        self.texts_ = self._name_points(fontsize, keys)
        return self

    def _corners(self):
        """The front as stairs: up to each of its models, then right to the cost of the next, and out of the picture."""
        cost, score = self.cost[self.front_], self.score[self.front_]
        right = np.append(cost[1:], max(self.ax_.get_xlim()[1], cost[-1]))
        return np.column_stack([np.column_stack([cost, right]).ravel(), np.repeat(score, 2)])

    def _emptiest_corner(self, keys):
        """Where the key hides the fewest points and the least of the front."""
        size, inside = keys.get_window_extent(), self.ax_.get_window_extent()
        points = self.ax_.transData.transform(np.column_stack([self.cost, self.score]))
        front = self.ax_.transData.transform(self._corners())
        hidden = {}
        for corner in ("lower right", "lower left", "upper left", "upper right"):
            x = inside.x0 if "left" in corner else inside.x1 - size.width
            y = inside.y0 if "lower" in corner else inside.y1 - size.height
            box = np.array([x - 8, y - 8, x + size.width + 8, y + size.height + 8])
            dots = np.hstack([points - 1, points + 1])
            hidden[corner] = int((_overlaps(box, dots) > 0).sum()) + 0.1 * _crossings(box, front)
        return min(hidden, key=hidden.get)

    def _name_points(self, fontsize, keys):
        """Put each name where it covers no point, name, or key, with a thin line if it is not next to its point."""
        from matplotlib.text import Text

        ax = self.ax_
        points = ax.transData.transform(np.column_stack([self.cost, self.score]))
        unit = self.figure_.dpi / 72
        taken = list(np.hstack([points - 4 * unit, points + 4 * unit]))  # boxes: left, lower, right, upper
        if keys is not None:
            taken.append(keys.get_window_extent().padded(2 * unit).extents)
        front = ax.transData.transform(self._corners())
        texts, lines = [], np.zeros((0, 2))
        # Crowded points first: they have the fewest places to go.
        distance = np.sort(np.hypot(*(points[:, None] - points[None]).T), axis=1)
        for place in np.argsort(distance[:, :4].mean(axis=1), kind="stable"):
            text = ax.annotate(
                self.names[place].removeprefix("svmosaic "), (self.cost[place], self.score[place]), xytext=(0, 0),
                textcoords="offset points", fontsize=fontsize, zorder=4, annotation_clip=False,
                fontweight="bold" if place in self.front_ else "normal",
                color=_OURS["color"] if self.ours[place] else "black",
                arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
            )  # fmt: skip
            size = Text.get_window_extent(text)  # of the words alone, not of the line to the point
            width, height = size.width + unit, size.height + unit
            others = np.delete(points, place, axis=0)
            offset, box, far = self._best_place(
                points[place], others, width, height, np.array(taken), lines, front, unit
            )
            text.set_position(offset)
            text.arrow_patch.set_visible(far)
            taken.append(box)
            if far:
                lines = np.vstack([lines, _line(points[place], box, unit)])
            texts.append(text)
        return texts

    def _best_place(self, point, others, width, height, taken, lines, front, unit):
        """Offset in points of the lower left corner, the box, and whether it is far from its point."""
        inside = self.ax_.get_window_extent().extents
        best = None
        for ring, distance in enumerate(_DISTANCES):
            for dx, dy in _AROUND:
                # The box lies on that side of the point, or has it in the middle of its side.
                x = dx * distance * unit + width * {1: 0.0, 0: -0.5, -1: -1.0}[np.sign(dx)]
                y = dy * distance * unit + height * {1: 0.0, 0: -0.5, -1: -1.0}[np.sign(dy)]
                box = np.array([point[0] + x, point[1] + y, point[0] + x + width, point[1] + y + height])
                bad = 4 * _overlaps(box, taken).sum() + 20 * (width * height - _overlaps(box, inside[None])[0])
                # A name as near to another point could belong to either, unless a line leads to its own.
                own = min(_distances(box, point[None])[0], _DISTANCES[0] * unit)
                between = _distances(box, others) < _MISTAKEN * own
                # Its own line runs through other names, or theirs through it.
                far = ring > 0
                crossed = far and _are_inside(_line(point, box, unit), taken).any()
                crossed = crossed or _are_inside(lines, box[None]).any()
                bad += width * height * (0.5 * _crossings(box, front) + 0.6 * (crossed + between.sum()) + 0.02 * ring)
                if best is None or bad < best[0] - 1e-9:
                    best = bad, (x / unit, y / unit), box, far
            if best[0] <= width * height * 0.02 * (ring + 1):  # nothing in the way: no need to go further
                break
        return best[1:]


def pareto_front(cost, score):
    """Indices of the models for which no other is both better and cheaper, cheapest first.

    Parameters
    ----------
    cost : array-like, the less the better
    score : array-like, the more the better

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> pareto_front([1.0, 2.0, 3.0, 3.0], [0.8, 0.7, 0.9, 0.85]).tolist()
    [0, 2]
    """
    cost, score = np.asarray(cost, dtype=float), np.asarray(score, dtype=float)
    front, best = [], -np.inf
    for place in np.lexsort((-score, cost)):
        if score[place] > best:
            front.append(place)
            best = score[place]
    return np.array(front, dtype=int)


def _name(record, most):
    rows = record.get("n_train", most)
    return record["model"] if rows == most else f"{record['model']} ({rows:,} rows)"


def draw_panels(panels, *, cost, cost_name, score="accuracy", panel_size=(7.5, 5.2)):
    """One picture per set, side by side.

    Parameters
    ----------
    panels : dict of name -> records
    cost, score : str, fields of the records
    cost_name : str
    panel_size : tuple of two floats
        Width and height of each picture in inches: the smaller, the larger its text on a page.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n = len(panels)
    columns = min(2, n)
    rows = -(-n // columns)
    width, height = panel_size
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the user's settings
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[n:]:
        ax.set_axis_off()
    for ax, (name, records) in zip(axes, panels.items(), strict=False):
        TradeoffDisplay.from_records(records, cost=cost, score=score, cost_name=cost_name, ax=ax, title=name)
    return figure


def _overlaps(box, others):
    """Areas that a box shares with others, each as left, lower, right, upper."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return np.prod(np.maximum(sides, 0.0), axis=1)


def _line(point, box, unit):
    """Points a few pixels apart on the line from a point to its name, without the ends."""
    center = (box[:2] + box[2:]) / 2
    along = point + np.arange(5 * unit, np.hypot(*(center - point)), 2 * unit)[:, None] * _direction(center - point)
    return along[~_are_inside(along, box[None])]


def _direction(vector):
    return vector / max(np.hypot(*vector), 1e-9)


def _are_inside(points, boxes):
    """Whether each point lies in one of the boxes."""
    inside = (points[:, None] > boxes[:, :2]) & (points[:, None] < boxes[:, 2:])
    return inside.all(axis=2).any(axis=1)


def _distances(box, points):
    """Distances of points from a box; 0 inside."""
    return np.hypot(*np.maximum(np.maximum(box[:2] - points, points - box[2:]), 0.0).T)


def _crossings(box, corners):
    """Pieces of a line of stairs that run through a box."""
    low = np.minimum(corners[:-1], corners[1:]) - 1
    high = np.maximum(corners[:-1], corners[1:]) + 1
    return int((_overlaps(box, np.hstack([low, high])) > 0).sum())
