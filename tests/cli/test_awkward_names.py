"""Commands find, and tell apart, elements whose names look alike once they stand in one text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import activity, entry, model, run, saved, users

from mup.lqn import Call, Processor, Replicate, Task, Uncertainty, load_model

FAST = ("--precision", "0.1", "--no-difference", "--no-saturation")


def alike(tmp_path: Path) -> str:
    """Save a model with task ``A.b`` and entry ``c`` beside task ``A`` and entry ``b.c``; return the file."""
    calls = (Call(task="A", entry="b.c"), Call(task="A.b", entry="c"))
    tested = model(
        users(*calls, clients=2, think=1.0),
        Task(name="A", threads=2, processor="host", entries=(entry("b.c", activity("w -> x", 0.05)),)),
        Task(name="A.b", threads=3, processor="host", entries=(entry("c", activity("w -> x", 0.2)),)),
        processors=(Processor(name="host", cores=8),),
    )
    replicates = tuple(
        Replicate(demands={'"A"."b.c":"w -> x"': 1 + f, '"A.b"."c":"w -> x"': 1 + f})
        for f in (-0.2, -0.1, 0.1, 0.2)
    )
    return saved(tmp_path, replace(tested, uncertainty=Uncertainty(replicates=replicates)))


def test_results_have_both(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each entry has its own response time; in one text they would have shared it."""
    code, out, err = run(capsys, "simulate", alike(tmp_path), "--precision", "0.05", "--json")
    assert code == 0, err
    entries = json.loads(out)["entries"]
    assert entries['"A"."b.c"']["response_time"]["mean"] == pytest.approx(0.05, rel=0.1)
    assert entries['"A.b"."c"']["response_time"]["mean"] == pytest.approx(0.2, rel=0.1)


def test_predictions_blame_the_right_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The calibration error of the slow entry is the one to measure; the file keeps both."""
    file = alike(tmp_path)
    assert load_model(file).uncertainty is not None
    code, out, err = run(capsys, "whatif", file, "--clients", "2", *FAST, "--duration", "1000000", "--json")
    assert code == 0, err
    prediction = json.loads(out)["baseline"]["prediction"]
    assert '"A.b"."c"' in prediction["advice"]
    assert prediction["response_time"]["parts"]["calibration"] > 0


def test_a_text_that_can_be_both_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The message shows what to write instead, and that works."""
    file = alike(tmp_path)
    code, _, err = run(capsys, "whatif", file, "--calls", "U.cycle:go->A.b.c=2", *FAST)
    assert code == 2
    assert '"A"."b.c"' in " ".join(err.split())
    assert '"A.b"."c"' in " ".join(err.split())
    code, out, err = run(capsys, "whatif", file, "--calls", 'U.cycle:go->"A.b"."c"=2', *FAST, "--json")
    assert code == 0, err
    times = [json.loads(out)[key] for key in ("baseline",)] + json.loads(out)["scenarios"]
    means = [t.get("result", t)["cycle"]["response_time"]["mean"] for t in times]
    assert means[1] - means[0] == pytest.approx(0.2, rel=0.3)


def test_names_are_no_emoji(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A name between colons is printed as it is, in tables, sentences and lists of paths."""
    tested = model(
        users(Call(task=":fire:", entry="e"), clients=2, think=1.0),
        Task(name=":fire:", threads=2, processor="host", entries=(entry("e", activity("w", 0.05)),)),
        processors=(Processor(name="host", cores=8),),
    )
    code, out, err = run(capsys, "whatif", saved(tmp_path, tested), "--pool", ":fire:=3", *FAST)
    assert code == 0, err
    assert [line for line in err.splitlines() if line.startswith("simulated:") and ":fire:" in line]
    assert ":fire:" in out
    source = (
        'from mup import EP, MS\nclass A(MS):\n    @EP("/:fire:")\n    def a(self, comm): comm.respond(1)\n'
    )
    (tmp_path / "app.py").write_text(source, encoding="utf-8")
    code, paths, findings = run(capsys, "paths", str(tmp_path / "app.py"))
    assert "/:fire:" in paths, findings
    assert "\N{FIRE}" not in out + err + paths
