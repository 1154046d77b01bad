"""Every command ends with one message and no traceback: full disk, closed pipe, wrong words."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import saved, shop

ROOT = Path(__file__).resolve().parents[2]
MUP = [sys.executable, "-m", "mup"]


def small_files() -> None:
    """Let the process write no file of more than 200 bytes: like a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))


@pytest.fixture
def model(tmp_path: Path) -> str:
    return saved(tmp_path, shop())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--engine", "analytic", "--json"],
        ["simulate", "--engine", "analytic"],
        ["stats"],
        ["graph", "-o", "-"],
        ["stats", "--no-such-option", "--json"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_output_to_a_full_disk_is_one_message(arguments: list[str], model: str, tmp_path: Path) -> None:
    """Exit code 2, the reason, no traceback, also not when the interpreter ends."""
    command, *options = arguments
    words = [command, *options] if command == "--help" else [command, model, *options]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*MUP, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("mup: error:") == 1
    assert "No space left on device" in done.stderr or "no such option" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("existed", [False, True])
def test_new_leaves_no_half_of_a_project(tmp_path: Path, existed: bool) -> None:
    """A folder that was not there is not there, and one that was empty is empty."""
    folder = tmp_path / "shop"
    if existed:
        folder.mkdir()
    done = subprocess.run(
        [*MUP, "new", str(folder)], preexec_fn=small_files, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == f"mup: error: {folder}: cannot write: {os.strerror(27)}\n"
    assert folder.exists() == existed
    assert list(tmp_path.rglob("*")) == ([folder] if existed else [])


@pytest.mark.slow
def test_what_a_run_found_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """On a full disk its description stays as it was, and nothing half-written beside it."""
    code = f"""
import pathlib
from analyzer.calibration.rundir import RunInfo
from mup.errors import LogError
try:
    RunInfo(project="x" * 1000).save(pathlib.Path({str(tmp_path)!r}))
except LogError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=small_files, capture_output=True, text=True, check=False
    )
    assert "cannot write" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_failure(model: str) -> None:
    """As with ``head``: no message, exit code 0."""
    read, write = os.pipe()
    os.close(read)
    try:
        words = [*MUP, "simulate", model, "--engine", "analytic"]
        done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whatif", "--plto", "x.svg"], "no such option '--plto'"),
        (["simulate", "--clients", "many"], "invalid value for '--clients'"),
        (["new"], "missing argument 'NAME'"),
        (["stats", "a", "b"], "got unexpected extra argument (b)"),
        (["simulat"], "did you mean 'simulate'"),
        (["learn", "trace"], "did you mean 'traces'"),
    ],
)
def test_wrong_words_are_refused_in_the_style_of_all_errors(arguments: list[str], message: str) -> None:
    """``mup: error:`` and a remedy; exit code 2; the same in JSON."""
    done = subprocess.run([*MUP, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("mup: error: ")
    assert message in done.stderr
    assert "Usage:" not in done.stderr
    assert "--help' lists what it takes" in done.stderr
    done = subprocess.run([*MUP, *arguments, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    if arguments != ["new"]:  # it has no --json: that is what is wrong then
        assert message in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_works(shell: str) -> None:
    """What it prints asks mup itself for the words; asked, mup tells commands and options of today."""
    done = subprocess.run([*MUP, "completion", shell], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert f"_MUP_COMPLETE={shell}_complete" in done.stdout
    asked = {"_MUP_COMPLETE": "bash_complete", "COMP_WORDS": "mup whatif --", "COMP_CWORD": "2"}
    told = subprocess.run(
        MUP, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    ).stdout.split()
    assert "plain,--host-profile" in told
    assert "plain,--host" not in told


@pytest.mark.slow
def test_main_commands_have_examples() -> None:
    """Each help ends with command lines to copy."""
    for command in ("new", "run", "explore", "model", "simulate", "whatif", "load", "validate"):
        text = subprocess.run([*MUP, command, "--help"], capture_output=True, text=True, check=True).stdout
        assert f"Examples:\n  mup {command}" in text.replace("    mup", "  mup").replace(
            "  Examples", "Examples"
        )


def test_help_groups_the_commands() -> None:
    """Under headings that say what one wants to do; each command once."""
    text = subprocess.run([*MUP, "--help"], capture_output=True, text=True, check=True).stdout
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Options", "Services", "Measurements", "Models", "Predictions", "Learning", "Help"]


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize(
    ("number", "processes"), [(signal.SIGTERM, 2), (signal.SIGTERM, 4), (signal.SIGHUP, 3)], ids=str
)
def test_a_signal_during_start_up_is_no_traceback(
    number: signal.Signals, processes: int, tmp_path: Path, family: Any
) -> None:
    """As soon as some children run: exit code 128 + signal, no traceback of any of them, none stays."""
    words = [*MUP, "load", str(ROOT / "examples" / "translator"), "--clients", "1", "--log", str(tmp_path)]
    done = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=family.environment)
    deadline = time.monotonic() + 60
    while len(family.alive()) < processes and time.monotonic() < deadline:
        time.sleep(0.01)
    done.send_signal(number)
    _, err = done.communicate(timeout=60)
    assert done.returncode == 128 + number, err
    assert "Traceback" not in err
    while family.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not family.alive()


INTERRUPTED_IN_A_TEXT = """
import sys
from mup.cli.ending import exit_code
from mup.cli.stopping import stop_cleanly

stop_cleanly()
text = "import os, time; os.kill(os.getpid(), int(sys.argv[1])); time.sleep(60)"
sys.exit(exit_code(lambda: exec(text, {"sys": sys}), []))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_signal_while_a_text_is_evaluated_gives_its_exit_code(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """Importing dataclasses evaluates texts; an interpreter interrupted in one would end by SIGINT instead."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED_IN_A_TEXT)
    done = subprocess.run([sys.executable, "-m", program.stem, str(int(number))], cwd=tmp_path, check=False)
    assert done.returncode == code


@pytest.mark.parametrize("module", ["mup.databases.embedded", "mup_registry"])
def test_a_child_whose_parent_has_gone_says_nothing(module: str) -> None:
    """Its parent was killed while it started: there is no reader of a message, and nothing to serve."""
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", module, *(["--port", "0"] if module == "mup_registry" else [])]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.PIPE,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write)
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explore", "--precision", "5"], "--precision: must be a fraction"),
        (["explore", "--max-seconds", "0"], "max_seconds must be > 0"),
        (["load", "--clients", "1", "--precision", "5"], "--precision: must be a fraction"),
        (["load", "--clients", "1", "--void-retries", "-1"], "--void-retries: must be >= 0"),
        (["validate", "--measured-precision", "5"], "--measured-precision: must be a fraction"),
    ],
)
def test_wrong_numbers_are_refused_before_any_work(arguments: list[str], message: str) -> None:
    """By the name of the option; no machine is measured, and no service is started for it."""
    command, *options = arguments
    words = [*MUP, command, str(ROOT / "examples" / "starter"), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("mup: error: ")
    assert message in done.stderr
    assert "profile" not in done.stderr
