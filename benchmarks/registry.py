"""Cost of the registry: a choice from the cached list, and thousands of replicas.

    python benchmarks/registry.py [--replicas N] [--senders N]

A choice is CPU time of one process, median of interleaved repeats. The registry is started, gets replicas one
after the other, and then signs of life of all from a few processes, as fast as they can; rates are per
CPU second of the registry, because senders and registry share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from machine import describe

from mup.runtime.client.reply import RawResponse
from mup.runtime.client.request import Address, RawRequest, address_of
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import ConnectionPool

CHOICES = 200_000
REPEATS = 7
SERVICES = 50


class Caller:
    """One kept connection to the registry."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._pool = ConnectionPool()

    def ask(self, method: str, target: str, data: object = None, tag: str = "") -> RawResponse:
        """Send a request and return the answer."""
        connection = self._pool.take(self._address, 30.0)
        body = None if data is None else json.dumps(data).encode()
        headers = {"If-None-Match": tag} if tag else {"Content-Type": "application/json"} if body else {}
        connection.send(RawRequest(method, target, headers, body), 30.0)
        response = connection.receive(time.monotonic() + 30.0)
        self._pool.give_back(connection, response)
        return response


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def choices(address: Address) -> None:
    """Print what one choice from the cached list costs."""
    resolver = Resolver(f"http://{address[0]}:{address[1]}", ConnectionPool(), ttl=3600.0)
    resolver.choose("S0")

    def loop() -> None:
        for _ in range(CHOICES):
            pass

    def choose() -> None:
        for _ in range(CHOICES):
            resolver.choose("S0")

    samples: dict[Callable[[], None], list[float]] = {loop: [], choose: []}
    for _ in range(REPEATS):
        for body, found in samples.items():
            start = time.process_time_ns()
            body()
            found.append((time.process_time_ns() - start) / CHOICES)
    cost = statistics.median(samples[choose]) - statistics.median(samples[loop])
    print(f"choice from the cached list   {cost / 1e3:8.2f} us CPU   target: 1 us")


def register(address: Address, numbers: range) -> list[str]:
    """Register replicas; return their ids."""
    caller = Caller(address)
    found = []
    for number in numbers:
        entry = {
            "service": f"S{number % SERVICES}",
            "replica": number // SERVICES,
            "url": f"http://10.{number >> 16}.{number >> 8 & 255}.{number & 255}:8080",
            "pid": 1,
            "endpoints": {"first": "/first/", "second": "/second/"},
        }
        found.append(json.loads(caller.ask("POST", "/register", entry).body)["id"])
    return found


def beat(address: Address, ids: list[str], rounds: int) -> int:
    """Show life for replicas, on a hundred connections at a time; return how many answers were no success."""
    bodies = [json.dumps({"id": identity}).encode() for identity in ids] * rounds
    head = "POST /heartbeat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(100)]
        good = 0
        for first in range(0, len(requests), len(connections)):
            batch = requests[first : first + len(connections)]
            for connection, request in zip(connections, batch, strict=False):
                connection.sendall(request)
            good += sum(connections[i].recv(65536).startswith(b"HTTP/1.1 200") for i in range(len(batch)))
    return len(requests) - good


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description="What does the registry cost?")
    parser.add_argument("--replicas", type=int, default=5000)
    parser.add_argument("--senders", type=int, default=2)
    options = parser.parse_args()
    print(describe("mup-framework", "aiohttp", "uvloop"))
    with subprocess.Popen(
        [sys.executable, "-m", "mup_registry", "--port", "0", "--expiry", "600", "--allow", "10.0.0.0/8"],
        stdout=subprocess.PIPE,
        text=True,
    ) as registry:
        ready = json.loads(registry.stdout.readline() if registry.stdout else "")
        pid, address = ready["pid"], address_of(ready["url"])
        try:
            empty = resident_mb(pid)
            size = -(-options.replicas // options.senders)
            shares = [range(first, first + size) for first in range(0, options.replicas, size)]
            with ProcessPoolExecutor(options.senders) as senders:

                def timed(what: str, count: int, work: Callable[[], list[object]]) -> list[object]:
                    wall, cpu = time.perf_counter(), cpu_seconds(pid)
                    results = work()
                    cpu, wall = cpu_seconds(pid) - cpu, time.perf_counter() - wall
                    print(
                        f"{what:30s}{count / cpu:8.0f} per CPU second of the registry"
                        f" ({count} in {wall:.1f} s, {cpu / wall:.0%} of a core)"
                    )
                    return results

                jobs = [(address, share) for share in shares]
                ids = timed(
                    "registrations",
                    sum(map(len, shares)),
                    lambda: list(senders.map(register, *zip(*jobs, strict=True))),
                )
                print(f"memory                        {resident_mb(pid):8.1f} MB, {empty:.1f} MB before")
                lost = timed(
                    "heartbeats",
                    3 * sum(map(len, shares)),
                    lambda: [f.result() for f in [senders.submit(beat, address, i, 3) for i in ids]],
                )
                if sum(lost):
                    print(f"{sum(lost)} heartbeats were refused")
            caller = Caller(address)
            tag = dict(caller.ask("GET", "/replicas?service=S0").headers)["etag"]
            for what, target, shown in (
                ("resolve", "/resolve?service=S0", ""),
                ("list that is unchanged", "/replicas?service=S0", tag),
                (f"list of {options.replicas // SERVICES} replicas", "/replicas?service=S0", ""),
            ):
                times = []
                for _ in range(2000):
                    start = time.perf_counter()
                    caller.ask("GET", target, tag=shown)
                    times.append(time.perf_counter() - start)
                times.sort()
                print(f"{what:30s}{times[1000] * 1e6:8.0f} us median, {times[1980] * 1e6:.0f} us p99")
            choices(address)
        finally:
            registry.terminate()


if __name__ == "__main__":
    main()
