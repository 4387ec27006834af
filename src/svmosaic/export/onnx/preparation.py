"""The preparation of rows as nodes, and the inputs of the graph."""

import re
from functools import partialmethod

import numpy as np
from onnx import TensorProto, helper

from svmosaic.export.preparation import BLANKS, CATEGORY, GONE, TABLE, part_of_date

# RegexFullMatch came with 20. There is no operator that strips text, but this one can look past the blanks.
TEXT_OPSET = 20
OUTPUTS = ("label", "probabilities", "scores", "contributions", "intercept")
VALUES = ("variable", "low", "high")  # of a regressor


def input_names(names, outputs=OUTPUTS):
    """Names for the inputs, one per column: the column's own, as far as ONNX allows.

    ONNX asks for identifiers, each of them used once: other characters become underscores, and a name that is taken, or
    an output's, gets one more. The name of a column is never given to another one.
    """
    taken, found = {*outputs, *map(str, names)}, []
    for column in map(str, names):
        name = re.sub(r"\W", "_", column, flags=re.ASCII) or "_"
        name = f"_{name}" if name[0].isdigit() else name
        while name in taken and (name != column or name in outputs):
            name += "_"
        taken.add(name)
        found.append(name)
    return found


def write_preparation(graph, preparation, names):
    """Inputs of the graph, and the tensor of the rows that are made of them.

    There is one input, X, if all columns are numbers; otherwise one of shape (n, 1) per column. Dates are doubles:
    days since 1970-01-01.
    """
    element = helper.np_dtype_to_tensor_dtype(graph.dtype)
    if preparation.takes_numbers:
        rows = "X"
        inputs = [helper.make_tensor_value_info("X", element, [None, len(preparation.names)])]
        if not preparation.takes_columns_as_they_are:
            rows = graph.add("Gather", rows, graph.integers(preparation.source), axis=1)
        asked = [form == GONE for form, _ in preparation.features]
        if any(asked):
            rows = graph.add(
                "Where", graph.constant([asked], bool), graph.cast(graph.add("IsNaN", rows), graph.dtype), rows
            )
    else:
        graph.opset = TEXT_OPSET
        types = {"number": element, "text": TensorProto.STRING, "date": TensorProto.DOUBLE}
        inputs = [
            helper.make_tensor_value_info(name, types[kind], [None, 1])
            for name, kind in zip(names, preparation.kinds, strict=True)
        ]
        rows = graph.concat(list(_features(graph, preparation, names)))
    for step in preparation.steps:
        if step.fills:
            rows = graph.add("Where", graph.add("IsNaN", rows), graph.constant(step.fill[None], graph.dtype), rows)
        rows = write_affine(graph, rows, step.center, step.factor)
    return inputs, rows


def write_affine(graph, rows, center, factor):
    """(x - center) * factor; a center of None is zero."""
    if center is not None and (center != 0).any():
        rows = graph.add("Sub", rows, graph.constant(center, graph.dtype))
    if (factor != 1).any():
        rows = graph.add("Mul", rows, graph.constant(factor, graph.dtype))
    return rows


def write_ramps(graph, rows, ramps):
    """min(max((x[column] - center) * factor, low), high)"""
    largest = np.finfo(graph.dtype).max
    rows = graph.add("Gather", rows, graph.integers(ramps.column), axis=1)
    rows = graph.add("Sub", rows, graph.constant(ramps.center, graph.dtype))
    rows = graph.add("Mul", rows, graph.constant(ramps.factor, graph.dtype))
    for kind, bound in (("Max", ramps.low), ("Min", ramps.high)):
        rows = graph.add(kind, rows, graph.constant(np.clip(bound, -largest, largest), graph.dtype))
    return rows


def _features(graph, preparation, names):
    """Columns of shape (n, 1) or wider, in the order of the features."""
    done = -1
    for f, column in enumerate(preparation.source):
        kind, name, form = preparation.kinds[column], names[column], preparation.features[f][0]
        own = (one for one, other in zip(preparation.features, preparation.source, strict=True) if other == column)
        # In a table; or by regular expressions, which can strip text of blanks.
        looked_up = preparation.of_table and preparation.missing_texts is None
        if kind == "text" and (looked_up or any(form == TABLE for form, _ in own)):
            if column != done:  # all features of the column, which are next to each other
                yield _lookup(graph, preparation, column, name)
            done = column
        elif kind == "text":
            yield _category(graph, preparation, f, name)
        elif form == GONE:
            yield graph.cast(graph.add("IsNaN", name), graph.dtype)
        elif kind == "date":
            yield graph.cast(part_of_date(form, _Tensor(graph, name), _Tensor.floor).name, graph.dtype)
        else:
            yield name


def _lookup(graph, preparation, column, name):
    """The line of features of each text."""
    _, texts, lines = preparation.lines_of_text(column)
    keys = {text: k for k, text in enumerate(texts)}
    keys |= dict.fromkeys(["", *(preparation.missing_texts or ())], len(texts))
    if preparation.missing_texts is not None:
        # No operator strips text: each is looked up with a blank before it and behind it, too. Files have no more.
        ends = ["", *BLANKS]
        keys = {f"{before}{text}{behind}": k for text, k in keys.items() for before in ends for behind in ends} | keys
    graph.ml = True
    index = graph.add(
        "LabelEncoder", name, domain="ai.onnx.ml", keys_strings=list(keys), values_int64s=list(keys.values()),
        default_int64=len(texts) + 1,
    )  # fmt: skip
    found = graph.add("Gather", graph.constant(lines, graph.dtype), index, axis=0)
    return graph.add("Reshape", found, graph.integers([-1, lines.shape[1]]))


class _Tensor:
    """A tensor of doubles with the four operations, which are written into the graph."""

    def __init__(self, graph, name):
        self.graph, self.name = graph, name

    def _with(self, kind, other):
        other = other.name if isinstance(other, _Tensor) else self.graph.constant(other)
        return _Tensor(self.graph, self.graph.add(kind, self.name, other))

    __add__, __sub__ = partialmethod(_with, "Add"), partialmethod(_with, "Sub")
    __mul__, __truediv__ = partialmethod(_with, "Mul"), partialmethod(_with, "Div")

    def floor(self):
        return _Tensor(self.graph, self.graph.add("Floor", self.name))


def _category(graph, preparation, f, name):
    """One column of ones and zeros, of shape (n, 1)."""
    form, category = preparation.features[f]
    texts = [category] if form == CATEGORY else []
    if form == GONE or category == preparation.missing.get(int(preparation.source[f])):
        texts += ["", *(preparation.missing_texts or ())]
    pattern = f"(?:{'|'.join(dict.fromkeys(map(_literal, texts)))})"
    blanks = "" if preparation.missing_texts is None else f"[{_literal(BLANKS)}]*"
    return graph.cast(graph.add("RegexFullMatch", name, pattern=blanks + pattern + blanks), graph.dtype)


def _literal(text):
    """A regular expression for this text and no other."""
    return "".join(c if c.isalnum() or not c.isascii() else f"\\x{{{ord(c):x}}}" for c in text)
