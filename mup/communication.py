"""``Communication``: an endpoint's request, and its calls and queries to others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mup.future import MupFuture

__all__ = ["DEFAULT_TIMEOUT", "Communication", "Cookie", "Headers", "UploadedFile"]

DEFAULT_TIMEOUT = 30.0
"""Seconds a remote operation may take unless it is set otherwise."""


class Headers(Mapping[str, str]):
    """Headers of a request, names in any case. Repeated ones are joined by a comma (cookies: semicolon)."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            known = self._values.get(key)
            comma = ";" if key == "cookie" else ","
            self._values[key] = value if known is None else f"{known}{comma} {value}"

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


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file of a ``multipart/form-data`` body.

    Attributes:
        filename: As the client names it, without folders; "" if it has none. Do not use it as a path.
        content_type: As the client says.
        data: The content.
    """

    filename: str
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """A cookie to be set by ``respond(..., cookies={name: Cookie(value=...)})``.

    Attributes:
        value: Any text.
        max_age: Seconds it lives; None = as long as the browser runs; 0 = it is deleted.
        path: Below which path it is sent.
        domain: "" = to this host alone.
        secure: Whether it is sent over TLS only.
        http_only: Whether scripts cannot see it.
        same_site: Whether other sites' pages may cause it to be sent.
    """

    value: str
    max_age: int | None = None
    path: str = "/"
    domain: str = ""
    secure: bool = False
    http_only: bool = True
    same_site: Literal["Strict", "Lax", "None"] = "Lax"


class Communication(ABC):
    """The request an endpoint serves, and everything it may do with the outside.

    In a client's scenario there is no request: what describes one is empty.
    """

    @property
    def method(self) -> str:
        """HTTP method of the request."""
        return ""

    @property
    def request_id(self) -> str:
        """Id of the request, as logs of the service have it: 16 hexadecimal digits."""
        return ""

    @property
    def traceparent(self) -> str:
        """W3C header ``traceparent`` for requests the endpoint sends by other means than ``call``."""
        return ""

    @property
    def params(self) -> dict[str, Any]:
        """Query string, JSON object or form, and parameters of the path, merged; the later of these win."""
        return {}

    @property
    def files(self) -> Mapping[str, Sequence[UploadedFile]]:
        """Files of a ``multipart/form-data`` body, by the name of their field."""
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
        method: str = "",
        idempotent: bool | None = None,
    ) -> MupFuture:
        """Call an endpoint of a service and return at once.

        Args:
            dest_ms: Name of the service; one of its live replicas is picked uniformly at random.
            path: Path of the endpoint, or its name. Parameters of the path stay as they are declared
                (``/orders/{order_id}``) and are filled in from ``params``.
            params: What the endpoint finds in ``params``; anything JSON can express. With ``GET``, ``HEAD``
                and ``DELETE`` they travel in the query string: texts, numbers, and lists of them.
            headers: Further headers of the request.
            timeout: Seconds the whole call may take; bounded by the deadline of the request being served.
            method: HTTP method; "" = the one of the endpoint, or ``POST`` if it serves any.
            idempotent: Whether executing the call twice does no harm, so that it may be made again when
                it is unknown whether it was executed; None = as HTTP says of the method. Matters only where
                ``mup.toml`` gives the service retries.

        Raises:
            UnknownServiceError: No such service.
            NoReplicaError: No live replica is reachable.
            CallTimeoutError: The deadline of the request being served has passed.
            UsageError: A mistake of the caller: an argument that cannot be sent, a param of the path that is
                missing, a method the endpoint is not for.
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
    def respond(
        self,
        body: Any = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str | Cookie] | None = None,
    ) -> None:
        """Answer the request; what the endpoint does afterwards delays only the next request.

        Args:
            body: ``str`` is sent as text, ``bytes`` as they are, everything else as JSON. None is no body
                with a status of 204, 205 or 3xx.
            status: HTTP status.
            headers: Further headers; ``Content-Type`` replaces the one chosen by the type of the body.
            cookies: To be set; a text is a cookie of the session that scripts cannot see.

        Raises:
            MupError: The request has been answered already, or the body cannot be sent.
        """
