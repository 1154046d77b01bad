"""The users."""

from __future__ import annotations

import secrets

from mup import EP, MS, Communication
from tms.documents import respond_pretty
from tms.work import compute, milliseconds


class Ums(MS):
    """Users."""

    pool_size = 1
    port = 9103

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.work_ms = milliseconds("MUP_UMS_MS", 8)

    @EP("/getAllUsers", name="GetAllUsers", method="GET")
    def get_all_users(self, comm: Communication) -> None:
        """Return all users."""
        users = comm.query("tms", "allUsers", "users", {}).get()
        compute(self.work_ms)
        respond_pretty(comm, users)

    @EP("/userById", name="UserById", method="GET")
    def user_by_id(self, comm: Communication, id: str) -> None:  # noqa: A002 - as callers call it
        """Return one user, null if there is none."""
        users = comm.query("tms", "userById", "users", {"_id": id}).get()
        compute(self.work_ms)
        comm.respond(users[0] if users else None)

    @EP("/emailInUse", name="EmailInUse", method="GET")
    def email_in_use(self, comm: Communication, email: str) -> None:
        """Return the id of the user with this address, a new one if there is none."""
        users = comm.query("tms", "userByEmail", "users", {"email": email}).get()
        compute(self.work_ms)
        comm.respond({"id": users[0]["_id"] if users else secrets.token_hex(12)})
