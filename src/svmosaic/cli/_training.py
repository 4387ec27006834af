"""What `train` and `tune` share: arguments, and a model compared with a linear SVM, fitted to all rows and written."""

from argparse import ArgumentTypeError
from pathlib import Path
from time import perf_counter

from svmosaic.cli._io import add_output_options, add_table_options, say
from svmosaic.table.formats import is_npy


def add_training_arguments(parser):
    """Arguments of both commands."""
    parser.add_argument(
        "data", help="CSV, TSV, Parquet (file or folder), Arrow, LIBSVM, NPZ or NPY; - for standard input"
    )
    parser.add_argument(
        "--label",
        help="label column, by name or index (-1: last); for NPY, also a second file; not needed for LIBSVM and NPZ",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write the model")
    parser.add_argument("--test", metavar="FILE", help="table to evaluate on, instead of held-out rows")
    parser.add_argument(
        "--test-size", type=_share, default=0.2, help="fraction of rows held out for evaluation (default: 0.2; 0: none)"
    )
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help="leave a column out (repeatable)")
    parser.add_argument(
        "--categorical", action="append", default=[], metavar="COLUMN",
        help="treat the values of a column as categories (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--calibration", choices=["odds", "temperature", "sigmoid", "isotonic", "none"], default="odds",
        help="calibration of the probabilities that `predict --proba` returns",
    )  # fmt: skip
    parser.add_argument("--balanced", action="store_true", help="give all classes the same total weight")
    parser.add_argument(
        "--max-categories", type=int, default=64, help="maximum number of one-hot columns per text column (default: 64)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--jobs", type=int, default=-1, help="number of threads; -1 (default): all cores; does not affect the model"
    )
    add_table_options(parser)
    add_output_options(parser)


def inputs_of(options) -> list:
    """Files that a training command reads."""
    return [options.data, options.test, options.label if is_npy(options.label) else None]


def _share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"{text!r} is not a fraction: write a number from 0 to below 1, such as 0.2")
    return value


def common_parameters(estimator_type, options) -> dict:
    """The options that the estimator has as parameters."""
    wanted = {"random_state": options.seed, "n_jobs": options.jobs}
    if options.calibration != "none":
        wanted["calibration"] = options.calibration
    if options.balanced:
        wanted["class_weight"] = "balanced"
    known = estimator_type().get_params()
    return {name: value for name, value in wanted.items() if name in known}


def train(options, table, kind, parameters, started, *, seconds=None, extra=None, found_by=None):
    """Compare a model with a linear SVM, fit it to all rows, write it, and report this.

    Parameters
    ----------
    table : TrainingTable
    kind : class of the estimator
    parameters : dict
    started : float
        When the command began.
    seconds : float, optional
        How long a fit should take, for the bar.
    extra : dict, optional
        More for the facts and the JSON object.
    found_by : callable, optional
        From the fitted estimator to still more of them.

    Returns
    -------
    TrainedModel
    """
    from svmosaic import LinearSVC, LinearSVR

    baseline = LinearSVR if table.task == "regression" else LinearSVC
    scores = None
    if table.is_judged:
        with table.rows("train") as fit:
            model = fit(kind(**parameters), "training", seconds)
            linear = fit(baseline(**common_parameters(baseline, options)), "a linear SVM to compare with")
        scores = table.judged(model, linear)
    with table.rows("all") as fit:
        pipeline = fit(kind(**parameters), "fitting to all rows", seconds)
    missing = table.missing_labels
    found = {
        "task": table.task, "rows": table.n_rows, "held_out": scores, "rows_without_label": sum(missing.values()),
        "missing_labels": missing, **table.facts(pipeline[0]), **(extra or {}),
        **(found_by(pipeline[-1]) if found_by else {}),
    }  # fmt: skip
    return _write(options, pipeline, table, found, perf_counter() - started)


def _write(options, pipeline, table, found, seconds):
    """Write the model file, and report it."""
    import numpy as np

    from svmosaic import __version__
    from svmosaic.table.trained_model import TrainedModel

    rows = table.sample()
    model = TrainedModel(pipeline, np.array(table.names), table.kinds, hasattr(rows.X, "indptr"), table.label)
    model.missing_texts = table.missing_texts
    mosaic = getattr(model.estimator, "mosaic_", None)
    model.facts = {
        "model": type(model.estimator).__name__, "features": len(table.names),
        "label": table.label, "classes": [str(c) for c in table.classes],
        "tiles": None if mosaic is None else int(mosaic.n_tiles),
        "data": Path(str(options.data)).name, "svmosaic": __version__, "dialect": table.dialect.plain(), **found,
    }  # fmt: skip
    model.keep_sample(rows.X, rows.y, options.seed)
    model.save(options.output)
    facts = model.facts | {"file": str(options.output), "seconds": round(seconds, 3)}
    say(options, facts, _lines(options, model, seconds))
    return model


def _lines(options, model, seconds):
    from svmosaic.cli._tables import missing_text

    facts = model.facts
    text = model.kinds.count("text")
    yield (
        f"{facts['rows']} rows, {facts['features']} columns" + (f" ({text} of text)" if text else "")
        + (f", {len(facts['classes'])} classes in {facts['label']!r}" if facts["classes"] else
           f", values of {facts['label']!r} to predict")
    )  # fmt: skip
    if facts["rows_without_label"]:
        missing = missing_text(facts["missing_labels"], ": ")
        yield f"{facts['rows_without_label']} rows without a label were left out{missing}"
    yield from facts["notes"]
    tiles = "" if facts["tiles"] is None else f" with {facts['tiles']} {'tile' if facts['tiles'] == 1 else 'tiles'}"
    if facts["held_out"] and facts["task"] == "regression":
        yield f"on {facts['held_out']['rows']} rows held out:"
        yield f"  {'':<34}{'R2':>8}{'MAE':>12}{'RMSE':>12}"
        for name, one in ((facts["model"] + tiles, "model"), ("linear SVM", "baseline")):
            found = facts["held_out"]["quality"][one]
            yield f"  {name:<34}{found['r2']:>8.4f}{found['mae']:>12.5g}{found['rmse']:>12.5g}"
    elif facts["held_out"]:
        scores = facts["held_out"]
        yield f"accuracy on {scores['rows']} rows held out:"
        yield f"  {facts['model'] + tiles:<34}{scores['accuracy']:.2%}"
        yield f"  {'linear SVM':<34}{scores['linear_svm']:.2%}"
    else:
        yield f"{facts['model']}{tiles}; no rows were held out, so nothing is known of its accuracy"
    yield f"fitted to all {facts['rows']} rows and written to {options.output} ({seconds:.1f} s)"
