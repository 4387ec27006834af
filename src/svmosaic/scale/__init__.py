"""The models over rows in partitions: one optimizer and one way to fit, whatever holds the partitions.

`rounds` says what holding partitions means, `part` what is computed on one, `fit` answers the questions of a fit from
samples and sums over partitions. Two things hold partitions: chunks of a file, one after another (`chunks`), and the
workers of a Dask cluster (`svmosaic.dask`).
"""

from svmosaic.scale.fit import SUPPORTED, fit

__all__ = ["SUPPORTED", "fit"]
