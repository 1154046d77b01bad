"""Load of a plan's requests on the stations, and their time, given what they meet there.

A *load* has a row per kind of quantity and a column per station, the last one for delays. Requests get to few
of the stations of a big system, so a load only has the columns of those. The estimate adds up loads in every
round; what stays the same from round to round is in ``Rows`` and ``Columns``. Times are moments
(``entry_times``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from simulator.analytic.approximations.convolution import FloatArray
from simulator.analytic.entries.entry_times import Overlap
from simulator.analytic.layers import Plan

__all__ = ["Columns", "Load", "Places", "Rows"]

Places = npt.NDArray[np.intp]


class Columns:
    """The stations that a load can be on.

    Attributes:
        of: Their numbers, ascending; the last is that of delays, which is always there.
        where: The place of each of them; also of -1, for delays.

    Args:
        stations: Their numbers.
        delays: The number that stands for delays: that of stations there are.
    """

    __slots__ = ("of", "where")

    def __init__(self, stations: Iterable[int], delays: int) -> None:
        numbers = sorted({*stations, delays})
        self.of: Places = np.array(numbers, dtype=np.intp)
        self.where = {at: place for place, at in enumerate(numbers)}
        self.where[-1] = len(numbers) - 1

    def __len__(self) -> int:
        return len(self.of)

    def places(self, others: Columns) -> Places:
        """Return where other columns, which must be among these, are."""
        return np.searchsorted(self.of, others.of)


class Load:
    """What some requests ask of the stations: a number for each row at each of the columns, 0 elsewhere."""

    __slots__ = ("columns", "values")

    def __init__(self, columns: Columns, values: FloatArray) -> None:
        self.columns = columns
        self.values = values

    def __getitem__(self, key: tuple[int, int]) -> float:
        row, at = key
        place = self.columns.where.get(at)
        return 0.0 if place is None else float(self.values[row, place])

    def stations(self, row: int) -> list[int]:
        """Return the stations at which a row is more than 0, in order."""
        found: list[int] = self.columns.of[:-1][self.values[row, :-1] > 0].tolist()
        return found

    def total(self, row: int, *, delays: bool = True) -> float:
        """Return the sum of a row, with or without that of delays."""
        return float(self.values[row].sum() if delays else self.values[row, :-1].sum())


class Rows:
    """What does not change about the steps of a plan; one row per step.

    Attributes:
        of: The row of a step, by its name; in the order of the rows.
        visits: Executions per request.
        work: Visits to the processor, seconds of service, sum of their squares, and once more the seconds,
            per request; shape (steps, OWN_ROWS).
        delay: Seconds per request.
        calls: Row, plan and number per request of every synchronous call.
        releasing: Plan and number per request of every releasing call.
        held, awaited: 1 for what the thread, the caller waits for, else 0.
    """

    def __init__(self, plan: Plan) -> None:
        graph, steps = plan.graph, plan.steps
        self.of = {step.name: row for row, step in enumerate(steps)}
        self.visits = np.array([graph.visits[s.name] for s in steps])
        slices, mean = np.array([s.slices for s in steps]), np.array([s.demand[0] for s in steps])
        variance = np.array([s.demand[1] for s in steps])
        per_visit = slices, slices * mean, slices * (mean**2 + variance), slices * mean
        self.work = np.stack(per_visit, axis=1) * self.visits[:, None]
        self.delay = self.visits * np.array([s.delay[0] for s in steps])
        self.calls: list[tuple[int, int, float]] = []
        self.releasing: list[tuple[int, float]] = []
        for row, step in enumerate(steps):
            for call in step.calls:
                times = graph.visits[step.name] * call.count[0]
                if call.kind == "synchronous":
                    self.calls.append((row, call.target, times))
                elif call.kind == "releasing":
                    self.releasing.append((call.target, times))
        self.held = np.array([float(s.name in graph.held) for s in steps])
        self.awaited = np.array([float(s.name in graph.awaited) for s in steps])
        self._pairs: list[tuple[frozenset[str], frozenset[str]]] = []
        self._sides: tuple[FloatArray, FloatArray] = np.zeros((0, 0)), np.zeros((0, 0))

    def sides(self, overlaps: Sequence[Overlap]) -> tuple[FloatArray, FloatArray]:
        """Return which steps either branch of every overlap consists of: 1 or 0, shape (overlaps, steps)."""
        pairs = [(o.one, o.other) for o in overlaps]
        if pairs != self._pairs:
            self._pairs = pairs
            names = list(self.of)
            first, second = (
                np.array([[float(name in pair[side]) for name in names] for pair in pairs]) for side in (0, 1)
            )
            self._sides = first, second
        return self._sides
