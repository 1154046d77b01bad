"""Endpoint a request reaches, and the arguments its method is called with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mup.routes import Routes
from mup.runtime.endpoint.arguments import Arguments, arguments_of
from mup.service import MS, EndpointInfo

if TYPE_CHECKING:
    from mup.runtime.endpoint.served_request import ServedRequest

__all__ = ["Dispatch"]


class Dispatch:
    """The endpoints of one service class, prepared for serving.

    Args:
        service: The class.
        endpoints: Its endpoints by key.

    Attributes:
        endpoints: By key.
        routes: The same, to be found by path and method.
        names: Parameters of the paths, by key; only of endpoints that have some.
        arguments: Of the endpoints whose methods take more than ``comm``, by key.

    Raises:
        DeploymentError: A parameter of a method cannot be filled.
    """

    def __init__(self, service: type[MS], endpoints: dict[str, EndpointInfo]) -> None:
        self.endpoints = endpoints
        self.routes = Routes(endpoint.address for endpoint in endpoints.values())
        self.names = {route.key: route.names for route in self.routes.routes.values() if route.names}
        self.arguments: dict[str, Arguments] = {}
        for key, endpoint in endpoints.items():
            arguments = arguments_of(service, endpoint, self.names.get(key, ()))
            if arguments is not None:
                self.arguments[key] = arguments

    def values(self, key: str, comm: ServedRequest) -> dict[str, Any]:
        """Return what the method of an endpoint is called with besides ``comm``.

        Raises:
            BadRequestError: The request has something else.
        """
        arguments = self.arguments.get(key)
        if arguments is not None:
            return arguments.values(comm.content)
        comm.check_params()
        return {}
