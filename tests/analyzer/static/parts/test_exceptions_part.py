"""Which handler catches what goes wrong."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.exceptions import ANCESTORS, Exceptions
from mup import errors

CALL = "comm.call('B', '/b/').get()"


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (f"try:\n    {CALL}\nexcept CallError:\n    return 1", ["callB/b/ get next", "callB/b/ get return"]),
        ("try:\n    raise ValueError\nexcept KeyError:\n    return 1", ["raise"]),
        ("try:\n    raise KeyError\nexcept LookupError:\n    return 1", ["return"]),
        (f"try:\n    return 1\nfinally:\n    {CALL}", ["callB/b/ get return"]),
        (
            f"try:\n    return comm.params['x']\nfinally:\n    {CALL}",
            ["callB/b/ get raise", "callB/b/ get return"],
        ),
        (f"try:\n    pass\nexcept ValueError:\n    return 1\nelse:\n    {CALL}", ["callB/b/ get next"]),
    ],
)
def test_a_handler_gets_what_it_names(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, "from mup.errors import CallError\n")
    assert isinstance(done.walk.exceptions, Exceptions)
    assert done.ways == ways


@pytest.mark.parametrize("name", sorted(ANCESTORS))
def test_the_frameworks_exceptions_are_as_in_mup_errors(name: str) -> None:
    kind = getattr(errors, name)
    assert [one.__name__ for one in kind.__mro__ if one.__name__ in ANCESTORS] == [name, *ANCESTORS[name]]
