"""The running example of Garbi's thesis (Fig. 25) has an independent simulation's figures.

The reference file is not part of the repository: ``MUP_REFERENCE_DIR`` names the folder that holds
``models/running-example.json``.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from sim_models import ZERO, act, clients, entry, exp, fork, join, model, service

from mup.lqn import Constant, Model
from mup.lqn.edits import with_clients
from simulator import Figure, simulate

REFERENCE = Path(os.environ.get("MUP_REFERENCE_DIR", Path(__file__).parents[3] / "shared"))


def running_example(users: int) -> Model:
    """Fig. 25 with the values of Table 2, exponential times, pools of 5 and 2 threads."""
    body = entry(
        "/epA/",
        act("init"),
        act("reg_4", delay=exp(0.006)), act("comm_4", calls="Net.exchange_4 B./epB/"), act("cont_4"), act("mid"),
        act("reg_6", delay=exp(0.007)), act("comm_6", calls="db.qry"), act("cont_6"), act("comp_8", exp(0.004)),
        arcs=(
            fork("init", "cont_4", "reg_4"), *_then("reg_4", "comm_4"), join("mid", "cont_4", "comm_4"),
            fork("mid", "cont_6", "reg_6"), *_then("reg_6", "comm_6"), join("comp_8", "cont_6", "comm_6"),
        ),
    )  # fmt: skip
    return model(
        clients(users, exp(1.0), "A./epA/"),
        service("A", body, threads=5),
        service("B", entry("/epB/", act("comp_14", exp(0.009))), threads=2),
        service("Net", entry("exchange_4", act("exchange", ZERO, delay=exp(0.005)))),
        service("db", entry("qry", act("query", ZERO, delay=exp(0.012)))),
    )


def _then(first: str, second: str) -> tuple[Any, ...]:
    from sim_models import seq

    return seq(first, second)


def _rows() -> list[dict[str, Any]]:
    file = REFERENCE / "models" / "running-example.json"
    if not file.exists():
        pytest.skip(f"no reference data: {file} does not exist (set MUP_REFERENCE_DIR)")
    rows: list[dict[str, Any]] = json.loads(file.read_text())["reference"]["rows"]
    return rows


def test_single_user_needs_43_ms() -> None:
    """With constant times of Table 2 one user's cycle takes 6+5+9 + 7+12 + 4 = 43 ms exactly."""
    one = running_example(1)
    constant = _with_constant_times(one)
    result = simulate(constant, horizon=300)
    assert result.cycle.response_time.mean == pytest.approx(0.043, rel=1e-9)
    assert result.entries["A/epA/"].response_time is not None
    assert result.entries["db.qry"].response_time is not None
    assert result.entries["db.qry"].response_time.mean == pytest.approx(0.012, rel=1e-9)


def _with_constant_times(tested: Model) -> Model:
    from dataclasses import replace

    def fixed(time: Any) -> Constant | None:
        return None if time is None else Constant(time.mean)

    tasks = tuple(
        replace(
            task,
            think=fixed(task.think),
            entries=tuple(
                replace(
                    e,
                    activities=tuple(
                        replace(a, demand=fixed(a.demand), delay=fixed(a.delay)) for a in e.activities
                    ),
                )
                for e in task.entries
            ),
        )
        for task in tested.tasks
    )
    return replace(tested, tasks=tasks)


@pytest.mark.parametrize("users", [1, 32, 112, 128])
def test_agrees_with_reference_simulation(users: int) -> None:
    """Throughput, response time and busy threads lie within 4 joint standard errors of the reference."""
    rows = [r for r in _rows() if r["clients"] == users]
    if not rows:
        pytest.skip(f"the reference has no row for {users} clients")
    row = rows[0]
    result = simulate(with_clients(running_example(1), users), precision=0.03, seed=users)
    pairs = [
        ("throughput", result.cycle.throughput, row["throughput"]),
        ("response time", result.cycle.response_time, row["response_time"]),
        ("A busy", result.tasks["A"].busy, row["tasks"]["A"]["busy"]),
        ("B busy", result.tasks["B"].busy, row["tasks"]["B"]["busy"]),
    ]
    for name, mine, theirs in pairs:
        assert _joint(mine, theirs) <= 4, f"{name}: {mine}, reference {theirs}"
    assert result.warnings == ()


def _joint(mine: Figure, theirs: dict[str, float]) -> float:
    """Distance in joint standard errors; 8 seeds: t(7) = 2.36, ours: about 2.03."""
    error = math.hypot(mine.ci95 / 2.03, theirs["ci95"] / 2.36)
    return abs(mine.mean - theirs["mean"]) / error
