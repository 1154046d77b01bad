"""Time to analyse an endpoint with many branches, and the size of its model.

    python benchmarks/static_paths.py [--repeats N] [--quick]

Generated endpoints, each with a number of branches behind each other, around calls that are awaited at
once (``successive``), inside one ``try`` (``failing``), with a way out behind each (``leaving``), inside a
loop without a visible bound (``looping``), and with all replies awaited only at the end (``pending``, which
no model can tell and which is refused). Processor seconds, medians; what is counted are the paths, the bodies
of their choices, and the activities of the entry. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import indent

from machine import describe

from analyzer.static import Application, analyse, translate

HEAD = """from mup import EP, MS
from mup.errors import MupError

class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.respond(1)

class A(MS):
    @EP("/a/")
    def a(self, comm):
"""
CALL = 'comm.call("B", "/b/").get()'


def successive(branches: int) -> str:
    """Return branches behind each other."""
    return "".join(f'if comm.params["{n}"]:\n    {CALL}\n' for n in range(branches))


def failing(branches: int) -> str:
    """Return branches inside a ``try``: each of their calls may fail."""
    return f"try:\n{indent(successive(branches), '    ')}except MupError:\n    {CALL}\n"


def leaving(branches: int) -> str:
    """Return branches each of which is followed by a way out."""
    way_out = "    comm.respond(0)\n    return\n"
    return "".join(
        f'if comm.params["{n}"]:\n    {CALL}\nif comm.headers["{n}"]:\n{way_out}' for n in range(branches)
    )


def looping(branches: int) -> str:
    """Return a loop of an unknown number of iterations, with branches inside."""
    return f"for item in comm.params:\n{indent(successive(branches), '    ')}"


def pending(branches: int) -> str:
    """Return calls that may be made, all awaited at the end."""
    made = "".join(f'f{n} = comm.call("B", "/b/") if comm.params["{n}"] else None\n' for n in range(branches))
    return made + "".join(f"if f{n}:\n    f{n}.get()\n" for n in range(branches))


KINDS: tuple[Callable[[int], str], ...] = (successive, failing, leaving, looping, pending)


def measure(folder: Path, body: str, repeats: int) -> tuple[float, Application]:
    """Return the median time of an analysis with translation, and what it found."""
    (folder / "app.py").write_text(HEAD + indent(f"{body}comm.respond(1)\n", " " * 8), encoding="utf-8")
    times = []
    for _ in range(repeats):
        started = time.process_time()
        application = analyse(folder)
        if not application.errors:
            translate(application, name="x")
        times.append(time.process_time() - started)
    return statistics.median(times), application


def row(kind: str, branches: int, seconds: float, application: Application) -> str:
    """Return a line of the table."""
    start = f"{kind:<12}{branches:>9}{seconds:>10.2f}"
    if application.errors:
        return f"{start}  refused: {application.errors[0].code}"
    paths = application.endpoint("A/a/").paths
    entry = translate(application, name="x").task("A").entry("/a/")
    return f"{start}{len(paths):>8}{sum(p.size for p in paths) - len(paths):>8}{len(entry.activities):>12}"


def main() -> None:
    """Print a row per kind of endpoint and number of branches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small endpoints, once: only to see it work")
    options = parser.parse_args()
    print(describe("libcst"))
    print(f"{'endpoint':<12}{'branches':>9}{'seconds':>10}{'paths':>8}{'bodies':>8}{'activities':>12}")
    for kind in KINDS:
        for branches in (5, 12) if options.quick else (5, 20, 40, 80):
            with tempfile.TemporaryDirectory() as folder:
                repeats = 1 if options.quick else options.repeats
                seconds, application = measure(Path(folder), kind(branches), repeats)
            print(row(kind.__name__, branches, seconds, application))


if __name__ == "__main__":
    main()
