"""Piecewise-linear tiles: accuracy with and without, time and memory next to splines, and what prediction costs.

Parts, each of which replaces its own records in benchmarks/results/pieces.json:

    adult     one-hot text columns; linear and local models with and without pieces, an explainable boosting machine
    splines   the same problem through SplineTransformer and scikit-learn's LinearSVC: time and memory
    tables    mammography (average precision) and wine_white (accuracy), five folds
    sets      the sets of the papers, every model with and without
    large     the same of mnist and covertype, with 10,000 and 50,000 rows
    coupled   ClusteredSVC, with and without, on the sets of both parts, and MultiTaskMixtureSVC on the first six
    predict   one row and batches of ijcnn1 through predictor()

LearnedGateSVC on covertype is in bench_devices.py. Settings are chosen on training rows; seconds are processor seconds
of one thread.

    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_pieces.py              all parts
    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_pieces.py --parts adult sets   these
    python benchmarks/bench_pieces.py --quick                                  synthetic rows, half a minute
"""

import warnings
from time import process_time

from common import arguments, read_results, run_child, show, write_results  # isort: skip; first: it sets the number of threads

import numpy as np
from auto_data import encoded_adult, encoded_table, paper_split
from scipy import sparse
from setting import load
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.svm import LinearSVC as Liblinear

from svmosaic import (
    ClusteredSVC,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MultiTaskMixtureSVC,
    TreeSVC,
)

KNOTS = 16
# By which settings are chosen, if there are more: rows, and numbers in them.
CHOICE_ROWS, CHOICE_NUMBERS = 16_000, 2_000_000
COSTS = (0.03, 0.1, 0.3, 1.0)
SETS = (
    "diabetes", "german", "heart", "vehicle", "svmguide1", "pendigits", "satimage", "letter", "ijcnn1", "usps", "skin",
)  # fmt: skip
LARGE_SETS = ("covtype", "mnist")
# Full covariances of hundreds of columns take hours to cross-validate.
WITHOUT_MIXTURE = ("LinearSVC", "KMeansSVC", "LocallyLinearSVC", "LearnedGateSVC", "TreeSVC")
SEPARATE = (*WITHOUT_MIXTURE, "MixtureSVC")
COUPLED = ("ClusteredSVC", "MultiTaskMixtureSVC")


# ---- data -----------------------------------------------------------------------------------------------------------


def skewed_rows(n, seed=0):
    """Stands in for the tables with --quick: log-normal columns, a spike at zero, a class that bends along each."""
    rng = np.random.RandomState(seed)
    X = rng.lognormal(0, 1, (n, 8))
    X[:, 0] *= rng.uniform(size=n) < 0.5
    binary = rng.randint(2, size=(n, 4)).astype(float)
    score = np.sin(X[:, 0]) + np.abs(np.log(X[:, 1])) - np.abs(np.log(X[:, 2])) + binary[:, 0]
    return np.hstack([X, binary]), (score + 0.5 * rng.standard_normal(n) > 0.5).astype(int)


# ---- models ---------------------------------------------------------------------------------------------------------


def models(n_rows, pieces):
    """Candidates by name: each a list of settings to choose from. Without pieces columns are standardized first."""
    few, many = max(2, min(8, n_rows // 500)), max(4, min(64, n_rows // 100))
    shared = {"loss": "squared_hinge", "random_state": 0, "pieces": pieces, "tol": 1e-3}
    found = {
        "LinearSVC": [LinearSVC(C=C, **shared) for C in COSTS],
        "KMeansSVC": [KMeansSVC(few, C=C, **shared) for C in COSTS],
        "LocallyLinearSVC": [LocallyLinearSVC(many, C=C, **shared) for C in COSTS],
        "MixtureSVC": [MixtureSVC(few, C=C, random_state=0, pieces=pieces) for C in COSTS],
        "LearnedGateSVC": [
            LearnedGateSVC(many, weight_decay=decay, random_state=0, pieces=pieces) for decay in (0.01, 0.1)
        ],
        "TreeSVC": [TreeSVC(C=C, random_state=0, pieces=pieces) for C in COSTS[:2]],
        "ClusteredSVC": [ClusteredSVC(few, C=C, **shared) for C in COSTS],
        "MultiTaskMixtureSVC": [MultiTaskMixtureSVC(few, beta=b, random_state=0, pieces=pieces) for b in COSTS],
    }
    # Distances need common units: gates see standardized columns, with and without pieces.
    return {name: [make_pipeline(StandardScaler(), model) for model in several] for name, several in found.items()}


def accuracy(model, X, y):
    return float(np.mean(model.predict(X) == y))


def precision(model, X, y):
    return float(average_precision_score(y, model.decision_function(X)))


def chosen(candidates, X, y, score, n_folds=3):
    """The candidate with the best mean score over folds of the training rows, or of a sample of them."""
    stride = -(-len(y) // min(CHOICE_ROWS, CHOICE_NUMBERS // X.shape[1]))
    X, y = X[::stride], y[::stride]
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))

    def mean(candidate):
        return np.mean([score(clone(candidate).fit(X[a], y[a]), X[b], y[b]) for a, b in folds])

    return max(candidates, key=mean) if len(candidates) > 1 else candidates[0]


def compare(name, X, y, Z, z, score, knots=KNOTS, only=None, done=()):
    """Records, one after another, of every model with and without pieces: settings by folds of X, score on Z.

    The pairs (model, pieces) in `done` are left out.
    """
    for pieces in (None, knots):
        for model, candidates in models(len(X), pieces).items():
            if (only is not None and model not in only) or (model, pieces) in done:
                continue
            best = chosen(candidates, X, y, score)
            run = run_child(lambda best=best: score(clone(best).fit(X, y), Z, z), limit=3600)
            settings = {k: v for k, v in best[-1].get_params().items() if k in ("C", "weight_decay", "beta")}
            record = {"set": name, "model": model, "pieces": pieces, "score": run.value}
            record |= {"seconds": round(run.seconds, 3), "settings": settings}
            show(record)
            yield record


# ---- parts ----------------------------------------------------------------------------------------------------------


def run_adult(options):
    quick = options.quick
    if quick:
        X, y = skewed_rows(1500)
        Z, z = skewed_rows(1500, 1)
    else:
        (X, y), (Z, z), *_ = encoded_adult()
    linear = [LinearSVC(C=C, loss="squared_hinge", random_state=0, pieces=KNOTS) for C in COSTS]
    best = chosen(linear, X, y, accuracy, 5)
    run = run_child(lambda: accuracy(clone(best).fit(X, y), Z, z), repeats=3)
    fit = run_child(lambda: clone(best).fit(X, y) and None, repeats=3)
    records = [
        {"set": "adult", "model": "LinearSVC alone", "pieces": KNOTS, "score": run.value, "seconds": fit.seconds,
         "settings": {"C": best.C}}
    ]  # fmt: skip
    show(records[0])
    only = ("LinearSVC", "KMeansSVC") if quick else ("LinearSVC", "KMeansSVC", "LearnedGateSVC", "TreeSVC")
    records += compare("adult", X, y, Z, z, accuracy, only=only)
    write_results("pieces", "adult", records, options=options)  # before what takes long
    records += boosting_machine("adult", X, y, Z, z, accuracy, quick)
    write_results("pieces", "adult", records, options=options)


def boosting_machine(name, X, y, Z, z, score, quick):
    """Records of an explainable boosting machine, with and without pairs of features; none if it is not installed."""
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        if not quick:
            raise
        return []

    records = []
    for pairs in (0,) if quick else (0, "3x"):
        model = ExplainableBoostingClassifier(interactions=pairs, n_jobs=1, random_state=0)
        if quick:
            model.set_params(max_rounds=50, outer_bags=2)

        def work(model=model):
            fitted = model.fit(X, y)
            positive = fitted.predict_proba(Z)[:, 1]
            if score is precision:
                return float(average_precision_score(z, positive))
            return float(np.mean(fitted.predict(Z) == z))

        run = run_child(work, limit=7200)
        title = "explainable boosting machine" + ("" if pairs == 0 else " with pairs")
        records.append({"set": name, "model": title, "pieces": None, "score": run.value, "seconds": run.seconds})
        show(records[-1])
    return records


def run_splines(options):
    """The same objective by two ways: our encoded rows, and an expanded matrix for liblinear."""
    quick = options.quick
    sets = {}
    if quick:
        X, y = skewed_rows(3000)
        sets["skewed"] = X, y, 8
    else:
        (X, y), _, _, n_numbers = encoded_adult()
        sets["adult"] = X, y, n_numbers
        covertype = load("covtype")
        sets["covertype, class 2"] = covertype.X_train.astype(np.float64), (covertype.y_train == 2).astype(int), 10
    records = []
    for name, (X, y, n_numbers) in sets.items():
        records += same_objective(name, X, y, n_numbers)
        write_results("pieces", "splines", records, options=options)


def same_objective(name, X, y, n_numbers, C=0.1, gap=1e-3):
    """Processor seconds and memory beyond X until the objective is within `gap` of the least, relative to it."""
    signs = np.where(y == y.max(), 1.0, -1.0)
    few = np.arange(0, len(X), max(1, len(X) // 3000))

    def fitted(tol, X=X, y=y):
        return LinearSVC(C=C, loss="squared_hinge", pieces=KNOTS, tol=tol, random_state=0).fit(X, y)

    best = fitted(1e-8)
    Z = best.mosaic_.feature_map.expand(X)
    Z.eliminate_zeros()  # of one-hot columns, which would cost liblinear most of its time and memory

    def objective(coef, intercept):
        slack = np.maximum(0.0, 1.0 - signs * (Z @ coef + intercept))
        return 0.5 * (coef @ coef + intercept**2) + C * float(slack @ slack)

    def weights(model):
        return model.coef_[0], float(model.intercept_[0])

    def ours(tol, X=X, y=y):
        return weights(fitted(tol, X, y))

    def spline(X):
        knots = SplineTransformer(
            KNOTS, degree=1, knots="quantile", extrapolation="constant", sparse_output=True
        ).fit_transform(X[:, :n_numbers])
        return sparse.hstack([knots, sparse.csr_array(X[:, n_numbers:])], format="csr")

    def theirs(dual, tol, X=X, y=y, Z=Z):
        # The transformer is paid for; the weights are of our features, so that both minimize one objective.
        spline(X)
        wide = Z.copy()
        model = Liblinear(C=C, loss="squared_hinge", dual=dual, tol=tol, max_iter=100_000, random_state=0)
        return weights(model.fit(wide, y))

    least = objective(*weights(best))
    ways = {
        "svmosaic": (ours, [(tol,) for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)]),
        "SplineTransformer + LinearSVC, primal": (theirs, [(False, tol) for tol in (1e-1, 1e-2, 1e-3, 1e-4)]),
        "SplineTransformer + LinearSVC, dual": (theirs, [(True, tol) for tol in (1.0, 1e-1, 1e-2, 1e-3)]),
    }
    # Both solve a small problem first: a child starts without the pages of the libraries, which would be counted.
    samples = {ours: {"X": X[few], "y": y[few]}, theirs: {"X": X[few], "y": y[few], "Z": Z[few]}}
    records = []
    for title, (solve, ladder) in ways.items():
        for setting in ladder:
            run = run_child(
                lambda solve=solve, setting=setting: solve(*setting),
                warm_up=lambda solve=solve, setting=setting: solve(*setting, **samples[solve]), limit=1800, repeats=5,
            )  # fmt: skip
            if run.value is None:
                break
            excess = objective(*run.value) / least - 1.0
            if excess <= gap:
                break
        megabytes = None if run.peak_bytes is None else round(run.peak_bytes / 1e6, 1)
        reached = bool(run.value is not None and excess <= gap)
        records.append(
            {"set": name, "rows": len(X), "features": Z.shape[1], "way": title, "reached": reached,
             "seconds": round(run.seconds, 3), "megabytes": megabytes, "x_megabytes": round(X.nbytes / 1e6, 1)}
        )  # fmt: skip
        show(records[-1])
    return records


def run_tables(options):
    quick = options.quick
    sets = {"skewed": (*skewed_rows(600), accuracy)}
    if not quick:
        X, y = encoded_table("mammography")
        W, quality = encoded_table("wine_white")
        sets = {"mammography": (X, y, precision), "wine_white": (W, quality, accuracy)}
    records = kept("tables", options.resume)
    for name, (X, y, score) in sets.items():
        counts = np.bincount(y)
        n_folds = 2 if quick else 5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the rarest class of wine_white has five rows
            folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
        print(f"  {name}: {len(X)} rows, rarest class {counts.min()}")
        for f, (a, b) in enumerate(folds):
            if any((r["set"], r["fold"]) == (name, f) for r in records):
                continue
            found = list(compare(name, X[a], y[a], X[b], y[b], score, only=("LinearSVC",) if quick else SEPARATE))
            if name == "mammography":
                found += boosting_machine(name, X[a], y[a], X[b], y[b], score, quick)
            records += [{**record, "fold": f} for record in found]
            write_results("pieces", "tables", records, options=options)


def run_sets(options, sets=None, part="sets", only=SEPARATE, resume=None):
    quick, records = options.quick, kept(part, options.resume if resume is None else resume)
    for name in ("svmguide1",) if quick else sets or options.sets:
        if quick:
            X, y = skewed_rows(400)
            train = X[:200], y[:200], X[200:], y[200:]
        else:
            train = [part.astype(np.float64) if part.ndim == 2 else part for part in paper_split(name, 0)]
        done = {(r["model"], r["pieces"]) for r in records if r["set"] == name}
        here = [model for model in only if "Mixture" not in model] if name == "mnist" else only
        for record in compare(name, *train, accuracy, only=here[:1] if quick else here, done=done):
            records.append(record)
            write_results("pieces", part, records, options=options)


def run_large(options):
    run_sets(options, LARGE_SETS, "large", resume=False)


def run_coupled(options):
    run_sets(options, SETS[:6], "coupled", COUPLED)
    run_sets(options, SETS[6:] + LARGE_SETS, "coupled", COUPLED[:1], resume=options.resume or not options.quick)


def run_predict(options):
    """Microseconds of one row, and nanoseconds per row of a batch, with and without pieces."""
    quick = options.quick
    if quick:
        X, y = skewed_rows(2000)
    else:
        data = load("ijcnn1")
        X, y = data.X_train[:20_000].astype(np.float64), data.y_train[:20_000]
    kinds = {
        "LinearSVC": lambda pieces: LinearSVC(pieces=pieces, random_state=0),
        "KMeansSVC, 16 cells": lambda pieces: KMeansSVC(16, pieces=pieces, random_state=0),
        "LocallyLinearSVC, 100 anchors": lambda pieces: LocallyLinearSVC(100, pieces=pieces, tol=1e-2, random_state=0),
        "MixtureSVC, 20 experts": lambda pieces: MixtureSVC(20, max_iter=2, pieces=pieces, random_state=0),
        "LearnedGateSVC, 100 tiles": lambda pieces: LearnedGateSVC(max_iter=2, pieces=pieces, random_state=0),
    }
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in kinds.items():
            fitted = {pieces: make(pieces).fit(X, y).predictor() for pieces in (None, KNOTS)}
            for dtype in (np.float64, np.float32):
                rows = X.astype(dtype)
                times = timed(fitted, rows)
                records.append(
                    {"model": name, "dtype": np.dtype(dtype).name,
                     "row_microseconds": [round(1e6 * times[p][0], 3) for p in (None, KNOTS)],
                     "batch_nanoseconds": [round(1e9 * times[p][1], 1) for p in (None, KNOTS)]}
                )  # fmt: skip
                row, batch = (times[KNOTS][k] / times[None][k] for k in (0, 1))
                print(f"  {name}, {np.dtype(dtype).name}: row {row:.2f} times, batch {batch:.2f} times", flush=True)
    write_results("pieces", "predict", records, options=options)


def timed(predictors, rows, n_calls=2000, repeats=25):
    """Processor seconds of one row and per row of a batch, for each predictor.

    They take turns, and the fastest of several counts, so that other load does not favor one of them.
    """
    row = rows[7].copy()
    best = {}
    for _ in range(repeats):
        for name, predictor in predictors.items():
            predictor.predict(row), predictor.decision_function(rows)
            start = process_time()
            for _ in range(n_calls):
                predictor.predict(row)
            alone = (process_time() - start) / n_calls
            start = process_time()
            predictor.decision_function(rows)
            together = (process_time() - start) / len(rows)
            best[name] = np.minimum(best.get(name, np.inf), (alone, together))
    return best


def kept(part, resume):
    """The stored records of a part that is gone on with; none if it begins anew."""
    return read_results("pieces").get(part, {}).get("records", []) if resume else []


PARTS = {
    "adult": run_adult,
    "splines": run_splines,
    "tables": run_tables,
    "sets": run_sets,
    "large": run_large,
    "coupled": run_coupled,
    "predict": run_predict,
}


def main():
    resume = {"action": "store_true", "help": "tables, sets, coupled: leave out what is stored"}
    options = arguments(__doc__, sets=SETS, parts=PARTS, out=True, resume=resume)
    for part in options.parts:
        print(part)
        PARTS[part](options)


if __name__ == "__main__":
    main()
