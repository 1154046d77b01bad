"""What decorators and loops of `tenacity` and `backoff` make of the paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

IMPORTS = """
import backoff
import tenacity
from tenacity import AsyncRetrying, Retrying, retry, retry_if_exception_type, retry_if_result, stop_after_attempt
"""
ASK = "\ndef ask(comm):\n    return comm.call('B', '/b/').get()\n"
CAUGHT = "try:\n    x = ask(comm)\nexcept CallError:\n    await_q = comm.query('db', 'q', 'c', {}).get()"
AGAIN = "loop[call:B/b/ | call:B/b/ get:0]"


def paths(tmp_path: Path, decorator: str, body: str = CAUGHT) -> list[str]:
    source = endpoint_source(f"{body}\ncomm.respond(1)", module=f"{IMPORTS}@{decorator}{ASK}")
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    return outline(application)


@pytest.mark.parametrize(
    "decorator",
    [
        "retry(reraise=True)",
        "tenacity.retry(stop=stop_after_attempt(3), retry=retry_if_exception_type(CallError), reraise=True)",
        "backoff.on_exception(backoff.expo, CallError, max_tries=3)",
    ],
)
def test_the_last_error_is_caught_where_the_call_is(tmp_path: Path, decorator: str) -> None:
    found = paths(tmp_path, decorator)
    assert f"{AGAIN} query:db.q get:1 respond" in found
    assert f"{AGAIN} respond" in found


@pytest.mark.parametrize("decorator", ["retry", "retry(stop=stop_after_attempt(2))"])
def test_an_error_that_wraps_the_last_is_not_that(tmp_path: Path, decorator: str) -> None:
    """It is no CallError, but tenacity's own."""
    found = paths(tmp_path, decorator)
    assert f"{AGAIN} raise" in found
    assert not [path for path in found if "query" in path]


def test_results_are_asked_for_again(tmp_path: Path) -> None:
    """Only where they are looked at; exceptions are let through by backoff then."""
    asked = "loop[call:B/b/ get:0] respond"
    assert paths(tmp_path, "backoff.on_predicate(backoff.fibo, max_tries=3)", "x = ask(comm)") == [asked]


@pytest.mark.parametrize(
    "made",
    [
        "for attempt in Retrying():\n    with attempt:\n        x = comm.call('B', '/b/').get()",
        "again = Retrying(stop=stop_after_attempt(3))\nx = again(ask, comm)",
    ],
    ids=["attempts", "call"],
)
def test_attempts_are_iterations(tmp_path: Path, made: str) -> None:
    source = endpoint_source(f"{made}\ncomm.respond(1)", module=f"{IMPORTS}{ASK}")
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    found = [path for path in outline(application) if path.endswith("respond")]
    assert len(found) == 1
    assert found[0].startswith("loop[call:B/b/")


@pytest.mark.parametrize(
    "decorator",
    [
        "retry(retry_error_callback=lambda state: None)",
        "retry(retry_error_cls=ValueError)",
        "backoff.on_exception(backoff.expo, CallError, raise_on_giveup=False)",
    ],
)
def test_what_ends_otherwise_is_not_followed(tmp_path: Path, decorator: str) -> None:
    source = endpoint_source("x = ask(comm)\ncomm.respond(1)", module=f"{IMPORTS}@{decorator}{ASK}")
    assert codes(analyse_files(tmp_path, app=source)) == ["MUP030"]
