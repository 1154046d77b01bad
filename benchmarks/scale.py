"""Time and memory of big models in fresh processes, by the size of the model.

    python benchmarks/scale.py [--only PART ...] [--quick] [--seed N]

Parts:

- ``processors``: microseconds of CPU time per event of a simulation of 100 to 10^4 tasks, each on a processor
  of its own whose threads share two cores.
- ``entries``: a simulation of 10^3 to 10^5 entries, and its memory.
- ``estimate``: the analytic estimate of up to 10^3 tasks and 10^4 entries.
- ``graph``: drawings of 100 to 10^4 tasks.
- ``files``: ``mup convert``, ``mup stats`` and ``mup diff`` of 10^3 to 10^5 entries.

CPU seconds leave imports and the compilation of the engine out; memory is the peak of the process, everything
included.

The models are layered systems of made-up services: every entry is called by at least one of the layer above,
and the clients of every ten front services spread over their entries.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from click.exceptions import Exit
from machine import describe

from mup.errors import MupError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Geometric,
    Model,
    Precedence,
    Processor,
    Task,
    save_model,
)
from mup.lqn.files import read_model

LAYERS: Final = 4
FRONTS_PER_CLIENT: Final = 10
CLIENTS: Final = 5
"""Per reference task."""

PARTS: Final = ("processors", "entries", "estimate", "graph", "files")
NOTHING: Final = Constant(0.0)


def layered(tasks: int, entries: int, seed: int = 0) -> Model:
    """Return a system of so many services with so many entries in all, each on a processor of its own."""
    rng = random.Random(seed)
    layers = min(LAYERS, tasks)
    bounds = [tasks * layer // layers for layer in range(layers + 1)]
    of_layer = [[f"S{number}" for number in range(first, end)] for first, end in itertools.pairwise(bounds)]
    names = {
        service: [f"e{i}" for i in range(entries * (number + 1) // tasks - entries * number // tasks)]
        for number, service in enumerate(itertools.chain(*of_layer))
    }
    services = []
    for layer, members in enumerate(of_layer):
        below = [(s, e) for s in of_layer[layer + 1] for e in names[s]] if layer + 1 < layers else []
        callers = sum(len(names[s]) for s in members)
        called: list[list[tuple[str, str]]] = [[] for _ in range(callers)]
        for number, target in enumerate(rng.sample(below, len(below))):
            called[number % callers].append(target)
        for targets in called:
            if below and len(targets) < 2:
                targets.append(rng.choice(below))
        rest = iter(called)
        services += [
            Task(
                name=service,
                threads=rng.choice((4, 8, 16)),
                processor=f"cpu-{service}",
                entries=tuple(_entry(name, next(rest), rng) for name in names[service]),
            )
            for service in members
        ]
    fronts = of_layer[0]
    sources = [
        _clients(number, [(s, e) for s in fronts[first : first + FRONTS_PER_CLIENT] for e in names[s]])
        for number, first in enumerate(range(0, len(fronts), FRONTS_PER_CLIENT))
    ]
    return Model(
        name=f"{tasks} tasks, {entries} entries",
        processors=tuple(Processor(name=f"cpu-{service}", cores=2) for service in names),
        tasks=(*sources, *services),
    )


def _entry(name: str, targets: list[tuple[str, str]], rng: random.Random) -> Entry:
    """Return an entry that calls each of some others 0.6 times on average, twice in all at most."""
    mean = min(0.6, 2 / max(1, len(targets)))
    calls = tuple(Call(task=s, entry=e, count=Geometric(mean)) for s, e in dict.fromkeys(targets))
    demand = Exponential(rng.uniform(0.001, 0.005))
    return Entry(
        name=name, start="w", activities=(Activity(name="w", demand=demand, delay=NOTHING, calls=calls),)
    )


def _clients(number: int, targets: list[tuple[str, str]]) -> Task:
    """Return clients that choose one of some entries in every cycle."""
    choices = tuple(
        Activity(name=f"to {s}.{e}", demand=NOTHING, delay=NOTHING, calls=(Call(task=s, entry=e),))
        for s, e in targets
    )
    names = tuple(a.name for a in choices)
    first = Activity(name="choose", demand=NOTHING, delay=NOTHING)
    arcs = (
        (Precedence(pre=("choose",), post=names, fork="or", probabilities=(1 / len(names),) * len(names)),)
        if len(names) > 1
        else (Precedence(pre=("choose",), post=names),)
    )
    cycle = Entry(name="cycle", start="choose", activities=(first, *choices), precedences=arcs)
    return Task(
        name=f"Clients{number}", role="reference", threads=CLIENTS, think=Exponential(1.0), entries=(cycle,)
    )


# The parts, each in a process of its own.


def processors(size: int, seed: int, events: int) -> dict[str, float]:
    """Simulate; return CPU time per event of the engine alone, and of all that `simulate` does."""
    from simulator import simulate  # noqa: PLC0415 - only this part needs it
    from simulator.api import compiled  # noqa: PLC0415
    from simulator.machine.compiled.engine import CompiledEngine  # noqa: PLC0415

    model = layered(size, size, seed)
    simulate(layered(8, 8), horizon=5.0)  # compiles the engine, or loads what is kept on disk
    engine = CompiledEngine(compiled(model), seed)
    until = 1.0
    engine.run_until(until)
    first, before = engine.events, time.process_time()
    while engine.events < first + events:
        until += 1.0
        engine.run_until(until)
    alone, done = time.process_time() - before, engine.events - first
    before = time.process_time()
    result = simulate(model, precision=1e-6, max_events=events, seed=seed)
    whole = time.process_time() - before
    return {
        "tasks": size,
        "events": result.events,
        "us per event of the engine": 1e6 * alone / done,
        "with all figures": 1e6 * whole / result.events,
    }


def entries(size: int, seed: int, events: int) -> dict[str, float]:
    """Simulate; return how long that took."""
    from simulator import simulate  # noqa: PLC0415 - only this part needs it

    model = layered(max(10, size // 10), size, seed)
    before = time.process_time()
    result = simulate(model, precision=1e-6, max_events=events, seed=seed)
    return {"entries": size, "events": result.events, "CPU s": time.process_time() - before}


def estimate(size: int, seed: int) -> dict[str, float]:
    """Estimate; return how long that took."""
    from simulator import analytic  # noqa: PLC0415 - only this part needs it

    model = layered(max(10, size // 10), size, seed)
    analytic.estimate(layered(8, 8))
    before = time.process_time()
    found = analytic.estimate(model)
    return {
        "entries": size,
        "tasks": max(10, size // 10),
        "CPU s": time.process_time() - before,
        "rounds": found.iterations,
    }


def graph(size: int, seed: int, folder: Path) -> dict[str, float | str]:
    """Draw; return seconds and megabytes of the picture, or the first line of the refusal."""
    file, picture = folder / "model.json", folder / "picture.svg"
    save_model(layered(size, size, seed), file)
    seconds, text = _command("graph", str(file), "-o", str(picture))
    if not picture.exists():
        return {"tasks": size, "CPU s": seconds, "MB": 0.0, "says": text.splitlines()[0] if text else ""}
    return {"tasks": size, "CPU s": seconds, "MB": picture.stat().st_size / 1e6}


def files(size: int, seed: int, folder: Path) -> dict[str, float]:
    """Convert to lqnx and back, count, compare with a model in which one thread is added: seconds of each."""
    model = layered(max(10, size // 10), size, seed)
    changed = replace(model, tasks=(*model.tasks[:-1], replace(model.tasks[-1], threads=5)))
    names = [str(folder / name) for name in ("a.json", "b.json", "a.lqnx", "c.json")]
    before = time.process_time()
    save_model(model, Path(names[0]))
    written = time.process_time() - before
    save_model(changed, Path(names[1]))
    before = time.process_time()
    read_model(names[0])
    read = time.process_time() - before
    found: dict[str, float] = {"entries": size, "write": written, "read": read}
    for title, words in (
        ("to lqnx", ("convert", names[0], names[2])),
        ("from lqnx", ("convert", names[2], names[3])),
        ("stats", ("stats", names[0])),
        ("diff", ("diff", names[0], names[1])),
    ):
        found[title] = _command(*words)[0]
    return found


def _command(*words: str) -> tuple[float, str]:
    """Run `mup` in this process; return its CPU seconds and what it refused with, if it did."""
    from mup.cli.main import cli  # noqa: PLC0415 - only these parts need it

    before = time.process_time()
    said = ""
    with redirect_stdout(StringIO()):
        try:
            with cli.make_context("mup", list(words)) as context:
                cli.invoke(context)
        except MupError as error:
            said = str(error)
        except Exit:
            pass  # what `mup diff` ends with when it found differences
    return time.process_time() - before, said


def run_part(what: str, size: int, seed: int, *, quick: bool) -> dict[str, float | str]:
    """Run one part at one size; return its figures and the peak of this process's memory."""
    found: dict[str, float | str]
    with TemporaryDirectory() as folder:
        if what == "processors":
            found = {**processors(size, seed, 100_000 if quick else 2_000_000)}
        elif what == "entries":
            found = {**entries(size, seed, 100_000 if quick else 2_000_000)}
        elif what == "estimate":
            found = {**estimate(size, seed)}
        elif what == "graph":
            found = graph(size, seed, Path(folder))
        else:
            found = {**files(size, seed, Path(folder))}
    return {**found, "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def sizes(what: str, *, quick: bool) -> Iterator[int]:
    """Yield the sizes at which a part is measured."""
    largest = {"processors": 4, "entries": 5, "estimate": 4, "graph": 4, "files": 5}[what]
    yield from (
        10**power for power in range(2 if what in ("processors", "graph") else 3, largest + 1 - 2 * quick)
    )


def _shown(figures: dict[str, float | str]) -> str:
    return ", ".join(f"{k} {v if isinstance(v, str) else format(v, '.4g')}" for k, v in figures.items())


def main() -> None:
    """Print all parts."""
    parser = argparse.ArgumentParser(description="What do big models cost?")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--size", type=int, nargs="+", help="other sizes than the usual ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="see that it works; the figures mean little")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(run_part(options.part, options.size[0], options.seed, quick=options.quick)))
        return
    print(describe("mup-framework", "numpy"))
    for what in options.only:
        print(f"\n{what}; seed {options.seed}")
        for size in options.size or sizes(what, quick=options.quick):
            command = [
                sys.executable,
                __file__,
                "--part",
                what,
                "--size",
                str(size),
                "--seed",
                str(options.seed),
            ]
            command += ["--quick"] * options.quick
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"  {size}: failed: {done.stderr.strip().splitlines()[-1:]}")
                continue
            figures = json.loads(done.stdout.splitlines()[-1]).items()
            texts = (
                f"{name} {value if isinstance(value, str) else format(value, '.4g')}"
                for name, value in figures
            )
            print("  " + ", ".join(texts), flush=True)


if __name__ == "__main__":
    main()
