"""Tests that take long, in processor time, which does not depend on other load."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Generator

import pytest

LONG = 3.0
"""Seconds of a test and what it started, beyond which it should be marked ``slow``."""

used_before = pytest.StashKey[float]()


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the clock."""
    item.stash[used_before] = _used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say what setting up, running or tearing down has used."""
    report = yield
    used = _used()
    report.processor_seconds = used - item.stash[used_before]
    item.stash[used_before] = used
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that should be marked."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if (
                isinstance(report, pytest.TestReport)
                and report.when == "call"
                and "slow" not in report.keywords
            ):
                seconds[report.nodeid] += report.processor_seconds
    long = [(name, used) for name, used in seconds.most_common() if used > LONG]
    if long:
        terminalreporter.section("long, and not marked as slow")
        for name, used in long:
            terminalreporter.line(f"{used:6.1f} s of processor time: {name}")
