"""Data sets: generated toys, and the papers' sets from a local folder, the cache, or their source."""

from svmosaic.datasets.download import DownloadError
from svmosaic.datasets.loader import Dataset, DatasetNotFoundError, Scene, cache_folder, data_folder, load, load_scene
from svmosaic.datasets.toys import make_banana, make_circle_in_square, make_two_sines, make_two_spirals, make_xor

__all__ = [
    "Dataset",
    "DatasetNotFoundError",
    "DownloadError",
    "Scene",
    "cache_folder",
    "data_folder",
    "load",
    "load_scene",
    "make_banana",
    "make_circle_in_square",
    "make_two_sines",
    "make_two_spirals",
    "make_xor",
]
