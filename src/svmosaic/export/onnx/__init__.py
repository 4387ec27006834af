"""Models as ONNX graphs, alone, with their preparation, or inside a pipeline converted by skl2onnx.

Needs the extra `onnx`.
"""

import json
import sys

import numpy as np
from sklearn.base import RegressorMixin, is_regressor

from svmosaic._version import __version__
from svmosaic.atomic import write_bytes
from svmosaic.export.description import describe
from svmosaic.export.onnx.graph import OPSET, Graph
from svmosaic.export.onnx.model import ONNX, OnnxExportError, labels_of, write_model
from svmosaic.export.onnx.preparation import OUTPUTS, VALUES, input_names, write_preparation
from svmosaic.export.preparation import PreparationError
from svmosaic.model import registry

__all__ = ["ONNX", "OPSET", "OnnxExportError", "register", "to_onnx"]


def to_onnx(estimator, path=None, *, dtype=np.float32, explain=False):
    """Return a fitted estimator as an ONNX model.

    The input is `X`, of shape (n, n_features). Outputs are `label` (int64 or string), with a calibration
    `probabilities` of shape (n, n_classes), and `scores`, of shape (n, 1) for two classes (positive: the second) or
    (n, n_classes). A regressor has the output `variable`, of shape (n, n_targets), and with intervals (the parameter
    `quantiles` of `MosaicRegressor`) their ends `low` and `high`, each of shape (n, 1).

    For a pipeline, a trained model or a model that was fitted to a table, the graph takes the columns of the table,
    with NaN for missing numbers. If some are text or dates, there is one input of shape (n, 1) per column, named after
    the column as far as ONNX allows; missing text is "", and a date is a double, in days since 1970-01-01. The metadata
    entry `columns` is a JSON object that maps inputs to columns. The outputs of the first two are those of skl2onnx:
    `label` and `probabilities`, which without a calibration are the scores, (-s, s) for two classes.

    Parameters
    ----------
    estimator : fitted estimator of this library, pipeline that ends in one, or TrainedModel
        Without a feature map. Steps of a pipeline other than imputers, scalers and one-hot encoders are converted by
        skl2onnx, without intervals: see `register`.
    path : str or path, optional
        If given, the model is also written to this file.
    dtype : {float32, float64}, default=float32
        Type of the rows and of the arithmetic of the tiles.
    explain : bool, default=False
        Whether to add the outputs `scores`, `contributions`, of shape (n, n_outputs, n_columns), and `intercept`, of
        shape (n, n_outputs): contributions of the columns and the intercept add up to the scores.

    Returns
    -------
    onnx.ModelProto

    See Also
    --------
    register : Registers the estimators with skl2onnx.
    svmosaic.export.c.to_c : Writes C.
    svmosaic.export.javascript.to_javascript : Writes JavaScript.
    """
    import onnx
    from onnx import TensorProto, helper

    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise OnnxExportError(f"dtype must be float32 or float64, got {dtype}")
    graph = Graph(dtype)
    try:
        described = describe(estimator, ONNX)
    except OnnxExportError as error:
        # What we cannot read ourselves, skl2onnx may know.
        if not isinstance(error.__cause__, PreparationError) or explain or not hasattr(estimator, "steps"):
            raise
        proto = _convert_pipeline(estimator, dtype)
    else:
        if explain and described["unexplained"] is not None:
            raise OnnxExportError(f"{described['unexplained']}: explain=True cannot be written as ONNX")
        try:
            preparation, n_outputs = described["preparation"], len(described["outputs"])
            names = input_names(preparation.names, OUTPUTS if described["classes"] is not None else OUTPUTS + VALUES)
            inputs, rows = write_preparation(graph, preparation, names)
            found = write_model(graph, described, rows, explain=explain)
            element = helper.np_dtype_to_tensor_dtype(graph.dtype)
            shapes = {name: [None, n_outputs] for name in ("variable", "scores", "intercept")}
            shapes |= {"label": [None], "low": [None, 1], "high": [None, 1]}
            shapes["contributions"] = [None, n_outputs, len(preparation.names)]
            types = {}
            if described["classes"] is not None:
                shapes["probabilities"] = [None, len(described["classes"])]
                text = labels_of(described["classes"]).dtype.kind == "O"
                types["label"] = TensorProto.STRING if text else TensorProto.INT64
            for name, value in found.items():
                graph.add("Identity", value, out=name)
            outputs = [helper.make_tensor_value_info(name, types.get(name, element), shapes[name]) for name in found]
            content = helper.make_graph(graph.nodes, described["name"], inputs, outputs, graph.constants)
            opsets = [helper.make_opsetid("", graph.opset)] + [helper.make_opsetid("ai.onnx.ml", 2)] * graph.ml
            proto = helper.make_model(
                content, opset_imports=opsets, producer_name="svmosaic",
                producer_version=__version__, ir_version=8 if graph.opset == OPSET else 9,
            )  # fmt: skip
            if described["named"]:
                together = preparation.takes_numbers
                columns = {"X": preparation.names} if together else dict(zip(names, preparation.names, strict=True))
                helper.set_model_props(proto, {"columns": json.dumps(columns)})
            onnx.checker.check_model(proto)
        except UnicodeEncodeError as error:
            raise OnnxExportError(
                f"{error.object!r} holds half of a character, which UTF-8 has no bytes for: rename it"
            ) from None
    if path is not None:
        write_bytes(path, proto.SerializeToString())
    return proto


def register(*models):
    """Register our estimators with skl2onnx, so that it can convert pipelines that end in one.

    skl2onnx has two outputs, the label and the probabilities. As for its own linear SVMs, a model without calibration
    returns its scores instead of probabilities: (-s, s) for two classes.

    Parameters
    ----------
    *models : estimators or pipelines, optional
        Models whose types to register; if none are given, all types that have been imported.

    See Also
    --------
    to_onnx : Converts without skl2onnx where possible.
    """
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
        calculate_linear_regressor_output_shapes,
    )

    found = [type(step) for model in models for _, step in getattr(model, "steps", [("", model)])]
    for entry in registry.entries("model"):
        module, _, name = entry.path.rpartition(".")
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and (kind in found or not models):
            if issubclass(kind, RegressorMixin):
                update_registered_converter(
                    kind, f"Svmosaic{name}", calculate_linear_regressor_output_shapes, _convert
                )  # fmt: skip
            else:
                update_registered_converter(
                    kind, f"Svmosaic{name}", calculate_linear_classifier_output_shapes, _convert,
                    options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
                )  # fmt: skip


def _convert_pipeline(pipeline, dtype):
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    register(pipeline)
    kind = DoubleTensorType if dtype == np.float64 else FloatTensorType
    try:
        return convert_sklearn(
            pipeline, initial_types=[("X", kind([None, pipeline.n_features_in_]))], target_opset=OPSET,
            options={} if is_regressor(pipeline) else {id(pipeline.steps[-1][1]): {"zipmap": False}},
        )  # fmt: skip
    except RuntimeError as error:  # how skl2onnx says no
        raise OnnxExportError(f"skl2onnx cannot convert this model: {' '.join(str(error).split())}") from error


def _convert(scope, operator, container):
    """The converter that skl2onnx calls: our nodes, under names of its own."""
    from onnx import TensorProto, helper
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = operator.inputs[0].type
    dtype = np.float64 if isinstance(kind, DoubleTensorType) else np.float32
    graph = Graph(np.dtype(dtype), scope.get_unique_variable_name)
    rows = operator.inputs[0].full_name
    if not isinstance(kind, (FloatTensorType, DoubleTensorType)):
        rows = graph.cast(rows, dtype)
    found = write_model(graph, describe(operator.raw_operator, ONNX), rows, inside=True)
    for value, output in zip(found.values(), operator.outputs, strict=True):
        graph.add("Identity", value, out=output.full_name)
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
