"""Leave out steps of a program without changing what happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simulator.program.instructions import (
    BRANCH,
    BRANCH_END,
    CHOICE,
    CYCLE,
    END,
    FAN_OUT,
    FORK,
    FORK_JOIN,
    GOTO,
    JOIN,
    LOOP,
    REACQUIRE,
    RELEASE,
    REPLY,
    RETURN,
    TAKE,
    Instruction,
)
from simulator.program.tables import Program

__all__ = ["optimise"]

NOT_PLAIN: Final = frozenset(
    (FORK, FORK_JOIN, JOIN, BRANCH_END, FAN_OUT, REPLY, END, RETURN, CYCLE, RELEASE, REACQUIRE)
)
"""What no branch contains that is executed like a subroutine."""


def optimise(program: Program) -> Program:
    """Return a program with the same trajectories and fewer steps.

    - A jump to a jump goes to the final address.
    - A fork of one branch whose forking flow goes straight to the join of the two: a compiled engine
      executes the branch like a subroutine, with the branch's stream (FORK_JOIN, BRANCH_END).
    """
    code = list(program.code)

    def final(address: int) -> int:
        for _ in range(len(code)):
            if code[address][0] != GOTO:
                break
            address = code[address][1]
        return address

    for address, (operation, a, b, c) in enumerate(program.code):
        if operation in (GOTO, FORK, BRANCH):
            code[address] = (operation, final(a), b, c)
        elif operation in (LOOP, TAKE):
            code[address] = (operation, a, final(b), c)
    # Where a quorum suffices, a late carrier may meet another one that has taken its place.
    overtaken = {j.entry for j in program.joins if j.needed < j.arrivals}
    for address, (operation, a, b, c) in enumerate(code):
        if operation != FORK:
            continue
        following = final(address + 1)
        if code[following][0] == JOIN:
            join = code[following][1]
            spec = program.joins[join]
            if spec.entry in overtaken:
                continue
            if spec.needed == spec.arrivals == 2 and _is_plain_branch(program, code, a, following):
                code[address] = (FORK_JOIN, a, following, c)
                code[following] = (BRANCH_END, join, b, c)
    choices = tuple(replace(c, addresses=tuple(final(a) for a in c.addresses)) for c in program.choices)
    return replace(program, code=tuple(code), choices=choices)


def _is_plain_branch(program: Program, code: list[Instruction], start: int, join: int) -> bool:
    """Tell whether a branch does all its work itself and always ends at this join."""
    reached, stack, arrives = set(), [start], False
    while stack:
        address = stack.pop()
        if address == join:
            arrives = True
            continue
        if address in reached:
            continue
        reached.add(address)
        operation, a, b, _ = code[address]
        if operation in NOT_PLAIN:
            return False
        if operation == GOTO:
            stack.append(a)
        elif operation == CHOICE:
            stack.extend(program.choices[a].addresses)
        elif operation == LOOP:
            stack.extend((address + 1, b))
        else:
            stack.append(address + 1)
    return arrives
