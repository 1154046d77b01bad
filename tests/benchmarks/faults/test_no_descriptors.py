"""Processes that may open few files."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from faults.hostile import ECHO, connect, status_of
from faults.system import System, ask, wait_for, write_project

pytestmark = [pytest.mark.services, pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")]

CLIENTS = 150
COUNTED = 'mup_errors_total{kind="no_descriptor"}'


def limited(how: str) -> list[str]:
    """Return what runs a command with a limit of open files."""
    return ["sh", "-c", f'ulimit {how} && exec "$@"', "sh"]


@pytest.mark.slow
def test_connections_wait_for_descriptors(tmp_path: Path) -> None:
    """Clients beyond the limit are neither reset nor forgotten: each is served as soon as others have left."""
    with System(write_project(tmp_path / "echo", ["Echo"]), prefix=limited("-n 64")) as system:
        (url,) = system.first_urls("Echo")
        clients = [connect(url) for _ in range(CLIENTS)]
        begun = time.monotonic()
        for client in clients:
            client.sendall(ECHO)
        at_once = answered(clients, 1.5)
        assert 10 < len(at_once) < 64
        served, waiting = len(at_once), [client for client in clients if client not in at_once]
        while waiting:
            for client in at_once:
                client.close()
            at_once = answered(waiting, 10.0)
            assert at_once, f"{len(waiting)} clients were forgotten"
            served += len(at_once)
            waiting = [client for client in waiting if client not in at_once]
        seconds = time.monotonic() - begun
        for client in at_once:
            client.close()
        assert served == CLIENTS
        assert ask(url, "/echo/")[0] == 200
        counted = system.metrics("Echo")[COUNTED]
        said = len(re.findall(r"WARNING connections wait", system.log_text()))
        assert 1 <= said == counted <= seconds + 1
        assert "limit 64" in system.log_text()


def answered(clients: list[socket.socket], seconds: float) -> list[socket.socket]:
    """Return the clients that get their answer within a while; each has to be a good one."""
    found = []
    poll = select.poll()
    by_number = {client.fileno(): client for client in clients}
    for client in clients:
        poll.register(client, select.POLLIN)
    give_up = time.monotonic() + seconds
    while (left := give_up - time.monotonic()) > 0 and len(found) < len(clients):
        for number, _ in poll.poll(left * 1000):
            assert status_of(by_number[number].recv(65536)) == 200
            found.append(by_number[number])
            poll.unregister(number)
        if found:
            give_up = min(give_up, time.monotonic() + 0.3)
    return found


@pytest.mark.slow
def test_a_worker_is_replaced_while_connections_wait(tmp_path: Path) -> None:
    """Some descriptors are kept back for what is more urgent than another connection."""
    with System(write_project(tmp_path / "echo", ["Echo"]), prefix=limited("-n 64")) as system:
        (url,) = system.first_urls("Echo")
        pid, *_ = system.status("Echo")["workers"]
        admin = connect(url)
        clients = [connect(url) for _ in range(CLIENTS)]
        wait_for(lambda: "connections wait" in system.log_text(), "the warning")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: "was replaced" in system.log_text(), "another worker")
        admin.sendall(ECHO)
        assert status_of(admin.recv(65536)) == 200
        for client in (admin, *clients):
            client.close()


@pytest.mark.slow
def test_soft_limits_are_raised(tmp_path: Path) -> None:
    """A shell's limit is for programs that use select(): every process takes what the system allows."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with System(write_project(tmp_path / "echo", ["Echo"]), prefix=limited("-Sn 100")) as system:
        status = system.status("Echo")
        for pid in (system.pid, system.registry_pid(), status["pid"], *status["workers"]):
            soft, _ = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            assert soft == min(hard, 2**20), Path(f"/proc/{pid}/cmdline").read_text()
