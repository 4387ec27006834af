"""The preparation of rows as nodes, and the inputs of the graph."""

import re

import numpy as np
from onnx import TensorProto, helper

from svmosaic.export.preparation import BLANKS

# RegexFullMatch came with 20. There is no operator that strips text, but this one can look past the blanks.
TEXT_OPSET = 20
OUTPUTS = ("label", "probabilities", "scores", "contributions", "intercept")


def input_names(names):
    """Names for the inputs, one per column: the column's own, as far as ONNX allows.

    ONNX asks for identifiers, each of them used once: other characters become underscores, and a name that is taken, or
    an output's, gets one more.
    """
    taken, found = set(OUTPUTS), []
    for name in names:
        name = re.sub(r"\W", "_", str(name), flags=re.ASCII) or "_"
        name = f"_{name}" if name[0].isdigit() else name
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(name)
    return found


def write_preparation(graph, preparation):
    """Inputs of the graph, and the rows that are made of them.

    Parameters
    ----------
    graph : Graph
    preparation : Preparation

    Returns
    -------
    inputs : list of ValueInfoProto
        One, X, with all columns if they are numbers; otherwise one of shape (n, 1) per column.
    rows : str
    """
    element = helper.np_dtype_to_tensor_dtype(graph.dtype)
    if not preparation.text_columns:
        rows = "X"
        inputs = [helper.make_tensor_value_info("X", element, [None, preparation.n_columns])]
        if not preparation.takes_columns_as_they_are:
            rows = graph.add("Gather", rows, graph.integers(preparation.source), axis=1)
    else:
        graph.opset = TEXT_OPSET
        types = {"number": element, "text": TensorProto.STRING}
        names = input_names(preparation.names)
        inputs = [
            helper.make_tensor_value_info(name, types[kind], [None, 1])
            for name, kind in zip(names, preparation.kinds, strict=True)
        ]
        rows = graph.concat([_feature(graph, preparation, f, names) for f in range(len(preparation.source))])
    for step in preparation.steps:
        rows = write_affine(graph, rows, step)
    return inputs, rows


def write_affine(graph, rows, step):
    """((x, or fill if it is missing) - center) * factor"""
    if step.fills:
        rows = graph.add("Where", graph.add("IsNaN", rows), graph.constant(step.fill[None], graph.dtype), rows)
    if (step.center != 0).any():
        rows = graph.add("Sub", rows, graph.constant(step.center, graph.dtype))
    if (step.factor != 1).any():
        rows = graph.add("Mul", rows, graph.constant(step.factor, graph.dtype))
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


def _feature(graph, preparation, f, names):
    """One column of numbers, or of ones and zeros, of shape (n, 1)."""
    column, category = int(preparation.source[f]), preparation.category[f]
    if category is None:
        return names[column]
    texts = [category]
    if category == preparation.missing.get(column):
        texts += ["", *(preparation.missing_texts or ())]
    pattern = f"(?:{'|'.join(dict.fromkeys(map(_literal, texts)))})"
    blanks = "" if preparation.missing_texts is None else f"[{_literal(BLANKS)}]*"
    return graph.cast(graph.add("RegexFullMatch", names[column], pattern=blanks + pattern + blanks), graph.dtype)


def _literal(text):
    """A regular expression for this text and no other."""
    return "".join(c if c.isalnum() or not c.isascii() else f"\\x{{{ord(c):x}}}" for c in text)
