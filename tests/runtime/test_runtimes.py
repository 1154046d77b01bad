"""Threads and event loops serve as worker processes do: same API, same admission, same log."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployments import System, make_project, running, wait_for

from mup.errors import DeploymentError
from mup.events.reader import read_log
from mup.events.record import Event
from mup.service import EP, MS, check_service

SOURCE = """
import asyncio
import os
import threading
import time

from mup import EP, MS, Communication
from mup.errors import CallError


class Back(MS):
    pool_size = 4

    @EP("/slow/")
    def slow(self, comm: Communication) -> None:
        time.sleep(float(comm.params.get("seconds", 0)))
        comm.respond({"text": comm.params.get("text", "")})

    @EP("/broken/")
    def broken(self, comm: Communication) -> None:
        raise ValueError("broken on purpose")

    @EP("/made/")
    def made(self, comm: Communication) -> None:
        comm.respond({"by": "Back"}, comm.params["status"], {"Location": "/made/1"})

    @EP("/left/")
    def left(self, comm: Communication) -> None:
        comm.respond(float(comm.headers["x-mup-deadline"]))


class Threads(MS):
    runtime = "thread"
    pool_size = 2

    def setup(self):
        self.thread = threading.get_ident()

    @EP("/who/")
    def who(self, comm: Communication) -> None:
        comm.respond({"pid": os.getpid(), "mine": self.thread == threading.get_ident(), "thread": self.thread,
                      "cores": len(os.sched_getaffinity(0)), "core": min(os.sched_getaffinity(0))})

    @EP("/hold/")
    def hold(self, comm: Communication) -> None:
        began = time.monotonic()
        time.sleep(float(comm.params["seconds"]))
        comm.respond({"began": began, "tag": comm.params.get("tag")})

    @EP("/early/")
    def early(self, comm: Communication) -> None:
        comm.respond("early")
        time.sleep(0.3)

    @EP("/pair/")
    def pair(self, comm: Communication) -> None:
        a = comm.call("Back", "/slow/", {"seconds": 0.3, "text": "a"})
        b = comm.call("Back", "/slow/", {"seconds": 0.3, "text": "b"})
        comm.respond(a.get()["text"] + b.get()["text"])

    @EP("/fail/")
    def fail(self, comm: Communication) -> None:
        try:
            comm.call("Back", "/broken/").get()
        except CallError as error:
            comm.respond({"status": error.status})

    @EP("/look/")
    def look(self, comm: Communication) -> None:
        answer = comm.call("Back", "/made/", {"status": int(comm.params["status"])}).get(check=False)
        comm.respond([answer.status, answer.ok, answer.headers["location"], answer.body])

    @EP("/pass-on/")
    def pass_on(self, comm: Communication) -> None:
        comm.respond(comm.call("Back", "/left/").get())

    @EP("/too-slow/")
    def too_slow(self, comm: Communication) -> None:
        comm.respond(comm.call("Back", "/slow/", {"seconds": 5}).get())

    def teardown(self):
        with open(f"{__file__}.{self.service_name}", "a") as file:
            file.write("x")


class Loop(MS):
    runtime = "async"
    pool_size = 2

    async def setup(self):
        self.loop = asyncio.get_running_loop()

    @EP("/who/")
    async def who(self, comm: Communication) -> None:
        comm.respond({"pid": os.getpid(), "mine": self.loop is asyncio.get_running_loop(), "thread": id(self),
                      "cores": len(os.sched_getaffinity(0)), "core": min(os.sched_getaffinity(0))})

    @EP("/hold/")
    async def hold(self, comm: Communication) -> None:
        began = time.monotonic()
        await asyncio.sleep(float(comm.params["seconds"]))
        comm.respond({"began": began, "tag": comm.params.get("tag")})

    @EP("/early/")
    async def early(self, comm: Communication) -> None:
        comm.respond("early")
        await asyncio.sleep(0.3)

    @EP("/pair/")
    async def pair(self, comm: Communication) -> None:
        a = comm.call("Back", "/slow/", {"seconds": 0.3, "text": "a"})
        b = comm.call("Back", "/slow/", {"seconds": 0.3, "text": "b"})
        comm.respond((await a)["text"] + (await b)["text"])

    @EP("/fail/")
    async def fail(self, comm: Communication) -> None:
        try:
            await comm.call("Back", "/broken/")
        except CallError as error:
            comm.respond({"status": error.status})

    @EP("/look/")
    async def look(self, comm: Communication) -> None:
        future = comm.call("Back", "/made/", {"status": int(comm.params["status"])})
        try:
            await future
        except CallError as error:
            assert error.status == 409
        answer = future.get(check=False)
        comm.respond([answer.status, answer.ok, answer.headers["location"], answer.body])

    @EP("/blocks/")
    async def blocks(self, comm: Communication) -> None:
        comm.respond(comm.call("Back", "/left/").get())

    @EP("/pass-on/")
    async def pass_on(self, comm: Communication) -> None:
        comm.respond(await comm.call("Back", "/left/"))

    @EP("/too-slow/")
    async def too_slow(self, comm: Communication) -> None:
        comm.respond(await comm.call("Back", "/slow/", {"seconds": 5}))

    async def teardown(self):
        with open(f"{__file__}.{self.service_name}", "a") as file:
            file.write("x")

class FreeThreads(Threads):
    pinned = False

class FreeLoop(Loop):
    pinned = False
"""

BOTH = pytest.mark.parametrize("service", ["Threads", "Loop"])
pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Both kinds of services and one they call."""
    project = make_project(tmp_path_factory.mktemp("kinds"), SOURCE, "Back", "Threads", "Loop")
    with running(project) as system:
        yield system


@BOTH
def test_all_workers_of_a_replica_are_one_process_on_one_core(system: System, service: str) -> None:
    """Threads have an instance each, made in their own thread; a loop has one."""
    answers = [system.ask(service, "/who/").body for _ in range(6)]
    assert len({a["pid"] for a in answers}) == 1
    assert all(a["mine"] and a["cores"] == 1 for a in answers)
    assert {a["core"] for a in answers} == {system.status(service)["core"]}


def test_services_begin_at_one_core_after_the_other(system: System) -> None:
    """In their order in the project, whose first service is one of processes."""
    cores = sorted(os.sched_getaffinity(0))
    found = [system.status(service)["core"] for service in ("Threads", "Loop")]
    assert found == [cores[place % len(cores)] for place in (1, 2)]


def test_replicas_that_are_not_pinned_may_use_every_core(tmp_path: Path) -> None:
    """If their class says so."""
    with running(make_project(tmp_path / "free", SOURCE, "FreeThreads", "FreeLoop")) as system:
        for service in ("FreeThreads", "FreeLoop"):
            assert system.ask(service, "/who/").body["cores"] == len(os.sched_getaffinity(0))
            assert system.status(service)["core"] is None


@BOTH
def test_a_replica_serves_as_many_as_its_pool_first_come_first_served(system: System, service: str) -> None:
    """Of five requests of 0.2 s, two at a time begin, in the order they came."""
    pending = []
    for tag in range(5):
        pending.append(system.begin(service, f"/hold/?seconds=0.2&tag={tag}"))
        time.sleep(0.03)
    answers = [p.result().body for p in pending]
    begins = [a["began"] for a in answers]
    assert begins == sorted(begins)
    assert begins[1] - begins[0] < 0.15
    assert begins[2] - begins[0] > 0.18
    assert begins[4] - begins[0] > 0.36


@BOTH
def test_a_worker_is_held_beyond_the_response(system: System, service: str) -> None:
    """The response is early, but both workers of the pool are busy for 0.3 s."""
    began = time.monotonic()
    pending = [system.begin(service, "/early/") for _ in range(3)]
    ends = sorted((p.result(), time.monotonic() - began)[1] for p in pending)
    assert ends[2] > 0.28


@BOTH
def test_calls_run_in_parallel(system: System, service: str) -> None:
    """Two calls of 0.3 s take 0.3 s, and an error of the callee arrives as one."""
    began = time.monotonic()
    assert system.ask(service, "/pair/").raw == b"ab"
    assert time.monotonic() - began < 0.55
    assert system.ask(service, "/fail/").body == {"status": 500}


@BOTH
def test_status_and_headers_of_an_answer(system: System, service: str) -> None:
    """They are there whatever the status is; an event loop does not wait for them without ``await``."""
    for status in (201, 409):
        found = system.ask(service, f"/look/?status={status}").body
        assert found == [status, status == 201, "/made/1", {"by": "Back"}]
    answer = system.ask("Loop", "/blocks/")
    assert (answer.status, "write 'await' first" in answer.body["error"]) == (500, True)


@BOTH
def test_deadlines_go_along_with_calls(system: System, service: str) -> None:
    """A callee is told what its caller has left, and a caller that has nothing left does not wait."""
    assert 20_000 < system.ask(service, "/pass-on/").body <= 30_000
    assert 1000 < system.ask(service, "/pass-on/", X_Mup_Deadline="2000").body <= 2000
    began = time.monotonic()
    assert system.ask(service, "/too-slow/", X_Mup_Deadline="300").status == 504
    assert time.monotonic() - began < 2


@BOTH
def test_a_replica_that_has_to_end_finishes_what_it_has(tmp_path: Path, service: str) -> None:
    """Also what waits; then its workers tear down, and the log tells of everything."""
    with running(make_project(tmp_path, SOURCE, "Back", service)) as system:
        pending = [system.begin(service, "/hold/?seconds=0.5") for _ in range(3)]
        wait_for(lambda: (system.status(service)["busy"], system.status(service)["queued"]) == (2, 1))
        pid = system.status(service)["pid"]
        os.kill(pid, signal.SIGTERM)
        assert [p.result(10).status for p in pending] == [200] * 3
        wait_for(
            lambda: not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
        )
    # An instance per thread; a loop has one.
    assert (tmp_path / f"shop.py.{service}").read_text() == ("xx" if service == "Threads" else "x")
    logs = [read_log(path) for path in tmp_path.glob(f"logs/{service}.0.*.mlog")]
    assert not any(log.truncated for log in logs)
    events = [Event(int(event)) for log in logs for event in log.records["event"]]
    assert [events.count(event) for event in (Event.ARRIVE, Event.BEGIN, Event.DONE)] == [3, 3, 3]


@BOTH
def test_a_process_that_is_killed_is_replaced_with_all_its_workers(tmp_path: Path, service: str) -> None:
    """The request in work fails at once; a second later two workers serve again."""
    with running(make_project(tmp_path, SOURCE, "Back", service)) as system:
        pending = system.begin(service, "/hold/?seconds=20")
        wait_for(lambda: system.status(service)["busy"] == 1)
        first = system.status(service)["workers"]
        os.kill(first[0], signal.SIGKILL)
        assert pending.result(timeout=10).status == 502
        wait_for(lambda: len(system.status(service)["workers"]) == 2, 15)
        assert set(system.status(service)["workers"]).isdisjoint(first)
        assert {system.ask(service, "/who/").status for _ in range(4)} == {200}


STEPS = [
    Event.BEGIN,
    *(Event.COMM_START, Event.CONTACT_DEST) * 2,
    *(Event.WAIT_START, Event.WAIT_END) * 2,
    Event.END,
    Event.DONE,
]


@BOTH
def test_the_log_tells_the_same_story(tmp_path: Path, service: str) -> None:
    """Two calls, two waits, each with the site of its own expression; replies come in between."""
    with running(make_project(tmp_path, SOURCE, "Back", service)) as system:
        # The first call of a loop has to ask the registry where the callee is.
        assert system.ask(service, "/fail/").status == 200
        assert system.ask(service, "/pair/").status == 200
        system.settle(service)
    records = []
    for path in sorted(tmp_path.glob(f"logs/{service}.0.w*.mlog")):
        log = read_log(path)
        mine = {r["request"] for r in log.records if log.names.get(r["name"]) == f"{service}/pair/"}
        records += [(log, r) for r in log.records if r["request"] in mine]
    events = [Event(int(r["event"])) for _, r in records]
    assert [e for e in events if e != Event.COMM_FINISH] == STEPS
    assert events.count(Event.COMM_FINISH) == 2
    sites = [log.sites[r["site"]] for log, r in records if r["site"] and r["event"] != Event.COMM_FINISH]
    assert {site.function for site in sites} == {f"{service}.pair"}
    starts = [log.sites[r["site"]] for log, r in records if r["event"] == Event.COMM_START]
    waits = [log.sites[r["site"]] for log, r in records if r["event"] == Event.WAIT_START]
    assert starts[0].line == starts[1].line - 1
    assert waits[0].line == waits[1].line == starts[1].line + 1
    assert waits[0].ordinal < waits[1].ordinal


class Mixed(MS):
    """Its endpoints fit one runtime or the other, never both."""

    @EP("/now/")
    def now(self, comm: object) -> None:
        """Block."""

    @EP("/later/")
    async def later(self, comm: object) -> None:
        """Wait."""


@pytest.mark.parametrize(
    ("runtime", "culprit"),
    [("process", "later"), ("thread", "later"), ("async", "now"), ("green", "runtime")],
)
def test_endpoints_have_to_fit_the_runtime(runtime: str, culprit: str) -> None:
    """The message names the endpoint, or the runtime that does not exist."""
    kind = type("Mixed", (Mixed,), {"runtime": runtime})
    with pytest.raises(DeploymentError) as raised:
        check_service(kind, pool_size=1, replicas=1, port=0)
    assert culprit in f"{raised.value.where} {raised.value.message}"
