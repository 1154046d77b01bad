"""Soak test: a million requests, and what they leave behind in services.

    python benchmarks/soak.py [--requests N] [--round SECONDS] [--users N] [--output FILE] [--resume]

A shop of three services, one of each runtime, and a MongoDB, below ``mup run``, with an event log that
rotates and is capped. Users buy in rounds. Between rounds memory and descriptors of every process are noted;
every fifth time a worker is killed, so that what is replaced does not leave anything either. With
``--output`` every round is a JSON line, and ``--resume`` goes on counting where a file ends (with fresh
processes).

Flat means: over the last three quarters of the rounds the slope of all memory (Theil-Sen) is at most
``MEMORY_SLOPE`` MB per 100,000 requests, that of descriptors at most ``DESCRIPTOR_SLOPE``. One leaked byte
per request would be 0.1 MB per 100,000; one leaked object of 100 bytes 10 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pymongo
from faults.buyers import buying
from faults.database import durable_mongod
from faults.ledger import lost_orders
from faults.report import statuses_in_words, weigh
from faults.system import System, wait_for, write_project
from machine import describe

MEMORY_SLOPE = 2.0
"""MB per 100,000 requests: allocators of a dozen processes are not perfectly quiet."""
DESCRIPTOR_SLOPE = 2.0
ENOUGH = 200_000
"""Requests from which on growth can be told from warming up."""
KILL_EVERY = 5
REQUESTS = 3
"""To services, per purchase."""
LOGS = 4 + 4 + 2 * 2 + 1
"""Processes that log: four fronts; the workers of Shop, of Stock (a log per thread) and of Orders."""
SEGMENT_MB, KEEP_MB = 1, 4
"""Small, so that every process begins many segments and deletes old ones."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of load, and the system at its end.

    Attributes:
        requests: To services: three per purchase, one of which writes to the database.
        statuses: What purchases were answered.
        seconds: How long it took.
        memory: MB by role of process.
        descriptors: By role.
        processes: By role.
        log_mb: Size of the event logs of the services; users log for as long as a round takes.
        killed: Whether a worker was killed in it.
    """

    requests: int
    statuses: dict[str, int]
    seconds: float
    memory: dict[str, float] = field(default_factory=dict)
    descriptors: dict[str, int] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    log_mb: float = 0.0
    killed: bool = False


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the median slope of all pairs of points: single outliers do not move it (Theil-Sen)."""
    pairs = combinations(zip(xs, ys, strict=True), 2)
    found = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs if x1 != x2]
    return statistics.median(found) if found else 0.0


def judge(rounds: Sequence[Round]) -> list[str]:
    """Print slopes by role over the last three quarters; return what is not flat."""
    late = rounds[len(rounds) // 4 :]
    done = 0
    xs = []
    for one in late:
        done += one.requests
        xs.append(done / 100_000)
    problems = []
    if done < ENOUGH:
        print(f"\n{done} requests are too few to tell growth from warming up: slopes are not judged")
    print(f"\nslopes over the last {len(late)} of {len(rounds)} rounds, per 100,000 requests\n")
    print("| processes | memory, MB, first -> last | slope | descriptors | slope |\n|---|---|---|---|---|")
    for role in [*late[0].memory, "all"]:
        memory = [sum(r.memory.values()) if role == "all" else r.memory.get(role, 0.0) for r in late]
        files = [sum(r.descriptors.values()) if role == "all" else r.descriptors.get(role, 0) for r in late]
        grows, opens = slope(xs, memory), slope(xs, files)
        print(
            f"| {role} | {memory[0]:.1f} -> {memory[-1]:.1f} | {grows:+.2f} "
            f"| {files[0]} -> {files[-1]} | {opens:+.2f} |"
        )
        if done < ENOUGH:
            continue
        if role == "all" and grows > MEMORY_SLOPE:
            problems.append(f"memory grows by {grows:.2f} MB per 100,000 requests")
        if role == "all" and opens > DESCRIPTOR_SLOPE:
            problems.append(f"descriptors grow by {opens:.2f} per 100,000 requests")
    largest = max(r.log_mb for r in rounds)
    print(f"\nevent logs: at most {largest:.1f} MB, of {LOGS} processes with {KEEP_MB} MB each")
    if largest > LOGS * KEEP_MB:
        problems.append(f"event logs take {largest:.1f} MB")
    return problems


@contextmanager
def shop(folder: Path) -> Iterator[tuple[System, str]]:
    """Run the services; gives the URI of their database, too."""
    with durable_mongod(folder / "mongod") as mongod:
        project = write_project(folder / "shop", ["Shop", "Stock", "Orders"], mongod.uri)
        env = {"MUP_LOG_SEGMENT": str(SEGMENT_MB), "MUP_LOG_KEEP": str(KEEP_MB)}
        with System(project, env=env) as system:
            yield system, mongod.uri


def one_round(system: System, uri: str, users: int, seconds: float, *, kill: bool) -> tuple[Round, int]:
    """Let users buy for a while; return the round, and how many acknowledged orders are lost."""
    began = time.monotonic()
    with buying(system, users=users, think=0.001) as buyers:
        if kill:
            victim = system.status("Shop")["workers"][0]
            os.kill(victim, signal.SIGKILL)
        wait_for(lambda: time.monotonic() - began >= seconds, "the end of the round", 10 * seconds)
    seen = buyers.seen()
    wait_for(lambda: system.status("Shop")["busy"] == 0, "the last purchases")
    lost = len(lost_orders(uri, seen))
    with pymongo.MongoClient[dict[str, Any]](uri) as client:
        client.get_default_database()["orders"].delete_many({})
    weights = weigh(system.processes())
    logs = (file for file in system.logs.glob("*.mlog") if not file.name.startswith("Buyer."))
    size = sum(file.stat().st_size for file in logs if file.exists())
    statuses = Counter(purchase.status for purchase in seen)
    found = Round(
        requests=REQUESTS * len(seen),
        statuses={str(status): count for status, count in statuses.items()},
        seconds=time.monotonic() - began,
        processes={role: weight[0] for role, weight in weights.items()},
        descriptors={role: weight[1] for role, weight in weights.items()},
        memory={role: weight[2] for role, weight in weights.items()},
        log_mb=size / 2**20,
        killed=kill,
    )
    for file in system.project.glob("seen-*.jsonl"):
        file.unlink()
    return found, lost


def tell(one: Round, done: int, wanted: int) -> None:
    """Print how far it is."""
    statuses = Counter({int(status): count for status, count in one.statuses.items()})
    memory = sum(one.memory.values())
    print(
        f"{done:9d} of {wanted}  {one.requests / one.seconds:5.0f}/s  memory {memory:6.1f} MB"
        f"  descriptors {sum(one.descriptors.values()):4d}  logs {one.log_mb:5.1f} MB"
        f"  {statuses_in_words(statuses)}{'  (a worker was killed)' if one.killed else ''}",
        flush=True,
    )


def main() -> int:
    """Return 0 if everything is flat and nothing is lost, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--requests", type=int, default=1_000_000, help="to services, three per purchase (default: a million)"
    )
    parser.add_argument("--round", type=float, default=30.0, metavar="SECONDS", help="(default: 30)")
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--output", type=Path, help="file of one JSON line per round")
    parser.add_argument("--resume", action="store_true", help="go on where the file ends")
    options = parser.parse_args()
    if options.resume and options.output is None:
        parser.error("--resume needs --output FILE: the rounds so far")
    before = []
    if options.resume and options.output.exists():
        before = [Round(**json.loads(line)) for line in options.output.read_text().splitlines()]
    print(describe("mup-framework", "aiohttp", "uvloop", "pymongo", "motor"))
    done = sum(one.requests for one in before)
    rounds: list[Round] = []
    problems: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="mup-soak-"))
    try:
        with shop(folder) as (system, uri):
            while done < options.requests:
                kill = len(rounds) % KILL_EVERY == KILL_EVERY - 1
                one, lost = one_round(system, uri, options.users, options.round, kill=kill)
                rounds.append(one)
                done += one.requests
                tell(one, done, options.requests)
                if lost:
                    problems.append(f"{lost} acknowledged orders of one round are not in the database")
                if options.output:
                    with options.output.open("a") as file:
                        file.write(json.dumps(asdict(one)) + "\n")
            system.stop()
            problems += [f"left over: {line}" for line in system.left_over()]
            if "Traceback" in system.log_text():
                problems.append("there is a traceback in the log of the services")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if rounds:
        problems += judge(rounds)
    everything = [*before, *rounds]
    bad = sum(count for one in everything for status, count in one.statuses.items() if status != "200")
    kills = sum(one.killed for one in everything)
    print(f"\n{done} requests, {bad} purchases not answered with 200, {kills} workers killed")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
