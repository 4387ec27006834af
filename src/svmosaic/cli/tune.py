"""`svmosaic tune`: the search of `MosaicClassifier` or `MosaicRegressor` within a budget, with its leaderboard."""

from argparse import ArgumentTypeError
from time import perf_counter

from svmosaic.cli._io import Bar, check_file, duration
from svmosaic.cli._tasks import add_task_argument
from svmosaic.cli._training import add_training_arguments, common_parameters, inputs_of, train
from svmosaic.cli.train import model_class
from svmosaic.search.candidates import FAMILIES

# Lines of the leaderboard that are printed, and that a model file keeps.
SHOWN = 10


def add_arguments(parser):
    """The arguments of `train`, with a budget."""
    add_training_arguments(parser)
    add_task_argument(parser)
    parser.add_argument("--budget", type=duration, default=60.0, help="total time, such as 60s (default) or 5m")
    parser.add_argument(
        "--models", type=_families, default=None, metavar="NAME,...",
        help=f"model families to choose among: {', '.join(FAMILIES)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--metric",
        help="metric to optimize: the name of a scikit-learn scorer, such as roc_auc, f1 or neg_mean_absolute_error "
        "(default: accuracy for classification, r2 for regression)",
    )  # fmt: skip
    parser.add_argument("--single", action="store_true", help="choose a single model instead of a blend")


def _families(text):
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise ArgumentTypeError(f"{unknown[0]!r} is no model family: choose among {', '.join(FAMILIES)}")
    return names


def run(options):
    """Search on the training rows, judge the best on rows held out, search on all rows, and write the model."""
    started = perf_counter()
    check_file(options.output, inputs_of(options))
    from svmosaic.cli._tables import TableInMemory

    # The same search twice, if rows are held out to judge it: on the others, and on all.
    searches = 2 if options.test or options.test_size else 1
    seconds = options.budget / searches
    with Bar(options.quiet) as bar:
        table = TableInMemory(options, bar)
        kind = model_class("auto", table.task)
        parameters = common_parameters(kind, options) | {
            "time_budget": seconds, "families": options.models, "blend": not options.single
        }  # fmt: skip
        if options.metric is not None:
            parameters["metric"] = options.metric
        model = train(options, table, kind, parameters, started, seconds=seconds, found_by=_found)
    if not (options.json or options.quiet):
        board = model.estimator.leaderboard_
        print(f"\n{board.top(SHOWN)}\n{len(board)} trials; the search ended: {model.estimator.stop_reason_}")


def _found(model) -> dict:
    """More for the facts of the model file and the JSON object."""
    board = model.leaderboard_
    return {
        "tried": len(board), "leaderboard": list(board[:SHOWN]), "best_score": model.best_score_,
        "stop_reason": model.stop_reason_,
    }  # fmt: skip
