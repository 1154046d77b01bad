"""The requests of a log as arrays, and what was left out; nothing is judged yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.access_logs.moments import FloatArray

__all__ = ["Codes", "Labels", "Requests", "Skipped"]

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Skipped:
    """Lines that tell of no request.

    Attributes:
        counts: How many, by reason.
        example: The first one: ``line 12: '...'``; "" if there is none.
    """

    counts: Mapping[str, int]
    example: str

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Labels:
    """A column of names as numbers: ``names[codes[i]]`` is that of request i; shape (I,)."""

    names: tuple[str, ...]
    codes: Codes


@dataclass(frozen=True)
class Requests:
    """I requests in the order of the file.

    Attributes:
        where: The file.
        layout: The format it had.
        begin, end: Of each request, seconds since ``origin``; shape (I,).
        origin: Seconds since 1970.
        classes: What was asked for.
        labels: ``station``, ``trace`` and ``client`` of each request, as far as the format has them.
        fractions: Whether moments have more than whole seconds.
        lines: Of the file, empty ones left out.
        skipped: Lines that are no requests.
        at_end: The log was written as requests ended, so those that had not are missing.
    """

    where: str
    layout: str
    begin: FloatArray
    end: FloatArray
    origin: float
    classes: Labels
    labels: Mapping[str, Labels]
    fractions: bool
    lines: int
    skipped: Skipped
    at_end: bool = True
