"""Times of the variants of an entry whose callers make a difference in time.

Calibration first takes all executions of an endpoint together, for everything that is common to
endpoints (exchanges, waiting for cores, load dependence). Here each variant gets the times of its own
executions instead, with the same corrections: framework work on top, waiting for cores off, and load
dependence in proportion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from analyzer.calibration.alone import timed
from analyzer.calibration.callsites import Variant, variant_name
from analyzer.calibration.matching import Match
from analyzer.calibration.observed import FloatArray, Observed, Sample
from analyzer.calibration.outliers import screen
from analyzer.calibration.samples import sample_path
from analyzer.calibration.sleep_costs import SleepCosts
from analyzer.calibration.terms import Key, Kind, Terms, shape_of
from analyzer.calibration.whole import sample_whole
from analyzer.static.translate import PathPlan
from mup.lqn import Activity, ActivityRef, Distribution, Entry, LoadDependence, Model, Task, entry_label
from mup.lqn.refs import WorkNames

__all__ = ["Together", "with_own_times"]


@dataclass(frozen=True, slots=True)
class Together:
    """What calibration knows of all executions together.

    Attributes:
        terms: Of the model before it was split.
        observed: The run.
        phase, steady: Weights of the windows, as for `Term.mean`.
        taken: Seconds that were taken off delays because they were waiting for cores, by activity
            (``A/epA/:comp_8``).
        costs: What sleep explains of the times; a variant has the set-up of all together.
        whole: Labels of the endpoints that are measured as a whole.
        alone: Requests that had the event loop of their replica to themselves, by service with such loops.
        cpu_clock, outliers, distributions: As in `Components`.
    """

    terms: Terms
    observed: Observed
    phase: FloatArray
    steady: FloatArray
    taken: Mapping[ActivityRef, float]
    costs: SleepCosts | None = None
    whole: Collection[str] = ()
    alone: Mapping[str, Collection[int]] = field(default_factory=dict)
    cpu_clock: bool = True
    outliers: bool = True
    distributions: bool = True

    def time(self, kind: Kind, key: Key, sample: Sample) -> Distribution | None:
        """Return a time of one variant; None if it is not known any better than that of all together.

        Args:
            kind: Demand or delay.
            key: The activity, of the entry before it was split.
            sample: What executions of the variant showed.
        """
        term = self.terms.times.get((kind, key))
        if term is None or term.sample is None or term.computed is not None or not len(sample):
            return None
        if kind == "delay" and self.outliers:
            sample.keep(screen(sample.values, sample.windows).keep)
        own = replace(term, sample=sample)
        seconds = own.mean(self.phase, self.steady)
        if seconds is None:
            return None
        base = None if self.costs is None else self.costs.base(kind, key)
        if base is not None:
            seconds -= (term.mean(self.phase, self.steady) or 0.0) - base
        if kind == "delay":
            seconds -= self.taken.get(ActivityRef(*key), 0.0)
        return shape_of(own, self.phase, self.steady, max(0.0, seconds), fitted=self.distributions)


def with_own_times(
    model: Model,
    plans: Mapping[tuple[str, str], Sequence[PathPlan]],
    found: Mapping[str, Sequence[Variant]],
    together: Together,
) -> Model:
    """Give the variants whose executions take longer or less long than others the times of their own.

    Args:
        model: With an entry for every variant, which has the times of all together.
        plans: From ``translate_with_plan``.
        found: Variants by label of their entry.
        together: What these times are made of.
    """

    def task(old: Task) -> Task:
        changed: dict[str, Entry] = {}
        for entry in old.entries:
            for variant in found.get(entry_label(old.name, entry.name), ()):
                if variant.own_times:
                    name = variant_name(entry.name, variant.number)
                    own = plans[old.name, entry.name]
                    changed[name] = _with_times(old.entry(name), old.name, own, variant.taken, together)
        if not changed:
            return old
        # Both at once: load dependence is in proportion to what the times were before.
        return replace(
            old,
            entries=tuple(changed.get(entry.name, entry) for entry in old.entries),
            load_dependence=_in_proportion(old, changed),
        )

    return replace(model, tasks=tuple(task(t) for t in model.tasks))


def _with_times(
    entry: Entry,
    task: str,
    plans: Sequence[PathPlan],
    taken: Sequence[Sequence[Match]],
    together: Together,
) -> Entry:
    times: dict[str, dict[Kind, Distribution | None]] = {}
    for plan, matches in zip(plans, taken, strict=True):
        if not matches:
            continue
        parts = dict(plan.parts())
        sample = sample_whole if entry_label(task, plan.entry) in together.whole else sample_path
        alone = together.alone.get(task)
        requests = [one.execution.request for one in matches]
        some = None if alone is None else timed(requests, alone)
        samples = sample(matches, plan, together.observed, cpu_clock=together.cpu_clock, timed=some)
        # With others beside them, all that is known of their delays is in those of all together.
        crowded = alone is not None and some is None and not all(request in alone for request in requests)
        for (place, index), demand in samples.demand.items():
            name = parts[place].segments[index]
            key = (task, plan.entry, name)
            times[name] = {
                "demand": together.time("demand", key, demand),
                "delay": None if crowded else together.time("delay", key, samples.delay[place, index]),
            }

    def changed(activity: Activity) -> Activity:
        own = times.get(activity.name, {})
        return replace(
            activity,
            demand=own.get("demand") or activity.demand,
            delay=own.get("delay") or activity.delay,
        )

    return replace(entry, activities=tuple(changed(a) for a in entry.activities))


def _in_proportion(task: Task, changed: Mapping[str, Entry]) -> LoadDependence | None:
    """Return load dependence that lengthens the times of changed entries by the same share as before."""
    if task.load_dependence is None:
        return None
    keys = WorkNames(task.entries).texts

    def scaled(values: Mapping[str, tuple[float, ...]], kind: Kind) -> dict[str, tuple[float, ...]]:
        result = dict(values)
        for name, entry in changed.items():
            before = {a.name: _mean(a, kind) for a in task.entry(name).activities}
            for activity in entry.activities:
                key = keys[name, activity.name]
                extra = values.get(key)
                if extra is not None and before[activity.name] > 0:
                    factor = _mean(activity, kind) / before[activity.name]
                    result[key] = tuple(factor * seconds for seconds in extra)
        return result

    return replace(
        task.load_dependence,
        demands=scaled(task.load_dependence.demands, "demand"),
        delays=scaled(task.load_dependence.delays, "delay"),
    )


def _mean(activity: Activity, kind: Kind) -> float:
    time = activity.demand if kind == "demand" else activity.delay
    return 0.0 if time is None else time.mean
