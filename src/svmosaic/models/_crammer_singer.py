"""All classes in one problem."""

from dataclasses import replace

from joblib import effective_n_jobs

from svmosaic.heads import contrast
from svmosaic.rows import Rows, bias_of
from svmosaic.solvers import Problem, solve_crammer_singer


def solve_jointly(estimator, X, target, codes, coupling, rng):
    """The Crammer-Singer problem of an estimator, as `BaseMosaicClassifier._solve` gives its answers: one an output.

    For two classes the output is the difference of the two.
    """
    name = type(estimator).__name__
    if estimator.loss != "hinge":
        raise ValueError(f"{name}: multi_class='crammer_singer' needs loss='hinge', got {estimator.loss!r}")
    if estimator.solver not in ("auto", "dual") or not estimator.penalize_intercept:
        raise ValueError(f"{name}: multi_class='crammer_singer' needs solver='dual' and a penalised intercept")
    bias = bias_of(estimator.fit_intercept, estimator.intercept_scaling)
    problem = Problem(Rows(X, bias), *codes, coupling, target.signs(0), estimator.C * target.weight)
    control = estimator._control([problem], coupling, bias, target, target.n_outputs)
    place = (0, None)
    solution = solve_crammer_singer(
        problem, target.label, len(target.classes), tol=estimator.tol, max_iter=estimator.max_iter,
        seed=rng.randint(2**31 - 1), n_threads=effective_n_jobs(estimator.n_jobs),
        control=control.for_task(place, 0, 1),
    )  # fmt: skip
    if control.finished is not None:
        control.finished(place, solution)
    estimator._report([solution])
    outputs = contrast(solution.weights, axis=0)
    return [replace(solution, certificate=replace(solution.certificate, weights=w)) for w in outputs], bias
