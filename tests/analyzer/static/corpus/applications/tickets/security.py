"""Permissions of users."""

import functools
import hmac
from dataclasses import dataclass, field

from mup import Communication
from mup.errors import CommunicationError


@dataclass(frozen=True)
class Principal:
    id: str
    scopes: frozenset[str] = field(default_factory=frozenset)

    def may(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class Unauthorized(Exception):
    status = 401


class Denied(Unauthorized):
    status = 403


async def principal(comm: Communication) -> Principal:
    """Tokens are asked for at the identity provider, API keys in the database."""
    key = comm.headers.get("x-api-key")
    if key is not None:
        rows = await comm.query("auth", "api_key", "keys", {"key": key})
        if not rows or not hmac.compare_digest(rows[0].get("key", ""), key):
            raise Unauthorized("invalid key")
        return Principal(rows[0].get("owner", ""), frozenset(rows[0].get("scopes", ())))
    scheme, _, token = comm.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer":
        raise Unauthorized("no credentials")
    try:
        claims = await comm.call("Identity", "/introspect", {"token": token}, timeout=1.0)
    except CommunicationError as error:
        raise Unauthorized("cannot check the token") from error
    if not claims.get("active"):
        raise Unauthorized("token has expired")
    return Principal(claims["sub"], frozenset(claims.get("scope", "").split()))


def requires(scope: str):
    """Check before the endpoint runs, and hand it who asks."""

    def decorate(function):
        @functools.wraps(function)
        async def wrapper(self, comm: Communication) -> None:
            try:
                who = await principal(comm)
                if not who.may(scope):
                    raise Denied(scope)
            except Unauthorized as error:
                comm.respond({"error": str(error)}, status=error.status)
                return
            await function(self, comm, who)

        return wrapper

    return decorate


def logged(function):
    """Note who did what; used on endpoints and on their helpers."""

    @functools.wraps(function)
    async def wrapper(self, comm, *args):
        self.calls[function.__name__] = self.calls.get(function.__name__, 0) + 1
        return await function(self, comm, *args)

    return wrapper
