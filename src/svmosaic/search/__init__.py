"""The front doors `MosaicClassifier` and `MosaicRegressor`, and the search behind them.

Candidates are data (`plan.py`), waves of them are fitted and judged (`engine.py`), and the best are blended
(`choice.py`).
"""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

# ruff: noqa: F401
if TYPE_CHECKING:
    from svmosaic.search.mosaic_classifier import MosaicClassifier
    from svmosaic.search.mosaic_regressor import MosaicRegressor

__all__, __getattr__, __dir__ = lazy(
    globals(), {"mosaic_classifier": ["MosaicClassifier"], "mosaic_regressor": ["MosaicRegressor"]}
)

# Model families that may be tried; here, because the command line names them and imports nothing else of the search.
FAMILIES = ("linear", "clustered", "local", "kernel", "learned", "trees", "boosted")
