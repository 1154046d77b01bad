"""``mup pool``: change how many workers the replicas of a running service have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, old_option, option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mup.runtime.deployment.registry_client import RegistryClient

SECONDS = 120.0
"""What a replica gets to set up new workers."""


@click.command(epilog=examples("mup pool Stock 4 shop"))
@click.argument("service")
@click.argument("size", type=click.IntRange(1, 1024))
@click.argument("project", required=False, type=click.Path())
@old_option("--project", "old_project", now="PROJECT")
@option("--registry")
@option("--json")
def command(
    service: str, size: int, project: str | None, old_project: str | None, registry: str, as_json: bool
) -> None:
    """Give every live replica of SERVICE a pool of SIZE workers, while it serves.

    New workers are set up before the command returns; surplus workers finish their current request and exit.
    The change lasts until a replica ends: mup.toml says what it starts with.
    """
    from mup.cli.services.registries import registry_and_token
    from mup.errors import DeploymentError, did_you_mean

    client, token = registry_and_token(project or old_project or ".", registry)
    known = client.services()
    if service not in known:
        raise DeploymentError(f"no service {service!r}; {did_you_mean(service, list(known))}")
    if not known[service]:
        raise DeploymentError(f"service {service!r} has no live replica")
    changed, problems = [], []
    for replica in known[service]:
        try:
            changed.append(_resize(replica["url"], size, token, client))
        except DeploymentError as error:
            problems.append(f"{service}.{replica['replica']} at {replica['url']}: {error.message}")
    if as_json and not problems:
        import json

        click.echo(json.dumps({"service": service, "pool_size": size, "replicas": changed}, indent=1))
    elif not as_json:
        for status in changed:
            _say(status)
    if problems:
        done = f"; {len(changed)} of {len(known[service])} replicas were changed" if changed else ""
        raise DeploymentError("\n  ".join([f"not every replica was changed{done}", *problems]))


def _resize(url: str, size: int, token: str, registry: RegistryClient) -> dict[str, Any]:
    """Change one replica; return what it says of itself then.

    Raises:
        DeploymentError: It does not answer, or refuses.
    """
    import msgspec

    from mup.errors import CommunicationError, DeploymentError
    from mup.runtime.client.reply import BrokenError
    from mup.runtime.client.request import RawRequest, address_of
    from mup.runtime.client.sockets import Connection

    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    body = msgspec.json.encode({"pool_size": size})
    try:
        connection = Connection(address_of(url, encrypted=registry.encrypted), 3.0, registry.tls)
        response = connection.ask(RawRequest("POST", "/mup/pool", headers, body), SECONDS)
        connection.close()
        answer: dict[str, Any] = msgspec.json.decode(response.body)
    except CommunicationError as error:
        raise DeploymentError(error.message) from error
    except (OSError, BrokenError, msgspec.DecodeError) as error:
        raise DeploymentError(f"does not answer: {str(error) or type(error).__name__}") from error
    if response.status != 200:
        raise DeploymentError(str(answer.get("error", response.status)))
    return answer


def _say(status: Mapping[str, Any]) -> None:
    leaving = f"; {status['retiring']} more end with their request" if status["retiring"] else ""
    click.echo(f"{status['service']}.{status['replica']}: {status['pool_size']} workers{leaving}")
