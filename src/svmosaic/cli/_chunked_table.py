"""A table larger than memory: read in chunks, several times, and fitted by `svmosaic.outofcore`."""

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import MosaicClassifier, MosaicRegressor, outofcore
from svmosaic.cli._io import memory_limit, read_options, size_text
from svmosaic.cli._tables import TrainingTable, kept_columns, require_label, take
from svmosaic.cli._tasks import decide_task, read_labels
from svmosaic.maps import Ranks, Scaling, over_measured_rows
from svmosaic.scale.fit import SUPPORTED
from svmosaic.scale.part import Raw
from svmosaic.table.formats import Table, TableError, format_of, read_chunks, size_in_memory
from svmosaic.table.preparation import TEXT, clean_labels, kinds_of, to_input
from svmosaic.table.survey import survey

# Shares of the memory: a chunk as it is read, with the copies made of it; and the values among which medians are found.
CHUNK_SHARE, MEDIAN_SHARE = 1 / 16, 1 / 8
MOST_CHUNK_BYTES = 32 << 20
SAMPLE_ROWS = (2000, 100_000)
MOST_CLASSES = 100_000
FAMILIES = ("linear", "clustered", "local")
SEARCHES = (MosaicClassifier, MosaicRegressor)


class TableInChunks(TrainingTable):
    """A table whose rows are read again whenever they are needed.

    Attributes
    ----------
    chunk_rows : int
    """

    calibration_rows = 5  # the folds of a calibration
    many_texts = "the {most} most frequent count"

    def __init__(self, options, bar):
        super().__init__(options, bar)
        self.memory = memory_limit(options)
        self.chunk_rows = 2000  # until it is known how wide they are
        self._choice, self._last, self._n_chunks = None, None, 0
        with bar.step(f"looking at {options.data}") as update:
            self._look(update)

    def _look(self, update, task=None):
        """The first pass: what the columns hold, and which classes there are, or that there are values."""
        options = self.options
        self.task = "regression" if "regression" in (task, options.task) else "classification"
        size = size_in_memory(options.data, format_of(options.data, options.format))
        table = next(iter(self._read()))
        require_label(table.y, table.feature_names)
        self.label = table.label
        self.names = [str(name) for name in kept_columns(table.feature_names, options.drop)]
        width = max(8 * len(self.names), int(table.X.memory_usage(deep=True).sum() / len(table)))
        self.chunk_rows = int(np.clip(min(MOST_CHUNK_BYTES, self.memory * CHUNK_SHARE, size) / width, 100, 1_000_000))
        # The label of a CSV file is read as text: whether all labels are numbers is known at the end.
        from_text = self.task == "classification" and format_of(options.data, options.format) in ("csv", "tsv")
        text, labels, missing, first_row, n_values = set(), pd.Series(dtype=np.int64), {}, 0, 0
        for table in self._read([self.label] if from_text else [], update):
            X = table.X[self.names]
            kinds = kinds_of(X)
            text |= {n for n, kind in zip(self.names, kinds, strict=True) if kind == TEXT and X[n].notna().any()}
            self.numbers_as_text.add(X, kinds, first_row)
            first_row += len(table)
            for word, count in table.missing_labels.items():
                missing[word] = missing.get(word, 0) + count
            if self.task == "regression":
                n_values += len(read_labels(table.y, self.task)[0])
                continue
            counted = pd.Series(table.y).value_counts(dropna=False)
            labels = labels.add(counted, fill_value=0)
            if len(labels) > MOST_CLASSES:
                task, self.why_task = decide_task(self._label_values(labels, from_text), options.task)
                if task == "regression":
                    return self._look(update, task)
                raise TableError(
                    f"the label {self.label!r} has more than {MOST_CLASSES} classes: is it the right column?"
                )
        self.kinds = [TEXT if name in text else "number" for name in self.names]
        if self.task == "regression":
            self.set_values(range(n_values), missing or {"": first_row - n_values} if first_row > n_values else {})
        else:
            self._count_classes(labels, missing, from_text)

    def _count_classes(self, labels, missing, from_text):
        """Remember the classes; if the label holds numbers that are no classes, that there are values."""
        there = labels.index.notna()
        missing = missing or ({"": int(labels[~there].sum())} if not there.all() else {})
        found, counts = self._label_values(labels[there], from_text), labels[there].to_numpy(dtype=np.int64)
        for word, count in zip(labels[there].index[found.isna()], counts[found.isna()], strict=True):
            missing[word] = missing.get(word, 0) + int(count)
        values, counts = found[found.notna()].to_numpy(), counts[found.notna()]
        self.task, self.why_task = decide_task(values, self.options.task)
        if self.task == "regression":
            self.set_values(range(int(counts.sum())), missing)
            return
        clean, _ = clean_labels(values)
        classes, place = np.unique(clean, return_inverse=True)
        self.set_classes(classes, np.bincount(place, counts).astype(np.int64), missing)

    def _label_values(self, labels, from_text):
        """What counted labels stand for, missing ones as NaN."""
        return self.dialect.labels(pd.Series(labels.index, dtype="str"))[0] if from_text else pd.Series(labels.index)

    def _read(self, text=(), update=None):
        return read_chunks(
            self.options.data, self.chunk_rows, label=self.options.label, text=text, progress=update,
            **read_options(self.options),
        )  # fmt: skip

    def chunks(self, part="all", update=None):
        """(rows as a preparation takes them, labels) of "all", "train" or "held out", the same in every pass."""
        first_row = 0
        for k, table in enumerate(self._read(self.text_columns + self.text_labels, update)):
            X = to_input(table.X, self.names, self.kinds, first_row, self.missing_texts)
            y, there = read_labels(table.y, self.task)
            first_row += len(there)
            if part != "all":
                drawn = np.random.default_rng([self.options.seed, k]).random(len(there)) < self.options.test_size
                there_too = there & (drawn if part == "held out" else ~drawn)
                y, there = y[there_too[there]], there_too
            X = take(X, there)
            X = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X
            yield X, y.astype(self.classes.dtype, copy=False)

    def held_out(self):
        """The rows held out."""
        return self.chunks("held out")

    def test_chunks(self, rows=None):
        """Rows of the --test file, as many at a time as of the table."""
        return super().test_chunks(rows or self.chunk_rows)

    @contextmanager
    def rows(self, part):
        """A function that fits a pipeline to "all" rows or to those to "train" on, which are prepared once."""
        part = "all" if self.options.test else part
        found: dict[str, Any] = {}
        with tempfile.TemporaryDirectory(prefix="svmosaic-", dir=self.options.scratch) as folder:

            def fit(estimator, text, seconds=None):
                if not found:
                    found["survey"] = self._surveyed(part, scale=not isinstance(estimator, SEARCHES))
                    choice = self._chosen(estimator, found["survey"], seconds)
                    found["rows"] = self._prepared(folder, part, found["survey"], choice.scaling)
                else:
                    choice = replace(self._choice, estimator=self._calibrated(estimator, estimator, found["survey"]))
                self._last, self._n_chunks = found["survey"], found["rows"].n_chunks
                return self._fitted(choice, found["rows"], found["survey"].preparation, text)

            yield fit

    def _surveyed(self, part, scale):
        with self.bar.step("learning the preparation") as update:
            width = 8 * len(self.names)
            return survey(
                lambda: self.chunks(part, update), self.names, self.kinds, scale=scale,
                max_categories=self.options.max_categories, categorical=self.options.categorical,
                seed=self.options.seed,
                sample_rows=int(np.clip(self.memory / (16 * width), *SAMPLE_ROWS)),
                memory=int(self.memory * MEDIAN_SHARE),
            )  # fmt: skip

    def _chosen(self, estimator, found, seconds):
        """The estimator; for --model auto, the best on a sample of those that can be fitted to rows on disk."""
        if not isinstance(estimator, SEARCHES):
            self._choice = _Choice(estimator)
        elif self._choice is None:
            self._choice = self._searched(estimator, found, seconds)
        self._calibrated(self._choice.estimator, estimator, found)
        return self._choice

    def _calibrated(self, chosen, asked, found):
        """The estimator with the calibration of another, if these rows contain enough of each class."""
        if "calibration" not in chosen.get_params():
            return chosen
        calibration = asked.get_params().get("calibration")
        if min(found.label_counts.values()) < self.calibration_rows:
            calibration = None
        return chosen.set_params(calibration=calibration)

    def _searched(self, estimator, found, seconds):
        """The best on a sample, of the families that can be fitted to rows on disk, and how to scale rows for it."""
        if getattr(estimator, "quantiles", None) is not None:
            raise ValueError("quantiles: intervals need a table that fits in memory; raise --memory")
        with self.bar.step("choosing a model on a sample", seconds):
            rows = found.preparation.transform(found.sample)
            search = clone(estimator).set_params(blend=False, families=FAMILIES)
            if self.task == "classification":
                search.set_params(calibration=None)
            search.fit(rows, found.labels)
        best = search.best_estimator_
        chosen = clone(best).set_params(max_time=None, random_state=self.options.seed, n_jobs=self.options.jobs)
        if self.task == "regression":
            chosen.set_params(normalize_y=True)  # the search normalizes it once for all
        elif self.options.balanced:
            chosen.set_params(class_weight="balanced")
        if search.scaling_ is not None:
            return _Choice(chosen, search.scaling_, searched=True)
        # Curves need no scaling, but the linear SVM next to them does: knots move along with the rows.
        scaler = StandardScaler().fit(rows)
        scaling = Scaling(scaler.mean_, 1.0 / scaler.scale_)
        if chosen.pieces is not None:
            knots = zip(chosen.pieces, scaler.mean_, scaler.scale_, strict=True)
            chosen.set_params(pieces=[None if k is None else (k - mean) / scale for k, mean, scale in knots])
        return _Choice(chosen, scaling, searched=True)

    def _prepared(self, folder, part, found, scaling):
        with self.bar.step("preparing rows") as update:
            return Prepared(folder, self.chunks(part, update), found.preparation, scaling, found.n_rows)

    def _fitted(self, choice, rows, preparation, text):
        with self.bar.step(text) as rows.update:
            rows.n_passes = 0
            estimator = outofcore.fit(choice.estimator, rows, scratch=self.options.scratch)
        estimator.mosaic_ = over_measured_rows(choice.scaling, estimator.mosaic_)
        return Pipeline([("prepare", preparation), ("regress" if is_regressor(estimator) else "classify", estimator)])

    def facts(self, preparation) -> dict:
        """More for the facts of the model, whose preparation this is."""
        size = size_text(self.memory)
        read = f"read in chunks of {self.chunk_rows} rows, since it would not fit in {size} of memory"
        facts = {"notes": [read, *self.notes(self._last.n_texts, preparation)], "chunks": self._n_chunks}
        return facts | ({"sampled_rows": len(self._last.labels)} if self._choice.searched else {})

    def sample(self) -> Table:
        """A sample of the rows, from which the model keeps some."""
        return Table(
            pd.DataFrame(self._last.sample, columns=self.names), self._last.labels, self.names, self.label
        )  # fmt: skip


@dataclass(frozen=True)
class _Choice:
    """What is to be fitted, to rows scaled how."""

    estimator: Any
    scaling: Scaling | Ranks | None = None
    searched: bool = False


class Prepared:
    """Rows that were prepared once and written to a folder, one file per chunk: what `outofcore.fit` reads from."""

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
        """Chunk k, with its labels."""
        return Raw(self.rows(k), np.load(self._path("y", k)), None, f"chunk {k}")

    def rows(self, k):
        """The rows of chunk k."""
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
            f"the prepared rows take {size_text(needed)} in {folder.parent}, where {size_text(free)} are free: "
            "name another folder with --scratch"
        )


def check_model(kind, options):
    """Refuse a model that is only fitted in memory."""
    if kind not in (*SEARCHES, *SUPPORTED):
        raise ValueError(
            f"{options.data} does not fit in memory, and --model {options.model} is only fitted in memory; "
            "--model auto, linear, kmeans, clustered, local, learned, tree and multitask read it in chunks, or raise "
            "--memory"
        )
