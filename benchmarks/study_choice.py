"""What a search should end with: rules that choose among the same trials, judged on rows that the search did not see.

The training rows (split 0) of small sets are divided anew several times: 70 % are searched, the rest judges. Of larger
sets a few training rows are searched, and others, up to 8,000, judge. After each search the best trials are fitted to
all searched rows, once, and every rule is applied to the same scores. No test row is read into it.

    python benchmarks/study_choice.py                      # adds to results/choice_study.json set by set
    python benchmarks/study_choice.py --sets heart,vehicle # some sets; "usps of many rows" is usps with 5,000
    python benchmarks/study_choice.py --show               # means over the sets of what is stored
"""

from unittest import mock

import numpy as np
from auto_data import SMALL, TABLES, adult, one_hot, paper_split, table_split
from common import RESULTS
from sklearn.model_selection import train_test_split
from study_search import study

from svmosaic.estimators.data import validate_training
from svmosaic.estimators.linear import LinearSVC
from svmosaic.search import choice
from svmosaic.search._families import build_classifier
from svmosaic.search.blend import greedy_weights
from svmosaic.search.climb import Search
from svmosaic.search.judge import ClassJudge
from svmosaic.search.rungs import folds_of
from svmosaic.search.trials import rank

FILE = RESULTS / "choice_study.json"
# Rows that are searched, of larger sets.
DRAWN = {
    "adult": 700, "mammography": 1500, "wine_white": 1500, "covtype": 2000, "ijcnn1": 1500, "satimage": 400,
    "usps": 1000, "pendigits": 300, "svmguide1": 300, "letter": 1500,
}  # fmt: skip
# The same with so many that one part of them is held out.
LARGER = {
    "adult": 8000, "mammography": 5000, "covtype": 8000, "ijcnn1": 8000, "usps": 5000, "pendigits": 5000,
    "letter": 8000, "skin": 8000, "mnist": 6000,
}  # fmt: skip
MANY = " of many rows"
SETS = (*(name for name in TABLES if name not in DRAWN), *SMALL, *DRAWN, *(name + MANY for name in LARGER))
N_SPLITS, MOST_JUDGING = 3, 8000
# Seconds per search, on one thread: as the search of a user, it does not come to try everything.
BUDGET, BUDGET_OF_MANY = 12.0, 20.0


def training_rows(name):
    if name in TABLES or name == "adult":
        train, test = adult() if name == "adult" else table_split(name, 0)
        return one_hot(train, test)[0], train.y
    X, y, _, _ = paper_split(name, 0)
    return np.asarray(X, dtype=np.float64), y


def pool_of(trials):
    """The ten best by score, and by loss, in the order of the loss, and the best linear model."""
    few = {id(t): t for key in (rank, lambda t: (t.loss,)) for t in sorted(trials, key=key)[: choice.AMONG]}
    linear = min((t for t in trials if t.candidate.family == "linear"), key=rank)
    return sorted(few.values(), key=lambda t: t.loss) + [linear] * (id(linear) not in few)


def greedy(judge, pool, **options):
    return greedy_weights(judge, [t.scores for t in pool], pool[0].rows, **options)


def bagged(judge, pool, rng, n_bags=10, share=0.5):
    """Mean weights of greedy blends, each over some of the models."""
    total = np.zeros(len(pool))
    for _ in range(n_bags):
        some = np.sort(rng.permutation(len(pool))[: max(2, int(share * len(pool)))])
        total[some] += greedy(judge, [pool[k] for k in some])
    return total / total.sum()


def equal(pool, n):
    return np.where(np.arange(len(pool)) < n, 1.0, 0.0) / min(n, len(pool))


def unless_behind(judge, pool, weights, errors):
    """The blend, unless its score is behind the best single one by more than so many standard errors."""
    best = min(range(len(pool)), key=lambda k: rank(pool[k]))
    rows = pool[0].rows
    scores = judge.tempered(sum(w * t.scores for w, t in zip(weights, pool, strict=True)), rows)
    behind = pool[best].score - judge.score(scores, rows)
    if behind > 0 and behind > errors * judge.error_of_difference(pool[best].scores, scores, rows):
        return np.eye(len(pool))[best]
    return weights


def as_chosen(search, pool):
    """The weights by which the search ends, for the trials of the pool."""
    chosen = {id(t): w for t, w in choice.choose(search)}
    return np.array([chosen.get(id(t), 0.0) for t in pool])


def with_linear(weights, pool, share):
    """The same with at least so much of the weight for the best linear model."""
    linear = min((k for k, t in enumerate(pool) if t.candidate.family == "linear"), key=lambda k: rank(pool[k]))
    if weights[linear] >= share:
        return weights
    others = np.where(np.arange(len(pool)) == linear, 0.0, weights)
    return share * np.eye(len(pool))[linear] + (1.0 - share) * others / others.sum()


def rules(search, pool):
    judge, rng = search.judge, np.random.RandomState(0)
    found = greedy(judge, pool)
    yield "as it is", as_chosen(search, pool)
    for share in (-1.0, 0.002, 0.01, 0.02):
        with mock.patch.object(choice, "LIGHTER", share):
            title = "of any size" if share < 0 else f"parts given up for {share:.1%} of the loss"
            yield f"as it is, {title}", as_chosen(search, pool)
    for errors in (0.0, 1.0, 3.0, 4.0, np.inf):
        with mock.patch.object(choice, "ERRORS", errors):
            yield f"as it is, up to {errors:g} errors behind", as_chosen(search, pool)
    for share in (0.1, 0.25, 0.5):
        yield f"as it is, and {share:.0%} for the best linear model", with_linear(as_chosen(search, pool), pool, share)
    with mock.patch.object(choice, "_with_linear", return_value=None), mock.patch.object(choice, "LIGHTER", -1):
        yield "as it is, of any size, no share for a linear model", as_chosen(search, pool)
    yield "best score alone", np.eye(len(pool))[min(range(len(pool)), key=lambda k: rank(pool[k]))]
    yield "least loss alone", np.eye(len(pool))[0]
    yield "greedy", found
    yield "greedy, unless 1 error behind", unless_behind(judge, pool, found, 1.0)
    yield "greedy, unless 2 errors behind", unless_behind(judge, pool, found, 2.0)
    yield "greedy, in bags", bagged(judge, pool, rng)
    yield "greedy, in bags, unless 2 errors behind", unless_behind(judge, pool, bagged(judge, pool, rng), 2.0)
    for n in (3, 5, 8, 12):
        yield f"{n} of least loss", equal(pool, n)
    for margin in (0.02, 0.05, 0.1):
        near = equal(pool, min(8, sum(t.loss <= (1 + margin) * pool[0].loss for t in pool)))
        yield f"up to 8 within {margin:.0%} of the least loss", near
        yield f"greedy and up to 8 within {margin:.0%} of the least loss", 0.5 * (found + near)
    yield "greedy and 5 of least loss", 0.5 * (found + equal(pool, 5))
    bags = bagged(judge, pool, rng)
    for n in (5, 8, 12):
        both = 0.5 * (bags + equal(pool, n))
        yield f"greedy, in bags, and {n} of least loss", both
        yield f"greedy, in bags, and {n} of least loss, unless 2 errors behind", unless_behind(judge, pool, both, 2.0)
    yield "greedy and 8 of least loss", 0.5 * (found + equal(pool, 8))
    for n in (1, 2, 3):
        some = choice.equal_weights(pool, 8, n)
        yield f"8 of least loss, {n} of a kind", some
        yield f"greedy and 8 of least loss, {n} of a kind", 0.5 * (found + some)


def judged(title, split):
    name, many = title.removesuffix(MANY), title.endswith(MANY)
    X, y = training_rows(name)
    n_searched = (LARGER if many else DRAWN).get(name, round(0.7 * len(y)))
    X, Z, y, z = train_test_split(X, y, train_size=n_searched, stratify=y, random_state=split)
    Z, z = Z[:MOST_JUDGING], z[:MOST_JUDGING]
    varied = np.ptp(X, axis=0) > 0
    X, Z = X[:, varied], Z[:, varied]
    X, target = validate_training(LinearSVC(), X, y)
    metric = TABLES[name][3] if name in TABLES else "accuracy"
    classes, counts = np.unique(y, return_counts=True)
    judge = ClassJudge(X, target, metric, classes[counts.argmin()] if metric != "accuracy" else None)
    rng = np.random.RandomState(split)
    search = Search(
        X, target.classes[target.label], judge, build_classifier, folds_of(target, 0.2, rng), most_tiles=100_000,
        budget=BUDGET_OF_MANY if many else BUDGET, seed=0, n_jobs=1, say=lambda line: None, watch=lambda search: False,
    )  # fmt: skip
    search.run()
    pool = pool_of(choice._judged_by_most(judge, [t for t in search.trials if not t.failure]))
    # A judge of the rows that were set aside, which knows their labels by the same classes.
    _, truth = validate_training(LinearSVC(), Z, z)
    outer = ClassJudge(Z, truth, metric, classes[counts.argmin()] if metric != "accuracy" else None)
    everything, rows = np.arange(len(y)), np.arange(len(z))
    scores = []
    for trial in pool:
        model = search.fit(trial.candidate, everything)
        found = judge.scores_of(model, search.scaled(trial.candidate, np.asarray(Z, float)))
        scores.append(trial.factor * (found if trial.mixing is None else trial.mixing(found)))
    for rule, weights in rules(search, pool):
        factor, shift = judge.temper(
            sum(w * (t.scores - t.shift) for w, t in zip(weights, pool, strict=True)), pool[0].rows
        )
        mixed = factor * sum(w * s for w, s in zip(weights, scores, strict=True)) + shift
        yield {
            "set": title, "split": split, "rule": rule, "score": round(outer.score(mixed, rows), 5),
            "loss": round(outer.loss(mixed, rows), 5), "parts": int((weights > 0).sum()),
            "numbers": choice.n_weights(search, [(t, w) for t, w in zip(pool, weights, strict=True) if w > 0]),
        }  # fmt: skip


def show(records):
    sets, names = (list(dict.fromkeys(r[key] for r in records)) for key in ("set", "rule"))
    print(f"{'':45}" + "".join(f"{s[:14]:>16}" for s in sets) + "   mean behind")
    table = {
        (s, n): [np.mean([r[k] for r in records if (r["set"], r["rule"]) == (s, n)]) for k in ("score", "loss")]
        for s in sets for n in names
    }  # fmt: skip
    for n in names:
        cells = "".join(f"{100 * table[s, n][0]:8.2f} {table[s, n][1]:.4f} " for s in sets)
        behind = np.mean([max(table[s, m][0] for m in names) - table[s, n][0] for s in sets])
        loss = np.mean([table[s, n][1] / min(table[s, m][1] for m in names) - 1 for s in sets])
        print(f"{n:45}{cells}  {100 * behind:6.2f}  loss {100 * loss:5.1f} %")


def judged_by_all(name):
    return [record for split in range(N_SPLITS) for record in judged(name, split)]


if __name__ == "__main__":
    study(__doc__.splitlines()[0], FILE, SETS, judged_by_all, show)
