"""Import a class by its name in ``mup.toml``."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path

from mup.errors import DeploymentError
from mup.service import MS

__all__ = ["import_service"]

_log = logging.getLogger("mup.runtime")


def import_service(target: str, source: Path) -> type[MS]:
    """Return the class a service is made of.

    Raises:
        DeploymentError: It cannot be imported, or is no service.
    """
    module_name, _, class_name = target.partition(":")
    sys.path.insert(0, str(source))
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        # The user's own mistake somewhere in there: show where.
        _log.exception("cannot import %s", module_name)
        raise DeploymentError(
            f"cannot import {module_name!r} from {source}: {type(error).__name__}: {error}", where=target
        ) from error
    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, MS)):
        found = [
            n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, MS) and v is not MS
        ]
        problem = "is not a subclass of mup.MS" if kind is not None else "does not exist"
        raise DeploymentError(
            f"{class_name!r} {problem} in {module.__file__}",
            where=target,
            hint=f"services there: {', '.join(found) or 'none'}",
        )
    return kind
