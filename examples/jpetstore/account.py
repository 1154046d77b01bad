"""Accounts: who customers are, whether they are signed on, and what they like to see."""

from __future__ import annotations

import secrets
from typing import Any

from mup import EP, MS, Communication
from mup.errors import QueryError

PROFILE = ("langpref", "favcategory")
SWITCHES = ("mylistopt", "banneropt")
CONTACT = ("email", "firstname", "lastname", "addr1", "addr2", "city", "state", "zip", "country", "phone")


class Account(MS):
    """Signing on and off; a session is a document."""

    pool_size = 1
    port = 9110

    @EP("/signon/", method="POST")
    def signon(self, comm: Communication, username: str = "", password: str = "") -> None:
        """Open a session and return its id."""
        wanted = {"_id": username, "password": password}
        if not comm.query("jps", "findSignon", "signon", wanted).get():
            comm.respond({"error": "wrong user name or password"}, status=403)
            return
        session = secrets.randbits(63)
        document = {"_id": session, "username": username}
        comm.query("jps", "insertSession", "sessions", {"$command": "insert", "documents": [document]}).get()
        comm.respond(str(session))

    @EP("/sessuser/", method="GET")
    def get_session_user(self, comm: Communication, sessid: int) -> None:
        """Return the account whose session this is, with everything a page shows of it."""
        sessions = comm.query("jps", "findSession", "sessions", {"_id": sessid}).get()
        if not sessions:
            comm.respond({"error": "no such session"}, status=403)
            return
        user = sessions[0]["username"]
        accounts = comm.query("jps", "findAccount", "account", {"_id": user}).get()
        profiles = comm.query("jps", "findProfile", "profile", {"_id": user}).get()
        favourite = profiles[0]["favcategory"]
        banners = comm.query("jps", "findBanner", "bannerdata", {"_id": favourite}).get()
        banner = banners[0]["bannername"] if banners else ""
        comm.respond({**accounts[0], **profiles[0], "bannername": banner, "username": user})

    @EP("/signout/", method="DELETE")
    def signout(self, comm: Communication, sessid: int) -> None:
        """Close a session."""
        closed = {"$command": "delete", "filter": {"_id": sessid}}
        comm.query("jps", "deleteSession", "sessions", closed).get()
        comm.respond()

    @EP("/newaccount/", method="POST")
    def new_account(self, comm: Communication, username: str, password: str) -> None:
        """Make an account of a form."""
        form = comm.params
        signon = {"_id": username, "password": password}
        try:
            comm.query("jps", "insertSignon", "signon", {"$command": "insert", "documents": [signon]}).get()
        except QueryError:
            comm.respond({"error": f"user name {username!r} is taken"}, status=409)
            return
        account = {"_id": username, "status": "OK", **chosen(form, CONTACT)}
        profile = {"_id": username, **chosen(form, PROFILE), **{name: int(name in form) for name in SWITCHES}}
        comm.query("jps", "insertAccount", "account", {"$command": "insert", "documents": [account]}).get()
        comm.query("jps", "insertProfile", "profile", {"$command": "insert", "documents": [profile]}).get()
        comm.respond()


def chosen(form: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return these fields of a form."""
    return {name: form.get(name, "") for name in names}
