"""The freight platform: quotes, bookings, tracking, customs, warehouses, billing."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any

from booking import EXPANSIONS, AdvanceBooking, AmendBooking, CancelBooking, CreateBooking, bookings_of, bus
from gateways import AUTHORITIES, Carrier, Offer, QuoteRequest, lease, lease_async, throttle
from kernel import (
    CircuitBreaker,
    Command,
    Conflict,
    Err,
    Forbidden,
    FreightError,
    Invalid,
    NotFound,
    Ok,
    Result,
    Saga,
)
from kernel import api, attempt, batched, log, principal, retry_async, retrying
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError


class Quoting(MS):
    """Asks carriers for prices."""

    pool_size = 16
    runtime = "async"

    def setup(self) -> None:
        self.breakers = {code: CircuitBreaker(code) for code in Carrier.registry}

    async def _ask(self, carrier: Carrier, request: QuoteRequest) -> Result[Offer, Exception]:
        try:
            with self.breakers[carrier.code].guard():
                async with asyncio.timeout(carrier.patience):
                    return Ok(await carrier.quote(request))
        except (CommunicationError, FreightError, TimeoutError) as error:
            return Err(error)

    async def _carriers(self, comm: Communication, request: QuoteRequest) -> list[Carrier]:
        try:
            answer = await comm.call("Flags", "/evaluate", {"tenant": principal().tenant}, timeout=0.3)
        except CommunicationError:
            answer = {}
        flags = answer.get("flags", {})
        candidates = (
            cls(comm) for code, cls in Carrier.registry.items() if flags.get(f"carrier.{code}", True)
        )
        return [carrier for carrier in candidates if carrier.accepts(request)]

    async def _offers(self, comm: Communication, request: QuoteRequest) -> list[Offer]:
        carriers = await self._carriers(comm, request)
        results = await asyncio.gather(*(self._ask(carrier, request) for carrier in carriers))
        return sorted((result.value for result in results if isinstance(result, Ok)), key=attrgetter("price"))

    @EP("/quotes", method="POST")
    @api("quotes:write")
    async def create_quote(self, comm: Communication) -> None:
        request = QuoteRequest.parse(comm.params)
        await throttle(comm, principal().tenant)
        offers = await self._offers(comm, request)
        if not offers:
            raise NotFound("no carrier serves this lane")
        saved = await comm.call(
            "QuoteStore", "/put", {"request": asdict(request), "offers": [*map(asdict, offers)]}
        )
        comm.respond({"id": saved.get("id"), "best": asdict(offers[0]), "alternatives": len(offers) - 1}, 201)
        with contextlib.suppress(CommunicationError):
            await comm.call("Audit", "/append", {"action": "quote", "subject": principal().subject})

    @EP("/quotes/{quote_id}", method="GET")
    @api("quotes:read")
    async def quote(self, comm: Communication, quote_id: str) -> None:
        quote = await comm.call("QuoteStore", "/get", {"id": quote_id})
        if not quote:
            raise NotFound(f"quote {quote_id} is unknown")
        if quote.get("tenant", principal().tenant) != principal().tenant:
            raise Forbidden("this quote belongs to somebody else")
        if quote.get("expired") and comm.params.get("refresh") == "1":
            offers = await self._offers(comm, QuoteRequest.parse(quote.get("request", {})))
            quote |= {"offers": [asdict(offer) for offer in offers], "expired": not offers}
            if offers:
                await comm.call("QuoteStore", "/put", quote)
        comm.respond(quote)

    @EP("/quotes/compare", method="POST")
    @api("quotes:read")
    async def compare(self, comm: Communication) -> None:
        """Return the first offers that arrive; nobody waits for the slowest carrier."""
        request = QuoteRequest.parse(comm.params)
        wanted = int(comm.params.get("wanted", 2))
        carriers = await self._carriers(comm, request)
        tasks = [asyncio.create_task(self._ask(carrier, request)) for carrier in carriers]
        offers: list[Offer] = []
        try:
            for arrival in asyncio.as_completed(tasks, timeout=4.0):
                match await arrival:
                    case Ok(offer):
                        offers.append(offer)
                    case Err(error):
                        log.info("declined: %s", error)
                if len(offers) >= wanted:
                    break
        except TimeoutError:
            log.info("not all carriers answered in time")
        finally:
            for task in tasks:
                task.cancel()
        comm.respond({"offers": [*map(asdict, offers)]}, 200 if len(offers) >= wanted else 206)

    @EP("/quotes/multileg", method="POST")
    @api("quotes:write")
    async def multileg(self, comm: Communication) -> None:
        request = QuoteRequest.parse(comm.params)
        plan = await comm.call("Routing", "/legs", {"from": request.origin, "to": request.destination})
        chosen: list[Offer] = []
        for leg in plan.get("legs", []):
            part = replace(request, origin=leg["from"], destination=leg["to"], mode=leg.get("mode", "any"))
            offers = await self._offers(comm, part)
            if not offers:
                raise Conflict("a leg has no carrier", leg=leg)
            if leg.get("port"):
                fees = await comm.call("Ports", "/fees", {"port": leg["port"], "weight": request.weight})
                offers = [replace(offer, price=offer.price + fees.get("fee", 0)) for offer in offers]
            chosen.append(min(offers, key=attrgetter("days" if comm.params.get("fast") else "price")))
        total = {"price": sum(offer.price for offer in chosen), "days": sum(offer.days for offer in chosen)}
        comm.respond({"legs": [*map(asdict, chosen)], **total})

    @EP("/quotes/{quote_id}/accept", method="POST")
    @api("quotes:write", "bookings:write")
    async def accept(self, comm: Communication, quote_id: str) -> None:
        if (key := comm.headers.get("idempotency-key")) is not None:
            with contextlib.suppress(CommunicationError):
                if previous := await comm.call("Idempotency", "/get", {"key": key}):
                    comm.respond(previous.get("body"), previous.get("status", 200))
                    return
        async with lease_async(comm, f"quote/{quote_id}"):
            quote = await comm.call("QuoteStore", "/get", {"id": quote_id})
            if quote.get("expired") or not quote.get("offers"):
                raise Conflict("the quote cannot be accepted any more")
            offer = min(quote["offers"], key=itemgetter("price"))
            order = {"quote": quote_id, "carrier": offer["carrier"], "weight": quote.get("weight", 1)}
            headers = {"authorization": comm.headers["authorization"]}
            booking = await comm.call("Bookings", "/bookings", order, headers=headers, timeout=8.0)
            body = {"booking": booking.get("id"), "carrier": offer["carrier"]}
            if key is not None:
                await comm.call("Idempotency", "/put", {"key": key, "body": body, "status": 201})
        comm.respond(body, 201)


class Bookings(MS):
    """Bookings: commands by the message bus, queries past it."""

    pool_size = 8
    runtime = "process"

    def _execute(self, comm: Communication, kind: type[Command], status: int = 200, **more: Any) -> None:
        booking = bus.dispatch(kind.parse({**comm.params, **more}), bookings_of(comm))
        comm.respond({"id": booking.id, "status": booking.status, "version": booking.version}, status)

    @EP("/bookings", method="POST")
    @api("bookings:write")
    def create(self, comm: Communication) -> None:
        self._execute(comm, CreateBooking, 201)

    @EP("/bookings/{booking_id}/cancel", method="POST")
    @api("bookings:write")
    def cancel(self, comm: Communication, booking_id: str) -> None:
        self._execute(comm, CancelBooking, booking_id=booking_id)

    @EP("/bookings/{booking_id}/amend", method="POST")
    @api("bookings:write")
    def amend(self, comm: Communication, booking_id: str) -> None:
        with lease(comm, f"booking/{booking_id}"):
            self._execute(comm, AmendBooking, booking_id=booking_id)

    @EP("/bookings/{booking_id}/advance", method="POST")
    @api()
    def advance(self, comm: Communication, booking_id: str) -> None:
        """Internal: no token, only other services come here."""
        self._execute(comm, AdvanceBooking, booking_id=booking_id)

    @EP("/bookings/{booking_id}", method="GET")
    @api("bookings:read")
    def show(self, comm: Communication, booking_id: str) -> None:
        booking = bookings_of(comm).items.get(booking_id)
        wanted = EXPANSIONS.keys() & comm.params.get("expand", "").split(",")
        futures = {name: EXPANSIONS[name](comm, booking) for name in sorted(wanted)}
        extra = {name: attempt(future.get).unwrap_or(None) for name, future in futures.items()}
        comm.respond({"id": booking.id, "status": booking.status, "carrier": booking.carrier, **extra})

    @EP("/bookings/import", method="POST")
    @api("bookings:write", "bookings:bulk")
    def bulk_import(self, comm: Communication) -> None:
        report: dict[str, list[Any]] = {"created": [], "failed": []}
        for number, row in enumerate(comm.params.get("rows", [])):
            match attempt(lambda: bus.dispatch(CreateBooking.parse(row), bookings_of(comm))):  # noqa: B023
                case Ok(booking):
                    report["created"].append(booking.id)
                case Err(FreightError() as error):
                    report["failed"].append({"row": number, "error": type(error).__name__})
                case Err(error):
                    report["failed"].append({"row": number, "error": str(error)})
                    if isinstance(error, CallTimeoutError) and comm.params.get("strict"):
                        break
        comm.respond(report, 207 if report["failed"] else 201)
        if report["failed"]:
            comm.call("Notifications", "/send", {"template": "import_failed", "rows": len(report["failed"])})


@dataclass(frozen=True)
class Timeline:
    status: str = "unknown"
    location: str | None = None
    delays: int = 0
    stops: tuple[str, ...] = field(default_factory=tuple)

    def apply(self, event: Mapping[str, Any]) -> Timeline:
        match event:
            case {"type": "departed", "place": place}:
                return replace(self, status="in_transit", location=None, stops=(*self.stops, place))
            case {"type": "arrived", "place": place}:
                return replace(self, status="at_hub", location=place)
            case {"type": "delayed", **rest}:
                return replace(self, delays=self.delays + rest.get("hours", 1))
            case {"type": "delivered"}:
                return replace(self, status="delivered")
            case _:
                return self


async def events_of(comm: Communication, shipment: str) -> AsyncIterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        page = await comm.call("EventStore", "/read", {"stream": shipment, "after": cursor})
        for event in page.get("events", []):
            yield event
        cursor = page.get("next")


async def on_departed(comm: Communication, shipment: str, event: Mapping[str, Any]) -> None:
    await comm.call(
        "Bookings", "/bookings/{booking_id}/advance", {"booking_id": shipment, "trigger": "depart"}
    )


async def on_delayed(comm: Communication, shipment: str, event: Mapping[str, Any]) -> None:
    if event.get("hours", 0) < 12:
        return
    contacts = await comm.call("Subscriptions", "/of", {"shipment": shipment})
    await asyncio.gather(
        *(
            comm.call("Notifications", "/send", {"to": to, "template": "delay"})
            for to in contacts.get("contacts", [])
        ),
        return_exceptions=True,
    )


async def on_delivered(comm: Communication, shipment: str, event: Mapping[str, Any]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(
            comm.call(
                "Bookings", "/bookings/{booking_id}/advance", {"booking_id": shipment, "trigger": "deliver"}
            )
        )
        if event.get("signature"):
            group.create_task(
                comm.call("Documents", "/attach", {"booking": shipment, "proof": event["signature"]})
            )


REACTIONS: dict[str, Callable[[Communication, str, Mapping[str, Any]], Awaitable[None]]] = {
    "departed": on_departed,
    "delayed": on_delayed,
    "delivered": on_delivered,
}


class Tracking(MS):
    """Where shipments are."""

    pool_size = 32
    runtime = "async"

    @EP("/webhooks/{carrier}", method="POST")
    @api()
    async def webhook(self, comm: Communication, carrier: str) -> None:
        if carrier not in Carrier.registry:
            raise NotFound("no such carrier")
        signature = comm.headers.get("x-signature", "")
        check = await comm.call("Secrets", "/verify", {"key": f"webhook/{carrier}", "signature": signature})
        if not check.get("valid"):
            raise Forbidden("bad signature")
        shipment, event = comm.params.get("shipment", ""), comm.params.get("event", {})
        stored = await comm.call("EventStore", "/append", {"stream": shipment, "event": event})
        if stored.get("duplicate"):
            comm.respond({"status": "duplicate"})
            return
        comm.respond({"status": "accepted"}, 202)
        if (reaction := REACTIONS.get(event.get("type", ""))) is not None:
            try:
                await reaction(comm, shipment, event)
            except* CommunicationError as group:
                log.warning("webhook of %s: %d reactions failed", carrier, len(group.exceptions))

    @EP("/shipments/{shipment_id}/timeline", method="GET")
    @api()
    async def timeline(self, comm: Communication, shipment_id: str) -> None:
        state = Timeline()
        async for event in events_of(comm, shipment_id):
            state = state.apply(event)
            if state.status == "delivered":
                break
        live = None
        if state.status == "in_transit" and (cls := Carrier.registry.get(comm.params.get("carrier", ""))):
            try:
                async with asyncio.timeout(1.0):
                    live = (await cls(comm).position(shipment_id)).get("position")
            except (CommunicationError, TimeoutError):
                live = "unknown"
        comm.respond({**asdict(state), "live": live})

    @EP("/shipments/{shipment_id}/refresh", method="POST")
    @api("tracking:write")
    async def refresh(self, comm: Communication, shipment_id: str) -> None:
        """Ask the carrier until there is news, but not for ever."""
        carrier = Carrier.registry.get(comm.params.get("carrier", "dhl"))
        if carrier is None:
            raise Invalid("unknown carrier")
        known = comm.params.get("status", "unknown")
        for delay in (0.5, 1.0, 2.0):
            news = await retry_async(lambda: carrier(comm).position(shipment_id), attempts=2)
            if news.get("status", known) != known:
                break
            await asyncio.sleep(delay)
        else:
            comm.respond({"status": known, "changed": False}, 202)
            return
        event = {"type": news["status"], "place": news.get("position")}
        await comm.call("EventStore", "/append", {"stream": shipment_id, "event": event})
        comm.respond({"status": news["status"], "changed": True})

    @EP("/shipments/{shipment_id}/eta", method="GET")
    @api()
    async def eta(self, comm: Communication, shipment_id: str) -> None:
        """Take the prediction of whichever model is first; history is the fallback."""
        predictors = [
            asyncio.create_task(comm.call("EtaModel", "/predict", {"shipment": shipment_id})),
            asyncio.create_task(comm.call("PortCalls", "/estimate", {"shipment": shipment_id})),
        ]
        done, late = await asyncio.wait(predictors, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        predictions = [task.result() for task in done if task.exception() is None]
        best = max(predictions, key=lambda answer: answer.get("confidence", 0), default=None)
        if best is None or best.get("confidence", 0) < 0.5:
            best = await comm.call("History", "/average", {"shipment": shipment_id})
        comm.respond({"eta": best.get("eta"), "confidence": best.get("confidence", 0.3)})

    @EP("/sweep", method="POST")
    @api()
    async def sweep(self, comm: Communication) -> None:
        """Nightly: look after shipments nobody has heard of."""
        stale = (await comm.call("ShipmentIndex", "/stale", {"hours": comm.params.get("hours", 24)})).get(
            "ids", []
        )
        comm.respond({"accepted": len(stale)}, 202)
        gate = asyncio.Semaphore(2)

        async def look_after(reference: str) -> None:
            async with gate:
                try:
                    await comm.call("Dhl", "/track", {"reference": reference})
                except CallError:
                    await comm.call("Tasks", "/open", {"queue": "lost", "shipment": reference})

        await asyncio.gather(*map(look_after, stale), return_exceptions=True)


class DeclarationBuilder:
    """Collects what a declaration needs; each part may ask somebody."""

    def __init__(self, comm: Communication, country: str) -> None:
        self._comm = comm
        self._parts: dict[str, Any] = {"country": country, "goods": [], "value": 0.0}

    def with_goods(self, items: Iterable[Mapping[str, Any]]) -> DeclarationBuilder:
        pending = [
            (item, self._comm.call("Tariffs", "/rate", {"hs": item.get("hs", "0000")})) for item in items
        ]
        for item, future in pending:
            self._parts["goods"].append({**item, "duty": future.get().get("duty", 0.0)})
            self._parts["value"] += item.get("value", 0.0)
        return self

    def with_importer(self, importer: str) -> DeclarationBuilder:
        record = self._comm.call("Parties", "/get", {"id": importer}).get()
        if not record.get("eori"):
            raise Invalid("the importer has no EORI number", importer=importer)
        self._parts["importer"] = record["eori"]
        return self

    def build(self) -> dict[str, Any]:
        return dict(self._parts)


def violations_of(declaration: Mapping[str, Any]) -> Iterator[str]:
    if declaration["value"] <= 0:
        yield "value"
    yield from (f"goods[{index}]" for index, item in enumerate(declaration["goods"]) if not item.get("hs"))


def classify_by_catalogue(comm: Communication, text: str) -> tuple[str, float]:
    answer = comm.call("Catalogue", "/lookup", {"text": text}).get()
    return answer.get("hs", ""), 1.0 if answer.get("hs") else 0.0


def classify_by_model(comm: Communication, text: str) -> tuple[str, float]:
    answer = comm.call("HsModel", "/classify", {"text": text}, timeout=1.0).get()
    return answer.get("hs", ""), answer.get("score", 0.0)


class Customs(MS):
    """Declarations, classification, screening."""

    pool_size = 4
    runtime = "process"
    classifiers = (classify_by_catalogue, classify_by_model)

    @EP("/declarations", method="POST")
    @api("customs:write")
    def declare(self, comm: Communication) -> None:
        body = comm.params
        builder = DeclarationBuilder(comm, body.get("country", "EU")).with_goods(body.get("goods", []))
        declaration = builder.with_importer(body.get("importer", "")).build()
        if violations := list(violations_of(declaration)):
            raise Invalid("the declaration is incomplete", violations=violations)
        saved = comm.call("DeclarationStore", "/put", declaration).get()
        comm.respond({"id": saved.get("id"), **declaration}, 201)

    @EP("/declarations/{declaration_id}/submit", method="POST")
    @api("customs:write")
    def submit(self, comm: Communication, declaration_id: str) -> None:
        declaration = comm.call("DeclarationStore", "/get", {"id": declaration_id}).get()
        if declaration.get("reference"):
            comm.respond({"reference": declaration["reference"], "repeated": True})
            return
        country = declaration.get("country", "EU")
        if (authority := AUTHORITIES.get(country)) is None:
            raise Invalid("no connection to this authority", country=country)
        reference = retrying(attempts=2)(authority(comm).lodge)(declaration)
        if not reference:
            comm.call("Tasks", "/open", {"queue": "customs", "declaration": declaration_id}).get()
            comm.respond({"status": "manual"}, 202)
            return
        comm.call("DeclarationStore", "/put", {**declaration, "reference": reference}).get()
        comm.respond({"reference": reference}, 201)

    @EP("/declarations/{declaration_id}/wait", method="POST")
    @api()
    def wait(self, comm: Communication, declaration_id: str) -> None:
        country = comm.params.get("country", "EU")
        authority = AUTHORITIES.get(country, AUTHORITIES["EU"])(comm)
        deadline = time.monotonic() + 10
        state, polls = "pending", 0
        while state == "pending" and polls < 4 and time.monotonic() < deadline:
            try:
                state = authority.status(declaration_id)
            except CallTimeoutError:
                pass
            polls += 1
            time.sleep(0.5)
        if state == "released":
            comm.call("Notifications", "/send", {"template": "released", "declaration": declaration_id})
        comm.respond({"state": state, "polls": polls}, 200 if state != "pending" else 202)

    @EP("/classify", method="POST")
    @api()
    def classify(self, comm: Communication) -> None:
        """Ask classifiers in order of their price; the last word has a human."""
        if not (text := comm.params.get("text", "").strip()):
            raise Invalid("nothing to classify")
        for classifier in self.classifiers:
            hs, score = attempt(functools.partial(classifier, comm, text)).unwrap_or(("", 0.0))
            if score >= 0.8:
                comm.respond({"hs": hs, "by": classifier.__name__})
                break
        else:
            ticket = comm.call("Tasks", "/open", {"queue": "classification", "text": text}).get()
            comm.respond({"ticket": ticket.get("id")}, 202)

    @EP("/screening", method="POST")
    @api("customs:read")
    def screen(self, comm: Communication) -> None:
        names: list[str] = comm.params.get("parties", [])
        lists = ("ofac", "eu") if comm.params.get("thorough") else ("eu",)
        checks = [
            ((name, source), comm.call("Sanctions", "/check", {"name": name, "list": source}))
            for name, source in product(names, lists)
        ]
        hits, unknown = [], []
        for (name, source), future in checks:
            match attempt(future.get):
                case Ok({"hit": True}):
                    hits.append({"name": name, "list": source})
                case Err(_):
                    unknown.append(name)
        if hits:
            comm.call("Compliance", "/alert", {"hits": hits}).get()
        verdict = "blocked" if hits else "review" if unknown else "clear"
        comm.respond({"verdict": verdict, "hits": hits}, 200 if verdict == "clear" else 409)


class WarehouseClient:
    """One warehouse's stock."""

    def __init__(self, comm: Communication, site: str) -> None:
        self._call = functools.partial(comm.call, "Wms")
        self.site = site

    def available(self, sku: str) -> int:
        return self._call("/stock", {"site": self.site, "sku": sku}).get().get("quantity", 0)

    def reserve(self, sku: str, quantity: int) -> str:
        answer = self._call(
            "/reserve", {"site": self.site, "sku": sku, "quantity": quantity}, timeout=2.0
        ).get()
        if answer.get("short"):
            raise Conflict("stock has gone meanwhile", site=self.site)
        return answer.get("reservation", "")

    def release(self, reservation: str) -> None:
        self._call("/release", {"reservation": reservation})


class Warehouse(MS):
    """Goods in, goods out, docks."""

    pool_size = 6
    runtime = "process"

    def setup(self) -> None:
        self.sites: dict[str, list[str]] = {}

    def _sites(self, comm: Communication, region: str) -> list[str]:
        if region not in self.sites:
            self.sites[region] = comm.call("Sites", "/near", {"region": region}).get().get("sites", [])
        return self.sites[region]

    @EP("/allocations", method="POST")
    @api("warehouse:write")
    def allocate(self, comm: Communication) -> None:
        """Take the goods from the nearest warehouses that have them; all or nothing."""
        sku, missing = comm.params.get("sku", ""), int(comm.params.get("quantity", 1))
        picks: list[dict[str, Any]] = []
        with contextlib.ExitStack() as undo:
            for client in (
                WarehouseClient(comm, site) for site in self._sites(comm, comm.params.get("region", "eu"))
            ):
                if missing <= 0:
                    break
                if not (take := min(client.available(sku), missing)):
                    continue
                reservation = client.reserve(sku, take)
                undo.callback(client.release, reservation)
                picks.append({"site": client.site, "quantity": take, "reservation": reservation})
                missing -= take
            if missing > 0:
                raise Conflict("not enough stock", missing=missing)
            undo.pop_all()
        comm.respond({"picks": picks}, 201)

    @EP("/stock/{sku}", method="GET")
    @api()
    def stock(self, comm: Communication, sku: str) -> None:
        futures = {
            site: comm.call("Wms", "/stock", {"site": site, "sku": sku})
            for site in self._sites(comm, comm.params.get("region", "eu"))
        }
        levels: Counter[str] = Counter()
        for site, future in futures.items():
            with contextlib.suppress(CommunicationError):
                levels[site] += future.get().get("quantity", 0)
        if levels.total() == 0:
            inbound = comm.call("Purchasing", "/expected", {"sku": sku}).get()
            comm.respond({"sku": sku, "total": 0, "expected": inbound.get("date")})
        else:
            comm.respond({"sku": sku, "total": levels.total(), "sites": levels})

    @EP("/inbound", method="POST")
    @api("warehouse:write")
    def inbound(self, comm: Communication) -> None:
        received, rejected = [], []
        for line in comm.params.get("lines", []):
            if line.get("quantity", 0) <= 0:
                rejected.append({**line, "reason": "quantity"})
                continue
            try:
                answer = comm.call("Wms", "/receive", line).get()
            except CallError as error:
                rejected.append({**line, "reason": f"status {error.status}"})
            else:
                received.append(line)
                if answer.get("damaged"):
                    comm.call(
                        "Billing", "/claims", {"booking": line.get("booking"), "kind": "damage", "amount": 50}
                    )
        if not received:
            raise Invalid("nothing was received", rejected=rejected)
        comm.call("Documents", "/goods-receipt", {"lines": received}).get()
        comm.respond({"received": len(received), "rejected": rejected}, 207 if rejected else 201)

    @EP("/pick-waves", method="POST")
    @api()
    def pick_waves(self, comm: Communication) -> None:
        """Plan waves of orders; urgent ones first."""
        orders = comm.call("Orders", "/open", {"limit": 10}).get().get("orders", [])
        ranked = sorted(orders, key=lambda order: (not order.get("urgent"), order["id"]))
        waves = []
        for batch in batched(ranked, int(comm.params.get("size", 2))):
            wave = comm.call("Wms", "/wave", {"orders": [order["id"] for order in batch]}).get()
            waves.append(wave.get("id"))
            if wave.get("overload"):
                break
        comm.respond({"waves": waves}, 201 if waves else 200)

    @EP("/transfers", method="POST")
    @api("warehouse:write")
    def transfer(self, comm: Communication) -> None:
        source = WarehouseClient(comm, comm.params.get("from", "A"))
        sku, quantity = comm.params.get("sku", ""), int(comm.params.get("quantity", 1))
        saga = (
            Saga("transfer")
            .step(
                "reservation",
                lambda _: source.reserve(sku, quantity),
                lambda s: source.release(s["reservation"]),
            )
            .step(
                "truck",
                lambda _: comm.call(
                    "Fleet", "/assign", {"from": source.site, "to": comm.params.get("to")}
                ).get(),
                lambda state: comm.call("Fleet", "/unassign", {"truck": state["truck"].get("id")}).get(),
            )
            .step("dock", lambda state: self._dock(comm, state["truck"].get("id", "")))
        )
        state = saga.run()
        comm.respond({"truck": state["truck"].get("id"), "dock": state["dock"]}, 201)

    def _dock(self, comm: Communication, truck: str) -> str:
        with lease(comm, "docks"):
            for hour in range(8, 11):
                slot = comm.call("Docks", "/reserve", {"truck": truck, "hour": hour}).get()
                if slot.get("dock"):
                    return slot["dock"]
        raise Conflict("no dock is free")


def approve(comm: Communication, claim: Mapping[str, Any]) -> dict[str, Any]:
    if claim.get("amount", 0) > 1000:
        second = comm.call("Approvals", "/request", {"claim": claim["id"]}).get()
        if not second.get("granted"):
            return {"status": "awaiting_approval"}
    payment = comm.call("Payments", "/payout", {"claim": claim["id"], "amount": claim.get("amount", 0)}).get()
    return {"status": "paid", "payment": payment.get("id")}


def recover(comm: Communication, claim: Mapping[str, Any]) -> dict[str, Any]:
    """Pass the claim on to whoever is liable."""
    with contextlib.suppress(CallError):
        return {"status": "recovering", "case": comm.call("Recovery", "/open", dict(claim)).get().get("case")}
    return {"status": "written_off"}


DECISIONS: dict[str, Callable[[Communication, Mapping[str, Any]], dict[str, Any]]] = {
    "approve": approve,
    "reject": lambda comm, claim: {"status": "rejected"},
    "recover": recover,
}


def pages(comm: Communication, path: str, **query: Any) -> Iterator[list[dict[str, Any]]]:
    cursor = None
    while True:
        page = comm.call("Ledger", path, {**query, "cursor": cursor}).get()
        yield page.get("items", [])
        if not (cursor := page.get("next")):
            return


class Billing(MS):
    """Invoices, claims, reports."""

    pool_size = 4
    runtime = "process"

    def _price(self, comm: Communication, booking: str, currency: str) -> dict[str, Any]:
        charges = comm.call("Ledger", "/charges", {"booking": booking})
        tax = comm.call("Tax", "/rate", {"booking": booking})
        net = sum(charge["amount"] for charge in charges.get().get("charges", []))
        gross = net * (1 + attempt(tax.get).unwrap_or({}).get("rate", 0.19))
        if currency != "EUR":
            gross *= comm.call("Fx", "/rate", {"to": currency}).get().get("rate", 1.0)
        return {"booking": booking, "net": net, "gross": round(gross, 2), "currency": currency}

    @EP("/invoices", method="POST")
    @api("billing:write")
    def invoice(self, comm: Communication) -> None:
        invoice = self._price(comm, comm.params.get("booking", ""), comm.params.get("currency", "EUR"))
        if not invoice["net"]:
            comm.respond(status=204)
            return
        saved = comm.call("InvoiceStore", "/put", invoice).get()
        comm.respond({"id": saved.get("id"), **invoice}, 201)
        comm.call("Mail", "/send", {"invoice": saved.get("id"), "to": principal().subject})

    @EP("/invoices/run", method="POST")
    @api()
    def invoice_run(self, comm: Communication) -> None:
        """Monthly: everything delivered and not invoiced yet."""
        month = comm.params.get("month", "2024-01")
        with lease(comm, f"run/{month}"):
            totals: Counter[str] = Counter()
            for items in pages(comm, "/unbilled", month=month):
                for item in items:
                    match attempt(
                        functools.partial(self._price, comm, item["booking"], item.get("currency", "EUR"))
                    ):
                        case Ok({"net": net} as invoice) if net > 0:
                            comm.call("InvoiceStore", "/put", invoice).get()
                            totals["invoiced"] += 1
                        case Ok(_):
                            totals["empty"] += 1
                        case Err(_):
                            totals["failed"] += 1
                if totals["failed"] > 3:
                    raise Conflict("too many failures", **totals)
        comm.respond(totals)

    @EP("/claims", method="POST")
    @api()
    def open_claim(self, comm: Communication) -> None:
        booking, kind = comm.params.get("booking"), comm.params.get("kind", "damage")
        if booking is None or kind not in {"damage", "loss", "delay"}:
            raise Invalid("booking and kind are required")
        policy = comm.call("Insurance", "/policy", {"booking": booking})
        evidence = [comm.call("Evidence", "/scan", {"file": file}) for file in comm.params.get("files", [])]
        suspicious = any(scan.get().get("suspicious", False) for scan in evidence)
        covered = policy.get().get("covered", False)
        status = "investigate" if suspicious else "open" if covered or kind == "loss" else "uncovered"
        claim = {"booking": booking, "kind": kind, "amount": comm.params.get("amount", 0), "status": status}
        saved = comm.call("ClaimStore", "/put", claim).get()
        if status == "investigate":
            comm.call("Tasks", "/open", {"queue": "fraud", "claim": saved.get("id")})
        comm.respond({"id": saved.get("id"), "status": status}, 201)

    @EP("/claims/{claim_id}/decide", method="POST")
    @api("claims:decide")
    def decide(self, comm: Communication, claim_id: str) -> None:
        if (decide := DECISIONS.get(comm.params.get("decision", ""))) is None:
            raise Invalid("unknown decision")
        claim = comm.call("ClaimStore", "/get", {"id": claim_id}).get()
        if claim.get("status", "open") not in ("open", "investigate"):
            raise Conflict("the claim is closed", status=claim["status"])
        outcome = decide(comm, {"id": claim_id, **claim})
        comm.call("ClaimStore", "/put", {"id": claim_id, **claim, **outcome}).get()
        comm.respond(outcome)
        comm.call("Audit", "/append", {"action": "claim", "by": principal().subject})

    @EP("/search", method="GET")
    @api("billing:read")
    def search(self, comm: Communication) -> None:
        """Search invoices, claims and bookings at once; a back end that is down is left out."""
        backends = {"invoices": "InvoiceStore", "claims": "ClaimStore", "bookings": "BookingStore"}
        kinds = comm.params.get("in", ",".join(backends)).split(",")
        query = {"text": comm.params.get("q", ""), "tenant": principal().tenant}
        futures = {
            kind: comm.call(backends[kind], "/search", query, timeout=1.0)
            for kind in kinds
            if kind in backends
        }
        results = {kind: attempt(future.get) for kind, future in futures.items()}
        found = [
            {"kind": kind, **hit}
            for kind, result in results.items()
            for hit in result.unwrap_or({}).get("hits", [])
        ]
        found.sort(key=lambda hit: hit.get("score", 0), reverse=True)
        missing = [kind for kind, result in results.items() if isinstance(result, Err)]
        comm.respond({"hits": found[: int(comm.params.get("limit", 10))], "missing": missing})

    @EP("/reports/revenue", method="GET")
    @api("billing:read")
    def revenue(self, comm: Communication) -> None:
        regions = comm.params.get("regions", "eu").split(",")
        key = f"revenue/{','.join(regions)}"
        if (
            cached := attempt(comm.call("Cache", "/get", {"key": key}).get).unwrap_or({}).get("value")
        ) is not None:
            comm.respond({"revenue": cached, "cached": True})
            return
        shares = [comm.call("Warehousing", "/revenue", {"region": region}) for region in regions]
        freight = Counter()
        for items in pages(comm, "/revenue", regions=regions):
            freight.update({item["region"]: item["amount"] for item in items})
        for region, share in zip(regions, shares, strict=True):
            freight[region] += share.get().get("amount", 0)
        comm.respond({"revenue": freight, "cached": False})
        comm.call("Cache", "/put", {"key": key, "value": freight, "ttl": 3600})
