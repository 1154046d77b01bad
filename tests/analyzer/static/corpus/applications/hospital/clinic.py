"""The clinic itself, on an event loop."""

import asyncio
import functools
import itertools
import os
from collections import ChainMap, Counter, defaultdict
from contextlib import AsyncExitStack, aclosing, suppress
from operator import attrgetter, itemgetter
from typing import Any

from clients import LabClient, PharmacyClient, lease, notifier_for, or_none, retry
from models import Patient, Slot
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError, NoReplicaError
from pipeline import STRICT, audited, authenticated, bus, errors_as, through, traced
from repos import AsyncRows

DEFAULTS = {"limit": 3, "remind": True}
REMIND = os.getenv("CLINIC_REMIND", "1") != "0"
TRIAGE: dict[range, str] = {range(0, 4): "wait", range(4, 8): "treat", range(8, 11): "alarm"}


class Ranked:
    """A doctor with what speaks for them."""

    __slots__ = ("doctor", "load")

    def __init__(self, doctor: str, load: int) -> None:
        self.doctor, self.load = doctor, load

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranked) and other.doctor == self.doctor

    def __hash__(self) -> int:
        return hash(self.doctor)


class Clinic(MS):
    runtime = "async"
    pool_size = 8

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._triage = {"wait": self._wait, "treat": self._treat, "alarm": self._alarm}

    @EP("/chart/{id}", method="GET")
    @traced
    async def chart(self, comm: Communication, id: str, full: bool = False) -> None:
        rows = await comm.query("clinic", "patient", "patients", {"_id": id})
        if not rows:
            return comm.respond(status=404)
        wanted = {
            "visits": comm.query("clinic", "visits", "visits", {"p": id}),
            "labs": comm.call("Lab", "/summary", {"p": id}),
        }
        if full:
            wanted["images"] = comm.call("Imaging", "/list", {"p": id})
        results = await asyncio.gather(*wanted.values(), return_exceptions=True)
        body = dict(zip(wanted, results, strict=True))
        comm.respond({k: None if isinstance(v, BaseException) else v for k, v in body.items()})

    @EP("/labs/{patient}", method="GET")
    async def labs(self, comm: Communication, patient: str) -> None:
        lab = LabClient(comm)
        values: dict[str, float] = {}
        async for page in lab.pages(patient):
            for item in page:
                if item.get("ready"):
                    values[item["id"]] = await lab.result(item["id"])
        comm.respond(values)

    @EP("/labs/first", method="GET")
    async def first_lab(self, comm: Communication, patient: str = "") -> None:
        async with aclosing(LabClient(comm).pages(patient)) as pages:
            async for page in pages:
                if page:
                    comm.respond(page[0])
                    return
        comm.respond(status=204)

    @EP("/prescribe", method="POST")
    async def prescribe(self, comm: Communication, drugs: list[str], patient: str = "") -> None:
        pharmacy = PharmacyClient(comm)
        extra = {"patient": patient} if patient else {}
        async with asyncio.TaskGroup() as group:
            tasks = {drug: group.create_task(pharmacy.check(drug, **extra)) for drug in drugs}
        refused = {drug for drug, task in tasks.items() if not task.result()}
        if refused:
            comm.respond({"refused": sorted(refused)}, status=409)
            return
        comm.respond(await pharmacy.dispense(*drugs))

    @EP("/remind", method="POST")
    async def remind(self, comm: Communication) -> None:
        options = ChainMap(comm.params, DEFAULTS)
        if not REMIND or not options["remind"]:
            comm.respond({"sent": 0})
            return
        contacts = await comm.query("clinic", "contacts", "patients", {"limit": options["limit"]})
        sent = 0
        for contact in contacts:
            if (notifier := notifier_for(comm, contact)) is not None:
                await notifier.send("tomorrow")
                sent += 1
        comm.respond({"sent": sent})

    @EP("/secure/notes", method="GET")
    async def notes(self, comm: Communication) -> None:
        async def handler(comm: Communication) -> None:
            rows = await comm.query("clinic", "notes", "notes", {})
            comm.respond(rows)

        await through(handler)(comm)

    @EP("/secure/seal", method="POST")
    async def seal(self, comm: Communication) -> None:
        stack = [errors_as(503, NoReplicaError, CallTimeoutError)] + ([audited] if STRICT else [])
        await through(self._seal, stack)(comm)

    async def _seal(self, comm):
        sealed = await comm.call("Archive", "/seal", {"id": comm.params.get("id")})
        comm.respond(sealed)

    @EP("/events/{kind}", method="POST")
    async def event(self, comm: Communication, kind: str, patient: str = "?") -> None:
        count = await bus.emit(kind, comm, patient=patient)
        comm.respond({"handled": count}, status=200 if count else 404)

    @EP("/triage", method="POST")
    async def triage(self, comm: Communication, pain: int = 0) -> None:
        decision = next((name for scale, name in TRIAGE.items() if pain in scale), None)
        if decision is None:
            comm.respond({"error": "pain"}, status=422)
            return
        comm.respond(await self._triage[decision](comm))

    async def _wait(self, comm):
        rows = await comm.query("clinic", "waiting_count", "waitlist", {})
        return {"before": len(rows)}

    async def _treat(self, comm):
        doctor, room = await asyncio.gather(
            comm.call("Staff", "/free", {}), comm.call("Rooms", "/reserve", {})
        )
        return doctor | room

    async def _alarm(self, comm):
        page = asyncio.create_task(comm.call("Pager", "/page", {}))
        bed = await comm.call("Beds", "/take", {})
        await page
        return bed

    @EP("/doctor/best", method="GET")
    async def best_doctor(self, comm: Communication, avoid: str = "") -> None:
        doctors = await comm.query("clinic", "doctors", "doctors", {})

        async def ranked(doc: dict[str, Any]) -> Ranked:
            load = await comm.call("Staff", "/load", {"doctor": doc["_id"]})
            return Ranked(doc["_id"], load.get("load", 0))

        loads = await asyncio.gather(*(ranked(d) for d in doctors))
        best = min((r for r in loads if r != Ranked(avoid, 0)), key=attrgetter("load"), default=None)
        if best is None:
            return comm.respond({"error": "nobody"}, status=404)
        if best.load > 5:
            await comm.call("Pager", "/page", {"doctor": best.doctor})
        comm.respond({"doctor": best.doctor})

    @EP("/vitals/{id}", method="GET")
    async def vitals(self, comm: Communication, id: str) -> None:
        try:
            async with asyncio.timeout(1.0):
                body = await comm.call("Monitor", "/now", {"id": id})
        except TimeoutError:
            rows = await comm.query("clinic", "last_vitals", "vitals", {"_id": id})
            body = rows[-1] if rows else None
        comm.respond(body, status=200 if body is not None else 404)

    @EP("/vitals/ward", method="GET")
    async def ward(self, comm: Communication, ids: list[str] = []) -> None:
        gate = asyncio.Semaphore(2)
        found: dict[str, Any] = {}

        async def one(id_: str) -> None:
            async with gate:
                found[id_] = await or_none(comm.call("Monitor", "/now", {"id": id_}), CommunicationError)

        await asyncio.gather(*map(one, ids))
        alarms = [k for k, v in found.items() if v and v.get("pulse", 60) > 120]
        if alarms:
            await comm.call("Pager", "/page", {"ids": alarms})
        comm.respond(found)

    @EP("/opinion", method="POST")
    async def opinion(self, comm: Communication, experts: list[str]) -> None:
        tasks = [asyncio.create_task(self._ask(comm, expert)) for expert in experts]
        votes: Counter[str] = Counter()
        for done in asyncio.as_completed(tasks):
            try:
                votes[await done] += 1
            except MupError:
                continue
        if not votes:
            comm.respond({"error": "no opinion"}, status=503)
            return
        (verdict, count), *_ = votes.most_common(1)
        comm.respond({"verdict": verdict, "count": count})

    async def _ask(self, comm: Communication, expert: str) -> str:
        answer = await comm.call("Experts", "/vote", {"expert": expert})
        return answer.get("vote", "abstain")

    @EP("/import", method="POST")
    async def bulk(self, comm: Communication, rows: list[dict]) -> None:
        counts: dict[str, int] = defaultdict(int)
        for batch in itertools.batched(rows, 2):
            results = await asyncio.gather(
                *(comm.query("clinic", "upsert", "patients", row) for row in batch), return_exceptions=True
            )
            for result in results:
                counts["failed" if isinstance(result, Exception) else "ok"] += 1
            if counts["failed"] > 2:
                break
        comm.respond(counts)

    @EP("/queue", method="POST")
    async def workers(self, comm: Communication, jobs: list[str]) -> None:
        queue: asyncio.Queue[str] = asyncio.Queue()
        for job in jobs:
            queue.put_nowait(job)
        printed: list[str] = []

        async def worker() -> None:
            while not queue.empty():
                job = await queue.get()
                await comm.call("Printer", "/print", {"job": job})
                printed.append(job)
                queue.task_done()

        await asyncio.gather(worker(), worker())
        comm.respond({"printed": sorted(printed)})

    @EP("/transfer", method="POST")
    async def transfer(self, comm: Communication, patient: str, target: str = "icu") -> None:
        async with AsyncExitStack() as stack:
            tokens = [
                await stack.enter_async_context(lease(comm, name)) for name in sorted({patient, target})
            ]
            if not all(tokens):
                comm.respond({"error": "locked"}, status=423)
                return
            bed = await comm.call("Beds", "/take", {"ward": target})
            stack.push_async_callback(self._log_move, comm, patient, bed.get("bed"))
            await comm.query("clinic", "move", "patients", {"_id": patient})
        comm.respond({"bed": bed.get("bed")})

    async def _log_move(self, comm: Communication, patient: str, bed: str | None) -> None:
        await comm.query("audit", "append", "log", {"patient": patient, "bed": bed})

    @EP("/saga", method="POST")
    async def saga(self, comm: Communication, patient: str = "", helicopter: bool = False) -> None:
        steps = [("Beds", "/take", "/give"), ("Staff", "/surgeon", "/dismiss")]
        if helicopter:
            steps.insert(0, ("Air", "/start", "/land"))
        undo = []
        call = functools.partial(self._step, comm, patient=patient)
        for service, do, back in steps:
            try:
                await call(service, do)
            except MupError as error:
                for compensate in reversed(undo):
                    with suppress(MupError):
                        await compensate()
                comm.respond({"error": str(error)}, status=409)
                break
            undo.append(lambda service=service, back=back: call(service, back))
        else:
            comm.respond({"steps": len(undo)})

    async def _step(self, comm: Communication, service: str, path: str, *, patient: str) -> Any:
        return await comm.call(service, path, {"patient": patient})

    @EP("/names", method="POST")
    async def names(self, comm: Communication, ids: list[str]) -> None:
        missing = set(ids) - self._names.keys()
        if missing:
            answers = await asyncio.gather(*[comm.call("Staff", "/name", {"id": i}) for i in sorted(missing)])
            self._names |= {i: a.get("name", "?") for i, a in zip(sorted(missing), answers)}
        comm.respond({i: self._names[i] for i in ids})

    @EP("/rooms/find", method="GET")
    async def find_room(self, comm: Communication, size: int = 1) -> None:
        async for room in AsyncRows(comm, "rooms"):
            if room.get("size", 1) >= size:
                reserved = await comm.call("Rooms", "/reserve", {"room": room["_id"]})
                if reserved.get("room"):
                    comm.respond(reserved)
                    break
        else:
            comm.respond(status=404)

    @EP("/insurance/verify", method="POST")
    async def verify(self, comm: Communication, number: str = "") -> None:
        @retry(2, on=(NoReplicaError, CallTimeoutError))
        async def policy():
            return await comm.call("Insurance", "/policy", {"number": number})

        if not number:
            comm.respond({"error": "number"}, status=422)
            return
        try:
            found = await policy()
        except CallError as error:
            comm.respond({"error": error.status}, status=424)
            return
        comm.respond(found)

    @EP("/referral", method="POST")
    async def referral(self, comm: Communication) -> None:
        match comm.params:
            case {"kind": "internal", "doctor": str(doctor)}:
                body = await comm.call("Staff", "/refer", {"doctor": doctor})
            case {"kind": "external", "fax": _, **rest} if rest:
                body = await comm.call("Fax", "/send", rest)
            case {"kind": "external", **rest}:
                body = await comm.call("Mail", "/send", rest)
            case {"kind": kind}:
                return comm.respond({"error": f"kind {kind}"}, status=422)
            case _:
                return comm.respond({"error": "kind"}, status=400)
        comm.respond(body)

    @EP("/checkin", method="POST")
    async def checkin(self, comm: Communication, id: str = "") -> None:
        appointment = await comm.query("clinic", "appointment", "appointments", {"_id": id})
        comm.respond({"ok": bool(appointment)}, status=202)
        if not appointment:
            return
        pending = [asyncio.create_task(comm.call("Pager", "/page", {"id": id}))]
        if appointment[0].get("labs"):
            pending.append(asyncio.create_task(comm.call("Lab", "/order", {"id": id})))
        await asyncio.wait(pending)

    @EP("/quick", method="GET")
    async def quick(self, comm: Communication, id: str = "") -> None:
        with suppress(TimeoutError, CommunicationError):
            answer = await asyncio.wait_for(comm.call("Cache", "/get", {"id": id}), timeout=0.5)
            if answer.get("hit"):
                comm.respond(answer)
                return
        rows = await comm.query("clinic", "patient", "patients", {"_id": id})
        patient = Patient(rows[0]["_id"]).merged(name=rows[0].get("name")) if rows else None
        if patient:
            await or_none(comm.call("Cache", "/put", patient.to_json()))
        comm.respond(patient and patient.to_json())

    @EP("/compare", method="GET")
    async def compare(self, comm: Communication, a: str = "", b: str = "") -> None:
        left, right = await asyncio.gather(
            *(comm.query("clinic", "visits", "visits", {"p": p}) for p in (a, b))
        )
        pairs = list(itertools.zip_longest(map(itemgetter("_id"), left), map(itemgetter("_id"), right)))
        if differing := [p for p in pairs if p[0] != p[1]]:
            for old, new in differing[:2]:
                await comm.call("Archive", "/diff", {"old": old, "new": new})
        comm.respond({"differing": len(differing)})
