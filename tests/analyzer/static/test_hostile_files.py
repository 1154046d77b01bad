"""Nothing that can lie in a source folder stops, hangs or runs the analysis; what matters is a finding."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS, analyse_files, codes, endpoint_source, outline

from analyzer.static import analyse, render

GOOD = endpoint_source("comm.call('B', '/b/').get()\ncomm.respond(1)")
PATHS = ["call:B/b/ get:0 respond"]
MENTION = b"import mup\nclass X(mup.MS): pass\n"


def body(text: str) -> bytes:
    return endpoint_source(text + "\ncomm.respond(1)").encode()


CONTENTS = [
    pytest.param(b"", None, id="empty"),
    pytest.param(b"\x00" * 1000, None, id="null-bytes"),
    pytest.param(MENTION + b"x = '\x00'\n", "MUP001", id="null-byte-in-a-service"),
    pytest.param(os.urandom(10_000), None, id="random-bytes"),
    pytest.param(MENTION + b"x = \xff\xfe\n", "MUP002", id="not-utf-8"),
    pytest.param(b"\xff\xfe" + MENTION.decode().encode("utf-16-le"), None, id="utf-16"),
    pytest.param(b"# coding: no-such-encoding\n" + MENTION, "MUP002", id="unknown-encoding"),
    pytest.param(b"# coding: undefined\n" + MENTION, "MUP002", id="undefined-encoding"),
    pytest.param(b"# coding: hex\n" + MENTION, "MUP002", id="encoding-that-is-no-text"),
    pytest.param(b"# coding: utf-7\n" + MENTION + b"x = '+2AA-'\n", "MUP001", id="half-a-character"),
    pytest.param(b"\xef\xbb\xbf# coding: latin-1\n" + MENTION, "MUP002", id="contradictory-encodings"),
    pytest.param(MENTION + b"def f(:\n", "MUP001", id="syntax-error"),
    pytest.param(MENTION + b"  x = 1\n", "MUP001", id="indentation"),
    pytest.param(MENTION + b"if 1:\n\tx = 1\n        y = 2\n", "MUP001", id="tabs-and-spaces"),
    pytest.param(MENTION + b"x = " + b"(" * 300 + b")" * 300, "MUP001", id="too-many-parentheses"),
    pytest.param(MENTION + b"x = " + b"-" * 20_000 + b"1\n", "MUP001", id="deep-nesting"),
    pytest.param(MENTION + b"x = " + b"1+" * 50_000 + b"1\n", "MUP001", id="long-sum"),
    pytest.param(MENTION + b"x = " + b"9" * 5000 + b"\n", "MUP001", id="huge-number"),
    pytest.param(MENTION + b"x = '" + b"a" * 2_000_000 + b"'\n", "MUP002", id="large"),
    pytest.param(b"x = '" + b"a" * 10_000_000 + b"'\n", None, id="large-and-unrelated"),
]


@pytest.mark.parametrize(("content", "code"), CONTENTS)
def test_bad_file_beside_good_ones(tmp_path: Path, content: bytes, code: str | None) -> None:
    """A file that may define services is a finding; one that cannot is ignored. Others are analysed."""
    (tmp_path / "bad.py").write_bytes(content)
    application = analyse_files(tmp_path, app=GOOD)
    assert outline(application) == PATHS
    assert [d.code for d in application.diagnostics if d.file == "bad.py" and d.severity == "error"] == (
        [] if code is None else [code]
    )
    for diagnostic in application.diagnostics:
        assert render(diagnostic, application.root)


@pytest.mark.parametrize("content", [p.values[0] for p in CONTENTS], ids=[p.id for p in CONTENTS])
def test_bad_file_alone(tmp_path: Path, content: bytes) -> None:
    """A single file is always read, and there is always something to say about it."""
    file = tmp_path / "bad.py"
    file.write_bytes(content)
    assert analyse(file).diagnostics


def test_bad_file_that_is_imported(tmp_path: Path) -> None:
    """A file that a service needs counts, whatever it mentions."""
    (tmp_path / "helper.py").write_bytes(b"def f(:\n")
    application = analyse_files(
        tmp_path, app="import helper\n" + GOOD.replace("comm.respond(1)", "helper.f(1)")
    )
    assert [(d.code, d.file) for d in application.diagnostics][-1] == ("MUP001", "helper.py")


LAYOUTS = [
    pytest.param(GOOD.replace("\n", "\r\n").encode(), id="crlf"),
    pytest.param(GOOD.replace("\n", "\r").encode(), id="cr"),
    pytest.param(b"\xef\xbb\xbf" + GOOD.encode(), id="byte-order-mark"),
    pytest.param(GOOD.replace("\nclass", "\n\f\nclass").encode(), id="form-feeds-between-classes"),
    pytest.param(GOOD.replace("        comm", "\f        comm").encode(), id="form-feeds-before-code"),
    pytest.param(GOOD.replace("        ", "\t\t").replace("    ", "\t").encode(), id="tabs"),
    pytest.param(GOOD.replace("comm.respond", "'é𝒳'; comm.respond").encode(), id="wide-characters"),
    pytest.param(GOOD.replace("comm.call(", "comm.call(\\\n  ").encode(), id="continued-line"),
    pytest.param(GOOD.rstrip().encode(), id="no-newline-at-the-end"),
    pytest.param(GOOD.encode("utf-8") + b"x = '" + b"a" * 100_000 + b"'\n", id="long-line"),
    pytest.param(b"# coding: latin-1\n# \xe9\n" + GOOD.encode(), id="latin-1"),
    pytest.param(
        GOOD.replace("comm.respond", "x = '\\d' + f'\\d'; comm.respond").encode(), id="dubious-escapes"
    ),
    pytest.param(b"# coding: unicode_escape\n" + GOOD.replace("mup", "\\x6dup").encode(), id="escaped"),
]


@pytest.mark.parametrize("content", LAYOUTS)
def test_layout_does_not_matter(tmp_path: Path, content: bytes) -> None:
    """Whatever Python accepts is analysed."""
    (tmp_path / "app.py").write_bytes(content)
    application = analyse(tmp_path)
    assert (codes(application), outline(application)) == ([], PATHS)


BOMBS = [
    pytest.param("x = 10 ** 10 ** 10", id="power"),
    pytest.param("x = 9999 ** 9999\nf'{x}'", id="number-too-long-for-text"),
    pytest.param("x = 0x" + "f" * 10_000 + "\ny = str(x)", id="hexadecimal-number"),
    pytest.param("x = 'a' * 10 ** 9", id="repeated-text"),
    pytest.param("x = 'a' * 9999 * 9999 * 9999", id="repeated-again"),
    pytest.param("x = (0,) * 9999 * 9999", id="repeated-tuple"),
    pytest.param("x = '%1000000000d' % 5", id="width"),
    pytest.param("x = '%*d' % (10 ** 9, 5)", id="width-as-argument"),
    pytest.param("x = '{:>1000000000}'.format(1)", id="format-width"),
    pytest.param("x = '{:{}}'.format(1, 10 ** 9)", id="format-width-as-argument"),
    pytest.param("x = 'a' * 9999\nx = x.replace('', x).replace('', x)", id="replace"),
    pytest.param("x = ('a' * 9999,) * 999\nx = ''.join(x)", id="join"),
    pytest.param("x = 1 << 10 ** 9", id="shift"),
    pytest.param("x = len(range(10 ** 30))\nfor i in range(10 ** 30):\n    pass", id="range"),
    pytest.param("x = sorted([None, None])", id="sorted-nones"),
    pytest.param("x = (1, 2)\n" + "x = x + x\n" * 40, id="doubled-tuple"),
    pytest.param("x = (1, 2)\n" + "x = (x, x)\n" * 40, id="tuples-in-tuples"),
    pytest.param("x = [1, 2]\n" + "x += x\n" * 40, id="doubled-list"),
    pytest.param("x = [1, 2]\n" + "x = [x, x]\n" * 40, id="lists-in-lists"),
    pytest.param("x = [1]\nx.append(x)\nx[0] = x", id="list-in-itself"),
    pytest.param(
        "".join(f"{'    ' * n}for i{n} in range(30):\n" for n in range(6)) + "    " * 6 + "x = 1",
        id="nested-loops",
    ),
    pytest.param(
        "x = [a for a in range(900) for b in range(900) for c in range(900)]", id="nested-comprehension"
    ),
    pytest.param("x = " + "lambda: " * 500 + "1", id="nested-lambdas"),
    pytest.param("x = " + "not " * 500 + "1", id="nested-operators"),
    pytest.param("x = comm.params" + ".x" * 500, id="long-chain"),
    pytest.param("if comm.params:\n    x = 1\n" + "elif comm.params:\n    x = 2\n" * 400, id="elif-ladder"),
    pytest.param(
        "def f0(c): pass\n"
        + "".join(f"def f{n}(c): f{n - 1}(c); f{n - 1}(c)\n" for n in range(1, 40))
        + "f39(comm)",
        id="helpers-that-call-helpers-twice",
    ),
    pytest.param("\n".join(f"x{n} = [{n}]" for n in range(1500)), id="many-variables"),
]


@pytest.mark.slow
@pytest.mark.parametrize("text", BOMBS)
def test_expensive_code_is_not_computed(tmp_path: Path, text: str) -> None:
    """What would take for ever to compute is unknown, not computed; the operations around it are found."""
    (tmp_path / "app.py").write_bytes(body("comm.call('B', '/b/').get()\n" + text))
    begun = time.process_time()
    application = analyse(tmp_path)
    assert time.process_time() - begun < 10
    assert set(codes(application)) <= {"MUP030", "MUP034"}
    if not application.diagnostics:
        assert outline(application) == PATHS


COMMUNICATING_BOMBS = [
    pytest.param(
        "for i in range(200):\n    for j in range(200):\n        comm.call('B', '/b/').get()", id="loops"
    ),
    pytest.param(
        "def f0(c): c.call('B', '/b/').get()\n"
        + "".join(f"def f{n}(c): f{n - 1}(c); f{n - 1}(c)\n" for n in range(1, 40))
        + "f39(comm)",
        id="helpers-that-call-helpers-twice",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("text", COMMUNICATING_BOMBS)
def test_endless_paths_are_given_up(tmp_path: Path, text: str) -> None:
    """A path of millions of operations becomes a loop or a finding, in reasonable time."""
    (tmp_path / "app.py").write_bytes(body(text))
    begun = time.process_time()
    application = analyse(tmp_path)
    assert time.process_time() - begun < 10
    assert set(codes(application)) <= {"MUP034"}
    if not application.diagnostics:
        assert any("loop" in path for path in outline(application))


CIRCLES = [
    pytest.param({"a": "from b import *\n", "b": "from a import *\n"}, id="everything-from-each-other"),
    pytest.param({"a": "import b\nX = b.Y\n", "b": "import a\nY = a.X\n"}, id="values"),
    pytest.param({"a": "import b\nclass X(b.Y): pass\n", "b": "import a\nclass Y(a.X): pass\n"}, id="bases"),
    pytest.param({"a": "X = Y\nY = X\nclass Z(X): pass\n", "b": ""}, id="aliases"),
    pytest.param({"a": "class X(X): pass\nclass Y(Z): pass\nclass Z(Y): pass\n", "b": ""}, id="own-base"),
    pytest.param({"a": "def f(x=f): pass\nX = [X]\nX[0] = X\n", "b": ""}, id="own-default"),
    pytest.param(
        {
            "a__x": "from . import y\n",
            "a____init__": "from .x import *\n",
            "a__y": "from .x import y\n",
            "b": "",
        },
        id="package",
    ),
]


@pytest.mark.parametrize("files", CIRCLES)
def test_circles_end(tmp_path: Path, files: dict[str, str]) -> None:
    """Modules, bases and aliases that refer to each other in a circle are no trap."""
    uses = "from a import *\nimport a, b\n" + GOOD.replace(
        "comm.respond(1)", "a.X; Z; b.Y\n        comm.respond(1)"
    )
    application = analyse_files(tmp_path, **files, app=uses)
    assert (codes(application), outline(application)) == ([], PATHS)


def test_package_that_hides_the_standard_library(tmp_path: Path) -> None:
    """A module of the source folder called like one of Python's is the source folder's, as it is when the code runs."""
    application = analyse_files(
        tmp_path,
        json="def ask(comm):\n    comm.call('B', '/b/').get()\n",
        enum____init__="",
        app="import json\n" + endpoint_source("json.ask(comm)\ncomm.respond(1)"),
    )
    assert (codes(application), outline(application)) == ([], PATHS)


def test_module_hidden_by_a_package(tmp_path: Path) -> None:
    """Python imports the package, so the file of the same name defines nothing."""
    application = analyse_files(tmp_path, app____init__=GOOD, app=GOOD)
    assert (codes(application), outline(application)) == ([], PATHS)
    assert {s.file for s in application.services} == {"app/__init__.py"}


def test_names_that_cannot_be_written(tmp_path: Path) -> None:
    """Imports of names that are no file names, and files that are no module names."""
    (tmp_path / "with.dots.py").write_text(GOOD)
    (tmp_path / ".py").write_text(GOOD)
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text(GOOD)
    application = analyse_files(tmp_path, app="import " + "x" * 5000 + "\nfrom ..... import y\n" + GOOD)
    assert outline(application) == PATHS
    assert set(codes(application)) <= {"MUP005"}
    for diagnostic in application.diagnostics:
        render(diagnostic, application.root).encode("utf-8", "backslashreplace")


def test_things_that_are_no_files(tmp_path: Path) -> None:
    """Folders, pipes, sockets, devices, and links that lead nowhere or in circles, all called *.py."""
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "gone")
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "up").symlink_to("..")
    names = "pipe, zero, nowhere, self, loop, package.up.loop"
    application = analyse_files(tmp_path, app=f"import {names}\n" + GOOD)
    assert (codes(application), outline(application)) == ([], PATHS)


def test_pipe_given_as_source(tmp_path: Path) -> None:
    """Reading a pipe would wait for a writer for ever."""
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(Exception, match="neither a file nor a folder"):
        analyse(tmp_path / "pipe.py")


def test_link_given_as_source(tmp_path: Path) -> None:
    """A link to a file is a file of the folder the link is in."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real.txt").write_text(GOOD)
    (tmp_path / "app.py").symlink_to(tmp_path / "elsewhere" / "real.txt")
    assert outline(analyse(tmp_path / "app.py")) == PATHS


@pytest.fixture
def nobody() -> Iterator[Callable[[Path], None]]:
    """Give a folder away and become a user without all permissions."""
    me = os.geteuid()

    def become(folder: Path) -> None:
        if me == 0:
            for item in (folder, *folder.rglob("*")):
                os.chown(item, 65534, 65534)
            os.seteuid(65534)

    yield become
    os.seteuid(me)


def test_what_may_not_be_read(nobody: Callable[[Path], None]) -> None:
    """Files and folders without permission are findings, for services may be in them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("closed", "listed", "sealed"):
            (folder / part).mkdir()
            (folder / part / "service.py").write_text(GOOD)
        (folder / "secret.py").write_text(GOOD)
        (folder / "app.py").write_text("import secret, closed.service\n" + GOOD)
        nobody(folder)
        modes = {"secret.py": 0, "closed": 0, "listed": 0o400, "sealed": 0o300}
        for part, mode in modes.items():
            (folder / part).chmod(mode)
        try:
            application = analyse(folder)
        finally:
            for part in modes:
                (folder / part).chmod(0o700)
    assert outline(application) == PATHS
    assert [(d.code, d.file) for d in application.diagnostics] == [
        ("MUP002", "closed"),
        ("MUP002", "listed/service.py"),
        ("MUP002", "sealed"),
        ("MUP002", "secret.py"),
    ]


SPY = """
import sys
allowed = sys.argv[1]
seen = []
def hook(event, arguments):
    if event in ("exec", "subprocess.Popen", "os.system", "os.exec", "socket.connect", "os.remove", "os.mkdir"):
        # The interpreter's own modules are imported while the analysis runs; analysed code has other file names.
        code = getattr(arguments[0], "co_filename", "") if event == "exec" else "?"
        if event != "exec" or code.startswith(allowed):
            seen.append((event, code))
    elif event == "import" and arguments[0].split(".")[0] in ("app", "helper", "trap"):
        seen.append((event, arguments[0]))
    elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append((event, str(arguments[0])))
from analyzer.static import analyse
sys.addaudithook(hook)
application = analyse(allowed)
print(len(application.services), seen)
"""


def test_nothing_is_imported_run_or_written(tmp_path: Path) -> None:
    """An audit hook sees no import, execution, process, connection or open for writing of analysed code."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    analyse_files(
        tmp_path,
        helper=trap + "def ask(comm):\n    return comm.call('B', '/b/').get()\n",
        trap=trap + "raise SystemExit\n",
        app=trap
        + "import helper, trap, os\nos.system('touch ran')\n"
        + endpoint_source("__import__('trap')\nhelper.ask(comm)\nexec('1')\ncomm.respond(f'{trap.x()}')"),
    )
    command = [sys.executable, "-c", SPY, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert done.stdout.strip() == "2 []"
    assert not (tmp_path / "ran").exists()


def test_services_are_found_through_other_modules(tmp_path: Path) -> None:
    """A file that never mentions the framework can define services through what it imports; all are found."""
    marked = "@EP('/x/')\n    def x(self, comm):\n        comm.respond(1)\n"
    application = analyse_files(
        tmp_path,
        base="from mup import MS as Service, EP as endpoint\n",
        pkg____init__="from base import Service, endpoint as EP\n",
        pkg__inner="from . import (  # Service)\n    Service,\n    EP)\nclass Inner(Service):\n    " + marked,
        pkg__deep____init__="",
        pkg__deep__leaf="from .. import *\nclass Leaf(Service):\n    " + marked,
        far="from pkg.inner import \\\n  Inner\nclass Far(Inner): pass\n",
        farther="import far as f\nclass Farther(f.Far):\n    y = 1\n",
        unrelated="import json\nclass MS: pass\nclass Not(MS): pass\n",
        other=HEAD + OTHERS,
    )
    assert codes(application) == []
    assert {s.name for s in application.services} == {"B", "Inner", "Far", "Farther", "Leaf"}
