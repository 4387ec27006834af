"""Data sets: generated toys, and the papers' sets from a local folder."""

from svmosaic.datasets.local import Dataset, data_folder, load
from svmosaic.datasets.toys import make_banana, make_circle_in_square, make_two_sines, make_two_spirals, make_xor

__all__ = [
    "Dataset",
    "data_folder",
    "load",
    "make_banana",
    "make_circle_in_square",
    "make_two_sines",
    "make_two_spirals",
    "make_xor",
]
