"""Reader-writer locks: exact chains, both engines, and the rules one by one."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from ctmc import TooManyStatesError, UnsupportedError, solve
from engine_comparison import assert_engines_agree
from random_models import random_model
from repeating import repeats_after
from sim_models import act, agrees, clients, entry, exp, model, seq
from simpy import Environment

from mup.errors import MupError, SimulationError
from mup.lqn import Constant, Distribution, Entry, Model, Task
from mup.lqn.model import LOCK
from simulator import simulate
from simulator.analytic import estimate
from simulator.fluid import fluid
from simulator.machine.reference.servers import Lock
from simulator.machine.variates import Stream

NOTHING = Constant(0)
ELEMENTS = {
    "ps", "fcfs", "pool", "several-clients", "think", "delay", "erlang", "second-phase", "or", "and", "semaphore",
}  # fmt: skip


def lock(places: int, time: Distribution = NOTHING) -> Task:
    """Return a lock whose entries all take a time."""
    entries = (replace(entry(token, act("x", delay=time)), token=token) for token in LOCK)
    return Task(name="L", threads=places, entries=tuple(entries))


def section(kind: str, time: Distribution) -> Entry:
    """Return an entry that locks, works and unlocks."""
    return entry(
        "cycle",
        act("in", calls=f"L.{kind}-lock"), act("work", delay=time), act("out", calls=f"L.{kind}-unlock"),
        arcs=seq("in", "work", "out"),
    )  # fmt: skip


def readers_and_writers(
    readers: int, writers: int, places: int, *, reads: Distribution, writes: Distribution, time: Distribution
) -> Model:
    return model(
        clients(readers, exp(1.0), body=section("read", reads), name="R"),
        clients(writers, exp(1.5), body=section("write", writes), name="W"),
        lock(places, time),
    )


class _State(NamedTuple):
    """Readers that read, that are let in and wait for a place, that wait behind writers; writers."""

    reading: int
    let_in: int
    behind: int
    writers: int


def _chain(readers: int, writers: int, places: int, read: float, write: float) -> tuple[float, float, float]:
    """Return the exact rates of reading and writing, and the mean number of those that wait, from the rules.

    Readers think for 1 s, writers for 1.5 s.
    """

    def after(s: _State) -> list[tuple[float, _State]]:
        found = []
        thinking = readers - s.reading - s.let_in - s.behind
        if s.writers:
            come = s._replace(behind=s.behind + 1)
        elif s.reading < places:
            come = s._replace(reading=s.reading + 1)
        else:
            come = s._replace(let_in=s.let_in + 1)
        found.append((thinking / 1.0, come))
        found.append(((writers - s.writers) / 1.5, s._replace(writers=s.writers + 1)))
        if s.reading:
            next_one = s._replace(let_in=s.let_in - 1) if s.let_in else s._replace(reading=s.reading - 1)
            found.append((s.reading / read, next_one))
        elif s.writers > 1:
            found.append((1 / write, s._replace(writers=s.writers - 1)))
        elif s.writers:
            at_once = min(s.behind, places)
            found.append((1 / write, _State(at_once, s.behind - at_once, 0, 0)))
        return [(rate, state) for rate, state in found if rate > 0]

    states = {_State(0, 0, 0, 0): 0}
    left = deque(states)
    moves = []
    while left:
        state = left.popleft()
        for rate, following in after(state):
            if following not in states:
                states[following] = len(states)
                left.append(following)
            moves.append((states[state], states[following], rate))
    generator = np.zeros((len(states), len(states)))
    for source, target, rate in moves:
        generator[source, target] += rate
        generator[source, source] -= rate
    generator[:, 0] = 1.0
    right = np.zeros(len(states))
    right[0] = 1.0
    steady = np.linalg.solve(generator.T, right)
    mean = {
        field: sum(p * getattr(s, field) for s, p in zip(states, steady, strict=True))
        for field in _State._fields
    }
    writing = sum(p for s, p in zip(states, steady, strict=True) if s.writers and not s.reading)
    waiting = mean["let_in"] + mean["behind"] + mean["writers"] - writing
    return mean["reading"] / read, writing / write, waiting


@pytest.mark.slow
@pytest.mark.parametrize(("readers", "writers", "places"), [(4, 2, 2), (3, 1, 1), (3, 2, 5)])
def test_exact_figures(readers: int, writers: int, places: int) -> None:
    """Rates of readers and writers, and how many wait, are those of the chain that the rules make."""
    tested = readers_and_writers(readers, writers, places, reads=exp(0.8), writes=exp(0.4), time=NOTHING)
    reading, writing, waiting = _chain(readers, writers, places, 0.8, 0.4)
    oracle = solve(tested)
    assert oracle.throughput["R"] == pytest.approx(reading)
    assert oracle.throughput["W"] == pytest.approx(writing)
    assert oracle.queue["L"] == pytest.approx(waiting)
    assert oracle.throughput["L"] == pytest.approx(reading + writing)
    result = simulate(tested, precision=0.01, seed=3)
    assert agrees(result.tasks["R"].throughput, reading)
    assert agrees(result.tasks["W"].throughput, writing)
    assert agrees(result.tasks["L"].throughput, reading + writing)
    assert agrees(result.tasks["L"].queue, waiting, within=0.06)


def test_exact_figures_where_locking_takes_time() -> None:
    """Lock and unlock entries that take time hold the lock meanwhile: an unlock takes effect at its end."""
    tested = readers_and_writers(3, 2, 2, reads=exp(0.5), writes=exp(0.4), time=exp(0.2))
    exact, result = solve(tested), simulate(tested, precision=0.01, seed=4)
    for name in ("R", "W", "L"):
        assert agrees(result.tasks[name].throughput, exact.throughput[name])
    assert agrees(result.tasks["L"].queue, exact.queue["L"], within=0.06)
    assert agrees(result.tasks["L"].busy, exact.busy["L"])
    for label, response in exact.entry_response.items():
        assert agrees(result.entries[label].response_time, response, within=0.06), label


def test_writers_first_and_then_all_readers() -> None:
    """One by one: who goes on at which lock and unlock."""
    station = Lock(Environment(), 2, Stream(1), [])
    come = {}
    for name in ("r1", "r2", "r3", "w1", "r4", "w2", "r5", "r6", "r7"):
        come[name] = station.lock(writes=name[0] == "w")
    at_once = {name for name, event in come.items() if event is None}
    assert at_once == {"r1", "r2"}

    def let_go_on(*, writes: bool) -> set[str]:
        before = {n for n, e in come.items() if e is not None and e.triggered}
        assert station.unlock(writes=writes)
        return {n for n, e in come.items() if e is not None and e.triggered} - before

    assert not station.unlock(writes=True)  # readers have it
    assert let_go_on(writes=False) == {"r3"}, "a reader that came before the first writer"
    assert let_go_on(writes=False) == set(), "a writer waits for the last reader"
    assert let_go_on(writes=False) == {"w1"}
    assert not station.unlock(writes=False)  # a writer has it
    assert let_go_on(writes=True) == {"w2"}, "the next writer, although readers wait longer"
    assert let_go_on(writes=True) == {"r4", "r5"}, "all readers, as far as there are places"
    come["w3"] = station.lock(writes=True)
    assert let_go_on(writes=False) == {"r6"}, "a reader that was let in before the writer came"
    assert let_go_on(writes=False) == {"r7"}
    assert let_go_on(writes=False) == set()
    assert let_go_on(writes=False) == {"w3"}
    assert let_go_on(writes=True) == set()
    assert station.waiting == 0
    assert station.free == 2


@pytest.mark.parametrize("time", [NOTHING, Constant(0.125), exp(0.1)], ids=repr)
def test_engines_agree(time: Distribution) -> None:
    """Both engines do the same, with constant times full of simultaneous events."""
    for span in (Constant(0.5), exp(0.5)):
        assert_engines_agree(
            readers_and_writers(7, 3, 2, reads=span, writes=span, time=time), seed=5, events=1500
        )


@pytest.mark.slow
@pytest.mark.parametrize("chunk", repeats_after(2, range(5)))
def test_engines_agree_on_random_models(chunk: int) -> None:
    """The same on random models around a lock, under every setting."""
    for number in range(chunk * 12, (chunk + 1) * 12):
        assert_engines_agree(random_model(number, lock=True), seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("begin", repeats_after(1, [0, 10]))
def test_random_models_agree_with_their_markov_chain(begin: int) -> None:
    """Rates and waiting times of random small models around a lock are those of their chains."""
    solved = 0
    for seed in range(begin, begin + 200):
        tested = random_model(seed, elements=ELEMENTS, small=True, lock=True)
        try:
            exact = solve(tested, max_states=600)
        except (UnsupportedError, TooManyStatesError):
            continue
        result = simulate(tested, precision=0.01, seed=seed)
        assert agrees(result.cycle.throughput, exact.cycle_throughput), seed
        assert agrees(result.tasks["S"].throughput, exact.throughput["S"]), seed
        assert result.tasks["S"].queue.mean == pytest.approx(exact.queue["S"], rel=0.15, abs=0.01), seed
        solved += 1
        if solved == 4:
            return
    raise AssertionError(f"only {solved} models have chains")


@pytest.mark.parametrize(("first", "second"), [("read", "write"), ("write", "read"), ("read", "read")])
def test_unlocking_what_is_not_held(first: str, second: str) -> None:
    """The other kind of unlock, or one too many, is an error in both engines."""
    body = entry(
        "cycle",
        act("in", calls=f"L.{first}-lock"), act("work", exp(1.0)),
        act("out", calls=f"L.{second}-unlock"), act("again", calls=f"L.{second}-unlock"),
        arcs=seq("in", "work", "out", "again"),
    )  # fmt: skip
    tested = model(clients(1, exp(1.0), body=body), lock(2))
    for engine in ("compiled", "reference"):
        with pytest.raises(SimulationError, match=r"a thread was given back at .* although none was taken"):
            simulate(tested, horizon=100, engine=engine)


def test_a_reader_that_becomes_a_writer_waits_for_itself() -> None:
    """Both engines name the lock where all wait for a reader that waits."""
    body = entry(
        "cycle", act("in", calls="L.read-lock"), act("more", exp(0.1), calls="L.write-lock"), arcs=seq("in", "more")
    )  # fmt: skip
    for engine in ("compiled", "reference"):
        with pytest.raises(SimulationError, match=r"deadlock at .* 'L'"):
            simulate(model(clients(2, exp(1.0), body=body), lock(2)), horizon=100, engine=engine)


def test_estimates_refuse_locks_by_name() -> None:
    """The analytic estimate and the fluid name what they have no estimate of."""
    tested = readers_and_writers(2, 1, 2, reads=exp(0.5), writes=exp(0.5), time=NOTHING)
    for refuses in (estimate, fluid):
        with pytest.raises(MupError, match=r"a lock \(token '(read|write)-(un)?lock'\)"):
            refuses(tested)
