"""The end of a search: one model or a blend of a few, fitted to all rows, as one mosaic."""

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmosaic.maps import over_measured_rows
from svmosaic.model.blending import blend
from svmosaic.search.blend import greedy_weights
from svmosaic.search.candidates import MOST_WEIGHTS, Candidate
from svmosaic.search.climb import Search
from svmosaic.search.rungs import TWICE, kind_of
from svmosaic.search.trials import END, SAFETY, Trial, rank

# Models that a blend is made of: chosen among so many, by score and by loss each.
AMONG = 10
# If all rows were held out in turn, there are few, and small differences of loss are mostly chance: half of the weight
# is shared by so many models of least loss, at most so many of a kind, and of very few rows all of it
# (benchmarks/study_choice.py).
EQUALS, OF_A_KIND = 8, 2
# Standard errors of the difference by which a blend may be behind the best single model.
ERRORS = 2.0
# A blend of more numbers than `LIGHT` gives up parts, as long as `WORTH` of the numbers at most are left without one,
# for this share of its loss in all.
LIGHT, WORTH, LIGHTER = 1_000_000, 0.75, 0.005


@dataclass
class Part:
    """A model of the blend: its weight, the candidate, the fitted estimator, which takes rows as measured, and how it
    scales them."""

    weight: float
    candidate: Candidate
    estimator: Any
    scaling: Any


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

    The blend is kept if its loss is not above that of the best single one, its score is not behind by more than two
    standard errors, and not behind that of a linear model, which then may get half of the weight. Parts that cost more
    numbers than they are worth are left out.
    """
    done = [t for t in search.trials if not t.failure]
    if not done:
        reasons = "; ".join(sorted({t.failure for t in search.trials}))
        raise ValueError(f"no candidate could be fitted: {reasons}")
    done = _judged_by_most(search.judge, done)
    best = min(done, key=rank)
    alone = [(best, 1.0)]
    if not blends or len(done) == 1:
        return alone
    acceptable = partial(_acceptable, search.judge, best, done)
    for chosen in _blends(search, best, done):
        chosen = _small_enough(search, chosen)
        if acceptable(chosen):
            return _lighter(search, chosen, acceptable)
    return alone


def _blends(search, best, done):
    """Blends to be tried, the most wanted first, as lists of (trial, weight)."""
    best_few = {id(t): t for key in (rank, lambda t: (t.loss,)) for t in sorted(done, key=key)[:AMONG]}
    pool = sorted(best_few.values(), key=lambda t: t.loss)
    weights = [greedy_weights(search.judge, [t.scores for t in pool], best.rows)]
    if len(search.folds) > 1:
        share = 1.0 if search.X.shape[0] <= TWICE else 0.5
        weights.insert(0, share * equal_weights(pool) + (1.0 - share) * weights[0])
    found = [[(t, float(weight)) for t, weight in zip(pool, some, strict=True) if weight > 0] for some in weights]
    yield from found
    yield from filter(None, [_with_linear(search.judge, chosen, done) for chosen in found])


def _with_linear(judge, chosen, done):
    """The same with half of the weight for the best linear model; None unless there is one that is ahead."""
    linear = min((t for t in done if t.candidate.family == "linear"), key=rank, default=None)
    if linear is None:
        return None
    scores = judge.tempered(blended(chosen), linear.rows)
    if judge.score_or_least(scores, linear.rows) >= linear.score:
        return None
    others = [(t, 0.5 * weight) for t, weight in chosen if t is not linear]
    return [(linear, 1.0 - sum(weight for _, weight in others)), *others]


def _acceptable(judge, best, done, chosen) -> bool:
    """Whether a blend is worth having: see `choose`."""
    scores = judge.tempered(blended(chosen), best.rows)
    if judge.loss(scores, best.rows) > best.loss:
        return False
    score = judge.score_or_least(scores, best.rows)
    if score < max((t.score for t in done if t.candidate.family == "linear"), default=-np.inf):
        return False
    behind = best.score - score
    return behind <= 0 or behind <= ERRORS * judge.error_of_difference(best.scores, scores, best.rows)


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


def equal_weights(pool, n=EQUALS, of_a_kind=OF_A_KIND) -> np.ndarray:
    """Equal weights of the first `n` trials, with no more than `of_a_kind` of one kind."""
    counts: Counter = Counter()
    weights = np.zeros(len(pool))
    for k, trial in enumerate(pool):
        kind = kind_of(trial.candidate)
        if counts[kind] < of_a_kind and counts.total() < n:
            counts[kind] += 1
            weights[k] = 1.0
    return weights / weights.sum()


def _judged_by_most(judge, done) -> list[Trial]:
    """Trials with the most parts held out; with fewer if one that had no time for more is clearly better by those."""
    most, *levels = sorted({t.n_parts for t in done}, reverse=True)
    for fewer in levels:
        went_on = {t.candidate for t in done if t.n_parts == most}
        below = sorted((t for t in done if t.n_parts == fewer), key=rank)
        reached = [t for t in below if t.candidate in went_on]
        ahead = below[0]
        if not reached or ahead.loss >= min(t.loss for t in reached):
            continue
        first = reached[0]
        error = judge.error_of_difference(first.scores, ahead.scores, ahead.rows)
        loss_error = judge.error_of_losses(first.scores, ahead.scores, ahead.rows)
        # Losses are less noisy than most scores.
        if ahead.score - first.score > ERRORS * error or (
            ahead.score >= first.score and first.loss - ahead.loss > ERRORS * loss_error
        ):
            most = fewer
    return [t for t in done if t.n_parts == most]


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


def _small_enough(search, chosen):
    """The largest weights that fit into one model, scaled to sum to one."""
    kept: list[tuple[Trial, float]] = []
    for pair in sorted(chosen, key=lambda pair: -pair[1]):
        more = [*kept, pair]
        n_tiles = sum(t.candidate.n_tiles for t, _ in more)
        if not kept or (n_tiles <= search.most_tiles and n_weights(search, more) <= MOST_WEIGHTS):
            kept = more
    return _to_one(kept)


def _to_one(chosen):
    """The same trials with weights that sum to one."""
    total = sum(weight for _, weight in chosen)
    return [(trial, weight / total) for trial, weight in chosen]


def finish(search: Search, chosen) -> Found:
    """Fit what was chosen to all rows, as far as time allows, and blend it to one mosaic.

    A part for which there is no time stays as it was fitted to the training rows or, if that model was not kept, is
    left out; if what remains is behind a linear model, that one is fitted instead.
    """
    found = _fitted(search, chosen)
    if len(found.parts) < len(chosen):
        judged = [t for t in search.trials if not t.failure and t.n_parts == chosen[0][0].n_parts]
        linear = min((t for t in judged if t.candidate.family == "linear"), key=rank, default=None)
        if linear is not None and found.score < linear.score:
            return _fitted(search, [(linear, 1.0)])
    return found


def _fitted(search: Search, chosen) -> Found:
    for trial in search.trials:
        trial.weight = 0.0
    clock, everything = search.clock, np.arange(search.X.shape[0])
    parts: list[Part] = []
    kept, cut_off = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for trial, weight in sorted(chosen, key=lambda pair: -pair[1]):
            candidate, model = trial.candidate, trial.model
            left = clock.left(END) - search.closing
            in_time = SAFETY * clock.expected(candidate, len(everything)) < left
            if model is None and not in_time and parts:
                search.out_of_time = True
                continue
            if model is None or (search.refits and in_time):
                limit, began = None if clock.budget is None else max(0.2, left), perf_counter()
                try:
                    refitted = search.fit(candidate, everything, limit, search.n_jobs)
                except ValueError:
                    if model is None and not (parts or trial is not chosen[-1][0]):
                        raise
                    refitted = model  # a learned gate that diverged with all rows: the judged one stands
                is_cut_off = limit is not None and perf_counter() - began >= limit
                search.out_of_time |= is_cut_off
                if is_cut_off and model is None:
                    cut_off.append(candidate.family)
                # What was judged is better known than a fit that did not end.
                model = model if is_cut_off and model is not None else refitted
            elif search.refits:
                search.out_of_time = True
            if model is not None:
                parts.append(_part(search, weight, candidate, model, trial.mixing))
                kept.append((trial, weight))
    if cut_off:
        warnings.warn(
            f"the last fit was cut off by the time budget (families: {', '.join(cut_off)}), and its score is that of "
            "complete fits to fewer rows: raise time_budget",
            ConvergenceWarning,
            stacklevel=2,
        )
    total = sum(weight for _, weight in kept)
    for part, (trial, weight) in zip(parts, kept, strict=True):
        part.weight = trial.weight = weight / total
    if len(parts) == 1:
        trial = kept[0][0]
        scores = (trial.scores - trial.shift) / trial.factor
        return Found(parts, parts[0].estimator.mosaic_, trial.score, trial.rows, scores)
    kept = [(trial, trial.weight) for trial, _ in kept]
    mosaic = blend(
        [part.estimator.mosaic_ for part in parts], [trial.factor * weight for trial, weight in kept]
    )  # fmt: skip
    # What was added to the scores of all classes is not in the mosaic.
    rows, scores = kept[0][0].rows, blended(kept) - sum(weight * trial.shift for trial, weight in kept)
    score = search.judge.score_or_least(search.judge.tempered(scores, rows), rows)
    return Found(parts, mosaic, score, rows, scores)


def finish_linear(search: Search, C=1.0) -> Found:
    """A linear model of all rows, for want of rows to choose by."""
    candidate = Candidate("linear", search.usual[0], C=C)
    model = search.fit(candidate, np.arange(search.X.shape[0]), n_jobs=search.n_jobs)
    part = _part(search, 1.0, candidate, model)
    return Found([part], part.estimator.mosaic_, np.nan, None, None)


def _part(search, weight, candidate, model, mixing=None) -> Part:
    scaling = search.scalings[candidate.scaling]
    mosaic = over_measured_rows(scaling, model.mosaic_)
    model.mosaic_ = mosaic if mixing is None else mixing.over(mosaic)
    return Part(weight, candidate, model, scaling)
