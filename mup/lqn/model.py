"""The layered queueing network: frozen, validated data.

A model says which task calls which other one, and on which resources. Units are seconds; unknown numbers
are ``None`` (they print as ``?``), infinite ones ``math.inf`` (``"inf"`` in JSON).

- A *processor* offers cores to the tasks placed on it.
- A *task* is a pool of threads in front of which requests queue, first come first served. A
  *reference task* has clients that cycle for ever instead.
- An *entry* is one service a task offers; its work is a graph of *activities*.
- An *activity* uses its task's processor (``demand``), then passes time without using it
  (``delay``), then makes its *calls* in order; or the calls are interleaved with the demand.
- *Precedences* connect activities: sequence, AND (fork and join, possibly of a quorum), OR (choice and
  merge), loop, and fan-out (a branch that runs a random number of times in parallel).

Thread semantics: a thread is held from admission until the flow that started at ``entry.start``
has run its last activity. In an AND fork that flow continues as the first branch; a branch that is
never joined does not delay it, unless the entry ``waits``. A reply leaves after the activity marked
``replies`` (or at the end of the flow if none is marked); activities behind it are the second phase.

Sources: Franks et al., "Enhanced modeling and solution of layered queueing networks", and Garbi's
thesis, sections 2.2 and 5.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from mup.errors import ModelError, did_you_mean
from mup.lqn.distributions import LARGEST, LEAST, Constant, Distribution
from mup.lqn.refs import entry_label

if TYPE_CHECKING:
    from mup.lqn.uncertainty import Uncertainty  # which needs these classes

__all__ = [
    "LOCK",
    "SCHEMA",
    "SEMAPHORE",
    "Activity",
    "ActivityKind",
    "Admission",
    "Call",
    "CallKind",
    "Discipline",
    "Entry",
    "Forward",
    "Front",
    "LoadDependence",
    "Migration",
    "Model",
    "Precedence",
    "Processor",
    "Role",
    "Setup",
    "Task",
    "Token",
    "entry_label",
]

SCHEMA = "mup-lqn/1"

Discipline = Literal["ps", "fcfs", "hol", "pp", "cores", "infinite"]
Admission = Literal["fifo", "random", "hol"]
CallKind = Literal["synchronous", "send", "releasing"]
Token = Literal["", "acquire", "release", "read-lock", "read-unlock", "write-lock", "write-unlock"]
Role = Literal["reference", "service", "network", "database", "other"]
ActivityKind = Literal["local", "registry", "communication", "think", "after", "choice"]
Connection = Literal["sequence", "and", "or", "loop", "fan-out"]

LEAST_SLEEP: Final = 1e-3
"""Seconds: timers of event loops are not shorter in practice. What others take of a core is, on average:
below 0.1 ms in most systems it was looked at, and 0.2 to 0.6 ms in one."""

SEMAPHORE: Final = ("acquire", "release")
LOCK: Final = ("read-lock", "read-unlock", "write-lock", "write-unlock")
"""The tokens of the entries of a semaphore, and of a reader-writer lock."""

ONCE = Constant(1)
"""How often a call is made unless its count says otherwise."""


def _check(condition: bool, message: str, where: str) -> None:
    if not condition:
        raise ModelError(message, where=where)


def between(points: Sequence[tuple[float, float]], place: float) -> float:
    """Return the value at a place: linear between points, which ascend, and constant outside of them."""
    right = next((p for p in points if p[0] >= place), points[-1])
    left = next((p for p in reversed(points) if p[0] <= place), points[0])
    if right[0] <= left[0]:
        return right[1] if place <= points[0][0] else left[1]
    share = (place - left[0]) / (right[0] - left[0])
    return left[1] + share * (right[1] - left[1])


MAX_COUNT: Final = 10**15
"""Of threads, clients, replicas and cores; what has more of them is infinite for all purposes."""


def _check_count(value: object, what: str, where: str, *, infinite: bool) -> None:
    """Refuse what is no number of things."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and value == math.inf and infinite:
        return
    _check(
        number and 1 <= value < math.inf and value == int(value),  # type: ignore[operator,call-overload]
        f"{what}must be a whole number >= 1, got {value!r}",
        where,
    )
    more = " or infinite ('inf')" if infinite else ""
    _check(
        value <= MAX_COUNT,  # type: ignore[operator]
        f"{what}must be at most {MAX_COUNT}{more}, got {value!r}",
        where,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """How threads move between the cores of a processor whose discipline is ``cores``.

    Threads are sticky: one that wakes up goes back to the core it ran on last, unless it is moved. All
    three at 0 pin every thread to its first core (the k-th thread to core k modulo the cores). A branch
    starts on the core of the flow it was forked from.

    Attributes:
        wake: Probability that a thread that wakes up while its core is busy moves to an idle core.
        steal: Probability that a core that falls idle takes a waiting thread from the fullest core.
        balance: Moves per second from the fullest to the emptiest core while they differ by 2 or more.
        by_utilization: Of the processor (0 to 1), with ``wake`` and ``steal`` there, ascending, linear in
            between and constant outside: where given, these count, and not the two above. (A scheduler
            looks for an idle core the less, and for a thread that waits the more often, the busier it is.)
    """

    wake: float = 0.0
    steal: float = 0.0
    balance: float = 0.0
    by_utilization: tuple[tuple[float, float, float], ...] = ()

    def at(self, utilization: float) -> Migration:
        """Return how threads move at a utilization of the processor."""
        if not self.by_utilization:
            return self
        wake, steal = (
            between([(row[0], row[column]) for row in self.by_utilization], utilization) for column in (1, 2)
        )
        return Migration(wake=wake, steal=steal, balance=self.balance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How the threads on one core of a ``cores`` processor take turns.

    A core runs one thread at a time; the others wait for it in a queue. One that wakes up waits for the end
    of the turn under way, and for those that woke up before it; one that was pushed aside goes on when who
    did so sleeps; one that has had its quantum is the last. A turn goes on from one activity to the next.

    Attributes:
        quantum: Seconds for which a thread runs while others wait for its core, > 0.
        preempt: Probability that a thread that wakes up on a busy core runs at once, in place of the thread
            that runs there.
    """

    quantum: float
    preempt: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """A machine, or the part of one that a container may use.

    Attributes:
        name: Unique in the model.
        cores: How many threads it runs at full speed at once.
        discipline: ``ps`` (work-conserving processor sharing: with n runnable threads each gets
            ``min(1, cores / n)`` of a core), ``cores`` (processor sharing within each core, threads
            stick to theirs, see ``migration``), ``fcfs``, ``hol`` (the waiting thread of the highest
            priority is next, none is interrupted), ``pp`` (the highest priority preempts, and the
            interrupted work resumes later), or ``infinite`` (a core for every thread).
        speed: Factor on the speed of every core; a demand of d seconds takes d / speed.
        migration: Of a ``cores`` processor; None = every thread stays on its first core.
        turns: Of a ``cores`` processor; None = the threads on a core share it equally, all at once.
        parent: The ``ps``, ``cores`` or ``infinite`` processor this one is a part of (a GIL inside a host):
            at most ``cores`` of its threads compete for the parent's cores at once. To a ``cores`` processor
            a part is that many threads. If one task alone is on a part and its replicas divide the cores
            (an interpreter each), every replica has its share and nothing of the others'; otherwise the
            cores are shared by everything on it. On a part that is ``fcfs`` (an event loop) work that follows
            work without a wait does not queue again. None = a machine of its own.
        core: Of a part of a ``cores`` processor: the core that it never leaves, counted from 0 and modulo the
            cores there are; with several, the first of them (each further one is on the next, so that of
            replica r, which has one, is r further). None = it moves as threads do.
        idling: How much longer work takes while the processor is mostly idle: (utilization 0 to 1, factor on
            processor time > 0), ascending by utilization, linear in between and constant outside; () = it
            does not matter. (Cores that doze are slow to wake, and virtual ones have neighbours.)
        background: Work that no task of the model asks for (housekeeping, monitoring), in seconds of
            processor time at speed 1 per second; less than what the processor can do.
    """

    name: str
    cores: float = 1
    discipline: Discipline = "ps"
    speed: float = 1.0
    migration: Migration | None = None
    turns: Turns | None = None
    parent: str | None = None
    core: int | None = None
    idling: tuple[tuple[float, float], ...] = ()
    background: float = 0.0

    def __post_init__(self) -> None:
        where = f"processors[{self.name!r}]"
        cores, kind, speed = self.cores, self.discipline, self.speed
        _check_count(cores, "", f"{where}.cores", infinite=True)
        known = ("ps", "fcfs", "hol", "pp", "cores", "infinite")
        _check(kind in known, f"must be one of {', '.join(known)}, got {kind!r}", f"{where}.discipline")
        _check(
            isinstance(speed, int | float) and 0 < speed < math.inf,
            f"must be a factor > 0, got {speed!r}",
            f"{where}.speed",
        )
        _check(
            LEAST <= speed <= LARGEST,
            f"must be between {LEAST:g} and {LARGEST:g}, got {speed!r}",
            f"{where}.speed",
        )
        for point in self.idling:
            numbers = all(isinstance(v, int | float) and math.isfinite(v) for v in point)
            _check(
                len(point) == 2 and numbers and 0 <= point[0] <= 1 and point[1] > 0,
                f"must be pairs of a utilization from 0 to 1 and a factor > 0, got {point!r}",
                f"{where}.idling",
            )
        _check(
            all(a[0] < b[0] for a, b in pairwise(self.idling)),
            "utilizations must ascend",
            f"{where}.idling",
        )
        busy = self.background
        _check(
            isinstance(busy, int | float) and not isinstance(busy, bool) and 0 <= busy < cores * speed,
            f"must be a number of seconds per second >= 0 and below cores x speed, got {busy!r}",
            f"{where}.background",
        )

    def pinned_core(self, parent: Processor) -> int | None:
        """Return the core of ``parent`` that this, as a part of it with one core, never leaves; else None."""
        if self.parent != parent.name or self.core is None or self.cores != 1:
            return None
        return self.core % int(parent.cores)

    @property
    def is_loop(self) -> bool:
        """Whether it is an event loop: a part in which work queues."""
        return self.discipline == "fcfs" and self.parent is not None

    @property
    def depends_on_utilization(self) -> bool:
        """Whether its speed, or how threads move, is another at another utilization."""
        return bool(self.idling or (self.migration is not None and self.migration.by_utilization))

    @property
    def available(self) -> float:
        """Share of its capacity that its background leaves; 1 with infinitely many cores."""
        return 1 - self.background / (self.cores * self.speed)

    def slowness(self, utilization: float) -> float:
        """Return the factor on processor time at a utilization."""
        return between(self.idling, utilization) if self.idling else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to an entry of another task.

    Attributes:
        task, entry: The target.
        count: How often the request is made: ``Constant`` (a whole number), ``Geometric``, or
            ``Empirical`` (whole numbers); None = never measured.
        kind: ``synchronous`` (the caller's flow waits for the reply and keeps its thread), ``send`` (no
            reply, the flow goes on at once), or ``releasing`` (the flow gives its thread back, waits for
            the reply, and queues for a thread again; the asynchronous call of Garbi's thesis, 2.2, 4.1.1).
    """

    task: str
    entry: str
    count: Distribution | None = ONCE
    kind: CallKind = "synchronous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Instead of replying, hand the request on to another entry, which replies to the caller."""

    task: str
    entry: str
    probability: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One step of an entry.

    Attributes:
        name: Unique in the entry.
        kind: What it stands for in the source; the views of ``mup stats`` count by it.
        demand: Processor time; None = never measured.
        delay: Time that passes without using the processor; None = never measured.
        calls: Made in order after demand and delay.
        interleaved: The demand is cut into slices around the calls. If all counts are geometric, a slice
            of mean ``demand / (1 + sum of mean counts)`` is followed by the end or by one of the calls,
            in proportion 1 : mean counts, again and again; if all are constant, equal slices come before,
            between and after the calls.
        replies: The reply leaves when this activity has ended.
        detached: The branch that starts here may outlive the request that started it.
        line: Source line for display, 0 if there is none.
    """

    name: str
    kind: ActivityKind = "local"
    demand: Distribution | None = None
    delay: Distribution | None = None
    calls: tuple[Call, ...] = ()
    interleaved: bool = False
    replies: bool = False
    detached: bool = False
    line: int = 0

    @property
    def calibrated(self) -> bool:
        """True if both times are known."""
        return self.demand is not None and self.delay is not None

    @property
    def sleeps(self) -> bool:
        """Whether it works and then waits, as a coroutine does that awaits a timer.

        A delay that is shorter on average is none of these, but the moments in which others had the core.
        """
        worked, waited = self.demand, self.delay
        return worked is not None and waited is not None and worked.mean > 0 and waited.mean >= LEAST_SLEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedence:
    """An arc of the activity graph, possibly with several ends.

    Attributes:
        pre: Activities that must end first: all of them (``and``), any one (``or``), or the only one.
        post: Activities that start then: all of them (``and``), one of them (``or``), or the only one.
            Of a ``loop``: the first activity of every body, then the one behind the loop, if any. Of a
            ``fan-out``: the first activity of its branch, then the one behind the fan-out, if any.
        join: How ``pre`` is combined.
        fork: How ``post`` is chosen. In an ``and`` fork the first branch carries on the flow of the
            activity before it (and holds its thread); the others are auxiliary.
        probabilities: For an ``or`` fork, one per ``post``, summing to 1; None = never measured.
        counts: For a ``loop``, how often each body is repeated (as the count of a call), one per body.
            Several bodies with geometric counts are mixed: each time one of them, or the end, is drawn in
            proportion mean counts : 1. Otherwise each is repeated in turn. For a ``fan-out``, its width: how
            many copies of the branch run in parallel, drawn anew each time. The flow itself waits for them.
        quorum: For an ``and`` join: how many of ``pre`` suffice; None = all. The others run on.
        first: For a ``fan-out``: how many copies suffice, or all if there are fewer; None = all. The others
            run on. With 0 the flow does not wait.
        limit: For a ``fan-out``: at most so many copies run at once, the others wait their turn; None = all
            do. Not together with ``first``.
    """

    pre: tuple[str, ...]
    post: tuple[str, ...]
    join: Connection = "sequence"
    fork: Connection = "sequence"
    probabilities: tuple[float, ...] | None = None
    counts: tuple[Distribution | None, ...] = ()
    quorum: int | None = None
    first: int | None = None
    limit: int | None = None

    @property
    def repeats(self) -> bool:
        """True of a loop and of a fan-out: what is in it runs as often as ``counts`` says."""
        return self.fork in ("loop", "fan-out")

    @property
    def bodies(self) -> tuple[str, ...]:
        """The first activity of every body of a loop, or of the branch of a fan-out; else empty."""
        return self.post[: len(self.counts)]

    @property
    def continuation(self) -> str | None:
        """The activity behind a loop or fan-out; None if nothing follows, or of other arcs."""
        if not self.repeats or len(self.post) <= len(self.counts):
            return None
        return self.post[len(self.counts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One service of a task: an activity graph with one start.

    Attributes:
        name: Unique in the task: the endpoint path, query name or network exchange.
        start: First activity.
        activities: All activities.
        precedences: The arcs between them.
        forwards: Where the request may be handed on instead of replying; the probabilities sum to at
            most 1, the rest is a reply.
        arrivals: Time between requests that come from outside, in seconds (an open workload). Of a
            reference task: the scenario starts anew at every arrival, there are no clients.
        priority: Added to that of the calling task where requests queue by priority.
        token: ``acquire`` (the thread stays taken after the entry has ended) or ``release`` (the entry
            needs no thread and gives one back that an ``acquire`` took): a semaphore. ``read-lock``,
            ``read-unlock``, ``write-lock``, ``write-unlock``: a lock that ``threads`` readers hold, or one
            writer.
        waits: The thread is held until all branches have ended, joined or not; if no activity is marked
            ``replies``, the reply leaves then, too.
        paths: Execution paths this entry was translated from, as the sequences of remote
            operations they stand for; empty for models that did not come from source code.
        fingerprint: Of the source the entry was translated from; "" if none.
    """

    name: str
    start: str
    activities: tuple[Activity, ...]
    precedences: tuple[Precedence, ...] = ()
    forwards: tuple[Forward, ...] = ()
    arrivals: Distribution | None = None
    priority: int = 0
    token: Token = ""
    waits: bool = False
    paths: tuple[Mapping[str, Any], ...] = ()
    fingerprint: str = ""

    def activity(self, name: str) -> Activity:
        """Return the activity of this name (KeyError if there is none)."""
        for activity in self.activities:
            if activity.name == name:
                return activity
        raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Framework work per request outside the worker: a single event loop per replica.

    It is a process of its own: where its task is on a part of a processor (threads share an interpreter),
    the front is on the processor around it.

    Attributes:
        request: Processor time to read and dispatch a request, spent before it may queue.
        reply: Processor time to send the reply, spent after the worker has handed it over.
        holds: Whether a thread whose entry ends with its reply (nothing but activities of kind ``after`` that
            call nobody follow) is not free before the front has sent that: the front reads first the reply,
            then that the thread is free. What follows is taken to begin when the reply has been sent; in
            fact it is done meanwhile, so a thread is held too long by the shorter of both.
    """

    request: Distribution | None
    reply: Distribution | None
    holds: bool = False


LOAD_DEPENDENCE_EXPONENT = 0.35
"""Of the rate, in how the processor time of requests depends on it; read off a web server process whose time
per request was followed over two decades of rates."""
LOAD_DEPENDENCE_BELOW, LOAD_DEPENDENCE_ABOVE = 2.0, 4.0
"""So many times below and above the measured rates processor time goes on changing. Below that it does not:
what is cold gets no colder (``benchmarks/pauses.py``). Further above nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDependence:
    """How processor time per request depends on how often requests come.

    A process that is asked rarely finds its caches cold and is woken up for every single message; one that
    is asked often finds several messages at once. Both are known at a few rates; in between, times are
    linear in ``rate ** -0.35``, and they go on like that down to half of the first rate and up to ``above``
    times the last one.

    Attributes:
        rates: Requests per second and replica (of a reference task: cycles per second of all its clients), at
            least two, ascending.
        by_thread: Every thread is a process of its own, with caches of its own: to its work it matters how
            often the thread is asked; to the front, as always, how often the replica is.
        demands: Per ``entry:activity`` (``mup.lqn.refs.WorkNames``) or ``front`` (both halves together) the
            seconds of processor time on top of what the task says, at each of the rates; 0 at the rate the
            task's own numbers are from.
        delays: The same for delays.
        above: So many times above the last rate times go on changing; 1 where that is a busy system's.
    """

    rates: tuple[float, ...]
    by_thread: bool = False
    demands: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    delays: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    above: float = LOAD_DEPENDENCE_ABOVE

    def __post_init__(self) -> None:
        rates = self.rates
        good = all(isinstance(r, int | float) and 0 < r < math.inf for r in rates)
        ascending = good and all(a < b for a, b in pairwise(rates))
        _check(
            good and ascending and len(rates) >= 2,
            f"must be at least two rates > 0, ascending, got {rates!r}",
            "load_dependence.rates",
        )
        _check(
            isinstance(self.above, int | float) and 1 <= self.above < math.inf,
            f"must be a number >= 1, got {self.above!r}",
            "load_dependence.above",
        )
        for name in ("demands", "delays"):
            for key, values in getattr(self, name).items():
                finite = all(isinstance(v, int | float) and math.isfinite(v) for v in values)
                _check(
                    finite and len(values) == len(rates),
                    f"must be {len(rates)} numbers of seconds, one per rate, got {values!r}",
                    f"load_dependence.{name}[{key!r}]",
                )

    def at(self, values: tuple[float, ...], rate: float) -> float:
        """Return what one of the lists says at a rate; seconds."""
        lowest, highest = self.rates[0] / LOAD_DEPENDENCE_BELOW, self.rates[-1] * self.above
        x: float = min(max(rate, lowest), highest) ** -LOAD_DEPENDENCE_EXPONENT
        known: list[float] = [r**-LOAD_DEPENDENCE_EXPONENT for r in self.rates]
        right = next((i for i in range(1, len(known)) if x >= known[i]), len(known) - 1)
        share = (known[right - 1] - x) / (known[right - 1] - known[right])
        return values[right - 1] + share * (values[right] - values[right - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Time on top of a request's own by how long its worker, and the core it runs on, slept before it.

    A worker that was asleep is woken by the operating system, finds its caches cold, and a core that dozed
    is slow to wake. Work that was waiting already costs none of this: at a gap of 0 both shares are 0. Up
    to the first of the knots a share is that at the first, beyond the last that at the last, in between
    linear in the logarithm of the gap.

    Both gaps are those at the beginning of a request, when it has its thread, and hold for all its
    activities. A client is taken to begin anew after every think time. The front has gaps of its own, at
    each of its halves.

    - The worker's: how long the thread, or the replica, had slept. 0 if the request had waited for it. Of the
      idle threads of a replica the one that was busy last is asked first. Of clients: how long all of them
      had been thinking.
    - The core's: of a machine with several cores that share (``ps`` and the like), how long ago the number of
      busy cores last fell to what it is now; of a ``cores`` processor, how long the core has been idle that
      the thread ran on last; of a part, that of the machine it is a part of. Where there is a core for every
      thread, the worker's.

    Attributes:
        gaps: Knots: seconds of sleep, ascending, > 0.
        worker: Share of the worker's set-up at each of the gaps, 0 to 1, never falling.
        core: The same for that of the core.
        by_thread: Every thread is a process of its own and sleeps by itself. Else the replica sleeps (one
            interpreter) while it has no request at all, and so do tasks with unlimited threads; an event
            loop, which is a part that is ``fcfs``, sleeps while nothing works on it.
        demands: Per ``entry:activity`` (``mup.lqn.refs.WorkNames``) or ``front`` (both halves together) the
            seconds of processor time at speed 1 on top of every execution: of a worker fully cold, and of a
            core fully cold. A drawn time gets longer by them; its distribution keeps its shape.
        delays: The same for delays.
    """

    gaps: tuple[float, ...]
    worker: tuple[float, ...]
    core: tuple[float, ...]
    by_thread: bool = False
    demands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    delays: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        gaps = self.gaps
        good = all(map(_is_number, gaps)) and all(0 < g < math.inf for g in gaps)
        _check(
            good and len(gaps) >= 1 and all(a < b for a, b in pairwise(gaps)),
            f"must be at least one number of seconds > 0, ascending, got {gaps!r}",
            "setup.gaps",
        )
        for name in ("worker", "core"):
            shares = getattr(self, name)
            good = all(map(_is_number, shares)) and all(0 <= share <= 1 for share in shares)
            _check(
                good and len(shares) == len(gaps) and all(a <= b for a, b in pairwise(shares)),
                f"must be {len(gaps)} shares from 0 to 1, one per gap, never falling, got {shares!r}",
                f"setup.{name}",
            )
        for name in ("demands", "delays"):
            for key, seconds in getattr(self, name).items():
                good = len(seconds) == 2 and all(map(_is_number, seconds))
                _check(
                    good and all(0 <= s < math.inf for s in seconds),
                    f"must be two numbers of seconds >= 0, of the worker and of the core, got {seconds!r}",
                    f"setup.{name}[{key!r}]",
                )

    def share(self, shares: tuple[float, ...], gap: float) -> float:
        """Return what ``worker`` or ``core`` says after a gap in seconds, which may be infinite."""
        gaps = self.gaps
        if gap <= 0:
            return 0.0
        if gap <= gaps[0]:
            return shares[0]
        if gap >= gaps[-1]:
            return shares[-1]
        right = next(i for i, knot in enumerate(gaps) if gap < knot)
        part = math.log(gap / gaps[right - 1]) / math.log(gaps[right] / gaps[right - 1])
        return shares[right - 1] + part * (shares[right] - shares[right - 1])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A pool of threads, per replica, on a processor.

    Attributes:
        name: Unique in the model.
        role: ``reference`` tasks generate load; the other roles only matter for display and counting.
        threads: Requests one replica serves at once (``pool_size`` in the source); for a reference
            task the number of clients; ``inf`` for a pure delay and for a reference task with arrivals.
        replicas: Identical copies; a request picks one uniformly at random.
        processor: Where it runs; None = as many cores as it can use.
        entries: At least one; a reference task has exactly one.
        admission: Who gets the next free thread: ``fifo``, ``random`` (any waiting request), or ``hol``
            (the highest priority first, among equals first come first served).
        priority: Of its requests and of its threads, where something queues by priority; higher is first.
        front: Per-replica framework work, if it was measured.
        load_dependence: How its processor times change with the rate of requests, if that was measured.
        setup: What its work costs on top after sleep, if that was measured; a task has no load dependence
            then.
        think: Think time before each cycle of a reference task (think steps inside the scenario are
            activities of kind ``think``).
    """

    name: str
    role: Role = "service"
    threads: float = 1
    replicas: int = 1
    processor: str | None = None
    entries: tuple[Entry, ...] = ()
    admission: Admission = "fifo"
    priority: int = 0
    front: Front | None = None
    load_dependence: LoadDependence | None = None
    setup: Setup | None = None
    think: Distribution | None = None

    def __post_init__(self) -> None:
        where = f"tasks[{self.name!r}]"
        what = "clients" if self.role == "reference" else "threads"
        infinite = self.role != "reference" or self.is_open
        _check_count(self.threads, f"{what} ", f"{where}.threads", infinite=infinite)
        _check_count(self.replicas, "", f"{where}.replicas", infinite=False)

    @property
    def is_reference(self) -> bool:
        """True if this task generates the load."""
        return self.role == "reference"

    @property
    def is_semaphore(self) -> bool:
        """True if its threads are tokens, which some of its entries take and others give back."""
        return bool(self.entries) and all(entry.token in SEMAPHORE for entry in self.entries)

    @property
    def is_open(self) -> bool:
        """True for a reference task whose scenario starts at arrivals from outside."""
        return self.is_reference and any(e.arrivals is not None for e in self.entries)

    def entry(self, name: str) -> Entry:
        """Return the entry of this name (KeyError if there is none)."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)


class _Indexed:
    """What finds tasks and processors by name, once it has been made; no part of the model."""

    __slots__ = ("_index",)

    _index: tuple[dict[str, Task], dict[str, Processor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(_Indexed):
    """A whole layered queueing network.

    Attributes:
        name: For display.
        processors: Unique names.
        tasks: Unique names; at least one reference task if it is to be simulated.
        provenance: Where the numbers come from (runs, host, versions, coverage); free-form JSON.
        uncertainty: How sure they are; None if that is unknown (see ``mup.lqn.uncertainty``).

    Raises:
        ModelError: Listing every violated rule, one per line, each with the path of the element.
    """

    name: str
    processors: tuple[Processor, ...] = ()
    tasks: tuple[Task, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    uncertainty: Uncertainty | None = None

    def __post_init__(self) -> None:
        from mup.lqn.validation import problems  # noqa: PLC0415  (validation needs these classes)

        found = problems(self)
        if self.uncertainty is not None:
            from mup.lqn.uncertainty import uncertainty_problems  # noqa: PLC0415

            found += uncertainty_problems(self.uncertainty, self.tasks)
        if len(found) == 1:
            raise found[0]
        if found:
            listing = "\n".join(f"  {p}" for p in found)
            raise ModelError(f"{len(found)} problems\n{listing}", where=self.name)

    def with_numbers(
        self,
        tasks: tuple[Task, ...],
        processors: tuple[Processor, ...],
        uncertainty: Uncertainty | None,
    ) -> Model:
        """Return a model of other times, probabilities and speeds.

        The rules are not checked again, which would take longer than to change the numbers: they are about
        what has to be as it was.

        Args:
            tasks: Those of this model, in the same order, valid in themselves.
            processors: Likewise.
            uncertainty: Of these numbers.
        """
        changed = copy(self)
        given = ("tasks", tasks), ("processors", processors), ("uncertainty", uncertainty)
        for name, value in given:
            object.__setattr__(changed, name, value)
        return changed

    def task(self, name: str) -> Task:
        """Return the task of this name.

        Raises:
            ModelError: There is none; the message suggests the closest name.
        """
        task = self._by_name()[0].get(name)
        if task is not None:
            return task
        known = [t.name for t in self.tasks]
        raise ModelError(f"the model has no task {name!r}; {did_you_mean(name, known)}", where=self.name)

    def processor(self, name: str) -> Processor:
        """Return the processor of this name.

        Raises:
            ModelError: There is none; the message suggests the closest name.
        """
        processor = self._by_name()[1].get(name)
        if processor is not None:
            return processor
        known = [p.name for p in self.processors]
        raise ModelError(f"the model has no processor {name!r}; {did_you_mean(name, known)}", where=self.name)

    def _by_name(self) -> tuple[dict[str, Task], dict[str, Processor]]:
        """Return tasks and processors by name: big models are asked for thousands of each."""
        try:
            return self._index
        except AttributeError:
            index = {t.name: t for t in self.tasks}, {p.name: p for p in self.processors}
            object.__setattr__(self, "_index", index)
            return index

    @property
    def reference_tasks(self) -> tuple[Task, ...]:
        """The tasks that generate load."""
        return tuple(t for t in self.tasks if t.is_reference)

    def walk(self) -> Iterator[tuple[Task, Entry, Activity]]:
        """Yield every activity with its entry and task, in file order."""
        for task in self.tasks:
            for entry in task.entries:
                for activity in entry.activities:
                    yield task, entry, activity

    def front_processor(self, task: Task) -> str | None:
        """Return the processor the front of a task runs on; None if the task has cores of its own.

        A front is a process of its own. It does not share the part of a processor that stands for the
        interpreter of a replica's threads, or for the core they are pinned to, but the processor around it.
        """
        name = task.processor
        while name is not None and (whole := self.processor(name).parent) is not None:
            name = whole
        return name

    def with_task(self, task: Task) -> Model:
        """Return the model with the task of the same name replaced."""
        return replace(self, tasks=tuple(task if t.name == task.name else t for t in self.tasks))

    def with_processor(self, processor: Processor) -> Model:
        """Return the model with the processor of the same name replaced."""
        return replace(
            self,
            processors=tuple(processor if p.name == processor.name else p for p in self.processors),
        )
