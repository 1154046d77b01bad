from dataclasses import replace

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, QueryError

from ports.adapters import BrokerPublisher, Container, MongoTickets, Notifications, UnitOfWork, Users
from ports.domain import InvalidTransition, Status, Ticket, TicketClosed, TicketOpened


class Desk(MS):
    pool_size = 6

    @EP("/tickets", method="POST")
    def create(self, comm: Communication, title: str = "") -> None:
        if not title.strip():
            comm.respond({"error": "title"}, status=422)
            return
        with Container(comm).uow() as uow:
            ticket = Ticket.new(title)
            ticket.open()
            uow.add(ticket)
        comm.respond({"id": ticket.id}, status=201)

    @EP("/tickets/{id}/close", method="POST")
    def close(self, comm: Communication, id: str, reason: str = "done") -> None:
        with UnitOfWork(comm) as uow:
            ticket = uow.tickets.get(id)
            if ticket is None:
                comm.respond({"error": "no ticket"}, status=404)
                return
            ticket.close(reason)
            uow.add(ticket)
        comm.respond({"status": ticket.status})

    @EP("/tickets/{id}/open", method="POST")
    def reopen(self, comm: Communication, id: str) -> None:
        store = MongoTickets(comm)
        ticket = store.get(id)
        try:
            ticket.open()
        except AttributeError:
            return comm.respond({"error": "no ticket"}, status=404)
        except InvalidTransition as error:
            return comm.respond({"error": str(error)}, status=409)
        store.put(ticket)
        comm.respond({"status": ticket.status})

    @EP("/tickets/{id}/assign", method="POST")
    def assign(self, comm: Communication, id: str, user: str) -> None:
        users = Container(comm).users
        if user not in users:
            comm.respond({"error": "no such user"}, status=422)
            return
        name = users[user].get("name")
        store = MongoTickets(comm)
        if (ticket := store.get(id)) is None:
            comm.respond(status=404)
            return
        store.put(replace(ticket, assignee=user))
        comm.respond({"assignee": name})

    @EP("/users/{user}/load", method="GET")
    def load(self, comm: Communication, user: str) -> None:
        open_ = sum(1 for t in MongoTickets(comm).open_for(user) if t.status is Status.OPEN)
        comm.respond({"open": open_})

    @EP("/notify/{kind}", method="POST")
    def notify(self, comm: Communication, kind: str) -> None:
        event = TicketOpened(ticket="1") if kind == "opened" else TicketClosed(ticket="1")
        Container(comm).notify(event)
        comm.respond({})

    @EP("/notify-closed", method="POST")
    def notify_closed(self, comm: Communication) -> None:
        Notifications(comm)(TicketClosed(ticket="1"))
        comm.respond({})

    @EP("/team", method="POST")
    def team(self, comm: Communication, ids: list[str]) -> None:
        comm.respond([u.get("name") for u in Users(comm).many(ids)])

    @EP("/strict", method="POST")
    def strict(self, comm: Communication) -> None:
        try:
            BrokerPublisher(comm, strict=True).publish(TicketOpened(ticket="1"))
        except CommunicationError:
            comm.respond({"published": False}, status=503)
        else:
            comm.respond({"published": True})

    @EP("/escalate/{id}", method="POST")
    def escalate(self, comm: Communication, id: str) -> None:
        steps = [self._mail, self._page, self._phone]
        for step in steps:
            if step(comm, id):
                break
        else:
            comm.query("desk", "unanswered", "escalations", {"$insert": [{"ticket": id}]}).get()
        comm.respond({})

    def _mail(self, comm, id):
        return comm.call("Mail", "/send", {"ticket": id}).get().get("read", False)

    def _page(self, comm, id):
        try:
            return comm.call("Pager", "/page", {"ticket": id}, timeout=0.5).get()["acknowledged"]
        except (CallError, KeyError):
            return False

    def _phone(self, comm, id):
        on_call = comm.query("desk", "on_call", "rota", {}).get()
        return any(comm.call("Phone", "/ring", {"who": row["_id"]}).get().get("answered") for row in on_call)

    @EP("/digest", method="POST")
    def digest(self, comm: Communication) -> None:
        groups: dict[str, list] = {}
        for row in comm.query("desk", "all", "tickets", {}).get():
            groups.setdefault(row.get("assignee"), []).append(row)
        sent = {}
        for assignee, rows in groups.items():
            if assignee is None:
                continue
            sent[assignee] = comm.call("Mail", "/send", {"to": assignee, "n": len(rows)})
        failed = [who for who, future in sent.items() if not self._ok(future)]
        comm.respond({"sent": len(sent) - len(failed), "failed": failed})

    @staticmethod
    def _ok(future):
        try:
            future.get()
        except CommunicationError:
            return False
        return True

    @EP("/archive", method="POST")
    def archive(self, comm: Communication, days: int = 30) -> None:
        moved = 0
        while True:
            rows = comm.query("desk", "old", "tickets", {"days": days, "limit": 100}).get()
            if not rows:
                break
            try:
                comm.call("Archive", "/put", {"rows": rows}).get()
            except CommunicationError as error:
                comm.respond({"moved": moved, "error": str(error)}, status=502)
                return
            comm.query("desk", "drop", "tickets", {"ids": [r["_id"] for r in rows]}).get()
            moved += len(rows)
        comm.respond({"moved": moved})
