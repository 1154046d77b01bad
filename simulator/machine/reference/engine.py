"""Reference engine, on SimPy: the executable definition of what a program means.

One SimPy process per flow interprets the instructions of ``simulator.program``. Read ``_flow`` first.

At one instant, flows that have just been created start first, in order of creation, then those that
others let go on, in that order; then come the events of processors, then timed steps that end, in the
order of the flows' keys. A key is the first state of the flow's random stream. A flow runs on without
interruption until it has to wait for something.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from math import inf
from typing import Any

import numpy as np
from simpy import Environment, Event, Process

from mup.errors import LimitError, SimulationError
from simulator.machine.budget import Budget
from simulator.machine.failures import (
    deadlock,
    endless_instant,
    impossible_join,
    spinning_client,
    token_overflow,
)
from simulator.machine.recording import Bins, Layout, Level, Samples, sample_capacities
from simulator.machine.reference.servers import FLOWS, Lock, Seat, SharedServer, Station, servers, wake
from simulator.machine.reference.sleep import Rest
from simulator.machine.reference.sticky_server import StickyPart
from simulator.machine.setups import K_CORE, K_WORKER, share_after, sleep_tables, with_setup
from simulator.machine.variates import Stream, client_stream, resource_stream, tables
from simulator.program import (
    ACQUIRES,
    ADMIT,
    BEGIN,
    BRANCH,
    BY_FRONT,
    BY_REPLICA,
    CALL,
    CHOICE,
    COUNT,
    CYCLE,
    DELAY,
    END,
    FAN_OUT,
    FINISH,
    FOR_NOTHING,
    FOR_THREAD,
    FOR_WRITING,
    FORK,
    FORWARD,
    FRONT_GIVE,
    FRONT_TAKE,
    GOTO,
    JOIN,
    LATE,
    LEAVE,
    LOCKED,
    LOCKS,
    LOOP,
    MAX_EMPTY_CYCLES,
    MAX_STANDSTILL,
    REACQUIRE,
    RELEASE,
    RELEASES,
    REPLY,
    REST,
    RETURN,
    SEND,
    SERVED,
    SETUP_STEP,
    SPLIT,
    TAKE,
    THINK,
    THOUGHT,
    UNREADS,
    UNWRITES,
    USE,
    WAKE,
    Program,
)

__all__ = ["ReferenceEngine"]


# What becomes of a flow that arrives at a join.
GOES_ON, WAITS_OR_ENDS, COMES_LATE = range(3)


PAUSE_STEPS = 1000
"""Steps after which the budget is looked at."""


class _EngineError(Exception):
    """Carries a SimulationError out of SimPy, which rebuilds exceptions from positional arguments."""


class _Request:
    """One execution of an entry; for a client, one cycle."""

    __slots__ = (
        "active",
        "admitted",
        "arrived",
        "awake",
        "caller",
        "carried",
        "carrier",
        "clocks",
        "ended",
        "entry",
        "joined",
        "joins",
        "parked",
        "parked_at",
        "population",
        "registers",
        "released",
        "replied",
        "return_to",
        "seat",
        "shares",
        "site",
        "station",
        "thought",
        "waiting_since",
    )

    def __init__(self, entry: int, now: float, caller: _Request | None, return_to: int, site: int) -> None:
        self.entry = entry
        self.station = -1
        self.site = site  # where it was sent; -1 for a client's cycle
        self.arrived = now
        self.waiting_since = now
        self.admitted = now
        self.caller = caller  # None: the reply is not awaited
        self.return_to = return_to  # address in the caller's code
        self.carrier: _Flow | None = None  # the flow that holds the thread, unless it has made a call
        self.carried = False  # the flow that called carried the caller's request
        self.active = 1  # flows at work for this request, here or in what they call
        self.joins: dict[int, int] = {}  # arrivals so far, per counter
        self.joined = -inf  # when a branch last arrived at a join before its carrying flow
        self.registers: dict[int, int] = {}
        self.clocks: dict[int, float] = {}
        self.parked: Event | None = None  # what the carrying flow waits for at a join
        self.parked_at = -1
        self.ended = False  # the carrying flow has run its last activity
        self.released = False  # the thread is free again
        self.replied = False
        self.seat: Seat | None = None
        self.thought = 0.0
        self.population = -1
        self.awake = False  # of a client's cycle: it has something to do
        self.shares = (0.0, 0.0)  # of the set-up of its worker and of the core that it gets


class _Flow:
    """What tells flows apart: their randomness, their turn among simultaneous events, their core."""

    __slots__ = ("demand", "held_since", "keeps", "key", "seat", "since", "slept", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.key = stream.state
        self.seat = Seat()
        self.keeps = -1  # the server on which it has just ended work: until it waits it keeps its place there
        self.held_since = 0.0  # since when it has that place, in a part that queues
        self.since = 0.0  # when its last think time or use of a processor began
        self.demand = 0.0  # of that use
        self.slept = 0.0  # how long the thread or front had that it has just got


def _seat(request: _Request, flow: _Flow) -> Seat:
    """Return the thread that runs a flow: that of its request if it carries it, else one of its own."""
    return request.seat if request.carrier is flow and request.seat else flow.seat


_AWAY = _Flow(Stream(0))
"""Carries a request while the flow that did is away on a call."""


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
        self.trace: Callable[[float, int, int], None] | None = None
        """Called with (moment, key of the flow, address) at every timed step."""
        layout = Layout(program)
        capacities = sample_capacities(program)
        self.population_samples = [Samples(capacities.population) for _ in program.populations]
        self.entry_samples = [Samples(capacities.entry) for _ in program.entries]
        self._layout = layout
        self._env = env = Environment()
        self._tables = tables(program.distributions)
        bits = np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
        self._servers = servers(env, program, [_resource(bits, 0, i) for i in range(len(program.servers))])
        self._first_station = layout.first_station
        self._threads: list[Station] = []
        self._fronts: list[Station] = []
        self._front_seats: list[Seat] = []
        seated = [0] * len(program.servers)
        for index, task in enumerate(program.tasks):
            for _ in range(layout.first_station[index + 1] - layout.first_station[index]):
                number = len(self._threads)
                seats = []
                front_seat = Seat()
                for server, count in task.seated:
                    cores = int(program.servers[server].cores)
                    for _seat in range(count):
                        seats.append(Seat(seated[server] % cores))
                        seated[server] += 1
                if task.front and task.front_server >= 0:
                    front_seat = seats.pop()
                stream = _resource(bits, 1, number)
                if task.admission == LOCKED:
                    self._threads.append(Lock(env, task.threads, stream, seats))
                else:
                    self._threads.append(
                        Station(env, task.threads, task.admission, program.ranks, stream, seats)
                    )
                self._fronts.append(Station(env, 1, 0, 1, stream, []))
                self._front_seats.append(front_seat)
                if task.sleep >= 0:
                    by_thread = program.sleeps[task.sleep].by_thread
                    self._threads[-1].rest = Rest(one_by_one=by_thread)
                    self._fronts[-1].rest = Rest(one_by_one=False)
        self._sleep_tables = sleep_tables(program)
        self._client_rests = [Rest(one_by_one=False) for _ in program.populations]
        self._waiting = [Level() for _ in range(layout.places)]
        self._busy = [Level() for _ in range(layout.places)]
        self._inside = [Level() for _ in program.entries]
        self._thinking = [Level() for _ in program.populations]
        self._cycles = [[0.0, 0.0, 0.0] for _ in program.populations]
        self._sites = [[0.0, 0.0] for _ in program.sites]
        self._joins = [[0.0, 0.0] for _ in program.joins]
        self._activities = [[0.0, 0.0, 0.0] for _ in program.activities]
        self._setups = [[0.0, 0.0] for _ in program.setups]
        self._standstill = 0
        self._budget: Budget | None = None
        self._steps = 0
        self._noted = 0
        for index, population in enumerate(program.populations):
            for client in range(max(1, population.clients)):
                stream = Stream(int(client_stream(bits, np.uint64(index), np.uint64(client))))
                cycle = _Request(population.entry, 0.0, None, population.start, -1)
                cycle.population = -1 if population.is_open else index
                self._begin(_Flow(stream), cycle, population.first, carries=not population.is_open)
        for index, start in enumerate(program.background, start=len(program.populations)):
            stream = Stream(int(client_stream(bits, np.uint64(index), np.uint64(0))))
            cycle = _Request(0, 0.0, None, start, -1)
            cycle.population = -1
            self._begin(_Flow(stream), cycle, start, carries=False)

    def run_until(self, time: float, budget: Budget | None = None) -> None:
        """Execute everything that happens before ``time`` (seconds).

        Args:
            time: Simulated seconds since the beginning.
            budget: Of the study; what this takes is taken from it.

        Raises:
            LimitError: The budget is used up; the run cannot go on.
            SimulationError: Nothing can happen any more, a join cannot complete, or a client spins.
        """
        self._budget = budget
        # Not ``run(until=time)``: that leaves a marker among the events.
        env = self._env
        peek, step = env.peek, env.step
        try:
            while (following := peek()) < time:
                if following > env.now:
                    self._standstill = 0
                self._standstill += 1
                if self._standstill > MAX_STANDSTILL:
                    raise endless_instant(self.program, env.now)
                self._pause()
                step()
        except _EngineError as failure:
            error: SimulationError = failure.args[0]
            raise error from None
        if budget is not None:
            budget.note(self._more())
        self.now = time
        if following == inf:
            stuck = [i for i, s in enumerate(self._threads) if s.waiting]
            raise deadlock(self.program, self._layout, env.now, stuck)
        env._now = time  # noqa: SLF001 - accounts are read as of now

    def record(self, bins: Bins, end: float, most_events: int, budget: Budget | None = None) -> None:
        """Add bins until one ends at ``end`` (seconds) or later, or so many events have begun.

        Args:
            bins: Those of this run from its beginning.
            end: Simulated seconds since the beginning.
            most_events: Events of the whole run.
            budget: As for `run_until`.

        Raises:
            LimitError, SimulationError: As `run_until`; bins that were finished have been added.
        """
        while bins.end < end:
            self.run_until(bins.next_time, budget)
            bins.add(self.snapshot())
            if self.events >= most_events or (budget is not None and budget.reached() is not None):
                return

    def _pause(self) -> None:
        """Look now and then whether the budget is used up."""
        self._steps += 1
        if self._budget is not None and self._steps % PAUSE_STEPS == 0:
            try:
                self._budget.use(self._more())
            except LimitError as error:
                raise _EngineError(error) from None

    def _more(self) -> int:
        """Return the events since this was last asked for."""
        more, self._noted = self.events - self._noted, self.events
        return more

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
            columns += server.accounts()
        for sums in (*self._cycles, *self._sites, *self._joins, *self._activities, *self._setups):
            columns += sums
        return columns

    def _begin(self, flow: _Flow, request: _Request, at: int, *, carries: bool) -> None:
        if carries:
            request.carrier = flow
        Process(self._env, self._flow(flow, request, at))

    def _after(self, flow: _Flow, delay: float, at: int) -> Event:
        """Return the event that a timed step of this flow has ended."""
        self.events += 1
        if self.trace is not None:
            self.trace(self._env.now, flow.key, at)
        return wake(self._env, Event(self._env), FLOWS + flow.key, delay)

    def _flow(  # one interpreter loop, told top to bottom
        self, flow: _Flow, request: _Request, at: int
    ) -> Generator[Event, Any, None]:
        """Execute instructions from address ``at`` until the flow ends."""
        env, code, source, stream = self._env, self.program.code, self._tables, flow.stream
        entries, tasks, place_of = self.program.entries, self.program.tasks, self._layout.place_of
        empty_cycles = 0
        while True:
            operation, a, b, c = code[at]
            at += 1

            if operation == USE:
                demand = stream.draw(source, b)
                setup, c = c // SETUP_STEP - 1, c % SETUP_STEP
                if setup >= 0:
                    demand += self._setup(setup, request, flow)
                if demand > 0:
                    self.events += 1
                    begun = env.now
                    if self.trace is not None:
                        self.trace(begun, flow.key, at)
                    seat = _seat(request, flow)
                    if c == BY_FRONT:
                        seat = self._front_seats[request.station]
                    task, server = entries[request.entry].task, a
                    if c == BY_REPLICA:
                        server += request.station - self._first_station[task]
                    since = flow.held_since if flow.keeps == server else None
                    done = self._servers[server].use(demand, flow.key, tasks[task].rank, seat, since=since)
                    since = yield done
                    flow.since, flow.demand, flow.keeps = begun, demand, -1
                    if since is not None:
                        flow.keeps, flow.held_since = server, since
                else:
                    flow.since, flow.demand = env.now, 0.0

            elif operation == SERVED:
                waited = (env.now - flow.since) - flow.demand / self.program.servers[b].pace
                self._activities[a][2] += waited

            elif operation == DELAY:
                time = stream.draw(source, b)
                if c > 0:
                    time += self._setup(c - 1, request, flow)
                yield self._after(flow, time, at)
                flow.keeps = -1

            elif operation == CALL:
                caller = request
                request = _Request(a, env.now, caller, at, b)
                request.carried = caller.carrier is flow
                if request.carried:
                    caller.carrier = _AWAY
                request.carrier = flow
                request.station = self._pick(entries[a].task, stream)
                self._inside[a].enter(env.now)
                at = entries[a].start

            elif operation in (ADMIT, REACQUIRE):
                place = place_of[request.station]
                station = self._threads[request.station]
                request.waiting_since = env.now
                if a != FOR_NOTHING:
                    if a == FOR_THREAD:
                        wait = station.take(self.program.sites[request.site].rank)
                    else:
                        wait = self._lock(request).lock(writes=a == FOR_WRITING)
                    if wait is not None:
                        # The caller's thread stays held while its request waits here: this is what moves
                        # a bottleneck up a layer.
                        self._waiting[place].enter(request.waiting_since)
                        request.seat = yield wait
                        self._waiting[place].leave(env.now, request.waiting_since)
                        flow.slept, flow.keeps = 0.0, -1
                    else:
                        if station.seats:
                            request.seat = station.seats.pop()
                        if station.rest is not None:
                            flow.slept = station.rest.take(env.now)
                request.admitted = env.now
                if entries[request.entry].token != RELEASES:
                    self._busy[place].enter(env.now)
                if operation == ADMIT:
                    sums = self._sites[request.site]
                    sums[0] += 1
                    sums[1] += env.now - request.waiting_since

            elif operation == RELEASE:
                self._busy[place_of[request.station]].leave(env.now, request.admitted)
                self._give(request)

            elif operation == END:
                entry = entries[request.entry]
                request.active -= 1
                if request.carrier is flow:
                    request.ended = True
                    request.carrier = None
                else:
                    self._check_join(request)
                if request.ended and not request.released and (not entry.waits or request.active == 0):
                    request.released = True
                    if request.site >= 0:
                        self._end_service(request, entry.token)
                if request.replied or not request.released:
                    return
                if entry.replies_elsewhere and request.active > 0:
                    return  # one of the other flows may still send the reply
                request.replied = True
                if request.site >= 0 and request.caller is None:
                    self._leave(request)
                    return  # the reply is not awaited
                at = entry.epilogue

            elif operation == RETURN:
                self._leave(request)
                at, waiting = request.return_to, request.caller
                assert waiting is not None  # noqa: S101 - who waits for a reply is known
                if request.carried and waiting.carrier is _AWAY:
                    waiting.carrier = flow  # not always the flow that called: any may bring the reply
                request = waiting

            elif operation == FORWARD:
                self._leave(request)
                handed = _Request(a, env.now, request.caller, request.return_to, b)
                handed.carrier = flow
                handed.carried = request.carried
                handed.station = self._pick(entries[a].task, stream)
                self._inside[a].enter(env.now)
                request = handed
                at = entries[a].start

            elif operation == SEND:
                child = _Flow(stream.child())
                sent = _Request(a, env.now, None, -1, b)
                sent.population = self.program.sites[b].population
                sent.station = self._pick(entries[a].task, child.stream)
                self._inside[a].enter(env.now)
                self._begin(child, sent, entries[a].start, carries=True)

            elif operation == CHOICE:
                choice = self.program.choices[a]
                at = choice.addresses[bisect_right(choice.cumulative, stream.uniform())]

            elif operation == COUNT:
                request.registers[a] = int(stream.draw(source, b))

            elif operation == LOOP:
                if request.registers[a] == 0:
                    at = b
                else:
                    request.registers[a] -= 1

            elif operation == FORK:
                request.active += 1
                branch = _Flow(stream.child())
                branch.seat.core = _seat(request, flow).core
                self._begin(branch, request, a, carries=False)

            elif operation == FAN_OUT:
                width = request.registers[b]
                request.joins[self.program.joins[a].slot] = -(min(width, c) if c > 0 else width)
                if c < 0:
                    request.joins[self.program.joins[a].slot] = -min(width, -1 - c)
                request.registers[b + 1] = min(width, c) if c > 0 else width

            elif operation == BRANCH:
                request.active += 1
                branch = _Flow(stream.child())
                branch.seat.core = _seat(request, flow).core
                copy = _Request(request.entry, env.now, request, -1, -1)
                copy.station, copy.shares = request.station, request.shares
                self._begin(branch, copy, a, carries=True)

            elif operation == TAKE:
                around = request.caller
                assert around is not None  # noqa: S101 - a copy is within a request
                if around.registers[a] == 0:
                    at = b
                else:
                    around.registers[a] -= 1

            elif operation == LEAVE:
                around = request.caller
                assert around is not None  # noqa: S101 - a copy is within a request
                request = around

            elif operation == JOIN:
                arrived = self._arrive_at_join(request, a, flow)
                if arrived == GOES_ON:
                    continue
                if arrived == COMES_LATE:
                    at = LATE
                    continue
                if request.carrier is not flow:
                    self._check_join(request)
                    return
                parked = Event(env)
                request.parked, request.parked_at = parked, a
                self._check_join(request)
                yield parked
                flow.keeps = -1

            elif operation == REPLY:
                if request.replied:
                    continue
                request.replied = True
                if request.caller is None:
                    self._leave(request)  # the rest of a message, whose reply is not awaited
                    continue
                second = _Flow(stream.child())
                # It is the same thread, or coroutine, that goes on.
                second.keeps, second.held_since, flow.keeps = flow.keeps, flow.held_since, -1
                self._begin(second, request, at, carries=request.carrier is flow)
                at = entries[request.entry].epilogue

            elif operation == FRONT_TAKE:
                front = self._fronts[request.station]
                wait = front.take(0)
                if wait is not None:
                    yield wait
                    flow.slept, flow.keeps = 0.0, -1
                elif front.rest is not None:
                    flow.slept = front.rest.take(env.now)

            elif operation == FRONT_GIVE:
                self._fronts[request.station].give(None)

            elif operation == WAKE:
                self._wake(request, flow, a, b, c)

            elif operation == REST:
                if request.awake:
                    request.awake = False
                    self._client_rests[request.population].give(env.now)

            elif operation == SPLIT:
                request.clocks[a] = env.now

            elif operation == BEGIN:
                request.clocks[b] = env.now

            elif operation == FINISH:
                self._activities[a][0] += 1
                self._activities[a][1] += env.now - request.clocks[b]

            elif operation == THINK:
                flow.since = env.now
                if request.carrier is flow and request.population >= 0:
                    self._thinking[request.population].enter(env.now)
                yield self._after(flow, stream.draw(source, b), at)
                flow.keeps = -1

            elif operation == THOUGHT:
                if request.carrier is flow and request.population >= 0:
                    self._thinking[request.population].leave(env.now, flow.since)
                    request.thought += env.now - flow.since

            elif operation == CYCLE:
                duration = self._finish_cycle(request)
                empty_cycles = 0 if duration > 0 else empty_cycles + 1
                if empty_cycles > MAX_EMPTY_CYCLES:
                    name = self.program.populations[request.population].name
                    raise _EngineError(spinning_client(name, env.now))
                at = request.return_to
                # A new request: branches of the last cycle may still be at work for the old one.
                following = _Request(request.entry, env.now, None, at, -1)
                following.population = request.population
                following.carrier = flow
                request = following

            elif operation == GOTO:
                self._pause()
                at = a

    def _pick(self, task: int, stream: Stream) -> int:
        """Choose a replica uniformly at random; return its station."""
        first = self._first_station[task]
        copies = self._first_station[task + 1] - first
        return first + int(stream.uniform() * copies) if copies > 1 else first

    def _wake(self, request: _Request, flow: _Flow, sleep: int, server: int, c: int) -> None:
        """Note the shares of set-ups after sleep, when a request begins its work or a client goes on."""
        gap = flow.slept
        if request.station < 0:
            if request.awake or request.ended:
                return
            request.awake = True
            gap = self._client_rests[request.population].take(self._env.now)
        elif c == BY_REPLICA:
            server += request.station - self._first_station[self.program.entries[request.entry].task]
        part = None if server < 0 else self._servers[server]
        if isinstance(part, StickyPart | SharedServer) and (slept := part.loop_slept()) is not None:
            gap = slept
        request.shares = self._shares(sleep, gap, server, _seat(request, flow))

    def _shares(self, sleep: int, gap: float, server: int, seat: Seat) -> tuple[float, float]:
        """Return the shares of both set-ups after a gap of the worker, at a server (-1 if there is none)."""
        core = gap if server < 0 else self._servers[server].slept(seat.core, gap)
        knots, bounds = self._sleep_tables.knots, self._sleep_tables.bounds
        return (
            share_after(knots, bounds, sleep, K_WORKER, gap),
            share_after(knots, bounds, sleep, K_CORE, core),
        )

    def _setup(self, setup: int, request: _Request, flow: _Flow) -> float:
        """Return the seconds that a use or delay gets after sleep, and count them."""
        spec, shares = self.program.setups[setup], request.shares
        if spec.by_front:
            seat = self._front_seats[request.station]
            shares = self._shares(spec.sleep, flow.slept, spec.server, seat)
        seconds = with_setup(self._sleep_tables.seconds, setup, *shares)
        self._setups[setup][0] += 1
        self._setups[setup][1] += seconds
        return seconds

    def _give(self, request: _Request) -> None:
        seat, request.seat = request.seat, None
        self._threads[request.station].give(seat)

    def _end_service(self, request: _Request, token: int) -> None:
        """The worker is done with a request: free its thread, unless that is a token returned elsewhere."""
        if token == ACQUIRES:
            return
        busy = self._busy[self._layout.place_of[request.station]]
        if token == RELEASES:
            busy.leave_any(self._env.now)
        else:
            busy.leave(self._env.now, request.admitted)
        if token == LOCKS:
            return
        station = self._threads[request.station]
        held = token != RELEASES or station.free < station.capacity
        if token in (UNREADS, UNWRITES):
            held = self._lock(request).unlock(writes=token == UNWRITES)
        elif held:
            self._give(request)
        if not held:
            task = self.program.tasks[self.program.entries[request.entry].task].name
            raise _EngineError(token_overflow(task, self._env.now))

    def _lock(self, request: _Request) -> Lock:
        station = self._threads[request.station]
        assert isinstance(station, Lock)  # noqa: S101 - only entries of locks lock and unlock
        return station

    def _leave(self, request: _Request) -> None:
        """A request has been answered."""
        now = self._env.now
        self._inside[request.entry].leave(now, request.arrived)
        self.entry_samples[request.entry].add(now, now - request.arrived)
        if request.population >= 0:
            self._finish_cycle(request)

    def _arrive_at_join(self, request: _Request, join: int, flow: _Flow) -> int:
        """Count an arrival; return what becomes of the arriving flow.

        The flow that carries the request waits at the join for the others and goes on as itself; of
        auxiliary flows among themselves the one that completes the join goes on. If that happens while
        the carrying flow is still on its way (a quorum), the request is carried on by the flow that goes on.
        """
        spec = self.program.joins[join]
        arrived = request.joins.get(spec.slot, 0) + 1
        request.joins[spec.slot] = 0 if arrived == spec.arrivals else arrived
        if arrived > spec.needed:
            return COMES_LATE
        if arrived < spec.needed:
            request.active -= 1
            if request.carrier is not flow:
                request.joined = self._env.now
            return WAITS_OR_ENDS
        if spec.timer >= 0:
            sums = self._joins[join]
            sums[0] += 1
            sums[1] += self._env.now - request.clocks[spec.timer]
        if request.parked is None or request.parked_at != join:
            if spec.needed < spec.arrivals and spec.carried:
                request.carrier = flow
            if flow.keeps >= 0 and request.joined > flow.held_since:
                flow.keeps = -1  # an event loop has to be given up to see what has come meanwhile
            return GOES_ON
        request.parked.succeed()
        # One flow ends here and the parked one is back at work, so ``active`` stays as it is.
        request.parked, request.parked_at = None, -1
        return WAITS_OR_ENDS

    def _check_join(self, request: _Request) -> None:
        """A request whose only living flow waits at a join will wait for ever."""
        if request.active == 0 and request.parked_at >= 0:
            raise _EngineError(impossible_join(self.program.joins[request.parked_at].where))

    def _finish_cycle(self, request: _Request) -> float:
        """Record a cycle; return its duration, think time included, in seconds."""
        now = self._env.now
        duration = now - request.arrived
        response = max(0.0, duration - request.thought)
        sums = self._cycles[request.population]
        sums[0] += 1
        sums[1] += response
        sums[2] += duration
        self.population_samples[request.population].add(now, response)
        return duration


def _resource(seed: np.uint64, kind: int, index: int) -> Stream:
    return Stream(int(resource_stream(seed, np.uint64(kind), np.uint64(index))))
