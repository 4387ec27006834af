"""Every table and figure of the five papers: descriptions, one runner, a store of results, and reports from it.

It runs from a clone: `python -m papers reproduce`, `python -m papers report`, `python -m papers data`.
"""

from papers import csvm, fusion, llsvm, lsvm_mtl, mlsvm
from papers.describe import Cell, Experiment, Method, Task
from papers.runner import Store, run

__all__ = ["EXPERIMENTS", "PAPERS", "Cell", "Experiment", "Method", "Store", "Task", "run"]

PAPERS = {
    "MLSVM": "Z. Fu, A. Robles-Kelly and J. Zhou, *Mixing Linear SVMs for Nonlinear Classification*, IEEE "
    "Transactions on Neural Networks 21 (12), 2010",
    "LL-SVM": "L. Ladicky and P. H. S. Torr, *Locally Linear Support Vector Machines*, ICML 2011",
    "CSVM": "Q. Gu and J. Han, *Clustered Support Vector Machines*, AISTATS 2013",
    "LSVM-MTL": "X. Mao, O. Wu, W. Hu and P. O'Donovan, *Nonlinear Classification via Linear SVMs and Multi-Task "
    "Learning*, CIKM 2014",
    "Fusion": "T. Deselaers, G. Heigold and H. Ney, *SVMs, Gaussian Mixtures, and their Generative/Discriminative "
    "Fusion*, ICPR 2008",
}
EXPERIMENTS = tuple(e for paper in (mlsvm, llsvm, csvm, lsvm_mtl, fusion) for e in paper.EXPERIMENTS)
