"""Heads: what the scores of a model mean. `Classify` picks winners, `Regress` takes values back to their own units.

Each rule about outputs stands here once: how many there are, which class a positive score is for, who wins, what shape
answers have, and what is counted in the region of a tile. This module needs numpy alone, so that a predictor can hold a
head too.

Both heads have, with scores of shape (n_rows, n_outputs) throughout:

- `n_outputs`, `output_names`: columns of the scores, and what each stands for
- `shaped(scores)`, `answers(scores)`: what `decision_function` and `predict` return
- `wanted(truth, output)`, `truth(y)`: targets of a loss; given labels or values as indices of classes or numbers
- `offset`, `factor`, `slopes(coef)`, `values(scores)`: units of the outputs, of shape (n_outputs,), and weights and
  scores in them
- `found(scores)`, `region_counts`, `region_columns`, `describe_region`: predictions as `region_counts` takes them, sums
  over the rows of each tile, columns of `regions_`, and a line of these in words
- `attributes`: the fitted attributes of an estimator, which `head_of` takes back
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


def count_outputs(n_classes: int) -> int:
    """One output for two classes, else one per class."""
    return 1 if n_classes == 2 else n_classes


def count_classes(n_outputs: int) -> int:
    """The inverse of `count_outputs`."""
    return 2 if n_outputs == 1 else n_outputs


def positive_class(output: int, n_outputs: int) -> int:
    """The index of the class that a positive score of an output is for."""
    return 1 if n_outputs == 1 else output


def signs_of(label, output, n_outputs):
    """+1 and -1 of rows with these class indices, for one output, as int8."""
    return np.where(label == positive_class(output, n_outputs), 1, -1).astype(np.int8)


def winners(scores):
    """Indices of the classes that win, from scores of shape (..., n_outputs) or (..., n_classes)."""
    return (scores[..., 0] > 0).astype(np.intp) if scores.shape[-1] == 1 else scores.argmax(axis=-1)


def in_favor(parts, k: int):
    """What parts of the scores, of shape (n_outputs, ...), add in favor of class k."""
    if len(parts) > 1:
        return parts[k]
    return parts[0] if k == positive_class(0, 1) else -parts[0]


def contrast(values, axis=-1):
    """One value per output from one per class along an axis: for two classes, the second less the first."""
    if values.shape[axis] != 2:
        return values
    first, second = np.split(values, 2, axis=axis)
    return second - first


def flattened(scores):
    """Scores as `decision_function` returns them: of shape (n_rows,) if there is one output."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def in_columns(scores):
    """The inverse of `flattened`: scores of shape (n_rows, n_outputs)."""
    return scores[:, None] if scores.ndim == 1 else scores


def home_tiles(codes):
    """The tile that the gate gives most weight to, for each row."""
    tile, weight = codes
    if weight is None or tile.shape[1] == 1:
        return tile[:, 0]
    return tile[np.arange(len(tile)), weight.argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class Classify:
    """Classes from scores, and probabilities if there is a calibration.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    calibration : Temperature, Sigmoid, Isotonic, Posterior or None
        Turns scores into probabilities, and then decides who wins.
    """

    classes: np.ndarray
    calibration: Any = None

    @property
    def n_outputs(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def positive(self) -> list[int]:
        """The index of the class that a positive score of each output is for."""
        return [positive_class(c, self.n_outputs) for c in range(self.n_outputs)]

    @property
    def output_names(self) -> list[str]:
        return [str(self.classes[k]) for k in self.positive]

    def output_of(self, k: int) -> int:
        """The output whose score is about class k."""
        return 0 if self.n_outputs == 1 else k

    def wanted(self, truth, output):
        """+1 and -1 of rows with these class indices, for one output, as int8."""
        return signs_of(truth, output, self.n_outputs)

    shaped = staticmethod(flattened)

    def found(self, scores):
        """Indices of the classes that win: those with the largest score or, with a calibration, probability."""
        return winners(scores if self.calibration is None else self.calibration.probabilities(scores))

    def answers(self, scores):
        return self.classes[self.found(scores)]

    @property
    def attributes(self) -> dict:
        return {"classes_": self.classes, "calibration_": self.calibration}

    @property
    def offset(self):
        return np.zeros(self.n_outputs)

    @property
    def factor(self):
        return np.ones(self.n_outputs)

    def slopes(self, coef):
        return coef

    def values(self, scores):
        return scores

    def describe_region(self, line) -> str:
        return f"mostly {line['majority']} (accuracy {line['accuracy']:.1%})"

    def truth(self, y):
        """Indices of the classes of the rows."""
        y = np.asarray(y)
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise ValueError(f"y has classes that the model does not know: {unknown.tolist()!r}")
        return np.searchsorted(self.classes, y)

    def probabilities(self, scores):
        """Probabilities of shape (n_rows, n_classes); needs a calibration."""
        return self.calibration.probabilities(scores)

    def accuracy(self, scores, label, weight) -> float:
        """The weighted share of rows whose class wins."""
        return float(np.average(self.found(scores) == label, weights=weight))

    def region_counts(self, home, n_tiles, target, found) -> dict:
        """Sums over the rows of each tile, which add up: rows of each class, and rows classified correctly.

        Parameters
        ----------
        home : ndarray of int, shape (n_rows,), the tiles of the rows
        n_tiles : int
        target : ndarray of int, class indices of the rows
        found : ndarray of int, class indices that the model answers with

        Returns
        -------
        dict of ndarray: "classes" of shape (n_tiles, n_classes), "correct" of shape (n_tiles,)
        """
        n_classes = len(self.classes)
        counts = np.bincount(home.astype(np.int64) * n_classes + target, minlength=n_tiles * n_classes)
        return {
            "classes": counts.reshape(n_tiles, n_classes),
            "correct": np.bincount(home[found == target], minlength=n_tiles),
        }

    def region_columns(self, counts) -> dict:
        """Rows, the most frequent class, accuracy and the share of each class."""
        n_rows, names = counts["classes"].sum(axis=1), np.array([str(c) for c in self.classes])
        columns = {
            "rows": n_rows,
            "majority": names[counts["classes"].argmax(axis=1)],
            "accuracy": _mean(counts["correct"], n_rows),
        }
        for name, count in zip(names, counts["classes"].T, strict=True):
            columns[f"share of {name}"] = _mean(count, n_rows)
        return columns


@dataclass(frozen=True, eq=False)
class Regress:
    """Values from scores: center + scale * score, target by target.

    Attributes
    ----------
    center, scale : float, or ndarray of shape (n_targets,)
        Tiles are fitted to (y - center) / scale. Numbers: answers have shape (n_rows,). Arrays: (n_rows, n_targets),
        even if there is only one target.
    """

    center: Any
    scale: Any

    @classmethod
    def of(cls, y, weight=None) -> "Regress":
        """The head that standardizes targets y of shape (n_rows,) or (n_rows, n_targets)."""
        y = np.asarray(y, dtype=np.float64)
        # The mean of equal numbers is not always that number: what is constant stays as it is, with a scale of one.
        constant = y.min(axis=0) == y.max(axis=0)
        center = np.where(constant, y[0], np.average(y, axis=0, weights=weight))[()]
        away = np.abs(y - center)
        largest = np.where(constant, 1.0, away.max(axis=0))
        spread = largest * np.sqrt(np.average((away / largest) ** 2, axis=0, weights=weight))
        return cls(center, np.where(constant, 1.0, spread)[()])

    @classmethod
    def plain(cls, y) -> "Regress":
        """The head that leaves targets as they are."""
        shape = np.shape(y)[1:]
        return cls(np.zeros(shape)[()], np.ones(shape)[()])

    @property
    def n_outputs(self) -> int:
        return np.size(self.center)

    @property
    def output_names(self) -> list[str]:
        return ["y"] if np.ndim(self.center) == 0 else [f"y{c}" for c in range(self.n_outputs)]

    def targets(self, y):
        """Scores that answer with these values, of shape (n_rows, n_outputs)."""
        return in_columns((np.asarray(y, dtype=np.float64) - self.center) / self.scale)

    def wanted(self, truth, output):
        """Scores of one output that answer with these values."""
        return self.targets(truth)[:, output]

    def shaped(self, scores):
        return scores[:, 0] if np.ndim(self.center) == 0 else scores

    def answers(self, scores):
        return self.center + self.scale * self.shaped(scores)

    found = answers

    @property
    def attributes(self) -> dict:
        return {"head_": self}

    @property
    def offset(self):
        return np.atleast_1d(self.center)

    @property
    def factor(self):
        return np.atleast_1d(self.scale)

    def slopes(self, coef):
        return coef * self.factor[:, None]

    def values(self, scores):
        return self.offset + self.factor * scores

    def describe_region(self, line) -> str:
        shown = {name: value for name, value in line.items() if name.startswith("mean")}
        return ", ".join(f"{name} {value:.4g}" for name, value in shown.items())

    def truth(self, y):
        """The values as numbers, of the shape that answers have."""
        y = np.asarray(y, dtype=np.float64)
        if y.shape[1:] != np.shape(self.center):
            raise ValueError(f"y must have shape (n_rows, *{np.shape(self.center)}), got {y.shape}")
        return y

    def region_counts(self, home, n_tiles, target, found) -> dict:
        """Sums over the rows of each tile: their number, and sums of y, of its square and of the absolute error.

        Parameters
        ----------
        home : ndarray of int, shape (n_rows,), the tiles of the rows
        n_tiles : int
        target : ndarray, values of shape (n_rows,) or (n_rows, n_targets)
        found : ndarray of the same shape, values that the model answers with

        Returns
        -------
        dict of ndarray: "rows" of shape (n_tiles,); "sum", "squares" and "error" of shape (n_tiles, n_outputs), of
        standardized values, so that squares do not cancel
        """
        z = self.targets(target)
        error = np.abs(z - self.targets(found))

        def sums(values):
            if n_tiles == 1:
                return values.sum(axis=0, keepdims=True)
            return np.stack([np.bincount(home, column, n_tiles) for column in values.T], axis=1)

        return {
            "rows": np.bincount(home, minlength=n_tiles),
            "sum": sums(z),
            "squares": sums(z**2),
            "error": sums(error),
        }

    def region_columns(self, counts) -> dict:
        """Rows, and the mean of y, its standard deviation and the mean absolute error of each target."""
        n_rows = counts["rows"]
        columns = {"rows": n_rows}
        center, scale = np.atleast_1d(self.center), np.atleast_1d(self.scale)
        for c, name in enumerate(self.output_names):
            mean, square, error = (_mean(counts[key][:, c], n_rows) for key in ("sum", "squares", "error"))
            suffix = "" if np.ndim(self.center) == 0 else f" of {name}"
            columns[f"mean{suffix}"] = center[c] + scale[c] * mean
            columns[f"spread{suffix}"] = scale[c] * np.sqrt(np.maximum(square - mean**2, 0.0))
            columns[f"mean absolute error{suffix}"] = scale[c] * error
        return columns


Head = Classify | Regress


def head_of(estimator) -> Any:
    """The head of a fitted estimator: its own `head_`, or that of its classes and its calibration."""
    if hasattr(estimator, "head_"):
        return estimator.head_
    return Classify(estimator.classes_, getattr(estimator, "calibration_", None))


def widened(ends, margin):
    """Ends of intervals, of shape (n_rows, 2), moved apart by a margin; those that would cross meet in the middle."""
    low, high = ends[:, 0] - margin, ends[:, 1] + margin
    middle = 0.5 * (low + high)
    return np.stack([np.minimum(low, middle), np.maximum(high, middle)], axis=1)


def _mean(total, n_rows):
    """Totals divided by numbers of rows; nan if there are none."""
    return np.where(n_rows > 0, total / np.maximum(n_rows, 1), np.nan)
