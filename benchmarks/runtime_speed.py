"""Cost of a small request: mup's runtimes beside bare aiohttp, and FastAPI if installed.

    python benchmarks/runtime_speed.py [--case get|post] [--rounds N] [--seconds S] [--connections N]

There are two cases. *get* is a GET with a parameter that is a number, answered by a small JSON object, over
64 connections. *post* is a POST of ``{}``, answered by ``{"ok": true}``, over 8 connections. Pools of mup's
services have eight workers; those whose name begins with "one" have a single one, which requests wait for.
One round loads each server as long as the others over the same number of kept connections, one request at a
time on each; rounds are interleaved. The load comes from wrk (a package of Debian) if it is installed, else
from ``steady_users.py``, which takes about 5 us per request.

Processor seconds are those of all processes of the server, read from their clocks; the load generator's own
do not count. *times* is the server's processor time per request over that of bare aiohttp in the same round,
the median over rounds: 1 is as expensive. *extra* is what the server takes beyond aiohttp, and *log* what it
takes beyond the same service without an event log, medians over rounds, too.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from machine import describe
from steady_users import Burst, steady_burst
from trivial_services import SERVICES

from mup.project import Project, ServiceConfig
from mup.runtime.deployment.launcher import Deployment
from mup.workload.cpu import HostCpu, process_cpu_seconds

AIOHTTP = """
import asyncio, sys, uvloop
from aiohttp import web

async def trivial(request):
    await request.read()
    return web.json_response({"ok": True})

async def item(request):
    number = int(request.query["number"])
    return web.json_response({"number": number, "name": "a small thing", "in_stock": True})

async def main():
    app = web.Application()
    app.router.add_route("*", "/trivial/", trivial)
    app.router.add_get("/item/", item)
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

@app.get("/item/")
async def item(number: int):
    return {"number": number, "name": "a small thing", "in_stock": True}

sock = socket.socket()
sock.bind(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[sock])
"""


@dataclass(frozen=True)
class Case:
    """What is asked, and how expensive it may be.

    Attributes:
        method, target: Of the request.
        connections: By default.
        targets: Times aiohttp's processor time per request, by server.
        body: Of the request, JSON.
    """

    method: str
    target: str
    connections: int
    targets: Mapping[str, float]
    body: str = ""

    @property
    def request(self) -> bytes:
        """The bytes that are sent; as many headers as wrk has."""
        lines = [f"{self.method} {self.target} HTTP/1.1", "Host: 127.0.0.1"]
        if self.body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*lines, "", self.body]).encode()

    @property
    def wrk_script(self) -> str:
        """The same for wrk."""
        lines = [f'wrk.method = "{self.method}"']
        if self.body:
            lines += [f"wrk.body = '{self.body}'", 'wrk.headers["Content-Type"] = "application/json"']
        return "\n".join([*lines, ""])


GET = Case(
    "GET",
    "/item/?number=4711",
    64,
    {"process": 1.33, "thread": 1.16, "async": 1.16, "one process": 1.6, "one thread": 1.6, "one async": 1.6},
)
POST = Case("POST", "/trivial/", 8, {"process": 1.33, "thread": 1.67, "async": 1.25}, "{}")
CASES = {"get": GET, "post": POST}
LOG = 4.0
"""Target: microseconds of processor time per request for the event log."""
LOGGED = " + log"
NAMES = {
    "Process": "process",
    "Thread": "thread",
    "Async": "async",
    "OneProcess": "one process",
    "OneThread": "one thread",
    "OneAsync": "one async",
}


@dataclass(frozen=True)
class Server:
    """Something that answers: its name, its port, its processes."""

    name: str
    port: int
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """Return the processor seconds used so far."""
        return sum(process_cpu_seconds(pid) for pid in self.pids)


def wrk_burst(wrk: str, script: Path, target: str, port: int, seconds: float, connections: int) -> Burst:
    """Load a server for some seconds with wrk, which knows whole seconds only."""
    whole = max(1, round(seconds))
    command = [wrk, "-t1", f"-c{connections}", f"-d{whole}s", "-s", str(script)]
    url = f"http://127.0.0.1:{port}{target}"
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+) requests in ([\d.]+)s", said)
    if found is None or "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"wrk: {said}")
    return Burst(int(found[1]), float(found[2]))


def burst_of(generator: str, folder: Path, case: Case = POST) -> Callable[[int, float, int], Burst]:
    """Return what loads a port for some seconds over some connections."""
    if generator == "own":
        return partial(steady_burst, case.request)
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("wrk is not installed: install it, or load with --generator own")
    script = folder / "load.lua"
    script.write_text(case.wrk_script, encoding="utf-8")
    return partial(wrk_burst, wrk, script, case.target)


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
        suffix = LOGGED if logs else ""
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
    parser.add_argument("--case", choices=tuple(CASES), default="get", help="which request")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="per server and round")
    parser.add_argument("--connections", type=int, help="64 for get, 8 for post")
    parser.add_argument(
        "--generator",
        choices=("wrk", "own"),
        default="wrk" if shutil.which("wrk") else "own",
        help="where requests come from; wrk if it is installed",
    )
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    options = parser.parse_args()
    rounds, seconds = (1, 0.1) if options.quick else (options.rounds, options.seconds)
    case = CASES[options.case]
    connections = options.connections or case.connections
    print(describe("aiohttp", "uvloop"))
    print(
        f"{case.method} {case.target}: {rounds} rounds of {seconds:g} s over {connections} connections of"
        f" {options.generator}\n"
    )
    with ExitStack() as stack:
        plain = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        logged = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        burst = burst_of(options.generator, plain, case)
        servers = [stack.enter_context(script("aiohttp", AIOHTTP))]
        if importlib.util.find_spec("fastapi") and importlib.util.find_spec("uvicorn"):
            servers.append(stack.enter_context(script("fastapi", FASTAPI)))
        servers += stack.enter_context(services(plain, logs=False))
        servers += stack.enter_context(services(logged, logs=True))
        cpu: dict[str, list[float]] = {server.name: [] for server in servers}
        rate: dict[str, list[float]] = {server.name: [] for server in servers}
        for server in servers:
            burst(server.port, min(seconds, 0.2), connections)
        host = HostCpu()
        host.start()
        for _ in range(rounds):
            for server in servers:
                before = server.cpu()
                done = burst(server.port, seconds, connections)
                cpu[server.name].append((server.cpu() - before) / done.requests)
                rate[server.name].append(done.requests / done.seconds)
        host.stop()
    print(
        f"{'server':18s} {'CPU us/request':>15s} {'extra':>6s} {'log':>6s} {'times':>6s} {'requests/s':>11s}"
    )
    for name, values in cpu.items():
        times = statistics.median(own / bare for own, bare in zip(values, cpu["aiohttp"], strict=True))
        line = f"{name:18s} {1e6 * statistics.median(values):15.1f} {beyond(values, cpu['aiohttp']):+6.1f}"
        if name.endswith(LOGGED):
            log = beyond(values, cpu[name.removesuffix(LOGGED)])
            line += f" {log:+6.1f} {times:6.2f} {statistics.median(rate[name]):11.0f}  target: log <= {LOG:g}"
        else:
            line += f" {'':6s} {times:6.2f} {statistics.median(rate[name]):11.0f}"
        if name in case.targets:
            line += f"  target: times <= {case.targets[name]:g}"
        print(line)
    print(f"\nthe hypervisor withheld {host.stolen:.1%} of the machine, {host.utilization:.0%} were in use")


def beyond(values: list[float], others: list[float]) -> float:
    """Return the microseconds a request takes beyond another server's in the same round, the median."""
    return 1e6 * statistics.median(own - other for own, other in zip(values, others, strict=True))


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    main()
