"""Moments as they are typed: seconds since 1970, dates, or how long ago."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

from mup.errors import UsageError

__all__ = ["moment"]

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGO: Final = re.compile(r"-?(\d+(?:\.\d+)?)([smhdw])")


def moment(text: str, now: float, option: str) -> float:
    """Return a moment in seconds since 1970.

    Args:
        text: A number of seconds since 1970, an ISO date (UTC if it says nothing else), ``now``, or how long
            ago, such as ``2h``.
        now: Seconds since 1970.
        option: For the message.

    Raises:
        UsageError: It is none of these.
    """
    if text == "now":
        return now
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now - float(ago[1]) * UNITS[ago[2]]
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = datetime.fromisoformat(text)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            seconds = math.nan
    if not math.isfinite(seconds):
        raise UsageError(
            f"{option}: must be a date, seconds since 1970, or how long ago, got {text!r}",
            hint=f"for example {option} 2026-01-31T10:00:00Z, or {option} 2h",
        )
    return seconds
