"""The region report: one HTML file that shows what each tile is about, and why a row was classified so."""

import html
import json
from importlib import resources

import numpy as np
from scipy import sparse

from svmosaic.display._fitted import PALETTE, Fitted, Plane
from svmosaic.explain import count_regions, explain
from svmosaic.heads import Classify, head_of

# Rows on the map, each of which can be chosen.
MOST_ROWS = 1000
# Numbers for the weights of all tiles together, and the features shown of each: at least, at most.
MOST_WEIGHTS, FEWEST_SHOWN, MOST_SHOWN = 60_000, 3, 20
# Features and tiles that the account of a row names.
ROW_FEATURES, ROW_TILES = 10, 8
# Numbers that an explanation may take at a time.
BLOCK = 4_000_000


def region_report(model, X, y=None, *, feature_names=None, class_names=None, title=None) -> str:
    """One HTML page about the regions of a fitted model, which a browser opens without a network.

    It has a table of the regions (rows, class balance, accuracy, strongest features), a map of the rows, the weights of
    a chosen region and, for a chosen row, the tiles that spoke and the features that made its score. The map and the
    choice of rows hold 1000 rows at most, drawn evenly; counts and accuracies are of all rows. Of the features, the
    strongest are shown. Rows are numbered from 1, as by `svmosaic inspect --row`.

    Parameters
    ----------
    model : fitted classifier with `mosaic_`, or pipeline that ends in one
        Of a pipeline, the regions are shown as its last step sees them.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to show. For a pipeline, what enters the pipeline: the first steps are applied here.
    y : array-like of shape (n_samples,), optional
        Their classes. Without, class balance is of the predictions and there are no accuracies.
    feature_names : list of str, optional
        Of the features as the tiles see them. If not given, those of the pipeline or of the training data, or
        x0, x1, ...
    class_names : list of str, optional
        In the order of `classes_`.
    title : str, optional
        Heading of the page.

    Returns
    -------
    str
        The page. All names in it are escaped.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.display import region_report
    >>> X, y = make_xor(random_state=0)
    >>> page = region_report(ClusteredSVC(n_clusters=4, random_state=0).fit(X, y), X, y, title="xor")
    >>> "<title>xor</title>" in page
    True
    """
    fitted = Fitted.of(model, X, feature_names=feature_names, class_names=class_names)
    if fitted.X.shape[0] == 0:
        raise ValueError("X has no rows to show")
    title = f"Regions of {type(fitted.model).__name__}" if title is None else str(title)
    predicted = fitted.predicted()
    label = None if y is None else fitted.label(y)
    chosen = _evenly(fitted.X.shape[0], MOST_ROWS)
    data = {
        "model": type(fitted.model).__name__,
        "n_rows": fitted.X.shape[0],
        "n_features": fitted.mosaic.coef.shape[2],
        "classes": fitted.classes,
        "features": fitted.features,
        "outputs": Classify(np.array(fitted.classes)).output_names,
        "linear": fitted.mosaic.link == "identity",
        "truth": label is not None,
        "palette": PALETTE,
        "regions": _regions(fitted, predicted, label),
        "map": _map(fitted, chosen, predicted, label),
        "rows": _rows(fitted, chosen, predicted, label),
    }
    used = _used_features(data)
    place = {f: i for i, f in enumerate(used)}
    data["features"] = [fitted.features[f] for f in used]
    for part in [*data["regions"], *(s for row in data["rows"] for s in row["scores"])]:
        part["features"] = [place[f] for f in part["features"]]
    if label is not None:
        data["accuracy"] = float(np.mean(predicted == label))
    template = resources.files("svmosaic.display").joinpath("report.html").read_text(encoding="utf-8")
    # The title first: it cannot hold the other mark, whose brackets would be escaped.
    page = template.replace("<!--TITLE-->", html.escape(title))
    return page.replace("<!--DATA-->", _script(data))


def _script(data):
    """JSON that can stand in a script element whatever its strings are."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _evenly(n_rows, most):
    return np.arange(n_rows) if n_rows <= most else np.unique(np.linspace(0, n_rows - 1, most).round().astype(int))


def _short(values, digits=4):
    """Numbers as JSON holds them, with so many digits; None where there is none."""
    flat = np.asarray(values, dtype=np.float64)
    if flat.ndim:
        return [_short(v, digits) for v in flat]
    if not np.isfinite(flat):
        return None
    value = float(f"{float(flat):.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def _used_features(data):
    rows = (s for row in data["rows"] for s in row["scores"])
    return sorted({f for part in [*data["regions"], *rows] for f in part["features"]})


def _regions(fitted, predicted, label):
    """Counts and strongest weights of each tile."""
    mosaic = fitted.mosaic
    shown = predicted if label is None else label
    counts = count_regions(mosaic, head_of(fitted.model), fitted.codes(), shown, predicted)
    n_tiles, n_outputs, n_features = mosaic.coef.shape
    n_shown = min(n_features, int(np.clip(MOST_WEIGHTS // (n_tiles * n_outputs), FEWEST_SHOWN, MOST_SHOWN)))
    strength = np.linalg.norm(mosaic.coef, axis=1)
    regions = []
    for k in range(n_tiles):
        strongest = np.argsort(-strength[k], kind="stable")[:n_shown]
        rows = int(counts["classes"][k].sum())
        regions.append(
            {
                "rows": rows,
                "counts": counts["classes"][k].tolist(),
                "accuracy": None if label is None or rows == 0 else int(counts["correct"][k]) / rows,
                "features": strongest.tolist(),
                "weights": _short(mosaic.coef[k][:, strongest]),
                "intercept": _short(mosaic.intercept[k]),
            }
        )
    return regions


def _map(fitted, chosen, predicted, label):
    rows = fitted.tile_rows[chosen]
    # Two features are shown in their own units, more of them as the tiles see them.
    if fitted.X.shape[1] == 2 and len(fitted.features) == 2 and not sparse.issparse(fitted.X):
        rows = fitted.X[chosen]
    plane = Plane.of(rows, fitted.features)
    points = plane.project(rows)
    if rows.shape[1] == 1:
        points[:, 1] = fitted.mosaic.decision_function(fitted.X[chosen])[:, 0]
        names = (plane.names[0], f"score of {fitted.classes[min(1, len(fitted.classes) - 1)]}")
    else:
        names = plane.names
    return {"names": names, "x": _short(points[:, 0]), "y": _short(points[:, 1])}


def _rows(fitted, chosen, predicted, label):
    """For each chosen row: tiles that spoke, and what made the scores of its predicted and of its true class."""
    head = head_of(fitted.model)
    n_tiles, n_outputs, n_features = fitted.mosaic.coef.shape
    width = getattr(fitted.mosaic.gate, "width", n_tiles)
    step = max(1, BLOCK // (width * n_outputs * n_features))
    home = fitted.home()
    lines = []
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        told = explain(fitted.mosaic, fitted.X[part], head, fitted.features)
        margins, votes = told.margins, told.votes
        for i, row in enumerate(part):
            outputs = [head.output_of(predicted[row])]
            if n_outputs > 1 and label is not None and label[row] != predicted[row]:
                outputs.append(label[row])
            spoke = np.argsort(-told.weight[i], kind="stable")[:ROW_TILES]
            spoke = spoke[told.weight[i][spoke] > 0] if (told.weight[i] > 0).any() else spoke
            lines.append(
                {
                    "row": int(row) + 1,  # as people and the command line count
                    "region": int(home[row]),
                    "predicted": int(predicted[row]),
                    "label": None if label is None else int(label[row]),
                    "decision": _short(told.decision[i], 5),
                    "tiles": told.tile[i][spoke].tolist(),
                    "gate": _short(told.weight[i][spoke]),
                    "unsaid": int((told.weight[i] != 0).sum() - len(spoke)),
                    "scores": [_account(told, i, int(c), spoke, margins, votes) for c in outputs],
                }
            )
    return lines


def _account(told, i, c, spoke, margins, votes):
    """Features that made a score, or with the vote link the margin of the tile that said most."""
    if told.link == "identity":
        parts = np.einsum("a,af->f", told.weight[i], told.tile_contributions[i, :, c])
        rest, tile, total = told.weight[i] @ told.tile_intercept[i, :, c], None, told.decision[i, c]
    else:
        loudest = int(np.abs(votes[i, :, c]).argmax())
        parts, rest = told.tile_contributions[i, loudest, c], told.tile_intercept[i, loudest, c]
        tile, total = int(told.tile[i, loudest]), margins[i, loudest, c]
    strongest = np.argsort(-np.abs(parts), kind="stable")[:ROW_FEATURES]
    strongest = strongest[parts[strongest] != 0]
    return {
        "output": c,
        "margins": _short(margins[i, spoke, c]),
        "votes": _short(votes[i, spoke, c]),
        "others": _short(votes[i, :, c].sum() - votes[i, spoke, c].sum()),
        "tile": tile,
        "features": strongest.tolist(),
        "values": _short(told.value[i, strongest]),
        "parts": _short(parts[strongest], 5),
        "rest": _short(parts.sum() - parts[strongest].sum(), 5),
        "intercept": _short(rest, 5),
        "total": _short(total, 5),
    }
