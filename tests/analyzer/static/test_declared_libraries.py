"""Decorators and context managers of libraries: what mup's tables know, and what a project declares."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS

from analyzer.static import analyse, analyse_project
from analyzer.static.libraries.decorators import TRANSPARENT
from analyzer.static.names import Declared
from mup.errors import ProjectError
from mup.project import load_project

MODULE = """
from prometheus_client import Counter, Histogram
import prometheus_client as metrics
from opentelemetry import trace
import ourlib
from ourlib.metrics import timed, Timer
TIME = Histogram("seconds", "of requests", ["path"])
FAILED = metrics.Counter("failed", "requests")
tracer = trace.get_tracer(__name__)
TIMER = Timer("x")
"""


CALL = "comm.respond(comm.call('B', '/b/').get())"


def source(decorator: str, body: str = CALL, *, before: str = "") -> str:
    """Return a module whose endpoint has a decorator ("" = none)."""
    above = f"    @{decorator}\n" if decorator else ""
    service = f"class A(MS):\n    @EP('/a/')\n{above}    def a(self, comm):\n        {body}\n"
    return f"{HEAD}{MODULE}\n{before}{service}{OTHERS}"


def found(folder: Path, text: str, declared: Declared | None = None) -> list[str]:
    """Return the codes of the findings, or the operations of the endpoint's paths."""
    folder.mkdir(exist_ok=True)
    (folder / "app.py").write_text(text)
    application = analyse(folder, declared=declared)
    if application.diagnostics:
        return [finding.code for finding in application.diagnostics]
    return [" ".join(o.op for o in path.operations) for path in application.endpoint("A/a/").paths]


@pytest.mark.parametrize(
    "decorator",
    [
        "TIME.time()",
        "TIME.labels('/a/').time()",
        "FAILED.count_exceptions()",
        "tracer.start_as_current_span('a')",
        "trace.get_tracer(__name__).start_as_current_span('a')",
    ],
)
def test_metrics_and_traces_leave_a_function_alone(tmp_path: Path, decorator: str) -> None:
    """They call it once, whatever they note; the same on a helper that is called."""
    assert found(tmp_path / "1", source(decorator)) == ["call get respond"]
    helper = f"@{decorator}\ndef ask(comm):\n    return comm.call('B', '/b/').get()\n"
    text = source("", "comm.respond(ask(comm))", before=helper)
    assert found(tmp_path / "2", text) == ["call get respond"]


@pytest.mark.parametrize(
    ("decorator", "name"),
    [
        ("timed", "ourlib.metrics.timed"),
        ("timed('a')", "ourlib.metrics.timed"),
        ("ourlib.traced", "ourlib.traced"),
        ("TIMER.around()", "ourlib.metrics.Timer.around"),
    ],
)
def test_a_project_declares_decorators(tmp_path: Path, decorator: str, name: str) -> None:
    """What is in no table may do anything; a project that says that it does nothing is believed."""
    text = source(decorator)
    assert found(tmp_path, text) == ["MUP030"]
    assert found(tmp_path, text, Declared(transparent=frozenset({name}))) == ["call get respond"]
    assert found(tmp_path, text, Declared(transparent=frozenset({f"{name}s"}))) == ["MUP030"]


def test_a_project_declares_managers_that_swallow(tmp_path: Path) -> None:
    """A failure inside then goes on behind the block."""
    body = "with ourlib.ignoring():\n            comm.call('B', '/b/').get()\n            comm.call('B', '/c/').get()"
    text = source("", f"{body}\n        comm.respond(1)")
    assert found(tmp_path, text) == ["call get call get respond"]
    swallowed = found(tmp_path, text, Declared(swallowing=frozenset({"ourlib.ignoring"})))
    assert {"call get call get respond", "call respond", "call get call respond"} <= set(swallowed)


def test_declarations_of_a_project(tmp_path: Path) -> None:
    """They stand in mup.toml; an analysis that is remembered is made anew when they change."""
    (tmp_path / "app.py").write_text(source("timed"))
    toml = tmp_path / "mup.toml"
    services = '[services.A]\nclass = "app:A"\n[services.B]\nclass = "app:B"\n'
    toml.write_text(services)
    assert [d.code for d in analyse_project(load_project(tmp_path), remember=True).errors] == ["MUP030"]
    toml.write_text(
        f'[analysis]\ntransparent = ["ourlib.metrics.timed"]\nswallowing = ["ourlib.ignoring"]\n{services}'
    )
    for _ in range(2):
        assert analyse_project(load_project(tmp_path), remember=True).errors == ()
    toml.write_text(services)
    assert [d.code for d in analyse_project(load_project(tmp_path), remember=True).errors] == ["MUP030"]
    toml.write_text(f'[analysis]\ntransparent = ["not a name"]\n{services}')
    with pytest.raises(ProjectError, match=r"\[analysis\] transparent: must be a list of dotted names"):
        load_project(tmp_path)


def test_the_table_has_dotted_names() -> None:
    assert all(part.isidentifier() for name in TRANSPARENT for part in name.split("."))
    assert "functools.lru_cache" not in TRANSPARENT, "it remembers results"
