"""Containers that are filled while modules are imported: which are known, and which cannot be."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

from analyzer.static import analyse
from analyzer.static.application import Application
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import Assigned, Names
from analyzer.static.registrations import Registrations
from analyzer.static.source import SourceTree

HANDLERS = """
HANDLERS = {}
def handles(name):
    def register(function):
        HANDLERS[name] = function
        return function
    return register
"""
FIRST = """
@handles("first")
def first(comm):
    comm.call("B", "/b/").get()
"""
SECOND = """
@handles("second")
def second(comm):
    comm.query("db", "q", "c", {}).get()
"""
B = """
from mup import EP, MS, Communication
class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)
"""


def service(body: str) -> str:
    """Return a service with one endpoint."""
    lines = "".join(f"        {line}\n" for line in dedent(body).strip().splitlines())
    return B + f'class A(MS):\n    @EP("/a/")\n    def a(self, comm, key) -> None:\n{lines}'


LOOKED_UP = service("HANDLERS[key](comm)\ncomm.respond(1)")


def analysed(folder: Path, **files: str) -> Application:
    """Return what is found in modules."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")
    return analyse(folder)


def outcome(application: Application) -> tuple[list[str], set[str]]:
    """Return the paths of the endpoint, and the codes of what is wrong."""
    (endpoint,) = (e for s in application.services for e in s.endpoints if e.path == "/a/")
    paths = sorted(" ".join(o.op for o in path.operations) for path in endpoint.paths)
    return paths, {d.code for d in application.diagnostics if d.severity == "error"}


EITHER = (["call get respond", "query get respond"], set[str]())


def test_a_decorator_fills_a_dict(tmp_path: Path) -> None:
    assert outcome(analysed(tmp_path, app=HANDLERS + FIRST + SECOND + LOOKED_UP)) == EITHER


def test_handlers_in_modules_that_nothing_else_names(tmp_path: Path) -> None:
    """A module may import handlers for nothing but to register them, and these need not name mup."""
    found = analysed(
        tmp_path,
        registry=HANDLERS,
        one="from registry import handles\n" + FIRST,
        two="import registry\n" + SECOND.replace("@handles", "@registry.handles"),
        app="import one, two\nfrom registry import HANDLERS\n" + LOOKED_UP,
    )
    assert outcome(found) == EITHER


def test_a_known_key_has_one_handler(tmp_path: Path) -> None:
    body = service('HANDLERS["second"](comm)\ncomm.respond(1)')
    assert outcome(analysed(tmp_path, app=HANDLERS + FIRST + SECOND + body)) == (["query get respond"], set())


STATEMENTS = """
def first(comm):
    comm.call("B", "/b/").get()
def second(comm):
    comm.query("db", "q", "c", {}).get()
HANDLERS = {"first": first}
HANDLERS["second"] = second
"""
CLASSES = """
class Handler:
    known = {}
    def __init_subclass__(cls, name):
        Handler.known[name] = cls()
class First(Handler, name="first"):
    def run(self, comm):
        comm.call("B", "/b/").get()
class Second(Handler, name="second"):
    def run(self, comm):
        comm.query("db", "q", "c", {}).get()
"""
METHOD = """
class Registry:
    known = {}
    @classmethod
    def add(cls, name):
        def register(kind):
            cls.known[name] = kind
            return kind
        return register
@Registry.add("first")
class First:
    def run(self, comm):
        comm.call("B", "/b/").get()
@Registry.add("second")
class Second:
    def run(self, comm):
        comm.query("db", "q", "c", {}).get()
"""
LISTS = """
from collections import defaultdict
HOOKS = defaultdict(list)
def on(*names):
    def register(hook):
        for name in names:
            HOOKS[name].append(hook)
        return hook
    return register
@on("a", "b")
def first(comm):
    comm.call("B", "/b/").get()
@on("b")
def second(comm):
    comm.query("db", "q", "c", {}).get()
"""
INDIRECT = (
    HANDLERS
    + """
def rest(name):
    return handles(f"rest-{name}")
@rest("first")
def first(comm):
    comm.call("B", "/b/").get()
@handles("second")
def second(comm):
    comm.query("db", "q", "c", {}).get()
"""
)


@pytest.mark.parametrize(
    ("module", "body", "paths"),
    [
        pytest.param(STATEMENTS, "HANDLERS[key](comm)", EITHER[0], id="statements"),
        pytest.param(CLASSES, "Handler.known[key].run(comm)", EITHER[0], id="subclasses"),
        pytest.param(METHOD, "Registry.known[key]().run(comm)", EITHER[0], id="classmethod"),
        pytest.param(
            LISTS, "for hook in HOOKS['b']:\n    hook(comm)", ["call get query get respond"], id="lists"
        ),
        pytest.param(
            LISTS,
            "for hook in HOOKS.get(key, ()):\n    hook(comm)",
            ["call get query get respond", "call get respond", "respond"],
            id="lists-of-any-key",
        ),
        pytest.param(INDIRECT, "HANDLERS[key](comm)", EITHER[0], id="through-another-function"),
    ],
)
def test_other_ways_to_register(tmp_path: Path, module: str, body: str, paths: list[str]) -> None:
    found = analysed(tmp_path, app=module + service(f"{body}\ncomm.respond(1)"))
    assert outcome(found) == (paths, set())


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("def later(name, f):\n    HANDLERS[name] = f\n", id="a-function-nobody-is-seen-to-call"),
        pytest.param("def later(f):\n    handles('x')(f)\n", id="a-decorator-called-by-a-function"),
        pytest.param("def later(table=None):\n    return HANDLERS\n", id="the-dict-is-handed-on"),
        pytest.param("class T:\n    def t(self, f):\n        HANDLERS.update(f)\n", id="a-method"),
        pytest.param("ALIAS = HANDLERS\n", id="another-name"),
        pytest.param("import json\nHANDLERS.update(json.load(open('x')))\n", id="what-is-not-known"),
        pytest.param("@handles(open('x').read())\ndef third(comm): pass\n", id="a-key-that-is-not-known"),
    ],
)
def test_what_requests_may_change_is_not_known(tmp_path: Path, more: str) -> None:
    found = analysed(tmp_path, app=HANDLERS + FIRST + SECOND + more + LOOKED_UP)
    assert outcome(found)[1] == {"MUP041"}


@pytest.mark.parametrize(
    ("module", "use"), [("import registry as r", "r.handles"), ("from registry import handles as h", "h")]
)
def test_other_names_for_what_registers(tmp_path: Path, module: str, use: str) -> None:
    found = analysed(
        tmp_path,
        registry=HANDLERS + FIRST,
        two=f"{module}\n" + SECOND.replace("@handles", f"@{use}"),
        app="import two\nfrom registry import HANDLERS\n" + LOOKED_UP,
    )
    assert outcome(found) == EITHER


def test_two_containers_of_one_name(tmp_path: Path) -> None:
    """What another module calls by the same name is something else."""
    found = analysed(
        tmp_path,
        other="HANDLERS = []\ndef remember(x):\n    HANDLERS.append(x)\n",
        app="import other\n" + HANDLERS + FIRST + SECOND + LOOKED_UP,
    )
    assert outcome(found) == EITHER


def test_a_changed_handler_changes_the_fingerprint(tmp_path: Path) -> None:
    """A model is of the code that runs, also where the endpoint does not mention it."""

    def fingerprint(second: str) -> str:
        application = analysed(
            tmp_path,
            registry=HANDLERS,
            one="from registry import handles\n" + FIRST + second,
            app="import one\nfrom registry import HANDLERS\n" + LOOKED_UP,
        )
        return next(e.fingerprint for s in application.services for e in s.endpoints if e.path == "/a/")

    before = fingerprint(SECOND)
    assert fingerprint(SECOND.replace("def second", "\n# as ever\ndef second")) == before
    assert len({before, fingerprint(SECOND.replace("{}", "{'x': 1}")), fingerprint("")}) == 3


def test_steps_are_in_the_order_of_imports(tmp_path: Path) -> None:
    for name, text in {
        "registry": HANDLERS,
        "z": "from registry import handles\n" + FIRST,
        "app": "import z\nfrom mup import MS\nfrom registry import handles\n" + SECOND,
    }.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    names = Names(SourceTree(tmp_path, Diagnostics()))
    module = names.tree.module("registry")
    assert module is not None
    unknown = names.scope(module)["HANDLERS"]
    assert isinstance(unknown, Assigned)
    assert unknown.value is None
    changed = names.changed(unknown)
    assert changed is not None
    registration = Registrations(names).of(module, None, *changed)
    assert registration is not None
    assert [module.name for module, _ in registration.steps] == ["z", "app"]
    assert [info.qualname for info in registration.definitions(names)] == ["first", "second"]


@pytest.mark.parametrize("parameter", ["handlers", "table"])
def test_a_default_argument_is_the_container_itself(tmp_path: Path, parameter: str) -> None:
    """A decorator of a class body reaches a container of the class by the default of a parameter."""
    body = f"""
    class A(MS):
        handlers = {{}}

        def handles(name, {parameter}=handlers):
            def register(function):
                {parameter}[name] = function
                return function
            return register

        @handles("first")
        def first(self, comm):
            comm.call("B", "/b/").get()

        @EP("/a/")
        def a(self, comm, key) -> None:
            handler = self.handlers.get(key)
            if handler:
                handler(self, comm)
            comm.respond(1)
    """
    paths, found = outcome(analysed(tmp_path, app=B + dedent(body)))
    assert "call get respond" in paths or found


# Containers of objects.

BUS = """
import functools
from collections import defaultdict
class Bus:
    def __init__(self):
        self._handlers = {}
        self.hooks: defaultdict[str, list] = defaultdict(list)
    def on(self, name):
        def register(f):
            self._handlers.setdefault(name, []).append(f)
            return f
        return register
    def hook(self, name, f):
        hooks = self.hooks[name]
        hooks.append(f)
        return self
    def publish(self, comm, name):
        for f in [*self._handlers.get(name, ()), *self.hooks[name]]:
            f(comm)
    def clear(self):
        self._handlers.clear()
bus = Bus()
"""
FUNCTIONS = """
def first(comm):
    comm.call("B", "/b/").get()
def second(comm):
    comm.query("db", "q", "c", {}).get()
"""
ON = "bus.on('x')(first)\n"
PUBLISHED = service("bus.publish(comm, 'x')\ncomm.respond(1)")
BOTH = (["call get query get respond"], set[str]())


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("bus.on('x')(second)\n", id="a-statement"),
        pytest.param("@bus.on('x')\ndef third(comm):\n    second(comm)\n", id="a-decorator"),
        pytest.param("other = bus\nother.on('x')(second)\n", id="another-name"),
        pytest.param("listen = bus.on\nof_x = listen('x')\nof_x(second)\n", id="names-of-methods"),
        pytest.param("bus.hook('x', second)\n", id="an-item-under-another-name"),
        pytest.param(
            "def add(to, f):\n    to.on('x')(f)\nadd(bus, second)\n", id="a-function-given-the-object"
        ),
        pytest.param("for f in [second]:\n    bus.on('x')(f)\n", id="a-loop"),
        pytest.param(
            "from operator import methodcaller\nmethodcaller('on', 'x')(bus)(second)\n", id="by-name"
        ),
        pytest.param("bus._handlers['x'].append(second)\n", id="the-container-itself"),
        pytest.param("two = Bus()\ntwo.on('x')(first)\nbus.on('x')(second)\n", id="two-objects"),
        pytest.param(
            "class App:\n    bus = Bus()\nApp.bus.on('x')(first)\nbus.hook('x', second)\n", id="of-a-class"
        ),
        pytest.param(
            "class App:\n    def __init__(self):\n        self.bus = Bus()\n"
            "app = App()\napp.bus.on('x')(first)\napp.bus.hook('x', second)\nbus = app.bus\n",
            id="of-an-object",
        ),
    ],
)
def test_imports_fill_containers_of_objects(tmp_path: Path, more: str) -> None:
    source = BUS + FUNCTIONS + (ON if "first" not in more else "") + more + PUBLISHED
    if "bus = app.bus" in more:
        source = source.replace("\nbus = Bus()\n", "\n", 1)
    elif more.startswith(("two", "class App:\n    bus")):
        source = source.replace(more, ON + more)
    assert outcome(analysed(tmp_path, app=source)) == BOTH


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("def later():\n    bus.on('x')(second)\n", id="a-function-nobody-is-seen-to-call"),
        pytest.param("table = {'bus': bus}\ntable['bus'].on('x')(second)\n", id="kept-in-a-dict"),
        pytest.param("import copy\ncopy.copy(bus).on('x')(second)\n", id="something-like-it"),
        pytest.param("handlers = bus._handlers\nhandlers['x'].append(second)\n", id="the-dict-is-handed-on"),
        pytest.param("of_x = bus._handlers['x']\nof_x.append(second)\n", id="a-list-is-handed-on"),
        pytest.param("vars(bus)['_handlers']['x'].append(second)\n", id="by-its-name"),
        pytest.param("name = 'on'\ngetattr(bus, name)('x')(second)\n", id="by-a-computed-name"),
        pytest.param("import os\nif os.name == 'x':\n    bus.on('x')(second)\n", id="a-condition"),
        pytest.param("kept = [bus.on('x')]\nkept[0](second)\n", id="what-is-returned-is-kept"),
        pytest.param(
            "class Other(Bus):\n    def on(self, name):\n        self._handlers = {}\n", id="replaced"
        ),
    ],
)
def test_what_may_change_containers_of_objects_later(tmp_path: Path, more: str) -> None:
    found = outcome(analysed(tmp_path, app=BUS + FUNCTIONS + ON + more + PUBLISHED))
    assert found[1] == {"MUP041"}


def test_a_changed_handler_of_an_object_changes_the_fingerprint(tmp_path: Path) -> None:
    def fingerprint(second: str) -> str:
        handlers = "from bus import bus\n" + FUNCTIONS + ON + second
        app = "import handlers\nfrom bus import bus\n" + PUBLISHED
        application = analysed(tmp_path, bus=BUS, handlers=handlers, app=app)
        return next(e.fingerprint for s in application.services for e in s.endpoints if e.path == "/a/")

    decorated = "@bus.on('x')\ndef third(comm):\n    comm.call('B', '/b/').get()\n"
    before = fingerprint(decorated)
    assert len({before, fingerprint(decorated.replace("get()", "get()\n    return 1")), fingerprint("")}) == 3


SIGNALS = """
class Signal:
    def __init__(self, name):
        self.name = name
        self._receivers = []
    def connect(self, receiver):
        if receiver not in self._receivers:
            self._receivers.append(receiver)
        return receiver
    def send(self, comm, **values):
        return [(receiver, receiver(comm, **values)) for receiver in self._receivers]
def receiver(*signals):
    def decorator(function):
        for signal in signals:
            signal.connect(function)
        return function
    return decorator
paid = Signal("paid")
left = Signal("left")
"""
RECEIVERS = """
from signals import left, paid, receiver
@receiver(paid)
def tell(comm, **values):
    comm.call("B", "/b/").get()
@receiver(paid, left)
def note(comm, **values):
    comm.call("B", "/c/").get()
@left.connect
def leave(comm, **values):
    comm.call("B", "/b/").get()
"""


def test_receivers_of_signals_are_those_that_imports_connect(tmp_path: Path) -> None:
    """A parameter, or a variable of a comprehension, that is called as a function is no mention of it."""
    body = "if comm.params:\n    signals.paid.send(comm, amount=1)\nelse:\n    signals.left.send(comm)\ncomm.respond(1)"
    source = endpoint_source(body, module="import receivers\nimport signals\n")
    application = analyse_files(tmp_path, app=source, signals=SIGNALS, receivers=RECEIVERS)
    assert codes(application) == []
    assert outline(application) == [
        "call:B/b/ get:0 call:B/c/ get:2 respond",
        "call:B/c/ get:0 call:B/b/ get:2 respond",
    ]


def test_receivers_that_requests_may_connect_are_not_known(tmp_path: Path) -> None:
    body = "signals.paid.connect(comm.params['receiver'])\nsignals.paid.send(comm, amount=1)\ncomm.respond(1)"
    source = endpoint_source(body, module="import receivers\nimport signals\n")
    application = analyse_files(tmp_path, app=source, signals=SIGNALS, receivers=RECEIVERS)
    assert "MUP041" in codes(application)
