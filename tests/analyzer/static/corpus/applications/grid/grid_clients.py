"""Schemas, and small typed clients of the services around us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from grid_core import NotFound, Unprocessable, log, retry

from mup import Communication
from mup.errors import CallError, CommunicationError


@dataclass(slots=True)
class Meter:
    id: str
    state: str = "registered"
    site: str = ""
    contract: str = ""
    model: str = "generic"

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> Meter:
        return cls(
            id=str(raw.get("id", "")),
            state=raw.get("state", "registered"),
            site=raw.get("site", ""),
            contract=raw.get("contract", ""),
            model=raw.get("model", "generic"),
        )


@dataclass(frozen=True, slots=True)
class RegisterMeter:
    serial: str
    site: str
    model: str

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> RegisterMeter:
        missing = [name for name in ("serial", "site") if not raw.get(name)]
        if missing:
            raise Unprocessable(f"missing: {', '.join(missing)}")
        return cls(str(raw["serial"]), str(raw["site"]), raw.get("model", "generic"))


@dataclass(frozen=True, slots=True)
class Reading:
    meter: str
    at: int
    kwh: float
    voltage: float = 230.0

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> Reading:
        try:
            reading = cls(
                str(raw["meter"]), int(raw["at"]), float(raw["kwh"]), float(raw.get("voltage", 230))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Unprocessable(f"bad reading: {error}") from error
        if reading.kwh < 0:
            raise Unprocessable("negative consumption")
        return reading


@dataclass(frozen=True, slots=True)
class UsageProfile:
    customer: str
    annual_kwh: float = 3500.0
    suppliers: list[str] = field(default_factory=list)


class ServiceClient:
    service: ClassVar[str]

    def __init__(self, comm: Communication, timeout: float = 2.0) -> None:
        self.comm = comm
        self.timeout = timeout

    async def _post(self, path: str, **params: Any) -> Any:
        return await self.comm.call(self.service, path, params, timeout=self.timeout)


class MeterStore(ServiceClient):
    service = "MeterStore"

    async def get(self, meter_id: str) -> Meter:
        try:
            raw = await self._post("/get", id=meter_id)
        except CallError as error:
            if error.status == 404:
                raise NotFound(f"no meter {meter_id}") from error
            raise
        if not raw:
            raise NotFound(f"no meter {meter_id}")
        return Meter.parse(raw)

    async def insert(self, meter: Meter) -> Meter:
        return Meter.parse(await self._post("/insert", **asdict(meter)))

    async def set_state(self, meter_id: str, state: str) -> None:
        await self._post("/update", id=meter_id, state=state)

    async def page(self, tenant: str, cursor: str = "", limit: int = 50) -> tuple[list[Meter], str]:
        raw = await self._post("/list", tenant=tenant, cursor=cursor, limit=limit)
        return [Meter.parse(item) for item in raw.get("items", [])], raw.get("next", "")


class TimeSeries(ServiceClient):
    service = "Tsdb"

    async def write(self, readings: list[Reading]) -> int:
        points = [asdict(reading) for reading in readings]
        answer = await retry(lambda: self._post("/write", points=points))
        return int(answer.get("written", len(points)))

    async def range(self, meter: str, start: int, end: int) -> list[dict[str, Any]]:
        return (await self._post("/range", meter=meter, start=start, end=end)).get("points", [])

    async def latest(self, meter: str) -> dict[str, Any] | None:
        return (await self._post("/latest", meter=meter)).get("point")


class ColdStore(ServiceClient):
    service = "ColdStore"

    async def pages(self, meter: str, start: int, end: int) -> AsyncIterator[list[dict[str, Any]]]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self._post("/range", meter=meter, start=start, end=end, cursor=cursor)
            if page.get("points"):
                yield page["points"]
            cursor = page.get("next")


class AlertStore(ServiceClient):
    service = "AlertStore"

    async def get(self, alert_id: str) -> dict[str, Any]:
        alert = await self._post("/get", id=alert_id)
        if not alert.get("id"):
            raise NotFound(f"no alert {alert_id}")
        return alert

    async def find_open(self, meter: str, kind: str) -> dict[str, Any] | None:
        found = await self._post("/find", meter=meter, kind=kind, status="open")
        return found.get("alert")

    async def save(self, **alert: Any) -> dict[str, Any]:
        return await self._post("/save", **alert)

    async def list_open(self, tenant: str, severity: str | None = None) -> list[dict[str, Any]]:
        query = {"tenant": tenant}
        if severity:
            query["severity"] = severity
        return (await self._post("/list", **query)).get("alerts", [])


class Invoices(ServiceClient):
    service = "InvoiceStore"

    async def get(self, invoice_id: str) -> dict[str, Any]:
        invoice = await self._post("/get", id=invoice_id)
        if "amount" not in invoice:
            raise NotFound(f"no invoice {invoice_id}")
        return invoice

    async def save(self, **invoice: Any) -> str:
        return str((await self._post("/save", **invoice)).get("id", ""))

    async def mark(self, invoice_id: str, status: str, **extra: Any) -> None:
        await self._post("/mark", id=invoice_id, status=status, **extra)


class RunEvents(ServiceClient):
    """Event-sourced billing runs."""

    service = "RunStore"

    async def append(self, run_id: str, kind: str, **data: Any) -> None:
        await self._post("/append", run=run_id, kind=kind, data=data)

    async def state(self, run_id: str) -> dict[str, Any]:
        events = (await self._post("/events", run=run_id)).get("events", [])
        if not events:
            raise NotFound(f"no run {run_id}")
        state: dict[str, Any] = {"id": run_id, "status": "new", "billed": [], "failed": [], "period": ""}
        for event in events:
            match event:
                case {"kind": "started", "data": {"period": period}}:
                    state |= {"status": "running", "period": period}
                case {"kind": "billed", "data": {"contract": contract}}:
                    state["billed"].append(contract)
                case {"kind": "failed", "data": {"contract": contract}}:
                    state["failed"].append(contract)
                case {"kind": "finished" | "aborted" as status}:
                    state["status"] = status
        return state


class AuditTrail(ServiceClient):
    service = "Audit"

    async def record(self, action: str, subject: str, **details: Any) -> None:
        try:
            await self._post("/record", action=action, subject=subject, details=details)
        except CommunicationError:
            log.exception("audit of %s lost", action)


class Notifier:
    """Sends by the channels a recipient has, in the order they prefer."""

    CHANNELS: ClassVar[dict[str, tuple[str, str]]] = {
        "push": ("Push", "/send"),
        "sms": ("Sms", "/send"),
        "email": ("Email", "/send"),
    }

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    async def send(self, channel: str, to: str, text: str) -> bool:
        service, path = self.CHANNELS[channel]
        try:
            async with asyncio.timeout(1.5):
                answer = await self.comm.call(service, path, {"to": to, "text": text})
        except (CommunicationError, TimeoutError):
            return False
        return answer.get("accepted", True)

    async def first_that_works(self, channels: list[str], to: str, text: str) -> str | None:
        for channel in channels:
            if channel in self.CHANNELS and await self.send(channel, to, text):
                return channel
        return None

    async def everywhere(self, to: str, text: str) -> dict[str, bool]:
        sent = await asyncio.gather(*(self.send(channel, to, text) for channel in self.CHANNELS))
        return dict(zip(self.CHANNELS, sent, strict=True))
