"""How does an event loop make a call? It is sent in ``call`` if a replica is known and a connection idle.

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
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from mup.errors import UsageError
from mup.events.record import FAILED, Event
from mup.future import MupFuture, Response
from mup.runtime.client.events import Operation
from mup.runtime.client.exchange import Call, Choose, Locate, Pause, Receive, Send, Step
from mup.runtime.client.network import CallStats, Network
from mup.runtime.client.replicas import ServiceEntry
from mup.runtime.client.reply import RawResponse, call_error
from mup.runtime.client.request import worded
from mup.runtime.client.streams import Line
from mup.runtime.kept_cookies import KeptCookies

if TYPE_CHECKING:
    from mup.runtime.client.retries import Retries

__all__ = ["AwaitedCall"]


class AwaitedCall(MupFuture):
    """A call under way; ``await`` gives the decoded body, or raises what went wrong.

    Args:
        network: Sends it.
        operation: Its ids, and where its records go.
        dest: Name of the service called.
        path: As the call says it.
        params: As the call says them; bytes = the body itself.
        headers: From `call_headers`.
        method: As the call says it.
        decoded: Whether the body of the response is to be decoded.
        cookies: Where cookies of the response go.
        sampled: Whether what it causes is logged.
        retries: Decides whether it is made again; None = it is not.
        idempotent: Whether executing it twice does no harm; None = as HTTP says of its method.

    Raises:
        UsageError: It cannot be sent, or does not fit the endpoint.
        CallTimeoutError: There is no time left for it.
    """

    def __init__(
        self,
        network: Network,
        operation: Operation,
        dest: str,
        path: str,
        params: Mapping[str, Any] | bytes | None,
        headers: Mapping[str, str],
        method: str,
        *,
        sampled: bool,
        decoded: bool = True,
        cookies: KeptCookies | None = None,
        retries: Retries | None = None,
        idempotent: bool | None = None,
    ) -> None:
        self._network = network
        self._words = path, params, headers, method, sampled
        self._cookies = cookies
        self._line: Line | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self._waiters: list[asyncio.Future[None]] = []
        self._call = Call(operation, dest, None, network, retries, idempotent, decoded)
        service = network.known(dest)
        if service is not None:
            self._say(service)
        self._start = time.monotonic_ns()
        operation.log(Event.COMM_START, now=self._start)
        self._steps = self._call.steps()
        self._go()
        if self._over and self._call.error is not None:
            raise self._call.error

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002
        """Return what has been awaited; before that, refuse: blocking would stop everybody else."""
        call = self._call
        if not self._over:
            raise UsageError(
                f"an event loop must not block on a call of {call.operation.name}", hint="write 'await' first"
            )
        if call.response is None:
            assert call.error is not None  # noqa: S101 - without a response there is an error
            raise call.error
        return self._body(call.response) if check else call.response

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the reply. Not a generator itself, so that the frame above is the one that awaits."""
        events = self._call.operation.events
        return self._wait(events.waiting_site(1) if events.writer is not None else 0).__await__()

    async def _wait(self, site: int) -> Any:
        call = self._call
        operation = call.operation
        operation.wait(Event.WAIT_START, 0, site)
        if not self._over:
            # One per waiting coroutine: whoever is cancelled disturbs no other.
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        response = call.response
        failed = response is None or not response.ok
        operation.wait(Event.WAIT_END, FAILED if failed else 0, site)
        if response is None:
            assert call.error is not None  # noqa: S101 - without a response there is an error
            raise call.error
        return self._body(response)

    def _body(self, response: Response) -> Any:
        if not response.ok:
            raise call_error(self._call.operation.name, response.status, response.body)
        return response.body

    def _say(self, service: ServiceEntry) -> None:
        """Find out what to send, and what the log calls it.

        Raises:
            UsageError: It does not fit the endpoint, or cannot be sent.
        """
        path, params, headers, method, sampled = self._words
        call, base = self._call, service.base
        external = base is not None
        if external:
            verb, space, rest = path.partition(" ")
            if space and verb.isalpha() and verb.isupper():
                method, path = verb, rest
            path = path if path.startswith("/") else f"/{path}"
        # A name nobody has is sent as a path: the service answers 404 with what it has.
        route = service.routes.find(path.partition("?")[0], method)
        further = "" if external or sampled else "X-Mup-Sampled: 0\r\n"
        call.message = worded(
            route, path, params, headers, method, external=external, base=base or "", further=further
        )
        name = f"{call.service}{route.key}"
        call.operation.rename(f"{call.message.method} {name}" if external else name)

    def _go(self, value: Any = None, error: Exception | None = None) -> None:
        """Go on to where the call waits for something, or is over."""
        steps, network = self._steps, self._network
        try:
            step = steps.send(value) if error is None else steps.throw(error)
            while True:
                kind = type(step)
                if kind is Choose:
                    value = network.choose_now(self._call.service, step.refused)  # type: ignore[union-attr]
                    if value is None:
                        break
                elif kind is Send and not step.fresh:  # type: ignore[union-attr]
                    line = network.lines.take_idle(step.address)  # type: ignore[union-attr]
                    if line is None:
                        break
                    self._line, value = line, line.used
                elif kind is Receive:
                    self._send()
                    return
                else:
                    break
                step = steps.send(value)
        except StopIteration:
            self._finish()
        else:
            network.start(self._slowly(step))

    def _send(self) -> None:
        """Send the request on the connection that has been found for it."""
        call, line = self._call, self._line
        assert line is not None  # noqa: S101 - by the caller
        assert call.message is not None  # noqa: S101 - by the caller
        left = call.until - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(left, self._late)
        line.exchange(call.data(line.start), call.message.method, self._received)

    def _received(self, outcome: RawResponse | Exception) -> None:
        """Take the response, or why there is none."""
        line, network = self._line, self._network
        assert self._timer is not None  # noqa: S101 - the request has been sent
        assert line is not None  # noqa: S101 - the request has been sent
        self._timer.cancel()
        self._line = self._timer = None
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
        assert self._line is not None  # noqa: S101 - the timer is cancelled with it
        self._line.close()
        self._line = self._timer = None
        self._go(error=TimeoutError())

    async def _slowly(self, step: Step) -> None:
        """Do what cannot be done at once, and go on."""
        value: Any = None
        try:
            if isinstance(step, Pause):
                await asyncio.sleep(step.until - time.monotonic())
            else:
                async with asyncio.timeout(max(0.0, self._call.until - time.monotonic())):
                    value = await self._done(step)
        except Exception as error:  # noqa: BLE001 - whatever it is: nobody may wait for ever
            self._go(error=error)
        else:
            self._go(value)

    async def _done(self, step: Step) -> Any:
        network, call = self._network, self._call
        if isinstance(step, Locate):
            self._say(await network.find(call.service))
            return None
        if isinstance(step, Choose):
            return await network.choose(call.service, step.refused)
        assert isinstance(step, Send)  # noqa: S101 - the others do not wait
        left = call.until - time.monotonic()
        seconds = left if network.connect_seconds is None else min(left, network.connect_seconds)
        self._line = await network.lines.connect(step.address, seconds)
        return False

    def _finish(self) -> None:
        self._over = True
        network, call = self._network, self._call
        if network.window_start <= self._start < network.window_end:
            stats = network.stats.setdefault(call.operation.name, CallStats())
            if call.response is not None and call.response.ok:
                stats.starts.append(self._start)
                stats.seconds.append((time.monotonic_ns() - self._start) * 1e-9)
            else:
                stats.errors += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
