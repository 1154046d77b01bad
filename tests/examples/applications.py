"""Shared by the tests of examples with pages: their own tests, models, and a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

from example_systems import EXAMPLES

from mup.lqn.model import Model
from mup.lqn.statistics import possible_activities, reached_entries
from mup.runtime.deployment.launcher import Deployment


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


def observed_paths(model: Model) -> dict[str, list[tuple[int, int]]]:
    """Return, for every endpoint the workload reaches, calls and queries of each path it takes."""
    reached = reached_entries(model)
    found: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for task in model.tasks:
        for entry in task.entries:
            if task.role == "service" and (task.name, entry.name) in reached:
                possible = possible_activities(entry)
                paths = [path["operations"] for path in entry.paths if path["first"] in possible]
                # Entries that were split for their callers end in @1, @2, ...
                label = f"{task.name}{entry.name.partition('@')[0]}"
                steps = {tuple((step["op"], step["target"]) for step in path) for path in paths}
                found.setdefault(label, set()).update(steps)
    return {label: sorted(_counts(path) for path in paths) for label, paths in found.items()}


def _counts(path: tuple[tuple[str, str], ...]) -> tuple[int, int]:
    kinds = [kind for kind, _ in path]
    return kinds.count("call"), kinds.count("query")


class Browser:
    """A user who looks at the pages of a service and keeps its cookies."""

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
