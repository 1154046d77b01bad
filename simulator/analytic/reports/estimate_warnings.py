"""Warnings of the analytic estimate: what its approximations are known to miss."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from simulator.analytic.layers import Plan, targets

__all__ = ["estimate_warnings", "meetings"]

CONVOYS = 0.5
"""Utilization of the busiest station from which on clients who always think equally long are doubted."""
NEAR, FULL = 0.8, 0.99
"""Utilizations between which response times depend on everything."""
NESTED = 0.8
"""Utilization from which on the threads of a pool hardly ever idle."""


def estimate_warnings(
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
        waits: Pairs of tasks: threads of the first wait for those of the second.
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


def meetings(plans: Sequence[Plan]) -> dict[int, list[int]]:
    """Return where messages meet the work of the request that sent them, or of each other.

    They get there at about the same moment, while an estimate takes everything that is not awaited to come
    at random moments.

    Args:
        plans: Of a model.

    Returns:
        Per station of a processor, the plans that send the messages.
    """
    behind: dict[int, frozenset[int]] = {}

    def places(index: int, seen: frozenset[int]) -> frozenset[int]:
        """Return the processors that a request and everything that comes of it visit."""
        if index in behind:
            return behind[index]
        if index in seen:
            return frozenset()
        found = _own(plans[index]).union(*(places(t, seen | {index}) for t in targets(plans[index])))
        if not seen:
            behind[index] = found
        return found

    met: dict[int, list[int]] = {}
    for index, plan in enumerate(plans):
        sent = [(c.target, c.count[0]) for s in plan.steps for c in s.calls if not c.awaited]
        if not sent:
            continue
        awaited = [c.target for s in plan.steps for c in s.calls if c.awaited]
        groups = [_own(plan).union(*(places(t, frozenset()) for t in awaited))]
        for target, count in sent:
            groups += [places(target, frozenset())] * (2 if count > 1 else 1)
        for station in sorted(frozenset().union(*groups)):
            if sum(station in group for group in groups) > 1:
                met.setdefault(station, []).append(index)
    return met


def _own(plan: Plan) -> frozenset[int]:
    used = plan.processor is not None and any(step.slices > 0 for step in plan.steps)
    return frozenset((plan.processor,)) if used and plan.processor is not None else frozenset()
