"""Compare with an independent simulator on a corpus of layered queueing networks, and its cost.

The corpus (see ``conformance_corpus``) has the figures of ``lqsim``. Every model we can express is simulated
for as long as there, in four independent runs, and every figure of both is compared. Then it is simulated
once more for as long as it takes to be as precise as the corpus is, and the CPU seconds of that run stand
beside those of ``lqsim``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance_corpus import Case, find_corpus, load_cases
from conformance_differences import Differences
from conformance_figures import Pair, Uncompared, compare
from machine import describe

from mup.errors import MupError
from mup.lqn.files import read_model
from mup.lqn.model import Model
from simulator import Result, simulate

SEEDS = (1, 2, 3, 4)
TIMED_SEED = 5
MAX_OUTSIDE = 0.08
"""Share of all figures that may lie outside one joint half-width: intervals miss by design."""

MAX_LENGTHENING = 4.0
WORST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Judged:
    """One figure of both, and the rules it may differ by (see ``conformance_differences``)."""

    pair: Pair
    rules: list[str]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one model compares.

    Attributes:
        judged: Every figure of both.
        uncompared: Those without a counterpart.
        cpu_seconds: Of our runs, for as much simulated time as the corpus (or more, or less).
    """

    judged: list[Judged]
    uncompared: list[Uncompared]
    cpu_seconds: float

    @property
    def explained(self) -> list[Judged]:
        """Figures that differ where the rules differ."""
        return [j for j in self.judged if j.rules and not j.pair.agrees]

    @property
    def wrong(self) -> list[Judged]:
        """Figures that differ although nothing explains it."""
        return [j for j in self.judged if not j.rules and not j.pair.agrees]

    @property
    def touched(self) -> int:
        """How many figures depend on a rule that differs, whether they agree or not."""
        return sum(bool(j.rules) for j in self.judged)

    @property
    def plain(self) -> list[Pair]:
        """Figures in which chance has a part and that no differing rule touches."""
        return [j.pair for j in self.judged if j.pair.random and not j.rules]


@dataclass(frozen=True, slots=True)
class Effort:
    """What it takes to be as precise as the corpus.

    Attributes:
        cpu_seconds: Of the run.
        reached: Its largest relative half-width of a task's throughput.
        events: Timed steps in it.
    """

    cpu_seconds: float
    reached: float
    events: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one model: an agreement and an effort, or the reason why there is none."""

    case: Case
    agreement: Agreement | None = None
    effort: Effort | None = None
    refusal: str = ""


def agreement(model: Model, case: Case, lengthening: float = 1.0, seeds: Sequence[int] = SEEDS) -> Agreement:
    """Simulate a model and compare every figure.

    Args:
        model: As imported.
        case: What it stands for in the corpus.
        lengthening: Simulated time of all runs, as a multiple of that in the corpus.
        seeds: One run each.
    """
    horizon = case.simulated * lengthening / len(seeds)
    start = time.process_time()
    results = [simulate(model, horizon=horizon, seed=seed, activities=True) for seed in seeds]
    spent = time.process_time() - start
    pairs, uncompared = compare(model, results, case.reference)
    differences = Differences(model)
    return Agreement([Judged(p, differences.explain(p)) for p in pairs], uncompared, spent)


def worst_throughput(result: Result, model: Model) -> float:
    """Return the largest relative half-width of the throughput of a task."""
    return max(result.tasks[t.name].throughput.relative for t in model.tasks)


def effort(model: Model, case: Case) -> Effort:
    """Simulate until we are as precise as the corpus; the last run alone counts."""
    horizon = case.simulated / 16
    while True:
        start = time.process_time()
        result = simulate(model, horizon=horizon, seed=TIMED_SEED, activities=True)
        spent = time.process_time() - start
        reached = worst_throughput(result, model)
        if reached <= case.precision:
            return Effort(spent, reached, result.events)
        horizon *= min(16.0, max(1.1, (reached / case.precision) ** 2))


def study(case: Case, *, precision: float | None = None, timed: bool = True) -> Outcome:
    """Return what becomes of one model of the corpus.

    Args:
        case: The model.
        precision: Relative half-width of task throughputs to aim at; None = simulate as long as the corpus.
        timed: Also measure what it takes to be as precise as the corpus.
    """
    try:
        model = read_model(case.file)
    except MupError as error:
        return Outcome(case, refusal=error.message)
    lengthening = 1.0
    if precision is not None:
        lengthening = min(MAX_LENGTHENING, (case.precision / precision) ** 2)
    return Outcome(case, agreement(model, case, lengthening), effort(model, case) if timed else None)


def verdict(outcome: Outcome) -> str:
    """Return one word on a model."""
    if outcome.agreement is None:
        return "refused"
    if outcome.agreement.wrong:
        return "differs"
    return "explained" if outcome.agreement.explained else "agrees"


def table(outcomes: list[Outcome]) -> list[list[str]]:
    """Return the rows of the table, its head first."""
    rows = [
        ["model", "figures", "differ", "of these explained", "outside 1x", "CPU s", "lqsim CPU s", "verdict"]
    ]
    for outcome in outcomes:
        found, cost = outcome.agreement, outcome.effort
        if found is None:
            rows.append([outcome.case.name, *[""] * 5, f"{outcome.case.cpu_seconds:.2f}", "refused"])
            continue
        outside = sum(j.pair.outside for j in found.judged)
        rows.append(
            [
                outcome.case.name,
                str(len(found.judged)),
                str(len(found.explained) + len(found.wrong)),
                str(len(found.explained)),
                str(outside),
                f"{cost.cpu_seconds:.2f}" if cost else "",
                f"{outcome.case.cpu_seconds:.2f}",
                verdict(outcome),
            ]
        )
    return rows


def summary(outcomes: list[Outcome]) -> list[str]:
    """Return the lines below the table."""
    done = [o.agreement for o in outcomes if o.agreement is not None]
    pairs = [j for a in done for j in a.judged]
    lines = []
    verdicts = Counter(verdict(o) for o in outcomes)
    lines.append(
        ", ".join(f"{n} {word}" for word, n in sorted(verdicts.items())) + f" of {len(outcomes)} models"
    )
    explained = sum(len(a.explained) for a in done)
    wrong = sum(len(a.wrong) for a in done)
    touched = sum(a.touched for a in done)
    lines.append(
        f"{len(pairs)} figures compared: {len(pairs) - explained - wrong} agree, {explained} differ where "
        f"the rules differ (which touch {touched}), {wrong} differ for no known reason"
    )
    free = [p for a in done for p in a.plain]
    if free:
        outside = sum(p.outside for p in free)
        lines.append(
            f"of {len(free)} figures that chance has a part in and no differing rule, {outside} "
            f"({100 * outside / len(free):.1f} %) lie outside one joint half-width; "
            f"allowed: {100 * MAX_OUTSIDE:.0f} %"
        )
    rest = Counter(u.why for a in done for u in a.uncompared)
    lines += [f"not compared: {n} ({why})" for why, n in rest.most_common()]
    timed = [(o.case.cpu_seconds, o.effort.cpu_seconds) for o in outcomes if o.effort is not None]
    if timed:
        fewer = sum(ours < theirs for theirs, ours in timed)
        lines.append(
            f"CPU seconds at equal precision: {sum(t[1] for t in timed):.1f} here, "
            f"{sum(t[0] for t in timed):.1f} lqsim; fewer here on {fewer} of {len(timed)} models"
        )
    equal = [(o.case.cpu_seconds, o.agreement.cpu_seconds) for o in outcomes if o.agreement is not None]
    lines.append(
        f"CPU seconds for equal simulated time: {sum(t[1] for t in equal):.1f} here, "
        f"{sum(t[0] for t in equal):.1f} lqsim"
    )
    return lines


def document(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return everything for the JSON output."""
    models = []
    for outcome in outcomes:
        found, cost = outcome.agreement, outcome.effort
        entry: dict[str, Any] = {"name": outcome.case.name, "verdict": verdict(outcome)}
        if found is None:
            models.append(entry | {"why": outcome.refusal})
            continue
        entry |= {
            "figures": len(found.judged),
            "outside": sum(j.pair.outside for j in found.judged),
            "touched": found.touched,
            "explained": [j.pair.to_json() | {"rules": j.rules} for j in found.explained],
            "wrong": [j.pair.to_json() for j in found.wrong],
            "not_compared": Counter(u.why for u in found.uncompared),
            "cpu_seconds_at_equal_time": found.cpu_seconds,
            "lqsim_cpu_seconds": outcome.case.cpu_seconds,
            "lqsim_precision": outcome.case.precision,
        }
        if cost is not None:
            entry |= {"cpu_seconds": cost.cpu_seconds, "precision": cost.reached, "events": cost.events}
        models.append(entry)
    return {
        "machine": describe("mup-framework", "numpy"),
        "models": models,
        "summary": summary(outcomes),
    }


def show(outcomes: list[Outcome], *, markdown: bool) -> None:
    """Print the table, the worst figures, and the summary."""
    rows = table(outcomes)
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|---" * len(rows[0]) + "|")
    else:
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    print("\n".join(lines))
    print()
    for outcome in outcomes:
        if outcome.refusal:
            print(f"- {outcome.case.name}: {outcome.refusal}")
        found = outcome.agreement
        if found is None or markdown:
            continue
        differ = sorted(found.wrong + found.explained, key=lambda j: (bool(j.rules), -j.pair.excess))
        for judged in differ[:WORST_SHOWN]:
            pair = judged.pair
            print(
                f"- {outcome.case.name}: {pair.what}: {pair.ours.mean:.5g} +- {pair.ours.ci95:.2g}, "
                f"lqsim {pair.theirs.mean:.5g} +- {pair.theirs.ci95:.2g} "
                f"({', '.join(judged.rules) or 'unexplained'})"
            )
    print()
    print("\n".join(summary(outcomes)))


def main() -> int:
    """Compare the whole corpus, or some models of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="its directory; default: below MUP_REFERENCE_DIR")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these models")
    parser.add_argument("--precision", type=float, help="of task throughputs; default: as long as the corpus")
    parser.add_argument("--untimed", action="store_true", help="leave out the runs at equal precision")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    options = parser.parse_args()
    corpus = options.corpus or find_corpus()
    if corpus is None:
        print("there is no corpus: let MUP_REFERENCE_DIR name the directory that has it", file=sys.stderr)
        return 2
    cases = load_cases(corpus, options.only)
    for case in cases[:1]:
        study(case, timed=False)  # the first simulation of a process loads the compiled engine
    outcomes = []
    for case in cases:
        outcomes.append(study(case, precision=options.precision, timed=not options.untimed))
        print(f"{case.name}: {verdict(outcomes[-1])}", file=sys.stderr)
    if options.json:
        print(json.dumps(document(outcomes), indent=2))
    else:
        load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
        print(f"{describe('mup-framework', 'numpy')}; load {load}; seeds {SEEDS}, timed {TIMED_SEED}\n")
        show(outcomes, markdown=options.markdown)
    return int(any(verdict(o) == "differs" for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
