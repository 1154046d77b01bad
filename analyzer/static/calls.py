"""Calls, and values that must not be handed to code that is not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.evaluation import merge_results
from analyzer.static.facts import without_facts
from analyzer.static.raising import raises_nothing
from analyzer.static.state import Results, State
from analyzer.static.syntax import applied, last_name
from analyzer.static.values import (
    UNKNOWN,
    ExitStack,
    Future,
    Generator,
    Method,
    Value,
    alternatives,
    of_kind,
)
from analyzer.static.values.escape import HERE, Escape
from analyzer.static.values.objects import MadeObject
from analyzer.static.values.reading import called_name
from analyzer.static.walk import Part

__all__ = ["Calls"]

OPERATIONS = {"call", "query"}
"""Methods of the ``Communication`` object with an address."""

MAX_RECORDS = 20
"""Of more, service and path are combined in every way."""

LOGGING = {"debug", "info", "warning", "error", "exception", "critical", "log"}
"""Methods of unknown objects that do not change what they are given."""

# These reach every variable there is.
SEE_EVERYTHING = {f"builtins.{n}" for n in ("eval", "exec", "locals", "vars")}

_THREAD_STARTERS = {"Thread", "submit", "to_thread", "run_in_executor", "start_new_thread", "apply_async"}

_THREAD_HINT = "calls need no threads: make all calls first, then wait for each; they run meanwhile"


class Calls(Part):
    """Evaluates calls, and watches what leaves the code that is seen."""

    def call(self, node: cst.Call, state: State) -> Results:
        """Return what a call does."""
        results: Results = []
        for called, callee in [
            result
            for before in self._one_record_each(node, state)
            for result in self.walk.expressions.evaluate(node.func, before)
        ]:
            for after, values in self.walk.expressions.evaluate_all([a.value for a in node.args], called):
                if callee.may_change(node, values, after):
                    after = without_facts(after)  # noqa: PLW2901
                for ready, given in self._spread(node, values, after):
                    arguments = self.expanded(Arguments(tuple(node.args), given), ready)
                    if self._may_fail(node, callee, ready):
                        self.walk.may_fail(ready, self.walk.own_exceptions.failure(ready, node))
                    results += callee.call(arguments, node, ready, self.walk)
        return merge_results(results) if len(results) > 1 else results

    def _may_fail(self, node: cst.Call, callee: Value, state: State) -> bool:
        """Return whether a call may raise something before what it calls does anything remote."""
        if not self.walk.tries:
            return False
        match callee:
            case Method(owner=Future() | ExitStack()) if not node.args:
                return False
        return not raises_nothing(node, state.frames[-1], self.walk.module, self.walk.names)

    def _one_record_each(self, node: cst.Call, state: State) -> list[State]:
        """Return one state per record that the arguments of an operation may be about.

        Service and path of one record stay together: ``comm.call(target.service, target.path)``.
        """
        if called_name(node) not in OPERATIONS:
            return [state]
        names: Counter[str] = Counter()
        for argument in node.args:
            match argument.value:
                case cst.Attribute(value=cst.Name(value=name)) | cst.Subscript(value=cst.Name(value=name)):
                    names[name] += 1
        states = [state]
        for name, count in names.items():
            records = alternatives(state.frames[-1][name]) if name in state.frames[-1] else ()
            if count > 1 and 1 < len(records) <= MAX_RECORDS:
                states = [one.bind(name, record) for one in states for record in records]
        return states

    def _spread(
        self, node: cst.Call, values: tuple[Value, ...], state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Return arguments after ``*`` has taken the items of generators, or one of several records."""
        starred = [v for a, v in zip(node.args, values, strict=True) if a.star]
        mappings = [v for a, v in zip(node.args, values, strict=True) if a.star == "**"]
        self.walk.overloading.unfollowed_mappings(mappings, node, state)
        several = any(1 < len(alternatives(v)) <= MAX_RECORDS for v in starred)
        if not several and not of_kind(starred, Generator, MadeObject):
            return [(state, values)]
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for argument, value in zip(node.args, values, strict=True):
            results = [
                (after, (*known, *more))
                for before, known in results
                for one in (alternatives(value) if argument.star else (value,))
                for after, more in (
                    self.walk.generators.listed([one], node, before)
                    if argument.star == "*"
                    else [(before, (one,))]
                )
            ]
        return results

    def expanded(self, arguments: Arguments, state: State) -> Arguments:
        """Return arguments with ``*`` and ``**`` replaced by what they stand for, where that is known."""
        if arguments.plain:
            return arguments
        nodes: list[cst.Arg] = []
        values: list[Value] = []
        for argument, value in arguments.pairs:
            more: Arguments | None = None
            if argument.star == "*":
                items = self.walk.expressions.items(value, state)
                more = None if items is None else Arguments.of(*items)
            elif argument.star == "**":
                pairs = value.pairs(state.heap) if value.is_mapping else None
                named = [(key.text, one) for key, one in pairs or () if key.text is not None]
                if pairs is not None and len(named) == len(pairs):
                    more = Arguments((), ()).behind((), named)
            nodes += [argument] if more is None else more.nodes
            values += [value] if more is None else more.values
        return replace(arguments, nodes=tuple(nodes), values=tuple(values))

    def call_unknown(self, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling something does of which nothing is known."""
        if type(node) is cst.Call and last_name(node.func) in self.walk.attaching.fillers:
            self.walk.attaching.copied = (
                True  # it may be what is being filled, under a name that is not known
            )
        if self.walk.keeping.keeps(node, arguments.values, state):
            return [(state, UNKNOWN)]
        self.release(arguments.values, state, node, applied(node))
        if called_name(node) == "result":
            self.walk.waiting.ended(state)
        if called_name(node) == "acquire":
            self.walk.copies.check_limit(node)
        if called_name(node) not in LOGGING:
            state = self.walk.variables.forget_contents(arguments.values, state)
        return [(state, UNKNOWN)]

    def call_of(self, method: Method | None, node: cst.CSTNode, state: State) -> cst.Call | None:
        """Return the call an operation needs in the source; None, and a finding about ``method``, without."""
        if type(node) is cst.Call:
            return node
        if method is not None:
            self.release([method], state, node, "a library")
        return None

    def release(
        self, values: Iterable[Value], state: State, node: cst.CSTNode, to: str | cst.CSTNode
    ) -> None:
        """Report values that leave the code the analyzer can see.

        Args:
            values: What leaves it.
            state: Where that happens.
            node: The code that hands them over.
            to: What takes them: in words, or as code.
        """
        for value in values:
            found = self._released(value, state, node)
            if found is not None:
                code, what, consequence, hint = found
                place = to if isinstance(to, str) else f"'{self.walk.code(to)}'"
                self.walk.report(code, f"{what} is handed to {place}{consequence}", node, hint)

    def _released(self, value: Value, state: State, node: cst.CSTNode) -> Escape | None:
        """Return why a value must not leave: code, what it is, the consequence and the remedy; or None."""
        escape = value.escape(state, self.walk)
        if value.is_communication():
            escape = ("MUP041", "the Communication object", ", where its use cannot be seen", HERE)
        if escape is not None and escape[3] == HERE and _starts_thread(node):
            return (*escape[:3], _THREAD_HINT)
        return escape

    def communicate(self, values: Iterable[Value], state: State) -> bool:
        """Return whether a function that gets these values can communicate."""
        return any(value.communicates(state, self.walk) for value in values)

    def unknown_future(self, node: cst.CSTNode, state: State) -> Results:
        """Report a wait for a future that is not known; nothing is known of its answer."""
        hint = (
            "keep each future in a variable of its own; wait for a call of a loop without a visible bound in"
            " the same iteration, or loop over range(constant) or a literal sequence"
        )
        what = f"it is not known which future '{self.walk.code(node)}' waits for"
        self.walk.report("MUP040", what, node, hint)
        return [(state, UNKNOWN)]

    def check_reach(self, name: str, given: Sequence[Value], node: cst.CSTNode, state: State) -> None:
        """Report a function that can do anything with what the variables around it hold."""
        if name not in SEE_EVERYTHING or (given and name == "builtins.vars"):
            return
        if any(state.holds_tracked(value) for frame in state.frames for value in frame.values()):
            what = f"{name.removeprefix('builtins.')!r} can see all variables here"
            self.walk.report("MUP041", what, node, "use them by their names")


def _starts_thread(node: cst.CSTNode) -> bool:
    """Return whether a call looks like one that runs something in another thread."""
    return type(node) is cst.Call and last_name(node.func) in _THREAD_STARTERS
