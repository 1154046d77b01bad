"""Client of a system: one kind of users, or two of them in one class."""

from __future__ import annotations

from accuracy.statements import Style, indented, statements, wants_items, wants_key
from accuracy.system import Ask, CallTo, Step, System, Think, walk

__all__ = ["workload_module"]

POPULAR = '''KEYS = {keys}
WEIGHTS = list(accumulate(rank**-1.1 for rank in range(1, KEYS + 1)))


def popular(chance: random.Random) -> int:
    """Draw a key: few of them are asked for often, most of them seldom."""
    return chance.choices(range(KEYS), cum_weights=WEIGHTS)[0]
'''


ITEMS = 1000
"""Different items that users ask for."""


def workload_module(system: System) -> str:
    """Return ``workload.py``."""
    head = [
        f'"""Users of the generated system {system.seed}."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    if system.keys:
        head += ["import random", "from itertools import accumulate", ""]
    head += ["from mup import Client, Communication", ""]
    if system.keys:
        head += [*POPULAR.format(keys=system.keys).split("\n")]
    head += ["", "class User(Client):"]
    if system.other is None:
        lines = [
            '    """Asks again and again."""',
            "",
            "    async def scenario(self, comm: Communication) -> None:",
            '        """Do one cycle."""',
            *indented(_cycle(system, system.think, system.scenario), 2),
        ]
        return "\n".join([*head, *lines, ""])
    lines = [
        '    """Readers, and among them buyers."""',
        "",
        "    async def scenario(self, comm: Communication) -> None:",
        '        """Do one cycle."""',
        f"        if self.random.random() < {system.other.share:g}:",
        "            await self.buy(comm)",
        "        else:",
        "            await self.read(comm)",
        "",
        "    async def read(self, comm: Communication) -> None:",
        '        """Look at something."""',
        *indented(_cycle(system, system.think, system.scenario), 2),
        "",
        "    async def buy(self, comm: Communication) -> None:",
        '        """Order something."""',
        *indented(_cycle(system, system.other.think, system.other.scenario), 2),
    ]
    return "\n".join([*head, *lines, ""])


def _called(system: System, steps: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    asked = [o for step in walk(steps) if isinstance(step, Ask) for o in step.operations]
    return [system.endpoint(operation).steps for operation in asked if isinstance(operation, CallTo)]


def _cycle(system: System, think: Think | None, steps: tuple[Step, ...]) -> list[str]:
    keyed = wants_key(system, steps)
    lines = [] if think is None else [f'await self.think({think.seconds:g}, "{think.shape}")']
    if keyed:
        lines.append("key = popular(self.random)")
    if system.widths is not None and any(map(wants_items, _called(system, steps))):
        least, most = system.widths
        lines.append(f"items = self.random.sample(range({ITEMS}), self.random.randint({least}, {most}))")
    return [*lines, *statements(steps, Style(system, "self.", awaits=True, keyed=keyed))]
