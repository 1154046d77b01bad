"""Resources share a base class, mixins and hooks."""

from abc import abstractmethod
from typing import ClassVar

from mup import EP, MS, Communication
from mup.errors import QueryError


class _Resource(MS):
    collection: ClassVar[str]
    database: ClassVar[str] = "app"

    def find(self, comm, **where):
        return comm.query(self.database, f"find_{self.collection}", self.collection, where).get()

    def check(self, comm) -> bool:
        """Return whether the request may go on; a hook."""
        return True

    @EP("/list", method="GET")
    def list(self, comm: Communication) -> None:
        if not self.check(comm):
            comm.respond(None, status=403)
            return
        comm.respond(self.render(self.find(comm)))

    @EP("/one/{id}", method="GET")
    def one(self, comm: Communication, id: str) -> None:
        rows = self.find(comm, _id=id)
        if not rows:
            comm.respond(None, status=404)
            return
        comm.respond(self.render(rows)[0])

    @abstractmethod
    def render(self, rows): ...


class Probes:
    @EP("/live", method="GET")
    def live(self, comm: Communication) -> None:
        comm.respond("ok")

    @EP("/deep", method="GET")
    def deep(self, comm: Communication) -> None:
        try:
            comm.query("app", "ping", "ping", {}).get(timeout=1)
        except QueryError:
            comm.respond("down", status=503)
        else:
            comm.respond("ok")


class Teams(Probes, _Resource):
    collection = "teams"

    def render(self, rows):
        return [{"name": r.get("name")} for r in rows]


class Players(_Resource):
    collection = "players"

    def check(self, comm) -> bool:
        return comm.call("Teams", "/list", method="GET").get(check=False).ok

    def render(self, rows):
        return rows

    @EP("/of-team/{team}", method="GET")
    def of_team(self, comm: Communication, team: str) -> None:
        comm.call("Teams", "/one/{id}", {"id": team}).get()
        comm.respond(self.render(self.find(comm, team=team)))
