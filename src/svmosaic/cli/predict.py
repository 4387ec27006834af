"""`svmosaic predict`: classes or values of the rows of a table, some rows at a time."""

import sys
from argparse import ArgumentTypeError
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from svmosaic.atomic import check_output, written
from svmosaic.cli._io import Bar, add_output_options, add_table_options, is_stdin, read_options, say
from svmosaic.model.heads import in_favor
from svmosaic.table.formats import SUFFIXES, Dialect, TableError, format_of, is_npy, name_of, read_chunks

# Numbers that the explanations of a batch of rows may take at once.
EXPLAINED_AT_ONCE = 4_000_000


def add_arguments(parser):
    """The model, the table, and what to write of it."""
    parser.add_argument("model", metavar="FILE", help="a model written by `svmosaic train`")
    parser.add_argument("data", help="the table to predict; - for standard input")
    parser.add_argument(
        "-o", "--output", default="-", metavar="OUT", help="output file: .csv, .tsv or .parquet; - (default) for stdout"
    )
    parser.add_argument("--proba", action="store_true", help="add a probability column for each class")
    add_threshold(parser)
    parser.add_argument(
        "--explain", action="store_true", help="add the tiles used and the features that contribute most"
    )
    parser.add_argument(
        "--top", type=int, default=3, help="number of tiles and features that --explain shows (default: 3)"
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="copy a column to the output (repeatable)"
    )
    parser.add_argument("--keep-all", action="store_true", help="copy all columns to the output")
    parser.add_argument(
        "--chunk", type=int, default=50_000, metavar="ROWS", help="rows in memory at a time (default: 50000)"
    )
    add_table_options(parser)
    add_output_options(parser)


def run(options):
    """Read, classify and write, chunk by chunk."""
    if options.chunk < 1:
        raise ValueError(f"--chunk must be at least 1, got {options.chunk}")
    if options.json and is_stdin(options.output):
        raise ValueError("--json and the predictions cannot both go to stdout: name a file with -o")
    if not is_stdin(options.output):
        check_output(options.output, [options.model, options.data])
    from svmosaic.table.trained_model import open_model

    model = open_model(options.model)
    if options.proba:
        model.check_calibrated()
    check_threshold(model, options.threshold)
    n_rows, counts = 0, np.zeros(0 if model.classes is None else len(model.classes), dtype=int)
    total, low, high = 0.0, np.inf, -np.inf
    quiet = options.quiet or is_stdin(options.output)
    with Bar(quiet) as bar, bar.step("predicting") as update, _writer(options.output) as write:
        for table in chunks_of(model, options.data, options, options.chunk, update):
            result = predictions(model, table, options, name_of(options.data), n_rows)
            found = result["prediction"].to_numpy()
            n_rows += len(found)
            if model.task == "regression":
                total += float(found.sum())
                low, high = min(low, float(found.min())), max(high, float(found.max()))
            else:
                counts += np.bincount(np.searchsorted(model.classes, found), minlength=len(counts))
            write(result)
    if is_stdin(options.output):
        return
    if model.task == "regression":
        facts = {"mean": total / n_rows, "lowest": low, "highest": high}
        text = ", ".join(f"{name} {value:.5g}" for name, value in facts.items())
    else:
        facts = {"counts": dict(zip(map(str, model.classes), counts, strict=True))}
        text = ", ".join(f"{name}: {count}" for name, count in facts["counts"].items() if count)
    facts = {"file": options.output, "rows": n_rows, **facts}
    say(options, facts, [f"{n_rows} predictions written to {options.output} ({text})"])


def add_threshold(parser):
    """The option that moves the border between two classes."""
    parser.add_argument(
        "--threshold", type=_probability, metavar="P",
        help="for two classes: predict the second (in sorted order) if its probability is at least P (default: 0.5)",
    )  # fmt: skip


def _probability(text):
    value = float(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"{text!r} is not a probability between 0 and 1")
    return value


def check_threshold(model, threshold):
    """Refuse a threshold for a model that it means nothing to."""
    if threshold is None:
        return
    if model.classes is None:
        raise ValueError("--threshold is for two classes, and the model predicts values")
    if len(model.classes) != 2:
        raise ValueError(f"--threshold is for two classes, and the model has {len(model.classes)}")
    model.check_calibrated()


def predicted_by(threshold, classes, answers, probabilities):
    """The answers of a model, or, with a threshold, the second class wherever its probability reaches it."""
    return answers if threshold is None else classes[(probabilities[:, 1] >= threshold).astype(int)]


def chunks_of(model, path, options, rows=50_000, update=None, label=None):
    """A table read as the model needs it, at most so many rows at a time."""
    extra = {}
    if is_npy(label):
        extra = {"label": label}
    elif model.sparse and format_of(path, options.format) == "libsvm":
        extra = {"n_features": len(model.feature_names), "zero_based": str(model.feature_names[0]) == "0"}
    kept = [label] if label is not None and model.text_labels else model.text_labels
    how = read_options(options, Dialect(**model.facts["dialect"]))
    text = [str(name) for name, kind in zip(model.feature_names, model.kinds, strict=True) if kind == "text"]
    return read_chunks(path, rows, text=text, kept=kept, progress=update, **extra, **how)


def predictions(model, table, options, name, first_row=0):
    """A frame with a line for each row."""
    import pandas as pd

    rows = model.rows(table, name, first_row)
    result = {}
    if options.keep or options.keep_all:
        if not hasattr(table.X, "columns"):
            raise TableError(f"--keep needs a table with named columns, which {name} is not")
        missing = [column for column in options.keep if column not in table.X.columns]
        if missing:
            raise TableError(f"{name} has no column {missing[0]!r} to keep")
        columns = table.feature_names if options.keep_all else options.keep
        # A table that was predicted before: the new prediction counts.
        result = {column: table.X[column].to_numpy() for column in columns if column != "prediction"}
    asked = options.proba or options.threshold is not None
    probabilities = model.pipeline.predict_proba(rows) if asked else None
    answers = None if options.threshold is not None else model.pipeline.predict(rows)
    result["prediction"] = predicted_by(options.threshold, model.classes, answers, probabilities)
    if hasattr(model.estimator, "predict_interval"):
        ends = model.estimator.predict_interval(model.pipeline[:-1].transform(rows))
        result["low"], result["high"] = ends.T
    if options.proba:
        for label, column in zip(model.classes, probabilities.T, strict=True):
            result[f"probability_{label}"] = column
    if options.explain:
        result["tiles"], result["features"] = _because(model, rows, result["prediction"], max(1, options.top))
    return pd.DataFrame(result)


def _because(model, rows, predicted, top):
    """For each row: tiles with their weights, and features with what they add in favor of the prediction."""
    mosaic = getattr(model.estimator, "mosaic_", None)
    if mosaic is None:
        raise ValueError(f"{type(model.estimator).__name__} cannot be explained: it is not a mosaic")
    _, n_outputs, n_features = mosaic.coef.shape
    batch = max(1, EXPLAINED_AT_ONCE // (n_outputs * n_features * min(16, mosaic.n_tiles)))
    tiles, features = [], []
    # A positive score is for the second of two classes, and adds to a value.
    place = np.ones(len(predicted), int) if model.classes is None else np.searchsorted(model.classes, predicted)
    for start in range(0, rows.shape[0], batch):
        some = rows.iloc if hasattr(rows, "iloc") else rows
        account = model.explain_rows(some[start : start + batch])
        names = account.feature_names
        weight = account.weight if account.link == "identity" else np.abs(account.votes).sum(axis=2)
        # With the vote link a score is no sum over features: those of the tile that decided.
        if account.link == "identity":
            parts = account.contributions
        else:
            first = np.argmax(weight, axis=1)
            parts = account.tile_contributions[np.arange(len(first)), first]
        for i in range(len(weight)):
            spoke = [a for a in np.argsort(-weight[i], kind="stable")[:top] if account.weight[i, a] != 0]
            tiles.append(" ".join(f"{account.tile[i, a]}:{account.weight[i, a]:.3g}" for a in spoke))
            mine = in_favor(parts[i], place[start + i])
            strongest = np.argsort(-np.abs(mine), kind="stable")[:top]
            features.append(" ".join(f"{names[f]}:{mine[f]:+.3g}" for f in strongest))
    return tiles, features


@contextmanager
def _writer(path):
    """A function that writes frames, one after the other; the file appears when all are written."""
    format = "csv" if is_stdin(path) else SUFFIXES.get(Path(path).suffix.lower())
    if format not in ("csv", "tsv", "parquet"):
        raise ValueError(f"{path} must end in .csv, .tsv or .parquet")
    writer, is_first = None, True
    with ExitStack() as stack:
        if format == "parquet":
            try:
                import pyarrow as pa
                import pyarrow.parquet
            except ImportError as error:
                raise ImportError("writing Parquet needs pyarrow: pip install pyarrow") from error
            temporary = stack.enter_context(written(path))

            def write(frame):
                nonlocal writer
                schema = None if writer is None else writer.schema
                table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
                if writer is None:
                    writer = stack.enter_context(pyarrow.parquet.ParquetWriter(temporary, table.schema))
                writer.write_table(table)

        else:
            file, separator = sys.stdout, "\t" if format == "tsv" else ","
            if not is_stdin(path):
                temporary = stack.enter_context(written(path))
                file = stack.enter_context(open(temporary, "w", encoding="utf-8", newline=""))

            def write(frame):
                nonlocal is_first
                frame.to_csv(file, index=False, sep=separator, header=is_first, lineterminator="\n")
                is_first = False

        yield write
