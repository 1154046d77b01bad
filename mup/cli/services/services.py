"""``mup services``: the replicas and databases that are registered."""

from __future__ import annotations

import click

from mup.cli.vocabulary import option


@click.command()
@click.argument("project", default=".", type=click.Path())
@option("--registry")
@option("--json")
def command(project: str, registry: str, as_json: bool) -> None:
    """List the live replicas and the databases the registry of PROJECT knows.

    That is the one on this machine at the port mup.toml names, unless --registry names another.
    """
    from mup.cli.services.registries import registry_and_token

    client, _ = registry_and_token(project, registry)
    listed = {"services": client.services(), **client.get("/databases")}
    if as_json:
        import json

        click.echo(json.dumps(listed, indent=1))
        return
    from mup.cli.output.display import console, say
    from mup.cli.output.tables import print_table

    rows = []
    for name, live in listed["services"].items():
        rows += [[name, str(each["replica"]), each["url"], str(each["pid"])] for each in live]
        if not live:
            rows.append([name, "none alive", "", ""])
    out = console()
    print_table(out, "", ["service", "replica", "URL", "process"], rows, texts=3)
    for name, uri in listed["databases"].items():
        say(out, f"database  {name}: {uri}")
