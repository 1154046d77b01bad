"""Services, endpoints and databases that calls and queries may address."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mup.errors import UsageError, did_you_mean
from mup.names import name_problem
from mup.routes import CallRoutes

__all__ = ["Catalogue"]


class Catalogue:
    """The services, endpoints and databases of an application.

    Args:
        endpoints: Per service, the address of each endpoint name: path, and HTTP method if it is for one.
        databases: Names of the databases, None if they are not known (then every name is fine).
    """

    def __init__(
        self, endpoints: Mapping[str, Mapping[str, str]], databases: Collection[str] | None = None
    ) -> None:
        self._endpoints = endpoints
        self._routes: dict[str, CallRoutes] = {}
        self._databases = databases

    def has_service(self, name: str) -> bool:
        """Return whether a service of this name exists."""
        return name in self._endpoints

    def key(self, service: str, path: str, method: str) -> str | None:
        """Return the key of the endpoint a call addresses; None if there is none, or several are meant.

        Args:
            service: A service there is.
            path: Path, template or name of the endpoint; or a path with its parameters filled in.
            method: HTTP method; "" = the one of the endpoint.
        """
        routes = self._routes_of(service)
        try:
            route = routes.find(path.partition("?")[0], method)
        except UsageError:
            return None
        return route.key if routes.serves(route) else None

    def service_hint(self, name: str) -> str:
        """Return the remedy for a service that is not defined."""
        return did_you_mean(name, list(self._endpoints))

    def endpoint_hint(self, service: str, path: str, method: str) -> str:
        """Return the remedy for a call of an endpoint the service does not have: what to write instead."""
        routes = self._routes_of(service)
        path = path.partition("?")[0]
        try:
            routes.find(path, method)
            other = routes.find(path, "")
        except UsageError as error:
            return f"{error.message}; {error.hint}"
        if method and routes.serves(other):
            return f"{path!r} is for {other.method}"
        paths = (route.path for route in routes.routes)
        return did_you_mean(path, list(dict.fromkeys([*routes.endpoints, *paths])))

    def _routes_of(self, service: str) -> CallRoutes:
        if service not in self._routes:
            self._routes[service] = CallRoutes(self._endpoints[service])
        return self._routes[service]

    def database_problem(self, name: str) -> tuple[str, str] | None:
        """Return what is wrong with the name of a database, and the remedy; None if nothing is."""
        problem = name_problem(name)
        if problem:
            return f"no database can be called {name!r}", problem
        if self._databases is None or name in self._databases:
            return None
        hint = did_you_mean(name, list(self._databases)) + "; add it to mup.toml"
        return f"the project has no database {name!r}", hint
