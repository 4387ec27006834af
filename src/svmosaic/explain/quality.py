"""Quality of a model on some rows, which the report shows first."""

import numpy as np

from svmosaic.model.heads import winners
from svmosaic.rows import evenly

# Bins of a calibration curve, and rows in a picture of residuals.
N_BINS, MOST_RESIDUALS = 10, 500


def measure(model, X, y) -> dict:
    """The quality of a fitted model on rows as they enter it, as `quality_of` gives it."""
    pipeline = getattr(model, "pipeline", model)
    rows = X if pipeline is model else model.rows(X)
    return quality_of(getattr(pipeline, "classes_", None), y, answers_of(pipeline, rows))


def answers_of(model, X) -> dict:
    """The predictions of a fitted model: "predicted", and "scores", "probabilities" and "intervals" if it has them."""
    answers = {"predicted": model.predict(X)}
    if hasattr(model, "decision_function"):
        answers["scores"] = model.decision_function(X)
    if hasattr(model, "predict_proba"):
        answers["probabilities"] = model.predict_proba(X)
    if hasattr(model, "predict_interval"):
        answers["intervals"] = model.predict_interval(X)
    return answers


def quality_of(classes, y, answers) -> dict:
    """The quality of answers, as `answers_of` gives them: plain numbers and lists, ready for JSON.

    Of classes: accuracy, confusion matrix, area under the ROC curve and average precision of the scores (of more than
    two classes, the mean over each against the rest; None if only one is there), log-loss and calibration curve of the
    probabilities. Rows of a class that the model does not know count as wrong, and for nothing else. Without classes:
    as `regression_quality` gives it.
    """
    if classes is None:
        return regression_quality(np.asarray(y, dtype=np.float64), answers["predicted"], answers.get("intervals"))
    known, n = np.isin(y, classes), len(classes)
    label, found = (np.searchsorted(classes, values[known]) for values in (np.asarray(y), answers["predicted"]))
    confusion = np.bincount(label * n + found, minlength=n**2).reshape(n, n)
    per_class = confusion.sum(axis=1)
    recall = np.diag(confusion)[per_class > 0] / per_class[per_class > 0]
    quality: dict = {
        "accuracy": float(np.mean(label == found)) * float(known.mean()),
        "balanced_accuracy": float(recall.mean()),
        "confusion": confusion.tolist(),
    }
    if "scores" in answers:
        from sklearn.metrics import average_precision_score, roc_auc_score

        scores, there = answers["scores"][known], np.unique(label)
        for name, metric in (("auc", roc_auc_score), ("average_precision", average_precision_score)):
            if len(there) < 2:
                quality[name] = None
            elif n == 2:
                quality[name] = float(metric(label, scores))
            else:
                quality[name] = float(np.mean([metric(label == k, scores[:, k]) for k in there]))
    if "probabilities" in answers:
        share = answers["probabilities"][known]
        quality["log_loss"] = float(-np.log(np.maximum(share[np.arange(len(label)), label], 1e-15)).mean())
        # Mean probability, share of rows of the class, and number of rows, in bins of equal width.
        sure, right = (share[:, 1], label == 1) if n == 2 else (share.max(axis=1), winners(share) == label)
        at = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
        n_rows = np.bincount(at, minlength=N_BINS)
        means = (np.bincount(at, part, N_BINS) / np.maximum(n_rows, 1) for part in (sure, right))
        quality["calibration"] = [[float(p), float(q), int(m)] for p, q, m in zip(*means, n_rows, strict=True)]
    return quality


def regression_quality(y, predicted, intervals=None) -> dict:
    """R2, errors and residuals; with intervals, also the share of the rows inside and the mean width.

    Of several outputs for one target, which are quantiles, the middle one is judged, and the outer two are an interval.
    """
    quality: dict = {}
    if predicted.ndim == 2 and y.ndim == 1:
        intervals = np.stack([predicted.min(axis=1), predicted.max(axis=1)], axis=1) if intervals is None else intervals
        predicted = predicted[:, predicted.shape[1] // 2]
    if intervals is not None:
        low, high = intervals.T
        quality = {"coverage": float(np.mean((y >= low) & (y <= high))), "width": float(np.mean(high - low))}
    error = y - predicted
    spread = ((y - y.mean(axis=0)) ** 2).mean(axis=0)
    first = (error, predicted) if error.ndim == 1 else (error[:, 0], predicted[:, 0])
    some = evenly(len(y), MOST_RESIDUALS)
    return quality | {
        "r2": float(np.mean(1.0 - (error**2).mean(axis=0) / np.where(spread > 0, spread, 1.0))),
        "rmse": float(np.sqrt((error**2).mean())),
        "mae": float(np.abs(error).mean()),
        "median_error": float(np.median(np.abs(error))),
        "residuals": {
            name: [float(f"{v:.4g}") for v in part[some]]
            for name, part in zip(("residual", "predicted"), first, strict=True)
        },
    }
