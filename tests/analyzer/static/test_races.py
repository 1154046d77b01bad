"""What `asyncio.wait` makes of the paths if it ends with the first of several tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from source_outline import analyse_files, codes, endpoint_source, outline

from analyzer.static import translate, translate_with_plan
from mup.cli.models.paths import command
from mup.cli.models.paths_schema import schema
from mup.lqn import Precedence, model_from_json, model_to_json
from mup.lqn.operation_changes import operation_changes
from mup.lqn.path_steps import routes

HELPERS = """
import asyncio
async def ask(comm, path):
    return await comm.call("B", path)
async def both(comm):
    return [await f for f in [comm.call("B", "/b/"), comm.query("db", "q", "c", {})]]
async def twice(comm):
    await comm.call("B", "/b/")
    await comm.call("B", "/c/")
async def later(comm, path):
    await asyncio.sleep(0.05)
    return await comm.call("B", path)
async def perhaps(comm, path):
    if comm.params["x"]:
        return await comm.call("B", path)
"""

START = "ts = [asyncio.create_task(ask(comm, p)) for p in ('/b/', '/c/')]\n"
MANY = "ts = [asyncio.create_task(ask(comm, '/b/')) for w in comm.params]\n"
FIRST = "done, others = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)\n"
CANCEL = "for t in others:\n    t.cancel()\n"
RACE = "race[call:B/b/ get:0 | call:B/c/ get:0]"

NAMED = (
    "a = asyncio.create_task(ask(comm, '/b/'))\nb = asyncio.create_task(ask(comm, '/c/'))\n"
    "await asyncio.wait([a, b], return_when=asyncio.FIRST_COMPLETED)\n"
)

FOLLOWED = {
    "a list": (f"{START}{FIRST}", f"{RACE} respond"),
    "others are cancelled": (f"{START}{FIRST}{CANCEL}x = done.pop().result()", f"{RACE} respond"),
    "a set": (
        f"ts = set()\nfor p in ('/b/', '/c/'):\n    ts.add(asyncio.create_task(ask(comm, p)))\n{FIRST}",
        f"{RACE} respond",
    ),
    "in place": (
        "t = {asyncio.create_task(ask(comm, p)) for p in ('/b/', '/c/')}\nawait asyncio.wait(t, return_when='FIRST_COMPLETED')",
        f"{RACE} respond",
    ),
    "several requests at once": (
        f"ts = [asyncio.create_task(both(comm)), asyncio.create_task(ask(comm, '/c/'))]\n{FIRST}",
        "race[call:B/b/ query:db.q get:0 get:1 | call:B/c/ get:0] respond",
    ),
    "results by name": (
        f"{NAMED}x = a.result() if a.done() else b.result()",
        f"{RACE} respond",
    ),
    "a call before and behind": (
        f"await comm.call('B', '/c/')\n{START}{FIRST}{CANCEL}await comm.call('B', '/b/')",
        f"call:B/c/ get:0 {RACE} call:B/b/ get:3 respond",
    ),
    "calls as tasks": (
        f"ts = [asyncio.create_task(comm.call('B', p)) for p in ('/b/', '/c/')]\n{FIRST}{CANCEL}",
        f"{RACE} respond",
    ),
    "calls made before": (
        (
            "a, b = comm.call('B', '/b/'), comm.call('B', '/c/')\n"
            f"ts = [asyncio.create_task(a), asyncio.create_task(b)]\n{FIRST}"
        ),
        f"{RACE} respond",
    ),
    "a call and a task": (
        (
            "ts = [asyncio.create_task(ask(comm, '/b/')), asyncio.create_task(comm.call('B', '/c/'))]\n"
            f"{FIRST}await comm.call('B', '/b/')"
        ),
        f"{RACE} call:B/b/ get:1 respond",
    ),
    "a single task": (
        f"ts = [asyncio.create_task(ask(comm, '/b/'))]\n{FIRST}",
        "task[call:B/b/ get:0] early:0 respond",
    ),
    "any number": (
        f"{MANY}{FIRST}{CANCEL}x = done.pop().result()",
        "fan-out[call:B/b/ get:0] first:0 respond",
    ),
}


def source(body: str) -> str:
    return endpoint_source(f"{body}\ncomm.respond(1)", module=HELPERS, define="async def")


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_first_of_several(tmp_path: Path, name: str) -> None:
    body, path = FOLLOWED[name]
    application = analyse_files(tmp_path, app=source(body))
    assert codes(application) == []
    assert set(outline(application)) == {path}


def test_a_request_that_is_made_again_if_it_takes_long(tmp_path: Path) -> None:
    body = (
        "a = asyncio.create_task(ask(comm, '/b/'))\ntry:\n    x = await asyncio.wait_for(asyncio.shield(a), 0.1)\n"
        "except TimeoutError:\n    b = asyncio.create_task(ask(comm, '/c/'))\n"
        "    done, others = await asyncio.wait({a, b}, return_when=asyncio.FIRST_COMPLETED)"
    )
    application = analyse_files(tmp_path, app=source(body))
    assert codes(application) == []
    task, other = "task[call:B/b/ get:0]", "task[call:B/c/ get:0]"
    assert set(outline(application)) == {
        f"{RACE} respond",
        f"{task} join:0 respond",
        f"task[-] join:0 {other} respond",  # it ends with a TimeoutError of its own
    }


def test_an_error_of_the_first_is_caught_where_its_result_is_taken(tmp_path: Path) -> None:
    body = f"{START}{FIRST}try:\n    x = done.pop().result()\nexcept CallError:\n    await comm.query('db', 'q', 'c', {{}})"
    found = outline(analyse_files(tmp_path, app=source(body)))
    assert found == [f"{RACE} query:db.q get:1 respond", f"{RACE} respond"]


TASKS = "task[call:B/b/ get:0] task[call:B/c/ get:0]"
WAIT = "done, late = await asyncio.wait(ts, timeout=1)\n"

LATE = {
    "all": (f"{START}{WAIT}", {f"{TASKS} join:0 join:1 respond", f"{TASKS} respond"}),
    "what is late is cancelled": (
        f"{START}{WAIT}for t in late:\n    t.cancel()\nx = [t.result() for t in done]",
        {f"{TASKS} join:0 join:1 respond", f"{TASKS} respond"},
    ),
    "nothing is late if all have ended": (
        f"{START}{WAIT}if late:\n    await comm.query('db', 'q', 'c', {{}})",
        {
            f"{TASKS} join:0 join:1 respond",
            f"{TASKS} query:db.q get:2 respond",
            f"{TASKS} respond",
        },
    ),
    "no limit": (
        f"{START}await asyncio.wait(ts, timeout=None)",
        {f"{TASKS} early:0 early:1 respond"},
    ),
    "the first": (
        f"{START}await asyncio.wait(ts, timeout=1, return_when=asyncio.FIRST_COMPLETED)",
        {f"{RACE} respond", f"{TASKS} respond"},
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_a_wait_that_may_end_before_its_tasks(tmp_path: Path, name: str) -> None:
    body, paths = LATE[name]
    application = analyse_files(tmp_path, app=source(body))
    assert codes(application) == []
    assert set(outline(application)) == paths


REFUSED = {
    "one of them again": (
        f"{NAMED}await a",
        "MUP030",
    ),
    "the others": (f"{START}{FIRST}await asyncio.gather(*others)", "MUP040"),
    "one of the others": (f"{START}{FIRST}for t in others:\n    await t", "MUP030"),
    "one of any number again": (f"{MANY}{FIRST}for t in ts:\n    await t", "MUP030"),
    "one after the other": (
        f"{START}while ts:\n    done, ts = await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)",
        "MUP040",
    ),
    "not started just before": (f"{START}await comm.call('B', '/b/')\n{FIRST}", "MUP030"),
    "in a loop": (
        "for w in comm.params:\n    " + (START + FIRST).replace("\n", "\n    "),
        "MUP030",
    ),
    "asks again": (
        f"ts = [asyncio.create_task(twice(comm)), asyncio.create_task(ask(comm, '/c/'))]\n{FIRST}",
        "MUP030",
    ),
    "any number that ask again": (
        f"ts = [asyncio.create_task(twice(comm)) for w in comm.params]\n{FIRST}",
        "MUP030",
    ),
    "a call that the flow made for itself": (
        f"a = comm.call('B', '/b/')\nts = [asyncio.create_task(a), asyncio.create_task(ask(comm, '/c/'))]\nb = comm.call('B', '/c/')\n{FIRST}await b",
        "MUP030",
    ),
    "sleeps first": (
        f"ts = [asyncio.create_task(later(comm, '/b/')), asyncio.create_task(ask(comm, '/c/'))]\n{FIRST}",
        "MUP030",
    ),
    "any number that sleep first": (
        f"ts = [asyncio.create_task(later(comm, '/b/')) for w in comm.params]\n{FIRST}",
        "MUP030",
    ),
    "a timer": (
        f"ts = [asyncio.create_task(asyncio.sleep(1)), asyncio.create_task(ask(comm, '/c/'))]\n{FIRST}",
        "MUP030",
    ),
    "one may do nothing": (
        f"ts = [asyncio.create_task(perhaps(comm, '/b/')), asyncio.create_task(ask(comm, '/c/'))]\n{FIRST}",
        "MUP030",
    ),
    "what is late": (
        f"{START}done, late = await asyncio.wait(ts, timeout=1)\nfor t in late:\n    await t",
        "MUP030",
    ),
    "the first error": (f"{START}await asyncio.wait(ts, return_when=asyncio.FIRST_EXCEPTION)", "MUP030"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_followed_is_one_error_with_a_remedy(tmp_path: Path, name: str) -> None:
    body, code = REFUSED[name]
    application = analyse_files(tmp_path, app=source(body))
    assert codes(application) == [code]
    assert all(error.hint for error in application.errors)


def joins(precedences: tuple[Precedence, ...]) -> list[tuple[tuple[str, ...], int | None]]:
    return [(p.pre, p.quorum) for p in precedences if p.join == "and" and len(p.pre) > 1]


def test_a_race_in_the_model(tmp_path: Path) -> None:
    """Its tasks are branches of an AND fork beside the flow, which goes on when the first is at their join."""
    model, plans = translate_with_plan(analyse_files(tmp_path, app=source(f"{START}{FIRST}")), name="x")
    entry = model.task("A").entry("/a/")
    (plan,) = plans["A", "/a/"]
    tasks = plan.races[0]
    (fork,) = [p.post for p in entry.precedences if p.fork == "and" and len(p.post) == 3]
    assert fork[1:] == tuple(task.segments[0] for task in tasks)
    assert (tuple(task.segments[-1] for task in tasks), 1) in joins(entry.precedences)
    assert [place for place, _ in plan.parts()] == [(), (0, 0), (0, 1)]
    assert model_from_json(model_to_json(model)) == model
    (route,) = routes(entry)
    assert [step.op for step, _ in route.walk()] == ["race", "call", "get", "call", "get", "respond"]


def test_what_became_of_a_race_is_told(tmp_path: Path) -> None:
    """By what it does, not by what the element is called."""
    entries = []
    for number, wait in enumerate(("await asyncio.gather(*ts)\n", FIRST)):
        folder = tmp_path / str(number)
        folder.mkdir()
        model = translate(analyse_files(folder, app=source(START + wait)), name="x")
        entries.append(model.task("A").entry("/a/"))
    (change,) = operation_changes(*entries)
    assert change.text == "comes to a wait for the first of several tasks where it came to a task"


def test_the_first_of_any_number_in_the_model(tmp_path: Path) -> None:
    model = translate(analyse_files(tmp_path, app=source(f"{MANY}{FIRST}")), name="x")
    (fan_out,) = [p for p in model.task("A").entry("/a/").precedences if p.fork == "fan-out"]
    assert fan_out.first == 1


def test_paths_command_shows_races(tmp_path: Path) -> None:
    analyse_files(
        tmp_path, app=source(f"{START}{FIRST}{MANY.replace('ts', 'us')}{FIRST.replace('ts', 'us')}")
    )
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    document = json.loads(result.stdout)
    (path,) = document["services"]["A"]["endpoints"]["/a/"]["paths"]
    assert [e["op"] for e in path] == ["race", "fan-out", "join", "respond"]
    assert [[e["op"] for e in body] for body in path[0]["body"]] == [["call", "get"]] * 2
    assert path[2]["first"] is True
    assert "race" in json.dumps(schema())
    shown = CliRunner().invoke(command, [str(tmp_path)], standalone_mode=False).stdout
    assert "first copy of line" in shown
    assert "task 2 of 2" in shown
