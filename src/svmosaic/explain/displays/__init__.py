"""Pictures of fitted models, which need the extra `plot` (matplotlib)."""

from svmosaic._lazy import lazy

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "convergence": ["ConvergenceDisplay"],
        "curves": ["CurveDisplay"],
        "predictions": ["PredictionDisplay"],
        "regions": ["RegionDisplay"],
    },
)
