"""Queue lengths and busy times are what the logs of visits say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from analyzer.learning.trace_files import read_traces
from analyzer.learning.visits import Run, queue_lengths, traces_of_runs, visits_of_logs
from mup.cli.main import main
from mup.errors import LogError, UsageError
from mup.events.record import Event
from mup.events.settings import LogSettings
from mup.events.writer import EventWriter

MOMENTS = np.arange(5) * 1.0


def test_levels_and_busy_servers_of_one_station() -> None:
    """Two servers, three clients from 0.5 to 1: the third adds no busy time."""
    x, busy = queue_lengths([(-1.0, 1.0), (0.0, 2.0), (0.5, math.inf)], MOMENTS, 2)
    assert x.tolist() == [2, 2, 1, 1, 1]
    assert busy == pytest.approx([0, 2, 4, 5, 6])


def test_clients_without_a_visit_are_at_the_rest() -> None:
    run = Run(trace="a", clients=3, visits={"S": [(0.0, 1.5), (2.5, 3.5)]})
    traces = traces_of_runs([run], dt=1.0, seconds=4.0, servers={"home": math.inf, "S": 1}, rest="home")
    assert traces.x[0, :, 0].tolist() == [2, 2, 3, 2, 3]
    assert traces.x.sum(axis=2).tolist() == [[3] * 5]
    assert traces.busy is not None
    assert traces.busy[0, -1] == pytest.approx([12 - 2.5, 2.5])


def test_runs_of_a_trace_are_averaged() -> None:
    one = Run(trace="a", clients=None, visits={"S": [(0.0, 9.0)]})
    two = Run(trace="a", clients=None, visits={"S": []})
    traces = traces_of_runs([one, two], dt=1.0, seconds=2.0, servers={"S": 1})
    assert traces.x.tolist() == [[[0.5], [0.5], [0.5]]]


@pytest.mark.parametrize(
    ("run", "rest", "message"),
    [
        pytest.param(
            Run(trace="a", clients=None, visits={"S": []}), "home", "how many clients", id="unknown"
        ),
        pytest.param(
            Run(trace="a", clients=1, visits={"S": [(0, 2), (1, 2)]}),
            "home",
            "more than its 1 clients",
            id="many",
        ),
        pytest.param(
            Run(trace="a", clients=1, visits={"T": []}), None, "no servers given for T", id="station"
        ),
        pytest.param(Run(trace="a", clients=1, visits={}), "T", "no servers given for the rest", id="rest"),
    ],
)
def test_what_is_missing_is_said(run: Run, rest: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        traces_of_runs([run], dt=1.0, seconds=4.0, servers={"home": math.inf, "S": 1}, rest=rest)


def test_the_command_reads_access_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("trace,run,station,start,duration,clients\na,1,S,0,1.5,2\na,1,S,0.5,,2\na,2,S,0,9,2\n")
    out = tmp_path / "t.npz"
    arguments = ["learn", "traces", str(table), "--dt", "1", "--duration", "3", "--servers", "home=inf"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--servers", "S=1", "--rest", "home", "-o", str(out), "--json"])
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2
    traces = read_traces(out)
    assert traces.names == ("home", "S")
    assert traces.x[0, :, 1].tolist() == [1, 1.5, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a,b\n1,2\n", "must have the columns trace, run, station, start, duration", id="columns"
        ),
        pytest.param(
            "trace,run,station,start,duration\na,1,S,x,1\n", "line 2, start: must be a number", id="number"
        ),
        pytest.param(
            "trace,run,station,start,duration\na,1,S,0,-1\n", "duration: must not be negative", id="negative"
        ),
        pytest.param("trace,run,station,start,duration\n", "has no lines", id="empty"),
    ],
)
def test_bad_tables_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    table = tmp_path / "visits.csv"
    table.write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["learn", "traces", str(table), "--servers", "S=1", "-o", str(tmp_path / "t.npz")])
    assert end.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "t.npz").exists()


def event_log(
    folder: Path,
    name: str,
    service: str,
    role: str,
    events: list[tuple[Event, int, float]],
    endpoint: str = "A/x/",
) -> None:
    writer = EventWriter(
        folder / f"{name}.mlog",
        {"role": role, "service": service, "replica": 0, "worker": 0, "pid": 1},
        LogSettings(sample=1),
    )
    for event, request, time in events:
        writer.write(
            event,
            request,
            1,
            seq=0,
            site=0,
            name=writer.name(endpoint),
            flags=0,
            time=round(time * 1e9),
            cpu=-1,
        )
    writer.close()


def test_event_logs_tell_visits(tmp_path: Path) -> None:
    """From the arrival at the front until the worker is done; the run begins with the first event."""
    event_log(tmp_path, "A.0.front", "A", "front", [(Event.ARRIVE, 1, 5.5), (Event.ARRIVE, 2, 6.0)])
    event_log(tmp_path, "A.0.w0", "A", "worker", [(Event.BEGIN, 1, 5.6), (Event.DONE, 1, 7.0)])
    event_log(tmp_path, "users.client", "users", "client", [(Event.BEGIN, 9, 5.0)])
    assert visits_of_logs(tmp_path) == (5.0, {"A": [(0.5, 2.0), (1.0, math.inf)]})
    assert visits_of_logs(tmp_path, by_entry=True)[1] == {"A/x/": [(0.5, 2.0), (1.0, math.inf)]}
    with pytest.raises(LogError, match="has no event logs"):
        visits_of_logs(tmp_path / "nothing")


def test_several_runs_in_the_same_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run has what was there when it began and came until the next one began; columns without servers."""
    arrivals = [(Event.ARRIVE, 1, 5.0), (Event.ARRIVE, 2, 7.5), (Event.ARRIVE, 3, 12.0)]
    event_log(tmp_path, "A.0.front", "A", "front", arrivals)
    ends = [(Event.DONE, 1, 8.0), (Event.DONE, 2, 8.5), (Event.DONE, 3, 13.5)]
    event_log(tmp_path, "A.0.w0", "A", "worker", ends)
    table = tmp_path / "runs.csv"
    table.write_text("trace,folder,begin\nb,.,11\na,.,7\n")
    out = tmp_path / "t.npz"
    with pytest.raises(SystemExit) as end:
        main(["learn", "traces", str(table), "--entries", "--dt", "1", "--duration", "3", "-o", str(out)])
    assert end.value.code == 0
    traces = read_traces(out)
    assert traces.names == ("A/x/",)
    assert traces.x[:, :, 0].tolist() == [[0, 1, 1, 0], [1, 1, 0, 0]]
    assert traces.servers is None
    table.write_text("trace,folder,begin\nb,.,noon\n")
    with pytest.raises(SystemExit) as end:
        main(["learn", "traces", str(table), "--servers", "A=1", "-o", str(out)])
    assert end.value.code == 2
    assert "line 2, begin: must be a number of seconds, got 'noon'" in capsys.readouterr().err


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    """A table of one run with 2 clients, one of which asks A, which calls B."""
    asked = [(Event.ARRIVE, 1, 5.0), (Event.DONE, 1, 8.5)]
    event_log(tmp_path, "A.0.front", "A", "front", asked)
    event_log(tmp_path, "A.0.w0", "A", "worker", [(Event.COMM_START, 1, 6.0)], "B/y/")
    event_log(tmp_path, "A.0.w1", "A", "worker", [(Event.COMM_START, 1, 8.0)], "db/find")
    event_log(tmp_path, "B.0.front", "B", "front", [(Event.ARRIVE, 2, 6.0), (Event.DONE, 2, 7.5)], "B/y/")
    table = tmp_path / "runs.csv"
    table.write_text("trace,folder,clients\na,.,2\n")
    return table


def traced(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main(["learn", "traces", *map(str, words)])
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        pytest.param(["--entries"], "A/x/ calls B/y/", id="entries"),
        pytest.param(
            ["--servers", "A=1", "--servers", "B=1", "--servers", "home=inf"], "A calls B", id="services"
        ),
    ],
)
def test_services_that_call_each_other_have_no_rest(
    layers: Path, capsys: pytest.CaptureFixture[str], options: list[str], calls: str
) -> None:
    """One of two clients is at both services: 0 at home would be wrong, and there are not too many either."""
    out = layers.parent / "t.npz"
    arguments = (layers, "--dt", "1", "--duration", "4", "-o", out, *options)
    assert traced(*arguments, "--rest", "home") == 2
    message = " ".join(capsys.readouterr().err.split())
    assert f"{calls}: a client whose request waits there for its answer is counted at both" in message
    assert "leave --rest out and learn with 'mup learn lqn'" in message
    assert not out.exists()
    assert traced(*arguments[:7], "--entries") == 0
    assert read_traces(out).x[0].T.tolist() == [[1, 1, 1, 1, 0], [0, 1, 1, 0, 0]]


def test_a_station_that_passes_requests_on_is_left_out(
    layers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the caller, a client is at one station at a time."""
    out = layers.parent / "t.npz"
    arguments = (
        layers,
        "--dt",
        "1",
        "--duration",
        "4",
        "-o",
        out,
        "--servers",
        "home=inf",
        "--servers",
        "B=1",
    )
    assert traced(*arguments, "--rest", "home", "--leave-out", "A") == 0
    assert read_traces(out).x[0].T.tolist() == [[2, 1, 1, 2, 2], [0, 1, 1, 0, 0]]
    assert traced(*arguments, "--rest", "home", "--leave-out", "a") == 2
    assert "no request visits 'a'; did you mean 'A'?" in capsys.readouterr().err


def test_access_logs_with_too_many_visits_name_both_causes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They do not tell which service calls which."""
    table = tmp_path / "visits.csv"
    table.write_text("trace,run,station,start,duration,clients\na,1,A,0,3,1\na,1,B,1,1,1\n")
    assert traced(table, "--dt", "1", "--duration", "3", "--rest", "home", "-o", tmp_path / "t.npz") == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "more than its 1 clients are seen at 1 s; is the column 'clients' too small" in message
    assert "leave --rest out" in message
