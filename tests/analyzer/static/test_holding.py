"""Semaphores and locks that all requests share: what of a path holds them, and what the model makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, endpoint_source

from analyzer.static import Application, translate
from analyzer.static.application import Held, Operation
from analyzer.static.application import Path as ExecutionPath
from analyzer.static.holding import common
from analyzer.validation import MeasureSettings, measure
from mup.errors import UsageError
from mup.events.sites import Site
from mup.lqn import Task
from mup.lqn.edits import with_pool, with_replicas
from mup.project import load_project
from simulator.studies.whatif import Change, Scenario

SETUP = "def setup(self):\n    self._slots = asyncio.Semaphore(3)\n"


def held_outline(path: ExecutionPath) -> str:
    """Return a path as one line, each operation with what it holds."""
    words = []
    for operation in path.operations:
        bodies = "|".join(held_outline(body) for body in operation.bodies)
        names = ",".join(one.name for one in operation.holding)
        words.append(operation.op + (f"[{bodies}]" if bodies else "") + (f"({names})" if names else ""))
    return " ".join(words)


def analysed(
    folder: Path, body: str, members: str = SETUP, module: str = "", define: str = "async def"
) -> Application:
    """Return the analysis of a service with one endpoint."""
    source = endpoint_source(
        body, members=members, module=f"import asyncio, threading\n{module}", define=define
    )
    return analyse_files(folder, app=source)


def outlines(application: Application) -> list[str]:
    """Return what the paths of the endpoint hold; nothing may be wrong."""
    assert not application.errors
    return [held_outline(path) for path in application.endpoint("A/a/").paths]


CALL = "async with self._slots:\n    await comm.call('B', '/b/')\n"

CASES = {
    "a block": (CALL + "comm.respond(1)", ["call(slots) get(slots) respond"]),
    "nothing done inside": ("async with self._slots:\n    x = 1\ncomm.respond(1)", ["respond"]),
    "a call that is awaited behind it": (
        "async with self._slots:\n    f = comm.call('B', '/b/')\nawait f\ncomm.respond(1)",
        ["call(slots) get respond"],
    ),
    "each iteration": (
        (
            "for x in comm.params['xs']:\n    async with self._slots:\n        await comm.call('B', '/b/')\n"
            "comm.respond(1)"
        ),
        ["loop[call(slots) get(slots)] respond"],
    ),
    "a whole loop": (
        (
            "async with self._slots:\n    for x in comm.params['xs']:\n        await comm.call('B', '/b/')\n"
            "comm.respond(1)"
        ),
        ["loop[call(slots) get(slots)](slots) respond"],
    ),
    "what fails": (
        (
            "try:\n    async with self._slots:\n        await comm.call('B', '/b/')\nexcept CallError:\n"
            "    await comm.call('B', '/c/')\ncomm.respond(1)"
        ),
        ["call(slots) get(slots) respond", "call(slots) get(slots) call get respond"],
    ),
    "copies of a gather": (
        (
            "async def one(x):\n    async with self._slots:\n        return await comm.call('B', '/b/')\n"
            "await asyncio.gather(*[one(x) for x in comm.params['xs']])\ncomm.respond(1)"
        ),
        ["fan-out[call(slots) get(slots)] join respond"],
    ),
    "a gather": (
        (
            "async with self._slots:\n    await asyncio.gather(*[comm.call('B', '/b/') for x in comm.params['xs']])\n"
            "comm.respond(1)"
        ),
        ["fan-out[call(slots) get(slots)](slots) join(slots) respond"],
    ),
    "a task does not hold what the code holds that starts it": (
        (
            "async def other():\n    await comm.call('B', '/c/')\n"
            "async with self._slots:\n    task = asyncio.create_task(other())\n    await comm.call('B', '/b/')\n"
            "await task\ncomm.respond(1)"
        ),
        ["task[call get](slots) call(slots) get(slots) join respond"],
    ),
}


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=list(CASES))
def test_what_holds_it(tmp_path: Path, body: str, expected: list[str]) -> None:
    """Operations hold what the blocks around them have taken."""
    assert sorted(outlines(analysed(tmp_path, body))) == sorted(expected)


MAKERS = {
    "a constant of the module": ("", "_slots = asyncio.Semaphore(3)\n", "_slots"),
    "an attribute of the class": ("slots = asyncio.Semaphore(3)\n", "", "self.slots"),
    "a lock": ("def setup(self):\n    self.slots = asyncio.Lock()\n", "", "self.slots"),
    "an object of the source": (
        "def setup(self):\n    self.back = Back(3)\n",
        "class Back:\n    def __init__(self, n):\n        self._slots = asyncio.BoundedSemaphore(n)\n",
        "self.back._slots",
    ),
    "a manager of the source": (
        SETUP
        + "@contextlib.asynccontextmanager\nasync def slot(self):\n    async with self._slots:\n        yield\n",
        "import contextlib\n",
        "self.slot()",
    ),
}


@pytest.mark.parametrize(("members", "module", "taken"), MAKERS.values(), ids=list(MAKERS))
def test_where_it_is_made(tmp_path: Path, members: str, module: str, taken: str) -> None:
    """It is known wherever it is made before the first request."""
    body = f"async with {taken}:\n    await comm.call('B', '/b/')\ncomm.respond(1)"
    application = analysed(tmp_path, body, members, module)
    assert outlines(application) == ["call(slots) get(slots) respond"]
    assert not application.diagnostics


def test_a_stack_holds_what_it_has_entered(tmp_path: Path) -> None:
    """A stack that enters one for certain holds it until its block ends."""
    body = (
        "async with contextlib.AsyncExitStack() as stack:\n"
        "    await stack.enter_async_context(self._slots)\n"
        "    await comm.call('B', '/b/')\n"
        "await comm.call('B', '/c/')\ncomm.respond(1)"
    )
    application = analysed(tmp_path, body, SETUP, "import contextlib\n")
    assert outlines(application) == ["call(slots) get(slots) call get respond"]


def test_threads_share_locks(tmp_path: Path) -> None:
    """Threads of a replica share a lock; one that is held already is not taken again."""
    members = "runtime = 'thread'\nlock = threading.RLock()\n"
    body = "with self.lock:\n    with self.lock:\n        comm.call('B', '/b/').get()\ncomm.respond(1)"
    assert outlines(analysed(tmp_path, body, members, define="def")) == ["call(lock) get(lock) respond"]


def test_processes_share_none(tmp_path: Path) -> None:
    """A worker that is a process serves one request at a time: its lock is always free."""
    body = "with self.lock:\n    comm.call('B', '/b/').get()\ncomm.respond(1)"
    application = analysed(tmp_path, body, "lock = threading.Lock()\n", define="def")
    assert outlines(application) == ["call get respond"]
    assert not application.diagnostics


def test_clients_hold_none(tmp_path: Path) -> None:
    """What limits the users of a client is no part of the system."""
    client = (
        "class U(Client):\n    gate = asyncio.Semaphore(2)\n    async def scenario(self, comm):\n"
        "        async with self.gate:\n            await comm.call('A', '/a/')\n"
    )
    application = analysed(tmp_path, CALL + "comm.respond(1)", module=client)
    assert not application.diagnostics
    (path,) = application.client("U").paths
    assert held_outline(path) == "call get"
    assert list(semaphores(application)) == ["A.slots"]


def test_one_that_no_statement_names(tmp_path: Path) -> None:
    """It is called by its line."""
    members = "def setup(self):\n    self._slots = (\n        asyncio.Semaphore(3)\n    )\n"
    application = analysed(tmp_path, CALL + "comm.respond(1)", members)
    assert outlines(application) == ["call(limit_7) get(limit_7) respond"]


UNKNOWN = {
    "a number that is not known": ("def setup(self):\n    self._slots = asyncio.Semaphore(many())\n", CALL),
    "one that is taken without a block": (
        SETUP,
        "await self._slots.acquire()\ntry:\n    await comm.call('B', '/b/')\nfinally:\n    self._slots.release()\n",
    ),
    "one that a stack may enter": (
        SETUP,
        (
            "async with contextlib.AsyncExitStack() as stack:\n    if comm.params:\n"
            "        await stack.enter_async_context(self._slots)\n    await comm.call('B', '/b/')\n"
        ),
    ),
}


@pytest.mark.parametrize(("members", "body"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_what_is_not_in_the_model_is_said(tmp_path: Path, members: str, body: str) -> None:
    """A limit that is not followed is a warning: under load, requests may wait where the model does not."""
    module = "import contextlib, os\ndef many():\n    return int(os.environ['MANY'])\n"
    application = analysed(tmp_path, f"{body}comm.respond(1)", members, module)
    assert not application.errors
    assert {one.code for one in application.diagnostics} == {"MUP065"}


def semaphores(application: Application) -> dict[str, Task]:
    """Return the semaphores of the model, by name."""
    return {t.name: t for t in translate(application, name="x").tasks if t.role == "other"}


def test_it_becomes_a_task(tmp_path: Path) -> None:
    """Activities around the operations take it and give it back; each replica has as many permits."""
    application = analysed(tmp_path, CALL + CALL + "comm.respond(1)", SETUP + "replicas = 2\n")
    model = translate(application, name="x")
    (task,) = semaphores(application).values()
    assert (task.name, task.threads) == ("A.slots", 6)
    entry = model.task("A").entry("/a/")
    taking = [
        (a.name, a.calls[0].entry) for a in entry.activities if a.calls and a.calls[0].task == "A.slots"
    ]
    assert taking == [
        ("acquire_11", "acquire"),
        ("release_11", "release"),
        ("acquire_13", "acquire"),
        ("release_13", "release"),
    ]
    arcs = {(p.pre, p.post) for p in entry.precedences}
    assert {(("cont_12", "comm_12"), ("release_11",)), (("release_11",), ("comp_13",))} <= arcs
    assert with_replicas(model, "A", 3).task("A.slots").threads == 9
    assert with_pool(model, "A.slots", 1).task("A.slots").threads == 1


def test_a_choice_takes_what_all_of_it_holds(tmp_path: Path) -> None:
    """Branches of many paths are choices; what is taken in a branch is given back in it."""
    branch = "if comm.params[{n}]:\n    async with self._slots:\n        await comm.call('B', '/b/')\n"
    body = "".join(branch.format(n=n) for n in range(8)) + "comm.respond(1)"
    application = analysed(tmp_path, body)
    entry = translate(application, name="x").task("A").entry("/a/")
    tokens = [c.entry for a in entry.activities for c in a.calls if c.task == "A.slots"]
    assert tokens.count("acquire") == tokens.count("release") == 8


def test_two_of_one_name(tmp_path: Path) -> None:
    """Two semaphores of one name are two tasks."""
    members = "def setup(self):\n    self.one = One()\n    self.two = Two()\n"
    module = "".join(
        f"class {name}:\n    def __init__(self):\n        self.slots = asyncio.Semaphore({n})\n"
        for n, name in enumerate(("One", "Two"), 1)
    )
    body = "".join(
        f"async with self.{name}.slots:\n    await comm.call('B', '/b/')\n" for name in ("one", "two")
    )
    found = semaphores(analysed(tmp_path, body + "comm.respond(1)", members, module))
    assert {name: task.threads for name, task in found.items()} == {"A.slots": 1, "A.slots.2": 2}


def test_common_beginning() -> None:
    """What several operations hold in common is what they all begin with."""
    one, two, three = (
        Held(name, 1, Site("f", "", 0, n, 1), Site("f", "", 0, n, 1)) for n, name in enumerate("abc")
    )
    assert common([]) == ()
    assert common([(one, two), (one, two, three)]) == (one, two)
    assert common([(one, two), (one, three)]) == (one,)
    assert common([(one,), ()]) == ()


def test_operations_differ_by_what_they_hold() -> None:
    """The same call with and without a lock are two."""
    site = Site("f", "", 0, 1, 1)
    held = Held("a", 1, site, site)
    assert Operation("call", site) != Operation("call", site, holding=(held,))


def test_a_real_run_keeps_what_the_source_says(tmp_path: Path) -> None:
    """How many may hold a semaphore is a what-if; a real run would need other code."""
    model = translate(analysed(tmp_path, CALL + "comm.respond(1)"), name="x")
    (tmp_path / "mup.toml").write_text(
        '[project]\n[services.A]\nclass = "app:A"\n[services.B]\nclass = "app:B"\n'
    )
    more = Scenario((Change("pool", "A.slots", 8),), with_pool(model, "A.slots", 8))
    with pytest.raises(UsageError, match=r"cannot change the pool of 'A\.slots'"):
        measure(load_project(tmp_path), more, MeasureSettings())
