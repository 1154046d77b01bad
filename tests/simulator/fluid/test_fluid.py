"""The fluid is exact where theory says so, and warns where it cannot be."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctmc import TooManyStatesError, UnsupportedError, solve
from random_models import describe, random_model
from sim_models import act, choice, clients, entry, exp, fork, join, merge, model, ps, seq, service
from test_running_example import running_example

from mup.errors import SimulationError, UncalibratedError, UsageError
from mup.lqn import Activity, Call, Constant, Entry, Erlang, Geometric, Model, Precedence, Processor, Task
from simulator.fluid import fluid
from simulator.fluid import states as fluid_states

REFERENCE = Path(os.environ.get("MUP_REFERENCE_DIR", Path(__file__).parents[4] / "shared"))


def single_queue(users: int, *, threads: float = 1) -> Model:
    return model(
        clients(users, exp(1.0), "A.e"), service("A", entry("e", act("w", exp(0.1))), threads=threads)
    )


def open_model(between: float, demand: float) -> Model:
    load = Task(
        name="Load",
        role="reference",
        threads=math.inf,
        entries=(replace(entry("cycle", act("go", calls="A.e")), arrivals=exp(between)),),
    )
    return model(load, service("A", entry("e", act("w", exp(demand))), threads=1))


@pytest.mark.parametrize("users", [1, 5, 10, 11, 12, 50, 1000])
def test_single_server_rests_on_its_asymptotes(users: int) -> None:
    """One thread: throughput is the smaller of N / (Z + D) and 1 / D."""
    result = fluid(single_queue(users))
    assert result.cycle["throughput"] == pytest.approx(min(users / 1.1, 10), rel=1e-7)
    assert result.tasks["A"]["queue"] == pytest.approx(max(0, users - 11), abs=1e-5)


@pytest.mark.parametrize("where", ["pool", "ps", "fcfs", "replicas"])
def test_every_kind_of_server_saturates_at_its_capacity(where: str) -> None:
    """Threads, shared cores, queueing cores and replicas: four of 0.1 s each give 40 per second."""
    body = entry("e", act("w", exp(0.1)))
    task = service("A", body)
    processors: tuple[Processor, ...] = ()
    if where == "pool":
        task = service("A", body, threads=4)
    elif where == "replicas":
        task = service("A", body, threads=2, replicas=2)
    else:
        task = service("A", body, processor="cpu")
        processors = (Processor(name="cpu", cores=4, discipline=where),)  # type: ignore[arg-type]
    result = fluid(model(clients(100, exp(1.0), "A.e"), task, processors=processors))
    assert result.cycle["throughput"] == pytest.approx(40, rel=1e-7)
    assert result.cycle["response_time"] == pytest.approx(1.5, rel=1e-6)
    if processors:
        assert result.processors["cpu"]["utilization"] == pytest.approx(1, rel=1e-7)


def test_infinite_servers_follow_the_exact_transient() -> None:
    """Without waiting, the mean number in service is that of the two-state Markov chain at every moment."""
    times = [0.05, 0.3, 1.0, 4.0]
    result = fluid(single_queue(7, threads=math.inf), times=times)
    assert result.trajectory is not None
    rate = 1 + 10
    exact = 7 * (1 / rate) * (1 - np.exp(-rate * np.array(times)))
    assert result.trajectory.tasks["A"]["busy"] == pytest.approx(exact, abs=1e-5)


def test_stages_of_an_erlang_time_pass_one_after_the_other() -> None:
    """An Erlang-3 service from an open start leaves as the Erlang distribution function says."""
    job = clients(1, Constant(0.0), body=entry("cycle", act("once", Erlang(3.0, 3)), act("rest", exp(1e6))))
    result = fluid(model(job, service("A", entry("e", act("w")))), times=[1.0, 3.0], stages=3)
    assert result.trajectory is not None
    # Nothing is called, so the only figure that moves is the cycle: none completes in this time.
    assert result.trajectory.throughput == pytest.approx([0, 0], abs=1e-5)
    unfinished = [m for s, m in result.masses.items() if s.request is not None]
    at_3 = math.exp(-3) * (1 + 3 + 9 / 2)
    assert max(unfinished) == pytest.approx(1 - at_3, abs=1e-5)


def test_two_branches_join_as_siblings_or_as_anyone() -> None:
    """The mean of the larger of two exponential times; or, with anonymous joins, the larger of the means."""
    body = entry(
        "e", act("s"), act("a", exp(1.0)), act("b", exp(0.5)), act("j"), arcs=(fork("s", "a", "b"), join("j", "a", "b"))
    )  # fmt: skip
    system = model(clients(5, exp(1.0), "A.e"), service("A", body))
    assert fluid(system).cycle["response_time"] == pytest.approx(1 + 0.5 - 1 / 3, rel=1e-7)
    assert fluid(system, join="anonymous").cycle["response_time"] == pytest.approx(1.0, rel=1e-7)


def without_contention(system: Model) -> Model:
    """One client per population, a thread and a core for each."""
    return replace(
        system,
        processors=tuple(
            Processor(name=p.name, discipline="infinite", speed=p.speed) for p in system.processors
        ),
        tasks=tuple(replace(t, threads=1 if t.is_reference else math.inf, front=None) for t in system.tasks),
    )


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 10, 11, 16, 23])
def test_is_exact_where_no_request_waits(seed: int) -> None:
    """Random models of branches, joins, loops, all kinds of calls, second phases: the Markov chain agrees."""
    elements = {
        *("erlang", "hyperexponential", "or", "and", "overlap", "loop-constant", "loop-geometric", "loop-bodies"),
        *("count-constant", "count-geometric", "releasing", "second-phase", "forward", "think", "delay"),
    }  # fmt: skip
    system = without_contention(random_model(seed, elements=elements, small=True))
    try:
        exact = solve(system, max_states=400)
    except (TooManyStatesError, UnsupportedError) as reason:
        pytest.skip(f"no exact solution to compare with: {reason}")
    found = fluid(system, stages=20)
    assert found.cycle["throughput"] == pytest.approx(exact.cycle_throughput, rel=1e-6), describe(system)
    assert found.cycle["response_time"] == pytest.approx(exact.cycle_response, rel=1e-6), describe(system)
    for label, response in exact.entry_response.items():
        if exact.entry_throughput[label] > 0:
            assert found.entries[label]["response_time"] == pytest.approx(response, rel=1e-6), label
    for name, busy in exact.busy.items():
        assert found.tasks[name]["busy"] == pytest.approx(busy, rel=1e-6, abs=1e-9), name


def nested() -> Model:
    """Clients -> Web (3 threads) -> Db (2 threads, one core) with a choice and a zero-time hop on the way."""
    web = entry(
        "e", act("in"), act("ask", calls="Hop.e"), act("hit", exp(0.01)), act("out", exp(0.02)),
        arcs=(choice("in", (0.6, 0.4), "ask", "hit"), merge("out", "ask", "hit")),
    )  # fmt: skip
    return model(
        clients(60, exp(0.5), "Web.e"),
        service("Web", web, threads=3),
        service("Hop", entry("e", act("pass", calls="Db.e")), threads=2),
        service("Db", entry("e", act("q", exp(0.05))), threads=2, processor="cpu"),
        processors=(ps("cpu"),),
    )


def test_clients_are_never_lost() -> None:
    """At all times the masses of a closed model add up to its clients, none is negative, no pool overflows."""
    result = fluid(nested(), until=5.0)
    assert sum(result.masses.values()) == pytest.approx(60, rel=1e-7)
    assert min(result.masses.values()) > -1e-5
    assert result.trajectory is not None
    for name, threads in (("Web", 3), ("Hop", 2), ("Db", 2)):
        assert result.trajectory.tasks[name]["busy"].max() <= threads + 1e-4


def test_trajectory_ends_where_the_state_of_rest_is() -> None:
    """Both ways to the steady state agree, with nested pools, and obey the bottleneck's law."""
    rest, late = fluid(nested()), fluid(nested(), until=30.0)
    assert late.cycle["throughput"] == pytest.approx(rest.cycle["throughput"], rel=1e-5)
    assert rest.cycle["throughput"] == pytest.approx(1 / (0.6 * 0.05), rel=1e-7)
    assert late.tasks["Web"]["queue"] == pytest.approx(rest.tasks["Web"]["queue"], rel=1e-4)


def test_many_clients_meet_the_bottleneck_law() -> None:
    """The running example: 5 threads are held for 43 ms, whatever the number of clients."""
    result = fluid(running_example(100_000))
    assert result.cycle["throughput"] == pytest.approx(5 / 0.043, rel=1e-6)
    assert result.tasks["A"]["utilization"] == pytest.approx(1, rel=1e-7)


def test_immediate_steps_do_not_slow_it_down() -> None:
    """A chain of 30 nested calls that take no time but for the last: still a handful of states, at once."""
    tasks = [service(f"T{i}", entry("e", act("pass", calls=f"T{i + 1}.e")), threads=5) for i in range(30)]
    tasks.append(service("T30", entry("e", act("w", exp(1e-5))), threads=1))
    system = model(clients(50, exp(1.0), "T0.e"), *tasks)
    start = time.process_time()
    result = fluid(system, until=10.0)
    assert result.cycle["throughput"] == pytest.approx(50, rel=1e-4)
    assert result.states < 40
    assert time.process_time() - start < 5


def test_open_arrivals_flow_through_and_overload_is_refused() -> None:
    """Below capacity what arrives leaves; above it there is no state of rest, but there is a trajectory."""
    assert fluid(open_model(0.1, 0.05)).tasks["A"]["throughput"] == pytest.approx(10, rel=1e-6)
    with pytest.raises(SimulationError, match="does not come to rest"):
        fluid(open_model(0.1, 0.2))
    flood = fluid(open_model(0.1, 0.2), until=20.0)
    # 10 arrive and 5 leave per second, except while the first thread is not busy yet.
    assert flood.tasks["A"]["queue"] == pytest.approx(20 * 5, rel=0.02)


def test_a_releasing_call_frees_the_thread() -> None:
    """The callee is the only limit if callers give back their threads meanwhile, and the caller's pool if not."""

    def system(kind: str) -> Model:
        call = Call(task="B", entry="e", kind=kind)  # type: ignore[arg-type]
        work = Activity(name="w", demand=exp(0.1), delay=Constant(0.0), calls=(call,))
        caller = Task(name="A", threads=1, entries=(Entry(name="e", start="w", activities=(work,)),))
        return model(clients(50, exp(1.0), "A.e"), caller, service("B", entry("e", act("w", exp(0.3)))))

    assert fluid(system("synchronous")).cycle["throughput"] == pytest.approx(1 / 0.4, rel=1e-6)
    assert fluid(system("releasing")).cycle["throughput"] == pytest.approx(10, rel=1e-6)


def test_second_phase_and_sends_load_but_do_not_delay() -> None:
    """Work behind the reply and requests sent without one use threads, and the client does not see them."""
    work = replace(act("first", exp(0.1), replies=True), calls=(Call(task="B", entry="e", kind="send"),))
    body = entry("e", work, act("second", exp(0.2)), arcs=seq("first", "second"))
    result = fluid(
        model(clients(1, exp(1.0), "A.e"), service("A", body), service("B", entry("e", act("w", exp(0.4)))))
    )
    assert result.cycle["response_time"] == pytest.approx(0.1, rel=1e-6)
    assert result.tasks["A"]["busy"] == pytest.approx(0.3 / 1.1, rel=1e-6)
    assert result.tasks["B"]["busy"] == pytest.approx(0.4 / 1.1, rel=1e-6)


def test_a_part_of_a_processor_competes_with_at_most_its_cores() -> None:
    """One core of two for a part: beside one endless thread the part's twenty get one core, not 20/21 of two."""
    host, part = Processor(name="host", cores=2), Processor(name="part", cores=1, parent="host")
    system = model(
        clients(1, Constant(0.0), "B.e", name="V"),
        clients(20, Constant(0.0), "A.e"),
        service("A", entry("e", act("w", exp(0.1))), processor="part"),
        service("B", entry("e", act("w", exp(0.1))), processor="host"),
        processors=(host, part),
    )
    result = fluid(system)
    assert result.tasks["A"]["throughput"] == pytest.approx(10, rel=1e-6)
    assert result.tasks["B"]["throughput"] == pytest.approx(10, rel=1e-6)
    assert result.processors["host"]["utilization"] == pytest.approx(1, rel=1e-6)


def test_long_counts_become_geometric_and_that_is_said() -> None:
    """A loop of 1000 constant rounds keeps its mean, and the result warns about its shape."""
    body = Entry(
        name="e",
        start="s",
        activities=(act("s"), act("round", exp(0.001))),
        precedences=(Precedence(pre=("s",), post=("round",), fork="loop", counts=(Constant(1000),)),),
    )
    result = fluid(model(clients(3, exp(1.0), "A.e"), service("A", body)))
    assert result.cycle["response_time"] == pytest.approx(1.0, rel=1e-6)
    assert any("geometric" in w for w in result.warnings)


@pytest.mark.slow
def test_too_many_states_fall_back_to_shared_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without inlining there are fewer states, the same means where nothing is joined, and a warning."""
    system = model(
        clients(60, exp(1.0), "A.e"),
        service("A", entry("e", act("one", exp(0.02), calls="B.e B.e B.e")), threads=4),
        service("B", entry("e", act("one", exp(0.01)), act("two", exp(0.01))), threads=2),
    )
    inlined = fluid(system)
    monkeypatch.setattr(fluid_states, "MAX_INLINED", 6)
    shared = fluid(system)
    assert shared.states != inlined.states
    assert any("in proportion" in w for w in shared.warnings)
    assert shared.cycle["throughput"] == pytest.approx(inlined.cycle["throughput"], rel=1e-6)
    assert shared.tasks["B"]["busy"] == pytest.approx(inlined.tasks["B"]["busy"], rel=1e-6)


def test_a_later_run_begins_where_an_earlier_one_ended() -> None:
    """Half of the clients join a system at rest: it starts at the old throughput and ends at the new."""
    before = fluid(single_queue(5))
    after = fluid(single_queue(10), times=[0.0, 10.0], initial=before)
    assert after.trajectory is not None
    assert after.trajectory.throughput == pytest.approx([5 / 1.1, 10 / 1.1], rel=1e-3)
    fewer = fluid(single_queue(2), times=[10.0], initial=before)
    assert fewer.cycle["throughput"] == pytest.approx(2 / 1.1, rel=1e-5)


def test_result_has_the_shape_of_a_simulation() -> None:
    """The JSON document says that it is an estimate, and has means without intervals."""
    data = json.loads(json.dumps(fluid(single_queue(5), until=1.0).to_json()))
    assert (data["engine"], data["estimate"]) == ("fluid", True)
    assert data["cycle"]["throughput"]["ci95"] is None
    assert data["tasks"]["A"].keys() >= {"throughput", "utilization", "busy", "queue"}
    assert data["tasks"]["U"]["response_time"]["mean"] == data["cycle"]["response_time"]["mean"]
    assert len(data["trajectory"]["tasks"]["A"]["queue"]) == len(data["trajectory"]["times"]) == 201


@pytest.mark.parametrize("discipline", ["hol", "pp"])
def test_priorities_are_refused_by_name(discipline: str) -> None:
    """Requests of different priority on one processor: no meaning in the fluid, and the message says where."""
    body = entry("e", act("w", exp(0.1)))
    system = model(
        clients(2, exp(1.0), "A.e B.e"),
        replace(service("A", body, processor="cpu"), priority=1),
        service("B", body, processor="cpu"),
        processors=(Processor(name="cpu", discipline=discipline),),  # type: ignore[arg-type]
    )
    with pytest.raises(UsageError, match=r"processors\['cpu'\].discipline.*different priority"):
        fluid(system)


def test_quorums_are_refused_by_name() -> None:
    """A join of two out of three has no meaning here."""
    body = entry(
        "e", act("s"), act("a", exp(1)), act("b", exp(1)), act("c", exp(1)), act("j"),
        arcs=(fork("s", "a", "b", "c"), replace(join("j", "a", "b", "c"), quorum=2)),
    )  # fmt: skip
    with pytest.raises(UsageError, match="quorum of 2 of 3"):
        fluid(model(clients(2, exp(1.0), "A.e"), service("A", body)))


@pytest.mark.slow
def test_bad_models_end_in_one_message() -> None:
    """A cycle without time, a number never measured, arguments out of range."""
    with pytest.raises(SimulationError, match="takes no time"):
        fluid(model(clients(1, None, "A.e"), service("A", entry("e", act("w")))))
    with pytest.raises(UncalibratedError, match="demand"):
        fluid(model(clients(1, exp(1.0), "A.e"), service("A", entry("e", act("w", None)))))
    with pytest.raises(UsageError, match="ascending"):
        fluid(single_queue(1), times=[1.0, 0.5])
    with pytest.raises(UsageError, match="until"):
        fluid(single_queue(1), until=-1.0)
    with pytest.raises(UsageError, match="other activities"):
        fluid(running_example(5), initial=fluid(single_queue(5)))


def test_running_example_is_right_away_from_the_knee() -> None:
    """Against an independent simulation: within 1 % at a third of the capacity, 5 % deep in saturation."""
    file = REFERENCE / "models" / "running-example.json"
    if not file.exists():
        pytest.skip(f"no reference data: {file} does not exist (set MUP_REFERENCE_DIR)")
    for row in json.loads(file.read_text())["reference"]["rows"]:
        within = {1: 0.01, 8: 0.01, 32: 0.01, 256: 0.05, 512: 0.05}.get(row["clients"])
        if within is not None:
            found = fluid(running_example(row["clients"])).cycle
            assert found["response_time"] == pytest.approx(row["response_time"]["mean"], rel=within)
            assert found["throughput"] == pytest.approx(row["throughput"]["mean"], rel=within)


def test_geometric_loops_and_interleaved_calls_keep_their_means() -> None:
    """A geometric number of calls between slices of demand: visits and time are those of the means."""
    call = Call(task="B", entry="e", count=Geometric(2.0))
    work = Activity(name="w", demand=exp(0.3), delay=Constant(0.0), calls=(call,), interleaved=True)
    caller = Task(name="A", threads=math.inf, entries=(Entry(name="e", start="w", activities=(work,)),))
    result = fluid(model(clients(4, exp(1.0), "A.e"), caller, service("B", entry("e", act("w", exp(0.1))))))
    assert result.cycle["response_time"] == pytest.approx(0.3 + 2 * 0.1, rel=1e-6)
    assert result.tasks["B"]["throughput"] == pytest.approx(2 * 4 / 1.5, rel=1e-6)
