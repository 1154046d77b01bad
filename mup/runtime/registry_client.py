"""How does something that is no service ask a registry, once? The launcher and the command line."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from mup.errors import DeploymentError
from mup.runtime.http_client import BrokenError, Connection, RawRequest, address_of
from mup.tls import TlsFiles

__all__ = ["RegistryClient"]

_SECONDS = 3.0


class RegistryClient:
    """Questions and statements to one registry.

    Args:
        url: Where it listens.
        token: What it wants to see; "" = nothing.
        tls: Whom to trust, and what to present, if it speaks TLS; None = as the environment says.

    Attributes:
        tls: The same, for whom it lists.
    """

    def __init__(self, url: str, token: str = "", tls: TlsFiles | None = None) -> None:
        self._url = url
        self.tls = tls
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str) -> dict[str, Any]:
        """Return the answer to a question.

        Raises:
            DeploymentError: There is no registry, or it refuses.
        """
        return self._exchange("GET", path, None)

    def post(self, path: str, data: dict[str, Any]) -> dict[str, Any]:
        """Tell the registry something; raises as :meth:`get` does."""
        return self._exchange("POST", path, msgspec.json.encode(data))

    def _exchange(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        try:
            connection = Connection(address_of(self._url), _SECONDS, self.tls)
            try:
                connection.send(RawRequest(method, path, self._headers, body), _SECONDS)
                response = connection.receive(time.monotonic() + _SECONDS)
            finally:
                connection.close()
            answer = msgspec.json.decode(response.body)
        except (OSError, BrokenError, msgspec.DecodeError) as error:
            raise DeploymentError(
                f"the registry at {self._url} does not answer: {str(error) or type(error).__name__}",
                hint="is the project running? start it with 'mup run'",
            ) from error
        if response.status != 200 or not isinstance(answer, dict):
            reason = answer.get("error", response.status) if isinstance(answer, dict) else response.status
            raise DeploymentError(f"the registry at {self._url} refuses: {reason}")
        return answer
