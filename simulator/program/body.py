"""How does the activity graph of an entry become code?"""

from __future__ import annotations

import math

from mup.errors import SimulationError
from mup.lqn.distributions import Constant, Distribution, Geometric
from mup.lqn.model import Activity, Call, Entry, Precedence, Task, entry_label
from simulator.program.emitter import Emitter, cumulative
from simulator.program.instructions import (
    BEGIN,
    CALL,
    CHOICE,
    COUNT,
    END,
    FINISH,
    FORK,
    GOTO,
    JOIN,
    LOOP,
    REACQUIRE,
    RELEASE,
    REPLY,
    SEND,
    SPLIT,
)
from simulator.program.tables import UNTIMED, ActivitySpec, Choice, JoinSpec

__all__ = ["Body"]


class Body:
    """Emits the activity graph of one entry; labels are patched once their addresses are known."""

    def __init__(self, emitter: Emitter, task: Task, entry: Entry, where: str) -> None:
        self.emitter = emitter
        self.task = task
        self.entry = entry
        self.where = where
        self.label = entry_label(task.name, entry.name)
        self.activities = {a.name: a for a in entry.activities}
        self.successor = {name: i for i, p in enumerate(entry.precedences) for name in p.pre}
        self.carried = _carried(entry)
        self.joins = {
            i: n
            for n, i in enumerate(
                i for i, p in enumerate(entry.precedences) if p.join == "and" and len(p.pre) > 1
            )
        }
        self.join_timers = _join_timers(entry, list(self.joins))
        self.activity_address: dict[str, int] = {}
        self.precedence_address: dict[int, int] = {}
        self.patches: list[tuple[int, str]] = []
        self.choice_patches: list[tuple[int, tuple[float, ...], tuple[str, ...]]] = []
        self.pending: list[tuple[str, int]] = []
        self.registers = 0
        # One clock per activity where they are timed, and one per fork that a join refers to.
        self.timers = {fork: n for n, fork in enumerate(sorted(set(self.join_timers.values())))}

    @property
    def replies_elsewhere(self) -> bool:
        """Tell whether an activity off the flow that holds the thread may send the reply."""
        return not {a.name for a in self.entry.activities if a.replies}.issubset(self.carried)

    def emit(self) -> None:
        """Emit all that the entry's first activity leads to."""
        emitter = self.emitter
        first = len(emitter.code)
        self.pending.append((self.entry.start, -1))
        while self.pending:
            self.chain(*self.pending.pop())
        code = emitter.code
        for address, name in self.patches:
            operation, _, b, c = code[address]
            code[address] = (operation, self.activity_address[name], b, c)
        for index, odds, names in self.choice_patches:
            addresses = tuple(self.activity_address[n] for n in names)
            emitter.choices[index] = Choice(cumulative(odds), addresses)
        self.drop_final_replies(first)
        emitter.slots = max(emitter.slots, len(self.joins))
        emitter.registers = max(emitter.registers, self.registers)
        timers = len(self.timers) + (len(self.activities) if emitter.timed else 0)
        emitter.timers = max(emitter.timers, timers)

    def chain(self, name: str, loop: int) -> None:
        """Emit an activity and what follows it, until code that exists already or the end.

        Args:
            name: First activity.
            loop: Where the end of the chain continues (the head of the loop whose body it is), or -1.
        """
        emitter = self.emitter
        while True:
            self.activity_address[name] = len(emitter.code)
            self.activity(self.activities[name])
            index = self.successor.get(name)
            if index is None:
                self.leave(loop)
                return
            if index in self.precedence_address:
                emitter.emit(GOTO, self.precedence_address[index])
                return
            self.precedence_address[index] = len(emitter.code)
            precedence = self.entry.precedences[index]
            if index in self.joins:
                emitter.emit(JOIN, self.join(index, precedence))
            # Every activity has one way in (a rule of the model), so its code comes right here.
            following = self.fork(precedence, index, loop)
            if following is None:
                self.leave(loop)
                return
            name = following

    def leave(self, loop: int) -> None:
        """Emit the end of a chain: the next round of a loop, or the end of the flow."""
        if loop >= 0:
            self.emitter.emit(GOTO, loop)
        else:
            self.emitter.emit(END)

    def join(self, index: int, precedence: Precedence) -> int:
        """Add a join; return its index."""
        names = "&".join(precedence.pre)
        timer = self.timers[self.join_timers[index]] if index in self.join_timers else -1
        needed = len(precedence.pre) if precedence.quorum is None else precedence.quorum
        self.emitter.joins.append(
            JoinSpec(
                where=f"{self.where}.precedences[{index}]",
                label=f"{self.label}:{names}",
                slot=self.joins[index],
                needed=needed,
                arrivals=len(precedence.pre),
                timer=timer,
                carried=not self.carried.isdisjoint(precedence.pre),
            )
        )
        return len(self.emitter.joins) - 1

    def fork(self, precedence: Precedence, index: int, loop: int) -> str | None:
        """Emit the outgoing side; return the activity that follows directly, if any."""
        emitter, post = self.emitter, precedence.post
        if precedence.fork == "and":
            if index in self.timers:
                emitter.emit(SPLIT, self.timers[index])
            for name in post[1:]:
                self.patches.append((emitter.emit(FORK), name))
            # A branch that is not joined again ends where it ends, in a loop or not.
            self.pending.extend((name, -1) for name in reversed(post[1:]))
            return post[0]
        if precedence.fork == "loop":
            return self.loop(precedence, index)
        odds = precedence.probabilities
        if precedence.fork != "or" or len(post) == 1:
            return post[0]
        if odds is None:
            emitter.missing.append(f"{self.where}.precedences[{index}].probabilities")
            odds = (1 / len(post),) * len(post)
        # A branch that is never taken is not compiled: what it lacks does not matter.
        taken = [(p, n) for p, n in zip(odds, post, strict=True) if p > 0]
        names = tuple(n for _, n in taken)
        if len(taken) > 1:
            emitter.choices.append(Choice((), ()))
            self.choice_patches.append((len(emitter.choices) - 1, tuple(p for p, _ in taken), names))
            emitter.emit(CHOICE, len(emitter.choices) - 1)
            self.pending.extend((n, loop) for n in reversed(names[1:]))
        return names[0]

    def loop(self, precedence: Precedence, index: int) -> str | None:
        """Emit a loop; return the activity behind it."""
        emitter = self.emitter
        known: list[tuple[str, Distribution]] = []
        for number, (body, count) in enumerate(zip(precedence.bodies, precedence.counts, strict=True)):
            if count is None:
                emitter.missing.append(f"{self.where}.precedences[{index}].counts[{number}]")
            elif count.mean > 0:
                known.append((body, count))
        if known and all(isinstance(count, Geometric) for _, count in known):
            # Memoryless: before every round one of the bodies or the end is drawn.
            total = 1 + math.fsum(count.mean for _, count in known)
            skip = emitter.emit(GOTO)  # the bodies come first, the head of the loop behind them
            head = self.bodies([body for body, _ in known])
            emitter.code[skip] = (GOTO, head, 0, 0)
            odds = [count.mean / total for _, count in known]
            addresses = [self.activity_address[body] for body, _ in known]
            emitter.emit_choice([*odds, 1 - math.fsum(odds)], [*addresses, head + 1])
        else:
            for body, count in known:
                register = self.registers
                self.registers += 1
                emitter.emit(COUNT, register, emitter.distribution(count))
                skip = emitter.emit(GOTO)
                head = self.bodies([body])
                emitter.code[skip] = (GOTO, head, 0, 0)
                emitter.emit(LOOP, register, head + 2)
                emitter.emit(GOTO, self.activity_address[body])
        return precedence.continuation

    def bodies(self, names: list[str]) -> int:
        """Emit the bodies of a loop and all that belongs to them; return the address of its head."""
        emitter, first = self.emitter, len(self.emitter.code)
        outer, self.pending = self.pending, []
        ends = _Ends()
        for name in names:
            self.chain(name, ends.placeholder)
        beside: set[int] = set()
        while self.pending:
            name, loop = self.pending.pop()
            start = len(emitter.code)
            self.chain(name, loop)
            if loop < 0:
                beside.update(instruction[0] for instruction in emitter.code[start:])
        self.pending = outer
        if COUNT in beside and END in beside:
            # The counter belongs to the request: the branches of two rounds would share it.
            raise SimulationError(
                f"the loop body that starts with {names[0]!r} starts a branch that counts something and may "
                "still be at work when the next round starts it again",
                where=self.where,
                hint="join the branch within the body, or use geometric counts in it",
            )
        head = len(emitter.code)
        for address in range(first, head):
            operation, a, b, c = emitter.code[address]
            if operation == GOTO and a == ends.placeholder:
                emitter.code[address] = (GOTO, head, b, c)
        return head

    def activity(self, activity: Activity) -> None:
        """Emit what an activity does: processor time, delay, calls, and its reply."""
        emitter, where = self.emitter, f"{self.where}.activities[{activity.name!r}]"
        number = UNTIMED
        if emitter.timed and (activity.demand or activity.delay or activity.calls):
            number = len(emitter.activities)
            clock = len(self.timers) + list(self.activities).index(activity.name)
            emitter.activities.append(ActivitySpec(f"{self.label}:{activity.name}"))
            emitter.emit(BEGIN, number, clock)
        think = activity.kind == "think" and self.task.is_reference
        if activity.interleaved and activity.calls:
            emitter.pause(activity.delay, f"{where}.delay", think=think)
            self.interleaved(activity, where, number)
        else:
            emitter.spend(self.task, activity.demand, f"{where}.demand", number)
            emitter.pause(activity.delay, f"{where}.delay", think=think)
            for index, call in enumerate(activity.calls):
                self.repeated_call(activity, call, f"{where}.calls[{index}].count")
        if number != UNTIMED:
            emitter.emit(FINISH, number, clock)
        if activity.replies and not self.task.is_reference:
            emitter.emit(REPLY)

    def call(self, activity: Activity, call: Call) -> None:
        """Emit a single request."""
        emitter = self.emitter
        site = emitter.site(self.task, f"{self.label}:{activity.name}", (call.task, call.entry))
        target = emitter.sites[site].entry
        if call.kind == "send":
            emitter.emit(SEND, target, site)
        elif call.kind == "releasing":
            emitter.emit(RELEASE)
            emitter.emit(CALL, target, site)
            emitter.emit(REACQUIRE)
        else:
            emitter.emit(CALL, target, site)

    def repeated_call(self, activity: Activity, call: Call, where: str) -> None:
        """Emit as many requests as a call makes."""
        emitter, count = self.emitter, call.count
        if count is None:
            emitter.missing.append(where)
        elif isinstance(count, Constant) and count.value <= 1:
            if count.value == 1:
                self.call(activity, call)
        elif count.mean > 0:
            register = self.registers
            self.registers += 1
            emitter.emit(COUNT, register, emitter.distribution(count))
            head = emitter.emit(LOOP, register)
            self.call(activity, call)
            end = emitter.emit(GOTO, head) + 1
            emitter.code[head] = (LOOP, register, end, 0)

    def interleaved(self, activity: Activity, where: str, number: int) -> None:
        """Emit slices of demand around the calls."""
        emitter = self.emitter
        calls = []
        for index, call in enumerate(activity.calls):
            if call.count is None:
                emitter.missing.append(f"{where}.calls[{index}].count")
            elif call.count.mean > 0:
                calls.append((call, call.count.mean))
        total = 1 + math.fsum(mean for _, mean in calls)
        demand = None if activity.demand is None else activity.demand.scaled(1 / total)
        if calls and all(isinstance(call.count, Geometric) for call, _ in calls):
            head = len(emitter.code)
            emitter.spend(self.task, demand, f"{where}.demand", number)
            emitter.choices.append(Choice((), ()))
            choice = len(emitter.choices) - 1
            emitter.emit(CHOICE, choice)
            addresses = []
            for call, _ in calls:
                addresses.append(len(emitter.code))
                self.call(activity, call)
                emitter.emit(GOTO, head)
            odds = [mean / total for _, mean in calls]
            emitter.choices[choice] = Choice(
                cumulative([*odds, 1 - math.fsum(odds)]), (*addresses, len(emitter.code))
            )
            return
        emitter.spend(self.task, demand, f"{where}.demand", number)
        for call, mean in calls:
            register, head = self.registers, -1
            if mean > 1:
                self.registers += 1
                emitter.emit(COUNT, register, emitter.distribution(Constant(mean)))
                head = emitter.emit(LOOP, register)
            self.call(activity, call)
            emitter.spend(self.task, demand, f"{where}.demand", number)
            if head >= 0:
                end = emitter.emit(GOTO, head) + 1
                emitter.code[head] = (LOOP, register, end, 0)

    def drop_final_replies(self, first: int) -> None:
        """A reply that is directly followed by the end needs no flow to carry on: END replies."""
        code = self.emitter.code
        if self.replies_elsewhere or self.entry.waits:
            return
        for address in range(first, len(code)):
            if code[address][0] == REPLY:
                target = address + 1
                while code[target][0] == GOTO:
                    target = code[target][1]
                if code[target][0] == END:
                    code[address] = (GOTO, target, 0, 0)


class _Ends:
    """An address that no code has: stands for the head of a loop until that is known."""

    _next = 1 << 40

    def __init__(self) -> None:
        _Ends._next += 1
        self.placeholder = _Ends._next


def _carried(entry: Entry) -> set[str]:
    """Return the activities that the flow holding the thread can reach."""
    reached = {entry.start}
    grows = True
    while grows:
        grows = False
        for precedence in entry.precedences:
            if reached.isdisjoint(precedence.pre):
                continue
            ends = precedence.post[:1] if precedence.fork == "and" else precedence.post
            if not reached.issuperset(ends):
                reached.update(ends)
                grows = True
    return reached


def _join_timers(entry: Entry, joins: list[int]) -> dict[int, int]:
    """Return per join the last fork that all of its branches come from."""
    before: dict[str, set[int]] = {}
    order: list[int] = []

    def ancestors(name: str) -> set[int]:
        if name not in before:
            before[name] = set()
            for index, precedence in enumerate(entry.precedences):
                if name in precedence.post:
                    found: set[int] = set().union(*(ancestors(p) for p in precedence.pre))
                    if precedence.fork == "and":
                        found = found | {index}
                        if index not in order:
                            order.append(index)
                    before[name] = found
        return before[name]

    result = {}
    for index in joins:
        common = set.intersection(*(ancestors(name) for name in entry.precedences[index].pre))
        if common:
            result[index] = max(common, key=order.index)
    return result
