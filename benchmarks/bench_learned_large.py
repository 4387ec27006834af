"""LearnedGateSVC in memory, from files in chunks, and averaged over Dask workers: accuracy, peak memory, what travels.

Two parts, which become parts of benchmarks/results/dask.json:

    learned          covertype, class 2 against the rest, 200,000 training rows drawn at random: in memory, from a
                     Parquet file in chunks, and on two worker processes with several numbers of steps between averages;
                     test accuracy over three seeds, all with the same settings, fixed beforehand
    learned_memory   generated rows in Parquet files, more and more of them: peak memory must stay the same

Each fit from files is made in a process of its own, whose peak memory is all its own.

    python benchmarks/bench_learned_large.py            both parts
    python benchmarks/bench_learned_large.py --quick    small sizes, nothing is written; without data sets, generated
    python benchmarks/pages.py dask                      puts what is stored into docs/dask.md
"""

import tempfile
from pathlib import Path

import common  # before NumPy: it gives every library one thread

# isort: split
import numpy as np
from bench_dask import N_FEATURES, Stream, dataset, files_by_size, in_a_process

from svmosaic import LearnedGateSVC, outofcore

TRAIN_ROWS, CHUNK_ROWS, WORKERS, SEEDS = 200_000, 10_000, 2, 3
STEPS = (4, 16, 64, 256)
# Flat: no more than this share above the peak of the smallest number of rows.
GROWTH = 1.1


def settings(quick):
    """Of all fits to covertype."""
    return {"n_tiles": 16 if quick else 200, "max_iter": 2 if quick else 10, "early_stopping": False}


def in_memory(path, options):
    """A model of all rows of a file, and peak memory."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    y = table.column("label").to_numpy()
    X = np.column_stack([column.to_numpy() for column in table.drop_columns("label").columns])
    del table
    return LearnedGateSVC(**options).fit(X, y), common._memory("VmHWM")


def in_chunks(path, options, chunk_rows):
    """The same without ever holding all rows."""
    model = outofcore.fit(LearnedGateSVC(**options), path, "label", chunk_rows=chunk_rows)
    return model, common._memory("VmHWM")


def covertype_part(quick):
    """Accuracy of three ways to learn from the same rows."""
    import pyarrow
    import pyarrow.parquet

    X, y, Z, z = dataset("covtype", quick)
    order = np.random.default_rng(0).permutation(len(y))[:TRAIN_ROWS]
    X, y, Z = X[order].astype(np.float32), y[order], Z.astype(np.float32)
    chunk_rows = 300 if quick else CHUNK_ROWS
    records = []

    def add(way, seed, model, **more):
        accuracy = round(100 * float(np.mean((scores_of(model, Z) > 0) == (z == 1))), 3)
        record = {"way": way, "seed": seed, "rows": len(y), "accuracy": accuracy, **more}
        records.append(record)
        common.show(record)

    seeds = range(1 if quick else SEEDS)
    with tempfile.TemporaryDirectory(prefix="svmosaic-bench-") as room:
        path = Path(room) / "rows.parquet"
        table = pyarrow.table({**{f"x{f}": X[:, f] for f in range(X.shape[1])}, "label": y.astype(np.int8)})
        pyarrow.parquet.write_table(table, path, row_group_size=chunk_rows)
        del table
        for seed in seeds:
            options = settings(quick) | {"random_state": seed}
            for way, *work in (
                ("in memory", in_memory, path, options),
                ("in chunks", in_chunks, path, options, chunk_rows),
            ):
                model, peak = in_a_process(*work)
                add(way, seed, model, peak_megabytes=round(peak / 1e6))
    for n_steps, seed, model in on_workers(X, y, seeds, quick):
        moves = [r for r in model.rounds_ if r.name == "learn_part"]
        add(
            "averaged", seed, model.local_, workers=WORKERS, steps_between_averages=n_steps,
            averages=len(moves), sent_kilobytes=round(max(r.sent for r in moves) / 1e3),
        )  # fmt: skip
    groups = common.grouped(records, "way", "steps_between_averages")
    means = [
        [way, n or "", round(float(np.mean([r["accuracy"] for r in some])), 2)] for (way, n), some in groups.items()
    ]
    common.print_table("covertype", ["way", "steps between averages", "accuracy %"], means)
    return records, {**settings(quick), "chunk_rows": chunk_rows, "means": means}


def scores_of(model, X):
    """Scores for the second of two classes; of an array, though the model knows names."""
    return model.mosaic_.decision_function(X)[:, 0]


def on_workers(X, y, seeds, quick):
    """Steps between averages, seed and model of fits on a cluster of worker processes."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from svmosaic.dask import LearnedGateSVC as DaskLearnedGateSVC

    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = -(-len(y) // WORKERS)
        rows_there, labels_there = client.persist([da.from_array(X, (rows, -1)), da.from_array(y, rows)])
        for n_steps in STEPS[:1] if quick else STEPS:
            for seed in seeds:
                model = DaskLearnedGateSVC(steps_between_averages=n_steps, random_state=seed, **settings(quick))
                model.fit(rows_there, labels_there)
                yield n_steps, seed, model


def memory_part(quick):
    """Peak memory of fits to more and more rows."""
    sizes = (10_000, 20_000) if quick else (1_000_000, 4_000_000)
    file_rows, chunk_rows = (5_000, 1_000) if quick else (500_000, CHUNK_ROWS)
    options = {"n_tiles": 16 if quick else 64, "max_iter": 1, "early_stopping": False, "random_state": 0}
    Z, z = Stream(0).rows(10**6, 20_000)
    records = []
    with tempfile.TemporaryDirectory(prefix="svmosaic-bench-") as room:
        for n_rows, folder in files_by_size(room, sizes, file_rows, chunk_rows):
            model, peak = in_a_process(in_chunks, folder, options, chunk_rows)
            accuracy = round(100 * float(np.mean((scores_of(model, Z) > 0) == (z == 1))), 2)
            records.append(
                {"rows": n_rows, "row_megabytes": round(4e-6 * n_rows * N_FEATURES),
                 "peak_megabytes": round(peak / 1e6), "accuracy": accuracy}
            )  # fmt: skip
            common.show(records[-1])
    growth = records[-1]["peak_megabytes"] / records[0]["peak_megabytes"]
    if not quick and growth > GROWTH:  # few rows are nothing next to the libraries
        raise SystemExit(f"peak memory is not flat: {growth:.2f} times that of the fewest rows")
    return records, {**options, "features": N_FEATURES, "chunk_rows": chunk_rows, "memory_growth": round(growth, 3)}


def main():
    parts = {"learned": covertype_part, "learned_memory": memory_part}
    options = common.arguments(__doc__, parts=parts)
    for name in options.parts:
        print(f"\n{name}")
        records, summary = parts[name](options.quick)
        common.write_results("dask", name, records, summary, options)


if __name__ == "__main__":
    main()
