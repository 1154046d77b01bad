"""Closed loads on real services that begin in a given state, for the real cases of the thesis."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import aiohttp

from analyzer.learning.trace_files import read_traces, write_traces
from analyzer.learning.traces import Traces
from mup.project import Project, load_project

__all__ = ["Driver", "Request", "Run", "project_in", "stored_traces"]


class Request(NamedTuple):
    """What a client asks for."""

    path: str
    params: dict[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """One execution.

    Attributes:
        began: Nanoseconds of the monotonic clock.
        responses: When each answer came, seconds from the beginning, and how long it took.
    """

    began: int
    responses: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Driver:
    """Clients who think for random times and ask.

    Attributes:
        url: Of the service that is asked.
        think: Mean think time, seconds.
        choose: Draws what is asked for.
        draw: Random numbers.
    """

    url: str
    think: float
    choose: Callable[[random.Random], Request]
    draw: random.Random

    def runs(self, plans: Sequence[Sequence[Request | None]], seconds: float) -> list[Run]:
        """Execute runs one after another; each ends when all clients are at home.

        Args:
            plans: Per run, what each client does first: ask for something at once, or think (None).
            seconds: After which nobody asks any more.

        Raises:
            RuntimeError: A request failed.
        """
        return asyncio.run(self._all(plans, seconds))

    async def _all(self, plans: Sequence[Sequence[Request | None]], seconds: float) -> list[Run]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            return [await self._run(session, plan, seconds) for plan in plans]

    async def _run(
        self, session: aiohttp.ClientSession, plan: Sequence[Request | None], seconds: float
    ) -> Run:
        run = Run(time.monotonic_ns(), [])
        await asyncio.gather(*(self._client(session, run, seconds, first) for first in plan))
        return run

    async def _client(
        self, session: aiohttp.ClientSession, run: Run, seconds: float, first: Request | None
    ) -> None:
        if first is not None:
            await self._ask(session, run, first)
        while True:
            pause = self.draw.expovariate(1 / self.think)
            if time.monotonic() + pause >= run.began * 1e-9 + seconds:
                return
            await asyncio.sleep(pause)
            await self._ask(session, run, self.choose(self.draw))

    async def _ask(self, session: aiohttp.ClientSession, run: Run, request: Request) -> None:
        began = time.monotonic()
        async with session.post(self.url + request.path, json=request.params) as answer:
            text = await answer.text()
        if answer.status != 200:
            raise RuntimeError(f"{self.url}{request.path}: {answer.status} {text}")
        now = time.monotonic()
        run.responses.append((now - run.began * 1e-9, now - began))


def project_in(folder: Path, env: dict[str, str]) -> Project:
    """Return the project of a folder on free ports, its services with more environment."""
    project = load_project(folder).with_any_ports()
    return replace(project, services=tuple(replace(s, env={**s.env, **env}) for s in project.services))


def stored_traces(file: Path | None, make: Callable[[], Traces]) -> Traces:
    """Return traces from a file; make and store them if there is none. None: nothing is kept."""
    if file is not None and file.exists():
        return read_traces(file)
    traces = make()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_traces(file, traces)
    return traces
