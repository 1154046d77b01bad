"""Serve several requests at once on an event loop: a task per request, at most one per worker.

The process is handed a line per worker, as with threads, so the front's queue is the only one there is. All
workers share the loop, its core, and one instance of the service.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Any

import msgspec

from mup.events.writer import open_log
from mup.runtime.client.events import EventLog
from mup.runtime.client.exchange import CONNECT_SECONDS
from mup.runtime.client.network import Network
from mup.runtime.endpoint.execution import Execution, describe
from mup.runtime.process.loops import new_event_loop
from mup.runtime.process.pinning import pin
from mup.runtime.protocol.wire import (
    CANCEL,
    FrameBuffer,
    Line,
    LogOff,
    Ready,
    Request,
    Retried,
    Sender,
    cancelled,
)
from mup.runtime.worker.awaited_communication import AwaitedCommunication, AwaitedTools
from mup.runtime.worker.threads import receive_slot
from mup.runtime.worker.tray import Tray
from mup.runtime.worker.worker import ServiceRun, become_worker_process

__all__ = ["run_loop"]

_log = logging.getLogger("mup.runtime")
_FLUSH_SECONDS = 1.0
"""A reader of the log sees what is at most so old."""


def run_loop(run: ServiceRun, control: socket.socket, parent: int, tray: Tray) -> None:
    """Be a process with an event loop: serve what comes through every line the front sends.

    Args:
        run: What to serve.
        control: Brings the lines; ends the process when it is closed.
        parent: Process id of the front.
        tray: Of the replica.
    """
    become_worker_process(parent)
    if run.pinned:
        pin(run.position, run.replica)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_Loop(run, control, tray).serve())


class _Loop:
    """One instance of a service, and everything its requests share."""

    def __init__(self, run: ServiceRun, control: socket.socket, tray: Tray) -> None:
        self._run = run
        self._control = control
        self._tray = tray
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots: set[_Slot] = set()

    async def serve(self) -> None:
        """Set up, serve until the control socket is closed, tear down."""
        run = self._run
        header = {
            "role": "worker",
            "service": run.service,
            "replica": run.replica,
            "worker": 0,
            "runtime": run.runtime,
        }
        writer = open_log(run.log_dir, f"{run.service}.{run.replica}.w0", header, run.log)
        log, silent = EventLog(writer, run.source), EventLog(None, run.source)
        self._log_off = False
        network = Network(
            run.registry,
            log,
            run.replica,
            {},
            cache=run.registry_cache,
            connect_seconds=CONNECT_SECONDS,
            token=run.registry_token,
            databases=run.databases,
        )
        self._retries = network.retries = run.retries(0)
        if self._retries is not None:
            self._retries.report = self._report
        self._tools = AwaitedTools(
            service=run.service,
            log=log,
            silent=silent,
            network=network,
            patience=run.patience,
            production=run.production,
        )
        failure = await self._set_up()
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        self._control.setblocking(False)
        loop.add_reader(self._control.fileno(), self._accept, failure, over)
        while not over.done():
            await asyncio.wait([over], timeout=_FLUSH_SECONDS)
            if writer is not None:
                writer.flush_if_older(_FLUSH_SECONDS)
                if (writer.problem != "") is not self._log_off and self._slots:
                    self._log_off = not self._log_off
                    self._tell_log_off(self._log_off)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not failure:
            await self._tear_down()
        await self._tools.close()
        if writer is not None:
            writer.close()

    async def _set_up(self) -> str:
        """Create the service's instance; return why that is impossible, or ""."""
        try:
            self._instance = self._run.kind()
            self._instance.service_name = self._run.service
            await _awaited(self._instance.setup)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
            _log.exception("setup failed")
            return f"setup failed: {describe(error)}"
        return ""

    async def _tear_down(self) -> None:
        try:
            await _awaited(self._instance.teardown)
        except (Exception, SystemExit):  # noqa: BLE001 - the user's code may raise anything
            _log.exception("teardown failed")

    def _accept(self, failure: str, over: asyncio.Future[None]) -> None:
        """Take a worker's socket from the front."""
        slot = receive_slot(self._control)
        loop = asyncio.get_running_loop()
        if slot is None:
            loop.remove_reader(self._control.fileno())
            if not over.done():
                over.set_result(None)
            return
        _, line = slot
        line.setblocking(False)
        self._start(self._connect(line, failure))

    async def _connect(self, line: Line, failure: str) -> None:
        loop = asyncio.get_running_loop()
        # Nothing comes from where answers go.
        answers, _ = await loop.create_unix_connection(asyncio.Protocol, sock=line.answers)
        worker = _Slot(self._begin, answers, self._slots)
        worker.send(Ready(failure))
        if failure:
            # As a thread does that could not be set up: the front ends the process.
            answers.close()
            line.requests.close()
            return
        await loop.create_unix_connection(lambda: worker, sock=line.requests)

    def _report(self, retried: Retried) -> None:
        """Tell the front, through the worker whose request it is: its answer follows on the same line.

        Of tasks that serve no request, through one at work: the front may be letting go those that are not.
        """
        running = asyncio.current_task()
        if self._slots:
            max(self._slots, key=lambda slot: (slot.serves_in(running), slot.is_at_work())).send(retried)

    def _tell_log_off(self, off: bool) -> None:
        """Tell the front of the log, which is that of all workers: of one that is off once."""
        for slot in self._slots:
            slot.send(LogOff(off))
            if off:
                return

    def _begin(self, slot: _Slot, request: Request) -> None:
        slot.begun += 1
        slot.task = asyncio.get_running_loop().create_task(self._execute(slot, request))
        self._tasks.add(slot.task)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, slot: _Slot, request: Request) -> None:
        began, task = time.monotonic(), slot.task
        run, key, dispatch = self._run, request.key, self._run.dispatch
        names = dispatch.names.get(key, ())
        comm = AwaitedCommunication(request, f"{run.service}{key}", self._tools, slot, names)
        comm.runner = _Loop._execute.__code__
        execution = Execution(run.service, request, comm)
        try:
            with execution:
                values = dispatch.values(key, comm)
                await getattr(self._instance, dispatch.endpoints[key].method)(comm, **values)
            taken, following = self._tray.take()
            slot.done(failed=execution.failed, taken=taken, seconds=time.monotonic() - began)
            if following is not None:
                # A task of its own: other requests get their turn before.
                self._begin(slot, following)
        except BaseException:  # noqa: BLE001 - whatever it is
            # It ends a worker of any other kind, too. This one must not go on without having said it is free.
            _log.exception("a request has ended the process")
            if self._tools.log.writer is not None:
                self._tools.log.writer.close()
            os._exit(1)
        finally:
            # Here, for a callback of the task would cost every request another turn of the loop.
            self._tasks.discard(task)


class _Slot(Sender, asyncio.Protocol):
    """The loop's end of the line of one worker.

    Args:
        begin: Starts to serve a request.
        answers: Where to write.
        connected: The ones the front has; this one is in it for that long.

    Attributes:
        task: Serves the request in work, or has served the last one.
        begun: How many requests it has begun.
    """

    task: asyncio.Task[None]
    begun = 0

    def __init__(
        self,
        begin: Callable[[_Slot, Request], None],
        answers: asyncio.WriteTransport,
        connected: set[_Slot],
    ) -> None:
        super().__init__(self._write_to_front)
        self._begin = begin
        self._answers = answers
        self._connected = connected
        self._frames = FrameBuffer()
        self._decode = msgspec.msgpack.Decoder(Request).decode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: ARG002 - nothing is sent on it
        """The front has this worker."""
        self._connected.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended does not matter
        """The front has let this worker go."""
        self._connected.discard(self)

    def serves_in(self, task: asyncio.Task[Any] | None) -> bool:
        """Tell whether the request in work, or the last one, is served by a task."""
        return self.begun > 0 and self.task is task

    def is_at_work(self) -> bool:
        """Tell whether there is a request in work."""
        return self.begun > 0 and not self.task.done()

    def data_received(self, data: bytes) -> None:
        """Start what the front asks for, or end it."""
        for content in self._frames.feed(data):
            if len(content) > CANCEL:
                self._begin(self, self._decode(content))
            elif cancelled(content) == self.begun:
                # Not at once: a task that has not begun would end without a word to the front.
                self.task.get_loop().call_soon(self.task.cancel)

    def _write_to_front(self, data: bytes) -> None:
        """Send some frames; they are dropped if the front has gone."""
        if not self._answers.is_closing():
            self._answers.write(data)


async def _awaited(method: Callable[[], Any]) -> None:
    """Call a method, and wait for it if it is ``async def``."""
    result = method()
    if inspect.isawaitable(result):
        await result
