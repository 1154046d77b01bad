"""One call, whatever carries it: choose a replica, send, read the response, perhaps repeat.

`Call.steps` is the core of both shells. It does no input or output and waits for nothing: it yields what is
to be done next (`Choose`, `Send`, ...), and is sent what came of it or thrown what went wrong. A worker that
blocks (`mup.runtime.client.blocking`) runs it to where it has to wait for the callee, and goes on in ``get``;
an event loop (`mup.runtime.client.awaited`) goes on when the response has come.

One set of rules holds for both:

- *Refused.* A replica that cannot be reached within `CONNECT_SECONDS` has not got the request: it is dropped,
  and another one is chosen at once. So is one that answers not to serve (503 with ``X-Mup-Refused``,
  while it stops or has no worker); if there is no other, a new connection may reach its successor on the same
  port.
- *Stale.* A kept connection that breaks while the request is sent, or ends within `STALE_SECONDS` of it
  without a byte of a response, was closed by the server while it was idle: the request was not executed, and
  is sent once more, on a new connection to the same replica. Every other connection that breaks is an error:
  the request may have been executed.
- *Retries.* What has failed all the same is made again if `mup.runtime.client.retries` allows, as an attempt
  with records of its own; a request that may have been executed only if the call is idempotent. There is one
  budget per worker and destination.
- *Deadlines.* Connecting, sending, waiting and attempts share the one of the call; it is told to the callee.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Collection, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mup.errors import (
    BrokenCallError,
    CallTimeoutError,
    CommunicationError,
    MupError,
    NoReplicaError,
)
from mup.events.ids import attempt_of, child_id
from mup.events.record import FAILED, Event
from mup.future import MupFuture, Response
from mup.retries import IDEMPOTENT
from mup.runtime.client.events import Operation
from mup.runtime.client.replicas import ServiceEntry
from mup.runtime.client.reply import BrokenError, RawResponse, call_error, decode_body
from mup.runtime.client.request import Address, Message, Words
from mup.runtime.client.retries import Retries, failure_of

__all__ = [
    "CONNECT_SECONDS",
    "WAITS",
    "Call",
    "CallUnderWay",
    "Choose",
    "Locate",
    "Pause",
    "Peers",
    "Receive",
    "Send",
    "StaleError",
    "Step",
]

STALE_SECONDS = 0.05
"""A server that had closed an idle connection says so within a round trip; later, work may have begun."""
CONNECT_SECONDS = 2.0
"""How long a call tries to connect to one replica. A machine that is gone does not even refuse."""
_ALMOST = 0.002
"""Seconds before a deadline at which timers may call it over."""
_log = logging.getLogger("mup.runtime")


class Locate(NamedTuple):
    """Find out what the service is, and so what is to be said to it: `Call.say`."""


class Choose(NamedTuple):
    """Choose a replica, but none of these. Give its address, or raise `CommunicationError`."""

    refused: Collection[Address]


class Send(NamedTuple):
    """Send the request. Give whether the connection was kept from an earlier one, or raise ``OSError``."""

    address: Address
    fresh: bool


class Receive(NamedTuple):
    """Wait for the response. Give it, or raise `BrokenError`; ``TimeoutError`` at `Call.until`."""


class Pause(NamedTuple):
    """Wait until a time of the monotonic clock."""

    until: float


Step = Locate | Choose | Send | Receive | Pause
_LOCATE, _RECEIVE = Locate(), Receive()


class StaleError(OSError):
    """A kept connection broke while the request was sent."""


class Peers(Protocol):
    """What is kept of the servers of a process."""

    def drop(self, name: str, address: Address) -> None:
        """Do not choose a replica of a service any more."""

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server."""


@dataclass(slots=True)
class Call:
    """One call: what is said, to which service, and what came of it.

    Attributes:
        operation: Its records and deadline.
        service: Name of the service called.
        message: What is sent; None = to be found out.
        peers: What it shares with other calls.
        retries: Decides whether it is made again; None = it is not.
        idempotent: Whether executing it twice does no harm; None = as HTTP says of its method.
        words: What is said, before it is known of what kind the service is.
        decoded: Whether the body of the response is to be decoded.
        until: Deadline of the attempt under way, in seconds of the monotonic clock.
        sent: When the request was sent.
        flags: Of the record that ends the exchange.
        response: What was answered.
        error: Why nothing was.
    """

    operation: Operation
    service: str
    message: Message | None
    peers: Peers
    retries: Retries | None = None
    idempotent: bool | None = None
    words: Words | None = None
    decoded: bool = True
    until: float = 0.0
    sent: float = 0.0
    flags: int = 0
    response: Response | None = None
    error: MupError | None = None
    _lost: bool = False

    def say(self, service: ServiceEntry) -> None:
        """Find out what to send, and what the log calls it.

        Raises:
            UsageError: It does not fit the endpoint, or cannot be sent.
        """
        words, operation = self.words, self.operation
        assert words is not None  # noqa: S101 - without a message there are words
        if service.base is not None:
            words = words.with_method()
        # An unknown name is sent as a path: the service answers 404 with what it has.
        route = service.routes.find(words.path.partition("?")[0], words.method)
        message = self.message = words.message(route, service.base, sampled=operation.sampled)
        name = f"{self.service}{route.key}"
        operation.rename(f"{message.method} {name}" if message.external else name)

    def data(self, start: str) -> tuple[bytes, str]:
        """Return the request as it is sent now, after what `start_of_head` says; and its method."""
        operation, message = self.operation, self.message
        assert message is not None  # noqa: S101 - a replica of an unknown service cannot be chosen
        if message.external:
            return message.encoded(start), message.method
        caused = child_id(operation.request, attempt_of(operation.seq, operation.attempt))
        milliseconds = max(self.until - time.monotonic(), 0.001) * 1000
        start += f"X-Mup-Request: {caused:016x}\r\nX-Mup-Trace: {operation.trace:016x}\r\n"
        return message.encoded(f"{start}X-Mup-Deadline: {milliseconds:.0f}\r\n"), message.method

    def steps(self) -> Generator[Step, Any, None]:
        """Make the call; afterwards ``response`` or ``error`` is set, and its last record is written."""
        operation, retries = self.operation, self.retries
        if retries is not None:
            retries.called(self.service)
        while True:
            raw: RawResponse | None = None
            self.error = None
            self._lost = False
            began = time.monotonic()
            self.until = operation.deadline
            try:
                if self.message is None:
                    yield _LOCATE
                if retries is not None:
                    self.until = retries.limit(operation.deadline, began, idempotent=self._harmless)
                raw = yield from self._attempt()
            except MupError as error:
                self.error = error
            except TimeoutError:
                seconds = round(self.until - began, 3)
                self.error = CallTimeoutError(f"{operation.name}: no answer within {seconds:.3g} s")
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller must not wait for ever
                self.error = BrokenCallError(
                    f"call of {operation.name} failed: {error or type(error).__name__}"
                )
            failure = None if retries is None else failure_of(raw, self.error, lost=self._lost)
            pause = None
            if retries is not None and failure is not None:
                pause = retries.pause(failure, operation, self.service, idempotent=self._harmless)
            operation.finish(FAILED if self.error is not None else self.flags)
            if pause is None:
                break
            yield Pause(time.monotonic() + pause)
            operation.again()
        if raw is not None:
            self._finish(raw)

    @property
    def _harmless(self) -> bool:
        """Whether the call may be executed twice."""
        if self.idempotent is not None or self.message is None:
            return bool(self.idempotent)
        return self.message.method in IDEMPOTENT

    def _attempt(self) -> Generator[Step, Any, RawResponse]:
        """Return the response of the first replica that serves the request.

        Raises:
            CommunicationError: There is none.
        """
        operation, peers = self.operation, self.peers
        refused: list[Address] = []
        answer: RawResponse | None = None  # of a replica that does not serve
        problem = ""
        address: Address | None = None
        fresh = False
        while True:
            try:
                if address is None:
                    address = yield Choose(refused)
            except CommunicationError as error:
                if answer is None:
                    if problem and type(error) is NoReplicaError:
                        raise NoReplicaError(f"{error.message}: {problem}") from error
                    raise
                # A replica that was reloaded has a successor on its port, which new connections reach.
                address, fresh = refused[-1], True
            if operation.awaited:
                operation.contact()
            if self.until <= time.monotonic():
                raise CallTimeoutError(f"no time left for {operation.name}: its deadline has passed")
            try:
                used = yield Send(address, fresh)
            except StaleError:
                fresh = True
                continue
            except OSError as error:
                if answer is not None and fresh:
                    return answer
                host, port = address
                if isinstance(error, TimeoutError) and self.until - time.monotonic() < _ALMOST:
                    raise CallTimeoutError(
                        f"{operation.name}: no connection to {host}:{port} in time"
                    ) from error
                problem = " ".join(str(error).split()) or "no connection in time"
                _log.warning("%s: %s:%d cannot be reached: %s", operation.name, host, port, problem)
                peers.drop(self.service, address)
                refused.append(address)
                address, fresh = None, False
                continue
            operation.contact()
            self.sent = time.monotonic()
            try:
                raw: RawResponse = yield _RECEIVE
            except TimeoutError:
                self._lost = True
                raise
            except BrokenError as error:
                if used and error.empty and time.monotonic() - self.sent < STALE_SECONDS:
                    peers.forget(address)
                    fresh = True
                    continue
                self._lost = True
                raise BrokenCallError(f"call of {operation.name} failed: {error}") from error
            if not raw.refuses_all or (answer is not None and fresh):
                return raw
            answer = raw
            peers.forget(address)
            peers.drop(self.service, address)
            refused.append(address)
            address, fresh = None, False

    def result(self, *, check: bool = True) -> Any:
        """Return what was answered: the body, or without ``check`` the response, whatever its status.

        Raises:
            MupError: Why there is none.
        """
        response = self.response
        if response is None:
            assert self.error is not None  # noqa: S101 - without a response there is an error
            raise self.error
        if not check:
            return response
        if not response.ok:
            raise call_error(self.operation.name, response.status, response.body)
        return response.body

    def _finish(self, raw: RawResponse) -> None:
        body: Any = raw.body
        try:
            if self.decoded:
                body = decode_body(raw.content(), raw.headers.get("content-type", ""))
        except ValueError as problem:
            self.error = CommunicationError(f"{self.operation.name}: the body of the response: {problem}")
        else:
            self.response = Response(raw.status, raw.headers, body)


WAITS = object()
"""What a step gives that cannot be done at once."""


class CallUnderWay(MupFuture):
    """A call that a shell makes: it does what can be done at once, and then goes on when something has come.

    Args:
        call: What is to be done.
        service: What is known of the service; None = that is to be found out.

    Raises:
        UsageError: It cannot be sent, or does not fit the endpoint.
        CommunicationError: The request could not be sent.
    """

    def __init__(self, call: Call, service: ServiceEntry | None) -> None:
        self._call = call
        if service is not None:
            call.say(service)
        # When it began, as the log has it.
        self._start = time.monotonic_ns()
        call.operation.log(Event.COMM_START, now=self._start)
        self._steps = call.steps()
        # What the call waits for; None = it is over.
        self._step: Step | None = None
        self._go()
        if self._step is None and call.error is not None:
            raise call.error

    @abstractmethod
    def _do(self, step: Step) -> Any:
        """Do a step and return what it gives, or raise what it raises; `WAITS` = it takes a while."""

    def _finish(self) -> None:
        """The call is over."""

    def _go(self, value: Any = None, error: Exception | None = None) -> None:
        """Go on to where the call waits for something, or is over."""
        steps = self._steps
        try:
            step = steps.send(value) if error is None else steps.throw(error)
            while True:
                try:
                    value = self._do(step)
                except (MupError, OSError) as problem:
                    step = steps.throw(problem)
                    continue
                if value is WAITS:
                    self._step = step
                    return
                step = steps.send(value)
        except StopIteration:
            self._step = None
            self._finish()
