"""What is a generated system? Frozen data: services, what their endpoints do, and who uses them.

Times are nominal milliseconds: work is a number of loop iterations in proportion to them
(``work.py`` of the written project), so how long it really takes is the machine's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "LETTERS",
    "Ask",
    "Burn",
    "CallTo",
    "Choice",
    "Database",
    "Endpoint",
    "Find",
    "Operation",
    "Pause",
    "Runtime",
    "Service",
    "Shape",
    "Step",
    "System",
    "Think",
]

Shape = Literal["constant", "uniform", "exponential", "lognormal"]
Database = Literal["", "embedded", "mongod"]
Runtime = Literal["process", "thread", "async"]

LETTERS: Mapping[Runtime, str] = {"process": "s", "thread": "t", "async": "a"}
"""What names of systems begin with; the seed follows."""


@dataclass(frozen=True, slots=True)
class Burn:
    """CPU work of a mean size in nominal ms; the amount varies between requests as ``shape`` says."""

    ms: float
    shape: Shape


@dataclass(frozen=True, slots=True)
class Pause:
    """Waiting without a core, in ms: always as long (constant), or up to a half more or less (uniform)."""

    ms: float
    shape: Literal["constant", "uniform"]


@dataclass(frozen=True, slots=True)
class CallTo:
    """A request to an endpoint."""

    service: str
    path: str


@dataclass(frozen=True, slots=True)
class Find:
    """A query: ``by_id`` finds one document, ``by_shelf`` about ten."""

    query: Literal["by_id", "by_shelf"]


Operation: TypeAlias = CallTo | Find


@dataclass(frozen=True, slots=True)
class Ask:
    """Start all operations, work meanwhile, then wait for each of them."""

    operations: tuple[Operation, ...]
    meanwhile: Burn | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two ways to go, drawn anew for every request."""

    probability: float
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()


Step: TypeAlias = Burn | Pause | Ask | Choice


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a request makes a service do before it responds, and after that."""

    path: str
    steps: tuple[Step, ...]
    after: Burn | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its deployment."""

    name: str
    pool: int
    replicas: int
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Think:
    """The pause of a user before each cycle, in seconds."""

    seconds: float
    shape: Literal["constant", "exponential"]


@dataclass(frozen=True, slots=True)
class System:
    """A generated application with its users.

    Attributes:
        seed: What it was generated from.
        services: In an order in which callers come before those they call.
        scenario: What one cycle of a user asks for; only ``Ask`` of calls, and ``Choice`` of those.
        think: None = the next cycle begins at once.
        database: Which kind of server answers ``Find``; "" = there is none.
        meant_to_fill: What the nominal times say is full first.
        runtime: What workers of all services are.
    """

    seed: int
    services: tuple[Service, ...]
    scenario: tuple[Step, ...]
    think: Think | None
    database: Database
    meant_to_fill: Literal["host", "pool"]
    runtime: Runtime = "process"

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{LETTERS[self.runtime]}{self.seed}"

    @property
    def workers(self) -> int:
        """Worker processes of all services."""
        return sum(s.pool * s.replicas for s in self.services)

    def service(self, name: str) -> Service:
        """Return the service of this name (KeyError if there is none)."""
        for service in self.services:
            if service.name == name:
                return service
        raise KeyError(name)

    def endpoint(self, target: CallTo) -> Endpoint:
        """Return what a call addresses."""
        return next(e for e in self.service(target.service).endpoints if e.path == target.path)
