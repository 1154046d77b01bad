"""Serve several requests at once in threads, each a worker with its line to the front.

To the front a thread is a worker like any other: it is handed one request at a time. Its Python code
shares one core with that of its neighbours, for they share an interpreter.
"""

from __future__ import annotations

import socket
import sys
import threading

from mup.runtime.process.pinning import pin
from mup.runtime.protocol.wire import Line
from mup.runtime.worker.tray import Tray
from mup.runtime.worker.worker import ServiceRun, become_worker_process, serve_worker

__all__ = ["NUMBER", "receive_slot", "run_threads", "send_slot"]

NUMBER = 2
"""Bytes of a worker's number on the control socket."""

SWITCH_SECONDS = 0.0005
"""How long a thread may compute while others wait. Python's 5 ms are longer than most requests take."""


def send_slot(control: socket.socket, number: int, slot: Line) -> None:
    """Hand a worker's end of a line to the process that is to serve it; the other end is the front's."""
    socket.send_fds(control, [number.to_bytes(NUMBER, "little")], slot.filenos())


def receive_slot(control: socket.socket) -> tuple[int, Line] | None:
    """Return a worker's number and line; None = the front has gone or wants this process to end."""
    data, descriptors, _, _ = socket.recv_fds(control, NUMBER, 2)
    if not data:
        return None
    requests, answers = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    return int.from_bytes(data, "little"), Line(requests, answers)


def run_threads(run: ServiceRun, control: socket.socket, parent: int, tray: Tray) -> None:
    """Be a process with a thread for every line the front sends, until the front closes the control socket.

    Args:
        run: What to serve.
        control: Brings the lines.
        parent: Process id of the front.
        tray: Of the replica.
    """
    become_worker_process(parent)
    if run.pinned:
        pin(run.position, run.replica)
    sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
    threads = []
    while (slot := receive_slot(control)) is not None:
        number, line = slot
        thread = threading.Thread(
            target=serve_worker, args=(run, number, line, tray), name=f"mup-worker-{number}"
        )
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
