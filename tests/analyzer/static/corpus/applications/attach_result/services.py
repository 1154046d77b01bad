"""Endpoints return their answer, as in Flask; a decorator responds."""

import functools
from http import HTTPStatus

from mup import EP, MS, Communication
from mup.errors import CallError


class HTTPError(Exception):
    def __init__(self, status: int, detail: str = "") -> None:
        self.status = status
        self.detail = detail or HTTPStatus(status).phrase


def answers(function):
    """Respond what is returned or raised."""

    @functools.wraps(function)
    def wrapper(self, comm, *args, **kwargs):
        try:
            result = function(self, comm, *args, **kwargs)
        except HTTPError as error:
            comm.respond({"detail": error.detail}, status=error.status)
            return
        body, status = result if isinstance(result, tuple) else (result, 200)
        comm.respond(body, status=status)

    return wrapper


def require(*roles):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(self, comm, *args, **kwargs):
            if comm.headers.get("x-role") not in roles:
                raise HTTPError(403)
            return function(self, comm, *args, **kwargs)

        return wrapper

    return decorate


class Library(MS):
    @EP("/books", method="GET", name="books")
    @answers
    def books(self, comm: Communication):
        return comm.query("library", "books", "books", {}).get()

    @EP("/books/{id}", method="GET", name="book")
    @answers
    def book(self, comm: Communication, id: str):
        rows = comm.query("library", "book", "books", {"_id": id}).get()
        if not rows:
            raise HTTPError(404)
        return rows[0]

    @EP("/books/{id}/lend", method="POST")
    @answers
    @require("librarian", "admin")
    def lend(self, comm: Communication, id: str):
        try:
            member = comm.call("Members", "/check", {"card": comm.params.get("card")}).get()
        except CallError as error:
            raise HTTPError(402 if error.status == 402 else 502) from error
        if member["lent"] >= 5:
            return {"error": "too many"}, 409
        comm.query("library", "lend", "loans", {"$insert": [{"book": id}]}).get()
        return {"book": id}, 201

    @require("admin")
    @EP("/books", method="DELETE", name="purge")
    def purge(self, comm: Communication):
        comm.query("library", "purge", "books", {"$delete": {"filter": {}}}).get()
        comm.respond(None, status=204)

    @EP("/fines", method="GET")
    @require("admin")
    @answers
    def fines(self, comm: Communication):
        return comm.query("library", "fines", "fines", {}).get()


class Members(MS):
    @EP("/check")
    @answers
    def check(self, comm: Communication, card: str | None = None):
        loans = comm.query("library", "loans", "loans", {"card": card}).get()
        return {"lent": len(loans)}
