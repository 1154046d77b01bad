"""Registries of their own for tests, and ways to ask them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def entry(**changes: Any) -> dict[str, Any]:
    """Return a registration."""
    return {"service": "A", "replica": 0, "url": "http://127.0.0.1:1", "pid": 1, "endpoints": {}, **changes}


def start(*arguments: str, port: str = "0", **environment: str) -> tuple[subprocess.Popen[str], str]:
    """Start a registry; return its process and its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mup_registry", "--port", port, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert process.stdout
    return process, json.loads(process.stdout.readline())["url"]


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a registry, which has to end well."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0
    assert process.stdout
    process.stdout.close()


@contextmanager
def registry(*arguments: str, **environment: str) -> Iterator[str]:
    """Run a registry of its own; return its URL."""
    process, url = start(*arguments, **environment)
    try:
        yield url
    finally:
        stop(process)


def ask(url: str, path: str, data: Any = None, method: str = "", token: str = "") -> tuple[int, Any]:
    """Send a request to the registry; bytes go as they are, everything else as JSON."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return _ask(url, path, data, method, headers)[:2]


def ask_tagged(url: str, path: str, tag: str = "") -> tuple[int, Any, str]:
    """Ask for something unless it is as tagged; return the tag it has, too."""
    return _ask(url, path, None, "", {"If-None-Match": tag} if tag else {})


def _ask(url: str, path: str, data: Any, method: str, headers: dict[str, str]) -> tuple[int, Any, str]:
    if data is not None:
        headers = {"Content-Type": "application/json", **headers}
    body = data if isinstance(data, bytes) else json.dumps(data).encode() if data is not None else None
    request = urllib.request.Request(url + path, body, headers, method=method or ("POST" if body else "GET"))
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response), response.headers.get("ETag", "")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or "null"), ""
