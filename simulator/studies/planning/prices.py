"""What does a deployment cost? Prices of cores, replicas and threads, added up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mup.errors import UsageError, did_you_mean
from mup.lqn.model import Model

__all__ = ["DEFAULT", "Prices", "prices_from"]

THINGS: Final = {"core": "cores", "replica": "replicas", "thread": "threads"}
"""What has a price, and the table of those that have one of their own."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What one core, one replica and one thread cost, in any unit; all of them >= 0.

    Attributes:
        core, replica, thread: Of everything that has no price of its own; a thread counts in every replica.
        cores: By processor.
        replicas, threads: By task.
        unit: Of the sum, for people.
    """

    core: float = 0.0
    replica: float = 0.0
    thread: float = 0.0
    cores: Mapping[str, float] = field(default_factory=dict)
    replicas: Mapping[str, float] = field(default_factory=dict)
    threads: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""

    def of_processor(self, name: str, cores: float) -> float:
        """Return what a machine costs; unlimited cores cost nothing."""
        return 0.0 if cores == math.inf else self.cores.get(name, self.core) * cores

    def of_task(self, name: str, replicas: int, threads: float) -> float:
        """Return what the replicas of a task and their threads cost; unlimited threads cost nothing."""
        each = 0.0 if threads == math.inf else self.threads.get(name, self.thread) * threads
        return replicas * (self.replicas.get(name, self.replica) + each)

    def check(self, model: Model) -> None:
        """Refuse prices of what a model does not have.

        Raises:
            UsageError: The name is given.
        """
        tasks = [t.name for t in model.tasks if not t.is_reference]
        machines = [p.name for p in model.processors if p.parent is None]
        for table, known in (("cores", machines), ("replicas", tasks), ("threads", tasks)):
            for name in getattr(self, table):
                if name not in known:
                    what = "machine" if table == "cores" else "task"
                    raise UsageError(
                        f"{table}.{name}: the model has no {what} {name!r}; {did_you_mean(name, known)}"
                    )


DEFAULT: Final = Prices(core=1.0, replica=0.1, thread=0.01, unit="cores")
"""A core is what costs; a replica costs some memory, a thread a little, so that of deployments that are
otherwise alike the smaller one is found."""


def prices_from(data: Mapping[str, Any]) -> Prices:
    """Return the prices of a document: numbers ``core``, ``replica``, ``thread``, tables of names, ``unit``.

    Raises:
        UsageError: A field is unknown, no number >= 0, or nothing costs anything.
    """
    known = [*THINGS, *THINGS.values(), "unit"]
    for name in data:
        if name not in known:
            raise UsageError(f"unknown field {name!r}; {did_you_mean(name, known)}")
    unit = data.get("unit", "")
    if not isinstance(unit, str):
        raise UsageError(f"unit: must be a text, got {unit!r}")
    tables: dict[str, dict[str, float]] = {}
    for table in THINGS.values():
        values = data.get(table, {})
        if not isinstance(values, Mapping):
            raise UsageError(f"{table}: must be a table of names and prices, got {values!r}")
        tables[table] = {name: _price(f"{table}.{name}", value) for name, value in values.items()}
    plain = {thing: _price(thing, data.get(thing, 0.0)) for thing in THINGS}
    if not any(_all(plain.values(), *(t.values() for t in tables.values()))):
        raise UsageError(
            "every price is 0, so no deployment is cheaper than another",
            hint="for example core = 40.0",
        )
    return Prices(**plain, **tables, unit=unit)  # type: ignore[arg-type]


def _all(*values: Iterable[float]) -> list[float]:
    return [value for several in values for value in several]


def _price(where: str, value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        raise UsageError(f"{where}: a price must be a number >= 0, got {value!r}")
    return float(value)  # type: ignore[arg-type]
