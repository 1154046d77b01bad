"""Meaning of each option of ``mup``: one word, one meaning, over all commands.

A command takes its options from here with `option`: the table says what a word means, how its value is
written and what help it has; a command may only say it more precisely for itself. Names of the past stay
accepted (``old``), and no help shows them: the reference of the command line lists them in one table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

__all__ = ["WORDS", "Word", "WordOption", "examples", "old_option", "option", "word_of"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(frozen=True)
class Word:
    """One name of an option.

    Attributes:
        meaning: What it means in every command; a whole phrase, and the help where a command adds nothing.
        values: The ways its value is written; empty = a flag. The first one is the usual one.
        attrs: What ``click.option`` is told in every command.
        bare: Whether some commands, which have only one thing to say, take it as a flag.
    """

    meaning: str
    values: tuple[str, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    bare: bool = False


SECONDS, COUNT, SHARE, FILE, FOLDER, SVG = "SECONDS", "N", "FRACTION", "FILE", "FOLDER", "FILE.svg"
REPEATABLE: dict[str, Any] = {"multiple": True}
NUMBER: dict[str, Any] = {"type": float}
WHOLE: dict[str, Any] = {"type": int}
PATH: dict[str, Any] = {"type": click.Path()}

WORDS: dict[str, Word] = {
    # What every command has.
    "--json": Word("Print one JSON document on standard output and nothing else there."),
    "--explain": Word(
        "Explain what a finding or result means and what to change.",
        ("CODE",),
        bare=True,
    ),
    "--format": Word(
        "Form of the findings for another program, on standard output in place of anything else: workflow"
        " commands that GitHub shows beside lines, or a SARIF log for code scanning.",
        ("github|sarif",),
        {"type": click.Choice(("github", "sarif"))},
    ),
    "--output": Word(
        "File to write; '-' is standard output.",
        (FILE, FOLDER, "MODEL.json", SVG, "TRACES.npz"),
        PATH,
    ),
    "--yes": Word("Do not ask for confirmation."),
    "--serve": Word("Serve the pages to a browser on this machine, with pictures and a search."),
    "--search": Word("List the sections that have all of these words.", ("WORDS",)),
    "--seed": Word(
        "Random seed; the same seed gives the same random numbers.", (COUNT,), {"type": int, "default": 0}
    ),
    # How sure and how long.
    "--precision": Word(
        "Relative 95 % half-width to reach, e.g. 0.01 for 1 %.",
        (SHARE,),
        NUMBER,
    ),
    "--measured-precision": Word(
        "Relative half-width the 95 % interval of the measured mean response time reaches, where "
        "--precision is that of the prediction.",
        (SHARE,),
        NUMBER,
    ),
    "--full-width": Word("Read --precision as the full width of the interval."),
    "--for": Word(
        "Explore for this prediction: changes as those of 'mup whatif', KIND=VALUE or KIND:NAME=VALUE, "
        "separated by spaces; repeatable.",
        ("'CHANGE ..'",),
        REPEATABLE,
    ),
    "--width": Word(
        "Relative 95 % half-width the predicted figures are to be known to, as a fraction or percentage.",
        ("5%|0.05",),
    ),
    "--tolerance": Word("Largest accepted error of a mean response time.", (SHARE,), NUMBER),
    "--duration": Word(
        "Length in seconds of the real run that is measured or predicted.", (SECONDS,), NUMBER
    ),
    "--max-seconds": Word(
        "Budget in seconds of load, or of computation; what is known then is printed.", (SECONDS,), NUMBER
    ),
    "--measure": Word("Also start and measure what the source alone does not tell."),
    "--budget": Word(
        "Seconds of wall time that measuring may take, starts of services included. From 60 on three turns "
        "are made, also where a busy machine needs longer.",
        (SECONDS,),
        {"type": float, "default": 180.0},
    ),
    "--fail-if": Word(
        "Exit with 1 if the whole 95 % interval of a change is beyond this, or FIGURE<-PERCENT%; FIGURE is "
        "mean, p50, p90, p95, p99, throughput or capacity, NAME an endpoint; repeatable.",
        ("'[NAME:]FIGURE>+PERCENT%'",),
        REPEATABLE,
    ),
    "--round-seconds": Word("Length of one round (one batch) in seconds.", (SECONDS,), NUMBER),
    "--warmup": Word("Seconds of load before what is measured.", (SECONDS,), NUMBER),
    "--horizon": Word("Simulated time after which to stop.", (SECONDS,), NUMBER),
    "--dt": Word("Seconds between two samples.", (SECONDS,), NUMBER),
    "--repeats": Word("Number of runs taken together, each with fresh services.", (COUNT,), WHOLE),
    "--void-retries": Word("How often a void run is made again.", (COUNT,), WHOLE),
    "--jobs": Word(
        "Simulations that run at the same time.", (COUNT,), {"type": int, "show_default": "one per core"}
    ),
    # Load.
    "--clients": Word("Number of concurrent clients.", (COUNT, "N[,N..]")),
    "--max-clients": Word("Number of clients at the end.", (COUNT,), WHOLE),
    "--arrivals": Word("Rate of arrivals (cycles begun) per second.", ("R", "R[,R..]")),
    "--arrival-process": Word(
        "Distances of arrivals: independent of each other, or equal.", ("poisson|constant",)
    ),
    "--arrival-times": Word(
        "Recorded times of arrivals in seconds, one per line.", (FILE, "FILE|FOLDER"), PATH
    ),
    "--ramp": Word("Change the load linearly over the measured window.", ("FROM:TO",)),
    "--burst": Word("Add rounds with several clients at the end.", (COUNT,), WHOLE),
    "--think": Word("Mean think time between cycles in seconds.", ("S[,S..]", "SECONDS|@FILE")),
    "--think-distribution": Word("Distribution of the think times.", ("constant|exponential",)),
    "--think-scale": Word("Factor on the client's think times.", ("FACTOR",), NUMBER),
    "--http": Word(
        "Request this URL instead of driving a project, as --http-method, --body, --header, --think and "
        "--think-distribution say; repeatable.",
        ("URL",),
        REPEATABLE,
    ),
    "--http-method": Word("HTTP method: GET, POST, ...", ("NAME",)),
    "--body": Word("Body of every request, or @FILE that holds it.", ("TEXT|@FILE",)),
    "--header": Word("Header line of every request; repeatable.", ("NAME:VALUE",), REPEATABLE),
    "--target": Word(
        "Host that may be loaded although it is not this machine; repeatable.", ("HOST",), REPEATABLE
    ),
    "--start-rate": Word("Requests per second of the first step.", ("R",), NUMBER),
    "--max-rate": Word("Largest number of requests per second.", ("R",), NUMBER),
    "--max-response": Word("Largest 95th percentile of response times to load beyond.", (SECONDS,), NUMBER),
    "--max-failures": Word("Number of failed requests that is still accepted.", (COUNT,), WHOLE),
    "--pid": Word("Process whose processor time is watched, with its children.", ("PID",), WHOLE),
    "--metrics": Word("Prometheus endpoint that tells the target's processor time.", ("URL",)),
    "--metric": Word("Name of the counter of processor seconds in --metrics.", ("NAME",)),
    "--dry-run": Word("Say what would be done, and do nothing."),
    # Deployment.
    "--pool": Word(
        "Pool size: workers (threads) per replica; repeatable.",
        ("SERVICE=N", "TASK=N[,N..]", COUNT),
    ),
    "--replicas": Word("Number of replicas; repeatable.", ("SERVICE=N", "TASK=N[,N..]"), REPEATABLE),
    "--admission": Word(
        "Which waiting request is served next; repeatable.", ("SERVICE=ORDER", "TASK=ORDER[,..]"), REPEATABLE
    ),
    "--cores": Word("Number of cores.", (COUNT, "PROCESSOR=N[,N..]")),
    "--speed": Word(
        "Speed of every core, where 1 is the speed measured; repeatable.", ("PROCESSOR=F[,F..]",), REPEATABLE
    ),
    "--machine-speed": Word(
        "Predict for another speed of the explored machine, relative to the exploration: 'now' probes it for "
        "three seconds, LOW..HIGH is a range that the intervals cover.",
        ("now|F|LOW..HIGH",),
    ),
    "--place": Word(
        "Processor a task runs on ('none': as many cores as it can use); repeatable.",
        ("TASK=PROCESSOR[,..]",),
        REPEATABLE,
    ),
    "--probability": Word(
        "Probability of the branch that begins with an activity, the others keep their ratios; repeatable.",
        ("TASK/entry:ACTIVITY=P[,P..]",),
        REPEATABLE,
    ),
    "--calls": Word(
        "Mean number of calls at one call site; repeatable.",
        ("TASK/entry:ACTIVITY->TARGET=N[,N..]",),
        REPEATABLE,
    ),
    "--fan-out": Word(
        "Width of the fan-out that begins with an activity: a mean, constant(N), geometric(M) or"
        " empirical(N,N,..); repeatable.",
        ("TASK/entry:ACTIVITY=WIDTH[,..]",),
        REPEATABLE,
    ),
    "--demand": Word(
        "Processor time of an endpoint, a query or one activity: a factor (0.5x) or seconds; repeatable.",
        ("TASK/entry[:ACTIVITY]=Fx|S[,..]",),
        REPEATABLE,
    ),
    "--vary": Word(
        "Values that the deployment may have, LOW..HIGH or N,N; KIND is pool, replicas or cores; NAME may be "
        "* for all; repeatable.",
        ("KIND:NAME=VALUES",),
        REPEATABLE,
    ),
    "--cost": Word("Prices of cores, replicas and threads.", ("FILE.toml",), PATH),
    "--slo": Word(
        "Objective to meet, or throughput>=LIMIT; FIGURE is mean, p50, p90, p95, p99 or utilization, NAME an "
        "endpoint, a kind of clients, a task or a processor; repeatable.",
        ("'[NAME:]FIGURE<=LIMIT'",),
        REPEATABLE,
    ),
    "--max-load": Word("Find the largest load that meets the objectives, for the deployment as it is."),
    "--front": Word(
        "Also find the cheapest deployments for tighter and looser limits.", (), {"default": True}
    ),
    "--service": Word("Take only this service.", ("NAME",)),
    "--client": Word("Client class that becomes the reference task.", ("CLASS",)),
    "--registry": Word("URL of the registry to use instead of the project's.", ("URL",), {"default": ""}),
    "--attach": Word("Registry of a running system to drive; nothing is started.", ("URL",)),
    "--external": Word("Other service the client calls, and its URL; repeatable.", ("NAME=URL",), REPEATABLE),
    "--host": Word("Address to listen on.", ("ADDRESS",)),
    "--advertise": Word(
        "Address others reach this machine at, if not --host.", ("ADDRESS",), {"default": ""}
    ),
    "--first-replica": Word("Number of the first replica on this machine.", (COUNT,)),
    "--tls-cert": Word("Certificate to serve with (PEM).", (FILE,), {"default": ""}),
    "--tls-key": Word("Private key of the certificate (PEM).", (FILE,), {"default": ""}),
    "--tls-ca": Word("Certificates that callers trust (PEM).", (FILE,), {"default": ""}),
    "--tls-client-ca": Word(
        "Serve only callers with a certificate signed by one of these (PEM).", (FILE,), {"default": ""}
    ),
    "--log": Word("Folder to write event logs to.", (FOLDER,), {"type": click.Path(file_okay=False)}),
    "--production": Word("Tell clients nothing of errors but the status and the request's id."),
    "--watch": Word("Do it again whenever a file changes, until Ctrl-C."),
    "--reload": Word("Replace services when their source changes."),
    "--debug": Word("Run one worker of one service in the foreground, for breakpoint()."),
    "--debug-port": Word(
        "Do as --debug, with debugpy listening on this loopback port for an editor.", ("PORT",)
    ),
    # Runs, models and machines.
    "--run": Word(
        "Run directory of 'mup explore' to read; repeatable.", ("RUN",), {"type": click.Path(), **REPEATABLE}
    ),
    "--resume": Word("Continue this run directory instead of a new one.", ("RUN",), PATH),
    "--changed": Word("Measure only what has changed since the latest run."),
    "--prune": Word("Delete runs that are not needed any more."),
    "--keep": Word("Number of newest runs that stay.", (COUNT,), WHOLE),
    "--older-than": Word("Take only runs that are older.", ("DAYS",), NUMBER),
    "--include-used": Word("Also take runs a model was made from."),
    "--model": Word("Calibrated model to use.", (FILE,), PATH),
    "--around": Word(
        "Draw only this task, those that call it and those it calls, with the entries that take part.",
        ("TASK",),
    ),
    "--static": Word("Take only what the source says, without any measurement."),
    "--partial": Word("Leave endpoints that changed since the run uncalibrated."),
    "--with": Word("Put a station into the model; repeatable.", ("PLACE=FILE",), REPEATABLE),
    "--approximate": Word("Write what the format cannot express as the nearest thing it can, and list it."),
    "--host-profile": Word("Profile of a machine, written by 'mup host'.", (FILE,), PATH),
    "--profile-host": Word(
        "If this machine has no profile yet, measure it first, as 'mup host' does (45 s, once).",
        (),
        {"default": True},
    ),
    "--accept-disturbed": Word(
        "Keep what was measured while others used the machine, and mark it as disturbed."
    ),
    "--prediction": Word("File predictions are written to before anything runs.", (FILE,), PATH),
    # What is printed and drawn.
    "--markdown": Word("Print Markdown, as for a comment on a pull request."),
    "--annotations": Word("Also print the workflow commands that GitHub shows beside lines of the source."),
    "--sarif": Word("Also write differences and findings as SARIF to this file.", ("FILE.sarif",), PATH),
    "--jsonl": Word("Print every record as one line of JSON."),
    "--otlp": Word("Print spans as OTLP/JSON, one document per line."),
    "--all": Word("Print long tables whole."),
    "--details": Word("Print all figures instead of those that matter most."),
    "--activities": Word("Also print figures of every activity."),
    "--plot": Word("Also draw a chart into this file.", (SVG,), PATH),
    "--csv": Word("Also write one line per scenario to this file.", ("FILE.csv",), PATH),
    "--report": Word("Write an HTML report to this file.", ("FILE.html",), PATH),
    # How something is computed.
    "--engine": Word(
        "What computes the figures.", ("compiled|reference|analytic|fluid", "compiled|analytic|fluid")
    ),
    "--saturation": Word("Also find what saturates first, and at what load.", (), {"default": True}),
    "--dask": Word(
        "Simulate on the workers of the Dask cluster whose scheduler has this address.", ("tcp://HOST:PORT",)
    ),
    "--difference": Word(
        "Also estimate every change against the baseline with an interval of its own, by paired runs.",
        (),
        {"default": True},
    ),
    "--interval": Word(
        "Also say between which figures a real run would land (95 %), and what would narrow that.",
        (),
        {"default": True},
    ),
    "--speed-correction": Word(
        "Also predict for the speed the machine had while it was measured, and judge that.",
        (),
        {"default": True},
    ),
    "--correction": Word("Correct the bias of an approximate solution by simulation.", (), {"default": True}),
    "--vertical": Word(
        "Give a bottleneck more threads per replica, or more replicas.", (), {"default": True}
    ),
    "--threshold": Word(
        "Utilization from which on a service or processor is a bottleneck.", (SHARE,), NUMBER
    ),
    # Learning.
    "--method": Word("Method the numbers are estimated with.", ("NAME", "second-order|worst-moment|adam")),
    "--log-format": Word(
        "Format of the lines of an access log, in the words of nginx (log_format), Apache (LogFormat) or "
        "Envoy; or demand, envoy, haproxy, alb, json.",
        ("FORMAT",),
        {"default": "", "show_default": "recognised by the first lines"},
    ),
    "--field": Word(
        "Variable, field or column that tells start, end, duration, class, station, trace or client, and its "
        "unit (s, ms, us, ns); repeatable.",
        ("ROLE=NAME[:UNIT]",),
        REPEATABLE,
    ),
    "--group": Word("Put classes whose name fits together; repeatable.", ("NAME=REGEX",), REPEATABLE),
    "--prometheus": Word(
        "Prometheus server (in front of /api/v1) whose measurements are written into DATA first.",
        ("URL",),
    ),
    "--query": Word(
        "With --prometheus: expression in PromQL that tells a column of DATA; repeatable.",
        ("COLUMN=PROMQL",),
        REPEATABLE,
    ),
    "--start": Word(
        "With --prometheus: first moment, as a date, seconds since 1970, or how long ago.", ("DATE|AGO",)
    ),
    "--end": Word("With --prometheus: last moment, written like --start.", ("DATE|AGO",)),
    "--step": Word("With --prometheus: time from one moment to the next.", (SECONDS,), NUMBER),
    "--resamples": Word("Number of bootstrap samples behind the intervals.", (COUNT,), WHOLE),
    "--name": Word("Name of the task in the model written.", ("TASK",)),
    "--period": Word("Follow the demands over time, in periods of so many seconds.", (SECONDS,), NUMBER),
    "--track": Word("Follow the parameters over time; the rows of DATA are periods in the order of time."),
    "--drift": Word(
        "Relative change per period (standard deviation); 'auto' estimates it.", (SHARE, "auto|FRACTION")
    ),
    "--learning-periods": Word(
        "Periods that errors of measurements are learned from; no alarm comes from them.", (COUNT,), WHOLE
    ),
    "--estimate": Word("Parameters to fit; repeatable.", ("PATH[=START][,..]",), REPEATABLE),
    "--bounds": Word("Values a parameter may have; repeatable.", ("PATH=LOW..HIGH",), REPEATABLE),
    "--expert": Word(
        "Interval an expert expects a parameter in (95 %), weighed like a measurement; repeatable.",
        ("PATH=LOW..LIKELY..HIGH",),
        REPEATABLE,
    ),
    "--predict": Word("Also predict another configuration; repeatable.", ("PATH=VALUE[,..]",), REPEATABLE),
    "--candidate": Word(
        "Rank this further trial by how much it would tell; repeatable.", ("PATH=VALUE[,..]",), REPEATABLE
    ),
    "--simplify": Word("Also fit a smaller model in which this task is a pure delay.", ("TASK",)),
    "--versus": Word("Also fit another structure, and compare the two.", ("MODEL2",), PATH),
    "--versus-estimate": Word("Parameters of the other structure.", ("PATH[=START][,..]",), REPEATABLE),
    "--level": Word("Confidence level of all intervals.", (SHARE,), NUMBER),
    "--interval-method": Word("Method intervals are found with.", ("auto|linear|profile|bootstrap",)),
    "--servers": Word("Clients a station serves at once; 'inf' is a pure delay.", ("N,N,..", "STATION=N")),
    "--without": Word("No client goes from one station to the other; repeatable.", ("FROM->TO",), REPEATABLE),
    "--busy-time": Word(
        "Source of the time servers were really busy: the file, simulation, or none.",
        ("auto|busy|simulation|none",),
    ),
    "--starts": Word("Number of fits, of which the best is kept.", (COUNT,)),
    "--reference": Word("Station where a cycle of the model begins.", ("STATION",)),
    "--columns": Word("List the columns that traces of MODEL can have, and stop."),
    "--entries": Word("Make columns of endpoints (A/path/) instead of services."),
    "--rest": Word("Station where clients are that no log has; it needs their number.", ("STATION",)),
    "--leave-out": Word(
        "Count no visits to this station, which only passes requests on; repeatable.",
        ("STATION",),
        REPEATABLE,
    ),
}
"""Every option of every command by its name, except ``--help`` and ``--version``."""

SHORT = {"--output": "-o", "--yes": "-y"}


class WordOption(click.Option):
    """An option of the vocabulary that also answers to names of the past.

    Attributes:
        old: Earlier names that are accepted and not shown; those with ``no-`` switch a flag off.
        now: What took the place of the whole option; "" if it is one of today.
    """

    def __init__(
        self, declarations: Sequence[str], *, old: Sequence[str] = (), now: str = "", **attrs: Any
    ) -> None:
        super().__init__(declarations, **attrs)
        self.old = tuple(old)
        self.now = now

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what stands in brackets; a default in words is shown as it is, without parentheses."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make the parser know the earlier names as well, which messages and help do not show."""
        shown = self.opts, self.secondary_opts
        off = [name for name in self.old if self.secondary_opts and name.startswith("--no-")]
        self.opts = [*self.opts, *(name for name in self.old if name not in off)]
        self.secondary_opts = [*self.secondary_opts, *off]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts, self.secondary_opts = shown


def option(
    name: str,
    dest: str | None = None,
    *,
    old: Sequence[str] = (),
    help: str = "",  # noqa: A002 - as click calls it
    **attrs: Any,
) -> Callable[[Decorated], Decorated]:
    """Return a decorator that gives a command an option of the vocabulary.

    Args:
        name: A key of `WORDS`; ``--x/--no-x`` for a flag that can be switched off.
        dest: Parameter of the command's function, if it is not the name.
        old: Earlier names to accept.
        help: What the option says of itself here; "" = its meaning.
        **attrs: Anything ``click.option`` takes.

    Raises:
        LookupError: The vocabulary does not know the word.
    """
    key = name.partition("/")[0]
    if key not in WORDS:
        raise LookupError(f"{key} has no meaning yet: add it to mup/cli/vocabulary.py")
    word = WORDS[key]
    settings: dict[str, Any] = {**word.attrs, "help": help or word.meaning, **attrs}
    if word.values:
        settings.setdefault("metavar", word.values[0])
        settings.setdefault("show_default", settings.get("default") not in (None, ""))
    elif "/" not in name:
        settings["is_flag"] = True
    else:
        settings.setdefault("show_default", True)
    names = [name] if key not in SHORT else [SHORT[key], name]
    if key == "--json":
        dest = "as_json"
    return click.option(*names, *([dest] if dest else []), cls=WordOption, old=old, **settings)


def old_option(name: str, dest: str, *, now: str) -> Callable[[Decorated], Decorated]:
    """Return a decorator for an option of the past that is accepted and not shown.

    Args:
        name: The option.
        dest: Parameter of the command's function.
        now: What has taken its place.
    """
    return click.option(name, dest, cls=WordOption, now=now, hidden=True)


def examples(*lines: str) -> str:
    """Return the end of a command's help: command lines to copy."""
    # click leaves a paragraph alone that begins with \b.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def word_of(parameter: click.Parameter) -> str:
    """Return the name of an option in the vocabulary: its first long one."""
    return next((name for name in parameter.opts if name.startswith("--")), "")
