"""Result of static analysis of a source tree.

Pure data: services with their endpoints, clients with their scenarios, the execution paths of both, and
everything that could not be analysed.

A *path* is a sequence of remote operations. Two executions that differ in local work only are the same path.
A loop that communicates an unknown number of times is one element of it, with the paths of one iteration.
Where there would be too many paths, branches that do not depend on each other are elements, too: choices.
A concurrent task is another one, with what the task does; a path that waits for it has a ``join`` later.
Where a path waits for the first of several tasks, these and the wait are one element, a race.
So is a fan-out: what a loop of unknown length begins, and the path waits for later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Literal

from analyzer.static.diagnostics import Diagnostic
from mup.errors import AnalysisError, did_you_mean
from mup.events.sites import Site
from mup.lqn.distributions import Distribution
from mup.lqn.refs import EndpointRef, QueryRef

__all__ = [
    "LEFT",
    "Application",
    "ClientClass",
    "Definition",
    "Endpoint",
    "Held",
    "Operation",
    "OperationKind",
    "Path",
    "Service",
]

OperationKind = Literal[
    "call", "query", "get", "respond", "think", "loop", "choice", "task", "fan-out", "join", "race"
]
End = Literal["return", "raise"]

LEFT = "left"
"""Target of a loop that begins, beside the copies of the fan-out before it, calls nothing waits for."""


@dataclass(frozen=True, slots=True)
class Held:
    """A semaphore or lock that the requests of a replica share, while one of them holds it.

    Attributes:
        name: The attribute or constant that has it.
        permits: How many may hold it at once; 1 for a lock.
        made: Where it is made. Those made at one place, with as many permits, are one.
        taken: Where it is taken.
    """

    name: str
    permits: int
    made: Site
    taken: Site


@dataclass(frozen=True, slots=True)
class Operation:
    """One element of a path: a remote operation, a think step, a loop or choice of them, a task or fan-out.

    Attributes:
        op: What it does.
        site: The expression in the source that does it; of a loop or choice its place, with ordinal 0.
        target: ``B/epB/`` for a call (``B`` and the endpoint's path), ``db.qry`` for a query; ``early`` for a
            join that does not care whether tasks have come to their end; ``first`` for one that waits for one
            of the copies of a fan-out; ``flow`` for a fan-out whose copies
            are no tasks: the flow itself begins them one after the other, and waits for one after the other;
            ``at once`` for a fan-out whose copies make their first call before any of them has waited for
            something; ``left`` for a loop whose calls nothing waits for, while the copies of the fan-out
            before it are the calls of the same loop that are waited for; else "".
        of: For ``get``: index in the path's operations of the call or query it waits for; for ``join``: of
            the task or fan-out. Below 0 in the path of a task: -1 is the operation before it in the path
            around it.
        think: For ``think``: the time in seconds, None if the source does not tell.
        to: Of a call or query, what ``target`` names; None if the source does not tell.
        bodies: For ``loop``: the paths of one iteration that communicates and may be followed by another.
            For ``choice``: the paths exactly one of which is taken; the last may be empty. For ``task``: the
            one path it takes. Its operations happen any time from here to the ``join``; without a ``join`` it
            may also stop anywhere. For ``fan-out``: the paths one copy may take. Any number of copies begin
            here, and the ``join``, which it always has, waits for all of them. For ``race``: the one path of
            each task. All of them begin here, and the path goes on when the first has ended; the others may
            stop anywhere.
        most: Of a fan-out, how many copies there are at most; None if the source does not tell.
        limit: Of a fan-out, and of a task that a loop starts for one, how many copies go on at once at most;
            None = all.
        holding: Semaphores and locks of all requests that are held meanwhile, the first taken first. Tasks,
            and copies that are tasks, hold what they take themselves.
    """

    op: OperationKind
    site: Site
    target: str = ""
    of: int | None = None
    think: Distribution | None = None
    bodies: tuple[Path, ...] = ()
    to: EndpointRef | QueryRef | None = None
    most: int | None = None
    limit: int | None = None
    holding: tuple[Held, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # States are compared by their operations again and again, and loops can be large trees.
        what = (self.op, self.site, self.target, self.of, self.think, self.bodies)
        object.__setattr__(self, "_hash", hash((*what, self.most, self.limit, self.holding)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def called(self) -> EndpointRef:
        """The endpoint of a call."""
        assert isinstance(self.to, EndpointRef)  # noqa: S101  (a call of anything else is refused before)
        return self.to

    @property
    def queried(self) -> QueryRef:
        """The query and its database, of a query."""
        assert isinstance(self.to, QueryRef)  # noqa: S101
        return self.to

    def outward(self) -> Iterator[int]:
        """Yield where, relative to a task, the operations of the path around it are that it waits for."""
        for body in self.bodies if self.op == "task" else ():
            for index, operation in enumerate(body.operations):
                waited = [*operation.outward(), *([] if operation.of is None else [operation.of - index])]
                yield from (index + place for place in waited if index + place < 0)


@dataclass(frozen=True, slots=True)
class Path:
    """One way through an endpoint or scenario, or through a body of a loop or choice.

    Attributes:
        operations: In execution order, helpers inlined and loops over known items unrolled.
        ends: ``return``, or ``raise`` if an exception leaves the method.
        end_line: Line of the ``raise``; 0 for ``return``.
        local_lines: For each segment between operations (one more than operations) the line of its first
            local statement, 0 if it has none of its own.
    """

    operations: tuple[Operation, ...]
    ends: End
    end_line: int
    local_lines: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return how many paths this is, bodies of loops and choices included; a task is part of its path."""
        inside = ((o, body) for o in self.operations for body in o.bodies)
        return 1 + sum(body.size - (operation.op in ("task", "race")) for operation, body in inside)

    def is_raced(self, index: int) -> bool:
        """Return whether the first copy of the fan-out at this index is waited for, not all of them."""
        return any(o.op == "join" and o.of == index and o.target == "first" for o in self.operations)

    def walk(self) -> Iterator[Operation]:
        """Yield all operations in order; each loop or choice is followed by what its bodies may do."""
        for operation in self.operations:
            yield operation
            for body in operation.bodies:
                yield from body.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function, class or constant of the source that an endpoint runs or refers to.

    Attributes:
        name: Qualified name of a function or class, "" of a constant.
        file: Relative to the source folder.
        line: Of its ``def`` or ``class``, or of the value.
        digest: Hash of its normalised code. Layout, comments, docstrings, names of local variables, the order
            of methods and where the definition stands do not count.
        statements: Line and hash of each of its statements, without those inside it, in source order.
    """

    name: str
    file: str
    line: int
    digest: str
    statements: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One ``@EP`` method of one service.

    Attributes:
        service: Name of the service.
        path: As in the decorator, e.g. ``/epA/``.
        name: The name calls may use instead of the path, "" if it has none.
        function: Qualified name of the method that runs; of a base class if it is inherited.
        file: File of that method, relative to the source folder.
        line: Line of its ``def``.
        paths: In source order of the branches that tell them apart.
        fingerprint: Hash of its normalised code and of all project code it refers to.
        code: The definitions behind it, its method first; () unless they were asked for.
        whole: It was not analysed: what it does is measured as a whole, and ``paths`` has a response only.
    """

    service: str
    path: str
    name: str
    function: str
    file: str
    line: int
    paths: tuple[Path, ...]
    fingerprint: str
    code: tuple[Definition, ...] = ()
    whole: bool = False

    @property
    def label(self) -> str:
        """Return ``SERVICE/path``, the name logs and results use."""
        return f"{self.service}{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One ``MS`` subclass as deployed.

    Attributes:
        name: What other services call it.
        class_name: Qualified name of the class.
        file: File of the class, relative to the source folder.
        line: Line of the class.
        pool_size: Requests one replica serves at once.
        replicas: Identical copies.
        port: Base port, 0 = any.
        runtime: ``process``, ``thread`` or ``async``.
        admission: ``fifo`` or ``random``.
        pinned: Whether a replica of threads, or with an event loop, stays on one core.
        endpoints: In source order, inherited ones included.
    """

    name: str
    class_name: str
    file: str
    line: int
    pool_size: int
    replicas: int
    port: int
    runtime: str
    admission: Literal["fifo", "random"]
    pinned: bool
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientClass:
    """One ``Client`` subclass and what one cycle of its scenario does.

    Attributes:
        name: Name of the class.
        file: File of the class, relative to the source folder.
        line: Line of the class.
        function: Qualified name of the scenario method.
        scenario_line: Line of its ``def``.
        paths: As for endpoints; they contain ``think`` operations and no ``respond``.
        fingerprint: As for endpoints.
        without_think_times: The same without the think times that the source states.
        code: As for endpoints.
    """

    name: str
    file: str
    line: int
    function: str
    scenario_line: int
    paths: tuple[Path, ...]
    fingerprint: str
    without_think_times: str = ""
    code: tuple[Definition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Everything static analysis knows about a source tree.

    Attributes:
        root: The source folder; all files are relative to it.
        services: In discovery order.
        clients: In discovery order.
        diagnostics: In order of file and line.
        remembered: Services that were not analysed again, because nothing they depend on has changed.
    """

    root: FilePath
    services: tuple[Service, ...]
    clients: tuple[ClientClass, ...]
    diagnostics: tuple[Diagnostic, ...]
    remembered: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics that make a model impossible."""
        return tuple(d for d in self.diagnostics if d.severity == "error")

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints of all services."""
        for service in self.services:
            yield from service.endpoints

    def endpoint(self, label: str) -> Endpoint:
        """Return the endpoint called ``label``, e.g. ``A/epA/``.

        Raises:
            AnalysisError: There is none; the message suggests the closest name.
        """
        for endpoint in self.endpoints():
            if endpoint.label == label:
                return endpoint
        known = [e.label for e in self.endpoints()]
        raise AnalysisError(f"no endpoint {label!r}; {did_you_mean(label, known)}", where=str(self.root))

    def client(self, name: str) -> ClientClass:
        """Return the client class called ``name``.

        Raises:
            AnalysisError: There is none; the message suggests the closest name.
        """
        for client in self.clients:
            if client.name == name:
                return client
        known = [c.name for c in self.clients]
        raise AnalysisError(f"no client class {name!r}; {did_you_mean(name, known)}", where=str(self.root))
