"""Sizes of models, against the formulas behind Table 3 of Garbi's thesis."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analyzer.static import analyse, translate
from mup.cli.models.stats import command
from mup.lqn import Constant, Forward, Geometric, Model, save_model
from mup.lqn.model import Activity, Call, Entry, Precedence, Task
from mup.lqn.statistics import reached_entries, statistics

HEAD = "from mup import MS, EP, Client\n"


def synthetic(folder: Path, *, services: int, endpoints: int, calls: int, queries: int, double: int) -> Model:
    """Return a model of an application with the given totals; `double` endpoints have a second path.

    The first service calls the second one; the client calls every endpoint. Extra paths only respond.
    """
    lines = [HEAD]
    left, asked = calls, queries
    for s in range(services):
        lines.append(f"class S{s}(MS):")
        own = endpoints // services + (1 if s < endpoints % services else 0)
        for e in range(own):
            body = []
            if s == 0 and e < double:
                body.append("if comm.params:\n            comm.respond(0)\n            return")
            if s == 0:
                share = left if e == own - 1 else min(left, calls // own)
                left -= share
                body += ["comm.call('S1', '/0/').get()"] * share
            if s == services - 1:
                share = asked if e == own - 1 else min(asked, queries // own)
                asked -= share
                body += [f"comm.query('db', 'q{e}_{i}', 'c', {{}}).get()" for i in range(share)]
            body.append("comm.respond(1)")
            lines.append(f"    @EP('/{e}/')\n    def e{e}(self, comm):\n        " + "\n        ".join(body))
    lines.append("class User(Client):\n    async def scenario(self, comm):")
    for s in range(services):
        own = endpoints // services + (1 if s < endpoints % services else 0)
        lines += [f"        await comm.call('S{s}', '/{e}/')" for e in range(own)]
    (folder / "app.py").write_text("\n".join(lines))
    return translate(analyse(folder), name="synthetic", client="User")


# Sizes printed in Table 3, with the quantities they follow from; the correct arcs and the full views next to them.
TABLE3 = [
    pytest.param(
        (2, 11, 6, 8, 0), (4, 17, 35, 23, 11, 64, 11), 76, (4, 25, 67, 39, 11, 140, 11), id="AcmeAir"
    ),
    pytest.param(
        (4, 14, 9, 13, 0), (6, 23, 50, 32, 14, 91, 14), 109, (6, 36, 102, 58, 14, 213, 14), id="JPetStore"
    ),
    pytest.param(
        (5, 30, 40, 8, 1), (7, 70, 192, 110, 30, 341, 31), 421, (7, 78, 224, 126, 30, 485, 31), id="TeaStore"
    ),
    pytest.param((4, 12, 6, 7, 0), (6, 18, 36, 24, 12, 66, 12), 78, (6, 25, 64, 38, 12, 134, 12), id="TMS"),
]


@pytest.mark.parametrize(("quantities", "table3", "arcs", "full"), TABLE3)
def test_application_of_the_thesis_sizes(
    tmp_path: Path,
    quantities: tuple[int, ...],
    table3: tuple[int, ...],
    arcs: int,
    full: tuple[int, ...],
) -> None:
    """An application with the structure of a case study has the sizes of its column in Table 3."""
    services, endpoints, calls, queries, double = quantities
    model = synthetic(
        tmp_path, services=services, endpoints=endpoints, calls=calls, queries=queries, double=double
    )
    found = statistics(model)
    assert astuple(found.table3) == table3
    assert found.correct_arcs == arcs
    assert astuple(found.full) == full
    assert found.all_paths == found.full


APP = (
    HEAD
    + """
class A(MS):
    @EP("/a/")
    def a(self, comm):
        if comm.params.get("x"):
            comm.call("B", "/b/").get()
            comm.respond(1)
        elif comm.params:
            comm.call("B", "/b/").get()
            comm.respond(2)
        else:
            comm.respond(3)
    @EP("/unused/")
    def unused(self, comm):
        comm.query("db", "q", "c", {}).get()
        comm.respond(4)
class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.respond(5)
class User(Client):
    async def scenario(self, comm):
        await comm.call("A", "/a/")
"""
)


def with_odds(model: Model, *odds: float) -> Model:
    task = model.task("A")
    entry = task.entry("/a/")
    forks = tuple(replace(p, probabilities=odds) if p.fork == "or" else p for p in entry.precedences)
    entries = tuple(replace(e, precedences=forks) if e.name == "/a/" else e for e in task.entries)
    return model.with_task(replace(task, entries=entries))


def test_equal_sequences_are_one_path(tmp_path: Path) -> None:
    """Branches that do the same operations in other lines count once, and unreached endpoints only in all paths."""
    (tmp_path / "app.py").write_text(APP)
    found = statistics(translate(analyse(tmp_path), name="x", client="User"))
    assert (found.table3.paths, found.table3.or_nodes, found.table3.entries) == (3, 2, 3)
    assert (found.all_paths.paths, found.all_paths.or_nodes) == (4, 3)


def test_only_observed_paths_count(tmp_path: Path) -> None:
    """Paths of probability 0 are not in Table 3, nor is what only they reach."""
    (tmp_path / "app.py").write_text(APP)
    model = translate(analyse(tmp_path), name="x", client="User")
    some = statistics(with_odds(model, 0.5, 0.0, 0.5))
    assert (some.table3.paths, some.table3.activities) == (3, 3 + 4 + 1)
    least = statistics(with_odds(model, 0.0, 0.0, 1.0))
    assert astuple(least.table3) == (3, 1, 1, 1, 1, 2, 1)
    assert least.all_paths == some.all_paths


def test_variants_of_an_entry_are_one_endpoint(tmp_path: Path) -> None:
    """An endpoint that was split for its callers counts as before, with the paths any variant took."""
    model = synthetic(tmp_path, services=2, endpoints=4, calls=3, queries=2, double=1)

    def split(entry: Entry) -> list[Entry]:
        return [entry, replace(entry, name=f"{entry.name}@2")] if entry.name == "/0/" else [entry]

    def redirected(task: Task) -> Task:
        if not task.is_reference:
            return replace(task, entries=tuple(e for entry in task.entries for e in split(entry)))
        (entry,) = task.entries
        # One call of the client each to another variant; both stay within reach.
        calls = [a for a in entry.activities if a.calls and a.calls[-1].entry == "/0/"]
        moved = replace(calls[0], calls=(replace(calls[0].calls[-1], entry="/0/@2"),))
        activities = tuple(moved if a is calls[0] else a for a in entry.activities)
        return replace(task, entries=(replace(entry, activities=activities),))

    changed = replace(model, tasks=tuple(redirected(t) for t in model.tasks))
    assert statistics(changed) == statistics(model)


def test_call_that_is_never_joined(tmp_path: Path) -> None:
    """Without a join there is no node, no activity behind it and no arc to it."""
    (tmp_path / "app.py").write_text(APP.replace('        await comm.call("A", "/a/")', "        pass").replace(
        'comm.call("B", "/b/").get()', 'comm.call("B", "/b/")'
    ))  # fmt: skip
    found = statistics(translate(analyse(tmp_path), name="x"))
    # Endpoints 3, paths 4 (2 equal ones), one call without join.
    assert found.table3.activities == 4 + 3 + 1
    assert found.table3.nodes == 3 + 1
    assert found.correct_arcs == 3 + 4 + 6


def test_model_without_source_is_counted_by_element() -> None:
    """A model that did not come from code has no paths; its elements are counted."""
    zero = Constant(0.0)
    names = ("one", "two", "three", "four")
    activities = tuple(
        Activity(name=n, demand=zero, delay=zero, calls=(Call(task="B", entry="b"),) if n == "two" else ())
        for n in names
    )
    arcs = (
        Precedence(pre=("one",), post=("two", "three"), fork="and"),
        Precedence(pre=("two", "three"), post=("four",), join="and"),
    )
    entry = Entry(name="a", start="one", activities=activities, precedences=arcs)
    leaf = Entry(name="b", start="b", activities=(Activity(name="b", demand=zero, delay=zero),))
    model = Model(name="x", tasks=(Task(name="A", entries=(entry,)), Task(name="B", entries=(leaf,))))
    assert astuple(statistics(model).table3) == (2, 2, 5, 2, 0, 2 + 3 + 3 + 1, 0)


def test_loops_sends_and_forwards_are_elements() -> None:
    """A loop is a node with an arc per body, a call is one arc however often it is made, so is a forward."""
    names = ("one", "body", "rest")
    call = Call(task="B", entry="b", count=Geometric(7.0), kind="send")
    activities = tuple(Activity(name=n, calls=(call,) if n == "body" else ()) for n in names)
    loop = Precedence(pre=("one",), post=("body", "rest"), fork="loop", counts=(Constant(3),))
    entry = Entry(
        name="a",
        start="one",
        activities=activities,
        precedences=(loop,),
        forwards=(Forward(task="C", entry="c"),),
    )
    leaves = [Entry(name=n, start=n, activities=(Activity(name=n),)) for n in "bc"]
    tasks = (
        Task(name="A", entries=(entry,)),
        Task(name="B", entries=(leaves[0],)),
        Task(name="C", entries=(leaves[1],)),
    )
    found = statistics(Model(name="x", tasks=tasks)).full
    assert astuple(found) == (3, 3, 5, 1, 0, 3 + 3 + 2, 0)


def test_what_requests_reach() -> None:
    """Forwards and arrivals lead somewhere; calls and loops of count 0 and forwards of probability 0 do not."""

    def leaf(name: str, *calls: Call, **fields: Any) -> Task:
        entry = Entry(name="e", start="x", activities=(Activity(name="x", calls=calls),), **fields)
        return Task(name=name, entries=(entry,))

    never = Precedence(pre=("x",), post=("y", "z"), fork="loop", counts=(Constant(0),))
    activities = (
        Activity(name="x", calls=(Call(task="A", entry="e"), Call(task="B", entry="e", count=Constant(0)))),
        Activity(name="y", calls=(Call(task="B", entry="e"),)),
        Activity(name="z", calls=(Call(task="C", entry="e", count=None),)),
    )
    cycle = Entry(name="e", start="x", activities=activities, precedences=(never,))
    model = Model(
        name="m",
        tasks=(
            Task(name="U", role="reference", entries=(cycle,)),
            leaf(
                "A",
                forwards=(
                    Forward(task="D", entry="e", probability=0.5),
                    Forward(task="B", entry="e", probability=0.0),
                ),
            ),
            leaf("B"),
            leaf("C"),
            leaf("D"),
            leaf("E", arrivals=Constant(1.0)),
        ),
    )
    assert {task for task, _ in reached_entries(model)} == {"U", "A", "C", "D", "E"}


def test_stats_command(tmp_path: Path) -> None:
    """`mup stats --json` prints one document with the three views and the corrected arcs."""
    (tmp_path / "app.py").write_text(APP)
    save_model(translate(analyse(tmp_path), name="shop", client="User"), tmp_path / "m.json")
    result = CliRunner().invoke(command, [str(tmp_path / "m.json"), "--json"])
    document = json.loads(result.stdout)
    assert set(document) == {"table3", "correct_arcs", "full", "all_paths"}
    assert set(document["table3"]) == {
        "tasks", "entries", "activities", "nodes", "or_nodes", "arcs", "paths"
    }  # fmt: skip
    shown = CliRunner().invoke(command, [str(tmp_path / "m.json")])
    assert "OR-nodes" in shown.stdout
