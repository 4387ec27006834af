"""What `train` and `tune` share: data read and split, a model judged beside a linear SVM, fitted to all and written."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from svmosaic import LinearSVC, __version__
from svmosaic.cli._io import add_output_options, add_table_options, listening, read_options, say
from svmosaic.tabular.formats import Table, TableError, is_npy, read_table
from svmosaic.tabular.preparation import TEXT, build_preparation, clean_labels, kinds_of, to_input
from svmosaic.tabular.trained_model import TrainedModel


def add_training_arguments(parser):
    """Arguments of both commands."""
    parser.add_argument(
        "data", help="CSV, TSV, Parquet (file or folder), Arrow, LIBSVM, NPZ or NPY; - for standard input"
    )
    parser.add_argument(
        "--label",
        help="label column, by name or place (-1: last), or of NPY a second file; not needed for LIBSVM and NPZ",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write the model")
    parser.add_argument("--test", metavar="FILE", help="a table to judge by, instead of held-out rows")
    parser.add_argument(
        "--test-size", type=_share, default=0.2, help="share of rows held out to judge by (0.2); 0: none"
    )
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help="leave a column out (repeatable)")
    parser.add_argument(
        "--calibration", choices=["temperature", "sigmoid", "isotonic", "none"], default="temperature",
        help="how scores become the probabilities of `predict --proba`",
    )  # fmt: skip
    parser.add_argument("--balanced", action="store_true", help="weigh classes equally, however many rows they have")
    parser.add_argument("--max-categories", type=int, default=64, help="columns for a text column at most (64)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    parser.add_argument("--jobs", type=int, default=-1, help="threads; -1: all (the model does not depend on it)")
    add_table_options(parser)
    add_output_options(parser)


def inputs_of(options) -> list:
    """Files that a training command reads."""
    return [options.data, options.test, options.label if is_npy(options.label) else None]


def _share(text):
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError
    return value


@dataclass(frozen=True)
class Data:
    """Rows to train on and rows to judge by, as a preparation takes them."""

    table: Table
    kinds: list
    X: Any
    y: np.ndarray
    train: tuple
    test: tuple | None
    without_label: int


def read_data(options) -> Data:
    """The table of a training command, checked and split."""
    table = read_table(options.data, label=options.label, **read_options(options))
    if table.y is None:
        columns = ", ".join(map(repr, table.feature_names[:8])) + (", ..." if len(table.feature_names) > 8 else "")
        raise TableError(f"say with --label which column to predict: {columns}")
    table = _dropped(table, options.drop)
    y, there = clean_labels(table.y)
    if not there.any():
        raise TableError(f"the label column {table.label!r} is empty")
    if not there.all():
        table = Table(table.X[there], y, table.feature_names, table.label)
    check_classes(np.unique(y), len(y), table.label)
    kinds = kinds_of(table.X)
    X = _input(table.X, table.feature_names, kinds)
    train, test = (X, y), None
    if options.test:
        text = [n for n, kind in zip(table.feature_names, kinds, strict=True) if kind == TEXT]
        text += [str(table.label)] if y.dtype.kind == "U" else []
        test = _read_test(options, table, kinds, text)
    elif options.test_size:
        train, test = _split(X, y, options)
    return Data(table, kinds, X, y, train, test, int((~there).sum()))


def check_classes(classes, n_rows, label):
    """Refuse labels that nothing can be learnt from."""
    if len(classes) < 2:
        raise TableError(f"all rows have the same label, {str(classes[0])!r}: there is nothing to tell apart")
    if len(classes) > max(100, n_rows // 2):
        raise TableError(f"the label {label!r} has {len(classes)} classes in {n_rows} rows: is it the right column?")


def _dropped(table, columns):
    if not columns:
        return table
    if not isinstance(table.X, pd.DataFrame):
        raise TableError("--drop needs a table with named columns")
    for column in columns:
        if column not in table.feature_names:
            raise TableError(f"there is no column {column!r} to drop")
    X = table.X.drop(columns=columns)
    if X.shape[1] == 0:
        raise TableError("--drop leaves no columns to learn from")
    return Table(X, table.y, list(X.columns), table.label)


def _input(X, names, kinds):
    return to_input(X, names, kinds) if isinstance(X, pd.DataFrame) else X


def _read_test(options, table, kinds, text):
    other = read_table(
        options.test, label=table.label if options.label is not None else None, text=text,
        n_features=table.X.shape[1], header=not options.no_header,
    )  # fmt: skip
    lacking = [name for name in table.feature_names if name not in other.feature_names]
    if lacking:
        raise TableError(f"{options.test} lacks the column {lacking[0]!r} of {options.data}")
    if other.y is None:
        raise TableError(f"{options.test} has no labels")
    y, there = clean_labels(other.y)
    return _input(other.X[there], table.feature_names, kinds), y


def _split(X, y, options):
    """Rows to train on and rows held out, by class where there are enough of each."""
    counts = np.unique(y, return_counts=True)[1]
    n_test = int(np.ceil(options.test_size * len(y)))
    fits = counts.min() >= 2 and n_test >= len(counts) and len(y) - n_test >= len(counts)
    train, test = train_test_split(
        np.arange(len(y)), test_size=options.test_size, random_state=options.seed, stratify=y if fits else None
    )
    if len(np.unique(y[train])) < 2:
        raise TableError(f"{len(y)} rows are too few to hold some out: pass --test-size 0, or --test FILE")
    return (take(X, train), y[train]), (take(X, test), y[test])


def take(X, rows):
    """Some rows of a frame, an array or a sparse matrix."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def fitted(estimator, X, y, kinds, options, update=None):
    """Preparation and classifier, fitted; a model that scales by itself gets rows that are not.

    Parameters
    ----------
    update : callable, optional
        Of a step of the bar, which is told of iterations.
    """
    if "calibration" in estimator.get_params() and np.unique(y, return_counts=True)[1].min() < 2:
        estimator.set_params(calibration=None)  # which needs two rows of each class
    scale = type(estimator).__name__ != "MosaicClassifier"
    preparation = build_preparation(X, kinds, scale=scale, max_categories=options.max_categories)
    with listening(estimator, update):
        return Pipeline([("prepare", preparation), ("classify", estimator)]).fit(X, y)


def for_judging(parameters):
    """Parameters of a model that is only to predict: a temperature changes no prediction, so it can be left out."""
    return parameters | ({"calibration": None} if parameters.get("calibration") == "temperature" else {})


def common_parameters(estimator_type, options) -> dict:
    """What the options say, as far as the estimator knows of it."""
    wanted = {"random_state": options.seed, "n_jobs": options.jobs}
    if options.calibration != "none":
        wanted["calibration"] = options.calibration
    if options.balanced:
        wanted["class_weight"] = "balanced"
    known = estimator_type().get_params()
    return {name: value for name, value in wanted.items() if name in known}


def finish(options, data, estimator, held_out_model, bar, started, extra=None, seconds=None):
    """Judge beside a linear SVM, fit to all rows, write, and say so.

    Parameters
    ----------
    estimator : estimator for the last fit, not fitted
    held_out_model : pipeline fitted to `data.train`, or None where there are no rows to judge by
    extra : dict, optional
        More for the facts and the JSON object.
    seconds : float, optional
        How long the last fit should take, for the bar.
    """
    scores = {}
    if data.test is not None:
        X, y = data.test
        with bar.step("a linear SVM beside it") as update:
            parameters = common_parameters(LinearSVC, options) | {"calibration": None}
            linear = fitted(LinearSVC(**parameters), *data.train, data.kinds, options, update)
        scores = {"rows": len(y), "accuracy": float(np.mean(held_out_model.predict(X) == y))}
        scores["linear_svm"] = float(np.mean(linear.predict(X) == y))
    with bar.step("fitting to all rows", seconds) as update:
        pipeline = fitted(estimator, data.X, data.y, data.kinds, options, update)
    found = {
        "rows": len(data.y), "held_out": scores or None, "rows_without_label": data.without_label,
        "notes": list(_notes(data, options)), **(extra or {}),
    }  # fmt: skip
    table = Table(data.table.X, data.y, data.table.feature_names, data.table.label)
    write_model(options, pipeline, table, data.kinds, found, perf_counter() - started)


def write_model(options, pipeline, table, kinds, found, seconds):
    """The model file, and what is said of it.

    Parameters
    ----------
    pipeline : fitted pipeline
    table : Table, of all training rows or of a sample, with clean labels
    kinds : list of str
    found : dict
        Rows, scores, notes and more for the facts.
    seconds : float
        Time taken.
    """
    model = TrainedModel(pipeline, np.array(table.feature_names), kinds, hasattr(table.X, "indptr"), table.label)
    mosaic = getattr(model.estimator, "mosaic_", None)
    model.facts = {
        "model": type(model.estimator).__name__, "features": len(table.feature_names),
        "label": table.label, "classes": [str(c) for c in model.classes],
        "tiles": None if mosaic is None else int(mosaic.n_tiles),
        "data": Path(str(options.data)).name, "svmosaic": __version__, **found,
    }  # fmt: skip
    model.keep_sample(table.X, table.y, options.seed)
    model.save(options.output)
    told = model.facts | {"file": str(options.output), "seconds": round(seconds, 3)}
    say(options, told, _lines(options, model, seconds))


def _notes(data, options):
    """What a person would want to look at."""
    classes, counts = np.unique(data.y, return_counts=True)
    if counts.min() < 2:
        yield f"class {str(classes[counts.argmin()])!r} has one row only, too few for probabilities"
    for place, (name, kind) in enumerate(zip(data.table.feature_names, data.kinds, strict=True)):
        if kind != TEXT:
            continue
        distinct = data.X.iloc[:, place].nunique()
        if distinct > max(options.max_categories, len(data.y) // 2):
            yield f"column {name!r} holds {distinct} different texts, nearly one a row: --drop it if it only names rows"
        elif distinct > options.max_categories:
            yield f"column {name!r} holds {distinct} different texts: the {options.max_categories} most frequent count"


def _lines(options, model, seconds):
    facts = model.facts
    text = model.kinds.count(TEXT)
    yield (
        f"{facts['rows']} rows, {facts['features']} columns" + (f" ({text} of text)" if text else "")
        + f", {len(facts['classes'])} classes in {facts['label']!r}"
    )  # fmt: skip
    if facts["rows_without_label"]:
        yield f"{facts['rows_without_label']} rows without a label were left out"
    yield from facts["notes"]
    tiles = "" if facts["tiles"] is None else f" with {facts['tiles']} {'tile' if facts['tiles'] == 1 else 'tiles'}"
    if facts["held_out"]:
        scores = facts["held_out"]
        yield f"accuracy on {scores['rows']} rows held out:"
        yield f"  {facts['model'] + tiles:<34}{scores['accuracy']:.2%}"
        yield f"  {'linear SVM':<34}{scores['linear_svm']:.2%}"
    else:
        yield f"{facts['model']}{tiles}; no rows were held out, so nothing is known of its accuracy"
    yield f"fitted to all {facts['rows']} rows and written to {options.output} ({seconds:.1f} s)"
