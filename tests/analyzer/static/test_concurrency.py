"""What asyncio's tasks, gathers, timeouts and groups make of the paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline, outline_path

from analyzer.static import analyse, translate, translate_with_plan
from mup.cli.models.paths import command
from mup.lqn import Entry, model_from_json, model_to_json

HELPERS = """
import asyncio
async def ask(comm, path):
    return await comm.call("B", path)
async def twice(comm):
    await comm.call("B", "/b/")
    await comm.call("B", "/c/")
async def careful(comm):
    try:
        await comm.call("B", "/b/")
    except CallError:
        await comm.query("db", "q", "c", {})
async def wait(future):
    return await future
async def silent(x):
    return x
"""

ASK = "task[call:B/b/ get:0]"
ASK_C = "task[call:B/c/ get:0]"

FUTURES = [
    pytest.param(
        "f = comm.call('B', '/b/')\ng = comm.query('db', 'q', 'c', {})\nx, y = await asyncio.gather(f, g)",
        ["call:B/b/ query:db.q get:0 get:1 respond"],
        id="gather",
    ),
    pytest.param(
        "await asyncio.gather(*[comm.call('B', p) for p in ('/b/', '/c/')])",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="gather-of-a-list",
    ),
    pytest.param(
        "fs = {'x': comm.call('B', '/b/'), 'y': comm.call('B', '/c/')}\nawait asyncio.gather(*fs.values())",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="gather-of-a-dict",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nawait asyncio.gather(f, f)\nawait f",
        ["call:B/b/ get:0 respond"],
        id="waited-for-again-and-again",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nx = await asyncio.shield(f)", ["call:B/b/ get:0 respond"], id="shield"
    ),
    pytest.param(
        "async def go():\n    return [comm.call('B', '/b/')], 1\nfs, _ = await go()\nawait fs[0]",
        ["call:B/b/ get:0 respond"],
        id="future-returned-in-a-tuple",
    ),
    pytest.param(
        "await asyncio.wait_for(comm.call('B', '/b/'), 1)", ["call:B/b/ get:0 respond"], id="timeout-ends-it"
    ),
    pytest.param(
        "try:\n    await asyncio.wait_for(comm.call('B', '/b/'), timeout=1)\nexcept asyncio.TimeoutError:\n"
        "    await comm.call('B', '/c/')",
        [
            "call:B/b/ get:0 call:B/c/ get:2 respond",
            "call:B/b/ get:0 respond",
            # The arguments of the call may raise a TimeoutError of their own.
            "call:B/b/ call:B/c/ get:1 respond",
            "call:B/c/ get:0 respond",
        ],
        id="wait-for",
    ),
    pytest.param(
        "try:\n    async with asyncio.timeout(1):\n        await comm.call('B', '/b/')\n        await asyncio.sleep(1)\n"
        "        await comm.call('B', '/c/')\nexcept TimeoutError:\n    pass",
        ["call:B/b/ get:0 call:B/c/ get:2 respond", "call:B/b/ get:0 respond", "respond"],
        id="timeout",
    ),
    pytest.param(
        "try:\n    async with asyncio.timeout(1):\n        try:\n            await comm.call('B', '/b/')\n"
        "        except Exception:\n            await comm.call('B', '/c/')\nexcept TimeoutError:\n    pass",
        [
            "call:B/b/ call:B/c/ get:1 respond",
            "call:B/b/ get:0 call:B/c/ get:2 respond",
            "call:B/b/ get:0 respond",
            "call:B/b/ respond",
            "call:B/c/ get:0 respond",
            "respond",
        ],
        id="cancellation-is-no-exception-inside",
    ),
    pytest.param(
        "async with asyncio.Semaphore(2), asyncio.Lock():\n    await comm.call('B', '/b/')",
        ["call:B/b/ get:0 respond"],
        id="lock",
    ),
    pytest.param(
        "x = [await f for f in [comm.call('B', '/b/'), comm.call('B', '/c/')]]",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="comprehension",
    ),
    pytest.param(
        "async for row in comm.params['rows']:\n    await comm.call('B', '/b/')",
        ["loop[call:B/b/ get:0] respond"],
        id="async-for",
    ),
    pytest.param("await asyncio.gather(silent(1), asyncio.sleep(1))", ["respond"], id="nothing-remote"),
    pytest.param(
        "try:\n    await asyncio.gather(comm.call('B', '/b/'), comm.call('B', '/c/'))\nexcept CallError:\n    pass",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="all-are-waited-for-even-if-one-fails",
    ),
    pytest.param(
        "for f in asyncio.as_completed([comm.call('B', '/b/'), comm.call('B', '/c/')]):\n    await f\n"
        "    await comm.call('B', '/b/')",
        [
            "call:B/b/ call:B/c/ task[get:-2] task[get:-2] join:2 call:B/b/ get:5 join:3 call:B/b/ get:8 respond"
        ],
        id="as-completed",
    ),
]

TASKS = [
    pytest.param(
        "x, y = await asyncio.gather(ask(comm, '/b/'), ask(comm, '/c/'))",
        [f"{ASK} {ASK_C} join:0 join:1 respond"],
        id="gather-of-coroutines",
    ),
    pytest.param(
        "await asyncio.gather(*(ask(comm, p) for p in ('/b/', '/c/')))",
        [f"{ASK} {ASK_C} join:0 join:1 respond"],
        id="gather-of-a-generator",
    ),
    pytest.param(
        "await asyncio.gather(ask(comm, '/b/'), asyncio.sleep(1))",
        ["call:B/b/ get:0 respond"],
        id="only-one-communicates",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nawait asyncio.gather(f, ask(comm, '/c/'), comm.call('B', '/c/'))",
        [f"call:B/b/ call:B/c/ {ASK_C} get:0 get:1 join:2 respond"],
        id="gather-of-both",
    ),
    pytest.param(
        "t = asyncio.create_task(twice(comm))\nawait comm.call('B', '/c/')\nawait t",
        ["task[call:B/b/ get:0 call:B/c/ get:2] call:B/c/ get:1 join:0 respond"],
        id="task",
    ),
    pytest.param(
        "t = asyncio.ensure_future(ask(comm, '/b/'))\nu = asyncio.get_running_loop().create_task(ask(comm, '/c/'))\n"
        "await u\nawait t\nawait t\nx = t.result()",
        [f"{ASK} {ASK_C} join:1 join:0 respond"],
        id="tasks-overlap",
    ),
    pytest.param("asyncio.create_task(ask(comm, '/b/'))", [f"{ASK} respond"], id="never-awaited"),
    pytest.param(
        "f = comm.call('B', '/b/')\ng = asyncio.gather(f, comm.call('B', '/c/'))\nawait comm.call('B', '/b/')\nawait g",
        ["call:B/b/ call:B/c/ task[get:-2] task[get:-2] call:B/b/ get:4 join:2 join:3 respond"],
        id="gather-in-the-background",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nawait asyncio.gather(wait(f), ask(comm, '/c/'))\nawait f",
        [f"call:B/b/ task[get:-1] {ASK_C} join:1 join:2 respond"],
        id="task-waits-for-a-call-made-before",
    ),
    pytest.param(
        "async def both():\n    await asyncio.gather(ask(comm, '/b/'), ask(comm, '/c/'))\n"
        "await asyncio.gather(both(), ask(comm, '/b/'))",
        [f"task[{ASK} {ASK_C} join:0 join:1] {ASK} join:0 join:1 respond"],
        id="nested",
    ),
    pytest.param(
        "async with asyncio.TaskGroup() as tg:\n    t = tg.create_task(ask(comm, '/b/'))\n"
        "    tg.create_task(ask(comm, '/c/'))\nx = t.result()",
        [f"{ASK} {ASK_C} join:0 join:1 respond"],
        id="task-group",
    ),
    pytest.param(
        "async with asyncio.TaskGroup() as tg:\n    for p in ('/b/', '/c/'):\n        tg.create_task(ask(comm, p))\n"
        "    await comm.call('B', '/b/')",
        [f"{ASK} {ASK_C} call:B/b/ get:2 join:0 join:1 respond"],
        id="task-group-in-a-loop",
    ),
    pytest.param(
        "ts = [asyncio.create_task(ask(comm, p)) for p in ('/b/', '/c/')]\ndone, _ = await asyncio.wait(ts)\n"
        "x = [t.result() for t in done]",
        [f"{ASK} {ASK_C} early:0 early:1 respond"],
        id="wait",
    ),
    pytest.param(
        "ts = set()\nfor p in ('/b/', '/c/'):\n    ts.add(asyncio.create_task(ask(comm, p)))\n"
        "await asyncio.wait(ts, timeout=None, return_when=asyncio.ALL_COMPLETED)",
        [f"{ASK} {ASK_C} early:0 early:1 respond"],
        id="wait-for-a-set",
    ),
    pytest.param(
        "ts = {asyncio.create_task(ask(comm, '/b/')), asyncio.create_task(ask(comm, '/c/'))}\n"
        "for t in ts:\n    await t",
        [f"{ASK} {ASK_C} join:0 join:1 respond"],
        id="loop-over-a-set",
    ),
    pytest.param(
        "try:\n    for f in asyncio.as_completed([ask(comm, '/b/'), ask(comm, '/c/')]):\n        await f\n"
        "except CallError:\n    pass",
        [
            f"{ASK} {ASK_C} join:0 join:1 respond",
            f"{ASK} {ASK_C} join:0 respond",
            f"{ASK} {ASK_C} join:1 respond",
        ],
        id="whichever-fails-as-completed",
    ),
    pytest.param(
        "await asyncio.gather(ask(comm, '/b/'), ask(comm, '/c/'), return_exceptions=True)",
        [f"{ASK} {ASK_C} early:0 early:1 respond"],
        id="errors-are-results",
    ),
    pytest.param(
        "try:\n    await asyncio.gather(twice(comm), ask(comm, '/c/'))\nexcept CallError:\n    pass",
        [
            f"task[call:B/b/ get:0 call:B/c/ get:2] {ASK_C} join:0 join:1 respond",
            f"task[call:B/b/ get:0] {ASK_C} join:0 respond",
            f"task[call:B/b/ get:0 call:B/c/ get:2] {ASK_C} join:0 respond",
            f"task[call:B/b/ get:0 call:B/c/ get:2] {ASK_C} join:1 respond",
        ],
        id="others-go-on-when-one-fails",
    ),
    pytest.param(
        "await asyncio.gather(careful(comm), ask(comm, '/c/'))",
        [
            f"task[call:B/b/ get:0 query:db.q get:2] {ASK_C} join:0 join:1 respond",
            f"{ASK} {ASK_C} join:0 join:1 respond",
        ],
        id="branches-with-alternatives",
    ),
    pytest.param(
        "async def fail():\n    await comm.call('B', '/b/')\n    raise KeyError('x')\nt = asyncio.create_task(fail())\n"
        "try:\n    await t\nexcept KeyError:\n    await comm.call('B', '/c/')",
        [
            "task[call:B/b/ get:0 raise] join:0 call:B/c/ get:2 respond",
            "task[call:B/b/ get:0 raise] call:B/c/ get:1 respond",
            "task[-] join:0 call:B/c/ get:2 respond",
        ],
        id="exception-shows-where-it-is-awaited",
    ),
    pytest.param(
        "try:\n    async with asyncio.TaskGroup() as tg:\n        tg.create_task(ask(comm, '/b/'))\nexcept* CallError:\n    pass",
        [f"{ASK} join:0 respond", "task[call:B/b/] join:0 respond", "task[-] join:0 respond", "respond"],
        id="task-group-fails",
    ),
    pytest.param(
        "t = asyncio.create_task(twice(comm))\nawait comm.call('B', '/c/')\nt.cancel()",
        ["task[call:B/b/ get:0 call:B/c/ get:2] call:B/c/ get:1 respond"],
        id="cancel",
    ),
    pytest.param(
        "for w in comm.params:\n    await asyncio.gather(ask(comm, '/b/'), ask(comm, '/c/'))",
        [f"loop[{ASK} {ASK_C} join:0 join:1] respond"],
        id="in-a-loop",
    ),
    pytest.param(
        "async def each():\n    for w in comm.params:\n        await comm.call('B', '/b/')\n"
        "await asyncio.gather(each(), ask(comm, '/c/'))",
        [f"task[loop[call:B/b/ get:0]] {ASK_C} join:0 join:1 respond"],
        id="loop-inside",
    ),
    pytest.param(
        "seen = []\nasync def one(p):\n    if not seen:\n        await comm.call('B', p)\n    seen.append(p)\n"
        "await asyncio.gather(one('/b/'), one('/c/'))",
        [
            f"{ASK} {ASK_C} join:0 join:1 respond",
            f"{ASK} join:0 respond",
            f"{ASK_C} join:0 respond",
            "respond",
        ],
        id="what-one-changes-the-other-may-see",
    ),
    pytest.param(
        "async def one():\n    if flag:\n        await comm.call('B', '/b/')\nflag = False\nt = asyncio.create_task(one())\n"
        "flag = True\nawait t",
        [f"{ASK} join:0 respond", "respond"],
        id="variable-that-changes-meanwhile",
    ),
    pytest.param(
        "seen = []\nasync def one():\n    if seen:\n        await comm.call('B', '/b/')\nt = asyncio.create_task(one())\n"
        "seen.append(1)\nawait t",
        [f"{ASK} join:0 respond", "respond"],
        id="list-that-changes-meanwhile",
    ),
    pytest.param(
        "async def answer():\n    comm.respond(1)\nawait asyncio.gather(answer(), ask(comm, '/b/'))\nreturn",
        [f"task[respond] {ASK} join:0 join:1"],
        id="response-in-a-task",
    ),
    pytest.param(
        "for f in asyncio.as_completed([ask(comm, '/b/'), ask(comm, '/c/')]):\n    x = await f",
        [f"{ASK} {ASK_C} join:0 join:1 respond"],
        id="tasks-as-completed",
    ),
]


def async_source(body: str) -> str:
    return endpoint_source(f"{body}\ncomm.respond(1)", module=HELPERS, define="async def")


@pytest.mark.parametrize(("body", "paths"), FUTURES + TASKS)
def test_paths_of_an_async_body(tmp_path: Path, body: str, paths: list[str]) -> None:
    """Waiting for several is waiting for each; coroutines side by side are tasks; nothing is reported."""
    application = analyse_files(tmp_path, app=async_source(body))
    assert outline(application) == sorted(paths)
    assert codes(application) == []
    model = translate(application, name="x")
    assert model_from_json(model_to_json(model)) == model


def test_independent_branches_of_tasks_are_choices(tmp_path: Path) -> None:
    """Tasks with many branches do not multiply paths either: what each decides is a choice inside it."""
    many = "".join(f"    if comm.params['{i}']:\n        await comm.call('B', '/b/')\n" for i in range(8))
    body = f"async def some():\n{many}await asyncio.gather(some(), some())"
    application = analyse_files(tmp_path, app=async_source(body))
    (path,) = application.endpoint("A/a/").paths
    choice = "choice[call:B/b/ get:0 | -]"
    task = f"task[{' '.join([choice] * 8)}]"
    assert outline_path(path) == f"{task} {task} join:0 join:1 respond"
    assert codes(application) == []
    model = translate(application, name="x")
    assert model_from_json(model_to_json(model)) == model


def test_task_that_may_be_started_is_waited_for(tmp_path: Path) -> None:
    """Ways with a task under way stay apart from others until it is waited for."""
    many = "".join(f"if comm.params['{i}']:\n    await comm.call('B', '/b/')\n" for i in range(7))
    body = f"t = None\nif comm.params:\n    t = asyncio.create_task(ask(comm, '/c/'))\n{many}if t is not None:\n    await t"
    application = analyse_files(tmp_path, app=async_source(body))
    choices = " ".join(["choice[call:B/b/ get:0 | -]"] * 7)
    assert outline(application) == [f"choice[{ASK_C} {choices} join:0 | {choices}] respond"]
    assert codes(application) == []


OBJECTS = """
class Api:
    def __init__(self, comm):
        self.comm = comm
        self.asked = 0
    async def get(self, path):
        self.asked += 1
        return await self.comm.call("B", path)
"""


def test_objects_in_tasks(tmp_path: Path) -> None:
    """Tasks may share an object that communicates, also with the code that goes on beside them."""
    body = f"{OBJECTS}async def beside(comm):\n    api = Api(comm)\n    t = asyncio.create_task(api.get('/b/'))\n"
    body += "    await api.get('/c/')\n    await t\n"
    source = endpoint_source(
        "api = Api(comm)\nawait asyncio.gather(api.get('/b/'), api.get('/c/'))\nawait beside(comm)\ncomm.respond(1)",
        module=HELPERS + body,
        define="async def",
    )
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == [f"{ASK} {ASK_C} join:0 join:1 {ASK} call:B/c/ get:5 join:4 respond"]


BLOCKING = [
    pytest.param("x = comm.call('B', '/b/').get()['x']", ["call:B/b/ get:0 respond"], id="chained"),
    pytest.param(
        "comm.call('B', '/b/').get(check=False).status", ["call:B/b/ get:0 respond"], id="unchecked"
    ),
    pytest.param(
        "from mup.errors import CallTimeoutError\ntry:\n    comm.call('B', '/b/').get(timeout=1)\n"
        "except CallTimeoutError:\n    comm.query('db', 'q', 'c', {})",
        [
            "call:B/b/ get:0 query:db.q respond",
            "call:B/b/ get:0 respond",
            "call:B/b/ query:db.q respond",
            "query:db.q respond",
        ],
        id="timeout",
    ),
    pytest.param(
        "def start():\n    return {'x': comm.call('B', '/b/')}, comm.call('B', '/c/')\n"
        "def end(fs):\n    return [f.get() for f in fs]\n(first, second) = start()\nend([first['x'], second])\n"
        "first['x'].get()",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="returned-passed-on-and-joined-twice",
    ),
    pytest.param(
        "fs = []\nfor p in ('/b/', '/c/'):\n    fs.append((p, comm.call('B', p)))\nfor p, f in fs:\n    if comm.params:\n"
        "        f.get()",
        [
            "call:B/b/ call:B/c/ get:0 get:1 respond",
            "call:B/b/ call:B/c/ get:0 respond",
            "call:B/b/ call:B/c/ get:1 respond",
            "call:B/b/ call:B/c/ respond",
        ],
        id="joined-in-some-branches",
    ),
    pytest.param(
        "fs = {}\nfor p in ('/b/', '/c/'):\n    fs[p] = comm.call('B', p)\nx = {p: fs[p].get() for p in fs}",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="dict-filled-in-a-loop",
    ),
]


@pytest.mark.parametrize(("body", "paths"), BLOCKING)
def test_futures_travel(tmp_path: Path, body: str, paths: list[str]) -> None:
    """A future may be returned, stored in containers, handed on and asked twice."""
    application = analyse_files(tmp_path, app=endpoint_source(f"{body}\ncomm.respond(1)"))
    assert outline(application) == sorted(paths)
    assert codes(application) == []


FINDINGS = [
    pytest.param(
        "f = comm.call('B', '/b/')\nawait asyncio.gather(wait(f), wait(f))", "MUP050", "same", id="both-wait"
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nt = asyncio.create_task(wait(f))\nawait f\nawait t",
        "MUP050",
        "same",
        id="task-and-flow-wait",
    ),
    pytest.param(
        "fs = [comm.call('B', '/b/')]\nasync def go():\n    await fs[0]\nt = asyncio.create_task(go())\nawait t",
        "MUP052",
        "shared",
        id="shared-list-of-futures",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nfor w in comm.params:\n    await asyncio.gather(wait(f), ask(comm, '/c/'))",
        "MUP031",
        "before it",
        id="task-in-a-loop-waits-for-an-earlier-call",
    ),
    pytest.param(
        "ts = [asyncio.create_task(ask(comm, p)) for p in ('/b/', '/c/')]\n"
        "await asyncio.wait(ts, return_when=asyncio.FIRST_EXCEPTION)",
        "MUP030",
        "asyncio.wait",
        id="first-error-of-some-tasks",
    ),
    pytest.param(
        "for f in asyncio.as_completed([ask(comm, '/b/'), ask(comm, '/c/')]):\n    if await f:\n        break",
        "MUP030",
        "first of several",
        id="first-as-completed",
    ),
    pytest.param(
        "for f in asyncio.as_completed([ask(comm, '/b/') for w in comm.params]):\n    if await f:\n        return",
        "MUP030",
        "waits for all",
        id="first-of-any-number",
    ),
    pytest.param(
        "fs = set()\nfor p in ('/b/', '/c/'):\n    fs.add(comm.call('B', p))\nfor f in fs:\n    await f",
        "MUP040",
        "await f",
        id="set-of-futures",
    ),
    pytest.param(
        "ts = {asyncio.create_task(ask(comm, p)) for p in ('/b/', '/c/')}\nawait ts.pop()",
        "MUP040",
        "ts.pop()",
        id="one-of-a-set",
    ),
    pytest.param(
        "async with asyncio.TaskGroup() as tg:\n    for w in comm.params:\n        for v in w:\n            tg.create_task(ask(comm, '/b/'))",
        "MUP040",
        "TaskGroup",
        id="unknown-number-in-a-group",
    ),
    pytest.param(
        "t = asyncio.create_task(ask(comm, '/b/'))\nawait asyncio.wait([t], return_when=comm.params['when'])",
        "MUP030",
        "asyncio.wait",
        id="wait-for-some",
    ),
    pytest.param(
        "for f in asyncio.as_completed([twice(comm), twice(comm)]):\n    await f\n    await comm.call('B', '/b/')",
        "MUP030",
        "between tasks",
        id="communication-between-tasks-as-completed",
    ),
    pytest.param(
        "import aiojobs\nawait aiojobs.spawn(ask(comm, '/b/'))", "MUP030", "coroutine", id="coroutine-escapes"
    ),
    pytest.param(
        "async def go():\n    return comm.call('B', '/b/')\nf = await asyncio.create_task(go())\nawait f",
        "MUP040",
        "await f",
        id="future-of-a-task",
    ),
    pytest.param(
        "async def go():\n    comm.respond(2)\nasyncio.create_task(go())\nreturn",
        "MUP020",
        "without",
        id="too-late",
    ),
    pytest.param(
        "async def go():\n    comm.respond(2)\nawait asyncio.create_task(go())",
        "MUP021",
        "again",
        id="respond-twice",
    ),
    pytest.param(
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n"
        "    f = pool.submit(ask, comm, '/b/')",
        "MUP041",
        "Communication",
        id="thread-pool",
    ),
    pytest.param(
        "import threading\nthreading.Thread(target=ask, args=(comm, '/b/')).start()",
        "MUP041",
        "Communication",
        id="thread",
    ),
    pytest.param("await asyncio.to_thread(ask, comm, '/b/')", "MUP041", "Communication", id="to-thread"),
]


@pytest.mark.parametrize(("body", "code", "words"), FINDINGS)
def test_async_body_is_diagnosed(tmp_path: Path, body: str, code: str, words: str) -> None:
    """Each thing that cannot be modelled is exactly one finding, with a remedy."""
    application = analyse_files(tmp_path, app=async_source(body))
    assert codes(application) == [code]
    (found,) = [d for d in application.diagnostics if d.severity != "info"]
    assert words in found.message
    assert found.hint


@pytest.mark.parametrize("body", [case.values[0] for case in FINDINGS if "thread" in str(case.id)])
def test_threads_have_a_remedy_of_their_own(tmp_path: Path, body: str) -> None:
    """Calls need no threads: they go out at once."""
    application = analyse_files(tmp_path, app=async_source(str(body)))
    assert "make all calls first" in application.diagnostics[0].hint


def test_a_coroutine_that_nothing_awaits_never_runs(tmp_path: Path) -> None:
    """It does nothing, which is hardly what was meant."""
    application = analyse_files(tmp_path, app=async_source("silent(1)\nask(comm, '/b/')"))
    assert outline(application) == ["respond"]
    assert codes(application) == ["MUP061", "MUP061"]


def client_source(body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{HEAD}{HELPERS}{OTHERS}class U(Client):\n    async def scenario(self, comm):\n{lines}\n"


def test_scenario_with_tasks(tmp_path: Path) -> None:
    """A user may do several things at a time, and think in each."""
    body = "async def other():\n    await self.think(1)\n    await comm.call('B', '/c/')\n"
    body += "await asyncio.gather(ask(comm, '/b/'), other())"
    application = analyse_files(tmp_path, app=client_source(body))
    assert codes(application) == []
    (path,) = application.client("U").paths
    assert outline_path(path) == f"{ASK} task[think call:B/c/ get:1] join:0 join:1"


def test_sleep_in_a_scenario(tmp_path: Path) -> None:
    """A sleep is no think time, which is said; in an endpoint it is a delay like any other."""
    application = analyse_files(
        tmp_path, app=client_source("await asyncio.sleep(1)\nawait comm.call('B', '/b/')")
    )
    assert codes(application) == ["MUP051"]
    assert application.errors == ()


def arcs(entry: Entry) -> list[str]:
    signs = {"sequence": "", "and": "&", "or": "|", "loop": "*"}
    return [f"{signs[p.join]}{','.join(p.pre)}>{signs[p.fork]}{','.join(p.post)}" for p in entry.precedences]


def test_task_in_the_model(tmp_path: Path) -> None:
    """A task is a branch of an AND fork, a join an AND join; a task that is not awaited is detached."""
    body = "f = comm.call('B', '/b/')\nt = asyncio.create_task(wait(f))\nasyncio.create_task(ask(comm, '/c/'))\nawait t"
    model, plans = translate_with_plan(analyse_files(tmp_path, app=async_source(body)), name="x")
    entry = model.task("A").entry("/a/")
    (plan,) = plans["A", "/a/"]
    names = {"f": plan.segments, "t": plan.tasks[1].segments, "u": plan.tasks[2].segments}
    joined = (names["t"][0], plan.communication[0])
    found = arcs(entry)
    assert f"{names['f'][1]}>&{names['f'][2]},{names['t'][0]}" in found
    assert f"{names['f'][2]}>&{names['f'][3]},{names['u'][0]}" in found
    assert f"&{','.join(joined)}>{names['t'][1]}" in found
    assert f"&{names['f'][3]},{names['t'][1]}>{names['f'][4]}" in found
    detached = {a.name for a in entry.activities if a.detached}
    assert detached == {names["u"][0]}
    assert [place for place, _ in plan.parts()] == [(), (1, 0), (2, 0)]


def test_task_left_behind_in_a_loop(tmp_path: Path) -> None:
    """A model cannot join in branches that rounds of a loop leave behind: such a task has none."""
    body = "for w in comm.params:\n    f = comm.call('B', '/b/')\n    try:\n        await asyncio.gather(wait(f), twice(comm))\n"
    body += "    except CallError:\n        pass"
    application = analyse_files(tmp_path, app=async_source(body))
    assert codes(application) == []
    model, plans = translate_with_plan(application, name="x")
    (loop,) = plans["A", "/a/"][0].loops.values()
    assert model_from_json(model_to_json(model)) == model
    kinds = {b.path.operations[-1].of for b in loop.bodies}
    assert kinds == {1, 2}
    left = next(b for b in loop.bodies if b.path.operations[-1].of == 1 and len(b.path.operations) == 4)
    assert f"{left.tasks[2].communication[0]}>{left.tasks[2].segments[1]}" in arcs(
        model.task("A").entry("/a/")
    )


def test_record_of_a_path_with_tasks(tmp_path: Path) -> None:
    """The record lists the operations of tasks behind them, with indices of one list."""
    body = "f = comm.call('B', '/b/')\nt = asyncio.create_task(wait(f))\nawait ask(comm, '/c/')\nawait t"
    model = translate(analyse_files(tmp_path, app=async_source(body)), name="x")
    (record,) = model.task("A").entry("/a/").paths
    found = [(o["op"], o["of"], o.get("inside")) for o in record["operations"]]
    assert found == [
        ("call", None, None),
        ("task", None, None),
        ("get", 0, [1, 0]),
        ("call", None, None),
        ("get", 3, None),
        ("join", 1, None),
        ("respond", None, None),
    ]
    assert list(record["tasks"]) == ["1"]


def test_paths_command_shows_tasks(tmp_path: Path) -> None:
    """`mup paths` has one element per task, with what it does, and one for waiting for it."""
    body = "f = comm.call('B', '/b/')\nt = asyncio.create_task(wait(f))\nawait t"
    analyse_files(tmp_path, app=async_source(body))
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    (path,) = json.loads(result.stdout)["services"]["A"]["endpoints"]["/a/"]["paths"]
    assert [e["op"] for e in path] == ["call", "task", "join", "respond"]
    ((get,),) = path[1]["body"]
    assert (get["op"], get["target"], get["of"]) == ("get", "B/b/", path[0]["line"])
    assert path[2]["of"] == path[1]["line"]
    shown = CliRunner().invoke(command, [str(tmp_path)], standalone_mode=False)
    assert f"task of line {path[1]['line']}" in shown.stdout


def test_a_task_of_a_coroutine_that_another_module_made(tmp_path: Path) -> None:
    """The call that made it stands in that module, the task in this one."""
    helper = """
async def ask(comm):
    await comm.call("B", "/b/")

def asking(comm):
    return ask(comm)
"""
    (tmp_path / "helpers.py").write_text(helper)
    service = """
import asyncio
from helpers import asking
from mup import EP, MS

class A(MS):
    runtime = "async"

    @EP("/a/")
    async def a(self, comm):
        task = asyncio.create_task(asking(comm))
        await task
        comm.respond(1)

class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.respond(1)
"""
    (tmp_path / "services.py").write_text(service)
    application = analyse(tmp_path)
    assert not application.diagnostics
    (path,) = application.endpoint("A/a/").paths
    assert [operation.op for operation in path.operations] == ["task", "join", "respond"]
