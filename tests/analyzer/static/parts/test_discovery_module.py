"""Which classes are services, and which methods are endpoints."""

from __future__ import annotations

from probing import Probe

from analyzer.static.discovery import client_classes, endpoint_methods, service_classes, settings

MODULE = """
from mup import MS, EP, Client
PATH = "/x/"

class Base(MS):
    pool_size = 3

class A(Base):
    @EP(PATH, name="ex")
    def x(self, comm):
        pass

class User(Client):
    def scenario(self, comm):
        pass
"""


def test_services_clients_and_their_endpoints(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    modules = [done.function.module]
    found = service_classes(done.walk.names, modules, done.walk.diagnostics)
    assert list(found) == ["A"]
    (endpoint,) = endpoint_methods(found["A"], done.walk)
    assert (endpoint.path, endpoint.name) == ("/x/", "ex")
    assert settings(found["A"], {}, done.walk).pool_size == 3
    assert settings(found["A"], {"pool_size": 5}, done.walk).pool_size == 5
    assert list(client_classes(done.walk.names, modules)) == ["User"]
