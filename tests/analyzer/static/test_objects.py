"""Objects of known classes, generators, decorators and the rest of what people write: source in, paths out.

Every case is executed as well: what happens is one of the paths.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline
from test_soundness import Recorder, load, situations

from analyzer.static import analyse
from mup.communication import Communication
from mup.errors import MupError

ONE = ["call:B/b/ get:0 respond"]
BOTH = ["call:B/b/ get:0 call:B/c/ get:2 respond"]
MAYBE = ["call:B/b/ get:0 respond", "respond"]

REPO = """
class Repo:
    base = "/b/"
    def __init__(self, comm, path=None):
        self._comm = comm
        self.path = path or self.base
    def find(self):
        future = self._comm.call("B", self.path)
        return future.get()
    def start(self):
        self.pending = self._comm.call("B", self.path)
        return self
    def finish(self):
        return self.pending.get()
"""

STATELESS = """
class Paths:
    def __init__(self, name):
        self.name = name
    @property
    def url(self):
        return f"/{self.name}/"
class Repo:
    def __init__(self, paths):
        self.paths = paths
    def find(self, comm):
        result = comm.call("B", self.paths.url).get()
        return result
"""


def case(name: str, body: str, paths: list[str], module: str = "", members: str = "") -> object:
    return pytest.param(module, members, body, paths, id=name.replace(" ", "-"))


OBJECTS = [
    case("repository", "repo = Repo(comm)\nrepo.find()\ncomm.respond(1)", ONE, REPO),
    case("temporary object", "Repo(comm, '/b/').find()\ncomm.respond(1)", ONE, REPO),
    case("future in an attribute", "repo = Repo(comm).start()\nrepo.finish()\ncomm.respond(1)", ONE, REPO),
    case(
        "future in an attribute of a local object",
        """
        class_ = Context()
        class_.user = comm.call("B", "/b/")
        class_.order = comm.call("B", "/c/")
        class_.user.get()
        class_.order.get()
        comm.respond(1)
        """,
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        "class Context: pass\n",
    ),
    case(
        "two objects of a class",
        "r, s = Repo(comm), Repo(comm, '/c/')\nr.start()\ns.start()\ns.finish()\nr.finish()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
        REPO,
    ),
    case(
        "alias of an object",
        "r = Repo(comm)\ns = r\ns.path = '/c/'\nr.find()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
        REPO,
    ),
    case(
        "helper that changes an object",
        "r = Repo(comm)\naim(r)\nr.find()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
        REPO + "def aim(repo):\n    x = 1\n    repo.path = '/c/'\n",
    ),
    case(
        "subclass overrides a step",
        "Child(comm).find()\ncomm.respond(1)",
        ["call:B/c/ get:0 query:db.q get:2 respond"],
        REPO
        + """
class Child(Repo):
    base = "/c/"
    def __init__(self, comm):
        super().__init__(comm)
        self.db = "db"
    def find(self):
        found = super().find()
        self._comm.query(self.db, "q", "c", {}).get()
        return found
""",
    ),
    case(
        "abstract base with template method",
        "Concrete(comm).run()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
        """
from abc import ABC, abstractmethod
from typing import Generic, TypeVar
T = TypeVar("T")
class Template(ABC, Generic[T]):
    def __init__(self, comm): self.comm = comm
    @abstractmethod
    def path(self): ...
    def run(self):
        found = self.comm.call("B", self.path()).get()
        return found
class Concrete(Template[int]):
    def path(self):
        return "/c/"
""",
    ),
    case(
        "mixin order",
        "X(comm).find()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
        REPO
        + "class L(Repo):\n    base = '/b/'\nclass R(Repo):\n    base = '/c/'\nclass M:\n    base = '/c/'\nclass X(M, L, R): pass\n",
    ),
    case(
        "objects in objects",
        "Outer(comm).inner.repo.find()\ncomm.respond(1)",
        ONE,
        REPO
        + """
class Inner:
    def __init__(self, comm): self.repo = Repo(comm)
class Outer:
    def __init__(self, comm):
        self.inner = Inner(comm)
""",
    ),
    case(
        "property that communicates",
        "h = H(comm)\nh.user\ncomm.respond(h.user)",
        ["call:B/b/ get:0 call:B/b/ get:2 respond"],
        """
class H:
    def __init__(self, comm): self.comm = comm
    @property
    def user(self):
        f = self.comm.call("B", "/b/")
        return f.get()
""",
    ),
    case(
        "cached property communicates once",
        "h = H(comm)\nh.user\ncomm.respond(h.user)",
        ONE,
        """
from functools import cached_property
class H:
    def __init__(self, comm): self.comm = comm
    @cached_property
    def user(self):
        return self.comm.call("B", "/b/").get()
""",
    ),
    case(
        "property with setter",
        "h = H(comm)\nh.path = 'c'\nh.comm.call('B', h.path).get()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
        """
class H:
    def __init__(self, comm):
        self.comm = comm
        self._path = "b"
    @property
    def path(self):
        return f"/{self._path}/"
    @path.setter
    def path(self, value):
        self._path = value
""",
    ),
    case(
        "callable object",
        "ask = Ask(comm)\nask('/b/')\ncomm.respond(1)",
        ONE,
        """
class Ask:
    def __init__(self, comm): self.comm = comm
    def __call__(self, path):
        answer = self.comm.call("B", path).get()
        return answer
""",
    ),
    case(
        "class method makes the object",
        "Repo2.of(comm).find()\ncomm.respond(1)",
        ONE,
        REPO
        + "class Repo2(Repo):\n    @classmethod\n    def of(cls, comm):\n        made = cls(comm)\n        return made\n",
    ),
    case(
        "class method that communicates",
        "K.ask(comm)\nK.other(comm)\ncomm.respond(1)",
        BOTH,
        """
class K:
    PATH = "/b/"
    @classmethod
    def ask(cls, comm):
        comm.call("B", cls.PATH).get()
    @staticmethod
    def other(comm):
        comm.call("B", "/c/").get()
""",
    ),
    case(
        "data class",
        "r = Request(comm, user=comm.call('B', '/b/'))\nr.futures.append(r.comm.call('B', r.path))\n"
        "r.user.get()\nfor f in r.futures:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        """
from dataclasses import dataclass, field
from typing import Any, ClassVar
@dataclass
class Base:
    comm: Any
    kind: ClassVar[str] = "x"
@dataclass(slots=True)
class Request(Base):
    user: Any = None
    path: str = "/c/"
    futures: list = field(default_factory=list)
""",
    ),
    case(
        "data class with post init",
        "Request(comm).found.get()\ncomm.respond(1)",
        ONE,
        """
import dataclasses
@dataclasses.dataclass
class Request:
    comm: object
    def __post_init__(self):
        self.found = self.comm.call("B", "/b/")
""",
    ),
    case(
        "named tuple",
        "p = Pair(comm.call('B', '/b/'), second=comm.call('B', '/c/'))\nfirst, second = p\nsecond.get()\n"
        "p.first.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
        "from typing import Any, NamedTuple\nclass Pair(NamedTuple):\n    first: Any\n    second: Any\n",
    ),
    case(
        "context manager class",
        "with Span(comm) as s:\n    s.comm.call('B', '/b/').get()\ncomm.respond(1)",
        [
            "query:db.begin call:B/b/ get:1 query:db.end get:3 raise",
            "query:db.begin call:B/b/ get:1 query:db.end get:3 respond",
            "query:db.begin call:B/b/ query:db.end get:2 raise",
            "query:db.begin query:db.end get:1 raise",
        ],
        """
class Span:
    def __init__(self, comm): self.comm = comm
    def __enter__(self):
        self.begun = self.comm.query("db", "begin", "c", {})
        return self
    def __exit__(self, *error):
        self.comm.query("db", "end", "c", {}).get()
""",
    ),
    case(
        "context manager that swallows",
        "with Quiet():\n    comm.call('B', '/b/').get()\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        [
            "call:B/b/ get:0 call:B/c/ get:2 respond",
            "call:B/b/ get:0 call:B/c/ respond",
            "call:B/b/ get:0 respond",
            "call:B/b/ respond",
            "respond",
        ],
        "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, kind, error, trace):\n"
        "        return kind is not None\n",
    ),
    case(
        "attribute set in one branch",
        """
        c = Context()
        if comm.params:
            c.f = comm.call("B", "/b/")
        if comm.params:
            pass
        if c.f is not None:
            c.f.get()
        comm.respond(1)
        """,
        MAYBE,
        "class Context:\n    f = None\n",
    ),
    case(
        "counter in an object",
        """
        c = Counter()
        for _ in range(3):
            c.bump()
        if c.n == 3:
            comm.call("B", "/b/").get()
        comm.respond(1)
        """,
        ONE,
        "class Counter:\n    n = 0\n    def bump(self):\n        self.n += 1\n",
    ),
    case(
        "object changed in a loop of unknown length",
        """
        c = Counter()
        for _ in comm.params:
            c.n += 1
        if c.n:
            comm.call("B", "/b/").get()
        comm.respond(1)
        """,
        MAYBE,
        "class Counter:\n    n = 0\n",
    ),
    case(
        "validation collects errors",
        """
        errors = []
        check(comm.params, errors)
        if errors:
            comm.respond(0)
            return
        comm.call("B", "/b/").get()
        comm.respond(1)
        """,
        MAYBE,
        "def check(params, errors):\n    if not params:\n        errors.append('empty')\n",
    ),
    case(
        "library that calls back",
        "xs, ys = [], []\nlist(map(xs.append, comm.params))\nsorted(comm.params, key=lambda p: ys.append(p) or 0)\n"
        "if xs:\n    comm.call('B', '/b/').get()\nif ys:\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        [*BOTH, "call:B/b/ get:0 respond", "call:B/c/ get:0 respond", "respond"],
    ),
    case(
        "validation object",
        """
        v = Validation()
        v.check(comm.params)
        if v.errors:
            comm.respond(0)
            return
        comm.call("B", "/b/").get()
        comm.respond(1)
        """,
        MAYBE,
        "class Validation:\n    def __init__(self): self.errors = []\n    def check(self, params):\n"
        "        if not params:\n            self.errors.append('empty')\n",
    ),
    case(
        "module singleton",
        "repo.find(comm)\ncomm.respond(1)",
        ONE,
        STATELESS + "repo = Repo(Paths('b'))\n",
    ),
    case(
        "singleton made when needed",
        "repository().find(comm)\ncomm.respond(1)",
        [*ONE, "raise"],
        "class Repo:\n    def find(self, comm):\n        found = comm.call('B', '/b/')\n        return found.get()\n"
        "_repo = None\ndef repository():\n    global _repo\n    if _repo is None:\n        _repo = Repo()\n    return _repo\n",
    ),
    case(
        "singleton with a method named like a list's",
        "store.add(comm)\ncomm.respond(1)",
        ONE,
        "class Store:\n    def add(self, comm):\n        comm.call('B', '/b/').get()\nstore = Store()\n",
    ),
    case(
        "made in setup",
        "self.repo.find(comm)\ncomm.respond(1)",
        ONE,
        STATELESS,
        "def setup(self):\n    paths = Paths('b')\n    self.repo = Repo(paths)\n",
    ),
    case(
        "made in init",
        "self.repo.find(comm)\ncomm.respond(1)",
        ONE,
        STATELESS,
        "def __init__(self):\n    super().__init__()\n    self.repo = Repo(Paths('b'))\n",
    ),
    case(
        "class attribute of the service",
        "self.repo.find(comm)\ncomm.respond(1)",
        ONE,
        STATELESS,
        "repo = Repo(Paths('b'))\n",
    ),
    case(
        "table of handlers",
        """
        for name in ("b", "c"):
            HANDLERS[name](comm)
        comm.respond(1)
        """,
        BOTH,
        "def on_b(comm):\n    comm.call('B', '/b/').get()\ndef on_c(comm):\n    comm.call('B', '/c/').get()\n"
        "HANDLERS = {'b': on_b, 'c': on_c}\n",
    ),
    case(
        "strategy objects",
        """
        strategy = STRATEGIES.get(comm.params.get("x"), Slow())
        strategy.run(comm)
        comm.respond(1)
        """,
        ["call:B/b/ get:0 respond", "call:B/c/ get:0 respond"],
        "class Fast:\n    def run(self, comm):\n        comm.call('B', '/b/').get()\n"
        "class Slow:\n    def run(self, comm):\n        comm.call('B', '/c/').get()\n"
        "STRATEGIES = {'a': Fast(), 'b': Slow()}\n",
    ),
    case(
        "class and type of an object",
        "comm.call('B', type(self).P).get()\ncomm.call('B', self.__class__.Q).get()\ncomm.respond(1)",
        BOTH,
        members="P = '/b/'\nclass Inner:\n    PATH = '/c/'\nQ = Inner.PATH\n",
    ),
    case(
        "attributes by name",
        "r = Repo(comm)\nsetattr(r, 'path', '/c/')\ngetattr(r, 'find')()\ngetattr(comm, 'call')('B', '/b/').get()\n"
        "comm.respond(1)",
        ["call:B/c/ get:0 call:B/b/ get:2 respond"],
        REPO,
    ),
    case(
        "exception class with a helper that raises it",
        """
        try:
            look(comm)
        except Missing as error:
            comm.respond(error.args)
            return
        comm.respond(1)
        """,
        ["call:B/b/ get:0 respond", "call:B/b/ get:0 respond", "respond"],
        "class Missing(Exception): pass\n"
        "def look(comm):\n    if not comm.call('B', '/b/').get().get(comm.params.get('x')):\n        raise Missing('x')\n",
    ),
]

JOBS = """
class Job:
    def __init__(self, comm, path):
        self.comm, self.path = comm, path
        self.done = False
    def start(self):
        self.future = self.comm.call("B", self.path)
        return self
    def finish(self):
        self.done = True
        return self.future.get()
class Batch:
    def __init__(self, comm, *paths):
        self.jobs = [Job(comm, p) for p in paths]
    def __iter__(self):
        for job in self.jobs:
            yield job
    def __getitem__(self, index):
        return self.jobs[index].start()
    def __getattr__(self, name):
        return getattr(self.jobs[0], name)
"""

OBJECTS += [
    case(
        "list of objects",
        "jobs = [Job(comm, p) for p in ('/b/', '/c/')]\n[j.start() for j in jobs]\nfor j in jobs + []:\n    j.finish()\n"
        "comm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        JOBS,
    ),
    case(
        "iterable object",
        "for job in Batch(comm, '/b/', '/c/'):\n    job.start().finish()\ncomm.respond(1)",
        BOTH,
        JOBS,
    ),
    case(
        "object with items and dynamic attributes",
        "b = Batch(comm, '/b/', '/c/')\nb[1].finish()\nb.start()\nb.finish()\ncomm.respond(1)",
        ["call:B/c/ get:0 call:B/b/ get:2 respond"],
        JOBS,
    ),
    case(
        "loop until an object says it is done",
        "job = Job(comm, '/b/').start()\nwhile not job.done:\n    if not comm.params:\n        job.done = True\n"
        "    else:\n        break\njob.finish()\ncomm.respond(1)",
        ONE,
        JOBS,
    ),
    case(
        "object or something unknown",
        "import os\nrepo = Repo(comm) if comm.params else os.environ\nif comm.params:\n    repo.find()\ncomm.respond(1)",
        MAYBE,
        REPO,
    ),
    case(
        "object in a loop of unknown length",
        "repo = Counting(comm)\nfor x in comm.params:\n    repo.find()\nif repo.count:\n    repo.find()\ncomm.respond(1)",
        [
            "loop[call:B/b/ get:0] call:B/b/ get:1 respond",
            "loop[call:B/b/ get:0] respond",
        ],
        REPO
        + "class Counting(Repo):\n    count = 0\n    def find(self):\n        self.count += 1\n        return super().find()\n",
    ),
    case(
        "data class with objects by default",
        "u = Unit(comm)\nu.inner.paths.append('/b/')\nfor p in u.inner.paths:\n    u.comm.call('B', p).get()\n"
        "comm.respond(1)",
        ONE,
        """
from dataclasses import dataclass, field
@dataclass
class Inner:
    paths: list[str] = field(default_factory=list)
@dataclass
class Unit:
    comm: object
    inner: Inner = field(default_factory=Inner)
""",
    ),
    case(
        "object that refers to the service",
        "self.helper.run(comm)\ncomm.respond(1)",
        ONE,
        "class Helper:\n    def __init__(self, service): self.service = service\n"
        "    def run(self, comm):\n        self.service.ask(comm)\n",
        "def setup(self):\n    self.helper = Helper(self)\ndef ask(self, comm):\n    comm.call('B', '/b/').get()\n",
    ),
    case(
        "factory of objects",
        "repo = make(comm)\nrepo.find()\nother = configured()\nother.find(comm)\ncomm.respond(1)",
        ["call:B/c/ get:0 call:B/b/ get:2 respond"],
        REPO
        + STATELESS.replace("class Repo", "class Other").replace("Repo(", "Other(")
        + "def make(comm):\n    made = Repo(comm)\n    made.path = '/c/'\n    return made\n"
        "def configured():\n    paths = Paths('b')\n    return Other(paths)\n",
    ),
    case(
        "lists joined by an operator",
        "fs = [comm.call('B', '/b/')]\nfor f in fs + [comm.call('B', '/c/')]:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
    ),
]

FUNCTIONS = [
    case("respond bound to a name", "reply = comm.respond\nreply(1)", ["respond"]),
    case("call bound to a name", "call = comm.call\ncall('B', '/b/').get()\ncomm.respond(1)", ONE),
    case(
        "partial",
        "ask = functools.partial(comm.call, 'B')\nask('/b/').get()\nask(path='/c/').get()\ncomm.respond(1)",
        BOTH,
        "import functools\n",
    ),
    case(
        "partial of a helper",
        "ask = partial(fetch, comm, path='/b/')\nask()\nask(path='/c/')\ncomm.respond(1)",
        BOTH,
        "from functools import partial\ndef fetch(comm, path):\n    comm.call('B', path).get()\n",
    ),
    case(
        "nonlocal",
        "f = None\ndef start():\n    nonlocal f\n    f = comm.call('B', '/b/')\nstart()\nf.get()\ncomm.respond(1)",
        ONE,
    ),
    case(
        "nonlocal counter",
        "n = 0\ndef bump():\n    nonlocal n\n    n += 1\nbump()\nbump()\nif n == 2:\n    comm.call('B', '/b/').get()\n"
        "comm.respond(1)",
        ONE,
    ),
    case(
        "nonlocal in a loop of unknown length",
        "n = 0\ndef bump():\n    nonlocal n\n    n += 1\nfor _ in comm.params:\n    bump()\n"
        "if n:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        MAYBE,
    ),
    case(
        "nonlocal read by the next iteration",
        "n = 0\ndef bump():\n    nonlocal n\n    n += 1\nfor _ in comm.params:\n    if n:\n        comm.call('B', '/b/').get()\n"
        "    bump()\ncomm.respond(1)",
        ["loop[call:B/b/ get:0] respond"],
    ),
    case(
        "nested functions that call each other",
        "def a(): b()\ndef b(): comm.call('B', '/b/').get()\na()\ncomm.respond(1)",
        ONE,
    ),
    case(
        "function factory",
        "ask = asker(comm, 'B')\nask('/b/')\nask('/c/')\ncomm.respond(1)",
        BOTH,
        "def asker(comm, who):\n    def ask(path):\n        return comm.call(who, path).get()\n    return ask\n",
    ),
    case(
        "lambdas of a comprehension",
        "path = '/c/'\nlate = [lambda: comm.call('B', p).get() for p in ('/b/', '/c/')]\n"
        "early = [lambda p=p: comm.call('B', p).get() for p in ('/b/', path)]\nouter = [lambda: comm.call('B', path).get() for _ in 'x']\n"
        "path = '/b/'\nfor f in late + early + outer:\n    f()\ncomm.respond(1)",
        ["call:B/c/ get:0 call:B/c/ get:2 call:B/b/ get:4 call:B/c/ get:6 call:B/b/ get:8 respond"],
    ),
    case(
        "lambda in a dictionary",
        "todo = {'a': lambda: comm.call('B', '/b/').get(), 'b': lambda: None}\nrun(todo)\ncomm.respond(1)",
        ONE,
        "def run(todo):\n    x = 1\n    todo['a']()\n    todo['b']()\n",
    ),
    case(
        "wrapped helper",
        "fetch(comm)\ncomm.respond(1)",
        ["query:db.log call:B/b/ get:1 respond"],
        """
import functools
def logged(f):
    @functools.wraps(f)
    def inner(comm, *args, **kwargs):
        comm.query("db", "log", "c", {})
        return f(comm, *args, **kwargs)
    return inner
@logged
def fetch(comm):
    comm.call("B", "/b/").get()
""",
    ),
    case(
        "decorator with arguments on a method",
        "self.fetch(comm)\ncomm.respond(1)",
        ["call:B/b/ call:B/b/ get:1 respond"],
        """
from functools import wraps
def retry(times):
    def decorate(f):
        @wraps(f)
        def inner(self, comm):
            for _ in range(times):
                last = f(self, comm)
            return last.get()
        return inner
    return decorate
""",
        "@retry(2)\ndef fetch(self, comm):\n    return comm.call('B', '/b/')\n",
    ),
    case(
        "cached helper",
        "comm.call('B', where('b')).get()\ncomm.respond(1)",
        ONE,
        "from functools import lru_cache\n@lru_cache\ndef where(name):\n    return f'/{name}/'\n",
    ),
    case(
        "early return and raise in helpers",
        """
        def ask(path):
            if not comm.params:
                return None
            if path == "/c/":
                raise KeyError(path)
            return comm.call("B", path).get()
        try:
            ask("/b/")
            ask("/c/")
        except KeyError:
            comm.query("db", "q", "c", {}).get()
        comm.respond(1)
        """,
        [
            "call:B/b/ get:0 query:db.q get:2 respond",
            "call:B/b/ get:0 respond",
            "query:db.q get:0 respond",
            "respond",
        ],
    ),
    case(
        "spread arguments",
        "route = ('B', '/b/')\ncomm.call(*route).get()\nmore = {'dest_ms': 'B', 'path': '/c/'}\n"
        "comm.call(**more).get()\ncomm.respond(1)",
        BOTH,
    ),
]

GENERATORS = [
    case(
        "generator function",
        "for answer in answers(comm):\n    pass\ncomm.respond(1)",
        BOTH,
        "def answers(comm):\n    for p in ('/b/', '/c/'):\n        yield comm.call('B', p).get()\n",
    ),
    case(
        "generator interleaves with its consumer",
        "for f in calls(comm):\n    f.get()\ncomm.respond(1)",
        BOTH,
        "def calls(comm):\n    for p in ('/b/', '/c/'):\n        yield comm.call('B', p)\n",
    ),
    case(
        "list of a generator",
        "for f in list(calls(comm)):\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        "def calls(comm):\n    for p in ('/b/', '/c/'):\n        yield comm.call('B', p)\n",
    ),
    case(
        "generator expression is lazy",
        "fs = (comm.call('B', p) for p in ('/b/', '/c/'))\ncomm.query('db', 'q', 'c', {})\n"
        "for f in fs:\n    f.get()\ncomm.respond(1)",
        ["query:db.q call:B/b/ get:1 call:B/c/ get:3 respond"],
    ),
    case(
        "any stops early",
        "fs = [comm.call('B', p) for p in ('/b/', '/c/')]\nok = any(f.get() for f in fs)\ncomm.respond(ok)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond", "call:B/b/ call:B/c/ get:0 respond"],
    ),
    case(
        "all stops early",
        "ok = all(comm.call('B', p).get() for p in ('/b/', '/c/'))\ncomm.respond(ok)",
        ["call:B/b/ get:0 call:B/c/ get:2 respond", "call:B/b/ get:0 respond"],
    ),
    case(
        "next of a generator expression",
        "found = next((p for p in ('/b/', '/c/') if comm.call('B', p).get()), None)\ncomm.respond(found)",
        ["call:B/b/ get:0 call:B/c/ get:2 respond", "call:B/b/ get:0 respond"],
    ),
    case(
        "break closes the generator",
        "for f in calls(comm):\n    f.get()\n    break\ncomm.query('db', 'q', 'c', {})",
        [
            "call:B/b/ get:0 respond query:db.q",
            "call:B/b/ get:0 respond raise",
            "call:B/b/ respond raise",
            "respond raise",
        ],
        "def calls(comm):\n    try:\n        yield comm.call('B', '/b/')\n        yield comm.call('B', '/c/')\n"
        "    finally:\n        comm.respond(1)\n",
    ),
    case(
        "return from inside a loop over a generator",
        "for f in calls(comm):\n    if comm.params:\n        comm.respond(f.get())\n        return\ncomm.respond(0)",
        ["call:B/b/ call:B/c/ get:1 respond", "call:B/b/ call:B/c/ respond", "call:B/b/ get:0 respond"],
        "def calls(comm):\n    yield comm.call('B', '/b/')\n    yield comm.call('B', '/c/')\n",
    ),
    case(
        "variables of consumer and generator",
        """
        p = "/c/"
        seen = []
        for x in paths("b"):
            seen.append(x)
            comm.call("B", x).get()
        comm.call("B", p).get()
        if len(seen) == 1:
            comm.respond(1)
        else:
            comm.respond(2)
        """,
        BOTH,
        "def paths(name):\n    p = f'/{name}/'\n    yield p\n    p = None\n",
    ),
    case(
        "yield from",
        "for f in outer(comm):\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ get:0 call:B/c/ get:2 call:B/c/ get:4 respond"],
        "def inner(comm, ps):\n    for p in ps:\n        yield comm.call('B', p)\n"
        "def outer(comm):\n    yield from inner(comm, ['/b/', '/c/'])\n    yield from [comm.call('B', '/c/')]\n",
    ),
    case(
        "comprehension over a generator",
        "answers = [f.get() for f in calls(comm) if f]\nif len(answers) == 2:\n    comm.query('db', 'q', 'c', {})\n"
        "comm.respond(1)",
        ["call:B/b/ get:0 call:B/c/ get:2 query:db.q respond"],
        "def calls(comm):\n    for p in ('/b/', '/c/'):\n        yield comm.call('B', p)\n",
    ),
    case(
        "generator of unknown length",
        "n = 0\nfor f in calls(comm):\n    f.get()\n    n += 1\nif n:\n    comm.query('db', 'q', 'c', {})\ncomm.respond(n)",
        [
            "loop[call:B/b/ get:0] query:db.q respond",
            "loop[call:B/b/ get:0] respond",
        ],
        "def calls(comm):\n    for x in comm.params:\n        yield comm.call('B', '/b/')\n",
    ),
    case(
        "generator that is exhausted",
        "g = calls(comm)\nlist(g)\nfor f in g:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ respond"],
        "def calls(comm):\n    yield comm.call('B', '/b/')\n",
    ),
    case(
        "generator method and helper that consumes",
        "drain(Source(comm).items())\ncomm.respond(1)",
        BOTH,
        "class Source:\n    def __init__(self, comm): self.comm = comm\n    def items(self):\n"
        "        yield self.comm.call('B', '/b/')\n        yield self.comm.call('B', '/c/')\n"
        "def drain(items):\n    for f in items:\n        f.get()\n",
    ),
    case(
        "map of a lambda",
        "for f in map(lambda p: comm.call('B', p), ('/b/', '/c/')):\n    f.get()\ncomm.respond(1)",
        BOTH,
    ),
    case(
        "list of a map",
        "fs = list(map(lambda p: comm.call('B', p), ['/b/', '/c/']))\n[f.get() for f in fs]\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
    ),
    case(
        "enumerate of a generator",
        "for i, f in enumerate(calls(comm)):\n    f.get()\n    if i == 1:\n        comm.query('db', 'q', 'c', {})\n"
        "comm.respond(1)",
        ["call:B/b/ get:0 call:B/c/ get:2 query:db.q respond"],
        "def calls(comm):\n    for p in ('/b/', '/c/'):\n        yield comm.call('B', p)\n",
    ),
    case(
        "filter",
        "for p in filter(lambda p: p != '/b/', ['/b/', '/c/']):\n    comm.call('B', p).get()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
    ),
    case(
        "constants from a generator",
        "for p in paths():\n    comm.call('B', p).get()\ncomm.respond(1)",
        BOTH,
        "def paths():\n    for n in 'bc':\n        yield '/' + n + '/'\n",
    ),
    case(
        "context manager of a generator",
        "with span(comm) as f:\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
        "from contextlib import contextmanager\n@contextmanager\ndef span(comm):\n"
        "    f = comm.call('B', '/b/')\n    yield f\n    f.get()\n",
    ),
    case(
        "return through a context manager",
        "with span(comm):\n    if comm.params:\n        comm.respond(1)\n        return\n    comm.call('B', '/b/').get()\n"
        "comm.respond(2)",
        ["call:B/b/ get:0 query:db.end respond", "respond query:db.end"],
        "import contextlib\n@contextlib.contextmanager\ndef span(comm):\n    yield\n    comm.query('db', 'end', 'c', {})\n",
    ),
    case(
        "context manager that handles the exception",
        "with guard(comm):\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 query:db.failed respond", "call:B/b/ get:0 respond"],
        "from contextlib import contextmanager\n@contextmanager\ndef guard(comm):\n    try:\n        yield\n"
        "    except CallError:\n        comm.query('db', 'failed', 'c', {})\n",
    ),
]

CONTAINERS = [
    case(
        "while with a counter",
        "i = 0\nwhile i < 2:\n    comm.call('B', '/b/' if i == 0 else '/c/').get()\n    i += 1\ncomm.respond(1)",
        BOTH,
    ),
    case(
        "while over a queue",
        "q = deque(['/b/'])\nq.append('/c/')\nwhile q:\n    comm.call('B', q.popleft()).get()\ncomm.respond(1)",
        BOTH,
        "from collections import deque\n",
    ),
    case(
        "state machine",
        """
        state = S.NEW
        while state is not S.DONE:
            match state:
                case S.NEW:
                    comm.call("B", "/b/").get()
                    state = S.PAID
                case S.PAID:
                    comm.call("B", "/c/").get()
                    state = S.DONE
        comm.respond(1)
        """,
        BOTH,
        "from enum import Enum, auto\nclass S(Enum):\n    NEW = auto()\n    PAID = auto()\n    DONE = auto()\n",
    ),
    case(
        "retry counted by a while",
        "left = 2\nwhile left:\n    try:\n        comm.call('B', '/b/').get()\n        break\n    except MupError:\n"
        "        left -= 1\nelse:\n    comm.respond(0)\n    return\ncomm.respond(1)",
        [
            "call:B/b/ call:B/b/ get:1 respond",
            "call:B/b/ call:B/b/ get:1 respond",
            "call:B/b/ call:B/b/ respond",
            "call:B/b/ get:0 call:B/b/ get:2 respond",
            "call:B/b/ get:0 call:B/b/ get:2 respond",
            "call:B/b/ get:0 call:B/b/ respond",
            "call:B/b/ get:0 respond",
        ],
    ),
    case(
        "default dict",
        "groups = defaultdict(list)\nfor name, p in (('x', '/b/'), ('y', '/c/')):\n    groups[name].append(comm.call('B', p))\n"
        "for fs in groups.values():\n    for f in fs:\n        f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        "from collections import defaultdict\n",
    ),
    case(
        "records of the library",
        "p = Pair(comm.call('B', '/b/'), b=comm.call('B', '/c/'))\nn = SimpleNamespace(f=p.b)\nd = Shape(g=p[0])\n"
        "n.f.get()\nd['g'].get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
        "from collections import namedtuple\nfrom types import SimpleNamespace\nfrom typing import Any, TypedDict\n"
        "Pair = namedtuple('Pair', 'a b')\nclass Shape(TypedDict):\n    g: Any\n",
    ),
    case(
        "for else",
        "for p in ('/b/', '/c/'):\n    if comm.params:\n        break\nelse:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        MAYBE,
    ),
    case(
        "while else",
        "n = 0\nwhile comm.params.get(n):\n    n += 1\nelse:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ONE,
    ),
    case(
        "starred unpacking of futures",
        "first, *rest = [comm.call('B', p) for p in ('/b/', '/c/', '/b/')]\nfor f in rest:\n    f.get()\nfirst.get()\n"
        "comm.respond(1)",
        ["call:B/b/ call:B/c/ call:B/b/ get:1 get:2 get:0 respond"],
    ),
    case(
        "slices of futures",
        "fs = [comm.call('B', p) for p in ('/b/', '/c/', '/b/')]\nfor f in fs[1:]:\n    f.get()\nfs[:1][0].get()\n"
        "for f in fs[::-1]:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ call:B/b/ get:1 get:2 get:0 respond"],
    ),
    case(
        "starred displays",
        "a = [comm.call('B', '/b/')]\nb = (*a, comm.call('B', '/c/'))\nfor f in [*b]:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
    ),
    case(
        "dict of zip",
        "names = ('x', 'y')\nfs = dict(zip(names, [comm.call('B', '/b/'), comm.call('B', '/c/')]))\n"
        "fs['y'].get()\nfs.pop('x').get()\ncomm.respond({k: v.get() for k, v in fs.items()})",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
    ),
    case(
        "dict methods",
        "fs = dict(x=comm.call('B', '/b/'))\nfs.update(y=comm.call('B', '/c/'))\nfs.setdefault('x', None).get()\n"
        "for f in {**fs}.values():\n    f.get()\ndel fs['x']\nif len(fs) == 1:\n    comm.respond(1)\nelse:\n    comm.respond(2)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
    ),
    case(
        "dict entry that grows",
        "n = {'x': 0}\nn['x'] += 1\nif n['x']:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ONE,
    ),
    case(
        "reversed and list methods",
        "fs = [comm.call('B', '/b/'), comm.call('B', '/c/')]\nfs.reverse()\nfs.insert(0, comm.call('B', '/b/'))\n"
        "for f in reversed(fs):\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ call:B/b/ get:0 get:1 get:2 respond"],
    ),
    case(
        "sorted backwards and enumerate from one",
        "for i, p in enumerate(sorted(['/b/', '/c/'], reverse=True), start=1):\n    comm.call('B', p).get()\n"
        "    if i == 2:\n        comm.query('db', 'q', 'c', {})\ncomm.respond(1)",
        ["call:B/c/ get:0 call:B/b/ get:2 query:db.q respond"],
    ),
    case(
        "min and max",
        "comm.call('B', min('/b/', '/c/')).get()\ncomm.call('B', max(['/b/', '/c/'])).get()\ncomm.respond(1)",
        BOTH,
    ),
    case(
        "match of constants",
        "for kind in ('x', 'y', None):\n    match kind:\n        case 'x' | 'z':\n            comm.call('B', '/b/').get()\n"
        "        case str() as word if word == 'y':\n            comm.call('B', '/c/').get()\n        case None:\n            pass\n"
        "        case _:\n            comm.query('db', 'q', 'c', {})\ncomm.respond(1)",
        BOTH,
    ),
    case(
        "match captures futures",
        "pair = (comm.call('B', '/b/'), {'c': comm.call('B', '/c/')})\nmatch pair:\n    case (first, {'c': second}):\n"
        "        second.get()\n        first.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
    ),
    case(
        "match of classes",
        "for e in (Added('/b/'), Removed(path='/c/')):\n    match e:\n        case Added(path):\n            comm.call('B', path).get()\n"
        "        case Removed(path=where):\n            comm.call('B', where).get()\ncomm.respond(1)",
        BOTH,
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Added:\n    path: str\n"
        "@dataclass(frozen=True)\nclass Removed:\n    path: str\n",
    ),
    case(
        "try finally with return inside",
        "def ask():\n    try:\n        return comm.call('B', '/b/')\n    finally:\n        comm.query('db', 'q', 'c', {})\n"
        "ask().get()\ncomm.respond(1)",
        ["call:B/b/ query:db.q get:0 respond", "call:B/b/ query:db.q raise", "query:db.q raise"],
    ),
    case(
        "exception group",
        "try:\n    comm.call('B', '/b/').get()\nexcept* CallError:\n    pass\ncomm.respond(1)",
        ONE,
    ),
]

TEXTS = [
    pytest.param("class P(StrEnum):\n    B = '/b/'\n", "P.B", id="text-enum"),
    pytest.param("class P(StrEnum):\n    B = auto()\n", "f'/{P.B}/'", id="text-enum-auto"),
    pytest.param("class P(Enum):\n    B = '/b/'\n", "P.B.value", id="value-of-an-enum"),
    pytest.param("class P(str, Enum):\n    B = '/b/'\n", "P.B", id="text-mixed-into-an-enum"),
    pytest.param("class P(Enum):\n    B = 1\nT = {P.B: '/b/'}\n", "T[P.B]", id="table-by-enum"),
    pytest.param("class P(Enum):\n    b = 1\n", "'/' + P.b.name + '/'", id="name-of-an-enum"),
    pytest.param(
        "class P(StrEnum):\n    B = 'b'\n    @property\n    def url(self): return f'/{self.value}/'\n",
        "P.B.url",
        id="enum-property",
    ),
    pytest.param("class P(Enum):\n    B = '/b/'\n", "P('/b/').value", id="enum-by-value"),
    pytest.param("class R:\n    class V1:\n        B: Final = '/b/'\n", "R.V1.B", id="nested-class"),
    pytest.param("class R:\n    B: ClassVar[str] = '/b/'\n", "R.B", id="class-variable"),
    pytest.param("N = 'b'\n", "'/%s/' % N", id="percent"),
    pytest.param("N = 'b'\n", "'/%(n)s/' % {'n': N}", id="percent-of-a-dict"),
    pytest.param("N = 'b'\n", "f'/{N!s:s}/'", id="format-specification"),
    pytest.param("N = ' B '\n", "'/' + N.strip().lower().removeprefix('x') + '/'", id="text-methods"),
    pytest.param("N = 'x/b'\n", "'/' + N.split('/')[1] + '/'", id="split"),
    pytest.param("N = '/b/x'\n", "N[:3]", id="slice-of-a-text"),
    pytest.param("", "'/'.join(('', 'b', ''))", id="join"),
    pytest.param("", "'/'.join(x for x in ('', 'b', ''))", id="join-of-a-generator"),
    pytest.param("", "'/{n}/'.format(n='b')", id="format-with-keyword"),
    pytest.param(
        "class C:\n    def __init__(self, n): self.n = n\n    def url(self):\n        n = self.n\n        return f'/{n}/'\nc = C('b')\n",
        "c.url()",
        id="method-of-a-singleton",
    ),
    pytest.param(
        "@dataclass(frozen=True)\nclass C:\n    path: str = '/b/'\nc = C()\n", "c.path", id="settings-object"
    ),
    pytest.param(
        "try:\n    import nothing_like_it\nexcept ImportError:\n    nothing_like_it = None\nP = '/b/'\n",
        "P",
        id="optional-import",
    ),
    pytest.param("if TYPE_CHECKING:\n    import nothing_like_it\nP = '/b/'\n", "P", id="type-checking"),
]

IMPORTS = (
    "from dataclasses import dataclass\nfrom enum import Enum, StrEnum, auto\n"
    "from typing import TYPE_CHECKING, ClassVar, Final\n"
)


@pytest.mark.parametrize(
    ("module", "members", "body", "paths"), [*OBJECTS, *FUNCTIONS, *GENERATORS, *CONTAINERS]
)
def test_paths_and_execution_agree(
    tmp_path: Path, module: str, members: str, body: str, paths: list[str]
) -> None:
    """Nothing is reported, the paths are these, and whatever executes is one of them, site by site."""
    source = endpoint_source(dedent(body).strip(), members=members, module=module)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == sorted(paths)
    if any("loop[" in path for path in paths):
        return  # executions of loops are matched in test_loops
    found = {tuple((o.op, o.site) for o in p.operations) for p in application.endpoint("A/a/").paths}
    service = load(tmp_path / "app.py").A()
    service.setup()
    for params, failing in situations():
        comm = Recorder(tmp_path, params, failing)
        try:
            service.a(comm)
        except (MupError, KeyError, AttributeError):
            done = tuple(comm.steps)
            assert any(path[: len(done)] == done for path in found), (params, failing)
        else:
            assert tuple(comm.steps) in found, (params, failing)


@pytest.mark.parametrize(("module", "path"), TEXTS)
def test_destination_is_known(tmp_path: Path, module: str, path: str) -> None:
    """A destination may come from enumerations, nested classes, texts and objects of the source."""
    source = endpoint_source(f"comm.call('B', {path}).get()\ncomm.respond(1)", module=IMPORTS + module)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == ONE


ESCAPES = [
    case("comm in an attribute of the service", "self.comm = comm\ncomm.respond(1)", ["MUP041"]),
    case(
        "future in a shared object",
        "box.f = comm.call('B', '/b/')\ncomm.respond(1)",
        ["MUP041"],
        "class Box: pass\nbox = Box()\n",
    ),
    case(
        "comm in a library's object",
        "Job(comm).start()\ncomm.respond(1)",
        ["MUP041"],
        "import threading\nclass Job(threading.Thread):\n    def __init__(self, comm):\n        self.comm = comm\n",
    ),
    case("future in an exception", "raise ValueError(comm.call('B', '/b/'))", ["MUP041"]),
    case(
        "future in a global variable",
        "keep(comm)\ncomm.respond(1)",
        ["MUP041"],
        "F = None\ndef keep(comm):\n    global F\n    F = comm.call('B', '/b/')\n",
    ),
    case(
        "generator taken up again",
        "g = (comm.call('B', p) for p in ('/b/', '/c/'))\nnext(g)\nnext(g)\ncomm.respond(1)",
        ["MUP030"],
    ),
    case(
        "generator handed to a library",
        "import os\nos.run(comm.call('B', p) for p in ('/b/', '/c/'))\ncomm.respond(1)",
        ["MUP030"],
    ),
    case(
        "order of sorted futures",
        "f, g = comm.call('B', '/b/'), comm.call('B', '/c/')\nfor x in sorted([f, g], key=id):\n    x.get()\ncomm.respond(1)",
        ["MUP040"],
    ),
    case(
        "environment",
        "import os\ncomm.call('B', os.environ['P']).get()\ncomm.respond(1)",
        ["MUP010"],
    ),
    case(
        "attribute that a request changes",
        "self.path = comm.params['x']\ncomm.call('B', self.path).get()\ncomm.respond(1)",
        ["MUP010"],
        members="def setup(self):\n    self.path = '/b/'\n",
    ),
    case(
        "list that a library may reorder",
        "import random\nps = ['/b/', '/c/']\nrandom.shuffle(ps)\nfor p in ps:\n    comm.call('B', p).get()\ncomm.respond(1)",
        ["MUP010"],
    ),
    case(
        "object that communicates handed to a library",
        "import queue\nqueue.Queue().put(Repo(comm))\ncomm.respond(1)",
        ["MUP041"],
        REPO,
    ),
    case(
        "text that communicates",
        "total = f'{Lazy(comm)}'\ncomm.respond(total)",
        ["MUP030"],
        "class Lazy:\n    def __init__(self, comm): self.comm = comm\n"
        "    def __str__(self): return self.comm.call('B', '/b/').get()\n",
    ),
    case(
        "object whose class is not known",
        "from somewhere import Repo\nRepo(comm).find()\ncomm.respond(1)",
        ["MUP041"],
    ),
]


@pytest.mark.parametrize(("module", "members", "body", "expected"), ESCAPES)
def test_what_cannot_be_followed_is_reported(
    tmp_path: Path, module: str, members: str, body: str, expected: list[str]
) -> None:
    """Communication that is out of sight is one finding, never a smaller model."""
    source = endpoint_source(dedent(body).strip(), members=members, module=module)
    found = [code for code in codes(analyse_files(tmp_path, app=source)) if code != "MUP020"]
    assert found == expected


def test_asynchronous_objects(tmp_path: Path) -> None:
    """Methods, context managers and generators of objects may be asynchronous."""
    source = (
        HEAD
        + """
from contextlib import asynccontextmanager
class Repo:
    def __init__(self, comm):
        self.comm = comm
    async def find(self, path):
        return await self.comm.call("B", path)
    async def __aenter__(self):
        await self.comm.query("db", "begin", "c", {})
        return self
    async def __aexit__(self, *error):
        await self.comm.query("db", "end", "c", {})
    async def pages(self):
        for path in ("/b/", "/c/"):
            yield await self.find(path)
@asynccontextmanager
async def span(comm):
    future = comm.call("B", "/c/")
    yield
    await future
class A(MS):
    runtime = "async"
    @EP("/a/")
    async def a(self, comm):
        async with span(comm):
            async with Repo(comm) as repo:
                await repo.find("/b/")
        async for page in Repo(comm).pages():
            pass
        comm.respond(1)
"""
        + OTHERS
    )
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    (path,) = (p for p in outline(application) if p.endswith("respond"))
    assert path == (
        "call:B/c/ query:db.begin get:1 call:B/b/ get:3 query:db.end get:5 get:0"
        " call:B/b/ get:8 call:B/c/ get:10 respond"
    )


def test_layered_application(tmp_path: Path) -> None:
    """Services, a repository layer and re-exports in packages: every import spelling leads to the same code."""
    analyse_files(
        tmp_path,
        app="""\
            import mup
            from mup import MS as Service, EP as endpoint
            from layers import *
            from layers import Users
            class A(Base, Service):
                def setup(self):
                    from layers.repositories import Orders
                    self.orders = Orders(BEE)
                @endpoint("/a/")
                def a(self, comm):
                    from layers.names import PATH_C
                    self.check(comm)
                    Users(comm).find(PATH_C)
                    self.orders.find(comm)
                    comm.respond(1)
            class B(mup.MS):
                @mup.EP("/b/")
                def b(self, comm): comm.respond(1)
                @mup.EP("/c/")
                def c(self, comm): comm.respond(1)
        """,
        layers__init="""\
            from .base import Base
            from .names import BEE
            from .repositories import Users
            __all__ = ["BEE", "Base"]
        """,
        layers__names="BEE = 'B'\nPATH_B = '/b/'\nPATH_C = '/c/'\n",
        layers__base="""\
            from __future__ import annotations
            from typing import TYPE_CHECKING
            from . import names
            if TYPE_CHECKING:
                from .repositories import Users
            class Base:
                def check(self, comm):
                    return comm.call(names.BEE, names.PATH_B).get()
        """,
        layers__repositories="""\
            from layers.names import BEE, PATH_B
            class _Repository:
                service = BEE
                def __init__(self, comm):
                    self._comm = comm
                def find(self, path):
                    return self._comm.call(self.service, path).get()
            class Users(_Repository):
                pass
            class Orders:
                def __init__(self, service):
                    self.service = service
                def find(self, comm):
                    answer = comm.call(self.service, PATH_B)
                    return answer.get()
        """,
    )
    (tmp_path / "layers/init.py").rename(tmp_path / "layers/__init__.py")
    application = analyse(tmp_path)
    assert codes(application) == []
    assert outline(application) == ["call:B/b/ get:0 call:B/c/ get:2 call:B/b/ get:4 respond"]


def test_endpoint_in_a_subclass_calls_the_inherited_one(tmp_path: Path) -> None:
    """`super().endpoint(comm)` is the base's code, with the attributes of the subclass."""
    source = (
        HEAD
        + """
class _Base(MS):
    PATH = "/b/"
    @EP("/a/")
    def a(self, comm):
        comm.call("B", self.PATH).get()
        self.done(comm)
    def done(self, comm):
        comm.respond(1)
class A(_Base):
    PATH = "/c/"
    @EP("/a/")
    def a(self, comm):
        comm.query("db", "q", "c", {})
        super().a(comm)
"""
        + OTHERS
    )
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == ["query:db.q call:B/c/ get:1 respond"]


def test_decorated_endpoint(tmp_path: Path) -> None:
    """A decorator of the source tree around an endpoint is part of its paths."""
    source = (
        HEAD
        + """
import functools
def checked(method):
    @functools.wraps(method)
    def inner(self, comm):
        if not comm.params:
            comm.respond("no", status=400)
            return
        method(self, comm)
    return inner
class A(MS):
    @EP("/a/")
    @checked
    def a(self, comm):
        comm.call("B", "/b/").get()
        comm.respond(1)
"""
        + OTHERS
    )
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == MAYBE


def test_generators_and_objects_with_choices(tmp_path: Path) -> None:
    """Where paths are folded into choices, what waits in generators, objects and context managers is not lost."""
    branches = "\n".join(
        f"if comm.params.get('{i}'):\n    comm.query('db', 'q', 'c', {{}}).get()" for i in range(7)
    )
    module = """
from contextlib import contextmanager
class Job:
    def __init__(self, comm): self.future = comm.call("B", "/b/")
    def finish(self): return self.future.get()
def items(comm):
    early = comm.call("B", "/c/")
    yield 1
    early.get()
@contextmanager
def span(job):
    yield
    job.finish()
"""
    body = (
        "job = Job(comm)\nwith span(job):\n    for item in items(comm):\n"
        + "\n".join("        " + line for line in branches.splitlines())
        + "\ncomm.respond(1)"
    )
    application = analyse_files(tmp_path, app=endpoint_source(body, module=module))
    assert codes(application) == []
    endpoint = application.endpoint("A/a/")
    assert all(
        [o.op for o in path.operations if o.op in ("call", "get", "respond")]
        == ["call", "call", "get", "get", "respond"]
        for path in endpoint.paths
    )


DESCRIBING = sorted(name for name, value in vars(Communication).items() if isinstance(value, property))


@pytest.mark.parametrize("name", DESCRIBING)
def test_what_describes_the_request_is_data(tmp_path: Path, name: str) -> None:
    """Whatever is done with it, by whomever: it communicates nothing."""
    source = endpoint_source(f"known = json.dumps(comm.{name}, default=str).join('ab')\ncomm.respond(known)")
    application = analyse_files(tmp_path, app="import json\n" + source)
    assert codes(application) == []


SHELF = """
class Shelf:
    books = ["a"]
    open = False

class Lent(Shelf):
    @classmethod
    def lend(cls):
        %s
"""


@pytest.mark.parametrize("change", ["cls.open = True", "cls.books.append('b')", "Shelf.books.append('b')"])
@pytest.mark.parametrize("owner", ["Own", "Own()", "Lent", "Lent()"])
def test_class_methods_change_the_class_from_another_module(tmp_path: Path, change: str, owner: str) -> None:
    """What a class method changes is known of subclasses elsewhere, and of their objects, to be unknown."""
    body = (
        f"own = {owner}\nif own.open or len(own.books) > 1:\n    comm.call('B', '/b/').get()\ncomm.respond(1)"
    )
    module = "from shelf import Lent\nclass Own(Lent):\n    pass\n"
    application = analyse_files(tmp_path, shelf=SHELF % change, app=endpoint_source(body, module=module))
    assert codes(application) == []
    assert sorted(outline(application)) == MAYBE


def test_class_method_changes_what_a_base_of_another_module_holds(tmp_path: Path) -> None:
    """The container belongs to the base, through whose name it is read."""
    body = "if len(Shelf.books) > 1:\n    comm.call('B', '/b/').get()\ncomm.respond(1)"
    lent = "from shelf import Shelf\n" + SHELF.partition("\n\n")[2] % "cls.books.append('b')"
    source = endpoint_source(body, module="from shelf import Shelf\nfrom lent import Lent\nLENT = Lent()\n")
    shelf = SHELF.partition("\n\n")[0]
    application = analyse_files(tmp_path, shelf=shelf, lent=lent, app=source)
    assert sorted(outline(application)) == MAYBE


ALIASES = (
    "x = TABLE\nx['b'] = 1",
    "x = TABLE\nx['a'] += 1",
    "x = TABLE\ndel x['a']",
    "x = TABLE\nx |= {'b': 1}",
    "x = TABLE if comm.params else {}\nx['b'] = 1",
    "x = TABLE\ndef put():\n    x['b'] = 1\nput()",
    "x = ROWS\nx[0] = 2",
    "x = ROWS\nx += [2]",
)


@pytest.mark.parametrize("change", ALIASES)
def test_items_that_change_under_another_name_are_reported(tmp_path: Path, change: str) -> None:
    """What a module holds is taken for constant if nothing changes it under its own name."""
    source = endpoint_source(change + "\ncomm.respond(1)", module="TABLE = {'a': 1}\nROWS = [1]\n")
    assert codes(analyse_files(tmp_path, app=source)) == ["MUP030"]


@pytest.mark.parametrize("copy", ["TABLE['b'] = 1", "x = dict(TABLE)\nx['b'] = 1", "x = (1,)\nx += (2,)"])
def test_items_that_change_under_their_own_name_are_not_reported(tmp_path: Path, copy: str) -> None:
    """Neither are those of copies."""
    source = endpoint_source(copy + "\ncomm.respond(1)", module="TABLE = {'a': 1}\n")
    assert codes(analyse_files(tmp_path, app=source)) == []


HANDED = """
TABLE = {'a': 1}

def put(rows, key):
    rows[key] = 1

def deeper(rows):
    put(rows, 'b')

def sizes(rows):
    return [len(str(key)) for key in rows]
"""


@pytest.mark.parametrize("call", ["put(TABLE, 'b')", "deeper(TABLE)"])
def test_functions_that_change_what_a_module_holds_are_reported(tmp_path: Path, call: str) -> None:
    """The parameter is another name of the container."""
    source = endpoint_source(f"{call}\ncomm.respond(1)", module=HANDED)
    assert codes(analyse_files(tmp_path, app=source)) == ["MUP030"]


@pytest.mark.parametrize("call", ["put(dict(TABLE), 'b')", "sizes(TABLE)", "deeper({})"])
def test_functions_that_change_a_copy_are_not_reported(tmp_path: Path, call: str) -> None:
    """Neither are those that only look."""
    source = endpoint_source(f"{call}\ncomm.respond(1)", module=HANDED)
    assert codes(analyse_files(tmp_path, app=source)) == []


MODELS = """
from dataclasses import dataclass, field
class Deadline:
    def __init__(self, seconds):
        self.seconds = seconds
@dataclass
class Delivery:
    comm: object
    deadline: Deadline = field(default_factory=lambda: Deadline(5.0))
    other: Deadline = field(default_factory=Deadline)
    def send(self):
        return self.comm.call("B", "/b/", {}, timeout=self.deadline.seconds)
"""


def test_fields_of_a_class_of_another_module_are_made_by_its_code(tmp_path: Path) -> None:
    source = endpoint_source(
        "Delivery(comm).send().get()\ncomm.respond(1)", module="from models import Delivery\n"
    )
    application = analyse_files(tmp_path, app=source, models=MODELS)
    assert codes(application) == []
    assert outline(application) == ONE


VIEWS = """
from functools import wraps
def answered(function):
    @wraps(function)
    def wrapper(service, comm):
        try:
            return function(service, comm)
        except CallError:
            comm.respond(0)
    return wrapper
class View:
    def __init__(self, service, comm):
        self.service, self.comm = service, comm
    @classmethod
    def as_view(cls):
        @answered
        def view(service, comm):
            cls(service, comm).dispatch()
        view.__name__ = cls.__name__
        return view
    def dispatch(self):
        self.comm.respond(self.handle())
class Logged:
    def dispatch(self):
        self.user = self.comm.call("B", "/c/").get()
        super().dispatch()
class Detail(Logged, View):
    def handle(self):
        return self.comm.call("B", "/b/").get()
"""


def test_a_decorated_nested_function_keeps_what_the_function_around_it_saw(tmp_path: Path) -> None:
    """Class-based views: ``as_view`` returns a function that knows its class."""
    application = analyse_files(tmp_path, app=endpoint_source("Detail.as_view()(self, comm)", module=VIEWS))
    assert codes(application) == []
    assert "call:B/c/ get:0 call:B/b/ get:2 respond" in outline(application)


@pytest.mark.parametrize(
    ("test", "calls"), [("f in fs", 1), ("g in fs", 0), ("g not in fs", 1), ("f == fs", 0)]
)
def test_functions_are_found_in_lists(tmp_path: Path, test: str, calls: int) -> None:
    body = f"fs = [f]\nif {test}:\n    comm.call('B', '/b/').get()\ncomm.respond(1)"
    source = endpoint_source(body, module="def f():\n    return 1\ndef g():\n    return 1\n")
    application = analyse_files(tmp_path, app=source)
    certain = ONE if calls else ["respond"]
    assert outline(application) == (certain if "in" in test else MAYBE)
