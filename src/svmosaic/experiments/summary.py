"""From the store to numbers: those of our tables, next to those printed in the papers."""

from dataclasses import dataclass

import numpy as np

from svmosaic.experiments.describe import MEASURES

# How far a linear SVM, which leaves nothing to chance, may be from the printed figure.
SAME_PROTOCOL = 0.3
BASELINES = {"linear": ("Linear SVM", "LSVM", "Linear SVM, one-vs-one"), "kernel": ("Kernel SVM", "SVM")}


@dataclass(frozen=True)
class Entry:
    """One figure of a table: ours over the repeats that were run, and the printed one."""

    values: tuple[float, ...]
    published: float | None
    published_deviation: float | None
    sign: int

    @property
    def mean(self) -> float | None:
        return float(np.mean(self.values)) if self.values else None

    @property
    def deviation(self) -> float | None:
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.published is None else self.mean - self.published

    @property
    def is_below(self) -> bool:
        """Whether we are worse than printed."""
        return self.difference is not None and self.sign * round(self.difference, 6) < 0


def value_of(record, measure):
    """The measure of a record; None if it has none."""
    return 100.0 - record["accuracy"] if measure == "error" else record.get(measure)


def entries(experiment, store) -> dict[tuple[str, str], Entry]:
    """(method, task) -> entry, for every pair of an experiment."""
    found: dict[tuple[str, str], list[float]] = {}
    for cell in experiment.cells():
        values = found.setdefault((cell.method.name, cell.task.name), [])
        record = store.get(cell.key)
        value = None if record is None else value_of(record, experiment.measure)
        if value is not None:
            values.append(value)
    out = {}
    for pair, values in found.items():
        printed = experiment.published.get(pair)
        mean, deviation = printed if isinstance(printed, tuple) else (printed, None)
        out[pair] = Entry(tuple(values), mean, deviation, MEASURES[experiment.measure][0])
    return out


def coverage(experiments, store) -> tuple[int, int]:
    """Cells in the store, and cells in all."""
    keys = {cell.key for experiment in experiments for cell in experiment.cells()}
    return sum(key in store for key in keys), len(keys)


def shortfalls(experiment, found) -> list[tuple[str, str, Entry, str | None]]:
    """Where the paper's own method is worse here than printed: method, task, entry, and the note, if there is one."""
    if experiment.measure not in ("accuracy", "error"):
        return []
    own = {method.name for method in experiment.methods if method.own}
    return [
        (method, task, entry, experiment.notes.get((method, task), experiment.notes.get((method, None))))
        for (method, task), entry in found.items()
        if method in own and entry.is_below
    ]


def remarks(experiment, found) -> list[str]:
    """Sentences about a table that follow from its numbers; the printed numbers of a curve are those of a table."""
    if experiment.kind == "curve" or experiment.measure not in ("accuracy", "error"):
        return []
    out = []
    linear = {
        task: entry.difference
        for (method, task), entry in found.items()
        if method in BASELINES["linear"] and entry.difference is not None
    }
    if linear:
        same = [task for task, difference in linear.items() if abs(difference) <= SAME_PROTOCOL]
        other = [
            f"{task} ({difference:+.2f})" for task, difference in linear.items() if abs(difference) > SAME_PROTOCOL
        ]
        out.append(
            f"The linear SVM is within {SAME_PROTOCOL} points of the printed figure on {', '.join(same) or 'no task'}"
            + (f", and farther from it on {', '.join(other)}." if other else ".")
        )
    for own, leads in kernel_leads(experiment, found).items():
        ahead = [f"{task} (by {lead:.2f})" for task, lead in leads.items() if lead > 0]
        out.append(
            f"The kernel SVM, tuned in the same way, is ahead of {own} on {', '.join(ahead)}."
            if ahead
            else f"The kernel SVM is ahead of {own} on no task that both were run on."
        )
    return out


def kernel_leads(experiment, found) -> dict[str, dict[str, float]]:
    """By how many points the kernel SVM is better than each of the paper's own methods, by task."""
    if experiment.measure not in ("accuracy", "error"):
        return {}
    sign = MEASURES[experiment.measure][0]
    kernel = {task: entry for (method, task), entry in found.items() if method in BASELINES["kernel"]}
    out = {}
    for own in (method.name for method in experiment.methods if method.own):
        leads = {
            task: sign * (entry.mean - found[own, task].mean)
            for task, entry in kernel.items()
            if entry.mean is not None and found[own, task].mean is not None
        }
        if leads:
            out[own] = leads
    return out


def overview(experiments, store) -> str:
    """How the papers' methods stand against the kernel SVM over all tables; empty if there is nothing to compare."""
    leads = [
        lead
        for experiment in experiments
        if experiment.kind == "table"
        for tasks in kernel_leads(experiment, entries(experiment, store)).values()
        for lead in tasks.values()
    ]
    if not leads:
        return ""
    ahead = [lead for lead in leads if lead > 0]
    return (
        f"In {len(ahead)} of the {len(leads)} comparisons below, a kernel SVM tuned in the same way is ahead of the "
        f"paper's own method, by {np.median(ahead) if ahead else 0:.2f} points in the median of these comparisons."
    )
