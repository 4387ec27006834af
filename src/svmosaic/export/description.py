"""One plain description of a fitted model, which all exports are written from.

It is a tree of dicts, lists, arrays, numbers and text. Gates are the arguments of the core's constructors
(`core_arguments`) by name, and tiles are packed as for the core's scorer.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from svmosaic.export.preparation import Preparation, PreparationError, columns_as_features, read_preparation
from svmosaic.model import registry
from svmosaic.model.calibration import TIE_BREAK, TOP_ODDS
from svmosaic.model.heads import head_of

# The arguments of the core's gates, in the order of their constructors.
GATE_FIELDS: dict[str, tuple] = {
    "SingleCell": (),
    "DistanceGate": ("coding", "centers", "width", "scale", "log_prior", "factor"),
    "ProjectedGate": ("projection", "inner"),
    "CurvedGate": ("center", "scale", "column", "start", "knot", "zero_is_zero", "projection", "inner"),
    "SoftmaxGate": ("plane", "offset", "origin", "log_prior", "parent", "leaf", "inside"),
    "GaussianGate": ("covariance", "means", "factors", "log_weight"),
    "RuleGate": ("feature", "threshold", "left", "roots", "n_tiles", "n_features"),
    "ScaledGate": ("center", "factor", "inner"),
    "SeveralGates": ("gates", "factors"),
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A language that models are written in, and what can be written in it; `describe` refuses all else by name.

    Gates are named after the core's, or after the class of a gate outside the core; calibrations after their classes;
    forms are "Gaussians" and "Fusion", models without tiles.
    """

    language: str  # as it is called in messages
    error: type[ValueError]  # raised for a model that cannot be written
    gates: Collection[str]
    calibrations: Collection[str] = ()
    forms: Collection[str] = ()
    links: Collection[str] = ("identity",)
    heads: Collection[str] = ("Classify",)
    curves: bool = False
    intervals: bool = False
    # By the class of a model that could be written but for a reason of this language: the reason.
    refused: Mapping[str, str] = field(default_factory=dict)
    map_advice: str = "apply it to the rows, and export a model fitted to them"  # of feature maps that cannot be


class Whole(NamedTuple):
    """A model taken apart: the estimator, and the `Preparation` from the columns of a table to the rows that it takes.

    The columns may have names of their own, so that rows may be given by name; an estimator is alone if nothing is in
    front of it but what it holds itself.
    """

    estimator: Any
    preparation: Preparation
    named: bool
    alone: bool


def describe(model, target) -> dict[str, Any]:
    """The description of a model; an error of the target names what its language lacks.

    Parameters
    ----------
    model : fitted estimator of this library, pipeline that ends in one, or TrainedModel
    target : Target

    Returns
    -------
    dict
        - name: the class of the estimator; named, alone: see `Whole`.
        - preparation: `Preparation`, from columns to the features of rows.
        - classes: array, or None for values; one_value: whether a value is a number; outputs: names of the scores.
        - mosaic: see `describe_mosaic`, in the units of the outputs; or None.
        - form: a model without tiles, a dict with its "kind"; or None.
        - calibration: a dict with its "kind"; or None.
        - interval: the mosaic of two quantiles, with the "margin" that moves them apart; or None.
        - unexplained: why scores are no sums over columns; or None.
    """
    estimator, preparation, named, alone = take_apart(model, target)
    head, name = head_of(estimator), type(estimator).__name__
    if type(head).__name__ not in target.heads:
        raise target.error(f"the head {type(head).__name__} cannot be written as {target.language}")
    mosaic = form = unexplained = None
    entry = registry.find(type(estimator))
    why = target.refused.get(name)
    if why is None and hasattr(estimator, "mosaic_"):
        mosaic = describe_mosaic(estimator.mosaic_, head, target)
        if mosaic["link"] != "identity":
            unexplained = (
                f"with the link {mosaic['link']!r} of this {name} scores are sums of votes of the tiles, not of "
                "contributions of the columns"
            )
    else:
        form = estimator._export_form() if why is None and hasattr(estimator, "_export_form") else None
        if form is None or form["kind"] not in target.forms:
            why = why or (entry.no_tiles if entry is not None else "") or "it is not made of tiles"
            raise target.error(f"{name} cannot be written as {target.language}: {why}")
        unexplained = f"{name} has no tiles, so its scores are not sums of contributions of the columns"
    interval = getattr(estimator, "intervals_", None)
    if interval is not None:
        if not target.intervals:
            raise target.error(f"intervals cannot be written as {target.language}: fit the model without quantiles")
        quantiles, margin = interval.model, float(interval.margin)
        interval = {**describe_mosaic(quantiles.mosaic_, head_of(quantiles), target), "margin": margin}
    classes = getattr(head, "classes", None)
    return {
        "name": name,
        "named": named,
        "alone": alone,
        "preparation": preparation,
        "classes": classes,
        "one_value": classes is None and np.ndim(head.center) == 0,
        "outputs": head.output_names,
        "mosaic": mosaic,
        "form": form,
        "calibration": _calibration(getattr(head, "calibration", None), form, len(head.output_names), target),
        "interval": interval,
        "unexplained": unexplained,
    }


def describe_mosaic(mosaic, head, target) -> dict[str, Any]:
    """A mosaic in the units of its head.

    Returns
    -------
    dict
        - scaling: None, or a dict of center (or None) and factor, in front of gate and tiles.
        - gate: a dict with its "kind" and "n_tiles", and what it is made of by the names in `GATE_FIELDS`.
        - coef: of shape (n_sloped, n_outputs, n_values); place: the entry of each tile in it, or -1; None if all have
          one. intercept: of shape (n_tiles, n_outputs). offset: added to the scores. link.
        - curves: None, or a dict of center and scale of the columns, and the knots of those with a curve: knots
          start[k] to start[k + 1] are of `column[k]`. The values of a tile are then its slopes in the other columns,
          the values of its curves at their knots, and one more that exports do not need.
        - clipped: None, or the tiles next to those with curves that are linear in
          clip((x - center) * scale, -reach, reach): a dict of these, coef, tiles and place.
    """
    if not mosaic.features.portable:
        inside = getattr(mosaic.feature_map, "transformer", mosaic.feature_map)
        raise target.error(
            f"the feature map {type(inside).__name__} cannot be written as {target.language}: {target.map_advice}"
        )
    if mosaic.link not in target.links:
        raise target.error(f"the link {mosaic.link!r} cannot be written as {target.language}")
    if mosaic.features.pieces is not None and not target.curves:
        raise target.error(
            f"piecewise-linear tiles cannot be written as {target.language}: fit the model without pieces"
        )
    bent, flat = mosaic.in_units(head).split_flat()
    coef, packed = bent.features.pack(bent.coef)
    curves = clipped = scaling = None
    if mosaic.features.affine is not None:
        scaling = dict(zip(("center", "factor"), mosaic.features.affine, strict=True))
    if packed is not None:
        center, scale, _, _, column, start, knot, _ = packed[0]
        curves = {"center": center, "scale": scale, "column": column, "start": start, "knot": knot}
    if flat is not None:
        place = np.full(mosaic.n_tiles, -1)
        place[flat.tiles] = np.arange(len(flat.tiles))
        center, scale, reach = flat.terms
        clipped = {"coef": flat.coef, "place": place, "center": center, "scale": scale, "reach": reach}
    gate = mosaic.gate
    form = gate.core_arguments() if hasattr(gate, "core_arguments") else (type(gate).__name__, gate)
    return {
        "scaling": scaling,
        "gate": describe_gate(form, target),
        "coef": coef,
        "place": None if bent.sloped is None else bent.place_of_tile,
        "intercept": bent.intercept,
        "offset": head.offset,
        "link": mosaic.link,
        "curves": curves,
        "clipped": clipped,
    }


def describe_gate(form, target) -> dict[str, Any]:
    """A gate by the names of its parts, from its core form; a gate outside the core is its "gate"."""
    kind, *parts = ("SingleCell",) if form is None else form
    known(target, "gate", kind, target.gates)
    gate = {"kind": kind, **dict(zip(GATE_FIELDS.get(kind, ("gate",)), parts, strict=True))}
    if kind == "SeveralGates":
        gate["gates"] = [describe_gate(inner, target) for inner in gate["gates"]]
        return {**gate, "n_tiles": sum(inner["n_tiles"] for inner in gate["gates"])}
    if "inner" in gate:
        gate["inner"] = describe_gate(gate["inner"], target)
        return {**gate, "n_tiles": gate["inner"]["n_tiles"]}
    if kind == "RuleGate":
        return gate
    tiles = next((gate[name] for name in ("centers", "means", "leaf") if name in gate), None)
    n_tiles = 1 if tiles is None else len(tiles)
    return {**gate, "n_tiles": gate["gate"].n_tiles if "gate" in gate else n_tiles}


def known(target, what, kind, kinds):
    """Raise the error of a target for a kind of something that it does not know."""
    if kind not in kinds:
        raise target.error(f"the {what} {kind} cannot be written as {target.language}; known are {', '.join(kinds)}")


def _calibration(calibration, form, n_outputs, target):
    if calibration is None:
        if form is None or form["kind"] != "Gaussians":
            return None
        # Bayes' rule: a softmax of the logarithms, which a temperature is.
        return {"kind": "Temperature", "beta": 0.5 if n_outputs == 1 else 1.0}
    kind = type(calibration).__name__
    known(target, "calibration", kind, target.calibrations)
    more = {"Odds": {"bounds": list(TOP_ODDS)}, "Isotonic": {"tie_break": TIE_BREAK}}.get(kind, {})
    return {"kind": kind, **vars(calibration), **more}


def take_apart(model, target) -> Whole:
    """The estimator of a model and the preparation in front of it; of the target, only language and error are asked."""
    missing_texts, kinds, names = None, None, None
    if hasattr(model, "pipeline"):  # a TrainedModel
        names, kinds, missing_texts = model.feature_names, list(model.kinds), model.missing_texts
        model = model.pipeline
    if getattr(model, "preparation_", None) is not None:  # fitted to a table
        return Whole(model, model.preparation_.plain(), True, True)
    steps = getattr(model, "steps", [("", model)])
    names = getattr(model, "feature_names_in_", None) if names is None else names
    named = names is not None
    names = [f"x{f}" for f in range(getattr(model, "n_features_in_", 0))] if names is None else list(map(str, names))
    if len(steps) == 1:
        return Whole(steps[-1][1], columns_as_features(names), named, True)
    try:
        preparation = read_preparation(model[:-1], names, kinds, missing_texts=missing_texts)
    except PreparationError as error:
        raise target.error(f"this model cannot be written as {target.language}: {error}") from error
    return Whole(steps[-1][1], preparation, named, False)
