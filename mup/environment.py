"""References to environment variables in settings, so that secrets are in no file.

``${NAME}`` in a URI or a token of ``mup.toml`` stands for an environment variable. References are kept as
they are until the value is needed: a project that is only read needs no secrets, and nothing that prints it
has any.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from mup.errors import DeploymentError

if TYPE_CHECKING:
    from mup.project import Project

__all__ = ["REGISTRY_TOKEN", "expand_uri", "is_production", "is_reference", "registry_token"]

REGISTRY_TOKEN = "MUP_REGISTRY_TOKEN"  # noqa: S105 - the name of the variable
"""Where registry, services and clients find the token they share."""

PRODUCTION = "MUP_PRODUCTION"
"""1: clients are told nothing of what goes wrong but the status and an id."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def is_production() -> bool:
    """Whether the environment says that clients are strangers.

    Raises:
        DeploymentError: It says something else.
    """
    value = os.environ.get(PRODUCTION, "")
    if value not in ("", "0", "1"):
        raise DeploymentError(f"{PRODUCTION} must be 0 or 1, got {value!r}")
    return value == "1"


def is_reference(text: str) -> bool:
    """Whether a text is one reference and nothing else."""
    return bool(_REFERENCE.fullmatch(text))


def expand_uri(uri: str, where: str) -> str:
    """Return a URI with the values of the variables it refers to.

    User name, password and options are percent-encoded as they are put in; what stands for host, path, or the
    URI as a whole is taken as it is.

    Args:
        uri: As in ``mup.toml``.
        where: The setting, for messages.

    Raises:
        DeploymentError: A variable is not set.
    """
    head, mark, options = uri.partition("?")
    credentials, at, server = head.rpartition("@")
    return (
        _expand(credentials, where, encode=True)
        + at
        + _expand(server, where, encode=False)
        + mark
        + _expand(options, where, encode=True)
    )


def registry_token(project: Project) -> str:
    """Return the token of a project's registry; "" = it has none.

    Raises:
        DeploymentError: The project refers to a variable that is not set.
    """
    if not project.registry_token:
        return os.environ.get(REGISTRY_TOKEN, "")
    return _expand(project.registry_token, "registry.token", encode=False)


def _expand(text: str, where: str, *, encode: bool) -> str:
    def value(reference: re.Match[str]) -> str:
        name = reference[1]
        found = os.environ.get(name)
        if not found:
            raise DeploymentError(
                f"the environment variable {name} is not set",
                where=where,
                hint=f"export {name}=... before the start; mup.toml refers to it",
            )
        return quote(found, safe="") if encode else found

    return _REFERENCE.sub(value, text)
