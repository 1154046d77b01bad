"""Accuracy of the analytic estimate against simulation, over 200 random models.

    python benchmarks/analytic_accuracy.py [--models N] [--first SEED] [--precision 0.005] [--csv FILE]
    python benchmarks/analytic_accuracy.py --examples

Every model comes from a seed of its own: 1 to 4 layers of 2 to 8 tasks with 1 to 3 entries each; processors
of 1 to 8 cores (PS, FCFS, infinite), some shared by several tasks; pools of 1 to 64 threads or without limit,
1 to 3 replicas; exponential demands or ones with a squared coefficient of variation of 0.1 to 4; sequences,
ORs, AND forks and joins, loops, second phases; 1 to 500 clients in one or two classes. The think time is
chosen such that the load offered is 0.2 to 2 times what the slowest resource can do.

With --examples, the calibrated models of the case studies at several numbers of clients, with their own,
constant think times and with exponential ones of the same means; and models with reference results of another
implementation: the one beside this file, and those in "models" of MUP_REFERENCE_DIR.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from machine import describe
from neutral_models import load_reference_model

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Geometric,
    Model,
    Precedence,
    Processor,
    Task,
    with_scv,
)
from mup.lqn.edits import with_clients
from mup.lqn.files import read_model
from simulator import simulate
from simulator.analytic import estimate

MODELS = 200
PRECISION = 0.005
MAX_EVENTS = 30_000_000
"""Per simulation: near saturation the precision asked for may take more than that."""
ZERO = Constant(0.0)
KNEE = (0.8, 0.99)
EXAMPLES = {
    "acmeair": (16, 64, 96, 256, 512),
    "jpetstore": (64, 128, 192, 256, 512),
    "teastore": (8, 16, 32, 64, 256),
    "tms": (32, 128, 192, 256, 512),
}
"""Clients: far below, near and far beyond saturation."""
EXAMPLE_EVENTS = 10_000_000


class Generator:
    """Draws one random model."""

    def __init__(self, seed: int, *, loops: bool = True) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.loops = loops
        self.work: dict[str, float] = {}

    def model(self) -> Model:
        """Return the model of this seed."""
        draw = self.random
        layers = draw.randint(1, 4)
        count = max(layers, draw.randint(2, 8))
        levels = sorted([*range(layers), *(draw.randrange(layers) for _ in range(count - layers))])
        names = [f"T{i}" for i in range(count)]
        entries = {n: [f"e{k}" for k in range(draw.randint(1, 3))] for n in names}
        callers: dict[tuple[str, str], list[tuple[str, str]]] = {}
        above = [("clients", "cycle")]
        for level in range(layers):
            here = [(n, e) for n, at in zip(names, levels, strict=True) if at == level for e in entries[n]]
            for target in here:
                for caller in draw.sample(above, min(len(above), 1 if draw.random() < 0.7 else 2)):
                    callers.setdefault(caller, []).append(target)
            if level:
                for caller in above:
                    if caller not in callers and draw.random() < 0.4:
                        callers.setdefault(caller, []).append(draw.choice(here))
            above = here
        processors: list[Processor] = []
        tasks = [
            Task(
                name=name,
                threads=draw.choice([1, 1, 2, 4, 8, 16, 32, 64, math.inf, math.inf]),
                replicas=draw.choice([1, 1, 1, 1, 2, 3]),
                processor=self.place(processors),
                entries=tuple(self.entry(e, callers.get((name, e), [])) for e in entries[name]),
            )
            for name in names
        ]
        classes = 1 if draw.random() < 0.85 else 2
        total = round(math.exp(draw.uniform(0, math.log(500))))
        load = math.exp(draw.uniform(math.log(0.2), math.log(2)))
        for index in range(classes):
            body = self.entry("cycle", callers["clients", "cycle"], client=True)
            tasks.append(
                Task(
                    name=f"U{index}", role="reference", threads=max(1, total // (index + 1)), entries=(body,)
                )
            )
        model = Model(name=f"random-{self.seed}", tasks=tuple(tasks), processors=tuple(processors))
        return self.paced(model, load)

    def paced(self, model: Model, load: float) -> Model:
        """Set the think time such that clients offer ``load`` times what the slowest resource can do."""
        paced = model
        for task in model.reference_tasks:
            alone = estimate(model_of(model, task.name, 1))
            shares = [u for u in alone.processors.values() if u is not None]
            shares += [t.utilization for t in alone.tasks.values() if t.utilization is not None]
            capacity = alone.cycle.throughput / max(shares) / len(model.reference_tasks)
            think = float(f"{max(task.threads / (load * capacity) - alone.cycle.response_time, 0.0):.3g}")
            paced = paced.with_task(replace(task, think=Exponential(think) if think > 0 else None))
        return paced

    def place(self, processors: list[Processor]) -> str:
        """Return the processor of a task: a new one, or one that others have too."""
        draw = self.random
        if processors and draw.random() < 0.3:
            return draw.choice(processors).name
        processors.append(
            Processor(
                name=f"P{len(processors)}",
                cores=draw.choice([1, 1, 2, 4, 8]),
                discipline=draw.choice(["ps", "ps", "fcfs", "infinite"]),
            )
        )
        return processors[-1].name

    def time(self) -> Distribution:
        """Return a demand of 1 to 20 ms on average."""
        draw = self.random
        mean = 0.001 * math.exp(draw.uniform(0, math.log(20)))
        if draw.random() < 0.6:
            return Exponential(mean)
        return with_scv(mean, math.exp(draw.uniform(math.log(0.1), math.log(4))))

    def entry(self, name: str, targets: Sequence[tuple[str, str]], *, client: bool = False) -> Entry:
        """Return an entry that calls all targets, in whatever structure."""
        draw = self.random
        activities: list[Activity] = []
        arcs: list[Precedence] = []
        pending = list(targets)

        def activity(calls: int) -> str:
            taken = [pending.pop() for _ in range(min(calls, len(pending)))]
            label = f"a{len(activities)}"
            activities.append(
                Activity(
                    name=label,
                    demand=ZERO if client else self.time(),
                    delay=self.time() if draw.random() < 0.1 else ZERO,
                    calls=tuple(Call(task=t, entry=e) for t, e in taken),
                )
            )
            return label

        last = activity(draw.randint(0, 2))
        stages = draw.randint(0, 2)
        while pending or stages > 0:
            stages -= 1
            kind = draw.choice(["plain", "plain", "plain", "or", "and", "loop"])
            if kind == "plain" or (kind == "loop" and not self.loops):
                following = activity(draw.randint(1, 2))
                arcs.append(Precedence(pre=(last,), post=(following,)))
                last = following
            elif kind == "loop":
                body = activity(1)
                following = activity(0)
                times = (
                    Geometric(draw.choice([0.5, 1.0, 2.0]))
                    if draw.random() < 0.5
                    else Constant(draw.randint(1, 3))
                )
                arcs.append(Precedence(pre=(last,), post=(body, following), fork="loop", counts=(times,)))
                last = following
            else:
                branches = tuple(activity(1) for _ in range(draw.randint(2, 3)))
                following = activity(0)
                odds = [draw.uniform(0.2, 1) for _ in branches]
                chances = tuple(o / sum(odds) for o in odds) if kind == "or" else None
                arcs.append(Precedence(pre=(last,), post=branches, fork=kind, probabilities=chances))  # type: ignore[arg-type]
                arcs.append(Precedence(pre=branches, post=(following,), join=kind))  # type: ignore[arg-type]
                last = following
        if not client and draw.random() < 0.1:
            activities = [replace(a, replies=True) if a.name == last else a for a in activities]
            arcs.append(Precedence(pre=(last,), post=(activity(0),)))
        return Entry(name=name, start="a0", activities=tuple(activities), precedences=tuple(arcs))


def model_of(model: Model, reference: str, clients: int) -> Model:
    """Return a model with this reference task alone and so many clients who never think."""
    kept = tuple(
        replace(t, threads=clients, think=None) if t.is_reference else t
        for t in model.tasks
        if not t.is_reference or t.name == reference
    )
    return replace(model, tasks=kept)


@dataclass(frozen=True)
class Row:
    """One model: errors of the estimate as fractions, and what they are errors of."""

    seed: int
    throughput: float
    response_time: float
    utilization: float
    bottleneck: str
    half_width: float
    seconds: float
    converged: bool


def compare(seed: int, precision: float) -> Row:
    """Simulate and estimate the model of a seed."""
    model = Generator(seed).model()
    truth = simulate(model, precision=precision, max_events=MAX_EVENTS, seed=seed)
    started = time.perf_counter()
    guess = estimate(model)
    seconds = time.perf_counter() - started
    full = {n: p.utilization.mean for n, p in truth.processors.items() if p.utilization is not None}
    full |= {n: t.utilization.mean for n, t in truth.tasks.items() if t.utilization is not None}
    bottleneck = max(full, key=lambda n: full[n], default="")
    cycle = truth.cycle
    return Row(
        seed,
        guess.cycle.throughput / cycle.throughput.mean - 1,
        guess.cycle.response_time / cycle.response_time.mean - 1,
        full.get(bottleneck, 0.0),
        bottleneck,
        max(cycle.throughput.relative, cycle.response_time.relative),
        seconds,
        guess.converged,
    )


def report(rows: list[Row]) -> None:
    """Print the distribution of errors per band of the bottleneck's utilization, and the times."""
    percentiles = (50, 75, 90, 95, 100)
    bands = {
        "below 0.8": [r for r in rows if r.utilization < KNEE[0]],
        "0.8 to 0.99": [r for r in rows if KNEE[0] <= r.utilization <= KNEE[1]],
        "above 0.99": [r for r in rows if r.utilization > KNEE[1]],
        "outside 0.8 to 0.99": [r for r in rows if not KNEE[0] <= r.utilization <= KNEE[1]],
        "all": rows,
    }
    print(f"|error| in %, percentiles {', '.join(f'{p}' for p in percentiles)} (100 = largest)")
    for name, band in bands.items():
        if not band:
            continue
        for figure in ("throughput", "response_time"):
            errors = sorted(100 * abs(getattr(r, figure)) for r in band)
            shown = " ".join(f"{errors[math.ceil(p / 100 * len(errors)) - 1]:7.2f}" for p in percentiles)
            bias = 100 * statistics.median(getattr(r, figure) for r in band)
            print(f"  {name:20s} n={len(band):3d}  {figure:13s} {shown}   median error {bias:+.2f}")
    times = sorted(1e3 * r.seconds for r in rows)
    at = [times[math.ceil(p / 100 * len(times)) - 1] for p in percentiles]
    print(f"ms per estimate, same percentiles: {' '.join(f'{t:.1f}' for t in at)}")
    print(f"not converged: {sum(not r.converged for r in rows)} of {len(rows)}")
    for row in sorted(rows, key=lambda r: -abs(r.response_time))[:10]:
        print(
            f"  seed {row.seed}: throughput {100 * row.throughput:+.2f} %, response time "
            f"{100 * row.response_time:+.2f} % (simulated to {100 * row.half_width:.2f} %), "
            f"{row.bottleneck} at {row.utilization:.3f}"
        )


def thinking_at_random(model: Model) -> Model:
    """Return a model whose clients think for exponential times of the same means."""

    def at_random(activity: Activity) -> Activity:
        if activity.kind != "think" or activity.delay is None or activity.delay.mean == 0:
            return activity
        return replace(activity, delay=Exponential(activity.delay.mean))

    (clients,) = model.reference_tasks
    entries = tuple(replace(e, activities=tuple(map(at_random, e.activities))) for e in clients.entries)
    return model.with_task(replace(clients, entries=entries))


def examples() -> None:
    """Compare the models of the case studies, one row per load and kind of think times."""
    folder = Path(__file__).resolve().parents[1] / "examples"
    print("| model, clients | think times | bottleneck | cycles/s: estimated, simulated, error | response s: "
          "estimated, simulated, error | warned |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for name, loads in EXAMPLES.items():
        model = read_model(str(folder / name / "model.json"))
        for clients in loads:
            for kind, thinking in (("constant", model), ("exponential", thinking_at_random(model))):
                print(_example(f"{name}, {clients}", kind, with_clients(thinking, clients)), flush=True)


def references() -> None:
    """Compare models with figures of another implementation, one row per load."""
    here = [Path(__file__).with_name("teastore-size.json")]
    folder = os.environ.get("MUP_REFERENCE_DIR")
    others = sorted(Path(folder, "models").glob("*.json")) if folder else []
    print("| model, clients | cycles/s: estimated, reference, error | response ms: the same | ms of CPU |")
    print("|---|---|---|---|")
    for file in here + [other for other in others if other.name != here[0].name]:
        reference = load_reference_model(file)
        for row in reference.rows:
            started = time.process_time()
            cycle = estimate(reference.with_clients(row["clients"])).cycle
            cost = 1e3 * (time.process_time() - started)
            cells = [f"{file.stem}, {row['clients']}"]
            for figure, unit in (("throughput", 1.0), ("response_time", 1e3)):
                seen, expected = unit * row[figure]["mean"], unit * getattr(cycle, figure)
                cells.append(f"{expected:.4g}, {seen:.4g}, {expected / seen - 1:+.1%}")
            print(f"| {' | '.join([*cells, f'{cost:.0f}'])} |")


def _example(what: str, kind: str, model: Model) -> str:
    truth = simulate(model, precision=PRECISION, max_events=EXAMPLE_EVENTS)
    guess = estimate(model)
    busy = {n: t.utilization.mean for n, t in truth.tasks.items() if t.utilization is not None}
    most = max(busy, key=lambda n: busy[n])
    cells = [what, kind, f"{most} {busy[most]:.2f}"]
    for figure in ("throughput", "response_time"):
        seen, expected = getattr(truth.cycle, figure).mean, getattr(guess.cycle, figure)
        cells.append(f"{expected:.3g}, {seen:.3g}, {expected / seen - 1:+.0%}")
    return f"| {' | '.join([*cells, 'yes' if guess.warnings else 'no'])} |"


def main() -> None:
    """Compare all models on all cores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--first", type=int, default=0, help="seed of the first model")
    parser.add_argument("--precision", type=float, default=PRECISION, help="of the simulations")
    parser.add_argument("--csv", type=Path, help="write every model's errors here")
    parser.add_argument("--examples", action="store_true", help="the case studies instead")
    asked = parser.parse_args()
    print(describe("numpy", "scipy", "simpy"))
    if asked.examples:
        examples()
        print()
        references()
        return
    seeds = range(asked.first, asked.first + asked.models)
    print(f"{asked.models} models, seeds {seeds[0]} to {seeds[-1]}, simulated to {100 * asked.precision:g} %")
    rows = []
    with ProcessPoolExecutor() as pool:
        for row in pool.map(compare, seeds, [asked.precision] * len(seeds)):
            rows.append(row)
            print(f"\r{len(rows)} of {asked.models}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(rows)
    if asked.csv:
        lines = [
            "seed,throughput_error,response_time_error,utilization,bottleneck,half_width,seconds,settled"
        ]
        lines += [
            f"{r.seed},{r.throughput:.6f},{r.response_time:.6f},{r.utilization:.4f},{r.bottleneck},"
            f"{r.half_width:.5f},{r.seconds:.5f},{int(r.converged)}"
            for r in rows
        ]
        asked.csv.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
