"""Other tools get the same story from a log as mup does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mup.cli.main import main
from mup.events.ids import child_id
from mup.events.record import CENSORED, FAILED, Event
from mup.events.sites import Site
from mup.events.writer import EventWriter

SECOND = 10**9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One request of A that calls B, which fails; the log of B is cut off."""
    caller = EventWriter(
        tmp_path / "A.0.w0.mlog", {"role": "worker", "service": "A", "replica": 0, "worker": 0}
    )
    me, called = caller.name("A/a/"), caller.name("B/b/")
    site = caller.site(Site("a.py", "A.a", 1, 7, 5))
    child = child_id(5, 1)
    for event, time, seq, name, flags in (
        (Event.BEGIN, 1, 0, me, 0),
        (Event.COMM_START, 2, 1, called, 0),
        (Event.CONTACT_DEST, 3, 1, called, 0),
        (Event.COMM_FINISH, 8, 1, called, CENSORED),
        (Event.END, 9, 0, me, 0),
        (Event.DONE, 10, 0, me, 0),
    ):
        caller.write(event, 5, 7, seq, site if seq else 0, name, flags, time * SECOND, 100 + time)
    caller.close()
    callee = EventWriter(
        tmp_path / "B.0.w0.mlog", {"role": "worker", "service": "B", "replica": 0, "worker": 0}
    )
    me = callee.name("B/b/")
    for event, flags in ((Event.BEGIN, 0), (Event.ERROR, FAILED), (Event.DONE, FAILED), (Event.BEGIN, 0)):
        callee.write(event, child, 7, name=me, flags=flags)
    callee.close()
    with callee.path.open("r+b") as file:
        file.truncate(callee.path.stat().st_size - 1)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Run the command and return what it prints."""
    with pytest.raises(SystemExit) as ended:
        main(["log", *words])
    assert ended.value.code == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_json_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every record is one line with names, sites and flags spelled out."""
    out, err = run(capsys, str(folder), "--jsonl")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["event"] for line in lines[:4]] == ["begin", "commStart", "contactDest", "commFinish"]
    finish = lines[3]
    clock = finish.pop("unix_ns") - 8 * SECOND
    assert clock != 0
    assert finish["pid"] > 0
    del finish["pid"]
    assert finish == {
        "event": "commFinish",
        "time_ns": 8 * SECOND,
        "cpu_ns": 108,
        "role": "worker",
        "service": "A",
        "replica": 0,
        "worker": 0,
        "request": f"{5:016x}",
        "trace": f"{7:016x}",
        "name": "B/b/",
        "seq": 1,
        "site": {"file": "a.py", "function": "A.a", "ordinal": 1, "line": 7},
        "flags": ["censored"],
    }
    assert len(lines) == 9
    assert "B.0.w0.mlog is cut off" in err


def test_spans_join(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The callee's span hangs below the caller's, though each log is converted by itself."""
    out, _ = run(capsys, str(folder), "--otlp")
    spans: dict[str, dict[str, Any]] = {}
    for line in out.splitlines():
        (resource,) = json.loads(line)["resourceSpans"]
        service = resource["resource"]["attributes"][0]["value"]["stringValue"]
        for span in resource["scopeSpans"][0]["spans"]:
            spans[f"{service}:{span['name']}"] = span
    assert set(spans) == {"A:A/a/", "A:B/b/", "B:B/b/"}
    assert spans["A:B/b/"]["parentSpanId"] == spans["A:A/a/"]["spanId"]
    assert spans["B:B/b/"]["parentSpanId"] == spans["A:B/b/"]["spanId"]
    assert {span["traceId"] for span in spans.values()} == {f"{7:032x}"}
    call = spans["A:B/b/"]
    assert int(call["endTimeUnixNano"]) - int(call["startTimeUnixNano"]) == 6 * SECOND
    assert spans["B:B/b/"]["status"] == {"code": 2}
    assert "status" not in call


def test_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an option the command says what is in the logs."""
    out, _ = run(capsys, str(folder / "A.0.w0.mlog"), "--json")
    (log,) = json.loads(out)["logs"]
    assert log["records"] == 6
    assert log["seconds"] == 9.0
    assert log["executions"] == {"A/a/": 1}
    text, _ = run(capsys, str(folder / "A.0.w0.mlog"), "--details")
    assert "6 records in 9.0 s" in text


def test_folder_without_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without logs is an error, not an empty answer."""
    with pytest.raises(SystemExit) as ended:
        main(["log", str(tmp_path)])
    assert ended.value.code == 2
    assert "no event logs" in capsys.readouterr().err
