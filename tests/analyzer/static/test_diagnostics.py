"""What cannot be analysed is said, with a code, a place and a remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline

from analyzer.static import analyse, analyse_project, render, translate
from analyzer.static.diagnostics import CODES, Diagnostics
from mup.cli.models.paths import command
from mup.errors import AnalysisError
from mup.project import load_project

BODIES = [
    pytest.param("pass", "MUP020", "can end without a response", id="no-respond-at-all"),
    pytest.param(
        "if comm.params:\n    comm.respond(1)", "MUP020", "without a response", id="no-respond-on-one-path"
    ),
    pytest.param(
        "if comm.params:\n    comm.respond(1)\ncomm.respond(2)", "MUP021", "respond again", id="respond-twice"
    ),
    pytest.param(
        "comm.call(comm.params['x'], '/b/').get()\ncomm.respond(1)", "MUP010", "dest_ms", id="unknown-service"
    ),
    pytest.param(
        "comm.call('B', '/' + str(comm.params)).get()\ncomm.respond(1)", "MUP010", "path", id="path"
    ),
    pytest.param("comm.query('db', comm.params, 'c', {})\ncomm.respond(1)", "MUP010", "qry_name", id="query"),
    pytest.param("comm.call('Bb', '/b/')\ncomm.respond(1)", "MUP011", "'Bb'", id="no-such-service"),
    pytest.param("comm.call('B', '/bb/')\ncomm.respond(1)", "MUP012", "'/bb/'", id="no-such-endpoint"),
    pytest.param(
        "f = comm.call('B', '/b/')\nfor w in comm.params:\n    f.get()\ncomm.respond(1)",
        "MUP031",
        "made before it",
        id="loop-waits-for-an-earlier-call",
    ),
    pytest.param(
        "fs = [comm.call('B', '/b/') for w in comm.params]\nfs[0].get()\ncomm.respond(1)",
        "MUP040",
        "fs[0].get()",
        id="one-of-a-fan-out",
    ),
    pytest.param(
        "fs = []\nfor w in comm.params:\n    fs.append([comm.call('B', '/b/')])\nfs[0][0].get()\ncomm.respond(1)",
        "MUP040",
        "fs[0][0].get()",
        id="futures-of-a-loop-in-a-nested-list",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\nf.get()\nfor w in comm.params:\n    if w:\n        f.get()\n"
        "    f = comm.call('B', '/c/')\ncomm.respond(1)",
        "MUP040",
        "f.get()",
        id="future-of-the-iteration-before",
    ),
    pytest.param(
        "f = None\nwhile comm.params:\n    if f is not None:\n        f.get()\n    f = comm.call('B', '/b/')\n"
        "comm.respond(1)",
        "MUP040",
        "f.get()",
        id="pipelined-calls",
    ),
    pytest.param(
        "for w in comm.params:\n    comm.call('B', '/b/').get()\n    if w:\n        comm.respond(1)\n"
        "comm.respond(2)",
        "MUP021",
        "every iteration",
        id="respond-in-a-loop",
    ),
    pytest.param("print.real(comm)\ncomm.respond(1)", "MUP041", "Communication", id="comm-escapes"),
    pytest.param("self.comm = comm\ncomm.respond(1)", "MUP041", "self.comm", id="comm-is-stored"),
    pytest.param(
        "import os\nos.register(comm.call('B', '/b/'))\ncomm.respond(1)",
        "MUP041",
        "future",
        id="future-escapes",
    ),
    pytest.param(
        "import os\nos.run(lambda: comm.call('B', '/b/'))\ncomm.respond(1)",
        "MUP041",
        "os.run",
        id="closure-escapes",
    ),
    pytest.param(
        "f = comm.call('B', '/b/')\ng = comm.call('B', '/c/')\nfs = [f, g]\nfs.sort()\nfs[0].get()\ncomm.respond(1)",
        "MUP040",
        "fs[0].get()",
        id="future-of-unknown-origin",
    ),
    pytest.param(
        "import os\nos.thread(target=print, args=(comm,))\ncomm.respond(1)",
        "MUP041",
        "os.thread",
        id="thread",
    ),
    pytest.param("comm.forward('B')\ncomm.respond(1)", "MUP042", "'forward'", id="no-such-operation"),
    pytest.param(
        "comm.call('B', '/b/').done()\ncomm.respond(1)", "MUP042", "'done'", id="no-such-future-method"
    ),
    pytest.param(
        "def again(n):\n    comm.call('B', '/b/').get()\n    again(n - 1)\nagain(3)\ncomm.respond(1)",
        "MUP032",
        "calls itself",
        id="recursion",
    ),
    pytest.param(
        "".join(f"f{i} = comm.call('B', '/b/') if comm.params['{i}'] else None\n" for i in range(10))
        + "".join(f"if f{i}:\n    f{i}.get()\n" for i in range(10))
        + "comm.respond(1)",
        "MUP034",
        "1000 paths",
        id="too-many-paths",
    ),
    pytest.param(
        "for v in comm.params:\n"
        + "".join(f"    f{i} = comm.call('B', '/b/') if v['{i}'] else None\n" for i in range(10))
        + "".join(f"    if f{i}:\n        f{i}.get()\n" for i in range(10))
        + "comm.respond(1)",
        "MUP034",
        "1000 paths",
        id="too-many-paths-of-iterations",
    ),
    pytest.param("yield comm.call('B', '/b/')\ncomm.respond(1)", "MUP030", "generator", id="generator"),
]


MODULES = [
    pytest.param(
        "ROUTES = []\ndef grow():\n    ROUTES.append('/b/')\n",
        "for r in ROUTES:\n    comm.call('B', r)",
        id="list-grows",
    ),
    pytest.param(
        "R = {'x': '/b/'}\ndef change(path):\n    R['x'] = path\n",
        "comm.call('B', R['x'])",
        id="table-changes",
    ),
    pytest.param("P = '/b/'\nP = '/c/'\n", "comm.call('B', P)", id="two-assignments"),
    pytest.param("if MS:\n    P = '/b/'\nelse:\n    P = '/c/'\n", "comm.call('B', P)", id="conditional"),
    pytest.param("P = '/b/'\ndef f():\n    global P\n    P = '/c/'\n", "comm.call('B', P)", id="global"),
    pytest.param(
        "class K:\n    P = '/b/'\nK.P = '/c/'\n", "comm.call('B', K.P)", id="class-attribute-set-later"
    ),
    pytest.param(
        "def where():\n    return '/b/'\nif MS:\n    def where():\n        return '/c/'\n",
        "comm.call('B', where())",
        id="conditional-definition",
    ),
    pytest.param("", "for p in {'/b/', '/c/'}:\n    comm.call('B', p)", id="order-of-a-set"),
]


@pytest.mark.parametrize(("module", "body"), MODULES)
def test_what_may_change_is_not_a_constant(tmp_path: Path, module: str, body: str) -> None:
    """A name that is bound or changed in more than one way is reported, never guessed."""
    source = endpoint_source(body + "\ncomm.respond(1)", module=module)
    found = codes(analyse_files(tmp_path, app=source))
    assert found
    assert set(found) <= {"MUP010", "MUP031"}


@pytest.mark.parametrize(("body", "code", "words"), BODIES)
def test_body_is_diagnosed(tmp_path: Path, body: str, code: str, words: str) -> None:
    """Each thing that cannot be modelled is exactly one finding, on its line, with a remedy."""
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert codes(application) == [code]
    (found,) = application.diagnostics
    assert words in found.message
    assert found.file == "app.py"
    assert found.line >= 1
    assert found.column >= 1
    assert found.hint or code == "MUP030"


def test_finding_points_at_the_argument(tmp_path: Path) -> None:
    """A rendered finding shows the source line with a caret below the culprit, and what to do."""
    application = analyse_files(tmp_path, app=endpoint_source("comm.call('Bb', '/b/')\ncomm.respond(1)"))
    lines = render(application.diagnostics[0], application.root).splitlines()
    assert lines[0].startswith("app.py:7:19: error MUP011: no service is named 'Bb'")
    assert lines[1].index("'Bb'") == lines[2].index("^")
    assert "did you mean 'B'?" in lines[3]


FILES = [
    pytest.param({"app": "import mup; class A(:\n    pass\n"}, "MUP001", 1, id="syntax-error"),
    pytest.param({"app": "x = 1\n"}, "MUP003", 0, id="no-services"),
    pytest.param({"app": HEAD + "@EP('/x/')\ndef x(comm): ...\n" + OTHERS}, "MUP004", 3, id="ep-on-function"),
    pytest.param(
        {"app": HEAD + "class X:\n    @EP('/x/')\n    def x(self, comm): ...\n" + OTHERS},
        "MUP004",
        4,
        id="ep-outside-ms",
    ),
    pytest.param(
        {"app": OTHERS.replace('"/c/"', '"/b/"').replace("\nclass", HEAD + "class", 1)},
        "MUP005",
        7,
        id="same-path",
    ),
    pytest.param(
        {"app": HEAD + "import os" + OTHERS.replace("MS):", "MS):\n    pool_size = int(os.environ['N'])")},
        "MUP006",
        5,
        id="pool-not-known",
    ),
    pytest.param(
        {"app": HEAD + OTHERS.replace("MS):", "MS):\n    pool_size = 0")}, "MUP006", 5, id="pool-zero"
    ),
    pytest.param({"app": HEAD + "class C(MS):\n    x = 1\n" + OTHERS}, "MUP008", 3, id="no-endpoint"),
    pytest.param(
        {
            "app": HEAD
            + "class A(MS):\n    @EP('/a/')\n    def a(self, comm):\n        comm.respond(comm.call('A', '/a/').get())\n"
        },
        "MUP033",
        5,
        id="circle-of-calls",
    ),
    pytest.param(
        {
            "app": HEAD
            + "from tools import twice\nclass A(MS):\n    @twice\n    @EP('/a/')\n    def a(self, comm):\n        comm.respond(1)\n"
        },
        "MUP030",
        7,
        id="decorated-endpoint",
    ),
    pytest.param(
        {
            "app": HEAD
            + "class U(Client):\n    async def scenario(self, comm):\n        await comm.query('d', 'q', 'c', '')\n"
            + OTHERS
        },
        "MUP042",
        5,
        id="query-in-client",
    ),
    pytest.param(
        {
            "app": HEAD
            + "class U(Client):\n    async def scenario(self, comm):\n        await self.think(self.random.random())\n"
            + OTHERS
        },
        "MUP043",
        5,
        id="random-think-time",
    ),
]


@pytest.mark.parametrize(("files", "code", "line"), FILES)
def test_source_is_diagnosed(tmp_path: Path, files: dict[str, str], code: str, line: int) -> None:
    """Findings about files, classes and settings carry the line they are about."""
    application = analyse_files(tmp_path, **files)
    assert (codes(application), application.diagnostics[0].line) == ([code], line)


def test_file_that_cannot_be_decoded(tmp_path: Path) -> None:
    """A file in another encoding is named; a declared encoding is honoured."""
    (tmp_path / "bad.py").write_bytes(b"import mup\nclass X: '\xe9'\n")
    (tmp_path / "good.py").write_bytes(
        b"# -*- coding: latin-1 -*-\n" + endpoint_source("comm.respond('\xe9')").encode("latin-1")
    )
    application = analyse(tmp_path)
    assert [(d.code, d.file) for d in application.diagnostics] == [("MUP002", "bad.py")]
    assert outline(application) == ["respond"]


def test_missing_folder_is_one_error() -> None:
    """A source folder that does not exist cannot be analysed at all."""
    with pytest.raises(AnalysisError, match="no such file or folder"):
        analyse("/nowhere/at/all")


def test_application_with_errors_is_not_translated(tmp_path: Path) -> None:
    """A model of a part of the code would be wrong, so there is none."""
    application = analyse_files(tmp_path, app=endpoint_source("pass"))
    with pytest.raises(AnalysisError, match="MUP020"):
        translate(application, name="x")


def test_analysis_never_runs_the_code(tmp_path: Path) -> None:
    """Top-level code of the analysed files does not run."""
    trap = tmp_path / "ran"
    source = f"open({str(trap)!r}, 'w')\n" + endpoint_source("comm.respond(1)")
    analyse_files(tmp_path, app=source)
    assert not trap.exists()


def project(
    folder: Path, *, services: str = "[services.front]\nclass = 'app:A'\n[services.B]\nclass = 'app:B'\n"
) -> Path:
    (folder / "mup.toml").write_text(f"{services}[databases.db]\n", encoding="utf-8")
    return folder


def test_project_names_services_and_databases(tmp_path: Path) -> None:
    """In a project, services have the project's names and settings, and queries are checked."""
    analyse_files(
        tmp_path, app=endpoint_source("comm.query('bd', 'q', 'c', {})\ncomm.respond(1)"), broken="def (:"
    )
    services = "[services.front]\nclass = 'app:A'\npool_size = 7\n[services.B]\nclass = 'app:B'\n"
    application = analyse_project(load_project(project(tmp_path, services=services)))
    assert [(s.name, s.pool_size) for s in application.services] == [("front", 7), ("B", 1)]
    assert codes(application) == ["MUP013"]
    assert "known: db" in application.diagnostics[0].hint


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nope:A", "no module 'nope'"),
        ("app:Aa", "no class 'Aa'"),
        ("app:CallError", "no class 'CallError'"),
        ("app:Plain", "does not derive from MS"),
    ],
)
def test_project_names_a_class_that_is_not_there(tmp_path: Path, target: str, words: str) -> None:
    """A wrong `class` in mup.toml is a finding that says what is wrong with it."""
    analyse_files(tmp_path, app=endpoint_source("comm.respond(1)") + "class Plain: pass\n")
    text = f"[services.A]\nclass = 'app:A'\n[services.x]\nclass = '{target}'\n"
    application = analyse_project(load_project(project(tmp_path, services=text)))
    assert codes(application) == ["MUP007"]
    assert words in application.diagnostics[0].message


def test_every_code_is_documented() -> None:
    """The reference page explains every code."""
    page = (Path(__file__).parents[3] / "docs/reference/diagnostics.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"## {code}" not in page] == []


def test_equal_findings_count_once() -> None:
    """A helper that is inlined twice is reported once."""
    diagnostics = Diagnostics()
    for _ in range(2):
        diagnostics.add("MUP031", "a loop", file="a.py", line=1, column=1)
    assert len(diagnostics.all()) == 1


def test_paths_command(tmp_path: Path) -> None:
    """`mup paths --json` prints one document in the fixed form; errors make it exit with 1."""
    source = endpoint_source(
        "comm.call('B', '/b/').get()\nif comm.params:\n    raise KeyError\ncomm.respond(1)"
    )
    analyse_files(tmp_path, app=source)
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    document = json.loads(result.stdout)
    assert result.return_value == 0
    endpoint = document["services"]["A"]["endpoints"]["/a/"]
    assert endpoint["line"] == 6
    path = [{k: e[k] for k in ("op", "target", "line", "of") if k in e} for e in endpoint["paths"][0]]
    assert path == [
        {"op": "call", "target": "B/b/", "line": 7},
        {"op": "get", "target": "B/b/", "line": 7, "of": 7},
        {"op": "raise", "line": 9},
    ]
    assert document["diagnostics"] == []
    shown = CliRunner().invoke(command, [str(tmp_path)], standalone_mode=False)
    assert "call B/b/  line 7" in shown.stdout
    (tmp_path / "app.py").write_text(endpoint_source("pass"))
    result = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    assert result.return_value == 1
    (found,) = json.loads(result.stdout)["diagnostics"]
    assert {"file", "line", "column", "code", "message", "hint"} <= set(found)
