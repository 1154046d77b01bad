"""Run a registry: ``python -m mup_registry [--port N]``."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys

from aiohttp import web

from mup_registry.directory import Directory
from mup_registry.server import application

DEFAULT_PORT = 9099


def main() -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m mup_registry", description="The registry of mup services."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="0 = any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--expiry",
        type=float,
        default=float(os.environ.get("MUP_REGISTRY_EXPIRY", "3")),
        metavar="SECONDS",
        help="silence after which a replica is gone (default: %(default)s, or MUP_REGISTRY_EXPIRY)",
    )
    parser.add_argument("--fd", type=int, help="listen on this inherited socket; ends when stdin does")
    options = parser.parse_args()
    if options.expiry <= 0:
        parser.error(f"--expiry must be > 0 seconds, got {options.expiry:g}")
    if not 0 <= options.port <= 65535:
        parser.error(f"--port must be between 0 and 65535, got {options.port}")
    try:
        listener = socket.socket(fileno=options.fd) if options.fd is not None else _listen(options)
    except OSError as error:
        sys.stderr.write(f"mup_registry: error: port {options.port}: {error.strerror}\n")
        return 2
    with listener:
        asyncio.run(_serve(listener, options.expiry, watch_stdin=options.fd is not None))
    return 0


def _listen(options: argparse.Namespace) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((options.host, options.port))
    listener.listen(1024)
    return listener


async def _serve(listener: socket.socket, expiry: float, *, watch_stdin: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if watch_stdin:
        # The launcher holds the other end: the registry never survives it.
        def read() -> None:
            if not os.read(0, 4096):
                stop.set()

        loop.add_reader(0, read)
    runner = web.AppRunner(application(Directory(expiry)), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    host, port = listener.getsockname()[:2]
    sys.stdout.write(json.dumps({"ready": True, "url": f"http://{host}:{port}", "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
