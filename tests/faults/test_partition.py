"""Do services on several machines survive that one of them loses its network?"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from faults.hosts import CannotNetworkError, Network
from faults.partition import ASKED, cluster

pytestmark = pytest.mark.services


def test_partition(tmp_path: Path) -> None:
    """Calls to the machine that is cut off fail with 504, then with 503 or not at all; then all heals."""
    try:
        network = Network(3, delay_ms=1.0).__enter__()
    except CannotNetworkError as error:
        pytest.skip(str(error))
    try:
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
            for asked in ASKED:
                running.await_statuses(asked, {200}, healed, 20)
        for system in running.systems:
            assert system.left_over() == []
    finally:
        network.__exit__()
