"""A profile measured while others used the machine is void, and one that fails its own check is not believed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from host_profiles import profile
from rich.console import Console

from analyzer.host.measure import MAX_REPEATS, PARTS, REPEATS, _Parts, profile_host
from analyzer.host.placement import on_host
from analyzer.host.profile import (
    HostProfile,
    current_profile,
    load_profile,
    save_profile,
    this_machine,
)
from analyzer.host.quiet import busiest, process_clocks, watched
from mup.cli.main import main
from mup.cli.measurements.profiling import ensure_profile, report_host_warning
from mup.errors import DeploymentError
from mup.lqn import Model, Processor
from mup.workload.cpu import HostCpu

SPIN = """
import os, time
os.nice(19)
ends = time.monotonic() + 120
while (now := time.monotonic()) < ends:
    while time.monotonic() < now + 0.01: pass
    time.sleep(0.02)
"""
BURST = "import time\nwhile time.process_time() < 0.5: pass"


def bad(profile: HostProfile) -> HostProfile:
    """Return a profile as a busy machine once gave it: its own check is off by the whole time."""
    scheduler = replace(
        profile.scheduler, discipline="ps", migration=None, errors={"ps": (-0.96, -0.94, -0.96)}
    )
    return replace(profile, scheduler=scheduler)


@pytest.fixture
def busy() -> Iterator[list[int]]:
    """A machine with something else to do, of the least importance, a third of the time; the process that does it."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN])]
    yield [process.pid for process in spinning]
    for process in spinning:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.usefixtures("busy")
def test_a_busy_machine_gets_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`mup host` gives up after some tries, says who used how much and what to do, and writes nothing."""
    path = tmp_path / "host.json"
    with pytest.raises(SystemExit) as caught:
        main(["host", "--duration", "1", "-o", str(path)])
    assert caught.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "this machine cannot be profiled now" in said
    assert "other programs used" in said
    assert "of the machine (limit 2%); most of it '" in said
    assert "stop what else runs" in said
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.usefixtures("busy")
def test_explore_goes_on_without_a_profile_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first exploration does is said before, and that there is no profile after it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("analyzer.host.measure.REPEATS", 0)
    text = io.StringIO()
    ensure_profile(Console(file=text, width=400), wanted=True)
    said = text.getvalue()
    assert "measuring it, once, for about 45 s" in said
    assert "nothing else should run meanwhile" in said
    assert "no profile of this machine: this machine cannot be profiled now" in said
    assert "models take its cores to be shared ideally" in said
    assert not current_profile()[0].measured


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.usefixtures("busy")
def test_a_disturbed_profile_that_is_kept_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``--accept-disturbed`` it is written, whole, and marked; all its readers are told."""
    path = tmp_path / "host.json"
    measured: list[HostProfile] = []

    def once(*arguments: Any, **options: Any) -> HostProfile:
        """Measure this machine the first time: what is printed for people is of the same profile."""
        measured.extend([] if measured else [profile_host(*arguments, **options)])
        return measured[0]

    monkeypatch.setattr("analyzer.host.measure.profile_host", once)
    words = ["host", "--duration", "1", "--accept-disturbed", "-o", str(path)]
    with pytest.raises(SystemExit) as caught:
        main([*words, "--json"])
    assert caught.value.code == 0
    printed = HostProfile.from_json(json.loads(capsys.readouterr().out))
    kept = load_profile(path)
    assert printed == kept == measured[0]
    _assert_whole(kept)
    assert "other programs used" in kept.disturbed
    assert kept.disturbed in kept.warning
    assert json.loads(path.read_text())["disturbed"] == kept.disturbed
    path.unlink()
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    assert "is doubtful (" in " ".join(capsys.readouterr().out.split())
    assert load_profile(path) == kept


def _assert_whole(found: HostProfile) -> None:
    """This machine, every figure, a processor for models."""
    assert found.measured
    assert found.identity == this_machine()
    assert len(found.speed) == min(4, found.cores)
    figures = (found.parallel, found.sharing, found.interpreter_lock)
    assert all(figure is not None and figure.mean > 0 for figure in figures)
    assert {timer.kind for timer in found.timers} >= {"sleep", "asyncio"}
    assert len(found.cold) == 16
    assert len(found.scheduler.extra) == len(found.scheduler.loads) == 3
    # A fit is made only where there is no trace that explains the ring.
    chosen = {"trace": "traced", "fit": "fitted"}[found.scheduler.source]
    assert {"ps", chosen} <= set(found.scheduler.errors)
    assert (found.scheduler.fitted is None) is ("fitted" not in found.scheduler.errors)
    assert found.processor("host").cores == found.cores


@pytest.mark.slow
def test_what_we_use_ourselves_disturbs_nothing() -> None:
    """Processes of the measurement that have ended are not foreign, those that go on are."""
    host = HostCpu()
    host.start()
    _, reason = watched(lambda: subprocess.run([sys.executable, "-c", BURST], check=True))
    host.stop()
    # Whatever else runs here: without the half second of ours it is less than all that was used.
    if reason:
        said = float(reason.split("used ")[1].split("%")[0]) / 100 if "used" in reason else 0.0
        assert said * host.capacity_seconds < host.busy_seconds - 0.4


def test_the_process_that_used_most_is_named(busy: list[int]) -> None:
    """By its name and number, without its arguments; none is where it does not matter."""
    before = {pid: clock for pid, clock in process_clocks().items() if pid in busy}
    time.sleep(0.5)
    after = {pid: clock for pid, clock in process_clocks().items() if pid in busy}
    assert set(before) == set(after) == set(busy)
    said = busiest(before, after, 0.5)
    assert said.startswith("most of it 'python")
    assert any(f"process {pid}: " in said for pid in busy)
    assert "import" not in said
    assert busiest(before, after, 1e6) == ""
    assert busiest({}, {}, 0.0) == ""
    assert os.getpid() not in process_clocks()


def test_a_disturbed_part_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first quiet attempt counts; there are few of each part, and few in all."""
    monkeypatch.setattr("analyzer.host.measure.PAUSE", 0.0)
    said: list[str] = []
    parts = _Parts(lambda _, what: said.append(what), accept_disturbed=False)
    answers = iter([("a", "loud"), ("b", "")])
    assert parts.repeated("speeds", lambda: next(answers)) == "b"
    assert parts.disturbed == ""
    assert said == ["speed of each core, again: loud"]
    tries: list[str] = []

    def loud() -> tuple[str, str]:
        tries.append("x")
        return "a", "loud"

    with pytest.raises(DeploymentError, match="while measuring 'timers', loud"):
        parts.repeated("timers", loud)
    assert len(tries) == 1 + REPEATS
    for name in PARTS:
        with pytest.raises(DeploymentError):
            parts.repeated(name, loud)
    assert len(tries) == 1 + REPEATS + len(PARTS) + MAX_REPEATS - 1 - REPEATS
    # Who wants it all the same gets the first attempt.
    kept = _Parts(lambda *_: None, accept_disturbed=True)
    assert kept.repeated("timers", loud) == "a"
    assert kept.disturbed == "timers: loud"


@pytest.mark.parametrize(
    ("errors", "doubtful"),
    [
        ((-0.96, -0.94, -0.96), True),
        ((0.06, -0.20, -0.03), False),  # the worst of an idle machine
        ((0.5, 0.0, 0.0), True),
        ((), False),
    ],
)
def test_a_profile_has_to_explain_its_own_measurement(errors: tuple[float, ...], *, doubtful: bool) -> None:
    """Only the errors of the processor it chose count."""
    whole = profile()
    others = {"ps": (-0.96, -0.94, -0.96), "traced": (2.0, 2.0)}
    known = replace(whole, scheduler=replace(whole.scheduler, errors={**others, "fitted": errors}))
    assert bool(known.warning) is doubtful
    if doubtful:
        assert "simulated time per round" in known.warning
        assert "'mup host'" in known.warning


def test_a_stored_profile_of_an_older_version_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that says nothing of disturbances is read; if it fails the check, explorations say so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = save_profile(replace(bad(profile()), identity=this_machine()))
    data = json.loads(path.read_text())
    del data["disturbed"]
    path.write_text(json.dumps(data))
    known, reason = current_profile()
    assert known.measured
    assert reason == ""
    text = io.StringIO()
    ensure_profile(Console(file=text, width=400), wanted=True)
    assert (
        "is doubtful (its own check, simulated time per round, is off by -96%, -94%, -96%" in text.getvalue()
    )


def test_models_carry_the_doubt() -> None:
    """A model on a doubtful machine says so wherever it goes; one on a good machine, or on none, does not."""

    def told(model: Model) -> str:
        text = io.StringIO()
        report_host_warning(Console(file=text, width=400), model)
        return text.getvalue()

    plain = Model(
        name="m", tasks=(), processors=(Processor(name="host", cores=2),), provenance={"speed": 1000.0}
    )
    assert told(plain) == ""
    assert told(on_host(plain, profile())) == ""
    assert "is doubtful" in told(on_host(plain, bad(profile())))
    disturbed = replace(profile(), disturbed="timers: other programs used 40 % of the machine")
    assert "timers: other programs used 40 %" in told(on_host(plain, disturbed))
