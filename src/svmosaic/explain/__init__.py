"""Models in the words and units of their tables: contributions, importances, curves, regions in words, the report.

Every function takes a fitted model (an estimator, a pipeline that ends in one, or a trained model of the command line)
and rows as they enter it. One-hot columns are regrouped, and numbers are in the units of the table.
"""

from svmosaic._lazy import lazy

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "curves": ["effects"],
        "regions": ["describe_regions"],
        "report.page": ["region_report", "write_report"],
        "subject": ["importances"],
    },
)
