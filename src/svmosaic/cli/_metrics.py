"""How `score` prints the quality of a classifier, and predictions by a threshold."""

import argparse

# In the order in which they are printed.
TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "ROC AUC",
    "average_precision": "average precision",
    "log_loss": "log-loss",
}


def add_threshold(parser):
    """The option that moves the border between two classes."""
    parser.add_argument(
        "--threshold", type=_probability, metavar="P",
        help="for two classes: predict the second (in sorted order) if its probability is at least P (default: 0.5)",
    )  # fmt: skip


def _probability(text):
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a probability between 0 and 1")
    return value


def check_threshold(model, threshold):
    """Refuse a threshold for a model that it means nothing to."""
    if threshold is None:
        return
    if model.classes is None:
        raise ValueError("--threshold is for two classes, and the model predicts values")
    if len(model.classes) != 2:
        raise ValueError(f"--threshold is for two classes, and the model has {len(model.classes)}")
    model.check_calibrated()


def predicted_by(threshold, classes, answers, probabilities):
    """The answers of a model, or, with a threshold, the second class wherever its probability reaches it."""
    return answers if threshold is None else classes[(probabilities[:, 1] >= threshold).astype(int)]


def metric_lines(metrics):
    """A line of text for each metric that has a value.

    Parameters
    ----------
    metrics : dict
        As `svmosaic.explain.quality.quality_of` gives it.
    """
    for name, title in TITLES.items():
        value = metrics.get(name)
        if value is not None:
            shown = f"{value:.2%}" if "accuracy" in name else f"{value:.4f}"
            yield f"  {title:<20}{shown:>9}"
