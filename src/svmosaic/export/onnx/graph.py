"""Nodes and constants of a graph, as they are written."""

import numpy as np

try:
    from onnx import helper, numpy_helper
except ImportError as error:
    raise ImportError("exporting to ONNX needs onnx: pip install onnx onnxruntime skl2onnx") from error

# ReduceSum with axes as an input came with 13; runtimes from 2021 on know 15.
OPSET = 15


class Graph:
    """Nodes and constants with names that do not clash, with each other or, for their slash, with inputs and outputs.

    Rows and tiles are of the dtype. In graphs inside those of others, `unique` makes a name that nobody else has.
    `opset` is the version of the operators, raised by whoever needs a later one before the first node is added; `ml` is
    whether there are nodes of the domain ai.onnx.ml.
    """

    def __init__(self, dtype, unique=None):
        self.dtype, self.nodes, self.constants, self.opset, self.ml = dtype, [], [], OPSET, False
        self._unique = unique or (lambda stem: f"{stem}/{len(self.nodes)}_{len(self.constants)}")

    def constant(self, value, dtype=np.float64):
        name = self._unique("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def add(self, kind, *inputs, out=None, n_outputs=1, **attributes):
        names = [out] if out else [self._unique(f"{kind}{k}") for k in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if n_outputs == 1 else names

    def cast(self, value, dtype):
        return self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def integers(self, value):
        return self.constant(value, np.int64)

    def sum(self, value, axis):
        return self.add("ReduceSum", value, self.integers([axis]), keepdims=1)

    def reduce(self, kind, value, axis):
        """ReduceMax, ReduceMean or ReduceMin, whose axes became an input with opset 18."""
        if self.opset < 18:
            return self.add(kind, value, axes=[axis], keepdims=1)
        return self.add(kind, value, self.integers([axis]), keepdims=1)

    def unsqueeze(self, value, axis):
        return self.add("Unsqueeze", value, self.integers([axis]))

    def concat(self, values, axis=1):
        return values[0] if len(values) == 1 else self.add("Concat", *values, axis=axis)

    def ones_like(self, value):
        """Ones of the shape of a double tensor."""
        return self.add("Add", self.add("Mul", value, self.constant(0.0)), self.constant(1.0))
