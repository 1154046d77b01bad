"""What is sent for a call? Its arguments, checked, and the bytes of a request.

A mistake in the caller's code is a `UsageError`, raised by ``call`` before anything is sent: what an argument
is, or that it does not fit the endpoint it is for. A `CommunicationError` is what the network did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from mup.errors import CommunicationError, UsageError
from mup.routes import WITHOUT_BODY, Route, query_string, target_of
from mup.runtime.header_rules import TOKEN, VALUE, check_call_headers, is_text

__all__ = [
    "Address",
    "RawRequest",
    "TlsAddress",
    "address_of",
    "call_headers",
    "call_path",
    "call_seconds",
    "encoded",
    "start_of_head",
    "worded",
]

_TARGET = re.compile(r"/[!-~]*|\*")
_WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests name the length of their body even if they have none."""

_SAFE_IN_TARGET = "/:@!$&'()*+,;=-._~%?"
"""What stays as it is in paths and query strings: "%", too, for they may be encoded already."""
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
        encrypted: Whether nothing may be sent in clear text: whoever has TLS does not step down.

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
    method, target, headers, body = request.method, request.target, request.headers, request.body
    problem = None
    if not TOKEN.fullmatch(method):
        problem = f"method {method!r}"
    elif not _TARGET.fullmatch(target):
        problem = f"path {target!r}"
    lines = [method, " ", target, start]
    for name, value in headers.items():
        if not isinstance(value, str) or not TOKEN.fullmatch(name) or not VALUE.fullmatch(value):
            # Not what it is: it may be a token.
            problem = f"{name!r} and its value have to be texts of one line, without control characters"
        lines += (name, ": ", str(value), "\r\n")
    if body is not None or method in _WITH_LENGTH:
        lines.append(f"Content-Length: {len(body or b'')}\r\n")
    lines.append("\r\n")
    try:
        if problem is None:
            return "".join(lines).encode() + (body or b"")
    except UnicodeEncodeError as error:
        problem = str(error)
    raise CommunicationError(f"a header or the path cannot be sent: {problem}")


class Wording(NamedTuple):
    """What a call says to its endpoint: method, target as it is sent, and the body if there is one."""

    method: str
    target: str
    body: bytes | None


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
        if not (TOKEN.fullmatch(name) and isinstance(text, str) and VALUE.fullmatch(text) and is_text(text)):
            # Not what it is: it may be a token.
            raise UsageError(
                f"a header cannot be sent: {name!r} and its value have to be texts of one line,"
                " without control characters"
            )
        texts[name] = text
    return texts


def worded(
    route: Route, path: str, params: Mapping[str, Any] | None, method: str, *, external: bool = False
) -> Wording:
    """Return what a call says to its endpoint.

    Args:
        route: What `CallRoutes.find` has returned for the path.
        path: Of the call, with its query string.
        params: Of the call.
        method: Of the call; "" = the one of the endpoint.
        external: Whether it goes outside of mup, where no params are no body.

    Raises:
        UsageError: That cannot be sent, or does not fit the endpoint.
    """
    method = method or route.method or "POST"
    if not TOKEN.fullmatch(method):
        raise UsageError(f"no HTTP method is called {method!r}")
    plain, _, query = path.partition("?")
    target, rest = target_of(route, plain, params)
    body = None
    if method not in WITHOUT_BODY:
        body = None if external and not rest else _body(rest)
    elif rest:
        query = f"{query}&{query_string(rest)}" if query else query_string(rest)
    if query:
        target = f"{target}?{query}"
    return Wording(method, quote(target, safe=_SAFE_IN_TARGET), body)


def _body(params: Mapping[str, Any] | None) -> bytes:
    """Return params as JSON.

    Raises:
        UsageError: They are none.
    """
    try:
        return _encode({} if params is None else params)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise UsageError(f"the params cannot be sent as JSON: {error}") from error
