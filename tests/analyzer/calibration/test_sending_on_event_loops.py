"""Sending a call: work of its own where a worker has a thread, part of the work before it on an event loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.calibration.executions import Execution, Moment, Operation, Step
from analyzer.calibration.matching import match
from analyzer.calibration.observed import Observed, Sample
from analyzer.calibration.rundir import Window
from analyzer.calibration.samples import local_work, sample_path
from analyzer.static import analyse, translate_with_plan

SOURCE = """\
from mup import EP, MS


class S(MS):
    runtime = "{runtime}"

    @EP("/e/")
    {define} e(self, comm):
        future = comm.call("T", "/t/")
        {wait}
        comm.respond(1)


class T(MS):
    @EP("/t/")
    def t(self, comm):
        comm.respond(1)
"""
BEFORE, SENDING, REPLY, BEHIND = 2_000_000, 500_000, 300_000, 1_000_000
"""Processor time of the parts of a request, in ns."""


def total(sample: Sample) -> int:
    return round(1e9 * sum(sample.values))


@pytest.mark.parametrize(("runtime", "on_loop"), [("async", True), ("process", False)])
def test_sending_on_a_loop_is_part_of_the_work_before_it(tmp_path: Path, runtime: str, on_loop: bool) -> None:
    """Nothing else can have the loop in between; as an activity of its own, it would queue for it once more."""
    define, wait = ("async def", "await future") if on_loop else ("def", "future.get()")
    (tmp_path / "services.py").write_text(SOURCE.format(runtime=runtime, define=define, wait=wait))
    application = analyse(tmp_path)
    sites = (o.site for o in application.endpoint("S/e/").paths[0].operations)
    call, get, respond = ((site.file, site.function, site.ordinal) for site in sites)
    start = Moment(BEFORE, BEFORE)
    sent = Moment(BEFORE + SENDING, BEFORE + SENDING)
    finish = Moment(sent.time + 9_000_000, sent.cpu + REPLY)
    end = Moment(finish.time + BEHIND, finish.cpu + BEHIND)
    execution = Execution(1, "S/e/", "worker", "S", 0, Moment(0, 0), end=end, done=end)
    execution.operations[1] = Operation(
        1, "T/t/", start, contact=sent, finish=finish, on_loop=on_loop, awaited=True
    )
    execution.steps = [
        Step("call", call, 1, start, sent),
        Step("get", get, 1, sent, finish),
        Step("respond", respond, 0, end, end),
    ]
    window = Window(0, end.time)
    slowness = 1.0
    observed = Observed((window,), (), (execution,), {1: 0}, {1: execution}, [slowness])  # type: ignore[arg-type]
    _, plans = translate_with_plan(application, name="s")
    (path,) = plans["S", "/e/"]
    (taken,) = match([path], [execution]).taken
    samples = sample_path(taken, path, observed)
    (communication,) = samples.communication.values()
    demands = [total(samples.demand[(), index]) for index in range(3)]
    sending = total(communication.registry_demand)
    assert demands == [BEFORE + (SENDING if on_loop else 0), 0, REPLY + BEHIND]
    assert sending == (0 if on_loop else SENDING)
    # Measured as a whole, an endpoint has the same work, before its response and behind it.
    (whole, _), (after, _) = local_work(execution)
    assert (round(1e9 * whole), after) == (sum(demands), 0)
