"""How do the processes of services move between cores, and how does that depend on the load?

    python benchmarks/services_on_cores.py --results DIR --loads w1407:8,w1407:17,w1409:12,w1409:25

Runs systems of the accuracy bed with so many clients, on a machine that does nothing else, and traces the
scheduler for three seconds (as root). Printed for each: utilization of the machine, and of the processes that
are not pinned to a core, how often one that is woken while its core is busy and another one idle moves there
(*wake*), how often a core about to fall idle takes a thread that waits elsewhere (*steal*), and how often one
that is woken onto a busy core, where no other waits, runs at once (*at once*), with 95 % half-widths.
``AMONG_SERVICES`` of ``analyzer.host.behaviour`` has the first two, averaged over loads that are alike, and
smoothed.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path

from accuracy.deploy import deployable, prepare
from accuracy.store import Results

from analyzer.host.behaviour import Behaviour, behaviour
from analyzer.host.estimates import Estimate
from analyzer.host.schedule import parse_trace, replay
from analyzer.host.tracing import recorded
from mup.workload.measure import measure_load

WINDOW, WARM_UP, TRACED = 12.0, 2.0, 3.0
"""Seconds."""
BEGIN = 6.0
"""Seconds from the start of the services on until the trace begins, when users are there."""


def main() -> None:
    """Trace each load."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=Path("services-on-cores"))
    parser.add_argument("--loads", default="w1407:8,w1407:17,w1408:8,w1409:12,w1409:25,w1410:8,w1410:17")
    given = parser.parse_args()
    store = Results(given.results)
    print("| system | clients | utilization | wake | steal | at once |\n|---|---|---|---|---|---|")
    for name, _, clients in (load.partition(":") for load in given.loads.split(",")):
        folder = store.system(name)
        prepare(folder)
        with deployable(folder) as project, _Tracing() as tracing:
            measure_load(project, clients=int(clients), duration=WINDOW, warmup=WARM_UP, seed=1)
        found = tracing.behaviour()
        shown = [_shown(one) for one in (found.wake, found.steal, found.preempts_alone)]
        print(f"| {name} | {clients} | {found.utilization[0]:.0%} | {' | '.join(shown)} |", flush=True)


def _shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.mean:.2f}" + ("" if estimate.half is None else f" +- {estimate.half:.2f}")


class _Tracing:
    """Traces the scheduler in the midst of a load."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._trace)
        self._text = ""
        self._free: set[int] = set()

    def __enter__(self) -> _Tracing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _trace(self) -> None:
        time.sleep(BEGIN)
        self._free = set(_threads_that_move())
        with recorded() as recording:
            time.sleep(TRACED)
        self._text = "" if recording is None else recording.text

    def behaviour(self) -> Behaviour:
        """Return what the trace shows."""
        if not self._text:
            raise SystemExit("the scheduler cannot be traced here: be root, on Linux with tracefs")
        schedule = replay(parse_trace(self._text), range(os.cpu_count() or 1))
        return behaviour(schedule, self._free, [(schedule.start, schedule.end)])


def _threads_that_move() -> list[int]:
    """Return the threads of Python processes here that may run on every core."""
    everywhere, found = os.sched_getaffinity(0), []
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        try:
            python = b"python" in (task.parent.parent / "cmdline").read_bytes()
            if python and os.sched_getaffinity(int(task.name)) == everywhere:
                found.append(int(task.name))
        except OSError:
            continue  # it has ended
    return found


if __name__ == "__main__":
    main()
