"""One class per HTTP method."""

from mup import EP, MS, Communication


class GET(EP):
    def __init__(self, path: str, *, name: str = "") -> None:
        super().__init__(path, name=name, method="GET")


class POST(EP):
    def __init__(self, path: str, *, name: str = "") -> None:
        super().__init__(path, name=name, method="POST")


class Versioned(EP):
    """Below a version, and counted."""

    served = 0

    def __init__(self, path: str, version: int = 1, **options) -> None:
        super().__init__(f"/v{version}{path}", **options)

    def __call__(self, method):
        Versioned.served += 1
        return super().__call__(method)


class Notes(MS):
    @GET("/notes", name="list")
    def list(self, comm: Communication) -> None:
        comm.respond(comm.query("notes", "all", "notes", {}).get())

    @POST("/notes", name="add")
    def add(self, comm: Communication) -> None:
        comm.query("notes", "insert", "notes", {"$insert": [dict(comm.params)]}).get()
        comm.respond(None, status=204)

    @Versioned("/tags", method="GET")
    def tags(self, comm: Communication) -> None:
        comm.respond(comm.query("notes", "tags", "tags", {}).get())

    @Versioned("/tags", version=2, method="GET", name="tags2")
    def tags2(self, comm: Communication) -> None:
        rows = comm.query("notes", "tags", "tags", {}).get()
        notes = comm.query("notes", "all", "notes", {}).get()
        comm.respond({"tags": rows, "notes": len(notes)})
