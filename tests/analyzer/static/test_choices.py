"""Where branches multiply, a path has choices."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline
from test_soundness import BODIES, Recorder, load, situations

from analyzer.static import Application, Operation, translate, translate_with_plan
from mup.cli.models.paths import command
from mup.errors import ModelError, MupError
from mup.events.sites import Site
from mup.lqn import model_from_json, model_to_json
from mup.lqn.statistics import statistics

CALL = "comm.call('B', '/b/').get()"
QUERY = "comm.query('db', 'q', 'c', {}).get()"
MANY = "".join(f"if comm.params['{n}']:\n    {CALL}\n" for n in range(7))
"""Seven branches: 128 ways, more than are enumerated."""
SEVEN = " ".join(["choice[call:B/b/ get:0 | -]"] * 7)


def indented(text: str, by: int = 4) -> str:
    return "".join(" " * by + line + "\n" for line in text.splitlines())


CASES = [
    pytest.param(MANY + "comm.respond(1)", [f"{SEVEN} respond"], id="successive-branches"),
    pytest.param(
        MANY + f"if comm.params:\n    {CALL}\nelse:\n    {QUERY}\ncomm.respond(1)",
        [f"{SEVEN} choice[call:B/b/ get:0 | query:db.q get:0] respond"],
        id="two-arms",
    ),
    pytest.param(
        MANY + f"if comm.params:\n    {CALL}\nelif comm.headers:\n    {QUERY}\n"
        "elif comm.cookies:\n    comm.call('B', '/c/')\ncomm.respond(1)",
        [f"{SEVEN} choice[call:B/b/ get:0 | query:db.q get:0 | call:B/c/ | -] respond"],
        id="ladder-is-one-choice",
    ),
    pytest.param(
        MANY + f"if comm.params:\n    {CALL}\n    if comm.headers:\n        {QUERY}\ncomm.respond(1)",
        [f"{SEVEN} choice[call:B/b/ get:0 choice[query:db.q get:0 | -] | -] respond"],
        id="nested",
    ),
    pytest.param(
        MANY + f"if comm.params:\n    comm.respond(0)\n    return\n{QUERY}\ncomm.respond(1)",
        [f"{SEVEN} query:db.q get:7 respond", f"{SEVEN} respond"],
        id="early-return-is-a-path",
    ),
    pytest.param(
        MANY + "if comm.params:\n    raise ValueError('x')\ncomm.respond(1)",
        [f"{SEVEN} raise", f"{SEVEN} respond"],
        id="raise-is-a-path",
    ),
    pytest.param(
        MANY + f"f = None\nif comm.params:\n    f = comm.call('B', '/c/')\n{QUERY}\nif f:\n    f.get()\n"
        "comm.respond(1)",
        [f"{SEVEN} choice[call:B/c/ query:db.q get:1 get:0 | query:db.q get:0] respond"],
        id="future-awaited-later-keeps-its-way-until-then",
    ),
    pytest.param(
        f"f = comm.call('B', '/c/')\n{MANY}f.get()\ncomm.respond(1)",
        [f"call:B/c/ {SEVEN} get:0 respond"],
        id="future-across-choices",
    ),
    pytest.param(
        f"{MANY}f = comm.call('B', '/c/')\nif comm.params:\n    {QUERY}\n    f.get()\nelse:\n    f.get()\n"
        "comm.respond(1)",
        [f"{SEVEN} choice[call:B/c/ query:db.q get:1 get:0 | call:B/c/ get:0] respond"],
        id="wait-inside-pulls-the-call-in",
    ),
    pytest.param(
        "".join(f"f = comm.call('B', '/c/') if comm.params['{n}'] else None\n" for n in range(7))
        + "comm.respond(1)",
        [" ".join(["choice[call:B/c/ | -]"] * 7) + " respond"],
        id="futures-nobody-waits-for",
    ),
    pytest.param(
        "".join(
            f"f = comm.call('B', '/c/') if comm.params['{n}'] else None\nif f:\n    f.get()\n"
            for n in range(7)
        )
        + "comm.respond(1)",
        [" ".join(["choice[call:B/c/ get:0 | -]"] * 7) + " respond"],
        id="pairs-of-branches",
    ),
    pytest.param(
        "".join(f"x = comm.params['{n}'] and {CALL}\n" for n in range(7)) + "comm.respond(1)",
        [f"{SEVEN} respond"],
        id="short-circuit",
    ),
    pytest.param(
        "x = [" + ", ".join(f"comm.params['{n}'] and {CALL}" for n in range(7)) + "]\ncomm.respond(x)",
        [f"{SEVEN} respond"],
        id="within-one-expression",
    ),
    pytest.param(
        "x = sum(comm.call('B', p).get() for p in ('/b/', '/c/') * 7 if comm.params[p])\ncomm.respond(x)",
        [" ".join(["choice[call:B/b/ get:0 | -] choice[call:B/c/ get:0 | -]"] * 7) + " respond"],
        id="condition-of-a-comprehension",
    ),
    pytest.param(
        f"def ask(name):\n    if name in comm.params:\n        return {CALL}\n    return None\n"
        "x = [ask('a'), ask('b'), ask('c')]\n" + MANY + "comm.respond(x)",
        [" ".join(["choice[call:B/b/ get:0 | -]"] * 10) + " respond"],
        id="helper",
    ),
    pytest.param(
        "for n in (1, 2, 3, 4):\n"
        + indented(f"if comm.params[n]:\n    {CALL}\nif comm.params[-n]:\n    {QUERY}")
        + "comm.respond(1)",
        [" ".join(["choice[call:B/b/ get:0 | -] choice[query:db.q get:0 | -]"] * 4) + " respond"],
        id="unrolled-loop",
    ),
    pytest.param(
        "for w in comm.params:\n" + indented(MANY) + "comm.respond(1)",
        [f"loop[{SEVEN}] respond"],
        id="body-of-a-loop",
    ),
    pytest.param(
        f"{MANY}for w in comm.params:\n    if w:\n        {CALL}\n    elif w == 0:\n        {QUERY}\ncomm.respond(1)",
        [f"{SEVEN} loop[call:B/b/ get:0 | query:db.q get:0] respond"],
        id="choice-that-is-all-a-loop-does",
    ),
    pytest.param(
        f"{MANY}try:\n    {CALL}\nexcept CallError:\n    {QUERY}\ncomm.respond(1)",
        [
            f"{SEVEN} call:B/b/ get:7 choice[query:db.q get:0 | -] respond",
        ],
        id="try",
    ),
    pytest.param(
        f"{MANY}if comm.params:\n    comm.respond(1)\nelse:\n    comm.respond(2)\n{QUERY}",
        [f"{SEVEN} choice[respond | respond] query:db.q get:8"],
        id="respond-in-each-arm",
    ),
    pytest.param(
        f"{MANY}done = False\nif comm.params:\n    comm.respond(1)\n    done = True\nif not done:\n    comm.respond(2)",
        [f"{SEVEN} choice[respond | respond]"],
        id="responses-are-not-mixed-up",
    ),
    pytest.param(
        f"{MANY}where = '/b/'\nif comm.params:\n    {QUERY}\n    where = '/c/'\ncomm.call('B', where).get()\ncomm.respond(1)",
        [
            f"{SEVEN} choice[query:db.q get:0 | -] choice[call:B/b/ get:0 | call:B/c/ get:0] respond",
        ],
        id="values-no-longer-go-with-branches",
    ),
]


@pytest.mark.parametrize(("body", "paths"), CASES)
def test_branches_become_choices(tmp_path: Path, body: str, paths: list[str]) -> None:
    """Ways that nothing can tell apart later are one path with a choice; the model of it is sound."""
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert codes(application) == []
    assert outline(application) == sorted(paths)
    model = translate(application, name="x")
    assert model_from_json(model_to_json(model)) == model


def branches(number: int, body: str = CALL) -> str:
    return "".join(f"if comm.params['{n}']:\n{indented(body)}" for n in range(number))


def analysed(folder: Path, body: str) -> tuple[Application, float]:
    """Return the analysis and the processor seconds it took."""
    source = endpoint_source(body)
    started = time.process_time()
    application = analyse_files(folder, app=source)
    return application, time.process_time() - started


def test_forty_branches(tmp_path: Path) -> None:
    """2 to the 40 ways: one path, analysed and translated in less than a second, with a few hundred activities."""
    started = time.process_time()
    application, _ = analysed(tmp_path, branches(40) + "comm.respond(1)")
    model = translate(application, name="x")
    elapsed = time.process_time() - started
    (path,) = application.endpoint("A/a/").paths
    assert [o.op for o in path.operations] == ["choice"] * 40 + ["respond"]
    assert path.size == 81
    assert len(model.task("A").entry("/a/").activities) < 400
    assert elapsed < 1


def test_forty_branches_that_may_fail(tmp_path: Path) -> None:
    """What failing in the 30th branch has in common with failing in the 31st is written once."""
    body = f"try:\n{indented(branches(40))}except MupError:\n    {QUERY}\ncomm.respond(1)"
    application, elapsed = analysed(tmp_path, body)
    assert codes(application) == []
    assert sum(path.size for path in application.endpoint("A/a/").paths) < 500
    assert elapsed < 2


def test_as_deep_as_code_can_be(tmp_path: Path) -> None:
    """150 ways to fail in a row nest deep, but not so deep that they cannot be read."""
    body = f"try:\n{indented(CALL + chr(10)) * 75}except Exception:\n    {QUERY}\ncomm.respond(1)"
    application, _ = analysed(tmp_path, body)
    assert codes(application) == []
    translate(application, name="x")
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    assert result.exception is None
    assert json.loads(result.stdout)["diagnostics"] == []


@pytest.mark.parametrize(("number", "paths"), [(20, 21), (40, 1)])
def test_early_returns(tmp_path: Path, number: int, paths: int) -> None:
    """Each is a path, with the choices before it; many of them are a tree."""
    body = "".join(
        f"if comm.params['{n}']:\n    {CALL}\nif comm.headers['{n}']:\n    comm.respond(0)\n    return\n"
        for n in range(number)
    )
    application, elapsed = analysed(tmp_path, body + "comm.respond(1)")
    assert codes(application) == []
    found = application.endpoint("A/a/").paths
    assert len(found) == paths
    assert sum(path.size for path in found) < 500
    assert elapsed < 2
    translate(application, name="x")


def test_futures_that_wait_for_each_other_are_too_many_paths(tmp_path: Path) -> None:
    """Forty calls that may have been made, each awaited far behind: no choice can say that; it is told soon."""
    starts = "".join(f"f{n} = comm.call('B', '/b/') if comm.params['{n}'] else None\n" for n in range(40))
    waits = "".join(f"if f{n}:\n    f{n}.get()\n" for n in range(40))
    application, elapsed = analysed(tmp_path, f"{starts}{waits}comm.respond(1)")
    assert codes(application) == ["MUP034"]
    assert elapsed < 3


def test_few_paths_are_listed(tmp_path: Path) -> None:
    """Up to 64 paths are enumerated, for that keeps what belongs together."""
    application, _ = analysed(tmp_path, branches(6) + "comm.respond(1)")
    assert len(application.endpoint("A/a/").paths) == 64


def test_finding_that_only_choices_have_is_no_finding(tmp_path: Path) -> None:
    """Values that go with their branch only as long as paths are listed: then they are listed, if that can be."""
    body = branches(2)
    for n in range(20):
        # A variable that may hold one of 20 texts is not followed; on each single path it holds one.
        body += f"{'el' if n else ''}if comm.params['k{n}']:\n    {CALL}\n    name = 'q{n}'\n"
    body += "else:\n    name = 'q'\ncomm.query('db', name, 'c', {}).get()\n"
    application, _ = analysed(tmp_path, f"{body}comm.respond(1)")
    assert codes(application) == []
    assert len(application.endpoint("A/a/").paths) == 4 * 21


def test_missing_response_in_one_arm(tmp_path: Path) -> None:
    """A way without response is found although the others have one."""
    application, _ = analysed(tmp_path, MANY + "if comm.params:\n    comm.respond(1)")
    assert codes(application) == ["MUP020"]


def test_second_response_behind_a_choice(tmp_path: Path) -> None:
    """A response in every arm is one, whichever it is."""
    body = MANY + "if comm.params:\n    comm.respond(1)\nelse:\n    comm.respond(2)\ncomm.respond(3)"
    application, _ = analysed(tmp_path, body)
    assert codes(application) == ["MUP021"]


def test_wait_for_an_earlier_call_in_a_loop(tmp_path: Path) -> None:
    """Choices do not hide what a loop cannot do."""
    body = f"f = comm.call('B', '/c/')\nfor w in comm.params:\n{indented(branches(7))}    if w:\n        f.get()\n"
    application, _ = analysed(tmp_path, f"{body}comm.respond(1)")
    assert "MUP031" in codes(application)


def test_scenario_of_a_client(tmp_path: Path) -> None:
    """Clients have choices, too."""
    body = "".join(
        f"        if self.random.random() < 0.{n}:\n            await comm.call('B', '/b/')\n"
        for n in range(1, 8)
    )
    source = HEAD + OTHERS + f"class U(Client):\n    async def scenario(self, comm):\n{body}"
    application = analyse_files(tmp_path, app=source)
    (path,) = application.client("U").paths
    assert [o.op for o in path.operations] == ["choice"] * 7
    translate(application, name="x", client="U")


def test_circle_of_calls_through_a_choice(tmp_path: Path) -> None:
    """Calls made in a choice count where endpoints call each other in a circle."""
    application, _ = analysed(tmp_path, branches(7, "comm.call('A', '/a/').get()") + "comm.respond(1)")
    assert codes(application) == ["MUP033"]


SMALL = MANY + f"if comm.params:\n    {CALL}\nelse:\n    {QUERY}\ncomm.respond(1)"


def test_choice_in_the_model(tmp_path: Path) -> None:
    """The branches of an OR part behind the activity before the choice and meet behind it; nothing is known."""
    model, plans = translate_with_plan(analyse_files(tmp_path, app=endpoint_source(SMALL)), name="x")
    entry = model.task("A").entry("/a/")
    (plan,) = plans["A", "/a/"]
    assert entry.start == plan.segments[0]
    for index in range(8):
        choice = plan.choices[index]
        assert choice.choice == plan.segments[index]
        (fork,) = [p for p in entry.precedences if p.pre == (choice.choice,)]
        assert (fork.fork, fork.probabilities) == ("or", None)
        assert fork.post == tuple(body.segments[0] for body in choice.bodies)
        (merge,) = [p for p in entry.precedences if plan.segments[index + 1] in p.post]
        assert merge.join == "or"
        assert merge.pre == tuple(body.segments[-1] for body in choice.bodies)
    places = [place for place, _ in plan.parts()]
    assert places == [(), *((index, body) for index in range(8) for body in (0, 1))]
    assert plan.describe().startswith("choice (7) [call B/b/ (8), get (8) | no operation], choice (9) [")


def test_record_of_a_path_with_choices(tmp_path: Path) -> None:
    """The record lists the operations of bodies behind their choice, as it does for loops."""
    model = translate(analyse_files(tmp_path, app=endpoint_source(SMALL)), name="x")
    (record,) = model.task("A").entry("/a/").paths
    found = [(o["op"], o["of"], o.get("inside")) for o in record["operations"]]
    assert found[:4] == [
        ("choice", None, None),
        ("call", None, [0, 0]),
        ("get", 1, [0, 0]),
        ("choice", None, None),
    ]
    assert found[-5:] == [
        ("call", None, [21, 0]),
        ("get", 22, [21, 0]),
        ("query", None, [21, 1]),
        ("get", 24, [21, 1]),
        ("respond", None, None),
    ]
    assert sorted(record["choices"], key=int) == [str(n) for n in range(0, 22, 3)]
    assert [len(segments) for segments in record["choices"]["0"]] == [3, 1]


def test_size_of_a_model_with_choices(tmp_path: Path) -> None:
    """A choice is two OR-nodes, an arc per end, and an activity per branch and behind it."""
    sizes = statistics(translate(analyse_files(tmp_path, app=endpoint_source(SMALL)), name="x"))
    # A has one path, 8 choices of 2 branches, 8 calls and a query; B has two endpoints that only respond.
    assert sizes.full.paths == 3
    assert sizes.full.or_nodes == 3 + 2 * 8
    assert sizes.full.activities == 3 + 4 * 9 + 8 * (2 + 1)
    assert sizes.full.arcs == 3 + 3 + 9 * 8 + 8 * 1 + 2 * 8 * (2 + 1)
    assert sizes.full.nodes == 3 + 2 * 9


def test_size_without_what_was_never_taken(tmp_path: Path) -> None:
    """In the view of Table 3, branches of probability 0 and what they call do not count."""
    model = translate(analyse_files(tmp_path, app=endpoint_source(SMALL)), name="x")
    task = model.task("A")
    entry = task.entry("/a/")
    # All calls are made, the query is not.
    precedences = tuple(
        replace(p, probabilities=(1.0, 0.0)) if p.fork == "or" else p for p in entry.precedences
    )
    sizes = statistics(model.with_task(replace(task, entries=(replace(entry, precedences=precedences),))))
    assert sizes.table3.activities == 3 + 4 * 8 + 8 * (1 + 1)
    assert sizes.full.entries == 3 + 8
    assert sizes.all_paths.activities == 3 + 4 * 9 + 8 * (2 + 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("choices", {}, id="no-bodies"),
        pytest.param("choices", {"0": 3}, id="no-list"),
        pytest.param("inside", [0], id="inside-of-what"),
        pytest.param("inside", [0, 7], id="no-such-body"),
    ],
)
def test_wrong_record_of_choices_is_refused(tmp_path: Path, field: str, value: object) -> None:
    """A model file whose paths do not fit their choices is refused with the place."""
    data = model_to_json(translate(analyse_files(tmp_path, app=endpoint_source(SMALL)), name="x"))
    data = json.loads(json.dumps(data))
    (record,) = data["tasks"][0]["entries"][0]["paths"]
    (record if field == "choices" else record["operations"][1])[field] = value
    with pytest.raises(ModelError, match=r"paths\[0\].choices"):
        model_from_json(data)


def test_paths_command_shows_choices(tmp_path: Path) -> None:
    """`mup paths --json` has one element per choice, with what each of its bodies does."""
    analyse_files(tmp_path, app=endpoint_source(SMALL))
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    (path,) = json.loads(result.stdout)["services"]["A"]["endpoints"]["/a/"]["paths"]
    assert [e["op"] for e in path] == ["choice"] * 8 + ["respond"]
    assert path[0]["line"] == 7
    assert [[e["op"] for e in body] for body in path[0]["body"]] == [["call", "get"], []]
    shown = CliRunner().invoke(command, [str(tmp_path)], standalone_mode=False)
    assert "either 1 of 2" in shown.stdout
    assert "nothing" in shown.stdout


def sequences(operations: tuple[Operation, ...]) -> Iterator[tuple[tuple[str, Site], ...]]:
    """Yield every sequence of operations and sites that a path without loops accepts."""
    if not operations:
        yield ()
        return
    first, rest = operations[0], operations[1:]
    heads = [s for body in first.bodies for s in sequences(body.operations)] or [((first.op, first.site),)]
    for head in heads:
        for tail in sequences(rest):
            yield (*head, *tail)


PARTING = [case for case in BODIES if any(word in str(case.values[0]) for word in ("if ", "try:", " and "))]


@pytest.mark.parametrize("body", PARTING)
def test_nothing_that_happens_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Described with choices, an endpoint still accepts whatever its code does, whichever operation fails."""
    monkeypatch.setattr("analyzer.static.execution.MAX_ENUMERATED", 0)
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert codes(application) == []
    found = {s for path in application.endpoint("A/a/").paths for s in sequences(path.operations)}
    service = load(tmp_path / "app.py").A()
    for params, failing in situations():
        comm = Recorder(tmp_path, params, failing)
        try:
            service.a(comm)
        except (MupError, ValueError, KeyError, FileNotFoundError):
            done = tuple(comm.steps)
            assert any(path[: len(done)] == done for path in found), (params, failing)
        else:
            assert tuple(comm.steps) in found, (params, failing)
