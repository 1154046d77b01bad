"""What modules do when they are imported, also those that do not name the framework."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from analyzer.static import analyse

SERVICES = """
from mup import EP, MS, Communication
import events
{imports}

class S(MS):
    @EP("/s")
    def s(self, comm: Communication) -> None:
        events.{code}
        comm.respond(1)


class B(MS):
    @EP("/a")
    def a(self, comm: Communication) -> None:
        comm.respond(1)

    @EP("/b")
    def b(self, comm: Communication) -> None:
        comm.respond(1)
"""

EVENTS = """
import functools

TABLE = {}


@functools.singledispatch
def handle(event, comm):
    pass


def entry(name):
    def wrap(function):
        TABLE[name] = function
        return function

    return wrap
"""

HANDLERS = """
import events


@events.handle.register
def handled(event: int, comm):
    comm.call("B", "/{name}").get()


@events.entry("x")
def found(comm):
    comm.call("B", "/{name}").get()
"""


def calls(root: Path, imports: str, code: str) -> list[list[str]]:
    """Return what the paths of the endpoint call."""
    (root / "services.py").write_text(SERVICES.format(imports=imports, code=code), encoding="utf-8")
    (root / "events.py").write_text(EVENTS, encoding="utf-8")
    for name in "ab":
        (root / f"on_{name}.py").write_text(HANDLERS.format(name=name), encoding="utf-8")
    result = analyse(root)
    assert result.errors == ()
    found = next(e for e in result.endpoints() if e.label == "S/s")
    return [[o.target for o in path.operations if o.op == "call"] for path in found.paths]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_module_without_the_framework_registers(tmp_path: Path, name: str) -> None:
    assert calls(tmp_path, f"import on_{name}", "handle(1, comm)") == [[f"B/{name}"]]


def test_both_may_run_that_two_modules_have_registered(tmp_path: Path) -> None:
    found = calls(tmp_path, "import on_a\nimport on_b", "handle(1, comm)")
    assert sorted(found) == [["B/a"], ["B/b"]]


@pytest.mark.parametrize("named", ["", "from mup import Communication\n"])
@pytest.mark.parametrize(("first", "last"), ["ab", "ba"])
def test_the_last_import_decides_what_a_table_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, first: str, last: str
) -> None:
    monkeypatch.setattr(f"{__name__}.HANDLERS", named + HANDLERS)
    found = calls(tmp_path, f"import on_{first}\nimport on_{last}", 'TABLE["x"](comm)')
    assert found == [[f"B/{last}"]]


def test_a_package_that_only_imports_attaches(tmp_path: Path) -> None:
    main = """
        from mup import EP, MS

        class S(MS):
            pass

        def route(service, path):
            def attach(function):
                setattr(service, function.__name__, EP(path)(function))
                return function
            return attach

        import routes
        """
    users = """
        from main import S, route

        @route(S, "/users")
        def users(self, comm):
            comm.respond([])
        """
    (tmp_path / "routes").mkdir()
    (tmp_path / "main.py").write_text(dedent(main), encoding="utf-8")
    (tmp_path / "routes" / "__init__.py").write_text("from . import users\n", encoding="utf-8")
    (tmp_path / "routes" / "users.py").write_text(dedent(users), encoding="utf-8")
    result = analyse(tmp_path)
    assert ([e.label for e in result.endpoints()], result.errors) == (["S/users"], ())


def test_a_decorator_whose_service_is_not_known_is_an_error(tmp_path: Path) -> None:
    main = """
        import os
        from mup import EP, MS

        class S(MS):
            pass

        def route(service, path):
            def attach(function):
                setattr(service, function.__name__, EP(path)(function))
                return function
            return attach

        @route({"s": S}.get(os.environ["WHICH"]), "/users")
        def users(self, comm):
            comm.respond([])
        """
    (tmp_path / "main.py").write_text(dedent(main), encoding="utf-8")
    assert {error.code for error in analyse(tmp_path).errors} == {"MUP009"}
