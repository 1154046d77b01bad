"""Cost of a call for its caller A of B: mup's runtimes as A, beside a service of aiohttp.

    python benchmarks/caller_speed.py [--rounds N] [--seconds S] [--log]

B is one service of mup for all. Processor seconds are those of all processes of A, read from their clocks,
per request over 8 connections; servers are loaded one after the other, in interleaved rounds. The ratio is
the median over rounds of A's time over that of aiohttp's service, which calls with aiohttp's client: 1 is as
expensive.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from machine import describe
from runtime_speed import Server, burst_of

from mup.project import Project, ServiceConfig
from mup.runtime.deployment.launcher import Deployment

TARGETS = {"Async": 1.2}

SERVICES = """
from mup import EP, MS


class B(MS):
    runtime = "async"
    pool_size = 16

    @EP("/trivial/")
    async def trivial(self, comm):
        comm.respond({"ok": True})


class Async(MS):
    runtime = "async"
    pool_size = 8

    @EP("/trivial/")
    async def trivial(self, comm):
        comm.respond(await comm.call("B", "/trivial/", {"a": 1}))


class Process(MS):
    pool_size = 8

    @EP("/trivial/")
    def trivial(self, comm):
        comm.respond(comm.call("B", "/trivial/", {"a": 1}).get())


class Thread(Process):
    runtime = "thread"
"""

AIOHTTP = """
import asyncio, sys, aiohttp, uvloop
from aiohttp import web

async def trivial(request):
    await request.read()
    async with session.post(sys.argv[1], json={"a": 1}) as reply:
        return web.json_response(await reply.json())

async def main():
    global session
    session = aiohttp.ClientSession()
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


def started(stack: ExitStack, folder: Path, *, logs: bool) -> list[Server]:
    """Start everything; return what is loaded."""
    (folder / "callers.py").write_text(SERVICES, encoding="utf-8")
    project = Project(
        name="callers",
        root=folder,
        source=folder,
        services=tuple(
            ServiceConfig(name=kind, target=f"callers:{kind}") for kind in ("B", "Async", "Thread", "Process")
        ),
        registry_port=0,
    )
    deployment = stack.enter_context(Deployment(project, log_dir=folder / "logs" if logs else None))
    processes = deployment.processes()
    urls = {replica.service: replica.url for replica in deployment.replicas()}
    bare = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", AIOHTTP, f"{urls.pop('B')}/trivial/"], stdout=subprocess.PIPE, text=True
        )
    )
    stack.callback(bare.terminate)
    port = bare.stdout.readline() if bare.stdout is not None else ""
    return [
        Server("aiohttp", int(port), (bare.pid,)),
        *(
            Server(
                name,
                int(url.rpartition(":")[2]),
                tuple(process.pid for process in processes if process.service == name),
            )
            for name, url in urls.items()
        ),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="per server and round")
    parser.add_argument("--log", action="store_true", help="with event log")
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    options = parser.parse_args()
    rounds, seconds = (1, 0.1) if options.quick else (options.rounds, options.seconds)
    print(describe("aiohttp", "uvloop"))
    generator = "wrk" if shutil.which("wrk") else "own"
    print(f"{rounds} rounds of {seconds:g} s over 8 connections of {generator}\n")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = started(stack, folder, logs=options.log)
        burst = burst_of(generator, folder)
        cpu: dict[str, list[float]] = {server.name: [] for server in servers}
        for server in servers:
            burst(server.port, min(seconds, 0.2), 8)
        for _ in range(rounds):
            for server in servers:
                before = server.cpu()
                done = burst(server.port, seconds, 8)
                cpu[server.name].append((server.cpu() - before) / done.requests)
    print(f"{'A':10s} {'CPU us/request':>15s} {'range':>12s} {'x aiohttp':>10s}")
    for name, values in cpu.items():
        ratio = statistics.median(own / bare for own, bare in zip(values, cpu["aiohttp"], strict=True))
        span = f"{1e6 * min(values):.0f} to {1e6 * max(values):.0f}"
        goal = f"  target <= {TARGETS[name]}" if name in TARGETS else ""
        print(f"{name:10s} {1e6 * statistics.median(values):15.1f} {span:>12s} {ratio:10.2f}{goal}")


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    main()
