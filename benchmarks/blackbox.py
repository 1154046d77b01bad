"""Does `mup identify` find what is behind a URL? Services of known servers and service times.

    python benchmarks/blackbox.py [--simulated | --quick | --nginx] [--mean S] [--seed N]

Workers (K = 1, 2, 4) sleep for times of a known distribution (constant, uniform, Erlang, exponential,
hyperexponential of cv 2) and so compute next to nothing. The truth is what the event log of the service
says: how long workers were held per request, and how long it took to give a free worker the next one that
waited (it is not free for others meanwhile). Target: K right, the mean within 5 %, everywhere. --quick: two
services, half a minute each.

With --simulated the same experiment meets stations that answer in computed time, with a latency of 2.5 % of
the mean and as much again that varies: what is left is the error of the method, on any machine.

With --nginx a foreign server is identified instead, whose service times nobody knows: nginx with one worker.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from pathlib import Path
from types import TracebackType

import numpy as np
from foreign_server import COMPRESSED, Nginx
from machine import describe

from analyzer.blackbox.draws import draws
from analyzer.blackbox.experiment import Experiment, run_experiment
from analyzer.blackbox.holdout import compare
from analyzer.blackbox.http_injector import HttpInjector, check_target
from analyzer.blackbox.inversion import Trace
from analyzer.blackbox.policy import Limits
from analyzer.blackbox.station import LoadStep
from mup.events.reader import log_files, read_log
from mup.events.record import QUEUED, Event
from mup.lqn import Constant, Distribution, Erlang, Exponential, Hyperexponential, Uniform
from mup.project import Project, ServiceConfig
from mup.runtime.launcher import Deployment
from mup.workload.cpu import HostCpu
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
    """A running service of known servers and times; knows afterwards how long its workers were held."""

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
        self.held, self.handed = self._held()
        self._folder.cleanup()

    def _held(self) -> tuple[float, float]:
        """Return the mean seconds a worker was held, and those of handing it to a request that waited."""
        logs = [read_log(path) for path in log_files(self._logs)]
        fronts = [log.records for log in logs if log.header["role"] == "front"]
        waited = np.concatenate([r["request"][(r["flags"] & QUEUED) > 0] for r in fronts])
        held, handed = [], []
        for log in logs:
            if log.header["role"] != "worker":
                continue
            begun = log.records[log.records["event"] == Event.BEGIN]
            done = log.records["time"][log.records["event"] == Event.DONE]
            held.append((done - begun["time"]) * 1e-9)
            handed.append(((begun["time"][1:] - done[:-1]) * 1e-9)[np.isin(begun["request"][1:], waited)])
        return float(np.concatenate(held).mean()), float(np.concatenate(handed).mean())


class Simulated:
    """An injector into an M/G/K station that answers in computed time."""

    def __init__(self, family: str, servers: int, mean: float) -> None:
        self._distribution = DISTRIBUTIONS[family].scaled(mean)
        self._servers = servers
        self._latency = LATENCY * mean
        self._served: list[np.ndarray] = []

    @property
    def mean(self) -> float:
        """Mean of the service times that were drawn, in seconds."""
        return float(np.concatenate(self._served).mean())

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        """Return what a load of this rate would show, from an empty station on."""
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1 / rate, int(rng.poisson(rate * seconds))))
        service = draws(self._distribution, arrivals.size, rng)
        self._served.append(service)
        free = [-np.inf] * self._servers
        leave = np.empty(arrivals.size)
        for i, arrival in enumerate(arrivals.tolist()):
            leave[i] = max(arrival + self._latency, heapq.heappop(free)) + service[i]
            heapq.heappush(free, leave[i])
        noise = rng.exponential(self._latency, arrivals.size)
        return LoadStep(rate, Trace.of(arrivals, leave + noise - arrivals), seconds)


def identify(url: str, seconds: float, seed: int, headers: dict[str, str] | None = None) -> Experiment:
    """Run the experiment as the command does, up to 1000 requests per second."""
    check_target(url)
    limits = Limits(rate=1000.0, seconds=seconds)
    with HttpInjector(HttpLoad(urls=(url,), headers=headers or {}), failures=limits.failures) as injector:
        return run_experiment(injector, limits=limits, seed=seed)


def main() -> None:
    """Identify every service and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--simulated", action="store_true", help="stations that answer in computed time")
    parser.add_argument("--quick", action="store_true", help="two services, half a minute each")
    parser.add_argument("--mean", type=float, default=0.1, help="mean service time in seconds (default: 0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of the arrivals (default: 0)")
    parser.add_argument("--nginx", action="store_true", help="a foreign server instead; must be installed")
    options = parser.parse_args()
    seconds = 180.0 if options.simulated else 30.0 if options.quick else 60.0
    print(describe("numpy", "scipy"))
    host = HostCpu()
    host.start()
    print(f"mean {options.mean:g} s, seed {options.seed}, at most {seconds:g} s of load per service\n")
    print("| service | K | found | true ms | found ms | error | latency ms | families | held back | load s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    wrong = 0
    services = QUICK if options.quick else tuple((f, k) for f in FAMILIES for k in SERVERS)
    for family, servers in () if options.nginx else services:
        if options.simulated:
            injector = Simulated(family, servers, options.mean)
            limits = Limits(rate=1000.0, seconds=seconds)
            found = run_experiment(injector, limits=limits, seed=options.seed)
            truth = injector.mean
        else:
            box = Box(family, servers, options.mean)
            with box as url:
                found = identify(url, seconds, options.seed)
            truth = box.held + box.handed
        error = found.station.distribution.mean / truth - 1
        wrong += found.station.servers.count != servers or abs(error) > 0.05
        print(row(f"{family} | {servers}", found, f"{1e3 * truth:.2f}", f"{error:+.1%}"), flush=True)
    if options.nginx:
        with Nginx() as url:
            for page, headers in (("page", COMPRESSED), ("small", {})):
                found = identify(f"{url}/{page}", seconds, options.seed, headers)
                print(row(f"nginx /{page} | 1", found, "?", "?"), found.ended, flush=True)
    host.stop()
    print(f"\nthe hypervisor withheld {host.stolen:.1%} of the machine, {host.utilization:.0%} were in use")
    print(f"{wrong} wrong (target: 0); processor time {time.process_time():.1f} s of the analysis")


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
        f"| {found.seconds:.0f} |"
    )


if __name__ == "__main__":
    main()
