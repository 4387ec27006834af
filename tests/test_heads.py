"""Heads against the rules written out row by row, and the rules in one place only."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from svmosaic import LinearSVC
from svmosaic.gates import DistanceGate
from svmosaic.model.calibration import Sigmoid
from svmosaic.model.heads import (
    Classify,
    Regress,
    contrast,
    count_outputs,
    flattened,
    head_of,
    home_tiles,
    in_columns,
    signs_of,
    winners,
)
from svmosaic.model.mosaic import Mosaic
from svmosaic.model.predictor import Predictor
from svmosaic.rows import bias_of, split_bias


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_outputs_and_signs(n_classes):
    classes = np.array([f"class {k}" for k in range(n_classes)])
    head = Classify(classes)
    label = np.arange(20) % n_classes
    assert head.n_outputs == count_outputs(n_classes) == (1 if n_classes == 2 else n_classes)
    assert head.output_names == ([classes[1]] if n_classes == 2 else list(classes))
    for output, positive in enumerate(head.positive):
        signs = head.wanted(label, output)
        assert signs.dtype == np.int8
        assert_array_equal(signs, [1 if k == positive else -1 for k in label])
        assert_array_equal(signs, signs_of(label, output, head.n_outputs))
        assert head.output_of(positive) == output


def test_winners_of_scores_row_by_row():
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.standard_normal(50), [0.0, -0.0, np.nan]])[:, None]
    assert_array_equal(winners(two), [1 if s > 0 else 0 for s in two[:, 0]])
    many = rng.standard_normal((50, 4))
    many[0] = 0.0  # of equals, the first
    assert_array_equal(winners(many), [max(range(4), key=lambda k: (row[k], -k)) for row in many])
    stacked = rng.standard_normal((6, 5, 3))
    assert_array_equal(winners(stacked), stacked.argmax(axis=2))
    assert_array_equal(winners(stacked[..., :1]), stacked[..., 0] > 0)


def test_two_values_and_their_difference_name_the_same_winner():
    values = np.random.default_rng(1).standard_normal((50, 2))
    assert_array_equal(winners(values), winners(contrast(values)))
    assert_array_equal(contrast(values.T, axis=0), contrast(values).T)
    assert contrast(np.ones((4, 3))).shape == (4, 3)


def test_shapes_go_there_and_back():
    for scores in (np.arange(6.0)[:, None], np.arange(12.0).reshape(4, 3), np.empty((0, 1))):
        assert flattened(scores).ndim == (1 if scores.shape[1] == 1 else 2)
        assert_array_equal(in_columns(flattened(scores)), scores)


def test_a_calibration_decides():
    classes = np.array([3, 7])
    scores = np.array([[0.5], [-0.5], [2.0]])
    assert_array_equal(Classify(classes).answers(scores), [7, 3, 7])
    strict = Classify(classes, Sigmoid(np.array([-1.0]), np.array([1.0])))  # even at a score of 1
    assert_array_equal(strict.answers(scores), [3, 3, 7])
    assert_allclose(strict.probabilities(scores).sum(axis=1), 1.0)
    assert strict.accuracy(scores, np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0])) == pytest.approx(4 / 6)


@pytest.mark.parametrize("weighted", [False, True])
def test_regions_of_classes_add_up_over_partitions(weighted):
    rng = np.random.default_rng(2)
    head, n_tiles = Classify(np.array(["a", "b", "c"])), 4
    tile = rng.integers(0, 3, (60, 2)).astype(np.int32)  # no row in the last tile
    weight = rng.random((60, 2)) if weighted else None
    label, found = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    counts = head.region_counts(home_tiles((tile, weight)), n_tiles, label, found)
    home = tile[:, 0] if weight is None else np.where(weight[:, 1] > weight[:, 0], tile[:, 1], tile[:, 0])
    columns = head.region_columns(counts)
    assert list(columns) == ["rows", "majority", "accuracy", "share of a", "share of b", "share of c"]
    for k in range(3):
        here = home == k
        assert columns["rows"][k] == here.sum()
        assert columns["accuracy"][k] == pytest.approx((label == found)[here].mean())
        assert columns["share of b"][k] == pytest.approx((label == 1)[here].mean())
        assert columns["majority"][k] == "abc"[np.bincount(label[here], minlength=3).argmax()]
    assert columns["rows"][3] == 0
    assert np.isnan(columns["accuracy"][3])
    halves = [
        head.region_counts(home_tiles((tile[s], None if weight is None else weight[s])), n_tiles, label[s], found[s])
        for s in (slice(0, 25), slice(25, None))
    ]
    for key, value in counts.items():
        assert_array_equal(value, halves[0][key] + halves[1][key])


@pytest.mark.parametrize("shape", [(200,), (200, 1), (200, 3)])
def test_regress_returns_to_the_units_of_y(shape):
    rng = np.random.default_rng(3)
    y = 1e6 + 5.0 * rng.standard_normal(shape)
    head = Regress.of(y)
    z = head.targets(y)
    assert z.shape == (200, head.n_outputs) == (200, 1 if len(shape) == 1 else shape[1])
    assert_allclose(z.mean(axis=0), 0.0, atol=1e-6)
    assert_allclose(z.std(axis=0), 1.0, rtol=1e-6)
    assert head.answers(z).shape == shape
    assert_allclose(head.answers(z), y, rtol=1e-14)
    assert head.shaped(z).shape == shape
    assert head.output_names == (["y"] if len(shape) == 1 else [f"y{c}" for c in range(shape[1])])


def test_regress_of_a_constant_and_of_weighted_values():
    assert Regress.of(np.full(5, 3.0)).scale == 1.0
    y, weight = np.array([1.0, 5.0, 9.0]), np.array([2.0, 1.0, 0.0])
    head, copies = Regress.of(y, weight), Regress.of(np.array([1.0, 1.0, 5.0]))
    assert head.center == pytest.approx(copies.center)
    assert head.scale == pytest.approx(copies.scale)


@pytest.mark.parametrize("shape", [(80,), (80, 2)])
def test_regions_of_values(shape):
    rng = np.random.default_rng(4)
    y = 1e5 + rng.standard_normal(shape)
    found = y + rng.standard_normal(shape)
    head, home = Regress.of(y), rng.integers(0, 2, 80).astype(np.int32)
    counts = head.region_counts(home, 3, y, found)
    columns = head.region_columns(counts)
    one = len(shape) == 1
    for k in range(2):
        here = home == k
        for c in range(head.n_outputs):
            mine, its = (values[here] if one else values[here, c] for values in (y, found))
            suffix = "" if one else f" of y{c}"
            assert columns["rows"][k] == here.sum()
            assert columns[f"mean{suffix}"][k] == pytest.approx(mine.mean(), rel=1e-12)
            assert columns[f"spread{suffix}"][k] == pytest.approx(mine.std(), rel=1e-8)
            assert columns[f"mean absolute error{suffix}"][k] == pytest.approx(np.abs(mine - its).mean(), rel=1e-6)
    assert columns["rows"][2] == 0
    assert np.isnan(next(v for name, v in columns.items() if name.startswith("mean"))[2])
    halves = [head.region_counts(home[s], 3, y[s], found[s]) for s in (slice(0, 30), slice(30, None))]
    for key, value in counts.items():
        assert_allclose(value, halves[0][key] + halves[1][key], rtol=1e-12)


@pytest.mark.parametrize("flat", [True, False])
def test_a_predictor_answers_with_values(flat):
    rng = np.random.default_rng(5)
    X, n_outputs = rng.standard_normal((7, 3)), 1 if flat else 2
    mosaic = Mosaic(
        DistanceGate(rng.standard_normal((4, 3))), rng.standard_normal((4, n_outputs, 3)), np.ones((4, n_outputs))
    )
    head = Regress(2.0, 3.0) if flat else Regress(np.array([2.0, -1.0]), np.array([3.0, 0.5]))
    predictor = pickle.loads(pickle.dumps(mosaic.compile(head=head)))
    expected = head.answers(mosaic.decision_function(X))
    assert_allclose(predictor.predict(X), expected)
    for _ in range(2):  # the first call packs
        assert_allclose(predictor(X[2]), expected[2])
    assert predictor.classes is None
    with pytest.raises(AttributeError, match="no calibration"):
        predictor.predict_proba(X)
    with pytest.raises(ValueError, match="head is for 5 outputs, but the mosaic has"):
        Predictor(mosaic, head=Regress(np.zeros(5), np.ones(5)))


def test_the_head_of_an_estimator():
    X = np.random.default_rng(6).standard_normal((40, 2))
    model = LinearSVC(calibration="sigmoid").fit(X, X[:, 0] > 0)
    head = head_of(model)
    assert head.classes is model.classes_
    assert head.calibration is model.calibration_
    assert_array_equal(head.answers(in_columns(model.decision_function(X))), model.predict(X))
    model.head_ = Regress(0.0, 1.0)
    assert head_of(model) is model.head_


def test_the_bias_of_rows():
    assert bias_of(False, 3.0) == 0.0
    assert bias_of(True, 3) == 3.0
    tiles = np.arange(24.0).reshape(2, 3, 4)
    coef, intercept = split_bias(tiles, 0.5)
    assert_array_equal(coef, tiles[:, :, :3])
    assert_array_equal(intercept, 0.5 * tiles[:, :, 3])
