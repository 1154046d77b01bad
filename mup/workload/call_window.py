"""Response times of the calls that clients begin within a window."""

from __future__ import annotations

import time
from array import array

from mup.runtime.client.awaited import AwaitedCall
from mup.runtime.client.exchange import Call
from mup.runtime.client.network import Network
from mup.runtime.protocol.kept_cookies import KeptCookies
from mup.workload.result import EndpointStats

__all__ = ["CallWindow", "MeasuredCall"]


class CallWindow:
    """What is kept of calls, per endpoint (``A/epA/``).

    Args:
        start, end: Calls that begin between these times count; monotonic ns.
    """

    def __init__(self, start: int = 0, end: int = 0) -> None:
        self._start = start
        self._end = end
        # When the answered calls began (ns), and their seconds: numbers without an object for each.
        self._answered: dict[str, tuple[array[int], array[float]]] = {}
        self._errors: dict[str, int] = {}

    def note(self, call: Call, start: int) -> None:
        """Take a call that is over and began at ``start`` (monotonic ns), if it counts."""
        if not self._start <= start < self._end:
            return
        name = call.operation.name
        if call.response is not None and call.response.ok:
            starts, seconds = self._answered.setdefault(name, (array("q"), array("d")))
            starts.append(start)
            seconds.append((time.monotonic_ns() - start) * 1e-9)
        else:
            self._errors[name] = self._errors.get(name, 0) + 1

    def stats(self) -> dict[str, EndpointStats]:
        """Return what came of the calls, by endpoint in the order of the names."""
        none: tuple[array[int], array[float]] = array("q"), array("d")
        found = {}
        for name in sorted(self._answered.keys() | self._errors.keys()):
            starts, seconds = self._answered.get(name, none)
            errors = self._errors.get(name, 0)
            found[name] = EndpointStats(starts_ns=tuple(starts), seconds=tuple(seconds), errors=errors)
        return found


class MeasuredCall(AwaitedCall):
    """A call of a client; arguments as for `AwaitedCall`, and the window that takes it."""

    def __init__(self, network: Network, call: Call, cookies: KeptCookies | None, window: CallWindow) -> None:
        # Before the call begins: it may be over at once.
        self._window = window
        super().__init__(network, call, cookies)

    def _finish(self) -> None:
        self._window.note(self._call, self._start)
        super()._finish()
