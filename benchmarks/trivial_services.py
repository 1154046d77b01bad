"""Services of each runtime with endpoints that do nothing: what the runtime itself costs."""

from __future__ import annotations

__all__ = ["SERVICES"]

SERVICES = """
from mup import EP, MS

class OneProcess(MS):
    @EP("/trivial/")
    def trivial(self, comm):
        comm.respond({"ok": True})

    @EP("/item/", method="GET")
    def item(self, comm, number: int):
        comm.respond({"number": number, "name": "a small thing", "in_stock": True})

class OneThread(OneProcess):
    runtime = "thread"

class Process(OneProcess):
    pool_size = 8

class Thread(OneThread):
    pool_size = 8

class Async(MS):
    runtime = "async"
    pool_size = 8
    @EP("/trivial/")
    async def trivial(self, comm):
        comm.respond({"ok": True})

    @EP("/item/", method="GET")
    async def item(self, comm, number: int):
        comm.respond({"number": number, "name": "a small thing", "in_stock": True})

class OneAsync(Async):
    pool_size = 1
"""
