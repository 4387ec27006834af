"""`svmosaic tune`: a search over models and parameters within a time budget."""

import warnings
from time import perf_counter

import numpy as np

from svmosaic.cli._io import Bar, check_file, duration
from svmosaic.cli._training import add_training_arguments, common_parameters, for_judging, inputs_of, train
from svmosaic.cli.train import model_class

# From where random draws are taken. The first of each list are the first candidate of the model.
GRIDS = {
    "linear": {"C": [1.0, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0], "loss": ["squared_hinge", "hinge"]},
    "clustered": {"n_clusters": [8, 4, 16, 32], "C": [1.0, 0.1, 10.0], "global_reg": [1.0, 0.1, 10.0]},
    "local": {
        "n_anchors": [50, 10, 20, 100, 200, 400],
        "n_neighbors": [8, 4, 16],
        "C": [10.0, 0.3, 1.0, 3.0, 30.0],
    },
    "learned": {"n_tiles": [16, 8, 48, 100], "n_components": [16, 8], "weight_decay": [0.01, 0.001, 0.1]},
    "mixture": {"n_experts": [8, 4, 16], "C": [1.0, 0.1, 10.0]},
}
# Rows of the first rung; each rung has three times as many and keeps the best third.
FIRST_RUNG, GROWTH = 2000, 3
HELD_OUT = 0.2
# What the search leaves for the model of the held-out score and for the last fit, as a share of the budget.
RESERVE = 0.35


def add_arguments(parser):
    """The arguments of `train`, with a budget."""
    add_training_arguments(parser)
    parser.add_argument("--budget", type=duration, default=60.0, help="time for all of it, such as 60s (default) or 5m")
    parser.add_argument(
        "--models", type=_models, default=list(GRIDS), metavar="NAME,...", help=f"to choose among: {', '.join(GRIDS)}"
    )


def _models(text):
    names = text.split(",")
    if not set(names) <= set(GRIDS):
        raise ValueError
    return names


def run(options):
    """Search on the training rows, judge the best on rows held out, fit it to all."""
    started = perf_counter()
    check_file(options.output, inputs_of(options))
    from svmosaic.cli._tables import TableInMemory

    with Bar(options.quiet) as bar:
        data = TableInMemory(options, bar)
        seconds = options.budget * (1 - RESERVE)
        with bar.step("searching", seconds):
            trials = search(options, data, started + seconds)
        best = trials[0]
        kind = model_class(best["model"])
        extra = {"parameters": best["parameters"], "tried": len(trials), "leaderboard": trials[:10]}
        train(options, data, kind, common_parameters(kind, options) | best["parameters"], started, extra=extra)
    if not (options.json or options.quiet):
        print(f"chosen among {len(trials)} trials: --model {best['model']} {_settings(best['parameters'])}")


def _settings(parameters):
    return " ".join(f"--set {name}={value}" for name, value in parameters.items())


def search(options, data, deadline):
    """Trials, those on most rows first, then best first: dicts of model, parameters, rows, accuracy, seconds."""
    from svmosaic.cli._tables import take

    X, y = data.train
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(len(y))
    n_held = max(1, int(HELD_OUT * len(y)))
    held, rows = order[:n_held], order[n_held:]
    held_X, held_y = take(X, held), y[held]
    trials = []
    pool = candidates(options.models, rng)
    size = min(FIRST_RUNG, len(rows))
    rung = [next(pool) for _ in range(3 * len(options.models))]
    while True:
        part, late = rows[:size], False
        for name, parameters in rung:
            if trials and perf_counter() + _expected(trials, name, size) > deadline:
                late = True
                continue
            trial = _try(name, parameters, take(X, part), y[part], held_X, held_y, data, options)
            if trial is not None:
                trials.append(trial)
        if late and trials:
            return _ranked(trials)
        best = [t for t in _ranked(trials) if t["rows"] == size]
        if size < len(rows):
            kept = best[: max(2, len(best) // GROWTH)]
            rung = [(t["model"], t["parameters"]) for t in kept]
            size = min(GROWTH * size, len(rows))
        else:
            # Time is left: more draws, on all rows, until all have been tried.
            rung = [draw for _, draw in zip(range(6), pool, strict=False)]
            if not rung:
                break
    if not trials:
        raise ValueError("no model could be fitted to these rows: try `svmosaic train --model linear` to see why")
    return _ranked(trials)


def candidates(names, rng):
    """Pairs of model and parameters, none twice: the first of each model, then at random."""
    seen = set()
    for name in names:
        parameters = {key: values[0] for key, values in GRIDS[name].items()}
        seen.add((name, *parameters.values()))
        yield name, parameters
    total = sum(int(np.prod([len(values) for values in GRIDS[name].values()])) for name in names)
    while len(seen) < total:
        name = names[rng.integers(len(names))]
        parameters = {key: values[rng.integers(len(values))] for key, values in GRIDS[name].items()}
        if (name, *parameters.values()) not in seen:
            seen.add((name, *parameters.values()))
            yield name, parameters


def _try(name, parameters, X, y, held_X, held_y, data, options):
    """A trial, or None where the model does not go with these rows."""
    from sklearn.exceptions import ConvergenceWarning

    from svmosaic.cli._tables import fitted

    kind = model_class(name)
    common = for_judging(common_parameters(kind, options))
    started = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = fitted(kind(**common, **parameters), X, y, data.kinds, options)
    except ValueError:
        return None
    accuracy = float(np.mean(model.predict(held_X) == held_y))
    seconds = perf_counter() - started
    return {"model": name, "parameters": parameters, "rows": len(y), "accuracy": accuracy, "seconds": round(seconds, 3)}


def _expected(trials, name, size):
    """Seconds of a trial, from those of the same model, as if they grew with the rows."""
    return max((t["seconds"] * size / t["rows"] for t in trials if t["model"] == name), default=0.0)


def _ranked(trials):
    return sorted(trials, key=lambda t: (-t["rows"], -t["accuracy"], t["seconds"]))
