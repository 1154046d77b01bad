"""`mup identify`: a real service behind a URL, and everything that must not happen to one."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.blackbox.http_injector import check_target
from analyzer.blackbox.resources import CpuWatch, prometheus_seconds, tree_seconds
from mup.cli.main import main
from mup.errors import UsageError
from mup.lqn import load_model
from mup.project import Project, ServiceConfig
from mup.runtime.deployment.launcher import Deployment

SERVICE = '''
import time

from mup import EP, MS, Communication


class Box(MS):
    """Two workers that sleep for 20 or 40 ms in turn."""

    pool_size = 2

    def setup(self) -> None:
        self.long = False

    @EP("/work/")
    def work(self, comm: Communication) -> None:
        self.long = not self.long
        time.sleep(0.04 if self.long else 0.02)
        comm.respond({})
'''


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["identify", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


@pytest.fixture
def failing_url() -> Iterator[tuple[str, list[str]]]:
    """A server that answers 500, and what it was asked; ``/N`` works N times."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if len(asked) <= int(self.path[1:] or 0) else 500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.services
def test_a_service_of_two_workers_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pool of two is found, and a service time of 30 ms, however slow the machine is beside it."""
    (tmp_path / "box.py").write_text(SERVICE, encoding="utf-8")
    service = ServiceConfig(name="Box", target="box:Box")
    project = Project(name="box", root=tmp_path, source=tmp_path, services=(service,)).with_any_ports()
    model = tmp_path / "box.json"
    logs = tmp_path / "logs"
    logs.mkdir()
    with Deployment(project, log_dir=logs) as running:
        url = running.replicas()[0].url
        code, out, err = run(
            capsys, f"{url}/work/", "-o", str(model), "--json", "--max-seconds", "20", "--precision", "0.2"
        )
    found = json.loads(out)
    assert "ramp: " in err
    assert code in {0, 1}  # whether it holds is decided by how busy this machine was
    assert found["servers"]["count"] == 2
    # Sleeping takes at least as long as asked for, and longer on a busy machine.
    assert 0.028 < found["service_time"]["mean"] < 0.045
    station = load_model(model)
    assert station.task("blackbox").threads == 2
    assert station.provenance["identified"]["url"] == f"{url}/work/"
    # What the service logged is what was sent; a step during which the generator was late is in no result.
    code, out, _ = run(capsys, "--arrival-times", str(logs), "--service", "Box", "--json")
    assert code == 0
    assert (
        json.loads(out)["count"] >= sum(each["requests"] for each in found["steps"] + found["held_back"]) - 1
    )


def test_a_target_elsewhere_must_be_named() -> None:
    """Only loopback is loaded without a word; any other host has to be named."""
    check_target("http://127.0.0.1:80/")
    check_target("http://[::1]:80/")
    with pytest.raises(UsageError, match="is not this machine"):
        check_target("http://192.0.2.7/")
    check_target("http://192.0.2.7/", ["192.0.2.7"])


def test_a_failing_target_is_left_alone(
    failing_url: tuple[str, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the first step with failures nothing more is sent, and no model is written."""
    url, asked = failing_url
    model = tmp_path / "model.json"
    code, out, _ = run(capsys, url, "--start-rate", "40", "--max-failures", "2", "-o", str(model), "--json")
    assert code == 2
    assert "failed, 2 may; the first one: " in json.loads(out)["error"]["message"]
    assert len(asked) <= 40  # the first step sends 20 on average
    assert not model.exists()


@pytest.mark.slow
def test_what_was_found_before_a_failure_is_kept(
    failing_url: tuple[str, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target that breaks down under load is left alone, and what it bore before makes a model."""
    url, asked = failing_url
    model = tmp_path / "model.json"
    code, out, _ = run(
        capsys, f"{url}60", "--start-rate", "40", "--max-rate", "160", "-o", str(model), "--json"
    )
    assert code == 1
    found = json.loads(out)
    assert "failed, 3 may; the first one: " in found["failed"]
    assert found["ended"] == found["failed"]
    assert found["held_back"] == []
    assert found["holds"] is None
    assert found["validity"]["highest_rate"] < 80
    assert [text for text in found["warnings"] if text.startswith(found["failed"])]
    # Two loads: 20 requests on average, and at most a second of 160/s.
    assert sum(step["requests"] for step in found["steps"]) <= 60
    assert len(asked) < 300
    assert load_model(model).provenance["identified"]["failed"] == found["failed"]


def test_a_dry_run_sends_nothing(
    failing_url: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what could happen at most."""
    url, asked = failing_url
    code, out, _ = run(capsys, url, "--dry-run", "--max-rate", "30", "--max-seconds", "10", "--json")
    assert code == 0
    assert json.loads(out)["dry_run"]["limits"] == {"rate": 30, "seconds": 10, "requests": 300}
    assert asked == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["ftp://127.0.0.1/"], "URL", id="no-http"),
        pytest.param(["http://192.0.2.7/"], "is not this machine", id="elsewhere"),
        pytest.param(["http://127.0.0.1:1/", "--start-rate", "0"], "--start-rate", id="no-rate"),
        pytest.param(["http://127.0.0.1:1/", "--precision", "5"], "--precision", id="precision-in-percent"),
        pytest.param(["http://127.0.0.1:1/", "--max-seconds", "-1"], "seconds", id="negative-time"),
        pytest.param(["http://127.0.0.1:1/", "--header", "Accept"], "--header", id="no-header"),
        pytest.param(["http://127.0.0.1:1/", "--body", "@/no/such"], "--body", id="no-body-file"),
        pytest.param(["http://127.0.0.1:1/", "--pid", "999999999"], "no process", id="no-process"),
        pytest.param(["http://127.0.0.1:1/", "--metrics", "http://127.0.0.1:1/"], "metrics", id="no-metrics"),
        pytest.param(["http://127.0.0.1:1/", "-o", "/no/such/x.json"], "folder", id="no-folder"),
        pytest.param(["http://127.0.0.1:1/", "-o", "x.lqnx"], "JSON", id="no-json"),
    ],
)
def test_bad_input_is_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, and what is wrong."""
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert message in f"{error['message']} {error.get('hint', '')}"


def test_processor_time_of_a_process_counts_up() -> None:
    """A watch of this process sees the work done in between."""
    watch = CpuWatch(lambda: tree_seconds(os.getpid()), cores=1)
    watch.start()
    sum(i * i for i in range(200_000))
    utilization, seconds = watch.stop()
    assert seconds > 0
    assert utilization > 0


def test_a_counter_of_metrics_is_summed_over_its_labels(tmp_path: Path) -> None:
    """The usual names are known, others can be named, and what is missing is said."""
    page = tmp_path / "metrics"
    page.write_text(
        '# TYPE mup_cpu_seconds_total counter\nmup_cpu_seconds_total{process="front"} 1.5\n'
        'mup_cpu_seconds_total{process="workers"} 2.5e0\nother_cpu 7\n',
        encoding="utf-8",
    )
    url = page.as_uri()
    assert prometheus_seconds(url) == 4.0
    assert prometheus_seconds(url, "other_cpu") == 7.0
    with pytest.raises(UsageError, match="other_cpu"):
        prometheus_seconds(url, "missing")
