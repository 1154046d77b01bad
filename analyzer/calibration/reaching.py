"""Which steps may, and which must, still come from a place in the program of a path.

A search that assigns the steps of an execution to concurrent tasks leaves out what cannot succeed: a branch
without a step that is still to be assigned, or with one that is not there. Waits are not looked at: whether a
log shows one, and where, depends on when replies arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from analyzer.calibration.matching import (
    OperationKey,
    _Instruction,
    _Join,
    _Spawn,
    _Split,
    _Stop,
    _Take,
    _Token,
)

__all__ = ["Labels", "Reaching"]

Labels: TypeAlias = int
"""A set of steps, one bit each."""


class Reaching:
    """Of every place in a program, the steps that may come, and those that must come, until its thread ends.

    Args:
        code: The program.

    Attributes:
        may: By place: of the thread, and of the tasks it may start.
        must: By place: of the thread, and of the tasks it certainly starts and waits for; also the waits for
            tasks.
        joins: The bit of the wait for each task.
    """

    def __init__(self, code: Sequence[_Instruction]) -> None:
        self._bits: dict[object, int] = {}
        self.joins: dict[OperationKey, int] = {}
        for instruction in code:
            if isinstance(instruction, _Take) and instruction.op != "get":
                self._bit((instruction.op, instruction.site, instruction.target))
            elif isinstance(instruction, _Join) and _is_whole(instruction):
                for task in instruction.tasks:
                    self.joins[task] = self._bit(task)
        self._waits = sum(set(self.joins.values()))
        everything = (1 << len(self._bits)) - 1
        self.may: list[Labels] = [0] * (len(code) + 1)
        self.must: list[Labels] = [everything] * len(code) + [0]
        changed = True
        while changed:
            changed = False
            for at in reversed(range(len(code))):
                both = self._from(code, at)
                changed |= both != (self.may[at], self.must[at])
                self.may[at], self.must[at] = both

    def _bit(self, label: object) -> int:
        return self._bits.setdefault(label, 1 << len(self._bits))

    def _from(self, code: Sequence[_Instruction], at: int) -> tuple[Labels, Labels]:
        """Return what may and what must come from a place, given what is known of those behind it."""
        instruction, may, must = code[at], self.may, self.must
        match instruction:
            case _Stop():
                return 0, 0
            case _Split(targets=targets):
                any_of, all_of = 0, -1
                for target in targets:
                    any_of, all_of = any_of | may[target], all_of & must[target]
                return any_of, all_of if targets else 0
            case _Spawn(task=task, behind=behind):
                surely = must[at + 1] if must[behind] & self.joins.get(task, 0) else 0
                return may[behind] | may[at + 1], must[behind] | surely
            case _Take(op=op, site=site, target=target) if op != "get":
                bit = self._bits[op, site, target]
                return may[at + 1] | bit, must[at + 1] | bit
            case _Join(tasks=tasks) if _is_whole(instruction):
                return may[at + 1], must[at + 1] | sum(self.joins[task] for task in tasks)
        return may[at + 1], must[at + 1]

    def left(self, tokens: Sequence[_Token]) -> list[Labels] | None:
        """Return the steps that are left before each of these and behind the last; None if one is nowhere.

        Joins count as being there: no log shows them.
        """
        found = [self._waits]
        for op, site, detail in reversed(tokens):
            label = (op, site, detail)
            if op != "get" and label not in self._bits:
                return None
            found.append(found[-1] | (0 if op == "get" else self._bits[label]))
        found.reverse()
        return found

    def shown(self, labels: Labels) -> Labels:
        """Return those of some steps that are no joins."""
        return labels & ~self._waits


def _is_whole(join: _Join) -> bool:
    """Return whether a join waits until its task has come to its end."""
    return not (join.early or join.copies or join.first)
