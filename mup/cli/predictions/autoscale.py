"""``mup autoscale``: pools or replicas to add as the number of clients grows, and their effect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from rich.console import Console

    from mup.lqn.model import Model
    from simulator.figures.result import Figure
    from simulator.studies.autoscale import Step
    from simulator.studies.rehearsal import Rehearsal


@click.command(
    epilog=examples(
        "mup autoscale shop --max-clients 128", "mup autoscale model.json --horizontal --plot steps.svg"
    )
)
@click.argument("model", default=".", type=click.Path())
@option("--vertical/--horizontal")
@option("--clients", type=int, default=1, help="Number of concurrent clients at the beginning.")
@option("--max-clients", default=512)
@option("--threshold", default=0.85)
@option(
    "--duration",
    "run_seconds",
    old=("--run-seconds",),
    default=60.0,
)
@option(
    "--warmup",
    help="Seconds of load before that run, in which clients come.",
    show_default="a cycle",
)
@option(
    "--precision",
    default=0.01,
    help="95 % half-width of the cycle time (relative) and of utilizations (absolute).",
)
@option("--seed")
@option(
    "--max-seconds",
    default=3600.0,
)
@option("--jobs", "workers", old=("--workers",))
@option("--json")
@option("--plot")
def command(
    model: str,
    vertical: bool,
    clients: int,
    max_clients: int,
    threshold: float,
    run_seconds: float,
    warmup: float | None,
    precision: float,
    seed: int,
    max_seconds: float,
    workers: int | None,
    as_json: bool,
    plot: str | None,
) -> None:
    """Let an autoscaler look after the calibrated MODEL while its clients double.

    Whenever the most utilized service is a bottleneck, its threads (--vertical) or replicas (--horizontal)
    are doubled; else the clients are. The study ends at --max-clients, or when a processor is the bottleneck.

    Each step is what a load run of --duration shows on average; clients come one by one during the warm-up.
    """
    import json

    from mup.cli.first_run import announce_compilation
    from mup.cli.options import check_picture
    from mup.cli.output.display import console
    from mup.cli.sources import read_model_of
    from mup.errors import LimitError, UsageError
    from simulator.machine.budget import Budget, Reached
    from simulator.program.limits import check_size
    from simulator.studies.autoscale import Settings, autoscale
    from simulator.studies.rehearsal import rehearse

    if workers is not None and workers < 1:
        raise UsageError(f"--jobs: must be a whole number >= 1, got {workers}")
    check_picture(plot)
    loaded = read_model_of(model)
    settings = Settings(
        scaling="vertical" if vertical else "horizontal",
        threshold=threshold,
        clients=clients,
        max_clients=max_clients,
    )

    budget = Budget("the study of an autoscaler", seconds=max_seconds)
    cut: Reached | None = None

    def observe(changed: Model) -> Rehearsal:
        check_size(changed)
        return rehearse(
            changed,
            seconds=run_seconds,
            warmup=warmup,
            precision=precision,
            seed=seed,
            workers=workers,
            budget=budget,
        )

    announce_compilation()
    err = console(stderr=True)
    steps: list[Step] = []
    with err.status("step 1") if err.is_terminal else nullcontext() as status:
        try:
            for step in autoscale(loaded, settings, observe):
                steps.append(step)
                if status is not None:
                    status.update(f"step {step.number + 1}: {step.action}")
        except LimitError as error:
            if not steps:
                raise
            cut = error.reached
    if plot is not None:
        _draw(plot, loaded.name, steps)
    if as_json:
        document = {
            "model": loaded.name,
            "scaling": settings.scaling,
            "threshold": settings.threshold,
            "seed": seed,
            "steps": [step.to_json() for step in steps],
            "limit": None if cut is None else cut.to_json(),
        }
        click.echo(json.dumps(document, indent=1))
    else:
        print_steps(console(), steps)
        if cut is not None:
            console().print(f"warning: {cut}; there may be more steps", markup=False)


def label(step: Step) -> str:
    """Return clients, parallelism and bottleneck as the thesis writes them: ``128-4-main``."""
    parallel = step.pools[step.bottleneck] * step.replicas[step.bottleneck]
    return f"{step.clients}-{parallel}-{step.bottleneck}"


def print_steps(out: Console, steps: Sequence[Step]) -> None:
    """Print the schedule, one step per row."""
    from mup.cli.output.display import say
    from mup.cli.output.figures import interval
    from mup.cli.output.tables import print_table

    services = list(steps[0].pools)
    tasks = list(steps[0].seen.utilization)
    processors = list(steps[0].seen.processors)
    rows = [
        [
            f"{step.clients}",
            f"{step.bottleneck} {100 * step.seen.utilization[step.bottleneck].mean:.0f} %"
            + (", a new one" if step.shifted else ""),
            " ".join(_threads(step, name) for name in services),
            *(_percent(step.seen.utilization[name], bold=name == step.bottleneck) for name in tasks),
            *(_percent(step.seen.processors[name], bold=False) for name in processors),
            interval(step.seen.cycle_time),
            interval(step.seen.response_time, 1e3),
            interval(step.seen.throughput),
            step.action,
        ]
        for step in steps
    ]
    shares = [f"{name} %" for name in (*tasks, *processors)]
    headings = [
        "clients",
        "bottleneck",
        "threads",
        *shares,
        "cycle s",
        "response ms",
        "throughput 1/s",
        "then",
    ]
    print_table(out, "", headings, rows, texts=3, words=("then",), spare=(*shares, "cycle s", "threads"))
    warmups = [step.seen.warmup for step in steps]
    say(
        out,
        f"Each step: what load runs of {steps[0].seen.seconds:g} s show after a warm-up of"
        f" {min(warmups):.3g} to {max(warmups):.3g} s in which clients come; +- is the half-width of the 95 %"
        " interval of their mean.",
    )
    say(
        out,
        "threads: per replica of "
        + ", ".join(services)
        + ", 'x' replicas; cycle: with think time, response: without; %: utilization, * of the bottleneck.",
    )
    rough = [step for step in steps if step.seen.reached > step.seen.precision]
    if rough:
        which = ", ".join(str(step.number) for step in rough)
        worst = max(step.seen.reached for step in rough)
        say(out, f"warning: simulated less precisely than asked for (up to {worst:.1%}): steps {which}")


def _threads(step: Step, name: str) -> str:
    pool, replicas = step.pools[name], step.replicas[name]
    return f"{pool}" if replicas == 1 else f"{pool}x{replicas}"


def _percent(figure: Figure, *, bold: bool) -> str:
    return f"{100 * figure.mean:.1f}{'*' if bold else ''}"


def _fullest(step: Step) -> float:
    """Return the utilization of what is used most: the bottleneck, or a processor, which ends the study."""
    processors = [figure.mean for figure in step.seen.processors.values()]
    return max([step.seen.utilization[step.bottleneck].mean, *processors])


def _draw(path: str, title: str, steps: Sequence[Step]) -> None:

    from mup.cli.output.step_chart import StepPanel, draw_steps
    from mup.whole_file import write_whole

    text = draw_steps(
        f"{title}: steps of an autoscaler",
        "clients - threads of the bottleneck - bottleneck (grey: a new one)",
        [label(step) for step in steps],
        [step.shifted for step in steps],
        [
            StepPanel(
                "utilization of the fullest",
                {"predicted": [_fullest(step) for step in steps]},
            ),
            StepPanel("cycle, s", {"predicted": [step.seen.cycle_time.mean for step in steps]}),
            StepPanel("response, s", {"predicted": [step.seen.response_time.mean for step in steps]}),
        ],
    )
    write_whole(path, text, what="the picture")
