"""A model that is too big for a picture is refused, with the way to draw a part of it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from mup.cli.models.graph import command
from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Model,
    Precedence,
    Processor,
    Task,
    save_model,
)
from mup.lqn.drawing import around, check_size, draw, is_drawable, layout
from mup.lqn.drawing.part import MAX_DRAWN


def entry(name: str, *targets: tuple[str, str]) -> Entry:
    """An entry that works and then calls others."""
    calls = tuple(Call(task=task, entry=called) for task, called in targets)
    work = Activity(name="w", demand=Exponential(0.01), delay=Constant(0.0), calls=calls)
    return Entry(name=name, start="w", activities=(work,))


def chain(length: int, entries: int = 2) -> Model:
    """Clients and a row of services; every entry calls the one of its name in the next service."""
    services = [
        Task(
            name=f"S{i}",
            threads=4,
            processor=f"p{i}",
            entries=tuple(
                entry(f"e{k}", *([(f"S{i + 1}", f"e{k}")] if i + 1 < length else [])) for k in range(entries)
            ),
        )
        for i in range(length)
    ]
    targets = tuple(("S0", f"e{k}") for k in range(entries))
    clients = Task(
        name="U", role="reference", threads=3, think=Exponential(1.0), entries=(entry("cycle", *targets),)
    )
    return Model(
        name="chain",
        processors=tuple(Processor(name=f"p{i}") for i in range(length)),
        tasks=(clients, *services),
    )


def test_size_of_pictures_is_bounded() -> None:
    """Tasks and entries count; as many as are allowed are drawn, one more is refused."""
    fits = chain((MAX_DRAWN - 2) // 3)
    assert is_drawable(fits)
    check_size(fits)
    with pytest.raises(ModelError, match=f"401 tasks with 801 entries .* at most {MAX_DRAWN}") as caught:
        check_size(chain(400))
    assert "--around" in caught.value.hint


def test_neighbours_are_drawn() -> None:
    """The part has the task, its callers and its callees, and nothing else."""
    part = around(chain(50), "S20")
    assert [task.name for task in part.tasks] == ["S19", "S20", "S21"]
    assert [p.name for p in part.processors] == ["p19", "p20", "p21"]
    calls = [(task.name, c.task) for task, _, a in part.walk() for c in a.calls]
    assert calls == [("S19", "S20")] * 2 + [("S20", "S21")] * 2
    assert set(layout(part).tasks) == {"S19", "S20", "S21"}


def test_only_entries_that_take_part() -> None:
    """A neighbour with many entries is drawn with those that call, or are called."""
    caller = Task(name="A", entries=(entry("other", ("C", "x")), entry("one", ("B", "b"))))
    center = Task(name="B", entries=(entry("b", ("C", "y")),))
    last = Task(name="C", entries=(entry("x"), entry("y"), entry("z")))
    part = around(Model(name="m", tasks=(caller, center, last)), "B")
    assert {task.name: [e.name for e in task.entries] for task in part.tasks} == {
        "A": ["one"],
        "B": ["b"],
        "C": ["y"],
    }


def test_locks_stay_whole() -> None:
    """A lock without some of its entries would be no lock."""
    tokens = ("read-lock", "read-unlock", "write-lock", "write-unlock")
    entries = tuple(
        Entry(name=t, start="w", activities=(Activity(name="w"),), token=t)  # type: ignore[arg-type]
        for t in tokens
    )
    lock = Task(name="L", threads=4, entries=entries)
    user = Task(name="A", entries=(entry("a", ("L", "read-lock")),))
    part = around(Model(name="m", tasks=(user, lock)), "A")
    assert [e.name for e in part.tasks[1].entries] == list(tokens)


def test_grey_is_what_the_whole_model_never_reaches() -> None:
    """What the clients of the whole model reach is not grey in a part without clients."""
    whole = chain(5)
    lost = Task(name="Lost", entries=(entry("l", ("S3", "e0")),))
    whole = Model(name="m", processors=whole.processors, tasks=(*whole.tasks, lost))
    picture = draw(around(whole, "S3"), whole)
    texts = {
        text.text: "grey" in text.get("class", "").split()
        for text in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    }
    assert texts["l"]
    assert not texts["e0"]


def test_command(tmp_path: Path) -> None:
    """The command refuses in one message, and draws the part that is named."""
    file, picture = tmp_path / "big.json", tmp_path / "part.svg"
    save_model(chain(400), file)
    with pytest.raises(ModelError, match="too many for a picture"):
        CliRunner().invoke(command, [str(file), "--output", str(picture)], catch_exceptions=False)
    assert not picture.exists()
    done = CliRunner().invoke(
        command, [str(file), "--around", "S7", "--output", str(picture)], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "3 tasks" in done.output
    assert picture.stat().st_size < 30_000
    with pytest.raises(ModelError, match="no task 'S7x'"):
        CliRunner().invoke(command, [str(file), "--around", "S7x"], catch_exceptions=False)


def test_a_task_with_too_many_callers() -> None:
    """A part can be too big as well; the advice is another one then."""
    callers = tuple(Task(name=f"A{i}", entries=(entry("a", ("B", "b")),)) for i in range(MAX_DRAWN))
    part = around(Model(name="m", tasks=(*callers, Task(name="B", entries=(entry("b"),)))), "B")
    with pytest.raises(ModelError) as caught:
        check_size(part, around=True)
    assert "fewer callers" in caught.value.hint


def test_choices_keep_their_branches() -> None:
    """An entry that calls the task in one of several branches keeps them all, without their other calls."""
    names = ("one", "two")
    body = Entry(
        name="a",
        start="s",
        activities=(
            Activity(name="s"),
            Activity(name="one", calls=(Call(task="B", entry="b"),)),
            Activity(name="two", calls=(Call(task="C", entry="c"),)),
        ),
        precedences=(Precedence(pre=("s",), post=names, fork="or", probabilities=(0.5, 0.5)),),
    )
    tasks = (
        Task(name="A", entries=(body,)),
        *(Task(name=t, entries=(entry(t.lower()),)) for t in "BC"),
    )
    part = around(Model(name="m", tasks=tasks), "B")
    assert [a.name for _, _, a in part.walk()] == ["s", "one", "two", "w"]
    assert [len(a.calls) for _, _, a in part.walk()] == [0, 1, 0, 0]
