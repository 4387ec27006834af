"""Solvers of the one problem, and their certificates."""

from svmosaic.rows import Rows
from svmosaic.solvers.problem import Problem
from svmosaic.solvers.solution import Solution
from svmosaic.solvers.solve import SOLVERS, solve, warn_if_unconverged

__all__ = ["SOLVERS", "Problem", "Rows", "Solution", "solve", "warn_if_unconverged"]
