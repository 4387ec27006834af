"""The report of a model: one HTML page for any browser, with the model in it."""

import html
import json
import re
from importlib import resources
from typing import Any

import numpy as np

from svmosaic.atomic import write_text
from svmosaic.explain.curves import effect_curves
from svmosaic.explain.displays._pyplot import PALETTE
from svmosaic.explain.quality import measure
from svmosaic.explain.regions import find_regions
from svmosaic.explain.subject import Subject, some_rows, take
from svmosaic.export.javascript import JavaScriptExportError, to_javascript
from svmosaic.export.preparation import CATEGORY
from svmosaic.model.heads import Classify
from svmosaic.rows import evenly

# Rows that regions, importances and effects are computed from; those on the page, and their values.
USED_ROWS, MOST_ROWS, MOST_VALUES = 5000, 1000, 200_000
# Columns whose effects are drawn and the numbers of all curves, columns named per region, texts of a menu.
MOST_EFFECTS, MOST_NUMBERS, REGION_COLUMNS, MOST_TEXTS = 40, 60_000, 8, 100
# A table with more columns than the first is shown by as many as the second says, those that matter most.
MANY_COLUMNS, KEPT_COLUMNS = 1000, 200
# Characters of the exported model: beyond the first, weights have six digits; beyond the second, it is left out.
LONG_MODEL, LONGEST_MODEL = 1_000_000, 4_000_000
MORE_COLORS = ("#6A3D9A", "#8C510A", "#66C2A5", "#B2182B")  # so that twelve regions differ
NOTES = {
    None: "Measured on the {} rows of this page. It is not known whether the model was trained on them.",
    False: "Measured on {} rows that the model was not trained on.",
    True: "Measured on {} rows that the model was trained on: expect lower quality on new rows.",
}
HELD_OUT = (
    "Measured on {} rows that were held out, by models fitted to the others. The model of this page was then fitted to "
    "all rows."
)


def region_report(
    model,
    X,
    y=None,
    *,
    baseline=None,
    seen=None,
    held_out=None,
    feature_names=None,
    class_names=None,
    max_regions=12,
    title=None,
) -> str:
    """Return one HTML page about a fitted model, which works offline.

    It shows the quality of the model, the importance and the effect of each column (exact curves, region by region),
    the regions in words, and the explanation of single rows. Values of a row can be changed, and the page recomputes
    the prediction with the model that `to_javascript` writes. Columns are those of the table, in its units, if the
    steps before the estimator are imputers, scalers and one-hot encoders. Rows are numbered from 1, as in
    `svmosaic inspect --row`.

    Parameters
    ----------
    model : fitted estimator with `mosaic_`, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix
        Rows to show and to evaluate on, in the form that the model takes; preferably rows that it was not trained on.
    y : array-like of shape (n_samples,), optional
        Their classes or values; for a regressor, the name of a Series is shown.
    baseline : fitted model, optional
        A linear model for the same task, to be evaluated on the same rows.
    seen : bool, optional
        Whether the model was trained on these rows; the page states it.
    held_out : dict, optional
        Results on other rows, to be shown instead: "rows", "model" and optionally "baseline", the last two as
        returned by `svmosaic.explain.quality.measure`.
    feature_names : list of str, optional
        Names of the columns of X, if it has none.
    class_names : list of str, optional
        In the order of `classes_`.
    max_regions : int, default=12
        If there are more regions, those with the most similar predictions are merged, and the page states it.
    title : str, optional
        Title of the page.

    Returns
    -------
    str
        The page. All names in it are escaped.

    See Also
    --------
    write_report : Writes the page to a file.
    svmosaic.explain.describe_regions : The regions as a table.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain import region_report
    >>> X, y = make_xor(random_state=0)
    >>> page = region_report(ClusteredSVC(n_clusters=4, random_state=0).fit(X, y), X, y, title="xor")
    >>> "<title>xor</title>" in page
    True
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    n_rows = X.shape[0]
    if n_rows == 0:
        raise ValueError("X has no rows to show")
    used = some_rows(model, X, USED_ROWS)
    subject = Subject(model, take(X, used), feature_names)
    head = subject.head
    is_classifier = isinstance(head, Classify)
    truth: Any = None  # indices of the classes in y, or its values
    if y is not None:
        if len(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows, but y has {len(y)}")
        unknown = np.setdiff1d(np.asarray(y), head.classes) if is_classifier else ()
        if len(unknown):
            raise ValueError(f"y has classes that the model does not know: {unknown!r}")
        truth = np.asarray(y)
        truth = (np.searchsorted(head.classes, truth) if is_classifier else truth.astype(np.float64))[used]
    known = head.classes if is_classifier else ()
    classes = [str(c) for c in (known if class_names is None or not is_classifier else class_names)]
    if len(classes) != len(known):
        raise ValueError(f"class_names must have {len(known)} names, got {len(classes)}")
    # The quantiles that a regressor predicts side by side.
    quantile: Any = getattr(subject.estimator, "quantile", None)
    several = np.ndim(quantile) == 1 and len(quantile) == head.n_outputs > 1
    outputs = Classify(np.array(classes)).output_names if is_classifier else head.output_names
    regions, importance = find_regions(subject, max_regions), subject.importance
    n_columns = len(importance)
    kept = np.arange(n_columns)
    if n_columns > MANY_COLUMNS:
        kept = np.sort(np.argsort(-importance, kind="stable")[:KEPT_COLUMNS])
    shown = evenly(subject.n_rows, int(np.clip(MOST_VALUES // max(len(kept), 1), 100, MOST_ROWS)))
    found = head.found(subject.scores)
    quality = held_out
    if quality is not None:
        note = HELD_OUT.format(f"{quality['rows']:,}")
    elif y is None:
        note = "Not measured, because no labels were given."
    else:
        note, labels = NOTES[seen].format(f"{n_rows:,}"), np.asarray(y)
        quality = {"rows": n_rows, "model": measure(model, X, labels)}
        if baseline is not None:
            quality["baseline"] = measure(baseline, X, labels)
    data = {
        "model": type(subject.estimator).__name__,
        "task": "classes" if is_classifier else "numbers",
        "label": str(getattr(model, "label", None) or getattr(y, "name", None) or "y"),
        "n_rows": n_rows,
        "n_used": subject.n_rows,
        "n_training": getattr(model, "facts", {}).get("rows"),
        "n_tiles": subject.mosaic.n_tiles,
        "n_columns": n_columns,
        "classes": classes,
        "js_classes": np.asarray(known).tolist(),
        "outputs": [f"quantile {q:g}" for q in quantile] if several else outputs,
        "quantiles": [float(q) for q in quantile] if several else None,
        "palette": PALETTE,
        "region_colors": [*PALETTE, *MORE_COLORS],
        "truth": truth is not None,
        "votes": subject.mosaic.link != "identity",
        "contributes": subject.has_contributions,
        "bends": subject.mosaic.features.pieces is not None,
        "soft": subject.is_soft,
        "exact": regions.exact,
        "columns": [_column(subject, j) for j in kept],
        "importance": shortened(importance[kept]),
        "effects": _effects(subject, regions, kept),
        "regions": _regions(subject, regions, truth, found, kept),
        "regions_note": _regions_note(regions, subject),
        "region_of_tile": {int(tile): r for r, tiles in enumerate(regions.tiles) for tile in tiles},
        "rows": _rows(subject, regions, used, truth, found, kept, shown),
        "projection": _projection(subject, shown),
        "quality": quality,
        "quality_note": note,
    }
    if hasattr(model, "predict_interval"):
        data["rows"]["intervals"] = shortened(model.predict_interval(take(X, used[shown])), 6)
    script, data["no_model"] = inline_model(subject)
    if script is None:
        data["rows"]["accounts"] = _accounts(subject, shown, data)
    # JSON that is safe inside a script element, whatever its strings are.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    folder = resources.files("svmosaic.explain.report")
    page, code = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.html", "report.js"))
    title = f"Report of {data['model']}" if title is None else str(title)
    filled = {"TITLE": html.escape(title), "DATA": text, "MODEL": script or "const model = null;", "CODE": code}
    # In one pass: what is filled in may look like a mark.
    return re.sub(r"<!--(TITLE|DATA|MODEL|CODE)-->", lambda mark: filled[mark[1]], page)


def write_report(model, X, y=None, path="report.html", **options):
    """Write the report on a model to a file.

    Parameters
    ----------
    model, X, y
        As for `region_report`.
    path : str or path, default="report.html"
    **options
        Further arguments of `region_report`.

    See Also
    --------
    region_report : Returns the page as text.
    """
    write_text(path, region_report(model, X, y, **options))


def shortened(values, digits=4):
    """Numbers for JSON, rounded to so many digits; None if a number is missing."""
    flat = np.asarray(values, dtype=np.float64)
    if flat.ndim:
        return [shortened(v, digits) for v in flat]
    if not np.isfinite(flat):
        return None
    value = float(f"{float(flat):.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def _column(subject, j) -> dict:
    """Name of a column, and what its controls need: ends and step of numbers, texts of text."""
    column, values = subject.columns[j], subject.values(j)
    if column.is_text:
        missing = subject.missing_text(j)
        there, counts = np.unique(values.astype(str), return_counts=True)
        texts = [str(text) for text in there[np.argsort(-counts, kind="stable")[:MOST_TEXTS]]]
        own = (subject.preparation.features[f] for f in column.features)
        texts += sorted({text for form, text in own if form == CATEGORY} - set(texts))
        return {"name": column.name, "text": True, "texts": [None if text == missing else text for text in texts]}
    there = values[~np.isnan(values)]
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
    is_whole = len(there) and (there == np.floor(there)).all()
    middle = float(np.median(there)) if len(there) else 0.0
    return {
        "name": column.name, "text": False, "low": low, "high": high, "middle": middle,
        "step": 1 if is_whole else "any", "date": column.is_date,
    }  # fmt: skip


def _effects(subject, regions, kept) -> list:
    """Curves of the columns that matter most."""
    per_column = 20 * (len(regions) + 1) * subject.head.n_outputs
    n_shown = int(np.clip(MOST_NUMBERS // per_column, 3, MOST_EFFECTS))
    chosen = [int(j) for j in np.argsort(-subject.importance, kind="stable")[:n_shown]]
    found = effect_curves(subject, chosen, regions.region_of_row, len(regions))

    def deciles_of(values):
        there = values[~np.isnan(values)]
        return shortened(np.quantile(there, np.arange(1, 10) / 10), 6) if len(there) else []

    return [
        {
            "column": int(np.searchsorted(kept, j)),
            "points": effect.points if effect.is_text else shortened(effect.points, 6),
            "mean": shortened(effect.mean),
            "regions": shortened(effect.regions),
            "deciles": [] if effect.is_text else deciles_of(subject.values(j)),
        }
        for j, effect in zip(chosen, found, strict=True)
    ]


def _regions(subject, regions, truth, found, kept) -> list:
    """Rule, rows, classes or mean, quality and importances of each region."""
    head, importance = subject.head, subject.importances_in(regions.region_of_row, len(regions))[:, kept]
    known = found if truth is None else truth
    facts = []
    for r, rule in enumerate(regions.rules):
        here = regions.region_of_row == r
        order = np.argsort(-importance[r], kind="stable")[:REGION_COLUMNS]
        one = {
            "rule": subject.text_of(rule),
            "covers": rule.covers,
            "pure": rule.pure,
            "rows": int(here.sum()),
            "tiles": len(regions.tiles[r]),
            "importance": [[int(j), shortened(importance[r, j])] for j in order if importance[r, j] > 0],
        }
        if isinstance(head, Classify):
            one["counts"] = np.bincount(known[here], minlength=len(head.classes)).tolist()
            one["accuracy"] = None if truth is None else float(np.mean(found[here] == truth[here]))
        else:
            one["mean"] = float(np.mean(known[here]))
            if truth is not None:
                found = found[:, found.shape[1] // 2] if found.ndim > truth.ndim else found  # the middle quantile
            one["error"] = None if truth is None else float(np.mean(np.abs(found[here] - truth[here])))
        facts.append(one)
    return facts


def _regions_note(regions, subject):
    several = len(regions) > 1
    says = [
        f"Computed on {subject.n_rows:,} rows. Each row belongs to the region with the largest weight."
        if several
        else "The model has one region: all rows."
    ]
    if regions.n_gates > 1:
        says.append(
            f"The model has {regions.n_gates} gates or trees; the regions shown are those of the most important one."
        )
    if len(regions) < regions.n_tiles:
        says.append(f"Of {regions.n_tiles} regions, the most similar ones are merged, which leaves {len(regions)}.")
    if several and not regions.exact:
        says.append(
            "The conditions describe each region as well as possible. They cover a share of its rows; of all rows that "
            "satisfy them, the pure share belongs to the region."
        )
    return " ".join(says)


def _rows(subject, regions, used, truth, found, kept, shown) -> dict:
    """Values, truth, prediction and region of the rows on the page."""

    def listed(values):
        values = values[shown] if values.ndim == 1 else values[shown, values.shape[1] // 2]
        return values.tolist() if isinstance(subject.head, Classify) else shortened(values, 6)

    values: list[list] = []
    for j in kept:
        part, missing = subject.values(j)[shown], subject.missing_text(j)
        if subject.columns[j].is_text:
            values.append([None if text == missing else str(text) for text in part])
        else:
            values.append([None if v != v else int(v) if v == int(v) and abs(v) < 1e15 else float(v) for v in part])
    return {
        "numbers": (used[shown] + 1).tolist(),  # as people and the command line count
        "values": values,
        "region": regions.region_of_row[shown].tolist(),
        "predicted": listed(found),
        "truth": None if truth is None else listed(truth),
    }


def _projection(subject, shown):
    """Places of the rows on the page in the projection that a gate learned, if there is one."""
    projection = getattr(subject.mosaic.gate, "projection", None)
    if projection is None or len(projection) < 2 or projection.shape[1] != subject.X.shape[1]:
        return None
    gate_rows, _ = subject.mosaic.features.rows(subject.X)
    values = np.asarray(gate_rows[shown] @ projection[:2].T)
    return {"names": ["learned projection 1", "learned projection 2"], "values": shortened(values.T)}


def inline_model(subject):
    """The exported model as a script that defines `model`, or None and the reason why there is none."""
    n_columns = len(subject.columns)
    if n_columns > MANY_COLUMNS:
        return None, f"Values cannot be changed on this page: the model has too many columns ({n_columns:,})."
    exported = subject.model if subject.whole else subject.estimator
    try:
        text = to_javascript(exported)
        if len(text) > LONG_MODEL:
            text = to_javascript(exported, weight_digits=6)
    except JavaScriptExportError as error:
        return None, f"Values cannot be changed on this page: {error}."
    if len(text) > LONGEST_MODEL:
        return None, "Values cannot be changed on this page: the model is too large."
    body = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f"const model = (() => {{\n{body}\nreturn {{ explain, columns }};\n}})();", None


def _accounts(subject, shown, data) -> list:
    """For a page without a model: what it would compute of its rows, the ten strongest columns of each."""
    scale, center = subject.scale, np.atleast_1d(getattr(subject.head, "center", 0.0))
    probabilities = None
    if getattr(subject.head, "calibration", None) is not None:
        probabilities = subject.head.probabilities(subject.scores)
    values = center + scale * subject.scores
    answers = np.asarray(subject.head.answers(subject.scores))
    accounts = []
    for i, row in zip(shown, data["rows"]["numbers"], strict=True):
        parts = subject.contributions[i]
        lines = []
        for c in range(len(parts)):
            order = np.argsort(-np.abs(parts[c]), kind="stable")
            rest = float(parts[c][order[9:]].sum())
            lines.append([[subject.names[j], shortened(parts[c][j], 6)] for j in order[:9]] + [["(others)", rest]])
        accounts.append(
            {
                "row": row,
                "label": answers[i].tolist(),
                "scores": shortened(values[i], 6),
                "probabilities": None if probabilities is None else shortened(probabilities[i], 6),
                "contributions": lines if subject.mosaic.link == "identity" else None,
                "intercept": shortened(values[i] - parts.sum(axis=1), 6),
                "reason": "The tiles of this model vote, so its scores are not sums over columns.",
                "tiles": [],
                "region": data["region_of_tile"][int(subject.home[i])],
            }
        )
    return accounts
