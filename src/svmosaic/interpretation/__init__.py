"""Models in the words and units of their tables: regions as conditions, importances, effect curves.

Every function takes a fitted model (an estimator, a pipeline that ends in one, or a trained model of the command line)
and rows as they enter it. One-hot columns are regrouped, and numbers are in the units of the table.
"""

from svmosaic._lazy import lazy

__all__ = ["describe_regions", "effects", "importances"]

_PLACES = {"describe_regions": "regions", "effects": "effect_curves", "importances": "importance"}

__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.interpretation.{module}" for name, module in _PLACES.items()})
