"""Sagas as lists of steps with compensations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mup.errors import CommunicationError


class SagaFailed(Exception):
    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step


@dataclass
class Step:
    name: str
    action: Callable[[Any, dict], Any]
    compensation: Callable[[Any, dict], Any] | None = None


@dataclass
class Saga:
    steps: list[Step] = field(default_factory=list)

    def step(self, name, action, compensation=None):
        self.steps.append(Step(name, action, compensation))
        return self

    def run(self, comm, data: dict) -> dict:
        done = []
        for step in self.steps:
            try:
                step.action(comm, data)
            except CommunicationError as error:
                for earlier in reversed(done):
                    if earlier.compensation is not None:
                        earlier.compensation(comm, data)
                raise SagaFailed(step.name, str(error)) from error
            done.append(step)
        return data
