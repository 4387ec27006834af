"""The papers' sets and tasks, as data.

Rows, classes and fingerprints are those of the sets that the project's own experiments use. A download with other rows
or other counts of the classes is refused; one with the same counts and another fingerprint (rows in another order,
decimals rounded elsewhere) is used, and `svmosaic datasets` says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from svmosaic.datasets import toys
from svmosaic.datasets.sources import EHU, LIBSVM, UCI, Generated, Libsvm, OpenML, SceneFiles, ScikitLearn, Text


@dataclass(frozen=True)
class Entry:
    """One set.

    Attributes
    ----------
    title : str
    source : where it comes from (`sources.py`)
    n_features : int
    counts : rows of each class, by label: of all rows, or of the training rows if there is an official split;
        of a toy whose labels are drawn, their mean
    test_counts : rows of each class in the official test part, or None
    fingerprint : SHA-256 of the values (`loader.fingerprint`), or None if they are generated
    """

    title: str
    source: Any
    n_features: int
    counts: dict[int, int]
    test_counts: dict[int, int] | None = None
    fingerprint: str | None = None

    @property
    def n_train(self):
        """Rows for training, or all rows if there is no official split."""
        return sum(self.counts.values())

    @property
    def n_test(self):
        return sum((self.test_counts or {}).values())

    @property
    def generated(self):
        return isinstance(self.source, Generated)


@dataclass(frozen=True)
class Task:
    """A problem made from a data set: which rows, and their labels.

    Attributes
    ----------
    base : str, name of the set
    title : str
    relabel : labels of the set -> labels of the task
    keep : labels of the set -> which rows belong, or None for all
    """

    base: str
    title: str
    relabel: Callable = field(default=lambda y: y)
    keep: Callable | None = None


def _counts(*numbers, start=0):
    return dict(enumerate(numbers, start))


def _files(*names, kind):
    return tuple(f"{LIBSVM}/{kind}/{name}" for name in names)


def _generate(make, **options):
    return Generated(lambda random_state: make(random_state=random_state, **options))


def _digits(random_state):
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


LETTERS = {chr(ord("A") + k): k for k in range(26)}
_USPS = _files("usps.bz2", "usps.t.bz2", kind="multiclass")

SETS = {
    "mnist": Entry(
        "handwritten digits, 28 x 28 pixels",
        OpenML(554, {str(k): k for k in range(10)}, n_train=60_000),
        784,
        _counts(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        _counts(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        "f848913c26cbc7a80b583845b17dfd8c677bb73df181d7bf755ad394eb04a5aa",
    ),
    "usps": Entry(
        "digits on envelopes, 16 x 16 pixels",
        Libsvm(
            _USPS[:1], 256, _USPS[1:], labels={k + 1: k for k in range(10)},
            checksums=dict(zip(
                _USPS, ["md5:ec16c51db3855ca6c91edd34d0e9b197", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"], strict=True
            )),
        ),
        256,
        _counts(1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
        _counts(359, 264, 198, 166, 200, 160, 170, 147, 166, 177),
        "92838ece84a5f072b24d5c0ace0a4f5ef5a5508ec39f892cd35b1d243e445202",
    ),
    "letter": Entry(
        "printed capitals, the first 16,000 rows for training",
        Text(f"{UCI}/letter-recognition/letter-recognition.data", None, ",", 0, LETTERS, n_train=16_000),
        16,
        _counts(633, 630, 594, 638, 616, 622, 609, 583, 590, 599, 593, 604, 648,
                617, 614, 635, 615, 597, 587, 645, 645, 628, 613, 628, 641, 576),
        _counts(156, 136, 142, 167, 152, 153, 164, 151, 165, 148, 146, 157, 144,
                166, 139, 168, 168, 161, 161, 151, 168, 136, 139, 159, 145, 158),
        "2f41e9d753c344cd69d1fecf095f32c609233031183796b7329c6205815ba6e3",
    ),
    "letter_libsvm": Entry(
        "the same capitals in LIBSVM's order, 15,000 for training",
        Libsvm(
            _files("letter.scale", kind="multiclass"), 16, _files("letter.scale.t", kind="multiclass"),
            labels={k + 1: k for k in range(26)}, unscale=(1.0, 7.5),
        ),
        16,
        _counts(594, 567, 554, 598, 565, 565, 547, 538, 567, 575, 572, 560, 607,
                605, 574, 597, 594, 568, 563, 599, 606, 581, 576, 583, 602, 543),
        _counts(195, 199, 182, 207, 203, 210, 226, 196, 188, 172, 167, 201, 185,
                178, 179, 206, 189, 190, 185, 197, 207, 183, 176, 204, 184, 191),
        "0a5fca0b13cd0cd269b6ee084ead2a9c9dc1a56a98fde304827fc1b45f8bb755",
    ),
    "ijcnn1": Entry(
        "misfiring of an engine (IJCNN 2001 challenge)",
        Libsvm(_files("ijcnn1.tr.bz2", "ijcnn1.val.bz2", kind="binary"), 22, _files("ijcnn1.t.bz2", kind="binary")),
        22,
        {-1: 45137, 1: 4853},
        {-1: 82989, 1: 8712},
        "5d3fb5c4f9d84f1e90bbf8ff7e677e905500fe0fffca1ee631119fc1e0a64815",
    ),
    "svmguide1": Entry(
        "particles from a detector",
        Libsvm(_files("svmguide1", kind="binary"), 4, _files("svmguide1.t", kind="binary")),
        4,
        _counts(1089, 2000),
        _counts(2000, 2000),
        "bb75a66092c8d9f26bdbd565ef8de1fd4cb012c5f9185c846bc1b9c68522d2b8",
    ),
    "skin": Entry(
        "pixels of skin (1) and of other things (2), blue green red",
        Libsvm(_files("skin_nonskin", kind="binary"), 3),
        3,
        {1: 50859, 2: 194198},
        fingerprint="841498051fca2e8bda087417fbc9df87805fb024338af578fd518279c3c465ad",
    ),
    "pendigits": Entry(
        "digits written with a pen, other writers in the test",
        Libsvm(_files("pendigits", kind="multiclass"), 16, _files("pendigits.t", kind="multiclass")),
        16,
        _counts(780, 779, 780, 719, 780, 720, 720, 778, 719, 719),
        _counts(363, 364, 364, 336, 364, 335, 336, 364, 336, 336),
        "ca8e4d24d50cf012e03aef42f407f91d92508747420489463936e295bb10ac14",
    ),
    "satimage": Entry(
        "soil from Landsat, six classes",
        Text(f"{UCI}/statlog/satimage/sat.trn", f"{UCI}/statlog/satimage/sat.tst"),
        36,
        {1: 1072, 2: 479, 3: 961, 4: 415, 5: 470, 7: 1038},
        {1: 461, 2: 224, 3: 397, 4: 211, 5: 237, 7: 470},
        "12cc6350612af80cde5b6951346a371445f9f16f91bcd99d2528ea738cdb912b",
    ),
    "covtype": Entry(
        "forest cover, seven classes",
        ScikitLearn("fetch_covtype", "scikit-learn's fetch_covtype"),
        54,
        _counts(211840, 283301, 35754, 2747, 9493, 17367, 20510, start=1),
        fingerprint="2a786cc1111750bdf9e82b3eacf3bc4626c88b9e1c6482d503df03b7406e1063",
    ),
    "diabetes": Entry(
        "diabetes of Pima women (1 = positive)",
        OpenML(37, {"tested_negative": 0, "tested_positive": 1}),
        8,
        _counts(500, 268),
        fingerprint="08eda90fc1be91a20d6828d592750152d4812dac7fad8fb9e1e5cdeffff84c7d",
    ),
    "german": Entry(
        "credit, good (1) and bad (2), numeric form",
        Libsvm(_files("german.numer", kind="binary"), 24, labels={1: 1, -1: 2}),
        24,
        {1: 700, 2: 300},
        fingerprint="d01f46417d8fc6ab81aa1285715c85ccda6e77569f0585abcbe12a27a0c1a3ab",
    ),
    "heart": Entry(
        "heart disease, absent (1) and present (2)",
        Libsvm(_files("heart", kind="binary"), 13, labels={-1: 1, 1: 2}),
        13,
        {1: 150, 2: 120},
        fingerprint="dc97d0c3b081ed9919b2783380cbcf830582bdec9d424547dd5b07cbce7f3200",
    ),
    "vehicle": Entry(
        "silhouettes of four vehicles",
        OpenML(54, {"bus": 0, "opel": 1, "saab": 2, "van": 3}),
        18,
        _counts(218, 212, 217, 199),
        fingerprint="3ba52301a4cbd573f81307dd09385098e037f1c68e053101c24e0a5492f70289",
    ),
    "indian_pines": Entry(
        "hyperspectral scene, 145 x 145 pixels, 16 crops and unlabeled (0)",
        SceneFiles(
            (f"{EHU}/6/67/Indian_pines_corrected.mat", "indian_pines_corrected"),
            (f"{EHU}/c/c4/Indian_pines_gt.mat", "indian_pines_gt"),
        ),
        200,
        _counts(10776, 46, 1428, 830, 237, 483, 730, 28, 478, 20, 972, 2455, 593, 205, 1265, 386, 93),
        fingerprint="801b30b6147f401db95aa89863d7a00cec9ff49d9ca58a9a322e65454ec952c7",
    ),
    "salinas_a": Entry(
        "hyperspectral scene, 83 x 86 pixels, six crops and unlabeled (0)",
        SceneFiles(
            (f"{EHU}/1/1a/SalinasA_corrected.mat", "salinasA_corrected"),
            (f"{EHU}/a/aa/SalinasA_gt.mat", "salinasA_gt"),
        ),
        204,
        {0: 1790, 1: 391, 10: 1343, 11: 616, 12: 1525, 13: 674, 14: 799},
        fingerprint="1b8758978e1702ed37114545298b02ce88908a0a149ae12e0c9a7e2e8f58394b",
    ),
    "digits": Entry(
        "small digits, 8 x 8 pixels, bundled with scikit-learn",
        Generated(_digits, "bundled"),
        64,
        _counts(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
    ),
    "xor": Entry("four Gaussians in a diamond", _generate(toys.make_xor, n_samples=2000), 2, _counts(1000, 1000)),
    "two_spirals": Entry(
        "two spirals of 2.5 turns", _generate(toys.make_two_spirals, n_samples=2000), 2, _counts(1000, 1000)
    ),
    "circle_in_square": Entry(
        "a disc in a square", _generate(toys.make_circle_in_square, n_samples=2000), 2, _counts(1000, 1000)
    ),
    "two_sines": Entry(
        "two sines, one above the other", _generate(toys.make_two_sines, n_samples=2000), 2, _counts(1000, 1000)
    ),
    "banana": Entry("two bananas", _generate(toys.make_banana, n_samples=2000), 2, _counts(1000, 1000)),
}  # fmt: skip


def _versus(base, first, second):
    return Task(
        base, f"{first} (0) against {second} (1)", lambda y: (y == second).astype(np.int64),
        lambda y: (y == first) | (y == second),
    )  # fmt: skip


def _odd_even(base):
    return Task(base, "odd digits (1) against even ones (0)", lambda y: (y % 2).astype(np.int64))


def _below(base, threshold, title):
    return Task(base, title, lambda y: (y < threshold).astype(np.int64))


def _labelled(base):
    return Task(base, "the labeled pixels", keep=lambda y: y > 0)


TASKS = {
    "mnist-odd-even": _odd_even("mnist"),
    "mnist-3v8": _versus("mnist", 3, 8),
    "mnist-4v9": _versus("mnist", 4, 9),
    "usps-odd-even": _odd_even("usps"),
    "usps-3v8": _versus("usps", 3, 8),
    "usps-4v9": _versus("usps", 4, 9),
    "pendigits-lt5": _below("pendigits", 5, "digits below 5 (1) against the others (0)"),
    "pendigits-odd-even": _odd_even("pendigits"),
    "letter-am": _below("letter", 13, "A to M (1) against N to Z (0)"),
    "letter-odd-even": Task("letter", "A, C, E ... (0) against B, D, F ... (1)", lambda y: (y % 2).astype(np.int64)),
    "letter-vowels": Task(
        "letter", "vowels (1) against the other letters (0)",
        lambda y: np.isin(y, [LETTERS[v] for v in "AEIOU"]).astype(np.int64),
    ),
    "covtype-2": Task("covtype", "class 2 (1) against the others (0)", lambda y: (y == 2).astype(np.int64)),
    "indian_pines-labelled": _labelled("indian_pines"),
    "salinas_a-labelled": _labelled("salinas_a"),
    "digits-odd-even": _odd_even("digits"),
    "digits-3v8": _versus("digits", 3, 8),
}  # fmt: skip


def names():
    """All sets, then all tasks."""
    return [*SETS, *TASKS]
