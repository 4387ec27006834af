"""Rules in words: those of the package, the best nodes of trees, against rules grown greedily, by coverage and purity.

Models with several kinds of gates are fitted to training rows of each table. The rule of each region is found on one
half of the rows, and measured on both ("new": on the half that it was not found on).

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
from table_data import folder

from svmosaic import KMeansSVC, LearnedGateSVC, LocallyLinearSVC, TreeSVC
from svmosaic.explain.regions import find_regions
from svmosaic.explain.subject import Subject
from svmosaic.explain.words import MOST_CONDITIONS, MOST_NAMED, MOST_TEXTS, OneOf, find_rules, holds
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
MOST_ROWS, MAX_REGIONS = 4000, 12
# Of the greedy search: bins of a column of numbers, and what a third condition must add to the score.
N_BINS, LEAST_GAIN = 16, 0.02


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


class Greedy:
    """The rule that grows by the condition that raises its F-score most: an interval of bins, or a few texts."""

    def __init__(self, columns):
        self.columns = columns
        self.bins = [self.binned(values) for values in columns]

    @staticmethod
    def binned(values):
        """The bin of each row (the last one holds what no condition names), and what the bins are."""
        if values.dtype == object:
            texts, counts = np.unique(values.astype(str), return_counts=True)
            texts = texts[np.sort(np.argsort(-counts, kind="stable")[:MOST_TEXTS])]
            at = np.minimum(np.searchsorted(texts, values.astype(str)), len(texts) - 1)
            return np.where(texts[at] == values, at, len(texts)), texts
        edges = np.unique(np.quantile(values[~np.isnan(values)], np.arange(1, N_BINS) / N_BINS, method="lower"))
        return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values)), edges

    def conditions(self, member):
        """Conditions of the group of rows, each added if it raises the score enough."""
        total, inside, chosen = member.sum(), np.ones(len(member), dtype=bool), {}
        score = 2 * total / (len(member) + total)
        while True:
            found = [(*self.best(j, inside, member, total), j) for j in range(len(self.columns)) if j not in chosen]
            best, condition, j = max(found, key=lambda one: one[0], default=(0.0, None, None))
            if best <= score + (1e-9 if len(chosen) < 2 else LEAST_GAIN) or len(chosen) == MOST_CONDITIONS:
                return tuple(chosen.values())
            score, chosen[j] = best, condition
            inside &= holds(condition, self.columns[j])

    def best(self, j, inside, member, total):
        """The best score of one more condition on a column, and the condition."""
        codes, named = self.bins[j]
        is_text = self.columns[j].dtype == object
        n = len(named) + (1 if is_text else 2)
        everyone = np.bincount(codes[inside], minlength=n)
        hits = np.bincount(codes[inside & member], minlength=n)
        if is_text:  # the texts with the largest shares of the group, or all but those with the smallest
            order = np.argsort(-hits[:-1] / np.maximum(everyone[:-1], 1), kind="stable")
            sets = [(order[:k], False) for k in range(1, MOST_NAMED + 1)]
            sets += [(order[len(order) - k :], True) for k in range(1, MOST_NAMED + 1)]
            scores = []
            for some, negated in sets:
                sums = [part.sum() - part[some].sum() if negated else part[some].sum() for part in (hits, everyone)]
                scores.append(2 * sums[0] / (sums[1] + total))
            some, negated = sets[int(np.argmax(scores))]
            return max(scores), OneOf(j, tuple(map(str, named[some])), negated)
        sums = [np.concatenate([[0], np.cumsum(part[:-1])]) for part in (hits, everyone)]
        within = [np.subtract.outer(part, part) for part in sums]  # of the bins from one index to before another
        score = np.where(np.tri(n, k=-1, dtype=bool), 2 * within[0] / (within[1] + total), -1.0)
        high, low = divmod(int(score.argmax()), n)
        ends = np.concatenate([[-np.inf], named, [np.inf]])
        return float(score.max()), Condition(j, float(ends[low]), float(ends[high]))


def by_greedy(columns, members):
    greedy = Greedy(columns)
    return [greedy.conditions(member) for member in members]


def by_tree(columns, members):
    return [rule.conditions for rule in find_rules(columns, members)]


FINDERS = {"tree": by_tree, "greedy": by_greedy}


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
        known = np.unique(region[half])
        start = process_time()
        rules = find(first, [region[half] == k for k in known])
        seconds = process_time() - start
        found, weight = [], []
        for rule, k in zip(rules, known, strict=True):
            member = region == k
            found.append([*shares(rule, first, member[half]), *shares(rule, second, member[~half]), len(rule)])
            weight.append(member[half].sum())
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
