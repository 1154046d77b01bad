"""The comparison of log and model of one user, by kind of rounds, and its findings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.one_user import Compared, OfOneUser, Place
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.record import Event
from mup.events.sites import Site
from mup.lqn import Processor
from simulator import simulate
from simulator.studies.prediction import RealRun, predict_interval
from simulator.studies.whatif import Scenario

SOURCE = """\
from mup import EP, MS, Client

class Web(MS):
    runtime = "async"

    @EP("/page/")
    async def page(self, comm):
        one = comm.call("Back", "/one/", {})
        other = comm.call("Back", "/other/", {})
        a = await one
        comm.respond([a, await other])

class Back(MS):
    pool_size = 2

    @EP("/one/")
    def one(self, comm):
        comm.respond(1)

    @EP("/other/")
    def other(self, comm):
        comm.respond(2)

class User(Client):
    async def scenario(self, comm):
        await self.think(0.05)
        await comm.call("Web", "/page/", {})
"""
PAGE, CYCLE = "Web/page/", "User.scenario"
WIRE = 1.0
"""Milliseconds of every exchange, beside what a front does."""
THINK = 50.0


@dataclass
class Round:
    """A round: its phase, how often a user comes, how fast the machine is, what one branch takes, the users."""

    phase: str
    cycles: int = 40
    speed: float = 1.0
    nominal: float = 4.0
    users: int = 1


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return analysed(tmp_path, SOURCE)


def analysed(tmp_path: Path, text: str) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(text, encoding="utf-8")
    found = analyse(source)
    assert not found.errors
    return found


class Writer:
    """Writes the log of a user whose page asks for two things at once; times in milliseconds."""

    def __init__(self, folder: Path, application: Application) -> None:
        folder.mkdir()
        self.folder, self.application = folder, application
        self.web = LogFile(folder / "Web.0.w0.mlog", service="Web")
        self.back = [LogFile(folder / f"Back.0.w{n}.mlog", service="Back", worker=n) for n in range(2)]
        self.client = LogFile(folder / "User.client.mlog", service="User", role="client")
        self.request = 0

    def run(
        self, rounds: Sequence[Round], *, alike: bool = False, spread: float = 0.1, front: float = 0.0
    ) -> Run:
        """Write all rounds.

        Args:
            rounds: In their order.
            alike: Both branches take equally long in every cycle; else the other one takes no time.
            spread: By which part times vary.
            front: Processor time of the front of Back per request.
        """
        draw = random.Random(1)
        windows, t = [], 0.0
        for one in rounds:
            begin, asked = t, self.request
            ends = [begin] * one.users
            for _ in range(one.cycles):
                for user, end in enumerate(ends):
                    think = THINK if one.phase == "cold" else 0.0
                    took = one.nominal / one.speed * draw.uniform(1 - spread, 1 + spread)
                    work = took, took if alike else 0.0
                    # Between two cycles of one user passes a little time that is in neither.
                    between = 0.1 if one.users == 1 else 0.0
                    ends[user] = self._cycle(end, think, *work, front / one.speed) + between
            t = max(ends)
            windows.append(
                Window(
                    round(begin * 1e6),
                    round(t * 1e6),
                    phase=one.phase,  # type: ignore[arg-type]
                    clients=one.users,
                    think_scale=1.0 if one.phase == "cold" else 0.0,
                    monitored=one.speed,
                    cycles=one.cycles * one.users,
                    cpu={"7": 2 * front / one.speed * (self.request - asked) / 1e3},
                )
            )
        for log in (self.web, *self.back, self.client):
            log.close()
        part = PartInfo(windows=windows, processes=[ProcessUse(role="front", service="Back", pid=7)])
        RunInfo(
            project="shop",
            client="User",
            cores=2,
            parts=[part],
            fingerprints=fingerprints(self.application),
        ).save(self.folder)
        return load_run(self.folder)

    def _site(self, label: str, operation: int) -> Site:
        return self.application.endpoint(label).paths[0].operations[operation].site

    def _cycle(self, t: float, think: float, one: float, other: float, front: float) -> float:
        self.request += 1
        cycle, page = self.request, child_id(self.request, 1)
        scenario = [o.site for o in self.application.client("User").paths[0].operations]
        add = self.client.add
        add(Event.BEGIN, cycle, t, cpu=0, name=CYCLE)
        add(Event.THINK_START, cycle, t, cpu=0, site=scenario[0])
        t += think
        add(Event.THINK_END, cycle, t, cpu=0, site=scenario[0])
        add(Event.COMM_START, cycle, t, cpu=0, name=PAGE, site=scenario[1], seq=1)
        add(Event.CONTACT_DEST, cycle, t, cpu=0, name=PAGE, seq=1)
        add(Event.WAIT_START, cycle, t, cpu=0, site=scenario[2], seq=1)
        end = self._page(page, t + WIRE / 2, one, other, front) + WIRE / 2
        add(Event.COMM_FINISH, cycle, end, cpu=0, name=PAGE, seq=1)
        add(Event.WAIT_END, cycle, end, cpu=0, seq=1)
        add(Event.DONE, cycle, end, cpu=0, name=CYCLE)
        return end

    def _page(self, page: int, t: float, one: float, other: float, front: float) -> float:
        add = self.web.add
        add(Event.BEGIN, page, t, cpu=0, name=PAGE)
        ends = []
        for seq, (name, took) in enumerate((("Back/one/", one), ("Back/other/", other)), start=1):
            add(Event.COMM_START, page, t, cpu=0, name=name, site=self._site(PAGE, seq - 1), seq=seq)
            add(Event.CONTACT_DEST, page, t, cpu=0, name=name, seq=seq)
            child, back = child_id(page, seq), self.back[seq - 1]
            begin = t + WIRE / 2 + front
            back.add(Event.BEGIN, child, begin, cpu=0, name=name)
            back.add(Event.END, child, begin + took, cpu=took, name=name, site=self._site(name, 0))
            back.add(Event.DONE, child, begin + took, cpu=took, name=name)
            ends.append(begin + took + WIRE / 2)
        first, last = ends[0], max(ends)
        add(Event.WAIT_START, page, t, cpu=0, site=self._site(PAGE, 2), seq=1)
        if ends[1] < first:
            add(Event.COMM_FINISH, page, ends[1], cpu=0, name="Back/other/", seq=2)
        add(Event.COMM_FINISH, page, first, cpu=0, name="Back/one/", seq=1)
        add(Event.WAIT_END, page, first, cpu=0, seq=1)
        add(Event.WAIT_START, page, first, cpu=0, site=self._site(PAGE, 3), seq=2)
        if ends[1] >= first:
            add(Event.COMM_FINISH, page, ends[1], cpu=0, name="Back/other/", seq=2)
        add(Event.WAIT_END, page, last, cpu=0, seq=2)
        add(Event.END, page, last, cpu=0, name=PAGE, site=self._site(PAGE, 4))
        add(Event.DONE, page, last, cpu=0, name=PAGE)
        return last


def found(run: Run, application: Application, **more: Any) -> Calibration:
    return calibrate(run, application, name="shop", **more)


def cycle(calibration: Calibration, kind: str, figure: str = "mean") -> Compared:
    (one,) = [c for c in calibration.one_user.of_cycle(figure) if c.kind == kind]
    return one


@pytest.mark.slow
def test_each_kind_of_rounds_is_compared_with_its_own(tmp_path: Path, application: Application) -> None:
    """Requests that take half as long again with think times: neither kind is off, and nothing is warned of."""
    rounds = [Round("hot"), Round("cold", nominal=6.0)] * 6
    calibration = found(Writer(tmp_path / "run", application).run(rounds), application)
    hot, cold = cycle(calibration, "hot"), cycle(calibration, "cold")
    assert cold.logged - hot.logged == pytest.approx(0.002, rel=0.1)
    for one in (hot, cold):
        assert abs(one.difference) < 0.02
        assert not one.differs
        assert one.half_width is not None
        assert one.half_width < 0.02
    seen = {c.place.callee for c in calibration.one_user.figures if c.kind == "hot"}
    assert seen == {"", PAGE, "Back/one/", "Back/other/"}
    assert not [text for text in calibration.warnings if "one user" in text]
    assert calibration.model.uncertainty is not None
    own = calibration.model.uncertainty.one_user
    assert own is not None
    assert own.response_time == 0.0


@pytest.mark.slow
def test_the_machine_of_the_rounds_is_the_one_of_the_model(tmp_path: Path, application: Application) -> None:
    """Cold rounds of a machine that was a quarter slower are compared with a model of one that is."""
    rounds = [Round("hot"), Round("cold", speed=0.8)] * 6
    calibration = found(Writer(tmp_path / "run", application).run(rounds), application)
    hot, cold = cycle(calibration, "hot"), cycle(calibration, "cold")
    assert cold.logged > 1.1 * hot.logged
    assert abs(hot.difference) < 0.02
    assert abs(cold.difference) < 0.02


@pytest.mark.slow
def test_what_differs_is_warned_of_and_in_the_interval(tmp_path: Path, application: Application) -> None:
    """Branches that take equally long in every cycle: sampled apart, the longer of two is longer."""
    rounds = [Round("hot"), Round("cold")] * 6
    run = Writer(tmp_path / "run", application).run(rounds, alike=True, spread=0.8)
    calibration = found(run, application)
    hot = cycle(calibration, "hot")
    # The larger of two independent uniform times is a sixth of their range above their mean.
    assert hot.difference == pytest.approx(0.8 * 4.0 / 3 / 6.0, abs=0.05)
    assert hot.differs
    (text,) = [t for t in calibration.warnings if t.startswith("one user back to back: ")]
    assert "longer in the model" in text
    assert "parallel branches are sampled independently" in text
    model = calibration.model
    assert model.uncertainty is not None
    own = model.uncertainty.one_user
    assert own is not None
    assert own.response_time == pytest.approx(max(hot.excess, cycle(calibration, "cold").excess), rel=1e-3)
    result = simulate(model, precision=0.02)
    interval = predict_interval(Scenario((), model), result, RealRun(1e6)).response_time
    assert interval.parts["discrepancy"] > 0.9
    assert interval.contains(hot.logged)


def with_bursts(tmp_path: Path, nominal: float) -> Calibration:
    """Calibrate by rounds of one user, and bursts of two; ``nominal`` is what one branch takes in these."""
    several = SOURCE.replace("pool_size = 2", "pool_size = 4").replace(
        '"async"', '"async"\n    pool_size = 2'
    )
    application = analysed(tmp_path, several)
    rounds = [Round("hot"), Round("cold")] * 6 + [Round("burst", 60, nominal=nominal, users=2)] * 3
    return found(Writer(tmp_path / "run", application).run(rounds), application)


@pytest.mark.slow
def test_bursts_are_compared_with_as_many_clients(tmp_path: Path) -> None:
    """Two users who do not wait for each other: a cycle of a burst takes as long as one of one user."""
    calibration = with_bursts(tmp_path, 4.0)
    burst = cycle(calibration, "burst")
    assert (burst.clients, burst.count) == (2, 360)
    assert burst.logged == pytest.approx(cycle(calibration, "hot").logged, rel=0.05)
    assert abs(burst.difference) < 0.02
    assert not burst.differs
    # 120 cycles in every round: what they took is known to one of them, however alike the rounds are.
    assert burst.sd is not None
    assert burst.sd > 1 / 120 / 2
    # Of a burst, in which some cycles began before it, the mean alone is known.
    assert [c.figure for c in calibration.one_user.figures if c.kind == "burst"] == ["mean"]
    assert calibration.one_user.uncertainty() is not None


@pytest.mark.slow
def test_a_model_that_is_off_in_bursts_is_warned_of(tmp_path: Path) -> None:
    """Users who wait for something that is in no model: it is too quick with several of them."""
    calibration = with_bursts(tmp_path, 8.0)
    burst = cycle(calibration, "burst")
    assert burst.difference == pytest.approx(-4.0 / 10, abs=0.03)
    (text,) = [t for t in calibration.warnings if t.startswith("2 users back to back: ")]
    assert "shorter in the model" in text
    assert not [t for t in calibration.warnings if t.startswith("one user")]
    own = calibration.one_user.uncertainty()
    assert own is not None
    assert own.response_time == pytest.approx(burst.excess, rel=1e-3)


class Dozing:
    """A machine whose work takes a quarter longer, however busy it is."""

    def processor(self, name: str) -> Processor:
        return Processor(name=name, cores=8, idling=((0.0, 1.25), (1.0, 1.25)))

    def to_json(self) -> dict[str, Any]:
        return {}


@pytest.mark.slow
def test_known_work_of_an_exchange_took_as_long_as_the_machine_was_slow(
    tmp_path: Path, application: Application
) -> None:
    """A front that used 1 ms explains 1 ms of an exchange, though its demand on a busy machine is 0.8 ms."""
    rounds = [Round("hot"), Round("cold")] * 6
    run = Writer(tmp_path / "run", application).run(rounds, front=1.0)
    calibration = found(run, application, host=Dozing())
    front = calibration.model.task("Back").front
    assert front is not None
    assert front.request.mean + front.reply.mean == pytest.approx(0.0008, rel=0.01)
    net = calibration.model.task("Net")
    delays = [a.delay.mean for e in net.entries if PAGE in e.name for a in e.activities if a.delay]
    assert delays[0] == pytest.approx(0.001 * WIRE, rel=0.02)


def one_figure(**changes: Any) -> Compared:
    fields: dict[str, Any] = {
        "kind": "hot",
        "place": Place(),
        "figure": "mean",
        "logged": 1.0,
        "logged_half": 0.02,
        "simulated": 1.1,
        "simulated_half": 0.01,
        "sd": 0.03,
        "freedom": 1000,
        "count": 100,
    }
    return Compared(**(fields | changes))


def test_what_chance_explains_counts_once() -> None:
    """Of a difference, the part that chance explains is not in the model's error: calibration has it."""
    assert one_figure().excess == pytest.approx((0.1**2 - 0.03**2) ** 0.5)
    assert one_figure(sd=0.06).excess == 0.0
    assert one_figure(sd=None).excess == 0.0
    # The largest of 50 differences is rarely as small as that of one.
    assert not one_figure(sd=0.035, tests=50).differs
    uncertainty = OfOneUser(
        (one_figure(), one_figure(figure="p95", sd=0.2, logged=3.0, simulated=3.1))
    ).uncertainty()
    assert uncertainty is not None
    assert (uncertainty.p95, uncertainty.p95_shape, uncertainty.p95_seconds) == (0.0, 0.2, 3.0)
    assert OfOneUser().uncertainty() is None
