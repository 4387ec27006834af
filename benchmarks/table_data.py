"""The CSV tables of the data folder as matrices: text columns one-hot, missing numbers by their median."""

import os
from pathlib import Path

import numpy as np

LABELS = {
    "german_credit": "risk",
    "breast_cancer": "recurrence",
    "horse_colic": "surgical_lesion",
    "mammography": "class",
    "oil_spill": "class",
    "wine_white": "quality",
}
IDENTIFIERS = {"horse_colic": ["hospital_number"], "oil_spill": ["f1"]}


def folder():
    return Path(os.environ["SVMOSAIC_DATA"]) / "tables"


def encoded(frame, *others):
    """Matrices of frames with equal columns, categories and medians from the first, and the names of their columns.

    Columns that are numbers come first; then each text of each text column, which is missing as a text of its own.
    """
    from sklearn.preprocessing import OneHotEncoder

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


def adult():
    """(X, y) for training and for testing, the names of the columns, and how many of the first are numbers."""
    import pandas

    parts = [pandas.read_csv(folder() / f"adult_{part}.csv") for part in ("train", "test")]
    y = [(part.pop("income").str.strip() == ">50K").to_numpy().astype(int) for part in parts]
    n_numbers = len(parts[0].select_dtypes("number").columns)
    (X, Z), names = encoded(*parts)
    return (X, y[0]), (Z, y[1]), names, n_numbers


def table(name):
    """(X, y) of one table; rows without a label are left out, and so are identifiers."""
    import pandas

    frame = pandas.read_csv(folder() / f"{name}.csv").dropna(subset=[LABELS[name]])
    y = np.unique(frame.pop(LABELS[name]), return_inverse=True)[1]
    (X,), _ = encoded(frame.drop(columns=IDENTIFIERS.get(name, [])))
    return X, y
