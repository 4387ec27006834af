"""Data sets: generated toys, and the papers' sets from a local folder."""

from svmosaic.datasets.local import Dataset, data_folder, load
from svmosaic.datasets.toys import make_banana, make_xor

__all__ = ["Dataset", "data_folder", "load", "make_banana", "make_xor"]
