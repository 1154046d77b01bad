"""Seats of parts move between sticky cores in both engines, and no work is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from engine_comparison import assert_engines_agree, together
from sim_models import act, agrees, clients, entry, exp, service

from mup.lqn import Constant, Migration, Model, Processor
from simulator import simulate
from simulator.analytic import estimate
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.reference.engine import ReferenceEngine
from simulator.machine.reference.sticky_server import StickyServer
from simulator.program import Program, compile_model

NEVER = Migration(wake=0.0, steal=0.0, balance=0.0)
WAKE = Migration(wake=1.0, steal=0.0, balance=0.0)
STEAL = Migration(wake=0.0, steal=1.0, balance=0.0)
BALANCE = Migration(wake=0.0, steal=0.0, balance=40.0)
AT_ONCE = Migration(wake=0.0, steal=0.0, balance=1e9)
IDEAL = Migration(wake=1.0, steal=1.0, balance=0.0)


def host(cores: int, migration: Migration, speed: float = 1.0) -> Processor:
    return Processor(name="host", cores=cores, discipline="cores", migration=migration, speed=speed)


def part(name: str, core: int | None = None, cores: int = 1, parent: str = "host") -> Processor:
    return Processor(name=name, cores=cores, parent=parent, core=core)


# By hand

THINK, MOMENT = 1024.0, 2.0**-30  # the first is longer than all that is looked at


def three(migration: Migration, cores: tuple[int | None, int | None, int | None]) -> Program:
    """Three interpreters on two cores: P and R are at home on core 0, Q on core 1.

    P and, a moment later, R begin with a job of one second each; Q with one of half a second after a quarter of a
    second.
    """
    demands = {"P": 1.0, "Q": 0.5, "R": 1.0}
    thinks = {"P": THINK, "R": THINK + MOMENT, "Q": THINK + 0.25}
    users = [clients(1, Constant(think), f"{name}.a", name=f"U{name}") for name, think in thinks.items()]
    tasks = [
        service(name, entry("a", act("w", Constant(demand))), threads=1, processor=name)
        for name, demand in demands.items()
    ]
    parts = [part(name, core) for name, core in zip("PQR", cores, strict=True)]
    model = Model(name="three", tasks=(*users, *tasks), processors=(host(2, migration), *parts))
    return together(compile_model(model))


@pytest.mark.parametrize(
    ("migration", "cores", "ends"),
    [
        # P and R share core 0 to the end.
        pytest.param(NEVER, (None, None, None), (2.0, 0.75, 2.0), id="never"),
        # R wakes up on core 1, which it then shares with Q, until that is done.
        pytest.param(WAKE, (None, None, None), (1.0, 1.25, 1.5), id="wake"),
        # When Q is done, core 1 takes R, with 5/8 s to do.
        pytest.param(STEAL, (None, None, None), (1.375, 0.75, 1.375), id="steal"),
        # R is moved at once; and when P is done, Q, which came last: 1/8 s of it is left.
        pytest.param(AT_ONCE, (None, None, None), (1.0, 1.125, 1.375), id="balance"),
        # R, which came last, must stay: P is taken instead.
        pytest.param(STEAL, (None, None, 0), (1.375, 0.75, 1.375), id="steal-who-may-go"),
        # No thread may move, however idle core 1 is.
        pytest.param(STEAL, (0, 1, 0), (2.0, 0.75, 2.0), id="pinned-is-not-stolen"),
        pytest.param(AT_ONCE, (0, 1, 0), (2.0, 0.75, 2.0), id="pinned-is-not-balanced"),
        pytest.param(WAKE, (None, None, 0), (2.0, 0.75, 2.0), id="pinned-wakes-at-home"),
    ],
)
def test_where_the_work_is_done(
    migration: Migration, cores: tuple[int | None, int | None, int | None], ends: tuple[float, float, float]
) -> None:
    """A job that is taken to another core goes on there with what is left of it, in both engines."""
    program = three(migration, cores)
    for engine in (ReferenceEngine(program, 1), CompiledEngine(program, 1)):
        engine.run_until(THINK + 5.0)
        found = [samples.arrays()[0].tolist() for samples in engine.entry_samples[-3:]]
        assert found == [[pytest.approx(THINK + end, abs=1e-6)] for end in ends]


# What never ceases to hold


@dataclass
class Watch:
    """Looks at every processor of the reference engine after every change.

    Attributes:
        servers: All of them.
        moved: How often a seat of a part has come to another core, by the way it went.
    """

    servers: set[StickyServer] = field(default_factory=set)
    moved: Counter[str] = field(default_factory=Counter)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Have the engine call us."""
        settle, move, steal, seat_parts, choose = (
            getattr(StickyServer, name) for name in ("_settle", "_move", "_steal", "_seat_parts", "_choose")
        )
        inside: list[str] = []

        def watched_settle(server: StickyServer) -> None:
            settle(server)
            self._look_at(server)

        def watched_move(server: StickyServer, source: int, target: int) -> None:
            before = _cores_of(server)
            move(server, source, target)
            if _cores_of(server) != before:
                self.moved["steal" if "steal" in inside else "balance"] += 1

        def watched_steal(server: StickyServer, thief: int) -> None:
            inside.append("steal")
            steal(server, thief)
            inside.pop()

        def watched_seat_parts(server: StickyServer) -> None:
            inside.append("seat")
            seat_parts(server)
            inside.pop()

        def watched_choose(server: StickyServer, home: int) -> int:
            chosen: int = choose(server, home)
            if "seat" in inside and chosen != home:
                self.moved["wake"] += 1
            return chosen

        patch.setattr(StickyServer, "_settle", watched_settle)
        patch.setattr(StickyServer, "_move", watched_move)
        patch.setattr(StickyServer, "_steal", watched_steal)
        patch.setattr(StickyServer, "_seat_parts", watched_seat_parts)
        patch.setattr(StickyServer, "_choose", watched_choose)

    def _look_at(self, server: StickyServer) -> None:
        self.servers.add(server)
        seats = [seat for group in server._seats for seat in group]
        for index, core in enumerate(server._cores):
            running = sum(seat.number > 0 for seat in seats if seat.core == index)
            assert core.slots == len(core.jobs) + running
            assert all(thread.core == index for *_, thread in core.jobs)
        numbers = [job[1] for core in server._cores for job in core.jobs]
        numbers += [seat.number for seat in seats if seat.number > 0]
        assert len(set(numbers)) == len(numbers)
        for node, group, load in zip(server._parts, server._seats, server._loads(), strict=True):
            if node.parent >= 0:
                continue
            running_here = [seat for seat in group if seat.number > 0]
            assert len(running_here) == min(load, node.cores)
            # What its jobs get together is what its seats get.
            shares = sum(server._speed / server._cores[seat.core].slots for seat in running_here)
            assert node.rate * load == pytest.approx(node.speed * shares)
        if server._migration == IDEAL and not any(seat.pinned for seat in seats):
            slots = [core.slots for core in server._cores]
            assert min(slots) > 0 or max(slots) <= 1, "a core is idle beside one that two have to share"


def _cores_of(server: StickyServer) -> list[int]:
    return [seat.core for group in server._seats for seat in group]


def crowd(migration: Migration, core: int | None) -> Model:
    """Threads, an interpreter, one of two cores with one inside, and an event loop, pinned or not, on three cores."""
    tasks = (
        clients(4, exp(0.02), "T.a", name="U"),
        clients(5, exp(0.03), "P.a", name="V"),
        clients(3, exp(0.01), "Q.a", name="W"),
        service("T", entry("a", act("w", exp(0.01))), threads=3, processor="host"),
        service("P", entry("a", act("w", exp(0.01), calls="R.a")), threads=4, processor="P"),
        service("Q", entry("a", act("w", exp(0.008))), threads=3, processor="Q"),
        service("R", entry("a", act("w", exp(0.006))), threads=2, processor="R"),
        service("N", entry("a", act("w", exp(0.004))), threads=2, processor="N"),
        clients(2, exp(0.02), "N.a", name="X"),
    )
    processors = (
        host(3, migration, 0.8),
        part("P"),
        part("Q", core),
        part("R", cores=2),
        part("N", parent="R"),
    )
    return Model(name="crowd", tasks=tasks, processors=processors)


@pytest.mark.parametrize("core", [None, 1], ids=["free", "pinned"])
@pytest.mark.parametrize(
    ("migration", "ways"),
    [
        pytest.param(NEVER, set(), id="never"),
        pytest.param(WAKE, {"wake"}, id="wake"),
        pytest.param(STEAL, {"steal"}, id="steal"),
        pytest.param(BALANCE, {"balance"}, id="balance"),
        pytest.param(IDEAL, {"wake", "steal"}, id="ideal"),
    ],
)
def test_nothing_is_lost_when_seats_move(
    monkeypatch: pytest.MonkeyPatch, migration: Migration, ways: set[str], core: int | None
) -> None:
    """Seats go the ways that are open and no others; the work done is the time that cores were busy."""
    watch = Watch()
    model = crowd(migration, core)
    with monkeypatch.context() as patch:
        watch.install(patch)
        engine = ReferenceEngine(compile_model(model), 7)
        engine.run_until(5.0)
    assert {way for way, count in watch.moved.items() if count > 0} == ways
    (server,) = watch.servers
    busy, given = server.accounts()
    assert busy > 5.0, "too little happens for this to mean anything"
    assert given == pytest.approx(busy, rel=1e-9)
    pinned = [seat.core for group in server._seats for seat in group if seat.pinned]
    assert pinned == ([] if core is None else [core])
    assert_engines_agree(model, seed=7, events=400)


# Against theory


@pytest.mark.slow
def test_interpreters_that_move_ideally_are_a_repair_shop() -> None:
    """Three equal interpreters, two cores: as long as two have work, both cores do; who shares one is all the same."""
    think, demand = 0.02, 0.01
    tasks = [
        task
        for name in "ABC"
        for task in (
            clients(1, exp(think), f"{name}.a", name=f"U{name}"),
            service(name, entry("a", act("w", exp(demand))), threads=1, processor=name),
        )
    ]
    model = Model(
        name="repair", tasks=tuple(tasks), processors=(host(2, IDEAL), *(part(name) for name in "ABC"))
    )
    # Machine repair with three machines and two repairmen: a birth-death chain.
    weights = [1.0]
    for inside in range(3):
        weights.append(weights[-1] * ((3 - inside) / think) / (min(inside + 1, 2) / demand))
    busy = sum(min(n, 2) * weight for n, weight in enumerate(weights)) / sum(weights)
    result = simulate(model, precision=0.01, seed=3)
    assert agrees(result.processors["host"].utilization, busy / 2, within=0.01)
    assert agrees(result.entries["A.a"].throughput, busy / demand / 3, within=1.0)
    # Without moves two of them are on one core for good, and that costs.
    stuck = simulate(model.with_processor(host(2, NEVER)), precision=0.01, seed=3)
    found, best = stuck.processors["host"].utilization, result.processors["host"].utilization
    assert found.mean + found.ci95 < best.mean - best.ci95
    assert estimate(model).processors["host"] == pytest.approx(busy / 2, rel=0.05)
