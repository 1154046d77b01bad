"""What may a call or a query address?"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mup.errors import did_you_mean

__all__ = ["Catalogue"]


class Catalogue:
    """The services, endpoints and databases of an application.

    Args:
        endpoints: Per service, every way to address an endpoint (path or name) with its path.
        databases: Names of the databases, None if they are not known (then every name is fine).
    """

    def __init__(
        self, endpoints: Mapping[str, Mapping[str, str]], databases: Collection[str] | None = None
    ) -> None:
        self._endpoints = endpoints
        self._databases = databases

    def has_service(self, name: str) -> bool:
        """Return whether a service of this name exists."""
        return name in self._endpoints

    def path(self, service: str, address: str) -> str | None:
        """Return the path of the endpoint a call addresses by path or name; None if there is none."""
        return self._endpoints[service].get(address)

    def service_hint(self, name: str) -> str:
        """Return the remedy for a service nobody defines."""
        return did_you_mean(name, list(self._endpoints))

    def endpoint_hint(self, service: str, address: str) -> str:
        """Return the remedy for an endpoint the service does not have."""
        return did_you_mean(address, list(self._endpoints[service]))

    def database_hint(self, name: str) -> str | None:
        """Return the remedy for a database the project does not have; None if it has it."""
        if self._databases is None or name in self._databases:
            return None
        return did_you_mean(name, list(self._databases)) + "; add it to mup.toml"
