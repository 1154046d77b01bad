"""What fails behind a response, and is caught by a handler that responds: the framework refuses that response."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, endpoint_source

from analyzer.static import Application


def analysed(folder: Path, body: str) -> Application:
    return analyse_files(folder, app=endpoint_source(body))


def outlines(application: Application) -> list[str]:
    return sorted(" ".join(o.op for o in path.operations) for path in application.endpoint("A/a/").paths)


def codes(application: Application) -> list[str]:
    return [d.code for d in application.diagnostics if d.severity != "info"]


def test_a_call_behind_the_response(tmp_path: Path) -> None:
    """The request ends where the handler responds: this is no path, and a warning says so."""
    found = analysed(
        tmp_path,
        """
try:
    comm.respond(comm.call("B", "/b/").get())
    comm.call("B", "/b/")
except Exception:
    comm.respond("later", 503)
""",
    )
    assert codes(found) == ["MUP023"]
    assert outlines(found) == ["call get respond", "call get respond call", "call respond", "respond"]


@pytest.mark.parametrize(
    "handler",
    [
        "comm.respond(2)\n    comm.respond(3)",
        "pass\ncomm.respond(2)",
        "pass\nfinally:\n    comm.respond(2)",
    ],
)
def test_two_responses_that_no_handler_of_the_first_gives(tmp_path: Path, handler: str) -> None:
    """Inside of one handler, behind it, and on the way out: these are mistakes as before."""
    found = analysed(
        tmp_path, f'try:\n    comm.respond(comm.call("B", "/b/").get())\nexcept Exception:\n    {handler}'
    )
    assert "MUP021" in codes(found)


def test_what_a_handler_does_before_it_responds_again(tmp_path: Path) -> None:
    """It happens, but on no way that goes on to the end of the method."""
    found = analysed(
        tmp_path,
        """
try:
    comm.respond(1)
    comm.call("B", "/b/").get()
except Exception:
    comm.call("B", "/b/").get()
    comm.respond("later", 503)
""",
    )
    assert codes(found) == ["MUP023"]
    # The first: a response that cannot be sent.
    assert outlines(found) == ["call get respond", "respond call get"]


def test_who_catches_the_second_response_goes_on(tmp_path: Path) -> None:
    """It raises an error of the framework, which a handler around may catch."""
    found = analysed(
        tmp_path,
        """
from mup.errors import CallError, MupError
try:
    try:
        comm.respond(1)
        comm.call("B", "/b/").get()
    except CallError:
        comm.respond("later", 503)
except MupError:
    comm.call("B", "/b/")
""",
    )
    assert codes(found) == ["MUP023"]
    assert "respond call get call" in outlines(found)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            """
try:
    comm.respond(1)
    comm.call("B", "/b/").get()
except Exception:
    pass
comm.respond(2)
""",
            id="one",
        ),
        pytest.param(
            """
try:
    try:
        comm.respond(1)
        comm.call("B", "/b/")
    except ValueError:
        comm.call("B", "/b/").get()
except Exception:
    pass
comm.respond(2)
""",
            id="left-by-a-failure",
        ),
    ],
)
def test_a_response_behind_the_handlers(tmp_path: Path, body: str) -> None:
    """Once handlers have ended, another response is no consequence of what they handled."""
    found = analysed(tmp_path, body)
    assert "MUP021" in codes(found)
    assert "MUP023" not in codes(found)


def test_a_try_inside_of_such_a_handler(tmp_path: Path) -> None:
    """When its own handler has ended, what failed behind the response is still being handled."""
    found = analysed(
        tmp_path,
        """
try:
    comm.respond(1)
    comm.call("B", "/b/").get()
except Exception:
    try:
        comm.call("B", "/b/").get()
    except Exception:
        pass
    comm.respond("later", 503)
""",
    )
    assert codes(found) == ["MUP023"]
