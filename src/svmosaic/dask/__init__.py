"""The models over Dask collections, with the names and parameters of the ordinary ones.

>>> import dask.array as da
>>> from distributed import Client
>>> from svmosaic.dask import ClusteredSVC
>>> from svmosaic.datasets import make_xor
>>> X, y = make_xor(random_state=0)
>>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
...     X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
...     model = ClusteredSVC(n_clusters=4, random_state=0).fit(X, y)
...     accuracy = model.score(X, y)
>>> bool(accuracy > 0.98)
True
>>> model.to_local()
ClusteredSVC(n_clusters=4, random_state=0)
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("svmosaic.dask needs Dask: pip install 'dask[array,dataframe,distributed]' pyarrow") from error

from svmosaic.dask.estimators import (
    ClusteredSVC,
    ClusteredSVR,
    KMeansSVC,
    KMeansSVR,
    LearnedGateSVC,
    LearnedGateSVR,
    LinearSVC,
    LinearSVR,
    LocallyLinearSVC,
    LocallyLinearSVR,
    TreeSVC,
    TreeSVR,
)
from svmosaic.dask.workers import WorkerLostError

__all__ = [
    "ClusteredSVC",
    "ClusteredSVR",
    "KMeansSVC",
    "KMeansSVR",
    "LearnedGateSVC",
    "LearnedGateSVR",
    "LinearSVC",
    "LinearSVR",
    "LocallyLinearSVC",
    "LocallyLinearSVR",
    "TreeSVC",
    "TreeSVR",
    "WorkerLostError",
]
