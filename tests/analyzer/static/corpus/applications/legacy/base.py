import functools
import logging
import os
from abc import ABC, abstractmethod
from collections import namedtuple
from contextlib import ExitStack, suppress
from functools import cached_property, partialmethod, singledispatchmethod
from typing import NamedTuple

from mup import EP, MS, Communication
from mup.errors import CallError, MupError

log = logging.getLogger("legacy")
RETRIES = int(os.environ.get("RETRIES", "2"))
FEATURES = {"recommendations": True, "audit": False}
Point = namedtuple("Point", "x y")


class Result(NamedTuple):
    ok: bool
    value: object = None
    error: str = ""


def audited(arg=None, *, kind="generic"):
    def decorate(fn):
        @functools.wraps(fn)
        def inner(self, comm, *a, **kw):
            if FEATURES["audit"]:
                comm.call("Audit", "/write", {"kind": kind})
            return fn(self, comm, *a, **kw)

        return inner

    return decorate(arg) if callable(arg) else decorate


def safe(default=None):
    def decorate(fn):
        def inner(*a, **kw):
            try:
                return fn(*a, **kw)
            except MupError as error:
                log.warning("%s: %s", fn.__name__, error)
                return default

        return inner

    return decorate


class Client:
    """A typed client of another service."""

    service: str

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def _ask(self, path, **params):
        return self.comm.call(self.service, path, params).get()

    def _later(self, path, **params):
        return self.comm.call(self.service, path, params)


class Users(Client):
    service = "Users"

    def by_id(self, id):
        return self._ask("/by-id", id=id)

    def names(self, ids):
        pending = {id: self._later("/name", id=id) for id in ids}
        return {id: future.get() for id, future in pending.items()}


class Prices(Client):
    service = "Prices"
    current = partialmethod(Client._ask, "/current")

    @safe(default=0)
    def rebate(self, user):
        return self._ask("/rebate", user=user)["percent"]

    @cached_property
    def table(self):
        return self._ask("/table")


class Context:
    def __init__(self, comm, user_id):
        self.comm = comm
        self.user_id = user_id
        self.users = Users(comm)
        self.prices = Prices(comm)

    @property
    def user(self):
        if not hasattr(self, "_user"):
            self._user = self.users.by_id(self.user_id)
        return self._user

    def __enter__(self):
        self.comm.query("legacy", "open", "sessions", {}).get()
        return self

    def __exit__(self, kind, error, trace):
        self.comm.query("legacy", "close", "sessions", {"failed": kind is not None}).get()
        return False


class Rule(ABC):
    @abstractmethod
    def check(self, context) -> bool: ...

    def __and__(self, other):
        return Both(self, other)


class Both(Rule):
    def __init__(self, one, other):
        self.one, self.other = one, other

    def check(self, context):
        return self.one.check(context) and self.other.check(context)


class Active(Rule):
    def check(self, context):
        return bool(context.user.get("active"))


class Solvent(Rule):
    def check(self, context):
        rows = context.comm.query("legacy", "debts", "debts", {"user": context.user_id}).get()
        return not rows


ALLOWED = Active() & Solvent()


class Visitor:
    def __init__(self, comm):
        self.comm = comm
        self.total = 0

    @singledispatchmethod
    def visit(self, node):
        raise TypeError(type(node))

    @visit.register
    def _(self, node: int):
        self.total += node

    @visit.register
    def _(self, node: str):
        self.total += self.comm.call("Prices", "/current", {"sku": node}).get()["price"]


class CrudMixin:
    collection = ""

    def _find(self, comm, key):
        rows = comm.query("legacy", "find", self.collection, {"_id": key}).get()
        return rows[0] if rows else None

    @EP("/{key}", method="GET")
    def read(self, comm: Communication, key: str) -> None:
        row = self._find(comm, key)
        comm.respond(row or {"error": "missing"}, status=200 if row else 404)

    @EP("/{key}", method="DELETE")
    def delete(self, comm: Communication, key: str) -> None:
        if self._find(comm, key) is None:
            comm.respond(status=404)
            return
        comm.query("legacy", "delete", self.collection, {"$delete": {"filter": {"_id": key}}}).get()
        comm.respond(status=204)
