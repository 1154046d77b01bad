"""Time to the first result in fresh processes: help, import, warm simulation, the very first one.

    python benchmarks/startup.py [--repeats N] [--quick]

Wall seconds, medians. *Warm*: compiled code lies on disk, as after an installation. *Cold*: nothing does, as
after a change of the engine in a clone, so that the command compiles it. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task, save_model

SEED = 0
PYTHON = sys.executable
LARGEST = 12

NOTHING_BUILT = """
from pathlib import Path
from mup.native import loading
loading.BUILT = Path("nothing")
from mup.cli.main import main
main()
"""
"""The command line, as if installing mup had compiled nothing."""


def small_model() -> Model:
    """Return ten clients of a service on a two-core processor: a millisecond of simulation."""
    nothing = Constant(0.0)
    ask = Activity(name="ask", demand=nothing, delay=nothing, calls=(Call(task="A", entry="/a/"),))
    work = Activity(name="work", demand=Exponential(0.1), delay=nothing)
    users = Task(
        name="Users",
        role="reference",
        threads=10,
        think=Exponential(1.0),
        entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
    )
    served = Task(
        name="A",
        threads=4,
        processor="host",
        entries=(Entry(name="/a/", start="work", activities=(work,)),),
    )
    return Model(name="small", processors=(Processor(name="host", cores=2),), tasks=(users, served))


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return how long a command takes."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - begun


def show(name: str, runs: list[float], target: str) -> None:
    """Print the median of some runs."""
    spread = f"({min(runs):.2f} - {max(runs):.2f}, {len(runs)} runs)"
    print(f"{name:24s} {statistics.median(runs):6.2f} s  {spread:24s} {target}")


def contributors(command: list[str], environment: dict[str, str]) -> None:
    """Print which imports of a command take longest, what they import included."""
    done = subprocess.run(
        [PYTHON, "-X", "importtime", *command[1:]],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines()]
    times = [
        (int(line[1]), line[2].strip()) for line in lines if len(line) == 3 and line[1].strip().isdigit()
    ]
    print("\nLongest imports of the warm simulation (those of what they import included):")
    for microseconds, module in sorted(times, reverse=True)[:LARGEST]:
        print(f"  {microseconds / 1e3:6.0f} ms  {module}")


def main() -> None:
    """Print all start-up times."""
    parser = argparse.ArgumentParser(description="How long until the first result?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one run of each, none cold")
    options = parser.parse_args()
    repeats = 1 if options.quick else options.repeats
    print(describe("mup-framework", "numpy", "scipy"), f"\nseed {SEED}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.json"
        save_model(small_model(), path)
        simulate = [PYTHON, "-m", "mup", "simulate", str(path), "--seed", str(SEED)]
        whatif = [PYTHON, "-m", "mup", "whatif", str(path), "--clients", "20", "--seed", str(SEED)]
        kept = {**os.environ, "XDG_CACHE_HOME": str(Path(folder) / "cache")}
        # As after an installation, whose bytecode lies on disk.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        kept["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        for name, command, target in (
            ("python -c pass", [PYTHON, "-c", "pass"], ""),
            ("mup --help", [PYTHON, "-m", "mup", "--help"], "target: 0.3 s"),
            ("import simulator", [PYTHON, "-c", "import simulator"], ""),
            ("mup simulate, warm", simulate, "target: 0.5 s"),
            ("mup whatif, warm", whatif, "target: 0.5 s"),
        ):
            seconds(command, kept)  # fills caches: bytecode, compiled code
            show(name, [seconds(command, kept) for _ in range(repeats)], target)
        if not options.quick:
            runs = []
            for number in range(repeats):
                empty = {**kept, "XDG_CACHE_HOME": str(Path(folder) / f"empty {number}")}
                runs.append(seconds([PYTHON, "-c", NOTHING_BUILT, *simulate[3:]], empty))
            show("mup simulate, cold", runs, "target: 5 s")
        contributors(simulate, kept)


if __name__ == "__main__":
    main()
