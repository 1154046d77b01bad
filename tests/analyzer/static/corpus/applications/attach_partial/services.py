"""Shorthands of the decorator."""

from functools import partial

import mup
from mup import EP, MS, Communication
from mup import EP as endpoint

get = partial(EP, method="GET")
post = partial(EP, method="POST")

PREFIX = "/api/v1"


def put(path: str) -> EP:
    return EP(f"{PREFIX}{path}", method="PUT")


class Todo(MS):
    @get("/todos")
    def all(self, comm: Communication) -> None:
        comm.respond(comm.query("todo", "all", "todos", {}).get())

    @post("/todos/{id}/done")
    def done(self, comm: Communication, id: str) -> None:
        change = {"filter": {"_id": id}, "update": {"$set": {"done": True}}}
        comm.query("todo", "done", "todos", {"$update": change}).get()
        comm.respond({})

    @put("/todos/{id}")
    def put(self, comm: Communication, id: str) -> None:
        known = comm.query("todo", "one", "todos", {"_id": id}).get()
        comm.respond(known, status=200 if known else 201)

    @mup.EP(f"{PREFIX}/count")
    def count(self, comm: Communication) -> None:
        comm.respond(len(comm.query("todo", "all", "todos", {}).get()))

    @endpoint("/ping")
    def ping(self, comm: Communication) -> None:
        comm.respond("pong")
