"""Applications and what-if families, figures of the papers, and how each one is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from accuracy.mongod import mongod

from mup.errors import DeploymentError, UsageError
from mup.project import Project, load_project
from simulator.studies.autoscale import Scaling

__all__ = ["APPLICATIONS", "FAMILIES", "MODES", "ROOT", "Database", "Family", "available_database", "started"]

ROOT: Final = Path(__file__).resolve().parents[2]
APPLICATIONS: Final = ("acmeair", "jpetstore", "teastore", "tms")
MODES: Final = ("wait", "cpu")

Database = Literal["mongod", "embedded"]


@dataclass(frozen=True, slots=True)
class Family:
    """A what-if of the thesis, section 5.3.

    Attributes:
        title: What is changed.
        scaling: What the autoscaler does for a bottleneck.
        papers_cycle: Largest relative error of the response time, think time included, over all applications.
        papers_utilization: Largest error of the bottleneck's utilization by application; None: not reported.
    """

    title: str
    scaling: Scaling
    papers_cycle: float
    papers_utilization: dict[str, float] | None


FAMILIES: Final = {
    "W1": Family("system load", "none", 0.0813, None),
    "W2": Family(
        "vertical scaling",
        "vertical",
        0.0861,
        {"acmeair": 0.01, "jpetstore": 0.04, "teastore": 0.09, "tms": 0.07},
    ),
    "W3": Family(
        "horizontal scaling",
        "horizontal",
        0.0813,
        {"acmeair": 0.01, "jpetstore": 0.04, "teastore": 0.08, "tms": 0.08},
    ),
}


def available_database() -> Database:
    """Return the best database this machine can run: a real MongoDB, or the embedded one."""
    try:
        with mongod():
            return "mongod"
    except DeploymentError:
        return "embedded"


@contextmanager
def started(
    application: str, mode: str, database: Database, *, folder: Path | None = None
) -> Iterator[Project]:
    """Give the project of an application on free ports, with a fresh database while it is used.

    Args:
        application: One of `APPLICATIONS`.
        mode: ``wait``: work is a pause; ``cpu``: it keeps a core busy.
        database: What answers queries.
        folder: A copy of the application whose source was edited; None: the application.

    Raises:
        UsageError: There is no such application or mode.
        DeploymentError: The database does not start.
    """
    if application not in APPLICATIONS:
        raise UsageError(f"no case study {application!r}", hint=f"one of {', '.join(APPLICATIONS)}")
    if mode not in MODES:
        raise UsageError(f"no mode {mode!r}", hint=f"one of {', '.join(MODES)}")
    project = load_project(folder or ROOT / "examples" / application).with_any_ports()
    work = {"MUP_WORK": mode}
    project = replace(project, services=tuple(replace(s, env={**s.env, **work}) for s in project.services))
    with ExitStack() as stack:
        if database == "mongod":
            uri = stack.enter_context(mongod())
            for found in project.databases:
                project = project.with_database_uri(found.name, uri)
        yield project
