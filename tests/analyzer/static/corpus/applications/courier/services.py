"""Deliveries by couriers whose services are not always there: called again by tenacity and backoff."""

import backoff
import tenacity
from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError
from tenacity import (
    AsyncRetrying,
    RetryError,
    Retrying,
    retry,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
    wait_fixed,
)

again = retry(
    stop=stop_after_attempt(3),
    wait=wait_exponential(multiplier=0.05, max=1),
    retry=retry_if_exception_type(CommunicationError),
    reraise=True,
)


@again
def quote(comm: Communication, city: str) -> float:
    return comm.call("Couriers", "/quote", {"city": city}).get()["price"]


@retry(stop=stop_after_attempt(2), wait=wait_fixed(0.01))
def booked(comm: Communication, city: str) -> dict:
    found = comm.query("orders", "slot", "slots", {"city": city}).get()
    return comm.call("Couriers", "/book", {"city": city, "slot": len(found)}).get()


@tenacity.retry(stop=stop_after_attempt(4), retry=retry_if_result(lambda state: state is None))
def delivered(comm: Communication, order: str) -> str | None:
    return comm.call("Couriers", "/state", {"order": order}).get()["state"]


@backoff.on_exception(backoff.expo, CallError, max_tries=3, jitter=None)
def address(comm: Communication, order: str) -> dict:
    return comm.call("Customers", "/address", {"order": order}).get()


@backoff.on_exception(backoff.constant, MupError, max_tries=2, interval=0.01)
async def address_soon(comm: Communication, order: str) -> dict:
    return await comm.call("Customers", "/address", {"order": order})


@backoff.on_predicate(backoff.constant, lambda answer: not answer["ready"], max_tries=5, interval=0.01)
async def ready(comm: Communication, order: str) -> dict:
    return await comm.call("Couriers", "/ready", {"order": order})


class Tracker:
    """Asks one courier."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @retry(stop=stop_after_attempt(3), reraise=True)
    async def position(self, order: str) -> dict:
        return await self.comm.call("Couriers", "/position", {"order": order})


class Deliveries(MS):
    runtime = "thread"
    pool_size = 8

    @EP("/quote")
    def quote(self, comm: Communication, city: str) -> None:
        comm.respond(quote(comm, city))

    @EP("/quote/or-default")
    def quote_or_default(self, comm: Communication, city: str) -> None:
        try:
            price = quote(comm, city)
        except CommunicationError:
            price = 9.9
        comm.respond(price)

    @EP("/book")
    def book(self, comm: Communication, city: str) -> None:
        try:
            comm.respond(booked(comm, city))
        except RetryError:
            comm.respond(None, status=503)

    @EP("/delivered")
    def delivered(self, comm: Communication, order: str) -> None:
        comm.respond(delivered(comm, order))

    @EP("/address")
    def address(self, comm: Communication, order: str) -> None:
        comm.respond(address(comm, order))

    @EP("/attempts")
    def attempts(self, comm: Communication, order: str) -> None:
        for attempt in Retrying(stop=stop_after_attempt(3), reraise=True):
            with attempt:
                known = comm.query("orders", "order", "orders", {"_id": order}).get()
                state = comm.call("Couriers", "/state", {"order": order, "known": len(known)}).get()
        comm.respond(state)

    @EP("/call")
    def call(self, comm: Communication, city: str) -> None:
        again = Retrying(stop=stop_after_attempt(2), retry=retry_if_exception_type(CallError))
        comm.respond(again(self._price, comm, city=city))

    def _price(self, comm: Communication, city: str) -> float:
        return comm.call("Couriers", "/quote", {"city": city}).get()["price"]


class Tracking(MS):
    runtime = "async"
    pool_size = 16

    @EP("/where")
    async def where(self, comm: Communication, order: str) -> None:
        comm.respond(await Tracker(comm).position(order))

    @EP("/address")
    async def address(self, comm: Communication, order: str) -> None:
        comm.respond(await address_soon(comm, order))

    @EP("/ready")
    async def ready(self, comm: Communication, order: str) -> None:
        comm.respond(await ready(comm, order))

    @EP("/attempts")
    async def attempts(self, comm: Communication, order: str) -> None:
        try:
            async for attempt in AsyncRetrying(stop=stop_after_attempt(2), wait=wait_fixed(0.01)):
                with attempt:
                    position = await comm.call("Couriers", "/position", {"order": order})
        except RetryError:
            position = None
        comm.respond(position)


class Couriers(MS):
    pool_size = 4

    @EP("/quote")
    def quote(self, comm: Communication, city: str) -> None:
        comm.respond({"price": 4.5 + len(city)})

    @EP("/book")
    def book(self, comm: Communication, city: str, slot: int) -> None:
        comm.query("orders", "book", "slots", {"$insert": [{"city": city, "slot": slot}]}).get()
        comm.respond({"number": slot}, status=201)

    @EP("/state")
    def state(self, comm: Communication, order: str) -> None:
        comm.respond({"state": "delivered" if order else None})

    @EP("/ready")
    def ready(self, comm: Communication, order: str) -> None:
        comm.respond({"ready": bool(order)})

    @EP("/position")
    def position(self, comm: Communication, order: str) -> None:
        comm.respond(comm.query("orders", "position", "positions", {"_id": order}).get())


class Customers(MS):
    @EP("/address")
    def address(self, comm: Communication, order: str) -> None:
        comm.respond({"street": order})
