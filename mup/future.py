"""``MupFuture`` and ``Response``: the result of a remote operation before and after it has finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["AwaitedFuture", "MupFuture", "Response"]


@dataclass(frozen=True, slots=True)
class Response:
    """A response of an endpoint, whatever its status.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        body: Decoded as its content type says: JSON to objects, text to ``str``, anything else ``bytes``.
    """

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


class MupFuture(ABC):
    """The result of ``Communication.call`` or ``Communication.query``, now or later."""

    @abstractmethod
    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:
        """Wait for the result; asking again gives the same result.

        Args:
            timeout: Seconds to wait at most; None = until the deadline of the operation.
            check: Whether a status outside 2xx raises. With False the result is a :class:`Response`.

        Returns:
            The decoded body of a call, the list of documents of a query.

        Raises:
            CallError: The endpoint answered with a status outside 2xx.
            CallTimeoutError: No answer in time.
            NoReplicaError: No live replica of the service is reachable.
            QueryError: The database refused the query or failed.
            CommunicationError: The connection broke.
        """

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait without blocking the event loop: in ``async def`` scenarios and endpoints."""
        raise TypeError("this future belongs to a blocking worker: use .get()")


class AwaitedFuture(MupFuture, Coroutine[Any, Any, Any]):
    """A future of an event loop, which asyncio takes for a coroutine.

    So it can be a task of its own: ``asyncio.create_task(comm.call(...))``.
    """

    _waiting: Coroutine[Any, Any, Any] | None = None

    @abstractmethod
    def _wait(self, site: int) -> Coroutine[Any, Any, Any]:
        """Return what waits for the result; ``site`` is that of the ``await`` in the log, 0 = unknown."""

    def send(self, value: Any) -> Any:
        """Go on as the coroutine of a task; nothing tells where the task comes from."""
        return self._as_coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an exception in the coroutine of a task, which may have been cancelled before it began."""
        return self._as_coroutine().throw(*error)

    def close(self) -> None:
        """End the coroutine of a task; the operation goes on."""
        if self._waiting is not None:
            self._waiting.close()

    def _as_coroutine(self) -> Coroutine[Any, Any, Any]:
        if self._waiting is None:
            self._waiting = self._wait(0)
        return self._waiting
