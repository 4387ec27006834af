"""One walk over a fitted model for all export targets: preparation, feature map, gate, tiles, link, head.

A target is a small package: a subclass of `Target` with a function for each kind of gate and calibration it can
write. The walk takes the model apart, calls these functions in order and names whatever a target does not know.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svmosaic.export.preparation import Preparation, PreparationError, columns_as_features, read_preparation
from svmosaic.model import registry
from svmosaic.model.heads import head_of


@dataclass(frozen=True, eq=False)
class Whole:
    """A model to be written, with what is in front of its estimator.

    Attributes
    ----------
    estimator : fitted estimator of this library
    preparation : Preparation
        From the columns of a table to the rows that the estimator takes.
    named : bool
        Whether the columns have names of their own, so that rows may be given by name.
    alone : bool
        Whether there is nothing in front of the estimator but what it holds itself.
    """

    estimator: Any
    preparation: Preparation
    named: bool
    alone: bool

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return type(self.estimator).__name__

    @property
    def classes(self) -> np.ndarray | None:
        """Of a classifier; None for a regressor."""
        return getattr(head_of(self.estimator), "classes", None)

    @property
    def one_value(self) -> bool:
        """Whether a regressor answers with one number per row instead of an array."""
        return self.classes is None and np.ndim(head_of(self.estimator).center) == 0

    @property
    def n_outputs(self) -> int:
        """Scores of a row: one for two classes, else one for each; of a regressor one per target."""
        return head_of(self.estimator).n_outputs

    @property
    def output_names(self) -> list[str]:
        """The class that a positive score of each output is for, or the target."""
        return head_of(self.estimator).output_names

    @property
    def n_features(self) -> int:
        """Features that the mosaic takes."""
        return len(self.preparation.source)


class Target(ABC):
    """A language to write models in. Rows, codes, scores and probabilities are objects of the target's own choice.

    Attributes
    ----------
    language : str
        As it is called in messages.
    error : type of ValueError
        What is raised for a model that cannot be written.
    gates : dict
        From the name of a gate's core form (or of its class, if it has none) to a function
        (target, arguments, rows) -> codes. The arguments are those of the core form, or the gate itself.
    calibrations : dict
        From the class of a calibration to a function (target, calibration, scores) -> probabilities.
    forms : dict
        From the class of a form (`svmosaic.export.forms`) of models without tiles to a function
        (target, form, rows) -> scores.
    links : collection of str
        Links that `score` can write.
    heads : collection of str
        Heads that `finish` can write. `score` adds `offset` to the scores if "Regress" is among them.
    refused : dict
        From the class of a model that could be written, but for a reason of this language, to the reason.
    offset : ndarray of shape (n_outputs,)
        What `score` adds to the scores; set by the walk, all zero for a classifier.
    unexplained : str or None
        Why the model has no contributions of its columns; set by `write`.
    """

    language: ClassVar[str]
    error: ClassVar[type[ValueError]]
    gates: ClassVar[dict[str, Callable]]
    calibrations: ClassVar[dict[str, Callable]] = {}
    forms: ClassVar[dict[str, Callable]] = {}
    links: ClassVar[Any] = ("identity",)
    heads: ClassVar[Any] = ("Classify",)
    refused: ClassVar[dict[str, str]] = {}
    unexplained: str | None = None
    offset: np.ndarray = np.zeros(1)
    map_advice: ClassVar[str] = "apply it to the rows, and export a model fitted to them"

    @abstractmethod
    def begin(self, whole: Whole) -> Any:
        """Start to write: declare what goes in, write the preparation, and return the rows."""

    @abstractmethod
    def scale(self, center, factor, rows) -> Any:
        """The rows (x - center) * factor; center may be None for zero."""

    def bend(self, mosaic, rows) -> tuple[Any, Any]:
        """For tiles with curves (`mosaic.features.pieces`): the tiles and the rows that `score` and `explain` take."""
        raise self.error(f"piecewise-linear tiles cannot be written as {self.language}: fit the model without pieces")

    @abstractmethod
    def score(self, mosaic, rows, codes) -> Any:
        """The scores: sum over tiles of weight times link(<w, row> + b)."""

    def interval(self, whole: Whole, rows, write_tiles, margin) -> None:
        """The ends of the intervals of a regressor that has them.

        Parameters
        ----------
        whole : Whole
        rows
            What `begin` returned.
        write_tiles : callable
            ``write_tiles(target, rows)`` writes the tiles of the two quantiles into a target (this one, or one like it)
            and returns their scores, which are in units of y.
        margin : float
            What the ends are moved apart by, as `svmosaic.model.heads.widened` does.
        """
        raise self.error(f"intervals cannot be written as {self.language}: fit the model without quantiles")

    @abstractmethod
    def finish(self, whole: Whole, scores, probabilities) -> Any:
        """Decide for a class (by probabilities, unless they are None) and return all that was written.

        Of a regressor (`whole.classes` is None), scores are the values.
        """

    def explain(self, whole: Whole, mosaic, rows, codes) -> None:
        """What each column contributes to the scores; called only if these are sums over columns."""
        raise self.error(f"explanations cannot be written as {self.language}")

    def gate(self, gate, rows):
        """The codes of a gate, by the function of its core form."""
        if hasattr(gate, "core_arguments"):
            return self.core_form(gate.core_arguments(), rows)
        return self.core_form((type(gate).__name__, gate), rows)

    def core_form(self, arguments, rows):
        """The codes of a core form: its name, then what it is made of; None is that of a single tile."""
        kind, *made_of = ("SingleCell",) if arguments is None else arguments
        return self._find(self.gates, "gate", kind)(self, made_of, rows)

    def _find(self, functions, what, kind):
        if kind not in functions:
            raise self.error(
                f"the {what} {kind} cannot be written as {self.language}; known are {', '.join(functions)}"
            )
        return functions[kind]


def write(model, target: Target, *, explain=False):
    """Write a model in the language of a target.

    Parameters
    ----------
    model : fitted estimator of this library, pipeline that ends in one, or TrainedModel
    target : Target
        A new one for each call.
    explain : bool or None, default=False
        Whether to write contributions of the columns too; None: if that is possible.

    Returns
    -------
    What the target's `finish` returns.
    """
    whole = take_apart(model, target)
    head = head_of(whole.estimator)
    if type(head).__name__ not in target.heads:
        raise target.error(f"the head {type(head).__name__} cannot be written as {target.language}")
    mosaic, form = _form(whole, target)
    target.unexplained = why = _why_not_explained(whole, mosaic)
    if explain and why is not None:
        raise target.error(f"{why}: explain=True cannot be written as {target.language}")
    explain = why is None if explain is None else explain
    rows = target.begin(whole)
    if mosaic is None:
        scores = target.forms[type(form).__name__](target, form, rows)
    else:
        scores, *explained = _write_tiles(target, mosaic, head, rows)
        if explain:
            target.explain(whole, *explained)
    intervals = getattr(whole.estimator, "intervals_", None)
    if intervals is not None:
        quantiles = intervals.model
        target.interval(
            whole, rows, lambda inner, x: _write_tiles(inner, quantiles.mosaic_, head_of(quantiles), x)[0],
            intervals.margin,
        )  # fmt: skip
    calibration = getattr(head, "calibration", None) or getattr(form, "calibration", None)
    probabilities = None
    if calibration is not None:
        kind = type(calibration).__name__
        probabilities = target._find(target.calibrations, "calibration", kind)(target, calibration, scores)
    return target.finish(whole, scores, probabilities)


def _write_tiles(target, mosaic, head, rows):
    """Write a mosaic over prepared rows; its scores, and the tiles, rows and codes that they are made of."""
    target.offset = head.offset
    mosaic = mosaic.in_units(head)
    if mosaic.features.affine is not None:
        center, factor = mosaic.features.affine
        rows = target.scale(center, factor, rows)
    codes = target.gate(mosaic.gate, rows)
    tiles, rows = (mosaic, rows) if mosaic.features.pieces is None else target.bend(mosaic, rows)
    return target.score(tiles, rows, codes), tiles, rows, codes


def take_apart(model, target: Target) -> Whole:
    """The estimator of a model and the preparation in front of it."""
    missing_texts, kinds, names = None, None, None
    if hasattr(model, "pipeline"):  # a TrainedModel
        names, kinds, missing_texts = model.feature_names, list(model.kinds), model.missing_texts
        model = model.pipeline
    if getattr(model, "preparation_", None) is not None:  # fitted to a table
        return Whole(model, model.preparation_.plain(), True, True)
    first = model
    steps = getattr(model, "steps", [("", model)])
    estimator = steps[-1][1]
    n_columns = getattr(first, "n_features_in_", None) if names is None else len(names)
    names = getattr(first, "feature_names_in_", None) if names is None else names
    named = names is not None
    names = [f"x{f}" for f in range(n_columns or 0)] if names is None else [str(name) for name in names]
    if len(steps) == 1 and kinds is None:
        return Whole(estimator, columns_as_features(names), named, True)
    try:
        preparation = columns_as_features(names)
        if len(steps) > 1:
            preparation = read_preparation(model[:-1], names, kinds, missing_texts=missing_texts)
    except PreparationError as error:
        raise target.error(f"this model cannot be written as {target.language}: {error}") from error
    return Whole(estimator, preparation, named, len(steps) == 1)


def _form(whole, target):
    """The mosaic of an estimator, or the form of a model without tiles; an error that states why it has neither."""
    estimator, entry = whole.estimator, registry.find(type(whole.estimator))
    why = target.refused.get(whole.name)
    if why is None and hasattr(estimator, "mosaic_"):
        mosaic = estimator.mosaic_
        if not mosaic.features.portable:
            inside = getattr(mosaic.feature_map, "transformer", mosaic.feature_map)
            raise target.error(
                f"the feature map {type(inside).__name__} cannot be written as {target.language}: {target.map_advice}"
            )
        if mosaic.link not in target.links:
            raise target.error(f"the link {mosaic.link!r} cannot be written as {target.language}")
        return mosaic, None
    if why is None and hasattr(estimator, "_export_form"):
        form = estimator._export_form()
        if type(form).__name__ in target.forms:
            return None, form
    why = why or (entry.no_tiles if entry is not None else "") or "it is not made of tiles"
    raise target.error(f"{whole.name} cannot be written as {target.language}: {why}")


def _why_not_explained(whole, mosaic) -> str | None:
    """Why scores are no sums over columns, or None if they are."""
    if mosaic is None:
        return f"{whole.name} has no tiles, so its scores are not sums of contributions of the columns"
    if mosaic.link != "identity":
        return (
            f"with the link {mosaic.link!r} of this {whole.name} scores are sums of votes of the tiles, not of "
            "contributions of the columns"
        )
    return None
