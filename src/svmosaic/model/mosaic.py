"""The one fitted form: a gate and a bank of linear tiles."""

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from svmosaic.losses import HINGE
from svmosaic.maps import IDENTITY, FeatureMap
from svmosaic.model.predictor import Predictor
from svmosaic.packing import pack_scorer
from svmosaic.rows import Rows

LINKS = ("identity", "vote", "posterior")


def linked(margins, link):
    """The link of each margin, as the core computes it in scoring."""
    if link == "identity":
        return margins
    in_favor, against = np.exp(-HINGE.value(margins)), np.exp(-HINGE.value(-margins))
    return (in_favor - against) / (1.0 if link == "vote" else in_favor + against)


def _n_bytes(part) -> int:
    """Size of the arrays of a gate, and of the gates it is made of."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if isinstance(part, tuple):
        return sum(_n_bytes(one) for one in part)
    return sum(_n_bytes(getattr(part, field.name)) for field in fields(part)) if is_dataclass(part) else 0


class FlatTiles(NamedTuple):
    """Tiles that are linear in the straight terms clip((x - center) * scale, -reach, reach) of the columns.

    Attributes
    ----------
    coef : ndarray of shape (n_flat, n_outputs, n_inputs)
    tiles : ndarray of int32, shape (n_flat,)
    terms : ndarray of shape (3, n_inputs)
        Center, scale and reach.
    """

    coef: np.ndarray
    tiles: np.ndarray
    terms: np.ndarray


@dataclass(frozen=True, eq=False)
class Mosaic:
    r"""A fitted mosaic of linear classifiers.

    .. math:: f_c(x) = \sum_k g_k(x) \, \text{link}(\langle w_{kc}, x \rangle + b_{kc})

    Attributes
    ----------
    gate : object with `n_tiles` and `code(X, n_jobs)`
        Assigns rows to tiles: tiles and weights, each of shape (n_samples, width). A gate with
        `core(dtype)` is evaluated inside the scoring loop of the core.
    coef : ndarray of shape (n_sloped, n_outputs, n_features)
        The weights of the tiles that have any.
    intercept : ndarray of shape (n_tiles, n_outputs)
    link : {"identity", "vote", "posterior"}
        Margins add up; or vote by exp(-hinge(s)) - exp(-hinge(-s)); or by that divided by the sum of the two
        exponentials, p(+) - p(-) of a tile, which makes the score p(+) - p(-) of the mixture.
    feature_map : FeatureMap or None
        What the tiles, and perhaps the gate, see instead of x: a scaling, a transformer, pieces.
    sloped : ndarray of int32, shape (n_sloped,), or None
        The tiles that have weights, increasing; the others are only a number. None: all of them.

    See Also
    --------
    svmosaic.gates.Gate : Assigns rows to tiles.
    svmosaic.maps.FeatureMap : Computes the input of the tiles.
    """

    gate: Any
    coef: np.ndarray
    intercept: np.ndarray
    link: str = "identity"
    feature_map: FeatureMap | None = None
    sloped: np.ndarray | None = None

    @property
    def n_tiles(self) -> int:
        return self.intercept.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.intercept.shape[1]

    @property
    def n_features(self) -> int | None:
        """Features of a row; None if a feature map of Python decides that."""
        if self.feature_map is None or self.features.portable:
            pieces = self.features.pieces
            return self.coef.shape[2] if pieces is None else pieces.n_inputs
        return None

    @property
    def sloped_tiles(self) -> np.ndarray:
        """The tiles that the entries of `coef` belong to."""
        return np.arange(self.n_tiles, dtype=np.int32) if self.sloped is None else self.sloped

    def over_tiles(self, values):
        """Expand an array with one entry per tile that has weights to all tiles: zero for the others."""
        if self.sloped is None:
            return values
        whole = np.zeros((self.n_tiles, *values.shape[1:]), dtype=values.dtype)
        whole[self.sloped] = values
        return whole

    @cached_property
    def place_of_tile(self) -> np.ndarray:
        """The entry of `coef` that belongs to each tile, or -1, of shape (n_tiles,)."""
        place = np.full(self.n_tiles, -1, dtype=np.int32)
        place[self.sloped_tiles] = np.arange(len(self.coef))
        return place

    def weights_of(self, tile):
        """The weights of tiles, of shape (..., n_outputs, n_features) for tiles of any shape."""
        if self.sloped is None:
            return self.coef[tile]
        place = self.place_of_tile[tile]
        weights = np.zeros((*place.shape, *self.coef.shape[1:]), dtype=self.coef.dtype)
        weights[place >= 0] = self.coef[place[place >= 0]]
        return weights

    @property
    def features(self) -> FeatureMap:
        """The feature map, or the identity."""
        return IDENTITY if self.feature_map is None else self.feature_map

    @property
    def n_bytes(self) -> int:
        """Size of the parameters; those of straight tiles next to curves without the zeros of the hats."""
        bent, flat = self.split_flat()
        return _n_bytes((bent.coef, self.intercept, bent.sloped, self.gate, () if flat is None else flat[:2]))

    def split_flat(self) -> "tuple[Mosaic, FlatTiles | None]":
        """Tiles with curves, and those of a mosaic with curves that are straight: what is packed and exported.

        Straight tiles need one number per column where the others need one per knot. In the first part they are only
        numbers: their intercepts.
        """
        pieces = self.features.pieces
        if pieces is None or self.link != "identity" or self.n_tiles == 1:
            return self, None
        flat = ~self.coef[..., pieces.n_inputs :].any(axis=(1, 2))
        if not flat.any():
            return self, None
        bent = replace(self, coef=self.coef[~flat], sloped=self.sloped_tiles[~flat])
        terms = np.array([pieces.center, pieces.scale, pieces.reach])
        return bent, FlatTiles(self.coef[flat, :, : pieces.n_inputs], self.sloped_tiles[flat], terms)

    def in_units(self, head) -> "Mosaic":
        """Return the same mosaic with scores in the units of a head, except for its `offset`, which no tile holds."""
        if (head.factor == 1.0).all():
            return self
        return replace(self, coef=head.slopes(self.coef), intercept=head.factor * self.intercept)

    def decision_function(self, X, n_jobs=None):
        """Return scores of shape (n_samples, n_outputs); X is a validated array or CSR matrix."""
        n_threads = effective_n_jobs(n_jobs)
        gate_rows, scored_rows = self.features.scored_rows(X)
        rows = Rows(scored_rows)
        out = np.empty((rows.n_rows, self.coef.shape[1]))
        if self._fused:
            self._scorer(rows.dtype).score(rows.core, out, n_threads)
        else:
            tile, weight = self.gate.code(gate_rows, n_jobs)
            self._scorer(rows.dtype).score_codes(rows.core, tile, weight, out, n_threads)
        return out

    def score_codes(self, X, tile, weight, n_jobs=None):
        """Return the scores of rows in the form that the tiles take, given their codes."""
        rows = Rows(getattr(X, "inputs", X))  # encoded rows are scored from what they were made of
        out = np.empty((rows.n_rows, self.coef.shape[1]))
        self._scorer(rows.dtype).score_codes(rows.core, tile, weight, out, effective_n_jobs(n_jobs))
        return out

    def compile(self, classes=None, calibration=None, *, head=None, feature_names=None):
        """Return a `Predictor` with these parameters, for single rows and small batches.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,), optional
            What `predict` answers with; the places of the outputs if not given.
        calibration : Calibration, optional
            For probabilities.
        head : Head, optional
            Turns scores into answers; `Classify(classes, calibration)` if not given.
        feature_names : sequence of str, optional
            By which the values of a row are found that is given as a dict.
        """
        return Predictor(self, classes, calibration, head=head, feature_names=feature_names)

    @property
    def _fused(self) -> bool:
        """Whether the core codes and scores in one loop: it knows the gate, which reads the rows of the scorer."""
        return self.features.fused and hasattr(self.gate, "core")

    def _scorer(self, dtype):
        """The scorer in the core for rows of this type, packed once."""
        packed = vars(self).setdefault("_packed", {})
        if dtype not in packed:
            gate = self.gate.core(dtype) if self._fused else None
            width = getattr(self.gate, "width", self.n_tiles)
            packed[dtype] = pack_scorer(gate, *self.packed_tiles(), dtype, width)
        return packed[dtype]

    def packed_tiles(self):
        """The arguments of the core's scorer: (coef, intercept, link, sloped, flat), and the curves or None.

        `flat` has the fields of `FlatTiles`, or is None.
        """
        bent, flat = self.split_flat()
        coef, curves = self.features.pack(bent.coef)
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        intercept = np.ascontiguousarray(self.intercept, dtype=np.float64)
        if flat is not None:
            flat = (np.ascontiguousarray(flat.coef, dtype=np.float64), flat.tiles, flat.terms)
        return (coef, intercept, self.link, bent.sloped, flat), curves

    def __getstate__(self):
        # What is packed in the core is rebuilt on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}
