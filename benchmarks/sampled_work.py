"""Which work slows down as services do?

    python benchmarks/sampled_work.py run --systems w411,w402,w405 --minutes 20 --results DIR
    python benchmarks/sampled_work.py report --results DIR

Runs systems of the accuracy bed at a few loads, again and again, on a machine that does nothing else, while
processes sample every kind of work of ``mup.workload.sampled_work`` on every core. Windows of one system and
load differ by the machine's speed, and by chance. Printed for each system: how much the processor time per
cycle differs between them (standard deviation of its logarithm); then, for each kind, for equal parts of all,
and for the monitor as it measures, what is left of that once it is divided by the time that a sample took,
and the exponent with which it follows that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from accuracy.deploy import deployable, prepare
from accuracy.store import Results

from mup.workload.measure import measure_load
from mup.workload.sampled_work import SampledWork

KINDS = ("arithmetic", "objects", "texts", "sockets")
CLIENTS = (1, 8, 24)
WINDOW, WARM_UP = 12.0, 2.0
"""Seconds."""
PERIOD = 0.05
"""Seconds between two samples of a kind on a core."""
FEWEST_WINDOWS = 4
DISTURBED = 0.10
"""Share of the machine that other programs may have used, those that sample among them."""
OURS = {"monitor", "registry"}
"""Processes whose work is not that of a cycle."""


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("run", "report", "sample"))
    parser.add_argument("kind", nargs="?", choices=KINDS, help="of work, for sample")
    parser.add_argument("--results", type=Path, default=Path("sampled-work"))
    parser.add_argument("--systems", default="w411,w402,w405")
    parser.add_argument("--minutes", type=float, default=20.0)
    given = parser.parse_args()
    if given.action == "sample":
        sample(given.kind)
    elif given.action == "run":
        run(given.results, given.systems.split(","), 60 * given.minutes)
    else:
        print(report([json.loads(line) for line in (given.results / "windows.jsonl").open()]))


def sample(kind: str) -> None:
    """Write a line per sample of one kind of work until standard input ends: when, core, CPU ns."""
    work = getattr(SampledWork(), kind)

    def end_with_input() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_input, daemon=True).start()
    cores = sorted(os.sched_getaffinity(0))
    while True:
        for core in cores:
            time.sleep(PERIOD / len(cores))
            os.sched_setaffinity(0, {core})
            work()
            before = time.thread_time_ns()
            work()
            spent = time.thread_time_ns() - before
            print(time.monotonic_ns(), core, spent, flush=True)


def run(results: Path, systems: Sequence[str], seconds: float) -> None:
    """Measure windows until the time is over; a line for each in ``windows.jsonl``."""
    results.mkdir(parents=True, exist_ok=True)
    end, seed, store = time.monotonic() + seconds, int(time.time()), Results(results)
    for name in systems:
        prepare(store.system(name))
    with ExitStack() as stack, (results / "windows.jsonl").open("a", buffering=1) as out:
        files = {kind: stack.enter_context(_sampled(kind, results / f"{kind}.txt")) for kind in KINDS}
        while time.monotonic() < end:
            for name, clients in ((n, c) for n in systems for c in CLIENTS):
                seed += 1
                with deployable(store.system(name)) as project:
                    found = measure_load(project, clients=clients, duration=WINDOW, warmup=WARM_UP, seed=seed)
                (result,) = found.results
                line = {
                    "system": name,
                    "clients": clients,
                    "cpu": sum(s for process, s in found.cpu.seconds.items() if process not in OURS),
                    "cycles": len(result.cycles),
                    "foreign": found.cpu.foreign,
                    "monitor": 1 / found.monitored_speed if found.monitored_speed else None,
                    **{kind: _mean(file, result.start_ns, result.end_ns) for kind, file in files.items()},
                }
                out.write(json.dumps(line) + "\n")
                print(f"{name}, {clients} clients: {line['cycles']} cycles", flush=True)


@contextmanager
def _sampled(kind: str, file: Path) -> Iterator[Path]:
    """Sample a kind of work into a file meanwhile."""
    with file.open("w") as out:
        command = [sys.executable, __file__, "sample", kind]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out)
        try:
            yield file
        finally:
            process.communicate()


def _mean(file: Path, start: int, end: int) -> float:
    """Return the mean time of a sample between two moments, in ns, the mean over cores."""
    rows = np.array([line.split() for line in file.read_text().splitlines()[:-1]], dtype=float)
    rows = rows[(rows[:, 0] >= start) & (rows[:, 0] <= end)]
    return float(np.mean([rows[rows[:, 1] == core, 2].mean() for core in np.unique(rows[:, 1])]))


def report(windows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, in Markdown."""
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for window in windows:
        if window["foreign"] <= DISTURBED and window["monitor"] and window["cycles"]:
            groups[window["system"], window["clients"]].append(window)
    kept = [group for group in groups.values() if len(group) >= FEWEST_WINDOWS]
    if not kept:
        raise SystemExit(f"no load has {FEWEST_WINDOWS} windows that were not disturbed: run for longer")
    head = ["system", "windows", "work differs by", *KINDS, "equal parts", "monitor"]
    lines = [head, ["---"] * len(head)]
    for system in sorted({group[0]["system"] for group in kept}):
        mine = [group for group in kept if group[0]["system"] == system]
        lines.append(_row(system, mine))
    lines.append(_row("all", kept))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _row(name: str, groups: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    work = _within([[window["cpu"] / window["cycles"] for window in group] for group in groups])
    cells = [name, str(len(work)), f"{np.std(work):.1%}"]
    times = {kind: [_column(group, kind) for group in groups] for kind in (*KINDS, "monitor")}
    equal = [np.mean([_column(group, kind) for kind in KINDS], axis=0) for group in groups]
    for values in (*(times[kind] for kind in KINDS), equal, times["monitor"]):
        speed = _within(values)
        cells.append(f"{np.std(work - speed):.1%}, {work @ speed / (speed @ speed):.2f}")
    return cells


def _column(group: Sequence[Mapping[str, Any]], kind: str) -> np.ndarray:
    """Return the times of a kind of work, in units of their mean."""
    values = np.array([window[kind] for window in group])
    return np.asarray(values / values.mean())


def _within(groups: Sequence[Any]) -> np.ndarray:
    """Return logarithms without the mean of their group, one group after the other."""
    logs = [np.log(np.array(group, dtype=float)) for group in groups]
    return np.concatenate([log - log.mean() for log in logs])


if __name__ == "__main__":
    main()
