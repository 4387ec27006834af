"""`svmosaic score`: how good a model is on labeled rows."""

import numpy as np

from svmosaic.cli._io import Bar, add_output_options, add_table_options, say
from svmosaic.cli.predict import add_threshold, check_threshold, chunks_of, predicted_by
from svmosaic.losses import LOSSES
from svmosaic.table.formats import TableError, find_column, is_npy, name_of

# In the order in which they are printed.
TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "ROC AUC",
    "average_precision": "average precision",
    "log_loss": "log-loss",
}


def add_arguments(parser):
    """The model and the table."""
    parser.add_argument("model", metavar="FILE", help="a model written by `svmosaic train`")
    parser.add_argument("data", help="a table with labels; - for standard input")
    parser.add_argument("--label", help="label column, if its name differs from training; for NPY, a second file")
    add_threshold(parser)
    add_table_options(parser)
    add_output_options(parser)


def run(options):
    """Predict chunk by chunk, and count."""
    from svmosaic.explain.quality import answers_of, quality_of
    from svmosaic.table.trained_model import open_model

    model = open_model(options.model)
    check_threshold(model, options.threshold)
    truth, answers, without = [], [], 0
    with Bar(options.quiet) as bar, bar.step("scoring") as update:
        for table in chunks_of(model, options.data, options, update=update, label=options.label):
            y, there = labels_of(model, table, name_of(options.data), options.label)
            rows = model.rows(table, name_of(options.data))
            found = answers_of(model.pipeline, rows)
            if hasattr(model.estimator, "predict_interval"):
                found["ends"] = model.estimator.predict_interval(model.pipeline[:-1].transform(rows))
            truth.append(y)
            answers.append({name: values[there] for name, values in found.items()})
            without += int((~there).sum())
    truth = np.concatenate(truth)
    answers = {name: np.concatenate([part[name] for part in answers]) for name in answers[0]}
    predicted = predicted_by(options.threshold, model.classes, answers["predicted"], answers.get("probabilities"))
    if len(truth) == 0:
        raise TableError(f"{name_of(options.data)} has no row with a label")
    if model.task == "regression":
        _report_values(options, model, truth, predicted, answers.get("ends"), without)
        return
    known = np.isin(truth, model.classes)
    if not known.any():
        raise TableError(
            f"none of the labels of {name_of(options.data)} is a class of the model "
            f"({', '.join(map(str, model.classes[:8]))}): is it the model of another data set?"
        )
    metrics = quality_of(model.classes, truth, answers | {"predicted": predicted})
    _report(options, model, metrics, truth, predicted, without, int((~known).sum()))


def labels_of(model, table, name, label=None):
    """The labels of a table in the type of the model's classes, and which rows have one."""
    if table.y is not None and (label is None or is_npy(label)):
        y = table.y
    else:
        label = model.label if label is None else label
        if label is None or not hasattr(table.X, "columns"):
            raise TableError(f"{name} has no labels")
        y = table.X[find_column(table.X.columns, label, name)].to_numpy()
    from svmosaic.table.preparation import read_labels  # here: it imports pandas

    y, there = read_labels(y, model.task)
    if model.classes is None or y.dtype.kind == model.classes.dtype.kind:
        return y, there
    if model.classes.dtype.kind == "U":  # a file may hold only such text as looks like numbers
        return y.astype(str), there
    raise TableError(
        f"the labels are text, such as {str(y[0])!r}, but the classes of the model are numbers: "
        f"{', '.join(map(str, model.classes[:8]))}"
    )


def _report_values(options, model, truth, predicted, ends, without):
    from svmosaic.explain.quality import regression_quality

    found = regression_quality(truth, predicted)
    facts = {"rows": len(truth), **{name: found[name] for name in ("r2", "mae", "rmse")}, "rows_without_label": without}
    lines = [f"R2 {found['r2']:.4f}, MAE {found['mae']:.5g}, RMSE {found['rmse']:.5g} on {len(truth)} rows"]
    if ends is not None:
        (low, high), (q_low, q_high) = ends.T, model.estimator.quantiles
        facts["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
        facts["width"] = float(np.mean(high - low))
        facts["pinball"] = [
            float(LOSSES["quantile"].paid(truth, end, quantile=q).mean()) for q, end in ((q_low, low), (q_high, high))
        ]
        lines.append(
            f"intervals from {q_low:g} to {q_high:g}: coverage {facts['coverage']:.2%}, mean width "
            f"{facts['width']:.5g}, pinball losses {facts['pinball'][0]:.5g} and {facts['pinball'][1]:.5g}"
        )
    if without:
        lines.append(f"{without} rows without a label were left out")
    say(options, facts, lines)


def _report(options, model, metrics, truth, predicted, without, unknown):
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    truth, predicted, names = truth.astype(str), predicted.astype(str), model.classes.astype(str)
    precision, recall, _, count = precision_recall_fscore_support(truth, predicted, labels=names, zero_division=0)
    facts = {
        "rows": len(truth), **{name: metrics.get(name) for name in TITLES},
        "rows_without_label": without, "rows_of_unknown_class": unknown,
        "classes": [
            {"class": name, "rows": count[c], "precision": precision[c], "recall": recall[c]}
            for c, name in enumerate(names)
        ],
        "confusion": confusion_matrix(truth, predicted, labels=names),
    }  # fmt: skip
    width = max(len("class"), *(len(name) for name in names)) + 2
    lines = [f"on {len(truth)} rows:"]
    for name, title in TITLES.items():
        if metrics.get(name) is not None:
            shown = f"{metrics[name]:.2%}" if "accuracy" in name else f"{metrics[name]:.4f}"
            lines.append(f"  {title:<20}{shown:>9}")
    if unknown:
        lines.append(f"{unknown} rows have a label that the model does not know, and count as wrong")
    if without:
        lines.append(f"{without} rows without a label were left out")
    lines.append(f"  {'class':<{width}}{'rows':>9}{'precision':>11}{'recall':>9}")
    lines += [
        f"  {n:<{width}}{k:>9}{p:>11.2%}{r:>9.2%}" for n, k, p, r in zip(names, count, precision, recall, strict=True)
    ]
    say(options, facts, lines)
