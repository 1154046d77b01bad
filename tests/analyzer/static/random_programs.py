"""Random endpoint programs: what people write, from constructs that can be switched off by name.

A program is a tree of statements, so that one that shows a bug can be made smaller: ``smaller`` yields its
variants with something left out. Statements keep track of what is in scope, so nearly all programs run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

__all__ = ["CONSTRUCTS", "LOOPS", "SUPPORT", "Program", "compiles", "module_source", "program", "smaller"]

SUPPORT = '''
"""Helpers of all programs, in another module."""

from contextlib import contextmanager
from dataclasses import dataclass

from mup import EP, MS
from mup.errors import CallError, MupError

SERVICE = "B"
PATH = "/c/"
PATHS = ("/b/", "/c/")
ROUTES = {"b": "/b/", "c": "/c/"}


def ask(comm, path="/b/"):
    return comm.call("B", path).get()


def start(comm, *, path=PATH):
    return comm.call(SERVICE, path)


def wait(future):
    return future.get()


def both(first, second):
    return [second.get(), first.get()]


def collect(futures):
    return [f.get() for f in futures]


def start_all(comm, paths=PATHS):
    return [comm.call(SERVICE, p) for p in paths]


def safely(future):
    try:
        return future.get()
    except MupError:
        return None


def retry(comm, path, times=2):
    for _ in range(times):
        try:
            return comm.call("B", path).get()
        except MupError:
            continue
    return None


def apply(action, *values):
    return action(*values)


def more(paths):
    paths.append("/c/")


def first_of(first, second, *, default=None):
    for future in (first, second):
        if future.get():
            return 1
    return default.get() if default is not None else 0


def each(comm, paths=PATHS):
    for path in paths:
        yield comm.call(SERVICE, path).get()


def pairs(futures):
    before = None
    for future in futures:
        if before is not None:
            yield before, future
        before = future


@contextmanager
def session(comm, path="/b/"):
    future = comm.call(SERVICE, path)
    try:
        yield future
    except CallError:
        comm.query("db", "rollback", "c", {}).get()
        raise
    finally:
        future.get()


@dataclass
class Pair:
    first: object
    second: object = None

    def wait(self):
        return self.first.get()


class Gateway:
    """A helper object that keeps the Communication and a call."""

    def __init__(self, comm, path="/b/"):
        self._comm = comm
        self.path = path
        self._pending = None

    def ask(self):
        return self._comm.call(SERVICE, self.path).get()

    def start(self):
        self._pending = self._comm.call(SERVICE, self.path)
        return self

    def finish(self):
        if self._pending is None:
            return None
        pending, self._pending = self._pending, None
        return pending.get()

    @property
    def answer(self):
        return self.ask()


class Lazy(Gateway):
    """One that asks only once."""

    def __init__(self, comm):
        super().__init__(comm, "/c/")
        self._known = None

    def ask(self):
        if self._known is None:
            self._known = super().ask()
        return self._known


class Base(MS):
    TARGET = "B"

    def _fetch(self, comm, name="q"):
        return comm.query("db", name, "c", {}).get()

    def _start(self, comm):
        return comm.call(self.TARGET, "/b/")

    def _through(self, comm, future=None):
        if future is not None:
            return future.get()
        return self._fetch(comm, name="p")

    @staticmethod
    def _pair(comm):
        return comm.call("B", "/b/"), comm.call("B", "/c/")


class B(MS):
    @EP("/b/")
    def b(self, comm):
        comm.respond(1)

    @EP("/c/")
    def c(self, comm):
        comm.respond(2)
'''

HEAD = """
from contextlib import nullcontext, suppress

import support
from mup import EP
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError, NoReplicaError, QueryError
from support import PATHS, Base
from support import ask as question


class Refused(Exception):
    pass


class VeryRefused(Refused):
    pass


class A(Base):
    LOCAL = "/b/"
"""


OWN = "{own}"
"""Begins the names of a program's methods: several programs share a class."""


@dataclass(frozen=True)
class Line:
    """A simple statement."""

    text: str


@dataclass(frozen=True)
class Compound:
    """A statement with blocks: ``if`` with its ``else``, ``try`` with its handlers."""

    parts: tuple[tuple[str, Block], ...]


Statement: TypeAlias = "Line | Compound"
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True)
class Program:
    """An endpoint, and the methods it calls.

    Attributes:
        body: The statements of the endpoint.
        methods: Header and body of each method.
        used: Names of the constructs in it.
    """

    body: Block
    methods: tuple[tuple[str, Block], ...] = ()
    used: frozenset[str] = frozenset()

    def source(self, name: str = "e") -> str:
        """Return the text of the endpoint called ``name`` and of its methods."""
        parts = [f'    @EP("/{name}/")', f"    def {name}(self, comm):", *_lines(self.body, 2)]
        for header, body in self.methods:
            parts += ["", f"    {header}", *_lines(body, 2)]
        return ("\n".join(parts) + "\n").replace(OWN, f"_{name}")


def module_source(programs: Collection[Program]) -> str:
    """Return a module whose service A has the endpoints ``e0``, ``e1``, ..."""
    return HEAD + "\n" + "\n".join(p.source(f"e{i}") for i, p in enumerate(programs))


def compiles(one: Program) -> bool:
    """Return whether a program is Python."""
    try:
        compile(module_source([one]), "app.py", "exec")
    except SyntaxError:
        return False
    return True


def _lines(block: Block, depth: int) -> list[str]:
    indent = "    " * depth
    lines: list[str] = []
    for statement in block:
        if isinstance(statement, Line):
            lines += [indent + text for text in statement.text.split("\n")]
            continue
        for header, body in statement.parts:
            lines += [indent + header, *_lines(body, depth + 1)]
    return lines or [indent + "pass"]


# Smaller programs.


def smaller(one: Program) -> Iterator[Program]:
    """Yield programs with something left out, the largest cuts first."""
    for i in range(len(one.methods)):
        yield replace(one, methods=one.methods[:i] + one.methods[i + 1 :])
    for body in _smaller_block(one.body):
        yield replace(one, body=body)
    for i, (header, block) in enumerate(one.methods):
        for body in _smaller_block(block):
            yield replace(one, methods=(*one.methods[:i], (header, body), *one.methods[i + 1 :]))


def _smaller_block(block: Block) -> Iterator[Block]:
    size = len(block) // 2
    while size > 1:
        for i in range(0, len(block), size):
            yield block[:i] + block[i + size :]
        size //= 2
    for i in range(len(block)):
        yield block[:i] + block[i + 1 :]
    for i, statement in enumerate(block):
        if not isinstance(statement, Compound):
            continue
        for _, body in statement.parts:
            yield block[:i] + body + block[i + 1 :]
        for one in _smaller_compound(statement):
            yield (*block[:i], one, *block[i + 1 :])


def _smaller_compound(statement: Compound) -> Iterator[Compound]:
    parts = statement.parts
    for k in range(1, len(parts)):
        yield Compound(parts[:k] + parts[k + 1 :])
    for k, (header, block) in enumerate(parts):
        for body in _smaller_block(block):
            yield Compound((*parts[:k], (header, body), *parts[k + 1 :]))


# Writing programs.


@dataclass
class Scope:
    """What a statement can use.

    Attributes:
        names: By kind of value (``future``, ``futures``, ``table``, ``maybe``, ``flag``, ``action``,
            ``paths``): the variables that certainly hold one.
        loop: Whether it can ``break``.
        known: Whether all loops around it have a visible bound.
        nested: Whether it is in a function inside the endpoint.
        depth: How many statements it is in.
    """

    names: dict[str, list[str]] = field(default_factory=dict)
    loop: bool = False
    known: bool = True
    nested: bool = False
    depth: int = 0

    def inner(self, *, loop: bool | None = None, known: bool = True, nested: bool = False) -> Scope:
        """Return the scope of a block inside; what it binds is not certain outside."""
        return Scope(
            {kind: list(names) for kind, names in self.names.items()},
            self.loop if loop is None else loop,
            self.known and known,
            self.nested or nested,
            self.depth + 1,
        )

    def add(self, kind: str, name: str) -> None:
        """Note that a name holds a value of this kind, and no other any more."""
        for names in self.names.values():
            if name in names:
                names.remove(name)
        self.names.setdefault(kind, []).append(name)


Writer: TypeAlias = "Callable[[Programs, Scope], tuple[Statement, ...] | None]"


@dataclass(frozen=True)
class Kind:
    """A construct: how often it is chosen, whether each of its static paths can be taken, whether it has blocks."""

    weight: float
    exact: bool
    blocks: bool
    write: Writer


STATEMENTS: dict[str, Kind] = {}

LOOPS = frozenset({"for-unknown", "while", "comprehension-unknown"})
"""Constructs whose number of iterations the source does not tell."""


def statement(
    name: str, weight: float = 1.0, *, exact: bool = True, blocks: bool = False
) -> Callable[[Writer], Writer]:
    """Register what writes a construct; None from it means that it does not fit here."""

    def register(writer: Writer) -> Writer:
        STATEMENTS[name] = Kind(weight, exact, blocks, writer)
        return writer

    return register


def program(seed: int, constructs: Collection[str] | None = None, *, exact: bool = False) -> Program:
    """Return a random program.

    Args:
        seed: The same seed gives the same program.
        constructs: Names of the constructs it may use; None = all.
        exact: Only what leaves every static path a way to be taken.
    """
    return Programs(random.Random(seed), CONSTRUCTS if constructs is None else constructs, exact).write()


class Programs:
    """Writes one program."""

    def __init__(self, draw: random.Random, constructs: Collection[str], exact: bool) -> None:
        self.draw = draw
        self.exact = exact
        self.left = draw.randrange(2, 7)
        self.methods: list[tuple[str, Block]] = []
        self.used: set[str] = set()
        self._numbers = 0
        self._allowed = {
            name: kind
            for name, kind in STATEMENTS.items()
            if name in constructs and (kind.exact or not exact)
        }
        self._expressions = {n for n in EXPRESSIONS if n in constructs and not (exact and n in INEXACT)}

    def write(self) -> Program:
        """Return the program."""
        scope = Scope()
        body: list[Statement] = []
        respond = "comm.respond"
        if self.chance(0.1, "bound-respond"):
            respond = "reply"
            body.append(Line("reply = comm.respond"))
        while self.left > 0:
            body += self.block(scope, self.left)
        body.append(Line(f"{respond}(1)"))
        return Program(tuple(body), tuple(self.methods), frozenset(self.used))

    # Small services.

    def chance(self, odds: float, construct: str = "") -> bool:
        """Return whether to do something; note the construct if so."""
        if construct and construct not in self._expressions:
            return False
        found = self.draw.random() < odds
        if found and construct:
            self.used.add(construct)
        return found

    def pick(self, *options: str) -> str:
        """Return one of the options."""
        return self.draw.choice(options)

    def name(self, kind: str) -> str:
        """Return a new name."""
        self._numbers += 1
        return f"{kind}{self._numbers}"

    def known(self, scope: Scope, kind: str) -> str | None:
        """Return a variable of a kind, None if there is none."""
        names = scope.names.get(kind)
        return self.draw.choice(names) if names else None

    def block(self, scope: Scope, most: int = 3) -> Block:
        """Return some statements."""
        found: list[Statement] = []
        for _ in range(self.draw.randrange(1, min(3, most) + 1)):
            self.left -= 1
            found += self.one(scope)
        return tuple(found)

    def one(self, scope: Scope) -> tuple[Statement, ...]:
        """Return one statement, or a few that belong together."""
        allowed = self._allowed
        if scope.depth >= 3 or self.left <= 0:
            allowed = {name: kind for name, kind in allowed.items() if not kind.blocks}
        for _ in range(20):
            ((name, kind),) = self.draw.choices(list(allowed.items()), [k.weight for k in allowed.values()])
            written = kind.write(self, scope)
            if written is not None:
                self.used.add(name)
                return written
        return (Line(self.answer(scope)),)

    def handler(self, scope: Scope) -> Block:
        """Return the body of an ``except`` clause."""
        body = self.block(scope.inner(), 1) if self.draw.random() < 0.8 else ()
        if self.draw.random() < 0.25:
            body = (*body, Line("raise"))
        return body

    # Expressions.

    def destination(self, scope: Scope) -> str:
        """Return the arguments that say what is called."""
        service, path = '"B"', self.pick('"/b/"', '"/c/"')
        if self.chance(0.3, "constants"):
            service = self.pick(
                "support.SERVICE", "self.TARGET" if not scope.nested else '"B"', "Base.TARGET"
            )
            path = self.pick(
                "support.PATH",
                "PATHS[0]",
                'support.ROUTES["b"]',
                "A.LOCAL",
                'f"/{PATHS[1][1]}/"',
                '"/" + "b/"',
            )
        elif self.chance(0.1, "choice-of-path"):
            path = f'"/b/" if {self.choice(scope)} else "/c/"'
            if not self.exact and self.draw.random() < 0.3:
                path = 'support.ROUTES.get(comm.params.get("m1"), "/c/")'
        if self.chance(0.1, "keyword-arguments"):
            return f"dest_ms={service}, path={path}"
        return f"{service}, {path}"

    def future(self, scope: Scope) -> str:
        """Return an expression that is a future."""
        known = self.known(scope, "future")
        kinds: list[tuple[float, str]] = [
            (4, f"comm.call({self.destination(scope)})"),
            (2, f'comm.query("db", {self.pick(repr("q"), repr("r"))}, "c", {{}})'),
        ]
        if "helpers" in self._expressions:
            kinds += [(0.6, "support.start(comm)"), (0.6, 'support.start(comm, path="/b/")')]
            if not scope.nested:
                kinds.append((0.6, "self._start(comm)"))
        if known:
            kinds.append((0.5, known))
            other = f"comm.call({self.destination(scope)})"
            kinds.append((0.3, f"{known} if {self.choice(scope)} else {other}"))
        return self._one_of(kinds)

    def futures(self, scope: Scope) -> str:
        """Return an expression that is a new list of futures."""
        first, second = f"comm.call({self.destination(scope)})", f"comm.call({self.destination(scope)})"
        kinds: list[tuple[float, str]] = [(2, f"[{first}, {second}]"), (0.3, "[]")]
        if "comprehension" in self._expressions:
            item = self.pick("PATHS", '("/b/", "/c/")', "support.PATHS")
            kinds.append((1, f'[comm.call("B", p) for p in {item}]'))
            condition = self.condition(scope.inner(nested=True), simple=True)
            kinds.append((0.5, f'[comm.call("B", p) for p in {item} if {condition}]'))
        if "helpers" in self._expressions:
            kinds += [
                (0.5, "support.start_all(comm)"),
                (0.5, "list(self._pair(comm))" if not scope.nested else "[]"),
            ]
        known = self.known(scope, "futures")
        if known and "list-operators" in self._expressions:
            kinds += [(0.5, f"{known} + [{first}]"), (0.3, f"list({known})"), (0.2, f"[*{known}, {first}]")]
        return self._one_of(kinds)

    def answer(self, scope: Scope) -> str:
        """Return an expression that waits for something."""
        future = self.known(scope, "future")
        kinds: list[tuple[float, str]] = [
            (3, f"comm.call({self.destination(scope)}).get()"),
            (1.5, 'comm.query("db", "q", "c", {}).get()'),
        ]
        if "helpers" in self._expressions:
            kinds += [
                (0.5, "support.ask(comm)"),
                (0.5, 'question(comm, path="/c/")'),
                (0.4, f"support.apply(lambda: comm.call({self.destination(scope)}).get())"),
                (0.3, f"support.wait({self.future(scope)})"),
            ]
            if not self.exact:
                kinds += [(0.3, 'support.retry(comm, "/b/")'), (0.3, f"support.safely({self.future(scope)})")]
            if not scope.nested:
                kinds += [
                    (0.5, "self._fetch(comm)"),
                    (0.3, 'self._fetch(comm, name="s")'),
                    (0.3, "self._through(comm)"),
                ]
            if future and not scope.nested:
                kinds += [(0.4, f"self._through(comm, future={future})")]
            if future:
                kinds += [(0.4, f"support.first_of({future}, {self.future(scope)}, default={future})")]
        if future:
            kinds.append((4, f"{future}.get()"))
        if action := self.known(scope, "action"):
            kinds.append((3, f"{action}()"))
        if self.chance(0.15, "conditional"):
            condition = self.condition(scope, simple=True)
            return f"({self.answer(scope)} if {condition} else {self._one_of(kinds)})"
        if self.chance(0.1, "and-or"):
            return f"({self.answer(scope)} {self.pick('and', 'or')} {self._one_of(kinds)})"
        if self.chance(0.1, "item-of-answer"):
            return f'{self._one_of(kinds)}["text"]'
        return self._one_of(kinds)

    def answers(self, scope: Scope) -> str:
        """Return an expression that waits for several futures."""
        known = self.known(scope, "futures") or self.futures(scope)
        kinds: list[tuple[float, str]] = [(2, f"[f.get() for f in {known}]")]
        kinds += [
            (0.5, f"{{i: f.get() for i, f in enumerate({known})}}"),
            (0.5, f"tuple(f.get() for f in {known})"),
            (0.5, f"sum(1 for f in {known} if f.get())"),
            (0.3, f"{{str(f.get()) for f in {known}}}"),
            (0.3, f'[comm.call("B", p).get() for p in PATHS for f in {known} if f.get()]'),
        ]
        if "short-circuit" in self._expressions:
            kinds += [(0.5, f"{self.pick('any', 'all')}(f.get() for f in {known})")]
        if "helpers" in self._expressions:
            kinds += [
                (0.6, f"support.collect({known})"),
                (0.3, f"support.apply(lambda fs: [f.get() for f in fs], {known})"),
            ]
        return self._one_of(kinds)

    def condition(self, scope: Scope, *, simple: bool = False) -> str:
        """Return an expression to branch on; a simple one does nothing remote."""
        self._numbers += 1
        number = self._numbers if self.exact or self.draw.random() < 0.7 else self.draw.randrange(1, 4)
        flag = None if self.exact and scope.nested else self.known(scope, "flag")
        kinds: list[tuple[float, str]] = [
            (3, f'comm.params.get("c{number}") == "1"'),
            (1, f'"c{number}" in comm.params'),
        ]
        if flag:
            kinds += [(2, flag), (1, f"not {flag}")]
        if not simple:
            kinds.append((0.7, self.answer(scope)))
            if "walrus" in self._expressions and not (self.exact and scope.nested):
                kinds.append((0.4, f"({self.name('x')} := {self.answer(scope)})"))
            if self.chance(0.15, "and-or"):
                operator = self.pick("and", "or")
                return f"{self.condition(scope)} {operator} {self.condition(scope)}"
        return self._one_of(kinds)

    def choice(self, scope: Scope) -> str:
        """Return a condition between two values; what it is must not be known elsewhere if paths are exact."""
        return self.condition(scope.inner(nested=True) if self.exact else scope, simple=True)

    def _one_of(self, kinds: list[tuple[float, str]]) -> str:
        return self.draw.choices([text for _, text in kinds], [weight for weight, _ in kinds])[0]


# Statements that bind and wait.


@statement("call-and-wait", 3)
def _(w: Programs, scope: Scope) -> Block:
    return (Line(w.answer(scope)),)


@statement("future", 3)
def _(w: Programs, scope: Scope) -> Block:
    name = w.known(scope, "future") if w.draw.random() < 0.15 else None
    text = w.future(scope)
    name = name or w.name("f")
    scope.add("future", name)
    return (Line(f"{name} = {text}"),)


@statement("no-wait", 0.6)
def _(w: Programs, scope: Scope) -> Block:
    return (Line(f"comm.call({w.destination(scope)})"),)


@statement("answer", 2)
def _(w: Programs, scope: Scope) -> Block:
    return (Line(f"{w.name('x')} = {w.answer(scope)}"),)


@statement("wait", 2)
def _(w: Programs, scope: Scope) -> Block | None:
    future = w.known(scope, "future")
    return None if future is None else (Line(f"{future}.get()"),)


@statement("maybe-future", 0.7)
def _(w: Programs, scope: Scope) -> Block | None:
    maybe = w.known(scope, "maybe")
    if maybe is None:
        name = w.name("m")
        text = f"{name} = {w.future(scope)} if {w.condition(scope, simple=True)} else None"
        scope.add("maybe", name)
        return (Line(text),)
    if w.exact and scope.nested:
        return None
    test = w.pick(maybe, f"{maybe} is not None")
    return (Compound(((f"if {test}:", (Line(f"{maybe}.get()"),)),)),)


@statement("list-of-futures", 1.5)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("fs")
    text = w.futures(scope)
    scope.add("futures", name)
    return (Line(f"{name} = {text}"),)


@statement("append", 1)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "futures")
    if name is None:
        return None
    future = w.future(scope)
    return (Line(w.pick(f"{name}.append({future})", f"{name} += [{future}]", f"{name}.extend([{future}])")),)


@statement("pop", 0.6, exact=False)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "futures")
    return None if name is None else (Line(f"{name}.pop({w.pick('', '0')}).get()"),)


@statement("item", 0.6, exact=False)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "futures")
    return None if name is None else (Line(f"{name}[{w.pick('0', '-1', '1')}].get()"),)


@statement("gather-answers", 1.5)
def _(w: Programs, scope: Scope) -> Block:
    return (Line(f"{w.name('x')} = {w.answers(scope)}"),)


@statement("wait-in-loop", 1, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    item = w.name("g")
    futures = w.known(scope, "futures") or w.futures(scope)
    inner = scope.inner(loop=True)
    inner.add("future", item)
    body = (Line(f"{item}.get()"), *(w.block(inner, 1) if w.draw.random() < 0.5 else ()))
    header = f"for {item} in {futures}:"
    if w.draw.random() < 0.2:
        header = f"for {w.name('i')}, {item} in enumerate({futures}):"
    return (Compound(((header, body),)),)


@statement("table-of-futures", 0.8)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("d")
    text = w.pick(
        f'{{"b": {w.future(scope)}, "c": {w.future(scope)}}}',
        '{p: comm.call("B", p) for p in PATHS}',
        '{k: comm.call("B", p) for k, p in support.ROUTES.items()}',
        f'{{"b": {w.future(scope)}}}',
    )
    scope.add("table", name)
    return (Line(f"{name} = {text}"),)


@statement("use-of-table", 1)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "table")
    if name is None:
        return None
    options = [
        f"{w.name('x')} = {{k: f.get() for k, f in {name}.items()}}",
        f"{w.name('x')} = [f.get() for f in {name}.values()]",
        f"{w.name('x')} = [{name}[k].get() for k in {name}]",
        f'{name}["b"] = {w.future(scope)}',
        f'{name}["z"] = {w.future(scope)}',
    ]
    if not w.exact:
        options += [f'del {name}["b"]', f'{name}["b"].get()', f'{name}.pop("b").get()', f"{name}.update(z=1)"]
    return (Line(w.pick(*options)),)


@statement("unpacking", 0.8)
def _(w: Programs, scope: Scope) -> Block:
    first, second = w.name("f"), w.name("f")
    left = w.future(scope)
    text = w.pick(f"{left}, {w.future(scope)}", f"[{left}, {left}]", f'({left}), comm.call("B", "/c/")')
    if "helpers" in w._expressions and not scope.nested and w.draw.random() < 0.3:
        text = "self._pair(comm)"
    scope.add("future", first)
    scope.add("future", second)
    return (Line(f"{first}, {second} = {text}"),)


@statement("swap", 0.3)
def _(w: Programs, scope: Scope) -> Block | None:
    names = scope.names.get("future", [])
    if len(names) < 2:
        return None
    first, second = w.draw.sample(names, 2)
    return (Line(f"{first}, {second} = {second}, {first}"),)


@statement("flag", 1)
def _(w: Programs, scope: Scope) -> Block:
    flag = w.known(scope, "flag")
    if flag and not w.exact and w.draw.random() < 0.5:
        return (
            Line(
                w.pick(
                    f"{flag} = not {flag}", f"{flag} = {w.condition(scope, simple=True)}", f"{flag} = False"
                )
            ),
        )
    name = w.name("flag")
    text = w.condition(scope, simple=True)
    scope.add("flag", name)
    return (Line(f"{name} = {text}"),)


@statement("list-of-paths", 0.5)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("paths")
    scope.add("paths", name)
    return (Line(f"{name} = {w.pick(repr(['/b/']), repr(['/c/', '/b/']))}"),)


@statement("use-of-paths", 0.8)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "paths")
    if name is None:
        return None
    options = [
        f'[comm.call("B", p).get() for p in {name}]',
        f'[comm.call("B", p).get() for p in sorted({name}, reverse=True)]',
        f'[comm.call("B", p).get() for i, p in enumerate({name}, start=1) if i == 1]',
        f'[comm.call("B", p).get() for p in reversed({name})]',
    ]
    if not w.exact:
        options += [
            f"support.more({name})",
            f"support.more(paths={name})",
            f"{name}.reverse()",
            f"del {name}[0]",
        ]
    return (Line(w.pick(*options)),)


# Branches.


@statement("if", 3, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    parts = [(f"if {w.condition(scope)}:", w.block(scope.inner(), 2))]
    while w.draw.random() < 0.2:
        parts.append((f"elif {w.condition(scope)}:", w.block(scope.inner(), 1)))
    if w.draw.random() < 0.5:
        parts.append(("else:", w.block(scope.inner(), 2)))
    return (Compound(tuple(parts)),)


@statement("if-return", 1)
def _(w: Programs, scope: Scope) -> Block | None:
    if scope.nested:
        return None
    value = w.answer(scope) if w.draw.random() < 0.3 else "0"
    return (Compound(((f"if {w.condition(scope)}:", (Line(f"comm.respond({value})"), Line("return"))),)),)


@statement("raise", 0.6, exact=False)
def _(w: Programs, scope: Scope) -> Block:
    kind = w.pick("Refused", "VeryRefused('no')", "ValueError('no')", "KeyError", "QueryError('no')")
    return (Compound(((f"if {w.condition(scope)}:", (Line(f"raise {kind}"),)),)),)


@statement("raise-out", 0.4)
def _(w: Programs, scope: Scope) -> Block | None:
    if scope.depth > 0 and not w.exact:
        return None
    return (Compound(((f"if {w.condition(scope)}:", (Line("raise Refused('no')"),)),)),)


@statement("match", 0.7, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    w._numbers += 1
    subject = f'comm.params.get("m{w._numbers}")'
    cases = ["case '1':", "case '2' | '3':", "case '4' as word:"]
    w.draw.shuffle(cases)
    parts: list[tuple[str, Block]] = [(f"match {subject}:", ())]
    blocks = [(case, w.block(scope.inner(), 1)) for case in cases[: w.draw.randrange(1, 3)]]
    if not w.exact and w.draw.random() < 0.4:
        blocks.insert(0, (f"case '1' if {w.condition(scope)}:", w.block(scope.inner(), 1)))
    if w.draw.random() < 0.5:
        last = w.pick("case _:", "case other:")
        blocks.append((last, w.block(scope.inner(), 1)))
    # One part per case: the blocks of a ``match`` are one level deeper.
    inner = tuple(Compound(((case, block),)) for case, block in blocks)
    return (Compound(((parts[0][0], inner),)),)


@statement("match-futures", 0.3, exact=False)
def _(w: Programs, scope: Scope) -> Block | None:
    future = w.known(scope, "future")
    if future is None:
        return None
    other = w.future(scope)
    first, second = w.name("f"), w.name("f")
    use = (Line(f"{second}.get()"), Line(f"{first}.get()"))
    return (
        Compound(((f"match ({future}, {other}):", (Compound(((f"case ({first}, {second}):", use),)),)),)),
    )


@statement("assert", 0.3, exact=False)
def _(w: Programs, scope: Scope) -> Block:
    return (Line(f"assert {w.condition(scope)}"),)


# Loops.


@statement("for-known", 1.5, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    variable = w.name("p")
    items = w.pick("range(2)", '("/b/", "/c/")', "PATHS", "support.ROUTES.values()", "[1, 2]")
    inner = scope.inner(loop=True)
    parts = [(f"for {variable} in {items}:", w.block(inner, 2))]
    if w.draw.random() < 0.25:
        parts.append(("else:", w.block(scope.inner(), 1)))
    return (Compound(tuple(parts)),)


@statement("for-path", 0.7, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    variable = w.name("p")
    use = Line(f'comm.call("B", {variable}).get()')
    return (Compound(((f"for {variable} in PATHS:", (use, *w.block(scope.inner(loop=True), 1))),)),)


@statement("for-unknown", 0.8, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    inner = scope.inner(loop=True, known=False)
    inner.names = {} if w.draw.random() < 0.8 else inner.names
    parts = [(f'for {w.name("w")} in comm.params["items"]:', w.block(inner, 2))]
    if w.draw.random() < 0.2:
        parts.append(("else:", w.block(scope.inner(), 1)))
    return (Compound(tuple(parts)),)


@statement("while", 0.7, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    inner = scope.inner(loop=True, known=False)
    inner.names = {} if w.draw.random() < 0.8 else inner.names
    w._numbers += 1
    test = f'comm.params.get("w{w._numbers}") == "1"'
    if w.draw.random() < 0.3:
        leave = Compound(((f"if {test}:", (Line("break"),)),))
        return (Compound((("while True:", (leave, *w.block(inner, 2))),)),)
    if w.draw.random() < 0.3:
        test = f"{test} and {w.answer(Scope(nested=scope.nested))}"
    parts = [(f"while {test}:", w.block(inner, 2))]
    if w.draw.random() < 0.2:
        parts.append(("else:", w.block(scope.inner(), 1)))
    return (Compound(tuple(parts)),)


@statement("while-list", 0.4, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("left")
    take = Line(f"{w.name('x')} = {name}.pop()")
    inner = Scope(loop=True, known=False, nested=scope.nested, depth=scope.depth + 1)
    loop = Compound(((f"while {name}:", (take, *w.block(inner, 1))),))
    check = Compound(((f"if {name}:", (Line(w.answer(scope)),)),))
    statements: list[Statement] = [Line(f'{name} = comm.params["items"]')]
    return (*statements, check, loop) if w.draw.random() < 0.5 else (*statements, loop, check)


@statement("comprehension-unknown", 0.5, exact=False)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("x")
    condition = f" if {w.condition(scope.inner(nested=True), simple=True)}" if w.draw.random() < 0.4 else ""
    form = w.pick(
        f'[comm.call("B", "/b/").get() for v in comm.params["items"]{condition}]',
        f'{{v: comm.call("B", "/b/").get() for v in comm.params["items"]{condition}}}',
        f'[comm.call("B", p).get() for v in comm.params["items"] for p in PATHS{condition}]',
    )
    return (Line(f"{name} = {form}"),)


@statement("break", 0.8)
def _(w: Programs, scope: Scope) -> Block | None:
    if not scope.loop:
        return None
    return (Compound(((f"if {w.condition(scope)}:", (Line(w.pick("break", "continue")),)),)),)


# Exceptions.

HANDLERS = (
    "except MupError:",
    "except CallError:",
    "except CallError as error:",
    "except QueryError:",
    "except CommunicationError:",
    "except Exception:",
    "except Exception as error:",
    "except (CallError, ValueError):",
    "except (NoReplicaError, CallTimeoutError):",
    "except NoReplicaError:",
    "except ValueError:",
    "except KeyError:",
    "except LookupError:",
    "except Refused:",
    "except (KeyError, Refused):",
    "except:",
)


@statement("try", 2.5, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    parts = [("try:", w.block(scope.inner(), 3))]
    handlers = w.draw.sample(HANDLERS[:-1], w.draw.choice((1, 1, 1, 2, 3)))
    if w.draw.random() < 0.1:
        handlers.append(HANDLERS[-1])
    parts += [(h, w.handler(scope)) for h in handlers]
    if w.draw.random() < 0.25:
        parts.append(("else:", w.block(scope.inner(), 1)))
    if w.draw.random() < 0.2:
        parts.append(("finally:", w.block(scope.inner(loop=False), 1)))
    return (Compound(tuple(parts)),)


@statement("finally", 0.5, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    return (
        Compound((("try:", w.block(scope.inner(), 2)), ("finally:", w.block(scope.inner(loop=False), 1)))),
    )


@statement("local-failure", 1, exact=False)
def _(w: Programs, scope: Scope) -> Block:
    w._numbers += 1
    name = w.name("x")
    return (
        Line(
            w.pick(
                f'{name} = int(comm.params["n{w._numbers}"])',
                f'{name} = comm.params["k{w._numbers}"]',
                f'{name} = {w.answer(scope)}["k"]',
                f'{name} = int({w.answer(scope)}["text"])',
            )
        ),
    )


@statement("suppress", 0.5, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    kinds = w.pick("MupError", "CallError", "CallError, KeyError", "Exception", "ValueError")
    return (Compound(((f"with suppress({kinds}):", w.block(scope.inner(), 2)),)),)


@statement("with", 0.3, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    if w.draw.random() < 0.5:
        name = w.name("f")
        text = f"with nullcontext(1) as {w.name('x')}, nullcontext():"
        return (Line(f"{name} = {w.future(scope)}"), Compound(((text, (Line(f"{name}.get()"),)),)))
    return (Compound((("with nullcontext():", w.block(scope.inner(), 2)),)),)


# Functions.


@statement("nested-function", 0.8, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("ask")
    inner = scope.inner(loop=False, nested=True)
    body = (*w.block(inner, 2), Line(f"return {w.answer(inner)}"))
    if w.draw.random() < 0.3:
        # A function in a function reaches what is around both.
        deeper = (Line(f"return {w.answer(inner.inner(nested=True))}"),)
        body = (*body[:-1], Compound((("def deeper():", deeper),)), Line("return deeper()"))
    scope.add("action", name)
    return (Compound(((f"def {name}():", body),)),)


@statement("lambda", 0.6)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("ask")
    text = f"lambda: {w.answer(scope.inner(nested=True))}"
    future = w.known(scope, "future")
    if future and w.draw.random() < 0.4:
        first = Line(f"{name} = lambda f={future}: f.get()")
        return (first, Line(f"{future} = {w.future(scope)}"), Line(f"{name}()"))
    scope.add("action", name)
    return (Line(f"{name} = {text}"),)


@statement("list-of-functions", 0.3)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("todo")
    return (
        Line(f'{name} = [lambda p=p: comm.call("B", p).get() for p in PATHS]'),
        Line(f"{w.name('x')} = [action() for action in {name}]"),
    )


@statement("method", 1, blocks=True)
def _(w: Programs, scope: Scope) -> Block | None:
    if scope.nested:
        return None
    name = w.name("_step")
    inner = Scope(nested=True, depth=1)
    parameters, arguments = "self, comm", "comm"
    if future := w.known(scope, "future"):
        inner.add("future", "given")
        parameters, arguments = (
            "self, comm, given",
            w.pick(f"comm, {future}", f"comm, given={future}", f"comm, *[{future}]"),
        )
    body = [*w.block(inner, 3)]
    if w.draw.random() < 0.4:
        condition = w.condition(inner)
        body.append(Compound(((f"if {condition}:", (Line(f"return {w.answer(inner)}"),)),)))
    result = w.future(inner) if w.draw.random() < 0.5 else ""
    body.append(Line(f"return {result}" if result else f"return {w.answer(inner)}"))
    w.methods.append((f"def {OWN}{name}({parameters}):", tuple(body)))
    call = f"self.{OWN}{name}({arguments})"
    if not result:
        return (Line(f"{w.name('x')} = {call}"),)
    bound = w.name("f")
    if "return " in str(body[:-1]):
        return (Line(f"{bound} = {call}"),)
    scope.add("future", bound)
    return (Line(f"{bound} = {call}"),)


@statement("walrus-in-comprehension", 0.3)
def _(w: Programs, scope: Scope) -> Block | None:
    if scope.nested:
        return None
    name = w.name("f")
    made = w.name("x")
    scope.add("future", name)
    return (Line(f'{made} = [({name} := comm.call("B", p)) for p in PATHS]'), Line(f"{name}.get()"))


# Objects, generators, and functions that set variables around them.


@statement("object", 1)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("gate")
    kinds = ["support.Gateway(comm)", 'support.Gateway(comm, path="/c/")']
    # Whether a lazy object asks again depends on what it was answered.
    kind = w.pick(*kinds, *([] if w.exact else ["support.Lazy(comm)"]))
    scope.add("object", name)
    return (Line(f"{name} = {kind}"),)


@statement("use-of-object", 1.5)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "object")
    if name is None:
        return (
            Line(f"{w.name('x')} = support.Gateway(comm).{w.pick('ask()', 'start().finish()', 'answer')}"),
        )
    return (
        Line(
            w.pick(
                f"{name}.ask()",
                f"{name}.start()",
                f"{name}.finish()",
                f"{w.name('x')} = {name}.answer",
                f'{name}.path = "/c/"',
                f"{w.name('x')} = {name}.start().finish()",
            )
        ),
    )


@statement("reflection", 0.7, exact=False)
def _(w: Programs, scope: Scope) -> Block:
    """What an object asks next is written without its name in the source, or perhaps not at all."""
    made: Block = ()
    name = w.known(scope, "object")
    if name is None:
        name = w.name("gate")
        made = (Line(f"{name} = support.Gateway(comm)"),)
        scope.add("object", name)
    path = w.pick('"/b/"', '"/c/"')
    if w.draw.random() < 0.2:
        loop = (Line(f"setattr({name}, n, {path})"),)
        return (*made, Compound((('for n in ("note", "path"):', loop),)), Line(f"{name}.ask()"))
    test = w.condition(scope, simple=True)
    write = w.pick(
        f'setattr({name}, "path", {path})',
        f'setattr({name}, "path" if {test} else "note", {path})',
        f'{name}.__dict__["path"] = {path}',
        f"{name}.__dict__.update(path={path})",
        f'vars({name})["path"] = {path}',
        f'vars({name})["path" if {test} else "note"] = {path}',
        f'object.__setattr__({name}, "path", {path})',
    )
    return (*made, Line(write), Line(f"{name}.ask()"))


@statement("data-object", 0.5)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("pair")
    made = Line(f"{name} = support.Pair({w.future(scope)}, second={w.future(scope)})")
    uses = [f"{name}.first.get()", f"{name}.second.get()", f"{name}.wait()", f"{name}.first = {name}.second"]
    return (made, *map(Line, w.draw.sample(uses, 2)))


@statement("generator", 1, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    inner = scope.inner(loop=True)
    item = w.name("v")
    futures = w.known(scope, "futures") or w.futures(scope)
    source = w.pick(
        "support.each(comm)",
        'support.each(comm, ("/c/",))',
        f"(f.get() for f in {futures})",
        f"(a.get() for a, b in support.pairs({futures}))",
    )
    if w.draw.random() < 0.5:
        return (Line(f"{w.name('x')} = {w.pick('list', 'tuple', 'any', 'next')}({source})"),)
    return (Compound(((f"for {item} in {source}:", w.block(inner, 2)),)),)


@statement("context-manager", 0.5, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("f")
    inner = scope.inner()
    inner.add("future", name)
    return (Compound(((f"with support.session(comm) as {name}:", w.block(inner, 2)),)),)


@statement("nonlocal", 0.4)
def _(w: Programs, scope: Scope) -> Block | None:
    future = w.known(scope, "future")
    if future is None or scope.nested:
        return None
    name = w.name("again")
    body = (Line(f"nonlocal {future}"), Line(f"{future} = comm.call({w.destination(scope)})"))
    return (Compound(((f"def {name}():", body),)), Line(f"{name}()"), Line(f"{future}.get()"))


# More of what a list, a loop or a table can be used for.


@statement("counter", 0.5, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    name = w.name("n")
    inner = scope.inner(loop=True, known=False)
    inner.names = {}
    body = (Line(f"{name} += 1"), *w.block(inner, 2))
    return (Line(f"{name} = 0"), Compound(((f"while {name} < {w.pick('1', '2')}:", body),)))


@statement("index-loop", 0.4, blocks=True)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "futures")
    if name is None:
        return None
    i, item = w.name("i"), w.name("g")
    inner = scope.inner(loop=True)
    options = [
        (f"for {i} in range(len({name})):", f"{name}[{i}].get()"),
        (f"for {item}, {i} in zip({name}, PATHS):", f'comm.call("B", {i}); {item}.get()'),
        (f"for {item} in reversed({name}):", f"{item}.get()"),
        (f"for {item} in {name}[:1]:", f"{item}.get()"),
        (f"for {item} in list({name}):", f"{item}.get()"),
    ]
    header, use = w.draw.choice(options)
    return (Compound(((header, (Line(use), *w.block(inner, 1))),)),)


@statement("list-method", 0.4, exact=False)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "futures")
    if name is None:
        return None
    return (
        Line(
            w.pick(
                f"{name}.insert(0, {w.future(scope)})",
                f"{name}.reverse()",
                f"{name}.clear()",
                f"del {name}[0]",
                f"{name} = {name}[1:]",
                f"{name} = {name} * 2",
                f"{name} = {name} or [{w.future(scope)}]",
                f"{name}[0] = {w.future(scope)}",
            )
        ),
    )


@statement("dispatch", 0.6, exact=False)
def _(w: Programs, scope: Scope) -> Block:
    table, key = w.name("table"), w.pick('"b"', 'comm.params.get("m1")', 'comm.params["k1"]')
    inner = scope.inner(nested=True)
    made = f'{table} = {{"b": lambda: {w.answer(inner)}, "1": lambda: {w.answer(inner)}, "2": lambda: None}}'
    use = w.pick(f"{table}[{key}]()", f"{table}.get({key}, lambda: {w.answer(inner)})()")
    return (Line(made), Line(use))


@statement("letters", 0.3, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    letter = w.name("c")
    use = Line(f'comm.call("B", f"/{{{letter}}}/").get()')
    return (Compound(((f'for {letter} in "bc":', (use, *w.block(scope.inner(loop=True), 1))),)),)


@statement("jump-through-finally", 0.6, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block | None:
    jumps = ["break", "continue"] if scope.loop else []
    if not scope.nested:
        jumps.append("comm.respond(0); return")
    if not jumps:
        return None
    leave = Compound(((f"if {w.condition(scope)}:", (Line(w.draw.choice(jumps)),)),))
    parts = [("try:", (leave, *w.block(scope.inner(), 2)))]
    if w.draw.random() < 0.4:
        parts.append((w.draw.choice(HANDLERS[:-1]), (*w.handler(scope), leave)))
    parts.append(("finally:", w.block(scope.inner(loop=False), 1)))
    return (Compound(tuple(parts)),)


@statement("failure-status", 0.4, exact=False, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    kind = w.pick("CallError", "MupError", "Exception")
    test = w.pick('getattr(error, "status", 0) == 500', "error.args", "str(error)", w.condition(scope))
    body = (
        Compound(
            ((f"if {test}:", (Line(w.pick("raise", "raise error", "raise Refused('no') from error")),)),)
        ),
        *w.block(scope.inner(), 1),
    )
    return (Compound((("try:", w.block(scope.inner(), 2)), (f"except {kind} as error:", body))),)


@statement("table-method", 0.4, exact=False)
def _(w: Programs, scope: Scope) -> Block | None:
    name = w.known(scope, "table")
    if name is None:
        return None
    return (
        Line(
            w.pick(
                f'{name}.pop("b", None)',
                f'{name}.setdefault("b", {w.future(scope)}).get()',
                f"{name}.update(y={w.future(scope)})",
                f"{name} |= {{'b': {w.future(scope)}}}",
                f"[f.get() for k, f in sorted({name}.items())]",
                f"[f.get() for f in list({name}.values())[::-1]]",
                f"[{name}.pop(k).get() for k in list({name})]",
                f"{name} = dict({name}, q={w.future(scope)})",
                f"{name} = {{k: f for k, f in {name}.items() if k != 'b'}}",
            )
        ),
    )


@statement("star-arguments", 0.4)
def _(w: Programs, scope: Scope) -> Block:
    two = f"{w.future(scope)}, {w.future(scope)}"
    text = w.pick(
        f"support.both(*[{two}])",
        f"support.both({w.future(scope)}, *({w.future(scope)},))",
        "support.ask(comm, *PATHS[1:])",
        'support.start(comm, **{"path": "/b/"}).get()',
        "support.retry(comm, *PATHS[:1])" if not w.exact else "support.ask(comm, *())",
    )
    return (Line(f"{w.name('x')} = {text}"),)


@statement("generator-function", 0.7, blocks=True)
def _(w: Programs, scope: Scope) -> Block:
    name, item = w.name("items"), w.name("v")
    inner = scope.inner(loop=False, nested=True)
    body = (*w.block(inner, 1), Line(f"yield {w.answer(inner)}"), *w.block(inner, 1))
    if w.draw.random() < 0.5:
        body = (*body, Line(f"yield {w.answer(inner)}"))
    if not w.exact and w.draw.random() < 0.3:
        body = (Compound((("try:", body), ("finally:", w.block(inner, 1)))),)
    made = Compound(((f"def {name}():", body),))
    if w.draw.random() < 0.4:
        return (made, Line(f"{w.name('x')} = {w.pick('list', 'sum', 'any')}(1 for v in {name}())"))
    return (made, Compound(((f"for {item} in {name}():", w.block(scope.inner(loop=True), 2)),)))


@statement("chained-assignment", 0.3)
def _(w: Programs, scope: Scope) -> Block:
    first, second = w.name("f"), w.name("f")
    text = f"{first} = {second} = {w.future(scope)}"
    scope.add("future", first)
    scope.add("future", second)
    return (Line(text),)


EXPRESSIONS = (
    "constants",
    "choice-of-path",
    "keyword-arguments",
    "helpers",
    "comprehension",
    "list-operators",
    "conditional",
    "and-or",
    "item-of-answer",
    "short-circuit",
    "walrus",
    "bound-respond",
)
INEXACT = {"item-of-answer"}
CONSTRUCTS = frozenset({*STATEMENTS, *EXPRESSIONS})
"""Names of all constructs that are used unless others are asked for."""
