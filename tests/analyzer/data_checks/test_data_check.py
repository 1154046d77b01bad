"""``mup data check`` finds what would make results wrong, and is content with sound data."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mup.cli.main import main


def check(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit code and document."""
    with pytest.raises(SystemExit) as caught:
        main(["data", "check", *map(str, words), "--json"])
    assert isinstance(caught.value.code, int)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return caught.value.code, found


def problems(found: dict[str, Any]) -> list[str]:
    """Return the texts of all problems."""
    return [f["text"] for f in found["findings"] if f["state"] == "problem"]


def log(
    tmp_path: Path,
    *,
    count: int = 3000,
    work: Callable[[int], float] = lambda _: 0.02,
    moment: Callable[[int, float], float] = lambda _, now: now,
    form: str = "{:.6f} {:.6f} GET /a 200",
    seed: int = 1,
) -> Path:
    """Write the log of a single server that serves in order of arrival, half of the time."""
    rng = random.Random(seed)
    arrival = free = 0.0
    lines = []
    for i in range(count):
        arrival += rng.expovariate(25.0)
        free = max(free, arrival) + rng.expovariate(1 / work(i))
        lines.append(form.format(1.7e9 + moment(i, free), free - arrival))
    path = tmp_path / "access.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_sound_data_are_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No finding but ok, and the half-width that so many samples have."""
    code, found = check(capsys, log(tmp_path))
    assert code == 0
    assert {f["state"] for f in found["findings"]} == {"ok"}
    assert found["facts"]["per second"] == pytest.approx(25, rel=0.1)
    one = found["samples"]["GET /a"]
    assert 0.02 < one["half_width"] < 0.2
    # Four times the samples halve an interval.
    assert one["needed"] == pytest.approx(one["samples"] * (one["half_width"] / 0.05) ** 2, rel=0.01)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        pytest.param(
            {"form": "{:.6f} {:.0f}.000 GET /a 200"}, "all durations are 0", id="clock stands still"
        ),
        pytest.param({"form": "{:.0f} {:.3f} GET /a 200"}, "moments are whole seconds", id="whole seconds"),
        pytest.param(
            {"moment": lambda i, now: now - (50.0 if i > 1500 else 0.0)},
            "a clock was set back",
            id="clock set back",
        ),
    ],
)
def test_clocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], part: str
) -> None:
    """What a clock does wrong is found, and the exit code says so."""
    code, found = check(capsys, log(tmp_path, **options))
    assert code == 1
    assert any(part in text for text in problems(found))


def test_a_demand_that_drifts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests that take twice as long at the end have no one demand; more of them would not help."""
    path = log(tmp_path, work=lambda i: 0.01 * (1 + i / 3000))
    code, found = check(capsys, path, "--cores", 1)
    assert code == 1
    assert any("the mean demand of GET /a changes by +6" in text for text in problems(found)), problems(found)
    code, found = check(capsys, log(tmp_path), "--cores", 1)
    assert code == 0


@pytest.mark.parametrize("seed", range(20))
def test_false_alarms_are_rare(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """Steady data of any seed have no problem."""
    assert check(capsys, log(tmp_path, count=1500, seed=seed), "--cores", 1)[0] == 0


GOOD = "clients,response_time,throughput\n5,0.145,4.37\n5,0.144,4.37\n12,0.176,10.2\n12,0.175,10.2\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param(GOOD, "", id="sound"),
        pytest.param(
            GOOD.replace("0.14", "14").replace("0.17", "17"), "are times in milliseconds", id="milliseconds"
        ),
        pytest.param(GOOD.replace("10.2", "102"), "in the system at once", id="tenfold throughput"),
        pytest.param(GOOD.replace("10.2", "5.1"), "which no setting explains", id="half the throughput"),
        pytest.param(
            "clients,think,response_time,throughput\n5,2.0,0.145,4.37\n5,2.0,0.144,4.37\n",
            "5 clients with 2 s of think time",
            id="think time",
        ),
        pytest.param(
            "clients,response_time,throughput,tasks.B.utilization\n5,0.145,4.37,43\n",
            "it must be a share, 0 to 1",
            id="percent",
        ),
    ],
)
def test_trials_obey_laws(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, part: str) -> None:
    """One or two rows per configuration are enough for Little's law to catch a wrong unit."""
    path = tmp_path / "trials.csv"
    path.write_text(text)
    code, found = check(capsys, path)
    assert (code, bool(problems(found))) == ((1, True) if part else (0, False)), found["findings"]
    assert not part or any(part in one for one in problems(found)), problems(found)


def test_windows_obey_the_utilization_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two classes of 20 and 50 ms explain the utilization; a response time in another unit does not fit."""
    rng = random.Random(1)
    rows = []
    for _ in range(100):
        a, b = rng.uniform(5, 15), rng.uniform(2, 8)
        rows.append(f"{(0.02 * a + 0.05 * b) / 2 * rng.uniform(0.97, 1.03)},{a},{b},0.00003,0.2")
    path = tmp_path / "w.csv"
    header = "utilization,throughput_a,throughput_b,response_time_a,response_time_b\n"
    path.write_text(header + "\n".join(rows))
    code, found = check(capsys, path, "--cores", 2)
    assert code == 1
    assert [text for text in problems(found) if not text.startswith("a: the mean response time")] == []
    assert found["samples"]["b"]["half_width"] < 0.05
    path.write_text(header + "\n".join(row.replace("0.00003", "0.03") for row in rows))
    assert check(capsys, path, "--cores", 2)[0] == 0


def test_people_read_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Findings and numbers of samples, in words."""
    with pytest.raises(SystemExit) as caught:
        main(["data", "check", str(log(tmp_path)), "--precision", "0.02"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "Little's law" in out
    assert "needed for +- 2 %" in out


def test_what_is_no_data_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of anything else, and options out of range."""
    path = tmp_path / "x.txt"
    path.write_text("hello\n")
    for words in ([path], [path, "--precision", "5"], [path, "--cores", "0"], [tmp_path / "none"]):
        with pytest.raises(SystemExit) as caught:
            main(["data", "check", *map(str, words)])
        assert caught.value.code == 2
        assert capsys.readouterr().err.startswith("mup: error: ")
