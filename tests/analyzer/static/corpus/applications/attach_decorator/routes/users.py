from main import Users, route


@route(Users, "/users/{id}", method="GET")
def user(self, comm):
    orders = comm.call("Orders", "/orders", {"user": comm.params["id"]}).get()
    comm.respond({"orders": len(orders)})


@route(Users, "/users/{id}", method="DELETE")
def remove(self, comm):
    if comm.call("Orders", "/orders", {"user": comm.params["id"]}).get():
        comm.respond({"error": "there are orders"}, status=409)
        return
    comm.query("users", "remove", "users", {"$delete": {"filter": {"_id": comm.params["id"]}}}).get()
    comm.respond(None, status=204)
