"""What decorators of the source tree make of a function."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.decorators import Decorators

MODULE = """
import functools

def twice(function):
    @functools.wraps(function)
    def wrapper(*args):
        return (function(*args), function(*args))
    return wrapper

def tagged(text):
    def decorate(function):
        def wrapper(x):
            return text + function(x)
        return wrapper
    return decorate

@twice
def one(x):
    return x

@tagged("<")
def name(x):
    return x
"""


@pytest.mark.parametrize(("code", "expected"), [("one(1)", (1, 1)), ("name('a')", "<a")])
def test_a_wrapper_runs_instead(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", MODULE)
    assert isinstance(done.walk.decorators, Decorators)
    assert done.value.python() == (True, expected)


def test_what_leaves_a_function_alone(probe: Probe) -> None:
    decorators = probe("return 1", MODULE).walk.decorators
    assert decorators.transparent("mup.EP")
    assert decorators.transparent("builtins.property")
    assert not decorators.transparent("functools.lru_cache")


AGAIN = """
import functools
from mup.errors import CallError
def again(times, on):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args):
            for attempt in range(times):
                try:
                    return function(*args)
                except on:
                    if attempt == times - 1:
                        raise
        return wrapper
    return decorate
"""


def test_a_nested_function_is_wrapped_where_it_is_defined(probe: Probe) -> None:
    body = "@again(2, on=CallError)\ndef ask():\n    return comm.call('B', '/b/').get()\nreturn ask()"
    done = probe(body, AGAIN)
    assert done.ways == [
        "callB/b/ get callB/b/ get raise",
        "callB/b/ get callB/b/ get return",
        "callB/b/ get return",
    ]
    assert done.codes == []
    assert probe(body.replace("again(2, on=CallError)", "unknown.again(2)"), AGAIN).codes == ["MUP030"]
