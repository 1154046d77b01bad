"""Figures of a window: means, percentiles, intervals that cover, busy time of workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mup.events.reader import read_log
from mup.events.record import QUEUED, Event
from mup.events.writer import EventWriter
from mup.workload.figures import Window, response_time, throughput
from mup.workload.occupancy import arrivals, busy_seconds, executions
from mup.workload.result import Cycle, LoadResult

SECOND = 10**9


def _result(cycles: list[Cycle], completions: list[int], seconds: int = 10) -> LoadResult:
    return LoadResult(
        clients=1,
        seed=0,
        start_ns=0,
        end_ns=seconds * SECOND,
        cycles=tuple(cycles),
        completions=tuple(completions),
        errors=0,
        first_error="",
        cpu_seconds=0.0,
        think_lateness=(),
    )


def test_response_time_excludes_think_time() -> None:
    """Mean and percentiles are of duration minus think."""
    cycles = [Cycle(k * SECOND // 10, 1.0 + k / 100, 1.0) for k in range(100)]
    figure = response_time([_result(cycles, [])])
    assert figure.mean == pytest.approx(0.495)
    assert (figure.p50, figure.p99) == pytest.approx((0.495, 0.9801))


def test_nothing_succeeded() -> None:
    """Without a cycle there is no interval, and no crash."""
    result = _result([], [])
    assert response_time([result]).ci95 is None
    assert throughput([result]).mean == 0.0
    assert result.failed_share == 1.0


def test_steady_throughput_has_a_narrow_interval() -> None:
    """Equally spaced completions: exact mean, interval of zero."""
    ends = [SECOND // 20 + k * SECOND // 10 for k in range(100)]
    figure = throughput([_result([], ends)])
    assert figure.mean == pytest.approx(10.0)
    assert figure.ci95 == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_intervals_cover_the_mean_of_correlated_response_times() -> None:
    """Over many runs of an autocorrelated series with known mean the 95 % interval covers it about as often."""
    rng = np.random.default_rng(1)
    covered, count = 0, 300
    for _ in range(count):
        noise = rng.normal(size=2000)
        level, values = 0.0, []
        for shock in noise:
            level = 0.9 * level + shock
            values.append(100.0 + level)
        cycles = [Cycle(k * 20 * SECOND // 2000, value, 0.0) for k, value in enumerate(values)]
        figure = response_time([_result(cycles, [], seconds=20)])
        assert figure.ci95 is not None
        covered += abs(figure.mean - 100.0) <= figure.ci95
    # Intervals of independent values would cover about 35 %.
    assert covered / count > 0.88


def test_repeats_that_differ_widen_the_interval() -> None:
    """Three steady runs at different levels: their spread is the uncertainty."""
    runs = [
        _result([Cycle(k * SECOND // 10, level, 0.0) for k in range(100)], []) for level in (1.0, 2.0, 3.0)
    ]
    assert response_time(runs[:1]).ci95 == pytest.approx(0.0, abs=1e-9)
    # Student's t with two degrees of freedom, over the square root of three runs.
    assert response_time(runs).ci95 == pytest.approx(4.3027 / 3**0.5, rel=1e-3)


def test_result_survives_its_json() -> None:
    """What the driver process sends is what arrives."""
    result = _result([Cycle(1, 0.5, 0.25)], [2])
    assert LoadResult.from_dict(result.to_dict()) == result


@pytest.mark.parametrize(
    ("executions", "expected"),
    [
        pytest.param([(0.0, 2.0), (3.0, 4.0), (9.0, 12.0)], [1, 0, 1, 0, 0, 0, 0, 0, 1], id="one-by-one"),
        pytest.param([(1.0, 4.0), (2.0, 3.5), (2.5, 5.0)], [1, 2.5, 2.5, 1, 0, 0, 0, 0, 0], id="on-a-loop"),
    ],
)
def test_busy_time_is_clipped_to_the_window(
    tmp_path: Path, executions: list[tuple[float, float]], expected: list[float]
) -> None:
    """Executions count in each second with the part inside, also beside others; one without an end does not."""
    writer = EventWriter(tmp_path / "A.0.w0.mlog", {"role": "worker", "service": "A"})
    moments = [(12.0, 0, Event.BEGIN)]
    for number, (begin, done) in enumerate(executions, 1):
        moments += [(begin, number, Event.BEGIN), (begin, number, Event.END), (done, number, Event.DONE)]
    for seconds, number, event in sorted(moments):
        writer.write(event, number or 99, 1, time=int(seconds * SECOND))
    writer.close()
    log = read_log(writer.path)
    busy = busy_seconds(log, Window(1 * SECOND, 10 * SECOND), arrivals([]))
    assert busy == pytest.approx(expected)


def test_workers_are_taken_before_they_begin(tmp_path: Path) -> None:
    """From arrival on if one was free, else from when one became free; without a known arrival, from begin."""
    front = EventWriter(tmp_path / "A.0.front.mlog", {"role": "front", "service": "A"})
    for number, seconds, flags in ((1, 1.0, 0), (2, 1.5, QUEUED), (3, 4.0, 0), (5, 7.5, QUEUED)):
        front.write(Event.ARRIVE, number, 1, time=int(seconds * SECOND), flags=flags)
    front.close()
    worker = EventWriter(tmp_path / "A.0.w0.mlog", {"role": "worker", "service": "A"})
    spans = ((1, 1.25, 2.0), (2, 2.25, 3.0), (3, 4.5, 5.0), (4, 6.0, 7.0), (5, 8.0, 9.0))
    for number, begin, done in spans:
        worker.write(Event.BEGIN, number, 1, time=int(begin * SECOND), cpu=0)
        worker.write(Event.DONE, number, 1, time=int(done * SECOND), cpu=7)
    worker.close()
    found = executions(read_log(worker.path), arrivals([read_log(front.path)]))
    assert (found.arrived / SECOND).tolist() == [1.0, 1.5, 4.0, 6.0, 7.5]
    assert (found.taken / SECOND).tolist() == [1.0, 2.0, 4.0, 6.0, 7.5]
    assert (found.done / SECOND).tolist() == [2.0, 3.0, 5.0, 7.0, 9.0]
    assert found.cpu.tolist() == [7] * 5


def test_workers_of_a_busy_loop_are_taken_before_it_comes_to_them(tmp_path: Path) -> None:
    """Two slots, four requests, a loop that computes: who waits has a slot when one is free, not at begin."""
    front = EventWriter(tmp_path / "A.0.front.mlog", {"role": "front", "service": "A"})
    for number, seconds, flags in ((1, 1.0, 0), (2, 1.1, 0), (3, 1.2, QUEUED), (4, 1.3, QUEUED)):
        front.write(Event.ARRIVE, number, 1, time=int(seconds * SECOND), flags=flags)
    front.close()
    loop = EventWriter(tmp_path / "A.0.w0.mlog", {"role": "worker", "service": "A", "runtime": "async"})
    # 1 is done at 3; the loop goes on with 2, which is done at 4, and then begins with 3 and 4.
    spans = ((1, 1.5, 3.0), (2, 2.0, 4.0), (3, 4.5, 6.0), (4, 5.0, 7.0))
    moments = [(begin, number, Event.BEGIN) for number, begin, _ in spans]
    moments += [(done, number, Event.DONE) for number, _, done in spans]
    for seconds, number, event in sorted(moments):
        loop.write(
            event, number, 1, name=loop.name("A/x/" if number < 4 else "A/y/"), time=int(seconds * SECOND)
        )
    loop.close()
    log, arrived = read_log(loop.path), arrivals([read_log(front.path)])
    assert (executions(log, arrived).taken / SECOND).tolist() == [1.0, 1.1, 3.0, 4.0]
    assert (executions(log, arrived, "A/y/").taken / SECOND).tolist() == [4.0]
    # Both slots are taken from 1.1 to 6: by the old rule, the last to be done before 3 began was 2, at 4.
    busy = busy_seconds(log, Window(2 * SECOND, 6 * SECOND), arrived)
    assert busy.sum() == pytest.approx(8.0)


@pytest.mark.parametrize("data", [{}, {"cycles": [[1, 0.5, 0.25]]}])
def test_failed_share_counts_failed_cycles(data: dict[str, Any]) -> None:
    """Failed cycles are compared with all that began."""
    result = LoadResult.from_dict(_result([], []).to_dict() | data | {"errors": 1})
    assert result.failed_share == 1 / (1 + len(data.get("cycles", [])))
