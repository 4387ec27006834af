"""Training from a table larger than memory: read in chunks, several times, and fitted by `svmosaic.outofcore`."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from svmosaic import ClusteredSVC, LinearSVC, LocallyLinearSVC, MosaicClassifier, MultiTaskMixtureSVC, outofcore
from svmosaic.cli._io import is_stdin, read_options
from svmosaic.cli._training import check_classes, common_parameters, for_judging, write_model
from svmosaic.maps import Scaling, scaled_first
from svmosaic.partitions.fit import SUPPORTED
from svmosaic.partitions.part import Raw
from svmosaic.tabular.formats import Table, TableError, format_of, name_of, read_chunks, size_in_memory
from svmosaic.tabular.preparation import TEXT, clean_labels, kinds_of, to_input
from svmosaic.tabular.survey import survey

# Training in memory takes the table, its numbers, the part that is trained on, and prepared rows of both.
COPIES = 6
# Shares of the memory: a chunk as it is read, with the copies made of it; and the values among which medians are found.
CHUNK_SHARE, MEDIAN_SHARE = 1 / 16, 1 / 8
MOST_CHUNK_BYTES = 32 << 20
SAMPLE_ROWS = (2000, 100_000)
FAMILIES = {"linear": LinearSVC, "clustered": ClusteredSVC, "local": LocallyLinearSVC}


def memory_free() -> int:
    """Half of the memory that is free, in bytes."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 4 << 30
    return free // 2


def is_large(options) -> bool:
    """Whether the table of a command is to be read in chunks."""
    if is_stdin(options.data) or not Path(options.data).exists():
        return False
    size = size_in_memory(options.data, format_of(options.data, options.format))
    return size is not None and size * COPIES > (options.memory or memory_free())


@dataclass(frozen=True)
class LargeTable:
    """A table in chunks: its columns and classes, known after the first pass.

    Attributes
    ----------
    options : what the command was asked
    chunk_rows : int
    names, kinds : list of str, of the features
    label : str
    classes : ndarray
    counts : ndarray of int, rows of each class
    without_label : int
    """

    options: object
    chunk_rows: int
    names: list
    kinds: list
    label: str
    classes: np.ndarray
    counts: np.ndarray
    without_label: int

    def chunks(self, part="all", update=None):
        """(rows as a preparation takes them, labels) of "all", "train" or "test", the same in every pass."""
        first_row = 0
        share = 0.0 if self.options.test else self.options.test_size
        for k, table in enumerate(_read(self.options, self.chunk_rows, self.text_columns, update)):
            X = to_input(table.X, self.names, self.kinds, first_row)
            y, there = clean_labels(table.y)
            first_row += len(there)
            if part != "all":
                held_out = np.random.default_rng([self.options.seed, k]).random(len(there)) < share
                there_too = there & (held_out if part == "test" else ~held_out)
                y, there = y[there_too[there]], there_too
            yield _rows(X, there), y.astype(self.classes.dtype, copy=False)

    def chunks_to_judge_by(self):
        """Rows held out, or those of the test file."""
        if not self.options.test:
            yield from self.chunks("test")
            return
        label = self.label if self.options.label is not None else None
        name = name_of(self.options.test)
        for table in read_chunks(
            self.options.test, self.chunk_rows, label=label, text=self.text_columns, header=not self.options.no_header
        ):
            lacking = [column for column in self.names if column not in table.feature_names]
            if lacking:
                raise TableError(f"{name} lacks the column {lacking[0]!r} of {self.options.data}")
            y, there = clean_labels(table.y)
            yield _rows(to_input(table.X, self.names, self.kinds), there), y.astype(self.classes.dtype, copy=False)

    @property
    def text_columns(self) -> list:
        found = [name for name, kind in zip(self.names, self.kinds, strict=True) if kind == TEXT]
        return found + ([self.label] if self.classes.dtype.kind == "U" else [])


def _rows(X, there):
    if there.all():
        return X
    return X.loc[there].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[there]


def _read(options, rows, text=(), update=None):
    return read_chunks(
        options.data, rows, label=options.label, text=text, progress=update, **read_options(options)
    )  # fmt: skip


def look_at(options, memory, update=None) -> LargeTable:
    """The first pass: what the columns hold, and which classes there are."""
    size = size_in_memory(options.data, format_of(options.data, options.format))
    rows = 2000  # until it is known how wide they are
    table = next(iter(_read(options, rows)))
    if table.y is None:
        columns = ", ".join(map(repr, table.feature_names[:8])) + (", ..." if len(table.feature_names) > 8 else "")
        raise TableError(f"say with --label which column to predict: {columns}")
    for column in options.drop:
        if column not in table.feature_names:
            raise TableError(f"there is no column {column!r} to drop")
    names = [str(name) for name in table.feature_names if name not in options.drop]
    if not names:
        raise TableError("--drop leaves no columns to learn from")
    width = max(8 * len(names), int(table.X.memory_usage(deep=True).sum() / len(table)))
    rows = int(np.clip(min(MOST_CHUNK_BYTES, memory * CHUNK_SHARE, size) / width, 100, 1_000_000))
    text, counts, without = set(), pd.Series(dtype=np.int64), 0
    for table in _read(options, rows, update=update):
        kind = dict(zip(table.X.columns, kinds_of(table.X), strict=True))
        text |= {name for name in names if kind[name] == TEXT and table.X[name].notna().any()}
        labels = pd.Series(table.y)
        without += int(labels.isna().sum())
        counts = counts.add(labels.value_counts(), fill_value=0)
        if len(counts) > 100_000:
            raise TableError(f"the label {table.label!r} has more than 100000 classes: is it the right column?")
    if len(counts) == 0:
        raise TableError(f"the label column {table.label!r} is empty")
    values = counts.index.to_numpy()
    if len({isinstance(value, str) for value in values}) > 1:  # text in some chunks of a CSV file, numbers in others
        values = np.array([str(value) for value in values], dtype=object)
    labels, _ = clean_labels(values)
    classes, place = np.unique(labels, return_inverse=True)
    per_class = np.bincount(place, counts.to_numpy()).astype(np.int64)
    check_classes(classes, int(per_class.sum()), table.label)
    kinds = [TEXT if name in text else "number" for name in names]
    return LargeTable(options, rows, names, kinds, table.label, classes, per_class, without)


class Prepared:
    """Rows that were prepared once and written to a folder, a file a chunk: what `outofcore.fit` reads from."""

    def __init__(self, folder, chunks, preparation, scaling, n_rows):
        self.folder, self.n_chunks = Path(folder), 0
        self.update, self.n_passes = None, 0
        for X, y in chunks:
            if len(y) == 0:
                continue
            rows = preparation.transform(X)
            rows = rows if scaling is None else scaling.scale(rows)
            if self.n_chunks == 0:
                _check_room(self.folder, n_rows * (4 * rows.shape[1] + 40))
            np.save(self._path("X", self.n_chunks), np.ascontiguousarray(rows, dtype=np.float32))
            np.save(self._path("y", self.n_chunks), y)
            self.n_chunks += 1

    def read(self, k) -> Raw:
        return Raw(self.rows(k), np.load(self._path("y", k)), None, f"chunk {k}")

    def rows(self, k):
        if self.update is not None:
            self.n_passes += k == 0
            self.update(k + 1, self.n_chunks, f": pass {self.n_passes} over the rows")
        return np.load(self._path("X", k))

    def _path(self, name, k):
        return self.folder / f"{name}{k}.npy"


def _check_room(folder, needed):
    if not hasattr(os, "statvfs"):
        return
    state = os.statvfs(folder)
    free = state.f_bavail * state.f_frsize
    if needed > free:
        raise ValueError(
            f"the prepared rows take {needed / 1e9:.1f} GB in {folder.parent}, where {free / 1e9:.1f} GB are free: "
            "name another folder with --scratch"
        )


def check_model(kind, options):
    """Refuse a model that is only fitted in memory."""
    if kind is not MosaicClassifier and kind not in SUPPORTED:
        raise ValueError(
            f"{options.data} does not fit in memory, and --model {options.model} is only fitted in memory; "
            "--model auto, linear, kmeans, clustered, local and multitask read it in chunks, or raise --memory"
        )


def train(options, kind, parameters, bar, started, seconds=None, told=None):
    """Judge, fit to all rows, write; see `_training.finish` for the same in memory.

    Parameters
    ----------
    kind : class of the estimator
    parameters : dict
    bar : Bar
    started : float
    seconds : float, optional
        For the search of --model auto.
    told : dict, optional
        Parameters for the facts.
    """
    check_model(kind, options)
    memory = options.memory or memory_free()
    with bar.step(f"looking at {options.data}") as update:
        table = look_at(options, memory, update)
    if kind is MultiTaskMixtureSVC or table.counts.min() < 5:  # folds of the calibration
        parameters = parameters | ({"calibration": None} if "calibration" in kind().get_params() else {})
    job = _Job(options, table, memory, bar)
    scores, choice = None, None
    if options.test or options.test_size:
        with tempfile.TemporaryDirectory(prefix="svmosaic-", dir=options.scratch) as folder:
            part = "all" if options.test else "train"
            first = job.surveyed(part, scale=kind is not MosaicClassifier)
            choice = job.choice(kind, for_judging(parameters), first, seconds)
            rows = job.prepared(folder, part, first, choice.scaling)
            model = job.fitted(choice, rows, first, "training")
            common = common_parameters(LinearSVC, options) | {"calibration": None}
            linear = job.fitted(replace(choice, estimator=LinearSVC(**common)), rows, first, "a linear SVM beside it")
        scores = job.judged(model, linear)
    with tempfile.TemporaryDirectory(prefix="svmosaic-", dir=options.scratch) as folder:
        last = job.surveyed("all", scale=kind is not MosaicClassifier)
        if choice is None:
            choice = job.choice(kind, parameters, last, seconds)
        calibration = {"calibration": parameters["calibration"]} if parameters.get("calibration") else {}
        choice.estimator.set_params(**calibration)
        rows = job.prepared(folder, "all", last, choice.scaling)
        pipeline = job.fitted(choice, rows, last, "fitting to all rows")
    sample = pd.DataFrame(last.sample, columns=table.names)
    extra = {
        "rows": int(table.counts.sum()), "held_out": scores, "rows_without_label": table.without_label,
        "notes": list(job.notes(last)), "chunks": rows.n_chunks, "parameters": told or {},
    }  # fmt: skip
    if choice.leaderboard is not None:
        extra["sampled_rows"] = len(last.labels)
    whole = Table(sample, last.labels, table.names, table.label)
    write_model(options, pipeline, whole, table.kinds, extra, perf_counter() - started)


@dataclass(frozen=True)
class _Choice:
    """What is to be fitted, to rows scaled how."""

    estimator: object
    scaling: Scaling | None = None
    leaderboard: list | None = None


class _Job:
    """The steps of a training, each with its bar."""

    def __init__(self, options, table, memory, bar):
        self.options, self.table, self.memory, self.bar = options, table, memory, bar

    def surveyed(self, part, scale):
        with self.bar.step("learning the preparation") as update:
            width = 8 * len(self.table.names)
            return survey(
                lambda: self.table.chunks(part, update), self.table.names, self.table.kinds, scale=scale,
                max_categories=self.options.max_categories, seed=self.options.seed,
                sample_rows=int(np.clip(self.memory / (16 * width), *SAMPLE_ROWS)),
                memory=int(self.memory * MEDIAN_SHARE),
            )  # fmt: skip

    def choice(self, kind, parameters, found, seconds):
        """The estimator; for --model auto, the best on a sample of those that can be fitted to rows on disk."""
        if kind is not MosaicClassifier:
            return _Choice(kind(**parameters))
        from svmosaic.models._model_search import Candidate, scalings_of

        with self.bar.step("choosing a model on a sample", seconds):
            rows = found.preparation.transform(found.sample)
            search = MosaicClassifier(**parameters | {"calibration": None}).fit(rows, found.labels)
        names = {cls.__name__: family for family, cls in FAMILIES.items()}
        best = next((line for line in search.leaderboard_ if line["model"] in names and not line["failure"]), None)
        scalings = scalings_of(rows, None)
        if best is None:
            candidate = Candidate("linear", 1, 1.0, next(iter(scalings)))
        else:
            candidate = Candidate(names[best["model"]], best["tiles"], best["C"], best["scaling"])
        estimator = candidate.build(self.table.counts.sum(), self.options.seed, self.options.jobs)
        if self.options.balanced:
            estimator.set_params(class_weight="balanced")
        return _Choice(estimator, scalings[candidate.scaling], search.leaderboard_)

    def prepared(self, folder, part, found, scaling):
        with self.bar.step("preparing rows") as update:
            chunks = self.table.chunks(part, update)
            return Prepared(folder, chunks, found.preparation, scaling, found.n_rows)

    def fitted(self, choice, rows, found, text):
        """A pipeline, fitted through `svmosaic.outofcore`."""
        with self.bar.step(text) as rows.update:
            rows.n_passes = 0
            estimator = outofcore.fit(choice.estimator, rows, scratch=self.options.scratch)
        if choice.scaling is not None:
            feature_map = scaled_first(choice.scaling, estimator.mosaic_.feature_map)
            estimator.mosaic_ = replace(estimator.mosaic_, feature_map=feature_map)
        return Pipeline([("prepare", found.preparation), ("classify", estimator)])

    def judged(self, model, linear):
        n_rows, right, right_linear = 0, 0, 0
        with self.bar.step("judging"):
            for X, y in self.table.chunks_to_judge_by():
                if len(y):
                    n_rows += len(y)
                    right += int((model.predict(X) == y).sum())
                    right_linear += int((linear.predict(X) == y).sum())
        if n_rows == 0:
            raise TableError("no rows to judge by: pass --test-size 0, or --test FILE")
        return {"rows": n_rows, "accuracy": right / n_rows, "linear_svm": right_linear / n_rows}

    def notes(self, found):
        most = self.options.max_categories
        size = _bytes(self.memory)
        yield f"read in chunks of {self.table.chunk_rows} rows, since it would not fit in {size} of memory"
        for name, distinct in found.n_texts.items():
            if distinct > most:
                yield f"column {name!r} holds {distinct} different texts or more: the {most} most frequent count"
        if self.table.counts.min() < 5:
            rarest = self.table.classes[self.table.counts.argmin()]
            yield f"class {str(rarest)!r} has {self.table.counts.min()} rows, too few for probabilities"


def _bytes(number):
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.3g} {unit}"
        number /= 1000
