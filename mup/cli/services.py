"""``mup services``: who is registered?"""

from __future__ import annotations

import click

from mup.cli.vocabulary import option


@click.command()
@click.argument("project", default=".", type=click.Path())
@option("--registry")
@option("--json")
def command(project: str, registry: str, as_json: bool) -> None:
    """List the live replicas and the databases the registry of PROJECT knows.

    The registry is the one on this machine at the port mup.toml names, unless --registry names another.
    """
    from mup.cli.registries import registry_and_token

    client, _ = registry_and_token(project, registry)
    listed = {**client.get("/services"), **client.get("/databases")}
    if as_json:
        import json

        click.echo(json.dumps(listed, indent=1))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("service", "replica", "URL", "process")
    for name, live in listed["services"].items():
        for replica in live:
            table.add_row(escape(name), str(replica["replica"]), escape(replica["url"]), str(replica["pid"]))
        if not live:
            table.add_row(escape(name), "none alive", "", "")
    console = Console()
    console.print(table)
    for name, uri in listed["databases"].items():
        console.print(f"database  {name}: {uri}", highlight=False, markup=False)
