"""What may and must still come from a place in the program of a path."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analyzer.calibration.matching import (
    OperationKey,
    _Instruction,
    _Join,
    _Spawn,
    _Split,
    _Stop,
    _Take,
    _Token,
    _Work,
)
from analyzer.calibration.reaching import Reaching

SITE = ("app.py", "f", 1)
FIRST: OperationKey = ((), 0)


def take(target: str, op: str = "call") -> _Take:
    return _Take(FIRST, op, SITE, target, None)


def token(target: str) -> _Token:
    return ("call", SITE, target)


def known(code: Sequence[_Instruction], labels: int) -> set[str]:
    """Return the targets among some steps."""
    reaching = Reaching(code)
    names = {one.target for one in code if isinstance(one, _Take) and one.op == "call"}
    found = set()
    for name in names:
        left = reaching.left([token(name)])
        assert left is not None
        if reaching.shown(left[0]) & labels:
            found.add(name)
    return found


def started(task: Sequence[_Instruction], behind: Sequence[_Instruction]) -> list[_Instruction]:
    """Return a program that starts a task and goes on."""
    return [_Spawn(FIRST, len(task) + 2), *task, _Stop(), *behind]


WAITED = _Join((FIRST,), early=False)


@pytest.mark.parametrize(
    ("code", "may", "must"),
    [
        pytest.param([take("a"), _Work(((), 1)), take("b")], {"a", "b"}, {"a", "b"}, id="one-by-one"),
        pytest.param([_Split([1, 3]), take("a"), take("b"), take("b")], {"a", "b"}, {"b"}, id="branches"),
        pytest.param(
            [take("a"), _Split([0, 2]), take("b")], {"a", "b"}, {"a", "b"}, id="loop-of-one-or-more"
        ),
        pytest.param([_Split([1, 3]), take("a"), _Split([0]), take("b")], {"a", "b"}, {"b"}, id="loop"),
        pytest.param(started([take("a")], [take("b"), WAITED]), {"a", "b"}, {"a", "b"}, id="waited-for"),
        pytest.param(started([take("a")], [take("b")]), {"a", "b"}, {"b"}, id="left-behind"),
        pytest.param(
            started([take("a")], [_Join((FIRST,), early=True), take("b")]), {"a", "b"}, {"b"}, id="early"
        ),
        pytest.param(
            started([take("a")], [_Split([4, 5]), WAITED, take("b")]),
            {"a", "b"},
            {"b"},
            id="perhaps-waited-for",
        ),
    ],
)
def test_what_comes(code: list[_Instruction], may: set[str], must: set[str]) -> None:
    reaching = Reaching(code)
    assert known(code, reaching.may[0]) == may
    assert known(code, reaching.must[0]) == must
    assert (reaching.may[len(code)], reaching.must[len(code)]) == (0, 0)


def test_steps_that_are_left() -> None:
    """Waits are none; a step that is nowhere in the program leaves nothing to say."""
    reaching = Reaching([take("a"), take("", "get"), take("b")])
    left = reaching.left([token("a"), ("get", None, 1), token("b")])
    assert left is not None
    assert [one.bit_count() for one in left] == [2, 1, 1, 0]
    assert reaching.left([token("c")]) is None
