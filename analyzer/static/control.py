"""What is the control flow of a function, without Python's many spellings of it?

Turns a body into a small tree of nodes: steps, branches, loops, protected blocks and exits. ``elif`` ladders,
``match``, ``with`` and conditional statements all become these; what a step *does* is decided by
``analyzer.static.execution``, which walks the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import libcst as cst

from analyzer.static.syntax import last_name, name_of, simple_statements
from analyzer.static.walking import names_in

if TYPE_CHECKING:
    from analyzer.static.state import Flow, State
    from analyzer.static.values import Value

__all__ = [
    "Arm",
    "Block",
    "Branch",
    "Define",
    "Exit",
    "Handler",
    "Loop",
    "Managed",
    "Node",
    "Protected",
    "Run",
    "Step",
    "Unsupported",
    "With",
    "lower",
]


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """Evaluate an expression and bind the result to the targets.

    Attributes:
        value: None for statements without effect on control flow or values the analyzer follows.
        augmented: Name of the operator of an augmented assignment, else "".
        node: The statement, for its position.
    """

    node: cst.CSTNode
    value: cst.BaseExpression | None
    targets: tuple[cst.BaseExpression, ...] = ()
    augmented: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Arm:
    """One way on from a branch.

    Attributes:
        test: What must hold; None = may always be taken.
        pattern: What the subject must look like, or None.
        certain: Whether it is taken by whatever comes here.
    """

    test: cst.BaseExpression | None
    body: Block
    pattern: cst.MatchPattern | None = None
    certain: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """Try the arms in order; if none is certain, none may be taken.

    Attributes:
        subject: Evaluated first (``match``), or None.
    """

    node: cst.CSTNode
    arms: tuple[Arm, ...]
    subject: cst.BaseExpression | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """``for`` (with a target) or ``while`` (with a test)."""

    node: cst.CSTNode
    target: cst.BaseExpression | None
    iterable: cst.BaseExpression | None
    test: cst.BaseExpression | None
    body: Block
    orelse: Block


@dataclass(frozen=True, eq=False, slots=True)
class Handler:
    """An ``except`` clause.

    Attributes:
        types: Of the exceptions, as the source writes them or as they are known; None catches everything.
    """

    types: cst.BaseExpression | tuple[Value, ...] | None
    name: str
    body: Block


@dataclass(frozen=True, eq=False, slots=True)
class Protected:
    """``try``: a body, what catches its exceptions, and what runs in any case.

    Attributes:
        parts: Whether several handlers may run, each for its part of a group of exceptions: ``except*``.
    """

    node: cst.CSTNode
    body: Block
    handlers: tuple[Handler, ...]
    orelse: Block
    final: Block
    parts: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Managed:
    """``async with`` something that may decide how its body ends: a timeout, or a group of tasks.

    Attributes:
        plain: What it is if it is neither.
    """

    node: cst.CSTNode
    call: cst.Call
    target: cst.BaseExpression | None
    body: Block
    plain: With


@dataclass(frozen=True, eq=False, slots=True)
class With:
    """``with``: enter a context manager, run the body, leave it.

    Attributes:
        plain: The body if it is not a stack of managers after all, although its name is that of one.
        entered: Whether that was done before the generator waited whose code it is, which goes on inside.
    """

    node: cst.WithItem | cst.Call
    value: cst.BaseExpression
    target: cst.BaseExpression | None
    body: Block
    asynchronous: bool = False
    plain: Block | None = None
    entered: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Exit:
    """Leave the function, or an iteration of the innermost loop."""

    node: cst.CSTNode
    kind: Literal["return", "raise", "break", "continue"]
    value: cst.BaseExpression | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Define:
    """A nested function, class or import: binds names, does nothing yet."""

    node: cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """A step the source does not spell out."""

    node: cst.CSTNode
    action: Callable[[State], list[Flow]]


@dataclass(frozen=True, eq=False, slots=True)
class Unsupported:
    """A statement that is not followed; harmless unless it communicates."""

    node: cst.CSTNode
    what: str


Node: TypeAlias = "Step | Branch | Loop | Protected | Managed | With | Exit | Define | Run | Unsupported"
Block: TypeAlias = tuple[Node, ...]
Statement: TypeAlias = cst.BaseStatement | cst.BaseSmallStatement


def lower(body: cst.BaseSuite) -> Block:
    """Return the control flow of a block."""
    return _lowered(body.body)


def _lowered(statements: Sequence[Statement]) -> Block:
    nodes: list[Node] = []
    for statement in statements:
        for one in simple_statements(statement):
            lowered = LOWERED.get(type(one))
            if lowered is not None:
                nodes += lowered(one)
            elif isinstance(one, cst.BaseCompoundStatement):
                nodes.append(Unsupported(one, type(one).__name__.lower()))
    return tuple(nodes)


def _expression(node: cst.Expr) -> Block:
    # A docstring or `...` is not work.
    idle = isinstance(node.value, cst.SimpleString | cst.ConcatenatedString | cst.Ellipsis)
    return () if idle else (Step(node, node.value),)


def _augmented(node: cst.AugAssign) -> Block:
    operator = type(node.operator).__name__.removesuffix("Assign")
    return (Step(node, node.value, (node.target,), operator),)


def _deletion(node: cst.Del) -> Block:
    parts = node.target.elements if type(node.target) is cst.Tuple else ()
    return (Step(node, None, tuple(part.value for part in parts) or (node.target,)),)


def _loop(node: cst.For | cst.While) -> Block:
    target, iterable, test = (getattr(node, name, None) for name in ("target", "iter", "test"))
    return (Loop(node, target, iterable, test, lower(node.body), _orelse(node.orelse)),)


def _try(node: cst.Try | cst.TryStar) -> Block:
    handlers = tuple(
        Handler(one.type, name_of(one.name and one.name.name), lower(one.body)) for one in node.handlers
    )
    final = () if node.finalbody is None else lower(node.finalbody.body)
    parts = type(node) is cst.TryStar
    return (Protected(node, lower(node.body), handlers, _orelse(node.orelse), final, parts),)


def _definition(node: cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom) -> Block:
    return (Define(node),)


LOWERED: dict[type, Callable[[Any], Block]] = {
    cst.AnnAssign: lambda node: (Step(node, node.value, (node.target,)),) if node.value else (),
    cst.Assert: lambda node: (Step(node, node.test),),
    cst.Assign: lambda node: (Step(node, node.value, tuple(one.target for one in node.targets)),),
    cst.AugAssign: _augmented,
    cst.Break: lambda node: (Exit(node, "break"),),
    cst.ClassDef: _definition,
    cst.Continue: lambda node: (Exit(node, "continue"),),
    cst.Del: _deletion,
    cst.Expr: _expression,
    cst.For: _loop,
    cst.FunctionDef: _definition,
    cst.If: lambda node: (_if(node),),
    cst.Import: _definition,
    cst.ImportFrom: _definition,
    cst.Match: lambda node: (Branch(node, tuple(map(_case, node.cases)), node.subject),),
    cst.Raise: lambda node: (Exit(node, "raise", node.exc),),
    cst.Return: lambda node: (Exit(node, "return", node.value),),
    cst.Try: _try,
    cst.TryStar: _try,
    cst.While: _loop,
    cst.With: lambda node: tuple(_with(node, node.items)),
}
"""What statements become; `pass`, `global`, `nonlocal` and type aliases become nothing."""


def _if(node: cst.If) -> Branch:
    arms = [Arm(node.test, lower(node.body))]
    if type(node.orelse) is cst.If:
        arms.append(Arm(None, (_if(node.orelse),), certain=True))
    elif node.orelse is not None:
        arms.append(Arm(None, lower(node.orelse.body), certain=True))
    return Branch(node, tuple(arms))


def _orelse(node: cst.Else | None) -> Block:
    return () if node is None else lower(node.body)


def _case(node: cst.MatchCase) -> Arm:
    certain = False
    match node:
        case cst.MatchCase(guard=None, pattern=cst.MatchAs(pattern=None)):
            certain = True  # `case _:` or `case name:`
    return Arm(node.guard, lower(node.body), node.pattern, certain)


def _with(node: cst.With, items: Sequence[cst.WithItem]) -> Sequence[Node]:
    if not items:
        return lower(node.body)
    item, rest = items[0], items[1:]
    call, asynchronous = item.item, node.asynchronous is not None
    target = None if item.asname is None else item.asname.name
    inner = tuple(_with(node, rest))
    plain = With(item, call, target, inner, asynchronous)
    match call:
        case cst.Call(func=function) if last_name(function) in _STACKS and name_of(target) and not rest:
            block = _stacked(node.body.body, name_of(target))
            return (With(item, call, target, block, asynchronous, inner),)
        case cst.Call(func=function) if last_name(function) in _MANAGERS and asynchronous:
            return (Managed(node, call, target, inner, plain),)
    return (plain,)


_MANAGERS = {"TaskGroup", "timeout", "timeout_at"}

_STACKS = {"AsyncExitStack", "ExitStack"}
_ENTERING = {"enter_async_context": True, "enter_context": False}
"""Methods of a stack of managers that enter one, and whether as ``async with`` does."""


def _stacked(statements: Sequence[Statement], stack: str) -> Block:
    """Return the control flow of the block of a stack of managers, which has this name.

    ``x = stack.enter_context(manager)`` is ``with manager as x:`` around the rest of the block, unless that
    puts something else on the stack, which would be left first.
    """
    for place, statement in enumerate(statements):
        found = _entering(statement, stack)
        rest = statements[place + 1 :]
        others = (one for one in rest if _entering(one, stack) is None)
        if found is not None and not any(stack in names_in(one) for one in others):
            call, target = found
            asynchronous = _ENTERING[last_name(call.func)]
            held = With(call, call.args[0].value, target, _stacked(rest, stack), asynchronous)
            return (*_lowered(statements[:place]), held)
    return _lowered(statements)


def _entering(statement: Statement, stack: str) -> tuple[cst.Call, cst.BaseExpression | None] | None:
    """Return the call of a statement that does nothing but enter a manager, and what it is assigned to."""
    target: cst.BaseExpression | None = None
    match simple_statements(statement):
        case [cst.Expr(value=value)]:
            pass
        case [cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]:
            pass
        case _:
            return None
    awaited = type(value) is cst.Await
    match value.expression if type(value) is cst.Await else value:
        case (
            cst.Call(
                func=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=method)),
                args=[cst.Arg(value=manager, star="")],
            ) as call
        ) if owner == stack and _ENTERING.get(method) is awaited and stack not in names_in(manager):
            return call, target
    return None
