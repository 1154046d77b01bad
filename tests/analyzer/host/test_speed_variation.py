"""Variation of a machine's speed from its history, and what of it does not count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from analyzer.host.speed_variation import PRIOR, SOON, Variance, selected, variation
from mup.workload.machine import Identity
from mup.workload.speed_history import SpeedRecord

HERE = Identity(hostname="here", kernel="6.1", cpu="Some CPU", cores=2)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
HOUR = 3600.0


def at(seconds: float, speed: float = 2000.0, **changes: Any) -> SpeedRecord:
    """A window of its own run that ended so many seconds after the beginning of the history."""
    plain = SpeedRecord(
        time=datetime.fromtimestamp(BEGIN + seconds, UTC), since_boot=1000 + seconds, boot="now", machine=HERE,
        kind="load", run=f"run {seconds}", seconds=20.0, monitored=speed,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def use(
    *records: SpeedRecord, slowness: Callable[[float], float] = lambda _: 1.0
) -> tuple[list[float], tuple[str, ...]]:
    """Return the speeds of the runs that count, and what was left out."""
    found = selected(records, HERE, "now", BEGIN - 1000, slowness)
    return [math.exp(run.monitored or 0.0) for run in found.runs], found.notes


def test_a_later_run_differs_by_the_variance_of_two() -> None:
    """Runs that are hours apart, with a standard deviation of 10 %, differ by 14 %; 99 differences have 99 degrees."""
    generator = np.random.default_rng(1)
    records = [at(HOUR * k, 2000 * math.exp(0.1 * float(generator.normal()))) for k in range(100)]
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    assert found.later.freedom == PRIOR.freedom + 99
    assert found.later.sd == pytest.approx(0.1 * math.sqrt(2), rel=0.15)
    assert found.soon.value <= found.later.value
    assert found.runs == 100


def test_what_follows_at_once_differs_less() -> None:
    """Speed that changes slowly: a run minutes after the exploration is like it, one hours later is not."""
    generator = np.random.default_rng(2)
    records = []
    for k in range(40):
        level = 0.15 * float(generator.normal())
        records += [
            at(6 * HOUR * k + 60 * i, 2000 * math.exp(level + 0.01 * float(generator.normal())))
            for i in range(4)
        ]
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    assert found.later.sd == pytest.approx(0.15 * math.sqrt(2), rel=0.25)
    assert found.later.freedom == PRIOR.freedom + 39
    assert found.soon.sd < 0.25 * found.later.sd
    assert found.after(SOON) == found.soon
    assert found.after(SOON + 1) == found.after(None) == found.later


def test_without_a_history_the_prior_counts_and_says_so() -> None:
    """Its degrees of freedom are few, so a few runs of the machine itself soon count for more."""
    nothing = variation((), BEGIN)
    assert (nothing.soon, nothing.later, nothing.runs) == (PRIOR, PRIOR, 0)
    assert (
        "it has no history of its own, so its spread is taken from runs on a shared virtual machine"
        in nothing.source(None)
    )
    steady = [at(HOUR * k) for k in range(3)]
    few = variation(selected(steady, HERE, "now", BEGIN - 1000).runs, BEGIN + 3 * HOUR)
    assert few.later.value == pytest.approx(PRIOR.value * 4 / 6)
    assert "varied by 0 % today (3 runs in its history); so few that" in few.source(None)
    many = variation(
        selected([at(HOUR * k) for k in range(30)], HERE, "now", BEGIN - 1000).runs, BEGIN + 99 * HOUR
    )
    assert many.later.sd < 0.06
    assert many.source(None) == "its speed varied by 0 % since 2026-02-28 (30 runs in its history)"


def test_later_is_never_surer_than_soon() -> None:
    """What changes within minutes changes within hours."""
    jumping = [at(60 * k, 2000 * (1.5 if k % 2 else 1.0)) for k in range(8)]
    jumping += [at(HOUR * 50 + 60 * k, 2000 * (1.5 if k % 2 else 1.0)) for k in range(8)]
    found = variation(selected(jumping, HERE, "now", BEGIN - 1000).runs, BEGIN)
    assert found.later == found.soon
    assert found.later.value > PRIOR.value


def test_windows_of_one_run_are_one_run() -> None:
    """A run's speed is that at which all its work was done; its windows say how much it varies within."""
    found = selected([at(0, 1000, run="a"), at(20, 3000, run="a")], HERE, "now", BEGIN - 1000)
    (run,) = found.runs
    assert math.exp(run.monitored or 0) == pytest.approx(1500)
    assert run.seconds == 40
    assert variation(found.runs, BEGIN).within.freedom == 0, "one difference says too little"


def test_short_runs_of_a_restless_machine_do_not_make_long_ones_uncertain() -> None:
    """Speed that changes from second to second: what a long run is like is known, however short runs differ."""
    generator = np.random.default_rng(3)
    noise = 0.3  # of the mean over one second

    def window(when: float, run: str, seconds: float) -> SpeedRecord:
        speed = 2000 * math.exp(noise / math.sqrt(seconds) * float(generator.normal()))
        return msgspec.structs.replace(at(when, speed, run=run), seconds=seconds)

    records = [window(3 * k, "explored", 3.0) for k in range(300)]
    records += [window(HOUR * k, f"load {k}", 6.0) for k in range(1, 60)]
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    assert found.within.sd == pytest.approx(noise, rel=0.15)
    # Of two loads of 6 s it is 0.17, which every run was allowed before.
    assert found.later.sd < 0.08
    minute, moment = found.between(None, 60.0, 120.0), found.between(None, 6.0, 120.0)
    assert noise * math.sqrt(1 / 60 + 1 / 120) < minute.sd < 0.09
    assert moment.sd == pytest.approx(noise * math.sqrt(1 / 6 + 1 / 120), rel=0.2)
    assert minute.freedom == moment.freedom == found.later.freedom


def test_slow_changes_remain_when_fast_ones_are_taken_off() -> None:
    """A machine whose hours differ and whose seconds do is not steady, however long a run is."""
    generator = np.random.default_rng(4)
    records = []
    for k in range(60):
        level = 0.1 * float(generator.normal())
        for i in range(5):
            speed = 2000 * math.exp(level + 0.1 * float(generator.normal()))
            window = at(HOUR * k + 4 * i, speed, run=f"load {k}")
            records.append(msgspec.structs.replace(window, seconds=4.0))
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    assert found.within.sd == pytest.approx(0.2, rel=0.15)
    assert found.later.sd == pytest.approx(0.1 * math.sqrt(2), rel=0.2)


def test_idling_is_not_counted_twice() -> None:
    """Speeds are those of the busy machine: what utilization explains does not vary."""
    records = [at(0, 1000.0, utilization=0.1), at(HOUR, 2000.0, utilization=0.9)]
    assert use(*records, slowness=lambda u: 2.0 if u < 0.5 else 1.0)[0] == pytest.approx([2000.0, 2000.0])
    assert use(*records)[0] == pytest.approx([1000.0, 2000.0])


def test_what_others_used_or_withheld_does_not_count() -> None:
    """A probe taken under load is recognised, left out, and that is said."""
    speeds, notes = use(
        at(0), at(HOUR, 900, disturbed="other programs used 40 %"), at(2 * HOUR, 800, stolen=0.2)
    )
    assert speeds == pytest.approx([2000.0])
    assert [n for n in notes if n.startswith("2 records of the speed history left out: other programs used")]


def test_the_history_of_another_machine_does_not_count() -> None:
    """Another processor or name is another machine, whatever file its records got into."""
    speeds, notes = use(at(0), at(HOUR, 900, machine=replace(HERE, cpu="Faster CPU")))
    assert speeds == pytest.approx([2000.0])
    assert "1 record of the speed history left out: of another machine (here;" in notes[0]


def test_a_container_that_moved_is_on_another_machine() -> None:
    """A host that was running when this one was already is no earlier start of it; one that ended before is."""
    before = at(-2000, 1900, boot="earlier", since_boot=5.0)
    beside = at(500, 900, boot="other", since_boot=77_000.0)
    speeds, notes = use(before, beside, at(HOUR))
    assert speeds == pytest.approx([1900.0, 2000.0])
    assert "1 record of the speed history left out: taken on another host of this name" in notes[0]


def test_a_clock_that_went_back_is_noticed() -> None:
    """Records are ordered by the clock since the start of the machine; those without one are left out."""
    wrong = at(2 * HOUR, 1900, time=datetime.fromtimestamp(BEGIN - 99 * HOUR, UTC))
    found = selected([at(0), at(HOUR), wrong, at(3 * HOUR)], HERE, "now", BEGIN - 1000)
    assert [round(run.at - BEGIN) for run in found.runs] == [-10, 3590, 7190, 10790]
    assert "the clock was set back or forth while 1 record" in found.notes[0]
    lost = [at(0, boot=""), at(-HOUR, 1900, boot=""), at(HOUR, boot="")]
    found = selected(lost, HERE, "", BEGIN - 1000)
    assert len(found.runs) == 2
    assert "left out" in found.notes[0]


def test_probes_and_monitors_are_not_compared_with_each_other() -> None:
    """Two runs differ by what the same means says of both."""
    records = [at(0), at(HOUR, monitored=None, probed=1000.0), at(2 * HOUR, monitored=None, probed=1100.0)]
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    expected = Variance(math.log(1.1) ** 2, 1).with_(PRIOR)
    assert found.later.value == pytest.approx(expected.value)
    assert found.later.freedom == expected.freedom


def test_old_runs_do_not_count_for_ever() -> None:
    """The newest 500 do: a machine that was restless last year and is steady now is steady."""
    records = [at(HOUR * k, 2000 * (1.3 if k % 2 and k < 100 else 1.0)) for k in range(600)]
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    assert found.runs == 500
    assert found.later.sd < 0.02


def test_what_drifts_within_minutes_is_not_told_by_neighbours() -> None:
    """Runs of a few seconds, one after the other, are like each other; one minutes later is not like the first."""
    generator = np.random.default_rng(5)
    records = []
    for k in range(40):
        level, drift = 0.15 * float(generator.normal()), 0.1 * float(generator.normal())
        # From -1 to 1 in nine minutes: the mean square of the difference of two runs is 2 / 3 drift ** 2.
        records += [
            at(6 * HOUR * k + 20 * i, 2000 * math.exp(level + drift * (i - 13) / 13)) for i in range(27)
        ]
    found = variation(selected(records, HERE, "now", BEGIN - 1000).runs, BEGIN)
    # 500 of the 1080 runs count: 19 stretches.
    assert found.soon.freedom == PRIOR.freedom + 19
    drifted = (found.soon.value * found.soon.freedom - PRIOR.value * PRIOR.freedom) / 19
    assert math.sqrt(drifted) == pytest.approx(0.1 * math.sqrt(2 / 3), rel=0.35)
