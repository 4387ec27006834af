"""Rows that do not fit in memory: fits and predictions by chunks, from Parquet files and memory-mapped arrays.

>>> import numpy as np
>>> from svmosaic import ClusteredSVC, outofcore
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(2000, 3)).astype(np.float32)   # numpy.load("X.npy", mmap_mode="r"), say
>>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
>>> model = outofcore.fit(ClusteredSVC(n_clusters=4, random_state=0), X, y, chunk_rows=300)
>>> same = ClusteredSVC(n_clusters=4, random_state=0).fit(X, y)
>>> bool(abs(model.objective_[0] / same.objective_[0] - 1) < 1e-3)
True
>>> predicted = np.concatenate(list(outofcore.predict(model, X, chunk_rows=300)))
>>> bool((predicted == model.predict(X)).all())
True
"""

import tempfile
from pathlib import Path

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_regressor

from svmosaic.atomic import check_output, written
from svmosaic.model.heads import head_of
from svmosaic.scale.chunks import Chunks
from svmosaic.scale.fit import fit as fit_partitions
from svmosaic.scale.sources import open_source

METHODS = ("predict", "decision_function", "predict_proba")


def fit(estimator, source, label=None, *, sample_weight=None, features=None, chunk_rows=None, scratch=None):
    """Fit to rows on disk, with the same objective and certified gap as the ordinary `fit`.

    Every round of the optimizer reads all rows once, chunk by chunk; the documentation ("Dask and files") reports how
    many rounds models need. For `LocallyLinearSVC`, which needs the most, `partial_fit` reads the rows only once.
    `LearnedGateSVC` and its regressor, which have no certificate, read all rows once per epoch, in chunks of random
    order whose rows are shuffled four chunks at a time.

    Parameters
    ----------
    estimator : estimator
        LinearSVC, KMeansSVC, ClusteredSVC, LocallyLinearSVC, TreeSVC, LearnedGateSVC, or their regressors.
        Its parameters are used; it is not changed.
    source : path or array
        A Parquet file, a folder of Parquet files, a .npy file (memory-mapped), or an array such as a `numpy.memmap`.
        Files without rows are passed over; columns must be numeric in all files, and are read in the widest type.
    label : str or array
        The column of the labels; for an array of rows, the labels, as an array or the path of a .npy file.
    sample_weight : str or array, optional
        The same for weights.
    features : list of str, optional
        The columns to use; None for all others. Not for arrays.
    chunk_rows : int, optional
        Rows per chunk; None for 64 MB of float32. A row group of a Parquet file is never split.
    scratch : path, optional
        Parent of a temporary folder for labels, codes and dual variables: about 30 bytes per row, 8 more per output
        with the hinge, 12 more per neighbor with local codes. None for the system's default.

    Returns
    -------
    A fitted estimator of the same class.

    See Also
    --------
    partial_fit : A single pass over the rows.
    predict : Predictions for rows on disk.
    """
    if label is None and not hasattr(source, "n_chunks"):
        raise ValueError("label must name the column of the labels, or hold them")
    opened = open_source(source, label, sample_weight, chunk_rows, features)
    with tempfile.TemporaryDirectory(prefix="svmosaic-", dir=scratch) as folder:
        return fit_partitions(clone(estimator), Chunks(opened, folder, effective_n_jobs(estimator.n_jobs)))


def partial_fit(estimator, source, label=None, *, sample_weight=None, features=None, chunk_rows=None, classes=None):
    """Call `estimator.partial_fit` once on rows on disk, chunk by chunk.

    Parameters
    ----------
    estimator : estimator with `partial_fit`, such as LocallyLinearSVC
        Updated in place. The rows should be in random order: the first chunk places the anchors.
    source, label, sample_weight, features, chunk_rows : see `fit`
    classes : array-like, optional
        All classes. None: determined in a pass over the labels. Not for regressors.

    Returns
    -------
    The estimator.

    See Also
    --------
    fit : A fit with a certificate.
    """
    opened = open_source(source, label, sample_weight, chunk_rows, features)
    if classes is None and not hasattr(estimator, "classes_") and not is_regressor(estimator):
        found = [np.unique(opened.read(k).y) for k in range(opened.n_chunks)]
        classes = np.unique(np.concatenate(found))
    for k in range(opened.n_chunks):
        raw = opened.read(k)
        options = {} if classes is None else {"classes": classes}
        if raw.weight is not None:
            options["sample_weight"] = raw.weight
        estimator.partial_fit(opened.inputs(k), raw.y, **options)
    return estimator


def predict(estimator, source, output=None, *, method="predict", chunk_rows=None):
    """Predict for rows on disk.

    Parameters
    ----------
    estimator : fitted estimator
    source : path or array
        As for `fit`. Columns unknown to the estimator are ignored.
    output : path, optional
        Output file, none of those that are read: a .npy file, or with any other name a Parquet file with a column
        "prediction" (with several outputs, one per class or target). Labels of text are of fixed width in .npy files.
    method : {"predict", "decision_function", "predict_proba"}
    chunk_rows : int, optional
        Rows per chunk; see `fit`.

    Returns
    -------
    Without `output`, an iterator over the predictions of the chunks; else the number of rows written.

    See Also
    --------
    fit : Fits to rows on disk.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    names = getattr(estimator, "feature_names_in_", None)
    opened = open_source(source, chunk_rows=chunk_rows, features=None if names is None else list(names))
    work = getattr(estimator, method)
    found = (work(opened.inputs(k)) for k in range(opened.n_chunks))
    if opened.n_chunks == 0:  # an empty answer, of the type and the width of others
        blank = np.zeros((1, estimator.n_features_in_))
        if names is not None:
            import pandas

            blank = pandas.DataFrame(blank, columns=list(names))
        found = iter([work(blank)[:0]])
    if output is None:
        return found
    check_output(output, getattr(opened, "files", ()))
    with written(output) as path:
        return _write_npy(path, found, estimator) if path.suffix == ".npy" else _write_parquet(path, found, estimator)


def _write_npy(path, chunks, estimator) -> int:
    """Append chunks to a .npy file, whose header is written anew at the end."""
    n_rows, dtype = 0, None
    with Path(path).open("wb") as file:
        for chunk in chunks:
            if dtype is None:
                dtype = chunk.dtype
                if dtype.hasobject:
                    fixed = estimator.classes_.astype(str)
                    dtype, lost = fixed.dtype, estimator.classes_[fixed != estimator.classes_]
                    if len(lost):  # such as text that ends in a zero character
                        raise TypeError(f"a .npy file cannot hold the label {lost[0]!r}: write a Parquet file")
                _npy_header(file, dtype, (0, *chunk.shape[1:]))
            file.write(np.ascontiguousarray(chunk, dtype=dtype).tobytes())
            n_rows += len(chunk)
        file.seek(0)
        _npy_header(file, dtype, (n_rows, *chunk.shape[1:]))
    return n_rows


def _npy_header(file, dtype, shape):
    # The header is padded for a first axis of any length, so that it can be written twice.
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)


def _write_parquet(path, chunks, estimator) -> int:
    import pyarrow
    import pyarrow.parquet

    writer, n_rows = None, 0
    try:
        for chunk in chunks:
            if chunk.ndim == 1:
                # Of objects, one type for all chunks, also for one without rows.
                kind = pyarrow.array(estimator.classes_).type if chunk.dtype.hasobject else None
                table = pyarrow.table({"prediction": pyarrow.array(chunk, type=kind)})
            else:
                names = head_of(estimator).output_names if is_regressor(estimator) else estimator.classes_
                table = pyarrow.table({str(name): chunk[:, c] for c, name in enumerate(names)})
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
            n_rows += len(chunk)
    finally:
        if writer is not None:
            writer.close()
    return n_rows
