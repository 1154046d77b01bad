"""Records of calls in the event log: the log of a process, and one operation in it."""

from __future__ import annotations

import inspect
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from mup.events.record import FAILED, Event, attempt_flag
from mup.events.sites import SiteTable
from mup.events.writer import EventWriter

__all__ = ["EventLog", "Operation", "Waiting"]

_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR


class EventLog:
    """The log of a worker or of a process of clients; without a writer, every method does nothing.

    Args:
        writer: Where records go.
        source: Folder that sites are named relative to.
        sample: One in so many executions is logged.

    Attributes:
        writer: Where records go; None = nowhere.
        write: ``EventWriter.write``, or nothing.
        name: ``EventWriter.name``, or what returns 0.
    """

    def __init__(self, writer: EventWriter | None, source: Path, sample: int = 1) -> None:
        self.writer = writer
        self.write: Callable[..., None] = writer.write if writer else lambda *_: None
        self.name: Callable[[str], int] = writer.name if writer else lambda _: 0
        self._sample = sample
        self._sites = SiteTable(writer, source) if writer else None

    def site(self, frame: FrameType) -> int:
        """Return the site of the call that ``frame`` is executing."""
        return self._sites.of_frame(frame, "call") if self._sites else 0

    def waiting_site(self, depth: int) -> int:
        """Return the site of the ``await`` that waits ``depth`` frames above the caller.

        Coroutines of asyncio in between (``wait_for``) are passed over. 0 if a task that asyncio has made
        waits (``gather``): nothing tells where it comes from.
        """
        if self._sites is None:
            return 0
        frame = sys._getframe(depth + 1)  # noqa: SLF001
        while frame.f_globals.get("__name__", "").partition(".")[0] == "asyncio":
            outer = frame.f_back
            if outer is None or not outer.f_code.co_flags & _COROUTINE:
                return 0
            frame = outer
        return self._sites.of_frame(frame, "await")

    def stamp(self) -> tuple[int, int]:
        """Return the time and the CPU time of now, for a record to be written later."""
        return (time.monotonic_ns(), time.thread_time_ns()) if self.writer else (0, 0)

    def chosen(self) -> bool:
        """Return whether a new execution is logged: drawn at random, as the front of a service does."""
        return self._sample == 1 or random.random() * self._sample < 1


@dataclass(slots=True)
class Operation:
    """One call or query of an execution, as far as the event log and its deadline are concerned.

    Every ``commStart`` has its ``contactDest`` and ``commFinish``, so that readers need no special case.

    Attributes:
        events: Where records go.
        request, trace: Ids of the execution.
        seq: Number of the operation in it.
        site: Of the code that began it.
        name: Destination: ``B/epB/`` or ``db.qry``.
        deadline: Seconds of the monotonic clock.
        awaited: Whether the exchange goes on by itself: its records have no site, and begin when a replica
            has been chosen, for connecting is part of it.
        sampled: Whether what it causes is logged.
        attempt: Number of the attempt, from 0.
        contacted: Whether ``contactDest`` has been written for this attempt.
    """

    events: EventLog
    request: int
    trace: int
    seq: int
    site: int
    name: str
    deadline: float
    awaited: bool = False
    sampled: bool = True
    attempt: int = 0
    contacted: bool = False

    def rename(self, name: str) -> None:
        """Take the name that has been found out."""
        self.name = name

    def log(self, event: Event, flags: int = 0, now: int | None = None) -> None:
        """Write a record of this operation."""
        at = 0 if self.awaited and event is not Event.COMM_START else self.site
        self.wait(event, flags | attempt_flag(self.attempt), at, now)

    def wait(self, event: Event, flags: int, site: int, now: int | None = None) -> None:
        """Write a record of waiting: that is for the call as a whole, whatever the attempt."""
        events = self.events
        if events.writer is not None:
            name = events.name(self.name)
            events.write(event, self.request, self.trace, self.seq, site, name, flags, now)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Log that it begins; if it cannot, it has failed."""
        self.log(Event.COMM_START)
        try:
            yield
        except BaseException:
            self.finish(FAILED)
            raise

    def contact(self, flags: int = 0) -> None:
        """Note that the request is on its way, unless that is known."""
        if not self.contacted:
            self.contacted = True
            self.log(Event.CONTACT_DEST, flags)

    def finish(self, flags: int = 0) -> None:
        """Note that the exchange of this attempt has ended."""
        self.contact(flags & FAILED)
        self.log(Event.COMM_FINISH, flags)

    def worked(self, nanoseconds: int) -> None:
        """Note the processor time that threads of a driver took for this query."""
        events = self.events
        if events.writer is not None:
            events.writer.write(Event.DRIVER, self.request, self.trace, self.seq, cpu=nanoseconds)

    def again(self) -> None:
        """Note that another attempt begins."""
        self.attempt += 1
        self.contacted = False
        self.log(Event.COMM_START)


class Waiting:
    """Records around a wait for an operation; it has failed if an exception ends it.

    Args:
        operation: What is waited for.
        site: Of the code that waits.

    Attributes:
        flags: Of the record that ends it.
    """

    __slots__ = ("_operation", "_site", "flags")

    def __init__(self, operation: Operation, site: int) -> None:
        self._operation = operation
        self._site = site
        self.flags = 0

    def __enter__(self) -> Waiting:
        self._operation.wait(Event.WAIT_START, 0, self._site)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        flags = self.flags if kind is None else self.flags | FAILED
        self._operation.wait(Event.WAIT_END, flags, self._site)
