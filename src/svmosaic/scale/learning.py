"""Learned gates over partitions: rows streamed through one learner, or learners on the workers that are averaged."""

from dataclasses import replace
from time import perf_counter

import numpy as np
from sklearn.utils.random import sample_without_replacement

from svmosaic.estimators.learned_gate import single_precision
from svmosaic.learner.devices import engine_of, find_device
from svmosaic.learner.gate_learner import MOVING
from svmosaic.learner.loop import mosaic_of
from svmosaic.learner.stream import StreamEngine
from svmosaic.scale.part import regions, with_codes

# Rows that are fetched, at most: those held out to stop early by, and those by which the gate is placed.
HELD_OUT_ROWS, START_ROWS = 50_000, 100_000
# Rows per row drawn, up to which all of them are permuted to draw some.
PERMUTED = 10


class PartitionedLearningRows:
    """Rows in partitions, with the interface of `svmosaic.estimators.learned_gate.LearningRows`.

    Parameters
    ----------
    rows : PartitionedData
    held : ndarray of int, optional
        Sorted places among all rows of those not to train on.
    """

    def __init__(self, rows, held=None):
        self.rows, self.partitions, self.target = rows, rows.partitions, rows.target
        self.held = np.zeros(0, dtype=np.int64) if held is None else held

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows - len(self.held)

    @property
    def n_replicas(self) -> int:
        """How many learners take steps at the same time."""
        return 1 if self.partitions.steps_between_averages is None else self.partitions.n_parts

    def start(self, rng):
        """A sample of the rows and their target, by which the gate is placed."""
        rank = draw_places(self.n_rows, START_ROWS, rng) if self.n_rows > START_ROWS else np.arange(self.n_rows)
        # The place of the row of this rank among those that are not held out.
        return self._take(rank + np.searchsorted(self.held - np.arange(len(self.held)), rank, side="right"))

    def hold_out(self, n_held_out, in_place, rng):
        """The rows to train on, and those held out, a sample, with their target."""
        n_held = min(n_held_out, HELD_OUT_ROWS)
        held = draw_places(self.rows.n_rows, n_held, rng)
        return PartitionedLearningRows(self.rows, held), self._take(held)

    def _take(self, places):
        X, target = self.rows.take(places)
        return single_precision(X), target

    def engine(self, learner, plan, device):
        """What takes the steps: one learner that all rows come to, or one on each partition."""
        if self.partitions.steps_between_averages is not None:
            return AveragingEngine(self.partitions, self.target, learner, plan, device, self.held)

        def read(places):
            return self.partitions.stream(learned_rows, self.held, self.target, order=places)

        return StreamEngine(learner, read, self.partitions.n_parts, self.n_rows, plan, find_device(device))

    def region_counts(self, mosaic, head, n_jobs=None):
        """Sums for `regions_`: one pass of scoring."""
        return self.partitions.total(learned_regions, mosaic, head, self.partitions.n_threads)

    def coded(self, gate, here):
        """Codes of the rows at these indices, and the rows."""
        rows = single_precision(self.rows.take(here)[0])
        return gate.code(rows), rows


def draw_places(n_rows, n_places, rng):
    """Sorted places of some rows among all; of many, without a number for each row in memory."""
    if n_rows <= PERMUTED * n_places:
        return np.sort(rng.choice(n_rows, n_places, replace=False))
    return np.sort(sample_without_replacement(n_rows, n_places, random_state=rng))


def kept_rows(part, held):
    """Indices of the rows of a partition that are not held out."""
    mine = held[(held >= part.first) & (held < part.first + part.n_rows)] - part.first
    return np.delete(np.arange(part.n_rows), mine)


def learned_rows(part, held, survey, chosen=None):
    """Rows of a partition, all that are not held out if not chosen, as an engine takes them: rows, target, weight."""
    here = kept_rows(part, held) if chosen is None else chosen
    X, truth, weight = part.X[here], part.truth[here], part.weight[here]
    return single_precision(X), survey.target_of(truth, weight).learned, weight


def learned_regions(part, mosaic, head, n_threads):
    """Counts for `regions_`."""
    part = replace(part, X=single_precision(part.X), built={})
    return regions(with_codes(part, mosaic.gate, 1.0, 1.0, n_threads), mosaic, head, n_threads)


def n_kept(part, held):
    """How many rows of a partition are not held out."""
    return len(kept_rows(part, held))


class AveragingEngine:
    """Epochs of one learner per partition, with the interface of `CoreEngine`.

    All start from the same parameters and take so many steps on rows of their own; then parameters and moments are
    averaged, weighted by the rows met, and all go on from the mean. The result depends on the partitions, not on which
    machine holds them.

    Parameters
    ----------
    partitions : Partitions
    survey : Survey
    learner : GateLearner
        Changed in place.
    plan : Plan
    device : {"cpu", "gpu", "auto"}
        Of the workers.
    held : ndarray of int
        Places of the rows not to train on.
    """

    def __init__(self, partitions, survey, learner, plan, device, held):
        self.partitions, self.survey, self.learner = partitions, survey, learner
        self.plan, self.device, self.held = plan, device, held
        self.sizes = np.array(partitions.gather(n_kept, held))
        self.n_rows, self._weight = int(self.sizes.sum()), np.float64(0.0)

    @property
    def n_batches(self) -> int:
        """Steps of an epoch: those of the largest partition."""
        return int(-(-self.sizes.max() // self.plan.batch_size))

    def order(self, rng):
        """The seed of the orders of all partitions."""
        return rng.randint(2**31 - 1)

    def weight_met(self, order, n_met):
        """The total weight of the rows that the last epoch met."""
        return self._weight

    def epoch(self, order, rates, deadline=np.inf) -> tuple[float, int]:
        """Sum of the losses on the way, and the number of rows that were met before the deadline."""
        loss, n_met, self._weight = 0.0, 0, np.float64(0.0)
        at_once = self.partitions.steps_between_averages * self.plan.batch_size
        n_steps = self.partitions.steps_between_averages
        for k, first in enumerate(range(0, int(self.sizes.max()), at_once)):
            if perf_counter() > deadline:
                break
            met = np.clip(self.sizes - first, 0, at_once)
            here = rates[k * n_steps : (k + 1) * n_steps]
            share = list(met / met.sum())
            arrays, sums = self.partitions.total(
                learn_part, self.survey, self.learner, self.plan, self.device, self.held, order, first, here,
                each=share,
            )  # fmt: skip
            for name, mean in arrays.items():
                getattr(self.learner, name)[...] = mean
            self.learner.clock += [len(here), np.sum(here)]
            self.learner.idle_since[:] = self.learner.clock[1]
            loss, n_met, self._weight = loss + float(sums[0]), n_met + int(met.sum()), self._weight + sums[1]
        return loss, n_met

    def scores(self, X):
        """Scores of rows, of shape (n_rows, n_outputs), with what has been learned so far."""
        return mosaic_of(self.learner).decision_function(X, self.plan.n_jobs)

    @property
    def is_finite(self) -> bool:
        """Whether no parameter has overflowed."""
        return self.learner.is_finite

    def finish(self):
        """Nothing: the learner is here after every average."""


def learn_part(part, share, survey, learner, plan, device, held, seed, first, rates):
    """Steps on the rows of a partition from `first` on in its order; its arrays times its share, loss and weight."""
    learner, sums = learner.copy(), np.zeros(2)
    if share > 0:
        order = np.random.RandomState([seed, part.first % 2**32]).permutation(kept_rows(part, held))
        chosen = order[first : first + len(rates) * plan.batch_size]
        X, target, weight = learned_rows(part, held, survey, chosen)
        learner.seed = (learner.seed + part.first) % 2**31  # each drops features of its own
        engine = engine_of(learner, X, target, weight, plan, find_device(device))
        loss, _ = engine.epoch(np.arange(len(weight), dtype=np.int32), rates[: -(-len(weight) // plan.batch_size)])
        engine.finish()
        learner.set_decay(learner.decay)  # what idle tiles have lost meanwhile
        sums = np.array([loss, weight.sum()])
    arrays = {name: getattr(learner, name) for name in MOVING}
    return {name: (share * values).astype(values.dtype) for name, values in arrays.items() if values is not None}, sums
