"""Services on several machines survive that one of them loses its network."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.hosts import CannotNetworkError, Network
from faults.partition import ASKED, cluster

pytestmark = pytest.mark.services


DELAY_MS = 10.0
CONNECT = """
import socket, sys, time
for _ in range(2):  # the first one asks for the address of the network card, too
    began = time.monotonic()
    try:
        socket.create_connection((sys.argv[1], 9), 10).close()
    except ConnectionRefusedError:
        print(time.monotonic() - began)
"""


@pytest.fixture
def network() -> Iterator[Network]:
    """Three machines, with packets that are late."""
    try:
        network = Network(3, delay_ms=DELAY_MS).__enter__()
    except CannotNetworkError as error:
        pytest.skip(str(error))
    yield network
    network.__exit__()


def test_packets_are_late(network: Network) -> None:
    """There and back takes twice the delay of a packet, also for those that open a connection."""
    command = [*network.prefix(0), sys.executable, "-c", CONNECT, network.address(1)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    times = [float(line) for line in done.stdout.split()]
    assert len(times) == 2
    assert 2 * DELAY_MS / 1000 <= times[1] < 20 * DELAY_MS / 1000


@pytest.mark.slow
def test_partition(tmp_path: Path, network: Network) -> None:
    """Calls to the machine that is cut off fail with 504, then with 503 or not at all; then all heals, soon."""
    with cluster(tmp_path, network, expiry=1.5) as running:
        cut = time.monotonic()
        network.cut(2)
        # The registry gives up a machine that is silent; callers follow.
        alone = [running.await_statuses(asked, {503}, cut) for asked in ASKED if "notes" in asked]
        others = [running.await_statuses(asked, {200}, cut) for asked in ASKED if "stock" in asked]
        quiet = max(*alone, *others)
        for asked in ASKED:
            assert running.statuses(asked, cut, quiet).keys() <= {200, 502, 503, 504}
        network.heal(2)
        healed = time.monotonic()
        well = [running.await_statuses(asked, {200}, healed, 20) for asked in ASKED]
        assert max(well) - healed < 2.0
    for system in running.systems:
        assert system.left_over() == []
