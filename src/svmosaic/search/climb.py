"""The search itself: candidates climb rungs of growing rows, the best are varied, and the best few are blended."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from svmosaic.search.candidates import (
    EPOCHS,
    MANY_ROWS,
    MOST_EFFORT,
    Candidate,
    fitting,
    same_but_effort,
    seeds,
)
from svmosaic.search.rungs import FIRST_RUNG, Rung, plan_rungs
from svmosaic.search.trials import Trials, rank

# Candidates that go on from the first rung and from later ones, by score and by loss each.
KEPT_FIRST, KEPT = 7, 4
# The first so many of a rung may take the time of what follows.
LEADERS = 3
# A family stays if its extrapolated loss is at most this factor of the lowest.
FAMILY_MARGIN = 1.25
# Trials without a better score or loss after which the search stops; fewer without a budget, so that it ends.
PATIENCE, FREE_PATIENCE = 16, 6
# A variation that is worse by this share of the loss on the first parts is not tried on the others.
CLEARLY_WORSE = 0.03
# Wide sparse rows are left to models without curves and trees.
MOST_SPARSE_COLUMNS = 1000
# Candidates that take more than this share of the budget on the first rung come after the others.
DEAR = 0.08
# Rows of kernel machines at most, unless they are asked for.
KERNEL_ROWS = 20_000
# Candidates that take more than this factor of an equal part of a rung's time come after the others.
FAIR = 2.0
# Usual slope of the loss against the rows, both as logarithms (benchmarks/study_search.py --slopes).
LEARNING = {
    "linear": 0.03,
    "clustered": 0.07,
    "local": 0.19,
    "kernel": 0.25,
    "trees": 0.27,
    "leaves": 0.35,
    "learned": 0.4,
}
# The last is that of one learned gate of 128 tiles; what a doubling of the tiles, one of the gates, and curves add.
OF_TILES, OF_GATES, OF_CURVES = 0.023, -0.024, 0.065
# Share of the budget that must be left for a leader to learn on.
WORTH_LEARNING = 0.15
# Share of the budget that the linear baseline may take to be tried before others on higher rungs.
CHEAP = 0.01
# Share of the search's time in which those that did not go on may still be judged by all parts.
OTHERS_SHARE = 0.5
# Epochs of a learned gate on all rows, if the time is long.
MOST_EPOCHS = 40


class Search(Trials):
    """Tries candidates; see `MosaicClassifier` for what is promised."""

    def run(self):
        """Climb all rungs, then vary the best until the time is up or nothing helps."""
        if not self.folds:
            return
        pool = self._seeds()
        rungs = self._rungs(pool)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for level, rung in enumerate(rungs):
                last = level + 1 == len(rungs)
                share = self._share_until(rung.until, rungs[level - 1].until if level else 0.0)
                self._climb(pool, level, rung, share, last)
                pool = [] if last else self._survivors(level)
                if self.stopped:
                    return
                if not pool:
                    break
            self._judge_others(level, rungs[level])
            self._vary(rungs[: level + 1])

    def _rungs(self, pool) -> list[Rung]:
        def seconds_of(n_rows):
            return sum(self.clock.expected(candidate, n_rows) for candidate in pool) / self.n_threads

        budget = self.clock.budget
        return plan_rungs(self.folds, seconds_of, None if budget is None else budget * self.search_share)

    def _seeds(self) -> list[Candidate]:
        smallest = min(len(train) for train, _ in self.folds)
        # For values and for many or wide rows kernel machines take time that others use better
        # (benchmarks/study_placement.py, on training rows).
        asked = self.families is not None
        few_of_classes = self.judge.smooth is None and self.X.shape[0] <= KERNEL_ROWS
        first = seeds(self.usual, self.X.shape[0], asked or few_of_classes)
        if self.judge.smooth is not None:
            first = [replace(candidate, smooth=self.judge.smooth) for candidate in first]
        if self.judge.leaf_cost is not None:
            first = [replace(c, C=self.judge.leaf_cost) if c.only_leaves and c.C else c for c in first]
        pool = list(dict.fromkeys(filter(None, (self._fitting(candidate, smallest) for candidate in first))))
        if self.clock.budget is None:
            return pool
        n_rows, most = min(smallest, FIRST_RUNG), DEAR * self.clock.budget
        pool = [c for c in pool if asked or c.family != "kernel" or self.clock.expected(c, smallest) <= most]
        return sorted(pool, key=lambda c: self.clock.expected(c, n_rows) > most)

    def _fitting(self, candidate, n_rows) -> Candidate | None:
        """The candidate if it suits these rows, perhaps with fewer tiles."""
        if self.families is not None and candidate.family not in self.families:
            return None
        if candidate.scaling not in self.scalings:
            candidate = replace(candidate, scaling=self.usual[0])
        wide = sparse.issparse(self.X) and self.X.shape[1] > MOST_SPARSE_COLUMNS
        if wide and (candidate.pieces is not None or candidate.family in ("trees", "kernel")):
            return None
        return fitting(
            candidate, n_rows=n_rows, most_tiles=self.most_tiles, n_features=self.X.shape[1],
            n_outputs=self.judge.target.n_outputs,
        )  # fmt: skip

    def _share_until(self, until, before) -> float:
        """Share of the search's time by which a rung should end: its part of what is left, if others took longer."""
        if self.clock.budget is None:
            return 1.0
        spent = self.clock.elapsed / (self.search_share * self.clock.budget)
        return min(1.0, spent + (1.0 - spent) * (until - before) / (1.0 - before))

    def _climb(self, pool, level, rung, share, last):
        """Try the candidates on a rung, as time allows."""
        self.say(f"{len(pool)} candidates on {rung.n_rows} rows, {rung.n_parts} held out in turn")
        if level and not last:
            pool = self._dear_ones_last(pool, rung, share)
        for place, candidate in enumerate(pool):
            until = self._share_of(candidate, level, place, share, last)
            if len(self.folds) == 1:
                candidate = self._with_effort(candidate, rung, until, last)
            if self._is_behind(candidate, level):
                continue
            here = rung
            if self.trials and not self._affords(candidate, rung, until):
                self.out_of_time = True
                here = self._fewer_rows(candidate, rung, until) if last and place == 0 else None
            if here is None and place == 0 and self._is_baseline(candidate):
                return  # nothing goes on without it: the choice compares models by the same rows
            if here is None:
                continue
            self._attempt(candidate, level, here)
            if self.stopped:
                return

    def _judge_others(self, level, rung):
        """Judge those that did not go on by all parts too, as long as that takes little time.

        Two parts of few rows tell little, and a blend gains by all that are as good as the leaders.
        """
        if len(self.folds) == 1 or self.clock.budget is None:
            return
        judged = {t.candidate for t in self.trials if t.rung == level}
        baselines = {t.candidate for t in self.trials if self._is_baseline(t.candidate)}
        if baselines and not baselines & judged:
            return
        others = sorted((t for t in self.trials if not t.failure and t.candidate not in judged), key=lambda t: t.loss)
        for candidate in dict.fromkeys(t.candidate for t in others):
            if self._affords(candidate, rung, OTHERS_SHARE) and not self.stopped:
                self._attempt(candidate, level, rung)

    def _is_baseline(self, candidate) -> bool:
        """Whether this is the linear model that others are compared with, rows being held out in turn."""
        return candidate.family == "linear" and len(self.folds) > 1

    def _dear_ones_last(self, pool, rung, share) -> list[Candidate]:
        """The first of each sort, then the others; those that take much more than their part of the time last.

        Of many rows, held out once, the leaders come first whatever they take.
        """
        fair = FAIR * self._left(share) / len(pool)
        firsts = self._first_of_each_sort(pool)
        leaders = firsts[:LEADERS] if len(self.folds) == 1 else []

        def place(candidate):
            dear = self.clock.expected(candidate, rung.n_rows) > fair
            return candidate not in firsts, dear and candidate not in leaders and not self._is_baseline(candidate)

        return sorted(pool, key=place)

    def _first_of_each_sort(self, pool) -> list[Candidate]:
        """The first of each family; of many rows, the first learned gate with curves and the first without."""
        firsts: dict[tuple, Candidate] = {}
        for candidate in pool:
            curves = len(self.folds) == 1 and candidate.family == "learned" and candidate.pieces is not None
            firsts.setdefault((candidate.family, curves), candidate)
        return list(firsts.values())

    def _is_behind(self, candidate, level) -> bool:
        """Whether time is short and a candidate will not come near what others have reached, by the rung before."""
        if self.clock.budget is None or candidate.family == "linear":
            return False
        expected = {same_but_effort(t.candidate): self._at_most_rows(t) for t in self.trials if t.rung == level - 1}
        here = [t for t in self.trials if t.rung == level and not t.failure]
        reached = {same_but_effort(t.candidate): self._at_most_rows(t) for t in here}
        # A loss may be zero, where a model is perfect.
        both = [loss / expected[same] for same, loss in reached.items() if expected.get(same, 0.0) > 0.0]
        if not both or same_but_effort(candidate) not in expected:
            return False
        # Rows may teach more or less here than usual: those that were tried on both rungs say by how much.
        return bool(expected[same_but_effort(candidate)] * np.median(both) > FAMILY_MARGIN * min(reached.values()))

    def _share_of(self, candidate, level, place, share, last) -> float:
        """The share of the search's time by which a trial must end: later for the first of a family and for leaders."""
        new = not any(t.candidate.family == candidate.family for t in self.trials)
        if (last or (level and len(self.folds) > 1)) and place < LEADERS:
            return 1.0  # what does not go on from rows held out in turn is not judged by all of them
        return max(share, 0.5) if (new if level == 0 else place < LEADERS) else share

    def _affords(self, candidate, rung, share) -> bool:
        """Whether a trial, less what is known of it, ends before this share of the search's time is over."""
        known = sum((candidate, rung.n_rows, part) in self._parts for part in range(rung.n_parts))
        at_once = min(self.n_threads, rung.n_parts) if len(self.folds) > 1 else 1
        fits = -(-(rung.n_parts - known) // at_once)
        return self.clock.expected(candidate, rung.n_rows) * fits <= self._left(share)

    def _fewer_rows(self, candidate, rung, until) -> Rung | None:
        """A rung with as many rows as the time allows, if these are enough to learn something new."""
        share = 0.75 * self._left(until) / self.clock.expected(candidate, rung.n_rows)
        worth = len(self.folds) == 1 and share > 0.2
        return replace(rung, n_rows=int(min(1.0, share) * rung.n_rows)) if worth else None

    def _learn_on(self, level, rung):
        """Let the leader, if it is a learned gate of many rows, learn on as long as there is time and it helps."""
        while self.clock.budget is not None and rung.n_rows > MANY_ROWS and not self.stopped:
            best = min((t for t in self.trials if t.rung == level), key=rank, default=None)
            if best is None or best.candidate.family != "learned" or self._left() < WORTH_LEARNING * self.clock.budget:
                return
            candidate = self._with_effort(best.candidate, rung, 1.0, True)
            more = rung if self._affords(candidate, rung, 1.0) else self._fewer_rows(candidate, rung, 1.0)
            if more is None:
                return
            self._parts.pop((candidate, more.n_rows, 0), None)  # it goes on from where that fit ended
            self._attempt(candidate, level, more)
            if self.trials[-1].score <= best.score:
                return

    def _with_effort(self, candidate, rung, until, last) -> Candidate:
        """A learned gate with as many epochs as the time allows: half, or, on all rows, up to three times the usual."""
        if candidate.family != "learned" or self.clock.budget is None:
            return candidate
        candidate = replace(candidate, effort=1.0)
        few = last and candidate.epochs(rung.n_rows) <= 2 * EPOCHS[0]
        for effort in (MOST_EFFORT, 2.0, 1.5, 1.25, 1.0, 0.75) if few else (1.0,):
            larger = replace(candidate, effort=effort)
            # Of not so many rows, others are tried in the time that more epochs would take.
            share = 0.8 if effort <= 1 or rung.n_rows > MANY_ROWS else 0.3
            within = self.clock.expected(larger, rung.n_rows) < share * self._left(until)
            if larger.epochs(rung.n_rows) <= MOST_EPOCHS and within:
                return larger
        return replace(candidate, effort=0.5)

    def _survivors(self, level) -> list[Candidate]:
        """Those that go on: the best by score and by loss, and the best of each family that may still catch up."""
        here = [t for t in self.trials if t.rung == level and not t.failure]
        if not here:
            return []
        kept = KEPT_FIRST if level == 0 else KEPT
        by_score = sorted(here, key=rank)
        by_loss = sorted(here, key=lambda t: t.loss)
        leaders = {id(t) for t in [*by_score[:kept], *by_loss[:kept]]}
        ahead = {id(t): self._at_most_rows(t) for t in here}
        lowest = min(ahead.values())
        if level > 0:  # by now it is known how they learn from more rows
            able = sorted(here, key=lambda t: ahead[id(t)])[:2]
            leaders = {id(t) for t in here if id(t) in leaders and ahead[id(t)] <= FAMILY_MARGIN * lowest}
            leaders |= {id(t) for t in able}
        promising = sorted(here, key=lambda t: t.loss if len(self.folds) > 1 else ahead[id(t)])
        firsts = self._first_of_each_sort([t.candidate for t in promising])
        leaders |= {
            id(t) for t in here
            if t.candidate in firsts and (level == 0 or ahead[id(t)] <= FAMILY_MARGIN * lowest)
        }  # fmt: skip
        linear = next((t for t in by_score if t.candidate.family == "linear"), None)
        if linear is not None and len(self.folds) > 1:
            leaders.add(id(linear))  # however far behind: the choice compares models with it by the same rows
        elif linear is not None and self.clock.expected(linear.candidate, self.X.shape[0]) > CHEAP * self.clock.left(
            2.0
        ):
            linear = None  # the baseline waits for its turn
        # What counts is how they do on many more rows, if there are.
        place = {id(t): float(i + by_loss.index(t)) for i, t in enumerate(by_score)} if len(self.folds) > 1 else ahead
        order = sorted((t for t in here if id(t) in leaders), key=lambda t: (t is not linear, place[id(t)]))
        candidates = [t.candidate for t in order]
        if len(self.folds) > 1:  # if time is short, different models make the better blend
            firsts = self._first_of_each_sort(candidates)
            candidates.sort(key=lambda c: c not in firsts)
        return candidates

    def _at_most_rows(self, trial) -> float:
        """The loss to be expected of all rows, or of as many as there is time for, by a power law.

        It goes through the last two rungs, or, after the first, has the usual slope of such candidates.
        """
        same = same_but_effort(trial.candidate)
        before = [t for t in self.trials if t.n_rows < trial.n_rows and same_but_effort(t.candidate) == same]
        slope = _usual_slope(trial.candidate)
        if before and not before[-1].failure and trial.loss > 0:
            slope = np.log(before[-1].loss / trial.loss) / np.log(trial.n_rows / before[-1].n_rows)
        n_rows = self.X.shape[0]
        n_rows *= min(1.0, self._left() / self.clock.expected(trial.candidate, n_rows))
        return trial.loss * min(1.0, trial.n_rows / max(n_rows, 1.0)) ** np.clip(slope, 0.0, 0.6)

    def _vary(self, rungs):
        """Try small changes of the leaders."""
        level, rung = len(rungs) - 1, rungs[-1]
        self._learn_on(level, rung)
        patience = FREE_PATIENCE if self.clock.budget is None else PATIENCE
        stale, tried = 0, {t.candidate for t in self.trials if t.rung == level}
        while stale < patience and not self.stopped:
            change = next((c for c in self._changes(level, rung) if c not in tried), None)
            if change is None:
                break
            tried.add(change)
            if not self._affords(change, rung, 1.0) or not self._leaves_time(change, rung):
                self.out_of_time = True
                if self._left() <= 0:
                    break
                continue
            before = self._best(level)
            if self._worth_all_parts(change, rungs):
                self._attempt(change, level, rung)
            if self.stopped:
                return
            after = self._best(level)
            stale = 0 if after[0] > before[0] or after[1] < before[1] * 0.999 else stale + 1
        else:
            if self.stopped:
                return
            self.stop_reason = f"no better model in {patience} trials"
            return
        if self.out_of_time:
            self.stop_reason = "time budget"

    def _leaves_time(self, change, rung) -> bool:
        """Whether there is time to fit the best model so far to all rows after a change was tried, if there is now."""
        if self.clock.budget is None or len(self.folds) > 1 or not self.refits:
            return True
        left = self.clock.left(self._until_last_fit()) - self.closing
        return left < 0 or self.clock.expected(change, rung.n_rows) < left

    def _best(self, level):
        here = [t for t in self.trials if t.rung == level]
        return max((t.score for t in here), default=-np.inf), min((t.loss for t in here), default=np.inf)

    def _changes(self, level, rung):
        """Changes of the leaders in turn, by score and by loss; then of the best of each family."""
        here = [t for t in self.trials if t.rung == level and not t.failure]
        ranked, by_loss = sorted(here, key=rank), sorted(here, key=lambda t: t.loss)
        leaders = dict.fromkeys(t.candidate for pair in zip(ranked[:3], by_loss[:3], strict=True) for t in pair)
        first_of_family = {t.candidate.family: t.candidate for t in reversed(by_loss)}
        for group in (leaders, reversed(first_of_family.values())):
            for round_ in itertools.zip_longest(*(leader.neighborhood() for leader in group)):
                for change in filter(None, round_):
                    candidate = self._fitting(change, rung.n_rows)
                    if candidate is not None:
                        yield candidate

    def _worth_all_parts(self, candidate, rungs) -> bool:
        """Whether a change holds its own on the first parts, if there are several."""
        if len(self.folds) == 1:
            return True
        self._attempt(candidate, 0, rungs[0])
        trial = self.trials[-1]
        return not self.stopped and not trial.failure and trial.loss < (1 + CLEARLY_WORSE) * self._best(0)[1]


def _usual_slope(candidate) -> float:
    slope = LEARNING["leaves" if candidate.only_leaves else candidate.family]
    if candidate.family == "learned":
        slope += OF_TILES * np.log2(candidate.tiles / 128) + OF_GATES * np.log2(candidate.gates)
        slope += OF_CURVES if candidate.pieces else 0.0
    return slope
