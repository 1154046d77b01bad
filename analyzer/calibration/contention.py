"""How much of the delays of a run was waiting for a core?

Even a single user makes several things happen at once: branches of an execution that run side by side, fronts
and workers that clear up after a reply, the load generator. What waits for a core meanwhile shows in a log as
wall time beyond processor time, hence as a delay; and a simulation, which has the same things compete for the
same cores, would make it wait once more: a single user's response time came out several percent too long.

So the calibrated model is simulated with one client, and what its activities wait for cores is taken off
their delays. Where an activity waits longer than its delay was, the rest was logged elsewhere: the time a
front waits, or a worker before the first statement of an endpoint, is part of the exchange of whoever calls;
so is the time until a caller that has been woken runs. Less delay means other overlaps, so this is repeated.

The thesis needs nothing like it: in its model every thread has a core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mup.errors import SimulationError, UncalibratedError
from mup.lqn import Distribution, Model, Replicate, entry_label
from mup.lqn.edits import with_clients
from mup.lqn.uncertainty import apply
from simulator import simulate

__all__ = ["Links", "Settled", "without_waiting"]

ROUNDS = 2
"""A third changed a single user's response time by less than 0.2 %."""
PRECISION = 0.02


@dataclass(slots=True)
class Links:
    """Where the waiting of an activity was logged that is not part of its own delay.

    Labels are ``entry:activity``, as in results; those of a front are ``entry:front.request`` and
    ``entry:front.reply``.

    Attributes:
        elsewhere: Per activity, those in whose delay it is.
        callers: Per entry, the activities of ``Net`` that are under way when it is called.
        first: Per entry, the first activities of its paths.
    """

    elsewhere: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    callers: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    first: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def of(self, label: str) -> Sequence[str]:
        """Return where the waiting of an activity or front was logged beside its own delay."""
        entry, _, activity = label.rpartition(":")
        if activity.startswith("front.") or label in self.first.get(entry, ()):
            return self.callers.get(entry, ())
        return self.elsewhere.get(label, ())


@dataclass(frozen=True, slots=True)
class Settled:
    """A model whose delays hold no waiting for cores.

    Attributes:
        model: The model.
        taken: Per activity, the seconds taken off its delay.
        response_time: Of the single client, simulated; None if that was not possible.
        problem: Why nothing could be taken off, or "".
    """

    model: Model
    taken: Mapping[str, float]
    response_time: float | None
    problem: str = ""

    def replicate(self, draw: Replicate, logged: Model) -> Replicate:
        """Return a replicate of the logged model for the settled one: what was taken off is not in doubt."""
        means = {label: delay.mean for label, delay in _delays(logged)}
        delays = {}
        for label, factor in draw.delays.items():
            mean, taken = means.get(label, 0.0), self.taken.get(label, 0.0)
            left = mean - taken
            delays[label] = factor if not taken or left <= 0 else max(0.0, (factor * mean - taken) / left)
        return replace(draw, delays=delays)


def without_waiting(model: Model, links: Links) -> Settled:
    """Return a model of which a single client waits for cores as long as it did in the run.

    Args:
        model: Calibrated, with delays as they were logged. Without clients it stays as it is.
        links: Where waiting was logged.
    """
    if [task.is_open for task in model.reference_tasks] != [False]:
        return Settled(model, {}, None)
    logged = {label: delay.mean for label, delay in _delays(model)}
    settled, taken = model, dict[str, float]()
    response: float | None = None
    for _ in range(ROUNDS):
        try:
            result = simulate(with_clients(settled, 1), precision=PRECISION, activities=True)
        except (UncalibratedError, SimulationError) as error:
            return Settled(model, {}, None, error.message)
        response = result.cycle.response_time.mean
        waiting = {
            label: activity.processor_waiting.mean
            for label, activity in result.activities.items()
            if activity.processor_waiting is not None
        }
        taken = _taken(logged, waiting, links)
        left = {label: 1 - seconds / logged[label] for label, seconds in taken.items()}
        settled = apply(model, Replicate(delays=left))
    return Settled(settled, taken, response)


def _taken(logged: Mapping[str, float], waiting: Mapping[str, float], links: Links) -> dict[str, float]:
    """Return by how much each delay is too long."""
    wanted = defaultdict[str, float](float)
    for label, seconds in waiting.items():
        own = min(seconds, logged.get(label, 0.0))
        wanted[label] += own
        for other in links.of(label):
            wanted[other] += seconds - own
    return {label: min(wanted[label], logged[label]) for label in logged if wanted[label] > 0}


def _delays(model: Model) -> Iterator[tuple[str, Distribution]]:
    """Yield the delays that are no think times, by the label of their activity."""
    for task, entry, activity in model.walk():
        if activity.delay is not None and activity.delay.mean > 0 and activity.kind != "think":
            yield f"{entry_label(task.name, entry.name)}:{activity.name}", activity.delay
