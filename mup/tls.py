"""TLS between services: encryption, and certificates that prove the identity of both ends.

Servers have a certificate and its key. Callers check that a certificate they trust has signed it, and that it
is for the host they called: the certificates in the file that ``MUP_TLS_CA`` names, else the system's.

Servers may ask callers for a certificate, too, and check who has signed it (mutual TLS). Services present the
one they serve with; other callers the one that ``MUP_TLS_CERT`` and ``MUP_TLS_KEY`` name.
"""

from __future__ import annotations

import os
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mup.errors import DeploymentError

__all__ = [
    "TLS_CA",
    "TLS_CERT",
    "TLS_KEY",
    "CheckedHandshake",
    "TlsFiles",
    "caller_context",
    "caller_files",
    "client_context",
    "refuse_clear_text",
    "server_context",
    "tls_environment",
    "why_refused",
]

TLS_CA = "MUP_TLS_CA"
"""Environment variable: where registry, services and clients find the certificates they trust."""
TLS_CERT = "MUP_TLS_CERT"
"""Environment variable: the certificate that callers present to servers that ask for one."""
TLS_KEY = "MUP_TLS_KEY"
"""Environment variable: its key."""

_WHERE = "tls"
_ALERT = re.compile(r"\[SSL: \w*ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA)\]")
"""What servers say to callers whose certificate is no good (RFC 8446, section 6.2), in OpenSSL's words."""


_PEM = "name a file of certificates in PEM format ('-----BEGIN CERTIFICATE-----')"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Files in PEM format.

    Attributes:
        cert: Certificate of the servers, followed by intermediate ones if there are any.
        key: Its key, not protected by a passphrase.
        ca: Certificates that callers trust; "" = those of ``MUP_TLS_CA``, or of the system.
        client_ca: Certificates that must have signed the ones of callers; "" = callers need none.
    """

    cert: str
    key: str
    ca: str = ""
    client_ca: str = ""


class CheckedHandshake(ssl.SSLObject):
    """The end of a connection at a server that asks for certificates.

    Attributes:
        outgoing: What is to be sent to the caller. After a handshake that has failed this is the alert that
            says why; event loops close the connection without sending it.
    """

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        """Go on with the handshake; an error keeps the alert, as ``error.alert``."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            error.alert = self.outgoing.read()  # type: ignore[attr-defined] # ours
            raise


class _CheckingContext(ssl.SSLContext):
    """Asks callers for certificates; its handshakes say why they failed."""

    sslobject_class = CheckedHandshake

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **more: Any) -> Any:
        checked = super().wrap_bio(incoming, outgoing, *args, **more)
        assert isinstance(checked, CheckedHandshake)  # noqa: S101 - the class named above
        checked.outgoing = outgoing
        return checked


def tls_environment(files: TlsFiles | None) -> dict[str, str]:
    """Return the environment in which callers find what is theirs of some files."""
    if files is None:
        return {}
    trust = {TLS_CA: files.ca} if files.ca else {}
    return {**trust, TLS_CERT: files.cert, TLS_KEY: files.key}


def caller_files(files: TlsFiles | None = None) -> TlsFiles:
    """Return what a caller presents and trusts: what is not in the files is as the environment says."""
    ca = (files.ca if files else "") or os.environ.get(TLS_CA, "")
    if files is not None:
        return TlsFiles(cert=files.cert, key=files.key, ca=ca)
    return TlsFiles(cert=os.environ.get(TLS_CERT, ""), key=os.environ.get(TLS_KEY, ""), ca=ca)


def caller_context(files: TlsFiles | None = None) -> ssl.SSLContext:
    """Return what `client_context` does, made once for the same files."""
    return _context_for(files, caller_files(files))


@lru_cache(maxsize=8)
def _context_for(files: TlsFiles | None, _known: TlsFiles) -> ssl.SSLContext:
    return client_context(files)


def client_context(files: TlsFiles | None = None) -> ssl.SSLContext:
    """Return what a caller needs.

    Args:
        files: Certificates it trusts, and the one it shows on request; None = as the environment says.

    Raises:
        DeploymentError: A file cannot be used.
    """
    known = caller_files(files)
    try:
        context = ssl.create_default_context(cafile=known.ca or None)
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"no certificates to trust in {known.ca!r}: {_reason(error)}",
            where=f"{_WHERE}.ca" if files and files.ca else TLS_CA,
            hint=_PEM,
        ) from error
    if known.cert or known.key:
        named = (f"{_WHERE}.cert", f"{_WHERE}.key") if files is not None else (TLS_CERT, TLS_KEY)
        _load_certificate(context, known, named)
    return context


def refuse_clear_text(registry: str, files: TlsFiles | None) -> None:
    """Refuse a registry without TLS where there are certificates: half a deployment cannot be encrypted.

    Args:
        registry: Its URL.
        files: What a project or its operator names; None = nothing.

    Raises:
        DeploymentError: They do not go together.
    """
    if files is not None and not registry.startswith("https:"):
        raise DeploymentError(
            f"the registry at {registry} is not encrypted, but there is a certificate for what uses it",
            where=_WHERE,
            hint="start the registry with TLS, too, and name it by its https:// URL; or leave out [tls]",
        )


def why_refused(error: BaseException) -> str:
    """Return in words why a server refused the certificate of its caller; "" = it did not."""
    alert = _ALERT.search(str(error))
    if alert is None:
        return ""
    if alert[1] == "CERTIFICATE_REQUIRED":
        return f"it wants a certificate, and this caller has none: set {TLS_CERT} and {TLS_KEY}"
    return f"it does not accept the certificate of this caller: {alert[1].replace('_', ' ').lower()}"


def server_context(files: TlsFiles, *hosts: str) -> ssl.SSLContext:
    """Return what a server needs, after a trial: callers could use it now.

    Args:
        files: Its certificate and key, what its callers trust, and whether they need certificates, too.
        hosts: What its callers call it.

    Raises:
        DeploymentError: A file is missing or wrong, or the callers would refuse the certificate.
    """
    context = _checking(files.client_ca) if files.client_ca else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Connections are kept, so nothing is resumed. And a kept connection on which something arrives while it
    # is idle counts as closed by the server: tickets would arrive there.
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    _load_certificate(context, files, (f"{_WHERE}.cert", f"{_WHERE}.key"))
    trust = client_context(files)
    for host in hosts:
        _try(context, trust, host, files)
    return context


def _checking(client_ca: str) -> ssl.SSLContext:
    """Return a context that asks callers for certificates.

    Raises:
        DeploymentError: There are none that could have signed them.
    """
    context = _CheckingContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(client_ca)
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"no certificates to check callers with in {client_ca!r}: {_reason(error)}",
            where=f"{_WHERE}.client_ca",
            hint=_PEM,
        ) from error
    return context


def _load_certificate(context: ssl.SSLContext, files: TlsFiles, named: tuple[str, str]) -> None:
    """Load a certificate and its key; ``named`` is what names them.

    Raises:
        DeploymentError: One is missing or wrong, or they do not belong together.
    """
    for where, file in zip(named, (files.cert, files.key), strict=True):
        _check_readable(where, file)
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"certificate {files.cert!r} and key {files.key!r} cannot be used: {_reason(error)}",
            where=named[0].removesuffix(".cert"),
            hint="both in PEM format; the key must be the one of the certificate, without a passphrase",
        ) from error


def _check_readable(where: str, file: str) -> None:
    try:
        with open(file, "rb"):  # noqa: PTH123 - a name, not a path of ours
            pass
    except OSError as error:
        raise DeploymentError(f"cannot read {file!r}: {error.strerror}", where=where) from error


def _no_passphrase() -> str:
    # Else OpenSSL would ask on the terminal.
    raise ValueError("the key is protected by a passphrase, and there is no terminal to type it on")


def _try(server: ssl.SSLContext, client: ssl.SSLContext, host: str, files: TlsFiles) -> None:
    """Let a caller that presents what a server serves with shake hands with it, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = client.wrap_bio(to_client, to_server, server_hostname=host)
    callee = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        # Each reads what the other one has written: two flights each, whatever the version of TLS.
        for side in (caller, callee) * 3:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        if side is callee:
            raise DeploymentError(
                f"services that trust {files.client_ca} would refuse calls with {files.cert!r}:"
                f" {error.verify_message}",
                where=f"{_WHERE}.cert",
                hint="services call each other with the certificate they serve with: it must be signed by"
                " what tls.client_ca holds, and be for clients, too",
            ) from error
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
