"""Metrics of a replica say what happened, in a format Prometheus understands."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployments import SOURCE, System, ask, make_project, running, wait_for
from prometheus_client.parser import text_string_to_metric_families as parse

from mup.runtime.pool.metrics import Sample, exposition

pytestmark = pytest.mark.services

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def metrics(system: System, service: str) -> Values:
    """Return the value of every line, by name and labels; service and replica are checked and left out."""
    answer = system.ask(service, "/mup/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values: Values = {}
    for family in parse(answer.raw.decode()):
        assert family.documentation
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("service") == service
            assert labels.pop("replica") == "0"
            values[sample.name, tuple(sorted(labels.items()))] = sample.value
    return values


def value(values: Values, name: str, **labels: str) -> float:
    """Return one value; 0 if there is none."""
    return values.get((name, tuple(sorted(labels.items()))), 0.0)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> System:
    """Services whose numbers no other test changes."""
    with running(make_project(tmp_path_factory.mktemp("metrics"), SOURCE, "One", "Caller")) as system:
        yield system


def test_requests_and_errors(shop: System) -> None:
    """Every answer is counted by endpoint and status, every problem by kind; clients invent no labels."""
    shop.ask("Caller", "/echo/")
    shop.ask("Caller", "/echo/")
    shop.ask("Caller", "/boom/")
    shop.ask("Caller", "/die/")
    shop.ask("Caller", "/nowhere/1")
    shop.ask("Caller", "/nowhere/2")
    shop.ask("Caller", "/echo/", b"x" * (16 * 2**20 + 1))
    wait_for(lambda: len(shop.status("Caller")["workers"]) == 4)
    found = metrics(shop, "Caller")
    assert value(found, "mup_requests_total", endpoint="/echo/", status="200") == 2
    assert value(found, "mup_requests_total", endpoint="/echo/", status="413") == 1
    assert value(found, "mup_requests_total", endpoint="/boom/", status="500") == 1
    assert value(found, "mup_requests_total", endpoint="/die/", status="502") == 1
    assert value(found, "mup_requests_total", endpoint="", status="404") == 2
    assert value(found, "mup_request_seconds_count", endpoint="/echo/") == 2
    assert value(found, "mup_errors_total", kind="endpoint_failed") == 1
    assert value(found, "mup_errors_total", kind="worker_died") == 1
    assert value(found, "mup_errors_total", kind="no_endpoint") == 2
    assert value(found, "mup_errors_total", kind="body_too_large") == 1
    assert value(found, "mup_pool_size") == value(found, "mup_workers") == 4
    assert value(found, "mup_event_logs_off") == 0
    assert value(found, "mup_cpu_seconds_total", process="front") > 0
    assert value(found, "mup_cpu_seconds_total", process="workers") > 0


def test_queue(shop: System) -> None:
    """While one request is served and two wait, that is what the gauges say; later their waiting is counted."""
    before = metrics(shop, "One")
    waiting = [shop.begin("One", "/count/?seconds=0.3") for _ in range(3)]
    wait_for(lambda: shop.status("One")["queued"] == 2)
    during = metrics(shop, "One")
    assert value(during, "mup_workers_busy") == 1
    assert value(during, "mup_queue_length") == 2
    assert value(during, "mup_in_flight") == 3
    for request in waiting:
        assert request.result().status == 200
    shop.settle("One")
    after = metrics(shop, "One")

    def change(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert change("mup_queue_seconds_count") == 3
    assert change("mup_queue_seconds_bucket", le="0.0005") == 1
    assert change("mup_queue_seconds_sum") >= 0.85
    assert change("mup_request_seconds_sum", endpoint="/count/") >= 1.75
    assert value(after, "mup_in_flight") == 0


ROUTES = """
from mup import EP, MS

class Shop(MS):
    static = {"/files/": "files"}

    @EP("/items", method="GET")
    def list(self, comm):
        comm.respond([])

    @EP("/items", method="POST")
    def create(self, comm, name: str):
        comm.respond(name)

    @EP("/items/{number}", method="GET")
    def show(self, comm, number: int):
        comm.respond(number)
"""


def test_endpoints_with_methods_and_parameters(tmp_path: Path) -> None:
    """Labels are what the log calls the endpoints; what no endpoint or file is for is counted, too."""
    (tmp_path / "files").mkdir()
    with running(make_project(tmp_path, ROUTES, "Shop")) as system:
        paths = ("/items", "/items/1", "/items/2", "/items/x", "/files/none", "/none")
        assert [system.ask("Shop", path).status for path in paths] == [200, 200, 200, 400, 404, 404]
        assert ask(system.url("Shop"), "/items/1", method="DELETE").status == 405
        found = metrics(system, "Shop")
    assert value(found, "mup_requests_total", endpoint="/items GET", status="200") == 1
    assert value(found, "mup_requests_total", endpoint="/items/{number}", status="200") == 2
    assert value(found, "mup_requests_total", endpoint="/items/{number}", status="400") == 1
    assert value(found, "mup_requests_total", endpoint="", status="404") == 2
    assert value(found, "mup_requests_total", endpoint="", status="405") == 1
    for kind in ("endpoint_failed", "no_file", "no_endpoint", "wrong_method"):
        assert value(found, "mup_errors_total", kind=kind) == 1


def test_log_that_is_off(tmp_path: Path) -> None:
    """A log that cannot be written is seen in the metrics of the service, which serves."""
    project = make_project(tmp_path, SOURCE, "One")
    (tmp_path / "logs").write_text("in the way")
    with running(project) as system:
        assert system.ask("One", "/count/").status == 200
        # The front and its worker.
        wait_for(lambda: value(metrics(system, "One"), "mup_event_logs_off") == 2)


def test_registry(shop: System) -> None:
    """The registry says who is there, and where to ask them."""
    registry = shop.deployment.registry_url
    text = ask(registry, "/mup/metrics").raw.decode()
    samples = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in parse(text)
        for sample in family.samples
    }
    assert samples["mup_registry_replicas", ("Caller",)] == 1
    assert samples["mup_registry_requests_total", ("/register", "200")] == 2
    targets = {t["labels"]["service"]: t["targets"] for t in ask(registry, "/mup/targets").body}
    assert [f"http://{targets['One'][0]}"] == [shop.url("One")]


def test_labels_are_escaped() -> None:
    """Quotes, backslashes and line breaks in a label stay inside of it."""
    nasty = 'a"b\\c\nd'
    (family,) = parse(exposition([("x", "gauge", "X.", [Sample("", {"l": nasty}, 1)])], {}).decode())
    assert family.samples[0].labels == {"l": nasty}
