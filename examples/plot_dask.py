"""One fit on several workers
==========================

The rows are partitions of a Dask array on the workers of a cluster (here, in this process). Only sums are sent between
the workers, and the result is the ordinary estimator, with the same objective as an ordinary fit.
"""

# %%
import dask.array as da
import matplotlib.pyplot as plt
from distributed import Client

from svmosaic import ClusteredSVC, dask
from svmosaic.datasets import make_banana
from svmosaic.explain.displays import RegionDisplay

X, y = make_banana(2000, noise=0.18, random_state=0)
local = ClusteredSVC(8, loss="squared_hinge", random_state=0).fit(X, y)

# %%
with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="ERROR") as client:
    rows, labels = da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500)
    model = dask.ClusteredSVC(8, loss="squared_hinge", random_state=0, client=client).fit(rows, labels).to_local()
print(f"objectives: {local.objective_[0]:.6f} in memory, {model.objective_[0]:.6f} in four partitions")

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
for axis, (title, fitted) in zip(axes, {"in memory": local, "in partitions": model}.items(), strict=True):
    RegionDisplay.from_estimator(fitted, X, y, ax=axis, legend=False)
    axis.set_title(title)
plt.show()
