"""Scores of a classifier beyond its accuracy, and predictions by a threshold."""

import argparse
import warnings

import numpy as np

# In the order in which they are printed.
TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "log_loss": "log-loss",
}


def add_threshold(parser):
    """The option that moves the border between two classes."""
    parser.add_argument(
        "--threshold", type=_probability, metavar="P",
        help="of two classes, predict the second (in sorted order) from this probability on (0.5)",
    )  # fmt: skip


def _probability(text):
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no probability between 0 and 1")
    return value


def check_threshold(model, threshold):
    """Refuse a threshold for a model that it means nothing to."""
    if threshold is None:
        return
    if len(model.classes) != 2:
        raise ValueError(f"--threshold is for two classes, and the model has {len(model.classes)}")
    model.check_calibrated()


def predicted_by(threshold, classes, answers, probabilities):
    """The answers of a model, or, with a threshold, the second class wherever its probability reaches it."""
    return answers if threshold is None else classes[(probabilities[:, 1] >= threshold).astype(int)]


def classification_metrics(truth, predicted, classes, scores, probabilities) -> dict:
    """Scores by the names of `TITLES`; None where a metric has no meaning for these rows.

    Parameters
    ----------
    truth, predicted : ndarray
        Labels. Rows whose label is no class of the model count as wrong in the accuracy, and are left out otherwise.
    classes : ndarray, sorted
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        For the ranking metrics. With several classes these are means over the classes, each against the others.
    probabilities : ndarray of shape (n_rows, n_classes), or None
        For the log-loss.
    """
    from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss, roc_auc_score

    found = dict.fromkeys(TITLES) | {"accuracy": float(np.mean(truth == predicted))}
    known = np.isin(truth, classes)
    truth, predicted, scores = truth[known], predicted[known], scores[known]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes that are not among these rows
        found["balanced_accuracy"] = float(balanced_accuracy_score(truth, predicted))
        if probabilities is not None:
            found["log_loss"] = float(log_loss(truth, probabilities[known], labels=classes))
    columns = scores[:, None] if scores.ndim == 1 else scores
    positive = classes[1:] if scores.ndim == 1 else classes
    ranked = [(truth == c, column) for c, column in zip(positive, columns.T, strict=True)]
    ranked = [(is_class, column) for is_class, column in ranked if 0 < is_class.sum() < len(truth)]
    for name, metric in (("roc_auc", roc_auc_score), ("average_precision", average_precision_score)):
        if ranked:
            found[name] = float(np.mean([metric(is_class, column) for is_class, column in ranked]))
    return found


def metric_lines(metrics):
    """A line of text for each metric that has a value."""
    for name, title in TITLES.items():
        value = metrics[name]
        if value is not None:
            shown = f"{value:.2%}" if "accuracy" in name else f"{value:.4f}"
            yield f"  {title:<20}{shown:>9}"
