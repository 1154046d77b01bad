"""Time of exploring for a question against a fixed time: replays of long explorations.

A long run of a project (``mup explore PROJECT --precision 0.000001 --max-seconds 240``) is explored again
from its rounds: what decides (``analyzer.calibration.inquiry``) asks for hot, cold and burst rounds and is
given the stored ones in the order in which they were run, until it stops or the budget is used up. Beside it,
the first seconds of the run as it was: both kinds in turn, as without a question. Predictions from each are
compared with those from the whole run.

A replay tells how long an exploration would have lasted and how far its predictions are from those of a
longer one. It does not tell how far they are from reality: that takes loaded runs (``benchmarks/accuracy``).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec
from machine import describe

from analyzer.calibration.answer import COMPONENTS, Look, look
from analyzer.calibration.bootstrap import emphasized
from analyzer.calibration.explore import explore
from analyzer.calibration.inquiry import Inquiry
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.question import Question
from analyzer.calibration.rounds import ExploreSettings
from analyzer.calibration.rundir import Phase, Run, Window, load_info, load_run
from analyzer.calibration.thinning import thinned
from analyzer.static import analyse_project
from analyzer.static.application import Application
from mup.cli.measurements.question_options import question
from mup.project import Project, load_project
from simulator.analytic import estimate

FIXED = 90.0
ROUND = 3.0
RECORDS = 500_000
"""Of each kind of rounds that predictions are compared from."""


@dataclass(frozen=True)
class Source:
    """A long exploration to replay."""

    project: Project
    application: Application
    run: Run

    def part(self, windows: Sequence[Window]) -> Run:
        """Return the run as if it had these windows alone."""
        chosen = {window.start for window in windows}
        parts = []
        for part in self.run.parts:
            mine = [window for window in part.windows if window.start in chosen]
            parts.append(replace(part, info=msgspec.structs.replace(part.info, windows=mine)))
        info = msgspec.structs.replace(self.run.info, parts=[part.info for part in parts])
        return Run(self.run.path, info, tuple(parts), self.run.directories)

    def figures(self, windows: Sequence[Window], asked: Question) -> dict[str, float]:
        """Return what a model from these windows predicts: mean response times, then throughputs."""
        model = calibrate_project(
            self.project,
            thinned(self.part(windows), RECORDS),
            self.application,
            client=self.run.info.client or None,
            components=COMPONENTS,
            draw=emphasized,
        ).model
        found = {}
        for name, scenario in asked.scenarios(model).items():
            cycle = estimate(scenario.model).cycle
            found[f"{name}: response time"] = cycle.response_time
            found[f"{name}: throughput"] = cycle.throughput
        return found


@dataclass(frozen=True)
class Replay:
    """How an exploration for a question would have gone.

    Attributes:
        outcome, text: Of the inquiry.
        seconds: Under load.
        looking: Processor seconds of its looks.
        rounds: Of each kind.
        half_width: The largest it knew its figures to.
        off: By how much its predictions differ from those of the whole run.
        fixed: The same from the first seconds of the run.
    """

    project: str
    asked: str
    width: float
    outcome: str
    text: str
    seconds: float
    looking: float
    rounds: Mapping[str, int]
    half_width: float
    off: Mapping[str, float]
    fixed: Mapping[str, float]


def replay(source: Source, asked: Question, seconds: float) -> tuple[Inquiry, list[Window]]:
    """Explore again from stored rounds; return the inquiry and the rounds it took."""
    stock: dict[Phase, list[Window]] = {}
    for window in source.run.windows:
        stock.setdefault(window.phase, []).append(window)
    kinds: list[Phase] = [phase for phase in ("hot", "cold") if stock.get(phase)]
    inquiry, taken = Inquiry(asked, seconds, ROUND), list[Window]()

    def counts() -> Counter[Phase]:
        return Counter({phase: sum(w.phase == phase for w in taken) for phase in (*kinds, "burst")})

    def learn() -> None:
        began = time.process_time()
        found: Look | None = look(source.part(taken), source.application, source.project, asked)
        if found is not None:
            # On an idle machine, which this need not be, a look takes as long as its processor time.
            found = replace(found, seconds=time.process_time() - began)
        inquiry.learn(found, counts(), spent())

    def spent() -> float:
        return sum(w.seconds for w in taken)

    while spent() < seconds - ROUND / 2:
        now = {phase: counts()[phase] for phase in kinds}
        if inquiry.due(now, spent()):
            learn()
            if inquiry.stop:
                return inquiry, taken
        phase = inquiry.next_phase(now)
        if not stock.get(phase):
            if phase == "burst":
                continue
            break
        taken.append(stock[phase].pop(0))
    learn()
    return inquiry, taken


def first(windows: Iterable[Window], seconds: float) -> list[Window]:
    """Return the first windows that last so many seconds together."""
    taken = list[Window]()
    for window in windows:
        if sum(w.seconds for w in taken) + window.seconds / 2 > seconds:
            break
        taken.append(window)
    return taken


def compare(source: Source, texts: Sequence[str], widths: Sequence[float]) -> Iterator[Replay]:
    """Replay one question, and compare its predictions with those of the whole run."""
    asked = question(texts, widths[0])
    whole = source.figures(source.run.windows, asked)
    fixed = source.figures(first(source.run.windows, FIXED), asked)
    for width in widths:
        yield _compare(source, texts, width, whole, fixed)


def _compare(
    source: Source,
    texts: Sequence[str],
    width: float,
    whole: Mapping[str, float],
    fixed: Mapping[str, float],
) -> Replay:
    asked = question(texts, width)
    inquiry, taken = replay(source, asked, FIXED)
    found = source.figures(taken, asked)
    info = inquiry.info(Counter(w.phase for w in taken))
    return Replay(
        project=source.project.name,
        asked=" | ".join(texts) or "own client",
        width=width,
        outcome=info.outcome,
        text=inquiry.text(),
        seconds=sum(w.seconds for w in taken),
        looking=info.look_seconds,
        rounds=info.rounds,
        half_width=max((a.half_width for a in info.answers), default=float("nan")),
        off={name: found[name] / value - 1 for name, value in whole.items()},
        fixed={name: fixed[name] / value - 1 for name, value in whole.items()},
    )


def longest(values: Mapping[str, float]) -> float:
    """Return the largest difference, in percent."""
    return 100 * max(map(abs, values.values()))


def report(found: Sequence[Replay]) -> None:
    """Print one line per question."""
    print(describe())
    print(
        "| project | asked | width | outcome | seconds | rounds | looks, s | claimed | off | after 90 s off |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for r in found:
        rounds = ", ".join(f"{n} {phase}" for phase, n in r.rounds.items())
        print(
            f"| {r.project} | {r.asked} | {r.width:.0%} | {r.outcome} | {r.seconds:.0f} | {rounds} "
            f"| {r.looking:.1f} | {r.half_width:.1%} | {longest(r.off):.1f} % | {longest(r.fixed):.1f} % |"
        )


def online(project: Path, texts: Sequence[str], width: float) -> None:
    """Explore for a question, then for 90 s without one, and print how long each took."""
    loaded = load_project(project)
    application = analyse_project(loaded)
    asked = question(texts, width)
    for name, wanted in (("for the question", asked), ("fixed", None)):
        settings = ExploreSettings(width=1e-9, max_seconds=FIXED, round_seconds=ROUND)
        started = time.monotonic()
        directory = explore(loaded, application, settings, question=wanted)
        wall = time.monotonic() - started
        info = load_info(directory)
        source = Source(loaded, application, load_run(directory))
        figures = source.figures(info.windows, asked)
        print(f"{loaded.name}, {name}: {info.observed_seconds:.0f} s under load, {wall:.0f} s in all")
        print(f"  {info.stop}")
        for label, value in figures.items():
            print(f"  {label}: {value:.6g}")


def main() -> None:
    """Replay, or explore."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("project", type=Path, help="folder of the project")
    parser.add_argument("--run", type=Path, help="long run to replay; without it, explore anew")
    parser.add_argument(
        "--for", dest="asked", action="append", default=[], help="a question; several in one with ' | '"
    )
    parser.add_argument("--width", type=float, action="append", default=[])
    parser.add_argument("--json", type=Path, help="file to write everything to")
    given = parser.parse_args()
    questions = [[part.strip() for part in t.split("|") if part.strip()] for t in given.asked or [""]]
    widths = given.width or [0.05]
    if given.run is None:
        for texts in questions:
            online(given.project, texts, widths[0])
        return
    project = load_project(given.project)
    source = Source(project, analyse_project(project), load_run(given.run))
    found = [replay for texts in questions for replay in compare(source, texts, widths)]
    report(found)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(r) for r in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
