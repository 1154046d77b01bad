"""Compile the activity graph of an entry into code."""

from __future__ import annotations

import math
from collections.abc import Callable

from mup.errors import SimulationError
from mup.lqn.distributions import Constant
from mup.lqn.lowered import (
    Arc,
    FanOut,
    Fork,
    Graph,
    Join,
    Loop,
    Request,
    Slices,
    Then,
    measured,
    requests_of,
    slices_of,
)
from mup.lqn.model import Activity, Call, Task
from mup.lqn.refs import ActivityRef, EntryRef, JoinRef, WorkNames
from simulator.program.emitter import Emitter, Pair, cumulative
from simulator.program.instructions import (
    BEGIN,
    BRANCH,
    CALL,
    CHOICE,
    COUNT,
    END,
    FAN_OUT,
    FINISH,
    FORK,
    GOTO,
    JOIN,
    LEAVE,
    LOOP,
    REACQUIRE,
    RELEASE,
    REPLY,
    SEND,
    SPLIT,
    TAKE,
)
from simulator.program.tables import UNTIMED, ActivitySpec, Choice, JoinSpec

__all__ = ["Body"]

NEVER = 1 << 30
"""Arrivals at a fan-out behind which its counter begins anew, where more may come than are waited for."""


class Body:
    """Emits the activity graph of one entry; labels are patched once their addresses are known.

    Args:
        emitter: Where to.
        task: The entry's.
        graph: Of the entry.
        where: The entry, for messages.
        held: Activities behind which the thread is held until the front has sent the reply.
        front: Emits what the front does with a reply.
    """

    def __init__(
        self,
        emitter: Emitter,
        task: Task,
        graph: Graph,
        where: str,
        held: frozenset[str],
        front: Callable[[], None],
    ) -> None:
        self.emitter = emitter
        self.task = task
        self.graph = graph
        self.where = where
        self.held = held
        self.front = front
        self.ref = EntryRef(task.name, graph.entry.name)
        self.slots = {index: slot for slot, index in enumerate(graph.joins)}
        fans = [number for number, arc in graph.arcs.items() if isinstance(arc.then, FanOut)]
        self.fan_slots = {index: slot for slot, index in enumerate(fans, len(self.slots))}
        self.activity_address: dict[str, int] = {}
        self.precedence_address: dict[int, int] = {}
        self.patches: list[tuple[int, str]] = []
        self.choice_patches: list[tuple[int, tuple[float, ...], tuple[str, ...]]] = []
        self.pending: list[tuple[str, int]] = []
        self.registers = 0
        self.setup_keys = {} if task.setup is None else WorkNames(task.entries).texts
        # One clock per activity where they are timed, and one per fork that a join refers to, or fan-out.
        self.timers = {fork: n for n, fork in enumerate(sorted({*graph.forks.values(), *fans}))}

    def emit(self) -> None:
        """Emit all that the entry's first activity leads to."""
        emitter = self.emitter
        first = len(emitter.code)
        self.pending.append((self.graph.start, -1))
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
        emitter.slots = max(emitter.slots, len(self.slots) + len(self.fan_slots))
        emitter.registers = max(emitter.registers, self.registers)
        timers = len(self.timers) + (len(self.graph.activities) if emitter.timed else 0)
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
            self.activity(self.graph.activities[name])
            arc = self.graph.after.get(name)
            if arc is None:
                self.leave(loop)
                return
            if arc.number in self.precedence_address:
                emitter.emit(GOTO, self.precedence_address[arc.number])
                return
            self.precedence_address[arc.number] = len(emitter.code)
            if arc.join is not None:
                emitter.emit(JOIN, self.join(arc, arc.join))
            # Every activity has one way in (a rule of the model), so its code comes right here.
            following = self.then(arc, loop)
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

    def join(self, arc: Arc, join: Join) -> int:
        """Add a join; return its index."""
        fork = self.graph.forks.get(arc.number)
        self.emitter.joins.append(
            JoinSpec(
                where=f"{self.where}.{arc.path}",
                label=self.emitter.names.join(JoinRef(self.ref, join.branches)),
                entry=self.emitter.entries[self.ref],
                slot=self.slots[arc.number],
                needed=join.needed,
                arrivals=len(join.branches),
                timer=-1 if fork is None else self.timers[fork],
                carried=not self.graph.carried.isdisjoint(join.branches),
            )
        )
        return len(self.emitter.joins) - 1

    def then(self, arc: Arc, loop: int) -> str | None:
        """Emit what follows an arc; return the activity that follows directly, if any."""
        emitter, then = self.emitter, arc.then
        if isinstance(then, Then):
            return then.activity
        if isinstance(then, Fork):
            if arc.number in self.timers:
                emitter.emit(SPLIT, self.timers[arc.number])
            for name in then.others:
                self.patches.append((emitter.emit(FORK), name))
            # A branch that is not joined again ends where it ends, in a loop or not.
            self.pending.extend((name, -1) for name in reversed(then.others))
            return then.first
        if isinstance(then, Loop):
            return self.loop(then)
        if isinstance(then, FanOut):
            return self.fan_out(arc, then)
        names = tuple(name for name, _ in then.successors)
        if len(names) > 1:
            emitter.choices.append(Choice((), ()))
            odds = tuple(chance for _, chance in then.successors)
            self.choice_patches.append((len(emitter.choices) - 1, odds, names))
            emitter.emit(CHOICE, len(emitter.choices) - 1)
            self.pending.extend((name, loop) for name in reversed(names[1:]))
        return names[0]

    def loop(self, loop: Loop) -> str | None:
        """Emit a loop; return the activity behind it."""
        emitter = self.emitter
        if loop.mixed:
            # Memoryless: before every round one of the bodies or the end is drawn.
            total = 1 + math.fsum(body.count.mean for body in loop.bodies)
            skip = emitter.emit(GOTO)  # the bodies come first, the head of the loop behind them
            head = self.bodies([body.start for body in loop.bodies])
            emitter.code[skip] = (GOTO, head, 0, 0)
            odds = [body.count.mean / total for body in loop.bodies]
            addresses = [self.activity_address[body.start] for body in loop.bodies]
            emitter.emit_choice([*odds, 1 - math.fsum(odds)], [*addresses, head + 1])
        else:
            for body in loop.bodies:
                register = self.registers
                self.registers += 1
                emitter.emit(COUNT, register, emitter.distribution(body.count))
                skip = emitter.emit(GOTO)
                head = self.bodies([body.start])
                emitter.code[skip] = (GOTO, head, 0, 0)
                emitter.emit(LOOP, register, head + 2)
                emitter.emit(GOTO, self.activity_address[body.start])
        return loop.continuation

    def fan_out(self, arc: Arc, fan: FanOut) -> str | None:
        """Emit a fan-out; return the activity behind it.

        The code of the branch comes first. Without a limit every copy is a flow that executes it once; with
        one there are at most so many flows, and each takes the next copy until none is left.
        """
        emitter = self.emitter
        register = self.registers
        self.registers += 2
        timer = self.timers[arc.number]
        emitter.joins.append(
            JoinSpec(
                where=f"{self.where}.{arc.path}",
                label=emitter.names.join(JoinRef(self.ref, (fan.body.start,))),
                entry=emitter.entries[self.ref],
                slot=self.fan_slots[arc.number],
                needed=1,
                arrivals=1 if fan.first is None else NEVER,
                timer=timer,
                carried=False,
            )
        )
        join = len(emitter.joins) - 1
        skip = emitter.emit(GOTO)
        head = self.bodies([fan.body.start])
        start = self.activity_address[fan.body.start]
        if fan.limit is not None:
            emitter.emit(TAKE, register, head + 2)
            emitter.emit(GOTO, start)
            start = head
        emitter.emit(LEAVE)
        leaving = emitter.emit(GOTO)
        emitter.code[skip] = (GOTO, len(emitter.code), 0, 0)
        emitter.emit(COUNT, register, emitter.distribution(fan.body.count))
        emitter.emit(SPLIT, timer)
        most = fan.limit or 0 if fan.first is None else -1 - fan.first
        emitter.emit(FAN_OUT, join, register, most)
        spread = emitter.emit(LOOP, register + 1, len(emitter.code) + 3)
        emitter.emit(BRANCH, start)
        emitter.emit(GOTO, spread)
        emitter.code[leaving] = (GOTO, len(emitter.code), 0, 0)
        emitter.emit(JOIN, join)
        return fan.continuation

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
        emitter, number = self.emitter, UNTIMED
        if emitter.timed and (activity.demand or activity.delay or activity.calls):
            number = len(emitter.activities)
            clock = len(self.timers) + list(self.graph.activities).index(activity.name)
            emitter.activities.append(
                ActivitySpec(emitter.names.activity(ActivityRef(*self.ref, activity.name)))
            )
            emitter.emit(BEGIN, number, clock)
        think = activity.kind == "think" and self.task.is_reference
        longer, later = self.setup(activity, "demands"), self.setup(activity, "delays")
        requests = requests_of(activity)
        slices = slices_of(activity, requests)
        if slices is not None:
            emitter.pause(self.task, measured(activity.delay), think=think, setup=later)
            self.interleaved(activity, requests, slices, number)
        else:
            emitter.spend(self.task, measured(activity.demand), number, setup=longer)
            emitter.pause(self.task, measured(activity.delay), think=think, setup=later)
            if activity.sleeps:
                emitter.resume(self.task)
            for request in requests:
                self.repeated_call(activity, request)
        if number != UNTIMED:
            emitter.emit(FINISH, number, clock)
        if activity.name in self.held:
            self.front()
        if activity.replies and not self.task.is_reference:
            emitter.emit(REPLY)

    def setup(self, activity: Activity, field: str) -> Pair:
        """Return the seconds an execution of an activity gets after sleep: of its worker, and of the core."""
        setup = self.task.setup
        if setup is None:
            return 0.0, 0.0
        pair: Pair = getattr(setup, field).get(self.setup_keys[self.ref.entry, activity.name], (0.0, 0.0))
        return pair

    def call(self, activity: Activity, call: Call) -> None:
        """Emit a single request."""
        emitter = self.emitter
        site = emitter.site(self.task, ActivityRef(*self.ref, activity.name), (call.task, call.entry))
        target = emitter.sites[site].entry
        if call.kind == "send":
            emitter.emit(SEND, target, site)
        elif call.kind == "releasing":
            emitter.emit(RELEASE)
            emitter.emit(CALL, target, site)
            emitter.emit(REACQUIRE)
        else:
            emitter.emit(CALL, target, site)

    def repeated_call(self, activity: Activity, request: Request) -> None:
        """Emit as many requests as a call makes."""
        emitter, count = self.emitter, request.count
        if isinstance(count, Constant) and count.value == 1:
            self.call(activity, request.call)
            return
        register = self.registers
        self.registers += 1
        emitter.emit(COUNT, register, emitter.distribution(count))
        head = emitter.emit(LOOP, register)
        self.call(activity, request.call)
        end = emitter.emit(GOTO, head) + 1
        emitter.code[head] = (LOOP, register, end, 0)

    def interleaved(
        self, activity: Activity, requests: tuple[Request, ...], slices: Slices, number: int
    ) -> None:
        """Emit slices of demand around the calls."""
        emitter = self.emitter
        demand = measured(activity.demand).scaled(1 / slices.number)
        worker, core = self.setup(activity, "demands")
        longer = (worker / slices.number, core / slices.number)
        if slices.drawn:
            head = len(emitter.code)
            emitter.spend(self.task, demand, number, setup=longer)
            emitter.choices.append(Choice((), ()))
            choice = len(emitter.choices) - 1
            emitter.emit(CHOICE, choice)
            addresses = []
            for request in requests:
                addresses.append(len(emitter.code))
                self.call(activity, request.call)
                emitter.emit(GOTO, head)
            odds = [request.count.mean / slices.number for request in requests]
            emitter.choices[choice] = Choice(
                cumulative([*odds, 1 - math.fsum(odds)]), (*addresses, len(emitter.code))
            )
            return
        emitter.spend(self.task, demand, number, setup=longer)
        for request in requests:
            register, head, mean = self.registers, -1, request.count.mean
            if mean > 1:
                self.registers += 1
                emitter.emit(COUNT, register, emitter.distribution(Constant(mean)))
                head = emitter.emit(LOOP, register)
            self.call(activity, request.call)
            emitter.spend(self.task, demand, number, setup=longer)
            if head >= 0:
                end = emitter.emit(GOTO, head) + 1
                emitter.code[head] = (LOOP, register, end, 0)

    def drop_final_replies(self, first: int) -> None:
        """A reply that is directly followed by the end needs no flow to carry on: END replies."""
        code = self.emitter.code
        if self.graph.replies_elsewhere or self.graph.entry.waits:
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
