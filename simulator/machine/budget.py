"""Budget of a study: limits of events and of wall time.

A *study* is everything one answer takes: one simulation, or all that are behind a saturation, a grid of
scenarios or an autoscaler. Events are the same on every machine, so results that end there do not depend on
how fast it is; wall time is the safety net.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from mup.errors import LimitError, UsageError

__all__ = ["MAX_SECONDS", "Budget", "Reached", "limit_error"]

MAX_SECONDS: Final = 600.0
"""Wall time of one study unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that ended a study.

    Attributes:
        study: What was cut short.
        limit: ``events`` or ``seconds`` (of wall time).
        value: The limit.
    """

    study: str
    limit: str
    value: float

    def __str__(self) -> str:
        what = f"{self.value:.0f} events" if self.limit == "events" else f"{self.value:g} s"
        return f"{self.study} ended at its limit of {what}"

    def to_json(self) -> dict[str, Any]:
        """Return ``{"study", "limit", "value"}``."""
        return {"study": self.study, "limit": self.limit, "value": self.value}


def limit_error(reached: Reached, *, where: str = "") -> LimitError:
    """Return what to raise where a limit was reached before there was anything to say."""
    return LimitError(
        f"{reached}, before there was anything to say",
        reached=reached,
        where=where,
        hint="allow more (--max-seconds, or max_events and max_seconds), or simplify the model",
    )


class Budget:
    """What a study may still use; several threads may use it up together.

    Args:
        study: What it is for, as a subject of a sentence.
        events: Timed steps of all its simulations together; None = any number.
        seconds: Wall time from now on.
        outer: The budget of the study this one is part of; what is used here is used there.

    Raises:
        UsageError: A limit is not > 0.
    """

    def __init__(
        self,
        study: str,
        *,
        events: float | None = None,
        seconds: float = MAX_SECONDS,
        outer: Budget | None = None,
    ) -> None:
        if not seconds > 0:
            raise UsageError(f"the limit of wall time must be a number of seconds > 0, got {seconds!r}")
        self.study = study
        self.events = events
        self.seconds = seconds
        self._outer = outer
        self._used = 0
        self._lock = threading.Lock()
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Events that are left, of this study and of the one it is part of."""
        own = math.inf if self.events is None else self.events - self._used
        return own if self._outer is None else min(own, self._outer.left)

    def reached(self) -> Reached | None:
        """Return the limit that has been reached, of this study or of the one it is part of."""
        if self.events is not None and self._used >= self.events:
            return Reached(self.study, "events", self.events)
        if time.monotonic() >= self._until:
            return Reached(self.study, "seconds", self.seconds)
        return None if self._outer is None else self._outer.reached()

    def use(self, events: int) -> None:
        """Take note of so many more events.

        Raises:
            LimitError: A limit has been reached.
        """
        self.note(events)
        reached = self.reached()
        if reached is not None:
            raise limit_error(reached)

    def note(self, events: int) -> None:
        """Take note of so many more events, of something that has ended anyway."""
        with self._lock:
            self._used += events
        if self._outer is not None:
            self._outer.note(events)
