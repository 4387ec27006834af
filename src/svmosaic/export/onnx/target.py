"""Models as ONNX nodes.

Gates are computed in double precision, which makes them exact compared with the engine's; tiles in the precision of the
rows, all of them by one matrix product. Standard operators only.
"""

from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from svmosaic.export.onnx.calibrations import CALIBRATIONS
from svmosaic.export.onnx.densities import FORMS
from svmosaic.export.onnx.gates import GATES
from svmosaic.export.onnx.graph import Graph
from svmosaic.export.onnx.preparation import write_affine, write_preparation, write_ramps
from svmosaic.export.preparation import Affine
from svmosaic.export.visitor import Target, Whole
from svmosaic.maps.ramps import Ramps
from svmosaic.model.mosaic import FlatTiles, linked


class OnnxExportError(ValueError):
    """The model cannot be written as ONNX.

    See Also
    --------
    svmosaic.export.onnx.to_onnx : Raises it.
    """


class OnnxTarget(Target):
    """The nodes of one model.

    Parameters
    ----------
    graph : Graph
        Where to write them.
    rows : str, optional
        The tensor of the rows, if it is there already: then inputs and preparation are not written.

    Attributes
    ----------
    inputs : list of ValueInfoProto
    contributions, intercept : str or None
        The tensors of an explanation.
    ends : tuple of str or None
        The tensors of the lower and the upper ends of intervals, each of shape (n, 1).
    """

    language = "ONNX"
    error = OnnxExportError
    gates = GATES
    calibrations = CALIBRATIONS
    forms = FORMS
    links = ("identity", "vote", "posterior")
    heads = ("Classify", "Regress")
    map_advice = "put it in a pipeline before the model, and convert that"

    def __init__(self, graph: Graph, rows: str | None = None):
        self.graph, self.rows = graph, rows
        self.two_classes = False
        self.column: np.ndarray | None = None
        self.flat: tuple[FlatTiles, str] | None = None
        self.inputs: list[Any] = []
        self.contributions: str | None = None
        self.intercept: str | None = None
        self.ends: tuple[str, str] | None = None

    def begin(self, whole: Whole):
        """The inputs and the preparation."""
        self.two_classes = whole.n_outputs == 1
        if self.rows is not None:
            return self.rows
        self.inputs, rows = write_preparation(self.graph, whole.preparation)
        return rows

    def scale(self, center, factor, rows):
        """The nodes of an affine step."""
        step = Affine.of(len(factor), center=0.0 if center is None else center, factor=factor)
        return write_affine(self.graph, rows, step)

    def bend(self, mosaic, rows):
        """Curves as sums of ramps, in which the tiles are linear; straight tiles apart, in their own rows."""
        bent, flat = mosaic.split_flat()
        ramps = Ramps.of_tiles(bent)
        self.column = ramps.column
        if flat is not None:
            self.flat = flat, write_ramps(self.graph, rows, Ramps.of_flat(flat))
        return replace(bent, coef=ramps.coef, feature_map=None), write_ramps(self.graph, rows, ramps)

    def score(self, mosaic, rows, codes):
        """sum_k weight_k link(<w_k, x> + b_k); no weight for a single tile."""
        graph, place = self.graph, mosaic.place_of_tile
        n_sloped = len(mosaic.coef)
        if codes is not None:
            codes = graph.cast(codes, graph.dtype)
        sums = []
        if n_sloped:
            weight = codes if n_sloped == mosaic.n_tiles else self._codes_of(codes, mosaic.sloped_tiles)
            intercept = mosaic.intercept[mosaic.sloped_tiles]
            sums.append(self._sum_of_tiles(rows, mosaic.coef, weight, intercept, mosaic.link))
        if self.flat is not None:
            flat, flat_rows = self.flat
            sums.append(self._sum_of_tiles(flat_rows, flat.coef, self._codes_of(codes, flat.tiles)))
        if n_sloped < mosaic.n_tiles:  # tiles that are only a number
            values = linked(mosaic.intercept[place < 0], mosaic.link)
            weight = self._codes_of(codes, np.flatnonzero(place < 0))
            sums.append(graph.add("MatMul", weight, graph.constant(values, graph.dtype)))
        return self._with_offset(reduce(partial(graph.add, "Add"), sums))

    def _sum_of_tiles(self, rows, coef, weight, intercept=None, link="identity"):
        """sum_k weight_k link(<w_k, x> + b_k) of tiles with weights."""
        graph = self.graph
        n_tiles, n_outputs, n_features = coef.shape
        score = graph.add("MatMul", rows, graph.constant(coef.reshape(-1, n_features).T, graph.dtype))
        if intercept is not None:
            score = graph.add("Add", score, graph.constant(intercept.reshape(1, -1), graph.dtype))
        if link != "identity":
            one = graph.constant(1.0, graph.dtype)
            against = graph.relu(graph.add("Sub", one, score))
            in_favor = graph.relu(graph.add("Add", one, score))
            votes = [graph.add("Exp", graph.add("Neg", hinge)) for hinge in (against, in_favor)]
            score = graph.add("Sub", *votes)
            if link == "posterior":
                score = graph.add("Div", score, graph.add("Add", *votes))
        if weight is None:
            return score
        each = graph.add("Reshape", score, graph.integers([-1, n_tiles, n_outputs]))
        weighed = graph.add("Mul", each, graph.unsqueeze(weight, 2))
        return graph.add("ReduceSum", weighed, graph.integers([1]), keepdims=0)

    def _codes_of(self, codes, tiles):
        """The weights of some tiles."""
        return self.graph.add("Gather", codes, self.graph.integers(tiles), axis=1)

    def _with_offset(self, scores):
        if not self.offset.any():
            return scores
        return self.graph.add("Add", scores, self.graph.constant(self.offset[None], self.graph.dtype))

    def explain(self, whole: Whole, mosaic, rows, codes):
        """Contributions of shape (n, n_outputs, n_columns) and intercepts of shape (n, n_outputs)."""
        graph, preparation = self.graph, whole.preparation
        if codes is None:
            coef = graph.constant(mosaic.coef[:1], graph.dtype)
            zeros = graph.add(
                "Mul", graph.add("ReduceSum", rows, graph.integers([1]), keepdims=1), graph.constant(0.0, graph.dtype)
            )
            self.intercept = graph.add("Add", zeros, graph.constant(mosaic.intercept[:1], graph.dtype))
            found = [(graph.add("Mul", coef, graph.unsqueeze(rows, 1)), self.column)]
        else:
            weight = graph.cast(codes, graph.dtype)
            self.intercept = graph.add("MatMul", weight, graph.constant(mosaic.intercept, graph.dtype))
            banks = [(mosaic.coef, mosaic.sloped, rows, self.column)]
            if self.flat is not None:
                flat, flat_rows = self.flat
                banks.append((flat.coef, flat.tiles, flat_rows, np.arange(flat.coef.shape[2])))
            found = [
                (self._products(coef, weight if tiles is None else self._codes_of(weight, tiles), seen), column)
                for coef, tiles, seen, column in [bank for bank in banks if len(bank[0])] or banks
            ]
        self.intercept = self._with_offset(self.intercept)
        if self.column is not None or not preparation.takes_columns_as_they_are:
            found = [(self._by_column(products, column, preparation), None) for products, column in found]
        self.contributions = reduce(partial(graph.add, "Add"), [products for products, _ in found])

    def _products(self, coef, weight, rows):
        """Weights of each row's own linear function, those of its tiles weighed, times its features."""
        graph = self.graph
        n_tiles, n_outputs, n_features = coef.shape
        own = graph.add("MatMul", weight, graph.constant(coef.reshape(n_tiles, n_outputs * n_features), graph.dtype))
        own = graph.add("Reshape", own, graph.integers([-1, n_outputs, n_features]))
        return graph.add("Mul", own, graph.unsqueeze(rows, 1))

    def _by_column(self, products, column, preparation):
        """Products of features added up for the columns that they are made of."""
        column = np.arange(len(preparation.source)) if column is None else column
        columns = np.zeros((len(column), preparation.n_columns))
        columns[np.arange(len(column)), preparation.source[column]] = 1.0
        return self.graph.add("MatMul", products, self.graph.constant(columns, self.graph.dtype))

    def interval(self, whole: Whole, rows, write_tiles, margin):
        """The nodes of the quantiles, sorted and moved apart; none inside the graph of others, which has no place."""
        if self.rows is not None:
            return
        graph = self.graph
        quantiles = graph.cast(write_tiles(OnnxTarget(graph, rows), rows), graph.dtype)
        wider = graph.constant(margin, graph.dtype)
        low = graph.add("Sub", graph.reduce("ReduceMin", quantiles, 1), wider)
        high = graph.add("Add", graph.reduce("ReduceMax", quantiles, 1), wider)
        middle = graph.add("Mul", graph.add("Add", low, high), graph.constant(0.5, graph.dtype))
        self.ends = graph.add("Min", low, middle), graph.add("Max", high, middle)

    def finish(self, whole: Whole, scores, probabilities):
        """Tensors of the label (None without classes), the probabilities (or None) and the scores."""
        graph = self.graph
        if whole.classes is None:
            return None, None, graph.cast(scores, graph.dtype)
        if probabilities is not None:
            best = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
            probabilities = graph.cast(probabilities, graph.dtype)
        scores = graph.cast(scores, graph.dtype)
        if probabilities is None and self.two_classes:
            positive = graph.add("Greater", scores, graph.constant(0.0, graph.dtype))
            best = graph.add("Squeeze", graph.cast(positive, np.int64), graph.integers([1]))
        elif probabilities is None:
            best = graph.add("ArgMax", scores, axis=1, keepdims=0)
        labels = labels_of(whole.classes)
        return graph.add("Gather", graph.constant(labels, labels.dtype), best, axis=0), probabilities, scores

    def scores_as_probabilities(self, scores):
        """What skl2onnx calls probabilities of a model without any: its scores, (-s, s) for two classes."""
        return self.graph.concat([self.graph.add("Neg", scores), scores]) if self.two_classes else scores


def labels_of(classes):
    """Classes as ONNX can hold them: int64, or text."""
    classes = np.asarray(classes)
    if classes.dtype.kind in "iub" or (classes.dtype.kind == "f" and (classes == np.floor(classes)).all()):
        return classes.astype(np.int64)
    return np.array([str(label) for label in classes], dtype=object)
