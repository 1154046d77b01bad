"""Is `mup compare --measure` silent about changes without effect, and does it find others, and their line?

    python benchmarks/version_effects.py [--runs N] [--only inert|regressions] [--budget SECONDS]

Two projects are changed by a program, with random numbers from a seed, and both versions are compared by the
command itself, one run after the other, each in `--budget` seconds of measuring. *Inert changes* are told,
for they are code, but take no time: a variable that is not used, an assertion, a call of `str()`, in one to
three endpoints. *Regressions* plant one thing that takes time (more work, one more call, a call in a loop, a
wait that comes too early, a smaller pool, a query without an index), among inert changes in other endpoints.
Each is measured twice, with other random choices: its size is told by the other run, not by the one that is
judged. With `--null N` also changes that mean nothing are compared, those of `version_changes.py`: nothing
has to be measured of them.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from machine import describe
from stored import Store, add_results, run_resumable
from version_changes import (
    APPLICATIONS,
    FUNCTIONS,
    NULL_CHANGES,
    copied,
    early_wait,
    null_change,
    one_more_call,
)

GALLERY = """\
from mup import EP, MS, Client, Communication


def work(units: int) -> int:
    return sum(i * i for i in range(units))


class Front(MS):
    pool_size = 8

    @EP("/page/")
    def page(self, comm: Communication) -> None:
        title = comm.call("Back", "/title/", {})
        pictures = comm.call("Back", "/pictures/", {})
        work(9000)
        comm.respond([title.get(), pictures.get()])

    @EP("/order/")
    def order(self, comm: Communication) -> None:
        stock = comm.query("shop", "find", "stock", {"_id": int(comm.params["number"])})
        found = stock.get()
        work(6000)
        price = comm.call("Back", "/price/", {"number": found[0]["number"]})
        comm.respond(price.get())


class Back(MS):
    pool_size = 3

    @EP("/title/")
    def title(self, comm: Communication) -> None:
        work(10000)
        comm.respond("title")

    @EP("/pictures/")
    def pictures(self, comm: Communication) -> None:
        work(16000)
        comm.respond("pictures")

    @EP("/price/")
    def price(self, comm: Communication) -> None:
        number = comm.params["number"]
        work(12000)
        comm.respond(number)


class Visitor(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.05, "exponential")
        await comm.call("Front", "/page/", {})
        await comm.call("Front", "/order/", {"number": self.random.randrange(300)})


def fill(database: object) -> None:
    database.stock.delete_many({})
    database.stock.insert_many([{"_id": number, "number": number} for number in range(300)])
"""
GALLERY_TOML = """\
[project]
client = "services:Visitor"
[services.Front]
class = "services:Front"
[services.Back]
class = "services:Back"
[databases.shop]
uri = "embedded"
load = "services:fill"
"""
PROJECTS: Final = ("gallery", "translator")
CLIENTS: Final = 8
FIGURES: Final = ("mean", "p95", "capacity")
CONDITIONS: Final = ("mean>+5%", "p95>+5%", "capacity<-5%")
LARGE: Final = 0.10
"""A regression is large if p95 rises by so much."""
INERT: Final = ("noted = 1", "assert comm is not None", "str()")
BURN: Final = re.compile(r"burn\(self\.cpu\)")
WORK: Final = re.compile(r"(?<=work\()\d+(?=\))")
POOL: Final = re.compile(r"(?<=pool_size = )\d+")


@dataclass(frozen=True, slots=True)
class Planted:
    """A regression that was made: the file of the project and the line in it."""

    file: str
    line: int


# Changes. Each is made in one line, so that lines of others stay what they are.


def written(name: str, folder: Path) -> Path:
    """Write a project that can be changed; return its folder."""
    if name != "gallery":
        return copied(name, folder)
    target = folder / name
    target.mkdir(parents=True)
    (target / "services.py").write_text(GALLERY, encoding="utf-8")
    (target / "mup.toml").write_text(GALLERY_TOML, encoding="utf-8")
    return target


def _endpoints(project: Path) -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for file in sorted(project.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, FUNCTIONS) and any("EP(" in ast.unparse(d) for d in node.decorator_list):
                yield file, node


def inert(project: Path, source: random.Random, count: int, apart: Planted | None = None) -> None:
    """Put what takes no time into endpoints, but not into the one where a regression was planted."""
    spots = []
    for file, function in _endpoints(project):
        here = apart is not None and file.relative_to(project).as_posix() == apart.file
        if apart and here and apart.line in _lines(function):
            continue
        statements = [
            s for s in function.body if isinstance(s, ast.Assign | ast.Expr) and s.lineno == s.end_lineno
        ]
        spots.append(
            (file, [s for s in statements if not isinstance(getattr(s, "value", None), ast.Constant)])
        )
    for file, statements in source.sample(spots, min(count, len(spots))):
        chosen = source.choice(statements)
        _in_line(file, chosen.lineno, partial(_before, chosen.col_offset, source.choice(INERT)))


def _before(column: int, statement: str, line: str) -> str:
    return f"{line[:column]}{statement}; {line[column:]}"


def _in_line(file: Path, number: int, change: Callable[[str], str]) -> None:
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[number - 1] = change(lines[number - 1])
    file.write_text("\n".join(lines), encoding="utf-8")


def _replaced(
    project: Path, source: random.Random, pattern: re.Pattern[str], new: Callable[[str], str]
) -> Planted | None:
    """Replace one of the places that a pattern has in the services."""
    file = project / "services.py"
    lines = file.read_text(encoding="utf-8").split("\n")
    found = [n for n, line in enumerate(lines, 1) if pattern.search(line)]
    if not found:
        return None
    number = source.choice(found)
    _in_line(file, number, lambda line: pattern.sub(lambda match: new(match[0]), line))
    return Planted(file.name, number)


def more_work(project: Path, source: random.Random) -> Planted | None:
    """Let an endpoint compute for 5 to 50 % longer."""
    factor = source.uniform(1.05, 1.5)
    return _replaced(project, source, WORK, lambda text: str(round(int(text) * factor))) or _replaced(
        project, source, BURN, lambda _: f"burn(self.cpu * {factor:.2f})"
    )


def another_call(project: Path, source: random.Random) -> Planted | None:
    """Make a call twice."""
    made = one_more_call(project, source)
    return None if made is None else Planted(made.file, made.line)


def call_in_a_loop(project: Path, source: random.Random) -> Planted | None:
    """Make a call for each of some letters, too."""
    made = one_more_call(project, source)
    if made is None:
        return None
    letters = "abcd"[: source.randint(2, 4)]

    def change(line: str) -> str:
        text = line.lstrip()
        return f"{line[: len(line) - len(text)]}for _ in {letters!r}: {text}"

    _in_line(project / made.file, made.line, change)
    return Planted(made.file, made.line)


def waits_too_early(project: Path, source: random.Random) -> Planted | None:
    """Wait for a call before the next one is made, or before work that it could overlap with."""
    made = early_wait(project, source)
    if made is not None:
        return Planted(made.file, made.line)
    return _replaced(project, source, BURN, lambda text: f"entry.get(); {text}")


def smaller_pool(project: Path, source: random.Random) -> Planted | None:
    """Take workers from the service that works longest."""
    few = re.compile(r"(?<=pool_size = )[23]$")
    return _replaced(project, source, few, lambda text: str(source.randint(1, int(text) - 1)))


def slower_query(project: Path, source: random.Random) -> Planted | None:
    """Ask the database for something that it has no index of."""
    return _replaced(
        project, source, re.compile(r'\{"_id": int\('), lambda _: '{"number": int('
    ) or _replaced(project, source, re.compile(r'\{"_id": word\}'), lambda _: '{"text": word[::-1]}')


REGRESSIONS: Final[dict[str, Callable[[Path, random.Random], Planted | None]]] = {
    "more work": more_work,
    "one more call": another_call,
    "N + 1": call_in_a_loop,
    "lost parallelism": waits_too_early,
    "smaller pool": smaller_pool,
    "slower query": slower_query,
}


# Runs.


def compared(base: Path, head: Path, *, budget: float, seed: int) -> dict[str, Any]:
    """Run the command; return what it said, as far as it is judged."""
    words = [sys.executable, "-m", "mup", "compare", str(base), str(head), "--measure", "--json"]
    words += ["--budget", f"{budget:g}", "--clients", str(CLIENTS), "--seed", str(seed)]
    words += [word for condition in CONDITIONS for word in ("--fail-if", condition)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return {"error": (done.stderr or done.stdout)[-500:]}
    document = json.loads(done.stdout)
    effect = document["effect"]
    return {
        "told": [[one["file"], one["line"], one["text"]] for one in document["differences"]],
        "measured": effect["measured"],
        "remarks": effect["remarks"],
        "figures": {name: effect["cycle"][name]["relative"] for name in FIGURES if name in effect["cycle"]},
        "shares": [
            {
                "lines": [[one["file"], one["line"]] for one in share["differences"]],
                "p95": [share["effect"]["p95"], *share["interval"]["p95"]],
                "mean": [share["effect"]["mean"], *share["interval"]["mean"]],
            }
            for share in effect["shares"]
        ],
        "fails": [one["condition"] for one in effect["conditions"] if one["fails"]],
    }


def jobs(only: str | None) -> Iterator[tuple[str, str, int, int]]:
    """Yield kind of change, project, seed and repetition, without end; equally many of all kinds."""
    number = 0
    while True:
        for kind in REGRESSIONS:
            number += 1
            project = PROJECTS[(number + number // len(REGRESSIONS)) % len(PROJECTS)]
            for repetition in (0, 1) if only != "inert" else ():
                yield kind, project, number, repetition
            if only != "regressions":
                yield "inert", PROJECTS[number % len(PROJECTS)], number, 0


def _in_scenario(project: Path, planted: Planted) -> bool:
    """Return whether a line is one of a scenario: versions with other scenarios are not compared."""
    tree = ast.parse((project / planted.file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    return any(f.name == "scenario" and planted.line in _lines(f) for f in functions)


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def measured(kind: str, name: str, number: int, repetition: int, budget: float) -> dict[str, Any] | None:
    """Make and measure a change; None if the project has nothing to change like that."""
    source = random.Random(number)
    with tempfile.TemporaryDirectory(prefix="version-effects-") as folder:
        base, head = (written(name, Path(folder) / side) for side in ("base", "head"))
        planted = None
        if kind == "inert":
            inert(head, source, source.randint(1, 3))
        else:
            planted = REGRESSIONS[kind](head, source)
            if planted is None or _in_scenario(head, planted):
                return None
            inert(head, source, source.randint(1, 2), planted)
        result = compared(base, head, budget=budget, seed=number + 500 * repetition)
    result |= {"kind": kind, "project": name, "number": number, "repetition": repetition}
    return result | ({"planted": [planted.file, planted.line]} if planted else {})


def null_changes(wanted: int) -> None:
    """Compare changes that mean nothing: there must be nothing to measure, and no condition may fail."""
    kinds = list(NULL_CHANGES)
    number = made = wrong = 0
    while made < wanted:
        number += 1
        name = random.Random(number).choice(APPLICATIONS)
        with tempfile.TemporaryDirectory(prefix="version-effects-") as folder:
            head = null_change(name, kinds[number % len(kinds)], number, Path(folder) / "head")
            if head is None:
                continue
            made += 1
            found = compared(copied(name, Path(folder) / "base"), head, budget=20, seed=number)
        if found.get("measured", True) or found["fails"]:
            wrong += 1
            print(f"  {name}, {kinds[number % len(kinds)]}, seed {number}: {found}")
    print(f"{made} changes that mean nothing: {made - wrong} not measured, {wrong} otherwise")


# Verdicts.


def slower(figure: str, found: Mapping[str, float]) -> bool:
    """Return whether a figure is worse beyond doubt."""
    return found["high"] < 0 if figure == "capacity" else found["low"] > 0


def beyond_doubt(found: Mapping[str, float]) -> bool:
    """Return whether a figure is another one beyond doubt."""
    return found["low"] > 0 or found["high"] < 0


def report(results: Sequence[dict[str, Any]]) -> None:
    """Print what all runs so far show."""
    for one in results:
        if "error" in one:
            print(f"  {one['kind']}, {one['project']}, {one['number']}: {one['error']}")
    good = [one for one in results if "error" not in one]
    without = [one for one in good if one["kind"] == "inert"]
    print(f"{len(without)} inert changes measured")
    for figure in FIGURES:
        there = [one for one in without if figure in one["figures"]]
        doubtless = sum(beyond_doubt(one["figures"][figure]) for one in there)
        failing = sum(any(c.startswith(figure) for c in one["fails"]) for one in there)
        spread = sorted(abs(one["figures"][figure]["mean"]) for one in there)
        median = f", median change {spread[len(spread) // 2]:.1%}" if spread else ""
        print(f"  {figure}: {doubtless} beyond doubt, {failing} alarms at 5 %{median}")
    planted = [one for one in good if one["kind"] != "inert"]
    print(f"{len(planted)} regressions measured")
    for kind in REGRESSIONS:
        print(f"  {kind}: {summary([one for one in planted if one['kind'] == kind], planted)}")
    print(f"  all: {summary(planted, planted)}")
    for figure in FIGURES if len(planted) > 1 else ():
        widths = [one["figures"][figure]["high"] - one["figures"][figure]["low"] for one in planted]
        quarters = " ".join(f"{width / 2:.1%}" for width in statistics.quantiles(widths))
        print(f"  {figure}: quartiles of the half-width of its interval {quarters}")


def summary(some: Sequence[dict[str, Any]], every: Sequence[dict[str, Any]]) -> str:
    """Return one line on regressions."""
    large = [one for one in some if (size := _size(one, every)) is not None and size >= LARGE]
    caught = sum(slower("p95", one["figures"]["p95"]) for one in large)
    any_caught = sum(any(slower(f, one["figures"][f]) for f in one["figures"]) for one in some)
    wrong = sum(beyond_doubt(one["figures"]["p95"]) and one["figures"]["p95"]["mean"] < 0 for one in some)
    clear = [one for one in some if slower("p95", one["figures"]["p95"])]
    right = sum(one["planted"] in one["shares"][0]["lines"] for one in clear)
    others = [s for one in some for s in one["shares"] if one["planted"] not in s["lines"]]
    false = sum(s["p95"][1] > 0 or s["p95"][2] < 0 for s in others)
    parts = (
        f"{len(some)} measured, any figure worse beyond doubt {any_caught}",
        f"p95 >= {LARGE:.0%}: {caught} of {len(large)} caught",
        f"direction wrong {wrong}",
        f"line right {right} of {len(clear)}",
        f"inert lines blamed {false} of {len(others)}",
    )
    return "; ".join(parts)


def _size(one: dict[str, Any], every: Sequence[dict[str, Any]]) -> float | None:
    """Return by how much p95 rises, by the other run of the same regression."""
    same = ("kind", "project", "number")
    for other in every:
        if all(other[f] == one[f] for f in same) and other["repetition"] != one["repetition"]:
            return float(other["figures"]["p95"]["mean"])
    return None


def main() -> int:
    """Measure what is not measured yet, print what all shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=90, help="comparisons in all [default: %(default)s]")
    parser.add_argument("--only", choices=("inert", "regressions"), help="one kind")
    parser.add_argument("--budget", type=float, default=60.0, help="of one, seconds [default: %(default)s]")
    parser.add_argument("--null", type=int, default=0, help="changes that mean nothing [default: 0]")
    add_results(parser, "version-effects.jsonl")
    options = parser.parse_args()
    print(describe("libcst"))
    if options.null:
        null_changes(options.null)
    store = Store(options.results)
    results: list[dict[str, Any]] = []
    for kind, name, number, repetition in jobs(options.only):
        if len(results) >= options.runs:
            break
        key = f"{kind}/{name}/{number}/{repetition}/{options.budget:g}"
        found = store.get(key)
        if found is None:
            found = measured(kind, name, number, repetition, options.budget)
            if found is None:
                continue
            store.put(key, found)
            print(f"{len(results) + 1}: {key}: {found.get('figures', found)}", flush=True)
        results.append(found)
    report(results)
    return 0


if __name__ == "__main__":
    run_resumable(main)
