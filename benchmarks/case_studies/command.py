"""Commands of ``python benchmarks/case_studies``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from accuracy.quiet import add_options, quiet_of

from case_studies.applications import APPLICATIONS, FAMILIES, MODES
from case_studies.report import write_report
from case_studies.study import Study, TimeIsUpError
from mup.errors import MupError, UsageError

__all__ = ["main"]

RESULTS = Path("benchmarks/results/case_studies")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.action(options)
    except TimeIsUpError as error:
        print(error)
        return 0
    except MupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    summary = "The thesis's what-ifs on real runs: predicted from one user, then measured, step by step."
    parser = argparse.ArgumentParser(prog="python benchmarks/case_studies", description=summary)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "Calibrate, predict and measure one family; the same command continues where it ended."
    run = commands.add_parser("run", help=text, description=text)
    run.add_argument("application", choices=APPLICATIONS)
    run.add_argument("family", choices=tuple(FAMILIES))
    run.add_argument("--mode", choices=MODES, default="wait", help="what local work is (default: wait)")
    run.add_argument("--database", choices=("mongod", "embedded"), help="default: mongod if it can run")
    run.add_argument("--explore-seconds", type=float, default=300.0, help="of one user (default: 300)")
    run.add_argument(
        "--seconds",
        type=float,
        help="window of every step (default: of each, as long as chance needs, 10 to 60)",
    )
    run.add_argument("--think-scale", type=float, default=1.0, help="factor on think times (default: 1)")
    run.add_argument("--max-clients", type=int, default=512)
    run.add_argument("--precision", type=float, default=0.01, help="of predictions (default: 0.01)")
    run.add_argument(
        "--retries", type=int, default=1, help="of a step whose run is void, at once (default: 1)"
    )
    run.add_argument(
        "--void",
        type=int,
        default=6,
        help="void runs after which a step is not run again by another start (default: 6)",
    )
    run.add_argument("--no-host", action="store_true", help="take the machine as ideal")
    run.add_argument("--max-minutes", type=float, help="stop between two steps after so long")
    add_options(run)
    run.add_argument(
        "--quick",
        action="store_true",
        help="show that it works: 15 s of one user, 16 clients, think times a tenth, windows of 6 s",
    )
    run.set_defaults(action=_run)
    text = "Print error tables of everything there is, as Markdown, and draw pictures."
    report = commands.add_parser("report", help=text, description=text)
    report.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="also write results.md, SVGs and the figures behind them here",
    )
    report.set_defaults(action=_report)
    for command in (run, report):
        command.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.quick:
        options.explore_seconds, options.seconds, options.think_scale = 15.0, 6.0, 0.1
        options.max_clients, options.precision, options.no_host = 16, 0.03, True
        if options.results == RESULTS:
            options.results = RESULTS.with_name("case_studies-quick")
    if options.void < 1:
        raise UsageError(f"a step has at least one run, got --void {options.void}")
    minutes = options.max_minutes
    study = Study(
        results=options.results,
        application=options.application,
        mode=options.mode,
        database=options.database,
        explore_seconds=options.explore_seconds,
        seconds=options.seconds,
        think_scale=options.think_scale,
        max_clients=options.max_clients,
        precision=options.precision,
        retries=options.retries,
        void=options.void,
        profile=not options.no_host,
        quiet=quiet_of(options),
        deadline=time.monotonic() + 60 * minutes if minutes is not None else float("inf"),
        say=lambda text: print(time.strftime("%H:%M:%S"), text, flush=True),
    )
    study.run(options.family)
    print(write_report(options.results, only=(study.folder.path.name, options.family)))
    return 0


def _report(options: argparse.Namespace) -> int:
    print(write_report(options.results, output=options.output))
    return 0
