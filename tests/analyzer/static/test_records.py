"""Records of a table that are unpacked: what comes of one record stays together, as long as that is certain."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

TABLE = """
TABLE = {"x": ("B", "/b/"), "y": ("B", "/c/"), "z": ("C", "/d/")}
ROUTES = {"x": "/b/", "y": "/c/", "z": "/d/"}
class C(MS):
    @EP("/d/")
    def d(self, comm):
        comm.respond(1)
"""
CALL = "comm.call(service, path).get()\ncomm.respond(1)"
PAIRS = sorted(f"call:{pair} get:0 respond" for pair in ("B/b/", "B/c/", "C/d/"))


def found(folder: Path, body: str) -> list[str]:
    """Return the paths of an endpoint, or the codes of its errors."""
    application = analyse_files(folder, app=endpoint_source(body, module=TABLE))
    return codes(application) or outline(application)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('service, path = TABLE[comm.params["k"]]\n' + CALL, id="item"),
        pytest.param('(service, path) = TABLE.get(comm.params["k"], ("B", "/b/"))\n' + CALL, id="default"),
        pytest.param('target = TABLE[comm.params["k"]]\nservice, path = target\n' + CALL, id="later"),
        pytest.param('service, path = TABLE[comm.params["k"]]\nother = path\nlen(other)\n' + CALL, id="copy"),
        pytest.param('path = "/x/"\nservice, path = TABLE[comm.params["k"]]\n' + CALL, id="bound-before"),
    ],
)
def test_service_and_path_of_a_record_stay_together(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body) == PAIRS


@pytest.mark.parametrize(
    "between",
    [
        pytest.param('path = ROUTES[comm.params["j"]]', id="bound-again"),
        pytest.param('_, path = TABLE[comm.params["j"]]', id="of-another-record"),
        pytest.param('if comm.params["j"]:\n    path = ROUTES[comm.params["j"]]', id="perhaps-bound-again"),
        pytest.param('if comm.params["j"]:\n    _, path = TABLE[comm.params["j"]]', id="perhaps-of-another"),
        pytest.param(
            'if comm.params["j"]:\n    service, path = TABLE["x"]\n    path = ROUTES[comm.params["j"]]',
            id="both",
        ),
        pytest.param("for path in ROUTES.values():\n    pass\npath = ROUTES[comm.params['j']]", id="loop"),
        pytest.param('[path := r for r in (ROUTES[comm.params["j"]],)]', id="walrus"),
        pytest.param(
            "def change():\n    nonlocal path\n    path = ROUTES[comm.params['j']]\nchange()", id="nonlocal"
        ),
        pytest.param(
            "service, service = service, path\nservice = 'B' if comm.params['j'] else 'C'", id="twice"
        ),
    ],
)
def test_what_may_be_of_two_records_is_combined(tmp_path: Path, between: str) -> None:
    """A call that no request makes is an error; one that is left out would be a wrong model."""
    assert set(found(tmp_path, f'service, path = TABLE[comm.params["k"]]\n{between}\n{CALL}')) == {"MUP012"}


def test_records_of_several_rounds_are_apart(tmp_path: Path) -> None:
    """The service of one round and the path of the next are of two records."""
    body = (
        'service, path = TABLE[comm.params["k"]]\n'
        'for key in ("a", "b"):\n'
        "    before = service\n"
        "    service, path = TABLE[comm.params[key]]\n"
        "    comm.call(before, path).get()\n"
        "comm.respond(1)"
    )
    assert set(found(tmp_path, body)) == {"MUP012"}


def test_a_record_with_something_unknown_is_reported(tmp_path: Path) -> None:
    """As what it is: a destination that the source does not say."""
    body = f'service, path = TABLE[comm.params["k"]] if comm.params["j"] else ("B", comm.params["p"])\n{CALL}'
    assert set(found(tmp_path, body)) == {"MUP010"}
