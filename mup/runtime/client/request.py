"""The request of a call: its arguments, checked, and its bytes.

A mistake in the caller's code is a `UsageError`, raised by ``call`` before anything is sent: what an argument
is, or that it does not fit the endpoint it is for. A `CommunicationError` is what the network did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from mup.errors import CommunicationError, UsageError
from mup.routes import WITHOUT_BODY, Route, query_string, target_of
from mup.runtime.protocol.header_rules import TOKEN, VALUE, check_call_headers, is_text

__all__ = [
    "Address",
    "Message",
    "RawRequest",
    "TlsAddress",
    "Words",
    "address_of",
    "call_headers",
    "call_path",
    "call_seconds",
    "encoded",
    "start_of_head",
]

_TARGET = re.compile(r"/[!-~]*|\*")
_WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests name the length of their body even if they have none."""

_SAFE_IN_TARGET = "/:@!$&'()*+,;=-._~%?"
"""What stays as it is in paths and query strings: "%", too, for they may be encoded already."""
_TO_STRANGERS = (("accept", "Accept: */*\r\n"), ("user-agent", "User-Agent: mup\r\n"))
_FIRST = frozenset({"host", "accept-encoding"})
"""Headers of `start_of_head`."""
_encode = msgspec.json.Encoder().encode

Address = tuple[str, int]


class TlsAddress(tuple[str, int]):
    """Host and port of a server that speaks TLS."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RawRequest:
    """Method, target (path and query, quoted), headers, and the body if there is one."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def address_of(url: str, *, encrypted: bool = False) -> Address:
    """Return host and port of an ``http://`` URL, or of an ``https://`` one as a `TlsAddress`.

    Args:
        url: The URL.
        encrypted: Whether nothing may be sent in clear text: a caller with TLS does not step down.

    Raises:
        CommunicationError: It is none, or is not encrypted although it must be.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not host.isprintable() or not host or " " in host or not port:
        raise CommunicationError(f"not an http:// or https:// address: {url!r}")
    if parts.scheme == "https":
        return TlsAddress((host, port))
    if encrypted:
        raise CommunicationError(f"{url} is not encrypted, and everything here is: nothing is sent there")
    return host, port


def start_of_head(address: Address) -> str:
    """Return what stands behind method and target in every request to a server."""
    host, port = address
    host = f"[{host}]" if ":" in host else host
    return f" HTTP/1.1\r\nHost: {host}:{port}\r\nAccept-Encoding: identity\r\n"


def encoded(request: RawRequest, start: str) -> bytes:
    """Return a request as it is sent.

    Args:
        request: The request.
        start: What `start_of_head` says.

    Raises:
        CommunicationError: A header or the target would change the meaning of the request.
    """
    problem = next(filter(None, starmap(_wrong, request.headers.items())), "")
    if not _TARGET.fullmatch(request.target):
        problem = f"path {request.target!r}"
    if not TOKEN.fullmatch(request.method):
        problem = f"method {request.method!r}"
    if problem:
        raise CommunicationError(f"a header or the path cannot be sent: {problem}")
    lines = "".join([f"{name}: {value}\r\n" for name, value in request.headers.items()])
    return Message(request.method, request.target, lines, request.body).encoded(start)


def _wrong(name: str, value: object) -> str:
    """Return why a header cannot be sent; "" = it can."""
    if isinstance(value, str) and TOKEN.fullmatch(name) and VALUE.fullmatch(value) and is_text(value):
        return ""
    # Not the value: it may be a token.
    return f"{name!r} and its value have to be texts of one line, without control characters"


class Message(msgspec.Struct, frozen=True):
    """What a call says to its endpoint.

    Attributes:
        method: HTTP method.
        target: Path and query as they are sent.
        lines: Headers as they are sent.
        body: None = there is none.
        external: Whether it goes outside of mup.
        own: Headers that stand in ``lines`` instead of those every request begins with.
    """

    method: str
    target: str
    lines: str = ""
    body: bytes | None = None
    external: bool = False
    own: frozenset[str] = frozenset()

    def encoded(self, start: str) -> bytes:
        """Return the bytes of the request.

        Args:
            start: What `start_of_head` says, and further headers.
        """
        if self.own:
            first, *rest = start.splitlines(keepends=True)
            start = first + "".join(line for line in rest if line.partition(":")[0].lower() not in self.own)
        body = self.body or b""
        said = self.body is not None or self.method in _WITH_LENGTH
        length = f"Content-Length: {len(body)}\r\n" if said else ""
        return f"{self.method} {self.target}{start}{self.lines}{length}\r\n".encode() + body


def call_seconds(timeout: float | None, patience: float) -> float:
    """Return the seconds a call may take.

    Args:
        timeout: What the call says; None = nothing.
        patience: What holds then.

    Raises:
        UsageError: It says nothing that can be kept.
    """
    if timeout is None:
        return patience
    if isinstance(timeout, int | float) and 0 < timeout < float("inf"):
        return timeout
    raise UsageError(f"timeout must be a number of seconds > 0, got {timeout!r}")


def call_path(path: str) -> str:
    """Return the path of a call without its query string.

    Raises:
        UsageError: It cannot be sent.
    """
    if not isinstance(path, str) or not is_text(path):
        raise UsageError(f"the path cannot be sent: {path!r}")
    return path.partition("?")[0]


def call_headers(headers: Mapping[str, str] | None, *, external: bool = False) -> dict[str, str]:
    """Return headers as they can be sent.

    Args:
        headers: Of the call.
        external: Whether it goes outside of mup.

    Raises:
        UsageError: One cannot.
    """
    if not headers:
        return {}
    check_call_headers(headers, external=external)
    texts = {}
    value: Any
    for name, value in headers.items():
        text = str(value) if isinstance(value, int | float) else value
        problem = _wrong(name, text)
        if problem:
            raise UsageError(f"a header cannot be sent: {problem}")
        # Who calls, and how long it waits, is not the caller's to say.
        if external or not name.lower().startswith("x-mup-"):
            texts[name] = text
    return texts


class Words(NamedTuple):
    """What a call says.

    Attributes:
        path: As the call says it, with its query string.
        params: As the call says them; bytes = the body itself.
        headers: From `call_headers`.
        method: As the call says it; "" = the one of the endpoint.
    """

    path: str
    params: Mapping[str, Any] | bytes | None
    headers: Mapping[str, str]
    method: str

    def with_method(self) -> Words:
        """Return the words for a server outside of mup, where the method may stand in front of the path."""
        path, method = self.path, self.method
        verb, space, rest = path.partition(" ")
        if space and verb.isalpha() and verb.isupper():
            method, path = verb, rest
        return self._replace(path=path if path.startswith("/") else f"/{path}", method=method)

    def message(self, route: Route, base: str | None = None, *, sampled: bool = True) -> Message:
        """Return what is sent.

        Args:
            route: What `CallRoutes.find` has returned for the path.
            base: Path in front of the path, outside of mup: there, no params are no body; None = inside.
            sampled: Whether what it causes is logged.

        Raises:
            UsageError: That cannot be sent, or does not fit the endpoint.
        """
        path, params, headers, method = self
        external = base is not None
        method = method or route.method or "POST"
        if not TOKEN.fullmatch(method):
            raise UsageError(f"no HTTP method is called {method!r}")
        plain, _, query = path.partition("?")
        body = None
        if isinstance(params, bytes):
            target, body = plain, params or None
        else:
            target, rest = target_of(route, plain, params)
            if method not in WITHOUT_BODY:
                body = None if external and not rest else _body(rest)
            elif rest:
                query = f"{query}&{query_string(rest)}" if query else query_string(rest)
        if query:
            target = f"{target}?{query}"
        names = frozenset(name.lower() for name in headers) if headers else frozenset()
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if not (sampled or external):
            lines += "X-Mup-Sampled: 0\r\n"
        if body is not None and not isinstance(params, bytes) and "content-type" not in names:
            lines += "Content-Type: application/json\r\n"
        if external:
            lines += "".join(line for name, line in _TO_STRANGERS if name not in names)
        target = quote(f"{base or ''}{target}", safe=_SAFE_IN_TARGET)
        return Message(method, target, lines, body, external, names & _FIRST if external else frozenset())


def _body(params: Mapping[str, Any] | None) -> bytes:
    """Return params as JSON.

    Raises:
        UsageError: They are none.
    """
    try:
        return _encode({} if params is None else params)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise UsageError(f"the params cannot be sent as JSON: {error}") from error
