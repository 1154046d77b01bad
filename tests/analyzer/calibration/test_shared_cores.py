"""Threads of a replica, and requests of an event loop, share one core: in the model as in reality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.explore import ExploreSettings, explore
from analyzer.calibration.placement import Placement, placed
from analyzer.calibration.rundir import Run, load_run
from analyzer.static import Application, analyse_project
from mup.lqn import Migration, Model, Processor
from mup.lqn.edits import with_clients, with_pool, with_replicas
from mup.project import load_project
from mup.workload.speed import Speed
from simulator import simulate
from simulator.analytic import estimate

pytestmark = pytest.mark.slow

SERVICES = """\
import time
from mup import EP, MS, Client, Communication

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

class T(MS):
    runtime = "thread"
    pool_size = 8
    @EP("/t/")
    def t(self, comm: Communication) -> None:
        burn(0.004)
        comm.respond(comm.call("L", "/l/").get())

class L(MS):
    runtime = "async"
    pinned = False
    pool_size = 8
    @EP("/l/")
    async def l(self, comm: Communication) -> None:
        burn(0.001)
        answer = await comm.call("P", "/p/")
        comm.respond(answer)

class P(MS):
    @EP("/p/")
    def p(self, comm: Communication) -> None:
        comm.respond(1)

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("T", "/t/")
"""
TOML = """\
[project]
client = "services:User"
[registry]
port = 0
[services.T]
class = "services:T"
[services.L]
class = "services:L"
[services.P]
class = "services:P"
"""
SHORT = ExploreSettings(
    width=1e-9, max_seconds=2.0, round_seconds=0.5, warmup_seconds=0.2, idle_seconds=0.2, foreign_limit=1.0
)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Application]:
    """A real run, and what ran."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "services.py").write_text(SERVICES)
    (folder / "mup.toml").write_text(TOML)
    project = load_project(folder)
    application = analyse_project(project)
    steady = Speed((1000.0, 1000.0))
    run = load_run(explore(project, application, SHORT, probe=lambda: steady, monitor=False))
    return run, application


@pytest.fixture(scope="module")
def model(explored: tuple[Run, Application]) -> Model:
    """Calibrated from it."""
    return calibrate(*explored, name="shared", bootstrap=0).model


@pytest.mark.services
def test_a_replica_has_one_core_of_its_host(model: Model) -> None:
    """Whatever the number of its threads; processes use the host as they are."""
    assert {t.name: t.processor for t in model.tasks if t.role == "service"} == {
        "T": "T.core",
        "L": "L.core",
        "P": "host",
    }
    own = {p.name: (p.cores, p.parent) for p in model.processors}
    assert own["T.core"] == own["L.core"] == (1, "host")
    # The interpreter goes round the threads that want it; a coroutine keeps the loop until it waits.
    assert (model.processor("T.core").discipline, model.processor("L.core").discipline) == ("ps", "fcfs")
    demand = model.task("T").entry("/t/").activities[0].demand
    assert demand is not None
    assert 0.0038 < demand.mean < 0.02


@pytest.mark.services
def test_more_threads_do_not_help_but_more_replicas_do(model: Model) -> None:
    """64 users: the core of T's threads is full, and two of them serve twice as many."""
    host = next(p for p in model.processors if p.name == "host")
    roomy = with_clients(model.with_processor(host.__class__(name="host", cores=16)), 64)
    # Threads whose work is all alike, as it is on a quiet machine, also end together; the core has nothing to do until
    # the first of them comes back. With eight threads that is 6 % of the time.
    roomy = with_pool(roomy, "T", 32)

    def throughput(scenario: Model) -> float:
        return simulate(scenario, precision=0.03).cycle.throughput.mean

    alone = throughput(roomy)
    result = simulate(roomy, precision=0.03)
    core = result.processors["T.core"].utilization
    assert core is not None
    assert core.mean > 0.95
    assert throughput(with_pool(roomy, "T", 64)) == pytest.approx(alone, rel=0.05)
    assert throughput(with_replicas(roomy, "T", 2)) == pytest.approx(2 * alone, rel=0.1)


@pytest.mark.services
def test_the_core_goes_where_the_service_goes(model: Model) -> None:
    """On a machine of its own, T still has one core of it."""
    moved = placed(model, Placement(machines={"other": None}, tasks={"T": "other"}))
    own = {p.name: p.parent for p in moved.processors}
    assert own["T.core"] == "other"
    assert moved.task("T").processor == "T.core"
    assert {"host", "other", "L.core"} <= set(own)


@pytest.mark.services
def test_services_pinned_to_one_core_share_it(explored: tuple[Run, Application]) -> None:
    """On two cores, T and L are on the same one, so they are in the model; on four, each has its own."""
    run, application = explored
    services = {s.name: replace(s, pinned=True) for s in application.services}
    # Between them is one of processes, which are not pinned.
    pinned = replace(application, services=(services["T"], services["P"], services["L"]))
    throughput = {}
    for cores in (2, 4):
        on_such = replace(run, info=msgspec.structs.replace(run.info, cores=cores))
        found = calibrate(on_such, pinned, name="pinned", bootstrap=0).model
        parents = {p.name: p.parent for p in found.processors}
        if cores == 2:
            assert parents == {
                "host": None,
                "host.core0": "host",
                "T.core": "host.core0",
                "L.core": "host.core0",
            }
            # Fronts are other processes, and a second replica is pinned to another core.
            assert found.front_processor(found.task("T")) == "host"
            assert with_replicas(found, "T", 2).processor("T.core").parent == "host"
            moved = placed(found, Placement(machines={"other": None}, tasks={"T": "other"}))
            assert moved.processor("T.core").parent == "other"
            assert moved.processor("L.core").parent == "host.core0"
        else:
            assert parents == {"host": None, "T.core": "host", "L.core": "host"}
        roomy = found.with_processor(Processor(name="host", cores=16))
        throughput[cores] = estimate(with_clients(roomy, 32)).cycle.throughput
    assert throughput[2] is not None
    assert throughput[4] is not None
    # L's work is at least a quarter of T's, and T's core is full.
    assert throughput[4] > 1.15 * throughput[2]


MOVES = Migration(wake=0.8, steal=0.5, balance=10.0)


@dataclass(frozen=True)
class Scheduler:
    """A profile that says how threads stick to cores."""

    cores: int

    @property
    def mean_speed(self) -> float | None:
        """Of the cores; unknown."""
        return None

    def processor(self, name: str) -> Processor:
        """Return the machine as a processor of the model."""
        return Processor(name=name, cores=self.cores, discipline="cores", migration=MOVES)

    def to_json(self) -> dict[str, Any]:
        """Return what the model keeps of the profile."""
        return {}


@pytest.mark.services
def test_the_measured_scheduler_is_kept(explored: tuple[Run, Application]) -> None:
    """Cores have queues of their own: pinned replicas are on theirs among all others, which move."""
    run, application = explored
    for cores in (2, 4):
        found = calibrate(run, application, name="sticky", bootstrap=0, host=Scheduler(cores))
        assert not any("shared ideally" in warning for warning in found.warnings)
        processors = {p.name: p for p in found.model.processors}
        host = processors.pop("host")
        assert (host.cores, host.discipline, host.migration) == (cores, "cores", MOVES)
        assert {name: (p.parent, p.core) for name, p in processors.items()} == {
            "T.core": ("host", 0),
            "L.core": ("host", None),
        }
    # A second replica is on the next core, on any machine.
    assert with_replicas(found.model, "T", 2).processor("T.core") == replace(processors["T.core"], cores=2)
    machines = {"other": Scheduler(3), "ideal": None}
    moved = placed(found.model, Placement(machines=machines, tasks={"T": "other"}))
    assert moved.processor("T.core").core == 0
    limited = placed(found.model, Placement(limits={"T": 0.5}))
    assert limited.processor("T.core").core is None
    # Eight threads whose work is alike end together, and their core then waits for the first of them: 12 % of the time.
    result = simulate(with_pool(with_clients(found.model, 64), "T", 32), precision=0.05)
    core = result.processors["T.core"].utilization
    assert core is not None
    assert core.mean > 0.95
