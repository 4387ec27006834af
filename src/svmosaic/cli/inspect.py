"""`svmosaic inspect`: the regions of a model, and why a row is classified so."""

import numpy as np

from svmosaic.atomic import write_text
from svmosaic.cli._io import add_output_options, add_table_options, check_file, read_options, say
from svmosaic.heads import head_of
from svmosaic.tabular.formats import TableError, read_chunks


def add_arguments(parser):
    """The model, and what to show of it."""
    parser.add_argument("model", metavar="FILE", help="a model written by `svmosaic train`")
    parser.add_argument("--html", metavar="REPORT", help="write the report of the regions, one file for any browser")
    parser.add_argument(
        "--row", type=int, metavar="N", help="explain row N (from 1) of the stored sample, or of --data"
    )
    parser.add_argument("--data", help="a table to take the row from")
    parser.add_argument(
        "--top", type=int, default=8, help="features to name for a row, and regions to list (8; 0: all)"
    )
    add_table_options(parser)
    add_output_options(parser)


def run(options):
    """Print what is asked for."""
    if options.html is not None:
        check_file(options.html, [options.model, options.data])
    if options.data is not None and options.row is None:
        raise ValueError("--data needs --row, which says which of its rows to explain")
    from svmosaic.tabular.trained_model import open_model

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
    shown = facts["classes"][:20]
    lines.append(f"classes: {', '.join(shown)}{', ...' if len(shown) < len(facts['classes']) else ''}")
    if facts["held_out"]:
        held = facts["held_out"]
        lines.append(
            f"accuracy on {held['rows']} rows held out: {held['accuracy']:.2%}, a linear SVM {held['linear_svm']:.2%}"
        )
    if getattr(model.estimator, "mosaic_", None) is None:
        return facts, [*lines, "this model has no regions"]
    table = model.regions()
    facts["regions"] = [
        dict(zip(table.columns, line, strict=True)) for line in zip(*table.columns.values(), strict=True)
    ]
    lines += ["", *_regions(table, options.top)]
    return facts, lines


def _regions(table, top):
    """The largest regions, as lines."""
    order = np.argsort(-table["rows"], kind="stable")
    order = order[: top or None]
    yield f"  {'tile':>4}{'rows':>8}  {'majority':<14}{'accuracy':>9}  strongest features"
    for k in order:
        accuracy = "" if np.isnan(table["accuracy"][k]) else f"{table['accuracy'][k]:.2%}"
        majority = str(table["majority"][k])[:13] if table["rows"][k] else ""
        yield f"  {k:>4}{table['rows'][k]:>8}  {majority:<14}{accuracy:>9}  {table['strongest features'][k]}"
    if len(order) < len(table):
        yield f"  and {len(table) - len(order)} more (--top 0 lists all)"


def _row(model, options):
    row, label = _find_row(model, options)
    name = options.data or "the sample"
    account = model.explain(row, name)
    predicted = model.predict(row, name)[0]
    facts = {"row": options.row, "prediction": predicted, "label": label}
    lines = [f"row {options.row} of {name}: {predicted}" + ("" if label is None else f" (labelled {label})")]
    if getattr(model.estimator, "calibration_", None) is not None:
        share = model.predict_proba(row, name)[0]
        facts["probabilities"] = dict(zip(map(str, model.classes), share, strict=True))
        best = np.argsort(-share, kind="stable")[:5]
        lines.append("probabilities: " + ", ".join(f"{model.classes[c]} {share[c]:.1%}" for c in best))
    # For two classes there is one score, positive for the second; otherwise the score of the class that won.
    output = head_of(model.estimator).output_of(int(np.searchsorted(model.classes, predicted)))
    facts["score_of"] = account.output_names[output]
    facts["score"] = account.decision[0, output]
    order = np.argsort(-np.abs(account.votes[0, :, output]), kind="stable")
    facts["tiles"] = [
        {"tile": account.tile[0, a], "weight": account.weight[0, a], "vote": account.votes[0, a, output]}
        for a in order
        if account.weight[0, a] != 0
    ]
    lines.append(f"score of {facts['score_of']}: {facts['score']:+.4g}, the sum of the tiles that spoke:")
    lines += [f"  tile {t['tile']:>4}: weight {t['weight']:.3f}, adds {t['vote']:+.4g}" for t in facts["tiles"]]
    parts, rest, heading = _parts(account, order[0], output)
    strongest = np.argsort(-np.abs(parts), kind="stable")[: options.top or None]
    facts["features"] = [
        {"feature": account.feature_names[f], "value": account.value[0, f], "contribution": parts[f]} for f in strongest
    ]
    facts["other_features"] = parts.sum() - parts[strongest].sum()
    facts["intercept"] = rest
    lines.append(heading)
    lines += [f"  {p['feature']} = {p['value']:.4g}: {p['contribution']:+.4g}" for p in facts["features"]]
    lines.append(f"  all others: {facts['other_features']:+.4g}; intercept: {rest:+.4g}")
    return facts, lines


def _parts(account, first, output):
    """What each feature adds, the intercept, and a heading."""
    if account.link == "identity":
        return account.contributions[0, output], account.intercept[0, output], "of the score, by feature:"
    heading = f"of the margin of tile {account.tile[0, first]}, by feature:"
    return account.tile_contributions[0, first, output], account.tile_intercept[0, first, output], heading


def _find_row(model, options):
    """The row asked for, as a table, and its label if there is one."""
    from scipy import sparse

    n = options.row
    if options.data is None:
        X, y = model.sample_rows()
        if not 1 <= n <= len(y):
            raise TableError(f"the sample has rows 1 to {len(y)}, so none {n}")
        return (X.iloc[[n - 1]] if hasattr(X, "iloc") else X[[n - 1]]), y[n - 1]
    before = 0
    for table in read_chunks(
        options.data, text=model.text_columns, kept=model.text_labels, **read_options(options, model.dialect)
    ):
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
    from svmosaic.display import region_report

    X, y = model.sample_rows()
    title = f"{model.facts['model']} of {model.facts['data']}"
    page = region_report(
        model.estimator, model.prepared(X), y, feature_names=model.prepared_names,
        class_names=[str(c) for c in model.classes], title=title,
    )  # fmt: skip
    write_text(options.html, page)
