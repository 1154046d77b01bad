"""``mup completion``: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click

from mup.cli.vocabulary import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        'eval "$(mup completion bash)"', "mup completion fish > ~/.config/fish/completions/mup.fish"
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes mup's commands and options in SHELL.

    For bash and zsh, put eval "$(mup completion SHELL)" into ~/.bashrc or ~/.zshrc.
    """
    from click.shell_completion import get_completion_class

    from mup.cli.main import COMPLETION_VARIABLE, cli

    kind = get_completion_class(shell)
    if kind is None:
        raise LookupError(f"click cannot complete in {shell}")
    click.echo(kind(cli, {}, "mup", COMPLETION_VARIABLE).source())
