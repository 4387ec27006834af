"""All classes in one problem."""

from joblib import effective_n_jobs

from svmosaic.estimators._composed_fit import Solved
from svmosaic.losses import HINGE
from svmosaic.model.heads import contrast
from svmosaic.solvers import solve_crammer_singer


def solve_jointly(rows, coupling, options, progress, rng, start=None) -> Solved:
    """The Crammer-Singer problem of rows in memory, in the place of `solve_outputs`; it takes no start.

    For two classes the output is the difference of the two.
    """
    if options.loss is not HINGE:
        raise ValueError(f"{progress.name}: multi_class='crammer_singer' needs loss='hinge', got {options.loss.name!r}")
    if options.solver not in ("auto", "dual") or (options.sgd is not None and options.sgd.free_bias):
        raise ValueError(f"{progress.name}: multi_class='crammer_singer' needs solver='dual' and a penalized intercept")
    problem, target = rows.problems(coupling, options)[0], rows.target
    control = progress.control(1, coupling, problem.shape, problem.separable, target.n_outputs)
    place = (0, None)
    solution = solve_crammer_singer(
        problem, target.label, len(target.classes), tol=options.tol, max_iter=options.max_iter,
        seed=rng.randint(2**31 - 1), n_threads=effective_n_jobs(options.n_jobs), control=control.for_task(place, 0, 1),
    )  # fmt: skip
    if control.finished is not None:
        control.finished(place, solution)
    progress.report([solution], coupling, options.max_iter, control)
    return Solved(coupling, list(contrast(solution.weights, axis=0)), [solution])
