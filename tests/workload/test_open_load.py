"""Open loads, ramps, recorded think times and the end of a window, with a real driver or a real event loop."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mup import Client
from mup.project import Project
from mup.runtime.client.events import EventLog
from mup.workload import engine
from mup.workload.arrivals import Arrivals
from mup.workload.driver import LoadDriver
from mup.workload.engine import Engine, Settings
from mup.workload.http import HttpLoad
from mup.workload.result import LoadResult
from mup.workload.timers import Timers

Make = Callable[[str], Project]


def _run(client: type[Client], tmp_path: Path, **values: Any) -> LoadResult:
    """Run one round of clients that make no calls, in this process."""

    async def go() -> LoadResult:
        log = EventLog(None, tmp_path)
        return await Engine(client, "", log, tmp_path, {}).run(Settings(**values), lambda _: None)

    return asyncio.run(go())


class Visitor(Client):
    """Thinks for a moment."""

    async def scenario(self, comm: object) -> None:
        await self.think(0.01)


def test_an_open_window_holds_the_arrivals_of_its_time(tmp_path: Path) -> None:
    """Every arrival that should begin in the window counts, once; its response time has no think time in it."""
    result = _run(
        Visitor, tmp_path, duration=0.5, warmup=0.2, arrivals=Arrivals(rate=100.0, process="constant")
    )
    assert len(result.cycles) == 50
    assert result.errors == 0
    assert result.clients == 0
    assert all(result.start_ns <= cycle.intended_ns < result.end_ns for cycle in result.cycles)
    assert all(0 <= cycle.late < 0.2 for cycle in result.cycles)
    assert all(
        cycle.response == pytest.approx(cycle.service_response + cycle.late) for cycle in result.cycles
    )


def test_response_times_of_a_stalled_generator_count_from_the_intended_start(tmp_path: Path) -> None:
    """A scenario that blocks the event loop delays later arrivals: their response time contains the delay."""

    class Blocking(Client):
        async def scenario(self, comm: object) -> None:
            if self.index == 10:
                time.sleep(0.2)  # noqa: ASYNC251 - what a scenario must not do

    result = _run(
        Blocking, tmp_path, duration=0.5, warmup=0.0, arrivals=Arrivals(rate=100.0, process="constant")
    )
    assert len(result.cycles) == 50
    assert max(cycle.late for cycle in result.cycles) > 0.1
    assert max(cycle.response for cycle in result.cycles if cycle.service_response < 0.1) > 0.1


def test_each_arrival_draws_its_own_numbers(tmp_path: Path) -> None:
    """Arrival k does the same in every run of a seed, whichever object does it; other seeds differ."""
    drawn: dict[int, float] = {}

    class Drawing(Client):
        async def scenario(self, comm: object) -> None:
            drawn[self.index] = self.random.random()
            await self.think(0.02)

    def once(seed: int) -> dict[int, float]:
        drawn.clear()
        arrivals = Arrivals(rate=100.0, process="constant")
        _run(Drawing, tmp_path, duration=0.3, warmup=0.0, arrivals=arrivals, seed=seed)
        return dict(drawn)

    first, again, other = once(1), once(1), once(2)
    shared = set(first) & set(again)
    assert len(shared) >= 30
    assert all(first[k] == again[k] for k in shared)
    assert all(first[k] != other[k] for k in shared & set(other))
    assert len(set(first.values())) == len(first)


def test_objects_of_arrivals_are_reused_and_set_up_once(tmp_path: Path) -> None:
    """As many objects as cycles overlap; each is set up and torn down once, and set-up is not measured."""
    calls = {"setup": 0, "teardown": 0}

    class Prepared(Client):
        async def setup(self, comm: object) -> None:
            calls["setup"] += 1
            await asyncio.sleep(0.15)

        async def scenario(self, comm: object) -> None:
            await self.think(0.001)

        async def teardown(self, comm: object) -> None:
            calls["teardown"] += 1

    arrivals = Arrivals(rate=20.0, process="constant")
    result = _run(Prepared, tmp_path, duration=1.0, warmup=0.0, arrivals=arrivals)
    assert len(result.cycles) == 20
    assert calls["setup"] == calls["teardown"] < 15
    assert statistics.median(result.response_times) < 0.1


def test_a_trace_is_replayed_and_ends(tmp_path: Path) -> None:
    """Arrivals come at the recorded times; those of the warm-up do not count, and the end is the end."""
    trace = (0.0, 0.05, 0.25, 0.3, 0.3, 0.45)
    result = _run(
        Visitor, tmp_path, duration=0.5, warmup=0.2, arrivals=Arrivals(process="trace", trace=trace)
    )
    offsets = [(cycle.intended_ns - result.start_ns) * 1e-9 for cycle in result.cycles]
    assert offsets == pytest.approx([0.05, 0.1, 0.1, 0.25], abs=1e-6)


def test_arrivals_go_on_until_the_last_counted_cycle_has_ended(tmp_path: Path) -> None:
    """The last cycle of the window meets the same load as the first: arrivals do not stop at its end."""
    begun: list[float] = []

    class Slow(Client):
        async def scenario(self, comm: object) -> None:
            begun.append(time.monotonic())
            await self.think(0.4)

    start = time.monotonic()
    arrivals = Arrivals(rate=50.0, process="constant")
    result = _run(Slow, tmp_path, duration=0.2, warmup=0.0, arrivals=arrivals)
    assert len(result.cycles) == 10
    assert max(begun) > start + 0.45


@pytest.mark.parametrize(("first", "last"), [(1, 5), (5, 1)])
def test_clients_join_and_leave_one_by_one(tmp_path: Path, first: int, last: int) -> None:
    """The number of users at work in the window changes step by step from the first number to the last."""
    spans: dict[int, list[float]] = {}

    class Counted(Client):
        async def scenario(self, comm: object) -> None:
            spans.setdefault(self.index, []).append(time.monotonic())
            await self.think(0.02)

    result = _run(Counted, tmp_path, clients=last, clients_from=first, duration=0.8, warmup=0.0)
    begin, end = result.start_ns * 1e-9, result.end_ns * 1e-9
    moments = [begin + (end - begin) * share for share in (0.06, 0.5, 0.94)]
    present = [sum(times[0] <= m <= times[-1] + 0.03 for times in spans.values()) for m in moments]
    assert present[0] == first
    assert present[2] == last
    assert min(first, last) < present[1] < max(first, last)


def test_who_thinks_at_the_end_has_not_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A think time longer than the patience after the window is waited for; its cycle is a success."""
    monkeypatch.setattr(engine, "DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(engine, "PROGRESS_SECONDS", 0.05)

    class Thinker(Client):
        async def scenario(self, comm: object) -> None:
            await self.think(0.8)

    result = _run(Thinker, tmp_path, clients=1, duration=0.1, warmup=0.0)
    assert result.errors == 0
    assert len(result.cycles) == 1


def test_who_hangs_at_the_end_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle that waits for something else for too long is given up, and counted as failed."""
    monkeypatch.setattr(engine, "DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(engine, "PROGRESS_SECONDS", 0.05)

    class Hanging(Client):
        async def scenario(self, comm: object) -> None:
            await asyncio.sleep(60)

    result = _run(Hanging, tmp_path, clients=2, duration=0.1, warmup=0.0)
    assert result.errors == 2
    assert "2 cycles did not end within 0.2 s after the window" in result.first_error


def test_recorded_think_times(tmp_path: Path) -> None:
    """Think times come from the file, all of them, in an order of the seed; the scale applies."""
    (tmp_path / "thinks.txt").write_text("0.02\n0.04\n0.06\n")

    class Recorded(Client):
        async def scenario(self, comm: object) -> None:
            await self.think("thinks.txt", "recorded")

    result = _run(Recorded, tmp_path, clients=20, duration=0.4, warmup=0.0, think_scale=0.5)
    thinks = [cycle.think for cycle in result.cycles]
    wanted = [think - late for think, late in zip(thinks, result.think_lateness, strict=False)]
    assert len(wanted) > 50
    assert all(think >= 0.01 for think in thinks)
    assert result.think_wanted == pytest.approx(0.02, rel=0.3)
    assert {round(cycle.think, 2) for cycle in result.cycles} >= {0.01, 0.02, 0.03}


def test_timers_wake_in_order_and_never_early() -> None:
    """Sleepers wake by their times whatever order they came in; one that is done already is left alone."""

    async def go() -> list[int]:
        timers, order = Timers(), []
        loop = asyncio.get_running_loop()
        base = time.monotonic_ns()

        async def sleep(number: int, when: int) -> None:
            sleeper = loop.create_future()
            timers.wake(sleeper, when)
            await sleeper
            assert time.monotonic_ns() >= when
            order.append(number)

        cancelled = loop.create_future()
        timers.wake(cancelled, base + 1_000_000)
        cancelled.cancel()
        await asyncio.gather(*(sleep(n, base + n * 3_000_000) for n in (4, 1, 3, 0, 2)))
        timers.close()
        return order

    assert asyncio.run(go()) == [0, 1, 2, 3, 4]


@pytest.mark.services
def test_services_outside_of_mup(system: Any, project: Make) -> None:
    """A client calls them by name with any method, beside those of the registry; they see no headers of mup."""
    body = """
async def scenario(self, comm):
    assert await comm.call("shop", "/echo/", {"a": 1}) == {"echo": {"a": 1}}
    assert await comm.call("S", "/echo/", {"b": 2}) == {"echo": {"b": 2}}
    from mup.errors import CallError
    try:
        await comm.call("shop", "GET /echo/?q=1")
    except CallError as error:
        assert error.status == 405
    await self.think(0.01)
"""
    target = project(body).with_externals({"shop": system.server_url})
    with LoadDriver(target, system.registry_url) as driver:
        result = driver.run(1, 0.2)
    assert result.first_error == ""
    assert result.endpoints["POST shop/echo/"].count > 0
    assert result.endpoints["GET shop/echo/"].errors > 0
    assert result.endpoints["S/echo/"].count > 0
    outside = next(r for r in system.requests if r["body"] == {"a": 1})
    assert not any(name.lower().startswith("x-mup") for name in outside["headers"])


@pytest.mark.services
def test_plain_http_needs_no_project(system: Any) -> None:
    """Requests with method, body and headers as given, one after the other, without a registry."""
    load = HttpLoad(
        urls=(f"{system.server_url}/echo/", f"{system.server_url}/chunked/?x=1"),
        body='{"n": 1}',
        headers={"X-Token": "secret"},
        think=0.01,
    )
    with LoadDriver(load, "") as driver:
        result = driver.run(0, 0.3, 0.1, arrivals=Arrivals(rate=50.0))
    assert result.first_error == ""
    assert len(result.cycles) > 5
    host = system.server_url.removeprefix("http://")
    assert set(result.endpoints) == {f"POST {host}/echo/", f"POST {host}/chunked/"}
    assert system.requests[0]["body"] == {"n": 1}
    assert system.requests[0]["headers"]["X-Token"] == "secret"


@pytest.mark.services
def test_progress_is_reported(system: Any, project: Make) -> None:
    """A caller that waits for a round hears about it every second."""
    seen: list[Any] = []
    body = "async def scenario(self, comm):\n    await self.think(0.01)\n    await comm.call('S', '/echo/')"
    with LoadDriver(project(body), system.registry_url) as driver:
        driver.run(2, 1.3, 0.0, on_progress=seen.append)
    assert len(seen) >= 1
    assert seen[0]["cycles"] > 0
    assert seen[0]["errors"] == 0
    assert 0.5 < seen[0]["seconds"] < 1.5
