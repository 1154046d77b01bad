"""The compiled engine agrees with the reference one: random models, and hard cases.

Whatever the settings of the compiled engine, it must go through the same steps at the same moments, bit for bit.
If it does not, the failure shows a shrunk model.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import engine_comparison
import numpy as np
import pytest
from engine_comparison import (
    Run,
    assert_engines_agree,
    differences,
    run_compiled,
    run_reference,
    together,
    unequal,
)
from random_models import random_model, with_setups
from repeating import repeats_after
from sim_models import act, choice, clients, entry, exp, fork, join, merge, model, ps, service

from mup.errors import ModelError, SimulationError
from mup.lqn import (
    Call,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Forward,
    Front,
    Geometric,
    Migration,
    Model,
    Precedence,
    Processor,
    Task,
    Uniform,
)
from simulator import simulate, simulate_many
from simulator.machine.compiled.engine import CompiledEngine
from simulator.program import FORK_JOIN, Program, compile_model, optimise

pytestmark = pytest.mark.slow

CHUNKS, CHUNK, FORKED_CHUNK = 8, 10, 6


# Random models


@pytest.mark.parametrize("chunk", repeats_after(2, range(CHUNKS)))
def test_random_models_with_setups(chunk: int) -> None:
    """Threads, fronts, clients and cores sleep for as long in both engines, and cost as much after it."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        assert_engines_agree(with_setups(random_model(seed), seed), seed=seed)


@pytest.mark.parametrize("chunk", repeats_after(3, range(CHUNKS)))
def test_random_models(chunk: int) -> None:
    """Both engines do the same on random models, under every setting."""
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        assert_engines_agree(random_model(number), seed=number)


@pytest.mark.parametrize("chunk", repeats_after(3, range(CHUNKS)))
def test_random_models_with_inline_branches(chunk: int) -> None:
    """The same where activities have become branches that the compiled engine executes inline if it can."""
    inline = 0
    for number in range(chunk * FORKED_CHUNK, (chunk + 1) * FORKED_CHUNK):
        tested = _branched(random_model(2000 + number), random.Random(number))
        inline += sum(step[0] == FORK_JOIN for step in optimise(compile_model(tested)).code)
        assert_engines_agree(tested, seed=number)
    assert inline >= FORKED_CHUNK, "these models do not test what they are for"


@pytest.mark.parametrize("chunk", repeats_after(2, range(CHUNKS // 2)))
def test_random_models_with_background(chunk: int) -> None:
    """The same where processors have background work."""
    refused = 0
    for number in range(chunk * FORKED_CHUNK, (chunk + 1) * FORKED_CHUNK):
        rng = random.Random(number)
        tested = random_model(number)
        processors = tuple(
            replace(p, background=rng.choice((0.0, 0.05, 0.7)) * min(p.cores, 4) * p.speed)
            if p.parent is None
            else p
            for p in tested.processors
        )
        try:
            assert_engines_agree(replace(tested, processors=processors), seed=number)
        except SimulationError as error:
            # Too much for what arrives from outside.
            assert "queues would only grow" in error.message  # noqa: PT017
            refused += 1
    assert refused < FORKED_CHUNK / 2, "these models do not test what they are for"


def _branched(tested: Model, rng: random.Random) -> Model:
    """Turn some activities into the side branch of a fork whose main branch goes straight to the join."""
    for task in tested.tasks:
        entries = []
        for body in task.entries:
            chosen = [
                a.name for a in body.activities if rng.random() < 0.5 and not a.replies and not a.detached
            ]
            entries.append(_with_branches(body, chosen))
        try:
            tested = tested.with_task(replace(task, entries=tuple(entries)))
        except ModelError:
            continue  # some activities must not be in a branch, such as those with releasing calls
    return tested


def _with_branches(body: Entry, names: list[str]) -> Entry:
    for name in names:
        before, main, after = (f"{name}_{part}" for part in ("before", "main", "after"))
        arcs = tuple(
            replace(
                arc,
                pre=tuple(after if n == name else n for n in arc.pre),
                post=tuple(before if n == name else n for n in arc.post),
            )
            for arc in body.precedences
        )
        body = replace(
            body,
            start=before if body.start == name else body.start,
            activities=(*body.activities, act(before), act(main), act(after)),
            precedences=(*arcs, fork(before, main, name), join(after, main, name)),
        )
    return body


def test_a_difference_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is a hair off on one kind of times is caught, and the model shown is tiny."""

    def faulty(program: Program, seed: int, stops: tuple[float, ...], **how: Any) -> Run:
        off = {Constant(0.5): Constant(0.5 + 1e-12)}
        distributions = tuple(off.get(d, d) for d in program.distributions)
        return run_compiled(replace(program, distributions=distributions), seed, stops, **how)

    monkeypatch.setattr(engine_comparison, "run_compiled", faulty)
    found = "no random model contains what is wrong"
    for number in range(20):
        try:
            assert_engines_agree(random_model(number), seed=number, events=100)
        except pytest.fail.Exception as failure:
            found = str(failure)
            break
    shown = found.partition("shrunk:")[2]
    assert "0.5" in shown
    assert len(shown.splitlines()) <= 16, found


# Simultaneous events


def _same_moments(think: Distribution | None = None) -> Model:
    """Everything takes 1/4 or 1/2 s, and there is too little of everything."""
    body = entry(
        "a",
        act("s", Constant(0.25)), act("x", Constant(0.25), calls="B.b"), act("y", Constant(0.25), calls="B.c"),
        act("e", Constant(0.25)),
        arcs=(fork("s", "x", "y"), join("e", "x", "y")),
    )  # fmt: skip
    return model(
        clients(7, think or Constant(0.5), "A.a"),
        service("A", body, threads=3, replicas=2, processor="one"),
        service(
            "B", entry("b", act("w", Constant(0.25))), entry("c", act("w", Constant(0.5))),
            threads=2, processor="two",
        ),
        processors=(ps("one", cores=2), Processor(name="two", cores=1, discipline="fcfs")),
    )  # fmt: skip


@pytest.mark.parametrize("discipline", ["ps", "fcfs", "hol", "pp", "cores", "infinite"])
def test_everything_at_the_same_moments(discipline: str) -> None:
    """Where all times are multiples of one, only the rules for simultaneous events decide."""
    tested = _same_moments()
    processors = tuple(replace(p, discipline=discipline) for p in tested.processors)  # type: ignore[arg-type]
    assert_engines_agree(replace(tested, processors=processors), events=2000)


def test_no_think_time_and_ties() -> None:
    """Cycles follow each other without a pause, all clients in step."""
    assert_engines_agree(
        replace(_same_moments(), tasks=(clients(7, None, "A.a"), *_same_moments().tasks[1:]))
    )


def test_zero_times_among_simultaneous_events() -> None:
    """Uses and delays that are sometimes zero change who comes first, equally in both engines."""
    sometimes = Empirical((0.0, 0.0, 0.25, 0.5))
    body = entry(
        "a",
        act("s", sometimes), act("x", sometimes, delay=sometimes), act("y", sometimes),
        act("z", delay=sometimes, calls="B.b"), act("e", sometimes),
        arcs=(fork("s", "x", "y", "z"), join("e", "x", "y", "z")),
    )  # fmt: skip
    assert_engines_agree(
        model(
            clients(6, sometimes, "A.a"),
            service("A", body, threads=2, processor="cpu"),
            service("B", entry("b", act("w", sometimes)), threads=1, processor="cpu"),
            processors=(ps(cores=2),),
        ),
        events=2000,
    )


# Fork-joins that are executed inline


def _called_in_branches(*, times: Distribution, threads: float, discipline: str) -> Model:
    """Each call is made by a branch while the main flow goes on; what is called does the same."""
    outer = entry(
        "a",
        act("s"), act("m1"), act("x", times, calls="B.b"), act("j1", times),
        act("m2"), act("y", delay=times, calls="B.b"), act("e", times),
        arcs=(
            fork("s", "m1", "x"), join("j1", "m1", "x"), fork("j1", "m2", "y"), join("e", "m2", "y"),
        ),
    )  # fmt: skip
    inner = entry(
        "b", act("s"), act("m"), act("x", times), act("e", times),
        arcs=(fork("s", "m", "x"), join("e", "m", "x")),
    )  # fmt: skip
    return model(
        clients(5, Constant(1.0), "A.a"),
        service("A", outer, threads=threads, processor="cpu"),
        service("B", inner, threads=threads, processor="cpu"),
        processors=(Processor(name="cpu", cores=2, discipline=discipline),),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("discipline", ["ps", "fcfs", "infinite", "cores"])
@pytest.mark.parametrize("times", [Constant(0.25), exp(0.25), Empirical((0.0, 0.25))], ids=repr)
@pytest.mark.parametrize("threads", [2, math.inf])
def test_inline_fork_joins(discipline: str, times: Distribution, threads: float) -> None:
    """A branch executed by the flow that forked it takes its turn as if it were a flow of its own."""
    tested = _called_in_branches(times=times, threads=threads, discipline=discipline)
    assert any(step[0] == FORK_JOIN for step in optimise(compile_model(tested)).code)
    assert_engines_agree(tested, events=1500)


def test_inline_fork_joins_of_one_request_at_once() -> None:
    """While one branch of a request is executed inline, another one forks and joins for itself."""
    body = entry(
        "cycle",
        act("s"), act("x", delay=Constant(0.25)), act("xm"), act("xb", delay=Constant(1.0)), act("xe"),
        act("y", delay=Constant(0.5)), act("ym"), act("yb", Constant(0.25)), act("ye"), act("e"),
        arcs=(
            fork("s", "x", "y"), fork("x", "xm", "xb"), join("xe", "xm", "xb"),
            fork("y", "ym", "yb"), join("ye", "ym", "yb"), join("e", "xe", "ye"),
        ),
    )  # fmt: skip
    assert_engines_agree(model(clients(1, None, body=body)), events=200)


@pytest.mark.parametrize("think", [Constant(1.0), exp(1.0)], ids=repr)
def test_reply_to_an_inline_branch_comes_from_another_flow(think: Distribution) -> None:
    """The flow that made a call in a branch may end there: whichever brings the reply goes on in the branch."""
    body = entry(
        "cycle", act("s"), act("m"), act("b", delay=exp(0.1), calls="A.a"), act("e", exp(0.1)),
        arcs=(fork("s", "m", "b"), join("e", "m", "b")),
    )  # fmt: skip
    late = entry("a", act("s"), act("x", exp(0.1)), act("y", exp(1.0)), arcs=(fork("s", "x", "y"),))
    tested = model(clients(3, think, body=body), service("A", replace(late, waits=True), threads=2))
    assert_engines_agree(tested, events=1000)


def test_quorum_around_inline_fork_joins() -> None:
    """The flow that carries a request comes late to a quorum: another one carries on and forks meanwhile."""
    body = entry(
        "cycle",
        act("s"), act("x"), act("xm"), act("xb", delay=exp(1.0)), act("xe"), act("y", delay=exp(1.0)),
        act("j"), act("jm"), act("jb", delay=exp(1.0)), act("je"),
        arcs=(
            fork("s", "x", "y"), fork("x", "xm", "xb"), join("xe", "xm", "xb"),
            replace(join("j", "xe", "y"), quorum=1), fork("j", "jm", "jb"), join("je", "jm", "jb"),
        ),
    )  # fmt: skip
    assert_engines_agree(model(clients(3, exp(0.5), body=body)), events=1000)


def test_inline_fork_joins_at_one_moment() -> None:
    """Flows created at one moment start in that order, however many of them could be executed inline."""
    body = entry(
        "b", act("s"), act("m"), act("x", Constant(0.5)), act("e", Constant(0.25)),
        arcs=(fork("s", "m", "x"), join("e", "m", "x")),
    )  # fmt: skip
    many = ("p", "q", "r")
    both = entry(
        "cycle", act("go"), *(act(name, calls="B.b") for name in many), act("back"),
        arcs=(fork("go", *many), join("back", *many)),
    )  # fmt: skip
    tested = model(
        clients(3, Constant(0.5), body=both),
        service("B", body, replicas=2, threads=2, processor="cpu"),
        processors=(Processor(name="cpu", cores=1, discipline="fcfs"),),
    )
    assert any(step[0] == FORK_JOIN for step in optimise(compile_model(tested)).code)
    assert_engines_agree(tested, events=1500)


# More room than there is at first


def _rooms(engine: CompiledEngine) -> tuple[int, int, int]:
    state = engine._state
    return len(state.flows.ints), len(state.frames.ints), state.servers.job_ends.shape[1]


def _agree_while_growing(tested: Model, what: int, *, width: float, doublings: int = 1) -> None:
    """Compare the engines on a model that must need more flows (0), requests (1) or jobs (2) on the way."""
    assert_engines_agree(tested, events=4000, width=width)
    engine = CompiledEngine(together(compile_model(tested)), 1)
    before = _rooms(engine)[what]
    stops = run_reference(engine.program, 1, events=4000, width=width).stops
    engine.run_until(stops[-1])
    assert _rooms(engine)[what] >= before << doublings, "the model does not test what it is for"


def test_more_flows() -> None:
    """Messages that pile up need more flows than there are at first, several times over."""
    burst = Call(task="A", entry="a", kind="send", count=Constant(700))
    body = entry("cycle", replace(act("go"), calls=(burst,)))
    tested = model(
        clients(2, Uniform(0.5, 1.5), body=body), service("A", entry("a", act("w", delay=exp(2.0))))
    )
    _agree_while_growing(tested, 0, width=0.5, doublings=2)


def test_more_requests_than_flows() -> None:
    """Deep synchronous calls hold several requests per flow, and run out of room in the middle of a chain."""
    depth = 8
    chain = [
        service(f"T{i}", entry("e", act("w", delay=exp(0.1), calls="" if i == depth else f"T{i + 1}.e")))
        for i in range(1, depth + 1)
    ]
    _agree_while_growing(model(clients(400, exp(0.5), "T1.e"), *chain), 1, width=0.25)


@pytest.mark.parametrize("think", [Constant(1.0), exp(1.0)], ids=["ties", "random"])
@pytest.mark.parametrize("discipline", ["ps", "cores"])
def test_more_jobs(discipline: str, think: Distribution) -> None:
    """Two hundred flows on one processor at once, by and by or all at one moment."""
    cpu = Processor(
        name="cpu",
        cores=2,
        discipline=discipline,  # type: ignore[arg-type]
        migration=Migration(wake=0.5, steal=0.5, balance=5.0) if discipline == "cores" else None,
    )
    tested = model(
        clients(200, think, "A.a"),
        service("A", entry("a", act("w", exp(0.05))), processor="cpu"),
        processors=(cpu,),
    )
    _agree_while_growing(tested, 2, width=1.0)


def test_everything_grows_at_once() -> None:
    """Flows, requests and jobs run out of room within forks, second phases and messages."""
    body = entry(
        "a",
        act("s", exp(0.1)), act("x", calls="B.b"), act("y", calls="B.b"), act("e", replies=True),
        act("later", exp(0.2)),
        arcs=(fork("s", "x", "y"), join("e", "x", "y"), Precedence(pre=("e",), post=("later",))),
    )  # fmt: skip
    send = Call(task="C", entry="c", kind="send", count=Geometric(4.0))
    tested = model(
        clients(300, Constant(1.0), "A.a"),
        service("A", body, processor="cpu"),
        service("B", entry("b", replace(act("w", exp(0.001)), calls=(send,))), processor="cpu"),
        service("C", entry("c", act("w", exp(0.001), delay=exp(20.0)))),
        processors=(ps(cores=200),),
    )
    for what in range(3):
        _agree_while_growing(tested, what, width=0.5)


# Processors


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("times", [Constant(0.5), exp(0.5), Uniform(0.0, 1.0)], ids=repr)
def test_preemption(cores: int, times: Distribution) -> None:
    """Three priorities interrupt each other; who is interrupted goes on later with what is left."""
    kinds = [
        clients(3, think, f"T{rank}.e", name=f"U{rank}")
        for rank, think in enumerate((Constant(0.75), exp(1.0), Constant(1.5)))
    ]
    served = [
        replace(service(f"T{rank}", entry("e", act("w", times)), threads=2, processor="cpu"), priority=rank)
        for rank in range(3)
    ]
    cpu = Processor(name="cpu", cores=cores, discipline="pp", speed=1.5)
    assert_engines_agree(model(*kinds, *served, processors=(cpu,)), events=1500)


@pytest.mark.parametrize("discipline", ["hol", "pp"])
@pytest.mark.parametrize("admission", ["fifo", "random", "hol"])
def test_priorities_of_requests_and_threads(discipline: str, admission: str) -> None:
    """Priorities decide who gets a thread and who gets a core; fronts and forks take part."""
    body = entry(
        "a",
        act("s", exp(0.1)), act("x", exp(0.2)), act("y", exp(0.2), calls="B.b"), act("e"),
        arcs=(fork("s", "x", "y"), join("e", "x", "y")),
    )  # fmt: skip
    first = service("A", body, threads=2, processor="cpu", front=Front(request=exp(0.05), reply=exp(0.02)))
    second = service("B", entry("b", act("w", exp(0.2))), threads=1, processor="cpu")
    tested = model(
        clients(4, exp(0.5), "A.a"),
        replace(clients(4, exp(0.5), "B.b", name="V"), priority=3),
        replace(first, priority=1, admission=admission),  # type: ignore[arg-type]
        replace(second, priority=2, admission=admission),  # type: ignore[arg-type]
        processors=(Processor(name="cpu", cores=2, discipline=discipline),),  # type: ignore[arg-type]
    )
    assert_engines_agree(tested, events=1500)


@pytest.mark.parametrize(
    "migration",
    [
        None, Migration(wake=0.7), Migration(steal=0.7), Migration(balance=4.0), Migration(wake=1.0, steal=1.0),
        Migration(wake=0.4, steal=0.6, balance=2.0),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("times", [Constant(0.25), exp(0.25)], ids=repr)
def test_sticky_threads(migration: Migration | None, times: Distribution) -> None:
    """Threads find their cores again and migrate for each of the three reasons, with all kinds of flows."""
    body = entry(
        "a",
        act("s", times), act("x", times, calls="B.b"), act("y", times), act("e", times),
        arcs=(fork("s", "x", "y"), join("e", "x", "y")),
    )  # fmt: skip
    front = Front(request=times, reply=Constant(0.125))
    tested = model(
        clients(9, times, "A.a"),
        service("A", body, threads=3, replicas=2, processor="cpu", front=front),
        service("B", entry("b", act("w", times)), processor="cpu"),
        processors=(Processor(name="cpu", cores=3, discipline="cores", migration=migration, speed=2.0),),
    )
    assert_engines_agree(tested, events=1500)


@pytest.mark.parametrize("part", ["ps", "fcfs"])
@pytest.mark.parametrize("times", [Constant(0.25), exp(0.25)], ids=repr)
def test_nested_processors(part: str, times: Distribution) -> None:
    """Two parts of a host, one of them with a part of its own, change each other's pace."""
    processors = (
        ps("host", cores=2, speed=1.5),
        Processor(name="left", cores=1, discipline=part, parent="host"),  # type: ignore[arg-type]
        Processor(name="right", cores=2, discipline="ps", parent="host", speed=0.5),
        Processor(name="within", cores=1, discipline=part, parent="right"),  # type: ignore[arg-type]
    )
    tested = model(
        clients(8, times, "A.a"),
        service("A", entry("a", act("w", times, calls="B.b"), act("v", times, calls="C.c")),
                threads=4, processor="left"),
        service("B", entry("b", act("w", times)), threads=3, processor="within"),
        service("C", entry("c", act("w", times, calls="D.d")), processor="right"),
        service("D", entry("d", act("w", times)), processor="host"),
        processors=processors,
    )  # fmt: skip
    assert_engines_agree(tested, events=2000)


# Joins, replies, threads


@pytest.mark.parametrize("needed", [1, 2])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("times", [Constant(0.5), exp(0.5)], ids=repr)
def test_quorum(needed: int, waits: bool, times: Distribution) -> None:
    """Branches that come late do what they still have to do, and calls they make still come back."""
    body = entry(
        "a",
        act("s"), act("x", delay=times), act("y", delay=times, calls="B.b"), act("z", calls="B.b"),
        act("e", delay=exp(0.1)),
        arcs=(fork("s", "x", "y", "z"), replace(join("e", "x", "y", "z"), quorum=needed)),
    )  # fmt: skip
    tested = model(
        clients(4, exp(0.5), "A.a"),
        service("A", replace(body, waits=waits), threads=2),
        service("B", entry("b", act("w", times)), threads=2, processor="cpu"),
        processors=(ps(),),
    )
    assert_engines_agree(tested, events=1500)


def test_quorum_in_a_loop() -> None:
    """The same join is passed again by the next round; with as many rounds as late branches allow."""
    body = entry(
        "a",
        act("s"), act("round", delay=exp(0.1), calls="B.b"), act("e"),
        arcs=(Precedence(pre=("s",), post=("round", "e"), fork="loop", counts=(Geometric(2.0),)),),
    )  # fmt: skip
    race = entry(
        "b",
        act("s"), act("x", delay=exp(0.3)), act("y", delay=exp(0.3)), act("e", delay=exp(0.1)),
        arcs=(fork("s", "x", "y"), replace(join("e", "x", "y"), quorum=1)),
    )  # fmt: skip
    assert_engines_agree(
        model(clients(4, exp(0.5), "A.a"), service("A", body, threads=2), service("B", race, threads=3)),
        events=1500,
    )


@pytest.mark.parametrize("admission", ["fifo", "random", "hol"])
@pytest.mark.parametrize("times", [Constant(0.25), exp(0.25)], ids=repr)
def test_releasing_calls(admission: str, times: Distribution) -> None:
    """Threads are given back for the time of a call and queued for again, from branches and second phases, too."""
    call = Call(task="B", entry="b", kind="releasing")
    body = entry(
        "a", replace(act("w", times), calls=(call,)), act("v", times, replies=True),
        replace(act("later", times), calls=(call,)),
    )  # fmt: skip
    tested = model(
        clients(6, times, "A.a"),
        replace(service("A", body, threads=2, replicas=2, processor="cpu"), admission=admission),  # type: ignore[arg-type]
        service("B", entry("b", act("w", times)), threads=1, processor="cpu"),
        processors=(Processor(name="cpu", cores=2, discipline="cores", migration=Migration(wake=0.5)),),
    )
    assert_engines_agree(tested, events=1500)


@pytest.mark.parametrize("times", [Constant(0.25), exp(0.25)], ids=repr)
def test_semaphore(times: Distribution) -> None:
    """A thread stays taken from one request to another."""
    tokens = Task(
        name="S",
        threads=2,
        entries=(
            replace(entry("take", act("p", delay=Constant(0.125))), token="acquire"),
            replace(entry("give", act("v", delay=Constant(0.125))), token="release"),
        ),
    )
    body = entry("a", act("t", calls="S.take"), act("w", times), act("g", calls="S.give"))
    tested = model(
        clients(6, times, "A.a"), service("A", body, processor="cpu"), tokens, processors=(ps(cores=4),)
    )
    assert_engines_agree(tested, events=1500)


def test_forwarding_and_second_phases() -> None:
    """A reply comes from somewhere else, while work goes on where the request came from."""
    handed = replace(
        entry("a", act("w", exp(0.2))), forwards=(Forward(task="B", entry="b", probability=0.6),)
    )
    tested = model(
        clients(5, exp(0.5), "A.a"),
        service("A", handed, threads=2, processor="cpu"),
        service("B", entry("b", act("w", exp(0.1), replies=True), act("later", exp(0.3))), processor="cpu"),
        processors=(ps(cores=2),),
    )
    assert_engines_agree(tested, events=1500)


# Runs that fail


def _fails(tested: Model, message: str, *, seed: int = 1, events: int = 10_000) -> None:
    """Both engines must fail, under every setting with the same message between the same stops."""
    expected = run_reference(compile_model(tested, activities=True), seed, events=events)
    assert message in expected.error
    assert differences(tested, seed=seed, events=events) == []


@pytest.mark.parametrize("think", [Constant(0.5), exp(0.5)], ids=repr)
def test_same_deadlock(think: Distribution) -> None:
    """Every request waits for a thread that a waiting request holds."""
    tested = model(
        clients(3, think, "A.a"),
        service(
            "A", entry("a", act("w", exp(0.1), calls="B.b")), entry("back", act("v", exp(0.1))), threads=2
        ),
        service("B", entry("b", act("x", calls="A.back"))),
    )
    _fails(tested, "deadlock at")


def test_same_deadlock_at_a_semaphore() -> None:
    """A semaphore that is never signalled."""
    tokens = Task(
        name="S",
        threads=1,
        entries=(
            replace(entry("take", act("p", delay=exp(0.1))), token="acquire"),
            replace(entry("give", act("v", delay=exp(0.1))), token="release"),
        ),
    )
    body = entry(
        "cycle", act("s"), act("take", calls="S.take"), act("give", calls="S.give"), act("e"),
        arcs=(choice("s", (1.0, 0.0), "take", "give"), merge("e", "take", "give")),
    )  # fmt: skip
    _fails(model(clients(2, exp(0.5), body=body), tokens), "deadlock at")


@pytest.mark.parametrize("times", [Constant(1.0), exp(1.0)], ids=repr)
def test_a_deadlock_is_found_when_the_last_message_has_ended(times: Distribution) -> None:
    """The flow that carries it may have been ahead of the clients that wait for ever."""
    tokens = Task(
        name="S",
        threads=1,
        entries=(
            replace(entry("take", act("p")), token="acquire"),
            replace(entry("give", act("v")), token="release"),
        ),
    )
    told = replace(act("tell"), calls=(Call(task="A", entry="a", kind="send"),))
    body = entry("cycle", told, act("first", calls="S.take"), act("second", calls="S.take"))
    _fails(
        model(clients(1, None, body=body), service("A", entry("a", act("w", times))), tokens), "deadlock at"
    )


@pytest.mark.parametrize("times", [Constant(0.1), exp(0.1)], ids=repr)
def test_same_impossible_join(times: Distribution) -> None:
    """A branch that a join waits for goes elsewhere, sooner or later."""
    body = entry(
        "a",
        act("s"), act("main", times), act("side", times), act("left"), act("right"), act("e"),
        arcs=(
            fork("s", "main", "side"), choice("side", (0.95, 0.05), "left", "right"),
            join("e", "main", "left"),
        ),
    )  # fmt: skip
    _fails(model(clients(2, exp(1.0), "A.a"), service("A", body)), "this join can never complete")


def test_same_token_overflow() -> None:
    """A semaphore is signalled once too often, at the same moment."""
    tokens = Task(
        name="S",
        threads=2,
        entries=(
            replace(entry("take", act("p", delay=exp(0.1))), token="acquire"),
            replace(entry("give", act("v", delay=exp(0.1))), token="release"),
        ),
    )
    body = entry(
        "cycle",
        act("s", calls="S.take"), act("g", calls="S.give"), act("again", calls="S.give"), act("e"),
        arcs=(
            Precedence(pre=("s",), post=("g",)), choice("g", (0.02, 0.98), "again", "e"),
        ),
    )  # fmt: skip
    _fails(model(clients(2, exp(0.5), body=body), tokens), "although none was taken")


def test_same_spinning_client() -> None:
    """A cycle that takes no time ten thousand times in a row, for one of two populations."""
    rare = Empirical((0.0,) * 100_000 + (1.0,))
    tested = model(
        clients(1, None, "A.a"),
        clients(2, exp(1.0), "A.a", name="V"),
        service("A", entry("a", act("w", rare))),
    )
    _fails(tested, "took no time at all", events=100)


# Seeds, stops, workers


@pytest.mark.parametrize("seed", [0, 2, -1, 2**63, 2**64 + 5])
def test_any_seed(seed: int) -> None:
    """Engines agree on what a seed is, also on negative and very large ones."""
    assert_engines_agree(random_model(5), seed=seed)


def test_every_seed_has_its_own_run() -> None:
    """Two seeds share no moment of a continuous time; the same seed repeats itself."""
    tested = model(
        clients(3, exp(1.0), "A.a"),
        service("A", entry("a", act("w", exp(0.2))), processor="cpu"),
        processors=(ps(),),
    )
    program = compile_model(tested)
    runs = [run_compiled(program, seed, (1000.0,)) for seed in (0, 0, 1)]
    assert unequal(runs[0], runs[1]) == []
    moments = [{moment for moment, _ in run.trace} for run in runs]
    assert len(moments[0]) > 4000
    assert moments[0] & moments[2] == {0.0}


@pytest.mark.parametrize("number", repeats_after(3, range(8)))
def test_looking_does_not_change_anything(number: int) -> None:
    """However often a run stops to be looked at, its steps are the same."""
    program = compile_model(random_model(number))
    end = run_reference(program, number).stops[-1]
    whole = run_compiled(program, number, (end,))
    often = run_compiled(program, number, tuple(np.linspace(0.0, end, 997)[1:].tolist()))
    assert often.trace == whole.trace
    assert unequal(replace(whole, snapshots=(), stops=()), replace(often, snapshots=(), stops=())) == []
    assert often.snapshots[-1] == pytest.approx(whole.snapshots[-1], rel=1e-9, abs=1e-9 * max(1.0, end))


@pytest.mark.parametrize("number", [0, 3, 11])
def test_same_results(number: int) -> None:
    """The figures, too, are those of the reference engine, with their intervals and percentiles."""
    found = [
        simulate(random_model(number), horizon=200.0, seed=number, engine=engine, activities=True).to_json()
        for engine in ("compiled", "reference")
    ]
    flat = [
        _numbers({k: v for k, v in data.items() if k not in {"engine", "wall_seconds"}}) for data in found
    ]
    assert [path for path, _ in flat[0]] == [path for path, _ in flat[1]]
    for (path, mine), (_, other) in zip(*flat, strict=True):
        if isinstance(other, float):
            assert mine == pytest.approx(other, rel=1e-6, abs=1e-9), path
        else:
            assert mine == other, path


def _numbers(data: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return every leaf of a JSON document with its path."""
    if isinstance(data, dict):
        return [leaf for key, value in data.items() for leaf in _numbers(value, f"{path}/{key}")]
    if isinstance(data, list):
        return [leaf for index, value in enumerate(data) for leaf in _numbers(value, f"{path}/{index}")]
    return [(path, data)]


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    """One worker or three: every scenario has the same result, to the last bit."""
    tested = [random_model(number) for number in (0, 3, 11, 12)]
    here, there = (
        [result.to_json() for result in simulate_many(tested, horizon=100.0, seed=4, workers=workers)]
        for workers in (1, 3)
    )
    for data in (*here, *there):
        data.pop("wall_seconds", None)
    assert here == there
