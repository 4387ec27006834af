"""The command line: one module per command, imported when its command is called."""

import argparse
import os
import sys
import warnings
from importlib import import_module

from svmosaic._version import __version__

# Each module has `add_arguments(parser)` and `run(options)`, which returns the exit code (None for success). Only the
# module of the command called is imported: `svmosaic --help` does not wait for scikit-learn.
COMMANDS = {
    "demo": "train on bundled data, compare with scikit-learn's models, and print a table",
    "train": "fit a model to a table, report its quality on held-out rows, and write it to a file",
    "predict": "predict the rows of a table with a model",
    "score": "report the quality of a model on the labeled rows of a table",
    "inspect": "show the regions of a model, or explain one prediction",
    "export": "write a model as ONNX, C or JavaScript",
}
EPILOGUE = "Exit codes: 0 success, 1 bad data or a bad model (one line on stderr), 2 wrong usage, 130 interrupted."


def main(arguments=None):
    """Entry point of the `svmosaic` command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else [str(word) for word in arguments]
    parser = argparse.ArgumentParser(prog="svmosaic", description="Mosaics of linear SVMs.", epilog=EPILOGUE)
    parser.add_argument("--version", action="version", version=f"svmosaic {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    module = None
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == chosen:
            module = import_module(f"svmosaic.cli.{name}")
            module.add_arguments(subparser)
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        # Warnings, such as that of a fit that stopped early, are one line each, without the form of Python's warnings.
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = lambda message, *_: print(f"svmosaic: warning: {_one_line(message)}", file=sys.stderr)
        try:
            return module.run(options) or 0
        except KeyboardInterrupt:
            print("svmosaic: interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:
            # The reader of the output, such as `head`, has closed it: Python is not to fail again when it closes it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (ValueError, OSError, ImportError, MemoryError) as error:  # in one line, without a traceback
            if os.environ.get("SVMOSAIC_TRACEBACK"):
                raise
            print(f"svmosaic: error: {_one_line(error) or type(error).__name__}", file=sys.stderr)
            return 1


def _one_line(message):
    return " ".join(str(message).split())
