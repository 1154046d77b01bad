"""``Communication`` of a client's scenario: it stands outside of the system, and only calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from mup.communication import DEFAULT_TIMEOUT
from mup.errors import UsageError
from mup.future import MupFuture
from mup.runtime.client.caller import Caller
from mup.runtime.client.events import EventLog, Operation
from mup.runtime.client.exchange import Call
from mup.runtime.client.network import Network
from mup.runtime.client.request import Words, call_headers, call_path, call_seconds
from mup.runtime.protocol.kept_cookies import KeptCookies
from mup.workload.call_window import CallWindow, MeasuredCall

__all__ = ["ClientCommunication"]


class ClientCommunication(Caller):
    """The calls of one client; one object per client, one execution (cycle) at a time.

    Args:
        network: Shared by all clients.
        patience: Timeout of calls that name none, in seconds.
        window: Takes the response times of the calls; None = they are not kept.

    Attributes:
        request, trace: Ids of the current execution.
        sampled: Whether the current execution is logged, with everything it causes.
    """

    def __init__(
        self, network: Network, patience: float = DEFAULT_TIMEOUT, window: CallWindow | None = None
    ) -> None:
        self.network = network
        self._patience = patience
        self._window = window or CallWindow()
        self.request = 0
        self.trace = 0
        self.sampled = True
        self._kept_cookies = KeptCookies()

    @property
    def events(self) -> EventLog:
        """Log of the current execution."""
        return self.network.log if self.sampled else self.network.silent

    @property
    def calls(self) -> int:
        """Calls begun in the current execution."""
        return self._operations

    def begin(self, request: int, trace: int, *, sampled: bool = True) -> None:
        """Start a new execution."""
        self.sampled = sampled
        self.request = request
        self.trace = trace
        self._operations = 0

    def send(
        self, dest: str, method: str, path: str, body: bytes, headers: Mapping[str, str], timeout: float
    ) -> MupFuture:
        """Send any HTTP request to a service outside of mup; ``await`` gives the body undecoded."""
        words = Words(path, body, call_headers(headers, external=True), method)
        operation = self._operation(f"{dest}{call_path(path)}", sys._getframe(1), timeout)  # noqa: SLF001
        call = Call(operation, dest, None, self.network, words=words, decoded=False)
        return MeasuredCall(self.network, call, None, self._window)

    def query(self, db_name: str, *_: Any, **__: Any) -> MupFuture:
        """Refuse: clients stand outside the system."""
        raise UsageError(
            f"a client cannot query database {db_name!r}", hint="call a service that does the query"
        )

    def respond(self, *_: Any, **__: Any) -> None:
        """Refuse: a client has no request to answer."""
        raise UsageError("a client has no request to respond to")

    def _headers_of_call(self, dest_ms: str, headers: Mapping[str, str] | None) -> dict[str, str]:
        """Return the headers of a call: with the cookies that the service has set, unless it has its own."""
        complete = call_headers(headers, external=self.network.is_external(dest_ms))
        kept = self._kept_cookies.header(dest_ms)
        if kept is not None and not any(name.lower() == "cookie" for name in complete):
            complete["Cookie"] = kept
        return complete

    def _operation(self, name: str, frame: FrameType, timeout: float | None = None) -> Operation:
        deadline = time.monotonic() + call_seconds(timeout, self._patience)
        self._operations += 1
        events = self.events
        number, site = self._operations, events.site(frame)
        return Operation(
            events, self.request, self.trace, number, site, name, deadline, awaited=True, sampled=self.sampled
        )

    def _begin(self, operation: Operation, service: str, words: Words, idempotent: bool | None) -> MupFuture:
        # Clients measure: they repeat nothing.
        call = Call(operation, service, None, self.network, None, idempotent, words)
        return MeasuredCall(self.network, call, self._kept_cookies, self._window)
