import asyncio
from contextlib import asynccontextmanager, suppress

import settings
from domain import Airport, Credit, Fare, Flight, Status, Train
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, MupError


@asynccontextmanager
async def held(comm: Communication, service: str, log: list):
    await comm.call(service, "/hold", {})
    log.append(service)
    try:
        yield log
    except LookupError:
        await comm.call(service, "/release", {})
        log.clear()
    else:
        log.append("kept")


async def pages(comm: Communication, seen: list):
    for number in range(3):
        answer = await comm.call("Flights", "/search", {"page": number})
        seen.append(number)
        yield answer.get("price", 0)


def routes(text: str):
    head, *tail = text.split("-")
    yield head
    if tail:
        yield from tail
    yield "end"


class Journeys(MS):
    runtime = "async"
    pool_size = 8

    def setup(self) -> None:
        self.lock = asyncio.Lock()
        self.handlers = {Flight: self._flight, Train: self._train}

    async def _flight(self, comm: Communication, leg: Flight) -> None:
        await comm.call("Flights", "/seat", {"n": leg.number})

    async def _train(self, comm: Communication, leg: Train) -> None:
        await comm.call("Hotels", "/search", {"n": leg.number})

    @EP("/compare", method="POST")
    async def compare(self, comm: Communication) -> None:
        air, hotel = await asyncio.gather(
            comm.call("Flights", "/search", {}), comm.call("Hotels", "/search", {}), return_exceptions=True
        )
        if isinstance(air, MupError | ValueError) and isinstance(hotel, Exception):
            await comm.call("Mail", "/alert", {})
        elif isinstance(air, dict) and air.get("price", 0) > 5:
            await comm.call("Cars", "/quote", {})
        elif not isinstance(hotel, BaseException):
            await comm.call("Hotels", "/hold", {})
        comm.respond({})

    @EP("/race", method="POST")
    async def race(self, comm: Communication, wait: bool = False) -> None:
        task = asyncio.create_task(comm.call("Flights", "/search", {}))
        other = await comm.call("Hotels", "/search", {})
        if wait:
            with suppress(MupError):
                await task
        if not task.done():
            task.cancel()
            await comm.call("Cars", "/quote", {})
        elif other.get("price", 0) > 5:
            await comm.call("Hotels", "/hold", {})
        comm.respond({})

    @EP("/patient", method="POST")
    async def patient(self, comm: Communication, points: int = 0) -> None:
        credit = Credit(points)
        try:
            answer = await asyncio.wait_for(comm.call("Risk", "/score", {}), 0.5)
        except TimeoutError:
            answer = None
        except CallError as error:
            answer = {} if error.status == 404 else {"score": 9}
        if answer is None:
            await comm.call("Mail", "/alert", {})
        elif not answer:
            await comm.call("Risk", "/visa", {})
        elif answer.get("score", 0) > 5 and not credit:
            await comm.call("Pay", "/refund", {})
        await comm.call("Pay", "/points" if credit else "/charge", {})
        comm.respond({})

    @EP("/keep", method="POST")
    async def keep(self, comm: Communication, seats: int = 0) -> None:
        log: list[str] = []
        async with held(comm, "Flights", log) as same:
            if seats < 1:
                raise KeyError("seats")
            if seats > 4:
                same.append("group")
        if "kept" not in log:
            comm.respond({}, status=409)
            return
        if log[-2] == "group" and same is log:
            await comm.call("Mail", "/alert", {})
        else:
            await comm.call("Flights", "/seat", {})
        comm.respond({})

    @EP("/pages", method="GET")
    async def pages_(self, comm: Communication) -> None:
        seen: list[int] = []
        async for price in pages(comm, seen):
            if price > 5:
                break
        else:
            await comm.call("Mail", "/alert", {})
        if len(seen) == 1:
            await comm.call("Pay", "/points", {})
        elif len(seen) == 2:
            await comm.call("Pay", "/charge", {})
        comm.respond({})

    @EP("/status/{name}", method="POST")
    async def status(self, comm: Communication, name: str) -> None:
        try:
            status = Status[name.upper()]
        except KeyError:
            comm.respond({}, status=422)
            return
        else:
            before, status = status, status.next()
        if status.final and before is not status:
            await comm.call("Pay", "/charge", {})
        elif status == before:
            await comm.call("Mail", "/send", {})
        else:
            await comm.call("Flights", "/hold", {})
        comm.respond({})

    @EP("/fare", method="POST")
    async def fare(self, comm: Communication, cabin: str = "economy", flexible: bool = False) -> None:
        fare = Fare(cabin, flexible=flexible)
        better = fare.upgraded()
        if better is fare:
            await comm.call("Flights", "/search", {})
        elif better == fare:
            await comm.call("Flights", "/hold", {})
        else:
            await comm.call("Pay", "/charge", {})
        if better in {Fare(), Fare("business", True)}:
            await comm.call("Flights", "/seat", {})
        comm.respond({})

    @EP("/leg", method="POST")
    async def leg(self, comm: Communication, number: str) -> None:
        kind, sep, rest = number.partition("/")
        leg = Flight(rest) if kind == "air" else Train(rest) if sep else None
        handler = self.handlers.get(type(leg))
        if handler is not None:
            await handler(comm, leg)
        match leg:
            case Flight(number="1" | "2", stops=0):
                await comm.call("Risk", "/visa", {})
            case Flight(number=n) | Train(number=n) if len(n) > 2:
                await comm.call("Mail", "/send", {})
            case None:
                await comm.call("Mail", "/alert", {})
        comm.respond({})

    @EP("/route/{text}", method="GET")
    async def route(self, comm: Communication, text: str) -> None:
        stops = routes(text)
        first = next(stops)
        direct = next(stops) == "end"
        if not direct and any(s == "nyc" for s in stops):
            left = list(stops)
            if left:
                await comm.call("Risk", "/visa", {"left": left})
            else:
                await comm.call("Mail", "/alert", {})
        elif next(stops, None) is None:
            await comm.call("Flights", "/search", {"from": first})
        else:
            await comm.call("Mail", "/send", {})
        comm.respond({})

    @EP("/region/{region}", method="POST")
    async def region(self, comm: Communication, region: str) -> None:
        async with self.lock:
            if region not in settings.REGIONS:
                comm.respond({}, status=404)
                return
            if settings.STRICT_RISK and region != "eu":
                await comm.call("Risk", "/score", {})
        if settings.NOTIFY or region is None:
            await comm.call("Mail", "/send", {})
        if settings.local:
            await comm.call("Mail", "/alert", {})
        comm.respond({})

    @EP("/retry", method="POST")
    async def retry(self, comm: Communication, most: int = 2) -> None:
        tries, done, last = 0, False, None
        while not done and tries < most and last != 409:
            tries += 1
            for service in ("Flights", "Hotels"):
                try:
                    answer = await comm.call(service, "/hold", {})
                except CallTimeoutError:
                    continue
                except CallError as error:
                    last = error.status
                    break
                if not answer.get("ok"):
                    break
            else:
                done = True
        if done:
            await comm.call("Pay", "/charge", {})
        elif last == 409:
            await comm.call("Mail", "/alert", {})
        comm.respond({"tries": tries})

    @EP("/bundle", method="POST")
    async def bundle(self, comm: Communication, parts: list[str], names: list[str]) -> None:
        todo = {}
        for part, name in zip(parts, names):
            todo.setdefault(part, []).append(name)
        prices = [p for k in todo if (p := (await comm.call("Cars", "/quote", {"k": k})).get("price"))]
        if all(p > 2 for p in prices):
            await comm.call("Pay", "/charge", {})
        if len(parts) > len(names):
            await comm.call("Mail", "/alert", {"rest": parts[len(names) :]})
        car = todo.pop("car", None)
        if car and not todo:
            await comm.call("Pay", "/points", {})
        comm.respond({})
