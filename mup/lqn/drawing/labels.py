"""Words and numbers that each element shows."""

from __future__ import annotations

import math

from mup.lqn.distributions import Constant, Distribution
from mup.lqn.drawing.weights import own_time
from mup.lqn.model import ONCE, Activity, Call, Entry, Model, Precedence, Processor, Task, entry_label

__all__ = [
    "activity_text",
    "activity_tip",
    "branch_text",
    "call_text",
    "entry_extras",
    "entry_text",
    "folded_text",
    "front_text",
    "join_text",
    "kind_text",
    "milliseconds",
    "processor_text",
    "task_text",
]

LONGEST_LABEL = 40
LONGEST_LINE = 46
"""Characters in the line with an activity's times and calls."""
LITTLE, NOTHING = 0.01, 1e-6
"""A wait that is less than this part of the processor time, or than a microsecond, is not written."""
TIMES = "\N{MULTIPLICATION SIGN}"

TOKENS = {
    "acquire": "acquires a thread",
    "release": "releases a thread",
    "read-lock": "locks for reading",
    "read-unlock": "ends reading",
    "write-lock": "locks for writing",
    "write-unlock": "ends writing",
}
"""What an entry does to its semaphore or lock."""

DISCIPLINES = {
    "ps": "processor sharing",
    "fcfs": "first come first served",
    "hol": "highest priority next",
    "pp": "highest priority preempts",
    "cores": "sharing per core",
    "infinite": "no contention",
}


def milliseconds(time: Distribution | None) -> str:
    """Return the mean of a time for display, ``?`` if it was never measured."""
    return "?" if time is None else _milliseconds(time.mean)


def _milliseconds(seconds: float) -> str:
    """Return three digits, two below a millisecond: more is not known of such times."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    value = seconds * 1e3
    if value < 1e-3:
        return "0 ms"
    return f"{value:.3g} ms" if value >= 1 else f"{float(f'{value:.2g}'):.6f}".rstrip("0").rstrip(".") + " ms"


def _times(count: Distribution | None) -> str:
    """Return a number of times; ``~`` marks the mean of a random one."""
    if count is None:
        return "?"
    return f"{count.mean:.3g}" if isinstance(count, Constant) else f"~{count.mean:.3g}"


def _plural(number: float, what: str) -> str:
    return f"{number:g} {what}" + ("" if number == 1 else "s")


def call_text(call: Call) -> str:
    """Return the target of a call and how often it is made (its kind is shown by the line's style)."""
    often = "" if call.count == ONCE else f" {TIMES} {_times(call.count)}"
    return f"→ {entry_label(call.task, call.entry)}{often}"


def kind_text(call: Call) -> str:
    """Return what is special about a call, "" if its caller waits for the reply with its thread."""
    return {"send": " (no reply)", "releasing": " (thread released)"}.get(call.kind, "")


def activity_text(model: Model, activity: Activity) -> tuple[str, str]:
    """Return the two lines an activity shows: its name, and its times or calls."""
    parts = []
    if activity.kind == "think":
        parts.append(f"think {milliseconds(activity.delay)}")
    elif activity.kind == "choice":
        parts.append("one path")
    elif not (activity.calls and activity.calibrated and _zero(activity)):
        if activity.demand is None and activity.delay is None:
            parts.append("" if activity.calls else "?")
        else:
            parts.append(f"CPU {milliseconds(activity.demand)}")
            if _worth_saying(activity):
                parts.append(f"wait {milliseconds(activity.delay)}")
    networks = {t.name for t in model.tasks if t.role == "network"}
    calls = [call_text(c) for c in activity.calls if c.task not in networks]
    text = ", ".join(p for p in parts + calls if p)
    if len(text) > LONGEST_LINE and len(calls) > 1:
        text = ", ".join(p for p in [*parts, f"{len(calls)} calls"] if p)  # the arrows show the targets
    return _short(activity.name), _short(text, LONGEST_LINE)


def _zero(activity: Activity) -> bool:
    return not any(t is not None and t.mean for t in (activity.demand, activity.delay))


def _worth_saying(activity: Activity) -> bool:
    """Tell whether a wait is unknown or not negligible beside the processor time."""
    if activity.delay is None:
        return True
    return activity.delay.mean > max(
        NOTHING, 0.0 if activity.demand is None else LITTLE * activity.demand.mean
    )


def _short(text: str, longest: int = LONGEST_LABEL) -> str:
    """Shorten a text in its middle: names with a common beginning stay different."""
    if len(text) <= longest:
        return text
    end = (longest - 1) * 2 // 3
    return text[: longest - 1 - end] + "…" + text[-end:]


def activity_tip(activity: Activity) -> str:
    """Return what an activity shows when the pointer rests on it."""
    flags = [f for f in ("interleaved", "replies", "detached") if getattr(activity, f)]
    line = f", line {activity.line}" if activity.line else ""
    lines = [f"{activity.name} ({activity.kind}{line})" + (f": {', '.join(flags)}" if flags else "")]
    return "\n".join([*lines, *(call_text(c) + kind_text(c) for c in activity.calls)])


def branch_text(precedence: Precedence, index: int) -> str:
    """Return the label of one branch of an OR or fan-out or one body of a loop, "" if it needs none."""
    if precedence.fork == "fan-out" and index < len(precedence.counts):
        return f"∥ {TIMES} {_times(precedence.counts[index])}{_fan_text(precedence)}"
    if precedence.fork == "loop" and index < len(precedence.counts):
        return f"↻ {TIMES} {_times(precedence.counts[index])}"
    if precedence.fork == "or" and len(precedence.post) > 1:
        odds = precedence.probabilities
        return "p = ?" if odds is None else f"p = {odds[index]:.3g}"
    return ""


def join_text(precedence: Precedence) -> str:
    """Return the label of a join that does not wait for all its branches."""
    return "" if precedence.quorum is None else f"{precedence.quorum} of {len(precedence.pre)}"


def _fan_text(precedence: Precedence) -> str:
    """Return how many copies of the branch of a fan-out are waited for, or run at once; "" if all."""
    if precedence.limit is not None:
        return f", {precedence.limit} at once"
    return "" if precedence.first is None else f", waits for {precedence.first}"


def entry_extras(entry: Entry) -> str:
    """Return what is special about how an entry gets and ends its requests."""
    parts = []
    if entry.arrivals is not None:
        parts.append(f"{1 / entry.arrivals.mean:.3g}/s from outside")
    if entry.priority:
        parts.append(f"priority {entry.priority:+d}")
    if entry.token:
        parts.append(TOKENS[entry.token])
    if entry.waits:
        parts.append("waits for all branches")
    return ", ".join(parts)


def entry_text(task: Task, entry: Entry) -> tuple[str, str]:
    """Return the two lines of an entry that is drawn without its activities."""
    if len(entry.activities) == 1:
        activity = entry.activities[0]
        if activity.demand is None or activity.delay is None:
            what = "?"
        elif task.role in ("network", "database"):
            what = _milliseconds(activity.demand.mean + activity.delay.mean)
        else:
            what = f"CPU {milliseconds(activity.demand)}"
    else:
        own = own_time(entry)
        paths = f"{len(entry.paths)} paths, " if len(entry.paths) > 1 else ""
        size = _plural(len(entry.activities), "activity").replace("activitys", "activities")
        what = paths + (size if own is None else f"{_milliseconds(own)} of its own")
    return _short(entry.name), ", ".join(p for p in (what, entry_extras(entry)) if p)


def folded_text(task: Task) -> str:
    """Return the line of a network whose exchanges are not drawn one by one."""
    times = [t for e in task.entries if (t := own_time(e)) is not None]
    longest = f", up to {_milliseconds(max(times))} each" if times else ""
    return f"{len(task.entries)} exchanges{longest}; the arrows say which"


def task_text(task: Task) -> tuple[str, str]:
    """Return the two lines of a task's title."""
    extras = f", priority {task.priority}" if task.priority else ""
    extras += f", on {task.processor}" if task.processor else ""
    if task.is_open:
        return task.name, f"arrivals{extras}"
    if task.is_reference:
        think = "" if task.think is None else f", think {milliseconds(task.think)}"
        return task.name, f"{_plural(task.threads, 'client')}{think}{extras}"
    threads = "∞ threads" if task.threads == math.inf else f"pool {task.threads:g}"
    replicas = f", {task.replicas} replicas" if task.replicas > 1 else ""
    what = {"network": "network, ", "database": "database, "}.get(task.role, "")
    order = {"random": ", random order", "hol": ", by priority"}.get(task.admission, "")
    return task.name, f"{what}{threads}{replicas}{order}{extras}"


def front_text(task: Task) -> str:
    """Return what a task shows about framework work per request, "" if it was not measured."""
    if task.front is None:
        return ""
    held = " (held)" if task.front.holds else ""
    return f"front: {milliseconds(task.front.request)} in, {milliseconds(task.front.reply)} out{held}"


def processor_text(processor: Processor) -> tuple[str, str]:
    """Return the two lines a processor shows."""
    cores = "∞ cores" if processor.cores == math.inf else _plural(processor.cores, "core")
    if processor.discipline == "infinite":
        cores = "∞ cores"
    speed = "" if processor.speed == 1 else f", speed {processor.speed:g}"
    migration = processor.migration
    moves = ""
    if migration is not None:
        moves = f", wake {migration.wake:.3g}, steal {migration.steal:.3g}, balance {migration.balance:.3g}/s"
    if processor.turns is not None:
        quantum, preempt = 1e3 * processor.turns.quantum, processor.turns.preempt
        moves += f", turns of {quantum:.3g} ms, {preempt:.0%} at once"
    pinned = "" if processor.core is None else f", pinned to core {processor.core}"
    return processor.name, f"{cores}, {DISCIPLINES[processor.discipline]}{speed}{moves}{pinned}"
