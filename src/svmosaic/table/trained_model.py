"""A model together with all that its rows need: what `svmosaic train` writes and the other commands read."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from svmosaic.explain.contributions import Table as ColumnTable
from svmosaic.explain.contributions import count_regions, explain, regions_table
from svmosaic.export.files import ModelFileError, load, save
from svmosaic.model.heads import head_of
from svmosaic.table.formats import Table, TableError, to_csr
from svmosaic.table.preparation import NUMBER, TEXT, TablePreparation, to_input

SAMPLE_ROWS = 2000


@dataclass(eq=False)
class TrainedModel:
    """A fitted pipeline, the columns it was fitted to, and its held-out scores.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" and "classify", or "regress".
    feature_names : ndarray of str
        Columns of the training table, label excluded.
    kinds : list of str
        "number" or "text" for each.
    sparse : bool
        Whether rows are sparse, from a LIBSVM file: columns are then identified by index, and missing ones are zero.
    label : str or None
    facts : dict
        Information to show: number of rows, held-out scores, name of the file and more.
    sample : dict
        Up to 2,000 training rows as they were read, and their labels; see `sample_rows`.
    missing_texts : list of str or None
        For a model trained on a text file: the values that count as missing in text columns, after whitespace is
        stripped. Rows from other sources are treated in the same way, here and in exported models. None: text as it
        is.

    See Also
    --------
    open_model : Opens one from a file.
    """

    pipeline: Any
    feature_names: np.ndarray
    kinds: list
    sparse: bool
    label: str | None
    facts: dict = field(default_factory=dict)
    sample: dict = field(default_factory=dict)
    missing_texts: list | None = None

    @property
    def classes(self):
        """The classes, sorted; None for a model that predicts values."""
        return getattr(self.estimator, "classes_", None)

    @property
    def task(self) -> str:
        """What the model does: "classification" or "regression"."""
        return "regression" if self.classes is None else "classification"

    @property
    def estimator(self):
        """The estimator, which sees prepared rows."""
        return self.pipeline.steps[-1][1]

    @property
    def text_labels(self) -> list[str]:
        """The label column, if classes are text."""
        is_text = self.classes is not None and self.classes.dtype.kind == "U"
        return [self.label] if self.label is not None and is_text else []

    @property
    def table_preparation(self):
        """The preparation, if it is a `TablePreparation`; None for sparse rows."""
        preparation = self.pipeline.steps[0][1]
        return preparation if isinstance(preparation, TablePreparation) else None

    @property
    def prepared_names(self) -> list[str]:
        """Names of the features that the estimator sees."""
        table = self.table_preparation
        return [str(name) for name in (self.feature_names if table is None else table.get_feature_names_out())]

    def rows(self, X, name="the table", first_row=0):
        """Return the rows of a table in the form that the pipeline takes, after checking the columns.

        Parameters
        ----------
        X : Table, DataFrame, ndarray or sparse matrix
        name : str
            What to call the table in an error.
        first_row : int
            Rows of the table before these, for the same purpose.
        """
        names = None
        if isinstance(X, Table):
            X, names = X.X, X.feature_names
        if sparse.issparse(X) != self.sparse:
            kind = "sparse rows (LIBSVM)" if self.sparse else f"columns {_list(self.feature_names)}"
            raise TableError(
                f"the model was trained on {kind}, and {name} holds {'dense' if self.sparse else 'sparse'} rows"
            )
        if self.sparse:
            n_features = len(self.feature_names)
            if X.shape[1] > n_features:
                raise TableError(f"the model was trained on {n_features} features; {name} has {X.shape[1]}")
            X = to_csr(X)
            return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(X, columns=names or [f"x{f}" for f in range(X.shape[1])])
        missing = [n for n in self.feature_names if n not in X.columns]
        if missing:
            raise TableError(
                f"the model was trained on columns {_list(self.feature_names)}; {name} lacks {_list(missing)}"
            )
        return to_input(X, [str(n) for n in self.feature_names], self.kinds, first_row, self.missing_texts)

    def predict(self, X, name="the table"):
        """Predict classes or values for the rows of a table."""
        return self.pipeline.predict(self.rows(X, name))

    def predict_proba(self, X, name="the table"):
        """Predict probabilities of the classes, if the model was calibrated."""
        self.check_calibrated()
        return self.pipeline.predict_proba(self.rows(X, name))

    def check_calibrated(self):
        """Raise an error if the model has no probabilities."""
        if self.task == "regression":
            raise ModelFileError(f"this {type(self.estimator).__name__} predicts values, which have no probabilities")
        if getattr(self.estimator, "calibration_", None) is None:
            remedy = "--calibration temperature" if "calibration" in self.estimator.get_params() else "--model auto"
            raise ModelFileError(f"this {type(self.estimator).__name__} has no probabilities: train with {remedy}")

    def prepared(self, X, name="the table"):
        """Return the rows that the estimator sees, after the preparation."""
        return self.pipeline[:-1].transform(self.rows(X, name))

    def explain(self, X, name="the table"):
        """Explain a few rows in the columns of the table, as an `Explanation`."""
        return self.explain_rows(self.rows(X, name))

    def explain_rows(self, rows):
        """Explain rows in the form that `rows` returns."""
        prepared = self.pipeline[:-1].transform(rows)
        account = explain(self.estimator.mosaic_, prepared, head_of(self.estimator), self.prepared_names)
        table = self.table_preparation
        return account if table is None else account.grouped(*table.groups, table.shown(rows))

    def regions(self):
        """One line per tile: a `Table` of columns, on the training rows, or, if these are not stored, on the sample."""
        groups = None if self.table_preparation is None else self.table_preparation.groups
        head = head_of(self.estimator)
        return regions_table(self.estimator.mosaic_, self._region_counts(), head, self.prepared_names, groups=groups)

    def _region_counts(self):
        """Counts of the training rows, or, if these are not stored, of the sample."""
        mosaic, head = self.estimator.mosaic_, head_of(self.estimator)
        counts = getattr(self.estimator, "region_counts_", None)
        if counts is None:
            X, y = self.sample_rows()
            rows = self.prepared(X)
            label, found = (head.truth(values) for values in (y, self.estimator.predict(rows)))
            counts = count_regions(mosaic, head, mosaic.gate.code(rows, None), label, found)
        return counts

    def describe_regions(self, max_regions=12):
        """Regions in words, found on the sample, with what is known of their training rows; largest first.

        Parameters
        ----------
        max_regions : int or None, default=12
            If there are more regions, the most similar ones are merged.

        Returns
        -------
        explain.Table
            As `svmosaic.explain.describe_regions` gives it, with the columns of `regions_`.
        """
        from svmosaic.explain.regions import find_regions
        from svmosaic.explain.subject import Subject

        subject = Subject(self, self.sample_rows()[0])
        regions, counts = find_regions(subject, max_regions), self._region_counts()
        counts = {name: part for name, part in counts.items() if name != "spread"}  # only of tiles with weights
        group = {name: np.stack([part[tiles].sum(axis=0) for tiles in regions.tiles]) for name, part in counts.items()}
        tiles = np.array([", ".join(map(str, tiles)) for tiles in regions.tiles], dtype=object)
        known = subject.head.region_columns(group)
        return ColumnTable({"tiles": tiles, **known, **regions.columns(subject)})

    def keep_sample(self, X, y, seed=0):
        """Remember up to 2,000 rows of a table as they were read, and their labels, as plain arrays for the file."""
        n_rows = X.shape[0]
        chosen = np.sort(np.random.default_rng(seed).choice(n_rows, min(n_rows, SAMPLE_ROWS), replace=False))
        if isinstance(X, pd.DataFrame):
            names, kinds = [str(n) for n in self.feature_names], np.array(self.kinds)
            rows = to_input(X.iloc[chosen], names, self.kinds, missing_texts=self.missing_texts)
            self.sample = {
                "numbers": rows.iloc[:, kinds == NUMBER].to_numpy(np.float64),
                "text": rows.iloc[:, kinds == TEXT].to_numpy(dtype=str),
            }
        elif sparse.issparse(X):
            rows = to_csr(X[chosen])
            self.sample = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        else:
            self.sample = {"rows": X[chosen]}
        self.sample["labels"] = np.asarray(y)[chosen]

    def sample_rows(self):
        """Return the stored rows and labels, as they were read from the table."""
        sample, labels = self.sample, self.sample["labels"]
        if "rows" in sample:
            return sample["rows"], labels
        if "indptr" in sample:
            parts = (sample["data"], sample["indices"], sample["indptr"])
            return sparse.csr_array(parts, shape=(len(labels), len(self.feature_names))), labels
        numbers, texts = iter(sample["numbers"].T), iter(sample["text"].T)
        columns = {}
        for name, kind in zip(self.feature_names, self.kinds, strict=True):
            text = None if kind == NUMBER else next(texts)
            columns[str(name)] = next(numbers) if text is None else np.where(text == "", np.nan, text.astype(object))
        return pd.DataFrame(columns), labels

    def save(self, path):
        """Write the model to a file, completely or not at all."""
        save(self, path)


def open_model(path) -> TrainedModel:
    """Open a model that `svmosaic train` wrote.

    See Also
    --------
    svmosaic.load : Opens a file written by `save`.
    """
    try:
        model = load(path)
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {path}") from None
    except OSError as error:
        raise ModelFileError(f"{path} could not be read: {error.strerror or error}") from error
    if not isinstance(model, TrainedModel):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__} without its columns, saved from Python: open it with svmosaic.load"
        )
    return model


def _list(names):
    shown = [str(name) for name in names[:10]]
    return ", ".join(shown) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
