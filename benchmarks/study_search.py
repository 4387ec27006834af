"""Which candidates the search should try first: a grid on training rows of all sets, and a greedy portfolio of it.

Each candidate is judged by three-fold cross-validation on at most 1500 training rows of each set (those of split 0; no
test row is read into it): log-loss after a temperature, accuracy and seconds. The portfolio then adds, one by one, the
candidate that lowers the mean over the sets of the best loss the most, as a share of the best loss of the whole grid,
with a penalty for its seconds.

    python benchmarks/study_search.py                      # the grid; adds to results/search_study.json set by set
    python benchmarks/study_search.py --sets heart,vehicle # some sets
    python benchmarks/study_search.py --portfolio 24       # print the order that follows from what is stored
    python benchmarks/study_search.py --slopes             # how losses fall with the rows; results/search_slopes.json
    python benchmarks/study_search.py --boosted            # shapes of boosted trees; results/boosted_study.json

The slopes are those of the log of the held-out loss against the log of the rows, from 4000 to 160,000 training rows, or
as many as there are, of the first candidates for large sets; their medians by family are the search's first guess of
what more rows will give. Learned gates are fitted with fewer and more tiles too, with and without curves, and as
several gates: a regression of their slopes says what a doubling of the tiles or of the gates and what curves add. What
is stored is not run again.

Boosted trees are judged on at most 1200 training rows of sets with two classes, and of those with values (loss: the
log-loss, or the squared error of standardized values), by two divisions into five parts.
"""

import argparse
import json
from dataclasses import replace

import numpy as np
from auto_data import PAPERS, TABLES, adult, one_hot, paper_split, part, table_split
from bench_regression import LABELS, splits_of
from common import RESULTS
from joblib import Parallel, delayed

from svmosaic.estimators.data import validate_training, validate_values
from svmosaic.estimators.linear import LinearSVC, LinearSVR
from svmosaic.search._families import build_classifier, build_regressor
from svmosaic.search.candidates import Candidate, seeds
from svmosaic.search.climb import Search
from svmosaic.search.judge import ClassJudge, ValueJudge
from svmosaic.search.rungs import Rung, folds_of

FILE = RESULTS / "search_study.json"
SLOPES_FILE = RESULTS / "search_slopes.json"
# Sets with rows enough, few and many of them for the slopes, and the rows for which candidates are made.
LARGE_SETS, FEW, MANY, MADE_FOR, N_FIRST = ("adult", "ijcnn1", "letter", "skin", "covtype"), 4000, 160_000, 400_000, 12
MOST_ROWS, PARTS, MOST_SECONDS = 1500, 3, 2.5
BOOSTED_FILE, BOOSTED_ROWS, BOOSTED_PARTS, DIVISIONS = RESULTS / "boosted_study.json", 1200, 5, 2
BOOSTED_SETS = (
    "german_credit", "breast_cancer", "horse_colic", "oil_spill", "heart", "diabetes", "german", "adult", "svmguide1",
    "abalone", "auto_imports", "housing", "beijing_pm25",
)  # fmt: skip
SETS = (*TABLES, "adult", *PAPERS)


def grid():
    """All candidates, for the usual scaling and, if they measure distances on plain rows, for the others."""
    linear, local, gate = (Candidate(family, "standard") for family in ("linear", "local", "learned"))
    trees = Candidate("trees", "none", pieces=16)
    for C in (0.01, 0.1, 1.0):
        yield replace(linear, C=C)
        yield replace(linear, C=C, scaling="none", pieces=16)
        yield Candidate("clustered", "standard", 8, C=C)
    for way in ("standard", "common", "robust"):
        for tiles, C, k in ((8, 1.0, 8), (16, 1.0, 8), (48, 1.0, 8), (48, 10.0, 8), (16, 1.0, 16), (48, 1.0, 16),
                            (100, 1.0, 16)):  # fmt: skip
            yield replace(local, scaling=way, tiles=tiles, C=C, neighbors=k)
        yield replace(gate, scaling=way, tiles=32)
    for tiles, C in ((8, 0.03), (16, 0.03), (16, 0.3), (48, 0.1)):
        yield replace(local, tiles=tiles, C=C, pieces=16)
    for tiles, gates, k, decay, smooth in (
        (8, 1, 8, 0.1, False), (32, 1, 8, 0.1, False), (32, 1, 8, 1.0, False), (16, 4, 4, 0.01, False),
        (16, 4, 4, 0.3, False), (16, 4, 4, 0.1, True), (8, 8, 2, 0.1, False), (8, 8, 2, 1.0, True),
    ):  # fmt: skip
        yield replace(gate, tiles=tiles, gates=gates, neighbors=k, decay=decay, smooth=smooth)
    for tiles, gates, k, decay, smooth, dropout in (
        (8, 1, 8, 0.1, False, 0.0), (8, 1, 8, 1.0, False, 0.0), (32, 1, 8, 0.1, False, 0.0),
        (32, 1, 8, 1.0, False, 0.0),
        (8, 4, 2, 0.1, True, 0.2), (8, 4, 2, 1.0, True, 0.2), (8, 8, 4, 0.1, True, 0.2), (16, 4, 4, 0.3, False, 0.2),
        (8, 4, 2, 3.0, False, 0.0),
    ):  # fmt: skip
        changes = {"tiles": tiles, "gates": gates, "neighbors": k, "decay": decay, "smooth": smooth, "dropout": dropout}
        yield replace(gate, scaling="none", pieces=16, **changes)
    for gates, tiles, C in ((32, 32, 0.1), (32, 32, 0.01), (32, 8, 0.3), (32, 8, 0.03), (100, 32, 0.03),
                            (100, 128, 0.01), (100, 128, 0.1), (8, 16, 0.1)):  # fmt: skip
        yield replace(trees, gates=gates, tiles=tiles, C=C)
    for gates, tiles, C in ((16, 8, 0.03), (16, 8, 0.003), (1, 8, 0.03)):
        yield replace(trees, gates=gates, tiles=tiles, C=C, linear_leaves=True)


def training_rows(name, most=MOST_ROWS):
    """At most so many training rows, as a matrix."""
    if name in TABLES or name == "adult":
        train, test = adult() if name == "adult" else table_split(name, 0)
        X, y = one_hot(train, test)[0], train.y
    else:
        X, y, _, _ = paper_split(name, 0)
    counts = dict(zip(*np.unique(y, return_counts=True), strict=True))
    kept = np.array([counts[label] >= 5 for label in y])
    return part(np.asarray(X, dtype=np.float64)[kept], y[kept], most)


def search_over(X, y, held_out, seed=0):
    """A search that has not begun, with this share of the rows in a held-out part."""
    X, target = validate_training(LinearSVC(), X, y)
    judge, y = ClassJudge(X, target, "accuracy"), target.classes[target.label]
    return _search(X, y, judge, build_classifier, held_out, seed)


def search_over_values(X, y, held_out, seed=0):
    """The same for values."""
    X, target = validate_values(LinearSVR(), X, y)
    judge = ValueJudge(X, target, "r2")
    return _search(X, judge.wanted[:, 0], judge, build_regressor, held_out, seed)


def _search(X, y, judge, build, held_out, seed):
    return Search(
        X, y, judge, build, folds_of(judge.target, held_out, np.random.RandomState(seed)), most_tiles=10**6,
        budget=None, seed=seed, n_jobs=1, say=lambda line: None, watch=lambda search: False,
    )  # fmt: skip


def measure(name):
    """A line per candidate."""
    search = search_over(*training_rows(name), 1 / PARTS)
    rung = Rung(min(len(train) for train, _ in search.folds), PARTS, 1.0)
    for candidate in grid():
        fitted = search._fitting(candidate, rung.n_rows) if candidate.scaling in search.scalings else None
        if fitted is None or search.clock.expected(fitted, rung.n_rows) > MOST_SECONDS:
            continue
        search._attempt(fitted, 0, rung)
        trial = search.trials[-1]
        if not trial.failure:
            yield {
                "set": name, "candidate": repr(candidate), "loss": round(trial.loss, 5), "score": round(trial.score, 5),
                "seconds": round(trial.seconds, 3),
            }  # fmt: skip


def boosted(name):
    """A line per shape of boosted trees and C: the loss with parts held out in turn."""
    is_value = name in LABELS
    if is_value:
        X, y, _, _ = next(splits_of(name, 1))
        some = np.random.RandomState(0).permutation(len(y))[:BOOSTED_ROWS]
        X, y, over, costs = X[some], y[some], search_over_values, (0.3, 1.0, 3.0, 10.0)
    else:
        X, y = training_rows(name, BOOSTED_ROWS)
        over, costs = search_over, (0.03, 0.1, 0.3)
    for trees, leaves in ((50, 64), (50, 16), (100, 16), (200, 4), (200, 8), (400, 8)):
        for C in costs:
            trials = []
            for seed in range(DIVISIONS):
                search = over(X, y, 1 / BOOSTED_PARTS, seed)
                candidate = Candidate(
                    "trees", "none", leaves, trees, C=C, only_leaves=True, growth="boosted", smooth=is_value
                )
                rung = Rung(min(len(train) for train, _ in search.folds), BOOSTED_PARTS, 1.0)
                search._attempt(search._fitting(candidate, rung.n_rows), 0, rung)
                trials.append(search.trials[-1])
            yield {
                "set": name, "values": is_value, "trees": trees, "leaves": leaves, "C": C,
                "loss": round(float(np.mean([t.loss for t in trials])), 5),
                "score": round(float(np.mean([t.score for t in trials])), 5),
                "seconds": round(sum(t.seconds for t in trials), 3),
            }  # fmt: skip


def show_boosted(records):
    """Mean change of the loss against the first shape with the C of the search, for classes and for values."""
    for values, usual in ((False, 0.1), (True, 3.0)):
        here = [r for r in records if r["values"] == values]
        base = {r["set"]: r["loss"] for r in here if (r["trees"], r["leaves"], r["C"]) == (50, 64, usual)}
        print(f"{'values' if values else 'classes'}, change of the loss against 50 trees of 64 leaves, C = {usual:g}:")
        for shape in dict.fromkeys((r["trees"], r["leaves"], r["C"]) for r in here):
            changes = [
                r["loss"] / base[r["set"]] - 1 for r in here if (r["trees"], r["leaves"], r["C"]) == shape
            ]  # fmt: skip
            print(f"  {shape[0]:4} trees of {shape[1]:2}, C = {shape[2]:<5g} {100 * np.mean(changes):+.2f} %")


def slopes(name, known):
    """A line per candidate that is not known: its losses on few and on many rows, and how they fall."""
    search = search_over(*training_rows(name, MANY * 5 // 4), 0.2)
    many = min(MANY, len(search.folds[0][0]))
    first = filter(None, (search._fitting(c, FEW) for c in seeds(search.usual, MADE_FOR)))
    gate = Candidate("learned", search.usual[0], decay=0.1)
    bent = replace(gate, scaling="none", pieces=16)
    gates = [replace(c, tiles=tiles) for c in (gate, bent) for tiles in (64, 128, 256, 512)]
    gates += [replace(gate, tiles=n, gates=8, neighbors=2, decay=1.0, smooth=True) for n in (16, 32, 128, 256)]
    for candidate in dict.fromkeys([*list(dict.fromkeys(first))[:N_FIRST], *gates]):
        if (name, repr(candidate)) in known:
            continue
        losses = []
        for level, n_rows in enumerate((FEW, many)):
            search._attempt(candidate, level, Rung(n_rows, 1, 1.0))
            losses.append(search.trials[-1].loss)
        slope = np.log(losses[0] / losses[1]) / np.log(many / FEW)
        yield {
            "set": name, "family": candidate.family, "candidate": repr(candidate), "tiles": candidate.tiles,
            "gates": candidate.gates, "curves": candidate.pieces is not None, "rows": [FEW, many],
            "losses": np.round(losses, 5).tolist(), "slope": round(float(slope), 4),
        }  # fmt: skip


def slopes_of_gates(records):
    """What a doubling of the tiles, one of the gates, and curves add to the slope of learned gates."""
    learned = [r for r in records if r["family"] == "learned"]
    sets = sorted({r["set"] for r in learned})
    columns = ("a doubling of the tiles", "a doubling of the gates", "curves")
    rows = [
        [np.log2(r["tiles"] / 128), np.log2(r["gates"]), r["curves"], *(r["set"] == name for name in sets)]
        for r in learned
    ]
    found = np.linalg.lstsq(np.array(rows, dtype=float), np.array([r["slope"] for r in learned]), rcond=None)[0]
    return dict(zip(columns, found, strict=False)) | {"one gate of 128 tiles, no curves": found[len(columns) :].mean()}


def portfolio(records, n, penalty=0.002):
    """The first n candidates in the order of the greedy choice, each with the mean share of the best loss."""
    sets = sorted({r["set"] for r in records})
    names = list(dict.fromkeys(r["candidate"] for r in records))
    loss = np.full((len(names), len(sets)), np.inf)
    seconds = np.zeros(len(names))
    for r in records:
        loss[names.index(r["candidate"]), sets.index(r["set"])] = r["loss"]
        seconds[names.index(r["candidate"])] += r["seconds"] / len(sets)
    share = loss / loss.min(axis=0)
    share = np.minimum(share, 2.0)
    best = np.full(len(sets), 2.0)
    for _ in range(n):
        means = np.minimum(best, share).mean(axis=1) + penalty * np.sqrt(seconds)
        chosen = int(np.argmin(means))
        best = np.minimum(best, share[chosen])
        yield names[chosen], float(best.mean()), float(seconds[chosen])
        share[chosen], seconds[chosen] = 2.0, np.inf


def write(file, records):
    file.write_text("[\n" + ",\n".join(json.dumps(r) for r in records) + "\n]\n")


def study(description, file, sets, judged, show):
    """The command line of a study: what `judged(name)` gives for each set is kept in a file and shown."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sets", help="names with commas between")
    parser.add_argument("--show", action="store_true", help="print what is stored, and end")
    options = parser.parse_args()
    records = json.loads(file.read_text()) if file.exists() else []
    if not options.show:
        for name in options.sets.split(",") if options.sets else sets:
            records = [r for r in records if r["set"] != name] + list(judged(name))
            write(file, records)
            print(name, flush=True)
    show(records)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", help="names with commas between")
    parser.add_argument("--portfolio", type=int, metavar="N", help="print the first N of the portfolio, and end")
    parser.add_argument("--slopes", action="store_true", help="how losses fall with the rows, and end")
    parser.add_argument("--boosted", action="store_true", help="trees and leaves of boosted trees, and end")
    parser.add_argument("--processes", type=int, default=1, help="sets at a time, with --boosted")
    options = parser.parse_args()
    if options.boosted:
        names = options.sets.split(",") if options.sets else BOOSTED_SETS
        found = Parallel(options.processes)(delayed(lambda name: list(boosted(name)))(name) for name in names)
        records = [r for of_set in found for r in of_set]
        write(BOOSTED_FILE, records)
        show_boosted(records)
        return
    if options.slopes:
        records = json.loads(SLOPES_FILE.read_text()) if SLOPES_FILE.exists() else []
        known = {(r["set"], r["candidate"]) for r in records}
        for name in options.sets.split(",") if options.sets else LARGE_SETS:
            records += slopes(name, known)
            write(SLOPES_FILE, records)
        by_family = {}
        for r in records:
            family = "leaves" if "only_leaves=True" in r["candidate"] else r["family"]
            by_family.setdefault(family, []).append(r["slope"])
        print({family: round(float(np.median(found)), 3) for family, found in by_family.items()})
        print({name: round(float(slope), 3) for name, slope in slopes_of_gates(records).items()})
        return
    records = json.loads(FILE.read_text()) if FILE.exists() else []
    if options.portfolio:
        for name, share, seconds in portfolio(records, options.portfolio):
            print(f"{share:.4f} {seconds:6.2f} s  {name}")
        return
    for name in options.sets.split(",") if options.sets else SETS:
        found = list(measure(name))
        records = [r for r in records if r["set"] != name] + found
        write(FILE, records)
        best = min(found, key=lambda r: r["loss"])
        print(f"{name}: {len(found)} candidates, {sum(r['seconds'] for r in found):.0f} s, best {best}", flush=True)


if __name__ == "__main__":
    main()
