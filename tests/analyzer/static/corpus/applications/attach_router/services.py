from mup import EP, MS, Communication
from routing import Router

router = Router("/api")


class Books(MS):
    @router.get("/books/{id}")
    def book(self, comm: Communication, id: str) -> None:
        rows = comm.query("books", "one", "books", {"_id": id}).get()
        if not rows:
            comm.respond(None, status=404)
            return
        author = comm.call("Authors", "/authors/{id}", {"id": rows[0].get("author", "1")}).get()
        comm.respond({**rows[0], "author": author})

    @router.post("/books")
    def add(self, comm: Communication) -> None:
        comm.query("books", "insert", "books", {"$insert": [dict(comm.params)]}).get()
        comm.respond(None, status=201)

    @router.delete("/books/{id}/copies")
    def remove(self, comm: Communication, id: str) -> None:
        comm.query("books", "delete", "books", {"$delete": {"filter": {"_id": id}}}).get()
        comm.respond(None, status=204)


class Authors(MS):
    @EP("/authors/{id}")
    def author(self, comm: Communication, id: str) -> None:
        comm.respond(comm.query("books", "author", "authors", {"_id": id}).get())
