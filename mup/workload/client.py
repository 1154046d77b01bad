"""What does one user of the system do, over and over?"""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal, Protocol

from mup.errors import UsageError

if TYPE_CHECKING:
    from mup.communication import Communication

__all__ = ["Client", "ThinkTime"]

ThinkTime = Literal["constant", "exponential"]


class Thinker(Protocol):
    """What the load driver gives a client to think with."""

    def think(self, seconds: float, distribution: ThinkTime) -> Awaitable[None]: ...


class Client:
    """A user: runs `scenario` again and again until the load driver stops it.

    The load driver creates one object per concurrent user. All of them share one process and one event loop,
    so a scenario must not block: no ``time.sleep``, no computing.

    Attributes:
        index: Number of this user, from 0.
        random: Random numbers of this user alone; the same for the same seed and index.
    """

    index: int = 0
    random: random.Random
    _thinker: Thinker | None = None

    async def setup(self, comm: Communication) -> None:
        """Prepare this user once, before its first cycle; not measured."""

    async def scenario(self, comm: Communication) -> None:
        """Do one cycle: calls and think times."""
        raise NotImplementedError

    async def teardown(self, comm: Communication) -> None:
        """Clean up once, after the last cycle; not measured."""

    def think(self, seconds: float, distribution: ThinkTime = "constant") -> Awaitable[None]:
        """Pause as a user does between two actions; not part of the response time.

        Args:
            seconds: Mean of the pause; >= 0.
            distribution: ``constant`` or ``exponential``.

        Raises:
            UsageError: A negative time, an unknown distribution, or a client no load driver runs.
        """
        if self._thinker is None:
            raise UsageError(
                f"{type(self).__name__}.think: no load driver runs this client",
                hint="start it with 'mup load'",
            )
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"think time must be finite and >= 0 seconds, got {seconds!r}")
        if distribution not in ("constant", "exponential"):
            raise UsageError(f"think time must be 'constant' or 'exponential', got {distribution!r}")
        return self._thinker.think(seconds, distribution)
