"""Every request is answered, and every lost worker is replaced once."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deployments import System, make_project, running, wait_for

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
import asyncio
import os
import threading
import time
from pathlib import Path

from mup import EP, MS, Communication

HERE = Path(__file__).parent


class NoException(BaseException):
    pass


def prepare():
    if (HERE / "broken").exists():
        raise RuntimeError("broken on purpose")
    if (HERE / "slow").exists() and threading.current_thread().name != "mup-worker-1":
        (HERE / "begun").touch()
        time.sleep(1.0)


class Processes(MS):
    pool_size = 2

    def setup(self):
        prepare()

    @EP("/pid/")
    def pid(self, comm: Communication) -> None:
        comm.respond(os.getpid())

    @EP("/hold/")
    def hold(self, comm: Communication) -> None:
        time.sleep(float(comm.params["seconds"]))
        comm.respond("held")

    @EP("/cancelled/")
    def cancelled(self, comm: Communication) -> None:
        raise asyncio.CancelledError

    @EP("/no-exception/")
    def no_exception(self, comm: Communication) -> None:
        raise NoException("not meant to be caught")


class Threads(Processes):
    runtime = "thread"
    pid = EP("/pid/")(Processes.pid)
    hold = EP("/hold/")(Processes.hold)
    cancelled = EP("/cancelled/")(Processes.cancelled)
    no_exception = EP("/no-exception/")(Processes.no_exception)


class Loop(MS):
    runtime = "async"
    pool_size = 2

    async def setup(self):
        prepare()

    @EP("/pid/")
    async def pid(self, comm: Communication) -> None:
        comm.respond(os.getpid())

    @EP("/hold/")
    async def hold(self, comm: Communication) -> None:
        await asyncio.sleep(float(comm.params["seconds"]))
        comm.respond("held")

    @EP("/cancelled/")
    async def cancelled(self, comm: Communication) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    @EP("/no-exception/")
    async def no_exception(self, comm: Communication) -> None:
        raise NoException("not meant to be caught")


class Blocks(MS):
    @EP("/ask/")
    def ask(self, comm: Communication) -> None:
        comm.respond([comm.call("Processes", "/pid/").get() for _ in range(30)])


class Awaits(MS):
    runtime = "async"

    @EP("/ask/")
    async def ask(self, comm: Communication) -> None:
        comm.respond([await comm.call("Processes", "/pid/") for _ in range(30)])
"""

ALL = pytest.mark.parametrize("service", ["Processes", "Threads", "Loop"])
SHARED = pytest.mark.parametrize("service", ["Threads", "Loop"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the source is, and files that tell it how to behave."""
    return tmp_path_factory.mktemp("lost")


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A service of each runtime."""
    with running(make_project(folder, SOURCE, "Processes", "Threads", "Loop")) as system:
        yield system


def children(system: System, service: str) -> list[int]:
    """Return the processes a front has started, also those that have ended and were not collected."""
    pid = system.status(service)["pid"]
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def complete(system: System, service: str) -> bool:
    """Whether both workers are there, free, and in no more processes than they need."""
    status = system.status(service)
    workers = status["workers"]
    return (len(workers), status["busy"], sorted(children(system, service))) == (2, 0, sorted(set(workers)))


def kill(system: System, service: str) -> None:
    """Kill every worker."""
    for pid in set(system.status(service)["workers"]):
        os.kill(pid, signal.SIGKILL)


@ALL
def test_what_an_endpoint_waits_for_was_cancelled(system: System, service: str) -> None:
    """It is a failure of the endpoint like any other; its worker is free again."""
    wait_for(lambda: complete(system, service), 30)
    before = system.status(service)["workers"]
    answers = [system.ask(service, "/cancelled/") for _ in range(3)]
    assert [(answer.status, "CancelledError" in answer.body["error"]) for answer in answers] == [
        (500, True)
    ] * 3
    assert (system.status(service)["workers"], complete(system, service)) == (before, True)


@ALL
def test_what_no_handler_may_catch_ends_the_process(system: System, service: str) -> None:
    """The request is answered with 502 at once, and the process replaced."""
    wait_for(lambda: complete(system, service), 30)
    before = set(system.status(service)["workers"])
    began = time.monotonic()
    assert system.ask(service, "/no-exception/").status == 502
    assert time.monotonic() - began < 2
    wait_for(lambda: complete(system, service) and set(system.status(service)["workers"]) != before, 30)


@ALL
def test_no_request_waits_for_workers_that_cannot_be_had(system: System, service: str, folder: Path) -> None:
    """Without replacements, all requests get 503 and ``Retry-After``, the waiting ones too; then all is well."""
    wait_for(lambda: complete(system, service), 30)
    counted = errors(system, service)
    (folder / "broken").touch()
    try:
        kill(system, service)
        wait_for(lambda: not system.status(service)["workers"], 30)
        waiting = system.begin(service, "/pid/")
        answers = [waiting.result(30)]
        # Several attempts to replace them: they leave nothing behind.
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            answers.append(system.ask(service, "/pid/"))
            assert len(children(system, service)) <= 2
            time.sleep(0.1)
    finally:
        (folder / "broken").unlink()
    refused = {(a.status, a.headers.get("retry-after"), a.headers.get("x-mup-refused")) for a in answers}
    assert refused == {(503, "1", "no_worker")}
    assert errors(system, service) - counted == len(answers)
    wait_for(lambda: complete(system, service), 30)
    assert system.ask(service, "/pid/").status == 200


def errors(system: System, service: str) -> int:
    """Return how many requests were refused for want of workers."""
    lines = system.ask(service, "/mup/metrics").raw.decode().splitlines()
    return sum(int(line.rpartition(" ")[2]) for line in lines if 'kind="no_worker"' in line)


@SHARED
def test_a_process_that_dies_while_it_is_set_up_is_replaced_once(
    system: System, service: str, folder: Path
) -> None:
    """However many of its workers served already: afterwards there is one process, with as many as there should be."""
    wait_for(lambda: complete(system, service), 30)
    (folder / "slow").touch()
    try:
        kill(system, service)
        # One thread is ready while the other one is being set up; a loop is set up as a whole.
        wait_for((folder / "begun").exists, 30)
        time.sleep(0.3)
        for child in children(system, service):
            os.kill(child, signal.SIGKILL)
    finally:
        (folder / "slow").unlink()
        (folder / "begun").unlink()
    wait_for(lambda: complete(system, service), 30)
    time.sleep(1.5)  # a second attempt to replace it would come after one
    assert complete(system, service)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's")
@ALL
def test_workers_that_die_while_no_descriptor_is_left(system: System, service: str) -> None:
    """They are replaced once there are some again."""
    wait_for(lambda: complete(system, service), 30)
    pid = system.status(service)["pid"]
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir())
    try:
        # Room for a connection of ours, but not for a worker's.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used - 1, limits[1]))
        kill(system, service)
        time.sleep(1.5)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    wait_for(lambda: complete(system, service), 30)
    assert system.ask(service, "/pid/").status == 200


@pytest.mark.parametrize("caller", ["Blocks", "Awaits"])
def test_callers_go_where_there_are_workers(tmp_path: Path, caller: str) -> None:
    """A replica that has none, and cannot get any, costs no caller an answer while there is another one."""
    with running(make_project(tmp_path, SOURCE, "Processes", caller), replicas={"Processes": 2}) as system:
        assert system.ask(caller, "/ask/").status == 200
        others = set(children(system, "Processes"))
        (tmp_path / "broken").touch()
        kill(system, "Processes")
        wait_for(lambda: system.ask("Processes", "/pid/").status == 503, 30)
        with ThreadPoolExecutor(2) as users:
            answers = list(users.map(lambda _: system.ask(caller, "/ask/"), range(4)))
        assert {answer.status for answer in answers} == {200}
        assert others.isdisjoint(pid for answer in answers for pid in answer.body)


@ALL
def test_what_is_not_done_when_a_replica_has_to_end_is_answered(tmp_path: Path, service: str) -> None:
    """Requests in work beyond the time to drain get 502, for they may have done something; waiting ones 503."""
    with running(make_project(tmp_path, SOURCE, service, drain=0.3)) as system:
        inside = [system.begin(service, "/hold/?seconds=30") for _ in range(2)]
        wait_for(lambda: system.status(service)["busy"] == 2, 30)
        waits = system.begin(service, "/hold/?seconds=0")
        wait_for(lambda: system.status(service)["queued"] == 1, 30)
        os.kill(system.status(service)["pid"], signal.SIGTERM)
        assert [future.result(10).status for future in inside] == [502, 502]
        assert (waits.result(10).status, waits.result().headers["retry-after"]) == (503, "1")
