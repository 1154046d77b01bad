"""Grids give the same answers wherever they run, and report failures there in one message."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.errors import SimulationError, UsageError
from mup.lqn import Model
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.uncertainty import Replicate, Uncertainty
from simulator.studies.grids import UnfinishedError, elsewhere, run_scenarios
from simulator.studies.prediction import RealRun
from simulator.studies.whatif import Change, Scenario, grid

COARSE: dict[str, Any] = {"precision": 0.2}


def shop() -> Model:
    """Clients of one service whose demand is known to some percent."""
    plain = model(
        clients(4, exp(0.05), "A.a"),
        service("A", entry("a", act("w", exp(0.01))), threads=2, processor="host"),
        processors=(replace(ps(), name="host"),),
    )
    generator = np.random.default_rng(5)
    replicates = tuple(
        Replicate(demands={"A.a:w": math.exp(0.05 * float(generator.normal()))}) for _ in range(5)
    )
    return replace(plain, uncertainty=Uncertainty(replicates=replicates))


def scenarios(count: int = 3) -> list[Scenario]:
    """The shop, with one client more and more, and with another pool."""
    axes = (tuple(Change("clients", "", 4 + n) for n in range(count)), (Change("pool", "A", 1),))
    return [Scenario((), shop()), *grid(shop(), axes)]


class Backwards:
    """An executor that runs everything at the end, the last call first."""

    def __init__(self) -> None:
        self._calls: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.shared = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls.append((future, fn, args))
        if len(self._calls) == 4:
            for each, call, given in reversed(self._calls):
                each.set_result(call(*given))
        return future

    def share(self, value: Any) -> Any:
        self.shared += 1
        return value


def everything(**options: Any) -> list[Any]:
    """Ask everything that can be asked about a grid."""
    machine = MachineSpeed(processors=("host",), sd=0.1)
    return list(run_scenarios(scenarios(), run=RealRun(60), machine=machine, **COARSE, **options))


@pytest.fixture(scope="module")
def here() -> list[Any]:
    return everything()


def test_the_order_of_arrival_does_not_matter(here: list[Any]) -> None:
    """Results, differences, limits and intervals are those of this machine's threads."""
    executor = Backwards()
    assert everything(executor=executor) == here
    assert executor.shared == 1
    with ThreadPoolExecutor(3) as threads:
        assert everything(executor=threads) == here


@pytest.mark.slow
def test_processes_give_the_same_and_are_followed(here: list[Any]) -> None:
    """What arrives from other processes is equal; progress counts scenarios, and each is told of."""
    seen: list[tuple[int, int]] = []
    told: list[str] = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        found = everything(
            executor=executor,
            progress=lambda *counts: seen.append(counts),
            on_result=lambda scenario, _: told.append(str(scenario)),
        )
    assert found == here
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert sorted(told) == sorted(str(each) for each in scenarios())


def test_a_model_that_its_changes_do_not_make_is_sent(here: list[Any]) -> None:
    """Scenarios may be made by hand."""
    other = Scenario((), scenarios()[2].model)
    found = run_scenarios(
        [here[0].scenario, other], limits=False, differences=False, executor=ThreadPoolExecutor(1), **COARSE
    )
    assert found[1].result == here[2].result


def _fail(*_: Any) -> None:
    raise OSError("the disk of the worker is full")


class Failing:
    """An executor in which the third call fails, and all later ones never begin."""

    def __init__(self, failing: int = 2) -> None:
        self._calls = 0
        self._failing = failing

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls += 1
        if self._calls <= self._failing:
            future.set_result(fn(*args))
        elif self._calls == self._failing + 1:
            future.set_exception(OSError("the disk of the worker is full"))
        return future


def test_a_failing_worker_loses_nothing_that_was_finished(here: list[Any]) -> None:
    """One message, and the outcomes so far."""
    with pytest.raises(UnfinishedError, match=r"failed after 2 of 4 scenarios: OSError: the disk") as caught:
        everything(executor=Failing())
    assert list(caught.value.outcomes) == here[:2]
    with pytest.raises(UnfinishedError) as caught:
        everything(executor=Failing(0))
    assert caught.value.outcomes == ()


def test_other_versions_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is unpacked by a worker with another version of what computes the numbers."""
    own = dict(elsewhere.versions())
    assert {"Python", "numpy", "the simulator's sources"} < own.keys()

    class Older:
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            with monkeypatch.context() as there:
                there.setattr(elsewhere, "versions", lambda: {**own, "numpy": "1.9"})
                future.set_result(fn(*args))
            return future

    with pytest.raises(UsageError, match=rf"numpy: 1\.9 there, {re.escape(own['numpy'])} here") as caught:
        everything(executor=Older())
    assert "install the same versions" in str(caught.value)


def test_a_scenario_that_cannot_be_is_named() -> None:
    """As locally."""
    impossible = grid(shop(), [(Change("arrivals", "", 5000),)])
    with pytest.raises(SimulationError, match=r"scenario: 5000 arrivals/s"):
        run_scenarios([Scenario((), shop()), *impossible], executor=ThreadPoolExecutor(1), limits=False)


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)], ids=["here", "elsewhere"])
def test_scenarios_that_cannot_be_do_not_end_the_others(executor: ThreadPoolExecutor | None) -> None:
    """Only some loads of a grid are more than the system can do: the others are known in the end."""
    asked = [
        Scenario((), shop()),
        *grid(shop(), [tuple(Change("arrivals", "", n) for n in (20, 5000, 30, 6000))]),
    ]
    options: dict[str, Any] = {"limits": False, **COARSE}
    with pytest.raises(UnfinishedError) as caught:
        run_scenarios(asked, executor=executor, **options)
    assert "scenario: 5000 arrivals/s" in caught.value.message
    assert caught.value.message.endswith("2 of 5 scenarios cannot be simulated")
    possible = [asked[0], asked[1], asked[3]]
    assert list(caught.value.outcomes) == run_scenarios(possible, **options)


@pytest.mark.slow
def test_time_that_is_up_leaves_out_what_is_not_finished(here: list[Any]) -> None:
    """Workers that never answer end at the limit of wall time."""

    class Silent(Failing):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
            self._calls += 1
            future: Future[Any] = Future()
            if self._calls == 1:
                future.set_result(fn(*args))
            return future

    (base,) = everything(executor=Silent(), max_seconds=2.0)
    assert base.result == here[0].result
    assert [limit.limit for limit in base.limits] == ["seconds"] * 3


# A real cluster.


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler on loopback; its address."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    command += ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(folder / "s")]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield _address(folder / "s")
    finally:
        process.terminate()
        process.wait(20)


def _address(file: Path) -> str:
    import json

    for _ in range(600):
        if file.exists() and (text := file.read_text()):
            return str(json.loads(text)["address"])
        time.sleep(0.1)
    raise TimeoutError(file)


@pytest.fixture
def workers(scheduler: str, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two workers of it, without nannies: who is killed stays away."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny"]
    command += ["--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
    processes = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_a_worker_gives_the_same(
    scheduler: str, workers: list[subprocess.Popen[bytes]], here: list[Any]
) -> None:
    """Scenarios of the lost worker are done again by the other one."""
    from simulator.studies.grids.dask_cluster import dask_cluster

    many = [Scenario((), shop()), *grid(shop(), [tuple(Change("clients", "", n) for n in range(1, 25))])]
    options: dict[str, Any] = {"limits": False, "differences": False, **COARSE}
    local = run_scenarios(many, **options)
    with dask_cluster(scheduler, workers=2) as executor:
        found = run_scenarios(
            many,
            executor=executor,
            progress=lambda done, _: os.kill(workers[0].pid, signal.SIGKILL) if done == 10 else None,
            **options,
        )
        assert workers[0].wait(20) == -signal.SIGKILL
        assert found == local
        assert everything(executor=executor) == here


@pytest.mark.slow
def test_an_address_of_no_scheduler_is_one_message() -> None:
    """At once, or after a few seconds, with the remedy."""
    pytest.importorskip("distributed")
    from simulator.studies.grids.dask_cluster import dask_cluster

    for address in ("tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1"):
        with (
            pytest.raises(UsageError, match=f"no Dask scheduler answers at {re.escape(address)}"),
            dask_cluster(address),
        ):
            pass
