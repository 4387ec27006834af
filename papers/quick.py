"""Every experiment made small: bundled and generated data in place of the papers' sets, short grids, few tiles.

Nothing is compared with the papers; each path of the code is taken.
"""

from dataclasses import replace

from papers.describe import Experiment, Method, Task

ROWS, TEST_ROWS, REPEATS, POINTS_OF_A_CURVE = 300, 200, 2, 3
LARGEST = {"n_clusters": 4, "n_experts": 4, "n_anchors": 20, "n_estimators": 5, "n_densities": 4}
# Labels that the bundled digits have too.
_OF_DIGITS = ("odd or even", "3 or 8", "4 or 9", "below 5")
_MANY_CLASSES = ("mnist", "usps", "letter", "satimage", "vehicle")
_SMALL_PICTURES: dict[str, dict] = {
    "picture: circle": {"n_samples": 120, "max_iter": 5, "rounds": 10},
    "picture: spirals": {"n_samples": 300, "max_iter": 5},
    "picture: sines": {"n_samples": 300, "max_iter": 5},
    "picture: fusion blends": {"gammas": (10,), "weights": (0.1, 0.9)},
}


def shrink(experiment: Experiment) -> Experiment:
    """The same experiment on stand-ins."""
    methods = experiment.methods
    if experiment.kind == "curve":
        of_lines: dict[str, list[Method]] = {}
        for method in methods:
            of_lines.setdefault(experiment.lines[method.name][0], []).append(method)
        methods = tuple(method for line in of_lines.values() for method in line[:POINTS_OF_A_CURVE])
    # The first and the last: the smallest set and often the one with most classes.
    tasks = {stand_in(task).name: stand_in(task) for task in (experiment.tasks[0], experiment.tasks[-1])}
    lines = {method.name: experiment.lines[method.name] for method in methods} if experiment.lines else {}
    return replace(
        experiment,
        tasks=tuple(tasks.values()),
        methods=tuple(_small(method) for method in methods),
        repeats=min(REPEATS, experiment.repeats),
        published={},
        notes={},
        lines=lines,
        protocol="A stand-in on bundled or generated data, to see the code run: nothing to compare with the paper.",
    )


def stand_in(task: Task) -> Task:
    """A small bundled or generated set of the same kind."""
    if task.scene:
        return replace(task, name="generated scene", source="scene", cost=0.1)
    if task.source.startswith("images"):
        return replace(task, test_rows=TEST_ROWS, cost=0.1)
    if task.prepare == "none":
        return task  # the toys
    if task.labels in _OF_DIGITS:
        name, source, labels = f"digits, {task.labels}", "digits", task.labels
    elif task.source in _MANY_CLASSES and task.labels == "as they are":
        name, source, labels = "digits", "digits", "as they are"
    else:
        name, source, labels = "breast cancer", "breast_cancer", "as they are"
    rows = min(ROWS, task.train_rows or ROWS)
    if task.train_rows:
        name = f"{name}, {rows} rows"
    return replace(
        task,
        name=name,
        source=source,
        labels=labels,
        train_rows=None if task.split else rows,
        test_rows=TEST_ROWS,
        cost=0.1,
    )


def _small(method: Method) -> Method:
    settings = {name: min(value, LARGEST.get(name, value)) if name in LARGEST else value
                for name, value in method.settings.items()}  # fmt: skip
    if method.model in ("MixtureSVC", "LSVM-MTL"):
        settings["max_iter"] = 5
    return replace(
        method,
        settings={**settings, **_SMALL_PICTURES.get(method.model, {})},
        grid={
            name: tuple(dict.fromkeys((values[0], values[len(values) // 2]))) for name, values in method.grid.items()
        },
        tune_rows=200,
        tuned_by=None if method.tuned_by is None else _small(method.tuned_by),
    )
