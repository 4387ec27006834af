"""The data of the benchmarks: papers' sets and everyday tables, each split in one place.

Tables come in two forms: `Table`, whose one-hot rows mark missing numbers, and matrices by `encoded`, which fill them
with the median.
"""

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from setting import load
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

PAPERS = (
    "heart", "vehicle", "diabetes", "german", "svmguide1", "satimage", "pendigits", "usps", "letter", "ijcnn1", "skin",
    "mnist", "covtype",
)  # fmt: skip
# Training rows, if not all.
CUT = {"mnist": 10_000, "covtype": 50_000}
# Sets without an official split that are too small for one split to say much.
SMALL = ("heart", "vehicle", "diabetes", "german")
# Table, label, columns that are identifiers or another answer, and the metric.
TABLES = {
    "german_credit": ("german_credit", "risk", (), "accuracy"),
    "breast_cancer": ("breast_cancer", "recurrence", (), "accuracy"),
    "horse_colic": (
        "horse_colic", "surgical_lesion", ("outcome", "hospital_number", "lesion1", "lesion2", "lesion3", "cp_data"),
        "accuracy",
    ),
    "mammography": ("mammography", "class", (), "average_precision"),
    "oil_spill": ("oil_spill", "class", ("f1",), "average_precision"),
    "wine_white": ("wine_white", "quality", (), "accuracy"),
}  # fmt: skip
IDENTIFIERS = {"horse_colic": ["hospital_number"], "oil_spill": ["f1"]}  # the columns that `encoded_table` leaves out
BUNDLED = {"wine": load_wine, "breast_cancer_wisconsin": load_breast_cancer, "digits": load_digits}
PARTS = {"tables": tuple(TABLES), "papers": PAPERS, "adult": ("adult",), "covertype7": ("covertype7",)}
# Seconds for MosaicClassifier, if not its default.
BUDGETS = {"adult": 60.0, "covertype7": 60.0}


@dataclass
class Table:
    """Columns of a table: arrays of numbers, with nan for missing, or of text, with "" for missing."""

    columns: dict
    y: np.ndarray

    def take(self, rows) -> "Table":
        return Table({name: values[rows] for name, values in self.columns.items()}, self.y[rows])

    @property
    def text(self) -> list:
        return [name for name, values in self.columns.items() if values.dtype == object]

    def frame(self):
        """A pandas DataFrame with categories for text."""
        frame = pd.DataFrame(self.columns)
        for name in self.text:
            frame[name] = frame[name].where(frame[name] != "", None).astype("category")
        return frame


def one_hot(train, test):
    """Both parts as matrices: medians and an indicator for missing numbers, a column per category of text."""
    parts = [[], []]
    for name, values in train.columns.items():
        for part, here in zip(parts, (values, test.columns[name]), strict=True):
            if values.dtype == object:
                part += [(here == level).astype(float) for level in np.unique(values)]
                continue
            known = values[~np.isnan(values)]
            part.append(np.where(np.isnan(here), np.median(known) if len(known) else 0.0, here))
            if len(known) < len(values):
                part.append(np.isnan(here).astype(float))
    return np.column_stack(parts[0]), np.column_stack(parts[1])


def read_csv(path, label, left_out=()) -> Table:
    """A table with a header; a column is one of numbers if all its fields are numbers or empty."""
    with open(path, newline="") as file:
        names, *rows = csv.reader(file)
    columns = {
        name: np.array(values, dtype=object) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    y = columns.pop(label)
    for name, values in list(columns.items()):
        if name in left_out:
            del columns[name]
            continue
        try:
            columns[name] = np.array([float(value) if value else np.nan for value in values])
        except ValueError:
            continue
    kept = y != ""
    return Table(columns, y.astype(str)).take(kept)


def tables_folder() -> Path:
    return Path(os.environ["SVMOSAIC_DATA"]) / "tables"


def table_split(name, split) -> tuple[Table, Table]:
    """Training and test part of a table: 70 and 30 % with the shares of the classes, by the number of the split."""
    file, label, left_out, _ = TABLES[name]
    table = read_csv(tables_folder() / f"{file}.csv", label, left_out)
    label = table.y if np.unique(table.y, return_counts=True)[1].min() > 1 else None
    train, test = train_test_split(np.arange(len(table.y)), test_size=0.3, stratify=label, random_state=split)
    return table.take(train), table.take(test)


def adult() -> tuple[Table, Table]:
    """The official parts."""
    return tuple(read_csv(tables_folder() / f"adult_{part}.csv", "income") for part in ("train", "test"))


def encoded(frame, *others):
    """Matrices of frames with equal columns, categories and medians from the first, and the names of their columns.

    Columns that are numbers come first; then each text of each text column, which is missing as a text of its own.
    """
    numbers = list(frame.select_dtypes("number").columns)
    texts = [name for name in frame if name not in numbers]
    median = frame[numbers].median()
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)

    def matrix(part, transform):
        found = [part[numbers].fillna(median).to_numpy(float)]
        if texts:
            found.append(transform(part[texts].fillna("missing").astype(str)))
        return np.ascontiguousarray(np.hstack(found))

    matrices = [matrix(frame, encoder.fit_transform), *(matrix(part, encoder.transform) for part in others)]
    names = [*numbers, *(encoder.get_feature_names_out(texts) if texts else [])]
    return matrices, [str(name) for name in names]


def encoded_adult():
    """(X, y) for training and for testing, the names of the columns, and how many of the first are numbers."""
    parts = [pd.read_csv(tables_folder() / f"adult_{part}.csv") for part in ("train", "test")]
    y = [(part.pop("income").str.strip() == ">50K").to_numpy().astype(int) for part in parts]
    n_numbers = len(parts[0].select_dtypes("number").columns)
    (X, Z), names = encoded(*parts)
    return (X, y[0]), (Z, y[1]), names, n_numbers


def encoded_table(name):
    """(X, y) of one table; rows without a label are left out, and so are identifiers."""
    file, label, _, _ = TABLES[name]
    frame = pd.read_csv(tables_folder() / f"{file}.csv").dropna(subset=[label])
    y = np.unique(frame.pop(label), return_inverse=True)[1]
    (X,), _ = encoded(frame.drop(columns=IDENTIFIERS.get(name, [])))
    return X, y


def part(X, y, n_rows, seed=0):
    """At most so many rows, with the shares of the classes."""
    if len(y) <= n_rows:
        return X, y
    X, _, y, _ = train_test_split(X, y, train_size=n_rows, stratify=y, random_state=seed)
    return X, y


def paper_split(name, split):
    """X_train, y_train, X_test, y_test: the official parts, or a tenth of the rows as the test part."""
    data = load(name, random_state=split)
    X, y = part(data.X_train, data.y_train, CUT.get(name, len(data.y_train)))
    return X, y, data.X_test, data.y_test


def covertype_split(split):
    """All rows and seven classes: 80 % to train."""
    data = load("covtype", random_state=split)
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=split)
    return X, y, X_test, y_test


def bundled_split(name, split):
    """A set that scikit-learn brings."""
    X, y = BUNDLED[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    return X, y, X_test, y_test


def digits_split(test_size=0.3):
    """X_train, X_test, y_train, y_test of scikit-learn's digits, for --quick."""
    return train_test_split(*load_digits(return_X_y=True), test_size=test_size, random_state=0)


def means_of(records) -> dict:
    """Records of a set, a system and a budget, averaged over splits."""
    groups: dict = {}
    for r in records:
        timed = r["set"] in BUDGETS and "budget" in r
        groups.setdefault((r["set"], f"{r['model']}, {r['budget']:g} s" if timed else r["model"]), []).append(r)
    found = {}
    for key, group in groups.items():
        found[key] = group[0] | {
            field: round(float(np.mean([r[field] for r in group])), 4)
            for field in group[0]
            if isinstance(group[0][field], float)
        } | {"splits": len(group), "std": round(float(np.std([r["score"] for r in group])), 3)}  # fmt: skip
    return found
