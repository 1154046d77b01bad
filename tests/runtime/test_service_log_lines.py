"""Log lines of services on standard error, which clients cannot forge."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployments import make_project, running

from mup.errors import CallError, DeploymentError
from mup.runtime.process import service_log
from mup.runtime.process.service_log import CURRENT, InWork, set_up_logging

SOURCE = """
import logging
from mup import EP, MS

class Shop(MS):
    @EP("/boom/")
    def boom(self, comm):
        logging.getLogger("shop").info("about to fail")
        raise ValueError(f"no {comm.params['what']} in mongodb://me:secret@db/x")
"""


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Leave logging as it was."""
    root, mup = logging.getLogger(), logging.getLogger("mup")
    before = root.handlers[:], root.level, mup.level
    yield root
    root.handlers[:], root.level = before[:2]
    mup.setLevel(before[2])
    CURRENT.set(None)


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("form", ["json", "text"])
def test_failure_of_an_endpoint(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is logged with service, endpoint, request id and the user's frames; what the client sent forges no line."""
    monkeypatch.setenv("MUP_LOG", form)
    what = "luck%0A12:00:00 Shop.0 INFO all is well%1b[2J"
    with running(make_project(tmp_path, SOURCE, "Shop")) as system:
        answer = system.ask("Shop", f"/boom/?what={what.replace(' ', '+')}", X_Mup_Request="abc")
        assert answer.status == 500
    text = capfd.readouterr().err
    assert "secret" not in text
    assert "\x1b" not in text
    assert "worker.py" not in text
    lines = text.splitlines()
    if form == "text":
        assert not any(line.startswith("12:00:00 Shop.0 INFO all") for line in lines)
        (failed,) = [line for line in lines if "/boom/ failed" in line]
        assert "Shop.0.w0 ERROR" in failed
        assert "[/boom/ 0000000000000abc]" in failed
        assert any(line.startswith("  File") and "shop.py" in line for line in lines)
        assert any(r"  ValueError: no luck\n12:00:00" in line for line in lines)
        assert any(line.endswith("about to fail [/boom/ 0000000000000abc]") for line in lines)
        return
    parsed = [json.loads(line) for line in lines]
    (failed,) = [line for line in parsed if line["level"] == "error"]
    assert failed["service"] == "Shop"
    assert failed["process"] == "w0"
    assert failed["endpoint"] == "/boom/"
    assert failed["request"] == "0000000000000abc"
    assert failed["error"]["type"] == "ValueError"
    assert failed["error"]["message"].startswith("no luck\n12:00:00")
    assert "mongodb://***@db/x" in failed["error"]["message"]
    assert any("shop.py" in line for line in failed["traceback"])
    (own,) = [line for line in parsed if line["logger"] == "shop"]
    assert own["request"] == failed["request"]


@pytest.mark.services
def test_one_line_per_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """At level debug the front logs each answer with its status, time and ids."""
    monkeypatch.setenv("MUP_LOG", "json")
    monkeypatch.setenv("MUP_LOG_LEVEL", "debug")
    with running(make_project(tmp_path, SOURCE, "Shop")) as system:
        assert system.ask("Shop", "/boom/?what=luck", X_Mup_Request="abc", X_Mup_Trace="7").status == 500
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    (line,) = [line for line in lines if "status" in line]
    assert (line["level"], line["status"], line["endpoint"]) == ("debug", 500, "/boom/")
    assert (line["request"], line["trace"]) == (f"{0xABC:016x}", f"{7:016x}")
    assert 0 < line["seconds"] < 10
    assert "process" not in line


def _fail_inside(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        pytest.param(CallError("B answered 500", status=500), False, id="deliberate"),
        pytest.param(RuntimeError("impossible"), True, id="mistake-of-mup"),
    ],
)
def test_frames_of_mup(
    root: logging.Logger,
    error: Exception,
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Frames inside mup are shown only if the mistake is there."""
    set_up_logging("A", 0)
    monkeypatch.setattr(service_log, "_PACKAGE", __file__)
    try:
        _fail_inside(error)
    except (CallError, RuntimeError):
        root.exception("failed")
    assert ("_fail_inside" in capsys.readouterr().err) is shown


def test_cause_comes_first(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    """A chain of exceptions is told from its beginning."""
    set_up_logging("A", 0)
    try:
        try:
            _fail_inside(KeyError("price"))
        except KeyError as error:
            raise ValueError("no price") from error
    except ValueError:
        root.exception("failed")
    text = capsys.readouterr().err
    assert 0 < text.index("KeyError: 'price'") < text.index("ValueError: no price")


def test_levels(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is less severe than the level stays unsaid; libraries never show their details."""
    monkeypatch.setenv("MUP_LOG_LEVEL", "warning")
    set_up_logging("A", 0)
    root.info("fine")
    root.warning("careful")
    monkeypatch.setenv("MUP_LOG_LEVEL", "debug")
    set_up_logging("A", 0)
    logging.getLogger("asyncio").debug("turn")
    logging.getLogger("mup.runtime").debug("request")
    assert [line.split(" ", 2)[2] for line in capsys.readouterr().err.splitlines()] == [
        "WARNING careful",
        "DEBUG request",
    ]


@pytest.mark.parametrize(("name", "value"), [("MUP_LOG", "xml"), ("MUP_LOG_LEVEL", "loud")])
def test_wrong_settings_are_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable and what it may be."""
    monkeypatch.setenv(name, value)
    with pytest.raises(DeploymentError, match=f"{name} must be one of .*{value}"):
        set_up_logging("A", 0)


def test_unknown_values_do_not_break_a_line(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A JSON line comes out whatever its fields are."""
    monkeypatch.setenv("MUP_LOG", "json")
    set_up_logging("A", 0)
    CURRENT.set(InWork("/a/", 1, 2))
    root.warning("x", extra={"fields": {"what": sys}})
    line = json.loads(capsys.readouterr().err)
    assert line["trace"] == f"{2:016x}"
    assert "sys" in line["what"]
