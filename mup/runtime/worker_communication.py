"""How does an endpoint in a worker process reach others? It calls them, and queries databases."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from mup.events.record import FAILED, Event
from mup.future import MupFuture
from mup.runtime.client.blocking import CallFuture, QueryFuture
from mup.runtime.client.events import Operation
from mup.runtime.client.exchange import Call
from mup.runtime.client.request import call_headers, call_path, call_seconds, worded
from mup.runtime.served_request import ServedRequest

__all__ = ["WorkerCommunication"]


class WorkerCommunication(ServedRequest):
    """One request in a worker, with what it may do with others; arguments as for `ServedRequest`."""

    # What most requests leave as it is costs nothing per request here.
    _seq = 0
    _calls: list[CallFuture] | None = None

    def call(
        self,
        dest_ms: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        method: str = "",
        idempotent: bool | None = None,
    ) -> MupFuture:
        """Call an endpoint of a service; see :meth:`Communication.call`."""
        tools = self._tools
        complete, seconds = self._complete(headers), call_seconds(timeout, tools.patience)
        plain = call_path(path)
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who calls
        self._seq += 1
        route = tools.resolver.route(dest_ms, plain, method)
        operation = self._operation(self._seq, site, f"{dest_ms}{route.key}", seconds)
        operation.log(Event.COMM_START)
        try:
            message = worded(route, path, params, complete, method, further=self._further)
        except BaseException:
            operation.finish(FAILED)
            raise
        call = Call(operation, dest_ms, message, tools.resolver, retries=tools.retries, idempotent=idempotent)
        future = CallFuture(call, tools.resolver, tools.pool)
        if self._calls is None:
            self._calls = []
        self._calls.append(future)
        return future

    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Query a database; see :meth:`Communication.query`."""
        tools = self._tools
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who calls
        self._seq += 1
        operation = self._operation(self._seq, site, f"{db_name}.{qry_name}", tools.patience)
        operation.log(Event.COMM_START, 0)

        def log(event: Event, failed: bool) -> None:
            operation.log(event, FAILED if failed else 0)

        try:
            handle = tools.query_runner().submit(db_name, coll_name, qry_txt, log)
        except BaseException:
            operation.finish(FAILED)
            raise
        return QueryFuture(operation, handle)

    def close(self) -> None:
        """The endpoint has returned: nobody will ask for what has not been asked for."""
        for future in self._calls or ():
            future.abandon()

    def _operation(
        self, seq: int, site: int, name: str, seconds: float, *, awaited: bool = False
    ) -> Operation:
        request = self._request
        deadline = time.monotonic() + seconds
        if request.deadline is not None:
            deadline = min(deadline, request.deadline)
        return Operation(self._log, request.request, request.trace, seq, site, name, deadline, awaited)

    @property
    def _further(self) -> str:
        """Lines that calls have if this request is not logged."""
        return "" if self._request.sampled else "X-Mup-Sampled: 0\r\n"

    def _complete(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        """Return the headers of a call, with what it passes on of a trace that came with the request.

        Raises:
            UsageError: One cannot be sent.
        """
        if not self._request.traceparent:
            return call_headers(headers)
        return call_headers({**self._trace_headers(), **(headers or {})})

    def _trace_headers(self) -> dict[str, str]:
        state = self.headers.get("tracestate")
        return {"traceparent": self.traceparent, **({"tracestate": state} if state else {})}
