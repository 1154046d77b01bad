"""Closed loads on real services that begin in a given state, for the real cases of the thesis.

Runs are short and many. They are done in *rounds*, each with freshly started services; a round that is done
is kept in a file, and not done again. A run during which other programs used the machine, or nothing ran for
a moment, is *void*: it is repeated at the end of its round, and left out if it is void every time.

Rounds of one kind are a *series*. Series take turns, so that whenever the time is over there is something of
every kind, and a table can be printed. What is learned from comes first, all of it: predictions are on disk
before the first round of what is predicted, and are never made again.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
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
from mup.project import load_project
from mup.runtime.deployment.launcher import Deployment
from mup.workload.cpu import HostCpu, disturbance, process_cpu_seconds

__all__ = [
    "Arrays", "Driver", "Request", "Round", "Run", "Series", "Systems", "VoidError", "add_options",
    "mean_traces", "measured", "missing", "order_of", "predicted_before", "prepared", "round_of", "started",
    "valid",
]  # fmt: skip

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "pictures"
STALL = 0.25
"""Seconds by which a client may wake up late; many who begin at once keep the driver busy for 0.1 s."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


Arrays = Mapping[str, npt.NDArray[Any]]
"""What is kept of a round; ``void`` is the number of runs that were void, ``begun`` seconds since 1970."""


class VoidError(Exception):
    """A round says nothing: all of its runs were void, or services did not even start."""


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
        system: On which of the systems.
        responses: When each answer came, seconds from the beginning, and how long it took.
        late: By how many seconds a client woke up late at most.
        void: Why it says nothing, or "".
    """

    plan: int
    began: int
    system: int = 0
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
        reason = disturbance(self._host, self._seconds() - self._before)
        if reason:
            return reason
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
        urls: Of the service that is asked, in each of the systems. They are alike and take turns: while
            clients of one go home, which takes as long again as a short run, the next run is on another.
        think: Mean think time, seconds.
        choose: Draws what is asked for.
        draw: Random numbers.
        pids: Processes of the services: their use of the machine is no disturbance. None = no run is void.
    """

    urls: Sequence[str]
    think: float
    choose: Callable[[random.Random], Request]
    draw: random.Random
    pids: Sequence[int] | None = None

    def runs(
        self,
        plans: Sequence[Sequence[Request | None]],
        seconds: float,
        *,
        retries: int = 0,
        connect: Sequence[Request] = (),
    ) -> list[Run]:
        """Execute runs one after another.

        A run begins when all clients of the last one on the same system are at home, and no request is
        under way on another.

        Args:
            plans: Per run, what each client does first: ask for something at once, or think (None).
            seconds: After which no request begins any more.
            retries: How often a void run is repeated.
            connect: Asked for at once, twice, of every system before the first run, so that no run has to
                open connections.

        Returns:
            All runs, void ones included, in the order in which they were executed.

        Raises:
            RuntimeError: A request failed.
        """
        return asyncio.run(self._all(plans, seconds, retries, connect))

    async def _all(
        self,
        plans: Sequence[Sequence[Request | None]],
        seconds: float,
        retries: int,
        connect: Sequence[Request],
    ) -> list[Run]:
        connector = aiohttp.TCPConnector(limit=0)
        found: list[Run] = []
        todo = list(range(len(plans)))
        async with aiohttp.ClientSession(connector=connector) as session:
            for system in range(len(self.urls) if connect else 0):
                for _ in range(2):
                    await self._run(session, system, -1, connect, 0.0)
            for _ in range(retries + 1):
                done = await self._in_turns(session, {number: plans[number] for number in todo}, seconds)
                found += done
                todo = [run.plan for run in done if run.void]
        return found

    async def _in_turns(
        self, session: aiohttp.ClientSession, plans: Mapping[int, Sequence[Request | None]], seconds: float
    ) -> list[Run]:
        going: deque[asyncio.Task[Run]] = deque()
        done: list[Run] = []
        for place, (number, plan) in enumerate(plans.items()):
            if len(going) == len(self.urls):
                done.append(await going.popleft())
            run = self._run(session, place % len(self.urls), number, plan, seconds)
            going.append(asyncio.create_task(run))
            await asyncio.wait(going, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        return done + [await run for run in going]

    async def _run(
        self,
        session: aiohttp.ClientSession,
        system: int,
        number: int,
        plan: Sequence[Request | None],
        seconds: float,
    ) -> Run:
        watch = None if self.pids is None else _Watch(self.pids)
        run = Run(number, time.monotonic_ns(), system)
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
        url = self.urls[run.system] + request.path
        async with session.post(url, json=request.params) as answer:
            text = await answer.text()
        if answer.status != 200:
            raise RuntimeError(f"{url}: {answer.status} {text}")
        now = time.monotonic()
        run.responses.append((now - run.began * 1e-9, now - began))


@dataclass(frozen=True, slots=True)
class Systems:
    """Running systems that are alike.

    Attributes:
        urls: Of the service that clients ask, in each of them.
        pids: Processes of all services; None if it does not matter who uses the machine.
    """

    urls: Sequence[str]
    pids: Sequence[int] | None


@contextmanager
def started(
    folder: Path,
    front: str,
    logs: Sequence[Path | None],
    options: argparse.Namespace,
    *,
    env: Mapping[str, str] | None = None,
    pools: Mapping[str, int] | None = None,
) -> Iterator[Systems]:
    """Run the project of a folder, once per folder of logs, on free ports.

    Args:
        folder: Of the project.
        front: The service that clients ask.
        logs: Where to write event logs; None = nowhere.
        options: Of the command line.
        env: More environment of the services.
        pools: Workers by service, where they are to be others.
    """
    project = load_project(folder).with_any_ports()
    project = replace(
        project, services=tuple(replace(s, env={**s.env, **(env or {})}) for s in project.services)
    )
    with ExitStack() as stack:
        all_of = [
            stack.enter_context(Deployment(project, log_dir=log, pools=dict(pools or {}))) for log in logs
        ]
        urls = [next(r.url for r in one.replicas() if r.service == front) for one in all_of]
        pids = [process.pid for one in all_of for process in one.processes()]
        yield Systems(urls, None if options.quick else pids)


# Rounds.


@dataclass(frozen=True, slots=True)
class Round:
    """Queue lengths of some runs, each by itself.

    Attributes:
        traces: One per run that was not void.
        states: In which state each began; shape (R,).
        void: Runs that were void.
    """

    traces: Traces
    states: IntArray
    void: int

    def arrays(self) -> Arrays:
        """Return what is kept."""
        traces = self.traces
        found: dict[str, Any] = {
            "x": traces.x.astype(np.float32), "dt": traces.dt, "names": np.array(traces.names),
            "states": self.states, "void": self.void,
        }  # fmt: skip
        if traces.servers is not None and traces.busy is not None:
            found |= {"servers": traces.servers, "busy": traces.busy}
        return {name: np.asarray(value) for name, value in found.items()}

    @classmethod
    def of_arrays(cls, found: Arrays) -> Round:
        """Return what was kept."""
        traces = Traces(
            x=found["x"].astype(float),
            dt=float(found["dt"]),
            names=tuple(str(name) for name in found["names"]),
            servers=found.get("servers"),
            busy=found.get("busy"),
        )
        return cls(traces, found["states"].astype(np.int64), int(found["void"]))


def valid(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that were not void.

    Raises:
        VoidError: Every run was.
    """
    found = [run for run in runs if not run.void]
    if not found:
        raise VoidError(f"the machine is too busy to measure on: {runs[-1].void}")
    return found


def round_of(runs: Sequence[Run], traces: Callable[[Sequence[Run]], Traces], states: Sequence[int]) -> Round:
    """Return what a round found.

    Args:
        runs: All of them.
        traces: How runs become traces, one each, in the same order.
        states: In which state each plan begins.

    Raises:
        VoidError: Every run was void.
    """
    counted = valid(runs)
    began_in = np.array([states[run.plan] for run in counted], dtype=np.int64)
    return Round(traces(counted), began_in, len(runs) - len(counted))


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


# Series.


@dataclass(frozen=True, slots=True)
class Series:
    """Rounds of one kind.

    Attributes:
        name: Of their files; it tells all that decides what a round is.
        rounds: How many are wanted.
        measure: Measures the round of a number.
    """

    name: str
    rounds: int
    measure: Callable[[int], Arrays]


def measured(wanted: Sequence[Series], options: argparse.Namespace) -> dict[str, list[Arrays]]:
    """Return the rounds of every series, by its name: stored ones are read, missing ones measured and stored.

    The series that is farthest from its end goes first. One of which a round says nothing waits for the next
    call. No round is begun for which the time would not suffice, as far as the last one of its series tells.

    Args:
        wanted: Of different names.
        options: See ``add_options``.
    """
    folder: Path | None = None if options.quick else options.results
    found = {series.name: _stored(series, folder) for series in wanted}
    waiting: set[str] = set()
    took: dict[str, float] = {}
    while not options.report:
        left = options.last - time.monotonic()
        todo = [
            series for series in wanted
            if len(found[series.name]) < series.rounds and series.name not in waiting
            and took.get(series.name, 0.0) < left
        ]  # fmt: skip
        if not todo:
            break
        series = min(todo, key=lambda one: len(found[one.name]) / one.rounds)
        number = next(n for n in itertools.count() if n not in found[series.name])
        began, clock = time.monotonic(), time.time()
        try:
            one = {**_attempted(series, number, options), "begun": np.array(clock)}
        except VoidError as error:
            print(f"{series.name}: left out for now: {error}", flush=True)
            waiting.add(series.name)
            continue
        found[series.name][number] = one
        if folder is not None:
            _write(_file(folder, series, number), one)
        took[series.name] = time.monotonic() - began
        done = f"{len(found[series.name])} of {series.rounds} rounds"
        print(f"{series.name}: {done}, {took[series.name]:.0f} s, {int(one['void'])} runs void", flush=True)
    return {name: [rounds[number] for number in sorted(rounds)] for name, rounds in found.items()}


def missing(wanted: Sequence[Series], found: Mapping[str, Sequence[Arrays]]) -> str:
    """Return which rounds are missing; "" if none is."""
    short = [one for one in wanted if len(found[one.name]) < one.rounds]
    return ", ".join(f"{one.name}: {one.rounds - len(found[one.name])} of {one.rounds}" for one in short)


def predicted_before(name: str, predict: Callable[[], Arrays], options: argparse.Namespace) -> Arrays:
    """Return what was predicted: predicted now and written, unless it is there already.

    Args:
        name: Of the file; it tells all that decides what is predicted.
        predict: Learns and predicts.
        options: See ``add_options``.
    """
    file = options.results / f"{name}.npz"
    if file.exists() and not options.quick:
        with np.load(file) as kept:
            return dict(kept)
    with options.quiet.shared():
        made = {**predict(), "written": np.array(time.time())}
    if not options.quick:
        _write(file, made)
    return made


def order_of(predicted: Arrays, rounds: Iterable[Arrays]) -> str:
    """Return when predictions were written, and when the first round of what is predicted began."""
    first = min((float(one["begun"]) for one in rounds), default=math.inf)
    written = float(predicted["written"])
    line = f"predictions written {_moment(written)}"
    if math.isinf(first):
        return f"{line}, nothing that is predicted measured yet"
    line += f", the first run of what is predicted began {_moment(first)}"
    return line if written < first else f"NOT PREDICTED: {line}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds")


def _attempted(series: Series, number: int, options: argparse.Namespace) -> Arrays:
    """Measure a round; on a machine that is so busy that services do not even start, try again.

    Raises:
        VoidError: It failed every time, or every run was void every time.
    """
    for attempt in range(options.retries + 1):
        try:
            with options.quiet.alone():
                return series.measure(number)
        # A request that is not answered at all ends in a TimeoutError, which is an OSError.
        except (MupError, RuntimeError, OSError, aiohttp.ClientError) as error:
            if attempt == options.retries:
                raise VoidError(str(error) or type(error).__name__) from error
            print(f"{series.name}: round {number + 1} failed: {error!r}", flush=True)
    raise VoidError("no attempts allowed")


def _file(folder: Path, series: Series, number: int) -> Path:
    return folder / f"{series.name}-{number:02}.npz"


def _stored(series: Series, folder: Path | None) -> dict[int, Arrays]:
    found: dict[int, Arrays] = {}
    if folder is None:
        return found
    for number in range(series.rounds):
        file = _file(folder, series, number)
        if file.exists():
            with np.load(file) as kept:
                found[number] = dict(kept)
    return found


def _write(file: Path, arrays: Arrays) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # A measurement that is stopped here leaves no half file behind.
    partial = file.with_suffix(".partial.npz")
    values: dict[str, Any] = dict(arrays)
    np.savez_compressed(partial, **values)
    partial.replace(file)


def add_options(parser: argparse.ArgumentParser, results: Path) -> None:
    """Add what both real cases can be told; ``quiet`` and ``last`` are set by ``prepared``."""
    parser.add_argument("--results", type=Path, default=results, help="folder of what was measured")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="measure for so long, then report what there is"
    )
    parser.add_argument("--retries", type=int, default=2, help="how often a void run is repeated")
    parser.add_argument("--report", action="store_true", help="measure nothing, report what there is")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder to write pictures into")
    add_quiet_options(parser)


def prepared(options: argparse.Namespace) -> argparse.Namespace:
    """Add what follows from the options: who else may use the machine, and until when is measured."""
    options.quiet = quiet_of(options)
    options.last = time.monotonic() + 60 * options.minutes
    return options
