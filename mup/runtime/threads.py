"""How does one process serve several requests at once? A thread per worker, each with a socket of its own.

To the front a thread is a worker like any other: it is handed one request at a time. Its Python code
shares one core with that of its neighbours, for they share an interpreter.
"""

from __future__ import annotations

import socket
import sys
import threading

from mup.runtime.pinning import pin
from mup.runtime.worker import ServiceRun, become_worker_process, serve_worker

__all__ = ["NUMBER", "receive_slot", "run_threads", "send_slot"]

NUMBER = 2
"""Bytes of a worker's number on the control socket."""

SWITCH_SECONDS = 0.0005
"""How long a thread may compute while others wait. Python's 5 ms are longer than most requests take."""


def send_slot(control: socket.socket, number: int, slot: socket.socket) -> None:
    """Hand a worker's socket to the process that is to serve it; its other end is the front's."""
    socket.send_fds(control, [number.to_bytes(NUMBER, "little")], [slot.fileno()])


def receive_slot(control: socket.socket) -> tuple[int, socket.socket] | None:
    """Return a worker's number and socket; None = the front has gone or wants this process to end."""
    data, descriptors, _, _ = socket.recv_fds(control, NUMBER, 1)
    if not data:
        return None
    return int.from_bytes(data, "little"), socket.socket(fileno=descriptors[0])


def run_threads(run: ServiceRun, control: socket.socket, parent: int) -> None:
    """Be a process with a thread for every socket the front sends, until the front closes the control socket.

    Args:
        run: What to serve.
        control: Brings the sockets.
        parent: Process id of the front.
    """
    become_worker_process(parent)
    if run.pinned:
        pin(run.service, run.replica)
    sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
    threads = []
    while (slot := receive_slot(control)) is not None:
        number, sock = slot
        thread = threading.Thread(target=serve_worker, args=(run, number, sock), name=f"mup-worker-{number}")
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
