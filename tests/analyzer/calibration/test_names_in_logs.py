"""A log is calibrated to the same numbers whatever its endpoints and queries are called."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.rundir import PartInfo, ProcessUse, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.record import Event

SOURCE = """\
from mup import EP, MS, Client

class Web(MS):
    pool_size = 3

    @EP("/page/")
    def page(self, comm):
        reply = comm.call("Back", {job!r}, {{}})
        reply.get()
        found = comm.query("db", {query!r}, "things", {{}})
        found.get()
        comm.respond(1)

class Back(MS):
    @EP({job!r})
    def work(self, comm):
        comm.respond(sum(range(1000)))

class User(Client):
    async def scenario(self, comm):
        await self.think(0.05)
        await comm.call("Web", "/page/", {{}})
"""
PAGE, CYCLE = "Web/page/", "User.scenario"
CYCLES, EACH = 12, 100.0
"""Cycles of the log, and their length in milliseconds."""


def calibrated(folder: Path, job: str, query: str) -> Calibration:
    """Return what a log of twelve cycles in four windows says; the times of each cycle differ."""
    (folder / "source").mkdir(parents=True)
    (folder / "source" / "services.py").write_text(SOURCE.format(job=job, query=query))
    app = analyse(folder / "source")
    assert not app.errors
    run = folder / "run"
    run.mkdir()
    write(run, app, f"Back{job}", f"db.{query}")
    length = CYCLES / 4 * EACH
    windows = [
        Window(round(n * length * 1e6), round((n + 1) * length * 1e6), cpu={"7": 0.02}) for n in range(4)
    ]
    processes = [
        ProcessUse(role="database", service="db", pid=7),
        ProcessUse(role="front", service="Back", pid=8),
    ]
    RunInfo(
        project="shop",
        client="User",
        cores=2,
        parts=[PartInfo(windows=windows, processes=processes)],
        fingerprints=fingerprints(app),
    ).save(run)
    return calibrate(load_run(run), app, name="shop", components=Components(contention=False))


def write(run: Path, app: Application, work: str, asked: str) -> None:
    """Write cycles of a page that calls Back and then asks a database."""
    web, back = LogFile(run / "Web.0.w0.mlog", service="Web"), LogFile(run / "Back.0.w0.mlog", service="Back")
    client = LogFile(run / "User.client.mlog", service="User", role="client")
    scenario = [o.site for o in app.client("User").paths[0].operations]
    call, get, query, fetch, respond = (o.site for o in app.endpoint(PAGE).paths[0].operations)
    answer = app.endpoint(work).paths[0].operations[0].site
    for k in range(CYCLES):
        t, cycle, longer = EACH * k, 1000 + k, 0.25 * k
        page = child_id(cycle, 1)
        client.add(Event.BEGIN, cycle, t, cpu=t / 10, name=CYCLE)
        client.add(Event.THINK_START, cycle, t, cpu=t / 10, site=scenario[0])
        client.add(Event.THINK_END, cycle, t + 40, cpu=t / 10, site=scenario[0])
        client.add(Event.COMM_START, cycle, t + 40, cpu=t / 10, name=PAGE, site=scenario[1], seq=1)
        client.add(Event.CONTACT_DEST, cycle, t + 40, cpu=t / 10, name=PAGE, seq=1)
        client.add(Event.WAIT_START, cycle, t + 40, cpu=t / 10, site=scenario[2], seq=1)
        begin = t + 41
        web.add(Event.BEGIN, page, begin, cpu=0, name=PAGE)
        web.add(Event.COMM_START, page, begin + 3, cpu=2 + longer, name=work, site=call, seq=1)
        web.add(Event.CONTACT_DEST, page, begin + 3.5, cpu=2.5 + longer, name=work, seq=1)
        web.add(Event.WAIT_START, page, begin + 3.5, cpu=2.5 + longer, site=get, seq=1)
        child = child_id(page, 1)
        back.add(Event.BEGIN, child, begin + 5, cpu=0, name=work)
        back.add(Event.END, child, begin + 12 + longer, cpu=6 + longer, name=work, site=answer)
        back.add(Event.DONE, child, begin + 12 + longer, cpu=6 + longer, name=work)
        replied = begin + 15 + longer
        web.add(Event.COMM_FINISH, page, replied, cpu=2.5 + longer, name=work, seq=1)
        web.add(Event.WAIT_END, page, replied, cpu=2.5 + longer, seq=1)
        web.add(Event.COMM_START, page, replied + 1, cpu=3.5 + longer, name=asked, site=query, seq=2)
        web.add(Event.CONTACT_DEST, page, replied + 1.5, cpu=0, name=asked, seq=2)
        web.add(Event.WAIT_START, page, replied + 1.5, cpu=4 + longer, site=fetch, seq=2)
        web.add(Event.COMM_FINISH, page, replied + 6, cpu=0.25, name=asked, seq=2)
        web.add(Event.WAIT_END, page, replied + 6, cpu=4 + longer, seq=2)
        web.add(Event.END, page, replied + 7, cpu=5 + longer, name=PAGE, site=respond)
        web.add(Event.DONE, page, replied + 7, cpu=5 + longer, name=PAGE)
        done = replied + 8
        client.add(Event.COMM_FINISH, cycle, done, cpu=t / 10, name=PAGE, seq=1)
        client.add(Event.WAIT_END, cycle, done, cpu=t / 10, seq=1)
        client.add(Event.DONE, cycle, done, cpu=t / 10, name=CYCLE)
    for log in (web, back, client):
        log.close()


def numbers(found: Calibration) -> list[object]:
    """Return everything that is known, in the order of the model, without names."""
    model = found.model
    sure = model.uncertainty
    assert sure is not None
    assert len(sure.replicates) > 2
    kinds = ("demands", "delays", "fronts", "probabilities", "counts")
    assert all(any(getattr(r, kind) for r in sure.replicates) for kind in kinds[:2])
    return [
        *([a.name.partition("@")[0], a.demand, a.delay] for _, _, a in model.walk() if a.kind != "local"),
        *([a.demand, a.delay] for _, _, a in model.walk()),
        *([a.calls and [call.count for call in a.calls] for _, _, a in model.walk()]),
        *(list(getattr(r, kind).values()) for r in sure.replicates for kind in kinds),
        [t.front for t in model.tasks],
        len(found.warnings),
        [c.executions for c in found.coverage],
    ]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Return the numbers of the log with ordinary names."""
    found = calibrated(tmp_path_factory.mktemp("plain"), "/job/", "find")
    query = found.model.task("db").entry("find").activities[0]
    assert query.delay is not None
    assert math.isfinite(query.delay.mean)
    return numbers(found)


@pytest.mark.parametrize(
    ("job", "query"),
    [
        ("/job.v2/", "find.all"),
        ("/job:run/", "find:all"),
        ("/a/b.c/", "audit/log"),
        ("/x&y/", "Back/page/"),
        ("/a->b/", "a -> b"),
        ("/:/", ":"),
        ("/comm_8:reg_8/", "db.find@2"),
    ],
)
def test_names_of_endpoints_and_queries_change_no_number(
    tmp_path: Path, plain: list[object], job: str, query: str
) -> None:
    """Demands, delays, calls, probabilities, how sure all of it is: the same, under the names of the source."""
    found = calibrated(tmp_path, job, query)
    assert [e.name for e in found.model.task("Back").entries] == [job]
    assert [e.name for e in found.model.task("db").entries] == [query]
    assert [call.task for _, _, a in found.model.walk() for call in a.calls].count("db") == 1
    assert numbers(found) == plain
