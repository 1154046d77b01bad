"""When should nobody rely on an analytic estimate? What its approximations are known to miss, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

__all__ = ["doubts"]

CONVOYS = 0.5
"""Utilization of the busiest station from which on clients who always think equally long are doubted."""
NEAR, FULL = 0.8, 0.99
"""Utilizations between which response times depend on everything."""
NESTED = 0.8
"""Utilization from which on the threads of a pool hardly ever idle."""


def doubts(
    tasks: Mapping[str, float],
    processors: Mapping[str, float],
    alike: Collection[str],
    waits: Collection[tuple[str, str]],
) -> Iterator[str]:
    """Yield what is doubtful about an estimate.

    Args:
        tasks: Utilization of those whose threads can run out.
        processors: The same.
        alike: Reference tasks whose clients, several of them, always think equally long.
        waits: Tasks whose threads wait for those of others: who, and for whom.
    """
    shares = {**tasks, **processors}
    busiest = max(shares, key=lambda name: shares[name], default="")
    if not busiest:
        return
    if shares[busiest] >= CONVOYS:
        for clients in alike:
            yield (
                f"clients of {clients!r} always think equally long, and {busiest!r} is"
                f" {shares[busiest]:.0%} utilized: who has queued behind others does so in every cycle,"
                " which the estimate does not see. Response times can be several times off; simulate it"
            )
    if NEAR <= shares[busiest] <= FULL and not alike:
        yield (
            f"{busiest!r} is {shares[busiest]:.0%} utilized: this near to saturation response times of the"
            " estimate can be tens of percent off; simulate it"
        )
    for caller, called in sorted(waits):
        if min(tasks.get(caller, 0.0), tasks.get(called, 0.0)) >= NESTED:
            yield (
                f"{called!r} and {caller!r}, which waits for it, are both nearly full: throughput of the"
                " estimate can be some 10 % off; simulate it"
            )
