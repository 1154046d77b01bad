"""Neither web pages nor other users of the machine can join or change a running system."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socketserver
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from deployments import System, make_project, running, wait_for

from mup.errors import DeploymentError
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.deployment.registry_client import RegistryClient
from mup.runtime.protocol.run_token import find_token, forget_token, is_run_token, keep_token, token_file

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
from mup import EP, MS, Communication


class Orders(MS):
    replicas = 2

    @EP("/buy/")
    def buy(self, comm: Communication) -> None:
        comm.respond({"bought": comm.params["card"]})


class Front(MS):
    pool_size = 4

    @EP("/buy/")
    def buy(self, comm: Communication) -> None:
        comm.respond(comm.call("Orders", "/buy/", {"card": comm.params["card"]}).get())
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    """A system without a configured token."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    with running(make_project(tmp_path, SOURCE, "Orders", "Front")) as system:
        yield system


def send(url: str, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, bytes]:
    """Send exactly these headers, as a browser would."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, None if data is None else json.dumps(data), named)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@contextmanager
def rogue() -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers everything with 200: its URL, and what it was told."""
    heard: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            heard.append(self.request.recv(65536))
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()


CROSS_SITE = {
    "Content_Type": "text/plain;charset=UTF-8",
    "Origin": "http://evil.example",
    "Sec_Fetch_Site": "cross-site",
    "Sec_Fetch_Mode": "no-cors",
    "Host": "evil.example",
}
"""What comes with ``fetch(..., {method: "POST", mode: "no-cors"})`` of a page whose name leads to loopback."""


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(CROSS_SITE, id="page"),
        pytest.param({"Content_Type": "application/json"}, id="other-user"),
        pytest.param({"Content_Type": "application/json", "Authorization": "Bearer run-guess"}, id="guess"),
    ],
)
def test_sixty_purchases_stay_here(shop: System, headers: dict[str, str]) -> None:
    """While a stranger registers itself again and again, every purchase reaches the real service."""
    registry = shop.deployment.registry_url
    over = threading.Event()
    statuses: set[int] = set()
    with rogue() as (url, heard):

        def register() -> None:
            entry = {"service": "Orders", "url": url, "replica": 9, "endpoints": {"buy": "/buy/"}}
            evict = {**entry, "url": shop.url("Orders"), "service": "Evil"}
            database = {"name": "db", "uri": f"mongodb://{urlsplit(url).netloc}/db"}
            while not over.wait(0.05):
                statuses.add(send(registry, "POST", "/register", entry, **headers)[0])
                statuses.add(send(registry, "POST", "/register", evict, **headers)[0])
                statuses.add(send(registry, "POST", "/databases", database, **headers)[0])

        stranger = threading.Thread(target=register)
        stranger.start()
        try:
            for number in range(60):
                card = f"card-{number}"
                status, body = send(
                    shop.url("Front"), "POST", "/buy/", {"card": card}, Content_Type="application/json"
                )
                assert (status, json.loads(body)) == (200, {"bought": card})
                # The lists of callers are renewed every second.
                time.sleep(0.04)
        finally:
            over.set()
            stranger.join()
        assert not heard
    assert statuses <= {401, 403, 415}
    client = RegistryClient(registry)
    assert {name: len(live) for name, live in client.services().items()} == {"Front": 1, "Orders": 2}
    assert client.get("/databases") == {"databases": {}}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/mup/status"), ("GET", "/mup/metrics"), ("GET", "/mup/openapi.json"), ("POST", "/mup/pool")],
)
@pytest.mark.parametrize("configured", [False, True])
def test_no_rebound_page_reads_or_changes_a_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, configured: bool
) -> None:
    """By whatever name it is called that is not its own, also with a token: endpoints and probes answer all."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    if configured:
        monkeypatch.setenv("MUP_REGISTRY_TOKEN", "t0ken")
    data = {"pool_size": 2} if method == "POST" else None
    with running(make_project(tmp_path, SOURCE, "Orders")) as system:
        shown = {"Authorization": f"Bearer {system.deployment.token}", "Content_Type": "application/json"}
        url = system.url("Orders")
        rebound = {"Host": "evil.example", "Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"}
        for headers in (
            rebound,
            {"Host": "evil.example:8001"},
            {"Origin": "http://evil.example"},
            {"Sec_Fetch_Site": "cross-site"},
        ):
            assert send(url, method, path, data, **{**shown, **headers})[0] == 403
        for headers in ({}, {"Host": "localhost:1"}, {"Host": "[::1]"}):
            assert send(url, method, path, data, **{**shown, **headers})[0] == 200
        for free in ("/healthz", "/readyz"):
            assert send(url, "GET", free, **rebound)[0] == 200
        called = {**rebound, "Content_Type": "application/json"}
        assert send(url, "POST", "/buy/", {"card": 1}, **called)[0] == 200


def test_who_has_no_token_reads_metrics_and_nothing_else(shop: System) -> None:
    """Prometheus is not told of a token that was invented; it is on this machine, and only scrapes."""
    registry, orders = shop.deployment.registry_url, shop.url("Orders")
    assert is_run_token(shop.deployment.token)
    assert send(registry, "GET", "/mup/metrics")[0] == send(registry, "GET", "/mup/targets")[0] == 200
    assert send(orders, "GET", "/mup/metrics")[0] == 200
    for url, path in ((registry, "/services"), (registry, "/databases"), (orders, "/mup/status")):
        status, body = send(url, "GET", path)
        assert status == 401
        assert b"token" in body
        assert b"run-" not in body
    assert send(orders, "POST", "/mup/metrics")[0] == 401


def test_the_token_is_for_its_user_and_its_run(shop: System) -> None:
    """It is in a file that others cannot read, by the registry's address; it goes when the run ends."""
    registry = shop.deployment.registry_url
    file = shop.deployment.token_file
    assert file == token_file(registry)
    assert file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) & 0o022 == 0
    assert file.read_text() == shop.deployment.token
    shop.deployment.stop()
    assert not file.exists()
    with running(make_project(shop.logs.parent / "again", SOURCE, "Orders")) as again:
        assert again.deployment.token != shop.deployment.token


def test_a_file_others_could_have_written_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links, files that others may read or write, and what a killed run has left, hold no token."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = "http://127.0.0.1:9"
    keep = f"from mup.runtime.protocol.run_token import *; keep_token({url!r}, 'run-abc'); input()"
    with subprocess.Popen(
        [sys.executable, "-c", f"{keep}; input()"], stdin=subprocess.PIPE, cwd=ROOT
    ) as keeper:
        file = wait_for(lambda: (found := token_file(url)) and found.exists() and found)
        assert find_token(url) == find_token("http://localhost:9/") == "run-abc"
        assert find_token("http://127.0.0.1:8") == find_token("http://192.0.2.1:9") == ""
        file.chmod(0o640)
        assert find_token(url) == ""
        file.chmod(0o600)
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
        assert find_token(url) == ""
        (tmp_path / "elsewhere").rename(file)
        assert find_token(url) == "run-abc"
        keeper.kill()
    assert find_token(url) == ""
    other = "http://127.0.0.1:7"
    assert keep_token(other, "run-def") == token_file(other)
    assert not file.exists()
    assert find_token(other) == "run-def"
    forget_token(other)
    assert find_token(other) == ""
    monkeypatch.setenv("MUP_REGISTRY_TOKEN", "said")
    assert find_token(url) == "said"


PROJECT = """
[registry]
port = 0
[services.Orders]
class = "shop:Orders"
[services.Front]
class = "shop:Front"
"""


@contextmanager
def mup_run(folder: Path, *options: str, **env: str) -> Iterator[dict[str, Any]]:
    """Run ``mup run --json`` in a process of its own; give what it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mup", "run", str(folder), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **env},
    )
    assert process.stdout
    try:
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            text += line
        yield json.loads(text)
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "run-" not in text + out + err


def mup(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in another terminal."""
    return subprocess.run(
        [sys.executable, "-m", "mup", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
        env={**os.environ, **env},
    )


def test_commands_in_another_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``mup services``, ``mup pool`` and another ``mup run`` find the token; without it one line says so."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    (tmp_path / "shop.py").write_text(SOURCE)
    (tmp_path / "mup.toml").write_text(PROJECT)
    with mup_run(tmp_path, "--service", "Orders") as first:
        assert stat.S_IMODE(Path(first["token_file"]).stat().st_mode) == 0o600
        at = ("--registry", first["registry"])
        with mup_run(tmp_path, "--service", "Front", *at) as second:
            assert second["token_file"] is None
            listed = json.loads(mup("services", "--json", *at).stdout)
            assert {name: len(live) for name, live in listed["services"].items()} == {"Front": 1, "Orders": 2}
            status, body = send(
                second["services"]["Front"]["replicas"][0],
                "POST",
                "/buy/",
                {"card": 7},
                Content_Type="application/json",
            )
            assert (status, json.loads(body)) == (200, {"bought": 7})
            changed = mup("pool", "Front", "3", *at)
            assert "Front.0: 3 workers" in changed.stdout, changed.stderr
        elsewhere = mup("services", *at, XDG_CACHE_HOME=str(tmp_path / "nothing"))
        assert elsewhere.returncode == 2
        assert "wants the token of its run" in elsewhere.stderr
        assert "Traceback" not in elsewhere.stderr
    gone = mup("services", *at)
    assert "does not answer" in gone.stderr


def test_a_replica_killed_at_its_port_returns_at_once(tmp_path: Path) -> None:
    """The registry lists the successor of a replica that had no time to leave, long before it would expire."""
    project = make_project(tmp_path, SOURCE, "Orders", port=free_port(), replicas=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUP_REGISTRY_EXPIRY", "300")
        with running(project) as system:
            (before,) = system.deployment.replicas()
            time.sleep(1.0)  # one that dies right after its start is given up
            os.kill(before.pid, signal.SIGKILL)
            wait_for(lambda: len(system.deployment.supervise()) == 2)
            (after,) = system.deployment.replicas()
            assert after.url == before.url
            (listed,) = RegistryClient(system.deployment.registry_url).services()["Orders"]
            assert listed["pid"] == after.pid


def test_an_address_changes_its_owner_when_that_is_gone(tmp_path: Path) -> None:
    """Not while the owner shows life; another service may be where one has died, after the expiry."""
    port = free_port()
    project = make_project(tmp_path, SOURCE, "Orders", port=port, replicas=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUP_REGISTRY_EXPIRY", "1")
        with running(project) as system:
            registry = system.deployment.registry_url
            client = RegistryClient(registry)
            with pytest.raises(DeploymentError, match="is the address of 'Orders', replica 0"):
                client.post("/register", {"service": "Front", "url": system.url("Orders")})
            assert list(client.services()) == ["Orders"]
            os.kill(system.deployment.replicas()[0].pid, signal.SIGKILL)
            heir = make_project(tmp_path / "heir", SOURCE, "Front", port=port)
            with Deployment(heir, registry=registry):
                listed = client.services()
                assert (listed["Orders"], len(listed["Front"])) == ([], 1)


def free_port() -> int:
    """Return a port without a listener."""
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        return int(server.server_address[1])


def test_several_deployments_have_tokens_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cannot join the other by accident."""
    monkeypatch.delenv("MUP_REGISTRY_TOKEN", raising=False)
    with (
        Deployment(make_project(tmp_path / "a", SOURCE, "Orders", replicas=1)) as one,
        Deployment(make_project(tmp_path / "b", SOURCE, "Orders", replicas=1)) as other,
    ):
        assert one.token != other.token
        with pytest.raises(DeploymentError, match="does not have this token"):
            RegistryClient(one.registry_url, other.token).get("/services")
