"""Loops whose number of iterations the source does not tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline

from analyzer.static import translate, translate_with_plan
from mup.cli.models.paths import command
from mup.lqn import Constant, Entry, Model, model_from_json, model_to_json
from mup.lqn.visits import entry_requests

CASES = [
    pytest.param(
        "for w in comm.params:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
        id="for",
    ),
    pytest.param(
        "while comm.params:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
        id="while",
    ),
    pytest.param(
        "for w in comm.params:\n    comm.call('B', '/b/')\ncomm.respond(1)",
        ["loop[call:B/b/] respond"],
        id="nobody-waits",
    ),
    pytest.param(
        "x = [comm.call('B', '/b/').get() for w in comm.params if w]\ncomm.respond(x)",
        ["loop[call:B/b/ get:0] respond"],
        id="comprehension",
    ),
    pytest.param(
        "x = {v: comm.call('B', '/b/').get() for w in ('x', 'y') for v in comm.params}\ncomm.respond(x)",
        ["loop[call:B/b/ get:0] loop[call:B/b/ get:0] respond"],
        id="comprehension-with-a-known-part",
    ),
    pytest.param(
        "comm.respond(sum(comm.call('B', '/b/').get() for w in comm.params))",
        ["loop[call:B/b/ get:0] respond"],
        id="generator-expression",
    ),
    pytest.param(
        "for w in comm.params:\n    if w:\n        comm.call('B', '/b/').get()\n    else:\n"
        "        comm.call('B', '/c/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0 | call:B/c/ get:0] respond"],
        id="several-bodies",
    ),
    pytest.param(
        "for w in comm.params:\n    f = comm.call('B', '/b/')\n    for v in w:\n        comm.call('B', '/c/').get()\n"
        "    f.get()\ncomm.respond(1)",
        ["loop[call:B/b/ loop[call:B/c/ get:0] get:0] respond"],
        id="nested",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nfor w in comm.params:\n    comm.call('B', '/c/').get()\nf.get()\ncomm.respond(1)",
        ["call:B/b/ loop[call:B/c/ get:0] get:0 respond"],
        id="beside-a-call",
    ),
    pytest.param(
        "while True:\n    if comm.call('B', '/b/').get():\n        break\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
        id="break-after-a-whole-iteration",
    ),
    pytest.param(
        "for w in comm.params:\n    if w == 'x':\n        continue\n    if w == 'y':\n        break\n"
        "    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
        id="silent-break-and-continue",
    ),
    pytest.param(
        "for w in comm.params:\n    r = comm.call('B', '/b/').get()\n    if r:\n        comm.call('B', '/c/').get()\n"
        "        break\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] call:B/b/ get:1 call:B/c/ get:3 respond", "loop[call:B/b/ get:0] respond"],
        id="break-out-of-a-longer-iteration",
    ),
    pytest.param(
        "for w in comm.params:\n    r = comm.call('B', '/b/').get()\n    if r:\n        comm.respond(r)\n        return\n"
        "comm.respond(0)",
        ["loop[call:B/b/ get:0] call:B/b/ get:1 respond", "loop[call:B/b/ get:0] respond"],
        id="return-with-the-response",
    ),
    pytest.param(
        "while True:\n    comm.call('B', '/b/').get()\n    comm.respond(1)\n    return",
        ["call:B/b/ get:0 respond"],
        id="never-repeated",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nfor w in comm.params:\n    if w:\n        comm.respond(f.get())\n        return\n"
        "    comm.call('B', '/c/').get()\ncomm.respond(0)",
        ["call:B/b/ loop[call:B/c/ get:0] get:0 respond", "call:B/b/ loop[call:B/c/ get:0] respond"],
        id="earlier-call-awaited-on-the-way-out",
    ),
    pytest.param(
        "for w in comm.params:\n    f = comm.call('B', '/b/')\n    if w:\n        break\n    f.get()\n"
        "else:\n    comm.respond(0)\n    return\nf.get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] call:B/b/ get:1 respond", "loop[call:B/b/ get:0] respond"],
        id="future-of-the-leaving-iteration",
    ),
    pytest.param(
        "for w in comm.params:\n    f = comm.call('B', '/b/')\n    if w:\n        break\nelse:\n    comm.respond(0)\n"
        "    return\nf.get()\ncomm.respond(1)",
        ["loop[call:B/b/] call:B/b/ get:1 respond", "loop[call:B/b/] respond"],
        id="only-the-last-call-is-waited-for",
    ),
    pytest.param(
        "while comm.call('B', '/b/').get():\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0 call:B/c/ get:2] call:B/b/ get:1 respond"],
        id="test-that-communicates",
    ),
    pytest.param(
        "while comm.call('B', '/b/').get():\n    pass\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
        id="only-the-test-communicates",
    ),
    pytest.param(
        "for w in comm.params:\n    try:\n        comm.call('B', '/b/').get()\n    except CallError:\n"
        "        comm.query('db', 'q', 'c', {}).get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0 query:db.q get:2 | call:B/b/ get:0] respond"],
        id="handler-inside",
    ),
    pytest.param(
        "try:\n    for w in comm.params:\n        comm.call('B', '/b/').get()\nexcept QueryError:\n    raise\n"
        "except CallError:\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] call:B/c/ get:1 respond", "loop[call:B/b/ get:0] respond"],
        id="handler-outside",
    ),
    pytest.param(
        "while True:\n    try:\n        comm.call('B', '/b/').get()\n        break\n    except CallError:\n        continue\n"
        "comm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
        id="retry",
    ),
    pytest.param(
        "for w in comm.params:\n    comm.call('B', '/b/').get()\n    if w:\n        raise KeyError\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] raise", "loop[call:B/b/ get:0] respond"],
        id="exception-leaves",
    ),
    pytest.param(
        "def ask(words):\n    for w in words:\n        if comm.call('B', '/b/').get():\n            return w\n"
        "ask(comm.params)\ncomm.call('B', '/c/').get()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] call:B/c/ get:1 respond"],
        id="in-a-helper",
    ),
    pytest.param(
        "for i in range(5000):\n    comm.call('B', '/b/')\ncomm.respond(1)",
        ["loop[call:B/b/] respond"],
        id="too-many-to-unroll",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nf.get()\nfor w in comm.params:\n    f.get()\n    f = comm.call('B', '/c/')\n    f.get()\n"
        "f.get()\ncomm.respond(1)",
        ["call:B/b/ get:0 loop[call:B/c/ get:0] respond"],
        id="answers-that-are-there",
    ),
]


@pytest.mark.parametrize(("body", "paths"), CASES)
def test_loop_is_an_element_of_the_path(tmp_path: Path, body: str, paths: list[str]) -> None:
    """Iterations that may be repeated become bodies; the way out follows the loop; nothing is reported."""
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert outline(application) == sorted(paths)
    assert codes(application) == []
    translate(application, name="x")


def test_loop_in_a_scenario(tmp_path: Path) -> None:
    """A client may think and call until it has had enough."""
    source = HEAD + OTHERS + "class U(Client):\n    async def scenario(self, comm):\n"
    source += "        while self.random.random() < 0.9:\n            await self.think(0.1)\n"
    source += "            await comm.call('B', '/b/')\n"
    application = analyse_files(tmp_path, app=source)
    (path,) = application.client("U").paths
    assert [o.op for o in path.walk()] == ["loop", "think", "call", "get"]
    model, plans = translate_with_plan(application, name="x", client="U")
    (plan,) = plans["U", "scenario"]
    assert [(place, part.think) for place, part in plan.parts()] == [((), {}), ((0, 0), {0: "think_14"})]
    assert model.task("U").entry("scenario").activity("think_14").delay == Constant(0.1)


def test_circle_of_calls_through_a_loop(tmp_path: Path) -> None:
    """Calls made in a loop count where endpoints call each other in a circle."""
    source = endpoint_source("for w in comm.params:\n    comm.call('A', '/a/').get()\ncomm.respond(1)")
    assert codes(analyse_files(tmp_path, app=source)) == ["MUP033"]


NESTED = (
    "for w in comm.params:\n"
    "    if w:\n"
    "        comm.call('B', '/b/').get()\n"
    "        continue\n"
    "    for v in w:\n"
    "        comm.query('db', 'q', 'c', {}).get()\n"
    "    comm.call('B', '/c/')\n"
    "comm.respond(1)"
)


def loops(entry: Entry) -> dict[str, tuple[str, ...]]:
    return {p.pre[0]: p.post for p in entry.precedences if p.fork == "loop"}


def test_loop_in_the_model(tmp_path: Path) -> None:
    """A loop node repeats the choice between its bodies; counts and probabilities are unknown."""
    model, plans = translate_with_plan(analyse_files(tmp_path, app=endpoint_source(NESTED)), name="x")
    entry = model.task("A").entry("/a/")
    (plan,) = plans["A", "/a/"]
    outer = plan.loops[0]
    assert (outer.pre, outer.choice, len(outer.bodies)) == (plan.segments[0], "loop_7", 2)
    assert loops(entry)[outer.pre] == (outer.choice, plan.segments[1])
    inner = outer.bodies[1].loops[0]
    assert (inner.choice, loops(entry)[inner.pre]) == (
        "",
        (inner.bodies[0].segments[0], outer.bodies[1].segments[1]),
    )
    assert [p.counts for p in entry.precedences if p.fork == "loop"] == [(None,), (None,)]
    choice = next(p for p in entry.precedences if p.fork == "or")
    assert (choice.pre, choice.post, choice.probabilities) == (
        ("loop_7",),
        tuple(b.segments[0] for b in outer.bodies),
        None,
    )
    assert model_from_json(model_to_json(model)) == model


def test_calls_of_a_loop_follow_its_counts(tmp_path: Path) -> None:
    """With 5 iterations, 2 of 10 of the long kind, and 3 inner ones each, the requests are as expected."""
    model = translate(analyse_files(tmp_path, app=endpoint_source(NESTED)), name="x")
    entry = model.task("A").entry("/a/")
    outer, inner = Constant(5), Constant(3)
    precedences = []
    for p in entry.precedences:
        if p.fork == "loop":
            precedences.append(replace(p, counts=(outer if p.post[0].startswith("loop") else inner,)))
        else:
            precedences.append(replace(p, probabilities=(0.8, 0.2)) if p.fork == "or" else p)
    requests = entry_requests(replace(entry, precedences=tuple(precedences)))
    found = {target: requests[target] for target in (("B", "/b/"), ("B", "/c/"), ("db", "q"))}
    assert found == pytest.approx({("B", "/b/"): 4, ("B", "/c/"): 1, ("db", "q"): 3})


def test_record_of_a_path_with_loops(tmp_path: Path) -> None:
    """The record lists the operations of bodies behind their loop, with indices of one list."""
    model: Model = translate(analyse_files(tmp_path, app=endpoint_source(NESTED)), name="x")
    (record,) = model.task("A").entry("/a/").paths
    found = [(o["op"], o["of"], o.get("inside")) for o in record["operations"]]
    assert found == [
        ("loop", None, None),
        ("call", None, [0, 0]),
        ("get", 1, [0, 0]),
        ("loop", None, [0, 1]),
        ("query", None, [3, 0]),
        ("get", 4, [3, 0]),
        ("call", None, [0, 1]),
        ("respond", None, None),
    ]
    assert sorted(record["communication"]) == ["1", "4", "6"]
    assert sorted(record["loops"]) == ["0", "3"]


def test_paths_command_shows_loops(tmp_path: Path) -> None:
    """`mup paths --json` has one element per loop, with the paths of one iteration."""
    analyse_files(tmp_path, app=endpoint_source(NESTED))
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    ((loop, respond),) = json.loads(result.stdout)["services"]["A"]["endpoints"]["/a/"]["paths"]
    assert (loop["op"], loop["line"], respond["op"]) == ("loop", 7, "respond")
    assert [[e["op"] for e in body] for body in loop["body"]] == [["call", "get"], ["loop", "call"]]
    assert [e["op"] for e in loop["body"][1][0]["body"][0]] == ["query", "get"]
    shown = CliRunner().invoke(command, [str(tmp_path)], standalone_mode=False)
    assert "iteration 2 of 2" in shown.stdout
