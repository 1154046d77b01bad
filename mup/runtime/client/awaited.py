"""Calls on an event loop: sent in ``call`` if a replica is known and a connection idle.

Else a task finds the replica, or connects. What has come back is taken on by the connection that brings it:
most calls need no task. The events of a call:

- ``commStart``: ``call`` was invoked;
- ``contactDest``: a replica was chosen. Still within ``call``, hence before ``waitStart``, unless the
  registry has to be asked first. Opening a connection is part of the exchange;
- ``waitStart``, ``waitEnd``: around the ``await``;
- ``commFinish``: the body has been read completely, or the call has failed. Until then the call goes on
  whatever the scenario does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from mup.errors import UsageError
from mup.future import AwaitedFuture
from mup.runtime.client.events import Waiting
from mup.runtime.client.exchange import (
    WAITS,
    Call,
    CallUnderWay,
    Choose,
    Pause,
    Receive,
    Send,
    Step,
)
from mup.runtime.client.network import Network
from mup.runtime.client.reply import RawResponse
from mup.runtime.client.request import Address
from mup.runtime.client.streams import Line
from mup.runtime.protocol.kept_cookies import KeptCookies

__all__ = ["AwaitedCall"]


class AwaitedCall(CallUnderWay, AwaitedFuture):
    """A call of an event loop; ``await`` gives the decoded body, or raises what went wrong.

    Args:
        network: Sends it.
        call: What is to be done.
        cookies: Where cookies of the response go.

    Raises:
        UsageError: It cannot be sent, or does not fit the endpoint.
        CallTimeoutError: There is no time left for it.
    """

    # What carries the request, and when its answer would be late, once it is under way.
    _line: Line
    _timer: asyncio.TimerHandle

    def __init__(self, network: Network, call: Call, cookies: KeptCookies | None = None) -> None:
        self._network = network
        self._cookies = cookies
        self._waiters: list[asyncio.Future[None]] = []
        super().__init__(call, network.known(call.service))

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002
        """Return what has been awaited; before that, refuse: blocking would stop all other requests."""
        if self._step is not None:
            name = self._call.operation.name
            raise UsageError(f"an event loop must not block on a call of {name}", hint="write 'await' first")
        return self._call.result(check=check)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the reply. Not a generator itself, so that the frame above is the one that awaits."""
        events = self._call.operation.events
        return self._wait(events.waiting_site(1) if events.writer is not None else 0).__await__()

    async def _wait(self, site: int) -> Any:
        with Waiting(self._call.operation, site):
            if self._step is not None:
                # One per waiting coroutine: cancelling one disturbs no other.
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter
            return self._call.result()

    def _do(self, step: Step) -> Any:
        call, network = self._call, self._network
        if isinstance(step, Choose):
            address = network.choose_now(call.service, step.refused)
            return address or self._later(call.until, network.choose, call.service, step.refused)
        if isinstance(step, Send):
            line = None if step.fresh else network.lines.take_idle(step.address)
            if line is None:
                return self._later(call.until, self._connect, step.address)
            self._line = line
            return line.used
        if isinstance(step, Receive):
            self._send()
            return WAITS
        if isinstance(step, Pause):
            return self._later(None, asyncio.sleep, step.until - time.monotonic())
        return self._later(call.until, self._locate)

    def _send(self) -> None:
        """Send the request on the connection that has been found for it."""
        call, line = self._call, self._line
        left = call.until - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(left, self._late)
        line.exchange(*call.data(line.start), self._received)

    def _received(self, outcome: RawResponse | Exception) -> None:
        """Take the response, or why there is none."""
        line, network = self._line, self._network
        self._timer.cancel()
        if isinstance(outcome, Exception):
            line.close()
            self._go(error=outcome)
            return
        network.lines.give_back(line, outcome)
        if outcome.cookies and self._cookies is not None:
            self._cookies.keep(self._call.service, outcome.cookies)
        self._go(outcome)

    def _late(self) -> None:
        """Give up waiting for the response."""
        self._line.close()
        self._go(error=TimeoutError())

    def _later(self, until: float | None, work: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Let a task do what cannot be done at once, until a time of the monotonic clock, and go on."""
        self._network.start(self._slowly(until, work, *args))
        return WAITS

    async def _slowly(self, until: float | None, work: Callable[..., Awaitable[Any]], *args: Any) -> None:
        value: Any = None
        try:
            async with asyncio.timeout(None if until is None else max(0.0, until - time.monotonic())):
                value = await work(*args)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller must not wait for ever
            self._go(error=error)
        else:
            self._go(value)

    async def _locate(self) -> None:
        self._call.say(await self._network.find(self._call.service))

    async def _connect(self, address: Address) -> bool:
        network, left = self._network, self._call.until - time.monotonic()
        seconds = left if network.connect_seconds is None else min(left, network.connect_seconds)
        self._line = await network.lines.connect(address, seconds)
        return False

    def _finish(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
