"""Pictures of fitted models, which need the extra `plot` (matplotlib)."""

from svmosaic._lazy import lazy

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "convergence": ["ConvergenceDisplay"],
        "curves": ["CurveDisplay"],
        "pixels": ["PixelMapDisplay", "pixel_map"],
        "playground": ["playground_page"],
        "predictions": ["PredictionDisplay"],
        "regions": ["RegionDisplay"],
        "tradeoff": ["TradeoffDisplay"],
    },
)
