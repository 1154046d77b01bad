"""Sources that only send messages take no time: every study of such a model still ends.

A run in which nothing takes time stays at moment 0, and so did the first study of what saturates such a model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sim_models import act, agrees, clients, entry, exp, model, ps, service

from mup.lqn import Call, Model, Processor
from mup.lqn.files import read_model
from mup.lqn.json_io import save_model
from simulator import simulate
from simulator.analytic import estimate
from simulator.studies.saturation import saturation

SHARED = Path(os.environ.get("MUP_REFERENCE_DIR", Path(__file__).parents[4] / "shared"))
ROUTERS = SHARED / "models" / "usr-pengfei_1.lqnx"
PATIENCE = 120
"""Seconds a process may take: many times what it needs."""


def messages(kinds: int = 1, rate: float = 1.0) -> Model:
    """Requests from outside to an entry that only sends: 0.3 s of work on one core, of either of ``kinds``."""
    sent = tuple(Call(task="Work", entry=f"w{k}", kind="send") for k in range(kinds))
    tell = entry("tell", replace(act("go"), calls=sent))
    return model(
        service("Tell", replace(tell, arrivals=exp(1 / rate)), threads=1),
        service("Work", *(entry(f"w{k}", act("w", exp(0.3 / kinds))) for k in range(kinds)), threads=4, processor="cpu"),
        processors=(ps(),),
    )  # fmt: skip


@pytest.mark.slow
def test_what_saturates_a_model_of_messages_is_found(tmp_path: Path) -> None:
    """Many entries leave room for few single times each; all of them ended at moment 0, and the study never did."""
    file = tmp_path / "messages.json"
    save_model(messages(kinds=130), file)
    command = [sys.executable, "-m", "mup", "simulate", str(file), "--json", "--precision", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    found = json.loads(done.stdout)["saturation"]
    assert found["resource"] == "processor cpu"
    assert found["throughput"] == pytest.approx(1 / 0.3, rel=0.05)
    assert found["confirmed"]


SPINS = """
from sim_models import act, choice, clients, entry, exp, model, service
from mup.errors import SimulationError
from simulator import simulate
from simulator.machine.recording import Samples

samples = Samples(256)
for number in range(1000):
    samples.add(0.0, 0.0)
samples.add(1.0, 0.5)
print(len(samples.arrays()[0]) < 256)
entries = [entry(f"e{k}", act("w")) for k in range(129)]
arcs = (choice("s", (1 - 1e-12, 1e-12), "usual", "rare"),)
entries.append(entry("e129", act("s"), act("usual"), act("rare", exp(1.0)), arcs=arcs))
calls = " ".join(f"A.e{k}" for k in range(130))
try:
    simulate(model(clients(1, None, calls), service("A", *entries)), seed=1)
except SimulationError as error:
    print(error.message)
"""


@pytest.mark.slow
def test_a_run_that_never_leaves_moment_0_ends() -> None:
    """Single times are thinned out by their moments: so are those that all ended at 0."""
    here = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", SPINS],
        capture_output=True, text=True, timeout=PATIENCE, check=True, env=os.environ | {"PYTHONPATH": here},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["True", "10000 cycles of a client took no time at all at 0 s"]


def test_messages_of_several_sources_are_compared_with_their_load() -> None:
    """Two sources that only send: what is full first follows from the work that each of them causes."""
    tested = messages(rate=1.0)
    more = replace(tested.task("Tell").entry("tell"), name="also", arrivals=exp(0.5))
    found = saturation(
        tested.with_task(replace(tested.task("Tell"), entries=(tested.task("Tell").entries[0], more)))
    )
    assert found.resource == "processor cpu"
    assert found.throughput == pytest.approx(1 / 0.3, rel=0.02)
    assert found.scale == pytest.approx(1 / 0.9, rel=0.02)


def test_threads_that_are_never_held_have_an_estimate() -> None:
    """A task that answers at once is no station; what it sends waits for the core as in the simulation."""
    tested = messages(rate=2.0)
    found, seen = estimate(tested), simulate(tested, precision=0.005, max_events=3_000_000)
    assert found.converged
    assert found.tasks["Tell"].busy == 0
    assert found.processors["cpu"] == pytest.approx(0.6, abs=1e-6)
    assert agrees(seen.processors["cpu"].utilization, 0.6)
    time = seen.entries["Work.w0"].response_time
    assert time is not None
    assert found.entries["Work.w0"][1] == pytest.approx(time.mean, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_pools_that_only_get_messages_queue_for_their_processor(cores: int) -> None:
    """Two pools share a processor, first come first served: messages of one wait for work of the other."""
    tell = [
        replace(
            entry(f"tell{t}", replace(act("go"), calls=(Call(task=t, entry="w", kind="send"),))),
            arrivals=exp(1.0),
        )
        for t in "AB"
    ]
    tested = model(
        service("Tell", *tell),
        service("A", entry("w", act("w", exp(0.3 * cores))), threads=2, processor="cpu"),
        service("B", entry("w", act("w", exp(0.2 * cores))), threads=2, processor="cpu"),
        processors=(Processor(name="cpu", cores=cores, discipline="fcfs"),),
    )
    found, seen = estimate(tested), simulate(tested, precision=0.005, max_events=3_000_000)
    for name in ("A.w", "B.w"):
        time = seen.entries[name].response_time
        assert time is not None
        assert found.entries[name][1] == pytest.approx(time.mean, rel=0.15)


def test_messages_that_meet_are_doubted() -> None:
    """Two messages of a request reach one core at the same moment, as only the simulation sees: a warning says so."""
    tell = entry("tell", replace(act("go"), calls=tuple(Call(task=t, entry="w", kind="send") for t in "AB")))
    tested = model(
        service("Tell", replace(tell, arrivals=exp(1.0))),
        *(service(name, entry("w", act("w", exp(0.2))), threads=2, processor="cpu") for name in "AB"),
        processors=(ps(),),
    )
    (warning,) = estimate(tested).warnings
    assert warning.startswith("messages sent by 'Tell.tell' meet at processors['cpu'] the work of")
    apart = replace(tested, tasks=(*tested.tasks[:2], replace(tested.tasks[2], processor=None)))
    assert estimate(apart).warnings == ()


def test_clients_that_only_send_are_still_told() -> None:
    """Clients who think of nothing and only send never let time go on: that is an error of the model."""
    tested = messages()
    closed = replace(tested.task("Tell"), entries=(replace(tested.task("Tell").entries[0], arrivals=None),))
    with pytest.raises(Exception, match="took no time"):
        simulate(
            model(
                clients(1, None, "Tell.tell"), *tested.with_task(closed).tasks, processors=tested.processors
            )
        )


@pytest.mark.slow
@pytest.mark.skipif(not ROUTERS.is_file(), reason=f"no {ROUTERS}")
def test_routers_that_only_send(tmp_path: Path) -> None:
    """A foreign model of five sources and 65 tasks: what saturates is known, and the estimate is near."""
    command = [sys.executable, "-m", "mup", "simulate", str(ROUTERS), "--json", "--precision", "0.02"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    document = json.loads(done.stdout)
    assert document["saturation"]["resource"] == "processor WAServer"
    seen, found = document["processors"], estimate(read_model(str(ROUTERS)))
    assert found.converged
    assert any("messages sent by" in warning for warning in found.warnings)
    for name, processor in seen.items():
        assert found.processors[name] == pytest.approx(processor["utilization"]["mean"], rel=0.1)
