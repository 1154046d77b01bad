"""Running commands of ``mup`` in this process: what only refuses or computes needs none of its own."""

from __future__ import annotations

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest

from mup.cli.main import main


def completed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command; an error that is none of mup's is not caught, as its traceback would be seen."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return subprocess.CompletedProcess(arguments, caught.value.code, out.getvalue(), err.getvalue())
