"""Find the endpoint of a method and a path: templates, matching, and the endpoint's name in the event log.

A template is a path in which whole segments may be parameters: ``/orders/{order_id}/items``. Fronts match
requests with them, callers fill them in. An *address* says in one text what an endpoint serves: its path, and
its HTTP method behind a space if it has one (``/orders/{order_id} PUT``); the registry hands addresses on. A
*key* names the endpoint within its service in logs and models: the path, with the method only where
several endpoints share the path. Neither is what a call writes: that is a path or a name, with the method
beside it (`CallRoutes.find`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlencode

from mup.errors import UsageError

__all__ = [
    "METHODS",
    "WITHOUT_BODY",
    "CallRoutes",
    "Route",
    "Routes",
    "pick",
    "query_string",
    "spelled_with_method",
    "target_of",
    "template_problem",
    "typed",
]

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""HTTP methods an endpoint can be for."""

WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})
"""Methods whose parameters travel in the query string."""


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint, as far as addressing it goes.

    Attributes:
        path: Its path or template.
        method: HTTP method it is for; "" = any.
        key: What logs and models call it within its service.
        names: Its path parameters, in order.
    """

    path: str
    method: str
    key: str
    names: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """What the registry is told."""
        return f"{self.path} {self.method}" if self.method else self.path


@dataclass(slots=True)
class _Node:
    """Where matching stands after some segments."""

    literal: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    methods: dict[str, Route] = field(default_factory=dict)


class Routes:
    """The endpoints of one service, to be found by path.

    Args:
        addresses: Of the endpoints.

    Attributes:
        routes: By address.
        by_path: The routes of each path or template, by method.

    Raises:
        ValueError: Two addresses match the same requests.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        split = {address: _split(address) for address in addresses}
        shared: dict[str, int] = {}
        for path, _ in split.values():
            shared[path] = shared.get(path, 0) + 1
        self.routes: dict[str, Route] = {}
        self.by_path: dict[str, dict[str, Route]] = {}
        self._root = _Node()
        for address, (path, method) in split.items():
            key = address if shared[path] > 1 else path
            route = Route(path, method, key, tuple(_parameters(path)))
            self.routes[address] = route
            self.by_path.setdefault(path, {})[method] = route
            if route.names:
                self._add(route)
        # What is looked up first: the paths that are no templates.
        self._exact = {path: known for path, known in self.by_path.items() if not _parameters(path)}
        self._templates = len(self._exact) < len(self.by_path)

    def find(self, path: str) -> tuple[Mapping[str, Route], tuple[str, ...]] | None:
        """Return the routes that serve a path, by method, and the values of their parameters.

        Args:
            path: As received, percent-encoded. A literal segment is preferred to a parameter.
        """
        known = self._exact.get(path)
        if known is not None:
            return known, ()
        if "%" in path and (known := self._exact.get(unquote(path))) is not None:
            return known, ()
        if not self._templates:
            return None
        # Split before decoding: an encoded slash belongs to its segment.
        return _match(self._root, [unquote(segment) for segment in path[1:].split("/")], 0, ())

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in route.path[1:].split("/"):
            if _is_parameter(segment):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literal.setdefault(segment, _Node())
        other = node.methods.setdefault(route.method, route)
        if other is not route:
            raise ValueError(f"{route.path!r} matches the same requests as {other.path!r}")


class CallRoutes:
    """The endpoints of a service, as its callers need them.

    Args:
        endpoints: Address of each endpoint name, as the registry tells it.
    """

    def __init__(self, endpoints: Mapping[str, str]) -> None:
        self.endpoints = endpoints
        self._routes = Routes(endpoints.values())
        self._known: dict[tuple[str, str], Route] = {}

    def find(self, path: str, method: str) -> Route:
        """Return the endpoint a call means: the one rule for analyzer, runtime and tests.

        Args:
            path: Its name, path or template, or a path with the parameters filled in; the slash in front may
                be missing. A path without an endpoint is returned as it is: the callee answers 404 and knows
                what was meant.
            method: HTTP method; "" = the one of the endpoint.

        Raises:
            UsageError: Several methods share the path, and the call does not say which; or it asks
                the endpoint of a name for a method of others; or the path is what logs call an endpoint.
        """
        known = self._known.get((path, method))
        if known is None:
            known = self._find(path, method)
            # Not for filled-in paths: there is no end of them.
            if path in self.endpoints or path in self._routes.by_path:
                self._known[path, method] = known
        return known

    @property
    def routes(self) -> Iterable[Route]:
        """The endpoints."""
        return self._routes.routes.values()

    def serves(self, route: Route) -> bool:
        """Return whether a route that was found is one of an endpoint."""
        return any(route is own for own in self.routes)

    def _find(self, path: str, method: str) -> Route:
        named = self.endpoints.get(path)
        if named is not None:
            route = self._routes.routes[named]
            if method and pick({route.method: route}, method) is None:
                raise UsageError(
                    f"the endpoint named {path!r} is for {route.method}, not for {method}",
                    hint="leave the method out, or say another path or name",
                )
            return route
        if spelled_with_method(path)[1]:
            plain, verb = spelled_with_method(path)
            raise UsageError(
                f"{path!r} is no path: the HTTP method stands beside it",
                hint=f"write {typed(plain, verb)} as arguments of the call",
            )
        path = path if path.startswith("/") else f"/{path}"
        methods: Mapping[str, Route] | None = self._routes.by_path.get(path)
        if methods is None:
            found = self._routes.find(quote(path, safe="/%"))
            if found is None:
                return Route(path, method, path, tuple(_parameters(path)))
            methods = found[0]
        if method:
            return pick(methods, method) or Route(path, method, path, tuple(_parameters(path)))
        if len(methods) > 1 and "" not in methods:
            raise UsageError(
                f"{path!r} has several methods: {', '.join(sorted(methods))}",
                hint=f"say which: comm.call(..., {typed(path, min(methods))})",
            )
        return methods.get("") or next(iter(methods.values()))


def target_of(
    route: Route, path: str, params: Mapping[str, Any] | None
) -> tuple[str, Mapping[str, Any] | None]:
    """Return the path to send a call to, and the params that do not stand in it.

    Args:
        route: What `CallRoutes.find` returned.
        path: What the call said.
        params: Of the call.

    Raises:
        UsageError: A param of the path is missing, or cannot stand there.
    """
    if not path.startswith("/"):
        # A name has no slash in it.
        path = f"/{path}" if "/" in path else route.path
    if route.names and path == route.path:
        return _fill(path, route.names, params or {})
    return path, params


def query_string(params: Mapping[str, Any]) -> str:
    """Return params as a query string; the values of a list become several parameters of one name.

    Raises:
        UsageError: A value is neither text, number nor a list of them.
    """
    pairs = [
        (name, _text_of(item))
        for name, value in params.items()
        if value is not None
        for item in (value if isinstance(value, list | tuple) else (value,))
    ]
    return urlencode(pairs)


def pick(methods: Mapping[str, Route], method: str) -> Route | None:
    """Return the route that serves a method; None = there is none."""
    route = methods.get(method) or methods.get("")
    if route is None and method == "HEAD":
        return methods.get("GET")
    return route


def _fill(path: str, names: Iterable[str], params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path with its parameters filled in and encoded, and the params that are left.

    Raises:
        UsageError: One is missing, or cannot stand in a path.
    """
    rest = dict(params)
    segments = path.split("/")
    for name in names:
        if name not in rest:
            raise UsageError(f"{path!r} needs the param {name!r}")
        text = _text_of(rest.pop(name))
        if text in ("", ".", ".."):
            raise UsageError(f"{name!r} in {path!r} cannot be {text!r}")
        segments[segments.index(f"{{{name}}}")] = quote(text, safe="")
    return "/".join(segments), rest


def _text_of(value: Any) -> str:
    """Return a value as it stands in paths and query strings.

    Raises:
        UsageError: It is no single value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    # Imported here: a service that only defines endpoints does not need it.
    import msgspec  # noqa: PLC0415

    try:
        plain = msgspec.to_builtins(value, enc_hook=_refuse)
    except (TypeError, ValueError):
        plain = None
    if isinstance(plain, str | int | float):
        return _text_of(plain)
    raise UsageError(f"only texts, numbers and the like fit into a path or query string, got {value!r}")


def spelled_with_method(text: str) -> tuple[str, str]:
    """Return path and method of ``/orders GET``, as logs have it, or ``GET /orders``; else text and ""."""
    path, method = _split(text)
    verb, space, rest = text.partition(" ")
    return (rest, verb) if space and verb in METHODS else (path, method)


def typed(path: str, method: str) -> str:
    """Return how a call says which endpoint it means."""
    return f"{path!r}, method={method!r}" if method else repr(path)


def template_problem(path: str) -> str:
    """Return what is wrong with the parameters of a path, or ""."""
    names = []
    for segment in path[1:].split("/"):
        if _is_parameter(segment):
            names.append(segment[1:-1])
        elif "{" in segment or "}" in segment:
            return f"a parameter is a whole segment, such as /orders/{{order_id}}, not {segment!r}"
    for name in names:
        if not name.isidentifier():
            return f"the name of a parameter must be one of Python, got {name!r}"
        if names.count(name) > 1:
            return f"parameter {name!r} occurs twice"
    if _split(path)[1]:
        return "an HTTP method is given by @EP(path, method=...)"
    return ""


def _split(address: str) -> tuple[str, str]:
    path, space, method = address.rpartition(" ")
    return (path, method) if space and method in METHODS else (address, "")


def _is_parameter(segment: str) -> bool:
    return segment.startswith("{") and segment.endswith("}")


def _parameters(path: str) -> list[str]:
    return [segment[1:-1] for segment in path.split("/") if _is_parameter(segment)]


def _match(
    node: _Node, segments: list[str], position: int, values: tuple[str, ...]
) -> tuple[Mapping[str, Route], tuple[str, ...]] | None:
    if position == len(segments):
        return (node.methods, values) if node.methods else None
    segment = segments[position]
    literal = node.literal.get(segment)
    if literal is not None:
        found = _match(literal, segments, position + 1, values)
        if found is not None:
            return found
    if node.parameter is not None and segment:
        return _match(node.parameter, segments, position + 1, (*values, segment))
    return None


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value)} has no text")
