"""The session of a request: what ``main`` asks ``auth`` about its cookie."""

from __future__ import annotations

from enum import StrEnum

from mup import Communication
from mup.communication import Cookie

COOKIE = "sessionid"
FORGOTTEN = {COOKIE: Cookie(value="", max_age=0)}


class SessionCheck(StrEnum):
    """The endpoint of ``auth`` that is asked.

    The AcmeAir whose study was published asks ``createSession``, which makes a session without a user and so
    calls every cookie valid.
    """

    VALIDATE = "validateSession"
    CREATE = "createSession"


def customer_of(comm: Communication, check: SessionCheck) -> str | None:
    """Return the customer whose session the request's cookie names, None if there is none."""
    session = comm.cookies.get(COOKIE)
    if not session:
        return None
    answer = comm.call("auth", check, {"sess": session}).get()
    customer: str | None = answer.get("customerid")
    return customer


def refuse(comm: Communication) -> None:
    """Answer a request that needs a session and has none."""
    comm.respond({"error": "log in first"}, status=403)
