"""A station from elsewhere becomes a part of a model."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from mup.cli.main import main
from mup.errors import UsageError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Discrepancy,
    Entry,
    Exponential,
    Front,
    Model,
    Processor,
    Replicate,
    Setup,
    Task,
    Uncertainty,
    load_model,
    save_model,
)
from mup.lqn.composition import compose
from mup.lqn.refs import WorkNames
from simulator import simulate

ZERO = Constant(0.0)


def entry(name: str, demand: float, delay: float = 0.0, *calls: Call, replies: bool = False) -> Entry:
    work = Activity(
        name="work", demand=Exponential(demand), delay=Constant(delay), calls=calls, replies=replies
    )
    return Entry(name=name, start="work", activities=(work,))


def system(clients: int = 8) -> Model:
    """Clients call A; A calls B twice, and passes 30 ms with something that is not in the model; B calls a database."""
    scenario = Activity(name="go", demand=ZERO, delay=ZERO, calls=(Call(task="A", entry="/a/"),))
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(
                name="users",
                role="reference",
                threads=clients,
                think=Exponential(0.1),
                entries=(Entry(name="scenario", start="go", activities=(scenario,)),),
            ),
            Task(
                name="A",
                threads=20,
                processor="host",
                front=Front(request=Constant(0.001), reply=ZERO),
                entries=(
                    entry("/a/", 0.002, 0.03, Call(task="B", entry="/b/"), Call(task="B", entry="/c/")),
                ),
            ),
            Task(
                name="B",
                threads=4,
                processor="host",
                front=Front(request=Constant(0.001), reply=ZERO),
                entries=(entry("/b/", 0.005, 0.0, Call(task="db", entry="qry")), entry("/c/", 0.001)),
            ),
            Task(name="db", role="database", threads=math.inf, entries=(entry("qry", 0.01),)),
        ),
        provenance={"source": "test"},
        uncertainty=Uncertainty(
            replicates=(
                Replicate(demands={"A/a/:work": 1.1, "B/b/:work": 0.9}, fronts={"A": 1.2, "B": 0.8}),
            ),
            discrepancy=Discrepancy(points={"throughput": ((0.0, 0.1, 0.0),)}, systems=1, points_used=1),
        ),
    )


def station(threads: float = 2, name: str = "blackbox", *names: str) -> Model:
    """A station of exponential 20 ms with a processor and a load of its own."""
    entries = [replace(entry(n, 0.02), arrivals=Exponential(0.1)) for n in names or ("request",)]
    return Model(
        name=name,
        processors=(Processor(name="host", cores=3, parent="rack"), Processor(name="rack", cores=8)),
        tasks=(Task(name=name, threads=threads, processor="host", entries=tuple(entries)),),
        provenance={"method": "measured by hand"},
    )


def test_a_station_replaces_a_task() -> None:
    """Every entry of the task is served by the station; what only the task called is gone."""
    found = compose(system(), "B", station(), "b.json")
    task = found.model.task("B")
    assert (task.threads, task.front, task.role) == (2, None, "service")
    assert [(e.name, e.arrivals) for e in task.entries] == [("/b/", None), ("/c/", None)]
    assert [e.activity("work").demand for e in task.entries] == [Exponential(0.02)] * 2
    assert found.dropped == ("db",)
    assert [t.name for t in found.model.tasks] == ["users", "A", "B"]
    assert found.served == {"/b/": "request", "/c/": "request"}


def test_what_a_station_costs_after_sleep_is_kept() -> None:
    """Under the names its entry has in the model, one per entry it serves."""
    part = station()
    key = WorkNames(part.tasks[0].entries).texts["request", "work"]
    setup = Setup(gaps=(0.001,), worker=(1.0,), core=(0.0,), demands={key: (0.002, 0.0)})
    part = replace(part, tasks=(replace(part.tasks[0], setup=setup),))
    task = compose(system(), "B", part, "b.json").model.task("B")
    keys = WorkNames(task.entries).texts
    assert task.setup is not None
    assert task.setup.demands == {keys[entry, "work"]: (0.002, 0.0) for entry in ("/b/", "/c/")}


def test_processors_come_along_under_free_names() -> None:
    """The station's host is not the model's host."""
    model = compose(system(), "B", station(), "b.json").model
    assert model.task("B").processor == "B-host"
    assert (model.processor("B-host").cores, model.processor("B-host").parent) == (3, "rack")
    assert model.processor("host").cores == 2


def test_entries_of_the_same_name_serve_each_other() -> None:
    """A station with several entries needs those names."""
    found = compose(system(), "B", station(2, "legacy", "/c/", "/b/"), "b.json")
    assert found.served == {"/b/": "/b/", "/c/": "/c/"}
    with pytest.raises(UsageError, match="which entry serves 'B/c/'"):
        compose(system(), "B", station(2, "legacy", "/b/", "/x/"), "b.json")


def test_where_a_number_comes_from_is_kept() -> None:
    """Provenance names file, origin and what was replaced; uncertainty keeps what is still there."""
    model = compose(system(), "B", station(), "b.json").model
    kept = model.provenance["stations"]["B"]
    assert kept["source"] == "b.json"
    assert kept["provenance"] == {"method": "measured by hand"}
    assert kept["replaced"] == {"threads": 4, "replicas": 1}
    assert model.provenance["source"] == "test"
    assert model.uncertainty == Uncertainty(
        replicates=(Replicate(demands={"A/a/:work": 1.1}, fronts={"A": 1.2}),)
    )


def test_a_station_enters_where_a_delay_stood_for_it() -> None:
    """The activity calls it, and keeps what its delay was longer."""
    found = compose(system(), "A/a/:work", station(2, "bank"), "bank.json")
    work = found.model.task("A").entry("/a/").activity("work")
    assert work.calls[-1] == Call(task="bank", entry="request")
    assert work.delay is not None
    assert work.delay.mean == pytest.approx(0.01)
    assert found.model.task("bank").entries[0].arrivals is None
    assert found.model.provenance["stations"]["bank"]["delay"]["before"] == 0.03


def test_a_database_gets_a_finite_concurrency() -> None:
    """With one connection of 10 ms each, no more than a hundred queries per second are possible."""
    single = Model(
        name="db", tasks=(Task(name="db", role="database", threads=1, entries=(entry("any", 0.01),)),)
    )
    free = simulate(system(40), precision=0.05)
    bound = simulate(compose(system(40), "db", single, "db.json").model, precision=0.05)
    assert free.cycle.throughput.mean > 1.2 * bound.cycle.throughput.mean
    assert bound.cycle.throughput.mean == pytest.approx(100, rel=0.06)
    assert bound.tasks["db"].utilization is not None
    assert bound.tasks["db"].utilization.mean > 0.95


@pytest.mark.parametrize(
    ("place", "part", "message"),
    [
        pytest.param("C", station(), "no task 'C'", id="unknown-task"),
        pytest.param("users", station(), "stands for clients", id="clients"),
        pytest.param("A/a/:sleep", station(), "no activity 'sleep'", id="unknown-activity"),
        pytest.param("B", system(), "has A, B, db", id="several-tasks"),
        pytest.param("A/a/:work", station(1, "B"), "a task 'B' already", id="name-taken"),
        pytest.param("A/a/:work", station(1, "x", "r", "s"), "must have one", id="several-entries"),
    ],
)
def test_what_does_not_fit_is_said(place: str, part: Model, message: str) -> None:
    """Each names what is wrong."""
    with pytest.raises(UsageError, match=message):
        compose(system(), place, part, "part.json")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["model", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().out


def test_model_files_are_composed_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model, a station for a task, another one for a delay: a new file, and the old ones as they were."""
    shop, legacy, bank, out = (tmp_path / f"{n}.json" for n in ("shop", "legacy", "bank", "out"))
    save_model(system(), shop)
    save_model(station(), legacy)
    save_model(station(3, "bank"), bank)
    arguments = (str(shop), "--with", f"B={legacy}", "--with", f"A/a/:work={bank}", "-o", str(out), "--json")
    code, text = run(capsys, *arguments)
    assert code == 0
    assert [s["task"] for s in json.loads(text)["stations"]] == ["B", "bank"]
    assert load_model(shop) == system()
    composed = load_model(out)
    assert [t.name for t in composed.tasks] == ["users", "A", "B", "bank"]
    assert set(composed.provenance["stations"]) == {"B", "bank"}


def test_source_code_is_composed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A station takes a task of a project's model, also of an uncalibrated one."""
    (tmp_path / "app.py").write_text(
        "from mup import EP, MS, Communication\n\n\nclass A(MS):\n    @EP('/a/')\n"
        "    def a(self, comm: Communication) -> None:\n        comm.respond(comm.call('B', '/b/', {}).get())\n\n\n"
        "class B(MS):\n    @EP('/b/')\n    def b(self, comm: Communication) -> None:\n        comm.respond(1)\n",
        encoding="utf-8",
    )
    part, out = tmp_path / "b.json", tmp_path / "out.json"
    save_model(station(7), part)
    code, _ = run(capsys, str(tmp_path), "--static", "--with", f"B={part}", "-o", str(out))
    assert code == 0
    assert load_model(out).task("B").threads == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--with", "B", "-o", "OUT"], "PLACE=FILE", id="no-file"),
        pytest.param(["--with", "B=/no/such.json", "-o", "OUT"], "cannot", id="missing-file"),
        pytest.param(["--with", "B=STATION"], "which file", id="no-output"),
        pytest.param(["--with", "B=STATION", "-o", "OUT", "--static"], "leave out", id="static"),
        pytest.param(["--with", "C=STATION", "-o", "OUT"], "no task 'C'", id="unknown-task"),
    ],
)
def test_bad_composition_is_one_message(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, and no file."""
    shop, part, out = (tmp_path / f"{n}.json" for n in ("shop", "part", "out"))
    save_model(system(), shop)
    save_model(station(), part)
    words = [w.replace("STATION", str(part)).replace("OUT", str(out)) for w in arguments]
    code, text = run(capsys, str(shop), *words, "--json")
    assert code == 2
    error = json.loads(text)["error"]
    assert message in f"{error['message']} {error.get('hint', '')}"
    assert not out.exists()
