"""The work that a speed monitor times."""

from __future__ import annotations

from mup.workload.sampled_work import SampledWork


def test_every_kind_of_work_is_done() -> None:
    """Its results are what the work makes, and the same each time but for the state of the objects."""
    work = SampledWork()
    try:
        assert work.arithmetic() == work.arithmetic() > 0
        assert work.texts() == work.texts() > 300
        assert work.sockets() == work.sockets() > 1000
        assert work.objects() > 0
        assert work.half_unit() > work.arithmetic() + work.texts() + work.sockets()
    finally:
        work.close()
