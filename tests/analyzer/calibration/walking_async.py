"""Run coroutines of endpoints in virtual time, and note what a log of them would say.

The endpoints' own code and the real asyncio run; the clock of the loop jumps to the next thing that happens.
Replies come after random times, in any order. Times are virtual milliseconds.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType
from typing import Any

from walking import BACK

from analyzer.calibration.executions import Execution, Moment, Operation, SiteKey, Step
from analyzer.static import Application, PathPlan, analyse, translate_with_plan
from mup.errors import CallError, QueryError
from mup.events.record import Event
from mup.events.sites import Site
from mup.events.writer import EventWriter
from mup.lqn import Model
from mup.runtime.client.events import EventLog

HEAD = "import asyncio\nfrom mup import EP, MS\nfrom mup.errors import CallError, MupError\n"


def async_endpoint(body: str, *, helpers: str = "") -> str:
    """Return a module whose service A has one asynchronous endpoint with the given body."""
    lines = indent(dedent(body).strip(), " " * 8)
    service = 'class A(MS):\n    runtime = "async"\n\n    @EP("/a/")\n    async def a(self, comm):'
    return f"{HEAD}{dedent(helpers)}{service}\n{lines}\n{BACK}"


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop on which waiting takes no time: its clock jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._wait, self._selector.select = self._selector.select, self._jump  # type: ignore[attr-defined]

    def _jump(self, timeout: float | None) -> Any:
        if timeout is None:
            raise RuntimeError("all tasks wait for something that will never happen")
        self.now += timeout
        return self._wait(0)

    def time(self) -> float:
        return self.now


class _Sites:
    """Stands in for a log: remembers the sites it is given."""

    def __init__(self) -> None:
        self.known: list[SiteKey] = []

    def write(self, *_: object) -> None:
        """Nothing is logged here."""

    def name(self, _: str) -> int:
        return 0

    def site(self, site: Site) -> int:
        self.known.append((site.file, site.function, site.ordinal))
        return len(self.known)


@dataclass
class AsyncWorld:
    """An application whose endpoint ``A/a/`` is run.

    Attributes:
        fail: Probability that a call fails at the caller.
        worked: Milliseconds of processor time so far.
        events: What a log of it says, in order: event, request, moment, operation, site, name.
    """

    root: Path
    application: Application
    module: ModuleType
    seed: int = 1
    fail: float = 0.0
    executions: list[Execution] = field(default_factory=list)
    worked: float = 0.0
    events: list[tuple[Event, int, Moment, int, SiteKey | None, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.sites = _Sites()
        self.log = EventLog(self.sites, self.root)  # type: ignore[arg-type]
        self.loop = JumpingLoop()
        # Errors of tasks that are not waited for are expected.
        self.loop.set_exception_handler(lambda _loop, _context: None)

    def translated(self) -> tuple[Model, list[PathPlan]]:
        """Return the uncalibrated model and the plans of ``A/a/``."""
        model, plans = translate_with_plan(self.application, name="x")
        return model, plans["A", "/a/"]

    def good(self) -> list[Execution]:
        """Return the executions that did not fail."""
        return [e for e in self.executions if not e.failed]

    def moment(self) -> Moment:
        return Moment(round(self.loop.now * 1e6), round(self.worked * 1e6))

    def note(
        self, event: Event, execution: Execution, seq: int = 0, site: SiteKey | None = None, name: str = ""
    ) -> None:
        self.events.append((event, execution.request, self.moment(), seq, site, name))

    def write_log(self, folder: Path) -> None:
        """Write the log of all executions, which is that of a run of one worker."""
        folder.mkdir()
        header = {"role": "worker", "service": "A", "replica": 0, "worker": 0, "pid": 1}
        writer = EventWriter(folder / "A.0.w0.mlog", header)
        for event, request, moment, seq, site, name in self.events:
            known = 0 if site is None else writer.site(Site(*site, 1, 1))
            label = writer.name(name) if name else 0
            writer.write(event, request, 1, seq, known, label, 0, moment.time, moment.cpu)
        writer.close()

    def request(self, **params: Any) -> Execution:
        """Run the endpoint once."""
        self.loop.now += 1000.0
        execution = Execution(len(self.executions) + 1, "A/a/", "worker", "A", 0, self.moment())
        self.executions.append(execution)
        self.note(Event.BEGIN, execution, name="A/a/")
        comm = AsyncCommunication(self, execution, params)
        self.loop.run_until_complete(self._run(comm))
        return execution

    async def _run(self, comm: AsyncCommunication) -> None:
        try:
            await self.module.A().a(comm)
        except BaseException:  # noqa: BLE001  (whatever the analysed code raises)
            comm.execution.failed = True
        comm.execution.done = comm.execution.end = self.moment()
        if comm.execution.failed:
            self.note(Event.ERROR, comm.execution)
        self.note(Event.DONE, comm.execution)
        comm.closed = True
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def close(self) -> None:
        self.loop.close()


@dataclass
class AsyncCommunication:
    """The Communication of one execution; it does nothing once that is over."""

    world: AsyncWorld
    execution: Execution
    params: Mapping[str, Any]
    closed: bool = False

    def __post_init__(self) -> None:
        world = self.world
        coin = world.random.random

        def work(milliseconds: float) -> None:
            world.loop.now += milliseconds
            world.worked += milliseconds

        self.params = {**self.params, "work": work, "coin": lambda p=0.5: coin() < p}

    def step(self, op: str, site: int, seq: int) -> Step:
        self.world.loop.now += 1e-6  # no two steps at one moment
        now = self.world.moment()
        step = Step(op, self.world.sites.known[site - 1] if site else None, seq, now, now)
        if not self.closed:
            self.execution.steps.append(step)
            event = {"get": Event.WAIT_START, "respond": Event.END}.get(op, Event.COMM_START)
            name = self.execution.operations[seq].dest if op in ("call", "query") else ""
            self.world.note(event, self.execution, seq, step.site, name)
            if op in ("call", "query"):
                self.world.note(Event.CONTACT_DEST, self.execution, seq, None, name)
        return step

    def call(self, dest_ms: str, path: str, params: object = None) -> AsyncFuture:
        return self._start("call", f"{dest_ms}{path}")

    def query(self, db_name: str, qry_name: str, coll_name: str, qry_txt: object) -> AsyncFuture:
        return self._start("query", f"{db_name}.{qry_name}")

    def respond(self, body: object = None, status: int = 200) -> None:
        self.step("respond", self.world.log.site(sys._getframe(1)), 0)

    def _start(self, op: str, dest: str) -> AsyncFuture:
        seq = len(self.execution.operations) + 1
        self.execution.operations[seq] = Operation(seq, dest, self.world.moment())
        self.step(op, self.world.log.site(sys._getframe(2)), seq)
        return AsyncFuture(self, seq)


class AsyncFuture:
    """A reply that comes after a random time."""

    def __init__(self, comm: AsyncCommunication, seq: int) -> None:
        self._comm = comm
        self._seq = seq
        world = comm.world
        self._failed = world.random.random() < world.fail
        self._done = False
        self._waiters: list[asyncio.Future[None]] = []
        world.loop.call_later(world.random.choice((0, 1, 3, 5, 10)), self._finish)

    def _finish(self) -> None:
        self._done = True
        comm = self._comm
        operation = comm.execution.operations[self._seq]
        # The operation uses no processor time of this thread.
        operation.finish = Moment(comm.world.moment().time, operation.start.cpu)
        if not comm.closed:
            comm.world.events.append(
                (Event.COMM_FINISH, comm.execution.request, operation.finish, self._seq, None, "")
            )
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._wait(self._comm.world.log.waiting_site(1)).__await__()

    async def _wait(self, site: int) -> dict[str, str]:
        comm = self._comm
        operation = comm.execution.operations[self._seq]
        step = None if operation.awaited else comm.step("get", site, self._seq)
        operation.awaited = True
        try:
            if not self._done:
                waiter = comm.world.loop.create_future()
                self._waiters.append(waiter)
                await waiter
        finally:
            if step is not None:
                comm.world.loop.now += 1e-6
                step.resume = comm.world.moment()
                if not comm.closed:
                    comm.world.note(Event.WAIT_END, comm.execution, self._seq)
        if self._failed:
            raise QueryError("no") if operation.is_query else CallError("no", status=500)
        return {"text": "x"}


def async_world(folder: Path, source: str, **options: Any) -> AsyncWorld:
    """Write, analyse and load a module."""
    file = folder / "app.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("walked_app", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return AsyncWorld(folder, analyse(folder), module, **options)
