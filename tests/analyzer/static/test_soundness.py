"""What really executes is always one of the paths the analysis found, site by site."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from source_outline import analyse_files, codes, endpoint_source
from test_paths import CASES

from mup.errors import CallError, MupError, NoReplicaError, QueryError
from mup.events.sites import Site, SiteTable


class Sites:
    """Stands in for a log: remembers the sites it is given."""

    def __init__(self) -> None:
        self.known: list[Site] = []

    def site(self, site: Site) -> int:
        self.known.append(site)
        return len(self.known)


class Recorder:
    """A Communication that executes nothing and notes the site of each operation; the `failing`-th one fails."""

    def __init__(self, root: Path, params: dict[str, Any], failing: int) -> None:
        self.params = params
        self.steps: list[tuple[str, Site]] = []
        self._sites = Sites()
        self._table = SiteTable(self._sites, root)  # type: ignore[arg-type]
        self._failing = failing

    def note(self, op: str, error: type[MupError]) -> None:
        number = self._table.of_frame(sys._getframe(2), "call")
        self.steps.append((op, self._sites.known[number - 1]))
        if len(self.steps) == self._failing:
            raise CallError("no", status=500) if error is CallError else error("no")

    def call(self, dest_ms: str, path: str, params: object = None) -> Reply:
        self.note("call", NoReplicaError)
        return Reply(self, CallError)

    def query(self, db_name: str, qry_name: str, coll_name: str, qry_txt: object) -> Reply:
        self.note("query", QueryError)
        return Reply(self, QueryError)

    def respond(self, body: object = None, status: int = 200) -> None:
        number = self._table.of_frame(sys._getframe(1), "call")
        self.steps.append(("respond", self._sites.known[number - 1]))


class Reply:
    """A future whose result is there."""

    def __init__(self, comm: Recorder, error: type[MupError]) -> None:
        self._comm = comm
        self._error = error
        self._done = False

    def get(self) -> dict[str, str]:
        if not self._done:
            self._done = True
            self._comm.note("get", self._error)
        return {"text": "x"}


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("analysed_app", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def situations() -> Iterator[tuple[dict[str, Any], int]]:
    """Yield request parameters and the number of the operation that fails (0 = none)."""
    for params in ({}, {"x": "a", "n": "1"}, {"x": "b"}, {"n": "nonsense"}):
        for failing in range(5):
            yield params, failing


TRICKY = {
    "helper raises into the caller's handler": """
        def ask(path):
            return comm.call('B', path).get()
        try:
            ask('/b/')
            ask('/c/')
        except CallError:
            comm.query('db', 'q', 'c', {}).get()
        comm.respond(1)
    """,
    "re-raise from an inner try": """
        try:
            try:
                comm.call('B', '/b/').get()
            except CallError:
                comm.call('B', '/c/').get()
                raise
        except MupError:
            comm.respond(0)
            return
        comm.respond(1)
    """,
    "first matching handler wins": """
        try:
            comm.call('B', '/b/').get()
            comm.query('db', 'q', 'c', {}).get()
        except QueryError:
            comm.respond('query')
        except (CallError, ValueError):
            comm.respond('call')
        except Exception:
            comm.respond('other')
        else:
            comm.respond('fine')
    """,
    "return through finally": """
        try:
            if comm.params:
                comm.respond(1)
                return
        finally:
            comm.call('B', '/b/')
        comm.respond(2)
    """,
    "retry until it works": """
        for attempt in range(3):
            try:
                answer = comm.call('B', '/b/').get()
                break
            except MupError:
                continue
        else:
            comm.respond('gave up')
            return
        comm.respond(answer)
    """,
    "for-else with early exit": """
        for word in comm.params:
            if word == 'x':
                break
        else:
            comm.call('B', '/b/').get()
        comm.respond(1)
    """,
    "flag set in a loop": """
        found = False
        for word in comm.params:
            if word == 'x':
                found = True
        if found:
            comm.call('B', '/b/').get()
        comm.respond(1)
    """,
    "future behind an alias": """
        f = g = comm.call('B', '/b/')
        h = [f]
        h += [comm.call('B', '/c/')]
        first, *rest = h[0], 1
        g.get()
        h[1].get()
        comm.respond(1)
    """,
    "assignment expression": """
        if (f := comm.call('B', '/b/')) and (word := comm.params.get('x')):
            f.get()
            comm.call('B', '/c/' if word == 'a' else '/b/').get()
        comm.respond(1)
    """,
    "choice of futures": """
        f, g = comm.call('B', '/b/'), comm.call('B', '/c/')
        first = f if comm.params else g
        first.get()
        comm.respond(1)
    """,
    "correlation through a negated name": """
        skip = not comm.params
        futures = []
        if not skip:
            futures.append(comm.call('B', '/b/'))
        answers = [f.get() for f in futures]
        if not skip:
            comm.query('db', 'q', 'c', {}).get()
        comm.respond(answers)
    """,
    "dictionary of calls": """
        calls = {p: comm.call('B', p) for p in ('/b/', '/c/')}
        answers = {p: f.get() for p, f in calls.items()}
        comm.respond(answers)
    """,
    "zip and enumerate": """
        for i, (p, q) in enumerate(zip(('/b/', '/c/'), ('x', 'y'))):
            comm.call('B', p).get()
            if i == 1:
                comm.query('db', q, 'c', {}).get()
        comm.respond(1)
    """,
    "list that grows in a loop": """
        seen = []
        for word in comm.params:
            if len(seen) == 1:
                comm.respond('two')
                return
            seen.append(word)
        comm.respond(1)
    """,
    "sorted": """
        for p in sorted(['/c/', '/b/']):
            comm.call('B', p).get()
        comm.respond(1)
    """,
    "raise of a class of the application": """
        class Stop(Exception): pass
        try:
            if comm.params:
                raise Stop
            comm.call('B', '/b/').get()
        except Stop:
            comm.respond(0)
            return
        comm.respond(1)
    """,
    "assert and conditional expression in arguments": """
        assert comm.params is not None
        comm.respond(comm.call('B', '/b/').get() if comm.params else comm.call('B', '/c/').get())
    """,
}

BODIES = [
    pytest.param(case.values[0], id=str(case.id))
    for case in CASES
    if "10**9" not in str(case.values[0]) and "while True" not in str(case.values[0])
] + [pytest.param(dedent(body).strip(), id=name.replace(" ", "-")) for name, body in TRICKY.items()]


@pytest.mark.parametrize("body", BODIES)
def test_execution_is_one_of_the_paths(tmp_path: Path, body: str) -> None:
    """Whatever the request says and whichever operation fails, the sequence of sites was predicted.

    A request that ends in an exception outside of any ``try`` may stop in the middle of a path.
    """
    application = analyse_files(tmp_path, app=endpoint_source(body))
    found = {tuple((o.op, o.site) for o in p.operations) for p in application.endpoint("A/a/").paths}
    assert codes(application) == []
    service = load(tmp_path / "app.py").A()
    for params, failing in situations():
        comm = Recorder(tmp_path, params, failing)
        try:
            service.a(comm)
        except (MupError, ValueError, KeyError, FileNotFoundError):
            done = tuple(comm.steps)
            assert any(path[: len(done)] == done for path in found), (params, failing)
        else:
            assert tuple(comm.steps) in found, (params, failing)
