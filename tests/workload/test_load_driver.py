"""The load driver process: rounds, windows, think times, errors, and its event log."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mup.errors import DeploymentError, NoReplicaError, ProjectError, UsageError
from mup.events.ids import child_id
from mup.events.reader import Log, read_log
from mup.events.record import Event
from mup.project import Project
from mup.workload.driver import LoadDriver

pytestmark = [pytest.mark.services, pytest.mark.slow]

Make = Callable[[str], Project]

THINK_AND_CALL = """
async def scenario(self, comm):
    await self.think(0.02)
    await comm.call("S", "/echo/", {"n": self.random.random()})
"""


def test_a_window_counts_what_happens_in_it(system: Any, project: Make) -> None:
    """Cycles, throughput, response and think times of a known scenario come out as they must."""
    with LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver:
        result = driver.run(4, 0.5, 0.1)
    assert result.errors == 0
    assert result.window_seconds == pytest.approx(0.5)
    assert len(result.cycles) > 20
    assert all(result.start_ns <= cycle.start_ns < result.end_ns for cycle in result.cycles)
    assert all(cycle.think >= 0.0185 for cycle in result.cycles)
    assert all(0 < cycle.response < 0.4 for cycle in result.cycles)
    assert result.throughput == pytest.approx(len(result.completions) / 0.5)
    # Little's law: all clients are always in a cycle.
    inside = result.throughput * statistics.fmean(cycle.duration for cycle in result.cycles)
    assert inside == pytest.approx(4, rel=0.15)
    assert result.endpoints["S/echo/"].count == pytest.approx(len(result.cycles), abs=8)
    assert 0 < result.cpu_seconds < 0.5
    assert all(late > -0.0015 for late in result.think_lateness)


def test_rounds_reuse_the_process(system: Any, project: Make) -> None:
    """One process runs several rounds, also with other numbers of clients."""
    with LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver:
        pid = driver.pid
        counts = [driver.run(clients, 0.2).clients for clients in (1, 3)]
        assert driver.pid == pid
    assert counts == [1, 3]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_seed_decides_what_clients_draw(system: Any, project: Make) -> None:
    """Equal seeds draw equal numbers per client, other seeds and other clients others."""

    def drawn(seed: int, clients: int) -> list[float]:
        system.requests.clear()
        driver.run(clients, 0.1, seed=seed)
        return [request["body"]["n"] for request in system.requests]

    with LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver:
        first, again, other, two = drawn(1, 1), drawn(1, 1), drawn(2, 1), drawn(1, 2)
    shared = min(len(first), len(again))
    assert shared > 1
    assert first[:shared] == again[:shared]
    assert first[0] not in other
    assert first[0] in two
    assert len(set(two)) == len(two)


def test_exponential_think_times_and_their_scale(system: Any, project: Make) -> None:
    """Exponential think times vary, have the asked mean, and follow the scale; scale 0 removes them."""
    body = """
async def scenario(self, comm):
    await self.think(1.0, "exponential")
    await comm.call("S", "/echo/")
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        thinks = [cycle.think for cycle in driver.run(50, 1.0, 0.3, think_scale=0.04).cycles]
        without = driver.run(1, 0.2, think_scale=0.0)
    assert len(thinks) > 500
    # Timers have a granularity of a millisecond; cycles are cut off nowhere, so the mean is unbiased.
    assert statistics.fmean(thinks) == pytest.approx(0.0405, rel=0.15)
    assert statistics.stdev(thinks) == pytest.approx(0.04, rel=0.25)
    assert max(cycle.think for cycle in without.cycles) < 0.005


def test_calls_run_in_parallel_until_awaited(system: Any, project: Make) -> None:
    """Two calls started before the first await take as long as the longer one."""
    body = """
async def scenario(self, comm):
    first = comm.call("S", "/slow/", {"seconds": 0.1})
    second = comm.call("S", "/slow/", {"seconds": 0.1})
    await second
    await first
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(1, 0.3)
    assert result.errors == 0
    assert all(0.09 < cycle.response < 0.18 for cycle in result.cycles)


def test_cycles_begun_in_the_window_are_completed(system: Any, project: Make) -> None:
    """A cycle longer than the window counts with its full duration."""
    body = """
async def scenario(self, comm):
    await comm.call("S", "/slow/", {"seconds": 0.5})
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(2, 0.2)
    assert len(result.cycles) == 2
    assert min(cycle.duration for cycle in result.cycles) >= 0.5
    assert result.completions == ()


def test_thinking_clients_are_sent_home(system: Any, project: Make) -> None:
    """A round ends soon although clients that began before the window think for a minute."""
    body = """
async def scenario(self, comm):
    await comm.call("S", "/echo/")
    if self.index > 0:
        await self.think(60)
"""
    start = time.monotonic()
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(3, 0.3, 0.3, seed=5)
    assert result.errors == 0
    assert time.monotonic() - start < 5


def test_every_way_to_answer(system: Any, project: Make) -> None:
    """JSON, chunked text, bytes of a closing connection: the scenario gets the decoded body."""
    body = """
async def scenario(self, comm):
    await self.think(0.01)
    assert await comm.call("S", "/echo/", {"a": [1, "ü"]}) == {"echo": {"a": [1, "ü"]}}
    assert await comm.call("S", "repeat", {"a": 1}) == {"echo": {"a": 1}}, "by name"
    assert await comm.call("S", "/echo/?x=1") == {"echo": {}}
    assert await comm.call("S", "/chunked/") == "one two three"
    assert await comm.call("S", "/closing/") == b"\\x00\\xff"
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(3, 0.4)
    assert result.first_error == ""
    assert len(result.cycles) > 3


def test_failures_are_counted_apart(system: Any, project: Make) -> None:
    """Failed cycles are in no mean; the first one's message is kept; a caught one is no failure."""
    body = """
async def scenario(self, comm):
    from mup.errors import CallError
    try:
        await comm.call("S", "/missing/")
    except CallError as error:
        assert (error.status, error.body) == (404, {"error": "no such word"})
    if self.index == 0:
        await comm.call("S", "/missing/")
    await self.think(0.01)
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(2, 0.4)
    assert result.errors >= 2
    assert result.cycles
    assert result.first_error == "S/missing/ answered 404: no such word"
    assert 0 < result.failed_share < 1
    assert result.endpoints["S/missing/"].errors > result.errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('comm.call("T", "/x/")', "unknown service 'T'"),
        ('comm.call("S", "/broken/")', "S/broken/ failed"),
        ('comm.call("S", "/slow/", {"seconds": 5}, timeout=0.05)', "no answer within 0.05 s"),
    ],
)
def test_errors_of_calls_name_the_cause(system: Any, project: Make, call: str, message: str) -> None:
    """An unknown service, a broken connection and a timeout end the cycle with a clear message."""
    with LoadDriver(
        project(f"async def scenario(self, comm):\n    await {call}"), system.registry_url
    ) as driver:
        result = driver.run(1, 0.15)
    assert result.cycles == ()
    assert result.errors >= 1
    assert message in result.first_error


@pytest.mark.parametrize(
    ("patience", "timeout", "message"),
    [(0.05, "", "no answer within 0.05 s"), (0.05, ", timeout=5", ""), (5.0, "", "")],
    ids=["impatient", "a patient call", "patient"],
)
def test_users_have_patience(system: Any, project: Make, patience: float, timeout: str, message: str) -> None:
    """Calls that name no timeout have the one of their user."""
    body = f"""
patience = {patience}
async def scenario(self, comm):
    await comm.call("S", "/slow/", {{"seconds": 0.15}}{timeout})
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        result = driver.run(1, 0.3)
    assert message in result.first_error
    assert (result.errors > 0) == bool(message)
    assert bool(result.cycles) == (not message)


def test_a_dead_replica_is_an_error_not_a_hang(system: Any, project: Make) -> None:
    """A registered address where nothing listens is reported."""
    import urllib.request

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and kept, or another process could be given the port
        dead = f"http://127.0.0.1:{silent.getsockname()[1]}"
        data = f'{{"service": "D", "url": "{dead}"}}'.encode()
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(
            urllib.request.Request(f"{system.registry_url}/register", data, headers)
        ).close()
        with LoadDriver(
            project('async def scenario(self, comm):\n    await comm.call("D", "/x/")'), system.registry_url
        ) as driver:
            result = driver.run(1, 0.2)
    assert "service 'D' has no live replica" in result.first_error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("async def scenario(self, comm):\n    pass", "neither calls nor thinks"),
        ("async def scenario(self, comm):\n    await self.think(-1)", "think time must be"),
        (
            "async def scenario(self, comm):\n    await self.think(1, 'normal')",
            "'constant', 'exponential' or",
        ),
        ("async def scenario(self, comm):\n    comm.query('db', 'q', 'c', {})", "cannot query database 'db'"),
        ("async def scenario(self, comm):\n    comm.call('S', '/echo/').get()", "must not block"),
        (
            "async def scenario(self, comm):\n    comm.call('S', '/', None, {'a\\nb': 'c'})",
            "a header cannot be",
        ),
        (
            """
async def setup(self, comm):
    raise ValueError('no account')
async def scenario(self, comm):
    await self.think(1)
""",
            "Probe.setup failed: ValueError: no account",
        ),
    ],
)
def test_scenarios_that_cannot_run(system: Any, project: Make, body: str, message: str) -> None:
    """A mistake in the client ends the round with one message instead of a flood of failed cycles."""
    with (
        LoadDriver(project(body), system.registry_url) as driver,
        pytest.raises((UsageError, DeploymentError), match=message),
    ):
        driver.run(2, 0.5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def scenario(self, comm):\n    pass", "must be 'async def'"),
        ("x = 1", "has no scenario"),
        ("async def scenario(self, comm):\n    pass\nraise OSError('broken module')", "broken module"),
    ],
)
def test_clients_that_are_none(system: Any, project: Make, body: str, message: str) -> None:
    """A class that cannot be a client is refused at the start."""
    with pytest.raises(UsageError, match=message):
        LoadDriver(project(body), system.registry_url).__enter__()


def test_a_project_without_a_client(system: Any, tmp_path: Path) -> None:
    """There is nothing to drive it with, and the message says what to add."""
    with pytest.raises(ProjectError, match="names no client"):
        LoadDriver(Project(name="p", root=tmp_path, source=tmp_path, services=()), system.registry_url)


@pytest.mark.parametrize(
    "values", [{"clients": 0}, {"clients": -1}, {"duration": 0.0}, {"warmup": -1.0}, {"think_scale": -1.0}]
)
def test_values_out_of_range(system: Any, project: Make, values: dict[str, Any]) -> None:
    """Impossible rounds are refused before anything runs."""
    with (
        LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver,
        pytest.raises(UsageError, match=next(iter(values))),
    ):
        driver.run(**{"clients": 1, "duration": 0.1, **values})


def test_a_registry_that_is_down(project: Make) -> None:
    """The message names the URL."""
    with (
        LoadDriver(project(THINK_AND_CALL), "http://127.0.0.1:9") as driver,
        pytest.raises(NoReplicaError, match=r"registry at http://127\.0\.0\.1:9 does not answer"),
    ):
        driver.run(1, 0.1)


def test_a_killed_driver_is_reported(system: Any, project: Make) -> None:
    """A caller that waits for a round learns that its process is gone."""
    with (
        LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver,
        pytest.raises(DeploymentError, match="died with status -9"),
    ):
        driver.run(1, 30.0, on_open=lambda: os.kill(driver.pid, signal.SIGKILL))


def test_prints_of_the_client_do_not_disturb(system: Any, project: Make, capfd: Any) -> None:
    """What a scenario prints goes to standard error."""
    body = """
async def scenario(self, comm):
    print("hello from the scenario")
    await self.think(0.05)
"""
    with LoadDriver(project(body), system.registry_url) as driver:
        driver.run(1, 0.1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "hello from the scenario" in err


def test_window_callbacks_come_when_the_window_opens_and_closes(system: Any, project: Make) -> None:
    """The callbacks are called at the ends of the window, within some milliseconds."""
    moments: list[int] = []

    def note() -> None:
        moments.append(time.monotonic_ns())

    with LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver:
        result = driver.run(1, 0.3, 0.2, on_open=note, on_close=note)
    assert [m * 1e-9 for m in moments] == pytest.approx(
        [result.start_ns * 1e-9, result.end_ns * 1e-9], abs=0.05
    )


def _events(log: Log) -> list[tuple[Event, int, str, str, str]]:
    """Return event, seq, name, function and line text of every record."""
    rows = []
    for record in log.records.tolist():
        _, _, _, _, seq, site, name, event, _ = record
        where = log.sites.get(site)
        text = ""
        if where is not None:
            assert where.file == "load_probe.py"
            text = (log.path.parent / where.file).read_text().splitlines()[where.line - 1].strip()
        rows.append((Event(event), seq, log.names.get(name, ""), where.function if where else "", text))
    return rows


def test_waits_of_asyncio_are_in_the_log(system: Any, project: Make, tmp_path: Path) -> None:
    """A wait knows its place where the scenario itself awaits; where a task of a gather does, it has none."""
    body = """
async def scenario(self, comm):
    await asyncio.gather(comm.call("S", "/echo/"), comm.call("S", "/echo/"))
    async with asyncio.timeout(5):
        await comm.call("S", "/echo/")
"""
    with LoadDriver(project(body), system.registry_url, tmp_path) as driver:
        assert driver.run(1, 0.1).first_error == ""
    rows = _events(read_log(tmp_path / "Probe.client.mlog"))
    waits = [text for event, *_, text in rows if event == Event.WAIT_START]
    assert waits[:3] == ["", "", 'await comm.call("S", "/echo/")']


def test_the_log_of_one_cycle(system: Any, project: Make, tmp_path: Path) -> None:
    """A cycle is logged step by step, with the lines of the scenario as sites and ids the callee sees."""
    body = """
async def scenario(self, comm):
    await self.think(0.01)
    answer = comm.call("S", "/echo/")
    await answer
    await comm.call("S", "/echo/")
"""
    with LoadDriver(project(body), system.registry_url, tmp_path) as driver:
        driver.run(1, 0.1)
    log = read_log(tmp_path / "Probe.client.mlog")
    assert log.header["role"] == "client"
    assert log.header["service"] == "Probe"
    assert not log.truncated
    # Also of the first cycle, which has to open its connection.
    rows = _events(log)[:14]
    scenario = "Probe.scenario"
    assert rows == [
        (Event.BEGIN, 0, scenario, "", ""),
        (Event.THINK_START, 0, scenario, scenario, "await self.think(0.01)"),
        (Event.THINK_END, 0, scenario, scenario, "await self.think(0.01)"),
        (Event.COMM_START, 1, "S/echo/", scenario, 'answer = comm.call("S", "/echo/")'),
        (Event.CONTACT_DEST, 1, "S/echo/", "", ""),
        (Event.WAIT_START, 1, "S/echo/", scenario, "await answer"),
        (Event.COMM_FINISH, 1, "S/echo/", "", ""),
        (Event.WAIT_END, 1, "S/echo/", scenario, "await answer"),
        (Event.COMM_START, 2, "S/echo/", scenario, 'await comm.call("S", "/echo/")'),
        (Event.CONTACT_DEST, 2, "S/echo/", "", ""),
        (Event.WAIT_START, 2, "S/echo/", scenario, 'await comm.call("S", "/echo/")'),
        (Event.COMM_FINISH, 2, "S/echo/", "", ""),
        (Event.WAIT_END, 2, "S/echo/", scenario, 'await comm.call("S", "/echo/")'),
        (Event.DONE, 0, scenario, "", ""),
    ]
    request, trace = (int(log.records[0][field]) for field in ("request", "trace"))
    headers = system.requests[0]["headers"]
    assert int(headers["X-Mup-Request"], 16) == child_id(request, 1)
    assert int(headers["X-Mup-Trace"], 16) == trace
    assert 0 < int(headers["X-Mup-Deadline"]) <= 30000
    assert set(log.records["trace"][:14].tolist()) == {trace}
    assert (log.records["time"][1:] >= log.records["time"][:-1]).all()


ENDLESS = """
async def scenario(self, comm):
    await self.think(0.01)
    while self.index == 0:
        pass
"""


def _gone(pid: int, seconds: float) -> bool:
    """Whether a process that is not a child of this one ends in time; a zombie has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("body", [THINK_AND_CALL, ENDLESS], ids=["waiting", "spinning"])
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_the_driver_ends_with_its_command(
    system: Any, project: Make, tmp_path: Path, stop: signal.Signals, body: str
) -> None:
    """Whatever ends the command in the middle of a round ends the driver soon, and the driver prints nothing."""
    project(body)
    script = """
import sys
from pathlib import Path
from mup.project import Project, ServiceConfig
from mup.workload.driver import LoadDriver
root = Path(sys.argv[1])
services = (ServiceConfig(name="S", target="none:S"),)
project = Project(name="probe", root=root, source=root, services=services, client="load_probe:Probe")
try:
    with LoadDriver(project, sys.argv[2]) as driver:
        driver.run(1, 30.0, 0.3, on_open=lambda: print(driver.pid, flush=True))
except KeyboardInterrupt:
    pass
"""
    if body == ENDLESS:
        # It never gives the window the chance to open.
        script = script.replace("driver.run(", "print(driver.pid, flush=True); driver.run(")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), system.registry_url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        pid = int(command.stdout.readline())
        try:
            time.sleep(0.5)
            if stop is signal.SIGINT:
                # What a terminal does.
                os.killpg(command.pid, stop)
            else:
                command.send_signal(stop)
            command.wait(3)
            assert _gone(pid, 4)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            command.kill()
        assert command.stderr.read() == ""


@pytest.mark.parametrize("closed", ["stdin", "stdout"])
def test_the_driver_ends_with_either_pipe(system: Any, project: Make, capfd: Any, closed: str) -> None:
    """The end of its orders or the loss of who reads its answers is enough, without a traceback."""
    with LoadDriver(project(THINK_AND_CALL), system.registry_url) as driver:
        process = driver._running()
        assert process.stdin is not None
        process.stdin.write(b'{"clients": 1, "duration": 30, "warmup": 0.2}\n')
        process.stdin.flush()
        time.sleep(0.1)
        getattr(process, closed).close()
        process.wait(4)
    assert capfd.readouterr().err == ""
