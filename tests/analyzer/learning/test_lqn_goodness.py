"""A layered model that does not explain its traces is noticed, and one that does is not blamed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from layered_systems import ZERO, act, chain, without_times
from service_systems import SERVICES, observe

from analyzer.learning.trace_files import write_traces
from analyzer.learning.traces import Traces
from mup.cli.main import main
from mup.lqn import Model, Processor, Task, save_model

TRACES, RUNS, CLIENTS = 30, 40, 24


def two_layers() -> Model:
    """Clients think half a second and call B, which has 4 threads and takes 0.1 s."""
    cycle = chain("cycle", act("think", 0.5), act("ask", 0.0, "B.serve"))
    return Model(
        name="two-layers",
        processors=(Processor(name="P", cores=8),),
        tasks=(
            Task(name="A", role="reference", threads=CLIENTS, think=ZERO, entries=(cycle,)),
            Task(
                name="B",
                threads=4,
                processor="P",
                admission="random",
                entries=(chain("serve", act("work", 0.1)),),
            ),
        ),
    )


def observed(service: str) -> Traces:
    """The same system event by event: who thinks, is served, waits; means of the runs."""
    at_b = np.random.default_rng(5).integers(0, CLIENTS + 1, TRACES)
    each = observe(
        np.repeat(np.column_stack((CLIENTS - at_b, at_b)), RUNS, axis=0),
        rates=(2.0, 10.0),
        servers=(np.inf, 4),
        routing=((0, 1), (1, 0)),
        names=("A", "B"),
        draw=SERVICES[service],
        runs=1,
        samples=61,
        dt=0.05,
        seed=6,
    ).x
    served = np.minimum(each[:, :, 1], 4)
    split = np.stack((each[:, :, 0], served, each[:, :, 1] - served), axis=2)
    x = split.reshape(TRACES, RUNS, *split.shape[1:]).mean(axis=1)
    return Traces(
        x=x, dt=0.05, names=("A.cycle:think", "B.serve:work", "B.serve:(waiting)"), runs=np.array(RUNS)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("service", "code"), [("exponential", 0), ("constant", 1)])
def test_times_that_do_not_hold_end_with_an_alarm(
    service: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With constant services times were up to a third off without a word."""
    save_model(without_times(two_layers(), "A", "B"), tmp_path / "model.json")
    write_traces(tmp_path / "t.npz", observed(service))
    with pytest.raises(SystemExit) as end:
        main(["learn", "lqn", str(tmp_path / "model.json"), str(tmp_path / "t.npz"), "--json"])
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["goodness"]["runs_known"]
    assert document["goodness"]["holds"] == (code == 0)
    assert end.value.code == code
    assert ("Services are not exponential" in printed.err) == (code == 1)
