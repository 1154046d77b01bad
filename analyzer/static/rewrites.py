"""Which code does the analyzer accept in place of what it refuses?

For each code an example of the finding and the same written so that it can be modelled. Tests analyse both.
An example with a class is a module behind ``from mup import EP, MS, Client``; any other is the body of an
endpoint. ``B`` is a service with the endpoints ``/b/`` and ``/c/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

__all__ = ["REWRITES", "Rewrite"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An example of a finding, and its remedy in code.

    Attributes:
        refused: Has the finding.
        accepted: Has none.
    """

    refused: str
    accepted: str


def _rewrite(refused: str, accepted: str) -> Rewrite:
    return Rewrite(dedent(refused).strip("\n"), dedent(accepted).strip("\n"))


REWRITES: dict[str, Rewrite] = {
    "MUP003": _rewrite(
        """
        class Orders:
            pass
        """,
        """
        class Orders(MS):
            @EP("/orders")
            def orders(self, comm):
                comm.respond([])
        """,
    ),
    "MUP004": _rewrite(
        """
        class Orders:
            @EP("/orders")
            def orders(self, comm):
                comm.respond([])
        """,
        """
        class Orders(MS):
            @EP("/orders")
            def orders(self, comm):
                comm.respond([])
        """,
    ),
    "MUP005": _rewrite(
        """
        class Orders(MS):
            @EP("/orders")
            def list_orders(self, comm):
                comm.respond([])

            @EP("/orders")
            def add_order(self, comm):
                comm.respond(None, status=201)
        """,
        """
        class Orders(MS):
            @EP("/orders", method="GET")
            def list_orders(self, comm):
                comm.respond([])

            @EP("/orders", method="POST")
            def add_order(self, comm):
                comm.respond(None, status=201)
        """,
    ),
    "MUP006": _rewrite(
        """
        import os

        class Orders(MS):
            pool_size = int(os.environ["POOL"])

            @EP("/orders")
            def orders(self, comm):
                comm.respond([])
        """,
        """
        class Orders(MS):
            pool_size = 4  # what differs between machines stands in mup.toml

            @EP("/orders")
            def orders(self, comm):
                comm.respond([])
        """,
    ),
    "MUP008": _rewrite(
        """
        class Orders(MS):
            def orders(self, comm):
                comm.respond([])
        """,
        """
        class Orders(MS):
            @EP("/orders")
            def orders(self, comm):
                comm.respond([])
        """,
    ),
    "MUP009": _rewrite(
        """
        import os

        class Orders(MS):
            @EP("/orders")
            def orders(self, comm):
                comm.respond([])

        if os.environ.get("DEBUG"):
            Orders.debug = EP("/debug")(lambda self, comm: comm.respond("ok"))
        """,
        """
        import os

        class Orders(MS):
            @EP("/orders")
            def orders(self, comm):
                comm.respond([])

            @EP("/debug")
            def debug(self, comm):
                if os.environ.get("DEBUG"):
                    comm.respond("ok")
                else:
                    comm.respond(None, status=404)
        """,
    ),
    "MUP010": _rewrite(
        """
        class A(MS):
            @EP("/a/")
            def a(self, comm):
                where = comm.params["where"]
                comm.respond(comm.call("B", where).get())
        """,
        """
        from typing import Literal

        class A(MS):
            @EP("/a/")
            def a(self, comm):
                where: Literal["/b/", "/c/"] = comm.params["where"]
                comm.respond(comm.call("B", where).get())
        """,
    ),
    "MUP011": _rewrite(
        'comm.respond(comm.call("Bb", "/b/").get())',
        'comm.respond(comm.call("B", "/b/").get())',
    ),
    "MUP012": _rewrite(
        'comm.respond(comm.call("B", "/bb/").get())',
        'comm.respond(comm.call("B", "/b/").get())',
    ),
    "MUP014": _rewrite(
        'comm.respond(comm.query("db", "find", "words", "no JSON").get())',
        'comm.respond(comm.query("db", "find", "words", {"word": "mup"}).get())',
    ),
    "MUP020": _rewrite(
        """
        if comm.params:
            comm.respond(1)
        """,
        """
        if comm.params:
            comm.respond(1)
        else:
            comm.respond(None, status=400)
        """,
    ),
    "MUP015": _rewrite(
        """
        import os

        OTHER = os.environ.get("OTHER", "B")

        class A(MS):
            @EP("/a/")
            def a(self, comm):
                comm.respond(comm.call(OTHER, "/b/").get())
        """,
        """
        OTHER = "B"

        class A(MS):
            @EP("/a/")
            def a(self, comm):
                comm.respond(comm.call(OTHER, "/b/").get())
        """,
    ),
    "MUP021": _rewrite(
        """
        if comm.params:
            comm.respond(1)
        comm.respond(2)
        """,
        """
        if comm.params:
            comm.respond(1)
            return
        comm.respond(2)
        """,
    ),
    "MUP022": _rewrite(
        """
        comm.respond(1)
        comm.call("B", "/b/").get()
        """,
        """
        comm.call("B", "/b/").get()
        comm.respond(1)
        """,
    ),
    "MUP023": _rewrite(
        """
        try:
            comm.respond(comm.call("B", "/b/").get())
            comm.call("B", "/b/")
        except Exception:
            comm.respond("later", 503)
        """,
        """
        try:
            reply = comm.call("B", "/b/").get()
            comm.call("B", "/b/")
        except Exception:
            comm.respond("later", 503)
            return
        comm.respond(reply)
        """,
    ),
    "MUP030": _rewrite(
        """
        from tools import timed

        class A(MS):
            @EP("/a/")
            @timed
            def a(self, comm):
                comm.respond(1)
        """,
        """
        import functools
        import time

        def timed(function):
            @functools.wraps(function)
            def run(self, comm):
                print(time.time())
                function(self, comm)
            return run

        class A(MS):
            @EP("/a/")
            @timed
            def a(self, comm):
                comm.respond(1)
        """,
    ),
    "MUP031": _rewrite(
        """
        reply = comm.call("B", "/b/")
        for item in comm.params:
            print(item, reply.get())
        comm.respond(1)
        """,
        """
        reply = comm.call("B", "/b/").get()
        for item in comm.params:
            print(item, reply)
        comm.respond(1)
        """,
    ),
    "MUP032": _rewrite(
        """
        def ask(times):
            comm.call("B", "/b/").get()
            if times:
                ask(times - 1)
        ask(comm.params["times"])
        comm.respond(1)
        """,
        """
        for _ in range(comm.params["times"]):
            comm.call("B", "/b/").get()
        comm.respond(1)
        """,
    ),
    "MUP033": _rewrite(
        """
        class A(MS):
            @EP("/all/")
            def all(self, comm):
                comm.respond(comm.call("A", "/one/").get())

            @EP("/one/")
            def one(self, comm):
                comm.respond(comm.call("A", "/all/").get())
        """,
        """
        class A(MS):
            @EP("/all/")
            def all(self, comm):
                comm.respond([self.find(1), self.find(2)])

            @EP("/one/")
            def one(self, comm):
                comm.respond(self.find(1))

            def find(self, number):
                return number
        """,
    ),
    "MUP034": _rewrite(
        "".join(f'f{i} = comm.call("B", "/b/") if comm.params["{i}"] else None\n' for i in range(10))
        + "".join(f"if f{i}:\n    f{i}.get()\n" for i in range(10))
        + "comm.respond(1)",
        "".join(f'if comm.params["{i}"]:\n    comm.call("B", "/b/").get()\n' for i in range(10))
        + "comm.respond(1)",
    ),
    "MUP040": _rewrite(
        """
        replies = [comm.call("B", "/b/") for item in comm.params]
        comm.respond(replies[0].get())
        """,
        """
        replies = [comm.call("B", "/b/") for item in comm.params]
        comm.respond([reply.get() for reply in replies][0])
        """,
    ),
    "MUP041": _rewrite(
        """
        self.comm = comm
        comm.respond(self.comm.call("B", "/b/").get())
        """,
        """
        def ask(comm):
            return comm.call("B", "/b/").get()
        comm.respond(ask(comm))
        """,
    ),
    "MUP042": _rewrite(
        """
        comm.forward("B", "/b/")
        """,
        """
        comm.respond(comm.call("B", "/b/").get())
        """,
    ),
    "MUP043": _rewrite(
        """
        class User(Client):
            async def scenario(self, comm):
                await self.think(self.random.random())
                await comm.call("B", "/b/")
        """,
        """
        class User(Client):
            async def scenario(self, comm):
                await self.think(0.5)
                await comm.call("B", "/b/")
        """,
    ),
    "MUP050": _rewrite(
        """
        import asyncio

        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                reply = comm.call("B", "/b/")

                async def show():
                    print(await reply)
                task = asyncio.create_task(show())
                await reply
                await task
                comm.respond(1)
        """,
        """
        import asyncio

        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                reply = await comm.call("B", "/b/")

                async def show():
                    print(reply)
                await asyncio.create_task(show())
                comm.respond(1)
        """,
    ),
    "MUP051": _rewrite(
        """
        import asyncio

        class User(Client):
            async def scenario(self, comm):
                await asyncio.sleep(0.5)
                await comm.call("B", "/b/")
        """,
        """
        class User(Client):
            async def scenario(self, comm):
                await self.think(0.5)
                await comm.call("B", "/b/")
        """,
    ),
    "MUP052": _rewrite(
        """
        import asyncio

        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                replies = [comm.call("B", "/b/")]

                async def wait(mine):
                    for reply in mine:
                        await reply
                task = asyncio.create_task(wait(replies))
                await task
                comm.respond(1)
        """,
        """
        import asyncio

        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                replies = [comm.call("B", "/b/")]

                async def wait(mine):
                    for reply in mine:
                        await reply
                task = asyncio.create_task(wait(tuple(replies)))
                await task
                comm.respond(1)
        """,
    ),
    "MUP060": _rewrite(
        """
        class A(MS):
            @EP("/a/")
            async def a(self, comm):
                comm.respond(await comm.call("B", "/b/"))
        """,
        """
        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                comm.respond(await comm.call("B", "/b/"))
        """,
    ),
    "MUP061": _rewrite(
        """
        async def ask(comm):
            return await comm.call("B", "/b/")

        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                ask(comm)
                comm.respond(1)
        """,
        """
        async def ask(comm):
            return await comm.call("B", "/b/")

        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                await ask(comm)
                comm.respond(1)
        """,
    ),
    "MUP062": _rewrite(
        'comm.respond(comm.call("B", "/b/"))',
        'comm.respond(comm.call("B", "/b/").get())',
    ),
    "MUP063": _rewrite(
        """
        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                comm.respond(comm.call("B", "/b/").get())
        """,
        """
        class A(MS):
            runtime = "async"

            @EP("/a/")
            async def a(self, comm):
                comm.respond(await comm.call("B", "/b/"))
        """,
    ),
    "MUP064": _rewrite(
        """
        import requests

        class A(MS):
            @EP("/a/")
            def a(self, comm):
                comm.respond(requests.get("http://b/b/").json())
        """,
        """
        class A(MS):
            @EP("/a/")
            def a(self, comm):
                comm.respond(comm.call("B", "/b/").get())
        """,
    ),
    "MUP065": _rewrite(
        """
        import asyncio

        class A(MS):
            runtime = "async"
            slots = asyncio.Semaphore(8)

            @EP("/a/")
            async def a(self, comm):
                await self.slots.acquire()
                try:
                    answer = await comm.call("B", "/b/")
                finally:
                    self.slots.release()
                comm.respond(answer)
        """,
        """
        import asyncio

        class A(MS):
            runtime = "async"
            slots = asyncio.Semaphore(8)

            @EP("/a/")
            async def a(self, comm):
                async with self.slots:
                    answer = await comm.call("B", "/b/")
                comm.respond(answer)
        """,
    ),
    "MUP072": _rewrite(
        "comm.respond(1)  # mup: ignore[MUP22]",
        "comm.respond(1)",
    ),
}
"""By code. Without one: files that cannot be read, names in ``mup.toml``, and mistakes of the analyzer."""
