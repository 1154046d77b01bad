"""Readers: think, look up a word, think, look up the next."""

from __future__ import annotations

from words import WORDS

from mup import Client, Communication
from mup.errors import CallError

UNKNOWN_SHARE = 0.05


class Reader(Client):
    """One reader; now and then it asks for a word the dictionary does not have."""

    async def scenario(self, comm: Communication) -> None:
        """Think, then ask."""
        await self.think(0.1, "exponential")
        known = self.random.random() >= UNKNOWN_SHARE
        word = self.random.choice(WORDS) if known else "qwerty"
        try:
            await comm.call("A", "/epA/", {"word": word})
        except CallError as error:
            # "No such word" is an answer; anything else is a failure of the system.
            if error.status != 404:
                raise
