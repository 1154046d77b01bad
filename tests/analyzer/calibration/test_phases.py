"""Numbers of a model from hot and cold rounds, the machine's speed, and other draws of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.rundir import (
    PartInfo,
    ProcessUse,
    Run,
    RunInfo,
    VoidWindow,
    Window,
    fingerprints,
    load_run,
)
from analyzer.static import Application, analyse
from mup.errors import LogError
from mup.events.record import Event
from mup.lqn import Model
from simulator.preparing import at_rates

SOURCE = """\
import random

from mup import EP, MS


class S(MS):
    @EP("/e/")
    def e(self, comm):
        if random.random() < 0.5:
            comm.respond(1)
        else:
            comm.respond(2)
"""

STALL = 80.0
ROUND = 1000.0
"""Milliseconds between the begins of two rounds; a round lasts half of that."""


class Round:
    """One round: its phase, its requests, the CPU time of each, and what the machine was like."""

    def __init__(
        self,
        phase: str,
        requests: int,
        cpu: float,
        *,
        front: float = 0.0,
        speed: float | None = None,
        first_path: int | None = None,
        stalls: int = 0,
    ) -> None:
        self.stalls = stalls
        self.phase, self.requests, self.cpu = phase, requests, cpu
        self.front, self.speed = front, speed
        self.first_path = requests if first_path is None else first_path


@pytest.fixture
def application(tmp_path: Path) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE)
    return analyse(source)


def write(
    folder: Path, application: Application, rounds: Sequence[Round], *, sample: int = 1, void: int = 0
) -> Run:
    """Write a run with these rounds; times in milliseconds. Of ``sample`` requests, one is logged."""
    folder.mkdir()
    sites = [path.operations[0].site for path in application.endpoint("S/e/").paths]
    log = LogFile(folder / "S.0.w0.mlog", service="S", sample=sample)
    windows, request = [], 0
    for number, one in enumerate(rounds):
        start = ROUND * number
        step = ROUND / 2 / one.requests
        for k in range(one.requests):
            request += 1
            t = start + k * step
            stall = STALL if k < one.stalls else 0.0
            if k % sample:
                continue
            log.add(Event.BEGIN, request, t, cpu=0, name="S/e/")
            site = sites[0 if k < one.first_path else 1]
            log.add(Event.END, request, t + one.cpu + stall, cpu=one.cpu, name="S/e/", site=site)
            log.add(Event.DONE, request, t + one.cpu + stall, cpu=one.cpu, name="S/e/")
        windows.append(
            Window(
                round(start * 1e6),
                round((start + ROUND / 2) * 1e6),
                phase=one.phase,  # type: ignore[arg-type]
                cpu={"7": one.front * one.requests / 1e3},
                monitored=one.speed,
            )
        )
    log.close()
    info = RunInfo(
        project="s",
        cores=2,
        parts=[
            PartInfo(
                windows=windows,
                void=[VoidWindow(window=windows[0], reason="busy")] * void,
                processes=[ProcessUse(role="front", service="S", pid=7)],
            )
        ],
        fingerprints=fingerprints(application),
    )
    info.save(folder)
    return load_run(folder)


def work(model: Model, path: int = 0) -> float:
    """Return the mean demand of a path's first segment, in milliseconds."""
    entry = model.task("S").entry("/e/")
    demand = entry.activity(entry.paths[path]["segments"][0]).demand
    assert demand is not None
    return demand.mean * 1e3


def test_numbers_are_hot_and_cold_rounds_make_the_load_dependence(
    tmp_path: Path, application: Application
) -> None:
    """50 requests in half a second need 2 ms each, 20 need 3: both come out at their own rates."""
    rounds = [Round("hot", 50, 2.0, front=0.2), Round("cold", 20, 3.0, front=0.5)] * 3
    model = calibrate(write(tmp_path / "run", application, rounds), application, name="s").model
    assert work(model) == pytest.approx(2.0)
    load_dependence = model.task("S").load_dependence
    assert load_dependence is not None
    assert load_dependence.rates == pytest.approx((40, 100))
    assert work(at_rates(model, {"S": 40.0})) == pytest.approx(3.0)
    assert work(at_rates(model, {"S": 100.0})) == pytest.approx(2.0)
    front = at_rates(model, {"S": 40.0}).task("S").front
    assert front is not None
    assert front.request is not None
    assert front.request.mean == pytest.approx(0.25e-3)


def test_bursts_tell_of_processor_times_only(tmp_path: Path, application: Application) -> None:
    """What users of a burst wait for each other is in no delay: a simulation makes it anew."""
    rounds = [Round("hot", 50, 2.0), Round("cold", 20, 3.0), Round("burst", 90, 1.5, stalls=90)] * 3
    found = calibrate(write(tmp_path / "run", application, rounds), application, name="s").model
    load_dependence = found.task("S").load_dependence
    assert load_dependence is not None
    assert load_dependence.rates == pytest.approx((40, 100, 180), rel=0.2)
    assert [v[2] for v in load_dependence.demands.values()] == pytest.approx(
        [-0.5e-3] * len(load_dependence.demands), rel=0.01
    )
    assert all(v[2] == 0.0 for v in load_dependence.delays.values())
    found = calibrate(
        load_run(tmp_path / "run"), application, name="s", components=Components(bursts=False)
    ).model
    left = found.task("S").load_dependence
    assert left is not None
    assert left.rates == load_dependence.rates[:2]


@pytest.mark.parametrize(("runtime", "by_thread"), [("process", True), ("thread", False), ("async", False)])
def test_only_processes_have_caches_of_their_own(
    tmp_path: Path, application: Application, runtime: str, by_thread: bool
) -> None:
    """Workers that share a process are as warm as that is."""
    rounds = [Round("hot", 50, 2.0), Round("cold", 20, 3.0)] * 3
    services = tuple(replace(service, runtime=runtime) for service in application.services)
    found = replace(application, services=services)
    load_dependence = (
        calibrate(write(tmp_path / "run", found, rounds), found, name="s").model.task("S").load_dependence
    )
    assert load_dependence is not None
    assert load_dependence.by_thread == by_thread


def test_a_sample_of_the_requests_gives_the_same_model(tmp_path: Path, application: Application) -> None:
    """With one request of five logged, rates and the front's work per request are those of all requests."""
    rounds = [Round("hot", 50, 2.0, front=0.2), Round("cold", 20, 3.0, front=0.5)] * 3
    run = write(tmp_path / "run", application, rounds, sample=5)
    assert run.parts[0].info.sample == 5
    model = calibrate(run, application, name="s").model
    assert work(model) == pytest.approx(2.0)
    load_dependence = model.task("S").load_dependence
    assert load_dependence is not None
    assert load_dependence.rates == pytest.approx((40, 100))
    front = at_rates(model, {"S": 40.0}).task("S").front
    assert front is not None
    assert front.request is not None
    assert front.request.mean == pytest.approx(0.25e-3)


def test_logs_of_different_samples_are_refused(tmp_path: Path, application: Application) -> None:
    """How many requests stand behind a record must be one number."""
    write(tmp_path / "run", application, [Round("hot", 50, 2.0)], sample=5)
    log = LogFile(tmp_path / "run" / "T.0.w0.mlog", service="T", sample=2)
    log.close()
    with pytest.raises(LogError, match="1 in 2, 1 in 5"):
        load_run(tmp_path / "run")


def test_load_dependence_can_be_left_out(tmp_path: Path, application: Application) -> None:
    """Without this component the hot numbers hold at every rate."""
    rounds = [Round("hot", 50, 2.0), Round("cold", 20, 3.0)] * 3
    run = write(tmp_path / "run", application, rounds)
    left = calibrate(run, application, name="s", components=Components(load_dependence=False)).model
    assert left.task("S").load_dependence is None
    assert left.provenance["left_out"] == ["load_dependence"]


def test_rounds_on_a_slower_machine_count_as_if_it_had_been_the_same(
    tmp_path: Path, application: Application
) -> None:
    """Twice the time at half the speed is the same work; the numbers are those of the mean time of a unit."""
    rounds = [Round("hot", 50, 2.0, speed=1000.0), Round("hot", 50, 4.0, speed=500.0)]
    run = write(tmp_path / "run", application, rounds)
    model = calibrate(run, application, name="s").model
    demand = model.task("S").entry("/e/").activities[1].demand
    assert demand is not None
    assert demand.mean * 1e3 == pytest.approx(3.0)
    assert demand.scv == pytest.approx(0.0, abs=1e-9)
    raw = calibrate(run, application, name="s", components=Components(speed=False)).model
    spread = raw.task("S").entry("/e/").activities[1].demand
    assert spread is not None
    assert spread.scv > 0.1


def test_replicates_vary_as_the_rounds_do(tmp_path: Path, application: Application) -> None:
    """Equal rounds leave no doubt; rounds that differ give factors around 1, and probabilities around a half."""
    same = calibrate(
        write(tmp_path / "same", application, [Round("hot", 20, 2.0, first_path=10)] * 4),
        application,
        name="s",
    ).model
    mixed = calibrate(
        write(
            tmp_path / "mixed",
            application,
            [Round("hot", 20, 2.0 + k / 5, first_path=8 + k) for k in range(5)],
        ),
        application,
        name="s",
        bootstrap=40,
    ).model
    assert same.uncertainty is not None
    assert mixed.uncertainty is not None
    assert len(mixed.uncertainty.replicates) == 40
    assert (mixed.uncertainty.batches, mixed.uncertainty.freedom) == (5, 4)
    for replicate in same.uncertainty.replicates:
        assert set(replicate.demands.values()) == {1.0}
        assert set(replicate.probabilities.values()) == {(0.5, 0.5)}
    factors = [next(iter(r.demands.values())) for r in mixed.uncertainty.replicates]
    assert sum(factors) / 40 == pytest.approx(1.0, abs=0.03)
    # The means of five rounds from 2 to 2.8 ms: standard deviation 0.316 / 2.4 / root 5.
    deviation = (sum((f - 1) ** 2 for f in factors) / 40) ** 0.5
    assert 0.03 < deviation < 0.1
    odds = {r.probabilities["S/e/:start"][0] for r in mixed.uncertainty.replicates}
    assert min(odds) < 0.5 < max(odds)


@pytest.mark.parametrize(("hot", "void", "warned"), [(5, 1, True), (6, 1, False), (5, 0, False)])
def test_few_rounds_among_void_ones_are_warned_of(
    tmp_path: Path, application: Application, hot: int, void: int, warned: bool
) -> None:
    """A model from what a busy machine left of a run says so; a short run on a quiet one is what was asked for."""
    run = write(tmp_path / "run", application, [Round("hot", 20, 2.0)] * hot, void=void)
    warnings = calibrate(run, application, name="s").warnings
    assert any(f"only {hot} usable round" in text for text in warnings) == warned


def test_two_rounds_say_nothing_about_how_sure_a_number_is(tmp_path: Path, application: Application) -> None:
    """With fewer than three batches there is no spread to speak of."""
    run = write(tmp_path / "run", application, [Round("hot", 20, 2.0)] * 2)
    assert calibrate(run, application, name="s").model.uncertainty is None


CLIENT = """

class User(Client):
    async def scenario(self, comm):
        await self.think(self.random.random())
        await comm.call("S", "/e/")
"""


def test_think_times_that_the_source_does_not_tell_are_measured(tmp_path: Path) -> None:
    """They come from cold rounds, freed from the factor on think times; hot rounds have none."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE.replace("EP, MS", "EP, MS, Client") + CLIENT)
    application = analyse(source)
    steps = application.client("User").paths[0].operations
    folder = tmp_path / "run"
    folder.mkdir()
    log = LogFile(folder / "User.client.mlog", service="User", role="client")
    windows = []
    for number, (phase, scale, thought) in enumerate(
        [("hot", 0.0, 0.0), ("cold", 0.5, 100.0), ("cold", 0.5, 300.0)]
    ):
        t, cycle = ROUND * number, 100 + number
        log.add(Event.BEGIN, cycle, t, cpu=0, name="User.scenario")
        log.add(Event.THINK_START, cycle, t, cpu=0, site=steps[0].site)
        log.add(Event.THINK_END, cycle, t + thought, cpu=0, site=steps[0].site)
        log.add(Event.COMM_START, cycle, t + thought, cpu=0, name="S/e/", site=steps[1].site, seq=1)
        log.add(Event.CONTACT_DEST, cycle, t + thought, cpu=0, name="S/e/", seq=1)
        log.add(Event.WAIT_START, cycle, t + thought, cpu=0, site=steps[2].site, seq=1)
        log.add(Event.COMM_FINISH, cycle, t + thought + 5, cpu=0, name="S/e/", seq=1)
        log.add(Event.WAIT_END, cycle, t + thought + 5, cpu=0, seq=1)
        log.add(Event.DONE, cycle, t + thought + 5, cpu=0, name="User.scenario")
        windows.append(Window(round(t * 1e6), round((t + ROUND / 2) * 1e6), phase=phase, think_scale=scale))  # type: ignore[arg-type]
    log.close()
    info = RunInfo(
        project="s", client="User", parts=[PartInfo(windows=windows)], fingerprints=fingerprints(application)
    )
    info.save(folder)
    entry = calibrate(load_run(folder), application, name="s").model.task("User").entry("scenario")
    think = next(a for a in entry.activities if a.kind == "think")
    assert think.delay is not None
    assert think.delay.mean == pytest.approx((0.2 + 0.6) / 2)


def test_stalls_of_the_machine_are_left_out_and_said(tmp_path: Path, application: Application) -> None:
    """Two of 2100 executions stood still for 80 ms: their processor time counts, the standstill does not."""
    rounds = [Round("hot", 700, 0.5), Round("hot", 700, 0.5, stalls=2), Round("hot", 700, 0.5)]
    run = write(tmp_path / "run", application, rounds)
    found = calibrate(run, application, name="s")
    kept = calibrate(run, application, name="s", components=Components(outliers=False))
    first = found.model.task("S").entry("/e/").paths[0]["segments"][0]

    def delay(model: Model) -> float:
        distribution = model.task("S").entry("/e/").activity(first).delay
        assert distribution is not None
        return distribution.mean

    assert delay(found.model) == pytest.approx(0.0, abs=1e-9)
    assert delay(kept.model) == pytest.approx(2 * 0.08 / 2100)
    (said,) = [w for w in found.warnings if "stalls" in w]
    assert said.startswith(f"S/e/ {first}: 2 of 2100 values")
    assert not any("stalls" in w for w in kept.warnings)
