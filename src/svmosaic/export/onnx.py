"""Models as ONNX graphs, alone or inside a pipeline converted by skl2onnx. Needs the extra `onnx`.

Gates are computed in double precision, which makes them exact beside the engine's; tiles in the precision of the rows,
all of them by one matrix product. Standard operators only.
"""

import numpy as np

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise ImportError("exporting to ONNX needs the extra packages of `pip install svmosaic[onnx]`") from error

import svmosaic
from svmosaic.export import _onnx_mixtures as mixtures
from svmosaic.export._reasons import NO_TILES
from svmosaic.export._tree import leaves_in_graph
from svmosaic.maps.scaling import Scaling

# ReduceSum with axes as an input came with 13; runtimes from 2021 on know 15.
OPSET = 15


class OnnxExportError(ValueError):
    """A model that cannot be written as ONNX."""


def to_onnx(estimator, *, dtype=np.float32):
    """A fitted estimator as an ONNX model.

    The input is `X`, of shape (n, n_features). Outputs are `label` (int64 or string), with a calibration
    `probabilities` of shape (n, n_classes), and `scores`, of shape (n, 1) for two classes (positive: the second) or
    (n, n_classes).

    Parameters
    ----------
    estimator : fitted classifier of this library, or pipeline that ends in one
        Without a feature map. A pipeline is converted by skl2onnx, and has its two outputs: see `register`.
    dtype : {float32, float64}, default=float32
        Of the rows and of the arithmetic of the tiles.

    Returns
    -------
    onnx.ModelProto
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise OnnxExportError(f"dtype must be float32 or float64, got {dtype}")
    if hasattr(estimator, "steps"):
        return _convert_pipeline(estimator, dtype)
    graph = _Graph(dtype)
    label, probabilities, scores = _write(graph, estimator, "X")
    element = helper.np_dtype_to_tensor_dtype(dtype)
    n_features = estimator.n_features_in_
    label_type = TensorProto.STRING if _labels(estimator).dtype.kind == "O" else TensorProto.INT64
    outputs = [("label", label, label_type, [None])]
    if probabilities is not None:
        outputs.append(("probabilities", probabilities, element, [None, len(estimator.classes_)]))
    outputs.append(("scores", scores, element, [None, _n_outputs(estimator)]))
    for name, value, _, _ in outputs:
        graph.add("Identity", value, out=name)
    proto = helper.make_graph(
        graph.nodes,
        type(estimator).__name__,
        [helper.make_tensor_value_info("X", element, [None, n_features])],
        [helper.make_tensor_value_info(name, kind, shape) for name, _, kind, shape in outputs],
        graph.constants,
    )
    model = helper.make_model(
        proto, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="svmosaic",
        producer_version=svmosaic.__version__, ir_version=8,
    )  # fmt: skip
    onnx.checker.check_model(model)
    return model


def register():
    """Tell skl2onnx of all estimators, so that a pipeline that ends in one converts.

    skl2onnx names two outputs, the label and the probabilities. As for its own linear SVMs, a model without calibration
    gives its scores in their place: (-s, s) for two classes.
    """
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    for name in svmosaic.__all__:
        estimator = getattr(svmosaic, name)
        if isinstance(estimator, type):
            update_registered_converter(
                estimator, f"Svmosaic{name}", calculate_linear_classifier_output_shapes, _convert,
                options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
            )  # fmt: skip


def _convert_pipeline(pipeline, dtype):
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    register()
    kind = DoubleTensorType if dtype == np.float64 else FloatTensorType
    return convert_sklearn(
        pipeline, initial_types=[("X", kind([None, pipeline.n_features_in_]))], target_opset=OPSET,
        options={id(pipeline.steps[-1][1]): {"zipmap": False}},
    )  # fmt: skip


def _convert(scope, operator, container):
    """The converter that skl2onnx calls: our nodes, under names of its own."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = operator.inputs[0].type
    dtype = np.float64 if isinstance(kind, DoubleTensorType) else np.float32
    graph = _Graph(np.dtype(dtype), scope.get_unique_variable_name)
    rows = operator.inputs[0].full_name
    if not isinstance(kind, (FloatTensorType, DoubleTensorType)):
        rows = graph.cast(rows, dtype)
    label, probabilities, scores = _write(graph, operator.raw_operator, rows)
    if probabilities is None:
        two = _n_outputs(operator.raw_operator) == 1
        probabilities = graph.add("Concat", graph.add("Neg", scores), scores, axis=1) if two else scores
    graph.add("Identity", label, out=operator.outputs[0].full_name)
    graph.add("Identity", probabilities, out=operator.outputs[1].full_name)
    for constant in graph.constants:
        text = constant.data_type == TensorProto.STRING
        content = list(constant.string_data) if text else constant
        container.add_initializer(constant.name, constant.data_type, list(constant.dims), content)
    for node in graph.nodes:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        container.add_node(
            node.op_type, list(node.input), list(node.output), op_version=OPSET,
            name=scope.get_unique_operator_name("svmosaic"), **attributes,
        )  # fmt: skip


class _Graph:
    """Nodes and constants as they are written, with names that do not clash."""

    def __init__(self, dtype, unique=None):
        self.dtype, self.nodes, self.constants = dtype, [], []
        self._unique = unique or (lambda stem: f"{stem}_{len(self.nodes)}_{len(self.constants)}")

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

    def relu(self, value):
        return self.add("Relu", value)

    def unsqueeze(self, value, axis):
        return self.add("Unsqueeze", value, self.integers([axis]))


def _n_outputs(estimator):
    return 1 if len(estimator.classes_) == 2 else len(estimator.classes_)


def _write(graph, estimator, rows):
    """The whole model; names of label, probabilities (or None) and scores."""
    model = type(estimator).__name__
    if model in MODELS:
        best, probabilities, scores = MODELS[model](graph, estimator, rows)
        calibration = getattr(estimator, "calibration_", None)
        if calibration is not None:
            two = _n_outputs(estimator) == 1
            probabilities = CALIBRATIONS[type(calibration).__name__](graph, calibration, scores, two)
            best = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
        probabilities = None if probabilities is None else graph.cast(probabilities, graph.dtype)
        scores = graph.cast(scores, graph.dtype)
    elif hasattr(estimator, "mosaic_"):
        best, probabilities, scores = _mosaic(graph, estimator, rows)
    else:
        raise OnnxExportError(f"{model} cannot be written as ONNX: {NO_TILES.get(model, 'it is not made of tiles')}")
    labels = _labels(estimator)
    label = graph.add("Gather", graph.constant(labels, labels.dtype), best, axis=0)
    return label, probabilities, scores


def _mosaic(graph, estimator, rows):
    """The place of the winning class, probabilities (or None) and scores."""
    mosaic = estimator.mosaic_
    if isinstance(mosaic.feature_map, Scaling):
        rows = _scaled(graph, mosaic.feature_map, rows)
    elif mosaic.feature_map is not None:
        raise OnnxExportError(
            f"the feature map {type(mosaic.feature_map.transformer).__name__} cannot be written as ONNX: put it in a "
            "pipeline before the model, and convert that"
        )
    kind = type(mosaic.gate).__name__
    if kind not in GATES:
        raise OnnxExportError(f"the gate {kind} cannot be written as ONNX; known are {', '.join(GATES)}")
    scores = _tiles(graph, mosaic, rows, GATES[kind](graph, mosaic.gate, rows))
    calibration = getattr(estimator, "calibration_", None)
    two = mosaic.coef.shape[1] == 1
    if calibration is not None:
        exact = CALIBRATIONS[type(calibration).__name__](graph, calibration, graph.cast(scores, np.float64), two)
        return graph.add("ArgMax", exact, axis=1, keepdims=0), graph.cast(exact, graph.dtype), scores
    if two:
        positive = graph.add("Greater", scores, graph.constant(0.0, graph.dtype))
        return graph.add("Squeeze", graph.cast(positive, np.int64), graph.integers([1])), None, scores
    return graph.add("ArgMax", scores, axis=1, keepdims=0), None, scores


def _scaled(graph, scaling, rows):
    if scaling.center is not None:
        rows = graph.add("Sub", rows, graph.constant(scaling.center, graph.dtype))
    return graph.add("Mul", rows, graph.constant(scaling.factor, graph.dtype))


def _labels(estimator):
    """Classes as ONNX can hold them: int64, or text."""
    classes = np.asarray(estimator.classes_)
    if classes.dtype.kind in "iub" or (classes.dtype.kind == "f" and (classes == np.floor(classes)).all()):
        return classes.astype(np.int64)
    return np.array([str(label) for label in classes], dtype=object)


def _tiles(graph, mosaic, rows, weight):
    """sum_k weight_k link(<w_k, x> + b_k); no weight for a single tile."""
    n_tiles, n_outputs, n_features = mosaic.coef.shape
    coef = graph.constant(mosaic.coef.reshape(-1, n_features).T, graph.dtype)
    intercept = graph.constant(mosaic.intercept.reshape(1, -1), graph.dtype)
    score = graph.add("Add", graph.add("MatMul", rows, coef), intercept)
    if mosaic.link != "identity":
        one = graph.constant(1.0, graph.dtype)
        against = graph.relu(graph.add("Sub", one, score))
        in_favour = graph.relu(graph.add("Add", one, score))
        votes = [graph.add("Exp", graph.add("Neg", hinge)) for hinge in (against, in_favour)]
        score = graph.add("Sub", *votes)
        if mosaic.link == "posterior":
            score = graph.add("Div", score, graph.add("Add", *votes))
    if weight is None:
        return score
    each = graph.add("Reshape", score, graph.integers([-1, n_tiles, n_outputs]))
    weighed = graph.add("Mul", each, graph.unsqueeze(graph.cast(weight, graph.dtype), 2))
    return graph.add("ReduceSum", weighed, graph.integers([1]), keepdims=0)


# ---- gates: each gives the weights of all tiles as a double tensor of shape (n, n_tiles), or None for a single tile


def _single_cell(graph, gate, rows):
    return None


def _distance(graph, gate, rows):
    centers = np.asarray(gate.centers, dtype=np.float64)
    n_tiles, width = len(centers), gate.width
    # As in the core: rows and centres in their own precision, measured from the mean of the centres.
    mean = centers.mean(axis=0).astype(graph.dtype)
    shifted = (centers.astype(graph.dtype) - mean).astype(np.float64)
    squared_norms = (shifted**2).sum(axis=1)
    z = graph.cast(graph.add("Sub", rows, graph.constant(mean, graph.dtype)), np.float64)
    products = graph.add("MatMul", z, graph.constant(shifted.T))
    closeness = graph.add("Sub", products, graph.constant(0.5 * squared_norms))
    chosen = None
    if width < n_tiles:
        closest, chosen = graph.add("TopK", closeness, graph.integers([width]), n_outputs=2, axis=1)
    else:
        closest = closeness

    def of_chosen(table):
        """The entries of a table with one number a tile."""
        table = graph.constant(table)
        return table if chosen is None else graph.add("Gather", table, chosen, axis=0)

    if gate.coding not in _CODINGS:
        raise OnnxExportError(f"the coding {gate.coding!r} cannot be written as ONNX")
    weight = _CODINGS[gate.coding](graph, gate, z, closest, chosen, of_chosen, shifted)
    weight = graph.add("Div", weight, graph.sum(weight, 1))
    if gate.factor is not None:
        weight = graph.add("Mul", weight, of_chosen(gate.factor))
    if chosen is None:
        return weight
    zeros = graph.add("ConstantOfShape", graph.add("Shape", closeness), value=_zero())
    return graph.add("ScatterElements", zeros, chosen, weight, axis=1)


def _projected(graph, gate, rows):
    projection = np.ascontiguousarray(gate.projection.T, dtype=graph.dtype)
    rows = graph.add("MatMul", rows, graph.constant(projection, graph.dtype))
    return GATES[type(gate.inner).__name__](graph, gate.inner, rows)


def _zero():
    return numpy_helper.from_array(np.zeros(1), "zero")


def _ones_like(graph, value):
    return graph.add("Add", graph.add("Mul", value, graph.constant(0.0)), graph.constant(1.0))


def _squared_distances(graph, z, closest):
    norm = graph.sum(graph.add("Mul", z, z), 1)
    return graph.relu(graph.add("Sub", norm, graph.add("Mul", closest, graph.constant(2.0))))


def _nearest(graph, gate, z, closest, chosen, of_chosen, centers):
    return _ones_like(graph, closest)


def _softmax(graph, gate, z, closest, chosen, of_chosen, centers):
    logits = graph.add("Mul", closest, graph.constant(2.0 * gate.scale))
    if gate.log_prior is not None:
        logits = graph.add("Add", logits, of_chosen(np.maximum(gate.log_prior, -1e300)))
    return graph.add("Softmax", logits, axis=1)


def _inverse(graph, gate, z, closest, chosen, of_chosen, centers):
    squared, zero = _squared_distances(graph, z, closest), graph.constant(0.0)
    nearest = graph.add("ReduceMin", squared, axes=[1], keepdims=1)
    ratio = graph.add("Sqrt", graph.add("Div", nearest, squared))
    on_center = graph.cast(graph.add("LessOrEqual", squared, zero), np.float64)
    return graph.add("Where", graph.add("Greater", nearest, zero), ratio, on_center)


def _reconstruction(graph, gate, z, closest, chosen, of_chosen, centers):
    n_tiles, width = len(centers), gate.width
    squared, zero = _squared_distances(graph, z, closest), graph.constant(0.0)
    # All in units of the mean squared distance: then pivots are of the order of one, however far the row.
    mean = graph.add("ReduceMean", squared, axes=[1], keepdims=1)
    away = graph.add("Greater", mean, zero)
    unit = graph.add("Where", away, mean, graph.constant(1.0))
    ridge = graph.add("Mul", _ones_like(graph, squared), graph.constant(gate.scale))
    if gate.coding == "llc":
        farthest = graph.add("ReduceMax", squared, axes=[1], keepdims=1)
        share = graph.add("Sqrt", graph.add("Div", squared, farthest))
        locality = graph.add("Exp", graph.add("Sub", share, graph.constant(1.0)))
        ridge = graph.add("Mul", ridge, graph.add("Mul", locality, locality))
    ridge = graph.add("Where", away, ridge, graph.constant(1e-12))
    # <z - c_a, z - c_b> = |z|^2 - <z, c_a> - <z, c_b> + <c_a, c_b>
    products = graph.add("Add", closest, of_chosen(0.5 * (centers**2).sum(axis=1)))
    inner = graph.constant((centers @ centers.T)[None] if chosen is None else (centers @ centers.T).ravel())
    if chosen is not None:
        row = graph.add("Mul", graph.unsqueeze(chosen, 2), graph.integers(n_tiles))
        inner = graph.add("Gather", inner, graph.add("Add", row, graph.unsqueeze(chosen, 1)), axis=0)
    norm = graph.unsqueeze(graph.sum(graph.add("Mul", z, z), 1), 2)
    system = graph.add("Sub", norm, graph.unsqueeze(products, 2))
    system = graph.add("Add", graph.add("Sub", system, graph.unsqueeze(products, 1)), inner)
    diagonal = graph.add("Mul", graph.unsqueeze(ridge, 2), graph.constant(np.eye(width)[None]))
    system = graph.add("Add", graph.add("Div", system, graph.unsqueeze(unit, 2)), diagonal)
    # Gauss-Jordan on (system, 1): each step clears a column but for a one in its own row. The matrix is positive
    # definite, so no pivoting.
    system = graph.add("Concat", system, graph.unsqueeze(_ones_like(graph, squared), 2), axis=2)
    for k in range(width):
        place = graph.integers([k])
        line = graph.add("Gather", system, place, axis=1)
        line = graph.add("Div", line, graph.add("Gather", line, place, axis=2))
        column = graph.add("Gather", system, place, axis=2)
        column = graph.add("Sub", column, graph.constant(np.eye(width)[None, :, k : k + 1]))
        system = graph.add("Sub", system, graph.add("Mul", column, line))
    return graph.add("Gather", system, graph.integers(width), axis=2)


_CODINGS = {
    "nearest": _nearest,
    "inverse": _inverse,
    "softmax": _softmax,
    "llc": _reconstruction,
    "lle": _reconstruction,
}

GATES = {
    "SingleCell": _single_cell,
    "DistanceGate": _distance,
    "ProjectedGate": _projected,
    "RBFGate": mixtures.softmax_tree,
    "HierarchicalGate": mixtures.softmax_tree,
    "GaussianGate": mixtures.gaussian,
    "TreeGate": leaves_in_graph,
}
# Models that are no mosaics: each gives the place of the winner, probabilities (or None) and scores as doubles.
MODELS = {"GaussianMixtureClassifier": mixtures.gaussian_mixture, "FusedSVC": mixtures.fused}

# ---- calibrations: double probabilities of shape (n, n_classes) from double scores ------------------------------


def _two_columns(graph, positive):
    return graph.add("Concat", graph.add("Sub", graph.constant(1.0), positive), positive, axis=1)


def _normalised(graph, each, two):
    if two:
        return _two_columns(graph, each)
    total = graph.sum(each, 1)
    n_classes = graph.cast(graph.add("Shape", each, start=1), np.float64)
    equal = graph.add("Div", _ones_like(graph, each), n_classes)
    return graph.add("Where", graph.add("Greater", total, graph.constant(0.0)), graph.add("Div", each, total), equal)


def _temperature(graph, calibration, scores, two):
    if two:
        logit = graph.add("Mul", scores, graph.constant(2.0 * calibration.beta))
        return _two_columns(graph, graph.add("Sigmoid", logit))
    return graph.add("Softmax", graph.add("Mul", scores, graph.constant(calibration.beta)), axis=1)


def _sigmoid(graph, calibration, scores, two):
    scaled = graph.add("Mul", scores, graph.constant(-calibration.slope[None]))
    each = graph.add("Sigmoid", graph.add("Sub", scaled, graph.constant(calibration.offset[None])))
    return _normalised(graph, each, two)


def _isotonic(graph, calibration, scores, two):
    from svmosaic.calibration import TIE_BREAK

    columns = []
    for c, (x, y) in enumerate(zip(calibration.x, calibration.y, strict=True)):
        # A single threshold is a constant: a second one beside it changes nothing.
        x, y = (x, y) if len(x) > 1 else (np.array([x[0], x[0] + 1.0]), np.array([y[0], y[0]]))
        score = graph.add("Gather", scores, graph.integers([c]), axis=1)
        passed = graph.cast(graph.add("GreaterOrEqual", score, graph.constant(x[None, 1:-1])), np.int64)
        step = graph.sum(passed, 1) if len(x) > 2 else graph.add("Mul", graph.cast(score, np.int64), graph.integers(0))
        low, start, width, rise = (
            graph.add("Gather", graph.constant(table), step, axis=0)
            for table in (y[:-1], x[:-1], np.diff(x), np.diff(y))
        )
        share = graph.add("Div", graph.add("Sub", score, start), width)
        share = graph.add("Min", graph.relu(share), graph.constant(1.0))
        columns.append(graph.add("Add", low, graph.add("Mul", share, rise)))
    each = columns[0] if two else graph.add("Concat", *columns, axis=1)
    if not two:
        each = graph.add("Add", each, graph.add("Mul", graph.add("Sigmoid", scores), graph.constant(TIE_BREAK)))
    return _normalised(graph, each, two)


def _posterior(graph, calibration, scores, two):
    half = graph.constant(0.5)
    return _normalised(graph, graph.add("Add", graph.add("Mul", scores, half), half), two)


CALIBRATIONS = {"Temperature": _temperature, "Sigmoid": _sigmoid, "Isotonic": _isotonic, "Posterior": _posterior}
