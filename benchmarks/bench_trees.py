"""Trees as gates: TreeSVC on everyday tables next to trees, forests, boosting and an explainable boosting machine.

Parts, each of which replaces its own records in benchmarks/results/trees.json:

    adult     accuracy and ROC AUC; one readable tree, and the rules that it found
    tables    eight more sets, five systems, ranks
    speed     fit of adult, one row through predictor(), 100,000 rows in a batch next to LightGBM

Settings of TreeSVC are chosen by cross-validation on training rows, from the same few for every set; peers have their
defaults. Seconds are processor seconds of one thread.

    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_trees.py              all parts
    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_trees.py --parts adult  this one
    ... python benchmarks/bench_trees.py --parts tables --sets letter --out FILE one of its sets, into another file
    python benchmarks/bench_trees.py --quick                                  synthetic rows, half a minute
"""

import warnings

from common import arguments, fastest, gradient_boosting, mean_ranks, run_child, show, write_results  # isort: skip; first: it sets the threads

import numpy as np
from auto_data import encoded_adult, encoded_table
from bench_pieces import skewed_rows
from setting import load
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.tree import DecisionTreeClassifier

from svmosaic import TreeSVC

TABLES = ("german_credit", "breast_cancer", "horse_colic", "wine_white")
SETS = ("satimage", "letter", "pendigits", "covertype")
COVERTYPE_ROWS = 100_000
ADULT_CHOICE_ROWS = 16_000  # by which settings are chosen
COSTS = (0.03, 0.1, 0.3, 1.0)
READABLE = [
    TreeSVC(1, max_leaves=leaves, tiles=tiles, C=C, random_state=0)
    for leaves in (8, 12)
    for tiles in ("constant", "linear")
    for C in COSTS[:3]
]
CHOICES = [
    *(TreeSVC(32, tiles="linear", C=C, random_state=0) for C in COSTS[:2]),
    *(TreeSVC(32, tiles="constant", C=C, random_state=0) for C in COSTS[1:3]),
    *(TreeSVC(100, max_leaves=128, tiles="constant", min_rows_per_leaf=5, C=C, random_state=0) for C in COSTS[1:3]),
]
# Nothing but leaves: the global tile, whose penalty is so strong, stays zero.
ONLY_LEAVES = {"tiles": "constant", "pieces": None, "global_reg": 1e24, "random_state": 0}
CHOICES += [
    *(
        TreeSVC(64, max_leaves=1000, min_rows_per_leaf=1, C=0.3, growth=way, **ONLY_LEAVES)
        for way in ("forest", "extra")
    ),
]
# Seconds of a fit on the wall; what takes longer counts as last.
LIMIT = 900


def chosen(candidates, X, y, n_folds, largest=20_000):
    """The candidate with the best accuracy over folds of the training rows, or of a sample of them."""
    if len(y) > largest:
        X, _, y, _ = train_test_split(X, y, train_size=largest, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
        return max(candidates, key=lambda model: cross_val_score(clone(model), X, y, cv=folds).mean())


def settings_of(model):
    return {key: model.get_params()[key] for key in ("n_trees", "max_leaves", "tiles", "growth", "C")}


def peers(quick):
    """The systems beside ours, by name."""
    found = {
        "LightGBM, linear trees": gradient_boosting(linear_tree=True, random_state=0),
        "random forest": RandomForestClassifier(300, random_state=0),
        "decision tree": DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
    }
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        if not quick:
            raise
        return found
    limits = {"max_rounds": 50, "outer_bags": 2, "interactions": 0} if quick else {}
    return found | {"explainable boosting machine": ExplainableBoostingClassifier(n_jobs=1, random_state=0, **limits)}


def score(model, X, y, Z, z):
    """Accuracy on Z, ROC AUC where there are two classes, and processor seconds of the fit."""

    def work():
        fitted = clone(model).fit(X, y)
        found = {"accuracy": float(np.mean(fitted.predict(Z) == z))}
        if len(np.unique(y)) == 2:
            ours = hasattr(fitted, "decision_function")
            found["auc"] = roc_auc_score(z, fitted.decision_function(Z) if ours else fitted.predict_proba(Z)[:, 1])
        return found

    run = run_child(work, limit=LIMIT)
    if run.value is None:
        return {"accuracy": None, "seconds": round(run.seconds, 2)}
    return {key: round(float(value), 5) for key, value in run.value.items()} | {"seconds": round(run.seconds, 2)}


def run_adult(options):
    quick = options.quick
    names = [f"column {k}" for k in range(12)]
    if quick:
        (X, y), (Z, z) = skewed_rows(1500), skewed_rows(1500, 1)
    else:
        (X, y), (Z, z), names, _ = encoded_adult()
    records = []
    for title, candidates in (("TreeSVC", CHOICES), ("TreeSVC, one tree", READABLE)):
        best = chosen(candidates[:2] if quick else candidates, X, y, 4, ADULT_CHOICE_ROWS)
        records.append({"model": title, "settings": settings_of(best)} | score(best, X, y, Z, z))
        show(records[-1])
    rules = {"rules": rules_of(best, X, y, names)}
    for title, model in {"LightGBM": gradient_boosting(random_state=0), **peers(quick)}.items():
        records.append({"model": title} | score(model, X, y, Z, z))
        show(records[-1])
        write_results("trees", "adult", records, rules, options)  # after each: the last one takes long


def rules_of(model, X, y, names):
    """The rules of a single tree, as `export_text` prints them."""
    import pandas

    return clone(model).fit(pandas.DataFrame(X, columns=names), y).export_text().splitlines()


def splits_of(name):
    """(X, y, Z, z) of each split: three folds of a table, or the test part of a set."""
    if name == "skewed":
        yield (*skewed_rows(400), *skewed_rows(400, 1))
    elif name in TABLES:
        X, y = encoded_table(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the rarest class of wine_white has five rows
            for a, b in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
                yield X[a], y[a], X[b], y[b]
    elif name == "covertype":
        data = load("covtype")
        X, y = data.X_train.astype(np.float64), data.y_train
        X, _, y, _ = train_test_split(X, y, train_size=COVERTYPE_ROWS, random_state=0, stratify=y)
        yield X, y, data.X_test.astype(np.float64), data.y_test
    else:
        data = load(name)
        yield data.X_train.astype(np.float64), data.y_train, data.X_test.astype(np.float64), data.y_test


def run_tables(options):
    quick, records = options.quick, []
    for name in ("skewed",) if quick else options.sets:
        for fold, (X, y, Z, z) in enumerate(splits_of(name)):
            best = chosen(CHOICES[:2] if quick else CHOICES, X, y, 3, 8000)
            found = {"TreeSVC": (best, {"settings": settings_of(best)})}
            for title, (model, extra) in (found | {t: (m, {}) for t, m in peers(quick).items()}).items():
                records.append({"set": name, "fold": fold, "model": title} | extra | score(model, X, y, Z, z))
                show(records[-1])
        ranks = {"mean_rank": mean_ranks(records, "accuracy", -1)}
        write_results("trees", "tables", records, ranks, options)


def run_speed(options):
    quick = options.quick
    if quick:
        X, y = skewed_rows(1500)
    else:
        (X, y), *_ = encoded_adult()
    batch = np.tile(X, (-(-(2000 if quick else 100_000) // len(X)), 1))[: 2000 if quick else 100_000]
    records = []
    for n_trees in (1, 32):
        model = TreeSVC(n_trees, tiles="constant", random_state=0)
        fit = run_child(lambda model=model: clone(model).fit(X, y) and None, repeats=3)
        peer = gradient_boosting(n_estimators=n_trees, num_leaves=32, random_state=0).fit(X, y)
        predictor = clone(model).fit(X, y).predictor()
        batch_seconds = fastest(lambda p=predictor: p.decision_function(batch), 1)
        peer_seconds = fastest(lambda p=peer: p.predict_proba(batch), 1)
        record = {
            "trees": n_trees,
            "fit_seconds": round(fit.seconds, 3),
            "row_microseconds": round(1e6 * fastest(lambda p=predictor: p.predict(X[7]), 2000), 2),
            "batch_nanoseconds": round(1e9 * batch_seconds / len(batch), 1),
            "peer_batch_nanoseconds": round(1e9 * peer_seconds / len(batch), 1),
        }
        records.append(record)
        show(record)
    write_results("trees", "speed", records, options=options)


PARTS = {"adult": run_adult, "tables": run_tables, "speed": run_speed}


def main():
    options = arguments(__doc__, sets=TABLES + SETS, parts=PARTS, out=True)
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    for part in options.parts:
        print(part)
        PARTS[part](options)


if __name__ == "__main__":
    main()
