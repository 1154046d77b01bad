"""``mup paths PROJECT``: the execution paths of every endpoint, and what cannot be analysed."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option
from mup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.tree import Tree

    from analyzer.static.application import Application, Operation, Path

__all__ = ["command"]


@click.command(
    name="paths",
    epilog=examples(
        "mup paths shop",
        "mup paths services.py --json",
        "mup paths shop --format github",
        "mup paths --explain MUP020",
    ),
)
@click.argument("src", metavar="[PROJECT]", default=".", type=click.Path(path_type=FilePath))
@option(
    "--explain",
    help="Say what a code of a finding means, with code that is accepted in its place; nothing is analysed.",
)
@option("--format", "form")
@option("--watch")
@option("--json")
def command(src: FilePath, *, explain: str | None, form: str | None, watch: bool, as_json: bool) -> int:
    """List the execution paths of every endpoint, and what cannot be analysed.

    PROJECT can also be a folder of Python source, or one file; nothing is imported or run. Findings go to
    standard error; the exit code is 1 if one of them is an error. With --watch, the endpoints that differ and
    all findings are listed again after each change.
    """
    from mup.cli.sources import analysed

    if explain is not None:
        from mup.cli.models.explaining import explanation

        click.echo(explanation(explain), nl=False)
        return 0
    if form is not None and as_json:
        raise UsageError("--format and --json are two forms of the same output", hint="choose one of them")
    if watch:
        if form is not None or as_json:
            raise UsageError(
                "--watch is for people: it has no --json or --format", hint="leave one of them out"
            )
        from mup.cli.models.watching import watch as watching

        return watching(src, _show)
    application = analysed(src)
    if form is not None:
        _findings(application, form)
    elif as_json:
        click.echo(json.dumps(_document(application), indent=1))
    else:
        _show(application)
    return 1 if application.errors else 0


def _findings(application: Application, form: str) -> None:
    """Print the findings alone, as GitHub or code scanning read them."""
    from mup.cli.models import difference_formats
    from mup.cli.models.git_versions import prefix_in_repository

    prefix = prefix_in_repository(application.root)
    given = (), application.diagnostics, prefix, prefix
    if form == "sarif":
        click.echo(json.dumps(difference_formats.sarif(*given), indent=1))
        return
    for line in difference_formats.workflow_commands(*given):
        click.echo(line)


def _document(application: Application) -> dict[str, Any]:
    return {
        "format": "mup-paths/1",
        "root": str(application.root),
        "services": {
            service.name: {
                "file": service.file,
                "line": service.line,
                "pool_size": service.pool_size,
                "replicas": service.replicas,
                "runtime": service.runtime,
                "endpoints": {
                    endpoint.path: {
                        "name": endpoint.name,
                        "file": endpoint.file,
                        "line": endpoint.line,
                        "fingerprint": endpoint.fingerprint,
                        "paths": [_elements(path) for path in endpoint.paths],
                        **({"whole": True} if endpoint.whole else {}),
                    }
                    for endpoint in service.endpoints
                },
            }
            for service in application.services
        },
        "clients": {
            client.name: {
                "file": client.file,
                "line": client.scenario_line,
                "fingerprint": client.fingerprint,
                "paths": [_elements(path) for path in client.paths],
            }
            for client in application.clients
        },
        "diagnostics": [diagnostic.to_json() for diagnostic in application.diagnostics],
    }


def _elements(path: Path, around: tuple[Operation, ...] = ()) -> list[dict[str, Any]]:
    """Return a path as the list of its operations; ``of`` is the line of what is waited for.

    Args:
        path: The path.
        around: Of the path of a task, the operations before the task.
    """
    elements: list[dict[str, Any]] = []
    for index, operation in enumerate(path.operations):
        before = (*around, *path.operations[:index])
        element = _nested(operation, before) if operation.bodies else _simple(operation, before, len(around))
        if operation.holding:
            element["holding"] = [held.name for held in operation.holding]
        elements.append(element)
    if path.ends == "raise":
        elements.append({"op": "raise", "line": path.end_line})
    return elements


def _nested(operation: Operation, before: tuple[Operation, ...]) -> dict[str, Any]:
    """Return what holds paths; only that of a task waits for operations before it."""
    around = before if operation.op == "task" else ()
    bodies = [_elements(body, around) for body in operation.bodies]
    site = operation.site
    element = {"op": operation.op, "file": site.file, "line": site.line, "body": bodies}
    if operation.op == "fan-out":
        element |= {"most": operation.most, "limit": operation.limit}
    if operation.op == "loop" and operation.target:
        element["left"] = True
    return element


def _simple(operation: Operation, before: tuple[Operation, ...], outer: int) -> dict[str, Any]:
    """Return an operation; ``outer`` of those before it are around the task that it is in."""
    element: dict[str, Any] = {
        "op": operation.op,
        "target": operation.target,
        "file": operation.site.file,
        "line": operation.site.line,
    }
    if operation.of is not None:
        waited = before[outer + operation.of]
        element["target"] = "" if waited.op == "fan-out" else waited.target
        element["of"] = waited.site.line
        if operation.target == "first":
            element["first"] = True
    if operation.op == "think":
        element["think"] = None if operation.think is None else operation.think.to_json()
    return element


def _show(application: Application, before: Application | None = None) -> None:
    """Print the paths, of another version than before only of what has changed; then all findings."""
    from rich.console import Console
    from rich.markup import escape
    from rich.tree import Tree

    from analyzer.static.diagnostics import render, summary
    from mup.cli.output.display import console

    out = console()
    known = set() if before is None else _marks(before)
    for service in application.services:
        listed = [e for e in service.endpoints if (service.name, e.path, e.fingerprint) not in known]
        if not listed and (service.endpoints or known):
            continue
        replicas = f", {service.replicas} replicas" if service.replicas > 1 else ""
        tree = Tree(
            f"[bold]{escape(service.name)}[/]  pool {service.pool_size}{replicas}, {service.runtime} runtime"
            f"  [dim]{escape(service.file)}:{service.line}[/]"
        )
        for endpoint in listed:
            place = f"{endpoint.file}:{endpoint.line}"
            if endpoint.whole:
                heading = f"[bold]{_shown(endpoint.path)}[/]  [dim]{escape(place)}[/]"
                tree.add(f"{heading}  not analysed: measured as a whole")
            else:
                _add_paths(tree, endpoint.path, place, endpoint.paths, endpoint.file)
        out.print(tree, soft_wrap=True)
    for client in application.clients:
        if (client.name, "", client.fingerprint) in known:
            continue
        tree = Tree(f"[bold]{escape(client.name)}[/]  client  [dim]{escape(client.file)}:{client.line}[/]")
        _add_paths(tree, "scenario", f"{client.file}:{client.scenario_line}", client.paths, client.file)
        out.print(tree, soft_wrap=True)
    if application.diagnostics:
        errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
        for diagnostic in application.diagnostics:
            errors.print(render(diagnostic, application.root))
        errors.print(summary(application.diagnostics))


def _marks(application: Application) -> set[tuple[str, str, str]]:
    """Return what tells whether the paths of an endpoint or client may have changed."""
    found = {(e.service, e.path, e.fingerprint) for e in application.endpoints()}
    return found | {(c.name, "", c.fingerprint) for c in application.clients}


def _add_paths(tree: Tree, name: str, place: str, paths: Iterable[Path], file: str) -> None:
    from rich.markup import escape

    branch = tree.add(f"[bold]{_shown(name)}[/]  [dim]{escape(place)}[/]")
    paths = tuple(paths)
    for number, path in enumerate(paths, 1):
        node = branch.add(f"path {number} of {len(paths)}") if len(paths) > 1 else branch
        _add_elements(node, _elements(path), file)


def _add_elements(node: Tree, elements: Iterable[dict[str, Any]], file: str) -> None:
    from rich.markup import escape

    listed = list(elements)
    fan_outs = {element["line"] for element in listed if element["op"] == "fan-out"}
    for element in listed:
        what = element["op"]
        if element["op"] == "get":
            what += f" [dim]{_shown(element['target'])} of line {element['of']}[/]"
        elif element["op"] == "join":
            copies = "first copy" if "first" in element else "copies"
            whose = copies if element["of"] in fan_outs else "task"
            what += f" [dim]{whose} of line {element['of']}[/]"
        elif element.get("target"):
            what += f" {_shown(element['target'])}"
        elif element["op"] == "think":
            time = element["think"]
            what += " ?" if time is None else f" {time['mean'] * 1e3:g} ms {time['family']}"
        elif element.get("left"):
            what += " [dim]not waited for[/]"
        elif element.get("limit") is not None:
            what += f" [dim]{element['limit']} at once[/]"
        if element.get("holding"):
            what += f" [dim]holding {_shown(', '.join(element['holding']))}[/]"
        where = "" if element.get("file", file) == file else f"{element['file']}:"
        below = node.add(f"{what}  [dim]{escape(where)}{'' if where else 'line '}{element['line']}[/]")
        bodies = element.get("body", ())
        title = {"loop": "iteration", "fan-out": "copy", "race": "task"}.get(element["op"], "either")
        for number, body in enumerate(bodies, 1):
            several = len(bodies) > 1
            inside = below.add(f"{title} {number} of {len(bodies)}") if several else below
            if not body:
                inside.add("nothing")
            _add_elements(inside, body, file)


def _shown(text: str) -> str:
    """Return a text of the source for a terminal: control characters are not sent to it."""
    from rich.markup import escape

    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))
