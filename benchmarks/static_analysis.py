"""Time and memory of static analysis, by the amount of source.

    python benchmarks/static_analysis.py [--repeats N] [--quick]

Processor seconds of a warm process, medians, and the same relative to two things measured in turn with it,
for machines differ: what libcst needs to parse the services and find the position of every node in them,
which is what an analysis costs that does nothing; and what the interpreter's parser needs for all the text.
Memory is the peak of a fresh process that does nothing else, Python and libcst included.

At the end, a project of 10,000 lines of services: processor seconds of ``mup paths`` as a process of its own,
with nothing remembered of the project from before, and with everything. The interpreter has compiled mup
before, as it has for a user from the second command on.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from machine import describe

SEED = 0
MODULE_LINES = 500
"""Lines of one unrelated module."""
PROJECT_LINES, PROJECT_FILES = 10_000, 5

HEAD = """\
from mup import EP, MS, Client, Communication
from mup.errors import CallError

TARGET = "/b/"


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class Shop(MS):
    pool_size = 4

"""
ENDPOINT = '''\
    def helper_{n}(self, comm: Communication, value: int) -> dict[str, object]:
        """Do the {n}-th thing."""
        total = 0
        for index in range(value):
            total += index * 3 - (index % 7)
            if total > 1000:
                total = total // 2
        rows = [row for row in (1, 2, 3) if row != value]
        reply = comm.call("B", TARGET, {{"total": total, "rows": rows}}).get()
        return {{"reply": reply, "total": total}}

    @EP("/e{n}/")
    def e{n}(self, comm: Communication) -> None:
        """Answer {n}."""
        params = comm.params
        word = str(params.get("word", "")).strip().lower()
        table = {{letter: word.count(letter) for letter in "abcdefgh"}}
        if table["a"] > 2 and not params.get("skip"):
            first = self.helper_{n}(comm, 5)
        else:
            first = {{}}
        try:
            row = comm.query("db", "find", "words", {{"_id": word}}).get()
        except CallError as error:
            row = [{{"error": str(error)}}]
        score = sum(len(item) for item in row) + len(first)
        message = f"{{word}}: {{score}} of {{len(table)}}"
        comm.respond({{"message": message, "row": row, "first": first}})

'''
UNRELATED = '''\
class Item{n}:
    """Item {n}."""

    def __init__(self, a, b):
        self.a = a
        self.b = [b] * 3

    def work(self, values):
        total = 0
        for value in values:
            if value > self.a:
                total += math.sqrt(value) * self.b[0]
            else:
                total -= len(json.dumps({{"v": value, "a": self.a}}))
        return total


'''


def repeated(head: str, part: str, lines: int) -> str:
    """Return a source of about so many lines."""
    count = max(1, (lines - head.count("\n")) // part.count("\n"))
    return head + "".join(part.format(n=n) for n in range(count))


def write_tree(folder: Path, service_lines: int, unrelated_lines: int) -> str:
    """Write a service, and unrelated modules beside it; return all text."""
    texts = [repeated(HEAD, ENDPOINT, service_lines)]
    (folder / "services.py").write_text(texts[0], encoding="utf-8")
    package = folder / "unrelated"
    package.mkdir()
    for number in range(unrelated_lines // MODULE_LINES):
        text = repeated("import json\nimport math\n\n\n", UNRELATED, MODULE_LINES)
        (package / f"module_{number}.py").write_text(text, encoding="utf-8")
        texts.append(text)
    return "\n".join(texts)


def write_project(folder: Path) -> None:
    """Write a project of five files with two services each, 10,000 lines together."""
    lines = ['[project]\nname = "size"\n', "[databases.db]\n"]
    for number in range(PROJECT_FILES):
        head = HEAD.replace("class Shop", f"class Shop{number}").replace("class B", f"class B{number}")
        text = repeated(head, ENDPOINT.replace('"B"', f'"B{number}"'), PROJECT_LINES // PROJECT_FILES)
        (folder / f"part_{number}.py").write_text(text, encoding="utf-8")
        lines += [
            f'[services.{name}{number}]\nclass = "part_{number}:{name}{number}"\n' for name in ("Shop", "B")
        ]
    (folder / "mup.toml").write_text("".join(lines), encoding="utf-8")


def listing(folder: Path, compiled: str) -> float:
    """Return the processor seconds of ``mup paths``, as a process, with compiled modules in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "mup", "paths", str(folder), "--json"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_project(repeats: int) -> None:
    """Print what a project costs, cold and remembered."""
    cold: list[float] = []
    again: list[float] = []
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as compiled:
        folder = Path(name)
        write_project(folder)
        listing(folder, compiled)
        for _ in range(repeats):
            shutil.rmtree(folder / ".mup", ignore_errors=True)
            cold.append(listing(folder, compiled))
            again.append(listing(folder, compiled))
    print(
        f"\na project of {PROJECT_LINES} lines of services, mup paths: {statistics.median(cold):.2f} CPU s"
        f" with nothing remembered, {statistics.median(again):.2f} with everything (targets: 2.5 and 0.7)"
    )


def seconds(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Return the median processor times of pieces of work, done in turn, once warm."""
    times: list[list[float]] = [[] for _ in works]
    for repetition in range(repeats + 1):
        for work, taken in zip(works, times, strict=True):
            begun = time.process_time()
            work()
            if repetition:
                taken.append(time.process_time() - begun)
    return [statistics.median(taken) for taken in times]


def placed(text: str) -> object:
    """Parse a text with libcst and find where its nodes are."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    return wrapper.resolve(PositionProvider)


def peak_memory(folder: Path) -> float:
    """Return the peak memory of a process that analyses a folder, in MB."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak", str(folder)], check=True, capture_output=True, text=True
    )
    return float(done.stdout) / 1024


def main() -> None:
    """Print one line per size."""
    from analyzer.static import analyse  # noqa: PLC0415  (a child process measures what it needs)

    parser = argparse.ArgumentParser(description="How long does static analysis take?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, once")
    parser.add_argument("--peak", metavar="FOLDER", help="print the peak memory of analysing a folder, in kB")
    options = parser.parse_args()
    if options.peak:
        analyse(options.peak)
        # Not getrusage: its figure includes what the parent had when it started this process.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
        return
    sizes = [(500, 0), (1000, 0), (2000, 0), (4000, 0), (8000, 0), (2000, 10_000), (2000, 100_000)]
    if options.quick:
        sizes, options.repeats = [(500, 0), (500, 5000)], 1
    print(describe("mup-framework", "libcst"), f"\nseed {SEED}: the sources are always the same\n")
    print("service  unrelated  endpoints    CPU s  ms/line  x libcst  x ast.parse   peak MB")
    for service, unrelated in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text = write_tree(folder, service, unrelated)
            application = analyse(folder)
            assert not application.errors  # noqa: S101
            services = (folder / "services.py").read_text(encoding="utf-8")
            needed, concrete, parse = seconds(
                options.repeats, partial(analyse, folder), partial(placed, services), partial(ast.parse, text)
            )
            memory = peak_memory(folder)
        endpoints = sum(1 for _ in application.endpoints())
        print(
            f"{service:7d}  {unrelated:9d}  {endpoints:9d}  {needed:7.2f}  {needed / service * 1e3:7.2f}"
            f"  {needed / concrete:8.2f}  {needed / parse:11.1f}  {memory:8.0f}"
        )
    print(
        "\nms/line and libcst (parser and positions): of the services; ast.parse: of all lines."
        "\nTargets: 1 s and 200 MB for 2000 lines of services; 30 s with 100,000 unrelated lines around them."
    )
    print_project(options.repeats)


if __name__ == "__main__":
    main()
