"""A model as JavaScript: one ES module without dependencies, for browsers and Node."""

import json
import re
from pathlib import Path

import numpy as np

from svmosaic._version import __version__
from svmosaic.atomic import write_text
from svmosaic.export.description import GATE_FIELDS, Target, describe
from svmosaic.export.preparation import CATEGORY, TABLE
from svmosaic.maps.ramps import Ramps

__all__ = ["JAVASCRIPT", "JavaScriptExportError", "to_javascript"]

_RUNTIME = Path(__file__).with_name("runtime.js")
# Whole numbers beyond these are not numbers of JavaScript.
_LARGEST_INTEGER = 2**53 - 1


class JavaScriptExportError(ValueError):
    """The model cannot be written as JavaScript.

    See Also
    --------
    svmosaic.export.javascript.to_javascript : Raises it.
    """


JAVASCRIPT = Target(
    "JavaScript",
    JavaScriptExportError,
    gates=tuple(GATE_FIELDS),
    calibrations=("Temperature", "Odds", "Sigmoid", "Isotonic", "Posterior"),
    forms=("Gaussians", "Fusion"),
    links=("identity", "vote", "posterior"),
    heads=("Classify", "Regress"),
    curves=True,
    intervals=True,
)


def to_javascript(estimator, path=None, *, weight_digits=None):
    """Return a fitted estimator as an ES module.

    The module exports `predict(row)`, `scores(row)`, `predictProba(row)` and `explain(row)`, and the constants
    `columns`, `classes` and `outputs`. A row is an object keyed by the columns, or an array in their order; null is a
    missing value. Everything is computed in double precision. For a regressor, `classes` is null, and `predict` and
    `scores` return values; `predictInterval(row)` returns both ends for a `MosaicRegressor` with `quantiles`. Classes
    that are integers beyond 2^53 are of type BigInt.

    `explain` returns the contributions of the columns, which together with the intercept add up to the scores, and the
    tiles that the row belongs to. If scores are not sums over columns (mixtures that vote, densities), contributions
    are null and a reason is given.

    Parameters
    ----------
    estimator : fitted estimator of this library, pipeline that ends in one, or TrainedModel
        Without a feature map. In pipelines, imputers, scalers and one-hot encoders are supported.
    path : str or path, optional
        If given, the module is also written to this file, usually with the suffix .js or .mjs.
    weight_digits : int, optional
        Number of significant digits of the weights of the tiles, for a smaller file; all digits if not given.

    Returns
    -------
    str
        The text of the module.

    See Also
    --------
    svmosaic.export.onnx.to_onnx : Writes ONNX.
    svmosaic.export.c.to_c : Writes C.
    """
    described = describe(estimator, JAVASCRIPT)
    prepared, form, calibration = described["preparation"], described["form"], described["calibration"]
    model = {
        "columns": [{"name": n, "kind": k} for n, k in zip(prepared.names, prepared.kinds, strict=True)],
        "source": prepared.source,
        "features": [_feature(*feature) for feature in prepared.features],
        "missing": [prepared.missing.get(column) for column in range(len(prepared.names))],
        "missing_texts": prepared.missing_texts,
        "steps": [vars(step) for step in prepared.steps],
        "mosaic": None if form else _mosaic(described["mosaic"], weight_digits),
        "form": form,
        "interval": described["interval"] and _mosaic(described["interval"], weight_digits),
        **{key: described[key] for key in ("one_value", "outputs", "unexplained")},
        "calibration": calibration,
    }
    lines = [f"  {json.dumps(_camel(key))}: {_json(value, key)}" for key, value in model.items()]
    lines.append(f'  "classes": {_classes(described["classes"])}')
    head = f"// {described['name']} written by svmosaic {__version__}: an ES module without dependencies."
    body = ",\n".join(lines)
    text = f"{head}\nconst MODEL = {{\n{body}\n}};\n\n{_RUNTIME.read_text()}"
    if path is not None:
        write_text(path, text)
    return text


def _feature(form, detail):
    """A feature; the entries of a table are pairs, since an object could not have all texts as keys."""
    if form == TABLE:
        return {"form": form, "entries": list(detail[0].items()), "otherwise": detail[1]}
    return {"form": form, "text": detail} if form == CATEGORY else {"form": form}


def _mosaic(mosaic, weight_digits):
    """A mosaic whose curves are sums of ramps, in which tiles are linear."""

    def bank(coef, place, ramps=None):
        if weight_digits is not None:
            coef = np.array([float(f"{v:.{weight_digits}g}") for v in np.ravel(coef)])
        return {"ramps": ramps and _bounded(ramps), "coef": coef, "place": place}

    curves, clipped = mosaic["curves"], mosaic["clipped"]
    ramps = None if curves is None else Ramps.of(mosaic["coef"], **curves)
    # Weights, what they are weights of (null: of the row itself), and the index of each tile's, -1 for tiles that have
    # none here; null if all tiles have some.
    banks = [bank(mosaic["coef"] if ramps is None else ramps.coef, mosaic["place"], ramps)]
    if clipped is not None:
        center, scale, reach = (clipped[key] for key in ("center", "scale", "reach"))
        straight = Ramps(np.arange(len(center)), center, scale, -reach, reach, clipped["coef"])
        banks.append(bank(straight.coef, clipped["place"], straight))
    kept = {key: mosaic[key] for key in ("scaling", "intercept", "offset", "link", "margin") if key in mosaic}
    return {**kept, "gate": _gate(mosaic["gate"]), "banks": banks}


def _bounded(ramps):
    """Ramps without infinities, which JSON does not have."""
    low, high = (np.clip(bound, -1e300, 1e300) for bound in (ramps.low, ramps.high))
    return {"column": ramps.column, "center": ramps.center, "factor": ramps.factor, "low": low, "high": high}


def _gate(gate):
    """A gate with the numbers that `runtime.js` has ready for all rows."""
    if gate["kind"] == "DistanceGate":
        # As in the core: measured from the mean of the centers.
        mean = gate["centers"].mean(axis=0)
        shifted = gate["centers"] - mean
        return {**gate, "mean": mean, "centers": shifted, "half_norms": 0.5 * (shifted**2).sum(axis=1)}
    if gate["kind"] == "SeveralGates":
        return {**gate, "gates": [_gate(inner) for inner in gate["gates"]]}
    if "inner" not in gate:
        return gate
    inner = _gate(gate["inner"])
    if gate["kind"] != "CurvedGate":
        return {**gate, "inner": inner}
    ramps = Ramps.of(gate["projection"], *(gate[key] for key in ("center", "scale", "column", "start", "knot")))
    projected = {"kind": "ProjectedGate", "projection": ramps.coef, "inner": inner}
    return {"kind": "RampGate", "n_tiles": gate["n_tiles"], "ramps": _bounded(ramps), "inner": projected}


def _classes(classes) -> str:
    if classes is None:
        return "null"
    labels = np.asarray(classes).tolist()
    labels = [label if isinstance(label, (bool, int, float, str)) else str(label) for label in labels]
    large = any(type(label) is int and abs(label) > _LARGEST_INTEGER for label in labels)
    return f"[{', '.join(f'{label}n' if large else _json(label, 'classes') for label in labels)}]"


def _json(value, name) -> str:
    """A value in as many digits as give the same numbers back; arrays are flat, and null fills in nothing."""
    text = json.dumps(_plain(value, name), separators=(",", ":"))
    return text.replace("<", "\\u003c")  # the module may be part of a page, where a tag would end it


def _camel(name) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def _plain(value, name):
    if isinstance(value, dict):
        return {_camel(key): _plain(part, f"{name}.{key}") for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part, name) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f":
            return value.ravel().tolist()
        flat = value.astype(np.float64).ravel()
        if name.endswith(("log_prior", "log_weight")):  # of nothing
            flat = np.maximum(flat, -1e300)
        if np.isinf(flat).any() or (np.isnan(flat).any() and not name.endswith(".fill")):
            raise JavaScriptExportError(f"{name} has values that are not finite")
        return [None if v != v else v for v in flat.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        raise JavaScriptExportError(f"{name} has values that are not finite")
    return value
