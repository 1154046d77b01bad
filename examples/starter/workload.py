"""Workload: a visitor thinks, then asks to be greeted, over and over."""

from __future__ import annotations

from mup import Client, Communication


class Visitor(Client):
    """A visitor who likes to be greeted."""

    async def scenario(self, comm: Communication) -> None:
        """Do it once."""
        await self.think(0.1, "exponential")
        language = self.random.choice(["de", "en", "it"])
        await comm.call("Greeting", "/hello/{name}", {"name": "Ada", "language": language})
