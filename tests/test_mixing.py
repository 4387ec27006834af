"""Scores of several classes recombined: a mosaic with mixed outputs, and the matrix that is fitted to held-out rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification, make_gaussian_quantiles
from sklearn.model_selection import cross_val_predict

from svmosaic import (
    ClusteredSVC,
    KernelSVC,
    LearnedGateSVC,
    LinearSVC,
    LocallyLinearSVC,
    MosaicClassifier,
    TreeSVC,
)
from svmosaic.model.calibration import fit_odds, odds_losses
from svmosaic.search.mixing import MOST_CLASSES, Mixing, fit_mixing

N_CLASSES = 4
SHORT = {"max_iter": 3, "early_stopping": False, "random_state": 0}
MODELS = {
    "one tile": LinearSVC(),
    "curves": LinearSVC(pieces=6),
    "cells": ClusteredSVC(5, random_state=0),
    "local codes": LocallyLinearSVC(12, n_neighbors=4, random_state=0),
    "kernels": KernelSVC(20, random_state=0),
    "a learned gate": LearnedGateSVC(6, **SHORT),
    "several learned gates": LearnedGateSVC(4, n_gates=3, pieces=5, **SHORT),
    "trees": TreeSVC(4, max_leaves=5, random_state=0),
    "leaves alone": TreeSVC(4, max_leaves=9, tiles="constant", pieces=None, global_reg=1e24, random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    return make_classification(400, 6, n_informative=4, n_redundant=0, n_classes=N_CLASSES, random_state=0)


@pytest.fixture(scope="module")
def shells():
    """Classes around each other: no additive function separates one in the middle from the rest."""
    return make_gaussian_quantiles(n_samples=1500, n_features=6, n_classes=N_CLASSES, random_state=0)


def loss_of(scores, label):
    slope, offset = fit_odds(scores, label)
    return odds_losses(slope * scores + offset, label)[0].mean()


@pytest.mark.parametrize("name", MODELS)
def test_a_mosaic_whose_outputs_are_mixed_has_mixed_scores(name, rows):
    X, y = rows
    rng = np.random.RandomState(0)
    mixing = Mixing(rng.standard_normal((N_CLASSES, N_CLASSES)), rng.standard_normal(N_CLASSES))
    mosaic = MODELS[name].fit(X, y).mosaic_
    expected = mosaic.decision_function(X) @ mixing.matrix.T + mixing.offset
    mixed = mixing.over(mosaic)
    assert_allclose(mixed.decision_function(X), expected, atol=1e-9)
    assert_allclose(mixing(mosaic.decision_function(X)), expected, atol=1e-12)
    assert mixed.n_tiles == mosaic.n_tiles
    assert mixed.coef.dtype == mosaic.coef.dtype
    assert np.abs(mixed.intercept).max() < 100 * (1 + np.abs(mosaic.intercept).max())


def test_kernels_alone_get_a_tile_for_the_offset(rows):
    X, y = rows
    mosaic = KernelSVC(20, random_state=0).fit(X, y).mosaic_
    alone = replace(mosaic, gate=mosaic.gate.gates[0], intercept=mosaic.intercept[:20])
    assert getattr(alone.gate, "coding", None) == "kernel"
    mixed = Mixing(np.eye(N_CLASSES), np.arange(4.0)).over(alone)
    assert mixed.n_tiles == alone.n_tiles + 1
    assert_allclose(mixed.decision_function(X), alone.decision_function(X) + np.arange(4.0), atol=1e-9)


def test_classes_between_others_are_found(shells):
    X, y = shells
    scores = cross_val_predict(LinearSVC(pieces=8, C=0.1), X[:1000], y[:1000], method="decision_function", cv=5)
    mixing, mixed = fit_mixing(scores, y[:1000])
    assert_allclose(mixing(scores), mixed, atol=0.2 * np.abs(mixed).max())
    before = LinearSVC(pieces=8, C=0.1).fit(X[:1000], y[:1000]).decision_function(X[1000:])
    after = mixing(before)
    assert loss_of(after, y[1000:]) < 0.85 * loss_of(before, y[1000:])
    assert (after.argmax(1) == y[1000:]).mean() > (before.argmax(1) == y[1000:]).mean() + 0.05


def test_mixed_scores_of_the_same_rows_promise_no_more_than_new_rows_keep():
    """Random scores of few rows and many classes: a matrix fitted to them describes these rows, and no others."""
    rng = np.random.RandomState(0)
    n_classes = 12
    label = rng.randint(n_classes, size=300)
    scores = rng.standard_normal((300, n_classes)) + np.eye(n_classes)[label]
    mixing, mixed = fit_mixing(scores, label)
    new_label = rng.randint(n_classes, size=20_000)
    new_scores = rng.standard_normal((20_000, n_classes)) + np.eye(n_classes)[new_label]
    promised, kept = loss_of(mixed, label), loss_of(mixing(new_scores), new_label)
    assert loss_of(mixing(scores), label) < 0.97 * kept  # the optimism that the groups avoid
    assert abs(promised - kept) < 0.06 * kept


def test_few_rows_are_hardly_mixed_and_many_are():
    rng = np.random.RandomState(0)
    label = rng.randint(3, size=4000)
    scores = rng.standard_normal((4000, 3)) + 2.0 * np.eye(3)[label] @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0.5, 0, 1]])
    added = [np.abs(fit_mixing(scores[:n], label[:n])[0].matrix - np.eye(3)).max() for n in (12, 4000)]
    assert added[0] < 0.5 * added[1]


def test_weights_are_copies_and_scores_without_spread_stay_as_they_are(rows):
    X, y = rows
    scores = LinearSVC().fit(X, y).decision_function(X)
    none, same = fit_mixing(np.zeros((len(y), N_CLASSES)), y)
    assert_allclose(none.matrix, np.eye(N_CLASSES))
    assert_allclose(same, 0.0)
    # A weight for all of them changes nothing, and rows of weight zero might as well be missing.
    one, all_heavy = (fit_mixing(scores, y, weight)[0] for weight in (None, np.full(len(y), 7.0)))
    assert_allclose(one.matrix, all_heavy.matrix, atol=1e-6)


def test_the_threshold_of_a_rare_class_is_moved_to_where_it_belongs():
    """Scores that are log-odds but for a constant: the offset is the constant, whatever their slope."""
    rng = np.random.RandomState(0)
    odds = rng.standard_normal(20_000) * 2.0 - 3.0
    label = (rng.uniform(size=len(odds)) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    scores = (0.2 * odds - 1.0)[:, None]
    for rows, tolerance in ((slice(None), 0.02), (slice(400), 0.2)):
        mixing, mixed = fit_mixing(scores[rows], label[rows])
        assert_allclose(mixing.matrix, [[1.0]])
        assert_allclose(mixing.offset, [1.0], atol=tolerance)
        assert_allclose(mixed, mixing(scores[rows]), atol=tolerance)
    before, after = ((s[:, 0] > 0) == label for s in (scores, mixing(scores)))
    assert after.mean() > before.mean()
    # Rows of one class only, and rows that are separated, ask for no offset that leads astray.
    for labels in (np.zeros(50, dtype=int), (scores[:50, 0] > -1.6).astype(int)):
        assert np.abs(fit_mixing(scores[:50], labels)[0].offset).max() < 20.0


def test_the_search_moves_the_threshold_of_two_classes(one_short_search):
    X, y = make_classification(1200, 5, weights=[0.85], flip_y=0.1, class_sep=0.8, random_state=0)
    model = MosaicClassifier(time_budget=None, families=("linear",), blend=False, random_state=0).fit(X[:600], y[:600])
    raw = LinearSVC(C=0.1).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) >= raw.score(X[600:], y[600:])
    assert_allclose(model.predictor().decision_function(X[600:]), model.decision_function(X[600:]), atol=1e-9)


def test_the_search_mixes_classes_and_its_model_does_what_it_says(shells):
    X, y = shells
    names = np.array(["inner", "second", "third", "outer"])[y]
    model = MosaicClassifier(time_budget=None, families=("linear",), random_state=0).fit(X[:1000], names[:1000])
    alone = max(
        LinearSVC(pieces=16, C=C).fit(X[:1000], names[:1000]).score(X[1000:], names[1000:]) for C in (0.01, 0.1)
    )
    assert model.score(X[1000:], names[1000:]) > alone + 0.05
    scores = model.decision_function(X[1000:])
    assert_allclose(model.predictor().decision_function(X[1000:]), scores, atol=1e-9)
    account = model.explain(X[1000:1005])
    assert_allclose(account.decision, scores[:5], atol=1e-9)
    rows, held_out = model.held_out_
    assert (held_out.argmax(1) == np.searchsorted(model.classes_, names[:1000])[rows]).mean() == pytest.approx(
        model.best_score_, abs=0.02
    )


def test_there_are_no_matrices_of_very_many_classes(one_short_search):
    n_classes = MOST_CLASSES + 1
    rng = np.random.RandomState(0)
    y = np.arange(20 * n_classes) % n_classes
    X = rng.standard_normal((len(y), 4)) + 6.0 * rng.standard_normal((n_classes, 4))[y]
    model = MosaicClassifier(time_budget=None, families=("linear",), blend=False, random_state=0).fit(X, y)
    straight = model.best_estimator_.coef_ if hasattr(model.best_estimator_, "coef_") else model.mosaic_.coef
    assert len(np.atleast_2d(np.squeeze(straight))) == n_classes
    assert model.score(X, y) > 0.5
