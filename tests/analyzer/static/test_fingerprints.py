"""A fingerprint changes exactly when the code that was measured changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS, analyse_files

WORK = '''
import math
LIMIT = 3
UNRELATED = 1
class Table:
    size = 10
def burn(n):
    """Burn."""
    return math.sqrt(n) + LIMIT + Table.size
'''
APP = (
    HEAD
    + """
from work import burn
import work
class Base(MS):
    def help(self, comm):
        return comm.call("B", "/b/").get()
class A(Base):
    pool_size = 2
    FACTOR = 2
    def setup(self):
        self.cpu = 5
    @EP("/a/")
    def a(self, comm):
        '''Answer.'''
        word = comm.params["word"]
        answer = self.help(comm)
        for item in answer:
            word += burn(self.FACTOR + self.cpu)
        comm.respond({"word": word})
"""
    + OTHERS
)

SAME = [
    pytest.param("app", "        word = comm", "        # why\n\n        word = comm", id="comment"),
    pytest.param("app", "'''Answer.'''", '"""Something else."""', id="docstring"),
    pytest.param("app", 'comm.params["word"]', "(comm.params[ 'word' ])", id="layout-and-quotes"),
    pytest.param("app", "answer", "reply", id="renamed-local"),
    pytest.param("app", "for item in", "for x in", id="renamed-loop-variable"),
    pytest.param("app", "class Base", "SOMETHING = 1\n\n\nclass Base", id="moved-lines"),
    pytest.param("app", "pool_size = 2", "pool_size = 4", id="deployment"),
    pytest.param("app", "comm.respond(2)", "comm.respond(3)", id="another-endpoint"),
    pytest.param("work", "UNRELATED = 1", "UNRELATED = 2", id="unused-constant"),
    pytest.param("work", "return math.sqrt(n)", "return math.sqrt( n )", id="layout-of-helper"),
    pytest.param("work", "(n)", "(number)", id="renamed-parameter-of-helper"),
]
DIFFERENT = [
    pytest.param("app", 'comm.params["word"]', 'comm.params["w"]', id="constant-in-the-method"),
    pytest.param("app", "word +=", "word -=", id="operator"),
    pytest.param("app", '@EP("/a/")', '@EP("/a/", name="x")', id="decorator"),
    pytest.param("app", 'comm.call("B", "/b/")', 'comm.call("B", "/c/")', id="inherited-helper"),
    pytest.param("app", "FACTOR = 2", "FACTOR = 3", id="class-constant"),
    pytest.param("app", "self.cpu = 5", "self.cpu = 6", id="what-setup-stores"),
    pytest.param("work", "math.sqrt(n)", "math.sin(n)", id="function-that-does-not-communicate"),
    pytest.param("work", "LIMIT = 3", "LIMIT = 4", id="constant-of-the-helper"),
    pytest.param("work", "size = 10", "size = 11", id="class-of-the-helper"),
]


REFERENCES = [
    pytest.param(
        "def a(self, comm):\n        from work import deep\n        comm.respond(deep(1))",
        "def deep(n):\n    return n + 1\n",
        "n + 2",
        id="helper-imported-inside-the-method",
    ),
    pytest.param(
        "def a(self, comm):\n        import work as w\n        comm.respond(w.deep(1))",
        "def deep(n):\n    return n + 1\n",
        "n + 2",
        id="module-imported-inside-the-method",
    ),
    pytest.param(
        "def a(self, comm):\n        comm.respond(LIMIT)",
        "LIMIT = 0\nif 1:\n    LIMIT = n + 1\n",
        "n + 2",
        id="constant-that-is-assigned-twice",
    ),
    pytest.param(
        "def a(self, comm):\n        comm.respond(TABLE)",
        "TABLE = {}\nTABLE['x'] = n + 1\n",
        "n + 2",
        id="table-that-is-filled-later",
    ),
    pytest.param(
        "def a(self, comm):\n        comm.respond(pick(1))",
        "try:\n    from fast import pick\nexcept ImportError:\n    def pick(n):\n        return n + 1\n",
        "n + 2",
        id="function-with-two-definitions",
    ),
    pytest.param(
        "@traced\n    def a(self, comm):\n        comm.respond(1)",
        "def traced(f):\n    n = 1\n    x = n + 1\n    return f\n",
        "n + 2",
        id="decorator",
    ),
    pytest.param(
        "def a(self, comm, limit=LIMIT):\n        comm.respond(limit)",
        "n = 1\nLIMIT = n + 1\n",
        "n + 2",
        id="default-argument",
    ),
    pytest.param(
        "def a(self, comm):\n        comm.respond(Item().size(1))",
        "class Base:\n    def size(self, n):\n        return n + 1\nclass Middle(Base): pass\nclass Item(Middle): pass\n",
        "n + 2",
        id="base-class-of-a-class-it-uses",
    ),
    pytest.param(
        "def a(self, comm):\n        comm.respond(one(1))",
        "def one(n): return two(n)\ndef two(n): return three(n)\ndef three(n):\n    return n + 1\n",
        "n + 2",
        id="helper-of-a-helper-of-a-helper",
    ),
    pytest.param(
        "def a(self, comm):\n        comm.respond(alias(1))",
        "def real(n):\n    return n + 1\nalias = real\n",
        "n + 2",
        id="alias",
    ),
]


@pytest.mark.parametrize(("method", "work", "changed"), REFERENCES)
def test_every_way_to_refer_to_code_counts(tmp_path: Path, method: str, work: str, changed: str) -> None:
    """Wherever ``n + 1`` stands, the endpoint depends on it; layout and comments there are no change."""
    app = f"{HEAD}from work import *\nclass A(MS):\n    @EP('/a/')\n    {method}\n{OTHERS}"
    before = fingerprint(tmp_path / "1", app, work)
    assert fingerprint(tmp_path / "2", app, work.replace("n + 1", "(n+1)  # the next one")) == before
    assert fingerprint(tmp_path / "3", app, work.replace("n + 1", changed)) != before


ROUTED = """
from typing import Literal
class Base(MS):
    where: Literal["/b/", "/c/"]
    def setup(self):
        self.where = open("where").read()
class A(Base):
    @EP("/a/")
    def a(self, comm):
        def ask(path):
            return comm.call("B", path).get()
        comm.respond(ask(self.where))
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('Literal["/b/", "/c/"]', 'Literal["/b/"]'),
        ("ask", "demand"),
        ('open("where")', 'open("there")'),
        ("class A(Base):", "class Middle(Base):\n    where = '/b/'\nclass A(Middle):"),
    ],
    ids=["annotation", "name-of-a-nested-function", "what-setup-reads", "class-in-between"],
)
def test_what_decides_paths_and_sites_counts(tmp_path: Path, old: str, new: str) -> None:
    """A log is matched by the paths and by the names of functions, so both are part of a fingerprint."""
    before = fingerprint(tmp_path / "1", HEAD + ROUTED + OTHERS, "")
    assert fingerprint(tmp_path / "2", HEAD + ROUTED.replace(old, new) + OTHERS, "") != before


def fingerprint(folder: Path, app: str, work: str) -> str:
    return analyse_files(folder, app=app, work=work).endpoint("A/a/").fingerprint


def changed(module: str, old: str, new: str) -> tuple[str, str]:
    app, work = APP, WORK
    if module == "app":
        assert old in app
        app = app.replace(old, new)
    else:
        assert old in work
        work = work.replace(old, new)
    return app, work


@pytest.mark.parametrize(("module", "old", "new"), SAME)
def test_fingerprint_stays(tmp_path: Path, module: str, old: str, new: str) -> None:
    """What does not change the work does not change the fingerprint."""
    before = fingerprint(tmp_path / "1", APP, WORK)
    assert fingerprint(tmp_path / "2", *changed(module, old, new)) == before


@pytest.mark.parametrize(("module", "old", "new"), DIFFERENT)
def test_fingerprint_changes(tmp_path: Path, module: str, old: str, new: str) -> None:
    """Any change of what runs for the endpoint changes its fingerprint."""
    before = fingerprint(tmp_path / "1", APP, WORK)
    assert fingerprint(tmp_path / "2", *changed(module, old, new)) != before
