"""Background work of the machine, which no request asks for.

Fronts send heartbeats and look after their connections, databases keep house, and all of them ask the
registry now and then. That is a few percent of a small machine: nothing while it is mostly idle, but several
percent of the response times once it is nearly full.
"""

from __future__ import annotations

from collections.abc import Collection

from analyzer.calibration.observed import Observed
from mup.lqn import Processor

__all__ = ["background"]


def background(observed: Observed, machine: Processor, elsewhere: Collection[str] = ()) -> float:
    """Return the processor time per second that no request causes, as on a busy machine.

    Of most processes that is what they used before the load began. The registry serves the caches of those
    who call, so it counts with what it used while there was a user; with more workers awake it is more.

    Args:
        observed: The run.
        machine: Says how much longer work takes while hardly anything else happens.
        elsewhere: Services, databases and clients that are not on this machine.
    """
    at_rest = machine.slowness(0.0)
    weights = observed.single
    total = seconds = 0.0
    for index, (window, part) in enumerate(zip(observed.windows, observed.parts, strict=True)):
        if not weights[index]:
            continue
        seconds += window.seconds
        for process in {p.pid: p for p in part.processes}.values():
            if process.service in elsewhere:
                continue
            cpu = window.cpu.get(str(process.pid)) if process.role == "registry" else None
            if cpu is None:
                total += process.idle_rate * window.seconds / at_rest
            else:
                total += cpu / float(observed.slowness[index])
    return total / seconds if seconds > 0 else 0.0
