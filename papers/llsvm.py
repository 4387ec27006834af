"""L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011."""

from dataclasses import replace
from typing import Any

from papers.common import COSTS, LLSVM, ONLY_PRINTED
from papers.describe import Experiment, Method, Task

MNIST = Task("MNIST", "mnist", repeats=2, cost=40.0)
USPS = Task("USPS", "usps", cost=2.0)
LETTER = Task("LETTER", "letter", prepare="standardise", cost=2.0)

_WIDE: dict[str, Any] = {"tune_rows": 6000, "tune_numbers": 2_400_000}
_LINEAR = Method("Linear SVM", "LinearSVC", grid={"C": COSTS}, repeats=1, **_WIDE)
_SGD = Method(
    "Linear SVM, 10 passes of stochastic descent", "LinearSVC", {"solver": "sgd", "max_iter": 10},
    {"C": (0.01, 0.1, 1.0)}, repeats=3, **_WIDE,
)  # fmt: skip
# The best C depends on the number of rows: as many as can be had.
_ALL: dict[str, Any] = {"tune_rows": 16_000, "tune_numbers": 4_000_000}
_LOCAL = replace(LLSVM, name="LL-SVM", own=True, **_ALL)
_SIXTEEN = replace(
    LLSVM, name="LL-SVM, 16 neighbors", settings={"n_anchors": 100, "n_neighbors": 16, "anchors": "kmeans"}, **_ALL
)
_PRINTED = replace(
    LLSVM,
    name="LL-SVM, codes 1/d and hinge as printed",
    settings={"n_anchors": 100, "coding": "inverse", "anchors": "kmeans", "loss": "hinge"},
    **_ALL,
)
_KERNEL = Method(
    "Kernel SVM", "kernel SVM", grid={"C": (1.0, 10.0, 100.0), "gamma": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)},
    tune_rows=2000, repeats=1, cost=60.0,
)  # fmt: skip


def _coordinates(n_anchors, cost):
    return Method(
        f"Linear SVM on LCC, {n_anchors} anchors", "LocalCodingSVC", {"n_anchors": n_anchors},
        {"C": (1.0, 10.0, 100.0)}, repeats=1, cost=cost, **_WIDE,
    )  # fmt: skip


_PROTOCOL = (
    "Images have rows of unit norm, LETTER has standardized features. C is chosen by 5-fold cross-validation on at "
    "most 16,000 training rows (LL-SVM; 6,000 for linear SVMs, 2,000 for the kernel SVM, with gamma), followed by a "
    "fit to all rows. LL-SVM has 100 anchors and 8 neighbors as printed, but softmax codes, the squared hinge and "
    "anchors within each class; the printed codes 1/d have their own row."
)
_PASSES = (
    "The paper's linear row is ten passes of stochastic gradient descent on unscaled data, not a converged SVM; a "
    "converged one-vs-rest SVM is far better on the digits. Our row of ten passes comes closest, with another step "
    "size rule."
)
TABLE_1 = Experiment(
    "llsvm-table1", "LL-SVM", "Table 1: error on MNIST", "table", (MNIST,),
    (_LINEAR, _SGD, _coordinates(512, 8.0), _coordinates(4096, 40.0), _KERNEL, _LOCAL, _SIXTEEN, _PRINTED), "error", 3,
    {
        ("Linear SVM, 10 passes of stochastic descent", "MNIST"): 12.00,
        ("Linear SVM on LCC, 512 anchors", "MNIST"): 2.64,
        ("Linear SVM on LCC, 4096 anchors", "MNIST"): 1.90,
        ("Kernel SVM", "MNIST"): 1.36,
        ("LL-SVM", "MNIST"): 1.85,
    },
    protocol=_PROTOCOL + " The paper states 40,000 training rows; here all 60,000 are used, which reproduce its "
    "figure. MCSVM, SVM-struct, LA-SVM and LA-RANK (1.36 to 1.44 %) are other trainers of the same RBF SVM and are not "
    "run.",
    notes={
        ("Linear SVM, 10 passes of stochastic descent", None): _PASSES,
        ("Linear SVM on LCC, 512 anchors", None): "The printed figures of LCC are from Yu, Zhang and Gong (NIPS "
        "2009), who learn the anchors together with the codes; our anchors are k-means centers.",
        ("LL-SVM", "MNIST"): "The method reaches it with 16 neighbors and k-means anchors (see that row). Eight "
        "neighbors are too few with anchors within each class.",
    },
)  # fmt: skip
TABLE_2 = Experiment(
    "llsvm-table2", "LL-SVM", "Table 2: error on USPS and LETTER", "table", (USPS, LETTER),
    (_LINEAR, _SGD, _KERNEL, _LOCAL, _SIXTEEN, _PRINTED), "error", 5,
    {
        ("Linear SVM, 10 passes of stochastic descent", "USPS"): 9.57,
        ("Linear SVM, 10 passes of stochastic descent", "LETTER"): 41.77,
        ("Kernel SVM", "USPS"): 4.24,
        ("Kernel SVM", "LETTER"): 2.42,
        ("LL-SVM", "USPS"): 5.78,
        ("LL-SVM", "LETTER"): 5.32,
    },
    protocol=_PROTOCOL + " The printed kernel SVM is MCSVM, the best of three.",
    notes={("Linear SVM, 10 passes of stochastic descent", None): _PASSES},
)  # fmt: skip
_TIMES: dict[str, Any] = {
    "measure": "fit_seconds",
    "protocol": "Processor seconds of the final fits with one thread, without tuning; the paper's are from a machine "
    "of 2010, and for the kernel SVM as reported by Bordes et al.",
    "notes": {},
}
TABLE_1_TIMES = replace(
    TABLE_1, id="llsvm-table1-times", title="Table 1: training time on MNIST",
    published={
        ("Linear SVM, 10 passes of stochastic descent", "MNIST"): 1.5,
        ("Kernel SVM", "MNIST"): 17500.0,
        ("LL-SVM", "MNIST"): 81.7,
    },
    **_TIMES,
)  # fmt: skip
TABLE_2_TIMES = replace(
    TABLE_2, id="llsvm-table2-times", title="Table 2: training time on USPS and LETTER",
    published={
        ("Linear SVM, 10 passes of stochastic descent", "USPS"): 0.26,
        ("Linear SVM, 10 passes of stochastic descent", "LETTER"): 0.18,
        ("Kernel SVM", "USPS"): 60.0,
        ("Kernel SVM", "LETTER"): 1200.0,
        ("LL-SVM", "USPS"): 6.2,
        ("LL-SVM", "LETTER"): 4.2,
    },
    **_TIMES,
)  # fmt: skip

# Table 3: 15 rows per class of ten classes.
IMAGES = Task("images", "images", prepare="none", split=0.9, cost=0.2)
_LOCAL_20 = {"n_neighbors": 5, "coding": "inverse", "anchors": "kmeans"}
_GRID = {"C": (1.0, 10.0, 100.0, 1000.0)}
_ANCHORED = {"n_anchors": (2, 5, 20), **_GRID}
TABLE_3 = Experiment(
    "llsvm-table3", "LL-SVM", "Table 3: accuracy on images", "table", (IMAGES,),
    (
        Method("Linear SVM", "LinearSVC", grid=_GRID),
        Method("Additive-kernel SVM", "additive SVM", grid=_GRID, cost=3.0),
        Method("SVM-KNN", "NeighborsSVC", grid={"n_neighbors": (20, 50), "C": (1.0, 10.0, 100.0)}, cost=6.0),
        Method("Locally linear SVM", "LocallyLinearSVC", _LOCAL_20, _ANCHORED, cost=2.0, own=True),
        Method("Locally additive SVM", "locally additive SVM", _LOCAL_20, _ANCHORED, cost=4.0, own=True),
    ),
    "accuracy", 5,
    protocol="The paper uses Caltech-101 with PHOW and self-similarity histograms that are not public. Instead, we use "
    "scikit-learn's bundled 8 x 8 digits, a tenth for training (about 18 per class; the paper has 15), gradient "
    "histograms over the paper's pyramid of 1 x 1, 2 x 2 and 4 x 4 cells, codes 1/d over 5 neighbors as printed, 2, "
    "5 or 20 anchors by cross-validation (the paper has 20 for eight times the rows), and scikit-learn's chi-squared "
    "map instead of the map of the intersection kernel. The printed figures (linear 63.2, intersection kernel "
    "68.8, SVM-KNN 59.1, locally linear 66.9, locally additive 70.1) are therefore not comparable; only the order of "
    "the methods is. `python -m papers reproduce --only llsvm-table3 --images FOLDER` runs the experiment on a folder "
    "of images or a file of features. Each repeat has its own random split; settings are chosen on the first.",
)  # fmt: skip
FIGURE_1 = Experiment(
    "llsvm-figure1", "LL-SVM", "Figure 1: a boundary between two bananas", "picture",
    (Task("bananas", "xor", prepare="none", cost=0.1),), (Method("bananas", "picture: banana"),),
    protocol="600 points, 12 anchors (stars), 4 neighbors.",
)  # fmt: skip
_ANCHORS = (1, 2, 5, 10, 20, 50, 100, 200)
_FIXED = tuple(
    Method(f"LL-SVM, {m} anchors", "LocallyLinearSVC", {"n_anchors": m, "anchors": "kmeans", "C": 100.0}, cost=1.0)
    for m in _ANCHORS
)
FIGURE_2 = Experiment(
    "llsvm-figure2", "LL-SVM", "Figure 2: error against the number of anchors, MNIST", "curve",
    (replace(MNIST, repeats=1),), _FIXED, "error", 1,
    axis="anchors", lines={m.name: ("LL-SVM", float(k)) for m, k in zip(_FIXED, _ANCHORS, strict=True)},
    published={("LL-SVM, 100 anchors", "MNIST"): TABLE_1.published["LL-SVM", "MNIST"]},
    protocol="C = 100 and softmax codes throughout; one anchor is a linear SVM. " + ONLY_PRINTED,
)  # fmt: skip
EXPERIMENTS = (FIGURE_1, FIGURE_2, TABLE_1, TABLE_1_TIMES, TABLE_2, TABLE_2_TIMES, TABLE_3)
