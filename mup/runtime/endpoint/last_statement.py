"""Find out by its bytecode whether ``comm.respond(...)`` is the last thing an endpoint does.

Then the answer and the news that the worker is free leave together: one message less per request. Whatever
an endpoint does behind its answer, be it in a ``finally`` or a decorator, must not delay the answer.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType

__all__ = ["returns_next"]

# By identity: to hash or to compare code objects takes longer than all the rest. The code is kept, so that no
# other one gets its identity.
_known: dict[tuple[int, int], tuple[CodeType, bool]] = {}


def returns_next(frame: FrameType, runner: CodeType | None) -> bool:
    """Whether a function returns to its caller right after the call it is executing.

    Args:
        frame: Of the function.
        runner: The caller it must return to; None = no caller is accepted.
    """
    back = frame.f_back
    if back is None or back.f_code is not runner or sys.gettrace() is not None:
        return False
    code, offset = frame.f_code, frame.f_lasti
    known = _known.get((id(code), offset))
    if known is None:
        known = _known[id(code), offset] = code, _ends(code, offset)
    return known[1]


def _ends(code: CodeType, offset: int) -> bool:
    """Whether nothing but a return follows an instruction."""
    # Loaded at the first answer of a worker, once per statement that answers.
    import dis  # noqa: PLC0415

    following = [each.opname for each in dis.get_instructions(code) if each.offset > offset][:3]
    return following[:1] == ["RETURN_VALUE"] or (
        following[:1] == ["POP_TOP"]
        and (following[1:2] == ["RETURN_CONST"] or following[1:] == ["LOAD_CONST", "RETURN_VALUE"])
    )
