"""Generate a system whose first service calls the second once for each item of a list that users send.

A list has 0 to 12 items. Of the three systems of a half, one has processes, one event loops, and one event
loops with a semaphore around the calls.
"""

from __future__ import annotations

import random
from typing import Final

from accuracy.system import Ask, Burn, CallTo, Endpoint, Fan, Pause, Runtime, Service, Shape, Step, System
from accuracy.wide import deployed, log_uniform

__all__ = ["FAN_OUT_SYSTEMS", "FAN_PREFIX", "fan_out"]

FAN_PREFIX: Final = "f"
KINDS: Final[tuple[tuple[Runtime, bool], ...]] = (("process", False), ("async", False), ("async", True))
"""Runtime of both services, and whether there is a limit."""
FAN_OUT_SYSTEMS: Final = len(KINDS)
"""Of a half."""
WIDTHS: Final = (0, 12)
LIMITS: Final = (2, 4)
WORK_MS: Final = (0.3, 2.0)
PAUSE_MS: Final = (2.0, 8.0)
SHAPES: Final[tuple[Shape, ...]] = ("constant", "uniform", "exponential", "lognormal")


def fan_out(seed: int) -> System:
    """Return the system of a seed, the same on every machine; the last two digits say its kind."""
    rng = random.Random(f"fan-out {seed}")
    while True:
        found = deployed(rng, _drawn(rng, seed), quick=False)
        if found is not None:
            return found


def _drawn(rng: random.Random, seed: int) -> System:
    runtime, limited = KINDS[seed % 100]

    def burn() -> Burn:
        return Burn(round(log_uniform(rng, *WORK_MS), 2), rng.choice(SHAPES))

    fan = Fan(CallTo("B", "/item/"), rng.randint(*LIMITS) if limited else 0)
    item: list[Step] = [burn()]
    if rng.random() < 0.5:
        item.append(Pause(round(log_uniform(rng, *PAUSE_MS), 1), rng.choice(("constant", "exponential"))))
    return System(
        seed,
        (
            Service("A", rng.randint(2, 6), 1, (Endpoint("/basket/", (burn(), fan, burn())),)),
            Service("B", rng.randint(4, 12), rng.choice((1, 2)), (Endpoint("/item/", tuple(item)),)),
        ),
        (Ask((CallTo("A", "/basket/"),)),),
        None,
        "",
        "host",
        runtime=runtime,
        prefix=FAN_PREFIX,
        widths=WIDTHS,
        features=("fan-out of a list", *(("semaphore",) if limited else ())),
    )
