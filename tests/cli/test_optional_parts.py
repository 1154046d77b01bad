"""Services run on a minimal installation, and other commands name the part they miss."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from mup.cli.main import cli
from mup.cli.optional_parts import MODEL_PACKAGES

# As where they are not installed: for every import of them, in this process or one it starts.
HIDING = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {set(MODEL_PACKAGES)!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture(scope="module")
def without_model_part(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which the packages of the extra ``model`` cannot be imported."""
    folder = tmp_path_factory.mktemp("hiding")
    (folder / "sitecustomize.py").write_text(HIDING)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project made by ``mup new``, on ports of its own."""
    folder = tmp_path_factory.mktemp("optional") / "hello"
    CliRunner().invoke(cli, ["new", str(folder)], catch_exceptions=False)
    settings = folder / "mup.toml"
    settings.write_text(settings.read_text() + "port = 0\n[registry]\nport = 0\n")
    services = folder / "services.py"
    services.write_text(services.read_text().replace("port = 8081", "port = 0"))
    return folder


def test_table_agrees_with_the_packaging() -> None:
    """Every package of the extra is named by what it is imported as."""
    packaging = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extra = packaging["project"]["optional-dependencies"]["model"]
    assert {line.partition(">")[0] for line in extra} == MODEL_PACKAGES


@pytest.mark.parametrize(
    "words",
    [
        ["paths", "."],
        ["model", "."],
        ["explore", "."],
        ["log", "."],
        ["simulate", "model.json"],
        ["whatif", "model.json", "--clients", "2"],
        ["validate", "."],
        ["load", "."],
        ["demo"],
        ["fit", "model.json", "data.csv"],
    ],
    ids=lambda words: words[0],
)
def test_missing_part_is_named(
    words: list[str], project: Path, without_model_part: dict[str, str], tmp_path: Path
) -> None:
    """A command works or ends in one message with the remedy; never in a traceback."""
    model = Path(__file__).parents[2] / "examples" / "tms" / "model.json"
    (tmp_path / "model.json").write_bytes(model.read_bytes())
    (tmp_path / "data.csv").write_text("clients,throughput\n1,2\n")
    command = [sys.executable, "-m", "mup", *words]
    if words[1:] == ["."]:
        command[-1] = str(project)
    done = subprocess.run(
        command, cwd=tmp_path, env=without_model_part, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert done.stderr.startswith(f"mup: error: 'mup {words[0]}' needs the package ")
    assert "pip install 'mup-framework[model]'" in done.stderr


@pytest.mark.parametrize(
    "words", [["graph", "model.json", "-o", "m.svg"], ["stats", "model.json"], ["--help"]]
)
def test_models_are_read_without_it(
    words: list[str], without_model_part: dict[str, str], tmp_path: Path
) -> None:
    """What needs the data of a model alone is there."""
    model = Path(__file__).parents[2] / "examples" / "tms" / "model.json"
    (tmp_path / "model.json").write_bytes(model.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "mup", *words], cwd=tmp_path, env=without_model_part, check=False, timeout=60
    )
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.services
def test_services_run_without_it(project: Path, without_model_part: dict[str, str]) -> None:
    """`mup run` starts registry and services, and they answer; calls and the event log included."""
    log = project / "log"
    environment = {**without_model_part, "MUP_LOG_DIR": str(log)}
    process = subprocess.Popen(
        [sys.executable, "-m", "mup", "run", str(project), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if line == "}\n":
                break
        described = json.loads(text)
        url = described["services"]["Greeting"]["replicas"][0]
        with urllib.request.urlopen(f"{url}/hello/Ada?language=en", timeout=10) as answer:
            assert b"Ada" in answer.read()
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert "Traceback" not in errors
    assert process.returncode == 0
    assert list(log.glob("*.mlog"))
