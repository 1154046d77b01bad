"""Execute the endpoints of an application, which write the event log of a worker.

The application is imported and served by the test client: routing, arguments, errors and answers are those of a
worker. Other services and databases answer what is laid out for them, or fail. The event log is a real one, read
back by what calibration reads it with. Time does not pass: a sleep ends when nothing else is left to do.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import logging
import random
import selectors
import sys
import time
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from analyzer.calibration.executions import Execution, collect
from mup import MS
from mup.databases.command import parse_command
from mup.errors import (
    BrokenCallError,
    CallTimeoutError,
    DatabaseDownError,
    DeploymentError,
    MupError,
    NoReplicaError,
    QueryError,
    QueryTimeoutError,
)
from mup.events.ids import new_id
from mup.events.reader import log_files, read_log
from mup.events.writer import EventWriter
from mup.future import AwaitedFuture, MupFuture, Response
from mup.routes import CallRoutes, pick
from mup.runtime.client.events import EventLog, Operation, Waiting
from mup.runtime.client.reply import call_error
from mup.runtime.client.request import Words, call_path
from mup.runtime.endpoint import execution
from mup.runtime.endpoint.refusals import no_endpoint, wrong_method
from mup.runtime.protocol import wire
from mup.service import EndpointInfo, endpoints_of
from mup.testing import TestClient
from mup.testing.client import _Kept
from mup.testing.stubs import StubCommunication

__all__ = ["Case", "Inputs", "Served", "execute", "loaded", "silent"]

RUNS = 48
"""Requests per endpoint, at least: the inputs in turn, with answers drawn anew."""

MOST_OPERATIONS = 150
"""Calls and queries after which a request is given up."""

FAILING = 0.2
"""Probability that an operation fails, in two requests of three; in the third none does."""

DELAYS = (0.0, 0.0, 0.001, 0.02, 0.02, 3.0)
"""Seconds until an answer is there; the last is more than any patience in the corpus."""


class GivenUpError(BaseException):
    """The request takes too many operations; nothing a program catches."""


@dataclass(frozen=True)
class Case:
    """An endpoint and what is sent to it.

    Attributes:
        idiom: What it is an example of.
        requests: By part of the request (``path``, ``query``, ``json``, ``form``, ``headers``, ``cookies``) what it is.
        completes: Whether any request can be answered.
    """

    idiom: str
    requests: Sequence[Mapping[str, Any]] = ({},)
    completes: bool = True


@dataclass(frozen=True)
class Inputs:
    """What is sent to an application, and what others answer.

    Attributes:
        cases: By endpoint, as the model calls it.
        answers: By destination (``Stock/level``, ``shop.orders``) what it may answer; a function gets the params.
    """

    cases: Mapping[str, Case]
    answers: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Served:
    """One endpoint as a worker serves it.

    Attributes:
        service: Its class.
        info: What the runtime knows of it.
        executions: What was done, by what the event log says.
    """

    service: type[MS]
    info: EndpointInfo
    executions: tuple[Execution, ...]


@contextmanager
def loaded(folder: Path) -> Iterator[list[ModuleType]]:
    """Import everything in a folder; afterwards it is forgotten."""
    names = sorted(
        ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for file in folder.rglob("*.py")
    )
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in {n.partition(".")[0] for n in names}:
                del sys.modules[name]


def services_of(modules: Sequence[ModuleType]) -> dict[str, type[MS]]:
    """Return the services of some modules, as a folder without ``mup.toml`` has them."""
    found: dict[str, type[MS]] = {}
    for module in modules:
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, MS)
                and value.__module__ == module.__name__
                and not value.__name__.startswith("_")
                and endpoints_of(value)
            ):
                found[value.__name__] = value
    return found


def execute(folder: Path, inputs: Inputs, logs: Path) -> dict[str, Served]:
    """Send the inputs to every endpoint of an application; return what each did, by its label.

    Args:
        folder: Of its source.
        inputs: What is sent.
        logs: An empty folder for the event log.
    """
    with _timeless(), silent(), loaded(folder) as modules:
        services = services_of(modules)
        routes = {name: _routes(kind) for name, kind in services.items()}
        writer = EventWriter(
            logs / "worker.mlog", {"role": "worker", "service": "corpus", "replica": 0, "worker": 0}
        )
        endpoints: dict[str, tuple[type[MS], EndpointInfo]] = {}
        for name, kind in services.items():
            known = endpoints_of(kind)
            endpoints |= {f"{name}{key}": (kind, info) for key, info in known.items()}
            answers = Answers(routes, inputs.answers)
            with Recording(kind, name, EventLog(writer, folder), answers) as client:
                for key, info in known.items():
                    case = inputs.cases.get(f"{name}{key}", Case("handler"))
                    for run in range(max(RUNS, 4 * len(case.requests))):
                        answers.begin(f"{name}{key} {run}", failing=FAILING if run % 3 else 0.0)
                        client.send(info, case.requests[run % len(case.requests)])
        writer.close()
    done: dict[str, list[Execution]] = {}
    for one in collect([read_log(files) for files in log_files(logs)]):
        done.setdefault(one.endpoint, []).append(one)
    return {
        label: Served(kind, info, tuple(done.get(label, ()))) for label, (kind, info) in endpoints.items()
    }


def _routes(kind: type[MS]) -> CallRoutes:
    return CallRoutes({e.name: e.address for e in endpoints_of(kind).values()})


@contextmanager
def _timeless() -> Iterator[None]:
    """Let sleeps of blocking code take no time."""
    sleep = time.sleep
    time.sleep = lambda _: None
    try:
        yield
    finally:
        time.sleep = sleep


@contextmanager
def silent() -> Iterator[None]:
    """Let nothing be printed: by services, of failures that are meant, of coroutines that they leave behind."""
    logging.disable(logging.CRITICAL)
    unraisable = sys.unraisablehook

    def others(problem: sys.UnraisableHookArgs) -> None:
        # The warning of a coroutine that is collected while a namedtuple is made cannot be imported there.
        if not (inspect.iscoroutine(problem.object) and isinstance(problem.exc_value, KeyError)):
            unraisable(problem)

    sys.unraisablehook = others
    try:
        with redirect_stdout(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
            gc.collect()
    finally:
        sys.unraisablehook = unraisable
        logging.disable(logging.NOTSET)


class Answers:
    """Draws what others answer.

    Args:
        routes: Of the services of the application.
        laid_out: See `Inputs`.
    """

    def __init__(self, routes: Mapping[str, CallRoutes], laid_out: Mapping[str, Sequence[Any]]) -> None:
        self._routes = routes
        self._laid_out = laid_out
        self.begin("", failing=0.0)

    def begin(self, seed: str, *, failing: float) -> None:
        """Begin a request."""
        self._draw = random.Random(seed)
        self._failing = failing
        self._operations = 0

    def name(self, service: str, words: Words) -> str:
        """Return what the registry would call the endpoint a call means."""
        routes = self._routes.get(service)
        path = call_path(words.path)
        if routes is None:
            return f"{service}{path}"
        route = routes.find(path.partition("?")[0], words.method)
        words.message(route)  # what cannot be sent fails here, too
        return f"{service}{route.key}"

    def count(self) -> None:
        """Note an operation.

        Raises:
            GivenUpError: There were too many.
        """
        self._operations += 1
        if self._operations > MOST_OPERATIONS:
            raise GivenUpError

    def refusal(self, errors: Sequence[type[MupError]]) -> MupError | None:
        """Return why an operation cannot even begin; None if it can."""
        if self._draw.random() < self._failing / 2:
            return self._draw.choice(errors)("not now")
        return None

    def delay(self) -> float:
        """Return after how many seconds an answer is there."""
        return self._draw.choice(DELAYS)

    def of_call(self, name: str, params: Any) -> Response | MupError:
        """Return how a call ends."""
        if self._draw.random() < self._failing:
            error = self._draw.choice((CallTimeoutError, NoReplicaError, BrokenCallError, None, None, None))
            if error is not None:
                return error("out of order")
            return Response(self._draw.choice((400, 404, 409, 500, 503)), {}, {"error": "not today"})
        return Response(200, {}, self._drawn(name, ({},), params))

    def of_query(self, name: str, text: Any) -> Response | MupError:
        """Return how a query ends."""
        if self._draw.random() < self._failing:
            return self._draw.choice((QueryError, QueryTimeoutError, DatabaseDownError))("out of order")
        return Response(200, {}, self._drawn(name, ([], [{"_id": "1"}], [{"_id": "1"}, {"_id": "2"}]), text))

    def _drawn(self, name: str, default: Sequence[Any], said: Any) -> Any:
        answer = self._draw.choice(self._laid_out.get(name, default))
        return answer(said) if callable(answer) else answer


class Recorded(AwaitedFuture):
    """A call or query under way, whose outcome is drawn already."""

    def __init__(self, operation: Operation, answers: Answers, outcome: Response | MupError) -> None:
        self._operation = operation
        self._answers = answers
        self._outcome = outcome
        self._arrived = False

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:
        """Return the outcome; with a ``timeout`` it may come too late."""
        operation = self._operation
        with Waiting(operation, operation.events.site(sys._getframe(1))):
            if timeout is not None and not self._arrived and self._answers.delay() > timeout:
                raise CallTimeoutError(f"{operation.name}: not within {timeout} s")
            return self._result(check=check)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the outcome; others go on meanwhile."""
        return self._wait(self._operation.events.waiting_site(1)).__await__()

    async def _wait(self, site: int) -> Any:
        with Waiting(self._operation, site):
            if not self._arrived:
                await asyncio.sleep(self._answers.delay())
            return self._result(check=True)

    def _result(self, *, check: bool) -> Any:
        if not self._arrived:
            self._arrived = True
            self._operation.finish()
        outcome = self._outcome
        if isinstance(outcome, MupError):
            raise outcome
        if check and not outcome.ok:
            raise call_error(self._operation.name, outcome.status, outcome.body)
        return outcome.body if check else outcome


class RecordedCommunication(StubCommunication):
    """A request whose operations are logged as in a worker."""

    answers: Answers

    def query(self, db_name: str, qry_name: str, coll_name: str, qry_txt: Any) -> MupFuture:
        """Log a query, and return its future."""
        name = f"{db_name}.{qry_name}"
        operation = self._operation(name, sys._getframe(1))
        self.answers.count()
        with operation.beginning():
            parse_command(qry_txt)
            operation.contact()
        return Recorded(operation, self.answers, self.answers.of_query(name, qry_txt))

    def _begin(self, operation: Operation, service: str, words: Words, idempotent: bool | None) -> MupFuture:
        operation.rename(self.answers.name(service, words))
        self.answers.count()
        with operation.beginning():
            refusal = self.answers.refusal((NoReplicaError, CallTimeoutError))
            if refusal is not None:
                raise refusal
            operation.contact()
        return Recorded(operation, self.answers, self.answers.of_call(operation.name, words.params))


class Recording(TestClient):
    """The test client with an event log.

    Args:
        service: What it serves.
        name: Of the service.
        log: Where events go.
        answers: What others say.
    """

    def __init__(self, service: type[MS], name: str, log: EventLog, answers: Answers) -> None:
        try:
            super().__init__(service, name=name)
        except DeploymentError as error:
            raise AssertionError(f"{name} cannot be served: {error}") from error
        self._tools.log = self._tools.silent = log
        self._answers = answers
        self._runner.close()
        self._runner = asyncio.Runner(loop_factory=_TimelessLoop)

    def send(self, info: EndpointInfo, request: Mapping[str, Any]) -> None:
        """Send a request to an endpoint."""
        values = request.get("path", {})
        path = "/".join(
            str(values.get(part[1:-1], 1)) if part.startswith("{") else part for part in info.path.split("/")
        )
        method = info.http_method or request.get("method", "POST")
        rest = {key: value for key, value in request.items() if key not in {"path", "method", "query"}}
        with suppress(GivenUpError):
            self.request(method, path, request.get("query"), **rest)

    def _serve(
        self, method: str, path: str, query: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> wire.Answer:
        # As in the test client, but for the event log.
        run = self._run
        found = run.dispatch.routes.find(path)
        if found is None:
            return no_endpoint(run.service, run.dispatch, path)
        methods, values = found
        route = pick(methods, method)
        if route is None:
            return wrong_method(run.service, path, methods)
        key, names = route.key, run.dispatch.names.get(route.key, ())
        request = wire.Request(new_id(), new_id(), key, query, headers, body, None, True, method, values)
        kept = _Kept()
        comm = RecordedCommunication(request, f"{run.service}{key}", self._tools, kept, names)
        comm.answers = self._answers
        with execution.Execution(run.service, request, comm):
            endpoint = getattr(self._instance, run.dispatch.endpoints[key].method)
            self._finish(partial(endpoint, comm, **run.dispatch.values(key, comm)))
        assert kept.answer is not None
        return kept.answer


class _TimelessSelector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Instead of waiting for a time, lets it have come."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout is None or timeout > 0 else timeout)
        if ready or timeout is None or timeout <= 0:
            # Without a timer only another thread can bring something.
            return ready if ready or timeout is not None else super().select(1.0)
        self.ahead += timeout
        return ready


class _TimelessLoop(asyncio.SelectorEventLoop):
    """An event loop on which sleeping takes no time."""

    def __init__(self) -> None:
        self._timeless = _TimelessSelector()
        super().__init__(self._timeless)

    def time(self) -> float:
        return super().time() + self._timeless.ahead
