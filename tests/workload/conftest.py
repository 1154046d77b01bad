"""A system to drive: a real registry and an HTTP server that answers in every way a front may."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socketserver
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mup.project import Project, ServiceConfig
from mup_registry.directory import Directory
from mup_registry.server import RegistryServer


@dataclass
class System:
    """Where the registry is, and what the server saw."""

    registry_url: str
    server_url: str
    requests: list[dict[str, Any]] = field(default_factory=list)


def _server(system: System) -> web.Application:
    async def echo(request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        system.requests.append({"path": request.path, "headers": dict(request.headers), "body": body})
        return web.json_response({"echo": body})

    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep((await request.json())["seconds"])
        return web.json_response({})

    async def missing(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "no such word"}, status=404)

    async def chunked(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        answer.content_type = "text/plain"
        await answer.prepare(request)
        for part in (b"one ", b"two ", b"three"):
            await answer.write(part)
            await asyncio.sleep(0.01)
        await answer.write_eof()
        return answer

    async def closing(request: web.Request) -> web.StreamResponse:
        answer = web.Response(body=b"\x00\xff")
        answer.force_close()
        return answer

    async def broken(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    app = web.Application()
    for handler in (echo, slow, missing, chunked, closing, broken):
        app.router.add_post(f"/{handler.__name__}/", handler)
    return app


async def _start(make: Callable[[], web.BaseRunner]) -> tuple[web.BaseRunner, str]:
    runner = make()
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


@pytest.fixture(scope="session")
def _system() -> Iterator[System]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    directory = Directory(expiry=1e9)
    registry, registry_url = run(_start(lambda: web.ServerRunner(RegistryServer(directory).server())))
    system = System(registry_url, "")
    server, system.server_url = run(_start(lambda: web.AppRunner(_server(system), access_log=None)))
    directory.register(
        service="S", replica=0, url=system.server_url, pid=1, endpoints={"repeat": "/echo/"}, now=0.0
    )
    yield system
    run(server.cleanup())
    run(registry.cleanup())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def system(_system: System) -> System:
    """The system, with nothing seen yet."""
    _system.requests.clear()
    return _system


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Project]:
    """Makes a project whose client has this source text in its class body."""

    def make(body: str, name: str = "Probe") -> Project:
        lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
        text = f"from mup import Client\nimport asyncio\n\nclass {name}(Client):\n{lines}\n"
        (tmp_path / "load_probe.py").write_text(text)
        return Project(
            name="probe",
            root=tmp_path,
            source=tmp_path,
            services=(ServiceConfig(name="S", target="none:S"),),
            client=f"load_probe:{name}",
        )

    return make


class RawServer(socketserver.ThreadingTCPServer):
    """Answers with given bytes: what an HTTP library would not let a server do.

    Attributes:
        reply: Returns the bytes for the n-th request of a connection (from 1).
        requests: So many requests are answered on a connection before it is closed.
        heads: Of all requests seen, in order.
    """

    daemon_threads = True

    def __init__(self, reply: Callable[[int], bytes], requests: int) -> None:
        super().__init__(("127.0.0.1", 0), _RawHandler)
        self.reply = reply
        self.requests = requests
        self.heads: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _RawHandler(socketserver.StreamRequestHandler):
    server: RawServer

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            for number in range(1, self.server.requests + 1):
                head = ""
                while not head.endswith("\r\n\r\n"):
                    line = self.rfile.readline().decode()
                    if not line:
                        return
                    head += line
                self.rfile.read(int(head.lower().partition("content-length:")[2].split()[0]))
                self.server.heads.append(head)
                self.wfile.write(self.server.reply(number))


@pytest.fixture
def raw_server() -> Iterator[Callable[..., RawServer]]:
    """Starts servers of raw bytes; they end with the test."""
    with contextlib.ExitStack() as stack:

        def start(reply: Callable[[int], bytes], requests: int = 1000000) -> RawServer:
            server = stack.enter_context(RawServer(reply, requests))
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            stack.callback(server.shutdown)
            return server

        yield start


@pytest.fixture
def register(system: System) -> Callable[..., None]:
    """Tells the registry where the replicas of a service are."""

    def register(service: str, *urls: str) -> None:
        for replica, url in enumerate(urls):
            data = json.dumps({"service": service, "replica": replica, "url": url}).encode()
            kind = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{system.registry_url}/register", data, kind)
            urllib.request.urlopen(request).close()

    return register
