"""Endpoints and services that functions make."""

from mup import EP, MS, Communication


def reader(collection: str):
    """Return an endpoint that reads one document."""

    @EP(f"/{collection}/{{id}}", method="GET")
    def read(self, comm: Communication, id: str) -> None:
        rows = comm.query("app", f"read_{collection}", collection, {"_id": id}).get()
        comm.respond(rows)

    return read


def forward(path: str, service: str):
    """Return an endpoint that hands on what it gets."""

    def endpoint(self, comm: Communication) -> None:
        comm.respond(comm.call(service, path, dict(comm.params)).get())

    endpoint.__name__ = path.strip("/")
    return EP(path)(endpoint)


class Directory(MS):
    read_people = reader("people")
    read_rooms = reader("rooms")

    @EP("/all", method="GET")
    def all(self, comm: Communication) -> None:
        people = comm.query("app", "people", "people", {})
        rooms = comm.query("app", "rooms", "rooms", {})
        comm.respond({"people": people.get(), "rooms": rooms.get()})


class Proxy(MS):
    convert = forward("/convert", "Worker")
    resize = forward("/resize", "Worker")


class Worker(MS):
    @EP("/convert")
    def convert(self, comm: Communication) -> None:
        comm.respond({"converted": True})

    @EP("/resize")
    def resize(self, comm: Communication) -> None:
        comm.query("jobs", "note", "jobs", {"$insert": [{}]})
        comm.respond({"resized": True})


def shard(number: int) -> type[MS]:
    class Shard(MS):
        @EP("/get")
        def get(self, comm: Communication) -> None:
            comm.respond(comm.query(f"shard{number}", "get", "items", {}).get())

    Shard.__name__ = Shard.__qualname__ = f"Shard{number}"
    return Shard


Shard0 = shard(0)
