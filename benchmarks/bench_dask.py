"""More than one machine's way of fitting, and more rows than memory: the objective, what travels, memory, speed.

Three parts:

    cluster   1, 2 and 4 worker processes against the local model on ijcnn1 and covertype (class 2 against the rest;
              all 522,911 training rows), three ways to partition the rows, one of them with a
              single class a partition
    traffic   bytes that travel in a round, for more rows and for more tiles
    disk      fit and predict from Parquet files of 5, 10 and 20 million rows x 50 features: rows/s, peak memory

    python benchmarks/bench_dask.py            all of it; writes benchmarks/results/dask.json
    python benchmarks/bench_dask.py --quick    small sizes, nothing is written; without data sets, generated ones
    python benchmarks/bench_dask.py --parts disk --folder BIG  one part; 5 GB of files go to a temporary folder in BIG
"""

import multiprocessing
import os
import tempfile
from pathlib import Path
from time import perf_counter

import common
import numpy as np
from setting import Dataset, data_folder, load
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

import svmosaic
from svmosaic.scale.part import Raw

N_FEATURES, N_REGIONS, ROW_GROUP, FILE_ROWS = 50, 20, 200_000, 1_000_000
# The data sets' objective must be reached to this share, and their accuracy to so many points.
OBJECTIVE_TOL, ACCURACY_POINTS = 1e-3, 0.2


def dataset(name, quick):
    """Standardized rows; for --quick a few thousand of them, generated where there are no files."""
    if data_folder() is None:
        X, y = make_classification(4000, 20, n_informative=12, n_clusters_per_class=6, random_state=0)
        found = Dataset(X[:3000].astype(np.float32), y[:3000], X[3000:].astype(np.float32), y[3000:])
    else:
        found = load(name)
    X, y, Z, z = found.X_train, found.y_train, found.X_test, found.y_test
    if name == "covtype" and y.max() > 1:  # one of seven classes
        y, z = (y == 2).astype(int), (z == 2).astype(int)
    if quick:
        X, y, Z, z = X[-3000:], y[-3000:], Z[:2000], z[:2000]
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(Z), z


def models(quick):
    """Name, parameters, and how a fitted model's gate is handed to another."""
    cells = lambda model: {"clusterer": model.cluster_centers_}  # noqa: E731
    codes = lambda model: {"anchors": model.anchors_, "code_scale": model.code_scale_}  # noqa: E731
    tight = {"tol": 1e-4, "random_state": 0}
    listed = [
        ("LinearSVC", {**tight}, lambda model: {}),
        ("ClusteredSVC", {**tight, "tol": 1e-5, "n_clusters": 8, "loss": "squared_hinge"}, cells),
        ("ClusteredSVC", {**tight, "n_clusters": 8}, cells),
        ("KMeansSVC", {**tight, "n_clusters": 8}, cells),
        ("LocallyLinearSVC", {**tight, "n_anchors": 20, "n_neighbors": 4, "C": 0.1}, codes),
    ]
    return listed[1:2] if quick else listed


def chunkings(y, n_parts):
    """The order of the rows and the sizes of the partitions, by name."""
    n = len(y)
    even = [n // n_parts] * (n_parts - 1)
    odd = [1, n // 50, n // 2]
    order = np.argsort(y, kind="stable")
    ones = np.bincount(np.unique(y, return_inverse=True)[1])
    return {
        "even": (np.arange(n), (*even, n - sum(even))),
        "uneven": (np.arange(n), (*odd, n - sum(odd))),
        "one class a partition": (order, tuple(int(c) for c in ones)),
    }


def cluster_part(quick):
    """Objective and accuracy on a cluster against the local model."""
    import dask.array as da
    from distributed import Client, LocalCluster

    import svmosaic.dask

    records, faults = [], []
    data = {name: dataset(name, quick) for name in (["ijcnn1"] if quick else ["ijcnn1", "covtype"])}
    local = {}
    for name, (X, y, Z, z) in data.items():
        for k, (model, options, _) in enumerate(models(quick)):
            start = perf_counter()
            fitted = getattr(svmosaic, model)(**options).fit(X, y)
            local[name, k] = fitted, fitted.score(Z, z), perf_counter() - start
    for n_workers in (1, 2) if quick else (1, 2, 4):
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            for name, (X, y, Z, z) in data.items():
                for k, (model, options, gate) in enumerate(models(quick)):
                    fitted, accuracy, seconds = local[name, k]
                    ways = chunkings(y, 2 * n_workers)
                    if quick and n_workers == 1:
                        ways = {"even": ways["even"]}
                    for way, (order, sizes) in ways.items():
                        arrays = da.from_array(X[order], (sizes, -1)), da.from_array(y[order], (sizes,))
                        dX, dy = client.persist(list(arrays))
                        start = perf_counter()
                        found = getattr(svmosaic.dask, model)(**options, **gate(fitted)).fit(dX, dy)
                        least = fitted.objective_[-1]
                        record = {
                            "data": name, "rows": len(y),
                            "model": model + (" " + options["loss"] if "loss" in options else ""),
                            "workers": n_workers, "partitions": way, "objective": float(np.ravel(found.objective_)[-1]),
                            "difference": float(abs(found.objective_[-1] - least) / abs(least)),
                            "gap": float(found.dual_gap_.max() / found.objective_.max()),
                            "accuracy": found.to_local().score(Z, z), "local_accuracy": accuracy,
                            "rounds": len(found.rounds_), "sent": max(r.sent for r in found.rounds_),
                            "returned": max(r.returned for r in found.rounds_ if r.name != "rows_at"),
                            "seconds": round(perf_counter() - start, 2), "local_seconds": round(seconds, 2),
                        }  # fmt: skip
                        records.append(record)
                        points = 100 * abs(record["accuracy"] - accuracy)
                        if record["difference"] > OBJECTIVE_TOL or points > ACCURACY_POINTS:
                            faults.append(record)
                        common.show(record)
    return records, {"outside_tolerance": len(faults), "runs": len(records)}


def traffic_part(quick):
    """Bytes a round, for more rows and more tiles."""
    from svmosaic.scale import fit
    from svmosaic.scale.chunks import Chunks

    records = []
    n_rows = 4000 if quick else 200_000
    stream = Stream(0)
    for rows, tiles in [(n_rows, 8), (2 * n_rows, 8), (4 * n_rows, 8), (n_rows, 16), (n_rows, 32)]:
        X, y = stream.rows(0, rows)
        # What is counted is what would travel: the same functions, arguments and answers as on a cluster.
        with tempfile.TemporaryDirectory() as folder:
            held = Chunks(Quarters(X, y), folder)
            fit(svmosaic.ClusteredSVC(tiles, loss="squared_hinge", tol=1e-3, random_state=0), held)
        solver = [r for r in held.rounds if r.name == "answer"]
        records.append(
            {"rows": rows, "tiles": tiles, "features": N_FEATURES, "rounds": len(held.rounds),
             "largest_sent": max(r.sent for r in solver), "largest_returned": max(r.returned for r in solver),
             "mean_returned": round(np.mean([r.returned for r in solver])),
             "sample_for_kmeans": sum(4 * r.returned for r in held.rounds if r.name == "rows_at")}
        )  # fmt: skip
        common.show(records[-1])
    by_rows = records[2]["largest_returned"] / records[0]["largest_returned"]
    by_tiles = records[4]["largest_returned"] / records[0]["largest_returned"]
    print(f"4 times the rows: {by_rows:.3f} times the bytes; 4 times the tiles: {by_tiles:.3f} times the bytes")
    if by_rows > 1.05:
        raise SystemExit("what travels grows with the rows")
    return records, {"bytes_for_4_times_rows": by_rows, "bytes_for_4_times_tiles": by_tiles}


class Quarters:
    """Rows in four chunks."""

    n_chunks = 4

    def __init__(self, X, y):
        self.X, self.y = X, y

    def read(self, k):
        return Raw(self.rows(k), self.y[k::4], None, str(k))

    def rows(self, k):
        return self.X[k::4]


class Stream:
    """Rows around 20 centers; near each, another hyperplane tells the classes apart. 5 % of the labels are wrong."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.centers = rng.standard_normal((N_REGIONS, N_FEATURES), dtype=np.float32)
        self.normals = rng.standard_normal((N_REGIONS, N_FEATURES), dtype=np.float32)

    def rows(self, number, n_rows):
        rng = np.random.default_rng([1, number])
        region = rng.integers(N_REGIONS, size=n_rows)
        offset = 0.7 * rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
        y = np.einsum("ij,ij->i", offset, self.normals[region]) > 0
        return self.centers[region] + offset, (y ^ (rng.random(n_rows) < 0.05)).astype(np.int8)


def write_rows(folder, n_rows, file_rows, group_rows):
    """Parquet files, a row group at a time."""
    import pyarrow
    import pyarrow.parquet

    stream, number = Stream(0), 0
    for k in range(-(-n_rows // file_rows)):
        writer = None
        for _ in range(file_rows // group_rows):
            X, y = stream.rows(number, group_rows)
            number += 1
            table = pyarrow.table({**{f"x{f}": X[:, f] for f in range(N_FEATURES)}, "label": y})
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(folder / f"{k:04d}.parquet", table.schema)
            writer.write_table(table, row_group_size=group_rows)
        writer.close()


def disk_child(folder, output, scratch, n_jobs):
    """Seconds, peak memory and accuracy of a fit and a prediction from files."""
    from svmosaic import outofcore
    from svmosaic.scale.chunks import Chunks

    passes = []
    walk = Chunks._parts

    def counted(self):
        passes.append(1)
        return walk(self)

    Chunks._parts = counted
    model = svmosaic.ClusteredSVC(16, loss="squared_hinge", random_state=0, n_jobs=n_jobs)
    start = perf_counter()
    model = outofcore.fit(model, folder, "label", scratch=scratch)
    fitted = perf_counter() - start
    peak = common._memory("VmHWM")
    start = perf_counter()
    n_rows = outofcore.predict(model, folder, output)
    predicted = perf_counter() - start
    X, y = Stream(0).rows(10**6, 20_000)
    return {
        "rows": n_rows, "passes": len(passes), "fit_seconds": round(fitted, 2),
        "fit_rows_per_second": round(n_rows / fitted),
        "rows_read_per_second": round(len(passes) * n_rows / fitted), "predict_seconds": round(predicted, 2),
        "predict_rows_per_second": round(n_rows / predicted), "fit_peak_megabytes": round(peak / 1e6),
        "peak_megabytes": round(common._memory("VmHWM") / 1e6), "gap": float(model.dual_gap_[0] / model.objective_[0]),
        "accuracy": float(np.mean((model.mosaic_.decision_function(X)[:, 0] > 0) == y)),
    }  # fmt: skip


def files_by_size(room, sizes, file_rows, group_rows):
    """Number of rows and a folder of links to so many of the files, for each size."""
    whole = Path(room) / "whole"
    whole.mkdir()
    write_rows(whole, sizes[-1], file_rows, group_rows)
    for n_rows in sizes:
        folder = Path(room) / str(n_rows)
        folder.mkdir()
        for file in sorted(whole.iterdir())[: n_rows // file_rows]:
            os.link(file, folder / file.name)
        yield n_rows, folder


def disk_part(quick, where, n_jobs):
    """Fit and predict from files larger and larger."""
    sizes = (20_000, 40_000) if quick else (5_000_000, 10_000_000, 20_000_000)
    file_rows, group_rows = (10_000, 5_000) if quick else (FILE_ROWS, ROW_GROUP)
    records = []
    with tempfile.TemporaryDirectory(prefix="svmosaic-bench-", dir=where) as room:
        for _, folder in files_by_size(room, sizes, file_rows, group_rows):
            found = in_a_process(disk_child, folder, Path(room) / "out.npy", room, n_jobs)
            on_disk = sum(f.stat().st_size for f in folder.iterdir()) // 10**6
            records.append(found | {"megabytes_on_disk": on_disk})
            common.show(records[-1])
    growth = records[-1]["peak_megabytes"] / records[0]["peak_megabytes"]
    slowdown = records[0]["fit_rows_per_second"] * records[-1]["passes"] / (
        records[-1]["fit_rows_per_second"] * records[0]["passes"]
    )  # fmt: skip
    print(
        f"{sizes[-1] // sizes[0]} times the rows: {growth:.2f} times the peak memory, {slowdown:.2f} times the seconds "
        "a row and pass"
    )
    if not quick and (growth > 1.25 or records[-1]["peak_megabytes"] > 2000):
        raise SystemExit("peak memory is not flat, or above 2 GB")
    return records, {"memory_growth": growth, "seconds_a_row_and_pass": slowdown}


def in_a_process(work, *arguments):
    """What `work` returns in a new process, whose peak memory is all its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_sent, args=(there, work, arguments))
    child.start()
    there.close()
    try:
        return here.recv()
    finally:
        child.join()


def _sent(pipe, work, arguments):
    pipe.send(work(*arguments))


def main():
    options = common.arguments(
        __doc__,
        parts=("cluster", "traffic", "disk"),
        folder={"help": "where the temporary folder for the files is made (8 GB)"},
        jobs={"type": int, "default": 1, "help": "threads for the files"},
    )
    parts = {
        "cluster": lambda: cluster_part(options.quick),
        "traffic": lambda: traffic_part(options.quick),
        "disk": lambda: disk_part(options.quick, options.folder, options.jobs),
    }
    failed = []
    for name in options.parts:
        print(f"\n{name}")
        records, summary = parts[name]()
        print(f"  {summary}")
        if summary.get("outside_tolerance"):
            failed.append(name)
        common.write_results("dask", name, records, summary, options)
    if failed:
        raise SystemExit(f"outside the tolerance: {', '.join(failed)}")


if __name__ == "__main__":
    main()
