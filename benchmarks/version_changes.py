"""Is `mup compare` silent about changes that mean nothing, and does it name the others, with their line?

    python benchmarks/version_changes.py [--changes N] [--regressions N] [--seed N]

Changes are made to copies of the examples by a program, with random numbers from the seed. *Null changes*
keep what the code does: comments and blank lines, another layout, other names of local variables, functions
moved in their file or to another one, another order of imports and of methods. Every difference that is told
of them is a false alarm. *Regressions* change one thing: one more call, a call in a loop (N + 1), a wait that
comes too early, a smaller pool, more local work. Each must be told, as what it is, at the line it was made
in, and nothing of any other line. Exits 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from machine import describe

from analyzer.static import analyse_project, translate
from analyzer.static.project_version import Difference, Version
from analyzer.static.versions import differences
from mup.lqn.comparison import compare
from mup.project import load_project

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
APPLICATIONS = ("acmeair", "facedetect", "fan-out", "jpetstore", "starter", "teastore", "tms", "translator")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

FAN_OUT = """\
from mup import EP, MS, Client, Communication


class Front(MS):
    pool_size = 4

    @EP("/page/")
    def page(self, comm: Communication) -> None:
        title = comm.call("Back", "/title/", {})
        text = comm.call("Back", "/text/", {})
        prices = [self.price(comm, number) for number in range(3)]
        comm.respond([title.get(), text.get(), prices])

    @EP("/pair/")
    def pair(self, comm: Communication) -> None:
        first = comm.query("db", "find", "words", {})
        second = comm.call("Back", "/text/", {})
        comm.respond([first.get(), second.get()])

    def price(self, comm: Communication, number: int) -> object:
        return comm.call("Back", "/price/", {"number": number}).get()


class Back(MS):
    pool_size = 8

    @EP("/title/")
    def title(self, comm: Communication) -> None:
        comm.respond("title")

    @EP("/text/")
    def text(self, comm: Communication) -> None:
        comm.respond("text")

    @EP("/price/")
    def price(self, comm: Communication) -> None:
        comm.respond(comm.params["number"])


class Reader(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1)
        await comm.call("Front", "/page/", {})
        await comm.call("Front", "/pair/", {})
"""
FAN_OUT_TOML = """\
[project]
client = "services:Reader"
[services.Front]
class = "services:Front"
[services.Back]
class = "services:Back"
[databases.db]
"""
"""No example calls several services at once, so there is a project more whose calls can lose that."""


def version(folder: Path) -> Version:
    """Analyse a project as `mup compare` does."""
    project = load_project(folder)
    return Version(analyse_project(project, with_code=True), project)


def copied(name: str, folder: Path) -> Path:
    """Copy the source of an example, or write that of the fan-out; return its folder."""
    target = folder / name
    if name == "fan-out":
        target.mkdir(parents=True)
        (target / "services.py").write_text(FAN_OUT, encoding="utf-8")
        (target / "mup.toml").write_text(FAN_OUT_TOML, encoding="utf-8")
        return target
    keep = shutil.ignore_patterns("tests", ".mup", "__pycache__", "*.png", "*.jpg", "model.json")
    shutil.copytree(EXAMPLES / name, target, ignore=keep)
    return target


def sources(project: Path) -> list[Path]:
    """Return the Python files of a project, in a stable order."""
    return sorted(project.rglob("*.py"))


# Null changes: each changes one file, and returns whether it found something to change.

NullChange = Callable[[Path, Path, random.Random], bool]


def comments(file: Path, _: Path, source: random.Random) -> bool:
    """Insert comments and blank lines before some statements."""
    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")
    starts = [s for s in _statements(ast.parse(text)) if not lines[_first(s) - 1][: s.col_offset].strip()]
    if not starts:
        return False
    chosen = source.sample(starts, min(len(starts), source.randint(1, 6)))
    for statement in sorted(chosen, key=_first, reverse=True):
        more = [" " * statement.col_offset + f"# Note {source.randint(1, 999)}: nothing new.", ""]
        lines[_first(statement) - 1 : _first(statement) - 1] = more[: source.randint(1, 2)]
    return _written(file, "\n".join(lines))


def layout(file: Path, _: Path, source: random.Random) -> bool:
    """Write the file anew: other quotes, parentheses, line breaks, indentation; no comments."""
    text = ast.unparse(ast.parse(file.read_text(encoding="utf-8")))
    width = source.choice((2, 4, 8))
    if '"""' not in text and "'''" not in text:
        text = re.sub(r"^( {4})+", lambda m: " " * (len(m[0]) // 4 * width), text, flags=re.MULTILINE)
    return _written(file, text + "\n")


def docstrings(file: Path, _: Path, source: random.Random) -> bool:
    """Say something else in the docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Expr(ast.Constant(f"Does it {source.randint(1, 999)} times."))
    return _written(file, ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def renamed_locals(file: Path, _: Path, source: random.Random) -> bool:
    """Give variables of some functions other names."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and _variables(node)]
    for function in source.sample(functions, min(len(functions), 3)):
        # What is inside of another chosen function may have been renamed with it.
        names = _variables(function)
        for name in source.sample(names, min(len(names), 3)):
            _rename(function, name, f"{name}_{source.randint(1, 999)}")
    return bool(functions) and _written(file, ast.unparse(tree) + "\n")


def _variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names that are variables of a function, and of no function inside it."""
    nodes = list(ast.walk(function))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    shared = {name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
    parameters = {n.arg for n in nodes if isinstance(n, ast.arg)}
    inner = [n for n in nodes if isinstance(n, (*FUNCTIONS, ast.Lambda, ast.ClassDef)) and n is not function]
    inside = {n.id for one in inner for n in ast.walk(one) if isinstance(n, ast.Name)}
    return sorted(stored - shared - parameters - inside)


def _rename(function: ast.AST, old: str, new: str) -> None:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new


def moved_functions(file: Path, _: Path, source: random.Random) -> bool:
    """Move a function of the module to its end."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    needed = {n.id for part in _run_at_import(tree) for n in ast.walk(part) if isinstance(n, ast.Name)}
    movable = [s for s in tree.body if isinstance(s, FUNCTIONS) and s.name not in needed]
    if not movable:
        return False
    chosen = source.choice(movable)
    tree.body = [*(s for s in tree.body if s is not chosen), chosen]
    return _written(file, ast.unparse(tree) + "\n")


def functions_to_another_file(file: Path, root: Path, source: random.Random) -> bool:
    """Move a function that needs nothing of its module but imports to a new module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    own = {n for s in tree.body if not isinstance(s, ast.Import | ast.ImportFrom) for n in _bound(s)}
    imports = [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    movable = [
        s
        for s in tree.body
        if isinstance(s, FUNCTIONS)
        and not any(isinstance(n, ast.Name) and n.id in own for n in ast.walk(s))
        and not any(isinstance(s, ast.ImportFrom) and s.level for s in imports)
    ]
    if not movable:
        return False
    chosen = source.choice(movable)
    name = f"moved_{source.randint(1, 999)}"
    module = ast.Module([*imports, chosen], [])
    (root / f"{name}.py").write_text(ast.unparse(module) + "\n", encoding="utf-8")
    place = tree.body.index(chosen)
    tree.body[place] = ast.ImportFrom(name, [ast.alias(chosen.name)], 0)
    return _written(file, ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def imports_in_another_order(file: Path, _: Path, source: random.Random) -> bool:
    """Shuffle the import statements at the top of the module, and the names in them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [
        i
        for i, s in enumerate(tree.body)
        if isinstance(s, ast.Import | ast.ImportFrom) and getattr(s, "module", "") != "__future__"
    ]
    if len(found) < 2:
        return False
    shuffled = [tree.body[i] for i in found]
    source.shuffle(shuffled)
    for i, statement in zip(found, shuffled, strict=True):
        tree.body[i] = statement
        if isinstance(statement, ast.Import | ast.ImportFrom):
            source.shuffle(statement.names)
    return _written(file, ast.unparse(tree) + "\n")


def methods_in_another_order(file: Path, _: Path, source: random.Random) -> bool:
    """Shuffle the methods of a class, in which nothing else refers to them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names = [s.name for s in node.body if isinstance(s, FUNCTIONS)]
            used = {n.id for part in _run_at_import(node) for n in ast.walk(part) if isinstance(n, ast.Name)}
            if len(names) == len(set(names)) > 1 and not used & set(names):
                classes.append(node)
    if not classes:
        return False
    chosen = source.choice(classes)
    places = [i for i, s in enumerate(chosen.body) if isinstance(s, FUNCTIONS)]
    methods = [chosen.body[i] for i in places]
    source.shuffle(methods)
    for i, method in zip(places, methods, strict=True):
        chosen.body[i] = method
    return _written(file, ast.unparse(tree) + "\n")


NULL_CHANGES: dict[str, NullChange] = {
    "comments": comments,
    "layout": layout,
    "docstrings": docstrings,
    "renamed locals": renamed_locals,
    "moved functions": moved_functions,
    "functions to another file": functions_to_another_file,
    "order of imports": imports_in_another_order,
    "order of methods": methods_in_another_order,
}


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _first(statement: ast.stmt) -> int:
    """Return the line where a statement begins, with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _run_at_import(tree: ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Yield what runs when a module or class is made: not the bodies of functions."""
    for statement in tree.body:
        if isinstance(statement, FUNCTIONS):
            yield from (*statement.decorator_list, statement.args)
        elif isinstance(statement, ast.ClassDef):
            yield from (*statement.decorator_list, *statement.bases, *_run_at_import(statement))
        else:
            yield statement


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return {statement.name}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _written(file: Path, text: str) -> bool:
    if text == file.read_text(encoding="utf-8"):
        return False
    file.write_text(text, encoding="utf-8")
    return True


@dataclass(frozen=True, slots=True)
class Alarm:
    """What was told of a null change."""

    application: str
    kind: str
    seed: int
    reported: tuple[str, ...]


def null_change(name: str, kind: str, seed: int, folder: Path) -> Path | None:
    """Make a null change to a copy of an example; None if it has nothing to change like that."""
    source = random.Random(seed)
    project = copied(name, folder)
    files = sources(project)
    root = load_project(project).source
    source.shuffle(files)
    for file in files:
        if NULL_CHANGES[kind](file, root, source):
            return project
    return None


def reported(before: Version, after: Version) -> tuple[str, ...]:
    """Return what is told of two versions, by `mup compare` and by `mup diff` of models of their source."""
    if after.application.errors:
        return tuple(f"error {d.code} {d.file}:{d.line} {d.message}" for d in after.application.errors)
    found = [f"{d.kind} {d.subjects[0]}: {d.text} ({d.file}:{d.line})" for d in differences(before, after)]
    models = [translate(v.application, name="m", client=_client(v)) for v in (before, after)]
    changes = (change for change in compare(*models) if change.field != "source")
    found += [f"mup diff: {change.where} {change.field}" for change in changes]
    return tuple(found)


def _client(one: Version) -> str | None:
    return None if one.project is None else one.project.client_class or None


# Regressions.


@dataclass(frozen=True, slots=True)
class Regression:
    """A change for the worse that was made.

    Attributes:
        kind: What it was.
        reported_as: The kind of difference that says so.
        file, line: Where, relative to the project's folder.
        words: What the text of the difference must hold.
    """

    kind: str
    reported_as: str
    file: str
    line: int
    words: str


@dataclass(frozen=True, slots=True)
class _Spot:
    """A call in a statement of a function, where statements can be inserted before."""

    file: Path
    line: int
    indent: str
    call: str
    waits: bool


def _calls(project: Path) -> list[_Spot]:
    """Return the calls and queries that could be made again before the statement they are in."""
    found = []
    for file in sources(project):
        text = file.read_text(encoding="utf-8")
        lines = text.split("\n")
        for function in (n for n in ast.walk(ast.parse(text)) if isinstance(n, FUNCTIONS)):
            for block in _blocks(function):
                for statement in block:
                    indent = lines[statement.lineno - 1][: statement.col_offset]
                    for call in [] if indent.strip() else _own_calls(statement):
                        waits = isinstance(function, ast.AsyncFunctionDef)
                        found.append(_Spot(file, statement.lineno, indent, ast.unparse(call), waits))
    return found


def _blocks(function: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    """Yield the lists of statements of a function, not those of functions inside it."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(function, name, [])
        if block and isinstance(block, list) and isinstance(block[0], ast.stmt):
            yield block
            for statement in block:
                if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                    yield from _blocks(statement)


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a simple statement that use no name which only an expression of it binds."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)) or hasattr(statement, "body"):
        return
    nodes = list(ast.walk(statement))
    if any(isinstance(n, ast.comprehension | ast.Lambda | ast.NamedExpr) for n in nodes):
        return
    for node in nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("call", "query")
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "comm"
            and not any(isinstance(n, ast.Await) for n in ast.walk(node))
            and not any(
                isinstance(n, ast.Attribute) and n.attr in ("call", "query")
                for argument in node.args
                for n in ast.walk(argument)
            )
        ):
            yield node


def _inserted(spot: _Spot, lines: Sequence[str]) -> None:
    text = spot.file.read_text(encoding="utf-8").split("\n")
    text[spot.line - 1 : spot.line - 1] = [spot.indent + line for line in lines]
    spot.file.write_text("\n".join(text), encoding="utf-8")


def _done(spot: _Spot) -> str:
    return f"await {spot.call}" if spot.waits else f"{spot.call}.get()"


def one_more_call(project: Path, source: random.Random) -> Regression | None:
    """Make a call twice."""
    spots = _calls(project)
    if not spots:
        return None
    spot = source.choice(spots)
    _inserted(spot, [_done(spot)])
    return Regression("one more call", "calls", _name(spot.file, project), spot.line, "is ")


def call_in_a_loop(project: Path, source: random.Random) -> Regression | None:
    """Make a call once for each of something, too."""
    spots = _calls(project)
    if not spots:
        return None
    spot = source.choice(spots)
    _inserted(spot, ["for letter in str(globals()):", f"    {_done(spot)}"])
    return Regression("N + 1", "calls", _name(spot.file, project), spot.line + 1, " per letter")


def early_wait(project: Path, source: random.Random) -> Regression | None:
    """Wait for a call before the next one is made."""
    spots = []
    for file in sources(project):
        text = file.read_text(encoding="utf-8")
        for function in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)):
            for block in _blocks(function):
                for first, second in pairwise(block):
                    name = _future(first)
                    if name and _future(second):
                        line = second.lineno
                        indent = " " * second.col_offset
                        spots.append((_Spot(file, line, indent, "", waits=False), name))
    if not spots:
        return None
    spot, name = source.choice(spots)
    _inserted(spot, [f"{name}.get()"])
    return Regression("lost parallelism", "parallelism", _name(spot.file, project), spot.line, "sequential")


def _future(statement: ast.stmt) -> str:
    """Return the variable that a statement stores a call in without waiting for it; "" if there is none."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        value = statement.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            made = value.func.attr in ("call", "query") and isinstance(value.func.value, ast.Name)
            return statement.targets[0].id if made else ""
    return ""


def smaller_pool(project: Path, source: random.Random) -> Regression | None:
    """Take workers from a service, in its class or in mup.toml."""
    found = []
    for file in (*sources(project), project / "mup.toml"):
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            size = re.match(r"(\s*pool_size = )(\d+)$", line)
            if size and int(size[2]) > 1:
                found.append((file, number, size[1], int(size[2])))
    if not found:
        return None
    file, number, start, size = source.choice(found)
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[number - 1] = f"{start}{size - 1}"
    file.write_text("\n".join(lines), encoding="utf-8")
    words = f"pool {size} -> {size - 1}"
    return Regression("smaller pool", "deployment", _name(file, project), number, words)


def more_local_work(project: Path, source: random.Random) -> Regression | None:
    """Compute something before a call."""
    spots = _calls(project)
    if not spots:
        return None
    spot = source.choice(spots)
    _inserted(spot, [f"sum(range({source.randint(1000, 9999)}))"])
    return Regression("more local work", "local work", _name(spot.file, project), spot.line, "local work")


def _name(file: Path, project: Path) -> str:
    return file.relative_to(project).as_posix()


REGRESSIONS = {
    "one more call": one_more_call,
    "N + 1": call_in_a_loop,
    "lost parallelism": early_wait,
    "smaller pool": smaller_pool,
    "more local work": more_local_work,
}


def verdict(made: Regression, found: Sequence[Difference]) -> str:
    """Return what is wrong with what was told of a regression; "" if nothing is."""
    kinds = (made.reported_as, "paths") if made.reported_as == "calls" else (made.reported_as,)
    fitting = [d for d in found if d.kind in kinds and made.words in d.text]
    if not fitting:
        return "not told as what it is"
    at_other_lines = [d for d in found if (d.file, d.line) != (made.file, made.line)]
    if any(d in at_other_lines for d in fitting):
        return "another line"
    return "something else was told, too" if at_other_lines else ""


def main() -> int:
    """Make the changes, print what was told of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=200, help="null changes (default 200)")
    parser.add_argument("--regressions", type=int, default=60, help="regressions (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    options = parser.parse_args()
    print(describe("libcst"))
    with tempfile.TemporaryDirectory() as folder:
        before = {name: version(copied(name, Path(folder))) for name in APPLICATIONS}
        return _all(before, options)


def _all(before: dict[str, Version], options: argparse.Namespace) -> int:
    alarms = _null_changes(before, options.changes, options.seed)
    wrong = _regressions(before, options.regressions, options.seed)
    return int(bool(alarms or wrong))


def _null_changes(before: dict[str, Version], wanted: int, seed: int) -> list[Alarm]:
    alarms: list[Alarm] = []
    made: Counter[str] = Counter()
    cpu = time.process_time()
    number = seed
    kinds = list(NULL_CHANGES)
    while made.total() < wanted:
        number += 1
        kind = kinds[number % len(kinds)]
        name = random.Random(number).choice(APPLICATIONS)
        with tempfile.TemporaryDirectory() as folder:
            project = null_change(name, kind, number, Path(folder))
            if project is None:
                continue
            made[kind] += 1
            found = reported(before[name], version(project))
        if found:
            alarms.append(Alarm(name, kind, number, found))
    print(f"{made.total()} null changes, {len(alarms)} false alarms, {time.process_time() - cpu:.0f} CPU s")
    for kind, count in made.items():
        print(f"  {kind}: {count}, {sum(a.kind == kind for a in alarms)} false alarms")
    for alarm in alarms:
        print(f"  {alarm.application}, {alarm.kind}, seed {alarm.seed}")
        for text in alarm.reported:
            print(f"    {text}")
    return alarms


def _regressions(before: dict[str, Version], wanted: int, seed: int) -> list[str]:
    wrong: list[str] = []
    made: Counter[str] = Counter()
    number = seed
    kinds = list(REGRESSIONS)
    while made.total() < wanted:
        number += 1
        kind = kinds[number % len(kinds)]
        source = random.Random(number)
        # Only there calls are made that are waited for later.
        name = source.choice(APPLICATIONS) if kind != "lost parallelism" else "fan-out"
        with tempfile.TemporaryDirectory() as folder:
            project = copied(name, Path(folder))
            regression = REGRESSIONS[kind](project, source)
            if regression is None:
                continue
            after = version(project)
            made[kind] += 1
            found = [] if after.application.errors else differences(before[name], after)
            errors = [f"{d.file}:{d.line} {d.message}" for d in after.application.errors]
            problem = verdict(regression, found)
        if problem:
            texts = [f"{d.kind}: {d.text} ({d.file}:{d.line})" for d in found] + errors
            wrong.append(f"{name}, {regression}, seed {number}: {problem}\n    " + "\n    ".join(texts))
    print(f"{made.total()} regressions, {made.total() - len(wrong)} told as what they are, at their line")
    for kind, count in made.items():
        print(f"  {kind}: {count}")
    for text in wrong:
        print(f"  {text}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
