"""A thinned run keeps whole cycles, as many in each round, and says how many each stands for."""

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from analyzer.calibration.rundir import Part, PartInfo, Phase, Run, RunInfo, Window
from analyzer.calibration.thinning import thinned
from mup.events.reader import DTYPE, Log
from mup.events.record import Event

SECOND = 10**9
CYCLES: dict[Phase, int] = {"hot": 200, "cold": 6}
"""Per round of a second."""
ROUNDS: list[Phase] = ["hot", "cold", "hot", "cold"]


def log(role: str, records: list[tuple[int, int, int]]) -> Log:
    """Return a log of records with a trace, a time and an event."""
    rows: npt.NDArray[np.void] = np.zeros(len(records), DTYPE)
    for row, (trace, at, event) in zip(rows, records, strict=True):
        row["trace"], row["time"], row["event"] = trace, at, event
    return Log({"role": role}, {}, {}, rows, truncated=False, path=Path(role))


@pytest.fixture
def run() -> Run:
    """Four rounds; a cycle has two records of the client and three of a worker."""
    client, worker, windows = [], [], []
    for number, phase in enumerate(ROUNDS):
        start = number * SECOND
        windows.append(Window(start, start + SECOND - 1, phase=phase, cycles=CYCLES[phase]))
        for cycle in range(CYCLES[phase]):
            trace = 1000 * (number + 1) + cycle
            at = start + cycle * (SECOND // CYCLES[phase])
            client += [(trace, at, Event.BEGIN), (trace, at + 9, Event.DONE)]
            worker += [(trace, at + 1, Event.BEGIN), (trace, at + 2, Event.END), (trace, at + 3, Event.DONE)]
    # A cycle between two rounds, and what no client asked for.
    client.append((7, 4 * SECOND + 5, Event.BEGIN))
    worker.append((8, 5, Event.BEGIN))
    info = PartInfo(windows=windows)
    part = Part(Path(), info, (log("client", client), log("worker", worker)))
    return Run(Path(), RunInfo(project="p", parts=[info]), (part,), (Path(),))


def test_kinds_of_rounds_are_thinned_each_by_its_own_size(run: Run) -> None:
    """Hot rounds lose three of four cycles, cold ones nothing; no round is lost."""
    found = thinned(run, 500)
    assert [part.info.sample for part in found.parts] == [4, 1]
    assert [[w.phase for w in part.windows] for part in found.parts] == [["hot"] * 2, ["cold"] * 2]
    assert len(found.windows) == len(run.windows)
    for part in found.parts:
        for window in part.windows:
            (client, worker) = (one.records for one in part.logs)
            begun = client[(client["event"] == Event.BEGIN) & (client["time"] >= window.start)]
            begun = begun[begun["time"] <= window.end]
            assert len(begun) == window.cycles / part.info.sample
            # Whole cycles: what they caused is there, too.
            for trace in begun["trace"]:
                assert (client["trace"] == trace).sum() == 2
                assert (worker["trace"] == trace).sum() == 3


def test_a_short_run_stays_whole(run: Run) -> None:
    """But for what belongs to no round."""
    found = thinned(run, 10**6)
    assert {part.info.sample for part in found.parts} == {1}
    cycles = sum(CYCLES[phase] for phase in ROUNDS)
    assert sum(len(one.records) for part in found.parts for one in part.logs) == 5 * cycles


def test_a_sampled_run_is_thinned_further(run: Run) -> None:
    """One in ten of one in four is one in forty."""
    (part,) = run.parts
    info = msgspec.structs.replace(part.info, sample=10)
    sampled = Run(run.path, run.info, (Part(part.path, info, part.logs),), run.directories)
    assert [p.info.sample for p in thinned(sampled, 500).parts] == [40, 10]
