"""The tables of a description as C, which `runtime.c` computes with, and the sizes and parts of it that they need."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from svmosaic.export.description import Target
from svmosaic.export.preparation import GONE, VALUE
from svmosaic.gates.trees import rounded_down

RUNTIME = Path(__file__).with_name("runtime.c")


class CExportError(ValueError):
    """The model cannot be written as C.

    See Also
    --------
    svmosaic.export.c.to_c : Raises it.
    """


CODINGS = {
    "nearest": "NEAREST", "softmax": "SOFTMAX", "inverse": "INVERSE", "kernel": "KERNEL", "llc": "LLC", "lle": "LLE",
}  # fmt: skip
PARTS = (VALUE, GONE, "month", "day", "weekday", "hour")  # as in part_of_date of runtime.c; days are the number

C = Target(
    "C",
    CExportError,
    gates=(
        "SingleCell", "DistanceGate", "ProjectedGate", "CurvedGate", "SoftmaxGate", "GaussianGate", "RuleGate",
        "ScaledGate", "SeveralGates",
    ),
    calibrations=("Temperature", "Odds", "Sigmoid", "Isotonic", "Posterior"),
    forms=("Gaussians",),
    links=("identity", "vote", "posterior"),
    heads=("Classify", "Regress"),
    curves=True,
    intervals=True,
    refused={
        "FusedSVC": "its blend of kernels and densities is beyond the range of float; its parts are svm_ and mixture_"
    },
)  # fmt: skip


class Tables:
    """Tables of one model, in the order in which they are written.

    `has` are the parts of `runtime.c` that the model needs, without HAS_; `sizes` are numbers that are macros there.
    """

    def __init__(self, described):
        self.text: list[str] = []
        self.has: set[str] = set()
        self.prepared = prepared = described["preparation"]
        n_classes = 0 if described["classes"] is None else len(described["classes"])
        n_features, n_outputs = len(prepared.source), len(described["outputs"])
        self.sizes = {
            "COLUMNS": len(prepared.names),
            "FEATURES": n_features,
            "OUTPUTS": n_outputs,
            "CLASSES": n_classes,
        }
        self.sizes |= {"WIDEST": n_features, "FEATURES_OF(gate)": "FEATURES"}
        self.prepare()
        if described["mosaic"] is None:
            # Densities of classes, those of a class next to each other.
            form = described["form"]
            order = np.argsort(form["owner"], kind="stable")
            ordered = {key: form[key][order] for key in ("means", "log_weight")}
            factors = form["factors"].reshape(len(order), -1)[order]
            self.need(CLASS_DENSITIES=True)
            self.densities("densities", {**form, **ordered, "factors": factors})
            self.array("start", np.searchsorted(form["owner"][order], np.arange(n_classes + 1)), "int")
        else:
            self.mosaic("mosaic", described["mosaic"])
            self.need(EXPLAIN=described["unexplained"] is None)
        if described["interval"] is not None:
            self.need(INTERVAL=True)
            self.mosaic("interval", described["interval"])
            self.sizes["MARGIN"] = f"({_number(described['interval']['margin'])})"
        if described["calibration"] is not None:
            self.calibration(described["calibration"])
        self.need(CLASSES=n_classes > 0, ONE_VALUE=described["one_value"])
        if n_classes:
            self.words("model_classes", described["classes"], "CLASSES")
        if described["named"] and not prepared.takes_numbers:
            self.need(COLUMN_NAMES=True)
            self.words("model_columns", prepared.names, "COLUMNS")

    def need(self, **parts):
        """Keep parts of `runtime.c`, and raise sizes to numbers."""
        for name, value in parts.items():
            if value is True:
                self.has.add(name)
            elif value is not False:
                self.sizes[name] = max(self.sizes.get(name, 1), value)

    def array(self, name, values, ctype="float", *, missing=False) -> str:
        """A constant table, with enough digits to restore the numbers; NaN only if allowed. Returns its name."""
        with np.errstate(over="ignore"):  # reported below
            flat = np.asarray(values, dtype={"float": np.float32, "double": np.float64, "int": np.int64}[ctype]).ravel()
        if not (np.isfinite(flat) | (missing & np.isnan(flat))).all():
            raise CExportError(f"{name} has values beyond the range of {ctype}")
        # str of a numpy number is the shortest decimal that reads back as it. C has no empty arrays.
        suffix = "F" if ctype == "float" else ""
        texts = [str(v) if ctype == "int" else _number(v, suffix) for v in flat] or ["0"]
        lines = ["  " + ", ".join(texts[i : i + 8]) for i in range(0, len(texts), 8)]
        self.text.append(f"static const {ctype} {name}[{len(texts)}] = {{\n" + ",\n".join(lines) + "\n};\n")
        return name

    def words(self, name, texts, size=None):
        """A table of texts, which other files see if it belongs to the model."""
        size = max(len(texts), 1) if size is None else size
        content = ",\n".join(f"  {c_string(text)}" for text in texts) or "  NULL"
        static = "" if name.startswith("model_") else "static "
        self.text.append(f"{static}const char *const {name}[{size}] = {{\n{content}\n}};\n")
        return name

    def struct(self, kind, name, /, **fields) -> str:
        """A constant structure; fields are C. Returns a pointer to it."""
        content = ",\n".join(f"  .{field} = {value}" for field, value in fields.items())
        self.text.append(f"static const {kind} {name} = {{\n{content}\n}};\n")
        return f"&{name}"

    # ---- the parts of a description ------------------------------------------------------------------------------

    def mosaic(self, name, mosaic):
        """Gate and tiles."""
        fields = {"n_outputs": len(mosaic["offset"])}
        gate, width = self.gate(f"{name}_gate", mosaic["gate"], self.sizes["FEATURES"])
        link = {"identity": "IDENTITY", "vote": "VOTE", "posterior": "BY_POSTERIOR"}[mosaic["link"]]
        self.need(TILES=True, WIDTH=width, VOTE_LINK=link == "VOTE", POSTERIOR_LINK=link == "BY_POSTERIOR")
        scaling, curves, clipped, coef = (mosaic[key] for key in ("scaling", "curves", "clipped", "coef"))
        if scaling is not None:
            self.need(SCALING=True)
            fields |= self.affine(name, "factor", **scaling)
        if curves is not None:
            fields["curves"] = self.curves(f"{name}_curves", **curves)
            coef = coef[..., :-1]  # without the values of a row of zeros
        if clipped is not None:
            self.need(CLIPPED=True, DOT=True)
            fields |= {
                "clipped_coef": self.array(f"{name}_clipped_coef", clipped["coef"]),
                "clipped_center": self.array(f"{name}_clipped_center", clipped["center"]),
                "clipped_factor": self.array(f"{name}_clipped_factor", clipped["scale"]),
                "reach": self.array(f"{name}_reach", np.minimum(clipped["reach"], 3e38)),
                "clipped_place": self.array(f"{name}_clipped_place", clipped["place"], "int"),
            }
        if mosaic["place"] is not None:
            self.need(SOME_WEIGHTS=True)
            fields["place"] = self.array(f"{name}_place", mosaic["place"], "int")
        self.need(DOT=True)
        self.struct(
            "Mosaic", name, gate=gate, link=link, offset=self.array(f"{name}_offset", mosaic["offset"], "double"),
            intercept=self.array(f"{name}_intercept", mosaic["intercept"]), coef=self.array(f"{name}_coef", coef),
            **fields,
        )  # fmt: skip

    def affine(self, name, scale, *, center, factor):
        center = np.zeros_like(factor) if center is None else center
        return {"center": self.array(f"{name}_center", center), scale: self.array(f"{name}_{scale}", factor)}

    def curves(self, name, *, center, scale, column, start, knot) -> str:
        """Knots. A tile's weights are the slopes of the columns without a curve, then the curves at their knots."""
        straight = np.setdiff1d(np.arange(len(center)), column)
        knot = knot.astype(np.float32)
        with np.errstate(divide="ignore"):  # knots that are equal in single precision, or of two curves
            inverse = np.minimum(1.0 / np.maximum(np.diff(knot.astype(np.float64), append=np.inf), 0.0), 3e38)
        self.need(CURVES=True, DOT=True)
        self.need(STRAIGHT=len(straight), CURVES=len(column))
        return self.struct(
            "Curves", name, n_straight=len(straight), n_curves=len(column), n_values=len(straight) + len(knot),
            straight_of=self.array(f"{name}_straight", straight, "int"),
            curve_of=self.array(f"{name}_curve_of", column, "int"), start=self.array(f"{name}_start", start, "int"),
            center=self.array(f"{name}_center", center[straight]),
            factor=self.array(f"{name}_factor", scale[straight]),
            knot=self.array(f"{name}_knot", knot), knot_factor=self.array(f"{name}_knot_factor", inverse),
        )  # fmt: skip

    def gate(self, name, gate, n_features) -> tuple[str, int]:
        """A gate for rows of so many features: a pointer to it, and its width."""
        width, inner = 1, []
        kind, n_tiles = gate["kind"], gate["n_tiles"]
        fields: dict[str, Any]
        if kind == "SingleCell":
            fields = {"kind": "SINGLE"}
        elif kind == "DistanceGate":
            width = gate["width"]
            fields = self.distance(name, gate)
        elif kind == "SoftmaxGate":
            width, offset, log_prior, n_nodes = n_tiles, gate["offset"], gate["log_prior"], len(gate["parent"])
            self.need(SOFTMAX_GATE=True, SETTLED=True, NODES=n_nodes)
            tables = {
                "plane": gate["plane"],
                "node_offset": offset + log_prior if gate["inside"] else offset,
                "origin": gate["origin"],
                "outside": np.ones(n_nodes) if gate["inside"] else np.exp(log_prior),
            }
            fields = {"kind": "SOFTMAX", "n_nodes": n_nodes}
            fields |= {part: self.array(f"{name}_{part}", values, "double") for part, values in tables.items()}
            fields |= {part: self.array(f"{name}_{part}", gate[part], "int") for part in ("parent", "leaf")}
        elif kind == "GaussianGate":
            self.need(GAUSSIAN_GATE=True, SETTLED=True)
            width, fields = n_tiles, {"kind": "GAUSSIAN", "densities": self.densities(f"{name}_densities", gate)}
        elif kind == "RuleGate":
            self.need(RULE_GATE=True)
            width = len(gate["roots"])
            fields = {
                "kind": "RULES",
                "asked": self.array(f"{name}_asked", gate["feature"], "int"),
                "threshold": self.array(f"{name}_threshold", rounded_down(gate["threshold"], np.float32)),
                "left": self.array(f"{name}_left", gate["left"], "int"),
                "root": self.array(f"{name}_root", gate["roots"], "int"),
            }
        elif kind == "SeveralGates":
            self.need(SEVERAL_GATES=True)
            inner = [self.gate(f"{name}_{k}", part, n_features) for k, part in enumerate(gate["gates"])]
            width = sum(width for _, width in inner)
            factors = self.array(f"{name}_factors", gate["factors"], "double")
            fields = {"kind": "SEVERAL", "n_inner": len(inner), "factor": factors}
        elif kind == "ScaledGate":
            self.need(SCALED_GATE=True)
            inner = [self.gate(f"{name}_inner", gate["inner"], n_features)]
            fields = {"kind": "SCALED", **self.affine(name, "unit", center=gate["center"], factor=gate["factor"])}
        else:  # ProjectedGate or CurvedGate
            projection, curved = gate["projection"], kind == "CurvedGate"
            self.need(WIDEST=len(projection), CURVED_GATE=curved, PROJECTED_GATE=not curved, DOT=True)
            if len(projection) != n_features:
                self.sizes["FEATURES_OF(gate)"] = "(gate)->n_features"
            inner = [self.gate(f"{name}_inner", gate["inner"], len(projection))]
            fields = {"kind": "CURVED" if curved else "PROJECTED"}
            if curved:
                parts = ("center", "scale", "column", "start", "knot")
                fields["curves"] = self.curves(f"{name}_curves", **{part: gate[part] for part in parts})
                projection = projection[:, :-1]  # without the values of a row of zeros
            fields["projection"] = self.array(f"{name}_projection", projection)
        if inner:
            width = sum(width for _, width in inner)
            pointers = ", ".join(pointer for pointer, _ in inner)
            self.text.append(f"static const Gate *const {name}_inners[{len(inner)}] = {{{pointers}}};\n")
            fields["inner"] = f"{name}_inners"
        pointer = self.struct("Gate", name, n_tiles=n_tiles, width=width, n_features=n_features, **fields)
        return pointer, width

    def distance(self, name, gate) -> dict:
        centers, coding, width = gate["centers"], CODINGS[gate["coding"]], gate["width"]
        # As in the core: measured from the mean of the centers, in float32 throughout.
        mean = centers.mean(axis=0).astype(np.float32)
        shifted = centers.astype(np.float32) - mean
        fields = {"kind": "DISTANCE", "coding": f"BY_{coding}", "scale": _number(gate["scale"])}
        fields |= {"mean": self.array(f"{name}_mean", mean), "centers": self.array(f"{name}_centers", shifted)}
        part = "REBUILT" if coding in ("LLC", "LLE") else coding
        self.need(DISTANCE_GATE=True, **({} if coding == "NEAREST" else {"CENTERS": True, part: True}))
        if part == "REBUILT":
            self.need(REBUILT=width)
        if width < len(centers):
            self.need(NEAREST=True, DOT=True)
            halves = 0.5 * (shifted.astype(np.float64) ** 2).sum(axis=1)
            fields["half_norms"] = self.array(f"{name}_half_norms", halves)
        if coding == "SOFTMAX":
            log_prior = np.zeros(len(centers)) if gate["log_prior"] is None else np.maximum(gate["log_prior"], -1e300)
            fields["log_prior"] = self.array(f"{name}_log_prior", log_prior, "double")
        if gate["factor"] is not None:
            fields["factor"] = self.array(f"{name}_factor", gate["factor"], "double")
        return fields

    def densities(self, name, gaussians) -> str:
        means, factors, covariance = gaussians["means"], gaussians["factors"], gaussians["covariance"]
        n, d = means.shape
        if covariance == "full":
            # Line q of density j: column q of its factor.
            factors = np.swapaxes(factors.reshape(n, d, d), 1, 2)
        self.need(DENSITIES=True)
        self.need(DENSITIES=n)
        return self.struct(
            "Densities", name, covariance=covariance.upper(), n=n, means=self.array(f"{name}_means", means, "double"),
            factors=self.array(f"{name}_factors", factors, "double"),
            log_weight=self.array(f"{name}_log_weight", np.maximum(gaussians["log_weight"], -1e300), "double"),
        )  # fmt: skip

    def prepare(self):
        """Columns, texts and steps in front of the rows that the estimator takes."""
        prepared = self.prepared
        if not prepared.takes_columns_as_they_are or prepared.steps:
            self.need(PREPARATION=True)
            self.array("column_of", prepared.source, "int")
        numbers = [
            PARTS.index(form) if form in PARTS and prepared.kinds[column] != "text" else 0
            for column, (form, _) in zip(prepared.source, prepared.features, strict=True)
        ]
        if any(numbers):
            self.need(PARTS=True, DATES=max(numbers) > 1)
            self.array("part_of", numbers, "int")
        if "text" in prepared.kinds:
            self.texts(prepared)
        if prepared.steps:
            self.need(STEPS=True)
            lines = []
            for k, step in enumerate(prepared.steps):
                fields = ["NULL"] * 3
                if step.fills:
                    fields[0] = self.array(f"fill_{k}", step.fill, missing=True)
                if step.moves:
                    fields[1:] = self.array(f"center_{k}", step.center), self.array(f"factor_{k}", step.factor)
                lines.append("{" + ", ".join(fields) + "}")
            self.sizes["STEPS"] = len(lines)
            self.text.append(f"static const Step steps[STEPS] = {{{', '.join(lines)}}};\n")

    def texts(self, prepared):
        lines = []
        for column, kind in enumerate(prepared.kinds):
            if kind == "text":
                places, words, known = prepared.lines_of_text(column)
                first = int(places[0]) if len(places) else 0
                names = self.array(f"lines_{column}", known), self.words(f"words_{column}", words)
                lines.append(f"{{{column}, {first}, {len(places)}, {len(words)}, {', '.join(names)}}}")
        missing = [text for text in prepared.missing_texts or () if text]
        self.need(TEXT=True, STRIPPED_TEXT=prepared.missing_texts is not None, MISSING_TEXTS=bool(missing))
        self.sizes |= {"TEXTS": len(lines), "MISSING": len(missing)}
        if missing:
            self.words("missing_texts", missing)
        self.text.append("static const Text texts[TEXTS] = {\n  " + ",\n  ".join(lines) + "\n};\n")

    def calibration(self, calibration):
        kind, fields = calibration["kind"].upper(), {}
        if kind == "TEMPERATURE" and self.sizes["OUTPUTS"] > 1:
            kind = "TEMPERATURE_OF_SEVERAL"
        sigmoids = kind in ("TEMPERATURE", "ODDS", "SIGMOID", "ISOTONIC")
        self.need(CALIBRATION=True, SIGMOIDS=sigmoids, **{kind: True})
        if kind == "ISOTONIC":
            steps = [len(x) for x in calibration["x"]]
            fields["start"] = self.array("step_start", np.cumsum([0, *steps]), "int")
            fields |= {key: self.array(f"step_{key}", np.concatenate(calibration[key]), "double") for key in "xy"}
            self.sizes["TIE_BREAK"] = _number(calibration["tie_break"])
        if kind == "ODDS":
            self.sizes |= zip(("LEAST_TOP_ODDS", "MOST_TOP_ODDS"), map(_number, calibration["bounds"]), strict=True)
        tables = {"slope": calibration.get("slope", calibration.get("beta")), "offset": calibration.get("offset")}
        fields |= {key: self.array(key, values, "double") for key, values in tables.items() if values is not None}
        self.struct("Calibration", "calibration", kind=kind, **fields)


def runtime(has) -> list[str]:
    """The sections of `runtime.c` (sizes, types, tables, functions) without the parts that a model does not have."""
    lines, kept = [], [True]  # whether the lines inside each condition are kept, from the outermost to the innermost
    for line in RUNTIME.read_text().splitlines(keepends=True):
        word, *_ = [*line.split(), ""]
        if word in ("#if", "#ifndef"):
            kept.append(all(name in has for name in re.findall(r"HAS_(\w+)", line)))
        elif word == "#else":
            kept[-1] = not kept[-1]
        elif word == "#endif":
            kept.pop()
        elif all(kept):
            lines.append(line)
    return re.split(r"/\* ---- \w+ ---- \*/\n", re.sub(r"\n{3,}", "\n\n", "".join(lines)))


def c_string(text) -> str:
    """A text as C writes it, in UTF-8."""
    # Everything but plain characters as three octal digits: no escape can run into what follows it.
    plain = set(range(32, 127)) - set(b'"\\?@')
    try:
        content = str(text).encode()
    except UnicodeEncodeError:
        raise CExportError(f"{text!r} holds half of a character, which UTF-8 has no bytes for: rename it") from None
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in content) + '"'


def _number(value, suffix="") -> str:
    """With a point or an exponent, so that C takes it for a floating number."""
    text = str(value) if isinstance(value, np.generic) else repr(float(value))
    if text == "nan":
        return "NAN"
    return (text if re.search(r"[.e]", text) else f"{text}.0") + suffix
