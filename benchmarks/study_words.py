"""Rules in words: those of the package against the best node of a scikit-learn tree, by coverage and purity.

Models with several kinds of gates are fitted to training rows of each table. The rule of each region is found on one
half of the rows, and measured on both. A tree is grown for each region, to tell its rows from all others; its rule is
the path to the node with the best F-score. Trees see numbers as they are ("tree"), or in the bins of the package, whose
edges are round numbers ("binned tree"); both see texts one-hot.

    python benchmarks/study_words.py [--sets adult housing] [--quick]
"""

import argparse
import itertools
from time import process_time

from common import print_table, write_results  # before NumPy: it gives every library one thread

# isort: split
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from table_data import folder

from svmosaic import KMeansSVC, LearnedGateSVC, LocallyLinearSVC, TreeSVC
from svmosaic.explain.regions import find_regions
from svmosaic.explain.subject import Subject
from svmosaic.explain.words import MOST_NAMED, MOST_TEXTS, Describer, OneOf, holds
from svmosaic.gates.trees import Condition

LABELS = {
    "abalone": "rings", "adult": "income", "beijing_pm25": "pm25", "breast_cancer": "recurrence",
    "german_credit": "risk", "horse_colic": "surgical_lesion", "housing": "medv", "mammography": "class",
    "wine_white": "quality",
}  # fmt: skip
MODELS = {
    "learned": LearnedGateSVC(8, max_iter=20, random_state=0),
    "clusters": KMeansSVC(8, random_state=0),
    "local": LocallyLinearSVC(24, tol=1e-1, random_state=0),
    "forest": TreeSVC(6, max_leaves=8, tol=1e-1, random_state=0),
}
MOST_ROWS, MAX_REGIONS, MOST_CONDITIONS = 4000, 12, 4


def rows_of(name):
    """A table without its label, and whether the label is the last class or above the median."""
    frame = pd.read_csv(folder() / f"{'adult_train' if name == 'adult' else name}.csv").dropna(subset=[LABELS[name]])
    frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0).reset_index(drop=True)
    label = frame.pop(LABELS[name])
    y = label > label.median() if pd.api.types.is_numeric_dtype(label) and label.nunique() > 2 else label == label.max()
    return frame.drop(columns=[c for c in ("No", "hospital_number") if c in frame]), y.to_numpy()


def regions_of(frame, y, model):
    """Values of the columns, and the region of each row."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = make_pipeline(SimpleImputer(strategy="constant", fill_value="(missing)"), OneHotEncoder())
    steps = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (texts, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0,
    )  # fmt: skip
    subject = Subject(make_pipeline(steps, model).fit(frame, y), frame)
    region = find_regions(subject, MAX_REGIONS).region_of_row
    return [subject.values(j) for j in range(len(subject.columns))], region


def by_package(columns, member):
    return Describer(columns).rule(member, MOST_CONDITIONS).conditions


def by_tree(columns, member, edges=None):
    """The path to the best node of a tree, merged into at most one condition per column of numbers and one of text."""
    features, meaning = [], []
    for j, values in enumerate(columns):
        if values.dtype == object:
            texts, counts = np.unique(values.astype(str), return_counts=True)
            for text in texts[np.argsort(-counts, kind="stable")[:MOST_TEXTS]]:
                features.append(values == text)
                meaning.append((j, str(text)))
        else:
            features.append(values if edges is None else np.searchsorted(edges[j], values).astype(float))
            if edges is not None:
                features[-1][np.isnan(values)] = np.nan
            meaning.append((j, None))
    X = np.column_stack(features).astype(np.float64)
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0).fit(X, member).tree_
    conditions, score = {0: {}}, {}
    for node in range(tree.node_count):  # children come after their parent
        rows = tree.n_node_samples[node]
        score[node] = 2 * rows * tree.value[node, 0, -1] / (rows + member.sum())
        if tree.children_left[node] < 0:
            continue
        (j, text), cut = meaning[tree.feature[node]], tree.threshold[node]
        if edges is not None and text is None and np.isfinite(cut):  # an infinite one tells missing numbers
            cut = edges[j][min(int(cut), len(edges[j]) - 1)]
        for child, is_right in ((tree.children_left[node], False), (tree.children_right[node], True)):
            path = dict(conditions[node])
            if text is None:
                low, high = path.get(j, (-np.inf, np.inf))
                path[j] = (max(low, cut), high) if is_right else (low, min(high, cut))
            else:
                kept, out = path.get(j, (None, ()))
                path[j] = (text, ()) if is_right else (kept, out if kept else (*out, text))
            conditions[child] = path
    allowed = [node for node, path in conditions.items() if len(path) <= MOST_CONDITIONS and _is_short(path)]
    best = max(allowed, key=score.get)
    return tuple(
        Condition(j, *found)
        if columns[j].dtype != object
        else OneOf(j, (found[0],) if found[0] else found[1], not found[0])
        for j, found in conditions[best].items()
    )


def _is_short(path):
    return all(not isinstance(out, tuple) or len(out) <= MOST_NAMED for _, out in path.values())


def by_binned_tree(columns, member):
    edges = {j: b.edges for j, b in enumerate(Describer(columns)._binned) if hasattr(b, "edges")}
    return by_tree(columns, member, edges)


FINDERS = {"package": by_package, "tree": by_tree, "binned tree": by_binned_tree}


def shares(conditions, columns, member):
    """Coverage, purity and F-score of conditions."""
    inside = np.ones(len(member), dtype=bool)
    for one in conditions:
        inside &= holds(one, columns[one.feature])
    hits = (inside & member).sum()
    return hits / max(member.sum(), 1), hits / max(inside.sum(), 1), 2 * hits / max(inside.sum() + member.sum(), 1)


def study(name, model):
    """One record per way of finding rules: means over the regions, each counted by its rows."""
    frame, y = rows_of(name)
    columns, region = regions_of(frame, y, MODELS[model])
    half = np.random.RandomState(0).permutation(len(y)) < len(y) // 2
    first, second = ([values[part] for values in columns] for part in (half, ~half))
    for finder, find in FINDERS.items():
        found, weight, start = [], [], process_time()
        for k in np.unique(region[half]):
            member = region == k
            rule = find(first, member[half])
            found.append([*shares(rule, first, member[half]), *shares(rule, second, member[~half]), len(rule)])
            weight.append(member[half].sum())
        seconds = process_time() - start
        means = np.average(found, axis=0, weights=weight)
        names = ("covers", "pure", "f_score", "covers_new", "pure_new", "f_score_new", "conditions")
        yield {
            "set": name, "model": model, "finder": finder, "regions": len(found),
            **{n: round(float(v), 4) for n, v in zip(names, means, strict=True)},
            "ms_per_rule": round(1000 * seconds / len(found), 2),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=LABELS, default=list(LABELS))
    parser.add_argument("--quick", action="store_true", help="one table and one model; nothing is written")
    options = parser.parse_args()
    tasks = itertools.product(["housing"] if options.quick else options.sets, ["clusters"] if options.quick else MODELS)
    records = [record for name, model in tasks for record in study(name, model)]
    columns = [key for key in records[0] if key not in ("set", "model", "finder", "regions")]
    summary = {
        finder: {key: round(float(np.mean([r[key] for r in records if r["finder"] == finder])), 4) for key in columns}
        for finder in FINDERS
    }
    print_table("means", ["finder", *columns], [[f, *(str(v) for v in s.values())] for f, s in summary.items()])
    if not options.quick:
        write_results("study_words", "rules", records, summary)


if __name__ == "__main__":
    main()
