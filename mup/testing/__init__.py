"""Test services without sockets, processes or a registry: `TestClient`; for pytest, ``mup_client``."""

from mup.testing.client import Answer, TestClient
from mup.testing.stubs import StubCall

__all__ = ["Answer", "StubCall", "TestClient"]
