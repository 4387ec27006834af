"""The end of a search: one model or a blend of a few, as one mosaic that was judged."""

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmosaic.maps import over_measured_rows
from svmosaic.model.blending import blend
from svmosaic.search.engine import Search, Trial
from svmosaic.search.plan import MOST_WEIGHTS, TWICE, Candidate

# Rounds of the greedy blend; a model must lower the loss by this share of it to be added; rows that are looked at.
ROUNDS, GAIN, MOST_ROWS = 25, 1e-4, 8000
# Models that a blend is made of: chosen among so many, by score and by loss each.
AMONG = 10
# If all rows were held out in turn, there are few, and small differences of loss are mostly chance: half of the weight
# is shared by so many models of least loss, at most so many of a kind, and of very few rows all of it
# (by studies on training rows).
EQUALS, OF_A_KIND = 8, 2
# Standard errors of the difference by which a blend may be behind the best single model.
ERRORS = 2.0
# A blend of more numbers than `LIGHT` gives up parts, as long as `WORTH` of the numbers at most are left without one,
# for this share of its loss in all.
LIGHT, WORTH, LIGHTER = 1_000_000, 0.75, 0.005
# If this share of the rows or less was held out, a last fit would hardly learn from it.
HARDLY_HELD_OUT = 0.05
# A last fit is begun if there is this factor of the time that a fit with rows held out took, for as many rows.
SAFETY = 1.3
# The loss of held-out rows may be higher by this share in a fit that includes them.
NO_WORSE = 1.02


@dataclass
class Part:
    """A model of the blend; its estimators take rows as measured."""

    weight: float
    candidate: Candidate
    estimators: list
    scaling: Any
    mosaic: Any


@dataclass
class Found:
    """What a search has found.

    Attributes
    ----------
    parts : list of Part
        The largest weight first.
    mosaic : Mosaic
        Their weighted sum.
    score : float
        Its held-out score; nan if there were too few rows to hold any out.
    rows : ndarray of int or None
        Rows that were held out.
    scores : ndarray of shape (n_held_out, n_outputs) or None
        Their scores by models that had not seen them, in the units of `mosaic`.
    """

    parts: list
    mosaic: Any
    score: float
    rows: Any
    scores: Any


def choose(search: Search, *, blends=True) -> list[tuple[Trial, float]]:
    """Trials and weights: the best one, or a blend if that is not worse by held-out rows.

    The blend is kept if its loss is not above that of the best single one, and its score is not behind by more than two
    standard errors. Parts that cost more numbers than they are worth are left out.
    """
    judge = search.judge
    done = [t for t in search.trials if not t.failure]
    if not done:
        reasons = "; ".join(sorted({t.failure for t in search.trials}))
        raise ValueError(f"no candidate could be fitted: {reasons}")
    done = _comparable(search, done)
    best = min(done, key=lambda t: t.rank)
    rows = best.rows

    def acceptable(chosen):
        scores = judge.tempered(blended(chosen), rows)
        if judge.loss(scores, rows) > best.loss:
            return False
        behind = best.score - judge.score_or_least(scores, rows)
        return behind <= 0 or behind <= ERRORS * judge.error_of_difference(best.scores, scores, rows)

    if blends and len(done) > 1:
        few = {id(t): t for key in (lambda t: t.rank, lambda t: (t.loss,)) for t in sorted(done, key=key)[:AMONG]}
        pool = sorted(few.values(), key=lambda t: t.loss)
        weights = [greedy_weights(judge, [t.scores for t in pool], rows)]
        if len(search.folds) > 1:
            share = 1.0 if search.X.shape[0] <= TWICE else 0.5
            weights.insert(0, share * equal_weights(pool) + (1.0 - share) * weights[0])
        for some in weights:
            chosen = _small_enough(search, [(t, float(w)) for t, w in zip(pool, some, strict=True) if w > 0])
            if acceptable(chosen):
                return _lighter(search, chosen, acceptable)
    return [(best, 1.0)]


def greedy_weights(judge, scores, rows, *, rounds=ROUNDS) -> np.ndarray:
    """Weights, which sum to one, of models that are added one by one, with replacement, while the loss falls.

    Parameters
    ----------
    judge : Judge
    scores : list of ndarray of shape (n_rows, n_outputs)
        Tempered, of the same rows for each model; the first of equals is taken.
    rows : ndarray of int
        The rows with these scores.
    rounds : int

    Returns
    -------
    ndarray of shape (n_models,)
    """
    if len(rows) > MOST_ROWS:
        kept = np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int)
        rows, scores = rows[kept], [one[kept] for one in scores]
    counts = np.zeros(len(scores), dtype=int)
    total, best = np.zeros_like(scores[0]), np.inf
    for n in range(1, rounds + 1):
        losses = [judge.loss((total + one) / n, rows) for one in scores]
        chosen = int(np.argmin(losses))
        if losses[chosen] > best * (1 - GAIN):
            break
        best = losses[chosen]
        counts[chosen] += 1
        total += scores[chosen]
    return counts / counts.sum()


def equal_weights(pool, n=EQUALS, of_a_kind=OF_A_KIND) -> np.ndarray:
    """Equal weights of the first `n` trials, with no more than `of_a_kind` of one kind."""
    counts: Counter = Counter()
    weights = np.zeros(len(pool))
    for k, trial in enumerate(pool):
        if counts[trial.candidate.kind] < of_a_kind and counts.total() < n:
            counts[trial.candidate.kind] += 1
            weights[k] = 1.0
    return weights / weights.sum()


def _comparable(search, done) -> list[Trial]:
    """The last trial of each candidate, of those with the most parts held out.

    Of those with fewer parts, if one that had no time to go on is better on the rows of the first part, which all have,
    by more than two standard errors.
    """
    judge, first = search.judge, search.folds[0][1]
    by_parts: dict[int, dict] = {}
    for trial in sorted(done, key=lambda t: t.n_rows):
        by_parts.setdefault(trial.n_parts, {})[trial.candidate] = trial
    most, *others = (by_parts[n] for n in sorted(by_parts, reverse=True))
    for fewer in others:
        left = [trial for candidate, trial in fewer.items() if candidate not in most]
        if left:
            ahead, here = (min(pool, key=lambda t: t.loss).scores[: len(first)] for pool in (left, most.values()))
            difference = judge.losses(ahead, first) - judge.losses(here, first)
            if difference.mean() < -ERRORS * np.std(difference) / np.sqrt(len(first)):
                most = fewer
    return list(most.values())


def blended(chosen) -> np.ndarray:
    """Held-out scores of a weighted sum of trials."""
    return sum(weight * trial.scores for trial, weight in chosen)


def n_weights(search, chosen) -> int:
    """Numbers that a blend holds, about: parts with curves see the knots of each other."""
    n_features, n_outputs = search.X.shape[1], search.judge.target.n_outputs
    candidates = [t.candidate for t, _ in chosen]
    knots = sum({c.knots for c in candidates})
    bent = (replace(c, pieces=knots) if c.knots else c for c in candidates)
    return sum(c.n_weights(n_features, n_outputs) for c in bent)


def n_tiles(trial) -> int:
    """Tiles of a model of the trial, if there is one; at most, if not."""
    return max((model.mosaic_.n_tiles for model in trial.models), default=trial.candidate.n_tiles)


def _small_enough(search, chosen):
    """The largest weights that fit into one model, scaled to sum to one."""
    kept: list[tuple[Trial, float]] = []
    for pair in sorted(chosen, key=lambda pair: -pair[1]):
        more = [*kept, pair]
        if not kept or (
            sum(n_tiles(t) for t, _ in more) <= search.most_tiles and n_weights(search, more) <= MOST_WEIGHTS
        ):
            kept = more
    return _to_one(kept)


def _lighter(search, chosen, acceptable):
    """The blend without parts that cost far more numbers than they are worth, as long as there is one.

    Parts with curves see the knots of each other, so that all of them together are tried too.
    """
    judge, rows = search.judge, chosen[0][0].rows

    def loss(parts):
        return judge.loss(judge.tempered(blended(parts), rows), rows)

    most = (1.0 + LIGHTER) * loss(chosen)
    while len(chosen) > 1 and n_weights(search, chosen) > LIGHT:
        fewer = [[pair for pair in chosen if pair is not one] for one in chosen]
        fewer.append([(t, weight) for t, weight in chosen if not t.candidate.knots])
        fewer = [_to_one(some) for some in fewer if 0 < len(some) < len(chosen)]
        fewer = [some for some in fewer if n_weights(search, some) <= WORTH * n_weights(search, chosen)]
        fewer = [some for some in fewer if loss(some) <= most and acceptable(some)]
        if not fewer:
            break
        chosen = min(fewer, key=lambda some: n_weights(search, some))
    return chosen


def _to_one(chosen):
    """The same trials with weights that sum to one."""
    total = sum(weight for _, weight in chosen)
    return [(trial, weight / total) for trial, weight in chosen]


def finish(search: Search, chosen, deadline) -> Found:
    """Fit what was chosen to all rows, as far as time allows, and blend it to one mosaic.

    A part for which there is no time, or whose fit to all rows is worse for rows that were held out, is the mean of its
    judged models, each fitted without another part of the rows.
    """
    for trial in search.trials:
        trial.weight = 0.0
    # Models are kept of all but the worst trials of very large models.
    kept = [(t, w) for t, w in chosen if t.models] or chosen[:1]
    kept = sorted(_to_one(kept), key=lambda pair: -pair[1])
    refits = len(search.folds[0][1]) > HARDLY_HELD_OUT * search.X.shape[0]
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for trial, weight in kept:
            trial.weight = weight
            refitted = _refitted(search, trial, deadline) if refits or not trial.models else None
            models.append(trial.models if refitted is None else [refitted])

    def too_large():
        return sum(model.mosaic_.n_tiles for several in models for model in several) > search.most_tiles

    for n in range(max(map(len, models)) - 1, 0, -1):
        models = [several[:n] for several in models] if too_large() else models
    if too_large():  # trees that all rows have more of
        models = [trial.models[:1] or several for several, (trial, _) in zip(models, kept, strict=True)]
    parts = [_part(search, weight, trial, several) for several, (trial, weight) in zip(models, kept, strict=True)]
    if len(parts) == 1:
        trial = kept[0][0]
        scores = (trial.scores - trial.shift) / trial.factor
        return Found(parts, parts[0].mosaic, trial.score, trial.rows, scores)
    mosaic = blend([part.mosaic for part in parts], [trial.factor * weight for trial, weight in kept])
    # What was added to the scores of all classes is not in the mosaic.
    rows, scores = kept[0][0].rows, blended(kept) - sum(weight * trial.shift for trial, weight in kept)
    score = search.judge.score_or_least(search.judge.tempered(scores, rows), rows)
    return Found(parts, mosaic, score, rows, scores)


def _refitted(search, trial, deadline):
    """The candidate fitted to all rows; None if there is no time, or if it came out worse."""
    candidate, n_rows = trial.candidate, search.X.shape[0]
    began = perf_counter()
    limit = None if deadline is None or not trial.models else deadline - began
    expected = SAFETY * trial.seconds / trial.n_parts * n_rows / trial.n_rows
    if limit is not None and expected > limit:
        search.out_of_time = True
        return None
    try:
        model = search.fit(candidate, np.arange(n_rows), limit, search.n_jobs)
    except (ValueError, FloatingPointError):
        if not trial.models:
            raise
        return None  # a learned gate that diverged with all rows
    if limit is not None and perf_counter() >= deadline:
        search.out_of_time = True
        return None
    if not trial.models:
        return model
    # It has seen these rows, so that it should know them at least as well.
    rows, judge = trial.rows, search.judge
    held = search.folds[0][1]
    mine = judge.scores_of(model, search.scaled(candidate, search.X[held]))
    mine = mine if trial.mixing is None else trial.mixing(mine)
    judged = judge.losses(trial.scores, rows)[np.isin(rows, held)].mean()
    return model if judge.losses(trial.factor * mine + trial.shift, held).mean() <= NO_WORSE * judged else None


def finish_linear(search: Search, C=1.0) -> Found:
    """A linear model of all rows, for want of rows to choose by."""
    trial = Trial(Candidate("linear", search.usual[0], C=C), 0, search.X.shape[0], 0)
    model = search.fit(trial.candidate, np.arange(search.X.shape[0]), n_jobs=search.n_jobs)
    part = _part(search, 1.0, trial, [model])
    return Found([part], part.mosaic, np.nan, None, None)


def _part(search, weight, trial, models) -> Part:
    scaling = search.scalings[trial.candidate.scaling]
    for model in models:
        mosaic = over_measured_rows(scaling, model.mosaic_)
        model.mosaic_ = mosaic if trial.mixing is None else trial.mixing.over(mosaic)
    mosaic = models[0].mosaic_ if len(models) == 1 else blend([model.mosaic_ for model in models])
    return Part(weight, trial.candidate, models, scaling, mosaic)
