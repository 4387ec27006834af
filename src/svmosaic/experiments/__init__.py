"""Every table and figure of the papers: descriptions, one runner, a store of results, and reports from it."""

from svmosaic.experiments.catalogue import EXPERIMENTS, PAPERS
from svmosaic.experiments.describe import Cell, Experiment, Method, Task
from svmosaic.experiments.runner import run
from svmosaic.experiments.store import Store

__all__ = ["EXPERIMENTS", "PAPERS", "Cell", "Experiment", "Method", "Store", "Task", "run"]
