"""A gateway with a route decorator of its own, as it was ported from another framework."""

import functools
import logging
import time

from mup import EP, MS, Communication
from mup.errors import CommunicationError

log = logging.getLogger(__name__)


def route(path, *, methods=("GET",), auth=True):
    """Time, authenticate, and answer errors."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(self, comm, **values):
            if auth and "authorization" not in comm.headers:
                comm.respond({"error": "unauthorized"}, status=401)
                return
            start = time.perf_counter()
            try:
                function(self, comm, **values)
            except CommunicationError as error:
                comm.respond({"error": str(error)}, status=503)
            finally:
                log.info("%s took %s", path, time.perf_counter() - start)

        return EP(path, method=methods[0])(wrapper)

    return decorate


class Gateway(MS):
    @route("/stock/{sku}")
    def stock(self, comm: Communication, sku: str) -> None:
        comm.respond(comm.call("Stock", "/level", {"sku": sku}).get())

    @route("/orders", methods=("POST",))
    def order(self, comm: Communication) -> None:
        level = comm.call("Stock", "/level", {"sku": comm.params.get("sku", "")}).get()
        if level["level"] == 0:
            comm.respond({"error": "sold out"}, status=409)
            return
        comm.call("Stock", "/take", dict(comm.params)).get()
        comm.respond({}, status=201)

    @route("/status", auth=False)
    def status(self, comm: Communication) -> None:
        comm.respond("up")


class Stock(MS):
    @EP("/level")
    def level(self, comm: Communication, sku: str) -> None:
        comm.respond({"level": len(comm.query("stock", "level", "levels", {"sku": sku}).get())})

    @EP("/take")
    def take(self, comm: Communication, sku: str = "") -> None:
        comm.query("stock", "take", "levels", {"$delete": {"filter": {"sku": sku}}}).get()
        comm.respond({})
