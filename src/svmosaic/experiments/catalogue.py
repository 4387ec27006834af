"""All experiments, by paper."""

from fnmatch import fnmatchcase

from svmosaic.experiments import csvm, fusion, llsvm, lsvm_mtl, mlsvm

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
EXPERIMENTS = (
    *mlsvm.EXPERIMENTS,
    *llsvm.EXPERIMENTS,
    *csvm.EXPERIMENTS,
    *lsvm_mtl.EXPERIMENTS,
    *fusion.EXPERIMENTS,
)


def select(patterns, experiments=EXPERIMENTS):
    """The experiments whose id matches one of the patterns, all without patterns."""
    if not patterns:
        return tuple(experiments)
    for pattern in patterns:
        if not any(fnmatchcase(experiment.id, pattern) for experiment in experiments):
            known = ", ".join(experiment.id for experiment in experiments)
            raise ValueError(f"no experiment matches {pattern!r}; there are {known}")
    return tuple(e for e in experiments if any(fnmatchcase(e.id, pattern) for pattern in patterns))
