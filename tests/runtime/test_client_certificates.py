"""Only callers with the right certificate get in, and both ends log the refusal of others."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import uvloop
from certificates import Authority, ask
from deployments import System, make_project, running

from mup.errors import DeploymentError, NoReplicaError
from mup.project import Project, load_project
from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.deployment.registry_client import RegistryClient
from mup.runtime.server.listening import listen
from mup.tls import TLS_CA, TLS_CERT, TLS_KEY, TlsFiles, client_context, server_context, why_refused
from mup.workload.scenario import ClientCommunication

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
from mup import EP, MS, Communication


class Back(MS):
    @EP("/echo/")
    def echo(self, comm: Communication) -> None:
        comm.respond(comm.params)


class Blocks(MS):
    @EP("/ask/")
    def ask(self, comm: Communication) -> None:
        comm.respond(comm.call("Back", "/echo/", {"a": 1}).get())


class Awaits(MS):
    runtime = "async"

    @EP("/ask/")
    async def ask(self, comm: Communication) -> None:
        comm.respond(await comm.call("Back", "/echo/", {"a": 1}))
"""
NONE = "wants a certificate, and this caller has none"
WRONG = "does not accept the certificate of this caller: unknown ca"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> TlsFiles:
    """Certificates that are asked for, and are there."""
    return replace(authority.issue("server"), client_ca=str(authority.file))


@pytest.fixture
def foreign(authority: Authority, tmp_path: Path) -> TlsFiles:
    """A certificate of another authority; its owner trusts both."""
    other = Authority(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(authority.file.read_bytes() + other.file.read_bytes())
    return replace(other.issue("foreign"), ca=str(both))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, files: TlsFiles) -> Project:
    made = make_project(tmp_path_factory.mktemp("mutual"), SOURCE, "Back", "Blocks", "Awaits")
    return replace(made, tls=files)


@pytest.fixture(scope="module")
def shop(project: Project) -> Iterator[System]:
    """Services that serve only callers with certificates."""
    with running(project) as system:
        yield system


def no_certificate(files: TlsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process trust the services, and nothing to present."""
    monkeypatch.setenv(TLS_CA, files.ca)
    monkeypatch.delenv(TLS_CERT, raising=False)
    monkeypatch.delenv(TLS_KEY, raising=False)


@pytest.mark.parametrize("caller", ["Blocks", "Awaits"])
def test_services_present_their_certificate(shop: System, files: TlsFiles, caller: str) -> None:
    """To the registry, where they are all listed, and to each other."""
    status, body = ask(shop.url(caller), "/ask/", files.ca, files)
    assert (status, json.loads(body)) == (200, {"a": 1})


def test_callers_without_one_are_counted(shop: System, files: TlsFiles) -> None:
    """No client without a certificate is answered, not even about health; metrics count the attempts."""

    def refused() -> int:
        lines = ask(shop.url("Back"), "/mup/metrics", files.ca, files)[1].decode().splitlines()
        return sum(int(line.split()[-1]) for line in lines if 'kind="certificate_refused"' in line)

    before = refused()
    with pytest.raises(OSError, match="certificate required"):
        ask(shop.url("Back"), "/healthz", files.ca)
    assert refused() == before + 1
    with pytest.raises(OSError, match="certificate required"):
        ask(shop.deployment.registry_url, "/healthz", files.ca)
    text = ask(shop.deployment.registry_url, "/mup/metrics", files.ca, files)[1].decode()
    assert "\nmup_registry_callers_refused_total 1" in text


def test_a_replica_with_a_foreign_certificate_does_not_join(
    shop: System, project: Project, foreign: TlsFiles
) -> None:
    """It says in one message why, and stops."""
    stranger = Deployment(
        project, services=["Back"], registry=shop.deployment.registry_url, tls=foreign, first_replica=7
    )
    with pytest.raises(DeploymentError, match=f"refuses this replica: it {WRONG}"), stranger:
        pass


def test_clients_present_what_the_environment_names(
    shop: System, files: TlsFiles, foreign: TlsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands and load generators get in with a certificate, and say what is wrong without."""
    url = shop.deployment.registry_url

    async def call() -> object:
        network = Network(url, EventLog(None, Path()), 0, {})
        try:
            await network.learn()
            return await ClientCommunication(network).call("Back", "/echo/", {"a": 1})
        finally:
            await network.close()

    no_certificate(files, monkeypatch)
    with pytest.raises(NoReplicaError, match=NONE):
        asyncio.run(call())
    with pytest.raises(DeploymentError, match=NONE):
        RegistryClient(url).get("/services")
    monkeypatch.setenv(TLS_CERT, foreign.cert)
    monkeypatch.setenv(TLS_KEY, foreign.key)
    with pytest.raises(NoReplicaError, match=WRONG):
        asyncio.run(call())
    with pytest.raises(DeploymentError, match=WRONG):
        RegistryClient(url).get("/services")
    monkeypatch.setenv(TLS_CERT, files.cert)
    with pytest.raises(DeploymentError, match="key values mismatch") as caught:
        client_context()
    assert caught.value.where == TLS_CERT
    monkeypatch.setenv(TLS_KEY, files.key)
    assert asyncio.run(call()) == {"a": 1}
    assert set(RegistryClient(url).get("/services")["services"]) == {"Back", "Blocks", "Awaits"}


@pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_both_ends_say_why(
    files: TlsFiles,
    foreign: TlsFiles,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """The caller is sent the reason, and the log has a line with its address: one, however many try."""
    no_certificate(files, monkeypatch)
    refusals: list[int] = []

    class Hello(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            cast("asyncio.Transport", transport).write(b"hello")

    def connect(port: int, presented: TlsFiles | None) -> str:
        context = client_context(presented)
        try:
            with (
                socket.create_connection(("127.0.0.1", port), 10) as sock,
                context.wrap_socket(sock, server_hostname="127.0.0.1") as encrypted,
            ):
                return encrypted.recv(100).decode()
        except OSError as error:
            return why_refused(error)

    async def meet(*callers: TlsFiles | None) -> list[str]:
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        tls = server_context(files, "127.0.0.1")
        listener = await listen(Hello, sock, tls, lambda: refusals.append(1))
        answers = [await asyncio.to_thread(connect, port, caller) for caller in callers]
        listener.close()
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)
        return answers

    with caplog.at_level(logging.WARNING), asyncio.Runner(loop_factory=new_loop) as runner:
        answers = runner.run(meet(files, None, foreign, files))
    assert [answers[0], answers[3]] == ["hello", "hello"]
    assert NONE in answers[1]
    assert WRONG in answers[2]
    assert len(refusals) == 2
    (line,) = [record.getMessage() for record in caplog.records if record.name == "mup.runtime"]
    assert line == "a connection from 127.0.0.1 was refused: peer did not return a certificate"


def test_a_registry_alone(files: TlsFiles) -> None:
    """Its options say whose callers it serves, its log which it did not."""
    options = ["--tls-cert", files.cert, "--tls-key", files.key, "--tls-client-ca", files.client_ca]
    with subprocess.Popen(
        [sys.executable, "-m", "mup_registry", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, TLS_CA: files.ca},
    ) as registry:
        assert registry.stdout
        assert registry.stderr
        try:
            url = json.loads(registry.stdout.readline())["url"]
            assert ask(url, "/healthz", files.ca, files)[0] == 200
            with pytest.raises(ssl.SSLError, match="certificate required"):
                ask(url, "/healthz", files.ca)
        finally:
            registry.terminate()
        said = registry.stderr.read().decode()
    assert "a connection from 127.0.0.1 was refused: peer did not return a certificate" in said


def test_settings(tmp_path: Path) -> None:
    """The file of mup.toml is relative to it."""
    file = tmp_path / "mup.toml"
    file.write_text(
        "[tls]\ncert = 'c.pem'\nkey = 'k.pem'\nclient_ca = 'ca.pem'\n[services.A]\nclass = 'a:A'\n"
    )
    tls = load_project(file).tls
    assert tls is not None
    assert tls.client_ca == str(tmp_path / "ca.pem")
