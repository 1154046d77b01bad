"""Endpoints that are not analysed: what does the log say of them as a whole?

Such an endpoint has one path of the model's own: its local work in one activity, then for every destination
that executions called or queried a loop of one call, then the response. Means are those of the log: work,
delays and numbers of calls. What the source would tell is lost: which calls exclude each other, and which run
side by side (they are taken one after the other).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from analyzer.calibration.executions import Execution
from analyzer.calibration.matching import LoopEntry, Match, Matched, OperationKey, SegmentKey, Shape
from analyzer.calibration.observed import Observed, Sample
from analyzer.calibration.samples import PathSamples, local_work, sample_path
from analyzer.static.application import Application, Endpoint, Operation, OperationKind, Path
from analyzer.static.translate import PathPlan
from mup.events.sites import Site
from mup.lqn.refs import EndpointRef

__all__ = ["match_whole", "sample_whole", "with_wholes"]


def with_wholes(application: Application, executions: Mapping[str, Sequence[Execution]]) -> Application:
    """Return the application with the path that a log shows of each endpoint that is not analysed.

    Args:
        application: As its source is now.
        executions: By label; those that failed tell nothing.
    """
    if not any(e.whole for e in application.endpoints()):
        return application

    def seen(endpoint: Endpoint) -> Endpoint:
        usable = [e for e in executions.get(endpoint.label, ()) if not e.failed]
        return replace(endpoint, paths=(_path(endpoint, usable),)) if endpoint.whole else endpoint

    services = tuple(replace(s, endpoints=tuple(map(seen, s.endpoints))) for s in application.services)
    return replace(application, services=services)


def _path(endpoint: Endpoint, executions: Iterable[Execution]) -> Path:
    """Return local work, a loop for every destination in the order they were met, and the response."""
    known = endpoint.paths[0]
    place = known.operations[-1].site
    found: dict[str, Operation] = {}
    awaited: set[str] = set()
    for execution in executions:
        for step in execution.steps:
            operation = execution.operations.get(step.seq)
            if operation is None:
                continue
            if step.op in ("call", "query") and operation.dest not in found:
                file, function, ordinal = step.site or (place.file, place.function, 0)
                # The log has sites, but their lines only for display; the endpoint's is where it is found.
                site = Site(file, function, ordinal, place.line, place.column)
                kind: OperationKind = "call" if isinstance(operation.to, EndpointRef) else "query"
                found[operation.dest] = Operation(kind, site, operation.dest, to=operation.to)
            elif step.op == "get":
                awaited.add(operation.dest)
    loops = []
    for dest, made in found.items():
        inside = [made, *([Operation("get", made.site, of=0)] if dest in awaited else [])]
        body = Path(tuple(inside), "return", 0, (0,) * (len(inside) + 1))
        loops.append(Operation("loop", replace(place, ordinal=0), bodies=(body,)))
    lines = (known.local_lines[0], *(0 for _ in loops), 0)
    return Path((*loops, known.operations[-1]), "return", 0, lines)


def match_whole(plan: PathPlan, executions: Sequence[Execution]) -> Matched:
    """Match every execution with the one path of an endpoint that is measured as a whole."""
    loops = {o.bodies[0].operations[0].target: k for k, o in enumerate(plan.operations) if o.op == "loop"}
    matches = [Match(execution, _shape(execution, loops)) for execution in executions]
    return Matched((plan,), (matches,))


def _shape(execution: Execution, loops: Mapping[str, int]) -> Shape:
    steps: list[OperationKey] = []
    counts = dict.fromkeys(loops.values(), 0)
    for step in execution.steps:
        operation = execution.operations.get(step.seq) if step.op in ("call", "query", "get") else None
        if operation is None:
            steps.append(((), len(loops)))
            continue
        loop = loops[operation.dest]
        counts[loop] += step.op != "get"
        steps.append(((loop, 0), int(step.op == "get")))
    entries = tuple(LoopEntry(((), loop), (0,) * count) for loop, count in counts.items())
    # Work is not divided among gaps: all of it is one activity's.
    return Shape(0, tuple(steps), ((),) * (len(steps) + 1), entries)


def sample_whole(
    matches: Sequence[Match],
    plan: PathPlan,
    observed: Observed,
    *,
    cpu_clock: bool = True,
    timed: Collection[int] | None = None,
) -> PathSamples:
    """Sample an endpoint as a whole; arguments as of `analyzer.calibration.samples.sample_path`.

    What is not done between calls but in the one activity before them takes no time.
    """
    samples = sample_path(matches, plan, observed, cpu_clock=cpu_clock)
    for place, part in plan.parts():
        for index in range(len(part.segments)):
            samples.demand[place, index], samples.delay[place, index] = Sample(), Sample()
    samples.shape.clear()
    behind: SegmentKey = ((), len(plan.segments) - 1)
    for one in matches:
        window = observed.window_of[one.execution.request]
        before, after = local_work(one.execution)
        times: dict[SegmentKey, tuple[float, float]] = {((), 0): before, behind: after}
        for key in samples.demand:
            demand, delay = times.get(key, (0.0, 0.0))
            if not cpu_clock:
                demand, delay = demand + delay, 0.0
            demand /= float(observed.slowness[window])
            samples.segment(key, demand, delay, window, one.execution.request, timed)
    return samples
