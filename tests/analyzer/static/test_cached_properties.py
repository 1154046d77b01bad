"""Properties that keep what they returned first, read in loops before anything else has read them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

CLIENTS = """
import functools
class Stock:
    def __init__(self, comm):
        self._comm = comm
    def release(self, sku="x"):
        self._comm.call("B", "/b/").get()
class Clients:
    count = 0
    def __init__(self, comm):
        self.comm = comm
    @functools.cached_property
    def stock(self):
        return Stock(self.comm)
    @functools.cached_property
    def rows(self):
        return self.comm.call("B", "/c/").get()
    @functools.cached_property
    def counted(self):
        self.count = 1
        return [1]
    @functools.cached_property
    def strict(self):
        if not self.comm.params.get("x"):
            raise ValueError
        return Stock(self.comm)
"""

LOOP = "loop[call:B/b/ get:0]"


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("for sku in comm.params['skus']:\n    clients.stock.release(sku)", [LOOP + " respond"]),
        ("[x for x in comm.params['skus'] if not clients.stock.release(x)]", [LOOP + " respond"]),
        (
            "clients.stock.release()\nfor sku in comm.params['skus']:\n    clients.stock.release(sku)",
            ["call:B/b/ get:0 loop[call:B/b/ get:0] respond"],
        ),
        # Only the iteration that is the first to read it communicates.
        ("for sku in comm.params['skus']:\n    clients.rows", ["loop[call:B/c/ get:0] respond"]),
        # What reading it changes is changed only if there is an iteration.
        (
            "for x in comm.params['xs']:\n    clients.counted\nif clients.count:\n    comm.call('B', '/c/').get()",
            ["call:B/c/ get:0 respond", "respond"],
        ),
    ],
)
def test_loops_may_be_the_first_to_read_one(tmp_path: Path, body: str, paths: list[str]) -> None:
    code = f"clients = Clients(comm)\n{dedent(body)}\ncomm.respond(1)"
    found = analyse_files(tmp_path, a=endpoint_source(code, module=CLIENTS))
    assert codes(found) == []
    assert outline(found) == paths


def test_one_that_may_raise_is_not_read_before_the_loop(tmp_path: Path) -> None:
    """Nothing raises if there is no iteration: that is refused rather than guessed."""
    code = "clients = Clients(comm)\nfor sku in comm.params['skus']:\n    clients.strict.release()\ncomm.respond(1)"
    found = analyse_files(tmp_path, a=endpoint_source(code, module=CLIENTS))
    assert "MUP040" in codes(found)


COROUTINES = """
import asyncio
import functools
class Stock:
    def __init__(self, comm):
        self._comm = comm
    async def release(self, sku):
        return await self._comm.call("B", "/b/", {"sku": sku})
    async def close(self):
        return await self._comm.call("B", "/c/")
class Clients:
    def __init__(self, comm):
        self.comm = comm
        self._stock = None
    @functools.cached_property
    def stock(self):
        return Stock(self.comm)
    @property
    def later(self):
        if self._stock is None:
            self._stock = Stock(self.comm)
        return self._stock
"""


@pytest.mark.parametrize("name", ["stock", "later"])
def test_copies_may_be_the_first_to_read_one(tmp_path: Path, name: str) -> None:
    """Coroutines that go on at once: what one of them makes the others have, and so does what follows."""
    code = f"""
        clients = Clients(comm)
        async def one(sku):
            return await clients.{name}.release(sku)
        await asyncio.gather(*(one(sku) for sku in comm.params["skus"]))
        await clients.{name}.close()
        comm.respond(1)
    """
    found = analyse_files(tmp_path, a=endpoint_source(code, module=COROUTINES, define="async def"))
    assert codes(found) == []
    copies = "fan-out[call:B/b/ get:0]"
    followed = [path for path in outline(found) if path.startswith(copies) and "call:B/c/" in path]
    assert followed
    if name == "stock":
        assert outline(found) == followed
