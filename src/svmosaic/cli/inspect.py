"""`svmosaic inspect`: the regions of a model, and why a row is classified so."""

import numpy as np

from svmosaic.cli._io import add_output_options, add_table_options, check_file, say
from svmosaic.cli.predict import chunks_of
from svmosaic.cli.score import labels_of
from svmosaic.model.heads import head_of
from svmosaic.table.formats import TableError, name_of

# How measures of regions are printed, if they are no numbers with four digits.
FORMATS = {"majority": "", "accuracy": ".2%"}


def add_arguments(parser):
    """The model, and what to show of it."""
    parser.add_argument("model", metavar="FILE", help="a model written by `svmosaic train`")
    parser.add_argument("--html", metavar="REPORT", help="write the report on the model as one HTML file")
    parser.add_argument(
        "--test", metavar="TABLE", help="labeled rows that the model was not trained on, for the report"
    )
    parser.add_argument(
        "--row", type=int, metavar="N", help="explain row N (counted from 1) of the stored sample, or of --data"
    )
    parser.add_argument("--data", help="table that contains the row")
    parser.add_argument(
        "--top", type=int, default=8, help="number of columns to show, for a row and overall (default: 8; 0: all)"
    )
    parser.add_argument(
        "--regions", type=int, default=12, metavar="N",
        help="merge similar regions until N are left (default: 12; 0: do not merge)",
    )  # fmt: skip
    add_table_options(parser)
    add_output_options(parser)


def run(options):
    """Print the requested description."""
    if options.html is not None:
        check_file(options.html, [options.model, options.data, options.test])
    if options.test is not None and options.html is None:
        raise ValueError("--test needs --html, the report that shows its rows")
    if options.data is not None and options.row is None:
        raise ValueError("--data needs --row, which says which of its rows to explain")
    from svmosaic.table.trained_model import open_model

    model = open_model(options.model)
    if options.row is not None:
        facts, lines = _row(model, options)
    else:
        facts, lines = _overview(model, options)
    if options.html is not None:
        _report(model, options)
        facts["html"] = options.html
        lines = [*lines, f"report written to {options.html}"]
    say(options, facts, lines)


def _overview(model, options):

    facts = {key: value for key, value in model.facts.items() if key != "leaderboard"}
    facts["columns"] = [
        {"name": str(name), "kind": kind} for name, kind in zip(model.feature_names, model.kinds, strict=True)
    ]
    facts["prepared_features"] = len(model.prepared_names)
    facts["probabilities"] = getattr(model.estimator, "calibration_", None) is not None
    lines = [f"{facts['model']}, trained on {facts['rows']} rows of {facts['data']} by svmosaic {facts['svmosaic']}"]
    text = model.kinds.count("text")
    wide = f" (prepared: {facts['prepared_features']})" if text else ""
    lines.append(f"columns: {len(model.kinds)}, {text} of them text{wide}; label {facts['label']!r}")
    if model.task == "regression":
        lines.append("it predicts values")
    else:
        shown = facts["classes"][:20]
        lines.append(f"classes: {', '.join(shown)}{', ...' if len(shown) < len(facts['classes']) else ''}")
    held = facts["held_out"]
    if held and model.task == "regression":
        linear = held["quality"]["baseline"]
        lines.append(
            f"on {held['rows']} rows held out: R2 {held['r2']:.4f}, MAE {held['mae']:.5g}, RMSE {held['rmse']:.5g}; "
            f"a linear SVM R2 {linear['r2']:.4f}, MAE {linear['mae']:.5g}, RMSE {linear['rmse']:.5g}"
        )
    elif held:
        lines.append(
            f"accuracy on {held['rows']} rows held out: {held['accuracy']:.2%}, a linear SVM {held['linear_svm']:.2%}"
        )
    if getattr(model.estimator, "mosaic_", None) is None:
        return facts, [*lines, "this model has no regions"]
    table = model.regions()
    facts["regions"] = [
        dict(zip(table.columns, line, strict=True)) for line in zip(*table.columns.values(), strict=True)
    ]
    words = model.describe_regions(options.regions or None)
    facts["regions_in_words"] = [
        dict(zip(words.columns, line, strict=True)) for line in zip(*words.columns.values(), strict=True)
    ]
    # Columns by how much they contribute, or, if tiles are only numbers, by how much they change the scores.
    from svmosaic.explain.subject import sampled

    subject = sampled(model, model.sample_rows()[0])
    order = np.argsort(-subject.importance, kind="stable")
    facts["importances"] = {subject.names[j]: subject.importance[j] for j in order}
    shown = list(facts["importances"].items())[: options.top or None]
    measure = "contribution of columns" if subject.has_contributions else "change of the score if a column is shuffled"
    lines += ["", f"mean absolute {measure}: {', '.join(f'{name} {value:.3g}' for name, value in shown)}"]
    n_regions = int((table["rows"] > 0).sum())
    merged = any("," in tiles for tiles in words["tiles"])
    how = f"; the most similar ones are merged, which leaves {len(words)} (--regions 0 lists all)" if merged else ""
    lines += ["", f"{n_regions} {'region' if n_regions == 1 else 'regions'} with rows{how}"]
    measures = [name for name in ("majority", "accuracy", "mean", "mean absolute error") if name in words.columns]
    for k in range(len(words)):
        known = ", ".join(f"{name} {words[name][k]:{FORMATS.get(name, '.4g')}}" for name in measures)
        found = f"(covers {words['covers'][k]:.0%}, {words['pure'][k]:.0%} pure)"
        tiles, strongest = words["tiles"][k], words["strongest features"][k]
        strongest = f"strongest features {strongest}; " if strongest else ""  # none if a tile is only a number
        lines.append(f"  {words['rows'][k]:>7} rows: {words['rule'][k]} {found}")
        lines.append(f"          {known}; {strongest}{'tiles' if ',' in tiles else 'tile'} {tiles}")
    return facts, lines


def _row(model, options):
    from svmosaic.explain.subject import Subject

    row, label = _find_row(model, options)
    name = options.data or "the sample"
    account = model.explain(row, name)
    predicted = model.predict(row, name)[0]
    facts = {"row": options.row, "prediction": predicted, "label": label}
    lines = [f"row {options.row} of {name}: {predicted}" + ("" if label is None else f" (labeled {label})")]
    if getattr(model.estimator, "calibration_", None) is not None:
        share = model.predict_proba(row, name)[0]
        facts["probabilities"] = dict(zip(map(str, model.classes), share, strict=True))
        best = np.argsort(-share, kind="stable")[:5]
        lines.append("probabilities: " + ", ".join(f"{model.classes[c]} {share[c]:.1%}" for c in best))
    # For two classes there is one score, positive for the second; otherwise the score of the class that won.
    head = head_of(model.estimator)
    output = 0 if model.classes is None else head.output_of(int(np.searchsorted(model.classes, predicted)))
    facts["score_of"] = account.output_names[output]
    facts["score"] = account.decision[0, output]
    order = np.argsort(-np.abs(account.votes[0, :, output]), kind="stable")
    facts["tiles"] = [
        {"tile": account.tile[0, a], "weight": account.weight[0, a], "vote": account.votes[0, a, output]}
        for a in order
        if account.weight[0, a] != 0
    ]
    lines.append(f"score of {facts['score_of']}: {facts['score']:+.4g}, the sum over the tiles that answered:")
    lines += [f"  tile {t['tile']:>4}: weight {t['weight']:.3f}, adds {t['vote']:+.4g}" for t in facts["tiles"]]
    subject = Subject(model, row)
    names, first = subject.names, order[0]
    if account.link == "identity":
        parts, rest = account.contributions[0, output], account.intercept[0, output]
        lines.append("of the score, by column:")
    else:
        parts, rest = account.tile_contributions[0, first, output], account.tile_intercept[0, first, output]
        lines.append(f"of the margin of tile {account.tile[0, first]}, by column:")
    strongest = np.argsort(-np.abs(parts), kind="stable")[: options.top or None]
    facts["features"] = [
        {"feature": names[j], "value": subject.values(j)[0], "contribution": parts[j]} for j in strongest
    ]
    facts["other_features"] = parts.sum() - parts[strongest].sum()
    facts["intercept"] = rest
    for part in facts["features"]:
        value = part["value"] if isinstance(part["value"], str) else f"{part['value']:.6g}"
        lines.append(f"  {part['feature']} = {value}: {part['contribution']:+.4g}")
    lines.append(f"  all others: {facts['other_features']:+.4g}; intercept: {rest:+.4g}")
    return facts, lines


def _find_row(model, options):
    """The requested row, as a table, and its label if there is one."""
    from scipy import sparse

    n = options.row
    if options.data is None:
        X, y = model.sample_rows()
        if not 1 <= n <= len(y):
            raise TableError(f"the sample has rows 1 to {len(y)}, so none {n}")
        return (X.iloc[[n - 1]] if hasattr(X, "iloc") else X[[n - 1]]), y[n - 1]
    before = 0
    for table in chunks_of(model, options.data, options):
        if n <= before + len(table) and n >= 1:
            X, y = table.X, table.y
            if hasattr(X, "iloc"):
                row = X.iloc[[n - 1 - before]]
                return row, row[model.label].iloc[0] if model.label in X.columns else None
            row = X[[n - 1 - before]]
            row = sparse.csr_array(row) if sparse.issparse(row) else row
            return row, None if y is None else y[n - 1 - before]
        before += len(table)
    raise TableError(f"{options.data} has rows 1 to {before}, so none {n}")


def _report(model, options):
    """Quality of the rows of --test, or what `train` found on the rows that it held out."""
    from svmosaic.explain import write_report
    from svmosaic.explain.subject import take

    held = None
    if options.test is None:
        (X, y), seen = model.sample_rows(), True
        known = (model.facts["held_out"] or {}).get("quality")
        held = None if known is None else {"rows": model.facts["held_out"]["rows"], **known}
    else:
        # The rows that have a label that the model knows.
        table, seen = next(chunks_of(model, options.test, options, None)), False
        y, there = labels_of(model, table, name_of(options.test))
        known = np.ones(len(y), dtype=bool) if model.classes is None else np.isin(y, model.classes)
        if not known.any():
            raise TableError(f"none of the labels of {options.test} is a class of the model")
        X, y = take(table.X, np.flatnonzero(there)[known]), y[known]
        X = X.reset_index(drop=True) if hasattr(X, "iloc") else X
    title = f"{model.facts['model']} of {model.facts['data']}"
    write_report(model, X, y, options.html, seen=seen, held_out=held, title=title)
