"""The project of `mup new` runs, passes its tests, and has a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.static import analyse_project
from mup.cli.main import cli
from mup.errors import UsageError
from mup.project import load_project
from mup.workload.measure import measure_load


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "hello"
    CliRunner().invoke(cli, ["new", str(folder)], catch_exceptions=False)
    return folder


def test_its_name_is_that_of_the_folder(made: Path) -> None:
    assert load_project(made).name == "hello"


def test_its_tests_pass(made: Path) -> None:
    """With the plugin that an installed mup has."""
    # Named, not found: mup need not be installed where its own tests run.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "mup.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=made, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_static_analysis_understands_it(made: Path) -> None:
    application = analyse_project(load_project(made))
    assert application.diagnostics == ()
    assert [e.label for e in application.endpoints()] == ["Greeting/hello/{name}", "Words/words/{language}"]


@pytest.mark.slow
@pytest.mark.services
def test_it_runs(made: Path) -> None:
    """Its client gets answers from its services."""
    project = load_project(made).with_any_ports()
    measured = measure_load(project, clients=2, duration=1.0, warmup=0.2)
    assert set(measured.endpoints) == {"Greeting/hello/{name}", "Words/words/{language}"}
    assert [figures.errors for figures in measured.endpoints.values()] == [0, 0]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        CliRunner().invoke(cli, ["new", str(tmp_path)], catch_exceptions=False)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
