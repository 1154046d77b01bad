"""How is what travels between services encrypted, and how does a caller know whom it talks to?

Servers have a certificate and its key. Callers check that a certificate they trust has signed it, and that it
is for the host they called: the certificates in the file that ``MUP_TLS_CA`` names, else the system's.
"""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass

from mup.errors import DeploymentError

__all__ = ["TLS_CA", "TlsFiles", "client_context", "server_context"]

TLS_CA = "MUP_TLS_CA"
"""Environment variable: where registry, services and clients find the certificates they trust."""

_WHERE = "tls"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Files in PEM format.

    Attributes:
        cert: Certificate of the servers, followed by intermediate ones if there are any.
        key: Its key, not protected by a passphrase.
        ca: Certificates that callers trust; "" = those of ``MUP_TLS_CA``, or of the system.
    """

    cert: str
    key: str
    ca: str = ""


def client_context(ca: str = "") -> ssl.SSLContext:
    """Return what a caller needs.

    Args:
        ca: File of the certificates to trust; "" = as the environment says.

    Raises:
        DeploymentError: The file cannot be used.
    """
    file = ca or os.environ.get(TLS_CA, "")
    try:
        return ssl.create_default_context(cafile=file or None)
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"no certificates to trust in {file!r}: {_reason(error)}",
            where=f"{_WHERE}.ca" if ca else TLS_CA,
            hint="name a file of certificates in PEM format ('-----BEGIN CERTIFICATE-----')",
        ) from error


def server_context(files: TlsFiles, *hosts: str) -> ssl.SSLContext:
    """Return what a server needs, after a trial: callers could use it now.

    Args:
        files: Its certificate and key, and whom its callers trust.
        hosts: What its callers call it.

    Raises:
        DeploymentError: A file is missing or wrong, or the callers would refuse the certificate.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # Connections are kept, so nothing is resumed. And a kept connection on which something arrives while it
    # is idle counts as closed by the server: tickets would arrive there.
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    for name, file in (("cert", files.cert), ("key", files.key)):
        _check_readable(name, file)
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"certificate {files.cert!r} and key {files.key!r} cannot be used: {_reason(error)}",
            where=_WHERE,
            hint="both in PEM format; the key must be the one of the certificate, without a passphrase",
        ) from error
    trust = client_context(files.ca)
    for host in hosts:
        _try(context, trust, host, files)
    return context


def _check_readable(name: str, file: str) -> None:
    try:
        with open(file, "rb"):  # noqa: PTH123 - a name, not a path of ours
            pass
    except OSError as error:
        raise DeploymentError(f"cannot read {file!r}: {error.strerror}", where=f"{_WHERE}.{name}") from error


def _no_passphrase() -> str:
    # Else OpenSSL would ask on the terminal.
    raise ValueError("the key is protected by a passphrase, and nobody is there to type it in")


def _try(server: ssl.SSLContext, client: ssl.SSLContext, host: str, files: TlsFiles) -> None:
    """Let a caller shake hands with a server, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = client.wrap_bio(to_client, to_server, server_hostname=host)
    callee = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        # Each reads what the other one has written: two flights each, whatever the version of TLS.
        for side in (caller, callee) * 3:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        trusted = files.ca or os.environ.get(TLS_CA) or "the system"
        raise DeploymentError(
            f"callers that trust {trusted} would refuse {files.cert!r} for {host!r}: {error.verify_message}",
            where=f"{_WHERE}.cert",
            hint="the certificate must be valid today, signed by what tls.ca holds, and for the host that"
            " callers use: its address or name among the certificate's alternative names",
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        # Without the place in OpenSSL's own source that its text ends with.
        return (error.reason or str(error)).replace("_", " ").lower()
    return getattr(error, "strerror", None) or str(error)
