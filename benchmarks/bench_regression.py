"""Regression: solvers to the same objective, ranks on tables, intervals, and the cost of one row.

Parts, each of which replaces its own records in benchmarks/results/regression.json:

    solver     LinearSVR and scikit-learn's (liblinear) to an objective within 1e-6 of the least: processor seconds
    quantile   LinearSVR(loss="quantile") with a large C and QuantileRegressor (a linear program)
    ranks      MosaicRegressor, tuned SVR, LightGBM, CatBoost and HistGradientBoosting by MAE and RMSE
    intervals  coverage and width of 90 % intervals, next to LightGBM's quantiles with the same conformal correction
    latency    one row through predictor() and predict()

Every method sees the same matrix (text columns one-hot, missing numbers by their median, from training rows) and has
one thread. Settings of SVR are chosen by cross-validation on training rows. Records are written after each set.

    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_regression.py                   all parts
    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_regression.py --parts ranks     this one
    ... --parts solver --sets synthetic                 one of its sets; records of the others stay
    ... --parts ranks --only MosaicRegressor            one of its models; records of the others stay
    python benchmarks/bench_regression.py --quick                                       synthetic rows, half a minute
"""

import warnings
from itertools import product
from time import perf_counter

from common import arguments, fastest, grouped, mean_ranks, read_results, run_child, show, write_results  # isort: skip; first: it sets the number of threads

import numpy as np
from auto_data import encoded, tables_folder
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.svm import LinearSVR as Liblinear

from svmosaic import LinearSVR, LocallyLinearSVR, MosaicRegressor
from svmosaic.losses import LOSSES
from svmosaic.search.intervals import fit_intervals

LABELS = {
    "abalone": "rings", "housing": "medv", "wine_white": "quality", "auto_imports": "price", "beijing_pm25": "pm25"
}  # fmt: skip
IDENTIFIERS = {"beijing_pm25": ["No"]}
LARGE = "beijing_pm25"
QUANTILES = (0.05, 0.95)
# Settings that solvers climb until their objective is as low as asked for.
TOLERANCES = [10.0**-k for k in range(1, 10)]
GAP = 1e-6
TUNED_ROWS = 3000
SECONDS = 600  # of a solver, on the wall
INTERVAL_BUDGET = 10.0  # seconds of the search; the fits to the quantiles come on top


# ---- data -----------------------------------------------------------------------------------------------------------


def synthetic(n, n_features=20, seed=0):
    """Rows with a bend, an interaction, and noise that grows along a column and has heavy tails."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, n_features))
    noise = rng.standard_t(4, n) * (0.2 + 0.3 * (X[:, 2] > 0))
    return X, 40.0 + 5.0 * (X @ np.linspace(1, 0, n_features) + np.abs(X[:, 0]) + X[:, 0] * X[:, 1] + noise)


def frame_of(name):
    """Columns and values of one table; rows without a value are left out."""
    import pandas

    frame = pandas.read_csv(tables_folder() / f"{name}.csv").dropna(subset=[LABELS[name]])
    y = frame.pop(LABELS[name]).to_numpy(dtype=np.float64)
    return frame.drop(columns=IDENTIFIERS.get(name, [])), y


def splits_of(name, n_splits):
    """(X, y, Z, z) of each split: matrices, made of the training rows."""
    if name == "synthetic":
        yield (*synthetic(600, 6), *synthetic(400, 6, 1))
        return
    frame, y = frame_of(name)
    cuts = (
        KFold(3, shuffle=True, random_state=0)
        if name == LARGE
        else ShuffleSplit(n_splits, test_size=0.2, random_state=0)
    )
    for train, test in cuts.split(y):
        (X, Z), _ = encoded(frame.iloc[train], frame.iloc[test])
        yield X, y[train], Z, y[test]


def whole(name, quick):
    """Standardized columns and values of a set."""
    if name == "synthetic":
        X, y = synthetic(3000 if quick else 1_000_000)
    else:
        frame, y = frame_of(name)
        (X,), _ = encoded(frame)
    X = StandardScaler().fit_transform(X)
    return np.ascontiguousarray(X), (y - y.mean()) / y.std()


# ---- solver ---------------------------------------------------------------------------------------------------------


def objective(coef, intercept, X, y, loss, epsilon):
    """What both minimize, of a penalized bias and C = 1."""
    slack = np.maximum(np.abs(y - X @ coef - intercept) - epsilon, 0.0)
    return 0.5 * (coef @ coef + intercept**2) + float(np.sum(slack ** LOSSES[loss].power))


def ours(X, y, loss, epsilon, tol):
    model = LinearSVR(loss=loss, epsilon=epsilon, tol=tol, max_iter=100_000, normalize_y=False, random_state=0)
    model.fit(X, y)
    return model.coef_, model.intercept_


def liblinear(X, y, loss, epsilon, tol):
    dual = loss == "epsilon_insensitive"  # the only way; the other loss is faster in the primal
    model = Liblinear(loss=loss, epsilon=epsilon, tol=tol, max_iter=1_000_000, dual=dual, random_state=0).fit(X, y)
    return model.coef_, float(np.ravel(model.intercept_)[0])


def climb(solver, X, y, loss, epsilon, least, tolerances, limit):
    """The first tolerance at which a solver is within the gap of the least objective, and what it takes."""
    for tol in tolerances:
        run = run_child(lambda tol=tol: solver(X, y, loss, epsilon, tol), limit=limit, repeats=3)
        if run.value is None:
            return {"tol": tol, "seconds": None, "excess": None, "limit": limit}
        excess = objective(*run.value, X, y, loss, epsilon) / least - 1.0
        if excess <= GAP:
            return {"tol": tol, "seconds": round(run.seconds, 4), "excess": float(f"{excess:.2e}")}
    return {"tol": tol, "seconds": None, "excess": float(f"{excess:.2e}")}


def run_solver(options):
    quick, sets = options.quick, [s for s in ("wine_white", "beijing_pm25", "synthetic") if s in options.sets]
    records = kept("solver", options, lambda r: r["set"] not in sets)
    for name in ("synthetic",) if quick else sets:
        X, y = whole(name, quick)
        for loss, epsilon in product(("epsilon_insensitive", "squared_epsilon_insensitive"), (0.0, 0.1)):
            least = objective(*ours(X, y, loss, epsilon, 1e-9), X, y, loss, epsilon)
            ladder = TOLERANCES[:6] if quick else TOLERANCES
            for title, solver in (("LinearSVR", ours), ("liblinear", liblinear)):
                found = climb(solver, X, y, loss, epsilon, least, ladder, options.limit)
                about = {"set": name, "rows": len(y), "loss": loss, "epsilon": epsilon, "solver": title}
                records.append(about | found)
                show(records[-1])
        write_results("regression", "solver", records, {"speedup": speedup(records)}, options)


def speedup(records):
    """Geometric mean of liblinear's seconds over ours, of the problems that both solved."""
    problems = grouped(records, "set", "loss", "epsilon").values()
    pairs = [{r["solver"]: r["seconds"] for r in some} for some in problems]
    ratios = [p["liblinear"] / p["LinearSVR"] for p in pairs if len(p) == 2 and all(p.values())]
    return {
        "geometric_mean": round(float(np.exp(np.mean(np.log(ratios)))), 2) if ratios else None,
        "problems": len(ratios),
        "not_reached": {s: sum(p.get(s, 0) is None for p in pairs) for s in ("LinearSVR", "liblinear")},
    }


# ---- quantiles ------------------------------------------------------------------------------------------------------


def pinball(y, predicted, quantile):
    r = y - predicted
    return float(np.maximum(quantile * r, (quantile - 1.0) * r).mean())


def run_quantile(options):
    quick = options.quick
    records = []
    for name in ("synthetic",) if quick else ("wine_white", "beijing_pm25"):
        X, y = whole(name, quick)
        X, y = (X[:600], y[:600]) if quick else (X, y)
        for quantile in (0.5,) if quick else (0.1, 0.5, 0.9):
            program = QuantileRegressor(quantile=quantile, alpha=0.0, solver="highs")
            run = run_child(lambda m=program, X=X, y=y: clone(m).fit(X, y).predict(X), limit=2 * SECONDS)
            least = None if run.value is None else pinball(y, run.value, quantile)
            shared = {"set": name, "rows": len(y), "quantile": quantile}
            records.append(shared | {"solver": "QuantileRegressor", "pinball": least, "seconds": round(run.seconds, 3)})
            for C in (1e1, 1e2, 1e3, 1e4):
                model = LinearSVR(
                    loss="quantile", quantile=quantile, C=C, tol=1e-6, intercept_scaling=10.0, max_iter=10_000,
                    random_state=0,
                )  # fmt: skip
                run = run_child(lambda m=model, X=X, y=y: clone(m).fit(X, y).predict(X), limit=SECONDS, repeats=3)
                found = None if run.value is None else pinball(y, run.value, quantile)
                excess = None if found is None or least is None else found / least - 1.0
                if excess is not None and excess <= 1e-4:
                    break
            records.append(
                shared | {"solver": "LinearSVR", "C": C, "pinball": found, "excess": excess,
                          "seconds": round(run.seconds, 4)}
            )  # fmt: skip
            show(records[-1])
        write_results("regression", "quantile", records, options=options)


# ---- ranks ----------------------------------------------------------------------------------------------------------


def tuned_svr(X, y):
    """SVR with settings chosen by three folds of the training rows, or of a sample of them."""
    chosen = np.random.RandomState(0).permutation(len(y))[:TUNED_ROWS]
    grid = {"svr__C": [1.0, 10.0, 100.0], "svr__gamma": [0.3 / X.shape[1], 1.0 / X.shape[1], 3.0 / X.shape[1]]}
    spread = float(np.std(y))
    model = make_pipeline(StandardScaler(), SVR(epsilon=0.1))
    values = (y[chosen] - y.mean()) / spread
    search = GridSearchCV(model, grid, cv=3, scoring="neg_mean_squared_error").fit(X[chosen], values)
    fitted = clone(search.best_estimator_).fit(X, (y - y.mean()) / spread)
    return lambda Z: y.mean() + spread * fitted.predict(Z)


def peers(quick):
    """From a name to a function of training rows that gives a function of rows."""
    from_estimator = {"HistGradientBoosting": HistGradientBoostingRegressor(random_state=0)}
    try:
        from lightgbm import LGBMRegressor

        from_estimator["LightGBM"] = LGBMRegressor(n_jobs=1, verbose=-1, random_state=0)
        from catboost import CatBoostRegressor

        from_estimator["CatBoost"] = CatBoostRegressor(
            thread_count=1, verbose=0, random_seed=0, allow_writing_files=False
        )
    except ImportError:
        if not quick:
            raise
        print("LightGBM or CatBoost is not installed (extra `bench`): left out", flush=True)
    fits = {title: (lambda X, y, m=model: clone(m).fit(X, y).predict) for title, model in from_estimator.items()}
    budget = {"time_budget": 2.0} if quick else {}
    fits["MosaicRegressor"] = lambda X, y: MosaicRegressor(n_jobs=1, random_state=0, **budget).fit(X, y).predict
    fits["SVR, tuned"] = tuned_svr
    return fits


def run_ranks(options):
    quick, sets = options.quick, [s for s in LABELS if s in options.sets]
    records = kept("ranks", options, lambda r: r["set"] not in sets or options.only not in (None, r["model"]))
    for name in ("synthetic",) if quick else sets:
        for split, (X, y, Z, z) in enumerate(splits_of(name, 10)):
            for title, fit in peers(quick).items():
                if options.only not in (None, title):
                    continue

                def work(fit=fit, X=X, y=y, Z=Z):
                    start = perf_counter()
                    predict = fit(X, y)
                    fitted = perf_counter()
                    found = np.asarray(predict(Z))
                    return found, fitted - start, (perf_counter() - fitted) / len(Z)

                run = run_child(work, limit=2 * SECONDS)
                record = {"set": name, "split": split, "model": title}
                if run.value is not None:
                    found, fit_seconds, row_seconds = run.value
                    record |= {
                        "mae": float(np.abs(z - found).mean()), "rmse": float(np.sqrt(np.mean((z - found) ** 2))),
                        "fit_seconds": round(fit_seconds, 3), "row_microseconds": round(1e6 * row_seconds, 2),
                    }  # fmt: skip
                records.append(record)
                show(record)
        write_results("regression", "ranks", records, {by: mean_ranks(records, by) for by in ("mae", "rmse")}, options)


# ---- intervals ------------------------------------------------------------------------------------------------------


class LightGBMQuantiles(RegressorMixin, BaseEstimator):
    """LightGBM's quantile loss, one model for each quantile, in the form that `fit_intervals` takes."""

    def __init__(self, loss="quantile", quantile=QUANTILES):
        self.loss = loss
        self.quantile = quantile

    def fit(self, X, y, sample_weight=None):
        from lightgbm import LGBMRegressor

        self.models_ = [
            LGBMRegressor(objective="quantile", alpha=q, n_jobs=1, verbose=-1, random_state=0).fit(X, y, sample_weight)
            for q in self.quantile
        ]
        return self

    def predict(self, X):
        return np.stack([model.predict(X) for model in self.models_], axis=1)


def run_intervals(options):
    quick = options.quick

    def mosaic(X, y):
        budget = 2.0 if quick else INTERVAL_BUDGET
        model = MosaicRegressor(budget, quantiles=QUANTILES, n_jobs=1, random_state=0)
        return model.fit(X, y).predict_interval

    def boosting(X, y):
        return fit_intervals(LightGBMQuantiles(), X, y, quantiles=QUANTILES, random_state=0).predict

    fits = {"MosaicRegressor": mosaic, "LightGBM": boosting}
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        if not quick:
            raise
        del fits["LightGBM"]
    records = []
    for name in ("synthetic",) if quick else LABELS:
        for split, (X, y, Z, z) in enumerate(splits_of(name, 10)):
            for title, fit in fits.items():
                run = run_child(lambda fit=fit, X=X, y=y, Z=Z: fit(X, y)(Z), limit=2 * SECONDS)
                record = {"set": name, "split": split, "model": title}
                if run.value is not None:
                    low, high = run.value.T
                    record |= {
                        "coverage": float(np.mean((low <= z) & (z <= high))), "width": float(np.mean(high - low)),
                        "test_rows": len(z), "seconds": round(run.seconds, 2),
                    }  # fmt: skip
                records.append(record)
                show(record)
        write_results("regression", "intervals", records, options=options)


# ---- latency --------------------------------------------------------------------------------------------------------


def run_latency(options):
    quick = options.quick
    X, y, *_ = next(splits_of("synthetic" if quick else "abalone", 1))
    X = np.ascontiguousarray(StandardScaler().fit_transform(X))
    ours = LocallyLinearSVR(100, random_state=0).fit(X, y)
    fitted = {"LocallyLinearSVR": ours, "SVR": SVR(C=10.0).fit(X, (y - y.mean()) / y.std())}
    try:
        from lightgbm import LGBMRegressor

        fitted["LightGBM"] = LGBMRegressor(n_jobs=1, verbose=-1, random_state=0).fit(X, y)
    except ImportError:
        if not quick:
            raise
    predictor, row, calls = ours.predictor(), X[7], 20 if quick else 500
    ways = [("LocallyLinearSVR", "predictor()", lambda: predictor(row))]
    if "LightGBM" in fitted:
        booster = fitted["LightGBM"].booster_
        ways.append(("LightGBM", "booster_.predict", lambda: booster.predict(X[7:8], num_threads=1)))
    ways += [(title, "predict", lambda model=model: model.predict(X[7:8])) for title, model in fitted.items()]
    records = []
    for title, by, work in ways:
        microseconds = round(1e6 * fastest(work, calls, clock=perf_counter), 2)
        records.append({"model": title, "by": by, "microseconds": microseconds})
        show(records[-1])
    write_results("regression", "latency", records, options=options)


def kept(part, options, stays) -> list:
    """Stored records of a part that are not measured again."""
    return [] if options.quick else [r for r in read_results("regression").get(part, {}).get("records", []) if stays(r)]


PARTS = {
    "solver": run_solver, "quantile": run_quantile, "ranks": run_ranks, "intervals": run_intervals,
    "latency": run_latency,
}  # fmt: skip


def main():
    options = arguments(
        __doc__,
        sets=[*LABELS, "synthetic"],
        parts=PARTS,
        only={"help": "one model of the part ranks"},
        limit={"type": float, "default": SECONDS, "help": "seconds of a fit of the part solver, on the wall"},
    )
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    for part in options.parts:
        print(part)
        PARTS[part](options)


if __name__ == "__main__":
    main()
