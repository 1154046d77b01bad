"""The reception: endpoints that block."""

import functools
import itertools
import operator
from contextlib import ExitStack, suppress
from typing import Any

from clients import Breaker, CircuitOpen, Delegate, InsuranceClient, RoomClient
from models import (
    TRANSITIONS,
    Right,
    Schedule,
    State,
    Urgency,
    describe,
    parse_message,
    Admitted,
    Discharged,
    Moved,
)
from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError, QueryError
from pipeline import CHECKS, compose, requires
from repos import Compensations, UnitOfWork, unique

PRICES = {Urgency.ROUTINE: 40, Urgency.URGENT: 80}


class Effects:
    """What happens on transitions; methods are named in the table."""

    def __init__(self, comm: Communication, appointment: dict[str, Any]) -> None:
        self.comm = comm
        self.appointment = appointment
        self.rooms = RoomClient(comm)

    def reserve_room(self) -> None:
        self.appointment["room"] = self.rooms.reserve(slot=self.appointment.get("slot")).get("room")

    def release_room(self) -> None:
        if room := self.appointment.get("room"):
            self.rooms.release(room=room)

    def notify(self) -> None:
        with suppress(CommunicationError):
            self.comm.call("Sms", "/send", {"to": self.appointment["_id"]}, timeout=2.0).get()

    def page_doctor(self) -> None:
        self.comm.call("Pager", "/page", {"id": self.appointment["_id"]}).get()

    def bill(self) -> None:
        self.comm.call("Billing", "/invoice", {"id": self.appointment["_id"]}).get()


class Reception(MS):
    pool_size = 4

    @EP("/patients/{id}", method="GET")
    def patient(self, comm: Communication, id: str, policy: bool = False) -> None:
        with UnitOfWork(comm) as work:
            try:
                found = work.patients[id]
            except KeyError:
                comm.respond({"error": "no such patient"}, status=404)
                return
        body = found.to_json()
        if policy and found.insured:
            body |= {"policy": InsuranceClient(comm).policy(found.insurance)}
        comm.respond(body)

    @EP("/patients", method="POST")
    def register(self, comm: Communication) -> None:
        form = comm.params
        if not (id_ := form.get("id")):
            comm.respond({"error": "id"}, status=422)
            return
        with UnitOfWork(comm) as work:
            if id_ in work.patients:
                comm.respond({"error": "known"}, status=409)
                return
            work.add("patients", _id=id_, name=form.get("name", ""))
            for allergy in form.get("allergies") or ():
                work.add("allergies", patient=id_, allergy=allergy)
        comm.respond({"id": id_}, status=201)

    @EP("/appointments/{id}/{action}", method="POST")
    def transition(self, comm: Communication, id: str, action: str) -> None:
        rows = comm.query("clinic", "appointment", "appointments", {"_id": id}).get()
        if not rows:
            comm.respond(status=404)
            return
        appointment, *_ = rows
        state = State(appointment.get("state", "requested"))
        step = TRANSITIONS.get((state, action))
        if step is None:
            comm.respond({"error": f"{action} in {state.value}"}, status=409)
            return
        effects = Effects(comm, appointment)
        for name in step.effects:
            getattr(effects, name)()
        comm.query("clinic", "set_state", "appointments", {"_id": id, "state": step.target.value}).get()
        comm.respond({"state": step.target.value})

    @EP("/forms/{kind}", method="POST")
    def form(self, comm: Communication, kind: str) -> None:
        checks = CHECKS.get(kind)
        if not checks:
            comm.respond({"error": "kind"}, status=404)
            return
        failed = [c.__name__ for c in checks if not c(comm, comm.params)]
        comm.respond({"failed": failed}, status=422 if failed else 200)

    @EP("/bills/{patient}", method="GET")
    @requires(Right.BILL)
    def bills(self, comm: Communication, patient: str) -> None:
        rows = comm.query("billing", "open", "bills", {"patient": patient}).get()
        by_payer = itertools.groupby(
            sorted(rows, key=lambda r: r.get("payer", "")), key=lambda r: r.get("payer", "")
        )
        sums = {}
        for payer, group in by_payer:
            total = functools.reduce(operator.add, (b.get("amount", 0) for b in group), 0)
            if payer:
                total -= comm.call("Insurance", "/deductible", {"payer": payer}).get().get("amount", 0)
            sums[payer] = total
        comm.respond(sums)

    @EP("/admissions", method="POST")
    def admit(self, comm: Communication, patient: str, surgery: bool = False) -> None:
        undo = Compensations()
        rooms = RoomClient(comm)
        try:
            bed = comm.call("Beds", "/take", {"patient": patient}).get().get("bed")
            undo.push(lambda: comm.call("Beds", "/give", {"bed": bed}).get())
            if surgery:
                room = rooms.reserve(patient=patient).get("room")
                undo.push(functools.partial(rooms.release, room=room))
                comm.call("Staff", "/surgeon", {"room": room}).get()
                undo.push(lambda: comm.call("Staff", "/dismiss", {"room": room}).get())
            comm.query("clinic", "admit", "admissions", {"patient": patient, "bed": bed}).get()
        except MupError as error:
            comm.respond({"error": str(error), "undone": undo.run()}, status=503)
        else:
            comm.respond({"bed": bed}, status=201)

    @EP("/slots/hold", method="POST")
    def hold(self, comm: Communication, slots: list[str]) -> None:
        rooms = RoomClient(comm)
        with ExitStack() as stack:
            held = [stack.enter_context(rooms.held(slot)) for slot in slots]
            comm.query("clinic", "hold", "slots", {"rooms": held}).get()
        comm.respond({"rooms": held})

    @EP("/price", method="GET")
    def price(self, comm: Communication, urgency: str = "", policy: str = "") -> None:
        try:
            level = Urgency(urgency)
        except ValueError:
            comm.respond({"error": "urgency"}, status=422)
            return
        base = PRICES.get(level)
        if base is None:
            base = comm.call("Billing", "/tariff", {"urgency": level.value}).get().get("price", 200)
        breaker = Breaker(1)
        client = InsuranceClient(comm)
        approve = breaker(client.approve)
        share = 1.0
        for number in filter(None, policy.split(",")):
            try:
                if approve(number, amount=base):
                    share = 0.2
                    break
            except CommunicationError:
                continue
            except CircuitOpen:
                break
        comm.respond({"price": base * share})

    @EP("/messages", method="POST")
    def messages(self, comm: Communication, items: list[dict]) -> None:
        seen: list[str] = []
        for message in map(parse_message, items):
            match message:
                case Admitted(patient, ward):
                    comm.call("Beds", "/take", {"patient": patient, "ward": ward}).get()
                case Discharged(patient=p, bill=True):
                    comm.call("Billing", "/invoice", {"patient": p}).get()
                    comm.call("Beds", "/give", {"patient": p}).get()
                case Discharged(patient=p):
                    comm.call("Beds", "/give", {"patient": p}).get()
                case Moved(p, _, "icu"):
                    comm.call("Pager", "/page", {"patient": p}).get()
                case Moved() | None:
                    pass
            seen.append(describe(message))
        comm.respond(seen)

    @EP("/day/{day}", method="GET")
    def day(self, comm: Communication, day: int, doctor: str = "") -> None:
        own, guest = (
            comm.query("clinic", name, "slots", {"day": day}) for name in ("own_slots", "guest_slots")
        )
        work = UnitOfWork(comm)
        schedule = Schedule(list(map(work.slots.build, own.get()))) + Schedule(
            [*map(work.slots.build, guest.get())]
        )
        if doctor and doctor in schedule:
            names = {s.id: comm.call("Staff", "/name", {"slot": s.id}) for s in schedule[doctor]}
            comm.respond({k: v.get().get("name") for k, v in names.items()})
            return
        if slot := schedule.first_free:
            comm.respond({"free": slot.id, "of": len(schedule)})
        else:
            comm.respond(status=204)

    @EP("/delegate/{id}", method="GET")
    def delegated(self, comm: Communication, id: str, amount: float = 0.0) -> None:
        audit: list[str] = []
        insurance = Delegate(InsuranceClient(comm), audit)
        policy = insurance.policy(id)
        if policy.get("limit", 0) < amount and not insurance.approve(id, amount=amount):
            comm.respond({"audit": audit}, status=402)
            return
        comm.respond({"policy": insurance.policy(id), "audit": audit})

    @EP("/tree/{ward}", method="GET")
    def tree(self, comm: Communication, ward: str, depth: int = 2) -> None:
        def below(node: str, left: int) -> dict[str, Any]:
            if left == 0:
                return {}
            children = comm.call("Wards", "/children", {"ward": node}).get().get("children", [])
            return {child: below(child, left - 1) for child in children}

        clean = compose(str.strip, str.lower, functools.partial(below, left=depth))
        comm.respond(clean(ward))

    @EP("/export", method="POST")
    def export(self, comm: Communication) -> None:
        ids = unique(comm.query("clinic", "changed", "patients", {}).get(), "_id")
        comm.respond({"exporting": len(ids)}, status=202)
        chunks = iter(ids)
        while chunk := list(itertools.islice(chunks, 2)):
            try:
                comm.call("Archive", "/put", {"ids": chunk}).get()
            except CallError as error:
                if error.status >= 500:
                    comm.query("clinic", "export_failed", "jobs", {"ids": chunk}).get()
                    break
