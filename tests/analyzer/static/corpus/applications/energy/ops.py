import asyncio
from contextlib import asynccontextmanager, suppress

from lib import TRANSIENT, EnergyError, GridDown, Lease, MeterError, TooLate, aretry, log
from mup import EP, MS, Communication
from mup.errors import (
    BrokenCallError,
    CallError,
    CallTimeoutError,
    CommunicationError,
    MupError,
    NoReplicaError,
    QueryError,
)


class Ops(MS):
    runtime = "async"
    pool_size = 8

    @EP("/overview")
    async def overview(self, comm: Communication) -> None:
        async def load():
            return await comm.call("Grid", "/load", {})

        weather = asyncio.create_task(comm.call("Weather", "/now", {}))
        try:
            current = await load()
        except CallError as error:
            weather.cancel()
            with suppress(asyncio.CancelledError, MupError):
                await weather
            comm.respond({}, status=error.status)
            return
        try:
            sky = await weather
        except CommunicationError:
            sky = await comm.call("Weather", "/yesterday", {})
        comm.respond({"load": current, "sky": sky})

    @EP("/compare")
    async def compare(self, comm: Communication) -> None:
        names = ("north", "south")
        results = await asyncio.gather(
            comm.call("Zones", "/north", {}), comm.call("Zones", "/south", {}), return_exceptions=True
        )
        errors = {n: r for n, r in zip(names, results) if isinstance(r, BaseException)}
        if len(errors) == len(names):
            await comm.call("Pager", "/page", {})
            raise errors["north"]
        for name, error in errors.items():
            if isinstance(error, (CallTimeoutError, NoReplicaError)):
                await comm.call("Zones", "/estimate", {"zone": name})
            else:
                log.warning("%s: %s", name, error)
        comm.respond({"missing": list(errors)})

    @EP("/all-or-none")
    async def all_or_none(self, comm: Communication) -> None:
        try:
            supply, demand = await asyncio.gather(self._supply(comm), self._demand(comm))
        except MeterError as error:
            if error.service == "supply":
                await comm.call("Supply", "/fallback", {})
            elif error.status == 404:
                await comm.call("Demand", "/register", {})
            comm.respond({"error": str(error)}, status=502)
        else:
            comm.respond({"balance": [supply, demand]})

    async def _supply(self, comm):
        try:
            return await comm.call("Supply", "/now", {})
        except MupError as error:
            raise MeterError("supply") from error

    async def _demand(self, comm):
        try:
            return await comm.call("Demand", "/now", {})
        except CallError as error:
            raise MeterError("demand", error.status) from error

    @EP("/switch")
    async def switch(self, comm: Communication) -> None:
        late = False
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._open(comm, "a"))
                group.create_task(self._close(comm))
        except* (CallTimeoutError, NoReplicaError):
            late = True
        except* CallError as errors:
            if any(e.status == 409 for e in errors.exceptions):
                await comm.call("Switches", "/reset", {})
        finally:
            await comm.call("Audit", "/switched", {})
        if late:
            await comm.call("Switches", "/verify", {})
        comm.respond({})

    async def _open(self, comm, name):
        await comm.call("Switches", "/open", {"name": name})

    async def _close(self, comm):
        await comm.call("Switches", "/close", {})

    @EP("/nested")
    async def nested(self, comm: Communication) -> None:
        try:
            try:
                async with asyncio.TaskGroup() as outer:
                    outer.create_task(self._row(comm))
                    price = outer.create_task(self._price(comm))
            except* QueryError:
                await comm.call("Audit", "/no-row", {})
        except ExceptionGroup as group:
            matched, rest = group.split(CallError)
            if matched is not None:
                await comm.call("Audit", "/no-price", {})
            if rest is not None:
                raise GridDown("nested") from rest
            comm.respond({}, status=502)
            return
        comm.respond({"priced": price.done() and not price.cancelled()})

    async def _row(self, comm):
        return await comm.query("grid", "row", "zones", {})

    async def _price(self, comm):
        return await comm.call("Tariffs", "/spot", {})

    @EP("/lease")
    async def lease(self, comm: Communication) -> None:
        done = False
        try:
            async with Lease(comm, "north"):
                await comm.call("Grid", "/isolate", {})
                await comm.query("grid", "isolate", "zones", {})
                done = True
        except OSError:
            await comm.call("Pager", "/page", {})
            comm.respond({}, status=504)
            return
        if not done:
            await comm.call("Grid", "/restore", {})
        comm.respond({"done": done})

    @EP("/stream")
    async def stream(self, comm: Communication) -> None:
        async def readings():
            try:
                for number in range(3):
                    try:
                        yield await comm.call("Head", "/read", {"number": number})
                    except CallTimeoutError:
                        await comm.call("Head", "/skip", {"number": number})
            finally:
                await comm.call("Head", "/hang-up", {})

        total = 0
        source = readings()
        try:
            async for reading in source:
                if reading.get("end"):
                    break
                total += reading.get("kwh", 0)
        except CallError:
            await comm.call("DeadLetters", "/stream", {})
        finally:
            await source.aclose()
        comm.respond({"total": total})

    @EP("/patient")
    async def patient(self, comm: Communication) -> None:
        @aretry(attempts=2, errors=(CallTimeoutError, BrokenCallError))
        async def forecast():
            return await comm.call("Forecast", "/day", {})

        try:
            value = await asyncio.wait_for(forecast(), timeout=1.0)
        except CallTimeoutError:
            await comm.call("Forecast", "/cheaper", {})
            value = 0
        except asyncio.TimeoutError:
            value = None
        except CallError as error:
            if error.status >= 500:
                raise TooLate(str(error)) from error
            await comm.call("Forecast", "/fix", {})
            value = -1
        if value is None:
            rows = await comm.query("grid", "forecast", "days", {})
            value = len(rows)
        comm.respond({"value": value})

    @EP("/shielded")
    async def shielded(self, comm: Communication) -> None:
        write = asyncio.create_task(self._write(comm))
        try:
            await asyncio.wait_for(asyncio.shield(write), 0.5)
        except TimeoutError:
            comm.respond({}, status=202)
            try:
                await write
            except MupError:
                await comm.call("DeadLetters", "/write", {})
            return
        except CommunicationError:
            await comm.call("Store", "/rollback", {})
            raise
        comm.respond({}, status=201)

    async def _write(self, comm):
        await comm.call("Store", "/prepare", {})
        await comm.call("Store", "/commit", {})

    @EP("/watched")
    async def watched(self, comm: Communication) -> None:
        failed = []
        limit = asyncio.Semaphore(2)

        async def check(zone):
            async with limit:
                await comm.call("Zones", "/check", {"zone": zone})

        def note(task):
            if not task.cancelled() and task.exception() is not None:
                failed.append(task.exception())

        tasks = [asyncio.create_task(check(z)) for z in comm.params.get("zones", [])]
        for task in tasks:
            task.add_done_callback(note)
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)
        refused = [e for e in failed if isinstance(e, CallError)]
        if refused:
            await comm.call("Zones", "/repair", {"n": len(refused)})
        if len(failed) > len(refused):
            await comm.call("Pager", "/page", {})
        comm.respond({"failed": len(failed)})

    @asynccontextmanager
    async def _translated(self, comm):
        try:
            yield
        except QueryError as error:
            raise EnergyError("query") from error
        except CallError as error:
            if error.status == 404:
                await comm.call("Outages", "/create", {})
            else:
                raise
        else:
            await comm.call("Outages", "/touch", {})

    @EP("/outage")
    async def outage(self, comm: Communication) -> None:
        try:
            async with self._translated(comm):
                await comm.call("Outages", "/get", {})
                await comm.query("grid", "touch", "outages", {})
        except EnergyError as error:
            comm.respond({"error": str(error.__cause__)}, status=error.status)
        except TRANSIENT:
            await comm.call("Outages", "/later", {})
            comm.respond({}, status=202)
        else:
            comm.respond({})
