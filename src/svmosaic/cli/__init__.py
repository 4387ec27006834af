"""The command line."""

import argparse


def main(arguments=None):
    """Entry point of the `svmosaic` command."""
    parser = argparse.ArgumentParser(prog="svmosaic", description="Mosaics of linear SVMs.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="train on bundled data beside scikit-learn, and print one table")
    parser.parse_args(arguments)
    # Imported late: `svmosaic --help` should not wait for scikit-learn.
    from svmosaic.cli.demo import run_demo

    run_demo()
