"""Cost of TLS: processor time of front and caller per request, and per new connection.

    python benchmarks/tls.py [--requests N] [--connections N] [--repeats N]

Two replicas of a trivial service, one with TLS, serve one blocking caller in turn (interleaved, median of
repeats): requests on a kept connection, and requests each on a connection of its own. The certificate has
an ECDSA key (P-256). The caller is what workers of a service call with.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import trustme
from machine import describe

from mup.project import Project, ServiceConfig
from mup.runtime.client.request import RawRequest, address_of
from mup.runtime.client.sockets import Connection
from mup.runtime.deployment.launcher import Deployment
from mup.tls import TlsFiles
from mup.workload.cpu import process_cpu_seconds

SERVICE = """
from mup import EP, MS


class Trivial(MS):
    @EP("/x/")
    def x(self, comm):
        comm.respond("x")
"""


class Target:
    """A front, and how it is reached."""

    def __init__(self, url: str, front: int, tls: TlsFiles) -> None:
        self.front = front
        self._address = address_of(url)
        self._tls = tls

    def kept(self, requests: int) -> None:
        """Send requests one after the other on one connection."""
        connection = Connection(self._address, 30.0, self._tls)
        for _ in range(requests):
            _ask(connection)
        connection.close()

    def fresh(self, requests: int) -> None:
        """Send each on a connection of its own."""
        for _ in range(requests):
            self.kept(1)


def _ask(connection: Connection) -> None:
    connection.send(RawRequest("POST", "/x/", {"Content-Type": "application/json"}, b"{}"), 30.0)
    connection.receive(time.monotonic() + 30.0)


def measure(targets: dict[str, Target], way: str, number: int, repeats: int) -> None:
    """Print what a request costs, by target."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in targets}
    for _ in range(repeats):
        for name, target in targets.items():
            before = process_cpu_seconds(target.front), time.process_time()
            getattr(target, way)(number)
            after = process_cpu_seconds(target.front), time.process_time()
            found[name].append(((after[0] - before[0]) / number, (after[1] - before[1]) / number))
    for name, rows in found.items():
        front, caller = (statistics.median(row[i] for row in rows) * 1e6 for i in (0, 1))
        print(f"{way:5} connections, {name:4}: front {front:7.1f} us, caller {caller:7.1f} us per request")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=4000, help="per repeat on a kept connection")
    parser.add_argument("--connections", type=int, default=300, help="per repeat, each new")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(describe("aiohttp", "uvloop"))
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "trivial.py").write_text(SERVICE, encoding="utf-8")
        services = (ServiceConfig(name="Trivial", target="trivial:Trivial"),)
        plain = Project(name="tls", root=folder, source=folder, services=services, registry_port=0)
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        files = TlsFiles(
            cert=str(folder / "cert.pem"), key=str(folder / "key.pem"), ca=str(folder / "ca.pem")
        )
        issued.cert_chain_pems[0].write_to_path(files.cert)
        issued.private_key_pem.write_to_path(files.key)
        authority.cert_pem.write_to_path(files.ca)
        targets = {}
        for kind, project in (("http", plain), ("tls", replace(plain, tls=files))):
            deployment = stack.enter_context(Deployment(project))
            (replica,) = deployment.replicas()
            targets[kind] = Target(replica.url, replica.pid, files)
        for target in targets.values():
            target.kept(200)
            target.fresh(20)
        measure(targets, "kept", options.requests, options.repeats)
        measure(targets, "fresh", options.connections, options.repeats)


if __name__ == "__main__":
    main()
