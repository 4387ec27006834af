"""Calibrations as nodes: double probabilities of shape (n, n_classes) from double scores of shape (n, n_outputs)."""

import numpy as np


def write_calibration(graph, calibration, scores, two):
    """The probabilities of a calibration as `svmosaic.export.description` describes it; two: of two classes."""
    return CALIBRATIONS[calibration["kind"]](graph, calibration, graph.cast(scores, np.float64), two)


def _two_columns(graph, positive):
    return graph.add("Concat", graph.add("Sub", graph.constant(1.0), positive), positive, axis=1)


def _normalized(graph, each, two):
    if two:
        return _two_columns(graph, each)
    total = graph.sum(each, 1)
    n_classes = graph.cast(graph.add("Shape", each, start=1), np.float64)
    equal = graph.add("Div", graph.ones_like(each), n_classes)
    return graph.add("Where", graph.add("Greater", total, graph.constant(0.0)), graph.add("Div", each, total), equal)


def _temperature(graph, calibration, scores, two):
    if two:
        logit = graph.add("Mul", scores, graph.constant(2.0 * calibration["beta"]))
        return _two_columns(graph, graph.add("Sigmoid", logit))
    return graph.add("Softmax", graph.add("Mul", scores, graph.constant(calibration["beta"])), axis=1)


def _odds(graph, calibration, scores, two):
    odds = graph.add("Mul", scores, graph.constant(calibration["slope"]))
    odds = graph.add("Add", odds, graph.constant(calibration["offset"]))
    top = graph.reduce("ReduceMax", odds, 1)
    kept = graph.add("Clip", top, *(graph.constant(bound) for bound in calibration["bounds"]))
    return _normalized(graph, graph.add("Sigmoid", graph.add("Add", graph.add("Sub", odds, top), kept)), two)


def _sigmoid(graph, calibration, scores, two):
    scaled = graph.add("Mul", scores, graph.constant(-calibration["slope"][None]))
    each = graph.add("Sigmoid", graph.add("Sub", scaled, graph.constant(calibration["offset"][None])))
    return _normalized(graph, each, two)


def _isotonic(graph, calibration, scores, two):
    columns = []
    for c, (x, y) in enumerate(zip(calibration["x"], calibration["y"], strict=True)):
        # A single threshold is a constant: repeating it changes nothing.
        x, y = (x, y) if len(x) > 1 else (np.array([x[0], x[0] + 1.0]), np.array([y[0], y[0]]))
        score = graph.add("Gather", scores, graph.integers([c]), axis=1)
        passed = graph.cast(graph.add("GreaterOrEqual", score, graph.constant(x[None, 1:-1])), np.int64)
        step = graph.sum(passed, 1) if len(x) > 2 else graph.add("Mul", graph.cast(score, np.int64), graph.integers(0))
        low, start, width, rise = (
            graph.add("Gather", graph.constant(table), step, axis=0)
            for table in (y[:-1], x[:-1], np.diff(x), np.diff(y))
        )
        share = graph.add("Div", graph.add("Sub", score, start), width)
        share = graph.add("Min", graph.add("Relu", share), graph.constant(1.0))
        columns.append(graph.add("Add", low, graph.add("Mul", share, rise)))
    each = graph.concat(columns)
    if not two:
        each = graph.add(
            "Add", each, graph.add("Mul", graph.add("Sigmoid", scores), graph.constant(calibration["tie_break"]))
        )
    return _normalized(graph, each, two)


def _posterior(graph, calibration, scores, two):
    half = graph.constant(0.5)
    return _normalized(graph, graph.add("Add", graph.add("Mul", scores, half), half), two)


CALIBRATIONS = {
    "Temperature": _temperature, "Odds": _odds, "Sigmoid": _sigmoid, "Isotonic": _isotonic, "Posterior": _posterior,
}  # fmt: skip
