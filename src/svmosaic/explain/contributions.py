"""Contributions of tiles and features to the scores of rows, which are exact, and the table of the regions."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic.gates import SeveralGates
from svmosaic.maps.protocol import dense
from svmosaic.model.heads import Head, home_tiles
from svmosaic.model.mosaic import linked
from svmosaic.rows import evenly


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, by name.

    Attributes
    ----------
    columns : dict of str to ndarray
        What `polars.DataFrame`, `pandas.DataFrame` and `pyarrow.table` take as they are.

    See Also
    --------
    Explanation : Has several tables.
    """

    columns: dict

    def to_frame(self):
        """Return a pandas DataFrame if pandas is installed, else the dict of columns."""
        try:
            import pandas
        except ImportError:
            return self.columns
        return pandas.DataFrame(self.columns)

    def __getitem__(self, name):
        return self.columns[name]

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __repr__(self):
        return f"Table of {len(self)} rows: {', '.join(self.columns)}"


@dataclass(frozen=True, eq=False)
class Explanation:
    r"""The decomposition of the scores of some rows.

    Output c of row i is :math:`\sum_a g_{ia} \, \text{link}(m_{iac})` with the margins
    :math:`m_{iac} = \sum_f w_f x_{if} + b` of the tiles used. With the identity link, the score is linear
    around the row, and `contributions` plus `intercept` sum to it. With the vote link, the `votes` sum to it, and each
    tile's `tile_contributions` and `tile_intercept` sum to its margin.

    Attributes
    ----------
    tile : ndarray of int, shape (n_rows, width)
    weight : ndarray of shape (n_rows, width)
        The weight that the gate gives each tile.
    value : ndarray of shape (n_rows, n_features)
        The given rows; if the model has a transformer as its feature map, the transformed features.
    tile_contributions : ndarray of shape (n_rows, width, n_outputs, n_features)
        :math:`w_f x_f` of each tile, x scaled if the model scales; with pieces, the value of the feature's curve.
    tile_intercept : ndarray of shape (n_rows, width, n_outputs)
    decision : ndarray of shape (n_rows, n_outputs)
        The result of `decision_function`; for a regressor, that of `predict`. Everything is then in units of y.
    link : {"identity", "vote", "posterior"}
    output_names : list of str
        The class that a positive score favors.
    feature_names : list of str
    offset : ndarray of shape (n_outputs,) or float
        A constant that is added to every score and belongs to no tile: for a regressor, the mean of y. It is part of
        the intercept.

    See Also
    --------
    Table : The type of its tables.
    svmosaic.explain.importances : Importances over many rows.
    """

    tile: np.ndarray
    weight: np.ndarray
    value: np.ndarray
    tile_contributions: np.ndarray
    tile_intercept: np.ndarray
    decision: np.ndarray
    link: str
    output_names: list
    feature_names: list
    offset: Any = 0.0

    @property
    def margins(self):
        """Margins of the tiles, of shape (n_rows, width, n_outputs)."""
        return self.tile_contributions.sum(axis=3) + self.tile_intercept

    @property
    def votes(self):
        """Parts of the score that the tiles add, weight included, of shape (n_rows, width, n_outputs)."""
        return self.weight[:, :, None] * linked(self.margins, self.link)

    @property
    def contributions(self):
        """Contributions of the features to the scores, of shape (n_rows, n_outputs, n_features); identity link only."""
        self._check_linear("contributions")
        return np.einsum("ia,iacf->icf", self.weight, self.tile_contributions)

    @property
    def intercept(self):
        """The part of the scores that belongs to no feature, of shape (n_rows, n_outputs); identity link only."""
        self._check_linear("intercept")
        return np.einsum("ia,iac->ic", self.weight, self.tile_intercept) + self.offset

    def grouped(self, names, source, value) -> "Explanation":
        """Return the explanation with the features of each column added up.

        Parameters
        ----------
        names : list of str
            Of the columns.
        source : ndarray of int, shape (n_features,)
            The index of the column that each feature was made of.
        value : ndarray of shape (n_rows, n_columns)
            The columns as they are to be shown.
        """
        parts = np.zeros((*self.tile_contributions.shape[:-1], len(names)))
        for f, column in enumerate(source):
            parts[..., column] += self.tile_contributions[..., f]
        return replace(self, tile_contributions=parts, feature_names=list(names), value=value)

    def _check_linear(self, name):
        if self.link != "identity":
            raise AttributeError(
                f"with the link {self.link!r} scores are not sums over features: use votes instead of {name} and, for "
                "the margin of each tile, tile_contributions"
            )

    def tiles(self) -> Table:
        """Return a table of one line per row, output and tile used: weight, margin, and what it added to the score."""
        i, a, c = np.nonzero((self.weight != 0)[:, :, None] & np.ones(len(self.output_names), dtype=bool))
        return Table(
            {
                "row": i,
                "output": np.asarray(self.output_names)[c],
                "tile": self.tile[i, a],
                "weight": self.weight[i, a],
                "margin": self.margins[i, a, c],
                "vote": self.votes[i, a, c],
            }
        )

    def features(self, top=None) -> Table:
        """Return a table of one line per row, output and feature (for the vote link also tile), strongest first.

        Parameters
        ----------
        top : int, optional
            Number of strongest features to list; the rest is summed as "(others)". The intercept has its own line,
            so that the lines of a row and output sum to its score (vote link: those of a tile to its margin).
        """
        if self.link == "identity":
            groups = [(i, c, -1) for i in range(len(self.value)) for c in range(len(self.output_names))]
            parts, rest = self.contributions, self.intercept
            table = [(parts[i, c], rest[i, c]) for i, c, _ in groups]
        else:
            spoke = (self.weight != 0)[:, :, None] & np.ones(len(self.output_names), dtype=bool)
            groups = [(i, c, a) for i, a, c in np.argwhere(spoke)]
            table = [(self.tile_contributions[i, a, c], self.tile_intercept[i, a, c]) for i, c, a in groups]
        lines: list[tuple] = []
        for (i, c, a), (parts, rest) in zip(groups, table, strict=True):
            order = np.argsort(-np.abs(parts), kind="stable")
            shown = order if top is None else order[:top]
            tile = -1 if a < 0 else self.tile[i, a]
            here = [(self.feature_names[f], self.value[i, f], parts[f]) for f in shown]
            if len(shown) < len(order):
                here.append(("(others)", np.nan, parts[order[len(shown) :]].sum()))
            here.append(("(intercept)", np.nan, rest))
            lines.extend((i, self.output_names[c], tile, *line) for line in here)
        names = ("row", "output", "tile", "feature", "value", "contribution")
        columns = {name: np.array(values) for name, values in zip(names, zip(*lines, strict=True), strict=True)}
        if self.value.dtype == object:  # numbers and text, each as it is
            columns["value"] = np.array([line[4] for line in lines], dtype=object)
        if self.link == "identity":
            del columns["tile"]
        return Table(columns)

    def to_shap(self):
        """Return the contributions as a `shap.Explanation`, for the plots of that package; needs the extra `shap`.

        Its values are the exact contributions, and its base values the intercepts of the rows: their sum is the score.
        They are not Shapley values, which are averages over possible values of other columns.

        Returns
        -------
        shap.Explanation
            Values of shape (n_rows, n_features), or (n_rows, n_features, n_outputs) if there are several outputs.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError("to_shap needs the package shap: pip install shap") from error
        values, base = self.contributions.transpose(0, 2, 1), self.intercept
        names = {"data": self.value, "feature_names": list(self.feature_names)}
        if len(self.output_names) == 1:
            return shap.Explanation(values[:, :, 0], base[:, 0], **names)
        return shap.Explanation(values, base, output_names=list(self.output_names), **names)

    def to_frame(self, top=None):
        """Return `features(top)` as a pandas DataFrame, or as a dict of columns without pandas."""
        return self.features(top).to_frame()


def explain(mosaic, X, head: Head, feature_names=None, n_jobs=None) -> Explanation:
    """The scores of rows taken apart: n_rows x width x n_outputs x n_features numbers."""
    gate_rows, _ = mosaic.features.rows(X)
    tile, weight = mosaic.gate.code(gate_rows, n_jobs)
    weight = np.ones(tile.shape) if weight is None else weight
    decision = head.values(mosaic.decision_function(X, n_jobs))
    mosaic = mosaic.in_units(head)
    return Explanation(
        tile=tile,
        weight=weight,
        value=mosaic.features.values(X),
        tile_contributions=mosaic.features.contributions(mosaic.weights_of(tile), X),
        tile_intercept=mosaic.intercept[tile],
        decision=decision,
        link=mosaic.link,
        output_names=head.output_names,
        feature_names=names_of(mosaic, feature_names),
        offset=head.offset,
    )


def names_of(mosaic, feature_names):
    """Names of the columns that contributions refer to."""
    return mosaic.features.names(feature_names, mosaic.coef.shape[2])


# Numbers that the importances of a fit are computed from, and rows: a sample is enough to rank features.
MOST_NUMBERS, MOST_ROWS = 100_000, 10_000


def count_regions(mosaic, head: Head, codes, target, found, rows=None) -> dict:
    """Sums over the rows of each tile, as `Head.region_counts` gives them; several gates count a row once each.

    With the rows as the tiles see them, also "spread", of shape (n_sloped, n_columns): the sums of the absolute
    deviations of the features' contributions from their means.
    """
    return count_homes(mosaic, head, homes_of(mosaic.gate, codes), target, found, rows)


def count_homes(mosaic, head: Head, homes, target, found, rows=None) -> dict:
    """Sums over the rows of each tile, from the tiles that they belong to, as `homes_of` returns them."""
    sums: dict = {}
    for home in homes:
        counts = head.region_counts(home, mosaic.n_tiles, target, found)
        if rows is not None:
            counts["spread"] = _spread(mosaic, home, rows)
        for name, values in counts.items():
            sums[name] = sums[name] + values if name in sums else values
    return sums


def homes_of(gate, codes) -> list:
    """The tile of each row, for each gate."""
    if not isinstance(gate, SeveralGates):
        return [home_tiles(codes)]
    tile, weight = codes
    return [home_tiles(part) for part in gate.split((tile, np.ones(tile.shape) if weight is None else weight))]


def _spread(mosaic, home, rows):
    """Sums of absolute deviations of contributions in tiles with weights; of many rows, from an even sample of them."""
    n_sloped, n_outputs, n_features = mosaic.coef.shape
    here = mosaic.place_of_tile[home]
    seen = np.flatnonzero(here >= 0) if mosaic.place_of_tile.min() < 0 else None
    here = here if seen is None else here[seen]
    n_rows, counts = len(here), np.bincount(here, minlength=n_sloped)
    if not mosaic.coef[counts > 0].any():  # tiles that are only a number
        return np.zeros((n_sloped, len(names_of(mosaic, None))), dtype=np.float32)
    n_sample = min(n_rows, MOST_ROWS, max(50, MOST_NUMBERS // (n_outputs * n_features)))
    sample = evenly(n_rows, n_sample)
    rows, at = rows[sample if seen is None else seen[sample]], here[sample]
    inputs = getattr(rows, "inputs", rows)
    pieces = mosaic.features.pieces
    total = 0.0
    for c in range(n_outputs):
        coef = mosaic.coef[:, c] if n_sloped == 1 else mosaic.coef[at, c]
        parts = coef * dense(inputs) if pieces is None else pieces.contributions(coef, inputs)
        total = total + deviations(parts, at, n_sloped)
    share = counts / np.maximum(np.bincount(at, minlength=n_sloped), 1)
    return (total * share[:, None] / n_outputs).astype(np.float32)


def deviations(parts, group, n_groups):
    """Sums of |parts - mean of the group| over the rows of each group, of shape (n_groups, n_columns)."""
    n_rows = len(group)
    if n_groups == 1:
        away = parts - parts.sum(axis=0) / max(n_rows, 1)
        return np.abs(away, out=away).sum(axis=0, keepdims=True)
    member = sparse.csr_array((np.ones(n_rows), (group, np.arange(n_rows))), shape=(n_groups, n_rows))
    mean = (member @ parts) / np.maximum(member.sum(axis=1), 1.0)[:, None]
    return member @ np.abs(parts - mean[group])


def regions_table(mosaic, counts, head: Head, feature_names=None, top=3, groups=None) -> Table:
    """One line per tile, from its counts and weights, with the `top` strongest features.

    With groups (names of columns, and the column that each feature is made of), columns are named instead.
    """
    names = names_of(mosaic, feature_names)
    known = head.region_columns(counts)
    if "spread" in counts:  # mean absolute deviations of the contributions in tiles with weights
        importance = counts["spread"] / np.maximum(known["rows"][mosaic.sloped_tiles], 1)[:, None]
    else:
        importance = np.linalg.norm(mosaic.features.strengths(mosaic.coef), axis=1)
    # Several outputs are compared as they are scored; one has units of its own.
    importance = importance * (head.factor[0] if head.n_outputs == 1 else 1.0)
    # With one output a weight has a sign, for or against the second class; a curve and a group of columns have none.
    signed = mosaic.coef.shape[1] == 1 and mosaic.features.pieces is None and groups is None
    shown = np.copysign(importance, mosaic.coef[:, 0]) if signed else importance
    if groups is not None:
        names, source = groups
        shown = importance = np.array([np.bincount(source, line, len(names)) for line in importance])
    strongest = [""] * mosaic.n_tiles  # of a tile that is only a number, none
    for k, line, values in zip(mosaic.sloped_tiles, importance, shown, strict=True):
        order = np.argsort(-line, kind="stable")[:top]
        strongest[k] = ", ".join(f"{names[f]} ({values[f]:{'+' if signed else ''}.3g})" for f in order if line[f] > 0)
    return Table(
        {
            "tile": np.arange(mosaic.n_tiles),
            **({"gate": mosaic.gate.gate_of_tile} if isinstance(mosaic.gate, SeveralGates) else {}),
            **known,
            "strongest features": np.array(strongest),
        }
    )
