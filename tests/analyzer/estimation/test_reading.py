"""Every format of observations is recognised, and all else is refused with its place."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from analyzer.estimation.event_logs import read_event_logs
from analyzer.estimation.methods import Observations
from analyzer.estimation.reading import grouped, read_observations
from analyzer.estimation.samples import ArrivalSamples, Trace, Windows
from mup.errors import MupError, UsageError
from mup.events.record import Event
from mup.events.settings import LogSettings
from mup.events.writer import EventWriter


def read(tmp_path: Path, text: str, *, threads: float = math.inf) -> Observations:
    """Write a file and read it."""
    path = tmp_path / "data"
    path.write_text(text, encoding="utf-8")
    return read_observations(path, threads=threads)


def test_arrival_samples(tmp_path: Path) -> None:
    """Columns may come in any order; moments, if given, say the rates."""
    found = read(tmp_path, "time,class,n_a,n_b,response_time\n0,a,1,0,0.5\n\n4, b ,2,1,1.5\n")
    assert isinstance(found, ArrivalSamples)
    assert found.classes == ("a", "b")
    assert found.kind.tolist() == [0, 1]
    assert found.seen.tolist() == [[1, 0], [2, 1]]
    assert found.rates == pytest.approx([0.25, 0.25])


@pytest.mark.parametrize(
    ("threads", "starts"), [pytest.param(1, [0, 3], id="queues"), pytest.param(2, [0, 1], id="at once")]
)
def test_requests(tmp_path: Path, threads: int, starts: list[float]) -> None:
    """Rows in any order become a trace; a queue in front of the pool is left out."""
    found = read(tmp_path, "arrival,departure,class\n1,4,b\n0,3,a\n", threads=threads)
    assert isinstance(found, Trace)
    assert found.kind.tolist() == [0, 1]
    assert found.start.tolist() == starts


def test_windows(tmp_path: Path) -> None:
    """Response times of windows are optional, and may be empty where nothing completed."""
    found = read(tmp_path, "utilization,throughput_a,throughput_b,response_time_a\n0.5,1,2,\n0.6,1,3,0.2\n")
    assert isinstance(found, Windows)
    assert found.throughput.tolist() == [[1, 2], [1, 3]]
    assert np.isnan(found.response_time[:, 1]).all()
    assert found.response_time[1, 0] == 0.2


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("1700000000.500 0.200 GET /search?q=1 200", id="nginx"),
        pytest.param("1700000000.500000 200000 GET /search 200", id="apache"),
    ],
)
def test_access_log(tmp_path: Path, line: str) -> None:
    """The class is method and path; a duration without a point is in microseconds."""
    found = read(tmp_path, f"{line}\n1700000000.600 0.100 POST /order 201\n")
    assert isinstance(found, Trace)
    assert found.classes == ("GET /search", "POST /order")
    assert found.response_time == pytest.approx([0.2, 0.1], abs=1e-6)
    assert found.start == pytest.approx([0.0, 0.2], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("a,b\n1,2\n", "no columns of this form: a, b", id="other columns"),
        pytest.param("arrival,departure,class\n", "has a header and nothing else", id="no rows"),
        pytest.param(
            "arrival,departure,class\n1,x,a\n",
            "line 2, column 'departure': must be a number, got 'x'",
            id="text",
        ),
        pytest.param("arrival,departure,class\n2,1,a\n", "line 2, column 'departure'", id="backwards"),
        pytest.param("arrival,departure,class\n2,3\n", "line 2: has 2 columns, the header 3", id="short row"),
        pytest.param("arrival,departure,class\n2,3,\n", "line 2, column 'class': is empty", id="no class"),
        pytest.param(
            "class,response_time,n_a\nb,1,1\n",
            "line 2, column 'class': there is no column 'n_b'",
            id="unseen",
        ),
        pytest.param(
            "class,response_time,n_a\na,1,0\n",
            "must be >= 1: the request itself counts as seen",
            id="not itself",
        ),
        pytest.param("class,response_time,n_a\na,1,1.5\n", "must be a whole number, got 1.5", id="half"),
        pytest.param("class,response_time,n_a\na,-1,1\n", "must be >= 0, got -1", id="negative"),
        pytest.param("class,response_time,n_a\na,inf,1\n", "must be finite", id="infinite"),
        pytest.param("class,response_time,n_a,n_a\na,1,1,1\n", "column 'n_a' comes twice", id="twice"),
        pytest.param("class,response_time,n_a,m\na,1,1,1\n", "unknown column 'm'", id="unknown"),
        pytest.param("utilization,throughput_a\n1.5,1\n", "must be >= 0 and <= 1, got 1.5", id="percent"),
        pytest.param("1700000000 1 GET / 200\n", "moments are whole seconds", id="whole seconds"),
        pytest.param(
            '::1 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 5\n',
            "common log format",
            id="common log",
        ),
        pytest.param(
            "1700000000.1 0.1 GET / 200\nwhat\nwhat\n",
            "2 of 3 lines are not in the format; line 2",
            id="damaged",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    """A file that cannot be used says where and why."""
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert str(tmp_path / "data") in caught.value.where


def _worker(path: Path, *events: tuple[Event, int, float, int], sample: int = 1) -> None:
    header = {"role": "worker", "service": "A", "replica": 0, "worker": 0, "pid": 1}
    log = EventWriter(path, header, LogSettings(sample=sample))
    for event, request, milliseconds, seq in events:
        name = log.name("A/epA/" if event is Event.BEGIN else "B/epB/")
        log.write(
            event, request, 1, seq=seq, site=0, name=name, flags=0, time=round(milliseconds * 1e6), cpu=0
        )
    log.close()


def test_event_logs(tmp_path: Path) -> None:
    """An execution is in process from begin to done, but not while in ``get``; what never ended is left out."""
    _worker(
        tmp_path / "A.0.w0.mlog",
        (Event.BEGIN, 7, 10, 0),
        (Event.COMM_START, 7, 12, 1),
        (Event.CONTACT_DEST, 7, 12, 1),
        (Event.WAIT_START, 7, 13, 1),
        (Event.COMM_FINISH, 7, 20, 1),
        (Event.WAIT_END, 7, 20, 1),
        (Event.END, 7, 25, 0),
        (Event.DONE, 7, 26, 0),
        (Event.BEGIN, 8, 30, 0),
    )
    found = read_observations(tmp_path, threads=math.inf)
    assert isinstance(found, Trace)
    assert found.classes == ("A/epA/",)
    assert found.start == pytest.approx([0.0, 0.010])
    assert found.end == pytest.approx([0.003, 0.016])
    with pytest.raises(UsageError, match="no requests of a service 'B'"):
        read_event_logs(tmp_path, ["B"])


def test_sampled_event_logs_are_refused(tmp_path: Path) -> None:
    """What shared the cores with a request is not in a sample."""
    _worker(tmp_path / "A.0.w0.mlog", (Event.BEGIN, 7, 10, 0), (Event.DONE, 7, 26, 0), sample=10)
    with pytest.raises(MupError, match="only a sample"):
        read_event_logs(tmp_path)


def test_classes_are_put_together(tmp_path: Path) -> None:
    """The first expression that fits names the group; what was seen is summed up."""
    data = read(tmp_path, "class,response_time,n_x1,n_x2,n_y\nx1,1,1,2,0\ny,1,0,3,1\n")
    found = grouped(data, {"x": "^x"})
    assert isinstance(found, ArrivalSamples)
    assert found.classes == ("x", "y")
    assert found.seen.tolist() == [[3, 0], [3, 1]]
    with pytest.raises(UsageError, match="fits none"):
        grouped(data, {"x": "^x", "z": "x1"})
    with pytest.raises(UsageError, match="no regular expression"):
        grouped(data, {"x": "("})
