"""Running services log the requested sample, and survive a log that cannot be written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from deployments import System, make_project, running, wait_for

from analyzer.estimation.event_logs import executions_of
from mup.errors import LogError
from mup.events.ids import child_id
from mup.events.reader import Log, log_files, read_log
from mup.events.record import Event
from mup.events.settings import LogSettings

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
from mup import EP, MS

class Callee(MS):
    @EP("/job/")
    def work(self, comm):
        comm.respond("done")

class Caller(MS):
    @EP("/one/")
    def one(self, comm):
        comm.respond(comm.call("Callee", "work").get())

class Threads(Caller):
    runtime = "thread"

class Loop(MS):
    runtime = "async"

    @EP("/one/")
    async def one(self, comm):
        comm.respond(await comm.call("Callee", "work"))
"""


def logs_of(system: System) -> dict[str, Log]:
    """Return the logs of a system that has ended."""
    return {paths[0].stem: read_log(paths) for paths in log_files(system.logs)}


def requests(log: Log, event: Event) -> set[int]:
    """Return the requests that have such a record."""
    return set(log.records["request"][log.records["event"] == event].tolist())


@pytest.mark.parametrize("caller", ["Caller", "Threads", "Loop"])
def test_a_sample_contains_whole_chains(tmp_path: Path, caller: str) -> None:
    """About one chain in four is logged, by every service it reaches or by none."""
    log = LogSettings(sample=4)
    with running(make_project(tmp_path, SOURCE, caller, "Callee"), log=log) as system:
        for _ in range(200):
            assert system.ask(caller, "/one/").status == 200
    logs = logs_of(system)
    assert {log.header["sample"] for log in logs.values()} == {4}
    chosen = requests(logs[f"{caller}.0.w0"], Event.DONE)
    # 200 draws of probability 1/4: outside of this less than once in a million times.
    assert 20 <= len(chosen) <= 85
    assert requests(logs[f"{caller}.0.front"], Event.ARRIVE) == chosen
    called = {child_id(request, 1) for request in chosen}
    assert requests(logs["Callee.0.front"], Event.ARRIVE) == called
    assert requests(logs["Callee.0.w0"], Event.DONE) == called


def test_the_caller_has_decided(tmp_path: Path) -> None:
    """A request that belongs to a chain is logged as its first service decided, whatever the rate is here."""
    with running(make_project(tmp_path, SOURCE, "Callee"), log=LogSettings(sample=10**6)) as system:
        for number in range(1, 21):
            system.ask("Callee", "/job/", X_Mup_Request=f"{number:x}", X_Mup_Trace="1")
            system.ask("Callee", "/job/", X_Mup_Request=f"{number + 100:x}", X_Mup_Sampled="0")
    logs = logs_of(system)
    assert requests(logs["Callee.0.front"], Event.ARRIVE) == set(range(1, 21))
    assert requests(logs["Callee.0.w0"], Event.DONE) == set(range(1, 21))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's")
def test_disk_is_full(tmp_path: Path) -> None:
    """A worker whose log cannot grow serves on, what it has flushed stays readable, and the metrics tell."""
    with running(make_project(tmp_path, SOURCE, "Callee")) as system:
        path = system.logs / "Callee.0.w0.mlog"
        assert system.ask("Callee", "/job/", X_Mup_Request="1").status == 200
        wait_for(lambda: requests(read_log(path), Event.DONE) == {1})
        (worker,) = system.status("Callee")["workers"]
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (path.stat().st_size + 60, resource.RLIM_INFINITY))
        assert system.ask("Callee", "/job/", X_Mup_Request="2").status == 200

        def off() -> bool:
            # A worker says it after a request.
            assert system.ask("Callee", "/job/").status == 200
            return 'mup_event_logs_off{service="Callee",replica="0"} 1' in metrics_of(system)

        wait_for(off)
        assert system.status("Callee")["workers"] == [worker]
    log = read_log(path)
    assert not log.truncated
    assert requests(log, Event.DONE) == {1}


def test_small_disk(tmp_path: Path) -> None:
    """With no room for any log all is served; a replica that starts when there is room again logs again."""
    disk = tmp_path / "logs"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "mup-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can be had by root only, where it may mount")
    try:
        with running(make_project(tmp_path, SOURCE, "Callee")) as system:
            # What the two logs have of the disk by now is not even full.
            with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                while filler.write(b"x" * 4096):
                    pass

            def both_off() -> bool:
                assert all(system.ask("Callee", "/job/").status == 200 for _ in range(50))
                return 'mup_event_logs_off{service="Callee",replica="0"} 2' in metrics_of(system)

            wait_for(both_off, 60.0)
            (disk / "filler").unlink()
            (worker,) = system.status("Callee")["workers"]
            os.kill(worker, signal.SIGKILL)
            wait_for(lambda: system.status("Callee")["workers"] not in ([], [worker]), 60.0)
            assert system.ask("Callee", "/job/", X_Mup_Request="77").status == 200
        assert requests(read_log(disk / "Callee.0.w0-2.mlog"), Event.DONE) == {0x77}
        assert not read_log(disk / "Callee.0.w0.mlog").truncated
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


EVERY_KIND = """
from mup import EP, MS

class Processes(MS):
    @EP("/job/")
    def job(self, comm):
        comm.respond("x")

class Threads(MS):
    runtime = "thread"

    @EP("/job/")
    def job(self, comm):
        comm.respond("x")

class Loop(MS):
    runtime = "async"

    @EP("/job/")
    async def job(self, comm):
        comm.respond("x")
"""


def test_disk_has_room_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The logs of fronts and workers that a full disk has switched off go on, and say what is missing."""
    disk = tmp_path / "logs"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "mup-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can be had by root only, where it may mount")
    services = ["Processes", "Threads", "Loop"]
    try:
        with running(make_project(tmp_path, EVERY_KIND, *services)) as system:

            def off(service: str, count: int) -> bool:
                """Serve some requests; return whether so many logs of the service are off."""
                time.sleep(0.05)
                assert all(system.ask(service, "/job/").status == 200 for _ in range(20))
                text = system.ask(service, "/mup/metrics").raw.decode()
                return f'mup_event_logs_off{{service="{service}",replica="0"}} {count}' in text

            assert all(off(service, 0) for service in services)
            with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                while filler.write(b"x" * 4096):
                    pass
            for service in services:
                wait_for(partial(off, service, 2), 60.0)
            (disk / "filler").unlink()
            for service in services:
                wait_for(partial(off, service, 0), 60.0)
                assert system.ask(service, "/job/", X_Mup_Request="77").status == 200
        logs = {log.path.stem: log for log in (read_log(paths, gaps=True) for paths in log_files(disk))}
        assert len(logs) == 6
        for name, log in logs.items():
            event = Event.ARRIVE if log.header["role"] == "front" else Event.DONE
            assert 0x77 in requests(log, event), name
            assert log.missing > 0
            assert not log.truncated
        with pytest.raises(LogError, match="records are missing"):
            executions_of(disk)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)
    said = capfd.readouterr().err
    assert said.count("is off: No space left on device") == 6
    assert said.count("is on again") == 6


def metrics_of(system: System) -> str:
    """Return what the callee tells Prometheus."""
    return system.ask("Callee", "/mup/metrics").raw.decode()


NOBODYS = Path("/sys/kernel")
"""A folder in which not even root can make a file."""


@pytest.mark.skipif(not NOBODYS.is_dir(), reason="only Linux has this folder")
def test_read_only_folder(tmp_path: Path) -> None:
    """Without a log a service serves as with one, and the metrics tell."""
    project = make_project(tmp_path, SOURCE, "Callee")
    (tmp_path / "logs").symlink_to(NOBODYS)
    with running(project) as system:
        assert system.ask("Callee", "/job/").status == 200
        # Its front and, once it has said so, its worker.
        off = 'mup_event_logs_off{service="Callee",replica="0"} 2'
        wait_for(lambda: off in metrics_of(system))


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where the folder should be there is a file: services run, without a log."""
    project = make_project(tmp_path, SOURCE, "Caller", "Callee")
    (tmp_path / "logs").write_text("in the way")
    with running(project) as system:
        assert system.ask("Caller", "/one/").status == 200
