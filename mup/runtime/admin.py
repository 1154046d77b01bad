"""Who may ask a replica about itself, or change it while it runs? ``/mup/status``, ``POST /mup/pool``, ...

Where the registry has a token, it has to be shown here, too. Without one, only this machine may ask. What
changes something (``POST /mup/pool`` with ``{"pool_size": 4}``) is not taken from a web page either that
happens to be open on it: a browser sends JSON to others only with their consent.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec

from mup.addresses import is_loopback
from mup.errors import DeploymentError
from mup.runtime.http_request import HttpRequest
from mup.runtime.wire import Answer

__all__ = ["MAX_POOL", "POOL_PATH", "barred", "change_pool", "refusal"]

POOL_PATH = "/mup/pool"
MAX_POOL = 1024
MAX_BODY = 1024
_JSON = "application/json"


class _PoolChange(msgspec.Struct, forbid_unknown_fields=True):
    pool_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_POOL)]


async def change_pool(request: HttpRequest, token: str, resize: Callable[[int], Awaitable[None]]) -> Answer:
    """Carry out a request to change the number of workers, or say why not.

    Args:
        request: With its body, unless it is refused.
        token: What it has to show; "" = nothing, if it is from this machine.
        resize: Changes the number of workers; raises `DeploymentError`.
    """
    problem = refusal(request, token)
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


def barred(request: HttpRequest, token: str) -> Answer | None:
    """Return the answer to who must not ask for anything below ``/mup/``; None = who may."""
    if token:
        shown = request.fields.get(b"authorization", b"")
        if not hmac.compare_digest(shown, f"Bearer {token}".encode()):
            problem = "this needs the token of the registry (MUP_REGISTRY_TOKEN)"
            return _answer(401, problem, **{"WWW-Authenticate": "Bearer"})
    elif not is_loopback(request.peer or "?"):
        return _answer(403, "without a token (MUP_REGISTRY_TOKEN) only this machine may ask")
    return None


def refusal(request: HttpRequest, token: str) -> Answer | None:
    """Return the answer to who must not change the pool, or asks wrongly; the body is not looked at."""
    problem = barred(request, token)
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
