"""Steps of a campaign: none twice, none left out, without and with real services."""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path
from typing import Any

import pytest
from accuracy.campaign import Campaign, TimeIsUpError
from accuracy.command import main
from accuracy.deploy import prepare
from accuracy.measured import WindowLength
from accuracy.points import Point, choose
from accuracy.quiet import Quiet, withheld
from accuracy.store import FIRST, Results, SystemFolder, write_json
from measured_repeats import repeat

from analyzer.host.profile import default_profile, save_profile
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task

POINTS = (Point("one", 1, {}, {}), Point("change", 8, {"A": 4}, {}))


@pytest.fixture
def folder(tmp_path: Path) -> SystemFolder:
    """A system that was explored and predicted, but not yet measured."""
    results = Results(tmp_path)
    found = results.system("s102")
    prepare(found)
    write_json(found.explored, {"seconds": 60.0, "speed": 1000.0})
    write_json(found.points, [p.to_json() for p in POINTS])
    write_json(results.prediction(FIRST, "s102"), {"points": {}})
    return found


def campaign(folder: SystemFolder, **settings: Any) -> Campaign:
    """Return a campaign that has no time left: it can only find that nothing is to be done."""
    return Campaign(results=Results(folder.path.parents[1]), deadline=0.0, say=lambda _: None, **settings)


def store(folder: SystemFolder, point: str, count: int, **how: Any) -> None:
    """Store some repeats of a point."""
    for number in range(count):
        write_json(folder.repeat(point, number), repeat(point, number, [0.1, 0.11] * 100, **how))


def test_a_finished_system_is_left_alone(folder: SystemFolder) -> None:
    """With three narrow repeats of every point nothing is started."""
    for point in POINTS:
        store(folder, point.name, 3)
    assert campaign(folder).run(["s102"]) == []


def test_a_missing_repeat_is_noticed(folder: SystemFolder) -> None:
    """With one repeat too few there is something to do, unless the point was not asked for."""
    store(folder, "one", 3)
    store(folder, "change", 2)
    with pytest.raises(TimeIsUpError):
        campaign(folder).run(["s102"])
    assert campaign(folder, points=("one",)).run(["s102"]) == []


def test_void_repeats_do_not_count(folder: SystemFolder) -> None:
    """Void repeats are made again, but not for ever."""
    store(folder, "change", 3)
    store(folder, "one", 3, void="speed")
    with pytest.raises(TimeIsUpError):
        campaign(folder).run(["s102"])
    assert campaign(folder, void=3).run(["s102"]) == []


def test_wide_repeats_go_on(folder: SystemFolder) -> None:
    """Repeats that vary too much are followed by others until enough seconds were observed."""
    store(folder, "change", 3)
    for number in range(3):
        times = [0.1 * (1 + number)] * 20
        write_json(folder.repeat("one", number), repeat("one", number, times))
    with pytest.raises(TimeIsUpError):
        campaign(folder).run(["s102"])
    assert campaign(folder, observed=30.0).run(["s102"]) == []


def test_a_half_written_file_is_no_file(folder: SystemFolder) -> None:
    """What a killed campaign was writing does not count as a repeat."""
    file = folder.repeat("one", 0)
    file.parent.mkdir()
    file.with_name(file.name + ".new").write_text('{"po')
    assert folder.repeats("one") == []


def test_an_unknown_system_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is neither a seed nor an example is refused with one message."""
    assert main(["generate", "--results", str(tmp_path), "--systems", "nothing"]) == 2
    assert "no system 'nothing'" in capsys.readouterr().err


def test_the_first_predictions_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was written before the measurements cannot be replaced."""
    assert main(["predict", "--results", str(tmp_path), "--set", FIRST]) == 2
    assert "stays as it is" in capsys.readouterr().err


def test_measurements_and_work_take_turns(tmp_path: Path) -> None:
    """A measurement excludes all sharing of the machine, and the other way round; work can be shared."""
    gate, machine = tmp_path / "gate", tmp_path / "machine"
    quiet = Quiet(gate, machine)

    def free(path: Path, how: int) -> bool:
        with path.open("a") as file:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    with quiet.alone():
        assert not free(gate, fcntl.LOCK_EX)
        assert not free(machine, fcntl.LOCK_SH)
    with quiet.shared():
        assert free(gate, fcntl.LOCK_EX)
        assert free(machine, fcntl.LOCK_SH)
        assert not free(machine, fcntl.LOCK_EX)
    assert free(machine, fcntl.LOCK_EX)


def test_a_measurement_waits_for_a_calm_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Others work on until it seems to have come; then it is looked at again, and perhaps is over."""
    machine = tmp_path / "machine"
    seen: list[tuple[float, bool]] = []
    shares = iter([0.3, 0.0, 0.02, 0.0, 0.0])

    def look() -> float:
        with machine.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                alone = False
            except BlockingIOError:
                alone = True
        seen.append((next(shares), alone))
        return seen[-1][0]

    monkeypatch.setattr("accuracy.quiet.PAUSE", 0.0)
    monkeypatch.setattr("accuracy.quiet.withheld", look)
    with Quiet(machine=machine, patience=60.0).alone():
        assert seen == [(0.3, False), (0.0, False), (0.02, True), (0.0, False), (0.0, True)]
    with Quiet(machine=machine).alone():
        assert len(seen) == 5, "without patience nothing is looked at"


@pytest.mark.slow
def test_what_is_withheld_is_a_share() -> None:
    """Looking takes as long as the burn does."""
    began = time.monotonic()
    assert 0 <= withheld() < 1
    assert time.monotonic() - began > 1


def model(pool: int, delay: float) -> Model:
    """Return clients that think 0.1 s and call A: 5 ms on two cores, then a delay."""

    def one(name: str, **what: Any) -> Entry:
        return Entry(name=name, start="a", activities=(Activity(name="a", **what),))

    users = one("User", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="A", entry="/main/"),))
    work = one("/main/", demand=Exponential(0.005), delay=Constant(delay), replies=True)
    return Model(
        name="m",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(name="User", role="reference", think=Exponential(0.1), entries=(users,)),
            Task(name="A", threads=pool, processor="host", entries=(work,)),
        ),
    )


@pytest.mark.slow
def test_points_reach_from_one_user_to_saturation() -> None:
    """The knee is where the model is full; a small pool is what gets changed."""
    points = {p.name: p for p in choose(model(pool=2, delay=0.02), more_replicas=False)}
    # One of two threads is held 25 ms per cycle of 125 ms: full at 10 clients.
    assert points["knee"].clients == pytest.approx(10, abs=1)
    assert points["one"].clients == 1
    assert points["two"].clients == 2
    assert points["one"].clients < points["two"].clients < points["half"].clients < points["knee"].clients
    assert points["beyond"].clients == pytest.approx(17.5, abs=2)
    assert points["change"].pools == {"A": 4}
    assert choose(model(pool=2, delay=0.02), more_replicas=True)[-1].replicas == {"A": 2}


def test_windows_are_as_long_as_needed() -> None:
    """Slow systems are watched longer than fast ones, within limits."""
    window = WindowLength(shortest=6, longest=20, cycles=200)
    assert [window.seconds(x) for x in (100.0, 20.0, 1.0)] == [6, 10, 20]


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.repeats
@pytest.mark.usefixtures("short_probes")
def test_from_a_seed_to_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A system is explored, predicted and measured; a rerun finds nothing to do; the stored run can be used again."""
    short = ["--explore-seconds", "4", "--points", "two", "--repeats", "1", "--void", "1", "--observed", "1"]
    short += ["--window", "2", "--longest-window", "2", "--precision", "0.05"]
    common = ["--results", str(tmp_path), "--systems", "s104"]
    results = Results(tmp_path)
    save_profile(default_profile(2), results.host)
    assert main(["run", *common, *short]) == 0
    (record,) = results.system("s104").repeats("two")
    # Two seconds of two users: some cycles at least, and the endpoint's own times.
    assert len(record["responses_us"]) > 5
    assert record["entries"]["A/main/"]["cpu"] > 0.001
    assert set(record["measurement"]["cpu"]["seconds"]) >= {"A.worker", "A.front", "client"}
    capsys.readouterr()
    assert main(["run", *common, *short]) == 0
    assert capsys.readouterr().out == ""
    assert main(["predict", *common, "--component", "host=off", "--precision", "0.05"]) == 0
    again = json.loads(results.prediction("host-off", "s104").read_text())
    assert again["switches"] == {"host": False}
    capsys.readouterr()
    code = main(["report", *common, "--json"])
    if record["void"]:
        # This machine was busy with something else; then there is nothing to compare.
        assert code == 2
        return
    document = json.loads(capsys.readouterr().out)[FIRST]
    assert document["halves"]["train"]["points"] == 1
