"""Endpoints however they are attached: each is found as it is served, or an error says where it is lost.

What is served is asked of the runtime: the modules are imported, and `endpoints_of` tells.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from analyzer.static import Application, analyse
from mup import MS
from mup.service import endpoints_of

HEAD = "import functools\nimport os\nimport mup\nfrom mup import EP, MS\n"
HANDLER = """
def handler(self, comm):
    comm.respond(1)
"""
PLAIN = """
class A(MS):
    @EP("/plain")
    def plain(self, comm):
        comm.respond(1)
"""


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(HEAD + dedent(text), encoding="utf-8")


def served(folder: Path, names: list[str]) -> set[str]:
    """Return the labels of all endpoints that the runtime has after importing some modules."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        modules = [importlib.import_module(name) for name in names]
        return {
            f"{kind.__name__}{key}"
            for module in modules
            for kind in vars(module).values()
            if inspect.isclass(kind) and issubclass(kind, MS) and kind.__module__ == module.__name__
            if not kind.__name__.startswith("_")
            for key in endpoints_of(kind)
        }
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)


def found(application: Application) -> set[str]:
    return {endpoint.label for endpoint in application.endpoints()}


FOLLOWED = {
    "partial": """
        get = functools.partial(EP, method="GET")
        class A(MS):
            @get("/a")
            def a(self, comm): comm.respond(1)
    """,
    "partial-in-the-class": """
        class A(MS):
            get = functools.partial(EP, method="GET")
            @get("/a")
            def a(self, comm): comm.respond(1)
    """,
    "partial-with-everything": """
        root = functools.partial(EP, "/root", name="top")
        class A(MS):
            @root()
            def a(self, comm): comm.respond(1)
    """,
    "shorthand-named-like-the-method": """
        def put(path): return EP("/v1" + path, method="PUT")
        class A(MS):
            @put("/a")
            def put(self, comm): comm.respond(1)
    """,
    "lambda": """
        get = lambda path: EP(path, method="GET")
        class A(MS):
            @get("/a")
            def a(self, comm): comm.respond(1)
    """,
    "mark-in-a-constant": """
        ROOT = EP("/root")
        class A(MS):
            @ROOT
            def a(self, comm): comm.respond(1)
    """,
    "chosen-from-a-table": """
        VERBS = {"get": functools.partial(EP, method="GET"), "post": functools.partial(EP, method="POST")}
        class A(MS):
            @VERBS["post"]("/a")
            def a(self, comm): comm.respond(1)
    """,
    "subclass": """
        class GET(EP):
            def __init__(self, path, **options):
                super().__init__(f"/api{path}", method="GET", **options)
        class A(MS):
            @GET("/a", name="first")
            def a(self, comm): comm.respond(1)
    """,
    "subclass-that-adds-nothing": """
        class Route(EP):
            pass
        class A(MS):
            @Route("/a", method="GET")
            def a(self, comm): comm.respond(1)
    """,
    "subclass-that-wraps": """
        class Counted(EP):
            count = 0
            def __call__(self, function):
                @functools.wraps(function)
                def wrapper(service, comm):
                    Counted.count += 1
                    return function(service, comm)
                return super().__call__(wrapper)
        class A(MS):
            @Counted("/a")
            def a(self, comm): comm.respond(1)
    """,
    "router": """
        class Router:
            def __init__(self, prefix): self.prefix, self.known = prefix, []
            def get(self, path):
                def decorate(function):
                    self.known.append(function.__name__)
                    return EP(self.prefix + path, method="GET")(function)
                return decorate
        router = Router("/api")
        class A(MS):
            @router.get("/a")
            def a(self, comm): comm.respond(1)
    """,
    "router-of-class-methods": """
        class route:
            @staticmethod
            def get(path): return EP(path, method="GET")
            @classmethod
            def any(cls, path): return EP(path)
        class A(MS):
            @route.get("/a")
            def a(self, comm): comm.respond(1)
            @route.any("/b")
            def b(self, comm): comm.respond(1)
    """,
    "wrapper": """
        def route(path):
            def decorate(function):
                @functools.wraps(function)
                def wrapper(self, comm, **values):
                    if comm.params: return comm.respond(0)
                    return function(self, comm, **values)
                return EP(path)(wrapper)
            return decorate
        class A(MS):
            @route("/a/{id}")
            def a(self, comm, id): comm.respond(1)
    """,
    "path-of-the-name": """
        def auto(function): return EP(f"/{function.__name__}")(function)
        class A(MS):
            @auto
            def orders(self, comm): comm.respond(1)
    """,
    "wraps-above-EP": """
        def logged(function):
            @functools.wraps(function)
            def wrapper(self, comm): function(self, comm)
            return wrapper
        class A(MS):
            @logged
            @EP("/a")
            def a(self, comm): comm.respond(1)
    """,
    "update_wrapper-above-EP": """
        def logged(function):
            def wrapper(self, comm): function(self, comm)
            return functools.update_wrapper(wrapper, function)
        class A(MS):
            @logged
            @EP("/a")
            def a(self, comm): comm.respond(1)
    """,
    "assigned-in-the-class": HANDLER
    + """
class A(MS):
    a = EP("/a")(handler)
    b = EP("/b", name="other")(lambda self, comm: comm.respond(1))
""",
    "assigned-behind-the-class": PLAIN + HANDLER + 'A.later = EP("/later")(handler)\n',
    "setattr-behind-the-class": PLAIN + HANDLER + 'setattr(A, "later", EP("/later")(handler))\n',
    "loop-behind-the-class": PLAIN
    + """
def one(self, comm): comm.respond(1)
def two(self, comm): comm.respond(2)
for function in (one, two):
    setattr(A, function.__name__, EP("/" + function.__name__)(function))
""",
    "function-that-is-given-the-class": PLAIN
    + HANDLER
    + """
def register(kind, **paths):
    for name, path in paths.items():
        setattr(kind, name, EP(path)(handler))
register(A, later="/later")
""",
    "decorated-function-as-attribute": """
        @EP("/a")
        def handler(self, comm): comm.respond(1)
        class A(MS):
            a = handler
    """,
    "method-of-another-class": """
        class Handlers:
            @EP("/a")
            def a(self, comm): comm.respond(1)
        class A(MS):
            a = Handlers.a
    """,
    "factory": """
        def reader(name):
            @EP(f"/{name}")
            def read(self, comm): comm.respond(name)
            return read
        class A(MS):
            a, b = reader("a"), reader("b")
            c = reader("c")
    """,
    "class-decorator": """
        def healthy(path="/health"):
            def decorate(cls):
                @EP(path)
                def health(self, comm): comm.respond("ok")
                cls.health = health
                return cls
            return decorate
        @healthy("/live")
        class A(MS):
            @EP("/plain")
            def plain(self, comm): comm.respond(1)
        @healthy()
        class B(A): pass
    """,
    "init_subclass-with-arguments": """
        class Audited:
            def __init_subclass__(cls, path="/audit", **options):
                super().__init_subclass__(**options)
                def audit(self, comm): comm.respond(cls.__name__)
                cls.audit = EP(path)(audit)
        class A(Audited, MS):
            @EP("/plain")
            def plain(self, comm): comm.respond(1)
        class B(Audited, MS, path="/b"):
            @EP("/plain")
            def plain(self, comm): comm.respond(1)
    """,
    "overridden-without-EP": PLAIN
    + """
class B(A):
    def plain(self, comm): comm.respond(2)
    @EP("/more")
    def more(self, comm): comm.respond(1)
""",
    "replaced-behind-the-class": PLAIN + HANDLER + "A.other = EP('/other')(handler)\nA.plain = None\n",
    "service-that-a-function-makes": """
        def shard(number, path="/get"):
            class Shard(MS):
                @EP(path)
                def get(self, comm): comm.respond(number)
            Shard.__name__ = f"Shard{number}"
            return Shard
        Shard0 = shard(0)
        Shard1 = shard(1, "/fetch")
    """,
    "base-whose-endpoints-a-shorthand-attaches": """
        get = functools.partial(EP, method="GET")
        class A(MS):
            @get("/a")
            def a(self, comm): comm.respond(1)
        class B(A): pass
    """,
    "attribute-of-the-module": """
        class A(MS):
            @mup.EP("/a")
            def a(self, comm): comm.respond(1)
            b = mup.EP("/b")(lambda self, comm: comm.respond(1))
    """,
}


@pytest.mark.parametrize("form", FOLLOWED)
def test_is_found_as_it_is_served(form: str, tmp_path: Path) -> None:
    written(tmp_path, {"attached_app": FOLLOWED[form]})
    application = analyse(tmp_path)
    assert [d.message for d in application.errors] == []
    labels = served(tmp_path, ["attached_app"])
    assert labels
    assert found(application) == labels


SEVERAL = {
    "router-of-another-module": {
        "attached_routing": """
            class Router:
                def __init__(self, prefix=""): self.prefix = prefix
                def __call__(self, path):
                    def decorate(function): return EP(self.prefix + path)(function)
                    return decorate
        """,
        "attached_app": """
            import attached_routing
            route = attached_routing.Router("/api")
            class A(MS):
                @route("/a")
                def a(self, comm): comm.respond(1)
        """,
    },
    "handlers-of-another-module": {
        "attached_handlers": """
            @EP("/a")
            def a(self, comm): comm.respond(1)
            def b(self, comm): comm.respond(2)
        """,
        "attached_app": """
            import attached_handlers
            from attached_handlers import b
            class A(MS):
                a = attached_handlers.a
                b = EP("/b")(b)
        """,
    },
    "attached-by-another-module": {
        "attached_app": PLAIN,
        "attached_more": """
            from attached_app import A
            def later(self, comm): comm.respond(1)
            A.later = EP("/later")(later)
        """,
    },
}


@pytest.mark.parametrize("form", SEVERAL)
def test_other_modules_attach_endpoints(form: str, tmp_path: Path) -> None:
    written(tmp_path, SEVERAL[form])
    application = analyse(tmp_path)
    assert [d.message for d in application.errors] == []
    assert found(application) == served(tmp_path, list(SEVERAL[form]))


def test_only_modules_that_the_process_imports_count_in_a_project(tmp_path: Path) -> None:
    """Who serves a service does not import who uses it."""
    written(tmp_path, SEVERAL["attached-by-another-module"])
    application = analyse(tmp_path, services={"A": "attached_app:A"}, clients=[])
    assert found(application) == {"A/plain"}
    more = "import attached_more\n"
    (tmp_path / "attached_main.py").write_text(more + "from attached_app import A\n", encoding="utf-8")
    application = analyse(tmp_path, services={"A": "attached_more:A"}, clients=[])
    assert application.errors == ()


LOST = {
    "condition": PLAIN + HANDLER + 'if os.environ.get("MORE"):\n    A.more = EP("/more")(handler)\n',
    "path-of-the-environment": """
        route = lambda path: EP(os.environ.get("PREFIX", "") + path)
        class A(MS):
            @route("/a")
            def a(self, comm): comm.respond(1)
    """,
    "decorator-that-depends-on-the-environment": """
        def maybe(path):
            if os.environ.get("MORE", "1"): return EP(path)
            return lambda function: function
        class A(MS):
            @maybe("/a")
            def a(self, comm): comm.respond(1)
    """,
    "loop-in-the-class": HANDLER
    + """
class A(MS):
    for name in ("a", "b"):
        locals()[name] = EP(f"/{name}")(handler)
""",
    "metaclass": HANDLER
    + """
class Meta(type):
    def __init__(cls, name, bases, space):
        cls.a = EP("/a")(handler)
class A(MS, metaclass=Meta):
    @EP("/plain")
    def plain(self, comm): comm.respond(1)
""",
    "list-that-a-router-fills": """
        class Router:
            def __init__(self): self.routes = []
            def get(self, path):
                def decorate(function):
                    self.routes.append((path, function))
                    return function
                return decorate
            def attach(self, cls):
                for path, function in self.routes:
                    setattr(cls, function.__name__, EP(path)(function))
        router = Router()
        class A(MS):
            @EP("/plain")
            def plain(self, comm): comm.respond(1)
        @router.get("/more")
        def more(self, comm): comm.respond(1)
        router.attach(A)
    """,
    "library-around-it": PLAIN
    + HANDLER
    + 'A.more = functools.wraps(handler)(EP("/more")(handler)).__get__\n',
    "class-found-by-name": PLAIN + HANDLER + 'globals()["A"].more = EP("/more")(handler)\n',
    "set-by-type": PLAIN + HANDLER + 'type.__setattr__(A, "more", EP("/more")(handler))\n',
    "replaced-by-a-decorator": """
        def logged(function):
            def wrapper(self, comm): function(self, comm)
            return wrapper
        class A(MS):
            @logged
            @EP("/a")
            def a(self, comm): comm.respond(1)
            @EP("/b")
            def b(self, comm): comm.respond(1)
    """,
    "two-definitions": """
        class A(MS):
            if os.environ.get("MORE"):
                @EP("/a")
                def a(self, comm): comm.respond(1)
            else:
                @EP("/b")
                def a(self, comm): comm.respond(2)
            @EP("/c")
            def c(self, comm): comm.respond(1)
    """,
    "class-in-a-condition": """
        if os.environ.get("MORE"):
            class A(MS):
                @EP("/a")
                def a(self, comm): comm.respond(1)
        else:
            class A(MS):
                @EP("/b")
                def b(self, comm): comm.respond(1)
        class B(MS):
            @EP("/b")
            def b(self, comm): comm.respond(1)
    """,
    "class-that-is-replaced": PLAIN
    + """
def more(cls):
    class More(cls):
        @EP("/more")
        def more(self, comm): comm.respond(1)
    return More
class B(MS):
    @EP("/b")
    def b(self, comm): comm.respond(1)
B = more(B)
""",
    "one-function-marked-twice": PLAIN
    + HANDLER
    + """
A.one = EP("/one")(handler)
class B(MS):
    two = EP("/two")(handler)
""",
    "class-made-by-type": PLAIN + HANDLER + 'B = type("B", (MS,), {"b": EP("/b")(handler)})\n',
    "class-made-by-a-loop": PLAIN
    + """
def shard(number):
    class Shard(MS):
        @EP("/get")
        def get(self, comm): comm.respond(number)
    return Shard
SHARDS = [shard(number) for number in range(2)]
""",
    "attribute-that-is-computed": HANDLER
    + """
class A(MS):
    a = max([EP("/a")(handler)], key=id)
    @EP("/b")
    def b(self, comm): comm.respond(1)
""",
    "class-decorator-in-a-condition": """
        def healthy(cls):
            if os.environ.get("HEALTH", "1"):
                cls.health = EP("/health")(lambda self, comm: comm.respond("ok"))
            return cls
        @healthy
        class A(MS):
            @EP("/a")
            def a(self, comm): comm.respond(1)
    """,
    "class-decorator-that-returns-another": """
        def healthy(cls):
            return type(cls.__name__, (cls,), {"health": EP("/health")(lambda self, comm: comm.respond("ok"))})
        @healthy
        class A(MS):
            @EP("/a")
            def a(self, comm): comm.respond(1)
    """,
}


@pytest.mark.parametrize("form", LOST)
def test_what_is_not_followed_is_an_error_at_its_place(form: str, tmp_path: Path) -> None:
    written(tmp_path, {"attached_app": LOST[form]})
    application = analyse(tmp_path)
    errors = [d for d in application.errors if d.code in ("MUP009", "MUP006")]
    assert errors, f"silent: {sorted(found(application))}, served: {served(tmp_path, ['attached_app'])}"
    assert all(d.file == "attached_app.py" and d.line > HEAD.count("\n") and d.hint for d in errors)


def test_an_endpoint_that_no_service_has_is_an_error(tmp_path: Path) -> None:
    source = PLAIN + HANDLER + 'get = lambda path: EP(path)\nkept = []\nkept.append(get("/x")(handler))\n'
    written(tmp_path, {"attached_app": source})
    (error,) = analyse(tmp_path).errors
    assert (error.code, error.line) == ("MUP009", (HEAD + source).count("\n"))
    assert "'/x'" in error.message


def test_values_of_parameters_come_from_the_request(tmp_path: Path) -> None:
    """The default of a parameter decides nothing, whether a decorator hands it on or not."""
    source = """
        def checked(function):
            @functools.wraps(function)
            def wrapper(self, comm, *args, **kwargs): return function(self, comm, *args, **kwargs)
            return wrapper
        class A(MS):
            @EP("/a")
            @checked
            def a(self, comm, limit: int = 10):
                if limit > 50:
                    comm.query("db", "all", "rows", {}).get()
                comm.respond(1)
    """
    written(tmp_path, {"attached_app": source})
    (endpoint,) = analyse(tmp_path).endpoints()
    assert sorted(len(path.operations) for path in endpoint.paths) == [1, 3]


def test_communication_behind_a_star_is_no_silent_loss(tmp_path: Path) -> None:
    """What stands before a star of unknown length is handed on; what stands behind is an error."""
    source = """
        def ask(comm, *more, **options): comm.query("db", "all", "rows", {}).get()
        def last(first, comm=None): comm.query("db", "all", "rows", {}).get()
        class A(MS):
            @EP("/a")
            def a(self, comm):
                ask(comm, *comm.params["x"], **comm.params)
                comm.respond(1)
            @EP("/b")
            def b(self, comm):
                last(*comm.params["x"], comm)
                comm.respond(1)
    """
    written(tmp_path, {"attached_app": source})
    application = analyse(tmp_path)
    assert [o.op for o in application.endpoint("A/a").paths[0].operations] == ["query", "get", "respond"]
    assert {(d.code, d.line) for d in application.errors} == {("MUP041", 15)}


def test_a_factory_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    """Endpoints of one factory differ by what it was given, and change with it."""
    source = """
        def reader(name, query):
            @EP(f"/{name}")
            def read(self, comm): comm.respond(comm.query("db", query, "rows", {}).get())
            return read
        class A(MS):
            a = reader("a", "first")
            b = reader("b", "second")
    """
    written(tmp_path, {"attached_app": source})
    one, two = analyse(tmp_path).endpoints()
    assert one.fingerprint != two.fingerprint
    assert [o.target for e in (one, two) for p in e.paths for o in p.operations if o.op == "query"] == [
        "db.first",
        "db.second",
    ]
    written(tmp_path, {"attached_app": source.replace('"second"', '"third"')})
    same, changed = analyse(tmp_path).endpoints()
    assert same.fingerprint == one.fingerprint
    assert changed.fingerprint != two.fingerprint
