"""The command line: one module a command, imported when its command is called."""

import argparse
import sys
from importlib import import_module

# Each module has `add_arguments(parser)` and `run(options)`, which returns the exit code (None for success). Only the
# module of the command called is imported: `svmosaic --help` does not wait for scikit-learn.
COMMANDS = {
    "demo": "train on bundled data beside scikit-learn, and print one table",
    "reproduce": "run the tables and figures of the papers, and write them beside the printed numbers",
}


def main(arguments=None):
    """Entry point of the `svmosaic` command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog="svmosaic", description="Mosaics of linear SVMs.")
    subparsers = parser.add_subparsers(dest="command", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    module = None
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == chosen:
            module = import_module(f"svmosaic.cli.{name}")
            module.add_arguments(subparser)
    options = parser.parse_args(arguments)
    return module.run(options)
