"""Pictures of fitted models, which need the extra `plot` (matplotlib), and the report, which does not."""

from svmosaic._lazy import lazy

_PLACES = {
    "ConvergenceDisplay": "convergence",
    "CurveDisplay": "curves",
    "PixelMapDisplay": "pixels",
    "PredictionDisplay": "predictions",
    "RegionDisplay": "regions",
    "TradeoffDisplay": "tradeoff",
    "pixel_map": "pixels",
    "playground_page": "playground",
    "region_report": "report",
    "write_report": "report",
}

__all__ = sorted(_PLACES)

# The report must not need matplotlib.
__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.display.{place}" for name, place in _PLACES.items()})
