"""What ``with`` statements do."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.managers import Managers
from analyzer.static.values import UNKNOWN, Value
from analyzer.static.values.managers import Suppressing

MODULE = """
import contextlib

class Held:
    def __init__(self, comm, swallows):
        self.comm, self.swallows = comm, swallows
    def __enter__(self):
        self.comm.call('B', '/b/').get()
        return 5
    def __exit__(self, *details):
        self.comm.call('B', '/c/').get()
        return self.swallows

@contextlib.contextmanager
def held(comm):
    comm.call('B', '/b/').get()
    yield 5
    comm.call('B', '/c/').get()

@contextlib.contextmanager
def repeating(comm):
    while True:
        comm.call('B', '/b/').get()
        yield 5

@contextlib.contextmanager
def noted(name):
    try:
        yield name
    finally:
        print(name)

@contextlib.contextmanager
def catching(name):
    try:
        yield name
    except KeyError:
        print(name)

@contextlib.contextmanager
def returning(name):
    try:
        yield name
    finally:
        return

@contextlib.contextmanager
def breaking(name):
    while True:
        try:
            yield name
        finally:
            break
"""


def test_enter_and_exit_run(probe: Probe) -> None:
    done = probe("with Held(comm, False) as x:\n    comm.respond(x)", MODULE)
    assert isinstance(done.walk.managers, Managers)
    # The block may raise before it responds, and exit runs then, too.
    assert done.ways == ["callB/b/ get callB/c/ get raise", "callB/b/ get respond callB/c/ get next"]


def test_an_exception_is_swallowed_only_where_exit_says_so(probe: Probe) -> None:
    assert probe("with Held(comm, True):\n    raise ValueError", MODULE).ways == [
        "callB/b/ get callB/c/ get next"
    ]
    assert probe("with Held(comm, False):\n    raise ValueError", MODULE).ways == [
        "callB/b/ get callB/c/ get raise"
    ]


def test_a_generator_may_be_a_manager(probe: Probe) -> None:
    done = probe("with held(comm) as x:\n    return x", MODULE)
    assert done.ways == ["callB/b/ get callB/c/ get return"]


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        pytest.param(
            "ignoring = contextlib.suppress(CallError)\nwith ignoring:\n    comm.call('B', '/b/').get()",
            ["callB/b/ get next", "callB/b/ get next"],
            id="in-a-variable",
        ),
        pytest.param(
            "with quiet(CallError):\n    raise CallError\ncomm.call('B', '/b/')",
            ["callB/b/ next"],
            id="by-another-name",
        ),
        pytest.param("with quiet(*kinds):\n    raise CallError", ["next", "raise"], id="of-unknown-classes"),
        pytest.param(
            "with suppress():\n    raise ValueError\ncomm.call('B', '/b/')", ["raise"], id="something-else"
        ),
        pytest.param("with Swallowing():\n    raise ValueError", ["next", "raise"], id="of-a-library-class"),
        pytest.param("with Passing():\n    raise ValueError", ["raise"], id="of-a-class-that-passes-all"),
    ],
)
def test_what_swallows_is_told_by_what_it_is(probe: Probe, body: str, ways: list[str]) -> None:
    module = """
import contextlib, threading
from contextlib import suppress as quiet
from mup.errors import CallError
class suppress:
    def __enter__(self): pass
    def __exit__(self, *error): pass
class Swallowing(threading.local):
    def __enter__(self): pass
    def __exit__(self, *error): return True
class Passing(threading.local):
    def __enter__(self): pass
    def __exit__(self, *error): return None
"""
    done = probe(body, module, kinds=UNKNOWN)
    assert isinstance(Suppressing(()), Value)
    assert sorted(set(done.ways)) == sorted(set(ways))


STACK = "with contextlib.ExitStack() as stack:\n    "


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        pytest.param(
            STACK + "stack.callback(lambda: comm.respond(1))\n    comm.call('B', '/b/').get()",
            [
                "callB/b/ get respond next",
                "callB/b/ get respond raise",
                "callB/b/ respond raise",
                "respond raise",
            ],
            id="callback",
        ),
        pytest.param(
            STACK + "stack.callback(lambda: comm.call('B', '/b/'))\n"
            "    stack.callback(lambda: comm.call('B', '/c/'))",
            # The block may raise before it has named the second, and the second as it is left.
            ["callB/b/ raise", "callB/c/ callB/b/ next", "callB/c/ callB/b/ raise"],
            id="the-last-first",
        ),
        pytest.param(
            STACK + "x = stack.enter_context(Held(comm, True))\n    raise ValueError",
            ["callB/b/ get callB/c/ get next"],
            id="manager-that-swallows",
        ),
        pytest.param(
            STACK + "stack.enter_context(contextlib.suppress(ValueError))\n    raise KeyError",
            ["raise"],
            id="another-error",
        ),
        pytest.param(STACK + "stack.enter_context(open('x'))\n    raise KeyError", ["raise"], id="file"),
        pytest.param(
            STACK + "for n in 'ab':\n        stack.enter_context(noted(n))\n    raise KeyError",
            ["raise"],
            id="generators-that-pass-all",
        ),
        pytest.param(
            STACK + "for n in 'ab':\n        stack.enter_context(catching(n))\n    raise KeyError",
            ["next", "raise"],
            id="generators-that-may-swallow",
        ),
        pytest.param(
            STACK + "for n in 'ab':\n        stack.enter_context(returning(n))\n    raise KeyError",
            ["next", "raise"],
            id="generators-that-return-at-last",
        ),
        pytest.param(
            STACK + "for n in 'ab':\n        stack.enter_context(breaking(n))\n    raise KeyError",
            ["next", "raise"],
            id="generators-that-break-at-last",
        ),
    ],
)
def test_a_stack_is_left_in_reverse(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, MODULE)
    assert sorted(set(done.ways)) == ways
    assert done.codes == []


def test_what_is_pushed_in_a_way_not_followed_is_reported(probe: Probe) -> None:
    assert probe(STACK + "stack.push(lambda *error: comm.call('B', '/b/'))", MODULE).codes == ["MUP041"]
    assert probe(STACK + "stack.callback(comm.call, 'B', '/b/')", MODULE).codes == ["MUP041"]
    body = "if comm.params['x']:\n        stack.enter_context(repeating(comm))"
    assert probe(STACK + body, MODULE).codes == ["MUP030"]


HELD = "callB/b/ get"
FREED = "callB/c/ get"


@pytest.mark.parametrize(
    ("body", "way"),
    [
        ("x = stack.enter_context(held(comm))\n    comm.respond(x)", f"{HELD} respond {FREED} next"),
        (
            "stack.enter_context(held(comm))\n    stack.enter_context(Held(comm, False))\n    comm.respond(1)",
            f"{HELD} {HELD} respond {FREED} {FREED} next",
        ),
        (
            "stack.callback(lambda: comm.respond(1))\n    stack.enter_context(held(comm))",
            f"{HELD} {FREED} respond next",
        ),
        (
            "stack.enter_context(Held(comm, False))\n    stack.callback(lambda: comm.respond(1))",
            f"{HELD} respond {FREED} next",
        ),
    ],
)
def test_a_manager_on_a_stack_is_held_for_the_rest_of_its_block(probe: Probe, body: str, way: str) -> None:
    done = probe(STACK + body, MODULE)
    assert way in done.ways
    assert done.codes == []


ASYNC = """
import contextlib
class Held:
    def __init__(self, comm):
        self.comm = comm
    async def __aenter__(self):
        await self.comm.call('B', '/b/')
    async def __aexit__(self, *details):
        await self.comm.call('B', '/c/')
@contextlib.asynccontextmanager
async def held(comm):
    await comm.call('B', '/b/')
    yield 5
    await comm.call('B', '/c/')
async def free(comm):
    await comm.call('B', '/c/')
"""


@pytest.mark.parametrize(
    ("body", "way"),
    [
        (
            "x = await stack.enter_async_context(held(comm))\n    comm.respond(x)",
            f"{HELD} respond {FREED} next",
        ),
        ("await stack.enter_async_context(Held(comm))\n    comm.respond(1)", f"{HELD} respond {FREED} next"),
        ("stack.push_async_callback(free, comm)\n    comm.respond(1)", f"respond {FREED} next"),
        (
            "await stack.enter_async_context(Held(comm))\n    stack.push_async_callback(free, comm)",
            f"{HELD} {FREED} {FREED} next",
        ),
    ],
)
def test_a_stack_of_asynchronous_managers(probe: Probe, body: str, way: str) -> None:
    done = probe(f"async with contextlib.AsyncExitStack() as stack:\n    {body}", ASYNC, "async def")
    assert way in done.ways
    assert done.codes == []


def test_a_manager_on_a_stack_is_left_as_it_was_entered(probe: Probe) -> None:
    module = (
        ASYNC
        + """
class Noted:
    def __init__(self, comm):
        self.comm = comm
    def __enter__(self):
        return self
    def __exit__(self, *details):
        self.comm.call('B', '/b/')
"""
    )
    body = "if comm.params['x']:\n        stack.enter_context(Noted(comm))\n    comm.respond(1)"
    done = probe(f"async with contextlib.AsyncExitStack() as stack:\n    {body}", module, "async def")
    assert {"respond callB/b/ next", "respond next"} <= set(done.ways)
    assert done.codes == []


def test_what_is_entered_in_tasks_is_refused(probe: Probe) -> None:
    body = "await asyncio.gather(*(stack.enter_async_context(Held(comm)) for _ in 'ab'))"
    done = probe(
        f"async with contextlib.AsyncExitStack() as stack:\n    {body}",
        f"import asyncio\n{ASYNC}",
        "async def",
    )
    assert "MUP041" in done.codes


def test_a_class_of_the_source_is_no_stack_because_of_its_name(probe: Probe) -> None:
    module = f"""{MODULE}
class ExitStack:
    def __enter__(self):
        return self
    def __exit__(self, *details):
        pass
    def enter_context(self, manager):
        return manager
"""
    done = probe(
        "with ExitStack() as stack:\n    stack.enter_context(Held(comm, False))\n    comm.respond(1)", module
    )
    assert done.ways == ["respond next"]
