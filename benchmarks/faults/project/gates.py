"""Services that call others on other machines, and one that is called."""

from __future__ import annotations

from mup import EP, MS, Communication

CALL_SECONDS = 2.0


class Gate(MS):
    """Calls and blocks."""

    pool_size = 4

    @EP("/stock/")
    def stock(self, comm: Communication) -> None:
        """Ask a service that is on two machines."""
        comm.respond(comm.call("Stock", "/take/", {"order": "abc"}, timeout=CALL_SECONDS).get())

    @EP("/notes/")
    def notes(self, comm: Communication) -> None:
        """Ask a service that is on one machine."""
        comm.respond(comm.call("Notes", "/note/", timeout=CALL_SECONDS).get())


class Door(MS):
    """Calls and awaits."""

    runtime = "async"
    pool_size = 4

    @EP("/stock/")
    async def stock(self, comm: Communication) -> None:
        """Ask a service that is on two machines."""
        comm.respond(await comm.call("Stock", "/take/", {"order": "abc"}, timeout=CALL_SECONDS))

    @EP("/notes/")
    async def notes(self, comm: Communication) -> None:
        """Ask a service that is on one machine."""
        comm.respond(await comm.call("Notes", "/note/", timeout=CALL_SECONDS))


class Notes(MS):
    """Answers."""

    @EP("/note/")
    def note(self, comm: Communication) -> None:
        """Answer."""
        comm.respond({"note": "here"})
