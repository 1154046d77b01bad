"""Pictures of models: well-formed, complete, nothing on top of anything else."""

from __future__ import annotations

import itertools
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from analyzer.static import analyse, translate
from mup.cli.models.graph import command
from mup.errors import UsageError
from mup.lqn import (
    Constant,
    Exponential,
    Forward,
    Geometric,
    Migration,
    Model,
    Processor,
    load_model,
    save_model,
)
from mup.lqn.drawing import Box, draw, layout
from mup.lqn.drawing.labels import entry_text, milliseconds
from mup.lqn.drawing.layout import is_folded
from mup.lqn.drawing.weights import weights_of
from mup.lqn.model import LOCK, Activity, Call, Entry, Front, Precedence, Task

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).parents[3]


def big(folder: Path, services: int, endpoints: int) -> Model:
    """Return a chain of services with many endpoints, each with calls, a query and a branch."""
    lines = ["from mup import MS, EP, Client"]
    for s in range(services):
        lines.append(f"class S{s}(MS):")
        for e in range(endpoints):
            lines.append(f"    @EP('/e{e}/')\n    def e{e}(self, comm):")
            if s + 1 < services:
                lines.append(f"        f = comm.call('S{s + 1}', '/e{e}/')")
                lines.append("        if comm.params:\n            f.get()")
            lines.append(f"        comm.query('shop', 'q{e}', 'c', {{}}).get()\n        comm.respond(1)")
    lines.append("class User(Client):\n    async def scenario(self, comm):")
    lines += [f"        await comm.call('S0', '/e{e}/')" for e in range(endpoints)]
    (folder / "app.py").write_text("\n".join(lines))
    return translate(analyse(folder), name="big", client="User")


def translator() -> Model:
    return translate(analyse(ROOT / "examples/translator"), name="translator", client="Reader")


def texts(svg: str) -> list[str]:
    return [t.text or "" for t in ET.fromstring(svg).iter(f"{SVG}text")]


def assert_apart(boxes: list[Box]) -> None:
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


def assert_inside(inner: Box, outer: Box) -> None:
    assert outer.x <= inner.x
    assert outer.y <= inner.y
    assert inner.x + inner.width <= outer.x + outer.width
    assert inner.bottom <= outer.bottom


@pytest.mark.parametrize(("services", "endpoints"), [(1, 1), (3, 4), (6, 12)])
def test_nothing_overlaps(tmp_path: Path, services: int, endpoints: int) -> None:
    """Tasks, entries of a task and activities of an entry are apart; each lies inside what it belongs to."""
    model = big(tmp_path, services, endpoints)
    picture = layout(replace(model, processors=(Processor(name="host", cores=2),)))
    assert_apart([*picture.tasks.values(), *picture.processors.values()])
    page = Box(0, 0, picture.width, picture.height)
    for task in model.tasks:
        assert_inside(picture.tasks[task.name], page)
        entries = {e.name: picture.entries[task.name, e.name] for e in task.entries}
        if is_folded(task):
            assert set(entries.values()) == {picture.tasks[task.name]}
            continue
        assert_apart(list(entries.values()))
        for entry in task.entries:
            assert_inside(entries[entry.name], picture.tasks[task.name])
            keys = [(task.name, entry.name, a.name) for a in entry.activities]
            boxes = [picture.activities[k] for k in keys if k in picture.activities]
            assert_apart(boxes)
            for box in boxes:
                assert_inside(box, entries[entry.name])


def test_every_element_is_named(tmp_path: Path) -> None:
    """The picture is well-formed XML with a viewBox that names every task, entry and processor."""
    model = replace(big(tmp_path, 3, 4), processors=(Processor(name="host", cores=2),))
    svg = draw(model)
    assert ET.fromstring(svg).get("viewBox")
    shown = texts(svg)
    for task in model.tasks:
        assert task.name in shown
        if is_folded(task):
            assert any(t.startswith(f"{len(task.entries)} exchanges") for t in shown)
        else:
            assert all(any(e.name[:20] in t for t in shown) for e in task.entries)
    assert "host" in shown


def test_small_models_show_activities() -> None:
    """Up to some twenty entries every activity is drawn, uncalibrated ones with a question mark."""
    model = translator()
    shown = texts(draw(model))
    for task, _, activity in model.walk():
        if task.role in ("service", "reference"):
            assert activity.name in shown
    assert "?" in shown
    assert "think 100 ms" in shown
    assert "p = ?" in shown


def test_calibrated_numbers_are_shown() -> None:
    """Times are in milliseconds, probabilities on their branches, framework work at the task."""
    model = translator()
    task = model.task("A")
    (entry,) = task.entries
    activities = tuple(
        replace(a, demand=Constant(0.00231), delay=Constant(0.01)) if a.kind == "local" else a
        for a in entry.activities
    )
    forks = tuple(
        replace(p, probabilities=(0.0, 0.05, 0.95)) if p.fork == "or" else p for p in entry.precedences
    )
    task = replace(
        task,
        entries=(replace(entry, activities=activities, precedences=forks),),
        front=Front(request=Constant(0.0002), reply=None),
    )
    svg = draw(model.with_task(task))
    shown = texts(svg)
    assert {"CPU 2.31 ms, wait 10 ms", "p = 0.95", "front: 0.2 ms in, ? out"} <= set(shown)
    grey = [e for e in ET.fromstring(svg).iter(f"{SVG}text") if "grey" in e.get("class", "")]
    assert any(e.text == "after_32#1" or (e.text or "").endswith("#1") for e in grey)
    assert not any((e.text or "").endswith("#3") for e in grey)


def test_names_are_escaped() -> None:
    """Names with markup in them neither break the picture nor get into it."""
    zero = Constant(0.0)
    name = '<b>&"x'
    entry = Entry(name=name, start=name, activities=(Activity(name=name, demand=zero, delay=zero),))
    svg = draw(Model(name=name, tasks=(Task(name=name, entries=(entry,)),)))
    assert name in texts(svg)
    assert "<b>" not in svg


def test_any_valid_graph_can_be_drawn() -> None:
    """Models from elsewhere have nested forks, choices that merge, and tasks that call each other."""
    zero = Constant(0.0)
    arcs = (
        Precedence(pre=("a",), post=("b", "c", "d"), fork="and"),
        Precedence(pre=("b",), post=("e", "f"), fork="or", probabilities=(0.5, 0.5)),
        Precedence(pre=("e", "f"), post=("g",), join="or"),
        Precedence(pre=("c", "d"), post=("h",), join="and"),
        Precedence(pre=("g", "h"), post=("i",), join="and"),
    )
    calls = {"c": (Call(task="B", entry="one"),)}
    activities = tuple(Activity(name=n, demand=zero, delay=zero, calls=calls.get(n, ())) for n in "abcdefghi")

    def leaf(name: str, *to: Call) -> Entry:
        return Entry(
            name=name, start="x", activities=(Activity(name="x", demand=zero, delay=zero, calls=to),)
        )

    model = Model(
        name="x",
        tasks=(
            Task(
                name="A",
                entries=(Entry(name="main", start="a", activities=activities, precedences=arcs), leaf("two")),
            ),
            Task(name="B", entries=(leaf("one", Call(task="A", entry="two")),)),
        ),
    )
    picture = layout(model)
    assert_apart([picture.activities["A", "main", n] for n in "abcdefghi"])
    assert ET.fromstring(draw(model)) is not None


def leaf(name: str, *calls: Call, **fields: Any) -> Entry:
    return Entry(
        name=name,
        start="x",
        activities=(Activity(name="x", demand=Constant(0.004), delay=Constant(0), calls=calls),),
        **fields,
    )


def shop(services: int = 8, endpoints: int = 8) -> Model:
    """A model of about seventy entries whose calls skip layers."""
    chance = random.Random(3)
    names = [f"Service{i}" for i in range(services)]
    tasks = []
    for index, name in enumerate(names):
        entries = []
        for e in range(endpoints):
            calls = (
                [
                    Call(task=chance.choice(names[index + 1 :]), entry=f"/e{chance.randrange(endpoints)}/")
                    for _ in range(chance.randrange(3))
                ]
                if index + 1 < services
                else []
            )
            query = Call(
                task="db", entry=f"q{chance.randrange(6)}", kind=chance.choice(["synchronous", "send"])
            )
            entries.append(leaf(f"/e{e}/", *calls, query))
        tasks.append(Task(name=name, entries=tuple(entries)))
    clients = Task(
        name="U",
        role="reference",
        entries=(leaf("cycle", *(Call(task="Service0", entry=f"/e{e}/") for e in range(endpoints))),),
    )
    database = Task(name="db", role="database", entries=tuple(leaf(f"q{i}") for i in range(6)))
    return Model(name="shop", tasks=(clients, *tasks, database))


def test_seventy_entries_stay_readable() -> None:
    """Layers go down, the page is not too wide, and arrows that pass a layer run beside its tasks."""
    model = shop()
    picture = layout(model)
    assert picture.width < 2400
    assert_apart(list(picture.tasks.values()))
    assert_apart(list(picture.entries.values()))
    for task, _, activity in model.walk():
        for call in activity.calls:
            assert picture.tasks[call.task].y > picture.tasks[task.name].bottom
    assert len(picture.tracks) > 10
    for (target, entry, row), x in picture.tracks.items():
        assert picture.row_of[target] > row
        for name, box in picture.tasks.items():
            assert picture.row_of[name] != row or not box.x < x < box.right, (target, entry, name)


def test_arrows_run_beside_the_entries_they_do_not_lead_to() -> None:
    """No vertical part of an arrow passes through an entry, also where entries stand in several rows."""
    model = shop(4, 18)
    picture = layout(model)
    assert len({picture.entries["Service1", f"/e{i}/"].y for i in range(18)}) > 1
    paths = [
        p.get("d", "") for p in ET.fromstring(draw(model)).iter(f"{SVG}path") if "call" in p.get("class", "")
    ]
    assert len(paths) > 70
    for path in paths:
        numbers = [float(n) for n in re.findall(r"-?[0-9.]+", path)]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            if abs(x0 - x1) < 0.5 and y1 > y0:
                assert not any(
                    box.x < x0 < box.right and box.y < y1 - 0.2 and y0 + 0.2 < box.bottom
                    for box in picture.entries.values()
                )


def test_callers_stand_above_what_they_call() -> None:
    """Ordering by barycentres undoes a crossing that the order in the file would have."""
    calls = {"A": "D", "B": "C"}
    clients = Task(
        name="U",
        role="reference",
        entries=(leaf("cycle", Call(task="A", entry="e"), Call(task="B", entry="e")),),
    )
    callers = tuple(Task(name=n, entries=(leaf("e", Call(task=to, entry="e")),)) for n, to in calls.items())
    called = tuple(Task(name=n, entries=(leaf("e"),)) for n in "CD")
    picture = layout(Model(name="m", tasks=(clients, *callers, *called)))
    assert (picture.tasks["A"].x < picture.tasks["B"].x) == (picture.tasks["D"].x < picture.tasks["C"].x)


def test_tasks_that_send_to_each_other_are_drawn() -> None:
    """A cycle of sends has no top and bottom; the picture still has layers."""
    ring = [
        Task(name=n, entries=(leaf("e", Call(task=to, entry="e", kind="send")),))
        for n, to in ("AB", "BC", "CA")
    ]
    model = Model(name="ring", tasks=tuple(ring))
    assert_apart(list(layout(model).tasks.values()))
    assert draw(model).count('class="call send"') == 3


def test_every_element_has_its_sign() -> None:
    """Loops, quorums, sends, forwards, arrivals, priorities, semaphores and nested processors are shown."""
    names = ("s", "body", "r", "l", "z", "late")
    send = Call(task="B", entry="b", kind="send", count=Geometric(2.5))
    releasing = Call(task="B", entry="b", kind="releasing", count=Constant(2))
    calls = {"body": (send,), "r": (releasing,)}
    activities = tuple(
        Activity(name=n, demand=Constant(0.0), delay=Constant(0.0), calls=calls.get(n, ())) for n in names
    )
    arcs = (
        Precedence(pre=("s",), post=("body", "r"), fork="loop", counts=(Geometric(3.0),)),
        Precedence(pre=("r",), post=("l", "z"), fork="and"),
        Precedence(pre=("l", "z"), post=("late",), join="and", quorum=1),
    )
    entry = Entry(
        name="/a/",
        start="s",
        activities=activities,
        precedences=arcs,
        arrivals=Exponential(0.2),
        priority=2,
        forwards=(Forward(task="B", entry="b", probability=0.25),),
    )
    cores = Processor(name="numa", cores=4, discipline="cores", migration=Migration(wake=0.5, balance=2.0))
    model = Model(
        name="signs",
        processors=(Processor(name="host", cores=4), Processor(name="gil", parent="host"), cores),
        tasks=(
            Task(name="A", threads=3, processor="gil", entries=(entry,), admission="hol", priority=1),
            Task(name="B", entries=(leaf("b"),)),
            Task(name="lock", processor="numa", entries=(leaf("p", token="acquire"), leaf("v", token="release"))),
            Task(name="shared", entries=tuple(leaf(token, token=token) for token in LOCK)),
        ),
    )  # fmt: skip
    picture, svg = layout(model), draw(model)
    shown = texts(svg)
    for text in (
        "\N{CLOCKWISE OPEN CIRCLE ARROW} \N{MULTIPLICATION SIGN} ~3",
        "1 of 2",
        "→ B.b \N{MULTIPLICATION SIGN} ~2.5",
        "→ B.b \N{MULTIPLICATION SIGN} 2",
        "5/s from outside, priority +2",
        "pool 3, by priority, priority 1, on gil",
        "acquires a thread",
        "locks for reading",
        "ends writing",
        "4 cores, sharing per core, wake 0.5, steal 0, balance 2/s",
    ):
        assert text in shown
    for kind in ("send", "releasing", "forward"):
        assert svg.count(f'class="call {kind}"') == 1
    assert "forwards to B.b, p = 0.25" in svg
    assert_inside(picture.processors["gil"], picture.processors["host"])
    key = ("A", "/a/")
    assert picture.activities[(*key, "r")].y > picture.activities[(*key, "body")].bottom


def test_graph_command(tmp_path: Path) -> None:
    """`mup graph` writes the SVG next to the model, or where it is told."""
    save_model(translator(), tmp_path / "m.json")
    CliRunner().invoke(command, [str(tmp_path / "m.json")], catch_exceptions=False)
    assert ET.parse(tmp_path / "m.svg").getroot().tag == f"{SVG}svg"
    result = CliRunner().invoke(
        command, [str(tmp_path / "m.json"), "-o", str(tmp_path / "x.svg"), "--json"], catch_exceptions=False
    )
    assert json.loads(result.stdout)["file"] == str(tmp_path / "x.svg")
    with pytest.raises(UsageError, match="cannot write"):
        CliRunner().invoke(
            command,
            [str(tmp_path / "m.json"), "-o", str(tmp_path / "no/x.svg")],
            catch_exceptions=False,
            standalone_mode=False,
        )


def example(name: str) -> Model:
    """Return a calibrated model of an example."""
    return load_model(ROOT / "examples" / name / "model.json")


@pytest.mark.parametrize("name", ["acmeair", "teastore", "jpetstore", "tms", "facedetect"])
def test_names_that_are_shortened_stay_different(name: str) -> None:
    """Endpoints with a common beginning can be told apart; no network hides the services."""
    model = example(name)
    shown = texts(draw(model))
    for task in model.tasks:
        if task.role == "service":
            labels = [entry_text(task, e)[0] for e in task.entries]
            assert len(set(labels)) == len(task.entries)
            assert set(labels) <= set(shown)
        elif task.role == "network":
            assert is_folded(task) == (len(task.entries) > 12)
            assert not is_folded(task) or not any("exchange_" in t for t in shown)


@pytest.mark.parametrize("name", ["acmeair", "teastore", "facedetect"])
def test_no_arrow_runs_through_a_title(name: str) -> None:
    """What the words of a task stand on is drawn after all arrows and is as wide as they are."""
    root = ET.fromstring(draw(example(name)))
    kinds = [(e.get("class") or "").split() for e in root]
    last_arrow = max(i for i, kind in enumerate(kinds) if "call" in kind)
    plates = [i for i, kind in enumerate(kinds) if "plate" in kind]
    titles = [i for i, kind in enumerate(kinds) if "title" in kind]
    assert len(plates) == len(titles) == len(example(name).tasks)
    assert last_arrow < min(plates)
    for plate, title in zip(plates, titles, strict=True):
        assert plate < title
        box, words = root[plate], root[title]
        assert float(box.get("x", 0)) < float(words.get("x", 0))
        assert float(box.get("width", 0)) >= 6 * len(words.text or "")


def test_the_heaviest_box_has_the_longest_bar() -> None:
    """Bars are proportional to shares of the time of a cycle; without numbers there are none."""
    model = example("teastore")
    weights = weights_of(model)
    leaves = {k: w for k, w in weights.items() if len(k) == 2}
    assert sum(leaves.values()) == pytest.approx(1)
    heaviest = max(leaves, key=lambda k: leaves[k])
    box = layout(model).entries[heaviest[0], heaviest[1]]
    bars = [e for e in ET.fromstring(draw(model)).iter(f"{SVG}rect") if e.get("class") == "weight"]
    longest = max(bars, key=lambda e: float(e.get("width", 0)))
    assert float(longest.get("x", 0)) == pytest.approx(box.x + 2, abs=0.1)
    assert float(longest.get("width", 0)) == pytest.approx(box.width - 4, abs=0.1)
    assert len(bars) == sum(w >= 0.01 for k, w in leaves.items() if k[0] != "Net")
    assert 'class="weight"' not in draw(translator())


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0000173, "0.017 ms"),
        (0.0001, "0.1 ms"),
        (2.31e-3, "2.31 ms"),
        (2e-7, "0 ms"),
        (3.5, "3.5 s"),
        (0.0, "0 ms"),
    ],
)
def test_times_have_no_digits_that_are_not_known(seconds: float, shown: str) -> None:
    """Three digits from a millisecond on, two below, none below a microsecond."""
    assert milliseconds(Constant(seconds)) == shown
