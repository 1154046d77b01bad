"""Simulate whole scenarios in other processes, or on other machines.

Anything with the interface of ``concurrent.futures`` is asked for one scenario at a time. What all of them
need, the baseline and what is asked, is packed once; a scenario is then no more than its changes. A worker
keeps the runs of the baseline that several scenarios need. Every job is deterministic, so it does
not matter who did it, in which order, or whether it had to be done twice.

The same numbers come out of the same program only, so workers compare versions first.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import socket
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final, Protocol

from mup.errors import MupError, UnfinishedError, UsageError
from mup.lqn.model import Model
from simulator.machine.budget import Budget, limit_error
from simulator.studies.grids.here import run_in_turn
from simulator.studies.grids.scenario_study import Found, OnResult, ScenarioStudy, Wanted
from simulator.studies.whatif import Change, Scenario

__all__ = ["Executor", "run_elsewhere", "versions"]

POLL_SECONDS: Final = 0.5
"""How often the waiting thread looks for signals (Ctrl-C) and at the time."""
OPENED: Final = 4
"""Grids that a process keeps open: workers of a cluster may serve several clients."""
PACKAGES: Final = ("numpy", "scipy")
"""What computes the numbers."""
SOURCES: Final = ("simulator", "mup/lqn", "mup/native", "mup/statistics")


class Executor(Protocol):
    """What is used of an executor as in ``concurrent.futures``.

    One that has a method ``share`` is given what all calls need through it, and what that returns is passed
    to them; it has to arrive there as what was given.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Have a function called somewhere."""


@cache
def versions() -> Mapping[str, str]:
    """Return what has to be the same wherever the same numbers are to come out."""
    # Imported here: only what is computed elsewhere needs it, and it loads a parser of e-mails.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    root = Path(__file__).resolve().parents[3]
    total = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            total.update(path.relative_to(root).as_posix().encode())
            total.update(path.read_bytes())
    found["the simulator's sources"] = total.hexdigest()[:12]
    return found


@dataclass(frozen=True, slots=True)
class Package:
    """A grid on its way.

    Attributes:
        versions: Of who packed it.
        digest: Of the content.
        content: What a study needs, pickled: to be opened only where versions are the same.
    """

    versions: Mapping[str, str]
    digest: str
    content: bytes


@dataclass(frozen=True, slots=True)
class _Refused:
    """A worker cannot simulate: it has other versions."""

    message: str


@dataclass(slots=True)
class _Opened:
    """A grid where scenarios of it are simulated."""

    baseline: Scenario
    wanted: Wanted
    seconds: float
    known: dict[Hashable, Any] = field(default_factory=dict)


_opened: OrderedDict[str, _Opened] = OrderedDict()
_lock = Lock()


def simulate_scenario(
    package: Package, number: int, changes: tuple[Change, ...], model: Model | None
) -> Found | MupError | _Refused:
    """Return what is known about one scenario; this is what runs elsewhere.

    Args:
        package: The grid.
        number: Which scenario; 0 is the baseline.
        changes: Of the scenario.
        model: Of the scenario; None if its changes of the baseline make it.
    """
    own = versions()
    different = [name for name in own if package.versions.get(name) != own[name]]
    if different:
        listed = ", ".join(
            f"{name}: {own[name]} there, {package.versions.get(name)} here" for name in different
        )
        return _Refused(
            f"the worker on {socket.gethostname()} (process {os.getpid()}) has other versions: {listed}"
        )
    grid = _open(package)
    try:
        if number == 0:
            scenario = grid.baseline
        else:
            scenario = Scenario(changes, grid.baseline.model if model is None else model)
            if model is None:
                scenario = Scenario(changes, _changed(grid.baseline.model, changes))
        study = ScenarioStudy(
            grid.baseline, grid.wanted, Budget("the grid of scenarios", seconds=grid.seconds)
        )
        return run_in_turn(study.rounds(scenario, own=number == 0), grid.known)
    except MupError as error:
        return error


def _open(package: Package) -> _Opened:
    with _lock:
        if package.digest not in _opened:
            _opened[package.digest] = _Opened(*pickle.loads(package.content))  # noqa: S301 - by our client
            while len(_opened) > OPENED:
                _opened.popitem(last=False)
        _opened.move_to_end(package.digest)
        return _opened[package.digest]


def _changed(model: Model, changes: Sequence[Change]) -> Model:
    for change in changes:
        model = change.apply(model)
    return model


def run_elsewhere(
    executor: Executor,
    scenarios: Sequence[Scenario],
    wanted: Wanted,
    budget: Budget,
    max_seconds: float,
    progress: Callable[[int, int], None] | None,
    on_result: OnResult | None,
) -> tuple[dict[int, Found], UnfinishedError | None]:
    """Have scenarios simulated.

    Args:
        executor: Runs the simulations.
        scenarios: Different ones, the baseline first.
        wanted: What is asked.
        budget: Of all of them together; when it is used up, what is not finished is left out.
        max_seconds: Wall time of it.
        progress: Called with (finished, all) scenarios.
        on_result: Called with every scenario that has a result.

    Returns:
        What was found, by the place of the scenario, and the failure that left something out.

    Raises:
        MupError: Of the first scenario that fails.
    """
    baseline = scenarios[0]
    content = pickle.dumps((baseline, wanted, max_seconds))
    package: Any = Package(dict(versions()), hashlib.sha256(content).hexdigest(), content)
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    places: dict[Future[Any], int] = {}
    found: dict[int, Found] = {}
    try:
        share = getattr(executor, "share", None)
        package = package if share is None else share(package)
        for number, scenario in enumerate(scenarios):
            model = None if number == 0 else _unless_changed(baseline.model, scenario)
            future = executor.submit(simulate_scenario, package, number, scenario.changes, model)
            places[future] = number
            future.add_done_callback(finished.put)
        while len(found) < len(scenarios):
            over = budget.reached()
            if over is not None:
                for number in range(len(scenarios)):
                    found.setdefault(number, Found(limit_error(over)))
                break
            try:
                future = finished.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            number = places[future]
            answer = future.result()
            if isinstance(answer, _Refused):
                raise UsageError(answer.message, hint="install the same versions on all machines")
            if isinstance(answer, MupError):
                raise answer
            found[number] = answer
            if on_result is not None and not isinstance(answer.result, MupError):
                on_result(scenarios[number], answer.result)
            if progress is not None:
                progress(len(found), len(scenarios))
    except MupError:
        raise
    except (Exception, CancelledError) as error:  # noqa: BLE001 - whatever an executor may raise
        return found, _failed(error, len(found), len(scenarios))
    finally:
        for future in places:
            future.cancel()
    return found, None


def _unless_changed(baseline: Model, scenario: Scenario) -> Model | None:
    """Return the model of a scenario; None if its changes of the baseline make it."""
    try:
        made = _changed(baseline, scenario.changes)
    except MupError:
        return scenario.model
    return None if made == scenario.model else scenario.model


def _failed(error: BaseException, done: int, count: int) -> UnfinishedError:
    text = " ".join(str(error).split()) or "no reason given"
    return UnfinishedError(
        f"the executor failed after {done} of {count} scenarios: {type(error).__name__}: {text}",
        hint="what was finished is kept; see the log of the worker for more",
    )
