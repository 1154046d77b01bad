"""Commands of ``python benchmarks/accuracy``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from accuracy.beds import BEDS, HALVES, Bed
from accuracy.campaign import Campaign, TimeIsUpError
from accuracy.deploy import TRANSLATOR, prepare
from accuracy.discrepancy import write_discrepancy
from accuracy.measured import WindowLength
from accuracy.predictions import (
    Recipe,
    describe,
    known_host,
    ladder,
    parse_switches,
    predict_system,
    set_name,
)
from accuracy.quiet import add_options, quiet_of
from accuracy.report import Selection, write_report
from accuracy.store import FIRST, Results
from accuracy.system import LETTERS
from analyzer.calibration.rounds import usual_burst
from analyzer.host.profile import HostProfile, Scheduler, default_profile, this_machine
from mup.errors import MupError, UsageError
from mup.lqn import Migration

__all__ = ["TEST", "TRAIN", "main", "seeds_of"]

TRAIN, TEST = BEDS["narrow"].train, BEDS["narrow"].test


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.action(options)
    except MupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python benchmarks/accuracy", description=_SUMMARY)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, action: object, text: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=text, description=text)
        found.add_argument("--bed", choices=BEDS, default="narrow", help="which systems (default: narrow)")
        found.add_argument("--results", type=Path, metavar="DIR", help=f"default: {_of('results')}")
        found.add_argument("--train", metavar="SEEDS", help="the half models may be chosen on")
        found.add_argument("--test", metavar="SEEDS", help="the half that is reported")
        found.add_argument("--half", choices=HALVES, help="only the systems of one half")
        found.add_argument("--systems", metavar="NAME,..", help="only these (s203 or translator)")
        found.add_argument("--runtime", choices=LETTERS, default="process", help="of all generated services")
        found.set_defaults(action=action)
        return found

    command("generate", _generate, "Write the sources of the systems.")
    run = command("run", _run, "Explore, predict and measure; a rerun continues where it ended.")
    run.add_argument("--points", default="", metavar="NAME,..", help="one, half, knee, ...; see points.json")
    run.add_argument("--repeats", type=int, help=f"at least so many per point ({_of('repeats')})")
    run.add_argument("--width", type=float, help=f"relative half-width that is enough ({_of('width')})")
    run.add_argument("--observed", type=float, help=f"seconds per point that are enough ({_of('observed')})")
    run.add_argument("--void", type=int, help=f"void repeats at which a point is given up ({_of('void')})")
    run.add_argument("--window", type=float, help=f"shortest window of a repeat in s ({_of('window')})")
    run.add_argument("--longest-window", type=float, help=f"of a slow system ({_of('longest_window')})")
    run.add_argument("--budget", type=float, help=f"s for all repeats of a system ({_of('budget')})")
    run.add_argument("--explore-seconds", type=float, help="cap of the exploratory run")
    run.add_argument(
        "--burst",
        type=int,
        default=usual_burst(),
        metavar="N",
        help="clients of the rounds at its end (default: 4 per core, as 'mup explore' has it; 0: none)",
    )
    run.add_argument("--precision", type=float, help=f"of predictions ({_of('precision')})")
    run.add_argument("--max-minutes", type=float, help="stop between two steps after so long")
    add_options(run)
    predict = command("predict", _predict, "Calibrate and predict again from the stored runs.")
    predict.add_argument(
        "--component", "--ingredient", action="append", default=[], metavar="NAME=off", help="repeatable"
    )
    predict.add_argument("--ladder", action="store_true", help="with one component more each time")
    predict.add_argument("--set", metavar="NAME", help="store under this name (default: from the switches)")
    predict.add_argument("--precision", type=float, default=0.01, help="relative half-width")
    predict.add_argument("--host", type=Path, metavar="FILE", help="another profile than the campaign's")
    predict.add_argument(
        "--migration", nargs=3, type=float, metavar=("WAKE", "STEAL", "BALANCE"), help=_MOVES
    )
    predict.add_argument("--no-intervals", action="store_true", help="faster; so are those of --ladder")
    report = command("report", _report, "Print errors per point and their distribution, as Markdown.")
    report.add_argument("--set", default=FIRST, metavar="NAME", help="which predictions to compare")
    report.add_argument("--ladder", action="store_true", help="the distribution for every set there is")
    report.add_argument("--json", action="store_true", help="one JSON document instead")
    report.add_argument("--plots", type=Path, metavar="DIR", help="also draw SVG pictures into a folder")
    report.add_argument("--details", action="store_true", help="also per service: held, queued, CPU")
    fit = command("discrepancy", _discrepancy, "Estimate the model's own error from the training half.")
    fit.add_argument("--set", default=FIRST, metavar="NAME")
    fit.add_argument("-o", "--output", type=Path, help="default: analyzer/calibration/discrepancy.json")
    return parser


def _of(setting: str) -> str:
    """Return what a setting is in each bed, for a help text."""
    return ", ".join(f"{name}: {getattr(bed, setting)}" for name, bed in BEDS.items())


def _bed(options: argparse.Namespace) -> Bed:
    """Return the bed, with what the command line says otherwise."""
    bed = BEDS[options.bed]
    given = {f.name: getattr(options, f.name, None) for f in fields(bed)}
    found = replace(bed, **{name: value for name, value in given.items() if value is not None})
    return replace(found, longest_window=max(found.window, found.longest_window))


_SUMMARY = "Generated services, predicted from one user, then run for real."
_MOVES = "a scheduler with these constants in place of the profile's"


def seeds_of(text: str, option: str = "seeds") -> list[int]:
    """Return the numbers of a list such as ``100-109,205``; "" is none.

    Raises:
        UsageError: It is no such list.
    """
    seeds: list[int] = []
    for part in filter(None, text.split(",")):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise UsageError(f"{option}: must be like 100-109,205, got {text!r}")
        seeds += range(int(low), int(high or low) + 1)
    return seeds


def _names(options: argparse.Namespace) -> list[str]:
    if options.systems:
        return [name for name in options.systems.split(",") if name]
    selection = _selection(options)
    halves = {"train": selection.train, "test": selection.test}
    wanted = [HALVES[options.half]] if options.half else list(halves)
    return [name for half in wanted for name in halves[half]]


def _selection(options: argparse.Namespace) -> Selection:
    bed = _bed(options)
    letter = bed.prefix or LETTERS[options.runtime]
    train = [f"{letter}{seed}" for seed in seeds_of(bed.train, "--train")]
    test = [f"{letter}{seed}" for seed in seeds_of(bed.test, "--test")]
    examples = (TRANSLATOR,) if bed.examples and options.runtime == "process" else ()
    return Selection(tuple(train), (*test, *examples))


def _generate(options: argparse.Namespace) -> int:
    results = Results(_bed(options).results)
    for name in _names(options):
        prepare(results.system(name))
        print(results.system(name).project)
    return 0


def _run(options: argparse.Namespace) -> int:
    minutes = options.max_minutes
    bed = _bed(options)
    campaign = Campaign(
        results=Results(bed.results),
        quiet=quiet_of(options),
        points=tuple(filter(None, options.points.split(","))),
        repeats=bed.repeats,
        width=bed.width,
        observed=bed.observed,
        void=bed.void,
        budget=bed.budget,
        window=WindowLength(bed.window, bed.longest_window),
        explore_seconds=options.explore_seconds,
        burst=options.burst,
        precision=bed.precision,
        deadline=time.monotonic() + 60 * minutes if minutes is not None else float("inf"),
        say=lambda text: print(time.strftime("%H:%M:%S"), text, flush=True),
    )
    try:
        failed = campaign.run(_names(options))
    except TimeIsUpError:
        print("time is up; the same command continues")
        return 0
    return 1 if failed else 0


def _predict(options: argparse.Namespace) -> int:
    if options.set == FIRST:
        raise UsageError(f"--set: {FIRST!r} was written before the measurements and stays as it is")
    results = Results(_bed(options).results)
    switches = parse_switches(options.component)
    sets = ladder() if options.ladder else {options.set or set_name(switches): switches}
    recipe = Recipe(
        host=known_host(results, options.host),
        precision=options.precision,
        window=None if options.ladder or options.no_intervals else _window(options),
        repeats=_bed(options).repeats,
    )
    if options.migration is not None:
        recipe = replace(recipe, host=_migrating(recipe.host, options.migration))
    wanted = set(_names(options))
    failed = 0
    for kind, chosen in sets.items():
        for folder in results.systems():
            if folder.name not in wanted or not folder.points.exists():
                continue
            try:
                record = predict_system(results, folder.name, kind, replace(recipe, switches=chosen))
                print(f"{kind}: {describe(record)}", flush=True)
            except MupError as error:
                failed += 1
                print(f"{kind}: {folder.name}: {error}", flush=True)
    return 1 if failed else 0


def _window(options: argparse.Namespace) -> WindowLength:
    bed = _bed(options)
    return WindowLength(bed.window, bed.longest_window)


def _migrating(host: HostProfile | None, constants: Sequence[float]) -> HostProfile:
    """Return a host whose threads stick to cores and move as some constants say."""
    wake, steal, balance = constants
    migration = Migration(wake=wake, steal=steal, balance=balance)
    scheduler = Scheduler(source="assumed", discipline="cores", migration=migration)
    return replace(host or default_profile(this_machine().cores), scheduler=scheduler)


def _report(options: argparse.Namespace) -> int:
    results = Results(_bed(options).results)
    names = _names(options) if options.systems or options.half else None
    sets = results.kinds() if options.ladder else [options.set]
    print(
        write_report(
            results,
            _selection(options),
            sets,
            names=names,
            as_json=options.json,
            details=options.details,
            plots=options.plots,
        )
    )
    return 0


def _discrepancy(options: argparse.Namespace) -> int:
    path = write_discrepancy(Results(_bed(options).results), _selection(options), options.set, options.output)
    print(path)
    return 0
