"""Fill the numbers of an uncalibrated model in from the log of an exploratory run.

In:  the ``Application`` that static analysis found, and a run directory.
Out: a calibrated model, and a report of what it covers and what to be careful about.

Follows Garbi's thesis, section 5.2.2, with these deliberate differences:

- an execution is matched to its path by call site, not by destination;
- processor time is what the thread's CPU clock says; wall time beyond it is a delay;
- framework work that no endpoint sees is charged to the replica's front and worker;
- everything that runs on the machine (load generator and co-located databases too) shares one
  processor, the host;
- numbers that were never observed stay unknown, and are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from analyzer.calibration.condense import condense
from analyzer.calibration.executions import Execution, Step, collect, within
from analyzer.calibration.framework import FrameworkWork, dispatch_latency, framework_work
from analyzer.calibration.rundir import Run, fingerprints, stale_endpoints
from analyzer.calibration.samples import PathSamples, Signature, group, sample_path
from analyzer.static.application import Application
from analyzer.static.translate import PathPlan, translate_with_plan
from mup.errors import LogError, StaleLogError
from mup.events.ids import child_id
from mup.lqn import (
    Activity,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Exponential,
    Front,
    Model,
    Processor,
    Task,
    entry_label,
)

__all__ = ["HOST", "Calibration", "EntryCoverage", "calibrate"]

HOST = "host"
"""Name of the processor that stands for the machine of the exploratory run."""

UNMATCHED_LIMIT = 0.01
FOREIGN_CPU_LIMIT = 0.02


@dataclass(frozen=True, slots=True)
class EntryCoverage:
    """How much of one endpoint the log saw."""

    label: str
    paths: int
    observed: int
    executions: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibrated model with what is worth knowing about its numbers.

    Attributes:
        model: The calibrated model.
        coverage: Per endpoint and scenario.
        warnings: Sentences for the user.
        uncovered: Paths no execution took, as readable texts.
        work: Framework processor time per request.
    """

    model: Model
    coverage: tuple[EntryCoverage, ...]
    warnings: tuple[str, ...]
    uncovered: tuple[str, ...]
    work: FrameworkWork

    @property
    def paths(self) -> int:
        """Paths in the source."""
        return sum(c.paths for c in self.coverage)

    @property
    def observed(self) -> int:
        """Paths the log saw."""
        return sum(c.observed for c in self.coverage)


@dataclass(slots=True)
class _Book:
    """What calibration knows while it fills the model in."""

    run: Run
    executions: list[Execution]
    by_request: Mapping[int, Execution]
    work: FrameworkWork
    dispatch: Mapping[str, float]
    warnings: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    coverage: list[EntryCoverage] = field(default_factory=list)
    network: dict[str, tuple[Distribution, Distribution]] = field(default_factory=dict)
    queries: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    drivers: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    outside_server: dict[tuple[str, str], Distribution] = field(default_factory=dict)

    def callee(self, execution: Execution, seq: int) -> Execution | None:
        return self.by_request.get(child_id(execution.request, seq))


def calibrate(
    run: Run, application: Application, *, name: str, client: str | None = None, partial: bool = False
) -> Calibration:
    """Calibrate the model of an application from one run.

    Args:
        run: An exploratory run.
        application: The application as its source is now.
        name: Name of the model.
        client: The client class that becomes the reference task; None = the one that was run.
        partial: Leave endpoints whose source changed since the run uncalibrated instead of refusing.

    Raises:
        StaleLogError: Endpoints changed since the log was written.
        LogError: The log does not fit the code, or nothing in it is usable.
    """
    current = fingerprints(application)
    stale = stale_endpoints(run.info.fingerprints, current) if run.info.fingerprints else {}
    if stale and not partial:
        listing = "; ".join(f"{endpoint} {reason}" for endpoint, reason in sorted(stale.items()))
        raise StaleLogError(
            f"the log was written by another version of the code: {listing}",
            where=str(run.path),
            hint="run 'mup explore' again, or pass --partial to leave these endpoints uncalibrated",
        )
    model, plans = translate_with_plan(application, name=name, client=client or run.info.client or None)
    everything = collect(run.logs)
    windows = run.info.windows
    inside = [e for e in everything if within(e, windows)] if windows else everything
    if not inside:
        raise LogError(
            "no complete execution inside the observed time", where=str(run.path), hint="explore for longer"
        )
    book = _Book(
        run=run,
        executions=inside,
        by_request={e.request: e for e in everything},
        work=framework_work(run.info, inside),
        dispatch=dispatch_latency(inside),
    )
    tasks: dict[str, Task] = {}
    for task in model.tasks:
        if task.role in ("service", "reference"):
            tasks[task.name] = _calibrate_task(book, task, plans, stale)
    for task in model.tasks:
        if task.role == "network":
            tasks[task.name] = _calibrate_network(book, task)
        elif task.role == "database":
            tasks[task.name] = _calibrate_database(book, task)
    for task in model.tasks:
        if task.role in ("service", "reference"):
            tasks[task.name] = _add_time_outside_servers(book, tasks[task.name])
    _general_warnings(book)
    calibrated = replace(
        model,
        processors=(Processor(name=HOST, cores=run.info.cores, discipline="ps"),),
        tasks=tuple(tasks.get(t.name, t) for t in model.tasks),
        provenance=_provenance(book, stale),
    )
    return Calibration(
        model=calibrated,
        coverage=tuple(book.coverage),
        warnings=tuple(book.warnings),
        uncovered=tuple(book.uncovered),
        work=book.work,
    )


def _calibrate_task(
    book: _Book,
    task: Task,
    plans: Mapping[tuple[str, str], Sequence[PathPlan]],
    stale: Mapping[str, str],
) -> Task:
    entries = []
    for entry in task.entries:
        label = entry_label(task.name, entry.name)
        if label in stale:
            book.warnings.append(f"{label} {stale[label]}: left uncalibrated")
            entries.append(entry)
            continue
        entries.append(_calibrate_entry(book, task, entry, plans[task.name, entry.name]))
    front = None
    if task.name in book.work.front:
        half = Constant(book.work.front[task.name] / 2)
        front = Front(request=half, reply=half)
    return replace(task, entries=tuple(entries), processor=HOST, front=front)


def _calibrate_entry(book: _Book, task: Task, entry: Entry, plans: Sequence[PathPlan]) -> Entry:
    label = entry_label(task.name, entry.name)
    mine = [e for e in book.executions if e.endpoint == label]
    failed = [e for e in mine if e.failed]
    if failed:
        book.warnings.append(f"{label}: {len(failed)} of {len(mine)} executions failed and are left out")
    usable = [e for e in mine if not e.failed]
    groups = dict(group(usable))
    # Only foreign logs come without waits; they have no CPU clock either.
    has_gets = any(e.begin.cpu >= 0 for e in usable)
    taken: list[list[Execution]] = []
    matched = 0
    for plan in plans:
        # Taken out, so that no execution counts for two paths that a log without waits cannot tell apart.
        found = groups.pop(_signature(plan, gets=has_gets), [])
        matched += len(found)
        taken.append(found)
    if len(usable) - matched > UNMATCHED_LIMIT * len(usable):
        raise LogError(
            f"{len(usable) - matched} of {len(usable)} executions of {label} fit no path of its source",
            where=str(book.run.path),
            hint="the log belongs to other code; run 'mup explore' again",
        )
    if len(usable) > matched:
        book.warnings.append(f"{label}: {len(usable) - matched} executions fit no path and are left out")
    observed = sum(1 for t in taken if t)
    book.coverage.append(EntryCoverage(label, len(plans), observed, matched))
    for plan, found in zip(plans, taken, strict=True):
        if not found:
            book.uncovered.append(f"{label}: {plan.describe()}")
    if not matched:
        return entry
    activities = {a.name: a for a in entry.activities}
    for plan, found in zip(plans, taken, strict=True):
        if found:
            aligned = found if has_gets else [_with_gets(e, plan) for e in found]
            samples = sample_path(aligned, len(plan.operations), book.callee)
            _fill_path(book, task, plan, samples, activities)
    precedences = entry.precedences
    if len(plans) > 1:
        odds = tuple(len(t) / matched for t in taken)
        precedences = tuple(replace(p, probabilities=odds) if p.fork == "or" else p for p in precedences)
    return replace(
        entry, activities=tuple(activities[a.name] for a in entry.activities), precedences=precedences
    )


def _signature(plan: PathPlan, *, gets: bool) -> Signature:
    return tuple(
        (
            o.op,
            (o.site.file, o.site.function, o.site.ordinal),
            o.target if o.op in ("call", "query") else "",
        )
        for o in plan.operations
        if gets or o.op != "get"
    )


def _with_gets(execution: Execution, plan: PathPlan) -> Execution:
    """Insert the waits that a log without ``waitStart`` does not show.

    Each is taken to begin where the operation before it let the flow go on, so that waiting is never
    charged as local work, and to end when its reply came.
    """
    rest = iter(execution.steps)
    steps: list[Step] = []
    for operation in plan.operations:
        if operation.op != "get":
            steps.append(next(rest))
            continue
        seq = steps[operation.of].seq if operation.of is not None else 0
        start = steps[-1].resume if steps else execution.begin
        known = execution.operations.get(seq)
        finish = known.finish if known is not None else None
        steps.append(Step("get", None, seq, start, finish or start))
    return replace(execution, steps=steps)


def _fill_path(
    book: _Book, task: Task, plan: PathPlan, samples: PathSamples, activities: dict[str, Activity]
) -> None:
    """Put the samples of one path into its activities, and remember those of Net and databases."""

    def put(name: str, demand: Distribution | None, delay: Distribution | None) -> None:
        activities[name] = replace(activities[name], demand=demand, delay=delay)

    extra = book.work.worker.get(task.name, 0.0) if not task.is_reference else 0.0
    for index, name in enumerate(plan.segments):
        demand = condense(samples.demand[index])
        if index == 0 and extra and demand is not None:
            demand = shifted(demand, extra)
        put(name, demand, condense(samples.delay[index]))
    for index, found in samples.communication.items():
        operation = plan.operations[index]
        put(plan.registry[index], condense(found.registry_demand), condense(found.registry_delay))
        if operation.op == "query":
            database, query = operation.target.split(".", 1)
            book.queries.setdefault((database, query), []).extend(found.exchange)
            book.drivers.setdefault((database, query), []).extend(found.driver_demand)
            put(plan.communication[index], condense(found.driver_demand), Constant(0.0))
            continue
        put(plan.communication[index], Constant(0.0), Constant(0.0))
        label = operation.target
        called = label.split("/", 1)[0]
        known = (
            book.work.front.get(called, 0.0)
            + book.work.worker.get(called, 0.0)
            + (sum(found.receive) / len(found.receive) if found.receive else 0.0)
            - book.dispatch.get(called, 0.0)
        )
        exchange = condense(found.exchange, shift=known)
        if exchange is None:
            waited = any(o.op == "get" and o.of == index for o in plan.operations)
            reason = "its replies were always picked up late" if waited else "nobody waits for its reply"
            book.warnings.append(
                f"{entry_label(task.name, plan.entry)}: no usable network time of the call to {label}"
                f" (line {operation.site.line}); {reason}. Taken as 0"
            )
            exchange = Constant(0.0)
        book.network[plan.exchange[index]] = (Constant(0.0), exchange)
    if task.is_reference:
        _fill_think(book, plan, activities)


def _fill_think(book: _Book, plan: PathPlan, activities: dict[str, Activity]) -> None:
    """Add to each think step what the load generator's timers add, and its own idle work."""
    steps = [activities[name] for name in plan.think.values()]
    work = book.work.client.get(plan.task, 0.0)
    for position, step in enumerate(steps):
        if step.delay is None:
            continue
        activities[step.name] = replace(
            step,
            delay=shifted(step.delay, book.run.info.think_lateness),
            demand=Constant(work if position == 0 else 0.0),
        )


def shifted(distribution: Distribution, seconds: float) -> Distribution:
    """Return the distribution with its mean raised by a small constant; the family stays."""
    if seconds == 0:
        return distribution
    if isinstance(distribution, Constant):
        return Constant(distribution.value + seconds)
    if isinstance(distribution, Empirical):
        return Empirical(tuple(v + seconds for v in distribution.values))
    if isinstance(distribution, Exponential):
        return Exponential(distribution.mean + seconds)
    return distribution.scaled(1 + seconds / distribution.mean)


def _calibrate_network(book: _Book, task: Task) -> Task:
    entries = []
    for entry in task.entries:
        times = book.network.get(entry.name)
        if times is not None:
            entry = _with_times(entry, *times)  # noqa: PLW2901
        entries.append(entry)
    return replace(task, entries=tuple(entries))


def _with_times(entry: Entry, demand: Distribution, delay: Distribution) -> Entry:
    first = replace(entry.activities[0], demand=demand, delay=delay)
    return replace(entry, activities=(first, *entry.activities[1:]))


def _calibrate_database(book: _Book, task: Task) -> Task:
    """Split query times into work of the server on the host and everything else.

    The embedded database works under one lock, hence one thread; the rest of its query time (loopback,
    wake-ups) is spent outside that lock and belongs to the caller's branch.
    """
    use = book.run.info.databases.get(task.name)
    per_query = book.work.database.get(task.name, 0.0) if use is not None and use.colocated else 0.0
    one_server = use is not None and use.embedded and per_query > 0
    samples = {entry.name: book.queries.get((task.name, entry.name), []) for entry in task.entries}
    total_time = sum(sum(s) for s in samples.values())
    total_count = sum(len(s) for s in samples.values())
    entries = []
    for entry in task.entries:
        times = samples[entry.name]
        if not times:
            entries.append(entry)
            continue
        mean = sum(times) / len(times)
        # Only the server's total is known; longer queries get a larger share of it.
        work = per_query * total_count * mean / total_time if total_time > 0 else 0.0
        drivers = book.drivers[task.name, entry.name]
        driver = sum(drivers) / len(drivers)
        work = min(work, max(0.0, mean - driver))
        rest = condense(times, shift=driver + work) or Constant(0.0)
        if one_server:
            book.outside_server[task.name, entry.name] = rest
            rest = Constant(0.0)
        entries.append(_with_times(entry, Constant(work), rest))
    return replace(
        task,
        entries=tuple(entries),
        processor=HOST if per_query > 0 else None,
        threads=1 if one_server else task.threads,
    )


def _add_time_outside_servers(book: _Book, task: Task) -> Task:
    """Give the branches that query a one-server database the part of the query time outside it."""

    def delayed(activity: Activity) -> Activity:
        for call in activity.calls:
            rest = book.outside_server.get((call.task, call.entry))
            if rest is not None and activity.calibrated:
                return replace(activity, delay=rest)
        return activity

    return replace(
        task,
        entries=tuple(replace(e, activities=tuple(delayed(a) for a in e.activities)) for e in task.entries),
    )


def _general_warnings(book: _Book) -> None:
    run = book.run
    book.warnings.extend(
        f"{service}: a process died and was replaced during the run; its framework time is left out"
        for service in run.info.replaced
    )
    for path in run.truncated:
        book.warnings.append(f"{path.name} is cut off: its last records are missing")
    foreign = run.info.foreign_cpu
    if foreign is not None and foreign > FOREIGN_CPU_LIMIT:
        book.warnings.append(
            f"other programs used {foreign:.1%} of the machine during the run; its times may be too long"
        )
    for label, width in sorted(run.info.widths.items()):
        if width.half_width is None or width.mean <= 0:
            book.warnings.append(
                f"{label}: too few rounds to tell how well its execution time is known"
                f" ({width.executions} executions); explore for longer"
            )
            continue
        relative = width.half_width / width.mean
        if relative > 0.01:
            book.warnings.append(
                f"{label}: execution time known to +-{relative:.1%} only"
                f" ({width.executions} executions); explore for longer to narrow it"
            )


def _provenance(book: _Book, stale: Mapping[str, str]) -> dict[str, Any]:
    info = book.run.info
    return {
        "run": book.run.path.name,
        "created": info.created,
        "mup": info.mup,
        "python": info.python,
        "machine": info.machine,
        "cores": info.cores,
        "client": info.client,
        "observed_seconds": round(info.observed_seconds, 3),
        "response_time": info.response_time,
        "stop": info.stop,
        "foreign_cpu": info.foreign_cpu,
        "coverage": {
            c.label: {"paths": c.paths, "observed": c.observed, "executions": c.executions}
            for c in book.coverage
        },
        "uncovered": list(book.uncovered),
        "stale": dict(stale),
        "framework_cpu": {
            "front": book.work.front,
            "worker": book.work.worker,
            "client": book.work.client,
            "database": book.work.database,
        },
        "warnings": list(book.warnings),
    }
