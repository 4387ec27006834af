"""`svmosaic train`: a model from a table, chosen, judged on rows held out, fitted to all rows and written."""

import ast
from argparse import ArgumentTypeError
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import svmosaic
from svmosaic.cli._io import (
    Bar,
    add_output_options,
    add_table_options,
    check_file,
    duration,
    is_large,
    memory_size,
    say,
)
from svmosaic.search import FAMILIES
from svmosaic.table.formats import is_npy

# For classes, and for values.
MODELS = {
    "auto": ("MosaicClassifier", "MosaicRegressor"),
    "linear": ("LinearSVC", "LinearSVR"),
    "kmeans": ("KMeansSVC", "KMeansSVR"),
    "clustered": ("ClusteredSVC", "ClusteredSVR"),
    "local": ("LocallyLinearSVC", "LocallyLinearSVR"),
    "kernel": ("KernelSVC", "KernelSVR"),
    "learned": ("LearnedGateSVC", "LearnedGateSVR"),
    "tree": ("TreeSVC", "TreeSVR"),
    "mixture": ("MixtureSVC", None),
    "multitask": ("MultiTaskMixtureSVC", None),
}
BUDGET = 60.0
# Lines of the leaderboard that are printed, and that a model file keeps.
SHOWN = 10


def add_arguments(parser):
    """What to train, on what, and where to write it."""
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
    parser.add_argument(
        "--task", choices=("auto", "classification", "regression"), default="auto",
        help="auto (default): classification for text and for at most 20 distinct integers, regression for other "
        "numbers",
    )  # fmt: skip
    parser.add_argument(
        "--model", choices=MODELS, default="auto", help="auto (default) tries several and keeps the best"
    )
    parser.add_argument(
        "--budget", type=duration,
        help="time for --model auto, such as 60s (default) or 5m; if given, the search is shown",
    )  # fmt: skip
    parser.add_argument(
        "--families", type=_families, metavar="NAME,...",
        help="model families for --model auto to choose among, such as linear,local (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--metric",
        help="metric that --model auto optimizes: the name of a scikit-learn scorer, such as roc_auc, f1 or "
        "neg_mean_absolute_error (default: accuracy for classification, r2 for regression)",
    )
    parser.add_argument(
        "--single", action="store_true", help="with --model auto, choose a single model instead of a blend"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="settings",
        help="a parameter of the model, such as --set C=10 (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--memory", type=memory_size, metavar="SIZE",
        help="memory limit, such as 1GB: a larger table is read in chunks (default: half of the free memory)",
    )  # fmt: skip
    parser.add_argument(
        "--scratch",
        metavar="FOLDER",
        help="temporary folder for the prepared rows of such a table (default: the system's)",
    )


def _share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"{text!r} is not a fraction: write a number from 0 to below 1, such as 0.2")
    return value


def _families(text):
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise ArgumentTypeError(f"{unknown[0]!r} is no model family: choose among {', '.join(FAMILIES)}")
    return names


def run(options):
    """Compare a model with a linear SVM on rows held out, fit it to all rows, write it, and report this."""
    started = perf_counter()
    check_file(options.output, [options.data, options.test, options.label if is_npy(options.label) else None])
    for name in ("budget", "families", "metric", "single"):
        if getattr(options, name) and options.model != "auto":
            raise ValueError(f"--{name} is for --model auto, not for --model {options.model}")
    if options.task != "auto":  # report errors before the table is read
        _estimator(options, options.task)
    if options.scratch is not None and not Path(options.scratch).is_dir():
        raise ValueError(f"--scratch: there is no folder {options.scratch}")
    # A search runs twice if rows are held out to judge it: on the others, and on all.
    is_judged = bool(options.test or options.test_size)
    seconds = (options.budget or BUDGET) / (2 if is_judged else 1) if options.model == "auto" else None
    with Bar(options.quiet) as bar:
        if is_large(options):
            from svmosaic.cli._chunked_table import TableInChunks

            table = TableInChunks(options, bar)
        else:
            from svmosaic.cli._tables import TableInMemory

            table = TableInMemory(options, bar)
        kind, parameters = _estimator(options, table.task, seconds)
        if is_large(options):
            table.check_model(kind)
        linear = svmosaic.LinearSVR if table.task == "regression" else svmosaic.LinearSVC
        scores = None
        if is_judged:
            with table.rows("train") as fit:
                model = fit(kind(**parameters), "training", seconds)
                baseline = fit(linear(**_common_parameters(linear, options)), "a linear SVM to compare with")
            scores = table.judged(model, baseline)
        with table.rows("all") as fit:
            pipeline = fit(kind(**parameters), "fitting to all rows", seconds)
    _write(options, table, pipeline, parameters, scores, started)


def _estimator(options, task, seconds=BUDGET) -> tuple[type, dict]:
    """The class of the estimator for a task, and its parameters, of which the names are checked."""
    name = MODELS[options.model][task == "regression"]
    if name is None:
        others = ", ".join(other for other, (_, regressor) in MODELS.items() if regressor is not None)
        raise ValueError(
            f"--model {options.model} is for classification, but the label is numeric: choose among {others}"
        )
    kind = getattr(svmosaic, name)
    known, parameters = kind().get_params(), _common_parameters(kind, options)
    if options.model == "auto":
        given = {"families": options.families, "metric": options.metric, "blend": False if options.single else None}
        parameters |= {"time_budget": seconds} | {key: value for key, value in given.items() if value is not None}
    for setting in options.settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            raise ValueError(
                f"--set {setting}: write NAME=VALUE, with a parameter of {kind.__name__}: {', '.join(known)}"
            )
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value
    return kind, parameters


def _common_parameters(kind, options) -> dict:
    """The options that the estimator has as parameters."""
    wanted = {"random_state": options.seed, "n_jobs": options.jobs}
    if options.calibration != "none":
        wanted["calibration"] = options.calibration
    if options.balanced:
        wanted["class_weight"] = "balanced"
    known = kind().get_params()
    return {name: value for name, value in wanted.items() if name in known}


def _write(options, table, pipeline, parameters, scores, started):
    """Write the model file, and report it."""
    import numpy as np

    from svmosaic.table.trained_model import TrainedModel

    rows, estimator, missing = table.sample(), pipeline[-1], table.missing_labels
    model = TrainedModel(pipeline, np.array(table.names), table.kinds, hasattr(rows.X, "indptr"), table.label)
    model.missing_texts = table.missing_texts
    mosaic, board = getattr(estimator, "mosaic_", None), getattr(estimator, "leaderboard_", None)
    model.facts = {
        "model": type(estimator).__name__, "features": len(table.names),
        "label": table.label, "classes": [str(c) for c in table.classes],
        "tiles": None if mosaic is None else int(mosaic.n_tiles),
        "data": Path(str(options.data)).name, "svmosaic": svmosaic.__version__, "dialect": asdict(table.dialect),
        "task": table.task, "rows": table.n_rows, "held_out": scores, "rows_without_label": sum(missing.values()),
        "missing_labels": missing, **table.facts(pipeline[0]),
        "parameters": {name: value for name, value in parameters.items() if name not in ("n_jobs", "random_state")},
    }  # fmt: skip
    if board is not None:
        model.facts |= {
            "tried": len(board), "leaderboard": list(board[:SHOWN]), "best_score": estimator.best_score_,
            "stop_reason": estimator.stop_reason_,
        }  # fmt: skip
    model.keep_sample(rows.X, rows.y, options.seed)
    model.save(options.output)
    seconds = perf_counter() - started
    facts = model.facts | {"file": str(options.output), "seconds": round(seconds, 3)}
    lines = _lines(options, facts, model.kinds.count("text"))
    if board is not None and options.budget:
        lines += ["", str(board.top(SHOWN)), f"{len(board)} trials; the search ended: {estimator.stop_reason_}"]
    say(options, facts, lines)


def _lines(options, facts, n_text) -> list[str]:
    """The report of a training."""
    from svmosaic.cli._tables import missing_text

    label = repr(facts["label"])
    what = f"{len(facts['classes'])} classes in {label}" if facts["classes"] else f"values of {label} to predict"
    lines = [f"{facts['rows']} rows, {facts['features']} columns{f' ({n_text} of text)' if n_text else ''}, {what}"]
    if facts["rows_without_label"]:
        missing = missing_text(facts["missing_labels"], ": ")
        lines.append(f"{facts['rows_without_label']} rows without a label were left out{missing}")
    lines += facts["notes"]
    name, held = facts["model"], facts["held_out"]
    if facts["tiles"] is not None:
        name += f" with {facts['tiles']} {'tile' if facts['tiles'] == 1 else 'tiles'}"
    if held and facts["task"] == "regression":
        lines += [f"on {held['rows']} rows held out:", f"  {'':<34}{'R2':>8}{'MAE':>12}{'RMSE':>12}"]
        for one, found in ((name, held["quality"]["model"]), ("linear SVM", held["quality"]["baseline"])):
            lines.append(f"  {one:<34}{found['r2']:>8.4f}{found['mae']:>12.5g}{found['rmse']:>12.5g}")
    elif held:
        lines.append(f"accuracy on {held['rows']} rows held out:")
        lines += [f"  {name:<34}{held['accuracy']:.2%}", f"  {'linear SVM':<34}{held['linear_svm']:.2%}"]
    else:
        lines.append(f"{name}; no rows were held out, so nothing is known of its accuracy")
    written = f"written to {options.output} ({facts['seconds']:.1f} s)"
    return [*lines, f"fitted to all {facts['rows']} rows and {written}"]
