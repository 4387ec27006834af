"""What a search ends with, from the scores of held-out rows that its trials are given here."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svmosaic.search.candidates import Candidate
from svmosaic.search.trials import Trial

from svmosaic import LinearSVC
from svmosaic.estimators.data import validate_training
from svmosaic.search import choice
from svmosaic.search.judge import ClassJudge

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
        self.folds, self.most_tiles, self.trials = [None] * 5, 10**6, []

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


def test_a_linear_model_that_is_ahead_gets_half_of_a_blend(monkeypatch):
    search = Ended()
    linear = search.add(LINEAR, search.signs + search.noise(1.5))
    for k in range(2):
        search.add(replace(CELLS, tiles=4 + k), search.signs + search.noise(3.0))

    def without_linear(trials):
        return np.array([0.0 if t is linear else 0.5 for t in trials])

    monkeypatch.setattr(choice, "equal_weights", without_linear)
    monkeypatch.setattr(
        choice, "greedy_weights", lambda *_: without_linear(sorted(search.trials, key=lambda t: t.loss))
    )
    chosen = choice.choose(search)
    assert_allclose([weights_of(chosen)[id(t)] for t in search.trials], [0.5, 0.25, 0.25])
    scores = search.judge.tempered(choice.blended(chosen), linear.rows)
    assert search.judge.score(scores, linear.rows) >= linear.score
    assert search.judge.loss(scores, linear.rows) <= linear.loss
    # Without that, the linear model would be all there is.
    monkeypatch.setattr(choice, "_with_linear", lambda *_: None)
    assert weights_of(choice.choose(search)) == {id(linear): 1.0}


def test_a_linear_model_gets_its_half_only_if_it_is_ahead():
    search = Ended()
    linear = search.add(LINEAR, search.signs + search.noise(2.0))
    cells = search.add(CELLS, search.signs + search.noise(6.0))
    both = choice._with_linear(search.judge, [(linear, 0.2), (cells, 0.8)], search.trials)
    assert both == [(linear, pytest.approx(0.6)), (cells, 0.4)]  # what it had before is not counted twice
    better = search.add(replace(CELLS, tiles=8), search.signs + search.noise(1.0))
    assert choice._with_linear(search.judge, [(better, 1.0)], search.trials) is None
    assert choice._with_linear(search.judge, [(cells, 1.0)], [cells, better]) is None


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
