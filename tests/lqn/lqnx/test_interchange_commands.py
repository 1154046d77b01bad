"""``mup convert`` and ``mup diff`` do what their help says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lqnx_samples import CLIENT, file, phases, server

from mup.cli.main import main
from mup.lqn import Lognormal, load_model, save_model
from mup.lqn.edits import with_clients

LQNX = file(CLIENT, server(phases("e", 'host-demand-mean="1" max-service-time="3"')))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An lqnx file."""
    path = tmp_path / "m.lqnx"
    path.write_text(LQNX)
    return path


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_there_and_back(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Converted to native and back the model is the same, and what was left out is noted."""
    native, again = source.with_suffix(".json"), source.with_name("again.lqnx")
    assert run("convert", source, native) == 0
    assert "max-service-time" in capsys.readouterr().out
    assert run("convert", native, again, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"file": str(again), "format": "lqnx", "tasks": 2, "approximated": [], "notes": []}
    assert run("diff", source, again) == 0
    assert "the same model" in capsys.readouterr().out


def test_diff_exits_with_1_and_lists_changes(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed number of clients is one row; as JSON it has numbers and the relative change."""
    native, other = source.with_suffix(".json"), source.with_name("other.json")
    run("convert", source, native)
    save_model(with_clients(load_model(native), 6), other)
    capsys.readouterr()
    assert run("diff", native, other) == 1
    out = capsys.readouterr().out
    assert "clients" in out
    assert "+100.0%" in out
    assert "1 difference\n" in out
    assert run("diff", source, other, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["equal"] is False
    assert document["changes"] == [
        {"kind": "changed", "where": "tasks['c']", "field": "clients", "old": 3, "new": 6, "relative": 1.0}
    ]


def test_approximation_needs_permission(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A demand lqnx does not know is refused with exit code 2 and no file, and listed when allowed."""
    native, target = source.with_suffix(".json"), source.with_name("out.lqnx")
    run("convert", source, native)
    document = json.loads(native.read_text())
    document["tasks"][1]["entries"][0]["activities"][0]["demand"] = Lognormal(1.0, 2.0).to_json()
    native.write_text(json.dumps(document))
    capsys.readouterr()
    assert run("convert", native, target) == 2
    assert "lognormal" in capsys.readouterr().err
    assert not target.exists()
    assert run("convert", native, target, "--approximate") == 0
    assert "approximated: tasks['s']" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("convert", "m.lqnx", "out.txt"), "no format of a model"),
        (("convert", "m.lqnx", "none/out.json"), "its folder does not exist"),
        (("convert", "m.lqnx", "notes.json"), "it is not overwritten"),
        (("convert", "none.lqnx", "out.json"), "cannot read the model"),
        (("diff", "m.lqnx", "none.json"), "cannot read the model"),
        (("diff", "m.lqnx", "broken.lqnx"), "line 1, column"),
    ],
)
def test_what_cannot_be_done(
    words: tuple[str, ...],
    expected: str,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong names and files end in one message and exit code 2."""
    monkeypatch.chdir(source.parent)
    Path("notes.json").write_text("my notes")
    Path("broken.lqnx").write_text("<lqn-model")
    assert run(*words) == 2
    assert expected in capsys.readouterr().err
    assert Path("notes.json").read_text() == "my notes"
