"""The registry a command asks: the one given as an option, or that of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mup.runtime.deployment.registry_client import RegistryClient

__all__ = ["registry_and_token"]


def registry_and_token(project: str, registry: str) -> tuple[RegistryClient, str]:
    """Return a client of a registry, and the token that it and its services want to see.

    Args:
        project: Folder of a project, whose registry is on this machine at the port ``mup.toml`` names.
        registry: URL of another one; "" = that of the project.

    Raises:
        MupError: The URL or the project is wrong.
    """
    from mup.addresses import is_wildcard, url_of
    from mup.cli.options import registry_url
    from mup.environment import registry_token
    from mup.project import LOOPBACK, load_project
    from mup.runtime.deployment.registry_client import RegistryClient
    from mup.runtime.protocol.run_token import find_token

    if registry:
        url, token, tls = registry_url(registry), "", None
    else:
        loaded = load_project(project)
        host = LOOPBACK if is_wildcard(loaded.registry_host) else loaded.registry_host
        tls = loaded.tls
        url, token = url_of(host, loaded.registry_port, tls=tls is not None), registry_token(loaded)
    token = token or find_token(url)
    return RegistryClient(url, token, tls), token
