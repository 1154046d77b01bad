"""Tasks of a model that have a set-up, with its cost.

``analyzer.calibration.setup`` knows what sleep costs; this module knows what of a model it concerns: the
endpoints of a service and its front, the cycles of clients, the queries of a database. The time until a
worker that slept is at work shows in the exchange of its caller; here it becomes a delay of the worker.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analyzer.calibration.bend import Bend, Rounds, through
from analyzer.calibration.contention import Links
from analyzer.calibration.framework import FrameworkWork
from analyzer.calibration.load_dependence import shown_by_bursts
from analyzer.calibration.observed import FloatArray, Observed
from analyzer.calibration.setup import APART, EXPLAINED, LEAST, SURE, Line, Place, Setups, line
from analyzer.calibration.sleeping import sleeps
from analyzer.calibration.terms import Key, Kind, Term, Terms
from mup.lqn import Constant, EntryRef, Model, Setup, Task, entry_label
from mup.lqn.refs import WorkNames

__all__ = ["SleepCosts", "sleep_costs", "users_in_step"]

CONFIRMED = 0.02
"""Bursts confirm sleep if no kind of rounds differs from its line by more than this share.

Of fifteen systems with bursts two pass: by sleep one is up to 14 % nearer, the other alike. Of those that
miss it by a few percent more, two come out up to 19 % further off.
"""


@dataclass(slots=True)
class SleepCosts:
    """What the sleep of workers, fronts, clients and databases costs in a model.

    Attributes:
        setups: What is known of it.
        terms: Of the model.
        places: Whose sleep counts, by time; what is missing here does not depend on sleep.
        callees: Per exchange, the entry that is called.
        first: Per entry, the first activities of its paths.
        after_think: Per think step, the activity behind it: that is when a client has slept.
        scales: Per task of which a log does not tell the work of one request from that of others at the same
            time, factors on what its work takes without sleep and on what is on top.
        bends: Per task with an event loop, what replaces the shares of the shape.
    """

    setups: Setups
    terms: Terms
    places: dict[tuple[Kind, Key], Place] = field(default_factory=dict)
    callees: dict[Key, EntryRef] = field(default_factory=dict)
    first: dict[EntryRef, list[str]] = field(default_factory=dict)
    after_think: Mapping[Key, str] = field(default_factory=dict)
    scales: dict[str, tuple[float, float]] = field(default_factory=dict)
    bends: dict[str, Bend] = field(default_factory=dict)

    def line(self, kind: Kind, key: Key, drawn: FloatArray | None = None) -> Line | None:
        """Return what a time is without sleep, and what is on top; None if sleep does not explain it."""
        place = self.places.get((kind, key))
        if place is None:
            return None
        found = self.setups.line(kind, key, self.terms.times[kind, key], place, drawn)
        if found is None or kind != "demand" or not key[1] or key[0] not in self.scales:
            return found
        base, amount = self.scales[key[0]]
        return Line(base * found.base, amount * found.amount)

    def base(self, kind: Kind, key: Key, drawn: FloatArray | None = None) -> float | None:
        """Return a time without sleep, seconds; None if sleep does not explain it."""
        found = self.line(kind, key, drawn)
        return None if found is None else found.base

    def keys(self) -> set[Key]:
        """Return what depends on sleep, and not on the rate of requests."""
        return {key for kind, key in self.places if self.line(kind, key) is not None} | self.callees.keys()

    def explained(self, task: str) -> bool:
        """Return whether the times of a task depend on sleep, and not on the rate of requests."""
        return any(key[0] == task and key not in self.callees for _, key in self.places)

    def factor(self, task: str, drawn: FloatArray) -> float:
        """Return by what all amounts of a task would be multiplied on other rounds."""
        now = then = 0.0
        for (kind, key), place in self.places.items():
            if self._owner(key) != task:
                continue
            often = _often(self.terms.times[kind, key], self.setups, place)
            before, after = self.line(kind, key), self.line(kind, key, drawn)
            if before is not None and after is not None:
                now += often * before.amount
                then += often * after.amount
        return then / now if now > 0 else 1.0

    def _owner(self, key: Key) -> str:
        callee = self.callees.get(key)
        return key[0] if callee is None else callee.task

    def setup(self, task: Task, *, by_thread: bool) -> Setup | None:
        """Return the set-up of a calibrated task; None if it has none.

        Args:
            task: The task.
            by_thread: Every thread of it is a process.
        """
        shape = self.setups.shape
        if shape is None or not self.explained(task.name):
            return None
        keys = WorkNames(task.entries).texts
        found: dict[Kind, dict[str, float]] = {"demand": defaultdict(float), "delay": defaultdict(float)}
        for kind, key in self.places:
            known = self.line(kind, key)
            if known is None or key[0] != task.name or key in self.callees:
                continue
            _, entry, activity = key
            name = "front" if not entry else keys[entry, self.after_think.get(key, activity)]
            found[kind][name] += known.amount
        woken: dict[EntryRef, list[tuple[float, float]]] = defaultdict(list)
        for key, callee in self.callees.items():
            known = self.line("delay", key)
            if callee.task == task.name and known is not None:
                often = _often(self.terms.times["delay", key], self.setups, self.places["delay", key])
                woken[callee].append((often, known.amount))
        for callee, several in woken.items():
            total = sum(often for often, _ in several)
            mean = sum(often * amount for often, amount in several) / total if total > 0 else 0.0
            for activity in self.first.get(callee, ()):
                found["delay"][keys[callee.entry, activity]] += mean
        demands, delays = (
            {name: (float(f"{amount:.6g}"), 0.0) for name, amount in found[kind].items() if amount > LEAST}
            for kind in ("demand", "delay")
        )
        if not demands and not delays:
            return None
        bend = self.bends.get(task.name)
        shares = shape.shares if bend is None else tuple(float(f"{s:.4g}") for s in bend(shape.shares))
        return Setup(
            gaps=shape.gaps,
            worker=shares,
            core=(0.0,) * len(shape.gaps),
            by_thread=by_thread,
            demands=demands,
            delays=delays,
        )


def _often(term: Term, setups: Setups, place: Place) -> float:
    """Return how often a time was there; of framework work, once per sleep of who does it."""
    if term.sample is not None and len(term.sample):
        return term.sample.count(setups.observed.single)
    halves = 2 if place[0] == "front" else 1
    return setups.shares[place].count(setups.observed.single) / halves


def _rounds(
    found: SleepCosts, task: Task, work: FrameworkWork, places: Collection[Place]
) -> tuple[Rounds, Rounds, Rounds] | None:
    """Return what bursts, hot rounds and cold ones show of a task; None if not all are known.

    In bursts only the total of a process is known, relative to that of hot rounds. What a client does while
    it thinks is in that total, and in no line.
    """
    observed = found.setups.observed
    role = "client" if task.is_reference else "worker"
    phases = [observed.phase(name) for name in ("burst", "hot", "cold")]
    relative = work.relative(role, task.name, phases[0], phases[1])
    samples = [found.setups.shares[place] for place in places]
    number = sum(sample.count(observed.single) for sample in samples)
    if relative is None or number <= 0:
        return None
    hot = cold = 0.0
    for often, _, ((_, once), (_, later)) in _demands(found, task):
        hot += often / number * once
        cold += often / number * later
    shares = [np.concatenate([sample.inside(phase) for sample in samples]) for phase in phases]
    if not all(map(len, shares)):
        return None
    return Rounds(shares[0], relative * hot), Rounds(shares[1], hot), Rounds(shares[2], cold)


def _demands(found: SleepCosts, task: Task) -> Iterator[tuple[float, Line, Sequence[tuple[float, float]]]]:
    """Yield how often each demand of a task was there, its line, and mean share and seconds of both kinds."""
    for (kind, key), place in found.places.items():
        if kind != "demand" or key[0] != task.name or not key[1]:
            continue
        term = found.terms.times[kind, key]
        known, both = found.line(kind, key), found.setups.points(kind, term, place)
        if known is not None and len(both) >= 2:
            yield _often(term, found.setups, place), known, both[:2]


def _fit(found: SleepCosts, task: Task, work: FrameworkWork) -> None:
    """Let the work of a task be what bursts, hot rounds and cold ones show, all of it together.

    Lines of single activities miss it: an event loop does other things in between, and what is on no line is
    furthest off where it matters most, in bursts.
    """
    places = {place for (_, key), place in found.places.items() if key[0] == task.name and key[1]}
    rounds = _rounds(found, task, work, places)
    if rounds is None:
        return
    bend = None if task.name in found.bends else through(*rounds, apart=APART)
    if bend is not None:
        found.bends[task.name] = bend
        found.setups.bend(places, bend)
    scale = _scale(found, task, rounds, places)
    if scale is not None:
        found.scales[task.name] = scale


def _bend(found: SleepCosts, task: Task, work: FrameworkWork, mine: Mapping[tuple[Kind, Key], Place]) -> None:
    """Let the work of an event loop follow its sleep, if hot rounds, cold ones and bursts allow it.

    Its front is a process of its own, and goes by the rate.
    """
    of_loop = {time: place for time, place in mine.items() if place[0] == "entry"}
    places = set(of_loop.values())
    found.places.update(of_loop)
    rounds = _rounds(found, task, work, places)
    bend = None if rounds is None else through(*rounds, apart=APART)
    if bend is None:
        for time in of_loop:
            del found.places[time]
    else:
        found.bends[task.name] = bend
        found.setups.bend(places, bend)


def _scale(
    found: SleepCosts, task: Task, rounds: tuple[Rounds, Rounds, Rounds], places: Collection[Place]
) -> tuple[float, float] | None:
    """Return by what the lines of activities miss the work of a task without sleep, and what is on top.

    Without a bend, the line through all kinds of rounds is moved to that of bursts.
    """
    number = sum(found.setups.shares[place].count(found.setups.observed.single) for place in places)
    base = amount = 0.0
    for often, known, _ in _demands(found, task):
        base += often / number * known.base
        amount += often / number * known.amount
    bend = found.bends.get(task.name)
    if bend is None:
        points = [(float(kind.shares.mean()), kind.seconds) for kind in rounds]
        amount_of_all = line(points).amount
        share, seconds = points[0]
        whole = Line(seconds - amount_of_all * share, amount_of_all)
    else:
        whole = Line(bend.base, bend.amount)
    if base <= 0 or amount <= 0 or whole.base <= 0 or whole.amount <= 0:
        return None
    return whole.base / base, whole.amount / amount


def users_in_step(model: Model, observed: Observed) -> bool:
    """Return whether some users of a closed load always think for the same time, as in the log.

    Of two such users the first one wakes workers and cores, and the second one finds them awake: it catches
    up, and they stay together for as long as nothing else parts them. Only a demand that follows sleep shows
    that; one that follows the rate is the same for both. Where rounds shortened the think times of users, the
    log has no sleep as long as theirs, and only a rate can be extrapolated.
    """
    if any(window.phase == "cold" and window.think_scale != 1 for window in observed.windows):
        return False
    return any(
        isinstance(activity.delay, Constant) and activity.delay.mean > 0
        for task in model.tasks
        if task.is_reference and not task.is_open
        for entry in task.entries
        for activity in entry.activities
        if activity.kind == "think"
    )


def sleep_costs(
    terms: Terms,
    observed: Observed,
    links: Links,
    model: Model,
    work: FrameworkWork,
    *,
    sharing: Collection[str],
    loops: Collection[str],
    after_think: Mapping[Key, str],
    confirmed: bool = False,
) -> SleepCosts | None:
    """Find out what sleep explains of the times of a model.

    Args:
        terms: Of the model.
        observed: The run. Of a sample of the requests it is not known when anything slept.
        links: Which task calls which.
        model: Not calibrated yet.
        work: That of the framework.
        sharing: Services whose workers share a process.
        loops: Those of them with an event loop.
        after_think: Per think step of clients, the activity behind it.
        confirmed: Only if rounds of several clients confirm it for every service.

    Returns:
        None if the run does not show it.
    """
    if any(part.info.sample != 1 for part in observed.parts):
        return None
    if confirmed and not observed.phase("burst").any():
        return None
    # The load generator is an event loop, too.
    alone = {*loops, *(task.name for task in model.tasks if task.is_reference)}
    setups = Setups(observed, sleeps(observed.logged, sharing, loops), alone)
    setups.find_shape(terms.times, {task.name for task in model.tasks if task.role == "service"})
    if setups.shape is None:
        return None
    first = {owner: [ref.activity for ref in several] for owner, several in links.first.items()}
    found = SleepCosts(setups, terms, first=first, after_think=after_think)
    callees = {
        (ref.task, ref.entry, ref.activity): callee
        for callee, several in links.callers.items()
        for ref in several
    }
    services = {
        task.name: _mine(setups, terms, task, after_think) for task in model.tasks if task.role == "service"
    }
    explained = {
        name: mine
        for name, mine in services.items()
        if mine and _explains(setups, terms, mine, nearest=CONFIRMED if confirmed else math.inf)
    }
    whole = not confirmed or len(explained) == sum(map(bool, services.values()))
    by_rate = {task.name for task in model.tasks if shown_by_bursts(observed, work, task)}
    if whole:
        for name, mine in explained.items():
            found.places.update(
                {time: place for time, place in mine.items() if place[0] == "entry" or name not in by_rate}
            )
    else:
        for task in model.tasks:
            if task.name in loops:
                _bend(found, task, work, services[task.name])
    if not found.places:
        return None
    for task in model.tasks:
        # Of databases, clients and fronts the log knows what all requests of a round needed together. One
        # user's sleep as little in hot rounds as in bursts, which need up to a third less: if there are some,
        # they go by the rate. Else databases and clients are like services.
        if whole and task.role in ("database", "reference") and task.name not in by_rate:
            found.places.update(_mine(setups, terms, task, after_think))
        if found.explained(task.name) and (task.name in alone or task.name in by_rate):
            _fit(found, task, work)
    for key, callee in callees.items():
        place = ("entry", callee.label)
        if ("delay", key) in terms.times and found.explained(callee.task) and setups.apart(place):
            found.places["delay", key] = place
            found.callees[key] = callee
    return found


def _mine(
    setups: Setups, terms: Terms, task: Task, after_think: Collection[Key]
) -> dict[tuple[Kind, Key], Place]:
    """Return whose sleep the times of a task might follow."""
    return {
        (kind, key): place
        for kind, key in terms.times
        if key[0] == task.name
        and not (kind == "delay" and key in after_think)
        and setups.apart(place := _place(task, key))
    }


def _place(task: Task, key: Key) -> Place:
    if task.role == "database":
        return "database", task.name
    return ("entry", entry_label(task.name, key[1])) if key[1] else ("front", task.name)


def _explains(
    setups: Setups,
    terms: Terms,
    mine: Mapping[tuple[Kind, Key], Place],
    *,
    nearest: float,
) -> bool:
    """Return whether sleep explains how the processor time of a service differs between kinds of rounds.

    Two kinds are always on a line: then requests of one kind, too, have to be longer after longer sleeps, by
    half to twice as much. With bursts, no kind of rounds may be off that line by more than half the
    difference between the quickest and the slowest, nor by more than ``nearest`` as a share of its own time
    (infinite: bursts are not needed), and requests of one kind must not contradict.
    """
    measured, predicted = np.zeros(3), np.zeros(3)
    between = within = variance = 0.0
    for (kind, key), place in mine.items():
        term = terms.times[kind, key]
        known = setups.line(kind, key, term, place)
        if kind != "demand" or known is None:
            continue
        often = _often(term, setups, place)
        points = setups.points(kind, term, place)
        if len(points) == len(measured):
            measured += often * np.array([seconds for _, seconds in points])
            predicted += often * np.array([known.at(share) for share, _ in points])
        if term.sample is None or term.computed is not None or not term.phased:
            continue
        slope, slope_variance = setups.within(key, term)
        logged = setups.points(kind, replace(term, plus=None), place)
        if logged and math.isfinite(slope_variance):
            between += often * line(logged).amount
            within += often * slope
            variance += often**2 * slope_variance
    wanted, error = EXPLAINED * between, math.sqrt(variance)
    if within - SURE * error > between / EXPLAINED:
        # Something else is longer where sleeps are: another kind of request that comes less often.
        return False
    if not measured.any():
        return nearest == math.inf and within > 0 and within >= max(wanted, SURE * error)
    off = np.abs(measured - predicted)
    if (off > nearest * measured).any():
        return False
    left = float(off.max())
    return left <= (1 - EXPLAINED) * float(np.ptp(measured)) and within + SURE * error >= wanted
