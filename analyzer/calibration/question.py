"""Predictions that an exploration is for, and whether the application can be asked them.

A question is what ``mup whatif`` would be asked: changes of the load, of the deployment, of the routing.
Without any it is about the system as it is, with the one client of the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from analyzer.calibration.calibrate import own_core
from analyzer.calibration.placement import placed, placement_of
from analyzer.host.names import HOST
from analyzer.static.application import Application
from analyzer.static.translate import translate_with_plan
from mup.errors import UsageError
from mup.lqn import Model, Processor
from mup.lqn.routing_edits import with_even_odds
from mup.project import Project
from simulator.studies.whatif import Axis, Scenario, grid

__all__ = ["OWN_CLIENT", "Question", "check"]

OWN_CLIENT = "the project's own client"
"""How a scenario without changes is called."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be predicted, and how well.

    Attributes:
        as_written: Lists of changes by how they were written (``clients=8,64 pool:A=8``); none = the system
            as it is.
        width: Relative 95 % half-width to know the predicted figures to.
    """

    as_written: Mapping[str, tuple[Axis, ...]]
    width: float

    def __post_init__(self) -> None:
        if not 0 < self.width < 1:
            raise UsageError(f"width must be a fraction between 0 and 1, got {self.width!r}")

    def scenarios(self, model: Model) -> dict[str, Scenario]:
        """Return the scenarios of a model that are asked for, by name.

        Raises:
            UsageError: A value is out of range, or a name unknown.
        """
        found = [scenario for axes in self.as_written.values() or [()] for scenario in grid(model, axes)]
        return {str(scenario) if scenario.changes else OWN_CLIENT: scenario for scenario in found}


def check(question: Question, application: Application, project: Project) -> None:
    """Refuse what no model of the application could be asked, before anything is started.

    Raises:
        UsageError: A value is out of range, or a name unknown.
    """
    model, _ = translate_with_plan(application, name=project.name, client=project.client_class or None)
    sharing = [service.name for service in application.services if service.runtime != "process"]
    # What calibration puts the tasks on, by name: it takes a log to know more.
    processors = (Processor(name=HOST), *(Processor(name=own_core(name), parent=HOST) for name in sharing))
    tasks = tuple(
        replace(
            task,
            processor=own_core(task.name) if task.name in sharing else HOST,
        )
        if task.role in ("service", "reference", "database")
        else task
        for task in model.tasks
    )
    deployed = placed(replace(model, processors=processors, tasks=tasks), placement_of(project))
    # How often paths are taken, a run will tell.
    question.scenarios(with_even_odds(deployed))
