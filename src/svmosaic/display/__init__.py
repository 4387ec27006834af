"""Pictures of fitted models, which need the extra `plot` (matplotlib), and the report, which does not."""

from svmosaic._lazy import lazy

# The report must not need matplotlib.
__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "convergence": ["ConvergenceDisplay"],
        "curves": ["CurveDisplay"],
        "pixels": ["PixelMapDisplay", "pixel_map"],
        "playground": ["playground_page"],
        "predictions": ["PredictionDisplay"],
        "regions": ["RegionDisplay"],
        "report": ["region_report", "write_report"],
        "tradeoff": ["TradeoffDisplay"],
    },
)
