"""Source in, paths out."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline, outline_path

from analyzer.static import analyse
from mup.lqn import Empirical

CASES = [
    pytest.param("comm.respond(1)", ["respond"], id="respond-only"),
    pytest.param(
        "f = comm.call('B', '/b/', {})\nf.get()\ncomm.respond(1)", ["call:B/b/ get:0 respond"], id="call-get"
    ),
    pytest.param("comm.respond(comm.call('B', '/b/').get())", ["call:B/b/ get:0 respond"], id="chained"),
    pytest.param("comm.call('B', 'bee').get()\ncomm.respond(1)", ["call:B/b/ get:0 respond"], id="by-name"),
    pytest.param(
        "comm.call(dest_ms='B', path='/c/').get()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond"],
        id="by-keyword",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\ng = comm.query('db', 'q', 'c', {})\ng.get()\nf.get()\ncomm.respond(1)",
        ["call:B/b/ query:db.q get:1 get:0 respond"],
        id="overlapping",
    ),
    pytest.param("comm.call('B', '/b/')\ncomm.respond(1)", ["call:B/b/ respond"], id="never-joined"),
    pytest.param(
        "f = comm.call('B', '/b/')\nf.get()\nf.get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond"],
        id="second-get-is-no-operation",
    ),
    pytest.param(
        "if comm.params:\n    x = 1\nelse:\n    x = 2\ncomm.respond(x)",
        ["respond"],
        id="local-branches-merge",
    ),
    pytest.param(
        "if comm.params:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond", "respond"],
        id="remote-branch",
    ),
    pytest.param(
        "if not comm.params:\n    comm.respond(0)\n    return\ncomm.call('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond", "respond"],
        id="early-return",
    ),
    pytest.param(
        "if not comm.params:\n    raise ValueError('x')\ncomm.respond(1)", ["raise", "respond"], id="raise"
    ),
    pytest.param(
        "x = comm.call('B', '/b/').get() if comm.params else None\ncomm.respond(x)",
        ["call:B/b/ get:0 respond", "respond"],
        id="conditional-expression",
    ),
    pytest.param(
        "x = comm.params and comm.call('B', '/b/').get()\ncomm.respond(x)",
        ["call:B/b/ get:0 respond", "respond"],
        id="short-circuit",
    ),
    pytest.param(
        "flag = comm.params.get('x')\nf = None\nif flag:\n    f = comm.call('B', '/b/')\n"
        "if flag:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond", "respond"],
        id="correlated-conditions",
    ),
    pytest.param(
        "f = None\nif comm.params:\n    f = comm.call('B', '/b/')\nif f is not None:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond", "respond"],
        id="none-test",
    ),
    pytest.param(
        "where = '/b/' if comm.params else '/c/'\ncomm.call('B', where).get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond", "call:B/c/ get:0 respond"],
        id="one-of-two-destinations",
    ),
    pytest.param(
        "for path in ('/b/', '/c/'):\n    comm.call('B', path).get()\ncomm.respond(1)",
        ["call:B/b/ get:0 call:B/c/ get:2 respond"],
        id="loop-over-literal",
    ),
    pytest.param(
        "for _ in range(2):\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 call:B/b/ get:2 respond"],
        id="loop-over-range",
    ),
    pytest.param(
        "fs = []\nfor p in ['/b/', '/c/']:\n    fs.append(comm.call('B', p))\nfor f in fs:\n    f.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="list-of-futures",
    ),
    pytest.param(
        "fs = [comm.call('B', p) for p in ('/b/', '/c/')]\ncomm.respond([f.get() for f in fs])",
        ["call:B/b/ call:B/c/ get:0 get:1 respond"],
        id="comprehension-over-futures",
    ),
    pytest.param(
        "fs = {'x': comm.call('B', '/b/'), 'y': comm.call('B', '/c/')}\nfs['y'].get()\nfs['x'].get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
        id="dict-of-futures",
    ),
    pytest.param(
        "f, g = comm.call('B', '/b/'), comm.call('B', '/c/')\ng.get()\nf.get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 get:0 respond"],
        id="unpacking",
    ),
    pytest.param(
        "for word in comm.params:\n    if word == 'x':\n        comm.respond(1)\n        return\ncomm.respond(0)",
        ["respond", "respond"],
        id="search-loop-leaves-after-responding",
    ),
    pytest.param(
        "for attempt in range(2):\n    if comm.call('B', '/b/').get():\n        break\ncomm.respond(1)",
        ["call:B/b/ get:0 call:B/b/ get:2 respond", "call:B/b/ get:0 respond"],
        id="bounded-retry",
    ),
    pytest.param(
        "with open('x') as f:\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond"],
        id="with-is-inlined",
    ),
    pytest.param(
        "match comm.params['x']:\n    case 'a':\n        comm.call('B', '/b/').get()\n    case _:\n        pass\ncomm.respond(1)",
        ["call:B/b/ get:0 respond", "respond"],
        id="match",
    ),
    pytest.param(
        "ask = comm.call\nask('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond"],
        id="bound-method",
    ),
    pytest.param(
        "def ask(path):\n    return comm.call('B', path).get()\nask('/b/')\nask('/c/')\ncomm.respond(1)",
        ["call:B/b/ get:0 call:B/c/ get:2 respond"],
        id="nested-function",
    ),
    pytest.param(
        "ask = lambda p: comm.call('B', p).get()\nask('/b/')\ncomm.respond(1)",
        ["call:B/b/ get:0 respond"],
        id="lambda",
    ),
    pytest.param(
        "comm.respond(1)\ncomm.call('B', '/b/').get()", ["respond call:B/b/ get:1"], id="work-after-respond"
    ),
    pytest.param(
        "try:\n    x = comm.call('B', '/b/').get()\nexcept CallError:\n    comm.respond(0)\n    return\ncomm.respond(x)",
        ["call:B/b/ get:0 respond", "call:B/b/ get:0 respond"],
        id="call-error-comes-from-get",
    ),
    pytest.param(
        "try:\n    x = comm.call('B', '/b/').get()\nexcept MupError:\n    x = None\ncomm.respond(x)",
        ["call:B/b/ get:0 respond", "call:B/b/ respond"],
        id="any-mup-error-may-come-from-call-too",
    ),
    pytest.param(
        "try:\n    n = int(comm.params['n'])\nexcept ValueError:\n    comm.respond(0)\n    return\ncomm.respond(n)",
        ["respond", "respond"],
        id="local-exception",
    ),
    pytest.param(
        "try:\n    f = comm.call('B', '/b/')\n    n = comm.params['n']\n    f.get()\nexcept KeyError:\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        ["call:B/b/ call:B/c/ get:1 respond", "call:B/b/ get:0 respond", "call:B/c/ get:0 respond"],
        id="local-exception-between-operations",
    ),
    pytest.param(
        "try:\n    if comm.params:\n        raise KeyError('x')\nexcept KeyError:\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        ["call:B/c/ get:0 respond", "respond"],
        id="raise-caught-here",
    ),
    pytest.param(
        "try:\n    comm.call('B', '/b/').get()\nfinally:\n    comm.call('B', '/c/').get()\ncomm.respond(1)",
        [
            "call:B/b/ call:B/c/ get:1 raise",
            "call:B/b/ get:0 call:B/c/ get:2 raise",
            "call:B/b/ get:0 call:B/c/ get:2 respond",
            "call:B/c/ get:0 raise",
        ],
        id="finally",
    ),
    pytest.param(
        "import contextlib\nwith contextlib.suppress(CallError):\n    comm.call('B', '/b/').get()\ncomm.respond(1)",
        ["call:B/b/ get:0 respond"],
        id="suppress",
    ),
    pytest.param(
        "while True:\n    if comm.params:\n        break\ncomm.respond(1)", ["respond"], id="local-while"
    ),
    pytest.param(
        "total = 0\nfor i in range(10**9):\n    total += i\ncomm.respond(total)",
        ["respond"],
        id="long-local-loop",
    ),
]


@pytest.mark.parametrize(("body", "paths"), CASES)
def test_paths_of_a_body(tmp_path: Path, body: str, paths: list[str]) -> None:
    """Every construct becomes the sequences of operations it can execute, and nothing is reported."""
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert outline(application) == sorted(paths)
    assert codes(application) == []


CONSTANTS = [
    pytest.param("", "WHO = 'B'\nPATH = '/b/'\n", "comm.call(WHO, PATH)", id="module-constants"),
    pytest.param("", "BASE = 'b'\n", "comm.call('B', f'/{BASE}/')", id="f-string"),
    pytest.param("", "BASE = '/b'\n", "comm.call('B', BASE + '/')", id="concatenation"),
    pytest.param("", "", "comm.call('B', '/' 'b/')", id="adjacent-texts"),
    pytest.param("", "", "comm.call('B', '/{}/'.format('b'))", id="format"),
    pytest.param("WHO = 'B'\nPATH = '/b/'", "", "comm.call(self.WHO, self.PATH)", id="class-constants"),
    pytest.param(
        "BASE = 'b'\nPATH = f'/{BASE}/'", "", "comm.call('B', A.PATH)", id="class-attribute-of-class"
    ),
    pytest.param("", "ROUTES = {'x': '/b/', 'y': '/c/'}\n", "comm.call('B', ROUTES['x'])", id="table"),
    pytest.param(
        "", "def where():\n    return '/b/'\n", "comm.call('B', where())", id="function-of-constants"
    ),
    pytest.param("", "from typing import Final\nP: Final = '/b/'\n", "comm.call('B', P)", id="annotated"),
]


@pytest.mark.parametrize(("members", "module", "call"), CONSTANTS)
def test_destination_is_computed_from_constants(tmp_path: Path, members: str, module: str, call: str) -> None:
    """A destination may be any expression of constants."""
    source = endpoint_source(f"{call}.get()\ncomm.respond(1)", members=members, module=module)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == ["call:B/b/ get:0 respond"]


def test_helpers_are_inlined_across_modules_and_bases(tmp_path: Path) -> None:
    """Operations of helper functions, base class methods and super() are part of the path, with their own sites."""
    application = analyse_files(
        tmp_path,
        helpers="""\
            from constants import *
            def fetch(c, path=DEFAULT):
                future = c.call(SERVICE, path)
                return future
        """,
        constants="SERVICE = 'B'\nDEFAULT = '/b/'\n",
        base="""\
            from mup import MS
            class Base(MS):
                WHERE = "/b/"
                def prepare(self, comm):
                    return comm.call("B", self.WHERE).get()
        """,
        app="import helpers\nfrom base import Base\n"
        + HEAD
        + """
class A(Base):
    WHERE = "/c/"
    def prepare(self, comm):
        return super().prepare(comm)
    @EP("/a/")
    def a(self, comm):
        self.prepare(comm)
        helpers.fetch(c=comm).get()
        comm.respond(1)
"""
        + OTHERS,
    )
    assert codes(application) == []
    assert outline(application) == ["call:B/c/ get:0 call:B/b/ get:2 respond"]
    sites = [o.site for o in application.endpoint("A/a/").paths[0].operations]
    assert [(s.file, s.function) for s in sites] == [
        ("base.py", "Base.prepare"),
        ("base.py", "Base.prepare"),
        ("helpers.py", "fetch"),
        ("app.py", "A.a"),
        ("app.py", "A.a"),
    ]


def test_endpoints_are_inherited(tmp_path: Path) -> None:
    """An endpoint of a base class belongs to every service that derives from it."""
    source = (
        HEAD
        + """
import mup
class _Common(mup.MS):
    @EP("/ping/")
    def ping(self, comm):
        comm.respond(self.ANSWER)
class A(_Common):
    ANSWER = 1
    pool_size, other = 1, 2
class B(_Common):
    ANSWER = 2
    pool_size = 2 * 2
    replicas = 3
"""
    )
    source = source.replace("    pool_size, other = 1, 2\n", "")
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert [e.label for e in application.endpoints()] == ["A/ping/", "B/ping/"]
    assert [(s.pool_size, s.replicas, s.runtime) for s in application.services] == [
        (1, 1, "process"),
        (4, 3, "process"),
    ]
    assert application.endpoint("B/ping/").function == "_Common.ping"


def test_client_scenario_has_think_steps(tmp_path: Path) -> None:
    """A scenario's awaits are gets, and its think times are read from the source, helpers included."""
    source = (
        HEAD
        + OTHERS
        + """
class User(Client):
    PAUSE = 0.25
    async def rest(self):
        await self.think(self.PAUSE)
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1, "exponential")
        await comm.call("B", "/b/")
        await self.rest()
        first = comm.call("B", "/b/")
        second = comm.call("B", "/c/")
        await second
        await first
"""
    )
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    (path,) = application.client("User").paths
    assert outline_path(path) == "think call:B/b/ get:1 think call:B/b/ call:B/c/ get:5 get:4"
    times = [o.think for o in path.operations if o.op == "think"]
    assert [(t.family, t.mean) for t in times if t] == [("exponential", 0.1), ("constant", 0.25)]


def test_recorded_think_times_are_read_from_their_file(tmp_path: Path) -> None:
    """The file lies beside the source; one that is missing leaves the time unknown, with a warning."""
    source = (
        HEAD
        + OTHERS
        + """
class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think("times.txt", "recorded")
        await self.think("none.txt", "recorded")
        await comm.call("B", "/b/")
"""
    )
    (tmp_path / "times.txt").write_text("seconds\n0.5\n0.1\n0.3\n")
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == ["MUP043"]
    (path,) = application.client("User").paths
    known, unknown = (o.think for o in path.operations if o.op == "think")
    assert known == Empirical((0.1, 0.3, 0.5))
    assert unknown is None


def test_sites_agree_with_the_runtime_numbering(tmp_path: Path) -> None:
    """Operations carry the ordinal the runtime would log, also behind characters of several bytes."""
    source = endpoint_source(
        "x = 'é' + str(1); f = comm.call('B', '/b/', {'ü': len('ö')})\nf.get()\ncomm.respond(x)"
    )
    application = analyse_files(tmp_path, app=source)
    operations = application.endpoint("A/a/").paths[0].operations
    # 1 is str(), 2 is len(): it ends before the call around it.
    assert [o.site.ordinal for o in operations] == [3, 4, 5]


def test_async_endpoint(tmp_path: Path) -> None:
    """In an async endpoint awaiting a future is waiting for it; awaited helpers are inlined."""
    source = (
        HEAD
        + """
class A(MS):
    runtime = "async"
    async def ask(self, comm):
        return await comm.call("B", "/b/")
    @EP("/a/")
    async def a(self, comm):
        f = comm.call("B", "/c/")
        await self.ask(comm)
        await f
        comm.respond(1)
"""
        + OTHERS
    )
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == ["call:B/c/ call:B/b/ get:1 get:0 respond"]


def test_single_file_imports_its_neighbours(tmp_path: Path) -> None:
    """A file is analysed with what it imports from its folder; other files of the folder are not looked at."""
    (tmp_path / "names.py").write_text("PATH = '/b/'\n")
    (tmp_path / "broken.py").write_text("def (:\n")
    file = tmp_path / "app.py"
    file.write_text(
        endpoint_source("comm.call('B', PATH).get()\ncomm.respond(1)", module="from names import PATH\n")
    )
    application = analyse(file)
    assert codes(application) == []
    assert outline(application) == ["call:B/b/ get:0 respond"]
