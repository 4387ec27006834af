"""The table that a model is trained on, in memory: its columns, its classes, rows to fit to and rows to judge by."""

import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager

import numpy as np
import pandas as pd
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from svmosaic.cli._io import listening, memory_limit, read_options, size_text
from svmosaic.cli._tasks import decide_task, read_labels
from svmosaic.estimators._hold_out import hold_out
from svmosaic.explain.quality import answers_of, quality_of
from svmosaic.table.formats import Dialect, Table, TableError, format_of, name_of, read_chunks, read_table
from svmosaic.table.numbers_as_text import NumbersAsText
from svmosaic.table.preparation import TEXT, build_preparation, kinds_of, to_input


class TrainingTable(ABC):
    """What `train` and `tune` know of their table, whether its rows are in memory or read in chunks.

    Attributes
    ----------
    options : what the command was asked
    names, kinds : list of str, of the features
    label : str
    classes : ndarray, sorted
    counts : ndarray of int, rows of each class
    missing_labels : dict of str to int, rows without a label by the text that they hold
    task : {"classification", "regression"}
        With regression there are no classes.
    why_task : str
        Why it is that one, if nobody asked for it.
    numbers_as_text : NumbersAsText
    bar : Bar
    """

    task = "classification"
    why_task = ""

    names: list
    kinds: list
    label: str | None
    classes: np.ndarray
    counts: np.ndarray
    missing_labels: dict

    # With fewer rows of a class there are no probabilities.
    calibration_rows = 2
    # What becomes of a column with many texts.
    many_texts = "the mean of the target for each counts"

    def __init__(self, options, bar):
        self.options, self.bar = options, bar
        self.dialect: Dialect = read_options(options)["dialect"]
        self.numbers_as_text = NumbersAsText(self.dialect)

    def set_values(self, y, missing_labels):
        """Remember that there are values instead of classes."""
        if len(y) == 0:
            raise TableError(f"the label column {self.label!r} is empty{missing_text(missing_labels, ': ')}")
        self.classes, self.counts, self.missing_labels = np.zeros(0), np.array([len(y)]), missing_labels

    def set_classes(self, classes, counts, missing_labels):
        """Remember the classes; refuse labels that nothing can be learned from."""
        if len(classes) == 0:
            raise TableError(f"the label column {self.label!r} is empty{missing_text(missing_labels, ': ')}")
        if len(classes) == 1:
            raise TableError(
                f"all rows have the same label, {str(classes[0])!r}: there is nothing to classify"
                f"{missing_text(missing_labels, '; rows without a label: ')}"
            )
        n_rows = int(counts.sum())
        if len(classes) > max(100, n_rows // 2):
            raise TableError(
                f"the label {self.label!r} has {len(classes)} classes in {n_rows} rows: is it the right column?"
            )
        self.classes, self.counts, self.missing_labels = classes, counts, missing_labels

    @property
    def n_rows(self) -> int:
        """Rows with a label."""
        return int(self.counts.sum())

    @property
    def is_judged(self) -> bool:
        """Whether there are rows to judge by."""
        return bool(self.options.test or self.options.test_size)

    @property
    def missing_texts(self) -> list | None:
        """What counts as missing in columns of text; None for formats that mark what is missing themselves."""
        return self.dialect.missing if format_of(self.options.data, self.options.format) in ("csv", "tsv") else None

    @property
    def text_columns(self) -> list:
        """Columns to be read as text."""
        return [name for name, kind in zip(self.names, self.kinds, strict=True) if kind == TEXT]

    @property
    def text_labels(self) -> list:
        """The label column, if classes are text."""
        return [str(self.label)] if self.classes.dtype.kind == "U" else []

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
        found = [
            quality_of(classes, y, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
            for parts in answers
        ]
        quality = {"quality": {"model": found[0], "baseline": found[1]}}
        if classes is None:
            return {"rows": len(y), **{name: found[0][name] for name in ("r2", "mae", "rmse")}, **quality}
        return {
            "rows": len(y), "accuracy": found[0]["accuracy"], "linear_svm": found[1]["accuracy"], **quality,
        }  # fmt: skip

    @abstractmethod
    def held_out(self):
        """(rows, labels) held out, some at a time."""

    def test_chunks(self, rows=50_000):
        """Rows of the --test file, some at a time."""
        options, name = self.options, name_of(self.options.test)
        label = self.label if options.label is not None else None
        first_row = 0
        for table in read_chunks(
            options.test, rows, label=label, text=self.text_columns + self.text_labels, n_features=len(self.names),
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
        """What a person would want to look at, once a preparation is fitted.

        Parameters
        ----------
        n_texts : dict of str to int
            How many different texts each text column holds.
        preparation : the first step of the pipeline that was fitted
        """
        most = self.options.max_categories
        dropped = getattr(preparation, "dropped_", {})  # sparse rows, which have no text, are only scaled
        categories = {column.name for column in getattr(preparation, "columns_", ()) if column.kind == TEXT}
        if self.why_task:
            yield self.why_task
        if self.task == "classification" and self.counts.min() < self.calibration_rows:
            rarest, n = self.classes[self.counts.argmin()], int(self.counts.min())
            yield f"class {str(rarest)!r} has {'one row only' if n == 1 else f'{n} rows'}, too few for probabilities"
        odd = self.numbers_as_text.notes(self.text_columns)
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

    Attributes
    ----------
    table : Table, without the rows that have no label
    X, y : all rows, as a preparation takes them
    train : pair of rows and labels, those not held out
    """

    def __init__(self, options, bar):
        super().__init__(options, bar)
        with bar.step(f"reading {options.data}"):
            table = read_table(options.data, label=options.label, **read_options(options))
            require_label(table.y, table.feature_names)
            table = _dropped(table, options.drop)
            self.label = table.label
            self.task, self.why_task = decide_task(table.y, getattr(options, "task", "classification"))
            self.y, there = read_labels(table.y, self.task)
            missing = table.missing_labels or ({"": int((~there).sum())} if not there.all() else {})
            if self.task == "regression":
                self.set_values(self.y, missing)
            else:
                self.set_classes(*np.unique(self.y, return_counts=True), missing)
            self.names, self.kinds = [str(name) for name in table.feature_names], kinds_of(table.X)
            self.numbers_as_text.add(table.X, self.kinds)
            self.X = take(to_input(table.X, self.names, self.kinds, missing_texts=self.missing_texts), there)
            self.table = Table(take(table.X, there), self.y, table.feature_names, table.label)
            self.train, self._held_out = (self.X, self.y), None
            if options.test_size and not options.test:
                label = np.unique(self.y, return_inverse=True)[1] if self.task == "classification" else None
                self.train, self._held_out = _split(self.X, self.y, options, label)

    def held_out(self):
        """The rows held out, in one piece."""
        yield self._held_out

    @contextmanager
    def rows(self, part):
        """A function that fits a pipeline to "all" rows or to those to "train" on."""
        X, y = self.train if part == "train" else (self.X, self.y)

        def fit(estimator, text, seconds=None):
            with self.bar.step(text, seconds) as update:
                return fitted(estimator, X, y, self.kinds, self.options, update)

        yield fit

    def facts(self, preparation) -> dict:
        """More for the facts of the model, whose preparation this is."""
        text = [place for place, kind in enumerate(self.kinds) if kind == TEXT]
        n_texts = {self.names[place]: self.X.iloc[:, place].nunique() for place in text}
        return {"notes": list(self.notes(n_texts, preparation))}

    def sample(self) -> Table:
        """Rows as they were read, from which the model keeps a sample."""
        return self.table


def require_label(y, names):
    """Raise if a table has no labels yet."""
    if y is None:
        columns = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise TableError(f"name the column to predict with --label: {columns}")


def kept_columns(names, drop) -> list:
    """The columns that are not dropped."""
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


def _dropped(table, columns):
    if not columns:
        return table
    if not isinstance(table.X, pd.DataFrame):
        raise TableError("--drop needs a table with named columns")
    names = kept_columns(table.feature_names, columns)
    return Table(table.X[names], table.y, names, table.label, table.missing_labels)


def _split(X, y, options, label=None):
    """Rows to train on and rows held out, by class where there are classes and enough rows of each."""
    too_few = TableError(f"{len(y)} rows are too few to hold some out: pass --test-size 0, or --test FILE")
    if len(y) < 3:
        raise too_few
    train, test = hold_out(len(y), int(np.ceil(options.test_size * len(y))), options.seed, label)
    if label is not None and len(np.unique(label[train])) < 2:
        raise too_few
    return (take(X, train), y[train]), (take(X, test), y[test])


def take(X, rows):
    """Some rows of a frame, an array or a sparse matrix, by a mask or by their indices."""
    if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all():
        return X
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def fitted(estimator, X, y, kinds, options, update=None):
    """Preparation and estimator, fitted; a model that scales by itself gets rows that are not scaled.

    Parameters
    ----------
    update : callable, optional
        Of a step of the bar, which is called at iterations.
    """
    if "calibration" in estimator.get_params() and np.unique(y, return_counts=True)[1].min() < 2:
        estimator.set_params(calibration=None)  # which needs two rows of each class
    scale = type(estimator).__name__ not in ("MosaicClassifier", "MosaicRegressor")
    dense = not estimator.__sklearn_tags__().input_tags.sparse
    preparation = build_preparation(
        X, scale=scale, max_categories=options.max_categories, categorical=options.categorical, dense=dense,
        task="regression" if is_regressor(estimator) else "classification",
    )  # fmt: skip
    if dense or not hasattr(X, "indptr"):
        _check_dense_size(X, kinds, options)
    with listening(estimator, update), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column .* is left out", UserWarning)  # a note says so
        last = "regress" if is_regressor(estimator) else "classify"
        return Pipeline([("prepare", preparation), (last, estimator)]).fit(X, y)


def _check_dense_size(X, kinds, options):
    """Refuse rows that only fit in memory as long as they are sparse."""
    text = [X.iloc[:, place].nunique() for place, kind in enumerate(kinds) if kind == TEXT]
    width = X.shape[1] + sum(min(count, options.max_categories) for count in text)
    size, limit = 8 * X.shape[0] * width, memory_limit(options)
    if size > limit:
        raise ValueError(
            f"--model {options.model} takes dense rows, which are {size_text(size)} of {width} columns, more than "
            f"{size_text(limit)} of memory: choose another model, lower --max-categories, --drop columns of text, or "
            "raise --memory"
        )
