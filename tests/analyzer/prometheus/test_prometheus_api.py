"""A Prometheus server is asked, and whatever it may answer ends in numbers or in one message."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest
from aiohttp import web
from servers import Metrics, serving

from analyzer.prometheus.api import Range, query_range
from analyzer.prometheus.moments import moment
from mup.errors import UsageError

SPAN = Range(1000.0, 1240.0, 60.0)


def known() -> Metrics:
    """Two routes, one of which is new, and answers that are none."""
    return Metrics(
        series={
            "routes": [
                ({"__name__": "r", "route": "/a"}, lambda at: at / 10),
                ({"__name__": "r", "route": "/b"}, lambda at: 5.0 if at >= 1120 else None),
            ],
            "holes": [({}, lambda at: math.nan if at == 1060 else math.inf if at == 1120 else 1.0)],
        },
        answers={
            "page": web.Response(text="<html>hello</html>", content_type="text/html"),
            "list": web.Response(text="[1, 2]", content_type="application/json"),
            "broken": web.Response(text='{"data": {"resultType": "matrix", "result": [{"metric": {}}]}}'),
            "scalar": web.Response(text='{"data": {"resultType": "scalar", "result": [1, "2"]}}'),
            "histogram": web.Response(
                text='{"data": {"resultType": "matrix", "result": [{"metric": {}, "histograms": []}]}}'
            ),
            "down": web.Response(status=503, text="starting"),
            "warned": web.Response(
                text=json.dumps(
                    {
                        "warnings": ["half of the data is missing"],
                        "data": {
                            "resultType": "matrix",
                            "result": [
                                {"metric": {}, "values": [[1000, "1"], [1000.0004, "2"], [1030, "9"]]}
                            ],
                        },
                    }
                )
            ),
        },
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(known()) as at:
        yield at


def test_values_stand_at_their_moments(url: str) -> None:
    """A series that begins later has no values before; the name of the metric is no label."""
    first, second = query_range(url + "/", "routes", SPAN).series
    assert first.labels == {"route": "/a"}
    assert first.values.tolist() == [100.0, 106.0, 112.0, 118.0, 124.0]
    assert second.there.tolist() == [False, False, True, True, True]
    assert np.isnan(second.values[:2]).all()


def test_nan_is_a_value_and_no_number(url: str) -> None:
    (series,) = query_range(url, "holes", SPAN).series
    assert series.there.all()
    assert np.isfinite(series.values).tolist() == [True, False, False, True, True]


def test_values_between_the_moments_do_not_count(url: str) -> None:
    """Half a second of a millisecond does; what the server warns of is kept."""
    answer = query_range(url, "warned", SPAN)
    assert answer.series[0].values[0] == 2.0
    assert answer.series[0].there.sum() == 1
    assert answer.warnings == ("half of the data is missing",)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("sum(rate(x[1m])", "refuses 'sum.*: parse error: unclosed parenthesis"),
        ("nothing", "no series of 'nothing' in that time"),
        ("page", "what answers there is no Prometheus server"),
        ("list", "what answers there is no Prometheus server"),
        ("broken", "is not as Prometheus says it is"),
        ("scalar", "no series over time but a scalar"),
        ("histogram", "is a histogram, not a number"),
        ("down", "HTTP 503: starting"),
        ("elsewhere", r"sends to another address \(HTTP 302\), which is not followed"),
    ],
)
def test_other_answers_are_one_message(url: str, expression: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        query_range(url, expression, SPAN)
    assert caught.value.where == url


def test_a_wrong_path_is_named(url: str) -> None:
    with pytest.raises(UsageError, match="no API of Prometheus there") as caught:
        query_range(f"{url}/graph", "routes", SPAN)
    assert "in front of /api/v1" in caught.value.hint


def test_answers_are_limited_in_size_and_time(url: str) -> None:
    """A server that sends without end, or says nothing, does not hold the command."""
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        query_range(url, "endless", SPAN, largest=2**20)
    began = time.monotonic()
    with pytest.raises(UsageError, match="no whole answer within"):
        query_range(url, "slow", SPAN, seconds=0.3)
    assert time.monotonic() - began < 2
    with pytest.raises(UsageError, match="no whole answer within"):
        query_range(url, "endless", SPAN, seconds=1e-9 + 0.01, largest=2**40)


def test_a_dead_server_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UsageError, match="no Prometheus server answers: Connection refused"):
        query_range(f"http://127.0.0.1:{port}", "up", SPAN)
    with pytest.raises(UsageError, match="no Prometheus server answers"):
        query_range("http://name.invalid:9090", "up", SPAN)


def test_one_that_is_not_known_is_told_how_to_say() -> None:
    metrics = Metrics(series={"up": [({}, lambda _: 1.0)]}, token="secret")
    with serving(metrics) as url:
        with pytest.raises(UsageError, match=r"wants to know who asks \(HTTP 401\)") as caught:
            query_range(url, "up", SPAN)
        assert "--header 'Authorization:Bearer TOKEN'" in caught.value.hint
        answer = query_range(url, "up", SPAN, headers={"Authorization": "Bearer secret"})
    assert answer.series[0].values.tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("span", "says"),
    [
        ((10.0, 10.0, 1.0), "--start must be before --end"),
        ((0.0, 10.0, 0.0), "--step: must be a number of seconds > 0"),
        ((0.0, 10.0, 60.0), "there is one moment in it"),
        ((0.0, 86400.0, 1.0), "--step: 1 s makes 86401 moments, and a server answers 11000"),
    ],
)
def test_ranges_are_checked_before_anything_is_asked(span: tuple[float, float, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Range(*span)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", 5000.0),
        ("2m", 4880.0),
        ("-1.5h", -400.0),
        ("1700000000.5", 1700000000.5),
        ("2023-11-14T22:13:20Z", 1700000000.0),
        ("2023-11-14T23:13:20+01:00", 1700000000.0),
        ("2023-11-14T22:13:20", 1700000000.0),
    ],
)
def test_moments(text: str, seconds: float) -> None:
    assert moment(text, 5000.0, "--start") == seconds


@pytest.mark.parametrize("text", ["yesterday", "", "nan", "2h ago", "2023-13-01"])
def test_other_moments_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--start: must be a date"):
        moment(text, 0.0, "--start")
