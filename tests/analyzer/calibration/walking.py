"""Walk through the code of an application in virtual time, and note what a log of it would say.

The endpoints' own code runs; only ``Communication`` is a stand-in that executes the callee at once, on a
clock of its own. Times are virtual milliseconds, so nothing depends on the machine.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType
from typing import Any

from analyzer.calibration.executions import Execution, Moment, Operation, SiteKey, Step
from analyzer.static import Application, PathPlan, analyse, translate_with_plan
from mup.errors import CallError, MupError
from mup.events.ids import child_id
from mup.events.sites import Site, SiteTable
from mup.lqn import Model, entry_label

SEND, NETWORK, QUERY = 0.1, 0.2, 5.0

HEAD = "from mup import EP, MS\nfrom mup.errors import CallError, MupError\n"
BACK = """
class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.params["work"](5)
        comm.respond(1)

    @EP("/c/")
    def c(self, comm):
        comm.respond(2)
"""


def endpoint(body: str, *, others: str = BACK) -> str:
    """Return a module whose service A has one endpoint with the given body."""
    return (
        HEAD
        + 'class A(MS):\n    @EP("/a/")\n    def a(self, comm):\n'
        + indent(dedent(body).strip(), " " * 8)
        + "\n"
        + others
    )


class _Sites:
    """Stands in for a log: remembers the sites it is given."""

    def __init__(self) -> None:
        self.known: list[SiteKey] = []

    def site(self, site: Site) -> int:
        self.known.append((site.file, site.function, site.ordinal))
        return len(self.known)


@dataclass
class World:
    """An application whose requests are walked through.

    Attributes:
        fail: Probability that a call fails at the caller.
        waits: Note ``get`` as a step, as logs with a CPU clock do.
    """

    root: Path
    application: Application
    module: ModuleType
    seed: int = 1
    fail: float = 0.0
    waits: bool = True
    executions: list[Execution] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.sites = _Sites()
        self.table = SiteTable(self.sites, self.root)  # type: ignore[arg-type]
        self.requests = 0

    def translated(self, client: str | None = None) -> tuple[Model, dict[str, list[PathPlan]]]:
        """Return the uncalibrated model and the plans by label."""
        model, plans = translate_with_plan(self.application, name="x", client=client)
        return model, {entry_label(*key): found for key, found in plans.items()}

    def of(self, label: str) -> list[Execution]:
        """Return the good executions of an entry."""
        return [e for e in self.executions if e.endpoint == label and not e.failed]

    def request(self, label: str, **params: Any) -> Execution:
        """Send a request from outside."""
        self.requests += 1
        return self.execute(child_id(self.requests, 0), label, params, 100.0 * self.requests)

    def execute(self, request: int, label: str, params: Mapping[str, Any], now: float) -> Execution:
        """Walk through one execution that arrives at a time."""
        found = self.application.endpoint(label)
        clock = Clock(now)
        cpu = 0 if self.waits else -1
        execution = Execution(request, label, "worker", found.service, 0, Moment(clock.ns, cpu))
        self.executions.append(execution)
        comm = Communication(self, execution, clock, params)
        name = found.function.rsplit(".", 1)[-1]
        try:
            getattr(getattr(self.module, found.service)(), name)(comm)
        except MupError:
            execution.failed = True
        execution.done = execution.done or clock.moment
        execution.end = execution.end or execution.done
        return execution


@dataclass
class Clock:
    """Time of one flow, in milliseconds."""

    now: float

    @property
    def ns(self) -> int:
        return round(self.now * 1e6)

    @property
    def moment(self) -> Moment:
        return Moment(self.ns, -1)

    def work(self, milliseconds: float) -> None:
        self.now += milliseconds


class Communication:
    """What an endpoint sees."""

    def __init__(self, world: World, execution: Execution, clock: Clock, params: Mapping[str, Any]) -> None:
        coin = lambda odds=0.5: world.random.random() < odds  # noqa: E731
        self.params = {**params, "work": clock.work, "coin": coin}
        self.world = world
        self.execution = execution
        self.clock = clock

    def _site(self) -> SiteKey:
        number = self.world.table.of_frame(sys._getframe(2), "call")
        return self.world.sites.known[number - 1]

    def call(self, dest_ms: str, path: str, params: Mapping[str, Any] | None = None) -> Reply:
        return self._start("call", self._site(), f"{dest_ms}{path}", params or {})

    def query(self, db_name: str, qry_name: str, coll_name: str, qry_txt: object) -> Reply:
        return self._start("query", self._site(), f"{db_name}.{qry_name}", {})

    def respond(self, body: object = None, status: int = 200) -> None:
        now = self.clock.moment
        self.execution.end = now
        self.execution.steps.append(Step("respond", self._site(), 0, now, now))

    def _start(self, op: str, site: SiteKey, dest: str, params: Mapping[str, Any]) -> Reply:
        execution, start = self.execution, self.clock.moment
        seq = len(execution.operations) + 1
        operation = execution.operations[seq] = Operation(seq, dest, start)
        step = Step(op, site, seq, start, start)
        execution.steps.append(step)
        if op == "query":
            operation.contact = start
            operation.finish = Moment(start.time + round(QUERY * 1e6), -1)
            return Reply(self, seq, fails=False)
        self.clock.work(SEND)
        step.resume = operation.contact = self.clock.moment
        called = self.world.execute(child_id(execution.request, seq), dest, params, self.clock.now)
        assert called.end is not None
        operation.finish = Moment(called.end.time + round(NETWORK * 1e6), -1)
        return Reply(self, seq, fails=self.world.random.random() < self.world.fail)


@dataclass
class Reply:
    """A future."""

    comm: Communication
    seq: int
    fails: bool
    done: bool = False

    def get(self) -> int:
        clock, execution = self.comm.clock, self.comm.execution
        finish = execution.operations[self.seq].finish
        assert finish is not None
        number = self.comm.world.table.of_frame(sys._getframe(1), "call")
        start = clock.moment
        clock.now = max(clock.now, finish.time * 1e-6)
        if not self.done and self.comm.world.waits:
            site = self.comm.world.sites.known[number - 1]
            execution.steps.append(Step("get", site, self.seq, start, clock.moment))
        self.done = True
        if self.fails:
            raise CallError("no", status=500)
        return self.seq


def world(folder: Path, source: str, **settings: Any) -> World:
    """Write a module, analyse it (it must be clean) and load it."""
    file = folder / "app.py"
    file.write_text(source, encoding="utf-8")
    application = analyse(folder)
    assert not application.errors, application.errors
    spec = importlib.util.spec_from_file_location("walked_app", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return World(folder, application, module, **settings)
