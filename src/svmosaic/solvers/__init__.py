"""Solvers of the one problem, and their certificates."""

from svmosaic.rows import Rows
from svmosaic.solvers.certificates import Solution
from svmosaic.solvers.control import Control
from svmosaic.solvers.crammer_singer import solve_crammer_singer
from svmosaic.solvers.problem import Problem, Sight, problems_of
from svmosaic.solvers.sgd import SgdOptions, StochasticDescent
from svmosaic.solvers.solve import Solver, solve, warn_if_unconverged

__all__ = [
    "Control",
    "Problem",
    "Rows",
    "SgdOptions",
    "Sight",
    "Solution",
    "Solver",
    "StochasticDescent",
    "problems_of",
    "solve",
    "solve_crammer_singer",
    "warn_if_unconverged",
]
