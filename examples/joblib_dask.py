"""A search on a Dask cluster
===========================

A grid search whose fits run on a Dask cluster, without changes to the estimator.

scikit-learn distributes the fits of a search over the current joblib backend. Each fit is an ordinary fit on one
worker, so the data must fit in memory. For a single fit of data that do not, see `svmosaic.dask`.

    python examples/joblib_dask.py

For Ray, call `register_ray()` from `ray.util.joblib`, and use "ray" instead of "dask".
"""

import joblib
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import ClusteredSVC


def main():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), ClusteredSVC(4, loss="squared_hinge", random_state=0))
    grid = {"clusteredsvc__C": [0.001, 0.01, 0.1], "clusteredsvc__global_reg": [0.1, 1.0]}
    # The address of a real cluster goes into Client("tcp://...").
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        joblib.parallel_config("dask", client=client),
    ):
        search = GridSearchCV(model, grid, cv=3, n_jobs=-1).fit(X, y)
    print(f"{search.best_score_:.4f} with {search.best_params_}")


if __name__ == "__main__":
    main()
