"""Commands that work on source: what they show before anything was measured, and after the code has changed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import run

from analyzer.calibration.explore import ExploreSettings, explore
from analyzer.calibration.rundir import load_info
from analyzer.host.profile import default_profile, save_profile
from analyzer.static import analyse_project
from mup.lqn import load_model
from mup.project import load_project
from mup.workload.speed import Speed

SOURCE = """\
from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 3

    @EP("/a/")
    def a(self, comm: Communication) -> None:
        reply = comm.call("B", "/b/", {})
        for _ in comm.params["list"]:
            comm.query("db", "find", "words", {}).get()
        comm.respond(reply.get())

    @EP("/plain/")
    def plain(self, comm: Communication) -> None:
        comm.respond(sum(range(1000)))


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(self.work(1000))

    def work(self, number: int) -> int:
        return sum(range(number))


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.01)
        await comm.call("A", "/a/", {"list": []})
        await comm.call("A", "/plain/", {})
"""
TOML = """\
[project]
client = "services:User"
[services.A]
class = "services:A"
[services.B]
class = "services:B"
[databases.db]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "services.py").write_text(SOURCE)
    (tmp_path / "mup.toml").write_text(TOML)
    return tmp_path


def texts(svg: Path) -> str:
    return "\n".join("".join(e.itertext()) for e in ET.parse(svg).iter() if e.tag.endswith("text"))


@pytest.mark.parametrize("what", ["project", "mup.toml", "folder", "file"])
def test_graph_of_source_shows_question_marks(
    project: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """As in the thesis's Figure 24b: structure, pool sizes and think times are known; every other time is ``?``."""
    if what in ("folder", "file"):
        (project / "mup.toml").unlink()
    name = {"project": ".", "mup.toml": "mup.toml", "folder": ".", "file": "services.py"}[what]
    code, out, err = run(capsys, "graph", str(project / name), "--json")
    assert (code, err) == (0, "")
    picture = Path(json.loads(out)["file"])
    assert picture == project / ("services.svg" if what == "file" else "model.svg")
    shown = texts(picture)
    assert all(word in shown for word in ("User", "Net", "db", "/a/", "/b/", "10 ms", "pool 3"))
    assert "?" in shown
    assert not re.search(r"CPU (?!\?)", shown), "nothing was measured"


def test_static_model_needs_no_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`mup model --static` writes a model that `mup graph` and `mup stats` read and nothing can simulate."""
    (project / "mup.toml").unlink()
    code, _, err = run(capsys, "model", str(project), "--static")
    assert (code, err) == (0, "")
    model = load_model(project / "model.json")
    assert {t.name for t in model.tasks} == {"User", "A", "B", "Net", "db"}
    assert model.task("A").entry("/a/").activities[0].demand is None
    code, _, err = run(capsys, "simulate", str(project / "model.json"))
    assert code == 2
    assert "not calibrated" in err or "never measured" in err


def test_model_without_log_says_what_can_be_done(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No run: explore first, or ask for the static model."""
    code, _, err = run(capsys, "model", str(project))
    assert code == 2
    assert "mup explore" in err
    assert "--static" in err


@pytest.mark.parametrize("command", [("graph",), ("model", "--static")])
def test_source_with_errors_has_no_model(
    project: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """What would be wrong is not drawn."""
    (project / "services.py").write_text(SOURCE.replace('"/b/", {}', '"/bb/", {}'))
    code, _, err = run(capsys, *command, str(project))
    assert code == 2
    assert "MUP012" in err


def test_client_of_a_model_is_fixed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--client` is for source."""
    run(capsys, "model", str(project), "--static")
    code, _, err = run(capsys, "graph", str(project / "model.json"), "--client", "User")
    assert code == 2
    assert "--client" in err


def test_paths_output_is_documented(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every field of `mup paths --json` is in its reference page, and the page names no others."""
    page = (Path(__file__).parents[2] / "docs/reference/paths-json.md").read_text(encoding="utf-8")
    documented: dict[str, set[str]] = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
        documented[section.split("\n")[0]] = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    body = """futures = [comm.call("B", "/b/", {}) for _ in comm.params["list"]]
        words = [future.get() for future in futures]
        if words:
            raise KeyError"""
    broken = SOURCE.replace("comm.respond(sum(range(1000)))", body)
    (project / "services.py").write_text(broken)
    code, out, _ = run(capsys, "paths", str(project), "--json")
    assert code == 1
    document = json.loads(out)
    assert document["format"] == "mup-paths/1"
    found = {"Document": set(document)}
    for service in document["services"].values():
        found.setdefault("Service", set()).update(service)
        for endpoint in service["endpoints"].values():
            found.setdefault("Endpoint", set()).update(endpoint)
            collect_operations(endpoint["paths"], found.setdefault("Operation", set()))
    for client in document["clients"].values():
        found.setdefault("Client", set()).update(client)
        collect_operations(client["paths"], found["Operation"])
    for finding in document["diagnostics"]:
        found.setdefault("Finding", set()).update(finding)
    assert found == documented


def collect_operations(paths: list[list[dict[str, Any]]], names: set[str]) -> None:
    for path in paths:
        for operation in path:
            names.update(operation)
            collect_operations(operation.get("body", []), names)


def test_paths_of_a_broken_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A syntax error is an error like any other: on stderr, underlined, exit code 1; the rest is shown."""
    (tmp_path / "good.py").write_text(SOURCE)
    (tmp_path / "bad.py").write_text("import mup\nclass C(mup.MS)\n    pass\n")
    code, out, err = run(capsys, "paths", str(tmp_path))
    assert code == 1
    assert "call B/b/" in out
    lines = err.splitlines()
    assert lines[0].startswith("bad.py:2:16: error MUP001: not Python: expected ':'")
    assert lines[1:3] == ["    class C(mup.MS)", "                   ^"]
    assert lines[-1] == "1 error"


def test_paths_with_names_no_terminal_can_show(tmp_path: Path) -> None:
    """Half characters in paths and control characters in source lines do not break the output."""
    text = SOURCE.replace('"/plain/"', '"/\\ud800/"').replace('"/b/", {}', '"/\x1bb/", {}')
    (tmp_path / "app.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mup", "paths", str(tmp_path)], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"MUP012" in done.stderr
    assert b"\x1b" not in done.stderr


@pytest.mark.slow
@pytest.mark.services
def test_changed_endpoints_are_measured_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A helper changes: its endpoint is measured again, the log of before serves all others."""

    def explored(*before: Path, width: float, max_seconds: float) -> Path:
        loaded = load_project(project)
        settings = ExploreSettings(
            width=width,
            max_seconds=max_seconds,
            round_seconds=0.3,
            warmup_seconds=0.2,
            idle_seconds=0.3,
            foreign_limit=1.0,  # whatever else runs beside this test
        )
        # A machine whose speed never changes.
        steady = partial(Speed, (1000.0, 1000.0))
        application = analyse_project(loaded)
        return explore(loaded, application, settings, changed_since=before, probe=steady, monitor=False)

    def refused(*arguments: str) -> str:
        code, out, err = run(capsys, *arguments, str(project))
        assert code == 2
        return out + err

    assert "no explore run" in refused("explore", "--changed")
    first = explored(width=1e-9, max_seconds=2.4)
    assert "nothing has changed" in refused("explore", "--changed", "--no-profile-host")
    # Another name for a variable, another layout: no change. The helper of B does something else.
    text = "# moved\n\n" + SOURCE.replace("reply", "answer").replace("range(number)", "range(2 * number)")
    (project / "services.py").write_text(text)
    message = refused("model")
    assert "B/b/ changed" in message
    assert "A/a/" not in message
    assert "--changed" in message
    second = explored(first, width=0.99, max_seconds=60)
    assert load_info(second).stop.startswith("every changed endpoint")
    code, out, err = run(capsys, "model", str(project), "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["coverage"]["A/a/"]["executions"] > document["coverage"]["B/b/"]["executions"] > 0
    assert any("older than the source of B/b/" in warning for warning in document["warnings"])
    model = load_model(project / "model.json")
    assert model.provenance["runs"] == [second.name, first.name]
    assert model.task("B").entry("/b/").activities[0].demand is not None
    # A profile that was measured while others used the machine is in what the model says of itself.
    disturbed = "timers: other programs used 40.0% of the machine (limit 2%)"
    profile = replace(default_profile(2), measured=True, disturbed=disturbed)
    profiled = [
        "--host-profile",
        str(save_profile(profile, project / "host.json")),
        "-o",
        str(project / "on.json"),
    ]
    code, out, err = run(capsys, "model", str(project), "--json", *profiled)
    assert code == 0, err
    assert any(disturbed in warning for warning in json.loads(out)["warnings"])
    known = load_model(project / "on.json").provenance
    assert known["host"]["disturbed"] == disturbed
    assert any(disturbed in warning for warning in known["warnings"])
    # So is one of another machine of the deployment.
    with (project / "mup.toml").open("a") as file:
        file.write('[hosts.lab]\nprofile = "host.json"\n')
    code, out, err = run(capsys, "model", str(project), "--json", "-o", str(project / "lab.json"))
    assert code == 0, err
    assert any(disturbed in warning for warning in json.loads(out)["warnings"])
    code, out, _ = run(capsys, "runs", str(project), "--prune", "--include-used", "--yes", "--json")
    assert json.loads(out)["deleted"] == [], "the newer run needs the older one"
    (project / "services.py").write_text(text.replace("think(0.01)", "think(0.02)"))
    assert "nothing has changed" in refused("explore", "--changed", "--no-profile-host")
    (project / "services.py").write_text(text.replace("await self.think(0.01)", "await self.think(0)"))
    assert "the client has changed" in refused("explore", "--changed", "--no-profile-host")
