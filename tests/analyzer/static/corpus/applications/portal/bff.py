import asyncio
import logging
from collections import ChainMap, defaultdict
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from http import HTTPStatus
from itertools import groupby, islice

from loaders import PRODUCT_PAGE, CircuitBreaker, Header, Loader, Page, _names
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError

logger = logging.getLogger("bff")


@asynccontextmanager
async def lease(comm: Communication, name: str):
    token = await comm.call("Leases", "/acquire", {"name": name})
    try:
        yield token
    finally:
        await comm.call("Leases", "/free", {"token": token})


class Web(MS):
    runtime = "async"
    pool_size = 50

    def setup(self) -> None:
        self.breaker = CircuitBreaker()
        self.recent: dict[str, int] = defaultdict(int)

    @EP("/product/{id}", method="GET")
    async def product(self, comm: Communication, id: str) -> None:
        page = Page("product")
        context = {"id": id, "user": comm.cookies.get("user")}
        failed = None
        try:
            async with asyncio.TaskGroup() as group:
                for part in PRODUCT_PAGE:
                    group.create_task(part.render(comm, context, page))
        except* CallError as errors:
            failed = max(e.status for e in errors.exceptions if isinstance(e, CallError))
        except* MupError:
            failed = HTTPStatus.SERVICE_UNAVAILABLE
        if failed is not None:
            comm.respond({"error": "product"}, status=failed)
        else:
            comm.respond(page.to_json())

    @EP("/header", method="GET")
    async def header(self, comm: Communication) -> None:
        page = Page("header")
        await Header().render(comm, {"user": comm.cookies.get("user")}, page)
        comm.respond(page.to_json(), status=200 if not page.errors else 206)

    @EP("/suggest", method="GET")
    async def suggest(self, comm: Communication, q: str = "") -> None:
        rows = await self.breaker.call("suggest", lambda: comm.call("Search", "/suggest", {"q": q}), [])
        comm.respond(rows)

    @EP("/compare", method="POST")
    async def compare(self, comm: Communication, ids: list[str]) -> None:
        loader = Loader(lambda keys: _names(comm, keys))
        first = await loader.many(ids[:2])
        second = await loader.many(ids[2:])
        comm.respond(first + second)

    @EP("/checkout", method="POST")
    async def checkout(self, comm: Communication, cart: str, express: bool = False) -> None:
        async with AsyncExitStack() as stack:
            token = await stack.enter_async_context(lease(comm, cart))
            if express:
                await stack.enter_async_context(lease(comm, "express"))
            order = await comm.call("Orders", "/place", {"cart": cart, "token": token})
        comm.respond(order, status=201)

    @EP("/leased", method="POST")
    async def leased(self, comm: Communication, cart: str, exclusive: bool = True) -> None:
        async with lease(comm, cart) if exclusive else nullcontext("") as token:
            rows = await comm.query("shop", "cart", "carts", {"_id": cart, "token": token})
        comm.respond(rows)

    @EP("/stream", method="GET")
    async def stream(self, comm: Communication) -> None:
        total = 0
        async for row in self._rows(comm):
            total += row.get("n", 1)
            if total > 100:
                break
        comm.respond(total)

    async def _rows(self, comm):
        cursor = 0
        while True:
            rows = await comm.query("shop", "after", "events", {"cursor": cursor})
            for row in rows:
                yield row
            if len(rows) < 2:
                return
            cursor += len(rows)

    @EP("/prices", method="POST")
    async def prices(self, comm: Communication, ids: list[str]) -> None:
        limit = asyncio.Semaphore(3)

        async def price(id):
            async with limit:
                return (await comm.call("Prices", "/price", {"id": id}))["price"]

        tasks = {id: asyncio.create_task(price(id)) for id in ids}
        found = {}
        for id, task in tasks.items():
            try:
                found[id] = await task
            except MupError:
                found[id] = None
        comm.respond(found)

    @EP("/race", method="GET")
    async def race(self, comm: Communication) -> None:
        mirrors = [asyncio.create_task(comm.call("Mirror", p, {})) for p in ("/east", "/west")]
        done, pending = await asyncio.wait(mirrors, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        winner = done.pop()
        if winner.exception() is not None:
            comm.respond({"error": "mirror"}, status=502)
            return
        comm.respond(winner.result())

    @EP("/signup", method="POST")
    async def signup(self, comm: Communication, email: str, invite: str | None = None) -> None:
        checks = [self._free(comm, email)]
        if invite is not None:
            checks.append(self._invited(comm, invite))
        problems = [p for p in await asyncio.gather(*checks) if p]
        if problems:
            comm.respond({"problems": problems}, status=HTTPStatus.UNPROCESSABLE_ENTITY)
            return
        user = await comm.call("Users", "/create", {"email": email})
        comm.respond(user, status=HTTPStatus.CREATED)
        await comm.call("Mail", "/welcome", {"email": email})

    async def _free(self, comm, email):
        return "taken" if await comm.query("shop", "user", "users", {"email": email}) else None

    async def _invited(self, comm, invite):
        try:
            await comm.call("Invites", "/use", {"code": invite})
        except CallError as error:
            return "invite" if error.status in (404, 410) else "later"

    @EP("/retry", method="GET")
    async def retry(self, comm: Communication) -> None:
        delays = iter((0.01, 0.02, 0.04))
        while True:
            try:
                comm.respond(await comm.call("Flaky", "/get", {}, timeout=0.3))
                return
            except (CallTimeoutError, CommunicationError) as error:
                delay = next(delays, None)
                if delay is None:
                    comm.respond({"error": type(error).__name__}, status=504)
                    return
                await asyncio.sleep(delay)

    @EP("/grouped", method="GET")
    async def grouped(self, comm: Communication) -> None:
        rows = await comm.query("shop", "lines", "lines", {})
        totals = {}
        for shop, lines in groupby(sorted(rows, key=lambda r: r["shop"]), key=lambda r: r["shop"]):
            totals[shop] = sum(line["n"] for line in lines)
            await comm.call("Audit", "/shop", {"shop": shop})
        comm.respond(totals)

    @EP("/settings", method="GET")
    async def settings(self, comm: Communication) -> None:
        user = comm.cookies.get("user")
        defaults = {"theme": "light"}
        own = (await comm.query("shop", "settings", "settings", {"_id": user}))[:1] if user else []
        comm.respond(dict(ChainMap(*own, defaults)))

    @EP("/visit", method="POST")
    async def visit(self, comm: Communication, page: str = "/") -> None:
        self.recent[page] += 1
        if self.recent[page] % 10 == 0:
            await comm.query("shop", "visits", "visits", {"$insert": [{"page": page, "n": 10}]})
        comm.respond(status=204)

    @EP("/late", method="GET")
    async def late(self, comm: Communication) -> None:
        task = asyncio.create_task(comm.call("Reports", "/build", {}))
        try:
            report = await asyncio.wait_for(asyncio.shield(task), 0.2)
        except asyncio.TimeoutError:
            task.add_done_callback(lambda t: t.cancelled() or t.exception())
            comm.respond({"status": "building"}, status=202)
        except MupError:
            comm.respond({"status": "failed"}, status=502)
        else:
            comm.respond(report)
