"""`mup identify` on services of known servers and service times.

    python benchmarks/blackbox.py [--simulated | --nginx] [--quick] [--mean S] [--seed N]

Workers (K = 1, 2, 4) sleep for times of a known distribution (constant, uniform, Erlang, exponential,
hyperexponential of cv 2) and so compute next to nothing. The truth is what the event log of the service
says of the requests it was identified from (those held back are another sample): how long workers were held
per request, and how long it took to give a free worker the next one that waited (it is not free for others
meanwhile). Target: K right, the mean within 5 %, everywhere. --quick: two
services, half a minute each.

With --simulated the same experiment meets stations that answer in computed time, with a latency of 2.5 % of
the mean and as much again that varies: what is left is the error of the method, on any machine.

With --nginx a foreign server is identified instead, whose service times are unknown: nginx with one worker.

Rows are kept as soon as they are there; a run that was interrupted goes on with those that are missing. A row
during which the hypervisor withheld the machine is void: printed, not kept.
"""

from __future__ import annotations

import argparse
import heapq
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

import numpy as np
from accuracy.quiet import add_options, quiet_of
from foreign_server import COMPRESSED, Nginx
from machine import describe
from stored import Store, add_results

from analyzer.blackbox.draws import draws
from analyzer.blackbox.experiment import Experiment, Injector, run_experiment
from analyzer.blackbox.holdout import compare
from analyzer.blackbox.http_injector import HttpInjector, check_target
from analyzer.blackbox.inversion import Trace
from analyzer.blackbox.policy import Limits
from analyzer.blackbox.station import LoadStep
from mup.errors import MupError
from mup.events.reader import log_files, read_log
from mup.events.record import QUEUED, Event
from mup.lqn import Constant, Distribution, Erlang, Exponential, Hyperexponential, Uniform
from mup.project import Project, ServiceConfig
from mup.runtime.deployment.launcher import Deployment
from mup.workload.cpu import HostCpu, disturbance
from mup.workload.http import HttpLoad

SERVICE = """
import os
import random
import time

from mup import EP, MS, Communication

MEAN = {mean!r}
TIMES = {{
    "constant": lambda rng: MEAN,
    "uniform": lambda rng: rng.uniform(0.5 * MEAN, 1.5 * MEAN),
    "erlang": lambda rng: rng.gammavariate(4, MEAN / 4),
    "exponential": lambda rng: rng.expovariate(1 / MEAN),
    "hyperexponential": lambda rng: rng.expovariate(1 / (5.5 * MEAN if rng.random() < 0.1 else 0.5 * MEAN)),
}}


class Box(MS):
    def setup(self) -> None:
        self.rng = random.Random(os.getpid())

    @EP("/work/")
    def work(self, comm: Communication) -> None:
        time.sleep(TIMES[{family!r}](self.rng))
        comm.respond({{}})
"""
DISTRIBUTIONS: dict[str, Distribution] = {
    "constant": Constant(1.0),
    "uniform": Uniform(0.5, 1.5),
    "erlang": Erlang(1.0, 4),
    "exponential": Exponential(1.0),
    "hyperexponential": Hyperexponential((0.1, 0.9), (5.5, 0.5)),
}
"""What the services above sleep, for a mean of 1."""
LATENCY = 0.025
FAMILIES = ("constant", "uniform", "erlang", "exponential", "hyperexponential")
SERVERS = (1, 2, 4)
QUICK = (("uniform", 2), ("constant", 4))


class Box:
    """A running service of known servers and times."""

    def __init__(self, family: str, servers: int, mean: float) -> None:
        self._folder = tempfile.TemporaryDirectory()
        root = Path(self._folder.name)
        (root / "box.py").write_text(SERVICE.format(family=family, mean=mean), encoding="utf-8")
        service = ServiceConfig(name="Box", target="box:Box", pool_size=servers)
        self._logs = root / "logs"
        self._logs.mkdir()
        project = Project(name="box", root=root, source=root, services=(service,)).with_any_ports()
        self._deployment = Deployment(project, log_dir=self._logs)

    def __enter__(self) -> str:
        self._deployment.start()
        return f"{self._deployment.replicas()[0].url}/work/"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deployment.stop()
        self._records = [read_log(path) for path in log_files(self._logs)]
        self._folder.cleanup()

    def service_seconds(self, spans: Sequence[Span]) -> float:
        """Return the mean time a worker was held, and took to be handed a request that waited.

        Args:
            spans: Only of the requests in these: what was held back is another sample.
        """
        fronts = [log.records for log in self._records if log.header["role"] == "front"]
        waited = np.concatenate([r["request"][(r["flags"] & QUEUED) > 0] for r in fronts])
        held, handed = [], []
        for log in self._records:
            if log.header["role"] != "worker":
                continue
            begun = log.records[log.records["event"] == Event.BEGIN]
            done = log.records["time"][log.records["event"] == Event.DONE]
            counts = np.any(
                [(span.begin <= begun["time"]) & (begun["time"] <= span.end) for span in spans], axis=0
            )
            held.append((done - begun["time"])[counts] * 1e-9)
            queued = np.isin(begun["request"][1:], waited) & counts[1:]
            handed.append(((begun["time"][1:] - done[:-1]) * 1e-9)[queued])
        return float(np.concatenate(held).mean() + np.concatenate(handed).mean())


@dataclass(frozen=True, slots=True)
class Span:
    """When one load began and ended, in monotonic ns."""

    step: LoadStep
    begin: int
    end: int


class Noted:
    """An injector that remembers when each load was."""

    def __init__(self, injector: Injector) -> None:
        self._injector = injector
        self.spans: list[Span] = []

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        """Inject a load."""
        begin = time.monotonic_ns()
        step = self._injector.inject(rate, seconds, seed)
        self.spans.append(Span(step, begin, time.monotonic_ns()))
        return step

    def of(self, steps: Sequence[LoadStep]) -> list[Span]:
        """Return when these were."""
        return [span for span in self.spans if any(span.step is step for step in steps)]


class Simulated:
    """An injector into an M/G/K station that answers in computed time."""

    def __init__(self, family: str, servers: int, mean: float) -> None:
        self._distribution = DISTRIBUTIONS[family].scaled(mean)
        self._servers = servers
        self._latency = LATENCY * mean
        self._served: list[tuple[LoadStep, np.ndarray]] = []

    def mean(self, steps: Sequence[LoadStep]) -> float:
        """Return the mean of the service times that were drawn for some loads, in seconds."""
        served = [times for step, times in self._served if any(step is one for one in steps)]
        return float(np.concatenate(served).mean())

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        """Return what a load of this rate would show, from an empty station on."""
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1 / rate, int(rng.poisson(rate * seconds))))
        service = draws(self._distribution, arrivals.size, rng)
        free = [-np.inf] * self._servers
        leave = np.empty(arrivals.size)
        for i, arrival in enumerate(arrivals.tolist()):
            leave[i] = max(arrival + self._latency, heapq.heappop(free)) + service[i]
            heapq.heappush(free, leave[i])
        noise = rng.exponential(self._latency, arrivals.size)
        step = LoadStep(rate, Trace.of(arrivals, leave + noise - arrivals), seconds)
        self._served.append((step, service))
        return step


def identify(
    url: str, seconds: float, seed: int, headers: dict[str, str] | None = None
) -> tuple[Experiment, list[Span]]:
    """Run the experiment as the command does, up to 1000 requests per second.

    Returns:
        What was found, and when the loads were from which it was.
    """
    check_target(url)
    limits = Limits(rate=1000.0, seconds=seconds)
    with HttpInjector(HttpLoad(urls=(url,), headers=headers or {}), failures=limits.failures) as injector:
        noted = Noted(injector)
        found = run_experiment(noted, limits=limits, seed=seed)
    return found, noted.of(found.steps)


@dataclass(frozen=True, slots=True)
class Case:
    """Something to identify.

    Attributes:
        label: Service and number of servers, as in the table.
        run: Returns the row, and whether the result is wrong.
    """

    label: str
    run: Callable[[], tuple[str, bool]]


def main() -> int:
    """Identify every service and print a table; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--simulated", action="store_true", help="stations that answer in computed time")
    parser.add_argument(
        "--quick", action="store_true", help="two services, half a minute each; nothing is kept"
    )
    parser.add_argument("--mean", type=float, default=0.1, help="mean service time in seconds (default: 0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of the arrivals (default: 0)")
    parser.add_argument("--nginx", action="store_true", help="a foreign server instead; must be installed")
    add_results(parser, "blackbox.jsonl")
    add_options(parser)
    options = parser.parse_args()
    seconds = 180.0 if options.simulated else 30.0 if options.quick else 60.0
    print(describe("numpy", "scipy"))
    what = (
        "nginx"
        if options.nginx
        else f"{'stations' if options.simulated else 'services'} of {options.mean:g} s"
    )
    print(f"{what}, seed {options.seed}, at most {seconds:g} s of load each")
    if not options.nginx:
        print("target: found = K and an error within 5 %, everywhere")
    print("\n| service | K | found | true ms | found ms | error | latency ms | families ", end="")
    print("| held back | load s | ended |\n|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    store, quiet = Store(None if options.quick else options.results), quiet_of(options)
    wrong = void = 0
    for case in cases(options, seconds):
        known = store.get(key := f"{what}, {case.label}, seed {options.seed}, {seconds:g} s")
        if known is None:
            reason = ""
            with nullcontext() if options.simulated else quiet.alone():
                host = HostCpu()
                host.start()
                try:
                    line, failed = case.run()
                except MupError as error:
                    line, failed, reason = f"| {case.label} | {error} |", True, "it failed"
                host.stop()
            known = {"row": line, "wrong": failed}
            if not options.simulated:
                reason = reason or disturbance(host, None)
            if reason:
                void += 1
                print(f"void, {reason}:")
            else:
                store.put(key, known)
        wrong += known["wrong"]
        print(known["row"], flush=True)
    if not options.nginx:
        print(f"\n{wrong} wrong (target: 0)", end="")
    print(f"\n{void} void; processor time {time.process_time():.1f} s of the analysis")
    return 0


def cases(options: argparse.Namespace, seconds: float) -> Iterator[Case]:
    """Yield what is to be identified."""
    if options.nginx:
        for page, headers in (("page", COMPRESSED), ("small", {})):
            label = f"nginx /{page} | 1"
            yield Case(label, partial(foreign, label, page, headers, seconds, options.seed))
        return
    for family, servers in QUICK if options.quick else [(f, k) for f in FAMILIES for k in SERVERS]:
        yield Case(
            f"{family} | {servers}",
            partial(
                known_box, family, servers, options.mean, seconds, options.seed, real=not options.simulated
            ),
        )


def foreign(label: str, page: str, headers: dict[str, str], seconds: float, seed: int) -> tuple[str, bool]:
    """Identify nginx by one of its pages; nothing is known that could be wrong."""
    with Nginx() as url:
        return row(label, identify(f"{url}/{page}", seconds, seed, headers)[0], "?", "?"), False


def known_box(
    family: str, servers: int, mean: float, seconds: float, seed: int, *, real: bool
) -> tuple[str, bool]:
    """Identify a service, or a simulated station, whose servers and mean are known."""
    if real:
        box = Box(family, servers, mean)
        with box as url:
            found, spans = identify(url, seconds, seed)
        truth = box.service_seconds(spans)
    else:
        injector = Simulated(family, servers, mean)
        found = run_experiment(injector, limits=Limits(rate=1000.0, seconds=seconds), seed=seed)
        truth = injector.mean(found.steps)
    error = found.station.distribution.mean / truth - 1
    wrong = found.station.servers.count != servers or abs(error) > 0.05
    mark = " WRONG" if wrong else ""
    return row(f"{family} | {servers}", found, f"{1e3 * truth:.2f}", f"{error:+.1%}{mark}"), wrong


def row(label: str, found: Experiment, held: str, error: str) -> str:
    """Return the line of a service."""
    station = found.station
    least = "" if station.servers.bounded else ">= "
    compared = compare(station, found.held_back)
    verdict = ", ".join(f"{c.error:+.1%} {'holds' if c.holds else 'FAILS'}" for c in compared)
    return (
        f"| {label} | {least}{station.servers.count} | {held} | {1e3 * station.distribution.mean:.2f} "
        f"| {error} "
        f"| {1e3 * station.servers.latency:.2f} | {', '.join(station.family.accepted) or 'none'} | {verdict} "
        f"| {found.seconds:.0f} | {found.ended} |"
    )


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        sys.exit(130)
