"""Change the amounts of work of a system: same services, each segment as a function says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from accuracy.system import Ask, Burn, Cached, Choice, Endpoint, Scan, Service, Step, System

__all__ = ["with_burns", "with_scaled_work"]


def with_burns(system: System, change: Callable[[Burn], Burn]) -> System:
    """Return a system with every piece of work changed."""

    def changed(step: Step) -> Step:
        match step:
            case Burn():
                return change(step)
            case Ask(meanwhile=meanwhile) if meanwhile is not None:
                return replace(step, meanwhile=change(meanwhile))
        return step

    return _with_steps(system, changed, change)


def with_scaled_work(system: System, factor: float, smallest: float) -> System:
    """Return a system with so many times its work, each piece not below some ms."""

    def burn(step: Burn) -> Burn:
        return replace(step, ms=_scaled(step.ms, factor, smallest))

    found = with_burns(system, burn)

    def changed(step: Step) -> Step:
        return replace(step, ms=_scaled(step.ms, factor, smallest)) if isinstance(step, Scan) else step

    return _with_steps(found, changed, lambda burn: burn)


def _scaled(ms: float, factor: float, smallest: float) -> float:
    return round(max(ms * factor, smallest), 2)


def _with_steps(
    system: System, change: Callable[[Step], Step], change_after: Callable[[Burn], Burn]
) -> System:
    """Return a system with every step of its endpoints changed, also those inside others."""

    def steps(old: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(map(step, old))

    def step(old: Step) -> Step:
        match old:
            case Choice(then=then, otherwise=otherwise):
                return replace(old, then=steps(then), otherwise=steps(otherwise))
            case Cached(hit=hit, miss=miss):
                return replace(old, hit=steps(hit), miss=steps(miss))
        return change(old)

    def endpoint(old: Endpoint) -> Endpoint:
        return replace(old, steps=steps(old.steps), after=change_after(old.after) if old.after else None)

    def service(old: Service) -> Service:
        return replace(old, endpoints=tuple(map(endpoint, old.endpoints)))

    return replace(system, services=tuple(map(service, system.services)))
