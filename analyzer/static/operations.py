"""Which operation does a call of the framework make?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import libcst as cst

from analyzer.static.application import Operation
from analyzer.static.arguments import Arguments
from analyzer.static.state import Results, State
from analyzer.static.think_times import PARAMETERS as THINK_PARAMETERS
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    Const,
    Future,
    ListRef,
    Setting,
    TupleValue,
    Value,
    alternatives,
    join,
)
from analyzer.static.values.containers import RECORDS, Records
from analyzer.static.walk import Part, TooLongError
from mup.databases.command import NOT_KNOWN, RESERVED, check_known
from mup.errors import ModelError, QueryError, UsageError
from mup.lqn.distributions import Constant, Distribution, Empirical, Exponential
from mup.lqn.refs import EndpointRef, QueryRef
from mup.routes import typed
from mup.workload.times_file import read_times

__all__ = ["Operations"]

MAX_OPERATIONS = 3000
"""In one path; more are not readable as a path."""

CALL_PARAMETERS = (("dest_ms",), ("path", "path_or_name", "endpoint"))

METHOD_PARAMETER = (5, ("method",))

QUERY_PARAMETERS = (("db_name",), ("qry_name",))

QUERY_TEXT = (3, ("qry_txt",))

AGAIN = (
    "the first response stands, and this one raises MupError; move what may fail behind the `try`, or before"
)
"""What becomes of a response to what has happened behind another."""

MAX_NESTED = 20
"""Parts of a query's text that lie deeper than this are not looked at."""

RECORDED_TIMES = 500
"""Values that are kept of a file of think times."""


class Operations(Part):
    """Makes operations: calls, queries, waits, responses and think times."""

    def emit(self, state: State, operation: Operation) -> State:
        """Return the state after an operation; note that it may have failed."""
        if self.walk.held:
            operation = replace(operation, holding=self.walk.held)
        after = state.after(operation)
        if len(after.operations) > MAX_OPERATIONS:
            raise TooLongError(f"has a path of more than {MAX_OPERATIONS} operations")
        if operation.op == "get" and operation.of is not None:
            waited = state.operations[operation.of].op
            self.walk.may_fail(after, "get of query" if waited == "query" else "get of call")
        elif operation.op == "query" or (operation.op == "call" and self.walk.role == "endpoint"):
            # In a client, a call that goes wrong shows when it is awaited.
            self.walk.may_fail(after, operation.op)
        return after

    def communication(self, name: str, arguments: Arguments, node: cst.Call, state: State) -> Results:
        """Return what a method of the ``Communication`` object does."""
        if name == "respond" and self.walk.role == "endpoint":
            self.walk.mistakes.responded(arguments, node)
            if self.walk.answering:
                self.walk.report(
                    "MUP023", "what went wrong here behind a response is answered again", node, AGAIN
                )
                self.walk.may_fail(state, "respond")
                return []
            return [(self.emit(state, Operation("respond", self.walk.module.site(node))), NONE)]
        if name == "call":
            return self._request("call", arguments, node, state)
        if name == "query" and self.walk.role == "endpoint":
            return self._request("query", arguments, node, state)
        owner = "an endpoint's" if self.walk.role == "endpoint" else "a client's"
        known = "call, query and respond" if self.walk.role == "endpoint" else "call"
        what = f"{owner} Communication has no operation {name!r}"
        self.walk.report("MUP042", what, node, f"it has {known}")
        return [(state, UNKNOWN)]

    def _request(
        self, kind: Literal["call", "query"], arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        parameters = CALL_PARAMETERS if kind == "call" else QUERY_PARAMETERS
        choices: list[tuple[list[str], cst.CSTNode]] = []
        given = [arguments.get(position, names) for position, names in enumerate(parameters)]
        for names, (one, place) in zip(parameters, given, strict=True):
            options = alternatives(join(v.as_text() for v in alternatives(one))) if one is not None else ()
            if one is not None:
                self._note_settings(one, place or node)
            texts = [option.text for option in options if option.text is not None]
            if one is None or len(texts) < len(options):
                self._unknown_destination(kind, names[0], place or node)
                texts = []
            choices.append((texts, place or node))
        results: Results = []
        method = self._http_method(arguments, node) if kind == "call" else ""
        if kind == "query":
            self._check_query(arguments, node, state)
        (heads, head_node), (tails, tail_node) = choices
        together = _of_one_record(given, state)
        for head in heads or ["?"]:
            for tail in tails or ["?"]:
                if together is not None and (head, tail) not in together:
                    continue
                to: EndpointRef | QueryRef = EndpointRef(head, tail)
                if kind == "query":
                    to = QueryRef(head, tail)
                    if head != "?":
                        self._check_database(head, head_node)
                elif head != "?":
                    to = self._endpoint_target(head, tail, method, head_node, tail_node)
                after = self.emit(state, Operation(kind, self.walk.module.site(node), to.label, to=to))
                results.append((after, Future(len(after.operations) - 1)))
        return results

    def _note_settings(self, value: Value, node: cst.CSTNode) -> None:
        for one in alternatives(value):
            match one:
                case Setting(variable=variable, default=Const(value=default)):
                    what = f"the environment variable {variable!r} is taken to be its default, {default!r}"
                    hint = "a log of a deployment with another value matches no path"
                    self.walk.report("MUP015", what, node, hint)

    def _unknown_destination(self, kind: str, parameter: str, node: cst.CSTNode) -> None:
        hint = 'use constants, or say what it can be: `name: Literal["A", "B"] = ...`'
        self.walk.report("MUP010", f"{parameter} of this {kind} is not known from the source", node, hint)

    def _http_method(self, arguments: Arguments, node: cst.Call) -> str:
        """Return the HTTP method a call asks for; "" if it does not say, or the source does not tell."""
        value, place = arguments.get(*METHOD_PARAMETER)
        if value is None or not arguments.plain:
            return ""
        if value.text is not None:
            return value.text
        self._unknown_destination("call", "method", place or node)
        return ""

    def _endpoint_target(
        self,
        service: str,
        endpoint: str,
        method: str,
        service_node: cst.CSTNode,
        endpoint_node: cst.CSTNode,
    ) -> EndpointRef:
        if not self.walk.catalogue.has_service(service):
            hint = self.walk.catalogue.service_hint(service)
            self.walk.report("MUP011", f"no service is named {service!r}", service_node, hint)
        elif endpoint != "?":
            key = self.walk.catalogue.key(service, endpoint, method)
            if key is not None:
                return EndpointRef(service, key)
            hint = self.walk.catalogue.endpoint_hint(service, endpoint, method)
            what = f"service {service!r} has no endpoint {typed(endpoint, method)}"
            self.walk.report("MUP012", what, endpoint_node, hint)
        return EndpointRef(service, endpoint if endpoint.startswith("/") else f"/{endpoint}")

    def _check_database(self, name: str, node: cst.CSTNode) -> None:
        problem = self.walk.catalogue.database_problem(name)
        if problem is not None:
            message, hint = problem
            self.walk.report("MUP013", message, node, hint)

    def _check_query(self, arguments: Arguments, node: cst.Call, state: State) -> None:
        """Report a query the runtime refuses, whatever is not known of its text."""
        value, place = arguments.get(*QUERY_TEXT)
        if value is None:
            hint = "it says what to do: a filter or a command"
            self.walk.report("MUP014", "this query has no qry_txt", node, hint)
            return
        problem: QueryError | None = None
        for one in alternatives(value):
            try:
                check_known(self._known_part(one, state))
            except QueryError as error:
                problem = problem or error
            else:
                # Perhaps it is this one.
                return
        if problem is not None:
            hint = problem.hint or f"'mup docs queries' has the fields of every {RESERVED}"
            self.walk.report("MUP014", problem.message, place or node, hint)

    def _known_part(self, value: Value, state: State, depth: int = 0) -> Any:
        """Return a value as Python has it, with ``NOT_KNOWN`` for what only an execution tells."""
        constant, plain = value.as_text().python()
        if constant and not isinstance(plain, tuple | dict):
            return plain
        pairs = None if depth > MAX_NESTED else value.pairs(state.heap)
        if pairs is None:
            return NOT_KNOWN
        if isinstance(value, ListRef | TupleValue):
            # Lists that never change are kept as tuples: which of both one is, is not known.
            return [self._known_part(item, state, depth + 1) for _, item in pairs]
        known = {}
        for key, item in pairs:
            name = self._known_part(key, state, MAX_NESTED)
            if not isinstance(name, Hashable) or name is NOT_KNOWN:
                return NOT_KNOWN
            known[name] = self._known_part(item, state, depth + 1)
        return known

    def get(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for the answer of a call or query does."""
        self.walk.waiting.check_waiting(future.index, node, state)
        if future.index in state.joined:
            # The answer is already there, or the failure: which of both is not known.
            waited = state.operations[future.index].op
            self.walk.may_fail(state, "get of query" if waited == "query" else "get of call")
            return [(state, UNKNOWN)]
        operation = Operation("get", self.walk.module.site(node), of=future.index)
        return [(self.emit(state, operation), UNKNOWN)]

    def think(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        """Return what thinking does."""
        time = self._think_time(arguments)
        if time is None:
            what = "the think time is not known from the source"
            self.walk.report("MUP043", what, node, "it will be measured")
        return [(self.emit(state, Operation("think", self.walk.module.site(node), think=time)), NONE)]

    def _think_time(self, arguments: Arguments) -> Distribution | None:
        mean, _ = arguments.get(0, THINK_PARAMETERS[0])
        family, _ = arguments.get(1, THINK_PARAMETERS[1])
        match Const.of("constant") if family is None else family, mean:
            case Const(value="recorded"), Const(value=str(file)):
                return self._recorded(file)
            case Const(value="constant" | "exponential" as name), Const(value=int() | float() as seconds):
                with suppress(ModelError):
                    return Constant(float(seconds)) if name == "constant" else Exponential(float(seconds))
        return None

    def _recorded(self, file: str) -> Distribution | None:
        """Return the think times of a file beside the source; None if it cannot be read."""
        try:
            times = sorted(read_times(self.walk.names.tree.root / file))
        except UsageError:
            return None
        size = min(len(times), RECORDED_TIMES)
        # Each value stands for equally many of the recorded ones.
        parts = [times[k * len(times) // size : (k + 1) * len(times) // size] for k in range(size)]
        means = tuple(sum(part) / len(part) for part in parts)
        return Constant(means[0]) if means[0] == means[-1] else Empirical(means)


def _of_one_record(
    given: Sequence[tuple[Value | None, cst.CSTNode | None]], state: State
) -> set[tuple[str, str]] | None:
    """Return the pairs of texts that two arguments may be, if these are variables of the same record."""
    records = state.frames[-1].get(RECORDS)
    if type(records) is not Records:
        return None
    columns = []
    for value, place in given:
        match place:
            case cst.Arg(value=cst.Name(value=name)) if name in records.names:
                column = [row[records.names.index(name)] for row in records.rows]
            case _:
                return None
        if value != join(column):
            return None
        columns.append([one.as_text() for one in column])
    pairs = set()
    for pair in zip(*columns, strict=True):
        match pair:
            case Const(value=head), Const(value=tail):
                pairs.add((head, tail))
            case _:
                return None
    return pairs
