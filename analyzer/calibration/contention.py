"""Separate the waiting for a core from the delays of a run.

Even a single user makes several things happen at once: branches of an execution that run side by side, fronts
and workers that clear up after a reply, the load generator. What waits for a core meanwhile shows in a log as
wall time beyond processor time, hence as a delay; and a simulation, which has the same things compete for the
same cores, would make it wait once more: a single user's response time came out several percent too long.

So the calibrated model is simulated with one client, and what its activities wait for cores is taken off
their delays. Some rounds of a run leave out think times, and there a request also meets what the last one
left to do after its reply; so both kinds are simulated, and each gives what is taken off the delays that were
logged in rounds of its kind. Where an activity waits longer than its delay was, the rest was logged
elsewhere: the time a front waits, or a worker before the first statement of an endpoint, is part of the
exchange of the caller; so is the time until a caller that has been woken runs. Less delay means other
overlaps, so this is repeated.

The thesis needs nothing like it: in its model every thread has a core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mup.errors import SimulationError, UncalibratedError
from mup.lqn import ActivityRef, Distribution, EntryRef, Model, Names, Replicate, Task
from mup.lqn.edits import with_clients, with_think
from mup.lqn.refs import FRONT, WorkNames
from mup.lqn.uncertainty import apply
from simulator import simulate

__all__ = ["Links", "WithoutWaiting", "without_waiting"]

ROUNDS = 2
"""A third changed a single user's response time by less than 0.2 %."""
PRECISION = 0.02
"""Relative; a log tells contention less exactly."""


@dataclass(slots=True)
class Links:
    """Where the waiting of an activity was logged that is not part of its own delay.

    Attributes:
        elsewhere: Per activity, those in whose delay it is.
        callers: Per entry, the activities of ``Net`` that are under way when it is called.
        first: Per entry, the first activities of its paths.
        undisturbed: Activities whose delay was sampled where no other request used their core.
        queued: Per activity whose delay holds waiting for the only thread of what it calls, what that is.
    """

    elsewhere: dict[ActivityRef, list[ActivityRef]] = field(default_factory=lambda: defaultdict(list))
    callers: dict[EntryRef, list[ActivityRef]] = field(default_factory=lambda: defaultdict(list))
    first: dict[EntryRef, list[ActivityRef]] = field(default_factory=lambda: defaultdict(list))
    undisturbed: set[ActivityRef] = field(default_factory=set)
    queued: dict[ActivityRef, EntryRef] = field(default_factory=dict)

    def of(self, ref: ActivityRef) -> Sequence[ActivityRef]:
        """Return where the waiting of an activity was logged beside its own delay."""
        if ref in self.first.get(ref.owner, ()):
            return self.callers.get(ref.owner, ())
        return self.elsewhere.get(ref, ())


@dataclass(frozen=True, slots=True)
class WithoutWaiting:
    """A model whose delays hold no waiting for cores.

    Attributes:
        model: The model.
        taken: Per activity, the seconds taken off its delay.
        response_time: Of the single client with its think times, simulated; None if that was not possible.
        problem: Why nothing could be taken off, or "".
    """

    model: Model
    taken: Mapping[ActivityRef, float]
    response_time: float | None
    problem: str = ""

    def replicate(self, draw: Replicate, logged: Model) -> Replicate:
        """Return a replicate of the logged model for the reduced one: what was taken off is not in doubt."""
        means = {ref: delay.mean for ref, delay in _delays(logged)}
        refs = Names(logged.tasks).by_key
        delays = {}
        for key, factor in draw.delays.items():
            mean, taken = means.get(refs[key], 0.0), self.taken.get(refs[key], 0.0)
            left = mean - taken
            delays[key] = factor if not taken or left <= 0 else max(0.0, (factor * mean - taken) / left)
        return replace(draw, delays=delays)


def without_waiting(model: Model, links: Links, *, hot: float = 0.0) -> WithoutWaiting:
    """Return a model of which a single client waits for cores as long as it did in the run.

    Args:
        model: Calibrated, with delays as they were logged: of hot rounds if there were any, and by the
            load dependence of its tasks of cold ones. Without clients it stays as it is.
        links: Where waiting was logged.
        hot: Share of the cycles that were hot, which means without think times. A delay that does not
            differ between rounds was logged in both kinds.
    """
    if [task.is_open for task in model.reference_tasks] != [False]:
        return WithoutWaiting(model, {}, None)
    names = Names(model.tasks)
    logged = {ref: delay.mean for ref, delay in _delays(model)}
    colder = {ref: extra for task in model.tasks for ref, extra in _colder(task)} if hot else {}
    logged_cold = {ref: max(0.0, mean + colder.get(ref, 0.0)) for ref, mean in logged.items()}
    reduced, taken = model, dict[ActivityRef, float]()
    response: float | None = None
    for _ in range(ROUNDS):
        try:
            response, waiting = _single_client(reduced, links)
            taken = cold = _taken(logged_cold, waiting, links)
            if hot:
                _, waiting = _single_client(_back_to_back(reduced), links)
                of_hot = _taken(logged, waiting, links)
                taken = {
                    ref: of_hot.get(ref, 0.0)
                    if ref in colder
                    else hot * of_hot.get(ref, 0.0) + (1 - hot) * cold.get(ref, 0.0)
                    for ref in of_hot.keys() | cold.keys()
                }
        except (UncalibratedError, SimulationError) as error:
            return WithoutWaiting(model, {}, None, error.message)
        # Rounding may make the sum of two shares more than the whole.
        left = {names.activity(ref): 1 - min(1.0, sec / logged[ref]) for ref, sec in taken.items()}
        reduced = apply(model, Replicate(delays=left))
        if colder:
            moved = {ref: taken.get(ref, 0.0) - cold.get(ref, 0.0) for ref in colder}
            reduced = replace(reduced, tasks=tuple(_less_cold(task, moved) for task in reduced.tasks))
    return WithoutWaiting(reduced, taken, response)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """How long activities and the fronts of entries wait for cores, ``queued`` ones for threads; seconds."""

    activities: Mapping[ActivityRef, float]
    fronts: Mapping[EntryRef, float]
    queued: Mapping[ActivityRef, float]


def _single_client(model: Model, links: Links) -> tuple[float, _Waiting]:
    """Return the response time of a single client, and how long what it causes waits."""
    alone = with_clients(model, 1)
    result = simulate(alone, precision=PRECISION, activities=True)
    names = Names(alone.tasks)

    def waiting(ref: ActivityRef) -> float:
        found = result.activities.get(names.activity(ref))
        return 0.0 if found is None or found.processor_waiting is None else found.processor_waiting.mean

    def queued(ref: ActivityRef, entry: EntryRef) -> float:
        found = result.calls.get(f"{names.activity(ref)} -> {names.entries[entry]}")
        return 0.0 if found is None or found.waiting is None else found.waiting.mean

    fronts = {owner: sum(waiting(names.beside(owner, phase)) for phase in FRONT) for owner in names.entries}
    return result.cycle.response_time.mean, _Waiting(
        {ref: waiting(ref) for ref in names.activities()},
        fronts,
        {ref: queued(ref, entry) for ref, entry in links.queued.items()},
    )


def _back_to_back(model: Model) -> Model:
    """Return the model in hot rounds: clients do not think, and no delay is longer than in cold rounds.

    Where one is, that may well be waiting for what the last round left to do. As a delay it would let that
    end before the next request comes, and hide the waiting it is.
    """
    names = Names(model.tasks)
    means = {ref: delay.mean for ref, delay in _delays(model)}
    longer = {
        ref: extra
        for task in model.tasks
        for ref, extra in _colder(task)
        if extra < 0 and means.get(ref, 0.0) > 0
    }
    factors = {names.activity(ref): max(0.0, 1 + extra / means[ref]) for ref, extra in longer.items()}
    same = apply(model, Replicate(delays=factors))
    moved = {ref: -extra for ref, extra in longer.items()}
    return with_think(replace(same, tasks=tuple(_less_cold(task, moved) for task in same.tasks)), 0.0)


def _colder(task: Task) -> Iterator[tuple[ActivityRef, float]]:
    """Yield by how much the delays of activities are longer in cold rounds."""
    load_dependence = task.load_dependence
    if load_dependence is None or not any(
        extra[0] for extra in (*load_dependence.demands.values(), *load_dependence.delays.values())
    ):
        # The rounds at its lowest rate are the hot ones: what they had is no extra.
        return
    pairs = WorkNames(task.entries).pairs
    for key, extra in load_dependence.delays.items():
        yield ActivityRef(task.name, *pairs[key]), extra[0]


def _less_cold(task: Task, moved: Mapping[ActivityRef, float]) -> Task:
    """Return a task of which the delays of cold rounds are longer by some seconds, by activity."""
    if task.load_dependence is None:
        return task
    pairs = WorkNames(task.entries).pairs
    delays = {
        key: (extra[0] + moved.get(ActivityRef(task.name, *pairs[key]), 0.0), *extra[1:])
        for key, extra in task.load_dependence.delays.items()
    }
    return replace(task, load_dependence=replace(task.load_dependence, delays=delays))


def _taken(logged: Mapping[ActivityRef, float], waiting: _Waiting, links: Links) -> dict[ActivityRef, float]:
    """Return by how much each delay is too long."""
    wanted = defaultdict[ActivityRef, float](float)
    for ref, seconds in waiting.activities.items():
        own = 0.0 if ref in links.undisturbed else min(seconds, logged.get(ref, 0.0))
        wanted[ref] += own
        for other in links.of(ref):
            wanted[other] += seconds - own
    for owner, seconds in waiting.fronts.items():
        for other in links.callers.get(owner, ()):
            wanted[other] += seconds
    for ref, seconds in waiting.queued.items():
        wanted[ref] += seconds
    return {ref: min(wanted[ref], logged[ref]) for ref in logged if wanted[ref] > 0}


def _delays(model: Model) -> Iterator[tuple[ActivityRef, Distribution]]:
    """Yield the delays that are no think times."""
    for task, entry, activity in model.walk():
        if activity.delay is not None and activity.delay.mean > 0 and activity.kind != "think":
            yield ActivityRef(task.name, entry.name, activity.name), activity.delay
