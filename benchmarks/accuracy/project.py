"""Write a system as source code: an ordinary mup project, the way a user would."""

from __future__ import annotations

from pathlib import Path

from accuracy.sources import CACHE, data_module, work_module
from accuracy.statements import Style, endpoint_body, indented
from accuracy.system import Endpoint, Scan, Service, System, every_step
from accuracy.users import workload_module
from mup.errors import UsageError

__all__ = ["write_project"]

FROM_WORK = (
    *(
        "bimodal",
        "burn",
        "digest",
        "exponential",
        "heavy",
        "lognormal",
        "pareto",
        "pause",
        "render",
        "uniform",
    ),
)


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
    services = _services(system)
    files = {
        "mup.toml": _toml(system),
        "work.py": work_module(system, set(_used(services))),
        "services.py": services,
        "workload.py": workload_module(system),
        "data.py": data_module(system),
        "cache.py": CACHE if system.keys else "",
    }
    return {name: text for name, text in files.items() if text}


def _used(services: str) -> list[str]:
    """Return the names of ``work.py`` that ``services.py`` needs."""
    return [name for name in FROM_WORK if f"{name}(" in services]


def _toml(system: System) -> str:
    lines = ["[project]", f'name = "{system.name}"', 'client = "workload:User"', ""]
    for service in system.services:
        lines += [f"[services.{service.name}]", f'class = "services:{service.name}"']
        if service.retries:
            lines.append("retries = { attempts = 3, budget = 0.1, backoff = 0.01 }")
        lines.append("")
    if system.database == "mongod":
        # The port is a placeholder: who starts the server sets MUP_DATABASE_DB.
        lines += ["[databases.db]", 'uri = "mongodb://127.0.0.1:27017"', 'load = "data:fill"', ""]
    elif system.database:
        lines += ["[databases.db]", 'load = "data:fill"', ""]
    return "\n".join(lines)


def _services(system: System) -> str:
    classes = [_service(service, system) for service in system.services]
    body = "\n\n\n".join("\n".join(lines) for lines in classes)
    head = [
        f'"""Services of the generated system {system.seed}."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    standard = [f"import {module}" for module in ("asyncio", "random") if f"{module}." in body]
    if "suppress(" in body:
        standard.append("from contextlib import suppress")
    head += [*standard, ""] if standard else []
    if "Cache(" in body:
        head.append("from cache import Cache")
    if names := [n for n in ("ITEMS", "Catalogue") if n in body]:
        head.append(f"from data import {', '.join(sorted(names, key=str.lower))}")
    head += [f"from work import {', '.join(_used(body))}", "", "from mup import EP, MS, Communication"]
    if "CallError" in body:
        head.append("from mup.errors import CallError")
    return "\n".join([*head, "", "", ""]) + body + "\n"


def _service(service: Service, system: System) -> list[str]:
    runtime = system.runtime_of(service)
    lines = [f"class {service.name}(MS):", f'    """Service {service.name}."""', ""]
    if runtime != "process":
        lines.append(f'    runtime = "{runtime}"')
    lines += [f"    pool_size = {service.pool}", f"    replicas = {service.replicas}"]
    if held := _held(service):
        lines += ["", "    def setup(self) -> None:", '        """Get what all requests share."""']
        lines += indented(held, 2)
    style = Style(system, awaits=runtime == "async", sleeps=runtime == "async" and bool(system.prefix))
    for endpoint in service.endpoints:
        lines += ["", *indented(_endpoint(service, endpoint, style))]
    return lines


def _held(service: Service) -> list[str]:
    """Return what a worker does before its first request."""
    lines = []
    if service.cache is not None:
        lines.append(f"self.cache = Cache({service.cache.size})")
        if service.cache.filled:
            # The most popular keys are the smallest.
            lines += [f"for key in range({service.cache.size}):", '    self.cache.put(key, f"item {key}")']
    scanned = sum(step.ms for step in every_step(service) if isinstance(step, Scan))
    return [*lines, f"self.catalogue = Catalogue({scanned:g})"] if scanned else lines


def _endpoint(service: Service, endpoint: Endpoint, style: Style) -> list[str]:
    kind = "async def" if style.awaits else "def"
    return [
        f'@EP("{endpoint.path}")',
        f"{kind} {endpoint.path.strip('/')}(self, comm: Communication) -> None:",
        '    """Do the work of one request."""',
        *indented(endpoint_body(service.name, endpoint, style)),
    ]
