"""The papers' sets and tasks, as data: where each comes from, and its rows and classes.

Rows, classes and fingerprints are those of the sets that the project's own experiments use. A download with other rows
or other counts of the classes is refused; one with the same counts and another fingerprint (rows in another order,
decimals rounded elsewhere) is used, and `python -m papers data --verify` says so. Nothing is run from what was
downloaded: text, numbers, and MATLAB's arrays.
"""

import bz2
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from svmosaic import datasets as toys

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
EHU = "https://www.ehu.eus/ccwintco/uploads"


@dataclass(frozen=True)
class Source:
    """Files on the network, or a function that finds or makes the rows.

    Attributes
    ----------
    where : a line that says so
    read : (cache folder, *paths of the files) -> arrays X_train, y_train, X_test, y_test, or X, y without an official
        split, and `shape` of an image; for generated sets, random state -> arrays
    urls : the files
    hashes : URL -> "md5:..." where one is published
    """

    where: str
    read: Callable[..., dict]
    urls: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    generated: bool = False


def libsvm(train, n_features, test=(), *, labels=None, unscale=None, md5=()):
    """Files in LIBSVM's format, plain or .bz2; `labels` maps the file's to ours.

    With `unscale` = (a, b), the features are the whole numbers round((x + a) b) that were scaled.
    """

    def read(cache, *paths):
        from sklearn.datasets import load_svmlight_file

        parts = []
        for path in paths:
            with (bz2.open if path.suffix == ".bz2" else open)(path, "rb") as file:
                X, y = load_svmlight_file(file, n_features=n_features, zero_based=False)
            X = X.toarray()
            if unscale is not None:
                X = np.round((X + unscale[0]) * unscale[1])
            parts.append((X.astype(np.float32), _translated(y.astype(np.int64), labels, path.name)))
        X, y = (np.concatenate(part) for part in zip(*parts[: len(train)], strict=True))
        if not test:
            return {"X": X, "y": y}
        X_test, y_test = (np.concatenate(part) for part in zip(*parts[len(train) :], strict=True))
        return {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}

    urls = (*train, *test)
    return Source(train[0].rsplit("/", 1)[0], read, urls, dict(zip(urls, md5, strict=False)))


def text(train, test=None, *, delimiter=None, label_column=-1, labels=None, n_train=None):
    """Rows of numbers in text; without a file `test`, the rows after the first `n_train` are for testing."""

    def read(cache, *paths):
        X, y = [], []
        for path in paths:
            cells = np.loadtxt(path, dtype=str, delimiter=delimiter, ndmin=2)
            y.append(_translated(cells[:, label_column], labels, path.name).astype(np.int64))
            X.append(np.delete(cells, label_column, axis=1).astype(np.float32))
        n = n_train if test is None else len(y[0])
        X, y = np.concatenate(X), np.concatenate(y)
        return {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]}

    return Source(train.rsplit("/", 1)[0], read, (train,) if test is None else (train, test))


def scene(cube_url, cube_name, truth_url, truth_name):
    """A hyperspectral image and the truth on the ground, as variables of MATLAB files."""

    def read(cache, *paths):
        from scipy.io import loadmat

        names = (cube_name, truth_name)
        cube, truth = (loadmat(path, variable_names=[n])[n] for path, n in zip(paths, names, strict=True))
        if cube.ndim != 3 or truth.shape != cube.shape[:2]:
            raise ValueError(f"{cube_url} of shape {cube.shape} and its truth of shape {truth.shape} do not fit")
        return {"X": cube.reshape(truth.size, -1), "y": truth.ravel(), "shape": np.array(truth.shape, dtype=np.int32)}

    return Source(cube_url.rsplit("/", 3)[0], read, (cube_url, truth_url))


def openml(data_id, labels=None, n_train=None):
    """A set of OpenML, through scikit-learn, which checks OpenML's MD5; the first `n_train` rows are for training."""
    where = f"https://www.openml.org/d/{data_id}"

    def read(cache):
        from sklearn.datasets import fetch_openml

        bunch = fetch_openml(data_id=data_id, as_frame=False, parser="auto", data_home=str(cache / "openml"))
        X = np.asarray(bunch.data, dtype=np.float32)
        y = _translated(np.asarray(bunch.target).astype(str), labels, where).astype(np.int64)
        if n_train is None:
            return {"X": X, "y": y}
        return {"X_train": X[:n_train], "y_train": y[:n_train], "X_test": X[n_train:], "y_test": y[n_train:]}

    return Source(where, read)


def _covtype(cache):
    from sklearn.datasets import fetch_covtype  # with its own checksum

    X, y = fetch_covtype(data_home=str(cache / "scikit-learn"), return_X_y=True)
    return {"X": X.astype(np.float32), "y": y.astype(np.int64)}


def _digits(random_state):
    from sklearn.datasets import load_digits

    return dict(zip("Xy", load_digits(return_X_y=True), strict=True))


def _toy(make):
    def read(random_state):
        return dict(zip("Xy", make(2000, random_state=random_state), strict=True))

    return Source("generated", read, generated=True)


def _translated(y, labels, source):
    if labels is None:
        return y
    found, place = np.unique(y, return_inverse=True)
    unknown = [str(label) for label in found if label not in labels]
    if unknown:
        raise ValueError(f"{source} has unknown labels: {', '.join(unknown[:5])}")
    return np.array([labels[label] for label in found])[place.ravel()]


@dataclass(frozen=True)
class Entry:
    """One set.

    Attributes
    ----------
    counts : rows of each class, by label: of all rows, or of the training rows if there is an official split; of a toy
        whose labels are drawn, their mean
    test_counts : rows of each class in the official test part, or None
    fingerprint : SHA-256 of the values (`data.fingerprint`), or None if they are generated
    """

    title: str
    source: Source
    n_features: int
    counts: dict[int, int]
    test_counts: dict[int, int] | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Problem:
    """A problem made from the set `base`: `relabel` gives its labels from the set's, `keep` the rows (None: all)."""

    base: str
    title: str
    relabel: Callable = field(default=lambda y: y)
    keep: Callable | None = None


def _counts(*numbers, start=0):
    return dict(enumerate(numbers, start))


def _files(*names, kind):
    return tuple(f"{LIBSVM}/{kind}/{name}" for name in names)


LETTERS = {chr(ord("A") + k): k for k in range(26)}
SETS = {
    "mnist": Entry(
        "handwritten digits, 28 x 28 pixels",
        openml(554, {str(k): k for k in range(10)}, n_train=60_000),
        784,
        _counts(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        _counts(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        "f848913c26cbc7a80b583845b17dfd8c677bb73df181d7bf755ad394eb04a5aa",
    ),
    "usps": Entry(
        "digits on envelopes, 16 x 16 pixels",
        libsvm(
            _files("usps.bz2", kind="multiclass"), 256, _files("usps.t.bz2", kind="multiclass"),
            labels={k + 1: k for k in range(10)},
            md5=("md5:ec16c51db3855ca6c91edd34d0e9b197", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
        256,
        _counts(1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
        _counts(359, 264, 198, 166, 200, 160, 170, 147, 166, 177),
        "92838ece84a5f072b24d5c0ace0a4f5ef5a5508ec39f892cd35b1d243e445202",
    ),
    "letter": Entry(
        "printed capitals, the first 16,000 rows for training",
        text(
            f"{UCI}/letter-recognition/letter-recognition.data", delimiter=",", label_column=0, labels=LETTERS,
            n_train=16_000,
        ),
        16,
        _counts(633, 630, 594, 638, 616, 622, 609, 583, 590, 599, 593, 604, 648,
                617, 614, 635, 615, 597, 587, 645, 645, 628, 613, 628, 641, 576),
        _counts(156, 136, 142, 167, 152, 153, 164, 151, 165, 148, 146, 157, 144,
                166, 139, 168, 168, 161, 161, 151, 168, 136, 139, 159, 145, 158),
        "2f41e9d753c344cd69d1fecf095f32c609233031183796b7329c6205815ba6e3",
    ),
    "letter_libsvm": Entry(
        "the same capitals in LIBSVM's order, 15,000 for training",
        libsvm(
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
        libsvm(_files("ijcnn1.tr.bz2", "ijcnn1.val.bz2", kind="binary"), 22, _files("ijcnn1.t.bz2", kind="binary")),
        22,
        {-1: 45137, 1: 4853},
        {-1: 82989, 1: 8712},
        "5d3fb5c4f9d84f1e90bbf8ff7e677e905500fe0fffca1ee631119fc1e0a64815",
    ),
    "svmguide1": Entry(
        "particles from a detector",
        libsvm(_files("svmguide1", kind="binary"), 4, _files("svmguide1.t", kind="binary")),
        4,
        _counts(1089, 2000),
        _counts(2000, 2000),
        "bb75a66092c8d9f26bdbd565ef8de1fd4cb012c5f9185c846bc1b9c68522d2b8",
    ),
    "skin": Entry(
        "pixels of skin (1) and of other things (2), blue green red",
        libsvm(_files("skin_nonskin", kind="binary"), 3),
        3,
        {1: 50859, 2: 194198},
        fingerprint="841498051fca2e8bda087417fbc9df87805fb024338af578fd518279c3c465ad",
    ),
    "pendigits": Entry(
        "digits written with a pen, other writers in the test",
        libsvm(_files("pendigits", kind="multiclass"), 16, _files("pendigits.t", kind="multiclass")),
        16,
        _counts(780, 779, 780, 719, 780, 720, 720, 778, 719, 719),
        _counts(363, 364, 364, 336, 364, 335, 336, 364, 336, 336),
        "ca8e4d24d50cf012e03aef42f407f91d92508747420489463936e295bb10ac14",
    ),
    "satimage": Entry(
        "soil from Landsat, six classes",
        text(f"{UCI}/statlog/satimage/sat.trn", f"{UCI}/statlog/satimage/sat.tst"),
        36,
        {1: 1072, 2: 479, 3: 961, 4: 415, 5: 470, 7: 1038},
        {1: 461, 2: 224, 3: 397, 4: 211, 5: 237, 7: 470},
        "12cc6350612af80cde5b6951346a371445f9f16f91bcd99d2528ea738cdb912b",
    ),
    "covtype": Entry(
        "forest cover, seven classes",
        Source("scikit-learn's fetch_covtype", _covtype),
        54,
        _counts(211840, 283301, 35754, 2747, 9493, 17367, 20510, start=1),
        fingerprint="2a786cc1111750bdf9e82b3eacf3bc4626c88b9e1c6482d503df03b7406e1063",
    ),
    "diabetes": Entry(
        "diabetes of Pima women (1 = positive)",
        openml(37, {"tested_negative": 0, "tested_positive": 1}),
        8,
        _counts(500, 268),
        fingerprint="08eda90fc1be91a20d6828d592750152d4812dac7fad8fb9e1e5cdeffff84c7d",
    ),
    "german": Entry(
        "credit, good (1) and bad (2), numeric form",
        libsvm(_files("german.numer", kind="binary"), 24, labels={1: 1, -1: 2}),
        24,
        {1: 700, 2: 300},
        fingerprint="d01f46417d8fc6ab81aa1285715c85ccda6e77569f0585abcbe12a27a0c1a3ab",
    ),
    "heart": Entry(
        "heart disease, absent (1) and present (2)",
        libsvm(_files("heart", kind="binary"), 13, labels={-1: 1, 1: 2}),
        13,
        {1: 150, 2: 120},
        fingerprint="dc97d0c3b081ed9919b2783380cbcf830582bdec9d424547dd5b07cbce7f3200",
    ),
    "vehicle": Entry(
        "silhouettes of four vehicles",
        openml(54, {"bus": 0, "opel": 1, "saab": 2, "van": 3}),
        18,
        _counts(218, 212, 217, 199),
        fingerprint="3ba52301a4cbd573f81307dd09385098e037f1c68e053101c24e0a5492f70289",
    ),
    "indian_pines": Entry(
        "hyperspectral scene, 145 x 145 pixels, 16 crops and unlabeled (0)",
        scene(
            f"{EHU}/6/67/Indian_pines_corrected.mat", "indian_pines_corrected",
            f"{EHU}/c/c4/Indian_pines_gt.mat", "indian_pines_gt",
        ),
        200,
        _counts(10776, 46, 1428, 830, 237, 483, 730, 28, 478, 20, 972, 2455, 593, 205, 1265, 386, 93),
        fingerprint="801b30b6147f401db95aa89863d7a00cec9ff49d9ca58a9a322e65454ec952c7",
    ),
    "salinas_a": Entry(
        "hyperspectral scene, 83 x 86 pixels, six crops and unlabeled (0)",
        scene(
            f"{EHU}/1/1a/SalinasA_corrected.mat", "salinasA_corrected",
            f"{EHU}/a/aa/SalinasA_gt.mat", "salinasA_gt",
        ),
        204,
        {0: 1790, 1: 391, 10: 1343, 11: 616, 12: 1525, 13: 674, 14: 799},
        fingerprint="1b8758978e1702ed37114545298b02ce88908a0a149ae12e0c9a7e2e8f58394b",
    ),
    "digits": Entry(
        "small digits, 8 x 8 pixels, bundled with scikit-learn",
        Source("bundled", _digits, generated=True),
        64,
        _counts(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
    ),
    "xor": Entry("four Gaussians in a diamond", _toy(toys.make_xor), 2, _counts(1000, 1000)),
    "two_spirals": Entry(
        "two spirals of 2.5 turns", _toy(toys.make_two_spirals), 2, _counts(1000, 1000)
    ),
    "circle_in_square": Entry(
        "a disc in a square", _toy(toys.make_circle_in_square), 2, _counts(1000, 1000)
    ),
    "two_sines": Entry(
        "two sines, one above the other", _toy(toys.make_two_sines), 2, _counts(1000, 1000)
    ),
    "banana": Entry("two bananas", _toy(toys.make_banana), 2, _counts(1000, 1000)),
}  # fmt: skip


def _versus(base, first, second):
    return Problem(
        base, f"{first} (0) against {second} (1)", lambda y: (y == second).astype(np.int64),
        lambda y: (y == first) | (y == second),
    )  # fmt: skip


def _odd_even(base, title="odd digits (1) against even ones (0)"):
    return Problem(base, title, lambda y: (y % 2).astype(np.int64))


def _below(base, threshold, title):
    return Problem(base, title, lambda y: (y < threshold).astype(np.int64))


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
    "letter-odd-even": _odd_even("letter", "A, C, E ... (0) against B, D, F ... (1)"),
    "letter-vowels": Problem(
        "letter", "vowels (1) against the other letters (0)",
        lambda y: np.isin(y, [LETTERS[v] for v in "AEIOU"]).astype(np.int64),
    ),
    "covtype-2": Problem("covtype", "class 2 (1) against the others (0)", lambda y: (y == 2).astype(np.int64)),
    "indian_pines-labelled": Problem("indian_pines", "the labeled pixels", keep=lambda y: y > 0),
    "salinas_a-labelled": Problem("salinas_a", "the labeled pixels", keep=lambda y: y > 0),
    "digits-odd-even": _odd_even("digits"),
    "digits-3v8": _versus("digits", 3, 8),
}  # fmt: skip
