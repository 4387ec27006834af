"""Many settings on one gate: each model is certified, and is that of a fit of its own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris

from svmosaic import ClusteredSVC, KMeansSVC, LearnedGateSVC, LinearSVC, LocallyLinearSVC, MixtureSVC, MosaicClassifier
from svmosaic.datasets import make_xor
from svmosaic.estimators._regularization_path import fit_path, has_path

COSTS = ({"C": 0.1}, {"C": 1.0}, {"C": 10.0})


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(tol=1e-6, random_state=0),
        KMeansSVC(3, tol=1e-6, random_state=0),
        ClusteredSVC(3, loss="squared_hinge", tol=1e-6, random_state=0),
        LocallyLinearSVC(6, n_neighbors=3, tol=1e-6, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("data", [make_xor(150, random_state=0), load_iris(return_X_y=True)], ids=["two", "three"])
def test_every_model_is_that_of_a_separate_fit(model, data):
    X, y = data
    for setting, fitted in zip(COSTS, fit_path(model, X, y, COSTS), strict=True):
        alone = clone(model).set_params(**setting).fit(X, y)
        slack = 1e-5 * setting["C"] * len(y)
        assert (fitted.dual_gap_ <= slack).all()
        # Same problem, same gate: the optimal values agree within what both certificates leave open.
        np.testing.assert_allclose(fitted.objective_, alone.objective_, atol=2 * slack)
        assert setting["C"] == fitted.C
        assert np.mean(fitted.predict(X) == alone.predict(X)) > 0.98


def test_coupling_may_vary_too():
    X, y = make_xor(200, random_state=0)
    settings = [{"global_reg": a, "C": c} for a in (1.0, 100.0) for c in (0.1, 10.0)]
    models = list(fit_path(ClusteredSVC(4, tol=1e-6, random_state=0), X, y, settings))
    assert [(m.global_reg, m.C) for m in models] == [(s["global_reg"], s["C"]) for s in settings]
    # One partition for all.
    assert all(np.array_equal(m.cluster_centers_, models[0].cluster_centers_) for m in models)
    alone = ClusteredSVC(4, tol=1e-6, random_state=0, **settings[-1]).fit(X, y)
    np.testing.assert_allclose(models[-1].objective_, alone.objective_, rtol=1e-4)


def test_warm_starts_save_work():
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = LinearSVC(solver="dual", tol=1e-4, random_state=0)
    steps = [{"C": c} for c in (1.0, 1.05, 1.1)]
    *_, last = fit_path(model, X, y % 2, steps)
    assert last.n_iter_ < clone(model).set_params(**steps[-1]).fit(X, y % 2).n_iter_


def test_what_has_no_path_is_refused():
    X, y = make_xor(50, random_state=0)
    assert has_path(LinearSVC())
    for model in (MixtureSVC(), LearnedGateSVC(), MosaicClassifier()):
        assert not has_path(model)
    with pytest.raises(TypeError, match="MixtureSVC"):
        next(fit_path(MixtureSVC(), X, y, [{"C": 1.0}]))
    with pytest.raises(ValueError, match="n_clusters"):
        next(fit_path(KMeansSVC(), X, y, [{"n_clusters": 3}]))
    with pytest.raises(ValueError, match="C must"):
        list(fit_path(LinearSVC(), X, y, [{"C": -1.0}]))
