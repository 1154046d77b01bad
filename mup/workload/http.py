"""Drive a service without mup by HTTP requests given on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mup.errors import UsageError
from mup.project import is_http_url
from mup.workload.client import Client, ThinkTime

if TYPE_CHECKING:
    from mup.communication import Communication

__all__ = ["HttpLoad", "request_client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLoad:
    """What one user does in a cycle: think, then send a request to each URL, one after the other.

    Attributes:
        urls: Absolute URLs; at least one.
        method: HTTP method of all requests; "" = ``POST`` with a body, else ``GET``.
        body: Of all requests; "" = none.
        headers: Of all requests. A body is ``application/json`` unless they say otherwise.
        think: Mean think time in seconds, or a file of them for ``recorded``.
        think_distribution: Of the think times.
        timeout: Seconds until a request counts as failed.

    Raises:
        UsageError: A URL, the method, a header or the timeout cannot be used.
    """

    urls: tuple[str, ...]
    method: str = ""
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    think: float | str = 0.0
    think_distribution: ThinkTime = "constant"
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not self.urls:
            raise UsageError("a load of HTTP requests needs at least one URL")
        for url in self.urls:
            if not is_http_url(url):
                raise UsageError(f"must be a URL such as http://127.0.0.1:8080/path, got {url!r}")
        if self.method and not (self.method.isascii() and self.method.isalpha()):
            raise UsageError(f"must be an HTTP method such as GET, got {self.method!r}")
        for name, value in self.headers.items():
            if not name or any(c in name + value for c in "\r\n\0") or any(c in name for c in ": "):
                raise UsageError(f"a header cannot be {name!r}: {value!r}")
        if not 0 < self.timeout < float("inf"):
            raise UsageError(f"timeout must be > 0 seconds, got {self.timeout!r}")
        if isinstance(self.think, float | int) and not 0 <= self.think < float("inf"):
            raise UsageError(f"think time must be finite and >= 0 seconds, got {self.think!r}")

    @property
    def hosts(self) -> dict[str, str]:
        """Base URLs of the services called, by name (``127.0.0.1:8080``)."""
        return {urlsplit(url).netloc: "{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in self.urls}

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HttpLoad:
        """Return what `to_json` wrote."""
        return cls(**{**data, "urls": tuple(data["urls"])})


def request_client(load: HttpLoad) -> type[Client]:
    """Return a client that does what a load of HTTP requests says."""
    method = load.method.upper() or ("POST" if load.body else "GET")
    body = load.body.encode()
    targets = []
    for url in load.urls:
        parts = urlsplit(url)
        targets.append((parts.netloc, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")))
    thinks = bool(load.think)

    class Requests(Client):
        """Thinks and sends."""

        async def scenario(self, comm: Communication) -> None:
            if thinks:
                await self.think(load.think, load.think_distribution)
            for host, path in targets:
                await comm.send(host, method, path, body, load.headers, load.timeout)  # type: ignore[attr-defined]

    return Requests
