"""``mup estimate`` and ``mup fit`` read a Prometheus server into a file, and the file again without one."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from commands import completed
from servers import Metrics, serving

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task, save_model
from simulator.analytic import estimate as analytic

DEMANDS = {"/a": 0.1, "/b": 0.05}
CORES = 2
START, STEP, COUNT = 1_700_000_040.0, 60.0, 60
RANGE = ("--start", str(START), "--end", str(START + STEP * (COUNT - 1)), "--step", f"{STEP:g}")
ROUTES = "sum by (route) (rate(requests_total[1m]))"
QUERIES = ("--query", "utilization=cpu / 2", "--query", f"throughput={ROUTES}", "--query", "response=latency")


def flow(route: str, at: float) -> float:
    """Requests per second of a route, which swing in two rhythms."""
    turn = (at - START) / STEP
    return 4 + 2 * math.sin(turn / 3) if route == "/a" else 7 + 3 * math.cos(turn / 5)


def busy(at: float, *, change: float = math.inf) -> float:
    """The share of the cores that is used: the utilization law, give or take a hundredth."""
    noise = np.random.default_rng(round(at)).normal(0, 0.005)
    factor = 1.5 if at >= change else 1.0
    return float(sum(flow(r, at) * d * factor for r, d in DEMANDS.items()) / CORES + noise)


def station(*, change: float = math.inf) -> Metrics:
    """What a server has of it; a route is labelled with its job, too, and response times miss at times."""
    routes = [({"job": "web", "route": r}, lambda at, r=r: flow(r, at)) for r in DEMANDS]
    times = [
        ({"job": "web", "route": r}, lambda at, d=d: math.nan if round(at) % 7 == 0 else d / (1 - busy(at)))
        for r, d in DEMANDS.items()
    ]
    return Metrics(
        series={
            "cpu / 2": [({}, lambda at: busy(at, change=change))],
            ROUTES: routes,
            "latency": times,
            "cpu percent": [({}, lambda at: 100 * busy(at))],
            "by instance": [({"instance": i}, busy) for i in ("a", "b")],
            "gaps": [({}, lambda at: busy(at) if round(at) % 11 else math.nan)],
            "never": [({}, lambda _: math.nan)],
        }
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(station()) as at:
        yield at


def test_demands_come_from_a_server_and_from_the_file_it_leaves(url: str, tmp_path: Path) -> None:
    """Utilization and throughputs by route: demands within 3 %; the file says the same once more."""
    data = str(tmp_path / "windows.csv")
    asked = completed(
        "estimate", data, "--cores", "2", "--prometheus", url, *QUERIES, *RANGE, "--json", "--seed", "1"
    )
    assert asked.returncode == 0, asked.stderr
    assert f"wrote {data}: {COUNT} rows" in asked.stderr
    found = json.loads(asked.stdout)
    again = completed("estimate", data, "--cores", "2", "--json", "--seed", "1")
    assert json.loads(again.stdout) == found
    assert _demands(found) == pytest.approx(DEMANDS, rel=0.03)
    head = Path(data).read_text().splitlines()[0]
    assert head == ("time,utilization,throughput_/a,throughput_/b,response_time_/a,response_time_/b")


def _demands(document: dict[str, object]) -> dict[str, float]:
    classes = document["classes"]
    assert isinstance(classes, dict)
    return {name: one["demand"]["mean"] for name, one in classes.items()}


def test_what_it_costs_is_followed_over_time(tmp_path: Path) -> None:
    """Half as much again from the 40th minute on: an alarm, and not before; --period is the step."""
    data, change = str(tmp_path / "windows.csv"), START + 40 * STEP
    with serving(station(change=change)) as url:
        words = ("--prometheus", url, *QUERIES, *RANGE[:4])
        asked = completed("estimate", data, "--cores", "2", "--period", "60", *words, "--json")
        assert asked.returncode == 1, asked.stderr
    alarms = json.loads(asked.stdout)["alarms"]
    assert 40 <= alarms[0]["period"] <= 45
    again = completed("estimate", data, "--cores", "2", "--period", "60", "--json")
    assert json.loads(again.stdout)["alarms"] == alarms


def test_moments_without_numbers_are_left_out(url: str, tmp_path: Path) -> None:
    data = str(tmp_path / "windows.csv")
    words = ("--query", "utilization=gaps", "--query", f"throughput={ROUTES}", "--prometheus", url, *RANGE)
    asked = completed("estimate", data, "--cores", "2", *words, "--json")
    assert asked.returncode == 0
    missing = sum(round(START + k * STEP) % 11 == 0 for k in range(COUNT))
    assert missing
    assert f"note: {missing} of {COUNT} moments are left out" in asked.stderr
    assert _demands(json.loads(asked.stdout)) == pytest.approx(DEMANDS, rel=0.03)


@pytest.mark.parametrize(
    ("queries", "says"),
    [
        (("utilization=cpu percent", f"throughput={ROUTES}"), "must be a share of all cores, 0 to 1"),
        (("utilization=by instance", f"throughput={ROUTES}"), "2 series, and at most 1 is wanted"),
        (("utilization=never", f"throughput={ROUTES}"), "every value of {} is NaN"),
        (("utilization=unknown", f"throughput={ROUTES}"), "there is no series of 'unknown'"),
        (("utilization=cpu / 2",), "nothing tells the throughput"),
        ((f"throughput={ROUTES}",), "nothing tells the utilization"),
        (("load=cpu / 2",), "no 'load': what is asked for are"),
        (("utilization=cpu / 2", f"throughput_x={ROUTES}"), "2 series, and at most 1 is wanted"),
        (
            ("utilization=cpu / 2", f"throughput={ROUTES}", "response_/c=cpu / 2"),
            "there is no throughput of class '/c'",
        ),
        (("utilization",), "--query: must be NAME=TEXT"),
        ((), "nothing is asked for"),
    ],
)
def test_what_cannot_be_used_is_one_message(
    queries: tuple[str, ...], says: str, url: str, tmp_path: Path
) -> None:
    """And no file is left behind."""
    data = tmp_path / "windows.csv"
    words = [word for q in queries for word in ("--query", q)]
    asked = completed("estimate", str(data), "--cores", "2", "--prometheus", url, *words, *RANGE)
    assert asked.returncode == 2
    assert says in asked.stderr
    assert not data.exists()


def test_other_files_and_options_are_refused(url: str, tmp_path: Path) -> None:
    """Nothing else is overwritten; queries alone, two lengths of a period and no URL are said."""
    other = tmp_path / "thesis.csv"
    other.write_text("arrival,departure,class\n")
    words = ("estimate", str(other), "--cores", "2")
    assert "exists and is something else" in completed(*words, "--prometheus", url, *QUERIES).stderr
    assert "go with --prometheus URL" in completed(*words, "--query", "utilization=x").stderr
    late = completed(*words[:1], str(tmp_path / "new.csv"), "--cores", "2", "--period", "30", "--prometheus", url,
                     *QUERIES, *RANGE)  # fmt: skip
    assert "a period is a step" in late.stderr
    assert "must be a URL" in completed(*words, "--prometheus", "localhost:9090", *QUERIES).stderr
    assert other.read_text() == "arrival,departure,class\n"


def closed_model(demand: float, think: float, clients: int = 10) -> Model:
    """Clients that think and ask a station with one core."""
    zero = Constant(0.0)
    ask = Activity(name="ask", demand=zero, delay=zero, calls=(Call(task="A", entry="serve"),))
    work = Activity(name="work", demand=Exponential(demand), delay=zero)
    return Model(
        name="closed",
        processors=(Processor(name="P", cores=1),),
        tasks=(
            Task(
                name="C",
                role="reference",
                threads=clients,
                think=Exponential(think),
                entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
            ),
            Task(
                name="A",
                threads=math.inf,
                processor="P",
                entries=(Entry(name="serve", start="work", activities=(work,)),),
            ),
        ),
    )


def measured(demand: Callable[[float], float]) -> Metrics:
    """Throughput and response time of ten clients as the exact solution has them, with 1 % of noise."""

    def figure(at: float, name: str) -> float:
        noise = np.random.default_rng([round(at), len(name)]).normal(1, 0.01)
        return float(getattr(analytic(closed_model(demand(at), 1.0)).cycle, name) * noise)

    return Metrics(
        series={
            "x": [({"job": "web"}, lambda at: figure(at, "throughput"))],
            "r": [({}, lambda at: figure(at, "response_time"))],
            "users": [({}, lambda _: 10.0)],
        }
    )  # fmt: skip


FIT = ("--query", "throughput=x", "--query", "response=r", "--query", "clients=users")


def test_a_fit_reads_a_server(tmp_path: Path) -> None:
    """Demand and think time within 5 %, from the server and from the file; rows are named by their time."""
    save_model(closed_model(0.05, 0.5), tmp_path / "model.json")
    data, words = str(tmp_path / "trials.csv"), ("--estimate", "demand.A.serve,think", "--json")
    with serving(measured(lambda _: 0.08)) as url:
        asked = completed(
            "fit", str(tmp_path / "model.json"), data, *words, "--prometheus", url, *FIT, *RANGE
        )
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)["parameters"]
    assert found["demand.A.serve"]["value"] == pytest.approx(0.08, rel=0.05)
    assert found["think"]["value"] == pytest.approx(1.0, rel=0.05)
    again = completed("fit", str(tmp_path / "model.json"), data, *words)
    assert json.loads(again.stdout)["parameters"] == found
    lines = Path(data).read_text().splitlines()
    assert lines[0] == "period,throughput,response_time,clients"
    assert lines[1].startswith("2023-11-14T22:14:00Z,")


def test_a_fit_follows_a_server(tmp_path: Path) -> None:
    """Demands that rise by half in the 40th minute: an alarm soon after, with the time it happened at."""
    save_model(closed_model(0.08, 1.0), tmp_path / "model.json")
    data = str(tmp_path / "trials.csv")
    with serving(measured(lambda at: 0.08 if at < START + 40 * STEP else 0.12)) as url:
        asked = completed(
            "fit", str(tmp_path / "model.json"), data, "--track", "--estimate", "demand.A.serve", "--json",
            "--prometheus", url, *FIT, *RANGE,
        )  # fmt: skip
    assert asked.returncode == 1, asked.stderr
    document = json.loads(asked.stdout)
    assert document["alarms"][0]["period"] == "2023-11-14T22:54:00Z"
    assert document["parameters"]["demand.A.serve"]["value"] == pytest.approx(0.12, rel=0.1)


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Run the real one on data that are written into its storage."""
    program, tool = shutil.which("prometheus"), shutil.which("promtool")
    if program is None or tool is None:
        pytest.skip("prometheus and promtool are not installed (Debian: apt-get install prometheus)")
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    made = [
        tool,
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(folder / "metrics.txt"),
        str(folder / "data"),
    ]
    subprocess.run(made, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 30
            while True:
                try:
                    urllib.request.urlopen(f"{url}/-/ready", timeout=1).close()
                    break
                except OSError:
                    assert time.monotonic() < until, "prometheus did not become ready"
                    time.sleep(0.1)
            yield url
        finally:
            process.terminate()


@pytest.mark.slow
def test_a_real_prometheus_is_read(tmp_path: Path) -> None:
    """Counters as services export them, rates computed by the server: demands within 5 %."""
    begin = STEP * (time.time() // STEP) - 3 * 3600
    requests, cpu = dict.fromkeys(DEMANDS, 0.0), 0.0
    moments = [begin + 15.0 * k for k in range(int(COUNT * STEP / 15) + 1)]
    rows: dict[str, list[str]] = {"requests": [], "cpu": []}
    for at in moments:
        for route, demand in DEMANDS.items():
            now = flow(route, START + at - begin) * 15.0
            requests[route] += now
            cpu += now * demand
            rows["requests"].append(f'requests_total{{job="web",route="{route}"}} {requests[route]!r} {at}')
        rows["cpu"].append(f'process_cpu_seconds_total{{job="web"}} {cpu!r} {at}')
    by_route = sorted(rows["requests"], key=lambda line: line.split()[0])
    lines = [
        "# TYPE requests counter",
        *by_route,
        "# TYPE process_cpu_seconds counter",
        *rows["cpu"],
        "# EOF",
        "",
    ]
    (tmp_path / "metrics.txt").write_text("\n".join(lines))
    data = str(tmp_path / "windows.csv")
    queries = (
        "--query", "utilization=sum(rate(process_cpu_seconds_total[2m])) / 2",
        "--query", "throughput=sum by (route) (rate(requests_total[2m]))",
    )  # fmt: skip
    span = ("--start", str(begin + 2 * STEP), "--end", str(moments[-1]), "--step", "60")
    with prometheus(tmp_path) as url:
        asked = completed("estimate", data, "--cores", "2", "--prometheus", url, *queries, *span, "--json")
        assert asked.returncode == 0, asked.stderr
        assert _demands(json.loads(asked.stdout)) == pytest.approx(DEMANDS, rel=0.05)
        wrong = completed(
            "estimate", data, "--cores", "2", "--prometheus", url, "--query", "utilization=sum(rate(x[1m])",
            *queries[2:], *span,
        )  # fmt: skip
        assert wrong.returncode == 2
        assert "the server refuses 'sum(rate(x[1m])'" in wrong.stderr
        assert "unclosed left parenthesis" in wrong.stderr
