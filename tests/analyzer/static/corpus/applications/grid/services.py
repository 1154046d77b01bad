"""Energy and IoT platform: meters, telemetry, alerts, tariffs and billing, device commands, dashboards."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from grid_clients import (
    AlertStore,
    AuditTrail,
    ColdStore,
    Invoices,
    Meter,
    MeterStore,
    Notifier,
    Reading,
    RegisterMeter,
    RunEvents,
    TimeSeries,
    UsageProfile,
)
from grid_core import (
    ApiError,
    CircuitBreaker,
    Conflict,
    NotFound,
    Reply,
    Saga,
    TtlCache,
    Unprocessable,
    authorize,
    blocking_api,
    chunked,
    feature_enabled,
    gather_limited,
    idempotent,
    json_api,
    lease,
    log,
    principal_var,
    rate_limit,
    requires,
    retry,
)

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError


class Meters(MS):
    runtime = "async"
    pool_size = 32

    TRANSITIONS = {
        ("registered", "install"): "installed",
        ("installed", "activate"): "active",
        ("active", "suspend"): "suspended",
        ("suspended", "activate"): "active",
    }

    @EP("/meters", method="POST")
    @json_api(status=201)
    @requires("meters:write")
    @idempotent
    async def register(self, comm: Communication) -> dict[str, Any]:
        form = RegisterMeter.parse(comm.params)
        async with Saga() as saga:
            stock = await comm.call("Inventory", "/reserve", {"serial": form.serial, "model": form.model})
            if not stock.get("id"):
                raise Conflict("serial not in stock")
            saga.on_failure(lambda: comm.call("Inventory", "/release", {"id": stock["id"]}))
            certificate = await comm.call("Pki", "/issue", {"subject": form.serial})
            saga.on_failure(lambda: comm.call("Pki", "/revoke", {"id": certificate.get("id")}))
            meter = await MeterStore(comm).insert(Meter(id=form.serial, site=form.site, model=form.model))
        await AuditTrail(comm).record("meter.registered", meter.id, by=principal_var.get().subject)
        return {"id": meter.id, "certificate": certificate.get("id")}

    @EP("/meters/{meter_id}", method="GET")
    @json_api()
    async def detail(self, comm: Communication, meter_id: str) -> dict[str, Any]:
        meter = await MeterStore(comm).get(meter_id)
        loaders: dict[str, Callable[[], Awaitable[Any]]] = {
            "latest": lambda: TimeSeries(comm, timeout=0.5).latest(meter.id),
            "location": lambda: comm.call("Geo", "/lookup", {"site": meter.site}),
            "alerts": lambda: AlertStore(comm).find_open(meter.id, "any"),
        }
        wanted = [name for name in str(comm.params.get("expand", "")).split(",") if name in loaders]
        loaded = await asyncio.gather(*(loaders[name]() for name in wanted), return_exceptions=True)
        body: dict[str, Any] = {"id": meter.id, "state": meter.state, "site": meter.site}
        for name, value in zip(wanted, loaded, strict=True):
            body[name] = None if isinstance(value, BaseException) else value
        return body

    @EP("/catalogue", method="GET")
    @json_api()
    @requires("meters:read")
    async def catalogue(self, comm: Communication, cursor: str = "", limit: int = 50) -> dict[str, Any]:
        meters, following = await MeterStore(comm).page(principal_var.get().tenant, cursor, min(limit, 200))
        return {"items": [meter.id for meter in meters], "next": following or None}

    @EP("/meters/{meter_id}/transition", method="POST")
    @json_api()
    @requires("meters:write")
    async def transition(self, comm: Communication, meter_id: str) -> dict[str, Any]:
        event = comm.params.get("event", "")
        store = MeterStore(comm)
        meter = await store.get(meter_id)
        target = self.TRANSITIONS.get((meter.state, event))
        if target is None:
            raise Conflict(f"cannot {event or 'do nothing'} while {meter.state}")
        if target == "active":
            await retry(lambda: comm.call("Gateway", "/configure", {"meter": meter_id, "enabled": True}))
        elif target == "suspended":
            await comm.call("Gateway", "/configure", {"meter": meter_id, "enabled": False})
        await store.set_state(meter_id, target)
        comm.call("Bus", "/publish", {"topic": f"meter.{target}", "meter": meter_id})
        return {"id": meter_id, "state": target}

    @EP("/import", method="POST")
    @json_api()
    @requires("meters:write")
    async def import_meters(self, comm: Communication) -> Reply:
        rows = comm.params.get("rows") or []
        if len(rows) > 100:
            raise ApiError("at most 100 rows", 413)
        report: dict[int, str] = {}
        semaphore = asyncio.Semaphore(5)

        async def import_row(number: int, row: dict[str, Any]) -> None:
            async with semaphore:
                try:
                    form = RegisterMeter.parse(row)
                    await MeterStore(comm).insert(Meter(form.serial, site=form.site, model=form.model))
                except ApiError as error:
                    report[number] = error.detail
                except CommunicationError:
                    report[number] = "store unavailable"

        async with asyncio.TaskGroup() as group:
            for number, row in enumerate(rows):
                group.create_task(import_row(number, row))
        if report:
            await comm.call("Imports", "/rejects", {"rows": sorted(report)})
        return Reply({"imported": len(rows) - len(report), "errors": report}, 207 if report else 201)

    @EP("/search", method="GET")
    @json_api()
    async def search(self, comm: Communication) -> dict[str, Any]:
        text = str(comm.params.get("q", "")).strip()
        if not text:
            return {"hits": [], "partial": False}
        await rate_limit(comm, f"search:{comm.headers.get('x-client', 'anonymous')}")
        backends = [("MeterIndex", "/search"), ("CustomerIndex", "/search"), ("SiteIndex", "/search")]
        tasks = [asyncio.ensure_future(comm.call(name, path, {"q": text})) for name, path in backends]
        done, pending = await asyncio.wait(tasks, timeout=0.8)
        for task in pending:
            task.cancel()
        hits: dict[str, Any] = {}
        failed = 0
        for task in done:
            if task.exception():
                failed += 1
                continue
            hits |= {hit["id"]: hit for hit in task.result().get("hits", [])}
        return {"hits": list(hits.values()), "partial": bool(pending or failed)}


class Telemetry(MS):
    runtime = "async"
    pool_size = 64

    def setup(self) -> None:
        self.latest: TtlCache[dict[str, Any] | None] = TtlCache(ttl=5.0)
        self.background: set[asyncio.Task[None]] = set()

    def spawn(self, job: Any) -> None:
        task = asyncio.create_task(job)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    @EP("/ingest", method="POST")
    @json_api(status=202)
    async def ingest(self, comm: Communication) -> dict[str, Any]:
        reading = Reading.parse(comm.params)
        claim = await comm.call("Dedup", "/claim", {"key": f"{reading.meter}:{reading.at}"}, timeout=0.3)
        if claim.get("duplicate"):
            return {"accepted": 0, "duplicate": True}
        try:
            await TimeSeries(comm).write([reading])
        except CommunicationError:
            await comm.call(
                "Spool", "/append", {"meter": reading.meter, "at": reading.at, "kwh": reading.kwh}
            )
            return {"accepted": 1, "spooled": True}
        self.spawn(self._evaluate(comm, reading))
        return {"accepted": 1}

    async def _evaluate(self, comm: Communication, reading: Reading) -> None:
        try:
            await comm.call(
                "Alerts",
                "/evaluate",
                {"meter": reading.meter, "kwh": reading.kwh, "voltage": reading.voltage},
                timeout=5.0,
            )
        except CommunicationError:
            log.warning("reading of %s was not evaluated", reading.meter)

    @EP("/ingest/batch", method="POST")
    @json_api()
    async def ingest_batch(self, comm: Communication) -> Reply:
        valid: list[Reading] = []
        rejected: list[dict[str, Any]] = []
        for position, raw in enumerate(comm.params.get("readings", [])):
            try:
                valid.append(Reading.parse(raw))
            except Unprocessable as error:
                rejected.append({"position": position, "error": error.detail})
        if not valid:
            return Reply({"accepted": 0, "rejected": rejected}, 422)
        series = TimeSeries(comm)
        results = await gather_limited(4, (series.write(chunk) for chunk in chunked(valid, 2)))
        accepted = sum(result for result in results if isinstance(result, int))
        if rejected:
            comm.call("DeadLetters", "/put", {"source": "batch", "items": rejected})
        return Reply({"accepted": accepted, "rejected": rejected}, 200 if accepted else 503)

    @EP("/readings/{meter_id}", method="GET")
    @json_api()
    async def readings(self, comm: Communication, meter_id: str) -> dict[str, Any]:
        start, end = int(comm.params.get("start", 0)), int(comm.params.get("end", 0))
        if not end:
            point = await self.latest.get_or_load(meter_id, lambda: TimeSeries(comm).latest(meter_id))
            return {"meter": meter_id, "points": [point] if point else []}
        points: list[dict[str, Any]] = []
        if comm.params.get("archive"):
            async for page in ColdStore(comm).pages(meter_id, start, end):
                points.extend(page)
                if len(points) >= 10:
                    break
        points += await TimeSeries(comm).range(meter_id, start, end)
        return {"meter": meter_id, "points": points, "kwh": sum(point.get("kwh", 0) for point in points)}

    @EP("/backfill", method="POST")
    async def backfill(self, comm: Communication) -> None:
        meter = comm.params.get("meter")
        if not meter:
            comm.respond({"error": "meter is missing"}, 400)
            return
        job = await comm.call("Jobs", "/create", {"kind": "backfill", "meter": meter})
        comm.respond({"job": job.get("id")}, 202)
        copied = 0
        try:
            async for page in ColdStore(comm).pages(meter, 0, 1_000):
                await TimeSeries(comm).write(
                    [Reading(meter, p.get("at", 0), p.get("kwh", 0.0)) for p in page]
                )
                copied += len(page)
                await comm.call("Jobs", "/progress", {"id": job.get("id"), "done": copied})
        except CommunicationError as error:
            await comm.call("Jobs", "/fail", {"id": job.get("id"), "reason": str(error)})
        else:
            await comm.call("Jobs", "/finish", {"id": job.get("id"), "done": copied})

    @EP("/aggregate", method="GET")
    @json_api()
    async def aggregate(self, comm: Communication) -> dict[str, Any]:
        regions = str(comm.params.get("regions", "north,south")).split(",")

        async def rollup(region: str) -> tuple[str, float]:
            answer = await comm.call("Tsdb", "/rollup", {"region": region, "window": "1h"})
            return region, float(answer.get("kwh", 0.0))

        totals: dict[str, float] = {}
        missing = 0
        for finished in asyncio.as_completed([rollup(region) for region in regions], timeout=3.0):
            try:
                region, kwh = await finished
            except (CommunicationError, TimeoutError):
                missing += 1
            else:
                totals[region] = kwh
        if not totals:
            raise ApiError("no region answered", 503)
        return {"total": sum(totals.values()), "regions": totals, "missing": missing}

    @EP("/gateway/events", method="POST")
    @json_api()
    async def gateway_event(self, comm: Communication) -> Any:
        match comm.params:
            case {"type": "online" | "offline" as status, "gateway": gateway}:
                await comm.call("Gateway", "/presence", {"gateway": gateway, "status": status})
                if status == "offline":
                    await comm.call(
                        "Alerts", "/notify", {"to": "operations", "text": f"{gateway} is offline"}
                    )
            case {"type": "reading", "data": dict(data)}:
                await TimeSeries(comm).write([Reading.parse(data)])
            case {"type": "tamper", "meter": meter}:
                await asyncio.gather(
                    comm.call(
                        "AlertStore", "/save", {"meter": meter, "kind": "tamper", "severity": "critical"}
                    ),
                    AuditTrail(comm).record("meter.tampered", meter),
                )
            case {"type": kind}:
                await comm.call("DeadLetters", "/put", {"source": "gateway", "kind": kind})
                return Reply({"ignored": kind}, 202)
            case _:
                raise ApiError("event without a type")
        return {"ok": True}

    @EP("/quality/{meter_id}", method="GET")
    @json_api()
    async def quality(self, comm: Communication, meter_id: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(1.0):
                points, expected = await asyncio.gather(
                    TimeSeries(comm).range(meter_id, 0, 96),
                    comm.call("Profiles", "/expected", {"meter": meter_id}),
                )
        except TimeoutError:
            return {"meter": meter_id, "quality": "unknown"}
        coverage = len(points) / max(expected.get("points", 1), 1)
        if coverage < 0.5:
            await comm.call("Jobs", "/create", {"kind": "repair", "meter": meter_id})
        return {"meter": meter_id, "quality": "good" if coverage >= 0.9 else "poor", "coverage": coverage}


Rule = Callable[[Communication, dict[str, Any]], Awaitable["str | None"]]
RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


@rule("overvoltage")
async def overvoltage(comm: Communication, sample: dict[str, Any]) -> str | None:
    return "critical" if float(sample.get("voltage", 230)) > 253 else None


@rule("spike")
async def spike(comm: Communication, sample: dict[str, Any]) -> str | None:
    if float(sample.get("kwh", 0)) < 5:
        return None
    baseline = await comm.call("Profiles", "/baseline", {"meter": sample["meter"]})
    return "warning" if float(sample["kwh"]) > 3 * baseline.get("kwh", 2.0) else None


@rule("frost")
async def frost(comm: Communication, sample: dict[str, Any]) -> str | None:
    if sample.get("kind") != "heatpump":
        return None
    weather = await comm.call("Weather", "/current", {"meter": sample["meter"]})
    return "info" if weather.get("celsius", 10) < 0 else None


class Alerts(MS):
    runtime = "async"
    pool_size = 16

    @EP("/evaluate", method="POST")
    @json_api()
    async def evaluate(self, comm: Communication) -> dict[str, Any]:
        sample = comm.params
        if "meter" not in sample:
            raise Unprocessable("sample of no meter")
        severities = await asyncio.gather(*(check(comm, sample) for check in RULES.values()))
        store = AlertStore(comm)
        raised = []
        for name, severity in zip(RULES, severities, strict=True):
            if severity is None or await store.find_open(sample["meter"], name):
                continue
            alert = await store.save(meter=sample["meter"], kind=name, severity=severity)
            raised.append(alert.get("id", name))
            if severity == "critical":
                await comm.call("PagerHub", "/trigger", {"alert": alert.get("id"), "kind": name})
        return {"raised": raised}

    @EP("/alerts/{alert_id}/ack", method="POST")
    @json_api()
    @requires("alerts:write")
    async def acknowledge(self, comm: Communication, alert_id: str) -> dict[str, Any]:
        store = AlertStore(comm)
        alert = await store.get(alert_id)
        if alert.get("status") == "acked":
            return {"id": alert_id, "status": "acked", "changed": False}
        if alert.get("status") == "closed":
            raise Conflict("alert is closed")
        await store.save(id=alert_id, status="acked", by=principal_var.get().subject)
        if alert.get("severity") == "critical":
            comm.call("PagerHub", "/resolve", {"alert": alert_id})
        return {"id": alert_id, "status": "acked", "changed": True}

    @EP("/alerts/{alert_id}/escalate", method="POST")
    @json_api()
    async def escalate(self, comm: Communication, alert_id: str) -> dict[str, Any]:
        alert = await AlertStore(comm).get(alert_id)
        schedule = await comm.call("Oncall", "/schedule", {"team": alert.get("team", "grid")})
        notifier = Notifier(comm)
        for person in schedule.get("people", []):
            channel = await notifier.first_that_works(
                person.get("channels", ["sms"]), person["name"], alert_id
            )
            if channel:
                await AuditTrail(comm).record("alert.escalated", alert_id, to=person["name"], by=channel)
                return {"escalated_to": person["name"], "channel": channel}
        await comm.call("PagerHub", "/trigger", {"alert": alert_id, "kind": "unreachable"})
        raise ApiError("nobody could be reached", 503)

    @EP("/notify", method="POST")
    @json_api()
    async def notify(self, comm: Communication) -> Reply:
        to, text = comm.params.get("to"), comm.params.get("text", "")
        if not to:
            raise Unprocessable("no recipient")
        notifier = Notifier(comm)
        if comm.params.get("urgent"):
            sent = await notifier.everywhere(to, text)
            return Reply(sent, 200 if any(sent.values()) else 502)
        preferences = await comm.call("Crm", "/preferences", {"customer": to})
        if preferences.get("muted"):
            return Reply({"muted": True})
        channel = await notifier.first_that_works(preferences.get("channels", ["email"]), to, text)
        return Reply({"channel": channel}, 200 if channel else 502)

    @EP("/open", method="GET")
    @json_api()
    async def open_alerts(self, comm: Communication) -> dict[str, Any]:
        tenant, severity = comm.params.get("tenant", "public"), comm.params.get("severity")
        alerts = await AlertStore(comm).list_open(tenant, severity)
        return {"count": len(alerts), "alerts": alerts[:20]}

    @EP("/digest", method="POST")
    async def digest(self, comm: Communication) -> None:
        tenants = comm.params.get("tenants", [])
        comm.respond({"queued": len(tenants)}, 202)
        for tenant in tenants:
            try:
                alerts = await AlertStore(comm).list_open(tenant)
                if not alerts:
                    continue
                by_kind: defaultdict[str, int] = defaultdict(int)
                for alert in alerts:
                    by_kind[alert.get("kind", "other")] += 1
                await comm.call("Email", "/send", {"to": tenant, "text": str(dict(by_kind))})
            except CommunicationError:
                log.warning("no digest for %s", tenant)


class Billing(MS):
    runtime = "async"
    pool_size = 16

    def setup(self) -> None:
        self.tariffs: TtlCache[dict[str, Any]] = TtlCache(ttl=300.0)
        self.exchange = CircuitBreaker(threshold=3)

    async def tariff(self, comm: Communication, tariff_id: str) -> dict[str, Any]:
        return await self.tariffs.get_or_load(
            tariff_id, lambda: comm.call("TariffStore", "/get", {"id": tariff_id})
        )

    @EP("/quote", method="POST")
    @json_api()
    async def quote(self, comm: Communication, usage: UsageProfile) -> dict[str, Any]:
        suppliers = usage.suppliers or ["house"]

        async def offer(supplier: str) -> dict[str, Any] | None:
            try:
                async with asyncio.timeout(1.5):
                    return await comm.call(
                        "Suppliers", "/offer", {"supplier": supplier, "kwh": usage.annual_kwh}
                    )
            except (CommunicationError, TimeoutError):
                return None

        offers = [
            answer for answer in await asyncio.gather(*map(offer, suppliers)) if answer and "price" in answer
        ]
        if not offers:
            standard = await self.tariff(comm, "standard")
            return {"price": usage.annual_kwh * standard.get("rate", 0.3), "fallback": True}
        best = min(offers, key=lambda answer: answer["price"])
        if await feature_enabled(comm, "quote-history", usage.customer):
            await comm.call("Crm", "/note", {"customer": usage.customer, "quote": best["price"]})
        return best

    @EP("/spot", method="GET")
    @json_api()
    async def spot(self, comm: Communication) -> dict[str, Any]:
        """Ask the exchange, and the broker too if the exchange takes its time."""
        if self.exchange.is_open:
            return {**await comm.call("Broker", "/price"), "source": "broker"}
        primary = asyncio.create_task(self.exchange.run(lambda: comm.call("Exchange", "/price", timeout=2.0)))
        done, _ = await asyncio.wait({primary}, timeout=0.25)
        if done and primary.exception() is None:
            return {**primary.result(), "source": "exchange"}
        backup = asyncio.ensure_future(comm.call("Broker", "/price"))
        pending = {backup} if done else {primary, backup}
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is None:
                    for other in pending:
                        other.cancel()
                    return {**task.result(), "source": "broker" if task is backup else "exchange"}
        raise ApiError("no price", 503)

    @EP("/tariffs/publish", method="POST")
    @json_api(status=201)
    @requires("tariffs:write")
    async def publish_tariff(self, comm: Communication) -> dict[str, Any]:
        draft = comm.params
        if not draft.get("id") or float(draft.get("rate", 0)) <= 0:
            raise Unprocessable("a tariff needs an id and a rate")
        current = await comm.call("TariffStore", "/get", {"id": draft["id"]})
        if current.get("version", 0) != draft.get("version", 0):
            raise Conflict("tariff was changed meanwhile")
        if abs(draft["rate"] - current.get("rate", draft["rate"])) > 0.1:
            approval = await comm.call(
                "Approvals", "/request", {"tariff": draft["id"], "rate": draft["rate"]}
            )
            if not approval.get("approved"):
                raise ApiError("needs approval", 403)
        await comm.call("TariffStore", "/save", {**draft, "version": current.get("version", 0) + 1})
        self.tariffs.drop(draft["id"])
        comm.call("Bus", "/publish", {"topic": "tariff.published", "tariff": draft["id"]})
        return {"id": draft["id"], "version": current.get("version", 0) + 1}

    @EP("/contracts/{contract_id}/switch", method="POST")
    @json_api()
    @requires("contracts:write")
    async def switch_tariff(self, comm: Communication, contract_id: str) -> dict[str, Any]:
        async with lease(comm, f"contract:{contract_id}"):
            contract, tariff = await asyncio.gather(
                comm.call("Contracts", "/get", {"id": contract_id}),
                self.tariff(comm, comm.params.get("tariff", "standard")),
            )
            if not contract:
                raise NotFound(f"no contract {contract_id}")
            if contract.get("locked"):
                fee = await comm.call(
                    "Ledger", "/post", {"account": contract_id, "amount": 25, "kind": "fee"}
                )
                log.info("switching fee %s", fee.get("entry"))
            await comm.call("Contracts", "/update", {"id": contract_id, "tariff": tariff.get("id")})
        await comm.call(
            "Alerts", "/notify", {"to": contract.get("customer", "?"), "text": "Your tariff has changed"}
        )
        return {"contract": contract_id, "tariff": tariff.get("id")}

    async def bill_contract(
        self, comm: Communication, run_id: str, contract: dict[str, Any], period: str
    ) -> bool:
        events = RunEvents(comm)
        try:
            usage = await comm.call(
                "Telemetry", "/readings/{meter_id}", {"meter_id": contract["meter"], "start": 1, "end": 720}
            )
            tariff = await self.tariff(comm, contract.get("tariff", "standard"))
            amount = round(usage.get("kwh", 0) * tariff.get("rate", 0.3) + tariff.get("base", 5), 2)
            invoice = await Invoices(comm).save(contract=contract["id"], period=period, amount=amount)
            await events.append(run_id, "billed", contract=contract["id"], invoice=invoice)
        except CommunicationError as error:
            await events.append(run_id, "failed", contract=contract["id"], reason=str(error))
            return False
        return True

    async def execute(
        self, comm: Communication, run_id: str, period: str, skip: frozenset[str] = frozenset()
    ) -> None:
        contracts = (await comm.call("Contracts", "/list", {"period": period})).get("contracts", [])
        semaphore = asyncio.Semaphore(4)

        async def guarded(contract: dict[str, Any]) -> bool:
            async with semaphore:
                return await self.bill_contract(comm, run_id, contract, period)

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(guarded(contract)) for contract in contracts if contract["id"] not in skip
            ]
        billed = sum(task.result() for task in tasks)
        await RunEvents(comm).append(run_id, "finished" if billed == len(tasks) else "aborted", billed=billed)

    @EP("/runs", method="POST")
    async def start_run(self, comm: Communication) -> None:
        period = comm.params.get("period")
        if not period:
            comm.respond({"error": "period is missing"}, 400)
            return
        try:
            async with lease(comm, f"billing:{period}"):
                run = await comm.call("RunStore", "/create", {"period": period})
                run_id = str(run.get("id", period))
                await RunEvents(comm).append(run_id, "started", period=period)
        except Conflict as error:
            comm.respond({"error": error.detail}, 409)
            return
        comm.respond({"run": run_id}, 202, headers={"location": f"/runs/{run_id}"})
        try:
            await self.execute(comm, run_id, period)
        except* CommunicationError:
            log.exception("run %s stopped", run_id)

    @EP("/runs/{run_id}", method="GET")
    @json_api()
    async def run_status(self, comm: Communication, run_id: str) -> dict[str, Any]:
        state = await RunEvents(comm).state(run_id)
        if state["failed"] and comm.params.get("details"):
            found = await asyncio.gather(
                *(comm.call("Contracts", "/get", {"id": id}) for id in state["failed"])
            )
            state["failed"] = found
        return state

    @EP("/runs/{run_id}/resume", method="POST")
    @json_api(status=202)
    @requires("billing:run")
    async def resume_run(self, comm: Communication, run_id: str) -> dict[str, Any]:
        state = await RunEvents(comm).state(run_id)
        if state["status"] == "finished":
            raise Conflict("run is finished")
        await self.execute(comm, run_id, state["period"], skip=frozenset(state["billed"]))
        return {"run": run_id, "skipped": len(state["billed"])}

    @EP("/invoices/{invoice_id}/pay", method="POST")
    @json_api()
    @idempotent
    async def pay(self, comm: Communication, invoice_id: str) -> Any:
        invoices = Invoices(comm)
        invoice = await invoices.get(invoice_id)
        if invoice.get("status") == "paid":
            return {"invoice": invoice_id, "status": "paid"}
        order = {"invoice": invoice_id, "amount": invoice["amount"]}
        try:
            charge = await retry(lambda: comm.call("Payments", "/charge", order, timeout=3.0), attempts=2)
        except CallError as error:
            if error.status in (402, 409):
                await invoices.mark(invoice_id, "declined")
                raise ApiError("card declined", 402) from error
            charge = await comm.call("BackupPayments", "/charge", order)
        try:
            await comm.call("Ledger", "/post", {"account": invoice.get("contract"), **order})
        except CommunicationError:
            await comm.call("Payments", "/refund", {"charge": charge.get("id")})
            raise
        await invoices.mark(invoice_id, "paid", charge=charge.get("id"))
        return {"invoice": invoice_id, "status": "paid"}

    @EP("/webhooks/payments", method="POST")
    @json_api()
    async def payment_webhook(self, comm: Communication) -> Any:
        if not hmac.compare_digest(comm.headers.get("x-webhook-secret", ""), "whsec"):
            raise ApiError("bad signature", 401)
        handlers = {
            "charge.settled": self.on_settled,
            "charge.disputed": self.on_disputed,
            "charge.failed": self.on_failed,
        }
        handler = handlers.get(comm.params.get("type", ""))
        if handler is None:
            return Reply({"ignored": True}, 202)
        seen = await comm.call("Dedup", "/claim", {"key": comm.params.get("id", "")})
        if not seen.get("duplicate"):
            await handler(comm, str(comm.params.get("invoice", "")))
        return {"received": True}

    async def on_settled(self, comm: Communication, invoice: str) -> None:
        await Invoices(comm).mark(invoice, "settled")

    async def on_disputed(self, comm: Communication, invoice: str) -> None:
        await asyncio.gather(
            Invoices(comm).mark(invoice, "disputed"), comm.call("Crm", "/case", {"invoice": invoice})
        )

    async def on_failed(self, comm: Communication, invoice: str) -> None:
        found = await Invoices(comm).get(invoice)
        await Invoices(comm).mark(invoice, "open")
        if found.get("reminders", 0) > 2:
            await comm.call("Collections", "/open", {"invoice": invoice})


class Commands(MS):
    """Device commands: the drivers are blocking, thus threads."""

    runtime = "thread"
    pool_size = 8

    CAPABILITIES = {"generic": {"ping", "read"}, "smart": {"ping", "read", "relay", "limit"}}

    @EP("/commands", method="POST")
    @blocking_api
    def submit(self, comm: Communication) -> Reply:
        principal = authorize(comm, "commands:write")
        meter_id, action = comm.params.get("meter"), comm.params.get("action", "ping")
        meter = comm.call("MeterStore", "/get", {"id": meter_id}).get()
        if action not in self.CAPABILITIES.get(meter.get("model", "generic"), set()):
            raise Unprocessable(f"{action} is not supported")
        sent = comm.call(
            "Gateway", "/send", {"meter": meter_id, "action": action, "by": principal.subject}
        ).get()
        if not comm.params.get("wait"):
            return Reply({"command": sent.get("id"), "status": "queued"}, 202)
        deadline = time.monotonic() + 5.0
        for _ in range(4):
            state = comm.call("Gateway", "/status", {"id": sent.get("id")}).get()
            if state.get("status") in ("done", "failed"):
                return Reply({"command": sent.get("id"), "status": state["status"]})
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
        return Reply({"command": sent.get("id"), "status": "pending"}, 202)

    @EP("/commands/{command_id}/cancel", method="POST")
    @blocking_api
    def cancel(self, comm: Communication, command_id: str) -> Any:
        authorize(comm, "commands:write")
        try:
            comm.call("Gateway", "/cancel", {"id": command_id}, timeout=1.0).get()
        except CallTimeoutError:
            return Reply({"status": "unknown"}, 202)
        except CallError as error:
            if error.status == 404:
                raise NotFound("no such command") from error
            raise
        comm.call("Audit", "/record", {"action": "command.cancelled", "subject": command_id})
        return {"status": "cancelled"}

    @EP("/firmware/rollout", method="POST")
    @blocking_api
    def rollout(self, comm: Communication) -> dict[str, Any]:
        authorize(comm, "firmware:write")
        version = comm.params.get("version", "latest")
        updated: list[str] = []
        for wave in chunked(comm.params.get("meters", []), 2):
            futures = {m: comm.call("Gateway", "/flash", {"meter": m, "version": version}) for m in wave}
            failures = []
            for meter, future in futures.items():
                try:
                    ok = future.get().get("ok", True)
                except CommunicationError:
                    ok = False
                (updated if ok else failures).append(meter)
            if len(failures) == len(wave):
                for meter in updated:
                    comm.call("Gateway", "/rollback", {"meter": meter}).get()
                return {"status": "rolled back", "failed": failures}
        return {"status": "complete", "updated": updated}

    @EP("/demand-response", method="POST")
    def demand_response(self, comm: Communication) -> None:
        needed = float(comm.params.get("kw", 0))
        candidates = comm.call("Flexibility", "/candidates", {"kw": needed}).get().get("meters", [])
        shed = 0.0
        while candidates and shed < needed:
            candidate = candidates.pop()
            try:
                reply = comm.call("Gateway", "/send", {"meter": candidate["id"], "action": "limit"}).get()
            except CommunicationError:
                continue
            if reply.get("accepted", True):
                shed += candidate.get("kw", 1.0)
        if shed < needed:
            comm.call(
                "Alerts", "/notify", {"to": "operations", "text": "not enough flexibility", "urgent": True}
            )
        comm.respond({"shed": shed, "needed": needed}, 200 if shed >= needed else 206)


class Dashboard(MS):
    runtime = "async"
    pool_size = 24

    @EP("/v1/overview", method="GET")
    @json_api()
    async def overview_v1(self, comm: Communication) -> Reply:
        alerts = await comm.call("Alerts", "/open", {"tenant": comm.params.get("tenant", "public")})
        usage = await comm.call("Telemetry", "/aggregate", {"regions": "north,south"})
        return Reply(
            {"alerts": alerts.get("count", 0), "kwh": usage.get("total")}, headers={"deprecation": "true"}
        )

    @EP("/v2/overview", method="GET")
    @json_api()
    @requires("dashboard:read")
    async def overview_v2(self, comm: Communication) -> dict[str, Any]:
        tenant = principal_var.get().tenant
        layout = await comm.call("Layouts", "/get", {"tenant": tenant})
        sources: dict[str, Callable[[], Awaitable[Any]]] = {
            "alerts": lambda: comm.call("Alerts", "/open", {"tenant": tenant}),
            "usage": lambda: comm.call("Telemetry", "/aggregate", {"regions": "north,south,west"}),
            "price": lambda: comm.call("Billing", "/spot"),
        }
        body: dict[str, Any] = {}

        async def widget(name: str) -> None:
            try:
                async with asyncio.timeout(2.0):
                    body[name] = await sources[name]()
            except (CommunicationError, TimeoutError):
                body[name] = {"error": "unavailable"}

        async with asyncio.TaskGroup() as group:
            for name in layout.get("widgets", ["alerts", "usage"]):
                if name in sources:
                    group.create_task(widget(name))
            if await feature_enabled(comm, "forecast", tenant):
                sources["forecast"] = lambda: comm.call("Weather", "/forecast", {"tenant": tenant})
                group.create_task(widget("forecast"))
        return body

    @EP("/customers/{customer_id}", method="GET")
    @json_api()
    async def customer(self, comm: Communication, customer_id: str) -> dict[str, Any]:
        customer = await comm.call("Crm", "/customer", {"id": customer_id})
        if not customer.get("name"):
            raise NotFound("no such customer")
        meters = customer.get("meters", [])
        readings, invoices = await asyncio.gather(
            gather_limited(
                3, (comm.call("Telemetry", "/readings/{meter_id}", {"meter_id": m}) for m in meters)
            ),
            comm.call("InvoiceStore", "/list", {"customer": customer_id}),
        )
        overdue = [invoice for invoice in invoices.get("invoices", []) if invoice.get("overdue")]
        if overdue and customer.get("vip"):
            await comm.call("Crm", "/note", {"customer": customer_id, "overdue": len(overdue)})
        usable = [reading for reading in readings if not isinstance(reading, BaseException)]
        return {"name": customer["name"], "overdue": len(overdue), "meters": len(usable)}

    @EP("/reports", method="POST")
    @json_api(status=201)
    @requires("reports:write")
    async def report(self, comm: Communication) -> dict[str, Any]:
        sections = comm.params.get("sections") or ["usage"]
        collected: dict[str, Any] = {}
        for section in sections:
            match section:
                case "usage":
                    collected[section] = await comm.call("Telemetry", "/aggregate", {"regions": "north"})
                case "alerts":
                    collected[section] = await AlertStore(comm).list_open(
                        principal_var.get().tenant, "critical"
                    )
                case "billing":
                    collected[section] = await comm.call(
                        "Ledger", "/balance", {"tenant": principal_var.get().tenant}
                    )
                case _:
                    raise Unprocessable(f"unknown section {section}")
        document = await comm.call("Pdf", "/render", {"sections": collected}, timeout=10.0)
        if recipients := comm.params.get("recipients"):
            await gather_limited(
                2, (Notifier(comm).send("email", r, document.get("url", "")) for r in recipients)
            )
        return {"url": document.get("url"), "sections": list(collected)}
