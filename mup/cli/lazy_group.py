"""A group of commands that are imported when they are used, so that listing them is fast."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import click

from mup.errors import did_you_mean

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used.

    Args:
        commands_by_name: Module with a click command called ``command``, and line of help in the list; the
            help is here so that listing the commands imports none of them.
        groups: The same commands under the headings of the list; None = all under one.
        attrs: Anything ``click.Group`` takes.
    """

    def __init__(
        self,
        *,
        commands_by_name: Mapping[str, tuple[str, str]],
        groups: Mapping[str, Iterable[str]] | None = None,
        **attrs: Any,
    ) -> None:
        super().__init__(**attrs)
        self._known = commands_by_name
        self._groups = {"Commands": commands_by_name} if groups is None else groups

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, in the order of the table."""
        return list(self._known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command; None if there is none of this name."""
        if cmd_name not in self._known:
            return None
        module = importlib.import_module(self._known[cmd_name][0])
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one is closest."""
        if args and args[0] not in self._known and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}; {did_you_mean(args[0], list(self._known))}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table without importing anything."""
        # Padded to one width, so that the columns of all groups are one below the other.
        width = max(map(len, self._known))
        for heading, names in self._groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self._known[name][1]) for name in names])
