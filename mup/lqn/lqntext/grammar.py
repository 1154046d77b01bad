"""Grammar of LQNS text models, record by record.

The text is read into the elements an lqnx file of the same model has (``mup.lqn.lqntext.building``), and
those become the model (``mup.lqn.lqnx.importer``): what a word means is decided there, once for both formats.

Sections come in this order: variables, ``G`` (general), ``P`` (processors), ``U`` (groups), ``T`` (tasks),
``E`` (entries), ``A`` (the activities of a task, as often as needed), ``R`` and ``C`` (what a solver prints
and repeats). Every list ends with ``-1``.

Source: Franks et al., "Layered Queueing Network Solver and Simulator User Manual", the chapter on the
grammar of the input file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mup.errors import ModelError
from mup.lqn.lqntext.building import PHASES, Draft
from mup.lqn.lqntext.expressions import Variables
from mup.lqn.lqntext.tokens import Token, Tokens
from mup.lqn.lqnx.elements import Element
from mup.lqn.lqnx.importer import model_from_element
from mup.lqn.lqnx.losses import number_text
from mup.lqn.model import Model

__all__ = ["load_lqn_text", "parse_lqn_text"]

_PROCESSORS = {"f": "fcfs", "i": "inf", "r": "rand", "h": "hol", "p": "pri", "c": "cfs", "s": "ps"}
_TASKS = {
    "b": "burst",
    "r": "ref",
    "i": "inf",
    "f": "fcfs",
    "n": "fcfs",
    "h": "hol",
    "P": "poll",
    "p": "pri",
    "W": "rwlock",
    "S": "semaphore",
    "u": "uniform",
}
_LOCKS = {"R": "r-lock", "U": "r-unlock", "W": "w-lock", "X": "w-unlock"}
_SEMAPHORES = {"P": "wait", "V": "signal"}
_TIMES = {"s": "host-demand-mean", "c": "host-demand-cvsq", "Z": "think-time", "M": "max-service-time"}
_CALLS = {"y": "synch-call", "z": "asynch-call"}
_ORDERS = {"0": "STOCHASTIC", "1": "DETERMINISTIC"}


def load_lqn_text(path: str | Path) -> Model:
    """Read an LQNS text model.

    Returns:
        The model; its provenance is that of ``load_lqnx``.

    Raises:
        ModelError: The file cannot be read, is no such text (with the line), breaks rules (all of them are
            listed), or contains what the model cannot express (named).
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the model: {error.strerror}", where=str(path)) from error
    text = data.decode("utf-8-sig", errors="replace")  # names are ASCII, texts are not part of the model
    return model_from_element(parse_lqn_text(text, str(path)), str(path))


def parse_lqn_text(text: str, where: str) -> Element:
    """Return the element ``lqn-model`` that a text stands for.

    Raises:
        ModelError: See :func:`load_lqn_text`.
    """
    return _Parser(Tokens(text, where)).model()


class _Parser:
    """Reads one text."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.variables = Variables()
        self.draft = Draft(tokens)

    def model(self) -> Element:
        tokens = self.tokens
        self.variables.assignments(tokens)
        if tokens.at("G"):
            self.general()
        self.section("P", "the processors", {"p": self.processor, "d": self.communication_delay})
        if tokens.at("U"):
            self.section("U", "the groups of tasks", {"g": self.group})
        self.section("T", "the tasks", {"t": self.task, "I": self.fan, "O": self.fan})
        records = dict.fromkeys("aAcfFHMpPRsUVWXyzZ", self.entry_record)
        self.section("E", "the entries", {**records, "i": self.old_fan, "o": self.old_fan})
        while tokens.skip("A"):
            self.activities()
        if tokens.skip("R"):
            while not tokens.at("-1"):
                if tokens.take().kind == "nothing":
                    tokens.fail("'-1' behind the results")
            tokens.take()
        if tokens.at("C"):
            tokens.error(
                "the file is solved again until its variables converge; it is many models, not one",
                tokens.peek().line,
            )
        if tokens.peek().kind != "nothing":
            tokens.fail("a section 'A', 'R' or 'C', or the end of the file")
        return self.draft.element()

    def general(self) -> None:
        """Skip what is for solvers alone: a comment, their precision, what they are to print."""
        tokens = self.tokens
        tokens.take()
        if tokens.peek().kind != "text":
            tokens.fail("a comment in quotation marks behind 'G'")
        comment = tokens.take()
        if comment.text == '"' or not comment.text.endswith('"'):
            tokens.error("the comment that begins here never ends", comment.line)
        while not tokens.skip("-1"):
            self.number("a number for the solver, or '-1'")
        self.observations()

    def section(self, letter: str, what: str, records: dict[str, Callable[[], None]]) -> None:
        """Read one section: its letter, how many records it has (which may be wrong), and the records."""
        tokens = self.tokens
        tokens.expect(letter, f"before {what}")
        if tokens.peek().kind == "number":
            tokens.take()
        while not tokens.skip("-1"):
            token = tokens.peek()
            if token.kind != "name" or token.text not in records:
                tokens.fail(f"one of {' '.join(records)}, or '-1' behind {what}")
            records[token.text]()

    # Values.

    def number(self, what: str) -> str:
        """Take a number, a variable, or an expression in braces; return its text."""
        tokens = self.tokens
        token = tokens.peek()
        if token.kind == "number":
            return tokens.take().text
        if token.kind == "infinity":
            tokens.take()
            return "inf"
        if token.kind == "variable":
            return number_text(self.variables.value(tokens.take(), tokens))
        if tokens.skip("{"):
            value = self.variables.expression(tokens)
            tokens.expect("}", "behind the expression")
            return number_text(value)
        return tokens.fail(what)

    def per_phase(self, what: str, most: int = PHASES) -> list[str]:
        """Take a number for each phase, up to the end of the list."""
        tokens = self.tokens
        values = [self.number(what)]
        while not tokens.skip("-1"):
            if len(values) == most:
                tokens.fail(f"'-1' behind the {PHASES} phases" if most == PHASES else f"'-1' behind {what}")
            values.append(self.number(f"{what}, or '-1'"))
        return values

    def observations(self) -> None:
        """Skip variables that results are put in: ``%u $x``, or with a confidence level, ``%u 95 $x $y``."""
        tokens = self.tokens
        while tokens.peek().kind == "key":
            tokens.take()
            count = 1
            if tokens.peek().kind == "number":
                tokens.take()
                count = 2
            for _ in range(count):
                if tokens.peek().kind != "variable":
                    tokens.fail("a variable for the result")
                tokens.take()

    # Processors, groups and tasks.

    def processor(self) -> None:
        tokens = self.tokens
        line = tokens.take().line
        element = self.draft.processor(tokens.name("a processor"), line)
        scheduling = self.flag(_PROCESSORS, "the scheduling of a processor")
        element.attributes["scheduling"] = scheduling
        if scheduling in ("ps", "cfs") and not tokens.at("-1") and tokens.peek().kind != "name":
            element.attributes["quantum"] = self.number("a quantum")
        while tokens.at("i", "m", "r", "R"):
            flag = tokens.take().text
            if flag == "i":
                element.attributes["multiplicity"] = "inf"
            else:
                attribute = {"m": "multiplicity", "r": "replication", "R": "speed-factor"}[flag]
                element.attributes[attribute] = self.number(f"a number behind {flag!r}")
        self.observations()

    def communication_delay(self) -> None:
        self.tokens.error("delays between processors are not supported", self.tokens.peek().line)

    def group(self) -> None:
        tokens = self.tokens
        line = tokens.take().line
        name, share = tokens.name("a group"), self.number("the share of a group")
        tokens.skip("c")
        self.draft.group(name, share, tokens.name("the processor of a group"), line)
        self.observations()

    def flag(self, words: dict[str, str], what: str) -> str:
        tokens = self.tokens
        if not tokens.at(*words):
            tokens.fail(f"{what}, one of {' '.join(words)}")
        return words[tokens.take().text]

    def task(self) -> None:
        tokens = self.tokens
        line = tokens.take().line
        name = tokens.name("a task")
        scheduling = self.flag(_TASKS, "the scheduling of a task")
        entries = []
        while not tokens.skip("-1"):
            entries.append(tokens.name(f"an entry of task {name.text!r}, or '-1'"))
        if not entries:
            tokens.error(f"task {name.text!r} has no entry", line)
        processor = tokens.name(f"the processor of task {name.text!r}")
        attributes = {"scheduling": scheduling}
        group: Token | None = None
        letters = {"m": "multiplicity", "q": "queue-length", "r": "replication", "z": "think-time"}
        while tokens.at("T", "g", "i", *letters) or tokens.peek().kind in ("number", "variable"):
            if tokens.peek().kind != "name":
                attributes["priority"] = self.number("a priority")
                continue
            flag = tokens.take().text
            if flag == "g":
                group = tokens.name("a group")
            elif flag == "i":
                attributes["multiplicity"] = "inf"
            elif flag == "T":
                if self.number("the tokens of a semaphore at first") == "0":
                    attributes["initially"] = "0"  # any other number stands for all tokens
            else:
                attributes[letters[flag]] = self.number(f"a number behind {flag!r}")
        self.draft.task(name, attributes, entries, processor, group, line)
        self.observations()

    def fan(self) -> None:
        tokens = self.tokens
        kind = tokens.take()
        source, target = tokens.name("a calling task"), tokens.name("a called task")
        value = self.number("a number of replicas")
        self.draft.fan(kind, source, target, value)

    # Entries.

    def old_fan(self) -> None:
        """Read fans as files before LQNS 5 have them: between entries, for I and O between their tasks."""
        tokens = self.tokens
        kind = tokens.take()
        source, target = tokens.name("a calling entry"), tokens.name("a called entry")
        (value,) = self.per_phase("a number of replicas", 1)
        caller, called = self.draft.owner(source), self.draft.owner(target)
        if caller is not None and called is not None:
            self.draft.fan(kind, caller, called, value)

    def entry_record(self) -> None:
        tokens = self.tokens
        kind = tokens.take()
        letter = kind.text
        name = tokens.name("an entry")
        entry = self.draft.entry(name)
        if letter == "a":
            entry.element.attributes["open-arrival-rate"] = self.number("a rate of arrivals")
        elif letter == "p":
            entry.element.attributes["priority"] = self.number("a priority")
        elif letter == "A":
            self.draft.start(name, tokens.name("the first activity of an entry"))
        elif letter == "f":
            for phase, value in enumerate(self.per_phase("0 or 1"), 1):
                entry.phase(phase, kind.line).attributes["call-order"] = self.order(value, kind)
        elif letter == "F":
            target = tokens.name("the entry that is forwarded to")
            attributes = {"dest": target.text, "prob": self.number("a probability")}
            tokens.expect("-1", "behind the probability of forwarding")
            entry.element.children.append(Element("forwarding", attributes, line=kind.line))
        elif letter == "H":
            number = self.number("a phase")
            if number not in ("1", "2", "3"):
                tokens.error(f"there are phases 1 to {PHASES}, got {number!r}", kind.line)
            entry.phase(int(number), kind.line).children.append(self.histogram(kind))
        elif letter in _LOCKS:
            entry.element.attributes["rwlock"] = _LOCKS[letter]
        elif letter in _SEMAPHORES:
            entry.element.attributes["semaphore"] = _SEMAPHORES[letter]
        elif letter in _TIMES:
            for phase, value in enumerate(self.per_phase("a number"), 1):
                entry.phase(phase, kind.line).attributes[_TIMES[letter]] = value
        else:
            target = tokens.name("the entry that is called")
            for phase, value in enumerate(self.per_phase("a number of calls"), 1):
                attributes = {"dest": target.text, "calls-mean": value}
                call = Element(_CALLS[letter], attributes, line=kind.line)
                entry.phase(phase, kind.line).children.append(call)
        self.observations()

    def order(self, value: str, kind: Token) -> str:
        if value not in _ORDERS:
            self.tokens.error(f"calls are 0 (stochastic) or 1 (deterministic), got {value!r}", kind.line)
        return _ORDERS[value]

    def histogram(self, kind: Token) -> Element:
        """Read the range of a histogram, and how many bins it has if that is said."""
        tokens = self.tokens
        self.number("where the histogram begins")
        tokens.expect(":", "in the range of a histogram")
        self.number("where the histogram ends")
        if tokens.peek().kind == "number":
            tokens.take()
        return Element("service-time-distribution", line=kind.line)

    # Activities.

    def activities(self) -> None:
        tokens = self.tokens
        graph = self.draft.graph(tokens.name("a task"))
        while not tokens.at(":", "-1"):
            kind = tokens.peek()
            if not tokens.at("s", "c", "f", "H", "M", "y", "z", "Z"):
                tokens.fail("one of s c f H M y z Z, ':' before the precedences, or '-1'")
            tokens.take()
            activity = graph.activity(tokens.name("an activity"), kind.line)
            if kind.text == "f":
                activity.attributes["call-order"] = self.order(self.number("0 or 1"), kind)
            elif kind.text == "H":
                activity.children.append(self.histogram(kind))
            elif kind.text in _TIMES:
                activity.attributes[_TIMES[kind.text]] = self.number("a number")
            else:
                target = tokens.name("the entry that is called")
                attributes = {"dest": target.text, "calls-mean": self.number("a number of calls")}
                activity.children.append(Element(_CALLS[kind.text], attributes, line=kind.line))
            self.observations()
        if tokens.skip(":"):
            self.precedence(graph.parts)
            while tokens.skip(";"):
                self.precedence(graph.parts)
        tokens.expect("-1", "behind the activities, or ';' and the next precedence")

    def precedence(self, parts: list[Element]) -> None:
        """Read ``before -> behind``, or the last activities alone, and the replies they send."""
        tokens = self.tokens
        element = Element("precedence", line=tokens.peek().line)
        replies: list[Element] = []
        element.children.append(self.before(replies))
        if tokens.skip("->"):
            element.children.append(self.behind())
        parts.append(element)
        parts.extend(replies)

    def before(self, replies: list[Element]) -> Element:
        tokens = self.tokens
        side = Element("pre", line=tokens.peek().line)
        self.joined(side, replies)
        if tokens.at("&", "+"):
            sign = tokens.peek().text
            side.tag = "pre-AND" if sign == "&" else "pre-OR"
            while tokens.skip(sign):
                self.joined(side, replies)
            if sign == "&" and tokens.skip("("):
                side.attributes["quorum"] = self.number("a quorum")
                tokens.expect(")", "behind the quorum")
        return side

    def joined(self, side: Element, replies: list[Element]) -> None:
        tokens = self.tokens
        name = tokens.name("an activity")
        side.children.append(Element("activity", {"name": name.text}, line=name.line))
        if not tokens.skip("["):
            return
        while True:
            entry = tokens.name("an entry that is replied to")
            reply = Element("reply-activity", {"name": name.text}, line=name.line)
            replies.append(Element("reply-entry", {"name": entry.text}, [reply], entry.line))
            if not tokens.skip(","):
                break
        tokens.expect("]", "behind the entries that are replied to")

    def behind(self) -> Element:
        tokens = self.tokens
        side = Element("post", line=tokens.peek().line)
        if tokens.at("("):
            side.tag = "post-OR"
            self.chosen(side)
            while tokens.skip("+"):
                self.chosen(side)
        elif self.is_repeated():
            side.tag = "post-LOOP"
            self.repeated(side)
            while tokens.skip(","):
                self.repeated(side)
        else:
            self.forked(side)
            if tokens.at("&"):
                side.tag = "post-AND"
            while tokens.skip("&"):
                self.forked(side)
        return side

    def forked(self, side: Element) -> None:
        name = self.tokens.name("an activity")
        side.children.append(Element("activity", {"name": name.text}, line=name.line))

    def chosen(self, side: Element) -> None:
        tokens = self.tokens
        tokens.expect("(", "before the probability of a branch")
        odds = self.number("a probability")
        tokens.expect(")", "behind the probability")
        name = tokens.name("an activity")
        side.children.append(Element("activity", {"name": name.text, "prob": odds}, line=name.line))

    def is_repeated(self) -> bool:
        """Tell whether ``count *`` comes next; a number alone is the name of an activity."""
        token = self.tokens.peek()
        if token.kind == "number":
            following = self.tokens.peek(1)
            return following.kind == "symbol" and following.text == "*"
        return token.kind == "variable" or self.tokens.at("{")

    def repeated(self, side: Element) -> None:
        """Read the body of a loop with its count, or what follows the loop."""
        tokens = self.tokens
        if not self.is_repeated():
            if "end" in side.attributes:
                tokens.fail("a count and '*': a loop has one activity behind it")
            side.attributes["end"] = tokens.name("the activity behind a loop").text
            return
        count = self.number("a count")
        tokens.expect("*", "behind a count")
        name = tokens.name("an activity")
        side.children.append(Element("activity", {"name": name.text, "count": count}, line=name.line))
