"""What may the scenario of a client do? It stands outside of the system: it calls, and no more."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from mup.communication import DEFAULT_TIMEOUT, Communication, Cookie
from mup.errors import UsageError
from mup.future import MupFuture
from mup.runtime.client.awaited import AwaitedCall
from mup.runtime.client.events import EventLog, Operation
from mup.runtime.client.network import Network
from mup.runtime.client.request import call_headers, call_path, call_seconds
from mup.runtime.kept_cookies import KeptCookies

__all__ = ["ClientCommunication"]


class ClientCommunication(Communication):
    """The calls of one client; one object per client, one execution (cycle) at a time.

    Args:
        network: Shared by all clients.
        patience: Timeout of calls that name none, in seconds.

    Attributes:
        request, trace: Ids of the current execution.
        calls: Calls begun in the current execution.
        sampled: Whether the current execution is logged, with everything it causes.
    """

    def __init__(self, network: Network, patience: float = DEFAULT_TIMEOUT) -> None:
        self.network = network
        self._patience = patience
        self.request = 0
        self.trace = 0
        self.calls = 0
        self.sampled = True
        self._kept_cookies = KeptCookies()

    @property
    def events(self) -> EventLog:
        """Log of the current execution."""
        return self.network.log if self.sampled else self.network.silent

    def begin(self, request: int, trace: int, *, sampled: bool = True) -> None:
        """Start a new execution."""
        self.sampled = sampled
        self.request = request
        self.trace = trace
        self.calls = 0

    def call(
        self,
        dest_ms: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        method: str = "",
        idempotent: bool | None = None,  # noqa: ARG002 - clients measure: they repeat nothing
    ) -> AwaitedCall:
        """Call an endpoint and return at once; ``await`` what it returns. See `Communication.call`.

        Cookies the service has set for this client go along, unless ``headers`` has a ``Cookie``.
        """
        self.calls += 1
        complete = call_headers(headers, external=self.network.is_external(dest_ms))
        kept = self._kept_cookies.header(dest_ms)
        if kept is not None and not any(name.lower() == "cookie" for name in complete):
            complete["Cookie"] = kept
        seconds = call_seconds(timeout, self._patience)
        return AwaitedCall(
            self.network,
            self._operation(f"{dest_ms}{call_path(path)}", seconds, sys._getframe(1)),  # noqa: SLF001
            dest_ms,
            path,
            params,
            complete,
            method,
            sampled=self.sampled,
            cookies=self._kept_cookies,
        )

    def send(
        self,
        dest: str,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float | None = None,
    ) -> AwaitedCall:
        """Send any HTTP request to a service outside of mup; ``await`` gives the body undecoded."""
        self.calls += 1
        complete, seconds = call_headers(headers, external=True), call_seconds(timeout, self._patience)
        operation = self._operation(f"{dest}{call_path(path)}", seconds, sys._getframe(1))  # noqa: SLF001
        return AwaitedCall(
            self.network, operation, dest, path, body, complete, method, sampled=self.sampled, decoded=False
        )

    def _operation(self, name: str, seconds: float, frame: FrameType) -> Operation:
        events, deadline = self.events, time.monotonic() + seconds
        site = events.site(frame)
        return Operation(events, self.request, self.trace, self.calls, site, name, deadline, awaited=True)

    def query(
        self,
        db_name: str,
        qry_name: str,  # noqa: ARG002
        coll_name: str,  # noqa: ARG002
        qry_txt: str | bytes | Mapping[str, Any],  # noqa: ARG002
    ) -> MupFuture:
        """Refuse: clients stand outside the system."""
        raise UsageError(
            f"a client cannot query database {db_name!r}", hint="call a service that does the query"
        )

    def respond(
        self,
        body: Any = None,  # noqa: ARG002
        status: int = 200,  # noqa: ARG002
        headers: Mapping[str, str] | None = None,  # noqa: ARG002
        cookies: Mapping[str, str | Cookie] | None = None,  # noqa: ARG002
    ) -> None:
        """Refuse: nobody has asked a client anything."""
        raise UsageError("a client has no request to respond to")
