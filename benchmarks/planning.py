"""Is the deployment that ``mup plan`` names really the cheapest that meets the objectives? Exhaustive grids.

    python benchmarks/planning.py [--models N] [--first SEED] [--all]
    python benchmarks/planning.py --teastore
    python benchmarks/planning.py --explain [--models N] [--first SEED]

Every model comes from a seed of its own: 2 to 4 services in a chain or a tree, with exponential, constant
or highly variable times on processors of their own or shared ones; clients that think, or arrivals. Pools,
replicas and cores vary, up to 2,000 deployments; prices are drawn, and so are the figure of the objective
and its limit, between what the smallest and what the largest deployment show.

Then every deployment that is cheaper than the answer, and the answer itself, are simulated with other random
numbers, until the figure is away from its limit or too close to tell (0.5 %); with --all, all others, too.
The answer is right if it meets the objective and no cheaper one does; it is *infeasible* if it fails.

With --teastore, the time of a plan for TeaStore: 5 services, each with 6 pool sizes and 1 to 4 replicas.

With --explain, whether the 95th percentile moves as `mup plan --explain` says: in models drawn in the same
way, every endpoint is made 20 % faster and simulated, with other random numbers. The prediction is right if
it differs by no more than its own interval and that of the simulation.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from dataclasses import dataclass, replace
from pathlib import Path

from machine import describe

from mup.errors import SimulationError, UsageError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Model,
    Processor,
    Task,
    with_scv,
)
from mup.lqn.edits import with_clients, with_pool
from mup.lqn.files import read_model
from simulator import simulate
from simulator.studies.parallel import run_jobs
from simulator.studies.planning.levers import FASTER, levers
from simulator.studies.planning.plan import Plan, plan
from simulator.studies.planning.prices import DEFAULT, Prices
from simulator.studies.planning.slo import Slo, Verdict, objective
from simulator.studies.planning.space import Point, Space
from simulator.studies.whatif import Axis, Change

MODELS = 20
MOST = 2000
ZERO = Constant(0.0)
ROUGH, FINEST = 0.04, 0.004
ALIKE = 1.5
"""A figure of the smallest deployment, in those of the largest, up to which there is nothing to plan."""
TEASTORE = Path(__file__).parent.parent / "examples" / "teastore" / "model.json"


def random_model(rng: random.Random) -> Model:
    """Return services that call each other, and their load."""
    count = rng.randint(2, 4)
    names = [chr(ord("A") + i) for i in range(count)]
    shared = rng.random() < 0.4
    demands = [rng.choice((0.002, 0.005, 0.01, 0.02)) for _ in names]
    callees: dict[int, list[int]] = {i: [] for i in range(count)}
    for i in range(1, count):
        callees[i - 1 if rng.random() < 0.6 else rng.randrange(i)].append(i)
    tasks = []
    for i, name in enumerate(names):
        demand: Distribution = rng.choice(
            (Exponential(demands[i]), Constant(demands[i]), with_scv(demands[i], 3.0))
        )
        delay: Distribution = Exponential(rng.choice((0.005, 0.02))) if rng.random() < 0.4 else ZERO
        calls = tuple(Call(task=names[j], entry="/x/") for j in callees[i])
        work = Activity(name="work", demand=demand, delay=delay, calls=calls)
        entry = Entry(name="/x/", start="work", activities=(work,))
        tasks.append(
            Task(name=name, threads=1, processor="host" if shared else f"host{name}", entries=(entry,))
        )
    heaviest = max(sum(demands) if shared else 0.0, *demands)
    go = Activity(name="go", demand=ZERO, delay=ZERO, calls=(Call(task="A", entry="/x/"),))
    if rng.random() < 0.3:
        rate = rng.uniform(0.8, 1.8) / heaviest
        users = Task(
            name="Users",
            role="reference",
            threads=float("inf"),
            entries=(Entry(name="cycle", start="go", activities=(go,), arrivals=Exponential(1 / rate)),),
        )
    else:
        think = rng.choice((0.1, 0.5))
        clients = max(2, round(rng.uniform(0.8, 2.2) * think / heaviest))
        users = Task(
            name="Users",
            role="reference",
            threads=min(clients, 120),
            think=Exponential(think),
            entries=(Entry(name="cycle", start="go", activities=(go,)),),
        )
    processors = [Processor(name="host")] if shared else [Processor(name=f"host{name}") for name in names]
    return Model(name="random", tasks=(users, *tasks), processors=tuple(processors))


def random_space(model: Model, rng: random.Random) -> Space:
    """Return up to 2,000 deployments of a model, with prices."""
    axes: list[Axis] = []
    for processor in model.processors:
        most = rng.randint(3, 5)
        axes.append(tuple(Change("cores", processor.name, n) for n in range(1, most + 1)))
    for task in model.tasks[1:]:
        if rng.random() < 0.8:
            values = rng.choice(((1, 2, 3, 4, 6, 8), (1, 2, 4, 8, 16), (2, 4, 6), (1, 3, 9)))
            axes.append(tuple(Change("pool", task.name, n) for n in values))
        if rng.random() < 0.4:
            axes.append(tuple(Change("replicas", task.name, n) for n in range(1, rng.randint(2, 3) + 1)))
    rng.shuffle(axes)
    kept: list[Axis] = []
    size = 1
    for axis in sorted(axes, key=lambda a: a[0].kind):  # cores first: without them nothing can help
        if size * len(axis) <= MOST:
            kept.append(axis)
            size *= len(axis)
    prices = Prices(
        core=rng.choice((1.0, 10.0, 40.0)),
        replica=rng.choice((0.5, 2.0, 5.0)),
        thread=rng.choice((0.01, 0.1, 1.0)),
    )
    return Space(model, tuple(kept), prices)


def random_objective(space: Space, rng: random.Random) -> Slo | None:
    """Return an objective that the largest deployment meets, and hardly the smallest.

    None if even the largest cannot do the work, or the smallest is as good.
    """
    figure = rng.choice(("p95", "p95", "p99", "mean", "p90", "utilization"))
    ends = []
    for point in (space.largest, space.smallest):
        try:
            result = simulate(space.scenario(point).model, precision=0.02, seed=99)
        except SimulationError:
            if not ends:
                return None
            ends.append(10 * ends[0])
            continue
        found = objective(space.model, figure, "", 1.0).measured(result)
        ends.append(found.mean if found is not None else 0.0)
    low, high = ends
    if high < ALIKE * low:
        return None
    limit = low * (high / low) ** rng.uniform(0.1, 0.8)
    return objective(space.model, figure, "", min(limit, 0.98) if figure == "utilization" else limit)


def truth(space: Space, slo: Slo, point: Point, seed: int = 4711) -> Verdict:
    """Return whether a deployment meets the objective, as long simulations say."""
    model = space.scenario(point).model
    precision = ROUGH
    while True:
        try:
            result = simulate(model, precision=precision, seed=seed)
        except SimulationError:
            return Verdict.FAILS
        verdict = slo.verdict(result)
        if verdict is not Verdict.CLOSE or precision <= FINEST:
            return verdict
        precision = max(FINEST, precision / 3)


@dataclass(frozen=True)
class Judged:
    """One model's answer, compared with the grid."""

    seed: int
    space: Space
    slo: Slo
    found: Plan | None
    seconds: float
    right: bool
    infeasible: bool
    note: str


def judged(seed: int, *, every: bool) -> Judged:
    """Plan for one random model, and look at all deployments that are cheaper than the answer."""
    rng = random.Random(f"plan/{seed}")
    slo = None
    while slo is None:
        space = random_space(random_model(rng), rng)
        slo = random_objective(space, rng)
    started = time.perf_counter()
    try:
        found: Plan | None = plan(space, [slo], front=False)
    except UsageError as error:
        found, note = None, error.message
    seconds = time.perf_counter() - started
    points = list(itertools.product(*(range(len(axis)) for axis in space.axes)))
    if found is None:
        met = _verdicts(space, slo, points)
        meeting = [p for p, v in met.items() if v is Verdict.MEETS]
        return Judged(seed, space, slo, None, seconds, not meeting, infeasible=False, note=note)
    best = next(p for p in points if space.changes(p) == found.best.changes)
    looked = points if every else [p for p in points if space.rank(p) <= space.rank(best)]
    met = _verdicts(space, slo, looked)
    meeting = [p for p, v in met.items() if v is Verdict.MEETS]
    cheapest = min(meeting, key=space.rank, default=None)
    infeasible = met[best] is Verdict.FAILS
    right = not infeasible and (cheapest is None or space.rank(cheapest) >= space.rank(best))
    note = (
        "" if right or cheapest is None else f"cheaper: {space.changes(cheapest)}, {space.cost(cheapest):g}"
    )
    return Judged(seed, space, slo, found, seconds, right, infeasible, note)


def _verdicts(space: Space, slo: Slo, points: list[Point]) -> dict[Point, Verdict]:
    def job(point: Point):  # type: ignore[no-untyped-def]  # noqa: ANN202
        return lambda _: truth(space, slo, point)

    return dict(zip(points, run_jobs([job(p) for p in points]), strict=True))


def teastore() -> None:
    """Print the time of a plan for TeaStore."""
    model = with_clients(read_model(TEASTORE), 32)
    services = [t.name for t in model.tasks if t.role == "service"]
    axes = [tuple(Change("pool", s, n) for n in (1, 2, 3, 4, 6, 8)) for s in services]
    axes += [tuple(Change("replicas", s, n) for n in (1, 2, 3, 4)) for s in services]
    space = Space(model, tuple(axes), DEFAULT)
    for limit in (0.45, 0.6):
        slo = objective(model, "p95", "", limit)
        started, clock = time.perf_counter(), time.process_time()
        found = plan(space, [slo])
        wall, cpu = time.perf_counter() - started, time.process_time() - clock
        print(
            f"{slo}: {found.best} costs {found.best.cost:g}; {space.size:,} deployments,"
            f" {found.effort.simulated} simulated, {found.effort.estimated} estimated;"
            f" {wall:.1f} s of wall time, {cpu:.1f} s of processor time"
        )


def explained(seed: int) -> list[tuple[str, float, float, float, bool]] | None:
    """Return per endpoint the move of p95 as predicted, its half-width, the true one, and whether alike.

    None if the model cannot run under its load.
    """
    rng = random.Random(f"explain/{seed}")
    model = random_model(rng)
    pools = {task.name: rng.choice((1, 2, 4)) for task in model.tasks[1:]}
    for name, threads in pools.items():
        model = with_pool(model, name, threads)
    slo = objective(model, "p95", "", 1.0)
    try:
        found = levers(model, [slo], seed=seed, max_seconds=600)
        before = slo.measured(simulate(model, precision=FINEST, seed=4711))
    except SimulationError:
        return None
    judged_ones = []
    for lever in found.found:
        if lever.kind == "endpoint":
            changed = model.with_task(_faster(model.task(lever.name.partition("/")[0])))
            after = slo.measured(simulate(changed, precision=FINEST, seed=4711))
            assert before is not None  # noqa: S101 - there are cycles
            assert after is not None  # noqa: S101
            (effect,) = lever.effects
            true = after.mean - before.mean
            error = abs(true - effect.mean)
            judged_ones.append(
                (
                    lever.name,
                    effect.mean,
                    effect.ci95,
                    true,
                    error <= math.hypot(effect.ci95, before.ci95, after.ci95),
                )
            )
    return judged_ones


def _faster(task: Task) -> Task:
    (entry,) = task.entries
    (work,) = entry.activities
    assert work.demand is not None  # noqa: S101 - `random_model` gives both
    assert work.delay is not None  # noqa: S101
    quick = replace(work, demand=work.demand.scaled(1 - FASTER), delay=work.delay.scaled(1 - FASTER))
    return replace(task, entries=(replace(entry, activities=(quick,)),))


def explain(first: int, models: int) -> None:
    """Print how predictions of ``--explain`` and simulations of the changed models agree."""
    every: list[bool] = []
    most: list[bool] = []
    seed = first
    while len(most) < models:
        found = explained(seed)
        seed += 1
        if not found:
            continue
        most.append(found[0][-1])
        every += [right for *_, right in found]
        for name, effect, half, true, right in found:
            print(
                f"{seed - 1:3}  {name} 20 % faster: p95 {1000 * effect:+.2f} +- {1000 * half:.2f} ms"
                f" predicted, {1000 * true:+.2f} simulated{'' if right else '  WRONG'}",
                flush=True,
            )
    print(f"endpoint that helps most: {sum(most)} of {len(most)} right; all: {sum(every)} of {len(every)}")


def main() -> None:
    """Print one line per model, and how many answers are right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--teastore", action="store_true")
    parser.add_argument("--explain", action="store_true")
    arguments = parser.parse_args()
    print(describe())
    if arguments.teastore:
        teastore()
        return
    if arguments.explain:
        explain(arguments.first, arguments.models)
        return
    results = []
    for seed in range(arguments.first, arguments.first + arguments.models):
        one = judged(seed, every=arguments.all)
        results.append(one)
        effort = None if one.found is None else one.found.effort
        best = one.note if one.found is None else f"{one.found.best} ({one.found.best.cost:g})"
        print(
            f"{seed:3} {one.space.size:5} deployments  {one.slo}:"
            f" {'right' if one.right else 'INFEASIBLE' if one.infeasible else 'NOT THE CHEAPEST'}"
            f"  {best}  {effort.simulated if effort else 0} simulated  {one.seconds:.1f} s  {one.note}",
            flush=True,
        )
    right, infeasible = sum(r.right for r in results), sum(r.infeasible for r in results)
    print(f"{right} of {len(results)} answers are the cheapest, {infeasible} infeasible")


if __name__ == "__main__":
    main()
