"""`svmosaic train`: a model from a table."""

import ast
from pathlib import Path
from time import perf_counter

import svmosaic
from svmosaic.cli._io import Bar, check_file, duration, is_large, memory_size
from svmosaic.cli._tasks import add_task_argument
from svmosaic.cli._training import add_training_arguments, common_parameters, inputs_of, train

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


def add_arguments(parser):
    """What to train, on what, and where to write it."""
    add_training_arguments(parser)
    add_task_argument(parser)
    parser.add_argument(
        "--model", choices=MODELS, default="auto", help="auto (default) tries several and keeps the best"
    )
    parser.add_argument("--budget", type=duration, help="time for --model auto, such as 60s (default) or 5m")
    parser.add_argument(
        "--metric", help="metric that --model auto optimizes: the name of a scikit-learn scorer, such as roc_auc or f1"
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


def run(options):
    """Train, judge, fit to all rows, write."""
    started = perf_counter()
    check_file(options.output, inputs_of(options))
    if options.budget is not None and options.model != "auto":
        raise ValueError(f"--budget is for --model auto, or for `svmosaic tune`, not for --model {options.model}")
    if options.metric is not None and options.model != "auto":
        raise ValueError(f"--metric is for --model auto, or for `svmosaic tune`, not for --model {options.model}")
    if options.task != "auto":  # report errors before the table is read
        _settings(model_class(options.model, options.task), options)
    if options.scratch is not None and not Path(options.scratch).is_dir():
        raise ValueError(f"--scratch: there is no folder {options.scratch}")
    with Bar(options.quiet) as bar:
        table = _open(options, bar)
        kind = model_class(options.model, table.task)
        parameters = common_parameters(kind, options) | _settings(kind, options)
        seconds = None
        if options.model == "auto":
            # The same search twice: before judging it, and on all rows.
            seconds = (options.budget or BUDGET) / (1 if _nothing_held_out(options) else 2)
            parameters.setdefault("time_budget", seconds)
            if options.metric is not None:
                parameters["metric"] = options.metric
        told = {name: value for name, value in parameters.items() if name not in ("n_jobs", "random_state")}
        train(options, table, kind, parameters, started, seconds=seconds, extra={"parameters": told})


def model_class(name, task):
    """The estimator of a --model for a task."""
    found = MODELS[name][task == "regression"]
    if found is None:
        others = ", ".join(other for other, (_, regressor) in MODELS.items() if regressor is not None)
        raise ValueError(f"--model {name} is for classification, but the label is numeric: choose among {others}")
    return getattr(svmosaic, found)


def _open(options, bar):
    """The table, in memory or in chunks."""
    if is_large(options):
        from svmosaic.cli._chunked_table import TableInChunks, check_model

        table = TableInChunks(options, bar)
        check_model(model_class(options.model, table.task), options)
        return table
    from svmosaic.cli._tables import TableInMemory

    return TableInMemory(options, bar)


def _nothing_held_out(options):
    return not options.test and not options.test_size


def _settings(kind, options):
    """Parameters from --set, checked by name; the estimator checks the values."""
    known = kind().get_params()
    found = {}
    for setting in options.settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            raise ValueError(
                f"--set {setting}: write NAME=VALUE, with a parameter of {kind.__name__}: {', '.join(known)}"
            )
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found
