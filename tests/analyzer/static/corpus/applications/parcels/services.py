"""A clinic, a parcel service and a bank, as small teams write them."""

from __future__ import annotations

import enum
import hashlib
import json
import logging
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import wraps
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, Iterator, Optional, TypeVar

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError

log = logging.getLogger("app")
T = TypeVar("T")
CACHE_TTL = float(os.environ.get("CACHE_TTL", "30"))
FEATURES = {"triage": True, "sms": os.getenv("SMS", "1") == "1"}


class AppError(Exception):
    status = 400

    def __init__(self, message="", **context):
        super().__init__(message)
        self.context = context


class NotFound(AppError):
    status = 404


class Conflict(AppError):
    status = 409


def errors(handler):
    @wraps(handler)
    def wrapped(self, comm):
        try:
            return handler(self, comm)
        except AppError as error:
            log.warning("%s: %s", handler.__name__, error)
            comm.respond({"error": str(error), **error.context}, status=error.status)

    return wrapped


def audited(action):
    def decorate(handler):
        @wraps(handler)
        def wrapped(self, comm):
            result = handler(self, comm)
            comm.call("Audit", "/record", {"action": action, "at": time.time()})
            return result

        return wrapped

    return decorate


def body(comm: Communication) -> dict[str, Any]:
    return dict(comm.params)


@dataclass
class Page(Generic[T]):
    items: list[T] = field(default_factory=list)
    next: Optional[str] = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self):
        return len(self.items)


class Repository(ABC, Generic[T]):
    service: str

    def __init__(self, comm):
        self._comm = comm

    @property
    @abstractmethod
    def path(self) -> str: ...

    def _call(self, verb, payload=None):
        return self._comm.call(self.service, f"{self.path}/{verb}", payload or {})

    def find(self, id_: str) -> dict:
        row = self._call("get", {"id": id_}).get()
        if not row:
            raise NotFound(f"{self.path} {id_}")
        return row

    def list(self, **where) -> Page[dict]:
        rows = self._call("list", where).get()
        return Page(rows["items"], rows.get("next"))

    def save(self, row: dict) -> dict:
        row.setdefault("id", uuid.uuid4().hex)
        return self._call("put", row).get()


class Patients(Repository[dict]):
    service = "Store"
    path = "/patients"

    def with_history(self, id_):
        patient = self.find(id_)
        patient["history"] = self._call("history", {"id": id_}).get()
        return patient


class Slots(Repository[dict]):
    service = "Store"
    path = "/slots"

    def free(self, day: date):
        return [slot for slot in self.list(day=day.isoformat()) if not slot.get("taken")]


class Unit:
    """A unit of work: what is saved goes out at the end, or not at all."""

    def __init__(self, comm):
        self.comm = comm
        self.patients = Patients(comm)
        self.slots = Slots(comm)
        self._events: list[tuple[str, dict]] = []

    def __enter__(self):
        self.tx = self.comm.call("Store", "/begin").get()["tx"]
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.comm.call("Store", "/rollback", {"tx": self.tx}).get()
            return False
        self.comm.call("Store", "/commit", {"tx": self.tx}).get()
        for name, payload in self._events:
            self.comm.call("Events", "/publish", {"name": name, **payload})
        return False

    def emit(self, name, **payload):
        self._events.append((name, payload))


class Urgency(enum.IntEnum):
    LOW = 1
    MIDDLE = 2
    HIGH = 3

    @classmethod
    def of(cls, score: float) -> "Urgency":
        if score > 0.8:
            return cls.HIGH
        return cls.MIDDLE if score > 0.4 else cls.LOW


class Clinic(MS):
    pool_size = 4

    @EP("/patients/{id}")
    @errors
    def patient(self, comm):
        patients = Patients(comm)
        wide = comm.params.get("expand") == "history"
        loader = patients.with_history if wide else patients.find
        comm.respond(loader(comm.params["id"]))

    @EP("/book", method="POST")
    @errors
    @audited("book")
    def book(self, comm):
        data = body(comm)
        with Unit(comm) as unit:
            patient = unit.patients.find(data.get("patient", "p"))
            free = unit.slots.free(date.today())
            if not free:
                raise Conflict("no free slot", day=str(date.today()))
            slot = min(free, key=itemgetter("start"))
            unit.slots.save({**slot, "taken": patient["id"]})
            unit.emit("booked", slot=slot["id"])
        comm.respond({"slot": slot["id"]})

    @EP("/triage", method="POST")
    def triage(self, comm):
        answers = body(comm).get("answers", [])
        if not FEATURES["triage"]:
            comm.respond({"error": "off"}, status=503)
            return
        score = comm.call("Model", "/score", {"answers": answers}).get()["score"]
        urgency = Urgency.of(score)
        if urgency >= Urgency.MIDDLE:
            doctor = comm.call("Staff", "/next").get()
            if urgency is Urgency.HIGH and FEATURES["sms"]:
                comm.call("Notify", "/sms", {"to": doctor["phone"]})
        comm.respond({"urgency": urgency.name.lower()})

    @EP("/week")
    def week(self, comm):
        start = date(2026, 11, 30)
        slots = Slots(comm)
        days = [start + timedelta(days=n) for n in range(5)]
        comm.respond({day.isoformat(): len(slots.free(day)) for day in days})

    @EP("/agenda")
    def agenda(self, comm):
        rows = Slots(comm).list(doctor=comm.params.get("doctor")).items
        rows = sorted(rows, key=itemgetter("start"))
        plan = {day: [row["id"] for row in group] for day, group in groupby(rows, key=itemgetter("start"))}
        names = comm.call("Staff", "/names", {"ids": sorted(plan)}).get() if plan else {}
        comm.respond({"plan": plan, "names": names})

    @EP("/prescribe", method="POST")
    @errors
    def prescribe(self, comm):
        data = body(comm)
        drugs = data.get("drugs", [])
        warnings = []
        for drug in drugs:
            known = comm.call("Drugs", "/interactions", {"drug": drug}).get()
            if known.get("forbidden"):
                raise Conflict(f"{drug} is forbidden")
            if known.get("warning"):
                warnings.append(known["warning"])
        else:
            if drugs:
                comm.call("Store", "/prescriptions/put", data).get()
        comm.respond({"warnings": warnings}, status=201 if drugs else 200)


# Parcels


class Carrier(ABC):
    registry: dict[str, type["Carrier"]] = {}
    code = ""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Carrier.registry[cls.code] = cls

    def __init__(self, comm):
        self.comm = comm

    @abstractmethod
    def quote(self, parcel): ...

    def label(self, parcel):
        return self.comm.call("Labels", "/render", {"carrier": self.code, **parcel}).get()


class Post(Carrier):
    code = "post"

    def quote(self, parcel):
        return self.comm.call("PostApi", "/price", parcel).get()["price"]


class Express(Carrier):
    code = "express"

    def quote(self, parcel):
        zone = self.comm.call("Geo", "/zone", parcel).get()["zone"]
        return self.comm.call("ExpressApi", "/price", {"zone": zone, **parcel}).get()["price"]


class Own(Carrier):
    code = "own"
    RATE = 0.5

    def quote(self, parcel):
        return self.RATE * parcel.get("kg", 1)

    def label(self, parcel):
        return {"text": "own van"}


@dataclass(slots=True)
class Leg:
    start: str
    end: str
    by: str = "road"

    def cost(self, comm):
        if self.by == "air":
            return comm.call("Air", "/cost", asdict(self)).get()["cost"]
        return comm.call("Road", "/cost", asdict(self)).get()["cost"]


@contextmanager
def locked(comm, key, ttl=5):
    token = comm.call("Locks", "/acquire", {"key": key, "ttl": ttl}).get().get("token")
    if token is None:
        raise Conflict("locked", key=key)
    try:
        yield token
    finally:
        with suppress(CallError):
            comm.call("Locks", "/release", {"token": token}).get()


class Parcels(MS):
    pool_size = 8
    carriers = ("post", "express", "own")

    def carrier(self, comm, code):
        try:
            return Carrier.registry[code](comm)
        except KeyError:
            raise NotFound(f"carrier {code}") from None

    @EP("/quote", method="POST")
    @errors
    def quote(self, comm):
        data = body(comm)
        carrier = self.carrier(comm, data.get("carrier"))
        comm.respond({"price": carrier.quote(data.get("parcel", {}))})

    @EP("/cheapest", method="POST")
    def cheapest(self, comm):
        parcel = body(comm).get("parcel", {})
        quotes = {code: Carrier.registry[code](comm).quote(parcel) for code in self.carriers}
        best = min(quotes, key=quotes.get)
        comm.respond({"carrier": best, "price": quotes[best]})

    @EP("/ship", method="POST")
    @errors
    def ship(self, comm):
        data = body(comm)
        carrier = self.carrier(comm, data.get("carrier"))
        with locked(comm, f"parcel:{data.get('id')}"):
            label = carrier.label(data)
            comm.call("Store", "/parcels/put", {"label": label, **data}).get()
        comm.respond(label, status=201)

    @EP("/route", method="POST")
    def route(self, comm):
        hops = body(comm).get("hops", [])
        legs = [Leg(*pair) for pair in zip(hops, hops[1:])]
        if len(legs) > 2:
            legs[1:-1] = [replace(leg, by="air") for leg in legs[1:-1]]
        comm.respond({"cost": sum(leg.cost(comm) for leg in legs)})

    @EP("/track/{id}")
    @errors
    def track(self, comm):
        id_ = comm.params["id"]
        key = hashlib.sha1(id_.encode()).hexdigest()
        cached = comm.call("Cache", "/get", {"key": key}).get()
        if cached and cached.get("expires", 0) > time.time():
            comm.respond(cached["value"])
            return
        for source in ("PostApi", "ExpressApi"):
            try:
                value = comm.call(source, "/track", {"id": id_}, timeout=2.0).get()
            except CallTimeoutError:
                log.info("%s is slow", source)
                continue
            except CallError:
                continue
            if value:
                comm.call("Cache", "/set", {"key": key, "value": value, "expires": time.time() + CACHE_TTL})
                comm.respond(value)
                return
        raise NotFound(id_)

    @EP("/manifest")
    def manifest(self, comm):
        rows = comm.call("Store", "/parcels/list").get().get("items", [])
        by_depot = defaultdict(list)
        for row in rows:
            by_depot[row.get("depot", "main")].append(row)
        sheets = []
        for depot, parcels in sorted(by_depot.items()):
            sheet = comm.call("Labels", "/sheet", {"depot": depot, "count": len(parcels)}).get()
            sheets.append(sheet)
        comm.respond(sheets)


# Bank


class Status(str, enum.Enum):
    OPEN = "open"
    HELD = "held"
    DONE = "done"

    @property
    def final(self):
        return self is Status.DONE


@dataclass(frozen=True)
class Transfer:
    source: str
    target: str
    amount: int
    status: Status = Status.OPEN

    @classmethod
    def parse(cls, data):
        try:
            return cls(str(data["from"]), str(data["to"]), int(data["amount"]))
        except (KeyError, ValueError) as error:
            raise AppError("malformed", field=str(error)) from error


class Step:
    def __init__(self, do, undo=None):
        self.do, self.undo = do, undo


class Ledger:
    def __init__(self, comm):
        self.comm = comm

    def debit(self, t):
        return self.comm.call("Accounts", "/debit", {"account": t.source, "amount": t.amount}).get()

    def credit(self, t):
        return self.comm.call("Accounts", "/credit", {"account": t.target, "amount": t.amount}).get()

    def refund(self, t):
        return self.comm.call("Accounts", "/credit", {"account": t.source, "amount": t.amount}).get()

    def steps(self):
        return [Step(self.debit, self.refund), Step(self.credit)]


class Bank(MS):
    pool_size = 4
    limits = {"private": 1_000, "business": 50_000}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rates: dict[str, float] = {}
        self.loaded = 0.0

    @EP("/transfer", method="POST")
    @errors
    def transfer(self, comm):
        transfer = Transfer.parse(body(comm))
        ledger = Ledger(comm)
        done = []
        try:
            for step in ledger.steps():
                step.do(transfer)
                done.append(step)
        except CallError as error:
            for step in reversed(done):
                if step.undo:
                    step.undo(transfer)
            raise Conflict("rejected") from error
        comm.respond({"status": Status.DONE.value})

    @EP("/check", method="POST")
    @errors
    def check(self, comm):
        transfer = Transfer.parse(body(comm))
        account = comm.call("Accounts", "/get", {"id": transfer.source}).get()
        limit = self.limits.get(account.get("kind"), 100)
        status = Status.OPEN
        if transfer.amount > limit:
            status = Status.HELD
        elif comm.call("Fraud", "/check", asdict(transfer)).get().get("ok"):
            status = Status.DONE
        if not status.final:
            comm.call("Events", "/publish", {"status": status})
        comm.respond({"status": status.value})

    @EP("/statement/{id}")
    def statement(self, comm):
        account = comm.params["id"]
        fmt = comm.params.get("format", "json")
        rows = comm.call("Accounts", "/movements", {"id": account}).get()
        render = {"json": self._json, "csv": self._csv, "pdf": self._pdf}.get(fmt, self._json)
        comm.respond(render(comm, rows))

    def _json(self, comm, rows):
        return rows

    def _csv(self, comm, rows):
        return "\n".join(",".join(map(str, row.values())) for row in rows)

    def _pdf(self, comm, rows):
        page = comm.call("Labels", "/render", {"rows": json.dumps(rows)}).get()
        return page

    @EP("/balance")
    def balance(self, comm):
        accounts = comm.call("Accounts", "/list").get()
        pending = [comm.call("Accounts", "/get", {"id": a}) for a in accounts]
        total = sum(p.get().get("balance", 0) for p in pending)
        comm.respond({"total": total})

    @EP("/exchange", method="POST")
    def exchange(self, comm):
        data = body(comm)
        pair = f"{data.get('from', 'EUR')}{data.get('to', 'USD')}"
        rate = self.rates.get(pair)
        if rate is None or time.time() - self.loaded > 60:
            rate = comm.call("Rates", "/rate", {"pair": pair}).get().get("rate", 1.0)
            self.rates[pair] = rate
            self.loaded = time.time()
        comm.respond({"amount": data.get("amount", 0) * rate})

    @EP("/loan", method="POST")
    @errors
    def loan(self, comm):
        data = body(comm)
        checks = [self._income, self._debts]
        if data.get("amount", 0) > 10_000:
            checks.append(self._collateral)
        failed = [check.__name__.strip("_") for check in checks if not check(comm, data)]
        if failed:
            raise Conflict("refused", failed=failed)
        comm.call("Store", "/loans/put", data).get()
        comm.respond({"ok": True})

    def _income(self, comm, data):
        return comm.call("Score", "/income", data).get().get("ok")

    def _debts(self, comm, data):
        return comm.call("Score", "/debts", data).get().get("ok")

    def _collateral(self, comm, data):
        return bool(data.get("house")) or comm.call("Score", "/collateral", data).get().get("ok")

    @EP("/close", method="POST")
    def close(self, comm):
        ids = body(comm).get("ids", [])
        results = {"closed": 0, "failed": 0}
        while ids:
            account = ids.pop()
            try:
                comm.call("Accounts", "/close", {"id": account}).get()
            except CallError:
                results["failed"] += 1
            else:
                results["closed"] += 1
        comm.respond(results)

    @EP("/webhook", method="POST")
    def webhook(self, comm):
        data = body(comm)
        kind = data.get("type", "")
        handler = getattr(self, "on_" + kind.replace(".", "_"), None)
        if handler is None:
            comm.respond({"ignored": kind})
            return
        comm.respond({"accepted": True}, status=202)
        handler(comm, data)

    def on_payment_done(self, comm, data):
        comm.call("Accounts", "/credit", data).get()
        comm.call("Notify", "/mail", data)

    def on_payment_failed(self, comm, data):
        comm.call("Notify", "/mail", data)
