"""``mup compare BASE HEAD [PROJECT]``: what did a change to a project do?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mup.cli.models.compare_sides import Side, analysed_side, reject_errors_of, sides_of
from mup.cli.vocabulary import examples, option
from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.static.project_version import Difference, Version
    from mup.cli.models.effect_of_change import EffectOfChange, Question

__all__ = ["command", "compared", "effect_of_versions"]


@click.command(
    name="compare",
    epilog=examples(
        "mup compare main HEAD shop",
        "mup compare origin/main . --annotations",
        "mup compare old/shop new/shop --markdown",
        "mup compare main HEAD shop --measure --clients 32 --fail-if 'p95>+5%'",
    ),
)
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.argument("project", metavar="[PROJECT]", default="", type=click.Path())
@option(
    "--measure",
    help="Also start and measure both versions.",
)
@option("--budget")
@option("--fail-if")
@option("--clients", show_default="the project's own load")
@option("--arrivals", show_default="the project's own load")
@option(
    "--model",
    help="Calibrated model of BASE to predict from without --measure.",
    show_default="that of the project",
)
@option("--seed")
@option("--markdown")
@option("--annotations")
@option("--sarif")
@option("--json")
def command(
    base: str,
    head: str,
    project: str,
    *,
    measure: bool,
    budget: float,
    fail_if: tuple[str, ...],
    clients: str | None,
    arrivals: str | None,
    model: str | None,
    seed: int,
    markdown: bool,
    annotations: bool,
    sarif: str | None,
    as_json: bool,
) -> int:
    """Say what changed in meaning from BASE to HEAD, from source and mup.toml, and what that does.

    BASE and HEAD are git commits of the repository that PROJECT is in, or folders: '.' as HEAD is what is
    there now, committed or not. Reported are calls, queries and replies that are made more often, in loops,
    in another order or no longer in parallel; changed local work; endpoints, services, databases and settings
    that came, went or changed. Comments, layout, names of local variables and the order of definitions and
    imports do not count. Exit code 0: nothing changed; 1: something did; 2: a version cannot be analysed.

    With --measure both versions are started and measured in turns; what did not change has the same numbers
    in both. Then mean, 95th percentile and capacity before and after are simulated, and how much each changed
    line contributes. Without it nothing is run; with --fail-if, a load or --model, they are predicted from
    the calibrated model of BASE. With --fail-if the exit code is 1 only if a condition fails for sure.
    """
    from analyzer.static.versions import differences
    from mup.cli.models.effect_of_change import Question, effect_between
    from mup.cli.options import check_output

    if markdown and as_json:
        raise UsageError("--markdown and --json are two forms of the same output", hint="choose one of them")
    check_output(sarif, starts=("{",))
    question = Question.of(
        measure=measure,
        budget=budget,
        fail_if=fail_if,
        clients=clients,
        arrivals=arrivals,
        model=model,
        seed=seed,
    )
    effect: EffectOfChange | None = None
    with sides_of(base, head, project, started=measure) as (old, new):
        before = analysed_side(old)
        reject_errors_of(old, before.application)
        after = analysed_side(new)
        usable = not after.application.errors
        found = differences(before, after) if usable else []
        _beside_lines(new, after, found, sarif=sarif, shown=annotations, on_stderr=markdown or as_json)
        # Last, for what makes a model impossible is shown beside its line, too.
        reject_errors_of(new, after.application)
        if question is not None:
            effect = effect_between(question, (old, new), (before, after), found)
        if as_json:
            findings = [finding.to_json() for finding in after.application.diagnostics]
            document = {
                "base": base,
                "head": head,
                "equal": not found,
                "differences": [one.to_json() for one in found],
                "findings": findings,
            }
            if effect is not None:
                document["effect"] = effect.to_json()
            click.echo(json.dumps(document, indent=1))
        else:
            _show(base, head, found, effect, as_markdown=markdown)
    if question is not None and question.conditions and effect is not None:
        return int(effect.fails)
    return int(bool(found))


def compared(base: str, head: str, project: str) -> tuple[Difference, ...]:
    """Return what changed in meaning; the arguments are those of the command.

    Raises:
        UsageError: One of the versions is not there, or cannot be analysed.
    """
    from analyzer.static.versions import differences

    with sides_of(base, head, project) as sides:
        before, after = (analysed_side(side) for side in sides)
        for side, version in zip(sides, (before, after), strict=True):
            reject_errors_of(side, version.application)
        return tuple(differences(before, after))


def effect_of_versions(
    base: str, head: str, project: str, question: Question
) -> tuple[Sequence[Difference], EffectOfChange]:
    """Return what changed in meaning, and what that does.

    Args:
        base: As the command's argument, like the next two.
        head: The other version.
        project: Where the project is.
        question: What is asked about the effect.

    Raises:
        UsageError: One of the versions is not there, cannot be analysed or does not start.
        SimulationError: One cannot be simulated under the load.
    """
    from analyzer.static.versions import differences
    from mup.cli.models.effect_of_change import effect_between

    with sides_of(base, head, project, started=question.measure) as sides:
        before, after = (analysed_side(side) for side in sides)
        for side, version in zip(sides, (before, after), strict=True):
            reject_errors_of(side, version.application)
        found = differences(before, after)
        return found, effect_between(question, sides, (before, after), found)


# What is said.


def _beside_lines(
    side: Side,
    version: Version,
    found: Sequence[Difference],
    *,
    sarif: str | None,
    shown: bool,
    on_stderr: bool,
) -> None:
    """Write what other programs show beside lines of the source."""
    from mup.cli.models import difference_formats
    from mup.whole_file import write_whole

    # An empty name of a file of the source folder is the folder.
    source = side.prefix + version.file("x")[:-1]
    given = found, version.application.diagnostics, side.prefix, source
    if sarif is not None:
        write_whole(
            sarif, json.dumps(difference_formats.sarif(*given), indent=1) + "\n", what="the SARIF log"
        )
    if shown:
        for line in difference_formats.workflow_commands(*given):
            click.echo(line, err=on_stderr)


def _show(
    base: str, head: str, found: Sequence[Difference], effect: EffectOfChange | None, *, as_markdown: bool
) -> None:
    from mup.cli.models import difference_formats, effect_formats
    from mup.cli.output.display import console
    from mup.cli.output.tables import print_table

    if as_markdown:
        click.echo(difference_formats.markdown(base, head, found), nl=False)
        if effect is not None:
            click.echo(effect_formats.effect_markdown(effect), nl=False)
        return
    if not found:
        click.echo(f"{base} -> {head}: nothing changed in meaning")
        if effect is not None:
            effect_formats.show_effect(effect)
        return
    rows = [
        [one.kind, difference_formats.subjects(one), one.text, difference_formats.place(one)] for one in found
    ]
    print_table(console(), f"{base} -> {head}", ["what", "where", "difference", "place"], rows, texts=4)
    click.echo(f"{len(found)} difference{'s' if len(found) > 1 else ''}")
    if effect is not None:
        effect_formats.show_effect(effect)
