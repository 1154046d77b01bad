"""Single questions to a registry, by the launcher and the command line."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from mup.errors import CommunicationError, DeploymentError
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import RawRequest, address_of
from mup.runtime.client.sockets import Connection
from mup.runtime.protocol.run_token import find_token
from mup.tls import TlsFiles, refuse_clear_text

__all__ = ["RegistryClient"]

_SECONDS = 3.0
"""To connect, and to answer; a registry takes a millisecond."""
_JSON = {"Content-Type": "application/json"}


class RegistryClient:
    """Questions and statements to one registry.

    Args:
        url: Where it listens.
        token: What it wants to see; "" = what the environment says, or the run it belongs to has kept.
        tls: The certificates to trust and to show; None = as the environment says, if it speaks TLS.

    Attributes:
        tls: The same, for the services it lists.
        encrypted: Whether it speaks TLS: then no service it lists is sent anything in clear text.

    Raises:
        DeploymentError: It is not encrypted, although there are certificates for it.
    """

    def __init__(self, url: str, token: str = "", tls: TlsFiles | None = None) -> None:
        refuse_clear_text(url, tls)
        self._url = url
        self.tls = tls
        self.encrypted = url.startswith("https:")
        token = token or find_token(url)
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

    def services(self) -> dict[str, list[dict[str, Any]]]:
        """Return the live replicas by service; raises as :meth:`get` does."""
        found: dict[str, list[dict[str, Any]]] = {}
        after: str | None = ""
        while after is not None:
            page = self.get(f"/services?after={quote(after, safe='')}" if after else "/services")
            found |= page["services"]
            after = page.get("next")
        return found

    def _exchange(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        try:
            connection = Connection(address_of(self._url), _SECONDS, self.tls)
            headers = self._headers if body is None else {**self._headers, **_JSON}
            response = connection.ask(RawRequest(method, path, headers, body), _SECONDS)
            connection.close()
            answer = msgspec.json.decode(response.body)
        except (OSError, BrokenError, CommunicationError, msgspec.DecodeError) as error:
            raise DeploymentError(
                f"the registry at {self._url} does not answer: {str(error) or type(error).__name__}",
                hint="is the project running? start it with 'mup run'",
            ) from error
        if response.status != 200 or not isinstance(answer, dict):
            reason = answer.get("error", response.status) if isinstance(answer, dict) else response.status
            raise DeploymentError(f"the registry at {self._url} refuses: {reason}")
        return answer
