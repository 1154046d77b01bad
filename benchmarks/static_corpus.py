"""Endpoints, as people write them, that static analysis models correctly.

    python benchmarks/static_corpus.py [APPLICATION ...] [--list] [--causes]

The endpoints are those of `tests/analyzer/static/corpus`: services as users write them, each executed with
inputs and failing callees, and compared with the paths that were found. *Right*: every execution is a path;
*refused*: an error says that it cannot be modelled; *wrong*: an execution is no path, or the endpoint is
missing, and nothing says so. *Tight* are those of the right ones whose paths were all taken by an execution.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from machine import describe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "analyzer" / "static"))

from corpus.judgement import APPLICATIONS, Verdict, expectations, judge


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """Return lines: the outcomes by idiom."""
    lines = [f"{'idiom':<36}{'endpoints':>10}{'right':>7}{'tight':>7}{'refused':>9}{'wrong':>7}"]
    sizes = Counter(v.idiom for v in verdicts)
    for idiom in [*sorted(sizes, key=lambda i: (-sizes[i], i)), "all"]:
        some = [v for v in verdicts if idiom in (v.idiom, "all")]
        outcomes = Counter(v.outcome for v in some)
        tight = sum(v.outcome == "right" and not v.untaken for v in some)
        lines.append(
            f"{idiom:<36}{len(some):>10}{outcomes['right']:>7}{tight:>7}"
            f"{outcomes['refused']:>9}{outcomes['wrong']:>7}"
        )
    right = sum(v.outcome == "right" for v in verdicts)
    share = 100 * right / max(1, len(verdicts))
    executions, sequences = sum(v.executions for v in verdicts), sum(v.sequences for v in verdicts)
    lines.append(f"{share:.1f} % right; {executions} executions, {sequences} different ones")
    return lines


def causes(verdicts: Sequence[Verdict]) -> list[str]:
    """Return lines: what is not right, by cause."""
    known = expectations()
    groups: dict[str, list[Verdict]] = {}
    for one in verdicts:
        if one.outcome != "right":
            cause = known[one.label].cause if one.label in known else "not looked into"
            groups.setdefault(cause, []).append(one)
    lines = []
    for cause, some in sorted(groups.items(), key=lambda g: -len(g[1])):
        lines += ["", f"{len(some):>4}  {cause}"]
        lines += [f"      {v.outcome:<8}{','.join(v.codes):<8} {v.label}: {v.why}" for v in some]
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help="these only")
    parser.add_argument("--list", action="store_true", help="print every endpoint")
    parser.add_argument("--causes", action="store_true", help="print what is not right, by cause")
    options = parser.parse_args()
    print(describe("libcst", "msgspec"))
    started = time.process_time()
    verdicts = [v for name in options.applications or APPLICATIONS for v in judge(name)]
    seconds = time.process_time() - started
    if options.list:
        for v in verdicts:
            more = f"{v.paths} paths, {v.untaken} untaken" if v.outcome == "right" else v.why
            print(f"{v.outcome:<8}{v.label:<60}{v.idiom:<30}{v.sequences:>4} {more}")
    print("\n".join(table(verdicts)))
    if options.causes:
        print("\n".join(causes(verdicts)))
    print(f"{seconds:.1f} s of CPU")


if __name__ == "__main__":
    main()
