"""Many runs from beginnings of their own, until their average is precise enough.

Where clients keep the rhythm in which they began (`simulator.figures.runs.rhythm`), one run shows one rhythm,
however long it is. What is asked for then is what a real run shows on average: clients come spread over a
warm-up, a window opens, and all this is repeated with other random numbers. Every repeat is a batch; they are
independent of each other, so Student's interval of their average holds whatever happens within one.

Under load, clients may bunch, more and more over many cycles: those who wait for each other go on together.
Where the second half of the windows shows longer response times than the first, beyond doubt, runs of twice
the length are made instead, and so on (Welch's method looks at the same averages over replications).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np

from mup.errors import LimitError
from simulator.figures.operational_laws import check_stability
from simulator.figures.output import Window
from simulator.figures.runs.engines import Engine
from simulator.figures.runs.repeat import settled, stuck
from simulator.figures.runs.rhythm import keeps, relaxation_seconds
from simulator.figures.runs.run import Progress, Run
from simulator.figures.runs.single import within_limits
from simulator.machine.budget import Budget, Reached, limit_error
from simulator.machine.recording import FloatArray, Layout, Samples, sample_capacities
from simulator.program import Program

__all__ = ["RUN_SECONDS", "Need", "Replication", "need_of", "run_replicated", "run_seeds"]

RUN_SECONDS: Final = 60.0
"""Of a window: what ``mup load`` measures unless told otherwise."""
FORGOTTEN: Final = 100
"""After so many relaxation times a single run has seen rhythms enough: each of its batches is a few long."""
FEWEST: Final = 16
"""Replications. About as long together as the shortest single run."""
FEWEST_ROUGH: Final = 8
"""The same where ``ROUGH`` is precise enough."""
ROUGH: Final = 0.05
GROWTH: Final = 1.5
"""So many times as many replications are made at most, before precision is looked at again."""
CYCLES: Final = 4
"""Of a client, in a window."""
FEWEST_CYCLES: Final = 2
"""The same where there are events enough for no more."""
TINY: Final = 1e-300
FEWEST_CUT: Final = 2
"""Replications that say something when a limit ends them."""
GAP: Final = 3
"""For so many times as long as a cycle takes under the load no client completes one: in most runs that is so
only where they are stuck (a partial deadlock)."""
MOST_EVENTS: Final = 30_000_000
"""Of all replications together; twice as many where clients bunch. Real runs of what takes longer differ by
much more than their average is uncertain then."""
OTHER_SEEDS: Final = 2_000_003
DRIFT: Final = 0.02
"""Of the response time, from the first to the second half of a window; less is not worth longer warm-ups."""
DRIFT_ERRORS: Final = 4.0
"""So many standard errors the drift has to be: ``FEWEST`` runs show that once in a thousand times by chance.
It is looked at whenever precision is: the more precise figures are, the smaller a drift is noticed."""


@dataclass(frozen=True, slots=True)
class Replication:
    """Lengths of one replication, in seconds.

    Attributes:
        warmup: In which clients come.
        seconds: Of the window.
    """

    warmup: float
    seconds: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.warmup + self.seconds

    def later(self) -> Replication:
        """Return those of a replication of twice the length, with an equal window at its end."""
        return Replication(self.warmup + self.total, self.seconds)


@dataclass(frozen=True, slots=True)
class Need:
    """How a program has to be run so that its figures do not depend on how clients began.

    Attributes:
        relaxation: After so many seconds they have forgotten it.
        least: Seconds of a single run.
        replication: Lengths of each of many runs; None if a single one is enough, if there is to be one in
            any case, or if many would take more events than there may be.
    """

    relaxation: float = 0.0
    least: float = 0.0
    replication: Replication | None = None

    @property
    def keeps_rhythm(self) -> bool:
        """Whether a single run shows one rhythm of many."""
        return self.relaxation > 0 and not self.least


def need_of(
    program: Program,
    compiled_within: Callable[[float], Program],
    *,
    single: bool,
    seed: int,
    limit: int,
    budget: Budget,
) -> Need:
    """Return how a program has to be run.

    Args:
        program: What is to be run.
        compiled_within: Returns the same, with clients that come within so many seconds.
        single: It is run once in any case.
        seed: Of the runs that tell.
        limit: Timed steps of all runs together after which no more are begun.
        budget: Of all of them together.

    Raises:
        LimitError: The budget is used up.
        SimulationError: The scenario deadlocks, or cannot make progress.
    """
    if not program.populations or any(p.is_open for p in program.populations):
        return Need()  # those who come from outside break every rhythm
    relaxation = relaxation_seconds(program, seed, budget)
    nominal = max(p.nominal.total for p in program.populations)
    if not keeps(relaxation, nominal):
        return Need()
    if FORGOTTEN * relaxation <= FEWEST * RUN_SECONDS:
        return Need(relaxation, least=FORGOTTEN * relaxation)
    if single:
        return Need(relaxation)
    found = settled(compiled_within, nominal, seed=seed, budget=budget)
    warmup = found.cycle_seconds
    seconds = max(RUN_SECONDS, CYCLES * warmup)
    affordable = min(limit, MOST_EVENTS) / FEWEST / max(found.events_per_second, TINY) - warmup
    if affordable < FEWEST_CYCLES * warmup:
        return Need(relaxation)
    return Need(relaxation, replication=Replication(warmup, min(seconds, affordable)))


def run_seeds(seed: int, first: int, count: int) -> list[int]:
    """Return the seeds of some replications; the first of all has the seed itself."""
    return [OTHER_SEEDS * (seed + 1) + k if k else seed for k in range(first, first + count)]


def run_replicated(
    program: Program,
    engine: Callable[[int], Engine],
    lengths: Replication,
    *,
    seed: int,
    precision: float | None,
    count: int | None = None,
    limit: int,
    own: Budget,
    outer: Budget | None,
    may_pile_up: bool,
    progress: Callable[[Progress], None] | None,
) -> Run:
    """Run a program many times, until precision or a limit ends it.

    Args:
        program: What to run; clients come within the warm-up.
        engine: Returns a run of it with a seed, at its beginning.
        lengths: Of each run.
        seed: Of the first one; the others follow from it.
        precision: As for `simulator.api.simulate`.
        count: So many runs are made at most; default: until precision or a limit ends them.
        limit: Timed steps of all runs together after which no more are begun.
        own: Budget of all of them together.
        outer: Of the study they are part of.
        may_pile_up: Do not refuse load that grows for ever.
        progress: Called after every run.

    Raises:
        LimitError: A limit was reached too soon for any figure.
        SimulationError: The scenario deadlocks, cannot make progress, or load piles up.
    """
    whole, limit = limit, min(limit, MOST_EVENTS)
    layout = Layout(program)
    found = _Found(program, lengths)
    least = FEWEST if precision is None or precision < ROUGH else FEWEST_ROUGH
    if count is not None:
        least = min(least, count)
    events, wanted = 0, least
    reached = math.inf
    cut: Reached | None = None
    shorter: _Found | None = None
    while cut is None:
        for each in run_seeds(seed, len(found.sums), wanted - len(found.sums)):
            run = engine(each)
            try:
                run.run_until(found.lengths.warmup, own)
                before = np.asarray(run.snapshot())
                run.run_until(found.lengths.total, own)
            except LimitError as error:
                cut = within_limits(own, error.reached, outer)
                break
            finally:
                events += run.events
            found.add(run, before)
            if progress is not None:
                progress(Progress(found.simulated_seconds, events, reached))
            if events >= limit:
                cut = Reached(own.study, "events", limit)
                break
        if cut is not None and len(found.sums) < FEWEST_CUT:
            if shorter is None:
                raise limit_error(cut, where=program.name)
            found = shorter
        found.check_alive()
        if cut is None and found.drifts():
            longer = found.lengths.later()
            most = min(whole, 2 * MOST_EVENTS)
            if events + least * longer.total * found.events_per_second <= most:
                limit = most
                if count is not None:
                    count = max(FEWEST_CUT, round(count * found.lengths.total / longer.total))
                wanted = least = least if count is None else min(least, count)
                shorter, found = found, _Found(program, longer)
                continue
        sums = found.sums
        end = found.lengths.seconds * len(sums)
        window = Window(program, layout, 0.0, end, np.array(sums), True, True, replicated=True)
        reached = window.precision()
        if not may_pile_up:
            check_stability(window)
        if len(sums) == count or (precision is not None and reached <= precision):
            # Precise figures of runs that are too short are not what was asked for.
            cut = cut if found is shorter else None
            break
        lacking = math.inf if precision is None else math.ceil(len(sums) * (reached / precision) ** 2)
        wanted = max(len(sums) + 1, int(min(lacking, math.ceil(GROWTH * len(sums)), count or math.inf)))
    return Run(
        window=window,
        population_samples=found.populations.samples(),
        entry_samples=found.entries.samples(),
        simulated_seconds=found.simulated_seconds,
        warmup_seconds=found.lengths.warmup * len(sums),
        events=events,
        replications=len(sums),
        limit=cut,
        bunched_after=None if found.lengths == lengths else found.lengths.warmup,
    )


class _Found:
    """What some replications of the same lengths have shown.

    Args:
        program: What they run.
        lengths: Of each.

    Attributes:
        events: Timed steps they took.
        sums: By how much each column of a snapshot grew in the window, per replication.
        populations, entries: Single times.
    """

    def __init__(self, program: Program, lengths: Replication) -> None:
        self._program = program
        self.lengths = lengths
        capacity = sample_capacities(program)
        self.populations = Pool(len(program.populations), capacity.population, common=True)
        self.entries = Pool(len(program.entries), capacity.entry, common=False)
        self.events = 0
        self.sums: list[FloatArray] = []
        # Runs in which no client of a population came back at the end.
        self._gaps = [0] * len(program.populations)
        # Per replication, the response times of the two halves of its window.
        self._halves: list[tuple[float, float]] = []

    @property
    def simulated_seconds(self) -> float:
        """Of all of them."""
        return self.lengths.total * len(self.sums)

    @property
    def events_per_second(self) -> float:
        """Timed steps per simulated second."""
        return self.events / self.simulated_seconds

    def add(self, run: Engine, before: FloatArray) -> None:
        """Take in a replication that is over.

        Args:
            run: The engine, at the end of the window.
            before: Its snapshot at the beginning of the window.
        """
        lengths, number = self.lengths, len(self.sums)
        self.events += run.events
        self.sums.append(np.asarray(run.snapshot()) - before)
        samples = run.population_samples
        self.populations.add(samples, lengths, number)
        self.entries.add(run.entry_samples, lengths, number)
        for index, of in enumerate(samples):
            self._gaps[index] += _gap(of, lengths) > GAP * lengths.warmup
        middle = lengths.warmup + lengths.seconds / 2
        times = [of.unordered() for of in samples]
        first, second = (
            np.concatenate([values[(ends >= begin) & (ends < end)] for ends, values in times])
            for begin, end in ((lengths.warmup, middle), (middle, lengths.total))
        )
        if len(first) and len(second):
            self._halves.append((float(first.mean()), float(second.mean())))

    def check_alive(self) -> None:
        """Refuse clients that stand still in most replications.

        Raises:
            SimulationError: There are some.
        """
        for index, count_of in enumerate(self._gaps):
            if count_of > len(self.sums) / 2:
                raise stuck(self._program, index, GAP * self.lengths.warmup)

    def drifts(self) -> bool:
        """Tell whether response times grow over the window beyond doubt, and by more than a little."""
        if len(self._halves) < FEWEST_ROUGH:
            return False
        halves = np.array(self._halves)
        changes = halves[:, 1] - halves[:, 0]
        drift, error = float(changes.mean()), float(changes.std(ddof=1)) / math.sqrt(len(changes))
        return drift > DRIFT * float(halves.mean()) and drift > DRIFT_ERRORS * error


def _gap(samples: Samples, lengths: Replication) -> float:
    """Return for how long no client has completed a cycle when a run ends, in seconds."""
    ends, _ = samples.unordered()
    return lengths.total - float(ends.max(initial=0.0))


class Pool:
    """Single times of many replications, thinned out once there are too many.

    Args:
        kinds: Of times: populations, or entries.
        capacity: How many of each are kept.
        common: All kinds are thinned out to the same share.
    """

    def __init__(self, kinds: int, capacity: int, *, common: bool) -> None:
        self._capacity = capacity
        self._common = common
        self._masks = [0] * kinds
        # Per kind and replication: moments within it, times, and what to add to the moments.
        self._kept: list[list[tuple[Samples, float, float]]] = [[] for _ in range(kinds)]
        self._counts = [0] * kinds

    def add(self, samples: Sequence[Samples], lengths: Replication, number: int) -> None:
        """Keep the times of one replication that ended in its window."""
        shift, last = lengths.seconds * number - lengths.warmup, lengths.seconds * (number + 1)
        strictest = max(map(attrgetter("mask"), samples), default=0) if self._common else 0
        for kind, of in enumerate(samples):
            self._thin(kind, max(strictest, of.mask))
            ends, values = of.unordered(self._masks[kind])
            inside = (ends >= lengths.warmup) & (ends < lengths.total)
            kept = Samples.of(ends[inside], values[inside], self._masks[kind])
            self._kept[kind].append((kept, shift, last))
            self._counts[kind] += len(kept)
            while self._counts[kind] > self._capacity:
                self._thin(kind, 2 * self._masks[kind] + 1)
        if self._common:
            for kind in range(len(self._masks)):
                self._thin(kind, max(self._masks))

    def _thin(self, kind: int, mask: int) -> None:
        """Leave out what does not stay under a mask, if it is a stricter one."""
        if mask > self._masks[kind]:
            self._masks[kind] = mask
            kept = self._kept[kind]
            self._kept[kind] = [
                (Samples.of(*of.unordered(mask), mask), shift, last) for of, shift, last in kept
            ]
            self._counts[kind] = sum(len(of) for of, *_ in self._kept[kind])

    def samples(self) -> list[Samples]:
        """Return the times of every kind, with moments in the window of all replications."""
        found = []
        for kept, mask in zip(self._kept, self._masks, strict=True):
            parts = [(of.unordered()[0] + shift, of.unordered()[1], last) for of, shift, last in kept]
            # No rounding moves a moment into the next replication.
            ends = [np.minimum(moments, np.nextafter(last, 0.0)) for moments, _, last in parts]
            values = [times for _, times, _ in parts]
            empty = np.empty(0)
            found.append(Samples.of(np.concatenate([empty, *ends]), np.concatenate([empty, *values]), mask))
        return found
