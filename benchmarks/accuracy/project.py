"""How does a system become source code? An ordinary mup project, written the way a user would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from accuracy.system import (
    Ask,
    Burn,
    CallTo,
    Choice,
    Endpoint,
    Operation,
    Pause,
    Runtime,
    Service,
    Step,
    System,
)
from mup.errors import UsageError

__all__ = ["write_project"]

ORDINALS = ("first", "second", "third", "fourth")

WORK = '''"""Work of a known size: a number of loop iterations, whatever machine they run on."""

from __future__ import annotations

import math
import random
import time

ITERATIONS = 25_000
"""In one nominal millisecond."""
SPREAD = 0.8
"""Standard deviation of the logarithm of a lognormal amount."""


def burn(milliseconds: float) -> None:
    """Use the CPU for about this long."""
    state = 1
    for _ in range(int(milliseconds * ITERATIONS)):
        state = (state * 5 + 1) & 0xFFFF


def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    time.sleep(milliseconds / 1000)


def uniform(mean: float) -> float:
    """Return up to a half more or less than the mean."""
    return random.uniform(0.5 * mean, 1.5 * mean)


def exponential(mean: float) -> float:
    """Return an exponential amount."""
    return random.expovariate(1 / mean)


def lognormal(mean: float) -> float:
    """Return an amount that is now and then several times the mean."""
    return mean * math.exp(random.gauss(-SPREAD * SPREAD / 2, SPREAD))
'''

DATA = '''"""What is in the database? Items on shelves."""

from __future__ import annotations

from typing import Any

ITEMS, SHELVES = 500, 50


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    database.items.delete_many({})
    items = ({"_id": n, "shelf": n % SHELVES, "text": f"item {n} " + "x" * 80} for n in range(ITEMS))
    database.items.insert_many(list(items))
'''

BLOCKING = '''
def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    time.sleep(milliseconds / 1000)
'''
AWAITED = '''
async def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    await asyncio.sleep(milliseconds / 1000)
'''


@dataclass(frozen=True, slots=True)
class Style:
    """How is a step written? As the body of a function of one kind.

    Attributes:
        random: What stands before ``random.random()``: clients have generators of their own.
        awaits: Futures and pauses are awaited.
    """

    random: str = ""
    awaits: bool = False


CLIENT = Style("self.", awaits=True)


def write_project(system: System, folder: Path) -> None:
    """Write the sources of a system into a folder; what is there already has to be the same.

    Raises:
        UsageError: The folder holds other sources, for example those of an older generator.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _files(system).items():
        file = folder / name
        if file.exists() and file.read_text(encoding="utf-8") != text:
            raise UsageError(
                "holds another system than this version of the test bed generates",
                where=str(file),
                hint="name another folder for the results",
            )
        file.write_text(text, encoding="utf-8")


def _files(system: System) -> dict[str, str]:
    files = {
        "mup.toml": _toml(system),
        "work.py": _work(system),
        "services.py": _services(system),
        "workload.py": _workload(system),
    }
    if system.database:
        files["data.py"] = DATA
    return files


def _work(system: System) -> str:
    if system.runtime != "async":
        return WORK
    imports = "import math\nimport random\nimport time\n", "import asyncio\nimport math\nimport random\n"
    return WORK.replace(*imports).replace(BLOCKING, AWAITED)


def _toml(system: System) -> str:
    lines = ["[project]", f'name = "{system.name}"', 'client = "workload:User"', ""]
    for service in system.services:
        lines += [f"[services.{service.name}]", f'class = "services:{service.name}"', ""]
    if system.database == "mongod":
        # The port is a placeholder: who starts the server sets MUP_DATABASE_DB.
        lines += ["[databases.db]", 'uri = "mongodb://127.0.0.1:27017"', 'load = "data:fill"', ""]
    elif system.database:
        lines += ["[databases.db]", 'load = "data:fill"', ""]
    return "\n".join(lines)


def _services(system: System) -> str:
    classes = [_service(service, system.runtime) for service in system.services]
    body = "\n\n\n".join("\n".join(lines) for lines in classes)
    head = [
        f'"""Services of the generated system {system.seed}."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    if "random." in body:
        head += ["import random", ""]
    used = [n for n in ("burn", "exponential", "lognormal", "pause", "uniform") if f"{n}(" in body]
    head += [f"from work import {', '.join(used)}", "", "from mup import EP, MS, Communication", "", "", ""]
    return "\n".join(head) + body + "\n"


def _service(service: Service, runtime: Runtime) -> list[str]:
    lines = [f"class {service.name}(MS):", f'    """Service {service.name}."""', ""]
    if runtime != "process":
        lines.append(f'    runtime = "{runtime}"')
    lines += [f"    pool_size = {service.pool}", f"    replicas = {service.replicas}"]
    style = Style(awaits=runtime == "async")
    for endpoint in service.endpoints:
        lines += ["", *_indented(_endpoint(service, endpoint, style))]
    return lines


def _endpoint(service: Service, endpoint: Endpoint, style: Style) -> list[str]:
    kind = "async def" if style.awaits else "def"
    lines = [
        f'@EP("{endpoint.path}")',
        f"{kind} {endpoint.path.strip('/')}(self, comm: Communication) -> None:",
        '    """Do the work of one request."""',
        *_indented(_steps(endpoint.steps, style)),
        f'    comm.respond({{"from": "{service.name}"}})',
    ]
    return [*lines, *_indented(_step(endpoint.after, style))] if endpoint.after else lines


def _workload(system: System) -> str:
    think = system.think
    lines = [
        f'"""Users of the generated system {system.seed}."""',
        "",
        "from __future__ import annotations",
        "",
        "from mup import Client, Communication",
        "",
        "",
        "class User(Client):",
        '    """Asks again and again."""',
        "",
        "    async def scenario(self, comm: Communication) -> None:",
        '        """Do one cycle."""',
    ]
    if think is not None:
        lines.append(f'        await self.think({think.seconds:g}, "{think.shape}")')
    return "\n".join([*lines, *_indented(_steps(system.scenario, CLIENT), 2), ""])


def _steps(steps: Sequence[Step], style: Style) -> list[str]:
    return [line for step in steps for line in _step(step, style)]


def _step(step: Step, style: Style) -> list[str]:
    """Return the statements of a step."""
    wait = "await " if style.awaits else ""
    match step:
        case Burn(ms=ms, shape="constant"):
            return [f"burn({ms:g})"]
        case Burn(ms=ms, shape=shape):
            return [f"burn({shape}({ms:g}))"]
        case Pause(ms=ms, shape="constant"):
            return [f"{wait}pause({ms:g})"]
        case Pause(ms=ms, shape=shape):
            return [f"{wait}pause({shape}({ms:g}))"]
        case Ask():
            return _ask(step, style)
        case Choice(probability=p, then=then, otherwise=otherwise):
            lines = [f"if {style.random}random.random() < {p:g}:", *_indented(_steps(then, style))]
            return [*lines, "else:", *_indented(_steps(otherwise, style))] if otherwise else lines
    raise TypeError(step)


def _ask(step: Ask, style: Style) -> list[str]:
    def result(future: str) -> str:
        return f"await {future}" if style.awaits else f"{future}.get()"

    if len(step.operations) == 1 and step.meanwhile is None:
        return [result(_operation(step.operations[0]))]
    names = ORDINALS[: len(step.operations)]
    lines = [f"{n} = {_operation(o)}" for n, o in zip(names, step.operations, strict=True)]
    if step.meanwhile is not None:
        lines += _step(step.meanwhile, style)
    return [*lines, *(result(name) for name in names)]


def _operation(operation: Operation) -> str:
    if isinstance(operation, CallTo):
        return f'comm.call("{operation.service}", "{operation.path}")'
    if operation.query == "by_id":
        return 'comm.query("db", "by_id", "items", {"_id": random.randrange(500)})'
    return 'comm.query("db", "by_shelf", "items", {"shelf": random.randrange(50)})'


def _indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    return [f"{'    ' * levels}{line}" if line else "" for line in lines]
