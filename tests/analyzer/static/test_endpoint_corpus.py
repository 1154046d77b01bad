"""Endpoints as people write them: what each does when it is executed, and what the analyzer says of it.

What is modelled right stays so. What is refused or wrong is listed in `corpus/outcomes.toml` with its cause; a change
that removes a cause removes its endpoints there, and the tests insist on it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from corpus import judgement
from corpus.execution import Case, Inputs, silent
from corpus.judgement import APPLICATIONS, Verdict, expectations, inputs_of, judge

from analyzer.static import Application, Endpoint, analyse

LEAST = 300
"""Endpoints."""


@cache
def verdicts(application: str) -> dict[str, Verdict]:
    return {v.label: v for v in judge(application)}


def endpoints() -> Iterator[object]:
    known = expectations()
    for application in APPLICATIONS:
        for label in inputs_of(application).cases:
            expected = known.get(f"{application} {label}")
            marks = () if expected is None else [pytest.mark.xfail(strict=True, reason=expected.cause)]
            yield pytest.param(
                application, f"{application} {label}", marks=marks, id=f"{application}-{label}"
            )


@pytest.mark.parametrize(("application", "label"), [*endpoints()])
def test_endpoint_is_modelled_right(application: str, label: str) -> None:
    """Each of its executions is a path; what is known to be refused or wrong must not pass unnoticed."""
    verdict = verdicts(application)[label]
    assert verdict.outcome == "right", verdict.why


@pytest.mark.parametrize("application", APPLICATIONS)
def test_what_is_not_right_is_listed(application: str) -> None:
    """With the codes of its errors: an error may become no other one, and no wrong model, unnoticed."""
    found = {v.label: (v.outcome, v.codes) for v in verdicts(application).values() if v.outcome != "right"}
    listed = {
        label: (expected.outcome, expected.codes if expected.outcome == "refused" else ())
        for label, expected in expectations().items()
        if label.split()[0] == application
    }
    assert found == listed


def test_size_of_the_corpus() -> None:
    """Every endpoint has inputs, and what is listed exists."""
    labels = {f"{a} {label}" for a in APPLICATIONS for label in inputs_of(a).cases}
    assert len(labels) >= LEAST
    assert set(expectations()) <= labels


# The harness itself.


class Pair(NamedTuple):
    """A class that cannot import anything while one of its objects is made."""

    one: int


async def work() -> None:
    """Nothing is awaited."""


def test_coroutines_that_applications_leave_behind_fail_no_test() -> None:
    """Whenever they are collected: pytest would report what their warning fails with, in some later test."""
    before = gc.get_threshold()
    with silent():
        gc.set_threshold(1)
        for _ in range(100):
            left: list[object] = [work()]
            left.append(left)
            Pair(len(left))
            del left
        gc.set_threshold(*before)


SERVICES = """
from mup import EP, MS

class A(MS):
    @EP("/a")
    def a(self, comm):
        if comm.params.get("more"):
            comm.call("B", "/b").get()
        comm.respond(1)

class B(MS):
    @EP("/b")
    def b(self, comm):
        comm.respond(2)
"""
INPUTS = Inputs({"A/a": Case("x", [{"json": {"more": True}}, {}]), "B/b": Case("x")})


def changed(application: Application, change: Callable[[Endpoint], Endpoint | None]) -> Application:
    """Return what an analyzer says that is mistaken about some endpoints."""
    services = tuple(
        replace(s, endpoints=tuple(e for one in s.endpoints if (e := change(one)) is not None))
        for s in application.services
    )
    return replace(application, services=services)


def judged(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = SERVICES) -> dict[str, Verdict]:
    """Judge a small application."""
    (folder / "applications" / "small").mkdir(parents=True)
    (folder / "applications" / "small" / "services.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(judgement, "HERE", folder)
    monkeypatch.setattr(judgement, "inputs_of", lambda _: INPUTS)
    return {v.label: v for v in judge("small")}


def test_what_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways through the endpoint are taken, and both are found."""
    a = judged(tmp_path, monkeypatch)["small A/a"]
    assert (a.outcome, a.paths, a.untaken) == ("right", 2, 0)
    assert a.sequences >= 3  # the request may end while it waits


@pytest.mark.parametrize("forgotten", [0, 1])
def test_missing_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: int) -> None:
    """An analyzer that forgets a path is wrong, whichever it is."""

    def forget(endpoint: Endpoint) -> Endpoint:
        paths = endpoint.paths
        return replace(
            endpoint, paths=(paths[:forgotten] + paths[forgotten + 1 :]) if len(paths) > 1 else paths
        )

    monkeypatch.setattr(judgement, "analyse", lambda folder: changed(analyse(folder), forget))
    found = judged(tmp_path, monkeypatch)
    assert found["small A/a"].outcome == "wrong"
    assert "no path of the source" in found["small A/a"].why or "goes on" in found["small A/a"].why
    assert found["small B/b"].outcome == "right"


def test_missing_endpoint_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that is served and not modelled is wrong."""
    monkeypatch.setattr(
        judgement,
        "analyse",
        lambda folder: changed(analyse(folder), lambda e: None if e.label == "B/b" else e),
    )
    assert judged(tmp_path, monkeypatch)["small B/b"].outcome == "wrong"


def test_error_in_a_helper_is_about_its_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other endpoints are not refused for it."""
    helper = "def ask(comm):\n    comm.call('C', '/c').get()\n"
    source = helper + SERVICES.replace('comm.call("B", "/b").get()', "ask(comm)")
    found = judged(tmp_path, monkeypatch, source)
    assert (found["small A/a"].outcome, found["small A/a"].codes) == ("refused", ("MUP011",))
    assert found["small B/b"].outcome == "right"
