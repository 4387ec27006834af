"""The nodes of a described model.

Gates are computed in double precision, which makes them exact compared with the engine's; tiles in the precision of the
rows, all of them by one matrix product. Standard operators only.
"""

from functools import partial, reduce

import numpy as np

from svmosaic.export.description import Target
from svmosaic.export.onnx.calibrations import CALIBRATIONS, write_calibration
from svmosaic.export.onnx.densities import write_densities
from svmosaic.export.onnx.gates import GATES, write_gate
from svmosaic.export.onnx.preparation import write_affine, write_ramps
from svmosaic.maps.ramps import Ramps
from svmosaic.model.mosaic import linked


class OnnxExportError(ValueError):
    """The model cannot be written as ONNX.

    See Also
    --------
    svmosaic.export.onnx.to_onnx : Raises it.
    """


ONNX = Target(
    "ONNX",
    OnnxExportError,
    gates=GATES,
    calibrations=CALIBRATIONS,
    forms=("Gaussians", "Fusion"),
    links=("identity", "vote", "posterior"),
    heads=("Classify", "Regress"),
    curves=True,
    intervals=True,
    map_advice="put it in a pipeline before the model, and convert that",
)


def write_model(graph, described, rows, *, inside=False, explain=False) -> dict:
    """The outputs of a model, by name: nodes behind its preparation, whose features are the tensor `rows`.

    Inside the graph of others, label and probabilities (scores, if there are none) are all that they have a place for.
    """
    found = {}
    if described["mosaic"] is None:
        scores = write_densities(graph, described["form"], rows)
    else:
        tiles = Tiles(graph, described["mosaic"], rows)
        scores = tiles.scores()
    values, two = graph.cast(scores, graph.dtype), len(described["outputs"]) == 1
    if described["classes"] is None:
        found["variable"] = values
        if described["interval"] is not None and not inside:
            quantiles = graph.cast(Tiles(graph, described["interval"], rows).scores(), graph.dtype)
            wider = graph.constant(described["interval"]["margin"], graph.dtype)
            low = graph.add("Sub", graph.reduce("ReduceMin", quantiles, 1), wider)
            high = graph.add("Add", graph.reduce("ReduceMax", quantiles, 1), wider)
            middle = graph.add("Mul", graph.add("Add", low, high), graph.constant(0.5, graph.dtype))
            found |= {"low": graph.add("Min", low, middle), "high": graph.add("Max", high, middle)}
    else:
        alone = described["alone"] and not inside
        if described["calibration"] is not None:
            probabilities = write_calibration(graph, described["calibration"], scores, two)
            best = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
            found["probabilities"] = graph.cast(probabilities, graph.dtype)
        else:
            if two:
                positive = graph.add("Greater", values, graph.constant(0.0, graph.dtype))
                best = graph.add("Squeeze", graph.cast(positive, np.int64), graph.integers([1]))
            else:
                best = graph.add("ArgMax", values, axis=1, keepdims=0)
            if not alone:  # what skl2onnx calls probabilities of a model without any: its scores
                found["probabilities"] = graph.concat([graph.add("Neg", values), values]) if two else values
        labels = labels_of(described["classes"])
        found = {"label": graph.add("Gather", graph.constant(labels, labels.dtype), best, axis=0), **found}
        if alone or explain:
            found["scores"] = values
    if explain:
        found |= tiles.explained(described["preparation"])
    return found


def labels_of(classes):
    """Classes as ONNX can hold them: int64, or text."""
    classes = np.asarray(classes)
    if classes.dtype.kind in "iub" or (classes.dtype.kind == "f" and (classes == np.floor(classes)).all()):
        return classes.astype(np.int64)
    return np.array([str(label) for label in classes], dtype=object)


class Tiles:
    """A described mosaic in a graph: its rows, its codes, and banks of tiles.

    Attributes
    ----------
    codes : str or None
        Weights of all tiles, of shape (n, n_tiles); None for a single tile.
    banks : list of (coef, tiles, rows, column)
        Weights, the tiles that they are of (None: all), what they are weights of, and the column of each feature
        (None: features as they are).
    bare : ndarray
        Tiles that are only a number.
    """

    def __init__(self, graph, mosaic, rows):
        self.graph, self.mosaic = graph, mosaic
        scaling, curves, clipped, place = (mosaic[key] for key in ("scaling", "curves", "clipped", "place"))
        if scaling is not None:
            rows = write_affine(graph, rows, scaling["center"], scaling["factor"])
        codes = write_gate(graph, mosaic["gate"], rows)
        self.codes = None if codes is None else graph.cast(codes, graph.dtype)
        self.bare = np.arange(0) if place is None else np.flatnonzero(place < 0)
        tiles = None if place is None else np.flatnonzero(place >= 0)
        coef, column, seen = mosaic["coef"], None, rows
        if curves is not None:  # sums of ramps, in which the tiles are linear
            ramps = Ramps.of(coef, **curves)
            coef, column, seen = ramps.coef, ramps.column, write_ramps(graph, rows, ramps)
        self.banks = [(coef, tiles, seen, column)]
        if clipped is not None:
            center, scale, reach = (clipped[key] for key in ("center", "scale", "reach"))
            ramps = Ramps(np.arange(len(center)), center, scale, -reach, reach, clipped["coef"])
            tiles = np.flatnonzero(clipped["place"] >= 0)
            self.banks.append((ramps.coef, tiles, write_ramps(graph, rows, ramps), ramps.column))

    def scores(self):
        """offset + sum_k weight_k link(<w_k, x> + b_k); no weight for a single tile."""
        graph, link, intercept = self.graph, self.mosaic["link"], self.mosaic["intercept"]
        sums = []
        for k, (coef, tiles, rows, _) in enumerate(self.banks):
            if not len(coef):
                continue
            n_tiles, n_outputs, n_features = coef.shape
            score = graph.add("MatMul", rows, graph.constant(coef.reshape(-1, n_features).T, graph.dtype))
            if k == 0:
                mine = intercept if tiles is None else intercept[tiles]
                score = graph.add("Add", score, graph.constant(mine.reshape(1, -1), graph.dtype))
            if link != "identity":
                one = graph.constant(1.0, graph.dtype)
                hinges = [graph.add("Relu", graph.add(kind, one, score)) for kind in ("Sub", "Add")]
                votes = [graph.add("Exp", graph.add("Neg", hinge)) for hinge in hinges]
                score = graph.add("Sub", *votes)
                if link == "posterior":
                    score = graph.add("Div", score, graph.add("Add", *votes))
            if self.codes is not None:
                each = graph.add("Reshape", score, graph.integers([-1, n_tiles, n_outputs]))
                weighed = graph.add("Mul", each, graph.unsqueeze(self.codes_of(tiles), 2))
                score = graph.add("ReduceSum", weighed, graph.integers([1]), keepdims=0)
            sums.append(score)
        if len(self.bare):
            values = graph.constant(linked(intercept[self.bare], link), graph.dtype)
            sums.append(graph.add("MatMul", self.codes_of(self.bare), values))
        return self.with_offset(reduce(partial(graph.add, "Add"), sums))

    def codes_of(self, tiles):
        """The weights of some tiles, or of all."""
        if tiles is None:
            return self.codes
        return self.graph.add("Gather", self.codes, self.graph.integers(tiles), axis=1)

    def with_offset(self, scores):
        offset = self.mosaic["offset"]
        if not offset.any():
            return scores
        return self.graph.add("Add", scores, self.graph.constant(offset[None], self.graph.dtype))

    def explained(self, preparation) -> dict:
        """Contributions of shape (n, n_outputs, n_columns) and intercepts of shape (n, n_outputs)."""
        graph, contributions = self.graph, []
        intercept = graph.constant(self.mosaic["intercept"], graph.dtype)
        if self.codes is None:
            rows = self.banks[0][2]
            zeros = graph.add("Mul", graph.sum(rows, 1), graph.constant(0.0, graph.dtype))
            intercept = graph.add("Add", zeros, intercept)
        else:
            intercept = graph.add("MatMul", self.codes, intercept)
        for coef, tiles, rows, column in [bank for bank in self.banks if len(bank[0])] or self.banks:
            n_tiles, n_outputs, n_features = coef.shape
            if self.codes is None:
                own = graph.constant(coef, graph.dtype)
            else:  # the weights of each row's own linear function
                flat = graph.constant(coef.reshape(n_tiles, n_outputs * n_features), graph.dtype)
                own = graph.add("MatMul", self.codes_of(tiles), flat)
                own = graph.add("Reshape", own, graph.integers([-1, n_outputs, n_features]))
            products = graph.add("Mul", own, graph.unsqueeze(rows, 1))
            if self.banks[0][3] is not None or not preparation.takes_columns_as_they_are:
                # Added up for the columns that the features are made of.
                column = np.arange(n_features) if column is None else column
                columns = np.zeros((n_features, len(preparation.names)))
                columns[np.arange(n_features), preparation.source[column]] = 1.0
                products = graph.add("MatMul", products, graph.constant(columns, graph.dtype))
            contributions.append(products)
        summed = reduce(partial(graph.add, "Add"), contributions)
        return {"contributions": summed, "intercept": self.with_offset(intercept)}
