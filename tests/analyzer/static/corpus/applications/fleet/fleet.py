import enum
import functools
import logging
import operator
from collections import Counter, OrderedDict, deque
from contextlib import closing, redirect_stdout, suppress
from types import MappingProxyType, SimpleNamespace

import models
from models import BOOKING, Dynamic, Offer, Router, Session, Step, Tariff, fallback, logged
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError, QueryError

LIMITS = MappingProxyType({"standard": 2, "premium": 5})
log = logging.getLogger("fleet")


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

    @property
    def endpoint(self) -> str:
        return f"/notify-{self.name.lower()}"


class Fleet(MS):
    pool_size = 4
    steps = BOOKING

    @EP("/vehicles/{id}", method="GET")
    @logged
    def vehicle(self, comm: Communication, id: str) -> None:
        found = Session(comm).vehicles.first(_id=id)
        if not found:
            comm.respond({"error": "no vehicle"}, status=404)
            return
        comm.respond(found.map(lambda row: row.get("plate")).or_else("?"))

    @EP("/price/{code}", method="GET")
    def price(self, comm: Communication, code: str, km: float = 1.0) -> None:
        tariff = Tariff.registry.get(code)
        if tariff is None:
            comm.respond({"error": f"one of {', '.join(Tariff.registry)}"}, status=422)
        else:
            comm.respond({"price": tariff.price(Session(comm), km)})

    @EP("/surge", method="GET")
    def surge(self, comm: Communication, km: float = 1.0) -> None:
        comm.respond({"price": Dynamic().price(Session(comm), km)})

    @EP("/route", method="GET")
    def route(self, comm: Communication) -> None:
        comm.respond({"km": Router(comm)("a", "b", "c")})

    @EP("/round-trip", method="GET")
    def round_trip(self, comm: Communication) -> None:
        router = Router(comm)
        there, back = router.distance("a", "b"), router.distance("b", "a")
        comm.respond({"km": there + back})

    @EP("/book", method="POST")
    def book(self, comm: Communication, trip: str) -> None:
        done: list[Step] = []
        try:
            for step in self.steps:
                comm.call(step.service, step.path, {"trip": trip}).get()
                done.append(step)
        except MupError as error:
            for step in reversed(done):
                with suppress(MupError):
                    comm.call(step.service, step.undo, {"trip": trip}).get()
            comm.respond({"error": str(error)}, status=409)
            return
        Session(comm).trips.insert({"_id": trip})
        comm.respond({"trip": trip}, status=201)

    @EP("/offers", method="GET")
    def offers(self, comm: Communication, kind: str = "standard") -> None:
        session = Session(comm)
        vehicles = session.vehicles.find(kind=kind)[: LIMITS.get(kind, 1)]
        asked = [(v["_id"], comm.call("Vehicles", "/quote", {"id": v["_id"]})) for v in vehicles]
        best = min((Offer(f.get()["price"], v) for v, f in asked), default=None)
        if best is None:
            comm.respond(status=204)
            return
        comm.respond({"vehicle": best.vehicle, "price": best.price})

    @EP("/alert/{level}", method="POST")
    def alert(self, comm: Communication, level: int) -> None:
        try:
            known = Level(level)
        except ValueError:
            comm.respond({"error": "level"}, status=422)
            return
        comm.call("Notify", known.endpoint, {}).get()
        if known >= Level.HIGH:
            comm.call("Pager", "/page", {})
        comm.respond({})

    @EP("/positions", method="POST")
    def positions(self, comm: Communication, rows: list) -> None:
        by_vehicle: OrderedDict[str, list] = OrderedDict()
        for row in rows:
            by_vehicle.setdefault(row["vehicle"], []).append(row)
        session = Session(comm)
        for vehicle, own in by_vehicle.items():
            session.vehicles.insert(*own)
            if len(own) > 10:
                log.info("%s moves a lot", vehicle)
        counts = Counter(len(own) for own in by_vehicle.values())
        comm.respond({"vehicles": len(by_vehicle), "most": counts.most_common(1)})

    @EP("/assign/{trip}", method="POST")
    def assign(self, comm: Communication, trip: str) -> None:
        session = Session(comm)
        candidates = deque(session.drivers.find(free=True))
        while candidates:
            driver = candidates.popleft()
            answer = comm.call("Drivers", "/offer", {"driver": driver["_id"], "trip": trip}).get(check=False)
            if answer.ok and answer.body.get("accepted"):
                session.trips.insert({"_id": trip, "driver": driver["_id"]})
                comm.respond({"driver": driver["_id"]})
                return
            if answer.status == 429:
                candidates.append(driver)
        comm.respond({"error": "nobody"}, status=503)

    @EP("/health", method="GET")
    def health(self, comm: Communication) -> None:
        probes = SimpleNamespace(
            maps=lambda: comm.call("Maps", "/ping", {}).get(), db=lambda: Session(comm).trips.count()
        )
        states = {name: self._probe(probe) for name, probe in vars(probes).items()}
        comm.respond(states, status=200 if all(states.values()) else 503)

    @fallback(False)
    def _probe(self, probe):
        probe()
        return True

    @EP("/total", method="GET")
    def total(self, comm: Communication) -> None:
        parts = (self._income, self._costs)
        income, costs = (part(comm) for part in parts)
        comm.respond({"profit": income - costs})

    def _income(self, comm):
        return functools.reduce(operator.add, (t["price"] for t in Session(comm).trips.find()), 0)

    def _costs(self, comm):
        return comm.call("Accounts", "/costs", {}).get().get("sum", 0)

    @EP("/watch/{id}", method="GET")
    def watch(self, comm: Communication, id: str) -> None:
        state, tries = None, 0
        while state not in ("arrived", "cancelled") and (tries := tries + 1) < 5:
            state = comm.call("Vehicles", "/state", {"id": id}).get().get("state")
        comm.respond({"state": state, "tries": tries})

    @EP("/swap", method="POST")
    def swap(self, comm: Communication, a: str, b: str) -> None:
        first, second = sorted((a, b))
        locks = []
        try:
            for one in (first, second):
                locks.append(comm.call("Locks", "/lock", {"id": one}).get()["lock"])
            comm.query("fleet", "swap", "vehicles", {"a": a, "b": b}).get()
        finally:
            for lock in locks:
                comm.call("Locks", "/unlock", {"lock": lock}).get()
        comm.respond({})

    @EP("/maybe/{id}", method="GET")
    def maybe(self, comm: Communication, id: str, deep: bool = False) -> None:
        row = Session(comm).vehicles.first(_id=id).or_else({})
        if deep and row:
            row |= {"history": Session(comm).trips.find(vehicle=id)}
        comm.respond(row or None, status=200 if row else 404)
