"""The profile of a machine: file, messages, defaults, and the processor it stands for."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from host_profiles import STICKY, profile
from rich.console import Console
from scheduler_traces import SHORT

from analyzer.host.behaviour import AMONG_SERVICES, USUAL, behaviour
from analyzer.host.estimates import Estimate, share, typical
from analyzer.host.measure import select_scheduler
from analyzer.host.profile import (
    HostProfile,
    current_profile,
    default_path,
    default_profile,
    load_profile,
    save_profile,
    this_machine,
)
from analyzer.host.schedule import parse_trace, replay
from mup.cli.measurements import host
from mup.errors import LogError, ProjectError
from mup.lqn import Migration, Turns


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the profile of this machine out of the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_file_round_trip(tmp_path: Path) -> None:
    """Every field survives a file, what a trace showed included."""
    seen = behaviour(replay(parse_trace(SHORT), (0, 1)), (11, 12, 13), [(1.0, 1.005)])
    path, bare = tmp_path / "p.json", profile()
    whole = replace(bare, scheduler=replace(bare.scheduler, behaviour=seen, source="trace"))
    assert save_profile(whole, path) == path
    assert load_profile(path) == whole
    assert path.read_text().startswith('{\n "format": "mup-host/1"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "not a host profile"),
        ("[]", "its format must be 'mup-host/1', got None"),
        ('{"format": "mup-run/2"}', "its format must be 'mup-host/1', got 'mup-run/2'"),
        ('{"format": "mup-host/1"}', "missing required field `identity`"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A file that is no profile is named, with what is wrong and what to do."""
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(LogError, match="not a host profile") as caught:
        load_profile(path)
    assert message in str(caught.value)
    assert "mup host" in caught.value.hint


def test_a_wrong_number_is_named(tmp_path: Path) -> None:
    """A field of the wrong type is named with its path."""
    data: dict[str, Any] = profile().to_json()
    data["parallel"]["mean"] = "fast"
    path = tmp_path / "p.json"
    path.write_bytes(msgspec.json.encode(data))
    with pytest.raises(LogError, match=r"\$\.parallel\.mean"):
        load_profile(path)


def test_sticky_cores_need_a_migration() -> None:
    """A profile of sticky cores that does not say how threads move is refused."""
    data = profile().to_json()
    data["scheduler"]["migration"] = None
    with pytest.raises(LogError, match="no migration"):
        HostProfile.from_json(data)


def test_no_file_says_how_to_get_one() -> None:
    """Without a profile the error names the place and the command."""
    with pytest.raises(ProjectError, match="cannot read the host profile") as caught:
        load_profile()
    assert caught.value.where == str(default_path())
    assert "mup host" in caught.value.hint


def test_a_profile_of_another_machine_is_not_this_machines() -> None:
    """In this machine's place it is refused with the differences; named explicitly it is read."""
    path = save_profile(profile())
    with pytest.raises(ProjectError, match="of another machine: hostname 'elsewhere' instead of"):
        load_profile()
    assert load_profile(path).identity.hostname == "elsewhere"


def test_current_profile_falls_back_and_says_why() -> None:
    """Without a usable profile an ideal machine stands in, marked as not measured, with the reason."""
    stand_in, reason = current_profile()
    assert not stand_in.measured
    assert stand_in.cores == this_machine().cores
    assert "cannot read the host profile" in reason
    save_profile(replace(profile(), identity=this_machine()))
    found, reason = current_profile()
    assert found.measured
    assert reason == ""


def test_processors() -> None:
    """A sticky machine is a processor with migration, an ideal or unmeasured one shares its cores."""
    sticky, ideal, unknown = (
        p.processor("host") for p in (profile(), profile(migration=None), default_profile(4))
    )
    assert (sticky.name, sticky.cores, sticky.discipline, sticky.migration) == ("host", 2, "cores", STICKY)
    assert (ideal.discipline, ideal.migration) == ("ps", None)
    assert (unknown.discipline, unknown.cores, unknown.speed) == ("ps", 4, 1.0)


def test_turns_of_processors() -> None:
    """Threads take turns as traced, as usual where that is not known, and not at all on an ideal machine."""
    seen = behaviour(replay(parse_trace(SHORT), (0, 1)), (11, 12, 13), [(1.0, 1.005)])
    untraced = profile()
    traced = replace(untraced, scheduler=replace(untraced.scheduler, behaviour=seen))
    assert untraced.processor("host").turns == USUAL
    assert traced.processor("host").turns == Turns(quantum=USUAL.quantum, preempt=1.0)
    assert profile(migration=None).processor("host").turns is None
    assert default_profile(4).processor("host").turns is None


TRACED, FITTED = Migration(wake=0.3, steal=0.2, balance=50.0), Migration(wake=0.1)


@pytest.mark.parametrize(
    ("idle", "errors", "expected"),
    [
        pytest.param(0.02, (0.2, 0.1, 0.1), ("ps", None, "trace"), id="work-conserving"),
        pytest.param(0.2, (0.2, 0.05, 0.03), ("cores", TRACED, "trace"), id="traced"),
        pytest.param(0.2, (0.2, 0.15, 0.03), ("cores", FITTED, "fit"), id="trace-explains-nothing"),
        pytest.param(None, (0.03, None, 0.02), ("ps", None, "fit"), id="ideal-as-good"),
        pytest.param(None, (0.2, None, 0.02), ("cores", FITTED, "fit"), id="fitted"),
    ],
)
def test_selection(
    idle: float | None, errors: tuple[float | None, ...], expected: tuple[object, ...]
) -> None:
    """Ideal below 3 % idling beside waiting work; else traced; else what explains the ring."""
    named = {k: v for k, v in zip(("ps", "traced", "fitted"), errors, strict=True) if v is not None}
    traced = None if idle is None else TRACED
    assert select_scheduler(idle_while_waiting=idle, traced=traced, fitted=FITTED, errors=named) == expected


def test_a_stutter_does_not_spoil_a_figure() -> None:
    """One wild sample among nine moves neither the median nor its interval far."""
    values = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 50.0]
    found = typical(values)
    assert found.mean == 1.0
    assert found.half is not None
    assert found.half < 0.03


def test_median_interval_covers() -> None:
    """Order statistics 2 and 8 of nine enclose the median with 96 %, 1 and 9 would with 99.6 %."""
    assert typical([float(v) for v in range(1, 10)]) == Estimate(5.0, 3.0)
    assert typical([3.0, 1.0]) == Estimate(2.0, 1.0)
    assert typical([3.0]) == Estimate(3.0, None)


def test_share_of_nothing_is_unknown() -> None:
    """A share of no cases has no interval; one of all cases still has one."""
    assert share(0, 0).half is None
    whole = share(10, 10)
    assert whole.mean == 1.0
    assert whole.half is not None
    assert whole.half > 0.1


def test_the_processor_is_never_slower_when_busier() -> None:
    """Factors that rise with the utilization are chance: neighbours are averaged; the last one is the unit."""
    levels = ((0.1, 1.2), (0.4, 1.3), (0.6, 1.05), (0.8, 1.08), (0.95, 1.0))
    measured = replace(profile(), idling=tuple((level, Estimate(factor, 0.1)) for level, factor in levels))
    found = measured.processor("host").idling
    assert [level for level, _ in found] == [0.1, 0.4, 0.6, 0.8, 0.95]
    assert [factor for _, factor in found] == pytest.approx([1.25, 1.25, 1.065, 1.065, 1.0])
    assert profile().processor("host").idling == ()


def test_two_traced_cores_move_threads_as_services_do() -> None:
    """The ring tells how threads move on other machines, and where a fit stands for a trace."""
    bare = profile()
    traced = replace(bare, scheduler=replace(bare.scheduler, source="trace"))
    found = traced.processor("host").migration
    assert found is not None
    assert found.by_utilization == AMONG_SERVICES
    assert replace(found, by_utilization=()) == STICKY
    assert bare.processor("host").migration == STICKY
    four = replace(profile(cores=4), scheduler=traced.scheduler)
    assert four.processor("host").migration == STICKY
    assert "models of services have wake and steal by utilization" in printed(traced)
    assert "by utilization" not in printed(bare) + printed(four)


def printed(one: HostProfile) -> str:
    """Return what `mup host` says of a profile."""
    text = io.StringIO()
    host._print(Console(file=text, width=400), one)
    return text.getvalue()
