"""What a search ends with, from the scores of held-out rows that its trials are given here."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from svmosaic import LinearSVC
from svmosaic.estimators.data import validate_training
from svmosaic.search import choice
from svmosaic.search.engine import Trial
from svmosaic.search.judge import ClassJudge
from svmosaic.search.plan import Candidate

N_ROWS, N_FEATURES = 2000, 20
LINEAR = Candidate("linear", C=1.0)
CURVES = Candidate("linear", pieces=16, C=1.0)
CELLS = Candidate("clustered", tiles=4, C=1.0)
HEAVY = Candidate("learned", tiles=4000, pieces=16)


class Ended:
    """A search that has ended: a judge of random labels, and trials whose scores follow these more or less."""

    def __init__(self, seed=0):
        self.rng = np.random.RandomState(seed)
        self.X = self.rng.standard_normal((N_ROWS, N_FEATURES))
        y = self.rng.randint(2, size=N_ROWS)
        _, target = validate_training(LinearSVC(), self.X, y)
        self.judge = ClassJudge(self.X, target, "accuracy", None)
        self.signs = 2.0 * y - 1.0
        self.folds = [(None, np.arange(k, N_ROWS, 5)) for k in range(5)]
        self.most_tiles, self.trials = 10**6, []

    def add(self, candidate, scores):
        rows = np.arange(N_ROWS)
        scores = self.judge.tempered(scores[:, None], rows)
        score, loss = self.judge.score(scores, rows), self.judge.loss(scores, rows)
        self.trials.append(Trial(candidate, 2, N_ROWS, 5, rows, scores, score=score, loss=loss))
        return self.trials[-1]

    def noise(self, spread):
        return spread * self.rng.standard_normal(N_ROWS)


def weights_of(chosen):
    return {id(trial): weight for trial, weight in chosen}


def test_a_part_that_is_worth_little_is_given_up_for_its_size():
    search = Ended()
    first = search.add(CELLS, search.signs + search.noise(2.0))
    second = search.add(CURVES, search.signs + search.noise(2.0))
    heavy = search.add(HEAVY, search.signs + search.noise(30.0))
    chosen = weights_of(choice.choose(search))
    assert set(chosen) == {id(first), id(second)}
    assert_allclose(sum(chosen.values()), 1.0)
    # A small model that knows as little may stay.
    heavy.candidate = replace(CELLS, tiles=5)
    assert set(weights_of(choice.choose(search))) == {id(first), id(second), id(heavy)}


def test_a_part_that_is_worth_much_is_not_given_up():
    search = Ended()
    search.add(CELLS, search.signs + search.noise(2.0))
    heavy = search.add(HEAVY, search.signs + search.noise(2.0))
    assert id(heavy) in weights_of(choice.choose(search))


def test_the_loss_of_a_lighter_blend_is_within_its_share():
    search = Ended(1)
    families = {"linear": 2.0, "clustered": 2.2, "local": 25.0, "learned": 30.0}
    for family, spread in families.items():
        search.add(replace(HEAVY, family=family, C=1.0), search.signs + search.noise(spread))
    lighter = choice.choose(search)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "LIGHT", 10**12)
        whole = choice.choose(search)
    rows = np.arange(N_ROWS)

    def loss(chosen):
        return search.judge.loss(search.judge.tempered(choice.blended(chosen), rows), rows)

    assert 2 * choice.n_weights(search, lighter) <= choice.n_weights(search, whole)
    assert loss(lighter) <= (1 + choice.LIGHTER) * loss(whole)


def test_equal_weights_are_of_different_kinds():
    leaf = Candidate("trees", tiles=8, gates=4, C=1.0)
    kinds = [*(replace(LINEAR, C=C) for C in (1.0, 2.0, 4.0)), *(replace(leaf, tiles=n) for n in (2, 4, 8)), leaf]
    pool = [Trial(candidate, 0, 100, 5) for candidate in (*kinds, CURVES)]
    assert_allclose(choice.equal_weights(pool), np.array([1, 1, 0, 1, 1, 0, 0, 1]) / 5)
    assert_allclose(choice.equal_weights(pool, n=3), np.array([1, 1, 0, 1, 0, 0, 0, 0]) / 3)
    assert_allclose(choice.equal_weights(pool, of_a_kind=99), np.full(8, 1 / 8))


@pytest.mark.parametrize(("most_tiles", "n_parts"), [(5, 1), (9, 2), (100, 4)])
def test_a_blend_keeps_to_max_tiles(most_tiles, n_parts):
    search = Ended()
    search.most_tiles = most_tiles
    for k in range(4):
        search.add(replace(CELLS, C=2.0**k), search.signs + search.noise(2.0))
    chosen = choice.choose(search)
    assert sum(t.candidate.n_tiles for t, _ in chosen) <= most_tiles
    assert len(chosen) == n_parts
    assert_allclose(sum(weight for _, weight in chosen), 1.0)


def test_a_blend_that_is_worse_is_none():
    search = Ended()
    good = search.add(LINEAR, search.signs + search.noise(0.3))
    for k in range(7):
        search.add(replace(CELLS, tiles=4 + k, neighbors=k), search.signs + search.noise(30.0))
    assert choice.choose(search, blends=False) == [(good, 1.0)]
    chosen = choice.choose(search)
    rows = np.arange(N_ROWS)
    assert search.judge.loss(search.judge.tempered(choice.blended(chosen), rows), rows) <= good.loss


def test_a_clearly_better_model_that_had_no_time_to_go_on_is_chosen_among_those_with_fewer_parts():
    first = np.arange(100)
    truth = np.random.RandomState(0).choice([-1.0, 1.0], (100, 1))
    judge = SimpleNamespace(losses=lambda scores, rows: (scores[:, 0] - truth[:, 0]) ** 2)
    search = SimpleNamespace(judge=judge, folds=[(None, first)])
    trees, noise = Candidate("trees", "none", tiles=8, gates=4), np.random.RandomState(1).standard_normal((100, 1))

    def parts_of_choice(*trials):
        done = [Trial(c, 0, 100, n, scores=truth + e * noise, loss=e**2) for c, n, e in trials]
        return {t.n_parts for t in choice._comparable(search, done)}

    assert parts_of_choice((LINEAR, 2, 1.0), (LINEAR, 5, 1.0), (trees, 2, 0.1)) == {2}
    assert parts_of_choice((LINEAR, 2, 1.0), (LINEAR, 5, 1.0), (trees, 2, 0.99999)) == {
        2
    }  # the same errors, all smaller
    assert parts_of_choice((LINEAR, 2, 1.0), (LINEAR, 5, 1.0), (trees, 2, 1.1)) == {5}
    assert parts_of_choice((LINEAR, 2, 1.0), (LINEAR, 5, 1.0), (trees, 2, 0.1), (trees, 5, 0.9)) == {5}  # it went on


def test_trials_with_equal_rows_held_out_are_compared_whatever_they_were_fitted_to():
    search = SimpleNamespace(judge=None, folds=[(None, np.arange(10))])
    few, more, other = (Trial(c, 0, n, 1) for c, n in ((LINEAR, 100), (LINEAR, 400), (CURVES, 100)))
    assert choice._comparable(search, [few, more, other]) == [more, other]


def test_numbers_of_a_blend():
    search = SimpleNamespace(X=np.zeros((1, 10)), judge=SimpleNamespace(target=SimpleNamespace(n_outputs=2)))

    def numbers(*candidates):
        return choice.n_weights(search, [(SimpleNamespace(candidate=c), 0.5) for c in candidates])

    assert numbers(LINEAR) == 20
    assert numbers(CURVES) == 20 * 18
    # Straight parts stay as they are, and curves see the knots of each other.
    assert numbers(CELLS, CURVES) == 4 * 20 + 20 * 18
    assert numbers(CURVES, replace(CURVES, pieces=8)) == 2 * 20 * (16 + 8 + 2)
    leaves = Candidate("trees", tiles=8, gates=4, pieces=16, linear_leaves=True, C=1.0)
    assert numbers(leaves) == 2 * (10 * 18 + 32 * 10 + 33)
