"""``mup openapi``: describe a service for the tools of others."""

from __future__ import annotations

import click

from mup.cli.vocabulary import examples, option


@click.command(epilog=examples("mup openapi shop --service Stock -o stock.json"))
@click.argument("project", default=".", type=click.Path())
@option("--service", "name", default="", help="Service to describe; needed if there are several.")
@option("--output", type=click.Path(dir_okay=False))
def command(project: str, name: str, output: str | None) -> None:
    """Print the OpenAPI 3.1 document of a service of PROJECT, whose module is imported for it.

    A running replica serves the same document at /mup/openapi.json.
    """
    import json

    from mup.cli.options import check_result
    from mup.errors import UsageError
    from mup.project import load_project
    from mup.runtime.endpoint.dispatch import Dispatch
    from mup.runtime.endpoint.openapi import document
    from mup.runtime.process.importing import import_service
    from mup.service import endpoints_of
    from mup.whole_file import write_whole

    check_result(output, starts=("{",), as_json=False)
    loaded = load_project(project)
    names = [service.name for service in loaded.services]
    if not name and len(names) != 1:
        raise UsageError("the project has several services", hint=f"add --service, one of {', '.join(names)}")
    config = loaded.service(name or names[0])
    kind = import_service(config.target, loaded.source)
    text = json.dumps(document(config.name, kind, Dispatch(kind, endpoints_of(kind))), indent=1)
    if output is None:
        click.echo(text)
    else:
        write_whole(output, text + "\n", what="the description")
