"""Requests about a replica, or changing it while it runs: ``/mup/status``, ``POST /mup/pool``, ...

Where the registry has a token, it has to be shown here, too; of one that was invented for a run, Prometheus
on this machine is not told, and reads metrics without. Without a token, only this machine may ask. No web
page of a stranger may that happens to be open on it (`mup.runtime.protocol.origin`), and what changes
something (``POST /mup/pool`` with ``{"pool_size": 4}``) has to be JSON: a browser sends that to others only
with their consent.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec

from mup.addresses import is_loopback
from mup.errors import DeploymentError
from mup.runtime.protocol.origin import KnownHosts
from mup.runtime.protocol.run_token import is_run_token
from mup.runtime.protocol.wire import Answer
from mup.runtime.server.http_request import HttpRequest

__all__ = ["MAX_POOL", "POOL_PATH", "barred", "change_pool", "refusal"]

POOL_PATH = "/mup/pool"
_METRICS = "/mup/metrics"
_LOOPBACK = KnownHosts()
MAX_POOL = 1024
"""A worker may be a process: more is a slip of the keyboard."""
MAX_BODY = 1024
"""Bytes; a pool size needs twenty."""
_JSON = "application/json"


class _PoolChange(msgspec.Struct, forbid_unknown_fields=True):
    pool_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_POOL)]


async def change_pool(
    request: HttpRequest, token: str, hosts: KnownHosts, resize: Callable[[int], Awaitable[None]]
) -> Answer:
    """Carry out a request to change the number of workers, or say why not.

    Args:
        request: With its body, unless it is refused.
        token: What it has to show; "" = nothing, if it is from this machine.
        hosts: The names by which this replica is called.
        resize: Changes the number of workers; raises `DeploymentError`.
    """
    problem = refusal(request, token, hosts)
    if problem is not None:
        return problem
    try:
        change = msgspec.json.decode(request.body, type=_PoolChange)
    except msgspec.DecodeError as error:
        return _answer(400, f"{POOL_PATH}: {error}")
    try:
        await resize(change.pool_size)
    except DeploymentError as error:
        return _answer(503, error.message)
    return _answer(200, "")


def barred(request: HttpRequest, token: str, hosts: KnownHosts = _LOOPBACK) -> Answer | None:
    """Return the refusal of a request below ``/mup/``; None = it is allowed."""
    host, origin, site = (
        request.fields.get(name, b"").decode("latin-1") for name in (b"host", b"origin", b"sec-fetch-site")
    )
    if stranger := hosts.stranger(host, origin, site):
        return _answer(403, stranger)
    if token:
        shown = request.fields.get(b"authorization", b"")
        if not hmac.compare_digest(shown, f"Bearer {token}".encode()) and not _is_scrape(request, token):
            whose = (
                "of this run, which 'mup run' says where to find"
                if is_run_token(token)
                else "of the registry"
            )
            problem = f"this needs the token {whose} (MUP_REGISTRY_TOKEN)"
            return _answer(401, problem, **{"WWW-Authenticate": "Bearer"})
    elif not is_loopback(request.peer or "?"):
        return _answer(403, "without a token (MUP_REGISTRY_TOKEN) only this machine may ask")
    return None


def _is_scrape(request: HttpRequest, token: str) -> bool:
    """Whether Prometheus, on this machine, wants metrics, and cannot have been told the token."""
    return (
        is_run_token(token)
        and (request.method, request.path) == ("GET", _METRICS)
        and is_loopback(request.peer or "?")
    )


def refusal(request: HttpRequest, token: str, hosts: KnownHosts) -> Answer | None:
    """Return the answer to who must not change the pool, or asks wrongly; the body is not looked at."""
    problem = barred(request, token, hosts)
    if problem is not None:
        return problem
    fields = request.fields
    if request.method != "POST":
        return _answer(405, f"{POOL_PATH} wants POST", Allow="POST")
    if fields.get(b"content-type", b"").partition(b";")[0].strip().lower() != _JSON.encode():
        return _answer(415, f"{POOL_PATH} wants {_JSON}")
    length = fields.get(b"content-length", b"")
    if not length.isdigit() or int(length) > MAX_BODY:
        return _answer(413, f"{POOL_PATH} wants a body of known length, at most {MAX_BODY} bytes")
    return None


def _answer(status: int, error: str, **headers: str) -> Answer:
    body = msgspec.json.encode({"error": error} if error else {})
    return Answer(status, {"Content-Type": _JSON, **headers}, body)
