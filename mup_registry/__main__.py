"""Run a registry: ``python -m mup_registry [--port N]``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import sys

from mup.addresses import Network, allowance, is_loopback, is_wildcard, socket_for, url_of
from mup.errors import DeploymentError
from mup.runtime.protocol.origin import KnownHosts
from mup.runtime.server.listening import listen
from mup.tls import TlsFiles, server_context
from mup.workload.limits import allow_many_files
from mup_registry.directory import Directory
from mup_registry.reach import Reach
from mup_registry.server import RegistryServer

DEFAULT_PORT = 9099


def main() -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m mup_registry", description="The registry of mup services."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="port; 0 = any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--expiry",
        type=float,
        default=float(os.environ.get("MUP_REGISTRY_EXPIRY", "3")),
        metavar="SECONDS",
        help="silence after which a replica is gone (default: %(default)s, or MUP_REGISTRY_EXPIRY)",
    )
    parser.add_argument("--fd", type=int, help="listen on this inherited socket; ends when stdin does")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate to serve with, in PEM format")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate, in PEM format")
    parser.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        default="",
        help="serve only callers with a certificate signed by one of these",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        dest="names",
        metavar="NAME",
        help="another name by which it is called (header Host); repeatable",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=_allowance,
        metavar="NETWORK",
        help="address, network or name that may be registered whatever it is; repeatable",
    )
    options = parser.parse_args()
    if options.expiry <= 0:
        parser.error(f"--expiry must be > 0 seconds, got {options.expiry:g}")
    if not 0 <= options.port <= 65535:
        parser.error(f"--port must be between 0 and 65535, got {options.port}")
    if (options.tls_cert is None) != (options.tls_key is None):
        parser.error("--tls-cert and --tls-key go together")
    if options.tls_client_ca and options.tls_cert is None:
        parser.error("--tls-client-ca needs --tls-cert and --tls-key")
    # Not an option: every user of a machine can read command lines.
    token = os.environ.get("MUP_REGISTRY_TOKEN", "")
    # Every replica keeps a connection.
    allow_many_files()
    try:
        listener = socket.socket(fileno=options.fd) if options.fd is not None else _listen(options)
    except OSError as error:
        sys.stderr.write(f"mup_registry: error: {options.host} port {options.port}: {error.strerror}\n")
        return 2
    with listener:
        if not token and not is_loopback(listener.getsockname()[0]):
            sys.stderr.write(
                "mup_registry: error: a registry that other machines reach needs a token: "
                "set MUP_REGISTRY_TOKEN here and for every service\n"
            )
            return 2
        try:
            tls = _tls(options, listener.getsockname()[0])
        except DeploymentError as error:
            sys.stderr.write(f"mup_registry: error: {error}\n")
            return 2
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            address = listener.getsockname()[0]
            hosts = KnownHosts(address, [options.host, *options.names])
            registry = RegistryServer(
                Directory(options.expiry),
                token,
                hosts=hosts,
                reach=Reach(hosts, options.allow, local=is_loopback(address)),
                tls=tls is not None,
            )
            runner.run(_serve(registry, listener, tls, watch_stdin=options.fd is not None))
    return 0


def _allowance(text: str) -> Network | str:
    try:
        return allowance(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - where it exists
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _tls(options: argparse.Namespace, host: str) -> ssl.SSLContext | None:
    """Return what to serve with.

    Raises:
        DeploymentError: Callers would not accept it.
    """
    if options.tls_cert is None:
        return None
    files = TlsFiles(cert=options.tls_cert, key=options.tls_key, client_ca=options.tls_client_ca)
    # By which name others know a machine that listens everywhere, it does not know itself.
    return server_context(files, *([] if is_wildcard(host) else [host]))


def _listen(options: argparse.Namespace) -> socket.socket:
    listener = socket_for(options.host)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((options.host, options.port))
    listener.listen(1024)
    return listener


async def _serve(
    registry: RegistryServer, listener: socket.socket, tls: ssl.SSLContext | None, *, watch_stdin: bool
) -> None:
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
    web = registry.server()
    server = await listen(web, listener, tls, registry.caller_refused)
    host, port = listener.getsockname()[:2]
    try:
        sys.stdout.write(
            json.dumps({"ready": True, "url": url_of(host, port, tls=tls is not None), "pid": os.getpid()})
            + "\n"
        )
        sys.stdout.flush()
    except BrokenPipeError:
        # Who started this registry has gone before it served.
        os._exit(1)
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), registry.tick)
        # The clock must be read often, to notice times in which no replica could be heard.
        registry.now()
    server.close()
    await web.shutdown(1.0)


if __name__ == "__main__":
    sys.exit(main())
