"""Elements and attributes of lqnx, and the reading of their values.

Whatever is not listed here is a mistake in the file (or a newer lqnx) and is reported: a misspelt
``host-demand-mean`` must not silently become 0.
"""

from __future__ import annotations

import math

from mup.errors import ModelError, did_you_mean
from mup.lqn.lqnx.elements import Element

__all__ = ["OUTPUT_REQUESTS", "Report", "join_problems"]

_ACTIVITY = (
    "name host-demand-mean host-demand-cvsq think-time max-service-time call-order bound-to-entry phase"
)
_CALLS = "synch-call asynch-call"
_PRES, _POSTS = "pre pre-OR pre-AND", "post post-OR post-AND post-LOOP"

_VOCABULARY = {
    "lqn-model": (
        "name description lqn-schema-version lqncore-schema-version xml-filename xml-debug",
        "solver-params run-control plot-control processor lqx parameters results-collection",
    ),
    "processor": ("name multiplicity speed-factor scheduling replication quantum", "task group"),
    "group": ("name share cap", "task"),
    "task": (
        "name multiplicity replication scheduling think-time priority queue-length activity-graph initially",
        "fan-in fan-out entry task-activities",
    ),
    "fan-in": ("source value", ""),
    "fan-out": ("dest value", ""),
    "entry": (
        "name type priority open-arrival-rate semaphore rwlock",
        "forwarding entry-phase-activities",
    ),
    "forwarding": ("dest prob", ""),
    "entry-phase-activities": ("", "activity"),
    "task-activities": ("", "activity precedence reply-entry"),
    "activity": (_ACTIVITY, _CALLS),
    "synch-call": ("dest calls-mean fanin fanout", ""),
    "asynch-call": ("dest calls-mean fanin fanout", ""),
    "precedence": ("", f"{_PRES} {_POSTS}"),
    **dict.fromkeys((*_PRES.split(), "post", "post-AND"), ("", "activity")),
    "pre-AND": ("quorum", "activity"),
    "post-OR": ("", "activity"),
    "post-LOOP": ("end", "activity"),
    "reply-entry": ("name", "reply-activity"),
    "reply-activity": ("name", ""),
}

_COMMENTED = frozenset(("processor", "group", "task", "entry", "forwarding", "activity", *_CALLS.split()))
"""Elements that may say something to people in ``comment``."""

_WITH_NUMBERS = (
    "multiplicity speed-factor replication quantum share think-time priority queue-length initially value",
    "open-arrival-rate prob host-demand-mean host-demand-cvsq max-service-time calls-mean fanin fanout",
    "count quorum",
)
NUMBERS = frozenset(" ".join(_WITH_NUMBERS).split())
"""Attributes that hold numbers: only there is ``$x`` a variable."""

_SKIPPED = ("solver-params", "run-control", "plot-control", "parameters", "results-collection")
"""Elements that do not describe the network; ``parameters`` were put in before."""

MAX_NUMBER = 10**9
"""Of anything that is counted; more is a mistake in the file."""

OUTPUT_REQUESTS = ("service-time-distribution", "queue-length-distribution")
"""They ask a solver to print more; results of a solver begin with ``result-``. Neither is the model."""


def join_problems(problems: list[ModelError], where: str) -> ModelError:
    """Return one error that lists them all."""
    if len(problems) == 1:
        only = problems[0]
        place = f"{where}: {only.where}" if only.where else where
        return ModelError(only.message, where=place, hint=only.hint)
    listing = "\n".join(f"  {p}" for p in problems)
    return ModelError(f"{len(problems)} problems\n{listing}", where=where)


class Report:
    """Collects every problem of a file instead of stopping at the first, and what was left out.

    Attributes:
        problems: What makes the file unusable.
        notes: What the file says and the model cannot hold, or holds in another form; the keys, in order.
    """

    def __init__(self) -> None:
        self.problems: list[ModelError] = []
        self.notes: dict[str, None] = {}

    def problem(self, message: str, where: str, hint: str = "") -> None:
        """Add a problem."""
        self.problems.append(ModelError(message, where=where, hint=hint))

    def note(self, text: str) -> None:
        """Add a note, once."""
        self.notes[text] = None

    def vocabulary(self, root: Element) -> None:
        """Report elements and attributes that lqnx does not have, and variables that have no value."""
        for program in root.all("lqx"):
            what = "the file is a program that computes models, not a model"
            remedy = "let the program's tool write one of the models"
            self.problem(what, f"line {program.line}: lqx", remedy)
            return  # its variables are part of the program
        stack = [(root, "")]
        while stack:
            element, parent = stack.pop()
            where = f"line {element.line}: {element.tag}"
            attributes, children = (words.split() for words in _VOCABULARY.get(element.tag, ("", "")))
            if element.tag == "activity" and parent not in ("entry-phase-activities", "task-activities"):
                attributes, children = ["name", "prob", "count"], []
            if element.tag in _COMMENTED:
                attributes = [*attributes, "comment"]
            for name, value in element.attributes.items():
                if name not in attributes:
                    self.problem(f"unknown attribute {name!r}; {did_you_mean(name, attributes)}", where)
                elif name in NUMBERS and value.lstrip().startswith("$"):
                    self.problem(
                        f"{value!r} is a variable without a value",
                        f"{where}.{name}",
                        hint=f"put the number in, or assign it: <parameters>{value.strip()} = 1</parameters>",
                    )
            for child in element.children:
                if child.tag in OUTPUT_REQUESTS or child.tag.startswith("result-"):
                    continue
                if child.tag == "convergence-collection":
                    self.problem(
                        "the file is solved again until its variables converge; it is many models, not one",
                        f"line {child.line}: {child.tag}",
                    )
                elif child.tag not in children:
                    self.problem(
                        f"unknown element <{child.tag}>; {did_you_mean(child.tag, children)}",
                        f"line {child.line}: in {element.tag}",
                    )
                elif child.tag not in _SKIPPED:
                    stack.append((child, element.tag))

    def name(self, element: Element, where: str, attribute: str = "name") -> str:
        """Return a name; a missing one is a problem."""
        value = element.attributes.get(attribute, "")
        if not value:
            self.problem(f"attribute {attribute!r} is missing", where)
        return value

    def number(self, element: Element, attribute: str, where: str, default: float) -> float:
        """Return a finite number >= 0."""
        text = element.attributes.get(attribute)
        if text is None:
            return default
        value = _float(text)
        if not 0 <= value < math.inf:
            self.problem(f"must be a number >= 0, got {text!r}", f"{where}.{attribute}")
            return default
        return value

    def whole(
        self, element: Element, attribute: str, where: str, default: float, *, low: int = 1, inf: bool = False
    ) -> float:
        """Return a whole number, or ``math.inf`` where that is allowed."""
        text = element.attributes.get(attribute)
        if text is None:
            return default
        value = _float(text)
        if inf and text.strip().lower() in ("inf", "infinity", "@infinity"):
            return math.inf
        if not low <= value <= MAX_NUMBER or value != math.floor(value):
            wanted = f"a whole number from {low} to {MAX_NUMBER}{' or inf' if inf else ''}"
            self.problem(f"must be {wanted}, got {text!r}", f"{where}.{attribute}")
            return default
        return int(value)

    def integer(self, element: Element, attribute: str, where: str) -> int:
        """Return a whole number of any sign, 0 if it is not there."""
        text = element.attributes.get(attribute, "0")
        value = _float(text)
        if not abs(value) <= MAX_NUMBER or value != math.floor(value):
            self.problem(f"must be a whole number, got {text!r}", f"{where}.{attribute}")
            return 0
        return int(value)


def _float(text: str) -> float:
    """Return the number, or nan for what is none (also for ``1_000``, a number only in Python)."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
