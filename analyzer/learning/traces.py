"""Traces: mean queue lengths over time, from several starting points.

A *trace* follows the stations of a system from a known state at time 0 in steps of ``dt``. It is the mean of
several independent executions from the same state; other traces begin in other states. Shapes are written
with R (traces), H (samples per trace, the one at time 0 included) and M (stations).

Sources: Garbi's thesis, sections 3.1.3 and 4.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analyzer.learning.units import odd_column, odd_traces, too_coarse
from mup.errors import UsageError

__all__ = ["FEWEST_TRACES", "FloatArray", "Start", "Traces", "require_closed"]

FloatArray = npt.NDArray[np.float64]

FEWEST_TRACES = 4
"""Two to learn from, two to be judged by."""
CONSERVED = 1e-3
"""How far the number of clients of one trace may move, as a part of it: logs are cut off and rounded."""
CONSTANT = 1e-9
"""Queue lengths that move by less never move."""
ROUNDING = 1e-9
"""Below zero by less is a rounding error."""
SHOWN = 3
"""Places named in a message; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where requests were put at time 0, more finely than the columns of traces tell.

    Attributes:
        names: Of columns of a layered model, different; K.
        x: Requests in each at time 0; shape (R, K).
    """

    names: tuple[str, ...]
    x: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Mean queue lengths of the stations of a system; checked when made.

    Attributes:
        x: Mean numbers of clients at each station, in service or waiting; shape (R, H, M).
        dt: Seconds between samples.
        names: Of the stations, unique; M.
        servers: How many clients each station serves at once, ``inf`` for a pure delay; shape (M,). None if
            the model knows.
        busy: Integral of the mean number of busy servers, ``mean(min(X, servers))``, from time 0 to each
            sample, in server-seconds; shape (R, H, M). None if it was not measured.
        runs: Executions averaged in each trace, shape (R,), or one number for all of them. None if that is
            not known; the test of the model then takes as many as make traces as rough as these are.
        start: Where requests were put at time 0, if the columns alone do not tell; only layered models need
            it.

    Raises:
        UsageError: Listing all that is wrong with the data, each with the place.
    """

    x: FloatArray
    dt: float
    names: tuple[str, ...]
    servers: FloatArray | None = None
    busy: FloatArray | None = None
    runs: FloatArray | None = None
    start: Start | None = None

    def __post_init__(self) -> None:
        for field in ("x", "servers", "busy", "runs"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, np.asarray(getattr(self, field), dtype=np.float64))
        if self.runs is not None and self.runs.size == 1 and self.x.ndim == 3:
            object.__setattr__(self, "runs", np.full(len(self.x), float(self.runs.reshape(-1)[0])))
        _refuse(list(_problems(self)))

    @property
    def populations(self) -> FloatArray:
        """Clients of each trace; shape (R,)."""
        total: FloatArray = self.x[:, 0].sum(axis=1)
        return total

    @property
    def starts(self) -> FloatArray:
        """Queue lengths at time 0; shape (R, M)."""
        first: FloatArray = self.x[:, 0]
        return first

    @property
    def seconds(self) -> float:
        """Length of a trace."""
        return float((self.x.shape[1] - 1) * self.dt)

    def select(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Traces:
        """Return some of the traces, in this order."""
        index = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            x=self.x[index],
            busy=None if self.busy is None else self.busy[index],
            runs=None if self.runs is None else self.runs[index],
            start=None if self.start is None else replace(self.start, x=self.start.x[index]),
        )

    def split(self, seed: int, share: float = 0.5) -> tuple[Traces, Traces]:
        """Return the traces to learn from and those held back, drawn at random.

        Args:
            seed: Same seed, same halves.
            share: To learn from; at least one trace is on each side.
        """
        many = len(self.x)
        order = np.random.default_rng(seed).permutation(many)
        cut = min(many - 1, max(1, round(share * many)))
        return self.select(np.sort(order[:cut])), self.select(np.sort(order[cut:]))


def require_closed(traces: Traces) -> None:
    """Check what learning a closed network needs beyond sound numbers.

    Raises:
        UsageError: There are too few traces, all of them are constant, some trace has no clients, or
            clients appear or vanish in one.
    """
    _refuse(list(_closed_problems(traces)))


def _refuse(problems: Sequence[str]) -> None:
    if len(problems) == 1:
        raise UsageError(problems[0])
    if problems:
        raise UsageError(f"{len(problems)} problems\n" + "\n".join(f"  {p}" for p in problems))


def _problems(traces: Traces) -> Iterator[str]:
    x, names = traces.x, traces.names
    if not (isinstance(traces.dt, int | float) and 0 < traces.dt < math.inf):
        yield f"dt: must be a number of seconds > 0, got {traces.dt!r}"
    if x.ndim != 3:
        yield f"x: must have the shape (traces, samples, stations), got {x.shape}"
        return
    many, samples, stations = x.shape
    if many < 1 or samples < 2 or stations < 1:
        yield (
            f"x: needs at least 1 trace of 2 samples of 1 station, got {many} x {samples} x {stations}"
            " (traces x samples x stations)"
        )
        return
    if traces.servers is not None:
        yield from _server_problems(traces.servers, stations)
        if traces.servers.shape != (stations,):
            return
    if traces.runs is not None:
        yield from _run_problems(traces.runs, many)
    if traces.start is not None:
        yield from _start_problems(traces.start, many)
    if len(names) != stations:
        yield f"names: {len(names)} names for {stations} stations of x"
    elif len(set(names)) < len(names) or not all(names):
        yield f"names: must be different and not empty, got {list(names)}"
    else:
        problems = list(_number_problems("x", x, names))
        coarse = None if problems else too_coarse(x, traces.runs if _whole_runs(traces) else None)
        yield from problems if coarse is None else [coarse]
        if traces.busy is not None:
            yield from _busy_problems(traces, traces.busy)


def _number_problems(field: str, values: FloatArray, names: Sequence[str]) -> Iterator[str]:
    for wrong, what in (
        (~np.isfinite(values), "must be finite"),
        (values < -ROUNDING, "must not be negative"),
    ):
        if wrong.any():
            yield f"{field}: {what}: {_places(wrong, values, names)}"


def _places(wrong: npt.NDArray[np.bool_], values: FloatArray, names: Sequence[str]) -> str:
    found = np.argwhere(wrong)
    listed = [
        f"{values[r, h, m]:g} (trace {r}, sample {h}, station {names[m]!r})" for r, h, m in found[:SHOWN]
    ]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(listed) + more


def _busy_problems(traces: Traces, busy: FloatArray) -> Iterator[str]:
    if busy.shape != traces.x.shape:
        yield f"busy: must have the shape of x, {traces.x.shape}, got {busy.shape}"
        return
    sound = True
    for problem in _number_problems("busy", busy, traces.names):
        sound = False
        yield problem
    if not sound:
        return
    steps = np.diff(busy, axis=1)
    if (steps < -ROUNDING).any():
        yield (
            "busy: is an integral from time 0 and cannot fall, but does: "
            + _places(steps < -ROUNDING, steps, traces.names)
        )
    if (np.abs(busy[:, 0]) > ROUNDING).any():
        yield "busy: is an integral from time 0, so the first sample of every trace must be 0"
    if traces.servers is not None and (traces.servers > 0).all() and 0 < traces.dt < math.inf:
        over = steps / traces.servers > traces.dt * (1 + CONSERVED) + ROUNDING
        if over.any():
            yield (
                "busy: more server-seconds within one dt than there are servers: "
                + _places(over, steps, traces.names)
            )


def _start_problems(start: Start, many: int) -> Iterator[str]:
    if start.x.shape != (many, len(start.names)):
        yield (
            f"start: must have the shape ({many}, {len(start.names)}), a row per trace and a column per name"
            f" of start_names, got {start.x.shape}"
        )
    elif len(set(start.names)) < len(start.names) or not all(start.names):
        yield f"start_names: must be different and not empty, got {list(start.names)}"
    elif not (np.isfinite(start.x) & (start.x >= 0)).all():
        yield "start: must be numbers of requests >= 0"


def _whole_runs(traces: Traces) -> bool:
    return traces.runs is not None and not list(_run_problems(traces.runs, len(traces.x)))


def _run_problems(runs: FloatArray, many: int) -> Iterator[str]:
    if runs.shape != (many,):
        yield f"runs: must be one number, or {many}, one per trace, got the shape {runs.shape}"
    elif not all(1 <= n < math.inf and n == int(n) for n in runs.tolist()):
        yield f"runs: must be whole numbers of executions >= 1, got {sorted(set(runs.tolist()))[:SHOWN]}"


def _server_problems(servers: FloatArray, stations: int) -> Iterator[str]:
    if servers.shape != (stations,):
        yield f"servers: must be {stations} numbers, one per station, got the shape {servers.shape}"
    elif not all(s == math.inf or (s >= 1 and s == int(s)) for s in servers.tolist()):
        yield f"servers: must be whole numbers >= 1, or inf, got {servers.tolist()}"


def _closed_problems(traces: Traces) -> Iterator[str]:
    many, _, stations = traces.x.shape
    if stations < 2:
        yield "x: one station alone exchanges no clients; there is nothing to learn"
    if many < FEWEST_TRACES:
        yield (
            f"x: {many} traces are too few: at least {FEWEST_TRACES} from different starting points are"
            " needed (half of them are held back to judge the result), some dozens give good results"
        )
    present = traces.x.sum(axis=2)
    if (odd := odd_traces(traces.x)) is not None:
        yield odd
    empty = np.flatnonzero(present[:, 0] < CONSTANT)
    if len(empty):
        yield f"x: no clients in trace {_listed(empty)}"
    moved = np.abs(present - present[:, :1]).max(axis=1)
    lost = np.flatnonzero(moved > CONSERVED * np.maximum(present[:, 0], 1.0))
    if len(lost):
        worst = int(np.argmax(moved))
        low, high = present[worst].min(), present[worst].max()
        yield (
            "x: clients appear or vanish: the queue lengths of all stations must have the same sum throughout"
            f" a trace, but do not in trace {_listed(lost)} (from {low:g} to {high:g} in trace {worst}); "
            + (
                odd_column(traces.x, traces.names, CONSERVED)
                or "is a station missing, such as the clients that think?"
            )
        )
    if (np.ptp(traces.x, axis=1) < CONSTANT).all():
        yield (
            "x: nothing moves in any trace; rates and routing show only while queue lengths change: begin"
            " from states far from the mean"
        )


def _listed(rows: npt.NDArray[np.int64]) -> str:
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(str(r) for r in rows[:SHOWN]) + more
