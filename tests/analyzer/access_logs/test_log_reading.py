"""Logs as they are found in the world: bad lines, cut ends, coarse clocks, any size."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_cores import Served, exponential, served

from analyzer.access_logs.reading import Source, read_requests
from analyzer.access_logs.resolution import resolution_of
from analyzer.estimation.access_logs import trace_of_requests
from analyzer.estimation.methods import estimate
from analyzer.estimation.reading import read_observations
from analyzer.estimation.samples import Trace
from mup.cli.main import main
from mup.errors import UsageError

MEANS = (0.02, 0.05)


def lines(requests: list[Served], names: tuple[str, ...] = ("GET /a", "POST /b")) -> list[str]:
    """Return the requests as lines of a log."""
    return [f"{1.7e9 + r.end:.6f} {round((r.end - r.begin) * 1e6)} {names[r.kind]} 200" for r in requests]


def station(count: int, load: float, seed: int) -> list[Served]:
    """Two cores at a load, two classes."""
    total = sum(MEANS)
    return served(rates=[load * 2 / total] * 2, draw=exponential(MEANS), cores=2, count=count, seed=seed)


def write(path: Path, text: list[str]) -> Path:
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run ``mup estimate``; return its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as caught:
        main(["estimate", *map(str, words)])
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


def test_bad_lines_are_counted_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An aborted request, an attack and half a line among a thousand good lines change nothing."""
    good = lines(station(1000, 0.6, 1))
    bad = ["1700000000.500 0.000 - - 400", "\\x16\\x03\\x01", "170000"]
    clean = write(tmp_path / "clean.log", good)
    dirty = write(tmp_path / "dirty.log", [*good[:500], *bad, "", *good[500:]])
    found = [json.loads(run(capsys, path, "--cores", 2, "--json")[1]) for path in (clean, dirty)]
    assert found[0]["classes"] == found[1]["classes"]
    assert any(
        "3 of 1003 lines are left out: 3 not in the format; the first is line 501" in note
        for note in found[1]["notes"]
    )


def test_a_hundred_thousand_urls_are_a_few_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paths with ids need no option, no time and no memory."""
    text = [f"{1.7e9 + 0.01 * i:.3f} 0.004 GET /item/{i} 200" for i in range(100_000)]
    code, out, _ = run(capsys, write(tmp_path / "ids.log", text), "--cores", 2, "--json")
    assert code == 0
    assert list(json.loads(out)["classes"]) == ["GET /item/{}"]


def test_too_many_classes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Classes that are really different, and too many, are a question for the user; groups answer it."""
    letters = "bcdfghjkmp"
    words = ["".join(letters[int(d)] for d in f"{i:04d}") for i in range(1200)]
    text = [f"{1.7e9 + 0.01 * i:.3f} 0.004 GET /{w[:2]}/{w[2:]} 200" for i, w in enumerate(words * 40)]
    path = write(tmp_path / "pairs.log", text)
    code, _, err = run(capsys, path, "--cores", 2)
    assert code == 2
    assert "classes of requests" in err
    assert run(capsys, path, "--cores", 2, "--group", "all=.")[0] == 0


@pytest.mark.parametrize("durations", ["0.000", "mixed"])
def test_durations_below_the_clock_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], durations: str
) -> None:
    """A clock that stands still during requests says nothing of them; it is no demand of 0."""
    text = [
        f"{1.7e9 + 0.01 * i:.3f} {'0.001' if durations == 'mixed' and i % 3 == 0 else '0.000'} GET /a 200"
        for i in range(600)
    ]
    code, out, err = run(capsys, write(tmp_path / "n.log", text), "--cores", 1)
    assert (code, out) == (2, "")
    assert "resolution of the clock" in err


@pytest.mark.parametrize(
    ("step", "expected"), [pytest.param(1e-3, 1e-3, id="ms"), pytest.param(1e-6, 1e-6, id="us")]
)
def test_the_step_of_a_clock_is_found(step: float, expected: float) -> None:
    """From durations that are all multiples of it."""
    times = np.random.default_rng(1).exponential(0.05, 1000)
    assert resolution_of(np.round(times / step) * step).step == pytest.approx(expected)
    assert resolution_of(times).step is None


def test_compressed_logs_are_read(tmp_path: Path) -> None:
    """What a rotation has compressed is a log like any other."""
    text = "\n".join(lines(station(200, 0.5, 1))) + "\n"
    path = tmp_path / "access.log.1.gz"
    with gzip.open(path, "wt") as file:
        file.write(text)
    assert len(read_requests(path, Source()).begin) == 200
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UsageError, match="cannot read it"):
        read_requests(path, Source())


@pytest.mark.slow
def test_the_ends_of_a_log_do_not_bias() -> None:
    """Three hundred lines cut out of the middle at 95 % load: the mean error is a third of what it is untreated."""
    biases: dict[str, list[float]] = {"treated": [], "as it is": []}
    for seed in range(40):
        everything = station(1500, 0.95, seed)
        cut = everything[900:1200]
        begin = np.array([r.begin for r in cut])
        end = np.array([r.end for r in cut])
        kind = np.array([r.kind for r in cut])
        order = np.argsort(begin, kind="stable")
        plain = Trace(("a", "b"), kind[order], np.arange(len(cut)), begin[order], end[order])
        from analyzer.estimation.access_logs import window

        treated = Trace(
            plain.classes, plain.kind, plain.owner, plain.start, plain.end, window(plain.start, plain.end)
        )
        for name, trace in (("as it is", plain), ("treated", treated)):
            mine = trace.counts_mask
            from analyzer.estimation.baseline import demands

            true = np.array([cut[i].work for i in order])[mine].sum()
            biases[name].append(float(demands(trace, 2)[mine].sum() / true - 1))
    before, after = (float(np.mean(biases[name])) for name in ("as it is", "treated"))
    assert before > 0.03, "the cut must matter for this test to mean anything"
    assert abs(after) < before / 3


@pytest.mark.slow
def test_demands_of_a_log_are_right(tmp_path: Path) -> None:
    """Two classes at 70 % load of two cores, from an independent simulation: within the interval, within 5 %."""
    path = write(tmp_path / "a.log", lines(station(20_000, 0.7, 3)))
    found = estimate(read_observations(path, threads=float("inf")), cores=2, resamples=200)
    assert found.demand == pytest.approx(MEANS, rel=0.05)
    assert np.all((found.low < MEANS) & (np.array(MEANS) < found.high))


OF_ITSELF = """
import pathlib, re, sys, time
from mup.cli.main import main
try:
    main()
finally:
    status = pathlib.Path("/proc/self/status").read_text()
    print(time.process_time(), re.search(r"VmHWM:\\s+(\\d+)", status)[1], file=sys.stderr)
"""
"""A command that says what it used. ``ru_maxrss`` has what the process was before it became this one, too."""


@pytest.mark.slow
def test_long_logs_take_little_time_and_memory(tmp_path: Path) -> None:
    """Three hundred thousand lines, each with an id of its own: 6 us and 100 bytes per line, as of ten million."""
    path = tmp_path / "long.log"
    rng = np.random.default_rng(1)
    ends = np.cumsum(rng.exponential(0.001, 300_000))
    times = rng.exponential(0.0008, 300_000)
    with path.open("w") as file:
        for i, (end, took) in enumerate(zip(ends.tolist(), times.tolist(), strict=True)):
            file.write(f"{1.7e9 + end:.6f} {round(took * 1e6) + 1} GET /item/{i} 200\n")
    command = [sys.executable, "-c", OF_ITSELF, "estimate", str(path), "--cores", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, kibibytes = map(float, done.stderr.split()[-2:])
    assert json.loads(done.stdout)["classes"]["GET /item/{}"]["samples"] > 290_000
    assert seconds < 5 + 6.0 * 0.3 * 2
    assert kibibytes < 400_000


@pytest.mark.parametrize(
    ("header", "row", "fields"),
    [
        pytest.param("start,end,class", "1,1.5,a", [], id="names"),
        pytest.param("start,duration,class,host", "1,0.5,a,x", [], id="duration"),
        pytest.param("t0,ms,route", "1,500,a", ["start=t0", "duration=ms:ms", "class=route"], id="mapped"),
        pytest.param(
            "at,ms,route",
            "2026-01-31T10:00:01.5Z,500,a",
            ["end=at", "duration=ms:ms", "class=route"],
            id="dates",
        ),
    ],
)
def test_columns_of_other_names_and_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: str, row: str, fields: list[str]
) -> None:
    """A table of requests is read whatever its columns are called."""
    path = write(tmp_path / "r.csv", [header, row])
    words = [word for text in fields for word in ("--field", text)]
    code, out, _ = run(capsys, path, "--cores", 1, "--json", *words)
    assert code == 0
    assert json.loads(out)["classes"]["a"]["demand"]["mean"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--field", "start=t1"], "there is no such column; known: ms, route, t0", id="column"),
        pytest.param(["--field", "x"], "must be ROLE=NAME", id="field"),
        pytest.param(["--log-format", "$request"], "no variable says when", id="format"),
        pytest.param(["--log-format", "json"], "the first line is no JSON object", id="json"),
    ],
)
def test_what_cannot_be_read_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """Mistakes in options name the option."""
    path = write(tmp_path / "r.csv", ["t0,ms,route", "1,500,a"])
    code, out, err = run(capsys, path, "--cores", 1, *words)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_requests_outside_the_window_are_company(tmp_path: Path) -> None:
    """They slow the others down, and are no samples themselves."""
    requests = station(400, 0.8, 5)
    path = write(tmp_path / "a.log", lines(requests))
    trace = trace_of_requests(read_requests(path, Source()), float("inf"))
    inside = int(trace.counts_mask.sum())
    assert inside < 400
    found = estimate(trace, cores=2, resamples=100)
    assert found.samples.sum() == inside
    assert any("only count as company" in note for note in found.notes)
