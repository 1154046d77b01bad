"""Are two models compared by what their entries do, and is that said in words, with the right line?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.static import analyse, translate
from mup.lqn import Constant, Model, load_model, save_model
from mup.lqn.comparison import compare
from mup.lqn.matching import in_names_of
from mup.lqn.model import Setup

HEAD = """\
from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 4

    @EP("/a/")
    def a(self, comm: Communication) -> None:
"""
REST = """
class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)

    @EP("/c/")
    def c(self, comm: Communication) -> None:
        comm.respond(1)


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1)
        await comm.call("A", "/a/", {"words": []})
"""
LINE = HEAD.count("\n")


def static_model(folder: Path, body: str, head: str = "") -> Model:
    """Return the model of a service A with this body of its endpoint, and of service B and a client."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    (folder / "services.py").write_text(head + HEAD + lines + REST)
    return translate(analyse(folder), name="m", client="User")


CALL_B = 'comm.call("B", "/b/", {})'
CALL_C = 'comm.call("B", "/c/", {})'
ONE = f"x = {CALL_B}.get()\ncomm.respond(x)"
PARALLEL = f"f = {CALL_B}\ng = {CALL_C}\ncomm.respond([f.get(), g.get()])"
CHANGES = [
    pytest.param(
        ONE, f"x = {CALL_B}.get()\nx += {CALL_B}.get()\ncomm.respond(x)",
        "B/b/ was called once, is called twice", 2, id="one-more-call",
    ),
    pytest.param(
        ONE, f"x = {CALL_C}.get()\nx = {CALL_B}.get()\ncomm.respond(x)",
        "B/c/ was not called, is called once", 1, id="another-call",
    ),
    pytest.param(
        f"x = {CALL_C}.get()\n{ONE}", ONE, "B/c/ was called once, is not called any more", 1, id="a-call-less"
    ),
    pytest.param(
        ONE, f"x = 0\nfor word in comm.params['words']:\n    x = {CALL_B}.get()\ncomm.respond(x)",
        "B/b/ was called once, is called once per iteration", 3, id="call-in-a-loop",
    ),
    pytest.param(
        ONE, f"x = [{CALL_B}.get() for n in (1, 2, 3)]\ncomm.respond(x)",
        "B/b/ was called once, is called 3 times", 1, id="loop-over-known-items",
    ),
    pytest.param(
        PARALLEL, f"f = {CALL_B}\nf = f.get()\ng = {CALL_C}\ncomm.respond([f, g.get()])",
        "the call of B/b/ and the call of B/c/ were parallel, are sequential", 2, id="lost-parallelism",
    ),
    pytest.param(
        f"f = {CALL_B}.get()\ng = {CALL_C}\ncomm.respond([f, g.get()])", PARALLEL,
        "the call of B/b/ and the call of B/c/ were sequential, are parallel", 2, id="won-parallelism",
    ),
    pytest.param(
        f"comm.respond(1)\n{CALL_B}.get()", f"{CALL_B}.get()\ncomm.respond(1)",
        "comes to the call of B/b/ where it came to the reply", 1, id="later-reply",
    ),
    pytest.param(
        f"{CALL_B}.get()\n{CALL_C}.get()\ncomm.respond(1)", f"{CALL_C}.get()\n{CALL_B}.get()\ncomm.respond(1)",
        "comes to the call of B/c/ where it came to the call of B/b/", 1, id="another-order",
    ),
    pytest.param(
        ONE, f"if comm.params['words']:\n    {CALL_C}.get()\n{ONE}",
        "a path is new, on which B/c/ is called once", 2, id="a-new-path",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "text", "line"), CHANGES)
def test_one_change_of_source_is_one_difference(
    tmp_path: Path, before: str, after: str, text: str, line: int
) -> None:
    """Whatever the edit did to the activities, one sentence says it, with the line that makes the difference."""
    old = static_model(tmp_path / "1", before)
    new = static_model(tmp_path / "2", after)
    (change,) = compare(old, new)
    assert change.operations is not None
    assert (change.subject, change.operations.text) == ("A/a/", text)
    assert (change.operations.file, change.operations.line) == ("services.py", LINE + line)


@pytest.mark.parametrize(("before", "after", "text", "line"), CHANGES)
def test_a_change_taken_back_is_a_difference_too(
    tmp_path: Path, before: str, after: str, text: str, line: int
) -> None:
    """The other way round something is told as well; and nothing of a version and its copy with a comment."""
    old = static_model(tmp_path / "1", before)
    new = static_model(tmp_path / "2", after)
    assert len(compare(new, old)) == 1
    for number, body in enumerate((before, after)):
        moved = static_model(tmp_path / f"moved{number}", body, head="# one\n# two\n")
        assert compare((old, new)[number], moved) == []


def test_an_inserted_line_leaves_the_numbers_comparable(tmp_path: Path) -> None:
    """After a comment at the top, a demand that differs is one difference, in the names of the old model."""
    old = static_model(tmp_path / "1", PARALLEL)
    new = static_model(tmp_path / "2", PARALLEL, head="# one\n")
    task = new.task("A")
    (entry,) = task.entries
    first = entry.activities[0]
    activities = (replace(first, demand=Constant(0.5)), *entry.activities[1:])
    setup = Setup(gaps=(1.0,), worker=(1.0,), core=(1.0,), demands={f"/a/:{first.name}": (0.1, 0.2)})
    new = new.with_task(replace(task, entries=(replace(entry, activities=activities),), setup=setup))
    changes = {(c.where, c.field): c.new for c in compare(old, new) if not c.field.startswith("setup.")}
    was = old.task("A").entry("/a/").activities[0].name
    assert was != first.name
    assert changes.pop(("tasks['A']", "setup")) is True
    assert changes == {(f"tasks['A'].entries['/a/'].activities[{was!r}]", "demand"): Constant(0.5)}
    (aligned,) = [t for t in in_names_of(old, new) if t.name == "A"]
    assert aligned.setup is not None
    assert aligned.setup.demands == {f"/a/:{was}": (0.1, 0.2)}


def test_models_keep_what_is_compared_in_their_files(tmp_path: Path) -> None:
    """A model that was written and read is compared as the one of the source."""
    old, new = (
        static_model(tmp_path / str(n), body) for n, body in enumerate((ONE, f"{CALL_C}.get()\n{ONE}"))
    )
    save_model(new, tmp_path / "new.json")
    assert compare(old, load_model(tmp_path / "new.json")) == compare(old, new)


def test_a_changed_endpoint_keeps_its_other_numbers(tmp_path: Path) -> None:
    """Where a call came, what is not new is compared as before."""
    old = static_model(tmp_path / "1", ONE)
    new = static_model(tmp_path / "2", f"x = {CALL_C}.get()\n{ONE}")
    task = new.task("A")
    (entry,) = task.entries
    names = {step.target: step.communication for step in _steps(entry) if step.op == "call"}
    activities = tuple(
        replace(a, delay=Constant(0.25)) if a.name == names["B/b/"] else a for a in entry.activities
    )
    changed = new.with_task(replace(task, entries=(replace(entry, activities=activities),)))
    found = compare(old, changed)
    assert [(c.kind, c.field) for c in found] == [("operations", "calls"), ("changed", "delay")]


def _steps(entry: object) -> list:  # type: ignore[type-arg]
    from mup.lqn.path_steps import routes

    return [step for route in routes(entry) for step, _ in route.walk()]  # type: ignore[arg-type]
