"""What every resource has is added by a decorator of the class."""

from mup import EP, MS, Communication


def healthy(cls):
    """Add a probe."""

    @EP("/health", method="GET")
    def health(self, comm: Communication) -> None:
        comm.query("state", "ping", "state", {}).get()
        comm.respond("ok")

    cls.health = health
    return cls


def crud(collection: str):
    """Add reading and deleting."""

    def decorate(cls):
        def read(self, comm):
            rows = comm.query("app", f"read_{collection}", collection, {"_id": comm.params["id"]}).get()
            comm.respond(rows[0] if rows else None, status=200 if rows else 404)

        def delete(self, comm):
            comm.query("app", f"delete_{collection}", collection, {"$delete": {"filter": {}}}).get()
            comm.respond(None, status=204)

        for name, function, method in (("read", read, "GET"), ("delete", delete, "DELETE")):
            setattr(cls, name, EP(f"/{collection}/{{id}}", name=name, method=method)(function))
        return cls

    return decorate


@healthy
class Cars(MS):
    @EP("/cars", method="GET")
    def cars(self, comm: Communication) -> None:
        comm.respond(comm.query("app", "all", "cars", {}).get())


@crud("bikes")
class Bikes(MS):
    @EP("/bikes", method="GET", name="list")
    def bikes(self, comm: Communication) -> None:
        comm.respond(comm.query("app", "all", "bikes", {}).get())


class Audited:
    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)

        def audit(self, comm):
            comm.respond(comm.query("audit", "of_service", "audit", {"service": cls.__name__}).get())

        cls.audit = EP("/audit")(audit)


class Trucks(Audited, MS):
    @EP("/trucks", method="GET")
    def trucks(self, comm: Communication) -> None:
        comm.respond(comm.query("app", "all", "trucks", {}).get())
