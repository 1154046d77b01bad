import logging

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError
from sagas import Saga, SagaFailed

log = logging.getLogger(__name__)


def verify_consumer(comm, data):
    comm.call("Consumers", "/verify", {"consumer": data["consumer"], "total": data["total"]}).get()


def create_ticket(comm, data):
    answer = comm.call(
        "Kitchen", "/tickets", {"restaurant": data["restaurant"], "items": data["items"]}
    ).get()
    data["ticket"] = answer["ticket"]


def cancel_ticket(comm, data):
    comm.call("Kitchen", "/tickets/{ticket}/cancel", {"ticket": data["ticket"]}).get()


def authorize_card(comm, data):
    comm.call("Accounting", "/authorize", {"consumer": data["consumer"], "total": data["total"]}).get()


def reverse_authorization(comm, data):
    comm.call("Accounting", "/reverse", {"consumer": data["consumer"]}).get()


def confirm_ticket(comm, data):
    comm.call("Kitchen", "/tickets/{ticket}/confirm", {"ticket": data["ticket"]}).get()


def set_state(comm, order, state):
    change = {"filter": {"_id": order}, "update": {"$set": {"state": state}}}
    return comm.query("orders", "set_state", "orders", {"$update": change}).get()


CREATE_ORDER = (
    Saga()
    .step("verify", verify_consumer)
    .step("ticket", create_ticket, cancel_ticket)
    .step("authorize", authorize_card, reverse_authorization)
    .step("confirm", confirm_ticket)
)


class Orders(MS):
    pool_size = 8

    @EP("/orders", method="POST", name="create")
    def create(self, comm: Communication) -> None:
        data = {"items": [], "total": 0, **comm.params}
        order = comm.request_id
        comm.query("orders", "insert", "orders", {"$insert": [{"_id": order, "state": "pending"}]}).get()
        try:
            CREATE_ORDER.run(comm, data)
        except SagaFailed as failure:
            log.warning("order %s: %s", order, failure)
            set_state(comm, order, "rejected")
            comm.respond({"order": order, "state": "rejected"}, status=409)
            return
        set_state(comm, order, "approved")
        comm.respond({"order": order, "state": "approved"}, status=201)

    @EP("/orders/inline", method="POST")
    def create_inline(self, comm: Communication, consumer: str, restaurant: str, total: float) -> None:
        """The same without a framework."""
        try:
            comm.call("Consumers", "/verify", {"consumer": consumer, "total": total}).get()
        except CallError as error:
            comm.respond({"error": "consumer not verified", "reason": str(error)}, status=409)
            return
        ticket = comm.call("Kitchen", "/tickets", {"restaurant": restaurant, "items": []}).get()["ticket"]
        try:
            comm.call("Accounting", "/authorize", {"consumer": consumer, "total": total}).get()
        except CommunicationError:
            comm.call("Kitchen", "/tickets/{ticket}/cancel", {"ticket": ticket}).get()
            comm.respond({"error": "card not authorized"}, status=402)
            return
        try:
            comm.call("Kitchen", "/tickets/{ticket}/confirm", {"ticket": ticket}).get()
        except CommunicationError:
            undo = [
                comm.call("Accounting", "/reverse", {"consumer": consumer}),
                comm.call("Kitchen", "/tickets/{ticket}/cancel", {"ticket": ticket}),
            ]
            for future in undo:
                future.get(check=False)
            comm.respond({"error": "kitchen"}, status=503)
            return
        comm.respond({"ticket": ticket}, status=201)

    @EP("/orders/stacked", method="POST")
    def create_stacked(self, comm: Communication, consumer: str, restaurant: str, total: float) -> None:
        """The same with a stack of what is to be undone."""
        undo = []
        try:
            comm.call("Consumers", "/verify", {"consumer": consumer, "total": total}).get()
            ticket = comm.call("Kitchen", "/tickets", {"restaurant": restaurant, "items": []}).get()["ticket"]
            undo.append(lambda: comm.call("Kitchen", "/tickets/{ticket}/cancel", {"ticket": ticket}).get())
            comm.call("Accounting", "/authorize", {"consumer": consumer, "total": total}).get()
            undo.append(lambda: comm.call("Accounting", "/reverse", {"consumer": consumer}).get())
            comm.call("Kitchen", "/tickets/{ticket}/confirm", {"ticket": ticket}).get()
        except CommunicationError as error:
            while undo:
                undo.pop()()
            comm.respond({"error": str(error)}, status=409)
        else:
            comm.respond({"ticket": ticket}, status=201)

    @EP("/orders/{order}/cancel", method="POST")
    def cancel(self, comm: Communication, order: str) -> None:
        rows = comm.query("orders", "by_id", "orders", {"_id": order}).get()
        if not rows:
            comm.respond({"error": "no such order"}, status=404)
            return
        state = rows[0]["state"]
        if state == "approved":
            set_state(comm, order, "cancel_pending")
            try:
                comm.call("Kitchen", "/tickets/{ticket}/cancel", {"ticket": rows[0]["ticket"]}).get()
                comm.call("Accounting", "/reverse", {"consumer": rows[0]["consumer"]}).get()
            except CommunicationError:
                set_state(comm, order, "approved")
                comm.respond({"error": "cannot be cancelled now"}, status=409)
                return
            set_state(comm, order, "cancelled")
            comm.respond({"state": "cancelled"})
        elif state in ("cancelled", "rejected"):
            comm.respond({"state": state})
        else:
            comm.respond({"error": f"order is {state}"}, status=409)

    @EP("/orders/{order}", method="GET", name="order")
    def order(self, comm: Communication, order: str) -> None:
        rows = comm.query("orders", "by_id", "orders", {"_id": order}).get()
        comm.respond(rows[0] if rows else {"error": "no such order"}, status=200 if rows else 404)


class Consumers(MS):
    @EP("/verify")
    def verify(self, comm: Communication, consumer: str, total: float) -> None:
        rows = comm.query("consumers", "by_id", "consumers", {"_id": consumer}).get()
        if not rows:
            comm.respond({"error": "no such consumer"}, status=404)
        elif rows[0].get("limit", 1000) < total:
            comm.respond({"error": "over the limit"}, status=409)
        else:
            comm.respond({})


class Kitchen(MS):
    def _move(self, comm, ticket, allowed, state):
        rows = comm.query("kitchen", "by_id", "tickets", {"_id": ticket}).get()
        if not rows or rows[0]["state"] not in allowed:
            comm.respond({"error": "not possible"}, status=409)
            return
        change = {"filter": {"_id": ticket}, "update": {"$set": {"state": state}}}
        comm.query("kitchen", "move", "tickets", {"$update": change}).get()
        comm.respond({"state": state})

    @EP("/tickets", method="POST")
    def create(self, comm: Communication, restaurant: str = "") -> None:
        ticket = {"_id": comm.request_id, "restaurant": restaurant, "state": "created"}
        comm.query("kitchen", "insert", "tickets", {"$insert": [ticket]}).get()
        comm.respond({"ticket": ticket["_id"]}, status=201)

    @EP("/tickets/{ticket}/confirm")
    def confirm(self, comm: Communication, ticket: str) -> None:
        self._move(comm, ticket, {"created"}, "confirmed")

    @EP("/tickets/{ticket}/cancel")
    def cancel(self, comm: Communication, ticket: str) -> None:
        self._move(comm, ticket, {"created", "confirmed"}, "cancelled")


class Accounting(MS):
    @EP("/authorize")
    def authorize(self, comm: Communication, consumer: str, total: float) -> None:
        if total > 500:
            comm.respond({"error": "declined"}, status=402)
            return
        row = {"consumer": consumer, "total": total}
        comm.query("accounting", "authorize", "authorizations", {"$insert": [row]}).get()
        comm.respond({})

    @EP("/reverse")
    def reverse(self, comm: Communication, consumer: str) -> None:
        comm.query(
            "accounting", "reverse", "authorizations", {"$delete": {"filter": {"consumer": consumer}}}
        ).get()
        comm.respond({})
