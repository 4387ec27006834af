"""Images for the experiment after LL-SVM's table 3: a folder of the user's, or scikit-learn's small digits.

`svmosaic reproduce --images` takes a folder with one subfolder of pictures a class (Caltech-101 unpacked is one), or a
file .npz of features, with arrays X and y. The features of pictures are histograms of gradients over a
spatial pyramid, after Bosch, Zisserman and Munoz (CIVR 2007), whose PHOW histograms the paper used; the paper's other
features (color, self-similarity) are not computed.
"""

from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm")
SIDE = 128  # pictures are scaled to this many pixels a side
PYRAMID, ORIENTATIONS = (1, 2, 4), 9


def gradient_histograms(images, pyramid=PYRAMID, n_orientations=ORIENTATIONS):
    """Histograms of gradient directions, weighted by length, in the cells of a pyramid of grids.

    Parameters
    ----------
    images : array of shape (n, height, width)
    pyramid : sequence of int
        Cells a side, level by level.
    n_orientations : int
        Bins over half a turn: a light edge on dark ground counts as a dark one on light ground.

    Returns
    -------
    ndarray of float32, shape (n, n_orientations * sum of squared `pyramid`)
        Each level of an image sums to one, or is zero where the image has no edge.
    """
    images = np.asarray(images, dtype=np.float32)
    down, right = np.gradient(images, axis=(1, 2))
    length = np.hypot(down, right)
    turn = np.arctan2(down, right) / np.pi % 1.0
    bins = np.minimum((turn * n_orientations).astype(int), n_orientations - 1)
    n, height, width = images.shape
    levels = []
    for side in pyramid:
        row = np.arange(height) * side // height
        column = np.arange(width) * side // width
        cell = row[:, None] * side + column[None, :]
        place = (np.arange(n)[:, None, None] * side**2 + cell) * n_orientations + bins
        counts = np.bincount(place.ravel(), length.ravel(), n * side**2 * n_orientations).reshape(n, -1)
        total = counts.sum(axis=1, keepdims=True)
        levels.append(counts / np.where(total > 0, total, 1.0))
    return np.hstack(levels).astype(np.float32)


@cache
def image_set(place=""):
    """Features and labels: of scikit-learn's digits, of a folder of images, or as a file .npz has them."""
    if not place:
        digits = load_digits()
        return gradient_histograms(digits.images), digits.target
    path = Path(place)
    if path.suffix == ".npz" and path.is_file():
        with np.load(path, allow_pickle=False) as archive:
            missing = {"X", "y"} - set(archive.files)
            if missing:
                raise ValueError(f"{path} has no array {' and '.join(sorted(missing))}")
            return archive["X"], archive["y"]
    if not path.is_dir():
        raise FileNotFoundError(f"{place!r} is neither a folder of images nor a file .npz of features")
    return _features_of_folder(path)


def _features_of_folder(folder):
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs Pillow: pip install pillow") from error
    X, y = [], []
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        for path in sorted(place.iterdir()):
            if path.suffix.lower() in SUFFIXES:
                with Image.open(path) as picture:
                    pixels = np.asarray(picture.convert("L").resize((SIDE, SIDE)))
                X.append(gradient_histograms(pixels[None])[0])
                y.append(place.name)
    if len(set(y)) < 2:
        raise ValueError(f"{folder} has no two subfolders with images ({', '.join(SUFFIXES)}): one per class is needed")
    return np.array(X), np.array(y)
