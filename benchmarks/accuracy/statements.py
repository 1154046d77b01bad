"""Write a step as statements of an endpoint or a scenario, the way a user would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from accuracy.system import (
    Ask,
    Burn,
    Cached,
    CallTo,
    Choice,
    Endpoint,
    Fan,
    Operation,
    Pause,
    Scan,
    Step,
    System,
    walk,
)

__all__ = ["Style", "endpoint_body", "indented", "refused", "statements", "wants_items", "wants_key"]

ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Style:
    """How is a step written? As the body of a function of one kind.

    Attributes:
        system: Of which it is a part.
        random: What stands before ``random.random()``: clients have generators of their own.
        awaits: Futures and pauses are awaited.
        sleeps: A pause is one of asyncio, and not a function of ``work.py``.
        keyed: There is a variable ``key``.
    """

    system: System
    random: str = ""
    awaits: bool = False
    sleeps: bool = False
    keyed: bool = False


def wants_key(system: System, steps: tuple[Step, ...]) -> bool:
    """Return whether something that these steps do depends on the key users ask for."""
    for step in walk(steps):
        if isinstance(step, Cached):
            return True
        for operation in step.operations if isinstance(step, Ask) else ():
            if isinstance(operation, CallTo) and wants_key(system, system.endpoint(operation).steps):
                return True
    return False


def wants_items(steps: tuple[Step, ...]) -> bool:
    """Return whether these steps do something for each item of a list that users send."""
    return any(isinstance(step, Fan) for step in walk(steps))


def statements(steps: Sequence[Step], style: Style) -> list[str]:
    """Return the lines of some steps, one after the other."""
    return [line for step in steps for line in _step(step, style)]


def _step(step: Step, style: Style) -> list[str]:
    match step:
        case Burn(ms=ms, shape="constant", work=work):
            return [f"{work}({ms:g})"]
        case Burn(ms=ms, shape=shape, work=work):
            return [f"{work}({shape}({ms:g}))"]
        case Scan():
            return ["self.catalogue.best(random.randrange(10_000))"]
        case Pause(ms=ms, shape=shape):
            return [_pause(f"{ms:g}" if shape == "constant" else f"{shape}({ms:g})", style)]
        case Ask():
            return _ask(step, style)
        case Fan(call=call, limit=limit):
            return _fan(call, limit, style)
        case Choice(probability=p, then=then, otherwise=otherwise):
            lines = [f"if {style.random}random.random() < {p:g}:", *indented(statements(then, style))]
            return [*lines, "else:", *indented(statements(otherwise, style))] if otherwise else lines
        case Cached(hit=hit, miss=miss):
            kept = [*statements(miss, style), 'self.cache.put(key, f"item {key}")']
            lines = ["if self.cache.get(key) is None:", *indented(kept)]
            return [*lines, "else:", *indented(statements(hit, style))] if hit else lines
    raise TypeError(step)


def _pause(milliseconds: str, style: Style) -> str:
    if style.sleeps:
        return f"await asyncio.sleep({milliseconds} / 1000)"
    return f"await pause({milliseconds})" if style.awaits else f"pause({milliseconds})"


def _ask(step: Ask, style: Style) -> list[str]:
    def result(future: str) -> str:
        return f"await {future}" if style.awaits else f"{future}.get()"

    def answer(future: str, operation: Operation) -> list[str]:
        if not refused(operation, style.system):
            return [result(future)]
        return ["with suppress(CallError):", *indented([result(future)])]

    if len(step.operations) == 1 and step.meanwhile is None:
        call = _operation(step.operations[0], style)
        if step.attempts == 1:
            return answer(call, step.operations[0])
        tried = ["try:", *indented([result(call)]), "except CallError:", *indented(["continue"]), "break"]
        return [f"for _ in range({step.attempts}):", *indented(tried)]
    names = ORDINALS[: len(step.operations)]
    lines = [f"{n} = {_operation(o, style)}" for n, o in zip(names, step.operations, strict=True)]
    if step.meanwhile is not None:
        lines += _step(step.meanwhile, style)
    for name, operation in zip(names, step.operations, strict=True):
        lines += answer(name, operation)
    return lines


def _fan(call: CallTo, limit: int, style: Style) -> list[str]:
    start = f'comm.call("{call.service}", "{call.path}", {{"item": item}})'
    items = 'for item in comm.params["items"]'
    if not style.awaits:
        return [f"futures = [{start} {items}]", "for future in futures:", *indented(["future.get()"])]
    if not limit:
        return [f"await asyncio.gather(*[{start} {items}])"]
    fetch = [
        "async def fetch(item: int) -> None:",
        *indented(["async with limit:", *indented([f"await {start}"])]),
    ]
    return [
        f"limit = asyncio.Semaphore({limit})",
        "",
        *fetch,
        "",
        f"await asyncio.gather(*[fetch(item) {items}])",
    ]


def refused(operation: Operation, system: System) -> bool:
    """Return whether what is asked for is now and then refused."""
    return isinstance(operation, CallTo) and system.endpoint(operation).refused > 0


def _operation(operation: Operation, style: Style) -> str:
    if isinstance(operation, CallTo):
        steps = style.system.endpoint(operation).steps
        sent = ""
        if style.keyed and wants_key(style.system, steps):
            sent = ', {"key": key}'
        elif wants_items(steps):
            sent = ', {"items": items}'
        return f'comm.call("{operation.service}", "{operation.path}"{sent})'
    # Where there is more or less data, there is a constant for it.
    items = "ITEMS" if style.system.prefix else "500"
    if operation.query == "by_id":
        wanted = "key" if style.keyed else f"random.randrange({items})"
        return f'comm.query("db", "by_id", "items", {{"_id": {wanted}}})'
    return 'comm.query("db", "by_shelf", "items", {"shelf": random.randrange(50)})'


def endpoint_body(name: str, endpoint: Endpoint, style: Style) -> list[str]:
    """Return the lines of an endpoint's method below its docstring."""
    lines = []
    if wants_key(style.system, endpoint.steps):
        style = replace(style, keyed=True)
        lines.append('key = comm.params["key"]')
    if endpoint.refused:
        answer = 'comm.respond({"error": "busy"}, status=503, headers={"Retry-After": "0"})'
        lines += [f"if random.random() < {endpoint.refused:g}:", *indented([answer, "return"])]
    lines += [*statements(endpoint.steps, style), f'comm.respond({{"from": "{name}"}})']
    return [*lines, *_step(endpoint.after, style)] if endpoint.after else lines


def indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    """Return the lines, further in."""
    return [f"{'    ' * levels}{line}" if line else "" for line in lines]
