"""Closed loads on real services that begin in a given state, for the real cases of the thesis.

Runs are short and many. They are done in *rounds*, each with freshly started services and some runs from
every state; a round that is done is kept in a file, and not done again. A run during which somebody else used
the machine, or nothing ran for a moment, is *void*: it is repeated at the end of its round, and left out if
it is void every time.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accuracy.quiet import add_options as add_quiet_options
from accuracy.quiet import quiet_of

from analyzer.learning.traces import Traces
from mup.errors import MupError
from mup.project import Project, load_project
from mup.runtime.launcher import Deployment
from mup.workload.cpu import STOLEN_LIMIT, HostCpu, process_cpu_seconds
from mup.workload.measure import FOREIGN_LIMIT, TICKS_SECONDS

__all__ = [
    "Driver", "Request", "Round", "Run", "TimeIsUpError", "add_options", "mean_traces", "pids_of",
    "prepared", "project_in", "round_of", "rounds",
]  # fmt: skip

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "pictures"
STALL = 0.25
"""Seconds by which a client may wake up late; many who begin at once keep the driver busy for 0.1 s."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class TimeIsUpError(Exception):
    """Something is not measured yet; the same command continues."""


class Request(NamedTuple):
    """What a client asks for."""

    path: str
    params: dict[str, str]


@dataclass(slots=True)
class Run:
    """One execution.

    Attributes:
        plan: Number of what the clients began with.
        began: Nanoseconds of the monotonic clock.
        responses: When each answer came, seconds from the beginning, and how long it took.
        late: By how many seconds a client woke up late at most.
        void: Why it says nothing, or "".
    """

    plan: int
    began: int
    responses: list[tuple[float, float]] = field(default_factory=list)
    late: float = 0.0
    void: str = ""


class _Watch:
    """Was the machine ours? Looks at the CPU clocks of the host and of our processes around a run."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = (os.getpid(), *pids)
        self._host = HostCpu()
        self._host.start()
        self._before = self._seconds()

    def verdict(self, late: float) -> str:
        """Return why the run since the beginning is void, or ""."""
        self._host.stop()
        capacity = self._host.capacity_seconds
        foreign = (self._host.busy_seconds - self._seconds() + self._before) / capacity
        if foreign > FOREIGN_LIMIT + TICKS_SECONDS / capacity:
            return f"other programs used {foreign:.1%} of the machine"
        if self._host.stolen > STOLEN_LIMIT + TICKS_SECONDS / capacity:
            return f"the hypervisor withheld {self._host.stolen:.1%} of the machine"
        if late > STALL:
            return f"nothing ran for {late:.2f} s"
        return ""

    def _seconds(self) -> float:
        total = 0.0
        for pid in self._pids:
            with suppress(ProcessLookupError):
                total += process_cpu_seconds(pid)
        return total


@dataclass(frozen=True, slots=True)
class Driver:
    """Clients who think for random times and ask.

    Attributes:
        url: Of the service that is asked.
        think: Mean think time, seconds.
        choose: Draws what is asked for.
        draw: Random numbers.
        pids: Processes of the services: what they use of the machine disturbs nobody. None = no run is void.
    """

    url: str
    think: float
    choose: Callable[[random.Random], Request]
    draw: random.Random
    pids: Sequence[int] | None = None

    def runs(
        self, plans: Sequence[Sequence[Request | None]], seconds: float, *, retries: int = 0
    ) -> list[Run]:
        """Execute runs one after another; each ends when all clients are at home.

        Args:
            plans: Per run, what each client does first: ask for something at once, or think (None).
            seconds: After which nobody asks any more.
            retries: How often a void run is repeated.

        Returns:
            All runs, void ones included, in the order in which they were executed.

        Raises:
            RuntimeError: A request failed.
        """
        return asyncio.run(self._all(plans, seconds, retries))

    async def _all(
        self, plans: Sequence[Sequence[Request | None]], seconds: float, retries: int
    ) -> list[Run]:
        connector = aiohttp.TCPConnector(limit=0)
        found: list[Run] = []
        todo = list(range(len(plans)))
        async with aiohttp.ClientSession(connector=connector) as session:
            for _ in range(retries + 1):
                done = [await self._run(session, number, plans[number], seconds) for number in todo]
                found += done
                todo = [run.plan for run in done if run.void]
        return found

    async def _run(
        self, session: aiohttp.ClientSession, number: int, plan: Sequence[Request | None], seconds: float
    ) -> Run:
        watch = None if self.pids is None else _Watch(self.pids)
        run = Run(number, time.monotonic_ns())
        await asyncio.gather(*(self._client(session, run, seconds, first) for first in plan))
        run.void = "" if watch is None else watch.verdict(run.late)
        return run

    async def _client(
        self, session: aiohttp.ClientSession, run: Run, seconds: float, first: Request | None
    ) -> None:
        if first is not None:
            await self._ask(session, run, first)
        while True:
            planned = time.monotonic() + self.draw.expovariate(1 / self.think)
            if planned >= run.began * 1e-9 + seconds:
                return
            await asyncio.sleep(planned - time.monotonic())
            run.late = max(run.late, time.monotonic() - planned)
            await self._ask(session, run, self.choose(self.draw))

    async def _ask(self, session: aiohttp.ClientSession, run: Run, request: Request) -> None:
        began = time.monotonic()
        async with session.post(self.url + request.path, json=request.params) as answer:
            text = await answer.text()
        if answer.status != 200:
            raise RuntimeError(f"{self.url}{request.path}: {answer.status} {text}")
        now = time.monotonic()
        run.responses.append((now - run.began * 1e-9, now - began))


def pids_of(deployment: Deployment, options: argparse.Namespace) -> list[int] | None:
    """Return the processes of a deployment; None if it does not matter who uses the machine."""
    return None if options.quick else [process.pid for process in deployment.processes()]


def project_in(folder: Path, env: dict[str, str]) -> Project:
    """Return the project of a folder on free ports, its services with more environment."""
    project = load_project(folder).with_any_ports()
    return replace(project, services=tuple(replace(s, env={**s.env, **env}) for s in project.services))


# Rounds.


@dataclass(frozen=True, slots=True)
class Round:
    """Some runs, each by itself.

    Attributes:
        traces: One per run that was not void.
        states: In which state each began; shape (R,).
        void: Runs that were void.
    """

    traces: Traces
    states: IntArray
    void: int


def round_of(runs: Sequence[Run], traces: Callable[[Sequence[Run]], Traces], states: Sequence[int]) -> Round:
    """Return what a round found.

    Args:
        runs: All of them.
        traces: How runs become traces, one each, in the same order.
        states: In which state each plan begins.

    Raises:
        TimeIsUpError: Every run was void.
    """
    valid = [run for run in runs if not run.void]
    if not valid:
        raise TimeIsUpError(f"the machine is too busy to measure on: {runs[-1].void}")
    began_in = np.array([states[run.plan] for run in valid], dtype=np.int64)
    return Round(traces(valid), began_in, len(runs) - len(valid))


def rounds(
    name: str, count: int, measure: Callable[[int], Round], options: argparse.Namespace
) -> list[Round]:
    """Return so many rounds; those that are stored are read, the others measured and stored.

    Args:
        name: Of the files.
        count: How many.
        measure: Measures the round of a number.
        options: See ``add_options``.

    Raises:
        TimeIsUpError: The time is over, or measurements are missing and none are to be made.
    """
    folder: Path | None = None if options.quick else options.results
    found = []
    for number in range(count):
        file = None if folder is None else folder / f"{name}-{number:02}.npz"
        if file is not None and file.exists():
            found.append(_read(file))
            continue
        if options.report:
            break
        if time.monotonic() > options.last:
            raise TimeIsUpError(f"{name}: {number} of {count} rounds are done")
        began = time.monotonic()
        found.append(_measured(name, number, measure, options))
        if file is not None:
            _write(file, found[-1])
        void = f", {found[-1].void} runs void" if found[-1].void else ""
        print(f"{name}: round {number + 1} of {count}, {time.monotonic() - began:.0f} s{void}", flush=True)
    if not found:
        raise TimeIsUpError(f"{name}: nothing is measured yet")
    return found


def _measured(name: str, number: int, measure: Callable[[int], Round], options: argparse.Namespace) -> Round:
    """Measure a round; on a machine that is so busy that services do not even start, try again.

    Raises:
        TimeIsUpError: It failed every time.
    """
    for attempt in range(options.retries + 1):
        try:
            with options.quiet.alone():
                return measure(number)
        except (MupError, RuntimeError, aiohttp.ClientError) as error:
            if attempt == options.retries:
                raise TimeIsUpError(f"{name}: {error}") from error
            print(f"{name}: round {number + 1} failed: {error}", flush=True)
    raise TimeIsUpError(f"{name}: no attempts allowed")


def mean_traces(found: Sequence[Round]) -> Traces:
    """Return the mean of the runs from each state, in the order of the states, without those never seen."""
    states = np.concatenate([one.states for one in found])
    x = np.concatenate([one.traces.x for one in found])
    groups = [states == state for state in np.unique(states)]
    seen = [one.traces.busy for one in found if one.traces.busy is not None]
    busy = np.concatenate(seen) if len(seen) == len(found) else None
    return replace(
        found[0].traces,
        x=np.array([x[group].mean(axis=0) for group in groups]),
        busy=None if busy is None else np.array([busy[group].mean(axis=0) for group in groups]),
    )


def _write(file: Path, found: Round) -> None:
    traces = found.traces
    arrays: dict[str, Any] = {
        "x": traces.x.astype(np.float32), "dt": traces.dt, "names": np.array(traces.names),
        "states": found.states, "void": found.void,
    }  # fmt: skip
    if traces.servers is not None and traces.busy is not None:
        arrays |= {"servers": traces.servers, "busy": traces.busy}
    file.parent.mkdir(parents=True, exist_ok=True)
    # A measurement that is stopped here leaves no half file behind.
    partial = file.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(file)


def _read(file: Path) -> Round:
    with np.load(file) as found:
        traces = Traces(
            x=found["x"].astype(float),
            dt=float(found["dt"]),
            names=tuple(str(name) for name in found["names"]),
            servers=found.get("servers"),
            busy=found.get("busy"),
        )
        return Round(traces, found["states"].astype(np.int64), int(found["void"]))


def add_options(parser: argparse.ArgumentParser, results: Path) -> None:
    """Add what both real cases can be told; ``quiet`` and ``last`` are set by ``prepared``."""
    parser.add_argument("--results", type=Path, default=results, help="folder of what was measured")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no round after so many")
    parser.add_argument("--retries", type=int, default=2, help="how often a void run is repeated")
    parser.add_argument("--report", action="store_true", help="measure nothing, report what there is")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder to write pictures into")
    add_quiet_options(parser)


def prepared(options: argparse.Namespace) -> argparse.Namespace:
    """Add what follows from the options: who else may use the machine, and until when rounds begin."""
    options.quiet = quiet_of(options)
    options.last = time.monotonic() + 60 * options.minutes
    return options
