"""Rules in which the two simulators differ, and the figures that these touch.

``lqsim`` runs its tasks as threads of an operating system on processors that are not preempted. Some of what
such a thread does has no counterpart in an LQN; each rule below is named with the place in its source.
All but "unlock" change nothing of how much work arrives anywhere, so throughputs and the utilization of
processors have to agree all the same; waiting on the processors in question, and what contains it, need not.
"""

from __future__ import annotations

from typing import Final

from conformance_figures import Elements, Pair, UnknownElement

from mup.lqn.model import Entry, Model, Task

__all__ = ["RULES", "Differences"]

RULES: Final = {
    "fork order": (
        "the branches of an AND fork start in random order, here in the order of the model "
        "(instance.cc, next_activity: shuffle)"
    ),
    "second phase": (
        "a second phase goes on, or joins the queue, before the reply has any effect; if the caller is on "
        "the same processor a coin decides who is first; here it is always the caller "
        "(instance.cc, execute_activity: 'KLUDGE ALERT')"
    ),
    "message": (
        "a thread keeps its processor while it sends a message without reply; here it queues again for its "
        "next slice (instance.cc, execute_activity: reschedule_on_async_send is off)"
    ),
    "idle step": (
        "a thread that was blocked has to wait for the processor even if its next step has no demand; here "
        "only work needs a processor (instance.cc: every ps_receive ends with being dispatched)"
    ),
    "after a join": (
        "the wait for the processor with which a thread comes out of a join is counted nowhere; here the "
        "activity behind the join has it (instance.cc, next_activity: BUG 259)"
    ),
    "unlock": (
        "the unlock of a reader-writer lock lets requests of the other kind in when it arrives, its own work "
        "goes on beside theirs; here it takes effect at the end of its entry "
        "(instance.cc, RWLock_Server::run)"
    ),
}
"""What the rules say, by name."""

_STRICT = {("processors", "utilization")}


class Differences:
    """Which processors of a model the rules that differ apply to, and which figures depend on those."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._elements = Elements(model)
        self._queues = {
            p.name
            for p in model.processors
            if p.discipline in ("fcfs", "hol", "pp") and _population(model, p.name) > p.cores
        }
        self._locked = _shares_a_lock(model)
        self.rules: dict[str, set[str]] = {}
        for task in model.tasks:
            if task.processor in self._queues:
                found = {rule for entry in task.entries for rule in _rules(task, entry)}
                if found:
                    self.rules.setdefault(task.processor, set()).update(found)

    def explain(self, pair: Pair) -> list[str]:
        """Return the rules that a figure may differ by; none if it has to agree."""
        if self._locked:
            return ["unlock"]  # how long a lock is held has a part in everything
        if pair.name == "throughput" or (pair.section, pair.name) in _STRICT:
            return []
        found: set[str] = set()
        for task in self._tasks(pair):
            found |= self.rules.get(task.processor or "", set())
        return sorted(found)

    def _tasks(self, pair: Pair) -> list[Task]:
        """Return the tasks whose waiting is part of a figure: its own and all that are called from there."""
        section, element = pair.section, pair.element
        try:
            if section == "calls":
                target = element.partition("->")[2].partition(":")[0]
                first = [self._elements.entries[target][0]]
            elif section == "activities":
                first = [self._elements.activity(element)[0]]
            elif section == "joins":
                first = [self._model.task(element.partition("/")[0])]
            elif section == "entries":
                first = [self._elements.entries[element][0]]
            else:
                first = [self._model.task(element)]
        except UnknownElement:
            return []
        reached = {t.name: t for t in first}
        grows = list(first)
        while grows:
            task = grows.pop()
            for entry in task.entries:
                names = [c.task for a in entry.activities for c in a.calls]
                for name in (*names, *(f.task for f in entry.forwards)):
                    if name not in reached:
                        reached[name] = self._model.task(name)
                        grows.append(reached[name])
        return list(reached.values())


def _shares_a_lock(model: Model) -> bool:
    """Tell whether readers and writers wait for each other at a lock whose unlocking takes time."""
    called = {(c.task, c.entry) for _, _, a in model.walk() for c in a.calls}
    for task in model.tasks:
        used = [e for e in task.entries if (task.name, e.name) in called]
        unlocks = [a for e in used if e.token in ("read-unlock", "write-unlock") for a in e.activities]
        if {"read-lock", "write-lock"} <= {e.token for e in used} and any(
            t is None or t.mean > 0 for a in unlocks for t in (a.demand, a.delay)
        ):
            return True
    return False


def _population(model: Model, processor: str) -> float:
    """Return how many threads can be on a processor at once; more if their entries fork."""
    total = 0.0
    for task in model.tasks:
        if task.processor == processor:
            branches = max(
                1 + sum(len(p.post) - 1 for p in e.precedences if p.fork == "and") for e in task.entries
            )
            total += task.threads * task.replicas * branches
    return total


def _rules(task: Task, entry: Entry) -> set[str]:
    found = set()
    followed = {name for p in entry.precedences for name in p.pre}
    if any(p.fork == "and" for p in entry.precedences):
        found.add("fork order")
    if any(p.join == "and" for p in entry.precedences):
        found.add("after a join")
    if not task.is_reference and any(a.replies and a.name in followed for a in entry.activities):
        found.add("second phase")
    for activity in entry.activities:
        if activity.demand is None:
            continue
        if activity.demand.mean == 0:
            found.add("idle step")
        elif activity.interleaved and any(c.kind == "send" for c in activity.calls):
            found.add("message")
    return found
