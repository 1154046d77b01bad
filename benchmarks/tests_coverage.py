"""Which lines of the packages the tests execute, by package.

    python benchmarks/tests_coverage.py [PYTEST_ARGUMENT ...]
    python benchmarks/tests_coverage.py --stored

The processes that tests start (services, registries, commands) count, unless a test kills them or gives them
an environment of its own. Modules that are translated to C are left out: their lines run as machine code,
which this cannot see (tests compare them, figure by figure, with what Python computes). "--stored" prints the
table of the last run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from machine import describe

from mup.native.libraries import LIBRARIES

ROOT = Path(__file__).resolve().parents[1]
DEPTH = {"mup": 2, "mup_registry": 1, "analyzer": 2, "simulator": 2}
"""Names of a package that the table tells apart, by the first of them."""
COVERAGE = (sys.executable, "-m", "coverage")


def compiled() -> set[str]:
    """Return the files, relative to the root, whose functions run as machine code."""
    return {f"{name.replace('.', '/')}.py" for library in LIBRARIES for name in library.modules}


def package(file: str) -> str:
    """Return the package of a file, as the table tells them apart."""
    parts = Path(file).parent.parts
    return ".".join(parts[: DEPTH.get(parts[0], 1)])


def table(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> list[str]:
    """Return lines: how many statements there are by package, and the share of them that was executed."""
    left_out = compiled()
    statements: Counter[str] = Counter()
    executed: Counter[str] = Counter()
    for file, found in report["files"].items():
        if file in left_out:
            continue
        for name in (package(file), "all"):
            statements[name] += found["summary"]["num_statements"]
            executed[name] += found["summary"]["covered_lines"]
    lines = [f"{'package':<28}{'statements':>12}{'executed':>10}"]
    return lines + [
        f"{name:<28}{statements[name]:>12}{executed[name] / statements[name]:>10.1%}"
        for name in [*sorted(statements.keys() - {"all"}), "all"]
        if statements[name]
    ]


def main() -> None:
    """Run the tests, unless a stored run is asked for; print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stored", action="store_true", help="of the last run, without running the tests")
    options, rest = parser.parse_known_args()
    outcome = 0
    if not options.stored:
        (ROOT / "benchmarks" / "results").mkdir(exist_ok=True)
        subprocess.run([*COVERAGE, "erase"], cwd=ROOT, check=True)
        outcome = subprocess.run([*COVERAGE, "run", "-m", "pytest", *rest], cwd=ROOT, check=False).returncode
        subprocess.run([*COVERAGE, "combine", "--quiet"], cwd=ROOT, check=True)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        subprocess.run([*COVERAGE, "json", "--quiet", "-o", str(file)], cwd=ROOT, check=True)
        report = json.loads(file.read_text(encoding="utf-8"))
    print("\n".join([describe(), "", *table(report)]))
    sys.exit(outcome)


if __name__ == "__main__":
    main()
