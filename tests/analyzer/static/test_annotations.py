"""Where code alone does not tell what a destination is, annotations and tests of its value can."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

BOTH = ["call:B/b/ get:0 respond", "call:B/c/ get:0 respond"]
HEAD = "import os\nfrom enum import StrEnum\nfrom typing import Annotated, Final, Literal, Optional\nimport typing as t\n"
CALL = "comm.call('B', where).get()\ncomm.respond(1)"

ANNOTATED = [
    pytest.param("", "", "where: Literal['/b/', '/c/'] = comm.params['w']\n" + CALL, id="variable"),
    pytest.param("", "", "where: t.Literal['/b/', '/c/'] = comm.params['w']\n" + CALL, id="dotted"),
    pytest.param("", "", "where: 'Literal[\"/b/\", \"/c/\"]' = comm.params['w']\n" + CALL, id="quoted"),
    pytest.param(
        "", "", "where: Literal['/b/'] | Literal['/c/'] = comm.params['w']\n" + CALL, id="either-of-two"
    ),
    pytest.param(
        "", "", "where: Annotated[Literal['/b/', '/c/'], 1] = comm.params['w']\n" + CALL, id="annotated"
    ),
    pytest.param(
        "", "", "where: Literal['/b/', '/c/']\nwhere = comm.params['w']\n" + CALL, id="declared-before"
    ),
    pytest.param(
        "",
        "where: Literal['/b/', '/c/'] = '/b/'\ndef setup(self):\n    for k, v in os.environ.items():\n        setattr(self, k, v)\n",
        "comm.call('B', self.where).get()\ncomm.respond(1)",
        id="attribute-that-reflection-writes",
    ),
    pytest.param(
        "Where = Literal['/b/', '/c/']\n", "", "where: Where = comm.params['w']\n" + CALL, id="alias"
    ),
    pytest.param(
        "class Where(StrEnum):\n    B = '/b/'\n    C = '/c/'\n",
        "",
        "where: Where = Where(comm.params['w'])\n" + CALL,
        id="enumeration",
    ),
    pytest.param(
        "",
        "def ask(self, comm, where: Literal['/b/', '/c/']):\n    comm.call('B', where).get()\n",
        "self.ask(comm, comm.params['w'])\ncomm.respond(1)",
        id="parameter",
    ),
    pytest.param(
        "",
        "where: Literal['/b/', '/c/']\ndef setup(self):\n    self.where = os.environ['W']\n",
        "comm.call('B', self.where).get()\ncomm.respond(1)",
        id="attribute",
    ),
    pytest.param(
        "",
        "def setup(self):\n    self.where: Literal['/b/', '/c/'] = os.environ['W']\n",
        "comm.call('B', self.where).get()\ncomm.respond(1)",
        id="attribute-annotated-in-setup",
    ),
    pytest.param(
        "WHERE: Final[Literal['/b/', '/c/']] = os.environ['W']\n",
        "",
        "comm.call('B', WHERE).get()\ncomm.respond(1)",
        id="module-constant",
    ),
    pytest.param(
        "",
        "",
        "where = comm.params['w']\nif where not in ('/b/', '/c/'):\n    raise ValueError\n" + CALL,
        id="tested-against-texts",
    ),
    pytest.param(
        "KNOWN = {'/b/': 1, '/c/': 2}\n",
        "",
        "where = comm.params['w']\nif where not in KNOWN:\n    raise ValueError\n" + CALL,
        id="tested-against-a-table",
    ),
]


@pytest.mark.parametrize(("module", "members", "body"), ANNOTATED)
def test_annotated_destinations_are_paths(tmp_path: Path, module: str, members: str, body: str) -> None:
    """An endpoint named by an annotation or a test is called on a path of its own."""
    application = analyse_files(tmp_path, app=endpoint_source(body, members=members, module=HEAD + module))
    assert codes(application) == []
    assert [path for path in outline(application) if path != "raise"] == BOTH


def test_equality_tells_what_a_value_is(tmp_path: Path) -> None:
    """Behind ``if where == "/b/"`` the destination is known."""
    body = "where = comm.params['w']\nif where == '/b/':\n    comm.call('B', where).get()\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert (codes(application), outline(application)) == ([], ["call:B/b/ get:0 respond", "respond"])


@pytest.mark.parametrize(
    "body",
    [
        "where: str = comm.params['w']\n" + CALL,
        "where: Literal['/b/', '/c/'] | None = comm.params['w']\n" + CALL,
        "where: Literal[1] = comm.params['w']\n" + CALL,
        "where = comm.params['w']\nif where == '/b/':\n    pass\n" + CALL,
        "where = comm.params['w']\nif where != '/b/':\n    comm.call('B', where).get()\ncomm.respond(1)",
    ],
    ids=["any-text", "perhaps-nothing", "a-number", "behind-the-test", "anything-else"],
)
def test_what_says_too_little_is_still_reported(tmp_path: Path, body: str) -> None:
    """The remedy names the annotation that would do."""
    application = analyse_files(tmp_path, app=endpoint_source(body, module=HEAD))
    assert codes(application) == ["MUP010"]
    assert "Literal" in application.diagnostics[0].hint


def test_a_known_value_is_not_overruled(tmp_path: Path) -> None:
    """An annotation counts only where nothing is known."""
    body = "where: Literal['/b/', '/c/'] = '/b/'\n" + CALL
    application = analyse_files(tmp_path, app=endpoint_source(body, module=HEAD))
    assert outline(application) == BOTH[:1]


def test_annotated_destination_that_does_not_exist(tmp_path: Path) -> None:
    """What an annotation states is checked like any other destination."""
    body = "where: Literal['/b/', '/d/'] = comm.params['w']\n" + CALL
    application = analyse_files(tmp_path, app=endpoint_source(body, module=HEAD))
    assert codes(application) == ["MUP012"]
