"""``MS`` and ``EP``: how a developer writes a service, and what both mean at start."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from mup.errors import DeploymentError
from mup.routes import METHODS, Routes, template_problem

__all__ = [
    "ADMISSIONS",
    "EP",
    "MS",
    "EndpointInfo",
    "check_admission",
    "check_queue_limit",
    "check_service",
    "endpoints_of",
]

_Method = TypeVar("_Method", bound=Callable[..., Any])
_MARK = "__mup_endpoint__"

RUNTIMES = ("process", "thread", "async")
ADMISSIONS = ("fifo", "random")

RESERVED = ("/healthz", "/readyz", "/mup/")
"""Paths the front of every replica answers itself."""


class MS:
    """A microservice: subclass it, set its attributes, mark its endpoints with :class:`EP`.

    Every worker creates its own instance, calls ``setup`` before its first request and ``teardown`` after its
    last one; instances share nothing.

    Attributes:
        pool_size: Requests one replica serves at once.
        replicas: Identical copies, each a process of its own.
        port: Port of replica 0; replica i listens on ``port + i``. 0 = any free port.
        queue_limit: Requests that may wait for a worker of one replica; more are refused. None = any number.
        admission: Which waiting request gets the next free worker: ``"fifo"`` (the one that waits longest) or
            ``"random"`` (any of them).
        runtime: What a worker is. ``"process"``: a process of its own. ``"thread"``: a thread; all of a
            replica share one core. ``"async"``: endpoints are ``async def`` and run on one event loop, at
            most ``pool_size`` at once.
        pinned: Whether a replica of threads, or with an event loop, stays on one core.
        static: Folders of files the front serves, by path prefix: ``{"/static/": "assets"}``, relative to the
            source folder.
        service_name: The name others call it by; set before ``setup``.
    """

    pool_size: ClassVar[int] = 1
    replicas: ClassVar[int] = 1
    port: ClassVar[int] = 0
    queue_limit: ClassVar[int | None] = None
    admission: ClassVar[str] = "fifo"
    runtime: ClassVar[str] = "process"
    pinned: ClassVar[bool] = True
    static: ClassVar[Mapping[str, str]] = {}
    service_name: str = ""

    def setup(self) -> None:
        """Prepare this worker: open files, calibrate, warm up. Called once, before the first request."""

    def teardown(self) -> None:
        """Clean up this worker. Called once, after the last request."""


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """One endpoint of a service class.

    Attributes:
        path: What follows the replica's URL, e.g. ``/epA/`` or ``/orders/{order_id}``.
        name: What a call may say instead of the path.
        method: Name of the method that serves it.
        http_method: The only HTTP method it serves; "" = any.
        key: What event log and model call it within its service: the path, with the HTTP method behind it
            where several endpoints share the path.
    """

    path: str
    name: str
    method: str
    http_method: str
    key: str

    @property
    def address(self) -> str:
        """Path and HTTP method in one text, as the registry has it."""
        return f"{self.path} {self.http_method}" if self.http_method else self.path


class EP:
    """Mark a method as the endpoint for ``path``.

    Args:
        path: Starts with ``/``; matched exactly, except for segments that are parameters:
            ``/orders/{order_id}``.
        name: Alternative to the path in ``Communication.call``; the name of the method by default.
        method: The only HTTP method it serves, such as ``"GET"`` (then also ``HEAD``); "" = any.
    """

    def __init__(self, path: str, *, name: str = "", method: str = "") -> None:
        self.path = path
        self.name = name
        self.method = method

    def __call__(self, method: _Method) -> _Method:
        """Mark the method and return it unchanged."""
        setattr(method, _MARK, self)
        return method


def endpoints_of(service: type[MS]) -> dict[str, EndpointInfo]:
    """Return the endpoints of a class by key: inherited ones first, each class in source order.

    A subclass that overrides an endpoint's method has to repeat ``@EP`` to keep it an endpoint.

    Raises:
        DeploymentError: Two endpoints serve the same requests or share a name, or a path cannot be served.
    """
    marks: dict[str, tuple[EP, str]] = {}
    names: dict[str, str] = {}
    methods = dict.fromkeys(name for kind in reversed(service.__mro__) for name in vars(kind))
    for method in methods:
        function = inspect.getattr_static(service, method)
        mark = getattr(function, _MARK, None)
        if not isinstance(mark, EP):
            continue
        where = f"{service.__module__}.{service.__qualname__}.{method}"
        _check_path(mark.path, where)
        if mark.method not in ("", *METHODS):
            known = ", ".join(METHODS)
            raise DeploymentError(f"method must be one of {known}, got {mark.method!r}", where=where)
        address = f"{mark.path} {mark.method}" if mark.method else mark.path
        if address in marks:
            other = marks[address][1]
            raise DeploymentError(f"path {address!r} is already served by {other!r}", where=where)
        name = mark.name or method
        if "/" in name or name in names:
            taken = names.get(name, "a path, for it contains '/'")
            raise DeploymentError(f"endpoint name {name!r} is already {taken}", where=where)
        names[name] = f"that of {method!r}"
        marks[address] = mark, method
    try:
        routes = Routes(marks).routes
    except ValueError as error:
        raise DeploymentError(str(error), where=f"{service.__module__}.{service.__qualname__}") from None
    found = {}
    for address, (mark, method) in marks.items():
        key = routes[address].key
        found[key] = EndpointInfo(mark.path, mark.name or method, method, mark.method, key)
    return found


def check_service(service: type[MS], *, pool_size: Any, replicas: Any, port: Any) -> dict[str, EndpointInfo]:
    """Check a class and the settings it will run with; return its endpoints by key.

    Raises:
        DeploymentError: Something cannot run; the message names the attribute and its value.
    """
    where = f"{service.__module__}.{service.__qualname__}"
    for name, value, low, high in (
        ("pool_size", pool_size, 1, 1024),
        ("replicas", replicas, 1, 1024),
        ("port", port, 0, 65535),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise DeploymentError(
                f"{name} must be a whole number between {low} and {high}, got {value!r}", where=where
            )
    if service.runtime not in RUNTIMES:
        raise DeploymentError(
            f"runtime must be one of {', '.join(RUNTIMES)}, got {service.runtime!r}", where=where
        )
    endpoints = endpoints_of(service)
    if not endpoints:
        raise DeploymentError(
            "the service has no endpoint", where=where, hint="mark a method with @EP('/path/')"
        )
    for endpoint in endpoints.values():
        waits = inspect.iscoroutinefunction(getattr(service, endpoint.method))
        if waits and service.runtime != "async":
            raise DeploymentError(
                "an 'async def' endpoint needs the async runtime",
                where=f"{where}.{endpoint.method}",
                hint="set runtime = 'async', or write it as 'def': calls run in parallel until their get()",
            )
        if service.runtime == "async" and not waits:
            raise DeploymentError(
                "an endpoint of the async runtime must be 'async def': it would block all others",
                where=f"{where}.{endpoint.method}",
                hint="write 'async def' and await calls, or set runtime = 'thread'",
            )
    return endpoints


def check_queue_limit(limit: Any, service: type[MS]) -> None:
    """Check ``queue_limit``, wherever it was set.

    Raises:
        DeploymentError: It is no number of requests.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise DeploymentError(
            f"queue_limit must be a whole number >= 0 or None, got {limit!r}",
            where=f"{service.__module__}.{service.__qualname__}",
        )


def check_admission(admission: Any, service: type[MS]) -> None:
    """Check ``admission``, wherever it was set.

    Raises:
        DeploymentError: It is no order known.
    """
    if admission not in ADMISSIONS:
        raise DeploymentError(
            f"admission must be one of {', '.join(ADMISSIONS)}, got {admission!r}",
            where=f"{service.__module__}.{service.__qualname__}",
        )


def _check_path(path: Any, where: str) -> None:
    if not isinstance(path, str) or not path.startswith("/") or "?" in path or "#" in path:
        raise DeploymentError(
            f"an endpoint's path must start with '/' and have no '?', got {path!r}", where=where
        )
    problem = template_problem(path)
    if problem:
        raise DeploymentError(f"path {path!r}: {problem}", where=where)
    if path in RESERVED or path.startswith("/mup/"):
        raise DeploymentError(
            f"path {path!r} is reserved", where=where, hint=f"mup answers {', '.join(RESERVED)} itself"
        )
