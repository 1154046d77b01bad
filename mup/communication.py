"""What does an endpoint see of its request, and how does it talk to others? One object: ``Communication``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mup.future import MupFuture

__all__ = ["DEFAULT_TIMEOUT", "Communication", "Headers"]

DEFAULT_TIMEOUT = 30.0
"""Seconds a remote operation may take when nobody says otherwise."""


class Headers(Mapping[str, str]):
    """Headers of a request; names in any case. Repeated headers are joined with a comma."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            known = self._values.get(key)
            self._values[key] = value if known is None else f"{known}, {value}"

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({self._values!r})"


class Communication(ABC):
    """The request an endpoint serves, and everything it may do with the outside.

    In a client's scenario there is no request: what describes one is empty.
    """

    @property
    def params(self) -> dict[str, Any]:
        """Query string and JSON object or form body, merged; the body wins."""
        return {}

    @property
    def headers(self) -> Headers:
        """Headers of the request; names in any case."""
        return Headers()

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies of the request."""
        return {}

    @property
    def body(self) -> bytes:
        """Body of the request, undecoded."""
        return b""

    @abstractmethod
    def call(
        self,
        dest_ms: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> MupFuture:
        """Call an endpoint of a service and return at once.

        Args:
            dest_ms: Name of the service; one of its live replicas is picked uniformly at random.
            path: Path of the endpoint, or its name.
            params: What the endpoint finds in ``params``; anything JSON can express.
            headers: Further headers of the request.
            timeout: Seconds the whole call may take; bounded by the deadline of the request being served.

        Raises:
            UnknownServiceError: No such service.
            NoReplicaError: No live replica is reachable.
            CallTimeoutError: The deadline of the request being served has passed.
        """

    @abstractmethod
    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Query a database and return at once; it runs while the endpoint goes on.

        Args:
            db_name: Name of the database in the project.
            qry_name: Name of the query: what the event log and the model call it.
            coll_name: Collection.
            qry_txt: Filter, or a command (see docs/reference/queries.md).

        Raises:
            QueryError: The command is malformed.
        """

    @abstractmethod
    def respond(self, body: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Answer the request; what the endpoint does afterwards delays nobody but the next request.

        Args:
            body: dict, list, number, bool or None is sent as JSON, ``str`` as text, ``bytes`` as they are.
            status: HTTP status.
            headers: Further headers; ``Content-Type`` replaces the one chosen by the type of the body.

        Raises:
            MupError: The request has been answered already, or the body cannot be sent.
        """
