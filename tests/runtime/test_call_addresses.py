"""Blocking and awaited calls, and those of clients, have one rule for what addresses an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from deployments import Answer, System, make_project, running, wait_for

from mup.events.reader import read_log
from mup.workload.driver import LoadDriver

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
import json
from pathlib import Path

from mup import EP, MS, Client, Communication
from mup.errors import MupError


class Shop(MS):
    @EP("/search", method="GET")
    def search(self, comm: Communication) -> None:
        comm.respond("searched")

    @EP("/orders", method="GET")
    def orders(self, comm: Communication) -> None:
        comm.respond("listed")

    @EP("/orders", method="POST")
    def order(self, comm: Communication) -> None:
        comm.respond("ordered")

    @EP("/orders/{order_id}", method="PUT")
    def change(self, comm: Communication, order_id: int) -> None:
        comm.respond(f"changed {order_id}")


class Threads(MS):
    runtime = "thread"

    @EP("/go/")
    def go(self, comm: Communication, path: str, method: str = "") -> None:
        try:
            comm.respond(comm.call("Shop", path, method=method).get())
        except MupError as error:
            comm.respond(f"{type(error).__name__}: {error}")


class Loop(MS):
    runtime = "async"

    @EP("/go/")
    async def go(self, comm: Communication, path: str, method: str = "") -> None:
        try:
            comm.respond(await comm.call("Shop", path, method=method))
        except MupError as error:
            comm.respond(f"{type(error).__name__}: {error}")


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        file = Path(__file__).with_name("seen.json")
        cases = json.loads(file.with_name("cases.json").read_text())
        seen = []
        for path, method in cases:
            try:
                seen.append(await comm.call("Shop", path, method=method))
            except MupError as error:
                seen.append(f"{type(error).__name__}: {error}")
        file.with_name("new.json").write_text(json.dumps(seen))
        file.with_name("new.json").replace(file)
"""

CASES = [
    ("/search GET", "", "UsageError: '/search GET' is no path", "write '/search', method='GET'"),
    ("/orders POST", "", "UsageError: '/orders POST' is no path", "write '/orders', method='POST'"),
    ("GET /search", "", "UsageError: 'GET /search' is no path", "write '/search', method='GET'"),
    ("search", "POST", "UsageError: the endpoint named 'search' is for GET, not for POST", ""),
    ("orders", "POST", "UsageError: the endpoint named 'orders' is for GET, not for POST", ""),
    ("/orders", "", "UsageError: '/orders' has several methods: GET, POST", "method='GET'"),
    ("/orders", "POST", "ordered", ""),
    ("search", "HEAD", "", ""),
    ("orders/17", "PUT", "changed 17", ""),
]
"""Path and method of a call, how what comes of it begins, and what else is said."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """All services, and a client in the same file."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "cases.json").write_text(json.dumps([case[:2] for case in CASES]))
    with running(make_project(folder, SOURCE, "Shop", "Threads", "Loop")) as system:
        yield system


def _go(shop: System, service: str, path: str, method: str) -> Answer:
    return shop.ask(service, f"/go/?{urlencode({'path': path, 'method': method})}")


def _check(outcome: Any, begins: str, says: str) -> None:
    text = "" if outcome is None else str(outcome)
    assert text.startswith(begins), text
    assert says in text


@pytest.mark.parametrize(("path", "method", "begins", "says"), CASES)
@pytest.mark.parametrize("service", ["Threads", "Loop"])
def test_services(shop: System, service: str, path: str, method: str, begins: str, says: str) -> None:
    """A label is refused before anything is sent, with what can be typed instead."""
    _check(_go(shop, service, path, method).raw.decode(), begins, says)


def test_clients(shop: System) -> None:
    """The calls of a scenario are calls like all others."""
    folder = shop.logs.parent
    project = replace(make_project(folder, SOURCE, "Shop", "Threads", "Loop"), client="shop:User")
    with LoadDriver(project, shop.deployment.registry_url) as driver:
        driver.run(1, 0.3)
    for outcome, (*_, begins, says) in zip(
        json.loads((folder / "seen.json").read_text()), CASES, strict=True
    ):
        _check(outcome, begins, says)


def test_logs_have_one_label_per_endpoint(shop: System) -> None:
    """What a caller's log calls an endpoint is what the callee's log calls it, however it was addressed."""
    for service in ("Threads", "Loop"):
        for path, method in (("orders/17", "PUT"), ("orders", "GET"), ("/orders", "POST"), ("search", "")):
            assert _go(shop, service, path, method).status == 200
    labels = {"Shop/search", "Shop/orders GET", "Shop/orders POST", "Shop/orders/{order_id}"}
    refused = {f"Shop{path}" for path, _, begins, _ in CASES if begins.startswith("UsageError")}

    def called() -> set[str]:
        callers = [file for file in shop.logs.rglob("*.mlog") if file.name.startswith(("Threads", "Loop"))]
        names = {name for file in callers for name in read_log(file).names.values()}
        return {name for name in names if name.startswith("Shop/")} - refused - {"Shop/GET /search"}

    # Logs are written a second late.
    wait_for(lambda: called() >= labels - refused)
    assert called() <= labels
