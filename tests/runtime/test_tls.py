"""All is encrypted that should be, callers refuse strangers, and wrong files are one clear message."""

from __future__ import annotations

import asyncio
import datetime as dt
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from certificates import Authority, ask
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from deployments import System, make_project, running

from mup.cli.main import cli
from mup.errors import DeploymentError, NoReplicaError, ProjectError, UsageError
from mup.project import load_project
from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.deployment.registry_client import RegistryClient
from mup.tls import TLS_CA, TlsFiles
from mup.workload.scenario import ClientCommunication

pytestmark = pytest.mark.services

SOURCE = """
from mup import EP, MS, Communication
from mup.errors import CommunicationError


class Back(MS):
    static = {"/static/": "."}

    @EP("/echo/")
    def echo(self, comm: Communication) -> None:
        comm.respond(comm.params)


class Blocks(MS):
    @EP("/ask/")
    def ask(self, comm: Communication) -> None:
        try:
            answers = [comm.call(comm.params["service"], "/echo/", {"n": n}).get() for n in range(3)]
            comm.respond(answers)
        except CommunicationError as error:
            comm.respond(type(error).__name__)

    @EP("/large/")
    def large(self, comm: Communication) -> None:
        futures = [comm.call("Back", "/echo/", {"text": "x" * 3_000_000}) for _ in range(2)]
        comm.respond([len(future.get()["text"]) for future in futures])


class Awaits(MS):
    runtime = "async"

    @EP("/ask/")
    async def ask(self, comm: Communication) -> None:
        try:
            answers = [await comm.call(comm.params["service"], "/echo/", {"n": n}) for n in range(3)]
            comm.respond(answers)
        except CommunicationError as error:
            comm.respond(type(error).__name__)
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> TlsFiles:
    """A certificate for loopback that callers trust."""
    return authority.issue("server")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, files: TlsFiles) -> Iterator[System]:
    """Services with TLS, and a registry in which a replica without signs of life stays."""
    project = make_project(tmp_path_factory.mktemp("tls"), SOURCE, "Back", "Blocks", "Awaits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUP_REGISTRY_EXPIRY", "300")
        with running(replace(project, tls=files)) as system:
            yield system


@contextmanager
def stranger(files: TlsFiles) -> Iterator[tuple[str, list[bytes]]]:
    """A server with a certificate of its own: its URL, and what clients told it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(connection, server_side=True) as encrypted:
                        heard.append(encrypted.recv(65536))
                except OSError:
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}", heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("caller", ["Blocks", "Awaits"])
def test_services_call_each_other(shop: System, files: TlsFiles, caller: str) -> None:
    """Registry and replicas are at https addresses, and calls find them there."""
    assert shop.deployment.registry_url.startswith("https://")
    status, body = ask(shop.url(caller), "/ask/?service=Back", files.ca)
    assert (status, json.loads(body)) == (200, [{"n": 0}, {"n": 1}, {"n": 2}])


def test_files_are_served(shop: System, files: TlsFiles) -> None:
    """What the front sends by itself is encrypted, too."""
    assert ask(shop.url("Back"), "/static/shop.py", files.ca) == (200, SOURCE.encode())


def test_kept_connections_are_used_again(shop: System, files: TlsFiles) -> None:
    """Shaking hands once per connection is enough: three calls need one."""
    (worker,) = json.loads(ask(shop.url("Blocks"), "/mup/status", files.ca, token=shop.deployment.token)[1])[
        "workers"
    ]

    def connections() -> set[str]:
        sockets = {link.readlink() for link in Path(f"/proc/{worker}/fd").iterdir() if link.is_symlink()}
        return {str(target) for target in sockets if str(target).startswith("socket:")}

    ask(shop.url("Blocks"), "/ask/?service=Back", files.ca)
    before = connections()
    ask(shop.url("Blocks"), "/ask/?service=Back", files.ca)
    assert connections() == before


def test_large_bodies(shop: System, files: TlsFiles) -> None:
    """Megabytes go both ways, on two connections at the same time."""
    assert json.loads(ask(shop.url("Blocks"), "/large/", files.ca)[1]) == [3_000_000] * 2


def test_plain_http_gets_no_answer(shop: System) -> None:
    """A port with TLS speaks nothing else."""
    for url in (shop.url("Back"), shop.deployment.registry_url):
        connection = http.client.HTTPConnection(url.removeprefix("https://"), timeout=30)
        connection.request("GET", "/healthz")
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.getresponse()
        connection.close()


@pytest.mark.parametrize("caller", ["Blocks", "Awaits"])
def test_strangers_are_told_nothing(shop: System, files: TlsFiles, caller: str, tmp_path: Path) -> None:
    """A replica whose certificate no trusted authority has signed is not sent the request."""
    with stranger(Authority(tmp_path).issue("stranger")) as (url, heard):
        client = RegistryClient(shop.deployment.registry_url, tls=files)
        name = f"Strange{caller}"
        client.post("/register", {"service": name, "url": url, "endpoints": {"echo": "/echo/"}})
        status, body = ask(shop.url(caller), f"/ask/?service={name}", files.ca)
        assert (status, body) == (200, b"NoReplicaError")
        assert not any(heard)


def test_load_generators_trust_the_same(
    shop: System, files: TlsFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients call over TLS; with other certificates to trust, they do not even ask the registry."""

    async def call() -> object:
        network = Network(shop.deployment.registry_url, EventLog(None, Path()), 0, {})
        try:
            await network.learn()
            return await ClientCommunication(network).call("Back", "/echo/", {"a": 1})
        finally:
            await network.close()

    monkeypatch.setenv(TLS_CA, files.ca)
    assert asyncio.run(call()) == {"a": 1}
    monkeypatch.setenv(TLS_CA, str(Authority(tmp_path).file))
    with pytest.raises(NoReplicaError, match=r"(?i)certificate.verify.failed"):
        asyncio.run(call())


def test_processes_answer_the_launcher(shop: System) -> None:
    """The launcher reaches every front over TLS."""
    roles = [(p.role, p.service) for p in shop.deployment.processes()]
    assert roles.count(("worker", "Back")) == 1


Wrong = Callable[[TlsFiles, Authority, Path], TlsFiles]


def not_pem(files: TlsFiles, _: Authority, folder: Path) -> TlsFiles:
    (folder / "text.pem").write_text("no certificate")
    return replace(files, cert=str(folder / "text.pem"))


def protected(files: TlsFiles, _: Authority, folder: Path) -> TlsFiles:
    key = load_pem_private_key(Path(files.key).read_bytes(), None)
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (folder / "protected.key").write_bytes(data)
    return replace(files, key=str(folder / "protected.key"))


def expired(_: TlsFiles, authority: Authority, folder: Path) -> TlsFiles:
    return authority.issue("expired", until=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("make", "where", "says"),
    [
        pytest.param(lambda f, _a, _d: replace(f, cert="/no.pem"), "tls.cert", "cannot read '/no.pem': No such file", id="no-cert"),
        pytest.param(lambda f, _a, _d: replace(f, key="/no.key"), "tls.key", "cannot read '/no.key': No such file", id="no-key"),
        pytest.param(lambda f, _a, _d: replace(f, ca="/no.ca"), "tls.ca", "no certificates to trust in '/no.ca'", id="no-ca"),
        pytest.param(lambda f, a, _d: replace(f, key=a.issue("other").key), "tls", "key values mismatch", id="wrong-key"),
        pytest.param(not_pem, "tls", "cannot be used", id="not-pem"),
        pytest.param(protected, "tls", "protected by a passphrase", id="passphrase"),
        pytest.param(expired, "tls.cert", "certificate has expired", id="expired"),
        pytest.param(lambda _f, a, _d: a.issue("elsewhere", "10.1.2.3"), "tls.cert", "not valid for '127.0.0.1'", id="other-host"),
        pytest.param(lambda f, _a, d: replace(f, ca=str(Authority(d).file)), "tls.cert", "would refuse", id="not-trusted"),
        pytest.param(lambda f, _a, _d: replace(f, client_ca="/no.ca"), "tls.client_ca", "no certificates to check callers with in '/no.ca'", id="no-client-ca"),
        pytest.param(lambda f, _a, d: replace(f, client_ca=str(Authority(d).file)), "tls.cert", "would refuse calls with", id="not-for-callers"),
    ],
)  # fmt: skip
def test_wrong_files(
    files: TlsFiles, authority: Authority, tmp_path: Path, make: Wrong, where: str, says: str
) -> None:
    """Files that callers could not use are one message, before anything has started."""
    project = make_project(tmp_path / "shop", SOURCE, "Back")
    deployment = Deployment(replace(project, tls=make(files, authority, tmp_path)))
    with pytest.raises(DeploymentError) as caught:
        deployment.start()
    assert caught.value.where == where
    assert says in caught.value.message
    assert "-----" not in str(caught.value).partition("\n")[0]
    assert not deployment.replicas()


def test_registry_alone(files: TlsFiles) -> None:
    """A registry started by itself serves with what its options name."""
    command = [sys.executable, "-m", "mup_registry", "--port", "0"]
    with subprocess.Popen(
        [*command, "--tls-cert", files.cert, "--tls-key", files.key],
        stdout=subprocess.PIPE,
        env={**os.environ, TLS_CA: files.ca},
    ) as registry:
        assert registry.stdout
        try:
            url = json.loads(registry.stdout.readline())["url"]
            assert ask(url, "/healthz", files.ca)[0] == 200
        finally:
            registry.terminate()


def test_settings(tmp_path: Path) -> None:
    """Files of mup.toml are relative to it; options of the command go together."""
    project = tmp_path / "mup.toml"
    project.write_text("[tls]\ncert = 'c.pem'\n[services.A]\nclass = 'a:A'\n")
    with pytest.raises(ProjectError, match=r"\[tls\] key: is missing"):
        load_project(project)
    project.write_text("[tls]\ncert = 'c.pem'\nkey = 'k.pem'\n[services.A]\nclass = 'a:A'\n")
    assert load_project(project).tls == TlsFiles(cert=str(tmp_path / "c.pem"), key=str(tmp_path / "k.pem"))
    result = CliRunner().invoke(cli, ["run", str(tmp_path), "--tls-cert", "c.pem"])
    assert isinstance(result.exception, UsageError)
    assert "--tls-cert and --tls-key go together" in str(result.exception)
