"""``Future`` and ``Response``: the result of a remote operation before and after it has finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["MupFuture", "Response"]


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
