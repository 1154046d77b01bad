"""Options that arrive in ways a reader of one line does not see."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace

from mup import EP, MS, Communication
from mup.errors import CommunicationError, MupError


class Options:
    """Options of a request, with defaults."""

    cached = True
    detailed = False
    limit = 10

    def __init__(self, **values) -> None:
        for name, value in values.items():
            setattr(self, name, value)


class Settings:
    def __init__(self) -> None:
        self.audit = False
        self.verify = False

    def update(self, values: dict) -> "Settings":
        self.__dict__.update(values)
        return self


class Flag:
    """A descriptor: a flag that is looked up in a table."""

    def __set_name__(self, owner, name) -> None:
        self.name = name

    def __get__(self, instance, owner=None) -> bool:
        return instance is not None and instance.flags.get(self.name, False)

    def __set__(self, instance, value) -> None:
        instance.flags[self.name] = bool(value)


class Features:
    beta = Flag()
    fast = Flag()

    def __init__(self, names) -> None:
        self.flags = dict.fromkeys(names, True)


@dataclass(frozen=True)
class Job:
    name: str
    urgent: bool = False

    def __post_init__(self) -> None:
        if self.name.startswith("!"):
            object.__setattr__(self, "urgent", True)


class Audit:
    def __init__(self) -> None:
        self.enabled = False

    def record(self, comm, what):
        return None


def remote_record(comm, what):
    return comm.call("Log", "/write", {"what": what}).get()


class Quiet:
    """What fails inside does not matter."""

    def __init__(self, *errors) -> None:
        self.errors = errors

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, kind, error, trace) -> bool:
        return kind is not None and issubclass(kind, self.errors)


@contextlib.contextmanager
def ignoring_failures() -> Iterator[None]:
    try:
        yield
    except MupError:
        pass


def remember(item, seen=[]):
    """Return everything so far."""
    seen.append(item)
    return seen


class Reports(MS):
    def setup(self) -> None:
        self.audit = Audit()
        self.state = SimpleNamespace(ready=False)

    @EP("/options")
    def options(self, comm: Communication) -> None:
        options = Options(**comm.params)
        if options.detailed:
            comm.query("db", "details", "rows", {}).get()
        if not options.cached:
            comm.query("db", "refresh", "rows", {}).get()
        comm.respond(comm.query("db", "rows", "rows", {}).get()[: options.limit])

    @EP("/settings")
    def settings(self, comm: Communication) -> None:
        settings = Settings().update(comm.params)
        if settings.verify:
            comm.call("Log", "/verify").get()
        if settings.audit:
            comm.call("Log", "/write", {"what": "settings"}).get()
        comm.respond({})

    @EP("/features")
    def features(self, comm: Communication, names: list[str] = []) -> None:
        features = Features(names)
        if features.beta:
            comm.call("Log", "/beta").get()
        if not features.fast:
            comm.query("db", "slow", "rows", {}).get()
        comm.respond({})

    @EP("/features/set")
    def features_set(self, comm: Communication, beta: bool = False) -> None:
        features = Features(())
        features.beta = beta
        if features.beta:
            comm.call("Log", "/beta").get()
        comm.respond({})

    @EP("/jobs")
    def job(self, comm: Communication, name: str) -> None:
        job = Job(name)
        if job.urgent:
            comm.call("Log", "/write", {"what": name}).get()
        comm.query("db", "enqueue", "jobs", {"$insert": [{"name": job.name}]}).get()
        comm.respond({})

    @EP("/jobs/replaced")
    def job_replaced(self, comm: Communication, name: str, urgent: bool = False) -> None:
        job = replace(Job(name), urgent=urgent)
        if job.urgent:
            comm.call("Log", "/write", {"what": name}).get()
        comm.respond({})

    @EP("/audited")
    def audited(self, comm: Communication, remote: bool = False) -> None:
        audit = Audit()
        if remote:
            audit.record = remote_record
        audit.record(comm, "audited")
        comm.respond({})

    @EP("/vars")
    def variables(self, comm: Communication) -> None:
        options = Options()
        vars(options).update(comm.params)
        if options.detailed:
            comm.query("db", "details", "rows", {}).get()
        comm.respond({})

    @EP("/field")
    def field(self, comm: Communication, name: str, value: bool = True) -> None:
        options = Options()
        setattr(options, name, value)
        if options.detailed:
            comm.query("db", "details", "rows", {}).get()
        comm.respond({})

    @EP("/namespace")
    def namespace(self, comm: Communication) -> None:
        options = SimpleNamespace(**{"detailed": False, **comm.params})
        if options.detailed:
            comm.query("db", "details", "rows", {}).get()
        comm.respond({})

    @EP("/getattr")
    def by_name(self, comm: Communication, what: str) -> None:
        getattr(self, f"_{what}", self._rows)(comm)
        comm.respond({})

    def _rows(self, comm):
        comm.query("db", "rows", "rows", {}).get()

    def _details(self, comm):
        comm.query("db", "details", "rows", {}).get()

    @EP("/remembered")
    def remembered(self, comm: Communication, item: str) -> None:
        seen = remember(item)
        if len(seen) > 3:
            comm.query("db", "flush", "rows", {"$insert": [{"items": list(seen)}]}).get()
            seen.clear()
        comm.respond({})

    @EP("/warm")
    def warm(self, comm: Communication) -> None:
        if not self.state.ready:
            comm.query("db", "warm", "rows", {}).get()
            self.state.ready = True
        comm.respond({})

    @EP("/quiet")
    def quiet(self, comm: Communication) -> None:
        with Quiet(CommunicationError):
            comm.call("Log", "/write", {"what": "x"}).get()
        comm.respond({})

    @EP("/quiet/two")
    def quiet_two(self, comm: Communication) -> None:
        with Quiet(CommunicationError, KeyError):
            row = comm.call("Log", "/verify").get()
            comm.call("Log", "/write", {"what": row["name"]}).get()
        comm.respond({})

    @EP("/ignoring")
    def ignoring(self, comm: Communication) -> None:
        with ignoring_failures():
            comm.call("Log", "/write", {"what": "x"}).get()
        comm.respond({})

    @EP("/suppress")
    def suppress(self, comm: Communication) -> None:
        with contextlib.suppress(CommunicationError):
            comm.call("Log", "/write", {"what": "x"}).get()
        comm.respond({})

    @EP("/stack")
    def stack(self, comm: Communication) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(CommunicationError))
            stack.callback(lambda: comm.query("db", "release", "locks", {}).get())
            comm.call("Log", "/write", {"what": "x"}).get()
        comm.respond({})

    @EP("/nested")
    def nested(self, comm: Communication, deep: bool = False) -> None:
        counter = 0

        def step():
            nonlocal counter
            counter += 1
            return comm.call("Log", "/verify").get()

        step()
        if deep:
            step()
        if counter > 1:
            comm.call("Log", "/write", {"what": counter}).get()
        comm.respond({})


class Log(MS):
    @EP("/write")
    def write(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/verify")
    def verify(self, comm: Communication) -> None:
        comm.respond({"name": "x"})

    @EP("/beta")
    def beta(self, comm: Communication) -> None:
        comm.respond({})
