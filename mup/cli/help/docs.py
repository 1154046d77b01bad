"""``mup docs``: the documentation of this installation, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from rich.console import Console

    from mup.cli.help.documentation import Match, Page

MOST_MATCHES = 20
"""Sections that a search prints; ``--json`` has all."""


@click.command(
    epilog=examples(
        "mup docs",
        "mup docs mup-toml",
        "mup docs simulation#limits",
        "mup docs --search 'pool size'",
        "mup docs --serve",
    )
)
@click.argument("page", default="")
@option("--search")
@option("--serve")
@option("--json")
def command(page: str, search: str | None, serve: bool, as_json: bool) -> None:
    """Show PAGE of the documentation, list all pages, or search them.

    PAGE is a name from the list, with or without its folder; NAME#HEADING is one section of it. On a terminal
    the text is laid out, elsewhere it is printed as it is.
    """
    from mup.cli.help import documentation
    from mup.errors import UsageError

    if serve:
        if search is not None or as_json:
            raise UsageError("--serve has a search of its own", hint="leave out --search and --json")
        _serve(f"{documentation.find_page(page).name}.md" if page else "")
    elif search is not None:
        if page:
            raise UsageError("--search looks into all pages", hint=f"leave out {page!r}")
        _matches(documentation.search(search), search, as_json=as_json)
    elif page:
        name, _, anchor = page.partition("#")
        found = documentation.find_page(name)
        _page(found, found.part(anchor) if anchor else found.text, as_json=as_json)
    else:
        _list(documentation.all_pages(), as_json=as_json)


def _serve(path: str) -> None:
    """Serve all pages until Ctrl-C."""
    from mup.cli.help.site import server

    with server() as pages:
        click.echo(f"http://127.0.0.1:{pages.server_address[1]}/{path}  (Ctrl-C ends it)")
        pages.serve_forever()


def _list(pages: list[Page], *, as_json: bool) -> None:
    """Print the names of all pages, by kind."""
    if as_json:
        _json({"pages": [{"page": each.name, "title": each.title, "file": str(each.file)} for each in pages]})
        return
    width = max(len(each.name) for each in pages)
    kind = ""
    for each in pages:
        folder = each.name.partition("/")[0]
        if folder != kind:
            click.echo("" if kind else "mup docs PAGE shows one of these pages:\n")
            kind = folder
        click.echo(f"{each.name:<{width}}  {each.title}")


def _page(page: Page, text: str, *, as_json: bool) -> None:
    """Print a page or a section of it."""
    from mup.cli.output.display import console

    if as_json:
        _json({"page": page.name, "title": page.title, "file": str(page.file), "text": text})
    else:
        show(console(), text)


def show(out: Console, text: str) -> None:
    """Print Markdown: laid out for a terminal, as it is for a file or a program."""
    if out.is_terminal:
        from rich.markdown import Markdown

        out.print(Markdown(text, hyperlinks=False))
    else:
        click.echo(text.rstrip("\n"))


def _matches(found: list[Match], words: str, *, as_json: bool) -> None:
    """Print the sections that a search found; exit with 1 if there is none."""
    if as_json:
        _json(
            {
                "matches": [
                    {
                        "page": each.page.name,
                        "heading": each.heading,
                        "file": str(each.page.file),
                        "line": each.line,
                        "text": each.text,
                    }
                    for each in found
                ]
            }
        )
    for each in () if as_json else found[:MOST_MATCHES]:
        click.echo(f"{each.page.name}: {each.heading}")
        click.echo(f"    {each.text}")
    if not as_json and len(found) > MOST_MATCHES:
        click.echo(f"and {len(found) - MOST_MATCHES} more sections; another word narrows the search")
    if not found:
        click.echo(f"no section has all of these words: {words}", err=True)
        raise SystemExit(1)


def _json(document: object) -> None:
    import json

    click.echo(json.dumps(document, indent=1))
