"""Do the action for pull requests and the hook for pre-commit, which other repositories use, do what they say?

The steps of the action are run as GitHub runs them, in a repository with a merge of a pull request, against a
server on this machine that keeps comments as GitHub's REST API does.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_compare_command import SERVICES, SLOW, TEXT, git, written
from versions import model_of

from mup.lqn import save_model

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "compare"


class Comments(ThreadingHTTPServer):
    """The part of GitHub's API that is about comments of one pull request.

    Attributes:
        written: Text of every comment, by id.
        refuses: Whether the token may only read.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.written: dict[int, str] = {}
        self.refuses = False


class Handler(BaseHTTPRequestHandler):
    """Lists, adds and replaces comments."""

    server: Comments

    def do_GET(self) -> None:
        """List a page."""
        found = re.fullmatch(r"/repos/me/shops/issues/7/comments\?per_page=(\d+)&page=(\d+)", self.path)
        assert found is not None
        size, page = int(found[1]), int(found[2])
        known = [{"id": number, "body": text} for number, text in self.server.written.items()]
        self._answer(200, known[size * (page - 1) : size * page])

    def do_POST(self) -> None:
        """Add one."""
        assert self.path == "/repos/me/shops/issues/7/comments"
        self._write(len(self.server.written) + 1, 201)

    def do_PATCH(self) -> None:
        """Replace one."""
        self._write(int(self.path.removeprefix("/repos/me/shops/issues/comments/")), 200)

    def _write(self, number: int, status: int) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        allowed = self.headers["Authorization"] == "Bearer secret" and not self.server.refuses
        if allowed:
            self.server.written[number] = body["body"]
        self._answer(status if allowed else 403, {"id": number})

    def _answer(self, status: int, document: Any) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has there
        """Be quiet."""


@pytest.fixture
def api() -> Iterator[Comments]:
    """The server, as long as the test takes."""
    with Comments() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def pulled(tmp_path: Path) -> Path:
    """A repository with the project in ``my shop``: ``main``, and HEAD as GitHub merges the branch into it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    _commit(folder, SERVICES)
    git(folder, "checkout", "-qb", "work")
    _commit(folder, SLOW)
    return folder


def _commit(folder: Path, services: str) -> None:
    written(folder / "my shop", services)
    git(folder, "add", "-A")
    # Without a message of its own, the same change made on two branches in one second is the same commit.
    git(folder, "commit", "-qm", f"on {git(folder, 'symbolic-ref', '--short', 'HEAD')}")


@dataclass
class Run:
    """One run of the action: what it wrote, and the exit code of its last step."""

    code: int = 0
    out: str = ""
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)


def action(folder: Path, api: Comments, **inputs: str) -> Run:
    """Run every step but the installation, as a runner does, for pull request 7 into ``main``."""
    document = yaml.safe_load((ACTION / "action.yml").read_text())
    git(folder, "update-ref", "refs/remotes/origin/main", "main")
    temporary = folder.parent / "temporary"
    tools = temporary / "mup" / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    mup = tools / "mup"
    mup.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mup "$@"\n')
    mup.chmod(0o755)
    values = {f"inputs.{name}": entry.get("default", "") for name, entry in document["inputs"].items()}
    values |= {f"inputs.{name}": text for name, text in inputs.items()}
    values |= {
        "inputs.token": "secret",
        "github.action_path": str(ACTION),
        "github.event.pull_request.number": "7",
    }
    summary = temporary / "summary"
    summary.write_text("")
    run = Run()
    for step in document["runs"]["steps"][1:]:
        output = temporary / "output"
        output.write_text("")
        environment = {name: _filled(text, values) for name, text in step["env"].items()}
        environment |= {
            "GITHUB_API_URL": f"http://127.0.0.1:{api.server_port}",
            "GITHUB_BASE_REF": "main",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_REPOSITORY": "me/shops",
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(temporary),
        }
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        run.code = done.returncode
        run.out += done.stdout + done.stderr
        for line in output.read_text().splitlines():
            name, _, text = line.partition("=")
            values[f"steps.{step.get('id')}.outputs.{name}"] = text
        if run.code:
            break
    run.summary = summary.read_text()
    run.outputs = {name: _filled(entry["value"], values) for name, entry in document["outputs"].items()}
    return run


def _filled(text: str, values: dict[str, str]) -> str:
    """Replace the expressions of a workflow; one that has no value is empty, as there."""
    return re.sub(r"\$\{\{ *([^ }]+) *\}\}", lambda found: values.get(found[1], ""), text)


def test_no_text_of_a_workflow_is_pasted_into_a_script() -> None:
    """They come as environment variables, so that none can be a command; all that are used are inputs."""
    document = yaml.safe_load((ACTION / "action.yml").read_text())
    used = set()
    for step in document["runs"]["steps"]:
        assert "${{" not in step["run"]
        used |= set(re.findall(r"inputs\.(\w+)", " ".join(step["env"].values())))
    assert used == set(document["inputs"])


@pytest.mark.slow
def test_a_pull_request_has_one_comment_that_says_what_is_now(pulled: Path, api: Comments) -> None:
    """It is written when something changes, and replaced when more does or nothing any more."""
    api.written.update(dict.fromkeys(range(1, 102), "of a user"))
    run = action(pulled, api, project="my shop")
    assert (run.code, run.outputs["changed"]) == (0, "true")
    assert f"::notice file=my shop/services.py,line=11,title=mup%3A calls::A/a/: {TEXT}" in run.out
    assert len(api.written) == 102
    assert f"| calls | `A/a/` | {TEXT} | `services.py:11` |" in api.written[102]
    assert api.written[102].endswith(run.summary)
    (log,) = json.loads(Path(run.outputs["sarif"]).read_text())["runs"]
    assert [result["ruleId"] for result in log["results"]] == ["mup/calls"]
    _commit(pulled, f"# new\n{SERVICES}")
    run = action(pulled, api, project="my shop")
    assert (run.code, run.outputs["changed"], len(api.written)) == (0, "false", 102)
    assert "nothing changed in meaning" in api.written[102]


@pytest.mark.slow
def test_a_pull_request_that_changes_nothing_gets_no_comment(pulled: Path, api: Comments) -> None:
    """Also where the branch it goes into has moved on."""
    _commit(pulled, f"# new\n{SERVICES}")
    git(pulled, "checkout", "-q", "main")
    _commit(pulled, SLOW)
    git(pulled, "checkout", "-q", "work")
    run = action(pulled, api, project="my shop", fail="differences")
    assert (run.code, run.outputs["changed"], api.written) == (0, "false", {})


@pytest.mark.slow
def test_a_token_that_may_only_read(pulled: Path, api: Comments) -> None:
    """As in a pull request from a fork: a warning; what was found stands in the summary."""
    api.refuses = True
    run = action(pulled, api, project="my shop", fail="differences")
    assert (run.code, api.written) == (1, {})
    assert "::warning::mup compare: the comment could not be written (HTTP Error 403" in run.out
    assert TEXT in run.summary


@pytest.mark.slow
def test_a_version_that_cannot_be_analysed(pulled: Path, api: Comments) -> None:
    """The comment says why, the line has an annotation, the job fails; likewise without a base."""
    _commit(pulled, SERVICES.replace('"/b/", {})', '"/none/", {})'))
    run = action(pulled, api, project="my shop")
    assert (run.code, run.outputs["changed"]) == (2, "")
    assert "::error file=my shop/services.py,line=10,title=MUP012::" in run.out
    assert "HEAD cannot be analysed: 1 error in the source" in api.written[1]
    assert "::error" not in api.written[1]
    run = action(pulled, api, base="nothing")
    assert (run.code, "no commit 'nothing'" in run.summary) == (2, True)
    git(pulled, "checkout", "-q", "--orphan", "alone")
    git(pulled, "commit", "-qm", "alone")
    run = action(pulled, api, project="my shop")
    assert run.code == 2
    assert "::error::mup compare: no common commit of origin/main and HEAD;" in run.out


CALL = '        answer = comm.call("B", "/b/", {}).get()\n'


@pytest.mark.slow
def test_conditions_are_judged(pulled: Path, api: Comments, tmp_path: Path) -> None:
    """From the model of the base; the job fails if one fails, or cannot be judged."""
    _commit(pulled, SERVICES.replace(CALL, CALL + CALL))
    conditions = "p95>+500%\n\n mean>+5% \n"
    run = action(pulled, api, project="my shop", conditions=conditions)
    assert (run.code, run.outputs["changed"]) == (2, "true")
    assert "What it does to response times and capacity is not known:" in run.summary
    assert "| calls | `A/a/` |" in run.summary
    model = pulled / "my shop" / "model.json"
    save_model(model_of(tmp_path / "base", SERVICES, 0.001), model)
    run = action(pulled, api, project="my shop", conditions=conditions)
    assert (run.code, run.outputs["changed"]) == (1, "true")
    (comment,) = api.written.values()
    assert "- holds: p95\\>+500%" in comment
    assert "- FAILS: mean\\>+5%" in comment
    assert "| calls | `A/a/` |" in comment
    run = action(pulled, api, project="my shop", conditions="mean>+500%")
    assert (run.code, run.outputs["changed"]) == (0, "true")
    run = action(pulled, api, project="my shop", measure="yes")
    assert (run.code, "measure must be 'true' or 'false', got 'yes'" in run.out) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("services", "code", "text"),
    [
        (SERVICES, 0, "A"),
        (SERVICES.replace('"/b/", {})', '"/none/", {})'), 1, "services.py:10:"),
    ],
    ids=["fine", "a call of nothing"],
)
def test_the_hook_of_pre_commit(services: str, code: int, text: str, tmp_path: Path) -> None:
    """Its command, with the folder as argument, fails if no model is possible, and says at which line."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    program, *words = shlex.split(hook["entry"])
    assert program == "mup"
    written(tmp_path / "shop", services)
    done = subprocess.run(
        [sys.executable, "-m", program, *words, "shop"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert text in done.stdout + done.stderr
