"""Where the compiled engine spends its processor time: a profile by sampling, by what is done.

    python benchmarks/simulator_profile.py [--horizon SECONDS] [--seed N]

Two models of TeaStore's size with 512 clients, one with queues in order of arrival, one with six-core
processor sharing, are simulated below ``perf record`` (which needs ``kernel.perf_event_paranoid`` of 2 at
most). The engine is compiled for that as an installation does it, but with notes for debuggers, which change
none of its instructions. A sample counts for the innermost function it is in, be that inlined or not, as
``addr2line`` finds it. What is outside of the engine (starting Python, figures made from its counts) is left
out, and its share is printed. With n samples, 10 % has a standard error of 0.3 / sqrt(n).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from machine import describe
from simulator_speed import teastore, teastore_shared

from mup.native import loading
from mup.native.building import build, compilers
from mup.native.libraries import SIMULATOR
from simulator import simulate

CLIENTS = 512
MODELS = {"in order of arrival": teastore, "six-core sharing": teastore_shared}
FREQUENCY = 1999
"""Samples per second of processor time."""
INSTRUCTIONS, LOGARITHMS = "carrying out instructions of flows", "logarithms"
OTHER = "other functions"
GROUPS = {
    INSTRUCTIONS: "advance",
    "calendar of events: a heap of four children": "sift_up sift_down",
    "times of completion under sharing": (
        "job_push job_remove tree_advance tree_schedule tree_use tree_finish "
        "append_to_server take_from_server soonest_server soonest_after"
    ),
    LOGARITHMS: "",
    "rest of the random numbers and distributions": (
        "mix uniform split client_stream resource_stream exponential draw quick_draw "
        "_draw_other _open_uniform _gamma normal_quantile normal_quantile_tail"
    ),
    "counts and integrals of levels": (
        "enter leave sample stays thin_out running_account cycle_done "
        "server_accounts tree_accounts underway_at write_snapshot"
    ),
    "threads, frames and flows": (
        "new_flow free_flow new_frame drop_frame push_urgent push_ready "
        "give_thread let_go_on lock unlock first_goes_on"
    ),
    OTHER: "",
}
"""Functions of the engine's sources, by what they do."""
SAMPLE = re.compile(r"^\s*([0-9a-f]+) \((.*)\)$")


def part(which: str, folder: Path, horizon: float, seed: int) -> None:
    """Simulate a model with the engine that lies in a folder; print where that is in memory."""
    with patch.object(loading, "BUILT", folder):
        simulate(MODELS[which](CLIENTS), horizon=horizon, seed=seed)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        addresses, rights, offset, *_, name = line.split()
        if name.endswith(SIMULATOR.file_name()) and "x" in rights:
            print(json.dumps(int(addresses.partition("-")[0], 16) - int(offset, 16)))


def samples(which: str, folder: Path, horizon: float, seed: int) -> tuple[Counter[int], int, int]:
    """Profile the simulation of a model.

    Returns:
        Samples in the engine by their place in its library, those in logarithms, and all others.
    """
    data = folder / "perf.data"
    child = [sys.executable, __file__, "--part", which, "--folder", str(folder), "--horizon", str(horizon)]
    perf = shutil.which("perf") or "perf"
    record = [perf, "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", str(data), "--"]
    done = subprocess.run([*record, *child, "--seed", str(seed)], check=True, capture_output=True, text=True)
    begin = int(done.stdout.split()[-1])
    listed = subprocess.run(
        [perf, "script", "-i", str(data), "-F", "ip,dso"], check=True, capture_output=True, text=True
    )
    places: Counter[int] = Counter()
    logarithms = others = 0
    for found in map(SAMPLE.match, listed.stdout.splitlines()):
        if found is None:
            continue
        file = Path(found[2]).name
        if file == SIMULATOR.file_name():
            places[int(found[1], 16) - begin] += 1
        elif file.startswith("libm"):
            logarithms += 1  # these models need nothing else of it
        else:
            others += 1
    return places, logarithms, others


def functions(places: Counter[int], library: Path) -> Counter[str]:
    """Return how many samples are in each function, inlined ones told apart."""
    asked = "\n".join(f"{place:#x}" for place in places)
    answer = subprocess.run(
        [shutil.which("addr2line") or "addr2line", "-a", "-f", "-i", "-e", str(library)],
        input=asked,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found: Counter[str] = Counter()
    for index, line in enumerate(answer):
        if line.startswith("0x"):
            # The innermost function comes first; the library calls them f12_name, or f12_name_inner.
            name = re.sub(r"^f\d+_|_inner$", "", answer[index + 1])
            found[name] += places[int(line, 16)]
    return found


def shares(places: Counter[int], logarithms: int, library: Path) -> tuple[dict[str, float], list[str]]:
    """Return the share of each group of functions, and the names of those in no group, most samples first."""
    homes = {name: group for group, names in GROUPS.items() for name in names.split()}
    counts = Counter({LOGARITHMS: logarithms})
    strangers: Counter[str] = Counter()
    for name, count in functions(places, library).items():
        counts[homes.get(name, OTHER)] += count
        if name not in homes:
            strangers[name] += count
    total = sum(counts.values())
    return {group: counts[group] / total for group in GROUPS}, [name for name, _ in strangers.most_common(8)]


def main() -> None:
    """Print one row per group of functions, and one column per model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--horizon", type=float, default=6000.0, help="simulated seconds [default: 6000]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part(options.part, options.folder, options.horizon, options.seed)
        return
    if missing := [tool for tool in ("perf", "addr2line") if shutil.which(tool) is None]:
        sys.exit(f"error: not installed: {', '.join(missing)} (Debian: apt install linux-perf binutils)")
    if (compiler := next(compilers(), None)) is None:
        sys.exit("error: there is no C compiler")
    print(describe("mup-framework", "numpy"))
    print(f"{CLIENTS} clients, {options.horizon:g} simulated s, seed {options.seed}")
    columns = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CC"] = f"{shlex.join(compiler)} -g"
        library = build(SIMULATOR, folder)
        for which in MODELS:
            places, logarithms, others = samples(which, folder, options.horizon, options.seed)
            found, strangers = shares(places, logarithms, library)
            inside = places.total() + logarithms
            print(
                f"{which}: {inside} samples, {others / (inside + others):.0%} of all are elsewhere: left out",
                flush=True,
            )
            if strangers:
                print(f"  other functions: {', '.join(strangers)}")
            columns.append(found)
    print(f"\n| share of the processor time in the engine | {' | '.join(MODELS)} |\n|---|---|---|")
    for group in GROUPS:
        print(f"| {group} | {' | '.join(f'{column[group]:.0%}' for column in columns)} |")


if __name__ == "__main__":
    main()
