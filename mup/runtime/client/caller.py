"""What endpoints and clients have in common as callers: a call is checked before it begins."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from types import FrameType
from typing import Any

from mup.communication import Communication
from mup.future import MupFuture
from mup.runtime.client.events import Operation
from mup.runtime.client.request import Words, call_headers, call_path

__all__ = ["Caller"]


class Caller(Communication):
    """Makes calls: a request that is served, or a client."""

    # What most requests leave as it is costs nothing per request here.
    _operations = 0
    """Calls and queries begun in the execution."""

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
        """Call an endpoint of a service and return at once; see :meth:`Communication.call`."""
        words = Words(path, params, self._headers_of_call(dest_ms, headers), method)
        frame = sys._getframe(1)  # noqa: SLF001 - the only way to see who calls
        operation = self._operation(f"{dest_ms}{call_path(path)}", frame, timeout)
        return self._begin(operation, dest_ms, words, idempotent)

    def _headers_of_call(self, dest_ms: str, headers: Mapping[str, str] | None) -> dict[str, str]:  # noqa: ARG002
        """Return the headers of a call, as they can be sent.

        Raises:
            UsageError: One cannot.
        """
        return call_headers(headers)

    @abstractmethod
    def _operation(self, name: str, frame: FrameType, timeout: float | None = None) -> Operation:
        """Return the next operation of the execution.

        Args:
            name: What is called or asked.
            frame: Of the code that does so.
            timeout: Seconds it may take; None = it does not say.
        """

    @abstractmethod
    def _begin(self, operation: Operation, service: str, words: Words, idempotent: bool | None) -> MupFuture:
        """Begin a call."""
