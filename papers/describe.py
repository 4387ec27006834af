"""Descriptions of experiments: tasks, methods, tables, curves and pictures. Data only.

A cell is one (task, method, repeat). What a cell measures depends on the descriptions of its task and its method and on
nothing else, so tables that need the same cell share it, and a changed description asks for a new run.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

PREPARATIONS = ("unit-norm", "standardise", "none")
# What a table or curve may show: the sign of "better", the label, and the number of digits.
MEASURES = {
    "accuracy": (+1, "accuracy, %", 2),
    "error": (-1, "error, %", 2),
    "fit_seconds": (-1, "training, seconds", 2),
    "predict_seconds": (-1, "prediction of the test rows, seconds", 2),
    "size": (-1, "tiles, support vectors or boosted SVMs", 0),
}


@dataclass(frozen=True)
class Task:
    """Rows and labels, and their preparation.

    Attributes
    ----------
    name : as printed in the tables
    source : a data set of `papers.data`, one of `tasks.BUNDLED`, or "images" and the path of a folder or file
    labels : the labels to predict, a key of `tasks.LABELS`
    prepare : one of PREPARATIONS
    train_rows, test_rows : numbers of rows, drawn again for each repeat (test rows once); None for all
    split : share of the rows for testing, drawn anew for each repeat; None for the official split, or one fixed tenth
    repeats : maximum number of repeats, for large data sets
    scene : the rows are the pixels of an image, and the first repeat keeps what was predicted for each
    cost : roughly the seconds of one linear SVM, which orders the run
    """

    name: str
    source: str
    labels: str = "as they are"
    prepare: str = "unit-norm"
    train_rows: int | None = None
    test_rows: int | None = None
    split: float | None = None
    repeats: int | None = None
    scene: bool = False
    cost: float = 1.0

    def __post_init__(self):
        if self.prepare not in PREPARATIONS:
            raise ValueError(f"prepare must be one of {PREPARATIONS}, got {self.prepare!r}")


@dataclass(frozen=True)
class Method:
    """An estimator with fixed settings, and the grid that cross-validation chooses the others from.

    Attributes
    ----------
    name : as printed in the tables
    model : a key of `measure.MODELS` or `pictures.PICTURES`, or an estimator of svmosaic
    settings : fixed parameters
    grid : parameters to choose by five-fold cross-validation on the training rows, each value with each other
    tune_rows, tune_numbers : the largest sample of training rows for it, in rows, and in rows times features
    tune_settings : fixed parameters that differ while choosing, such as fewer iterations
    tuned_by : the method whose choice is taken
    tune_each : choose anew in each repeat, for tasks whose split changes
    choose : "best" mean accuracy; "simplest", the first of the grid within one standard error of it; or "test", the
        best on the test rows, which is no result but a bound on what the grid can give
    repeats : 1 if nothing is random; None for those of the experiment
    own : the method of the paper
    cost : in units of a linear SVM's time, with tuning
    """

    name: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple] = field(default_factory=dict)
    tune_rows: int = 3000
    tune_numbers: int = 1_200_000
    tune_settings: Mapping[str, Any] = field(default_factory=dict)
    tuned_by: "Method | None" = None
    tune_each: bool = False
    choose: str = "best"
    repeats: int | None = None
    own: bool = False
    cost: float = 1.0


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper: every task with every method is one cell per repeat.

    Attributes
    ----------
    id : such as "csvm-table2"
    paper : a key of `papers.PAPERS`
    kind : "table", "curve", "picture" or "scene"
    measure : a key of MEASURES
    published : (method, task) -> mean or (mean, deviation), as printed
    protocol : what was done, and how it had to differ from the paper
    notes : (method, task) -> why our figure is below the printed one, or what else to know about it; (method, None) is
        for all tasks
    axis : the horizontal axis of a curve
    lines : of a curve, method -> (line, value on the axis)
    """

    id: str
    paper: str
    title: str
    kind: str
    tasks: tuple[Task, ...]
    methods: tuple[Method, ...]
    measure: str = "accuracy"
    repeats: int = 1
    published: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    protocol: str = ""
    notes: Mapping[tuple[str, str | None], str] = field(default_factory=dict)
    axis: str = ""
    lines: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def __post_init__(self):
        if self.measure not in MEASURES:
            raise ValueError(f"{self.id}: measure must be one of {tuple(MEASURES)}, got {self.measure!r}")
        known = {(m.name, t.name) for m in self.methods for t in self.tasks}
        for key in self.published:
            if key not in known:
                raise ValueError(f"{self.id}: a published number for {key}, which is not run")

    def cells(self, repeats=None):
        """All cells, in the order of the description."""
        for task in self.tasks:
            for method in self.methods:
                wanted = min(n for n in (method.repeats or self.repeats, task.repeats, repeats) if n is not None)
                for repeat in range(wanted):
                    yield Cell(task, method, repeat)


@dataclass(frozen=True)
class Cell:
    """One run: fit on the training rows of a repeat, score on the test rows."""

    task: Task
    method: Method
    repeat: int

    @property
    def key(self) -> tuple[str, int]:
        return fingerprint(self.task, self.method), self.repeat

    @property
    def tuning(self) -> "Tuning | None":
        """The choice of settings that must be made first."""
        method = self.method.tuned_by or self.method
        return Tuning(self.task, method, self.repeat if method.tune_each else 0) if method.grid else None


@dataclass(frozen=True)
class Tuning:
    """The choice of a method's settings by cross-validation on the training rows of a repeat."""

    task: Task
    method: Method
    repeat: int

    @property
    def key(self) -> tuple[str, int]:
        return "tuning " + fingerprint(self.task, self.method), self.repeat


# What changes the order of a run, or how it is shown, but not its result.
_NOT_HASHED = {Task: ("name", "cost", "repeats"), Method: ("name", "own", "cost", "repeats")}


def fingerprint(task, method) -> str:
    """A short name for what a task and a method describe."""

    def plain(described):
        # Fields that differ from their defaults only, so that a new field changes no fingerprint.
        values = {}
        for entry in fields(described):
            value = getattr(described, entry.name)
            default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
            if entry.name not in _NOT_HASHED[type(described)] and value != default:
                values[entry.name] = plain(value) if isinstance(value, Method) else value
        return values

    text = json.dumps([plain(task), plain(method)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def select(patterns, experiments):
    """The experiments whose id matches one of the patterns, all without patterns."""
    for pattern in patterns or ():
        if not any(fnmatchcase(experiment.id, pattern) for experiment in experiments):
            known = ", ".join(experiment.id for experiment in experiments)
            raise ValueError(f"no experiment matches {pattern!r}; there are {known}")
    return [e for e in experiments if not patterns or any(fnmatchcase(e.id, pattern) for pattern in patterns)]
