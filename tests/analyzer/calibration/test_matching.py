"""Executions of real code are matched to the paths, the loops and the operations they took."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from walking import World, endpoint, world

from analyzer.calibration.matching import (
    Match,
    Matched,
    body_counts,
    count_distribution,
    loop_counts,
    match,
    spread,
)
from analyzer.static import PathPlan
from mup.lqn import Constant, Empirical

LABEL = "A/a/"
ITEMS: tuple[list[int], ...] = ([], [0], [1], [0, 1, 0], [1, 1], [0, 0, 0, 0, 0], [2, 1, 0])

BODIES = {
    "one loop": """
        for w in comm.params["items"]:
            comm.call("B", "/b/").get()
        comm.respond(1)
    """,
    "nobody waits": """
        for w in comm.params["items"]:
            comm.call("B", "/b/")
        comm.respond(1)
    """,
    "several bodies": """
        for w in comm.params["items"]:
            if w == 1:
                continue
            f = comm.call("B", "/b/")
            if w:
                comm.query("db", "q", "c", {}).get()
            f.get()
        comm.respond(1)
    """,
    "only a loop in a loop": """
        for w in comm.params["items"]:
            for v in range(w):
                comm.call("B", "/b/").get()
        comm.respond(1)
    """,
    "a loop between a call and its get": """
        for w in comm.params["items"]:
            f = comm.call("B", "/b/")
            for v in range(w):
                comm.call("B", "/c/").get()
            f.get()
        comm.respond(1)
    """,
    "two loops over one helper": """
        def ask(words):
            for w in words:
                comm.call("B", "/b/").get()
        ask(comm.params["items"])
        ask(comm.params["items"])
        comm.respond(1)
    """,
    "search with a last step": """
        for w in comm.params["items"]:
            if comm.call("B", "/b/").get() and w:
                comm.call("B", "/c/").get()
                break
        comm.respond(1)
    """,
    "return from inside": """
        for w in comm.params["items"]:
            comm.call("B", "/b/").get()
            if w:
                comm.respond(w)
                return
        else:
            comm.query("db", "q", "c", {}).get()
        comm.respond(1)
    """,
    "until done": """
        while True:
            comm.call("B", "/b/").get()
            if comm.params["coin"]():
                break
        comm.respond(1)
    """,
    "a test that communicates": """
        while comm.call("B", "/b/").get() < 3:
            comm.query("db", "q", "c", {}).get()
        comm.respond(1)
    """,
    "errors inside": """
        for w in comm.params["items"]:
            try:
                comm.call("B", "/b/").get()
            except CallError:
                comm.query("db", "q", "c", {}).get()
        comm.respond(1)
    """,
    "errors outside": """
        try:
            for w in comm.params["items"]:
                comm.call("B", "/b/").get()
                comm.call("B", "/c/").get()
        except MupError:
            comm.respond(0)
            return
        finally:
            comm.query("db", "q", "c", {}).get()
        comm.respond(1)
    """,
    "retry": """
        while True:
            try:
                comm.call("B", "/b/").get()
                break
            except CallError:
                continue
        comm.respond(1)
    """,
    "comprehensions": """
        x = [comm.call("B", "/b/").get() for w in comm.params["items"] if w]
        y = {v: comm.call("B", "/c/").get() for w in comm.params["items"] for v in range(w)}
        comm.respond(x)
    """,
    "beside a call": """
        f = comm.call("B", "/b/")
        if comm.params["items"]:
            for w in comm.params["items"]:
                comm.call("B", "/c/").get()
        f.get()
        comm.respond(1)
    """,
    "future of the last iteration": """
        f = None
        for w in comm.params["items"]:
            f = comm.call("B", "/b/")
            if w:
                break
            f.get()
        else:
            comm.respond(0)
            return
        f.get()
        comm.respond(1)
    """,
}


def operation_of(plan: PathPlan, key: tuple[tuple[int, ...], int]) -> tuple[str, tuple[str, str, int], str]:
    place, index = key
    found = dict(plan.parts())[place].operations[index]
    return found.op, (found.site.file, found.site.function, found.site.ordinal), found.target


def check(found: Matched) -> None:
    """Every step is the operation it was matched to, and the gaps lie in the order of the path."""
    for path, matches in enumerate(found.taken):
        plan = found.plans[path]
        for one in matches:
            execution, shape = one.execution, one.shape
            assert shape.plan == path
            assert len(shape.gaps) == len(execution.steps) + 1
            assert all(shape.gaps)
            for step, key in zip(execution.steps, shape.steps, strict=True):
                op, site, target = operation_of(plan, key)
                assert step.op == op
                assert step.site in (site, None)
                if op in ("call", "query"):
                    assert execution.operations[step.seq].dest == target
            # Each operation has its own segment before and behind it.
            for key, (before, behind) in zip(shape.steps, pairwise(shape.gaps), strict=True):
                assert before[-1] == key
                assert behind[0] == (key[0], key[1] + 1)


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "no-waits"])
@pytest.mark.parametrize("name", BODIES)
def test_whatever_the_code_does_is_matched(tmp_path: Path, name: str, *, waits: bool) -> None:
    """Real code with random decisions and failures takes paths of the analysis only, step by step."""
    app = world(tmp_path, endpoint(BODIES[name]), fail=0.3 if waits else 0.0, waits=waits)
    for _ in range(6):
        for items in ITEMS:
            app.request(LABEL, items=items)
    _, plans = app.translated()
    found = match(plans[LABEL], app.of(LABEL))
    assert [u.reason for u in found.unmatched] == []
    assert found.matched == len(app.of(LABEL)) > 0
    check(found)


def run(tmp_path: Path, name: str, *sizes: list[int]) -> tuple[World, PathPlan, list[Match]]:
    app = world(tmp_path, endpoint(BODIES[name]))
    for items in sizes:
        app.request(LABEL, items=items)
    _, plans = app.translated()
    found = match(plans[LABEL], app.of(LABEL))
    (path,) = [n for n, matches in enumerate(found.taken) if matches]
    return app, plans[LABEL][path], found.taken[path]


def test_iterations_are_counted_per_entry_into_the_loop(tmp_path: Path) -> None:
    """An outer loop is come to once per execution, an inner one once per outer iteration."""
    name = "a loop between a call and its get"
    _, plan, matches = run(tmp_path, name, [2, 0, 3], [], [1])
    assert loop_counts(matches) == {((), 0): [3, 0, 1], ((0, 0), 1): [2, 0, 3, 1]}
    assert body_counts(matches, plan) == {((), 0): [4], ((0, 0), 1): [6]}


def test_iterations_that_do_nothing_are_not_seen(tmp_path: Path) -> None:
    """Silent iterations leave no trace in a log, so the counts are of those that communicate, by kind."""
    _, plan, matches = run(tmp_path, "several bodies", [1, 1, 2, 0, 0])
    assert loop_counts(matches) == {((), 0): [3]}
    kinds = [[o.op for o in body.operations] for body in plan.loops[0].bodies]
    counts = dict(zip(map(len, kinds), body_counts(matches, plan)[(), 0], strict=True))
    assert counts == {2: 2, 4: 1}


def test_loop_that_does_nothing_but_loop_keeps_the_total(tmp_path: Path) -> None:
    """Which outer iteration an inner one belongs to is nowhere in the log; how many there were is."""
    _, _, matches = run(tmp_path, "only a loop in a loop", [2, 0, 3], [], [1])
    counts = loop_counts(matches)
    assert counts[(), 0] == [1, 0, 1]
    assert counts[(0, 0), 0] == [5, 1]


def test_first_of_two_equal_loops_takes_all(tmp_path: Path) -> None:
    """Where one loop ends and an equal one begins is nowhere in the log either."""
    _, _, matches = run(tmp_path, "two loops over one helper", [1, 2], [])
    assert loop_counts(matches) == {((), 0): [4, 0], ((), 1): [0, 0]}


def test_path_without_the_loop_comes_first(tmp_path: Path) -> None:
    """A branch around a loop gets the executions without iterations."""
    app = world(tmp_path, endpoint(BODIES["beside a call"]))
    for items in ITEMS:
        app.request(LABEL, items=items)
    _, plans = app.translated()
    found = match(plans[LABEL], app.of(LABEL))
    by_loops = {bool(plan.loops): len(taken) for plan, taken in zip(found.plans, found.taken, strict=True)}
    assert by_loops == {False: 1, True: len(ITEMS) - 1}


def test_paths_that_differ_in_what_they_wait_for(tmp_path: Path) -> None:
    """The same sites in the same order are two paths if the reply that is waited for is another one."""
    body = """
        f = comm.call("B", "/b/")
        g = comm.call("B", "/b/")
        first = g if comm.params["late"] else f
        first.get()
        comm.respond(1)
    """
    app = world(tmp_path, endpoint(body))
    for late in (True, True, False):
        app.request(LABEL, late=late)
    _, plans = app.translated()
    found = match(plans[LABEL], app.of(LABEL))
    counts = {plan.operations[2].of: n for plan, n in zip(found.plans, found.counts, strict=True)}
    assert counts == {0: 1, 1: 2}


def test_waits_a_log_does_not_show_are_inserted(tmp_path: Path) -> None:
    """Each is for the reply of its own iteration and ends when that came."""
    app = world(tmp_path, endpoint(BODIES["one loop"]), waits=False)
    app.request(LABEL, items=[1, 2])
    _, plans = app.translated()
    ((one,),) = match(plans[LABEL], app.of(LABEL)).taken
    steps = one.execution.steps
    assert [(s.op, s.seq) for s in steps] == [
        ("call", 1),
        ("get", 1),
        ("call", 2),
        ("get", 2),
        ("respond", 0),
    ]
    for step in steps:
        if step.op == "get":
            assert step.resume == one.execution.operations[step.seq].finish
            assert step.start == one.execution.operations[step.seq].contact


def test_what_fits_no_path_is_told(tmp_path: Path) -> None:
    """The reason names the first operation that no path has, or says that the execution ends too early."""
    app = world(tmp_path, endpoint(BODIES["one loop"]))
    app.request(LABEL, items=[1, 2])
    _, plans = app.translated()
    (good,) = app.of(LABEL)
    steps = good.steps
    foreign = replace(good, steps=[steps[0], steps[0], *steps[1:]])
    short = replace(good, steps=steps[:-1])
    found = match(plans[LABEL], [foreign, short])
    assert found.matched == 0
    assert [u.reason for u in found.unmatched] == [
        "no path of the source has call B/b/ (app.py, A.a, operation 1) as operation 2",
        "it ends after 4 operations, where every path of the source goes on",
    ]
    assert [u.execution for u in found.unmatched] == [foreign, short]


def test_equal_sequences_share_their_shape(tmp_path: Path) -> None:
    """A sequence is matched once, however often it was seen."""
    _, _, matches = run(tmp_path, "one loop", [1, 2], [3, 4], [1])
    assert matches[0].shape is matches[1].shape
    assert matches[0].shape != matches[2].shape


WORK = """
    comm.params["work"](3)
    for w in comm.params["items"]:
        comm.params["work"](2)
        comm.call("B", "/b/").get()
        comm.params["work"](4)
    comm.params["work"](7)
    comm.respond(1)
"""


def gap(one: Match, number: int) -> tuple[float, float]:
    """Return the length of a gap in milliseconds, twice."""
    steps, execution = one.execution.steps, one.execution
    begin = steps[number - 1].resume if number else execution.begin
    end = steps[number].start if number < len(steps) else execution.done
    assert end is not None
    length = (end.time - begin.time) * 1e-6
    return length, length / 2


@pytest.mark.parametrize("sizes", [(0, 1, 2, 5, 9), (3, 3), (1, 1), (1, 4)], ids=str)
def test_gaps_around_iterations_are_divided(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """Whatever the shares are, work before, in and behind the loop adds up for every number of iterations."""
    app = world(tmp_path, endpoint(WORK))
    for size in sizes:
        app.request(LABEL, items=list(range(size)))
    _, plans = app.translated()
    (plan,) = plans[LABEL]
    (matches,) = match(plans[LABEL], app.of(LABEL)).taken
    samples = spread(matches, plan, gap)
    visits = {key: Counter(found.owner) for key, found in samples.items()}
    for owner, size in enumerate(sizes):
        assert visits[(), 0][owner] == visits[(), 1][owner] == 1
        assert all(visits[(0, 0), k][owner] == size for k in range(3) if size)
        total = sum(t for s in samples.values() for o, t in zip(s.owner, s.demand, strict=True) if o == owner)
        assert total == pytest.approx(10 + 6 * size)
    mean = {key: sum(found.demand) / len(found.demand) for key, found in samples.items()}
    for size in set(sizes):
        inside = sum(mean.get(((0, 0), k), 0.0) for k in range(3))
        assert mean[(), 0] + size * inside + mean[(), 1] == pytest.approx(10 + 6 * size, rel=1e-3)
    assert all(t >= 0 for s in samples.values() for t in (*s.demand, *s.delay))
    for found in samples.values():
        assert found.delay == pytest.approx([t / 2 for t in found.demand], abs=1e-6)


def test_work_goes_where_the_source_has_it(tmp_path: Path) -> None:
    """Where the log leaves it open, a segment without a statement of its own gets nothing."""
    body = """
        for w in comm.params["items"]:
            comm.call("B", "/b/").get()
            comm.params["work"](4)
        comm.respond(1)
    """
    app = world(tmp_path, endpoint(body))
    for size in (1, 2, 5):
        app.request(LABEL, items=list(range(size)))
    _, plans = app.translated()
    samples = spread(match(plans[LABEL], app.of(LABEL)).taken[0], plans[LABEL][0], gap)
    mean = {key: sum(found.demand) / len(found.demand) for key, found in samples.items()}
    assert mean == pytest.approx(
        {((), 0): 0, ((), 1): 0, ((), 2): 0, ((0, 0), 0): 0, ((0, 0), 1): 0, ((0, 0), 2): 4}, abs=0.02
    )


def test_counts_become_a_distribution() -> None:
    """Equal counts are a constant; many different ones keep their mean in few values."""
    assert count_distribution([3, 3]) == Constant(3.0)
    assert count_distribution([4, 1]) == Empirical((1.0, 4.0))
    many = count_distribution([n % 11 for n in range(11_000)])
    assert isinstance(many, Empirical)
    assert len(many.values) == 500
    assert many.mean == pytest.approx(5, rel=0.01)
