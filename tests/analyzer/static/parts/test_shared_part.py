"""What requests share."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.shared import Shared
from analyzer.static.values import UNKNOWN, Const, Value

MODULE = """
class Service:
    def setup(self):
        self.partner = "B"
        self.seen = 0
        self.filled = []
    def run(self, comm):
        self.seen = 1
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("partner", Const.of("B")), ("seen", UNKNOWN), ("filled", UNKNOWN), ("nothing", None)],
)
def test_an_attribute_is_what_setup_made_unless_something_else_sets_it(
    probe: Probe, name: str, expected: Value | None
) -> None:
    done = probe("return 1", MODULE)
    assert isinstance(done.walk.shared, Shared)
    assert done.walk.shared.of_service(done.of_class("Service"), name) == expected
