"""What ``with`` statements do."""

from __future__ import annotations

from probing import Probe

from analyzer.static.managers import Managers

MODULE = """
import contextlib

class Held:
    def __init__(self, comm, swallows):
        self.comm, self.swallows = comm, swallows
    def __enter__(self):
        self.comm.call('B', '/b/').get()
        return 5
    def __exit__(self, *details):
        self.comm.call('B', '/c/').get()
        return self.swallows

@contextlib.contextmanager
def held(comm):
    comm.call('B', '/b/').get()
    yield 5
    comm.call('B', '/c/').get()
"""


def test_enter_and_exit_run(probe: Probe) -> None:
    done = probe("with Held(comm, False) as x:\n    comm.respond(x)", MODULE)
    assert isinstance(done.walk.managers, Managers)
    # The block may raise before it responds, and exit runs then, too.
    assert done.ways == ["callB/b/ get callB/c/ get raise", "callB/b/ get respond callB/c/ get next"]


def test_an_exception_is_swallowed_only_where_exit_says_so(probe: Probe) -> None:
    assert probe("with Held(comm, True):\n    raise ValueError", MODULE).ways == [
        "callB/b/ get callB/c/ get next"
    ]
    assert probe("with Held(comm, False):\n    raise ValueError", MODULE).ways == [
        "callB/b/ get callB/c/ get raise"
    ]


def test_a_generator_may_be_a_manager(probe: Probe) -> None:
    done = probe("with held(comm) as x:\n    return x", MODULE)
    assert done.ways == ["callB/b/ get callB/c/ get return"]
