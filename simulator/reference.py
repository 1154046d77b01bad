"""What does a program mean? The reference engine, on SimPy: the executable definition of the semantics.

One SimPy process per flow interprets the instructions of ``simulator.program``. Read ``_flow`` first.

Simultaneous events happen in SimPy's order: at one instant, flows that have just been created start
first, in order of creation; everything else follows in the order in which it was scheduled. A flow runs
on without interruption until it has to wait for something.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from math import inf

from simpy import Environment, Event, Process, Timeout

from mup.errors import SimulationError
from simulator.program import (
    ADMIT,
    CALL,
    CHOICE,
    CYCLE,
    DELAY,
    END,
    FORK,
    FRONT_GIVE,
    FRONT_TAKE,
    GOTO,
    JOIN,
    REPLY,
    RETURN,
    THINK,
    USE,
    Program,
)
from simulator.recording import Level, Samples
from simulator.servers import FcfsProcessor, Processor, SharedProcessor, Station
from simulator.variates import Stream, client_stream, sampler

__all__ = ["ReferenceEngine"]

MAX_EMPTY_CYCLES = 10_000
"""Cycles of no duration in a row before a client is declared to spin."""

CYCLE_SAMPLES = 1 << 19
ENTRY_SAMPLES = 1 << 15


class _EngineError(Exception):
    """Carries a SimulationError out of SimPy, which rebuilds exceptions from positional arguments."""


class _Request:
    """One execution of an entry; for a client, one cycle."""

    __slots__ = (
        "active",
        "admitted",
        "arrived",
        "caller",
        "carried_call",
        "entry",
        "joins",
        "parked",
        "parked_at",
        "population",
        "released",
        "replica",
        "replied",
        "return_to",
        "thought",
    )

    def __init__(
        self, entry: int, now: float, caller: _Request | None, return_to: int, carried: bool
    ) -> None:
        self.entry = entry
        self.replica = 0
        self.arrived = now
        self.admitted = now
        self.caller = caller or self  # nobody calls a client
        self.return_to = return_to  # address in the caller's code
        self.carried_call = carried  # whether the calling flow carries the caller's thread
        self.active = 1  # flows at work for this request, here or in what they call
        self.joins: dict[int, int] | None = None  # arrivals so far, per join
        self.parked: Event | None = None  # what the carrying flow waits for at a join
        self.parked_at = -1
        self.replied = False
        self.released = False
        self.thought = 0.0
        self.population = -1


class _Replica:
    """The resources of one copy of a task."""

    __slots__ = ("front", "threads")

    def __init__(self, env: Environment, threads: float) -> None:
        self.front = Station(env, 1)
        self.threads = Station(env, threads)


class ReferenceEngine:
    """A program being executed. Time starts at 0 with every client about to think.

    Args:
        program: What to execute.
        seed: Same seed, same run.
    """

    name = "reference"

    def __init__(self, program: Program, seed: int) -> None:
        self.program = program
        self.now = 0.0
        """How far the run has got, in simulated seconds."""
        self.events = 0
        """Timed steps begun so far (thinks, delays, uses of a processor)."""
        self.cycle_samples = Samples(CYCLE_SAMPLES)
        self.population_samples = [Samples(CYCLE_SAMPLES) for _ in program.populations]
        self.entry_samples = [Samples(ENTRY_SAMPLES) for _ in program.entries]
        self._env = env = Environment()
        self._draw: list[Callable[[Stream], float]] = [sampler(d) for d in program.distributions]
        self._servers: list[Processor] = [
            (SharedProcessor if s.shared else FcfsProcessor)(env, s.cores, s.speed) for s in program.servers
        ]
        clients = {p.task for p in program.populations}
        self._replicas = [
            [] if i in clients else [_Replica(env, t.threads) for _ in range(t.replicas)]
            for i, t in enumerate(program.tasks)
        ]
        self._waiting = [Level() for _ in program.tasks]
        self._busy = [Level() for _ in program.tasks]
        self._inside = [Level() for _ in program.entries]
        self._thinking = [Level() for _ in program.populations]
        self._cycles = [[0, 0.0, 0.0] for _ in program.populations]
        client_entry = {e.task: i for i, e in enumerate(program.entries)}
        for index, population in enumerate(program.populations):
            for client in range(population.clients):
                cycle = _Request(client_entry[population.task], 0.0, None, population.start, True)
                cycle.population = index
                stream = client_stream(seed, index, client)
                Process(env, self._flow(stream, cycle, population.start, True))

    def run_until(self, time: float) -> None:
        """Execute everything that happens before ``time`` (seconds).

        Raises:
            SimulationError: Nothing can happen any more, a join cannot complete, or a client spins.
        """
        # Not ``run(until=time)``: that leaves a marker among the events.
        peek, step = self._env.peek, self._env.step
        try:
            while (following := peek()) < time:
                step()
        except _EngineError as failure:
            error: SimulationError = failure.args[0]
            raise error from None
        self.now = time
        if following == inf:
            raise self._deadlock()

    def snapshot(self) -> list[float]:
        """Return all sums as of now; the columns are those of ``Layout``."""
        now = self.now
        columns: list[float] = []
        for waiting, busy in zip(self._waiting, self._busy, strict=True):
            columns += waiting.snapshot(now)
            columns += busy.snapshot(now)
        for level in (*self._inside, *self._thinking):
            columns += level.snapshot(now)
        for server in self._servers:
            columns += server.accounts(now)
        for cycles in self._cycles:
            columns += cycles
        return columns

    def _flow(  # one interpreter loop, told top to bottom
        self, stream: Stream, request: _Request, at: int, carries: bool
    ) -> Generator[Event, None, None]:
        """Execute instructions from address ``at`` until the flow ends."""
        env, code, draw = self._env, self.program.code, self._draw
        entries, replicas, servers = self.program.entries, self._replicas, self._servers
        empty_cycles = 0
        while True:
            operation, a, b = code[at]
            at += 1

            if operation == USE:
                demand = draw[b](stream)
                if demand > 0:
                    self.events += 1
                    yield servers[a].use(demand)

            elif operation == DELAY:
                self.events += 1
                yield Timeout(env, draw[b](stream))

            elif operation == CALL:
                entry = entries[a]
                copies = replicas[entry.task]
                request = _Request(a, env.now, request, at, carries)
                if len(copies) > 1:
                    request.replica = int(stream.uniform() * len(copies))
                carries = True
                self._inside[a].enter(env.now)
                at = entry.start

            elif operation == ADMIT:
                task = entries[request.entry].task
                asked = env.now
                wait = replicas[task][request.replica].threads.take()
                if wait is not None:
                    # The caller's thread stays held while its request waits here: this is what moves
                    # a bottleneck up a layer.
                    self._waiting[task].enter(asked)
                    yield wait
                    self._waiting[task].leave(env.now, asked)
                request.admitted = env.now
                self._busy[task].enter(env.now)

            elif operation == END:
                entry = entries[request.entry]
                request.active -= 1
                if request.population >= 0:
                    if not carries:
                        self._check_join(request)
                        return
                    at = entry.epilogue
                    continue
                if carries:
                    self._busy[entry.task].leave(env.now, request.admitted)
                    replicas[entry.task][request.replica].threads.give()
                    request.released = True
                else:
                    self._check_join(request)
                if request.replied or not request.released:
                    return
                if entry.replies_elsewhere and request.active > 0:
                    return  # one of the other flows may still send the reply
                request.replied = True
                at = entry.epilogue

            elif operation == RETURN:
                now = env.now
                self._inside[request.entry].leave(now, request.arrived)
                self.entry_samples[request.entry].add(now, now - request.arrived)
                at, carries = request.return_to, request.carried_call
                request = request.caller

            elif operation == CHOICE:
                choice = self.program.choices[a]
                at = choice.addresses[bisect_right(choice.cumulative, stream.uniform())]

            elif operation == FORK:
                request.active += 1
                Process(env, self._flow(stream.child(), request, a, False))

            elif operation == JOIN:
                if self._arrive_at_join(request, a, b):
                    continue
                if not carries:
                    self._check_join(request)
                    return
                parked = Event(env)
                request.parked, request.parked_at = parked, a
                self._check_join(request)
                yield parked

            elif operation == REPLY:
                if not request.replied:
                    request.replied = True
                    Process(env, self._flow(stream.child(), request, at, carries))
                    at = entries[request.entry].epilogue

            elif operation == FRONT_TAKE:
                wait = replicas[entries[request.entry].task][request.replica].front.take()
                if wait is not None:
                    yield wait

            elif operation == FRONT_GIVE:
                replicas[entries[request.entry].task][request.replica].front.give()

            elif operation == THINK:
                self.events += 1
                time = draw[b](stream)
                if carries:
                    begun = env.now
                    self._thinking[request.population].enter(begun)
                    yield Timeout(env, time)
                    self._thinking[request.population].leave(env.now, begun)
                    request.thought += env.now - begun
                else:
                    yield Timeout(env, time)

            elif operation == CYCLE:
                empty_cycles = 0 if self._finish_cycle(request) > 0 else empty_cycles + 1
                if empty_cycles > MAX_EMPTY_CYCLES:
                    raise _EngineError(self._spins(request))
                at = request.return_to
                # A new request: branches of the last cycle may still be at work for the old one.
                following = _Request(request.entry, env.now, None, at, True)
                following.population = request.population
                request = following

            elif operation == GOTO:
                at = a

    def _arrive_at_join(self, request: _Request, join: int, needed: int) -> bool:
        """Count an arrival; return whether the arriving flow goes on.

        The flow that carries the thread waits at the join for the others and goes on as itself; of
        auxiliary flows among themselves the last to arrive goes on.
        """
        if request.joins is None:
            request.joins = {}
        arrived = request.joins[join] = request.joins.get(join, 0) + 1
        if arrived < needed:
            request.active -= 1
            return False
        if request.parked is None or request.parked_at != join:
            return True
        request.parked.succeed()
        # One flow ends here and the parked one is back at work, so ``active`` stays as it is.
        request.parked, request.parked_at = None, -1
        return False

    def _check_join(self, request: _Request) -> None:
        """A request whose only living flow waits at a join will wait for ever."""
        if request.active == 0 and request.parked_at >= 0:
            raise _EngineError(
                SimulationError(
                    "this join can never complete: no branch that could still arrive is left",
                    where=self.program.joins[request.parked_at],
                    hint="every branch it names must be started by a fork of the same request, on every path",
                )
            )

    def _finish_cycle(self, request: _Request) -> float:
        """Record a client's cycle; return its duration, think time included, in seconds."""
        now = self._env.now
        duration = now - request.arrived
        response = max(0.0, duration - request.thought)
        sums = self._cycles[request.population]
        sums[0] += 1
        sums[1] += response
        sums[2] += duration
        self.cycle_samples.add(now, response)
        self.population_samples[request.population].add(now, response)
        return duration

    def _spins(self, request: _Request) -> SimulationError:
        task = self.program.tasks[self.program.populations[request.population].task].name
        return SimulationError(
            f"{MAX_EMPTY_CYCLES} cycles of a client took no time at all at {self._env.now} s",
            where=f"tasks[{task!r}]",
            hint="give it a think time, or some demand or delay on the way",
        )

    def _deadlock(self) -> SimulationError:
        stuck = [
            spec.name
            for spec, copies in zip(self.program.tasks, self._replicas, strict=True)
            if any(copy.threads.stuck for copy in copies)
        ]
        return SimulationError(
            f"deadlock at {self._env.now:g} s: every client waits, and all threads of "
            f"{', '.join(map(repr, stuck))} are held by requests that wait for one of them",
            where=f"tasks[{stuck[0]!r}]" if stuck else self.program.name,
            hint="a service that is called back while its caller's thread is held needs more threads",
        )
