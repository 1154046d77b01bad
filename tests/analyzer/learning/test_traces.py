"""Traces are checked when they are made, and survive being written and read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer.learning.trace_files import read_traces, write_traces
from analyzer.learning.traces import Traces, require_closed
from mup.errors import UsageError


def arrays(traces: int = 4) -> dict[str, Any]:
    """Clients move from A to B, and have been served there half of the time."""
    moved = np.linspace(0.0, 3.0, 5)
    x = np.stack([np.stack([5 + r - moved, moved], axis=1) for r in range(traces)])
    busy = np.zeros_like(x)
    busy[:, 1:] = np.cumsum(np.full((traces, 4, 2), 0.05), axis=1)
    return {
        "x": x,
        "dt": 0.1,
        "names": ("A", "B"),
        "servers": np.array([math.inf, 2.0]),
        "busy": busy,
    }


def changed(field: str, where: tuple[int, ...], value: float) -> dict[str, Any]:
    data = arrays()
    data[field] = data[field].copy()
    data[field][where] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            arrays() | {"x": np.ones((4, 5))}, "shape (traces, samples, stations), got (4, 5)", id="shape"
        ),
        pytest.param(arrays() | {"dt": 0.0}, "dt: must be a number of seconds > 0, got 0.0", id="dt"),
        pytest.param(arrays() | {"names": ("A", "A")}, "names: must be different", id="same-names"),
        pytest.param(arrays() | {"names": ("A", "B", "C")}, "3 names for 2 stations", id="names"),
        pytest.param(changed("x", (1, 2, 0), -1.0), "-1 (trace 1, sample 2, station 'A')", id="negative"),
        pytest.param(changed("x", (1, 2, 0), math.nan), "nan (trace 1, sample 2, station 'A')", id="nan"),
        pytest.param(arrays() | {"servers": np.array([1.0])}, "servers: must be 2 numbers", id="servers"),
        pytest.param(
            arrays() | {"servers": np.array([1.5, 2])}, "whole numbers >= 1, or inf", id="half-a-server"
        ),
        pytest.param(changed("busy", (0, 4, 1), 0.0), "cannot fall", id="busy-falls"),
        pytest.param(changed("busy", (0, 4, 1), 9.0), "more server-seconds", id="busy-too-much"),
    ],
)
def test_unsound_traces_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Traces(**data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(arrays(3), "3 traces are too few", id="few"),
        pytest.param(
            changed("x", (2, 3, 1), 9.0), "do not in trace 2 (from 7 to 13.75 in trace 2)", id="not-conserved"
        ),
        pytest.param(arrays() | {"x": np.ones((4, 5, 2))}, "nothing moves in any trace", id="constant"),
    ],
)
def test_a_closed_network_needs_more(data: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_closed(Traces(**data))
    assert message in str(caught.value)


def test_all_problems_are_named_at_once() -> None:
    data = arrays() | {"dt": -1.0, "servers": np.array([0.0, 2.0])}
    with pytest.raises(UsageError, match=r"2 problems\n  dt: .*\n  servers: "):
        Traces(**data)


def same(one: Traces, other: Traces) -> bool:
    arrays_equal = all(np.array_equal(getattr(one, f), getattr(other, f)) for f in ("x", "servers", "busy"))
    return arrays_equal and one.names == other.names and one.dt == pytest.approx(other.dt)


def test_npz_round_trip(tmp_path: Path) -> None:
    traces = Traces(**arrays())
    write_traces(tmp_path / "t.npz", traces)
    assert same(read_traces(tmp_path / "t.npz"), traces)
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]


def test_csv_says_the_same_as_npz(tmp_path: Path) -> None:
    traces = Traces(**arrays())
    lines = ["trace,time,A,B,busy:A,busy:B", "servers,,inf,2"]
    assert traces.busy is not None
    for r, (x, busy) in enumerate(zip(traces.x, traces.busy, strict=True)):
        lines += [f"{r},{0.1 * h!r},{x[h, 0]!r},{x[h, 1]!r},{busy[h, 0]!r},{busy[h, 1]!r}" for h in range(5)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
    assert same(read_traces(file), traces)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("t.txt", "x", "cannot tell what kind of traces this is", id="suffix"),
        pytest.param("t.npz", "no archive", "is not a file of numpy arrays", id="no-npz"),
        pytest.param("t.csv", "", "is empty", id="empty"),
        pytest.param("t.csv", "A,B\n1,2\n", "the columns must be trace, time", id="columns"),
        pytest.param(
            "t.csv", "trace,time,A\n0,0,x\n", "line 2, column A: must be a number, got 'x'", id="text"
        ),
        pytest.param("t.csv", "trace,time,A\n0,0,1,2\n", "line 2: 4 cells, but 3 columns", id="cells"),
        pytest.param("t.csv", "trace,time,A\n0,0,1\n0,1,1\n1,0,1\n", "trace '1' has 1 samples", id="uneven"),
        pytest.param("t.csv", "trace,time,A\n0,0,1\n0,1,1\n0,3,1\n", "ascend in equal steps", id="steps"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError) as caught:
        read_traces(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert message in str(caught.value)


def test_an_archive_without_traces_says_what_belongs_in_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", dt=0.1)
    with pytest.raises(UsageError, match="has no x and no names") as caught:
        read_traces(tmp_path / "t.npz")
    assert "mean queue lengths (traces, samples, stations)" in caught.value.hint


def test_halves_are_disjoint_and_reproducible() -> None:
    traces = Traces(**arrays(9))
    learned, held = traces.split(seed=3)
    assert sorted([*learned.populations, *held.populations]) == sorted(traces.populations)
    assert same(traces.split(seed=3)[1], held)
