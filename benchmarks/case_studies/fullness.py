"""Saturation of the machine: a family need not go on to more users beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from simulator.studies.autoscale import Step

__all__ = ["until_full"]

FULL: Final = 0.95


def until_full(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps until one behind the first in which a processor, a service or a database is full.

    Work that keeps cores busy fills a machine, or the one worker of a service, long before there are 512
    users. From then on twice as many of them wait twice as long: one such step shows it, each further one
    would take twice as long to be run.
    """
    filled = ""
    for step in steps:
        if filled:
            yield replace(step, action=f"stop: {filled} is full")
            return
        shares = {f"processor {name}": share.mean for name, share in step.seen.processors.items()}
        shares |= {name: share.mean for name, share in step.seen.utilization.items()}
        fullest = max(shares, key=lambda name: shares[name])
        if shares[fullest] >= FULL:
            filled = fullest
        yield step
