"""Methods that `setup` calls: what they give a service is what requests find."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

from analyzer.static.setting_up import PREPARING

ONE = "call:B/b/ get:0 respond"
BODY = 'comm.call(self.target, "/b/").get()\ncomm.respond(1)'

ONCE = {
    "a helper": """
        def setup(self):
            self.prepare()
        def prepare(self):
            self.target = "B"
    """,
    "a helper of a helper": """
        def setup(self):
            if self.name:
                self.prepare()
        def prepare(self):
            ready = self.choose()
        def choose(self):
            self.target = "B"
            return True
    """,
}
AT_ANY_TIME = {
    "an endpoint calls it": """
        def setup(self):
            self.prepare()
        def prepare(self):
            self.target = "B"
        def again(self):
            self.prepare()
        @EP("/again/")
        def other(self, comm):
            self.again()
            comm.respond(1)
    """,
    "it is handed on": """
        def setup(self):
            self.prepare()
            register(self.prepare)
        def prepare(self):
            self.target = "B"
    """,
    "in a lambda": """
        def setup(self):
            self.prepare()
            self.later = lambda: self.prepare()
        def prepare(self):
            self.target = "B"
    """,
    "by its name": """
        def setup(self):
            self.prepare()
        def prepare(self):
            self.target = "B"
        def again(self):
            getattr(self, "prepare")()
    """,
    "an endpoint": """
        def setup(self):
            self.prepare(None)
        @EP("/prepare/")
        def prepare(self, comm):
            self.target = "B"
            comm.respond(1)
    """,
}


@pytest.mark.parametrize("members", ONCE.values(), ids=ONCE)
def test_what_setup_calls_is_setup(tmp_path: Path, members: str) -> None:
    found = analyse_files(tmp_path, a=endpoint_source(BODY, members=members))
    assert codes(found) == []
    assert outline(found) == [ONE]


def test_subclasses_fill_it_in(tmp_path: Path) -> None:
    """Two services whose common base calls what each of them has; one of them goes on to the base's."""
    first = indent(dedent('async def prepare(self):\n    self.target = "B"'), "    ")
    text = endpoint_source(
        BODY.replace("comm.call", "await comm.call").replace(".get()", ""), define="async def"
    )
    base = (
        "class Base(MS):\n    runtime = 'async'\n"
        "    async def setup(self):\n        await self.prepare()\n"
        "    async def prepare(self):\n        self.ready = True\n"
        "class Other(Base):\n"
        "    async def prepare(self):\n        await super().prepare()\n        self.target = 'C'\n"
        '    @EP("/other/")\n    async def other(self, comm):\n        comm.respond(self.target)\n'
    )
    text = text.replace("class A(MS):\n", f"{base}class A(Base):\n{first}\n")
    found = analyse_files(tmp_path, a=text)
    assert codes(found) == []
    assert outline(found) == [ONE]


@pytest.mark.parametrize("members", AT_ANY_TIME.values(), ids=AT_ANY_TIME)
def test_what_may_run_later_is_not(tmp_path: Path, members: str) -> None:
    """A request may find another value: whom it asks is not known."""
    module = "def register(function): pass\n"
    found = analyse_files(tmp_path, a=endpoint_source(BODY, members=members, module=module))
    assert codes(found)


def test_a_task_beside_requests_is_not(tmp_path: Path) -> None:
    members = """
        async def setup(self):
            self.task = asyncio.create_task(self.refresh())
        async def refresh(self):
            while True:
                self.target = "B"
                await asyncio.sleep(60)
    """
    body = 'x = comm.call(self.target, "/b/")\nawait x\ncomm.respond(1)'
    text = endpoint_source(body, members=members, module="import asyncio\n", define="async def")
    assert codes(analyse_files(tmp_path, a=text))


def test_setup_is_one_of_them() -> None:
    assert {"__init__", "setup"} <= PREPARING
