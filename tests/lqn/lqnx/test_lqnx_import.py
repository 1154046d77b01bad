"""An lqnx file becomes the model it stands for."""

from __future__ import annotations

import math

import pytest
from lqnx_samples import CLIENT, arc, bare, file, graph, phases, read, server, there_and_back

from mup.lqn import (
    Call,
    Constant,
    Exponential,
    Forward,
    Gamma,
    Geometric,
    Hyperexponential,
    Pareto,
    Precedence,
    Uniform,
)
from mup.lqn.lqnx import model_to_lqnx
from mup.lqn.model import Entry


def served(inside: str, *others: str, task: str = 'scheduling="fcfs"') -> Entry:
    return read(file(CLIENT, server(inside, task), *others)).task("s").entry("e")


def test_a_reference_task_has_clients_and_exponential_think_time() -> None:
    """Multiplicity and think time of a reference task become clients and think."""
    task = read(file(CLIENT, server(phases("e", 'host-demand-mean="1"')))).task("c")
    assert (task.role, task.threads, task.think) == ("reference", 3, Exponential(2.0))


def test_the_calls_of_a_phase_are_interleaved_geometric_counts() -> None:
    """A STOCHASTIC call is made a geometric number of times between slices of the demand."""
    task = read(file(CLIENT, server(phases("e", 'host-demand-mean="1"')))).task("c")
    (activity,) = task.entries[0].activities
    assert activity.demand == Exponential(0.5)
    assert activity.interleaved
    assert activity.calls == (Call(task="s", entry="e", count=Geometric(2.0)),)


def test_deterministic_calls_are_exactly_that_many() -> None:
    """A DETERMINISTIC call has a constant count; asynchronous ones do not wait."""
    other = server(phases("f", 'host-demand-mean="1"')).replace('name="p"', 'name="p2"')
    other = other.replace('task name="s"', 'task name="s2"')
    entry = served(
        phases("e", 'host-demand-mean="1" call-order="DETERMINISTIC"><asynch-call dest="f" calls-mean="3"/>'),
        other,
    )
    assert entry.activities[0].calls == (Call(task="s2", entry="f", count=Constant(3), kind="send"),)


def test_second_and_third_phases_follow_the_reply() -> None:
    """Phases are a chain; the reply leaves behind the first."""
    entry = served(phases("e", 'host-demand-mean="1"', 'host-demand-mean="2"', 'host-demand-mean="3"'))
    assert [a.replies for a in entry.activities] == [True, False, False]
    assert [(p.pre, p.post) for p in entry.precedences] == [(("e_1",), ("e_2",)), (("e_2",), ("e_3",))]


def test_a_missing_first_phase_replies_at_once() -> None:
    """Without a first phase the reply leaves before any work."""
    text = phases("e", "", 'host-demand-mean="2"').replace('<activity name="e_1" phase="1" ></activity>', "")
    model = read(file(CLIENT, server(text)))
    first, second = model.task("s").entry("e").activities
    assert (first.demand, first.replies, second.demand) == (Constant(0), True, Exponential(2))
    assert model.provenance["lqnx"]["phases"]["e"] == {"1": first.name, "2": "e_2"}


@pytest.mark.parametrize(
    ("scv", "expected"),
    [
        ("0", Constant(2.0)),
        ("0.25", Gamma(2.0, 0.25)),
        ("1", Exponential(2.0)),
        ("2.5", Hyperexponential((0.25, 0.75), (5.0, 1.0))),
    ],
)
def test_the_cvsq_chooses_the_distribution(scv: str, expected: object) -> None:
    """Mean and squared coefficient of variation mean what the simulator of the tools draws."""
    entry = served(phases("e", f'host-demand-mean="2" host-demand-cvsq="{scv}"'))
    assert entry.activities[0].demand == expected


def test_bursty_and_uniform_reference_tasks() -> None:
    """Bursty tasks draw from a Pareto, uniform ones from 0 to twice the mean."""
    for scheduling, expected in (("burst", Pareto(0.5, math.sqrt(2) + 1)), ("uniform", Uniform(0.0, 1.0))):
        text = file(CLIENT.replace('"ref"', f'"{scheduling}"'), server(phases("e", 'host-demand-mean="1"')))
        assert read(text).task("c").entries[0].activities[0].demand == expected


def test_think_time_of_an_activity_is_a_delay() -> None:
    """An activity's think time is exponential and uses no processor."""
    entry = served(phases("e", 'host-demand-mean="1" think-time="0.5"'))
    assert entry.activities[0].delay == Exponential(0.5)


def test_open_arrivals_and_forwarding_and_priority() -> None:
    """Attributes of an entry: arrivals by rate, forwarding with probability, priority."""
    other = server(phases("f", 'host-demand-mean="1"'), 'scheduling="hol" priority="3"')
    other = other.replace('name="p"', 'name="p2"').replace('task name="s"', 'task name="s2"')
    text = phases("e", 'host-demand-mean="1"', entry='open-arrival-rate="4" priority="-2"')
    text = text.replace("<entry-phase", '<forwarding dest="f" prob="0.3"/><entry-phase', 1)
    model = read(file(CLIENT, server(text), other))
    entry = model.task("s").entry("e")
    assert (entry.arrivals, entry.priority) == (Exponential(0.25), -2)
    assert entry.forwards == (Forward(task="s2", entry="f", probability=0.3),)
    assert (model.task("s2").admission, model.task("s2").priority) == ("hol", 3)


@pytest.mark.parametrize(
    ("attributes", "threads", "admission"),
    [
        ('scheduling="inf"', math.inf, "fifo"),
        ('multiplicity="inf"', math.inf, "fifo"),
        ('scheduling="rand" multiplicity="4"', 4, "random"),
        ('scheduling="hol"', 1, "hol"),
        ("", 1, "fifo"),
    ],
)
def test_scheduling_of_tasks(attributes: str, threads: float, admission: str) -> None:
    """A task's scheduling says how many threads it has and who gets the next one."""
    task = read(file(CLIENT, server(phases("e", ""), attributes))).task("s")
    assert (task.threads, task.admission) == (threads, admission)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('scheduling="inf"', ("infinite", math.inf, 1.0)),
        ('scheduling="ps" multiplicity="2" quantum="0.1"', ("ps", 2, 1.0)),
        ('scheduling="pp" speed-factor="2.5"', ("pp", 1, 2.5)),
        ('scheduling="hol"', ("hol", 1, 1.0)),
        ("", ("fcfs", 1, 1.0)),
    ],
)
def test_scheduling_of_processors(attributes: str, expected: tuple[str, float, float]) -> None:
    """A processor's scheduling is its discipline; an exact model has no quantum."""
    found = read(file(CLIENT, server(phases("e", ""), processor=attributes))).processor("p")
    assert (found.discipline, found.cores, found.speed) == expected


def test_a_semaphore_has_tokens() -> None:
    """The wait entry of a semaphore keeps its thread, the signal entry gives it back."""
    text = phases("e", 'host-demand-mean="1"', entry='semaphore="wait"')
    text += phases("f", "", entry='semaphore="signal"')
    task = read(file(CLIENT, server(text, 'scheduling="semaphore" multiplicity="2"'))).task("s")
    assert {e.name: e.token for e in task.entries} == {"e": "acquire", "f": "release"}
    assert task.threads == 2


def test_a_reader_writer_lock_has_tokens() -> None:
    """Four kinds of entries lock and unlock; written, they are what was read."""
    kinds = {"e": "r-lock", "f": "r-unlock", "g": "w-lock", "h": "w-unlock"}
    text = "".join(phases(name, "", entry=f'rwlock="{kind}"') for name, kind in kinds.items())
    model = read(file(CLIENT, server(text, 'scheduling="rwlock" multiplicity="2"')))
    task = model.task("s")
    assert [e.token for e in task.entries] == ["read-lock", "read-unlock", "write-lock", "write-unlock"]
    assert task.threads == 2
    assert there_and_back(model) == bare(model)
    written = model_to_lqnx(model).text
    assert 'scheduling="rwlock"' in written
    assert all(f'rwlock="{kind}"' in written for kind in kinds.values())


def test_forks_and_joins_and_loops() -> None:
    """Every kind of precedence keeps its ends, probabilities, counts and quorum."""
    entry = served(
        graph(
            "a; b; c; d; x; y; z; l; m; n",
            arc("a", 'b:prob="0.25" c:prob="0.75"', post="post-OR")
            + arc("b c", "d", pre="pre-OR")
            + arc("d", "x y z", post="post-AND")
            + arc("x y z", "l", pre='pre-AND quorum="2"')
            + arc("l", 'm:count="1.5"', post="post-LOOP", post_attributes='end="n"'),
            reply="n",
        )
    )
    assert entry.start == "a"
    assert entry.precedences == (
        Precedence(pre=("a",), post=("b", "c"), fork="or", probabilities=(0.25, 0.75)),
        Precedence(pre=("b", "c"), post=("d",), join="or"),
        Precedence(pre=("d",), post=("x", "y", "z"), fork="and"),
        Precedence(pre=("x", "y", "z"), post=("l",), join="and", quorum=2),
        Precedence(pre=("l",), post=("m", "n"), fork="loop", counts=(Geometric(1.5),)),
    )
    assert entry.waits, "the branch the quorum does not wait for holds the thread"


def test_threads_only_wait_for_branches_that_are_never_joined() -> None:
    """A fork whose branches all meet again needs no waiting; one whose branch ends alone does."""
    joined = arc("a", "b c", post="post-AND") + arc("b c", "d", pre="pre-AND")
    assert not served(graph("a; b; c; d", joined, reply="d")).waits
    lost = arc("a", "b c", post="post-AND")
    entry = served(graph("a; b; c", lost, reply="b"))
    assert entry.waits
    assert entry.activity("b").replies


def test_a_reply_at_the_end_of_the_flow_is_not_marked() -> None:
    """Where the reply would leave anyway nothing is marked; elsewhere it is."""
    steps = arc("a", "b")
    assert not any(a.replies for a in served(graph("a; b", steps, reply="b")).activities)
    assert served(graph("a; b", steps, reply="a")).activity("a").replies


def test_two_graphs_of_a_task_are_kept_apart() -> None:
    """Each entry gets the activities that follow the one bound to it."""
    first = graph("a; b", arc("a", "b"), reply="b")
    second = graph("x; y", arc("x", "y"), reply="y", entry="f")
    task = read(file(CLIENT, server(first + second))).task("s")
    assert {e.name: [a.name for a in e.activities] for e in task.entries} == {
        "e": ["a", "b"],
        "f": ["x", "y"],
    }


def test_probabilities_that_were_rounded_are_scaled() -> None:
    """A sum of 1.0000002 is rounding in the file; the probabilities then sum to 1, with a note."""
    text = graph("a; b; c", arc("a", 'b:prob="0.3333335" c:prob="0.6666667"', post="post-OR"), reply="b c")
    model = read(file(CLIENT, server(text)))
    (fork,) = model.task("s").entry("e").precedences
    assert fork.probabilities is not None
    assert sum(fork.probabilities) == pytest.approx(1, abs=1e-12)
    assert any("rounded" in note for note in model.provenance["lqnx"]["notes"])


def test_what_is_left_out_is_noted() -> None:
    """Histograms, time limits, quanta and calls made 0 times are dropped with a note each."""
    text = phases(
        "e", 'host-demand-mean="1" max-service-time="3"><service-time-distribution min="0" max="1"/>'
    )
    client = CLIENT.replace('calls-mean="2"', 'calls-mean="0"')
    model = read(file(client, server(text, processor='scheduling="ps" quantum="0.1"')))
    notes = " | ".join(model.provenance["lqnx"]["notes"])
    assert all(word in notes for word in ("histograms", "max-service-time", "quanta", "number is 0"))
    assert model.task("c").entries[0].activities[0].calls == ()
