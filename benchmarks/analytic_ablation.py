"""Ablation of the analytic estimate's constants: each halved and doubled, against simulation.

    python benchmarks/analytic_ablation.py [--set random|messages|many] [--models N] [--first SEED]
        [--precision 0.01] [--references FILE] [--only NAME ...]

Constants are all numbers in capital letters of ``simulator.analytic`` and its approximations but those of
``LEFT_OUT``. Of a constant between 0.5 and 1 it is the distance to 1 that is halved and doubled; whole
numbers stay whole. A row says by how many percentage points the 50th and the 90th percentile of the absolute
errors of throughput and response time change, how many models get other figures at all, and how many more
iterations do not converge. Simulated references are kept in FILE if one is given.

Models are those of ``analytic_accuracy.py``, made before anything is varied (random); the same with half of
the calls between services sent instead, as far as nothing is more than 90 % utilized (messages); the same
with 5000 clients who think so much longer (many). The last are not simulated: their errors are differences
from the estimate as it is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import pkgutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from analytic_accuracy import Generator
from machine import describe

import simulator.analytic
from mup.errors import SimulationError
from mup.lqn import Exponential, Model
from simulator import simulate
from simulator.analytic import estimate, fixed_point

MODELS = 100
PRECISION = 0.01
MAX_EVENTS = 3_000_000
PERCENTILES = (50, 90)
MOST_UTILIZED = 0.9
MANY = 5000
SETS = ("random", "messages", "many")
CHANGED = 1e-6
"""Relative change of a figure that counts as one."""
LEFT_OUT = {
    "BRANCH_DELAY OVERLAP_ANYWHERE OVERLAP_HERE OWN_ROWS ROWS SQUARES TIME VISITS WORK": "indices",
    "ROOT SAFE TINY": "limits of the arithmetic of a processor",
    "ALIKE CONVOYS FULL NEAR NESTED": "thresholds of warnings",
    "ROUGHLY": "of estimates of a load, not of figures",
    "MAX_LISTED": "length of a message",
}
COMPILED = ("simulator.analytic.compiled", "simulator.analytic.candidates")
OTHER_METHODS = ("product_form",)

Reference = tuple[float, float]
"""Simulated throughput and response time."""


@dataclass(frozen=True)
class Constant:
    """A number of the estimate: its name, the modules that use it, its value."""

    name: str
    modules: tuple[ModuleType, ...]
    value: float

    def variants(self) -> tuple[float, float]:
        """Return it halved and doubled."""
        if 0.5 < self.value < 1:
            return 1 - 2 * (1 - self.value), 1 - (1 - self.value) / 2
        if isinstance(self.value, int):
            return max(round(self.value / 2), 1), 2 * self.value
        return self.value / 2, 2 * self.value

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Let the estimate use another value meanwhile."""
        try:
            for module in self.modules:
                setattr(module, self.name, value)
            yield
        finally:
            for module in self.modules:
                setattr(module, self.name, self.value)


@dataclass(frozen=True)
class Errors:
    """What came out for all models: figures, and how many iterations did not converge."""

    figures: tuple[Reference, ...]
    unconverged: int

    def percentiles(self, references: Sequence[Reference]) -> list[float]:
        """Return 50th and 90th percentile of the errors of throughput, then of response time, in %."""
        found = []
        for k in (0, 1):
            errors = sorted(100 * abs(f[k] / r[k] - 1) for f, r in zip(self.figures, references, strict=True))
            found += [errors[math.ceil(p / 100 * len(errors)) - 1] for p in PERCENTILES]
        return found

    def changed(self, other: Errors) -> int:
        """Return how many models have other figures."""
        pairs = zip(self.figures, other.figures, strict=True)
        return sum(any(abs(a / b - 1) > CHANGED for a, b in zip(*pair, strict=True)) for pair in pairs)


def constants() -> list[Constant]:
    """Return all constants of the estimate, by module."""
    package = simulator.analytic
    names = [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    # Machine code has the constants of its sources: it is not what is varied here.
    names = [n for n in names if not n.startswith(COMPILED)]
    modules = [importlib.import_module(n) for n in names if n.rpartition(".")[2] not in OTHER_METHODS]
    left_out = {name for group in LEFT_OUT for name in group.split()}
    found: dict[str, list[ModuleType]] = {}
    values: dict[str, set[Any]] = {}
    for module in modules:
        for name, value in vars(module).items():
            if name.isupper() and type(value) in (int, float) and name not in left_out:
                found.setdefault(name, []).append(module)
                values.setdefault(name, set()).add(value)
    double = [name for name, seen in values.items() if len(seen) > 1]
    assert not double, f"two constants of one name: {double}"  # noqa: S101 - they could not be varied apart
    return [Constant(name, tuple(users), values[name].pop()) for name, users in found.items()]


def home(constant: Constant) -> str:
    """Return the name of the module that defines a constant."""
    for module in constant.modules:
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        if f"\n{constant.name}: Final" in source or f"\n{constant.name} = " in source:
            return module.__name__.rpartition(".")[2]
    raise LookupError(constant.name)


def sending(model: Model) -> Model:
    """Return a model in which every second call between services is a message."""
    count = 0
    tasks = []
    for task in model.tasks:
        entries = []
        for entry in task.entries:
            activities = []
            for activity in entry.activities:
                calls = []
                for call in activity.calls:
                    count += not task.is_reference
                    sent = not task.is_reference and count % 2 == 0
                    calls.append(replace(call, kind="send") if sent else call)
                activities.append(replace(activity, calls=tuple(calls)))
            entries.append(replace(entry, activities=tuple(activities)))
        tasks.append(replace(task, entries=tuple(entries)))
    return replace(model, tasks=tuple(tasks))


def usable(model: Model) -> bool:
    """Tell whether messages are sent, and nothing is near its limit, for they have no bound."""
    calls = [c for t in model.tasks for e in t.entries for a in e.activities for c in a.calls]
    if not any(call.kind == "send" for call in calls):
        return False
    found = estimate(model)
    shares = [*found.processors.values(), *(t.utilization for t in found.tasks.values())]
    return max((s for s in shares if s is not None), default=0.0) < MOST_UTILIZED


def crowded(model: Model) -> Model:
    """Return a model with many clients who offer the same load."""
    tasks = []
    for task in model.tasks:
        more = MANY / task.threads
        think = None if task.think is None else Exponential(more * task.think.mean)
        tasks.append(replace(task, threads=MANY, think=think) if task.is_reference else task)
    return replace(model, tasks=tuple(tasks))


def models_of(kind: str, seeds: Sequence[int]) -> dict[int, Model]:
    """Return the models of a set, by their seeds."""
    models = {seed: Generator(seed).model() for seed in seeds}
    if kind == "messages":
        sent = {seed: sending(model) for seed, model in models.items()}
        return {seed: model for seed, model in sent.items() if usable(model)}
    return {seed: crowded(model) for seed, model in models.items()} if kind == "many" else models


def errors_of(models: Sequence[Model]) -> Errors:
    """Estimate all models."""
    figures, unconverged = [], 0
    for model in models:
        try:
            found = estimate(model, tolerance=fixed_point.TOLERANCE)
        except SimulationError:
            figures.append((math.inf, math.inf))
            unconverged += 1
            continue
        figures.append((found.cycle.throughput, found.cycle.response_time))
        unconverged += not found.converged
    return Errors(tuple(figures), unconverged)


def references_of(
    models: Sequence[Model], seeds: Sequence[int], precision: float, file: Path | None
) -> list[Reference]:
    """Simulate all models, or take what is in the file."""
    known: dict[str, list[float]] = {}
    if file is not None and file.exists():
        known = json.loads(file.read_text(encoding="utf-8"))
    for seed, model in zip(seeds, models, strict=True):
        if str(seed) not in known:
            cycle = simulate(model, precision=precision, max_events=MAX_EVENTS, seed=seed).cycle
            known[str(seed)] = [cycle.throughput.mean, cycle.response_time.mean]
    if file is not None:
        file.write_text(json.dumps(known), encoding="utf-8")
    return [(known[str(seed)][0], known[str(seed)][1]) for seed in seeds]


def shown(value: float) -> str:
    """Return a value as people write it."""
    return f"{value:g}"


def row(constant: Constant, models: Sequence[Model], references: Sequence[Reference], base: Errors) -> str:
    """Return the row of a constant."""
    usual = base.percentiles(references)
    cells = [f"`{home(constant)}.{constant.name}`", shown(constant.value)]
    for value in constant.variants():
        with constant.set_to(value):
            errors = errors_of(models)
        changes = [
            f"{now - then:+.2f}" for now, then in zip(errors.percentiles(references), usual, strict=True)
        ]
        cells += [
            shown(value),
            " ".join(changes),
            str(errors.changed(base)),
            f"{errors.unconverged - base.unconverged:+d}",
        ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Vary all constants, one after another."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=SETS, default=SETS[0])
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--first", type=int, default=0, help="seed of the first model")
    parser.add_argument("--precision", type=float, default=PRECISION, help="of the simulations")
    parser.add_argument("--references", type=Path, help="keep simulated figures here")
    parser.add_argument("--only", nargs="*", help="names of constants")
    asked = parser.parse_args()
    print(describe("numpy", "scipy", "simpy"))
    seeds = range(asked.first, asked.first + asked.models)
    chosen = models_of(asked.set, seeds)
    models = list(chosen.values())
    base = errors_of(models)
    references: Sequence[Reference] = base.figures
    if asked.set != "many":
        references = references_of(models, list(chosen), asked.precision, asked.references)
    print(f"{len(models)} models ({asked.set}) of seeds {seeds[0]} to {seeds[-1]}")
    names = ("throughput p50", "p90", "response time p50", "p90")
    values = zip(names, base.percentiles(references), strict=True)
    print(f"errors: {', '.join(f'{n} {v:.2f} %' for n, v in values)}; not converged: {base.unconverged}\n")
    print(
        "| constant | value | halved | change | models | unconverged"
        " | doubled | change | models | unconverged |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for constant in constants():
        if not asked.only or constant.name in asked.only:
            print(row(constant, models, references, base), flush=True)


if __name__ == "__main__":
    main()
