"""Fan-outs of a width that the source does not say: what a loop begins, and something behind it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline, outline_path

from analyzer.static import Application, translate
from analyzer.static.application import Operation, OperationKind
from analyzer.static.application import Path as Way
from analyzer.static.attempts import is_complete
from analyzer.static.copies import Copies
from analyzer.static.left_behind import with_copies_left_behind
from analyzer.static.rounds_in_logs import not_told_apart
from analyzer.static.values import UNKNOWN, CopyFuture, Future
from analyzer.static.values.copies import GROWING, added_to, joined_many
from mup.events.sites import Site

ASK = """
import asyncio
import itertools
async def ask(comm, i):
    return await comm.call('B', '/b/', {})
async def careful(comm, i):
    try:
        return await ask(comm, i)
    except MupError:
        return None
"""
ONE = "fan-out[call:B/b/ get:0] join:0 respond"

BLOCKING = {
    "list": "fs = [comm.call('B', '/b/') for w in comm.params]\ncomm.respond([f.get() for f in fs])",
    "generator": "fs = [comm.call('B', '/b/') for w in comm.params]\ncomm.respond(sum(f.get() for f in fs))",
    "appended": "fs = []\nfor w in comm.params:\n    fs.append((w, comm.call('B', '/b/')))\n"
    "comm.respond({w: f.get() for w, f in fs})",
    "filtered": "fs = [comm.call('B', '/b/') for w in comm.params if w]\nfor f in fs:\n    f.get()\n"
    "comm.respond(1)",
    "numbered": "fs = [comm.call('B', '/b/') for w in comm.params]\n"
    "comm.respond([(n, f.get()) for n, f in enumerate(fs)])",
    "handled one by one": "fs = [comm.call('B', '/b/') for w in comm.params]\nfor f in fs:\n    try:\n"
    "        f.get()\n    except CallError:\n        pass\ncomm.respond(1)",
}


@pytest.mark.parametrize("body", BLOCKING.values(), ids=BLOCKING)
def test_calls_first_and_waits_later(tmp_path: Path, body: str) -> None:
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert outline(application) == [ONE]
    assert codes(application) == []
    (path,) = application.endpoint("A/a/").paths
    assert path.operations[0].target == "flow"
    assert is_complete(path.operations[0].bodies[0])


AWAITED = {
    "calls": "await asyncio.gather(*[comm.call('B', '/b/') for w in comm.params])\ncomm.respond(1)",
    "coroutines": "await asyncio.gather(*[ask(comm, w) for w in comm.params])\ncomm.respond(1)",
    "calls with a limit": "await asyncio.gather(*[asyncio.wait_for(comm.call('B', '/b/'), 1) for w in comm.params])\n"
    "comm.respond(1)",
    "calls as tasks": "ts = [asyncio.create_task(comm.call('B', '/b/')) for w in comm.params]\n"
    "comm.respond([await t for t in ts])",
    "calls in a group": "async with asyncio.TaskGroup() as g:\n"
    "    ts = [g.create_task(comm.call('B', '/b/')) for w in comm.params]\ncomm.respond([t.result() for t in ts])",
    "in a variable": "cs = [ask(comm, w) for w in comm.params]\nawait asyncio.gather(*cs)\ncomm.respond(1)",
    "generator": "await asyncio.gather(*(ask(comm, w) for w in comm.params))\ncomm.respond(1)",
    "tasks": "ts = [asyncio.create_task(ask(comm, w)) for w in comm.params]\nfor t in ts:\n    await t\n"
    "comm.respond(1)",
    "gathered tasks": "ts = [asyncio.create_task(ask(comm, w)) for w in comm.params]\n"
    "await asyncio.gather(*ts)\ncomm.respond([t.result() for t in ts])",
    "group": "async with asyncio.TaskGroup() as g:\n    ts = [g.create_task(ask(comm, w)) for w in comm.params]\n"
    "comm.respond([t.result() for t in ts])",
    "as completed": "for f in asyncio.as_completed([ask(comm, w) for w in comm.params]):\n    await f\n"
    "comm.respond(1)",
    "comprehension": "ts = [asyncio.create_task(ask(comm, w)) for w in comm.params]\n"
    "comm.respond([await f for f in asyncio.as_completed(ts)])",
    "zipped": "ts = [asyncio.create_task(ask(comm, w)) for w in comm.params]\n"
    "comm.respond({w: await t for w, t in zip(comm.params, ts, strict=True)})",
}


@pytest.mark.parametrize("body", AWAITED.values(), ids=AWAITED)
def test_awaited_together(tmp_path: Path, body: str) -> None:
    source = endpoint_source(body, define="async def", module=ASK)
    application = analyse_files(tmp_path, app=source)
    assert outline(application) == [ONE]
    assert codes(application) == []


def test_errors_of_tasks_in_a_set_are_results(tmp_path: Path) -> None:
    body = "ts = {asyncio.create_task(ask(comm, w)) for w in comm.params}\nawait asyncio.wait(ts)\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=ASK))
    assert outline(application) == [ONE.replace("join", "early")]
    assert codes(application) == []


def test_errors_as_results_may_come_anywhere(tmp_path: Path) -> None:
    body = (
        "await asyncio.gather(*(ask(comm, w) for w in comm.params), return_exceptions=True)\ncomm.respond(1)"
    )
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=ASK))
    assert outline(application) == [ONE.replace("join", "early")]


def test_a_call_that_cannot_begin_stops_short(tmp_path: Path) -> None:
    body = "await asyncio.gather(*(careful(comm, w) for w in comm.params))\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=ASK))
    assert outline(application) == [ONE.replace("join", "early")]


def test_batches_are_fan_outs_in_a_loop(tmp_path: Path) -> None:
    body = "for b in comm.params:\n    fs = [comm.call('B', '/b/') for w in b]\n    for f in fs:\n        f.get()\n"
    application = analyse_files(tmp_path, app=endpoint_source(body + "comm.respond(1)"))
    assert outline(application) == ["loop[fan-out[call:B/b/ get:0] join:0] respond"]
    assert codes(application) == []
    translate(application, name="x")


def test_equal_keys_may_lose_a_future(tmp_path: Path) -> None:
    """What a dict holds need not be all that was begun."""
    body = (
        "fs = {w: comm.call('B', '/b/') for w in comm.params}\ncomm.respond([f.get() for f in fs.values()])"
    )
    assert outline(analyse_files(tmp_path, app=endpoint_source(body))) == [ONE.replace("join", "early")]


def test_what_is_done_before_the_wait_is_beside_it(tmp_path: Path) -> None:
    body = "fs = [comm.call('B', '/b/') for w in comm.params]\ng = comm.query('db', 'q', 'c', {})\ng.get()\n"
    application = analyse_files(tmp_path, app=endpoint_source(body + "comm.respond([f.get() for f in fs])"))
    assert outline(application) == ["fan-out[call:B/b/ get:0] query:db.q get:1 join:0 respond"]
    entry = translate(application, name="x").task("A").entry("/a/")
    (fan,) = [arc for arc in entry.precedences if arc.fork == "fan-out"]
    (fork,) = [arc for arc in entry.precedences if fan.pre[0] in arc.post]
    assert fork.fork == "and"
    assert any(fan.continuation in arc.pre for arc in entry.precedences if arc.join == "and")


def test_failure_goes_on_without_the_others(tmp_path: Path) -> None:
    body = "fs = [comm.call('B', '/b/') for w in comm.params]\ntry:\n    for f in fs:\n        f.get()\n"
    body += "except CallError:\n    comm.query('db', 'q', 'c', {}).get()\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert codes(application) == []
    assert outline(application) == [
        "fan-out[call:B/b/ get:0] early:0 query:db.q get:2 respond",
        ONE,
    ]
    translate(application, name="x")


@pytest.mark.parametrize(
    ("items", "most"),
    [
        ("xs[:5]", 5),
        ("xs[2:5]", 3),
        ("xs[-3:]", None),
        ("itertools.islice(xs, 4)", 4),
        ("zip(range(3), xs)", 3),
        ("enumerate(xs[:2])", 2),
        ("xs", None),
    ],
)
def test_bounds_of_the_source(tmp_path: Path, items: str, most: int | None) -> None:
    body = f"xs = comm.params\nfs = [comm.call('B', '/b/') for w in {items}]\ncomm.respond([f.get() for f in fs])"
    application = analyse_files(tmp_path, app=endpoint_source(body, module="import itertools\n"))
    assert outline(application) == [ONE]
    (path,) = application.endpoint("A/a/").paths
    assert path.operations[0].most == most


REFUSED = {
    "a wait that another call follows": "fs = [comm.call('B', '/b/') for w in comm.params]\nfor f in fs:\n    f.get()\n"
    "    comm.call('B', '/c/').get()\ncomm.respond(1)",
    "some of them": "fs = [comm.call('B', '/b/') for w in comm.params]\nfor f in fs:\n    if comm.params:\n"
    "        f.get()\ncomm.respond(1)",
    "one of them": "fs = [comm.call('B', '/b/') for w in comm.params]\ncomm.respond(fs[0].get())",
    "iterations that wait themselves": "fs = []\nfor w in comm.params:\n    comm.call('B', '/c/').get()\n"
    "    fs.append(comm.call('B', '/b/'))\ncomm.respond([f.get() for f in fs])",
    "in another loop": "fs = [comm.call('B', '/b/') for w in comm.params]\nwhile comm.params:\n    for f in fs:\n"
    "        f.get()\ncomm.respond(1)",
    "twice": "fs = [comm.call('B', '/b/') for w in comm.params]\nfor f in fs:\n    f.get()\nfor f in fs:\n    f.get()\n"
    "comm.respond(1)",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_not_followed_is_refused(tmp_path: Path, body: str) -> None:
    assert codes(analyse_files(tmp_path, app=endpoint_source(body))) in (["MUP040"], ["MUP031"])


CONFUSED = {
    "two of one helper": "await asyncio.gather(*[late(comm) for w in comm.params])\n"
    "await asyncio.gather(*[late(comm) for w in comm.params])",
    "a loop of it before": "for w in comm.params:\n    await late(comm)\n"
    "await asyncio.gather(*[late(comm) for w in comm.params])",
    "another way": "if comm.params:\n    for w in comm.params:\n        await late(comm)\n"
    "else:\n    await asyncio.gather(*[late(comm) for w in comm.params])",
    "two of one helper that a semaphore limits": "gate = asyncio.Semaphore(2)\nasync def held():\n"
    "    async with gate:\n        await ask(comm, 1)\n"
    "await asyncio.gather(*[held() for w in comm.params])\nawait asyncio.gather(*[held() for w in comm.params])",
    "two that may wait for a lock": "await asyncio.gather(*[locked(comm) for w in comm.params])\n"
    "await asyncio.gather(*[locked(comm) for w in comm.params])",
    "two that wait for something unknown": "await asyncio.gather(*[patient(comm) for w in comm.params])\n"
    "await asyncio.gather(*[patient(comm) for w in comm.params])",
    "tasks that start between waits": "ts = []\nfor w in comm.params:\n    await asyncio.sleep(1)\n"
    "    ts.append(asyncio.create_task(ask(comm, w)))\nawait asyncio.gather(*ts)\nawait ask(comm, 1)",
    "tasks that start as a stream comes": "ts = []\nasync for w in comm.params['lines']:\n"
    "    ts.append(asyncio.create_task(ask(comm, w)))\nawait asyncio.gather(*ts)\nawait ask(comm, 1)",
    "two that read a stream": "await asyncio.gather(*[reading(comm) for w in comm.params])\n"
    "await asyncio.gather(*[reading(comm) for w in comm.params])",
    "a call of it that nothing waits for": "begin(comm)\nfs = [begin(comm) for w in comm.params]\n"
    "for f in fs:\n    await f",
    "two beside each other": "fs = [begin(comm) for w in comm.params]\ngs = [begin(comm) for w in comm.params]\n"
    "for f in [*fs, *gs]:\n    await f",
    "a task beside it": "t = asyncio.create_task(later(comm))\n"
    "fs = [begin(comm) for w in comm.params]\nfor f in fs:\n    await f\nawait t",
    "copies that skip": "await asyncio.gather(*[skip(comm, late) for w in comm.params])",
}
CONFUSING = """
async def each(comm):
    fs = [comm.call('B', '/b/') for w in comm.params]
    for f in fs:
        await f
async def skip(comm, ask):
    if comm.params:
        await ask(comm)
    await comm.call('B', '/c/')
async def again(comm):
    for attempt in range(3):
        try:
            return await comm.call('B', '/b/')
        except CallError:
            await asyncio.sleep(1)
async def late(comm):
    await asyncio.sleep(1)
    await comm.call('B', '/b/')
async def patient(comm):
    await comm.params['something']()
    await comm.call('B', '/b/')
async def locked(comm):
    async with comm.params['lock']:
        pass
    await comm.call('B', '/b/')
async def reading(comm):
    async for line in comm.params['lines']:
        break
    await comm.call('B', '/b/')
def begin(comm):
    return comm.call('B', '/b/')
async def later(comm):
    await begin(comm)
"""


@pytest.mark.parametrize("body", CONFUSED.values(), ids=CONFUSED)
def test_copies_a_log_cannot_count_are_refused(tmp_path: Path, body: str) -> None:
    source = endpoint_source(f"{body}\ncomm.respond(1)", define="async def", module=ASK + CONFUSING)
    application = analyse_files(tmp_path, app=source)
    assert set(codes(application)) == {"MUP030"}
    assert list(not_told_apart(application.endpoint("A/a/").paths))


TOLD_APART = {
    "two of one helper": "await asyncio.gather(*[ask(comm, w) for w in comm.params])\n"
    "await asyncio.gather(*[ask(comm, w) for w in comm.params])",
    "a loop of it before": "for w in comm.params:\n    await ask(comm, w)\n"
    "await asyncio.gather(*[ask(comm, w) for w in comm.params])",
    "another way": "if comm.params:\n    for w in comm.params:\n        await ask(comm, w)\n"
    "else:\n    await asyncio.gather(*[ask(comm, w) for w in comm.params])",
    "copies that skip": "await asyncio.gather(*[skip(comm, later) for w in comm.params])",
    "copies that try again": "await asyncio.gather(*[again(comm) for w in comm.params])",
    "rounds of coroutines": "for w in comm.params:\n    await asyncio.gather(*[ask(comm, v) for v in comm.params])\n"
    "    if comm.params:\n        break\nelse:\n    await ask(comm, 1)",
    "rounds of tasks": "for w in comm.params:\n"
    "    ts = [asyncio.create_task(ask(comm, v)) for v in comm.params]\n    await asyncio.gather(*ts)",
    "tasks that try again": "async with asyncio.TaskGroup() as group:\n    for w in comm.params:\n"
    "        group.create_task(again(comm))",
    "rounds whose errors are results": "for w in comm.params:\n"
    "    await asyncio.gather(*[ask(comm, v) for v in comm.params], return_exceptions=True)",
    "of places of their own": "await asyncio.gather(*[ask(comm, w) for w in comm.params])\n"
    "await asyncio.gather(*[comm.call('B', '/b/') for w in comm.params])",
    "either of two": "if comm.params:\n    await each(comm)\nelse:\n    await each(comm)",
    "rounds that end": "for w in comm.params:\n    await each(comm)",
    "one helper that fans out, twice": "await each(comm)\nawait each(comm)",
    "rounds beside another way": "for w in comm.params:\n    await each(comm)\n    if comm.params:\n        break\n"
    "else:\n    await comm.call('B', '/c/')",
    "one by one on another way": "if comm.params:\n    for w in comm.params:\n        await begin(comm)\n"
    "else:\n    fs = [begin(comm) for w in comm.params]\n    for f in fs:\n        await f",
    "rounds that leave some": "for w in comm.params:\n"
    "    fs = {v: comm.call('B', '/b/') for v in comm.params}\n    for f in fs.values():\n        await f",
    "rounds that give up": "for w in comm.params:\n    try:\n"
    "        fs = [comm.call('B', '/b/') for v in comm.params]\n        for f in fs:\n            await f\n"
    "    except CallError:\n        pass",
}


@pytest.mark.parametrize("body", TOLD_APART.values(), ids=TOLD_APART)
def test_copies_a_log_can_count_are_followed(tmp_path: Path, body: str) -> None:
    source = endpoint_source(f"{body}\ncomm.respond(1)", define="async def", module=ASK + CONFUSING)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert any("fan-out" in one for one in outline(application))
    assert not list(not_told_apart(application.endpoint("A/a/").paths))


def test_copies_that_come_to_their_first_call_again_cannot_be_counted() -> None:
    call, other = (Operation("call", Site("app.py", "f", n, n, 1), "B/b/") for n in (1, 2))
    wait = Operation("get", Site("app.py", "f", 1, 1, 1), of=0)

    def inside(op: OperationKind, *operations: Operation) -> Operation:
        bodies = (Way((*operations, *(wait,)), "return", 0, ()),)
        return Operation(op, Site("app.py", "f", 0, len(operations), 1), bodies=bodies)

    def confused(*operations: Operation) -> bool:
        fan_out = inside("fan-out", *operations)
        join = Operation("join", fan_out.site, of=0)
        return bool(list(not_told_apart([Way((fan_out, join), "return", 0, ())])))

    assert not confused(call, other)
    assert not confused(call, inside("loop", other))
    assert confused(inside("loop", call))
    assert confused(inside("choice", call), other) is False
    assert confused(inside("loop", other), call, other)
    assert confused(inside("task", other), call)
    assert confused(call, inside("choice", call))


LIMITED = """
limit = asyncio.Semaphore(4)
async def one(w):
    async with limit:
        return await comm.call('B', '/b/')
await asyncio.gather(*[one(w) for w in comm.params])
comm.respond(1)
"""


HELD = "    async with limit:\n        return await comm.call('B', '/b/')\n"
STARTED = "await asyncio.gather(*[one(w) for w in comm.params])"
TASKS = "ts = [asyncio.create_task(one(w)) for w in comm.params]\nawait asyncio.gather(*ts)"
GROUP = (
    "async with asyncio.TaskGroup() as group:\n    for w in comm.params:\n        group.create_task(one(w))"
)


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        pytest.param(LIMITED, 4, id="semaphore"),
        pytest.param(LIMITED.replace("Semaphore(4)", "BoundedSemaphore(value=2)"), 2, id="bounded"),
        pytest.param(LIMITED.replace("Semaphore(4)", "Semaphore()"), 1, id="default"),
        pytest.param(LIMITED.replace("Semaphore(4)", "Lock()"), 1, id="lock"),
        pytest.param(LIMITED.replace(HELD, f"    if w:\n        return 1\n{HELD}"), 4, id="not all call"),
        pytest.param(
            LIMITED.replace("await comm.call('B', '/b/')", "await careful(comm, w)"), 4, id="errors handled"
        ),
        pytest.param(LIMITED.replace(STARTED, TASKS), 4, id="tasks"),
        pytest.param(LIMITED.replace(STARTED, GROUP), 4, id="group"),
    ],
)
def test_a_semaphore_limits_how_many_go_on_at_once(tmp_path: Path, body: str, limit: int) -> None:
    """The model has it, too."""
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=ASK))
    assert codes(application) == []
    fan_outs = [o for p in application.endpoint("A/a/").paths for o in p.operations if o.op == "fan-out"]
    assert {fan_out.limit for fan_out in fan_outs} == {limit}
    entry = translate(application, name="x").task("A").entry("/a/")
    assert {arc.limit for arc in entry.precedences if arc.fork == "fan-out"} == {limit}


PARTLY = LIMITED.replace(HELD, f"    await comm.call('B', '/b/')\n{HELD}")
OVERLOOKED = {
    "acquire": LIMITED.replace("async with limit:", "if await limit.acquire():"),
    "unknown number": LIMITED.replace("Semaphore(4)", "Semaphore(len(comm.params))"),
    "made by each": LIMITED.replace("async with limit:", "async with asyncio.Semaphore(4):"),
    "not for all": PARTLY,
    "not for all of tasks": PARTLY.replace(STARTED, TASKS),
    "not for all of a group": PARTLY.replace(STARTED, GROUP),
    "made for each": LIMITED.replace("one(w)", "one(w, limit)").replace(
        "one(w, limit) for", "one(w, asyncio.Lock()) for"
    ),
    "let go before": LIMITED.replace("        return await", "        await").replace(
        "await asyncio", "    await comm.call('B', '/b/')\nawait asyncio"
    ),
    "one of two": LIMITED.replace("limit:", "(limit if w else other):").replace(
        "limit =", "other = asyncio.Semaphore(2)\nlimit ="
    ),
    "by one of them": LIMITED.replace(HELD, "    await asyncio.gather(two(w), ask(comm, w))\n").replace(
        "async def one", f"async def two(w):\n{HELD}async def one"
    ),
}


@pytest.mark.parametrize("body", OVERLOOKED.values(), ids=OVERLOOKED)
def test_limits_are_not_overlooked(tmp_path: Path, body: str) -> None:
    """Copies that take turns must not become ones that go on all at once."""
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=ASK))
    assert "MUP030" in codes(application)


def test_a_semaphore_of_all_requests_is_held_by_copies(tmp_path: Path) -> None:
    body = LIMITED.replace("limit = asyncio.Semaphore(4)\n", "")
    source = endpoint_source(body, define="async def", module=f"{ASK}limit = asyncio.Semaphore(4)\n")
    assert held_by_copies(analyse_files(tmp_path, app=source)) == {"limit"}


def held_by_copies(application: Application) -> set[str]:
    """Return the names of what copies of fan-outs hold; nothing is wrong, and none has a limit of its own."""
    assert not application.errors
    steps = [o for path in application.endpoint("A/a/").paths for o in path.walk()]
    fan_outs = [o for o in steps if o.op == "fan-out"]
    assert {o.limit for o in fan_outs} == {None}
    return {held.name for o in fan_outs for body in o.bodies for one in body.walk() for held in one.holding}


def test_a_semaphore_of_a_service_is_held_by_its_second_endpoint(tmp_path: Path) -> None:
    members = """
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.limit = asyncio.Semaphore(4)
    @EP("/first/")
    async def first(self, comm):
        async with self.limit:
            comm.respond(await comm.call("B", "/b/"))
    """
    body = LIMITED.replace("limit = asyncio.Semaphore(4)\n", "").replace("with limit", "with self.limit")
    source = endpoint_source(body, define="async def", module=ASK, members=members)
    assert held_by_copies(analyse_files(tmp_path, app=source)) == {"limit"}


def test_model_has_the_element(tmp_path: Path) -> None:
    application = analyse_files(tmp_path, app=endpoint_source(BLOCKING["list"]))
    entry = translate(application, name="x").task("A").entry("/a/")
    (fan,) = [arc for arc in entry.precedences if arc.fork == "fan-out"]
    assert fan.counts == (None,)
    assert list(entry.paths[0]["fan_outs"]) == ["0"]


def test_contents_that_grow() -> None:
    """One item more per iteration is followed; a second one, or items of two kinds, are not."""
    assert Copies.__doc__
    one, other = CopyFuture(Future(0), 0), CopyFuture(Future(0), 1)
    grown = added_to(GROWING, UNKNOWN, one)
    assert grown is not None
    assert added_to(grown, UNKNOWN, one) is None
    assert added_to(UNKNOWN, UNKNOWN, one) is None
    assert added_to((), UNKNOWN, one) == ((UNKNOWN, one),)
    both = joined_many([GROWING, grown])
    assert both is not None
    assert both.partly
    more = added_to(GROWING, UNKNOWN, other)
    assert more is not None
    assert joined_many([grown, more]) is None
    assert joined_many([grown, UNKNOWN]) is None


LISTS = "first = [comm.call('B', '/b/') for w in comm.params]\nsecond = [comm.call('B', '/c/') for w in comm.params]\n"
TWO = "fan-out[call:B/b/ get:0] fan-out[call:B/c/ get:0] join:0 join:1 respond"
BESIDE = {
    "sum": "for f in first + second:\n    f.get()",
    "display": "for f in [*first, *second]:\n    f.get()",
    "tuple": "for f in (*first, *second):\n    f.get()",
    "chain": "for f in itertools.chain(first, second):\n    f.get()",
    "chain of lists": "for f in itertools.chain.from_iterable([first, second]):\n    f.get()",
    "extended": "first.extend(second)\nfor f in first:\n    f.get()",
    "augmented": "first += second\nfor f in first:\n    f.get()",
    "numbered": "for n, f in enumerate(first + second):\n    f.get()",
    "zipped": "for w, f in zip(range(9), first + second):\n    f.get()",
}


@pytest.mark.parametrize("loop", BESIDE.values(), ids=BESIDE)
def test_several_lists_one_after_the_other(tmp_path: Path, loop: str) -> None:
    source = endpoint_source(f"{LISTS}{loop}\ncomm.respond(1)", module="import itertools\n")
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) in ([TWO], [TWO.replace("join", "early")])
    translate(application, name="x")


GATHERED = {
    "two": (LISTS + "await asyncio.gather(*first, *second)", TWO),
    "sum": (LISTS + "await asyncio.gather(*(first + second))", TWO),
    "one and many": (
        "await asyncio.gather(comm.call('B', '/c/'), *(comm.call('B', '/b/') for w in comm.params))",
        "call:B/c/ fan-out[call:B/b/ get:0] get:0 join:1 respond",
    ),
    "a coroutine and many": (
        "await asyncio.gather(*(comm.call('B', '/c/') for w in comm.params), ask(comm, 1))",
        "fan-out[call:B/c/ get:0] task[call:B/b/ get:0] join:0 join:1 respond",
    ),
    "coroutines and a call": (
        "await asyncio.gather(*(ask(comm, w) for w in comm.params), comm.call('B', '/c/'))",
        "call:B/c/ fan-out[call:B/b/ get:0] get:0 join:1 respond",
    ),
    "a list that had one before": (
        (
            "fs = [comm.call('B', '/c/')]\nfor w in comm.params:\n    fs.append(comm.call('B', '/b/'))\n"
            "user, *others = await asyncio.gather(*fs)"
        ),
        "call:B/c/ fan-out[call:B/b/ get:0] get:0 join:1 respond",
    ),
    "a group": (
        (
            "async with asyncio.TaskGroup() as g:\n    t = g.create_task(comm.call('B', '/c/'))\n"
            "    ts = [g.create_task(ask(comm, w)) for w in comm.params]"
        ),
        "task[call:B/c/ get:0] fan-out[call:B/b/ get:0] join:1 join:0 respond",
    ),
    "as completed": (
        (
            "t = asyncio.create_task(comm.call('B', '/c/'))\n"
            "ts = [asyncio.create_task(ask(comm, w)) for w in comm.params]\n"
            "for f in asyncio.as_completed([t, *ts]):\n    await f"
        ),
        "task[call:B/c/ get:0] fan-out[call:B/b/ get:0] join:0 join:1 respond",
    ),
}


@pytest.mark.parametrize(("body", "path"), GATHERED.values(), ids=GATHERED)
def test_several_runs_awaited_together(tmp_path: Path, body: str, path: str) -> None:
    source = endpoint_source(f"{body}\ncomm.respond(1)", define="async def", module=ASK)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == [path]
    translate(application, name="x")


def test_when_one_fails_the_waits_for_all_lists_have_begun(tmp_path: Path) -> None:
    """In a loop, one has failed while nothing had waited for the next: both may stop anywhere."""
    failing = "try:\n    {}\nexcept CallError:\n    comm.respond(2)\n    return\ncomm.respond(1)"
    body = LISTS + failing.format("await asyncio.gather(*first, *second)")
    source = endpoint_source(body, define="async def", module=ASK)
    assert outline(analyse_files(tmp_path / "a", app=source)) == [TWO.replace("join", "early"), TWO]
    body = LISTS + failing.format("for f in first + second:\n        f.get()")
    assert outline(analyse_files(tmp_path / "b", app=endpoint_source(body))) == [
        TWO.replace("join", "early"),
        TWO.replace("join:1", "early:1"),
        TWO,
    ]


def test_limit_of_two_fan_outs_together_is_not_overlooked(tmp_path: Path) -> None:
    """A semaphore that copies of both hold limits neither of them alone."""
    one = "*[one(w) for w in comm.params]"
    body = LIMITED.replace(one, f"{one}, {one.replace('one', 'two')}").replace(
        "await asyncio", f"async def two(w):\n{HELD.replace('/b/', '/c/')}await asyncio"
    )
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=ASK))
    assert "MUP030" in codes(application)


KEYS = {
    "comprehension": "fs = {comm.call('B', '/b/'): w for w in comm.params}\nfor f in fs:\n    f.get()",
    "items": "fs = {comm.call('B', '/b/'): w for w in comm.params}\nfor f, w in fs.items():\n    f.get()",
    "loop": "fs = {}\nfor w in comm.params:\n    fs[comm.call('B', '/b/')] = w\nfor f in fs.keys():\n    f.get()",
}


@pytest.mark.parametrize("body", KEYS.values(), ids=KEYS)
def test_futures_as_keys(tmp_path: Path, body: str) -> None:
    """They are not equal, so none of them takes the place of another."""
    application = analyse_files(tmp_path, app=endpoint_source(f"{body}\ncomm.respond(1)"))
    assert codes(application) == []
    assert outline(application) in ([ONE], [ONE.replace("join", "early")])


def test_known_futures_as_keys(tmp_path: Path) -> None:
    body = "fs = {comm.call('B', '/b/'): 1, comm.call('B', '/c/'): 2}\nfor f in fs:\n    f.get()\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert outline(application) == ["call:B/b/ call:B/c/ get:0 get:1 respond"]


MADE = "fs = {w: comm.call('B', '/b/') for w in comm.params}\n"
DICTS = {
    "zipped": "replies = dict(zip(fs, await asyncio.gather(*fs.values())))",
    "keys": "replies = dict(zip(fs.keys(), await asyncio.gather(*fs.values()), strict=True))",
    "looked up": "for w in fs:\n    await fs[w]",
    "looked up by keys": "replies = {w: await fs[w] for w in fs.keys()}",
    "sorted": "await asyncio.gather(*fs.values())\nnames = sorted(fs, key=str)",
    "pairs": "gs = dict(fs.items())\nfor f in gs.values():\n    await f",
    "copy": "gs = dict(fs)\nfor f in gs.values():\n    await f",
}


@pytest.mark.parametrize("body", DICTS.values(), ids=DICTS)
def test_keys_of_a_dict_are_no_futures(tmp_path: Path, body: str) -> None:
    source = endpoint_source(f"{MADE}{body}\ncomm.respond(1)", define="async def", module=ASK)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == [ONE.replace("join", "early")]


def test_dicts_together(tmp_path: Path) -> None:
    """What one of them has may take the place of what the other has."""
    dicts = LISTS.replace("[", "{w: ").replace("]", "}")
    body = f"{dicts}for f in (first | second).values():\n    f.get()\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert outline(application) == [TWO.replace("join", "early")]


TASKS = "ts = [asyncio.create_task(ask(comm, w)) for w in comm.params]\n"
LEFT = {
    "a group that fails": "try:\n    async with asyncio.TaskGroup() as g:\n"
    "        ts = [g.create_task(ask(comm, w)) for w in comm.params]\nexcept ExceptionGroup:\n    pass",
    "cancelled": f"{TASKS}for t in ts:\n    t.cancel()",
    "cancelled and awaited": f"{TASKS}for t in ts:\n    t.cancel()\n"
    "await asyncio.gather(*ts, return_exceptions=True)",
    "any error of each": f"{TASKS}out = []\nfor t in asyncio.as_completed(ts):\n    try:\n"
    "        out.append(await t)\n    except Exception:\n        out.append(None)",
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_tasks_that_are_left_behind(tmp_path: Path, body: str) -> None:
    """They may stop anywhere, and a log still tells how many there were."""
    source = endpoint_source(f"{body}\ncomm.respond(1)", define="async def", module=ASK)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert set(outline(application)) <= {ONE, ONE.replace("join", "early"), "respond"}
    assert ONE.replace("join", "early") in outline(application)


UNSEEN = {
    "a future behind a chain": f"{LISTS}both = itertools.chain(first, second)\nfirst.append(comm.call('B', '/b/'))\n"
    "for f in both:\n    f.get()",
    "a future behind a view": f"{MADE}seen = fs.values()\nfs['x'] = comm.call('B', '/c/')\nfor f in seen:\n    f.get()",
    "a slice of both": f"{LISTS}for f in (first + second)[:2]:\n    f.get()",
    "one taken away": f"{LISTS}both = first + [comm.call('B', '/c/')]\nboth.pop()\nfor f in both:\n    f.get()",
    "one replaced": f"{MADE}fs['x'] = comm.call('B', '/c/')\nfs['x'] = comm.call('B', '/c/')\n"
    "for f in fs.values():\n    f.get()",
    "a set with calls of its own": f"{LISTS}for f in {{comm.call('B', '/b/'), comm.call('B', '/c/'), *first}}:\n"
    "    f.get()",
    "some of both": f"{LISTS}for f in first + second:\n    if comm.params:\n        f.get()",
}


@pytest.mark.parametrize("body", UNSEEN.values(), ids=UNSEEN)
def test_runs_that_are_not_what_they_were_are_refused(tmp_path: Path, body: str) -> None:
    source = endpoint_source(f"{body}\ncomm.respond(1)", module="import itertools\n")
    assert "MUP040" in codes(analyse_files(tmp_path, app=source))


EMPTY = {
    "wait": f"{TASKS}if ts:\n    await asyncio.wait(ts)",
    "return": f"{TASKS}if not ts:\n    comm.respond(1)\n    return\nawait asyncio.wait(ts)",
    "expression": f"{TASKS}done = await asyncio.wait(ts) if ts else ()",
}


@pytest.mark.parametrize("body", EMPTY.values(), ids=EMPTY)
def test_a_list_that_is_empty_has_begun_nothing(tmp_path: Path, body: str) -> None:
    source = endpoint_source(f"{body}\ncomm.respond(1)", define="async def", module=ASK)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == [ONE.replace("join", "early"), "respond"]


@pytest.mark.parametrize(
    "body",
    [
        "fs = []\nfor w in comm.params:\n    f = comm.call('B', '/b/')\n    if w:\n        fs.append(f)\n",
        "fs = [comm.call('B', '/b/') for w in comm.params]\nt = asyncio.create_task(asyncio.gather(*fs))\n",
    ],
    ids=["filtered", "under way"],
)
def test_a_list_may_be_empty_though_calls_were_made(tmp_path: Path, body: str) -> None:
    body += "if not fs:\n    comm.respond(1)\n    return\nfor f in fs:\n    await f\ncomm.respond(1)"
    source = endpoint_source(body, define="async def", module=ASK)
    assert codes(analyse_files(tmp_path, app=source)) != []


BEHIND = {
    "gather": "try:\n    await asyncio.gather(*fs)\nexcept Exception:\n    pass",
    "loop": "try:\n    for f in fs:\n        await f\nexcept Exception:\n    pass",
    "way out": "if comm.params:\n    comm.respond(1)\n    return\nawait asyncio.gather(*fs)",
}


@pytest.mark.parametrize("body", BEHIND.values(), ids=BEHIND)
@pytest.mark.parametrize("made", ["comm.call('B', '/b/')", "asyncio.create_task(ask(comm, w))"])
def test_copies_that_another_way_leaves_behind(tmp_path: Path, made: str, body: str) -> None:
    """They are counted there, too, and may stop anywhere."""
    source = f"fs = [{made} for w in comm.params]\n{body}\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(source, define="async def", module=ASK))
    assert codes(application) == []
    found = outline(application)
    assert ONE in found
    assert ONE.replace("join:0 respond", "respond early:0") in found
    translate(application, name="x")


def test_loops_that_do_more_than_copies_stay_loops() -> None:
    """Only what copies begin with, at the place where they begin, may be left behind."""
    place, site = Site("app.py", "f", 0, 1, 1), Site("app.py", "f", 1, 2, 1)
    call, wait = Operation("call", site, "B/b/"), Operation("get", site, of=0)

    def inside(op: OperationKind, target: str, *operations: Operation) -> Operation:
        return Operation(op, place, target, bodies=(Way(operations, "return", 0, ()),))

    fan_out, join = inside("fan-out", "flow", call, wait), Operation("join", site, of=0)
    whole = Way((fan_out, join), "return", 0, (0, 0, 0))
    left = Way((inside("loop", "", call),), "return", 0, (0, 0))
    more = Way((inside("loop", "", call, call),), "return", 0, (0, 0))
    early = Way((fan_out, Operation("join", site, "early", 0)), "return", 0, (0, 0, 0))
    assert with_copies_left_behind([whole, left, more]) == (whole, early, more)
    assert with_copies_left_behind([left, more]) == (left, more)


HANDED = """
from dataclasses import dataclass
class OwnError(Exception):
    pass
def refused():
    raise OwnError
@dataclass(frozen=True)
class Ok:
    value: object
class Kept:
    def __init__(self, value):
        self.value = value["x"]
def attempt(operation):
    try:
        return {made}(operation())
    except {errors}:
        return None
"""


@pytest.mark.parametrize("errors", ["(CallError, OwnError)", "Exception"])
def test_a_wait_that_is_handed_on_is_one(tmp_path: Path, errors: str) -> None:
    """Nothing is raised before what a function is handed waits, and nothing by a data class behind it."""
    body = "fs = [comm.call('B', '/b/') for x in comm.params['xs']]\nfor f in fs:\n    attempt(f.get)\ncomm.respond(1)"
    module = HANDED.format(made="Ok", errors=errors)
    application = analyse_files(tmp_path, app=endpoint_source(body, module=module))
    assert not application.errors
    (path,) = application.endpoint("A/a/").paths
    assert outline_path(path) == "fan-out[call:B/b/ get:0] join:0 respond"


def test_an_object_that_looks_into_an_answer_may_raise(tmp_path: Path) -> None:
    """Where the handler may run behind some of the waits only, that must not be overlooked."""
    body = "fs = [comm.call('B', '/b/') for x in comm.params['xs']]\nfor f in fs:\n    attempt(f.get)\ncomm.respond(1)"
    module = HANDED.format(made="Kept", errors="Exception")
    assert codes(analyse_files(tmp_path, app=endpoint_source(body, module=module)))
