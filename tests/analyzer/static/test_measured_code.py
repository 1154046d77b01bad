"""What a log is of: code without the think times it states, and the runtime of the service."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS, analyse_files

from analyzer.static.measured_code import difference, fingerprints

SERVICES = (
    HEAD
    + """
PAUSE = 0.5
LONG = 2 * PAUSE
class A(MS):
    runtime = "thread"
    @EP("/a/")
    def a(self, comm):
        comm.respond(1)
class User(Client):
    slow = 3.0
    async def scenario(self, comm):
        await self.think(0.1, "exponential")
        await self.think(PAUSE)
        await self.look(comm)
        await self.think(self.slow)
        await self.think(LONG)
        for _ in range(2):
            await comm.call("A", "/a/")
    async def look(self, comm):
        await self.think(0.25)
"""
    + OTHERS
)


def why(tmp_path: Path, *changes: tuple[str, str]) -> dict[str, str]:
    """Return what differs after changes of the source, by label."""
    text = SERVICES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    before, after = (
        fingerprints(analyse_files(tmp_path / name, app=source))
        for name, source in (("1", SERVICES), ("2", text))
    )
    assert before.keys() == after.keys()
    return {label: reason for label, mark in after.items() if (reason := difference(before[label], mark))}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("think(0.1,", "think(7,", id="number"),
        pytest.param('"exponential"', '"constant"', id="distribution"),
        pytest.param("slow = 3.0", "slow = 1.5", id="constant-of-the-class"),
        pytest.param("think(0.25)", "think(0.75)", id="in-a-helper"),
    ],
)
def test_other_think_times_are_the_same_code(tmp_path: Path, old: str, new: str) -> None:
    """A model takes them from the source, so that a log of others is still good."""
    assert why(tmp_path, (old, new)) == {}


def test_a_named_think_time_is_left_out(tmp_path: Path) -> None:
    """If nothing else is made of the name."""
    plain = SERVICES.replace("LONG = 2 * PAUSE\n", "").replace("        await self.think(LONG)\n", "")
    before, after = (
        fingerprints(analyse_files(tmp_path / name, app=source))
        for name, source in (("1", plain), ("2", plain.replace("PAUSE = 0.5", "PAUSE = 4")))
    )
    assert before != after
    assert not any(difference(before[label], after[label]) for label in after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("think(0.1, ", "think(0, ", id="no-think-time"),
        pytest.param("range(2)", "range(3)", id="another-number"),
        pytest.param("PAUSE = 0.5", "PAUSE = 4", id="number-of-which-another-is-made"),
        pytest.param("PAUSE = 0.5", "PAUSE = open('p').read()", id="no-constant-any-more"),
        pytest.param("await self.think(0.25)", "await comm.call('A', '/a/')", id="a-call-instead"),
    ],
)
def test_everything_else_counts(tmp_path: Path, old: str, new: str) -> None:
    assert why(tmp_path, (old, new)) == {"User.scenario": "changed since the log was written"}


def test_another_runtime_is_noticed(tmp_path: Path) -> None:
    """The code is the same, what it costs is not."""
    assert why(tmp_path, ('runtime = "thread"', 'runtime = "process"')) == {
        "A/a/": "ran in the runtime thread when the log was written, now it is process"
    }


def test_marks_of_older_versions_are_of_code_alone() -> None:
    assert difference("abc", "abc@thread") == ""
    assert difference("abd", "abc@thread") == "changed since the log was written"
    assert difference("abc", "abc~def") == ""
    assert difference("abd", "abc~def") == "changed since the log was written"
