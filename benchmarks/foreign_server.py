"""A server that is not ours, to be identified from outside: nginx with one worker process.

``/page`` is compressed anew for every request, so it takes processor time, one page after the other: a
station whose single server is known, but not the service time. ``/small`` takes next to nothing.

Many may wait: with nginx's usual limits (512 connections) requests of a short overload were seen to take
15 s.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

__all__ = ["COMPRESSED", "Nginx"]

COMPRESSED = {"Accept-Encoding": "gzip"}
"""Headers of a request whose answer is to be compressed."""
WORDS = 15_000
"""Of the page, some 100 KB: to compress it takes some milliseconds."""
STARTED = 10.0
"""Seconds within which it has to listen."""

CONFIG = """\
daemon off;
{user}
worker_processes 1;
pid {root}/pid;
error_log {root}/error.log;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    gzip on;
    gzip_comp_level 6;
    gzip_types text/plain;
    default_type text/plain;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {root}/pages;
    }}
}}
"""


class Nginx:
    """A running nginx; a context manager that gives its URL."""

    def __init__(self) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            raise FileNotFoundError("there is no nginx here: apt install nginx")
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name)
        pages = self._root / "pages"
        pages.mkdir()
        rng = random.Random(0)
        vocabulary = [
            "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(2000)
        ]
        (pages / "page").write_text(" ".join(rng.choices(vocabulary, k=WORDS)), encoding="ascii")
        (pages / "small").write_text("nothing to see", encoding="ascii")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        config = self._root / "nginx.conf"
        # Started by root it would work as a user who may not read the folder.
        user = "user root;" if os.getuid() == 0 else ""
        config.write_text(CONFIG.format(root=self._root, port=self._port, user=user), encoding="ascii")
        self._command = [
            program,
            "-c",
            str(config),
            "-p",
            str(self._root),
            "-e",
            str(self._root / "error.log"),
        ]

    def __enter__(self) -> str:
        self._process = subprocess.Popen(self._command)
        until = time.monotonic() + STARTED
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return f"http://127.0.0.1:{self._port}"
            time.sleep(0.05)
        self._process.terminate()
        raise RuntimeError((self._root / "error.log").read_text(encoding="utf-8"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()
