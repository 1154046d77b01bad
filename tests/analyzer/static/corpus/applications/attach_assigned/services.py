"""Functions of other modules become endpoints."""

from handlers import all_orders, order_by_id, statistics
from mup import EP, MS, Communication


class Orders(MS):
    all = EP("/orders", method="GET")(all_orders)
    one = EP("/orders/{id}", method="GET")(order_by_id)

    @EP("/orders", method="POST", name="create")
    def create(self, comm: Communication) -> None:
        comm.query("orders", "insert", "orders", {"$insert": [dict(comm.params)]}).get()
        comm.respond(None, status=201)


Orders.statistics = EP("/statistics")(statistics)
