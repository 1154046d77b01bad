"""mup: microservices whose performance model comes with the code.

``from mup import MS, EP, Communication, MupFuture, Client`` is all a service or a workload needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mup.communication import Communication as Communication
    from mup.databases.literal import literal as literal
    from mup.future import MupFuture as MupFuture
    from mup.service import EP as EP
    from mup.service import MS as MS
    from mup.workload.client import Client as Client

__all__ = ["EP", "MS", "Client", "Communication", "MupFuture", "literal"]

# Imported at first use: `import mup.lqn` must not load an HTTP stack.
_HOMES = {
    "MS": "mup.service",
    "EP": "mup.service",
    "Communication": "mup.communication",
    "MupFuture": "mup.future",
    "Client": "mup.workload.client",
    "literal": "mup.databases.literal",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
