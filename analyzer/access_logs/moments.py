"""Columns of texts -> moments and durations in seconds, NaN where a text is none.

Dates of a log repeat from line to line, so each second is parsed once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from analyzer.access_logs.formats import UNITS

__all__ = ["FloatArray", "Moments", "numbers"]

FloatArray = npt.NDArray[np.float64]
Text = bytes | str

MOST_KEPT = 200_000
"""Texts whose seconds are remembered; a log has some thousand lines per second at most."""
_TAIL = re.compile(r"(?:[.,](\d+))? ?(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d))?")
_HEADS = {"iso": (19, ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")), "clf": (20, ("%d/%b/%Y:%H:%M:%S",))}


def numbers(column: Sequence[Text]) -> FloatArray:
    """Return a column of numbers; NaN where a text is none. Shape (I,)."""
    try:
        return np.fromiter(map(float, column), np.float64, len(column))
    except ValueError:
        return np.array([_number(text) for text in column], dtype=np.float64)


def _number(text: Text) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


class Moments:
    """Reads moments of one form.

    Args:
        form: A unit of numbers since 1970, ``iso`` or ``clf``.

    Attributes:
        fractions: Whether some moment so far had more than whole seconds.
    """

    def __init__(self, form: str) -> None:
        self.form = form
        self.fractions = form in ("ms", "us", "ns")
        self._heads: dict[str, float] = {}
        self._tails: dict[str, float] = {}

    def seconds(self, column: Sequence[Text]) -> FloatArray:
        """Return seconds since 1970, shape (I,)."""
        if self.form in UNITS:
            found = numbers(column) * UNITS[self.form]
            if not self.fractions:
                known = found[np.isfinite(found)]
                self.fractions = bool(np.any(known != np.floor(known)))
            return found
        texts = [text.decode("latin-1") if isinstance(text, bytes) else text for text in column]
        return np.fromiter(map(self._date, texts), np.float64, len(texts))

    def _date(self, text: str) -> float:
        length = _HEADS[self.form][0]
        head, tail = text[:length], text[length:]
        whole = self._heads.get(head)
        if whole is None:
            whole = _remembered(self._heads, head, self._whole(head))
        more = self._tails.get(tail)
        if more is None:
            more = _remembered(self._tails, tail, self._rest(tail))
        return whole + more

    def _whole(self, head: str) -> float:
        for form in _HEADS[self.form][1]:
            try:
                return datetime.strptime(head, form).replace(tzinfo=UTC).timestamp()
            except ValueError:
                continue
        return math.nan

    def _rest(self, tail: str) -> float:
        """Return what is to be added for a fraction and a zone."""
        found = _TAIL.fullmatch(tail)
        if found is None:
            return math.nan
        fraction, _, sign, hours, minutes = found.groups()
        self.fractions = self.fractions or fraction is not None
        offset = 0 if sign is None else int(f"{sign}1") * (int(hours) * 3600 + int(minutes) * 60)
        return float(f"0.{fraction}") - offset if fraction else -float(offset)


def _remembered(known: dict[str, float], text: str, value: float) -> float:
    if len(known) >= MOST_KEPT:
        known.clear()
    known[text] = value
    return value
