"""Work after the response is worth knowing about, and no error."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, endpoint_source

from analyzer.static import translate


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("comm.respond(1)\ncomm.call('B', '/b/').get()", "call B/b/ in line 8"),
        ("comm.respond(1)\ntotal = sum(range(10))", "local work from line 8 on"),
        ("f = comm.call('B', '/b/')\ncomm.respond(1)\nf.get()", "get in line 9"),
        ("def answer(c):\n    c.respond(1)\nanswer(comm)\ncomm.call('B', '/b/')", "call B/b/ in line 10"),
    ],
    ids=["operation", "local-work", "late-get", "response-in-a-helper"],
)
def test_work_after_the_response_is_mentioned(tmp_path: Path, body: str, words: str) -> None:
    """The finding stands at the response, says what follows, and does not prevent a model."""
    application = analyse_files(tmp_path, app=endpoint_source(body))
    (found,) = application.diagnostics
    assert (found.code, found.severity) == ("MUP022", "info")
    assert words in found.message
    assert "respond" in (application.root / found.file).read_text().splitlines()[found.line - 1]
    translate(application, name="x")


@pytest.mark.parametrize(
    "body",
    [
        "comm.respond(1)",
        "comm.respond(1)\nreturn",
        "if comm.params:\n    comm.respond(1)\n    return\ncomm.respond(2)",
    ],
    ids=["last", "return", "branches"],
)
def test_a_response_at_the_end_is_not(tmp_path: Path, body: str) -> None:
    """Returning is no work."""
    assert analyse_files(tmp_path, app=endpoint_source(body)).diagnostics == ()
