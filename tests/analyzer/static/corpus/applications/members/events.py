"""Objects that modules fill while they are imported: buses, registries, routers."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import ClassVar


class Bus:
    """Handlers by the name of an event."""

    def __init__(self) -> None:
        self._handlers: dict[str, list] = {}

    def on(self, name):
        def register(f):
            self._handlers.setdefault(name, []).append(f)
            return f

        return register

    def publish(self, comm, name, event):
        for handler in self._handlers.get(name, []):
            handler(comm, event)

    def clear(self):
        self._handlers.clear()


class Topics:
    """Several names at once, and handlers of everything."""

    def __init__(self) -> None:
        self._by_name = defaultdict(list)

    def subscribe(self, f, *names):
        for name in names or ("*",):
            self._by_name[name].append(f)
        return self

    async def emit(self, comm, name, event):
        for handler in [*self._by_name[name], *self._by_name["*"]]:
            await handler(comm, event)


class Hooks:
    def __init__(self, label):
        self.label = label
        self.hooks = []

    def add(self, hook):
        self.hooks.append(hook)
        return hook

    def run(self, comm):
        for hook in self.hooks:
            hook(comm, self.label)


@dataclass
class Commands:
    """Functions by their names."""

    known: dict = field(default_factory=dict)
    prefix: str = ""

    def command(self, name=None):
        def decorate(f):
            self.known[self.prefix + (name or f.__name__)] = f
            return f

        return decorate

    def __getitem__(self, name):
        return self.known[name]

    def __contains__(self, name):
        return name in self.known

    def execute(self, comm, name):
        return self.known[name](comm)


class Router:
    def __init__(self):
        self.routes = []

    def route(self, method, path):
        return functools.partial(self._add, method, path)

    def _add(self, method, path, f):
        self.routes.append((method, path, f))
        return f

    def dispatch(self, comm, method, path):
        for known, where, f in self.routes:
            if known == method and where == path:
                return f(comm)
        return None


class Signals:
    """All objects share what the class has."""

    receivers: ClassVar[dict[str, list]] = {}

    def connect(self, name, f):
        self.receivers.setdefault(name, []).append(f)

    def send(self, comm, name):
        for receiver in self.receivers.get(name, ()):
            receiver(comm)


class Logged(Bus):
    """Counts, too."""

    def __init__(self) -> None:
        super().__init__()
        self.names = []

    def on(self, name):
        self.names.append(name)
        return super().on(name)


class Steps:
    """A decorator itself."""

    def __init__(self):
        self.steps = []

    def __call__(self, f):
        self.steps.append(f)
        return f

    def __iter__(self):
        return iter(self.steps)


class Late:
    """Filled by requests, too."""

    def __init__(self):
        self._late = {}

    def when(self, name, f):
        self._late.setdefault(name, []).append(f)

    def fire(self, comm, name):
        for f in self._late.get(name, []):
            f(comm)


class Once:
    """Handlers run once."""

    def __init__(self):
        self._once = []

    def next_time(self, f):
        self._once.append(f)
        return f

    def fire(self, comm):
        while self._once:
            self._once.pop()(comm)


class Platform:
    def __init__(self):
        self.events = Bus()
        self.name = "platform"


bus = Bus()
other = Bus()
topics = Topics()
before = Hooks("before")
after = Hooks("after")
commands = Commands()
admin = Commands(prefix="admin-")
router = Router()
signals = Signals()
logged = Logged()
steps = Steps()
late = Late()
once = Once()
platform = Platform()
