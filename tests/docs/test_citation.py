"""What is cited is the version that is here."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_citation_names_this_version() -> None:
    """The file that programs read and the page that people read say what pyproject.toml says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = yaml.safe_load((ROOT / "docs" / "CITATION.cff").read_text())
    page = (ROOT / "docs" / "start" / "researcher.md").read_text()
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]
    assert cited["title"] in " ".join(page.split())
    assert f"version = {{{project['version']}}}" in page
