"""Sessions, kept with the customers they belong to."""

from __future__ import annotations

import secrets
import time

from acmeair.work import compute, milliseconds
from mup import EP, MS, Communication

DAY = 24 * 60 * 60 * 1000
"""How long a session lives, in milliseconds."""


def now() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def split(sess: str) -> tuple[str, str]:
    """Return customer and session id of a session as its cookie names it."""
    customer, _, session = sess.rpartition("-")
    return customer, session


class Auth(MS):
    """Makes, checks and ends sessions."""

    pool_size = 1
    port = 9101

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.work_ms = milliseconds("MUP_AUTH_MS", 5)

    @EP("/acmeair-auth-service/rest/api/authtoken/byuserid/", name="createSession", method="POST")
    def create_session(self, comm: Communication, user: str = "null") -> None:
        """Begin a session of a customer."""
        created, session = now(), secrets.token_hex(16)
        compute(self.work_ms)
        document = {"_id": session, "lastAccessedTime": created, "timeoutTime": created + DAY}
        comm.query(
            "aair",
            "addSession",
            "n_customer",
            # As the id is new, adding to the set of sessions appends to them.
            {"$command": "update", "filter": {"_id": user}, "update": {"$addToSet": {"sessions": document}}},
        ).get()
        comm.respond({**document, "_id": f"{user}-{session}", "customerid": user})

    @EP("/acmeair-auth-service/rest/api/authtoken/delete", name="deleteSession", method="POST")
    def delete_session(self, comm: Communication, sess: str) -> None:
        """End a session."""
        compute(self.work_ms)
        remove_session(comm, sess)
        comm.respond({"status": "success"})

    @EP("/acmeair-auth-service/rest/api/authtoken/validate", name="validateSession", method="POST")
    def validate_session(self, comm: Communication, sess: str) -> None:
        """Return whose session it is; nothing if it has expired or never was one."""
        customer, session = split(sess)
        found = comm.query(
            "aair", "findSession", "n_customer", {"_id": customer, "sessions._id": session}
        ).get()
        compute(self.work_ms)
        sessions = found[0]["sessions"] if found else []
        timeout = next((s["timeoutTime"] for s in sessions if s["_id"] == session), None)
        if timeout is None:
            comm.respond({})
        elif timeout < now():
            remove_session(comm, sess)
            comm.respond({})
        else:
            comm.respond({"_id": sess, "customerid": customer})

    @EP("/acmeair-auth-service/rest/api/authtoken/status", name="checkStatus", method="GET")
    def check_status(self, comm: Communication) -> None:
        """Say that it is there."""
        comm.respond("OK")


def remove_session(comm: Communication, sess: str) -> None:
    """Take a session from its customer."""
    customer, session = split(sess)
    update = {"$pull": {"sessions": {"_id": session}}}
    comm.query(
        "aair",
        "removeSession",
        "n_customer",
        {"$command": "update", "filter": {"_id": customer}, "update": update},
    ).get()
