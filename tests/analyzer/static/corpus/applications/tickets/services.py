import asyncio
import logging
import uuid
from collections import defaultdict
from datetime import UTC, datetime

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError
from security import Denied, Principal, Unauthorized, logged, principal, requires

log = logging.getLogger(__name__)

OPEN, HELD, SOLD = "open", "held", "sold"


class Tickets(MS):
    runtime = "async"
    pool_size = 64

    def setup(self) -> None:
        self.calls = {}
        self.locks = defaultdict(asyncio.Lock)
        self.background = set()

    @EP("/events", method="GET")
    async def events(self, comm: Communication, city: str = "", day: str = "") -> None:
        where = {}
        if city:
            where["city"] = city
        if day:
            try:
                where["day"] = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
            except ValueError:
                comm.respond({"error": "no date"}, status=422)
                return
        comm.respond(await comm.query("tickets", "events", "events", where))

    @EP("/events/{event}", method="GET")
    async def event(self, comm: Communication, event: str) -> None:
        rows, seats = await asyncio.gather(
            comm.query("tickets", "event", "events", {"_id": event}),
            comm.query("tickets", "seats", "seats", {"event": event, "state": OPEN}),
        )
        if not rows:
            comm.respond({"error": "no such event"}, status=404)
            return
        comm.respond({**rows[0], "free": len(seats)})

    @EP("/me", method="GET")
    @requires("read")
    async def me(self, comm: Communication, who: Principal) -> None:
        comm.respond({"id": who.id, "scopes": sorted(who.scopes)})

    @EP("/my-tickets", method="GET")
    @requires("read")
    async def mine(self, comm: Communication, who: Principal) -> None:
        comm.respond(await comm.query("tickets", "of_owner", "seats", {"owner": who.id}))

    @EP("/hold", method="POST")
    @requires("buy")
    async def hold(self, comm: Communication, who: Principal) -> None:
        event, wanted = comm.params.get("event"), comm.params.get("seats", [])
        if not event or not 0 < len(wanted) <= 8:
            comm.respond({"error": "between 1 and 8 seats"}, status=422)
            return
        async with self.locks[event]:
            seats = await comm.query("tickets", "seats", "seats", {"event": event, "_id": {"$in": wanted}})
            if len(seats) < len(wanted) or any(s.get("state", OPEN) != OPEN for s in seats):
                comm.respond({"error": "taken"}, status=409)
                return
            change = {
                "filter": {"_id": {"$in": wanted}},
                "update": {"$set": {"state": HELD, "owner": who.id}},
            }
            await comm.query("tickets", "hold", "seats", {"$update": change})
        comm.respond({"held": wanted}, status=201)

    @EP("/buy", method="POST")
    async def buy(self, comm: Communication) -> None:
        try:
            who = await principal(comm)
        except Unauthorized as error:
            comm.respond({"error": str(error)}, status=401)
            return
        key = comm.headers.get("idempotency-key")
        if key:
            known = await comm.query("tickets", "idempotency", "keys", {"_id": key})
            if known:
                comm.respond(known[0].get("answer", {}), status=200)
                return
        held = await comm.query("tickets", "held", "seats", {"owner": who.id, "state": HELD})
        if not held:
            comm.respond({"error": "nothing is held"}, status=409)
            return
        total = sum(s.get("price", 10) for s in held)
        try:
            payment = await comm.call("Pay", "/charge", {"customer": who.id, "amount": total})
        except CallError as error:
            if error.status == 402:
                comm.respond({"error": "declined"}, status=402)
                return
            raise
        except CommunicationError:
            comm.respond({"error": "payment is not available"}, status=503)
            return
        answer = {"order": str(uuid.uuid4()), "payment": payment["id"], "total": total}
        await comm.query(
            "tickets",
            "sell",
            "seats",
            {"$update": {"filter": {"owner": who.id}, "update": {"$set": {"state": SOLD}}}},
        )
        if key:
            await comm.query("tickets", "remember", "keys", {"$insert": [{"_id": key, "answer": answer}]})
        comm.call("Outbox", "/mail", {"to": who.id, "kind": "tickets"})
        comm.respond(answer, status=201)

    @EP("/cancel/{order}", method="POST")
    @logged
    async def cancel(self, comm: Communication) -> None:
        await self._refund(comm, comm.params.get("order"))

    @logged
    async def _refund(self, comm, order):
        rows = await comm.query("tickets", "order", "orders", {"_id": order})
        if not rows:
            comm.respond(None, status=404)
            return
        await comm.call("Pay", "/refund", {"id": rows[0].get("payment")})
        comm.respond({"refunded": True})

    @EP("/admin/report", method="GET")
    @requires("admin")
    async def report(self, comm: Communication, who: Principal) -> None:
        sold, held = await asyncio.gather(self._count(comm, SOLD), self._count(comm, HELD))
        comm.respond({"sold": sold, "held": held, "by": who.id})

    async def _count(self, comm, state):
        return len(await comm.query("tickets", f"count_{state}", "seats", {"state": state}))

    @EP("/admin/events", method="POST")
    async def create(self, comm: Communication) -> None:
        try:
            who = await principal(comm)
            if not who.may("admin"):
                raise Denied("admins only")
            event = self._validated(comm.params)
        except Unauthorized as error:
            comm.respond({"error": str(error)}, status=error.status)
        except ValueError as error:
            comm.respond({"error": str(error)}, status=422)
        else:
            await comm.query("tickets", "insert_event", "events", {"$insert": [event]})
            comm.respond(event, status=201)

    def _validated(self, params):
        name = params.get("name", "").strip()
        if not name:
            raise ValueError("an event has a name")
        seats = params.get("seats", 0)
        if not isinstance(seats, int) or seats <= 0:
            raise ValueError("an event has seats")
        return {"_id": str(uuid.uuid4()), "name": name, "seats": seats}

    @EP("/remind/{event}", method="POST")
    async def remind(self, comm: Communication, event: str) -> None:
        """Mails go out in the background."""
        task = asyncio.create_task(self._remind(comm, event))
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        comm.respond({"accepted": True}, status=202)

    async def _remind(self, comm, event):
        for seat in await comm.query("tickets", "sold_seats", "seats", {"event": event, "state": SOLD}):
            try:
                await comm.call("Outbox", "/mail", {"to": seat.get("owner"), "kind": "reminder"})
            except MupError:
                log.warning("no reminder for %s", seat)

    @EP("/upload", method="POST")
    @requires("admin")
    async def upload(self, comm: Communication, who: Principal) -> None:
        if not comm.body:
            comm.respond({"error": "empty"}, status=400)
            return
        stored = await comm.call("Files", "/store", {"owner": who.id, "size": len(comm.body)})
        try:
            await comm.query("tickets", "insert_file", "files", {"$insert": [stored]})
        except CommunicationError:
            await comm.call("Files", "/delete", {"id": stored["id"]})
            comm.respond({"error": "not stored"}, status=503)
            return
        comm.respond(stored, status=201)


class Identity(MS):
    @EP("/introspect")
    def introspect(self, comm: Communication, token: str) -> None:
        rows = comm.query("identity", "token", "tokens", {"_id": token}).get()
        if not rows or rows[0].get("revoked"):
            comm.respond({"active": False})
            return
        user = comm.query("identity", "user", "users", {"_id": rows[0].get("user", "")}).get()
        comm.respond({"active": bool(user), "sub": rows[0].get("user"), "scope": "read"})


class Pay(MS):
    @EP("/charge")
    def charge(self, comm: Communication, customer: str, amount: float) -> None:
        if amount > 1000:
            comm.respond({"error": "declined"}, status=402)
            return
        comm.query("pay", "insert", "payments", {"$insert": [{"customer": customer, "amount": amount}]}).get()
        comm.respond({"id": comm.request_id})

    @EP("/refund")
    def refund(self, comm: Communication) -> None:
        comm.query("pay", "refund", "payments", {"$insert": [dict(comm.params)]}).get()
        comm.respond({})


class Outbox(MS):
    @EP("/mail")
    def mail(self, comm: Communication) -> None:
        comm.respond(None, status=202)
        comm.query("outbox", "insert", "mails", {"$insert": [dict(comm.params)]}).get()


class Files(MS):
    @EP("/store")
    def store(self, comm: Communication, owner: str = "", size: int = 0) -> None:
        comm.respond({"id": comm.request_id, "owner": owner, "size": size})

    @EP("/delete")
    def delete(self, comm: Communication, id: str = "") -> None:
        comm.respond(None, status=204)
