"""Test beds: their systems in two halves, and how thoroughly they are measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accuracy.fan_out import FAN_PREFIX
from accuracy.wide import PREFIX

__all__ = ["BEDS", "HALVES", "Bed"]

HALVES: Final = {"development": "train", "held-out": "test"}
"""What the halves are called on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """One test bed.

    Attributes:
        train, test: Seeds of the half models may be chosen on, and of the half that is reported.
        results: Where its results go.
        prefix: What the names of its systems begin with; "" = the letter of their runtime.
        examples: The example belongs to the reported half.
        repeats: Valid ones per point, at least.
        width: Relative half-width of the mean response time from which on a point is done.
        observed: Seconds of windows after which a point is done in any case.
        void: So many void repeats per point are thrown away.
        window, longest_window: Limits of a repeat's seconds.
        precision: Of predictions, as a relative half-width.
        budget: Seconds of all repeats of a system, after which only points without any are measured.
    """

    train: str
    test: str
    results: Path
    prefix: str = ""
    examples: bool = False
    repeats: int = 3
    width: float = 0.03
    observed: float = 60.0
    void: int = 6
    window: float = 6.0
    longest_window: float = 20.0
    precision: float = 0.005
    budget: float = float("inf")


BEDS: Final = {
    # 113 has an embedded database, which none of the ten before it has.
    "narrow": Bed(
        train="100-109,113", test="200-219", results=Path("benchmarks/results/accuracy"), examples=True
    ),
    # Up to ten points: two repeats of twelve seconds each, with their starts, take six minutes. Where the
    # machine's speed changes from second to second, two of six differ by 8 % when nothing else does.
    "wide": Bed(
        train="300-311",
        test="400-411",
        results=Path("benchmarks/results/wide"),
        prefix=PREFIX,
        repeats=2,
        observed=23.0,
        void=3,
        window=12.0,
        longest_window=14.0,
        precision=0.01,
        budget=360.0,
    ),
    "fan-out": Bed(
        train="500-502",
        test="600-602",
        results=Path("benchmarks/results/fan-out"),
        prefix=FAN_PREFIX,
        repeats=2,
        observed=23.0,
        void=3,
        window=12.0,
        longest_window=14.0,
        precision=0.01,
        budget=240.0,
    ),
}
