"""`svmosaic export`: a model as ONNX, C or JavaScript."""

import json
from pathlib import Path

from svmosaic.atomic import write_bytes
from svmosaic.cli._io import add_output_options, check_file, say


def add_arguments(parser):
    """The model, the format, and where to write."""
    parser.add_argument("model", metavar="FILE", help="a model written by `svmosaic train`")
    parser.add_argument("--format", choices=["onnx", "c", "javascript"], required=True)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="output file: .onnx, .js, or .c (the header is written next to it)",
    )
    parser.add_argument("--name", help="prefix of the C functions (default: the file name)")
    add_output_options(parser)


def run(options):
    """Write the model, its preparation included."""
    check_file(options.output, [options.model])
    if options.format == "c":
        check_file(Path(options.output).with_suffix(".h"), [options.model])
    from svmosaic.table.trained_model import open_model

    model = open_model(options.model)
    if options.format == "onnx":
        from svmosaic.export.onnx import to_onnx

        proto = to_onnx(model)
        write_bytes(options.output, proto.SerializeToString())
        inputs, outputs = ([value.name for value in values] for values in (proto.graph.input, proto.graph.output))
        columns = {prop.key: json.loads(prop.value) for prop in proto.metadata_props}["columns"]
        renamed = {column: name for name, column in columns.items() if isinstance(column, str) and name != column}
        facts = {"files": [options.output], "inputs": inputs, "outputs": outputs, "renamed": renamed}
        taken = f"{len(inputs)} inputs of shape (n, 1), one per column"
        if len(inputs) == 1:
            taken = f"input {inputs[0]}: the {len(model.feature_names)} columns in the order of training"
        lines = [f"written to {options.output}; {taken}; outputs {', '.join(outputs)}"]
        if renamed:
            names = ", ".join(f"{column!r} is {name}" for column, name in renamed.items())
            lines.append(f"inputs that cannot be called as their columns: {names}")
    elif options.format == "c":
        from svmosaic.export.c import to_c

        source, header = to_c(model, options.output, name=options.name)
        facts = {"files": [str(source), str(header)], "name": options.name or source.stem}
        lines = [f"written to {source} and {header.name}: rows as in the table, {len(model.kinds)} floats"]
    else:
        from svmosaic.export.javascript import to_javascript

        to_javascript(model, options.output)
        exports = ["predict", "predictProba", "scores", "explain"]
        if hasattr(model.estimator, "predict_interval"):
            exports.insert(2, "predictInterval")
        columns = [str(name) for name in model.feature_names]
        facts = {"files": [options.output], "exports": exports, "columns": columns}
        row = f"a row, an object keyed by the {len(columns)} columns"
        lines = [f"written to {options.output}: {', '.join(exports)} of {row}"]
    say(options, {"format": options.format} | facts, lines)
