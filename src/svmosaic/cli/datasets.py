"""`svmosaic datasets`: the available data sets and their locations."""

import json
import sys


def add_arguments(parser):
    parser.add_argument("--data", metavar="DIR", help="folder of .npz files (default: $SVMOSAIC_DATA)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--verify", action="store_true", help="check that the files contain the data used in the experiments"
    )
    parser.add_argument(
        "--get", nargs="+", metavar="NAME", default=[], help="download these data sets into the cache first"
    )


def run(options):
    """Print the list of data sets."""
    from svmosaic.datasets import cache_folder, data_folder, load
    from svmosaic.datasets.catalogue import catalogue

    if options.data is not None and data_folder(options.data) is None:
        print(f"svmosaic datasets: the folder {options.data!r} does not exist", file=sys.stderr)
        return 2
    for name in options.get:
        load(name, data=options.data)
    records = catalogue(options.data, verify=options.verify)
    if options.json:
        print(json.dumps(records, indent=1))
        return 0
    folder = data_folder(options.data)
    print(f"folder: {folder or 'none (SVMOSAIC_DATA or --data names one)'}\ncache:  {cache_folder()}\n")
    print(f"{'name':<23}{'rows':>8}{'test':>8}{'features':>9}{'classes':>8}  where")
    for record in records:
        test = record["test_rows"] or "-"
        line = f"{record['name']:<23}{record['rows']:>8}{test:>8}{record['features']:>9}{record['classes']:>8}  "
        print(line + _where(record))
    return 0


def _where(record):
    if record["base"] is not None:
        text = f"{record['base']}: {record['title']}"
    elif record["place"] == "network":
        text = f"downloads from {record['source']}"
    elif record["place"] == "generated":
        text = record["source"]
    else:
        text = f"in the {record['place']}"
    if record["title"].startswith("unreadable"):
        text += f", {record['title']}"
    if record["base"] is None and record.get("same") is not None:
        text += ", as in the experiments" if record["same"] else ", other values or order than in the experiments"
    return text
