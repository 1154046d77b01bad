def all_orders(self, comm):
    comm.respond(comm.query("orders", "all", "orders", {}).get())


def order_by_id(self, comm, id: str):
    rows = comm.query("orders", "one", "orders", {"_id": id}).get()
    if rows:
        comm.respond(rows[0])
    else:
        comm.respond(None, status=404)


def statistics(self, comm):
    orders = comm.query("orders", "all", "orders", {}).get()
    returns = comm.query("orders", "returns", "returns", {}).get()
    comm.respond({"orders": len(orders), "returns": len(returns)})
