"""What an exploratory run prints while it is going on, and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from mup.cli.output.display import console, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from analyzer.calibration.explore import ExploreSettings, Progress
    from analyzer.calibration.rundir import AnswerInfo, PathUse, QuestionInfo, RunInfo, Width

__all__ = ["exploration_document", "exploring", "print_exploration"]


@contextmanager
def exploring(settings: ExploreSettings) -> Iterator[Callable[[Progress], None]]:
    """Show what is known so far on stderr: a table on a terminal, a line per round elsewhere.

    The table is drawn between rounds only, for a display that moves would use the processors that are
    being measured.
    """
    from rich.live import Live

    out = console(stderr=True)
    if not out.is_terminal:
        shown = ""

        def tell(progress: Progress) -> None:
            nonlocal shown
            # What a look showed is said once; the rounds that follow from it are short.
            say(out, _line(progress, shown))
            shown = progress.question

        yield tell
        return
    quiet = settings.idle_seconds + settings.warmup_seconds
    start = f"exploring: the services start; then {quiet:g} s of silence and warm-up"
    with Live(start, console=out, auto_refresh=False, transient=True) as live:
        yield lambda progress: live.update(_picture(progress, out.width), refresh=True)


def _line(progress: Progress, shown: str = "") -> str:
    state = progress.state
    text = f"{progress.seconds:.0f} of at most {progress.limit:g} s: {progress.phase} round"
    if progress.note:
        text += f" is void ({progress.note})"
    if progress.question:
        return f"{text}; {progress.question}" if progress.question != shown else text
    reached = "too few rounds" if state.worst is None else f"+-{state.worst:.2%}"
    if state.widest:
        reached += f" ({state.widest})"
    return f"{text}, widest interval {reached}, {state.seen} of {state.total} paths"


def _picture(progress: Progress, width: int) -> RenderableType:
    from rich.console import Group

    from mup.cli.output.tables import table

    state = progress.state
    lines = [
        progress.question
        or f"exploring until every interval is within {progress.goal:.2%}, at most {progress.limit:g} s",
        f"{progress.seconds:.0f} s under load, speed {progress.speed:.0f} units/s per core",
    ]
    if progress.void:
        lines.append(
            f"{progress.void} rounds do not count" + (f"; the last: {progress.note}" if progress.note else "")
        )
    rows = _rows(state.widths, state.cold_widths, state.paths)
    return Group(*lines, table(HEADINGS, rows, width=width))


HEADINGS = ("endpoint", "mean ms", "+- 95 %", "executions", "with think ms", "think +- 95 %", "paths seen")


def _rows(
    widths: Mapping[str, Width], cold: Mapping[str, Width], paths: Mapping[str, Any]
) -> list[list[str]]:
    rows = []
    for label in sorted({*widths, *cold, *paths}):
        uses = paths.get(label, ())
        seen = sum(1 for use in uses if use.executions)
        rows.append(
            [
                label,
                *_cells(widths.get(label)),
                str(widths[label].executions) if label in widths else "",
                *_cells(cold.get(label)),
                f"{seen} of {len(uses)}" if uses else "",
            ]
        )
    return rows


def _cells(width: Width | None) -> tuple[str, str]:
    if width is None:
        return "", ""
    half = "?" if width.half_width is None else f"{width.half_width / width.mean:.2%}"
    return f"{width.mean * 1e3:.3f}", half


def print_exploration(info: RunInfo) -> None:
    """Print what a run found."""
    from mup.cli.output.tables import print_table

    out = console()
    say(out, f"explored for {info.observed_seconds:.0f} s; stopped because {info.stop}")
    print_table(out, "", HEADINGS, _rows(info.widths, info.cold_widths, info.paths))
    if info.question is not None:
        print_table(out, "", ANSWERS, [_answer_row(answer) for answer in info.question.answers])
        say(out, _looks(info.question))
    for label, uses in info.paths.items():
        for use in uses:
            if not use.executions:
                say(out, f"never seen: {label}: {use.path}")
    for phase, factor in _scales(info).items():
        if factor not in (0.0, 1.0):
            say(out, f"think times in {phase} rounds: x {factor:.3g}")
    for text in _remarks(info):
        say(out, f"warning: {text}")


ANSWERS = ("prediction of", "figure", "about", "+- 95 %", "explore to", "beyond exploring", "decided by")


def _answer_row(answer: AnswerInfo) -> list[str]:
    seconds = answer.figure == "response_time"
    return [
        answer.scenario,
        "mean response time" if seconds else answer.figure,
        f"{answer.mean * 1e3:.3g} ms" if seconds else f"{answer.mean:.3g} /s",
        f"{answer.half_width:.2%}",
        f"{answer.goal:.2%}",
        f"{answer.rest:.2%}" if answer.rest else "",
        answer.decides,
    ]


def _looks(question: QuestionInfo) -> str:
    rounds = ", ".join(f"{n} {phase}" for phase, n in question.rounds.items())
    users = f" (of {question.users} users)" if question.rounds.get("burst") and question.users else ""
    return f"rounds: {rounds}{users}; {question.looks} looks took {question.look_seconds:.1f} s"


def exploration_document(info: RunInfo) -> dict[str, Any]:
    """Return what a run found, as JSON."""
    void = [v for part in info.parts for v in part.void]
    speeds = [w.speed for w in info.windows if w.speed is not None]
    return {
        "observed_seconds": info.observed_seconds,
        "complete": info.complete,
        "stop": info.stop,
        "rounds": {
            phase: sum(1 for w in info.windows if w.phase == phase) for phase in ("hot", "cold", "burst")
        },
        "think_scale": _scales(info),
        "void": [{"phase": v.window.phase, "reason": v.reason} for v in void],
        "speed": sum(speeds) / len(speeds) if speeds else None,
        "foreign_cpu": info.foreign_cpu,
        "endpoints": {
            label: {**_width_document(width), "cold": _width_document(info.cold_widths.get(label))}
            for label, width in info.widths.items()
        },
        "paths": {label: [_path_document(use) for use in uses] for label, uses in info.paths.items()},
        "warnings": _remarks(info),
        **({} if info.question is None else {"question": msgspec.to_builtins(info.question)}),
    }


def _width_document(width: Width | None) -> dict[str, Any]:
    if width is None:
        return {}
    return {
        "mean": width.mean,
        "ci95": width.half_width,
        "executions": width.executions,
        "batches": width.batches,
    }


def _path_document(use: PathUse) -> dict[str, Any]:
    return {
        "path": use.path,
        "executions": use.executions,
        "hot": _width_document(use.hot),
        "cold": _width_document(use.cold),
    }


def _scales(info: RunInfo) -> dict[str, float]:
    return {w.phase: w.think_scale for w in info.windows if w.phase != "hot"}


def _remarks(info: RunInfo) -> list[str]:
    found = list(info.warnings)
    unmatched = sum(info.unmatched.values())
    if unmatched:
        found.append(f"{unmatched} executions fit no path of the source: {', '.join(info.unmatched)}")
    return found
