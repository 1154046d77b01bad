"""What the services of an energy utility share: errors, retries, results, guards."""

import asyncio
import functools
import json
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass

from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError, NoReplicaError, QueryError

log = logging.getLogger("energy")

TRANSIENT = (CallTimeoutError, NoReplicaError)


class EnergyError(Exception):
    status = 500


class MeterError(EnergyError):
    def __init__(self, service, status=502):
        super().__init__(f"{service}: {status}")
        self.service = service
        self.status = status


class UnknownMeter(MeterError, KeyError):
    pass


class BadReading(json.JSONDecodeError):
    def __init__(self, text):
        super().__init__("bad reading", text, 0)


class TariffMissing(LookupError):
    pass


class GridDown(OSError):
    pass


class TooLate(asyncio.TimeoutError):
    pass


def retry(attempts=3, errors=TRANSIENT, backoff=0.1):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            delay = backoff
            for attempt in range(1, attempts + 1):
                try:
                    return fn(*args, **kwargs)
                except errors as error:
                    if attempt == attempts:
                        raise
                    log.warning("%s: %s", fn.__name__, error)
                    time.sleep(delay)
                    delay *= 2

        return wrapper

    return decorate


def aretry(attempts=3, errors=TRANSIENT):
    def decorate(fn):
        @functools.wraps(fn)
        async def wrapper(*args, **kwargs):
            last = None
            for _ in range(attempts):
                try:
                    return await fn(*args, **kwargs)
                except errors as error:
                    last = error
                    await asyncio.sleep(0)
            raise last

        return wrapper

    return decorate


@dataclass(frozen=True)
class Ok:
    value: object

    def then(self, f):
        return f(self.value)


@dataclass(frozen=True)
class Err:
    error: Exception

    def then(self, f):
        return self


def attempt(f, *args):
    try:
        return Ok(f(*args))
    except MupError as error:
        return Err(error)


def translated(fn):
    @functools.wraps(fn)
    def wrapper(self, comm):
        try:
            fn(self, comm)
        except CallError as error:
            if error.status == 404:
                raise UnknownMeter("meters", 404) from error
            raise MeterError("meters", error.status) from error
        except CommunicationError as error:
            raise MeterError("meters") from error

    return wrapper


def answered(fn):
    @functools.wraps(fn)
    def wrapper(self, comm):
        try:
            fn(self, comm)
        except UnknownMeter as error:
            comm.call("Audit", "/unknown", {"service": error.service}).get()
            comm.respond({"error": "meter"}, status=error.status)
        except MeterError as error:
            if error.status >= 500:
                comm.call("Pager", "/page", {"status": error.status})
            comm.respond({"error": str(error)}, status=502)

    return wrapper


class BreakerOpen(EnergyError):
    status = 503


class Breaker:
    def __init__(self, limit):
        self.limit = limit
        self.failures = 0

    def __enter__(self):
        if self.failures >= self.limit:
            self.failures = 0
            raise BreakerOpen("open")
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.failures = 0
        elif issubclass(kind, CommunicationError):
            self.failures += 1
        return False


class Tolerate:
    """Swallows what says that something is not there."""

    def __init__(self, *statuses):
        self.statuses = statuses
        self.error = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, CallError) and error.status in self.statuses:
            self.error = error
            return True
        return isinstance(error, QueryError)


class Lease:
    def __init__(self, comm, zone):
        self.comm = comm
        self.zone = zone

    async def __aenter__(self):
        await self.comm.call("Locks", "/lock", {"zone": self.zone})
        return self

    async def __aexit__(self, kind, error, trace):
        await self.comm.call("Locks", "/unlock", {"zone": self.zone})
        if kind is not None and issubclass(kind, CallTimeoutError):
            raise GridDown("lease") from error
        return isinstance(error, CallError)


@contextmanager
def compensated(comm, what):
    try:
        yield
    except MupError:
        comm.call("Billing", "/undo", {"what": what}).get()
        raise
    else:
        comm.call("Billing", "/confirm", {"what": what})
