"""The words in which experiments are described: tasks, methods, tables, curves and pictures. Data only.

A cell is one (task, method, repeat). What a cell measures depends on the descriptions of its task and its method and on
nothing else, so tables that need the same cell share it, and a changed description asks for a new run.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

PREPARATIONS = ("unit-norm", "standardise", "none")
# What a table or curve may show, with the sign of "better" and how to print it.
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

    Parameters
    ----------
    name : str
        As printed in the tables.
    source : str
        A data set of `svmosaic.datasets`, one of `tasks.BUNDLED`, or "images" and the place of a folder or file.
    labels : str
        The labels to predict; a key of `tasks.LABELS`.
    prepare : {"unit-norm", "standardise", "none"}
    train_rows, test_rows : int, optional
        Numbers of rows, drawn again for each repeat (test rows once); None for all.
    split : float, optional
        Share of the rows for testing, drawn anew for each repeat. None: the official split, or one fixed tenth.
    repeats : int, optional
        Maximum number of repeats, for large data sets.
    scene : bool
        The rows are the pixels of an image: the first repeat keeps what was predicted for each.
    cost : float
        Roughly the seconds of one linear SVM: orders the run, cheap cells first.

    See Also
    --------
    Experiment : Combines tasks and methods.
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

    Parameters
    ----------
    name : str
        As printed in the tables.
    model : str
        A key of `methods.MODELS`.
    settings : mapping
        Fixed parameters.
    grid : mapping of str to tuple
        Parameters to choose by five-fold cross-validation on the training rows; each value once with each other.
    tune_rows, tune_numbers : int
        Cross-validation sees a random sample of so many training rows, and of rows times features, if there are more.
    tune_settings : mapping
        Fixed parameters that differ while choosing, such as fewer iterations.
    tuned_by : str, optional
        Take the choice of the method of this name.
    tune_each : bool
        Choose anew in each repeat, for tasks whose split changes; else on the first.
    choose : {"best", "simplest", "test"}
        The setting of the best mean accuracy, or the first in the grid within one standard error of it. "test": the
        best on the test rows after a fit on all training rows, no result but a bound on what the grid can give.
    repeats : int, optional
        1 if nothing is random; None: those of the experiment.
    own : bool
        The method of the paper.
    cost : float
        In units of a linear SVM's time, with tuning: orders the run.

    See Also
    --------
    Experiment : Combines tasks and methods.
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
    """A table or figure of a paper.

    Parameters
    ----------
    id : str
        Such as "csvm-table2".
    paper : str
        A key of `catalogue.PAPERS`.
    title : str
    kind : {"table", "curve", "picture", "scene"}
    tasks, methods : tuples
        Every task with every method is one cell per repeat. For a picture: one task, and methods that draw panels.
    measure : str
        A key of `MEASURES`.
    repeats : int
    published : mapping
        (method, task) -> mean or (mean, deviation), as printed.
    protocol : str
        What was done, and how it had to differ from the paper.
    notes : mapping
        (method, task) -> why our figure is below the printed one, what was tried and what speaks for it; or, for any
        row, what to know about it. (method, None) is for all tasks.
    axis : str
        Of a curve: what its horizontal axis is. The method's `settings` hold the value.
    lines : mapping
        Of a curve: method -> (line, value on the axis).

    See Also
    --------
    Task : Rows.
    Method : A model and its grid.
    run : Runs experiments.
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
    """One run: fit on the training rows of a repeat, score on the test rows.

    See Also
    --------
    Experiment : Consists of cells.
    """

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
        if not method.grid:
            return None
        return Tuning(self.task, method, self.repeat if method.tune_each else 0)

    @property
    def cost(self) -> float:
        return self.task.cost * self.method.cost


@dataclass(frozen=True)
class Tuning:
    """The choice of a method's settings by cross-validation on the training rows of a repeat."""

    task: Task
    method: Method
    repeat: int

    @property
    def key(self) -> tuple[str, int]:
        return "tuning " + fingerprint(self.task, self.method), self.repeat

    @property
    def cost(self) -> float:
        return 2 * self.task.cost * self.method.cost


# What changes the order of a run, or how it is shown, but not its result.
_NOT_HASHED = {Task: ("name", "cost", "repeats"), Method: ("name", "own", "cost", "repeats")}


def fingerprint(task, method) -> str:
    """A short name for what a task and a method describe."""
    text = json.dumps([_plain(task), _plain(method)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(described):
    """The fields that differ from their defaults, so that a new field changes no fingerprint."""
    values = {}
    for entry in fields(described):
        value = getattr(described, entry.name)
        default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
        if entry.name not in _NOT_HASHED[type(described)] and value != default:
            values[entry.name] = _plain(value) if isinstance(value, Method) else value
    return values
