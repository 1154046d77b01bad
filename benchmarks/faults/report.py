"""Tables of what was injected and what came of it, in Markdown: documentation has them as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from faults.buyers import BROKEN
from faults.crashes import Outcome
from faults.system import Process

__all__ = ["Weight", "crash_table", "statuses_in_words", "weigh", "weights_in_words"]

ROLES = ("run", "registry", "front", "worker", "other")
Weight = dict[str, tuple[int, int, float]]
"""By role: how many processes, their descriptors, their memory in MB."""


def weigh(processes: Sequence[Process]) -> Weight:
    """Return what processes weigh, by role."""
    found = {}
    for role in ROLES:
        those = [process for process in processes if process.role == role]
        if those:
            memory = sum(process.memory for process in those) / 1024
            found[role] = len(those), sum(process.descriptors for process in those), memory
    return found


def weights_in_words(before: Weight, after: Weight) -> str:
    """Return both in lines."""
    lines = ["| processes | number | descriptors | memory, MB |", "|---|---|---|---|"]
    for role in before:
        (n, fds, mb), (m, fds_after, mb_after) = before[role], after.get(role, (0, 0, 0.0))
        lines.append(f"| {role} | {n} -> {m} | {fds} -> {fds_after} | {mb:.1f} -> {mb_after:.1f} |")
    return "\n".join(lines)


def statuses_in_words(statuses: Counter[int]) -> str:
    """Return ``200: 812, 502: 3``; what had no answer comes last."""
    words = [f"{status}: {statuses[status]}" for status in sorted(statuses) if status != BROKEN]
    if statuses[BROKEN]:
        words.append(f"connection broke: {statuses[BROKEN]}")
    return ", ".join(words)


def crash_table(outcomes: Sequence[Outcome]) -> str:
    """Return one line per kind of crash; those that happened several times are added up."""
    head = "| fault | times | back after, s | what users saw, by status | recovery, s |"
    lines = [head, "|---|---|---|---|---|"]
    for name in dict.fromkeys(outcome.name for outcome in outcomes):
        those = [outcome for outcome in outcomes if outcome.name == name]
        statuses = sum((outcome.statuses for outcome in those), Counter[int]())
        recovery = max(outcome.recovery for outcome in those)
        away = max(outcome.away for outcome in those)
        saw = statuses_in_words(statuses)
        lines.append(f"| {name} | {len(those)} | {away:.1f} | {saw} | {recovery:.2f} |")
    return "\n".join(lines)
