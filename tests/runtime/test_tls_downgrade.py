"""Where everything is encrypted, no request can be brought to be sent in clear text."""

from __future__ import annotations

import asyncio
import json
import socketserver
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, ask
from deployments import System, make_project, running

from mup.cli.services.pool import _resize
from mup.errors import DeploymentError, NoReplicaError
from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.deployment.registry_client import RegistryClient
from mup.tls import TLS_CA, TlsFiles
from mup.workload.driver import LoadDriver
from mup.workload.scenario import ClientCommunication

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
from mup import EP, MS, Communication
from mup.errors import CommunicationError


class Back(MS):
    @EP("/j/")
    def j(self, comm: Communication) -> None:
        comm.respond("real")


class Blocks(MS):
    @EP("/ask/")
    def ask(self, comm: Communication) -> None:
        try:
            comm.respond(comm.call(comm.params["service"], "/j/", {"secret": "card-4111"}).get())
        except CommunicationError as error:
            comm.respond(str(error), status=503)


class Awaits(MS):
    runtime = "async"

    @EP("/ask/")
    async def ask(self, comm: Communication) -> None:
        try:
            comm.respond(await comm.call(comm.params["service"], "/j/", {"secret": "card-4111"}))
        except CommunicationError as error:
            comm.respond(str(error), status=503)
"""


@contextmanager
def eavesdropper(
    answer: bytes = b'"rogue"', tls: TlsFiles | None = None
) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers everything the same: its URL, and what it was told.

    Args:
        answer: Body.
        tls: With which it speaks TLS; None = it does not.
    """
    heard: list[bytes] = []
    context = None
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls.cert, tls.key)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with (
                context.wrap_socket(self.request, server_side=True) if context else self.request as connection
            ):
                heard.append(connection.recv(65536))
                head = (
                    f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n"
                )
                connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        scheme = "https" if tls else "http"
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module", params=["server certificates", "client certificates"])
def shop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[tuple[System, TlsFiles]]:
    """Services with TLS, without and with certificates of callers, in which silent replicas stay listed."""
    files = authority.issue("server")
    if request.param.startswith("client"):
        files = replace(files, client_ca=str(authority.file))
    project = make_project(tmp_path_factory.mktemp("downgrade"), SOURCE, "Back", "Blocks", "Awaits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUP_REGISTRY_EXPIRY", "300")
        with running(replace(project, tls=files)) as system:
            yield system, files


def test_no_replica_is_registered_without_tls(shop: tuple[System, TlsFiles]) -> None:
    """A registry with TLS lists https:// addresses only; calls go to real replicas. Six of eight did not."""
    system, files = shop
    with eavesdropper() as (url, heard):
        entry = {"service": "Back", "url": url, "replica": 9, "endpoints": {"j": "/j/"}}
        with pytest.raises(DeploymentError, match="everything here is encrypted") as refused:
            RegistryClient(system.deployment.registry_url, tls=files).post("/register", entry)
        assert "registers an https:// address" in refused.value.message
        for caller in ("Blocks", "Awaits"):
            answers = [ask(system.url(caller), "/ask/?service=Back", files.ca, files) for _ in range(12)]
            assert answers == [(200, b"real")] * 12
        assert not heard


@contextmanager
def lying_registry(listed: list[dict[str, Any]], tls: TlsFiles) -> Iterator[str]:
    """A registry that all services trust, and that lists what it should not."""
    body = {
        "service": "Back",
        "services": {"Back": listed},
        "replicas": listed,
        "endpoints": {"j": "/j/"},
        "learning": False,
        "id": "a",
        "expiry": 3,
    }
    with eavesdropper(json.dumps(body).encode(), tls) as (url, _):
        yield url


def entry(url: str, number: int) -> dict[str, Any]:
    """Return what a registry lists."""
    return {"id": f"i{number}", "service": "Back", "replica": number, "url": url, "pid": 1}


@pytest.mark.parametrize("caller", ["Blocks", "Awaits"])
def test_callers_do_not_step_down(
    caller: str, authority: Authority, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever a registry lists, services send nothing in clear text: they say so, and call the others."""
    files = authority.issue("server")
    project = replace(make_project(tmp_path, SOURCE, caller), tls=files)
    with eavesdropper() as (rogue, heard), eavesdropper(b'"real"', files) as (real, asked):
        with (
            lying_registry([entry(rogue, 0), entry(real, 1)], files) as registry,
            Deployment(project, registry=registry) as deployment,
        ):
            url = deployment.replicas()[0].url
            answers = [ask(url, "/ask/?service=Back", files.ca) for _ in range(10)]
            assert answers == [(200, b"real")] * 10
            assert len(asked) == 10
        with (
            lying_registry([entry(rogue, 0)], files) as registry,
            Deployment(project, registry=registry) as deployment,
        ):
            status, body = ask(deployment.replicas()[0].url, "/ask/?service=Back", files.ca)
            assert status == 503
            assert f"no live replica ({rogue} is not encrypted" in body.decode()
        assert not heard
    assert f"a replica of 'Back' is left out: {rogue} is not encrypted" in capfd.readouterr().err


def test_commands_and_clients_do_not_step_down(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients get an error; what a command sends, with the token in it, is not sent either."""
    files = authority.issue("server")
    monkeypatch.setenv(TLS_CA, files.ca)
    with eavesdropper() as (rogue, heard), lying_registry([entry(rogue, 0)], files) as registry:

        async def call() -> object:
            network = Network(registry, EventLog(None, Path()), 0, {})
            try:
                return await ClientCommunication(network).call("Back", "/j/", {"a": 1})
            finally:
                await network.close()

        with pytest.raises(NoReplicaError, match="is not encrypted, and everything here is"):
            asyncio.run(call())
        client = RegistryClient(registry)
        assert client.services()["Back"][0]["url"] == rogue
        with pytest.raises(DeploymentError, match="is not encrypted"):
            _resize(rogue, 3, "t0ken", client)
        assert not heard


def test_half_a_deployment_is_not_encrypted(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With certificates, a registry at http:// is refused before it is told anything."""
    files = authority.issue("server")
    project = replace(make_project(tmp_path, SOURCE, "Back"), tls=files, client="w:C")
    (tmp_path / "mup.toml").write_text(
        f"[tls]\ncert = '{files.cert}'\nkey = '{files.key}'\n[services.Back]\nclass = 'shop:Back'\n"
    )
    with eavesdropper() as (registry, heard):
        for attempt in (
            lambda: Deployment(project, registry=registry),
            lambda: RegistryClient(registry, tls=files),
            lambda: LoadDriver(project, registry),
        ):
            with pytest.raises(
                DeploymentError, match="is not encrypted, but there is a certificate"
            ) as caught:
                attempt()
            assert caught.value.where == "tls"
        done = subprocess.run(
            [sys.executable, "-m", "mup", "run", str(tmp_path), "--registry", registry],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=ROOT,
        )
        assert done.returncode == 2
        assert f"the registry at {registry} is not encrypted" in done.stderr
        told = {
            "service": "Back",
            "target": "shop:Back",
            "source": str(tmp_path),
            "registry": registry,
            "tls": {"cert": files.cert, "key": files.key, "ca": files.ca},
        }
        replica = subprocess.run(
            [sys.executable, "-m", "mup.runtime.replica", json.dumps(told)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=ROOT,
        )
        assert replica.returncode == 2
        assert "is not encrypted" in json.loads(replica.stdout)["error"]
        assert not heard


def test_names_are_checked_over_tls_too(shop: tuple[System, TlsFiles]) -> None:
    """A rebound page is refused by registry and replicas that speak TLS."""
    system, files = shop
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(files.cert, files.key)
    token = {"Authorization": f"Bearer {system.deployment.token}"}
    for url, path in ((system.deployment.registry_url, "/services"), (system.url("Back"), "/mup/status")):
        for host, status in (("evil.example", 403), ("127.0.0.1", 200)):
            request = urllib.request.Request(url + path, headers={"Host": host, **token})
            try:
                with urllib.request.urlopen(request, context=context, timeout=30) as response:
                    found = response.status
            except urllib.error.HTTPError as error:
                found = error.code
                error.close()
            assert found == status
