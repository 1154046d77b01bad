"""Services whose endpoints are functions of modules, decorated as in Flask."""

from mup import EP, MS


class Users(MS):
    runtime = "thread"


class Orders(MS):
    runtime = "thread"


def route(service, path, method=""):
    def attach(function):
        setattr(service, function.__name__, EP(path, method=method)(function))
        return function

    return attach


import routes


@route(Users, "/health")
@route(Orders, "/health")
def health(self, comm):
    comm.respond({"ok": True})
