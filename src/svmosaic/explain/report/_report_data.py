"""The contents of the report (columns, effects, regions and rows) in the form of JSON."""

import numpy as np

from svmosaic.explain.curves import effect_curves
from svmosaic.model.heads import Classify
from svmosaic.rows import evenly

# Rows on the page and their values, columns whose effects are drawn and the numbers of all curves, columns named per
# region.
MOST_ROWS, MOST_VALUES, MOST_EFFECTS, MOST_NUMBERS, REGION_COLUMNS = 1000, 200_000, 40, 60_000, 8
MOST_TEXTS = 100
# A table with more columns than the first is shown by as many as the second says, those that matter most.
MANY_COLUMNS, KEPT_COLUMNS = 1000, 200


def shortened(values, digits=4):
    """Numbers for JSON, rounded to so many digits; None if a number is missing."""
    flat = np.asarray(values, dtype=np.float64)
    if flat.ndim:
        return [shortened(v, digits) for v in flat]
    if not np.isfinite(flat):
        return None
    value = float(f"{float(flat):.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def kept_columns(importance):
    """Indices of the columns on the page: all, unless there are very many."""
    if len(importance) <= MANY_COLUMNS:
        return np.arange(len(importance))
    return np.sort(np.argsort(-importance, kind="stable")[:KEPT_COLUMNS])


def shown_rows(subject):
    """Indices of the rows on the page."""
    n_columns = len(subject.columns)
    n_columns = n_columns if n_columns <= MANY_COLUMNS else KEPT_COLUMNS
    most = int(np.clip(MOST_VALUES // max(n_columns, 1), 100, MOST_ROWS))
    return evenly(subject.n_rows, most)


def plain_values(subject, j, rows):
    """Values of a column: numbers or texts, None if they are missing."""
    values = subject.values(j)[rows]
    if subject.columns[j].is_text:
        missing = subject.missing_text(j)
        return [None if text == missing else str(text) for text in values]
    return [None if v != v else int(v) if v == int(v) and abs(v) < 1e15 else float(v) for v in values]


def column_facts(subject, kept) -> list:
    """Names, and what controls need: the ends and the step of numbers, the texts of text."""
    return [_column(subject, j) for j in kept]


def _column(subject, j):
    column, values = subject.columns[j], subject.values(j)
    if column.is_text:
        missing = subject.missing_text(j)
        there, counts = np.unique(values.astype(str), return_counts=True)
        texts = [str(text) for text in there[np.argsort(-counts, kind="stable")[:MOST_TEXTS]]]
        texts += sorted(set(map(str, subject.categories(j))) - set(texts))
        return {"name": column.name, "text": True, "texts": [None if text == missing else text for text in texts]}
    there = values[~np.isnan(values)]
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
    is_whole = len(there) and (there == np.floor(there)).all()
    middle = float(np.median(there)) if len(there) else 0.0
    return {
        "name": column.name, "text": False, "low": low, "high": high, "middle": middle,
        "step": 1 if is_whole else "any", "date": column.is_date,
    }  # fmt: skip


def effect_facts(subject, regions, importance, kept) -> list:
    """Curves of the columns that matter most."""
    per_column = 20 * (len(regions) + 1) * subject.head.n_outputs
    n_shown = int(np.clip(MOST_NUMBERS // per_column, 3, MOST_EFFECTS))
    chosen = [int(j) for j in np.argsort(-importance, kind="stable")[:n_shown]]
    found = effect_curves(subject, chosen, regions.region_of_row, len(regions))
    return [
        {
            "column": int(np.searchsorted(kept, j)),
            "points": effect.points if effect.is_text else shortened(effect.points, 6),
            "mean": shortened(effect.mean),
            "regions": shortened(effect.regions),
            "deciles": [] if effect.is_text else shortened(_deciles(subject.values(j)), 6),
        }
        for j, effect in zip(chosen, found, strict=True)
    ]


def _deciles(values):
    there = values[~np.isnan(values)]
    return np.quantile(there, np.arange(1, 10) / 10) if len(there) else np.zeros(0)


def region_facts(subject, regions, truth, found, kept) -> list:
    """Rule, rows, classes or mean, quality and importances of each region."""
    head, importance = subject.head, regions.importances(subject)[:, kept]
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
            "importance": [[int(j), shortened(importance[r, j])] for j in order],
        }
        if isinstance(head, Classify):
            one["counts"] = np.bincount(known[here], minlength=len(head.classes)).tolist()
            one["accuracy"] = None if truth is None else float(np.mean(found[here] == truth[here]))
        else:
            one["mean"] = float(np.mean(known[here]))
            one["error"] = None if truth is None else float(np.mean(np.abs(_middle(found, truth)[here] - truth[here])))
        facts.append(one)
    return facts


def _middle(found, truth):
    """Of several predictions for one target, the middle one."""
    return found[:, found.shape[1] // 2] if found.ndim > truth.ndim else found


def row_facts(subject, regions, used, truth, found, kept) -> dict:
    """Values, truth, prediction and region of the rows on the page."""
    rows = shown_rows(subject)
    is_classifier = isinstance(subject.head, Classify)

    def listed(values):
        values = values[rows] if values.ndim == 1 else values[rows, values.shape[1] // 2]
        return values.tolist() if is_classifier else shortened(values, 6)

    return {
        "numbers": (used[rows] + 1).tolist(),  # as people and the command line count
        "values": [plain_values(subject, j, rows) for j in kept],
        "region": regions.region_of_row[rows].tolist(),
        "predicted": listed(found),
        "truth": None if truth is None else listed(truth),
    }
