"""The gateway: every route has the same shape, and errors are handled in one place."""

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError


class BaseError(Exception):
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class OrderService:
    @classmethod
    def create(cls, comm, data):
        return cls._call(comm, "create", data)

    @classmethod
    def order(cls, comm, data):
        return cls._call(comm, "order", data)

    @staticmethod
    def _call(comm, name, data):
        return comm.call("Orders", name, data).get()


def handle_exception(comm, error, message):
    match error:
        case BaseError(code=code, status=status):
            comm.respond({"code": code, "message": str(error)}, status=status)
        case CallError(status=404):
            comm.respond({"code": "not_found", "message": message}, status=404)
        case CommunicationError():
            comm.respond({"code": "unavailable", "message": message}, status=503)
        case _:
            comm.respond({"code": "unknown", "message": message}, status=500)


class Gateway(MS):
    runtime = "thread"
    pool_size = 20

    def _user(self, comm, *roles):
        role = comm.headers.get("x-role")
        if role is None:
            raise BaseError("not_authenticated", "no token", 401)
        if role not in roles:
            raise BaseError("forbidden", "wrong role", 403)
        return comm.headers.get("x-user", "")

    @EP("/order/create", method="POST")
    def create(self, comm: Communication) -> None:
        try:
            user = self._user(comm, "customer")
            if not comm.params.get("items"):
                raise BaseError("no_items", "an order has items", 422)
            answer = OrderService.create(comm, {"consumer": user, **comm.params})
            if answer.get("state") != "approved":
                raise BaseError("rejected", "the order was rejected", 409)
            comm.respond({"status": "success"})
        except Exception as error:
            handle_exception(comm, error, "creating the order failed")

    @EP("/order/history", method="GET")
    def history(self, comm: Communication, order: str = "") -> None:
        try:
            self._user(comm, "customer", "admin")
            comm.respond(OrderService.order(comm, {"order": order}))
        except Exception as error:
            handle_exception(comm, error, "getting the history failed")

    @EP("/restaurant/tickets/{ticket}", method="POST")
    def ticket(self, comm: Communication, ticket: str, action: str) -> None:
        try:
            self._user(comm, "restaurant")
            if action == "confirm":
                answer = comm.call("Kitchen", "/tickets/{ticket}/confirm", {"ticket": ticket}).get()
            elif action == "reject":
                answer = comm.call("Kitchen", "/tickets/{ticket}/cancel", {"ticket": ticket}).get()
            else:
                raise BaseError("no_action", f"cannot {action}")
        except Exception as error:
            handle_exception(comm, error, "updating the ticket failed")
        else:
            comm.respond(answer)
