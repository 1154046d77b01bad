"""Nothing is lost, and all comes back, when processes of a system are killed or stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from faults.buyers import Buyers, buying
from faults.crashes import CRASHES, Crash, Scene, inflict
from faults.database import durable_mongod
from faults.ledger import lost_orders, unlogged
from faults.system import System, write_project

from mup.errors import DeploymentError

pytestmark = [pytest.mark.services, pytest.mark.slow]

LONG_ONLY = {"kill the only front behind", "stop the registry", "kill the front users ask"}
SHORT = [crash for crash in CRASHES if crash.name not in LONG_ONLY]
BAD = (502, 503, 504)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Buyers]]:
    """A shop of three services and a database, and users who buy all the time."""
    folder = tmp_path_factory.mktemp("crashes")
    with ExitStack() as stack:
        try:
            mongod = stack.enter_context(durable_mongod(folder / "mongod"))
        except DeploymentError as error:
            if os.environ.get("MUP_REQUIRE_MONGOD") == "1":
                raise
            pytest.skip(str(error))
        project = write_project(folder / "shop", ["Shop", "Stock", "Orders"], mongod.uri)
        system = stack.enter_context(System(project))
        scene = Scene(system, mongod, stopped_seconds=0.5)
        with buying(system, users=4) as buyers:
            yield scene, buyers


@pytest.mark.parametrize("crash", SHORT, ids=lambda crash: crash.name.replace(" ", "-"))
def test_crash(shop: tuple[Scene, Buyers], crash: Crash) -> None:
    """Users see the right statuses, log and metrics tell of it, and all goes on when what was hit is back."""
    scene, buyers = shop
    began = time.monotonic()
    counted = answers_of(scene.system)
    outcome = inflict(crash, scene, buyers)
    assert outcome.problems == []
    # Every failure a user has seen is one the service has counted.
    now, seen = answers_of(scene.system), buyers.statuses(began, time.monotonic())
    assert all(now.get(status, 0) - counted.get(status, 0) >= seen[status] for status in BAD)


def test_accounts(shop: tuple[Scene, Buyers]) -> None:
    """After all of that, every order that was acknowledged is in the database and in the log of the shop.

    And when even `mup run` is killed, nothing it has started stays.
    """
    scene, buyers = shop
    system = scene.system
    os.kill(system.pid, signal.SIGKILL)
    assert system.left_over() == []
    seen = list(buyers.seen())
    assert sum(purchase.status == 200 for purchase in seen) > 100
    assert lost_orders(scene.mongod.uri, seen) == set()
    assert unlogged(system.logs, "Shop", seen, scene.killed) == set()


def answers_of(system: System) -> dict[int, float]:
    """Return how many purchases the shop says it has answered, by status."""
    metrics = system.metrics("Shop")
    start = 'mup_requests_total{endpoint="/buy/",status="'
    return {int(name.removeprefix(start)[:3]): n for name, n in metrics.items() if name.startswith(start)}


def test_the_ledger_notices(tmp_path: Path) -> None:
    """A request that no log has is reported, unless its process was killed with the record in its hands."""
    from faults.buyers import Purchase

    from mup.events.record import Event
    from mup.events.writer import EventWriter

    header = {"role": "worker", "service": "Shop", "replica": 0, "worker": 0}
    writer = EventWriter(tmp_path / "Shop.0.w0.mlog", header)
    writer.write(Event.END, 1, 1, time=int(5e9))
    writer.close()
    purchases = [Purchase("a", "1", 4.0, 5.5, 200, ""), Purchase("b", "2", 6.0, 6.5, 200, "")]
    assert unlogged(tmp_path, "Shop", purchases, {}) == {"2"}
    assert unlogged(tmp_path, "Shop", purchases, {os.getpid(): 5.9}) == {"2"}
    assert unlogged(tmp_path, "Shop", purchases, {os.getpid(): 6.2}) == set()
