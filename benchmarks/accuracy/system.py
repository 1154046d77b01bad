"""Generated system as frozen data: services, their endpoints, and their users.

Times are nominal milliseconds: work is a number of loop iterations (or of blocks, or rows) in proportion to
them (``work.py`` of the written project), so how long it really takes is the machine's affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "LETTERS",
    "Ask",
    "Burn",
    "Cache",
    "Cached",
    "CallTo",
    "Choice",
    "Database",
    "Endpoint",
    "Fan",
    "Find",
    "Kind",
    "Operation",
    "Pause",
    "Runtime",
    "Scan",
    "Service",
    "Shape",
    "Step",
    "System",
    "Think",
    "Work",
    "every_step",
    "walk",
]

Shape = Literal["constant", "uniform", "exponential", "lognormal", "heavy", "pareto", "bimodal"]
Work = Literal["burn", "digest", "render"]
Database = Literal["", "embedded", "mongod"]
Runtime = Literal["process", "thread", "async"]

LETTERS: Mapping[Runtime, str] = {"process": "s", "thread": "t", "async": "a"}
"""What names of systems begin with; the seed follows."""


@dataclass(frozen=True, slots=True)
class Burn:
    """CPU work of a mean size in nominal ms; the amount varies between requests as ``shape`` says.

    ``work`` is what is done: a loop, a hash (without the interpreter's lock), or rendering JSON.
    """

    ms: float
    shape: Shape
    work: Work = "burn"


@dataclass(frozen=True, slots=True)
class Pause:
    """Waiting without a core, in ms: always as long, up to a half more or less (uniform), or exponential."""

    ms: float
    shape: Literal["constant", "uniform", "exponential"]


@dataclass(frozen=True, slots=True)
class Scan:
    """Going through all data a service holds in memory: nominal ms with as much of it as explored."""

    ms: float


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
    """Start all operations, work meanwhile, then wait for each of them.

    A single call that fails is made again until there were ``attempts`` of them, by a loop in the source.
    """

    operations: tuple[Operation, ...]
    meanwhile: Burn | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Fan:
    """Call an endpoint once for each item of the request's list, then wait for all of them.

    All calls start at once, or at most ``limit`` of them are under way (0 = no limit).
    """

    call: CallTo
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two ways to go, drawn anew for every request."""

    probability: float
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Cached:
    """Look the key of the request up in the cache of the worker; what is missing is put there.

    ``hits`` is the share of requests that find their key, on paper: what is most popular is all there.
    """

    hits: float
    hit: tuple[Step, ...]
    miss: tuple[Step, ...]


Step: TypeAlias = Burn | Scan | Pause | Ask | Fan | Choice | Cached


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a request makes a service do before it responds, and after that.

    A share of the requests is ``refused`` at once, with 503: the caller may try again.
    """

    path: str
    steps: tuple[Step, ...]
    after: Burn | None = None
    refused: float = 0.0


@dataclass(frozen=True, slots=True)
class Cache:
    """Room for some keys; those most popular are there from the start, or what is asked for fills it."""

    size: int
    filled: bool


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its deployment.

    Attributes:
        name: Of the class, and in calls.
        pool, replicas: Workers of each replica, and replicas.
        endpoints: What it answers.
        runtime: What its workers are; None = as in the whole system.
        cache: Of each worker (an event loop's workers share one); None = it has none.
        retries: Its failed calls are made again, as ``mup.toml`` says.
    """

    name: str
    pool: int
    replicas: int
    endpoints: tuple[Endpoint, ...]
    runtime: Runtime | None = None
    cache: Cache | None = None
    retries: bool = False


@dataclass(frozen=True, slots=True)
class Think:
    """The pause of a user before each cycle, in seconds."""

    seconds: float
    shape: Literal["constant", "exponential"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A second kind of users, with the share of all cycles that are theirs."""

    share: float
    scenario: tuple[Step, ...]
    think: Think


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
        runtime: What workers of all services are that do not say so themselves.
        prefix: What its name begins with; "" = the letter of the runtime.
        other: The second kind of users; None = all are alike.
        keys: Users ask for so many keys, the most popular most often; 0 = requests have none.
        widths: Users send a list of at least and at most so many items; None = requests have none.
        arrivals: Users also come at a rate, however many are there.
        features: What it has that the report tells apart.
    """

    seed: int
    services: tuple[Service, ...]
    scenario: tuple[Step, ...]
    think: Think | None
    database: Database
    meant_to_fill: Literal["host", "pool"]
    runtime: Runtime = "process"
    prefix: str = ""
    other: Kind | None = None
    keys: int = 0
    widths: tuple[int, int] | None = None
    arrivals: bool = False
    features: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.prefix or LETTERS[self.runtime]}{self.seed}"

    def runtime_of(self, service: Service) -> Runtime:
        """Return what the workers of a service are."""
        return service.runtime or self.runtime

    @property
    def data(self) -> bool:
        """Whether there is data whose size can change."""
        scans = any(isinstance(s, Scan) for service in self.services for s in every_step(service))
        return bool(self.prefix) and (bool(self.database) or scans)

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


def every_step(service: Service) -> Iterator[Step]:
    """Yield all steps of a service's endpoints, also those inside others."""
    for endpoint in service.endpoints:
        yield from walk(endpoint.steps)
        if endpoint.after is not None:
            yield endpoint.after


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Yield steps and those inside them."""
    for step in steps:
        yield step
        match step:
            case Choice(then=one, otherwise=two) | Cached(hit=one, miss=two):
                yield from walk((*one, *two))
            case Ask(meanwhile=meanwhile) if meanwhile is not None:
                yield meanwhile
