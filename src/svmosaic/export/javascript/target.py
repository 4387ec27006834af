"""Models as a description in JSON, and the functions of `runtime.js` that compute it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from svmosaic._version import __version__
from svmosaic.export.visitor import Target, Whole
from svmosaic.maps.ramps import Ramps
from svmosaic.model.calibration import TIE_BREAK, TOP_ODDS

# The names that the arguments of core forms have in runtime.js.
FIELDS = {
    "ProjectedGate": ("projection", "inner"),
    "SoftmaxGate": ("plane", "offset", "origin", "logPrior", "parent", "leaf", "inside"),
    "GaussianGate": ("covariance", "means", "factors", "logWeight"),
    "SplitTreeGate": ("splits",),
    "RuleGate": ("feature", "threshold", "left", "roots", "nTiles", "nFeatures"),
    "ScaledGate": ("center", "factor", "inner"),
}


class JavaScriptExportError(ValueError):
    """The model cannot be written as JavaScript.

    See Also
    --------
    svmosaic.export.javascript.to_javascript : Raises it.
    """


def _gate(kind):
    def describe(target, arguments, rows):
        fields = dict(zip(FIELDS.get(kind, ()), arguments, strict=True))
        if "inner" in fields:
            fields["inner"] = target.core_form(fields["inner"], rows)
        return {"kind": kind, **fields}

    return describe


def _distance(target, arguments, rows):
    coding, centers, width, scale, log_prior, factor = arguments
    # As in the core: measured from the mean of the centers.
    mean = centers.mean(axis=0)
    shifted = centers - mean
    return {
        "kind": "DistanceGate",
        "coding": coding,
        "mean": mean,
        "centers": shifted,
        "halfNorms": 0.5 * (shifted**2).sum(axis=1),
        "width": width,
        "scale": scale,
        "logPrior": log_prior,
        "factor": factor,
    }


def _curved(target, arguments, rows):
    center, scale, column, start, knot, _, projection, inner = arguments
    ramps = Ramps.of(projection, center, scale, column, start, knot)
    projected = {"kind": "ProjectedGate", "projection": ramps.coef, "inner": target.core_form(inner, rows)}
    return {"kind": "RampGate", "ramps": _bounded(ramps), "inner": projected}


def _bounded(ramps):
    """Ramps without infinities, which JSON does not have."""
    low, high = (np.clip(bound, -1e300, 1e300) for bound in (ramps.low, ramps.high))
    return {"column": ramps.column, "center": ramps.center, "factor": ramps.factor, "low": low, "high": high}


def _several(target, arguments, rows):
    forms, factors = arguments
    gates = [target.core_form(form, rows) for form in forms]
    first = np.cumsum([0, *(_n_tiles(gate) for gate in gates[:-1])])
    return {"kind": "SeveralGates", "gates": gates, "factors": factors, "first": first}


def _n_tiles(gate) -> int:
    """Tiles of a gate as it is described here."""
    counts = {
        "SingleCell": lambda: 1,
        "DistanceGate": lambda: len(gate["centers"]),
        "ProjectedGate": lambda: _n_tiles(gate["inner"]),
        "RampGate": lambda: _n_tiles(gate["inner"]),
        "SoftmaxGate": lambda: len(gate["leaf"]),
        "GaussianGate": lambda: len(gate["means"]),
        "SplitTreeGate": lambda: len(gate["splits"]) + 1,
        "RuleGate": lambda: gate["nTiles"],
        "ScaledGate": lambda: _n_tiles(gate["inner"]),
        "SeveralGates": lambda: sum(_n_tiles(inner) for inner in gate["gates"]),
    }
    return counts[gate["kind"]]()


def _calibration(kind, *names):
    def describe(target, calibration, scores):
        return {"kind": kind, **{name: getattr(calibration, name) for name in names}}

    return describe


def _odds(target, calibration, scores):
    return {"kind": "Odds", "slope": calibration.slope, "offset": calibration.offset, "bounds": list(TOP_ODDS)}


def _isotonic(target, calibration, scores):
    return {"kind": "Isotonic", "x": calibration.x, "y": calibration.y, "tieBreak": TIE_BREAK}


def _gaussians(target, form, rows):
    target.model["form"] = _described(form)


def _described(form):
    return {
        "kind": "Gaussians",
        "covariance": form.covariance,
        "means": form.means,
        "factors": form.factors,
        "logWeight": form.log_weight,
        "owner": form.owner,
    }


def _fusion(target, form, rows):
    target.model["form"] = {
        "kind": "Fusion",
        "weight": form.weight,
        "logRatio": form.log_ratio,
        "centers": form.centers,
        "gamma": form.gamma,
        "coef": form.coef,
        "intercept": form.intercept,
        "densities": _described(form.densities),
    }


class JavaScriptTarget(Target):
    """The description of one model, `model`, which `runtime.js` reads.

    Parameters
    ----------
    weight_digits : int, optional
        Digits of the tiles' weights; all of them if not given. Thresholds and centers keep theirs.
    """

    language = "JavaScript"
    error = JavaScriptExportError
    gates = {
        "SingleCell": _gate("SingleCell"),
        "DistanceGate": _distance,
        "SeveralGates": _several,
        "CurvedGate": _curved,
        **{kind: _gate(kind) for kind in FIELDS},
    }
    calibrations = {
        "Temperature": _calibration("Temperature", "beta"),
        "Odds": _odds,
        "Sigmoid": _calibration("Sigmoid", "slope", "offset"),
        "Isotonic": _isotonic,
        "Posterior": _calibration("Posterior"),
    }
    forms = {"Gaussians": _gaussians, "Fusion": _fusion}
    links = ("identity", "vote", "posterior")
    heads = ("Classify", "Regress")

    def __init__(self, weight_digits=None):
        self.weight_digits = weight_digits
        self.model = {"scaling": None, "form": None, "interval": None}
        self.ramps: dict | None = None
        self.banks: list[dict] = []

    def begin(self, whole: Whole):
        """Columns and what is made of them."""
        prepared = whole.preparation
        self.model |= {
            "columns": [{"name": n, "kind": k} for n, k in zip(prepared.names, prepared.kinds, strict=True)],
            "source": prepared.source,
            "category": prepared.category,
            "missing": [prepared.missing.get(column) for column in range(prepared.n_columns)],
            "missingTexts": prepared.missing_texts,
            "part": [prepared.part_of(f) for f in range(len(prepared.source))],
            "table": [self._table(prepared.tables.get(f)) for f in range(len(prepared.source))],
            "steps": [{"fill": s.fill, "center": s.center, "factor": s.factor} for s in prepared.steps],
        }

    @staticmethod
    def _table(table):
        """Pairs, since an object could not have all texts as keys."""
        return None if table is None else {"entries": list(table[0].items()), "otherwise": table[1]}

    def scale(self, center, factor, rows):
        """One more description."""
        self.model["scaling"] = {"center": center, "factor": factor}
        return rows

    def bend(self, mosaic, rows):
        """Curves as sums of ramps, in which the tiles are linear; straight tiles apart."""
        bent, flat = mosaic.split_flat()
        ramps = Ramps.of_tiles(bent)
        self.ramps = _bounded(ramps)
        if flat is not None:
            place = np.full(mosaic.n_tiles, -1)
            place[flat.tiles] = np.arange(len(flat.tiles))
            straight = Ramps.of_flat(flat)
            self.banks.append({"ramps": _bounded(straight), "coef": self._shortened(straight.coef), "place": place})
        return replace(bent, coef=ramps.coef, feature_map=None), rows

    def score(self, mosaic, rows, codes):
        """The gate and the tiles."""
        self.model |= {
            "gate": codes,
            # Weights, what they are weights of (null: of the row itself), and the index of each tile's, -1 for tiles
            # that have none here; null if all tiles have some.
            "banks": [
                {
                    "ramps": self.ramps,
                    "coef": self._shortened(mosaic.coef),
                    "place": None if mosaic.sloped is None else mosaic.place_of_tile,
                },
                *self.banks,
            ],
            "intercept": mosaic.intercept,
            "offset": self.offset,
            "link": mosaic.link,
        }

    def _shortened(self, coef):
        if self.weight_digits is None:
            return coef
        return np.array([float(f"{v:.{self.weight_digits}g}") for v in np.ravel(coef)])

    def interval(self, whole: Whole, rows, write_tiles, margin):
        """The quantiles, described as the model is."""
        inner = JavaScriptTarget(self.weight_digits)
        write_tiles(inner, rows)
        self.model["interval"] = {**inner.model, "margin": margin}

    def explain(self, whole: Whole, mosaic, rows, codes):
        """Nothing more: `runtime.js` explains whatever it is given."""

    def finish(self, whole: Whole, scores, probabilities):
        """The text of the module."""
        classes = None
        if whole.classes is not None:
            labels = np.asarray(whole.classes).tolist()
            classes = [c if isinstance(c, (bool, int, float, str)) else str(c) for c in labels]
        self.model |= {
            "classes": classes,
            "oneValue": whole.one_value,
            "outputs": whole.output_names,
            "calibration": probabilities,
            "unexplained": self.unexplained,
        }
        lines = [f"  {json.dumps(key)}: {_json(value, self.error, key)}" for key, value in self.model.items()]
        head = f"// {whole.name} written by svmosaic {__version__}: an ES module without dependencies."
        body = ",\n".join(lines)
        return f"{head}\nconst MODEL = {{\n{body}\n}};\n\n{_RUNTIME.read_text()}"


_RUNTIME = Path(__file__).with_name("runtime.js")


def _json(value, error, name) -> str:
    """A value in as many digits as give the same numbers back; arrays are flat, and null fills in nothing."""
    text = json.dumps(_plain(value, error, name), separators=(",", ":"))
    return text.replace("<", "\\u003c")  # the module may be part of a page, where a tag would end it


def _plain(value, error, name):
    if isinstance(value, dict):
        return {key: _plain(part, error, f"{name}.{key}") for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part, error, name) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f":
            return value.ravel().tolist()
        flat = value.astype(np.float64).ravel()
        if name.endswith(("logPrior", "logWeight")):  # of nothing
            flat = np.maximum(flat, -1e300)
        if np.isinf(flat).any() or (np.isnan(flat).any() and not name.endswith(".fill")):
            raise error(f"{name} has values that are not finite")
        return [None if v != v else v for v in flat.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        raise error(f"{name} has values that are not finite")
    return value
