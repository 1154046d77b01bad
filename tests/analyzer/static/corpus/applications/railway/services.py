"""Railway ticketing: connections, fares, bookings, refunds, notifications, loyalty."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import reduce
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from clients import BookingRepository, EventStore, Flags, Inventory, PaymentDeclined, Payments, UnitOfWork
from domain import PAYOUTS, SECTIONS, BookingService, State, fold_claim, move, tier_of
from pricing import Fare, discounted, parse_date, refundable_share
from support import (
    ApiError,
    CircuitBreaker,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Page,
    Unauthorized,
    User,
    api,
    audited,
    best_effort,
    chunked,
    current_user,
    idempotent,
    log,
    login_required,
    rate_limited,
    required,
    retry,
)

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

TRUE = {"1", "true", "yes", True}


class RailService(MS):
    """What all services of the railway have in common."""

    runtime = "process"
    pool_size = 4
    user: User

    def tenant(self, comm: Communication) -> dict[str, Any]:
        """Configuration of the operator whose site the request comes from; kept per worker."""
        name = comm.headers.get("x-tenant", "default")
        cache = self.__dict__.setdefault("_tenants", {})
        if name not in cache:
            try:
                cache[name] = comm.call("Tenants", "/config", {"name": name}).get()
            except CallError as exc:
                raise NotFound(f"unknown operator {name}") from exc
        return cache[name]


class Connections(RailService):
    """Finds trains."""

    runtime = "thread"
    pool_size = 8

    def setup(self) -> None:
        self.suggestions: dict[str, list] = {}
        self.realtime = CircuitBreaker(threshold=2)

    @EP("/search", method="GET")
    @api
    @rate_limited("search", limit=100)
    def search(self, comm: Communication) -> None:
        origin, destination, day = required(comm.params, "from", "to", "date")
        parse_date(day)
        if origin == destination:
            raise Invalid("origin and destination are the same")
        query = {"from": origin, "to": destination, "date": day}
        futures = {"rail": comm.call("Timetable", "/search", query, timeout=2)}
        if comm.params.get("regional") in TRUE:
            futures["regional"] = comm.call("Regional", "/search", query, timeout=1)
        if "bus" in comm.params.get("modes", "").split(","):
            futures["bus"] = comm.call("Coaches", "/search", query, timeout=1)

        found, missing = [], []
        for source, future in futures.items():
            try:
                found += [{**trip, "source": source} for trip in future.get().get("trips", [])]
            except CommunicationError:
                missing.append(source)
        if not found and len(missing) == len(futures):
            comm.respond({"error": "no source answers"}, 503)
            return
        if not found:
            found = comm.call("Timetable", "/nearest", query).get().get("trips", [])
        found.sort(key=lambda trip: (trip.get("departs", ""), trip.get("changes", 0)))
        trips = [next(same) for _, same in groupby(found, key=itemgetter("id"))]
        if max_changes := comm.params.get("max_changes"):
            trips = [t for t in trips if t.get("changes", 0) <= int(max_changes)]
        comm.respond({"trips": trips[: Page.of(comm).limit], "missing": missing})
        comm.call("Metrics", "/count", {"name": "search", "results": len(trips)})

    @EP("/stations/suggest", method="GET")
    def suggest(self, comm: Communication) -> None:
        prefix = comm.params.get("q", "").strip().casefold()
        if len(prefix) < 2:
            return comm.respond({"stations": []})
        if prefix not in self.suggestions:
            try:
                stations = comm.call("Stations", "/suggest", {"prefix": prefix}, timeout=0.3).get()
            except CallTimeoutError:
                return comm.respond({"stations": [], "degraded": True})
            self.suggestions[prefix] = stations.get("stations", [])
        comm.respond({"stations": self.suggestions[prefix]}, headers={"cache-control": "max-age=3600"})

    def board(self, comm: Communication, station: str) -> Iterator[dict[str, Any]]:
        page = 1
        while True:
            answer = comm.call("Timetable", "/board", {"station": station, "page": page}).get()
            yield from answer.get("departures", [])
            if not answer.get("more"):
                return
            page += 1

    @EP("/departures/{station}", method="GET")
    @api
    def departures(self, comm: Communication, station: str) -> None:
        rows = list(self.board(comm, station))
        if not rows:
            raise NotFound(f"nothing departs from {station}")
        delays = self.realtime.run(
            lambda: comm.call(
                "Realtime", "/delays", {"trains": [r["train"] for r in rows]}, timeout=0.5
            ).get(),
            fallback={},
        )
        late = delays.get("minutes", {})
        comm.respond({"departures": [{**row, "delay": late.get(row["train"])} for row in rows]})

    @EP("/alternatives/{trip_id}", method="GET")
    @api
    def alternatives(self, comm: Communication, trip_id: str) -> None:
        trip = comm.call("Timetable", "/trip", {"id": trip_id}).get()
        broken = [leg for leg in trip.get("legs", []) if leg.get("cancelled")]
        if not broken:
            comm.respond({"trip": trip_id, "ok": True})
            return
        replacements = {}
        for leg in broken:
            options = comm.call("Timetable", "/between", {"from": leg["from"], "to": leg["to"]}).get()
            usable = (o for o in options.get("options", []) if o.get("seats", 0) > 0)
            if (best := next(usable, None)) is None:
                with best_effort("coach search"):
                    best = comm.call("Coaches", "/emergency", {"from": leg["from"]}).get().get("coach")
            replacements[leg["id"]] = best
        complete = all(replacements.values())
        comm.respond({"trip": trip_id, "replacements": replacements}, 200 if complete else 206)

    @EP("/timetable/import", method="POST")
    @api
    @login_required("planner", "admin")
    @audited("timetable.import")
    def import_timetable(self, comm: Communication) -> None:
        text = comm.params.get("csv", "")
        rows = list(csv.DictReader(io.StringIO(text))) if text else comm.params.get("rows", [])
        good = [row for row in rows if row.get("train") and row.get("departs")]
        rejected = len(rows) - len(good)
        if not good:
            raise Invalid("no usable rows", rejected=rejected)
        imported, failed = 0, []
        for number, batch in enumerate(chunked(good, 2)):
            try:
                answer = retry(lambda: comm.call("Timetable", "/upsert", {"rows": batch}).get(), attempts=2)  # noqa: B023
            except CommunicationError as exc:
                failed.append({"batch": number, "error": str(exc)})
                continue
            imported += answer.get("written", len(batch))
        if imported:
            comm.call("Cache", "/invalidate", {"prefix": "timetable"})
            self.suggestions.clear()
        comm.respond({"imported": imported, "rejected": rejected, "failed": failed}, 207 if failed else 200)

    @EP("/disruptions", method="POST")
    @api
    @login_required("dispatcher")
    def disruption(self, comm: Communication) -> None:
        line, severity = required(comm.params, "line", "severity")
        notice = {"line": line, "text": comm.params.get("text", ""), "by": self.user.id}
        match severity:
            case "minor":
                comm.call("Realtime", "/annotate", notice).get()
            case "major":
                comm.call("Realtime", "/annotate", notice)
                comm.call("Notify", "/broadcast", {"topic": f"line:{line}", **notice})
            case "closure":
                suspended = comm.call("Timetable", "/suspend", {"line": line}).get()
                for train in suspended.get("trains", []):
                    comm.call("Inventory", "/block", {"train": train})
                comm.call("Notify", "/broadcast", {"topic": f"line:{line}", "urgent": True, **notice})
            case _:
                raise Invalid("unknown severity", allowed=["minor", "major", "closure"])
        comm.respond({"accepted": True}, 202)


class Fares(RailService):
    """Knows what a journey costs."""

    renderers = {"1": "_render_v1", "2": "_render_v2"}

    def base_fare(self, comm: Communication, request: dict[str, Any]) -> Fare:
        train, passengers = request["train"], int(request.get("passengers", 1))
        price = comm.call("PriceBook", "/base", {"train": train, "class": request.get("class", 2)})
        load = comm.call("Inventory", "/load", {"train": train}, timeout=0.5)
        cents = price.get().get("cents", 2900)
        try:
            surge = 1.25 if load.get().get("load", 0) > 0.8 else 1.0
        except CommunicationError:
            surge = 1.0
        return Fare(round(cents * surge) * passengers, passengers, int(request.get("class", 2)))

    def _render_v1(self, fare: Fare, quote: str) -> dict[str, Any]:
        return {"quote": quote, "price": fare.cents / 100}

    def _render_v2(self, fare: Fare, quote: str) -> dict[str, Any]:
        return {"id": quote, "amount": {"cents": fare.cents, "currency": "EUR"}, "notes": list(fare.notes)}

    @EP("/quote", method="POST")
    @api
    @rate_limited("quote")
    def quote(self, comm: Communication) -> None:
        version = comm.headers.get("x-api-version", "2")
        if version not in self.renderers:
            raise Invalid(f"version {version} is not supported")
        required(comm.params, "train")
        fare = discounted(comm, self.base_fare(comm, comm.params), comm.params)
        if fare.cents == 0:
            log.info("free ticket for %s", comm.params["train"])
        saved = comm.call("Quotes", "/save", {"cents": fare.cents, "request": comm.params}).get()
        render = getattr(self, self.renderers[version])
        comm.respond(render(fare, saved.get("id", "")), 201)

    @EP("/quotes/{quote_id}", method="GET")
    @api
    def get_quote(self, comm: Communication, quote_id: str) -> None:
        quote = comm.call("Quotes", "/get", {"id": quote_id}).get()
        if not quote:
            raise NotFound(f"no quote {quote_id}")
        if quote.get("expired"):
            fare = self.base_fare(comm, quote.get("request", {"train": ""}))
            quote["cents"] = max(fare.cents, quote.get("cents", 0))
            comm.call("Quotes", "/save", quote)
        comm.respond(quote)

    @EP("/calendar", method="GET")
    @api
    def calendar(self, comm: Communication) -> None:
        origin, destination, start = required(comm.params, "from", "to", "start")
        first, days = parse_date(start), min(int(comm.params.get("days", 3)), 7)
        tenant = self.tenant(comm)
        asked = [
            (day, comm.call("PriceBook", "/cheapest", {"from": origin, "to": destination, "date": str(day)}))
            for day in (first + timedelta(days=n) for n in range(days))
        ]
        prices: dict[str, int | None] = {}
        for day, future in asked:
            with suppress(CommunicationError):
                prices[str(day)] = future.get().get("cents")
        known = [cents for cents in prices.values() if cents is not None]
        if not known and tenant.get("show_estimates"):
            estimate = comm.call("PriceBook", "/estimate", {"from": origin, "to": destination}).get()
            comm.respond({"prices": {}, "estimate": estimate.get("cents")})
            return
        comm.respond({"prices": prices, "cheapest": min(known, default=None)})

    @EP("/rules", method="POST")
    @api
    @login_required("revenue")
    @audited("fares.rule")
    def put_rule(self, comm: Communication) -> None:
        name, condition, action = required(comm.params, "name", "when", "then")
        problems = [
            *(f"unknown field {k}" for k in condition if k not in {"train", "class", "load", "weekday"}),
            *(["percentage out of range"] if not -50 <= action.get("percent", 0) <= 100 else []),
        ]
        if problems:
            raise Invalid("rule rejected", problems=problems)
        rule = {"name": name, "when": condition, "then": action, "by": self.user.id}
        if comm.params.get("dry_run"):
            effect = comm.call("PriceBook", "/simulate", rule, timeout=10).get()
            return comm.respond({"effect": effect})
        if abs(action.get("percent", 0)) > 30 and not self.user.can("admin"):
            ticket = comm.call("Approvals", "/request", rule).get()
            return comm.respond({"pending": ticket.get("id")}, 202)
        comm.call("PriceBook", "/put_rule", rule).get()
        comm.call("Cache", "/invalidate", {"prefix": "fares"})
        comm.respond({"active": name}, 201)

    @EP("/compare", method="POST")
    @api
    def compare(self, comm: Communication) -> None:
        """Price with the old engine; let the new one shadow it where the flag is on."""
        (train,) = required(comm.params, "train")
        shadow = None
        if Flags(comm).enabled("new-pricing", subject=train):
            shadow = comm.call("PriceEngine", "/price", {"train": train}, timeout=1)
        fare = self.base_fare(comm, comm.params)
        comm.respond({"cents": fare.cents})
        if shadow is None:
            return
        try:
            difference = shadow.get().get("cents", 0) - fare.cents
        except CommunicationError:
            comm.call("Metrics", "/count", {"name": "shadow_failed"})
        else:
            if abs(difference) > 100:
                comm.call("Metrics", "/count", {"name": "shadow_differs", "by": difference})


class Bookings(RailService):
    """Holds, sells, changes and cancels tickets."""

    pool_size = 8

    def service(self, comm: Communication) -> BookingService:
        return BookingService(comm, self.user)

    @EP("/holds", method="POST")
    @api
    @login_required()
    @idempotent
    def hold(self, comm: Communication):
        trains = comm.params.get("trains") or []
        seats = int(comm.params.get("seats", 1))
        if not trains or not 1 <= seats <= 9:
            raise Invalid("between 1 and 9 seats on at least one train")
        booking = self.service(comm).hold(trains, seats)
        return {"booking": booking.id, "locks": booking.locks}, 201

    @EP("/bookings/{booking_id}/pay", method="POST")
    @api
    @login_required()
    @idempotent
    def pay(self, comm: Communication, booking_id: str):
        service = self.service(comm)
        booking = service.owned(booking_id)
        quote = comm.call("Fares", "/quotes/{quote_id}", {"quote_id": comm.params.get("quote", "")}).get()
        cents = quote.get("cents", 0)
        if limit := comm.params.get("max_cents"):
            if cents > limit:
                raise Conflict("the price has risen", cents=cents)
        try:
            service.pay(booking, cents, comm.params.get("method", "card"))
        except PaymentDeclined:
            comm.call("Risk", "/declined", {"customer": self.user.id})
            raise
        comm.call(
            "Notify", "/send", {"customer": booking.customer, "template": "ticket", "booking": booking.id}
        )
        if cents >= 1000:
            comm.call("Loyalty", "/earn", {"member": booking.customer, "points": cents // 100})
        return {"booking": booking.id, "state": booking.state}, 200

    @EP("/bookings/{booking_id}", method="GET")
    @api
    @login_required()
    def show(self, comm: Communication, booking_id: str) -> None:
        booking = self.service(comm).owned(booking_id)
        expand = set(filter(None, comm.params.get("expand", "").split(",")))
        sources = {
            "payment": ("Payments", "/status", {"id": booking.payment}),
            "seats": ("Inventory", "/locked", {"locks": booking.locks}),
            "delay": ("Realtime", "/delay", {"train": booking.train}),
        }
        if unknown := expand - sources.keys():
            raise Invalid("cannot expand", fields=sorted(unknown))
        futures = {name: comm.call(*sources[name]) for name in sorted(expand)}
        details = {}
        for name, future in futures.items():
            try:
                details[name] = future.get()
            except CallError as exc:
                details[name] = {"unavailable": exc.status}
        comm.respond({"id": booking.id, "state": booking.state, "cents": booking.cents, **details})

    @EP("/bookings", method="GET")
    @api
    @login_required()
    def list_bookings(self, comm: Communication) -> None:
        customer = comm.params.get("customer", self.user.id)
        if customer != self.user.id and not self.user.can("agent", "admin"):
            raise Forbidden()
        page = Page.of(comm)
        found = BookingRepository(comm).of_customer(customer, limit=page.limit, offset=page.offset)
        items = found.get("items", [])
        if comm.params.get("state"):
            items = [item for item in items if item.get("state") == comm.params["state"]]
        following = page.offset + page.limit if found.get("total", 0) > page.offset + page.limit else None
        comm.respond({"items": items, "next": following})

    @EP("/bookings/{booking_id}/cancel", method="POST")
    @api
    @login_required()
    @audited("booking.cancel")
    def cancel(self, comm: Communication, booking_id: str) -> None:
        service = self.service(comm)
        booking = service.owned(booking_id)
        was_paid = booking.state == State.PAID
        move(booking, State.CANCELLED)
        service.bookings.save(booking)
        for lock in booking.locks:
            service.inventory.release(lock)
        if not was_paid:
            return comm.respond({"state": booking.state})
        hours = float(comm.params.get("hours_before", 0))
        share = refundable_share(hours, flexible=comm.params.get("flexible") in TRUE)
        if share == 0:
            return comm.respond({"state": booking.state, "refund": 0})
        claim = comm.call(
            "Refunds",
            "/claims",
            {"booking": booking.id, "cents": round(booking.cents * share), "reason": "cancelled"},
        ).get()
        comm.respond({"state": booking.state, "refund": claim.get("cents"), "claim": claim.get("id")})

    @EP("/bookings/{booking_id}/exchange", method="POST")
    @api
    @login_required()
    def exchange(self, comm: Communication, booking_id: str) -> None:
        service = self.service(comm)
        booking = service.owned(booking_id)
        (train,) = required(comm.params, "train")
        if booking.state != State.PAID:
            raise Conflict("only paid tickets can be exchanged")
        lock = service.inventory.lock(train, max(1, len(booking.locks)))
        try:
            price = comm.call("PriceBook", "/base", {"train": train}).get().get("cents", 0)
            difference = price - booking.cents
            if difference > 0:
                authorization = service.payments.authorize(self.user.id, difference)
                service.payments.capture(authorization)
            elif difference < 0 and comm.params.get("flexible"):
                service.payments.refund(booking.payment, -difference)
            service.inventory.confirm(lock.id)
        except (ApiError, CommunicationError):
            service.inventory.release(lock.id)
            raise
        with UnitOfWork(comm) as work:
            work.write("bookings", id=booking.id, train=train, cents=price)
            for old in booking.locks:
                work.write("releases", lock=old)
        comm.respond({"booking": booking.id, "difference": difference})
        comm.call("Notify", "/send", {"customer": booking.customer, "template": "exchange"})

    @EP("/bookings/{booking_id}/seats", method="POST")
    @api
    @login_required()
    def choose_seats(self, comm: Communication, booking_id: str) -> None:
        service = self.service(comm)
        booking = service.owned(booking_id)
        wishes = set(comm.params.get("wishes", []))
        free = [seat for seat in service.inventory.seatmap(booking.train) if seat.get("free")]
        if not free:
            raise Conflict("the train is full")
        best = max(free, key=lambda seat: len(wishes & set(seat.get("features", []))))
        if wishes and wishes.isdisjoint(best.get("features", [])) and comm.params.get("strict"):
            raise Conflict("no such seat is free", wishes=sorted(wishes))
        lock = service.inventory.lock(booking.train, 1, preferred=[best["id"]])
        for old in booking.locks:
            service.inventory.release(old)
        booking.locks = [lock.id]
        service.bookings.save(booking)
        comm.respond({"seats": lock.seats or [best["id"]]})

    @EP("/groups", method="POST")
    @api
    @login_required("agent")
    def book_group(self, comm: Communication) -> None:
        (train,) = required(comm.params, "train")
        passengers = comm.params.get("passengers", [])
        inventory, seated, waiting = Inventory(comm), {}, []
        for coach in chunked(passengers, 3):
            try:
                lock = inventory.lock(train, len(coach))
            except Conflict:
                waiting.extend(coach)
            else:
                seated[lock.id] = coach
        if waiting and comm.params.get("together"):
            for lock_id in seated:
                inventory.release(lock_id)
            raise Conflict("the group does not fit on the train", short=len(waiting))
        if waiting:
            comm.call("Waitlist", "/join", {"train": train, "passengers": waiting}).get()
        comm.respond({"seated": seated, "waiting": waiting}, 207 if waiting else 201)

    @EP("/tickets/{booking_id}/pdf", method="GET")
    @api
    @login_required()
    def pdf(self, comm: Communication, booking_id: str) -> None:
        booking = self.service(comm).owned(booking_id)
        if booking.state not in (State.PAID, State.TRAVELLED):
            raise Conflict("there is no ticket yet")
        key = f"tickets/{booking.id}-{booking.version}.pdf"
        with best_effort("cached ticket"):
            if url := comm.call("Storage", "/get", {"key": key}).get().get("url"):
                comm.respond(status=303, headers={"location": url})
                return
        job = comm.call("Documents", "/render", {"template": "ticket", "booking": booking.id}).get()
        for _ in range(4):
            if job.get("state") in ("done", "failed"):
                break
            time.sleep(0.2)
            job = comm.call("Documents", "/status", {"job": job.get("id", "")}).get()
        match job:
            case {"state": "done", "url": url}:
                comm.respond({"url": url})
                comm.call("Storage", "/put", {"key": key, "source": url})
            case {"state": "failed"}:
                comm.respond({"error": "ticket could not be rendered"}, 500)
            case _:
                comm.respond({"job": job.get("id")}, 202, headers={"retry-after": "2"})


class Refunds(RailService):
    """Claims of customers, and what becomes of them."""

    SECRET = b"test-secret"
    AUTO_APPROVED = 2000
    DELAYS, SHARES = (30, 60, 120), (0.0, 0.25, 0.5, 1.0)

    def load(self, comm: Communication, claim_id: str) -> dict[str, Any]:
        claim = reduce(fold_claim, EventStore(comm).stream(f"claim-{claim_id}"), {})
        if not claim:
            raise NotFound(f"no claim {claim_id}")
        return claim

    @EP("/claims", method="POST")
    @api
    def open_claim(self, comm: Communication) -> None:
        booking, cents = required(comm.params, "booking", "cents")
        events = EventStore(comm)
        claim = comm.call("Sequences", "/next", {"name": "claim"}).get().get("value", 0)
        events.append(f"claim-{claim}", "opened", booking=booking, cents=cents)
        checks = comm.call("Risk", "/score", {"booking": booking, "cents": cents}, timeout=1)
        try:
            risky = checks.get().get("score", 0) > 70
        except CommunicationError:
            risky = True
        if cents <= self.AUTO_APPROVED and not risky:
            events.append(f"claim-{claim}", "approved", by="auto")
            comm.respond({"id": claim, "cents": cents, "state": "approved"}, 201)
            return
        comm.call("Backoffice", "/enqueue", {"claim": claim, "risky": risky})
        comm.respond({"id": claim, "cents": cents, "state": "open"}, 202)

    @EP("/claims/{claim_id}/decide", method="POST")
    @api
    @login_required("agent")
    @audited("refund.decide")
    def decide(self, comm: Communication, claim_id: str) -> None:
        decision = comm.params.get("decision")
        handler = {"approve": self._approve, "deny": self._deny}.get(decision)
        if handler is None:
            raise Invalid("approve or deny", decision=decision)
        claim = self.load(comm, claim_id)
        if claim.get("state") != "open":
            raise Conflict(f"the claim is {claim.get('state')}")
        comm.respond(handler(comm, claim_id, claim))

    def _approve(self, comm: Communication, claim_id: str, claim: dict[str, Any]) -> dict[str, Any]:
        version = EventStore(comm).append(f"claim-{claim_id}", "approved", by=self.user.id)
        try:
            Payments(comm).refund(claim.get("booking", ""), claim.get("cents", 0))
        except CommunicationError:
            comm.call("Backoffice", "/retry_later", {"claim": claim_id})
            return {"state": "approved", "version": version}
        EventStore(comm).append(f"claim-{claim_id}", "paid")
        return {"state": "paid"}

    def _deny(self, comm: Communication, claim_id: str, claim: dict[str, Any]) -> dict[str, Any]:
        EventStore(comm).append(f"claim-{claim_id}", "denied", by=self.user.id)
        comm.call("Notify", "/send", {"customer": claim.get("customer", ""), "template": "denied"})
        return {"state": "denied"}

    @EP("/claims/{claim_id}", method="GET")
    @api
    def show_claim(self, comm: Communication, claim_id: str) -> None:
        if comm.headers.get("x-internal") != "1":
            current_user(comm)
        comm.respond(self.load(comm, claim_id))

    @EP("/delay-compensation", method="POST")
    @api
    @login_required()
    @idempotent
    def compensate_delay(self, comm: Communication):
        booking_id, payout = required(comm.params, "booking", "payout")
        if payout not in PAYOUTS:
            raise Invalid("unknown payout", allowed=sorted(PAYOUTS))
        booking = BookingRepository(comm).get(booking_id)
        history = comm.call("Realtime", "/history", {"train": booking.train}).get()
        share = self.SHARES[bisect_right(self.DELAYS, history.get("delay", 0))]
        if share == 0:
            return {"compensation": 0, "delay": history.get("delay", 0)}, 200
        cents = round(booking.cents * share)
        receipt = PAYOUTS[payout](comm, booking.customer).pay(cents)
        return {"compensation": cents, "receipt": receipt.get("id")}, 201

    @EP("/batches", method="POST")
    @api
    @login_required("agent", "admin")
    def process_batch(self, comm: Communication) -> None:
        outcomes: dict[str, list[str]] = defaultdict(list)
        for claim_id in dict.fromkeys(comm.params.get("claims", [])):
            try:
                claim = self.load(comm, claim_id)
                if claim.get("state") != "approved":
                    outcomes["skipped"].append(claim_id)
                    continue
                Payments(comm).refund(claim.get("booking", ""), claim.get("cents", 0))
            except NotFound:
                outcomes["unknown"].append(claim_id)
            except CommunicationError:
                outcomes["failed"].append(claim_id)
            else:
                outcomes["paid"].append(claim_id)
        if outcomes["failed"]:
            comm.call("Backoffice", "/alert", {"failed": outcomes["failed"]})
        comm.respond(outcomes, 207 if outcomes["failed"] or outcomes["unknown"] else 200)

    @EP("/webhooks/payments", method="POST")
    @api
    def payment_webhook(self, comm: Communication) -> None:
        event, kind = required(comm.params, "id", "type")
        expected = hmac.new(self.SECRET, str(event).encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, comm.headers.get("x-signature", "")):
            raise Unauthorized("bad signature")
        handler = getattr(self, f"on_{kind.replace('.', '_')}", None)
        if handler is None:
            comm.respond({"ignored": kind})
            return
        if comm.call("Idempotency", "/begin", {"key": f"webhook-{event}"}).get().get("state") == "done":
            comm.respond({"duplicate": True})
            return
        handler(comm, comm.params.get("data", {}))
        comm.respond({"handled": kind})

    def on_refund_settled(self, comm: Communication, data: dict[str, Any]) -> None:
        EventStore(comm).append(f"claim-{data.get('claim')}", "paid")

    def on_refund_failed(self, comm: Communication, data: dict[str, Any]) -> None:
        comm.call("Backoffice", "/retry_later", {"claim": data.get("claim")}).get()

    def on_dispute_opened(self, comm: Communication, data: dict[str, Any]) -> None:
        comm.call("Risk", "/dispute", data)
        comm.call("Backoffice", "/alert", {"dispute": data.get("id")})

    @EP("/reports/monthly", method="GET")
    @api
    @login_required("finance", "admin")
    def report(self, comm: Communication) -> None:
        (month,) = required(comm.params, "month")
        names = ["claims", "payouts", "disputes"]
        futures = [comm.call("Warehouse", "/aggregate", {"table": n, "month": month}) for n in names]
        totals = {name: future.get().get("total", 0) for name, future in zip(names, futures, strict=True)}
        if comm.params.get("compare") in TRUE:
            before = comm.call("Warehouse", "/previous", {"month": month}).get()
            totals["change"] = sum(totals.values()) - before.get("total", 0)
        if comm.params.get("format") == "csv":
            out = io.StringIO()
            csv.writer(out).writerows(totals.items())
            comm.respond(out.getvalue(), headers={"content-type": "text/csv"})
        else:
            comm.respond(totals)


CHANNELS = {"email": ("Mail", "/send"), "sms": ("Sms", "/send"), "push": ("Push", "/send")}


class Notify(RailService):
    """Tells customers what happens."""

    runtime = "thread"
    pool_size = 6

    def preferences(self, comm: Communication, customer: str) -> dict[str, Any]:
        try:
            return comm.call("Customers", "/preferences", {"id": customer}, timeout=1).get()
        except CommunicationError:
            return {"channels": ["email"]}

    def deliver(self, comm: Communication, channels: list[str], message: dict[str, Any]) -> str | None:
        """Return the first channel that takes the message."""
        for name in channels:
            if name not in CHANNELS:
                continue
            service, path = CHANNELS[name]
            try:
                comm.call(service, path, message, timeout=2).get()
            except (CallError, CallTimeoutError):
                log.warning("%s refuses", name)
            else:
                return name
        return None

    @EP("/send", method="POST")
    @api
    def send(self, comm: Communication) -> None:
        customer, template = required(comm.params, "customer", "template")
        preferences = self.preferences(comm, customer)
        if template in preferences.get("muted", []):
            return comm.respond(status=204)
        used = self.deliver(comm, preferences.get("channels", ["email"]), comm.params)
        if used is None:
            comm.call("Outbox", "/park", comm.params).get()
            return comm.respond({"parked": True}, 202)
        comm.respond({"channel": used})

    @EP("/broadcast", method="POST")
    @api
    def broadcast(self, comm: Communication) -> None:
        topic, text = required(comm.params, "topic", "text")
        channel = "sms" if comm.params.get("urgent") else "push"
        comm.respond({"accepted": topic}, 202)
        service, path = CHANNELS[channel]
        cursor = "start"
        with best_effort("broadcast"):
            while cursor:
                page = comm.call("Subscribers", "/page", {"topic": topic, "cursor": cursor}).get()
                for batch in chunked(page.get("members", []), 2):
                    comm.call(service, path, {"to": batch, "text": text}).get()
                cursor = page.get("next")

    @EP("/preferences", method="PUT")
    @api
    @login_required()
    def put_preferences(self, comm: Communication) -> None:
        channels = comm.params.get("channels", [])
        if unknown := [c for c in channels if c not in CHANNELS]:
            raise Invalid("unknown channels", channels=unknown)
        try:
            saved = comm.call(
                "Customers", "/put_preferences", {"id": self.user.id, "channels": channels}
            ).get()
        except CallError as exc:
            if exc.status != 409:
                raise
            raise Conflict("preferences were changed meanwhile") from exc
        if "sms" in channels and not saved.get("phone_verified"):
            comm.call("Sms", "/verify", {"customer": self.user.id})
        comm.respond({"channels": channels})

    @EP("/callbacks/delivery", method="POST")
    def delivery_callback(self, comm: Communication) -> None:
        events = comm.params.get("events", [])
        counts = Counter(event.get("status") for event in events)
        for event in events:
            if event.get("status") != "bounced":
                continue
            original = comm.call("Outbox", "/get", {"id": event.get("message")}).get()
            others = [c for c in CHANNELS if c != original.get("channel")]
            if original and original.get("attempts", 0) < 3:
                self.deliver(comm, others[:1], original)
            else:
                comm.call("Customers", "/mark_unreachable", {"message": event.get("message")})
        comm.respond(dict(counts))

    @EP("/digests", method="POST")
    @api
    def digest(self, comm: Communication) -> None:
        (customer,) = required(comm.params, "customer")
        parts = []
        for make in SECTIONS:
            with best_effort(make.__name__):
                parts.append(make(comm, customer))
        text = "\n\n".join(filter(None, parts))
        if not text:
            comm.respond({"sent": False})
            return
        comm.call("Mail", "/send", {"to": customer, "text": text}).get()
        comm.respond({"sent": True, "sections": len(parts)})


class Loyalty(RailService):
    """Points of members, as events."""

    partners = {"hotel": ("HotelPartner", "/stays"), "car": ("CarPartner", "/rentals")}

    def balance(self, comm: Communication, member: str) -> int:
        snapshot = comm.call("Snapshots", "/get", {"key": member}).get(check=False)
        start = snapshot.body.get("points", 0) if snapshot.ok and snapshot.body else 0
        events = list(EventStore(comm).stream(f"points-{member}"))
        if len(events) > 2:
            comm.call("Snapshots", "/request", {"key": member})
        return start + sum(e.get("data", {}).get("points", 0) for e in events)

    def append(self, comm: Communication, member: str, points: int, attempts: int = 3) -> int:
        """Add points with optimistic concurrency."""
        for _ in range(attempts):
            before = comm.call("EventStore", "/version", {"stream": f"points-{member}"}).get()
            answer = comm.call(
                "EventStore",
                "/append",
                {
                    "stream": f"points-{member}",
                    "expected": before.get("version", 0),
                    "data": {"points": points},
                },
            ).get()
            if not answer.get("conflict"):
                return answer.get("version", 0)
        raise Conflict("too many concurrent changes")

    @contextmanager
    def locked(self, comm: Communication, member: str) -> Iterator[str]:
        lock = comm.call("Locks", "/acquire", {"name": f"member-{member}"}).get()
        if not lock.get("token"):
            raise Conflict("account is busy")
        try:
            yield lock["token"]
        finally:
            comm.call("Locks", "/release", {"token": lock["token"]})

    @EP("/accounts/{member_id}", method="GET")
    @api
    def account(self, comm: Communication, member_id: str) -> None:
        balance = self.balance(comm, member_id)
        body: dict[str, Any] = {"member": member_id, "balance": balance, "tier": tier_of(balance)}
        if body["tier"] == "gold":
            body["lounges"] = comm.call("Lounges", "/list").get().get("lounges", [])
        comm.respond(body)

    @EP("/earn", method="POST")
    @api
    def earn(self, comm: Communication) -> None:
        member, amount = required(comm.params, "member", "points")
        if amount <= 0:
            raise Invalid("points must be positive")
        factor = comm.call("Campaigns", "/factor", {"member": member}).get().get("factor", 1)
        version = self.append(comm, member, int(amount * factor))
        comm.respond({"version": version}, 201)
        with best_effort("tier upgrade"):
            after = self.balance(comm, member)
            if tier_of(after) != tier_of(after - amount):
                comm.call("Notify", "/send", {"customer": member, "template": "tier"})

    @EP("/redeem", method="POST")
    @api
    @login_required()
    def redeem(self, comm: Communication) -> None:
        (cost,) = required(comm.params, "points")
        member = self.user.id
        with self.locked(comm, member):
            if (have := self.balance(comm, member)) < cost:
                raise Conflict("not enough points", have=have)
            self.append(comm, member, -cost)
            try:
                voucher = comm.call("Vouchers", "/issue", {"customer": member, "cents": cost}).get()
            except CommunicationError:
                self.append(comm, member, cost)
                raise
        comm.respond({"voucher": voucher.get("code"), "left": have - cost}, 201)

    @EP("/transfer", method="POST")
    @api
    @login_required()
    @audited("loyalty.transfer")
    def transfer(self, comm: Communication) -> None:
        to, amount = required(comm.params, "to", "points")
        tenant = self.tenant(comm)
        if amount > tenant.get("transfer_limit", 5000):
            raise Forbidden("above the limit of the operator")
        if to == self.user.id:
            raise Invalid("cannot transfer to yourself")
        recipient = comm.call("Customers", "/get", {"id": to}).get()
        if not recipient.get("member"):
            raise NotFound("the recipient is no member")
        self.append(comm, self.user.id, -amount)
        try:
            self.append(comm, to, amount)
        except (Conflict, CommunicationError):
            self.append(comm, self.user.id, amount)
            raise
        comm.respond({"transferred": amount})

    @EP("/partners/sync", method="POST")
    @api
    def sync_partners(self, comm: Communication) -> None:
        wanted = comm.params.get("partners") or list(self.partners)
        futures = {}
        for name in wanted:
            if name not in self.partners:
                raise NotFound(f"no partner {name}")
            futures[name] = comm.call(
                *self.partners[name], {"since": comm.params.get("since", "")}, timeout=5
            )
        results: dict[str, list[dict[str, Any]]] = {}
        errors: dict[str, str] = {}
        for name, future in futures.items():
            try:
                results[name] = future.get().get("items", [])
            except CommunicationError as exc:
                errors[name] = type(exc).__name__
        items = sorted(chain.from_iterable(results.values()), key=lambda item: item.get("member", ""))
        credited = 0
        for member, group in groupby(items, key=lambda item: item.get("member", "")):
            if not member:
                continue
            total = sum(item.get("points", 0) for item in group)
            comm.call(
                "EventStore", "/append", {"stream": f"points-{member}", "data": {"points": total}}
            ).get()
            credited += 1
        if errors and not results:
            comm.respond({"errors": errors}, 502)
            return
        comm.respond({"credited": credited, "errors": errors})
