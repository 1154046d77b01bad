"""Processes that are killed or stopped while users buy: what they saw, and how soon all was well again."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from faults.buyers import BROKEN, Buyers
from faults.database import Mongod
from faults.system import System, wait_for

__all__ = ["CRASHES", "Crash", "Outcome", "Scene", "inflict"]

REPLICAS = {"Shop": 1, "Stock": 2, "Orders": 1}


@dataclass(slots=True)
class Scene:
    """Where crashes happen.

    Attributes:
        system: Runs ``Shop``, ``Stock`` and ``Orders``.
        mongod: Keeps the orders.
        stopped_seconds: How long a process that is stopped stays so.
        killed: When processes were killed, by process id; seconds of the monotonic clock.
    """

    system: System
    mongod: Mongod
    stopped_seconds: float
    killed: dict[int, float] = field(default_factory=dict)

    def kill(self, *pids: int) -> None:
        """Kill processes with -9."""
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            self.killed[pid] = time.monotonic()

    def hold(self, pid: int) -> None:
        """Stop a process for a while."""
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.stopped_seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    def whole(self) -> bool:
        """Whether every replica is registered and has all its workers."""
        for service, count in REPLICAS.items():
            for replica in range(count):
                status = self.system.status(service, replica)
                if not status or len(status["workers"]) != status["pool_size"]:
                    return False
        return True


@dataclass(frozen=True, slots=True)
class Crash:
    """Something that happens to the system.

    Attributes:
        name: For tables.
        strike: Does it; returns when what was hit is back.
        allowed: Statuses users may see; `BROKEN` where the very process that would answer them is gone.
        said: What has to be in the log of the system afterwards.
        counted: Service, replica and name of the metric that has to count it; None = its process is gone.
        foreign: Whether it hits what is not mup's: nothing needs to be said then if no user saw a failure.
    """

    name: str
    strike: Callable[[Scene], None]
    allowed: frozenset[int]
    said: str = ""
    counted: tuple[str, int, str] | None = None
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a crash.

    Attributes:
        statuses: What users saw between the crash and the first of the good answers at the end, by status.
        away: Seconds until what was hit was back.
        recovery: Seconds from the return of what was hit to the last failure of a purchase that began then.
        texts: One answer per bad status.
        problems: What should not have happened.
    """

    name: str
    statuses: Counter[int]
    away: float
    recovery: float
    texts: dict[int, str]
    problems: list[str]


def inflict(crash: Crash, scene: Scene, buyers: Buyers, *, calm: int = 20) -> Outcome:
    """Let a crash happen, and wait until users have had so many good answers in a row afterwards."""
    system = scene.system
    said = len(system.log_text())
    before = system.metrics(*crash.counted[:2]) if crash.counted else {}
    struck = time.monotonic()
    crash.strike(scene)
    back = time.monotonic()
    recovered = buyers.await_good(calm, back)
    wait_for(scene.whole, "all workers")
    failures = [p for p in buyers.seen() if p.ended >= struck and p.began <= recovered and p.status != 200]
    late = [p.ended - back for p in failures if p.began >= back]
    texts = {p.status: p.text for p in failures}
    problems = [f"users saw {s}: {texts[s]}" for s in sorted(texts.keys() - crash.allowed)]
    expected = crash.said and (bool(failures) or not crash.foreign)
    if expected and crash.said not in system.log_text()[said:]:
        problems.append(f"nothing is said of it: {crash.said!r} is missing")
    if crash.counted:
        name = crash.counted[2]
        if system.metrics(*crash.counted[:2]).get(name, 0.0) <= before.get(name, 0.0):
            problems.append(f"no metric counts it: {name}")
    return Outcome(
        name=crash.name,
        statuses=buyers.statuses(struck, recovered),
        away=back - struck,
        recovery=max(late, default=0.0),
        texts=texts,
        problems=problems,
    )


def _worker(service: str, replica: int) -> Callable[[Scene], None]:
    """Kill the first worker process of a replica."""

    def strike(scene: Scene) -> None:
        status = scene.system.status(service, replica)
        victim = status["workers"][0]
        scene.kill(victim)

        def replaced() -> bool:
            now = scene.system.status(service, replica)
            return bool(now) and victim not in now["workers"] and len(now["workers"]) == now["pool_size"]

        wait_for(replaced, "a new worker")

    return strike


def _front(service: str, replica: int) -> Callable[[Scene], None]:
    def strike(scene: Scene) -> None:
        status = scene.system.status(service, replica)
        scene.kill(status["pid"])
        # The kernel kills them when it has ended.
        scene.killed.update(dict.fromkeys(status["workers"], time.monotonic() + 1.0))

        def restarted() -> bool:
            now = scene.system.status(service, replica)
            return bool(now) and now["pid"] != status["pid"]

        wait_for(restarted, "a new front")

    return strike


def _registry(scene: Scene) -> None:
    scene.kill(scene.system.registry_pid())
    wait_for(scene.whole, "a registry that knows all replicas")


def _mongod(scene: Scene) -> None:
    scene.mongod.kill()
    time.sleep(scene.stopped_seconds)
    scene.mongod.start()


def _stopped(service: str, replica: int, who: str) -> Callable[[Scene], None]:
    def strike(scene: Scene) -> None:
        status = scene.system.status(service, replica)
        scene.hold(status["pid"] if who == "front" else status["workers"][0])

    return strike


def _stopped_registry(scene: Scene) -> None:
    scene.hold(scene.system.registry_pid())


_NO = frozenset({200})
_BEHIND = _NO | {502, 503, 504}
_DIED = 'mup_errors_total{kind="worker_died"}'

CRASHES: Sequence[Crash] = (
    Crash(
        "kill a worker process", _worker("Shop", 0), _NO | {502}, "was killed by SIGKILL", ("Shop", 0, _DIED)
    ),
    Crash(
        "kill a process of threads",
        _worker("Stock", 0),
        _BEHIND,
        "was killed by SIGKILL",
        ("Stock", 0, _DIED),
    ),
    Crash("kill an event loop", _worker("Orders", 0), _BEHIND, "was killed by SIGKILL", ("Orders", 0, _DIED)),
    Crash("kill one of two fronts", _front("Stock", 1), _BEHIND, "was killed by SIGKILL"),
    Crash("kill the only front behind", _front("Orders", 0), _BEHIND, "was killed by SIGKILL"),
    # A process that has just been started knows no list yet.
    Crash("kill the registry", _registry, _NO | {503}, "the registry was restarted"),
    Crash("kill mongod", _mongod, _BEHIND, "database 'db'", foreign=True),
    Crash("stop a worker", _stopped("Shop", 0, "worker"), _NO),
    Crash("stop a front behind", _stopped("Stock", 0, "front"), _BEHIND),
    Crash("stop the registry", _stopped_registry, _NO | {503}),
    # Last: its counters, and the answers of its workers, go with it.
    Crash("kill the front users ask", _front("Shop", 0), _BEHIND | {BROKEN}, "was killed by SIGKILL"),
)
"""In the order they are inflicted."""
