"""Work of endpoints, apart from everything else, against its nominal time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from accuracy.generate import system as generated
from accuracy.nominal import nominal
from accuracy.points import Point
from accuracy.store import Results, write_json
from accuracy.work_speed import SPEED, endpoint_work, endpoint_works, work_speeds
from measured_repeats import repeat

from mup.lqn import Activity, Call, Constant, Entry, Model, Precedence, Processor, Task, save_model

NAME = "s104"


def model(demand: float, speed: float) -> Model:
    """Return a user who asks A, which asks B three times in four; only A and B work."""

    def work(name: str, seconds: float, **more: object) -> Activity:
        return Activity(name=name, demand=Constant(seconds), delay=Constant(0), **more)  # type: ignore[arg-type]

    user = Entry(
        name="scenario", start="ask", activities=(work("ask", 0.5, calls=(Call(task="A", entry="/a/"),)),)
    )
    a = Entry(
        name="/a/",
        start="begin",
        activities=(
            work("begin", demand),
            work("often", 0.0, calls=(Call(task="B", entry="/b/"),)),
            work("seldom", 0.0),
            work("end", demand, replies=True),
        ),
        precedences=(
            Precedence(pre=("begin",), post=("often", "seldom"), fork="or", probabilities=(0.75, 0.25)),
            Precedence(pre=("often", "seldom"), post=("end",), join="or"),
        ),
    )
    b = Entry(name="/b/", start="all", activities=(work("all", 4 * demand, replies=True),))
    return Model(
        name="two",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(name="User", role="reference", processor="host", threads=1, entries=(user,)),
            Task(name="A", role="service", processor="host", entries=(a,)),
            Task(name="B", role="service", processor="host", entries=(b,)),
        ),
        provenance={"monitored_speed": speed, "observed_seconds": 24.4},
    )


def test_only_endpoints_count() -> None:
    """Two pieces of A and three quarters of B's; the user's own half second is not theirs."""
    assert endpoint_work(model(0.01, SPEED)) == pytest.approx(0.02 + 0.75 * 0.04)


def test_exploration_and_repeats_are_given_for_the_same_speed(tmp_path: Path) -> None:
    """A machine that is twice as fast halves the work, and the figure remains; void repeats do not count."""
    results = Results(tmp_path)
    folder = results.system(NAME)
    work = nominal(generated(104)).work / 1000  # seconds per cycle
    found = model(3 * work / 5, SPEED)
    results.model("first", NAME).parent.mkdir(parents=True)
    save_model(found, results.model("first", NAME))
    folder.path.mkdir(parents=True)
    write_json(folder.points, [Point(name="one", clients=1, pools={}, replicas={}).to_json()])
    write_json(folder.explored, {"seconds": 135.0, "jump": -0.25})
    for number, (cpu, speed, void) in enumerate(((3.2, 1.0, ""), (1.5, 2.0, ""), (9.0, 1.0, "foreign"))):
        record = repeat("one", number, [0.1] * 50, void=void, speed=SPEED * speed)
        record["monitored"] = SPEED * speed
        record["measurement"]["cycles"] = 50
        record["entries"] = {"A//a/": {"count": 50, "cpu": cpu * work}}
        write_json(folder.repeat("one", number), record)
    expected = (NAME, "3.00", "3.10", "3.00 to 3.20", "24 of 135", "-25%")
    assert work_speeds(results, "first", [NAME, "translator"]) == [expected]


def test_endpoints_are_compared_as_far_as_chance_allows(tmp_path: Path) -> None:
    """Drivers of databases and quick endpoints are left out; standard errors come from both numbers of executions."""
    results = Results(tmp_path)
    folder = results.system(NAME)
    a = model(0.01, SPEED).task("A").entry("/a/")
    query = Activity(name="comm_9", demand=Constant(0.5), delay=Constant(0), replies=True)
    end = replace(a.activities[-1], replies=False)
    links = (*a.precedences, Precedence(pre=("end",), post=("comm_9",)))
    entry = replace(a, activities=(*a.activities[:-1], end, query), precedences=links)
    found = model(0.01, 2 * SPEED)
    found = replace(
        found, tasks=tuple(replace(t, entries=(entry,)) if t.name == "A" else t for t in found.tasks)
    )
    results.model("first", NAME).parent.mkdir(parents=True)
    save_model(found, results.model("first", NAME))
    folder.run.mkdir(parents=True)
    write_json(folder.points, [Point(name="one", clients=1, pools={}, replicas={}).to_json()])
    widths = {label: {"executions": 100} for label in ("A/a/", "B/b/", "C/c/")}
    write_json(folder.run / "run.json", {"widths": widths})
    for number, void in enumerate(("", "", "foreign")):
        record = repeat("one", number, [0.1] * 50, void=void)
        record["monitored"] = SPEED
        cpu = 1.0 if void else 0.016
        record["entries"] = {
            "A/a/": {"count": 50, "cpu": cpu, "cpu_cv": 0.5},
            "B/b/": {"count": 50, "cpu": 0.001, "cpu_cv": 0.5},
        }
        write_json(folder.repeat("one", number), record)
    # Two pieces of 10 ms at twice the speed.
    assert endpoint_works(results, "first", [NAME]) == [(NAME, "A/a/", "16.0", "+150.0%", "7.1%", "100, 100")]
