"""How is the effect of a change written, for people and as Markdown?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mup.cli.models.difference_formats import cell, code, place
from mup.cli.output.figures import number, span

if TYPE_CHECKING:
    from analyzer.effect.paired import Changed, Effect, FigureKey, Range
    from analyzer.effect.shares import Share
    from mup.cli.models.effect_of_change import EffectOfChange

__all__ = ["condition_lines", "effect_lines", "effect_markdown", "show_effect"]

HEADINGS = ("figure", "before", "95 %", "after", "95 %", "change", "95 %")
SHARES = ("of mean", "of p95", "mean", "95 %", "p95", "95 %", "what", "place")
SHARES_TITLE = "what each difference contributes: its share of the change, and its effect alone"
SHOWN = ("mean", "p95", "capacity")


def show_effect(found: EffectOfChange) -> None:
    """Print the effect as tables."""
    from mup.cli.output.display import console, say
    from mup.cli.output.tables import print_table

    out = console()
    if found.effect is not None:
        title = f"effect with {found.load} (ms; capacity in cycles/s)"
        print_table(out, title, list(HEADINGS), _rows(found.effect))
        if len(found.shares) > 1 or any(share.differences for share in found.shares):
            print_table(out, SHARES_TITLE, list(SHARES), _shares(found.shares), words=("what",))
    for line in effect_lines(found):
        say(out, line)


def effect_lines(found: EffectOfChange) -> list[str]:
    """Return remarks and conditions as sentences."""
    return [*found.remarks, *condition_lines(found)]


def condition_lines(found: EffectOfChange) -> list[str]:
    """Return a sentence for each condition."""
    lines = []
    for one in found.judged:
        if found.effect is None:
            verdict, how = "holds", "nothing changed"
        elif one.changed is None:
            verdict, how = "not known", "there is no such figure in both versions"
        else:
            relative = one.changed.relative
            verdict = "FAILS" if one.fails else "holds"
            how = f"{_percent(relative.mean)} ({_percent(relative.low)} .. {_percent(relative.high)})"
        lines.append(f"{verdict}: {one.condition.text}: {how}")
    return lines


def effect_markdown(found: EffectOfChange) -> str:
    """Return the part of a comment that is about figures."""
    lines: list[str] = []
    if found.effect is not None:
        how = "measured" if found.measured else "with the times of the base's model"
        lines += [
            "",
            f"With {found.load}, {how} (ms; capacity in cycles/s; 95 % intervals in brackets):",
            "",
            "| figure | before | after | change |",
            "|---|---|---|---|",
        ]
        for name, before, b_span, after, a_span, change, c_span in _rows(found.effect):
            lines.append(
                f"| {cell(name)} | {before} ({b_span}) | {after} ({a_span}) | **{change}** ({c_span}) |"
            )
        if found.shares:
            title = f"{SHARES_TITLE[0].upper()}{SHARES_TITLE[1:]}:"
            lines += ["", title, "", f"| {' | '.join(SHARES)} |", f"|{'---|' * len(SHARES)}"]
            for *figures, what, spot in _shares(found.shares):
                lines.append(f"| {' | '.join(figures)} | {cell(what)} | {code(spot) if spot else ''} |")
    effects = effect_lines(found)
    if effects:
        lines += ["", *(f"- {cell(line)}" for line in effects)]
    return "\n".join(lines) + "\n" if lines else ""


def _rows(effect: Effect) -> list[list[str]]:
    """Return the figures of the cycle, then those of endpoints that changed beyond doubt."""
    rows = [
        _row(key, changed) for key, changed in effect.figures.items() if not key.name and key.figure in SHOWN
    ]
    rows.sort(key=lambda row: [*SHOWN].index(row[0]))
    rows += [
        _row(key, changed)
        for key, changed in effect.figures.items()
        if key.name and key.figure in SHOWN and changed.sure
    ]
    return rows


def _row(key: FigureKey, changed: Changed) -> list[str]:
    factor = 1.0 if key.figure == "capacity" else 1e3

    def both(value: Range) -> tuple[str, str]:
        low, high = factor * value.low, factor * value.high
        return number(factor * value.mean, (high - low) / 2), span(low, high)

    relative = changed.relative
    change = _percent(relative.mean), f"{_percent(relative.low)} .. {_percent(relative.high)}"
    return [key.label, *both(changed.before), *both(changed.after), *change]


def _shares(found: Sequence[Share]) -> list[list[str]]:
    rows = []
    for share in found:
        parts = ["-" if part is None else f"{part:.0%}" for part in share.share.values()]
        effects = []
        for figure, value in share.effect.items():
            low, high = share.interval[figure]
            effects += [_percent(value), f"{_percent(low)} .. {_percent(high)}"]
        texts = "; ".join(dict.fromkeys(one.text for one in share.differences))
        places = ", ".join(dict.fromkeys(place(one) for one in share.differences if one.file))
        rows.append([*parts, *effects, texts, places])
    return rows


def _percent(value: float) -> str:
    text = f"{value:+.1%}"
    return text if text.strip("+-0.%") else "0.0%"
