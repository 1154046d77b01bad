"""Stubs of other services and databases for endpoints under test."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mup.errors import MupError, UsageError
from mup.future import AwaitedFuture, MupFuture, Response
from mup.routes import CallRoutes
from mup.runtime.client.events import Operation
from mup.runtime.client.reply import call_error, decode_body
from mup.runtime.client.request import Words, call_path
from mup.runtime.endpoint.response import encoded
from mup.runtime.worker.worker_communication import WorkerCommunication

__all__ = ["StubCall", "StubCommunication", "Stubs"]

_NO_ROUTES = CallRoutes({})


@dataclass(frozen=True, slots=True, kw_only=True)
class StubCall:
    """A call an endpoint under test has made.

    Attributes:
        dest, path, method, headers: As the endpoint gave them.
        params: As they would arrive: what JSON makes of them.
    """

    dest: str
    path: str
    params: Any
    method: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Stub:
    answer: Any
    status: int
    headers: Mapping[str, str]


class Stubs:
    """The answers laid out, and what was asked for.

    Args:
        awaited: Whether they are for endpoints on an event loop, which must not block.

    Attributes:
        calls: What was called, in order.
    """

    def __init__(self, *, awaited: bool = False) -> None:
        self.calls: list[StubCall] = []
        self._future = _AwaitedStubFuture if awaited else _StubFuture
        self._calls: dict[tuple[str, str, str], _Stub] = {}
        self._queries: dict[tuple[str, str], Any] = {}

    def add_call(
        self, dest: str, path: str, method: str, answer: Any, status: int, headers: Mapping[str, str]
    ) -> None:
        """Lay out what a call gets.

        Raises:
            UsageError: No call can be written like this.
        """
        _NO_ROUTES.find(path, method)
        self._calls[dest, path, method] = _Stub(answer, status, headers)

    def add_query(self, database: str, name: str, answer: Any) -> None:
        """Lay out what a query gets."""
        self._queries[database, name] = answer

    def call(self, call: StubCall) -> _StubFuture:
        """Note a call and return its future.

        Raises:
            UsageError: Nothing is laid out for it.
        """
        self.calls.append(call)
        plain = call.path.partition("?")[0]
        stub = self._calls.get((call.dest, plain, call.method)) or self._calls.get((call.dest, plain, ""))
        if stub is None:
            raise UsageError(
                f"the test has no stub for the call of {call.dest}{plain}",
                hint=f"client.stub({call.dest!r}, {plain!r}, ...)",
            )
        answer = stub.answer
        name = f"{call.dest}{plain}"
        if callable(answer):
            answer = answer(call.params)
        if isinstance(answer, MupError):
            return self._future(name, answer)
        # By way of the bytes a service would send: what JSON cannot express must not pass a test.
        sent = encoded(answer, stub.status, stub.headers)
        names = {key.lower(): value for key, value in sent.headers.items()}
        body = decode_body(sent.body, names.get("content-type", ""))
        return self._future(name, Response(sent.status, names, body))

    def query(self, database: str, name: str, collection: str, text: Any) -> _StubFuture:
        """Return the future of a query.

        Raises:
            UsageError: Nothing is laid out for it.
        """
        if (database, name) not in self._queries:
            raise UsageError(
                f"the test has no stub for query {database}.{name}",
                hint=f"client.stub_query({database!r}, {name!r}, [...])",
            )
        answer = self._queries[database, name]
        if callable(answer):
            answer = answer(collection, text)
        return self._future(
            f"{database}.{name}", answer if isinstance(answer, MupError) else Response(200, {}, answer)
        )


class _StubFuture(MupFuture):
    def __init__(self, name: str, outcome: Response | MupError) -> None:
        self._name = name
        self._outcome = outcome

    def __await__(self) -> Generator[Any, None, Any]:
        """Return what is laid out, to an ``async def`` endpoint."""
        yield from ()  # nothing to wait for
        return self.get()

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002 - it is there
        """Return what is laid out; see :meth:`MupFuture.get`."""
        outcome = self._outcome
        if isinstance(outcome, MupError):
            raise outcome
        if check and not outcome.ok:
            raise call_error(self._name, outcome.status, outcome.body)
        return outcome.body if check else outcome


class _AwaitedStubFuture(_StubFuture, AwaitedFuture):
    """What an ``async def`` endpoint gets: in production, too, ``get`` refuses before it was awaited."""

    def __init__(self, name: str, outcome: Response | MupError) -> None:
        super().__init__(name, outcome)
        self._waited = False

    def __await__(self) -> Generator[Any, None, Any]:
        """Return what is laid out."""
        self._waited = True
        return super().__await__()

    async def _wait(self, site: int) -> Any:  # noqa: ARG002 - nothing is logged
        return await self

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:
        """Return what has been awaited.

        Raises:
            UsageError: It has not been: blocking would stop all other requests.
        """
        if not self._waited:
            raise UsageError(f"an event loop must not block on {self._name}", hint="write 'await' first")
        return super().get(timeout, check=check)


class StubCommunication(WorkerCommunication):
    """A request served in the process of the test; others are stubs."""

    stubs: Stubs

    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Ask a stub; see :meth:`Communication.query`."""
        return self.stubs.query(db_name, qry_name, coll_name, qry_txt)

    def _begin(
        self,
        operation: Operation,  # noqa: ARG002 - nothing is logged
        service: str,
        words: Words,
        idempotent: bool | None,  # noqa: ARG002 - stubs answer at the first attempt
    ) -> MupFuture:
        """Ask a stub."""
        # What fails in production fails in a test.
        words.message(_NO_ROUTES.find(call_path(words.path), words.method))
        params = words.params
        try:
            arrives = msgspec.json.decode(msgspec.json.encode({} if params is None else params))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise UsageError(f"the params cannot be sent as JSON: {error}") from error
        return self.stubs.call(
            StubCall(
                dest=service, path=words.path, params=arrives, method=words.method, headers=words.headers
            )
        )
