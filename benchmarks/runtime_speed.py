"""What does a trivial endpoint cost? mup's runtimes beside a bare aiohttp server, and FastAPI if installed.

    python benchmarks/runtime_speed.py [--rounds N] [--seconds S] [--connections N] [--generator wrk|own]

Every server answers ``{"ok": true}``. Pools of mup's services have eight workers, one per connection; those
whose name begins with "one" have a single one, which requests wait for. One round loads each server as long
as the others over the same number of kept connections, one request at a time on each; rounds are interleaved.
The load comes from wrk (a package of Debian) if it is installed, which takes a few microseconds per request
and so keeps servers busy; the own generator takes ten times as long, and servers wait for it.

Processor seconds are those of all processes of the server, read from their clocks; the load generator's own
do not count. The ratio is bare aiohttp's processor time per request over the server's, the median over
rounds; 1 is aiohttp's speed. *Extra* is what the server takes beyond aiohttp, the median over rounds, too.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from machine import describe
from trivial_services import SERVICES

from mup.project import Project, ServiceConfig
from mup.runtime.launcher import Deployment
from mup.workload.cpu import HostCpu, process_cpu_seconds

AIOHTTP = """
import asyncio, sys, uvloop
from aiohttp import web

async def trivial(request):
    await request.read()
    return web.json_response({"ok": True})

async def main():
    app = web.Application()
    app.router.add_route("*", "/trivial/", trivial)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

uvloop.run(main())
"""

FASTAPI = """
import socket, sys, uvicorn
from fastapi import FastAPI

app = FastAPI()

@app.post("/trivial/")
async def trivial():
    return {"ok": True}

sock = socket.socket()
sock.bind(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[sock])
"""


REQUEST = b"\r\n".join(
    (
        b"POST /trivial/ HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Content-Type: application/json",
        b"Content-Length: 2",
        b"",
        b"{}",
    )
)
NAMES = {
    "Process": "process",
    "Thread": "thread",
    "Async": "async",
    "OneProcess": "one process",
    "OneThread": "one thread",
}
TARGETS = {"process": 0.75, "thread": 0.6, "async": 0.8}
EXTRA = 25.0
"""Target: microseconds of processor time per request beyond aiohttp's."""


WRK_SCRIPT = """
wrk.method = "POST"
wrk.body = "{}"
wrk.headers["Content-Type"] = "application/json"
"""


@dataclass(frozen=True)
class Burst:
    """So many requests were answered in so many seconds."""

    requests: int
    seconds: float


@dataclass(frozen=True)
class Server:
    """Something that answers: its name, its port, its processes."""

    name: str
    port: int
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """Return the processor seconds used so far."""
        return sum(process_cpu_seconds(pid) for pid in self.pids)


class Connection(asyncio.Protocol):
    """Sends a request, waits for the whole answer, and sends the next one until time is up."""

    def __init__(self, end: float, done: asyncio.Future[int]) -> None:
        self._end = end
        self._done = done
        self._answers = 0
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport
        self._next()

    def _next(self) -> None:
        if time.perf_counter() < self._end:
            self._transport.write(REQUEST)  # type: ignore[attr-defined]
            return
        self._transport.close()
        if not self._done.done():
            self._done.set_result(self._answers)

    def data_received(self, data: bytes) -> None:
        """Go on when an answer is complete."""
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) >= size:
            if not head.startswith(b"HTTP/1.1 200"):
                self._done.set_exception(RuntimeError(head.decode(errors="replace")))
                return
            self._data = body[size:]
            self._answers += 1
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody closes but us."""
        if not self._done.done():
            self._done.set_exception(exc or RuntimeError("the server has closed the connection"))


async def own_burst(port: int, seconds: float, connections: int) -> Burst:
    """Load a server for some seconds from this process."""
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in range(connections)]
    began = time.perf_counter()
    for done in ends:
        await loop.create_connection(
            lambda done=done: Connection(began + seconds, done),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    answers = await asyncio.gather(*ends)
    return Burst(sum(answers), time.perf_counter() - began)


def wrk_burst(wrk: str, script: Path, port: int, seconds: float, connections: int) -> Burst:
    """Load a server for some seconds with wrk, which knows whole seconds only."""
    whole = max(1, round(seconds))
    command = [wrk, "-t1", f"-c{connections}", f"-d{whole}s", "-s", str(script)]
    url = f"http://127.0.0.1:{port}/trivial/"
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+) requests in ([\d.]+)s", said)
    if found is None or "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"wrk: {said}")
    return Burst(int(found[1]), float(found[2]))


def burst_of(generator: str, folder: Path) -> Callable[[int, float, int], Burst]:
    """Return what loads a port for some seconds over some connections."""
    if generator == "own":
        return lambda port, seconds, connections: asyncio.run(own_burst(port, seconds, connections))
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("wrk is not installed: install it, or load with --generator own")
    script = folder / "post.lua"
    script.write_text(WRK_SCRIPT, encoding="utf-8")
    return partial(wrk_burst, wrk, script)


@contextmanager
def script(name: str, text: str) -> Iterator[Server]:
    """Run a server that prints its port."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, text=True
    ) as process:
        port = process.stdout.readline() if process.stdout is not None else ""
        try:
            yield Server(name, int(port), (process.pid,))
        finally:
            process.send_signal(signal.SIGTERM)


@contextmanager
def services(folder: Path, *, logs: bool) -> Iterator[list[Server]]:
    """Run the services."""
    (folder / "trivial.py").write_text(SERVICES, encoding="utf-8")
    project = Project(
        name="trivial",
        root=folder,
        source=folder,
        services=tuple(ServiceConfig(name=kind, target=f"trivial:{kind}") for kind in NAMES),
        registry_port=0,
    )
    with Deployment(project, log_dir=folder / "logs" if logs else None) as deployment:
        processes = deployment.processes()
        suffix = " + log" if logs else ""
        yield [
            Server(
                f"{NAMES[replica.service]}{suffix}",
                int(replica.url.rpartition(":")[2]),
                tuple(p.pid for p in processes if p.service == replica.service),
            )
            for replica in deployment.replicas()
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="per server and round")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument(
        "--generator",
        choices=("wrk", "own"),
        default="wrk" if shutil.which("wrk") else "own",
        help="where requests come from; wrk if it is installed",
    )
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    options = parser.parse_args()
    rounds, seconds = (1, 0.1) if options.quick else (options.rounds, options.seconds)
    print(describe("aiohttp", "uvloop"))
    print(f"{rounds} rounds of {seconds:g} s over {options.connections} connections of {options.generator}\n")
    with ExitStack() as stack:
        plain = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        logged = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        burst = burst_of(options.generator, plain)
        servers = [stack.enter_context(script("aiohttp", AIOHTTP))]
        if importlib.util.find_spec("fastapi") and importlib.util.find_spec("uvicorn"):
            servers.append(stack.enter_context(script("fastapi", FASTAPI)))
        servers += stack.enter_context(services(plain, logs=False))
        servers += stack.enter_context(services(logged, logs=True))
        cpu: dict[str, list[float]] = {server.name: [] for server in servers}
        rate: dict[str, list[float]] = {server.name: [] for server in servers}
        for server in servers:
            burst(server.port, min(seconds, 0.2), options.connections)
        host = HostCpu()
        host.start()
        for _ in range(rounds):
            for server in servers:
                before = server.cpu()
                done = burst(server.port, seconds, options.connections)
                cpu[server.name].append((server.cpu() - before) / done.requests)
                rate[server.name].append(done.requests / done.seconds)
        host.stop()
    print(
        f"{'server':18s} {'CPU us/request':>15s} {'extra us':>9s} {'requests/s':>11s} {'ratio':>6s}  targets"
    )
    for name, values in cpu.items():
        pairs = list(zip(cpu["aiohttp"], values, strict=True))
        ratio = statistics.median(bare / own for bare, own in pairs)
        extra = 1e6 * statistics.median(own - bare for bare, own in pairs)
        micro, per_second = 1e6 * statistics.median(values), statistics.median(rate[name])
        goal = f"  ratio >= {TARGETS[name]}, extra <= {EXTRA:g}" if name in TARGETS else ""
        print(f"{name:18s} {micro:15.1f} {extra:+9.1f} {per_second:11.0f} {ratio:6.2f}{goal}")
    print(f"\nthe hypervisor withheld {host.stolen:.1%} of the machine, {host.utilization:.0%} were in use")


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    main()
