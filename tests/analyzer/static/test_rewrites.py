"""What replaces code with a finding is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS, analyse_files, endpoint_source

from analyzer.static.diagnostics import CODES
from analyzer.static.rewrites import REWRITES

NO_CODE_HELPS = {"MUP001", "MUP002", "MUP007", "MUP013", "MUP070", "MUP071", "MUP099"}
"""About files, names in mup.toml, and the analyzer itself."""


def found(folder: Path, example: str) -> set[str]:
    """Return the codes of an example's findings."""
    folder.mkdir()
    if "class " not in example:
        text = endpoint_source(example)
    else:
        text = HEAD + example + ("\n" + OTHERS if '"B"' in example else "\n")
    return {diagnostic.code for diagnostic in analyse_files(folder, app=text).diagnostics}


@pytest.mark.parametrize("code", REWRITES)
def test_rewrite_is_accepted(code: str, tmp_path: Path) -> None:
    """The example has the finding, and what is to replace it has none of any kind."""
    assert code in found(tmp_path / "refused", REWRITES[code].refused)
    assert found(tmp_path / "accepted", REWRITES[code].accepted) == set()


def test_every_code_has_a_rewrite() -> None:
    """Unless no code could be one."""
    assert set(CODES) - set(REWRITES) == NO_CODE_HELPS
