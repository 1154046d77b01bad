"""Probe of this machine's current speed.

The speed of a machine changes by itself: virtual machines share caches, power and
sometimes cores with strangers, and the processor time of the same work changes by 5 to 25 % for
seconds. A probe before and one after every measurement tell how fast the machine was meanwhile, and
whether the measurement is worth anything.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from mup.errors import LogError

__all__ = ["JUMP_LIMIT", "WALL_LIMIT", "Bracket", "ReferenceWork", "Speed", "probe"]

JUMP_LIMIT = 0.04
"""A measurement whose two probes differ by more is void."""

WALL_LIMIT = 1.05
"""Wall time per processor time above which another process was using the core."""

MAX_CORES = 4
"""A probe takes cores one after the other; those of one machine are alike."""
UNITS = 140
"""Some 0.25 s on a core of today: long against its timers, short against a round."""
WARM_UP = 10
"""Units before, which fill caches and raise the clock."""
STEPS_PER_UNIT = 2000
"""Statements; a unit takes some 2 ms."""
OBJECTS = 2000
"""So many strings and counters do not fit the first-level cache, as the data of services do not."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What one probe found.

    Attributes:
        cores: Units of work per second of processor time, one per probed core. A unit is a fixed amount of
            pure Python work (about a millisecond on a processor of 2024), so a faster interpreter counts
            as a faster machine.
        wall_ratio: Wall time per processor time while that core was probed; 1 = undisturbed.
        pinned: Whether the probe was bound to each core in turn. Where the system refuses that, there is
            one figure, of whatever cores it ran on.
    """

    cores: tuple[float, ...]
    wall_ratio: tuple[float, ...] = ()
    pinned: bool = True

    @property
    def mean(self) -> float:
        """Units per second and core, on average over the probed cores."""
        return sum(self.cores) / len(self.cores)

    @property
    def disturbed(self) -> bool:
        """Whether another process used one of the cores during the probe."""
        return any(ratio > WALL_LIMIT for ratio in self.wall_ratio)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"cores": list(self.cores), "wall_ratio": list(self.wall_ratio), "pinned": self.pinned}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Speed:
        """Return what `to_json` wrote.

        Raises:
            LogError: It is something else.
        """
        try:
            cores = tuple(float(value) for value in data["cores"])
            ratios = tuple(float(value) for value in data.get("wall_ratio", ()))
            pinned = data.get("pinned", True)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LogError(f"not the result of a speed probe: {data!r}", where="speed") from error
        if not cores or not all(0 < value < float("inf") for value in cores) or not isinstance(pinned, bool):
            raise LogError(f"not the result of a speed probe: {data!r}", where="speed")
        return cls(cores, ratios, pinned)


@dataclass(frozen=True, slots=True)
class Bracket:
    """The probes before and after something was measured."""

    before: Speed
    after: Speed

    @property
    def jump(self) -> float:
        """The largest relative change of a core's speed: ``abs(after / before - 1)``."""
        if self.before.pinned and self.after.pinned and len(self.before.cores) == len(self.after.cores):
            pairs = zip(self.before.cores, self.after.cores, strict=True)
            return max(abs(after / before - 1) for before, after in pairs)
        return abs(self.after.mean / self.before.mean - 1)

    @property
    def speed(self) -> float:
        """Units per second and core, the mean of both probes."""
        return (self.before.mean + self.after.mean) / 2

    @property
    def steady(self) -> bool:
        """Whether the two differ by no more than `JUMP_LIMIT`."""
        return self.jump <= JUMP_LIMIT


def probe() -> Speed:
    """Measure the speed of up to four cores of this process, one after the other; 0.15 s each.

    Runs in the calling thread, which is bound to each core meanwhile and may go where it could before
    afterwards. Other threads of this process should be idle.
    """
    collecting = gc.isenabled()
    # A collection's work depends on everything else this process holds.
    gc.disable()
    try:
        found = [_timed() for _ in _pinned_cores()]
        pinned = bool(found)
        if not found:
            found = [_timed()]
    finally:
        if collecting:
            gc.enable()
    return Speed(tuple(speed for speed, _ in found), tuple(ratio for _, ratio in found), pinned)


def _pinned_cores() -> Iterator[int]:
    """Bind the thread to one core after the other; yield none where that is refused."""
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    with _affinity_restored(allowed):
        for core in sorted(allowed)[:MAX_CORES]:
            try:
                os.sched_setaffinity(0, {core})
            except OSError:
                return
            yield core


@contextmanager
def _affinity_restored(allowed: set[int]) -> Iterator[None]:
    try:
        yield
    finally:
        # A system that refuses this has refused every change before.
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)


def _timed() -> tuple[float, float]:
    """Return units per second of processor time, and wall time per processor time."""
    work = ReferenceWork()
    work.run(WARM_UP)
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    work.run(UNITS)
    cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
    return UNITS * 1e9 / cpu, wall / cpu


class _Item:
    """A small object, as services have thousands of."""

    __slots__ = ("key", "tags", "value")

    def __init__(self, key: str, value: int) -> None:
        self.key = key
        self.value = value
        self.tags: list[int] = []

    def touch(self, amount: int) -> int:
        self.value = (self.value * 31 + amount) & 0xFFFF
        return self.value


class ReferenceWork:
    """The reference work: what service code does all day, with integers, dicts, attributes and strings.

    The order in which it visits its 2000 objects is scattered, and its 0.5 MB do not fit the innermost
    cache, for that is what a crowded machine takes away first.
    """

    def __init__(self) -> None:
        self._keys = [f"item{(i * 769) % OBJECTS}" for i in range(OBJECTS)]
        self._items = {key: _Item(key, index) for index, key in enumerate(sorted(self._keys))}
        self._at = 0

    def run(self, units: int) -> int:
        """Do so many units; the result keeps anything from being left out."""
        return sum(self.steps(STEPS_PER_UNIT) for _ in range(units))

    @staticmethod
    def steps_of(units: int) -> int:
        """Return how many steps so many units are."""
        return units * STEPS_PER_UNIT

    def steps(self, count: int) -> int:
        """Do so many steps, of about half a microsecond each."""
        keys, items, total = self._keys, self._items, 0
        for step in range(count):
            self._at = (self._at + 1) % OBJECTS
            item = items[keys[self._at]]
            total += item.touch(step)
            if total & 1:
                item.tags.append(total & 0xFF)
                if len(item.tags) > 8:
                    item.tags.clear()
            else:
                document = {"key": item.key, "value": f"{item.value}:{step}"}
                total += sum(len(text) for text in document.values())
        return total
