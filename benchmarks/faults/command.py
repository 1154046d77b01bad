"""The command line of the long forms: crashes, hostile clients, partitions."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from machine import describe

from faults.buyers import buying
from faults.crashes import CRASHES, Outcome, Scene, inflict
from faults.database import durable_mongod
from faults.hostile import ECHO, Crowd, announce, exchange, fuzz, status_of, upload
from faults.hosts import CannotNetworkError, Network
from faults.ledger import lost_orders, unlogged
from faults.partition import ASKED, cluster
from faults.report import crash_table, statuses_in_words, weigh, weights_in_words
from faults.system import System, ask, wait_for, write_project
from mup.errors import MupError
from mup.workload.limits import allow_many_files

__all__ = ["main"]

RECOVERY_SECONDS = 2.0
"""All has to be well so soon after what was hit is back."""
IDLE_SECONDS = 75.0
"""After which a server closes a connection that brings no complete request."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 if nothing went wrong, 1 if something did, 2 if it cannot run."""
    options = _parser().parse_args(arguments)
    print(describe("mup-framework", "aiohttp", "uvloop"))
    with tempfile.TemporaryDirectory(prefix="mup-faults-", ignore_cleanup_errors=True) as folder:
        try:
            problems: list[str] = options.action(options, Path(folder))
        except (MupError, CannotNetworkError) as error:
            print(f"faults: error: {error}", file=sys.stderr)
            return 2
    for problem in problems:
        print(f"PROBLEM: {problem}")
    print("\nnothing went wrong" if not problems else f"\n{len(problems)} problems")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/faults", description="Faults, injected for real."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, action: Callable[[argparse.Namespace, Path], list[str]], text: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(action=action)
        return added

    crashes = command("crashes", _crashes, "Kill and stop every kind of process in turn, under load.")
    crashes.add_argument(
        "--minutes", type=float, default=10.0, help="at least one round is run (default: 10)"
    )
    crashes.add_argument("--users", type=int, default=8)
    crashes.add_argument("--stopped", type=float, default=5.0, metavar="SECONDS", help="(default: 5)")
    hostile = command("hostile", _hostile, "Malformed, slow, huge and very many requests.")
    hostile.add_argument("--requests", type=int, default=10_000, help="malformed ones (default: 10000)")
    hostile.add_argument("--seed", type=int, default=1)
    hostile.add_argument("--connections", type=int, default=2000, help="idle ones (default: 2000)")
    partition = command("partition", _partition, "Cut one of three machines off, and let it come back.")
    partition.add_argument("--rounds", type=int, default=3)
    partition.add_argument("--seconds", type=float, default=10.0, help="a cut lasts (default: 10)")
    partition.add_argument(
        "--delay", type=float, default=5.0, help="of each packet, in ms; 0 = none (default: 5)"
    )
    return parser


def _crashes(options: argparse.Namespace, folder: Path) -> list[str]:
    outcomes: list[Outcome] = []
    problems: list[str] = []
    end = time.monotonic() + 60 * options.minutes
    rounds = 0
    with durable_mongod(folder / "mongod") as mongod:
        project = write_project(folder / "shop", ["Shop", "Stock", "Orders"], mongod.uri)
        with System(project) as system:
            scene = Scene(system, mongod, stopped_seconds=options.stopped)
            with buying(system, users=options.users) as buyers:
                before = weigh(system.processes())
                while not rounds or time.monotonic() < end:
                    for crash in CRASHES:
                        outcomes.append(inflict(crash, scene, buyers, calm=40))
                        last = outcomes[-1]
                        saw = statuses_in_words(last.statuses)
                        times = f"back after {last.away:.1f} s, recovery {last.recovery:.2f} s"
                        print(f"{crash.name}: {saw}; {times}", file=sys.stderr)
                    rounds += 1
                    if rounds == 1:
                        # What every process does for the first time is done.
                        before = weigh(system.processes())
                after = weigh(system.processes())
            seen = buyers.seen()
            system.stop()
            left = system.left_over()
        for outcome in outcomes:
            problems += [f"{outcome.name}: {problem}" for problem in outcome.problems]
            if outcome.recovery > RECOVERY_SECONDS:
                problems.append(f"{outcome.name}: {outcome.recovery:.2f} s until all was well")
        lost, silent = lost_orders(mongod.uri, seen), unlogged(system.logs, "Shop", seen, scene.killed)
    good = sum(purchase.status == 200 for purchase in seen)
    print(f"\n{rounds} rounds, {options.users} users, {len(seen)} purchases, {good} acknowledged\n")
    print(crash_table(outcomes))
    print(f"\nafter the first round -> at the end:\n\n{weights_in_words(before, after)}")
    print(f"\nacknowledged orders that are not in the database: {len(lost)}")
    print(f"responses that are not in the event log: {len(silent)}")
    print(f"processes left over: {len(left)}")
    problems += [f"{order} is not in the database" for order in sorted(lost)]
    problems += [f"{request} is not in the event log" for request in sorted(silent)]
    return problems + [f"left over: {line}" for line in left]


def _hostile(options: argparse.Namespace, folder: Path) -> list[str]:
    problems = []
    allow_many_files()
    with System(write_project(folder / "echo", ["Echo"])) as system:
        (url,) = system.first_urls("Echo")
        ask(url, "/echo/")
        before = weigh(system.processes())
        print("\n| what clients do | what they are answered, by status |\n|---|---|")
        statuses, wrong = fuzz(url, options.seed, options.requests)
        print(f"| {options.requests} malformed requests, seed {options.seed} | {_words(statuses)} |")
        problems += [f"wrongly answered: {data!r}" for data in wrong]
        half = status_of(exchange(url, ECHO))
        print(f"| send a request and close their half | {_words(Counter([half]))} |")
        announced = status_of(announce(url, 100 * 2**20))
        print(f"| announce 100 MB | {announced} |")
        for chunked in (False, True):
            answer, sent = upload(url, 100 * 2**20, chunked=chunked)
            kind = "in chunks" if chunked else "with a length"
            print(
                f"| send 100 MB {kind} | {_words(Counter([status_of(answer)]))} after {sent / 2**20:.0f} MB |"
            )
        with Crowd(url, options.connections) as idle:
            answered = ask(url, "/echo/")[0]
            idle.send(ECHO)
            said = _words(idle.statuses())
            print(f"| {options.connections} idle connections, then a request on each | {said} |")
        dropped = _leave(system, url, 100)
        print(f"| 100 close their connections while two workers are stopped | not executed: {dropped} |")
        if dropped != 98:
            problems.append(f"of 100 requests whose client had gone, {100 - dropped} were executed")
        with Crowd(url, 100) as slow:
            slow.send(b"GET /echo/ HTTP/1.1\r\nX-Slow: ")
            began = time.monotonic()
            while slow.send(b"x") and time.monotonic() - began < 2 * IDLE_SECONDS:
                answered = max(answered, ask(url, "/echo/")[0])
                time.sleep(1.0)
            lasted = time.monotonic() - began
            print(f"| send a head byte by byte, 100 at once | closed after {lasted:.0f} s |")
            if lasted >= 2 * IDLE_SECONDS:
                problems.append("slow clients keep their connections for ever")
        if answered != 200 or announced != 413:
            problems.append(f"others were answered {answered}, 100 MB {announced}")
        pid = system.status("Echo")["pid"]
        own = next(p.descriptors for p in system.processes() if p.pid == pid)
        wait_for(lambda: own <= before["front"][1] + 2, "connections to be closed")
        print(f"\nbefore -> after:\n\n{weights_in_words(before, weigh(system.processes()))}")
        log = system.log_text()
        system.stop()
        left = system.left_over()
    print(f"\nprocesses left over: {len(left)}")
    errors = [line for line in log.splitlines() if " ERROR " in line or "Traceback" in line]
    if errors:
        problems.append(f"{len(errors)} errors in the log, the first one: {errors[0]}")
    return problems + [f"left over: {line}" for line in left]


def _leave(system: System, url: str, count: int) -> int:
    """Have clients leave while all workers are stopped; return how many requests were not executed."""
    before = system.status("Echo")
    for pid in before["workers"]:
        os.kill(pid, signal.SIGSTOP)
    try:
        with Crowd(url, count) as leaving:
            leaving.send(ECHO)
            queued = count - len(before["workers"])
            wait_for(lambda: system.status("Echo")["queued"] == queued, "requests to be queued")
        wait_for(lambda: system.status("Echo")["queued"] == 0, "requests to leave the queue")
    finally:
        for pid in before["workers"]:
            os.kill(pid, signal.SIGCONT)
    wait_for(lambda: system.status("Echo")["busy"] == 0, "what was in work")
    return count - int(system.status("Echo")["served"] - before["served"])


def _words(statuses: Counter[int]) -> str:
    named = Counter({status: count for status, count in statuses.items() if status > 0})
    words = [statuses_in_words(named)] if named else []
    if statuses[0]:
        words.append(f"closed without an answer: {statuses[0]}")
    return ", ".join(words)


def _partition(options: argparse.Namespace, folder: Path) -> list[str]:
    problems: list[str] = []
    seen: dict[str, Counter[int]] = {asked: Counter() for asked in ASKED}
    noticed: list[float] = []
    healed: list[float] = []
    slowest = 0.0
    with Network(3, delay_ms=options.delay) as network, cluster(folder, network) as running:
        delay = f"{options.delay:g} ms"
        print(f"\n3 machines, delay of packets: {delay}; {options.rounds} cuts of {options.seconds:g} s\n")
        for _ in range(options.rounds):
            cut = time.monotonic()
            network.cut(2)
            away = [
                running.await_statuses(asked, {200} if "stock" in asked else {503}, cut) for asked in ASKED
            ]
            noticed.append(max(away) - cut)
            time.sleep(max(0.0, cut + options.seconds - time.monotonic()))
            network.heal(2)
            back = time.monotonic()
            well = [running.await_statuses(asked, {200}, back, 40) for asked in ASKED]
            healed.append(max(well) - back)
            slowest = max(slowest, running.slowest(cut, max(well)))
            for asked in ASKED:
                seen[asked] += running.statuses(asked, cut, max(well))
        systems = running.systems
    print("| asked | what users saw from the cut until all was well, by status |\n|---|---|")
    for asked in ASKED:
        print(f"| {asked} | {statuses_in_words(seen[asked])} |")
        if wrong := seen[asked].keys() - {200, 502, 503, 504}:
            problems.append(f"{asked} was answered {sorted(wrong)}")
    print(f"\nfrom the cut until callers knew: {_span(noticed)}")
    print(f"from the return of the cable until all was well: {_span(healed)}")
    print(f"slowest answer: {slowest:.2f} s")
    left = [line for system in systems for line in system.left_over()]
    print(f"processes left over: {len(left)}")
    if max(healed) > RECOVERY_SECONDS:
        problems.append(f"{max(healed):.1f} s until all was well again")
    return problems + [f"left over: {line}" for line in left]


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f} s"
