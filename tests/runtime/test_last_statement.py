"""An answer is held back only if nothing can happen between it and the endpoint's end."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from mup.runtime.endpoint.last_statement import returns_next

Respond = Callable[..., None]


def last(respond: Respond) -> None:
    respond({"a": list(range(3))})


def returned(respond: Respond) -> None:
    return respond()


def in_branches(respond: Respond) -> None:
    if respond:
        respond()
    else:
        respond(1)


def after_a_branch(respond: Respond) -> None:
    if not respond:
        return
    respond()


def work_follows(respond: Respond) -> None:
    respond()
    sum(range(3))


def with_finally(respond: Respond) -> None:
    try:
        respond()
    finally:
        sum(range(3))


def in_with(respond: Respond) -> None:
    with nullcontext():
        respond()


def in_a_loop(respond: Respond) -> None:
    for _ in range(1):
        respond()


def in_an_expression(respond: Respond) -> None:
    sum([respond() is None])


def in_a_helper(respond: Respond) -> None:
    last(respond)


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapper(respond: Respond) -> None:
        function(respond)

    return wrapper


def run(endpoint: Callable[[Respond], Any]) -> bool:
    """Call an endpoint as a worker does; return what is found out when it answers."""
    found = []

    def respond(*_: object) -> None:
        found.append(returns_next(sys._getframe(1), run.__code__))

    endpoint(respond)
    return found[0]


@pytest.fixture(autouse=True)
def untraced() -> Any:
    """No measurement of coverage, which sees every return."""
    trace = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(trace)


@pytest.mark.parametrize(
    ("endpoint", "held"),
    [
        (last, True),
        (returned, True),
        (in_branches, True),
        (after_a_branch, True),
        (work_follows, False),
        (with_finally, False),
        (in_with, False),
        (in_a_loop, False),
        (in_an_expression, False),
        (in_a_helper, False),
        (decorated(last), False),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_answers_that_come_last(endpoint: Callable[[Respond], None], held: bool) -> None:
    """Only those behind which the function returns, straight to the worker."""
    assert [run(endpoint), run(endpoint)] == [held, held]


def test_of_coroutines() -> None:
    """The same for ``async def``."""

    async def at_the_end(respond: Respond) -> None:
        await asyncio.sleep(0)
        respond()

    async def before_more(respond: Respond) -> None:
        respond()
        await asyncio.sleep(0)

    async def run_both() -> list[bool]:
        found = []

        def respond() -> None:
            found.append(returns_next(sys._getframe(1), run_both.__code__))

        await at_the_end(respond)
        await before_more(respond)
        return found

    assert asyncio.run(run_both()) == [True, False]


def test_a_debugger_may_stop_in_between() -> None:
    """Then the answer is sent at once."""
    sys.settrace(lambda *_: None)
    assert not run(last)
