"""`svmosaic export`: a model as ONNX or as C."""

import tempfile
from pathlib import Path

from svmosaic.atomic import write_bytes
from svmosaic.cli._io import add_output_options, check_file, say


def add_arguments(parser):
    """The model, the format, and where to write."""
    parser.add_argument("model", metavar="FILE", help="a model written by `svmosaic train`")
    parser.add_argument("--format", choices=["onnx", "c"], required=True)
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help=".onnx, or .c (its header is written beside it)"
    )
    parser.add_argument("--name", help="prefix of the C functions; the name of the file if not given")
    add_output_options(parser)


def run(options):
    """Write the model, its preparation included."""
    check_file(options.output, [options.model])
    if options.format == "c":
        check_file(Path(options.output).with_suffix(".h"), [options.model])
    from svmosaic.tabular.trained_model import open_model

    model = open_model(options.model)
    facts, lines = (_onnx if options.format == "onnx" else _c)(model, options)
    say(options, {"format": options.format} | facts, lines)


def _onnx(model, options):
    from svmosaic.export.onnx import to_onnx

    proto = to_onnx(model)
    write_bytes(options.output, proto.SerializeToString())
    inputs = [value.name for value in proto.graph.input]
    outputs = [value.name for value in proto.graph.output]
    facts = {"files": [options.output], "inputs": inputs, "outputs": outputs}
    taken = (
        f"{len(inputs)} inputs of shape (n, 1), one a column"
        if len(inputs) > 1
        else (f"input {inputs[0]}: the {len(model.feature_names)} columns in the order of training")
    )
    return facts, [f"written to {options.output}; {taken}; outputs {', '.join(outputs)}"]


def _c(model, options):
    from svmosaic.export.c import to_c

    output = Path(options.output)
    with tempfile.TemporaryDirectory() as folder:
        source, header = to_c(model, Path(folder) / output.name, name=options.name)
        # The header first: a source without its header would not compile.
        for file, place in ((header, output.with_suffix(".h")), (source, output)):
            write_bytes(place, file.read_bytes())
    name = options.name or source.stem
    facts = {"files": [str(output), str(output.with_suffix(".h"))], "name": name}
    return facts, [
        f"written to {output} and {output.with_suffix('.h').name}: rows as in the table, {len(model.kinds)} floats"
    ]
