"""Loans of a public library: a layered, synchronous service."""

from __future__ import annotations

import enum
import functools
import heapq
import json
import logging
import operator
import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby, islice, takewhile
from typing import Any, ClassVar, NamedTuple, Protocol

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError

log = logging.getLogger("library")
SETTINGS = ChainMap({"retries": 2, "region": "north"}, {"retries": 1, "page": 25})


class LoanState(str, enum.Enum):
    REQUESTED = "requested"
    ACTIVE = "active"
    OVERDUE = "overdue"
    RETURNED = "returned"

    @property
    def is_open(self) -> bool:
        return self in (LoanState.ACTIVE, LoanState.OVERDUE)


class DomainError(Exception):
    status: ClassVar[int] = 400

    def to_dict(self) -> dict[str, Any]:
        return {"error": type(self).__name__, "detail": str(self)}


class NotOnShelf(DomainError):
    status = 409


class Unknown(DomainError):
    status = 404


class Problem(NamedTuple):
    code: int
    text: str


class Specification(ABC):
    @abstractmethod
    def is_satisfied_by(self, loan: dict) -> bool: ...

    def __and__(self, other: "Specification") -> "Specification":
        return Both(self, other)


@dataclass(frozen=True)
class Both(Specification):
    left: Specification
    right: Specification

    def is_satisfied_by(self, loan: dict) -> bool:
        return self.left.is_satisfied_by(loan) and self.right.is_satisfied_by(loan)


class IsOpen(Specification):
    def is_satisfied_by(self, loan: dict) -> bool:
        return LoanState(loan.get("state", "active")).is_open


@dataclass(frozen=True)
class LongerThan(Specification):
    days: int

    def is_satisfied_by(self, loan: dict) -> bool:
        return loan.get("days", 0) > self.days


class Fees(Protocol):
    def fee(self, comm: Communication, loan: dict) -> float: ...


class FlatFees:
    def fee(self, comm: Communication, loan: dict) -> float:
        return 1.0


class RemoteFees:
    def __init__(self, path: str = "/rate") -> None:
        self.path = path

    def fee(self, comm: Communication, loan: dict) -> float:
        rate = comm.call("Billing", self.path, {"branch": loan.get("branch")}).get()
        return rate.get("value", 1.0) * loan.get("days", 1)


class Gateway:
    """What other services are to this one."""

    def __init__(self, comm: Communication, attempts: int = SETTINGS["retries"]) -> None:
        self._comm = comm
        self._attempts = attempts

    def __enter__(self) -> "Gateway":
        return self

    def __exit__(self, *details) -> None:
        log.debug("done")

    def ask(self, service: str, path: str, **params: Any) -> dict:
        last: CallError | None = None
        for attempt in range(1, self._attempts + 1):
            try:
                return self._comm.call(service, path, params).get()
            except CallTimeoutError:
                raise
            except CallError as error:
                last = error
                log.info("attempt %d: %s", attempt, error)
        raise last or RuntimeError("no attempts")

    title = functools.partialmethod(ask, "Catalogue", "/title")

    @functools.cached_property
    def member(self) -> dict:
        return self._comm.call("Members", "/who").get()


class Reader:
    def __init__(self, comm: Communication, size: int):
        self.comm = comm
        self.size = size

    def __iter__(self) -> Iterator[dict]:
        cursor: str | None = ""
        while cursor is not None:
            page = self.comm.call("Catalogue", "/scan", {"cursor": cursor, "size": self.size}).get()
            yield from page.get("rows", ())
            cursor = page.get("next")


class Shelf:
    def __init__(self, comm: Communication):
        self.comm = comm

    def __getitem__(self, key):
        if isinstance(key, slice):
            return self.comm.call("Catalogue", "/scan", {"from": key.start, "to": key.stop}).get()
        return self.comm.call("Catalogue", "/title", {"key": list(key)}).get()


@contextmanager
def timed(name: str, into: dict[str, float]) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        into[name] = time.perf_counter() - start


@contextmanager
def reserved(comm: Communication, copy: str):
    comm.call("Catalogue", "/reserve", {"copy": copy}).get()
    try:
        yield copy
    except BaseException:
        comm.call("Catalogue", "/release", {"copy": copy}).get()
        raise


def problem(error: Exception) -> Problem:
    match error:
        case DomainError(status=code):
            return Problem(code, str(error))
        case CallTimeoutError():
            return Problem(504, "late")
        case CallError():
            return Problem(502, "upstream")
        case _:
            return Problem(500, "?")


def api(*allowed: str, audit: bool = False):
    def decorate(view):
        @functools.wraps(view)
        def wrapper(self, comm: Communication):
            if allowed and comm.params.get("role", "reader") not in allowed:
                return comm.respond({"error": "forbidden"}, status=403)
            try:
                result = view(self, comm)
            except (DomainError, CallError) as error:
                found = problem(error)
                comm.respond({"error": found.text}, status=found.code)
            else:
                comm.respond(result if result is not None else {"ok": True})
                if audit:
                    with suppress(CallError):
                        comm.call("Audit", "/append", {"view": view.__name__}).get()

        return wrapper

    return decorate


class Step(ABC):
    steps: ClassVar[list[type["Step"]]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Step.steps.append(cls)

    @abstractmethod
    def run(self, comm: Communication, state: dict) -> None: ...


class CheckMember(Step):
    def run(self, comm: Communication, state: dict) -> None:
        state["member"] = comm.call("Members", "/who", {"id": state["id"]}).get()


class CheckFees(Step):
    def run(self, comm: Communication, state: dict) -> None:
        if state["member"].get("debts"):
            state["rate"] = comm.call("Billing", "/rate").get()


class LRU:
    def __init__(self, size: int):
        self.size = size
        self.items: OrderedDict[str, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: str) -> Any:
        with self.lock:
            if key in self.items:
                self.items.move_to_end(key)
                return self.items[key]
        return None

    def put(self, key: str, value: Any) -> None:
        with self.lock:
            self.items[key] = value
            while len(self.items) > self.size:
                self.items.popitem(last=False)


class Library(MS):
    pool_size = 2
    fees: dict[str, Fees] = {"flat": FlatFees(), "remote": RemoteFees(), "old": RemoteFees("/old")}

    def setup(self) -> None:
        self.titles = LRU(2)
        self.seen: Counter[str] = Counter()
        self.recent: deque[str] = deque(maxlen=10)

    @EP("/loans")
    @api()
    def loans(self, comm: Communication):
        wanted = IsOpen() & LongerThan(14)
        rows = comm.query("loans", "open", "loans", {"member": comm.params.get("member")}).get()
        return [row for row in rows if wanted.is_satisfied_by(row)]

    @EP("/fee")
    @api("clerk", "reader", audit=True)
    def fee(self, comm: Communication):
        loan = comm.params
        policy = self.fees.get(loan.get("policy"))
        if policy is None:
            raise Unknown("policy")
        return {"fee": policy.fee(comm, loan)}

    @EP("/borrow")
    @api()
    def borrow(self, comm: Communication):
        with Gateway(comm) as gateway:
            title = gateway.title(isbn=comm.params.get("isbn"))
            if not title.get("copies"):
                raise NotOnShelf(comm.params.get("isbn"))
            if gateway.member.get("blocked"):
                raise NotOnShelf("blocked")
            return {"title": title, "for": gateway.member}

    @EP("/reserve")
    @api()
    def reserve(self, comm: Communication):
        with reserved(comm, comm.params.get("copy", "c")) as copy:
            comm.query("loans", "insert", "loans", {"$insert": {"copy": copy}}).get()
        return {"copy": copy}

    @EP("/export")
    @api()
    def export(self, comm: Communication):
        rows = list(islice(Reader(comm, SETTINGS["page"]), 3))
        by = {k: list(g) for k, g in groupby(sorted(rows, key=operator.itemgetter("id")), lambda r: r["id"])}
        return {"rows": len(rows), "groups": len(by)}

    @EP("/export/all")
    @api()
    def export_all(self, comm: Communication):
        return {"rows": sum(1 for _ in Reader(comm, 100))}

    @EP("/checkout")
    @api()
    def checkout(self, comm: Communication):
        state: dict[str, Any] = {"id": comm.params.get("id")}
        for step in Step.steps:
            step().run(comm, state)
        return state

    @EP("/title")
    @api()
    def title(self, comm: Communication):
        isbn = str(comm.params.get("isbn"))
        self.seen[isbn] += 1
        if (known := self.titles.get(isbn)) is None:
            known = comm.call("Catalogue", "/title", {"isbn": isbn}).get()
            self.titles.put(isbn, known)
        self.recent.append(isbn)
        return known

    @EP("/timings")
    @api()
    def timings(self, comm: Communication):
        took: dict[str, float] = {}
        with timed("who", took):
            who = comm.call("Members", "/who").get()
        with timed("open", took), suppress(CallError):
            comm.query("loans", "open", "loans", {"member": who.get("id")}).get()
        return sorted(took)

    @EP("/transition")
    @api()
    def transition(self, comm: Communication):
        state = LoanState(comm.params.get("state", "active"))
        handlers: dict[LoanState, Callable[[Communication], Any]] = {
            LoanState.REQUESTED: self._activate,
            LoanState.ACTIVE: self._close,
            LoanState.OVERDUE: lambda c: (self._charge(c), self._close(c))[1],
        }
        handler = handlers.get(state)
        return handler(comm) if handler else {"state": state.value}

    def _activate(self, comm: Communication) -> dict:
        return comm.call("Catalogue", "/reserve").get()

    def _close(self, comm: Communication) -> dict:
        return comm.call("Catalogue", "/release").get()

    def _charge(self, comm: Communication) -> dict:
        return comm.call("Billing", "/rate").get()

    @EP("/search")
    @api()
    def search(self, comm: Communication):
        text = comm.params.get("q", "")
        if m := re.fullmatch(r"isbn:(\d+)", text):
            return comm.call("Catalogue", "/title", {"isbn": m[1]}).get()
        kind, _, rest = text.partition(":")
        match kind.split():
            case ["author"]:
                return comm.query("loans", "by_author", "titles", {"author": rest}).get()
            case ["near", place, *_] if place:
                return comm.call("Catalogue", "/scan", {"near": place}).get()
            case []:
                raise Unknown("empty")
        for source in ("Catalogue", "Members"):
            found = comm.call(source, "/find", {"q": text}).get()
            if found.get("hits"):
                break
        else:
            raise Unknown(text)
        return found

    @EP("/dashboard")
    @api()
    def dashboard(self, comm: Communication):
        futures = {
            "who": comm.call("Members", "/who"),
            "rate": comm.call("Billing", "/rate"),
            "open": comm.query("loans", "open", "loans", {}),
        }
        out: dict[str, Any] = {}
        for name, future in futures.items():
            try:
                out[name] = future.get()
            except CallError as error:
                out[name] = problem(error)._asdict()
        return out

    @EP("/overdue")
    @api()
    def overdue(self, comm: Communication):
        rows = comm.query("loans", "open", "loans", {}).get()
        heap = [(row.get("days", 0), n) for n, row in enumerate(rows)]
        heapq.heapify(heap)
        sent = 0
        while heap and sent < 2:
            days, _ = heapq.heappop(heap)
            if days < 1:
                continue
            comm.call("Members", "/notify", {"days": days}).get()
            sent += 1
        return {"sent": sent}

    @EP("/report")
    @api()
    def report(self, comm: Communication):
        sections: defaultdict[str, list] = defaultdict(list)
        for branch in takewhile(lambda b: b != "end", comm.params.get("branches", [])):
            sections[branch].append(comm.call("Billing", "/rate", {"branch": branch}).get())
        total = functools.reduce(operator.add, (len(part) for part in sections.values()), 0)
        return {"total": total}

    @EP("/renew")
    def renew(self, comm: Communication) -> None:
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = comm.call("Catalogue", "/renew", {"n": attempt}).get()
            except CallError as error:
                if attempt >= 3 or getattr(error, "status", None) == 404:
                    comm.respond({"error": str(error)}, status=502)
                    break
                time.sleep(0.01 * attempt)
            else:
                comm.respond(answer)
                break
            finally:
                log.debug("attempt %d", attempt)

    @EP("/import")
    def import_(self, comm: Communication) -> None:
        try:
            lines = comm.params["text"].splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
        except (KeyError, AttributeError, json.JSONDecodeError) as error:
            comm.respond({"error": str(error)}, status=422)
            return
        known, fresh = [], []
        for row in rows:
            (known if self._known(comm, row) else fresh).append(row)
        if fresh:
            comm.query("loans", "insert", "titles", {"$insert": fresh}).get()
        comm.respond({"known": len(known), "fresh": len(fresh)})

    @staticmethod
    def _known(comm: Communication, row: Mapping[str, Any]) -> bool:
        return bool(comm.query("loans", "exists", "titles", {"isbn": row.get("isbn")}).get())

    @EP("/shelf")
    @api()
    def shelf(self, comm: Communication):
        first, *others = Reader(comm, 10)
        return [first["id"], *(other["id"] for other in others)]

    @EP("/shelf/rows")
    @api()
    def shelf_rows(self, comm: Communication):
        rows = [{"id": 0}, *Reader(comm, 10)]
        return {"rows": len(rows), "sorted": sorted(row["id"] for row in rows)}

    @EP("/shelf/has")
    @api()
    def shelf_has(self, comm: Communication):
        return {"has": {"id": 2} in Reader(comm, 10)}

    @EP("/shelf/part")
    @api()
    def shelf_part(self, comm: Communication):
        return {"rows": Shelf(comm)[2:5], "one": Shelf(comm)["a", 3]}

    @EP("/branch")
    @api()
    def branch(self, comm: Communication):
        for service, path in random.sample([("Members", "/find"), ("Catalogue", "/find")], k=2):
            if comm.call(service, path).get().get("hits"):
                return {"in": service}
        return comm.call("Catalogue", random.choice(("/may", "/stock"))).get()

    @EP("/hold")
    def hold(self, comm: Communication) -> None:
        ok = all(comm.call(*place).get().get("ok") for place in (("Members", "/may"), ("Catalogue", "/may")))
        any_branch = ok and any(
            comm.call("Catalogue", "/stock", {"branch": b}).get().get("free") for b in ("north", "south")
        )
        comm.respond({"ok": any_branch}, status=200 if any_branch else 409)


class Members(MS):
    @EP("/who")
    def who(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/find")
    def find(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/may")
    def may(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/notify")
    def notify(self, comm: Communication) -> None:
        comm.respond({})


class Billing(MS):
    @EP("/rate")
    def rate(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/old")
    def old(self, comm: Communication) -> None:
        comm.respond({})


class Catalogue(MS):
    @EP("/title")
    def title(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/scan")
    def scan(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/reserve")
    def reserve(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/release")
    def release(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/renew")
    def renew(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/find")
    def find(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/may")
    def may(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/stock")
    def stock(self, comm: Communication) -> None:
        comm.respond({})


class Audit(MS):
    @EP("/append")
    def append(self, comm: Communication) -> None:
        comm.respond({})
