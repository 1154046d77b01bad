"""Every format of a server is read for what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analyzer.access_logs.formats import layout_of, wanted
from analyzer.access_logs.reading import Source, read_requests
from analyzer.access_logs.requests import Requests
from mup.errors import UsageError


def read(tmp_path: Path, text: str, log_format: str = "", **fields: str) -> Requests:
    """Write a log and read it."""
    path = tmp_path / "access.log"
    path.write_text(text, encoding="utf-8")
    asked = wanted(f"{'class' if role == 'kind' else role}={name}" for role, name in fields.items())
    return read_requests(path, Source(log_format, asked))


ENVOY = (
    '[2026-04-15T20:17:00.310Z] "POST /api/v1/locations?x=1 HTTP/2" 204 - 154 0 226 100 "10.0.35.28" '
    '"nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "10.2.1.1:80"\n'
)
ISTIO = (
    '[2026-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/1.1" 200 - via_upstream - "-" 154 2 226 100 "-" '
    '"curl/7" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "10.2.1.1:80" outbound|80||x -\n'
)
HAPROXY = (
    "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 "
    '10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"\n'
)
ALB = (
    "https 2026-07-02T22:23:00.186641Z app/my-lb/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 "
    '0.037 200 200 0 57 "GET https://www.example.com:443/cart?x=1 HTTP/1.1" "curl/7.46.0" '
    "ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x:targetgroup/my-targets/73e2 "
    '"Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:x" 1 '
    '2026-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_x\n'
)


@pytest.mark.parametrize(
    ("line", "log_format", "took", "what"),
    [
        pytest.param("1700000000.500 0.200 GET /search?q=1 200\n", "", 0.2, "GET /search", id="demand-nginx"),
        pytest.param(
            "1700000000.500000 200000 GET /search 200\n", "", 0.2, "GET /search", id="demand-apache"
        ),
        pytest.param(
            '10.0.0.1 - bob [10/Oct/2026:13:55:36 +0000] "GET /a?b=1 HTTP/1.1" 200 17 "-" "Moz \\"x\\"" '
            '1700000000.500 0.250 "0.100, 0.150"\n',
            '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
            '"$http_user_agent" $msec $request_time "$upstream_response_time"',
            0.25,
            "GET /a",
            id="nginx",
        ),
        pytest.param(
            '10.0.0.1 1700000000500000 "GET /a?b=1 HTTP/1.1" 200 250000\n',
            '%h %{end:usec}t \\"%r\\" %>s %D',
            0.25,
            "GET /a",
            id="apache",
        ),
        pytest.param(
            "1700000000.025000 25 GET /a?b=1 200\n",
            "%{sec}t.%{usec_frac}t %{ms}T %m %U%q %>s",
            0.025,
            "GET /a",
            id="apache-begin",
        ),
        pytest.param(ENVOY, "", 0.226, "POST /api/v1/locations", id="envoy"),
        pytest.param(ISTIO, "", 0.226, "POST /api/v1/locations", id="istio"),
        pytest.param(
            "2026-04-15T20:17:00.310Z|226|POST /x|-\n",
            "%START_TIME%|%DURATION%|%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%|%RESPONSE_FLAGS%",
            0.226,
            "POST /x",
            id="envoy-own",
        ),
        pytest.param(HAPROXY, "", 0.069, "GET /index.html", id="haproxy"),
        pytest.param(ALB, "", 0.048, "GET /cart", id="alb"),
        pytest.param(
            '{"msec": "1700000000.500", "request_time": "0.125", "request": "GET /a/b HTTP/1.1"}\n',
            "",
            0.125,
            "GET /a/b",
            id="json-nginx",
        ),
        pytest.param(
            '{"start_time": "2026-04-15T20:17:00.310Z", "duration": 125, "method": "GET", "path": "/a/b?c"}\n',
            "",
            0.125,
            "GET /a/b",
            id="json-envoy",
        ),
        pytest.param(
            '{"ts": 1700000000.5, "duration": 0.125, "request": {"method": "GET", "uri": "/a/b", "host": "h"}}\n',
            "",
            0.125,
            "GET /a/b",
            id="json-caddy",
        ),
    ],
)
def test_formats(tmp_path: Path, line: str, log_format: str, took: float, what: str) -> None:
    """Duration and class are those in the line, whatever else is in it."""
    found = read(tmp_path, line, log_format)
    assert found.end - found.begin == pytest.approx([took], abs=1e-6)
    assert found.classes.names == (what,)
    assert found.fractions
    assert found.skipped.total == 0


def test_times_before_and_behind_the_server_are_left_out(tmp_path: Path) -> None:
    """HAProxy's own queue comes before the server, the balancer's sending comes after it."""
    proxy = read(tmp_path, HAPROXY)
    assert proxy.begin[0] == pytest.approx(0.655 + 0.010 + 0.030, abs=1e-6)
    assert proxy.labels["station"].names == ("static/srv1",)
    balancer = read(tmp_path, ALB)
    assert balancer.end[0] == pytest.approx(0.186641 - 0.037, abs=1e-6)
    assert balancer.labels["trace"].names == ("Root=1-58337281-1d84f3d73c47ec4e58577259",)


def test_fields_of_json_have_names_and_units(tmp_path: Path) -> None:
    """What is not known by its name is said; objects in objects have dots, dates are read."""
    line = '{"at": "2026-04-15 20:17:00,310", "http": {"route": "/a"}, "latency": 1500, "id": "x"}\n'
    found = read(tmp_path, line * 2, end="at", duration="latency:us", kind="http.route", trace="id")
    assert found.end - found.begin == pytest.approx([0.0015] * 2, abs=1e-9)
    assert found.classes.names == ("/a",)
    assert found.labels["trace"].names == ("x",)


def test_a_variable_can_have_another_role(tmp_path: Path) -> None:
    """The upstream's time instead of the whole one; requests without one are left out, by reason."""
    text = (
        "1700000000.100 0.500 0.250 10.0.0.1:80 GET /a\n"
        "1700000000.200 0.500 - - GET /a\n"
        "1700000000.300 0.500 0.010, 0.020 10.0.0.1:80, 10.0.0.2:80 GET /a\n"
    )
    form = "$msec $request_time $upstream_response_time $upstream_addr $request_method $request_uri"
    found = read(tmp_path, text, form, duration="$upstream_response_time", station="upstream_addr")
    assert found.end - found.begin == pytest.approx([0.25], abs=1e-6)
    assert found.labels["station"].names == ("10.0.0.1:80",)
    assert dict(found.skipped.counts) == {
        "no duration: aborted, or not answered by this server": 1,
        "answered by several servers, one after another": 1,
    }


@pytest.mark.parametrize(
    ("log_format", "message"),
    [
        pytest.param("what", "has no variable", id="none"),
        pytest.param("$request_time $request", "no variable says when", id="moment"),
        pytest.param("$msec $request", "no variable says how long", id="duration"),
        pytest.param("$msec $request_time", "no variable says what was asked for", id="class"),
        pytest.param("$msec$request_time $request", "nothing is between", id="together"),
    ],
)
def test_formats_that_do_not_say_enough(log_format: str, message: str) -> None:
    """A format is judged before any line is read."""
    with pytest.raises(UsageError, match=message):
        layout_of(log_format)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("end", "must be ROLE=NAME", id="no name"),
        pytest.param("ending=x", "did you mean 'end'", id="role"),
    ],
)
def test_fields_that_are_none(text: str, message: str) -> None:
    """A role is one of few words."""
    with pytest.raises(UsageError, match=message):
        wanted([text])


def test_an_unknown_variable_is_named(tmp_path: Path) -> None:
    """A field that the format does not have is a mistake of the user's."""
    with pytest.raises(UsageError, match="the format has no such variable; did you mean 'request_time'"):
        layout_of("$msec $request_time $request", wanted(["duration=request_tim"]))
    with pytest.raises(UsageError, match="the first line has no such field"):
        read(tmp_path, '{"a": 1}\n', end="b")
    with pytest.raises(UsageError, match="fields that are not known: a"):
        read(tmp_path, '{"a": 1}\n')


def test_lines_of_another_format_are_not_guessed(tmp_path: Path) -> None:
    """If most lines do not fit, the format is wrong; the message shows one."""
    with pytest.raises(UsageError, match=r"2 of 2 lines are not in the format; line 1: 'what"):
        read(tmp_path, "what\nwhat\n", "$msec $request_time $request")
    with pytest.raises(UsageError, match="no requests in 1 lines"):
        read(tmp_path, "1700000000.1 - GET / HTTP/1.1\n", "$msec $request_time $request")


def test_times_have_all_their_digits(tmp_path: Path) -> None:
    """Microseconds are left after seconds since 1970 were subtracted."""
    lines = [f"1700000000.{100000 + i} {100 + i} GET /a\n" for i in range(50)]
    found = read(tmp_path, "".join(lines))
    assert np.abs((found.end - found.begin) * 1e6 - (100 + np.arange(50))).max() < 1e-3
