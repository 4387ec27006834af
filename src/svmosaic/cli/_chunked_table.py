"""A table larger than memory: read in chunks, several times, and fitted by `svmosaic.outofcore`."""

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import outofcore
from svmosaic.cli._io import memory_limit, read_options, size_text
from svmosaic.cli._tables import SEARCHES, TrainingTable, kept_columns
from svmosaic.explain.subject import take
from svmosaic.maps import Scaling, over_measured_rows
from svmosaic.scale.fit import SUPPORTED
from svmosaic.scale.part import Raw
from svmosaic.table.formats import Table, TableError, read_chunks, size_in_memory
from svmosaic.table.preparation import TEXT, decide_task, kinds_of, read_labels, to_input
from svmosaic.table.survey import survey

# Shares of the memory: a chunk as it is read, with the copies made of it; and the values among which medians are found.
CHUNK_SHARE, MEDIAN_SHARE = 1 / 16, 1 / 8
MOST_CHUNK_BYTES = 32 << 20
SAMPLE_ROWS = (2000, 100_000)
MOST_CLASSES = 100_000
FAMILIES = ("linear", "clustered", "local")


class TableInChunks(TrainingTable):
    """A table whose rows are read again whenever they are needed; its survey is of the rows fitted to last."""

    calibration_rows = 5  # the folds of a calibration
    many_texts = "the {most} most frequent count"

    def __init__(self, options, bar):
        super().__init__(options, bar)
        self.memory = memory_limit(options)
        self.chunk_rows = 2000  # until it is known how wide they are
        # What a search chose, and how rows are scaled for it.
        self.chosen: Any = None
        self.scaling: Any = None
        with bar.step(f"looking at {options.data}") as update:
            self._look(update, options.task)

    def _look(self, update, task):
        """The first pass: what the columns hold, and which classes there are, or that there are values."""
        options = self.options
        self.task = "regression" if task == "regression" else "classification"
        table = next(iter(self._read()))
        self.label, self.names = table.label, kept_columns(table, options.drop)
        width = max(8 * len(self.names), int(table.X.memory_usage(deep=True).sum() / len(table)))
        size = size_in_memory(options.data, self.format)
        self.chunk_rows = int(np.clip(min(MOST_CHUNK_BYTES, self.memory * CHUNK_SHARE, size) / width, 100, 1_000_000))
        # The label of a CSV file is read as text: whether all labels are numbers is known at the end.
        from_text = self.task == "classification" and self.format in ("csv", "tsv")

        def values_of(counted):
            """What counted labels stand for, missing ones as NaN."""
            there = counted.index
            return self.dialect.labels(pd.Series(there, dtype="str"))[0] if from_text else pd.Series(there)

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
            labels = labels.add(pd.Series(table.y).value_counts(dropna=False), fill_value=0)
            if len(labels) > MOST_CLASSES:
                task, self.why_task = decide_task(values_of(labels), options.task)
                if task == "regression":
                    return self._look(update, task)
                raise TableError(
                    f"the label {self.label!r} has more than {MOST_CLASSES} classes: is it the right column?"
                )
        self.kinds = [TEXT if name in text else "number" for name in self.names]
        if self.task == "classification":
            there = labels.index.notna()
            missing = missing or ({"": int(labels[~there].sum())} if not there.all() else {})
            labels = labels[there].astype(np.int64)
            values = values_of(labels).to_numpy()
            gone = pd.isna(values)
            for word, count in labels[gone].items():
                missing[word] = missing.get(word, 0) + int(count)
            counts, values = labels.to_numpy()[~gone], values[~gone]
            self.task, self.why_task = decide_task(values, options.task)
            if self.task == "classification":
                classes, place = np.unique(read_labels(values, self.task)[0], return_inverse=True)
                return self.set_labels(classes, np.bincount(place, counts).astype(np.int64), missing)
            n_values = int(counts.sum())
        elif first_row > n_values:
            missing = missing or {"": first_row - n_values}
        return self.set_labels(np.zeros(0), np.array([n_values]), missing)

    def _read(self, text=(), update=None):
        return read_chunks(
            self.options.data, self.chunk_rows, label=self.options.label, text=text, progress=update,
            **read_options(self.options),
        )  # fmt: skip

    def chunks(self, part="all", update=None):
        """(rows as a preparation takes them, labels) of "all", "train" or "held out", the same in every pass."""
        first_row = 0
        for k, table in enumerate(self._read(self.as_text, update)):
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

    @contextmanager
    def rows(self, part):
        """A function that fits a pipeline to "all" rows or to those to "train" on, which are prepared once."""
        part = "all" if self.options.test else part
        rows: Any = None
        with tempfile.TemporaryDirectory(prefix="svmosaic-", dir=self.options.scratch) as folder:

            def fit(estimator, text, seconds=None):
                nonlocal rows
                calibration = estimator.get_params().get("calibration")
                if rows is None:
                    is_search = isinstance(estimator, SEARCHES)
                    with self.bar.step("learning the preparation") as update:
                        self.survey = survey(
                            lambda: self.chunks(part, update), self.names, self.kinds, scale=not is_search,
                            max_categories=self.options.max_categories, categorical=self.options.categorical,
                            seed=self.options.seed,
                            sample_rows=int(np.clip(self.memory / (128 * len(self.names)), *SAMPLE_ROWS)),
                            memory=int(self.memory * MEDIAN_SHARE),
                        )  # fmt: skip
                    if is_search and self.chosen is None:
                        self.chosen, self.scaling = self._searched(estimator, seconds)
                    estimator = self.chosen if is_search else estimator
                    with self.bar.step("preparing rows") as update:
                        chunks = self.chunks(part, update)
                        rows = Prepared(folder, chunks, self.survey.preparation, self.scaling, self.survey.n_rows)
                    self.n_chunks = rows.n_chunks
                if "calibration" in estimator.get_params():
                    enough = min(self.survey.label_counts.values()) >= self.calibration_rows
                    estimator.set_params(calibration=calibration if enough else None)
                with self.bar.step(text) as rows.update:
                    rows.n_passes = 0
                    fitted = outofcore.fit(estimator, rows, scratch=self.options.scratch)
                fitted.mosaic_ = over_measured_rows(self.scaling, fitted.mosaic_)
                last = "regress" if is_regressor(fitted) else "classify"
                return Pipeline([("prepare", self.survey.preparation), (last, fitted)])

            yield fit

    def _searched(self, estimator, seconds):
        """The best on a sample, of the families that can be fitted to rows on disk, and how to scale rows for it."""
        if getattr(estimator, "quantiles", None) is not None:
            raise ValueError("quantiles: intervals need a table that fits in memory; raise --memory")
        families = [family for family in estimator.families or FAMILIES if family in FAMILIES]
        if not families:
            raise ValueError(f"--families: of a table that does not fit in memory, choose among {', '.join(FAMILIES)}")
        with self.bar.step("choosing a model on a sample", seconds):
            rows = self.survey.preparation.transform(self.survey.sample)
            search = clone(estimator).set_params(blend=False, families=tuple(families))
            if self.task == "classification":
                search.set_params(calibration=None)
            search.fit(rows, self.survey.labels)
        chosen = clone(search.best_estimator_)
        chosen.set_params(max_time=None, random_state=self.options.seed, n_jobs=self.options.jobs)
        if self.task == "regression":
            chosen.set_params(normalize_y=True)  # the search normalizes it once for all
        elif self.options.balanced:
            chosen.set_params(class_weight="balanced")
        if search.scaling_ is not None:
            return chosen, search.scaling_
        # Curves need no scaling, but the linear SVM next to them does: knots move along with the rows.
        scaler = StandardScaler().fit(rows)
        if chosen.pieces is not None:
            knots = zip(chosen.pieces, scaler.mean_, scaler.scale_, strict=True)
            chosen.set_params(pieces=[None if k is None else (k - mean) / scale for k, mean, scale in knots])
        return chosen, Scaling(scaler.mean_, 1.0 / scaler.scale_)

    def facts(self, preparation) -> dict:
        """More for the facts of the model, whose preparation this is."""
        size = size_text(self.memory)
        read = f"read in chunks of {self.chunk_rows} rows, since it would not fit in {size} of memory"
        facts = {"notes": [read, *self.notes(self.survey.n_texts, preparation)], "chunks": self.n_chunks}
        return facts | ({} if self.chosen is None else {"sampled_rows": len(self.survey.labels)})

    def sample(self) -> Table:
        """A sample of the rows, from which the model keeps some."""
        sample = pd.DataFrame(self.survey.sample, columns=self.names)
        return Table(sample, self.survey.labels, self.names, self.label)

    def check_model(self, kind):
        """Refuse a model that is only fitted in memory."""
        if kind not in (*SEARCHES, *SUPPORTED):
            raise ValueError(
                f"{self.options.data} does not fit in memory, and --model {self.options.model} is only fitted in "
                "memory; --model auto, linear, kmeans, clustered, local, learned and tree read it in chunks, or raise "
                "--memory"
            )


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
                needed, free = n_rows * (4 * rows.shape[1] + 40), shutil.disk_usage(self.folder).free
                if needed > free:
                    raise ValueError(
                        f"the prepared rows take {size_text(needed)} in {self.folder.parent}, where {size_text(free)} "
                        "are free: name another folder with --scratch"
                    )
            np.save(self.folder / f"X{self.n_chunks}.npy", np.ascontiguousarray(rows, dtype=np.float32))
            np.save(self.folder / f"y{self.n_chunks}.npy", y)
            self.n_chunks += 1

    def read(self, k) -> Raw:
        """Chunk k, with its labels."""
        return Raw(self.rows(k), np.load(self.folder / f"y{k}.npy"), None, f"chunk {k}")

    def rows(self, k):
        """The rows of chunk k."""
        if self.update is not None:
            self.n_passes += k == 0
            self.update(k + 1, self.n_chunks, f": pass {self.n_passes} over the rows")
        return np.load(self.folder / f"X{k}.npy")
