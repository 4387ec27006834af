"""The table that a model is trained on, in memory: its columns, its classes, rows to fit to and rows to judge by."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from svmosaic import MosaicClassifier, MosaicRegressor
from svmosaic.cli._io import listening, memory_limit, read_options, size_text
from svmosaic.estimators._hold_out import hold_out
from svmosaic.explain.quality import answers_of, quality_of
from svmosaic.explain.subject import take
from svmosaic.table.formats import Dialect, Table, TableError, format_of, name_of, read_chunks, read_table
from svmosaic.table.numbers_as_text import NumbersAsText
from svmosaic.table.preparation import TEXT, build_preparation, decide_task, kinds_of, read_labels, to_input

SEARCHES = (MosaicClassifier, MosaicRegressor)


class TrainingTable:
    """What `train` knows of its table, whether its rows are in memory or read in chunks.

    A subclass has `held_out()`; `rows(part)`, a context of a function that fits a pipeline to "all" rows or to those to
    "train" on; `facts(preparation)`, more for the facts of the model; and `sample()`, a `Table` from which the model
    keeps some rows. It knows the `n_rows` with a label, and the `counts` of the `classes`; a regression has none.
    `missing_labels` are the texts of rows without a label, and how many hold each; `missing_texts` what counts as
    missing in columns of text, or None for formats that mark it themselves; `why_task` is why the task is that one, if
    nobody asked for it.
    """

    names: list
    kinds: list
    label: str | None

    chunk_rows = 50_000  # of the --test file
    # With fewer rows of a class there are no probabilities.
    calibration_rows = 2
    # What becomes of a column with many texts.
    many_texts = "the mean of the target for each counts"

    def __init__(self, options, bar):
        self.options, self.bar = options, bar
        self.task, self.why_task = "classification", ""
        self.format = format_of(options.data, options.format)
        self.dialect: Dialect = read_options(options)["dialect"]
        self.missing_texts = self.dialect.missing if self.format in ("csv", "tsv") else None
        self.numbers_as_text = NumbersAsText(self.dialect)

    def set_labels(self, classes, counts, missing_labels):
        """Remember the classes, none for values, and how many rows each has; refuse labels that teach nothing."""
        self.classes, self.counts, self.missing_labels = classes, counts, missing_labels
        self.n_rows = int(counts.sum())
        if self.n_rows == 0:
            raise TableError(f"the label column {self.label!r} is empty{missing_text(missing_labels, ': ')}")
        if len(classes) == 1:
            raise TableError(
                f"all rows have the same label, {str(classes[0])!r}: there is nothing to classify"
                f"{missing_text(missing_labels, '; rows without a label: ')}"
            )
        if len(classes) > max(100, self.n_rows // 2):
            raise TableError(
                f"the label {self.label!r} has {len(classes)} classes in {self.n_rows} rows: is it the right column?"
            )

    @property
    def as_text(self) -> list:
        """The columns to be read as text, and the label column if classes are text."""
        columns = [name for name, kind in zip(self.names, self.kinds, strict=True) if kind == TEXT]
        return columns + ([str(self.label)] if self.classes.dtype.kind == "U" else [])

    def judged(self, model, linear) -> dict:
        """How good two models are on the rows held out, which they are asked about chunk by chunk."""
        truth: list = []
        answers: tuple[list, list] = ([], [])
        with self.bar.step("judging"):
            for X, y in self.test_chunks() if self.options.test else self.held_out():
                if len(y):
                    truth.append(y)
                    for one, parts in zip((model, linear), answers, strict=True):
                        parts.append(answers_of(one, X))
        if not truth:
            raise TableError("no rows to evaluate on: pass --test-size 0, or --test FILE")
        y = np.concatenate(truth)
        classes = getattr(model, "classes_", None)
        found, baseline = (
            quality_of(classes, y, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
            for parts in answers
        )
        if classes is None:
            scores = {name: found[name] for name in ("r2", "mae", "rmse")}
        else:
            scores = {"accuracy": found["accuracy"], "linear_svm": baseline["accuracy"]}
        return {"rows": len(y), **scores, "quality": {"model": found, "baseline": baseline}}

    def held_out(self):
        """(rows, labels) held out, some at a time."""
        raise NotImplementedError

    def test_chunks(self):
        """Rows of the --test file, some at a time."""
        options, name = self.options, name_of(self.options.test)
        label = self.label if options.label is not None else None
        first_row = 0
        for table in read_chunks(
            options.test, self.chunk_rows, label=label, text=self.as_text, n_features=len(self.names),
            header=not options.no_header, dialect=self.dialect,
        ):  # fmt: skip
            lacking = [column for column in self.names if column not in table.feature_names]
            if lacking:
                raise TableError(f"{name} lacks the column {lacking[0]!r} of {name_of(options.data)}")
            if table.y is None:
                raise TableError(f"{name} has no labels")
            y, there = read_labels(table.y, self.task)
            X = take(to_input(table.X, self.names, self.kinds, first_row, self.missing_texts), there)
            first_row += len(there)
            yield X, y

    def notes(self, n_texts, preparation):
        """What a person would want to look at, once a preparation is fitted; n_texts counts those of each column."""
        most = self.options.max_categories
        dropped = getattr(preparation, "dropped_", {})  # sparse rows, which have no text, are only scaled
        categories = {column.name for column in getattr(preparation, "columns_", ()) if column.kind == TEXT}
        if self.why_task:
            yield self.why_task
        if self.task == "classification" and self.counts.min() < self.calibration_rows:
            rarest, n = self.classes[self.counts.argmin()], int(self.counts.min())
            yield f"class {str(rarest)!r} has {'one row only' if n == 1 else f'{n} rows'}, too few for probabilities"
        odd = self.numbers_as_text.notes(n_texts)
        yield from odd.values()
        for name, distinct in n_texts.items():
            if name in odd:
                continue
            texts = f"column {name!r} holds {distinct} different texts"
            if dropped.get(name) == "identifier":
                yield f"{texts}, nearly one per row, so it is left out (--categorical {name!r} keeps it)"
            elif distinct > most and name in categories:  # and not dates or numbers, written as text
                yield f"{texts}: {self.many_texts.format(most=most)}"


class TableInMemory(TrainingTable):
    """A table that was read whole.

    `X` and `y` are all rows as a preparation takes them, and `train` those not held out; `table` are the rows as they
    were read, and `n_texts` counts the different texts of each text column.
    """

    def __init__(self, options, bar):
        super().__init__(options, bar)
        with bar.step(f"reading {options.data}"):
            table = read_table(options.data, label=options.label, **read_options(options))
            if options.drop and not isinstance(table.X, pd.DataFrame):
                raise TableError("--drop needs a table with named columns")
            self.label, self.names = table.label, kept_columns(table, options.drop)
            X = table.X[self.names] if options.drop else table.X
            self.kinds = kinds_of(X)
            self.task, self.why_task = decide_task(table.y, options.task)
            self.y, there = read_labels(table.y, self.task)
            missing = table.missing_labels or ({"": int((~there).sum())} if not there.all() else {})
            if self.task == "regression":
                self.set_labels(np.zeros(0), np.array([len(self.y)]), missing)
            else:
                self.set_labels(*np.unique(self.y, return_counts=True), missing)
            self.numbers_as_text.add(X, self.kinds)
            self.X = take(to_input(X, self.names, self.kinds, missing_texts=self.missing_texts), there)
            text = [place for place, kind in enumerate(self.kinds) if kind == TEXT]
            self.n_texts = {self.names[place]: self.X.iloc[:, place].nunique() for place in text}
            self.table = Table(take(X, there), self.y, self.names, self.label)
            self.train, y = (self.X, self.y), self.y
            if options.test_size and not options.test:
                # By class, where there are classes and enough rows of each.
                classes = np.unique(y, return_inverse=True)[1] if self.task == "classification" else None
                n_test = int(np.ceil(options.test_size * len(y)))
                train, test = hold_out(len(y), n_test, options.seed, classes) if len(y) > 2 else ([], [])
                if len(train) == 0 or (classes is not None and len(np.unique(classes[train])) < 2):
                    raise TableError(f"{len(y)} rows are too few to hold some out: pass --test-size 0, or --test FILE")
                self.train, self._test = ((take(self.X, part), y[part]) for part in (train, test))

    def held_out(self):
        """The rows held out, in one piece."""
        yield self._test

    @contextmanager
    def rows(self, part):
        """A function that fits a pipeline to "all" rows or to those to "train" on."""
        X, y = self.train if part == "train" else (self.X, self.y)

        def fit(estimator, text, seconds=None):
            """Preparation and estimator, fitted; a model that scales by itself gets rows that are not scaled."""
            if "calibration" in estimator.get_params() and np.unique(y, return_counts=True)[1].min() < 2:
                estimator.set_params(calibration=None)  # which needs two rows of each class
            most, dense = self.options.max_categories, not estimator.__sklearn_tags__().input_tags.sparse
            if dense or not hasattr(X, "indptr"):
                width = X.shape[1] + sum(min(count, most) for count in self.n_texts.values())
                size, limit = 8 * X.shape[0] * width, memory_limit(self.options)
                if size > limit:
                    raise ValueError(
                        f"--model {self.options.model} takes dense rows, which are {size_text(size)} of {width} "
                        f"columns, more than {size_text(limit)} of memory: choose another model, lower "
                        "--max-categories, --drop columns of text, or raise --memory"
                    )
            preparation = build_preparation(
                X, scale=not isinstance(estimator, SEARCHES), max_categories=most,
                categorical=self.options.categorical, dense=dense, task=self.task,
            )  # fmt: skip
            last = "regress" if is_regressor(estimator) else "classify"
            with self.bar.step(text, seconds) as update, listening(estimator, update), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "column .* is left out", UserWarning)  # a note says so
                return Pipeline([("prepare", preparation), (last, estimator)]).fit(X, y)

        yield fit

    def facts(self, preparation) -> dict:
        """More for the facts of the model, whose preparation this is."""
        return {"notes": list(self.notes(self.n_texts, preparation))}

    def sample(self) -> Table:
        """Rows as they were read, from which the model keeps a sample."""
        return self.table


def kept_columns(table, drop) -> list:
    """The columns that are not dropped, of a table that must have labels."""
    names = [str(name) for name in table.feature_names]
    if table.y is None:
        columns = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise TableError(f"name the column to predict with --label: {columns}")
    for column in drop:
        if column not in names:
            raise TableError(f"there is no column {column!r} to drop")
    kept = [name for name in names if name not in drop]
    if not kept:
        raise TableError("--drop leaves no columns to learn from")
    return kept


def missing_text(missing, lead) -> str:
    """The texts that were taken as missing labels, where there are others than empty text."""
    if not any(missing):
        return ""
    counts = (f"{f'{text!r}' if text else 'empty'}: {count}" for text, count in missing.items())
    return f"{lead}{', '.join(counts)} (--na says which texts are missing)"
