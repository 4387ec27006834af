"""Q. Gu and J. Han, Clustered Support Vector Machines, AISTATS 2013."""

from dataclasses import replace

from papers.common import (
    CSVM_8,
    IJCNN1,
    KERNEL,
    KMEANS_8,
    LINEAR,
    LLSVM,
    MLSVM_20,
    MNIST_38,
    MNIST_49,
    MNIST_ODD,
    ONLY_PRINTED,
    PROTOCOL,
    SVM_KNN,
    SVMGUIDE1,
    USPS_ODD,
)  # fmt: skip
from papers.describe import Experiment, Method, Task

_TASKS = (SVMGUIDE1, IJCNN1, USPS_ODD, MNIST_38, MNIST_49, MNIST_ODD)
_CSVM = replace(CSVM_8, own=True)
_METHODS = (LINEAR, KERNEL, SVM_KNN, KMEANS_8, replace(MLSVM_20, name="MSVM"), LLSVM, _CSVM)
_REPEATS = 5


def _rows(*lines):
    """Printed numbers, one line a method in the order of the tasks."""
    return {
        (line[0], task.name): value for line in lines for task, value in zip(_TASKS, line[1:], strict=True)
    }  # fmt: skip


_UNREACHED = (
    "We tried every lambda and C of the paper's grid, even choosing them on the test rows (csvm-table2-bound). Our "
    "linear SVM agrees with the printed one, so rows and preparation are not the cause. With 8 k-means cells and these "
    "penalties, the figure does not seem to be within reach."
)
_UNSURE = (
    "We tried every lambda and C of the paper's grid by cross-validation. The best that the grid can give is in "
    "csvm-table2-bound."
)
TABLE_2 = Experiment(
    "csvm-table2", "CSVM", "Table 2: accuracy", "table", _TASKS, _METHODS, "accuracy", _REPEATS,
    _rows(
        ("Linear SVM", 79.13, 91.01, 93.72, 97.08, 97.14, 90.21),
        ("Kernel SVM", 87.95, 93.89, 95.91, 98.69, 98.90, 98.87),
        ("SVM-KNN", 85.78, 92.45, 94.46, 98.99, 97.90, 96.97),
        ("K-means+SVM", (80.45, 1.15), (93.19, 0.60), (95.45, 0.20), (98.45, 0.19), (97.80, 0.26), (96.06, 0.22)),
        ("MSVM", (83.27, 0.64), (93.41, 0.19), (95.71, 0.22), (98.46, 0.25), (97.74, 0.25), (96.62, 0.18)),
        ("LLSVM", (87.64, 0.30), (94.07, 0.45), (96.19, 0.25), (98.62, 0.18), (98.09, 0.24), (98.91, 0.09)),
        ("CSVM", (83.68, 0.84), (94.29, 0.62), (96.44, 0.24), (99.41, 0.18), (98.69, 0.19), (97.14, 0.17)),
    ),
    protocol=PROTOCOL + " The paper repeats over ten k-means seeds. LLSVM: softmax codes over 8 of 100 anchors; the "
    "authors used the codes of Wang et al. MSVM: the mixing coefficients are inside the softmax and the gate is "
    "scale-free (see docs/mixtures.md), 3 repeats. The paper states 917 test rows for USPS; the usual 2,007 reproduce "
    "its linear row.",
    notes={
        ("CSVM", "USPS odd/even"): _UNREACHED + " With twenty clusters, it is exceeded (csvm-figure2).",
        ("CSVM", "MNIST 3v8"): _UNREACHED + " The printed figure is above the paper's own kernel SVM (98.69).",
        ("CSVM", "MNIST 4v9"): _UNSURE,
        ("CSVM", "MNIST odd/even"): _UNSURE,
        ("Linear SVM", "ijcnn1"): "The printed figure corresponds to a C between 0.01 and 0.1, which cross-validation "
        "does not choose; nine in ten rows are of one class.",
        ("Kernel SVM", None): "The printed kernel SVM is undertuned on some data sets, so ours can be well above it.",
    },
)  # fmt: skip
TABLE_3 = replace(
    TABLE_2,
    id="csvm-table3",
    title="Table 3: training time",
    measure="fit_seconds",
    published=_rows(
        ("Linear SVM", 0.00, 0.22, 0.27, 0.34, 0.28, 2.46),
        ("Kernel SVM", 0.19, 320.27, 22.07, 381.52, 364.65, 4031.03),
        ("SVM-KNN", 2.62, 164.97, 16.57, 38.78, 37.42, 1002.76),
        ("K-means+SVM", 0.09, 0.37, 1.77, 7.69, 8.48, 18.33),
        ("MSVM", 2.09, 10.56, 42.86, 192.64, 199.15, 440.28),
        ("LLSVM", 2.17, 472.88, 73.09, 188.04, 151.24, 1420.75),
        ("CSVM", 0.32, 4.13, 3.60, 12.25, 10.81, 31.93),
    ),
    protocol="Processor seconds of the final fits of table 2, including k-means but not tuning, with one thread on a "
    "server of the 2020s; the paper's are from an unnamed machine of 2012. SVM-KNN trains when it predicts: our time "
    "is that of the fit alone, the paper's includes both.",
    notes={},
)
_BOUND = replace(CSVM_8, name="CSVM, settings chosen on the test rows", choose="test", cost=12.0)
_SHORT = (USPS_ODD, MNIST_38, MNIST_49, MNIST_ODD)
TABLE_2_BOUND = Experiment(
    "csvm-table2-bound", "CSVM", "Table 2: the best that the grid can give", "table", _SHORT, (_BOUND,), "accuracy", 3,
    {(_BOUND.name, task.name): TABLE_2.published["CSVM", task.name] for task in _SHORT},
    protocol="This is a bound, not a result: lambda and C are the pair of the grid that is best on the test rows with "
    "the first k-means seed, so no other choice could have given more there. All seeds use that pair.",
)  # fmt: skip
_CLUSTERS = (2, 5, 8, 11, 14, 17, 20)


def csvm_with(n_clusters) -> Method:
    """CSVM with another number of cells, lambda and C as chosen for 8."""
    if n_clusters == 8:
        return replace(CSVM_8, name="CSVM, 8 clusters")
    return replace(
        CSVM_8, name=f"CSVM, {n_clusters} clusters", settings={"n_clusters": n_clusters}, tuned_by=CSVM_8
    )  # fmt: skip


_CURVE = tuple(csvm_with(k) for k in _CLUSTERS)
FIGURE_1 = Experiment(
    "csvm-figure1", "CSVM", "Figure 1: linear, kernel and clustered SVM on XOR", "picture",
    (Task("XOR", "xor", prepare="none", cost=0.1),), (Method("XOR", "picture: xor"),),
    protocol="400 points; the k-means seed with the lowest objective of ten (the paper shows one good partition). The "
    "small differences in accuracy are noise.",
)  # fmt: skip
FIGURE_2 = Experiment(
    "csvm-figure2", "CSVM", "Figure 2: accuracy against the number of clusters", "curve", _TASKS, (LINEAR, *_CURVE),
    "accuracy", 3, axis="clusters",
    lines={
        "Linear SVM": ("Linear SVM", 0.0),
        **{m.name: ("CSVM", float(k)) for m, k in zip(_CURVE, _CLUSTERS, strict=True)},
    },
    published={
        (_CURVE[_CLUSTERS.index(8)].name if method == "CSVM" else method, task): value
        for (method, task), value in TABLE_2.published.items()
        if method in ("Linear SVM", "CSVM")
    },
    protocol="lambda and C are those chosen for 8 clusters in table 2 (the paper chose them for each number). "
    + ONLY_PRINTED,
)  # fmt: skip
FIGURE_3 = replace(
    FIGURE_2,
    id="csvm-figure3",
    title="Figure 3: training time against the number of clusters",
    measure="fit_seconds",
    published={},
    protocol="Processor seconds of the fits of figure 2. The paper prints numbers only for 8 clusters, from a machine "
    "of 2012: see table 3. The rest of its curves exists only as a picture.",
)
EXPERIMENTS = (FIGURE_1, TABLE_2, TABLE_2_BOUND, TABLE_3, FIGURE_2, FIGURE_3)
