"""Certificates of an authority that lives as long as a test, and requests with one of them."""

from __future__ import annotations

import datetime as dt
import http.client
import ssl
from pathlib import Path

import trustme

from mup.tls import TlsFiles


class Authority:
    """Issues certificates into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca = trustme.CA()
        self.file = folder / f"ca{id(self)}.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def issue(self, name: str, *hosts: str, until: dt.datetime | None = None) -> TlsFiles:
        """Write a certificate and its key."""
        issued = self._ca.issue_cert(*(hosts or ("127.0.0.1",)), not_after=until)
        cert, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)
        return TlsFiles(cert=str(cert), key=str(key), ca=str(self.file))


def ask(
    url: str, path: str, ca: str, presented: TlsFiles | None = None, token: str = ""
) -> tuple[int, bytes]:
    """Send a request as a stranger to mup would."""
    assert url.startswith("https://")
    context = ssl.create_default_context(cafile=ca)
    if presented is not None:
        context.load_cert_chain(presented.cert, presented.key)
    connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=30, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
