"""Fill the numbers of an uncalibrated model in from the log of an exploratory run.

In:  the ``Application`` that static analysis found, and a run.
Out: a calibrated model, and a report of what it covers and what to be careful about.

Follows Garbi's thesis, section 5.2.2, with these deliberate differences:

- an execution is matched to its path by call site, not by destination;
- processor time is what the thread's CPU clock says; wall time beyond it is a delay;
- framework work that no endpoint sees is charged to the replica's front and worker;
- everything that runs on the machine (load generator and co-located databases too) shares one
  processor, the host, whose scheduler was measured;
- processor times are those at the mean speed of the machine during the run, and depend on the rate of
  requests where the run shows how (hot and cold rounds);
- numbers that were never observed stay unknown, and are reported;
- every number knows how it would have come out on other data (bootstrap replicates).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from analyzer.calibration.alone import alone as alone_on_loop
from analyzer.calibration.alone import timed
from analyzer.calibration.background import background
from analyzer.calibration.bootstrap import (
    REPLICATES,
    batches,
    drawn,
    replicates,
    with_variants,
)
from analyzer.calibration.callsites import split, variants, with_frequencies
from analyzer.calibration.components import ALL, Components
from analyzer.calibration.contention import Links, WithoutWaiting, without_waiting
from analyzer.calibration.digits import with_meaningful_digits
from analyzer.calibration.executions import Execution
from analyzer.calibration.framework import FrameworkWork, framework_work
from analyzer.calibration.frequencies import alike, clearly_unlike
from analyzer.calibration.likely_reasons import warnings_of
from analyzer.calibration.load_dependence import load_dependence, shared_by_variants
from analyzer.calibration.matching import Match, Matched, body_counts, count_distribution, match
from analyzer.calibration.observed import FloatArray, Observed, Sample, observe
from analyzer.calibration.one_user import OfOneUser, compared
from analyzer.calibration.outliers import screen
from analyzer.calibration.placement import Placement, placed
from analyzer.calibration.races import stopped_before
from analyzer.calibration.rundir import Run, fingerprints, stale_endpoints
from analyzer.calibration.samples import CommunicationSamples, PathSamples, sample_path
from analyzer.calibration.sleep_costs import SleepCosts, sleep_costs, users_in_step
from analyzer.calibration.terms import (
    Choice,
    Key,
    Kind,
    Repetition,
    Term,
    Terms,
    nothing,
    of_sample,
    same_in_all_phases,
    shape_of,
)
from analyzer.calibration.variant_times import Together, with_own_times
from analyzer.calibration.whole import match_whole, sample_whole, with_wholes
from analyzer.host.names import HOST
from analyzer.static.application import Application
from analyzer.static.translate import NETWORK, PathPlan, Place, translate_with_plan
from mup.errors import LogError, StaleLogError
from mup.lqn import (
    Activity,
    ActivityRef,
    Constant,
    Distribution,
    Empirical,
    Entry,
    EntryRef,
    Exponential,
    Front,
    Model,
    Processor,
    QueryRef,
    Task,
    Uncertainty,
    entry_label,
)
from mup.runtime.process.pinning import place_of

__all__ = ["Calibration", "EntryCoverage", "calibrate", "own_core"]

UNMATCHED_LIMIT = 0.01
"""Part of the executions of an entry that may fit no path of it: if more do not, other source was run."""
FOREIGN_CPU_LIMIT = 0.02
"""Part of the machine that others may use during a run, as in a round that counts."""
FEW_ROUNDS = 6
"""Of the test bed's points, a quarter were within 5 % from fewer hot rounds, two thirds from more."""
WELL_KNOWN = 0.01
"""Relative 95 % half-width of an execution time up to which nothing is said."""
GOES_ON = frozenset({"call", "query", "respond", "think"})
"""Operations behind which a flow goes on without a wait that other requests use."""
NAMED = 3
"""Endpoints a warning names; the rest is a number."""


class Host(Protocol):
    """What calibration wants of the profile of the machine."""

    def processor(self, name: str) -> Processor:
        """Return the machine as a processor of the model."""

    def to_json(self) -> dict[str, Any]:
        """Return what the model keeps of the profile."""


@dataclass(frozen=True, slots=True)
class EntryCoverage:
    """How much of one endpoint the log saw; bodies of choices count as paths."""

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
        uncovered: Paths and bodies of choices no execution took, as readable texts.
        framework: Framework processor time per request: role, then service.
        one_user: What one user's figures are in the log and in the model.
    """

    model: Model
    coverage: tuple[EntryCoverage, ...]
    warnings: tuple[str, ...]
    uncovered: tuple[str, ...]
    framework: Mapping[str, Mapping[str, float]]
    one_user: OfOneUser = field(default_factory=OfOneUser)

    @property
    def paths(self) -> int:
        """Paths in the source."""
        return sum(c.paths for c in self.coverage)

    @property
    def observed(self) -> int:
        """Paths the log saw."""
        return sum(c.observed for c in self.coverage)


@dataclass(frozen=True, slots=True)
class _CallSite:
    """What a call site showed of its callee.

    Attributes:
        exchange: Time under way minus the time the callee had the request.
        receive: Processor time of reading the reply.
    """

    exchange: Sample
    receive: Sample


@dataclass(slots=True)
class _Evidence:
    """What calibration knows while it fills the model in.

    Attributes:
        sharing: Replicas of the services whose workers share a core: threads, event loops.
        loops: Those of them with an event loop: work is interrupted by nothing but an ``await``.
        pinned: Those of them that stay on one core of the machine, with their position in the project.
        matched: Executions of one user, by label of their entry.
        frequencies: Executions that tell how often its paths are taken.
        after_think: Per think step of clients, the activity behind it.
        costs: What sleep explains of the times; None = nothing.
        alone: Requests that had the event loop of their replica to themselves, by service.
    """

    run: Run
    observed: Observed
    work: FrameworkWork
    components: Components
    sharing: Mapping[str, int]
    loops: frozenset[str]
    pinned: Mapping[str, int]
    terms: Terms = field(default_factory=Terms)
    warnings: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    coverage: list[EntryCoverage] = field(default_factory=list)
    queries: dict[QueryRef, CommunicationSamples] = field(default_factory=dict)
    callers: dict[QueryRef, list[Key]] = field(default_factory=dict)
    matched: dict[str, Matched] = field(default_factory=dict)
    frequencies: dict[str, Matched] = field(default_factory=dict)
    sites: dict[str, list[_CallSite]] = field(default_factory=dict)
    attempts: dict[Key, Distribution] = field(default_factory=dict)
    links: Links = field(default_factory=Links)
    overlaps: dict[tuple[str, int, bytes], float] = field(default_factory=dict)
    after_think: dict[Key, str] = field(default_factory=dict)
    costs: SleepCosts | None = None
    alone: dict[str, frozenset[int]] = field(default_factory=dict)

    @property
    def phase(self) -> FloatArray:
        """Weights of the windows a number that depends on the load is taken from."""
        hot = self.observed.phase("hot")
        return hot if hot.any() else self.steady

    @property
    def steady(self) -> FloatArray:
        """Weights of the windows for all other numbers."""
        return self.observed.single

    def value(self, kind: Kind, key: Key) -> float | None:
        """Return the mean of a time, in seconds: without sleep if that explains it, else of hot rounds."""
        base = None if self.costs is None else self.costs.base(kind, key)
        if base is not None:
            return base
        term = self.terms.times.get((kind, key))
        return None if term is None else term.mean(self.phase, self.steady)

    def front(self, service: str, weights: FloatArray) -> float:
        return self.work.front(service, weights) if self.components.framework else 0.0

    def worker(self, service: str, weights: FloatArray) -> float:
        return self.work.worker(service, weights) if self.components.framework else 0.0

    def slowness(self, sample: Sample, weights: FloatArray) -> float:
        """Return how much longer than its demand work took while a sample was seen.

        Demands are those of a busy machine at its mean speed; what an interval of the log holds of them took
        as long as the machine was slow then.
        """
        return sample.mean_of(self.observed.slowness, weights) or 1.0

    def known(self, service: str, site: _CallSite, weights: FloatArray) -> float:
        """Return the seconds between ``contactDest`` and ``commFinish`` that other numbers stand for."""
        receive = site.receive.mean(weights) if len(site.receive) else 0.0
        inside = self.front(service, weights) + self.worker(service, weights) + (receive or 0.0)
        slowness = self.slowness(site.exchange, weights)
        return inside * slowness - self.work.waiting(service, weights)

    def overlap(self, service: str, weights: FloatArray) -> float:
        """Return the seconds of framework work per request that the caller does not wait for.

        Fronts and workers clear up after a reply has left. That work is part of what they use, but not of
        the time a call takes; it shows where their work is longer than the time there was for it.
        """
        key = service, len(self.sites.get(service, ())), weights.tobytes()
        if key not in self.overlaps:
            self.overlaps[key] = self._overlap(service, weights)
        return self.overlaps[key]

    def _overlap(self, service: str, weights: FloatArray) -> float:
        total = count = 0.0
        for site in self.sites.get(service, ()):
            elapsed, number = site.exchange.mean(weights), site.exchange.count(weights)
            if elapsed is not None:
                more = self.known(service, site, weights) - elapsed
                total += number * more / self.slowness(site.exchange, weights)
                count += number
        return min(max(0.0, total / count), self.front(service, weights) / 2) if count else 0.0

    def front_on_path(self, service: str, weights: FloatArray) -> float:
        """Return the seconds of the front per request that the caller waits for."""
        return self.front(service, weights) - self.overlap(service, weights)

    def timed(self, service: str, matches: Sequence[Match]) -> frozenset[int] | None:
        """Return the requests that tell delays of a path, and shapes of its demands; None = all."""
        if service not in self.loops:
            return None
        if service not in self.alone:
            self.alone[service] = alone_on_loop(self.observed.by_request.values(), service)
        requests = [one.execution.request for one in matches]
        # Several users overlap in any case: what bursts tell of a loop is looked at by itself.
        single = [one.execution.request for one in matches if self.of_one_user(one.execution)]
        found = timed(single, self.alone[service])
        return None if found is None else found | set(requests).difference(single)

    def of_one_user(self, execution: Execution) -> bool:
        """Return whether it belongs to a round of a single user, not to a burst."""
        return self.observed.windows[self.observed.window_of[execution.request]].phase != "burst"

    def client(self, service: str, weights: FloatArray) -> float:
        return self.work.client(service, weights) if self.components.generator else 0.0


def calibrate(
    run: Run,
    application: Application,
    *,
    name: str,
    client: str | None = None,
    partial: bool = False,
    host: Host | None = None,
    placement: Placement | None = None,
    components: Components = ALL,
    bootstrap: int = REPLICATES,
    draw: Callable[[Observed], Sequence[FloatArray]] | None = None,
) -> Calibration:
    """Calibrate the model of an application from one run.

    Args:
        run: An exploratory run.
        application: The application as its source is now.
        name: Name of the model.
        client: The client class that becomes the reference task; None = the one that was run.
        partial: Leave endpoints whose source changed since the run uncalibrated instead of refusing.
        host: Profile of the machine of the run; None = cores that are shared ideally.
        placement: What is deployed elsewhere than on that machine.
        components: What to leave out, to see what it is good for.
        bootstrap: Number of replicates that say how sure the numbers are; 0 = none.
        draw: Draws the windows of the replicates in another way: returns one array of weights for each, as
            ``bootstrap.emphasized`` does to tell what the windows of each phase leave open. The model is not
            compared with the log of one user then, for a simulation tells nothing of what windows leave open.

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
            hint="'mup explore --changed' measures these again; --partial leaves them uncalibrated",
        )
    machine = host.processor(HOST) if host is not None and components.scheduler else None
    loops = frozenset(s.name for s in application.services if s.runtime == "async")
    observed = observe(run, scaled=components.speed, host=machine, loops=loops)
    if not observed.executions:
        raise LogError(
            "no complete execution inside the observed time", where=str(run.path), hint="explore for longer"
        )
    evidence = _Evidence(
        run=run,
        observed=observed,
        work=framework_work(observed),
        components=components,
        sharing={s.name: s.replicas for s in application.services if s.runtime != "process"},
        loops=loops,
        pinned={
            s.name: position
            for position, s in enumerate(application.services)
            if s.runtime != "process" and s.pinned
        },
    )
    by_endpoint: dict[str, list[Execution]] = {}
    left_out: dict[Path, set[str]] = {}
    mixed: set[Path] = set()
    for execution in observed.executions:
        part = observed.parts[observed.window_of[execution.request]]
        if execution.endpoint in part.outdated:
            # What an older version of an endpoint did counts as load of the machine, and as nothing else.
            left_out.setdefault(part.path, set()).add(execution.endpoint)
            if execution.role == "client":
                mixed.add(part.path)
        else:
            by_endpoint.setdefault(execution.endpoint, []).append(execution)
    _outdated_warnings(evidence, left_out, mixed)
    whole = frozenset(e.label for e in application.endpoints() if e.whole)
    model, plans = translate_with_plan(
        with_wholes(application, by_endpoint), name=name, client=client or run.info.client or None
    )
    for task in model.tasks:
        if task.role in ("service", "reference"):
            _read_task(evidence, task, plans, stale, by_endpoint, whole)
    for task in model.tasks:
        if task.role == "database":
            _read_database(evidence, task)
    same_in_all_phases(evidence.terms, observed.phase("hot"), observed.phase("cold"))
    in_step = components.setup is None and users_in_step(model, observed)
    by_sleep = (components.bursts or in_step) if components.setup is None else components.setup
    if components.load_dependence and by_sleep:
        evidence.costs = sleep_costs(
            evidence.terms,
            observed,
            evidence.links,
            model,
            evidence.work,
            sharing=evidence.sharing,
            loops=evidence.loops,
            after_think=evidence.after_think,
            confirmed=components.setup is None and not in_step,
        )
    calibrated = replace(
        model,
        processors=_processors(evidence, machine, placement),
        tasks=tuple(_filled(evidence, task) for task in model.tasks),
    )
    _general_warnings(evidence)
    weights = drawn(observed, count=bootstrap) if draw is None else tuple(draw(observed))
    draws = replicates(evidence.terms, observed, calibrated, weights, evidence.costs)
    reduced = _without_waiting(evidence, calibrated)
    draws = tuple(reduced.replicate(draw, calibrated) for draw in draws)
    found = variants(evidence.matched) if components.variants else {}
    together = Together(
        evidence.terms,
        observed,
        evidence.phase,
        evidence.steady,
        reduced.taken,
        evidence.costs,
        whole=whole,
        alone=evidence.alone,
        cpu_clock=components.cpu_clock,
        outliers=components.outliers,
        distributions=components.distributions,
    )
    calibrated = shared_by_variants(split(reduced.model, plans, found), found)
    draws = with_variants(draws, found, reduced.model, calibrated)
    calibrated = with_meaningful_digits(with_own_times(calibrated, plans, found, together))
    alone = compared(calibrated, observed, weights, draws, host=machine) if draw is None else OfOneUser()
    evidence.warnings.extend(warnings_of(alone, observed, run.info))
    one_user = alone.uncertainty()
    known = Uncertainty(replicates=draws, batches=batches(observed) if draws else None, one_user=one_user)
    calibrated = replace(
        calibrated,
        uncertainty=known if draws or one_user is not None else None,
        provenance={**_provenance(evidence, stale, host, alone), **model.provenance},
    )
    return Calibration(
        model=placed(calibrated, placement) if placement is not None else calibrated,
        coverage=tuple(evidence.coverage),
        warnings=tuple(evidence.warnings),
        uncovered=tuple(evidence.uncovered),
        framework=evidence.work.summary(evidence.phase),
        one_user=alone,
    )


def _hot_share(observed: Observed) -> float:
    """Return the share of a single user's cycles that had no think time."""
    weights, hot = observed.single, observed.phase("hot")
    cycles = Counter(observed.window_of[e.request] for e in observed.executions if e.role == "client")
    total = sum(count * float(weights[window]) for window, count in cycles.items())
    return sum(count * float(hot[window]) for window, count in cycles.items()) / total if total else 0.0


def _without_waiting(evidence: _Evidence, model: Model) -> WithoutWaiting:
    """Take what was waiting for cores off the delays."""
    if not (evidence.components.host and evidence.components.contention):
        return WithoutWaiting(model, {}, None)
    found = without_waiting(model, evidence.links, hot=_hot_share(evidence.observed))
    if found.problem:
        evidence.warnings.append(
            f"waiting for cores cannot be told from other delays, and is in the model twice ({found.problem})"
        )
    return found


# From the log to terms.


def _read_task(
    evidence: _Evidence,
    task: Task,
    plans: Mapping[tuple[str, str], Sequence[PathPlan]],
    stale: Mapping[str, str],
    by_endpoint: Mapping[str, Sequence[Execution]],
    whole: Collection[str],
) -> None:
    for entry in task.entries:
        label = entry_label(task.name, entry.name)
        if label in stale:
            evidence.warnings.append(f"{label} {stale[label]}: left uncalibrated")
            continue
        mine = by_endpoint.get(label, ())
        _read_entry(evidence, task, entry, plans[task.name, entry.name], mine, whole=label in whole)
    if ("front", task.name) in evidence.work.used and evidence.components.framework:
        # Both halves together; the model has them apart.
        front = Term(computed=partial(evidence.front_on_path, task.name))
        evidence.terms.put((task.name, "", "front"), front, None)


def _read_entry(
    evidence: _Evidence,
    task: Task,
    entry: Entry,
    plans: Sequence[PathPlan],
    mine: Sequence[Execution],
    *,
    whole: bool,
) -> None:
    label = entry_label(task.name, entry.name)
    failed = [e for e in mine if e.failed]
    if failed:
        evidence.warnings.append(f"{label}: {len(failed)} of {len(mine)} executions failed and are left out")
    usable = [e for e in mine if not e.failed]
    found = match_whole(plans[0], usable) if whole else match(plans, usable)
    if len(found.unmatched) > UNMATCHED_LIMIT * len(usable):
        raise LogError(
            f"{len(found.unmatched)} of {len(usable)} executions of {label} fit no path of its source:"
            f" {found.unmatched[0].reason}",
            where=str(evidence.run.path),
            hint="the log belongs to other code; run 'mup explore' again",
        )
    if found.unmatched:
        evidence.warnings.append(
            f"{label}: {len(found.unmatched)} executions fit no path and are left out"
            f" ({found.unmatched[0].reason})"
        )
    # Which paths are taken one user tells.
    single = found.only(evidence.of_one_user)
    _note_coverage(evidence, label, single)
    if not single.matched:
        return
    evidence.matched[label] = single
    several = found.only(lambda execution: not evidence.of_one_user(execution))
    pooled = evidence.components.bursts and alike(single, several)
    evidence.frequencies[label] = found if pooled else single
    if clearly_unlike(single, several):
        evidence.warnings.append(
            f"{label}: several users at once take its paths more or less often than one user; the model has"
            " the frequencies of one user"
        )
    for plan, matches, known in zip(plans, found.taken, single.taken, strict=True):
        if known:
            sample = sample_whole if whole else sample_path
            alone = evidence.timed(task.name, matches)
            cpu_clock = evidence.components.cpu_clock
            samples = sample(matches, plan, evidence.observed, cpu_clock=cpu_clock, timed=alone)
            if alone is not None:
                owner = task.name, plan.entry
                segments = [name for _, part in plan.parts() for name in part.segments]
                evidence.links.undisturbed.update(ActivityRef(*owner, name) for name in segments)
            _read_path(evidence, task, plan, samples, pooled=pooled)
            evidence.warnings += stopped_before(plan, matches)
    if len(plans) > 1:
        evidence.terms.choices[task.name, entry.name, entry.start] = _choice(
            evidence, found.taken, pooled=pooled
        )


def _note_coverage(evidence: _Evidence, label: str, found: Matched) -> None:
    """Note which paths, and which bodies of choices, no execution took."""
    paths = observed = 0
    for plan, matches in zip(found.plans, found.taken, strict=True):
        paths += 1
        observed += bool(matches)
        if not matches:
            evidence.uncovered.append(f"{label}: {plan.describe()}")
        counts = body_counts(matches, plan)
        for place, part in plan.parts():
            for index, choice in part.choices.items():
                paths += len(choice.bodies)
                observed += sum(1 for count in counts[place, index] if count)
                # A path that was not reached is named by what it is part of.
                reached = any(counts[place, index])
                for body, count in zip(choice.bodies, counts[place, index], strict=True):
                    if reached and not count:
                        line = part.operations[index].site.line
                        evidence.uncovered.append(f"{label}: choice ({line}) [{body.describe()}]")
    evidence.coverage.append(EntryCoverage(label, paths, observed, found.matched))


def _choice(evidence: _Evidence, taken: Sequence[Sequence[Match]], *, pooled: bool) -> Choice:
    counts = []
    for matches in taken:
        count = Sample()
        for one in matches:
            count.add(1.0, evidence.observed.window_of[one.execution.request])
        counts.append(count)
    return Choice(tuple(counts), pooled)


def _leave_out_stalls(evidence: _Evidence, task: Task, plan: PathPlan, samples: PathSamples) -> None:
    """Forget delays that were the machine's and not the service's, and say so."""
    for (place, index), sample in samples.delay.items():
        found = screen(sample.values, sample.windows)
        if found.count:
            sample.keep(found.keep)
            segment = dict(plan.parts())[place].segments[index]
            evidence.warnings.append(f"{entry_label(task.name, plan.entry)} {segment}: {found.reason}")


def _read_path(
    evidence: _Evidence, task: Task, plan: PathPlan, samples: PathSamples, *, pooled: bool
) -> None:
    """Make terms of the samples of one path, and remember those of Net and databases."""
    parts = dict(plan.parts())
    if evidence.components.outliers:
        _leave_out_stalls(evidence, task, plan, samples)
    for (place, index), sample in samples.demand.items():
        name = parts[place].segments[index]
        like = samples.shape.get((place, index))
        demand = of_sample(sample, like=like)
        if demand is not None and _shares_loop(
            evidence, task, parts[place], index, first=(place, index) == ((), 0)
        ):
            demand = replace(demand, shared=True)
        if not task.is_reference:
            if (place, index) == ((), 0):
                demand = Term(sample, plus=partial(evidence.worker, task.name), like=like)
            elif index and parts[place].operations[index - 1].op == "respond":
                demand = Term(sample, plus=partial(evidence.overlap, task.name), like=like)
        delay = of_sample(samples.delay[place, index])
        evidence.terms.put((task.name, plan.entry, name), demand, delay)
        _link_segment(evidence, task, parts[place], index, first=(place, index) == ((), 0))
    for (place, index), found in samples.communication.items():
        _read_communication(evidence, task, parts[place], index, found)
    for (place, index), counts in samples.counts.items():
        loop = parts[place].loops[index]
        key = (task.name, plan.entry, loop.choice or loop.bodies[0].segments[0])
        evidence.terms.repetitions[key] = Repetition(counts, pooled)
    for (place, index), taken in samples.bodies.items():
        inside = parts[place].inside[index]
        if inside.choice:
            several = tuple(taken.get(number, Sample()) for number in range(len(inside.bodies)))
            evidence.terms.choices[task.name, plan.entry, inside.choice] = Choice(several, pooled)
    if task.is_reference:
        for place, part in parts.items():
            _read_think(evidence, part, place, samples)


def _shares_loop(evidence: _Evidence, task: Task, part: PathPlan, index: int, *, first: bool) -> bool:
    """Return whether the thread of a segment may have worked for other requests since it began to wait.

    A segment behind a wait holds what its thread did since that wait began.
    """
    if not task.is_reference and task.name not in evidence.loops:
        return False
    return not first and (index == 0 or part.operations[index - 1].op not in GOES_ON)


def _link_segment(evidence: _Evidence, task: Task, plan: PathPlan, index: int, *, first: bool) -> None:
    """Note where a segment's waiting for a core was logged if not in its own delay."""
    owner = EntryRef(task.name, plan.entry)
    segment = ActivityRef(*owner, plan.segments[index])
    if first and not task.is_reference:
        evidence.links.first[owner].append(segment)
        return
    before = plan.operations[index - 1] if index else None
    if before is None or before.op != "get" or before.of is None:
        return
    if before.of in plan.exchange:
        evidence.links.elsewhere[segment].append(_exchange(plan.exchange[before.of]))
    elif before.of in plan.communication:
        evidence.links.elsewhere[segment].append(ActivityRef(*owner, plan.communication[before.of]))


def _exchange(entry: str) -> ActivityRef:
    return ActivityRef(NETWORK, entry, entry)


def _read_communication(
    evidence: _Evidence, task: Task, plan: PathPlan, index: int, found: CommunicationSamples
) -> None:
    operation = plan.operations[index]
    registry = (task.name, plan.entry, plan.registry[index])
    communication = (task.name, plan.entry, plan.communication[index])
    evidence.terms.put(registry, of_sample(found.registry_demand), of_sample(found.registry_delay))
    if operation.op == "query":
        _extend(evidence.queries.setdefault(operation.queried, CommunicationSamples()), found)
        evidence.callers.setdefault(operation.queried, []).append(communication)
        evidence.terms.put(communication, of_sample(found.driver_demand), nothing())
        return
    evidence.terms.put(communication, nothing(), nothing())
    if found.waiting.inside(evidence.steady).any():
        _read_attempts(evidence, plan, index, communication, found)
    _read_exchange(evidence, task, plan, index, found)


def _read_attempts(
    evidence: _Evidence, plan: PathPlan, index: int, communication: Key, found: CommunicationSamples
) -> None:
    """Note that a call was made again now and then: the callee does its work again, and its caller waits."""
    waits = found.waiting.inside(evidence.steady)
    counts = count_distribution([round(number) for number in found.attempts.inside(evidence.steady)])
    evidence.attempts[communication] = counts
    evidence.terms.put(communication, nothing(), of_sample(found.waiting, phased=False))
    operation = plan.operations[index]
    again = int((waits > 0).sum())
    evidence.warnings.append(
        f"{entry_label(plan.task, plan.entry)}: {again} of {len(waits)} calls of {operation.target}"
        f" (line {operation.site.line}) were made again; the model has {counts.mean:.4g} executions per call,"
        " at any load"
    )


def _extend(total: CommunicationSamples, more: CommunicationSamples) -> None:
    for name in ("exchange", "driver_demand"):
        mine, theirs = getattr(total, name), getattr(more, name)
        for value, window, request in zip(theirs.values, theirs.windows, theirs.requests, strict=True):
            mine.add(value, window, request)


def _read_exchange(
    evidence: _Evidence, task: Task, plan: PathPlan, index: int, found: CommunicationSamples
) -> None:
    """Note the network time of a call: what no work explains of the time it was under way."""
    operation = plan.operations[index]
    entry = plan.exchange[index]
    key = (NETWORK, entry, entry)
    called = operation.called.service
    evidence.links.callers[EntryRef(*operation.called)].append(_exchange(entry))
    if not found.exchange.count(evidence.steady):
        # Bursts may tell it: there, replies come in another order.
        waited = any(o.op == "get" and o.of == index for o in plan.operations)
        reason = "its replies were always picked up late" if waited else "its reply is not waited for"
        evidence.warnings.append(
            f"{entry_label(task.name, plan.entry)}: no usable network time of the call to {operation.target}"
            f" (line {operation.site.line}); {reason}. Taken as 0"
        )
        evidence.terms.put(key, nothing(), nothing())
        return

    site = _CallSite(found.exchange, found.receive)
    evidence.sites.setdefault(called, []).append(site)

    def known(weights: FloatArray) -> float:
        overlap = evidence.overlap(called, weights) * evidence.slowness(found.exchange, weights)
        return evidence.known(called, site, weights) - overlap

    def mean(weights: FloatArray) -> float | None:
        elapsed = found.exchange.mean(weights)
        return None if elapsed is None else max(0.0, elapsed - known(weights))

    evidence.terms.put(key, nothing(), Term(found.exchange, mean, shift=known))


def _read_think(evidence: _Evidence, plan: PathPlan, place: Place, samples: PathSamples) -> None:
    """Note think times, which the source need not know, and the work of the load generator.

    What it does outside its cycles is charged to the first think step of a path.
    """
    for position, (index, name) in enumerate(plan.think.items()):
        charged = place == () and position == 0
        evidence.after_think[plan.task, plan.entry, name] = plan.segments[index + 1]
        demand = Term(computed=partial(evidence.client, plan.task)) if charged else nothing()
        seen = samples.think.get((place, index))
        # What the source says is not measured, and not in doubt.
        in_source = plan.operations[index].think is not None
        delay = None if seen is None or in_source else of_sample(seen, phased=False)
        evidence.terms.put((plan.task, plan.entry, name), demand, delay)


def _read_database(evidence: _Evidence, task: Task) -> None:
    """Split query times into work of the server on the host and everything else.

    The embedded database works under one lock, hence one thread; the rest of its query time (loopback,
    wake-ups) is spent outside that lock and belongs to the caller's branch.
    """
    samples = {entry.name: evidence.queries.get(QueryRef(task.name, entry.name)) for entry in task.entries}
    known = {name: found.exchange for name, found in samples.items() if found and len(found.exchange)}
    for entry in task.entries:
        found = samples[entry.name]
        if found is None or not len(found.exchange):
            continue
        key = (task.name, entry.name, entry.activities[0].name)
        work = _query_work(evidence, task.name, entry.name, known, found.driver_demand)
        rest = _query_rest(evidence, found, work)
        query = ActivityRef(*key)
        alone = _one_server(evidence, task.name)
        for caller in evidence.callers[QueryRef(task.name, entry.name)]:
            waits = ActivityRef(*caller)
            if alone:
                evidence.terms.put(caller, None, rest)
                evidence.links.elsewhere[query].append(waits)
                evidence.links.queued[waits] = query.owner
            else:
                evidence.links.elsewhere[waits].append(query)
        evidence.terms.put(key, work, nothing() if alone else rest)


def _query_work(
    evidence: _Evidence, database: str, query: str, samples: Mapping[str, Sample], drivers: Sample
) -> Term:
    """Return the server's processor time of a query.

    Only its total over all queries is known; longer ones get a larger share of it.
    """

    def mean(weights: FloatArray) -> float | None:
        own = samples[query].mean(weights)
        if own is None or not evidence.components.database or not _colocated(evidence, database):
            return None if own is None else 0.0
        count = sum(s.count(weights) for s in samples.values())
        time = sum((s.mean(weights) or 0.0) * s.count(weights) for s in samples.values())
        share = evidence.work.database(database, weights) * count * own / time if time > 0 else 0.0
        own /= evidence.slowness(samples[query], weights)
        return min(share, max(0.0, own - (drivers.mean(weights) or 0.0)))

    return Term(computed=mean)


def _query_rest(evidence: _Evidence, found: CommunicationSamples, work: Term) -> Term:
    def known(weights: FloatArray) -> float:
        inside = (found.driver_demand.mean(weights) or 0.0) + (work.mean(weights, weights) or 0.0)
        return inside * evidence.slowness(found.exchange, weights)

    def mean(weights: FloatArray) -> float | None:
        elapsed = found.exchange.mean(weights)
        return None if elapsed is None else max(0.0, elapsed - known(weights))

    return Term(found.exchange, mean, shift=known)


def _colocated(evidence: _Evidence, database: str) -> bool:
    use = evidence.run.info.databases.get(database)
    return use is not None and use.colocated


def _one_server(evidence: _Evidence, database: str) -> bool:
    use = evidence.run.info.databases.get(database)
    has_work = evidence.work.database(database, evidence.steady) > 0
    return use is not None and use.embedded and use.colocated and has_work and evidence.components.database


# From terms to the model.


def _processors(
    evidence: _Evidence, machine: Processor | None, placement: Placement | None
) -> tuple[Processor, ...]:
    if not evidence.components.host:
        return ()
    host = machine or Processor(name=HOST, cores=evidence.run.info.cores, discipline="ps")
    if evidence.components.background:
        elsewhere = () if placement is None else placement.tasks
        host = replace(host, background=background(evidence.observed, host, elsewhere))
    if not evidence.sharing:
        return (host,)
    if host.discipline == "cores":
        parts = (
            Processor(
                name=own_core(name),
                cores=replicas,
                discipline=_turns(evidence, name),
                parent=HOST,
                core=evidence.pinned.get(name),
            )
            for name, replicas in evidence.sharing.items()
        )
        return (host, *parts)
    neighbours = _neighbours(evidence, host)
    own = (
        Processor(
            name=own_core(name),
            cores=replicas,
            discipline=_turns(evidence, name),
            parent=neighbours.get(name, HOST),
        )
        for name, replicas in evidence.sharing.items()
    )
    cores = (Processor(name=name, parent=HOST) for name in sorted(set(neighbours.values())))
    return (host, *cores, *own)


def _turns(evidence: _Evidence, service: str) -> Literal["ps", "fcfs"]:
    """Return how the work of a replica's workers shares its core: threads take turns, coroutines do not."""
    return "fcfs" if service in evidence.loops else "ps"


def _neighbours(evidence: _Evidence, host: Processor) -> dict[str, str]:
    """Return the core, by name, of the services that are pinned to one beside others, on a ``ps`` host.

    Services with several replicas are on several cores, which have no numbers there.
    """
    places: dict[int, list[str]] = {}
    for name, position in sorted(evidence.pinned.items()):
        if evidence.sharing[name] == 1:
            places.setdefault(place_of(position, 0, int(host.cores)), []).append(name)
    return {
        name: f"{HOST}.core{place}" for place, names in places.items() if len(names) > 1 for name in names
    }


def own_core(service: str) -> str:
    """Return the name of the processor that stands for the core a replica's threads share."""
    return f"{service}.core"


def _filled(evidence: _Evidence, task: Task) -> Task:
    entries = tuple(_filled_entry(evidence, task, entry) for entry in task.entries)
    front = None
    seconds = evidence.value("demand", (task.name, "", "front"))
    if seconds is not None:
        half = Constant(seconds / 2)
        handed_out = task.admission == "random" or evidence.work.handed_out(task.name)
        front = Front(request=half, reply=half, holds=handed_out)
    on_host = evidence.components.host and task.role in ("service", "reference", "database")
    if task.is_reference and not evidence.components.generator:
        on_host = False
    if task.role == "database":
        on_host = on_host and evidence.components.database and _colocated(evidence, task.name)
    filled = replace(
        task,
        entries=entries,
        front=front,
        processor=None if not on_host else own_core(task.name) if task.name in evidence.sharing else HOST,
        threads=1 if task.role == "database" and _one_server(evidence, task.name) else task.threads,
    )
    if evidence.components.load_dependence:
        apart = task.role == "service" and task.name not in evidence.sharing
        costs = evidence.costs
        if costs is not None and costs.explained(task.name):
            filled = replace(filled, setup=costs.setup(filled, by_thread=apart))
        moved = () if costs is None else costs.keys()
        found = load_dependence(
            evidence.terms,
            evidence.observed,
            evidence.work,
            filled,
            by_thread=apart,
            bursts=evidence.components.bursts,
            without=moved,
        )
        filled = replace(filled, load_dependence=found)
    return filled


def _filled_entry(evidence: _Evidence, task: Task, entry: Entry) -> Entry:
    found = evidence.frequencies.get(entry_label(task.name, entry.name))
    if found is not None:
        entry = with_frequencies(entry, found.plans, found.taken)
    activities = tuple(
        _filled_activity(evidence, (task.name, entry.name, a.name), a) for a in entry.activities
    )
    return replace(entry, activities=activities)


def _filled_activity(evidence: _Evidence, key: Key, activity: Activity) -> Activity:
    demand = _time(evidence, "demand", key)
    delay = _time(evidence, "delay", key)
    if activity.kind == "think" and activity.delay is not None and demand is not None:
        # The source says how long clients think; their timers add a little.
        delay = shifted(activity.delay, evidence.run.info.think_lateness)
    counts = evidence.attempts.get(key)
    calls = activity.calls
    if counts is not None:
        calls = tuple(call if call.task == NETWORK else replace(call, count=counts) for call in calls)
    return replace(
        activity,
        demand=activity.demand if demand is None else demand,
        delay=activity.delay if delay is None else delay,
        calls=calls,
    )


def _time(evidence: _Evidence, kind: Kind, key: Key) -> Distribution | None:
    seconds = evidence.value(kind, key)
    if seconds is None:
        return None
    term = evidence.terms.times[kind, key]
    return shape_of(term, evidence.phase, evidence.steady, seconds, fitted=evidence.components.distributions)


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


def _outdated_warnings(
    evidence: _Evidence, left_out: Mapping[Path, Collection[str]], mixed: Collection[Path]
) -> None:
    """Say which parts of a run are older than the source, and which had another client (``mixed``)."""
    for directory in evidence.run.directories:
        inside = [labels for path, labels in left_out.items() if directory in (path, *path.parents)]
        labels = sorted({label for some in inside for label in some})
        if labels:
            evidence.warnings.append(
                f"{directory.name} is older than the source of {', '.join(labels)}:"
                " what it shows of that is left out"
            )
        if any(directory in (path, *path.parents) for path in mixed):
            evidence.warnings.append(
                f"the client of {directory.name} was another one: how often paths are taken is a mixture"
            )


def _general_warnings(evidence: _Evidence) -> None:
    run = evidence.run
    evidence.warnings.extend(
        f"{service}: a process died and was replaced during the run; its framework time is left out"
        for service in run.info.replaced
    )
    for path in run.truncated:
        evidence.warnings.append(f"{path.name} is cut off: its last records are missing")
    foreign = run.info.foreign_cpu
    if foreign is not None and foreign > FOREIGN_CPU_LIMIT:
        evidence.warnings.append(
            f"other programs used {foreign:.1%} of the machine during the run; its times may be too long"
        )
    hot = sum(window.phase == "hot" for window in run.info.windows)
    if run.info.void and 0 < hot < FEW_ROUNDS:
        evidence.warnings.append(
            f"only {hot} usable round{'s' * (hot != 1)} without think times ({len(run.info.void)} discarded"
            " as disturbed): so few may not be typical; continue with 'mup"
            " explore --resume RUN' when the machine is quiet"
        )
    if not run.info.complete:
        evidence.warnings.append("the run did not end by itself; 'mup explore --resume' continues it")
    _width_warnings(evidence)


def _width_warnings(evidence: _Evidence) -> None:
    """Say which execution times are not known well, in two lines at most: there may be hundreds."""
    unknown, wide = [], {}
    for label, width in sorted(evidence.run.info.widths.items()):
        if width.half_width is None or width.mean <= 0:
            unknown.append(f"{label} ({width.executions} executions)")
        elif width.half_width > WELL_KNOWN * width.mean:
            wide[label] = width.half_width / width.mean
    if unknown:
        evidence.warnings.append(
            f"too few rounds to tell how well the execution time is known: {_first(unknown)};"
            " explore for longer"
        )
    if wide:
        widest = [f"{label} +-{wide[label]:.1%}" for label in sorted(wide, key=lambda label: -wide[label])]
        evidence.warnings.append(
            f"execution times known to worse than +-{WELL_KNOWN:.0%}:"
            f" {_first(widest)}; explore for longer to narrow them"
        )


def _first(names: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def _provenance(
    evidence: _Evidence, stale: Mapping[str, str], host: Host | None, alone: OfOneUser
) -> dict[str, Any]:
    info = evidence.run.info
    return {
        "run": evidence.run.path.name,
        "runs": [path.name for path in evidence.run.directories],
        "created": info.created,
        "mup": info.mup,
        "python": info.python,
        "hostname": info.hostname,
        "machine": info.machine,
        "cores": info.cores,
        "client": info.client,
        "observed_seconds": round(info.observed_seconds, 3),
        "phases": {
            name: round(evidence.observed.seconds(evidence.observed.phase(name)), 3)
            for name in ("hot", "cold", "burst")
            if evidence.observed.phase(name).any()
        },
        "speed": evidence.observed.speed,
        "monitored_speed": evidence.observed.monitored,
        "response_time": info.response_time,
        "one_user": [c.to_json() for c in alone.figures if not c.place.callee or c.differs],
        "stop": info.stop,
        "foreign_cpu": info.foreign_cpu,
        "fingerprints": dict(info.fingerprints),
        "host": None if host is None else host.to_json(),
        "left_out": evidence.components.left_out,
        "coverage": {
            c.label: {"paths": c.paths, "observed": c.observed, "executions": c.executions}
            for c in evidence.coverage
        },
        "uncovered": list(evidence.uncovered),
        "stale": dict(stale),
        "framework_cpu": evidence.work.summary(evidence.phase),
        "warnings": list(evidence.warnings),
    }
