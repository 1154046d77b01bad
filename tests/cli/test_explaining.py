"""`mup paths --explain CODE`."""

from __future__ import annotations

import pytest
from command_line import run

from analyzer.static.diagnostics import CODES
from mup.cli.models.explaining import explanation


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str) -> None:
    """In words with its severity, and in no words about another code's heading."""
    text = explanation(code)
    assert text.startswith(f"{code} ")
    assert f"({CODES[code][0]})" in text.splitlines()[0]
    assert "## " not in text


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    """The meaning, what is refused and what is accepted; in any case of letters, without a project."""
    code, out, err = run(capsys, "paths", "no/such/folder", "--explain", "mup021")
    assert (code, err) == (0, "")
    assert out.startswith("MUP021 an endpoint can respond twice (error)\n")
    assert out.index("Refused:") < out.index("Accepted:") < out.index("        return\n")


def test_no_such_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A code that does not exist is answered with a similar one."""
    code, _, err = run(capsys, "paths", "--explain", "MUP029")
    assert code == 2
    assert "no finding has the code 'MUP029'" in err
    assert "did you mean 'MUP0" in err
