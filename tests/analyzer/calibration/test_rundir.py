"""Run directories: what is stored, what older ones mean, and when several can be one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analyzer.calibration.rundir import (
    PartInfo,
    PathUse,
    ProcessUse,
    RunInfo,
    VoidWindow,
    Width,
    Window,
    latest_run,
    latest_runs,
    load_info,
    load_run,
    merge_runs,
    new_run_directory,
    stale_endpoints,
)
from mup.errors import LogError, StaleLogError
from mup.events.record import Event
from mup.events.writer import EventWriter

SECOND = 10**9


def log(folder: Path, name: str = "A.0.w0.mlog") -> None:
    """Write a log with one event."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = EventWriter(folder / name, {"role": "worker", "service": "A", "replica": 0, "worker": 0})
    writer.write(Event.BEGIN, 1, 1)
    writer.close()


def stored(directory: Path, **fields: Any) -> Path:
    """Write a run directory with a log."""
    log(directory)
    parts = [PartInfo(windows=[Window(0, SECOND)])]
    RunInfo(**{"project": "shop", "parts": parts, **fields}).save(directory)
    return directory


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """Every field survives; parts know their folder and its logs."""
    window = Window(
        5, 7, phase="cold", think_scale=0.5, speed=1000.0, jump=0.01, monitored=5.0, cpu={"7": 0.5}, cycles=3
    )
    use = PathUse(
        path="respond (3)", executions=2, hot=Width(mean=1, half_width=None, executions=2, batches=1)
    )
    info = RunInfo(
        project="shop",
        complete=False,
        parts=[
            PartInfo(windows=[window], processes=[ProcessUse(role="front", pid=7, cpu=0.5, idle_rate=0.1)]),
            PartInfo(folder="part-2", void=[VoidWindow(window=window, reason="jump")]),
        ],
        paths={"A/x/": [use]},
        unmatched={"A/x/": 1},
        warnings=["careful"],
    )
    log(tmp_path)
    log(tmp_path / "part-2", "B.0.w0.mlog")
    info.save(tmp_path)
    run = load_run(tmp_path)
    assert run.info == info
    assert [[found.path.name for found in part.logs] for part in run.parts] == [
        ["A.0.w0.mlog"],
        ["B.0.w0.mlog"],
    ]
    assert run.parts[1].path == tmp_path / "part-2"
    assert run.windows == (window,)
    assert len(run.logs) == 2
    assert run.directories == (tmp_path,)
    assert [p.name for p in tmp_path.glob("run.json*")] == ["run.json"]


def test_means_over_windows_are_weighed_by_what_happened_in_them() -> None:
    """Think lateness from rounds with think times, response time from cold ones, foreign CPU by length."""
    windows = [
        Window(0, SECOND, think_scale=0, cycles=90, response_time=0.01, foreign=0.0),
        Window(0, 3 * SECOND, phase="cold", cycles=1, response_time=0.02, think_lateness=0.4, foreign=0.04),
        Window(0, SECOND, phase="cold", cycles=3, response_time=0.04, think_lateness=0.0),
        Window(0, SECOND, phase="burst", clients=4, cycles=50, response_time=9.0, think_lateness=9.0),
    ]
    info = RunInfo(project="shop", parts=[PartInfo(windows=windows[:1]), PartInfo(windows=windows[1:])])
    assert info.response_time == pytest.approx(0.035)
    assert info.think_lateness == pytest.approx(0.1)
    assert info.foreign_cpu == pytest.approx(0.03)
    assert info.observed_seconds == pytest.approx(6)


OLD = {
    "format": "mup-run/1",
    "kind": "explore",
    "project": "shop",
    "created": "2026-01-02T03:04:05+0000",
    "cores": 2,
    "client": "User",
    "clients": 1,
    "seed": 3,
    "think_scale": 0.1,
    "stop": "time is up",
    "foreign_cpu": 0.01,
    "think_lateness": 0.001,
    "response_time": 0.02,
    "windows": [{"start": 10, "end": 20}, {"start": 30, "end": 50}],
    "fingerprints": {"A/x/": "abc"},
    "deployment": {"A": {"pool": 4, "replicas": 1}},
    "databases": {"db": {"embedded": True, "colocated": True}},
    "processes": [{"role": "front", "service": "A", "pid": 7, "cpu": 0.5, "idle_rate": 0.1}],
    "widths": {"A/x/": {"mean": 0.01, "half_width": 0.001, "executions": 9, "batches": 4}},
    "replaced": ["A"],
}


def test_older_runs_are_one_long_round(tmp_path: Path) -> None:
    """Format 1 had totals only: one part, one window with all the processor time."""
    log(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(OLD))
    run = load_run(tmp_path)
    (part,) = run.parts
    (window,) = part.windows
    assert (window.start, window.end, window.phase, window.think_scale) == (10, 50, "hot", 0.1)
    assert window.cpu == {"7": 0.5}
    assert window.speed is None
    assert part.processes[0].idle_rate == 0.1
    assert part.databases["db"].embedded
    assert part.info.replaced == ["A"]
    assert run.info.complete
    assert (run.info.seed, run.info.stop, run.info.client) == (3, "time is up", "User")
    assert run.info.think_lateness == 0.001
    assert run.info.response_time == 0.02
    assert run.info.foreign_cpu == 0.01
    assert run.info.widths["A/x/"].executions == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "broken"),
        ("[]", "broken"),
        ('{"project": 1}', "broken"),
        ('{"format": "mup-run/99", "project": "x"}', "format 'mup-run/99'"),
        ('{"format": "mup-run/1", "windows": [{"start": 1}]}', "broken"),
        (
            '{"project": "x", "parts": [{"windows": [{"start": 1, "end": 2, "phase": "lukewarm"}]}]}',
            "lukewarm",
        ),
    ],
)
def test_broken_descriptions_are_one_message(tmp_path: Path, text: str, message: str) -> None:
    """The file is named, and what to do about it."""
    log(tmp_path)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(LogError, match=message) as caught:
        load_run(tmp_path)
    assert caught.value.where.endswith("run.json")
    assert "mup explore" in caught.value.hint


def test_a_killed_process_may_leave_an_empty_log(tmp_path: Path) -> None:
    """In a run that was broken off that is no damage; in a complete one it is."""
    stored(tmp_path, complete=False)
    (tmp_path / "B.0.w0.mlog").write_bytes(b"")
    assert len(load_run(tmp_path).logs) == 1
    stored(tmp_path / "other")
    (tmp_path / "other" / "B.0.w0.mlog").write_bytes(b"")
    with pytest.raises(LogError, match="empty"):
        load_run(tmp_path / "other")


def test_the_latest_run_is_the_newest_that_observed_anything(tmp_path: Path) -> None:
    """Runs that were killed before their first round, and broken ones, are passed over."""
    with pytest.raises(LogError, match="no explore run"):
        latest_run(tmp_path)
    first = stored(tmp_path / "20260101-000000-explore")
    second = stored(tmp_path / "20260102-000000-explore", complete=False)
    stored(tmp_path / "20260103-000000-explore", complete=False, parts=[PartInfo()])
    stored(tmp_path / "20260104-000000-load")
    (stored(tmp_path / "20260105-000000-explore") / "run.json").write_text("{")
    assert latest_run(tmp_path) == second
    (second / "run.json").unlink()
    assert latest_run(tmp_path) == first


def test_a_run_of_void_rounds_is_not_no_run(tmp_path: Path) -> None:
    """A user who has explored in vain is told which run that was, why it does not count, and how to go on."""
    window = Window(0, 10**9)
    reasons = ["2 of 3 cycles failed", "other programs used 9 %", "2 of 3 cycles failed"]
    void = [VoidWindow(window=window, reason=reason) for reason in reasons]
    stored(tmp_path / "20260101-000000-explore", complete=False, parts=[PartInfo(void=void)])
    with pytest.raises(LogError, match=r"no round .* 2 of 3 cycles failed \(2 of 3\)") as caught:
        latest_run(tmp_path)
    assert caught.value.where.endswith("20260101-000000-explore")
    assert "--resume" in caught.value.hint
    first = stored(tmp_path / "20250101-000000-explore")
    assert latest_run(tmp_path) == first


def test_run_directories_do_not_collide(tmp_path: Path) -> None:
    """Runs started within one second get different names, in order."""
    made = [new_run_directory(tmp_path) for _ in range(3)]
    assert len(set(made)) == 3


def width(mean: float, half: float | None, executions: int) -> Width:
    return Width(mean=mean, half_width=half, executions=executions, batches=3)


def test_merged_runs_have_the_parts_of_all(tmp_path: Path) -> None:
    """Parts keep their folders; widths are those of independent samples; naming one twice changes nothing."""
    paths = [
        stored(
            tmp_path / name,
            widths={"A/x/": width(mean, 0.003, count)},
            paths={"A/x/": [PathUse(path="respond (1)", executions=count)]},
            complete=complete,
        )
        for name, mean, count, complete in (("one", 0.01, 30, True), ("two", 0.02, 10, False))
    ]
    run = merge_runs([*paths, paths[0]])
    assert [part.path for part in run.parts] == paths
    assert run.path == paths[0]
    assert run.directories == tuple(paths)
    assert len(run.windows) == len(run.info.windows) == 2
    assert not run.info.complete
    merged = run.info.widths["A/x/"]
    assert merged.mean == pytest.approx(0.0125)
    assert merged.half_width == pytest.approx((0.75**2 + 0.25**2) ** 0.5 * 0.003)
    assert (merged.executions, merged.batches) == (40, 6)
    assert run.info.paths["A/x/"][0].executions == 40


def test_one_unknown_width_makes_the_merged_one_unknown(tmp_path: Path) -> None:
    """An interval that ignored one of the runs would be too narrow."""
    one = stored(tmp_path / "one", widths={"A/x/": width(1, 0.1, 5)})
    two = stored(tmp_path / "two", widths={"A/x/": width(1, None, 5)})
    assert merge_runs([one, two]).info.widths["A/x/"].half_width is None


@pytest.mark.parametrize(
    ("field", "message", "kind"),
    [
        ({"project": "other"}, "project 'other', not 'shop'", LogError),
        ({"client": "Other"}, "client is 'Other'", LogError),
        ({"hostname": "elsewhere"}, "another machine", LogError),
        ({"cpu_model": "Z80"}, "another machine", LogError),
        ({"fingerprints": {"A/x/": "def"}}, "source of A/x/", StaleLogError),
        ({"fingerprints": {"A/x/": "abc", "A/y/": "new"}}, "source of A/y/", StaleLogError),
    ],
)
def test_runs_that_do_not_belong_together(
    tmp_path: Path, field: dict[str, Any], message: str, kind: type[Exception]
) -> None:
    """Another project, client, machine or source: refused with what differs."""
    common = {
        "client": "User",
        "hostname": "here",
        "cpu_model": "6502",
        "fingerprints": {"A/x/": "abc"},
    }
    one = stored(tmp_path / "one", **common)
    two = stored(tmp_path / "two", **{**common, **field})
    with pytest.raises(kind, match=message):
        merge_runs([one, two])


def test_runs_of_several_versions_stand_for_what_has_not_changed(tmp_path: Path) -> None:
    """Given the current source, each run counts for the endpoints it measured as they are now."""

    def explored(name: str, x: str, y: str, mean: float) -> Path:
        widths = {"A/x/": width(mean, 0.1, 10), "A/y/": width(mean, 0.1, 10)}
        return stored(tmp_path / name, fingerprints={"A/x/": x, "A/y/": y}, widths=widths)

    paths = [explored("new", "x2", "y1", 2.0), explored("old", "x1", "y1", 4.0)]
    run = merge_runs(paths, {"A/x/": "x2", "A/y/": "y1"})
    assert [part.outdated for part in run.parts] == [frozenset(), {"A/x/"}]
    assert run.info.fingerprints == {"A/x/": "x2", "A/y/": "y1"}
    assert (run.info.widths["A/x/"].mean, run.info.widths["A/y/"].mean) == (2.0, 3.0)
    stale = merge_runs(paths, {"A/x/": "x3", "A/y/": "y1"})
    assert stale_endpoints(stale.info.fingerprints, {"A/x/": "x3", "A/y/": "y1"}) == {
        "A/x/": "changed since the log was written"
    }


def test_a_run_of_changes_brings_those_before_it(tmp_path: Path) -> None:
    """The newest run is read with the runs it adds to; without them it says too little."""
    first = stored(tmp_path / "20260101-000000-explore")
    second = stored(tmp_path / "20260102-000000-explore", since=[first.name])
    assert latest_runs(tmp_path) == [second, first]
    shutil.rmtree(first)
    with pytest.raises(LogError, match="20260101-000000-explore, which is gone"):
        latest_runs(tmp_path)


def test_machines_an_older_run_does_not_know_are_not_held_against_it(tmp_path: Path) -> None:
    """Format 1 had neither host name nor processor."""
    one = stored(tmp_path / "one", hostname="here", cpu_model="6502")
    two = stored(tmp_path / "two")
    assert len(merge_runs([one, two]).parts) == 2
    assert load_info(two).hostname == ""
