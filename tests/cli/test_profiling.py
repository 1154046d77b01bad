"""A machine without a profile is measured first; where it cannot be, work goes on."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from analyzer.host.profile import current_profile, default_path
from mup.cli.measurements.profiling import ensure_profile


def said(*, wanted: bool = True) -> str:
    """Return what `ensure_profile` prints."""
    text = io.StringIO()
    ensure_profile(Console(file=text, width=400), wanted=wanted)
    return text.getvalue()


def test_a_measured_machine_is_left_alone() -> None:
    """Nothing is said, nothing is written."""
    before = default_path().stat().st_mtime_ns
    assert said() == ""
    assert default_path().stat().st_mtime_ns == before


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without a profile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not current_profile()[0].measured


@pytest.mark.usefixtures("unknown")
def test_nothing_is_measured_where_that_is_switched_off() -> None:
    """``--no-profile-host``."""
    assert said(wanted=False) == ""
    assert not default_path().exists()


@pytest.mark.usefixtures("unknown")
def test_a_machine_that_cannot_be_measured_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here: a system that cannot bind a process to a core."""
    monkeypatch.delattr(os, "sched_setaffinity")
    text = said()
    assert "no profile of this machine" in text
    assert "needs Linux" in text
    assert not default_path().exists()
