"""``Communication`` of an endpoint in a worker process: calls, and database queries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from mup.events.record import FAILED, Event
from mup.future import MupFuture
from mup.runtime.client.blocking import CallFuture, QueryFuture
from mup.runtime.client.events import Operation
from mup.runtime.client.exchange import Call
from mup.runtime.client.request import Words
from mup.runtime.endpoint.served_request import ServedRequest
from mup.runtime.endpoint.worker_tools import WorkerTools

__all__ = ["WorkerCommunication"]


class WorkerCommunication(ServedRequest):
    """One request in a worker, with what it may do with others; arguments as for `ServedRequest`."""

    _tools: WorkerTools
    # What most requests leave as it is costs nothing per request here.
    _calls: list[CallFuture] | None = None

    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Query a database; see :meth:`Communication.query`."""
        operation = self._operation(f"{db_name}.{qry_name}", sys._getframe(1))  # noqa: SLF001

        def log(event: Event, failed: bool) -> None:
            operation.log(event, FAILED if failed else 0)

        with operation.beginning():
            handle = self._tools.query_runner().submit(db_name, coll_name, qry_txt, log)
        return QueryFuture(operation, handle)

    def close(self) -> None:
        """Give up the calls whose result was not asked for: the endpoint has returned."""
        for future in self._calls or ():
            future.abandon()

    def _begin(self, operation: Operation, service: str, words: Words, idempotent: bool | None) -> MupFuture:
        resolver = self._tools.resolver
        call = Call(operation, service, None, resolver, resolver.retries, idempotent, words)
        future = CallFuture(call, resolver, self._tools.pool)
        if self._calls is None:
            self._calls = []
        self._calls.append(future)
        return future
