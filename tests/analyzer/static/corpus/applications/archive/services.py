"""An archive of documents: what its modules keep, and how lists and dicts are taken apart."""

import contextlib
import itertools
from collections import deque

from mup import EP, MS, Communication
from mup.errors import CommunicationError

import on_note
import on_upload
from events import happened
from shelves import ARCHIVE, INDEX, ROUTES, STAMPS, Batch, Policy, Scope, Session

STAGES = {"scan": "/scan", "text": "/text"}
NEXT = ["/scan"]
LIMITS = {"text": 3}
KNOWN = ["/scan"]


def grow(rows: list[str], one: str) -> None:
    if one not in rows:
        rows.append(one)


@contextlib.contextmanager
def entered(value):
    yield value


class Archive(MS):
    @EP("/scope")
    def scope(self, comm: Communication, tenant: str = "") -> None:
        """The tenant is an attribute of a class that a block sets."""
        with entered(tenant) as Scope.tenant:
            if Scope.tenant == "none":
                comm.call("Store", "/scan").get()
            else:
                comm.call("Store", "/text", {"tenant": tenant}).get()
        comm.respond({})

    @EP("/batches")
    def batches(self, comm: Communication, ids: list[str] = []) -> None:
        for Batch.number in range(len(ids)):
            pass
        if Batch.number:
            comm.call("Store", "/text").get()
        comm.respond({"batches": Batch.number})

    @EP("/sizes")
    def sizes(self, comm: Communication, ids: list[str] = []) -> None:
        lengths = [len(Batch.last) for Batch.last in ids]
        comm.call("Store", "/scan" if Batch.last == "first" else "/text", {"sizes": lengths}).get()
        comm.respond({})

    @EP("/session")
    def session(self, comm: Communication, ids: list[str] = []) -> None:
        Session.first, *Session.others = ["a", *ids]
        if Session.others == "nobody":
            comm.call("Store", "/scan").get()
        else:
            comm.call("Store", "/text").get()
        comm.respond({})

    @EP("/stages")
    def stages(self, comm: Communication, urgent: bool = False) -> None:
        with entered("/text" if urgent else "/scan") as STAGES["scan"]:
            pass
        if STAGES["scan"] == "/scan":
            comm.call("Store", "/scan").get()
        else:
            comm.call("Store", "/text").get()
        comm.respond({})

    @EP("/next")
    def next_stage(self, comm: Communication, ids: list[str] = []) -> None:
        for NEXT[0] in ids:
            pass
        if NEXT[0] == "/scan":
            comm.call("Store", "/scan").get()
        else:
            comm.call("Store", "/text").get()
        comm.respond({})

    @EP("/policy")
    def policy(self, comm: Communication) -> None:
        Policy().trace()
        if Policy().traced:
            comm.call("Store", "/text").get()
        comm.respond({})

    @EP("/routes")
    def routes(self, comm: Communication) -> None:
        """The list of the module grows from request to request, under another name."""
        routes = ROUTES
        routes.append("/text")
        if len(ROUTES) > 1:
            comm.call("Store", "/scan").get()
        comm.respond({})

    @EP("/limits")
    def limits(self, comm: Communication) -> None:
        """The table of the module gets an item, under another name."""
        if "scan" in LIMITS:
            comm.call("Store", "/scan").get()
        limits = LIMITS
        limits["scan"] = 2
        comm.respond({})

    @EP("/grown")
    def grown(self, comm: Communication) -> None:
        """A helper adds to the list of the module that it is given."""
        if len(KNOWN) > 1:
            comm.call("Store", "/scan").get()
        grow(KNOWN, "/text")
        comm.respond({})

    @EP("/put")
    def put(self, comm: Communication, id: str = "a") -> None:
        """What is kept here is kept elsewhere, too."""
        ARCHIVE[comm] = {"id": id}
        comm.respond({}, status=201)

    @EP("/remove")
    def remove(self, comm: Communication) -> None:
        del ARCHIVE[comm]
        comm.respond({})

    @EP("/touch")
    def touch(self, comm: Communication) -> None:
        ARCHIVE[comm] |= {"touched": True}
        comm.respond({})

    @EP("/known")
    def known(self, comm: Communication) -> None:
        if comm in ARCHIVE:
            comm.query("archive", "one", "documents", {}).get()
        comm.respond({})

    @EP("/index")
    def index(self, comm: Communication, id: str = "a") -> None:
        if not INDEX:
            comm.call("Store", "/scan").get()
        INDEX[id] = 1
        if len(INDEX) > 1:
            comm.call("Store", "/text").get()
        comm.respond({"size": len(INDEX)})

    @EP("/stamped")
    def stamped(self, comm: Communication, id: str = "a") -> None:
        row = {"name": id}
        STAMPS[id] = row
        if "id" in row:
            comm.query("archive", "keep", "documents", {"$insert": [row]}).get()
        comm.respond(row)

    @EP("/released")
    def released(self, comm: Communication) -> None:
        row = {"locked": True}
        del STAMPS[row]
        if not row:
            comm.query("archive", "release", "documents", {}).get()
        comm.respond(row)

    @EP("/first-stage")
    def first_stage(self, comm: Communication) -> None:
        paths = ["/scan", "/text", "/print"]
        del paths[1:]
        for path in paths:
            comm.call("Store", path).get()
        comm.respond({})

    @EP("/other-stages")
    def other_stages(self, comm: Communication) -> None:
        paths = ["/scan", "/text"]
        paths[1:] = ["/print", "/text"]
        for path in paths:
            comm.call("Store", path).get()
        comm.respond({})

    @EP("/rest")
    def rest(self, comm: Communication) -> None:
        paths = ["/scan", "/text"]
        rest = paths[1:]
        rest.append("/print")
        for path in rest:
            comm.call("Store", path).get()
        comm.respond({})

    @EP("/stage/{name}")
    def stage(self, comm: Communication, name: str, others: list[str] = []) -> None:
        paths = {"scan": "/scan"}
        if paths.get(name, *others) is None:
            comm.respond({"error": "no such stage"}, status=404)
            return
        comm.call("Store", "/text").get()
        comm.respond({})

    @EP("/labels")
    def labels(self, comm: Communication, more: list[list[str]] = []) -> None:
        labels: set[str] = set()
        labels.update(["new"], *more)
        if len(labels) > 1:
            comm.call("Store", "/text", {"labels": sorted(labels)}).get()
        comm.respond({})

    @EP("/import")
    def import_(self, comm: Communication) -> None:
        """The first line is not like the others."""
        lines = iter(["/scan", "/text", "/print"])
        comm.call("Store", "/begin", {"header": next(lines)}).get()
        for line in lines:
            comm.call("Store", line).get()
        comm.respond({})

    @EP("/import/sent")
    def import_sent(self, comm: Communication, lines: list[str] = []) -> None:
        rest = iter(lines)
        header = next(rest, None)
        if header is None:
            comm.respond({"error": "empty"}, status=400)
            return
        for line in rest:
            comm.call("Store", "/text", {"header": header, "line": line}).get()
        comm.respond({})

    @EP("/resume")
    def resume(self, comm: Communication) -> None:
        """What one loop leaves, the next one does."""
        paths = enumerate(("/scan", "/text", "/print"))
        for _, path in paths:
            if comm.call("Store", path).get().get("busy"):
                break
        for number, path in paths:
            comm.call("Store", path, {"number": number}).get()
        comm.respond({})

    @EP("/pairs")
    def pairs(self, comm: Communication) -> None:
        """Names of columns are looked at before the pairs are gone through again."""
        pairs = zip(("a", "b"), ("/scan", "/text"), strict=True)
        names = [name for name, _ in pairs]
        for name, path in pairs:
            comm.call("Store", path, {"name": name, "of": names}).get()
        comm.respond({})

    @EP("/late")
    def late(self, comm: Communication, urgent: bool = False) -> None:
        paths = ["/scan"]
        ways = itertools.chain(paths, ["/text"])
        if urgent:
            paths.append("/print")
        for path in ways:
            comm.call("Store", path).get()
        comm.respond({})

    @EP("/view")
    def view(self, comm: Communication) -> None:
        """A view shows what comes later."""
        paths = {"a": "/scan"}
        ways = paths.values()
        paths["b"] = "/text"
        for path in ways:
            comm.call("Store", path).get()
        comm.respond({})

    @EP("/view/empty")
    def view_empty(self, comm: Communication, id: str = "a") -> None:
        errors: dict[str, str] = {}
        found = errors.items()
        errors[id] = "missing"
        if found:
            comm.call("Store", "/text").get()
        comm.respond({})

    @EP("/view/loop")
    def view_loop(self, comm: Communication) -> None:
        paths = {"a": "/scan", "b": "/text"}
        for _, path in paths.items():
            comm.call("Store", path).get()
            paths["b"] = "/print"
        comm.respond({})

    @EP("/waiting")
    def waiting(self, comm: Communication, ids: list[str] = []) -> None:
        """Names and futures side by side, in a variable first."""
        futures = [comm.call("Store", "/text", {"id": id}) for id in ids]
        pairs = zip(ids, futures, strict=True)
        failed = []
        for id, future in pairs:
            try:
                future.get()
            except CommunicationError:
                failed.append(id)
        comm.respond({"failed": failed})

    @EP("/event")
    def event(self, comm: Communication, event: int | str | float = 0) -> None:
        happened(event, comm)
        comm.respond({})

    @EP("/note")
    def note(self, comm: Communication) -> None:
        happened("a note", comm)
        comm.respond({})

    @EP("/ends")
    def ends(self, comm: Communication) -> None:
        ways = deque(("/scan", "/text"))
        ways.appendleft("/begin")
        while ways:
            comm.call("Store", ways.popleft()).get()
        comm.respond({})


class Store(MS):
    @EP("/begin")
    def begin(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/scan")
    def scan(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/text")
    def text(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/print")
    def print(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/drop")
    def drop(self, comm: Communication) -> None:
        comm.respond({})
