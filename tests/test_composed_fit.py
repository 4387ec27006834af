"""The composed fit: what it is given, what it may touch, and the rows it is asked to fit."""

import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LocalCodingSVC, LocallyLinearSVC
from svmosaic.couplings import ClusteredTasks, Coupling
from svmosaic.estimators._hold_out import can_stratify, hold_out
from svmosaic.estimators._progress import Progress
from svmosaic.estimators.data import Data, Target
from svmosaic.estimators.tiles import Options, fit_tiles
from svmosaic.gates import DistanceGate
from svmosaic.losses import HINGE
from svmosaic.model.heads import Classify
from svmosaic.rows import Rows

X, Y = load_iris(return_X_y=True)
CENTERS = np.unique(X[[0, 60, 120]], axis=0)
TARGET = Target(Classify(np.unique(Y)), Y, np.ones(len(Y)))
OPTIONS = Options(1.0, HINGE, 1.0, "auto", 1e-6, 1000)
MODELS = [
    LinearSVC(random_state=0),
    KMeansSVC(3, coupling=ClusteredTasks(2), max_iter=50, tol=0.01, random_state=0),
    ClusteredSVC(3, calibration="sigmoid", random_state=0),
    LocallyLinearSVC(6, n_neighbors=3, calibration="temperature", random_state=0),
    LocallyLinearSVC(
        6,
        n_neighbors=3,
        multi_class="crammer_singer",
        loss="hinge",
        calibration="temperature",
        C=1.0,
        tol=0.02,
        random_state=0,
    ),
    LocalCodingSVC(6, n_neighbors=3, random_state=0),
]


def fitted(gate=None, rows=None, coupling=None):
    gate = DistanceGate(CENTERS) if gate is None else gate
    rows = Data.of(X, TARGET) if rows is None else rows
    coupling = Coupling.to_global(gate.n_tiles, 1.0) if coupling is None else coupling
    rng = check_random_state(0)
    return fit_tiles(rows, gate, coupling, OPTIONS, Progress(LinearSVC()), rng)


def test_a_mosaic_with_certificates():
    found = fitted()
    model = ClusteredSVC(clusterer=CENTERS, tol=1e-6, random_state=0).fit(X, Y)
    assert_array_equal(found.mosaic.coef, model.mosaic_.coef)
    assert_array_equal([s.gap for s in found.solutions], model.dual_gap_)
    assert (model.dual_gap_ <= 1e-6 * len(Y)).all()


def test_rows_of_tiles_are_taken_as_they_come(monkeypatch):
    """Only `Rows(rows, bias)`, the number of rows, rows at places and, of a few, their numbers are asked of them."""

    class Opaque:
        def __init__(self, values):
            self.values, self.shape = values, values.shape

        def __getitem__(self, rows):
            return Opaque(self.values[rows])

        def toarray(self):
            return self.values

    def open_rows(rows, bias=1.0):
        return Rows(rows.values if isinstance(rows, Opaque) else rows, bias)

    monkeypatch.setattr("svmosaic.estimators.data.Rows", open_rows)
    monkeypatch.setattr("svmosaic.model.mosaic.Rows", open_rows)
    rows = Data(X, Opaque(X), TARGET, X.shape[1])
    found = fitted(rows=rows)
    assert_array_equal(found.mosaic.coef, fitted().mosaic.coef)
    calibration = rows.calibrate("temperature", found, None, OPTIONS, Progress(LinearSVC()), check_random_state(0))
    assert calibration.beta > 0
    counts = rows.region_counts(found.mosaic, TARGET.head, None)
    assert counts["classes"].sum() == len(Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_fit_sets_attributes_at_its_end_only(model, monkeypatch):
    """Nothing writes to the estimator while the solvers run, and nothing reads a fitted attribute of it."""
    model = clone(model)
    seen = []
    original = Data.solve

    def solve(self, *args, **kwargs):
        seen.append(sorted(name for name in vars(model) if name not in model.get_params()))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Data, "solve", solve)
    model.fit(X, Y)
    for names in seen:
        assert [name for name in names if not name.startswith(("_callback", "_skl"))] == ["n_features_in_"]


def test_calibration_of_all_classes_at_once():
    model = clone(MODELS[4]).fit(X, Y)
    assert_array_equal(model.predict_proba(X).argmax(axis=1), np.searchsorted(model.classes_, model.predict(X)))
    assert model.score(X, Y) > 0.9


def test_samples_seen_are_those_of_fit_not_of_its_folds():
    model = LocallyLinearSVC(6, n_neighbors=3, calibration="temperature", random_state=0).fit(X, Y)
    assert model.n_samples_seen_ == len(Y)
    plain = LinearSVC(calibration="temperature").fit(X, Y)
    assert not hasattr(plain, "n_samples_seen_")


@pytest.mark.parametrize("n_held", [3, 30, 100])
def test_hold_out_has_the_shares_of_the_classes(n_held):
    train, held = hold_out(len(Y), n_held, np.random.RandomState(0), Y)
    assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(len(Y)))
    counts = np.bincount(Y[held], minlength=3)
    assert counts.sum() == n_held
    assert counts.max() - counts.min() <= 1


def test_hold_out_without_enough_rows_of_a_class():
    label = np.array([0] * 9 + [1])
    assert not can_stratify(label, 3)
    assert not can_stratify(np.array([0, 0, 1, 1]), 1)
    assert not can_stratify(np.array([0, 0, 1, 1]), 3)
    train, held = hold_out(len(label), 3, np.random.RandomState(0), label)
    assert len(train) == 7
    assert len(held) == 3


@pytest.mark.parametrize("seed", range(40))
def test_hold_out_draws_as_scikit_learn_does(seed):
    draws = np.random.default_rng(seed)
    label = 2 * draws.integers(0, draws.integers(2, 9), size=draws.integers(4, 300)) + seed % 2
    n_held = int(draws.integers(1, len(label)))
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    found = hold_out(len(label), n_held, ours, label)
    stratify = label if can_stratify(label, n_held) else None
    for mine, expected in zip(
        found,
        train_test_split(np.arange(len(label)), test_size=n_held, random_state=theirs, stratify=stratify),
        strict=True,
    ):
        assert_array_equal(mine, expected)
    assert ours.randint(2**31 - 1) == theirs.randint(2**31 - 1)  # what is drawn next is the same too


def test_hold_out_of_all_rows():
    with pytest.raises(ValueError, match="2 of 2 rows"):
        hold_out(2, 2, np.random.RandomState(0), np.array([0, 1]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_nothing_goes_back_into_the_estimator(model, monkeypatch):
    """From the moment that rows, gate and options are handed over, no method of the estimator runs."""
    model, inside, calls = clone(model).set_params(verbose=1), [], []

    def watch(frame, event, _):
        if event == "call" and inside and frame.f_locals.get("self") is model:
            calls.append(frame.f_code.co_qualname)

    def composed(*args, **kwargs):
        inside.append(True)
        try:
            return fit_tiles(*args, **kwargs)
        finally:
            inside.pop()

    monkeypatch.setattr("svmosaic.estimators.base.fit_tiles", composed)
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        model.fit(X, Y)
    finally:
        sys.setprofile(before)
    assert calls == []


def walk_on_the_page():
    """The functions that each step of the page names, before it explains them."""
    page = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
    steps = re.findall(r"^\d+\. (.*)$", page.split("through `fit`")[1].split("## ")[0], re.M)
    return [re.findall(r"`([\w.<>]+)`", re.split(r"[:(]", step)[0]) for step in steps]


def test_the_walk_is_that_of_the_page():
    steps = walk_on_the_page()
    assert len(steps) <= 15
    called = []

    def watch(frame, event, arg):
        if event == "call" and "svmosaic" in frame.f_code.co_filename:
            called.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        LocallyLinearSVC(6, n_neighbors=3, random_state=0).fit(X, Y)
    finally:
        sys.setprofile(before)
    order = []
    for name in itertools.chain.from_iterable(steps):
        # A name alone is that of a function, or of a method of whatever class has it.
        method = name if name in called else next((one for one in called if one.endswith(f".{name}")), None)
        assert method, f"{name} is not called"
        order.append(called.index(method))
    assert order == sorted(order)
    assert len(order) >= len(steps)
