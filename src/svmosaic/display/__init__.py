"""Pictures of fitted models, which need the extra `plot` (matplotlib), and the region report, which does not."""

from importlib import import_module

_WHERE = {
    "ConvergenceDisplay": "convergence",
    "PixelMapDisplay": "pixels",
    "RegionDisplay": "regions",
    "TradeoffDisplay": "tradeoff",
    "pixel_map": "pixels",
    "region_report": "report",
}

__all__ = sorted(_WHERE)


def __getattr__(name):
    # Imported when first asked for: the report must not need matplotlib.
    if name not in _WHERE:
        raise AttributeError(f"module 'svmosaic.display' has no attribute {name!r}")
    value = getattr(import_module(f"svmosaic.display.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
