"""Overhead of a Dask cluster per scenario, and completeness when a worker is lost half-way.

    python benchmarks/grid_elsewhere.py [--scenarios 10000]

A grid of a small model is simulated by threads of this process, and by two workers of a cluster on this
machine, one of which is killed when a third of the scenarios is done. Both answers must be equal. What the
cluster adds is counted in processor time, for that of other programs on the machine is not in it: of this
process, of the scheduler and of the workers together, less what the threads needed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import psutil

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task
from simulator.studies.grids import run_scenarios
from simulator.studies.grids.dask_cluster import dask_cluster
from simulator.studies.whatif import Change, Scenario, grid

PRECISION = 0.05


def shop() -> Model:
    """Clients of a service that calls another one, on one processor."""

    def work(name: str, mean: float, *calls: Call) -> Entry:
        activity = Activity(name="work", demand=Exponential(mean), delay=Constant(0.0), calls=calls)
        return Entry(name=name, start="work", activities=(activity,))

    asked = Call(task="B", entry="b")
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(
                name="U", role="reference", threads=4, think=Exponential(0.1),
                entries=(work("u", 0.0001, Call(task="A", entry="a")),),
            ),
            Task(name="A", threads=8, processor="host", entries=(work("a", 0.004, asked),)),
            Task(name="B", threads=2, processor="host", entries=(work("b", 0.006),)),
        ),
    )  # fmt: skip


def scenarios(count: int) -> list[Scenario]:
    """A grid of at least so many scenarios."""
    side = max(1, round(count ** (1 / 2)))
    clients = tuple(Change("clients", "", n) for n in range(1, side + 1))
    think = tuple(Change("think", "", 0.05 + 0.3 * n / count) for n in range(-(-count // side)))
    return [Scenario((), shop()), *grid(shop(), [clients, think])][: count + 1]


def seconds(*processes: psutil.Process) -> float:
    """Return the processor time of processes."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


@click.command()
@click.option("--scenarios", "count", default=10_000)
def main(count: int) -> None:
    """Compare a cluster that loses a worker with the threads of this process."""
    asked = scenarios(count)
    options: dict[str, Any] = {
        "precision": PRECISION, "limits": False, "differences": False, "max_seconds": 36_000.0,
    }  # fmt: skip
    run_scenarios(asked[:2], **options)
    own = psutil.Process()
    before, started = seconds(own), time.perf_counter()
    local = run_scenarios(asked, **options)
    here = seconds(own) - before
    print(f"threads of this process: {len(local)} scenarios, {here:.1f} CPU s, ", end="")
    print(f"{time.perf_counter() - started:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        cluster(Path(folder), asked, options, local, here)


def cluster(
    folder: Path, asked: list[Scenario], options: dict[str, Any], local: list[Any], here: float
) -> None:
    """Simulate by a cluster of two workers."""
    quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    file = folder / "scheduler.json"
    processes = [subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", str(file)], **quiet)]
    try:
        while not file.exists() or not file.read_text():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
        command += ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
        processes += [subprocess.Popen(command, **quiet) for _ in range(2)]
        with dask_cluster(address, workers=2) as executor:
            # Loading the simulator is not what a scenario costs.
            run_scenarios(asked[:20], executor=executor, **options)
            watched = [psutil.Process(), *(psutil.Process(process.pid) for process in processes)]
            before, started = [seconds(each) for each in watched], time.perf_counter()
            lost = [0.0]

            def progress(done: int, total: int) -> None:
                if done == total // 3:
                    lost[0] = seconds(watched[3]) - before[3]
                    processes[2].send_signal(signal.SIGKILL)

            found = run_scenarios(asked, executor=executor, progress=progress, **options)
            wall = time.perf_counter() - started
            spent = [seconds(each) - then for each, then in zip(watched[:3], before, strict=False)]
            spent.append(lost[0])
    finally:
        for process in processes:
            process.kill()
    print(f"cluster, one of two workers killed: {len(found)} scenarios, {wall:.1f} s; CPU s: client ", end="")
    print("{:.1f}, scheduler {:.1f}, workers {:.1f} and {:.1f}".format(*spent))
    print(f"equal: {found == local}")
    print(f"added per scenario: {1e3 * (sum(spent) - here) / len(found):.2f} ms of processor time")
    if found != local:
        sys.exit(1)


if __name__ == "__main__":
    main()
