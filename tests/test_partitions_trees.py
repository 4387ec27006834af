"""TreeSVC and TreeSVR over partitions: the trees of the fit in memory, and its objective."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier
from test_partitions import cut, part_of
from test_regression import bent_plane
from test_tree import expanded, rows_of

from svmosaic import TreeSVC, TreeSVR, outofcore
from svmosaic.cli import main
from svmosaic.losses import LOSSES
from svmosaic.maps import Pieces
from svmosaic.rows import Rows
from svmosaic.scale import fit
from svmosaic.scale.part import Job
from svmosaic.solvers import Problem, Sight
from svmosaic.solvers.newton import solve_newton
from svmosaic.solvers.share import Evaluate, Product
from svmosaic.table.trained_model import open_model

SMALL = {"max_leaves": 5, "min_rows_per_leaf": 5, "tol": 1e-6, "max_iter": 10_000, "random_state": 0}
MODELS = [
    TreeSVC(3, pieces=5, **SMALL),
    TreeSVC(3, tiles="constant", pieces=5, class_weight="balanced", **SMALL),
    TreeSVC(1, pieces=None, loss="hinge", fit_intercept=False, **SMALL),
    TreeSVC(1, pieces=4, **SMALL | {"max_leaves": 1}),
]


def assert_same_fit(found, local, tol=1e-6):
    if local.mosaic_.n_tiles > 1:
        for mine, theirs in zip(*(model.mosaic_.gate.core_arguments()[1][1] for model in (found, local)), strict=True):
            assert_array_equal(mine, theirs)
    gap = np.maximum(found.dual_gap_, local.dual_gap_) + 1e-9 * local.objective_
    assert (np.abs(found.objective_ - local.objective_) <= gap).all()
    assert (found.dual_gap_ <= tol * local.objective_.max() * 100).all()
    assert_array_equal(found.rules_["rows"], local.rules_["rows"])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.n_trees}-{model.tiles}-{model.pieces}")
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_trees_and_objective_are_those_of_the_fit_in_memory(model, storage):
    X, y = rows_of(3)
    X, weight = storage(X), np.random.RandomState(1).choice([0.0, 1.0, 2.0], len(y))
    local = clone(model).fit(X, y, weight)
    alone, *others = [fit(clone(model), cut(X, y, weight, cuts)) for cuts in ((), (100, 200), (1, 1, 4, 250))]
    for found in (alone, *others):
        assert_same_fit(found, local)
        assert_allclose(found.decision_function(X), alone.decision_function(X), atol=2e-2)
    again = fit(clone(model), cut(X, y, weight, (100, 200)))
    assert_array_equal(again.decision_function(X), others[0].decision_function(X))


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "quantile"])
def test_values(loss):
    X, y = bent_plane(240)
    y = np.stack([y, X[:, 0] ** 2], axis=1)
    model = TreeSVR(2, pieces=4, loss=loss, **SMALL | {"tol": 1e-4})
    local = clone(model).fit(X, y)
    found = outofcore.fit(model, X, y, chunk_rows=70)
    assert_same_fit(found, local, 1e-4)
    assert_allclose(found.predict(X) / y.std(axis=0), local.predict(X) / y.std(axis=0), atol=0.05)


def test_probabilities_and_trees_handed_over():
    X, y = rows_of()
    trees = [DecisionTreeClassifier(max_leaf_nodes=4).fit(X[k::2], y[k::2]) for k in (0, 1)]
    model = TreeSVC(trees=[FrozenEstimator(tree) for tree in trees], calibration="sigmoid", **SMALL | {"tol": 1e-4})
    found, local = outofcore.fit(model, X, y, chunk_rows=100), clone(model).fit(X, y)
    assert local.mosaic_.n_tiles == 1 + sum(tree.get_n_leaves() for tree in trees)
    assert_same_fit(found, local, 1e-4)
    assert np.abs(found.predict_proba(X) - local.predict_proba(X)).mean() < 0.05
    with pytest.raises(ValueError, match="FrozenEstimator keeps them fitted"):
        outofcore.fit(TreeSVC(trees=trees), X, y)


@pytest.mark.parametrize("tiles", ["constant", "linear"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_matrices_are_the_blocks_of_the_hessian(tiles, storage):
    X, y = rows_of()
    X = storage(X)
    model = TreeSVC(3, tiles=tiles, pieces=4, global_reg=2.0, **SMALL).fit(X, y)
    mosaic, sign = model.mosaic_, np.where(y == "yes", 1, -1).astype(np.int8)
    sight = model._options().sight
    pieces: Pieces = mosaic.feature_map
    codes, coupling = mosaic.gate.code(X), model._coupling(mosaic.n_tiles)
    cost = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    problem = Problem(Rows(pieces.rows(X)[1]), *codes, coupling, sign, cost, "squared_hinge", sight=sight)
    Z, job = expanded(model, X), Job(0, 0, coupling, LOSSES["squared_hinge"], sight=sight)
    part = part_of(problem, X)
    part = type(part)(**{**part.__dict__, "feature_map": pieces})
    weights = 0.1 * np.random.default_rng(1).standard_normal(problem.shape)
    seen = np.zeros(problem.shape, dtype=bool)
    seen[0] = seen[:, -1] = True
    seen[1:, : sight.n_seen] = True
    weights[~seen] = 0.0
    active = sign * (Z @ weights[seen]) < 1
    whole = (Z * (2 * cost * active)[:, None]).T @ Z
    share = part.share(job, 1)
    assert_allclose(Product(job, weights, 2.0, 0.0, weights).of(share)[seen], whole @ weights[seen], atol=1e-9)
    full, rest = Evaluate(job, weights, 2.0, 0.0, "tiles").of(share)[2]
    _, diagonals = Evaluate(job, weights, 2.0, 0.0, "diagonals").of(share)[2]
    size = full.shape[1]
    assert_allclose(full[0], whole[:size, :size], atol=1e-9)
    for k, (block, diagonal) in enumerate(zip(rest, diagonals, strict=True)):
        here = slice(size + k * len(block), size + (k + 1) * len(block))
        assert_allclose(block, whole[here, here], atol=1e-9)
        assert_allclose(diagonal, np.diag(whole[here, here]), atol=1e-9)


def test_smaller_preconditioners_lead_to_the_same_end(monkeypatch):
    X, y = rows_of()
    model = TreeSVC(3, pieces=None, **SMALL | {"tol": 1e-5})
    local = clone(model).fit(X, y)
    for largest, form in ((1e6, "tiles"), (7**2 + 15 * 7, "diagonals"), (1, None)):
        monkeypatch.setattr("svmosaic.solvers.newton.LARGEST_HESSIAN", largest)
        forms = []
        monkeypatch.setattr(Evaluate, "of", _noting(Evaluate.of, forms))
        assert_same_fit(fit(clone(model), cut(X, y, None, (100,))), local, 1e-5)
        assert set(forms) == {form}
        monkeypatch.undo()


def _noting(of, forms):
    def noted(self, share):
        forms.append(self.form)
        return of(self, share)

    return noted


def test_the_newton_method_of_rows_in_memory_takes_blocks_that_see_a_part():
    X, y = rows_of()
    model = TreeSVC(2, pieces=None, **SMALL).fit(X, y)
    sign = np.where(y == "yes", 1, -1).astype(np.int8)
    problem = Problem(
        Rows(X), *model.mosaic_.gate.code(X), model._coupling(model.mosaic_.n_tiles), sign, np.full(len(y), 0.1),
        "squared_hinge", sight=Sight(1, "straight", 6),
    )  # fmt: skip
    solution = solve_newton(problem, tol=1e-8, max_iter=100)
    assert solution.converged
    assert_allclose(solution.primal, model.objective_[0], rtol=1e-5)


def test_over_dask():
    pytest.importorskip("distributed")
    import dask.array as da
    from distributed import Client

    import svmosaic.dask

    X, y = rows_of(3)
    options = {"pieces": 4, **SMALL, "tol": 1e-4}
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        rows, labels = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
        model = svmosaic.dask.TreeSVC(2, **options).fit(rows, labels)
        values = svmosaic.dask.TreeSVR(2, **options).fit(rows, da.from_array(X[:, 0] * X[:, 1], chunks=100))
        assert_array_equal(model.predict(rows).compute(), model.to_local().predict(X))
    # The bits of the same partitions on one machine.
    here = outofcore.fit(TreeSVC(2, **options), X, y, chunk_rows=100)
    assert_array_equal(here.mosaic_.coef, model.mosaic_.coef)
    assert_same_fit(model.to_local(), TreeSVC(2, **options).fit(X, y), 1e-4)
    assert_same_fit(values.to_local(), TreeSVR(2, **options).fit(X, X[:, 0] * X[:, 1]), 1e-4)


def test_a_large_table_from_the_command_line(tmp_path, capsys):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1000))
    frame = pd.DataFrame({"a": a, "b": b, "town": rng.choice(["x", "y"], 1000), "kind": np.where(a * b > 0, "u", "v")})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["--label", "kind", "--model", "tree", "--set", "n_trees=1", "--memory", "100kB", "--json", "--quiet"]
    assert main(["train", tmp_path / "rows.csv", "-o", tmp_path / "m", *arguments]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["chunks"] > 3
    assert facts["held_out"]["accuracy"] > facts["held_out"]["linear_svm"] + 0.2
    model = open_model(tmp_path / "m").estimator
    assert type(model) is TreeSVC
    assert "if " in model.export_text()
