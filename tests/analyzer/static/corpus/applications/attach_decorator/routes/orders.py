from main import Orders, route


@route(Orders, "/orders")
def orders(self, comm):
    comm.respond(comm.query("orders", "of_user", "orders", {"user": comm.params.get("user")}).get())
