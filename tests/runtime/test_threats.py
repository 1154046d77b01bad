"""Claims of docs/explanation/threat-model.md under attack. The page names the other tests."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from deployments import SOURCE, System, ask, make_project, running

from mup.runtime.pool.admin import barred

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "t0ken-nobody-sees"

CODE_FROM_BYTES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
CODE_FROM_TEXT = {"eval", "exec", "compile", "__import__"}
DANGEROUS = CODE_FROM_BYTES | CODE_FROM_TEXT | {"shell"}


@pytest.mark.parametrize("package", ["mup", "mup_registry", "analyzer"])
def test_nothing_turns_data_into_code(package: str) -> None:
    """No module unpickles, evaluates, or starts a shell; analysed sources are parsed and never run."""
    found = []
    for file in (ROOT / package).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if not any(name in text for name in DANGEROUS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").partition(".")[0]}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {node.func.id} & CODE_FROM_TEXT
            elif isinstance(node, ast.keyword) and node.arg == "shell":
                names = {"shell"}
            else:
                continue
            if names & DANGEROUS:
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert not found


def test_the_tests_that_the_page_names_exist() -> None:
    """Every claim of the threat model names tests there are."""
    page = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+/\w+\.py)(?:::(\w+))?`", page)
    assert len(named) > 20
    for file, function in named:
        assert (
            f"def {function}(" in (ROOT / "tests" / file.removeprefix("tests/")).read_text(encoding="utf-8")
            or not function
        )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system with a token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_TOKEN", TOKEN)
        patch.delenv("MUP_REGISTRY_TOKEN", raising=False)
        project = make_project(tmp_path_factory.mktemp("guarded"), SOURCE, "One", "Caller")
        with running(replace(project, registry_token="${SHOP_TOKEN}")) as system:
            yield system


@pytest.mark.services
@pytest.mark.parametrize(
    "path", ["/mup/status", "/mup/metrics", "/mup/openapi.json", "/mup%2Fstatus", "/mup/x"]
)
def test_replicas_tell_of_themselves_with_the_token_only(guarded: System, path: str) -> None:
    """Where there is a token, process ids, addresses and figures are for who has it; health is for all."""
    url = guarded.url("One")
    refused = ask(url, path)
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert ask(url, path, Authorization="Bearer wrong").status == 401
    assert ask(url, path, Authorization=f"Bearer {TOKEN}").status == (404 if path == "/mup/x" else 200)
    assert ask(url, "/healthz").status == ask(url, "/readyz").status == 200


@pytest.mark.services
def test_the_launcher_has_the_token(guarded: System) -> None:
    """The user that has started a system reaches what it guards."""
    assert [p.role for p in guarded.deployment.processes()].count("front") == 2


@pytest.mark.parametrize(
    ("token", "shown", "peer", "status"),
    [
        pytest.param("", b"", "127.0.0.1", None, id="loopback"),
        pytest.param("", b"", "::1", None, id="loopback-6"),
        pytest.param("", b"", "10.0.0.1", 403, id="elsewhere"),
        pytest.param("", b"Bearer ", "10.0.0.1", 403, id="empty-token"),
        pytest.param("", b"", "", 403, id="nobody-knows-where"),
        pytest.param("a", b"Bearer a", "10.0.0.1", None, id="with-the-token"),
        pytest.param("a", b"", "127.0.0.1", 401, id="loopback-without-the-token"),
    ],
)
def test_without_a_token_no_other_machine_is_told(
    token: str, shown: bytes, peer: str, status: int | None
) -> None:
    """Without a token this machine alone is told of a replica; with one, every client that shows it."""
    asked = SimpleNamespace(fields={b"authorization": shown} if shown else {}, peer=peer)
    answer = barred(asked, token)  # type: ignore[arg-type] # all of a request that is looked at
    assert (answer.status if answer else None) == status


@pytest.mark.services
def test_no_secret_is_on_a_command_line(guarded: System) -> None:
    """Every user of the machine can read command lines; the token is on none."""
    pids = [process.pid for process in guarded.deployment.processes()]
    for pid in pids:
        assert TOKEN.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.services
def test_no_secret_is_in_what_is_printed_or_answered(tmp_path: Path) -> None:
    """Start, refusal, status and listings of a system with a token and a database never show either secret."""
    source = tmp_path / "shop"
    source.mkdir()
    (source / "shop.py").write_text(SOURCE)
    (source / "mup.toml").write_text(
        "[registry]\nport = 0\ntoken = '${SHOP_TOKEN}'\n[services.One]\nclass = 'shop:One'\n"
        "[databases.db]\nuri = 'mongodb://app:${DB_PASSWORD}@127.0.0.1:1/words'\n"
    )
    environment = {
        **os.environ,
        "SHOP_TOKEN": TOKEN,
        "DB_PASSWORD": "pa55-nobody-sees",
        "MUP_LOG_LEVEL": "debug",
    }
    done = subprocess.run(
        [sys.executable, "-m", "mup", "run", str(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 2  # there is no listener at the database's port
    assert "127.0.0.1:1" in done.stderr
    assert "nobody-sees" not in done.stdout + done.stderr


@pytest.mark.parametrize("asker", ["replica", "command"])
def test_a_token_that_cannot_be_sent_is_not_printed(tmp_path: Path, asker: str) -> None:
    """Such as one read from a file of another system, with its line break."""
    (tmp_path / "shop.py").write_text(SOURCE)
    with socket.create_server(("127.0.0.1", 0)) as registry:
        url = f"http://127.0.0.1:{registry.getsockname()[1]}"
        config = {"service": "One", "target": "shop:One", "source": str(tmp_path), "registry": url}
        words = {
            "replica": ["-m", "mup.runtime.replica", json.dumps(config)],
            "command": ["-m", "mup", "services", "--registry", url],
        }
        done = subprocess.run(
            [sys.executable, *words[asker]],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            cwd=ROOT,
            env={**os.environ, "MUP_REGISTRY_TOKEN": "nobody-\r\nsees", "MUP_LOG_LEVEL": "debug"},
        )
    assert done.returncode == 2
    assert "'Authorization' and its value have to be texts of one line" in done.stdout + done.stderr
    assert "nobody-" not in done.stdout + done.stderr


@pytest.mark.services
def test_what_clients_say_stays_on_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that puts line breaks where it can forges no line of the log and no header of an answer."""
    monkeypatch.setenv("MUP_LOG_LEVEL", "debug")
    with running(make_project(tmp_path, SOURCE, "Caller")) as system:
        forged = "%0d%0a12:00:00%20Caller.0%20ERROR%20forged"
        answers = [
            ask(system.url("Caller"), f"/nowhere{forged}"),
            ask(system.url("Caller"), f"/failing/?status={forged}"),
            ask(system.url("Caller"), "/echo/", b'{"a": ', Content_Type="application/json"),
            ask(system.url("Caller"), "/echo/", X_Mup_Request="\tforged", traceparent="forged"),
        ]
        assert [answer.status for answer in answers] == [404, 500, 400, 200]
        port = int(system.url("Caller").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
            raw.sendall(b"GET /echo/ HTTP/1.1\r\nHost: x\r\nX-A: b\rX-Forged: c\n\r\n\r\n")
            assert b" 400 " in raw.recv(65536).partition(b"\r\n")[0]
    lines = capfd.readouterr().err.splitlines()
    assert not [line for line in lines if line.startswith("12:00:00 Caller.0 ERROR forged")]
    assert all(
        "forged" not in name and "forged" not in value for a in answers for name, value in a.headers.items()
    )


ECHOES = """
from mup import EP, MS

class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")

class Blocks(MS):
    @EP("/as-header/")
    def as_header(self, comm):
        comm.respond("x", headers={"X-Tag": comm.headers["x-tag"]})

    @EP("/as-type/")
    def as_type(self, comm):
        comm.respond("x", headers={"Content-Type": comm.headers["x-tag"]})

    @EP("/as-error/")
    def as_error(self, comm):
        raise ValueError(comm.headers["x-tag"])

    @EP("/speechless/")
    def speechless(self, comm):
        raise Speechless

class Awaits(MS):
    runtime = "async"

    @EP("/as-header/")
    async def as_header(self, comm):
        comm.respond("x", headers={"X-Tag": comm.headers["x-tag"]})

    @EP("/as-type/")
    async def as_type(self, comm):
        comm.respond("x", headers={"Content-Type": comm.headers["x-tag"]})

    @EP("/as-error/")
    async def as_error(self, comm):
        raise ValueError(comm.headers["x-tag"])

    @EP("/speechless/")
    async def speechless(self, comm):
        raise Speechless
"""


@pytest.mark.services
@pytest.mark.parametrize("form", ["text", "json"])
def test_bytes_that_are_no_text_end_no_worker(
    tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an endpoint does with them: they are sent back as a text, or the log tells why not."""
    monkeypatch.setenv("MUP_LOG", form)
    with running(make_project(tmp_path, ECHOES, "Blocks", "Awaits")) as system:
        for service in ("Blocks", "Awaits"):
            before = system.status(service)["workers"]
            port = int(system.url(service).rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
                wanted = {"/as-header/": b"200 ", "/as-type/": b"200 ", "/as-error/": b"500 "}
                for path, status in {**wanted, "/speechless/": b"500 "}.items():
                    raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n".encode() + b"X-Tag: a\xff\r\n\r\n")
                    assert raw.recv(65536).partition(b" ")[2].startswith(status), path
            assert system.status(service)["workers"] == before
    text = capfd.readouterr().err
    assert "Logging error" not in text
    for words, lines in (("ValueError: a\xff", 2), ("says nothing", 2)):
        assert sum(words in line for line in text.splitlines()) == lines, words


@pytest.mark.services
def test_an_address_in_the_registry_is_an_address(guarded: System) -> None:
    """What is registered cannot be a file, carry credentials, or forge a line of a listing."""
    registry = guarded.deployment.registry_url
    for url in (
        "file:///etc/passwd",
        "http://a:b@host:1",
        "http://host:1/?x",
        "http://h\n:1",
        "gopher://h:1",
    ):
        entry = json.dumps({"service": "A", "url": url}).encode()
        answer = ask(
            registry,
            "/register",
            entry,
            Authorization=f"Bearer {TOKEN}",
            Content_Type="application/json",
        )
        assert answer.status == 400
