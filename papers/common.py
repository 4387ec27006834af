"""Tasks and baselines that several papers share: one description, so that one run serves all their tables."""

from typing import Any

from papers.describe import Method, Task

# The grids of the CSVM paper, which LSVM-MTL took over.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
WIDTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
LAMBDAS = (1.0, 5.0, 10.0, 20.0, 50.0, 100.0)

SVMGUIDE1 = Task("svmguide1", "svmguide1", cost=0.1)
IJCNN1 = Task("ijcnn1", "ijcnn1", cost=2.0)
USPS_ODD = Task("USPS odd/even", "usps", "odd or even", cost=0.5)
MNIST_38 = Task("MNIST 3v8", "mnist", "3 or 8", cost=3.0)
MNIST_49 = Task("MNIST 4v9", "mnist", "4 or 9", cost=3.0)
MNIST_ODD = Task("MNIST odd/even", "mnist", "odd or even", repeats=2, cost=15.0)

# Paths on one gate are cheap: cross-validation may see more rows.
_PATH: dict[str, Any] = {"tune_rows": 10_000, "tune_numbers": 4_000_000}

LINEAR = Method(
    "Linear SVM", "LinearSVC", grid={"C": COSTS}, choose="simplest", repeats=1, cost=1.0, **_PATH,
)  # fmt: skip
KERNEL = Method("Kernel SVM", "kernel SVM", grid={"C": COSTS, "gamma": WIDTHS}, tune_rows=2000, repeats=1, cost=120.0)
SVM_KNN = Method(
    "SVM-KNN", "NeighborsSVC", grid={"n_neighbors": (20, 50, 100), "C": (1.0, 10.0, 100.0)}, tune_rows=2000,
    repeats=1, cost=40.0,
)  # fmt: skip
KMEANS_8 = Method("K-means+SVM", "KMeansSVC", {"n_clusters": 8}, {"C": COSTS}, cost=3.0, **_PATH)
CSVM_8 = Method(
    "CSVM", "ClusteredSVC", {"n_clusters": 8}, {"global_reg": LAMBDAS, "C": COSTS}, cost=6.0, tune_rows=6000,
    tune_numbers=2_400_000,
)  # fmt: skip
MLSVM_20 = Method(
    "MLSVM", "MixtureSVC", {"n_experts": 20, "nu": 0.0}, {"C": (1.0, 10.0, 100.0)}, tune_settings={"max_iter": 10},
    repeats=3, cost=40.0,
)  # fmt: skip
LLSVM = Method(
    "LLSVM", "LocallyLinearSVC", {"n_anchors": 100}, {"C": (1.0, 10.0, 100.0)}, tune_rows=6000,
    tune_numbers=2_400_000, cost=8.0,
)  # fmt: skip
ONLY_PRINTED = (
    "Stars, dotted lines and brackets show the numbers printed in the paper's tables. The rest of the published curve "
    "exists only as a picture, so there are no numbers to compare with."
)
PROTOCOL = (
    "Rows are scaled to unit norm. Settings are chosen by 5-fold cross-validation on a random sample of the training "
    "rows: C from 0.01 to 100 (likewise gamma for the kernel SVM, and lambda from 1 to 100 for CSVM). The best mean "
    "accuracy wins; for the linear SVM, the strongest penalty within one standard error of it. The samples have at "
    "most 10,000 rows (linear, K-means+SVM), 6,000 (CSVM, LLSVM), 3,000 (MLSVM) or 2,000 (kernel SVM, SVM-KNN), fewer "
    "if rows have hundreds of features. The final fit uses all training rows."
)
