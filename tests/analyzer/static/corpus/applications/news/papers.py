from mup import EP, MS, Communication


class Papers(MS):
    runtime = "async"

    @EP("/headlines", method="GET")
    async def headlines(self, comm: Communication, topic: str = "") -> None:
        comm.respond(await comm.query("papers", "headlines", "articles", {"topic": topic}))


class Wire(MS):
    runtime = "async"

    @EP("/latest", method="GET")
    async def latest(self, comm: Communication, topic: str = "") -> None:
        comm.respond(await comm.query("wire", "latest", "reports", {"topic": topic}))


class Archive(MS):
    runtime = "async"

    @EP("/search", method="GET")
    async def search(self, comm: Communication, topic: str = "") -> None:
        comm.respond(await comm.query("archive", "search", "articles", {"topic": topic}))
