"""What do the tests of whole applications share? Their models, their own tests, and a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

from mup.lqn.model import Model
from mup.lqn.statistics import possible_activities, reached_entries
from mup.runtime.launcher import Deployment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def own_tests(name: str, folder: Path) -> str:
    """Run the tests an example brings along, in a copy of it as its users have; return what pytest prints.

    Raises:
        AssertionError: They fail.
    """
    copy = folder / name
    shutil.copytree(EXAMPLES / name, copy, ignore=shutil.ignore_patterns("__pycache__", ".mup"))
    # Named, not found: mup need not be installed where its own tests run.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "mup.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=copy, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    return done.stdout


def observed_paths(model: Model) -> dict[str, set[tuple[int, int]]]:
    """Return, for every endpoint the workload reaches, calls and queries of the paths it takes."""
    reached = reached_entries(model)
    found: dict[str, set[tuple[int, int]]] = {}
    for task in model.tasks:
        for entry in task.entries:
            if task.role != "service" or (task.name, entry.name) not in reached:
                continue
            possible = possible_activities(entry)
            for path in entry.paths:
                if path["first"] in possible:
                    kinds = [operation["op"] for operation in path["operations"]]
                    label = f"{task.name}{entry.name.partition('@')[0]}"
                    found.setdefault(label, set()).add((kinds.count("call"), kinds.count("query")))
    return found


class Browser:
    """Somebody who looks at the pages of a service and keeps its cookies."""

    def __init__(self, deployment: Deployment, service: str) -> None:
        self._url = next(replica.url for replica in deployment.replicas() if replica.service == service)
        self.cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str, **params: str) -> str:
        """Return a page."""
        query = f"?{urllib.parse.urlencode(params)}" if params else ""
        with self._opener.open(self._url + path + query, timeout=60) as answer:
            return str(answer.read().decode())

    def get_bytes(self, path: str) -> bytes:
        """Return a file."""
        with self._opener.open(self._url + path, timeout=60) as answer:
            return bytes(answer.read())

    def post(self, path: str, **form: str) -> str:
        """Send a form and return the page that answers it."""
        with self._opener.open(self._url + path, urllib.parse.urlencode(form).encode(), timeout=60) as answer:
            return str(answer.read().decode())
