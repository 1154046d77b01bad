"""One user of the system, repeating a scenario."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import Literal, Protocol, get_args

from mup.communication import DEFAULT_TIMEOUT, Communication
from mup.errors import UsageError

__all__ = ["Client", "ThinkTime"]

ThinkTime = Literal["constant", "exponential", "recorded"]
_DISTRIBUTIONS = get_args(ThinkTime)


class Thinker(Protocol):
    """What the load driver gives a client to think with."""

    def think(self, seconds: float | str, distribution: ThinkTime) -> Awaitable[None]: ...


class Client:
    """A user: runs `scenario` again and again until the load driver stops it.

    Under a closed load there is one object per concurrent user; under an open load one run of `scenario` per
    arrival. All of them share one process and one event loop, so a scenario must not block: no
    ``time.sleep``, no computing.

    Attributes:
        index: Number of this user, from 0; under an open load, number of the arrival.
        random: Random numbers of this user (or arrival) alone; the same for the same seed and index.
        patience: Seconds the user waits for an answer; set it in the class. A call may name another timeout.
    """

    index: int = 0
    patience: float = DEFAULT_TIMEOUT
    random: random.Random
    _thinker: Thinker | None = None

    async def setup(self, comm: Communication) -> None:
        """Prepare this user once, before its first cycle; not measured."""

    async def scenario(self, comm: Communication) -> None:
        """Do one cycle: calls and think times."""
        raise NotImplementedError

    async def teardown(self, comm: Communication) -> None:
        """Clean up once, after the last cycle; not measured."""

    def think(self, seconds: float | str, distribution: ThinkTime = "constant") -> Awaitable[None]:
        """Pause as a user does between two actions; not part of the response time.

        Args:
            seconds: Mean of the pause; >= 0. For ``recorded``: a file of pauses in seconds, one per line or
                a JSON list, relative to the project's source folder; each pause is one of them, drawn at
                random.
            distribution: ``constant``, ``exponential`` or ``recorded``.

        Raises:
            UsageError: A negative time, an unknown distribution, a file that cannot be used, or a client no
                load driver runs.
        """
        if self._thinker is None:
            raise UsageError(
                f"{type(self).__name__}.think: no load driver runs this client",
                hint="start it with 'mup load'",
            )
        if distribution not in _DISTRIBUTIONS:
            raise UsageError(
                f"think time must be 'constant', 'exponential' or 'recorded', got {distribution!r}"
            )
        if distribution == "recorded":
            if not isinstance(seconds, str):
                raise UsageError(f"recorded think times need the name of a file, got {seconds!r}")
        elif not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
            raise UsageError(f"think time must be finite and >= 0 seconds, got {seconds!r}")
        return self._thinker.think(seconds, distribution)
