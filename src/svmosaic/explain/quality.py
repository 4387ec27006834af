"""How good a model is on some rows: what the report shows first. Plain numbers and lists, ready for JSON."""

import numpy as np

from svmosaic.model.heads import winners
from svmosaic.rows import evenly

# Bins of a calibration curve, and rows in a picture of residuals.
N_BINS, MOST_RESIDUALS = 10, 500


def measure(model, X, y) -> dict:
    """The quality of a fitted model on rows.

    Parameters
    ----------
    model : fitted classifier or regressor, pipeline, or TrainedModel
    X : rows as they enter the model
    y : ndarray of shape (n_rows,)

    Returns
    -------
    dict
        As `classification_quality` or `regression_quality` give it.
    """
    pipeline = getattr(model, "pipeline", model)
    rows = X if pipeline is model else model.rows(X)
    return quality_of(getattr(pipeline, "classes_", None), y, answers_of(pipeline, rows))


def answers_of(model, X) -> dict:
    """The predictions of a fitted model: "predicted", and "scores", "probabilities" and "intervals" if it has them.

    Parameters
    ----------
    model : fitted classifier or regressor, or pipeline
    X : rows as they enter the model
    """
    answers = {"predicted": model.predict(X)}
    if hasattr(model, "decision_function"):
        answers["scores"] = model.decision_function(X)
    if hasattr(model, "predict_proba"):
        answers["probabilities"] = model.predict_proba(X)
    if hasattr(model, "predict_interval"):
        answers["intervals"] = model.predict_interval(X)
    return answers


def quality_of(classes, y, answers) -> dict:
    """The quality of answers.

    Parameters
    ----------
    classes : ndarray or None
        Sorted; None for regression.
    y : ndarray of shape (n_rows,)
        Rows of a class that the model does not know count as wrong, and for nothing else.
    answers : dict of ndarray
        As `answers_of` gives them.
    """
    if classes is None:
        return regression_quality(np.asarray(y, dtype=np.float64), answers["predicted"], answers.get("intervals"))
    known = np.isin(y, classes)
    label, found = (np.searchsorted(classes, values[known]) for values in (np.asarray(y), answers["predicted"]))
    more = [answers[name][known] if name in answers else None for name in ("scores", "probabilities")]
    quality = classification_quality(label, found, len(classes), *more)
    return quality | {"accuracy": quality["accuracy"] * float(known.mean())}


def classification_quality(label, found, n_classes, scores=None, probabilities=None) -> dict:
    """Accuracy, area under the ROC curve, average precision, log-loss, confusion matrix and calibration curve.

    Parameters
    ----------
    label, found : ndarray of int, shape (n_rows,)
        Indices of the true and of the predicted classes.
    n_classes : int
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes), optional
        For the area and the precision: of two classes the second's, else the mean over classes against the rest.
    probabilities : ndarray of shape (n_rows, n_classes), optional
        For log-loss and calibration.
    """
    confusion = np.bincount(label * n_classes + found, minlength=n_classes**2).reshape(n_classes, n_classes)
    per_class = confusion.sum(axis=1)
    recall = np.diag(confusion)[per_class > 0] / per_class[per_class > 0]
    quality = {
        "accuracy": float(np.mean(label == found)),
        "balanced_accuracy": float(recall.mean()),
        "confusion": confusion.tolist(),
    }
    if scores is not None:
        from sklearn.metrics import average_precision_score, roc_auc_score

        quality["auc"] = _ranked(roc_auc_score, label, scores, n_classes)
        quality["average_precision"] = _ranked(average_precision_score, label, scores, n_classes)
    if probabilities is not None:
        own = probabilities[np.arange(len(label)), label]
        quality["log_loss"] = float(-np.log(np.maximum(own, 1e-15)).mean())
        sure, right = (
            (probabilities[:, 1], label == 1)
            if n_classes == 2
            else (probabilities.max(axis=1), winners(probabilities) == label)
        )
        quality["calibration"] = calibration_curve(sure, right)
    return quality


def calibration_curve(probability, happened) -> list:
    """Mean probability, share of rows of the class, and number of rows, in ten bins of equal width.

    Parameters
    ----------
    probability : ndarray of shape (n_rows,)
    happened : ndarray of bool, shape (n_rows,)
    """
    at = np.minimum((probability * N_BINS).astype(int), N_BINS - 1)
    n_rows = np.bincount(at, minlength=N_BINS)
    means = (np.bincount(at, part, N_BINS) / np.maximum(n_rows, 1) for part in (probability, happened))
    return [[float(p), float(share), int(n)] for p, share, n in zip(*means, n_rows, strict=True)]


def regression_quality(y, predicted, intervals=None) -> dict:
    """R2, errors and residuals; with intervals, also the share of the rows inside and the mean width.

    Parameters
    ----------
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    predicted : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Of several outputs for one target, which are quantiles, the middle one is judged, and the outer two are an
        interval.
    intervals : ndarray of shape (n_rows, 2), optional
        Lower and upper ends.
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


def _ranked(metric, label, scores, n_classes):
    """A metric of a ranking of the rows; None if only one class is there."""
    there = np.unique(label)
    if len(there) < 2:
        return None
    if n_classes == 2:
        return float(metric(label, scores))
    return float(np.mean([metric(label == k, scores[:, k]) for k in there]))
